"""The tables of products: ``TABLES[layout, plan, dtype, tier]`` for each operand layout ("NN" ..
"TT"), plan ("rows", "batch"), dtype and tier.
"""

from __future__ import annotations

from ptxgen.numerics.contract import PLANS
from ptxgen.spec import Key, RouteTable
from ptxgen.spec.gemm import space
from ptxgen.tiles import simt, tc, typed

TABLES: dict[Key, RouteTable] = {
    key: RouteTable(space(PLANS[key[3]][key[1]]), routes, (key[2],))
    for key, routes in {**simt.ROUTES, **typed.ROUTES, **tc.ROUTES}.items()
}
