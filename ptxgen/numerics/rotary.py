"""Rotary embedding of heads with the roundings of `transformers`: formulas of one pair of elements.

``rotate`` rounds both products and their sum to the dtype of the arrays (contract ``pointwise/1``).
"""

from __future__ import annotations

from ptxgen.numerics.formula import Node, cast


def rotate(first: Node, second: Node, cos: Node, sin: Node) -> tuple[Node, Node]:
    """Returns ``first * cos - second * sin`` and ``second * cos + first * sin``; each product is
    rounded to the dtype of the array ``first``.
    """
    dtype = str(first.data.dtype)

    def product(x: Node, y: Node) -> Node:
        return cast(x * y, dtype)

    return (
        product(first, cos) - product(second, sin),
        product(second, cos) + product(first, sin),
    )
