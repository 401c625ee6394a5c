"""The PTX interpreter: kernels run on a machine without a GPU, bit for bit, and strictly.

:func:`parse` reads PTX, :class:`Program` decodes a kernel of it, :func:`decode` does both and keeps
the latest programs, :func:`launch` runs a grid on arrays in :class:`GlobalMemory`. Most users want
the device on top, ``ptxgen.use_device("cpu")``.
"""

from ptxgen.interp.memory.allocations import GlobalMemory
from ptxgen.interp.run.machine import Observer, Settings, launch
from ptxgen.interp.run.program import Program, decode
from ptxgen.interp.text.ptx import Module, parse

__all__ = [
    "GlobalMemory",
    "Module",
    "Observer",
    "Program",
    "Settings",
    "decode",
    "launch",
    "parse",
]
