"""Kernels written in PTX: retargets them, and wraps them in CUDA C++ for NVRTC to assemble.

NVRTC, the only compiler that ptxgen requires, contains the assembler, but takes CUDA C++ only. So a
kernel in PTX becomes the only ``asm`` statement of a C++ kernel with the same parameters. The PTX
uses the names that NVRTC gives to parameters: ``<kernel>_param_0`` and so on.
"""

from __future__ import annotations

import re

from ptxgen.errors import CompileError, OptionError
from ptxgen.spec.base import PTX_TARGETS

_HEADER = re.compile(r"^\.version \S+\n\.target (\S+)$", re.MULTILINE)
_KERNEL = re.compile(
    r"^\.visible \.entry (?P<name>\w+)\((?P<parameters>[^)]*)\)\n"
    r"\.maxntid (?P<threads>\d+), 1, 1\n\.minnctapersm (?P<ctas>\d+)\n(?P<body>\{.*\})\s*\Z",
    re.MULTILINE | re.DOTALL,
)
_PARAMETER = re.compile(r"^\s*\.param \.(u32|u64) (\w+)", re.MULTILINE)
_TYPES = {"u32": "unsigned", "u64": "unsigned long long"}


def is_ptx(source: str) -> bool:
    """Whether a rendered source is PTX."""
    return _HEADER.search(source) is not None


def retargeted(source: str, target: str) -> str:
    """Returns a PTX kernel for another target, such as "sm_90", no older than its own.

    Raises OptionError for an older target, and for an unknown one.
    """
    found = _HEADER.search(source)
    assert found is not None, "PTX"
    known = list(PTX_TARGETS)
    taken = known[known.index(found[1]) :]
    if target not in taken:
        raise OptionError(f"target {target!r}; takes {', '.join(taken)}")
    header = f".version {PTX_TARGETS[target]}\n.target {target}"
    return source[: found.start()] + header + source[found.end() :]


def carrier(source: str) -> str:
    """Wraps a PTX kernel in CUDA C++, from which NVRTC makes its cubin. Raises CompileError."""
    found = _KERNEL.search(source)
    if found is None:
        raise CompileError(
            "the PTX is not one kernel with .maxntid, .minnctapersm and a body, in that order"
        )
    name, types = found["name"], []
    for number, (type, parameter) in enumerate(_PARAMETER.findall(found["parameters"])):
        if parameter != f"{name}_param_{number}":
            raise CompileError(f"{name}: parameter {number} is {parameter}")
        types.append(_TYPES[type])
    lines = "\n".join(f'"{line}\\n"' for line in _plain(found["body"]).splitlines())
    return (
        f'extern "C" __global__ void __launch_bounds__({found["threads"]}, {found["ctas"]})\n'
        f"{name}({', '.join(types)})\n{{\nasm volatile(\n{lines});\n}}\n"
    )


def _plain(body: str) -> str:
    """Returns PTX without comments (kernels have no string literals)."""
    return re.sub(r"[ \t]*//.*", "", body)
