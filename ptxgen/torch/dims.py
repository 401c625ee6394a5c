"""Reductions and softmax with gradients, and PyTorch's argument names ``dim`` and ``keepdim``.
Bits, dtypes and errors are those of the functions of :mod:`ptxgen` with these names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ptxgen.ops.reductions import RowFunction
from ptxgen.program.operation import Op
from ptxgen.torch.record import function

Dim = int | Sequence[int] | None
Made = Callable[..., torch.Tensor]


def named(op: Op) -> Callable[..., Any]:
    """Returns operation ``op`` with gradients; a reduction or softmax takes ``dim`` and
    ``keepdim``.
    """
    called = function(op)
    if not isinstance(op, RowFunction):
        return called
    if op.row.form == "along":
        made = _along(called)
    elif op.row.numbers:
        made = _spread(called)
    else:
        made = _chosen(called) if op.row.chooses else _reduced(called)
    made.__name__, made.__qualname__, made.__module__ = op.name, op.name, "ptxgen.torch"
    made.__signature__, made.__doc__ = op.as_torch  # type: ignore[attr-defined]
    return made


def _along(called: Made) -> Made:
    def along(
        x: torch.Tensor,
        dim: int = -1,
        *,
        lengths: torch.Tensor | None = None,
        check: bool = False,
        out_dtype: Any = None,
    ) -> torch.Tensor:
        return called(x, dim, lengths=lengths, check=check, out_dtype=out_dtype)

    return along


def _chosen(called: Made) -> Made:
    """Returns reduction ``called``, whose result dtype can be chosen, with PyTorch's arguments:
    ``dim``, ``keepdim`` and ``out_dtype``.
    """

    def reduced(
        x: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out_dtype: Any = None
    ) -> torch.Tensor:
        return called(x, dim, keepdims=keepdim, out_dtype=out_dtype)

    return reduced


def _reduced(called: Made) -> Made:
    def reduced(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
        return called(x, dim, keepdims=keepdim)

    return reduced


def _spread(called: Made) -> Made:
    """Returns ``called``, a variance or standard deviation, with PyTorch's arguments: ``dim``,
    ``correction``, ``keepdim`` and ``out_dtype``.
    """

    def spread(
        x: torch.Tensor,
        dim: Dim = None,
        *,
        correction: float = 1.0,
        keepdim: bool = False,
        out_dtype: Any = None,
    ) -> torch.Tensor:
        return called(x, dim, correction=correction, keepdims=keepdim, out_dtype=out_dtype)

    return spread
