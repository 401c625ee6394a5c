"""Gradients of formulas, which are formulas: reverse accumulation over the graph.

Of a value ``y`` whose gradient is ``d``, an operand's gradient is ``d`` times the derivative by it.
Those of a value that is used several times are added, in the order opposite to that of the formula,
so that each has one rounding order. Levels follow (:mod:`ptxgen.numerics.formula`): what a row's
number gives to each element is added up over the row, and a row's sum gives its gradient to each
element.

Where a function is not smooth, these are the derivatives: of ``abs`` at 0: 0; of ``max`` and
``min`` of equals: a half of each; of a row's largest or smallest: an equal part of each of them; of
rounding to an integer 0, of rounding to 16 bits 1, of choosing by ``where`` that of what is chosen.
Integers, bools and bits have none.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxgen.errors import GradError
from ptxgen.numerics.formula import FLOATS, LEVELS, Node, const, ordered, where

_FLAT = ("floor", "ceil", "trunc", "round", "bits", "float", "index", "length", "const", "input")
"""Operations that pass no gradient to operands, or have no operands."""


def gradients(
    results: Sequence[Node], seeds: Sequence[Node], wanted: Sequence[Node]
) -> list[Node | None]:
    """The gradients of ``wanted`` from those of ``results``; None where there is none.

    Raises GradError for a function whose derivative is not known.
    """
    needed = set(wanted)
    for node in ordered(results):
        if any(a in needed for a in node.args):
            needed.add(node)
    found: dict[Node, Node] = {}

    def add(node: Node, gradient: Node) -> None:
        if node.type not in FLOATS or node not in needed:
            return
        if node.level == "row" and LEVELS.index(gradient.level) > LEVELS.index("row"):
            gradient = gradient.reduce("sum")
        found[node] = found[node] + gradient if node in found else gradient

    for result, seed in zip(results, seeds, strict=True):
        add(result, seed)
    for node in reversed(ordered(results)):
        if node in found and node.args:
            for argument, gradient in zip(node.args, _shares(node, found[node]), strict=True):
                if gradient is not None:
                    add(argument, gradient)
    return [found.get(node) for node in wanted]


def _shares(y: Node, d: Node) -> Sequence[Node | None]:
    """Returns the gradients that ``y``, whose own gradient is ``d``, passes to its operands."""
    op, args = y.op, y.args
    if op in _FLAT or y.type not in FLOATS:
        return (None,) * len(args)
    a = args[0]
    b = args[-1]
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        share = d / b
        return share, -(share * y)
    if op == "fma":
        return d * args[1], d * a, d
    if op == "sqrt":
        return ((d * 0.5) / y,)
    if op == "neg":
        return (-d,)
    if op == "abs":
        return (where(a > 0, d, where(a < 0, -d, 0.0)),)
    if op in ("max", "min"):
        tie = where(a == b, d * 0.5, 0.0)
        first, second = (a > b, b > a) if op == "max" else (a < b, b < a)
        return where(first, d, tie), where(second, d, tie)
    if op == "select":
        return None, where(a, d, 0.0), where(a, 0.0, d)
    if op == "convert":
        return (Node("convert", (d,), a.type),) if a.type in FLOATS else (None,)
    if op == "round_to":
        return (d,)
    if op == "call":
        return _called(y, d)
    if op == "reduce":
        return (_reduced(y, d),)
    raise GradError(f"{op} of a formula has no derivative")


def _called(y: Node, d: Node) -> Sequence[Node | None]:
    """Returns the gradients that the call of a function passes to its operands."""
    function = y.data
    if function.slope is None:
        raise GradError(
            f"{function} has no derivative; detach what is computed of it, or use another function"
        )
    return [d * slope for slope in function.slope(*y.args, y)]


def _reduced(y: Node, d: Node) -> Node:
    """Returns the gradient that a reduction passes to each element of its row."""
    x, how = y.args[0], y.data
    if how == "sum":
        return d
    if how == "prod":  # without dividing by zero: one zero leaves its own gradient, two leave none
        zero = x == 0
        zeros = where(zero, const(1.0, x.type), 0.0).reduce("sum")
        others = where(zero, 1.0, x).reduce("prod")
        alone = where(zeros == 1, others, 0.0)
        return d * where(zero, alone, where(zeros == 0, y, 0.0) / where(zero, 1.0, x))
    chosen = x == y
    count = where(chosen, const(1.0, x.type), 0.0).reduce("sum")
    return where(chosen, d / count, 0.0)
