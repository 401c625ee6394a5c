"""The tables of products: for each operand layout ("NN" .. "TT"), plan ("chunks" or "chain"),
width of operands ("f32", "f64", "half") and tier.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ptxgen.numerics.contract import DEFAULT_PLAN, PLANS
from ptxgen.numerics.formula import Formula, Output, cast, read
from ptxgen.spec import LAYOUTS, KernelSpec, Key, Route, RouteTable
from ptxgen.spec.epilogue import PRODUCT, Epilogue
from ptxgen.spec.gemm import space

WIDTHS = {"f32": ("f32",), "half": ("bf16", "f16"), "f64": ("f64",)}
"""The dtypes that share tables: what is the fastest does not hang on how 16 bits are split."""
WIDTH_OF = {dtype: width for width, dtypes in WIDTHS.items() for dtype in dtypes}
"""The width of each dtype."""

_MODULES = {
    ("f32", "simt"): "simt",
    ("half", "simt"): "typed",
    ("half", "tc"): "tc",
    ("f64", "simt"): "f64",
}
"""Where the routes of a width and tier are; a module is imported when one of its tables is used."""


def concludes(key: Key) -> bool:
    """Whether a table is one of products whose kernels take a formula as their epilogue
    (:class:`ptxgen.spec.epilogue.Epilogue`): all that store results do, but those of wgmma.
    """
    return key in TABLES and key[1] != "chain" and key[2] != "f64"


def _table(module: str, key: Key) -> RouteTable:
    routes: tuple[Route, ...] = importlib.import_module(f"ptxgen.tiles.{module}").ROUTES[key]
    plan = PLANS[routes[0].main.contract.name][key[1]]
    pinned = partial(_pinned, key, routes) if key in _PINNED else tuple
    others = Epilogue if concludes(key) else False
    return RouteTable(space(plan), routes, WIDTHS[key[2]], opened=others, pinned=pinned)


_PINNED: Mapping[Key, tuple[str, ...]] = {
    ("NT", DEFAULT_PLAN, "half", "tc"): ("mma", "reduce"),
    ("NT", DEFAULT_PLAN, "f32", "simt"): ("simt",),
}
"""The families of which a table pins a kernel with a formula: the first that stores results."""


def _pinned(key: Key, routes: tuple[Route, ...]) -> Iterator[KernelSpec]:
    dtype = WIDTHS[key[2]][0]
    product, gate = read(PRODUCT, dtype), read("x0", "f32")
    kept = Output("c", dtype, product)
    gated = Output("y1", dtype, cast(product * gate * read("x1", dtype), dtype))
    epilogue = Epilogue(dtype, Formula((kept, gated)), "uv")
    for family in _PINNED[key]:
        yield next(
            route.kernels[-1].of(epilogue) for route in routes if route.kernels[-1].family == family
        )


TABLES: dict[Key, Callable[[], RouteTable]] = {
    key: partial(_table, module, key)
    for (width, tier), module in _MODULES.items()
    for key in (
        *((layout, DEFAULT_PLAN, width, tier) for layout in LAYOUTS),
        ("TN", "chain", width, tier),
    )
}
"""What makes each table."""
