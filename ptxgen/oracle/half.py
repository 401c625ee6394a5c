"""The 16-bit floating-point formats, as bits in ``uint16`` arrays.

NumPy has no bfloat16, and its float16 arithmetic is not what kernels do; so both are kept as
bits, brought to f32 (exact), and rounded from f32 (to nearest, ties to even).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.oracle.f32 import F32, as_f32

U16 = NDArray[np.uint16]


@dataclass(frozen=True)
class Format:
    """A binary interchange format of 16 bits: sign, exponent, fraction."""

    name: str
    fraction: int
    """Bits of the stored fraction."""
    bias: int

    @property
    def exponents(self) -> int:
        """The largest exponent field, that of infinities and NaN."""
        return (1 << (15 - self.fraction)) - 1

    @property
    def infinity(self) -> int:
        """The bits of +Inf; larger magnitudes are NaN."""
        return self.exponents << self.fraction


FORMATS = {"bf16": Format("bf16", 7, 127), "f16": Format("f16", 10, 15)}
NAN = 0x7FFF
"""The NaN that conversions give, as ``cvt`` does; in both formats."""


def format_of(dtype: str) -> Format:
    """The format by name."""
    found = FORMATS.get(dtype)
    if found is None:
        raise DtypeError(f"{dtype!r} is not a 16-bit float format; known: {', '.join(FORMATS)}")
    return found


def upcast(bits: NDArray[np.uint16], dtype: str) -> F32:
    """The f32 numbers that ``bits`` stand for, exactly; NaN stay NaN."""
    bits = np.asarray(bits, np.uint16)
    if format_of(dtype).name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return bits.view(np.float16).astype(np.float32)


def downcast(values: ArrayLike, dtype: str) -> U16:
    """f32 numbers rounded to nearest, ties to even, as ``cvt.rn``; overflow is infinite.

    Every NaN becomes :data:`NAN`.
    """
    x = as_f32(values)
    nan = np.isnan(x)
    if format_of(dtype).name == "bf16":
        wide = x.view(np.uint32)
        odd = (wide >> np.uint32(16)) & np.uint32(1)
        bits = ((wide + (np.uint32(0x7FFF) + odd)) >> np.uint32(16)).astype(np.uint16)
    else:
        with np.errstate(all="ignore"):
            bits = x.astype(np.float16).view(np.uint16)
    return np.where(nan, np.uint16(NAN), bits)


def as_bits(values: ArrayLike, dtype: str) -> U16:
    """``values`` as bits of ``dtype``: ``uint16`` arrays are bits already, floats are rounded."""
    array = np.asarray(values)
    if array.dtype == np.uint16:
        return array
    if array.dtype == np.float16 and dtype == "f16":
        return array.view(np.uint16)
    if array.dtype.kind != "f":
        raise DtypeError(f"got {array.dtype}, takes bits (uint16) or floats of {dtype}")
    return downcast(array, dtype)
