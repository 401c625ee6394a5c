"""Quantizes and dequantizes weights, as arrays of NumPy and PyTorch.

All arithmetic is exact, or that of :mod:`ptxgen.numerics.weight_format`: both frameworks return the
same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.dtype import FULL, name_of
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.option import Choice, Integer
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.runtime.arrays import ArrayView, framework_of, view

DTYPES = ("float32", "bfloat16", "float16")
"""Dtypes that weights are quantized from, and dequantized to."""
_LAYOUT = Choice("nk", "kn")


@dataclass(frozen=True, eq=False, init=False)
class QuantizedWeight:
    """A quantized weight ``[n, k]``, stored as :mod:`ptxgen.numerics.weight_format` defines.

    Shapes
        ``shape`` ``(N, K)``, K a multiple of the format's block. ``data`` has ``N · K · bits / 8``
        bytes, ``scales`` and ``offsets`` ``N · K / block`` elements; each is contiguous, flat or
        ``[N, -1]``.
    Dtypes
        ``data`` uint8, the others as the format says; arrays of NumPy or PyTorch. ``format``: a
        name of :data:`ptxgen.quantized.FORMATS`, or a format.
    Errors
        ShapeError, DtypeError and OptionError.
    """

    format: WeightFormat
    data: Any
    scales: Any
    offsets: Any
    n: int
    k: int

    def __init__(
        self,
        format: str | WeightFormat,
        data: Any,
        scales: Any,
        offsets: Any = None,
        *,
        shape: tuple[int, int],
    ) -> None:
        row, (n, k) = format_named(format), _sizes(shape)
        whole_blocks(row, "k", k)
        row.check_arrays(("data", "scales") if offsets is None else ("data", "scales", "offsets"))
        given = {"data": data, "scales": scales} | ({} if offsets is None else {"offsets": offsets})
        for name, size in row.sizes(k).items():
            seen = _seen(name, given[name], (row.dtypes[name],))
            if seen.shape not in ((n * size,), (n, size)):
                raise ShapeError(
                    f"{name} has shape {list(seen.shape)}; takes [{n * size}] or [{n}, {size}] for "
                    f"N = {n} and K = {k}"
                )
            if not seen.contiguous:
                raise ShapeError(
                    f"{name} has strides {list(seen.strides)}; takes a contiguous array"
                )
        known = {"format": row, "data": data, "scales": scales, "offsets": offsets, "n": n, "k": k}
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<{self.format.name} weight [{self.n}, {self.k}] of {framework_of(self.data)}>"

    @cached_property
    def operands(self) -> tuple[Any, Any, Any]:
        """Data, scales, and offsets or None, each reshaped to ``[N, -1]`` for operations."""
        sizes = self.format.sizes(self.k)
        rows = [getattr(self, name).reshape(self.n, size) for name, size in sizes.items()]
        return rows[0], rows[1], rows[2] if len(rows) > 2 else None


def _sizes(shape: Any) -> tuple[int, int]:
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise ShapeError(f"shape is {shape!r}; takes (N, K)")
    n, k = (Integer(0, DIM_MAX, ShapeError).read(*each) for each in zip("nk", shape, strict=True))
    return n, k


def whole_blocks(
    format: WeightFormat, name: str, k: int, shape: Sequence[int] | None = None
) -> None:
    """Raises ShapeError unless K = ``k`` is a multiple of the format's block. ``name``, ``shape``:
    those of the argument, for the message.
    """
    if k < format.block or k % format.block:
        said = f"is {k}" if shape is None else f"has shape {list(shape)}, so K = {k}"
        takes = f"takes a multiple of {format.block}: so many share a scale in {format.name}"
        raise ShapeError(f"{name} {said}; {takes}")


def checked(q: Any) -> QuantizedWeight:
    """Returns ``q`` if it is a :class:`QuantizedWeight`; raises DtypeError for anything else."""
    if not isinstance(q, QuantizedWeight):
        raise DtypeError(
            f"q is a {type(q).__name__}; takes a ptxgen.quantized.QuantizedWeight, as quantize and "
            "from_bitsandbytes of ptxgen.quantized make it"
        )
    return q


def quantize(w: Any, format: str | WeightFormat, layout: str = "nk") -> QuantizedWeight:
    """Quantizes to the nearest ``scale · value``, with ``scale = max(|block|) / max(values)``.

    Shapes
        ``w`` ``[N, K]`` (``layout="nk"``) or ``[K, N]`` (``"kn"``), K a multiple of the format's
        block.
    Dtypes
        ``w``: float32, bfloat16 or float16, a NumPy array or a PyTorch tensor on any device.
        ``format``: one that has the rule ``quantize="absmax"``.
    Order
        No sums. A scale is rounded once to f32, then once to its dtype, where it may be 0.
        Distances to ``scale · value`` are compared in f64, exactly for values of few bits; ties
        take the lower value. In a block of scale 0 every code is that of 0. NaN and Inf make their
        block's scale NaN or Inf.
    Errors
        ShapeError, DtypeError and OptionError.
    Source
        ``ptxgen/ops/quantized_weight.py``.

    >>> import numpy, ptxgen
    >>> q = ptxgen.quantized.quantize(numpy.linspace(-2, 2, 32, dtype="f4")[None], "int8_block")
    >>> q, q.data[-2:]
    (<int8_block weight [1, 32] of numpy>, array([119, 127], dtype=uint8))
    """
    row = format_named(format)
    if row.quantize is None:
        raise OptionError(f"format is {row.name!r}, which nothing is quantized to here")
    _LAYOUT.read("layout", layout)
    seen = _seen("w", w, DTYPES)
    if len(seen.shape) != 2:
        raise ShapeError(f"w has shape {list(seen.shape)}; takes [{', '.join(layout.upper())}]")
    xp = sys.modules[seen.framework]
    rows = (w.detach() if seen.framework == "torch" else w) if layout == "nk" else w.T
    n, k = rows.shape
    whole_blocks(row, "w", k, seen.shape)
    wide = _as(rows, "float32").reshape(-1, row.block)
    scales = xp.abs(wide).max(1) if seen.framework == "numpy" else xp.amax(xp.abs(wide), 1)
    largest = max(row.values)
    whole = scales if largest == 1.0 else scales / largest
    scales = _as(whole, FULL[row.scales])
    if row.scales != "f32" and (lost := xp.isinf(scales) & xp.isfinite(whole)).any():
        raise DtypeError(
            f"w has a block of scale {float(whole[lost].max()):g}, beyond the range of "
            f"{FULL[row.scales]}, which scales of {row.name} are"
        )
    twice, scale = 2 * _as(wide, "float64"), _as(scales, "float64")[:, None]
    order = sorted(range(len(row.values)), key=row.values.__getitem__)
    ascending = [row.values[code] for code in order]
    middles = _table([0.0, *map(sum, pairwise(ascending))], wide, "float64")
    place = xp.zeros_like(wide, dtype=xp.int32)
    with _quiet():
        for bit in reversed(range(row.bits)):
            above = place + (1 << bit)
            place = xp.where(twice > scale * middles[above], above, place)
    zero = order.index(row.values.index(0.0))
    codes = _table(order, wide, "uint8")[xp.where(scale == 0, _table(zero, wide, "int32"), place)]
    return QuantizedWeight(row, _packed(row, codes), scales, shape=(int(n), int(k)))


def dequantize(q: QuantizedWeight, dtype: Any = "float32", layout: str = "nk") -> Any:
    """Dequantizes ``q``: applies the format's ``decoding`` to its codes, scales and offsets.

    Shapes
        The result ``[N, K]``, or with ``layout="kn"`` a view of it as ``[K, N]``.
    Dtypes
        ``dtype``: "float32", "bfloat16" (NumPy needs the package ml_dtypes for it) or "float16".
        The result is of the framework of ``q``, and on its device.
    Order
        No sums: each operation is rounded to f32, the result then once to ``dtype``.
    Errors
        DtypeError and OptionError.
    Source
        ``ptxgen/ops/quantized_weight.py``.
    """
    _LAYOUT.read("layout", layout)
    wanted, row = name_of(dtype, "dtype", DTYPES), checked(q).format
    codes = _table(row.values, q.data, "float32")[_unpacked(row, q.data)]
    beside = (_as(a.reshape(-1, 1), "float32") for a in (q.scales, q.offsets) if a is not None)
    with _quiet():
        wide = row.decode(codes.reshape(-1, row.block), *beside)
    found = _as(wide.reshape(q.n, q.k), wanted)
    return found if layout == "nk" else found.T


def zeros(
    format: WeightFormat, shape: tuple[int, int], on: Mapping[str, Any]
) -> tuple[Any, Any, Any | None]:
    """Returns data, scales and offsets (PyTorch tensors) of a weight of zeros, whose scales and
    offsets are 0. ``on``: keyword arguments of the tensors' constructors, such as ``device``.
    """
    torch, (n, k) = sys.modules["torch"], shape
    sizes = format.sizes(k)
    codes = torch.full((8,), format.zero or 0, dtype=torch.uint8, **on)
    data = _packed(format, codes).repeat(n * k // 8).reshape(n, sizes.pop("data"))
    dtypes = {name: getattr(torch, format.dtypes[name]) for name in sizes}
    beside = [torch.zeros(n, size, dtype=dtypes[name], **on) for name, size in sizes.items()]
    return data, beside[0], beside[1] if len(beside) > 1 else None


# -- codes in bytes ---------------------------------------------------------------------------
def _packed(row: WeightFormat, codes: Any) -> Any:
    """Packs codes into bytes: eight codes to ``bits`` bytes, the first in the lowest bits."""
    eight, found = codes.reshape(-1, 8), []
    for byte in range(row.bits):
        low = 8 * byte
        bits: Any = 0
        for i in range(low // row.bits, -(-(low + 8) // row.bits)):
            shift = row.bits * i - low
            own = _as(eight[:, i], "int32")
            bits = bits | (own << shift if shift >= 0 else own >> -shift)
        found.append(_as(bits & 255, "uint8"))
    return sys.modules[framework_of(codes)].stack(found, 1).reshape(-1)


def _unpacked(row: WeightFormat, data: Any) -> Any:
    """Unpacks the codes from bytes that :func:`_packed` makes."""
    eight, found = _as(data.reshape(-1, row.bits), "int32"), []
    for i in range(8):
        low = row.bits * i
        code: Any = 0
        for byte in range(low // 8, -(-(low + row.bits) // 8)):
            shift = 8 * byte - low
            code = code | (eight[:, byte] << shift if shift >= 0 else eight[:, byte] >> -shift)
        found.append(code & (1 << row.bits) - 1)
    return sys.modules[framework_of(data)].stack(found, 1).reshape(-1)


def _table(values: Any, like: Any, dtype: str) -> Any:
    """Returns ``values`` as an array of the framework, and on the device, of ``like``."""
    if framework_of(like) == "torch":
        torch = sys.modules["torch"]
        return torch.tensor(values, dtype=getattr(torch, dtype), device=like.device)
    import numpy

    return numpy.array(values, dtype)


def _quiet() -> Any:
    """Returns a context in which NumPy, if imported, does not warn about Inf and NaN."""
    numpy = sys.modules.get("numpy")
    return nullcontext() if numpy is None else numpy.errstate(all="ignore")


def _seen(name: str, array: Any, dtypes: tuple[str, ...]) -> ArrayView:
    """Returns a view of an array; DtypeError unless of NumPy or PyTorch, and of these dtypes."""
    if (framework := framework_of(array)) not in ("numpy", "torch"):
        kind = type(array).__name__
        raise DtypeError(f"{name} is a {kind} ({framework}); takes an array of NumPy or PyTorch")
    seen = view(array, name)
    if seen.dtype not in dtypes:
        raise DtypeError(f"{name} has dtype {seen.dtype}; takes {' or '.join(dtypes)}")
    return seen


def _as(array: Any, dtype: str) -> Any:
    """Converts ``array`` to a dtype; each element is rounded once, to nearest."""
    if framework_of(array) == "torch":
        return array.to(getattr(sys.modules["torch"], dtype))
    import numpy

    try:
        with numpy.errstate(over="ignore"):
            return array.astype(dtype)
    except TypeError as error:
        raise DtypeError(f"NumPy knows no dtype {dtype}; import ml_dtypes") from error
