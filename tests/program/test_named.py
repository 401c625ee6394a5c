"""Captures whose inputs and outputs have names, and what they keep between calls."""

from __future__ import annotations

import numpy as np
import pytest
from bits import difference

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import DeviceError, DtypeError, OptionError, ShapeError, TraceError
from ptxgen.program.buffer import imagined
from ptxgen.program.place import elements, put
from ptxgen.runtime import get_device

RNG = np.random.default_rng(9)


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def heads(x, y):
    """Three outputs, of which two share a step and the third shares none."""
    z = ptxgen.softmax(f.add(x, y))
    return {"z": z, "sums": ptxgen.sum(z, axis=-1), "scaled": f.mul(y, 2.0)}


def loaded(captured, tmp_path):
    captured.save(tmp_path / "it")
    return ptxgen.load(tmp_path / "it")


def test_arguments_and_results_have_the_names_of_the_function(tmp_path) -> None:
    x, y = normal(4, 8), normal(4, 8)
    captured = ptxgen.capture(heads, x, y)
    for each in (captured, loaded(captured, tmp_path)):
        assert each.inputs == ("x", "y") and each.outputs == ("z", "sums", "scaled")
        for found in (each(x, y), each(y=y, x=x), each(x, y=y), each.run({"y": y, "x": x})):
            assert list(found) == ["z", "sums", "scaled"]
            for name, wanted in heads(x, y).items():
                assert not difference(found[name], wanted), name


def test_some_outputs_launch_only_the_steps_that_they_need(tmp_path) -> None:
    x, y = normal(4, 8), normal(4, 8)
    wanted, captured = heads(x, y), ptxgen.capture(heads, x, y)
    assert captured._of.needed([0]) == (0, 1) and captured._of.needed([1, 2]) == (0, 1, 2, 3)
    for each in (captured, loaded(captured, tmp_path)):
        scaled = each._found[-1]
        each._device.memset(scaled.ptr, 0x11, scaled.nbytes)
        assert not difference(each(x, y, outputs=["z"])["z"], wanted["z"])
        bits = elements(each._of.results[-1], each._device, scaled.ptr, 0)
        assert (bits == 0x11111111).all(), "nobody asked for it"
        found = each.run({"x": x, "y": y}, ["scaled", "z"])
        assert list(found) == ["scaled", "z"]
        assert not any(difference(found[name], wanted[name]) for name in found)
        assert not difference(each(x, y, outputs=[1])["sums"], wanted["sums"])
        assert each(x, y).keys() == wanted.keys()


def test_steps_that_write_arguments_are_always_launched() -> None:
    def step(x, total):
        f.add(total, f.exp(x), out=total)
        return f.neg(x), ptxgen.softmax(x), total

    x, total = normal(3, 8), np.zeros((3, 8), "f4")
    captured = ptxgen.capture(step, x, total)
    (found,) = captured(x, total, outputs=[0])
    assert not difference(found, -x) and not difference(total, f.exp(x))
    assert captured(x, total, outputs=(2,))[0] is total
    assert not difference(total, f.add(f.exp(x), f.exp(x)))


def test_results_are_written_to_arrays_of_the_caller(tmp_path) -> None:
    x, y = normal(4, 8), normal(4, 8)
    wanted, captured = heads(x, y), ptxgen.capture(heads, x, y)
    for each in (captured, loaded(captured, tmp_path)):
        z, wide = np.empty((8, 4), "f4").T, np.empty((4, 16), "f4")
        found = each(x, y, out={"z": z, "scaled": wide[:, ::2]})
        assert found["z"] is z and not difference(z, wanted["z"])
        assert not difference(np.ascontiguousarray(wide[:, ::2]), wanted["scaled"])
        assert not difference(found["sums"], wanted["sums"])
        sums = np.empty(4, "f4")
        assert each(x, y, outputs=["sums"], out={"sums": sums}) == {"sums": sums}
    turned = ptxgen.capture(lambda x: (f.neg(x), f.exp(x)), x)
    first = x.copy()
    assert turned(first, out=(first, None))[0] is first, "over what is read"
    assert not difference(first, -x)


def test_results_are_written_to_arrays_on_the_device() -> None:
    cpu, x = get_device("cpu"), normal(4, 8)
    program = graph.trace(lambda x: f.exp(x), x)
    captured = ptxgen.capture(program)
    like = imagined((4, 8), "float32")
    given, out = (put(like, v.view("u4"), cpu, 0)[1] for v in (x, 0 * x))
    for each in (given, out):
        each.shape, each.dtype = (4, 8), "float32"
    assert captured(given, out=out) is out
    assert (elements(like, cpu, out.ptr, 0) == f.exp(x).view("u4")).all()


def test_what_is_unknown_is_refused_by_name() -> None:
    x, y = normal(4, 8), normal(4, 8)
    captured, total = ptxgen.capture(heads, x, y), np.zeros((4, 8), "f4")
    single = ptxgen.capture(lambda x: f.exp(x), x)
    written = ptxgen.capture(lambda x, total: f.add(x, total, out=total), x, total)
    fixed = np.zeros((4, 8), "f4")
    fixed.flags.writeable = False
    for call, error, says in [
        (lambda: captured(x, z=y), TraceError, "heads has no input 'z'; has x, y"),
        (lambda: captured(x, x=y), TraceError, "given x twice"),
        (lambda: captured(y=y), TraceError, "not given its input x"),
        (lambda: captured.run({"x": x, "Y": y}), TraceError, "no input 'Y'; did you mean y"),
        (lambda: captured.run({}), TraceError, "2 arguments; got 0"),
        (lambda: captured.run([x, y]), TraceError, "feed is a list"),
        (lambda: captured.run({"x": x, "y": y[:2]}), ShapeError, r"y has shape \[2, 8\]; takes"),
        (lambda: captured(x, y, outputs=["sum"]), OptionError, "output 'sum'; did you mean sums"),
        (lambda: captured(x, y, outputs=["z", 0]), OptionError, "asked for output 0 twice"),
        (lambda: captured(x, y, outputs="z"), OptionError, "outputs is 'z'; takes a sequence"),
        (lambda: captured(x, y, outputs=()), OptionError, "takes a sequence"),
        (lambda: single(x, outputs=[1]), OptionError, "no output 1; has 0 to 0"),
        (lambda: captured(x, y, out=x), TraceError, "out is a ndarray; takes a mapping"),
        (lambda: captured(x, y, out={"w": x}), TraceError, "out has 'w'; takes z, sums, scaled"),
        (lambda: captured(x, y, out={"z": fixed[:2].copy()}), ShapeError, r"has shape \[2"),
        (lambda: captured(x, y, out={"z": np.zeros((4, 8))}), DtypeError, "takes float32"),
        (lambda: single(x, out=(x, x)), TraceError, "out has 2 arrays; takes one for each of 1"),
        (lambda: single(x, out=fixed), ShapeError, "out is read-only"),
        (lambda: single(x[:, ::-1], out=x), ShapeError, "out shares memory with x"),
        (lambda: written(x, total, out=fixed), TraceError, "and the output is an array"),
        (lambda: ptxgen.capture(lambda x: {1: f.exp(x)}, x), TraceError, "names a result 1"),
    ]:
        with pytest.raises(error, match=says):
            call()
    assert not total.any() and not fixed.any()


# -- constants and state ----------------------------------------------------------------------
def token(x, w, keys):
    """A row of keys for a token, put where the last was, and their sum."""
    f.add(keys, ptxgen.linear(x, w, layout="kn"), out=keys)
    return ptxgen.sum(keys, axis=-1)


def test_state_is_kept_between_calls_and_constants_are_set_once(tmp_path) -> None:
    x, w, keys = normal(3, 4), normal(4, 8), np.zeros((3, 8), "f4")
    captured = ptxgen.capture(token, x, constants={"w": w}, state={"keys": keys})
    assert captured.inputs == ("x",) and len(captured.arguments) == 1
    first, step = w.copy(), ptxgen.linear(x, w, layout="kn")
    w += 1
    for each in (captured, loaded(captured, tmp_path)):
        wanted = keys.copy()
        for _ in range(3):
            wanted = f.add(wanted, step)
            assert not difference(each(x), ptxgen.sum(wanted, axis=-1))
            assert not difference(each.read("keys"), wanted)
        assert not difference(each.read("w"), first)
        each.feed("w", w)
        each.feed("keys", keys)
        assert not difference(each(x), ptxgen.sum(ptxgen.linear(x, w, layout="kn"), axis=-1))
    assert not keys.any(), "the caller's array is the first content"
    captured.save(tmp_path / "it", arrays=False)
    again = ptxgen.load(tmp_path / "it", arrays={"w": first, "keys": keys})
    assert not difference(again(x), ptxgen.sum(step, axis=-1))


def test_constants_in_half_precision_are_multiplied_as_they_are() -> None:
    x, w = normal(3, 16).astype("f2"), normal(16, 8).astype("f2")
    captured = ptxgen.capture(lambda x, w: ptxgen.linear(x, w, layout="kn"), x, constants={"w": w})
    (step,) = captured.program.steps
    assert {b.dtype for b in step.reads()} == {"float16"} and not captured.nbytes
    assert captured._copies[0].nbytes == w.nbytes
    assert not difference(captured(x), ptxgen.linear(x, w, layout="kn"))


def test_state_of_one_capture_is_bound_to_another() -> None:
    """Two programs, for a prompt and a token, write one cache on the device."""
    cpu, x = get_device("cpu"), normal(3, 8)
    shared, keep = put(imagined((3, 8), "float32"), 0 * x.view("u4"), cpu, 0)
    keep.shape, keep.dtype = (3, 8), "float32"

    def add(x, keys):
        return f.add(keys, x, out=keys)

    def scale(x, keys):
        return f.mul(keys, x, out=keys)

    made = [graph.trace(each, x, x) for each in (add, scale)]
    one, other = (ptxgen.capture(each, state={"keys": keep}) for each in made)
    assert one._outer[0] == other._outer[0] == shared
    first = one(x)
    other(x), one(x)
    assert not difference(first, x), "a copy of what the state was"
    wanted = f.add(f.mul(f.add(np.zeros_like(x), x), x), x)
    assert not difference(one.read("keys"), wanted) and not difference(other.read("keys"), wanted)
    second, keep2 = put(imagined((3, 8), "float32"), x.view("u4"), cpu, 0)
    keep2.shape, keep2.dtype = (3, 8), "float32"
    one.bind("keys", keep2)
    one(x)
    assert one._outer[0] == second and not difference(one.read("keys"), f.add(x, x))
    assert not difference(other.read("keys"), wanted)
    with pytest.raises(DeviceError, match="keys is in host memory"):
        one.bind("keys", x)


def test_what_does_not_fit_a_constant_is_refused() -> None:
    x, w, keys = normal(3, 4), normal(4, 8), np.zeros((3, 8), "f4")
    captured = ptxgen.capture(token, x, constants={"w": w}, state={"keys": keys})
    program = graph.trace(token, x, w, keys)
    given = {"w": w, "keys": keys}
    for call, error, says in [
        (lambda: captured.feed("v", w), TraceError, "keeps no array 'v'; has w, keys"),
        (lambda: captured.read("key"), TraceError, "'key'; did you mean keys"),
        (lambda: captured.feed("w", w.T), ShapeError, r"w has shape \[8, 4\]; takes \[4, 8\]"),
        (lambda: captured.feed("w", w.astype("f8")), DtypeError, "w has dtype float64"),
        (lambda: captured(x, w), TraceError, "1 arguments; got 2"),
        (
            lambda: ptxgen.capture(token, x, constants=given),
            TraceError,
            "token writes keys, a constant; pass it as state=",
        ),
        (lambda: ptxgen.capture(program, constants=given), TraceError, "writes keys, a constant"),
        (lambda: ptxgen.capture(token, x, state={"w": w}), TraceError, "not take its constants"),
        (lambda: ptxgen.capture(program, constants={"v": w}), TraceError, "no input 'v'; has x"),
        (
            lambda: ptxgen.capture(token, x, constants=given, state=given),
            TraceError,
            "state has the name 'w'",
        ),
        (lambda: ptxgen.capture(token, x, constants=w), TraceError, "constants is a ndarray"),
    ]:
        with pytest.raises(error, match=says):
            call()


# -- programs built by hand -------------------------------------------------------------------
def test_a_builder_takes_constants_and_names_outputs(tmp_path) -> None:
    w, x = normal(8, 5), normal(3, 8)
    b = graph.Builder("layer")
    node = b.input("x", (3, 8), "float32")
    y = b.linear(node, b.constant("w", w), layout="kn")
    b.output(y=y)
    b.output(p=b.softmax(y))
    for says, call in [
        ("an input is named 'w'", lambda: b.constant("w", w)),
        ("an output is named 'y'", lambda: b.output(y=y)),
        ("some outputs have no names", lambda: b.output(y)),
    ]:
        with pytest.raises(TraceError, match=says):
            call()
    with pytest.raises(DtypeError, match="constant v is a "):
        b.constant("v", 3)
    captured = ptxgen.capture(b.program(), passes=graph.fewer)
    wanted = ptxgen.linear(x, w, layout="kn")
    for each in (captured, loaded(captured, tmp_path)):
        assert each.inputs == ("x",) and each.outputs == ("y", "p")
        found = each(x=x)
        assert not difference(found["y"], wanted)
        assert not difference(found["p"], ptxgen.softmax(wanted))
        each.feed("w", 2 * w)
        assert not difference(each(x)["y"], ptxgen.linear(x, 2 * w, layout="kn"))
