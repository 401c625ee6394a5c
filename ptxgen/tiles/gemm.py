"""The tables of products: for each operand layout ("NN" .. "TT"), plan ("rows", "batch", "chain"),
width of operands ("f32", "f64", "half") and tier.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial

from ptxgen.numerics.contract import PLANS
from ptxgen.spec import LAYOUTS, Key, Route, RouteTable
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


def _table(module: str, key: Key) -> RouteTable:
    routes: tuple[Route, ...] = importlib.import_module(f"ptxgen.tiles.{module}").ROUTES[key]
    plan = PLANS[routes[0].main.contract.name][key[1]]
    return RouteTable(space(plan), routes, WIDTHS[key[2]])


TABLES: dict[Key, Callable[[], RouteTable]] = {
    key: partial(_table, module, key)
    for (width, tier), module in _MODULES.items()
    for key in (
        *((layout, "rows", width, tier) for layout in LAYOUTS),
        *(("TN", plan, width, tier) for plan in ("batch", "chain")),
    )
}
"""What makes each table."""
