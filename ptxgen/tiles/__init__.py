"""The spec tables: data only, one module per kernel family.

``TABLES`` is every route table by its key, ``ROUTES`` the routes of each, ``SPECS`` every kernel by
name. A kind of problems adds its module to the list below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxgen.errors import SpecError
from ptxgen.spec import KernelSpec, Key, Route, RouteTable
from ptxgen.tiles import gemm, rows

TABLES: dict[Key, RouteTable] = {}
ROUTES: dict[Key, tuple[Route, ...]] = {}
SPECS: dict[str, KernelSpec] = {}


def register(tables: Mapping[Key, RouteTable]) -> None:
    """Adds tables and their kernels.

    Raises SpecError, and adds nothing, for a key that is taken, and for two kernels of one name
    that are not the same.
    """
    if taken := tables.keys() & TABLES.keys():
        raise SpecError(f"route tables that exist already: {sorted(taken)}")
    SPECS.update(named((k for t in tables.values() for k in t.kernels()), SPECS))
    TABLES.update(tables)
    ROUTES.update({key: table.routes for key, table in tables.items()})


def named(kernels: Iterable[KernelSpec], known: Mapping[str, KernelSpec]) -> dict[str, KernelSpec]:
    """``kernels`` by name. Raises SpecError for two of one name that differ."""
    found: dict[str, KernelSpec] = {}
    for kernel in kernels:
        other = found.setdefault(kernel.name, known.get(kernel.name, kernel))
        if other != kernel:
            raise SpecError(
                f"two kernels are named {kernel.name}: {other.canonical()} vs {kernel.canonical()}"
            )
    return found


for _tables in (gemm.TABLES, rows.TABLES):
    register(_tables)
