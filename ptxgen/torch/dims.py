"""Reductions and softmax with gradients, whose arguments are named as PyTorch's: ``dim`` and
``keepdim``. Bits, dtypes and errors are those of the functions of :mod:`ptxgen` with these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ptxgen.ops import OPERATIONS
from ptxgen.torch.record import function

Dim = int | Sequence[int] | None


def _reduced(name: str, x: torch.Tensor, dim: Dim, keepdim: bool, **how: Any) -> torch.Tensor:
    found: torch.Tensor = function(OPERATIONS[name])(x, dim, keepdims=keepdim, **how)
    return found


def sum(
    x: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out_dtype: Any = None
) -> torch.Tensor:
    """``sum(x)`` over ``dim``: :func:`ptxgen.sum` with a gradient.

    Shapes
        ``x`` any; the result without the dimensions ``dim`` (one or several; None: all), which are
        1 with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.sum`; ``out_dtype`` may ask for float32 of 16 bits.
    Order
        The result's is that of :func:`ptxgen.sum`.
        The gradient is dy, spread.
    Errors
        Those of :func:`ptxgen.sum`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("sum", x, dim, keepdim, out_dtype=out_dtype)


def mean(
    x: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out_dtype: Any = None
) -> torch.Tensor:
    """``sum(x) / n`` over ``dim``: :func:`ptxgen.mean` with a gradient.

    Shapes
        ``x`` any; the result without the dimensions ``dim`` (one or several; None: all), which are
        1 with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.mean`; ``out_dtype`` may ask for float32 of 16 bits.
    Order
        The result's is that of :func:`ptxgen.mean`.
        The gradient is ``dy * (1 / n)``, spread.
    Errors
        Those of :func:`ptxgen.mean`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("mean", x, dim, keepdim, out_dtype=out_dtype)


def prod(
    x: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out_dtype: Any = None
) -> torch.Tensor:
    """``prod(x)`` over ``dim``: :func:`ptxgen.prod` with a gradient.

    Shapes
        ``x`` any; the result without the dimensions ``dim`` (one or several; None: all), which are
        1 with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.prod`; ``out_dtype`` may ask for float32 of 16 bits.
    Order
        The result's is that of :func:`ptxgen.prod`.
        The gradient is right where elements are zero, too.
    Errors
        Those of :func:`ptxgen.prod`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("prod", x, dim, keepdim, out_dtype=out_dtype)


def amax(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
    """``max(x)`` over ``dim``: :func:`ptxgen.amax` with a gradient.

    Shapes
        ``x`` any; the result without the dimensions ``dim`` (one or several; None: all), which are
        1 with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.amax`.
    Order
        The result's is that of :func:`ptxgen.amax`.
        The gradient is shared evenly among equals.
    Errors
        Those of :func:`ptxgen.amax`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("amax", x, dim, keepdim)


def amin(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
    """``min(x)`` over ``dim``: :func:`ptxgen.amin` with a gradient.

    Shapes
        ``x`` any; the result without the dimensions ``dim`` (one or several; None: all), which are
        1 with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.amin`.
    Order
        The result's is that of :func:`ptxgen.amin`.
        The gradient is shared evenly among equals.
    Errors
        Those of :func:`ptxgen.amin`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("amin", x, dim, keepdim)


def argmax(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    """``argmax(x)`` over ``dim``: :func:`ptxgen.argmax`.

    Shapes
        ``x`` any; the result without the dimension ``dim`` (None: of all, flattened), which is 1
        with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.argmax`.
    Order
        The result's is that of :func:`ptxgen.argmax`.
    Errors
        Those of :func:`ptxgen.argmax`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("argmax", x, dim, keepdim)


def argmin(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    """``argmin(x)`` over ``dim``: :func:`ptxgen.argmin`.

    Shapes
        ``x`` any; the result without the dimension ``dim`` (None: of all, flattened), which is 1
        with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.argmin`.
    Order
        The result's is that of :func:`ptxgen.argmin`.
    Errors
        Those of :func:`ptxgen.argmin`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("argmin", x, dim, keepdim)


def var(
    x: torch.Tensor, dim: Dim = None, *, correction: float = 1.0, keepdim: bool = False
) -> torch.Tensor:
    """``sum((x - mean)**2) / max(n - correction, 0)`` over ``dim``: :func:`ptxgen.var` with a
    gradient.

    Shapes
        ``x`` any; the result without the dimensions ``dim`` (one or several; None: all), which are
        1 with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.var`.
    Order
        The result's is that of :func:`ptxgen.var`.
        The gradient is ``(x - mean) * (dy * 2 / max(n - correction, 0))``.
    Errors
        Those of :func:`ptxgen.var`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("var", x, dim, keepdim, correction=correction)


def std(
    x: torch.Tensor, dim: Dim = None, *, correction: float = 1.0, keepdim: bool = False
) -> torch.Tensor:
    """``sqrt(var(x))`` over ``dim``: :func:`ptxgen.std` with a gradient.

    Shapes
        ``x`` any; the result without the dimensions ``dim`` (one or several; None: all), which are
        1 with ``keepdim``.
    Dtypes
        Those of :func:`ptxgen.std`.
    Order
        The result's is that of :func:`ptxgen.std`.
        The gradient is ``(x - mean) * (dy / (y * max(n - correction, 0)))``.
    Errors
        Those of :func:`ptxgen.std`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    return _reduced("std", x, dim, keepdim, correction=correction)


def softmax(x: torch.Tensor, dim: int = -1, *, out_dtype: Any = None) -> torch.Tensor:
    """``exp(x - max) / sum(exp(x - max))`` along ``dim``: :func:`ptxgen.softmax` with a gradient.

    Shapes
        ``x`` any, and so the result.
    Dtypes
        Those of :func:`ptxgen.softmax`; ``out_dtype`` may ask for float32 of 16 bits.
    Order
        The result's is that of :func:`ptxgen.softmax`. The gradient is ``(dy - sum(dy * y)) * y``.
    Errors
        Those of :func:`ptxgen.softmax`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    found: torch.Tensor = function(OPERATIONS["softmax"])(x, dim, out_dtype=out_dtype)
    return found


def log_softmax(x: torch.Tensor, dim: int = -1, *, out_dtype: Any = None) -> torch.Tensor:
    """``log(softmax(x))`` along ``dim``: :func:`ptxgen.log_softmax` with a gradient.

    Shapes
        ``x`` any, and so the result.
    Dtypes
        Those of :func:`ptxgen.log_softmax`; ``out_dtype`` may ask for float32 of 16 bits.
    Order
        The result's is that of :func:`ptxgen.log_softmax`. The gradient is
        ``dy - exp(y) * sum(dy)``.
    Errors
        Those of :func:`ptxgen.log_softmax`.
    Source
        ``ptxgen/torch/dims.py``.
    """
    found: torch.Tensor = function(OPERATIONS["log_softmax"])(x, dim, out_dtype=out_dtype)
    return found
