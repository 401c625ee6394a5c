"""Fused linear cross-entropy: bits, independence of chunks and batch, options, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bits import same_bits
from steps import unchecked

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics.flce import CHUNK_MAX, EVALUATED, chunk_of
from ptxgen.ops import OPERATIONS
from ptxgen.oracle.flce import joined
from ptxgen.oracle.vocab_segments import logit_gradient
from ptxgen.oracle.vocab_segments import logit_segments as segments_oracle

bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
SEED = 14
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"reduction": "sum", "softcap": 5.0, "label_smoothing": 0.1},
    {"reduction": "none", "z_loss": 1e-3},
    {"label_smoothing": 0.2, "softcap": 3.0, "z_loss": 1e-2, "ignore_index": 7},
)
entropy, entropy_grad = map(unchecked, ("linear_cross_entropy", "linear_cross_entropy_grad"))
DTYPES = (np.float32, bfloat16, np.float16, np.float64)


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ptxgen.use_device("cpu"):
        yield


def head(m: int, k: int, n: int, dtype: Any = np.float32, layout: str = "nk"):
    """Features, a weight, targets (one left out, one that is no class) and a bias."""
    rng = np.random.default_rng([SEED, m, k, n])
    x, bias = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal(n).astype(dtype)
    w = rng.standard_normal((n, k) if layout == "nk" else (k, n)).astype(dtype)
    target = rng.integers(0, n, m)
    if m > 4:
        target[3], target[4] = -100, n + 5
    return x, w, target, bias


def alike(got: tuple[Any, ...], expected: tuple[Any, ...], what: str) -> None:
    for name, a, b in zip(("loss", "dx", "dw", "dbias"), got, expected, strict=True):
        assert (a is None) == (b is None), f"{what}: {name}"
        if a is not None:
            same_bits(np.asarray(a), np.asarray(b), seed=SEED, spec="", what=f"{what}: {name}")


@pytest.mark.parametrize(
    "dtype",
    [pytest.param(d, marks=pytest.mark.long if d is np.float16 else ()) for d in DTYPES],
    ids=lambda d: np.dtype(d).name,
)
@pytest.mark.parametrize("at", range(len(OPTIONS)))
def test_bits_are_the_oracles(dtype, at):
    layout, options = ("nk", "kn")[at % 2], OPTIONS[at]
    x, w, target, bias = head(21, 24, 37, dtype, layout)
    bias = None if at == 0 else bias
    how = {**options, "layout": layout, "chunk": 16}
    loss = entropy(x, w, target, bias, **how)
    expected = reference.linear_cross_entropy(x, w, target, bias, **how)
    same_bits(loss, expected, seed=SEED, spec="", what="loss")
    got = entropy_grad(x, w, target, bias, **how)
    alike(got, reference.linear_cross_entropy_grad(x, w, target, bias, **how), "gradients")
    same_bits(got[0], loss, seed=SEED, spec="", what="the loss with gradients")
    assert got[1].dtype == got[2].dtype == dtype and (got[3] is None) == (bias is None)


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda d: np.dtype(d).name)
def test_chunks_change_nothing_that_is_wide(dtype):
    x, w, target, bias = head(40, 16, 20, dtype)
    memory = [np.full(w.shape, np.nan, np.float32) for _ in range(4)]
    found = [
        entropy_grad(x, w, target, bias, dw=dw, chunk=chunk)
        for dw, chunk in zip(memory, (1, 7, 32, None), strict=True)
    ]
    for each in found[1:]:
        alike(each, found[0], "chunks")
    narrow = [entropy_grad(x, w, target, chunk=c)[2] for c in (16, 40)]
    if dtype == bfloat16:
        assert (narrow[0] != narrow[1]).any(), "a dW of 16 bits is rounded once a chunk"


def test_segments_and_chunks_give_the_same_bits():
    """Losses from segments of the product and from chunks of logits agree; the last segment is
    short.
    """
    x, w, target, bias = head(36, 16, 300, bfloat16)
    how: dict[str, Any] = {"reduction": "none"}
    whole = entropy(x, w, target, bias, **how)
    alone = entropy(x, w, target, bias, chunk=7, **how)
    same_bits(alone, whole, seed=SEED, spec="", what="the product, in chunks")
    for chunk in (1, 64):
        got = entropy_grad(x, w, target, bias, chunk=chunk, dw=False, **how)
        same_bits(got[0], whole, seed=SEED, spec="", what=f"logits, in chunks of {chunk}")
    x, w = x[:, :15].copy(), w[:, :15].copy()  # off 16 bytes: logits in memory
    got, expected = (
        each(x[:9], w, target[:9], bias, softcap=8.0)
        for each in (entropy, reference.linear_cross_entropy)
    )
    same_bits(got, expected, seed=SEED, spec="", what="features off 16 bytes")


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("softcap", [None, 30.0])
def test_rounding_errors(dtype, softcap):
    """Loss within 2 ulp, gradients within a rounding, of f64 on the same logits."""
    rng = np.random.default_rng(SEED)
    z = (rng.standard_normal((6, 20011)) * [[0.1], [1], [3], [10], [20], [60]]).astype(dtype)
    target = rng.integers(0, 20011, 6)
    losses, peak, scale = joined(z, target, softcap=softcap)
    g = logit_gradient(z, target, peak, scale, softcap=softcap).astype(np.float64)
    fine = z.astype(np.float64)
    slope = np.ones_like(fine)
    if softcap is not None:
        fine = softcap * np.tanh(fine / softcap)
        slope -= (fine / softcap) ** 2
    lse = np.logaddexp.reduce(fine, -1)
    exact = lse - fine[np.arange(6), target]
    assert (np.abs(losses - exact) <= 2 * np.spacing(np.float32(exact))).all()
    p = np.exp(fine - lse[:, None])
    p[np.arange(6), target] -= 1
    unit = np.spacing(np.abs(p * slope).astype(dtype)).astype(np.float64)
    # z - M is rounded, and so are exp, its factors and 1 - tanh^2: relative to p, in f32
    far = np.abs(fine - fine.max(-1, keepdims=True))
    allowed = 0.51 * unit + np.abs(p) * (far + 16) * 2.0**-23 + 1e-37
    assert (np.abs(g - p * slope) <= allowed).all()


def test_rows_that_are_not_finite():
    """Rows follow PyTorch: a NaN or +inf makes a row NaN, -inf removes a class."""
    z = np.random.default_rng(SEED).standard_normal((6, 700)).astype(np.float32)
    z[0, 300], z[1, 600], z[2], z[3, :512], z[4, 1] = np.nan, np.inf, -np.inf, -np.inf, np.nan
    target = np.array([5, 6, 7, 600, -100, 8])
    got = OPERATIONS["logit_segments"](z, target)
    alike((*got, None), (*segments_oracle(z, target), None), "segments")
    losses, peak, scale = joined(z, target)
    assert np.isnan(losses[:3]).all() and np.isfinite(losses[3:]).all() and losses[4] == 0
    g = OPERATIONS["logit_gradient"](z, target, peak, scale)
    assert np.isnan(g[:3]).all() and not g[3, :512].any() and not g[4].any()
    assert np.isfinite(g[3:]).all() and abs(g[5].sum()) < 1e-6


def test_rows_do_not_know_each_other():
    x, w, target, _ = head(19, 24, 33, bfloat16)
    how: dict[str, Any] = {"reduction": "none", "chunk": 16}
    losses, dx, *_ = entropy_grad(x, w, target, dw=False, **how)
    for i in (0, 3, 4, 18):
        alone = entropy_grad(x[i : i + 1], w, target[i : i + 1], dw=False, **how)
        assert (alone[0] == losses[i]).all() and (alone[1] == dx[i]).all()


def test_what_rows_without_a_target_get():
    x, w, target, bias = head(9, 8, 12)
    loss, dx, *_ = entropy_grad(x, w, target, bias)
    each = entropy(x, w, target, bias, reduction="none")
    assert each[3] == each[4] == 0 and not dx[3:5].any() and dx[5:].any()
    assert loss == np.float32(each.sum() / np.float32(8)), "that is no class counts"
    nothing = np.full(9, -100)
    found = entropy_grad(x, w, nothing, bias)
    assert found[0] == 0 and not any(g.any() for g in found[1:])
    for checked in (ptxgen.linear_cross_entropy, ptxgen.linear_cross_entropy_grad):
        with pytest.raises(IndexRangeError, match=r"target has 17; .* takes 0 .. 11, or -100"):
            checked(x, w, target, check=True)
    target[4] = 0
    assert ptxgen.linear_cross_entropy(x, w, target, check=True) > 0


def test_no_row_and_one_class():
    x, w, target, bias = head(0, 8, 12)
    loss, dx, dw, dbias = entropy_grad(x, w, target, bias)
    assert loss == 0 and dx.shape == (0, 8) and not dw.any() and not dbias.any()
    assert entropy(x, w, target, reduction="none").shape == (0,)
    x, w, _, _ = head(3, 8, 1)
    loss, dx, *_ = entropy_grad(x, w, np.zeros(3, np.int32))
    assert loss == 0 and not dx.any()


def test_extreme_logits():
    x, w, target, bias = head(6, 8, 40, bfloat16)
    target = target % 40
    x = (x.astype(np.float32) * 3e3).astype(bfloat16)
    bias[:3] = -np.inf
    target[:2] = 5
    got = entropy_grad(x, w, target, bias)
    alike(got, reference.linear_cross_entropy_grad(x, w, target, bias), "logits of 1e4, and -inf")
    assert np.isfinite(got[0]) and not got[2][:3].any()


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda d: np.dtype(d).name)
def test_memory_is_written_and_added_to(dtype):
    x, w, target, bias = head(20, 16, 24, dtype)
    rng = np.random.default_rng(SEED)
    old = rng.standard_normal(w.shape).astype(np.float32), rng.standard_normal(24).astype(dtype)
    mine, theirs = [o.copy() for o in old], [o.copy() for o in old]
    how: dict[str, Any] = {"accumulate": True, "chunk": 16}
    got = entropy_grad(x, w, target, bias, dx=np.empty_like(x), dw=mine[0], dbias=mine[1], **how)
    assert got[2] is mine[0] and got[3] is mine[1]
    expected = reference.linear_cross_entropy_grad(
        x, w, target, bias, dw=theirs[0], dbias=theirs[1], **how
    )
    alike(got, expected, "added")
    again = entropy_grad(x, w, target, bias, dw=mine[0], dbias=False, dx=False)
    fresh = entropy_grad(x, w, target, bias, dw=np.empty(w.shape, np.float32))
    assert (again[2] == fresh[2]).all() and again[1] is None and again[3] is None


@pytest.mark.parametrize(
    ("reduction", "dtype"),
    [  # each reduction and each dtype once, the other pairs as long tests
        pytest.param(reduction, dtype, marks=pytest.mark.long if i != j else ())
        for i, reduction in enumerate(("mean", "sum", "none"))
        for j, dtype in enumerate((bfloat16, np.float64, np.float16))
    ],
)
def test_the_loss_in_memory_and_in_the_operands_dtype(reduction, dtype):
    x, w, target, bias = head(21, 16, 37, dtype)
    how: dict[str, Any] = {"reduction": reduction, "chunk": 16}
    wide = entropy(x, w, target, bias, **how)
    narrow = np.asarray(wide).astype(dtype)
    shape = (21,) if reduction == "none" else ()
    for type in {np.dtype(dtype), np.asarray(wide).dtype}:
        expected = narrow if type == dtype else np.asarray(wide)
        name = type.name
        out, spaced = np.zeros(shape, type), np.zeros((*shape, 2), type)[..., 0]
        got = entropy(x, w, target, bias, out_dtype=name, **how)
        same_bits(np.asarray(got), expected, seed=SEED, spec="", what="by out_dtype")
        assert entropy(x, w, target, bias, out=out, **how) is out
        same_bits(out, expected, seed=SEED, spec="", what="in out")
        entropy(x, w, target, bias, out=spaced, **how)
        same_bits(spaced, expected, seed=SEED, spec="", what="in a strided out")
        memory = np.zeros(shape, type)
        got = entropy_grad(x, w, target, bias, loss=memory, **how)
        assert got[0] is memory
        expected_grad = reference.linear_cross_entropy_grad(x, w, target, bias, loss=memory, **how)
        alike(got, expected_grad, f"gradients, {name}")
        same_bits(memory, expected, seed=SEED, spec="", what="the loss with gradients")
    kind = "float16" if dtype == bfloat16 else "bfloat16"
    out = np.full((3,), 7, np.float32)
    with pytest.raises(DtypeError, match=f"out_dtype is '{kind}'"):
        entropy(x, w, target, bias, out_dtype=kind, out=out, **how)
    with pytest.raises((ShapeError, DtypeError), match="out"):
        entropy(x, w, target, bias, out=out, **how)
    assert (out == 7).all()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_gradient_from_above(reduction):
    x, w, target, _ = head(18, 8, 12)
    rng = np.random.default_rng(SEED)
    above: tuple[Any, ...] = (0.3, np.float32(-2), np.array(0.5, np.float32))
    if reduction == "none":
        above += (rng.standard_normal(18).astype(np.float32),)
    for dy in above:
        how = {"reduction": reduction, "dy": dy}
        got = entropy_grad(x, w, target, **how)
        alike(got, reference.linear_cross_entropy_grad(x, w, target, **how), f"dy={dy}")
    one = entropy_grad(x, w, target, reduction=reduction, dy=1)
    alike(one, entropy_grad(x, w, target, reduction=reduction), "1")


def test_accuracy():
    """Losses are within 2 ulp, gradients within 1500 * 2^-24, of float64 on the same rounded
    logits.
    """
    x, w, target, _ = head(16, 16, 1500)
    target = target % 1500
    z = reference.linear(x, w, layout="nk").astype(np.float64)
    p = np.exp(z - z.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    exact = -np.log(p[np.arange(16), target])
    losses = entropy(x, w, target, reduction="none")
    assert (np.abs(losses - exact) <= 2 * np.spacing(losses)).all()
    p[np.arange(16), target] -= 1
    _, dx, *_ = entropy_grad(x, w, target, dw=False)
    # 1500 products of f32 that cancel, in one chain
    np.testing.assert_allclose(dx, (p / 16) @ w.astype(np.float64), rtol=0, atol=1500 * 2**-24)


def test_chunks_by_default():
    assert chunk_of(16384, 32000, 4096, 2, True) == CHUNK_MAX == 2048
    assert chunk_of(16384, 131072, 4096, 2, True) == 1024
    assert chunk_of(8192, 128256, 1024, 2, True) == 256
    assert chunk_of(128, 1000, 512, 2, True) == 128
    assert chunk_of(8192, 128256, 4096, 2, True, 7) == 16
    rows = chunk_of(8192, 128256, 4096, 2, False)
    assert rows * 128256 * 2 <= EVALUATED < (rows + 16) * 128256 * 2


X, W, T, B = head(6, 8, 12)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"w": W[:, :7]}, ShapeError, "w has shape"),
        ({"target": T[:5]}, ShapeError, "target has shape"),
        ({"bias": B[:3]}, ShapeError, "bias has shape"),
        ({"w": W.astype(np.float64)}, DtypeError, "w has dtype float64; takes float32"),
        ({"x": X.astype(np.int32)}, DtypeError, "x has dtype int32"),
        ({"target": T.astype(np.float32)}, DtypeError, "target has dtype float32; takes int64"),
        ({"target": None}, DtypeError, "target is None"),
        ({"x": X.tolist()}, DtypeError, "x is a builtins.list; takes an array"),
        ({"label_smoothing": -0.1}, OptionError, "label_smoothing is -0.1; takes a finite"),
        ({"softcap": 0.0}, OptionError, "softcap is 0.0; takes a finite number above 0"),
        ({"z_loss": float("nan")}, OptionError, "z_loss is nan"),
        ({"chunk": 0}, OptionError, "chunk is 0; takes 1 or more"),
        ({"chunk": 2.5}, OptionError, "chunk is 2.5; takes an integer"),
        ({"reduction": "max"}, OptionError, "reduction is 'max'"),
        ({"dbias": True}, OptionError, "there is no bias"),
        ({"accumulate": True}, OptionError, "no memory is passed"),
        ({"dw": np.zeros((12, 7), "f4")}, ShapeError, "dw has shape"),
        ({"dw": np.zeros((12, 8), "f8")}, DtypeError, "dw has dtype float64; takes float32"),
        ({"dx": X}, ShapeError, "dx shares memory with x"),
        ({"dy": np.ones(6, "f4")}, ShapeError, r"dy has shape \[6\]; takes \[\]"),
        ({"dy": np.ones((), "i4")}, DtypeError, "dy has dtype int32"),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else None,
)
def test_what_bad_input_gets(change, error, text):
    dw = np.full(W.shape, 3, np.float32)
    given = {"x": X, "w": W, "target": T, "dw": dw, **change}
    if "accumulate" in change:
        given["dw"] = True
    with pytest.raises(error, match=text):
        entropy_grad(**given)
    assert (dw == 3).all()


def test_any_strides_of_arrays_in_host_memory():
    dw = np.zeros((12, 16), np.float32)
    got = entropy_grad(np.asfortranarray(X), W, T, B, dw=dw[:, ::2])
    alike(got, entropy_grad(X, W, T, B, dw=np.empty_like(W)), "strides")
    assert dw[:, ::2].any() and not dw[:, 1::2].any()


# -- PyTorch ----------------------------------------------------------------------------------
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_torch(reduction):
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(SEED)
    operands = [torch.randn(*s, requires_grad=True) for s in ((3, 7, 24), (37, 24), (37,))]
    target = torch.randint(37, (3, 7))
    target[0, 1] = -100
    how = {"reduction": reduction, "label_smoothing": 0.1, "softcap": 5.0}

    def loss(x, w, b):
        return ours.linear_cross_entropy(x, w, target, b, **how)

    found = loss(*operands)
    fine = [t.detach().double().requires_grad_() for t in operands]
    z = torch.nn.functional.linear(*fine)
    z = (5 * torch.tanh(z / 5)).reshape(-1, 37)
    expected = torch.nn.functional.cross_entropy(
        z, target.reshape(-1), reduction=reduction, label_smoothing=0.1
    ).reshape(found.shape)
    # f32: sums of 37 and 21 terms of about 1, and functions of a few units of 2^-24
    torch.testing.assert_close(found.double(), expected, rtol=2e-6, atol=2e-6)
    dy = torch.randn_like(found)
    gradients = torch.autograd.grad(found, operands, dy)
    exact = torch.autograd.grad(expected, fine, dy.double())
    for one, other in zip(gradients, exact, strict=True):  # such sums again, of what cancels
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    again = torch.autograd.grad(compiled(*operands), operands, dy)
    assert all(torch.equal(a, b) for a, b in zip(gradients, again, strict=True))
    if reduction != "none":  # whose gradients are made in the backward pass
        kept = loss(*operands)
        torch.autograd.grad(kept, operands, dy, retain_graph=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(kept, operands, dy)
    kept = torch.utils.checkpoint.checkpoint(loss, *operands, use_reentrant=False)
    again = torch.autograd.grad(kept, operands, dy)
    assert all(torch.equal(a, b) for a, b in zip(gradients, again, strict=True))


def test_torch_rounds_the_loss_to_the_operands_dtype():
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(SEED)
    x, w = (torch.randn(*s, dtype=torch.bfloat16, requires_grad=True) for s in ((7, 24), (37, 24)))
    target = torch.randint(37, (7,))
    wide = ours.linear_cross_entropy(x, w, target)
    narrow = ours.linear_cross_entropy(x, w, target, out_dtype=torch.bfloat16)
    assert narrow.dtype is torch.bfloat16 and torch.equal(narrow, wide.bfloat16())
    found, expected = (torch.autograd.grad(loss, (x, w)) for loss in (narrow, wide))
    assert all(map(torch.equal, found, expected))
    with pytest.raises(DtypeError, match=r"out_dtype is torch.float16"):
        ours.linear_cross_entropy(x, w, target, out_dtype=torch.float16)


def test_main_grads_autocast_and_frozen_operands():
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(SEED)
    w = torch.nn.Parameter(torch.randn(20, 16))
    module = ours.LinearCrossEntropy(w, chunk=16)
    assert module.weight is w and "out_features=20, chunk=16" in repr(module)
    x, target = torch.randn(24, 16), torch.randint(20, (24,))
    (whole,) = torch.autograd.grad(module(x, target), w)
    w.main_grad = torch.zeros(20, 16)
    (module(x, target) * 2).backward()
    assert w.grad is None and torch.equal(w.main_grad, 2 * whole)
    module(x, target).backward()
    assert torch.equal(w.main_grad, 2 * whole + whole)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = module(x, target)
    narrow = ours.linear_cross_entropy(x.bfloat16(), w.detach().bfloat16(), target)
    assert torch.equal(rounded, narrow) and not narrow.requires_grad


def test_explained():
    from ptxgen.ops.explaining import Composition

    found = ptxgen.explain("linear_cross_entropy_grad", 8192, 128256, 4096, dtype="bfloat16")
    assert isinstance(found, Composition) and found.scratch["logits"] == 1024 * 128256 * 2
    counts: dict[str, int] = {}
    for count, step in found.steps:
        name = step.problem.split()[0]
        counts[name] = counts.get(name, 0) + count
    chunked = ("linear", "logit_segments", "cross_entropy_joined", "logit_gradient", "linear_dgrad")
    assert counts == {
        **dict.fromkeys((*chunked, "linear_wgrad"), 8), "mean_shares_f32": 1, "mean_loss": 1
    }  # fmt: skip
    assert "8 x linear M=1024" in found.brief() and found.launches == 50
    assert "7 x linear_wgrad" in str(found), "the first writes, the others add"
    alone = ptxgen.explain("linear_cross_entropy", 100, 1000, 64)
    assert next(step.problem for _, step in alone.steps).startswith("linear M=100")
    sizes, how = (8192, 128256, 4096), {"dtype": "bfloat16", "softcap": 30.0}
    kept = ptxgen.explain("linear_cross_entropy", *sizes, **how)
    assert next(s.problem.split()[0] for _, s in kept.steps) == "linear_segments"
    assert "logits" not in kept.scratch and sum(kept.scratch.values()) < 64e6
    for other in ({"arch": "sm_80", "sms": 108}, {"label_smoothing": 0.1}, {"align": 8}):
        cut = ptxgen.explain("linear_cross_entropy", *sizes, **how, **other)
        assert "logits" in cut.scratch and sum(cut.scratch.values()) < 64e6
    with pytest.raises(OptionError, match="has no option 'activation'"):
        ptxgen.explain("linear_cross_entropy", 100, 1000, 64, activation="relu")
