"""Proves the generated dispatch code right for every problem.

For all 1 <= M, N, K < 2^31, every alignment of 4, 8 or 16 bytes and 1 .. 1024 SMs, from the
conditions as emitted (:mod:`ptxgen.dispatch.read`):

=========  ======================================================================
current    the checked-in code is what the tables say
plan       CHUNK and CHUNKS are computed as the contract's plan says
coverage   some route matches
requires   a match implies the ``requires`` of every kernel of the route
launch     kernels, grids and workspace are those of the specs
grid       1 <= grid <= 2^31 - 1
workspace  0 <= workspace <= WORKSPACE_MAX
index      no 32-bit quantity of a kernel overflows wherever its ``requires`` holds
reachable  the route is taken by some problem (no route is dead)
=========  ======================================================================

A proof is by refutation with z3 (see :mod:`ptxgen.dispatch.linear`). A problem that refutes
a goal is only reported after evaluation has confirmed it; what neither is proved nor
refuted in the time given fails too.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.contract import K
from ptxgen.dispatch import emit, read
from ptxgen.dispatch.choice import Dispatch
from ptxgen.dispatch.emit import ARGUMENTS, Table
from ptxgen.dispatch.linear import Interval, Linear
from ptxgen.errors import SpecError
from ptxgen.expr import FALSE, Expr, all_of, any_of, ceil_div, maximum, minimum
from ptxgen.spec import ALIGN_A, ALIGN_B, CHUNK, CHUNKS, DIM_MAX, GRID_MAX, WORKSPACE_MAX

ALIGNMENTS = (4, 8, 16)
SMS_MAX = 1024
DOMAIN: dict[str, Interval] = {
    **dict.fromkeys(("M", "N", "K"), (1, DIM_MAX)),
    "SMS": (1, SMS_MAX),
    **dict.fromkeys(("ALIGN_A", "ALIGN_B"), (ALIGNMENTS[0], ALIGNMENTS[-1])),
}
SECONDS_PER_GOAL = 10.0
SAMPLES = 20_000
FIRST_SAMPLES = 1_000
ROUNDS_MAX = 200

Shape = dict[str, int]


@dataclass(frozen=True)
class Result:
    """One goal: proved (``ok``), or not.

    ``shape``: a problem that refutes the goal; for "reachable", one that takes the route.
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
    """Whether premises imply a goal: proved, refuted by ``shape``, or (neither) undecided."""

    proved: bool
    shape: Shape | None
    detail: str


def prove(
    of: Iterable[Table] | None = None,
    *,
    seconds_per_goal: float = SECONDS_PER_GOAL,
    report: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Proves all goals of the tables ``of`` (default: all, and that the code is current).

    ``report`` is called with each result as it comes. Needs z3-solver.
    """
    results = []
    for result in _prove(of, seconds_per_goal):
        results.append(result)
        if report is not None:
            report(result)
    return results


def _prove(of: Iterable[Table] | None, seconds: float) -> Iterator[Result]:
    if of is None:
        began = time.perf_counter()
        stale = emit.generate(check=True)
        detail = ", ".join(f"{d.path.name} {d.what}" for d in stale)
        took = time.perf_counter() - began
        yield Result("current", "generated", (), "", not stale, took, detail)
    for table in emit.tables() if of is None else of:
        source = emit.sources([table])[f"{table.module}.py"]
        yield from prove_source(table, source, seconds)


def prove_source(
    table: Table, source: str, seconds_per_goal: float = SECONDS_PER_GOAL
) -> Iterator[Result]:
    """Proves all goals of the module text ``source`` against ``table``."""
    prover = Prover(table, seconds_per_goal)
    namespace: dict[str, Any] = {}
    exec(compile(source, f"{table.module}.py", "exec"), namespace)
    for function in read.functions(source):
        yield from _prove_function(prover, function, namespace[function.name])


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
            table.module,
            function.archs,
            subject,
            verdict.proved,
            took,
            verdict.detail,
            verdict.shape,
        )

    def implied(premises: list[Expr], goal: Expr) -> Callable[[], Verdict]:
        return lambda: prover.implies(premises, goal)

    plan = function.chunk.eq(maximum(1, minimum(K, table.plan.chunk)))
    if function.chunks is not None:
        plan = plan & function.chunks.eq(ceil_div(K, CHUNK))
    yield result("plan", "", implied([], plan))
    yield result("coverage", "", implied([], any_of(conditions)))
    for i, branch in enumerate(branches):
        taken = [branch.condition]
        chosen = [*taken, *(~c for c in conditions[:i])]
        route = table.routes[branch.route]
        subject = f"route {branch.route} ({route.name})"

        def when_taken(
            goal: Expr, taken: list[Expr] = taken, chosen: list[Expr] = chosen
        ) -> Verdict:
            """The condition alone usually suffices; a refutation must pass over earlier routes."""
            verdict = prover.implies(taken, goal)
            return verdict if verdict.proved else prover.implies(chosen, goal)

        names = tuple(kernel.name for kernel in route.kernels)
        same = all_of(
            emitted.eq(kernel.grid)
            for emitted, kernel in zip(branch.grids, route.kernels, strict=False)
        )
        same = same & branch.workspace.eq(route.workspace)
        if branch.kernels != names or len(branch.grids) != len(names):
            detail = f"emitted {branch.kernels}, table {names}"
            yield result("launch", subject, _failed(detail))
        else:
            yield result("launch", subject, functools.partial(when_taken, same))
        goals = [("requires", route.requires)]
        goals += [("grid", all_of((g >= 1) & (g <= GRID_MAX) for g in branch.grids))]
        goals += [("workspace", (branch.workspace >= 0) & (branch.workspace <= WORKSPACE_MAX))]
        for goal, predicate in goals:
            yield result(goal, subject, functools.partial(when_taken, predicate))
        for kernel in route.kernels:
            for text, largest, limit in kernel.index_bounds:
                what = f"route {branch.route} ({kernel.name}): {text} <= {limit}"
                goal_holds = (largest >= 0) & (largest <= limit)
                yield result("index", what, implied([kernel.requires], goal_holds))
    yield from _prove_reachable(prover, function, compiled, result)


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
                table.module,
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
            premises = [branches[i].condition, *(~b.condition for b in branches[:i])]
            yield result("reachable", subject, functools.partial(prover.satisfiable, premises))


def _witnesses(prover: Prover, compiled: Dispatch, wanted: int) -> dict[int, Shape]:
    """A problem for each route that sampling finds."""
    found: dict[int, Shape] = {}
    shapes = prover.shapes(seed=1)
    for _ in range(SAMPLES):
        shape = next(shapes)
        choice = compiled(*(shape[name] for name in ARGUMENTS))
        if choice is not None and choice.route not in found:
            found[choice.route] = shape
            if len(found) == wanted:
                break
    return found


class Prover:
    """Decides implications over the problems of one table."""

    def __init__(self, table: Table, seconds_per_goal: float = SECONDS_PER_GOAL) -> None:
        self.table = table
        self._seconds = seconds_per_goal
        self._aliases = {
            "CHUNK": maximum(1, minimum(K, table.plan.chunk)),
            "CHUNKS": ceil_div(K, CHUNK),
        }
        self._verdicts: dict[tuple[tuple[Expr, ...], Expr], Verdict] = {}

    def shapes(self, seed: int) -> Iterator[Shape]:
        """Random problems of this table, crowded at the borders of its predicates."""
        formulas = [self.table.plan.chunk]
        for route in self.table.routes:
            formulas += [emit.condition(route), *(kernel.grid for kernel in route.kernels)]
        return shapes(formulas, seed)

    def implies(self, premises: Iterable[Expr], goal: Expr) -> Verdict:
        """Whether ``goal`` holds for every problem for which ``premises`` do."""
        key = (tuple(premises), goal)
        if key not in self._verdicts:
            self._verdicts[key] = self._implies(*key)
        return self._verdicts[key]

    def satisfiable(self, premises: Iterable[Expr]) -> Verdict:
        """Whether some problem has all of ``premises``; proved if so, with the problem."""
        verdict = self.implies(premises, FALSE)
        if verdict.proved:
            return Verdict(False, None, "dead: proved that no problem takes it")
        if verdict.shape is None:
            return Verdict(False, None, f"no witness found ({verdict.detail})")
        return Verdict(True, verdict.shape, "witness")

    @functools.cached_property
    def chunks_max(self) -> int:
        """A proved bound on CHUNKS, the best one if all goes well; it helps other proofs."""
        problems = self.shapes(seed=3)
        seen = (self.table.environment(next(problems))["CHUNKS"] for _ in range(FIRST_SAMPLES))
        largest = max(seen)
        for bound in (largest, 2 * largest, 16 * largest):
            if self._decide((), bound >= CHUNKS, DOMAIN, self._seconds / 5).proved:
                return bound
        return DIM_MAX

    def _implies(self, premises: tuple[Expr, ...], goal: Expr) -> Verdict:
        domain = tightened({**DOMAIN, "CHUNKS": (1, self.chunks_max)}, (*premises, ~goal))
        if any(low > high for low, high in domain.values()):
            return Verdict(True, None, "")
        return self._decide(premises, goal, domain, self._seconds)

    def _decide(
        self, premises: tuple[Expr, ...], goal: Expr, domain: Mapping[str, Interval], seconds: float
    ) -> Verdict:
        def refuted_by(shape: Shape) -> bool:
            env = self.table.environment(shape)
            return all(p.evaluate(env) for p in premises) and not goal.evaluate(env)

        attempt = Attempt(self._aliases, (*premises, ~goal), domain)
        answer = attempt.solve(seconds)
        if answer is None:
            return Verdict(True, None, "")
        if isinstance(answer, dict) and refuted_by(answer):
            return Verdict(False, answer, "refuted")
        problems = self.shapes(seed=2)
        for number in range(SAMPLES):
            if number == FIRST_SAMPLES:  # not an easy one
                answer = attempt.refine(seconds, refuted_by)
                if answer is None:
                    return Verdict(True, None, "")
                if isinstance(answer, dict):
                    return Verdict(False, answer, "refuted")
            shape = next(problems)
            if refuted_by(shape):
                return Verdict(False, shape, "refuted")
        return Verdict(False, None, f"undecided: {answer}")


class Attempt:
    """The search for a problem that has all of ``predicates``, in linear arithmetic."""

    def __init__(
        self,
        aliases: Mapping[str, Expr],
        predicates: Iterable[Expr],
        domain: Mapping[str, Interval] = DOMAIN,
    ) -> None:
        import z3

        self._domain = domain
        self.linear = Linear(domain, aliases)
        self.assertions = [self.linear.predicate(p) for p in predicates]
        reads = frozenset().union(*(a.variables() for a in self.assertions))
        for align in (ALIGN_A, ALIGN_B):
            if align.variables() <= reads:
                self.linear.facts.append(any_of(align.eq(bytes_) for bytes_ in ALIGNMENTS))
        self._z3 = z3
        self._solver = z3.Solver()
        self._terms: dict[str, Any] = {}
        self._values: Shape = {}
        self._told = 0
        self._tell(self.assertions)

    def solve(self, seconds: float) -> Shape | str | None:
        """None: there is no such problem; a shape: a guess; text: why it is not known."""
        if FALSE in self.assertions:
            return None
        if seconds <= 0:
            return "no time left"
        self._tell(self.linear.facts[self._told :])
        self._told = len(self.linear.facts)
        self._solver.set("timeout", max(1, int(1000 * seconds)))
        answer = self._solver.check()
        if answer == self._z3.unsat:
            return None
        if answer != self._z3.sat:
            return f"z3 gave up ({self._solver.reason_unknown()})"
        model = self._solver.model()
        self._values = {
            name: model.eval(term, model_completion=True).as_long()
            for name, term in self._terms.items()
        }
        return {name: self._values.get(name, self._domain[name][1]) for name in ARGUMENTS}

    def refine(self, seconds: float, confirmed: Callable[[Shape], bool]) -> Shape | str | None:
        """As :meth:`solve`, but a shape is one that is ``confirmed``.

        Each guess that is not is excluded by facts about products.
        """
        deadline = time.monotonic() + seconds
        self.linear.relate_products()
        for number in range(ROUNDS_MAX):
            self.linear.cuts(self._values)
            if self._told == len(self.linear.facts):
                return "a solution in linear arithmetic that evaluation does not confirm"
            answer = self.solve(deadline - time.monotonic())
            if isinstance(answer, str):
                return f"{answer} after {number} refinements"
            if answer is None or confirmed(answer):
                return answer
        return f"not decided after {ROUNDS_MAX} refinements"

    def _tell(self, facts: Iterable[Expr]) -> None:
        for fact in facts:
            for name in fact.variables() - self._terms.keys():
                self._terms[name] = self._z3.Int(name)
            self._solver.add(fact.smt(self._terms))


def tightened(domain: Mapping[str, Interval], predicates: Iterable[Expr]) -> dict[str, Interval]:
    """``domain`` cut to what comparisons of one variable among ``predicates`` leave of it."""
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
    for name in ("ALIGN_A", "ALIGN_B"):
        low, high = result[name]
        possible = [bytes_ for bytes_ in ALIGNMENTS if low <= bytes_ <= high]
        result[name] = (possible[0], possible[-1]) if possible else (high + 1, high)
    return result


def _comparisons(predicate: Expr, holds: bool) -> Iterator[tuple[str, Expr, Expr]]:
    """Comparisons that follow at once from ``predicate`` being ``holds``."""
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
def shapes(formulas: Iterable[Expr], seed: int) -> Iterator[Shape]:
    """Endless random problems, half of them next to the constants of ``formulas``."""
    rng = random.Random(seed)
    constants = sorted({c for f in formulas for c in _constants(f) if c > 0})
    borders = {b + d for b in (*constants, *(1 << e for e in range(32))) for d in (-1, 0, 1)}
    near = sorted(b for b in borders if 1 <= b <= DIM_MAX)
    sms = [1, 2, 80, 84, 108, 114, 128, 132, 142, 148, 170, SMS_MAX]

    def dimension() -> int:
        kind = rng.random()
        if kind < 0.5:
            return rng.choice(near)
        return rng.randint(1, 300) if kind < 0.7 else int(2 ** rng.uniform(0, 31))

    while True:
        shape = {name: min(dimension(), DIM_MAX) for name in ("M", "N", "K")}
        shape["SMS"] = rng.choice(sms) if rng.random() < 0.8 else rng.randint(1, SMS_MAX)
        if constants and rng.random() < 0.3:  # next to a bound on a product
            fixed, moved = rng.sample(("M", "N", "K"), 2)
            bound = rng.choice(constants) * (shape["SMS"] if rng.random() < 0.5 else 1)
            moved_to = bound // shape[fixed] + rng.choice((-1, 0, 1))
            shape[moved] = max(1, min(moved_to, DIM_MAX))
        shape["ALIGN_A"], shape["ALIGN_B"] = rng.choice(ALIGNMENTS), rng.choice(ALIGNMENTS)
        yield shape


def _constants(e: Expr) -> Iterator[int]:
    if e.op == "const":
        if not e.boolean:
            yield e.args[0]
    elif e.op != "var":
        for arg in e.args:
            yield from _constants(arg)
