"""The tuner: what it asks to be measured, its journal, the rules it learns, and tunings.

No result may hang on any of it: orders and tunings are permuted, and the bits compared.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import dispatch, reference
from ptxgen.bench import learn as learning
from ptxgen.bench import measure, tune
from ptxgen.bench.cases import Case, Shape
from ptxgen.bench.journal import Header, Journal, Record
from ptxgen.bench.learn import Point, learn
from ptxgen.dispatch import emit, generated
from ptxgen.dispatch.choice import Choice
from ptxgen.dispatch.prove import Prover, prove
from ptxgen.errors import OptionError, PtxgenError, SpecError
from ptxgen.expr import TRUE
from ptxgen.numerics.contract import DTYPES
from ptxgen.ops import launch
from ptxgen.ops.explaining import explain
from ptxgen.runtime import get_device
from ptxgen.spec import CHUNKS, GemmSpec, K, M, N, Route
from ptxgen.tiles import ROUTES, TABLES
from ptxgen.tiles.tunings import Rule, Rules, Tuning, read, tuning_name, tunings, write

HEADER = Header("NVIDIA H200", 132, "sm_90", "2026-01-02T03:04:05", "0123abcd", "580.1", "13.0")
NN = ("NN", "rows", "f32", "simt")
BATCH = ("TN", "batch", "f32", "simt")
ALIGNED = (16, 16)
PRODUCTS = [
    key for key, table in TABLES.items() if isinstance(table.routes[0].kernels[0], GemmSpec)
]


def meter_of(us: Callable[[Case, str], float]) -> tune.Meter:
    return lambda case, kernels: ({name: us(case, name) for name in kernels}, {})


def hashed(case: Case, name: str) -> float:
    """A time that anybody can tell again, of no structure."""
    return round(10 + random.Random(f"{case} {name}").random(), 3)


def some_tasks(keys: Sequence[tune.Key] = (NN,), shapes: str = "5x64x32,64x64x64,7x9x11") -> Any:
    return tune.tasks(keys, shapes.split(","), "sm_90", 132)


# -- what is measured -----------------------------------------------------------------
@pytest.mark.parametrize("key", PRODUCTS, ids=" ".join)
def test_tasks_are_the_kernels_that_serve(key: tune.Key) -> None:
    found = tune.tasks([key], ["all"], "sm_90", 132)
    assert len({t.problem for t in found}) == len(found) > 20
    routes = {route.name: route for route in ROUTES[key]}
    for task in found:
        assert task.case.table == key
        env = tune.environment(key, task.case.product, task.align, 132)
        fitting = {n for n, r in routes.items() if tune._runs(r, "sm_90")}
        assert set(task.kernels) == {n for n in fitting if routes[n].requires.evaluate(env)}
    assert {t.align for t in found} > {ALIGNED}, "nothing unaligned is measured"


def test_tables_and_shapes_are_chosen() -> None:
    assert tune.tables(["f32"], "auto", ["NN"], ["rows", "batch"]) == [NN]
    assert set(tune.tables(["f32"], "simt", ["NN", "TN"], ["batch"])) == {BATCH}
    assert {t.case.shape for t in some_tasks()} == {
        Shape(5, 64, 32),
        Shape(64, 64, 64),
        Shape(7, 9, 11),
    }
    assert {t.case.op for t in some_tasks([BATCH])} == {"linear_wgrad"}
    assert not some_tasks([BATCH], "large")
    with pytest.raises(OptionError, match="huge"):
        some_tasks([NN], "huge")
    with pytest.raises(OptionError, match="no route table"):
        tune.tables(["f32"], "auto", ["NN"], ["batch"])


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


def test_kernels_that_fall_back_are_left_out_of_larger_batches(tmp_path: Path) -> None:
    """But not those that catch up, such as large tiles on small problems."""
    shapes = ",".join(f"{m}x64x512" for m in (64, 1, 4, 16, 32))
    wanted = some_tasks(shapes=shapes)
    assert [t.case.shape.m for t in wanted] == [1, 4, 16, 32, 64]
    falls, catches, *_ = (n for n in wanted[0].kernels if all(n in t.kernels for t in wanted))

    def us(case: Case, name: str) -> float:
        m = case.shape.m
        return {falls: 10.0 + 2.0 * m, catches: 40.0 + 0.1 * m}.get(name, 10.0 + 0.1 * m)

    journal = Journal.begin(tmp_path / "j", HEADER)
    tune.measure_all(wanted, journal, meter_of(us))
    for task in wanted:
        record = journal.records[task.problem]
        assert record.hopeless == ((falls,) if task.case.shape.m > 16 else ())
        assert (falls in record.times) is (task.case.shape.m <= 16)
        assert catches in record.times
    again = Journal.resume(tmp_path / "j", HEADER)
    assert again.records == journal.records and not tune.missing(wanted, again)


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


def test_a_journal_of_another_gpu_is_refused(tmp_path: Path) -> None:
    Journal.begin(tmp_path / "j", HEADER)
    other = dataclasses.replace(HEADER, gpu="NVIDIA H100", sms=114)
    with pytest.raises(PtxgenError, match=r"is of NVIDIA H200.*this is NVIDIA H100.*--journal"):
        Journal.resume(tmp_path / "j", other)
    newer = dataclasses.replace(HEADER, commit="f00", date="2027-01-01")
    assert Journal.resume(tmp_path / "j", newer).header == HEADER


def test_journals_of_one_gpu_are_merged(tmp_path: Path) -> None:
    """As runs leave them on machines that keep nothing."""
    first, second, other = (tmp_path / name for name in "abc")
    one, two = some_tasks(), some_tasks([BATCH])
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
    first, slow, slower = (Record(problem, times, {}, ("far", "wrong")) for times in runs)
    slow = dataclasses.replace(slow, wrong={"wrong": "3 outputs"}, hopeless=())
    got = Record.averaged([first, slow, slower])
    assert got.times == {"a": 20.0, "b": 22.0, "c": 24.0, "d": 80.0, "e": 25.0}
    assert (got.wrong, got.hopeless) == ({"wrong": "3 outputs"}, ("far",))
    apart = Record(problem, {"f": 1.0}, {})
    assert Record.averaged([first, apart]) == apart
    assert Record.averaged([first]) == first


# -- rules ---------------------------------------------------------------------------
MS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
KNS = ((256, 256), (4096, 1024), (4096, 4096), (14336, 4096), (4096, 14336), (768, 512))


def planted(m: int, n: int, k: int) -> str:
    """The winner of a made-up GPU."""
    if m <= 8:
        return "thin"
    if m * n <= 256 * 4096:
        return "middle"
    return "deep" if k > 4096 else "large"


def points(
    winner: Callable[[int, int, int], str], noise: float = 0.0, align: tuple[int, int] = ALIGNED
) -> list[Point]:
    """A kernel wins by 5 % at least where it is planted; all times are off by up to ``noise``."""
    rng = random.Random(5)
    names = ["thin", "middle", "deep", "large", *(f"other{i}" for i in range(6))]
    found = []
    for k, n in KNS:
        for m in MS:
            best = winner(m, n, k)
            times = {x: 100.0 * (1.0 if x == best else rng.uniform(1.05, 2)) for x in names}
            found.append(
                Point(m, n, k, align, {x: t * rng.uniform(1, 1 + noise) for x, t in times.items()})
            )
    return found


@pytest.mark.parametrize("noise", [0.0, 0.015])
def test_planted_winners_are_found(noise: float) -> None:
    learnt = learn(points(planted, noise))
    assert len(learnt.rules) <= 12
    assert learnt.worst <= 1.02 and learnt.mean <= 1.005
    for point in points(planted):
        assert learning.chosen_by(learnt.rules, point) == planted(*point.sizes)
    # Sizes between the measured ones go by their neighbours.
    for sizes, expected in (((5, 4096, 4096), "thin"), ((3000, 4096, 4096), "large")):
        assert learning.chosen_by(learnt.rules, Point(*sizes, ALIGNED, {expected: 1.0})) == expected


def test_a_problem_counts_as_often_as_its_weight() -> None:
    """A gain of 1 % is worth no rule, that of a problem which counts four times is."""
    (m, n, k) = (1024, 1024, 4096)

    def rules(weight: float) -> tuple[str | None, int]:
        found = [
            Point(
                *p.sizes,
                ALIGNED,
                {"large": 100.0, "special": 98.8 if p.sizes == (m, n, k) else 130.0},
                weight if p.sizes == (m, n, k) else 1.0,
            )
            for p in points(planted)
        ]
        learnt = learn(found)
        here = next(p for p in found if p.sizes == (m, n, k))
        return learning.chosen_by(learnt.rules, here), len(learnt.rules)

    assert rules(1.0) == ("large", 1)
    assert rules(4.0) == ("special", 2)


def test_one_winner_needs_one_rule() -> None:
    (rule,) = learn(points(lambda *_: "large"), itemsize=16).rules
    assert (rule.kernel, rule.prefer) == ("large", TRUE)
    assert "60 problems" in rule.reason and "faster than the next" in rule.reason


def test_more_rules_lose_less_time() -> None:
    def scattered(m: int, n: int, k: int) -> str:
        return f"other{random.Random(f'{m} {n} {k}').randrange(6)}"

    found = [learn(points(scattered), most=most) for most in (1, 5, 20, 1000)]
    assert [len(x.rules) for x in found[:3]] == [1, 5, 20]
    assert all(a.mean > b.mean for a, b in itertools.pairwise(found))
    assert found[-1].worst == 1.0 and len(found[-1].rules) < 60
    assert found[0].mean > 1.1 and found[0].worst > found[2].worst


def test_exceptions_come_first() -> None:
    def corner(m: int, n: int, k: int) -> str:
        return "deep" if (m, n, k) == (64, 4096, 4096) else "large"

    first, last = learn(points(corner), itemsize=16).rules
    assert (first.kernel, last.kernel) == ("deep", "large")
    assert (first.m, last.prefer) == ((33, 64), TRUE)
    assert "at 1 problem:" in first.reason and "at 59 problems:" in last.reason


def test_times_that_differ_by_less_than_the_clock_are_equal() -> None:
    less = 0.75 * learning.SLACK_US
    near = [
        dataclasses.replace(p, times={"a": 5.0 + less * (i % 2), "b": 5.0 + less * ((i + 1) % 2)})
        for i, p in enumerate(points(planted))
    ]
    assert len(learn(near).rules) == 1


def test_unaligned_operands_have_rules_of_their_own() -> None:
    def bad(*_: int) -> str:
        return "other0"

    learnt = learn(
        [*points(planted), *points(bad, align=(16, 2)), *points(bad, align=(2, 2))], itemsize=2
    )
    for align, expected in (((16, 8), "other0"), ((2, 4), "other0")):
        assert (
            learning.chosen_by(
                learnt.rules, Point(1, 256, 256, align, dict.fromkeys(("thin", "other0"), 1.0))
            )
            == expected
        )
    assert {r.align for r in learnt.rules} == {(16, 16), (16, 1), (1, 1)}
    for point in points(planted):
        assert learning.chosen_by(learnt.rules, point) == planted(*point.sizes)


def test_every_size_is_settled() -> None:
    rng = random.Random(2)
    rules = learn(points(planted), itemsize=16).rules
    for _ in range(2000):
        env = {x: int(2 ** rng.uniform(0, 31)) for x in "MNK"}
        assert any(rule.prefer.evaluate(env) for rule in rules), env


# -- tunings ---------------------------------------------------------------------------
def measured_tuning(key: tune.Key, tmp_path: Path, seed: str = "") -> Tuning:
    """A tuning learnt from made-up times."""
    journal = Journal.begin(tmp_path / "journal", HEADER)
    wanted = tune.tasks([key], ["all"], "sm_90", 132)[::5]
    winners = random.Random(seed).sample(sorted({n for t in wanted for n in t.kernels}), 4)

    def us(case: Case, name: str) -> float:
        return 50 if name in winners else 100 + 20 * hashed(case, name)

    tune.measure_all(wanted, journal, meter_of(us))
    path = tmp_path / "h200_132.json"
    (report,) = tune.write_tuning(journal, [key], path)
    assert report.mean < report.table_mean and report.worst < 1.3
    return read(path)


@pytest.mark.parametrize("key", [BATCH, pytest.param(NN, marks=pytest.mark.long)], ids=" ".join)
def test_a_tuning_is_proved(key: tune.Key, tmp_path: Path) -> None:
    tuning = measured_tuning(key, tmp_path)
    (table,) = emit.measured([tuning])
    assert table.module == "_".join(key).lower() + "_h200_132" and table.archs == ("sm_90",)
    failed = [r for r in prove([table]) if not r.ok]
    assert not failed, "\n".join(map(str, failed))
    # A box that reaches where its kernel is wrong costs nothing: the kernel's requires hold first.
    first = tuning.tables[key].rules[0]
    assert not any(
        r.kernel == first.kernel and r.prefer == TRUE for r in tuning.tables[key].rules[:-1]
    )


def test_tunings_come_back_from_their_files(tmp_path: Path) -> None:
    tuning = measured_tuning(NN, tmp_path)
    copy = tmp_path / "copy" / "h200_132.json"
    write(tuning, copy)
    assert read(copy) == tuning
    assert copy.read_text() == (tmp_path / "h200_132.json").read_text()
    lines = copy.read_text().splitlines()
    assert sum('"reason"' in line for line in lines) == len(tuning.tables[NN].rules)


def test_learning_keeps_other_tables_of_a_tuning(tmp_path: Path) -> None:
    path = tmp_path / "h200_132.json"
    measured_tuning(BATCH, tmp_path)
    journal = Journal.begin(tmp_path / "journal", HEADER)
    tune.measure_all(some_tasks(), journal, meter_of(hashed))
    (report,) = tune.write_tuning(journal, [NN, BATCH], path)
    assert report.key == NN and read(path).tables.keys() == {NN, BATCH}


def test_names_of_tunings() -> None:
    assert tuning_name("NVIDIA H200", 132) == "h200_132"
    assert tuning_name("NVIDIA GeForce RTX 4090", 128) == "geforce_rtx_4090_128"


def change(tuning: dict[str, Any], what: str) -> None:
    table = tuning["tables"]["NN rows f32 simt"]
    rule = table["rules"][0]
    changes: dict[str, Callable[[], Any]] = {
        "a rule": lambda: rule.update(kernel="simt_nn_f32_gone"),
        "a tail": lambda: table["then"].append("simt_nn_f32_gone"),
        "a table": lambda: tuning["tables"].update({"NN rows f8 simt": table}),
        "a layout": lambda: tuning["tables"].update({"XX rows f32 simt": table}),
        "a bound": lambda: rule.update(m=[0, 4]),
        "an empty range": lambda: rule.update(n=[5, 1]),
        "half a bound": lambda: rule.update(k=[1.5, None]),
        "half an alignment": lambda: rule.update(align=[1.5, 4]),
        "an alignment": lambda: rule.update(align=[4, -1]),
        "a field": lambda: rule.update(why="because"),
        "a gpu": lambda: tuning.update(gpu="NVIDIA H100"),
        "an arch": lambda: tuning.update(arch="sm_1"),
        "a reason": lambda: rule.pop("reason"),
    }
    changes[what]()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "a rule",
            "h200_132.json, NN rows f32 simt, names the kernel simt_nn_f32_gone.*ptxgen tune",
        ),
        ("a tail", "names the kernel simt_nn_f32_gone"),
        ("a table", "NN rows f8 simt, is about a table that there is not"),
        ("a layout", "no tuning.*names no table"),
        ("a bound", r"no tuning.*rule of simt_nn_f32_\w+: m is \[0, 4\]; takes whole numbers"),
        ("an empty range", r"no tuning.*rule of simt_nn_f32_\w+: n is \[5, 1\]; the least comes"),
        ("half a bound", r"no tuning.*rule of simt_nn_f32_\w+: k is \[1\.5, None\]; takes whole"),
        (
            "half an alignment",
            r"no tuning.*rule of simt_nn_f32_\w+: align is \[1\.5, 4\]; takes two",
        ),
        (
            "an alignment",
            r"no tuning.*rule of simt_nn_f32_\w+: align is \[4, -1\]; takes two of 1, 2",
        ),
        ("a field", "no tuning.*why"),
        ("a gpu", "holds the tuning h100_132"),
        ("an arch", "sm_1"),
        ("a reason", "no tuning.*reason"),
    ],
)
def test_stale_and_broken_tunings_are_refused(tmp_path: Path, what: str, message: str) -> None:
    path = tmp_path / "h200_132.json"
    kernel = ROUTES[NN][0].name
    rules = Rules((Rule(kernel, "measured", m=(1, 4)),), tuple(r.name for r in ROUTES[NN]))
    write(Tuning("NVIDIA H200", 132, "sm_90", "today", {NN: rules}), path)
    emit.measured([read(path)])
    found = json.loads(path.read_text())
    change(found, what)
    path.write_text(json.dumps(found))
    with pytest.raises(SpecError, match=message):
        emit.measured([read(path)])


def test_committed_tunings_are_current() -> None:
    for tuning in tunings():
        for key in tuning.tables:
            assert tuning.routes(key)
    assert not emit.generate(check=True)


def test_a_tuning_decides_on_its_gpu_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = measured_tuning(NN, tmp_path)
    with dispatched(monkeypatch, emit.measured([tuning])):
        for user in ("dispatch.emit", "ops.explaining"):
            monkeypatch.setattr(f"ptxgen.{user}.tunings", lambda: (tuning,))
        assert explain("linear", 4, 4096, 4096).tuning == "h200_132"
        assert "tuning h200_132" in str(explain("linear", 4, 4096, 4096))
        for given in (
            {"sms": 114, "gpu": "NVIDIA H200"},
            {"sms": 132, "gpu": "NVIDIA H100", "arch": "sm_90"},
            {"sms": 132, "arch": "sm_80", "gpu": "NVIDIA H200"},
            {"sms": 132, "arch": "sm_90"},
        ):
            assert explain("linear", 4, 4096, 4096, **given).tuning == ""
        for m in (1, 5, 77, 5000):
            for gpu in ("NVIDIA H200", None):
                options: Any = {"arch": "sm_90", "sms": 132, "gpu": gpu}
                values = {"M": m, "N": 512, "K": 768, "ALIGN_A": 16, "ALIGN_B": 16}
                choice = dispatch.choose(NN, values, **options)
                assert choice == explain("linear", m, 512, 768, **options).choice


# -- no bit hangs on it -----------------------------------------------------------------
class dispatched:  # noqa: N801 - reads like a function
    """The library runs by these tables on an H200, and on the CPU device, which stands for one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tables: Sequence[emit.Table]) -> None:
        made = {f"tuned {table.module}": emit.functions(table) for table in tables}
        modules = dict(zip((table.key for table in tables), made, strict=True))
        real = dispatch.functions_of
        monkeypatch.setattr(dispatch, "functions_of", lambda name: made.get(name) or real(name))
        monkeypatch.setattr(generated, "MEASURED", {("NVIDIA H200", 132): modules})

    def __enter__(self) -> None:
        self.forget()

    def __exit__(self, *_: object) -> None:
        self.forget()

    def forget(self) -> None:
        get_device("cpu").prepared.clear()


def permuted(key: tune.Key, seed: int) -> tuple[Route, ...]:
    """The routes of a table with their prefer rules dealt out anew, and everything else last."""
    rng = random.Random(f"{key} {seed}")
    routes = list(ROUTES[key])
    rng.shuffle(routes)
    rules = [route.prefer for route in routes]
    rng.shuffle(rules)
    dealt = [r.preferred(p, r.reason) for r, p in zip(routes, rules, strict=True)]
    return (*dealt, *(r.preferred(TRUE, r.reason) for r in ROUTES[key]))


@pytest.mark.parametrize("key", ROUTES, ids=" ".join)
def test_whatever_the_rules_the_kernels_are_of_one_contract_and_correct(key: tune.Key) -> None:
    """So that the tests which force every kernel cover every order of the rules."""
    for seed in range(3):
        (table,) = emit.tables({key: dataclasses.replace(TABLES[key], routes=permuted(key, seed))})
        namespace: dict[str, Any] = {}
        exec(emit.sources([table])[f"{table.module}.py"], namespace)
        problems = Prover(table).shapes(seed)
        for _ in range(300):
            problem = next(problems)
            choice = namespace["BY_ARCH"]["sm_90"](
                *(problem[name] for name in table.space.arguments)
            )
            if choice is None:  # as with the table itself: no kernel takes it
                continue
            route = table.routes[choice.route]
            assert route.requires.evaluate(table.space.environment(problem))
            assert {k.contract for k in route.kernels if not k.prepares} == {
                TABLES[key].routes[0].main.contract
            }


def results(x: Any, w: Any, dy: Any, tier: str) -> Iterator[tuple[str, np.ndarray]]:
    for module in (ptxgen, reference):
        yield "linear", module.linear(x, w, tier=tier)
        yield "linear_dgrad", module.linear_dgrad(dy, w, tier=tier)
        yield "linear_wgrad", module.linear_wgrad(x, dy, tier=tier)


def operands(dtype: str, *shapes: tuple[int, int]) -> list[np.ndarray]:
    if dtype == "bf16":
        pytest.importorskip("ml_dtypes", reason="NumPy's bfloat16 is that of ml_dtypes")
    name = next(name for name, short in DTYPES.items() if short == dtype)
    rng = np.random.default_rng(3)
    return [rng.standard_normal(s, dtype=np.float32).astype(name) for s in shapes]


def permutations() -> Iterator[Any]:
    """Dtype, tier and shape: each dtype and tier once always, on shapes by turns; else long."""
    numbers = sorted({(dtype, key[3]) for key in PRODUCTS for dtype in TABLES[key].dtypes})
    shapes = (33, 20, 12), (5, 64, 32), (1, 40, 24)
    for (i, how), (j, shape) in itertools.product(enumerate(numbers), enumerate(shapes)):
        marks = pytest.mark.long if (i + j) % len(shapes) else ()
        yield pytest.param(*how, *shape, marks=marks)


@pytest.mark.parametrize(("dtype", "tier", "m", "k", "n"), list(permutations()))
def test_permuting_the_rules_changes_no_bit(
    dtype: str, tier: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = operands(dtype, (m, k), (k, n), (m, n))
    used: set[tuple[str, tuple[str, ...]]] = set()

    def choose(table: tune.Key, values: Any, **options: Any) -> Choice:
        choice = dispatch.choose(table, values, **options)
        used.add((options["what"].split()[0], choice.kernels))
        return choice

    monkeypatch.setattr(launch, "choose", choose)
    with ptxgen.use_device("cpu"):
        for seed in range(3):
            tables = [
                dataclasses.replace(t, gpu=("NVIDIA H200", 132), archs=("sm_90",))
                for key in ROUTES
                if key in PRODUCTS and key[3] == tier and dtype in TABLES[key].dtypes
                for t in emit.tables(
                    {key: dataclasses.replace(TABLES[key], routes=permuted(key, seed))}
                )
            ]
            with dispatched(monkeypatch, tables):
                bits: dict[str, set[bytes]] = {}
                for name, result in results(*arrays, tier):
                    bits.setdefault(name, set()).add(np.ascontiguousarray(result).tobytes())
                assert {name: len(found) for name, found in bits.items()} == dict.fromkeys(bits, 1)
    ops = [op for op, _ in used]
    assert len(ops) > len(set(ops)), "the same kernels, whatever the rules: nothing was tested"


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

        def empty(self) -> Any:
            return torch.zeros((4, 3))

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    for name, fake in (("ours", work), ("Timer", Timer), ("Operands", Operands)):
        monkeypatch.setattr(measure, name, fake)
    found, wrong = tune.GpuMeter(torch)(Case("", "linear", "kn", Shape(4, 4, 3)), list(times))
    assert wrong == {"wrong": "1 outputs have other bits", "refused": "not on this one"}
    assert found == {"a": 10.0, "b": 11.0, "c": 30.0}
    assert [names for names, _ in rounds] == [("a", "b", "c"), ("a", "b"), ("a",)]
    assert [count for _, count in rounds] == [most for most, _ in tune.STAGES]


def test_the_command_learns_without_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal.begin(tmp_path / "j", HEADER)
    tune.measure_all(some_tasks(), journal, meter_of(hashed))
    command = ["--learn", str(tmp_path / "j"), "--dtype", "f32", "--layout", "NN"]
    path = tmp_path / "h200_132.json"
    assert tune.main([*command, "--output", str(path)]) == 0
    assert read(path).tables.keys() == {NN}
    assert str(path) in capsys.readouterr().out
    (task, *_) = some_tasks()
    times = {n: 9.0 for n in task.kernels[1:]}
    journal.add(Record(task.problem, times, {task.kernels[0]: "1 outputs have other bits"}))
    assert tune.main([*command, "--output", str(path)]) == 1
    assert f"{task.kernels[0]}: 1 outputs have other bits" in capsys.readouterr().out
    with pytest.raises(OptionError, match=r"--output is .*other.json; .* takes h200_132.json"):
        tune.main([*command, "--output", str(tmp_path / "other.json")])
    assert not (tmp_path / "other.json").exists()


def test_expressions_of_rules() -> None:
    rule = Rule("k", "", m=(3, 5), n=(None, 9), k=(2, None), align=(16, 1))
    assert str(rule.prefer) == "3 <= M and M <= 5 and N <= 9 and 2 <= K and 16 <= ALIGN_A"
    assert Rule("k", "").prefer == TRUE
    assert rule.prefer.variables() <= {"M", "N", "K", "ALIGN_A"}
    assert not {str(x) for x in (M, N, K, CHUNKS)} & Rule("k", "").prefer.variables()
    assert math.isinf(learning.time_by([], Point(1, 1, 1, ALIGNED, {"a": 1.0})))


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
    command = [
        "--dtype",
        dtype,
        "--tier",
        tier,
        "--layout",
        "NT,TN",
        "--shapes",
        "8x64x96,65x33x17",
    ]
    command += ["--journal", str(tmp_path / "j")]
    device = get_device("cuda")
    path = tmp_path / f"{tuning_name(device.gpu, device.sms)}.json"
    assert tune.main([*command, "--output", str(path)]) == 0
    journal = Journal.load(tmp_path / "j")
    assert len(journal.records) == 6 and not journal.damaged
    tuning = read(path)
    assert len(tuning.tables) == 3
    assert len(emit.measured([tuning])) == 3
    before = (tmp_path / "j").read_text()
    assert tune.main([*command, "--output", str(path)]) == 0
    assert (tmp_path / "j").read_text() == before, "nothing is measured twice"
