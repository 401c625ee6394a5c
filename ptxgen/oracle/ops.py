"""NumPy oracles of the matrix products, with the bits of the kernels.

Arguments and results are those of the library functions of the same names, on NumPy arrays.
Plans and activations come from :mod:`ptxgen.numerics.contract`; the steps of an operation are

    total = chain(a, b, plan.chunk_length(k))
    result = total [+ bias] [activation] [+ out_old], each one f32 rounding,

and, where the result has 16 bits, one rounding more. The chain is that of the tier's contract:
``fma`` ("simt") converts 16-bit operands to f32 first, ``fma64`` (f64, "simt") computes in f64, and
``tc16`` ("tc") takes 16-bit operands only.

bfloat16 arrays and results have the dtype of the package ml_dtypes. It is not imported here: the
dtype is recognized by its name, and only its bits are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.contract import (
    AUTO_TIER,
    CONTRACTS,
    DEFAULT_PLAN,
    PLANS,
    TIERS,
    Contract,
    TensorCore,
)
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, joint, name_of
from ptxgen.numerics.gemm import DGRAD, LINEAR, MATMUL, WGRAD
from ptxgen.numerics.signature import Signature
from ptxgen.oracle.activation import activate, check_activation
from ptxgen.oracle.dot16 import tensor_core
from ptxgen.oracle.f32 import add
from ptxgen.oracle.gemm import chain, chain16, chain64
from ptxgen.oracle.half import U16, downcast, upcast

Array = NDArray[Any]


def linear(
    x: ArrayLike,
    w: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    layout: str,
    tier: str = "auto",
    activation: str | None = None,
    out_old: ArrayLike | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``activation(x @ W + bias) [+ out_old]``.

    ``x`` is ``[..., K]``; ``w`` is ``[K, N]`` (layout "kn") or ``[N, K]`` ("nk"); ``bias`` is
    ``[N]``; ``out_old`` and the result are ``[..., N]``. K = 0 gives a product of zeros.

    ``x`` and ``w`` are both float32, float64, bfloat16 or float16, and so is the result, unless
    ``out_dtype`` is "float32" for 16 bits. ``bias`` has their dtype, or is float32 for 16 bits;
    ``out_old`` has that of the result.
    ``tier``: "simt", "tc" (16 bits only) or "auto". ``arch`` names the tensor cores of tier "tc"
    (:data:`ptxgen.numerics.contract.TENSOR_CORES`); "simt" is the same on all.

    Raises :class:`OptionError`, :class:`DtypeError` or :class:`ShapeError`.
    """
    activation = check_activation(activation)
    given, shape, kind = _read(
        LINEAR, {"x": x, "w": w, "bias": bias}, layout, tier, arch, out_dtype
    )
    if activation != "none" and not kind.contract.activations:
        raise OptionError(f"activation={activation!r}: {kind.contract} has none")
    weight = given["w"] if layout == "kn" else given["w"].T
    total = _product(rows(given["x"]), weight, kind).reshape(shape)
    if "bias" in given:
        total = _add(total, _wide(given["bias"]))
    return _finish(activate(activation, total) if activation != "none" else total, out_old, kind)


def linear_dgrad(
    dy: ArrayLike,
    w: ArrayLike,
    *,
    layout: str,
    tier: str = "auto",
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``dx = dy @ W.T``: ``dy`` ``[..., N]`` and a weight as in :func:`linear` to ``[..., K]``."""
    given, shape, kind = _read(DGRAD, {"dy": dy, "w": w}, layout, tier, arch, out_dtype)
    weight = given["w"].T if layout == "kn" else given["w"]
    return _finish(_product(rows(given["dy"]), weight, kind).reshape(shape), None, kind)


def linear_wgrad(
    x: ArrayLike,
    dy: ArrayLike,
    *,
    layout: str,
    tier: str = "auto",
    chain: bool = False,
    out_old: ArrayLike | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``dw = x.T @ dy [+ out_old]`` for layout "kn", its transpose for "nk".

    ``x`` is ``[..., K]``, ``dy`` ``[..., N]`` with the same leading dimensions; the result and
    ``out_old`` are ``[K, N]`` ("kn") or ``[N, K]`` ("nk"), float32 (float64 for float64) unless
    ``out_dtype`` is the operands' dtype. ``chain``: whether the sum is one chain, which starts from
    ``out_old`` instead of adding it at the end.
    """
    given, shape, kind = _read(WGRAD, {"x": x, "dy": dy}, layout, tier, arch, out_dtype, wide=True)
    a, b = rows(given["x"]), rows(given["dy"])
    if layout == "nk":
        a, b = b, a
    if not chain:
        return _finish(_product(a.T, b, kind), out_old, kind)
    begin = None if out_old is None else _wide(_old(out_old, shape, kind))
    return _finish(_product(a.T, b, kind, "chain", begin), None, kind)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tier: str = "auto",
    activation: str | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``activation(op(a) @ op(b) + bias)``, where ``op`` transposes the last two dimensions if
    ``transpose_a`` or ``transpose_b``: ``[..., M, K]`` and ``[..., K, N]``, with leading dimensions
    that broadcast; ``bias`` is ``[N]``.
    """
    activation = check_activation(activation)
    layout = "nt"[bool(transpose_a)] + "nt"[bool(transpose_b)]
    operands = {"a": a, "b": b, "bias": bias}
    given, shape, kind = _read(MATMUL, operands, layout, tier, arch, out_dtype)
    if activation != "none" and not kind.contract.activations:
        raise OptionError(f"activation={activation!r}: {kind.contract} has none")
    left = given["a"].swapaxes(-1, -2) if transpose_a else given["a"]
    right = given["b"].swapaxes(-1, -2) if transpose_b else given["b"]
    batch = shape[:-2]
    left = np.broadcast_to(left, batch + left.shape[-2:])
    right = np.broadcast_to(right, batch + right.shape[-2:])
    total = np.empty(shape, np.float64 if kind.contract.accumulator == "f64" else np.float32)
    for each in np.ndindex(*batch):
        total[each] = _product(left[each], right[each], kind)
    if "bias" in given:
        total = _add(total, _wide(given["bias"]))
    return _finish(activate(activation, total) if activation != "none" else total, None, kind)


@dataclass(frozen=True)
class _Kind:
    """Dtypes of operands and result, contract, and tensor-core model of a matrix product."""

    operands: np.dtype[Any]
    contract: Contract
    core: TensorCore | None
    """Model of the tensor cores in tier "tc", None in other tiers."""
    out: np.dtype[Any]


def _read(
    signature: Signature,
    arrays: Mapping[str, ArrayLike | None],
    layout: str,
    tier: str,
    arch: str,
    out_dtype: Any,
    *,
    wide: bool = False,
) -> tuple[dict[str, Array], tuple[int, ...], _Kind]:
    """Checks the arguments of a product; returns its ``arrays`` by name (without None), the shape
    of the result, and the kind of product.

    ``wide``: whether the result by default has the accumulator's dtype.
    """
    given = {name: _operand(name, v) for name, v in arrays.items() if v is not None}
    one, other, *_ = (v.dtype.name for v in given.values())
    if one != other and tier != "tc" and joint(one, other):
        given = {name: _wide(v) for name, v in given.items()}
    kind = _kind(given, tier, arch, out_dtype, wide)
    inferred = signature.infer({name: v.shape for name, v in given.items()}, layout)
    return given, inferred.results[0], kind


def _kind(operands: Mapping[str, Array], tier: str, arch: str, out_dtype: Any, wide: bool) -> _Kind:
    (first, one), (second, other), *_ = operands.items()
    dtype = one.dtype
    if other.dtype != dtype:
        raise DtypeError(f"{second} is {other.dtype.name}; expected {dtype.name}, as {first}")
    short = DTYPES[dtype.name]
    served = [name for name, dtypes in TIERS.items() if short in dtypes]
    if tier != "auto" and tier not in served:
        raise OptionError(
            f"tier={tier!r}: expected one of {['auto', *served]} for {dtype.name} operands"
        )
    if not re.fullmatch(r"sm_\d+[af]?", arch):
        raise OptionError(f"arch={arch!r}: expected a name such as 'sm_90'")
    tier = AUTO_TIER[short] if tier == "auto" else tier
    outs = {dtype.name: dtype}
    if ITEMSIZE[short] == 2:
        outs["float32"] = np.dtype(np.float32)
    wanted = None if out_dtype is None else name_of(out_dtype, "out_dtype")
    if wanted is not None and wanted not in outs:
        raise DtypeError(f"out_dtype={wanted!r}: expected None, {' or '.join(map(repr, outs))}")
    if "bias" in operands:
        _check_dtype("bias", operands["bias"], tuple(outs))
    core = tensor_core(arch) if tier == "tc" else None
    out = outs[wanted or (list(outs)[-1] if wide else dtype.name)]
    return _Kind(dtype, CONTRACTS[tier][short], core, out)


def _product(
    a: Array, b: Array, kind: _Kind, plan: str = DEFAULT_PLAN, begin: Array | None = None
) -> Array:
    chunk = PLANS[kind.contract.name][plan].chunk_length(a.shape[1])
    if kind.core is not None:
        return chain16(_bits(a), _bits(b), chunk, DTYPES[kind.operands.name], kind.core, begin)
    if kind.contract.accumulator == "f64":
        return chain64(a, b, chunk, begin)
    return chain(_wide(a), _wide(b), chunk, begin)


def _add(a: Array, b: Array) -> Array:
    if a.dtype == np.float64:
        with np.errstate(all="ignore"):
            return np.asarray(a + b)
    return add(a, b)


def _finish(result: Array, out_old: ArrayLike | None, kind: _Kind) -> Array:
    """Computes ``result [+ out_old]``, rounded to the product's output dtype."""
    if out_old is not None:
        result = _add(result, _wide(_old(out_old, result.shape, kind)))
    if kind.out.itemsize > 2:
        return result
    return downcast(result, DTYPES[kind.out.name]).view(kind.out)


def _old(out_old: ArrayLike, shape: tuple[int, ...], kind: _Kind) -> Array:
    """Returns ``out_old`` as an array; raises an error if dtype or shape are not the result's."""
    old = _operand("out_old", out_old)
    _check_dtype("out_old", old, (kind.out.name,))
    if old.shape != shape:
        raise ShapeError(f"out_old has shape {list(old.shape)}; expected {list(shape)}")
    return old


def _bits(array: Array) -> U16:
    return array.view(np.uint16)


def _wide(array: Array) -> Array:
    """Converts 16-bit floats to f32, exactly; returns f32 and f64 arrays as they are."""
    if array.dtype.itemsize > 2:
        return array
    return upcast(_bits(array), DTYPES[array.dtype.name])


def _check_dtype(name: str, array: Array, expected: tuple[str, ...]) -> None:
    if array.dtype.name not in expected:
        choices = " or ".join(dict.fromkeys(expected))
        raise DtypeError(f"{name} is {array.dtype.name}; expected {choices}")


def _operand(name: str, value: ArrayLike) -> Array:
    array = np.asarray(value)
    if array.dtype.name not in DTYPES or not array.dtype.isnative:
        raise DtypeError(
            f"{name} is {array.dtype}; expected {', '.join(DTYPES)} "
            f"(use astype, for example of numpy.float32)"
        )
    return array


def rows(array: Array) -> Array:
    """Reshapes to a matrix, with all leading dimensions flattened into one."""
    # Not reshape(-1, …), which cannot tell the number of rows of length zero.
    return array.reshape(prod(array.shape[:-1]), array.shape[-1])
