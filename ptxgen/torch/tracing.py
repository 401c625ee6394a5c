"""Tracing rules for PyTorch that keep operators whole which the block serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import torch
from torch._decomp.decompositions import upsample_compute_output_size
from torch._prims_common import suggest_memory_format

from ptxgen.errors import DtypeError
from ptxgen.locks import Lock
from ptxgen.torch import serve
from ptxgen.torch.aten import RECORDED
from ptxgen.torch.unserved import NotServed, overload

_lock = Lock()
_AUTOGRAD = torch._C.DispatchKey.Autograd
_PRODUCTS = ("prod", "prod.dim_int")
"""Operators with gradients of their own. (Attention has them too: see ``graphs._attention``.)"""


@cache
def resizing() -> tuple[Any, ...]:
    """Returns all overloads of the operators of ``torch.nn.functional.interpolate``."""
    names = torch._C._dispatch_get_all_op_names()
    own = (n for n in names if n.startswith(("aten::upsample_", "aten::_upsample_")))
    return tuple(op for name in own if (op := overload(name)) is not None)


def _recorded(op: Any, serve_recorded: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an operator with its gradients in the block, for tracing."""

    def call(x: Any, *args: Any, **options: Any) -> Any:
        if x.device.type in serve.served_kinds():
            try:
                return serve_recorded("auto", x, *args, **options)
            except (NotServed, DtypeError):
                pass
        key = getattr(torch._C.DispatchKey, f"Autograd{x.device.type.upper()}")
        return op._op_dk(key, x, *args, **options)

    return call


def _sized(op: Any) -> Callable[..., Any]:
    """Returns a rule that traces resizing by scales as resizing to a size: PyTorch's kernel reads
    scales as plain numbers, so that a graph would serve one size only.
    """

    def call(x: Any, size: Any, *rest: Any) -> Any:
        *how, scales = rest
        found = upsample_compute_output_size(x.shape, size, scales)
        return op(x, found, *how, *(scales or [None] * len(found)))

    return call


def _resizing_rules() -> dict[Any, dict[Any, Any]]:
    """Returns the rules of :func:`resizing`: shapes as PyTorch has them, and sizes of scales."""
    keys = torch._C.DispatchKey
    found: dict[Any, dict[Any, Any]] = {}
    for op in resizing():
        found[op] = {k: rule for k, rule in op.py_kernels.items() if k is keys.Meta}
        if op._overloadname == "vec":
            found[op] = dict.fromkeys(
                (_AUTOGRAD, keys.CompositeImplicitAutograd), _sized(op.overloadpacket.default)
            )
        elif op.name().endswith("_backward"):
            found[op].setdefault(keys.Meta, partial(_image_like, "bicubic" not in op.name()))
    return found


def _image_like(ordered: bool, dy: Any, size: Any, shape: Any, *_: Any) -> Any:
    """Returns a meta tensor like the gradient; ``ordered``: with the memory format of ``dy``.
    PyTorch's kernel reads these sizes as plain numbers, too.
    """
    order = suggest_memory_format(dy) if ordered else torch.contiguous_format
    return torch.empty(shape, dtype=dy.dtype, device="meta", memory_format=order)


@cache
def _rules() -> dict[Any, dict[Any, Any]]:
    """Returns the Python rules that replace PyTorch's while operators are traced."""
    products = {overload(f"aten::{name}"): RECORDED[name][1] for name in _PRODUCTS}
    recorded = {op: {_AUTOGRAD: _recorded(op, of)} for op, of in products.items()}
    return {**_resizing_rules(), **recorded}


@contextmanager
def as_served() -> Iterator[None]:
    """Traces operators as the block serves them while it is open.

    PyTorch has rules in Python (``OpOverload.py_kernels``) that take resizing apart above autograd,
    into ``_unsafe_index`` and arithmetic: those graphs have other bits than the operators. The
    gradient of a product is PyTorch's one for any number of zeros, which eager calls do not take.
    Other threads that trace meanwhile see the same operators.
    """
    with _lock:
        before = {op: dict(op.py_kernels) for op in _rules()}
        try:
            for op, rules in _rules().items():
                _set_rules(op, rules)
            yield
        finally:
            for op, rules in before.items():
                _set_rules(op, rules)


def _set_rules(op: Any, rules: dict[Any, Any]) -> None:
    op.py_kernels.clear()
    op.py_kernels.update(rules)
    op._dispatch_cache.clear()  # of keys, what they led to
