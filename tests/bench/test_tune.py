"""The tuner: what it asks to be measured, its journal, what it fits, and tunings.

No result may hang on any of it: choices are made at random, and the bits compared.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import lzma
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from steps import problem

import ptxgen
from ptxgen import dispatch, reference
from ptxgen.bench import draw, measure, tune
from ptxgen.bench.cases import RANDOM, TOKENS, Case, Shape
from ptxgen.bench.journal import Header, Journal, Record
from ptxgen.bench.timed_routes import points as points_of
from ptxgen.bench.timed_routes import route_terms
from ptxgen.cost import fit
from ptxgen.cost.gpu import TYPICAL
from ptxgen.cost.kernel import UNITS
from ptxgen.cost.tuning import (
    FALLBACK,
    FOLDER,
    TERMS,
    Tuning,
    driver_name,
    read,
    tuning_for,
    tuning_name,
    tunings,
    write,
)
from ptxgen.dispatch.choice import Candidate, Choice
from ptxgen.errors import OptionError, PtxgenError, SpecError
from ptxgen.numerics.contract import DTYPES
from ptxgen.ops.explaining import explain
from ptxgen.program import launch
from ptxgen.runtime import get_device, view
from ptxgen.spec import GemmSpec
from ptxgen.tiles import ROUTES, TABLES

HEADER = Header("NVIDIA H200", 132, "sm_90", "2026-01-02T03:04:05", "0123abcd", "580.1", "13.0")
NN = ("NN", "chunks", "f32", "simt")
TN = ("TN", "chunks", "f32", "simt")
ALIGNED = (16, 16)
PRODUCTS = [
    key
    for key, table in TABLES.items()
    if isinstance(table.routes[0].kernels[0], GemmSpec)
    and "c" in table.routes[0].kernels[0].abi.offsets
    and "ALIGN_B" in table.space.names
    and key[0] != "conv"
]


def meter_of(us: Callable[[Case, str], float]) -> tune.Meter:
    return lambda case, kernels: ({name: us(case, name) for name in kernels}, {})


def hashed(case: Case, name: str) -> float:
    """A time that anybody can tell again, of no structure."""
    return round(10 + random.Random(f"{case} {name}").random(), 3)


def some_tasks(keys: Sequence[tune.Key] = (NN,), count: int = 3, kinds: Any = (RANDOM,)) -> Any:
    return tune.tasks(keys, count, 5, "sm_90", 132, kinds)


# -- what is measured -----------------------------------------------------------------
@pytest.mark.parametrize("key", PRODUCTS, ids=" ".join)
def test_tasks_are_the_kernels_that_serve(key: tune.Key) -> None:
    found = some_tasks([key], 40)
    assert len({t.problem for t in found}) == len(found) > 20
    routes = {route.name: route for route in ROUTES[key]}
    for task in found:
        assert task.case.table == key
        env = tune.environment(key, task.case.product, task.align, 132)
        fitting = {n for n, r in routes.items() if tune._runs(r, "sm_90")}
        assert set(task.kernels) == {n for n in fitting if routes[n].requires.evaluate(env)}
    assert {t.align[:2] for t in found} > {ALIGNED}, "nothing unaligned is measured"
    if "ITEM_C" in TABLES[key].space.names and key[2] == "half":
        assert {t.align[3] for t in found} == {2, 4}, "results of both widths are measured"


def test_tables_and_problems_are_chosen() -> None:
    assert tune.tables(["f32"], "auto", ["NN"], ["chunks", "chain"]) == [NN]
    assert set(tune.tables(["f32"], "simt", ["NN", "TN"], ["chunks"])) == {NN, TN}
    both = some_tasks([NN, TN])
    assert [t.case.shape for t in both[::2]] == draw.shapes(3, 5, "f32")
    assert [t.case.op for t in both] == [
        "linear",
        "matmul",
        "linear",
        "linear_wgrad",
        "linear",
        "matmul",
    ]
    assert [t.case.shape for t in some_tasks(count=2)] == draw.shapes(2, 5, "f32")
    turns = [t.case.shape for t in some_tasks(count=3, kinds=draw.KINDS)]
    assert turns[::2] == draw.shapes(2, 5, "f32") and turns[1:2] == draw.shapes(1, 5, "f32", TOKENS)
    alternating = [t.case.op for t in some_tasks([TN], 4, draw.KINDS)]
    assert alternating == ["matmul", "matmul", "linear_wgrad", "linear_wgrad"], "of both kinds"
    with pytest.raises(OptionError, match="no route table"):
        tune.tables(["f32"], "auto", ["NN"], ["chain"])


def test_batches_are_measured_too() -> None:
    """Batches are posed as ``matmul`` poses them, to kernels that take batches."""
    found = tune.batches([NN, TN, ("NT", *NN[1:])], 25, 5, "sm_90", 132)
    drawn = draw.batches(25, 5, "f32")
    assert drawn == draw.batches(40, 5, "f32")[:25] and 1 < min(drawn)[0] < max(drawn)[0] <= 1024
    assert {t.case.table for t in found} == {NN, ("NT", *NN[1:])}
    assert {t.align for t in found} > {ALIGNED}, "nothing unaligned is measured"
    small = [t for t in found if t.problem.batch * max(t.case.product) ** 2 < 1 << 24]
    assert len(small) > 5
    for task in small:
        m, n, k = task.case.product
        turned = task.case.layout == "NT"
        a = np.zeros((task.problem.batch, m, k), np.float32)
        b = np.zeros((task.problem.batch, n, k) if turned else (task.problem.batch, k, n), a.dtype)
        views = {"a": view(a, "a"), "b": view(b.swapaxes(1, 2) if turned else b, "b")}
        posed = problem("matmul", views)
        assert posed.table == task.case.table
        values = dict(posed.values)
        assert posed.count == task.problem.batch
        assert (values["M"], values["N"], values["K"]) == (m, n, k) or 1 in (m, n, k)
        if m > 1 and n > 1:
            assert (values["ALIGN_A"], values["ALIGN_B"]) == task.align
        device = get_device("cpu")
        for name in task.kernels:  # raises OptionError for those that take none
            launch.forced(posed, "sm_90", device.sms, name)


# -- the journal ------------------------------------------------------------------------
def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tune.jsonl"
    wanted = some_tasks()
    measured: list[str] = []

    def meter(case: Case, kernels: Sequence[str]) -> Any:
        measured.append(str(case.shape))
        if len(measured) == 2:
            raise KeyboardInterrupt
        return meter_of(hashed)(case, kernels)

    with pytest.raises(KeyboardInterrupt):
        tune.measure_all(wanted, Journal.resume(path, HEADER), meter)
    journal = Journal.resume(path, HEADER)
    assert [t.case.shape for t in tune.missing(wanted, journal)] == [
        t.case.shape for t in wanted[1:]
    ]
    assert tune.measure_all(wanted, journal, meter) == 0
    assert measured == [str(t.case.shape) for t in (*wanted[:2], *wanted[1:])]
    again = Journal.resume(path, HEADER)
    assert again.records == journal.records and not tune.missing(wanted, again)
    for task in wanted:
        record = again.records[task.problem]
        assert record.times == {n: hashed(task.case, n) for n in task.kernels}


def test_batches_come_back_from_a_journal(tmp_path: Path) -> None:
    wanted = tune.batches([NN], 3, 5, "sm_90", 132)
    tune.measure_all(wanted, Journal.resume(tmp_path / "j", HEADER), meter_of(hashed))
    again = Journal.load(tmp_path / "j")
    assert not tune.missing(wanted, again) and not again.damaged
    alone = {problem._replace(batch=1) for problem in again.records}
    assert not alone & again.records.keys(), "a batch is not its product"


def test_a_budget_ends_it(tmp_path: Path) -> None:
    journal = Journal.resume(tmp_path / "j", HEADER)
    wanted = some_tasks()
    assert tune.measure_all(wanted, journal, meter_of(hashed), seconds=0) == len(wanted)
    assert tune.measure_all(wanted, journal, meter_of(hashed)) == 0


def test_damaged_lines_are_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "j"
    wanted = some_tasks()
    tune.measure_all(wanted, Journal.resume(path, HEADER), meter_of(hashed))
    whole = path.read_text()
    head, first, *rest = whole.splitlines()
    for damage in (
        "",
        "{}",
        first[:-20],
        first.replace('"m"', '"x"'),
        "null",
        first.replace("1", "-1"),
    ):
        path.write_text("\n".join([head, damage, *rest]) + "\n")
        journal = Journal.resume(path, HEADER)
        assert journal.damaged == [2]
        assert [t.problem for t in tune.missing(wanted, journal)] == [wanted[0].problem]
    path.write_text(whole[:-30])  # as a machine leaves it that went away
    journal = Journal.resume(path, HEADER)
    assert journal.damaged == [len(wanted) + 1]
    tune.measure_all(wanted, journal, meter_of(hashed))
    assert not tune.missing(wanted, Journal.resume(path, HEADER)), "what was written since is read"


def test_a_problem_with_a_new_kernel_is_measured_again(tmp_path: Path) -> None:
    journal = Journal.resume(tmp_path / "j", HEADER)
    (task, *_) = wanted = some_tasks()
    tune.measure_all(wanted, journal, meter_of(hashed))
    journal.add(Record(task.problem, {n: 1.0 for n in task.kernels[1:]}, {}))
    assert tune.missing(wanted, journal) == [task]
    journal.add(
        Record(task.problem, {n: 1.0 for n in task.kernels[1:]}, {task.kernels[0]: "wrong"})
    )
    assert tune.missing(wanted, journal) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "x", '{"ptxgen tune": 2}', '{"ptxgen tune": 1}'])
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "j").write_text(text)
    with pytest.raises(PtxgenError, match=r"is no journal.*--fresh"):
        Journal.resume(tmp_path / "j", HEADER)


def test_a_journal_that_is_done_may_be_compressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "j", tmp_path / "j.xz"
    tune.measure_all(some_tasks(), Journal.begin(plain, HEADER), meter_of(hashed))
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    assert Journal.load(packed).records == Journal.load(plain).records
    with pytest.raises(PtxgenError, match="is done and compressed"):
        Journal.resume(packed, HEADER)
    packed.write_bytes(packed.read_bytes()[:-40])
    with pytest.raises(PtxgenError, match="is no journal"):
        Journal.load(packed)


def test_a_journal_of_another_gpu_is_refused(tmp_path: Path) -> None:
    Journal.begin(tmp_path / "j", HEADER)
    other = dataclasses.replace(HEADER, gpu="NVIDIA H100", sms=114)
    with pytest.raises(PtxgenError, match=r"is of NVIDIA H200.*this is NVIDIA H100.*--journal"):
        Journal.resume(tmp_path / "j", other)
    newer = dataclasses.replace(HEADER, commit="f00", date="2027-01-01")
    assert Journal.resume(tmp_path / "j", newer).header == HEADER


def test_journals_of_one_gpu_are_merged(tmp_path: Path) -> None:
    """Journals of several runs on one kind of GPU merge, as each rented machine leaves its own."""
    first, second, other = (tmp_path / name for name in "abc")
    one, two = some_tasks(), some_tasks([TN])
    tune.measure_all(one, Journal.begin(first, HEADER), meter_of(hashed))
    tune.measure_all([one[0], *two], Journal.begin(second, HEADER), meter_of(lambda *_: 7.0))
    journal = Journal.merged([first, second])
    assert journal.records.keys() == {t.problem for t in (*one, *two)}
    assert set(journal.records[two[0].problem].times.values()) == {7.0}
    assert journal.records[one[1].problem] == Journal.load(first).records[one[1].problem]
    again = [Journal.load(path).records[one[0].problem] for path in (first, second)]
    assert journal.records[one[0].problem] == Record.averaged(again)
    Journal.begin(other, dataclasses.replace(HEADER, sms=78))
    with pytest.raises(PtxgenError, match=r"78 SMs.*this is NVIDIA H200"):
        Journal.merged([first, other])


def test_measurements_of_a_problem_are_averaged() -> None:
    problem = some_tasks()[0].problem
    runs = [
        {"a": 10.0, "b": 11.0, "c": 12.0, "d": 40.0},
        {"a": 20.0, "b": 22.0, "c": 80.0, "d": 80.0, "e": 25.0},  # half the clock; c is off
        {"a": 30.0, "b": 39.0, "c": 36.0, "d": 120.0},  # a third; b is off
    ]
    first, slow, slower = (Record(problem, times, {}) for times in runs)
    slow = dataclasses.replace(slow, wrong={"wrong": "3 outputs"})
    got = Record.averaged([first, slow, slower])
    assert got.times == {"a": 20.0, "b": 22.0, "c": 24.0, "d": 80.0, "e": 25.0}
    assert got.wrong == {"wrong": "3 outputs"}
    apart = Record(problem, {"f": 1.0}, {})
    assert Record.averaged([first, apart]) == apart
    assert Record.averaged([first]) == first


# -- what is fitted ---------------------------------------------------------------------
RATES = TYPICAL["sm_90"]
BARE = Tuning(HEADER.gpu, HEADER.sms, HEADER.arch, "never", RATES)


def planted(key: tune.Key) -> dict[str, tuple[float, ...]]:
    """Constants of a made-up GPU, by kernel."""
    rng = random.Random(3)
    names = {kernel.name for route in ROUTES[key] for kernel in route.kernels}
    return {
        name: (rng.uniform(2, 6), *(rng.choice((0, rng.uniform(0.5, 3))) for _ in range(7)))
        for name in sorted(names)
    }


def measured(key: tune.Key, count: int, noise: float = 0.0) -> list[Record]:
    """Returns times on a GPU with planted constants, off by ``noise`` at most, with outliers."""
    rng, constants, found = random.Random(4), planted(key), []
    routes = {route.name: route for route in ROUTES[key]}
    for task in some_tasks([key], count):
        env = tune.environment(key, task.case.product, task.align, 132)
        times = {}
        for name in task.kernels:
            terms = route_terms(routes[name], env, BARE)
            us = sum(float(np.dot(constants[k], t)) for k, t in terms.items())
            times[name] = us * (1 + rng.uniform(-noise, noise))
        if noise:
            times[max(times, key=lambda name: times[name])] += 300.0
        found.append(Record(task.problem, times, {}))
    return found


@pytest.mark.parametrize("key", [NN, TN], ids=" ".join)
def test_planted_constants_are_found(key: tune.Key) -> None:
    """Fitted constants predict the planted times; constants of terms that grow alike cannot be told
    apart.
    """
    records = measured(key, 120)
    points = points_of(records, BARE)
    constants = fit.fit_relative_errors(points)
    assert constants.keys() <= planted(key).keys()
    for point in points:
        predicted = sum(float(np.dot(constants[k], t)) for k, t in point.terms.items())
        # Least squares of what fits exactly: what is left is rounding, of terms that differ by
        # nine decades (a launch and a result of 4 GiB); the wrong kernel's would be percents off.
        assert predicted == pytest.approx(point.us, rel=1e-3)
    assert all(len(c) == len(TERMS) and min(c) >= 0 for c in constants.values())


def test_noise_and_hiccups_cost_little() -> None:
    lost = fit.held_out(points_of(measured(NN, 150, noise=0.03), BARE))
    regret = fit.Regret.of(lost)
    assert regret.problems == 150 and regret.mean < 1.03 and regret.p90 < 1.1
    assert regret.worst_at.startswith("NN chunks f32 simt M=")


def test_one_problem_can_be_learnt_from() -> None:
    """A single problem is held out from all that its own choice is judged by."""
    records = measured(NN, 1)
    points = points_of(records, BARE)
    for method in (fit.fit, fit.fit_with_prior):
        assert [*fit.held_out(points, method)] == [records[0].problem]


def test_few_times_change_a_prior_little() -> None:
    """One problem, measured at half speed, moves constants by less than a fit without a prior does;
    many problems overrule a prior.
    """
    prior = planted(NN)
    slow = [
        dataclasses.replace(p, us=2 * p.us, best=2 * p.best)
        for p in points_of(measured(NN, 1), BARE)
    ]
    held, free = (fit.fit_relative_errors(slow, known) for known in (prior, fit.NO_PRIOR))
    assert held.keys() == free.keys() <= prior.keys()

    def moved(found: Any) -> float:
        return float(np.mean([np.abs(np.subtract(found[k], prior[k])).sum() for k in found]))

    assert 0 < moved(held) < moved(free) / 2
    points = points_of(measured(NN, 120), BARE)
    doubled = {name: tuple(2 * c for c in constants) for name, constants in prior.items()}
    assert fit.Regret.of(fit.regrets(points, fit.fit_relative_errors(points, doubled))).mean < 1.01


def test_one_time_can_be_learnt_from() -> None:
    (record,) = measured(NN, 1)
    name = next(n for n in record.times if "+" not in n)
    alone = points_of([dataclasses.replace(record, times={name: 10.0})], BARE)
    assert len(alone) == 1
    assert fit.regrets(alone, fit.fit(alone)) == {record.problem: 1.0}


def test_constants_are_refined_for_choices() -> None:
    """Refined constants choose better than fitted ones if times follow no model exactly."""
    records = []
    for record in measured(NN, 60):
        level = 1 + 0.6 * random.Random(str(record.problem)).random()  # of all its kernels
        bent = {name: level * us**0.6 for name, us in record.times.items()}
        records.append(dataclasses.replace(record, times=bent))
    points = points_of(records, BARE)
    first = fit.fit_relative_errors(points)
    lost = [
        fit.Regret.of(fit.regrets(points, constants)).mean
        for constants in (first, fit.refine_for_choices(first, points))
    ]
    assert lost[1] - 1 < 0.6 * (lost[0] - 1), lost
    assert all(min(c) >= 0 for c in fit.fit(points).values())


def test_regret_is_chosen_over_fastest() -> None:
    (task, *_) = some_tasks()
    first, second = [name for name in task.kernels if "+" not in name][:2]
    record = Record(task.problem, {first: 30.0, second: 20.0}, {})
    known = points_of([record], BARE)
    slow, fast = (10.0, *[0.0] * 7), (9.0, *[0.0] * 7)
    for constants, ratio in (
        ({first: fast, second: slow}, 1.5),
        ({first: slow, second: fast}, 1.0),
    ):
        assert fit.regrets(known, constants) == {task.problem: ratio}
    assert math.isnan(fit.Regret.of({}).mean)


def test_a_batch_has_the_traffic_of_its_products() -> None:
    """A batch has its products' traffic, but L2 holds the operands of a few products at a time."""
    names = list(TERMS)
    one = BARE.terms("fma", 1, 132, 132, 8, 1 << 20, 1 << 28, 1 << 26, 1 << 20)
    many = BARE.terms("fma", 1, 132, 132, 8, 1 << 20, 1 << 28, 1 << 26, 1 << 20, count=7)
    for term in ("waves", "products", "memory", "L2", "missed", "stores"):
        at = names.index(term)
        assert many[at] == pytest.approx(7 * one[at]) and one[at] > 0, term
    assert many[0] == one[0] and many[1] == one[1]
    small = BARE.terms("fma", 1, 132, 4, 8, 1 << 20, 1 << 24, 1 << 21, 1 << 20, count=1000)
    assert 0 < small[names.index("missed")] < (1000 << 24) / RATES.memory
    fits = BARE.terms("fma", 1, 132, 4, 8, 1 << 20, 1 << 22, 1 << 18, 1 << 20, count=1000)
    assert fits[names.index("missed")] == 0


def test_phases_are_added() -> None:
    """Products of phases add up, each at the rate of its own unit; memory traffic counts once."""
    common = 2, 132, 1000, 8, 1 << 20, 1 << 28, 1 << 26, 1 << 20
    one, same = BARE.terms("wgmma", *common), BARE.terms("wgmma", *common, "wgmma", 8, 1 << 20)
    other = BARE.terms("fma", *common)
    both = BARE.terms("wgmma", *common, "fma", 8, 1 << 20)
    steps, products = (list(TERMS).index(term) for term in ("steps", "products"))
    assert both[products] == one[products] + other[products] > same[products] > one[products] > 0
    for term in range(len(TERMS)):
        if term != products:
            assert both[term] == same[term] == one[term] * (2 if term == steps else 1), term


# -- tunings ---------------------------------------------------------------------------
def test_tunings_come_back_from_their_files(tmp_path: Path) -> None:
    kernels = {"b": (1.0,) * 8, "a": (0.5, *[0.0] * 7)}
    tuning = dataclasses.replace(BARE, kernels=kernels, families={"c": (1.0, 2.0, 0.5)})
    path = tmp_path / "h200_132.json"
    write(tuning, path)
    assert read(path) == tuning
    lines = path.read_text().splitlines()
    named = [line.split('"')[1] for line in lines if line.startswith("    ")]
    assert named == ["c", "a", "b"]


def test_learning_keeps_other_kernels_of_a_tuning(tmp_path: Path) -> None:
    path = tmp_path / "h200_132.json"
    (kernel, *_) = (r.name for r in ROUTES[TN])
    kept = dict.fromkeys((kernel, "of_no_table"), (1.0,) * 8)
    families = {"rows": (1.0, 2.0, 3.0)}
    write(dataclasses.replace(BARE, kernels=kept, families=families), path)
    journal = Journal.begin(tmp_path / "j", HEADER)
    tune.measure_all(some_tasks(count=9), journal, meter_of(hashed))
    reports = tune.write_tuning(journal, [NN, TN], path)
    found = read(path).kernels
    assert read(path).families == families
    assert found[kernel] == (1.0,) * 8 and "of_no_table" not in found
    assert {r.table for r in reports} == {" ".join(NN)}
    routes = {route.name: route for route in ROUTES[NN]}
    timed = {name for r in journal.records.values() for name in r.times}
    assert {kernel.name for name in timed for kernel in routes[name].kernels} <= found.keys()
    rows = {r.rows: r.regret.problems for r in reports}
    assert rows.pop("all") == sum(rows.values()) == 9


def test_names_of_tunings() -> None:
    assert tuning_name("NVIDIA H200", 132) == "h200_132"
    assert tuning_name("NVIDIA GeForce RTX 4090", 128) == "geforce_rtx_4090_128"
    assert tuning_name("NVIDIA H100 80GB HBM3", 132) == "h100_132"
    assert tuning_name("NVIDIA H100 PCIe", 114) == "h100_pcie_114"
    for name in ("h100", "H100", "NVIDIA H100", "NVIDIA H100 80GB HBM3"):
        assert driver_name(name) == "NVIDIA H100 80GB HBM3"
    assert driver_name("h200") == "NVIDIA H200"
    assert driver_name("NVIDIA H100 PCIe") == "NVIDIA H100 PCIe"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernels": {"k": [1] * 7}}, r"the constants of k are .*; takes 8 numbers .*launch"),
        ({"kernels": {"k": [1] * 7 + [-1]}}, "the constants of k are"),
        ({"kernels": {"k": [1] * 7 + ["x"]}}, "no tuning.*could not convert"),
        ({"kernels": []}, "no tuning"),
        ({"gpu": "NVIDIA H100"}, "holds the tuning h100_132"),
        ({"gpu": 7}, "no tuning.*7 is no text"),
        ({"arch": "sm_1"}, "'sm_1': known"),
        ({"rates": {}}, "no tuning.*clock"),
        ({"rates": {"clock": 0, "memory": 1, "l2": 1, "products": dict.fromkeys(UNITS, 1)}},
         "rates .*takes positive numbers"),
        ({"rates": {"clock": 1, "memory": 1, "l2": 1, "products": {"fma": 1}}}, "no tuning.*mma"),
    ],
)  # fmt: skip
def test_broken_tunings_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "h200_132.json"
    write(dataclasses.replace(BARE, kernels={"k": (1.0,) * 8}), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(SpecError, match=message):
        read(path)


def test_committed_tunings_are_current() -> None:
    """Committed tunings have no unknown kernel, and every kernel that is chosen by time."""
    firsts = {
        kernel.name: key
        for key, table in TABLES.items()
        for route in table.routes
        if route.costs is not None
        for kernel in route.kernels
        if not all(kernel in other.kernels for other in table.routes)
    }
    assert tunings(FOLDER)
    for tuning in tunings(FOLDER):
        unknown = tuning.kernels.keys() - firsts.keys()
        assert not unknown, f"{tuning.name} is of kernels that no table has: {sorted(unknown)}"
    h200 = read(FOLDER / f"{FALLBACK}.json")
    never = {name: " ".join(key) for name, key in firsts.items() if name not in h200.kernels}
    assert not never, f"never measured: {never}"


def test_an_h100_has_a_tuning_of_its_own() -> None:
    """The name is the driver's; constants that it lacks are the fallback's."""
    gpu = "NVIDIA H100 80GB HBM3", 132
    own, found = tuning_for("sm_90", gpu)
    file, base = read(FOLDER / "h100_132.json"), read(FOLDER / f"{FALLBACK}.json")
    assert found and (own.name, own.scaled, own.rates) == ("h100_132", False, file.rates)
    assert own.kernels == {**base.kernels, **file.kernels} and file.kernels
    assert own.families == {**base.families, **file.families} and file.families
    assert file.rates.memory < 0.75 * base.rates.memory, "HBM3, not HBM3e"
    for name in ("h100", gpu[0]):
        explained = explain("linear", 4, 4096, 4096, dtype="bf16", gpu=name)
        assert explained.tuned and explained.tuning == "h100_132"
        problem = {"M": 4, "N": 4096, "K": 4096, "ALIGN_A": 16, "ALIGN_B": 16}
        key = "NN", "chunks", "half", "tc"
        chosen = dispatch.choose(key, problem, arch="sm_90", sms=132, dtype="bf16", gpu=gpu[0])
        assert chosen == explained.choice


def test_a_tuning_decides_on_its_gpu_only() -> None:
    own, found = tuning_for("sm_90", ("NVIDIA H200", 132))
    assert found and own.name == "h200_132" and own.rates != TYPICAL["sm_80"]
    for arch, gpu, rates in (
        ("sm_90", ("NVIDIA H200", 78), None),
        ("sm_90", ("NVIDIA H100 PCIe", 114), dataclasses.replace(RATES, memory=2.0e6)),
        ("sm_80", None, None),
        ("sm_80", ("NVIDIA A100", 108), dataclasses.replace(RATES, clock=1.0)),
    ):
        other, found = tuning_for(arch, gpu, rates)
        assert not found and other.kernels == own.kernels
        assert other.rates == (rates or TYPICAL[arch])
    assert explain("linear", 4, 4096, 4096).tuned
    scaled = explain("linear", 4, 4096, 4096, arch="sm_80", sms=108)
    assert not scaled.tuned and "h200_132, scaled" in str(scaled)


# GPU, peak of bf16 with f32 sums in TFLOP/s, and memory in TB/s: NVIDIA's data sheets of A100 80 GB
# (312 and 2.04), GeForce RTX 4090 (165 and 1.01) and GeForce RTX 5090 (210 and 1.79).
OTHERS = [("sm_80", 108, 312, 2.04), ("sm_89", 128, 165, 1.01), ("sm_120", 170, 210, 1.79)]


@pytest.mark.parametrize(("arch", "sms", "tflops", "tbs"), OTHERS)
def test_other_gpus_are_chosen_for_sensibly(arch: str, sms: int, tflops: float, tbs: float) -> None:
    """No GPU of theirs was ever measured: times scale with what their data sheets say."""
    for dtype, layout in itertools.product(("bf16", "f32"), ("kn", "nk")):
        asked: Any = {"arch": arch, "sms": sms, "dtype": dtype, "layout": layout}
        itemsize = 2 if dtype == "bf16" else 4
        few = explain("linear", 8, 8192, 8192, **asked).winner
        floor = itemsize * 8192 * 8192 / (tbs * 1e6)
        assert floor < few.time < 2.5 * floor, few.prediction
    many = explain("linear", 8192, 8192, 8192, arch=arch, sms=sms, dtype="bf16").winner
    floor = 2 * 8192**3 / (tflops * 1e6)
    assert floor < many.time < 2.5 * floor, many.prediction
    assert max(many.terms, key=lambda name: many.terms[name]) == "products"
    assert "128x128" in many.kernels[0], "the largest tile of mma"


# -- no bit hangs on it -----------------------------------------------------------------
def results(x: Any, w: Any, dy: Any, tier: str) -> Iterator[tuple[str, np.ndarray]]:
    for module in (ptxgen, reference):
        yield "linear", module.linear(x, w, tier=tier, layout="kn")
        yield "linear_dgrad", module.linear_dgrad(dy, w, tier=tier, layout="kn")
        yield "linear_wgrad", module.linear_wgrad(x, dy, tier=tier, layout="kn")


def operands(dtype: str, *shapes: tuple[int, int]) -> list[np.ndarray]:
    if dtype == "bf16":
        pytest.importorskip("ml_dtypes", reason="NumPy's bfloat16 is that of ml_dtypes")
    name = next(name for name, short in DTYPES.items() if short == dtype)
    rng = np.random.default_rng(3)
    return [rng.standard_normal(s, dtype=np.float32).astype(name) for s in shapes]


def kinds() -> Iterator[Any]:
    """Dtype, tier and shape: each dtype and tier once always, on shapes by turns; else long.

    Kernels of f16 are those of bf16, but for the dtype: one shape, long.
    """
    numbers = sorted({(dtype, key[3]) for key in PRODUCTS for dtype in TABLES[key].dtypes})
    shapes = (33, 20, 12), (5, 64, 32), (1, 40, 24)
    for (i, how), (j, shape) in itertools.product(enumerate(numbers), enumerate(shapes)):
        if (turn := (i + j) % len(shapes)) and how[0] == "f16":
            continue
        marks = pytest.mark.long if turn or how[0] == "f16" else ()
        yield pytest.param(*how, *shape, marks=marks)


def forget() -> None:
    """Clears prepared calls, so that the device is as in a new process."""
    get_device("cpu").prepared.clear()
    get_device("cpu").calls.clear()


@pytest.mark.parametrize(("dtype", "tier", "m", "k", "n"), list(kinds()))
def test_whatever_is_chosen_no_bit_changes(
    dtype: str, tier: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = operands(dtype, (m, k), (k, n), (m, n))
    used: set[tuple[str, tuple[str, ...]]] = set()
    rng = random.Random(6)

    def choose(table: tune.Key, values: Any, **options: Any) -> Choice:
        found: list[Candidate] = dispatch.candidates(table, values, **options)
        choice = rng.choice(found).choice
        used.add((options["what"].split()[0], choice.kernels))
        return choice

    monkeypatch.setattr(launch, "choose", choose)
    bits: dict[str, set[bytes]] = {}
    with ptxgen.use_device("cpu"):
        for _ in range(3):
            forget()
            for name, result in results(*arrays, tier):
                bits.setdefault(name, set()).add(np.ascontiguousarray(result).tobytes())
        forget()
    assert {name: len(found) for name, found in bits.items()} == dict.fromkeys(bits, 1)
    ops = [op for op, _ in used]
    assert len(ops) > len(set(ops)), "the same kernels, whatever was chosen: nothing was tested"


def test_meter_marks_what_differs_and_repeats_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="its tensors are compared")
    times = {"a": 10.0, "b": 11.0, "c": 30.0, "wrong": 1.0, "refused": 1.0}
    rounds: list[tuple[tuple[str, ...], int]] = []

    def work(case: Case, operands: Any, out: Any, name: str) -> Callable[[], None]:
        def run() -> None:
            if name == "refused":
                raise OptionError("not on this one")
            out.copy_(operands.stored("NN")[0] @ operands.stored("NN")[1])
            if name == "wrong":
                out[0, 0] += 1

        run.name = name  # type: ignore[attr-defined]
        return run

    class Timer:
        def __init__(self, torch: Any) -> None:
            pass

        def __call__(self, work: Sequence[Any], counts: Sequence[int], warmup: int) -> Any:
            rounds.append((tuple(w.name for w in work), counts[0]))
            return [
                measure.Sample.of([times[w.name]] * c) for w, c in zip(work, counts, strict=True)
            ]

    class Operands:
        def __init__(self, *_: Any) -> None:
            self.arrays = torch.eye(4), torch.ones((4, 3))

        def stored(self, layout: str) -> Any:
            return self.arrays

        def empty(self, dtype: str) -> Any:
            return torch.zeros((4, 3))

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    for name, fake in (("ours", work), ("Timer", Timer), ("Operands", Operands)):
        monkeypatch.setattr(measure, name, fake)
    found, wrong = tune.GpuMeter(torch)(Case("", "linear", "kn", Shape(4, 4, 3)), list(times))
    assert wrong == {"wrong": "1 outputs have other bits", "refused": "not on this one"}
    assert found == {"a": 10.0, "b": 11.0, "c": 30.0}
    every = ("a", "b", "c")  # one timing of something short decides nothing
    assert [names for names, _ in rounds] == [every, every, ("a", "b"), ("a",)]
    assert [count for _, count in rounds] == [most for most, _ in tune.STAGES]


def test_the_command_learns_without_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal.begin(tmp_path / "j", HEADER)
    tune.measure_all(some_tasks(), journal, meter_of(hashed))
    command = ["--learn", str(tmp_path / "j"), "--dtype", "f32", "--layout", "NN"]
    path = tmp_path / "h200_132.json"
    assert tune.main([*command, "--output", str(path)]) == 0
    routes = {route.name: route for route in ROUTES[NN]}
    timed = {n for t in some_tasks() for n in t.kernels}
    assert read(path).kernels.keys() == {k.name for n in timed for k in routes[n].kernels}
    assert str(path) in capsys.readouterr().out
    (task, *_) = some_tasks()
    times = {n: 9.0 for n in task.kernels[1:]}
    journal.add(Record(task.problem, times, {task.kernels[0]: "1 outputs have other bits"}))
    assert tune.main([*command, "--output", str(path)]) == 1
    assert f"{task.kernels[0]}: 1 outputs have other bits" in capsys.readouterr().out
    with pytest.raises(OptionError, match=r"--output is .*other.json; .* takes h200_132.json"):
        tune.main([*command, "--output", str(tmp_path / "other.json")])
    assert not (tmp_path / "other.json").exists()


# -- with a GPU ------------------------------------------------------------------------
@pytest.mark.gpu
@pytest.mark.parametrize(
    ("dtype", "tier"),
    sorted({(dtype, key[3]) for key in PRODUCTS for dtype in TABLES[key].dtypes}),
)
def test_the_command_measures(
    dtype: str, tier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    command = ["--dtype", dtype, "--tier", tier, "--layout", "NT,TN", "--random", "2"]
    command += ["--batches", "0", "--journal", str(tmp_path / "j")]
    device = get_device("cuda")
    path = tmp_path / f"{tuning_name(device.gpu, device.sms)}.json"
    assert tune.main([*command, "--output", str(path)]) == 0
    journal = Journal.load(tmp_path / "j")
    measured = tune.tables([dtype], tier, ["NT", "TN"], tune.PLANS)
    assert len(journal.records) == 2 * len(measured) >= 6 and not journal.damaged
    tuning = read(path)
    assert (tuning.gpu, tuning.rates) == (device.gpu, device.rates)
    timed = {n for r in journal.records.values() for n in r.times if "+" not in n}
    assert tuning.kernels.keys() >= timed
    before = (tmp_path / "j").read_text()
    assert tune.main([*command, "--output", str(path)]) == 0
    assert (tmp_path / "j").read_text() == before, "nothing is measured twice"
