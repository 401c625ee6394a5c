"""PyTorch's tracing as graphs here want it: operators that the block serves stay whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from ptxgen.torch.unserved import overload

_lock = threading.RLock()


@cache
def resizing() -> tuple[Any, ...]:
    """The operators of ``torch.nn.functional.interpolate``, in all their forms."""
    names = torch._C._dispatch_get_all_op_names()
    own = (n for n in names if n.startswith(("aten::upsample_", "aten::_upsample_")))
    return tuple(op for name in own if (op := overload(name)) is not None)


@contextmanager
def whole_resizing() -> Iterator[None]:
    """Keeps ``upsample_*`` operators and their gradients whole while autograd traces.

    PyTorch has rules in Python (``OpOverload.py_kernels``) that take them apart above autograd,
    into ``_unsafe_index`` and arithmetic: those graphs have other bits than the operators have.
    Other threads that trace meanwhile see whole operators, too.
    """
    with _lock:
        rules = [(op, dict(op.py_kernels)) for op in resizing() if op.py_kernels]
        for op, _ in rules:
            _set_rules(op, {})
        try:
            yield
        finally:
            for op, own in rules:
                _set_rules(op, own)


def _set_rules(op: Any, rules: dict[Any, Any]) -> None:
    op.py_kernels.clear()
    op.py_kernels.update(rules)
    op._dispatch_cache.clear()  # of keys, what they led to
