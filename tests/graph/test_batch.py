"""Batching: equal elementwise steps of different arrays, or of slices of one, in one launch."""

from __future__ import annotations

import numpy
import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.graph import batch
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.spec.pointwise import COPIES_MAX

gate = ptxgen.pointwise(lambda x, y: f.silu(x) * y)


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ptxgen.use_device("cpu"):
        yield


def steps(program):
    return [step.problem.what for step in program.steps]


def checked(function, *arrays, passes=("batch",)):
    """The batched program's steps; its results, captured, have the bits of the calls."""
    after, (done,) = graph.apply(graph.trace(function, *arrays), list(passes))
    assert done.name == "batch"
    captured = ptxgen.capture(function, *arrays, passes=lambda p: graph.apply(p, passes)[0])
    for got, expected in zip(captured(*arrays), function(*arrays), strict=True):
        assert got.dtype == expected.dtype and (got.view("u1") == expected.view("u1")).all()
    return steps(after)


def test_64_arrays_of_one_shape_are_one_launch():
    rng = numpy.random.default_rng(0)
    arrays = [rng.standard_normal((3, 7)).astype("f4") for _ in range(64)]
    found = checked(lambda *x: tuple(f.add(f.silu(a), 1.0) for a in x), *arrays, passes=["batch"])
    assert found == ["silu of shape [3, 7], 64 times", "add of shape [3, 7], 64 times"]
    fused = graph.fewer(graph.trace(lambda *x: tuple(f.add(f.silu(a), 1.0) for a in x), *arrays))
    assert steps(fused) == ["silu+add of shape [3, 7], 64 times"]


def test_64_slices_of_one_array_are_one_launch():
    x = numpy.random.default_rng(1).standard_normal((64, 5, 8)).astype("f4")
    y = numpy.random.default_rng(2).standard_normal((64, 8)).astype("f4")
    found = checked(lambda x, y: tuple(gate(x[i], y[i]) for i in range(64)), x, y)
    assert len(found) == 1 and found[0].endswith("of shape [5, 8], 64 times")
    out = numpy.zeros((65, 5, 8), "f4")

    def written(x, y, out):
        for i in range(64):
            gate(x[i], y[i], out=out[i])
        return out

    captured = ptxgen.capture(written, x, y, out, passes=graph.fewer)
    assert len(captured.program.steps) == 1
    captured(x, y, out)
    assert (out[:64].view("u4") == gate(x, y[:, None]).view("u4")).all() and not out[64].any()

    def columns(x, out):
        for i in range(8):
            f.exp(x[..., i * 4 : i * 4 + 4], out=out[..., i * 4 : i * 4 + 4])
        return out

    x, out = x.reshape(64, 40)[:, :33], numpy.zeros((64, 33), "f4")
    captured = ptxgen.capture(columns, x, out, passes=graph.fewer)
    assert len(captured.program.steps) == 1
    captured(x, out)
    assert (out[:, :32] == f.exp(x[:, :32])).all() and not out[:, 32].any()


def test_scalars_dtypes_and_results_of_copies_are_their_own():
    rng = numpy.random.default_rng(3)
    arrays = [rng.standard_normal(33).astype("f2") for _ in range(5)]
    both = ptxgen.pointwise(lambda x, s: (x * s, x > s))

    def function(*arrays):
        return tuple(y for i, x in enumerate(arrays) for y in both(x, i / 2))

    assert checked(function, *arrays) == ["<lambda> of shape [33], 5 times"]


def test_copies_in_place_read_what_they_overwrite():
    b = ProgramBuilder(OPERATIONS)
    arrays = [b.input(f"x{i}", imagined((9,), "float32"), written=True) for i in range(3)]
    for x in arrays:
        b.exp(x, out=x)
    assert steps(graph.apply(b.finish(arrays), ["batch"])[0]) == ["exp of shape [9], 3 times"]


def test_slices_that_share_bytes_stay_apart():
    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((6, 9), "float32"))
    y = b.input("y", imagined((6, 9), "float32"), written=True)
    for start in (0, 3, 5):  # each begins within the one before it
        b.exp(b.narrow(x, 1, start, 4), out=b.narrow(y, 1, start, 4))
    after = graph.apply(b.finish(y), ["batch"])[0]
    assert steps(after) == ["exp of shape [6, 4]"] * 3


def test_batches_are_saved_and_loaded(tmp_path):
    arrays = [numpy.random.default_rng(i).standard_normal((3, 5)).astype("f4") for i in range(5)]

    def function(*x):
        return tuple(f.mul(f.exp(a), i + 0.5) for i, a in enumerate(x))

    captured = ptxgen.capture(function, *arrays, passes=graph.fewer)
    assert len(captured.program.steps) == 1
    captured.save(tmp_path / "batch")
    loaded = ptxgen.load(tmp_path / "batch")
    for got, expected in zip(loaded(*arrays), function(*arrays), strict=True):
        assert (got == expected).all()


@pytest.mark.parametrize("change", ["chain", "shape", "dtype", "between", "over"])
def test_steps_that_differ_or_depend_stay_apart(change):
    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((8, 8), "float32"))
    y = b.input("y", imagined((8, 8), "float32"), written=True)
    first = b.exp(x)
    if change == "between":  # y is made between the two, of the first's result
        y = b.softmax(first)
    second = {
        "chain": lambda: b.exp(first),
        "shape": lambda: b.exp(b.narrow(y, 0, 0, 4)),
        "dtype": lambda: b.exp(y, out_dtype="bfloat16"),
        "between": lambda: b.exp(y),
        "over": lambda: b.exp(y, out=first),
    }[change]()
    after = graph.apply(b.finish((first, second)), ["batch"])[0]
    assert not any("times" in step for step in steps(after))


def test_a_step_moves_to_a_later_one_but_not_past_its_readers():
    b = ProgramBuilder(OPERATIONS)
    x, y = (b.input(n, imagined((8, 8), "float32")) for n in "xy")
    first = b.exp(x)
    second = b.exp(b.softmax(y))
    after = graph.apply(b.finish((first, second)), ["batch"])[0]
    assert steps(after) == ["softmax M=8 N=8", "exp of shape [8, 8], 2 times"]
    b = ProgramBuilder(OPERATIONS)
    x, y = (b.input(n, imagined((8, 8), "float32")) for n in "xy")
    first = b.exp(x)
    of = b.softmax(first)
    after = graph.apply(b.finish((of, b.exp(b.add(b.softmax(y), of)))), ["batch"])[0]
    assert len(after.steps) == 5


def test_long_steps_and_more_than_64_are_several_launches():
    b = ProgramBuilder(OPERATIONS)
    arrays = [b.input(f"x{i}", imagined((4,), "float32")) for i in range(COPIES_MAX + 3)]
    after = graph.apply(b.finish([b.exp(x) for x in arrays]), ["batch"])[0]
    assert sorted(steps(after)) == ["exp of shape [4], 3 times", "exp of shape [4], 64 times"]
    b, count = ProgramBuilder(OPERATIONS), batch.BYTES_MAX // 8
    arrays = [b.input(f"x{i}", imagined((count,), "float32")) for i in range(2)]
    assert len(graph.apply(b.finish([b.exp(x) for x in arrays]), ["batch"])[0].steps) == 2


def test_sixteen_operands_and_a_result_are_one_step():
    """And eighteen arrays are two."""

    def total(*arrays):
        found = arrays[0]
        for x in arrays[1:]:
            found = f.add(found, x)
        return found

    for count, expected in ((16, 1), (17, 2)):
        arrays = [numpy.full((3, 5), i, "f4") for i in range(count)]
        program = graph.fewer(graph.trace(total, *arrays))
        assert len(program.steps) == expected
        got = ptxgen.capture(total, *arrays, passes=graph.fewer)(*arrays)
        assert (got == sum(range(count))).all()
