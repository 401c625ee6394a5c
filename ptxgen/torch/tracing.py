"""Tracing rules that stop PyTorch from decomposing operators which ptxgen computes as a whole."""

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
"""Overloads of ``prod``, which is traced with ptxgen's gradients in place of PyTorch's. (Attention,
too: :func:`ptxgen.torch.graphs.attention_in_tier`.)
"""


@cache
def resizing() -> tuple[Any, ...]:
    """Returns all overloads of the operators of ``torch.nn.functional.interpolate``."""
    names = torch._C._dispatch_get_all_op_names()
    own = (n for n in names if n.startswith(("aten::upsample_", "aten::_upsample_")))
    return tuple(op for name in own if (op := overload(name)) is not None)


def _recorded(op: Any, serve_recorded: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the autograd rule of ``op`` for tracing: it calls ``serve_recorded``, a handler
    (tier, tensors...) with ptxgen's gradients, or PyTorch's own rule for calls that this does not
    support.
    """

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
    """Returns a rule that traces resizing by scales as resizing to a size. PyTorch's kernel reads
    scales as plain numbers, so that a graph would be valid for one size only.
    """

    def call(x: Any, size: Any, *rest: Any) -> Any:
        *how, scales = rest
        found = upsample_compute_output_size(x.shape, size, scales)
        return op(x, found, *how, *(scales or [None] * len(found)))

    return call


def _resizing_rules() -> dict[Any, dict[Any, Any]]:
    """Returns the Python rules that replace PyTorch's for resizing operators, by operator and
    dispatch key. PyTorch's rules for meta tensors stay (:func:`_image_like` where there is none);
    overloads with scale factors get :func:`_sized`.
    """
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
    """Fake kernel for the gradient of resizing: returns a meta tensor of ``shape``, the image's,
    with dy's dtype and, if ``ordered``, dy's memory format. PyTorch's own rule would read sizes as
    plain numbers, so that a graph would be valid for one size only.
    """
    order = suggest_memory_format(dy) if ordered else torch.contiguous_format
    return torch.empty(shape, dtype=dy.dtype, device="meta", memory_format=order)


@cache
def _rules() -> dict[Any, dict[Any, Any]]:
    """Returns Python rules that replace PyTorch's during tracing, by operator and dispatch key."""
    products = {overload(f"aten::{name}"): RECORDED[name][1] for name in _PRODUCTS}
    recorded = {op: {_AUTOGRAD: _recorded(op, of)} for op, of in products.items()}
    return {**_resizing_rules(), **recorded}


@contextmanager
def as_served() -> Iterator[None]:
    """Context manager: operators are traced as a ``batch_invariant()`` block computes them.

    PyTorch has Python rules (``OpOverload.py_kernels``) that decompose resizing above autograd into
    ``_unsafe_index`` and arithmetic, with other bits than the operators have. Its rule for the
    gradient of ``prod`` handles any number of zeros, by a formula that eager calls do not use.
    Other threads that trace meanwhile get the same rules.
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
