"""The library's operations, by name: :data:`ptxgen.program.registry.OPERATIONS`.

Each is a function that lowers it (:class:`ptxgen.program.operation.Op`), or a row of a table: of
pointwise functions (:mod:`ptxgen.ops.pointwise_table`), of operations over rows
(:mod:`ptxgen.numerics.row_reductions`), of reductions down columns
(:mod:`ptxgen.numerics.column_reductions`). All are found when the first is asked for, and those of
rows made when they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ptxgen import dispatch, tiles
from ptxgen.errors import SpecError
from ptxgen.numerics.column_reductions import REDUCTIONS
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.row_reductions import TABLE
from ptxgen.ops.pointwise_table import INNER, ROWS
from ptxgen.program.operation import Op
from ptxgen.program.registry import OPERATIONS
from ptxgen.spec import Key, RouteTable

__all__ = ["OPERATIONS", "register"]

HELPERS = (
    "attention_shapes",
    "bitsandbytes",
    "column_reductions",
    "explaining",
    "explaining_code",
    "gemm",
    "gradients",
    "implicit_gemm",
    "pointwise",
    "pointwise_table",
    "profiling",
    "quantized_weight",
    "reductions",
    "row_reductions",
    "views",
)
"""Modules of this package without operations of their own, or with those of a table. All others are
searched for operations: a new file is found.
"""


def _made(module: str, name: str) -> Op:
    """The operation of a row of a table."""
    found: Op = import_module(f"ptxgen.ops.{module}").operation(name)
    return found


def _makers() -> dict[str, Callable[[], Op]]:
    """Returns the function that makes each operation, by the operation's name."""
    found: dict[str, Callable[[], Op]] = {}
    for name in (*(row.name for row in (*ROWS, *INNER)), *(f"cast_{d}" for d in FULL)):
        found[name] = partial(_made, "pointwise", name)
    for name in REDUCTIONS:
        found[name] = partial(_made, "column_reductions", name)
    for name, row in TABLE.items():
        found[f"{name}_rows" if row.form else name] = partial(_made, "row_reductions", name)
        if row.form in ("reduce", "along"):
            found[name] = partial(_made, "reductions", name)
    for module in sorted({each.name for each in iter_modules(__path__)} - set(HELPERS)):
        home = import_module(f"ptxgen.ops.{module}")
        for name, value in vars(home).items():
            if isinstance(value, Op) and value.name == name:
                found[name] = partial(getattr, home, name)
    return found


OPERATIONS.add(_makers)


def register(op: Op, tables: Mapping[Key, RouteTable] | None = None) -> Any:
    """Adds an operation that is not in the package, with the route tables that it needs, and
    returns the function that calls it.

    Dispatch functions are made from the tables here and now; ``ptxgen.dispatch.prove`` proves them
    as it does those of the package.

    Raises SpecError, and adds nothing, for a name, a table or a kernel that is taken.
    """
    if op.name in OPERATIONS:
        raise SpecError(f"there is an operation {op.name!r} already")
    given = tables or {}
    functions = dispatch.made(given)
    tiles.register(given)
    dispatch.install(functions)
    OPERATIONS[op.name] = op
    return op.function
