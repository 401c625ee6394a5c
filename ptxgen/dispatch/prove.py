"""Proves the generated dispatch code correct for every problem.

These goals are proved for all problems of a table's space (of products: 1 <= M, N, K < 2^31, every
alignment of 1 to 16 bytes, 1 .. 1024 SMs), from the code as emitted (:mod:`ptxgen.dispatch.read`):

=========  ======================================================================
current    the committed code is what the tables generate
derived    derived variables are computed as the space defines them
coverage   some route is a candidate (not proved for partial tables)
requires   the ``requires`` of every kernel of a candidate's route holds
launch     kernels, grids and scratch are those of the specs
grid       1 <= grid <= 2^31 - 1
scratch    0 <= bytes <= SCRATCH_MAX, of each scratch memory
index      no 32-bit quantity of a kernel overflows wherever its ``requires`` holds
reachable  the route is a candidate for some problem (no route is dead); where routes are taken in
           order, it is the first candidate
=========  ======================================================================

A proof is by refutation with z3 (see :mod:`ptxgen.dispatch.solver`). A problem that refutes a goal
is only reported after evaluation has confirmed it; a goal that is neither proved nor refuted within
the given effort fails, too. Effort is counted in z3's resource units, and each search begins in a
fresh z3 context: every machine with the same version of z3 reaches the same verdict. The length of
a search depends much on its seed, so the first attempts are short, with other seeds each
(:data:`STARTS`).
"""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import filterfalse, islice, repeat
from multiprocessing import get_context
from typing import Any

from ptxgen.dispatch import emit, read
from ptxgen.dispatch.choice import Dispatch, by_architecture
from ptxgen.dispatch.emit import Table
from ptxgen.dispatch.solver import Interval, Linear
from ptxgen.errors import SpecError
from ptxgen.expr import FALSE, TRUE, Expr, all_of, any_of, var
from ptxgen.spec import DIM_MAX, GRID_MAX, SCRATCH_MAX, SMS_MAX, Domain, OneOf, Space

EFFORT_PER_GOAL = 20_000_000
"""Effort of one goal in z3's resource units, of which it spends one to ten million a second."""
STARTS = (0.02, 0.02, 0.02, 0.05, 0.05, 0.1, 0.1, 0.2)
"""Limits of effort for the attempts of one search, each with another random seed, as shares of
:data:`EFFORT_PER_GOAL`. An attempt is made only if z3 gave up in the one before.
"""
GUESS = 0.08
"""Effort of the proof of a guess (a variable's bound, conditions that may cover every problem), as
a share of a goal's effort: enough for a search's short attempts. Another guess follows.
"""
SAMPLES = 20_000
FIRST_SAMPLES = 1_000
ROUNDS_MAX = 200

Shape = dict[str, int]


@dataclass(frozen=True)
class Result:
    """Outcome of one goal: proved (``ok``), or not.

    ``goal``: its kind, such as "coverage", "grid" or "reachable"; ``table``, ``archs``: name of the
    table, and architectures of the dispatch function; ``subject``: the route or variable that it is
    about; ``seconds``: time spent; ``detail``: a remark in words. ``shape``: a problem that refutes
    the goal; for "reachable", one that takes the route.
    """

    goal: str
    table: str
    archs: tuple[str, ...]
    subject: str
    ok: bool
    seconds: float
    detail: str = ""
    shape: Shape | None = None

    def __str__(self) -> str:
        words = [self.goal, self.table, ",".join(self.archs), self.subject]
        text = f"{'ok  ' if self.ok else 'FAIL'} {' '.join(w for w in words if w)}"
        if self.detail:
            text += f": {self.detail}"
        if self.shape is not None:
            text += f" [{', '.join(f'{name}={value}' for name, value in self.shape.items())}]"
        return text


@dataclass(frozen=True)
class Verdict:
    """Whether premises imply a goal: proved, refuted by the problem ``shape``, or undecided
    (neither). ``detail``: a remark in words.
    """

    proved: bool
    shape: Shape | None
    detail: str


Verdicts = dict[tuple[tuple[Expr, ...], Expr, float], Verdict]
"""Verdicts by (premises, goal, share of a goal's effort), over the problems of one space."""


def prove(
    of: Iterable[Table] | None = None,
    *,
    effort_per_goal: int = EFFORT_PER_GOAL,
    report: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Proves all goals of the tables ``of`` (default: all tables, and that the code is current).

    With the default, as many processes run as there are processors. ``report`` is called with each
    result as it comes. Needs z3-solver.
    """
    results = []
    for result in _prove(of, effort_per_goal):
        results.append(result)
        if report is not None:
            report(result)
    return results


def _prove(of: Iterable[Table] | None, effort: int) -> Iterator[Result]:
    groups: dict[Space, list[Table]] = {}
    for table in emit.tables() if of is None else of:
        groups.setdefault(table.space, []).append(table)
    if of is not None:
        for group in groups.values():
            yield from _prove_tables(group, emit.source, effort)
        return
    began = time.perf_counter()
    stale = emit.generate(check=True)
    detail = ", ".join(f"{d.path.name} {d.what}" for d in stale)
    took = time.perf_counter() - began
    yield Result("current", "generated", (), "", not stale, took, detail)
    code = emit.source if stale else emit.checked_in
    largest = sorted(groups.values(), key=lambda group: -sum(len(t.routes) for t in group))
    names = ({table.name for table in group} for group in largest)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for found in pool.map(_prove_named, names, repeat(code), repeat(effort)):
            yield from found


def _prove_named(names: set[str], code: Callable[[Table], str], effort: int) -> list[Result]:
    """Returns the results of :func:`_prove_tables` for the tables with these names; runs in a
    worker process.

    ``code``, ``effort``: as there.
    """
    return list(_prove_tables((t for t in emit.tables() if t.name in names), code, effort))


def _prove_tables(
    group: Iterable[Table], code: Callable[[Table], str], effort: int
) -> Iterator[Result]:
    """Proves all goals of the tables ``group``, which have one space and share verdicts; yields a
    result for each.

    ``code`` returns the generated text of a table; ``effort``: z3's resource units for one goal.
    """
    verdicts: Verdicts = {}
    for table in group:
        yield from prove_source(table, code(table), effort, verdicts)


def prove_source(
    table: Table,
    source: str,
    effort_per_goal: int = EFFORT_PER_GOAL,
    verdicts: Verdicts | None = None,
) -> Iterator[Result]:
    """Proves all goals of a generated module against the table that it serves; yields a result for
    each.

    ``source``: the module's text; ``effort_per_goal``: z3's resource units for one goal.
    ``verdicts``: verdicts that are known for tables of the same space; they are reused, and new
    ones are added.
    """
    prover = Prover(table, effort_per_goal, verdicts)
    namespace: dict[str, Any] = {}
    exec(compile(source, f"<dispatch of {' '.join(table.key)}>", "exec"), namespace)
    for function in read.functions(source, table.name, table.space):
        compiled = by_architecture(namespace["candidates"], table.key)[function.name]
        yield from _prove_function(prover, function, compiled)


def _prove_function(
    prover: Prover, function: read.Function, compiled: Dispatch
) -> Iterator[Result]:
    table, branches = prover.table, function.branches
    conditions = [branch.condition for branch in branches]

    def result(goal: str, subject: str, found: Callable[[], Verdict]) -> Result:
        began = time.perf_counter()
        try:
            verdict = found()
        except SpecError as error:
            verdict = Verdict(False, None, str(error))
        took = time.perf_counter() - began
        return Result(
            goal,
            table.name,
            function.archs,
            subject,
            verdict.proved,
            took,
            verdict.detail,
            verdict.shape,
        )

    def implied(premises: list[Expr], goal: Expr) -> Callable[[], Verdict]:
        return lambda: prover.implies(premises, goal)

    for name, formula in function.derived.items():
        yield result("derived", name, implied([], formula.eq(dict(table.space.derived)[name])))
    if not table.partial:
        yield result("coverage", "", lambda: _covered(prover, conditions))
    for i, branch in enumerate(branches):
        own = [branch.condition]
        full = [*own, *(~c for c in conditions[:i] if table.ordered)]
        route = table.routes[branch.route]
        subject = f"route {branch.route} ({route.name})"

        def implied_by_branch(
            goal: Expr, own: list[Expr] = own, full: list[Expr] = full
        ) -> Verdict:
            """Decides whether ``goal`` holds where the branch is reached.

            Its own condition usually suffices; if not, adds that earlier conditions fail.
            """
            verdict = prover.implies(own, goal)
            return verdict if verdict.proved else prover.implies(full, goal)

        names = tuple(kernel.name for kernel in route.kernels)
        same = all_of(
            emitted.eq(step.grid) for emitted, step in zip(branch.grids, route.steps, strict=False)
        )
        same = same & all_of(
            emitted.eq(size)
            for emitted, size in zip(branch.scratch, route.scratch.values(), strict=False)
        )
        counts = len(branch.grids), len(branch.scratch)
        if branch.kernels != names or counts != (len(names), len(route.scratch)):
            detail = f"emitted {branch.kernels}, table {names}"
            yield result("launch", subject, _failed(detail))
        else:
            yield result("launch", subject, functools.partial(implied_by_branch, same))
        goals = [("requires", route.requires)]
        goals += [("grid", all_of((g >= 1) & (g <= GRID_MAX) for g in branch.grids))]
        legal = all_of((size >= 0) & (size <= SCRATCH_MAX) for size in branch.scratch)
        goals += [("scratch", legal)] if branch.scratch else []
        for goal, predicate in goals:
            yield result(goal, subject, functools.partial(implied_by_branch, predicate))
        for step in route.steps:
            for text, largest, limit in step.index_bounds:
                what = f"route {branch.route} ({step.kernel.name}): {text} <= {limit}"
                goal_holds = (largest >= 0) & (largest <= limit)
                yield result("index", what, implied([step.requires], goal_holds))
    yield from _prove_reachable(prover, function, compiled, result)


def _covered(prover: Prover, conditions: list[Expr]) -> Verdict:
    """Decides whether every problem satisfies at least one of ``conditions``.

    To spare effort, it first tries to prove this of the few conditions that already cover random
    problems, with the effort of a guess (:data:`GUESS`).
    """
    problems = prover.shapes(seed=4)
    open_ = [prover.environment(next(problems)) for _ in range(FIRST_SAMPLES)]
    needed: list[Expr] = []
    while open_:
        holds = {c: [*filter(computed(c), open_)] for c in conditions}
        best = max(conditions, key=lambda c: len(holds[c]))
        if not holds[best]:
            break  # a problem that satisfies no condition
        needed.append(best)
        open_ = [*filterfalse(computed(best), open_)]
    # The last needed condition has to hold, term by term, where all others fail.
    failing = [~c for c in needed[:-1]]
    if needed and all(
        prover.implies(failing, term, GUESS).proved for term in emit.conjuncts(needed[-1])
    ):
        return Verdict(True, None, "")
    return prover.implies([], any_of(conditions))


def _failed(detail: str) -> Callable[[], Verdict]:
    return lambda: Verdict(False, None, detail)


def _prove_reachable(
    prover: Prover,
    function: read.Function,
    compiled: Dispatch,
    result: Callable[[str, str, Callable[[], Verdict]], Result],
) -> Iterator[Result]:
    table, branches = prover.table, function.branches
    runs = next(runs for archs, runs in table.classes.items() if archs[0] == function.name)
    began = time.perf_counter()
    witnesses = _witnesses(prover, compiled, len(branches))
    share = (time.perf_counter() - began) / max(1, len(runs))
    emitted = {branch.route: i for i, branch in enumerate(branches)}
    for index in runs:
        subject = f"route {index} ({table.routes[index].name})"
        if index in witnesses:
            yield Result(
                "reachable",
                table.name,
                function.archs,
                subject,
                True,
                share,
                "witness",
                witnesses[index],
            )
        elif index not in emitted:
            dead = "no code was emitted: an earlier route takes everything, or it takes nothing"
            yield result("reachable", subject, _failed(dead))
        else:
            i = emitted[index]
            before = branches[:i] if table.ordered else ()
            premises = [branches[i].condition, *(~b.condition for b in before)]
            yield result("reachable", subject, functools.partial(prover.satisfiable, premises))


def _witnesses(prover: Prover, compiled: Dispatch, wanted: int) -> dict[int, Shape]:
    """Runs the dispatch function ``compiled`` on random problems; returns one problem for each
    route that it yields, by route index.

    Ends when ``wanted`` routes were found, or after ``SAMPLES`` problems.
    """
    found: dict[int, Shape] = {}
    shapes = prover.shapes(seed=1)
    for _ in range(SAMPLES):
        shape = next(shapes)
        arguments = (shape[name] for name in prover.table.space.arguments)
        for candidate in compiled(*arguments, time=lambda *effort: 0.0):
            found.setdefault(candidate.choice.route, shape)
        if len(found) == wanted:
            break
    return found


class Prover:
    """Decides implications over the problems of one table.

    ``effort_per_goal``: limit for one goal, in z3's resource units. ``verdicts``: known verdicts
    for tables of the same space, to which new ones are added.
    """

    def __init__(
        self,
        table: Table,
        effort_per_goal: int = EFFORT_PER_GOAL,
        verdicts: Verdicts | None = None,
    ) -> None:
        self.table = table
        self._effort = effort_per_goal
        self._aliases = dict(table.space.derived)
        self._derived = [(name, computed(formula)) for name, formula in table.space.derived]
        self.domain = {name: (d.low, d.high) for name, d in table.space.variables}
        self._verdicts: Verdicts = {} if verdicts is None else verdicts

    def shapes(self, seed: int) -> Iterator[Shape]:
        """Yields random problems of this table without end; many sizes are near constants of the
        routes' conditions.
        """
        formulas = list(self._aliases.values())
        for route in self.table.routes:
            formulas += [
                emit.condition(self.table, route),
                *(step.grid for step in route.steps),
            ]
        space = self.table.space
        holds = computed(space.within)
        for shape in shapes(space, formulas, seed):
            if holds(self.environment(shape)):
                yield shape

    def environment(self, shape: Shape) -> Shape:
        """Returns a problem with its derived variables added."""
        found = dict(shape)
        for name, value in self._derived:
            found[name] = value(found)
        return found

    def implies(self, premises: Iterable[Expr], goal: Expr, share: float = 1.0) -> Verdict:
        """Decides whether ``goal`` holds for every problem that satisfies ``premises``.

        ``share``: share of a goal's effort.
        """
        key = (tuple(premises), goal, share)
        if key not in self._verdicts:
            self._verdicts[key] = self._implies(*key)
        return self._verdicts[key]

    def satisfiable(self, premises: Iterable[Expr]) -> Verdict:
        """Decides whether some problem satisfies all ``premises``. If so, the verdict is
        ``proved``, and its ``shape`` is such a problem.
        """
        premises = tuple(premises)
        found = self._sampled(premises) or self._drawn(premises)
        if found is not None:
            return Verdict(True, found, "witness")
        verdict = self.implies(premises, FALSE)
        if verdict.proved:
            return Verdict(False, None, "dead: proved that no problem takes it")
        if verdict.shape is None:
            return Verdict(False, None, f"no witness found ({verdict.detail})")
        return Verdict(True, verdict.shape, "witness")

    def _sampled(self, premises: tuple[Expr, ...]) -> Shape | None:
        """Returns a random problem that satisfies all ``premises``, or None if none is found."""
        space = self.table.space
        premises = (*premises, space.within)
        box = tightened(space, self.domain, premises)
        if any(low > high for low, high in box.values()):
            return None
        wanted = computed(all_of(premises))
        rng = random.Random(6)
        for _ in range(SAMPLES):
            shape = {
                name: min(high, max(low, round(math.expm1(rng.uniform(*map(math.log1p, ends))))))
                for name, ends in box.items()
                for low, high in (ends,)
            }
            for name, domain in space.variables:
                if isinstance(domain, OneOf):
                    low, high = box[name]
                    shape[name] = rng.choice([v for v in domain.values if low <= v <= high])
            if wanted(self.environment(shape)):
                return shape
        return None

    def _drawn(self, premises: tuple[Expr, ...]) -> Shape | None:
        """Returns a problem of :meth:`shapes` that satisfies all ``premises``, or None if none of
        :data:`SAMPLES` does.
        """
        wanted = computed(all_of(premises))
        drawn = islice(self.shapes(seed=2), SAMPLES)
        return next((shape for shape in drawn if wanted(self.environment(shape))), None)

    @functools.cached_property
    def _lemmas(self) -> Mapping[str, Interval]:
        return lemmas(bare(self.table.space), self._effort)

    def _implies(self, premises: tuple[Expr, ...], goal: Expr, share: float) -> Verdict:
        domain = {**self.domain, **self._lemmas}
        domain = tightened(self.table.space, domain, (*premises, ~goal))
        if any(low > high for low, high in domain.values()):
            return Verdict(True, None, "")
        return self.decide(premises, goal, domain, int(share * self._effort))

    def decide(
        self, premises: tuple[Expr, ...], goal: Expr, domain: Mapping[str, Interval], effort: int
    ) -> Verdict:
        """Decides whether ``premises`` imply ``goal`` for variables in the ranges of ``domain``.

        The linear relaxation is searched first. If its guess and random problems refute nothing,
        the search is refined. ``effort``: limit in z3's resource units.
        """
        premises = (*premises, self.table.space.within)

        def refuted_by(shape: Shape) -> bool:
            return bool(refuting(self.environment(shape)))

        attempt = Attempt(self.table.space, (*premises, ~goal), domain, effort)
        answer = attempt.solve()
        if answer is None:
            return Verdict(True, None, "")
        refuting = computed(all_of((*premises, ~goal)))
        if isinstance(answer, dict) and refuted_by(answer):
            return Verdict(False, answer, "refuted")
        problems = self.shapes(seed=2)
        for number in range(SAMPLES):
            if number == FIRST_SAMPLES:  # the first samples did not refute it
                answer = attempt.refine(refuted_by)
                if answer is None:
                    return Verdict(True, None, "")
                if isinstance(answer, dict):
                    return Verdict(False, answer, "refuted")
            shape = next(problems)
            if refuted_by(shape):
                return Verdict(False, shape, "refuted")
        return Verdict(False, None, f"undecided: {answer}")


@functools.cache
def computed(e: Expr) -> Callable[[Mapping[str, int]], Any]:
    """Compiles an expression to a Python function of the variables' values."""
    code = compile(e.python(), "<expression>", "eval")
    return lambda env: eval(code, _BUILTINS, env)


_BUILTINS = {"__builtins__": {"min": min, "max": max}}


def bare(space: Space) -> Space:
    """Returns ``space`` reduced to SMS and the variables that its derived variables read, without
    its name and its condition ``within``.

    Spaces whose bare spaces are equal have the same :func:`lemmas`.
    """
    read = frozenset(("SMS",)).union(*(e.variables() for _, e in space.derived))
    variables = tuple(pair for pair in space.variables if pair[0] in read)
    return replace(space, name="", variables=variables, within=TRUE)


@functools.cache
def lemmas(space: Space, effort_per_goal: int) -> Mapping[str, Interval]:
    """Returns ranges (1, upper bound) of the ``bounded`` variables of ``space``, a :func:`bare`
    space, by name.

    Each bound is proved with a share of ``effort_per_goal``. The first one tried is the largest
    value in random problems, then two and 16 times that; without a proof it is ``DIM_MAX``.
    """
    prover = Prover(Table((), space, ()), effort_per_goal)
    effort = int(GUESS * effort_per_goal)
    problems = [prover.environment(shape) for shape in islice(prover.shapes(3), FIRST_SAMPLES)]

    def bound(name: str) -> int:
        largest = max(env[name] for env in problems)
        for bound in (largest, 2 * largest, 16 * largest):
            if prover.decide((), bound >= var(name), prover.domain, effort).proved:
                return bound
        return DIM_MAX

    return {name: (1, bound(name)) for name in space.bounded}


class Attempt:
    """The search for a problem that satisfies all ``predicates``, in linear arithmetic."""

    def __init__(
        self,
        space: Space,
        predicates: Iterable[Expr],
        domain: Mapping[str, Interval],
        effort: int = EFFORT_PER_GOAL,
    ) -> None:
        self._space = space
        self._domain = domain
        self._effort = effort
        self.linear = Linear(domain, dict(space.derived))
        self.assertions = [self.linear.predicate(p) for p in predicates]
        reads = frozenset().union(*(a.variables() for a in self.assertions))
        for name, choices in space.variables:
            if isinstance(choices, OneOf) and name in reads:
                self.linear.facts.append(any_of(var(name).eq(v) for v in choices.values))
        self._seed = 0
        self._search: _Search | None = None
        self._asserted = 0
        self._values: Shape = {}

    def solve(self) -> Shape | str | None:
        """Searches the linear relaxation for a problem that satisfies the predicates.

        Returns None if there is provably none, a shape as a guess, or text that says why the search
        failed.
        """
        if FALSE in self.assertions:
            return None
        self._asserted = len(self.linear.facts)
        answer: Shape | str | None = "no effort left"
        for start in STARTS:
            if self._effort <= 0:
                break
            if self._search is None:
                self._search = _Search(self.assertions, self._seed)
            answer, spent = self._search.check(
                self.linear.facts, min(self._effort, int(start * EFFORT_PER_GOAL))
            )
            self._effort -= spent
            if not isinstance(answer, str):
                break
            self._search, self._seed = None, self._seed + 1
        if answer is None or isinstance(answer, str):
            return answer
        self._values = answer
        return {name: answer.get(name, self._domain[name][1]) for name in self._space.arguments}

    def refine(self, confirmed: Callable[[Shape], bool]) -> Shape | str | None:
        """Searches like :meth:`solve` until ``confirmed`` returns true for the problem that was
        found.

        After each guess that is not confirmed, facts about products of variables that exclude it
        are added. Returns what :meth:`solve` returns; text also after ``ROUNDS_MAX`` guesses.
        """
        self.linear.relate_products()
        for number in range(ROUNDS_MAX):
            self.linear.cuts(self._values)
            if self._asserted == len(self.linear.facts):
                return "a solution in linear arithmetic that evaluation does not confirm"
            answer = self.solve()
            if isinstance(answer, str):
                return f"{answer} after {number} refinements"
            if answer is None or confirmed(answer):
                return answer
        return f"not decided after {ROUNDS_MAX} refinements"


class _Search:
    """An incremental z3 solver in a context of its own. ``assertions``: predicates that every check
    includes; ``seed``: z3's random seed.
    """

    def __init__(self, assertions: Iterable[Expr], seed: int) -> None:
        import z3

        self._z3 = z3
        self._context = z3.Context()
        self._solver = z3.Solver(ctx=self._context)
        self._solver.set("random_seed", seed)
        self._terms: dict[str, Any] = {}
        self._asserted = 0
        self._spent = 0
        self._assert(assertions)

    def check(self, facts: list[Expr], effort: int) -> tuple[Shape | str | None, int]:
        """Solves the facts; returns an answer like :meth:`Attempt.solve`, and the effort spent, in
        z3's resource units.

        ``facts``: all facts, of which those of earlier calls come first and are not asserted again;
        ``effort``: limit of this call.
        """
        self._assert(facts[self._asserted :])
        self._asserted = len(facts)
        self._solver.set("rlimit", effort)
        answer = self._solver.check()
        before, self._spent = self._spent, self._solver.statistics().get_key_value("rlimit count")
        spent = self._spent - before
        if answer == self._z3.unsat:
            return None, spent
        if answer != self._z3.sat:
            return f"z3 gave up ({self._solver.reason_unknown()})", spent
        model = self._solver.model()
        return {
            name: model.eval(term, model_completion=True).as_long()
            for name, term in self._terms.items()
        }, spent

    def _assert(self, facts: Iterable[Expr]) -> None:
        """Asserts facts as SMT-LIB text, which is much faster than z3's Python API."""
        facts = list(facts)
        names = sorted(frozenset().union(*(f.variables() for f in facts)) - self._terms.keys())
        self._terms |= {name: self._z3.Int(name, self._context) for name in names}
        lines = [f"(declare-const |{name}| Int)" for name in names]
        lines += [f"(assert {fact.smt()})" for fact in facts]
        self._solver.from_string("\n".join(lines))


def tightened(
    space: Space, domain: Mapping[str, Interval], predicates: Iterable[Expr]
) -> dict[str, Interval]:
    """Returns ``domain``, ranges by variable, narrowed by those ``predicates`` that compare a
    variable with a constant.
    """
    result = dict(domain)
    for predicate in predicates:
        for op, left, right in _comparisons(predicate, True):
            for x, c, below in ((left, right, True), (right, left, False)):
                if x.op == "var" and c.op == "const" and x.args[0] in result:
                    low, high = result[x.args[0]]
                    bound = c.args[0]
                    if op in ("==", "<=", "<") and (below or op == "=="):
                        high = min(high, bound - (op == "<"))
                    if op in ("==", "<=", "<") and (not below or op == "=="):
                        low = max(low, bound + (op == "<"))
                    result[x.args[0]] = (low, high)
    for name, choices in space.variables:
        if isinstance(choices, OneOf):
            low, high = result[name]
            possible = [v for v in choices.values if low <= v <= high]
            result[name] = (possible[0], possible[-1]) if possible else (high + 1, high)
    return result


def _comparisons(predicate: Expr, holds: bool) -> Iterator[tuple[str, Expr, Expr]]:
    """Yields comparisons (operator, left, right) that follow from ``predicate`` if ``holds``, or
    else from its negation.
    """
    op, args = predicate.op, predicate.args
    if op == "not":
        yield from _comparisons(args[0], not holds)
    elif op == ("and" if holds else "or"):
        for arg in args:
            yield from _comparisons(arg, holds)
    elif op in ("<", "<=") and not holds:
        yield ("<=" if op == "<" else "<"), args[1], args[0]
    elif op in ("<", "<=", "==") and holds:
        yield op, args[0], args[1]


# -- problems to try ----------------------------------------------------------------
def shapes(space: Space, formulas: Iterable[Expr], seed: int) -> Iterator[Shape]:
    """Yields random problems without end, for a search of counterexamples.

    Half of the sizes are within 1 of a constant of ``formulas`` or of a power of two; some problems
    are next to a bound of a product of sizes.
    """
    rng = random.Random(seed)
    constants = sorted({c for f in formulas for c in _constants(f) if c > 0})
    borders = {b + d for b in (*constants, *(1 << e for e in range(32))) for d in (-1, 0, 1)}
    near = sorted(b for b in borders if 1 <= b <= DIM_MAX)
    domains, sizes = space.domains, space.sizes
    sms = [1, 2, 80, 84, 108, 114, 128, 132, 142, 148, 170, SMS_MAX]

    def dimension() -> int:
        kind = rng.random()
        if kind < 0.5:
            return rng.choice(near)
        return rng.randint(1, 300) if kind < 0.7 else int(2 ** rng.uniform(0, 31))

    def value(name: str, domain: Domain) -> int:
        if name in sizes:
            return min(max(dimension(), domain.low), domain.high)
        if isinstance(domain, OneOf):
            return rng.choice(domain.values)
        if name == "SMS" and rng.random() < 0.8:
            return rng.choice(sms)
        return rng.randint(domain.low, domain.high)

    while True:
        shape = {name: value(name, domain) for name, domain in space.variables}
        if constants and len(sizes) > 1 and rng.random() < 0.3:  # next to a product's bound
            fixed, moved = rng.sample(sizes, 2)
            bound = rng.choice(constants) * (shape["SMS"] if rng.random() < 0.5 else 1)
            moved_to = bound // shape[fixed] + rng.choice((-1, 0, 1))
            shape[moved] = max(domains[moved].low, min(moved_to, domains[moved].high))
        yield shape


def _constants(e: Expr) -> Iterator[int]:
    if e.op == "const":
        if not e.boolean:
            yield e.args[0]
    elif e.op != "var":
        for arg in e.args:
            yield from _constants(arg)
