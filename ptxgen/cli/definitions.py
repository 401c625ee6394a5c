"""Text of function definitions in stubs, in the formatter's layout."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 100
"""Maximum number of characters in a line of a stub."""


def defined(name: str, plain: list[str], named: list[str], returns: str) -> Iterator[str]:
    """Yields the lines of a stub's function ``name``; ``plain``: texts of its positional
    parameters, ``named``: of the keyword-only ones, ``returns``: its return type.
    """
    several = any(each.startswith("*") for each in plain)
    bare = ["*"] if any(not each.startswith("**") for each in named) and not several else []
    arguments = [*plain, *bare, *named]
    line = f"def {name}({', '.join(arguments)}) -> {returns}: ..."
    if len(line) <= WIDTH:
        yield line
        return
    yield f"def {name}("
    yield from (f"    {argument}," for argument in arguments)
    yield f") -> {returns}: ..."
