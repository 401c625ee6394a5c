"""Goldens: the committed PTX and resource use of every kernel.

``golden/<target>/<spec>.ptx`` is the text a reviewer reads, ``golden/resources.json`` what
ptxas makes of it per architecture, ``golden/accepted_spills.json`` the kernels that may use
local memory, each with a reason. A refactor shows no difference; a change shows one, in
numbers first (:func:`changes`). The text belongs to one NVRTC version, the pinned one.
"""

from ptxgen.golden.check import Problem, check, local_memory, rules
from ptxgen.golden.diff import Change, changes
from ptxgen.golden.fresh import ARCHES, arches, build, expected, jobs, targets, usage_of
from ptxgen.golden.ptx import instructions
from ptxgen.golden.store import Goldens, Usage, checkout_folder, load, load_revision, save

__all__ = [
    "ARCHES",
    "Change",
    "Goldens",
    "Problem",
    "Usage",
    "arches",
    "build",
    "changes",
    "check",
    "checkout_folder",
    "expected",
    "instructions",
    "jobs",
    "load",
    "load_revision",
    "local_memory",
    "rules",
    "save",
    "targets",
    "usage_of",
]
