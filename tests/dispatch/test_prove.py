"""The prover: what it proves, and that every kind of fault is found with a real problem."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from dispatch_fakes import by_hand, table, tiles

from ptxgen.dispatch import emit, read
from ptxgen.dispatch.emit import Table
from ptxgen.dispatch.prove import (
    EFFORT_PER_GOAL,
    Attempt,
    Prover,
    Result,
    _covered,
    _Search,
    bare,
    lemmas,
    prove,
    prove_source,
    shapes,
)
from ptxgen.dispatch.solver import Linear
from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr, ceil_div, const, maximum, minimum, select, var
from ptxgen.spec import (
    ALIGN_A,
    CHUNK,
    CHUNKS,
    DIM_MAX,
    GRID_MAX,
    SMS,
    WORKSPACE_MAX,
    K,
    M,
    N,
)

pytest.importorskip("z3", reason="the prover needs z3-solver (a development dependency)")

PROJECT = Path(__file__).parents[2]
GOALS = {"derived", "coverage", "launch", "requires", "grid", "scratch", "index", "reachable"}


def sample(cases: Iterable[Any], every: int) -> list[Any]:
    """Every so manieth of the cases; the others are long."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.long if number % every else (),
        )
        for number, case in enumerate(cases)
    ]


def failures(results: list[Result]) -> list[Result]:
    return [result for result in results if not result.ok]


def taken(of: Table, shape: dict[str, int], arch: str) -> int | None:
    """The first route that is a candidate, by evaluation."""
    env = by_hand(of, shape)
    for index, route in enumerate(of.routes):
        runs = all(kernel.runs_on(arch) for kernel in route.kernels)
        if runs and emit.condition(of, route).evaluate(env):
            return index
    return None


def in_domain(shape: dict[str, int]) -> bool:
    domains = table().space.domains
    return shape.keys() == domains.keys() and all(
        shape[name] in domain for name, domain in domains.items()
    )


# -- what holds ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "module", ["nt_chunks_f32_simt", pytest.param("tn_chunks_half_tc", marks=pytest.mark.long)]
)
def test_a_table_of_the_library_is_proved(module: str) -> None:
    """``make test`` proves them all, by ``ptxgen prove``; these have the most to prove."""
    (of,) = (t for t in emit.tables() if t.name == module)
    results = prove([of])
    assert not failures(results), "\n".join(map(str, failures(results)))
    scratch = any(route.scratch for route in of.routes)
    assert {r.goal for r in results} == GOALS - (set() if scratch else {"scratch"})


@pytest.mark.parametrize(
    "of",
    [of for of in emit.tables() if of.key[1:2] == ("chunks",)],
    ids=lambda of: of.name,
)
def test_a_batch_is_always_served(of: Table) -> None:
    """The last route of each table of ``matmul`` covers every problem alone, and takes batches."""
    (last,) = {runs[-1] for runs in of.classes.values()}
    assert of.routes[last].batched
    assert _covered(Prover(of), [emit.condition(of, of.routes[last])]).proved


def test_lemmas_belong_to_plans() -> None:
    """Lemmas are proved once for all tables of products under a plan, those of NF4 weights too."""
    of = {table.name: bare(table.space) for table in emit.tables()}
    assert of["nn_chunks_half_tc"] == of["quantized_nn_chunks_half_tc"] != of["tn_chain_half_tc"]
    (low, high) = lemmas(of["nn_chunks_half_tc"], EFFORT_PER_GOAL)["CHUNKS"]
    assert low == 1 < high < DIM_MAX


EFFORTS = """
import sys
import z3
from ptxgen.dispatch import emit, prove

if sys.argv[1] == "used":  # by others, before: their terms have numbers, their names hashes
    solver = z3.Solver()
    solver.add(*(z3.Int(f"x{i}") * z3.Int(f"x{i + 1}") > i for i in range(100)))
    solver.check()
check = prove._Search.check

def told(search, facts, effort):
    found = check(search, facts, effort)
    print(found)
    return found

prove._Search.check = told
(of,) = (t for t in emit.tables() if t.name == "tn_chunks_f32_simt")
print(len(prove.prove([of])))
"""


@pytest.mark.long
def test_a_verdict_is_that_of_any_process() -> None:
    """Every search takes the same steps to the same answer, whatever hashes are and was before."""
    told = []
    for seed, state in (("1", "new"), ("2", "used")):
        found = subprocess.run(
            [sys.executable, "-c", EFFORTS, state],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(found.stdout)
    assert told[0] == told[1]
    assert told[0].count("\n") > 10


def test_a_search_that_takes_long_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempts may end without an answer."""
    seeds: list[int] = []
    begin = _Search.__init__

    def slow(search: _Search, assertions: Iterable[Expr], seed: int) -> None:
        begin(search, assertions, seed)
        seeds.append(seed)
        if seed < 2:
            monkeypatch.setattr(search, "check", lambda *_: ("z3 gave up (canceled)", 7))

    monkeypatch.setattr(_Search, "__init__", slow)
    assert Prover(table()).implies([M >= 2], M * N >= N + 1).proved
    assert seeds[:3] == [0, 1, 2]


def test_a_sound_table_is_proved() -> None:
    sound = table()
    results = prove([sound])
    assert not failures(results), "\n".join(map(str, failures(results)))
    assert {r.goal for r in results} == GOALS
    assert {r.archs for r in results} == {
        ("sm_80", "sm_86", "sm_87", "sm_89", "sm_120", "sm_121"),
        ("sm_90", "sm_100", "sm_103", "sm_110"),
    }


def test_witnesses_take_their_route() -> None:
    sound = table()
    found = [r for r in prove([sound]) if r.goal == "reachable"]
    assert found
    for result in found:
        assert result.shape is not None and in_domain(result.shape)
        index = int(result.subject.split()[1])
        assert [taken(sound, result.shape, arch) for arch in result.archs] == [
            index for _ in result.archs
        ]


def test_a_rare_route_is_reached() -> None:
    """Reachability is proved for a route that one problem in 2^93 takes."""
    rare = M.eq(123_456_789) & N.eq(7_777) & K.eq(1_000_003)
    results = prove([table({"thin": rare})])
    (result,) = [r for r in results if r.goal == "reachable" and "(thin)" in r.subject]
    assert result.ok and result.shape is not None, result
    assert (result.shape["M"], result.shape["N"]) == (123_456_789, 7_777)
    assert result.shape["K"] == 1_000_003


SCRATCH = CHUNKS * M * N * 4
IMPLICATIONS: list[tuple[list[Expr], Expr, bool]] = [
    ([SCRATCH <= WORKSPACE_MAX], tiles(64, 64) * CHUNKS <= GRID_MAX, True),
    ([SCRATCH <= WORKSPACE_MAX], ceil_div(M * N, 256) <= 1 << 18, True),
    ([SCRATCH <= WORKSPACE_MAX], ceil_div(M * N, 256) < 1 << 18, False),
    ([], tiles(64, 64) * CHUNKS >= 1, True),
    ([], tiles(64, 64) <= GRID_MAX, False),
    ([M >= 64, N >= 64, M * N <= 1 << 40], tiles(64, 64) <= GRID_MAX, True),
    ([tiles(64, 64) <= 132], tiles(128, 128) <= 132, True),
    ([tiles(64, 64) <= 132], M * N <= 132 * 4096, True),
    ([tiles(64, 64) <= 132], M * N < 132 * 4096, False),
    ([], (tiles(64, 64) <= 2 * SMS) | (M * N >= SMS * 4096), False),
    ([], CHUNKS <= 16, True),
    ([], CHUNKS <= 15, False),
    ([], (CHUNKS - 1) * CHUNK < K, True),
    ([], CHUNKS * CHUNK <= K, False),
    ([], M * N * K <= DIM_MAX**3, True),
    ([], M * N * K < DIM_MAX**3, False),
    ([ALIGN_A > 4], ALIGN_A >= 8, True),
    ([ALIGN_A > 8], ALIGN_A >= 16, True),
    ([ALIGN_A > 4], ALIGN_A >= 16, False),
    ([(M % 8).eq(0)], (M % 4).eq(0), True),
    ([(M % 4).eq(0)], (M % 8).eq(0), False),
    ([M * N >= 100, M * N <= 102, M > 1, N > 1, M <= N], ~(M * N).eq(101), True),
    ([], minimum(M, N) * maximum(M, N) >= M, True),
]


@pytest.mark.parametrize(
    ("premises", "goal", "holds"),
    sample(IMPLICATIONS, 3),
    ids=[str(case[1]) for case in IMPLICATIONS],
)
def test_implications(premises: list[Expr], goal: Expr, holds: bool) -> None:
    of = table()
    verdict = Prover(of).implies(premises, goal)
    assert verdict.proved is holds, verdict
    if not holds:
        assert verdict.shape is not None and in_domain(verdict.shape)
        env = by_hand(of, verdict.shape)
        assert all(p.evaluate(env) for p in premises) and not goal.evaluate(env)


def test_no_decision_is_a_failure() -> None:
    verdict = Prover(table(), effort_per_goal=0).implies([M >= 2], M * N >= N + 1)
    assert not verdict.proved and verdict.shape is None
    assert "undecided" in verdict.detail
    assert Prover(table()).implies([M >= 2], M * N >= N + 1).proved  # with effort, it is


# -- what the proofs rest on ----------------------------------------------------------
def random_integer(rng: random.Random, depth: int) -> Expr:
    """A random integer expression over the problem variables."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([M, N, K, SMS, CHUNKS, CHUNK, const(rng.choice([1, 3, 64, 4096]))])
    a, b = random_integer(rng, depth - 1), random_integer(rng, depth - 1)
    kind = rng.randrange(8)
    divisor = rng.choice([const(3), const(16), const(128), CHUNK, SMS, M])
    if kind == 0:
        return a + b
    if kind == 1:
        return a - b
    if kind == 2:
        return a * b
    if kind == 3:
        return ceil_div(a, divisor)
    if kind == 4:
        return a // divisor
    if kind == 5:
        return a % divisor
    if kind == 6:
        return select(a < b, a, random_integer(rng, 0))
    return minimum(a, b) if rng.random() < 0.5 else maximum(a, b)


def random_predicate(rng: random.Random, depth: int = 2) -> Expr:
    if depth and rng.random() < 0.4:
        a, b = random_predicate(rng, depth - 1), random_predicate(rng, depth - 1)
        return rng.choice([a & b, a | b, ~a])
    a, b = random_integer(rng, 2), random_integer(rng, 1)
    return rng.choice([a <= b, a < b, a.eq(b)])


@pytest.mark.parametrize("seed", sample(range(40), 4))
def test_every_fact_is_true(seed: int) -> None:
    """A proof is worth what its facts are: all hold for real problems, as do the linear forms."""
    rng = random.Random(seed)
    of = table()
    predicates = [random_predicate(rng) for _ in range(3)]
    attempt = Attempt(of.space, predicates, Prover(of).domain)
    linear = attempt.linear
    linear.relate_products()
    for _ in range(3):  # cuts at points that no problem has
        linear.cuts({name: rng.randint(1, 1 << rng.randint(1, 40)) for name in linear.names()})
    problems = shapes(of.space, predicates, seed)
    for _ in range(50):
        shape = next(problems)
        real = by_hand(of, shape)
        env = linear.complete(shape)
        for fact in linear.facts:
            assert fact.evaluate(env), f"seed {seed}: {fact} is false at {shape}"
        for predicate, assertion in zip(predicates, attempt.assertions, strict=True):
            assert bool(assertion.evaluate(env)) == bool(predicate.evaluate(real)), (
                f"seed {seed}: {predicate} became {assertion} at {shape}"
            )


@pytest.mark.parametrize("seed", sample(range(40), 4))
def test_verdicts_agree_with_evaluation(seed: int) -> None:
    """Random implications: a proved one has no counterexample among random problems."""
    rng = random.Random(1000 + seed)
    of = table()
    premises, goal = [random_predicate(rng, 1)], random_predicate(rng, 1)
    verdict = Prover(of, effort_per_goal=1_000_000).implies(premises, goal)
    if verdict.shape is not None:
        env = by_hand(of, verdict.shape)
        assert all(p.evaluate(env) for p in premises) and not goal.evaluate(env)
    if verdict.proved:
        problems = shapes(of.space, [*premises, goal], seed)
        for _ in range(1000):
            env = by_hand(of, next(problems))
            assert goal.evaluate(env) or not premises[0].evaluate(env), (
                f"seed {seed}: {premises[0]} => {goal} was proved, but not at {env}"
            )


# -- seeded faults ----------------------------------------------------------------------
def the_failure(of: Table, goal: str, part: str = "") -> Result:
    failed = failures(prove([of]))
    assert failed, "the fault was not found"
    matching = [r for r in failed if r.goal == goal and part in r.subject]
    assert matching, "\n".join(map(str, failed))
    return matching[0]


def test_a_gap_in_coverage_is_found() -> None:
    broken = table({"filler": (M < 5_000_011) | (N > 3)})
    result = the_failure(broken, "coverage")
    assert result.shape is not None and in_domain(result.shape)
    assert [taken(broken, result.shape, arch) for arch in result.archs] == [
        None for _ in result.archs
    ]


def test_a_gap_of_one_problem_is_found() -> None:
    """Coverage fails for a gap of one K and, as M * 3 is a given number, of one M."""
    alone = N.eq(3) & K.eq(1_000_003) & (M * N).eq(3 * 77_777_777)
    broken = table({"filler": ~alone, "thin": M.eq(8), "partial": CHUNKS.eq(7)})
    result = the_failure(broken, "coverage")
    assert result.shape is not None and taken(broken, result.shape, result.archs[0]) is None


def test_a_dead_route_is_found() -> None:
    """Up to 8 rows are one tile row of 8, so that no problem has more tiles than columns."""
    result = the_failure(table({"thin": (ceil_div(M, 8) * N > N) & (M <= 8)}), "reachable", "thin")
    assert result.shape is None and "dead: proved" in result.detail


def test_a_shadowed_route_is_found() -> None:
    """Whatever "thin" wants, the route before it takes: its few outputs fit any workspace."""
    shadowed = table({"partial": M * N <= 64, "thin": (M <= 8) & (N <= 8)})
    result = the_failure(shadowed, "reachable", "thin")
    assert "sm_90" in result.archs and "sm_80" not in result.archs  # only the first runs it
    assert "dead: proved" in result.detail


def test_a_route_behind_an_unconditional_one_is_found() -> None:
    first, *rest = table().routes
    shadowed = Table(table().key, table().space, (rest[-1], first))
    result = the_failure(shadowed, "reachable", "big")
    assert "no code was emitted" in result.detail


def test_an_overflow_of_the_grid_is_found() -> None:
    broken = table({"thin": M <= 32}, thin={"ctas": tiles(1, 1), "correct": TRUE, "shared": 0})
    result = the_failure(broken, "grid", "thin")
    assert result.shape is not None and in_domain(result.shape)
    assert taken(broken, result.shape, result.archs[0]) == 2
    assert broken.routes[2].kernels[0].grid.evaluate(by_hand(broken, result.shape)) > GRID_MAX


def test_an_empty_grid_is_found() -> None:
    broken = table(thin={"ctas": M // 8})
    result = the_failure(broken, "grid", "thin")
    assert result.shape is not None and result.shape["M"] < 8


def test_an_overflow_of_the_workspace_is_found() -> None:
    correct = tiles(64, 64) * CHUNKS <= GRID_MAX
    always = {"partial": CHUNKS >= 4}
    broken = table(always, partial={"correct": correct}, reduce={"correct": TRUE})
    result = the_failure(broken, "scratch", "partial")
    assert result.shape is not None and taken(broken, result.shape, result.archs[0]) == 1
    scratch = broken.routes[1].scratch["workspace"].evaluate(by_hand(broken, result.shape))
    assert scratch > WORKSPACE_MAX


def test_an_overflow_of_an_index_is_found() -> None:
    """Columns of 4: eight tile columns are 2^32 elements at N = 2^31 - 1."""
    bound = ("GROUP * tiles_n", ceil_div(N, 4) * 8, (1 << 32) - 1)
    correct = tiles(128, 128) <= GRID_MAX
    broken = table(big={"correct": correct, "bounds": (bound,)})
    result = the_failure(broken, "index", "GROUP * tiles_n")
    assert result.shape is not None
    env = by_hand(broken, result.shape)
    assert correct.evaluate(env) and bound[1].evaluate(env) > bound[2]


def test_a_divisor_that_may_be_zero_is_refused() -> None:
    linear = Linear({"M": (1, 9), "X": (0, 5)}, {})
    with pytest.raises(SpecError, match="the divisor X may be 0"):
        linear.predicate(M // var("X") <= 4)


def test_a_variable_that_no_caller_has_is_refused() -> None:
    with pytest.raises(SpecError, match=r"route 2 \(thin\): prefer reads \['WARPS'\]"):
        table({"thin": var("WARPS") <= 4})
    with pytest.raises(SpecError, match=r"route 3 \(filler\): grid reads \['BATCH'\]"):
        table(filler={"ctas": var("BATCH") + 1})


@pytest.mark.parametrize(
    ("old", "new", "goal"),
    sample(
        [
            ("align_b >= 16 and ", "", "requires"),
            ("and chunks <= 1", "and chunks <= 2", "requires"),
            ('("big",), (tiles_128x128,)', '("big",), (2 * tiles_128x128,)', "launch"),
            ("(chunks * m * n * 4,)", "(chunks * m * n * 2,)", "launch"),
            ('Choice(0, ("big",)', 'Choice(0, ("thin",)', "launch"),
            ("chunk = max(1, min(k, ", "chunk = max(2, min(k, ", "derived"),
            ("chunks = -(-k // chunk)", "chunks = k // chunk", "derived"),
        ],
        3,
    ),
)
def test_a_fault_in_the_emitted_code_is_found(old: str, new: str, goal: str) -> None:
    """The proofs are about the code, not about the tables that it came from."""
    of = table()
    source = emit.source(of)
    joined = source.replace("\n        and ", " and ")
    assert old in joined, joined
    failed = failures(list(prove_source(of, joined.replace(old, new))))
    assert goal in {r.goal for r in failed}, "\n".join(map(str, failed))
    assert any(r.shape is not None or r.goal == "launch" for r in failed if r.goal == goal)


@pytest.mark.parametrize(
    ("old", "new", "goal"),
    sample(
        [
            ('_chain_tn_bf16_64x64x64_bf16_ea06b6", 64,', '_64x64x64_bf16_ea06b6", 96,', "launch"),
            ('(4, 0, 16, 16, ("realign_a", 0))', "(4, 0, 16, 16, (0,))", "launch"),
            ("(6, 16, 16, 0, (6,))", "(6, 8, 16, 0, (6,))", "requires"),
            ("and item_c == c0 and n % c1 == 0", "and item_c == c0", "requires"),
            ('{"a_realigned": pieces_k_m8 * 16}', '{"a_realigned": pieces_k_m8 * 8}', "launch"),
            ("7 in fitting and chunks <= 1", "7 in fitting and chunks <= 0", "coverage"),
        ],
        3,
    ),
)
def test_a_fault_in_rows_of_constants_is_found(old: str, new: str, goal: str) -> None:
    """The code that is checked in, of a table whose routes are combined from launches."""
    (of,) = (t for t in emit.tables() if t.name == "tn_chain_half_tc")
    source = emit.checked_in(of)
    assert not failures(list(prove_source(of, source)))
    joined = source.replace("\n            and ", " and ")
    assert old in joined, joined
    failed = failures(list(prove_source(of, joined.replace(old, new))))
    assert goal in {r.goal for r in failed}, "\n".join(map(str, failed))


@pytest.mark.parametrize(
    ("old", "new"),
    [("6 in fitting", "5 in fitting"), ("launches[launch] = us", "launches[3] = us")],
)
def test_a_launch_is_computed_where_routes_have_it(old: str, new: str) -> None:
    (of,) = (t for t in emit.tables() if t.name == "tn_chain_half_tc")
    source = emit.checked_in(of)
    assert old in source
    with pytest.raises(SpecError, match=r"launch .* is computed"):
        read.functions(source.replace(old, new), of.name, of.space)


def test_reading_back_is_exact() -> None:
    """Emitted conditions read back as the expressions of the table, evaluated."""
    of = table()
    problems = Prover(of).shapes(seed=5)
    for function in read.functions(emit.source(of), of.name, of.space):
        for branch in function.branches:
            route = of.routes[branch.route]
            for _ in range(300):
                env = by_hand(of, next(problems))
                expected = route.requires.evaluate(env) and route.prefer.evaluate(env)
                assert bool(branch.condition.evaluate(env)) == bool(expected), env
                assert [g.evaluate(env) for g in branch.grids] == [
                    step.grid.evaluate(env) for step in route.steps
                ]


@pytest.mark.parametrize(
    "line", ["    while m:", "    m += 1", "    x = f(m)", "    if m > n > k:", "    del m"]
)
def test_other_code_is_not_read(line: str) -> None:
    body = f"{line}\n        return None" if line.endswith(":") else line
    with pytest.raises(SpecError, match="no dispatch function has"):
        read.functions(
            "def candidates(table, arch, m, n, k, sms, align_a, align_b, time):\n"
            f"    chunk = k\n{body}\n",
            table().name,
            table().space,
        )
