"""Oracle of matrix products of 4-bit integers: contract ``int4/1``, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError
from ptxgen.numerics import int4
from ptxgen.oracle.activation import activate
from ptxgen.oracle.f32 import F32, add, mul

Array = NDArray[Any]


def int4_gemm(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    dtype: str = "s4",
    layout: str = "rcr",
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out_dtype: Any = None,
) -> Array:
    """``activation(alpha * (A . B) + beta * C + bias)``, with the bits of :func:`ptxgen.int4.gemm`,
    whose arguments it takes, as NumPy arrays (A, B, C packed).

    Raises OptionError, DtypeError or ShapeError.
    """
    given = {"a": a, "b": b, "c": c, "bias": bias}
    arrays = {name: np.asarray(x) for name, x in given.items() if x is not None}
    for name, choice, option in (
        ("dtype", dtype, int4.DTYPE),
        ("layout", layout, int4.LAYOUT),
        ("activation", activation, int4.ACTIVATION),
    ):
        option.read(name, choice)
    for name, array in arrays.items():
        accepted = int4.BIASES if name == "bias" else (int4.PACKED,)
        if array.dtype.name not in accepted or not array.dtype.isnative:
            raise DtypeError(f"{name} is {array.dtype.name}; expected {' or '.join(accepted)}")
    epilogue = int4.epilogue(activation, "bias" in arrays)
    wanted = int4.result(dtype, out_dtype, None)
    sizes = int4.GEMM.infer({name: x.shape for name, x in arrays.items()}, layout).sizes
    int4.check_k(dtype, sizes["K"])

    left, right = (int4.unpack(arrays[x], dtype).astype(np.float64) for x in "ab")
    # Sums below 2^53: as exact as in int32.
    sums: NDArray[np.int32] = (left @ (right.T if layout == "rcr" else right)).astype(np.int32)
    if wanted == "int32":
        return sums
    value: F32 = mul(sums.astype(np.float32), single(alpha))
    if "c" in arrays:
        value = add(value, mul(single(beta), int4.unpack(arrays["c"], dtype).astype(np.float32)))
    if "bias" in arrays:
        value = add(value, arrays["bias"].astype(np.float32))
    if epilogue in int4.EPILOGUES[2:]:
        value = activate(epilogue, value)
    if wanted == "float32":
        return value
    packed: Array = int4.pack(quantise(value, dtype))
    return packed


def single(x: float) -> np.float32:
    """Rounds a Python float to f32; overflow gives an infinity."""
    with np.errstate(all="ignore"):
        return np.float32(x)


def quantise(x: F32, dtype: str) -> NDArray[np.int8]:
    """Rounds to integers, half to even, clamped to the range of ``dtype``; NaN gives 0."""
    element = int4.ELEMENTS[dtype]
    return np.clip(np.rint(np.where(np.isnan(x), 0, x)), element.low, element.high).astype(np.int8)
