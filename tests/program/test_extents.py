"""Captures that run with fewer rows than they were captured with: bits of the small call."""

from __future__ import annotations

import numpy as np
import pytest
from random_programs import Drawn, draw, mismatch, poisoned

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import OptionError, ShapeError, TraceError
from ptxgen.program import capture as captures
from ptxgen.runtime.cpu import CpuDevice

UPPER = 6
SHARE = (2, 63, 166, 169)
"""Seeds of `make test`, among them reductions over rows and gradients of weights."""
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def axes(drawn: Drawn) -> list[int | None]:
    """Axis 0 of each input that has rows."""
    kinds = (of.kind for of in drawn.types[: drawn.inputs])
    return [0 if kind in ("element", "row") else None for kind in kinds]


def compare(seed: int, sizes) -> bool:
    """Compares a random program with fewer rows, in memory that larger calls left behind, to its
    operations called with that many. Returns whether it can run with fewer rows.
    """
    drawn = draw(seed)
    arrays, own = drawn.arrays(UPPER), axes(drawn)
    if not any(axis == 0 for axis in own):
        return False
    try:
        captured = ptxgen.capture(drawn, *arrays, passes=graph.fewer, extent=own)
    except TraceError as error:  # pairs of elements of an odd number
        assert "cannot run with 1: " in str(error) and ".py:" in str(error), seed
        assert any(line.name == "views" for line in drawn.lines), seed
        return False
    for rows in sizes:
        cut = [x if axis is None else x[:rows] for x, axis in zip(arrays, own, strict=True)]
        wanted = drawn(*cut)
        assert not mismatch(poisoned(captured)(*cut), wanted), (seed, rows)
        assert not mismatch(captured(*arrays, extent=rows), wanted), (seed, rows)
        captured(*arrays)
    return True


def test_random_programs_with_fewer_rows_have_the_bits_of_the_small_call() -> None:
    with ptxgen.use_device(CpuDevice()):
        assert all([compare(seed, (5, 2)) for seed in SHARE])


@pytest.mark.long
def test_fifty_random_programs_with_fewer_rows() -> None:
    with ptxgen.use_device(CpuDevice()):
        assert sum(compare(seed, (4, 2)) for seed in range(300, 360)) >= 50


def layer(x, dy, w):
    """A layer, and the gradient of its weight: a reduction over rows, planned by how many."""
    y = ptxgen.softmax(ptxgen.linear(x, w, layout="kn"))
    return {"y": y, "dw": ptxgen.linear(x.T, dy, layout="kn"), "rows": ptxgen.sum(y, axis=0)}


def test_a_reduction_over_rows_has_the_plan_of_the_small_call() -> None:
    w = normal(16, 8)
    x, dy = normal(2100, 16), normal(2100, 8)
    captured = ptxgen.capture(layer, x, dy, constants={"w": w}, extent=0)
    for rows in (2048, 37):
        wanted = layer(x[:rows], dy[:rows], w)
        found = captured(x[:rows], dy[:rows])
        assert found.keys() == wanted.keys()
        for name in wanted:
            assert not mismatch(found[name], wanted[name]), (name, rows)
    for rows in (2048, 37):
        step = captured.at(rows).program.steps[2]
        assert dict(step.problem.values)["K"] == rows and step.problem.what.startswith("linear")


def test_memory_is_shared_and_the_latest_programs_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(captures, "EXTENTS_MAX", 2)
    captured = ptxgen.capture(lambda x: f.add(f.exp(x), 1.0), normal(6, 8), extent=0)
    small = captured.at(3)
    assert small.arguments[0].ptr == captured.arguments[0].ptr
    assert small.results[0].ptr == captured.results[0].ptr and small.results[0].shape == (3, 8)
    assert captured.at(3) is small and captured.at(6) is captured
    for rows in (1, 2):
        captured.at(rows)
    assert captured.at(3) is not small
    x = normal(6, 8)
    for each in (captured, small, captured):
        n = each.arguments[0].shape[0]
        assert not mismatch(each(x[:n]), f.add(f.exp(x[:n]), 1.0))
    assert not mismatch(captured(x[:0]), f.add(f.exp(x[:0]), 1.0))


def test_another_axis_and_some_arguments_by_name() -> None:
    def function(x, scale, mask):
        return f.where(mask, f.mul(x, scale), 0.0)

    x, scale, mask = normal(4, 6), normal(4, 1), RNG.random((4, 6)) < 0.5
    captured = ptxgen.capture(function, x, scale, mask, extent={"x": 1, "mask": -1})
    cut = x[:, :5], scale, mask[:, :5]
    assert not mismatch(captured(*cut), function(*cut))
    assert not mismatch(captured(x, scale, mask, extent=5), function(*cut))
    out = np.empty((4, 5), "f4")
    assert captured.run({"x": x, "mask": mask, "scale": scale}, extent=5, out=out) is out
    assert not mismatch(out, function(*cut))


def test_state_and_written_arguments_stay_as_they_are() -> None:
    def function(x, seen, total):
        f.add(total, ptxgen.sum(x, axis=0), out=total)
        return f.add(seen, x, out=seen)

    x, seen = np.ones((4, 3), "f4"), np.zeros((4, 3), "f4")
    captured = ptxgen.capture(
        function, x, seen, state={"total": np.zeros(3, "f4")}, extent={"x": 0, "seen": 0}
    )
    assert captured(x, seen) is seen
    captured(x[:2], seen[:2])
    captured(x, seen, extent=1)
    assert seen[:, 0].tolist() == [3, 2, 1, 1] and captured.read("total").tolist() == [7, 7, 7]
    captured.feed("total", np.zeros(3, "f4"))
    captured(x, seen, extent=3)
    assert captured.at(2).read("total").tolist() == [3, 3, 3]


def test_a_step_that_takes_no_other_size_is_named_at_capture() -> None:
    def halves(x):
        return f.add(x.reshape(2, 3, 8), 1.0)

    with pytest.raises(TraceError, match=r"halves was captured with extent 6.*_extents\.py:\d+"):
        ptxgen.capture(halves, normal(6, 8), extent=0)
    masks = {n: normal(n) for n in (1, 4, 5)}
    with pytest.raises(TraceError, match="cannot run with 1: it reads other arrays from outside"):
        ptxgen.capture(lambda x: f.add(x, masks[x.shape[1]]), normal(8, 5), extent=1)


def test_what_has_changed_since_the_capture_is_not_traced_anew() -> None:
    factor = [2.0]
    captured = ptxgen.capture(lambda x: f.mul(x, factor[0]), normal(6, 8), extent=0)
    captured.at(4)
    factor[0] = 3.0
    with pytest.raises(TraceError, match="no longer does what it did"):
        captured.at(3)
    x = normal(4, 8)
    assert not mismatch(captured(x), f.mul(x, 2.0)), "its program is there"


def test_extents_that_do_not_fit_are_refused_by_name(tmp_path) -> None:
    x, y = normal(6, 8), normal(6, 8)

    def both(x, y):
        return f.add(x, y)

    captured = ptxgen.capture(both, x, y, extent=0)
    for call, error, says in [
        (lambda: captured(x[:3], y), ShapeError, "y has size 6 along axis 0; takes 3, as x"),
        (lambda: captured(normal(7, 8), y), ShapeError, "x has size 7 along axis 0; takes at most"),
        (lambda: captured(x[:3], y, extent=4), ShapeError, "x has size 3 .* takes 4, as extent"),
        (lambda: captured(x[:3, :2], y[:3]), ShapeError, r"x has shape \[3, 2\]; takes \[3, 8\]"),
        (lambda: captured(x, y, extent=7), OptionError, "extent is 7; both takes 0 to 6"),
        (lambda: captured.at(-1), OptionError, "extent is -1"),
        (lambda: captured.at(3).at(2), TraceError, "both has one size"),
        (lambda: ptxgen.capture(both, x, y)(x, y, extent=3), TraceError, "both has one size"),
        (lambda: ptxgen.capture(both, x, y, extent=2), OptionError, "extent is 2 for x"),
        (lambda: ptxgen.capture(both, x, y, extent={"z": 0}), OptionError, "extent has 'z'; has x"),
        (lambda: ptxgen.capture(both, x, y, extent=(0,)), OptionError, "extent has 1 axes"),
        (lambda: ptxgen.capture(both, x, y, extent=(0, 1)), ShapeError, "y has size 8 along axis"),
        (lambda: ptxgen.capture(both, x, y, extent={}), OptionError, "extent has no axis"),
        (
            lambda: ptxgen.capture(graph.trace(both, x, y), extent=0),
            TraceError,
            "a program has one size",
        ),
    ]:
        with pytest.raises(error, match=says):
            call()
    captured.save(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it")
    assert not mismatch(loaded(x, y), f.add(x, y))
    with pytest.raises(TraceError, match="both has one size"):
        loaded(x, y, extent=3)
