"""The library's operations, by name: :data:`ptxgen.program.registry.OPERATIONS`.

An operation is a function that lowers it (:class:`ptxgen.program.operation.Op`), or a row of a
table: of pointwise functions (:mod:`ptxgen.ops.pointwise_table`), of operations over rows
(:mod:`ptxgen.numerics.row_reductions`), of reductions down columns
(:mod:`ptxgen.numerics.column_reductions`). The first lookup imports all modules; an operation of a
table is made when it is first looked up.
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
    "mel",
    "pointwise",
    "pointwise_table",
    "profiling",
    "quantized_weight",
    "reductions",
    "row_reductions",
    "views",
)
"""Modules of this package that are not searched for operations: helpers, and those that make the
operations of a table. All others are searched, so that a new file needs no entry.
"""


def _make(module: str, name: str) -> Op:
    """Makes operation ``name`` by function ``operation`` of ``ptxgen.ops.{module}``."""
    found: Op = import_module(f"ptxgen.ops.{module}").operation(name)
    return found


def _makers() -> dict[str, Callable[[], Op]]:
    """Returns the functions that make the library's operations, by operation name."""
    found: dict[str, Callable[[], Op]] = {}
    for name in (*(row.name for row in (*ROWS, *INNER)), *(f"cast_{d}" for d in FULL)):
        found[name] = partial(_make, "pointwise", name)
    for name in REDUCTIONS:
        found[name] = partial(_make, "column_reductions", name)
    for name, row in TABLE.items():
        found[f"{name}_rows" if row.form else name] = partial(_make, "row_reductions", name)
        if row.form in ("reduce", "along"):
            found[name] = partial(_make, "reductions", name)
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

    Dispatch functions are generated from the tables in this call; ``ptxgen.dispatch.prove`` proves
    them like those of the package.

    Raises SpecError, and adds nothing, if the name, a table or a kernel exists already.
    """
    if op.name in OPERATIONS:
        raise SpecError(f"there is an operation {op.name!r} already")
    given = tables or {}
    functions = dispatch.made(given)
    tiles.register(given)
    dispatch.install(functions)
    OPERATIONS[op.name] = op
    return op.function
