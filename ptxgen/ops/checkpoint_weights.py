"""Converts quantized weights of checkpoints, exactly: AWQ, GPTQ, compressed-tensors, FP8.

Each function takes a layer's tensors as the checkpoint has them, and returns a
:class:`~ptxgen.ops.quantized_weight.QuantizedWeight` with the same codes, scales and zero points.
"""

from __future__ import annotations

from typing import Any

from ptxgen.errors import OptionError, ShapeError, described
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formats import FORMATS, format_named, variant
from ptxgen.numerics.option import Choice, Integer
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.numerics.weight_format import UNIT, WeightFormat
from ptxgen.ops.numpy_or_torch import (
    as_bytes,
    as_dtype,
    library,
    packed,
    quiet,
    repeated,
    table,
    unpacked,
    viewed,
)
from ptxgen.ops.quantized_weight import QuantizedWeight, whole_blocks

_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""Nibble of a word that holds each of eight columns in AWQ's checkpoints (version gemm)."""
_WORD = 32
_BLOCKS = (128, 64, 32, 16, 8)
"""Blocks that scales of longer stretches are repeated for, the preferred first."""


def from_awq(qweight: Any, qzeros: Any, scales: Any) -> QuantizedWeight:
    """Converts a weight of an AWQ checkpoint (version gemm, 4 bits): ``(code - zero) · scale``.

    Shapes
        ``qweight`` ``[K, N / 8]``, ``qzeros`` ``[K / group, N / 8]``, ``scales``
        ``[K / group, N]``; the group is a multiple of 8. The result ``[N, K]``.
    Dtypes
        ``qweight``, ``qzeros`` int32; ``scales`` float16, bfloat16 or float32; arrays of NumPy or
        PyTorch. The format is ``int4_zero_point``, or the variant with the checkpoint's group.
    Order
        No sums.
    Errors
        ShapeError and DtypeError.
    Source
        ``ptxgen/ops/checkpoint_weights.py``.
    """
    k, words = _matrix("qweight", qweight)
    groups, n = _matrix("scales", scales, _NUMBERS)
    _takes("qweight", (k, words), (k, n // 8))
    _takes("qzeros", _matrix("qzeros", qzeros), (groups, n // 8))
    codes = _awq(qweight)
    zeros = _awq(qzeros)
    return _with_zeros(codes.T, scales.T, zeros.T, 4)


def from_gptq(
    qweight: Any,
    qzeros: Any,
    scales: Any,
    g_idx: Any = None,
    *,
    bits: int = 4,
    version: str = "gptq",
) -> QuantizedWeight:
    """Converts a weight of a GPTQ checkpoint: ``(code - zero) · scale``.

    Shapes
        ``qweight`` ``[K · bits / 32, N]``, ``qzeros`` ``[K / group, N · bits / 32]``, ``scales``
        ``[K / group, N]``, ``g_idx`` ``[K]``: the group of each k. The group is a multiple of 8.
        The result ``[N, K]``, whose k's keep their order.
    Dtypes
        ``qweight``, ``qzeros``, ``g_idx`` integers of 32 bits; ``scales`` float16, bfloat16 or
        float32; arrays of NumPy or PyTorch. ``bits``: 2, 3, 4 or 8. ``version``: "gptq", whose
        zero points are stored less 1, modulo 2^bits, or "gptq_v2", whose zero points are not.
        The format is ``int4_zero_point`` or one of other bits, with ``_ordered`` (4 and 8 bits)
        where ``g_idx`` is another than ``k // group``.
    Order
        No sums.
    Errors
        ShapeError, OptionError, and IndexRangeError for ``g_idx`` out of range.
    Source
        ``ptxgen/ops/checkpoint_weights.py``.
    """
    _check_bits(bits, 2, 3, 4, 8)
    Choice("gptq", "gptq_v2").read("version", version)
    rows, n = _matrix("qweight", qweight)
    groups, columns = _matrix("scales", scales, _NUMBERS)
    k = rows * _WORD // bits
    _takes("qweight", (rows, n), (k * bits // _WORD, columns))
    _takes("qzeros", _matrix("qzeros", qzeros), (groups, -(-n * bits // _WORD)))
    codes = _split(qweight.T, bits)[:, :k]
    zeros = _split(qzeros, bits)[:, :n]
    if version == "gptq":
        zeros = zeros + 1 & (1 << bits) - 1
    order = None
    if g_idx is not None:
        seen = viewed("g_idx", g_idx, ("int32", "int64"))
        if seen.shape != (k,):
            raise ShapeError(f"g_idx has shape {list(seen.shape)}; takes [{k}]")
        plain = repeated(table(list(range(groups)), g_idx, "int64"), k // max(groups, 1), 0)
        in_order = plain.shape == seen.shape and bool((g_idx == plain).all())
        order = None if in_order else as_dtype(g_idx, "int32")
    return _with_zeros(codes, scales.T, zeros.T, bits, order)


def from_compressed_tensors(
    weight_packed: Any,
    weight_scale: Any,
    weight_zero_point: Any = None,
    *,
    shape: tuple[int, int],
    bits: int = 4,
) -> QuantizedWeight:
    """Converts a weight of a compressed-tensors checkpoint of format ``pack-quantized``.

    Shapes
        ``shape`` ``(N, K)``; ``weight_packed`` ``[N, K · bits / 32]``; ``weight_scale``
        ``[N, K / group]``, ``[N, 1]`` for a group of a whole row; ``weight_zero_point``
        ``[N · bits / 32, K / group]``. The group is a multiple of 8.
    Dtypes
        ``weight_packed``, ``weight_zero_point`` int32; ``weight_scale`` float16, bfloat16 or
        float32; arrays of NumPy or PyTorch. ``bits``: 4 or 8. The format is ``int4_block`` or
        ``int8_block``, with zero points ``int4_zero_point`` or ``int8_zero_point``, each as the
        variant with the checkpoint's group and dtype.
    Order
        No sums.
    Errors
        ShapeError, DtypeError and OptionError.
    Source
        ``ptxgen/ops/checkpoint_weights.py``.
    """
    _check_bits(bits, 4, 8)
    n, k = (Integer(1, DIM_MAX, ShapeError).read(*each) for each in zip("nk", shape, strict=True))
    found = _matrix("weight_packed", weight_packed)
    _takes("weight_packed", found, (n, -(-k * bits // _WORD)))
    rows, groups = _matrix("weight_scale", weight_scale, _NUMBERS)
    if rows != n:
        raise ShapeError(f"weight_scale has {rows} rows; takes {n}")
    codes = _split(weight_packed, bits)[:, :k]
    if weight_zero_point is not None:
        given = _matrix("weight_zero_point", weight_zero_point)
        _takes("weight_zero_point", given, (-(-n * bits // _WORD), groups))
        zeros = _split(weight_zero_point.T, bits)[:, :n].T
        return _with_zeros(codes, weight_scale, zeros, bits)
    row = format_named(f"int{bits}_block")
    signed = codes ^ 1 << bits - 1  # stored in excess of 2^(bits - 1)
    return _blocked(row, signed, weight_scale, None, k)


def from_fp8(weight: Any, scale: Any, *, block: tuple[int, int] = (128, 128)) -> QuantizedWeight:
    """Converts a weight of 8-bit floats and its scales: ``code · scale``.

    Shapes
        ``weight`` ``[N, K]``. ``scale``: one number for the tensor (no or one element), ``[N]`` or
        ``[N, 1]`` for rows, or ``[N / block[0], K / block[1]]``, rounded up, for blocks, whose last
        ones may be cut. The result ``[N, K]``; K a multiple of 8.
    Dtypes
        ``weight`` float8_e4m3fn or float8_e5m2, of PyTorch or ml_dtypes; ``scale`` float32,
        bfloat16 or float16, which become float32. The format is ``fp8_e4m3`` or ``fp8_e5m2``, or a
        variant whose block divides K.
    Order
        No sums.
    Errors
        ShapeError and DtypeError.
    Source
        ``ptxgen/ops/checkpoint_weights.py``.
    """
    seen = viewed("weight", weight, tuple(_FP8))
    if len(seen.shape) != 2:
        raise ShapeError(f"weight has shape {list(seen.shape)}; takes [N, K]")
    (n, k), (high, wide) = seen.shape, block
    shape = viewed("scale", scale, _NUMBERS).shape
    number = as_dtype(scale, "float32")
    if shape in ((), (1,), (1, 1)):
        spread = repeated(repeated(number.reshape(1, 1), n, 0), 1, 1)
        wide = k
    elif shape in ((n,), (n, 1)):
        spread, wide = number.reshape(n, 1), k
    else:
        _takes("scale", shape, (-(-n // high), -(-k // wide)))
        spread = repeated(number, high, 0)[:n]
    row = format_named(_FP8[seen.dtype])
    fits = (b for b in _BLOCKS if k % b == 0 and (wide % b == 0 or wide >= k))
    size = next(fits, 0)
    if not size or not k:
        raise ShapeError(f"weight has shape {list(seen.shape)}, so K = {k}; takes a multiple of 8")
    scales = repeated(spread, max(wide // size, 1), 1)[:, : k // size]
    return QuantizedWeight(variant(row, size), as_bytes(weight), scales.reshape(-1), shape=(n, k))


def from_nvfp4(weight_packed: Any, weight_scale: Any, weight_global_scale: Any) -> QuantizedWeight:
    """Converts a weight of a compressed-tensors checkpoint of format ``nvfp4-pack-quantized``:
    ``code · (scale / global scale)``.

    Shapes
        ``weight_packed`` ``[N, K / 2]``, of two codes a byte, the first in the low half;
        ``weight_scale`` ``[N, K / 16]``; ``weight_global_scale`` of one element. The result
        ``[N, K]``.
    Dtypes
        ``weight_packed`` uint8, ``weight_scale`` float8_e4m3fn (of PyTorch or ml_dtypes),
        ``weight_global_scale`` float32. The format is ``fp4_e2m1``.
    Order
        No sums. The scale of a block is the quotient, divided here and rounded once to f32, as
        compressed-tensors divides.
    Errors
        ShapeError and DtypeError.
    Source
        ``ptxgen/ops/checkpoint_weights.py``.
    """
    row = format_named("fp4_e2m1")
    n, half = _matrix("weight_packed", weight_packed, ("uint8",))
    k = 2 * half
    whole_blocks(row, "weight_packed", k, (n, half))
    found = _matrix("weight_scale", weight_scale, ("float8_e4m3fn",))
    _takes("weight_scale", found, (n, k // row.block))
    if (shape := viewed("weight_global_scale", weight_global_scale, ("float32",)).shape) != ():
        _takes("weight_global_scale", shape, (1,))
    with quiet():
        scales = as_dtype(weight_scale, "float32") / weight_global_scale.reshape(1)
    return QuantizedWeight(row, as_bytes(weight_packed), scales, shape=(n, k))


_NUMBERS = ("float32", "bfloat16", "float16")
_FP8 = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}


def _check_bits(bits: Any, *takes: int) -> None:
    if isinstance(bits, bool) or bits not in takes:
        raise OptionError(f"bits is {described(bits)}; takes {', '.join(map(str, takes))}")


def _matrix(name: str, array: Any, dtypes: tuple[str, ...] = ("int32",)) -> tuple[int, int]:
    """Returns the shape of a matrix of one of these dtypes; raises DtypeError or ShapeError."""
    shape = viewed(name, array, dtypes).shape
    if len(shape) != 2:
        raise ShapeError(f"{name} has shape {list(shape)}; takes a matrix")
    return shape[0], shape[1]


def _takes(name: str, shape: tuple[int, ...], takes: tuple[int, ...]) -> None:
    if shape != takes:
        raise ShapeError(f"{name} has shape {list(shape)}; takes {list(takes)}")


def _split(words: Any, bits: int) -> Any:
    """Returns the fields of ``bits`` bits in rows of int32 words, from the lowest bits of the first
    word on, int32 ``[rows, -1]``. Fields may cross words; the row is filled with zeros to whole
    groups of eight.
    """
    bytes, rows = as_bytes(words), words.shape[0]
    if rest := -bytes.shape[1] % bits:
        zeros = table([[0] * rest] * rows, words, "uint8")
        xp = library(words)
        bytes = xp.concatenate((bytes, zeros), 1)
    return unpacked(bits, bytes).reshape(rows, bytes.shape[1] * 8 // bits)


def _awq(words: Any) -> Any:
    """Returns the codes of 4 bits in words of AWQ's order, ``[rows, 8 · words]``."""
    rows, count = words.shape
    eight = _split(words, 4).reshape(rows, count, 8)
    return eight[:, :, table(list(_AWQ_ORDER), words, "int64")].reshape(rows, 8 * count)


def _with_zeros(
    codes: Any, scales: Any, zeros: Any, bits: int, groups: Any = None
) -> QuantizedWeight:
    """Returns a weight of codes ``[N, K]``, and scales and zero points ``[N, K / group]``.
    ``groups``: the group of each k, if they are in another order; raises OptionError for bits that
    have no format with groups.
    """
    ordered = "" if groups is None else "_ordered"
    if f"int{bits}_zero_point{ordered}" not in FORMATS:
        raise OptionError(f"bits is {bits}; with groups in another order (g_idx) takes 4, 8")
    row = FORMATS[f"int{bits}_zero_point{ordered}"]
    return _blocked(row, codes, scales, zeros, codes.shape[1], groups)


def _blocked(
    row: WeightFormat, codes: Any, scales: Any, zeros: Any, k: int, groups: Any = None
) -> QuantizedWeight:
    """Returns a weight of the variant of ``row`` that has the blocks and the dtype of ``scales``.
    A block of the whole row is cut to the largest block up to 128 that divides K.
    """
    n, count = scales.shape
    block = k // max(count, 1)
    if not count or block * count != k or block < UNIT or block % UNIT:
        raise ShapeError(
            f"scales are of {count} groups for K = {k}; takes groups of a multiple of {UNIT}"
        )
    if count == 1 and groups is None and block > 128:
        block = next(each for each in _BLOCKS if k % each == 0)
    short = DTYPES[viewed("scales", scales, _NUMBERS).dtype]
    arrays = {"data": packed(row.bits, codes), "groups": groups}
    for name, array, dtype in ("scales", scales, None), ("offsets", zeros, "uint8"):
        if array is not None:
            whole = repeated(array, k // block // count, 1)
            arrays[name] = (whole if dtype is None else as_dtype(whole, dtype)).reshape(-1)
    return QuantizedWeight(variant(row, block, short), **arrays, shape=(n, k))
