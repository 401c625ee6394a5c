"""``ptxgen bench flce``: what needs no GPU, and that the command runs on one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_bench import fake_area

import ptxgen
from ptxgen.bench import flce, measure, results
from ptxgen.errors import OptionError, PtxgenError

RESULTS = sorted((Path(__file__).parents[2] / "bench" / "results").glob("flce-*.json"))


def test_committed_rows_are_read_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert RESULTS
    for path in RESULTS:
        lines, surroundings = flce.Flce.read(path)
        assert surroundings.gpu and {line.method for line in lines} >= {"ptxgen", "eager"}
        assert flce.main(["--rows", str(path)]) == 0
        shown = capsys.readouterr().out
        ours = next(line for line in lines if line.method == "ptxgen")
        assert f"{ours.ms:.3f}" in shown and "1.00" in shown


def test_a_method_that_fails_says_so() -> None:
    fine = flce.Line(8, 4, 16, "bf16", "ptxgen", 2.0, 3_000_000)
    slow = flce.Line(8, 4, 16, "bf16", "eager", 5.0, 0)
    none = flce.Line(8, 4, 16, "bf16", "torch.compile", 0.0, 0, "OutOfMemoryError: too much")
    shown = flce.line_table([fine, slow, none])
    assert "2.50" in shown and "OutOfMemoryError" in shown and "8 x 4 x 16" in shown


def test_what_bad_input_gets(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{"rows": 1}]))
    with pytest.raises(PtxgenError, match="holds no rows of `ptxgen bench flce`"):
        flce.Flce.read(path)
    for text in ("8x4", "8x4x-1", "8xax4"):
        with pytest.raises(OptionError, match="takes MxKxN"):
            flce._shapes(text)


def test_problems_are_drawn_by_the_seed() -> None:
    found = flce.drawn(40, 5)
    assert found[:7] == flce.drawn(7, 5) != flce.drawn(7, 6)
    for m, k, n in found:
        assert 512 <= m <= 16384 and k % 64 == 0 and 1024 <= k <= 8192 and 16384 <= n <= 262144
        assert m * n <= flce.MOST[0] and m * k * n <= flce.MOST[1]
    assert sum(m & (m - 1) == 0 for m, _, _ in found) in range(10, 35)
    with pytest.raises(OptionError, match="--random has methods of its own"):
        flce.main(["--random", "3", "--forward"])
    with pytest.raises(OptionError, match="expected 1 or more"):
        flce.main(["--random", "-1"])


def test_ratios_are_of_what_did_not_fail() -> None:
    of = {"ptxgen": (2.0, 10), flce.QUARTER: (3.0, 5), flce.COMPILED: (4.0, 40)}
    lines = [flce.Line(8, 4, n, "bf16", name, *of[name]) for n in (16, 32) for name in of]
    lines[-1] = flce.Line(8, 4, 32, "bf16", flce.COMPILED, 0.0, 0, "OutOfMemoryError")
    shown = flce.ratio_table(lines).splitlines()
    assert shown[1].split()[-4:] == ["0.500", "0.25", "0.750", "0.12"] and "0." not in shown[2]
    assert shown[3].split() == ["geometric", "mean", "0.500", "0.750"]


@pytest.mark.parametrize(
    ("dtype", "options", "ours"),
    [
        ("f32", ["--chunks", "4"], ["ptxgen", "ptxgen, chunks of 4", "three products"]),
        ("bf16", [], ["ptxgen", "ptxgen, dW in f32", "three products"]),
        ("bf16", ["--forward"], ["ptxgen", "product alone"]),
        ("bf16", ["--random", "1"], ["ptxgen", flce.QUARTER]),
    ],
)
def test_methods_are_those_that_are_asked_for(
    dtype: str, options: list[str], ours: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    for name in ("liger_kernel", "cut_cross_entropy"):
        monkeypatch.setitem(sys.modules, name, None)
    made = measure.normal(torch, dtype, 0, "cpu")
    head = flce.Head(torch, made(8, 16), made(40, 16), torch.arange(8), 30.0)
    area = fake_area(flce.Flce, "--dtype", dtype, *options)
    found = dict(flce.methods(head, area.options))
    assert list(found) == [*ours, "eager", flce.COMPILED]
    with ptxgen.use_device("cpu"):
        losses = [found[name]() for name in (ours[0], "eager")]
    a, b = (float(x[0] if isinstance(x, tuple) else x) for x in losses)
    assert a == pytest.approx(b, rel=2**-6)


def test_time_and_memory_of_a_method() -> None:
    """Memory is what is above that which was there and is kept."""
    done: list[str] = []
    cuda = SimpleNamespace(
        synchronize=lambda: None,
        reset_peak_memory_stats=lambda: done.append("reset"),
        memory_allocated=lambda: 100,
        max_memory_allocated=lambda: 1000,
    )
    area = fake_area(flce.Flce, "--quick", torch=SimpleNamespace(cuda=cuda))
    area.timer = lambda work, counts, warmup: [results.Sample(2500.0, 0, 0, *counts)]
    assert area.measured(lambda: done.append("run"), 300) == (2.5, 600)
    assert area.measured(lambda: None, 5000) == (2.5, 0)
    assert done == ["run", "reset", "run", "reset"]


@pytest.mark.gpu
def test_the_command_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "rows.json"
    only = ["--shapes", "64x32x500", "--quick", "--only", "ptxgen,eager"]
    assert flce.main([*only, "--save", str(path)]) == 0
    lines, surroundings = flce.Flce.read(path)
    assert isinstance(surroundings, results.Environment)
    assert all(line.ms > 0 and not line.failed for line in lines)
