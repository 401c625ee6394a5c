"""Route tables of products of 4-bit integers, one for each layout and dtype.

Predicted times choose the kernel of a problem (:mod:`ptxgen.cost.tuning`). Regimes:

- *few rows*, or few outputs: B is read once; the warps of a CTA share the k's of narrow tiles, and
  the CTAs of a cluster those of a tile, so that all SMs load;
- *many*: large tiles; on Hopper, A is unpacked to bytes first and wgmma multiplies bytes;
- *not aligned to 16 bytes*: copies by 4-byte words where rows are aligned to 4; else the operand is
  realigned first, or copied byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ptxgen.expr import Expr, ceil_div
from ptxgen.numerics.contract import K, M, N
from ptxgen.numerics.int4 import ELEMENTS, LAYOUTS
from ptxgen.spec import Key, Route, RouteTable, Step
from ptxgen.spec.int4 import Int4Spec, space
from ptxgen.spec.int4_packed import PackedSpec, UnpackSpec, pitch
from ptxgen.tiles.realign import copying

# bm, bn, bk, warps_m, warps_n, stages; warps_k; sizes of clusters; ``prefetch``.
TILES = (
    ((32, 32, 512, 1, 1, 4), 8, (1, 2), True, "few rows or few outputs"),
    ((32, 64, 512, 1, 1, 4), 8, (1,), False, "few rows"),
    ((64, 64, 256, 2, 2, 4), 1, (1, 2), False, "a medium number of rows"),
    ((128, 128, 256, 2, 2, 3), 1, (1,), True, "many outputs"),
)
RRR = (
    ((32, 32, 512, 1, 1, 4), 8, (1,), True, "few rows or few outputs"),
    ((32, 64, 256, 1, 2, 6), 4, (4,), True, "few rows or few outputs"),
    *TILES[1:],
    ((32, 128, 256, 1, 2, 4), 4, (1,), False, "few rows, many columns"),
)
"""Tiles for layout "rrr", whose rows of B are along n: wider tiles read longer pieces of a row. A
line has the fields that :data:`TILES` has."""
WORDS = (
    ((32, 32, 512, 1, 1, 4), 8, (1, 4, 8), True, "few rows or few outputs"),
    ((64, 64, 128, 2, 2, 3), 1, (1,), False, "short reductions"),
    ((64, 64, 256, 2, 2, 4), 1, (1,), False, "a medium number of rows"),
)
"""Tiles for operands aligned to 4 but not to 16 bytes, which are copied by words; a line has the
fields that :data:`TILES` has."""


def _table(layout: str, dtype: str) -> RouteTable:
    return RouteTable(space(dtype), tuple(_routes(layout, dtype)), (dtype,))


def _routes(layout: str, dtype: str) -> Iterator[Route]:
    # An unsigned element is widened by masking alone.
    widen = "shift" if ELEMENTS[dtype].low < 0 else "extend"
    kernels: list[Int4Spec] = []
    for copy, tiles in (("vector", RRR if layout == "rrr" else TILES), ("words", WORDS)):
        for sizes, warps_k, clusters, ahead, reason in tiles:
            for cluster_k in clusters:
                kernel = Int4Spec(
                    layout,
                    *sizes,
                    warps_k=warps_k,
                    cluster_k=cluster_k,
                    prefetch=ahead,
                    copy=copy,
                    widen=widen,
                    ctas_per_sm=2,
                    dtype=dtype,
                    min_arch="sm_80" if cluster_k == 1 else "sm_90",
                )
                words = "; copied by words" if copy == "words" else ""
                shared = f"; {cluster_k} CTAs share a tile's k's" if cluster_k > 1 else ""
                yield Route((kernel,), reason=reason + words + shared)
                kernels.append(kernel)
    yield from _packed(layout, dtype)
    few, many = (next(k for k in kernels if k.bm == bm) for bm in (32, 128))
    for kernel in (few, many):
        copied = copying(_stored(layout), 1, kernel)
        yield Route(copied, reason="A and B not aligned to 16 bytes: copied first")
    rest = Int4Spec(layout, 64, 64, 128, 2, 2, 2, copy="bytes", widen="extend", dtype=dtype)
    yield Route((rest,), reason="everything else: any alignment, the longest reductions")


def _packed(layout: str, dtype: str) -> Iterator[Route]:
    """Yields the routes for Hopper: wgmma multiplies bytes; a kernel unpacks A into scratch memory,
    consumers unpack B in registers.
    """
    for bm, stages, registers in ((128, 4, 208), (96, 4, 208), (64, 5, 0)):
        kernel = PackedSpec(
            layout, bm, 128, 128, 1, stages, ctas_per_sm=2, registers=registers, dtype=dtype
        )
        first = Step(UnpackSpec(dtype, layout == "rcr"), {"x": "a", "ldx": "lda", "y": "a_bytes"})
        then = Step(kernel, {"a": "a_bytes"}, {"LDA": pitch(K)})
        yield Route(
            (first, then), reason=f"tiles of {bm} rows, by wgmma: A is unpacked to bytes first"
        )
        if bm == 128:
            copy, read = copying({"b": _stored(layout)["b"]}, 1, kernel)
            then = Step(kernel, {**then.bind, **read.bind}, {**then.given, **read.given})
            yield Route(
                (copy, first, then), reason="B not aligned to 16 bytes: copied first, then by wgmma"
            )


def _stored(layout: str) -> dict[str, tuple[Expr, Expr]]:
    """Returns the number of rows and the bytes of a row of operands "a" and "b"."""
    bytes_k, bytes_n = ceil_div(K, 2), ceil_div(N, 2)
    return {"a": (M, bytes_k), "b": (N, bytes_k) if layout == "rcr" else (K, bytes_n)}


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("int4", layout, dtype): partial(_table, layout, dtype)
    for layout in LAYOUTS
    for dtype in ELEMENTS
}
"""Constructors of the route tables, by key."""
