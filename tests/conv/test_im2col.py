"""Columns of windows: im2col beside loops, col2im as its adjoint, PyTorch's numbers, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError

CASES = {
    "1-D": ((2, 3, 11), (3,), {"stride": 2, "padding": 2, "dilation": 2}),
    "2-D": ((2, 3, 7, 6), (3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    "far padding": ((1, 1, 3, 2), (2, 1), {"padding": 3, "stride": 2}),
    "one image": ((3, 5, 5), (5, 5), {}),
    "3-D": ((2, 1, 4, 3, 5), (2, 3, 2), {"stride": (1, 3, 2)}),
}


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def places(shape, window, stride=1, padding=0, dilation=1):
    """Yields row, column and image coordinates of each element of the columns of one channel."""
    rank = len(window)
    per = [(v,) * rank if isinstance(v, int) else v for v in (stride, padding, dilation)]
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(shape[-rank:], window, *per, strict=True)
    ]
    for row, tap in enumerate(itertools.product(*map(range, window))):
        for column, at in enumerate(itertools.product(*map(range, counts))):
            of = zip(at, tap, *per, strict=True)
            yield row, column, tuple(o * s + j * d - p for o, j, s, p, d in of)


def columns(x, window, **how):
    rank = len(window)
    lead, size = x.shape[:-rank], x.shape[-rank:]
    found = list(places(x.shape, window, **how))
    y = np.zeros((*lead, found[-1][0] + 1, found[-1][1] + 1), x.dtype)
    for row, column, at in found:
        if all(0 <= i < n for i, n in zip(at, size, strict=True)):
            y[..., row, column] = x[(..., *at)]
    return y.reshape(*lead[:-1], -1, y.shape[-1])


def images(y, size, window, **how):
    """Sums in the contract's order: for each element, windows ascending, in float32 (float64)."""
    taps, count = int(np.prod(window)), y.shape[-1]
    wide = np.float64 if y.dtype == np.float64 else np.float32
    y = y.reshape(*y.shape[:-2], -1, taps, count).astype(wide)
    found = np.zeros((*y.shape[:-2], *size), wide)
    for row, column, at in sorted(places(size, window, **how), key=lambda of: of[1]):
        if all(0 <= i < n for i, n in zip(at, size, strict=True)):
            found[(..., *at)] += y[..., row, column]
    return found


@pytest.mark.parametrize("dtype", [np.float32, bfloat16, np.float64, np.int64])
@pytest.mark.parametrize("name", CASES)
def test_columns_and_images(name, dtype):
    shape, window, how = CASES[name]
    rng = np.random.default_rng(0)
    x = (4 * rng.standard_normal(shape)).astype(dtype)
    expected = columns(x, window, **how)
    out = np.full(expected.shape, 7, dtype)
    for got in (ptxgen.im2col(x, window, **how), reference.im2col(x, window, **how),
                ptxgen.im2col(x, window, **how, out=out)):  # fmt: skip
        same_bits(got, expected, seed=0, spec="", what=f"im2col {name}")
    spaced = np.full((*expected.shape[:-1], 2 * expected.shape[-1]), 7, dtype)[..., ::2]
    same_bits(ptxgen.im2col(x, window, **how, out=spaced), expected, seed=0, spec="", what=name)
    size = shape[-len(window) :]
    if dtype is np.int64:
        with pytest.raises(DtypeError, match="x has dtype int64"):
            ptxgen.col2im(expected, size, window, **how)
        return
    y = rng.standard_normal(expected.shape).astype(dtype)
    summed = images(y, size, window, **how).astype(dtype)
    got = ptxgen.col2im(y, size, window, **how)
    same_bits(got, summed, seed=0, spec="", what=f"col2im {name}")
    oracle = reference.col2im(y, size, window, **how)
    same_bits(got, oracle, seed=0, spec="", what=f"col2im {name}")
    if len(shape) > len(window) + 1:
        alone = ptxgen.col2im(y[1:], size, window, **how)
        same_bits(alone, got[1:], seed=0, spec="", what=f"col2im of one image, {name}")


def test_products_with_columns_are_convolutions():
    rng = np.random.default_rng(1)
    x = rng.integers(-3, 4, (2, 3, 6, 5)).astype(np.float32)
    w = rng.integers(-3, 4, (4, 3, 3, 2)).astype(np.float32)
    y = ptxgen.matmul(w.reshape(4, -1), ptxgen.im2col(x, (3, 2), padding=1))
    assert (y.reshape(2, 4, 6, 6) == ptxgen.conv(x, w, padding=1)).all()  # integers: all exact


def test_bad_arguments_are_refused():
    x, y = np.zeros((2, 3, 6, 5), np.float32), np.zeros((2, 12, 20), np.float32)
    for wrong, error, text in (
        (lambda: ptxgen.im2col(x, (7, 3)), ShapeError, "larger than"),
        (lambda: ptxgen.im2col(x, (0, 3)), ShapeError, "window is .*sizes from 1"),
        (lambda: ptxgen.im2col(x, ()), ShapeError, "window is .*1 to 3 sizes"),
        (lambda: ptxgen.im2col(x[0, 0], (2, 2)), ShapeError, "x has shape .*channels"),
        (lambda: ptxgen.im2col(x, (2, 2), stride=(1, 1, 1)), ShapeError, "stride is"),
        (lambda: ptxgen.im2col(x, (2, 2), stride=0), OptionError, "stride is 0"),
        (lambda: ptxgen.im2col(x, (2, 2), padding=-1), OptionError, "padding is -1"),
        (lambda: ptxgen.col2im(y, (6,), (2, 2)), ShapeError, "size is"),
        (lambda: ptxgen.col2im(y, (6, 6), (2, 2)), ShapeError, "x has shape .*25 windows"),
        (lambda: ptxgen.col2im(y[:, :3], (6, 5), (2, 2)), ShapeError, "x has shape"),
    ):
        with pytest.raises(error, match=text):
            wrong()
    assert ptxgen.im2col(x[:0], (2, 2)).shape == (0, 12, 20)
    assert ptxgen.col2im(y[:0], (6, 5), (2, 2)).shape == (0, 3, 6, 5)


def test_unfold_and_fold_in_the_block():
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours
    from ptxgen.torch import batch_invariant

    f = torch.nn.functional
    x = torch.randn(2, 3, 7, 6, generator=torch.Generator().manual_seed(0))
    how = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}

    def both(x):
        return f.fold(f.unfold(x, (3, 2), **how), (7, 6), (3, 2), **how).square()

    given, same, own = (x.clone().requires_grad_() for _ in range(3))
    with batch_invariant(watch=True) as block:
        both(given).sum().backward()
    both(same).sum().backward()
    columns = ours.im2col(own, (3, 2), **how)
    ours.col2im(columns, (7, 6), (3, 2), **how).square().sum().backward()
    assert block.served["im2col"] == 2 and block.served["col2im"] == 2, block.report()
    assert not block.unknown
    assert torch.equal(given.grad, own.grad)
    # Sums of at most 6 windows of numbers below 2^3, then again: a few units of 2^-24.
    torch.testing.assert_close(given.grad, same.grad, rtol=1e-5, atol=1e-4)
