"""What a problem is: its variables, what they may be, and what follows from them.

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
"""Most streaming multiprocessors of a GPU that statements are proved for."""


@dataclass(frozen=True)
class Between:
    """All integers from ``low`` to ``high``."""

    low: int
    high: int

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low} .. {self.high}"


@dataclass(frozen=True)
class OneOf:
    """A few integers, ascending."""

    values: tuple[int, ...]

    @property
    def low(self) -> int:
        """The least."""
        return self.values[0]

    @property
    def high(self) -> int:
        """The largest."""
        return self.values[-1]

    def __contains__(self, value: int) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


Domain = Between | OneOf

SIZE = Between(1, DIM_MAX)
"""A dimension that is not empty."""
ALIGNMENT = OneOf((1, 2, 4, 8, 16))
"""Largest of these that divides an operand's address and the byte distance of its rows."""


@dataclass(frozen=True)
class Space:
    """The problems of one kind.

    ``variables``: what a problem is given by, in order, each with what it may be; ``SMS``, the
    streaming multiprocessors, is one of them. ``derived``: what follows from these, in order, each
    a formula over those before it. ``bounded``: derived variables for which the prover finds a
    constant bound first, a lemma that other proofs need. ``within``: what also holds of every
    problem that is served.
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
        """What a dispatch function is given, in order."""
        return tuple(name for name, _ in self.variables)

    @property
    def names(self) -> frozenset[str]:
        """What ``requires``, ``prefer``, grids and scratch sizes may read."""
        return frozenset((*self.arguments, *(name for name, _ in self.derived)))

    @property
    def domains(self) -> dict[str, Domain]:
        """What each variable may be."""
        return dict(self.variables)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The variables that are dimensions: all ranges but that of the device's."""
        ranges = (name for name, domain in self.variables if isinstance(domain, Between))
        return tuple(name for name in ranges if name != "SMS")

    def needed(self, names: Iterable[str]) -> list[tuple[str, Expr]]:
        """The derived variables among ``names``, and those that they follow from, in order."""
        wanted = set(names)
        for name, formula in reversed(self.derived):
            if name in wanted:
                wanted |= formula.variables()
        return [(name, formula) for name, formula in self.derived if name in wanted]

    def environment(self, values: Mapping[str, int]) -> dict[str, int]:
        """``values`` of the variables (and of others), with what follows from them."""
        found = dict(values)
        for name, formula in self.derived:
            found[name] = formula.evaluate(found)
        return found
