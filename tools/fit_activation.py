"""Derives the constants of ``ptxgen/numerics/activation.py``.

Run ``python tools/fit_activation.py`` to print them with their errors. Everything is fitted here
from the defining functions, with no published coefficients:

- ``EXP``: ``(exp(r) - 1 - r) / r**2`` on ``|r| <= 0.347``, weighted so that the relative
  error of ``exp(r)`` is the smallest possible;
- ``TAIL``: ``(y + k) * exp(y**2 / 2) * Phi(-y)`` on ``0 <= y <= 15`` as a polynomial in
  ``u = y / (y + k) - 1/2``, smallest relative error. The factor ``y + k`` takes out the
  ``1 / y`` decay, the map spreads the bend near zero over the interval.

Of all ``k`` in multiples of 1/64, the one with the smallest error after rounding is used; any such
``k`` keeps ``(y + k) - k`` exact in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXP_HALF_WIDTH = 0.347  # ln(2)/2, and room for the rounding of the quotient
EXP_DEGREE = 4
TAIL_LIMIT = 15.0
TAIL_DEGREE = 9


def fit_f32(x: Array, target: Array, weight: Array, degree: int) -> tuple[list[float], float]:
    """Fits f32 coefficients, constant term first; returns them and ``max |weight * error|``.

    ``x`` is a Chebyshev grid, on which least squares come close to the minimax polynomial. The
    constant term is rounded to f32 first; the others are fitted again, to absorb what they can of
    its rounding error; then the next term is rounded, and so on.
    """
    coefficients: list[float] = []
    rest = target
    for power in range(degree + 1):
        basis = np.stack([weight * x**p for p in range(power, degree + 1)], axis=1)
        scale = np.abs(basis).max(axis=0)
        solution = np.linalg.lstsq(basis / scale, weight * rest, rcond=None)[0] / scale
        coefficients.append(float(np.float32(solution[0])))
        rest = rest - coefficients[-1] * x**power
    return coefficients, float(np.abs(weight * rest).max())


def chebyshev_grid(low: float, high: float, points: int) -> Array:
    """Returns ``points`` ascending points of ``[low, high]``, dense at both ends, none exactly
    zero.
    """
    cosine = -np.cos((np.arange(points) + 0.5) * (math.pi / points))
    return np.asarray((low + high) / 2 + (high - low) / 2 * cosine, dtype=np.float64)


def fit_exp() -> tuple[list[float], float]:
    """Returns the coefficients of ``(exp(r) - 1 - r) / r**2``, and the relative error of
    ``exp(r)``.
    """
    r = chebyshev_grid(-EXP_HALF_WIDTH, EXP_HALF_WIDTH, 4000)
    # The series avoids the cancellation of expm1(r) - r.
    target = sum((r**i / math.factorial(i + 2) for i in range(20)), np.zeros_like(r))
    return fit_f32(r, target, r * r / np.exp(r), EXP_DEGREE)


def scaled_tail(y: Array) -> Array:
    """Returns ``exp(y**2 / 2) * Phi(-y)`` in float64."""
    erfc: Callable[[Array], Array] = np.vectorize(math.erfc)
    return np.asarray(0.5 * erfc(y / math.sqrt(2)) * np.exp(y * y / 2), dtype=np.float64)


def fit_tail(k: float) -> tuple[list[float], float]:
    """Returns the coefficients of the Gaussian tail for one ``k``, and their relative error."""
    u = chebyshev_grid(-0.5, TAIL_LIMIT / (TAIL_LIMIT + k) - 0.5, 1500)
    y = k * (0.5 + u) / (0.5 - u)
    target = (y + k) * scaled_tail(y)
    return fit_f32(u, target, 1 / target, TAIL_DEGREE)


def main() -> None:
    """Prints the constants with their errors."""
    exp, exp_error = fit_exp()
    k = min((i / 64 for i in range(128, 256)), key=lambda k: fit_tail(k)[1])
    tail, tail_error = fit_tail(k)
    print(f"# relative error 2**{math.log2(exp_error):.2f}")
    print("EXP =", tuple(c.hex() for c in exp))
    print(f"# relative error 2**{math.log2(tail_error):.2f}")
    print("TAIL_SHIFT =", k)
    print("TAIL =", tuple(c.hex() for c in tail))


if __name__ == "__main__":
    main()
