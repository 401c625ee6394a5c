"""Elementwise steps in the epilogues of products: every kernel has the bits of separate steps."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_passes import _all, same, steps

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.cost.tuning import tuning_for
from ptxgen.dispatch import candidates, choose
from ptxgen.dispatch.explain import explain_problem
from ptxgen.errors import OptionError, SpecError
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.launch import architecture, named, question, serving
from ptxgen.runtime import default_device
from ptxgen.spec.epilogue import Epilogue
from ptxgen.tiles import TABLES
from ptxgen.tiles.gemm import concludes

DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": numpy.float16, "f32": numpy.float32}
SPECIALS = (numpy.nan, numpy.inf, -numpy.inf, -0.0, 3e38, 1e-40)


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


def drawn(dtype, *shape):
    """Normal numbers; in the last row, and of vectors, specials."""
    rng = numpy.random.default_rng(sum(shape))
    x = rng.standard_normal(shape, dtype="f4")
    if len(shape) > 1 and shape[0] > 2:
        x[-1, ..., : len(SPECIALS)] = SPECIALS[: shape[-1]]
    with numpy.errstate(over="ignore"):
        return x.astype(DTYPES[dtype])


def epilogues(program):
    """A program after the pass, whatever the time."""
    with patch("ptxgen.graph.fuse.worth", return_value=True):
        return graph.apply(program, ["epilogues"])[0]


def only(before):
    """The only step of a program after the pass."""
    (step,) = epilogues(before).steps
    assert isinstance(step.problem.dtype, Epilogue)
    return step


# -- every kernel -------------------------------------------------------------------------------
def ways(step):
    """A route for each way in which kernels serve a step."""
    device, found = default_device(), {}
    arch = architecture(device)
    for route in serving(step.problem, device.sms):
        last = route.kernels[-1]
        if all(k.runs_on(arch) for k in route.kernels):
            of = (getattr(last, n, None) for n in ("split", "swap_operands", "persistent"))
            found.setdefault((last.family, *of, route.kernels[0].prepares), route)
    return found


def gated(x, w, bias, r, column, row, activation=None):
    """The last columns of r, which are at least as many as there are results."""
    y = ptxgen.linear(x, w, bias, layout="nk", activation=activation)
    return y, f.mul(f.mul(f.silu(y), r[:, -y.shape[1] :]), column, out_dtype="float16")


def residual(x, w, bias, r, column, row):
    return f.add(f.add(ptxgen.linear(x, w, bias, layout="nk"), r), row)


def three(x, w, bias, r, column, row):
    """The first and the last columns of r."""
    y = ptxgen.linear(x, w, bias, layout="nk")
    return f.add(f.mul(y, r[:, : y.shape[1]]), f.mul(r[:, -y.shape[1] :], row))


def activated(*arrays):
    return gated(*arrays, activation="gelu")


MANY, ODD = (70, 72, 200), (9, 65, 37)
CASES = {
    "vectors": (gated, MANY, 8),
    "residual": (residual, MANY, 0),
    "three": (three, MANY, 8),
    "offset": (gated, (9, 65, 40), 1),
    "ragged": (gated, ODD, 1),
    "activation": (activated, ODD, 0),
    "chunks": (gated, (3, 4200, 24), 0),
}
"""A function; M, K and N; and how many columns r has besides."""
TWINS = {(what, "f16") for what in CASES if what != "ragged"}
"""Alike in bf16."""


RARE = {(what, "f32") for what in ("residual", "three", "activation")}
"""Formulas that bf16 always runs, and f32 as long tests: kernels of products in f32 have the lines
of epilogues that those on tensor cores have.
"""


@pytest.mark.parametrize(
    ("what", "dtype"),
    [
        pytest.param(what, dtype, marks=pytest.mark.long if (what, dtype) in RARE else ())
        for what in CASES
        for dtype in DTYPES
        if (what, dtype) not in TWINS
    ],
)
def test_every_kernel_has_the_bits_of_separate_steps(what, dtype):
    function, (m, k, n), more = CASES[what]
    arrays = [drawn(dtype, *s) for s in ((m, k), (n, k), (n,), (m, n + more))]
    arrays += [drawn("f32", m, 1), drawn("f16", n)]
    expected = ptxgen.capture(function, *arrays)(*arrays)
    step = only(graph.trace(function, *arrays))
    found = ways(step)
    families = {last.family for route in found.values() for last in route.kernels[-1:]}
    assert families >= ({"simt"} if dtype == "f32" else {"mma"})
    for route in found.values():
        forced = replace(step, kernel=route.name)
        run = ptxgen.capture(
            function,
            *arrays,
            passes=lambda p, forced=forced: replace(p, steps=(renewed(p, forced),)),
        )
        for a, b in zip(_all(expected), _all(run(*arrays)), strict=True):
            assert a.tobytes() == b.tobytes(), route.name


def renewed(program, forced):
    """The only step of this program, by the kernel of another."""
    return replace(only(program), kernel=forced.kernel)


def batched(a, b, bias, columns, row):
    """Products of a batch; for each a number for each row, and for those along its last dimension
    numbers for each column.
    """
    y = ptxgen.matmul(a, b, bias)
    return y, f.mul(f.tanh(f.add(y, columns)), row, out_dtype="float16")


BATCHES = {
    "two dimensions": ((2, 3, 5, 17), (2, 3, 17, 8)),
    "unaligned": ((2, 3, 5, 17), (2, 3, 17, 7)),
    "shared": ((3, 1, 5, 16), (4, 16, 8)),
    "chunks": ((2, 3, 2064), (2, 2064, 8)),
    "one of them": ((1, 2, 5, 16), (1, 2, 16, 8)),
}


@pytest.mark.parametrize(
    ("what", "dtype"),
    [
        *((w, "f32") for w in BATCHES if w != "chunks"),
        pytest.param("chunks", "f32", marks=pytest.mark.long),
        ("two dimensions", "bf16"),
    ],
)
def test_kernels_of_batches_have_the_bits_of_separate_steps(what, dtype):
    a, b = (drawn(dtype, *s) for s in BATCHES[what])
    *lead, m, n = ptxgen.matmul(a, b).shape
    arrays = a, b, drawn(dtype, n), drawn("f32", lead[-1], 1, n), drawn("f16", *lead, m, 1)
    expected = batched(*arrays)
    step = only(graph.trace(batched, *arrays))
    assert step.problem.count == numpy.prod(lead) and step.problem.dtype.batched
    assert {a.step for a in step.problem.dtype.reads} == {"u", "v"}
    for route in ways(step).values():
        if not route.batched:
            continue
        forced = replace(step, kernel=route.name)
        run = ptxgen.capture(
            batched,
            *arrays,
            passes=lambda p, forced=forced: replace(p, steps=(renewed(p, forced),)),
        )
        for x, y in zip(run(*arrays), expected, strict=True):
            assert x.tobytes() == y.tobytes(), route.name


def test_rows_of_a_batch_that_share_b_are_one_product():
    """A batch that is one taller product has a formula without the strides of a batch."""
    a, b, r = drawn("f32", 4, 5, 16), drawn("f32", 16, 8), drawn("f32", 4, 5, 8)
    step = only(graph.trace(lambda a, b, r: f.add(ptxgen.matmul(a, b), r), a, b, r))
    assert step.problem.count == 1 and not step.problem.dtype.batched


def test_no_kernel_of_wgmma_is_among_them():
    """No wgmma kernel takes a fused epilogue, not even if asked for by name."""
    arrays = [drawn("bf16", *s) for s in ((70, 72), (200, 72), (200,), (70, 200))]
    arrays += [drawn("f32", 70, 1), drawn("f16", 200)]
    step, device = only(graph.trace(gated, *arrays)), default_device()
    assert {key[0] for key in ways(step)} == {"mma", "reduce"}
    asked = question(step.problem, device)
    routes = TABLES[step.problem.table].routes
    taken = [routes[c.choice.route] for c in candidates(step.problem.table, **asked)]
    assert taken and all(r.kernels[-1].family in ("mma", "reduce") for r in taken)
    seen = explain_problem(step.problem, 0, asked["arch"], device.sms, device.gpu)
    assert seen.choice == choose(step.problem.table, **asked)
    plain = next(r.kernels[-1].of("bf16") for r in routes if r.kernels[-1].family == "wgmma")
    with pytest.raises(OptionError, match=f"kernel {plain.name} does not serve .* takes bf16, got"):
        named(step.problem, device, plain.name)
    with pytest.raises(SpecError, match=f"{plain.name}: epilogue: a formula vs none"):
        plain.of(step.problem.dtype)


def test_every_other_kernel_of_their_tables_takes_one():
    """The last of a route has it; those before it have none. All that run on sm_80 are others, and
    it is proved that these serve every problem.
    """
    one = only(graph.trace(*scaled("bf16"))).problem.dtype
    tables = [key for key in TABLES if concludes(key)]
    assert {key[2:] for key in tables} == {("f32", "simt"), ("half", "simt"), ("half", "tc")}
    for key in tables:
        assert TABLES[key].opened
        epilogue = replace(one, dtype=TABLES[key].dtypes[-1])
        for route in TABLES[key].routes:
            if not route.takes(epilogue):
                assert route.kernels[-1].family == "wgmma" and not route.main.runs_on("sm_80")
                continue
            made = route.of(epilogue)
            assert made.kernels[-1].epilogue == epilogue
            assert all(getattr(k, "epilogue", None) is None for k in made.kernels[:-1])
            pairs = zip(made.kernels, route.kernels, strict=True)
            assert all(k.requires == plain.requires for k, plain in pairs)


def scaled(dtype):
    def function(x, w):
        return f.mul(ptxgen.linear(x, w, layout="nk"), 2.0)

    return function, drawn(dtype, 3, 8), drawn(dtype, 8, 8)


# -- what is moved there ------------------------------------------------------------------------
def test_the_result_is_rounded_first():
    """(1 + 2^-10)^2 is 1 + 2^-9 in 16 bits, which leaves nothing; the sum leaves 2^-20."""

    def function(x, w):
        y = ptxgen.linear(x, w, layout="nk")
        return f.sub(f.cast(y, "f32"), 1 + 2**-9, out_dtype="float16")

    x, w = (numpy.full(s, 1 + 2**-10, "f2") for s in ((2, 1), (8, 1)))
    found = ptxgen.capture(function, x, w, passes=epilogues)(x, w)
    assert (found == 0).all()
    assert steps(epilogues(graph.trace(function, x, w))) == ["linear+cast_f32+sub"]


@pytest.mark.parametrize("what", ["residual", "gate", "led", "cast", "flat", "wide", "specials"])
def test_what_reads_a_product_as_it_lies(what):
    x, w, r = (
        drawn("bf16", 2 * 5, 24).reshape(2, 5, 24),
        drawn("bf16", 16, 24),
        drawn("bf16", 10, 16),
    )
    r = r.reshape(2, 5, 16)

    def function(x, w, r):
        y = ptxgen.linear(x, w, layout="nk")
        if what == "residual":
            return f.add(r, y)
        if what == "gate":
            return f.mul(f.silu(y), ptxgen.linear(x, w, layout="nk", activation="relu"))
        if what == "led":  # as a gate's gradient: what is made of r alone is computed there, too
            return f.mul(y, r), f.mul(f.mul(y, 0.5), f.sigmoid(f.neg(r)))
        if what == "cast":
            return f.cast(f.mul(f.cast(y, "f32"), 0.125), "f16")
        if what == "flat":
            return f.add(y.reshape(10, 16), r.reshape(10, 16))
        if what == "wide":
            return f.mul(y, r[:1, :1])
        return f.where(f.lt(y, 0.0), f.mul(y, numpy.inf), r)

    after = epilogues(graph.trace(function, x, w, r))
    assert len(after.steps) == (2 if what == "gate" else 1), str(after)
    same(function, x, w, r, passes=["epilogues"])


def test_a_result_that_others_read_is_stored_as_well():
    def function(x, w, r):
        y = ptxgen.linear(x, w, layout="kn")
        return ptxgen.linear(f.add(y, r), w, layout="kn"), ptxgen.softmax(y)

    arrays = drawn("f16", 5, 16), drawn("f16", 16, 16), drawn("f16", 5, 16)
    after = epilogues(graph.trace(function, *arrays))
    assert steps(after) == ["linear+add", "linear", "softmax"]
    assert len(after.steps[0].writes()) == 2
    same(function, *arrays, passes=["epilogues"])


def test_a_sum_that_a_norm_reads_is_the_products():
    """A sum that a norm reads is fused into the product, and stored for the norm and other readers;
    the product is not stored. If the norm alone reads the sum, and others the product, the norm
    adds.
    """

    def function(x, w, r, weight):
        h = f.add(ptxgen.linear(x, w, layout="kn"), r)
        return ptxgen.linear(ptxgen.rms_norm(h, weight), w, layout="kn"), h

    def kept(x, w, r, weight):
        y = ptxgen.linear(x, w, layout="kn")
        return ptxgen.rms_norm(f.add(y, r), weight), y

    arrays = drawn("bf16", 5, 16), drawn("bf16", 16, 16), drawn("bf16", 5, 16), drawn("bf16", 16)
    after, _ = graph.apply(graph.trace(function, *arrays))
    assert steps(after) == ["linear+add", "rms_norm", "linear"]
    other, _ = graph.apply(graph.trace(kept, *arrays))
    assert steps(other) == ["linear", "add+rms_norm"]
    for each in (function, kept):
        same(each, *arrays, passes=list(graph.PASSES))


def test_squares_are_left_to_the_norm_that_adds_them():
    def function(x, w, r):
        y = f.add(ptxgen.linear(x, w, layout="kn"), r)
        h = f.cast(y, "f32")
        root = f.rsqrt(f.add(ptxgen.mean(f.mul(h, h), axis=-1, keepdims=True), 1e-5))
        return f.cast(f.mul(h, root), "bf16"), y

    arrays = drawn("bf16", 5, 16), drawn("bf16", 16, 16), drawn("bf16", 5, 16)
    after, _ = graph.apply(graph.trace(function, *arrays))
    assert steps(after)[0] == "linear+add" and len(after.steps) == 2
    same(function, *arrays, passes=list(graph.PASSES))


def test_a_gate_whose_argument_is_stored_is_of_the_second_product():
    def function(x, w):
        y = ptxgen.linear(x, w, layout="kn")
        return f.mul(f.silu(y), ptxgen.linear(x, w, layout="kn")), y

    arrays = drawn("bf16", 5, 16), drawn("bf16", 16, 16)
    assert steps(epilogues(graph.trace(function, *arrays))) == ["linear", "linear+silu+mul"]
    same(function, *arrays, passes=["epilogues"])


@pytest.mark.parametrize("waits", [False, True])
def test_what_need_not_be_stored_is_not_stored_for_a_product(waits):
    """An intermediate of two pointwise steps is fused with both, not stored for a product's
    epilogue, unless the product runs after it anyway.
    """

    def function(x, w, r):
        twice = f.mul(r, 2.0)
        other = f.add(twice, 1.0)
        return f.mul(ptxgen.linear(other if waits else x, w, layout="kn"), twice), other

    arrays = drawn("bf16", 16, 16), drawn("bf16", 16, 16), drawn("bf16", 16, 16)
    after, _ = graph.apply(graph.trace(function, *arrays))
    assert steps(after) == (["mul+add", "linear+mul"] if waits else ["linear", "mul+add+mul"])
    same(function, *arrays, passes=list(graph.PASSES))


# -- what is not --------------------------------------------------------------------------------
def refused():
    """Functions, by what is the matter, of x [6, 8], w [8, 8] and r [6, 8]."""
    linear = ptxgen.linear
    return {
        "a batch into a part": lambda x, w, r: f.mul(
            ptxgen.matmul(x.reshape(2, 3, 8), x.reshape(2, 8, 3))[:, :2], 2.0
        ),
        "a wider result": lambda x, w, r: f.mul(
            linear(x, w, out_dtype="float32", layout="kn"), 2.0
        ),
        "a kernel by name": lambda x, w, r: f.mul(linear(x, w, kernel=KERNEL, layout="kn"), 2.0),
        "turned": lambda x, w, r: f.mul(linear(x, w, layout="kn").T, 2.0),
        "a part": lambda x, w, r: f.mul(linear(x, w, layout="kn")[:, :4], 2.0),
        "moved": lambda x, w, r: f.add(
            linear(x, w, layout="kn")[1:], linear(x, w, layout="kn")[:5]
        ),
        "broadcast": lambda x, w, r: f.add(linear(x, w, layout="kn")[:1], r),
        "more bytes": lambda x, w, r: ptxgen.softmax(f.cast(linear(x, w, layout="kn"), "f32")),
        "strided": lambda x, w, r: f.add(linear(x, w[:, :4], layout="kn"), r[:, ::2]),
        "many arrays": many,
        "a row operation": lambda x, w, r: ptxgen.softmax(linear(x, w, layout="kn")),
    }


KERNEL = next(r.name for r in TABLES["NN", "chunks", "half", "tc"].routes if r.main.family == "mma")


def many(x, w, r):
    y = ptxgen.linear(x, w, layout="kn")
    for i in range(6):
        y = f.add(y, ptxgen.softmax(f.mul(r, float(i))))
    return y


@pytest.mark.parametrize("what", refused())
def test_what_is_left_a_step(what):
    """The product is as it was; bits are the same."""
    arrays = drawn("bf16", 6, 8), drawn("bf16", 8, 8), drawn("bf16", 6, 8)
    function = refused()[what]
    before = graph.trace(function, *arrays)
    after = epilogues(before)
    dtypes = [s.problem.dtype for s in after.steps if concludes(s.problem.table)]
    if what == "many arrays":
        assert {"linear+add+add+add", "add+add+add"} <= set(steps(after))
    else:
        assert dtypes and not any(isinstance(d, Epilogue) for d in dtypes)
    same(function, *arrays, passes=["epilogues"])


@pytest.mark.parametrize("what", ["accumulate", "chain", "f64", "written", "number"])
def test_what_builders_ask_for_is_left_a_step(what):
    b = ProgramBuilder(OPERATIONS)
    dtype = "float64" if what == "f64" else "float32"
    x, w, out = (b.input(n, imagined((8, 8), dtype), written=n == "out") for n in ("x", "w", "out"))
    if what in ("accumulate", "chain"):
        y = b.linear_wgrad(x, w, accumulate=what == "accumulate", chain=True, out=out, layout="kn")
        b.copied(b.mul(y, 2.0), out)
    elif what == "written":  # where A is, which other tiles still read
        b.add(b.linear(out, w, layout="kn"), 1.0, out=out)
    else:
        b.mul(b.linear(x, w, layout="kn"), 2.0, out=out)
    before = b.finish(None)
    expected = 1 if what == "number" else len(before.steps)
    assert len(epilogues(before).steps) == expected


# -- by time -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("m", "expected"), [(8, ["linear+mul"]), (2048, ["linear", "mul"])])
def test_time_decides(m, expected):
    """Few rows save a launch; many are of wgmma, whose kernels take none."""
    b = ProgramBuilder(OPERATIONS)
    sizes = {"x": (m, 4096), "w": (4096, 14336), "r": (m, 14336)}
    x, w, r = (b.input(n, imagined(s, "bfloat16"), written=False) for n, s in sizes.items())
    b.mul(b.linear(x, w, layout="kn"), r)
    assert steps(graph.apply(b.finish(None), ["epilogues"])[0]) == expected


def test_a_formula_takes_the_time_of_what_it_moves_and_computes():
    """An epilogue is predicted as a pointwise step without a launch: a residual costs its bytes."""
    b = ProgramBuilder(OPERATIONS)
    x, r = (b.input(n, imagined((8, 4096), "bfloat16"), written=False) for n in "xr")
    w = b.input("w", imagined((4096, 4096), "bfloat16"), written=False)
    b.add(b.linear(x, w, layout="kn"), r)
    before, device = b.finish(None), default_device()
    tuning, _ = tuning_for("sm_90", (device.gpu, device.sms))
    _, cost, _ = tuning.families["pointwise"]
    found = only(before).predicted(device) - before.steps[0].predicted(device)
    assert found == pytest.approx(cost * r.nbytes / tuning.rates.memory, rel=1e-6)


# -- random programs ----------------------------------------------------------------------------
FORMULAS = {
    "silu": lambda y, r, c: f.silu(y),
    "neg": lambda y, r, c: f.neg(y),
    "scale": lambda y, r, c: f.mul(y, 0.3),
    "add": lambda y, r, c: f.add(y, r),
    "gate": lambda y, r, c: f.mul(r, y),
    "row": lambda y, r, c: f.mul(y, c),
    "column": lambda y, r, c: f.add(y, r[:, :1]),
    "f32": lambda y, r, c: f.cast(f.mul(f.cast(y, "f32"), 1.1), "bf16"),
    "f16": lambda y, r, c: f.cast(f.cast(y, "f16"), "bf16"),
    "where": lambda y, r, c: f.where(f.lt(y, r), y, c),
    "softmax": lambda y, r, c: ptxgen.softmax(y),
    "normed": lambda y, r, c: ptxgen.rms_norm(f.add(y, r), c),
}
sizes = st.tuples(st.integers(1, 9), st.integers(1, 20), st.sampled_from([1, 7, 8, 16, 24]))
names = st.lists(st.sampled_from([*FORMULAS]), min_size=1, max_size=6)


@settings(max_examples=25)
@given(st.sampled_from([*DTYPES]), sizes, names, st.sets(st.integers(0, 6), max_size=2), st.data())
def test_random_epilogues_keep_their_bits_and_move_no_more(dtype, size, names, returned, data):
    """No array is read by two steps, which may be one without the pass."""
    m, k, n = size
    options = {"activation": data.draw(st.sampled_from([None, "relu", "silu"]))}
    biased = data.draw(st.booleans())
    places = [data.draw(st.integers(-2, -1)) for _ in names]

    def function(x, w, bias, *beside):
        found = [ptxgen.linear(x, w, bias if biased else None, layout="nk", **options)]
        for i, (name, at) in enumerate(zip(names, places, strict=True)):
            found.append(FORMULAS[name](found[max(at, -len(found))], *beside[2 * i : 2 * i + 2]))
        return [found[-1], *(found[i] for i in returned if i < len(found) - 1)]

    arrays = [drawn(dtype, *s) for s in ((m, k), (n, k), (n,), *[(m, n), (n,)] * len(names))]
    before = graph.trace(function, *arrays)
    without = [name for name in graph.PASSES if name != "epilogues"]
    moved = [sum(s.nbytes for s in graph.apply(before, p)[0].steps) for p in (None, without)]
    assert moved[0] <= moved[1]
    expected = ptxgen.capture(function, *arrays)(*arrays)
    for passes in (epilogues, graph.fewer):
        found = ptxgen.capture(function, *arrays, passes=passes)(*arrays)
        for a, b in zip(_all(expected), _all(found), strict=True):
            assert a.tobytes() == b.tobytes()
