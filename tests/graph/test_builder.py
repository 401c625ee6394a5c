"""Programs by hand have the bits of the operations that their nodes are."""

from __future__ import annotations

import numpy as np
import pytest
from bits import difference
from random_programs import draw, mismatch
from test_capture import drawn_calls, several, with_arrays

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import DtypeError, OptionError, ShapeError, TraceError
from ptxgen.ops import OPERATIONS

# Of each kind one: all go one way, by which tests/program/test_capture.py follows every operation.
NODES = ("attention", "cross_entropy", "embedding", "functions.clamp", "functions.where")
NODES += ("group_norm", "layout.concat", "layout.rope", "linear_wgrad", "matmul", "topk", "var")
RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


def drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("name", NODES)
def test_operations_are_nodes(name: str) -> None:
    """Operations are builder methods by name, with the options of a call, and have the
    call's bits.
    """
    own_name = name.rpartition(".")[2]
    for seed, given, arrays in drawn_calls(name):
        if any(isinstance(x, np.generic) for x in given.values()):
            continue  # NumPy's scalars are arrays that are no nodes
        arrays = {p: np.ascontiguousarray(x) for p, x in arrays.items()}
        wanted = several(
            OPERATIONS[own_name].function(**with_arrays(given, arrays, arrays.values()))
        )
        b = graph.Builder(name)
        own = [b.input(f"x{i}", x.shape, x.dtype) for i, x in enumerate(arrays.values())]
        nodes = several(getattr(b, own_name)(**with_arrays(given, arrays, own)))
        b.output(*(n for n in nodes if n is not None))
        found = several(ptxgen.capture(b.program())(*arrays.values()))
        for got, one in zip(found, [w for w in wanted if w is not None], strict=True):
            assert not difference(got, one), f"{name} {seed}"
        return
    raise AssertionError("no call has arrays")


def test_views_and_numbers(tmp_path) -> None:
    b = graph.Builder("mixed", device="cpu")
    x, w = b.input("x", (4, 6, 8), "f32"), b.input("w", [8], np.float32)
    y = b.add(b.mul(x, 2.0), b.expand(w, (4, 6, 8)))
    z = b.slice(b.permute(y, (2, 0, 1)), 2, 1, 6, 2)
    s = b.softmax(b.reshape(z, (-1, 3)))
    b.output(s, b.cast(z, "bfloat16"), b.concat((s, s), 0))
    b.output(y + 1.0)
    program = b.program()
    assert [m.name for m in program.inputs] == ["x", "w"] and program is b.program()
    captured = ptxgen.capture(program, passes=graph.fewer)
    a, c = drawn(4, 6, 8), drawn(8)
    first = f.add(f.mul(a, 2.0), c)
    turned = np.ascontiguousarray(first.transpose(2, 0, 1)[:, :, 1:6:2])
    soft = ptxgen.softmax(turned.reshape(-1, 3))
    expected = soft, f.cast(turned, "bf16"), np.concatenate((soft, soft)), f.add(first, 1.0)
    captured.save(tmp_path / "it")
    for run in (captured, ptxgen.load(tmp_path / "it")):
        for got, wanted in zip(run(a, c), expected, strict=True):
            assert not difference(got, wanted)


def test_random_programs_are_nodes() -> None:
    """Random programs keep their bits through all passes, each of which finds something to do."""
    did = set()
    for seed in range(12):
        drawn = draw(seed)
        arrays, b = drawn.arrays(), graph.Builder(device="cpu")
        nodes = [b.input(f"x{i}", x.shape, x.dtype) for i, x in enumerate(arrays)]
        b.output(*b.call(drawn, *nodes))
        program = b.program()
        for name, each in graph.PASSES.items():
            before, program = program, each(program)
            sizes = [(len(p.steps), len(p.temporaries)) for p in (before, program)]
            did |= {name} if sizes[0] != sizes[1] else set()
        captured = ptxgen.capture(b.program(), passes=graph.fewer)
        assert not mismatch(captured(*arrays), drawn(*arrays)), drawn
    assert did >= {"common", "copies", "dead", "fuse", "fuse_reductions"}, did


def test_a_function_of_ones_own_is_a_node() -> None:
    b = graph.Builder()
    x = b.input("x", (5,), "f32")
    b.output(b.call(ptxgen.pointwise(lambda x: x * x + 1.0), x))
    a = drawn(5)
    assert not difference(ptxgen.capture(b.program())(a), a * a + np.float32(1))


def test_what_does_not_fit_is_refused_when_it_is_added() -> None:
    b, other = graph.Builder(), graph.Builder()
    x, w = b.input("x", (4, 8), "f32"), b.input("w", (6, 5), "f32")
    theirs = other.input("x", (4, 8), "f32")
    for asked, error, says in [
        (lambda: b.linear(x, w, layout="kn"), ShapeError, r"w has shape \[6, 5\]"),
        (lambda: b.add(x, w), ShapeError, r"\[4, 8\]"),
        (lambda: b.softmax(x, axis=3), ShapeError, "axis"),
        (lambda: b.softmax(x, axes=1), TypeError, "axes"),
        (lambda: b.softmax(x, stream=3), OptionError, "stream is given"),
        (
            lambda: b.linear(x, np.ones((8, 5), "f4"), layout="kn"),
            TraceError,
            "w is an array; takes nodes",
        ),
        (lambda: b.softmax(drawn(3)), TraceError, "softmax is given no node"),
        (lambda: b.add(x, theirs), TraceError, "add is given .* a node of another program"),
        (lambda: b.output(3), DtypeError, "output is given a int"),
        (lambda: b.call("softmin", x), OptionError, "no operation 'softmin'; .* softmax"),
        (lambda: b.softmin(x), AttributeError, "no operation 'softmin'; there are softmax"),
        (lambda: b.input("x", (3,), "f32"), TraceError, "named 'x'; takes a name that no other"),
        (lambda: b.input("y", (-3,), "f32"), ShapeError, r"shape of y is \(-3,\); takes integers"),
        (lambda: b.input("y", 3, "f32"), ShapeError, "shape of y is 3; takes integers"),
        (lambda: b.input("y", (3,), None), DtypeError, "dtype of y is None"),
        (lambda: b.reshape(x, 32), ShapeError, "shape is 32; takes integers of -1 or more"),
        (lambda: b.permute(x, 1), ShapeError, "order is 1; takes integers"),
        (lambda: b.permute(x, (0, "1")), ShapeError, r"order is \(0, '1'\); takes integers"),
        (lambda: b.slice(x, 0, None, 1), ShapeError, "start is None; takes an integer"),
        (lambda: b.slice(x, 0, 0, 1, 0.5), ShapeError, "step is 0.5; takes an integer"),
        (lambda: b.expand(x, 4), ShapeError, "shape is 4; takes integers"),
        (lambda: b.call(3, x), OptionError, "operation is 3; takes a name, or a function"),
        (lambda: graph.Builder(3), OptionError, "name is 3; takes a string"),
        (lambda: b.input("y", (3,), "c32"), DtypeError, "dtype of y is 'c32'"),
        (lambda: b.reshape(x, (5, 7)), ShapeError, r"\[4, 8\] has not as many"),
        (lambda: b.permute(x, (0, 0)), ShapeError, r"order is \[0, 0\]; takes each of the axes"),
        (lambda: b.slice(x, 1, 4, 9), ShapeError, "from 4 to 9 by 1; x has 8 elements"),
        (lambda: b.expand(x, (3, 8)), ShapeError, r"does not broadcast to \[3, 8\]"),
        (other.program, TraceError, "returns nothing"),
    ]:
        with pytest.raises(error, match=says):
            asked()
    b.output(b.softmax(x))
    assert len(b.program().steps) == 1, "what was refused left nothing behind"
    with pytest.raises(TraceError, match="program is finished"):
        b.softmax(x)
