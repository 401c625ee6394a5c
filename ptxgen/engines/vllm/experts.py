"""Replacements of vLLM's mixtures of experts: the router, and the products of the experts.

vLLM calls both inside of one opaque operator, so compilers do not see them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ptxgen.engines import layers as trainer
from ptxgen.engines.vllm.layers import DTYPES, ROUNDING, count, leave

ACTIVATIONS = {"silu": "silu", "gelu": "gelu", "gelu_tanh": "gelu_tanh", "swigluoai": "gpt_oss"}
"""Activations of experts that are served: vLLM's name, and that of the layers."""
BACKEND = "TRITON"
"""vLLM's backend that leaves experts' weights as they are loaded: [E, 2 D, K] and [E, K, D]."""


def route(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the choice of experts by the softmax of their scores, with the rounding of weights
    that the model's family has. Of equal scores the first expert is taken.
    """

    def compute_routing(
        self: Any,
        hidden_states: torch.Tensor,
        router_logits: torch.Tensor,
        indices_type: torch.dtype | None,
        *,
        input_ids: torch.Tensor | None = None,
    ) -> Any:
        why = router_fault(self)
        if why or router_logits.dtype not in DTYPES:
            leave(self, why or f"scores of {router_logits.dtype}")
            given = hidden_states, router_logits, indices_type
            return original(self, *given, input_ids=input_ids)
        style = getattr(self, ROUNDING)
        taken = indices_type or torch.int32
        index = "int32" if taken is torch.int32 else "int64"
        how = {"style": style, "normalize": self.renormalize, "index": index}
        count(self, "router", trainer.router, router_logits, self.top_k, **how)
        with torch.no_grad():
            weights, chosen = trainer.router(router_logits, self.top_k, **how)
        return weights, chosen.to(taken)

    return compute_routing


def compute(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the experts' products, and the sum of their results."""

    def forward(
        self: Any,
        layer: Any,
        x: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        shared_experts: Any,
        shared_experts_input: torch.Tensor | None,
    ) -> Any:
        why = "" if shared_experts is None else "it shares experts"
        why = why or experts_fault(layer)
        if why or x.dtype not in DTYPES or layer.w13_weight.dtype is not x.dtype:
            leave(layer, why or f"experts of {layer.w13_weight.dtype} by {x.dtype}")
            chosen = topk_weights.to(torch.float32), topk_ids
            return original(self, layer, x, *chosen, shared_experts, shared_experts_input)
        biases = (getattr(layer, name, None) for name in ("w13_bias", "w2_bias"))
        given = x, topk_weights, topk_ids, layer.w13_weight, layer.w2_weight, *biases
        activation = ACTIVATIONS[layer.activation.value]
        count(layer, "experts", trainer.experts, *given, activation=activation)
        with torch.no_grad():
            return trainer.experts(*given, activation=activation)

    return forward


def router_fault(router: Any) -> str:
    """Returns why a router is not served; empty if it is."""
    if type(router).__name__ != "FusedTopKRouter" or router.scoring_func != "softmax":
        scores = getattr(router, "scoring_func", "other scores")
        return f"it routes by {type(router).__name__} with {scores}"
    style = getattr(router, ROUNDING, "")
    if not style:
        return "the rounding of its weights was not compared for this family of models"
    if style != "qwen3_moe" and not router.renormalize:
        return "its weights are not divided by their sum"
    return ""


def experts_fault(layer: Any) -> str:
    """Returns why the experts of a layer are not served; empty if they are."""
    method = layer.quant_method
    if type(method).__name__ != "UnquantizedFusedMoEMethod":
        return f"its weights are quantized ({type(method).__name__})"
    if method.unquantized_backend.name != BACKEND:
        chosen = method.unquantized_backend.name
        return f"its weights are laid out for {chosen}; --moe-backend {BACKEND.lower()} keeps them"
    if layer.activation.value not in ACTIVATIONS:
        return f"its activation is {layer.activation.value}"
    if layer.expert_map is not None or layer.apply_router_weight_on_input:
        return "its experts are on several GPUs, or weights multiply its input"
    return ""
