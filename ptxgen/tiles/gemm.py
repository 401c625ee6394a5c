"""Route tables of GEMM, by operand layout ("NN" .. "TT"), plan ("chunks" or "chain"), width of
operands ("f32", "f64", "half") and tier.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ptxgen.numerics.contract import DEFAULT_PLAN, PLANS
from ptxgen.numerics.dtype import Mixed
from ptxgen.numerics.formula import Formula, Output, cast, read
from ptxgen.spec import LAYOUTS, KernelSpec, Key, Route, RouteTable
from ptxgen.spec.epilogue import PRODUCT, Epilogue
from ptxgen.spec.gemm import space

WIDTHS = {"f32": ("f32",), "half": ("bf16", "f16"), "f64": ("f64",)}
"""Dtypes that share a table: the fastest kernel does not depend on how 16 bits are divided into
exponent and mantissa."""
WIDTH_OF = {dtype: width for width, dtypes in WIDTHS.items() for dtype in dtypes}
"""Key in :data:`WIDTHS` of each dtype."""

_MODULES = {
    ("f32", "simt"): "simt",
    ("half", "simt"): "typed",
    ("half", "tc"): "tc",
    ("f64", "simt"): "f64",
}
"""Modules of the routes, by width and tier; each is imported when one of its tables is used."""


def concludes(key: Key) -> bool:
    """Returns whether the kernels of the table ``key`` support an epilogue formula
    (:class:`ptxgen.spec.epilogue.Epilogue`): all that store results do, except those of wgmma.
    """
    return key in TABLES and key[1] != "chain" and key[2] != "f64"


def mixes(key: Key) -> bool:
    """Returns whether the kernels of the table ``key`` support an f32 A beside a B of 16 bits
    (:class:`ptxgen.numerics.dtype.Mixed`).
    """
    return concludes(key) and key[2:] == ("f32", "simt")


def _table(module: str, key: Key) -> RouteTable:
    routes: tuple[Route, ...] = importlib.import_module(f"ptxgen.tiles.{module}").ROUTES[key]
    plan = PLANS[routes[0].main.contract.name][key[1]]
    pinned = partial(_pinned, key, routes) if key in _PINNED else tuple
    others = (Epilogue, *((Mixed,) if mixes(key) else ())) if concludes(key) else False
    return RouteTable(space(plan), routes, WIDTHS[key[2]], opened=others, pinned=pinned)


_PINNED: Mapping[Key, tuple[str, ...]] = {
    ("NT", DEFAULT_PLAN, "half", "tc"): ("mma", "reduce"),
    ("NT", DEFAULT_PLAN, "f32", "simt"): ("simt",),
}
"""Families with a pinned kernel, by table: the first kernel of each that stores results, with an
epilogue formula. Goldens are kept of pinned kernels."""


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
"""Constructors of the route tables, by key."""
