"""Values nested in tuples, lists and dicts, such as arguments and results of operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def leaves(tree: Any, kind: type | tuple[type, ...]) -> Iterator[Any]:
    """Yields the values of type ``kind`` within tuples, lists and dicts, in order."""
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, tuple | list):
        for each in tree:
            yield from leaves(each, kind)
    elif isinstance(tree, dict):
        yield from leaves(tuple(tree.values()), kind)
