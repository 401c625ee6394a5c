"""Gradients of formulas, as formulas: reverse-mode differentiation of the graph.

If a value ``y`` has the gradient ``d``, an operand gets ``d`` times the derivative of y by it. The
gradients of a value that is used more than once are added in reverse order of its uses, so the
order of roundings is fixed. Levels follow (:mod:`ptxgen.numerics.formula`): the gradient of a
row's value that elements use is summed over the row; the gradient of a row's sum is broadcast to
its elements.

Derivatives where a function is not smooth: ``abs`` at 0: 0; ``max`` and ``min`` of equal operands:
a half for each; a row's maximum or minimum: an equal share for each element that attains it;
rounding to an integer: 0; rounding to 16 bits: 1; ``where``: that of the selected operand.
Integers, bools and bit casts have none.

The gradient by a complex value is that by its real part plus i times that by its imaginary part,
PyTorch's convention: of ``z * w`` by z it is ``d * conj(w)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxgen.errors import GradError
from ptxgen.numerics.formula import (
    COMPLEX,
    DIFFERENTIABLE,
    FLOATS,
    LEVELS,
    Node,
    complex_of,
    const,
    imag,
    ordered,
    real,
    where,
)

_WITHOUT_GRADIENT = (
    "floor",
    "ceil",
    "trunc",
    "round",
    "bits",
    "float",
    "index",
    "length",
    "const",
    "input",
)
"""Operations through which no gradient flows to an operand: they round to integers, reinterpret
bits, or have no operands."""


def gradients(
    results: Sequence[Node], seeds: Sequence[Node], wanted: Sequence[Node]
) -> list[Node | None]:
    """Returns the gradients by the nodes ``wanted``; None where the results do not depend on one.

    ``seeds``: the gradients by ``results``. Raises GradError for a function without a derivative.
    """
    needed = set(wanted)
    for node in ordered(results):
        if any(a in needed for a in node.args):
            needed.add(node)
    found: dict[Node, Node] = {}

    def add(node: Node, gradient: Node) -> None:
        if node.type not in DIFFERENTIABLE or node not in needed:
            return
        if node.level == "row" and LEVELS.index(gradient.level) > LEVELS.index("row"):
            gradient = gradient.reduce("sum")
        found[node] = _sum(found[node], gradient) if node in found else gradient

    for result, seed in zip(results, seeds, strict=True):
        add(result, seed)
    for node in reversed(ordered(results)):
        if node in found and node.args:
            for argument, gradient in zip(
                node.args, _operand_gradients(node, found[node]), strict=True
            ):
                if gradient is not None:
                    add(argument, gradient)
    return [found.get(node) for node in wanted]


def _sum(x: Node, y: Node) -> Node:
    """Returns ``x + y``; of complex values part by part, without the parts that are constant
    zeros, which the gradients of "real" and "imag" have.
    """
    if x.type not in COMPLEX:
        return x + y
    pairs = (real(x), real(y)), (imag(x), imag(y))
    return complex_of(*(b if _is_zero(a) else a if _is_zero(b) else a + b for a, b in pairs))


def _is_zero(x: Node) -> bool:
    return x.op == "const" and x.data == 0


def _operand_gradients(y: Node, d: Node) -> Sequence[Node | None]:
    """Returns the gradient by each operand of ``y``, None for operands without one, from ``d``, the
    gradient by y.
    """
    op, args = y.op, y.args
    if op in _WITHOUT_GRADIENT or y.type not in DIFFERENTIABLE:
        return (None,) * len(args)
    if op == "complex":
        return real(d), imag(d)
    a = args[0]
    if op == "real":
        return (complex_of(d, const(0.0, d.type)),)
    if op == "imag":
        return (complex_of(const(0.0, d.type), d),)
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
        return _call_gradients(y, d)
    if op == "reduce":
        return (_reduction_gradient(y, d),)
    raise GradError(f"{op} of a formula has no derivative")


def _call_gradients(y: Node, d: Node) -> Sequence[Node | None]:
    """Returns the gradient by each operand of ``y``, a call of a function, from ``d``, the gradient
    by y. Raises GradError for a function without a derivative.
    """
    function = y.data
    if function.pullback is not None:
        found: Sequence[Node | None] = function.pullback(d, *y.args, y)
        return found
    if function.slope is None:
        raise GradError(
            f"{function} has no derivative; detach what is computed of it, or use another function"
        )
    return [d * slope for slope in function.slope(*y.args, y)]


def _reduction_gradient(y: Node, d: Node) -> Node:
    """Returns the gradient by each element of the row that ``y`` reduces, from ``d``, the gradient
    by y.
    """
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
