"""``ptxgen bench sort``, ``fft``, ``spectra`` and ``splats``: what is drawn, that both sides agree
and are timed, and what is summed up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_bench import ENVIRONMENT, fake_area
from test_bench_conv import Timer

import ptxgen
from ptxgen.bench import fft, measure, opcase, results, sort, spectra, splats
from ptxgen.errors import OptionError

AREAS = {area.name: area for area in (sort.Sort, fft.Fft, spectra.Spectra, splats.Splats)}
SMALL = {
    "sort": [
        sort.sort_case("sort", "bf16", 3000),
        sort.sort_case("argsort", "i64", 70),
        sort.sort_case("sort rows", "f32", 5, 33),
        sort.search_case(100, 40),
        sort.count_case("bincount", 200, 16),
        sort.count_case("unique", 200, 16),
        sort.topk_case(3, 300, 20),
    ],
    "fft": [
        fft.fft_case("fft, any length", "fft", (5, 12), 1, "f32"),
        fft.fft_case("fft, columns", "fft", (2, 9, 8), 1, "f32"),
        fft.fft_case("rfft, any length", "rfft", (3, 15), 1, "f32"),
        fft.fft_case("irfft, any length", "irfft", (3, 15), 1, "f32"),
        fft.fft_case("fft f64, any length", "fft", (2, 10), 1, "f64"),
    ],
    "spectra": [
        spectra.frames_case(2, 900, 256, 128, 20),
        spectra.log_mel_case(9, 256, 20),
        spectra.log_mel_case(9, 256, 20, backward=True),
        spectra.welch_case(2, 3, 17),
        spectra.welch_case(2, 3, 17, 4),
    ],
    "splats": [
        splats.scene_case(60, 0, 24, 16),
        splats.scene_case(40, 16, 17, 24),
        splats.scene_case(40, 4, 24, 16, backward=True),
    ],
}
"""Cases of each area that the interpreter runs quickly."""


@pytest.mark.parametrize("name", AREAS)
def test_cases_are_drawn_by_seed(name: str) -> None:
    area = AREAS[name]
    found = area.drawn_cases(3, 1)
    assert len(found) == 3 * len(area.operations)
    assert {case.name for case in found} == set(area.operations)
    only = next(iter(area.operations))
    again = area.drawn_cases(2, 1, [only])
    assert [c.sizes for c in again] == [c.sizes for c in found if c.name == only][:2]
    assert [c.sizes for c in area.drawn_cases(3, 2)] != [c.sizes for c in found]
    with pytest.raises(OptionError, match=f"--only none matches nothing; there are {only}"):
        area.drawn_cases(1, 1, ["none"])


@pytest.mark.torch
@pytest.mark.parametrize("name", AREAS)
def test_both_sides_agree_before_they_are_timed(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(measure, "Timer", Timer)
    monkeypatch.setattr(torch, "compile", lambda call, **how: call)
    with ptxgen.use_device("cpu"):
        bench = fake_area(AREAS[name], torch=torch)
        rows = list(bench.timed(SMALL[name]))
    assert not bench.wrong and [(r.name, r.sizes) for r in rows] == [
        (c.name, c.sizes) for c in SMALL[name]
    ]
    path = tmp_path / "rows.json"
    results.write_records(path, results.records(rows, ENVIRONMENT))
    assert AREAS[name].main(["--rows", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "peer's time / ours" in shown and "\nall " in shown
    if name == "fft":
        assert all(0 < r.ours_error < 4 and 0 < r.peer_error < 4 for r in rows[:-1])
        assert rows[-1].ours_error is None
    if name == "splats":
        assert {r.peer for r in rows} == {"PyTorch"}


def test_large_scenes_are_left_out_without_gsplat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    area = fake_area(splats.Splats, "--random", "9")
    few = area.cases()
    assert all(case.pairs <= splats.PLAIN_PAIRS for case in few)
    assert f"{18 - len(few)} scenes left out" in capsys.readouterr().err
    monkeypatch.setattr(splats, "gsplat", lambda: splats)
    every = area.cases()
    assert len(every) == 18 and all(case.pairs <= splats.MOST_PAIRS for case in every)


@pytest.mark.torch
def test_wrong_results_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def off(case: Any) -> Any:
        made = case.make(torch)

        def changed(*given: Any) -> Any:
            found = made.ours(*given)
            first = found[0] if isinstance(found, tuple) else found
            first[(0,) * first.ndim] += 40
            return found

        return made._replace(ours=changed)

    with ptxgen.use_device("cpu"):
        for cases in SMALL.values():
            with pytest.raises(measure.WrongBitsError):
                opcase.checked_calls(torch, cases[0], off(cases[0]))
