"""``ptxgen bench attention``: what needs no GPU, and that the command runs on one."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_bench import ENVIRONMENT, fake_area

import ptxgen
from ptxgen.bench import attention, attention_cases, attention_step, measure, model, results
from ptxgen.bench.attention import FASTER, Row
from ptxgen.bench.attention_cases import DECODE, FORWARD, KINDS, NAMED, PAGED, TRAINING, Case
from ptxgen.errors import DeviceError, OptionError, PtxgenError

RESULTS = sorted((Path(__file__).parents[2] / "bench" / "results").glob("attention-*.json"))


# -- problems ---------------------------------------------------------------------
def test_a_seed_draws_the_same_everywhere() -> None:
    assert [str(case) for case in attention_cases.drawn(2, 0, KINDS)] == [
        "forward 34x16/2x115x115x128",
        "training 34x16/2x115x115x128",
        "decode 34x16/2x1x115x128",
        "paged 34x16/2x1x115x128p64",
        "forward 21x36/3x586x586x64",
        "training 21x36/3x586x586x64",
        "decode 4x20/5x1x16262x128",
        "paged 4x20/5x1x16262x128p32",
    ]
    few, many = (attention_cases.drawn(count, 5, [TRAINING]) for count in (30, 90))
    assert many[:30] == few != attention_cases.drawn(30, 6, [TRAINING])
    for count, seed in ((0, 1), (3, -1)):
        with pytest.raises(OptionError):
            attention_cases.drawn(count, seed, KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_draw_is_what_is_documented(kind: str) -> None:
    found = attention_cases.drawn(3000, 3, [kind])
    for case in found:
        assert (
            case.flops <= attention_cases.MOST_FLOPS
            and case.allocated <= attention_cases.MOST_BYTES
        )
        assert not case.heads % case.kv_heads
        assert case.queries == (1 if kind in (DECODE, PAGED) else case.keys)
        assert bool(case.page) == (kind == PAGED) and not (case.causal and case.queries == 1)
    assert {case.sequences for case in found} == set(range(1, 65))
    assert {case.heads for case in found} <= set(range(1, 65)) >= {1, 64}
    assert {case.heads // case.kv_heads for case in found} == set(range(1, 17))
    assert {case.depth for case in found} == set(attention_cases.DEPTHS)
    keys = sorted(case.keys for case in found)
    assert keys[0] == 16 and keys[-1] > 25000 and 100 < keys[len(keys) // 2] < 1000
    assert {case.causal for case in found} == ({True, False} if kind in KINDS[:2] else {False})
    if kind == PAGED:
        assert {case.page for case in found} == set(attention_cases.PAGES)


def test_shapes_are_read_as_they_are_written() -> None:
    cases = attention_cases.select(NAMED, KINDS)
    assert {case.shape for case in cases} == set(NAMED)
    assert [case.kind for case in cases[:4]] == list(KINDS), "kinds take turns"
    (one,) = attention_cases.select(["2x8/2x1x100x64p16"], KINDS)
    assert one == Case(PAGED, 2, 8, 2, 1, 100, 64, page=16)
    for shape, why in (
        ("4096", "takes SEQUENCESxHEADS"),
        ("1x3/2x4x4x64", "a multiple of KV_HEADS"),
        ("1x4/2x4x8x64c", "as many queries as keys"),
        ("1x4/2x4x8x64p16", "pages take one query"),
    ):
        with pytest.raises(OptionError, match=why):
            attention_cases.select([shape], KINDS)
    with pytest.raises(OptionError, match="none is of kind decode"):
        attention_cases.select(["1x4/2x4x4x64"], [DECODE])


def test_work_and_bytes_are_counted() -> None:
    full = Case(FORWARD, 2, 8, 2, 100, 100, 64)
    assert full.flops == 4 * 2 * 8 * 100 * 100 * 64 and full.nbytes == full.allocated
    assert full.nbytes == 2 * 2 * 64 * 100 * (8 + 2 + 2 + 8)
    training = dataclasses.replace(full, kind=TRAINING, causal=True)
    assert 4 * training.flops == 7 * full.flops and training.nbytes == 2 * full.nbytes
    paged = Case(PAGED, 2, 8, 2, 1, 100, 64, page=16)
    assert paged.allocated == 2 * paged.nbytes


# -- what is said -----------------------------------------------------------------
def row(shape: str, kind: str, ours: float, *peers: float | None, refused: str = "") -> Row:
    case = next(c for c in attention_cases.select([shape], KINDS) if c.kind == kind)
    sizes = dataclasses.asdict(case)
    times = dict(zip(("cudnn_us", "fa2_us", "flex_us"), peers, strict=True))
    quartiles = {"ours_us": ours, "ours_q1_us": ours, "ours_q3_us": ours, "ours_count": 5}
    given = {"shape": shape, "dtype": "bf16", "kernel": "attention_x", "refused": refused}
    return Row(group="named", **sizes, **times, **quartiles, **given)


ROWS = [
    row("1x4/2x64x64x64c", FORWARD, 10.0, 20.0, 10.0, 40.0),
    row("1x4/2x64x64x64", FORWARD, 10.0, 40.0, 80.0, None, refused="flex: NoError: a; b"),
    row("1x4/2x64x64x256", FORWARD, 10.0, None, 5.0, None, refused="cudnn: E: no; flex: F: no"),
    row("1x4/2x1x64x64", DECODE, 10.0, None, None, None, refused="cudnn: E: no; fa2: E: not so"),
]


def test_ratios_are_to_the_faster_of_both() -> None:
    assert [r.ratio(FASTER) for r in ROWS] == [1.0, 4.0, 0.5, None]
    assert [r.ratio("fa2") for r in ROWS] == [1.0, 8.0, 0.5, None]
    found = attention.summarise(ROWS)
    every = found[FORWARD, "all", FASTER]
    assert (every.cases, every.worst, every.worst_at) == (3, 0.5, "1x4/2x64x64x256")
    assert every.geomean == pytest.approx(2 ** (1 / 3)) and every.tail == pytest.approx(0.6)
    assert found[FORWARD, "d <= 128", FASTER].geomean == pytest.approx(2.0)
    assert found[FORWARD, "causal", FASTER].cases == 1
    assert found[FORWARD, "all", "cudnn"].cases == 2 and found[FORWARD, "all", "flex"].cases == 1
    assert not [key for key in found if key[0] == DECODE], "which has no peer"
    assert next(r.shape for r in attention.worst(ROWS)) == "1x4/2x64x64x256"


def test_who_was_left_out_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert attention.left_out(ROWS) == [
        "2 problems without cudnn: E: no (forward 1x4/2x64x64x256)",
        "1 problem without fa2: E: not so (decode 1x4/2x1x64x64)",
        "2 problems without flex: NoError: a (forward 1x4/2x64x64x64)",
        "1 problem with none of cudnn, fa2",
    ]
    drawn = [dataclasses.replace(r, group="random") for r in ROWS]
    fake_area(attention.Attention).show([*ROWS, *drawn], [ENVIRONMENT])
    shown = capsys.readouterr().out
    assert "4 named problems\n" in shown and "4 random problems, seed 7; the worst" in shown
    assert shown.count("1x4/2x1x64x64 ") == 1, "without a ratio, it is not among the worst"


def test_rows_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    results.write_records(path, results.records(ROWS, ENVIRONMENT))
    assert results.read_rows(attention.Row, path, "attention") == (ROWS, ENVIRONMENT)
    for each in (path, *RESULTS):
        assert attention.main(["--rows", str(each)]) == 0
        assert "peers' time / ours" in capsys.readouterr().out
    assert attention.main(["--rows", str(path), str(path)]) == 0
    assert "8 named problems\n" in capsys.readouterr().out
    path.write_text(json.dumps([{"kind": "forward"}]))
    with pytest.raises(PtxgenError, match="holds no rows of `ptxgen bench attention`"):
        results.read_rows(attention.Row, path, "attention")


def test_the_step_says_both_ratios() -> None:
    step = attention_step.Row("step", 50.0, 55.0, 4_000_000_000, 5_000_000_000)
    token = attention_step.Row("token", 2.0, 1.0, None, None)
    shown = results.columns([step, token], attention_step.Steps.columns).splitlines()
    assert shown[1].split()[1:] == ["50.000", "55.000", "1.100", "4.00", "5.00", "1.250"]
    assert shown[2].split()[1:] == ["2.000", "1.000", "0.500", "-", "-", "-"]


# -- the command ------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--random", "3", "--shapes", NAMED[0]], "no --shapes"),
        (["--random", "0"], "0 random problems: expected 1 or more"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: list[str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        attention.main(options)


def test_it_says_what_it_takes_and_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        attention.main(["--help"])
    assert "--budget SECONDS" in capsys.readouterr().out
    torch = pytest.importorskip("torch", reason="timing needs torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for options in ([], ["--random", "3"], ["--step"]):
        with pytest.raises(DeviceError, match="timing needs an NVIDIA GPU"):
            attention.main(options)


class Clock:
    """A timer that runs everything once, and says how long it took."""

    def __init__(self, torch: Any) -> None:
        self.flushes = len

    def __call__(self, work: Sequence[Any], counts: Sequence[int], **_: int) -> list[Any]:
        found = []
        for run in work:
            start = time.perf_counter()
            run()
            found.append(results.Sample.of([1e6 * (time.perf_counter() - start)]))
        return found


def test_all_kinds_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of case runs on the CPU device beside PyTorch; peers that raise are left out, and
    wrong bits are reported.
    """
    torch = pytest.importorskip("torch", reason="timing needs torch")
    monkeypatch.setattr(measure, "Timer", Clock)
    monkeypatch.setattr(measure, "build", lambda specs: 0.1 * len(specs))
    monkeypatch.setattr(attention, "BACKENDS", {"cudnn": "CUDNN_ATTENTION", "fa2": "MATH"})
    shapes = ["1x2/1x8x8x64c", "2x2/1x1x20x64", "2x2/1x1x20x64p16"]
    cases = attention_cases.select(shapes, KINDS)
    with ptxgen.use_device("cpu"):
        options = ["--dtype", "f16", "--peers", "cudnn,fa2", "--seed", "3"]
        bench = fake_area(attention.Attention, *options, torch=torch)
        bench.prepare(cases)
        rows = list(bench.timed(cases))
        assert [r.kind for r in rows] == list(KINDS) and not bench.wrong
        for found in rows:
            assert found.refused.startswith("cudnn: RuntimeError") and found.cudnn_us is None
            assert found.fa2_us and found.ours_us > 0 and "attention" in found.kernel
        bench.options.budget = -1.0
        assert list(bench.timed(cases)) == []
        bench.options.budget = 1e9
        monkeypatch.setattr(ptxgen, "attention", lambda q, k, v, **_: q * 2)
        assert list(bench.timed(cases[2:3])) == []
    assert len(bench.wrong) == 1 and "off by" in bench.wrong[0]


@pytest.mark.long
def test_a_step_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoding step runs on the CPU device, where a graph's replay is the call again."""
    torch = pytest.importorskip("torch", reason="timing needs torch")
    from torch.overrides import TorchFunctionMode

    class Here(TorchFunctionMode):
        def __torch_function__(self, call: Any, types: Any, args: Any = (), given: Any = None):
            given = dict(given or {})
            if given.get("device") == "cuda":
                given["device"] = "cpu"
            return call(*args, **given)

    class Graph:
        def __init__(self, call: Any) -> None:
            self.replay = torch.no_grad()(call)

    original = torch.Generator

    class Generator(original):
        def __new__(cls, device: str) -> Any:
            return original()

    monkeypatch.setattr(torch, "Generator", Generator)
    monkeypatch.setattr(attention_step, "_captured", lambda torch, call: Graph(call))
    for name in ("synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 5)
    small = {"layers": 1, "hidden": 64, "heads": 2, "kv_heads": 1, "inner": 32, "vocabulary": 40}
    shape = model.Shape(**small, batch=1, length=12, attention="sdpa")
    with ptxgen.use_device("cpu"), Here():
        found = list(attention_step.rows(torch, shape, (2, 9), 1))
    assert [r.what for r in found] == ["training step", "forward", "token of 2 x 9, CUDA graph"]
    assert [r.ours_bytes for r in found] == [5, 5, None]
    assert all(r.stock_ms > 0 and r.ours_ms > 0 for r in found)


@pytest.mark.gpu
def test_the_command_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "rows.json"
    some = ["--random", "2", "--quick"]
    assert attention.main([*some, "--save", str(path)]) == 0
    rows, surroundings = results.read_rows(attention.Row, path, "attention")
    assert len(rows) == 8 and surroundings.gpu
    assert all(r.time_of(FASTER) for r in rows)
