"""``ptxgen golden bits``: digests of the oracles' results on fixed inputs.

``golden/bits.json`` has, by contract and operation, a digest of the results for each dtype. Inputs
are made by integer arithmetic, so they are the same on every machine. Sizes are on both sides of
the thresholds that split a sum. A digest that differs means a changed bit, which needs a new
version of a contract.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - so that NumPy knows bfloat16
import numpy as np
from numpy.typing import NDArray

from ptxgen import functions, quantized, reference
from ptxgen.errors import DtypeError, FormulaError, GradError
from ptxgen.numerics import (
    attention,
    delta,
    int4,
    logsumexp,
    recurrence,
    reduction_order,
    row_reductions,
    scan,
)
from ptxgen.numerics.column_reductions import REDUCTIONS
from ptxgen.numerics.contract import (
    ACTIVATIONS,
    AUTO_TIER,
    CONTRACTS,
    OPERATIONS,
    PLANS,
    TENSOR_CORES,
    Contract,
)
from ptxgen.numerics.dtype import COMPLEX, FULL, ITEMSIZE, NAMES, PARTS
from ptxgen.numerics.fft import FFT
from ptxgen.numerics.flce import REDUCTIONS as LOSSES
from ptxgen.numerics.formats import FORMATS
from ptxgen.numerics.gather_scatter import SCATTER
from ptxgen.numerics.quantized import WIDE
from ptxgen.numerics.select import SAMPLE_CONTRACT, TOPK_CONTRACT
from ptxgen.numerics.sort import SORT_CONTRACT
from ptxgen.numerics.splats import SPLAT
from ptxgen.numerics.triangular import SOLVE
from ptxgen.numerics.vocab_segments import FLCE, SEGMENT
from ptxgen.numerics.weight_format import ARRAYS, WeightFormat
from ptxgen.ops import OPERATIONS as LIBRARY
from ptxgen.oracle import recurrence as oracle
from ptxgen.oracle.column_reductions import reduce_columns
from ptxgen.oracle.delta import ascend, descend
from ptxgen.oracle.fft import fft_pairs
from ptxgen.oracle.gather_scatter import embedding_bag
from ptxgen.oracle.row_reductions import compute
from ptxgen.oracle.select import route_tokens
from ptxgen.oracle.splats import splat_raster, splat_raster_grad
from ptxgen.oracle.vocab_segments import linear_segments, logit_gradient, logit_segments
from ptxgen.spec.quantized import LOOKED_UP

Array = NDArray[Any]
Digests = dict[str, dict[str, dict[str, str]]]
"""Digests of results, nested by contract, operation and dtype."""
Found = Iterator[tuple[Contract, str, str, Any]]
"""Iterator of the results of oracles: (contract, operation, dtype, results). Results are an array,
or a sequence of arrays and Nones."""

FLOATS = ("f32", "f64", "bf16", "f16")
NUMBERS = (*FLOATS, "i32", "i64")
SPECIAL = (np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-40, -3e-39, 6e-8, 65504.0, 1.0)


# -- inputs -------------------------------------------------------------------------------
def words(seed: int, count: int) -> NDArray[np.uint64]:
    """Returns ``count`` pseudorandom 64-bit words, by SplitMix64."""
    z = (np.arange(count, dtype=np.uint64) + np.uint64(seed << 32 | 1)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def numbers(
    seed: int, shape: Sequence[int], dtype: str, special: bool = False, spread: int = 4
) -> Array:
    """Returns an array of pseudorandom elements of a dtype, given by its short name.

    Floats are 24-bit integers times one of ``2**spread`` powers of two around 1, rounded once;
    so are the parts of complex numbers; integers have all magnitudes. ``special``: whether one in
    16 is drawn from :data:`SPECIAL`.
    """
    bits = words(seed, prod(shape))
    if dtype == "bool":
        return (bits >> np.uint64(63)).astype(np.bool_).reshape(shape)
    if FULL[dtype] in PARTS:
        drawn = (numbers(seed + more, shape, "f64", special, spread) for more in (0, 50))
        with np.errstate(all="ignore"):
            return np.stack(list(drawn), -1).astype(PARTS[FULL[dtype]]).view(FULL[dtype])[..., 0]
    if dtype in ("i32", "i64", "u8", "i8"):
        width = 8 * ITEMSIZE[dtype]
        shifts = (bits & np.uint64(width - 1)).astype(np.int64)
        whole: Array = (bits.astype(np.int64) >> (64 - width)) >> shifts
        return whole.astype(FULL[dtype]).reshape(shape)
    mantissa = (bits >> np.uint64(40)).astype(np.int64) - (1 << 23)
    powers = np.uint64((1 << spread) - 1)
    exponent = (bits & powers).astype(np.int64) - (1 << spread - 1) - 23
    found = np.ldexp(mantissa.astype(np.float64), exponent)
    if special:
        which = (bits >> np.uint64(4)) % np.uint64(len(SPECIAL))
        odd = (bits >> np.uint64(20) & np.uint64(15)) == 0
        found = np.where(odd, np.array(SPECIAL)[which.astype(np.int64)], found)
    with np.errstate(all="ignore"):
        return found.astype(np.dtype(FULL[dtype])).reshape(shape)


def indices(seed: int, shape: Sequence[int], low: int, high: int) -> NDArray[np.int64]:
    """Returns pseudorandom integers in [low, high)."""
    return ((words(seed, prod(shape)) % np.uint64(high - low)).astype(np.int64) + low).reshape(
        shape
    )


def digest(results: Any) -> str:
    """Returns a hex digest of the bits, dtypes and shapes of arrays. All NaNs count as equal."""
    hashed = hashlib.sha256()
    for array in results if isinstance(results, tuple | list) else (results,):
        if array is None:
            hashed.update(b"none")
            continue
        bits = np.ascontiguousarray(array)
        hashed.update(f"{bits.dtype.name}{bits.shape}".encode())
        if bits.dtype.kind == "c":
            bits = np.stack([bits.real, bits.imag], -1)
        if bits.dtype.kind not in "biu":
            nothing = np.isnan(bits)
            bits = np.where(nothing, 0, bits.view(f"u{bits.itemsize}"))
            hashed.update(nothing.tobytes())
        hashed.update(bits.tobytes())
    return hashed.hexdigest()[:16]


# -- what is computed ---------------------------------------------------------------------
SPLITS = {
    "fma": ((2, 3, 2048), (3, 2, 2049), (1, 513, 3073), (2, 1, 8193)),
    "fma64": ((2, 3, 2047), (3, 2, 2048), (2, 1, 4097)),
    "tc16": ((2, 3, 4096), (3, 2, 4097), (1, 513, 6145), (2, 1, 16500)),
}
"""Sizes (M, N, K) of test products by contract; K lies on both sides of the lengths from which
plans split it."""
NEAR = sorted({max((n << i) + d, 1) for n in (1, 3) for i in range(17) for d in (-1, 0, 1)})
"""Lengths K on both sides of powers of two and of three times these, where plans split K into one
more chunk."""


def products() -> Found:
    """Yields results of matrix products: every tier and dtype, and the tensor cores of every
    architecture.
    """
    for tier, dtype in ((tier, dtype) for tier, of in CONTRACTS.items() for dtype in of):
        yield from products_of(tier, dtype)
    x, w = (numbers(i, s, "bf16", spread=6) for i, s in ((1, (9, 96)), (2, (96, 8))))
    odd = numbers(3, (9, 96), "bf16", special=True)
    for arch in TENSOR_CORES:
        of = ((x, w), (x[:, :8], w[:8]), (odd, w))
        made = [reference.linear(*pair, arch=arch, out_dtype="float32", layout="kn") for pair in of]
        yield CONTRACTS["tc"]["bf16"], "dot16", arch, made


def products_of(tier: str, dtype: str) -> Found:
    """Yields results of matrix products of a tier and dtype: K split or not, all layouts, all
    epilogues; and the length of chunks that each plan chooses for the values K in :data:`NEAR`.
    """
    contract = CONTRACTS[tier][dtype]
    how: dict[str, Any] = {"tier": tier}
    plain: dict[str, Any] = {**how, "layout": "kn"}

    def factors(m: int, n: int, k: int) -> tuple[Array, Array]:
        return numbers(1, (m, k), dtype), numbers(2, (k, n), dtype)

    wide = {**plain, "out_dtype": "float64" if dtype == "f64" else "float32"}
    made = [reference.linear(*factors(*size), **wide) for size in SPLITS[contract.name]]
    odd = numbers(5, (20, 37), dtype, special=True)
    made.append(reference.linear(odd, numbers(6, (37, 5), dtype), **plain))
    yield contract, "sums of rows", dtype, made
    batches = [factors(*size) for size in SPLITS[contract.name]]
    made = [reference.linear_wgrad(x.T, dy, **plain) for x, dy in batches]
    made += [reference.linear_wgrad(x.T, dy, chain=True, **plain) for x, dy in batches]
    x, dy = batches[1]
    old = numbers(3, (3, 2), dtype)
    made += [
        reference.linear_wgrad(x.T, dy, out_old=old, chain=c, out_dtype=FULL[dtype], **plain)
        for c in (False, True)
    ]
    yield contract, "sums of batches", dtype, made
    a, b = factors(4, 5, 37)
    for name, operation in OPERATIONS.items():
        made = []
        for layout, what in operation.products.items():
            pair = [x.T if t == "T" else x for x, t in zip((a, b), what.layout, strict=True)]
            given = [pair[i] for i in what.operands]
            more: dict[str, Any] = {"layout": layout}
            if layout == what.layout.lower():
                more = {f"transpose_{x}": t == "t" for x, t in zip("ab", layout, strict=True)}
            made.append(getattr(reference, name)(*given, **more, **how))
        yield contract, name, dtype, made
    made = []
    for activation, full in product(ACTIVATIONS if contract.activations else ("none",), (0, 1)):
        bias = numbers(4, (5,), "f32" if full and dtype != "f64" else dtype)
        out = None if full or dtype == "f64" else "float32"
        named = None if activation == "none" else activation
        made.append(reference.linear(a, b, bias, activation=named, out_dtype=out, **plain))
    yield contract, "epilogues", dtype, made
    made = [
        np.array([plan.chunk_length(k) for k in NEAR]) for plan in PLANS[contract.name].values()
    ]
    yield contract, "plans", dtype, made


def quantised() -> Found:
    """Yields results of 4-bit integer products with every epilogue, and of each format of quantized
    weights.
    """
    for dtype, layout in product(int4.ELEMENTS, int4.LAYOUTS):
        low, high = int4.ELEMENTS[dtype].low, int4.ELEMENTS[dtype].high
        a, b = (int4.pack(indices(i, (6, 70), low, high + 1)) for i in (1, 2))
        if layout == "rrr":
            b = int4.pack(indices(2, (70, 6), low, high + 1))
        c = int4.pack(indices(3, (6, 6), low, high + 1))
        made = [reference.int4_gemm(a, b, dtype=dtype, layout=layout, out_dtype="int32")]
        for epilogue, kind, out in product(int4.EPILOGUES[1:], int4.BIASES, ("float32", None)):
            bias = numbers(4, (6,), "f32").astype(kind)
            activation = None if epilogue == "bias" else epilogue
            more: dict[str, Any] = {"dtype": dtype, "layout": layout, "activation": activation}
            more |= {"alpha": 0.017, "beta": -1.5, "out_dtype": out}
            made.append(reference.int4_gemm(a, b, c, bias, **more))
        yield int4.INT4, f"gemm {layout}", dtype, made
    for row in FORMATS.values():
        yield from _of_format(row)


def _of_format(row: WeightFormat) -> Found:
    """Yields results of one format of quantized weights, ``row`` of the table of formats: codes and
    scales, dequantized weights, and products with them.
    """
    shape = (6, 2 * row.unit)
    if row.quantize:
        q = quantized.quantize(numbers(1, shape, "f32", row.encoding not in ("e4m3", "e5m2")), row)
        found = (q.data, q.scales) if q.offsets is None else (q.data, q.scales, q.offsets)
        yield row.contract, "quantize", "f32", found
        q = quantized.quantize(numbers(1, shape, "f32"), row)
    else:
        sizes = row.sizes(shape[1])
        arrays: dict[str, Any] = {}
        for i, (name, dtype) in enumerate(row.dtypes.items(), 4):
            if name == "groups":
                arrays[name] = indices(i, (shape[1],), 0, shape[1] // row.block).astype(dtype)
            elif dtype in ("uint8", "int8"):
                most = 256 if name == "data" else 100
                arrays[name] = indices(i, (shape[0], sizes[name]), 0, most).astype(dtype)
            else:
                arrays[name] = numbers(i, (shape[0], sizes[name]), "f32").astype(dtype)
        q = quantized.QuantizedWeight(row, *(arrays.get(name) for name in ARRAYS), shape=shape)
    for dtype in ("f32", "bf16", "f16"):
        yield row.contract, "dequantize", dtype, reference.dequantize(q, FULL[dtype])
        x, dy = numbers(2, (3, q.k), dtype), numbers(3, (3, q.n), dtype)
        bias = numbers(4, (q.n,), dtype)
        made = [
            reference.quantized_linear(x, q, bias, activation="silu"),
            reference.quantized_linear_dgrad(dy, q),
        ]
        yield row.contract, "products", dtype, made
    if row not in LOOKED_UP:
        return
    x, dy, bias = (numbers(i, s, "f32") for i, s in ((2, (3, q.k)), (3, (3, q.n)), (4, (q.n,))))
    wide = {"accumulate": "f64"}
    made = [
        reference.quantized_linear(x, q, bias, activation=a, **wide)
        for a in (None, *ACTIVATIONS[1:])
    ]
    made.append(reference.quantized_linear_dgrad(dy, q, **wide))
    yield WIDE, "products", "f32", made


LEAVES = (2, reduction_order.LEAF + 19)
"""Shape of test rows that are longer than a leaf of the summation tree, and whose length is no
multiple of a warp's 32 lanes."""
BRANCHES = (1, (reduction_order.BRANCH + 1) * reduction_order.LEAF + 5)
"""Shape of a row that is longer than a branch of the summation tree."""


LENGTHS = "lengths"
"""Name of the argument of row reductions with the valid length of each row."""


def row_operations() -> Found:
    """Yields results of every row reduction, with and without optional arguments, and also on long
    rows if it takes one array.
    """
    for name, op in row_reductions.TABLE.items():
        for dtype in op.dtypes:
            made = []
            scalars = {
                n: (0.25 if o.default in (None, o.neutral) else o.default)
                for n, o in op.numbers.items()
                if o.dtype != "i64"
            }
            plain = [a for a in op.arrays if a != LENGTHS]
            for shape, full in ((LEAVES, True), (LEAVES, False), (BRANCHES, False)):
                if shape == BRANCHES and (len(plain) > 1 or dtype in ("bf16", "f16")):
                    continue
                given = [
                    _argument(i, op, argument, dtype, shape)
                    if full or argument not in op.optional
                    else None
                    for i, argument in enumerate(plain)
                ]
                made += _all(compute(name, *given, **(scalars if full else {})))
            yield reduction_order.ROWS, name, dtype, made
            if LENGTHS in op.arrays:
                given = [_argument(i, op, a, dtype, LEAVES) for i, a in enumerate(op.arrays)]
                yield reduction_order.ROWS, f"{name} of lengths", dtype, _all(compute(name, *given))


def _argument(
    i: int, op: row_reductions.RowOp, name: str, dtype: str, shape: tuple[int, int]
) -> Array:
    size = {"element": shape, "row": shape[:1], "column": shape[1:]}[op.arrays[name]]
    if name in op.integers:
        return indices(i, size, -1, shape[1] + 1)
    if op.arrays[name] == "row":
        dtype = op.computed(dtype)
    found = numbers(i, size, dtype)
    if i == 0 and op.arrays[name] == "element" and shape[0] > 1:  # in one row, which may become NaN
        found[0] = numbers(i, size[1:], dtype, special=True)
    return found


def _all(results: Any) -> list[Array]:
    return list(results) if isinstance(results, tuple) else [results]


def columns_and_moves() -> Found:
    """Yields results of column reductions, prefix sums, scatter-adds, top-k, sampling and
    logsumexp.
    """
    for how, reduction in REDUCTIONS.items():
        for dtype in (NAMES[d] for d in reduction.takes):
            wide = {"bf16": "f32", "f16": "f32"}.get(dtype, dtype)
            made = []
            for shape in ((2, LEAVES[1], 3), (1, BRANCHES[1], 1)):
                dims = shape if how.endswith("columns") else shape[1:]
                sizes = {"element": dims, "column": dims[:1]}
                given = [
                    numbers(i, sizes[kind], dtype if kind == "element" else wide)
                    for i, kind in enumerate(reduction.kinds.values())
                ]
                made += _all(reduce_columns(how, *given))
            yield reduction_order.ROWS, how, dtype, made
    for dtype in NUMBERS:
        x = numbers(1, (2, 4 * scan.CHUNK + 6), dtype)
        ways = tuple(product((False, True), repeat=2))
        made = [reference.cumsum(x, exclusive=e, reverse=r) for e, r in ways]
        yield scan.SCAN, "cumsum", dtype, made
        if dtype in FLOATS:
            made = [reference.logcumsumexp(x, exclusive=e, reverse=r) for e, r in ways]
            yield scan.LOGSCAN, "logcumsumexp", dtype, made
        dy, which = numbers(1, (1300, 2), dtype), indices(2, (1300,), -1, 4)
        which[::2] = 1
        old = numbers(3, (3, 2), dtype)
        some = indices(4, (6, 2), 0, 3)
        made = [
            reference.embedding_backward(dy, which, 3),
            reference.index_add(old, which, dy),
            reference.scatter_add(old, some, dy[:6]),
        ]
        yield SCATTER, "sums", dtype, made
    for dtype in ("f32", "bf16", "f16"):
        x, which = numbers(1, (20, 3), dtype, special=True), indices(2, (40, 32), -1, 20)
        weights = numbers(3, (40, 32), "f32")
        made = [embedding_bag(x, which[:, :j], weights[:, :j]) for j in (8, 9, 32)]
        yield reduction_order.ROWS, "embedding_bag", dtype, made
    for dtype in ("f32", "bf16", "f16", "i32"):
        x = numbers(1, (3, 300), dtype, special=True)
        x[:, ::3] = x[:, :1]
        made = [y for largest in (True, False) for y in reference.topk(x, 20, largest=largest)]
        yield TOPK_CONTRACT, "topk", dtype, made
    for dtype in (*NUMBERS, "bool"):
        x = numbers(1, (3, 300), dtype, special=dtype in FLOATS)
        x[:, ::3] = x[:, :1]
        made = [y for down in (True, False) for y in reference.sort(x, descending=down)]
        made += [reference.searchsorted(made[2], x, right=right) for right in (True, False)]
        yield SORT_CONTRACT, "sort", dtype, [*made, *reference.unique(x, 200)]
    for dtype in ("f32", "bf16", "f16"):
        x = numbers(1, (9, 300), dtype)
        made = [
            y for n in (True, False) for y in route_tokens(x, 20, normalize=n, scale=1.7, narrow=n)
        ]
        yield reduction_order.ROWS, "route_tokens", dtype, made
        options: tuple[dict[str, Any], ...]
        warm = np.linspace(0, 2, 9, dtype=np.float32)
        rows: dict[str, Any] = {"temperature": warm, "min_p": 0.05}
        options = (
            *({}, {"temperature": 0.8}, {"temperature": 30.0, "top_k": 40, "top_p": 0.7}),
            *(rows, {**rows, "top_k": np.arange(-1, 8), "top_p": 0.9}),
        )
        made = [reference.sample(x, seed=5, offset=3, **o) for o in options]
        yield SAMPLE_CONTRACT, "sample", dtype, made
        long = numbers(1, (3, 2 * logsumexp.SEGMENT + 3), dtype)
        made = [
            reference.logsumexp(x) for x in (long, long[:, :700], numbers(2, (9, 99), dtype, True))
        ]
        yield logsumexp.LSE, "logsumexp", dtype, made


def solved() -> Found:
    """Yields solutions of triangular systems: upper and lower, with unit and general diagonal."""
    for dtype in ("f32", "f64"):
        a, b = numbers(1, (2, 9, 9), dtype), numbers(2, (2, 9, 3), dtype)
        ways = product((False, True), repeat=2)
        made = [reference.solve_triangular(a, b, upper=u, unitriangular=d) for u, d in ways]
        yield SOLVE, "solve_triangular", dtype, made


def transformed() -> Found:
    """Yields transforms: of all radices, by parts, by chirps in one kernel and in several, and of
    real numbers and half spectra.
    """
    for dtype in ("f32", "f64"):
        lengths = (1, 48, 240, 1001, 62, 67, 9000, 20000, 8209)
        made = [reference.fft_block(numbers(n, (2, 2 * n), dtype), norm="ortho") for n in lengths]
        yield FFT, "fft_block", dtype, made
        x = numbers(1, (3, 20), dtype)
        half = fft_pairs(x, source="real", count=11)
        yield FFT, "fft_pairs", dtype, [half, fft_pairs(half, source="half", sink="real")]


def splatted() -> Found:
    """Yields splats before a camera, their picture and the gradient of its points."""
    count, size = 40, dict[str, Any](width=40, height=30)
    positions = numbers(1, (count, 3), "f32")
    positions[:, 2] = abs(positions[:, 2]) + np.float32(2)
    scales, rotations = abs(numbers(2, (count, 3), "f32")) / 4, numbers(3, (count, 4), "f32")
    opacities = np.minimum(abs(numbers(4, (count,), "f32")), np.float32(1))
    view, lens = np.eye(4, dtype=np.float32), np.diag(np.array([30, 30, 1], np.float32))
    lens[0, 2], lens[1, 2] = 20, 15
    for harmonics in ((), (16,)):
        colours = numbers(5, (count, *harmonics, 3), "f32")
        given = positions, scales, rotations, opacities, colours, view, lens
        points, depths, boxes = reference.splat_prepare(*given, **size)
        yield SPLAT, f"splat_prepare {len(harmonics)}", "f32", [points, depths, boxes]
    tiles, splats, places, ends, order, _ = reference.splat_sort(depths, boxes, **size)
    ground = numbers(6, (3,), "f32")
    drawn = splat_raster(points, tiles, splats, ground, **size)
    yield SPLAT, "splat_rasterize", "f32", [tiles, splats, *drawn]
    lists = points, tiles, splats, places, ends, order
    dpicture, dleft = numbers(7, drawn[0].shape, "f32"), numbers(8, drawn[1].shape, "f32")
    made = splat_raster_grad(*lists, ground, *drawn[1:], dpicture, dleft)
    yield SPLAT, "splat_rasterize gradient", "f32", [made]


def attended() -> Found:
    """Yields results of attention over several blocks of keys and over several splits, with all
    options for masks and logits.
    """
    heads, keys = (4, 2), attention.SPLIT + 150
    for dtype in ("f32", "bf16", "f16"):
        made = []
        for head, tokens, seen in ((64, keys, 3), (160, 70, 5)):
            q = numbers(1, (2, heads[0], seen, head), dtype)
            k, v = (numbers(i, (2, heads[1], tokens, head), dtype) for i in (2, 3))
            mask = numbers(4, (2, 1, seen, tokens), "bool")
            bias, one = numbers(5, (seen, tokens), "f32"), numbers(6, heads[:1], "f32")
            many: tuple[dict[str, Any], ...] = (
                {"causal": True, "return_lse": True},
                {"window": 20, "mask": mask, "sinks": one},
                {"causal": True, "bias": bias, "softcap": 3.0, "slopes": one},
            )
            for how in many:
                made += _all(reference.attention(q, k, v, **how))
        yield attention.ATTENTION[AUTO_TIER[dtype]], "attention", dtype, made


def matrix_recurrences() -> Found:
    """Yields results of matrix recurrences (linear attention) and of the two passes of their
    gradients, with and without the delta rule.

    Sizes are such that sums over rows have several groups, and sums over columns several parts
    (:mod:`ptxgen.numerics.delta`).
    """
    heads, rows, cols = 2, 40, 72
    for dtype in ("f32", "bf16", "f16"):
        q, k = (numbers(i, (1, 4, 1, rows), dtype) for i in (1, 2))
        v, do = (numbers(i, (1, 4, heads, cols), dtype) for i in (3, 4))
        g, beta = (numbers(i, (1, 4, heads), "f32", spread=1) for i in (5, 6))
        w, dd = (numbers(i, v.shape, "f32") for i in (7, 8))
        made: list[Any] = []
        passes: list[Any] = []
        for rule in (True, False):
            first = numbers(9, (1, heads, *((rows, cols) if rule else (cols, rows))), "f32")
            how: dict[str, Any] = {"state": first}
            made += LIBRARY["recurrence"].oracle(q, k, v, -abs(g), beta, **how, delta=rule)
            of = w if rule else v
            passes += descend(do, q, k, of, -abs(g), beta, dstate=first, delta=rule)
            passes += _all(ascend(do, k, of, -abs(g), beta, dd if rule else None, **how))
        yield delta.DELTA, "recurrence", dtype, made
        yield delta.DELTA_GRAD, "walks", dtype, passes


def losses() -> Found:
    """Yields results of losses of logits: sums and gradients by segment, and the fused linear
    cross-entropy with its gradients.
    """
    for dtype in FLOATS:
        wide = "f64" if dtype == "f64" else "f32"
        x, at = numbers(1, (4, 2 * SEGMENT + 44), dtype), indices(2, (4,), -1, 2 * SEGMENT + 45)
        top, scale, dy = (numbers(i, (4,), wide) for i in (3, 4, 5))
        made: list[Any] = []
        for softcap in (None, 30.0):
            made += logit_segments(x, at, softcap=softcap)
            given = x, at, np.abs(top) + 99, scale, dy
            made.append(logit_gradient(*given, label_smoothing=0.1, softcap=softcap))
        yield FLCE, "logits", dtype, made
        x, w = numbers(1, (5, 24), dtype), numbers(2, (300, 24), dtype)
        bias = numbers(3, (300,), dtype)
        x, w = x / x.dtype.type(64), w / w.dtype.type(64)
        at = indices(4, (5,), 0, 300)
        at[1] = -100
        made = list(linear_segments(x, w, at, bias, softcap=20.0))
        for reduction in LOSSES:
            more: dict[str, Any] = {
                "reduction": reduction,
                "label_smoothing": 0.1,
                "z_loss": 0.01,
                "softcap": 20.0,
            }
            made.append(reference.linear_cross_entropy(x, w, at, bias, **more))
            made += reference.linear_cross_entropy_grad(x, w, at, bias, **more)
        yield FLCE, "linear_cross_entropy", dtype, made


def attention_gradients() -> Found:
    """Yields gradients of attention with all options for masks and logits.

    Sizes cover more than 16 rows of queries, two blocks of queries, and head dimensions that
    kernels split in two.
    """
    for dtype in ("f32", "bf16", "f16"):
        made: list[Any] = []
        for head, head_v in ((64, 64), (192, 128)):
            q, k = numbers(1, (2, 4, 13, head), dtype), numbers(2, (2, 2, 70, head), dtype)
            v, do = numbers(3, (2, 2, 70, head_v), dtype), numbers(4, (2, 4, 13, head_v), dtype)
            mask, bias = numbers(5, (2, 1, 13, 70), "bool"), numbers(6, (13, 70), "f32")
            one = numbers(7, (4,), "f32")
            many: tuple[dict[str, Any], ...] = (
                {"causal": True},
                {"window": 20, "mask": mask, "sinks": one},
                {"causal": True, "bias": bias, "softcap": 3.0, "slopes": one},
            )
            for how in many:
                kept: tuple[Any, Any] = reference.attention(q, k, v, **how, return_lse=True)
                wanted: dict[str, Any] = {f"{n}_grad": n in how for n in ("bias", "sinks")}
                made += reference.attention_grad(do, q, k, v, kept[0], kept[1], **how, **wanted)
        q, do = (numbers(i, (5, 70, 16), dtype) for i in (8, 9))
        k, v = (numbers(i, (1, 20, 16), dtype) for i in (10, 11))
        kept = reference.attention(q, k, v, return_lse=True)
        made += reference.attention_grad(do, q, k, v, *kept)
        yield attention.ATTENTION_GRAD[AUTO_TIER[dtype]], "attention_grad", dtype, made


def pointwise() -> Found:
    """Yields results of every pointwise function, of its gradient, and of casts, for all dtypes."""
    from ptxgen.ops.pointwise_table import ROWS

    for row in ROWS:
        function = getattr(functions, row.name)
        count = len(function.arguments)
        for dtype in FULL:
            given = [numbers(i, (999,), dtype, special=True) for i in range(count)]
            if row.name == "where":
                given[0] = numbers(9, (999,), "bool")
            try:
                made = _all(function.reference(*given))
            except (DtypeError, FormulaError):
                continue
            if dtype in (*FLOATS, *COMPLEX.values()) and made[0].dtype == given[-1].dtype:
                needs = tuple(a.dtype == made[0].dtype for a in given)
                try:
                    slope = function.gradient(needs)
                    made += _all(slope.reference(*given, numbers(8, (999,), dtype)))
                except (GradError, FormulaError):
                    pass
            yield reduction_order.POINTWISE, row.name, dtype, made
    for dtype, to in product(FULL, repeat=2):
        if FULL[dtype] in PARTS and FULL[to] not in PARTS:
            continue  # refused
        x = numbers(1, (999,), dtype, special=True)
        made = [LIBRARY[f"cast_{to}"].reference(x, out_dtype=FULL[to])]
        yield reduction_order.POINTWISE, f"cast to {to}", dtype, made


def recurrences() -> Found:
    """Yields results of selective scans and linear recurrences, with all options, and their
    gradients.
    """
    for dtype in ("f32", "bf16", "f16"):
        made: list[Any] = []
        for states in (1, 16, 19):
            rows, shared, own = (2, 18, 9), (2, 18, states), (9, states)
            x, delta, z = (numbers(i, rows, dtype) for i in range(3))
            b, c = (numbers(i, shared, dtype) for i in (3, 4))
            a, skip, bias = numbers(5, own, "f32"), numbers(6, (9,), "f32"), numbers(7, (9,), "f32")
            given = {"x": x, "delta": delta, "A": -abs(a), "B": b, "C": c, "D": skip}
            given |= {"delta_bias": bias, "state": numbers(8, (2, *own), "f32")}
            made += reference.selective_scan(**given, z=z, softplus=True, return_state=True)
            _, kept = oracle.selective_scan_kept(**given, softplus=True, gated=True)
            dlast = given.pop("state")
            dy = numbers(9, rows, "f32")
            args = dy, kept, *given.values(), dlast
            made += oracle.selective_scan_backward(*args, softplus=True)
        yield recurrence.SELECTIVE_SCAN, "selective_scan", dtype, made
        h, last = reference.linear_recurrence(x, z, return_state=True)
        wide = reference.linear_recurrence(x, z, out_dtype="float32")
        made = [h, last, *oracle.linear_recurrence_backward(dy, x, wide, last, last)]
        yield recurrence.LINEAR_RECURRENCE, "linear_recurrence", dtype, made


ALL: tuple[Callable[[], Found], ...] = (
    products,
    quantised,
    row_operations,
    columns_and_moves,
    solved,
    transformed,
    splatted,
    recurrences,
    matrix_recurrences,
    attended,
    losses,
    attention_gradients,
    pointwise,
)


def digests(of: Iterable[Callable[[], Found]] = ALL) -> Digests:
    """Computes digests of the oracles' current results. ``of``: functions that yield results, such
    as :func:`products`.
    """
    found: Digests = {}
    for each in of:
        for contract, operation, dtype, results in each():
            entries = found.setdefault(str(contract), {}).setdefault(operation, {})
            assert dtype not in entries, (contract, operation, dtype)
            entries[dtype] = digest(results)
    return found


def count(found: Digests) -> int:
    """Returns the number of digests in ``found``."""
    return sum(len(dtypes) for of in found.values() for dtypes in of.values())


# -- the file -----------------------------------------------------------------------------
def differences(old: Digests, new: Digests) -> list[str]:
    """Returns a line of text for each digest that differs, or is on one side only."""
    flat = [
        {
            f"{contract} {operation} {dtype}": value
            for contract, operations in side.items()
            for operation, dtypes in operations.items()
            for dtype, value in dtypes.items()
        }
        for side in (old, new)
    ]
    what = {(False, True): "is not committed", (True, False): "is gone", (True, True): "has moved"}
    return [
        f"{name} {what[name in flat[0], name in flat[1]]}"
        for name in sorted(flat[0].keys() | flat[1].keys())
        if flat[0].get(name) != flat[1].get(name)
    ]


def text(found: Digests) -> str:
    """Returns the text of the file of digests: JSON with a line for each operation."""
    blocks = []
    for contract, operations in sorted(found.items()):
        lines = (
            f"  {json.dumps(name)}: {json.dumps(dtypes, sort_keys=True)}"
            for name, dtypes in sorted(operations.items())
        )
        blocks.append(f" {json.dumps(contract)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def load(path: Path) -> Digests:
    """Returns the committed digests in a file; empty if there is no file."""
    found: Mapping[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return dict(found)
