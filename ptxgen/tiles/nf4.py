"""The tables of products with NF4 weights, by operand layout ("NT": forward, "NN": input gradient),
plan, width of operands and tier.

Two kinds of routes:

- *fused* (:data:`FUSED`): kernels that read the weight as it is stored;
- *dequantised*: a step brings the weight into scratch memory, in the operands' dtype, and on it
  goes as in the dense table, whose B it then is: at a multiple of 16 bytes, in rows of whole
  blocks. Of the dense routes they take the last, which serves everything, and those of the tiles
  :data:`TILES` and :data:`COPIED`, which are within some percent of the others where rows are
  many. Where they are few, dequantising takes longer than the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, reduce
from operator import or_

from ptxgen.expr import Expr, ceil_div, const
from ptxgen.numerics.contract import DEFAULT_PLAN, K, N
from ptxgen.numerics.nf4 import BLOCK, WHOLE
from ptxgen.spec import ARCHITECTURES, GemmSpec, Key, Route, RouteTable, Step
from ptxgen.spec.gemm import space
from ptxgen.spec.nf4 import DequantiseSpec
from ptxgen.tiles import gemm, nf4_mma, nf4_ptx

WEIGHT = "b_dequantised"
"""The scratch memory that has the weight."""
TILES = {
    "tc": ((128, 256), (128, 224), (128, 192), (128, 160), (128, 128), (128, 64), (64, 64)),
    "simt": ((128, 128), (64, 256), (64, 64), (32, 64)),
}
"""Of the dense routes of a tier, those that go on with a dequantised weight: BM and BN."""
SPLIT = "wgmma", "simt"
"""The families of those that write partial sums. Where neither runs, CTAs take chunks in turns."""
COPIED = (128, 256), (128, 128), (64, 64)
"""Of those that copy A, which only input gradients want: their rows of A are as long as outputs are
many.
"""
FUSED: dict[str, Callable[[str], tuple[Route, ...]]] = {
    "tc": nf4_mma.routes,
    "simt": nf4_ptx.routes,
    "f64": nf4_ptx.wide_routes,
}
"""The routes of a tier that read the weight as it is, by operand layout."""


def weight(layout: str, dtype: str) -> tuple[Step, dict[str, Expr]]:
    """The step that dequantises B of a product, and what is so of that B."""
    rows, cols = (N, K) if layout[1] == "T" else (K, N)
    blocks = ceil_div(cols, BLOCK)
    step = Step(DequantiseSpec(dtype), {"y": WEIGHT}, {"BLOCKS": rows * blocks})
    return step, {"ALIGN_B": const(16), "LDB": blocks * BLOCK}


def dequantised(dense: Route) -> Route:
    """The twin of a dense route that reads a dequantised B."""
    main = dense.main
    assert isinstance(main, GemmSpec), "of products"
    first, so = weight(main.layout, main.dtype)

    def reading(step: Step) -> Step:
        if step.kernel.prepares:
            return step
        return Step(step.kernel, {**step.bind, "b": WEIGHT}, {**step.given, **so})

    steps = (first, *map(reading, dense.steps))
    return Route(steps, reason=f"the weight dequantised; {dense.reason}")


def _taken(dense: RouteTable, tier: str) -> Iterator[Route]:
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
        products, dtypes = dense.space, dense.dtypes
        routes = (*fused, *map(dequantised, _taken(dense, tier)))
    else:
        products, dtypes, routes = space(WHOLE), gemm.WIDTHS[width], fused
    first, _ = weight(layout, dtypes[0])
    problems = replace(
        products,
        name=f"{products.name}, with NF4 weights",
        variables=tuple(pair for pair in products.variables if pair[0] != "ALIGN_B"),
        within=_within(first, fused),
    )
    return RouteTable(problems, routes, dtypes)


def _within(dequantise: Step, fused: tuple[Route, ...]) -> Expr:
    """Which problems are served on every architecture: those whose weight fits into scratch memory
    when it is dequantised, and those that a kernel takes that reads it as it is stored.
    """
    everywhere = [r for r in fused if all(k.runs_on(a) for k in r.kernels for a in ARCHITECTURES)]
    return reduce(or_, (route.requires for route in everywhere), dequantise.requires)


def _keys() -> Iterator[Key]:
    for layout in ("NT", "NN"):
        yield layout, DEFAULT_PLAN, "half", "tc"
        yield layout, DEFAULT_PLAN, "f32", "simt"
        yield layout, DEFAULT_PLAN, "f32", "f64"


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("nf4", *key): partial(_table, key) for key in _keys()
}
"""What makes each table."""
