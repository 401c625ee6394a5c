"""Constants of the functions of :mod:`ptxgen.numerics.functions`, for f32 and for f64.

Those for f32 are fitted by ``tools/fit_activation.py``, and shared with the epilogue activations.
For f64, ``tail`` interpolates at 25 Chebyshev points (in 50 digits), and ``exp`` is the Taylor
series.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ptxgen.numerics import activation

_hex = float.fromhex


@dataclass(frozen=True)
class Constants:
    """Constants of the functions of one floating-point type. A pair is a high and a low part.

    ``mantissa_bits``: stored bits of the mantissa; ``bias``: bias of the exponent field.
    ``exponent_shift``: added to exponents of small results so that powers of two stay normal; a
    last factor ``2**-exponent_shift`` removes it. ``rounder``: added to a small value, rounds it to
    an integer, in the low bits of the sum. ``log2_e``, ``ln2``: log2(e) and log(2), whose high part
    is short, so that its products with exponents are exact. ``exp``: ascending coefficients of
    ``(exp(r) - 1 - r) / r**2``, |r| <= 0.347. ``exp_range``: arguments between which exp is neither
    0 nor inf. ``expm1_least``: expm1 is -1 for this and all lower arguments. ``tail``: ascending
    coefficients of ``(y + s) * exp(y**2 / 2) * P(-y)`` in ``y / (y + s) - 1/2``, s being
    ``tail_shift`` and P the normal distribution function. ``linear``, ``cubic``: ``2 sqrt(2/pi)``,
    and that times 0.044715. ``limit``: for each activation ``x * P(x)``, the least y at which
    ``y * P(-y)`` is taken as 0. ``log_split_bits``: bits of the least ``1 + t`` in logarithms of
    ``x = 2**n * (1 + t)``.
    """

    mantissa_bits: int
    bias: int
    exponent_shift: int
    rounder: float
    log2_e: tuple[float, float]
    ln2: tuple[float, float]
    exp: tuple[float, ...]
    exp_range: tuple[float, float]
    expm1_least: float
    tail_shift: float
    tail: tuple[float, ...]
    linear: tuple[float, float]
    cubic: tuple[float, float]
    limit: Mapping[str, float]
    log_split_bits: int


F32 = Constants(
    mantissa_bits=23,
    bias=127,
    exponent_shift=96,
    rounder=activation.ROUNDER,
    log2_e=(activation.LOG2_E, _hex("0x1.4ae0c0p-26")),
    ln2=(activation.LN2_HIGH, activation.LN2_LOW),
    exp=activation.EXP,
    exp_range=(-104.0, 89.0),
    expm1_least=-18.0,
    tail_shift=activation.TAIL_SHIFT,
    tail=activation.TAIL,
    linear=(activation.TANH_LINEAR_HIGH, activation.TANH_LINEAR_LOW),
    cubic=(activation.TANH_CUBIC_HIGH, activation.TANH_CUBIC_LOW),
    limit=activation.LIMIT,
    log_split_bits=0x3F400000,  # 0.75
)

F64 = Constants(
    mantissa_bits=52,
    bias=1023,
    exponent_shift=800,
    rounder=1.5 * 2.0**52,
    log2_e=(_hex("0x1.71547652b82fep+0"), _hex("0x1.777d0ffda0d24p-56")),
    ln2=(_hex("0x1.62e42fefa3800p-1"), _hex("0x1.ef35793c76730p-45")),
    exp=tuple(1 / math.factorial(i + 2) for i in range(12)),
    exp_range=(-746.0, 710.0),
    expm1_least=-40.0,
    tail_shift=3.5,
    tail=(
        # to 2**-55.4
        _hex("0x1.7d241a953a614p-1"),
        _hex("-0x1.2191517fa27b7p+0"),
        _hex("0x1.42fec3680aca7p+0"),
        _hex("-0x1.db5837f7f58b1p-1"),
        _hex("0x1.1d35bdee179b9p-2"),
        _hex("0x1.a86cec76df6c7p-3"),
        _hex("-0x1.a200796b08a8cp-3"),
        _hex("-0x1.d2a1418046e6ap-5"),
        _hex("0x1.f3cfab064760ap-4"),
        _hex("0x1.1928715eb4b8fp-5"),
        _hex("-0x1.3d066fb77b594p-4"),
        _hex("-0x1.3b3af128f5f9fp-5"),
        _hex("0x1.82198407de085p-5"),
        _hex("0x1.7b5c56cd26146p-5"),
        _hex("-0x1.38b5542c6c434p-6"),
        _hex("-0x1.8dad4e272aa70p-5"),
        _hex("-0x1.34c834427e52bp-7"),
        _hex("0x1.3fd2fb3069bb8p-5"),
        _hex("0x1.0cd78c9a5468cp-5"),
        _hex("-0x1.1ed4741aeb742p-6"),
        _hex("-0x1.451f9a0d8ad6bp-5"),
        _hex("-0x1.1ed01f73e1b19p-8"),
        _hex("0x1.92dc82b650ff7p-6"),
        _hex("0x1.269af7e3aacc5p-7"),
        _hex("-0x1.14abfcb6bb314p-8"),
    ),
    linear=(_hex("0x1.9884533d43651p+0"), _hex("-0x1.cbc0d30ebfd15p-54")),
    cubic=(_hex("0x1.2444f2a4d8b4bp-4"), _hex("-0x1.6c843a29d1c70p-61")),
    limit={"gelu": 39.0, "gelu_tanh": 22.0, "silu": 760.0},
    log_split_bits=0x3FE6A09E667F3BCD,  # sqrt(1/2)
)
CONSTANTS: Mapping[str, Constants] = {"f32": F32, "f64": F64}
