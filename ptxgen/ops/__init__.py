"""The library's operations. :mod:`ptxgen` exports them.

Each is a row (:class:`ptxgen.ops.op.Op`) in :data:`OPS`, and a function that adds its signature and
its contract for readers. ``gemm`` reads products; ``run`` and ``launch`` carry any row to the GPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ptxgen import dispatch, tiles
from ptxgen.errors import SpecError
from ptxgen.later import later
from ptxgen.numerics.rowops import CALLED, TABLE
from ptxgen.spec import Key, RouteTable
from ptxgen.tiles.lazy import Lazy

if TYPE_CHECKING:
    from ptxgen.ops.columns import layer_norm_wgrad, rms_norm_wgrad
    from ptxgen.ops.dgrad import linear_dgrad
    from ptxgen.ops.flce import linear_cross_entropy, linear_cross_entropy_grad
    from ptxgen.ops.forward import linear
    from ptxgen.ops.groupnorm import group_norm
    from ptxgen.ops.int4 import int4_gemm
    from ptxgen.ops.moves import embedding, embedding_backward, gather, index_add, scatter_add
    from ptxgen.ops.nf4 import nf4_linear, nf4_linear_dgrad
    from ptxgen.ops.op import Op, Plan
    from ptxgen.ops.product import matmul
    from ptxgen.ops.rowcalls import (
        amax,
        amin,
        argmax,
        argmin,
        cross_entropy,
        layer_norm,
        log_softmax,
        mean,
        prod,
        rms_norm,
        softmax,
        std,
        sum,
        var,
    )
    from ptxgen.ops.rows import logsumexp
    from ptxgen.ops.scan import cumsum
    from ptxgen.ops.select import sample, topk
    from ptxgen.ops.wgrad import linear_wgrad

__all__ = [
    "OPS",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cross_entropy",
    "cumsum",
    "embedding",
    "embedding_backward",
    "gather",
    "group_norm",
    "index_add",
    "int4_gemm",
    "layer_norm",
    "layer_norm_wgrad",
    "linear",
    "linear_cross_entropy",
    "linear_cross_entropy_grad",
    "linear_dgrad",
    "linear_wgrad",
    "log_softmax",
    "logsumexp",
    "matmul",
    "mean",
    "nf4_linear",
    "nf4_linear_dgrad",
    "prod",
    "register",
    "rms_norm",
    "rms_norm_wgrad",
    "sample",
    "scatter_add",
    "softmax",
    "std",
    "sum",
    "topk",
    "var",
]


def _planned(name: str) -> Callable[..., Plan]:
    plans: Mapping[str, Callable[..., Plan]] = importlib.import_module(
        f"ptxgen.ops.{_FUNCTIONS[name]}"
    ).PLANS
    return plans[name]


_HOMES = {
    "cumsum": ("scan", "scan"),
    "embedding": ("moves", "moves"),
    "embedding_backward": ("moves", "moves"),
    "index_add": ("moves", "moves"),
    "int4_gemm": ("int4", "int4"),
    "layer_norm_wgrad": ("columns", "columns"),
    "linear": ("forward", "gemm"),
    "linear_dgrad": ("dgrad", "gemm"),
    "linear_wgrad": ("wgrad", "gemm"),
    "logsumexp": ("rows", "rows"),
    "matmul": ("product", "gemm"),
    "nf4_linear": ("nf4", "nf4"),
    "nf4_linear_dgrad": ("nf4", "nf4"),
    "rms_norm_wgrad": ("columns", "columns"),
    "sample": ("select", "select"),
    "topk": ("select", "select"),
    **dict.fromkeys(CALLED, ("rowcalls", "rowwise")),
}
"""The modules that have an operation's function, and its row."""
_FUNCTIONS = {
    "gather": "moves",
    "group_norm": "groupnorm",
    "linear_cross_entropy": "flce",
    "linear_cross_entropy_grad": "flce",
    "scatter_add": "moves",
}
"""The modules of functions without a row of their name."""
COMPOSED: Lazy[str, Callable[..., Plan]] = Lazy(
    {name: partial(_planned, name) for name, home in _FUNCTIONS.items() if home == "flce"}
)
"""Operations made of others that say of which, by name."""
_ROWS = {
    **dict.fromkeys(("gather_rows", "scatter_add_along"), "moves"),
    **dict.fromkeys(("linear_segments", "logit_segments", "logit_gradient"), "logits"),
    **dict.fromkeys((f"{how}_columns" for how in ("sum", "prod", "max", "min", "mean")), "columns"),
    **dict.fromkeys(TABLE, "rowwise"),
}
"""The modules of rows without a function of their name."""


def _row(name: str) -> Op:
    home = _HOMES[name][1] if name in _HOMES else _ROWS[name]
    rows: Mapping[str, Op] = importlib.import_module(f"ptxgen.ops.{home}").OPS
    return rows[name]


OPS: Lazy[str, Op] = Lazy({name: partial(_row, name) for name in (*_HOMES, *_ROWS)})
"""Every operation by name; a row's module is imported when it is asked for."""

_loaded = {name: f"ptxgen.ops.{module}:{name}" for name, (module, _) in _HOMES.items()}
_loaded |= {name: f"ptxgen.ops.{module}:{name}" for name, module in _FUNCTIONS.items()}
__getattr__, __dir__ = later(__name__, _loaded)


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
