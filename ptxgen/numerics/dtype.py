"""The dtypes of operands and results: their names, in full and as in specs, and their sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptxgen.errors import DtypeError, described

BYTES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
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
"""Bytes of an element of every dtype that an array can have."""
DTYPES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16"}
"""Operand dtypes, and their names in specs."""
ELEMENTS = {**DTYPES, "int32": "i32", "int64": "i64"}
"""Dtypes of numbers that formulas read and write, and their names there."""
SINGLE = ("bfloat16", "float16", "float32")
"""Floating-point dtypes whose results are computed in f32."""
NAMES = {**ELEMENTS, "bool": "bool"}
"""All dtypes of formulas: full name to short name."""
FULL = {short: full for full, short in NAMES.items()}
"""Full names of the dtypes of formulas, by their short names."""
ITEMSIZE = {short: BYTES[full] for full, short in NAMES.items()}
"""Bytes of an element, by the short name."""


def joint(one: str, other: str) -> str | None:
    """The dtype that both operands of a product are converted to, exactly: float32 for 16 bits
    beside float32. None where there is none.
    """
    if one == other:
        return one
    narrow = {one, other} - {"float32"}
    return "float32" if narrow in ({"bfloat16"}, {"float16"}) else None


SHORT = {name: short for long, short in DTYPES.items() for name in (long, short)}
"""Name of a dtype in specs, from its short or full name."""


def name_of(dtype: Any, what: str = "dtype", known: Iterable[str] = DTYPES) -> str:
    """The full name of a dtype, such as ``"float32"``.

    Takes a name, in full or as in specs, and what NumPy, ml_dtypes, PyTorch, CuPy and JAX call a
    dtype (``numpy.float32``, ``numpy.dtype("float32")``, ``torch.float32``). Raises DtypeError for
    everything else that is not ``known``, which calls the argument ``what``.
    """
    text = _text(dtype)
    for long in known:
        if text in (long, NAMES.get(long)):
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
