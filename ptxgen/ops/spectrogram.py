"""Log-mel spectrograms of waveforms, as speech models take them."""

from __future__ import annotations

import math
from typing import Annotated, Any

from ptxgen.numerics.formula import Node, fma
from ptxgen.numerics.functions import minimum
from ptxgen.numerics.option import Bool, Integer, Real
from ptxgen.numerics.signature import Signature
from ptxgen.ops.mel import MelNorm, Scale, triangles
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.spectra import (
    SERVED,
    Positive,
    Range,
    mel_features,
    mel_gradient,
    spectral_power,
)
from ptxgen.ops.stft import (
    PadMode,
    Part,
    Size,
    check_signal,
    stft_gradients,
    stft_pairs,
)
from ptxgen.ops.views import check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op

Low = Annotated[float, Real(least=0)]
Mels = Annotated[int, Integer(1, 1 << 20)]


LOG_MEL_SPECTROGRAM = Signature(
    "log_mel_spectrogram",
    ("waveform", "window"),
    ("out",),
    {"": {"waveform": "... L", "window": "W", "out": "... F T"}},
    ("M", "L"),
    optional=frozenset({"window"}),
)
TERMS = 11
"""Terms of the Taylor series of the sine: the next one is below 2**-59 up to a quarter turn."""


def _hann(j: Node, count: Node) -> Node:
    """Formula of the periodic Hann window, ``sin(πj / count)²``, by the sine's Taylor series, as
    formulas have no cosine in float64.
    """
    x = minimum(j, count - j) * (math.pi / count)
    square, found = x * x, j * 0.0
    for k in reversed(range(TERMS)):
        found = fma(found, square, (-1) ** k / math.factorial(2 * k + 1))
    return (found * x) * (found * x)


_window = Pointwise(_hann, "hann")


def _arrays(b: Builder, x: Any, window: Any, how: Any) -> tuple[Any, Any]:
    """Returns the window, by default Hann's, and the mel filters."""
    n_fft, mels, dtype = how["n_fft"], how["n_mels"], b.dtype(x)
    length, bins = how["win_length"] or n_fft, n_fft // 2 + 1
    ones = b.filled((max(length, bins, mels),), "float64", 1, x)
    ramp = b.cumsum(ones, exclusive=True)
    row, k = (b.narrow(ramp, 0, 0, count) for count in (mels, bins))
    names = "low", "high", "scale", "norm"
    of = {name: how[name] for name in names}
    filters = triangles(b.call, b.reshape(row, (mels, 1)), k, how["sample_rate"], n_fft, **of)
    if window is None:
        window = b.call(_window, b.narrow(ramp, 0, 0, length), float(length))
        window = b.cast(window, dtype)
    return window, b.cast(filters, dtype)


def _powers(b: Builder, pairs: Any) -> Any:
    return b.call(spectral_power, *_parts(b, pairs))


def _parts(b: Builder, pairs: Any) -> list[Any]:
    """Returns the real and the imaginary parts of pairs, as views."""
    return [b.squeeze(b.narrow(pairs, -1, i, 1), -1) for i in range(2)]


def _spectra(b: Builder, x: Any, window: Any, how: Any) -> Any:
    """Returns the spectra of all frames, or of all but the last, as pairs ``[..., T, K, 2]``."""
    pairs = stft_pairs(b, x, window, how)
    return b.narrow(pairs, -3, 0, pairs.shape[-3] - 1) if how["drop_last"] else pairs


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of waveform and window, by those of the powers."""
    x, how = at["waveform"], {**at.options, "onesided": True}
    window, filters = _arrays(b, x, at.arguments.get("window"), how)
    pairs = _spectra(b, x, window, how)
    dy = b.packed(b.transpose(at.dys[0]))
    power = _powers(b, pairs)
    dmel = mel_gradient(b, power, filters, how["floor"], how["clamp"], dy)
    dpower = b.linear_dgrad(dmel, filters, layout="nk")
    parts = b.call(spectral_power.gradient((True, True)), *_parts(b, pairs), dpower)
    dpairs = b.concat([b.unsqueeze(d, -1) for d in parts], len(pairs.shape) - 1)
    if how["drop_last"]:
        rank = len(dpairs.shape)
        dpairs = b.pad(dpairs, tuple((0, int(i == rank - 3)) for i in range(rank)))
    needs = "waveform" in at.needs, "window" in at.needs
    found = stft_gradients(b, x, window, how, dpairs, needs)
    return {n: d for n, d in zip(("waveform", "window"), found, strict=True) if d is not None}


@op(forms=LOG_MEL_SPECTROGRAM, any_rank=True, vjp=_vjp)
def log_mel_spectrogram(
    b: ProgramBuilder,
    waveform: Buffer,
    sample_rate: Positive = 16000.0,
    *,
    n_fft: Size = 400,
    hop_length: Part = 160,
    win_length: Part = None,
    window: Buffer | None = None,
    n_mels: Mels = 80,
    low: Low = 0.0,
    high: Range = None,
    scale: Annotated[str, Scale] = "slaney",
    norm: Annotated[str | None, MelNorm] = "slaney",
    center: Bool = True,
    pad_mode: PadMode = "reflect",
    normalized: Bool = False,
    drop_last: Bool = False,
    floor: Positive = 1e-10,
    clamp: Range = None,
) -> Buffer:
    """``log10(max(filters · |stft(waveform)|², floor))``: log-mel features of waveforms.

    Whisper's are ``(log_mel_spectrogram(x, drop_last=True, clamp=8) + 4) / 4`` of 480,000 samples.
    torchaudio's ``MelSpectrogram`` has ``hop_length=200, scale="htk", norm=None`` by default, and
    its ``AmplitudeToDB`` is ten times the result.

    Shapes
        ``waveform`` ``[..., L]``, ``window`` ``[win_length]``; the result ``[..., n_mels, T]``.
    Dtypes
        float32 or float64, the same for both, and so the result. Window and filters are computed in
        float64 and rounded.
    Order
        As :func:`ptxgen.stft`, then :func:`ptxgen.log_mel`, by the filters of
        :func:`ptxgen.mel_filters` (float64 ones are not rounded to float32). A frame depends on its
        samples alone, but for ``clamp``. :func:`ptxgen.reference.log_mel_spectrogram` returns the
        same bits.
    Options
        ``sample_rate``, ``low`` and ``high`` (by default half the rate): hertz. ``window``: by
        default the periodic Hann window, ``0.5 - 0.5 cos(2πj / win_length)``. ``drop_last``: leaves
        out the last frame. ``clamp``: results are at least the largest one of a waveform minus
        this; the gradient takes that largest one as a constant. The others are those of
        :func:`ptxgen.stft`, :func:`ptxgen.mel_filters` and :func:`ptxgen.log_mel`.
    Errors
        ShapeError for a waveform that is too short, DtypeError, OptionError, DeviceError, GradError
        or CompileError, before anything is launched or written.
    """
    check_dtype("waveform", waveform.dtype, SERVED)
    how: dict[str, Any] = {
        **{"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "low": low},
        **{"high": high, "scale": scale, "norm": norm, "center": center, "pad_mode": pad_mode},
        **{"normalized": normalized, "drop_last": drop_last, "n_mels": n_mels, "onesided": True},
        "sample_rate": sample_rate,
    }
    count = check_signal("waveform", waveform, window, how) - drop_last
    if b.abstract or not waveform.size or not count:
        return b.result((*waveform.shape[:-1], n_mels, count), waveform.dtype)
    window, filters = _arrays(b, waveform, window, how)
    power = _powers(b, _spectra(b, waveform, window, how))
    found: Buffer = b.transpose(mel_features(b, power, filters, floor, clamp))
    return found
