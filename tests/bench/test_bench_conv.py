"""``ptxgen bench conv``: what needs no GPU, and that the command runs on one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_bench import ENVIRONMENT, fake_area

import ptxgen
from ptxgen.bench import conv, conv_cases, measure, results
from ptxgen.bench.conv_cases import CAUSAL, DEPTHWISE, FORWARD, GROUPED, KINDS, NAMED, WGRAD, Case
from ptxgen.errors import OptionError, PtxgenError

RESULTS = sorted((Path(__file__).parents[2] / "bench" / "results").glob("conv-*.json"))


def test_a_seed_draws_the_same_everywhere() -> None:
    assert [str(case) for case in conv_cases.drawn(2, 0, KINDS)] == [
        "forward 34x107x16x40r3s1",
        "dgrad 34x107x16x40r3s1",
        "wgrad 34x107x16x40r3s1",
        "depthwise 34x107x16x16r3s1",
        "causal 34x985x16x16r2s1",
        "forward 11x184x16x168r7s2",
        "dgrad 11x184x16x168r7s2",
        "wgrad 11x184x16x168r7s2",
        "depthwise 11x184x16x16r7s2",
        "causal 11x1481x16x16r3s1",
    ]
    few, many = (conv_cases.drawn(count, 5, [WGRAD]) for count in (10, 30))
    assert many[:10] == few != conv_cases.drawn(10, 6, [WGRAD])
    for count, seed in ((0, 1), (3, -1)):
        with pytest.raises(OptionError):
            conv_cases.drawn(count, seed, KINDS)


@pytest.mark.parametrize("kind", [FORWARD, DEPTHWISE, CAUSAL])
def test_the_draw_is_what_is_documented(kind: str) -> None:
    found = conv_cases.drawn(1000, 3, [kind])
    for case in found:
        assert case.flops <= conv_cases.MOST_FLOPS and case.nbytes(4) <= conv_cases.MOST_BYTES
        assert kind not in GROUPED or case.channels == case.outputs == case.groups
    whole = sum(case.channels % 8 == 0 for case in found)
    assert 0.85 * len(found) < whole < len(found)
    taps = {FORWARD: {1, 3, 5, 7}, DEPTHWISE: {3, 5, 7}, CAUSAL: {2, 3, 4}}[kind]
    assert {case.taps for case in found} == taps
    assert {case.stride for case in found} == ({1} if kind == CAUSAL else {1, 2})


def test_shapes_are_read_as_they_are_written() -> None:
    cases = conv_cases.select(NAMED, KINDS)
    assert {case.shape for case in cases} == set(NAMED)
    assert all(case.channels == case.outputs for case in cases if case.kind in GROUPED)
    case = Case(FORWARD, 2, 9, 16, 24, 3, 2)
    assert conv_cases.select([case.shape], [FORWARD]) == [case]
    assert (case.along, case.windows, case.flops) == (5, 50, 2 * 50 * 24 * 16 * 9)
    assert case.nbytes(2) == 2 * (2 * 81 * 16 + 24 * 16 * 9 + 50 * 24)
    with pytest.raises(OptionError, match="takes BATCHxIMAGE"):
        conv_cases.select(["32x56"], KINDS)
    with pytest.raises(OptionError, match="none is of kind causal"):
        conv_cases.select(["1x8x8x16r3s1"], [CAUSAL])


@pytest.fixture
def cpu() -> Iterator[None]:
    with ptxgen.use_device("cpu"):
        yield


def small(kind: str) -> Case:
    return Case(kind, 1, 5, 8, 8, 3, 1 if kind == CAUSAL else 2)


class Timer:
    """Runs every call once, and says that it took 2 µs."""

    def __init__(self, torch: Any) -> None:
        pass

    def flushes(self, work: Any) -> int:
        return 1

    def __call__(self, work: Any, counts: Any, flushes: int) -> list[results.Sample]:
        for call in work:
            call()
        return [results.Sample(2.0, 1.0, 3.0, 5)] * len(work)


@pytest.mark.usefixtures("cpu")
def test_problems_are_checked_before_they_are_timed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(measure, "Timer", Timer)
    bench = fake_area(conv.Conv, "--random", "1", torch=torch)
    cases = [small(kind) for kind in KINDS]
    rows = list(bench.timed(cases))
    assert not bench.wrong and [r.kind for r in rows] == list(KINDS)
    assert all(r.steps >= 1 and r.kernel and r.ratio == 1.0 for r in rows)
    path = tmp_path / "rows.json"
    results.write_records(path, results.records(rows, ENVIRONMENT))
    assert results.read_rows(conv.Row, path, "conv") == (rows, ENVIRONMENT)
    for each in (path, *RESULTS):
        assert conv.main(["--rows", str(each)]) == 0
        assert "cuDNN's time / ours" in capsys.readouterr().out
    path.write_text(json.dumps([{"kind": "forward"}]))
    with pytest.raises(PtxgenError, match="holds no rows of `ptxgen bench conv`"):
        results.read_rows(conv.Row, path, "conv")

    def wrong(*rows: Any, **how: Any) -> Any:
        return ptxgen.linear(*rows, **how) + 1

    monkeypatch.setattr(conv, "ptxgen", SimpleNamespace(conv=ptxgen.conv, linear=wrong))
    assert not list(bench.timed([small(FORWARD)]))
    assert "other bits than linear" in bench.wrong[0]


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="no --shapes"):
        conv.main(["--random", "2", "--shapes", NAMED[0]])
    with pytest.raises(SystemExit, match="2"):
        conv.main(["--kinds", "sideways"])


@pytest.mark.gpu
def test_the_command_runs(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    asked = ["--shapes", "2x16x32x32r3s1", "--quick", "--save", str(path)]
    assert conv.main(asked) == 0
    rows, surroundings = results.read_rows(conv.Row, path, "conv")
    assert [r.kind for r in rows] == list(KINDS) and surroundings.gpu
