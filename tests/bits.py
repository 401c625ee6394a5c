"""Comparing bits, and saying how to see a difference again."""

from __future__ import annotations

import os

import numpy as np
from ml_dtypes import bfloat16

KINDS = ("normal", "wide", "cancelling", "subnormal", "special")
"""Distributions of :func:`operand`."""
NUMPY = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(bfloat16),
    "f16": np.dtype(np.float16),
}
"""The NumPy dtypes by their names in specs."""

_SPAN = {"f32": 40, "f64": 300, "bf16": 40, "f16": 7}
_TINY = {"f32": -20, "f64": -49, "bf16": -6, "f16": -9}
_SMALL = {
    "f32": (-140, -74, -10, 0),
    "f64": (-1065, -540, -10, 0),
    "bf16": (-130, -74, -10, 0),
    "f16": (-22, -16, -5, 0),
}
_ENDS = {
    "f32": (3.4e38, 1e-45),
    "f64": (1.7e308, 5e-324),
    "bf16": (2.0**128 - 2.0**120, 2.0**-133),
    "f16": (65504, 2.0**-24),
}


def operand(rng, shape, kind="normal", dtype="f32"):
    """A random array of one of :data:`KINDS`, meant for both factors of a product.

    "wide": magnitudes 2^-40 .. 2^40 (2^-7 .. 2^7 in f16), so that most of a sum is rounded away.
    "cancelling": ±(1 + tiny), so that sums nearly vanish. "subnormal": columns of numbers around
    the smallest of the format, so that sums are, too. "special": normal, with zeros of both signs,
    infinities, NaN, the largest and the smallest numbers.
    """
    values = rng.standard_normal(shape)
    if kind == "wide":
        span = _SPAN[dtype]
        values = values * np.exp2(rng.integers(-span, span + 1, shape).astype(np.float64))
    elif kind == "cancelling":
        values = rng.choice([-1.0, 1.0], shape) * (1 + values * 2.0 ** _TINY[dtype])
    elif kind == "subnormal":
        values = values * np.exp2(rng.choice(np.array(_SMALL[dtype], float), shape[-1:]))
    elif kind == "special":
        largest, smallest = _ENDS[dtype]
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, largest, -largest, smallest])
        values = np.where(rng.random(shape) < 0.03, rng.choice(odd, shape), values)
    elif kind != "normal":
        raise ValueError(kind)
    return values if dtype == "f64" else values.astype(np.float32).astype(NUMPY[dtype])


def difference(got, expected):
    """The first place where two float arrays differ, in words; empty when all bits agree.

    Any NaN equals any NaN, and nothing else; -0.0 is not +0.0.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"got {got.dtype} {got.shape}, expected {expected.dtype} {expected.shape}"
    got, expected = np.atleast_1d(got), np.atleast_1d(expected)
    if got.dtype.kind == "c":  # pairs of reals
        got, expected = (x[..., None].copy().view(x.real.dtype) for x in (got, expected))
    width = 8 * got.itemsize
    mine, theirs = (np.ascontiguousarray(x).view(f"u{got.itemsize}") for x in (got, expected))
    wrong = (mine != theirs) & ~(np.isnan(got) & np.isnan(expected))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ, first at {list(at)}: "
        f"got {got[at]!r} ({mine[at]:#0{width // 4 + 2}x}), "
        f"expected {expected[at]!r} ({theirs[at]:#0{width // 4 + 2}x})"
    )


def same_bits(got, expected, *, seed=None, spec=None, what=""):
    """Fails, with everything needed to reproduce it, unless all bits are the same."""
    found = difference(got, expected)
    if found:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        raise AssertionError(
            f"{found}\n  {what}\n  seed {seed}, spec {spec or 'as chosen'}"
            f"\n  reproduce: python -m pytest '{test}'"
        )


def sums_and_bound(xp, left, right, chunk, core=None):
    """``left @ right`` in float64, and how far the sums of a contract may be from it.

    ``xp``: numpy or torch, whose float64 arrays are given; ``core``: the tensor cores of tc16,
    None for fma. The bound follows the chain. Let p be the exact partial sum, e the error so far,
    u = 2^-24. An fma rounds p + e to nearest: e grows by u (|p| + e). A step of the tensor cores
    cuts each of its products, and the accumulator, by less than 2^-bits of the largest of them,
    and the sum by less than 2 u of it. Each addition of a chunk's sum rounds once. The errors of
    float64 are 2^-29 of all these, and subnormal sums are left out.
    """
    u, length = 2.0**-24, left.shape[1]
    width = core.terms if core else 1
    total = bound = 0.0 * (left[:, :1] * right[:1])
    for start in range(0, length, chunk):
        end, p, e = min(start + chunk, length), 0.0 * total, 0.0 * total
        for k in range(start, end, width):
            if core is None:
                p = p + left[:, k, None] * right[k]
                e = e + u * (abs(p) + e)
            else:
                step = slice(k, min(k + width, end))
                products = left[:, step, None] * right[step]
                largest = xp.maximum(xp.amax(abs(products), 1), abs(p) + e)
                p = p + products.sum(1)
                e = e + (products.shape[1] + 1) * 2.0**-core.bits * largest
                e = e + 2 * u * (abs(p) + e)
        total, bound = total + p, bound + e
        bound = bound + u * (abs(total) + bound)
    return total, bound
