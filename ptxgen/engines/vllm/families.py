"""Families of models: facts that a model's configuration does not have."""

from __future__ import annotations

from dataclasses import dataclass

MODULES = "vllm.model_executor.models"
"""Package of vLLM with a module for each model type, of its name."""


@dataclass(frozen=True)
class Family:
    """Facts of a model type. The defaults are those of a Llama.

    ``norm``: style of its RMS norms (:data:`ptxgen.engines.layers.STYLES`). ``router``: style of
    its router (:data:`ptxgen.engines.layers.ROUTERS`); empty if it has none. ``normed_attention``:
    vLLM's class of an attention that normalises the heads of queries and keys; empty if heads are
    not normalised. ``windows``: whether some layers have windows and others have none; ``sinks``:
    whether attention has sinks. ``experts_activation``: activation of experts that ``hidden_act``
    does not name; ``experts_biased``: whether experts and their router have biases.
    """

    norm: str = "llama"
    router: str = ""
    normed_attention: str = ""
    windows: bool = False
    sinks: bool = False
    experts_activation: str = ""
    experts_biased: bool = False


FAMILIES = {
    "gemma2": Family(norm="gemma", windows=True),
    "gpt_oss": Family(
        norm="gpt_oss",
        router="gpt_oss",
        windows=True,
        sinks=True,
        experts_activation="gpt_oss",
        experts_biased=True,
    ),
    "llama": Family(),
    "mixtral": Family(router="mixtral"),
    "qwen3": Family(normed_attention="Qwen3Attention"),
    "qwen3_moe": Family(router="qwen3_moe", normed_attention="Qwen3MoeAttention"),
}
"""Families by ``model_type`` of `transformers`: those of which layers were compared with
`transformers`."""
