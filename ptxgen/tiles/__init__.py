"""The spec tables: data only, one module per kernel family.

``ROUTES[layout, plan, dtype, tier]`` is the ordered route table of the products with this operand
layout ("NN" .. "TT") under this plan ("rows", "batch") for operands of this dtype ("f32", "bf16",
"f16") in this tier ("simt", "tc"); ``SPECS`` is every kernel, by name.
"""

from __future__ import annotations

from ptxgen.spec import KernelSpec, Route
from ptxgen.tiles import simt, tc, typed

ROUTES: dict[tuple[str, str, str, str], tuple[Route, ...]] = {
    **simt.ROUTES,
    **typed.ROUTES,
    **tc.ROUTES,
}

SPECS: dict[str, KernelSpec] = {
    kernel.name: kernel
    for routes in ROUTES.values()
    for route in routes
    for kernel in route.kernels
}
