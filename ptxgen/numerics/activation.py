"""Constants of the epilogue activations, as f32 values.

They are the one source for the CUDA code (``templates/include/activation.cuh.j2``) and for its
oracle (``oracle/activation.py``), which run the same sequence of IEEE f32 operations.

gelu, gelu_tanh and silu are all ``x`` times a probability ``P(x)`` with ``P(-x) = 1 - P(x)``,
hence ``max(x, 0) - |x| * P(-|x|)``, which is evaluated with one rounding at the end and never
cancels (the second term is at most half of the first). The tail is, for ``y = |x|``:

========= ================================ =====================================
name      ``P(-y)``                        argument of the exponential
========= ================================ =====================================
silu      ``e / (1 + e)``                  ``e = exp(-y)``
gelu_tanh ``e / (1 + e)``                  ``e = exp(-2 sqrt(2/pi) (y + 0.044715 y**3))``
gelu      ``e * T(u) / (y + TAIL_SHIFT)``  ``e = exp(-y**2 / 2)``
========= ================================ =====================================

with the polynomial ``T`` in ``u = y / (y + TAIL_SHIFT) - 1/2``. The exponential is
``2**n * (1 + r + r**2 * EXP(r))`` with ``n`` the integer nearest to ``argument / ln 2``; its
argument is carried as the sum of two f32 numbers, since an error of one ulp in it would
cost tens of ulp of the result where it is large.

``tools/fit_activation.py`` derives EXP and TAIL.
"""

from __future__ import annotations

from ptxgen.numerics.contract import ACTIVATIONS

CODES: dict[str, int] = {name: code for code, name in enumerate(ACTIVATIONS)}
"""Codes of the activations by name: the kernel argument that selects one."""

_hex = float.fromhex

ROUNDER = 1.5 * 2.0**23
"""Addend that rounds a value of magnitude below 2**22 to an integer, in the low bits of the sum."""
ROUNDER_BITS = 0x4B400000

LOG2_E = _hex("0x1.715476p+0")
LN2_HIGH = _hex("0x1.62e430p-1")
LN2_LOW = _hex("-0x1.05c610p-29")

EXP: tuple[float, ...] = (
    _hex("0x1.fffff8p-2"),
    _hex("0x1.55548ep-3"),
    _hex("0x1.555b9ap-5"),
    _hex("0x1.123bf8p-7"),
    _hex("0x1.685028p-10"),
)
"""Ascending coefficients of ``(exp(r) - 1 - r) / r**2``, ``|r| <= 0.347``. exp has a relative error
of 2**-28."""

TAIL_SHIFT = 3.375
TAIL: tuple[float, ...] = (
    _hex("0x1.7b6eep-1"),
    _hex("-0x1.1b21ccp+0"),
    _hex("0x1.2e7702p+0"),
    _hex("-0x1.92fb7cp-1"),
    _hex("0x1.1db916p-3"),
    _hex("0x1.006952p-2"),
    _hex("-0x1.272bfap-3"),
    _hex("-0x1.bdb688p-4"),
    _hex("0x1.44f698p-4"),
    _hex("0x1.1bc212p-4"),
)
"""Ascending coefficients of gelu's tail ``T(u) = (y + TAIL_SHIFT) * exp(y**2 / 2) * P(-y)``,
``u = y / (y + TAIL_SHIFT) - 1/2``, ``0 <= y <= 15``; relative error below 2**-27."""

TANH_LINEAR_HIGH = _hex("0x1.988454p+0")
TANH_LINEAR_LOW = _hex("-0x1.857936p-25")
"""Low part of ``2 * sqrt(2/pi)``; TANH_LINEAR_HIGH is the high part."""
TANH_CUBIC_HIGH = _hex("0x1.2444f2p-4")
TANH_CUBIC_LOW = _hex("0x1.49b16ap-29")
"""Low part of ``2 * sqrt(2/pi) * 0.044715``; TANH_CUBIC_HIGH is the high part."""

LIMIT: dict[str, float] = {"gelu": 15.0, "gelu_tanh": 11.0, "silu": 112.0}
"""Upper bound that ``y = |x|`` is clamped to, by activation. From there on ``y * P(-y)`` is below
2**-150, half of the smallest f32, in exact arithmetic and as computed; so the clamp changes no
result and avoids overflow."""
