"""Arithmetic on arrays of NumPy or PyTorch: results are of the framework, and on the device, of
the arguments.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

from ptxgen.errors import DtypeError
from ptxgen.runtime.arrays import ArrayView, framework_of, view


def viewed(name: str, array: Any, dtypes: tuple[str, ...]) -> ArrayView:
    """Returns a view of argument ``name``; raises DtypeError unless it is an array of NumPy or
    PyTorch, and of one of these dtypes.
    """
    if (framework := framework_of(array)) not in ("numpy", "torch"):
        kind = type(array).__name__
        raise DtypeError(f"{name} is a {kind} ({framework}); takes an array of NumPy or PyTorch")
    found = view(array, name)
    if found.dtype not in dtypes:
        raise DtypeError(f"{name} has dtype {found.dtype}; takes {' or '.join(dtypes)}")
    return found


def on_host(array: Any) -> bool:
    """Returns whether the values of an array can be read without waiting for a device."""
    torch = sys.modules.get("torch")
    return (
        torch is None
        or not isinstance(array, torch.Tensor)
        or (type(array) is torch.Tensor and array.device.type == "cpu")
    )


def library(array: Any) -> Any:
    """Returns the module ``numpy`` or ``torch``, to which an array belongs."""
    return sys.modules[framework_of(array)]


def as_dtype(array: Any, dtype: str) -> Any:
    """Converts ``array`` to a dtype; each element is rounded once, to nearest."""
    if framework_of(array) == "torch":
        return array.to(getattr(sys.modules["torch"], dtype))
    import numpy

    try:
        with numpy.errstate(over="ignore"):
            return array.astype(dtype)
    except TypeError as error:
        raise DtypeError(f"NumPy knows no dtype {dtype}; import ml_dtypes") from error


def table(values: Any, like: Any, dtype: str) -> Any:
    """Returns ``values`` as an array of the framework, and on the device, of ``like``."""
    if framework_of(like) == "torch":
        torch = sys.modules["torch"]
        return torch.tensor(values, dtype=getattr(torch, dtype), device=like.device)
    import numpy

    return numpy.array(values, dtype)


def repeated(array: Any, times: int, axis: int) -> Any:
    """Returns ``array`` with each element ``times`` times in a row along an axis."""
    if framework_of(array) == "torch":
        return array.repeat_interleave(times, axis)
    return array.repeat(times, axis)


def as_bytes(array: Any) -> Any:
    """Returns the bytes of an array, uint8, rows along the last dimension."""
    if framework_of(array) == "torch":
        return array.contiguous().view(sys.modules["torch"].uint8)
    import numpy

    return numpy.ascontiguousarray(array).view("uint8")


def from_bits(bits: Any, dtype: str) -> Any:
    """Returns the floats of 16 or 32 bits that have these bits, integers of any width."""
    if framework_of(bits) == "torch":
        torch, wide = sys.modules["torch"], getattr(sys.modules["torch"], dtype)
        return bits.to(torch.int16 if wide.itemsize == 2 else torch.int32).view(wide)
    import numpy

    wide = numpy.dtype(dtype)
    return bits.astype(f"uint{8 * wide.itemsize}").view(wide)


def as_bits(array: Any) -> Any:
    """Returns the bits of f32 numbers as int32."""
    return array.view(library(array).int32)


def packed(bits: int, codes: Any) -> Any:
    """Packs codes of ``bits`` bits into bytes, uint8: eight codes to ``bits`` bytes, the first in
    the lowest bits. The number of codes is a multiple of 8.
    """
    eight, found = codes.reshape(-1, 8), []
    for byte in range(bits):
        low = 8 * byte
        value: Any = 0
        for i in range(low // bits, -(-(low + 8) // bits)):
            shift = bits * i - low
            own = as_dtype(eight[:, i], "int32")
            value = value | (own << shift if shift >= 0 else own >> -shift)
        found.append(as_dtype(value & 255, "uint8"))
    return library(codes).stack(found, 1).reshape(-1)


def unpacked(bits: int, data: Any) -> Any:
    """Unpacks codes, int32, from bytes that :func:`packed` makes."""
    eight, found = as_dtype(data.reshape(-1, bits), "int32"), []
    for i in range(8):
        low = bits * i
        code: Any = 0
        for byte in range(low // 8, -(-(low + bits) // 8)):
            shift = 8 * byte - low
            code = code | (eight[:, byte] << shift if shift >= 0 else eight[:, byte] >> -shift)
        found.append(code & (1 << bits) - 1)
    return library(data).stack(found, 1).reshape(-1)


def quiet() -> Any:
    """Returns a context in which NumPy, if imported, does not warn about Inf and NaN."""
    numpy = sys.modules.get("numpy")
    return nullcontext() if numpy is None else numpy.errstate(all="ignore")
