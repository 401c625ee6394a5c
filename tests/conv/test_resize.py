"""Resizing: bits beside loops of NumPy, PyTorch's numbers, gradients, the block, errors."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError

DTYPES = (np.float32, bfloat16, np.float16, np.float64)
WAYS = [("nearest", False), ("linear", False), ("linear", True)]
NAMES = {1: "linear", 2: "bilinear", 3: "trilinear"}


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def drawn(seed):
    r, rng = Random(seed), np.random.default_rng(seed)
    shape = tuple(r.randint(1, 7) for _ in range(r.choice((1, 2, 2, 3))))
    size = tuple(r.choice((2 * n, r.randint(1, 13))) for n in shape)
    return rng.standard_normal((3, 2, *shape)).astype(DTYPES[seed % 4]), size


def along(x, axis, o, linear, corners):
    """Resizes one dimension, an element at a time, in x's dtype."""
    wide, n = x.dtype.type, x.shape[axis]
    step = wide(((n - 1) / (o - 1) if o > 1 else 0.0) if corners else n / o)
    shift = wide(0.5 if linear and not corners else 0.0)
    made = []
    for i in range(o):
        s = max((wide(i) + shift) * step - shift, wide(0))
        low = min(int(np.floor(s)), n - 1)
        value = x.take(low, axis)
        if linear:
            w = wide(s - wide(low))
            value = value * (wide(1) - w) + x.take(min(low + 1, n - 1), axis) * w
        made.append(value)
    return np.stack(made, axis)


@pytest.mark.parametrize(("mode", "corners"), WAYS)
@pytest.mark.parametrize("seed", range(8))
def test_bits_are_those_of_the_formula(seed, mode, corners):
    x, size = drawn(seed)
    expected = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
    for axis in reversed(range(len(size))):
        expected = along(expected, 2 + axis, size[axis], mode == "linear", corners)
    how = {"mode": mode, "align_corners": corners}
    got = ptxgen.resize(x, size, **how)
    same_bits(got, expected.astype(x.dtype), seed=seed, spec="", what=f"resize {size} {how}")
    same_bits(reference.resize(x, size, **how), got, seed=seed, spec="", what="oracle")
    for count in (1, 3):
        assert (ptxgen.resize(x[:count], size, **how) == got[:count]).all()


def test_twice_the_size():
    x = np.random.default_rng(0).standard_normal((7, 3, 4, 5)).astype(bfloat16)
    expected = x.repeat(2, -1).repeat(2, -2)
    assert (ptxgen.resize_nearest_2x(x) == expected).all()
    assert (ptxgen.resize(x, (8, 10)) == expected).all()
    assert (reference.resize_nearest_2x(x[:1]) == expected[:1]).all()
    assert ptxgen.resize(x[:0], (2, 2)).shape == (0, 3, 2, 2)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda x: ptxgen.resize(x, (0, 2)), ShapeError, "size is .*takes 1 to 3 sizes from 1"),
        (lambda x: ptxgen.resize(x, (1,) * 4), ShapeError, "size is .*takes 1 to 3 sizes"),
        (lambda x: ptxgen.resize(x[0, 0, 0], (2, 2)), ShapeError, "size is .*takes 1 to 3"),
        (lambda x: ptxgen.resize(x[..., :0], (2, 2)), ShapeError, "no empty images"),
        (lambda x: ptxgen.resize(x, (2, 2), mode="cubic"), OptionError, "mode is 'cubic'"),
        (lambda x: ptxgen.resize(x, (2, 2), align_corners=True), OptionError, "align_corners"),
        (lambda x: ptxgen.resize(x.astype("i4"), (2, 2)), DtypeError, "x has dtype int32"),
        (lambda x: ptxgen.resize_nearest_2x(x[0, 0, 0]), ShapeError, r"takes \[\.\.\., H, W\]"),
    ],
)
def test_what_bad_input_gets(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong(np.zeros((2, 3, 6, 5), np.float32))


# -- PyTorch ----------------------------------------------------------------------------------
@pytest.mark.parametrize(("mode", "corners"), WAYS)
@pytest.mark.parametrize("seed", [0, 4, 8, 12])
def test_gradients_are_gathered(seed, mode, corners):
    """Gradients repeat and are within 2e-5 of PyTorch's in f64: at most 13^3 products of numbers
    below 8 add up to about 2^6, as signs are random, and round by a few units of 2^-24.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    drawn_, size = drawn(seed)
    x = torch.from_numpy(drawn_).requires_grad_()
    fine = x.detach().double().requires_grad_()
    y = ours.resize(x, size, mode=mode, align_corners=corners)
    plain = mode if mode == "nearest" else NAMES[len(size)]
    how = {} if mode == "nearest" else {"align_corners": corners}
    z = torch.nn.functional.interpolate(fine, size, mode=plain, **how)
    if mode == "nearest":
        assert torch.equal(y.double(), z)
    torch.testing.assert_close(y.double(), z, rtol=1e-5, atol=1e-5)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(seed))
    (found,) = torch.autograd.grad(y, x, dy, retain_graph=True)
    (again,) = torch.autograd.grad(y, x, dy)
    (expected,) = torch.autograd.grad(z, fine, dy.double())
    assert torch.equal(found, again) and found.any()
    torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("how", [{"scale_factor": 2.0}, {"scale_factor": 1.7}, {"size": 5}])
def test_modules_in_the_block(rank, how):
    torch = pytest.importorskip("torch")
    from ptxgen.torch import batch_invariant

    x = torch.randn(3, 2, *[7] * rank, generator=torch.Generator().manual_seed(rank))
    for mode in ("nearest", NAMES[rank]):
        module = torch.nn.Upsample(**how, mode=mode)
        given, same = x.clone().requires_grad_(), x.clone().requires_grad_()
        with batch_invariant(watch=True) as block:
            y = module(given)
            y.square().sum().backward()
            alone = module(x[1:2])
        z = module(same)
        z.square().sum().backward()
        assert torch.equal(y[1:2], alone)
        # Weights of 2^-24 · 7, of elements below 4; a gradient has up to 3^3 of them, doubled.
        torch.testing.assert_close(y, z, rtol=1e-5, atol=2e-6)
        torch.testing.assert_close(given.grad, same.grad, rtol=1e-5, atol=2e-5)
        assert not block.unknown, block.report()
        name = f"upsample_{mode}{rank}d"
        assert block.served[f"{name}_backward"] == 1, block.report()
        assert block.served[name] == (0 if mode == "nearest" else 2)
