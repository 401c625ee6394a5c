"""Defaults of vLLM's configuration, and the choice of an attention backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxgen.engines.audit import REPORT


def platform_defaults(original: Callable[..., Any]) -> Callable[..., Any]:
    """Extends the platform's defaults: compilation mode 0 with full CUDA graphs, unless a mode was
    chosen. Without Inductor, code between layers rounds as it is written.
    """

    def apply_config_platform_defaults(cls: Any, vllm_config: Any) -> None:
        original(cls, vllm_config)
        from vllm.config.compilation import CompilationMode, CUDAGraphMode

        of = vllm_config.compilation_config
        if of.mode is None:
            of.mode = CompilationMode.NONE
            if of.cudagraph_mode is None:
                of.cudagraph_mode = CUDAGraphMode.FULL
        REPORT.notes["compilation"] = f"mode {of.mode!s}, CUDA graphs {of.cudagraph_mode!s}"
        REPORT.refuse(_masked_scores(vllm_config))
        for part, why in _unserved(vllm_config, of.mode != CompilationMode.NONE):
            REPORT.leave(part, why)

    return apply_config_platform_defaults


def _masked_scores(config: Any) -> list[str]:
    """Returns why a mode of log-probabilities is refused in ``strict``; empty if it is not. In
    other modes the masks are left when a request has some.
    """
    chosen = getattr(config.model_config, "logprobs_mode", "")
    why = "masks of top-k, top-p and min-p are vLLM's; raw_logprobs, the default, has none"
    return [f"logprobs_mode {chosen}: {why}"] if chosen.startswith("processed_") else []


def _unserved(config: Any, compiled: bool) -> Iterator[tuple[str, str]]:
    """Yields parts of a configuration that no operation serves, and why."""
    if compiled:
        yield "code between layers", "a compiler fuses it and leaves out roundings; mode 0 does not"
    if getattr(config, "speculative_config", None) is not None:
        yield "speculative decoding", "its sampler and its draft model are vLLM's"
    if getattr(config, "lora_config", None) is not None:
        yield "LoRA", "the products of adapters are vLLM's"
    size = getattr(config.parallel_config, "tensor_parallel_size", 1)
    if size > 1:
        yield "tensor parallelism", f"partial sums of {size} GPUs are added in another order"


def choose_backend(original: Callable[..., Any]) -> Callable[..., Any]:
    """Prefers the backend ``CUSTOM`` where no other was asked for and it takes the configuration.
    For other configurations the original chooses.
    """

    def get_attn_backend_cls(
        cls: Any, selected_backend: Any, attn_selector_config: Any, num_heads: int | None = None
    ) -> Any:
        if selected_backend is None:
            from vllm.v1.attention.backends.registry import AttentionBackendEnum

            from ptxgen.engines.vllm.attention import Backend

            reasons = Backend.validate_configuration(
                device_capability=cls.get_device_capability(), **attn_selector_config._asdict()
            )
            if reasons:
                REPORT.leave("attention", ", ".join(reasons))
            else:
                selected_backend = AttentionBackendEnum.CUSTOM
        return original(cls, selected_backend, attn_selector_config, num_heads)

    return get_attn_backend_cls
