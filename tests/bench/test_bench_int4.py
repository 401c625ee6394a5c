"""``ptxgen bench int4``, and ``tune`` of its tables: what needs no GPU; with one, that it runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.bench import int4, results, tune
from ptxgen.bench.cases import Shape
from ptxgen.bench.int4 import Int4Case, Row
from ptxgen.bench.journal import Header, Journal, Record
from ptxgen.cli import main as cli
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.tiles import ROUTES

KEYS = [("int4", layout, dtype) for layout in ("rcr", "rrr") for dtype in ("s4", "u4")]
ENVIRONMENT = results.Environment(
    *("2026-01-01", "c", "1", "NVIDIA H200", "d", 132, None, None, "13.0", "2.11", 1.0, 1.0, "", 0)
)
HEADER = Header("NVIDIA H200", 132, "sm_90", "2026-01-01", "c", "d", "13.0")


def row(shape: str, layout: str, us: float, peer_us: float, group: str = "decode") -> Row:
    m, k, n = map(int, shape.split("x"))
    return Row(group, "s4", layout, m, k, n, "kernel", us, peer_us, peer_us / us, 1.0)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("3x4", "takes MxKxN, numbers from 1 on"),
        ("3x0x8", "takes MxKxN"),
        ("3x8xn", "takes MxKxN"),
        ("3x12x8", "_int_mm takes multiples of 8 as K and N"),
    ],
)
def test_shapes_that_the_peer_does_not_take(shape: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        int4.main(["--shapes", shape])


def test_the_command_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli(["bench", "int4", "--help"])
    assert "torch._int_mm" in capsys.readouterr().out


def test_random_problems_are_those_of_the_dense_ones_as_the_peer_takes_them() -> None:
    drawn = int4.drawn(40, 3)
    assert drawn == int4.drawn(60, 3)[:40] != int4.drawn(40, 4)
    assert all(s.k % 8 == s.n % 8 == 0 for s in drawn)
    assert any(s.k % 32 for s in drawn) and any(s.k % 32 == 0 for s in drawn)


def test_the_summary_has_ratios_of_groups_and_of_layouts() -> None:
    found = [
        row("1x64x64", "rcr", 10, 20),
        row("2x64x64", "rcr", 10, 5),
        row("1x64x64", "rrr", 20, 20),
        row("2x64x64", "rrr", 10, 5),
        row("64x64x64", "rcr", 10, 15, "64-512"),
    ]
    lines = [line.split() for line in int4.summary(found).splitlines()]
    assert [line[:2] for line in lines[1:]][-1] == ["decode", "s4"]
    by = {tuple(line[:-5]): line[-5:] for line in lines if line[0] in int4.GROUPS}
    assert by["decode", "s4", "rcr"] == ["2", "1.000", "0.650", "0.500", "2x64x64"]
    assert by["64-512", "s4", "rcr"] == ["1", *["1.500"] * 3, "64x64x64"]
    assert by["decode", "s4", "rrr", ":", "rcr"][1] == f"{math.sqrt(0.5):.3f}"
    assert ("64-512", "s4", "rrr", ":", "rcr") not in by


FOUND = [row("1x64x64", "rcr", 10, 20), row("1x64x64", "rrr", 20, 15)]


def test_rows_of_a_file_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    results.write_records(path, results.records(FOUND, ENVIRONMENT))
    assert int4.Int4.read(path) == (FOUND, ENVIRONMENT)
    assert int4.main(["--rows", str(path)]) == 0
    assert "0.750" in capsys.readouterr().out
    path.write_text("[{}]")
    with pytest.raises(PtxgenError, match="holds no rows of `ptxgen bench int4`"):
        int4.main(["--rows", str(path)])


def test_alignments_are_those_of_fresh_operands() -> None:
    case = Int4Case("rcr", "s4", Shape(4, 24, 64))
    assert case.align == (4, 4)
    assert replace(case, shape=Shape(1, 24, 64)).align == (16, 4)
    assert replace(case, layout="rrr").align == (4, 16)
    assert case.product == (4, 64, 24) and case.table == ("int4", "rcr", "s4")


def test_tuning_takes_the_tables_of_int4() -> None:
    assert tune.tables(["s4", "u4"], "auto", tune.LAYOUTS, ["chunks"]) == KEYS
    both = tune.tables(["u4", "bf16"], "auto", ["NN", "rrr"], ["chunks"])
    assert both == [("NN", "chunks", "half", "tc"), ("int4", "rrr", "u4")]
    with pytest.raises(OptionError, match="no route table of NN, chunks, s4, tier auto"):
        tune.tables(["s4"], "auto", ["NN"], ["chunks"])
    tasks = tune.tasks(KEYS, 12, 1, "sm_90", 132)
    assert len({task.problem for task in tasks}) == len(tasks) >= 40
    for task in tasks:
        names = {route.name for route in ROUTES[task.case.table]}
        assert task.kernels and set(task.kernels) <= names
        direct = [name for name in task.kernels if "+" not in name]
        assert (len(direct) > 1) == (min(task.align) >= 4)


def test_what_was_measured_of_int4_is_read_again_and_fitted(tmp_path: Path) -> None:
    path = tmp_path / "tune.jsonl"
    tasks = tune.tasks(KEYS[:1], 12, 1, "sm_90", 132)
    journal = Journal.begin(path, HEADER)
    for task in tasks:
        journal.add(Record(task.problem, {name: 10.0 for name in task.kernels}, {}))
    again = Journal.load(path)
    assert again.records == journal.records and not again.damaged
    tune.write_tuning(again, KEYS[:1], tmp_path / "h200_132.json")
    fitted = tune.read(tmp_path / "h200_132.json").kernels
    assert {name for task in tasks for name in task.kernels if "+" not in name} <= set(fitted)


@pytest.mark.gpu
def test_int4_command_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "int4.json"
    shapes = "3x64x40,33x1024x512"
    arguments = ["--dtype", "s4", "--dtype", "u4", "--save", str(path)]
    assert int4.main(["--shapes", shapes, *arguments]) == 0
    assert len(found := json.loads(path.read_text())) == 8
    assert all(r["us"] > 0 and r["peer_us"] > 0 for r in found)
    assert int4.main(["--random", "2", "--seed", "3", *arguments]) == 0
