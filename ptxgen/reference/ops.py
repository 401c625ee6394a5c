"""NumPy oracles of the library operations: the bits that the kernels return.

Arguments and results are those of the library functions of the same names, on NumPy arrays.
Plans and activations come from :mod:`ptxgen.numerics.contract`; the steps of an operation are

    total = chain(a, b, plan.chunk_length(m, n, k))
    result = total [+ bias] [activation] [+ out_old], each one f32 rounding,

and, where the result has 16 bits, one rounding more. The chain is that of the tier's contract:
``fma`` ("simt") brings operands of 16 bits to f32 first, ``tc16`` ("tc") takes none of f32.

bfloat16 arrays are those of the package ml_dtypes, which JAX brings, and results are such arrays.
It is not needed here: the dtype is known by its name, and only its bits are looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.contract import AUTO_TIER, DTYPES, PLANS, TIERS, TensorCore
from ptxgen.numerics.dtype import name_of
from ptxgen.reference.activation import activate, check_activation
from ptxgen.reference.dot16 import tensor_core
from ptxgen.reference.f32 import F32, add
from ptxgen.reference.gemm import chain, chain16
from ptxgen.reference.half import U16, downcast, upcast

LAYOUTS = ("kn", "nk")

Array = NDArray[Any]


def linear(
    x: ArrayLike,
    w: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    layout: str = "kn",
    tier: str = "auto",
    activation: str | None = None,
    out_old: ArrayLike | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``activation(x @ W + bias) [+ out_old]``.

    ``x`` is ``[..., K]``; ``w`` is ``[K, N]`` (layout "kn") or ``[N, K]`` ("nk"); ``bias`` is
    ``[N]``; ``out_old`` and the result are ``[..., N]``. K = 0 gives a product of zeros.

    ``x`` and ``w`` are both float32, bfloat16 or float16, and so is the result, unless
    ``out_dtype`` is "float32"; ``bias`` is float32 or as they are; ``out_old`` is as the result.
    ``tier``: "simt", "tc" (16 bits only) or "auto". ``arch`` names the tensor cores of tier "tc"
    (:data:`ptxgen.numerics.contract.TENSOR_CORES`); "simt" is the same on all.

    Raises :class:`OptionError`, :class:`DtypeError` or :class:`ShapeError`.
    """
    _check_layout(layout)
    activation = check_activation(activation)
    x_array = _operand("x", x, "[..., K]", at_least=1)
    weight = _weight(w, layout)
    kind = _kind({"x": x_array, "w": weight}, tier, arch, out_dtype)
    k, n = weight.shape
    _check_equal("x", x_array, -1, k, f"the K of w (layout {layout!r})")
    total = _product(_rows(x_array), weight, "rows", kind).reshape(*x_array.shape[:-1], n)
    if bias is not None:
        bias_array = _operand("bias", bias, "[N]", exactly=1)
        _check_dtype("bias", bias_array, ("float32", kind.dtype))
        _check_equal("bias", bias_array, 0, n, f"the N of w (layout {layout!r})")
        total = add(total, _wide(bias_array))
    return _finish(activate(activation, total), out_old, kind)


def linear_dgrad(
    dy: ArrayLike,
    w: ArrayLike,
    *,
    layout: str = "kn",
    tier: str = "auto",
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``dx = dy @ W.T``: ``[..., N]`` and the weight as in :func:`linear` to ``[..., K]``."""
    _check_layout(layout)
    dy_array = _operand("dy", dy, "[..., N]", at_least=1)
    weight = _weight(w, layout)
    kind = _kind({"dy": dy_array, "w": weight}, tier, arch, out_dtype)
    k, n = weight.shape
    _check_equal("dy", dy_array, -1, n, f"the N of w (layout {layout!r})")
    dx = _product(_rows(dy_array), weight.T, "rows", kind)
    return _finish(dx.reshape(*dy_array.shape[:-1], k), None, kind)


def linear_wgrad(
    x: ArrayLike,
    dy: ArrayLike,
    *,
    layout: str = "kn",
    tier: str = "auto",
    out_old: ArrayLike | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``dw = x.T @ dy [+ out_old]`` for layout "kn", its transpose for "nk".

    ``x`` is ``[..., K]``, ``dy`` ``[..., N]`` with the same leading dimensions; the result
    and ``out_old`` are ``[K, N]`` ("kn") or ``[N, K]`` ("nk"), float32 unless ``out_dtype`` is the
    operands' dtype.
    """
    _check_layout(layout)
    x_array = _operand("x", x, "[..., K]", at_least=1)
    dy_array = _operand("dy", dy, "[..., N]", at_least=1)
    wanted = "float32" if out_dtype is None else out_dtype
    kind = _kind({"x": x_array, "dy": dy_array}, tier, arch, wanted)
    if x_array.shape[:-1] != dy_array.shape[:-1]:
        raise ShapeError(
            f"dy has shape {list(dy_array.shape)}; expected its leading dimensions to be those "
            f"of x, {list(x_array.shape[:-1])}"
        )
    a, b = _rows(x_array), _rows(dy_array)
    if layout == "nk":
        a, b = b, a
    return _finish(_product(a.T, b, "batch", kind), out_old, kind)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tier: str = "auto",
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``op(a) @ op(b)`` of two matrices, ``op`` a transposition where asked for."""
    left = _operand("a", a, "[K, M]" if transpose_a else "[M, K]", exactly=2)
    right = _operand("b", b, "[N, K]" if transpose_b else "[K, N]", exactly=2)
    kind = _kind({"a": left, "b": right}, tier, arch, out_dtype)
    left = left.T if transpose_a else left
    right = right.T if transpose_b else right
    if left.shape[1] != right.shape[0]:
        raise ShapeError(
            f"a gives K = {left.shape[1]} (transpose_a={transpose_a}), b gives "
            f"K = {right.shape[0]} (transpose_b={transpose_b}); they must be equal"
        )
    return _finish(_product(left, right, "rows", kind), None, kind)


@dataclass(frozen=True)
class _Kind:
    """What is computed of which numbers."""

    operands: np.dtype[Any]
    tier: str
    core: TensorCore | None
    """The tensor cores of tier "tc"."""
    out: np.dtype[Any]

    @property
    def dtype(self) -> str:
        """The operands' dtype, by its full name."""
        return self.operands.name


def _kind(operands: dict[str, Array], tier: str, arch: str, out_dtype: Any) -> _Kind:
    (first, one), (second, other) = operands.items()
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
    outs = {dtype.name: dtype, "float32": np.dtype(np.float32)}
    wanted = dtype.name if out_dtype is None else name_of(out_dtype, "out_dtype")
    if wanted not in outs:
        raise DtypeError(f"out_dtype={wanted!r}: expected None, {' or '.join(map(repr, outs))}")
    core = tensor_core(arch) if tier == "tc" else None
    return _Kind(dtype, tier, core, outs[wanted])


def _product(a: Array, b: Array, plan: str, kind: _Kind) -> F32:
    (m, k), n = a.shape, b.shape[1]
    chunk = PLANS[kind.tier][plan].chunk_length(m, n, k)
    if kind.core is None:
        return chain(_wide(a), _wide(b), chunk)
    return chain16(_bits(a), _bits(b), chunk, DTYPES[kind.dtype], kind.core)


def _finish(result: F32, out_old: ArrayLike | None, kind: _Kind) -> Array:
    """``result [+ out_old]``, rounded to the output's dtype."""
    if out_old is not None:
        old = _operand("out_old", out_old, "that of the result")
        _check_dtype("out_old", old, (kind.out.name,))
        if old.shape != result.shape:
            raise ShapeError(f"out_old has shape {list(old.shape)}; expected {list(result.shape)}")
        result = add(result, _wide(old))
    if kind.out == np.float32:
        return result
    return downcast(result, DTYPES[kind.out.name]).view(kind.out)


def _bits(array: Array) -> U16:
    return array.view(np.uint16)


def _wide(array: Array) -> F32:
    """``array`` in f32, exactly."""
    if array.dtype == np.float32:
        return array
    return upcast(_bits(array), DTYPES[array.dtype.name])


def _check_layout(layout: str) -> None:
    if layout not in LAYOUTS:
        raise OptionError(f"layout={layout!r}: expected one of {list(LAYOUTS)}")


def _check_dtype(name: str, array: Array, expected: tuple[str, ...]) -> None:
    if array.dtype.name not in expected:
        choices = " or ".join(dict.fromkeys(expected))
        raise DtypeError(f"{name} is {array.dtype.name}; expected {choices}")


def _operand(
    name: str, value: ArrayLike, form: str, *, exactly: int | None = None, at_least: int = 0
) -> Array:
    array = np.asarray(value)
    if array.dtype.name not in DTYPES or not array.dtype.isnative:
        raise DtypeError(
            f"{name} is {array.dtype}; expected {', '.join(DTYPES)} "
            f"(use astype, for example of numpy.float32)"
        )
    if array.ndim < at_least or exactly not in (None, array.ndim):
        raise ShapeError(f"{name} has shape {list(array.shape)}; expected {form}")
    return array


def _weight(w: ArrayLike, layout: str) -> Array:
    """The weight as ``[K, N]``."""
    array = _operand("w", w, "[K, N]" if layout == "kn" else "[N, K]", exactly=2)
    return array if layout == "kn" else array.T


def _rows(array: Array) -> Array:
    # Not reshape(-1, …), which cannot tell the number of rows of length zero.
    return array.reshape(prod(array.shape[:-1]), array.shape[-1])


def _check_equal(name: str, array: Array, axis: int, expected: int, source: str) -> None:
    if array.shape[axis] != expected:
        raise ShapeError(
            f"{name} has shape {list(array.shape)}; expected {expected} elements in its last "
            f"dimension, {source}"
        )
