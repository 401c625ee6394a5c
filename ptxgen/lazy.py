"""Module attributes, functions and mapping values that are imported or computed on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Makers = Mapping[Key, Callable[[], Value]]


def resolve(home: str) -> Any:
    """Returns the object at ``"package.module:name"``, or the module ``"package.module"``."""
    from pkgutil import resolve_name

    return resolve_name(home)


def attributes(
    module: str, load: Callable[[str], Any], names: Callable[[], Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of a module that loads its names on first use.

    ``load`` returns the value of a name, and raises LookupError for a name that it does not know.
    ``names`` returns the public names.
    """

    def get(name: str) -> Any:
        try:
            if name.startswith("__") and name != "__all__":
                raise LookupError
            value = load(name)
        except LookupError:
            raise AttributeError(f"module {module!r} has no attribute {name!r}") from None
        setattr(sys.modules[module], name, value)  # the next look-up is an ordinary one
        return value

    return get, lambda: sorted(names())


def function(home: str) -> Callable[..., Any]:
    """Returns a function that imports ``"package.module:name"`` when it is called, and calls it."""

    def call(*arguments: Any, **options: Any) -> Any:
        return resolve(home)(*arguments, **options)

    return call


def made(values: Mapping[Key, Value]) -> Makers[Key, Value]:
    """Wraps each of ``values`` in a function that returns it: the form of a :class:`LazyDict`
    source.
    """
    return {key: lambda value=value: value for key, value in values.items()}  # type: ignore[misc]


class LazyDict(MutableMapping[Key, Value]):
    """A mapping that computes each value at its first look-up.

    A source is a mapping from keys to functions that return the values, or a function that returns
    such a mapping and is called at the first look-up of any key.
    """

    def __init__(self, *sources: Makers[Key, Value] | Callable[[], Makers[Key, Value]]) -> None:
        self._sources = list(sources)
        self._makers: dict[Key, Callable[[], Value]] = {}
        self._values: dict[Key, Value] = {}

    def add(self, source: Makers[Key, Value] | Callable[[], Makers[Key, Value]]) -> None:
        """Adds a source (as in the class's docstring), whose keys are new."""
        self._sources.append(source)

    @property
    def _known(self) -> dict[Key, Callable[[], Value]]:
        while self._sources:
            source = self._sources[0]
            self._makers.update(source() if callable(source) else source)
            del self._sources[0]
        return self._makers

    def __getitem__(self, key: Key) -> Value:
        if key not in self._values:
            self._values[key] = self._known[key]()
        return self._values[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        self._known[key] = lambda: value
        self._values[key] = value

    def __delitem__(self, key: Key) -> None:
        del self._known[key]
        self._values.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def __iter__(self) -> Iterator[Key]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
