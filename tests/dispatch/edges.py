"""The edges of where a kernel is right: problems on both sides, from its ``requires`` itself.

From the least problem that ``requires`` admits, each variable is moved up and down until it admits
the problem no more. The last that it admits is *inside*, the next is *outside*. Nothing here knows
what a predicate looks like: one that is too wide has its edges elsewhere, and the kernel is run
there.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ptxgen.expr import Expr
from ptxgen.spec import OneOf, Space
from ptxgen.spec.space import Between, Domain

Values = dict[str, int]
"""The variables of a space, by name."""

LIE = ("ALIGN", "VECTOR")
"""Prefixes of the variables that describe alignment of arrays."""
FAR = 1 << 20
"""Beyond it, a size is large."""
MANY = 132
"""SMS, where nothing asks for another number."""


@dataclass(frozen=True)
class Edge:
    """Two problems that differ in ``variable`` alone, by one step.

    ``inside`` is admitted. ``outside`` is not, for the sake of ``unmet``; it is None at the end of
    the variable's domain.
    """

    variable: str
    inside: Values
    outside: Values | None
    unmet: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.variable}={self.inside[self.variable]}"


def conjuncts(predicate: Expr) -> Iterator[Expr]:
    """The terms of a conjunction."""
    if predicate.op == "and":
        for arg in predicate.args:
            yield from conjuncts(arg)
    else:
        yield predicate


@functools.cache
def holds(space: Space, predicate: Expr) -> Callable[[Values], bool]:
    """Whether a predicate holds, of the space's variables; compiled, as it is asked often."""
    for name, formula in reversed(space.derived):
        predicate = predicate.substitute({name: formula})
    code = compile(predicate.python(), "requires", "eval")
    return lambda values: bool(eval(code, {"max": max, "min": min}, values))


def steps(domain: Domain, start: int, up: bool) -> list[int]:
    """Values beyond ``start``, ever farther apart, with those on both sides of powers of two."""
    if isinstance(domain, OneOf):
        return [v for v in domain.values[:: 1 if up else -1] if v != start and (v > start) == up]
    powers = [1 << i for i in range(32)]
    found = {p + d for p in powers for d in (-1, 0, 1)} | {domain.low, domain.high}
    beyond = [v for v in found if v in domain and v != start and (v > start) == up]
    return sorted(beyond, reverse=not up)


FEW = 256
"""The end of a range that is near is tried as well."""


@functools.cache
def least(space: Space, requires: Expr) -> Values | None:
    """A small problem that ``requires`` admits, with operands that are aligned best."""
    admits = holds(space, requires & space.within)
    domains = space.domains
    choices = []
    for name, domain in domains.items():
        if name == "SMS":
            choices.append([MANY])
        elif isinstance(domain, OneOf):
            choices.append([*reversed(domain.values)] if "ALIGN" in name else [*domain.values])
        else:
            most = [domain.high] if domain.high <= FEW else []
            choices.append([v for v in (1, 2, 3, 4, 8, 16, 32, 64, *most, 0, 65) if v in domain])
    for total in range(sum(map(len, choices))):
        for picked in _picked([len(c) for c in choices], total):
            values = {n: c[i] for n, c, i in zip(domains, choices, picked, strict=True)}
            if admits(values):
                return values
    return None


def _picked(counts: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Indices below ``counts`` whose sum is ``total``, in lexicographic order."""
    if not counts:
        yield from [()] if total == 0 else []
        return
    rest = sum(counts[1:]) - len(counts[1:])
    for first in range(max(0, total - rest), min(counts[0] - 1, total) + 1):
        for others in _picked(counts[1:], total - first):
            yield first, *others


@functools.cache
def edges(space: Space, requires: Expr) -> tuple[Edge, ...]:
    """The edges along each variable that ``requires`` reads, and along those that say how arrays
    lie, read or not. The end of what a variable can be is one, too, if it can be one of a few, or
    as large as anything.
    """
    base = least(space, requires)
    assert base is not None, f"no small problem meets {requires}"
    return tuple(_from(space, requires, base))


def far_edges(space: Space, requires: Expr) -> Iterator[Edge]:
    """Yields edges that start where one size is as large as it can be."""
    for edge in edges(space, requires):
        domain, end = space.domains[edge.variable], edge.inside[edge.variable]
        if not isinstance(domain, OneOf) and edge.variable != "SMS" and end > FAR:
            yield from _from(space, requires, edge.inside)


def _from(space: Space, requires: Expr, base: Values) -> Iterator[Edge]:
    admits = holds(space, requires & space.within)
    for (name, domain), up in itertools.product(space.variables, (False, True)):
        if name not in reads(space, requires) and not name.startswith(LIE):
            continue
        last, beyond = base[name], None
        for value in steps(domain, base[name], up):
            if not admits(base | {name: value}):
                beyond = value
                break
            last = value
        if beyond is None:
            if isinstance(domain, OneOf) or (up and domain.high > FAR):
                yield Edge(name, base | {name: last}, None, ())
            continue
        while isinstance(domain, Between) and abs(beyond - last) > 1:
            middle = (beyond + last) // 2
            last, beyond = (middle, beyond) if admits(base | {name: middle}) else (last, middle)
        outside = base | {name: beyond}
        terms = dict.fromkeys(conjuncts(requires & space.within))
        unmet = tuple(term for term in terms if not holds(space, term)(outside))
        yield Edge(name, base | {name: last}, outside, unmet)


@functools.cache
def reads(space: Space, predicate: Expr) -> frozenset[str]:
    """The variables of the space that a predicate reads, also by way of what follows from them."""
    found = predicate.variables()
    for name, formula in reversed(space.derived):
        if name in found:
            found |= formula.variables()
    return found & set(space.arguments)
