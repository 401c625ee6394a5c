"""The tables of products of 4-bit integers, one for each layout and dtype, taken in order.

- *few rows*, or few outputs: B streams past once; warps share the k's of narrow tiles;
- *many, on Hopper*: operands become bytes in scratch memory first, and wgmma multiplies these;
- *many*: the largest tile that still gives every SM one;
- operands off 16 bytes, and reductions so long that shifted factors would overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxgen.expr import Expr, ceil_div
from ptxgen.numerics.contract import K, M, N
from ptxgen.numerics.int4 import ELEMENTS, LAYOUTS
from ptxgen.spec import SMS, Key, Route, RouteTable, Step
from ptxgen.spec.int4 import Int4Spec, space
from ptxgen.spec.int8 import Int8Spec, PackedSpec, UnpackSpec, UnpackTurnedSpec, pitch


def _tiles(bm: int, bn: int) -> Expr:
    return ceil_div(M, bm) * ceil_div(N, bn)


def _unpacked(layout: str, kernel: Int8Spec) -> tuple[Step, Step]:
    """``kernel``, behind the step that makes bytes of both operands."""
    first = (UnpackSpec if layout == "rcr" else UnpackTurnedSpec)(kernel.dtype)
    copies = {"a": "a_bytes", "b": "b_bytes"}
    making = {"x0": "a", "x1": "b", "y0": copies["a"], "y1": copies["b"]}
    return Step(first, making), Step(kernel, copies, {f"LD{x}": pitch(K) for x in "AB"})


def _packed(kernel: PackedSpec) -> tuple[Step, Step]:
    """``kernel``, behind the step that makes bytes of A."""
    first = UnpackSpec(kernel.dtype, "a", apart=kernel.layout == "rcr")
    making = {"x0": "a", "y0": "a_bytes"}
    return Step(first, making), Step(kernel, {"a": "a_bytes"}, {"LDA": pitch(K)})


def _table(layout: str, dtype: str) -> RouteTable:
    # Without a sign, a factor is its value as soon as it stands alone.
    widen = "shift" if ELEMENTS[dtype].low < 0 else "extend"

    few, large, middle = (
        Int4Spec(layout, *sizes, warps_k=warps_k, widen=widen, ctas_per_sm=ctas, dtype=dtype)
        for sizes, warps_k, ctas in (
            ((32, 32, 512, 1, 1, 4), 8, 1),
            ((128, 128, 256, 2, 2, 3), 1, 2),
            ((64, 64, 256, 2, 2, 4), 1, 3),
        )
    )
    rest = Int4Spec(layout, 64, 64, 128, 2, 2, 2, copy="bytes", widen="extend", dtype=dtype)
    wide = Int8Spec(128, 256, 128, consumers=2, stages=4, cluster_m=2, registers=232, dtype=dtype)
    return RouteTable(
        space(dtype),
        (
            Route((few,), (M <= 32) | (_tiles(64, 64) < SMS), "few rows or few outputs"),
            Route(
                _unpacked(layout, wide),
                (M >= 512) & (_tiles(128, 256) >= SMS),
                "many outputs: unpacked first",
            ),
            Route((large,), _tiles(128, 128) >= SMS, "many outputs"),
            Route((middle,), reason="outputs for small tiles"),
            Route((rest,), reason="everything else: any alignment, the longest reductions"),
        ),
        (dtype,),
    )


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("int4", layout, dtype): partial(_table, layout, dtype)
    for layout in LAYOUTS
    for dtype in ELEMENTS
}
"""What makes each table."""
