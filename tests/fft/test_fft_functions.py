"""Transforms of complex and real arrays: NumPy's numbers, shapes and dtypes; gradients; errors."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.ops.fft_functions import ROWS


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def drawn(name):
    x, y = np.random.default_rng(0).standard_normal((2, 4, 6, 9))
    return x if ROWS[name].kind == "spectrum" else x + 1j * y


def options(name):
    """Options that crop one axis and pad another."""
    one = ROWS[name].rank == 1
    return ({"n": 7, "axis": 1},) if one else ({"s": (5, 8), "axes": (0, 2), "norm": "ortho"},)


@pytest.mark.parametrize("name", ROWS)
def test_numbers_shapes_and_dtypes_are_those_of_numpy(name):
    x = drawn(name)
    for how in ({}, {"norm": "forward"}, *options(name)):
        got, expected = (getattr(of, name)(x, **how) for of in (reference, np.fft))
        assert got.shape == expected.shape and got.dtype == expected.dtype
        assert abs(got - expected).max() < 1e-14 * abs(expected).max() * x.size**0.5


@pytest.mark.parametrize("name", ["fft", "irfft", "rfft2", "ifftn"])
def test_bits_are_those_of_the_reference(name):
    x, (how,) = drawn(name), options(name)
    x = x.astype("c8" if np.iscomplexobj(x) else "f4")
    expected = getattr(reference, name)(x, **how)
    out = np.empty_like(expected)
    getattr(ptxgen, name)(x, **how, out=out)
    for got in (getattr(ptxgen, name)(x, **how), out):
        same_bits(got.view("f4"), expected.view("f4"))


def test_real_arrays_have_whole_spectra():
    x = drawn("rfft").astype("f4")
    got = ptxgen.fft(x, norm=None)
    assert got.dtype == np.complex64
    same_bits(got[..., :5].copy().view("f4"), ptxgen.rfft(x).view("f4"))


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "irfftn"]
)
def test_gradients_are_those_of_torch(name):
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    found = []
    for of in (pt, torch.fft):
        x = torch.from_numpy(drawn(name)).requires_grad_()
        y = getattr(of, name)(x, norm="ortho")
        y.backward(torch.arange(y.numel()).reshape(y.shape) * torch.ones_like(y))
        found.append(x.grad)
    assert (found[0] - found[1]).abs().max() < 1e-12 * found[1].abs().max()


def test_what_bad_input_gets():
    z = drawn("fft")
    for call, error, text in (
        (lambda: ptxgen.rfft(z), DtypeError, "x has dtype complex128; takes float32 or float64"),
        (lambda: ptxgen.irfft(z.real), DtypeError, "x has dtype float64; takes complex64"),
        (lambda: ptxgen.fft(z, norm="unitary"), OptionError, "norm is 'unitary'"),
        (lambda: ptxgen.fft(z, 0), ShapeError, "n is 0"),
        (lambda: ptxgen.fft(z, axis=3), ShapeError, "axis is 3"),
        (lambda: ptxgen.fft(z[:, :, :0]), ShapeError, "n is 0"),
        (lambda: ptxgen.fftn(z, (4, 4), (0,)), ShapeError, "takes a length for each axis"),
    ):
        with pytest.raises(error, match=text):
            call()
