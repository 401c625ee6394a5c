"""Why a problem is served by the kernel that serves it.

Evaluates the predicates of the route table itself, so it can say which term failed; the
tests compare its winner with the generated code's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ptxgen.dispatch import accepted, emit
from ptxgen.dispatch.choice import Choice
from ptxgen.errors import UncoveredError
from ptxgen.expr import Expr
from ptxgen.spec import ARCHITECTURES, Key, Problem, Route
from ptxgen.tiles import TABLES


@dataclass(frozen=True)
class Failure:
    """A term of a predicate that a problem does not meet.

    ``left`` and ``right`` are the values of both sides of a comparison (None otherwise);
    ``values`` those of the variables.
    """

    predicate: str  # "requires", "prefer" or "architecture"
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
    """One kernel's launch."""

    kernel: str
    grid: int
    block: int
    shared: int  # bytes


@dataclass(frozen=True)
class Candidate:
    """A route, and what the problem makes of it.

    ``correct``: the architecture runs it and its ``requires`` holds; ``failures`` are the
    terms that do not hold, those of ``requires`` first.
    """

    route: int
    name: str
    kernels: tuple[str, ...]
    reason: str
    correct: bool
    failures: tuple[Failure, ...]

    @property
    def matches(self) -> bool:
        """Whether the route would be taken if no earlier one were."""
        return not self.failures


@dataclass(frozen=True)
class Explanation:
    """The winner of a problem, and the candidates before and after it. ``str`` is for people."""

    problem: str
    """The problem in words."""
    table: Key
    dtype: str
    arch: str
    tuning: str
    """The tuning whose table it is; empty: the table for any GPU."""
    contract: str
    space: str
    values: Mapping[str, int]
    """The problem variables, by name."""
    choice: Choice
    launches: tuple[KernelLaunch, ...]
    scratch: Mapping[str, int]
    """Bytes of scratch memory, by name."""
    candidates: tuple[Candidate, ...]
    """All routes of the table, in order; ``candidates[choice.route]`` is the winner."""
    note: str = ""
    """What should be known about the answer: that the GPU asked about has no tuning."""

    @property
    def winner(self) -> Candidate:
        """The route that serves the problem."""
        return self.candidates[self.choice.route]

    @property
    def passed_over(self) -> tuple[Candidate, ...]:
        """The candidates before the winner."""
        return self.candidates[: self.choice.route]

    @property
    def also_correct(self) -> tuple[Candidate, ...]:
        """Later candidates that would return the same bits."""
        return tuple(c for c in self.candidates[self.choice.route + 1 :] if c.correct)

    def brief(self) -> str:
        """What most people ask: the winner, its launches, and why."""
        lines = [*self._head()]
        more = len(self.passed_over), len(self.also_correct)
        lines.append(f"  {more[0]} earlier passed over, {more[1]} later correct as well")
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join([*self._head(), *self._rest()])

    def _head(self) -> Iterator[str]:
        named = ", ".join(f"{name} {value}" for name, value in self.values.items())
        yield f"{self.problem} {self.dtype}: table {' '.join(self.table)}, {self.contract}"
        yield f"  {self.arch}; {named}"
        if self.tuning:
            yield f"  tuning {self.tuning}"
        if self.note:
            yield f"  {self.note}"
        yield f"winner: route {self.choice.route}, {' + '.join(self.winner.kernels)}"
        yield f"  because {self.winner.reason}"
        for x in self.launches:
            yield f"  {x.kernel}: grid {x.grid}, block {x.block}, shared {x.shared} bytes"
        for name, size in self.scratch.items():
            yield f"  scratch {name!r}: {size} bytes"

    def _rest(self) -> Iterator[str]:
        for title, candidates in (
            ("passed over:", self.passed_over),
            ("also correct:", self.also_correct),
        ):
            if candidates:
                yield title
            for c in candidates:
                yield f"  route {c.route}, {' + '.join(c.kernels)}: {c.reason}"
                for failure in c.failures:
                    yield f"    fails {failure}"


def explain_problem(
    problem: Problem, arch: str, sms: int, gpu: str | None = None, note: str = ""
) -> Explanation:
    """Which kernels serve ``problem``, and why.

    Raises OptionError for an unknown architecture, and UncoveredError where nothing serves it.
    """
    if arch not in ARCHITECTURES:
        raise accepted("architecture", arch, ARCHITECTURES)
    table = emit.serving(problem.table, arch, None if gpu is None else (gpu, sms))
    if table is None:
        raise accepted("table", " ".join(problem.table), (" ".join(key) for key in TABLES))
    given = problem.given(sms)
    for name, domain in table.space.variables:
        if given[name] not in domain:
            raise UncoveredError(str(problem), f"{name} is {given[name]}; takes {domain}")
    env = table.space.environment(given)
    routes = [route.of(problem.dtype) for route in table.routes]
    candidates = tuple(_candidate(i, r, arch, env) for i, r in enumerate(routes))
    winner = next((c.route for c in candidates if c.matches), None)
    if winner is None:
        raise UncoveredError(str(problem), "\n".join(map(str, candidates)))
    route = routes[winner]
    choice = Choice.of(winner, route, env)
    launches = tuple(
        KernelLaunch(kernel.name, grid, kernel.threads, kernel.shared_bytes)
        for kernel, grid in zip(route.kernels, choice.grids, strict=True)
    )
    return Explanation(
        problem=str(problem),
        table=problem.table,
        dtype=problem.dtype,
        arch=arch,
        tuning=table.tuning,
        contract=str(route.main.contract),
        space=table.space.name,
        values=env,
        choice=choice,
        launches=launches,
        scratch=dict(zip(route.scratch, choice.scratch, strict=True)),
        candidates=candidates,
        note=note,
    )


def _candidate(index: int, route: Route, arch: str, env: Mapping[str, int]) -> Candidate:
    absent = tuple(
        Failure("architecture", f"{kernel.name} does not run on {arch}", None, None, {})
        for kernel in route.kernels
        if not kernel.runs_on(arch)
    )
    unmet = tuple(_failures("requires", route.requires, env))
    unpreferred = tuple(_failures("prefer", route.prefer, env))
    return Candidate(
        route=index,
        name=route.name,
        kernels=tuple(kernel.name for kernel in route.kernels),
        reason=route.reason,
        correct=not absent and not unmet,
        failures=(*absent, *unmet, *unpreferred),
    )


def _failures(name: str, predicate: Expr, env: Mapping[str, int]) -> Iterator[Failure]:
    for term in dict.fromkeys(emit.conjuncts(predicate)):
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
