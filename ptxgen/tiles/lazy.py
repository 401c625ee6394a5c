"""A mapping whose values are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Lazy(MutableMapping[Key, Value]):
    """A mapping given by what makes each value. Building all specs costs more than a first call."""

    def __init__(self, makers: Mapping[Key, Callable[[], Value]] | None = None) -> None:
        self._makers = dict(makers or {})
        self._made: dict[Key, Value] = {}

    def __getitem__(self, key: Key) -> Value:
        if key not in self._made:
            self._made[key] = self._makers[key]()
        return self._made[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        self._makers[key] = lambda: value
        self._made[key] = value

    def __delitem__(self, key: Key) -> None:
        del self._makers[key]
        self._made.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._makers

    def __iter__(self) -> Iterator[Key]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def add(self, makers: Mapping[Key, Callable[[], Value]]) -> None:
        """Adds values that are made later."""
        self._makers.update(makers)


class Filled(MutableMapping[Key, Value]):
    """A mapping whose content is made whole, when anything in it is first asked for."""

    def __init__(self, fill: Callable[[], dict[Key, Value]]) -> None:
        self._fill = fill
        self._content: dict[Key, Value] | None = None

    @property
    def content(self) -> dict[Key, Value]:
        """What it holds."""
        if self._content is None:
            self._content = self._fill()
        return self._content

    def __getitem__(self, key: Key) -> Value:
        return self.content[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        self.content[key] = value

    def __delitem__(self, key: Key) -> None:
        del self.content[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)
