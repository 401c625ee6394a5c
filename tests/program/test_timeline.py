"""Timelines of ordinary calls and replays, as trace files and NVTX ranges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from itertools import pairwise

import numpy as np
import pytest
from bits import difference

import ptxgen
from ptxgen import functions as f
from ptxgen.errors import OptionError
from ptxgen.ops import OPERATIONS
from ptxgen.runtime.cpu import CpuDevice

X, W = np.ones((6, 16), "f4"), np.ones((16, 8), "f4")


def layer(x):
    return ptxgen.softmax(f.mul(ptxgen.linear(x, W, layout="kn"), 2.0))


def events_of(path):
    """Spans of a trace file by category, in their order, and the names of its tracks."""
    events = json.loads(path.read_text())["traceEvents"]
    found: dict[str, list[dict]] = {"call": [], "replay": [], "step": [], "trace": []}
    for event in events:
        if event["ph"] == "X":
            found[event["cat"]].append(event)
    return found, [e["args"]["name"] for e in events if e["ph"] == "M"]


def test_calls_replays_and_their_steps_are_recorded(tmp_path) -> None:
    with ptxgen.use_device(CpuDevice()):
        captured = ptxgen.capture(layer, X, extent=0)
        wanted = captured(X)
        captured.save(tmp_path / "it")
        with ptxgen.timeline(tmp_path / "trace.json"):
            for _ in range(2):  # unknown to the new device, and known
                eager = layer(X)
            f.exp(X, out=np.empty_like(X))
            found = captured(X), ptxgen.load(tmp_path / "it")(X)
            captured(X[:2])
        f.neg(X)
    assert not any(difference(one, wanted) for one in (eager, *found))
    spans, names = events_of(tmp_path / "trace.json")
    steps = ["linear", "mul", "softmax"]
    assert [e["name"] for e in spans["call"]] == [*steps, *steps, "exp"]
    assert [e["name"] for e in spans["replay"]] == ["layer"] * 3
    assert [e["name"] for e in spans["trace"]] == ["layer"] * 2, "two of the new size"
    assert [e["name"] for e in spans["step"]] == 3 * steps
    assert names == ["host", "cpu:0 PTX interpreter"]
    replays = [(e["ts"], e["ts"] + e["dur"]) for e in spans["replay"]]
    for i, step in enumerate(spans["step"]):
        low, high = replays[i // 3]
        assert low <= step["ts"] <= step["ts"] + step["dur"] <= high and step["dur"] > 0
    ends = [(e["ts"], e["ts"] + e["dur"]) for e in sorted(spans["call"], key=lambda e: e["ts"])]
    assert all(a[1] <= b[0] for a, b in pairwise(ends)), "no call twice"


def test_generated_functions_are_as_before_afterwards(tmp_path) -> None:
    """Calls without a timeline run the code that they ran before one."""
    with ptxgen.use_device("cpu"):
        ptxgen.softmax(X)
        frame = OPERATIONS["softmax"].frame
        functions = frame.function, *frame.others.values()
        before = [dict(function.__globals__) for function in functions]
        with pytest.raises(ZeroDivisionError), ptxgen.timeline(tmp_path / "trace.json"):
            assert all(
                function.__globals__ != names
                for function, names in zip(functions, before, strict=True)
            )
            with pytest.raises(OptionError, match=r"trace\.json is being recorded"):
                ptxgen.timeline(tmp_path / "other.json").__enter__()
            ptxgen.softmax(X)
            raise ZeroDivisionError
    assert [function.__globals__ for function in functions] == before
    spans, _ = events_of(tmp_path / "trace.json")
    assert [e["name"] for e in spans["call"]] == ["softmax"], "written in spite of the error"


def test_spans_are_nvtx_ranges(monkeypatch, tmp_path) -> None:
    seen: list[str] = []

    class Annotate:
        def __init__(self, name: str, domain: str) -> None:
            self.name = f"{domain}: {name}"

        def __enter__(self) -> None:
            seen.append(f"begin {self.name}")

        def __exit__(self, *_) -> None:
            seen.append(f"end {self.name}")

    monkeypatch.setitem(sys.modules, "nvtx", types.SimpleNamespace(annotate=Annotate))
    with ptxgen.use_device("cpu"):
        captured = ptxgen.capture(lambda x: f.exp(f.neg(x)), X)
        with ptxgen.timeline(tmp_path / "trace.json"):
            captured(X)
    spans = ["begin <lambda>", "begin neg", "end neg", "begin exp", "end exp", "end <lambda>"]
    assert seen == [span.replace(" ", " ptxgen: ") for span in spans]


def test_a_process_is_recorded_by_its_environment(tmp_path) -> None:
    path = tmp_path / "trace.json"
    code = "import numpy, ptxgen; ptxgen.softmax(numpy.ones((2, 8), 'f4'))"
    code = f"import ptxgen; ptxgen.set_default_device('cpu'); {code}"
    environment = {**os.environ, "PTXGEN_TIMELINE": str(path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert [e["name"] for e in events_of(path)[0]["call"]] == ["softmax"]
