"""The library's operations. :mod:`ptxgen` exports them.

Each is a row (:class:`ptxgen.ops.op.Op`) in :data:`OPS`, and a function that adds its signature and
its contract for readers. ``gemm`` reads products; ``run`` and ``launch`` carry any row to the GPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ptxgen import dispatch, tiles
from ptxgen.errors import SpecError
from ptxgen.numerics.rowops import CALLED, TABLE
from ptxgen.spec import Key, RouteTable
from ptxgen.tiles.lazy import Lazy

if TYPE_CHECKING:
    from ptxgen.ops.dgrad import linear_dgrad
    from ptxgen.ops.forward import linear
    from ptxgen.ops.int4 import int4_gemm
    from ptxgen.ops.nf4 import nf4_linear, nf4_linear_dgrad
    from ptxgen.ops.op import Op
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
    from ptxgen.ops.wgrad import linear_wgrad

__all__ = [
    "OPS",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cross_entropy",
    "int4_gemm",
    "layer_norm",
    "linear",
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
    "softmax",
    "std",
    "sum",
    "var",
]

_HOMES = {
    "int4_gemm": ("int4", "int4"),
    "linear": ("forward", "gemm"),
    "linear_dgrad": ("dgrad", "gemm"),
    "linear_wgrad": ("wgrad", "gemm"),
    "logsumexp": ("rows", "rows"),
    "matmul": ("product", "gemm"),
    "nf4_linear": ("nf4", "nf4"),
    "nf4_linear_dgrad": ("nf4", "nf4"),
    **dict.fromkeys(CALLED, ("rowcalls", "rowwise")),
}
"""The modules that have an operation's function, and its row."""


def _row(name: str) -> Op:
    home = _HOMES[name][1] if name in _HOMES else "rowwise"
    rows: Mapping[str, Op] = importlib.import_module(f"ptxgen.ops.{home}").OPS
    return rows[name]


OPS: Lazy[str, Op] = Lazy({name: partial(_row, name) for name in (*_HOMES, *TABLE)})
"""Every operation by name; a row's module is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ptxgen.ops.{_HOMES[name][0]}"), name)
    globals()[name] = value
    return value


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
