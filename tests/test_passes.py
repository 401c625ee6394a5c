"""Passes over programs: none moves a bit, and each says what it did."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.ops import OPERATIONS
from ptxgen.program.arena import check, least, place
from ptxgen.program.buffer import imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.execute import lives
from ptxgen.program.operation import Op
from ptxgen.program.parameters import ARRAY, Parameter


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


def test_what_was_stored_in_16_bits_is_rounded_as_it_was():
    """What a square in 16 bits leaves of one that is not rounded: 0, were it not."""

    def function(x):
        return f.fma(x, x, f.neg(f.mul(x, x)))

    x = numpy.random.default_rng(0).standard_normal(64).astype("f2")
    after, _ = graph.apply(graph.trace(function, x), ["fuse"])
    assert steps(after) == ["mul+neg+fma"]
    fused = ptxgen.capture(function, x, passes=lambda p: graph.apply(p, ["fuse"])[0])(x)
    square = (x * x).astype("f4")
    exact = x.astype("f4") * x.astype("f4") - square
    assert numpy.count_nonzero(exact) and numpy.array_equal(fused, exact.astype("f2"))


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


def test_what_is_written_to_a_callers_memory_is_written_at_once():
    b = ProgramBuilder(OPERATIONS)
    x, y = (b.input(n, imagined((4, 8), "float32"), written=n == "x") for n in "xy")
    old = b.softmax(x)
    new = b.copied(x)  # a version of x, of which a row is another
    b.copied(b.add(x.one(0, 1), y.one(0, 2)), new.one(0, 1))
    read = b.softmax(new)
    b.copied(new, x)
    before = b.finish((old, read, b.softmax(x)))
    after, (done,) = graph.apply(before, ["inplace"])
    assert steps(after) == ["softmax", "add", "softmax", "softmax"]
    assert {m.name for s in after.steps for m in {w.memory for w in s.writes()}} >= {"x"}
    assert done.steps == (7, 4)


def test_what_is_read_later_is_not_written_over():
    for late in ("x", "part", "copy"):
        b = ProgramBuilder(OPERATIONS)
        x = b.input("x", imagined((4, 8), "float32"), written=True)
        new = b.copied(x)
        b.fill(new.one(0, 1), 1.0, out=new.one(0, 1))
        found = b.softmax(x if late == "x" else x.narrowed(0, 1, 2) if late == "part" else new)
        if late == "copy":
            b.fill(new.one(0, 2), 2.0, out=new.one(0, 2))
            b.copied(new, x)
            b.fill(new.one(0, 3), 3.0, out=new.one(0, 3))
            found = b.softmax(new)
        else:
            b.copied(new, x)
        before = b.finish(found)
        assert steps(graph.apply(before, ["inplace"])[0]) == steps(before)


@pytest.mark.parametrize("late", ["same", "x", "row"])
def test_what_is_made_of_an_argument_is_written_there_where_no_other_element_is_read(late):
    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((4, 8), "float32"), written=True)
    new = b.add(x, x.narrowed(0, 0, 1).expanded((4, 8)) if late == "row" else x)
    found = b.softmax(x if late == "x" else new)
    b.copied(new, x)
    after, _ = graph.apply(b.finish(found), ["inplace"])
    assert steps(after) == ["add", "softmax", *["copy"] * (late != "same")]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "native_rms_norm", "native_layer_norm"])
def test_sums_are_made_by_the_norm_that_reads_them(name, dtype):
    """Of uneven rows, with specials; the sum is returned, and read again."""
    vectors = ("weight",) if "rms" in name else ("weight", "bias")
    seen = []

    def lower(b, /, x, y, **given):
        total = b.add(x, y, out_dtype=dtype)
        made = b.rows(name, total, *given.values())
        return made[0] if "native" in name else made, total, b.exp(total, out_dtype=dtype)

    def found(passes):
        def done(program):
            seen.append(steps(graph.apply(program, passes)[0]))
            return graph.apply(program, passes)[0]

        takes = tuple(Parameter(n, ARRAY) for n in ("x", "y", *vectors))
        return Op(lower, name="both", takes=takes, public=False, passes=done)(*drawn)

    rng = numpy.random.default_rng(0)
    drawn = [(rng.standard_normal((3, 5, 67)) * 3).astype(dtype) for _ in range(2)]
    drawn[0][1, :4, 0] = numpy.array([numpy.inf, -numpy.inf, numpy.nan, 6e4])
    drawn += [rng.standard_normal(67).astype(dtype) for _ in vectors]
    with ptxgen.use_device("cpu"):
        pairs = zip(found(()), found(["residual"]), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in pairs)
    assert seen == [["add", name, "exp"], [f"add_{name.removeprefix('native_')}", "exp"]]


def test_a_norm_that_keeps_its_moments_makes_no_sum():
    b = ProgramBuilder(OPERATIONS)
    shapes = ("x", (4, 8)), ("y", (4, 8)), ("w", (8,))
    x, y, w = (b.input(n, imagined(s, "float32")) for n, s in shapes)
    before = b.finish(b.rows("native_rms_norm", b.add(x, y), w))
    assert steps(graph.apply(before, ["residual"])[0]) == ["add", "native_rms_norm"]
    b = ProgramBuilder(OPERATIONS)
    x, y, w = (b.input(n, imagined(s, "float32")) for n, s in shapes)
    before = b.finish(b.rows("rms_norm", b.add(x, y), b.mul(w, 2.0)))
    found = steps(graph.apply(before, ["residual"])[0])
    assert found == ["add", "mul", "rms_norm"], "the weight is made behind the sum"


def test_elementwise_steps_write_over_what_ends():
    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((4, 8), "float32"))
    first = b.softmax(x)
    second = b.exp(first)
    kept = b.exp(second)
    other = b.add(kept, kept.permuted((0, 1)))
    before = b.finish(b.softmax(b.mul(b.softmax(other), kept)))
    after, _ = graph.apply(before, ["reuse"])
    assert len(before.temporaries) == 6 and len(after.temporaries) == 3
    turned = ProgramBuilder(OPERATIONS)
    x = turned.input("x", imagined((8, 8), "float32"))
    y = turned.softmax(x)
    before = turned.finish(turned.softmax(turned.add(y, y.permuted((1, 0)))))
    assert len(graph.apply(before, ["reuse"])[0].temporaries) == 2


UNARY = {
    "scale": lambda x: f.mul(x, 0.3),
    "exp": lambda x: f.exp(x),
    "half": lambda x: f.cast(f.mul(f.cast(x, "bf16"), 0.3), "f32"),
    "shifted": lambda x: f.add(x.reshape(48)[1:25], x.reshape(48)[:24]),
    "softmax": lambda x: ptxgen.softmax(x),
    "sum": lambda x: f.add(x, ptxgen.sum(x, axis=0)),
    "mean": lambda x: f.sub(x, ptxgen.mean(x, axis=-1, keepdims=True)),
    "copy": lambda x: f.copy(x),
    "turned": lambda x: ptxgen.layout.contiguous(f.copy(x.swapaxes(0, 2)).swapaxes(0, 2)),
    "split": lambda x: f.add(x.reshape(4, 3, 2, 2), x.reshape(2, 2, 3, 2, 2)[0, :, :1][0, 0]),
    "merged": lambda x: f.mul(x.reshape(12, 4), 2.0),
    "folded": lambda x: f.add(x.reshape(48)[:24], x.reshape(48)[24:]),
    "both": lambda x: f.add(x.reshape(4, 12), x.reshape(12, 4).T),
    "strided": lambda x: f.mul(x.reshape(24, 2)[:, 1:], x.reshape(24, 2)[:, :1]),
    "halves": lambda x: ptxgen.layout.concat((x[:, :1], x[:, 1:]), 1),
    "row": lambda x: f.add(x, x[:1, :1]),
}
BINARY = {
    "add": lambda x, y: f.add(x, y),
    "mul": lambda x, y: f.mul(x, y),
    "normed": lambda x, y: ptxgen.rms_norm(f.add(x, y)),
}
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


def test_arenas_of_random_programs_are_next_to_what_lives_at_once():
    rng, ratios = numpy.random.default_rng(1), []
    for _ in range(25):
        chosen = rng.choice([*UNARY, *BINARY, *BINARY], 24)
        back = rng.integers(1, 9, (24, 2))

        def function(x, y, chosen=chosen, back=back):
            found = [x, y]
            for name, (i, j) in zip(chosen, back, strict=True):
                a, b = found[-min(i, len(found))], found[-min(j, len(found))]
                found.append(full(UNARY[name](a)) if name in UNARY else BINARY[name](a, b))
            return found[-1]

        before = program(function, (4, 3, 4), (4, 3, 4))
        for of in (before, graph.fewer(before)):
            pieces = [p._replace(nbytes=p.nbytes * 64) for p in lives(of)]
            offsets, nbytes = place(pieces)
            check(pieces, offsets)
            if pieces:
                ratios.append(nbytes / least(pieces))
    mean, worst = float(numpy.exp(numpy.mean(numpy.log(ratios)))), max(ratios)
    assert mean <= 1.05, (mean, worst)
    print(f"arenas: {mean:.3f} of what lives at once, at worst {worst:.3f}")
