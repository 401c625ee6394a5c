"""Derives the polynomials of ``ptxgen/numerics/functions.py``.

Run ``python tools/fit_functions.py`` to print them with their errors. Everything is fitted here
from the defining functions, with no published coefficients, as ``tools/fit_activation.py`` does it:
least squares on a Chebyshev grid, one coefficient after the other rounded to f32. (POW_LOG is an
f64 polynomial and is not rounded.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from fit_activation import Array, chebyshev_grid, fit_f32

POINTS = 3000
LN2 = math.log(2)
SQRT_HALF = math.sqrt(0.5)


def series(term: Callable[[int], float], x: Array, count: int = 60) -> Array:
    """Returns ``sum(term(i) * x**i)`` by Horner's rule, which avoids cancellation near zero."""
    total = np.zeros_like(x)
    for i in reversed(range(count)):
        total = total * x + term(i)
    return total


def show(name: str, fit: tuple[list[float], float]) -> None:
    """Prints a polynomial's coefficients as Python source, and its error."""
    coefficients, error = fit
    print(f"# relative error 2**{math.log2(error):.2f}")
    print(f"{name} =", tuple(c.hex() for c in coefficients))


def fit_logarithm(low: float, high: float, degree: int) -> tuple[list[float], float]:
    """Fits ``(log2(1 + t) - t / ln 2) / t**2``; returns coefficients and the relative error of
    ``log2(1 + t)``.
    """
    t = chebyshev_grid(low, high, POINTS)
    target = series(lambda i: (-1) ** (i + 1) / (i + 2) / LN2, t)
    return fit_f32(t, target, np.abs(t * t / np.log1p(t) * LN2), degree)


def fit_wide_logarithm(degree: int) -> tuple[list[float], float]:
    """Fits ``log2(1 + t) / t``; returns f64 coefficients and relative error of ``log2(1 + t)``."""
    t = chebyshev_grid(-0.25, 0.5, POINTS)
    weight = t / np.log1p(t) * LN2
    basis = np.stack([weight * t**k for k in range(degree + 1)], axis=1)
    solution = np.linalg.lstsq(basis, np.ones_like(t), rcond=None)[0]
    return [float(c) for c in solution], float(np.abs(basis @ solution - 1).max())


def fit_odd(
    function: Callable[[Array], Array], term: Callable[[int], float], high: float, degree: int
) -> tuple[list[float], float]:
    """Fits ``(f(x) / x - 1) / x**2`` as a polynomial in ``x**2``; returns coefficients and error.

    ``term(i)``: coefficient of ``x**(2 i)`` in its Taylor series.
    """
    x = chebyshev_grid(0, high, POINTS)
    square = x * x
    far = (function(x) / x - 1) / square
    target = np.where(x < 0.1, series(term, np.minimum(square, 0.01), 8), far)
    return fit_f32(square, target, square * x / function(x), degree)


def fit_odds(high: float, degree: int) -> tuple[list[float], float]:
    """Fits ``log2(r) / x`` in ``x**2``, where ``r = P(-x) / P(x)``, P the normal distribution
    function.

    Returns the coefficients, and the largest error of ``r`` over ``r + 2**-8``.
    """
    square = chebyshev_grid(0, high * high, POINTS)
    x = np.sqrt(square)
    below, above = (np.array([math.erfc(s * e * SQRT_HALF) for e in x]) for s in (1, -1))
    odds = np.log2(below / above)
    return fit_f32(square, odds / x, LN2 * x / (1 + 2**-8 * 2**-odds), degree)


def main() -> None:
    """Prints the constants of every function."""
    r = chebyshev_grid(-0.5, 0.5, POINTS)
    target = series(lambda i: LN2 ** (i + 1) / math.factorial(i + 1), r, 25)
    show("EXP2", fit_f32(r, target, np.abs(r) / 2**r, 5))
    show("EXP2_SHORT", fit_f32(r, target, np.abs(r) / 2**r, 4))
    show("LOG2", fit_logarithm(SQRT_HALF - 1, 2 * SQRT_HALF - 1, 8))
    show("POW_LOG", fit_wide_logarithm(13))

    e = chebyshev_grid(0, 1, POINTS)
    near = series(lambda i: (-1) ** (i + 1) / (i + 2), np.minimum(e, 0.3))
    target = np.where(e < 0.3, near, (np.log1p(e) - e) / e**2)
    show("LOG1P", fit_f32(e, target, e * e / np.log1p(e), 9))

    # of ptxgen/numerics/softcap.py
    taylor = (-1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925, 21844 / 6081075)
    taylor += (-929569 / 638512875, 6404582 / 10854718875)
    show("TANH", fit_odd(np.tanh, taylor.__getitem__, 0.75, 4))

    show("ATAN", fit_odd(np.arctan, lambda i: (-1) ** (i + 1) / (2 * i + 3), 1, 8))

    half = math.pi / 4
    show("SIN", fit_odd(np.sin, lambda i: (-1) ** (i + 1) / math.factorial(2 * i + 3), half, 2))
    square = chebyshev_grid(0, half, POINTS) ** 2
    target = series(lambda i: (-1) ** i / math.factorial(2 * i + 4), square, 20)
    show("COS", fit_f32(square, target, square * square / np.cos(np.sqrt(square)), 2))

    square = chebyshev_grid(0, 1, POINTS) ** 2
    k = 2 / math.sqrt(math.pi)
    ratio = series(lambda i: k * (-1) ** i / math.factorial(i) / (2 * i + 1), square, 40)
    show("ERF", fit_f32(square, ratio - 1, 1 / ratio, 6))
    x = chebyshev_grid(1, 3.95, POINTS)
    erfc = np.array([math.erfc(each) for each in x])
    show("ERFC", fit_f32(x, np.log(erfc), erfc, 6))
    show("GELU_ODDS", fit_odds(6.25, 9))


if __name__ == "__main__":
    main()
