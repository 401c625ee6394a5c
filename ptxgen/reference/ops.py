"""NumPy oracles of the library operations: the bits that the kernels return.

Arguments and results are those of the library functions of the same names, on NumPy arrays.
Plans and activations come from :mod:`ptxgen.contract`; the steps of an operation are

    total = chain(a, b, plan.chunk_length(m, n, k))
    result = total [+ bias] [activation] [+ out_old], each one f32 rounding.

Operands are f32, so every operation is in the ``fma`` contract ("simt" tier).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.contract import BATCH, ROWS, Plan
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.reference.activation import activate, check_activation
from ptxgen.reference.f32 import F32, add
from ptxgen.reference.gemm import chain

LAYOUTS = ("kn", "nk")
TIERS = ("auto", "simt")

Chain = Callable[[F32, F32, int], F32]


def linear(
    x: ArrayLike,
    w: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    layout: str = "kn",
    tier: str = "auto",
    activation: str | None = None,
    out_old: ArrayLike | None = None,
    arch: str = "sm_90",
) -> F32:
    """``activation(x @ W + bias) [+ out_old]``.

    ``x`` is ``[..., K]``; ``w`` is ``[K, N]`` (layout "kn") or ``[N, K]`` ("nk"); ``bias`` is
    ``[N]``; ``out_old`` and the result are ``[..., N]``. All f32. K = 0 gives a product of zeros.

    Raises :class:`OptionError`, :class:`DtypeError` or :class:`ShapeError`.
    """
    reduce = _reduction(tier, arch)
    _check_layout(layout)
    activation = check_activation(activation)
    x_array = _operand("x", x, "[..., K]", at_least=1)
    weight = _weight(w, layout)
    k, n = weight.shape
    _check_equal("x", x_array, -1, k, f"the K of w (layout {layout!r})")
    rows = _rows(x_array)
    total = _product(rows, weight, ROWS, reduce).reshape(*x_array.shape[:-1], n)
    if bias is not None:
        bias_array = _operand("bias", bias, "[N]", exactly=1)
        _check_equal("bias", bias_array, 0, n, f"the N of w (layout {layout!r})")
        total = add(total, bias_array)
    return _accumulate(activate(activation, total), out_old)


def linear_dgrad(
    dy: ArrayLike,
    w: ArrayLike,
    *,
    layout: str = "kn",
    tier: str = "auto",
    arch: str = "sm_90",
) -> F32:
    """``dx = dy @ W.T``: ``[..., N]`` and the weight as in :func:`linear` to ``[..., K]``."""
    reduce = _reduction(tier, arch)
    _check_layout(layout)
    dy_array = _operand("dy", dy, "[..., N]", at_least=1)
    weight = _weight(w, layout)
    k, n = weight.shape
    _check_equal("dy", dy_array, -1, n, f"the N of w (layout {layout!r})")
    dx = _product(_rows(dy_array), weight.T, ROWS, reduce)
    return dx.reshape(*dy_array.shape[:-1], k)


def linear_wgrad(
    x: ArrayLike,
    dy: ArrayLike,
    *,
    layout: str = "kn",
    tier: str = "auto",
    out_old: ArrayLike | None = None,
    arch: str = "sm_90",
) -> F32:
    """``dw = x.T @ dy [+ out_old]`` for layout "kn", its transpose for "nk".

    ``x`` is ``[..., K]``, ``dy`` ``[..., N]`` with the same leading dimensions; the result
    and ``out_old`` are ``[K, N]`` ("kn") or ``[N, K]`` ("nk").
    """
    reduce = _reduction(tier, arch)
    _check_layout(layout)
    x_array = _operand("x", x, "[..., K]", at_least=1)
    dy_array = _operand("dy", dy, "[..., N]", at_least=1)
    if x_array.shape[:-1] != dy_array.shape[:-1]:
        raise ShapeError(
            f"dy has shape {list(dy_array.shape)}; expected its leading dimensions to be those "
            f"of x, {list(x_array.shape[:-1])}"
        )
    a, b = _rows(x_array), _rows(dy_array)
    if layout == "nk":
        a, b = b, a
    return _accumulate(_product(a.T, b, BATCH, reduce), out_old)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tier: str = "auto",
    arch: str = "sm_90",
) -> F32:
    """``op(a) @ op(b)`` of two matrices, ``op`` a transposition where asked for."""
    reduce = _reduction(tier, arch)
    left = _operand("a", a, "[K, M]" if transpose_a else "[M, K]", exactly=2)
    right = _operand("b", b, "[N, K]" if transpose_b else "[K, N]", exactly=2)
    left = left.T if transpose_a else left
    right = right.T if transpose_b else right
    if left.shape[1] != right.shape[0]:
        raise ShapeError(
            f"a gives K = {left.shape[1]} (transpose_a={transpose_a}), b gives "
            f"K = {right.shape[0]} (transpose_b={transpose_b}); they must be equal"
        )
    return _product(left, right, ROWS, reduce)


def _product(a: F32, b: F32, plan: Plan, reduce: Chain) -> F32:
    (m, k), n = a.shape, b.shape[1]
    return reduce(a, b, plan.chunk_length(m, n, k))


def _accumulate(result: F32, out_old: ArrayLike | None) -> F32:
    if out_old is None:
        return result
    old = _operand("out_old", out_old, "that of the result")
    if old.shape != result.shape:
        raise ShapeError(f"out_old has shape {list(old.shape)}; expected {list(result.shape)}")
    return add(result, old)


def _reduction(tier: str, arch: str) -> Chain:
    """The arithmetic of a tier; the ``fma`` contract is the same on every architecture."""
    if tier not in TIERS:
        raise OptionError(f"tier={tier!r}: expected one of {list(TIERS)} for float32 operands")
    if not re.fullmatch(r"sm_\d+[af]?", arch):
        raise OptionError(f"arch={arch!r}: expected a name such as 'sm_90'")
    return chain


def _check_layout(layout: str) -> None:
    if layout not in LAYOUTS:
        raise OptionError(f"layout={layout!r}: expected one of {list(LAYOUTS)}")


def _operand(
    name: str, value: ArrayLike, form: str, *, exactly: int | None = None, at_least: int = 0
) -> F32:
    array: NDArray[np.generic] = np.asarray(value)
    if array.dtype != np.float32:
        raise DtypeError(f"{name} is {array.dtype}; expected float32 (use astype(numpy.float32))")
    if array.ndim < at_least or exactly not in (None, array.ndim):
        raise ShapeError(f"{name} has shape {list(array.shape)}; expected {form}")
    return array.astype(np.float32, copy=False)


def _weight(w: ArrayLike, layout: str) -> F32:
    """The weight as ``[K, N]``."""
    array = _operand("w", w, "[K, N]" if layout == "kn" else "[N, K]", exactly=2)
    return array if layout == "kn" else array.T


def _rows(array: F32) -> F32:
    # Not reshape(-1, …), which cannot tell the number of rows of length zero.
    return array.reshape(prod(array.shape[:-1]), array.shape[-1])


def _check_equal(name: str, array: F32, axis: int, expected: int, source: str) -> None:
    if array.shape[axis] != expected:
        raise ShapeError(
            f"{name} has shape {list(array.shape)}; expected {expected} elements in its last "
            f"dimension, {source}"
        )
