"""The tables of products: ``TABLES[layout, plan, width, tier]`` for each operand layout ("NN" ..
"TT"), plan ("rows", "batch"), width of operands ("f32", "half", "f64") and tier.
"""

from __future__ import annotations

from ptxgen.numerics.contract import PLANS
from ptxgen.spec import Key, RouteTable
from ptxgen.spec.gemm import space
from ptxgen.tiles import f64, simt, tc, typed

WIDTHS = {"f32": ("f32",), "half": ("bf16", "f16"), "f64": ("f64",)}
"""The dtypes that share tables: what is the fastest does not hang on how 16 bits are split."""

TABLES: dict[Key, RouteTable] = {
    key: RouteTable(
        space(PLANS[routes[0].kernels[0].contract.name][key[1]]), routes, WIDTHS[key[2]]
    )
    for key, routes in {**simt.ROUTES, **typed.ROUTES, **tc.ROUTES, **f64.ROUTES}.items()
}
