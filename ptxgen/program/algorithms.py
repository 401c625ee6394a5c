"""Choice of an algorithm: the first of a list that can compute a result records its launches.

An algorithm is a name and a function that records launches, or raises :class:`RefusedError` before
it records any. The program keeps each refusal and its reason, and ``explain`` prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ptxgen.errors import UncoveredError
from ptxgen.spec import Problem


class RefusedError(Exception):
    """Raised by an algorithm that cannot compute a call; the message is the reason."""


class Algorithm(NamedTuple):
    """An algorithm: its name, and a function that records its launches."""

    name: str
    launch: Callable[[], None]


@dataclass(frozen=True)
class ChosenAlgorithm:
    """The algorithm that computes the result ``what`` of a program. ``served``: its name;
    ``refused``: name and reason of each algorithm that was tried before it.
    """

    what: str
    served: str
    refused: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        others = (f"  not by {name}: {reason}" for name, reason in self.refused)
        return "\n".join((f"{self.what}: {self.served}", *others))


class Recorder(Protocol):
    """The part of :class:`ptxgen.program.build.ProgramBuilder` that algorithms use."""

    algorithms: list[ChosenAlgorithm]

    def require(self, problem: Problem) -> None: ...


def needs(holds: object, reason: str) -> None:
    """Raises :class:`RefusedError` with ``reason`` unless the condition ``holds`` is true."""
    if not holds:
        raise RefusedError(reason)


def needs_kernel(b: Recorder, problem: Problem) -> None:
    """Raises :class:`RefusedError` if no kernel can compute ``problem`` on the program's device."""
    try:
        b.require(problem)
    except UncoveredError:
        values = ", ".join(f"{name} {value}" for name, value in problem.values)
        raise RefusedError(f"no kernel serves {problem} with {values}") from None


def first_served(b: Recorder, what: str, algorithms: Iterable[Algorithm]) -> None:
    """Records the launches of the first algorithm that can compute the result ``what``; one that
    cannot raises :class:`RefusedError`. Raises UncoveredError, with all reasons, if none can.
    """
    refused: list[tuple[str, str]] = []
    at = len(b.algorithms)  # ahead of the algorithms that ``launch`` chooses in turn
    for name, launch in algorithms:
        try:
            launch()
        except RefusedError as reason:
            refused.append((name, str(reason)))
        else:
            b.algorithms.insert(at, ChosenAlgorithm(what, name, tuple(refused)))
            return
    raise UncoveredError(what, "; ".join(f"not by {name}: {reason}" for name, reason in refused))
