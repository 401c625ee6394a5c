"""Passes over programs: none moves a bit, and each says what it did."""

from __future__ import annotations

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import draw

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import OptionError
from ptxgen.ops import OPERATIONS
from ptxgen.program.arena import SLACK_MAX, Piece, check, least, place
from ptxgen.program.buffer import imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.execute import live_ranges
from ptxgen.program.operation import Op
from ptxgen.program.parameters import ARRAY, Parameter
from ptxgen.runtime import default_device


def program(function, *shapes):
    """A program of functions of ptxgen, unchanged."""
    return graph.trace(function, *(numpy.zeros(s, "f4") for s in shapes))


def steps(of):
    return [step.problem.what.split()[0] for step in of.steps]


@pytest.mark.parametrize("old", graph.passes.RENAMED)
def test_former_names_of_passes_warn(old):
    new = graph.passes.RENAMED[old]
    with pytest.warns(DeprecationWarning, match=f"names has '{old}'; it is called '{new}'"):
        assert [name for name, _ in graph.chosen([old])] == [new]


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
        "fuse_reductions": ["exp", "add+add+mul+softmax+copy"],
        "dead": ["add", "add", "mul", "softmax", "copy"],
    }.items():
        after, (done,) = graph.apply(before, [name])
        assert sorted(steps(after)) == sorted(expected)
        assert done.steps == (6, len(expected))
        assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    after, _ = graph.apply(before)
    assert steps(after) == ["add+mul+softmax"]
    assert "softmax" in str(after)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("fuse", "names is 'fuse'; takes a list of inplace, common"),
        (3, "names is 3; takes a list of"),
        (["fuze"], "names has 'fuze'; takes inplace, common"),
        ([["fuse"]], r"names has \['fuse'\]; takes"),
    ],
)
def test_other_names_of_passes_are_refused(names, says):
    with pytest.raises(OptionError, match=says):
        graph.apply(program(f.exp, (3,)), names)


def test_what_is_no_program_is_refused():
    for passes in (graph.apply, graph.fewer):
        with pytest.raises(OptionError, match="program is a str; takes a Program"):
            passes("x")


def test_fusion_keeps_what_others_read():
    def function(x):
        y = f.mul(x, 2.0)
        z = f.add(y, 1.0)
        return ptxgen.softmax(y), z, f.sub(z.T, y.T)

    after, _ = graph.apply(program(function, (4, 8)), ["fuse"])
    assert steps(after) == ["mul+add+sub", "softmax"]
    assert len(after.steps[0].writes()) == 3


def test_what_was_stored_in_16_bits_is_rounded_as_it_was():
    """A result stored in 16 bits is rounded in the fused step too: ``fma(x, x, -x * x)`` would be 0
    without the rounding.
    """

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


def test_what_is_read_in_two_places_of_two_places():
    """Four elements of x make one of the result."""

    def function(x):
        y = f.mul(x, 2.0)
        z = f.add(y, y[:1])
        return f.add(z[:2], z[2:])

    x = numpy.arange(32, dtype="f4").reshape(4, 8)
    after, _ = graph.apply(graph.trace(function, x), ["fuse"])
    assert steps(after) == ["mul+add+add"]
    same(function, x, passes=["fuse"])


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
def test_rows_are_computed_with_what_is_around_them(name, dtype):
    """A norm, the sum that it reads, and what reads that: of uneven rows, with specials; the sum is
    returned.
    """
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
        pairs = zip(found(()), found(["fuse_reductions"]), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in pairs)
    assert seen == [["add", name, "exp"], [f"add+{name}+exp"]]


@pytest.mark.parametrize("dtype", ["bf16", "f32", "f64"])
def test_norms_that_are_written_out_are_one_step(dtype):
    """Norms that are written out become one step, with returned roots, one a row, and weights, one
    a column.
    """
    wide = "f64" if dtype == "f64" else "f32"

    def function(x, y, w):
        total = f.add(x, y)
        h = f.cast(total, wide)
        far = f.sub(h, ptxgen.mean(h, axis=-1, keepdims=True))
        root = f.rsqrt(f.add(ptxgen.mean(f.mul(far, far), axis=-1, keepdims=True), 1e-5))
        return f.mul(w, f.cast(f.mul(far, root), dtype)), root, total

    rng = numpy.random.default_rng(0)
    of = ml_dtypes.bfloat16 if dtype == "bf16" else {"f32": "f4", "f64": "f8"}[dtype]
    x, y, w = (rng.standard_normal(s).astype(of) for s in ((3, 5, 67), (3, 5, 67), 67))
    after, _ = graph.apply(graph.trace(function, x, y, w))
    assert len(after.steps) == 2, "two means, each with what is around it"
    same(function, x, y, w, passes=["fuse", "fuse_reductions"])


def test_sums_of_rows_whose_elements_are_one_number():
    """A gradient of a broadcast: the step reads a number a row, and no elements."""

    def function(x):
        return ptxgen.sum(ptxgen.layout.contiguous(ptxgen.layout.expand(x, (6, 8))), axis=-1)

    x = numpy.random.default_rng(0).standard_normal((6, 1)).astype("f4")
    after, _ = graph.apply(graph.trace(function, x), ["fuse_reductions"])
    assert len(after.steps) == 1
    same(function, x, passes=["fuse_reductions"])


def same(function, *arrays, passes):
    """A function has the same bits with passes done."""
    with ptxgen.use_device("cpu"):
        expected = ptxgen.capture(function, *arrays)(*arrays)
        done = ptxgen.capture(function, *arrays, passes=lambda p: graph.apply(p, passes)[0])
        for a, b in zip(_all(expected), _all(done(*arrays)), strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("what", ["turned", "strided", "column", "flat", "cross", "long", "gate"])
def test_what_rows_do_not_read_stays_a_step(what):
    """Bits are the same; so many steps are left. There are as many rows as columns."""

    def function(x, w):
        if what == "turned":
            return ptxgen.softmax(ptxgen.layout.contiguous(f.mul(x.T, 2.0).T)), 1
        if what == "strided":
            return ptxgen.softmax(ptxgen.layout.contiguous(f.mul(x, 2.0)[:, ::2])), 2
        if what == "column":
            return ptxgen.rms_norm(x, f.sigmoid(w)), 1
        if what == "flat":
            y = ptxgen.softmax(x)
            return f.mul(y.reshape(-1), y.T.reshape(-1)), 2
        if what == "cross":
            y = ptxgen.softmax(x)
            return f.add(y, ptxgen.softmax(f.mul(y.T, 3.0)).T), 4
        if what == "long":
            return ptxgen.softmax(f.mul(x, 2.0)), 2
        y = ptxgen.softmax(x)
        return f.mul(f.exp(y), w), 1

    rng = numpy.random.default_rng(0)
    size = 1, (1 << 14) + 8
    x = rng.standard_normal(size if what == "long" else (8, 8)).astype("f4")
    w = rng.standard_normal(8).astype("f4")
    left = []

    def found(x, w):
        y, count = function(x, w)
        left.append(count)
        return y

    after, _ = graph.apply(graph.trace(found, x, w))
    assert len(after.steps) == left[0]
    same(found, x, w, passes=["fuse_reductions"])


def exchanged(x):
    """Halves of rows in each other's place, one of them negated."""
    return ptxgen.layout.concat((f.neg(x[..., 6:]), x[..., :6]), -1)


def thirds(x, y):
    parts = f.neg(x[..., 8:]), f.exp(x[..., :4]), x[..., 4:8]
    return f.mul(ptxgen.layout.concat(parts, -1), y)


PARTS = {
    "halves": (1, lambda x, y: f.add(f.mul(x, y), f.mul(exchanged(x), y))),
    "thirds": (1, thirds),
    "turned": (1, lambda x, y: f.add(exchanged(x).T, y.T)),
    "other rows": (1, lambda x, y: f.mul(ptxgen.layout.concat((x[3:], y[:3]), 0), 2.0)),
    "of one another": (1, lambda x, y: f.mul(exchanged(exchanged(x)), y)),
    "uneven": (3, lambda x, y: f.mul(ptxgen.layout.concat((x[..., 5:], y[..., :5]), -1), y)),
    "some of it": (1, lambda x, y: f.mul(exchanged(x)[..., 1:11], 2.0)),
    "off the middle": (2, lambda x, y: f.mul(exchanged(x)[..., 1:9], 2.0)),
    "beside itself": (1, lambda x, y: f.add(exchanged(x)[..., :6], exchanged(x)[..., 6:])),
    "read twice": (3, lambda x, y: (lambda z: (f.mul(z, y), ptxgen.softmax(z)))(exchanged(x))),
    "returned": (2, lambda x, y: (lambda z: (f.mul(z, y), z))(exchanged(x))),
}


@pytest.mark.parametrize("name", PARTS)
def test_concatenations_are_read_in_parts(name):
    """Concatenations become one step where the parts are equal and nobody else reads them."""
    count, function = PARTS[name]
    rng = numpy.random.default_rng(0)
    x, y = (rng.standard_normal((6, 12)).astype("f4") for _ in range(2))
    assert len(graph.apply(graph.trace(function, x, y))[0].steps) == count
    same(function, x, y, passes=["common", "fuse", "fuse_concat"])
    same(function, x, y, passes=["fuse_concat"])


def test_a_part_is_not_read_where_what_it_is_of_changes():
    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((4, 8), "float32"))
    kept = b.softmax(x)
    joined = b.concat((kept.narrowed(1, 4, 4), kept.narrowed(1, 0, 4)), 1)
    b.fill(kept, 1.0, out=kept)
    before = b.finish((b.mul(joined, 2.0), b.softmax(kept)))
    assert steps(graph.apply(before, ["fuse_concat"])[0]) == steps(before)


def test_what_is_written_anew_is_no_part():
    """Two writes of the same elements stay two, as the last one counts."""
    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((4, 8), "float32"))
    written = b.mul(x, 3.0)
    b.neg(x, out=written)
    before = b.finish((b.mul(written, 2.0),))
    assert steps(graph.apply(before, ["fuse_concat"])[0]) == steps(before)


@pytest.mark.parametrize("what", ["both", "kept", "turned", "tokens", "keys"])
def test_attention_reads_repeated_heads_once(what):
    """Keys and values of 2 heads, each repeated for 3 of 6; what is repeated otherwise stays."""
    heads, by, keys, size = 2, 3, 5, 16

    def repeated(x):
        if what == "turned":  # head 0 and 1 in turns
            wide = ptxgen.layout.expand(x.reshape(1, 1, heads, keys, size), (1, by, *x.shape[1:]))
        elif what == "tokens":  # each key for as many heads: no token of its own
            wide = ptxgen.layout.expand(x[:, :1, :1], (1, heads * by, keys, size))
        else:
            lead = x.reshape(1, heads, 1, keys, size)
            wide = ptxgen.layout.expand(lead, (1, heads, by, keys, size))
        return ptxgen.layout.contiguous(wide).reshape(1, heads * by, keys, size)

    def function(q, k, v, mask):
        k, v = f.mul(k, 2.0), f.mul(v, 2.0)
        wide = repeated(k)
        found = ptxgen.attention(q, wide, wide if what == "keys" else repeated(v), mask=mask)
        return (found, f.mul(wide, 2.0)) if what == "kept" else found

    rng = numpy.random.default_rng(0)
    q = rng.standard_normal((1, heads * by, 3, size)).astype("f2")
    k, v = (rng.standard_normal((1, heads, keys, size)).astype("f2") for _ in range(2))
    mask = rng.random((1, heads * by, 3, keys)) < 0.7
    before = graph.trace(function, q, k, v, mask)
    after, _ = graph.apply(before, ["grouped_queries", "dead"])
    found = next(s for s in after.steps if s.problem.table[0] == "attention")
    group = dict(found.problem.scalars)["GROUP"]
    gone = {"both": 2, "keys": 2, "kept": 1}
    assert group == (by if what in gone else 1)
    same(function, q, k, v, mask, passes=["common", "grouped_queries", "dead"])
    same(function, q, k, v, mask, passes=list(graph.PASSES))


@settings(max_examples=12)
@given(st.data())
def test_batches_of_products_read_repeated_heads_once(data):
    """Attention written out: as rows of one product where queries of neighbouring heads lie so."""
    draw, dtype = data.draw, data.draw(st.sampled_from(["f2", "f4"]))
    batch, heads, by = (draw(st.integers(1, n)) for n in (2, 3, 3))
    rows, size = draw(st.sampled_from([1, 3])), draw(st.sampled_from([5, 16]))
    keys = draw(st.integers(2, 9))  # of one key weights are a column, read as a row
    turned, tokens, kept, apart = (draw(st.booleans()) for _ in range(4))

    def repeated(x):
        if tokens:  # as a projection has them: [batch, tokens, heads, size]
            x = f.copy(x.swapaxes(1, 2)).swapaxes(1, 2)
        lead = x.reshape(batch, 1, heads, keys, size) if turned else x[:, :, None]
        shape = (batch, by, heads) if turned else (batch, heads, by)
        wide = ptxgen.layout.expand(lead, (*shape, keys, size))
        return ptxgen.layout.contiguous(wide).reshape(batch, heads * by, keys, size)

    def function(q, k, v):
        k, v = repeated(f.mul(k, 2.0)), repeated(f.mul(v, 2.0))
        if apart:  # a query's rows do not follow the last one's
            q = f.mul(q.reshape(batch, rows, heads * by, size), 1.0).swapaxes(1, 2)
        scores = ptxgen.matmul(q, k.swapaxes(2, 3))
        found = ptxgen.matmul(ptxgen.softmax(f.tanh(scores)), v)
        return (found, f.mul(k, 2.0)) if kept else found

    rng = numpy.random.default_rng(0)
    shapes = (batch, heads * by, rows, size), *((batch, heads, keys, size),) * 2
    given = [rng.standard_normal(s).astype(dtype) for s in shapes]
    after, _ = graph.apply(graph.trace(function, *given), ["common", "grouped_queries", "dead"])
    products = [s for s in after.steps if s.problem.what.startswith("matmul")]
    shared = by > 1 and (heads == 1 or not turned)
    found = [dict(s.problem.values)["M"] // rows for s in products]
    assert found == [by if shared and (rows == 1 or not apart) else 1, by if shared else 1]
    same(function, *given, passes=["common", "grouped_queries", "dead"])
    same(function, *given, passes=list(graph.PASSES))


@pytest.mark.parametrize("changed", [False, True])
def test_attention_reads_copies_where_heads_change_behind_them(changed):
    b = ProgramBuilder(OPERATIONS)
    q = b.input("q", imagined((1, 4, 3, 16), "float32"))
    k = b.mul(b.input("k", imagined((1, 2, 5, 16), "float32")), 2.0)
    wide = b.copied(k.unsqueezed(2).expanded((1, 2, 2, 5, 16))).reshaped((1, 4, 5, 16))
    if changed:
        b.fill(k, 1.0, out=k)
    before = b.finish((b.attention(q, wide, wide), b.softmax(k)))
    after = steps(graph.apply(before, ["grouped_queries", "dead"])[0])
    assert after == [s for s in steps(before) if changed or s != "copy"]


def test_elementwise_steps_that_read_the_same_are_one():
    """Pointwise steps merge if both read all of a shared input and neither reads the other's
    result.
    """

    def function(x, y, w):
        first = f.mul(x, f.sigmoid(y))
        behind = ptxgen.softmax(first)
        return behind, f.mul(f.mul(x, w), y), f.add(behind, y), f.mul(w, 2.0)

    rng = numpy.random.default_rng(0)
    x, y, w = (rng.standard_normal(s).astype("f4") for s in ((6, 8), (6, 8), 8))
    before = graph.apply(graph.trace(function, x, y, w), ["fuse"])[0]
    after, _ = graph.apply(before, ["fuse_horizontal"])
    assert steps(before) == ["sigmoid+mul", "softmax", "mul+mul", "add", "mul"]
    assert steps(after) == ["sigmoid+mul+mul+mul", "softmax", "add", "mul"]
    same(function, x, y, w, passes=["fuse", "fuse_horizontal"])


@pytest.mark.parametrize("turned", [False, True])
def test_what_is_written_over_is_read_by_the_same_thread_or_by_a_step_of_its_own(turned):
    b = ProgramBuilder(OPERATIONS)
    x, y = (b.input(n, imagined((8, 8), "float32"), written=n == "x") for n in "xy")
    first = b.add(x.permuted((1, 0)) if turned else x, y)
    b.mul(y, 2.0, out=x)
    after = steps(graph.apply(b.finish(b.softmax(first)), ["fuse_horizontal"])[0])
    assert after == ["add", "mul", "softmax"]


def test_a_norm_whose_weight_is_made_behind_the_sum():
    b = ProgramBuilder(OPERATIONS)
    shapes = ("x", (4, 8)), ("y", (4, 8)), ("w", (8,))
    x, y, w = (b.input(n, imagined(s, "float32")) for n, s in shapes)
    before = b.finish(b.rows("rms_norm", b.add(x, y), b.sigmoid(w)))
    assert steps(graph.apply(before, ["fuse_reductions"])[0]) == ["sigmoid+add+rms_norm"]
    before = b.finish(b.rows("rms_norm", b.add(x, y), b.mul(w, 2.0)))
    assert steps(graph.apply(before, ["fuse_reductions"])[0])[-1:] == ["mul+add+rms_norm"]


def weighted(rows, columns):
    """A product of each row with a weight that takes long to make."""
    b = ProgramBuilder(OPERATIONS)
    shapes = ("x", (rows, columns)), ("w", (columns,))
    x, w = (b.input(n, imagined(s, "bfloat16")) for n, s in shapes)
    return b.finish(b.mul(x, b.gelu(w)))


def test_what_is_broadcast_is_computed_again_where_that_is_faster():
    """A weight of few rows is; of many rows that takes longer than to store it."""
    after, (done,) = graph.apply(weighted(4, 64), ["fuse"])
    assert steps(after) == ["gelu+mul"] and done.us[1] < done.us[0]
    after, (done,) = graph.apply(weighted(1 << 16, 4096), ["fuse"])
    assert steps(after) == ["gelu", "mul"] and done.us[1] == done.us[0]


def test_what_repeats_nothing_is_fused_first():
    """Factors that repeat nothing are fused before broadcast ones, which would else be in
    the way.
    """
    b = ProgramBuilder(OPERATIONS)
    shapes = ("x", (4096, 4096)), ("w", (4096,))
    x, w = (b.input(n, imagined(s, "bfloat16")) for n, s in shapes)
    before = b.finish(b.mul(b.gelu(x), b.gelu(w)))
    after, (done,) = graph.apply(before, ["fuse"])
    assert steps(after) == ["gelu", "gelu+mul"] and done.us[1] < done.us[0]


def test_done_says_the_time_before_and_after():
    before = program(lambda x: ptxgen.softmax(f.mul(x, 2.0)), (4, 8))
    after, done = graph.apply(before)
    device = default_device()
    first, last = (sum(s.predicted(device) for s in p.steps) for p in (before, after))
    assert (done[0].us[0], done[-1].us[1]) == (first, last) and last < first
    rows = next(d for d in done if d.name == "fuse_reductions")
    assert (
        str(rows)
        == f"fuse_reductions: 2 -> 1 steps, 512 -> 256 bytes, {first:.1f} -> {last:.1f} µs"
    )
    both = graph.Done.together("fuse_reductions", (rows, rows))
    assert both == graph.Done("fuse_reductions", (4, 2), (1024, 512), (2 * first, 2 * last))


def test_bytes_of_what_is_broadcast_are_counted_once():
    before = program(lambda x, w: f.mul(f.add(x, 1.0), w), (64, 32), (32,))
    assert graph.apply(before, ["fuse"])[0].steps[0].nbytes == (2 * 64 * 32 + 32) * 4


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


def _all(found):
    return found if isinstance(found, tuple) else (found,)


def test_arenas_of_random_programs_are_next_to_what_lives_at_once():
    ratios = []
    for seed in range(25):
        drawn = draw(seed, lines=24)
        before = graph.trace(drawn, *drawn.arrays())
        for of in (before, graph.fewer(before)):
            pieces = [p._replace(nbytes=p.nbytes * 64) for p in live_ranges(of)]
            offsets, nbytes = place(pieces)
            check(pieces, offsets)
            if pieces:
                ratios.append(nbytes / least(pieces))
    mean, worst = float(numpy.exp(numpy.mean(numpy.log(ratios)))), max(ratios)
    assert mean <= 1.01 and worst <= SLACK_MAX, (mean, worst)
    print(f"arenas: {mean:.3f} of what lives at once, at worst {worst:.3f}")


def test_arenas_of_pieces_of_a_few_sizes():
    """Arenas stay near the least size for pieces of a few sizes, as in a training step, where one
    piece in the wrong place leaves no room for another.
    """
    rng, number = numpy.random.default_rng(0), 24
    for _ in range(100):
        first, more = rng.integers(0, number, number), rng.integers(0, number // 3, number)
        sizes = rng.choice([1, 4, 8, 14], number) << 20
        pieces = [Piece(*map(int, p)) for p in zip(sizes, first, first + more, strict=True)]
        found = offsets, nbytes = place(pieces)
        check(pieces, offsets)
        assert nbytes <= SLACK_MAX * least(pieces), pieces
        assert place(pieces) == found
