"""Dtypes of operands and results: their full and short names, and their sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ptxgen.errors import DtypeError, described

BYTES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
}
"""Element size in bytes of each dtype that arrays may have, by full name."""
DTYPES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16"}
"""Short names of the floating-point operand dtypes, by full name; specs use the short ones."""
ELEMENTS = {**DTYPES, "int32": "i32", "int64": "i64"}
"""Short names of the numeric dtypes that formulas read and write, by full name."""
SINGLE = ("bfloat16", "float16", "float32")
"""Floating-point dtypes whose results are computed in f32."""
NAMES = {**ELEMENTS, "bool": "bool"}
"""Dtypes in which operations compute: full name to short name."""
FLOAT8 = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
"""Short names of the floats of 8 bits, by full name."""
BYTE_SIZED = {"uint8": "u8", "int8": "i8", **FLOAT8}
"""Short names of the numeric dtypes of 8 bits, by full name."""
COMPLEX = {"complex64": "c64", "complex128": "c128"}
"""Short names of the complex dtypes, by full name."""
PARTS = {"complex64": "float32", "complex128": "float64"}
"""Dtype of the real and of the imaginary part of each complex dtype, by full name."""
WHOLE = {part: whole for whole, part in PARTS.items()}
"""Complex dtype of each dtype of parts, by full name."""
STORABLE = {**NAMES, **BYTE_SIZED, **COMPLEX}
"""All dtypes that formulas read and write, as casts and copies do: full name to short name."""
FULL = {short: full for full, short in STORABLE.items()}
"""Full names of the dtypes of formulas, by their short names."""
ITEMSIZE = {short: BYTES[full] for full, short in STORABLE.items()}
"""Element size in bytes, by short dtype name."""


def joint(one: str, other: str) -> str | None:
    """Returns the dtype to which both dtypes of a product's operands convert exactly: the dtype
    itself if they are equal, float32 for float32 and a 16-bit dtype, else None.
    """
    if one == other:
        return one
    narrow = {one, other} - {"float32"}
    return "float32" if narrow in ({"bfloat16"}, {"float16"}) else None


class Mixed(NamedTuple):
    """Short dtypes of the operands of a product that differ: A's, "f32", and B's, of 16 bits."""

    wide: str
    narrow: str

    def __str__(self) -> str:
        return f"{self.wide}x{self.narrow}"


SHORT = {name: short for long, short in DTYPES.items() for name in (long, short)}
"""Short name of a floating-point dtype, by its short or its full name."""


def name_of(dtype: Any, what: str = "dtype", known: Iterable[str] = DTYPES) -> str:
    """Returns the full name of a dtype, such as ``"float32"``.

    ``dtype``: a full or short name, or a dtype object of NumPy, ml_dtypes, PyTorch, CuPy or JAX
    (``numpy.float32``, ``numpy.dtype("float32")``, ``torch.float32``). Raises DtypeError, in which
    the argument is called ``what``, unless it is one of ``known``.
    """
    text = _text(dtype)
    for long in known:
        if text in (long, STORABLE.get(long)):
            return long
    raise DtypeError(
        f"{what} is {described(dtype)}; takes {', '.join(map(repr, known))}, or the dtype of that "
        "name of NumPy, ml_dtypes, PyTorch, CuPy or JAX"
    )


def _text(dtype: Any) -> str:
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, type):  # numpy.float32, ml_dtypes.bfloat16
        return dtype.__name__.removesuffix("_")  # numpy.bool is called bool_ before NumPy 2
    if type(dtype).__module__.partition(".")[0] == "torch":
        return str(dtype).removeprefix("torch.")
    inner = getattr(dtype, "dtype", dtype)  # jax.numpy.float32 has its numpy.dtype
    return str(inner.name) if getattr(inner, "isnative", False) is True else ""
