"""The benchmark's cases, statistics, floors, tables, files and plots. Nothing is timed."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ops_fakes import FakeGpu

from ptxgen import reference
from ptxgen.bench import (
    bmm,
    cases,
    gemm,
    host,
    kernels,
    measure,
    model,
    peers,
    plots,
    results,
    routes,
    runner,
)
from ptxgen.bench.cases import GROUPS, Case, Shape
from ptxgen.bench.results import Limits, Sample
from ptxgen.cli import main, work
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.numerics.contract import FMA, OPERATIONS, TIERS
from ptxgen.ops.explaining import problem_of
from ptxgen.tiles import ROUTES

H200 = results.LIMITS["NVIDIA H200", "simt"]
ENVIRONMENT = results.Environment(
    date="2026-01-02T03:04:05+00:00",
    commit="0123456789ab",
    ptxgen="0.1.0",
    gpu="NVIDIA H200",
    driver="580.1",
    sms=132,
    clock_sm_mhz=1980,
    clock_memory_mhz=None,
    cuda="13.0",
    torch="2.11.0",
    bandwidth_limit=H200.bandwidth,
    flops_limit=H200.flops,
    limits_source=H200.source,
    seed=7,
)


def row(case: Case, ratio: float, peer: str = "torch", us: float | None = None) -> results.Row:
    ours = 1.25 * results.floor(case, H200).us if us is None else us
    mine = Sample(ours, 0.99 * ours, 1.01 * ours, 9)
    theirs = Sample(ratio * ours, ratio * ours, ratio * ours, 9)
    return results.row(case, "some_kernel", mine, (peer, "1.0"), theirs, H200, 64)


def fake_rows() -> list[results.Row]:
    ratios = random.Random(3)
    return [
        row(case, ratios.uniform(0.7, 2.0) * scale, peer)
        for case in cases.select()
        for peer, scale in (("torch", 1.0), ("triton", 4.0))
    ]


# -- cases ------------------------------------------------------------------------
SMALL = (1, 2, 4, 8, 16, 32)
KN = ((4096, 4096), (14336, 4096), (4096, 14336), (4096, 1024))
ASKED = {}  # (M, K, N), geometric mean, each
ASKED["simt"] = {  # as the project's first issue has it
    "large": (
        {(4096,) * 3, (8192,) * 3, (8192, 4096, 14336), (4096, 1536, 3072), (2048, 768, 3072)},
        1.03,
        1.00,
    ),
    "odd": ({(2048, 768, 512), (128, 641, 257), (1000, 1000, 1000)}, None, 1.00),
    "medium": (
        {(m, k, n) for m in (64, 128, 256) for k, n in ((4096, 4096), (14336, 4096), (4096, 1024))},
        1.15,
        1.00,
    ),
    "decode": (
        {(m, k, n) for m in SMALL for k, n in ((4096, 4096), (14336, 4096), (4096, 14336))},
        1.20,
        0.95,
    ),
    "decode-small": ({(m, k, n) for m in SMALL for k, n in ((4096, 1024), (2048, 512))}, 1.0, 0.80),
    "wgrad": (
        {
            (m, k, n)
            for m in (32, 2048, 8192, 65536)
            for k, n in ((64, 64), (768, 3072), (4096, 4096))
        },
        1.10,
        0.95,
    ),
}
ASKED["tc"] = {  # and as the issue of the 16-bit formats has it
    "large": (
        {(8192,) * 3, (4096,) * 3, (8192, 4096, 14336), (4096, 1536, 3072)},
        1.00,
        0.97,
    ),
    "odd": (
        {(2048, 768, 3072), (2048, 768, 512), (1024,) * 3, (3000, 5000, 1000)},
        1.00,
        0.92,
    ),
    "medium": ({(m, k, n) for m in (64, 128, 256) for k, n in KN}, 1.00, 0.90),
    "decode": ({(m, k, n) for m in SMALL for k, n in KN}, 1.05, 0.92),
    "wgrad": (
        {(m, k, n) for m in (512, 8192, 65536) for k, n in ((768, 3072), (4096, 4096), (128, 128))},
        1.00,
        0.92,
    ),
}


@pytest.mark.parametrize(("tier", "name"), [(t, name) for t in ASKED for name in ASKED[t]])
def test_groups_are_what_is_asked(tier: str, name: str) -> None:
    shapes, mean, each = ASKED[tier][name]
    group = GROUPS[tier][name]
    assert {(s.m, s.k, s.n) for s in group.shapes} == shapes
    assert len(group.shapes) == len(shapes)
    assert (group.geomean, group.each) == (mean, each)
    assert set(group.quick) <= set(group.shapes) and group.quick


@pytest.mark.parametrize(
    ("dtype", "tier"), [("f32", "simt"), ("bf16", "tc"), ("f16", "tc"), ("bf16", "simt")]
)
def test_all_groups_are_selected_in_every_layout(dtype: str, tier: str) -> None:
    assert GROUPS[tier].keys() == ASKED[tier].keys()
    selected = cases.select(dtype=dtype, tier=tier)
    width = "half" if dtype.endswith("16") else dtype
    assert len(selected) == len(set(selected))
    assert {(c.dtype, c.tier, c.table[2:]) for c in selected} == {(dtype, tier, (width, tier))}
    for name, group in GROUPS[tier].items():
        layouts = cases.LAYOUTS if group.op == "linear" else ("TN",)
        found = {(c.shape, c.layout) for c in selected if c.group == name}
        assert found == {(s, layout) for s in group.shapes for layout in layouts}


def test_select() -> None:
    assert {c.group for c in cases.select(ops=["wgrad"])} == {"wgrad"}
    assert {c.layout for c in cases.select(["odd"], ["NT"])} == {"NT"}
    assert {c.op for c in cases.select(["odd"])} == {"linear", "matmul"}
    custom = cases.select(["3x5x7"])
    assert {c.group for c in custom} == {cases.CUSTOM}
    assert [(c.op, c.stored, c.layout) for c in custom] == [
        ("linear", "kn", "NN"),
        ("linear", "nk", "NT"),
        ("matmul", "tn", "TN"),
        ("linear_wgrad", "kn", "TN"),
    ]
    for dtype in ("f32", "bf16"):
        assert len(cases.select(quick=True, dtype=dtype)) < len(cases.select(dtype=dtype)) / 2
    assert {c.tier for c in cases.select(dtype="f16")} == {"tc"}


def test_a_table_names_the_case_that_measures_it() -> None:
    for key in (key for key in ROUTES if len(key) == 4):  # products; the rest have one name
        for turn in (0, 1):
            assert cases.case_of(key, Shape(3, 5, 7), turn).table == key
    weights = {cases.case_of(("TN", "chunks", "f32", "simt"), Shape(3, 5, 7), i).op for i in (0, 1)}
    assert weights == {"matmul", "linear_wgrad"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((["huge"],), "huge"),
        ((["0x1x1"],), "0x1x1"),
        ((["all"], ["TT"]), "TT"),
        ((["all"], ["NN"], ["dgrad"]), "dgrad"),
    ],
)
def test_select_refuses(arguments: tuple[Any, ...], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        cases.select(*arguments)


@pytest.mark.parametrize(("dtype", "tier"), [("f8", "auto"), ("f32", "tc"), ("bf16", "fp8")])
def test_select_refuses_dtypes_and_tiers(dtype: str, tier: str) -> None:
    with pytest.raises(OptionError, match=dtype if dtype == "f8" else f"{tier}.*expected"):
        cases.select(dtype=dtype, tier=tier)


def test_sizes_of_the_product() -> None:
    *product, wgrad = cases.select(["3x5x7"])
    assert {c.product for c in product} == {(3, 7, 5)}
    assert wgrad.product == (5, 7, 3)
    assert {c.flops for c in (*product, wgrad)} == {2 * 3 * 5 * 7}
    assert {c.bytes for c in (*product, wgrad)} == {4 * (15 + 35 + 21)}
    assert {c.bytes for c in cases.select(["3x5x7"], dtype="f16")} == {2 * (15 + 35 + 21)}


# -- statistics and floors ------------------------------------------------------------
def test_sample() -> None:
    assert Sample.of([5.0]) == Sample(5.0, 5.0, 5.0, 1)
    assert Sample.of([4.0, 1.0, 3.0, 2.0, 100.0]) == Sample(3.0, 2.0, 4.0, 5)


def test_geomean() -> None:
    assert math.isclose(results.geomean([0.5, 2.0, 8.0]), 2.0)


def test_floors() -> None:
    decode = Case("", "linear", "kn", Shape(16, 4096, 4096))
    found = results.floor(decode, H200)
    assert found.bound == "memory"
    assert math.isclose(found.us, 4 * (2 * 16 * 4096 + 4096 * 4096) / 4.3e6)
    large = Case("", "linear", "kn", Shape(8192, 8192, 8192))
    found = results.floor(large, H200)
    assert found.bound == "compute"
    assert math.isclose(found.us, 2 * 8192**3 / 66e6)
    # Where both take equally long, bytes are named; a hair less memory speed changes nothing.
    even = Limits(large.bytes * 1.0, large.flops * 1.0, "made up")
    assert results.floor(large, even) == results.Floor(1e6, "memory")


def test_row() -> None:
    case = Case("odd", "linear", "kn", Shape(1000, 1000, 1000))
    found = row(case, ratio=1.5, us=100.0)
    assert math.isclose(found.ratio, 1.5)
    assert math.isclose(found.tflops, 2e9 / 100e-6 / 1e12)
    assert math.isclose(found.gbps, 12e6 / 100e-6 / 1e9)
    assert math.isclose(found.share, found.floor_us / 100)
    assert found.shape == "1000x1000x1000"


# -- summaries --------------------------------------------------------------------
def group_rows(name: str, ratios: list[float], peer: str = "torch") -> list[results.Row]:
    shapes = GROUPS["simt"][name].shapes
    return [
        row(Case(name, "linear", "kn", s), r, peer) for s, r in zip(shapes, ratios, strict=False)
    ]


def test_targets_are_those_of_the_dtype_and_tier() -> None:
    for (dtype, tier), asked in (
        (("f32", "simt"), (1.03, 1.00)),
        (("bf16", "tc"), (1.00, 0.97)),
        (("bf16", "simt"), (None, None)),
    ):
        shape = Shape(4096, 4096, 4096)
        (found,) = results.summarise([row(Case("large", "linear", "kn", shape, dtype, tier), 1.0)])
        assert (found.geomean_target, found.each_target) == asked


def test_invariant_peers_have_a_target_over_everything() -> None:
    every = cases.select(dtype="bf16")
    rows = [row(case, 3.1, "triton") for case in every]
    whole = results.summarise(rows)[-1]
    assert (whole.group, whole.cases, whole.geomean_target, whole.ok) == (
        "all",
        len(every),
        3,
        True,
    )
    assert results.summarise([row(c, 2.9, "triton") for c in every])[-1].ok is False
    part = results.summarise([r for r in rows if r.group != "wgrad"])
    assert "all" not in {s.group for s in part}


@pytest.mark.parametrize(
    ("ratios", "short", "ok"),
    [
        ([1.0, 1.2, 1.1], 0, True),
        ([1.02, 1.02, 1.02], 0, False),  # each is met, the mean of 1.03 is not
        ([0.98, 1.4, 1.4], 1, False),  # the mean is met, each is not
    ],
)
def test_a_group_meets_both_targets_or_is_short(ratios: list[float], short: int, ok: bool) -> None:
    (found,) = results.summarise(group_rows("large", ratios))
    assert (found.short, found.ok) == (short, ok)
    assert found.least == min(r.ratio for r in group_rows("large", ratios))
    text = results.summary_table([found])
    assert ("ok" in text.split(), "short" in text) == (ok, not ok)
    assert f"{short} of 3 below" in text or not short


def test_targets_are_about_torch_and_all_layouts() -> None:
    other = results.summarise(group_rows("large", [0.5], "triton"))
    single = results.summarise(group_rows("large", [0.5]), by_layout=True)
    assert [s.ok for s in (*other, *single)] == [None, None]
    assert "short" not in results.summary_table([*other, *single])


def test_groups_without_a_mean_ask_for_each() -> None:
    assert results.summarise(group_rows("odd", [1.0, 1.0]))[0].ok is True
    assert results.summarise(group_rows("odd", [2.0, 0.999]))[0].ok is False


def test_case_table() -> None:
    case, other = cases.select(["4096x4096x4096", "16x4096x4096"], ["NN"], ["linear"])
    rows = [row(case, 1.5, us=2500.0), row(case, 4.0, "triton", us=2500.0), row(other, 0.8, us=40)]
    header, first, second = results.case_table(rows).splitlines()
    assert header.split()[-3:] == ["of", "limit", "kernel"]
    assert {"3750.0", "1.50", "10000.0", "4.00", "2500.0", "TF/s"} <= set(first.split())
    assert {"40.0", "32.0", "0.80", "-", "GB/s"} <= set(second.split())
    assert "\x1b" not in results.case_table(rows)


# -- files -----------------------------------------------------------------------
def test_json_rows_are_complete_and_come_back(tmp_path: Path) -> None:
    rows = fake_rows()
    path = tmp_path / "new" / "rows.json"
    results.write_records(path, results.records(rows, ENVIRONMENT))
    found = json.loads(path.read_text(encoding="utf-8"))
    assert len(found) == len(rows) == 2 * len(cases.select())
    names = [f.name for c in (results.Row, results.Environment) for f in dataclasses.fields(c)]
    assert len(set(names)) == len(names), "a field of both would be lost"
    for record in found:
        assert list(record) == names
    assert found[0]["gpu"] == "NVIDIA H200" and found[0]["clock_memory_mhz"] is None
    assert results.read_json(path) == (rows, ENVIRONMENT)


def test_files_from_before_there_were_dtypes_are_read(tmp_path: Path) -> None:
    rows = [row(case, 1.0) for case in cases.select(["odd"])]
    old = results.records(rows, ENVIRONMENT)
    for record in old:
        del record["dtype"], record["tier"]
    results.write_records(tmp_path / "old.json", old)
    assert results.read_json(tmp_path / "old.json") == (rows, ENVIRONMENT)


@pytest.mark.parametrize("text", ["", "{}", "[]", '[{"m": 1}]', "[3]"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PtxgenError, match="holds no rows"):
        results.read_json(path)


def test_a_missing_file_is_named_with_where_runs_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gemm", "--rows", "nowhere.json"]) == 1
    said = capsys.readouterr().err
    assert "there is no file nowhere.json; recorded runs are in bench/results" in said


def test_earlier_rows_are_printed_without_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results.write_records(tmp_path / "rows.json", results.records(fake_rows(), ENVIRONMENT))
    assert gemm.main(["--rows", str(tmp_path / "rows.json"), "--brief"]) == 0
    output = capsys.readouterr().out
    assert "NVIDIA H200, 132 SMs" in output and "decode-small" in output
    assert "some_kernel" not in output  # the table of cases is left out


def test_what_was_not_timed_is_null(tmp_path: Path) -> None:
    results.write_records(tmp_path / "a.json", [{"us": math.nan, "kernel": "k"}])
    assert json.loads((tmp_path / "a.json").read_text()) == [{"us": None, "kernel": "k"}]


def test_commit_is_given_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_COMMIT", "feedc0de")
    assert measure.commit() == "feedc0de"


# -- measuring, with a stand-in for torch ---------------------------------------------
class FakeArray:
    """Stand-in for a torch tensor, with the methods that the oracle and the comparison call."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.shape = values.shape

    def __getitem__(self, key: Any) -> FakeArray:
        return FakeArray(self.values[key])

    def contiguous(self) -> FakeArray:
        return FakeArray(np.ascontiguousarray(self.values))

    def cpu(self) -> FakeArray:
        return self

    def numpy(self) -> np.ndarray:
        return self.values

    def abs_(self) -> FakeArray:
        return FakeArray(np.abs(self.values))

    def element_size(self) -> int:
        return self.values.itemsize

    def max(self) -> FakeArray:
        return FakeArray(np.max(self.values))

    def item(self) -> float:
        return float(self.values)


def product(m: int, n: int, k: int, seed: int = 0) -> tuple[Any, FakeArray, int]:
    """Operands, their product as the contract has it, and its chunk length."""
    generator = np.random.default_rng(seed)
    a = generator.standard_normal((m, k), dtype=np.float32)
    b = generator.standard_normal((k, n), dtype=np.float32)
    operands = SimpleNamespace(stored=lambda layout: (FakeArray(a), FakeArray(b)))
    chunk = OPERATIONS["linear"].plan(FMA).chunk_length(k)
    return operands, FakeArray(reference.matmul(a, b)), chunk


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (1, 200, 33), (70, 3, 40), (50, 60, 129)])
def test_oracle_agrees_and_sees_one_bit(m: int, n: int, k: int) -> None:
    operands, right, chunk = product(m, n, k)
    oracle = measure.Oracle(operands, chunk, seed=5)
    checked = oracle.check("linear", right)
    assert checked == len(oracle.rows) * len(oracle.columns)
    assert min(m * n, measure.CHECKED) * 3 // 4 <= checked <= measure.CHECKED
    assert {0, m - 1} <= set(oracle.rows) and {0, n - 1} <= set(oracle.columns)
    for at in ((0, 0), (m - 1, n - 1)):
        wrong = right.values.copy()
        wrong.view(np.uint32)[at] ^= 1
        with pytest.raises(measure.WrongBitsError, match=rf"seed 5.*first \[{at[0]}, {at[1]}\]"):
            oracle.check("linear", FakeArray(wrong))


def test_compare_takes_other_orders_and_nothing_else() -> None:
    torch = SimpleNamespace(sub=lambda a, b: FakeArray(a.values - b.values))
    k = 1000
    operands, right, _ = product(40, 50, k)
    a, b = (x.values for x in operands.stored("NN"))
    measure.compare(torch, "other order", FakeArray(a @ b), right, k)
    for wrong in (np.nan, 1.0 + right.values[3, 4]):
        values = right.values.copy()
        values[3, 4] = wrong
        with pytest.raises(measure.WrongBitsError, match="off by"):
            measure.compare(torch, "wrong", FakeArray(values), right, k)


@pytest.mark.parametrize("tier", ["simt", "tc"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_oracle_of_16_bits(dtype: str, tier: str) -> None:
    torch = pytest.importorskip("torch", reason="16-bit tensors are torch's")
    kind = measure.torch_dtype(torch, dtype)
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(s, generator=generator).to(kind) for s in ((9, 100), (100, 40)))
    operands = SimpleNamespace(stored=lambda layout: (a, b))
    oracle = measure.Oracle(operands, 48, 5, dtype, tier)
    out = torch.zeros((9, 40), dtype=kind)
    assert oracle.bits.dtype == np.uint16
    expected = a.float() @ b.float()
    for i, line in zip(oracle.rows, oracle.bits, strict=True):
        for j, bits in zip(oracle.columns, line, strict=True):
            out[i, j] = torch.tensor(np.array(bits.view(np.int16))).view(kind)
            exact = float(expected[i, j])  # to f32's accuracy; then one rounding, half a step
            assert abs(float(out[i, j]) - exact) <= torch.finfo(kind).eps / 2 * abs(exact) + 1e-4
    assert oracle.check("linear", out) == oracle.bits.size
    out.view(torch.int16)[0, 0] ^= 1
    with pytest.raises(measure.WrongBitsError, match=r"first \[0, 0\]: 0x[0-9a-f]{4}, expected"):
        oracle.check("linear", out)
    assert measure.Oracle(operands, 48, 5, dtype, "tc", "sm_75").check("linear", out) == 0


def test_the_target_is_the_architecture_that_the_library_routes_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = FakeGpu(compute=(12, 2), max_shared=99 << 10)  # newer than any that has a table
    monkeypatch.setattr("ptxgen.runtime.get_device", lambda name: gpu)
    assert measure.target() == ("sm_121", gpu.sms, gpu.gpu)
    assert gpu.arch == "sm_122"  # what kernels are compiled for


def test_compare_of_16_bits_allows_their_rounding() -> None:
    torch = pytest.importorskip("torch", reason="16-bit tensors are torch's")
    for kind in (torch.bfloat16, torch.float16):
        right = torch.randn((50, 60), generator=torch.Generator().manual_seed(1)) * 30
        near = (right * (1 + torch.finfo(kind).eps)).to(kind)
        measure.compare(torch, "near", near, right.to(kind), 900)
        with pytest.raises(measure.WrongBitsError, match="off by"):
            measure.compare(torch, "far", near + 30, right.to(kind), 900)


class FakeTorch:
    """Events that count calls, and a memory whose writes are seen."""

    float32 = "float32"

    def __init__(self) -> None:
        log = self.log = []

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                self.at = len(log)

            def elapsed_time(self, end: Any) -> float:
                return float(end.at - self.at)

        self.cuda = SimpleNamespace(
            Event=Event,
            synchronize=lambda: None,
            get_device_properties=lambda index: SimpleNamespace(L2_cache_size=60 << 20),
        )

    def empty(self, count: int, **_: Any) -> Any:
        assert 4 * count >= 4 * (60 << 20), "the flush does not cover the L2"
        return SimpleNamespace(fill_=lambda value: self.log.append("flush"))


def test_timer_flushes_before_each_launch_and_takes_turns() -> None:
    torch = FakeTorch()
    timer = measure.Timer(torch)
    work = [lambda name=name: torch.log.append(name) for name in "abc"]
    taken = timer(work, [4, 4, 2], warmup=1)
    log = torch.log
    assert log[:3] == ["a", "b", "c"]
    assert log[3::2] == ["flush"] * 10
    assert log[4::2] == list("abc" + "ab" + "abc" + "ab")
    assert taken == [Sample(1e3, 1e3, 1e3, n) for n in (4, 4, 2)]  # one call between the events


@pytest.mark.parametrize("counts", [(1, 1), (9, 3), (51, 12), (7, 5), (3, 3)])
def test_timer_keeps_the_counts(counts: tuple[int, ...]) -> None:
    torch = FakeTorch()
    work = [lambda name=name: torch.log.append(name) for name in "ab"]
    taken = measure.Timer(torch)(work, counts, warmup=0)
    assert tuple(s.count for s in taken) == counts


def test_repetitions_are_odd_and_bounded() -> None:
    for expected in (0.1, 10, 1e3, 1e5):
        count = measure.repetitions(expected, 40.0, 5, 41)
        assert count % 2 == 1 and 5 <= count <= 41
    assert measure.repetitions(0.1, 40.0, 5, 41) == 41
    assert measure.repetitions(1e6, 40.0, 5, 41) == 5


def test_alignments() -> None:
    for shape, expected in (
        (Shape(8, 64, 32), (16, 16)),
        (Shape(8, 6, 9), (8, 4)),
        (Shape(1, 5, 10), (16, 8)),  # nobody steps from a single row
    ):
        assert measure.natural_alignment(Case("", "linear", "kn", shape)) == expected
    for shape, expected in ((Shape(8, 64, 36), (16, 8)), (Shape(8, 6, 9), (4, 2))):
        case = Case("", "linear", "kn", shape, "bf16", "tc")
        assert measure.natural_alignment(case) == expected
    tensor = SimpleNamespace(
        shape=(3, 6), stride=lambda axis: 6, element_size=lambda: 4, data_ptr=lambda: 1 << 20
    )
    assert measure.alignment(tensor) == 8
    tensor.shape = (1, 6)
    assert measure.alignment(tensor) == 16


def fake_area(kind: type[runner.Area], *options: str, torch: Any = None) -> Any:
    """A run without a GPU."""
    fake = SimpleNamespace(OutOfMemoryError=MemoryError, cuda=SimpleNamespace(empty_cache=id))
    fake.cuda.empty_cache = lambda: None
    return kind(kind.parser().parse_args(options), torch or fake, "cpu")


def test_wrong_results_are_not_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timed = []

    def check(self: Any, case: Case) -> Case:
        if case.layout == "NT":
            raise measure.WrongBitsError("one is wrong")
        if case.layout == "TN":
            raise MemoryError("full")
        return case

    monkeypatch.setattr(gemm.Gemm, "check", check)
    monkeypatch.setattr(gemm.Gemm, "time_calls", lambda self, found: timed.append(found))
    monkeypatch.setattr(gemm.Gemm, "found", lambda self, case, times: [case])
    area = fake_area(gemm.Gemm, "--shapes", "odd")
    selected = area.cases()
    right = [c for c in selected if c.layout == "NN"]
    assert list(area.timed(selected)) == timed == right
    assert area.wrong == [
        f"{c}: {'one is wrong' if c.layout == 'NT' else 'full'}" for c in selected if c not in right
    ]
    assert "not timed: linear nk" in capsys.readouterr().err


def test_calls_take_turns_by_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    class Timer:
        def __init__(self, torch: Any) -> None:
            pass

        def flushes(self, work: Any) -> int:
            return 3

        def __call__(self, work: Any, counts: Any, flushes: int) -> list[Sample]:
            asked.append((work, counts, flushes))
            return [Sample(float(i), 0, 0, n) for i, n in enumerate(counts)]

    monkeypatch.setattr(measure, "Timer", Timer)
    area = fake_area(gemm.Gemm)
    work = {"ours": min, "torch": max, "triton": sum}
    times = area.time_calls(runner.Timed(work, 2000.0, seldom={"triton"}))
    few, many = times["triton"].count, times["ours"].count
    assert list(times) == list(work) and [s.median for s in times.values()] == [0, 1, 2]
    assert many == times["torch"].count == measure.repetitions(2000.0, *area.effort)
    assert few == many // 4 and asked == [([min, max, sum], [many, many, few], 1)]
    area.time_calls(runner.Timed(work, 2000.0, slow_host=True))
    slower = measure.repetitions(2000.0 + 3 * measure.FLUSH_US, *area.effort)
    assert asked[1] == ([min, max, sum], [slower] * 3, 3) and slower < many
    assert fake_area(gemm.Gemm, "--quick").effort == runner.QUICK != area.effort


def test_the_last_that_was_made_is_kept() -> None:
    area, made = fake_area(gemm.Gemm), []
    assert [area.cached(key, lambda key=key: made.append(key) or key) for key in "aabba"] == [
        *"aabba"
    ]
    assert made == ["a", "b", "a"]


class Doubles(runner.Area):
    """Fake area that doubles numbers; case 3 has wrong bits."""

    name, about, row, drawn = "doubles", "Doubles.", host.Cost, "numbers"

    def cases(self) -> list[int]:
        return [*range(self.options.random or 4)]

    def rows(self, case: int) -> Any:
        if case == 3:
            raise measure.WrongBitsError("not 6")
        if case == 5:
            raise KeyboardInterrupt
        yield host.Cost("f32", f"double of {case}", 2.0 * case, "peer", 1.0, None)

    def show(self, rows: Any, runs: Any) -> None:
        print(f"{len(rows)} rows of seed {runs[0].seed}")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fakes the parts of a GPU that a run of a bench asks for."""
    fake = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None), OutOfMemoryError=OSError)
    monkeypatch.setattr(measure, "require_torch", lambda: fake)
    monkeypatch.setattr(measure, "warm_up", lambda torch: None)
    monkeypatch.setattr(measure, "limits", lambda torch, tier: H200)
    monkeypatch.setattr(
        measure, "environment", lambda _, __, seed: dataclasses.replace(ENVIRONMENT, seed=seed)
    )


@pytest.mark.usefixtures("gpu")
def test_a_run_keeps_its_rows_and_says_what_was_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    assert Doubles.main(["--save", str(path), "--seed", "5"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("NVIDIA H200") and out[2:] == ["3 rows of seed 5", "WRONG 3: not 6"]
    assert [r["us"] for r in json.loads(path.read_text())] == [0.0, 2.0, 4.0]
    assert Doubles.main(["--rows", str(path), str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[4:] == ["6 rows of seed 5"] and out[0] == out[2]
    assert Doubles.main(["--random", "2", "--json"]) == 0
    assert [r["us"] for r in json.loads(capsys.readouterr().out)] == [0.0, 2.0]


@pytest.mark.usefixtures("gpu")
def test_rows_of_an_interrupted_run_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    with pytest.raises(KeyboardInterrupt):
        Doubles.main(["--random", "9", "--save", str(path)])
    assert len(json.loads(path.read_text())) == 4
    assert "4 rows of seed 0" in capsys.readouterr().out


def test_areas_take_the_same_options() -> None:
    """Every bench that times kernels takes the same options; the others need no GPU."""
    for name, (module, _) in work._BENCHES.items():
        known = importlib.import_module(module)._parser()._option_string_actions
        if name not in ("predict", "report", "routes"):
            assert {"--quick", "--save", "--rows", "--json"} <= known.keys(), name
        assert ("--random" in known) <= ("--seed" in known), name


def test_peers_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "triton", "sgemm_bi"):
        monkeypatch.setitem(sys.modules, name, None)
    found, missing = peers.discover(["torch", "triton", "sgemm_bi"])
    assert found == []
    assert missing == [f"{name}: not installed" for name in ("torch", "triton", "sgemm_bi")]
    with pytest.raises(OptionError, match="mkl"):
        peers.discover(["mkl"])


def test_a_peer_writes_the_product() -> None:
    torch = pytest.importorskip("torch")
    (peer,), missing = peers.discover(["torch"])
    a, b, out = torch.ones((3, 4)), torch.ones((4, 5)), torch.zeros((3, 5))
    operands: Any = SimpleNamespace(views=lambda layout: (a, b))
    work = peer.work(Case("", "linear", "kn", Shape(3, 4, 5)), operands, out)
    assert work and work() is out and bool((out == 4).all())
    assert (peer.name, peer.version, missing) == ("torch", torch.__version__, [])


@pytest.mark.parametrize("main", [gemm.main, kernels.main])
def test_without_torch_the_commands_say_what_they_need(
    main: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    arguments = [] if main is gemm.main else ["linear", "kn", "4x4x4"]
    with pytest.raises(PtxgenError, match="PyTorch"):
        main(arguments)


# -- host -------------------------------------------------------------------------
def test_host_costs_and_what_is_allowed() -> None:
    peer = host.Cost("f32", "ptxgen.torch.linear", 9.0, "F.linear", 8.5, 1.0)
    assert peer.ok and not dataclasses.replace(peer, us=9.6).ok
    assert dataclasses.replace(peer, allowed=None).ok is None
    text = results.columns([peer, dataclasses.replace(peer, us=9.6)], host.Host.columns)
    assert "9.50" in text and [line.split()[-1] for line in text.splitlines()[1:]] == [
        "ok",
        "short",
    ]


def test_host_times_every_pair_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for pair in host.PAIRS for name in pair[:2] if "ptxgen.torch" not in name]
    called: list[str] = []
    work = {name: lambda name=name: called.append(name) for name in names}
    monkeypatch.setattr(host, "_calls", lambda torch, dtype: work)
    torch = SimpleNamespace(cuda=SimpleNamespace(synchronize=lambda: called.append("wait")))
    found = host.costs(torch, "bf16", calls=30, batch=10)
    assert [c.call for c in found] == [p[0] for p in host.PAIRS if "ptxgen.torch" not in p[0]]
    assert all(c.us > 0 and c.peer_us > 0 for c in found)
    turns = "".join("|" if name == "wait" else "." for name in called)
    assert turns.startswith("." * 10 * len(work) + "|")
    assert turns.count("|") == 3 * len(work) + 1  # before each batch, and at the end


def test_host_steps_go_back_and_may_take_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="steps are PyTorch's")
    shapes: list[tuple[int, ...]] = []
    back = torch.Tensor.backward
    monkeypatch.setattr(
        torch.Tensor, "backward", lambda y, dy: (shapes.append(tuple(y.shape)), back(y, dy))
    )
    for step in host.steps(torch, "f32", "cpu").values():
        step()
    attention, rows = (2, 8, 16, 64), (16, 64)
    assert shapes == [attention] * 2 + [rows] * 3 + [(), (1, 16, 8, 8), rows]
    times = iter(({"linear": 100.0, "sdpa": 200.0}, {"linear": 125.0, "sdpa": 251.0}))
    monkeypatch.setattr(host, "_time_in_and_outside", lambda *given: (next(times), next(times)))
    monkeypatch.setattr(host, "steps", lambda *given: {})
    assert [c.ok for c in host.backward_costs(torch, "bf16")] == [True, False]


# -- kernels ----------------------------------------------------------------------
def test_grid_files(tmp_path: Path) -> None:
    path = tmp_path / "grid"
    path.write_text("# all\nlinear kn 1x3x2\n\n linear_wgrad nk 4 5 6  # the old spelling\n")
    assert kernels.read_grid(path) == [
        Case(cases.CUSTOM, "linear", "kn", Shape(1, 3, 2)),
        Case(cases.CUSTOM, "linear_wgrad", "nk", Shape(4, 6, 5)),
    ]
    for line in ("linear kn 1x2", "linear nn 1x3x2", "conv kn 1x3x2", "linear kn 1x3x0"):
        path.write_text(f"linear kn 1x3x2\n{line}\n")
        with pytest.raises(OptionError, match=rf"grid:2: '{line}'"):
            kernels.read_grid(path)
    with pytest.raises(OptionError, match="absent"):
        kernels.read_grid(tmp_path / "absent")


def test_problems_have_the_dtype_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "grid").write_text("matmul tn 4096x4096x4096\n")
    for given in ("--grid", str(tmp_path / "grid")), ("--shapes", "large"):
        found = fake_area(kernels.Kernels, *given, "--dtype", "bf16").cases()
        kinds = {(c.group, c.dtype, c.tier) for c in found}
        assert kinds == {(cases.CUSTOM, "bf16", "tc")}
        assert ("matmul", "tn", Shape(4096, 4096, 4096)) in {
            (c.op, c.stored, c.shape) for c in found
        }


def test_kernel_table_marks_the_choice_and_what_is_wrong() -> None:
    shared = {"op": "linear", "layout": "kn", "dtype": "bf16", "tier": "tc"}
    shared |= {"m": 1, "n": 2, "k": 3, "peer_us": 9.0}
    shared |= {"q1_us": 1.0, "q3_us": 1.0, "count": 7, "floor_us": 0.5}
    times = [
        kernels.KernelTime(
            **shared,
            route=i,
            kernel=f"k{i}",
            us=us,
            slowdown=us,
            chosen=i == 1,
            ratio=9 / us,
            wrong=w,
        )
        for i, us, w in ((0, 1.0, ""), (1, 2.0, ""), (2, math.nan, "3 outputs have other bits"))
    ]
    _, best, chosen, wrong = results.columns(times, kernels.Kernels.columns).splitlines()
    assert times[0].problem == "linear kn 1x3x2"
    assert not best.startswith("->") and chosen.startswith("->")
    assert wrong.endswith("3 outputs have other bits")


# -- plots and maps ------------------------------------------------------------------
def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


@pytest.mark.parametrize(("op", "layout"), [("linear", "kn"), ("linear_wgrad", "kn")])
def test_route_map_is_the_dispatchers(op: str, layout: str) -> None:
    found = routes.route_map(op, layout, 4096, cells=24)
    table = ROUTES[OPERATIONS[op].products[layout].layout, "chunks", "f32", "simt"]
    assert len(set(found.labels)) == len(found.labels) == len(found.routes)
    for i, n in enumerate(found.centres):
        for j, m in enumerate(found.centres):
            m_size, n_size = max(1, round(m)), max(1, round(n))
            posed = problem_of(op, (m_size, n_size, 4096), "f32", 16, {"layout": layout})
            chosen = choose(posed.table, dict(posed.values), arch="sm_90", sms=132)
            name = " + ".join(kernel.name for kernel in table[chosen.route].kernels)
            assert found.routes[found.owner[i][j]] == name, (m_size, n_size)
    text = routes.text_map(found)
    assert all(name in text for name in found.routes)


def test_route_map_plot_with_more_routes_than_colours(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    found = routes.route_map("linear", "kn", 4096, cells=16)
    count = 2 * len(plots.COLOURS)
    owner = [[(i + j) % count for j in range(16)] for i in range(16)]
    names = tuple(f"kernel_{i}" for i in range(count))
    crowded = dataclasses.replace(found, owner=owner, routes=names, labels=names, reasons=names)
    plots.route_map(crowded, tmp_path / "map.png")
    assert png_size(tmp_path / "map.png")[0] == round(plots.DPI * plots.WIDTH)


@pytest.mark.long
def test_routes_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    path = tmp_path / "images" / "map.svg"
    assert routes.main(["--k", "512", "--op", "linear", "--layout", "nk", "--plot", str(path)]) == 0
    assert "<svg" in path.read_text()
    assert str(path) in capsys.readouterr().out
    with pytest.raises(OptionError, match="nn"):
        routes.main(["--layout", "nn"])


def test_batches_are_four_sizes() -> None:
    for shape in ("3x4x5", "3x4x5x0", "3x4x5xn"):
        with pytest.raises(OptionError, match="takes BATCHxMxKxN, numbers from 1"):
            bmm.main(["--shapes", shape])


# -- with a GPU ---------------------------------------------------------------------
@pytest.mark.gpu
@pytest.mark.parametrize(
    ("dtype", "tier"), sorted((d, t) for t, dtypes in TIERS.items() for d in dtypes)
)
def test_commands_run(
    dtype: str, tier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "rows.json"
    kind = ["--dtype", dtype, "--tier", tier]
    arguments = [*kind, "--shapes", "33x65x17,128x256x64", "--peers", "torch", "--quick"]
    assert gemm.main([*arguments, "--save", str(path)]) == 0
    rows, surroundings = results.read_json(path)
    assert len(rows) == 8 and surroundings.gpu
    assert {(r.dtype, r.tier) for r in rows} == {(dtype, tier)}
    assert all(r.ours_us > 0 and r.peer_us > 0 and r.checked > 0 for r in rows)
    assert "host cost of a call" in capsys.readouterr().out
    assert kernels.main(["linear", "nk", "5x64x32", *kind, "--save", str(path)]) == 0
    found = json.loads(path.read_text())
    assert sum(t["chosen"] for t in found) == 1 and not any(t["wrong"] for t in found)


@pytest.mark.gpu
def test_host_command_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "host.json"
    assert host.main(["--dtype", "f32", "--calls", "200", "--save", str(path)]) == 0
    assert all(cost["us"] > 0 for cost in json.loads(path.read_text()))


@pytest.mark.gpu
def test_bmm_command_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "bmm.json"
    assert bmm.main(["--shapes", "3x33x65x17,2x1x64x64", "--save", str(path)]) == 0
    found = json.loads(path.read_text())
    assert len(found) == 8 and all(row["us"] > 0 and row["torch_us"] > 0 for row in found)


@pytest.mark.gpu
def test_limits_can_be_measured() -> None:
    torch = pytest.importorskip("torch", reason="timing needs torch")
    found = measure.measure_limits(torch)
    assert found.bandwidth > 0 and found.flops > 0


@pytest.mark.gpu
def test_model_command_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "model.json"
    sizes = ["--layers", "1", "--batch", "4", "--length", "20", "--new", "3"]
    assert model.main([*sizes, "--save", str(path)]) == 0
    stock, ours = json.loads(path.read_text())[:2]
    assert (stock["name"], ours["name"]) == ("stock", "ptxgen")
    assert ours["positions"] == ours["logits"] == ours["tokens"] == 0 < ours["token_ms"]
