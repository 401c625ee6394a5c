"""``ptxgen bench quantized``: what is timed and how it is summed up; nothing is timed here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxgen import cli, reference
from ptxgen.bench import cases, draw, measure, quantized, quantized_cases, results, tune
from ptxgen.bench.cases import Shape
from ptxgen.bench.journal import Header, Journal, Problem, Record
from ptxgen.bench.quantized_weights import random_weight
from ptxgen.bench.report import CHECKOUT
from ptxgen.bench.results import Environment, Limits, Sample
from ptxgen.cost.gpu import TYPICAL
from ptxgen.cost.tuning import FOLDER, read, write
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError
from ptxgen.numerics.formats import FORMATS, format_named
from ptxgen.ops.numpy_or_torch import unpacked
from ptxgen.program import launch
from ptxgen.spec import SCRATCH_MAX
from ptxgen.tiles import ROUTES

OPS = tuple(quantized_cases.OPS)
FORMS = (*FORMATS, "int8_block_g128_f16", "int4_zero_point_g64", "fp8_e5m2_g32_f16")
ENVIRONMENT = Environment(
    "2026-01-01T00:00:00+00:00", "abc", "0", "GPU", "1", 132, 1980, None, "13.0", "2.11",
    4e12, 1e15, "somewhere", 7,
)  # fmt: skip


def test_named_shapes_in_both_directions() -> None:
    found = quantized.select(tuple(quantized.GROUPS), OPS, "bf16", "tc")
    assert len(found) == len(quantized_cases.WEIGHTS) * 8 * 2 == len(set(found))
    first, second = found[:2]
    assert (first.op, first.layout, first.product) == ("linear", "NT", (1, 2560, 2560))
    assert (second.op, second.layout) == ("linear_dgrad", "NN")
    (one,) = quantized.select(["16x4096x14336"], ["dgrad"], "f32", "simt")
    assert one.product == (16, 4096, 14336) and one.group == cases.CUSTOM
    numbers = 4096 * 14336
    assert one.bytes == numbers // 2 + numbers // 16 + 4 * 16 * (4096 + 14336)
    quick = quantized.select(tuple(quantized.GROUPS), ["linear"], "bf16", "tc", quick=True)
    assert {case.shape.m for case in quick} == {1, 8, 1024}
    with pytest.raises(OptionError, match="K = 100; nf4 takes a multiple of 64"):
        quantized.select(["1x100x64"], ["linear"], "bf16", "tc")
    with pytest.raises(OptionError, match="takes one of decode, rows, MxKxN"):
        quantized.select(["large"], ["linear"], "bf16", "tc")


@pytest.mark.parametrize(("accumulate", "dtype"), [("tc", "f16"), ("simt", "f32")])
def test_each_case_is_a_problem_of_the_library(accumulate: str, dtype: str) -> None:
    """The dispatcher serves every case, and its dense product has the same table and shape."""
    for case in quantized.select(["3x128x70", "4096x4096x14336"], OPS, dtype, accumulate):
        problem = case.problem(measure.natural_alignment(case))
        assert problem.table[:2] == ("quantized", case.layout) and problem.table[-1] == accumulate
        assert choose(
            problem.table, dict(problem.values), arch="sm_90", sms=132, dtype=problem.dtype
        ).kernels
        dense = case.dense.problem((16, 16))
        assert dense.table == problem.table[1:]
        assert case.dense.product == case.product and case.dense.bytes > case.bytes


@pytest.mark.parametrize("format", FORMS)
def test_random_weights_are_of_size_one(format: str) -> None:
    """Elements are finite, of a size about 1 and of all codes, prepared or not."""
    random, row = np.random.default_rng(5), format_named(format)

    def integers(low: int, high: int, count: int, dtype: str) -> Any:
        return random.integers(low, high, count, dtype)

    q = random_weight(row, 32, 1024, integers)
    w = quantized.dequantize(q, "float16").astype(np.float32)
    assert np.isfinite(w).all() and 0.5 < (w**2).mean() ** 0.5 < 2.5 and np.abs(w).max() < 16
    assert (quantized.dequantize(q.prepared(), "float16") == w).all()
    finite = {code for code, value in enumerate(row.values) if math.isfinite(value)}
    assert {*unpacked(row.bits, q.data).tolist()} == finite
    if row.offsets == "u8" and not row.outer:
        assert q.offsets.max() < 1 << row.bits


def test_draws_are_of_all_bands_and_half_of_them_of_models() -> None:
    """Random problems are repeatable, as many for each band of rows, and alike for all formats."""
    formats = ["nf4", "q4_k", "mxfp4"]
    found = quantized.drawn(40, 3, OPS, "bf16", "tc", formats)
    assert len(found) == 240 and {c.group for c in found} == {cases.RANDOM}
    assert found[:10] == quantized.drawn(5, 3, OPS, "bf16", "tc")
    assert found != quantized.drawn(40, 4, OPS, "bf16", "tc", formats)
    assert all(2 * c.shape.k * c.shape.n <= SCRATCH_MAX for c in found)
    each = {name: [c.shape for c in found[::2] if c.format == name] for name in formats}
    for name, shapes in each.items():
        of_a_model = [(s.k, s.n) in draw.LAYERS for s in shapes]
        assert of_a_model == [True] * 4 + [False] * 4 + of_a_model[:32], name
        assert all(s.k % format_named(name).unit == s.n % 8 == 0 for s in shapes)
        assert [s.m for s in shapes] == [s.m for s in each["nf4"]]
        taken = Counter(quantized_cases.band_of(s.m) for s in shapes)
        assert taken == dict.fromkeys(quantized_cases.BANDS, 10)
    layers = ([s for s in each[n] if (s.k, s.n) in draw.LAYERS] for n in formats[::2])
    assert next(layers) == next(layers), "units of both divide all layers' K"


def test_layers_are_multiples_that_formats_take() -> None:
    assert len({*draw.LAYERS}) == len(draw.LAYERS)
    assert all(k % 64 == 0 and n % 8 == 0 for k, n in draw.LAYERS)


def test_caps() -> None:
    """A cap is the least of the quotient of bytes, its limit, and cuBLAS's time over a chain's."""

    def of(format: str, m: int = 1, op: str = "linear", tier: str = "tc", us: float = 100.0) -> Any:
        case = quantized.QuantizedCase(
            "", op, "nk", Shape(m, 4096, 14336), "bf16", tier, format=format
        )
        return quantized_cases.cap(case, us, 1.98)

    assert of("nf4") == pytest.approx(16 / 4.5)
    assert of("int4_zero_point", 16) == 3.6 and of("int8_block_g128_f16") == 1.9
    assert of("q6_k") == pytest.approx(16 / 6.5625)
    assert of("nf4", us=8.0) == pytest.approx(8.0 / (4096 / 16 * 33 / 1980))
    # The gradient reduces over N: five chunks of at most 3072, multiples of 128.
    assert of("nf4", op="linear_dgrad", us=8.0) == pytest.approx(8.0 / (2944 / 16 * 33 / 1980))
    assert of("nf4", 17) is None and of("nf4", tier="simt") is None


def test_accumulate_and_dtype_fit() -> None:
    assert quantized._kind("auto", None) == ("tc", "bf16")
    assert quantized._kind("auto", "f32") == ("simt", "f32")
    assert quantized._kind("tc", "f16") == ("tc", "f16")
    assert quantized._kind("f64", None) == ("f64", "f32")
    with pytest.raises(OptionError, match="--accumulate tc takes --dtype bf16 or f16"):
        quantized._kind("tc", "f32")
    with pytest.raises(SystemExit, match="2"):
        quantized.main(["--peers", "x"])


def test_shares_of_caps_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Rows of few rows have caps; their shares leave an empty launch out of both times."""
    found = []
    for m, bound in ((1, 3.0), (16, 3.0), (64, None)):
        case = quantized.QuantizedCase(
            cases.RANDOM, "linear", "nk", Shape(m, 256, 64), "bf16", "tc", format="mxfp4"
        )
        sample = Sample(14, 13, 15, 5), ("torch", "1"), Sample(28, 27, 29, 5)
        row = results.row(case, "kernel", *sample, Limits(4e12, 1e15, ""), 9)
        own = quantized.QuantizedRow(**asdict(row), format="mxfp4", empty_us=4.0, cap=bound)
        assert own.reached == (bound and pytest.approx(24 / 10 / 3))
        found.append(own)
    path = tmp_path / "rows.json"
    results.write_records(path, results.records(found, ENVIRONMENT))
    assert quantized.QuantizedProducts.read(path)[0] == found
    assert quantized.main(["--rows", str(path), "--brief"]) == 0
    few, some, every = (
        line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("mxfp4 ")
    )
    assert few[1:5] == ["linear", "1-16", "2", "2.000"] and few[-2:] == ["3.00", "80%"]
    assert some[2] == "17-64" and some[-2:] == every[-2:] == ["-", "-"] and every[3] == "3"
    assert quantized.without(4.0, 3.0) > 0


def test_rows_have_format_and_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row beside cuBLAS has the launch that was measured, and a cap for few rows."""
    monkeypatch.setattr(measure, "chosen", lambda case, align: SimpleNamespace(names=("kernel",)))
    monkeypatch.setattr(measure, "rates", lambda: TYPICAL["sm_90"])
    options = quantized._parser().parse_args(["--format", "nf4,q3_k", "--random", "8"])
    torch = SimpleNamespace(cuda=SimpleNamespace(_sleep=lambda cycles: None))
    area = quantized.QuantizedProducts(options, torch)
    area.timer = lambda work, counts: [Sample(5, 5, 5, 9)]  # type: ignore[assignment]
    area.versions, area.limits, area.checked = {"torch": "1"}, Limits(4e12, 1e15, ""), 9
    times = {"ours": Sample(10, 9, 11, 9), "torch": Sample(20, 19, 21, 9)}
    found = [row for case in area.cases() for row in area.found(case, times)]
    assert Counter(row.format for row in found) == {"nf4": 16, "q3_k": 16}
    assert {row.empty_us for row in found} == {5.0} and {row.ratio for row in found} == {2.0}
    for case, row in zip(area.cases(), found, strict=True):
        clock = TYPICAL["sm_90"].clock
        assert row.cap == quantized_cases.cap(case, 15.0, clock)
        assert (row.cap is None) == (row.m > 16)
        assert row.floor_us == results.floor(case, area.limits).us


class HostTensor(np.ndarray[Any, Any]):
    """An array of NumPy with the methods by which tensors become such arrays."""

    def cpu(self) -> HostTensor:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return np.asarray(self)


@pytest.mark.parametrize("op", ["linear", "linear_dgrad"])
@pytest.mark.parametrize("format", ["nf4", "int4_block_g64"])
def test_sums_in_f64_are_compared_with_the_oracle(op: str, format: str) -> None:
    random = np.random.default_rng(2)
    n, k = 40, 192
    drawn = random_weight(format_named(format), n, k, lambda *given: random.integers(*given))
    x = random.standard_normal((19, k if op == "linear" else n), np.float32)
    y = getattr(reference, f"quantized_{op}")(x, drawn, accumulate="f64")
    arrays = {name: getattr(drawn, name).view(HostTensor) for name in ("data", "scales")}
    q = SimpleNamespace(format=drawn.format, n=n, k=k, **arrays)
    case = quantized.QuantizedCase("", op, "nk", Shape(19, k, n), "f32", "f64", format=format)
    checked = quantized._sampled(case, q, x.view(HostTensor), y.view(HostTensor))
    assert checked == 16 * (16 if op == "linear" else 64)
    y[0, 0] += 1
    with pytest.raises(measure.WrongBitsError, match="1 of "):
        quantized._sampled(case, q, x.view(HostTensor), y.view(HostTensor))


def test_the_former_name_warns(capsys: pytest.CaptureFixture[str]) -> None:
    path = "bench/results/nf4-h200-20261122-eff5743.json"
    assert cli.main(["bench", "nf4", "--brief", "--rows", str(CHECKOUT / path)]) == 0
    said = capsys.readouterr()
    assert said.err.count("bench nf4 is called bench quantized, and the next version refuses") == 1
    assert "nf4-decode" in said.out and "1.40" in said.out, "former groups keep their targets"
    assert cli.main(["bench", "quantized", "--rows", str(CHECKOUT / path)]) == 0
    assert not capsys.readouterr().err
    shapes = quantized.select(["nf4-rows"], ["linear"], "bf16", "tc")
    assert {case.group for case in shapes} == {"rows"}


def rows(tier: str, ratios: dict[str, float]) -> list[quantized.QuantizedRow]:
    dtype, found = quantized.ACCUMULATE[tier][0], []
    for name, group in quantized.GROUPS.items():
        for peer, ratio in ratios.items():
            for m in group.rows:
                shape = Shape(m, 2560, 640)
                case = quantized.QuantizedCase(name, "linear", "nk", shape, dtype, tier)
                ours, theirs = Sample(10, 9, 11, 5), Sample(10 * ratio, 9, 11, 5)
                limits = Limits(4e12, 1e15, "")
                row = results.row(case, "kernel", ours, (peer, "1"), theirs, limits, 9)
                found.append(quantized.QuantizedRow(**asdict(row)))
    return found


def test_targets() -> None:
    found = {(s.group, s.peer): s for s in quantized.summarise(rows("tc", {"torch": 1.0}))}
    assert found["decode", "torch"].ok is False, "asked are 1.4"
    assert found["rows", "torch"].ok is True
    found = {(s.group, s.peer): s for s in quantized.summarise(rows("tc", {"bitsandbytes": 0.9}))}
    assert found["decode", "bitsandbytes"].short == 6
    assert found["rows", "bitsandbytes"].ok is None
    (_, large) = quantized.summarise(rows("f64", {quantized.PEAK: 0.6}))
    assert large.ok is True and large.geomean == pytest.approx(0.6)
    assert all(s.ok is None for s in quantized.summarise(rows("simt", {"torch": 0.1})))
    others = [replace(row, format="mxfp4") for row in rows("tc", {"torch": 0.1})]
    assert all(s.ok is None for s in quantized.summarise(others)), "NF4 alone has targets"


def test_an_earlier_run_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    found = rows("tc", {"torch": 1.5, "bitsandbytes": 2.0})
    results.write_records(path, results.records(found, ENVIRONMENT))
    assert quantized.main(["--rows", str(path)]) == 0
    said = capsys.readouterr().out
    assert "GPU, 132 SMs" in said and "1x2560x640" in said and "limits 4.00 TB/s" in said
    assert "torch time / ours" in said and "bitsandbytes time / ours" in said
    assert quantized.main(["--rows", str(path), "--brief"]) == 0
    assert "of limit" not in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [["--dtype", "bf16"], ["--dtype", "f32"]], ids=str)
def test_the_command_runs(kind: list[str], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "quantized.json"
    shapes = ["--shapes", "5x128x70,33x192x64", "--quick", "--save", str(path)]
    assert quantized.main([*kind, *shapes, "--peers", "torch"]) == 0
    found, _ = results.read_json(path)
    assert len(found) == 4 and all(r.ours_us > 0 and r.peer_us > 0 and r.checked for r in found)


KEYS = [("quantized", layout, "chunks", "half", "tc") for layout in ("NT", "NN")]
WIDE = ("quantized", "NT", "chunks", "f32", "f64")
HEADER = Header("NVIDIA H100", 132, "sm_90", "2026-01-01", "abc", "1", "13.0")


def test_tuning_takes_the_tables_of_quantized_weights() -> None:
    assert tune.tables(["quantized"], "auto", tune.LAYOUTS, tune.PLANS) == KEYS
    assert tune.tables(["quantized"], "tc", ["NN"], ["chunks"]) == KEYS[1:]
    tasks = tune.tasks(KEYS, 9, 1, "sm_90", 132)
    assert len(tasks) == 18 and {len(task.align) for task in tasks} == {1}
    for task in tasks:
        assert task.kernels and set(task.kernels) <= {r.name for r in ROUTES[task.case.table]}
        assert task.align == (16,) or task.case.layout == "NN"
    for part in tasks[::2], tasks[1::2]:  # a table's
        assert [task.problem.format for task in part] == [*tune.TUNED_FORMATS] * 3
    wide = tune.tasks([WIDE], 4, 1, "sm_90", 132)
    assert {task.problem.format for task in wide} == {"nf4"}, "others have no kernels there"


def test_tuning_leaves_layers_of_models_out() -> None:
    """No problem of the tuner has a weight of the benchmark's layers, whatever the seed."""
    for format in tune.TUNED_FORMATS:
        found = quantized_cases.varied(300, 1, "linear", "bf16", "tc", format)
        assert {(c.shape.k, c.shape.n) for c in found}.isdisjoint(draw.LAYERS)
        assert found[:20] == quantized_cases.varied(20, 1, "linear", "bf16", "tc", format)
        unit = format_named(format).unit
        assert all(c.shape.k % unit == 0 for c in found)


def test_kernels_of_a_format_are_recorded_as_their_table_lists_them(tmp_path: Path) -> None:
    """The meter gets names by which a call forces kernels for the case's format; the journal gets
    those that have constants.
    """
    journal, forced = Journal.begin(tmp_path / "j", HEADER), []

    def meter(case: tune.Tuned, names: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
        assert isinstance(case, quantized.QuantizedCase)
        posed = case.problem(measure.natural_alignment(case))
        for name in names:  # raises OptionError for those that the problem does not have
            route, _ = launch.forced(posed, "sm_90", 132, name)
            assert route.takes(posed.dtype)
        forced.append(names)
        return {name: 1.0 + number for number, name in enumerate(names[1:])}, {names[0]: "bits"}

    tasks = tune.tasks(KEYS, 3, 1, "sm_90", 132)
    assert tune.measure_all(tasks, journal, meter) == 0
    again = Journal.load(tmp_path / "j")
    assert again.records == journal.records and len(again.records) == 6
    for task, names in zip(tasks, forced, strict=True):
        record = again.records[task.problem]
        assert [*record.times] == [*task.kernels[1:]] and record.wrong == {task.kernels[0]: "bits"}
        own = [name for name in names if f"_{task.problem.format}_" in name]
        assert own and "_nf4_" in task.kernels[0]
    assert {len(task.kernels) for task in tasks} != {len(ROUTES[KEYS[0]])}, "all take all formats"


def test_formats_of_one_size_are_other_problems(tmp_path: Path) -> None:
    """Formats do not share a journal's record; older journals are of NF4."""
    journal = Journal.begin(tmp_path / "j", HEADER)
    found = [Problem(KEYS[0], (4, 512, 1024), (16,), format=name) for name in tune.TUNED_FORMATS]
    for us, problem in enumerate(found, start=1):
        journal.add(Record(problem, {"kernel": float(us)}, {}))
    text = (tmp_path / "j").read_text()
    assert [*Journal.load(tmp_path / "j").records] == found == sorted(found, key=found.index)
    (tmp_path / "j").write_text(text.replace('"format": "nf4", ', ""))
    assert [*Journal.load(tmp_path / "j").records] == found
    assert len({problem.group for problem in found}) == 1, "they are held out of a fit together"


def test_what_is_learnt_leaves_dense_kernels_as_they_are(tmp_path: Path) -> None:
    """Learning from a journal of quantized weights changes no dense kernel's constants, also in the
    tuning of another GPU than the journal's.
    """
    there = replace(TYPICAL["sm_90"], memory=3.35e6)
    header = replace(HEADER, rates=there)
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
    changed = {n for n in after.kernels if after.kernels[n] != before.kernels.get(n)}
    assert changed and all(name.startswith("quantized_") for name in changed)
    assert replace(after, kernels=before.kernels) == before
