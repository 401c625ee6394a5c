"""Names of a module that are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def later(
    module: str, homes: Mapping[str, str], public: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module whose names have ``homes``, and which shows those
    that are ``public``.

    A home is "package.module:name", or "package.module" for the module itself.
    """

    def load(name: str) -> Any:
        from pkgutil import resolve_name

        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = resolve_name(homes[name])
        setattr(sys.modules[module], name, value)  # the next look-up is an ordinary one
        return value

    def names() -> list[str]:
        return sorted(public)

    return load, names


def called(home: str) -> Callable[..., Any]:
    """The function "package.module:name", whose module is loaded when it is called."""

    def call(*arguments: Any, **options: Any) -> Any:
        from pkgutil import resolve_name

        return resolve_name(home)(*arguments, **options)

    return call
