"""Convolutions: bits of windows as rows of ``linear``, whatever the layout, the batch, the pieces;
gradients; and how PyTorch is served.
"""

from __future__ import annotations

from itertools import product
from math import prod

import calls
import numpy as np
import pytest
import window_cases
from bits import operand, same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.ops import OPERATIONS, layout
from ptxgen.ops import conv as ops
from ptxgen.ops import implicit_gemm as tiles
from ptxgen.ops.explaining import program_of
from ptxgen.program.buffer import imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import lowering
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.conv import ConvSpec
from ptxgen.spec.depthwise import TAPS_MAX
from ptxgen.spec.gemm.loads import Gather
from ptxgen.tiles import SPECS, TABLES
from ptxgen.tiles.conv import DEPTHWISE, KEY, SUMMED, TURNED

SEEDS = range(24)
LAST = "channels_last"


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


# -- the contract, by hand ------------------------------------------------------------------------
def last(v, layout):
    return v if layout == LAST else np.moveaxis(v, 1, -1)


def back(v, layout):
    return v if layout == LAST else np.moveaxis(v, -1, 1)


def each(value, rank):
    several = value if isinstance(value, tuple) else (value,)
    return several if len(several) == rank else several * rank


def columns(x, taps, stride, padding, dilation):
    """The windows of x [N, *, C], [N, *windows, *taps, C], element by element."""
    rank = x.ndim - 2
    wide = np.pad(x, [(0, 0), *((p, p) for p in padding), (0, 0)])
    count = [
        (wide.shape[i + 1] - dilation[i] * (taps[i] - 1) - 1) // stride[i] + 1 for i in range(rank)
    ]
    found = np.empty((x.shape[0], *count, *taps, x.shape[-1]), x.dtype)
    for at in product(*map(range, count)):
        for tap in product(*map(range, taps)):
            places = zip(at, stride, tap, dilation, strict=True)
            place = tuple(i * s + j * d for i, s, j, d in places)
            found[(slice(None), *at, *tap)] = wide[(slice(None), *place)]
    return found


def tier_of(groups, channels, outs):
    """Depthwise filters are products on FMA units."""
    return "simt" if groups > 1 and channels == outs == 1 else "auto"


def geometry(x, stride=1, padding=0, dilation=1):
    return tuple(each(v, x.ndim - 2) for v in (stride, padding, dilation))


def by_hand(x, w, bias=None, *, groups=1, activation=None, layout="", **how):
    x, w = last(x, layout), last(w, layout)
    found = columns(x, w.shape[1:-1], *geometry(x, **how))
    lead = found.shape[: x.ndim - 1]
    outs, c = w.shape[0] // groups, w.shape[-1]
    tier = tier_of(groups, c, outs)
    parts = []
    for g in range(groups):
        own = found[..., g * c : (g + 1) * c].reshape(prod(lead), -1)
        weight = w[g * outs : (g + 1) * outs].reshape(outs, -1)
        add = None if bias is None else bias[g * outs : (g + 1) * outs]
        parts.append(
            reference.linear(own, weight, add, layout="nk", activation=activation, tier=tier)
        )
    return back(np.concatenate(parts, -1).reshape(*lead, -1), layout)


def transposed_by_hand(dy, w, bias, image, *, groups=1, activation=None, layout="", **how):
    """Computes a transposed convolution element by element, from the taps that reach each."""
    dy, w = last(dy, layout), last(w, layout)
    stride, padding, dilation = geometry(dy, **how)
    outs, c, taps = w.shape[0] // groups, w.shape[-1], w.shape[1:-1]
    found = np.empty((dy.shape[0], *image, c * groups), dy.dtype)
    for at in product(*map(range, image)):
        rows, reached = [], []
        for tap in product(*map(range, taps)):
            far = [a + p - t * d for a, p, t, d in zip(at, padding, tap, dilation, strict=True)]
            if any(f % s for f, s in zip(far, stride, strict=True)):
                continue
            place = tuple(f // s for f, s in zip(far, stride, strict=True))
            inside = all(0 <= i < n for i, n in zip(place, dy.shape[1:-1], strict=True))
            own = dy[(slice(None), *place)] if inside else np.zeros_like(dy[:, *[0] * len(at)])
            rows.append(own)
            reached.append(w[(slice(None), *tap)])
        for g in range(groups):
            few, cut = slice(g * outs, (g + 1) * outs), slice(g * c, (g + 1) * c)
            a = np.concatenate([r[:, few] for r in rows] or [dy.reshape(len(dy), -1)[:, :0]], -1)
            b = np.concatenate([r[few] for r in reached] or [w.reshape(-1, c)[:0]])
            add = None if bias is None else bias[cut]
            found[(slice(None), *at, cut)] = reference.linear(
                a, b, add, activation=activation, tier=tier_of(groups, c, outs), layout="kn"
            )
    return back(found, layout)


def wgrad_by_hand(x, dy, taps, *, groups=1, layout="", chain=False, **how):
    x, dy = last(x, layout), last(dy, layout)
    found = columns(x, taps, *geometry(x, **how))
    m, c, outs = prod(dy.shape[:-1]), x.shape[-1] // groups, dy.shape[-1] // groups
    parts, tier = [], tier_of(groups, c, outs)
    for g in range(groups):
        rows = found[..., g * c : (g + 1) * c].reshape(m, -1)
        own = dy[..., g * outs : (g + 1) * outs].reshape(m, outs)
        if groups == 1 or chain:
            parts.append(reference.linear_wgrad(rows, own, layout="nk", chain=chain, tier=tier))
        else:
            wide = np.float64 if x.dtype == np.float64 else np.float32
            parts.append(reference.matmul(own, rows, transpose_a=True, out_dtype=wide, tier=tier))
    return back(np.concatenate(parts).reshape(-1, *taps, c), layout)


def image_of(x, w, how, layout):
    """The image of a transposed convolution."""
    sizes, taps = last(x, layout).shape[1:-1], last(w, layout).shape[1:-1]
    names = ("stride", "padding", "dilation", "output_padding")
    defaults = (1, 0, 1, 0)
    own = [each(how.get(n, v), x.ndim - 2) for n, v in zip(names, defaults, strict=True)]
    return tuple(
        (n - 1) * s - 2 * p + d * (t - 1) + 1 + o
        for n, t, s, p, d, o in zip(sizes, taps, *own, strict=True)
    )


def expected(name, given):
    given = dict(given)
    if name == "conv":
        return by_hand(**given)
    if name == "conv_wgrad":
        return wgrad_by_hand(**given)
    if name == "conv_dgrad":
        dy, w, image = given.pop("dy"), given.pop("w"), given.pop("image")
        return transposed_by_hand(dy, w, None, image, **given)
    x, w, bias = given.pop("x"), given.pop("w"), given.pop("bias", None)
    image = image_of(x, w, given, given.get("layout", ""))
    given.pop("output_padding", None)
    return transposed_by_hand(x, w, bias, image, **given)


@pytest.mark.parametrize("name", ["conv", "conv_transpose", "conv_dgrad", "conv_wgrad"])
def test_the_reference_is_the_contract(name):
    """Windows, positions ascending, channels innermost; then ``linear``."""
    for seed in SEEDS:
        call = calls.valid(name, seed)
        got = getattr(reference, name)(**call.given)
        same_bits(got, expected(name, call.given), seed=seed, what=f"{call}")


@pytest.mark.parametrize("name", ["conv", "conv_transpose", "conv_dgrad", "conv_wgrad"])
def test_calls_have_these_bits(name):
    for seed in range(100, 106):
        call = calls.valid(name, seed)
        got = getattr(ptxgen, name)(**call.given)
        same_bits(got, expected(name, call.given), seed=seed, what=f"{call}")


# -- what bits do not depend on -------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("groups", [1, pytest.param(2, marks=pytest.mark.long), 8])
def test_an_image_does_not_know_the_others(dtype, groups):
    rng = np.random.default_rng(groups)
    x = operand(rng, (7, 8, 6, 5), "normal", dtype)
    w = operand(rng, (8, 8 // groups, 3, 3), "normal", dtype)
    bias = operand(rng, (8,), "normal", dtype)
    how = {"padding": 1, "groups": groups, "activation": "gelu"}
    y = ptxgen.conv(x, w, bias, **how)
    z = ptxgen.conv_transpose(x, w, groups=groups, stride=2)
    for count in (1, 3):
        same_bits(ptxgen.conv(x[2 : 2 + count], w, bias, **how), y[2 : 2 + count])
        some = ptxgen.conv_transpose(x[2 : 2 + count], w, groups=groups, stride=2)
        same_bits(some, z[2 : 2 + count])
    turned = [np.ascontiguousarray(np.moveaxis(v, 1, -1)) for v in (x, w)]
    same = ptxgen.conv(*turned, bias, **how, layout=LAST)
    same_bits(np.moveaxis(same, -1, 1), y, what="channels last")
    out = np.empty_like(y)
    assert ptxgen.conv(x, w, bias, **how, out=out) is out
    same_bits(out, y, what="into memory that is given")


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_depthwise_filters_are_formulas(dtype, activation):
    """Depthwise filters of a few taps have the bits of the product on FMA units, NaN included."""
    rng = np.random.default_rng(5)
    x, w = (operand(rng, s, "special", dtype) for s in ((2, 5, 7, 6), (5, 1, 3, 2)))
    bias = operand(rng, (5,), "normal", dtype)
    how = {"groups": 5, "padding": 1, "stride": (2, 1), "activation": activation}
    same_bits(ptxgen.conv(x, w, bias, **how), by_hand(x, w, bias, **how))
    image = image_of(x, w, how, "")
    y = transposed_by_hand(x, w, bias, image, **how)
    same_bits(ptxgen.conv_transpose(x, w, bias, **how), y)


@pytest.mark.parametrize(
    ("dtype", "taps"),  # a formula, a product, a kernel of its own, a product
    [("f32", 23), ("f32", 24), ("bf16", TAPS_MAX), ("bf16", TAPS_MAX + 1)],
)
def test_depthwise_filters_are_chains(dtype, taps):
    """Depthwise filters are FMA chains, also in 16 bits, where tensor cores give other sums."""
    rng = np.random.default_rng(6)
    x, w = (operand(rng, s, "normal", dtype) for s in ((2, 3, taps + 24), (3, 1, taps)))
    bias = operand(rng, (3,), "normal", dtype)
    how = {"groups": 3, "out_dtype": "float32"}
    found = columns(last(x, ""), (taps,), (1,), (0,), (1,))
    for c in range(3):
        given = found[..., c].reshape(50, taps), w[c].reshape(1, taps), bias[c : c + 1]
        y = reference.linear(*given, layout="nk", tier="simt", out_dtype="float32")
        same_bits(ptxgen.conv(x, w, bias, **how)[:, c], y.reshape(2, 25))
    if dtype == "bf16":
        products = reference.conv(x, w, bias, **how, tier="tc")
        assert (products != ptxgen.conv(x, w, bias, **how)).any()


@pytest.mark.parametrize("channels", [64, 62, 63])  # copied by eight, by two, one by one
def test_bits_do_not_depend_on_the_tile(monkeypatch, channels):
    """Depthwise filters of 16 bits, forward and transposed: one launch, however it is cut."""
    rng = np.random.default_rng(8)
    shapes = (4, 9, 20, channels), (channels, 7, 6, 1)
    x, w = (operand(rng, shape, "wide", "bf16") for shape in shapes)
    how = {"groups": channels, "padding": (3, 1), "layout": LAST}

    def tile(x):
        (step,) = lowering(OPERATIONS["conv"], {"x": x, "w": w, **how})[1].program.steps
        assert step.problem.table == DEPTHWISE
        return {name: dict(step.problem.scalars)[name] for name in ("PART", "COLUMNS", "ROWS")}

    def found(x):  # of as many images as no call before, so that it is not prepared
        y = ptxgen.conv(x, w, **how)
        return tile(x), y, ptxgen.conv_dgrad(y, w, x.shape[1:-1], **how)

    own, *whole = found(x)
    same_bits(whole[0], reference.conv(x, w, **how))
    others = {"CTAS": 1, "CHANNELS": 8}, {"FILTERS": 1 << 20}, {"SHARED": 9 << 10}
    for images, names in enumerate(others, 1):
        with monkeypatch.context() as patch:
            for name, value in names.items():
                patch.setattr(tiles, name, value)
            cut, *parts = found(x[:images])
        assert cut != own
        for one, other in zip(parts, whole, strict=True):
            same_bits(one, other[:images], what=str(names))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("image", [(4, 6), (8,), (3, 2, 4), (5, 7)])
def test_filters_of_one_tap_read_images_as_they_lie(monkeypatch, dtype, image):
    """Channels first: filters times each image, in one launch, and another for what is added."""
    rng = np.random.default_rng(len(image))
    x = operand(rng, (2, 24, *image), "wide", dtype)
    w = operand(rng, (40, 24, *[1] * len(image)), "wide", dtype)
    bias = operand(rng, (40,), "normal", "f64" if dtype == "f64" else "f32")
    ways = [{}, {"bias": bias}]
    if dtype != "f64":
        ways += [{"activation": "gelu"}, {"bias": bias, "activation": "silu"}]
    for way in ways:
        tables = steps("conv", {"x": x, "w": w, **way})
        assert len(tables) == 1 + ("bias" in way) + ("activation" in way)
        same_bits(ptxgen.conv(x, w, **way), by_hand(x, w, **way))
    aligned = prod(image) * x.itemsize % 16 == 0
    monkeypatch.setattr(ops, "PLANES_MAX", 0)
    assert (len(steps("conv", {"x": x, "w": w})) == 1) == aligned
    same_bits(ptxgen.conv(x[:1], w), by_hand(x[:1], w))


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("layout", ["channels_first", LAST])
def test_groups_are_written_where_they_belong(dtype, layout):
    """Results of groups are written in place, by the products or by the epilogue behind them, never
    by another copy.
    """
    rng = np.random.default_rng(12)
    shapes = ((2, 24, 9, 8), (16, 6, 3, 3)) if layout == "channels_first" else (
        (2, 9, 8, 24), (16, 3, 3, 6)
    )  # fmt: skip
    x, w = (operand(rng, shape, "normal", dtype) for shape in shapes)
    bias = operand(rng, (16,), "normal", "f32")
    how = {"groups": 4, "padding": 1, "layout": layout}
    plain = len(steps("conv", {"x": x, "w": w, **how}))
    for way, more in (({}, 0), ({"bias": bias}, 0), ({"bias": bias, "activation": "silu"}, 1)):
        own = len(steps("conv", {"x": x, "w": w, **how, **way}))
        assert own == plain + more + (layout == LAST and "bias" in way)
        same_bits(ptxgen.conv(x, w, **how, **way), by_hand(x, w, **how, **way))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_large_depthwise_filters_have_turned_images(dtype):
    """Channels first: three launches, of which two copy. A few taps are a formula."""
    rng = np.random.default_rng(13)
    x = operand(rng, (2, 24, 9, 8), "wide", dtype)
    for taps, count in ((5, 3), (3, 1)):
        w = operand(rng, (24, 1, taps, taps), "wide", dtype)
        tables = steps("conv", {"x": x, "w": w, "groups": 24})
        assert len(tables) == count and (DEPTHWISE in tables) == (taps == 5)
        same_bits(ptxgen.conv(x, w, groups=24), by_hand(x, w, groups=24))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("taps", [(2, 2), (3, 1), (4,), (2, 1, 2)])
def test_patches_are_one_product(dtype, taps):
    """Transposed, of windows that share nothing."""
    rng = np.random.default_rng(len(taps))
    image = tuple(3 * n for n in taps)
    dy, w = (operand(rng, s, "normal", dtype) for s in ((2, 5, *[3] * len(taps)), (5, 4, *taps)))
    bias = operand(rng, (4,), "normal", dtype)
    for how in ({}, {"activation": "silu"}):
        same_bits(
            ptxgen.conv_transpose(dy, w, bias, stride=taps, **how),
            transposed_by_hand(dy, w, bias, image, stride=taps, **how),
        )
    got = ptxgen.conv_dgrad(dy, w, image, stride=taps)
    same_bits(got, transposed_by_hand(dy, w, None, image, stride=taps))
    b = ProgramBuilder(OPERATIONS)
    given = (b.input(n, imagined(v.shape, "float32")) for n, v in (("dy", dy), ("w", w)))
    b.conv_dgrad(*given, image, stride=taps)
    assert sum("matmul" in str(s.problem) for s in b.steps) == 1


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("most", [1, 2000, 5000])
def test_bits_do_not_depend_on_the_pieces(monkeypatch, groups, most):
    rng = np.random.default_rng(0)
    x = operand(rng, (5, 4, 6, 5), "normal", "bf16")
    w = operand(rng, (6, 4 // groups, 3, 3), "normal", "bf16")
    dy = operand(rng, (5, 6, 4, 3), "normal", "bf16")

    def found():
        yield reference.conv(x, w, groups=groups)
        yield reference.conv_dgrad(dy, w, (6, 5), groups=groups)
        yield reference.conv_wgrad(x, dy, 3, groups=groups, chain=True)
        yield reference.conv_wgrad(x, dy, 3, groups=groups, chain=True, out_dtype=x.dtype)

    whole = list(found())
    monkeypatch.setattr(ops, "COLUMNS_MAX", most)
    for one, other in zip(found(), whole, strict=True):
        same_bits(one, other)
    steps = program_of("conv", (5, 4, 6, 5, 6, 3, 3), "f32").steps
    assert max(b.nbytes for s in steps for b in s.writes()) <= max(most, 5 * 6 * 12 * 4, 4 * 36 * 4)


def test_what_is_copied():
    """Images that kernels can read in place are not copied."""

    def steps(sizes, **how):
        return [s.problem.what.split()[0] for s in program_of("conv", sizes, **how).steps]

    def named(*sizes, layout=LAST, **options):
        return steps(sizes, align=None, options={"layout": layout, **options})

    assert named(2, 8, 5, 5, 16, 1, 1) == ["linear"]  # one tap: a product as it lies
    assert named(2, 8, 5, 5, 16, 1, 1, layout="channels_first")[0] == "matmul"
    assert named(1, 8, 9, 1, 16, 3, 1) == ["linear"]  # rows that overlap
    assert named(2, 4, 8, 8, 16, 4, 4, stride=4) == ["copy", "linear"]  # patches
    assert named(2, 4, 8, 8, 16, 3, 3) == ["copy", "linear"]
    assert named(2, 4, 8, 8, 16, 3, 3, padding=1)[-2:] == ["copy", "linear"]
    b = ProgramBuilder(OPERATIONS)
    x, w = (b.input(n, imagined(s, "bfloat16")) for n, s in (("x", (2, 4, 9)), ("w", (4, 1, 4))))
    b.conv(x, w, groups=4, activation="silu")
    assert len(b.steps) == 1, "depthwise filters are a formula"


def test_a_large_image_gets_its_sides_one_by_one(monkeypatch):
    """A small one is filled whole, and then written: fewer launches."""
    rng = np.random.default_rng(11)
    x, w = operand(rng, (1, 3, 7, 5), "normal", "f32"), operand(rng, (4, 3, 3, 3), "normal", "f32")
    given = {"x": x, "w": w, "padding": (2, 1)}
    few = len(steps("conv", given))
    same_bits(ptxgen.conv(**given), by_hand(**given))
    monkeypatch.setattr(layout, "FILLED_MAX", 0)
    assert len(steps("conv", given)) == few + 3
    given["x"] = x[:, :, 1:].copy()  # a call that is not prepared
    same_bits(ptxgen.conv(**given), by_hand(**given))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("layout", ["channels_first", LAST])
def test_rows_that_overlap(dtype, groups, layout):
    """Causal convolutions of one sequence: windows are read where they lie."""
    rng = np.random.default_rng(3)
    shapes = (1, 8, 40), (8, 8 // groups, 4)
    x, w = (back(operand(rng, (s[0], s[2], s[1]), "normal", dtype), layout) for s in shapes)
    how = {"groups": groups, "layout": layout}
    same_bits(ptxgen.conv(x, w, **how), by_hand(x, w, **how))
    if groups == 1 and layout == LAST:
        steps = program_of("conv", (1, 8, 40, 1, 8, 4, 1), dtype, None, {"layout": LAST}).steps
        assert len(steps) == 1


# -- what is refused ------------------------------------------------------------------------------
def test_what_is_refused():
    x, w = np.zeros((2, 4, 5, 5), "f4"), np.zeros((6, 4, 3, 3), "f4")
    bad = [
        (ShapeError, "w has 3 taps along dimension 0", (x[:, :, :2], w), {}),
        (ShapeError, "x has 4 channels; takes a multiple of groups, 3", (x, w), {"groups": 3}),
        (ShapeError, "w is of 4 channels a group; takes 2", (x, w), {"groups": 2}),
        (ShapeError, "x has shape .* takes 3, 4 or 5 dimensions", (x[0, 0], w), {}),
        (ShapeError, "w has shape .* takes 4 dimensions", (x, w[0]), {}),
        (ShapeError, "bias has shape", (x, w, np.zeros(5, "f4")), {}),
        (ShapeError, "w has .* taps; takes 1 or more", (x, w[..., :0]), {}),
        (ShapeError, "stride is .* for each dimension", (x, w), {"stride": (1, 1, 1)}),
        (OptionError, "padding is -1", (x, w), {"padding": -1}),
        (OptionError, "stride is 0", (x, w), {"stride": 0}),
        (OptionError, "dilation is", (x, w), {"dilation": (1, 0)}),
        (OptionError, "groups is 0", (x, w), {"groups": 0}),
        (OptionError, "layout is", (x, w), {"layout": "nchw"}),
        (DtypeError, "w has dtype float64; takes float32", (x, w.astype("f8")), {}),
        (DtypeError, "x has dtype int32", (x.astype("i4"), w), {}),
    ]
    for error, words, args, how in bad:
        with pytest.raises(error, match=words):
            ptxgen.conv(*args, **how)
    with pytest.raises(ShapeError, match="output_padding is"):
        ptxgen.conv_transpose(np.zeros((2, 6, 5, 5), "f4"), w, stride=2, output_padding=2)
    with pytest.raises(ShapeError, match="the result -1"):
        ptxgen.conv_transpose(np.zeros((2, 6, 1, 1), "f4"), w, padding=2)
    with pytest.raises(ShapeError, match=r"dy is of \[5, 5\] windows; with image"):
        ptxgen.conv_dgrad(np.zeros((2, 6, 5, 5), "f4"), w, (5, 5))
    with pytest.raises(ShapeError, match=r"dy is of \[5, 5\] windows; with taps"):
        ptxgen.conv_wgrad(x, np.zeros((2, 6, 5, 5), "f4"), 3)


def test_without_images_or_channels():
    x, w = np.zeros((0, 4, 5, 5), "f4"), np.ones((6, 4, 3, 3), "f4")
    assert ptxgen.conv(x, w).shape == (0, 6, 3, 3)
    assert not ptxgen.conv_wgrad(x, np.zeros((0, 6, 3, 3), "f4"), 3).any()
    none, bias = np.zeros((2, 0, 5, 5), "f4"), np.arange(6, dtype="f4")
    y = ptxgen.conv(none, w[:, :0], bias)
    assert (y == bias[:, None, None]).all() and y.shape == (2, 6, 3, 3)
    assert ptxgen.conv_dgrad(y, w[:, :0], 5).shape == (2, 0, 5, 5)
    assert not ptxgen.conv_wgrad(x, np.zeros((0, 6, 5, 5), "f4"), 3, padding=1).any()
    nothing = np.zeros((2, 4, 0), "f4")  # whose padding is there
    y = ptxgen.conv(nothing, w[:, :, 0, :2], bias, padding=1)
    assert y.shape == (2, 6, 1) and (y == bias[:, None]).all()
    assert not ptxgen.conv_wgrad(nothing, y, 2, padding=1).any()
    assert ptxgen.conv_dgrad(y, w[:, :, 0, :2], 3, stride=4, padding=0).shape == (2, 4, 3)


# -- PyTorch --------------------------------------------------------------------------------------


def modules():
    nn = pytest.importorskip("torch").nn
    return {
        "1d": (nn.Conv1d(4, 6, 3, padding=1), (3, 4, 9)),
        "causal": (nn.Conv1d(8, 8, 4, padding=3, groups=8), (3, 8, 9)),
        "2d": (nn.Conv2d(4, 6, 3, stride=2, groups=2), (3, 4, 9, 8)),
        "same": (nn.Conv2d(4, 4, 3, padding="same", dilation=2), (3, 4, 6, 6)),
        "patches": (nn.Conv2d(3, 8, 4, stride=4), (3, 3, 8, 8)),
        "3d": (nn.Conv3d(2, 4, 2), (3, 2, 4, 4, 3)),
        "transpose": (nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), (3, 4, 5, 4)),
        "transpose 1d": (nn.ConvTranspose1d(4, 6, 3, groups=2, bias=False), (3, 4, 5)),
    }


NAMES = [*("1d", "causal", "2d", "same", "patches", "3d", "transpose", "transpose 1d")]


def gradients(module, x, dy):
    import torch

    y = module(x)
    return y, *torch.autograd.grad(y, [x, *module.parameters()], dy[: len(y)])


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_served(name):
    torch = pytest.importorskip("torch")
    import ptxgen.torch as served

    torch.manual_seed(0)
    module, shape = modules()[name]
    x = torch.randn(shape, requires_grad=True)
    dy = torch.randn_like(module(x))
    with served.batch_invariant() as block:
        found = gradients(module, x, dy)
        again = gradients(module, x, dy)
        one = x[1:2].detach().requires_grad_()
        alone = gradients(module, one, dy[1:2])
    assert block.served == {"convolution": 3, "convolution_backward": 3} and not block.unknown
    assert all(map(torch.equal, found, again)), "twice"
    assert torch.equal(alone[0], found[0][1:2]) and torch.equal(alone[1], found[1][1:2])
    assert [v.stride() for v in found] == [v.stride() for v in gradients(module, x, dy)]
    # sums of n products, each below (|x| |w|)_n: n + 1 roundings of 2^-24 at most, and as many of
    # PyTorch's in f64, which are none here; magnitudes are the same sums of absolute values
    wide, size = module.double(), x.detach().abs().double().requires_grad_()
    exact = gradients(wide, x.detach().double().requires_grad_(), dy.double())
    with torch.no_grad():
        for p in wide.parameters():
            p.abs_()
    sums = gradients(wide, size, dy.abs().double())
    for got, truth, total in zip(found, exact, sums, strict=True):
        terms = max(dy.numel(), x.numel())
        assert ((got - truth).abs() <= (terms + 1) * 2.0**-24 * total).all()


@pytest.mark.parametrize("name", ["2d", "transpose"])
def test_graphs_have_programs(name):
    torch = pytest.importorskip("torch")
    from ptxgen.torch import Backend

    torch.manual_seed(0)
    module, shape = modules()[name]
    x = torch.randn(shape, requires_grad=True)
    backend = Backend(strict=True)
    compiled = torch.compile(module, backend=backend, fullgraph=True, dynamic=False)
    dy = torch.randn_like(module(x))
    found = gradients(compiled, x, dy)
    report = backend.report()
    assert not report.torch and not report.unknown and len(report.programs) == 2
    transposed = name == "transpose"
    of = {"stride": 2, "groups": module.groups}
    of |= {"output_padding": 1} if transposed else {}
    given = [v.detach().numpy() for v in (x, module.weight, module.bias)]
    own = (reference.conv_transpose if transposed else reference.conv)(*given, **of)
    same_bits(found[0].detach().numpy(), own)


def test_functions_record_gradients():
    torch = pytest.importorskip("torch")
    import ptxgen.torch as served

    torch.manual_seed(0)
    x, w, bias = (torch.randn(s, requires_grad=True) for s in ((2, 4, 5, 5), (6, 4, 3, 3), (6,)))
    how = {"padding": 1, "activation": "gelu"}
    y = served.conv(x, w, bias, **how)
    dy = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, w, bias), dy, create_graph=True)
    plain = torch.nn.functional.gelu(torch.nn.functional.conv2d(x, w, bias, padding=1))
    same = torch.autograd.grad(plain, (x, w, bias), dy, create_graph=True)
    for one, other in zip(found, same, strict=True):
        # f32, other orders: sums of up to 2^9 products below 2^4, 2^4.5 of 2^-20.
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    twice = [torch.autograd.grad(sum(v.square().sum() for v in g), (x, w)) for g in (found, same)]
    for one, other in zip(*twice, strict=True):
        # Second gradients: products of such sums, below 2^8.
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-2)


def test_operators_are_what_pytorch_asks_of_them():
    torch = pytest.importorskip("torch")
    from ptxgen.torch import operators

    torch.manual_seed(0)
    x, w, dy = (torch.randn(s, requires_grad=True) for s in ((2, 4, 5), (6, 4, 3), (2, 6, 3)))
    for name, args, how in (
        ("conv", (x, w), {"padding": [1]}),
        ("conv_transpose", (dy, w), {"stride": [2]}),
        ("conv_dgrad", (dy, w), {"image": [5]}),
        ("conv_wgrad", (x, dy), {"taps": [3]}),
    ):
        checked = torch.library.opcheck(operators.operator(OPERATIONS[name]), args, how)
        assert set(checked.values()) == {"SUCCESS"}, (name, checked)


def test_channels_that_lie_last_stay_there():
    """Convolutions of PyTorch's channels_last format copy nothing but im2col columns."""
    pytest.importorskip("torch")
    from ptxgen.torch import aten

    b = ProgramBuilder(OPERATIONS)
    x = b.input("x", imagined((2, 9, 8, 4), "float32")).permuted((0, 3, 1, 2))
    w = b.input("w", imagined((6, 3, 3, 4), "float32")).permuted((0, 3, 1, 2))
    how = [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    y = aten._convolution(b, "auto", x, w, None, *how)
    assert y.shape == (2, 6, 7, 6) and y.strides == (252, 1, 36, 6)
    assert [s.problem.what.split()[0] for s in b.steps] == ["copy", "linear"]


def test_an_operator_behind_it():
    pytest.importorskip("torch")
    from ptxgen.torch import aten

    def steps(name, *args):
        b = ProgramBuilder(OPERATIONS)
        x, w = (
            b.input(n, imagined(s, "float32"))
            for n, s in (("x", (2, 4, 9, 8)), ("w", (4, 1, 3, 3)))
        )
        y = aten.LOWERED[name](b, "auto", x, w, *args)
        return y.shape, [str(s.problem) for s in b.steps]

    same = steps("convolution", None, [2, 2], [1, 1], [1, 1], False, [0, 0], 4)
    assert steps("cudnn_convolution", [1, 1], [2, 2], [1, 1], 4, True, True, False) == same
    assert steps("_conv_depthwise2d", [3, 3], None, [2, 2], [1, 1], [1, 1]) == same


def test_no_negative_zero_leaves_a_depthwise_chain():
    """A product that underflows, and nothing else: +0.0, as ``linear`` gives it."""
    for dtype in ("f32", "bf16"):
        x, w = operand(np.random.default_rng(0), (2, 1, 2, 8), "normal", dtype), None
        x, w = np.full_like(x, -1e-30), np.full_like(x[0, 0, 0], 1e-30).reshape(8, 1, 1, 1)
        for call in (ptxgen.conv, reference.conv):
            y = call(x, w, groups=8, layout=LAST).astype(np.float32)
            assert not y.any() and not np.signbit(y).any()


# -- images that kernels read where they lie ------------------------------------------------------
def steps(name, given):
    """The tables of the steps of a call."""
    return [step.problem.table for step in lowering(OPERATIONS[name], given)[1].program.steps]


@pytest.mark.parametrize(("dtype", "channels"), [("bf16", 32), ("f16", 24), ("bf16", 8)])
def test_windows_need_no_columns(dtype, channels):
    """With channels a multiple of 8, implicit GEMM is one launch and has im2col's bits."""
    rng = np.random.default_rng(7)
    shapes = (2, 9, 8, channels), (24, 3, 2, channels)
    x, w = (operand(rng, shape, "wide", dtype) for shape in shapes)
    bias = operand(rng, (24,), "normal", "f32")
    ways = [
        {"stride": (2, 1), "padding": (1, 0)},
        {"dilation": (1, 3), "padding": 2, "activation": "gelu"},
        {"bias": bias},
    ]
    for way in ways:
        given = {"x": x, "w": w, "layout": LAST, **way}
        assert steps("conv", given) == [KEY]
        same_bits(ptxgen.conv(**given), expected("conv", {**given}), what=str(way))
    sequence = {"x": x[:, 0], "w": w[:, 0], "padding": 1, "layout": LAST}
    assert steps("conv", sequence) == [KEY]
    same_bits(ptxgen.conv(**sequence), by_hand(**sequence))
    first = {"x": np.ascontiguousarray(np.moveaxis(x, -1, 1)), "padding": 1}
    first["w"] = np.ascontiguousarray(np.moveaxis(w, -1, 1))
    assert KEY in steps("conv", first)
    same_bits(ptxgen.conv(**first), by_hand(**first))


@pytest.mark.parametrize("layout", [LAST, "channels_first"])
@pytest.mark.parametrize("stride", [1, 2, (2, 1), 3])
def test_gradients_of_images_gather_where_they_lie(stride, layout):
    """An image gradient is one launch for up to two phases along a dimension, else one a phase,
    with filters in place. Filters whose outputs do not lie last are copied once.
    """
    rng = np.random.default_rng(4)
    strides = each(stride, 2)
    count = [(7 + 2 - 3) // s + 1 for s in strides]
    dy = back(operand(rng, (2, *count, 40), "wide", "bf16"), layout)
    w = back(operand(rng, (40, 3, 3, 16), "wide", "bf16"), layout)
    dy, w = map(np.ascontiguousarray, (dy, w))
    given = {"dy": dy, "w": w, "image": (7, 7), "stride": stride, "padding": 1, "layout": layout}
    found = steps("conv_dgrad", given)
    if layout == LAST:
        assert found == [TURNED] * (9 if stride == 3 else 1)
    elif stride == 2:
        assert found.count(TURNED) == 1 and len(found) <= 4  # dy and w are turned, and the result
    same_bits(ptxgen.conv_dgrad(**given), expected("conv_dgrad", given))


@pytest.mark.parametrize("outs", [16, 13])
@pytest.mark.parametrize("stride", [(2, 1), 2, (3, 1)])
def test_gradients_of_images_of_one_row_have_its_taps(stride, outs):
    """Images of one row have one phase along it, whose first tap need not be the filter's first."""
    rng = np.random.default_rng(outs)
    for image in (1, 9), (1, 1):
        count = [(n + 2 - 3) // s + 1 for n, s in zip(image, each(stride, 2), strict=True)]
        dy = operand(rng, (2, *count, outs), "normal", "bf16")
        w = operand(rng, (outs, 3, 3, 16), "normal", "bf16")
        given = {"dy": dy, "w": w, "image": image, "stride": stride, "padding": 1, "layout": LAST}
        assert steps("conv_dgrad", given) == [TURNED]
        same_bits(ptxgen.conv_dgrad(**given), expected("conv_dgrad", given))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("outs", "channels"), [(13, 16), (24, 5), (3, 13)])
def test_gradients_of_images_of_any_channels(monkeypatch, outs, channels, stride):
    """Image gradients of any channels are one step, behind a copy of filters whose rows are off 16
    bytes. With fewer than 8 channels and too many scalar loads, im2col columns are taken.
    """
    rng = np.random.default_rng(outs)
    count = (7 + 2 - 3) // stride + 1
    dy = operand(rng, (2, count, count, outs), "wide", "bf16")
    w = operand(rng, (outs, 3, 3, channels), "wide", "bf16")
    given = {"dy": dy, "w": w, "image": (7, 7), "stride": stride, "padding": 1, "layout": LAST}
    assert steps("conv_dgrad", given) == [("pointwise",)] * (channels % 8 > 0) + [TURNED]
    same_bits(ptxgen.conv_dgrad(**given), expected("conv_dgrad", given))
    monkeypatch.setattr("ptxgen.ops.implicit_gemm.LOOSE_MAX", 0)
    assert (TURNED in steps("conv_dgrad", given)) == (outs >= 8)


@pytest.mark.parametrize("channels", [3, 13])
def test_windows_of_any_channels(channels):
    """Windows of any channels are one step behind a copy of the filters, whose outputs must be
    contiguous; views of larger images, too.
    """
    rng = np.random.default_rng(channels)
    x = operand(rng, (2, 9, 8, channels), "wide", "bf16")
    w = operand(rng, (24, 3, 2, channels), "wide", "bf16")
    for image in (x, x[:, 1:, 2:], x[:, :1, :1], x[..., 1:]):
        given = {"x": image, "w": w[..., : image.shape[-1]], "padding": 1, "layout": LAST}
        assert steps("conv", given)[-1] == TURNED
        same_bits(ptxgen.conv(**given), expected("conv", given))


ODD = {
    r.of(d).main.name: r.of(d).main
    for r in TABLES[TURNED].routes
    if r.main.load == Gather("threads", "copy")
    for d in ("bf16", "f16")
}


@pytest.mark.parametrize(
    "name",
    [  # of the smallest tiles; of f16, which differs in nothing else, of one
        pytest.param(n, marks=() if spec.bm == spec.bn == 64 and few else pytest.mark.long)
        for n, spec in ODD.items()
        for few in [spec.dtype == "bf16" or spec.split == "workspace"]
    ],
)
def test_images_that_are_copied_with_zeros(name):
    """Every kernel that reads one, on the problems that cross its edges, forced."""
    for check in window_cases.products(name):
        check(CpuDevice())


@pytest.mark.parametrize(("outs", "channels"), [(24, 24), (12, 24), (8, 21), (5, 3)])
def test_gradients_of_filters_need_no_columns(outs, channels):
    """Filter gradients are one launch, or two if sums are cut. Operands whose channels are no
    multiple of 8 are copied before, and such filters behind.
    """
    rng = np.random.default_rng(outs)
    x = operand(rng, (3, 9, 7, channels), "wide", "bf16")
    copies = 2 * (channels % 8 != 0) + (outs % 8 != 0), int(channels % 8 != 0)
    for way in ({"padding": 1}, {"stride": 2, "dilation": (1, 2)}):
        count = by_hand(x, np.zeros((8, 3, 3, channels), x.dtype), layout=LAST, **way).shape[1:3]
        dy = operand(rng, (3, *count, outs), "wide", "bf16")
        given = {"x": x, "dy": dy, "taps": (3, 3), "layout": LAST, **way}
        tables = [table == SUMMED for table in steps("conv_wgrad", given)]
        assert tables == [False] * copies[0] + [True] + [False] * copies[1]
        same_bits(ptxgen.conv_wgrad(**given), expected("conv_wgrad", given))
        chain = {**given, "chain": True}
        assert SUMMED not in steps("conv_wgrad", chain)


class OneCta(CpuDevice):
    """A device on which one CTA (or cluster) walks over all of a kernel's work."""

    def launch(self, function, grid, block, stream, params, what):
        if function.symbol.startswith("conv_"):
            grid = (SPECS[function.symbol].ctas, 1, 1)
        super().launch(function, grid, block, stream, params, what)


HALVES = {n: s for n, s in SPECS.items() if isinstance(s, ConvSpec) and s.dtype == "bf16"}
WALKED = {(spec.family, spec.layout, spec.split): name for name, spec in HALVES.items()}
LONGEST = {
    n
    for (family, layout, split), n in WALKED.items()
    if (family, layout) == ("conv_gather", "NN") or (family, split) == ("conv_whole", "serial")
}


@pytest.mark.parametrize(
    "name",
    [  # the one with the largest tile is long, and one that puts windows together for each tile
        pytest.param(n, marks=pytest.mark.long if n in LONGEST else ())
        for n in sorted(WALKED.values())
    ],
)
def test_a_cta_walks(name):
    """Over tiles, chunks and phases, with tables and stages that are used again."""
    for case in window_cases.products(name):
        case(OneCta())


@pytest.mark.parametrize("fact", ["spilled_sums", "cluster_m"])
def test_sums_wait_and_pairs_share(fact):
    """Kernels that differ in that from others of their kind, of which those are long."""
    names = [n for n, spec in HALVES.items() if (getattr(spec, fact) or 1) > 1]
    assert len(names) > 3 * (fact == "spilled_sums")
    name = min(names, key=lambda n: SPECS[n].bn)
    for case in window_cases.products(name)[-2:]:
        case(CpuDevice())


def test_what_the_copy_engine_does_not_take_has_columns():
    rng = np.random.default_rng(3)
    for sides, taps, way in (
        ((3, 3, 4), (2, 2, 2), {}),  # three dimensions
        ((300, 1), (258, 1), {}),  # taps that are too far apart
        ((30, 4), (3, 3), {"stride": 9}),
        ((6, 6), (3, 3), {"tier": "simt"}),
    ):
        x, w = (operand(rng, s, "normal", "bf16") for s in ((1, *sides, 16), (8, *taps, 16)))
        given = {"x": x, "w": w, "layout": LAST, **way}
        assert KEY not in steps("conv", given)
    odd = {"x": x[..., :12], "w": w[..., :12], "layout": LAST}
    assert KEY not in steps("conv", odd)
