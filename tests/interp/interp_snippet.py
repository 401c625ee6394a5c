"""Runs a few lines of PTX on the CPU device."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.runtime import Parameters
from ptxgen.runtime.cpu import CpuDevice

REGISTERS = """\
    .reg .pred %p<20>;
    .reg .b16 %h<20>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<40>;
    .reg .f32 %f<40>;
    .reg .f64 %d<40>;
"""


def module(
    body: str,
    *,
    parameters: int = 0,
    target: str = "sm_90a",
    head: str = "",
    directives: str = "",
) -> str:
    """A kernel ``main`` with u64 parameters a0, a1, ... and the usual registers."""
    names = ", ".join(f".param .u64 a{i}" for i in range(parameters))
    return (
        f".version 8.7\n.target {target}\n.address_size 64\n{head}"
        f".visible .entry main({names}) {directives}\n{{\n{REGISTERS}{body}\n    ret;\n}}\n"
    )


def run(
    body: str,
    inputs: Sequence[NDArray[Any]] = (),
    out: NDArray[Any] | None = None,
    *,
    grid: int = 1,
    block: int = 32,
    target: str = "sm_90a",
    head: str = "",
    directives: str = "",
    **settings: Any,
) -> NDArray[Any]:
    """Runs ``body`` with pointers to copies of the inputs and of ``out``; the latter's new values.

    The pointers are in %rd0, %rd1, ..., and %r0 is the thread's number.
    """
    device = CpuDevice(**settings)
    result = np.zeros(1, np.uint32) if out is None else out.copy()
    arrays = [np.ascontiguousarray(x) for x in (*inputs, result)]
    pointers = []
    for array in arrays:
        pointers.append(device.alloc(array.nbytes))
        device.copy_in(pointers[-1], array.ctypes.data, array.nbytes)
    loads = "".join(f"    ld.param.u64 %rd{i}, [a{i}];\n" for i in range(len(arrays)))
    text = module(
        f"{loads}    mov.u32 %r0, %tid.x;\n{body}",
        parameters=len(arrays),
        target=target,
        head=head,
        directives=directives,
    )
    kernel = device.load(text.encode(), "main")
    packed = struct.pack(f"<{len(pointers)}Q", *pointers)
    parameters = Parameters(packed, tuple(range(len(pointers))))
    launch = device.prepare(
        kernel, (grid, 1, 1), (block, 1, 1), parameters, len(pointers), "a snippet"
    )
    launch.fire(0, *pointers)
    device.copy_out(result.ctypes.data, pointers[-1], result.nbytes)
    return result
