"""Explains why the dispatcher chooses a kernel for a problem.

It evaluates the formulas of the route table itself, so it can say which term failed and list the
terms of a predicted time; the tests compare its winner with the generated code's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ptxgen.cost.gpu import Rates
from ptxgen.cost.tuning import BOUNDS, LIMIT, TERMS, Tuning, tuning_for
from ptxgen.dispatch import accepted
from ptxgen.dispatch.choice import Choice
from ptxgen.dispatch.predict import bounds
from ptxgen.dispatch.table import conjuncts, in_order
from ptxgen.errors import SpecError, UncoveredError
from ptxgen.expr import Expr
from ptxgen.numerics.contract import PLANS
from ptxgen.spec import ARCHITECTURES, Key, Problem, Route, RouteTable
from ptxgen.tiles import TABLES

SHOWN_US = 0.05
"""Smallest term of a predicted time that is printed, µs."""


@dataclass(frozen=True)
class Failure:
    """A term of a condition that a problem does not satisfy.

    ``predicate``: kind of condition: "requires", "prefer", "architecture" or "dtype"; ``term``: the
    term as text, or for the last two a sentence. ``left`` and ``right``: values of both sides of a
    comparison (None otherwise); ``values``: values of the term's variables.
    """

    predicate: str  # "requires", "prefer", "architecture" or "dtype"
    term: str
    left: int | None
    right: int | None
    values: Mapping[str, int]

    def __str__(self) -> str:
        text = f"{self.predicate} {self.term}"
        if self.left is not None:
            return f"{text}: {self.left} vs {self.right}"
        if self.values:
            return f"{text}: {', '.join(f'{n} = {v}' for n, v in self.values.items())}"
        return text


@dataclass(frozen=True)
class KernelLaunch:
    """The launch of one kernel: CTAs, threads a CTA, and bytes of shared memory."""

    kernel: str
    grid: int
    block: int
    shared: int  # bytes


@dataclass(frozen=True)
class Candidate:
    """A route, evaluated for a problem.

    ``route``: its index; ``name``, ``kernels``: those for the problem's dtype; ``reason``: the
    table's remark on it. ``correct``: the architecture runs it, it takes the dtype, and its
    ``requires`` holds. ``failures``: all that does not hold, in the order architecture, dtype,
    ``requires`` and, where routes are taken in order, ``prefer``. ``terms``: the terms of its
    predicted time, µs by name of :data:`ptxgen.cost.tuning.TERMS` or "limit"; empty if it is not
    correct. Where routes are taken in order, only the winner has terms, those of
    :data:`ptxgen.cost.tuning.BOUNDS`.
    """

    route: int
    name: str
    kernels: tuple[str, ...]
    reason: str
    correct: bool
    failures: tuple[Failure, ...]
    terms: Mapping[str, float]

    @property
    def time(self) -> float:
        """The predicted time, µs; 0 if none is predicted."""
        return sum(self.terms.values())

    @property
    def prediction(self) -> str:
        """The predicted time in words, the largest terms first; empty if there is none."""
        shown = sorted(self.terms.items(), key=lambda term: -term[1])
        parts = ", ".join(f"{us:.1f} {name}" for name, us in shown if us >= SHOWN_US)
        return f"predicted {self.time:.1f} µs: {parts}" if self.terms else ""


@dataclass(frozen=True)
class Explanation:
    """The route that serves a problem, and all other routes of the table.

    ``table``: key of the route table; ``dtype``: the problem's; ``arch``: architecture of the GPU;
    ``contract``: that of the main kernel; ``space``: name of the space whose variables describe the
    problem; ``choice``, ``launches``: the winner's kernels and their launches. ``str`` formats
    everything as text.
    """

    problem: str
    """Description of the problem: the operation and its sizes, as text."""
    table: Key
    dtype: str
    arch: str
    tuning: str
    """Name of the tuning whose constants predict times."""
    tuned: bool
    """Whether the tuning is of this GPU; else its constants are scaled by this GPU's rates."""
    contract: str
    space: str
    values: Mapping[str, int]
    """The variables of the space, derived ones included, by name."""
    choice: Choice
    launches: tuple[KernelLaunch, ...]
    scratch: Mapping[str, int]
    """Bytes of scratch memory, by name."""
    candidates: tuple[Candidate, ...]
    """All routes of the table, in order; ``candidates[choice.route]`` is the winner."""
    note: str = ""
    """A remark, such as that the GPU has no tuning of its own; empty if there is none."""
    algorithms: tuple[str, ...] = ()
    """Texts that say to which algorithms the operation was lowered, and why not to others."""

    @property
    def winner(self) -> Candidate:
        """The route that serves the problem."""
        return self.candidates[self.choice.route]

    @property
    def also_correct(self) -> tuple[Candidate, ...]:
        """Other correct candidates, which would return the same bits, by predicted time; where none
        is predicted, in the table's order.
        """
        others = (c for c in self.candidates if c.correct and c is not self.winner)
        return tuple(sorted(others, key=lambda c: c.time))

    @property
    def unfit(self) -> tuple[Candidate, ...]:
        """Candidates that cannot serve the problem."""
        return tuple(c for c in self.candidates if not c.correct)

    def legend(self) -> str:
        """Text of the meaning and unit of the terms in the winner's predicted time."""
        return legend(name for name, us in self.winner.terms.items() if us >= SHOWN_US)

    def brief(self) -> str:
        """Text of the winner, its launches and its reason, without the other routes."""
        lines = [*self._head()]
        lines.append(f"  {len(self.also_correct)} others correct as well, {len(self.unfit)} not")
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join([*self._head(), *self._rest()])

    def _head(self) -> Iterator[str]:
        named = ", ".join(f"{name} {value}" for name, value in self.values.items())
        yield f"{self.problem} {self.dtype}: table {' '.join(self.table)}, {self.contract}"
        yield f"  {self.arch}; {named}"
        rules = PLANS.get(self.contract.partition("/")[0], {})
        for plan in (rules[word] for word in self.table if word in rules):
            yield f"  {self.contract} splits K into chunks of CHUNK = {plan.chunk}"
        yield f"  times by tuning {self.tuning}{'' if self.tuned else ', scaled'}"
        if self.note:
            yield f"  {self.note}"
        yield from (f"  {line}" for each in self.algorithms for line in each.splitlines())
        yield f"winner: route {self.choice.route}, {' + '.join(self.winner.kernels)}"
        if self.winner.reason:
            yield f"  for {self.winner.reason}"
        yield f"  {self.winner.prediction}"
        for x in self.launches:
            yield f"  {x.kernel}: grid {x.grid}, block {x.block}, shared {x.shared} bytes"
        for name, size in self.scratch.items():
            yield f"  scratch {name!r}: {size} bytes"

    def _rest(self) -> Iterator[str]:
        for title, candidates in (
            ("also correct:", self.also_correct),
            ("cannot serve it:", self.unfit),
        ):
            if candidates:
                yield title
            for c in candidates:
                yield f"  route {c.route}, {' + '.join(c.kernels)}: {c.reason}"
                if c.prediction:
                    yield f"    {c.prediction}"
                for failure in c.failures:
                    yield f"    fails {failure}"


def legend(shown: Iterable[str]) -> str:
    """Returns the meanings of the terms named ``shown``, one on a line; empty if there are none."""
    known = {**BOUNDS, **TERMS, "limit": LIMIT}
    named = [(name, known[name]) for name in dict.fromkeys(shown)]
    if not named:
        return ""
    head = (
        "terms, µs: a quantity by the GPU's rates, times a constant of the kernel "
        "(docs/explanation/choosing.md)"
    )
    width = max(len(name) for name, _ in named)
    return "\n".join([head, *(f"  {name.ljust(width)}  {text}" for name, text in named)])


def explain_problem(
    problem: Problem,
    nbytes: int,
    arch: str,
    sms: int,
    gpu: str | None = None,
    note: str = "",
    rates: Rates | None = None,
    algorithms: Iterable[object] = (),
) -> Explanation:
    """Returns an explanation of which route serves ``problem`` on a GPU, and how all others fare.

    ``nbytes``: bytes of its arrays. ``arch``, ``sms``, ``gpu``: architecture, number of SMs and
    name of the GPU; ``rates``: its peak rates, if it has no tuning. ``algorithms``: those that the
    operation was lowered to. ``note``: a remark in the text.

    Raises OptionError for an unknown architecture or table, and UncoveredError where nothing serves
    it.
    """
    if arch not in ARCHITECTURES:
        raise accepted("architecture", arch, ARCHITECTURES)
    if problem.table not in TABLES:
        raise accepted("table", " ".join(problem.table), (" ".join(key) for key in TABLES))
    table = TABLES[problem.table]
    tuning, tuned = tuning_for(arch, None if gpu is None else (gpu, sms), rates)
    given = problem.given(sms)
    for name, domain in table.space.variables:
        if given[name] not in domain:
            raise UncoveredError(str(problem), f"{name} is {given[name]}; takes {domain}")
    env = table.space.environment(given)
    ordered = in_order(table.routes)
    candidates = tuple(
        _candidate(i, r, table, problem.dtype, arch, env, tuning, ordered)
        for i, r in enumerate(table.routes)
    )
    able = [c for c in candidates if not c.failures]
    if not able:
        raise UncoveredError(str(problem), "\n".join(map(str, candidates)))
    winner = min(able, key=lambda c: c.time).route
    route = table.route(winner, problem.dtype)
    launches = tuple(
        KernelLaunch(
            step.kernel.name, step.grid.evaluate(env), step.kernel.threads, step.kernel.shared_bytes
        )
        for step in route.steps
    )
    scratch = {name: size.evaluate(env) for name, size in route.scratch.items()}
    grids = tuple(launch.grid for launch in launches)
    names = tuple(launch.kernel for launch in launches)
    choice = Choice(winner, names, grids, tuple(scratch.values()))
    if ordered:
        us = bounds(problem, table.routes[winner], choice, nbytes, tuning, sms)
        candidates = tuple(replace(c, terms=us) if c.route == winner else c for c in candidates)
    return Explanation(
        problem=str(problem),
        table=problem.table,
        dtype=str(problem.dtype),
        arch=arch,
        tuning=tuning.name,
        tuned=tuned,
        contract=str(route.main.contract),
        space=table.space.name,
        values=env,
        choice=choice,
        launches=launches,
        scratch=scratch,
        candidates=candidates,
        note=note,
        algorithms=tuple(map(str, algorithms)),
    )


def _twin(table: RouteTable, index: int, dtype: Hashable) -> Route:
    """Returns route ``index`` of ``table`` with its kernels for ``dtype``; if it has none for that
    dtype, with those that the table lists.
    """
    try:
        return table.route(index, dtype)
    except SpecError:
        return table.routes[index]


def _candidate(
    index: int,
    route: Route,
    table: RouteTable,
    dtype: Hashable,
    arch: str,
    env: Mapping[str, int],
    tuning: Tuning,
    ordered: bool,
) -> Candidate:
    twin = _twin(table, index, dtype)
    absent = tuple(
        Failure("architecture", f"{kernel.name} does not run on {arch}", None, None, {})
        for kernel in route.kernels
        if not kernel.runs_on(arch)
    )
    unmet = tuple(_failures("requires", route.requires, env))
    unpreferred = tuple(_failures("prefer", route.prefer, env)) if ordered else ()
    if not route.takes(dtype):
        absent += (Failure("dtype", f"{route.name} takes none such", None, None, {}),)
    correct = not absent and not unmet
    return Candidate(
        route=index,
        name=twin.name,
        kernels=twin.names,
        reason=route.reason,
        correct=correct,
        failures=(*absent, *unmet, *unpreferred),
        terms=_terms(route, env, tuning) if correct and not ordered else {},
    )


def _terms(route: Route, env: Mapping[str, int], tuning: Tuning) -> dict[str, float]:
    """Returns the terms of a route's predicted time, µs by name, summed over its kernels
    (:meth:`ptxgen.cost.tuning.Tuning.parts`). ``env``: values of the problem's variables.
    """
    found = dict.fromkeys((*TERMS, "limit"), 0.0)
    for kernel, cost in zip(route.kernels, route.costs or (), strict=True):
        parts = tuning.parts(kernel.name, *cost.arguments(env))
        for name, part in zip(found, parts, strict=True):
            found[name] += part
    return found


def _failures(name: str, predicate: Expr, env: Mapping[str, int]) -> Iterator[Failure]:
    for term in dict.fromkeys(conjuncts(predicate)):
        if term.evaluate(env):
            continue
        left = right = None
        text = str(term)
        if term.op in ("<", "<=", "=="):
            a, b = term.args
            left, right = a.evaluate(env), b.evaluate(env)
            if a.op == "const":  # people write the constant on the right
                left, right = right, left
                text = f"{b} {term.op.replace('<', '>')} {a}"
        values = {v: env[v] for v in sorted(term.variables())}
        yield Failure(name, text, left, right, values)
