"""HOOKS, MODELS and QUANTIZED: each function of vLLM that the extension replaces, calls or
implements.
"""

from __future__ import annotations

from ptxgen.engines.hooks import Hook
from ptxgen.engines.vllm.families import FAMILIES, MODULES

BACKEND = "ptxgen.engines.vllm.attention.Backend"
"""Class of the attention backend ``CUSTOM``, in the form that vLLM takes."""

_LAYERS = "vllm.model_executor.layers"
_GPU = "vllm.v1.worker.gpu"
_TOPK_SCORES = (
    "(logits, num_logprobs, sampled_token_ids, cu_num_logits=None, logprob_token_ids_state=None, "
    "expanded_idx_mapping=None, max_per_req_token_ids=0, logits_mode=False)"
)

HOOKS = (
    Hook(
        "linear layers",
        f"{_LAYERS}.linear:UnquantizedLinearMethod",
        "apply",
        "(self, layer, x, bias=None)",
        "ptxgen.engines.vllm.layers:linear",
    ),
    Hook(
        "LM head",
        f"{_LAYERS}.vocab_parallel_embedding:UnquantizedEmbeddingMethod",
        "apply",
        "(self, layer, x, bias=None)",
        "ptxgen.engines.vllm.layers:linear",
    ),
    # A layer calls forward_cuda or forward_native, as custom_ops says: both are replaced.
    *(
        Hook(
            "RMS norm",
            f"{_LAYERS}.layernorm:RMSNorm",
            name,
            "(self, x, residual=None)",
            "ptxgen.engines.vllm.layers:rms_norm",
        )
        for name in ("forward_native", "forward_cuda")
    ),
    *(
        Hook(
            "RMS norm",
            f"{_LAYERS}.layernorm:GemmaRMSNorm",
            name,
            "(self, x, residual=None)",
            "ptxgen.engines.vllm.layers:gemma_rms_norm",
        )
        for name in ("forward_native", "forward_cuda")
    ),
    Hook(
        "gated activation",
        f"{_LAYERS}.activation:SiluAndMul",
        "forward_native",
        "staticmethod (x)",
        "ptxgen.engines.vllm.layers:silu_and_mul_static",
    ),
    Hook(
        "gated activation",
        f"{_LAYERS}.activation:SiluAndMul",
        "forward_cuda",
        "(self, x)",
        "ptxgen.engines.vllm.layers:silu_and_mul",
    ),
    *(
        Hook(
            "gated activation",
            f"{_LAYERS}.activation:GeluAndMul",
            name,
            "(self, x)",
            "ptxgen.engines.vllm.layers:gelu_and_mul",
        )
        for name in ("forward_native", "forward_cuda")
    ),
    *(
        Hook(
            "rotary embedding",
            f"{_LAYERS}.rotary_embedding.base:RotaryEmbedding",
            name,
            "(self, positions, query, key=None)",
            "ptxgen.engines.vllm.layers:rotary",
        )
        for name in ("forward_native", "forward_cuda")
    ),
    Hook(
        "mixture of experts",
        f"{_LAYERS}.fused_moe.router.fused_topk_router:FusedTopKRouter",
        "_compute_routing",
        "(self, hidden_states, router_logits, indices_type, *, input_ids=None)",
        "ptxgen.engines.vllm.experts:route",
    ),
    *(
        Hook(
            "mixture of experts",
            f"{_LAYERS}.fused_moe.unquantized_fused_moe_method:UnquantizedFusedMoEMethod",
            name,
            "(self, layer, x, topk_weights, topk_ids, shared_experts, shared_experts_input)",
            "ptxgen.engines.vllm.experts:compute",
        )
        for name in ("forward_native", "forward_cuda")
    ),
    Hook(
        "attention",
        "vllm.platforms.cuda:CudaPlatformBase",
        "get_attn_backend_cls",
        "classmethod (cls, selected_backend, attn_selector_config, num_heads=None)",
        "ptxgen.engines.vllm.config:choose_backend",
    ),
    Hook(
        "attention",
        "vllm.v1.attention.backends.registry",
        "register_backend",
        "(backend, class_path=None, is_mamba=False)",
    ),
    Hook(
        "attention",
        "vllm.v1.attention.backend:AttentionImpl",
        "forward",
        "(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, "
        "output_block_scale=None)",
    ),
    Hook(
        "attention",
        "vllm.v1.attention.backend:AttentionMetadataBuilder",
        "build",
        "(self, common_prefix_len, common_attn_metadata, fast_build=False)",
    ),
    Hook(
        "attention",
        "vllm._custom_ops",
        "reshape_and_cache_flash",
        "(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale)",
    ),
    Hook(
        "logits",
        f"{_LAYERS}.logits_processor:LogitsProcessor",
        "forward",
        "(self, lm_head, hidden_states, embedding_bias=None)",
        "ptxgen.engines.vllm.layers:logits",
    ),
    Hook(
        "logits",
        f"{_LAYERS}.logits_processor:LogitsProcessor",
        "_get_logits",
        "(self, hidden_states, lm_head, embedding_bias)",
    ),
    Hook(
        "sampler",
        f"{_GPU}.sample.sampler:Sampler",
        "sample",
        "(self, logits, expanded_idx_mapping, idx_mapping_np, pos, input_ids, expanded_local_pos, "
        "return_logprobs=False)",
        "ptxgen.engines.vllm.sampler:sample",
    ),
    Hook(
        "sampler",
        f"{_GPU}.sample.sampler:Sampler",
        "add_request",
        "(self, req_idx, prompt_len, sampling_params)",
        "ptxgen.engines.vllm.sampler:add_request",
    ),
    Hook(
        "sampler",
        "vllm.v1.sample.sampler:Sampler",
        "sample",
        "(self, logits, sampling_metadata, logprobs_mode_override=None)",
        "ptxgen.engines.vllm.sampler:sample_v1",
    ),
    Hook(
        "log-probabilities",
        f"{_GPU}.sample.logprob",
        "compute_token_logprobs",
        "(logits, token_ids)",
        "ptxgen.engines.vllm.sampler:token_logprobs",
    ),
    # Both modules have imported the function by name.
    *(
        Hook(
            "log-probabilities",
            f"{_GPU}.sample.{module}",
            "compute_topk_scores",
            _TOPK_SCORES,
            "ptxgen.engines.vllm.sampler:topk_scores",
        )
        for module in ("sampler", "prompt_logprob")
    ),
    Hook(
        "log-probabilities",
        "vllm.v1.sample.sampler:Sampler",
        "compute_logprobs",
        "staticmethod (logits)",
        "ptxgen.engines.vllm.sampler:log_softmax",
    ),
    Hook(
        "log-probabilities",
        "vllm.v1.sample.sampler:Sampler",
        "gather_logprobs",
        "staticmethod (logprobs, num_logprobs, token_ids)",
        "ptxgen.engines.vllm.sampler:gather_logprobs",
    ),
    Hook(
        "configuration",
        "vllm.platforms.interface:Platform",
        "apply_config_platform_defaults",
        "classmethod (cls, vllm_config)",
        "ptxgen.engines.vllm.config:platform_defaults",
    ),
    Hook(
        "loaded model",
        "vllm.model_executor.model_loader.base_loader:BaseModelLoader",
        "load_model",
        "(self, vllm_config, model_config, prefix='')",
        "ptxgen.engines.vllm.models:load_model",
    ),
    Hook(
        "operators",
        "vllm.utils.torch_utils",
        "direct_register_custom_op",
        "(op_name, op_func, mutates_args=None, fake_impl=None, target_lib=None, "
        "dispatch_key=None, tags=())",
    ),
)
"""Functions of vLLM 0.26 and 0.27, in the order of a model's layers."""

MODELS = tuple(
    Hook(
        "norms of heads and rotary embedding",
        f"{MODULES}.{kind}:{family.normed_attention}",
        "forward",
        "(self, positions, hidden_states)",
        "ptxgen.engines.vllm.layers:normed_heads",
    )
    for kind, family in FAMILIES.items()
    if family.normed_attention
)
"""Functions of the modules of models, which have the names of model types. They are replaced when
such a model is loaded."""

_METHODS = f"{_LAYERS}.quantization"
_QUANTIZED = (
    "auto_awq:AutoAWQMarlinLinearMethod",
    "auto_gptq:AutoGPTQLinearMethod",
    "fp8:Fp8LinearMethod",
    "compressed_tensors.compressed_tensors:CompressedTensorsLinearMethod",
)

QUANTIZED = tuple(
    Hook("quantized linear layers", f"{_METHODS}.{owner}", name, signature, replacement)
    for name, signature, replacement, owners in (
        (
            "create_weights",
            "(self, layer, input_size_per_partition, output_partition_sizes, input_size, "
            "output_size, params_dtype, **extra_weight_attrs)",
            "ptxgen.engines.vllm.quantized:create_weights",
            ("auto_awq:BaseAWQLinearMethod", *_QUANTIZED),
        ),
        (
            "process_weights_after_loading",
            "(self, layer)",
            "ptxgen.engines.vllm.quantized:process_weights",
            ("auto_awq:AutoAWQLinearMethod", *_QUANTIZED),
        ),
        (
            "apply",
            "(self, layer, x, bias=None)",
            "ptxgen.engines.vllm.quantized:multiply",
            ("auto_awq:AutoAWQLinearMethod", *_QUANTIZED),
        ),
    )
    for owner in owners
)
"""Functions of linear methods of quantized checkpoints, which are replaced when a model is loaded
whose configuration is in the same module. Others are not imported.
"""
