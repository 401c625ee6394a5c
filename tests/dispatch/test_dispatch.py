"""The emitted dispatch code, choose and explain, against the route tables themselves."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dispatch_fakes
import pytest

from ptxgen import spec
from ptxgen.cost.kernel import KernelCost, Phase
from ptxgen.cost.tuning import tuning_for, tunings
from ptxgen.dispatch import choose, emit, functions_of
from ptxgen.dispatch.choice import Choice, Dispatch, best, by_architecture
from ptxgen.dispatch.emit import Table
from ptxgen.dispatch.modules import modules
from ptxgen.dispatch.prove import Prover
from ptxgen.dispatch.unify import Word, filled, form, leaves
from ptxgen.errors import DtypeError, OptionError, ShapeError, SpecError, UncoveredError
from ptxgen.expr import FALSE, TRUE, ceil_div, const, maximum, var
from ptxgen.numerics.contract import CONTRACTS, ITEMSIZE, OPERATIONS, PLANS, Plan
from ptxgen.ops.explaining import explain, problem_of
from ptxgen.ops.gemm import table_of
from ptxgen.program.step import _accesses
from ptxgen.spec import ARCHITECTURES, DIM_MAX, K, M, N, Route, RouteTable
from ptxgen.tiles import SPECS
from ptxgen.tiles import TABLES as ALL

SEED = 20_240_607
EVALUATIONS = 4_000
FUNCTIONS = [(t, archs[0]) for t in emit.tables() for archs in t.classes]
Problem = dict[str, int]


def direct(table: Table, arch: str) -> Callable[[Problem], list[tuple[object, Choice]]]:
    """The candidates that the code must yield, from the expressions of the table, each with what a
    time is predicted from; where routes are taken in order, the first alone.
    """
    routes = [
        (index, route)
        for index, route in enumerate(table.routes)
        if all(kernel.runs_on(arch) for kernel in route.kernels)
    ]

    def candidates(shape: Problem) -> list[tuple[object, Choice]]:
        env = dispatch_fakes.by_hand(table, shape)
        found: list[tuple[object, Choice]] = []
        for index, route in routes:
            if not route.requires.evaluate(env):
                continue
            if table.ordered and (found or not route.prefer.evaluate(env)):
                continue
            names = tuple(kernel.name for kernel in route.kernels)
            grids = tuple(step.grid.evaluate(env) for step in route.steps)
            scratch = tuple(size.evaluate(env) for size in route.scratch.values())
            asked: tuple[object, ...] = ()
            for step in route.steps:
                if (cost := step.cost) is not None:
                    asked += (step.kernel.name, *cost.arguments(env))
            found.append((0.0 if table.ordered else asked, Choice(index, names, grids, scratch)))
        return found

    return candidates


def asked(*cost: object) -> tuple[object, ...]:
    """Stands in for a predicted time: returns the arguments that it is predicted from."""
    return cost


def compiled(table: Table) -> dict[str, Dispatch]:
    """The emitted functions of a table that is not checked in, by architecture."""
    return emit.functions(table)


def compare(table: Table, arch: str, function: Dispatch, problems: int) -> set[int]:
    """Compares the code with the table on random problems; returns the routes that were found."""
    taken = set()
    shapes, reference = Prover(table).shapes(SEED), direct(table, arch)
    for number in range(problems):
        shape = next(shapes)
        found = list(function(*(shape[name] for name in table.space.arguments), time=asked))
        expected = reference(shape)
        assert found == expected, (
            f"{table.name} {arch}, seed {SEED}, problem {number}, {shape}: "
            f"code {found}, table {expected}"
        )
        taken |= {candidate.choice.route for candidate in found}
    return taken


# -- code and tables ----------------------------------------------------------------
@pytest.mark.parametrize(("table", "arch"), FUNCTIONS, ids=[f"{t.name}-{a}" for t, a in FUNCTIONS])
def test_code_agrees_with_the_table(table: Table, arch: str) -> None:
    """Thousands of problems crowded at the borders of the predicates, fewer of many routes."""
    found = functions_of(table.key)[arch]
    taken = compare(table, arch, found, -(-EVALUATIONS // max(len(table.routes), 10)))
    there = [r for r in table.routes if all(kernel.runs_on(arch) for kernel in r.kernels)]
    assert len(taken) > 1 or len(there) <= 1, f"only {taken} were taken"


def test_code_agrees_with_a_table_of_every_construct() -> None:
    """Long conditions, disjunctions, negations, divisions, minima, and routes that never match."""
    long = (M < 8) & (N > 4) | (M % 3).eq(1) & ~(N // 7 < 900) | ~((K % N).eq(0) | (M > K))
    wide = [(N % p).eq(0) & (p < K) | (M % p).eq(p - 1) for p in (2, 3, 5, 7, 11, 13)]
    many = wide[0] & wide[1] & (wide[2] | wide[3] | wide[4] | wide[5])
    table = dispatch_fakes.table({"big": long, "partial": many, "thin": FALSE})
    functions = compiled(table)
    for arch in ("sm_80", "sm_90"):
        assert compare(table, arch, functions[arch], 5_000) >= {0, 3}


def test_code_agrees_with_a_table_of_efforts_with_phases() -> None:
    """Emitted code agrees with a table of costs with one to three phases on several units, where
    two kernels differ in units and numbers alone.
    """
    scores, values = Phase("wgmma", ceil_div(K, 64), K * 128), Phase("wgmma", N, N * K * 64)
    apart = Phase("mma", ceil_div(K, 64), K * 256), Phase("fma64", N, N * K * 16)
    three = (scores, Phase("fma", const(1), N * 64), values)
    phases = {"big": (scores,), "partial": (scores, values), "reduce": apart, "filler": three}
    work = {
        name: {"work": KernelCost(2, M + N, of, M * K, (M + N) * K, M * N * 4)}
        for name, of in {**phases, "thin": apart}.items()
    }
    table = dispatch_fakes.table(**work)
    assert not table.ordered
    functions = compiled(table)
    for arch in ("sm_80", "sm_90"):
        assert compare(table, arch, functions[arch], 5_000) >= {0, 1, 3}
    kernel = table.routes[1].steps[0]
    given = replace(kernel, given={"K": K * 2}).cost
    assert given is not None
    shape = {"M": 3, "N": 5, "K": 7, "SMS": 132}
    assert given.arguments(shape) == kernel.cost.arguments({**shape, "K": 14})
    assert given.arguments(shape)[-3:] == ("wgmma", 5, 5 * 14 * 64)


def test_a_cost_has_phases_on_known_units() -> None:
    with pytest.raises(SpecError, match="a phase on 'abacus'; takes fma, mma, wgmma"):
        Phase("abacus", const(1), const(1))
    with pytest.raises(SpecError, match="a cost without phases"):
        KernelCost(1, M, (), M, M, M)


def test_an_uncovered_problem_is_none() -> None:
    functions = compiled(dispatch_fakes.table({"filler": M > 8, "thin": FALSE, "partial": FALSE}))
    assert not [*functions["sm_90"](1, 1, 1, 132, 16, 16, time=asked)]
    assert best([]) is None
    assert [*functions["sm_90"](9, 1, 1, 132, 16, 16, time=asked)]


def test_architectures_have_the_routes_that_they_run() -> None:
    functions = compiled(dispatch_fakes.table())
    assert functions.keys() == ARCHITECTURES.keys()
    for arch, route in (("sm_90", 2), ("sm_80", 3)):
        (candidate,) = functions[arch](1, 4, 1, 132, 16, 16, time=asked)
        assert candidate.choice.route == route


def test_emitted_code_interprets_nothing() -> None:
    """Formulas are Python, and loops are over rows of constants."""
    for name, source in emit.sources().items():
        tree = ast.parse(source)
        constants = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and name != "__init__.py":
                assert node.module in ("ptxgen.dispatch.choice", "collections.abc"), name
            if isinstance(node, ast.For):
                read = {each.id for each in ast.walk(node.iter) if isinstance(each, ast.Name)}
                assert len(read & constants - {"ROUTES"}) in (1, 2), ast.unparse(node.iter)
                assert read - constants <= {"fitting", "table", "arch"}, ast.unparse(node.iter)
            assert not isinstance(node, ast.Import | ast.While | ast.Lambda | ast.comprehension)


def test_tables_that_differ_in_names_share_a_module() -> None:
    one = dispatch_fakes.table()
    names = {part: {"called": f"other_{part}"} for part in dispatch_fakes.kernels()}
    other = replace(dispatch_fakes.table(**names), key=("NT", "chunks", "f32", "simt"))
    third = replace(dispatch_fakes.table({"thin": M <= 77}), key=("TN", "chunks", "f32", "simt"))
    shared, alone = modules([one, other, third])
    assert (shared.name, shared.tables) == ("chunks_f32_simt", (one, other))
    assert (alone.name, alone.tables) == ("tn_chunks_f32_simt", (third,))
    namespace: dict[str, Any] = {}
    exec(shared.text, namespace)
    for table in (one, other):
        functions = by_architecture(namespace["candidates"], table.key)
        assert compare(table, "sm_90", functions["sm_90"], 500) == {0, 1, 2, 3}
    assert shared.text.count("\n") < 2 * emit.source(one).count("\n")


def test_a_route_of_a_known_form_is_two_lines() -> None:
    """A row of its kernel's constants, and a row of what it asks and launches."""
    (table,) = (t for t in emit.tables() if t.name == "nt_chunks_half_tc")
    lines = emit.source(table).count("\n")
    names = [route.name for route in table.routes]
    tiles = [index for index, name in enumerate(names) if name.startswith("wgmma_nt_bf16_64x")]
    assert len(tiles) > 4
    for index in tiles[:4]:
        fewer = replace(table, routes=(*table.routes[:index], *table.routes[index + 1 :]))
        assert lines - emit.source(fewer).count("\n") in (0, 1, 2), names[index]


def test_a_form_keeps_what_it_is_filled_with() -> None:
    of = (Word("kernel", '"simt"'), ceil_div(M, 64) * K + 3, (N <= 128) & (K % 7).eq(0))
    found = leaves(of)
    assert [leaf.text for leaf in found] == [
        '"simt"',
        "m",
        "64",
        "k",
        "3",
        "n",
        "128",
        "k",
        "7",
        "0",
    ]
    assert [leaf.name for leaf in found if not leaf.variable] == [
        *("kernel", "bm", "c", "most_n", "c", "c"),
    ]  # fmt: skip
    assert filled(of, [""] * len(found)) == of
    renamed = filled(of, ["", "", "bm", *[""] * 7])
    assert renamed[1] == ceil_div(M, var("bm")) * K + 3 and renamed[2] == of[2]
    others = (of[0], ceil_div(M, 32) * K + 3, of[2]), (of[0], ceil_div(N, 64) * K + 3, of[2])
    assert [form(each, False) == form(of, False) for each in others] == [True, False]
    assert all(form(each, True) == form(of, True) for each in others)


def test_emitted_code_says_where_it_comes_from_and_why() -> None:
    table = dispatch_fakes.table()
    source = emit.source(table)
    assert "do not edit" in source and "ptxgen generate" in source
    assert "Dispatch of NN chunks f32 simt" in source and "ptxgen.tiles.TABLES" in source
    for index, route in enumerate(table.routes):
        assert f"# {index}: {route.reason}" in source


def test_emitted_code_is_clean(tmp_path: Path) -> None:
    long = (M < 8) & (N > 4) | (M % 3).eq(1) & ~(N // 7 < 900) | ~((K % N).eq(0) | (M > K))
    fake = dispatch_fakes.table({"thin": long & (M * N * K > 12_345_678) & (N.eq(7) | M.eq(9))})
    emit.generate(of=[fake], directory=tmp_path)
    for directory in (emit.GENERATED, tmp_path):
        command = [sys.executable, "-m", "ruff", "check", "--select", "E,W,F,I,N,UP,B,SIM,RUF"]
        options = ["--isolated", "--no-cache", "--line-length", "100", directory]
        run = subprocess.run([*command, *options], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr


# -- drift --------------------------------------------------------------------------
def test_checked_in_code_is_current() -> None:
    found = emit.generate(check=True)
    assert not found, "run `ptxgen generate`:\n" + "\n".join(map(str, found))


def test_drift_is_found_and_repaired(tmp_path: Path) -> None:
    before = dispatch_fakes.table()
    after = dispatch_fakes.table({"thin": M <= 77})
    emit.generate(of=[before], directory=tmp_path)
    assert emit.generate(check=True, of=[before], directory=tmp_path) == []
    (stale,) = emit.generate(check=True, of=[after], directory=tmp_path)
    assert stale.what == "stale" and "and tiles_8x64 <= 2147483647 and m <= 77" in stale.diff
    assert emit.generate(check=True, of=[after], directory=tmp_path) == [stale], "check wrote"
    assert emit.generate(of=[after], directory=tmp_path) == [stale]
    assert emit.generate(check=True, of=[after], directory=tmp_path) == []


def test_missing_and_orphan_files_are_found(tmp_path: Path) -> None:
    table = dispatch_fakes.table()
    emit.generate(of=[table], directory=tmp_path)
    (tmp_path / f"{table.name}.py").unlink()
    (tmp_path / "old_rows_f32_simt.py").write_text("x = 1\n")
    found = emit.generate(check=True, of=[table], directory=tmp_path)
    assert [(d.path.name, d.what) for d in found] == [
        (f"{table.name}.py", "missing"),
        ("old_rows_f32_simt.py", "orphan"),
    ]
    assert "-x = 1" in found[1].diff
    emit.generate(of=[table], directory=tmp_path)
    assert not (tmp_path / "old_rows_f32_simt.py").exists()
    assert emit.generate(check=True, of=[table], directory=tmp_path) == []


# -- choose ---------------------------------------------------------------------------
# From the definition of the triad: op, layout -> table, and where m, n, k go.
PRODUCTS = {
    ("linear", "kn"): ("NN", "chunks", "mnk"),
    ("linear", "nk"): ("NT", "chunks", "mnk"),
    ("linear_dgrad", "kn"): ("NT", "chunks", "mkn"),
    ("linear_dgrad", "nk"): ("NN", "chunks", "mkn"),
    ("linear_wgrad", "kn"): ("TN", "chunks", "knm"),
    ("linear_wgrad", "nk"): ("TN", "chunks", "nkm"),
    ("matmul", "nn"): ("NN", "chunks", "mnk"),
    ("matmul", "nt"): ("NT", "chunks", "mnk"),
    ("matmul", "tn"): ("TN", "chunks", "mnk"),
    ("matmul", "tt"): ("TT", "chunks", "mnk"),
}


KINDS = sorted(
    {(dtype, key[3]) for key, table in ALL.items() if len(key) == 4 for dtype in table.dtypes}
)
"""The dtypes of products, with the tiers that serve them."""
SHOWN = [pytest.param(*k, marks=pytest.mark.long if k[0] == "f16" else ()) for k in KINDS]
"""Parameters (dtype, tier); f16 shares the tables of bf16, so it is left to long runs."""


def alignments(dtype: str) -> tuple[int, ...]:
    """Returns the alignments in bytes that operands of this dtype can have."""
    return tuple(a for a in (2, 4, 8, 16) if a >= ITEMSIZE[dtype])


def chosen(
    op: str,
    layout: str,
    sizes: tuple[int, int, int],
    align: tuple[int, int],
    arch: str,
    sms: int,
    dtype: str,
    tier: str,
) -> Choice:
    """The kernels that serve an operation of these sizes."""
    of = {"layout": layout, "tier": tier}
    return serve(problem_of(op, sizes, dtype, align, of), arch, sms)


def serve(problem: spec.Problem, arch: str, sms: int, gpu: str | None = None) -> Choice:
    """The kernels that serve a problem on a GPU."""
    values = dict(problem.values)
    return choose(problem.table, values, arch=arch, sms=sms, dtype=problem.dtype, gpu=gpu)


@pytest.mark.parametrize(("dtype", "tier"), SHOWN)
@pytest.mark.parametrize(("op", "layout"), PRODUCTS)
def test_choose_maps_operations_to_products(op: str, layout: str, dtype: str, tier: str) -> None:
    storage, plan, order = PRODUCTS[op, layout]
    rng = random.Random(SEED)
    for arch in ARCHITECTURES:
        function = functions_of(table_of(storage, plan, dtype, tier))[arch]
        for _ in range(20):
            m, n, k = (int(2 ** rng.uniform(0, 31)) for _ in range(3))
            dims = {"m": m, "n": n, "k": k}
            sms, a, b = rng.randint(1, 200), *(rng.choice(alignments(dtype)) for _ in "ab")
            choice = chosen(op, layout, (m, n, k), (a, b), arch, sms, dtype, tier)
            first, second, third = (dims[x] for x in order)
            # The products' A and B, where the operation's arguments are the other way round.
            on_a, on_b = (b, a) if (op, layout) == ("linear_wgrad", "nk") else (a, b)
            time = tuning_for(arch)[0].time
            expected = best(function(first, second, third, sms, on_a, on_b, time=time))
            assert expected is not None
            assert choice.route == expected.route, (dims, sms, a, b)
            assert (choice.grids, choice.scratch) == (expected.grids, expected.scratch)
            twins = tuple(SPECS[kernel].of(dtype).name for kernel in expected.kernels)
            assert choice.kernels == twins


def test_every_operation_is_in_the_test_above() -> None:
    assert set(PRODUCTS) == {
        (op.name, layout) for op in OPERATIONS.values() for layout in op.products
    }


KEY = ("NN", "chunks", "f32", "simt")
VALUES = {"M": 1, "N": 2, "K": 3, "ALIGN_A": 16, "ALIGN_B": 16}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": ("NN", "gemm")}, r"unknown table 'NN gemm'; accepted: .*'NN chunks f32 simt'"),
        ({"arch": "sm_70"}, "unknown architecture 'sm_70'; did .* accepted: 'sm_100', 'sm_103'"),
        ({"dtype": "f16"}, "unknown dtype of NN chunks f32 simt 'f16'; accepted: 'f32'$"),
    ],
)
def test_unknown_options_are_named(change: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"table": KEY, "values": VALUES, "arch": "sm_90", "sms": 132}
    choose(**call)
    with pytest.raises(OptionError, match=message):
        choose(**{**call, **change})


def test_a_table_of_two_dtypes_names_the_kernels_of_the_one_asked_for() -> None:
    key = ("NN", "chunks", "half", "tc")
    one, other = (
        choose(key, VALUES, arch="sm_90", sms=132, dtype=dtype) for dtype in ("bf16", "f16")
    )
    assert one == choose(key, VALUES, arch="sm_90", sms=132)
    assert [SPECS[k].dtype for k in (*one.kernels, *other.kernels)] == [
        *("bf16" for _ in one.kernels), *("f16" for _ in other.kernels),
    ]  # fmt: skip
    assert one[2:] == other[2:] and one.route == other.route


@pytest.mark.parametrize("dims", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1), (1, DIM_MAX + 1, 1)])
def test_problems_outside_the_proofs_are_uncovered(dims: tuple[int, int, int]) -> None:
    values = {**VALUES, **dict(zip("MNK", dims, strict=True))}
    with pytest.raises(UncoveredError, match=r"[MNK] is -?\d+; takes 1 \.\. 2147483647"):
        choose(KEY, values, arch="sm_90", sms=132)
    with pytest.raises(ShapeError, match=r"takes an integer, 1 or more|takes at most 2147483647"):
        explain("linear", *dims)
    with pytest.raises(UncoveredError, match="ALIGN_B is 5; takes 1, 2, 4, 8, 16"):
        choose(KEY, {**VALUES, "ALIGN_B": 5}, arch="sm_90", sms=132)
    with pytest.raises(UncoveredError, match=r"SMS is 0; takes 1 \.\. 1024"):
        choose(KEY, VALUES, arch="sm_90", sms=0)


def test_a_gap_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import ptxgen.dispatch as dispatch

    functions = compiled(dispatch_fakes.table({"filler": M > 8, "thin": FALSE, "partial": FALSE}))
    monkeypatch.setattr(dispatch, "_dispatch", lambda *_: functions["sm_90"])
    with pytest.raises(UncoveredError, match=r"M=1 N=2 K=3.*no route of sm_90 with 132 SMs"):
        choose(KEY, VALUES, arch="sm_90", sms=132)
    with pytest.raises(UncoveredError, match="my product"):
        choose(KEY, VALUES, arch="sm_90", sms=132, what="my product")


# -- batch invariance -------------------------------------------------------------------
WEIGHTS = [(1, 1), (1, 7919), (2, 3), (64, 64), (127, 4096), (512, 2048), (641, 257), (768, 3072)]
WEIGHTS += [(1000, 1000), (1024, 4096), (4096, 14336), (4099, 65537), (3, DIM_MAX), (DIM_MAX, 5)]
DEVICES = [("sm_90", 132, None), ("sm_80", 108, None), ("sm_120", 1, None)]
DEVICES += [(p.arch, p.sms, p.gpu) for p in tunings()]
"""Architecture, SMs, and the name of a GPU that has a tuning."""


@pytest.mark.parametrize(("dtype", "tier"), SHOWN)
@pytest.mark.parametrize(("op", "layout"), [key for key in PRODUCTS if key[0] != "linear_wgrad"])
def test_chunks_do_not_depend_on_the_batch(op: str, layout: str, dtype: str, tier: str) -> None:
    """The space alone fixes the chunks of a reduction. Whatever route and device are chosen,
    kernels are told the same chunks and have scratch memory for them.
    """
    least, most = min(alignments(dtype)), max(alignments(dtype))
    of, item = {"layout": layout, "tier": tier}, ITEMSIZE[CONTRACTS[tier][dtype].accumulator]
    for n, k in WEIGHTS:
        chunks, scratch = set(), set()
        for m in (1, 33, 4096, DIM_MAX):
            for align in ((least, most), (most, least), (most, most)):
                problem = problem_of(op, (m, n, k), dtype, align, of)
                for arch, sms, gpu in DEVICES:
                    told = ALL[problem.table].space.environment(problem.given(sms))
                    chunks.add((told["CHUNK"], told["CHUNKS"]))
                    choice = serve(problem, arch, sms, gpu)
                    rows = told["M"] * told["N"] * item
                    sizes = ALL[problem.table].routes[choice.route].scratch
                    named = dict(zip(sizes, choice.scratch, strict=True))
                    scratch |= {named[name] / rows for name in named.keys() & {"workspace"}}
        assert len(chunks) == 1, (op, layout, n, k, chunks)
        assert scratch <= {count for _, count in chunks}, (op, layout, n, k, scratch)


def test_products_have_one_plan_and_weight_gradients_a_chain() -> None:
    assert {op.name for op in OPERATIONS.values() if op.asked_plans} == {"linear_wgrad"}
    for op in OPERATIONS.values():
        assert op.plan_names == ("chunks", *op.asked_plans) and op.asked({}) == "chunks"
        assert op.asked({"chain": True}) == op.plan_names[-1]
        assert set(op.asked_plans) <= {"chain"}
    contracts = [contract for by_dtype in CONTRACTS.values() for contract in by_dtype.values()]
    assert PLANS.keys() == {contract.name for contract in contracts}
    for contract in contracts:
        assert PLANS[contract.name]["chain"].chunks((1 << 31) - 1) == 1
        assert OPERATIONS["linear"].plan(contract) is PLANS[contract.name]["chunks"]


@pytest.mark.parametrize("read", ["M", "N", "SMS"])
def test_a_plan_that_reads_more_than_k_is_refused(read: str) -> None:
    with pytest.raises(SpecError, match=rf"plan 'x' reads \['{read}'\], but may read K alone"):
        Plan("x", maximum(64, ceil_div(K, var(read))))


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


RULES = {
    "fma": (16, lambda k: k if k <= 2048 else _up(-(-k // -(-k // 1024)), 16)),
    "fma64": (16, lambda k: k if k < 2048 else _up(-(-k // 4), 16)),
    "tc16": (128, lambda k: k if k <= 4096 else _up(-(-k // -(-k // 3072)), 128)),
}
"""Chunk lengths as the documents state them, and their unit."""


@pytest.mark.parametrize("name", RULES)
def test_chunks_are_equal_but_for_their_unit(name: str) -> None:
    (unit, rule), plan, rng = RULES[name], PLANS[name]["chunks"], random.Random(SEED)
    edges = (n * length + d for n in range(12) for length in (1024, 2048, 3072) for d in (-1, 0, 1))
    drawn = [rng.randint(1, DIM_MAX) >> rng.randrange(31) for _ in range(500)]
    for k in (*filter(lambda k: k >= 0, edges), *drawn, DIM_MAX):
        length, chunks = plan.chunk_length(k), plan.chunks(k)
        assert length == max(1, min(k, rule(k))), k
        assert chunks == -(-k // length)
        assert chunks <= 1 or length % unit == 0, k


# -- explain ------------------------------------------------------------------------------
@pytest.mark.parametrize(("dtype", "tier"), SHOWN)
@pytest.mark.parametrize(("op", "layout"), PRODUCTS)
def test_explain_agrees_with_choose(op: str, layout: str, dtype: str, tier: str) -> None:
    rng = random.Random(SEED)
    for number in range(25):
        m, n, k = (int(2 ** rng.uniform(0, rng.choice((6, 14, 31)))) for _ in range(3))
        arch, sms = rng.choice(list(ARCHITECTURES)), rng.randint(1, 1024)
        a, b = (rng.choice(alignments(dtype)) for _ in "ab")
        kind = {"arch": arch, "sms": sms, "dtype": dtype, "tier": tier}
        found = explain(op, m, n, k, layout=layout, align=(a, b), **kind)
        choice = chosen(op, layout, (m, n, k), (a, b), **kind)
        assert found.choice == choice, f"seed {SEED}, problem {number}: {op} {m} {n} {k} {arch}"
        assert not found.winner.failures and all(c.failures for c in found.unfit)
        assert all(found.winner.time <= c.time for c in found.also_correct)
        assert tuple(launch.grid for launch in found.launches) == choice.grids
        for kernel in choice.kernels:
            assert kernel in str(found)


def fake_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = dispatch_fakes.table()
    _accesses(fake.key, None)  # kept from the real table: kernels of fakes declare no operands
    monkeypatch.setitem(ALL, fake.key, RouteTable(fake.space, fake.routes))


def test_explain_says_why_candidates_were_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_explain(monkeypatch)
    found = explain("linear", 64, 6, 4096, align=(4, 16), arch="sm_86", sms=1)
    assert found.choice == (3, ("filler",), (1,), ())
    assert (found.arch, found.values["SMS"], found.values["CHUNKS"]) == ("sm_86", 1, 16)
    big, partial, thin = found.candidates[:3]
    assert [str(f) for f in big.failures] == [
        "requires ALIGN_A >= 8: 4 vs 8",
        "requires CHUNKS <= 1: 16 vs 1",
        "prefer M >= 128: 64 vs 128",
    ]
    assert not big.correct
    assert [str(f) for f in partial.failures] == ["prefer ceil(M/64)*ceil(N/64) < SMS: 1 vs 1"]
    assert partial.correct and partial.kernels == ("partial", "reduce")
    architecture, either = thin.failures
    assert "thin does not run on sm_86" in str(architecture) and not thin.correct
    assert (either.predicate, either.left, either.values) == ("prefer", None, {"M": 64, "N": 6})
    text = str(found)
    for expected in (
        "winner: route 3, filler",
        "for everything else",
        "CHUNK 256, CHUNKS 16",
        "fails requires ALIGN_A >= 8: 4 vs 8",
        "grid 1, block 128, shared 0 bytes",
        "M = 64, N = 6",
    ):
        assert expected in text, text


def test_explain_lists_later_candidates_that_are_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_explain(monkeypatch)
    found = explain("linear", 4, 8, 16384)
    assert found.choice == (1, ("partial", "reduce"), (16, 1), (16 * 4 * 8 * 4,))
    assert found.scratch == {"workspace": 16 * 4 * 8 * 4}
    assert "scratch 'workspace': 2048 bytes" in str(found)
    assert [c.kernels for c in found.also_correct] == [("thin",), ("filler",)]
    assert not any(c.failures or c.prediction for c in found.also_correct)  # no costs, no times
    assert (found.arch, found.values["SMS"]) == ("sm_90", 132)  # the defaults


def test_explain_names_unknown_options() -> None:
    for change, message in (
        ({"op": "gemm"}, r"unknown operation 'gemm'; did you mean int4_gemm\?"),
        ({"layout": "nn"}, "layout is 'nn'; takes 'kn', 'nk'"),
        ({"arch": "sm_70"}, "unknown architecture 'sm_70'"),
        ({"dtype": "float8"}, "'float8'"),
        ({"tier": "wgmma"}, "tier is 'wgmma'; takes 'auto', 'simt', 'tc'"),
        ({"tier": "tc"}, r"x has dtype float32; takes bfloat16 or float16 \(tier 'tc'\)"),
        ({"transpose": True}, "linear has no option 'transpose'; takes"),
    ):
        call: dict[str, Any] = {"op": "linear", **change}
        with pytest.raises((OptionError, DtypeError), match=message):
            explain(call.pop("op"), 1, 1, 1, **call)


def test_explain_refuses_a_layout_beside_other_storage() -> None:
    with pytest.raises(OptionError, match="transpose_b is True, but layout 'tn' says False"):
        explain("matmul", 4, 8, 16, layout="tn", transpose_b=True)
    assert str(explain("matmul", 4, 8, 16, layout="tn", transpose_a=True)) == str(
        explain("matmul", 4, 8, 16, layout="tn")
    )


# -- faults of tables ---------------------------------------------------------------------
def test_unknown_variables_are_refused() -> None:
    route = dispatch_fakes.table().routes[3]
    bad = Route(route.kernels, var("BATCH") > 3, "no such variable")
    with pytest.raises(SpecError, match=r"nn_chunks_f32_simt, route 1 .*prefer reads \['BATCH'\]"):
        Table(KEY, dispatch_fakes.table().space, (route, bad))


def test_routes_that_never_match_are_marked() -> None:
    first, *_, last = dispatch_fakes.table().routes
    never = Route(first.kernels, FALSE, "no problem")
    space = dispatch_fakes.table().space
    source = emit.source(Table(KEY, space, (never, last)))
    assert "# 0: no problem (never:" in source
    assert "Choice(0, " not in source and "Choice(1, " in source
    shadowed = emit.source(Table(KEY, space, (last, first)))
    assert "Choice(1, " not in shadowed and "Choice(0, " in shadowed and last.prefer == TRUE
