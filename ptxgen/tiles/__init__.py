"""The spec tables: data only, one module per kernel family.

``TABLES`` maps keys to route tables, ``ROUTES`` keys to the routes of each, and ``SPECS`` names to
kernels. ``PINNED`` has the few kernels of opened tables that no table lists, but goldens hold. All
are built on first use. A kind of problems adds its module to the list below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from ptxgen.errors import SpecError
from ptxgen.lazy import LazyDict, made
from ptxgen.spec import KernelSpec, Key, Route, RouteTable
from ptxgen.tiles import (
    attention,
    attention_grad,
    column_reductions,
    conv,
    counting_sort,
    delta,
    fft,
    gather_scatter,
    gemm,
    grouped,
    int4,
    logsumexp,
    pointwise,
    quantized,
    recurrence,
    rotary,
    row_reductions,
    scan,
    select,
    sort,
    splats,
    triangular,
    vocab_segments,
)

TABLES: LazyDict[Key, RouteTable] = LazyDict(
    {
        **attention.TABLES,
        **attention_grad.TABLES,
        **conv.TABLES,
        **gemm.TABLES,
        **grouped.TABLES,
        **int4.TABLES,
        **vocab_segments.TABLES,
        **quantized.TABLES,
        **pointwise.TABLES,
        **logsumexp.TABLES,
        **row_reductions.TABLES,
        **column_reductions.TABLES,
        **delta.TABLES,
        **fft.TABLES,
        **gather_scatter.TABLES,
        **counting_sort.TABLES,
        **recurrence.TABLES,
        **rotary.TABLES,
        **scan.TABLES,
        **select.TABLES,
        **sort.TABLES,
        **splats.TABLES,
        **triangular.TABLES,
    }
)


def _routes(key: Key) -> tuple[Route, ...]:
    return TABLES[key].routes


ROUTES: LazyDict[Key, tuple[Route, ...]] = LazyDict({key: partial(_routes, key) for key in TABLES})


def named(
    kernels: Iterable[KernelSpec], known: Mapping[str, KernelSpec] | None = None
) -> dict[str, KernelSpec]:
    """Returns ``kernels`` by name. Raises SpecError if two of the same name differ, or differ from
    a kernel in ``known``.
    """
    found: dict[str, KernelSpec] = {}
    for kernel in kernels:
        other = found.setdefault(kernel.name, (known or {}).get(kernel.name, kernel))
        if other != kernel:
            raise SpecError(
                f"two kernels are named {kernel.name}: {other.canonical()} vs {kernel.canonical()}"
            )
    return found


SPECS: LazyDict[str, KernelSpec] = LazyDict(
    lambda: made(named(kernel for table in TABLES.values() for kernel in table.kernels()))
)

PINNED: LazyDict[str, KernelSpec] = LazyDict(
    lambda: made(named(kernel for table in TABLES.values() for kernel in table.pinned()))
)


def register(tables: Mapping[Key, RouteTable]) -> None:
    """Adds tables and their kernels.

    Raises SpecError, and adds nothing, for a key that exists already, and for two different kernels
    of one name.
    """
    if taken := tables.keys() & TABLES.keys():
        raise SpecError(f"route tables that exist already: {sorted(taken)}")
    added = named((k for t in tables.values() for k in t.kernels()), SPECS)
    for key, table in tables.items():
        TABLES[key] = table
        ROUTES[key] = table.routes
    SPECS.update(added)
