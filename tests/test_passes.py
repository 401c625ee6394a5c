"""Passes over programs: none moves a bit, and each says what it did."""

from __future__ import annotations

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import imagined
from ptxgen.program.build import ProgramBuilder


def program(function, *shapes):
    """A program of functions of ptxgen, unchanged."""
    return graph.trace(function, *(numpy.zeros(s, "f4") for s in shapes))


def steps(of):
    return [step.problem.what.split()[0] for step in of.steps]


def test_each_pass_says_what_it_did():
    def function(x, y):
        again = f.add(x, y), f.add(x, y)
        f.exp(x)
        return ptxgen.softmax(f.mul(*again)), f.copy(again[0])

    before = program(function, (4, 8), (4, 8))
    assert steps(before) == ["add", "add", "exp", "mul", "softmax", "copy"]
    for name, expected in {
        "common": ["add", "exp", "mul", "softmax", "copy"],
        "copies": ["add", "add", "exp", "mul", "softmax"],
        "fuse": ["exp", "add+add+mul+copy", "softmax"],
        "dead": ["add", "add", "mul", "softmax", "copy"],
    }.items():
        after, (done,) = graph.apply(before, [name])
        assert sorted(steps(after)) == sorted(expected)
        assert done.steps == (6, len(expected))
        assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    after, _ = graph.apply(before)
    assert steps(after) == ["add+mul", "softmax"]
    assert "softmax" in str(after)


def test_fusion_keeps_what_others_read():
    def function(x):
        y = f.mul(x, 2.0)
        z = f.add(y, 1.0)
        return ptxgen.softmax(y), z, f.sub(z.T, y.T)

    after, _ = graph.apply(program(function, (4, 8)))
    assert steps(after) == ["mul+add+sub", "softmax"]
    assert len(after.steps[0].writes()) == 3


def test_a_view_whose_steps_carry_is_read():
    def function(x):
        y, z = f.mul(x.T, 2.0), f.mul(x.T, 3.0)
        return f.add(y.reshape(32)[1:25], 1.0), f.add(z.reshape(32)[4:28], 1.0)

    x = numpy.arange(32, dtype="f4").reshape(4, 8)
    with ptxgen.use_device("cpu"):
        captured = ptxgen.capture(function, x, passes=graph.fewer)
        found = captured(x)
    assert (found[0] == x.T.reshape(32)[1:25] * 2 + 1).all()
    assert (found[1] == x.T.reshape(32)[4:28] * 3 + 1).all()
    assert sorted(steps(captured.program)) == ["add", "mul", "mul+add"]


def test_a_copy_stays_where_what_it_is_of_changes():
    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((4, 8), "float32"))
    kept = b.mul(x, 2.0)
    copy = b.copied(kept)
    b.fill(kept, 1.0, out=kept)
    before = b.finish(b.softmax(b.add(kept, copy)))
    after, _ = graph.apply(before, ["common", "copies", "dead"])
    assert steps(after) == steps(before) == ["mul", "copy", "fill", "add", "softmax"]


UNARY = {
    "scale": lambda x: f.mul(x, 0.3),
    "exp": lambda x: f.exp(x),
    "half": lambda x: f.cast(f.mul(f.cast(x, "bf16"), 0.3), "f32"),
    "shifted": lambda x: f.add(x.reshape(48)[1:25], x.reshape(48)[:24]),
    "softmax": lambda x: ptxgen.softmax(x),
    "sum": lambda x: f.add(x, ptxgen.sum(x, axis=0)),
    "mean": lambda x: f.sub(x, ptxgen.mean(x, axis=-1, keepdims=True)),
    "copy": lambda x: f.copy(x),
    "turned": lambda x: f.copy(x.swapaxes(0, 2)).swapaxes(0, 2),
    "split": lambda x: f.add(x.reshape(4, 3, 2, 2), x.reshape(2, 2, 3, 2, 2)[0, :, :1][0, 0]),
    "merged": lambda x: f.mul(x.reshape(12, 4), 2.0),
    "folded": lambda x: f.add(x.reshape(48)[:24], x.reshape(48)[24:]),
    "both": lambda x: f.add(x.reshape(4, 12), x.reshape(12, 4).T),
    "strided": lambda x: f.mul(x.reshape(24, 2)[:, 1:], x.reshape(24, 2)[:, :1]),
    "halves": lambda x: ptxgen.layout.concat((x[:, :1], x[:, 1:]), 1),
    "row": lambda x: f.add(x, x[:1, :1]),
}
BINARY = {"add": lambda x, y: f.add(x, y), "mul": lambda x, y: f.mul(x, y)}
names = st.lists(st.sampled_from([*UNARY, *BINARY]), min_size=2, max_size=8)


def full(x):
    """As many elements as the others, in their shape."""
    count = numpy.prod(x.shape)
    if count == 24:
        x = ptxgen.layout.concat((x.reshape(24), x.reshape(24)), 0)
    return x.reshape(4, 3, 4)


@settings(max_examples=40)
@given(st.data(), names)
def test_random_programs_keep_their_bits(data, names):
    places = [data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9))) for _ in names]
    returned = data.draw(st.sets(st.integers(0, len(names)), max_size=2))

    def function(x, y):
        found = [x, y]
        for name, (i, j) in zip(names, places, strict=True):
            a, b = found[i % len(found)], found[j % len(found)]
            found.append(full(UNARY[name](a)) if name in UNARY else BINARY[name](a, b))
        return [f.mul(x, 1.0) for x in (found[-1], *(found[i] for i in sorted(returned)))]

    rng = numpy.random.default_rng(0)
    x, y = (rng.standard_normal((4, 3, 4)).astype("f4") for _ in range(2))
    chosen = data.draw(st.sets(st.sampled_from(list(graph.PASSES))))
    with ptxgen.use_device("cpu"):
        expected = ptxgen.capture(function, x, y)(x, y)
        for done in (graph.fewer, lambda p: graph.apply(p, chosen)[0]):
            found = ptxgen.capture(function, x, y, passes=done)(x, y)
            for a, b in zip(_all(expected), _all(found), strict=True):
                assert a.tobytes() == b.tobytes()


def _all(found):
    return found if isinstance(found, tuple) else (found,)
