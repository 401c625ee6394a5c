"""Goldens: what is committed of the generated code of every kernel.

A golden is a line for every kernel and architecture (digests of what it is made from and of its
PTX, what ptxas makes of it, the instructions that matter), and text for people: the PTX of a few
kernels, one for each way to work. ``accepted_spills.json`` has the kernels that may use local
memory, each with a reason. A refactor shows no difference; a change shows one, in numbers first.
All of it belongs to one NVRTC version, the pinned one.
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
