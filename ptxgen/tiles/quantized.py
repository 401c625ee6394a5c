"""Route tables of products with quantized weights, by operand layout ("NT": forward, "NN": input
gradient), plan, width of operands and tier.

Two kinds of routes:

- *fused* (:data:`FUSED`): kernels that read the weight as it is stored, for prepared formats
  (:func:`ptxgen.numerics.formats.is_prepared`), some only for those that are looked up
  (:func:`ptxgen.spec.quantized.looked_up`);
- *dequantized*, for all formats: a step decodes the weight into scratch memory in the operands'
  dtype, and a dense route reads it as its B, which is aligned to 16 bytes. The tables use the last
  dense route, which supports every problem, and those with the tiles :data:`TILES` and
  :data:`COPIED`. With many rows these are within a few percent of the others; with few rows
  dequantizing takes longer than the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, reduce
from operator import or_

from ptxgen.expr import Expr, ceil_div, const
from ptxgen.numerics.contract import DEFAULT_PLAN, K, N
from ptxgen.numerics.formats.fp8 import FP8_E4M3, FP8_E5M2, MXFP4
from ptxgen.numerics.formats.int4 import INT4_BLOCK_ASYM
from ptxgen.numerics.formats.int8 import INT8_BLOCK
from ptxgen.numerics.formats.zero_point import INT4_ZERO_POINT
from ptxgen.numerics.quantized import WHOLE
from ptxgen.numerics.weight_format import (
    E4M3,
    Quantized,
    WeightFormat,
    excess,
)
from ptxgen.spec import ARCHITECTURES, GemmSpec, KernelSpec, Key, Route, RouteTable, Step
from ptxgen.spec.gemm import space
from ptxgen.spec.quantized import LOOKED_UP, PIECE, SPACE, DequantizeSpec
from ptxgen.spec.quantized_held import QuantizedHeldSpec
from ptxgen.spec.quantized_mma import QuantizedTensorSpec
from ptxgen.spec.quantized_packed import LAYOUTS, QuantizedGemmSpec
from ptxgen.spec.quantized_skinny import QuantizedSkinnySpec
from ptxgen.spec.quantized_wgmma import QuantizedWgmmaSpec
from ptxgen.tiles import gemm, quantized_mma, quantized_ptx

WEIGHT = "b_dequantized"
"""Name of the scratch array with the dequantized weight."""
TILES = {
    "tc": ((128, 256), (128, 224), (128, 192), (128, 160), (128, 128), (128, 64), (64, 64)),
    "simt": ((128, 128), (64, 256), (64, 64), (32, 64)),
}
"""Tiles (BM, BN) of the dense routes that follow a dequantization, by tier."""
SPLIT = "wgmma", "simt"
"""Families of split-K routes that may follow a dequantization. Where neither runs, CTAs compute
chunks one after another."""
COPIED = (128, 256), (128, 128), (64, 64)
"""Tiles (BM, BN) of the routes that dequantize the weight and copy A into aligned rows. Only input
gradients need such copies, since rows of their A have N elements."""
FUSED: dict[str, Callable[[str], tuple[Route, ...]]] = {
    "tc": quantized_mma.routes,
    "simt": quantized_ptx.routes,
    "f64": quantized_ptx.wide_routes,
}
"""Constructors of the fused routes of a tier, which read the weight as it is stored, by operand
layout."""


def weight(layout: str, dtype: str) -> tuple[Step, dict[str, Expr]]:
    """Returns the step that dequantizes the weight into the scratch array :data:`WEIGHT`, and the
    values of the variables (alignment, row pitch) of a product that reads it as B.
    """
    rows, cols = (N, K) if layout[1] == "T" else (K, N)
    blocks = ceil_div(cols, PIECE)
    given = {"BLOCKS": rows * blocks, "COUNT": rows * cols, "COLUMNS": cols}
    return Step(DequantizeSpec(dtype), {"y": WEIGHT}, given), {"ALIGN_B": const(16), "LDB": cols}


def dequantized(dense: Route) -> Route:
    """Returns the route ``dense`` with a dequantization before it, whose result it reads as B."""
    main = dense.main
    assert isinstance(main, GemmSpec), "of products"
    first, scalars = weight(main.layout, main.dtype)

    def reading(step: Step) -> Step:
        if step.kernel.prepares:
            return step
        return Step(step.kernel, {**step.bind, "b": WEIGHT}, {**step.given, **scalars})

    steps = (first, *map(reading, dense.steps))
    return Route(steps, reason=f"the weight is dequantized first; {dense.reason}")


def _dense_routes(dense: RouteTable, tier: str) -> Iterator[Route]:
    *others, filler = dense.routes
    for route in others:
        main = route.main
        assert isinstance(main, GemmSpec), "of products"
        if main is not route.kernels[0]:
            copied = [route.steps[0].bind.get(f"x{i}") for i in (0, 1)]
            if copied == ["a", None] and (main.bm, main.bn) in COPIED:
                yield route
        elif (main.bm, main.bn) in TILES[tier] and (len(route.steps) == 1 or main.family in SPLIT):
            yield route
    yield filler


def _table(key: Key) -> RouteTable:
    layout, _, width, tier = key
    fused = FUSED[tier](layout) if tier in FUSED else ()
    if key in gemm.TABLES:
        dense = gemm.TABLES[key]()
        products, widths = dense.space, dense.dtypes
        routes = (*fused, *map(dequantized, _dense_routes(dense, tier)))
    else:
        products, widths, routes = space(WHOLE), gemm.WIDTHS[width], fused
    first, _ = weight(layout, str(widths[0]))
    listed = tuple(Quantized(str(dtype), row) for row in LOOKED_UP for dtype in widths)
    problems = replace(
        products,
        name=f"{products.name}, with quantized weights",
        variables=tuple(pair for pair in products.variables if pair[0] != "ALIGN_B"),
        within=_within(first, fused),
    )
    return RouteTable(problems, routes, listed, opened=Quantized, pinned=partial(_pinned, key))


_PINNED = (
    WeightFormat("pinned2", 2, 8, (0.0, 1.0, -1.0, 0.5), "scale * code", "bf16"),
    WeightFormat(
        *("pinned5", 5, 8, excess(5), "outer_scale * scale * code - outer_offset * offset"),
        *("u8", "i8", "f16", 16),
    ),
    WeightFormat("pinned8", 8, 8, E4M3, "scale * code", "e8m0", grouped=True),
)
"""Weight formats whose kernels are pinned, so that goldens cover the lines of the template that no
listed format has."""


def _pinned(key: Key) -> Iterator[KernelSpec]:
    """Yields kernels of formats that no table lists, for the goldens, if ``key`` is the first of
    this module's tables, so that each is yielded once: dequantization of ``_PINNED``; and products
    with each decoder (:data:`ptxgen.spec.quantized_packed.DECODERS`), of weights with and without
    offsets, by kernels with and without teams of producers.
    """
    if key != next(_keys()):
        return
    yield from (DequantizeSpec("bf16", format=row) for row in _PINNED)
    for row in INT4_ZERO_POINT, MXFP4, INT4_BLOCK_ASYM:
        yield _first(QuantizedSkinnySpec, row)
    for row in INT4_ZERO_POINT, MXFP4, FP8_E4M3:
        yield _first(QuantizedHeldSpec, row)
    for row in INT8_BLOCK, MXFP4, FP8_E5M2:
        yield _first(QuantizedTensorSpec, row)
    yield _first(QuantizedWgmmaSpec, INT4_ZERO_POINT, teams=True)


def _first(kind: type[QuantizedGemmSpec], row: WeightFormat, teams: bool = False) -> KernelSpec:
    """Returns the first listed kernel of a class, with teams of producers or without, for another
    format.
    """
    dtype = Quantized("bf16", row)
    listed = (route.main for layout in LAYOUTS for route in quantized_mma.routes(layout))
    return next(
        spec.of(dtype)
        for spec in listed
        if isinstance(spec, kind) and bool(spec.teams) == teams and spec.takes(dtype)
    )


def _within(dequantise: Step, fused: tuple[Route, ...]) -> Expr:
    """Returns the predicate of the problems that every architecture supports: the weight that the
    step ``dequantise`` writes fits scratch memory, or one of the routes ``fused`` whose kernels run
    everywhere supports the problem. Formats outside :data:`~ptxgen.spec.quantized.LOOKED_UP` have
    no fused kernel; the caller checks that their weights fit.
    """
    everywhere = [r for r in fused if all(k.runs_on(a) for k in r.kernels for a in ARCHITECTURES)]
    return reduce(or_, (route.requires for route in everywhere), dequantise.requires)


def _keys() -> Iterator[Key]:
    for layout in ("NT", "NN"):
        yield layout, DEFAULT_PLAN, "half", "tc"
        yield layout, DEFAULT_PLAN, "f32", "simt"
        yield layout, DEFAULT_PLAN, "f32", "f64"


def _dequantizing(width: str) -> RouteTable:
    """Returns the table of dequantizing a weight to dtypes of ``width``, as a result."""
    dtypes = tuple(map(str, gemm.WIDTHS[width]))
    step = Step(DequantizeSpec(dtypes[0]), results=("y",))
    listed = tuple(Quantized(dtype, row) for row in LOOKED_UP for dtype in dtypes)
    route = Route((step,), reason="the only kernel: a thread decodes groups of eight numbers")
    return RouteTable(SPACE, (route,), listed, opened=Quantized)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    **{("quantized", *key): partial(_table, key) for key in _keys()},
    **{("dequantize", width): partial(_dequantizing, width) for width in ("half", "f32")},
}
"""Constructors of the route tables, by key."""
