"""Group norms: bits on the CPU device, beside f64 and PyTorch, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.oracle.row_reductions import compute

SEED = 31
SHAPES = [
    ((2, 6, 5, 7), 3),
    ((3, 8), 2),  # nothing behind the channels
    ((2, 4, 1), 4),  # groups of one number
    ((1, 6, 171), 1),  # a group of more than a leaf, with a tail
    ((2, 4, 2, 2, 2), 4),  # a group is a channel
]


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def arrays(shape, dtype=np.float32):
    rng = np.random.default_rng([SEED, *shape])
    sizes = shape, shape[1:2], shape[1:2]
    return [(rng.standard_normal(size) * 3 + 1).astype(dtype) for size in sizes]


@pytest.mark.parametrize(("shape", "groups"), SHAPES)
def test_bits_are_the_oracles(shape, groups):
    at = SHAPES.index((shape, groups))
    dtype = (np.float32, bfloat16, np.float16, np.float64)[at % 4]
    x, weight, bias = arrays(shape, dtype)
    given = [(weight, bias), (None, None), (None, bias), (weight, None)][at % 4]
    got = ptxgen.group_norm(x, groups, *given)
    expected = reference.group_norm(x, groups, *given)
    assert got.dtype == dtype and got.shape == shape
    same_bits(got, expected, seed=SEED, spec="", what=f"group_norm {shape}")


def test_it_is_what_it_is_called():
    x, weight, bias = arrays((3, 6, 9))
    wide = x.astype(np.float64).reshape(3, 2, 27)
    d = wide - wide.mean(-1, keepdims=True)
    expected = (d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-3)).reshape(x.shape)
    expected = expected * weight[:, None] + bias[:, None]
    found = reference.group_norm(x, 2, weight, bias, eps=1e-3)
    # a sum of 27 squares, a root, two products: below 40 units of 2^-24; numbers up to 16 cancel
    assert np.allclose(found, expected, rtol=1e-5, atol=3e-6)
    alike = [np.tile(v[:1], 27) for v in (weight, bias)]
    layer = reference.layer_norm(x.reshape(6, 27), *alike).reshape(x.shape)
    same = [np.tile(v[:1], 6) for v in (weight, bias)]
    assert (reference.group_norm(x, 2, *same) == layer).all()


def test_results_go_where_they_are_wanted():
    x, weight, bias = arrays((2, 6, 10), bfloat16)
    expected = reference.group_norm(x, 3, weight, bias)
    turned = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
    assert (ptxgen.group_norm(turned, 3, weight, bias) == expected).all()
    out = np.empty((10, 2, 6), bfloat16).transpose(1, 2, 0)
    assert ptxgen.group_norm(x, 3, weight, bias, out=out) is out
    assert (out == expected).all()
    finer = ptxgen.group_norm(x, 3, weight.astype(np.float32), bias, out_dtype="float32")
    assert finer.dtype == np.float32 and (finer.astype(bfloat16) == expected).all()
    assert ptxgen.group_norm(x, 3, weight, bias, out=x) is x
    assert (x == expected).all()


def test_a_batch_of_none():
    assert ptxgen.group_norm(np.zeros((0, 4, 3), np.float32), 2).shape == (0, 4, 3)
    assert ptxgen.group_norm(np.zeros((2, 4, 0), np.float32), 2).shape == (2, 4, 0)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda x, w: ptxgen.group_norm(x, 4), ShapeError, "x has 6 channels; takes a multiple"),
        (lambda x, w: ptxgen.group_norm(x, 0), OptionError, "groups is 0; takes 1 or more"),
        (lambda x, w: ptxgen.group_norm(x[0, 0], 1), ShapeError, r"takes \[N, C, \*\]"),
        (lambda x, w: ptxgen.group_norm(x, 2, w[:3]), ShapeError, r"weight has shape \[3\]"),
        (lambda x, w: ptxgen.group_norm(x, 2, w, w.astype("f8")), DtypeError, "bias has dtype fl"),
        (lambda x, w: ptxgen.group_norm(x.astype("i4"), 2), DtypeError, "x has dtype int32"),
        (lambda x, w: ptxgen.group_norm(x, 2, out=w), ShapeError, r"out has shape \[6\]"),
        (lambda x, w: ptxgen.group_norm(x, 2, out_dtype="float16"), DtypeError, "out_dtype is 'f"),
    ],
)
def test_what_bad_input_gets(wrong, error, text):
    x, weight, _ = arrays((2, 6, 4))
    with pytest.raises(error, match=text):
        wrong(x, weight)


@pytest.mark.parametrize(("shape", "groups"), [((2, 4, 8), 2), ((3, 8), 2), ((1, 2, 4, 16), 1)])
def test_gradients_are_pytorchs_where_both_are_exact(shape, groups):
    """A group is a number ± 1, evenly, and eps is 3: its deviation is 2, and everything that
    follows is a small multiple of a power of two, in f32 here as in f64 there.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    rng = np.random.default_rng(SEED)
    signs = np.repeat([[-1.0, 1.0]], np.prod(shape) // (shape[0] * groups * 2), 0).reshape(-1)
    by_group = rng.permuted(np.tile(signs, (shape[0] * groups, 1)), axis=1)
    x = (by_group + rng.integers(-4, 5, (len(by_group), 1))).reshape(shape)
    weight, bias, dy = (rng.integers(-4, 5, s) for s in (shape[1], shape[1], shape))
    given = [torch.tensor(a, dtype=torch.float32).requires_grad_() for a in (x, weight, bias)]
    fine = [t.detach().double().requires_grad_() for t in given]
    y = ours.group_norm(given[0], groups, *given[1:], eps=3.0)
    expected = torch.nn.functional.group_norm(fine[0], groups, *fine[1:], eps=3.0)
    assert torch.equal(y.double(), expected) and len(y.unique()) >= 4
    dy = torch.tensor(dy, dtype=torch.float32)
    found = torch.autograd.grad(y, given, dy)
    for one, other in zip(found, torch.autograd.grad(expected, fine, dy.double()), strict=True):
        assert torch.equal(one.double(), other) and one.any()
    (alone,) = torch.autograd.grad(ours.group_norm(given[0], groups, eps=3.0), given[0], dy)
    plain = torch.nn.functional.group_norm(fine[0], groups, eps=3.0)
    assert torch.equal(alone.double(), torch.autograd.grad(plain, fine[0], dy.double())[0])


def test_what_needs_a_gradient_is_refused():
    torch = pytest.importorskip("torch")
    x, weight, _ = (torch.from_numpy(a) for a in arrays((2, 6, 5)))
    with pytest.raises(GradError, match="weight requires grad"):
        ptxgen.group_norm(x, 3, weight.requires_grad_())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("shape", "groups"), [*SHAPES[:4], ((3, 6, 7), 2)])
def test_gradients_have_the_bits_of_their_formulas(shape, groups, dtype):
    """An operation at a time in NumPy's f32, sums as rows/1 says."""
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    n, channels = shape[:2]
    width, each = int(np.prod(shape[2:])), channels // groups
    x, weight, bias = (torch.from_numpy(a).to(getattr(torch, dtype)) for a in arrays(shape))
    dy = torch.from_numpy(arrays(shape)[0] - 1).flip(0, 1).to(x.dtype)
    given = [t.requires_grad_() for t in (x, weight, bias)]
    found = torch.autograd.grad(ours.group_norm(x, groups, weight, bias), given, dy)

    x, weight, dy = (t.detach().float().numpy() for t in (x, weight, dy))
    x, dy = (a.reshape(n, channels, width) for a in (x, dy))
    mean, scale = compute("moments", x.reshape(n, groups, -1))
    by_row = [np.repeat(m, each, 1)[..., None] for m in (mean, scale)]
    d = (x - by_row[0]) * by_row[1]
    sums = [compute("sum", dy), compute("sum", dy * d)]
    dbias, dweight = (compute("sum", np.ascontiguousarray(s.T)) for s in sums)
    count = np.float32(each * width)
    shift, stretch = (
        np.repeat(compute("sum", (s * weight).reshape(n, groups, -1)) / count, each, 1)[..., None]
        for s in sums
    )
    dx = by_row[1] * ((dy * weight[:, None] - shift) - d * stretch)
    for one, other in zip(found, (dx.reshape(shape), dweight, dbias), strict=True):
        same_bits(
            one.float().numpy(),
            torch.from_numpy(other).to(one.dtype).float().numpy(),
            seed=SEED,
            spec="",
            what=f"{shape} {groups} {dtype}",
        )


def test_compilers_see_one_operator():
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    given = [torch.from_numpy(a).requires_grad_() for a in arrays((2, 6, 5))]
    compiled = torch.compile(
        lambda *tensors: ours.group_norm(tensors[0], 3, *tensors[1:]),
        backend="aot_eager",
        fullgraph=True,
    )
    found, expected = compiled(*given), ours.group_norm(given[0], 3, *given[1:])
    assert torch.equal(found, expected)
    dy = torch.randn_like(expected)
    pairs = [torch.autograd.grad(y, given, dy) for y in (found, expected)]
    assert all(map(torch.equal, *pairs))
    doubles = [t.detach().double().requires_grad_() for t in given]
    function = lambda x, *weights: ours.group_norm(x, 3, *weights)  # noqa: E731
    assert torch.autograd.gradgradcheck(function, doubles, fast_mode=True), "gradients of gradients"
