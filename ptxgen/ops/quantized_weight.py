"""Quantizes, dequantizes and unpacks weights, as arrays of NumPy and PyTorch.

All arithmetic is exact, or that of :mod:`ptxgen.numerics.weight_format`: both frameworks return the
same bits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError, described
from ptxgen.numerics.dtype import FULL, name_of
from ptxgen.numerics.formats import FORMATS, format_named, prepared
from ptxgen.numerics.formats.gguf import PACKINGS
from ptxgen.numerics.option import Choice, Integer
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.numerics.weight_format import ARRAYS, E8M0, SCALE_VALUES, WeightFormat
from ptxgen.numerics.weight_packing import Packing
from ptxgen.ops.numpy_or_torch import (
    as_bits,
    as_dtype,
    from_bits,
    library,
    on_host,
    packed,
    quiet,
    repeated,
    table,
    unpacked,
    viewed,
)
from ptxgen.runtime.arrays import framework_of

DTYPES = ("float32", "bfloat16", "float16")
"""Dtypes that weights are quantized from, and dequantized to."""
_LAYOUT = Choice("nk", "kn")


@dataclass(frozen=True, eq=False, init=False)
class QuantizedWeight:
    """A quantized weight ``[n, k]``, stored as :mod:`ptxgen.numerics.weight_format` defines.

    Shapes
        ``shape`` ``(N, K)``, K a multiple of the format's block. ``data`` has ``N · K · bits / 8``
        bytes, ``scales`` and ``offsets`` ``N · K / block`` elements, ``outer`` one or two for each
        outer block; each is contiguous, flat or ``[N, -1]``. ``groups`` ``[K]``, of values below
        ``K / block``.
    Dtypes
        ``data`` uint8, ``groups`` int32, the others as the format says; arrays of NumPy or PyTorch.
        ``format``: a name of :data:`ptxgen.quantized.FORMATS`, or a format.
    Errors
        ShapeError, DtypeError, OptionError, and IndexRangeError for groups in host memory that are
        out of range; on a GPU such groups stand for the last one.
    """

    format: WeightFormat
    data: Any
    scales: Any
    offsets: Any
    outer: Any
    groups: Any
    n: int
    k: int

    def __init__(
        self,
        format: str | WeightFormat,
        data: Any,
        scales: Any,
        offsets: Any = None,
        outer: Any = None,
        groups: Any = None,
        *,
        shape: tuple[int, int],
    ) -> None:
        row, (n, k) = format_named(format), _sizes(shape)
        whole_blocks(row, "k", k)
        arrays = dict(zip(ARRAYS, (data, scales, offsets, outer, groups), strict=True))
        row.check_arrays([name for name, array in arrays.items() if array is not None])
        shapes = {name: ((n * size,), (n, size)) for name, size in row.sizes(k).items()}
        for name, dtype in row.dtypes.items():
            seen, taken = viewed(name, arrays[name], (dtype,)), shapes.get(name, ((k,),))
            if seen.shape not in taken:
                takes = " or ".join(str(list(each)) for each in taken)
                raise ShapeError(
                    f"{name} has shape {list(seen.shape)}; takes {takes} for N = {n} and K = {k}"
                )
            if not seen.contiguous:
                raise ShapeError(
                    f"{name} has strides {list(seen.strides)}; takes a contiguous array"
                )
        if row.grouped and on_host(groups):
            _check_groups(groups, k // row.block)
        known = {"format": row, **arrays, "n": n, "k": k}
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<{self.format.name} weight [{self.n}, {self.k}] of {framework_of(self.data)}>"

    @cached_property
    def operands(self) -> tuple[Any, ...]:
        """Arrays of the weight in the order of :data:`ARRAYS`, None for those that the format has
        not; those with rows as ``[N, -1]``, for operations.
        """
        sizes = self.format.sizes(self.k)
        arrays = {name: getattr(self, name) for name in self.format.dtypes}
        rows = {name: arrays[name].reshape(self.n, size) for name, size in sizes.items()}
        return tuple(rows.get(name, arrays.get(name)) for name in ARRAYS)

    def prepared(self) -> QuantizedWeight:
        """Returns an equal weight, element for element, that products read as it is stored: of 4
        or 8 bits, with one scale (and offset) for each 32, 64 or 128 elements, in f32 if the format
        has outer ones. The weight itself if there is no such format, or it has it.
        """
        own, row = self.format, prepared(self.format)
        if row is None or row == own:
            return self
        names = {array: name for array, (*_, (name,)) in row.beside.items()}
        if own.outer:
            items = _items(self)
        else:
            items = {
                each: getattr(self, array).reshape(self.n, -1) for array, each in names.items()
            }
        found = {"data": self.data}
        for array, name in names.items():
            each = items[name]
            if f"outer_{name}" in items:
                outer = repeated(items[f"outer_{name}"], own.outer_block // own.block, 1)
                with quiet():
                    each = outer * each
            found[array] = repeated(each, own.block // row.block, 1)
        return QuantizedWeight(row, **found, shape=(self.n, self.k))


def _check_groups(groups: Any, blocks: int) -> None:
    low, high = int(groups.min()), int(groups.max())
    if low < 0 or high >= blocks:
        raise IndexRangeError(
            f"groups has an index {low if low < 0 else high}; takes 0 .. {blocks - 1}"
        )


def _sizes(shape: Any) -> tuple[int, int]:
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise ShapeError(f"shape is {shape!r}; takes (N, K)")
    n, k = (Integer(0, DIM_MAX, ShapeError).read(*each) for each in zip("nk", shape, strict=True))
    return n, k


def whole_blocks(
    format: WeightFormat, name: str, k: int, shape: Sequence[int] | None = None
) -> None:
    """Raises ShapeError unless K = ``k`` is a multiple of the format's block, or outer block.
    ``name``, ``shape``: those of the argument, for the message.
    """
    if k < format.unit or k % format.unit:
        said = f"is {k}" if shape is None else f"has shape {list(shape)}, so K = {k}"
        takes = f"takes a multiple of {format.unit}: so many share a scale in {format.name}"
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
    """Quantizes to the nearest ``scale · value``, or ``scale · value + offset``.

    The format's rule (:attr:`ptxgen.quantized.WeightFormat.quantize`) gives a block's scale:
    "absmax" ``max(|block|) / max(values)``; "minmax" ``(max(block) - min(block)) / max(values)``
    with the offset ``min(block)``; "mx" ``2^(e(max(|block|)) - e(max(values)))``, where e(x) is the
    exponent of x.

    Shapes
        ``w`` ``[N, K]`` (``layout="nk"``) or ``[K, N]`` (``"kn"``), K a multiple of the format's
        block.
    Dtypes
        ``w``: float32, bfloat16 or float16, a NumPy array or a PyTorch tensor on any device.
        ``format``: one that has a rule.
    Order
        No sums. A scale is rounded once to f32, then once to its dtype, where it may be 0; the
        range of "minmax" is rounded before. Distances to ``scale · value`` are compared in f64,
        exactly for values of few bits; ties take the lower value, of floats the one with an even
        code. In a block of scale 0 every code is that of 0. NaN and Inf make their block's scale
        NaN or Inf.
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
    seen = viewed("w", w, DTYPES)
    if len(seen.shape) != 2:
        raise ShapeError(f"w has shape {list(seen.shape)}; takes [{', '.join(layout.upper())}]")
    xp = library(w)
    rows = (w.detach() if seen.framework == "torch" else w) if layout == "nk" else w.T
    n, k = rows.shape
    whole_blocks(row, "w", k, seen.shape)
    wide = as_dtype(rows, "float32").reshape(-1, row.block)
    ascending = _ascending(row)
    with quiet():
        scales, scale, offsets, offset = _scales(row, wide)
        twice = 2 * (as_dtype(wide, "float64") - offset)
        values = [row.values[code] for code in ascending]
        count = 1 << row.bits
        between = [0.0, *map(sum, pairwise(values))]
        middles = table(between + [math.inf] * (count - len(between)), wide, "float64")
        even = [code % 2 == 0 and row.encoding in _FLOATS for code in ascending]
        taken = table(even + [False] * (count - len(even)), wide, "bool")
        place = xp.zeros_like(wide, dtype=xp.int32)
        for bit in reversed(range(row.bits)):
            above = place + (1 << bit)
            middle = scale * middles[above]
            place = xp.where((twice > middle) | ((twice == middle) & taken[above]), above, place)
    zero = table(values.index(0.0), wide, "int32")
    codes = table(ascending, wide, "uint8")[xp.where(scale == 0, zero, place)]
    return QuantizedWeight(row, packed(row.bits, codes), scales, offsets, shape=(int(n), int(k)))


_FLOATS = ("e2m1", "e4m3", "e5m2")


def _ascending(row: WeightFormat) -> list[int]:
    """Returns the codes of a format's finite values, each value once, by ascending value."""
    first: dict[float, int] = {}
    for code, value in enumerate(row.values):
        if math.isfinite(value):
            first.setdefault(value, code)
    return [first[value] for value in sorted(first)]


def _scales(row: WeightFormat, wide: Any) -> tuple[Any, Any, Any, Any]:
    """Returns the scales of blocks ``wide`` as they are stored and as f64 columns, then the offsets
    likewise (None and 0 for a rule without).
    """
    xp = library(wide)
    least, most = (wide.min(1), wide.max(1)) if xp.__name__ == "numpy" else xp.aminmax(wide, dim=1)
    size = xp.maximum(xp.abs(least), xp.abs(most))
    largest = max(v for v in row.values if math.isfinite(v))
    if row.quantize == "mx":
        bits = as_bits(size) >> 23  # exponents of f32, whose bias is that of E8M0
        code = xp.clip(bits - (math.frexp(largest)[1] - 1), 0, 254)
        stored = as_dtype(xp.where(bits == 255, 255, code), "uint8")
        return stored, table(E8M0, wide, "float64")[as_dtype(stored, "int32")][:, None], None, 0.0
    offsets = least if row.quantize == "minmax" else None
    whole = (size if offsets is None else most - least) / largest
    found: list[Any] = []
    for name, numbers, dtype in ("scale", whole, row.scales), ("offset", offsets, row.offsets):
        if numbers is None or dtype is None:
            found += [None, 0.0]
            continue
        stored = as_dtype(numbers, FULL[dtype])
        if dtype != "f32" and (lost := xp.isinf(stored) & xp.isfinite(numbers)).any():
            raise DtypeError(
                f"w has a block of {name} {float(numbers[lost].max()):g}, beyond the range of "
                f"{FULL[dtype]}, which {name}s of {row.name} are"
            )
        found += [stored, as_dtype(stored, "float64")[:, None]]
    return found[0], found[1], found[2], found[3]


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
    code = table(row.values, q.data, "float32")[unpacked(row.bits, q.data)].reshape(q.n, q.k)
    each = _items(q)
    for array, (_, block, names) in row.beside.items():
        grouped = q.groups is not None and array != "outer"
        for name in names:
            if grouped:
                each[name] = each[name][:, as_dtype(q.groups, "int64")]
            else:
                each[name] = repeated(each[name], block, 1)
    with quiet():
        wide = row.decode(code, **each)
    found = as_dtype(wide.reshape(q.n, q.k), wanted)
    return found if layout == "nk" else found.T


def _items(q: QuantizedWeight) -> dict[str, Any]:
    """Returns the scales and offsets of each block, f32 ``[N, blocks]``, by their names in the
    format's ``decoding``.
    """
    found: dict[str, Any] = {}
    for array, (dtype, block, names) in q.format.beside.items():
        stored, values = getattr(q, array), SCALE_VALUES.get(dtype)
        if values is None:
            numbers = as_dtype(stored, "float32")
        else:
            numbers = table(values, stored, "float32")[as_dtype(stored, "int32")]
        numbers = numbers.reshape(q.n, q.k // block, len(names))
        found |= {name: numbers[:, :, i] for i, name in enumerate(names)}
    return found


def zeros(
    format: WeightFormat, shape: tuple[int, int], on: Mapping[str, Any]
) -> tuple[Any | None, ...]:
    """Returns the arrays (PyTorch tensors, in the order of :data:`ARRAYS`) of a weight of zeros,
    whose scales, offsets and groups are 0. ``on``: keyword arguments of the tensors' constructors,
    such as ``device``.
    """
    torch, (n, k) = sys.modules["torch"], shape
    sizes = format.sizes(k)
    codes = torch.full((8,), format.zero or 0, dtype=torch.uint8, **on)
    found = {"data": packed(format.bits, codes).repeat(n * k // 8).reshape(n, sizes["data"])}
    for name, dtype in format.dtypes.items():
        if name not in found:
            each = (n, sizes[name]) if name in sizes else (k,)
            found[name] = torch.zeros(each, dtype=getattr(torch, dtype), **on)
    return tuple(found.get(name) for name in ARRAYS)


# -- files ------------------------------------------------------------------------------------
def from_gguf(data: Any, type: str, shape: tuple[int, int]) -> QuantizedWeight:
    """Unpacks a weight of a GGUF file, ``scale · code`` and the like, with its codes and scales.

    Shapes
        ``shape`` ``(N, K)``, as of ``nn.Linear``: the reverse of the file's. ``data``: the bytes of
        the tensor, of any shape; K a multiple of 32, for K-quants and IQ4_XS of 256.
    Dtypes
        ``data`` uint8, an array of NumPy or PyTorch. ``type``: the name of the type, such as
        "Q4_K", in either case.
    Order
        ``w = decoding(code, scale, …)`` of the format of that name, no sums: it dequantizes to the
        numbers of ggml, bit for bit.
    Errors
        OptionError for a type without a format, ShapeError for another number of bytes, DtypeError.
    Source
        ``ptxgen/ops/quantized_weight.py``, ``ptxgen/numerics/formats/gguf.py``.
    """
    name = type.lower() if isinstance(type, str) else type
    if name not in PACKINGS:
        takes = ", ".join(repr(each.upper()) for each in PACKINGS)
        raise OptionError(f"type is {described(type)}; takes {takes}")
    packing, row, (n, k) = PACKINGS[name], FORMATS[name], _sizes(shape)
    whole_blocks(row, "k", k)
    seen = viewed("data", data, ("uint8",))
    size = n * k // packing.elements * packing.nbytes
    if math.prod(seen.shape) != size:
        raise ShapeError(
            f"data has {math.prod(seen.shape)} bytes; {type} takes {size} for N = {n} and K = {k}"
        )
    blocks = data.reshape(-1, packing.nbytes)
    found = {array: _unpack(packing, blocks, array) for array in packing.arrays}
    arrays: dict[str, Any] = {"data": packed(row.bits, as_dtype(found.pop("data"), "uint8"))}
    for array, items in found.items():
        dtype = row.dtypes[array]
        arrays[array] = (
            from_bits(items, "float16") if dtype == "float16" else as_dtype(items, dtype)
        ).reshape(-1)
    return QuantizedWeight(row, *(arrays.get(name) for name in ARRAYS), shape=(n, k))


def _unpack(packing: Packing, blocks: Any, name: str) -> Any:
    """Returns the items of an array in blocks of bytes, int32 ``[blocks, items]``."""
    found: Any = 0
    for field in packing.arrays[name]:
        bytes = blocks[:, table(field.bytes, blocks, "int64")]
        shifted = as_dtype(bytes, "int32") >> table(field.shifts, blocks, "int32")
        found = found | (shifted & (1 << field.width) - 1) << field.to
    return found - packing.less.get(name, 0)
