"""Problem spaces: the variables of a kind of problem, their domains, and derived variables.

A :class:`Space` is stated once per kind of problem and read by the emitter (the arguments of a
dispatch function), the prover (for which problems a statement must hold), ``explain``, and tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr
from ptxgen.numerics.signature import DIM_MAX

SMS_MAX = 1024
"""Most streaming multiprocessors of a GPU for which the prover proves its goals."""


@dataclass(frozen=True)
class Between:
    """A domain of all integers from ``low`` to ``high``."""

    low: int
    high: int

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low} .. {self.high}"


@dataclass(frozen=True)
class OneOf:
    """A domain of a few integers, ``values``, ascending."""

    values: tuple[int, ...]

    @property
    def low(self) -> int:
        """Smallest value of the domain."""
        return self.values[0]

    @property
    def high(self) -> int:
        """Largest value of the domain."""
        return self.values[-1]

    def __contains__(self, value: int) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


Domain = Between | OneOf

SIZE = Between(1, DIM_MAX)
"""Domain of the size of a dimension that is not empty."""
ALIGNMENT = OneOf((1, 2, 4, 8, 16))
"""Domain of alignments: the largest of these that divides an operand's address and its row pitch,
in bytes."""


@dataclass(frozen=True)
class Space:
    """A problem space: all problems of one kind.

    ``variables``: arguments of a problem, in order, each with its domain; ``SMS``, the streaming
    multiprocessors, is one of them. ``derived``: further variables, in order, each an expression
    over those before it. ``bounded``: derived variables for which the prover first finds a constant
    bound, a lemma that other proofs need. ``within``: a further predicate that holds for every
    problem.
    """

    name: str
    variables: tuple[tuple[str, Domain], ...]
    derived: tuple[tuple[str, Expr], ...] = ()
    bounded: tuple[str, ...] = ()
    within: Expr = TRUE

    def __post_init__(self) -> None:
        known = set(self.arguments)
        if len(known) < len(self.variables):
            raise SpecError(f"space {self.name!r}: variables {self.arguments}: one occurs twice")
        for name, formula in self.derived:
            if unknown := formula.variables() - known:
                raise SpecError(
                    f"space {self.name!r}: {name} reads {sorted(unknown)}, but may read only "
                    f"{sorted(known)}"
                )
            known.add(name)
        if unknown := self.within.variables() - known:
            raise SpecError(f"space {self.name!r}: within reads {sorted(unknown)}")

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments of a dispatch function, in order."""
        return tuple(name for name, _ in self.variables)

    @property
    def names(self) -> frozenset[str]:
        """Names of all variables, for predicates, grids and scratch sizes."""
        return frozenset((*self.arguments, *(name for name, _ in self.derived)))

    @property
    def domains(self) -> dict[str, Domain]:
        """Domain of each argument, by name."""
        return dict(self.variables)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the dimensions: the arguments whose domain is a range, except SMS."""
        ranges = (name for name, domain in self.variables if isinstance(domain, Between))
        return tuple(name for name in ranges if name != "SMS")

    def needed(self, names: Iterable[str]) -> list[tuple[str, Expr]]:
        """Returns the derived variables among ``names`` and those that they depend on, in order."""
        wanted = set(names)
        for name, formula in reversed(self.derived):
            if name in wanted:
                wanted |= formula.variables()
        return [(name, formula) for name, formula in self.derived if name in wanted]

    def environment(self, values: Mapping[str, int]) -> dict[str, int]:
        """Returns ``values`` of the arguments, extended by the derived variables."""
        found = dict(values)
        for name, formula in self.derived:
            found[name] = formula.evaluate(found)
        return found
