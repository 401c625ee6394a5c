"""Triangular filters on the mel scale: NumPy arrays, or a step of a program."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ptxgen.errors import OptionError
from ptxgen.numerics.formula import Node, where
from ptxgen.numerics.functions import exp, maximum, minimum
from ptxgen.numerics.option import Choice, Integer, Real
from ptxgen.ops.pointwise import Pointwise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LINEAR, _BREAK, _STEP = 200 / 3, 1000.0, math.log(6.4) / 27
"""Slaney's scale: hertz a mel below the break, the break in hertz, and nepers a mel above it."""
Scale, MelNorm = Choice("slaney", "htk"), Choice("slaney", None)


def _mel(hertz: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * math.log10(1 + hertz / 700)
    if hertz < _BREAK:
        return hertz / _LINEAR
    return _BREAK / _LINEAR + math.log(hertz / _BREAK) / _STEP


def _hertz(mel: Node, scale: str) -> Node:
    if scale == "htk":
        return (exp(mel * (math.log(10) / 2595)) - 1) * 700
    start = _BREAK / _LINEAR
    return where(mel < start, mel * _LINEAR, exp((mel - start) * _STEP) * _BREAK)


@cache
def _triangle(scale: str, norm: str | None) -> Pointwise:
    """Returns the function of filter ``row`` at bin ``k``, in f64. Corner i of the filters is at
    ``bottom + i * step`` mels, and not above ``top`` hertz; ``width``: hertz from bin to bin.
    """

    def triangle(row: Node, k: Node, bottom: Node, step: Node, top: Node, width: Node) -> Node:
        corners = (_hertz((row + i) * step + bottom, scale) for i in range(3))
        left, middle, right = (minimum(corner, top) for corner in corners)
        frequency = k * width
        rise = (frequency - left) / (middle - left)
        fall = (right - frequency) / (right - middle)
        found = maximum(minimum(rise, fall), 0.0)
        return found * (2.0 / (right - left)) if norm == "slaney" else found

    return Pointwise(triangle, f"mel_{scale}{'_area' if norm else ''}")


def triangles(
    apply: Callable[..., Any],
    row: Any,
    k: Any,
    rate: float,
    n_fft: int,
    *,
    low: float,
    high: float | None,
    scale: str,
    norm: str | None,
) -> Any:
    """Returns the filters of :func:`mel_filters` in float64, one for each element of ``row``.

    ``row``, ``k``: float64 ``[n_mels, 1]`` and ``[n_fft // 2 + 1]``, 0, 1 …; ``apply``: calls a
    pointwise function with arguments. Raises OptionError.
    """
    top = rate / 2 if high is None else high
    if not low < top <= rate / 2:
        raise OptionError(f"low is {low:g} and high {top:g}; takes low < high <= {rate / 2:g}")
    bottom = _mel(low, scale)
    step = (_mel(top, scale) - bottom) / (row.shape[0] + 1)
    return apply(_triangle(scale, norm), row, k, bottom, step, top, rate / n_fft)


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
    import numpy as np

    rate = Real(above=0).read("sample_rate", sample_rate)
    bins = Integer(1, 1 << 28).read("n_fft", n_fft) // 2 + 1
    count = Integer(1, 1 << 20).read("n_mels", n_mels)
    scale, norm = Scale.read("scale", scale), MelNorm.read("norm", norm)
    bottom = Real(least=0).read("low", low)
    top = None if high is None else Real(above=0).read("high", high)
    of: dict[str, Any] = {"low": bottom, "high": top, "scale": scale, "norm": norm}
    row, k = np.arange(count, dtype=np.float64)[:, None], np.arange(bins, dtype=np.float64)
    found = triangles(lambda f, *given: f.reference(*given), row, k, rate, n_fft, **of)
    rounded: NDArray[np.float32] = found.astype(np.float32)
    return rounded
