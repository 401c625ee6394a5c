"""Products with NF4 weights on the CPU device, in memory that notices everything."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from bits import KINDS, NUMPY, operand, same_bits
from interp_launch import BAND, ROUTED, SEED, Matrix
from steps import Arrays

from ptxgen import nf4, reference
from ptxgen.numerics.contract import ACTIVATIONS
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.program.buffer import Buffer
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.tiles import SPECS

LONG = 4160
"""A reduction that the plans cut."""
SMALL = 512
"""Outputs of a tile, up to which so long a one is run: what takes chunks in turns is the same."""
FUSED = sorted(n for n, r in ROUTED.items() if isinstance(r.kernels[0], QuantizedGemmSpec))
"""The routes that read the weight as it is stored."""
LONG_NAMES = {short: long for long, short in DTYPES.items()}


@dataclass(frozen=True)
class Case:
    """A product [m, k] x [k, n], of which n (backward) or k (forward) is a number of blocks."""

    m: int
    n: int
    k: int
    kind: str = "normal"
    activation: str = "none"
    bias: bool = False
    wide: bool = False
    """Whether the result is f32."""
    apart: int = 0
    """16 bytes between rows of x, and elements between those of the result."""


def run(device: Any, name: str, case: Case) -> tuple[Any, Any, bool]:
    """The result of a forced kernel, the oracle's, and whether all beside it is as it was."""
    spec = SPECS[name]
    forward, kind, memory = spec.layout == "NT", spec.dtype, device.memory
    rng = np.random.default_rng([SEED, case.m, case.n, case.k])
    rows, columns = (case.n, case.k) if forward else (case.k, case.n)
    # Rows have scales of their own: those that are mixed up are seen.
    w = operand(rng, (rows, columns)) * np.exp2(rng.integers(-3, 3, (rows, 1))).astype("f4")
    q = nf4.quantize(w)
    x = operand(rng, (case.m, case.k), case.kind, kind)
    anywhere = getattr(spec, "copy_a", None) == "plain"
    unit = 1 if anywhere else 16 // x.itemsize
    data, scales = q.operands[:2]
    arrays = {
        "x" if forward else "dy": Matrix(
            memory, "x", x.shape, x, dtype=kind, pitch=(-(-case.k // unit) + case.apart) * unit
        ),
        "data": Matrix(memory, "data", data.shape, data, dtype="u1"),
        "scales": Matrix(memory, "scales", scales.shape, scales),
    }
    bias = operand(rng, (1, case.n), "normal", kind)[0] if case.bias else None
    if bias is not None:
        arrays["bias"] = Matrix(memory, "bias", (1, case.n), bias[None], dtype=kind)
    stored = "f32" if case.wide else kind
    shape = (case.m, case.n)
    out = Matrix(memory, "out", shape, dtype=stored, pitch=case.n + case.apart, band=BAND)
    op = "quantized_linear" if forward else "quantized_linear_dgrad"
    how: dict[str, Any] = {"out_dtype": np.dtype(NUMPY[stored]).name}
    how |= {"activation": None if case.activation == "none" else case.activation} if forward else {}
    shapes = {"data": data.shape, "scales": scales.shape, "bias": (case.n,)}
    dtypes = {"data": "uint8", "scales": "float32"}
    held = Arrays(op)
    views = {
        n: _at(held, n, matrix, shapes.get(n, x.shape), dtypes.get(n, LONG_NAMES[kind]))
        for n, matrix in arrays.items()
    }
    try:
        target = _at(held, "out", out, shape, LONG_NAMES[stored], written=True)
        held.fire(held.program(op, **views, **how, format=NF4.name, out=target), device, name)
        got, intact = out.values.copy(), out.intact()
    finally:
        for matrix in (*arrays.values(), out):
            matrix.free()
    given = (x, q, bias) if forward else (x, q)
    return got, getattr(reference, op)(*given, **how), intact


def _at(
    held: Arrays,
    name: str,
    matrix: Matrix,
    shape: tuple[int, ...],
    dtype: str,
    written: bool = False,
) -> Buffer:
    strides = (matrix.pitch, 1)[-len(shape) :]
    return held.at(name, matrix.ptr, shape, strides, dtype, written)


def check(name: str, case: Case, device: Any) -> None:
    """Runs ``case`` and compares it with the oracle."""
    got, expected, intact = run(device, name, case)
    same_bits(got, expected, seed=SEED, spec=name, what=str(case))
    assert intact, f"{case}: wrote beside the result"


def products(name: str) -> list[Any]:
    """Problems across every edge of a kernel: beyond its tile, around its ring, in chunks."""
    spec, turn = SPECS[name], FUSED.index(name)
    forward = spec.layout == "NT"

    def case(i: int, m: int, n: int, k: int, **more: Any) -> Case:
        n, k = (
            (n, -(-k // NF4.block) * NF4.block) if forward else (-(-n // NF4.block) * NF4.block, k)
        )
        kind = KINDS[(turn + i) % len(KINDS)]
        return Case(m, n, k, kind if kind != "special" else "cancelling", **more)

    activation = ACTIVATIONS[turn % len(ACTIVATIONS)] if forward else "none"
    found = [
        case(0, spec.bm + 1, spec.bn + 1, spec.bk + 1, wide=True, apart=1),
        case(1, 3, 5, (spec.stages + 1) * spec.bk + 1, apart=turn % 2),
        case(2, spec.bm, spec.bn, 1, activation=activation, bias=forward),
    ]
    if spec.partial or (spec.split == "serial" and spec.bm * spec.bn <= SMALL):
        found.append(case(3, 2, 12, LONG))
    if spec.dtype != "bf16":  # a twin
        found = [found[turn % 2]]
    return [functools.partial(check, name, each) for each in found]
