"""Packing and products of matrices of 4-bit integers.

:func:`pack` and :func:`unpack` take arrays of NumPy, PyTorch or CuPy, and :func:`gemm` any array
that operations accept. :mod:`ptxgen.numerics.int4` has the contract and the format. Importing this
does no work.
"""

from __future__ import annotations

from typing import Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import int4 as numerics
from ptxgen.runtime.arrays import ArrayView, framework_of, view

__all__ = ["gemm", "pack", "unpack"]

_HOMES = {"gemm": "ptxgen.ops.int4:int4_gemm.function"}

__getattr__, __dir__ = lazy.attributes(
    __name__, lambda name: lazy.resolve(_HOMES[name]), lambda: __all__
)


def pack(x: Any, dtype: str = "s4") -> Any:
    """``x[..., 2i] & 15 | x[..., 2i + 1] << 4``: packs two 4-bit integers into a byte.

    Shapes
        ``x`` ``[..., n]``, n even; the result ``[..., n / 2]``.
    Dtypes
        ``x``: any integer dtype, of NumPy, PyTorch or CuPy, with elements in the range of
        ``dtype`` (``"s4"``: -8 .. 7, ``"u4"``: 0 .. 15). The result is uint8.
    Order
        Nothing is computed. On a GPU this synchronises, to check the range of the elements.
    Errors
        DtypeError, ShapeError for an odd n, OptionError for elements out of range.
    Source
        ``ptxgen/int4.py``.
    """
    element = numerics.ELEMENTS[numerics.DTYPE.read("dtype", dtype)]
    seen = _array_view(x)
    if "int" not in seen.dtype:
        raise DtypeError(f"x has dtype {seen.dtype}; takes integers")
    if not seen.shape or seen.shape[-1] % 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes an even number along the last axis")
    if seen.size and not element.low <= int(x.min()) <= int(x.max()) <= element.high:
        raise OptionError(
            f"x has elements from {int(x.min())} to {int(x.max())}; {dtype} takes {element.low} .. "
            f"{element.high}"
        )
    return numerics.pack(x)


def unpack(x: Any, dtype: str = "s4") -> Any:
    """``unpack(pack(x)) == x``: unpacks two 4-bit integers from each byte.

    Shapes
        ``x`` ``[..., n]``; the result ``[..., 2n]``.
    Dtypes
        ``x``: uint8, of NumPy, PyTorch or CuPy; the result int8 (``dtype="s4"``) or uint8
        (``"u4"``).
    Order
        Nothing is computed.
    Errors
        DtypeError, ShapeError for an ``x`` without dimensions, OptionError for another ``dtype``.
    Source
        ``ptxgen/int4.py``.
    """
    numerics.DTYPE.read("dtype", dtype)
    seen = _array_view(x)
    if seen.dtype != numerics.PACKED:
        raise DtypeError(f"x has dtype {seen.dtype}; takes {numerics.PACKED}")
    if not seen.shape:
        raise ShapeError("x has no dimension; takes at least one")
    return numerics.unpack(x, dtype)


def _array_view(x: Any) -> ArrayView:
    """Returns address, shape and dtype of an array of NumPy, PyTorch or CuPy. Raises DtypeError
    for anything else.
    """
    if framework_of(x) not in ("numpy", "torch", "cupy"):
        raise DtypeError(f"x is a {type(x).__qualname__}; takes an array of NumPy, PyTorch or CuPy")
    return view(x, "x")
