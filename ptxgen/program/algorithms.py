"""Algorithms that compute a result, in order: the first that serves a call is taken.

An algorithm is a name and a function that records launches, or raises :class:`RefusedError` before
it has recorded any. What was refused, and why, stays in the program, and ``explain`` prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ptxgen.errors import UncoveredError
from ptxgen.spec import Problem


class RefusedError(Exception):
    """An algorithm does not serve a call: the message says why."""


class Algorithm(NamedTuple):
    """A name, and a function that records the launches."""

    name: str
    launch: Callable[[], None]


@dataclass(frozen=True)
class ChosenAlgorithm:
    """The algorithm that computes ``what``, and why each one before it was refused."""

    what: str
    served: str
    refused: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        others = (f"  not by {name}: {reason}" for name, reason in self.refused)
        return "\n".join((f"{self.what}: {self.served}", *others))


class Recorder(Protocol):
    """The part of :class:`ptxgen.program.build.ProgramBuilder` that algorithms need."""

    algorithms: list[ChosenAlgorithm]

    def require(self, problem: Problem) -> None: ...


def needs(holds: object, reason: str) -> None:
    """Raises :class:`RefusedError` with ``reason`` unless it ``holds``."""
    if not holds:
        raise RefusedError(reason)


def needs_kernel(b: Recorder, problem: Problem) -> None:
    """Raises :class:`RefusedError` if no kernel serves ``problem`` where the program is to run."""
    try:
        b.require(problem)
    except UncoveredError:
        values = ", ".join(f"{name} {value}" for name, value in problem.values)
        raise RefusedError(f"no kernel serves {problem} with {values}") from None


def first_served(b: Recorder, what: str, algorithms: Iterable[Algorithm]) -> None:
    """Records the launches of the first algorithm that is not refused."""
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
