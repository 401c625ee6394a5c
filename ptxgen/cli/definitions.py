"""Definitions of functions in stubs, laid out as the formatter does."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 100
"""Most characters in a line of a stub."""


def defined(name: str, plain: list[str], named: list[str], returns: str) -> Iterator[str]:
    """Yields the lines of a definition whose arguments are ``plain``, then ``named`` by keyword."""
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
