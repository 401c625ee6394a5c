"""Operators that a model's own code calls between its layers.

Layers are judged when a model is loaded (:mod:`ptxgen.engines.vllm.models`). Scales, residual
multipliers and casts that the code of a model computes in line belong to no layer. So the first
forward pass of a model, which is vLLM's profiling run, and its first logits run under a dispatch
mode that sees every operator, in modes ``strict`` and ``audit``.

An operator may stay PyTorch's where a :class:`ptxgen.torch.batch_invariant` block would leave it to
PyTorch, too: elementwise arithmetic, copies, views and gathers. Others are refused in ``strict``
and have a line in the report in ``audit``: those that the block serves, as the trainer computes
them by ptxgen; those whose rows may depend on the batch; and kernels of vLLM. Kernels that are
launched without an operator, such as those of Triton, are not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import TorchDispatchMode

from ptxgen.engines.audit import REPORT
from ptxgen.engines.vllm.layers import name_of
from ptxgen.torch.serve import KNOWN, listed
from ptxgen.torch.trees import leaves

METHODS = ("forward", "compute_logits")
"""Methods of a model whose first calls are watched."""
OURS = "vllm::ptxgen_"
"""Beginning of the names of operators that the extension registers."""
JUDGED = {
    "vllm::unified_attention_with_output",
    "vllm::unified_kv_cache_update",
    "_C_cache_ops::reshape_and_cache_flash",
}
"""Operators of attention layers, whose backend is judged when a model is loaded."""
OPENED = {"vllm::moe_forward", "vllm::moe_forward_shared"}
"""Operators of vLLM that compute nothing themselves: they call layers, which are watched."""
WHY = {
    "served": "which the trainer computes by ptxgen",
    "unknown": "whose rows may depend on the batch",
    "engine": "a kernel of vLLM",
}
"""Reasons why an operator is refused, by the block's list that has it, or "engine"."""


def watch_first_calls(model: torch.nn.Module) -> None:
    """Makes the first call of each method in :data:`METHODS` note the operators that a block would
    not leave to PyTorch. In mode ``strict`` that call raises EngineError, which names them all with
    the modules that called them.
    """
    for name in METHODS:
        method = getattr(model, name, None)
        if method is not None and name not in vars(model):
            setattr(model, name, _first(model, name, method))


def _first(model: torch.nn.Module, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        vars(model).pop(name, None)
        with watching(model) as found:
            result = method(*args, **options)
        REPORT.refuse([f"{where}: {why}" for where, why in found])
        for where, why in found:
            REPORT.leave(where, why)
        return result

    return call


@contextmanager
def watching(model: torch.nn.Module) -> Iterator[Counter[tuple[str, str]]]:
    """Context manager that yields a counter of (module, reason): the operators called inside of it
    that a block would not leave to PyTorch. Numbers in names of modules become ``*``, so that equal
    layers are one.
    """
    seen = _Watch(type(model).__name__)
    handles = (
        hooks.register_module_forward_pre_hook(seen.enter),
        hooks.register_module_forward_hook(seen.leave, always_call=True),
    )
    try:
        with seen:
            yield seen.found
    finally:
        for handle in handles:
            handle.remove()


class _Watch(TorchDispatchMode):
    """Dispatch mode that notes operators, with the innermost module that is running. ``name``: that
    of the model.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.modules = [name]
        self.found: Counter[tuple[str, str]] = Counter()

    def enter(self, module: torch.nn.Module, _: Any) -> None:
        self.modules.append(re.sub(r"\d+", "*", name_of(module)))

    def leave(self, *_: Any) -> None:
        self.modules.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.name().partition(".")[0]
        if name in OPENED:
            return self._inside(func, args, kwargs)
        place = listed(func, args, kwargs)
        if func.namespace in KNOWN or name.startswith(OURS) or name in JUDGED:
            place = "free"
        elif place == "unknown" and func.namespace == "aten":
            parts = self._composed(func, args, kwargs)
            if parts is not NotImplemented:
                return parts
        elif place == "unknown":
            place = "engine"
        if place != "free":
            self.found[self.modules[-1], f"its code calls {name}, {WHY[place]}"] += 1
        return func(*args, **kwargs)

    def _composed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Returns the result of an operator that PyTorch composes of others, which are seen one by
        one; NotImplemented for one with a kernel of its own.
        """
        with self:
            found = func.decompose(*args, **kwargs)
        if found is not NotImplemented:
            return found
        key = _key(args, kwargs)
        if key is None or torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key):
            return NotImplemented
        return self._inside(func, args, kwargs)

    def _inside(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Calls an operator's kernel with this mode on, so that operators which it calls are seen.
        A call of the operator itself would come back here.
        """
        key = getattr(torch._C.DispatchKey, _key(args, kwargs) or "CompositeExplicitAutograd")
        with self:
            return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)


def _key(args: Any, kwargs: Any) -> str | None:
    """Returns the dispatch key of the first tensor's device, such as "CUDA"; None without one."""
    tensors = leaves((args, kwargs), torch.Tensor)
    return next((x.device.type.upper() for x in tensors), None)
