"""A loaded model: names of its layers, roundings of its family, and what nothing serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ptxgen.engines import layers as trainer
from ptxgen.engines.audit import REPORT, Layer
from ptxgen.engines.hooks import install_deferred
from ptxgen.engines.vllm.experts import experts_fault, router_fault
from ptxgen.engines.vllm.families import FAMILIES, MODULES, Family
from ptxgen.engines.vllm.layers import DTYPES, NAME, ROUNDING, TABLE
from ptxgen.engines.vllm.operators import watch_first_calls
from ptxgen.engines.vllm.quantized import product_fault
from ptxgen.errors import OptionError

ROTARY = ("RotaryEmbedding", "LinearScalingRotaryEmbedding", "Llama3RotaryEmbedding",
          "YaRNScalingRotaryEmbedding")  # fmt: skip
"""Classes of rotary embedding whose frequencies do not depend on the batch."""
LAYERS = ("AttentionLayerBase", "CustomOp", "PluggableLayer")
"""Base classes of vLLM's layers, some of which (MLA) have no parameters of their own."""
PARTS = ("ApplyRotaryEmb", "OAIAttention", "UnquantizedFusedMoEMethod")
"""Classes of layers that compute nothing by themselves, or belong to another layer: sinks, a
parameter of ``OAIAttention``, are an argument of the attention in it."""


def load_model(original: Callable[..., Any]) -> Callable[..., Any]:
    """Extends the loading of a model by :func:`prepare`. In modes ``strict`` and ``audit`` the
    operators of its first forward pass are watched, unless it is compiled: then they are fused.
    Functions in the modules of the model and of its quantization are replaced before: only then are
    these imported.
    """

    def load(self: Any, vllm_config: Any, model_config: Any, prefix: str = "") -> Any:
        kind = getattr(model_config.hf_text_config, "model_type", "")
        _install(type(vllm_config.quant_config).__module__, f"{MODULES}.{kind}")
        model = original(self, vllm_config, model_config, prefix)
        prepare(model, model_config)
        if REPORT.mode in ("strict", "audit") and not vllm_config.compilation_config.mode:
            watch_first_calls(model)
        return model

    return load


def _install(*modules: str) -> None:
    """Replaces the deferred functions of vLLM's ``modules``. Raises EngineError for another
    signature (:func:`ptxgen.engines.hooks.install`).
    """
    for module in modules:
        for hook in install_deferred(module, f"{REPORT.engine} {REPORT.version}"):
            if hook.target not in REPORT.hooks:
                REPORT.hooks.append(hook.target)


def prepare(model: torch.nn.Module, model_config: Any) -> None:
    """Names the layers of a model in the report, and gives them the trainer's roundings and tables
    of cos and sin. Nothing is derived from weights here, so these may change in place at any time.

    Raises EngineError in mode ``strict`` for a model with a layer that no operation serves, and for
    one of whose family the roundings were not compared.
    """
    kind, left = getattr(model_config.hf_text_config, "model_type", ""), []
    family = FAMILIES.get(kind, Family())
    if kind not in FAMILIES:
        why = f"its roundings were not compared; those of {', '.join(FAMILIES)} were"
        left.append((f"model type {kind!r}", why))
    for name, module in model.named_modules():
        setattr(module, NAME, name)
        kinds = [c.__name__ for c in type(module).__mro__]
        if "RMSNorm" in kinds:
            setattr(module, ROUNDING, family.norm)
        if "MoERunner" in kinds:
            setattr(module.router, NAME, name)
            setattr(module.router, ROUNDING, family.router)
        if "RotaryEmbeddingBase" in kinds and type(module).__name__ in ROTARY:
            _give_table(module, model_config.hf_text_config, model_config.dtype)
        found = describe(module, kinds, model_config.dtype)
        if found is not None:
            REPORT.layers[name] = found
            if found.why:
                left.append((name, found.why))
    REPORT.write_at_exit()
    REPORT.refuse([f"{name}: {why}" for name, why in left])
    for name, why in left:
        REPORT.leave(name, why)


def _give_table(module: Any, config: Any, dtype: torch.dtype) -> None:
    """Gives a rotary embedding the trainer's table of cos and sin, in the dtype of the model, in
    place of vLLM's. Without parameters in the model's configuration that are surely the layer's, it
    gets none.

    The table is a buffer, which vLLM saves when an engine sleeps.
    """
    module.register_buffer(TABLE, None)
    parameters = getattr(config, "rope_parameters", None) or {}
    by_type = {kind: of for kind, of in parameters.items() if isinstance(of, dict)}
    candidates = by_type or {None: parameters}
    found = [kind for kind, of in candidates.items() if of.get("rope_theta") == module.base]
    if len(found) != 1 or not module.is_neox_style:
        return
    try:
        frequencies, scaling = trainer.inverse_frequencies(config, found[0])
    except OptionError:  # a type whose frequencies depend on the batch
        return
    if 2 * len(frequencies) != module.rotary_dim:
        return
    cache = module.cos_sin_cache
    how = {"dtype": dtype, "device": cache.device}
    table = trainer.rotary_table(frequencies, scaling, len(cache), **how)
    module.register_buffer(TABLE, table, persistent=False)


# -- layers -----------------------------------------------------------------------------------
def describe(module: torch.nn.Module, kinds: list[str], dtype: torch.dtype) -> Layer | None:
    """Returns what serves a layer, or why nothing does; None for a module that only contains
    others. ``kinds``: names of its class and of the bases; ``dtype``: that of the model.
    """
    kind = type(module).__name__
    judge = next((_JUDGES[k] for k in kinds if k in _JUDGES), None)
    if judge is not None:
        operation, why = judge(module, dtype)
        return Layer(kind, "" if why else operation, why)
    if any(k in PARTS for k in kinds):
        return None
    own = any(True for _ in module.parameters(recurse=False))
    if own or any(k in LAYERS for k in kinds):
        return Layer(kind, "", f"no operation serves a {kind}")
    return None


def _product(module: Any, dtype: torch.dtype) -> tuple[str, str]:
    method = type(module.quant_method).__name__
    if method not in ("UnquantizedLinearMethod", "UnquantizedEmbeddingMethod"):
        return "quantized_linear", product_fault(module)
    weight = getattr(module, "weight", None)
    if weight is not None and (weight.dtype is not dtype or dtype not in DTYPES):
        return "", f"its weight has dtype {weight.dtype}"
    return "linear", ""


def _rms_norm(module: Any, dtype: torch.dtype) -> tuple[str, str]:
    if getattr(module, "variance_size_override", None) is not None:
        return "", "it normalises by a part of its row"
    return "rms_norm", ""


def _rotary(module: Any, dtype: torch.dtype) -> tuple[str, str]:
    if getattr(module, TABLE, None) is None:
        return "", f"its table of cos and sin is vLLM's ({type(module).__name__})"
    return "rotary", ""


def _attention(module: Any, dtype: torch.dtype) -> tuple[str, str]:
    if not type(module.impl).__module__.startswith("ptxgen."):
        return "", f"its backend is {module.attn_backend.get_name()}"
    return "attention", ""


def _logits(module: Any, dtype: torch.dtype) -> tuple[str, str]:
    if module.head_dtype not in (None, dtype):
        return "", f"its head has dtype {module.head_dtype}, by a product of PyTorch"
    return "linear" if module.soft_cap is None else "softcapped", ""


def _router(module: Any, dtype: torch.dtype) -> tuple[str, str]:
    return "router", router_fault(module.router)


def _experts(module: Any, dtype: torch.dtype) -> tuple[str, str]:
    return "experts", experts_fault(module)


_JUDGES: dict[str, Callable[[Any, torch.dtype], tuple[str, str]]] = {
    "LinearBase": _product,
    "VocabParallelEmbedding": _product,
    "RMSNorm": _rms_norm,
    "GemmaRMSNorm": _rms_norm,
    "SiluAndMul": lambda *_: ("gated", ""),
    "GeluAndMul": lambda *_: ("gated", ""),
    "RotaryEmbeddingBase": _rotary,
    "Attention": _attention,
    "LogitsProcessor": _logits,
    "MoERunner": _router,
    "RoutedExperts": _experts,
}
"""Functions by class name: the operation that serves a layer, and why it does not."""
