"""Functions of formulas: arguments, and one kernel that applies them all."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.build.compile import compile_cubin, compile_ptx
from ptxgen.build.render import environment
from ptxgen.numerics.formula import Formula, Output, read
from ptxgen.numerics.functions import FUNCTIONS
from ptxgen.oracle.formula import KINDS
from ptxgen.runtime import Parameters
from ptxgen.runtime.device import Device
from ptxgen.spec import formula as source

Array = NDArray[Any]
THREADS = 128
_BITS = {"f32": np.uint32, "f64": np.uint64}


def of_type(type: str) -> list[str]:
    """The functions that take this type."""
    return [name for name, f in FUNCTIONS.items() if type in f.types]


def samples(count: int, type: str = "f32", seed: int = 5) -> Array:
    """Every binade evenly, the ranges where functions bend once more, and the edges of binades."""
    rng = np.random.default_rng(seed)
    kind, width = _BITS[type], 8 * KINDS[type]().itemsize
    mantissa = {32: 23, 64: 52}[width]
    drawn = rng.integers(0, 2**width, count, dtype=kind, endpoint=False).view(KINDS[type])
    wide = 150 if type == "f32" else 1000
    near = [rng.uniform(-w, w, count // 4).astype(KINDS[type]) for w in (1, 16, wide)]
    ends = np.arange(1 << (width - mantissa - 1), dtype=kind) << kind(mantissa)
    edges = np.concatenate([ends, ends - kind(1), ends + kind(1), ends + kind(2**mantissa - 1)])
    edges = np.concatenate([edges, edges | kind(1 << (width - 1))]).view(KINDS[type])
    return np.concatenate([drawn, *near, edges])


def applied(name: str, type: str = "f32") -> Formula:
    """The function of inputs."""
    arguments = [read(f"x{i}", type) for i in range(FUNCTIONS[name].arity)]
    return Formula((Output("z", type, FUNCTIONS[name](*arguments)),))


def together(type: str = "f32") -> Formula:
    """Returns a formula that applies every function of ``type``, one output each."""
    nodes = [applied(name, type).outputs[0].node for name in of_type(type)]
    return Formula(tuple(Output(f"z{i}", type, n) for i, n in enumerate(nodes)))


def kernel(type: str = "f32") -> str:
    """CUDA C++ of ``functions(x, y, z)``: z has a row for each function of this type."""
    head = environment().get_template("include/formula.cuh.j2")
    c = source.CTYPES[type]
    lines = [
        head.render(formula=together(type), functions=source.functions),
        f'extern "C" __global__ void functions(const {c}* x, const {c}* y, {c}* z) {{',
        "    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;",
        "    const unsigned count = gridDim.x * blockDim.x;",
    ]
    for row, name in enumerate(of_type(type)):
        arguments = ", ".join(("x[i]", "y[i]")[: FUNCTIONS[name].arity])
        lines.append(f"    z[{row} * count + i] = ptxgen_{name}_{type}({arguments});")
    return "\n".join([*lines, "}"])


def run(device: Device, x: Array, y: Array, type: str = "f32") -> dict[str, Array]:
    """Returns each function's results on a device for x and y, of whole multiples of THREADS."""
    assert x.size == y.size and x.size % THREADS == 0
    compiler = compile_cubin if device.image_kind == "cubin" else compile_ptx
    arch = device.arch if device.image_kind == "cubin" else "compute_90a"
    function = device.load(compiler(kernel(type), name="functions", arch=arch).image, "functions")
    names = of_type(type)
    z = np.full((len(names), x.size), np.nan, x.dtype)
    arrays = [np.ascontiguousarray(a) for a in (x, y, z)]
    pointers = [device.alloc(a.nbytes) for a in arrays]
    for pointer, array in zip(pointers, arrays, strict=True):
        device.copy_in(pointer, array.ctypes.data, array.nbytes)
    parameters = Parameters(struct.pack("<3Q", *pointers), (0, 1, 2))
    grid, block = (x.size // THREADS, 1, 1), (THREADS, 1, 1)
    device.prepare(function, grid, block, parameters, 3, "functions").fire(0, *pointers)
    device.copy_out(arrays[2].ctypes.data, pointers[2], arrays[2].nbytes)
    device.synchronize()
    for pointer in pointers:
        device.free(pointer)
    return dict(zip(names, arrays[2], strict=True))
