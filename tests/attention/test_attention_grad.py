"""``attention_grad``: bits of every kernel, what gradients depend on, what they are beside exact
numbers."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits

import ptxgen
from ptxgen import reference
from ptxgen.build.compile import compile_cubin
from ptxgen.build.render import source
from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.attention import Form
from ptxgen.spec.attention_grad import HopperGradSpec
from ptxgen.tiles import TABLES
from ptxgen.tiles.attention_grad import KERNELS, ONE, THREE, key

f32 = np.float32


@functools.cache
def device(compute=(10, 0)):
    """Device that decodes each kernel once; newer than Hopper unless ``compute`` says otherwise."""
    made = CpuDevice()
    made.compute = compute
    return made


HOPPER = 9, 0


@pytest.fixture(autouse=True)
def on_cpu():
    with ptxgen.use_device(device()):
        yield


def ints(*x):
    return np.array(x, np.int32)


def draw(dtype, *shapes, seed=5, kind="normal"):
    rng = np.random.default_rng(seed)
    return tuple(operand(rng, shape, kind, dtype) for shape in shapes)


def shapes(b, h, hk, s, length, d, e=None):
    """Returns the shapes of do, q, k and v."""
    e = d if e is None else e
    return (b, h, s, e), (b, h, s, d), (b, hk, length, d), (b, hk, length, e)


WANTED = ("bias_grad", "sinks_grad")


def both(do, q, k, v, what="", **how):
    """The gradients, which have the bits of the oracle."""
    own = {n: x for n, x in how.items() if n not in (*WANTED, "kernel")}
    o, lse = reference.attention(q, k, v, return_lse=True, **own)
    expected = reference.attention_grad(do, q, k, v, o, lse, **how)
    got = ptxgen.attention_grad(do, q, k, v, o, lse, **how)
    for name, one, other in zip(("dq", "dk", "dv", "1", "2"), got, expected, strict=False):
        same_bits(one, other, what=f"{what} {name} {list(how)}")
    assert len(got) == len(expected)
    return got


# -- bits ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        pytest.param("bf16", (1, 4, 2, 40, 300, 64), marks=pytest.mark.long),
        ("bf16", (1, 2, 2, 35, 70, 128)),
        pytest.param("f16", (2, 3, 1, 70, 70, 80), marks=pytest.mark.long),
        pytest.param("bf16", (1, 2, 1, 40, 90, 192, 128), marks=pytest.mark.long),
        pytest.param("f16", (1, 1, 1, 5, 100, 256), marks=pytest.mark.long),
        ("bf16", (1, 2, 2, 5, 100, 36, 20)),
        ("f32", (1, 4, 2, 5, 70, 64)),
        pytest.param("f32", (1, 1, 1, 5, 50, 192), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_bits(dtype, sizes):
    """Sizes on both sides of tiles, heads that share keys; full, causal and in a window."""
    given = draw(dtype, *shapes(*sizes))
    for how in ({"causal": True}, {}, {"causal": True, "window": 20}, {"window": 37}):
        both(*given, **how)
    both(*draw(dtype, *shapes(*sizes), kind="wide"), causal=True)


SINKS = np.array([0.5, 1, -1, 2], f32)
SLOPES = np.array([0.5, 0.25, 0.1, 2], f32)


@pytest.mark.parametrize(
    "dtype", ["bf16", *(pytest.param(x, marks=pytest.mark.long) for x in ("f16", "f32"))]
)
def test_bits_of_what_changes_logits(dtype):
    rng, size = np.random.default_rng(3), (2, 4, 2, 9, 70, 64)
    given, (batch, _, _, s, length, _) = draw(dtype, *shapes(*size)), size
    mask = rng.random((batch, 1, s, length)) < 0.5
    bias = rng.standard_normal((4, s, length)).astype(NUMPY[dtype])
    wide = rng.standard_normal((batch, 1, s, length)).astype(f32)
    for how in (
        {"mask": mask},
        {"softcap": 2.0, "sinks": SINKS, "sinks_grad": True, "causal": True},
        {"slopes": SLOPES, "causal": True},
        {"bias": bias, "bias_grad": True},
        {"bias": wide, "bias_grad": True, "mask": mask, "softcap": 1.0},
        {"scale": -0.3, "lengths": ints(40, 0)},
        {"scale": 0.0},
    ):
        both(*given, **how)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_the_gradient_of_sinks_has_their_dtype(kind):
    """Summed in f32, and rounded once."""
    given, sinks = draw("bf16", *shapes(2, 4, 2, 9, 70, 64)), SINKS.astype(NUMPY[kind])
    found = both(*given, sinks=sinks, sinks_grad=True)
    wide = both(*given, sinks=sinks.astype(f32), sinks_grad=True)
    for one, other in zip(found, wide, strict=True):
        same_bits(one, other.astype(one.dtype))
    assert found[3].dtype == NUMPY[kind]


def test_without_keys_sinks_have_the_gradient_of_any_result():
    """D is what `do` and `o` say, also of a result that attention did not make."""
    do, q, k, v, o = draw("bf16", *shapes(2, 4, 2, 9, 0, 64), (2, 4, 9, 64))
    lse = np.random.default_rng(6).standard_normal((2, 4, 9)).astype(f32)
    given = {"sinks": SINKS, "sinks_grad": True}
    got, expected = (of.attention_grad(do, q, k, v, o, lse, **given) for of in (ptxgen, reference))
    for one, other in zip(got, expected, strict=True):
        same_bits(one, other)
    assert np.count_nonzero(got[3]) == 4


def test_bits_of_layouts_and_lengths():
    rng = np.random.default_rng(4)

    def made(*shape):
        return rng.standard_normal(shape).astype(NUMPY["bf16"])

    do, q, k, v = draw("bf16", *shapes(2, 4, 2, 7, 200, 64))
    both(do, q, k, v, lengths=ints(130, 7), starts=ints(3, 100), causal=True)
    how = {"lengths": ints(130, 7), "query_lengths": ints(7, 2), "window": 20}
    both(do, q, k, v, sinks=SINKS, sinks_grad=True, **how)
    turned = [np.ascontiguousarray(x.swapaxes(1, 2)) for x in (do, q, k, v)]
    same = both(*(x.swapaxes(1, 2) for x in turned), causal=True)
    other = both(*turned, causal=True, layout="bshd", sinks=None)
    for one, two in zip(same, other, strict=True):
        same_bits(two.swapaxes(1, 2), one)
    qkv = made(2, 50, 3, 4, 64)
    both(made(2, 50, 4, 64), *(qkv[:, :, i] for i in range(3)), causal=True, layout="bshd")
    both(made(2, 2, 2, 9, 64), made(2, 2, 2, 9, 64), made(1, 20, 64), made(1, 20, 64))
    packed = made(60, 4, 64), made(60, 4, 64), made(60, 2, 64), made(60, 2, 64)
    both(*packed, cu_seqlens=ints(0, 5, 5, 40, 60), causal=True)
    short = made(20, 4, 64), made(20, 4, 64), made(60, 2, 64), made(60, 2, 64)
    ends = {"cu_seqlens": ints(0, 5, 5, 10, 20), "cu_seqlens_k": ints(0, 5, 25, 40, 55)}
    dk = both(*short, **ends, causal=True, sinks=SINKS, sinks_grad=True)[1]
    assert not dk[55:].any()


# -- Hopper's kernels ---------------------------------------------------------------------------
def on_hopper(do, q, k, v, shape=ONE, **how):
    """The gradients by Hopper's kernels, which have the bits of the oracle."""
    dtype = {"bfloat16": "bf16", "float16": "f16"}[q.dtype.name]
    heads = (-(-x.shape[-1] // 16) * 16 for x in (q, v))
    form = Form(dtype, next(heads), next(heads))
    o, lse = reference.attention(q, k, v, return_lse=True, **how)
    expected = reference.attention_grad(do, q, k, v, o, lse, **how)
    for part in KERNELS:
        of_part = {} if shape is THREE and part != "dq" else shape
        kernel = HopperGradSpec(part, **of_part).of(form).name
        with ptxgen.use_device(device(HOPPER)):
            got = ptxgen.attention_grad(do, q, k, v, o, lse, kernel=kernel, **how)
        for name, one, other in zip(("dq", "dk", "dv"), got, expected, strict=True):
            if name in part or name[1:] in part:
                same_bits(one, other, what=f"{kernel} {name} {how}")
    return expected


@pytest.mark.parametrize(
    ("dtype", "sizes", "shape"),
    [
        ("bf16", (1, 4, 2, 40, 200, 64), {}),
        pytest.param("bf16", (1, 4, 2, 50, 200, 64), THREE, marks=pytest.mark.long),
        pytest.param("f16", (1, 3, 1, 70, 400, 96, 80), THREE, marks=pytest.mark.long),
        pytest.param("bf16", (1, 7, 1, 30, 100, 36, 20), {}, marks=pytest.mark.long),
        pytest.param("bf16", (1, 2, 2, 35, 500, 128), {}, marks=pytest.mark.long),
        pytest.param("bf16", (1, 128, 1, 3, 40, 64), ONE, marks=pytest.mark.long),
        pytest.param("bf16", (1, 1, 1, 70, 90, 256), {}, marks=pytest.mark.long),
        pytest.param("f16", (1, 3, 1, 70, 140, 192), ONE, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_bits_on_hopper(dtype, sizes, shape):
    """Heads that share keys, in one part and in several; queries of several blocks."""
    given = draw(dtype, *shapes(*sizes))
    for how in ({"causal": True}, {}, {"causal": True, "window": 20}, {"window": 37}):
        on_hopper(*given, shape, **how)


def test_lengths_and_layouts_on_hopper():
    do, q, k, v = draw("bf16", *shapes(2, 4, 2, 7, 200, 64))
    on_hopper(do, q, k, v, lengths=ints(130, 7), starts=ints(3, 100), causal=True)
    how = {"lengths": ints(130, 7), "query_lengths": ints(7, 2), "window": 20}
    on_hopper(do, q, k, v, **how)
    turned = [x.swapaxes(1, 2) for x in (do, q, k, v)]
    on_hopper(*turned, causal=True, layout="bshd")
    packed = draw("bf16", (60, 4, 64), (60, 4, 64), (60, 2, 64), (60, 2, 64))
    on_hopper(*packed, cu_seqlens=ints(0, 5, 5, 40, 60), causal=True)
    shared = draw("bf16", (2, 2, 2, 9, 64), (2, 2, 2, 9, 64), (1, 20, 64), (1, 20, 64))
    on_hopper(*shared, causal=True)
    short = *(x[:20] for x in packed[:2]), *packed[2:]
    ends = {"cu_seqlens": ints(0, 5, 5, 10, 20), "cu_seqlens_k": ints(0, 5, 25, 40, 55)}
    dk = on_hopper(*short, **ends, causal=True)[1]
    assert not dk[55:].any()


@pytest.mark.parametrize(
    ("dtype", "head", "shape"),
    [
        ("bf16", 64, ONE),
        pytest.param("f16", 64, {}, marks=pytest.mark.long),
    ],
)
def test_what_is_not_seen_on_hopper(dtype, head, shape):
    """A NaN or infinity in do, q, k or v changes no gradient that the causal mask keeps it from."""
    given = draw(dtype, *shapes(1, 2, 1, 20, 150, head))
    clean = on_hopper(*given, shape, causal=True)
    do, q, k, v = (x.copy() for x in given)
    v[0, 0, 140, 3], k[0, 0, 149, 5] = np.nan, np.inf
    found = on_hopper(given[0], given[1], k, v, shape, causal=True)
    same_bits(found[0][:, :, :9], clean[0][:, :, :9])
    assert np.isnan(found[0][:, :, 19]).all()
    q[0, 1, 7, 2] = np.nan
    do[0, 1, 7, 2], do[0, 0, 3, 1] = np.inf, -np.inf
    for one, other in ((given[0], q), (do, given[1])):
        found = on_hopper(one, other, *given[2:], shape, causal=True)
        for one, other in zip(found[1:], clean[1:], strict=True):
            same_bits(one[..., 138:, :], other[..., 138:, :])
        assert np.isnan(found[1][..., :138, :]).any(-1).all()
    by = 1e3 if dtype == "f16" else 1e18
    on_hopper(do, (q * by).astype(q.dtype), (k * by).astype(k.dtype), v, shape)


def test_masks_are_left_to_kernels_that_read_their_map():
    do, q, k, v = draw("bf16", *shapes(1, 2, 1, 70, 150, 64))
    name = HopperGradSpec("dq").of(Form("bf16", 64, 64)).name
    with ptxgen.use_device(device(HOPPER)), pytest.raises(OptionError, match="does not serve"):
        both(do, q, k, v, mask=np.ones((70, 150), bool), kernel=name)


def test_bits_without_keys_or_queries():
    do, q, k, v = draw("bf16", *shapes(1, 2, 1, 20, 70, 64))
    for given in ((do, q, k[:, :, :0], v[:, :, :0]), (do[:, :, :0], q[:, :, :0], k, v)):
        assert not any(x.any() for x in both(*given))


@pytest.mark.long
def test_no_kernel_up_to_128_spills():
    for dtype in ("bf16", "f32"):
        for part in ("dq", "dkdv"):
            for rounded in (False, True):
                routes = TABLES[key(part, dtype)].routes
                spec = next(r.main for r in routes if not isinstance(r.main, HopperGradSpec))
                spec = spec.of(Form(dtype, 128, 128, rounded))
                made = compile_cubin(source(spec), name=spec.name, arch="sm_90")
                assert made.resources.spill_stores == 0, spec.name


@pytest.mark.parametrize(
    ("head", "part", "shape"),
    [
        *(
            pytest.param(n, part, {}, marks=pytest.mark.long if n != 128 else ())
            for n in (64, 128, 192, 256)
            for part in KERNELS
        ),
        *(pytest.param(n, "dq", THREE, marks=pytest.mark.long) for n in (64, 96)),
        *(
            pytest.param(n, part, ONE, marks=pytest.mark.long)
            for n in (128, 256)
            for part in KERNELS
        ),
    ],
)
def test_products_on_hopper_overlap(head, part, shape):
    """The compiler makes no product wait for another, and hardly spills: only in the way of blocks
    that some rows do not see.
    """
    spec = HopperGradSpec(part, head, head, **shape)
    made = compile_cubin(source(spec), name=spec.name, arch="sm_90a")
    assert "C751" not in made.log and "C752" not in made.log, made.log
    most = 88 if (head, part, shape) == (256, "dkdv", ONE) else 72
    assert made.resources.spill_stores <= most, made.resources


# -- what gradients depend on -------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["bf16", pytest.param("f32", marks=pytest.mark.long)])
def test_a_sequence_alone_in_a_batch_padded_and_packed(dtype):
    """A sequence has the same gradients alone, in a batch, and in padded and packed batches."""
    do, q, k, v = draw(dtype, *shapes(3, 4, 2, 21, 75, 64))
    alone = [x[1:2] for x in (do, q, k, v)]
    expected = both(*alone, causal=True)

    def same(found):
        for one, other in zip(found, expected, strict=True):
            same_bits(one, other[0])

    same([x[1] for x in both(do, q, k, v, causal=True)])
    (do2, q2, k2, v2) = draw(dtype, *shapes(2, 4, 2, 40, 100, 64), seed=6)
    for wide, own, at in ((do2, do, 0), (q2, q, 0), (k2, k, 9), (v2, v, 9)):
        wide[1, :, at : at + own.shape[2]] = own[1]
    how = {"query_lengths": ints(40, 21), "starts": ints(0, 9), "lengths": ints(100, 75)}
    dq, dk, dv = both(do2, q2, k2, v2, causal=True, **how)
    same((dq[1, :, :21], dk[1, :, 9:84], dv[1, :, 9:84]))
    assert not (dq[1, :, 21:].any() or dk[1, :, :9].any() or dv[1, :, 84:].any())
    flat = [x.swapaxes(1, 2).reshape(-1, x.shape[1], 64) for x in (do, q, k, v)]
    ends = {"cu_seqlens": ints(0, 21, 42, 63), "cu_seqlens_k": ints(0, 75, 150, 225)}
    dq, dk, dv = both(*flat, causal=True, **ends)
    same([x.swapaxes(0, 1) for x in (dq[21:42], dk[75:150], dv[75:150])])


@pytest.mark.parametrize("dtype", ["bf16", pytest.param("f16", marks=pytest.mark.long), "f32"])
def test_what_is_not_seen_may_be_anything(dtype):
    """NaN in keys and values that a row does not see leaves the row's gradients alone."""
    do, q, k, v = draw(dtype, *shapes(1, 2, 1, 20, 150, 64))
    mask = np.ones((20, 150), bool)
    mask[:, 140:], mask[3], mask[5, 20] = False, False, False
    clean = both(do, q, k, v, mask=mask)
    k2, v2, do2, q2 = k.copy(), v.copy(), do.copy(), q.copy()
    k2[..., 140:, :], v2[..., 140:, :] = np.nan, np.inf
    do2[:, :, 3], q2[:, :, 3] = np.nan, -np.inf
    dq, dk, dv = both(do2, q2, k2, v2, mask=mask)
    for one, other in zip((dq, dk, dv), clean, strict=True):
        same_bits(one, other)
    assert not (dk[..., 140:, :].any() or dv[..., 140:, :].any() or dq[:, :, 3].any())
    # of what is seen by some: the others' gradients are those of clean numbers
    k2, v2 = k.copy(), v.copy()
    v2[0, 0, 140, 3], k2[0, 0, 149, 5] = np.nan, np.inf
    clean, found = both(do, q, k, v, causal=True), both(do, q, k2, v2, causal=True)
    same_bits(found[0][:, :, :9], clean[0][:, :, :9])
    assert np.isnan(found[0][:, :, 19]).all() and np.isfinite(clean[2]).all()
    q2 = q.copy()
    q2[0, 1, 7, 2] = np.nan  # the row's result and gradients are NaN, those of keys behind are not
    found = both(do, q2, k, v, causal=True)
    for one, other in zip(found[1:], clean[1:], strict=True):
        same_bits(one[..., 138:, :], other[..., 138:, :])
        assert np.isnan(one[..., :138, :]).all()


def test_huge_logits():
    do, q, k, v = draw("bf16", *shapes(1, 2, 1, 20, 70, 64))
    for by in (100, 1e18):
        both(do, (q * by).astype(q.dtype), (k * by).astype(k.dtype), v)


# -- beside exact numbers -----------------------------------------------------------------------
def exact(do, q, k, v, rounded=lambda x: x, causal=False, bias=None, **how):
    """Computes gradients in f64 by the textbook; ``rounded``: applied to what is stored between
    steps.
    """
    do, q, k, v = (x.astype(np.float64) for x in (do, q, k, v))
    group, scale = q.shape[1] // k.shape[1], 1 / math.sqrt(q.shape[-1])
    k, v = (x.repeat(group, 1) for x in (k, v))
    z, slow = rounded(q @ k.swapaxes(-1, -2)) * scale, 1.0
    if cap := how.get("softcap"):
        slow = 1 - np.tanh(z / cap) ** 2
        z = cap * np.tanh(z / cap)
    at, own = np.arange(z.shape[-1]), np.arange(z.shape[-2]) + z.shape[-1] - z.shape[-2]
    if bias is not None:
        z = z + bias
    if "slopes" in how:
        z = z + how["slopes"][:, None, None] * (at - own[:, None])
    if causal:
        z = np.where(at <= own[:, None], z, -np.inf)
    top = z.max(-1, keepdims=True)
    total = np.exp(z - top).sum(-1, keepdims=True)
    if "sinks" in how:
        total = total + np.exp(how["sinks"][:, None, None] - top)
    p = rounded(np.exp(z - top) / total)
    dp = rounded(do @ v.swapaxes(-1, -2))
    delta = (do * rounded(p @ v)).sum(-1, keepdims=True)
    dz = p * (dp - delta)
    ds = rounded(dz * slow)
    dq, dk, dv = ds @ k * scale, ds.swapaxes(-1, -2) @ q * scale, p.swapaxes(-1, -2) @ do
    shared = (*dk.shape[:1], -1, group, *dk.shape[2:])
    found = [rounded(dq), *(rounded(rounded(x).reshape(shared).sum(2)) for x in (dk, dv))]
    if bias is not None:
        found.append(dz.sum((0, 1)))
    if "sinks" in how:
        weight = np.exp(how["sinks"][:, None, None] - top) / total
        found.append(-(weight * delta).sum((0, 2, 3)))
    return found


UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11}


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_beside_exact_numbers(dtype):
    """Errors are at most those of steps that are exact, but store what they give in the dtype (of
    16 bits), or 2**-20 (of f32, whose weights are off by up to 2**-22). Those of sinks are at most
    what rounding a result to 16 bits moves it by.
    """
    rng = np.random.default_rng(7)
    given = draw(dtype, *shapes(2, 4, 2, 60, 90, 64), seed=7)
    bias = rng.standard_normal((60, 90)).astype(f32)
    for how in (
        {},
        {"causal": True},
        {"causal": True, "softcap": 2.0, "sinks": SINKS},
        {"bias": bias, "sinks": SINKS},
        {"slopes": SLOPES, "causal": True},
    ):
        wanted = {"bias_grad": "bias" in how, "sinks_grad": "sinks" in how}
        own = {n: x for n, x in how.items() if n not in WANTED}
        o, lse = reference.attention(*given[1:], return_lse=True, **own)
        found = reference.attention_grad(*given, o, lse, **how, **wanted)
        right = exact(*given, **how)
        plain = exact(*given, lambda x: x.astype(NUMPY[dtype]).astype(np.float64), **how)
        for one, other, beside in zip(found, right, plain, strict=True):
            error, theirs = (np.linalg.norm(x - other) for x in (one.astype(float), beside))
            most = 2.0**-20 * np.linalg.norm(other) if dtype == "f32" else theirs
            if one is found[-1] and "sinks" in how and dtype != "f32":  # a few sums: chance decides
                most = UNIT[dtype] * np.linalg.norm(other)
            assert error <= most, (how, error / np.linalg.norm(other))


def test_gradient_in_pytorch():
    """Autograd calls it, with what the forward pass kept."""
    torch = pytest.importorskip("torch")
    from ptxgen.ops import OPERATIONS
    from ptxgen.torch.record import function

    do, q, k, v = draw("f32", *shapes(1, 4, 2, 20, 20, 64))
    bias = draw("f32", (20, 20))[0]
    given = [torch.from_numpy(x).requires_grad_() for x in (q, k, v, bias, SINKS)]
    attend = function(OPERATIONS["attention"])
    y = attend(*given[:3], bias=given[3], sinks=given[4], causal=True)
    found = torch.autograd.grad(y, given, torch.from_numpy(do))
    how = {"bias": bias, "sinks": SINKS, "causal": True}
    o, lse = reference.attention(q, k, v, return_lse=True, **how)
    wanted = dict.fromkeys(WANTED, True)
    expected = reference.attention_grad(do, q, k, v, o, lse, **how, **wanted)
    for one, other in zip(found, expected, strict=True):
        same_bits(one.numpy(), other)
    slopes = torch.from_numpy(SLOPES).requires_grad_()
    with pytest.raises(GradError, match="no gradient by slopes"):
        attend(*given[:3], slopes=slopes).sum().backward()
    same, sums = attend(*given[:3], bias=given[3], sinks=given[4], causal=True, return_lse=True)
    assert torch.equal(same, y) and same.requires_grad and not sums.requires_grad
    same_bits(sums.numpy(), lse)


# -- what is refused ----------------------------------------------------------------------------
def test_what_is_refused():
    do, q, k, v = draw("f32", *shapes(1, 2, 1, 4, 6, 16))
    o, lse = reference.attention(q, k, v, return_lse=True)

    def call(*args, **how):
        given = dict(zip(("do", "q", "k", "v", "o", "lse"), (do, q, k, v, o, lse), strict=True))
        return ptxgen.attention_grad(**(given | how))

    for how, error, says in (
        ({"do": do[..., :8]}, ShapeError, r"do has dtype .* \[1, 2, 4, 8\]; takes"),
        ({"o": o.astype(np.float16)}, DtypeError, "o has dtype float16"),
        ({"lse": lse[..., :3]}, ShapeError, "lse has dtype float32 and shape"),
        ({"lse": lse.astype(np.float64)}, DtypeError, "lse has dtype float64"),
        ({"block_table": ints(0)[None]}, OptionError, "block_table is given; attention_grad"),
        ({"bias_grad": True}, OptionError, "bias_grad is True, bias is None"),
        ({"sinks_grad": True}, OptionError, "sinks_grad is True, sinks is None"),
        ({"window": 0}, OptionError, "window is 0"),
        ({"k": k[..., :8]}, ShapeError, "takes k with q's last dimension"),
    ):
        with pytest.raises(error, match=says):
            call(**how)


def test_results_go_where_they_are_wanted():
    do, q, k, v = draw("f32", *shapes(1, 2, 1, 4, 6, 16))
    o, lse = reference.attention(q, k, v, return_lse=True)
    expected = ptxgen.attention_grad(do, q, k, v, o, lse)
    out = tuple(np.full_like(x, np.nan) for x in (q, k, v))
    found = ptxgen.attention_grad(do, q, k, v, o, lse, out=out)
    for one, other, memory in zip(found, expected, out, strict=True):
        same_bits(one, other)
        assert one is memory
