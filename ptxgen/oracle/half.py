"""Conversions of the 16-bit floating-point formats, as bits in ``uint16`` arrays.

NumPy has no bfloat16, and its float16 arithmetic differs from that of kernels. So both are stored
as bits, converted to f32 (exactly), and rounded from f32 (to nearest, ties to even).
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
    """Number of stored fraction bits of the format."""
    bias: int

    @property
    def exponents(self) -> int:
        """Largest value of the format's exponent field, that of infinities and NaN."""
        return (1 << (15 - self.fraction)) - 1

    @property
    def infinity(self) -> int:
        """Bits of the format's +Inf; larger magnitudes are NaN."""
        return self.exponents << self.fraction


FORMATS = {"bf16": Format("bf16", 7, 127), "f16": Format("f16", 10, 15)}
NAN = 0x7FFF
"""Bits of the NaN that conversions to bf16 and f16 return, as ``cvt`` does."""


def format_of(dtype: str) -> Format:
    """Returns format "bf16" or "f16"; DtypeError for other names."""
    found = FORMATS.get(dtype)
    if found is None:
        raise DtypeError(f"{dtype!r} is not a 16-bit float format; known: {', '.join(FORMATS)}")
    return found


def upcast(bits: NDArray[np.uint16], dtype: str) -> F32:
    """Converts bit patterns of ``dtype`` ("bf16", "f16") to f32, exactly; NaN stays NaN."""
    bits = np.asarray(bits, np.uint16)
    if format_of(dtype).name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return bits.view(np.float16).astype(np.float32)


def downcast(values: ArrayLike, dtype: str) -> U16:
    """Rounds f32 to bit patterns of ``dtype`` ("bf16", "f16") as ``cvt.rn``: to nearest, ties to
    even; overflow gives an infinity, every NaN gives :data:`NAN`.
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
    """Returns bit patterns of ``dtype``: ``uint16`` arrays as they are, floats rounded."""
    array = np.asarray(values)
    if array.dtype == np.uint16:
        return array
    if array.dtype == np.float16 and dtype == "f16":
        return array.view(np.uint16)
    if array.dtype.kind != "f":
        raise DtypeError(f"got {array.dtype}, takes bits (uint16) or floats of {dtype}")
    return downcast(array, dtype)
