"""``tools/sanitize.py``: kernels and cases are found by name, and wrong bits count."""

from __future__ import annotations

import sys
from pathlib import Path

import fft_cases
import pytest

from ptxgen.runtime import get_device


def test_cases_run_on_the_cpu_device_and_wrong_bits_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "tools"), *sys.path])
    import sanitize

    monkeypatch.setattr(sanitize, "DEVICE", get_device("cpu"))
    names = "sort_row_f32_1x4|edges_(sort_int8_33|fft_f4_13)$"
    assert sanitize.main(names) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["1 kernels, 0 wrong", "edges_sort_int8_33: same", "edges_fft_f4_13: same"]
    assert lines[0].startswith("sort_row_f32_1x4") and lines[0].endswith("2 problems, 0 different")

    def wrong(device: object) -> None:
        raise AssertionError("3 of 4 elements differ")

    monkeypatch.setattr(fft_cases, "edges", lambda: [("fft_wrong", wrong)])
    assert sanitize.main("edges_fft") == 1
    assert "edges_fft_wrong: different: 3 of 4 elements differ" in capsys.readouterr().out
