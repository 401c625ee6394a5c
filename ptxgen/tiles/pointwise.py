"""Route table of pointwise formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxgen.expr import TRUE
from ptxgen.numerics.formula import Formula, Output, cast, read
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.pointwise import FORMS, SPACE, Form, PointwiseSpec

_ROUTES = (
    (
        "factor",
        32,
        "in-place products by a scalar in memory: few CTAs, which return at once if it is 1",
    ),
    ("flat", 2, "contiguous arrays"),
    ("rows", 2, "vectors of the innermost dimension"),
    ("blocks", 1, "square blocks of two dimensions; each array is contiguous along one of them"),
    ("any", 4, "single elements, any strides"),
    ("wide", 4, "single elements, more than 2^31 of them"),
)
"""Routes of pointwise kernels: ``indexing``; vectors, elements or blocks that a thread computes;
reason."""


def _pointwise() -> RouteTable:
    routes = (
        Route((PointwiseSpec(way, FORMS[way], vectors_per_thread=pieces),), TRUE, why)
        for way, pieces, why in _ROUTES
    )
    return RouteTable(SPACE, tuple(routes), ("bf16",), opened=True, pinned=_pinned)


def _pinned() -> Iterator[PointwiseSpec]:
    """Yields kernels for the goldens: one whose result's bounds fix most bits, square blocks in two
    and in four dimensions, three copies of a formula with a scalar, and casts and a copy of dtypes
    of 8 bits.
    """
    from ptxgen.numerics.functions import silu

    formula = Formula((Output("y0", "bf16", silu(read("x0", "bf16"))),))
    yield PointwiseSpec("flat", Form(formula, (0, 0), "v", 1), vectors_per_thread=2)
    yield PointwiseSpec("blocks", Form(formula, (0, 1), "wv", 2))
    yield PointwiseSpec("blocks", Form(formula, (0, 1), "vw", 4))
    formula = Formula((Output("y0", "f32", read("x0", "f32") * read("x1", "f32", "scalar")),))
    yield PointwiseSpec("flat", Form(formula, (0, 0), "v", 1, copies=3), vectors_per_thread=2)
    x, y = read("x0", "e4m3"), read("x1", "i8")
    made = {"e5m2": cast(x, "e5m2"), "e4m3": x, "u8": cast(y, "u8")}
    outputs = (Output(f"y{i}", dtype, node) for i, (dtype, node) in enumerate(made.items()))
    yield PointwiseSpec("flat", Form(Formula(tuple(outputs)), (0,) * 5, "v", 1))
    formula = Formula((Output("y0", "c64", read("x0", "c64")),))
    yield PointwiseSpec("flat", Form(formula, (0, 0), "v", 1))


TABLES: dict[Key, Callable[[], RouteTable]] = {("pointwise",): _pointwise}
"""Constructors of the route tables, by key."""
