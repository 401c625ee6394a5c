"""``ptxgen bench nf4``: what is timed and how it is summed up; nothing is timed here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.bench import cases, measure, nf4, results, tune
from ptxgen.bench.cases import Shape
from ptxgen.bench.journal import Header, Journal, Record
from ptxgen.bench.results import Environment, Limits, Sample
from ptxgen.cost.gpu import TYPICAL
from ptxgen.cost.tuning import FOLDER, read, write
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError
from ptxgen.spec import SCRATCH_MAX
from ptxgen.tiles import ROUTES

ENVIRONMENT = Environment(
    "2026-01-01T00:00:00+00:00", "abc", "0", "GPU", "1", 132, 1980, None, "13.0", "2.11",
    4e12, 1e15, "somewhere", 7,
)  # fmt: skip


def test_named_shapes_in_both_directions() -> None:
    found = nf4.select(tuple(nf4.GROUPS), tuple(nf4.OPS), "bf16", "tc")
    assert len(found) == len(nf4.WEIGHTS) * 8 * 2 == len(set(found))
    first, second = found[:2]
    assert (first.op, first.layout, first.product) == ("linear", "NT", (1, 2560, 2560))
    assert (second.op, second.layout) == ("linear_dgrad", "NN")
    (one,) = nf4.select(["16x4096x14336"], ["dgrad"], "f32", "simt")
    assert one.product == (16, 4096, 14336) and one.group == cases.CUSTOM
    numbers = 4096 * 14336
    assert one.bytes == numbers // 2 + numbers // 16 + 4 * 16 * (4096 + 14336)
    quick = nf4.select(tuple(nf4.GROUPS), ["linear"], "bf16", "tc", quick=True)
    assert {case.shape.m for case in quick} == {1, 8, 1024}
    with pytest.raises(OptionError, match="K = 100; takes a multiple of 64"):
        nf4.select(["1x100x64"], ["linear"], "bf16", "tc")
    with pytest.raises(OptionError, match="takes one of nf4-decode, nf4-rows, MxKxN"):
        nf4.select(["large"], ["linear"], "bf16", "tc")


@pytest.mark.parametrize(("accumulate", "dtype"), [("tc", "f16"), ("simt", "f32")])
def test_each_case_is_a_problem_of_the_library(accumulate: str, dtype: str) -> None:
    """The dispatcher serves every case, and its dense product has the same table and shape."""
    for case in nf4.select(["3x128x70", "4096x4096x14336"], tuple(nf4.OPS), dtype, accumulate):
        problem = case.problem(measure.natural_alignment(case))
        assert problem.table[:2] == ("quantized", case.layout) and problem.table[-1] == accumulate
        assert choose(
            problem.table, dict(problem.values), arch="sm_90", sms=132, dtype=problem.dtype
        ).kernels
        dense = case.dense.problem((16, 16))
        assert dense.table == problem.table[1:]
        assert case.dense.product == case.product and case.dense.bytes > case.bytes


def test_draws_are_of_whole_blocks_and_repeatable() -> None:
    found = nf4.drawn(40, 3, ["linear", "dgrad"], "bf16", "tc")
    assert len(found) == 80 and found[:10] == nf4.drawn(5, 3, ["linear", "dgrad"], "bf16", "tc")
    assert found != nf4.drawn(40, 4, ["linear", "dgrad"], "bf16", "tc")
    assert all(c.shape.k % 64 == 0 and 2 * c.shape.k * c.shape.n <= SCRATCH_MAX for c in found)
    assert {c.group for c in found} == {cases.RANDOM}


def test_accumulate_and_dtype_fit() -> None:
    assert nf4._kind("auto", None) == ("tc", "bf16")
    assert nf4._kind("auto", "f32") == ("simt", "f32")
    assert nf4._kind("tc", "f16") == ("tc", "f16") and nf4._kind("f64", None) == ("f64", "f32")
    with pytest.raises(OptionError, match="--accumulate tc takes --dtype bf16 or f16"):
        nf4._kind("tc", "f32")
    with pytest.raises(SystemExit, match="2"):
        nf4.main(["--peers", "x"])


def rows(tier: str, ratios: dict[str, float]) -> list[results.Row]:
    dtype, found = nf4.ACCUMULATE[tier][0], []
    for name, group in nf4.GROUPS.items():
        for peer, ratio in ratios.items():
            for m in group.rows:
                case = nf4.Nf4Case(name, "linear", "nk", Shape(m, 2560, 640), dtype, tier)
                ours, theirs = Sample(10, 9, 11, 5), Sample(10 * ratio, 9, 11, 5)
                limits = Limits(4e12, 1e15, "")
                found.append(results.row(case, "kernel", ours, (peer, "1"), theirs, limits, 9))
    return found


def test_targets() -> None:
    found = {(s.group, s.peer): s for s in nf4.summarise(rows("tc", {"torch": 1.0}))}
    assert found["nf4-decode", "torch"].ok is False, "asked are 1.4"
    assert found["nf4-rows", "torch"].ok is True
    found = {(s.group, s.peer): s for s in nf4.summarise(rows("tc", {"bitsandbytes": 0.9}))}
    assert found["nf4-decode", "bitsandbytes"].short == 6
    assert found["nf4-rows", "bitsandbytes"].ok is None
    (_, large) = nf4.summarise(rows("f64", {nf4.PEAK: 0.6}))
    assert large.ok is True and large.geomean == pytest.approx(0.6)
    assert all(s.ok is None for s in nf4.summarise(rows("simt", {"torch": 0.1})))


def test_an_earlier_run_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    found = rows("tc", {"torch": 1.5, "bitsandbytes": 2.0})
    results.write_records(path, results.records(found, ENVIRONMENT))
    assert nf4.main(["--rows", str(path)]) == 0
    said = capsys.readouterr().out
    assert "GPU, 132 SMs" in said and "1x2560x640" in said and "limits 4.00 TB/s" in said
    assert "torch time / ours" in said and "bitsandbytes time / ours" in said
    assert nf4.main(["--rows", str(path), "--brief"]) == 0
    assert "of limit" not in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [["--dtype", "bf16"], ["--dtype", "f32"]], ids=str)
def test_the_command_runs(kind: list[str], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "nf4.json"
    shapes = ["--shapes", "5x128x70,33x192x64", "--quick", "--save", str(path)]
    assert nf4.main([*kind, *shapes, "--peers", "torch"]) == 0
    found, _ = results.read_json(path)
    assert len(found) == 4 and all(r.ours_us > 0 and r.peer_us > 0 and r.checked for r in found)


KEYS = [("quantized", layout, "chunks", "half", "tc") for layout in ("NT", "NN")]


def test_tuning_takes_the_tables_of_nf4() -> None:
    assert tune.tables(["quantized"], "auto", tune.LAYOUTS, tune.PLANS) == KEYS
    assert tune.tables(["quantized"], "tc", ["NN"], ["chunks"]) == KEYS[1:]
    tasks = tune.tasks(KEYS, 8, 1, "sm_90", 132)
    assert len(tasks) == 16 and {len(task.align) for task in tasks} == {1}
    for task in tasks:
        assert task.kernels and set(task.kernels) <= {r.name for r in ROUTES[task.case.table]}
        assert task.align == (16,) or task.case.layout == "NN"


def test_what_is_learnt_of_nf4_leaves_dense_kernels_as_they_are(tmp_path: Path) -> None:
    """Learning from a journal of NF4 products changes no dense kernel's constants, also in the
    tuning of another GPU than the journal's.
    """
    there = replace(TYPICAL["sm_90"], memory=3.35e6)
    header = Header("NVIDIA H100", 132, "sm_90", "2026-01-01", "abc", "1", "13.0", there)
    journal = Journal.begin(tmp_path / "j", header)
    for task in tune.tasks(KEYS, 6, 1, "sm_90", 132):
        times = {name: 20.0 + number for number, name in enumerate(task.kernels)}
        journal.add(Record(task.problem, times, {}))
    again = Journal.load(tmp_path / "j")
    assert again.records == journal.records and again.header == header and not again.damaged
    path, before = tmp_path / "h200_132.json", read(FOLDER / "h200_132.json")
    write(before, path)
    command = ["--learn", str(tmp_path / "j"), "--dtype", "quantized", "--output", str(path)]
    assert tune.main(command) == 0
    after = read(path)
    changed = {n for n in after.kernels if after.kernels[n] != before.kernels[n]}
    assert changed and all(name.startswith("quantized_") for name in changed)
    assert replace(after, kernels=before.kernels) == before
