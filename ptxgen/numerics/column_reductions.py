"""Reductions down columns: their signatures and formulas. The contract is ``rows/1``.

The formulas are those of row reductions (:mod:`ptxgen.numerics.reduction_order`): a column counts
as a row of N elements, whatever its stride.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxgen.numerics.formula import (
    STORED,
    Formula,
    Node,
    Output,
    cast,
    length,
    read,
    trace,
)
from ptxgen.numerics.signature import Signature

FLOATS = ("float32", "bfloat16", "float16", "float64")
NUMBERS = (*FLOATS, "int32", "int64")


@dataclass(frozen=True)
class Reduction:
    """A reduction down columns: its signature, formula and argument kinds.

    ``function``: builds the result nodes from the argument nodes; to the formula, a column is a row
    of N elements. ``kinds``: argument name to one of :data:`ptxgen.numerics.formula.KINDS`.
    ``takes``: accepted dtypes of arguments of kind "element"; other arguments have the compute
    type.
    """

    signature: Signature
    function: Callable[..., Any]
    kinds: Mapping[str, str]
    takes: tuple[str, ...]

    def formula(self, dtypes: tuple[str, ...], out: str) -> Formula:
        """Formula for arguments of ``dtypes`` and results of dtype ``out`` (short names)."""
        return _formula(self.function, tuple(self.kinds.items()), dtypes, out, self.results)

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the reduction's results."""
        return self.signature.results


@cache
def _formula(
    function: Callable[..., Any],
    kinds: tuple[tuple[str, str], ...],
    dtypes: tuple[str, ...],
    out: str,
    results: tuple[str, ...],
) -> Formula:
    wide = computed(dtypes)
    nodes = {
        name: cast(read(name, dtype, kind), wide)
        for (name, kind), dtype in zip(kinds, dtypes, strict=True)
    }
    found = trace(function, nodes)
    outputs = (
        Output(name, out, cast(node, STORED[out]))
        for name, node in zip(results, found, strict=True)
    )
    return Formula(tuple(outputs))


def computed(dtypes: tuple[str, ...]) -> str:
    """Returns the compute type for arguments of ``dtypes`` (short): the last of their compute types
    in the order i32, i64, f32, f64.
    """
    order = ("i32", "i64", "f32", "f64")
    return max((STORED[d] for d in dtypes), key=order.index)


def _reducer(how: str) -> Callable[[Node], Node]:
    def reduced(x: Node) -> Node:
        return x.reduce(how)

    reduced.__name__ = how
    return reduced


def mean(x: Node) -> Node:
    """Mean of a column of N elements, ``sum(x) / N``."""
    return x.reduce("sum") / cast(length(), x.type)


def rms_norm_wgrad(dy: Node, x: Node, rstd: Node) -> Node:
    """Gradient by an RMS norm's weight, for one column: ``sum(dy * (x * rstd))``."""
    return (dy * (x * rstd)).reduce("sum")


def layer_norm_wgrad(dy: Node, x: Node, mean: Node, rstd: Node) -> tuple[Node, Node]:
    """Gradients by a layer norm's weight and bias, for one column:
    ``sum(dy * ((x - mean) * rstd))`` and ``sum(dy)``.
    """
    return (dy * ((x - mean) * rstd)).reduce("sum"), dy.reduce("sum")


def _reduction(how: str, function: Callable[..., Any], takes: tuple[str, ...]) -> Reduction:
    forms = {"": {"x": "O N I", "out": "O I"}}
    signature = Signature(f"{how}_columns", ("x",), ("out",), forms, ("O", "N", "I"))
    return Reduction(signature, function, {"x": "element"}, takes)


def _norm_wgrad(
    function: Callable[..., Any], statistics: tuple[str, ...], out: tuple[str, ...]
) -> Any:
    arguments = ("dy", "x", *statistics)
    forms = {"dy": "... I", "x": "... I"}
    forms |= dict.fromkeys(statistics, "...") | dict.fromkeys(out, "I")
    name = function.__name__
    signature = Signature(name, arguments, out, {"": forms}, ("M", "I"))
    kinds = {"dy": "element", "x": "element"} | dict.fromkeys(statistics, "column")
    return Reduction(signature, function, kinds, FLOATS)


REDUCTIONS = {
    r.signature.name: r
    for r in (
        *(_reduction(how, _reducer(how), NUMBERS) for how in ("sum", "prod", "max", "min")),
        _reduction("mean", mean, FLOATS),
        _norm_wgrad(rms_norm_wgrad, ("rstd",), ("dweight",)),
        _norm_wgrad(layer_norm_wgrad, ("mean", "rstd"), ("dweight", "dbias")),
    )
}
"""Column reductions by name."""
