"""Functions of formulas: each a sequence of IEEE operations, with its largest error.

A function is a formula of primitives, so that kernels and oracle compute the same sequence.
"""

from __future__ import annotations

from typing import Any

from ptxgen.numerics.formula import Function, Node, primitive


def sqrt(x: Node) -> Node:
    """The square root, rounded once."""
    return primitive("sqrt", x)


def _rsqrt(x: Node) -> Node:
    return 1 / sqrt(x)


rsqrt = Function("rsqrt", _rsqrt, 1, slope=lambda x, y: (-0.5 * (y / x),), types=("f32", "f64"))
"""``1 / sqrt(x)``, two roundings."""


def power(x: Any, y: Any) -> Node:
    """``x ** y``."""
    raise NotImplementedError
