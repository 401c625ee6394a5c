"""The library's operations. :mod:`ptxgen` exports them.

Each is a row (:class:`ptxgen.ops.op.Op`) in :data:`OPS`, and a function that adds its signature and
its contract for readers. ``gemm`` reads products; ``run`` and ``launch`` carry any row to the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxgen import dispatch, tiles
from ptxgen.errors import SpecError
from ptxgen.ops import gemm, rows
from ptxgen.ops.dgrad import linear_dgrad
from ptxgen.ops.forward import linear
from ptxgen.ops.op import Op
from ptxgen.ops.product import matmul
from ptxgen.ops.rows import logsumexp
from ptxgen.ops.wgrad import linear_wgrad
from ptxgen.spec import Key, RouteTable

__all__ = ["OPS", "linear", "linear_dgrad", "linear_wgrad", "logsumexp", "matmul", "register"]

OPS: dict[str, Op] = {**gemm.OPS, rows.OP.name: rows.OP}
"""Every operation by name."""


def register(op: Op, tables: Mapping[Key, RouteTable]) -> None:
    """Adds an operation that is not in the package, with its route tables.

    Dispatch functions are made from the tables here and now; ``ptxgen.dispatch.prove`` proves them
    as it does those of the package. ``ptxgen.ops.run.caller`` makes the function that calls it.

    Raises SpecError, and adds nothing, for a name, a table or a kernel that is taken.
    """
    if op.name in OPS:
        raise SpecError(f"there is an operation {op.name!r} already")
    tiles.register(tables)
    for key in tables:
        dispatch.install(key)
    OPS[op.name] = op
