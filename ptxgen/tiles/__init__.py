"""The spec tables: data only, one module per kernel family.

``ROUTES[layout, plan, dtype, tier]`` is the ordered route table of the products with this operand
layout ("NN" .. "TT") under this plan ("rows", "batch") for operands of this dtype ("f32", "bf16",
"f16") in this tier ("simt", "tc"); ``SPECS`` is every kernel, by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxgen.errors import SpecError
from ptxgen.spec import KernelSpec, Route
from ptxgen.tiles import simt, tc, typed

ROUTES: dict[tuple[str, str, str, str], tuple[Route, ...]] = {
    **simt.ROUTES,
    **typed.ROUTES,
    **tc.ROUTES,
}


def by_name(routes: Iterable[Route]) -> dict[str, KernelSpec]:
    """The kernels of ``routes``. Raises SpecError for two that share a name."""
    found: dict[str, KernelSpec] = {}
    for route in routes:
        for kernel in route.kernels:
            known = found.setdefault(kernel.name, kernel)
            if known != kernel:
                raise SpecError(
                    f"two kernels are named {kernel.name}: {known.canonical()} and "
                    f"{kernel.canonical()}; a name must tell its spec"
                )
    return found


SPECS: dict[str, KernelSpec] = by_name(route for table in ROUTES.values() for route in table)
