"""The library's operations. :mod:`ptxgen` exports them.

Each is a row (:class:`ptxgen.ops.op.Op`) in :data:`OPS`, and a function that adds its signature and
its contract for readers. ``gemm`` reads products; ``run`` and ``launch`` carry any row to the GPU.
"""

from __future__ import annotations

from ptxgen.ops import gemm, rows
from ptxgen.ops.dgrad import linear_dgrad
from ptxgen.ops.forward import linear
from ptxgen.ops.op import Op
from ptxgen.ops.product import matmul
from ptxgen.ops.rows import logsumexp
from ptxgen.ops.wgrad import linear_wgrad

__all__ = ["OPS", "linear", "linear_dgrad", "linear_wgrad", "logsumexp", "matmul"]

OPS: dict[str, Op] = {**gemm.OPS, rows.OP.name: rows.OP}
"""Every operation by name."""
