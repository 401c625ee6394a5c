"""The operations by name. The rooms below fill it: programs are built of whatever is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from ptxgen.tiles.lazy import Lazy

Makers = Mapping[str, Callable[[], Any]]


class Operations(MutableMapping[str, Any]):
    """Every operation (:class:`ptxgen.program.operation.Op`), made when it is first asked for."""

    def __init__(self) -> None:
        self._sources: list[Callable[[], Makers]] = []
        self._found: Lazy[str, Any] = Lazy()

    def fill(self, makers: Callable[[], Makers]) -> None:
        """Adds operations, whose names are asked for when the first operation is."""
        self._sources.append(makers)

    @property
    def _all(self) -> Lazy[str, Any]:
        while self._sources:
            self._found.add(self._sources[0]())
            del self._sources[0]
        return self._found

    def __getitem__(self, name: str) -> Any:
        return self._all[name]

    def __setitem__(self, name: str, op: Any) -> None:
        self._all[name] = op

    def __delitem__(self, name: str) -> None:
        del self._all[name]

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


OPERATIONS = Operations()
