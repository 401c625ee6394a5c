"""Short-time transforms: definitions, bits, PyTorch's results and gradients, inversion, errors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError

PADDINGS = ("constant", "reflect", "replicate", "circular")
LENGTHS = ((8, None, None), (10, 3, 7), (9, 4, None), (12, 12, 12))
"""``n_fft``, ``hop_length``, ``win_length``."""


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def signal(*shape, dtype="f8"):
    parts = np.random.default_rng(0).standard_normal((2, *shape))
    found = parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]
    return found.astype(dtype)


def window(n, dtype="f8"):
    return (0.5 + np.random.default_rng(1).random(n)).astype(dtype)


# -- stft ---------------------------------------------------------------------------------------
def test_frames_have_numpys_spectra():
    x, w = signal(3, 50), window(10)
    for mode in PADDINGS:
        kinds = {"replicate": "edge", "circular": "wrap"}
        padded = np.pad(x, ((0, 0), (5, 5)), mode=kinds.get(mode, mode))
        frames = np.lib.stride_tricks.sliding_window_view(padded, 10, axis=1)[:, ::3] * w
        found = reference.stft(x, 10, 3, window=w, pad_mode=mode)
        assert abs(found - np.fft.rfft(frames).transpose(0, 2, 1)).max() < 1e-13
    assert found.shape == (3, 6, 17) and found.dtype == np.complex128


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_bits_are_those_of_the_reference_and_of_a_frame(dtype):
    real = "f8" if dtype == "f8" else "f4"
    x, w = signal(2, 40, dtype=dtype), window(7, real)
    how = {"n_fft": 10, "hop_length": 3, "win_length": 7, "window": w}
    found = ptxgen.stft(x, **how)
    inner = ptxgen.stft(x[0], **how, center=False)
    alone = ptxgen.stft(x[0, 12:22], **how, center=False)
    for a, b in (
        (found, reference.stft(x, **how)),
        (ptxgen.stft(x[1], **how), found[1]),
        (alone[:, 0], inner[:, 4]),
    ):
        same_bits(a.copy().view(real), b.copy().view(real))
    back = {**how, "return_complex": dtype == "c8", "length": 38}
    signals = ptxgen.istft(found, **back)
    same_bits(signals.view(real), reference.istft(found, **back).view(real))
    same_bits(ptxgen.istft(found[:1], **back)[0].view(real), signals[0].view(real))


def test_pairs_of_parts():
    x = signal(30, dtype="f4")
    pairs = ptxgen.stft(x, 8, return_complex=False)
    assert pairs.shape == (5, 16, 2)
    same_bits(pairs.copy().view("c8")[..., 0].view("f4"), ptxgen.stft(x, 8).view("f4"))


def test_the_inverse_of_a_transform():
    x = signal(2, 2, 61, dtype="f4")
    for n_fft, hop, length in LENGTHS:
        how = {"window": window(length or n_fft, "f4")} | {"win_length": length}
        how |= {"hop_length": hop, "normalized": True}
        found = reference.stft(x, n_fft, **how, onesided=False)
        again = reference.istft(found, n_fft, **how, onesided=False)
        assert abs(again - x[..., : again.shape[-1]]).max() < 2e-6
    longer = reference.istft(reference.stft(x, 8), 8, length=70)
    assert longer.shape == (2, 2, 70) and (longer[..., 64:] == 0).all()


@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_every_option_has_pytorchs_results():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    for kind, (n_fft, hop, win), of in product(("f8", "c16"), LENGTHS, PADDINGS):
        x = signal(2, 41, dtype=kind)
        for w, centred in ((None, True), (window(win or n_fft), False), (window(win or n_fft), 1)):
            how = {"center": bool(centred), "normalized": of == "reflect"}
            how |= {"onesided": False} if of == "circular" else {}
            to = None if w is None else torch.from_numpy(w)
            of_torch = {**how, "pad_mode": of, "return_complex": True}
            wanted = torch.stft(torch.from_numpy(x), n_fft, hop, win, to, **of_torch).numpy()
            found = reference.stft(x, n_fft, hop, win, w, **how, pad_mode=of)
            assert found.shape == wanted.shape and found.dtype == wanted.dtype
            assert abs(found - wanted).max() < 1e-13
            if not centred and win == 7:
                continue  # no window reaches the first sample
            back = {**how, "return_complex": kind == "c16", "length": 30 if hop == 4 else None}
            given = torch.from_numpy(wanted)
            signals = torch.istft(given, n_fft, hop, win, to, **back).numpy()
            found = reference.istft(wanted, n_fft, hop, win, w, **back)
            assert found.shape == signals.shape and found.dtype == signals.dtype
            assert abs(found - signals).max() < 1e-13


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_gradients_are_those_of_torch(dtype):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    pt = pytest.importorskip("ptxgen.torch")
    x, w = (torch.from_numpy(v) for v in (signal(2, 21, dtype=dtype), window(8)))
    for how in (
        {"pad_mode": "reflect"},
        {"pad_mode": "replicate", "normalized": True, "onesided": False},
        {"pad_mode": "circular", "win_length": 6},
        {"center": False, "pad_mode": "constant"},
    ):
        own, found, spectra = w[: how.get("win_length", 8)], [], None
        for of in (torch, pt):
            leaves = [v.clone().requires_grad_() for v in (x, own)]
            y = of.stft(leaves[0], 8, 3, window=leaves[1], return_complex=True, **how)
            dy = torch.from_numpy(signal(*y.shape, dtype="c16"))
            found.append(torch.autograd.grad(y, leaves, dy))
            spectra = y.detach() if spectra is None else spectra
            if "center" in how:
                continue
            back = {n: v for n, v in how.items() if n != "pad_mode"} | {"length": 14}
            leaves = [v.clone().requires_grad_() for v in (spectra, own)]
            back["return_complex"] = dtype == "c16"
            z = of.istft(leaves[0], 8, 3, window=leaves[1], **back)
            dz = torch.from_numpy(signal(*z.shape, dtype=dtype))
            found[-1] += torch.autograd.grad(z, leaves, dz)
        for a, b in zip(*found, strict=True):
            assert a.shape == b.shape and abs(a - b).max() < 1e-13


@pytest.mark.long
def test_second_derivatives():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    pt = pytest.importorskip("ptxgen.torch")
    x, w = (torch.from_numpy(v).requires_grad_() for v in (signal(7), window(4)))
    assert torch.autograd.gradgradcheck(lambda x, w: pt.stft(x, 4, 2, window=w), (x, w))
    z = pt.stft(x, 4, 2, window=w).detach().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda z, w: pt.istft(z, 4, 2, window=w), (z, w))


def test_a_captured_call_and_its_kernels():
    x = signal(2, 40, dtype="f4")
    captured = ptxgen.capture(lambda v: ptxgen.istft(ptxgen.stft(v, 8), 8), x)
    same_bits(captured(x[::-1].copy()), reference.istft(reference.stft(x[::-1], 8), 8))
    explained = ptxgen.explain("stft", 1, 480000, 400, hop_length=160)
    assert "fft 3001 x 400 f32" in [step.problem for _, step in explained.steps]


# -- log-mel ------------------------------------------------------------------------------------
def features(x, filters, n_fft, hop, *, drop=0, clamp=None):
    """Log-mel features by their definition, in float64."""
    w = 0.5 - 0.5 * np.cos(np.arange(n_fft) * 2 * np.pi / n_fft)
    padded = np.pad(x.astype(float), n_fft // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft)[::hop]
    power = abs(np.fft.rfft(frames[: len(frames) - drop] * w)) ** 2
    found = np.log10(np.maximum(filters.astype(float) @ power.T, 1e-10))
    return found if clamp is None else np.maximum(found, found.max() - clamp)


def sound(seconds):
    """A chirp, a chord and noise, at 16 kHz."""
    t = np.arange(int(16000 * seconds)) / 16000
    chirp = 0.3 * np.sin(2 * np.pi * (200 * t + 60 * t * t))
    noise = 0.01 * np.random.default_rng(0).standard_normal(t.size)
    return (chirp + 0.1 * np.sin(2 * np.pi * 440 * t) + noise).astype("f4")


def test_spectrograms_are_those_of_the_formula():
    x = sound(0.1)
    found = ptxgen.log_mel_spectrogram(x)
    same_bits(found, reference.log_mel_spectrogram(x))
    exact = features(x, ptxgen.mel_filters(16000, 400, 80), 400, 160)
    assert found.shape == (80, 11) and abs(found - exact).max() < 1e-4
    kept = reference.log_mel_spectrogram(x.astype("f8"), drop_last=True, clamp=1.0)
    assert abs(kept - np.maximum(exact[:, :-1], exact[:, :-1].max() - 1)).max() < 1e-7
    same_bits(reference.log_mel_spectrogram(x[None], drop_last=True)[0], found[:, :-1].copy())
    assert ptxgen.log_mel_spectrogram(x[:400], center=False, drop_last=True).shape == (80, 0)


def test_filters_of_a_program_are_those_of_mel_filters():
    """The power of one impulse a frame is 1 in each bin: features are sums of filters."""
    for how in ({}, {"scale": "htk"}, {"norm": None, "low": 50.0, "high": 3000.0}):
        filters = ptxgen.mel_filters(8000, 64, 7, **how).astype(float)
        x = np.zeros(64)
        x[0] = 1.0
        found = reference.log_mel_spectrogram(
            x, 8000, n_fft=64, n_mels=7, center=False, window=np.ones(64), **how
        )
        assert 10.0 ** found[:, 0] == pytest.approx(filters.sum(1), rel=1e-7)


def test_torchaudios_definition():
    """``MelSpectrogram``, then ``AmplitudeToDB``, with defaults, as torchaudio documents them."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    x, wide = torch.from_numpy(sound(0.2)).double(), {"dtype": torch.float64}
    w = torch.hann_window(400, **wide)
    spectrum = torch.stft(x, 400, 200, 400, w, return_complex=True)
    top, bins = 2595 * np.log10(1 + 8000 / 700), torch.linspace(0, 8000, 201, **wide)
    corners = 700 * (10 ** (torch.linspace(0, top, 130, **wide) / 2595) - 1)
    slopes = corners[None] - bins[:, None]
    down, up = -slopes[:, :-2] / corners.diff()[:-1], slopes[:, 2:] / corners.diff()[1:]
    filters = torch.minimum(down, up).clamp(min=0)  # [bins, mels]
    power = torch.einsum("kt,km->mt", spectrum.abs() ** 2, filters)
    decibels = 10 * torch.log10(power.clamp(min=1e-10))
    decibels = torch.maximum(decibels, decibels.max() - 80.0)
    how = {"hop_length": 200, "n_mels": 128, "scale": "htk", "norm": None, "clamp": 8.0}
    found = 10 * reference.log_mel_spectrogram(x.numpy(), **how)
    assert abs(found - decibels.numpy()).max() < 1e-9


def test_whispers_features():
    """Features of 30 s are off by at most twice the error of transformers' own, to float64."""
    pytest.importorskip("torch", reason="needs PyTorch")
    transformers = pytest.importorskip("transformers")
    x = sound(30)
    made = transformers.WhisperFeatureExtractor()(x, sampling_rate=16000, return_tensors="np")
    theirs = made.input_features[0]
    found = (reference.log_mel_spectrogram(x, drop_last=True, clamp=8.0) + 4) / 4
    assert found.shape == theirs.shape == (80, 3000) and found.dtype == theirs.dtype
    filters = ptxgen.mel_filters(16000, 400, 80)
    exact = (features(x, filters, 400, 160, drop=1, clamp=8.0) + 4) / 4
    off, of_theirs = abs(found - exact), abs(theirs - exact)
    assert off.max() <= 2 * of_theirs.max() and off.mean() <= 2 * of_theirs.mean()


@pytest.mark.parametrize("clamp", [None, 0.5])
def test_gradients_of_features_are_finite_differences(clamp):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    pt = pytest.importorskip("ptxgen.torch")
    how = {"n_fft": 16, "hop_length": 5, "n_mels": 3, "drop_last": True, "clamp": clamp}
    leaves = [torch.from_numpy(v).requires_grad_() for v in (signal(2, 60), window(16))]
    y = pt.log_mel_spectrogram(leaves[0], 8000.0, window=leaves[1], **how)
    weights = signal(*y.shape)
    (y * torch.from_numpy(weights)).sum().backward()
    plain = reference.log_mel_spectrogram(signal(2, 60), 8000.0, window=window(16), **how)
    least = plain.max((1, 2), keepdims=True) - (clamp or 99)

    def loss(x, w):
        found = reference.log_mel_spectrogram(x, 8000.0, window=w, **{**how, "clamp": None})
        return (
            np.maximum(found, least if clamp is None else plain.min((1, 2))[:, None, None])
            * weights
        ).sum()

    for at in range(2):
        step = 1e-6 * np.random.default_rng(2).standard_normal(leaves[at].shape)
        ends = []
        for sign in (1, -1):
            moved = [signal(2, 60), window(16)]
            moved[at] = moved[at] + sign * step
            ends.append(loss(*moved))
        slope = (leaves[at].grad.numpy() * step).sum()
        assert slope == pytest.approx((ends[0] - ends[1]) / 2, rel=1e-5)


# -- bad input ----------------------------------------------------------------------------------
def test_what_bad_input_gets():
    x, z = signal(20, dtype="f4"), ptxgen.stft(signal(20, dtype="f4"), 8)
    hann = (np.sin(np.pi * np.arange(8) / 8) ** 2).astype("f4")
    for call, error, text in (
        (lambda: ptxgen.stft(x.astype("i4"), 8), DtypeError, "x has dtype int32"),
        (lambda: ptxgen.stft(x, 8, window=window(8)), DtypeError, "window has dtype float64"),
        (lambda: ptxgen.stft(x, 8, window=window(7, "f4")), ShapeError, r"takes \[8\]"),
        (lambda: ptxgen.stft(x, 8, win_length=9), OptionError, "win_length is 9; takes 1 .. 8"),
        (lambda: ptxgen.stft(x, 8, 0), OptionError, "hop_length is 0"),
        (lambda: ptxgen.stft(x, 8, pad_mode="edge"), OptionError, "pad_mode is 'edge'"),
        (lambda: ptxgen.stft(x, 60), ShapeError, "takes at least 31 to pad 30"),
        (lambda: ptxgen.stft(x, 30, center=False), ShapeError, "takes at least 30, n_fft"),
        (lambda: ptxgen.stft(x + 0j, 8, onesided=True), OptionError, "onesided is True"),
        (lambda: ptxgen.istft(x, 8), DtypeError, "x has dtype float32; takes complex64"),
        (lambda: ptxgen.istft(z, 10), ShapeError, "x has 5 bins; takes 6, as n_fft is 10"),
        (lambda: ptxgen.istft(z[:, :1], 8), ShapeError, "which leave no sample"),
        (lambda: ptxgen.istft(z, 8, 5, 4), OptionError, "hop_length is 5; takes 1 .. 4"),
        (lambda: ptxgen.istft(z, 8, return_complex=True), OptionError, "onesided is True"),
        (lambda: ptxgen.istft(z, 8, 2, window=hann, center=False), OptionError, "add up to 0 at"),
        (lambda: ptxgen.istft(z, 8, 4, 4, center=False), OptionError, "sample 0 of the result"),
        (lambda: ptxgen.log_mel_spectrogram(x), ShapeError, "waveform has 20 elements"),
        (lambda: ptxgen.log_mel_spectrogram(sound(0.1), high=9e3), OptionError, "high <= 8000"),
    ):
        with pytest.raises(error, match=text):
            call()
    assert np.isfinite(ptxgen.istft(z, 8, 2, window=hann)).all()
