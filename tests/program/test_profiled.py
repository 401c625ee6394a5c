"""Profiles of programs: counts where the CPU device counts, times where they are measured."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen.errors import DeviceError, ShapeError
from ptxgen.runtime.cpu import CpuDevice

X, W = np.ones((16, 64), "f4"), np.ones((64, 32), "f4")


def layer(x):
    return ptxgen.softmax(f.mul(ptxgen.linear(x, W, layout="kn"), 2.0))


def test_steps_are_counted_on_the_cpu_device(tmp_path) -> None:
    with ptxgen.use_device("cpu"):
        captured = ptxgen.capture(layer, X)
        found = captured.profile(X)
        alone = ptxgen.profile(found.steps[0].line.kernels[0], 16, 32, 64)
        assert found.steps[0].flop == alone.flop
        assert [s.line for s in found.steps] == list(captured.program.listing().steps)
        assert found.steps[1].moved == 2 * 16 * 32 * 4
        heads, *lines = str(found).splitlines()
        assert heads.split() == ["step", "kernel", "bytes", "flop", "bytes", "moved"]
        assert lines[0].split()[-2:] == [f"{alone.flop:,}", f"{alone.moved_bytes:,}"]
        captured.save(tmp_path / "it")
        assert ptxgen.load(tmp_path / "it").profile(X) == found
        with pytest.raises(DeviceError, match="cpu:0 PTX interpreter counts what kernels do"):
            found.trace(tmp_path / "trace")
        with pytest.raises(ShapeError, match="x has shape"):
            captured.profile(X[:3])
        assert captured.profile(X) == found, "settings are what they were"


class Timed(CpuDevice):
    """Says how long work takes: its number, µs, and more from round to round."""

    can_time = True

    def timed(self, work, stream, rounds):
        for run in work:
            run()
        return [[i + 1 + 0.25 * r for r in range(rounds)] for i in range(len(work))]


def test_times_are_medians_and_make_a_trace(tmp_path) -> None:
    with ptxgen.use_device(Timed()):
        found = ptxgen.capture(layer, X).profile(X, rounds=5)
    assert [s.us for s in found.steps] == [1.5, 2.5, 3.5] and found.us == 4.5
    heads, *lines, last = str(found).splitlines()
    assert last == "a replay of all: 4.5 µs"
    assert heads.split() == ["step", "kernel", "bytes", "µs", "predicted", "GB/s"]
    predicted = f"{found.steps[2].line.us:.1f}"
    assert lines[2].split()[-4:] == ["4,096", "3.5", predicted, "1"]
    found.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    steps = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in steps] == ["linear", "mul", "softmax"]
    assert [(e["ts"], e["dur"]) for e in steps] == [(0, 1.5), (1.5, 2.5), (4, 3.5)]
    assert steps[1]["args"]["reads"] == ["t0 f32[16, 32]"]


def test_steps_have_ranges_where_nvtx_is_installed(monkeypatch) -> None:
    """Each step runs within an NVTX range of its name."""
    seen: list[str] = []

    class Annotate:
        def __init__(self, name: str, domain: str) -> None:
            self.name = f"{domain}: {name}"

        def __call__(self, work):
            def within():
                seen.append(f"begin {self.name}")
                work()
                seen.append(f"end {self.name}")

            return within

    monkeypatch.setitem(sys.modules, "nvtx", types.SimpleNamespace(annotate=Annotate))
    with ptxgen.use_device(Timed()):
        found = ptxgen.capture(layer, X).profile(X, rounds=1)
    names = [*(step.line.what for step in found.steps), f"a replay of {found.name}"]
    assert seen == [f"{at} ptxgen: {name}" for name in names for at in ("begin", "end")]
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with ptxgen.use_device(Timed()):
        assert ptxgen.capture(layer, X).profile(X, rounds=1) == found
