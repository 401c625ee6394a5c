"""Oracle of the epilogue activations: the steps of ``templates/include/activation.cuh.j2``.

:mod:`ptxgen.numerics.activation` has the formulas and constants. Largest errors over every f32
argument against float64, in ulp of the result (in units of 2**-149 where that is subnormal),
from ``tests/oracle/test_reference_activation.py``:

=========  ======  =========
name       normal  subnormal
=========  ======  =========
gelu       1.6     1.2
gelu_tanh  1.2     1.0
silu       1.1     1.0
=========  ======  =========

Special values: a NaN gives a NaN in all of them; ``+inf`` gives ``+inf``. ``-inf``, and every
negative argument whose result underflows, gives ``-0.0`` (``relu``: ``+0.0``). gelu, gelu_tanh and
silu keep the sign of a zero; ``relu(-0.0)`` is ``+0.0``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import OptionError
from ptxgen.numerics import activation as constants
from ptxgen.numerics.contract import ACTIVATIONS
from ptxgen.oracle.f32 import BLOCK, F32, add, as_f32, div, fma, mul


def check_activation(name: str | None) -> str:
    """Returns the activation's name, ``"none"`` for None. Raises OptionError for an unknown one."""
    if name is None:
        return "none"
    if name not in ACTIVATIONS:
        raise OptionError(f"activation={name!r}: expected None or one of {list(ACTIVATIONS)}")
    return name


def activate(name: str | None, x: ArrayLike) -> F32:
    """Applies activation ``name`` to each element of ``x`` (f32), with the bits of the kernels."""
    name = check_activation(name)
    values = as_f32(x)
    if name == "none":
        return values
    flat = values.reshape(-1)
    out = np.empty_like(flat)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, BLOCK):
            block = flat[start : start + BLOCK]
            out[start : start + BLOCK] = _relu(block) if name == "relu" else _gate(name, block)
    return out.reshape(values.shape)


def _relu(x: F32) -> F32:
    return np.where(x <= 0, np.float32(0), x)


def _horner(variable: F32, coefficients: Sequence[float]) -> F32:
    result = as_f32(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, variable, coefficient)
    return result


def _power_of_two(n: NDArray[np.int32]) -> F32:
    return ((n + 127).astype(np.uint32) << 23).view(np.float32)


def _gate(name: str, x: F32) -> F32:
    magnitude = np.abs(x)
    limit = np.float32(constants.LIMIT[name])
    y = np.where(magnitude > limit, limit, magnitude)

    argument, argument_low = -y, np.zeros_like(y)
    if name != "silu":
        square = mul(y, y)
        square_low = fma(y, y, -square)
        if name == "gelu":
            argument, argument_low = mul(-0.5, square), mul(-0.5, square_low)
        else:
            linear, cubic = constants.TANH_LINEAR_HIGH, constants.TANH_CUBIC_HIGH
            term = mul(cubic, square)
            slope_low = fma(cubic, square, -term)
            slope_low = fma(cubic, square_low, slope_low)
            slope_low = fma(constants.TANH_CUBIC_LOW, square, slope_low)
            slope_low = add(slope_low, constants.TANH_LINEAR_LOW)
            slope = add(linear, term)
            term_part = add(slope, -linear)
            linear_part = add(slope, -term_part)
            term_error = add(term, -term_part)
            linear_error = add(linear, -linear_part)
            slope_low = add(slope_low, add(term_error, linear_error))
            argument = mul(-y, slope)
            argument_low = fma(-y, slope, -argument)
            argument_low = fma(-y, slope_low, argument_low)

    rounded = fma(argument, constants.LOG2_E, constants.ROUNDER)
    n = rounded.view(np.int32) - np.int32(constants.ROUNDER_BITS)
    quotient = add(rounded, -constants.ROUNDER)
    r = fma(quotient, -constants.LN2_HIGH, argument)
    r = add(r, fma(quotient, -constants.LN2_LOW, argument_low))
    series = _horner(r, constants.EXP)
    series = fma(mul(series, r), r, r)
    power = add(1.0, series)
    power_low = add(series, add(1.0, -power))

    half = n >> 1
    scale_first = _power_of_two(half)
    scale_second = _power_of_two(n - half)

    erf = name == "gelu"
    shift = as_f32(constants.TAIL_SHIFT if erf else 1.0)
    addend = y if erf else mul(mul(power, scale_first), scale_second)
    denominator = add(shift, addend)
    denominator_low = add(addend, add(shift, -denominator))
    reciprocal = div(1.0, denominator)
    correction = fma(-reciprocal, denominator, 1.0)
    correction = fma(-reciprocal, denominator_low, correction)
    numerator, numerator_low = as_f32(1.0), as_f32(0.0)
    if erf:
        ratio = mul(y, reciprocal)
        u = fma(ratio, correction, fma(y, reciprocal, -0.5))
        tail = _horner(u, constants.TAIL[1:])
        constant = constants.TAIL[0]
        numerator = fma(tail, u, constant)
        numerator_low = fma(tail, u, add(constant, -numerator))

    weight = mul(numerator, reciprocal)
    weight_low = fma(numerator, reciprocal, -weight)
    weight_low = fma(numerator_low, reciprocal, weight_low)
    value = mul(weight, power)
    value_low = fma(weight, power, -value)
    value_low = fma(weight, power_low, value_low)
    value_low = fma(value, correction, value_low)
    value_low = fma(weight_low, power, value_low)
    product = fma(y, value, mul(y, value_low))

    positive = np.where(x >= 0, x, np.float32(-0.0))
    return fma(-mul(product, scale_first), scale_second, positive)
