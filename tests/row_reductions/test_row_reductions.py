"""Operations over rows: bits of every operation and kernel on the CPU device, semantics, errors."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections import Counter

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16
from row_cases import NATIVE, SEED, arrays, call, check, device, over_rows

import ptxgen
from ptxgen import reference
from ptxgen.build.render import render
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.dtype import FULL, NAMES
from ptxgen.numerics.row_reductions import TABLE, formula
from ptxgen.ops import OPERATIONS
from ptxgen.ops.row_reductions import asked
from ptxgen.oracle.reduction_order import reduce
from ptxgen.oracle.row_reductions import compute
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.runtime.cpu import SMS, CpuDevice
from ptxgen.spec.reduction_stages import Plan
from ptxgen.spec.row_reductions import READ_MAX, RowSpec, facts, held, reads, way
from ptxgen.tiles import TABLES

SOFTMAX = "softmax x=bf16 > bf16"


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_operation_returns_the_bits_of_its_oracle(name):
    """Rows of more than a leaf, with a tail, some elements being special."""
    taken = [d for d in TABLE[name].dtypes if d != "bool"]
    dtype = NATIVE[FULL[taken[sorted(TABLE).index(name) % len(taken)]]]
    check(
        name, arrays(name, (3, 1032), dtype, "special" if dtype in (bfloat16, np.float32) else "")
    )


TURNS = 4


def fitting(name, dtype):
    """The routes that are right for three rows of an operation: their numbers, each with the length
    of rows that it is asked for, and the operation's variant.
    """
    row = TABLE[name]
    given = zip(row.arrays, arrays(name, (3, 8), dtype), strict=True)
    dtypes = {argument: NAMES[array.dtype.name] for argument, array in given}
    numbers = row.given({n: o.default for n, o in row.numbers.items()})
    outputs = row.outputs(dtypes[next(iter(row.arrays))], dtypes)
    variant = row.variant(dtypes, outputs, numbers)
    table, found = TABLES[("row_reductions", "down") if row.down else ("row_reductions",)], {}
    for i, route in enumerate(table.routes):
        width = 24 if route.main.capacity < 1024 else 1040
        width -= 0 if route.main.vectorized else 3
        asked = {"ROWS": 3, "COLS": width, "VECTOR": int(route.main.vectorized), "SMS": SMS}
        asked |= facts(variant)
        if route.requires.evaluate(table.space.environment(asked)):
            found[i] = width
    return found, variant, table


@functools.cache
def turns():
    """Maps (operation, turn) to a dtype, a row length and a route: of the routes that are right for
    it, the one with the fewest turns so far.
    """
    had, found, there = Counter(), {}, set()
    for turn, (number, name) in itertools.product(range(TURNS), enumerate(sorted(TABLE))):
        taken = [d for d in TABLE[name].dtypes if d != "bool"]
        dtype = NATIVE[FULL[taken[(number + turn) % len(taken)]]]
        widths, variant, table = fitting(name, dtype)
        there |= {(table.space.name, i) for i in widths}
        i = min(widths, key=lambda i: (had[table.space.name, i], i))
        had[table.space.name, i] += 1
        found[name, turn] = dtype, widths[i], table.routes[i].of(variant).name
    assert had.keys() == there and len(there) > 30, "every route has a turn"
    return found


@pytest.mark.parametrize("turn", [0, *(pytest.param(t, marks=pytest.mark.long) for t in (1, 2, 3))])
@pytest.mark.parametrize("name", sorted(TABLE))
def test_operations_have_their_bits_on_several_routes(name, turn):
    """Each operation takes some routes and dtypes in turn, each route some operations, with the
    oracle's bits.
    """
    dtype, width, route = turns()[name, turn]
    check(name, arrays(name, (3, width), dtype), route)


DENSE = [r for r in TABLES["row_reductions",].routes if r.main.part == "dense"]


@pytest.mark.parametrize("dtype", [bfloat16, np.float32])
def test_dense_rows_of_every_alignment(dtype):
    """Rows that share a word; rows aligned to 4, 8 and 16 bytes, whose lanes take their groups in
    one to four orders. The last rows are no full block.
    """
    name = NAMES[np.dtype(dtype).name]
    for cols in (1, 13, 18, 20, 24, 48, 64):
        given = arrays("log_softmax", (35, cols), dtype)[:1]
        for route in DENSE:
            if route.main.buffer_itemsize == 4:
                check("log_softmax", given, route.of(f"log_softmax x={name} > {name}").name)


@pytest.mark.parametrize(
    ("low", "strides", "dense"),
    [(0, (24, 1), 4), (8, (24, 1), READ_MAX), (0, (32, 1), READ_MAX)],
    ids=["dense", "off 16 bytes", "with gaps"],
)
def test_dense_rows_have_no_gaps(low, strides, dense):
    """Rows that begin within 16 bytes, or have gaps between them, take other kernels."""
    x = Buffer(Memory("x", INPUT, low=low), (40, 24), strides, "float32")
    y = Buffer(Memory("y", INPUT), (40, 24), (24, 1), "float32")
    variant = "softmax x=f32 > f32"
    made, _ = asked(TABLE["softmax"], variant, {"x": x}, {"out": y}, {}, 40, 24)
    values = dict(made().values)
    assert values["DENSE"] == dense
    space = TABLES["row_reductions",].space
    env = space.environment({**values, "SMS": SMS})
    fits = [r.main.buffer_itemsize for r in DENSE if r.requires.evaluate(env)]
    assert fits == ([4, 4, 8] if dense == 4 else [])


def test_the_order_of_a_sum_is_the_contracts():
    """Written again, number by number: leaves, lanes and branches."""
    rng = np.random.default_rng(SEED)
    for n in (0, 1, 9, 257, 1024, 1025, 5000, 33 * 1024 + 3):
        x = (rng.standard_normal(n) * 2.0 ** rng.integers(-20, 20, n)).astype(np.float32)
        total = np.float32(0)
        for branch_at in range(0, n, 32 * 1024):
            branch = np.float32(0)
            for leaf_at in range(branch_at, min(branch_at + 32 * 1024, n), 1024):
                lanes = [np.float32(0)] * 32
                for j in range(leaf_at, min(leaf_at + 1024, n)):
                    lanes[(j - leaf_at) // 8 % 32] += x[j]
                while len(lanes) > 1:
                    lanes = [a + b for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
                branch += lanes[0]
            total += branch
        assert reduce("sum", x[None])[0, 0] == total


def test_a_weight_that_comes_with_the_row():
    """A kernel that loads the weight with the row loads all of it, though the last warps have a
    part of a group or none.
    """
    variant = "rms_norm x=bf16 weight=bf16 eps=f32 > bf16"
    kernels = [RowSpec("held", warps, variant=variant) for warps in (2, 4, 8)]
    assert [kernel.early for kernel in kernels] == [False, True, False]
    assert not RowSpec("held", 4, variant=variant.replace("weight=bf16", "weight=f32")).early
    x, weight, *_ = arrays("rms_norm", (2, 3 * 1024 + 264), bfloat16)
    with ptxgen.use_device(device()):
        got = ptxgen.rms_norm(x, weight, kernel=kernels[1].name)
    same_bits(got, reference.rms_norm(x, weight))


def test_extremes_and_their_first_index():
    x = np.array([[1, 3, 3, -2], [-np.inf] * 4, [0.0, -0.0, 0.0, -0.0], [5, np.nan, 7, np.nan]])
    x = x.astype(np.float32)
    with ptxgen.use_device(device()):
        assert list(ptxgen.argmax(x, -1)) == [1, 0, 0, 1] == list(np.argmax(x, -1))
        assert list(ptxgen.argmin(x, -1)) == [3, 0, 0, 1] == list(np.argmin(x, -1))
        largest = ptxgen.amax(x, -1)
    assert largest[0] == 3 and largest[1] == -np.inf and np.isnan(largest[3])
    assert largest[2] == 0 and not np.signbit(largest[2])


def test_softmax_and_losses_are_what_they_are_called():
    """Softmax and losses are within 33 units of 2^-24 (2e-6) of f64.

    exp and log: 2 each; a division: 1; a sum of 500 positive numbers, 32 at a time and then by a
    tree: 16 + 5, were all its roundings alike.
    """
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((7, 500)).astype(np.float32) * 4
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    assert np.allclose(reference.softmax(x), p, rtol=2e-6, atol=0)
    assert np.allclose(reference.log_softmax(x), np.log(p), rtol=2e-6, atol=2e-6)
    target = rng.integers(0, 500, 7)
    target[2], target[3] = -100, 500
    losses = -np.log(p[np.arange(7), target % 500])
    losses[2:4] = 0
    found = reference.cross_entropy(x, target, reduction="none")
    assert np.allclose(found, losses, rtol=2e-6, atol=2e-6)
    assert np.isclose(reference.cross_entropy(x, target), losses.sum() / 6, rtol=2e-6)
    assert reference.cross_entropy(x, np.full(7, -100)) == 0
    smooth = reference.cross_entropy(x[:1], target[:1], label_smoothing=0.1)
    even = -np.log(p[0]).mean()
    assert np.isclose(smooth, 0.9 * losses[0] + 0.1 * even, rtol=4e-6)


EXPONENTIAL = (
    *("softmax", "log_softmax", "log_softmax_backward", "logsumexp_f64"),
    *("cross_entropy", "cross_entropy_backward"),
)


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_exponentials_of_float64(name):
    """Bits, with special elements among them."""
    check(name, arrays(name, (3, 1032), np.float64, "special"))


def test_float64_is_as_exact_as_float64_is():
    """Float64 results are within 2^-45 of numbers with 64 bits of mantissa.

    Differences of less than 128 are rounded by 2^-47, which their exponentials are off by, and by
    2^-52 themselves; the longest of the chains that add 3000 of them has some 40 additions.
    """
    x = np.random.default_rng(SEED).standard_normal((20, 3000)) * 10
    wide = x.astype(np.longdouble)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    total = e.sum(-1)
    lse = np.log(total) + wide.max(-1)
    near = functools.partial(np.testing.assert_allclose, rtol=2.0**-45)
    near(compute("softmax", x), (e / total[:, None]).astype(np.float64))
    near(reference.logsumexp(x), lse.astype(np.float64))
    logs = (wide - lse[:, None]).astype(np.float64)
    near(compute("log_softmax", x), logs, atol=2.0**-45)  # some of which cancel
    assert compute("cross_entropy", x, np.arange(20)).dtype == np.float64
    edge = np.array([[0, -708, -709, -800, -np.inf]])
    assert list(compute("softmax", edge)[0] > 0) == [True, True, False, False, False]


def test_logsumexp_of_float64():
    """Infinities and rows of nothing as in the other dtypes, and no dtype but its own."""
    x = np.array(
        [[-np.inf] * 3, [1, np.inf, 0], [np.nan, np.inf, 1], [-1e308, -1e308, 0], [1e3] * 3]
    )
    with ptxgen.use_device(device()):
        got = ptxgen.logsumexp(x)
        assert list(ptxgen.logsumexp(np.zeros((2, 0)))) == [-np.inf] * 2
        with pytest.raises(DtypeError, match="out_dtype is 'float32'; takes 'float64'"):
            ptxgen.logsumexp(x, out_dtype="float32")
        with pytest.raises(DtypeError, match="takes float32 or bfloat16 or float16 or float64"):
            ptxgen.logsumexp(np.ones((2, 3), int))
    same_bits(got, reference.logsumexp(x), seed=SEED, spec="logsumexp", what="float64")
    np.testing.assert_array_equal(got, [-np.inf, np.inf, np.nan, 0, 1000 + np.log(3)])


def test_far_elements_of_a_row_are_zero_not_noise():
    found = reference.softmax(np.array([[0, -87, -88.5, -1e30, -np.inf]], np.float32))
    assert found[0, 1] > 0 and not found[0, 2:].any()
    assert np.isnan(reference.softmax(np.full((1, 3), -np.inf, np.float32))).all()


def test_norms_are_what_they_are_called():
    """Norms match f64 as softmax does; where numbers up to 16 cancel, errors are relative
    to these.
    """
    rng = np.random.default_rng(SEED)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((5, 300), (300,), (300,)))
    wide = x.astype(np.float64)
    rms = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * w
    assert np.allclose(reference.rms_norm(x, w), rms, rtol=2e-6, atol=1e-6)
    d = wide - wide.mean(-1, keepdims=True)
    layer = d / np.sqrt((d**2).mean(-1, keepdims=True) + 1e-5) * w + b
    assert np.allclose(reference.layer_norm(x, w, b), layer, rtol=1e-5, atol=3e-6)
    assert np.allclose(reference.var(x, -1), wide.var(-1, ddof=1), rtol=2e-6)
    short = x.astype(bfloat16)
    out, total = reference.rms_norm(short, residual=short)
    assert (total == short + short).all() and (out == reference.rms_norm(total)).all()


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2)])
def test_axes(axis):
    x = np.random.default_rng(SEED).standard_normal((3, 4, 40)).astype(np.float32)
    with ptxgen.use_device(device()):
        for name in ("sum", "var"):
            for keepdims in (False, True):
                got = getattr(ptxgen, name)(x, axis, keepdims=keepdims)
                expected = getattr(reference, name)(x, axis, keepdims=keepdims)
                assert got.shape == expected.shape == np.sum(x, axis, keepdims=keepdims).shape
                assert (got == expected).all()
        if isinstance(axis, int):
            assert (ptxgen.softmax(x, axis) == reference.softmax(x, axis)).all()
    # both in f32: 480 numbers, partial sums below 100, a rounding of 2^-24 each: 3e-3 at most
    assert np.allclose(reference.sum(x, axis), x.sum(axis), atol=1e-4)


def test_results_go_where_they_are_wanted():
    x = np.random.default_rng(SEED).standard_normal((3, 4, 40)).astype(bfloat16)
    with ptxgen.use_device(device()):
        for axis, shape in ((-1, (3, 4)), (0, (4, 40))):
            out = np.full(shape, np.nan, np.float32)
            assert ptxgen.sum(x, axis, out=out) is out
            assert (out == reference.sum(x, axis, out_dtype="float32")).all()
        out, total = np.empty_like(x), np.empty_like(x)
        assert ptxgen.rms_norm(x, residual=x, out=(out, total))[1] is total
        assert (out == reference.rms_norm(x, residual=x)[0]).all()


def test_rows_of_nothing():
    with ptxgen.use_device(device()):
        assert (ptxgen.sum(np.zeros((2, 0), np.float32), -1) == np.zeros(2)).all()
        assert (ptxgen.prod(np.zeros((2, 0), np.float32), -1) == np.ones(2)).all()
        assert np.isnan(ptxgen.mean(np.zeros((2, 0), np.float32), -1)).all()
        assert ptxgen.sum(np.zeros((0, 5), np.int32), -1).shape == (0,)
        assert ptxgen.softmax(np.zeros((4, 0), np.float32)).shape == (4, 0)
        total = ptxgen.sum(np.full((2, 9), 2**30, np.int32))
    assert total == 18 * 2**30 and total.dtype == np.int64


def test_a_rows_bits_depend_on_that_row_alone():
    x, *_ = arrays("softmax", (9, 1100), np.float32)
    everything = call("softmax", [x])
    assert (call("softmax", [x[4:5]])[0] == everything[4]).all()
    wider = np.zeros((9, 1301), np.float32)[:, 1:1101]
    wider[...] = x
    assert (call("softmax", [wider]) == everything).all()


STAGED = [r for r in TABLES["row_reductions",].routes if r.kernels[0].part == "staged"]


@pytest.mark.parametrize("name", ["softmax", "add_rms_norm", "cross_entropy"])
@pytest.mark.parametrize("route", STAGED, ids=lambda r: r.kernels[0].label)
def test_ctas_walk_over_rows_in_shared_memory(route, name):
    """Rows that begin at any address, within wider ones of NaN, and weights off 16 bytes."""
    unit = 8 if route.kernels[0].vectorized else 1
    m, n, step = 3 * route.kernels[0].ctas_per_sm + 1, 1043 // unit * unit, 1052 + 5 % unit
    given = arrays(name, (m, n), bfloat16)
    row = TABLE[name]
    dtypes = {a: "i64" if a in row.integers else "bf16" for a in row.arrays}
    numbers = row.given({a: o.default for a, o in row.numbers.items()})
    kernel = route.of(row.variant(dtypes, row.outputs("bf16", dtypes), numbers))
    if reads(kernel.kernels[0].variant) > kernel.kernels[0].buffer_itemsize:
        pytest.skip(f"{name} reads more of an element")
    expected = compute(name, *given)
    for i, of in enumerate(row.arrays.values()):
        if of == "element":
            wide = np.full((m, step), np.nan, bfloat16)[:, unit : unit + n]
        elif of == "column":
            wide = np.full(n + 8, np.nan, bfloat16)[unit : unit + n]
        else:
            continue
        wide[...] = given[i]
        given[i] = wide
    few = CpuDevice()
    few.sms = 1
    got = call(name, given, kernel.name, few)
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for one, other in pairs:
        same_bits(one, other, seed=SEED, spec=kernel.name, what=f"{name} {m} x {n}")


@pytest.mark.parametrize("n", [3, 9, 1031])
def test_no_word_is_copied_that_a_row_has_not_all_of(n):
    """Rows that begin and end at any bytes, the last at the end of its memory."""
    kernel = next(r.kernels[0] for r in STAGED if not r.kernels[0].vectorized)
    copies = re.findall(r"cp\.async\.c[ag][^;]*;", render(kernel))
    assert copies and not [c for c in copies if not c.endswith("], 16;")]
    base = np.random.default_rng(SEED).standard_normal(8 * (n + 13)).astype(bfloat16)
    x = np.lib.stride_tricks.as_strided(base[-7 * (n + 13) - n :], (8, n), (2 * (n + 13), 2))
    check("softmax", [x], kernel.name)


def test_long_rows_of_bytes_off_16():
    x = np.random.default_rng(SEED).random((2, 5001)) < 0.5
    with ptxgen.use_device(device()):
        assert (ptxgen.sum(x, -1) == x.sum(-1)).all()


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda x: ptxgen.sum(x, 2), ShapeError, r"axis is 2; x has shape \[2, 8\], so 2 axes"),
        (lambda x: ptxgen.sum(x, (0, 0)), ShapeError, "takes each dimension once"),
        (lambda x: ptxgen.sum(x, "x"), ShapeError, "axis is 'x'; takes integers"),
        (lambda x: ptxgen.amax(x[:, :0], -1), ShapeError, "no elements; amax takes at least one"),
        (lambda x: ptxgen.softmax(x.astype(np.int32)), DtypeError, "x has dtype int32"),
        (lambda x: ptxgen.sum(x, -1, out_dtype="float16"), DtypeError, "out_dtype is 'float16'"),
        (
            lambda x: ptxgen.rms_norm(x, x[0, :3]),
            ShapeError,
            r"weight has shape \[3\]; takes \[N\]",
        ),
        (lambda x: ptxgen.rms_norm(x, residual=x, out=x + 1), OptionError, "takes a tuple of 2"),
        (lambda x: ptxgen.cross_entropy(x, x[:, 0]), DtypeError, "target has dtype float32"),
        (
            lambda x: ptxgen.cross_entropy(x, np.zeros(2, int), reduction="all"),
            OptionError,
            "reduction is 'all'",
        ),
        (lambda x: ptxgen.softmax(x, kernel="x"), OptionError, "kernel is 'x', which is unknown"),
    ],
)
def test_what_bad_input_gets(wrong, error, text):
    with ptxgen.use_device(device()), pytest.raises(error, match=text):
        wrong(np.ones((2, 8), np.float32))


def test_sums_down_rows_have_limits():
    x = np.zeros((2, 8200), bfloat16)
    with pytest.raises(ShapeError, match="N=8200: takes rows of at most 8192 elements"):
        call("rms_norm_gradients", [x, x, None])
    x = x.astype(np.float32)
    with pytest.raises(DtypeError, match="dy has dtype float32; takes bfloat16 or float16"):
        call("rms_norm_gradients", [x, x, None])
    with ptxgen.use_device(device()):  # of no rows
        zeros = OPERATIONS["layer_norm_gradients"](*[np.zeros((0, 8), bfloat16)] * 2)
    assert [z.shape for z in zeros] == [(0, 8), (8,), (8,)] and not zeros[1].any()


def test_formulas_are_cut_at_their_reductions():
    plan = Plan(formula(SOFTMAX), keep=True)
    assert [[r.node.data for r in s.reductions] for s in plan.stages] == [["max"], ["sum"]]
    assert [n.data.name for n in plan.kept] == ["decay"], "exp is not computed twice"
    assert not Plan(formula(SOFTMAX), keep=False).kept
    norm = Plan(formula("rms_norm_backward dy=bf16 x=bf16 weight=bf16 eps=f32 > bf16 f32"), True)
    assert [len(s.reductions) for s in norm.stages] == [2], "both sums in one stage"
    assert held(SOFTMAX) == 4 and way(SOFTMAX) == 2 and way("sum x=bf16 > bf16") == 1
    assert reads(SOFTMAX) == 2 and reads("softmax_backward dy=bf16 y=bf16 > bf16") == 4
    assert reads("softmax x=bf16 > f32") == READ_MAX, "results do not fit where elements were"
    assert reads("sum x=bool > i64") == READ_MAX, "eight elements are no word of 16 bytes"


def test_one_logit_of_a_loss_is_picked():
    variant = "cross_entropy x=bf16 target=i64 ignore_index=i64 > f32"
    (first, _) = Plan(formula(variant), keep=True).stages
    assert [r.at is not None for r in first.reductions] == [False, True]


def test_names_and_docstrings():
    called = {name for name, row in TABLE.items() if row.form}
    assert len(called) > 12 and {over_rows(name) for name in TABLE} | called <= set(OPERATIONS)
    for name in called:
        ours, oracle = getattr(ptxgen, name), getattr(reference, name)
        assert ours.__doc__ and (
            f"ptxgen.{name}" in oracle.__doc__ or oracle.__doc__ == ours.__doc__
        )
        assert ours is OPERATIONS[name].function and OPERATIONS[name].public
        assert "kernel" in inspect.signature(ours).parameters
    for name in TABLE.keys() - called:
        assert not OPERATIONS[name].public
    assert "sum" not in ptxgen.__all__
