"""Products of 4-bit integers on the CPU device, in memory that notices everything."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bits import same_bits
from interp_launch import BAND, SEED, Matrix
from steps import Arrays

from ptxgen import int4, reference
from ptxgen.numerics.int4 import BIASES, ELEMENTS, EPILOGUES, WIDE
from ptxgen.program.launch import routes_by_name
from ptxgen.tiles import SPECS


@dataclass(frozen=True)
class Case:
    """A product, and how its arrays lie."""

    m: int
    n: int
    k: int
    epilogue: str = "identity"
    bias: str = "float32"
    with_c: str = ""
    """Place of C: "" (none), "beside" the result, or "over" it (the result's memory)."""
    out: str = "uint8"
    kind: str = "random"
    align: tuple[int, int] = (16, 16)
    """Bytes that the operands are aligned to, and not to more."""
    extra: int = 0
    """Items between the rows of C and of the result."""
    offset: int = 0
    """Items from a 16-byte boundary to C and to the result."""
    alpha: float | None = None
    """Factor of the sums; None for one that spreads results over their whole range."""
    beta: float = -1.5


@functools.lru_cache(maxsize=64)
def elements(rows, columns, dtype, kind, which):
    """Returns random elements including the extremes, or all the largest ("high") or smallest
    ("low").
    """
    low, high = ELEMENTS[dtype].low, ELEMENTS[dtype].high
    if kind != "random":
        return np.full((rows, columns), {"low": low, "high": high}[kind])
    rng = np.random.default_rng([SEED, rows, columns, which])
    return rng.choice(np.array([low, high, *range(low, high + 1)]), (rows, columns))


def operands(case, dtype, layout):
    """The library's arguments, and its options but for where to write."""
    m, n, k = case.m, case.n, case.k
    a = elements(m, k, dtype, case.kind, 0)
    b = elements(k, n, dtype, case.kind, 1)
    bias = None
    if case.epilogue != "identity":
        odd = np.array([0.5, -0.5, 3, -7, 100, -1e9] + ([np.nan] if case.bias == "float32" else []))
        bias = np.resize(odd, n).astype(case.bias)
    given = {
        "a": int4.pack(a, dtype),
        "b": int4.pack(np.ascontiguousarray(b.T) if layout == "rcr" else b, dtype),
        "c": int4.pack(elements(m, n, dtype, case.kind, 2), dtype) if case.with_c else None,
        "bias": bias,
    }
    activation = None if case.epilogue == "bias" else case.epilogue
    alpha = case.alpha
    if alpha is None:
        alpha = 0.15 / max(k, 1) ** (0.5 if ELEMENTS[dtype].low else 1.0)
    options = {"dtype": dtype, "layout": layout, "activation": activation, "alpha": alpha,
               "beta": case.beta, "out_dtype": case.out}  # fmt: skip
    return given, options


def place(memory, name, values, align):
    """A packed operand in device memory, whose rows and start are aligned to just that."""
    columns = values.shape[1]
    pitch = -(-columns // align) * align
    pitch += align if pitch // align % 2 == 0 and align < 16 else 0
    offset = align if align < 16 else 0
    return Matrix(memory, name, values.shape, values, dtype="u1", pitch=pitch, offset=offset)


def served(name: str) -> tuple[str, str]:
    """The dtype and the layout that a route is for."""
    _, (_, layout, dtype), _ = routes_by_name()[name]
    return dtype, layout


def run(device, kernel, case):
    """The result of a forced route, and whether everything beside it is as it was."""
    given, options = operands(case, *served(kernel))
    memory, c, bias = device.memory, given["c"], given["bias"]
    arrays = {
        x: place(memory, x, given[x], align) for x, align in zip("ab", case.align, strict=True)
    }
    columns = case.n // (1 if case.out in WIDE else 2)
    lies = {"pitch": columns + case.extra, "offset": case.offset, "band": BAND}
    over = case.with_c == "over"
    kind = np.dtype(case.out).str[1:]
    out = Matrix(memory, "out", (case.m, columns), c if over else None, dtype=kind, **lies)
    if c is not None:
        lies["pitch"] = c.shape[1] + case.extra
        arrays["c"] = out if over else Matrix(memory, "c", c.shape, c, dtype="u1", **lies)
    if bias is not None:
        arrays["bias"] = Matrix(memory, "bias", (1, case.n), bias[None], dtype=bias.dtype.str[1:])
    held = Arrays("int4_gemm")
    views = {
        x: _at(held, x, matrix, given[x].shape, given[x].dtype.name) for x, matrix in arrays.items()
    }
    try:
        target = _at(held, "out", out, (case.m, columns), case.out, written=True)
        held.fire(held.program("int4_gemm", **views, **options, out=target), device, kernel)
        return out.values.copy(), out.intact()
    finally:
        for matrix in {id(m): m for m in (*arrays.values(), out)}.values():
            matrix.free()


def _at(held, name, matrix, shape, dtype, written=False):
    strides = (matrix.pitch, 1)[-len(shape) :]
    return held.at(name, matrix.ptr, shape, strides, dtype, written)


def check(name: str, case: Case, device: Any) -> None:
    """Runs ``case`` and compares it with the oracle."""
    got, intact = run(device, name, case)
    given, options = operands(case, *served(name))
    expected = reference.int4_gemm(**given, **options)
    same_bits(got, expected, seed=SEED, spec=name, what=str(case))
    assert intact, f"{case}: wrote beside the result"


def cases(name: str) -> list[Case]:
    """The few problems that cross every edge of a kernel: beyond the tile, short of it with a ring
    that goes round, whole tiles, the least, an empty reduction; by turns with every epilogue.
    """
    spec = SPECS[name]
    bm, bn, bk = spec.bm, spec.bn, spec.bk
    turn = sorted(n for n in SPECS if isinstance(SPECS[n], type(spec))).index(name)
    shapes = [
        (bm + 1, bn + 2, bk + 2),
        (bm - 1, bn - 2, (spec.stages + 1) * bk + bk // 2 + 6),
        (bm, bn, 2 * bk),
        (1, 2, 2),
        (17, bn + 10, 0),
        (3, 12, bk),
    ]
    lies = {
        "vector": [(16, 16)],
        "words": [(4, 4), (16, 4), (4, 8), (8, 16)],
        "bytes": [(1, 1), (16, 1), (2, 8), (4, 16)],
    }[spec.copy]
    found = [
        Case(
            *shape,
            epilogue=EPILOGUES[(turn + i) % len(EPILOGUES)],
            bias=BIASES[(turn + i) // 2 % 2],
            with_c=("", "beside", "over")[(turn + i) % 3],
            align=lies[i % len(lies)] if shape[2] else (16, 16),
            extra=(0, 4, 1, 3)[i % 4],
            offset=(0, 0, 3, 1)[i % 4],
        )
        for i, shape in enumerate(shapes)
    ]
    plain = replace(found[0], epilogue="identity", with_c="", out="int32")
    ends = (replace(plain, kind=kind) for kind in ("low", "high"))
    whole = Case(bm + 1, bn + 40, bk // 2 + 6, align=lies[0])  # words of 8 results
    wide = replace(found[1], out="float32", with_c="beside", epilogue=EPILOGUES[turn % 4 + 1])
    return [*found, *ends, wide, whole]


def products(name: str) -> list[Any]:
    """Returns the checks that run in every test run: the first two edges and another in turn; one
    for kernels that differ in dtype alone.
    """
    found = cases(name)
    turn = sorted(n for n in SPECS if SPECS[n].family == "int4").index(name)
    few = [0, 1, 2 + turn % (len(found) - 2)]
    few = few if SPECS[name].dtype == "s4" else few[turn % 2 :: 2]
    return [functools.partial(check, name, found[i]) for i in few]


def representatives(*fields: str) -> list[str]:
    """Returns one kernel for each combination of ``fields``."""
    found: dict[Any, str] = {}
    for name in sorted(n for n in SPECS if SPECS[n].family == "int4"):
        found.setdefault(tuple(getattr(SPECS[name], field) for field in fields), name)
    return list(found.values())
