"""Log-mel features and Welch's density: exact formulas, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def spectra(*shape, dtype="f4"):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def power(x, bins):
    n = x.shape[-1] // 2
    re, im = x[..., :bins].astype(float), x[..., n : n + bins].astype(float)
    return re * re + im * im


# -- filters ------------------------------------------------------------------------------------
def test_filters_of_whisper():
    """Corners of the first and the last triangle, as librosa 0.10 computes them."""
    found = ptxgen.mel_filters(16000, 400, 80)
    assert found.shape == (80, 201) and found.dtype == np.float32
    assert found[0, 1] == pytest.approx(0.02486259, rel=1e-5) and found[0, 0] == 0
    assert found[79, 199] == pytest.approx(0.00044876, rel=1e-4) and found[79, 200] == 0
    assert (found * 40.0).sum(1)[40:] == pytest.approx(1, abs=0.1)


def test_heights_and_the_other_scale():
    found = ptxgen.mel_filters(8000, 512, 20, scale="htk", norm=None, low=100, high=3000)
    assert 0.8 < found.max() <= 1 and (found[:, : int(100 / (8000 / 512)) + 1] == 0).all()
    assert (found[:, int(3000 / (8000 / 512)) + 1 :] == 0).all()
    middle = found.argmax(1) * (8000 / 512)
    mels = 2595 * np.log10(1 + middle / 700)
    assert np.diff(mels) == pytest.approx(np.diff(mels).mean(), abs=25)


# -- log-mel ------------------------------------------------------------------------------------
@pytest.mark.parametrize("clamp", [None, 1.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_features_are_those_of_the_formula(dtype, clamp):
    x, filters = spectra(2, 7, 26, dtype=dtype), np.abs(spectra(5, 11, dtype=dtype))
    found = ptxgen.log_mel(x, filters, clamp=clamp)
    same_bits(found, reference.log_mel(x, filters, clamp=clamp))
    exact = np.log10(power(x, 11) @ filters.T.astype(float))
    if clamp:
        exact = np.maximum(exact, exact.max((1, 2), keepdims=True) - clamp)
    assert np.abs(found - exact).max() < (1e-6 if dtype == "f4" else 1e-14)
    if not clamp:
        same_bits(ptxgen.log_mel(x[1, 3:4], filters), found[1, 3:4])


def test_silence_has_the_floor():
    found = ptxgen.log_mel(np.zeros((3, 8), "f4"), np.ones((2, 4), "f4"), floor=1e-4)
    assert found == pytest.approx(-4.0, rel=1e-6)


@pytest.mark.parametrize("clamp", [None, 0.7])
def test_gradients_are_finite_differences(clamp):
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    x, filters = spectra(2, 4, 14, dtype="f8"), np.abs(spectra(3, 6, dtype="f8"))
    weights, rng = spectra(2, 4, 3, dtype="f8"), np.random.default_rng(0)
    given = [torch.from_numpy(v.copy()).requires_grad_() for v in (x, filters)]
    (pt.log_mel(*given, clamp=clamp) * torch.from_numpy(weights)).sum().backward()
    most = np.log10(power(x, 6) @ filters.T).max((1, 2), keepdims=True)

    def loss(x, filters):
        y = np.log10(power(x, 6) @ filters.T)
        return (weights * (y if clamp is None else np.maximum(y, most - clamp))).sum()

    for at in range(2):
        step, ends = 1e-6 * rng.standard_normal((x, filters)[at].shape), []
        for sign in (1, -1):
            moved = [x, filters]
            moved[at] = moved[at] + sign * step
            ends.append(loss(*moved))
        slope = (given[at].grad.numpy() * step).sum()
        assert slope == pytest.approx((ends[0] - ends[1]) / 2, rel=1e-5)


# -- Welch --------------------------------------------------------------------------------------
def test_densities_and_peaks():
    x = spectra(2, 6, 18)
    found = ptxgen.welch(x, 3, scale=0.5)
    same_bits(found, reference.welch(x, 3, scale=0.5))
    exact = power(x, 9).reshape(2, 2, 3, 9).mean(2) * 0.5
    assert np.abs(found - exact).max() < 1e-6
    same_bits(ptxgen.welch(x[1, 3:], 3, scale=0.5), found[1, 1:])
    powers, bins = ptxgen.welch_peaks(x, 3, 4, scale=0.5)
    order = np.argsort(-found, axis=-1, kind="stable")[..., :4]
    assert (bins == order).all() and (powers == np.take_along_axis(found, order, -1)).all()
    even = np.ones((1, 10), "f4")
    assert ptxgen.welch_peaks(even, 1, 3)[1].tolist() == [[0, 1, 2]]  # ties to the lower bin


def test_the_gradient_of_a_density():
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    x, dy = spectra(4, 10, dtype="f8"), spectra(2, 5, dtype="f8")
    given = torch.from_numpy(x.copy()).requires_grad_()
    (pt.welch(given, 2) * torch.from_numpy(dy)).sum().backward()
    again = torch.from_numpy(x.copy()).requires_grad_()
    squares = again[:, :5] ** 2 + again[:, 5:] ** 2
    (squares.reshape(2, 2, 5).mean(1) * torch.from_numpy(dy)).sum().backward()
    assert np.abs(given.grad.numpy() - again.grad.numpy()).max() < 1e-14


# -- bad input ----------------------------------------------------------------------------------
def test_what_bad_input_gets():
    x, filters = spectra(4, 10), spectra(2, 5)
    for call, error, text in (
        (lambda: ptxgen.log_mel(x, spectra(2, 6)), ShapeError, "K from 1 to 5, the bins"),
        (lambda: ptxgen.log_mel(x[:, :9], filters), ShapeError, r"takes \[..., M, 2n\]"),
        (lambda: ptxgen.log_mel(x, filters.astype("f8")), DtypeError, "filters has dtype float64"),
        (lambda: ptxgen.log_mel(x.astype("i4"), filters), DtypeError, "spectrum has dtype int32"),
        (lambda: ptxgen.log_mel(x, filters, floor=0.0), OptionError, "floor is 0.0"),
        (lambda: ptxgen.welch(x, 3), OptionError, "segments is 3; takes a divisor of 4"),
        (lambda: ptxgen.welch_peaks(x, 2, 6), OptionError, "k is 6; takes 1 .. 5"),
        (lambda: ptxgen.mel_filters(16000, 400, 80, scale="mel"), OptionError, "scale is 'mel'"),
        (lambda: ptxgen.mel_filters(8000, 400, 8, high=5000), OptionError, "high <= 4000"),
    ):
        with pytest.raises(error, match=text):
            call()
