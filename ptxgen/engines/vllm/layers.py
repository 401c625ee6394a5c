"""Replacements of vLLM's layers: linear layers, norms, gated activations, rotary embedding.

Each function takes vLLM's original and returns its replacement (:mod:`ptxgen.engines.hooks`). The
replacement calls one operator of the namespace ``torch.ops.vllm``, whose kernels a compiler does
not see into and therefore does not fuse. A call that no operation serves, such as one with another
dtype, goes to the original and is counted in the report.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

import ptxgen.torch as pt
from ptxgen.engines import layers as trainer
from ptxgen.engines.audit import REPORT, Call
from ptxgen.engines.kernels import Recipe

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
"""Dtypes of weights and activations that are served."""
NAME, ROUNDING, TABLE = "ptxgen_name", "ptxgen_rounding", "ptxgen_table"
"""Attributes that a loaded model's layers get: name in the model, style of a norm, and table of cos
and sin of a rotary embedding.
"""


@cache
def operator(
    name: str, run: Callable[..., Any], fake: Callable[..., Any], writes: tuple[str, ...] = ()
) -> Any:
    """Returns ``torch.ops.vllm.<name>``, which calls ``run``, and for compilers ``fake``.

    ``writes``: names of the arguments that it writes to.
    """
    from vllm.utils.torch_utils import direct_register_custom_op

    if not hasattr(torch.ops.vllm, name):
        direct_register_custom_op(name, run, list(writes), fake)
    return getattr(torch.ops.vllm, name).default


def count(
    layer: Any,
    operation: str,
    function: Callable[..., Any],
    x: torch.Tensor,
    *arguments: Any,
    **options: Any,
) -> None:
    """Counts the call ``function(x, *arguments, **options)`` of an operation in the report, in mode
    ``audit``. A ``format`` among the options is that of a quantized weight.
    """
    if REPORT.counting and not torch.compiler.is_compiling():
        dtype = str(x.dtype).removeprefix("torch.")
        dtype += f" by {options['format']}" if "format" in options else ""
        recipe = Recipe.of(function, x, *arguments, **options)
        REPORT.call(Call(name_of(layer), operation, dtype, recipe))


def leave(layer: Any, why: str) -> None:
    """Notes a call that vLLM serves itself, with the reason."""
    if not torch.compiler.is_compiling():
        REPORT.leave(name_of(layer), why)


def name_of(layer: Any) -> str:
    """Returns a layer's name in its model; before the model is loaded, that of its class. A string
    is returned unchanged.
    """
    if isinstance(layer, str):
        return layer
    return getattr(layer, NAME, "") or getattr(layer, "prefix", "") or type(layer).__name__


# -- linear layers ----------------------------------------------------------------------------
def _linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    with torch.no_grad():
        return pt.linear(x, weight, bias, layout="nk")


def _linear_fake(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def linear(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``apply`` of an unquantized weight [N, K] by :func:`ptxgen.torch.linear`. Fused
    weights (QKV, gate and up) give the bits of the separate ones.
    """
    product = operator("ptxgen_linear", _linear, _linear_fake)

    def apply(self: Any, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
        # vLLM's parameters are a subclass that intercepts functions; their data are plain tensors.
        weight = layer.weight.data
        if x.dtype not in DTYPES or weight.dtype is not x.dtype:
            leave(layer, f"a product of {x.dtype} by {weight.dtype}")
            return original(self, layer, x, bias)
        count(layer, "linear", _linear, x, weight, bias)
        return product(x, weight, bias)

    return apply


# -- norms ------------------------------------------------------------------------------------
def _rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, style: str) -> torch.Tensor:
    found: torch.Tensor = trainer.rms_norm(x, weight, eps, style=style)
    return found


def _rms_norm_fake(x: torch.Tensor, weight: torch.Tensor, eps: float, style: str) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, style: str
) -> tuple[torch.Tensor, torch.Tensor]:
    y, total = trainer.rms_norm(x, weight, eps, residual, style=style)
    return y, total


def _add_rms_norm_fake(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, style: str
) -> tuple[torch.Tensor, torch.Tensor]:
    return _rms_norm_fake(x, weight, eps, style), _rms_norm_fake(x, weight, eps, style)


def _norm(original: Callable[..., Any], default: str) -> Callable[..., Any]:
    """Returns a replacement of a norm's forward; ``default``: style of layers without their own."""
    plain = operator("ptxgen_rms_norm", _rms_norm, _rms_norm_fake)
    adding = operator("ptxgen_add_rms_norm", _add_rms_norm, _add_rms_norm_fake)

    def forward(self: Any, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        if x.dtype not in DTYPES or getattr(self, "variance_size_override", None) is not None:
            leave(self, f"an RMS norm of {x.dtype}, or over a part of its row")
            return original(self, x, residual)
        given = self.weight, self.variance_epsilon, getattr(self, ROUNDING, default)
        if residual is None:
            count(self, "rms_norm", _rms_norm, x, *given)
            return plain(x, *given)
        count(self, "rms_norm", _add_rms_norm, x, residual, *given)
        return adding(x, residual, *given)

    return forward


def rms_norm(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``RMSNorm``. With a residual, the sum is rounded first and returned as well."""
    return _norm(original, "llama")


def gemma_rms_norm(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``GemmaRMSNorm``: ``x * (1 + weight)`` in f32, rounded once."""
    return _norm(original, "gemma")


# -- gated activations ------------------------------------------------------------------------
def _gated(x: torch.Tensor, activation: str) -> torch.Tensor:
    return trainer.gated(x, activation)


def _gated_fake(x: torch.Tensor, activation: str) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


def _gate(layer: Any, x: torch.Tensor, activation: str) -> Any:
    """Returns ``activation(x[..., :d]) * x[..., d:]``, or None for a dtype that is not served."""
    if x.dtype not in DTYPES:
        leave(layer, f"a gated activation of {x.dtype}")
        return None
    count(layer, "gated", _gated, x, activation)
    return operator("ptxgen_gated", _gated, _gated_fake)(x, activation)


def silu_and_mul(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``SiluAndMul``: silu is rounded, then the product."""

    def forward(self: Any, x: torch.Tensor) -> Any:
        found = _gate(self, x, "silu")
        return original(self, x) if found is None else found

    return forward


def silu_and_mul_static(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``SiluAndMul.forward_native``, which is static and does not know its layer."""

    def forward(x: torch.Tensor) -> Any:
        found = _gate("SiluAndMul", x, "silu")
        return original(x) if found is None else found

    return forward


def gelu_and_mul(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``GeluAndMul``: gelu, exact or by tanh, is rounded, then the product."""

    def forward(self: Any, x: torch.Tensor) -> Any:
        found = _gate(self, x, "gelu_tanh" if self.approximate == "tanh" else "gelu")
        return original(self, x) if found is None else found

    return forward


# -- rotary embedding -------------------------------------------------------------------------
def _rotary(
    query: torch.Tensor, key: torch.Tensor, positions: torch.Tensor, table: torch.Tensor
) -> None:
    trainer.rotary(positions, query, key, table, out=(query, key))


def _rotary_fake(*_: Any) -> None:
    return None


def rotary(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``RotaryEmbedding`` for layers whose table of cos and sin is the trainer's
    (:mod:`ptxgen.engines.vllm.models`). Queries and keys are rotated in place, as by vLLM's kernel.
    """
    rotate = operator("ptxgen_rotary", _rotary, _rotary_fake, ("query", "key"))

    def forward(
        self: Any, positions: torch.Tensor, query: torch.Tensor, key: torch.Tensor | None = None
    ) -> Any:
        table = getattr(self, TABLE, None)
        if table is None or key is None or query.dtype is not table.dtype:
            leave(self, f"rotary embedding by {type(self).__name__} of {query.dtype}")
            return original(self, positions, query, key)
        q, k = (x.view(len(x), -1, self.head_size) for x in (query, key))
        count(self, "rotary", _rotary, q, k, positions.flatten(), table)
        rotate(q, k, positions.flatten(), table)
        return query, key

    return forward


def _normed_rotary(
    query: torch.Tensor,
    key: torch.Tensor,
    positions: torch.Tensor,
    table: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float,
) -> None:
    norms, out = (query_weight, key_weight), (query, key)
    trainer.rotary(positions, query, key, table, norms=norms, eps=eps, out=out)


def normed_heads(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces ``forward`` of attention whose queries and keys are normalised head by head (Qwen3):
    norms and rotary embedding of both are one operator, which writes over the product that they are
    slices of. Layers that do not fit together are called by the original, one by one.
    """
    writes = ("query", "key")
    rotate = operator("ptxgen_normed_rotary", _normed_rotary, _rotary_fake, writes)

    def forward(self: Any, positions: torch.Tensor, hidden_states: torch.Tensor) -> Any:
        rotary, norms = self.rotary_emb, (self.q_norm, self.k_norm)
        table = getattr(rotary, TABLE, None)
        if table is None or table.dtype is not hidden_states.dtype or not _join(norms, table.dtype):
            return original(self, positions, hidden_states)
        qkv, _ = self.qkv_proj(hidden_states)
        q, k, v = qkv.split([self.q_size, self.kv_size, self.kv_size], dim=-1)
        heads = (x.view(len(x), -1, self.head_dim) for x in (q, k))
        weights = (layer.weight.data for layer in norms)
        given = (*heads, positions.flatten(), table, *weights, norms[0].variance_epsilon)
        count(rotary, "normed_rotary", _normed_rotary, *given)
        rotate(*given)
        output, _ = self.o_proj(self.attn(q, k, v))
        return output

    return forward


def _join(norms: tuple[Any, Any], dtype: torch.dtype) -> bool:
    """Whether two norms are served, in style "llama" with one epsilon and weights of ``dtype``."""
    return norms[0].variance_epsilon == norms[1].variance_epsilon and all(
        getattr(layer, ROUNDING, "") == "llama"
        and getattr(layer, "variance_size_override", None) is None
        and layer.weight.dtype is dtype
        for layer in norms
    )


# -- logits -----------------------------------------------------------------------------------
def logits(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the softcap of logits by one kernel: ``tanh(x / cap) * cap``, each operation
    rounded. Without a softcap the original has no arithmetic of its own.
    """

    def forward(
        self: Any,
        lm_head: Any,
        hidden_states: torch.Tensor,
        embedding_bias: torch.Tensor | None = None,
    ) -> Any:
        if self.soft_cap is None:
            return original(self, lm_head, hidden_states, embedding_bias)
        x = hidden_states
        if not self.logits_as_input:
            x = self._get_logits(hidden_states, lm_head, embedding_bias)
        if x is None:
            return None
        if x.dtype not in DTYPES:
            leave(self, f"a softcap of {x.dtype}")
            return original(self, lm_head, hidden_states, embedding_bias)
        count(self, "softcapped", trainer.softcapped, x, self.soft_cap)
        with torch.no_grad():
            x = trainer.softcapped(x, self.soft_cap)
        return x if self.scale == 1.0 else x * self.scale

    return forward
