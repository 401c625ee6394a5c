"""Captured and saved programs that write arguments: where the caller has them, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import DeviceError, ShapeError, SpecError
from ptxgen.program import replay
from ptxgen.program.buffer import imagined
from ptxgen.program.place import elements, put
from ptxgen.runtime import get_device


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


def stepped(x, c):
    """A function that writes an argument, part of it and all of it."""
    ptxgen.softmax(f.mul(x, 2.0), out=c[:, 1:3])
    return f.add(c, 1.0, out=c), f.mul(c, x[:, :1])


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("passes", [None, graph.fewer])
def test_a_function_that_writes_an_argument(passes, streams, tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "GRAPHS_MAX", 3)
    rng = np.random.default_rng(0)
    x, c = (rng.standard_normal((4, n), np.float32) for n in (2, 5))
    made = ptxgen.capture(stepped, x, c, passes=passes, streams=streams)
    made.save(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it")
    for _ in range(5):
        wanted = c.copy()
        wanted[:, 1:3] = ptxgen.softmax(x * 2)
        wanted += 1
        caches = c.copy(), c.copy()
        for run, own in zip((made, loaded), caches, strict=True):
            same_one, found = run(x, own)
            assert same_one is own and (own == wanted).all() and (found == wanted * x[:, :1]).all()
        c = wanted
    assert len(loaded._runs) == 3
    assert loaded.arguments[1] is None and loaded.results[0] is None
    assert [step.line.what for step in loaded.profile(x, c).steps] == [
        line.what for line in loaded.program.steps
    ]


def test_an_argument_on_the_device_is_written_there(tmp_path):
    """An argument on the device is written in place, at any address, and nothing else is."""
    cpu = get_device("cpu")
    x, c = np.ones((4, 2), np.float32), np.zeros((4, 5), np.float32)
    made = ptxgen.capture(stepped, x, c)
    made.save(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it")
    like = [imagined(v.shape, "float32") for v in (x, c, c)]
    arrays = [put(b, v.view("u4"), cpu, 0)[1] for b, v in zip(like, (x, c, c), strict=True)]
    whole = [_shaped(a, b) for a, b in zip(arrays, like, strict=True)]

    def bits(number):
        return elements(like[number], cpu, whole[number].ptr, 0).view("f4")

    wanted = c.copy(), c.copy()
    for number in (1, 2, 1, 1, 2):
        made(x, wanted[number - 1])
        found, _ = loaded(whole[0], whole[number])
        assert found is whole[number]
        assert all((bits(n) == wanted[n - 1]).all() for n in (1, 2))
    assert len(loaded._runs) == 2


def _shaped(array, like):
    """Changes an array in place to the shape and dtype of ``like``, and returns it."""
    array.shape, array.dtype = like.shape, like.dtype
    return array


def test_what_is_written_has_to_be_writable_and_alone(monkeypatch):
    x, c = np.ones((4, 2), np.float32), np.zeros((4, 5), np.float32)
    made = ptxgen.capture(stepped, x, c)
    fixed, wide = c.copy(), np.zeros((4, 10), np.float32)
    fixed.flags.writeable = False
    for own, other, error, says in [
        (fixed, x, ShapeError, "c is written, and read-only"),
        (wide[:, ::2], x, ShapeError, r"c is written, and has strides \[10, 2\]"),
        (c, c[:, :2], ShapeError, "c is written, and shares memory with x"),
        (c[:2], x, ShapeError, r"c has shape \[2, 5\]; takes \[4, 5\]"),
    ]:
        with pytest.raises(error, match=says):
            made(other, own)
    assert not c.any() and not wide.any()
    monkeypatch.setattr(get_device("cpu"), "kind", "cuda")
    with pytest.raises(DeviceError, match="c is written, and in host memory"):
        made(x, c)


def test_an_array_from_outside_is_no_place_for_results():
    x, c = np.ones((4, 2), np.float32), np.zeros((4, 2), np.float32)
    with pytest.raises(SpecError, match="writes <outside0"):
        ptxgen.capture(lambda x: f.exp(x, out=c), x)


def test_a_node_is_written_to_an_input():
    b = graph.Builder("it")
    x, c = b.input("x", (4, 8), "float32"), b.input("c", (6, 8), "float32")
    with pytest.raises(ShapeError):
        b.softmax(x, out=c)
    assert not any(m.written for m in b._tracing.builder.inputs)
    b.softmax(x, out=c[1:5])
    b.output(b.sum(c, axis=0))
    made = ptxgen.capture(b.program(), passes=graph.fewer)
    x, c = np.zeros((4, 8), np.float32), np.ones((6, 8), np.float32)
    assert (made(x, c) == 2.5).all()
    assert (c[1:5] == 0.125).all() and (c[0] == 1).all() and (c[5] == 1).all()
