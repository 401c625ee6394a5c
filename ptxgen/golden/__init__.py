"""Goldens: committed records of the generated code of every kernel.

A golden is a line for each kernel and architecture: digests of its inputs and of its PTX, the
resources that ptxas reports, and counts of significant instructions. For reviewers there is also
the PTX text of a few kernels, one for each variant of a template. ``accepted_spills.json`` has the
kernels that may use local memory, each with a reason. A refactoring shows no difference; other
changes show in numbers first. All goldens are made with one NVRTC version, the pinned one.
"""

from ptxgen.build.targets import ARCHES, arches
from ptxgen.golden.check import Finding, check, local_memory, rules
from ptxgen.golden.diff import Change, changes, renamed, text_diff
from ptxgen.golden.fresh import (
    build,
    changed,
    expected,
    read_by_people,
    sample,
    textless,
    updated,
    usage_of,
)
from ptxgen.golden.git import Revision
from ptxgen.golden.ptx import instructions, summary
from ptxgen.golden.store import Goldens, Record, Usage, checkout_folder, load, recorded, save

__all__ = [
    "ARCHES",
    "Change",
    "Finding",
    "Goldens",
    "Record",
    "Revision",
    "Usage",
    "arches",
    "build",
    "changed",
    "changes",
    "check",
    "checkout_folder",
    "expected",
    "instructions",
    "load",
    "local_memory",
    "read_by_people",
    "recorded",
    "renamed",
    "rules",
    "sample",
    "save",
    "summary",
    "text_diff",
    "textless",
    "updated",
    "usage_of",
]
