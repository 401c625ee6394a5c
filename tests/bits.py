"""Comparing bits, and saying how to see a difference again."""

from __future__ import annotations

import os

import numpy as np

KINDS = ("normal", "wide", "cancelling", "subnormal", "special")
"""Distributions of :func:`operand`."""


def operand(rng, shape, kind="normal"):
    """A random f32 array of one of :data:`KINDS`, meant for both factors of a product.

    "wide": magnitudes 2^-40 .. 2^40, so that most of a sum is rounded away. "cancelling":
    ±(1 + tiny), so that sums nearly vanish. "subnormal": products and sums around 2^-149.
    "special": normal, with zeros of both signs, infinities, NaN and the largest numbers.
    """
    values = rng.standard_normal(shape)
    if kind == "wide":
        values = values * np.exp2(rng.integers(-40, 41, shape).astype(np.float64))
    elif kind == "cancelling":
        values = rng.choice([-1.0, 1.0], shape) * (1 + values * 2.0**-20)
    elif kind == "subnormal":
        values = values * np.exp2(rng.choice([-140.0, -74.0, -10.0, 0.0], shape))
    elif kind == "special":
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45])
        values = np.where(rng.random(shape) < 0.03, rng.choice(odd, shape), values)
    elif kind != "normal":
        raise ValueError(kind)
    return values.astype(np.float32)


def difference(got, expected):
    """The first place where two f32 arrays differ, in words; empty when all bits agree.

    Any NaN equals any NaN, and nothing else; -0.0 is not +0.0.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"got {got.dtype} {got.shape}, expected {expected.dtype} {expected.shape}"
    mine, theirs = (np.ascontiguousarray(x).view(np.uint32) for x in (got, expected))
    wrong = (mine != theirs) & ~(np.isnan(got) & np.isnan(expected))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ, first at {list(at)}: "
        f"got {got[at]!r} ({mine[at]:#010x}), expected {expected[at]!r} ({theirs[at]:#010x})"
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
