"""``batch_invariant``: ATen's matrix products inside a block, served by ptxgen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import ptxgen.ops as ops
from ptxgen.errors import ShapeError
from ptxgen.torch.functional import (
    NAMES,
    PLAIN,
    added,
    check_batches,
    compute_matmul,
    matrix,
    wide,
)
from ptxgen.torch.module import _checked

DEVICES = {"cuda"}
"""The devices whose tensors are served."""


class batch_invariant(TorchDispatchMode):  # noqa: N801 - used as a statement: with batch_invariant():
    """Inside the block, matrix products of CUDA tensors are computed by ptxgen.

    Served are ``mm``, ``addmm``, ``bmm``, ``baddbmm``, ``mv`` and ``addmv`` of float64, float32,
    bfloat16 and float16, with their ``out=`` forms, and so what PyTorch makes of them: ``matmul``,
    ``@``, ``linear``, ``einsum``, ``nn.Linear``, and their backward passes inside the block.
    Everything else goes on as before. ``served`` counts the products by name.

    A row of a result depends on that row of the left matrix and on the right matrix (and what is
    added to it), whatever else is in the batch:

    - ``mm`` is :func:`ptxgen.matmul`; ``bmm`` is that of a batch; ``mv`` is ``mm`` with one
      column.
    - ``addmm``, ``baddbmm`` and ``addmv`` are ``alpha · product + beta · input`` in f32 (of float64
      in f64), one rounding for each step that is there (none for a factor of 1, or beta = 0), then
      one rounding to the dtype.

    Only the thread that enters is concerned, and the threads in which autograd runs the backward
    passes that it starts. Blocks nest: the innermost counts. An exception leaves them as usual.
    """

    def __init__(self, *, tier: str = "auto") -> None:
        super().__init__()
        self.tier = _checked(tier)
        self.served: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        serve = _SERVED.get(func)
        if serve is not None and _takes(args):
            self.served[func.overloadpacket.__name__] += 1
            with torch.no_grad():  # autograd has been here
                return serve(self.tier, *args, **kwargs)
        if serve is None:  # where autograd is off (inference_mode), composed operators come whole
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


def _takes(args: tuple[Any, ...]) -> bool:
    """Whether these are operands for ptxgen: plain, dense, on one GPU, the two factors alike."""
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    device = tensors[0].device
    return (
        device.type in DEVICES
        and tensors[-1].dtype is tensors[-2].dtype
        and all(
            type(x) in PLAIN
            and x.dtype in NAMES
            and x.layout is torch.strided
            and x.device == device
            for x in tensors
        )
    )


# -- what is served -------------------------------------------------------------------------
def _mm(tier: str, a: Any, b: Any, dtype: Any = None, *, out: Any = None) -> Any:
    a, b, name = matrix(a), matrix(b), NAMES.get(dtype)
    if out is None:
        return ops.matmul(a, b, tier=tier, out_dtype=name)
    if out.shape == (a.shape[0], b.shape[1]) and out.is_contiguous() and out.dtype is a.dtype:
        return ops.matmul(a, b, tier=tier, out=out)
    return _written(out, ops.matmul(a, b, tier=tier, out_dtype=name))


def _bmm(tier: str, a: Any, b: Any, dtype: Any = None, *, out: Any = None) -> Any:
    check_batches(a, b, "batch1", "batch2")
    shape = (*a.shape[:2], b.shape[2])
    if out is not None and out.shape == shape and out.is_contiguous() and out.dtype is a.dtype:
        return ops.matmul(matrix(a), matrix(b), tier=tier, out=out)
    y = compute_matmul(a, b, tier, dtype)
    return y if out is None else _written(out, y)


def _mv(tier: str, a: Any, v: Any, dtype: Any = None, *, out: Any = None) -> Any:
    if v.dim() != 1:
        raise ShapeError(f"vec has shape {list(v.shape)}; takes [K] = [{a.shape[-1]}]")
    y = _mm(tier, a, v.unsqueeze(1), dtype).squeeze(1)
    return y if out is None else _written(out, y)


def _added(multiply: Callable[..., Any]) -> Callable[..., Any]:
    """``alpha * product + beta * input``, for a product made by ``multiply``."""

    def serve(
        tier: str,
        input: Any,
        a: Any,
        b: Any,
        dtype: Any = None,
        *,
        beta: Any = 1,
        alpha: Any = 1,
        out: Any = None,
    ) -> Any:
        y: Any
        if multiply is _mm and alpha == beta == 1 and out is None and input.shape == b.shape[1:]:
            # A linear layer. The kernel adds the bias, with the same bits.
            y = ops.linear(
                matrix(a), matrix(b), input.contiguous(), tier=tier, out_dtype=NAMES.get(dtype)
            )
            return y
        y = added(multiply(tier, a, b, wide(a.dtype)), input, beta, alpha, dtype or a.dtype)
        return y if out is None else _written(out, y)

    return serve


def _in_place(serve: Callable[..., Any]) -> Callable[..., Any]:
    """``serve``, written to its first argument."""
    return lambda tier, input, *args, **options: input.copy_(serve(tier, input, *args, **options))


def _written(out: Any, y: Any) -> Any:
    """``out`` with the values of ``y``, resized to its shape as PyTorch does."""
    if out.shape != y.shape:
        out.resize_(y.shape)
    return out.copy_(y)


def _table() -> Iterator[tuple[Any, Callable[..., Any]]]:
    for multiply, name, sum_name in (
        (_mm, "mm", "addmm"),
        (_bmm, "bmm", "baddbmm"),
        (_mv, "mv", "addmv"),
    ):
        add = _added(multiply)
        for overload in ("default", "out", "dtype", "dtype_out"):  # the last two since torch 2.8
            for operator, serve in ((name, multiply), (sum_name, add)):
                found = getattr(getattr(torch.ops.aten, operator), overload, None)
                if found is not None:
                    yield found, serve
        yield getattr(torch.ops.aten, f"{sum_name}_").default, _in_place(add)


_SERVED = dict(_table())
