"""Triangular filters on the mel scale, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import OptionError
from ptxgen.numerics.option import Choice, Integer, Real

_LINEAR, _BREAK, _STEP = 200 / 3, 1000.0, np.log(6.4) / 27
"""Slaney's scale: hertz a mel below the break, the break in hertz, and nepers a mel above it."""


def _mel(hertz: Any, scale: str) -> Any:
    if scale == "htk":
        return 2595 * np.log10(1 + np.asarray(hertz) / 700)
    low = np.asarray(hertz) / _LINEAR
    above = _BREAK / _LINEAR + np.log(np.maximum(hertz, _BREAK) / _BREAK) / _STEP
    return np.where(np.asarray(hertz) < _BREAK, low, above)


def _hertz(mel: Any, scale: str) -> Any:
    if scale == "htk":
        return 700 * (10 ** (np.asarray(mel) / 2595) - 1)
    start = _BREAK / _LINEAR
    above = _BREAK * np.exp(_STEP * (np.maximum(mel, start) - start))
    return np.where(np.asarray(mel) < start, np.asarray(mel) * _LINEAR, above)


def mel_filters(
    sample_rate: float,
    n_fft: int,
    n_mels: int,
    *,
    low: float = 0.0,
    high: float | None = None,
    scale: str = "slaney",
    norm: str | None = "slaney",
) -> NDArray[np.float32]:
    """Triangles on the mel scale: ``max(0, min(rise, fall))`` at the frequency of each bin.

    Shapes
        The result ``[n_mels, n_fft // 2 + 1]``.
    Dtypes
        Computed in float64, rounded to float32.
    Order
        Nothing is added.
    Options
        ``low``, ``high``: the outer corners in hertz (half the ``sample_rate`` by default).
        ``scale``: "slaney" (linear up to 1 kHz, then logarithmic) or "htk"
        (``2595 log10(1 + f / 700)``). ``norm``: "slaney" divides a triangle by half its width in
        hertz, so that all have the same area; None leaves a height of 1.
    Errors
        OptionError.
    Source
        ``ptxgen/ops/mel.py``; Slaney's scale is that of his Auditory Toolbox (1998).
    """
    rate = Real(above=0).read("sample_rate", sample_rate)
    bins = Integer(1, 1 << 28).read("n_fft", n_fft) // 2 + 1
    count = Integer(1, 1 << 20).read("n_mels", n_mels)
    scale = Choice("slaney", "htk").read("scale", scale)
    norm = Choice("slaney", None).read("norm", norm)
    bottom = Real(least=0).read("low", low)
    top = rate / 2 if high is None else Real(above=0).read("high", high)
    if not bottom < top <= rate / 2:
        raise OptionError(f"low is {bottom:g} and high {top:g}; takes low < high <= {rate / 2:g}")
    corners = _hertz(np.linspace(_mel(bottom, scale), _mel(top, scale), count + 2), scale)
    frequency = np.arange(bins) * (rate / n_fft)
    left, middle, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rise = (frequency - left) / (middle - left)
    fall = (right - frequency) / (right - middle)
    found = np.maximum(0, np.minimum(rise, fall))
    if norm == "slaney":
        found = found * (2 / (right - left))
    rounded: NDArray[np.float32] = found.astype(np.float32)
    return rounded
