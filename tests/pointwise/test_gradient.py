"""Gradients of formulas, beside differences of the formulas themselves, in f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxgen.errors import GradError
from ptxgen.numerics.formula import Function, Node, cast, fma, primitive, read, trace, where
from ptxgen.numerics.gradient import gradients
from ptxgen.oracle.formula import evaluate
from ptxgen.oracle.reduction_order import reduce

STEP = 1e-6
POINTS = np.array([[0.3, 1.7, -0.6, 2.2, -1.4, 0.9], [1.1, -2.3, 0.4, -0.8, 1.9, 0.7]])


def value(node: Node, x: Any, y: Any, d: Any = None) -> Any:
    given = {"x": x, "y": y, "d": d}
    return np.broadcast_to(evaluate([node], given, reduce, x.shape[-1])[0], x.shape)


FORMULAS: dict[str, Callable[..., Node]] = {
    "arithmetic": lambda x, y: (x + y) * x - y / x,
    "fma": lambda x, y: fma(x, y, x) * fma(y, y, x),
    "roots": lambda x, y: primitive("sqrt", abs(x)) * -y,
    "extremes": lambda x, y: primitive("max", x, y) * primitive("min", x * 2, y),
    "choices": lambda x, y: where(x > y, x * x, y * y * x),
    "shared": lambda x, y: (x * y) * (x * y) + x * y,
    "rounded": lambda x, y: primitive("floor", x) * y + primitive("round", y) * x,
    "softmax": lambda x, y: _softmax(x) * y,
    "mean": lambda x, y: (x - x.reduce("sum") / 6) * y,
    "norm": lambda x, y: x / primitive("sqrt", (x * x).reduce("sum") + 1) * y,
    "product": lambda x, y: x.reduce("prod") * y,
    "largest": lambda x, y: x.reduce("max") * y - y.reduce("min"),
}


def _softmax(x: Node) -> Node:
    shifted = x - x.reduce("max")
    weight = fma(shifted, shifted, 1.0) / fma(shifted, 0.5, 7.0)  # of primitives that f64 has
    return weight / weight.reduce("sum")


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_are_derivatives(name) -> None:
    """Gradients match central differences of the weighted sum of results, for every element."""
    x, y = read("x", "f64"), read("y", "f64")
    (result,) = trace(FORMULAS[name], {"x": x, "y": y})
    found = gradients([result], [read("d", "f64")], [x, y])
    at_x, at_y, d = POINTS, POINTS[::-1] * 1.1, np.array([[1.0, -2, 0.5, 3, 1, -1]] * 2)

    def total(x: Any, y: Any) -> Any:
        return (value(result, x, y) * d).sum()

    for which, gradient in enumerate(found):
        assert gradient is not None
        exact = value(gradient, at_x, at_y, d)
        for place in np.ndindex(*POINTS.shape):
            moved = np.zeros_like(POINTS)
            moved[place] = STEP
            sides = [
                (at_x + s * moved, at_y) if which == 0 else (at_x, at_y + s * moved)
                for s in (1, -1)
            ]
            slope = (total(*sides[0]) - total(*sides[1])) / (2 * STEP)
            assert abs(slope - exact[place]) < 1e-5 * max(1, abs(slope)), (which, place)


def test_what_has_no_derivative() -> None:
    x, y, d = (read(n, "f32") for n in "xyd")
    assert gradients([primitive("floor", x)], [d], [x, y]) == [None, None]
    assert gradients([x + 1], [d], [y]) == [None]
    opaque = Function("opaque", lambda x: x * x, 1)
    with pytest.raises(GradError, match="opaque has no derivative"):
        gradients([opaque(x)], [d], [x])
    assert gradients([opaque(y) * x], [d], [x])[0] is d * opaque(y)
    narrow = gradients([cast(x * y, "bf16")], [d], [x])[0]
    assert narrow is d * y  # rounding to 16 bits is passed


def test_products_with_zeros() -> None:
    x = read("x", "f64")
    (gradient,) = gradients([x.reduce("prod")], [read("d", "f64")], [x])
    rows = np.array([[2.0, 3, 4], [2, 0, 4], [0, 0, 4]])
    got = value(gradient, rows, rows, np.ones((3, 1)))
    np.testing.assert_array_equal(got, [[12, 8, 6], [0, 8, 0], [0, 0, 0]])


def test_equals_share_the_gradient() -> None:
    x, y, d = (read(n, "f64") for n in "xyd")
    one = np.ones((1, 4))
    for by in gradients([primitive("max", x, y)], [d], [x, y]):
        np.testing.assert_array_equal(value(by, one, one, one), one / 2)
    (of_row,) = gradients([x.reduce("max")], [d], [x])
    np.testing.assert_array_equal(value(of_row, one, one, one[:, :1]), one / 4)
