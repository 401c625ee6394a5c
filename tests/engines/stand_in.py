"""A stand-in for vLLM 0.26: the modules, classes and signatures that the extension meets, small
enough to run on CPU tensors. What vLLM computes by kernels of its own is marked by the value MARK.
"""

from __future__ import annotations

from pathlib import Path

VERSION = "0.26.0"
MARK = -7.0
"""Value of results that are vLLM's own."""

_BASE = """
import torch
from torch import nn

def marked(x, *size):
    return x.new_full(size or x.shape, -7.0)
"""

_CREATE = """
    def create_weights(self, layer: torch.nn.Module, input_size_per_partition: int,
                       output_partition_sizes: list[int], input_size: int, output_size: int,
                       params_dtype: torch.dtype, **extra_weight_attrs):
        k, n = input_size_per_partition, sum(output_partition_sizes)
        layer.rows, of = n, self.quant_config
        register(layer, extra_weight_attrs["weight_loader"],
"""
_REST = """
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        layer.repacked = {name: p.dtype for name, p in layer.named_parameters()}

    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None):
        return marked(x, *x.shape[:-1], layer.rows)
"""
_METHODS = (
    _BASE
    + """
from vllm.model_executor.layers.linear import LinearMethodBase, register

class Config:
    def __init__(self, **options):
        self.full_config = self.config = options
        self.weight_block_size = options.get("weight_block_size")

    def groups(self, k):
        return k // self.full_config["group_size"]
"""
)

MODULES = {
    "__init__": f"__version__ = {VERSION!r}",
    "platforms/__init__": """
from vllm.platforms.cuda import CudaPlatformBase as current_platform
""",
    "platforms/interface": """
class Platform:
    @classmethod
    def is_cuda(cls):
        return True

    @classmethod
    def apply_config_platform_defaults(cls, vllm_config: "VllmConfig") -> None:
        pass
""",
    "platforms/cuda": """
from vllm.platforms.interface import Platform

class CudaPlatformBase(Platform):
    @classmethod
    def get_device_capability(cls):
        return 9, 0

    @classmethod
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None) -> str:
        return "FLASH_ATTN" if selected_backend is None else selected_backend.name
""",
    "config/compilation": """
import enum

class CompilationMode(enum.IntEnum):
    NONE = 0
    VLLM_COMPILE = 3

class CUDAGraphMode(enum.Enum):
    NONE = 0
    FULL = 2
""",
    "utils/torch_utils": """
from torch.library import Library, infer_schema

vllm_lib = Library("vllm", "FRAGMENT")

def direct_register_custom_op(op_name: str, op_func, mutates_args: list[str] | None = None,
                              fake_impl=None, target_lib=None, dispatch_key=None, tags=()):
    vllm_lib.define(op_name + infer_schema(op_func, mutates_args=mutates_args or []), tags=tags)
    vllm_lib.impl(op_name, op_func, dispatch_key="CPU")
    vllm_lib._register_fake(op_name, fake_impl)
""",
    "_custom_ops": """
def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype,
                            k_scale, v_scale) -> None:
    size = key_cache.shape[1]
    for i, slot in enumerate(slot_mapping.tolist()):
        if slot >= 0:
            key_cache[slot // size, slot % size] = key[i]
            value_cache[slot // size, slot % size] = value[i]
""",
    "v1/attention/backend": """
import enum

class MultipleOf:
    def __init__(self, base: int):
        self.base = base

class AttentionCGSupport(enum.Enum):
    ALWAYS = 3
    NEVER = 0

class AttentionBackend:
    supported_dtypes = []
    supported_kv_cache_dtypes = []

    @classmethod
    def validate_configuration(cls, head_size, dtype, kv_cache_dtype, has_sink,
                               has_sliding_window, device_capability, use_mla=False):
        reasons = ["MLA not supported"] if use_mla else []
        if not cls.supports_head_size(head_size):
            reasons.append("head_size not supported")
        if dtype not in cls.supported_dtypes:
            reasons.append("dtype not supported")
        if kv_cache_dtype not in cls.supported_kv_cache_dtypes:
            reasons.append("kv_cache_dtype not supported")
        if has_sink and not cls.supports_sink():
            reasons.append("attention sinks not supported")
        if has_sliding_window and not cls.supports_sliding_window():
            reasons.append("sliding window not supported")
        return reasons

class AttentionImpl:
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale=None, output_block_scale=None):
        raise NotImplementedError

class AttentionMetadataBuilder:
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.layer_names = layer_names

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        raise NotImplementedError
""",
    "v1/attention/backends/registry": """
import enum

class AttentionBackendEnum(enum.Enum):
    FLASH_ATTN = "vllm.flash"
    CUSTOM = None

overrides = {}

def register_backend(backend, class_path=None, is_mamba=False):
    overrides[backend.name] = class_path
""",
    "v1/attention/backends/utils": """
layout = "NHD"

def get_kv_cache_layout():
    return layout
""",
    "model_executor/custom_op": """
from torch import nn

class CustomOp(nn.Module):
    def forward(self, *given, **options):
        return self.forward_cuda(*given, **options)

class PluggableLayer(nn.Module):
    pass
""",
    "model_executor/layers/linear": _BASE
    + """
from vllm.model_executor.custom_op import PluggableLayer

class UnquantizedLinearMethod:
    def apply(self, layer: nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None):
        return marked(x, *x.shape[:-1], layer.weight.shape[0])

class LinearMethodBase:
    def __init__(self, quant_config):
        self.quant_config = self.quantization_config = quant_config

def register(layer, loader, **made):
    for name, (shape, dtype, output_dim) in made.items():
        parameter = BasevLLMParameter(torch.zeros(shape, dtype=dtype), loader, output_dim)
        layer.register_parameter(name, parameter)

class BasevLLMParameter(nn.Parameter):
    def __new__(cls, data, *options):
        return super().__new__(cls, data=data, requires_grad=False)

    def __init__(self, data, weight_loader=None, output_dim=None):
        self.weight_loader, self.output_dim = weight_loader, output_dim

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})

class LinearBase(PluggableLayer):
    def __init__(self, weight, bias=None, quant_method=None):
        super().__init__()
        if weight is not None:
            self.weight = BasevLLMParameter(weight)
        self.bias, self.quant_method = bias, quant_method or UnquantizedLinearMethod()

    def forward(self, x):
        return self.quant_method.apply(self, x, self.bias)

    def weight_loader_v2(self, param, loaded_weight, part=0):
        if param.output_dim is None:
            return param.data.copy_(loaded_weight)
        size = loaded_weight.shape[param.output_dim]
        param.data.narrow(param.output_dim, part * size, size).copy_(loaded_weight)
""",
    "model_executor/layers/quantization/auto_awq": f"""{_METHODS}
class BaseAWQLinearMethod(LinearMethodBase):{_CREATE}
            qweight=((k, n // 8), torch.int32, 1), qzeros=((of.groups(k), n // 8), torch.int32, 1),
            scales=((of.groups(k), n), params_dtype, 1))

class AutoAWQLinearMethod(BaseAWQLinearMethod):{_REST}
class AutoAWQMarlinLinearMethod(LinearMethodBase):
    {_CREATE}
            qweight=((k, n // 8), torch.int32, 1), qzeros=((of.groups(k), n // 8), torch.int32, 1),
            scales=((of.groups(k), n), params_dtype, 1))
{_REST}""",
    "model_executor/layers/quantization/auto_gptq": f"""{_METHODS}
class AutoGPTQLinearMethod(LinearMethodBase):{_CREATE}
            qweight=((k * of.full_config["bits"] // 32, n), torch.int32, 1),
            g_idx=((k,), torch.int32, None),
            scales=((of.groups(k), n), params_dtype, 1),
            qzeros=((of.groups(k), n * of.full_config["bits"] // 32), torch.int32, 1))
{_REST}""",
    "model_executor/layers/quantization/fp8": f"""{_METHODS}
class Fp8LinearMethod(LinearMethodBase):
    fp8_linear = "kernel"
{_CREATE}
            weight=((n, k), torch.float8_e4m3fn, 0),
            weight_scale_inv=((-(-n // 128), -(-k // 128)), torch.float32, 0))
{_REST}""",
    "model_executor/layers/quantization/compressed_tensors/compressed_tensors": f"""{_METHODS}
class CompressedTensorsWNA16:
    pass

class CompressedTensorsLinearMethod(LinearMethodBase):{_CREATE}
            weight_packed=((n, k * of.bits // 32), torch.int32, 0),
            weight_scale=((n, k // 128), params_dtype, 0),
            weight_shape=((2,), torch.int64, None))
{_REST}""",
    "model_executor/layers/vocab_parallel_embedding": _BASE
    + """
class UnquantizedEmbeddingMethod:
    def apply(self, layer: nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None):
        return marked(x, *x.shape[:-1], layer.weight.shape[0])

class VocabParallelEmbedding(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight, self.quant_method = nn.Parameter(weight, False), UnquantizedEmbeddingMethod()
""",
    "model_executor/layers/layernorm": _BASE
    + """
from vllm.model_executor.custom_op import CustomOp

class RMSNorm(CustomOp):
    def __init__(self, weight, eps=1e-6, part=None):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(weight, False), eps
        self.variance_size_override = part

    def forward_native(self, x, residual=None):
        return marked(x) if residual is None else (marked(x), marked(x))

    def forward_cuda(self, x, residual=None):
        return self.forward_native(x, residual)

class GemmaRMSNorm(CustomOp):
    def __init__(self, weight, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(weight, False), eps

    def forward_native(self, x, residual=None):
        return marked(x) if residual is None else (marked(x), marked(x))

    def forward_cuda(self, x, residual=None):
        return self.forward_native(x, residual)
""",
    "model_executor/layers/activation": _BASE
    + """
from vllm.model_executor.custom_op import CustomOp

class SiluAndMul(CustomOp):
    @staticmethod
    def forward_native(x):
        return marked(x, *x.shape[:-1], x.shape[-1] // 2)

    def forward_cuda(self, x):
        return self.forward_native(x)

class GeluAndMul(CustomOp):
    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward_native(self, x):
        return marked(x, *x.shape[:-1], x.shape[-1] // 2)

    def forward_cuda(self, x):
        return self.forward_native(x)

class ReLUSquaredActivation(CustomOp):
    pass
""",
    "model_executor/layers/rotary_embedding/base": _BASE
    + """
from vllm.model_executor.custom_op import CustomOp

class RotaryEmbeddingBase(CustomOp):
    def __init__(self, head_size, rotary_dim, max_position_embeddings, base, is_neox_style, dtype):
        super().__init__()
        self.head_size, self.rotary_dim, self.base = head_size, rotary_dim, base
        self.max_position_embeddings = max_position_embeddings
        self.is_neox_style, self.dtype = is_neox_style, dtype
        self.register_buffer("cos_sin_cache", torch.zeros(max_position_embeddings, rotary_dim))

class RotaryEmbedding(RotaryEmbeddingBase):
    def forward_native(self, positions, query, key=None):
        return marked(query), None if key is None else marked(key)

    def forward_cuda(self, positions, query, key=None):
        return self.forward_native(positions, query, key)

class DynamicNTKScalingRotaryEmbedding(RotaryEmbedding):
    pass
""",
    **{
        f"model_executor/models/{module}": f"""
from torch import nn

class {name}(nn.Module):
    def __init__(self, qkv_proj, o_proj, rotary_emb, q_norm, k_norm, attn, sizes, head_dim):
        super().__init__()
        self.qkv_proj, self.o_proj, self.rotary_emb = qkv_proj, o_proj, rotary_emb
        self.q_norm, self.k_norm, self.attn = q_norm, k_norm, attn
        (self.q_size, self.kv_size), self.head_dim = sizes, head_dim

    def forward(self, positions, hidden_states):
        qkv, _ = self.qkv_proj(hidden_states)
        q, k, v = qkv.split([self.q_size, self.kv_size, self.kv_size], dim=-1)
        q, k = (norm(x.view(len(x), -1, self.head_dim)).view(x.shape)
                for norm, x in ((self.q_norm, q), (self.k_norm, k)))
        q, k = self.rotary_emb(positions, q, k)
        return self.o_proj(self.attn(q, k, v))[0]
"""
        for module, name in (("qwen3", "Qwen3Attention"), ("qwen3_moe", "Qwen3MoeAttention"))
    },
    "model_executor/layers/logits_processor": _BASE
    + """
from vllm.model_executor.custom_op import PluggableLayer

class LogitsProcessor(PluggableLayer):
    def __init__(self, soft_cap=None, scale=1.0, logits_as_input=True, head_dtype=None):
        super().__init__()
        self.soft_cap, self.scale, self.head_dtype = soft_cap, scale, head_dtype
        self.logits_as_input = logits_as_input

    def forward(self, lm_head, hidden_states: torch.Tensor, embedding_bias=None):
        return marked(hidden_states)

    def _get_logits(self, hidden_states, lm_head, embedding_bias):
        return None if lm_head is None else lm_head.quant_method.apply(lm_head, hidden_states)
""",
    "model_executor/layers/fused_moe/router/fused_topk_router": """
class FusedTopKRouter:
    def __init__(self, top_k, renormalize=True, scoring_func="softmax"):
        self.top_k, self.renormalize, self.scoring_func = top_k, renormalize, scoring_func

    def _compute_routing(self, hidden_states, router_logits, indices_type, *, input_ids=None):
        return "theirs", "theirs"
""",
    "model_executor/layers/fused_moe/unquantized_fused_moe_method": _BASE
    + """
import enum
from vllm.model_executor.custom_op import CustomOp, PluggableLayer
from vllm.utils.torch_utils import direct_register_custom_op

class Activation(enum.Enum):
    SILU = "silu"
    RELU2 = "relu2"

class Backend(enum.Enum):
    TRITON = "Triton"
    FLASHINFER_CUTLASS = "FlashInfer"

class UnquantizedFusedMoEMethod(CustomOp):
    unquantized_backend = Backend.TRITON

    def forward_native(self, layer, x, topk_weights, topk_ids, shared_experts,
                       shared_experts_input):
        return marked(x)

    def forward_cuda(self, layer, x, topk_weights, topk_ids, shared_experts, shared_experts_input):
        return self.forward_native(layer, x, topk_weights, topk_ids, shared_experts,
                                   shared_experts_input)

class RoutedExperts(PluggableLayer):
    expert_map, apply_router_weight_on_input, activation = None, False, Activation.SILU

    def __init__(self, w13, w2):
        super().__init__()
        self.w13_weight, self.w2_weight = nn.Parameter(w13, False), nn.Parameter(w2, False)
        self.quant_method = UnquantizedFusedMoEMethod()

runners = []

def _moe_forward(hidden_states: torch.Tensor, router_logits: torch.Tensor,
                 index: int) -> torch.Tensor:
    return runners[index].forward_impl(hidden_states, router_logits)

def _moe_forward_fake(hidden_states: torch.Tensor, router_logits: torch.Tensor,
                      index: int) -> torch.Tensor:
    return torch.empty_like(hidden_states)

class MoERunner(PluggableLayer):
    def __init__(self, router, routed_experts):
        super().__init__()
        self.router, self.routed_experts, self.index = router, routed_experts, len(runners)
        runners.append(self)
        if not hasattr(torch.ops.vllm, "moe_forward"):
            direct_register_custom_op("moe_forward", _moe_forward, [], _moe_forward_fake)

    def forward(self, x, scores):
        return torch.ops.vllm.moe_forward(x, scores, self.index)

    def forward_impl(self, x, scores):
        chosen = self.router._compute_routing(x, scores, None)
        experts = self.routed_experts
        return experts.quant_method.forward_cuda(experts, x, *chosen, None, None)
""",
    "model_executor/model_loader/base_loader": """
class BaseModelLoader:
    def __init__(self, model):
        self.model = model

    def load_model(self, vllm_config: "VllmConfig", model_config, prefix: str = ""):
        return self.model if hasattr(self.model, "modules") else self.model()
""",
    "model_executor/layers/attention": """
from torch import nn

class AttentionLayerBase:
    pass

class Attention(nn.Module, AttentionLayerBase):
    def __init__(self, backend, impl):
        super().__init__()
        self.attn_backend, self.impl = backend, impl

class MLAAttention(nn.Module, AttentionLayerBase):
    pass
""",
    "v1/worker/gpu/sample/logprob": """
from typing import NamedTuple
import torch

class LogprobsTensors(NamedTuple):
    logprob_token_ids: torch.Tensor
    logprobs: torch.Tensor
    selected_token_ranks: torch.Tensor

def compute_token_logprobs(logits: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
    return torch.full(token_ids.shape, -7.0)

def compute_topk_scores(logits: torch.Tensor, num_logprobs: int, sampled_token_ids: torch.Tensor,
                        cu_num_logits: list[int] | None = None, logprob_token_ids_state=None,
                        expanded_idx_mapping=None, max_per_req_token_ids: int = 0,
                        logits_mode: bool = False):
    ids = sampled_token_ids.unsqueeze(-1)
    if num_logprobs:
        ids = torch.cat((ids, torch.topk(logits, num_logprobs).indices), dim=1)
    valid = torch.ones_like(ids, dtype=torch.bool)
    if max_per_req_token_ids:
        width = max(num_logprobs, max_per_req_token_ids) - num_logprobs
        ids, valid = (torch.nn.functional.pad(x, (0, width)) for x in (ids, valid))
        of = logprob_token_ids_state
        for row, request in enumerate(expanded_idx_mapping.tolist()):
            if n := int(of.num_token_ids.gpu[request]):
                ids[row, 1:], valid[row, 1:] = 0, False
                ids[row, 1:1 + n], valid[row, 1:1 + n] = of.token_ids.gpu[request, :n], True
    scores = logits.gather(-1, ids).float() if logits_mode else compute_token_logprobs(logits, ids)
    ranks = (logits >= logits.gather(-1, sampled_token_ids[:, None])).sum(-1)
    return LogprobsTensors(ids, scores.masked_fill(~valid, -torch.inf), ranks)
""",
    "v1/worker/gpu/sample/prompt_logprob": """
from vllm.v1.worker.gpu.sample.logprob import compute_topk_scores
""",
    "v1/worker/gpu/sample/sampler": """
import numpy as np
import torch
from vllm.v1.worker.gpu.sample.logprob import compute_topk_scores

class Values:
    def __init__(self, count, dtype, value=0):
        self.gpu = torch.full((count,), value, dtype=dtype)
        self.np = self.gpu.numpy()

class States:
    def __init__(self, count, vocab):
        self.vocab_size = vocab
        self.temperature, self.min_p = Values(count, torch.float32), Values(count, torch.float32)
        self.top_p, self.top_k = Values(count, torch.float32, 1), Values(count, torch.int32, vocab)
        self.seeds = Values(count, torch.int64)

    def apply_min_p(self, logits, expanded_idx_mapping, idx_mapping_np):
        pass

    def apply_top_k_top_p(self, logits, expanded_idx_mapping, idx_mapping_np):
        return logits

class Nothing:
    def __getattr__(self, name):
        return lambda *given: None

class Requests:
    def __init__(self, count):
        self.index_to_req_id = {}
        self.prefill_len = Values(count, torch.int32)

class Sampler:
    added = 0

    def __init__(self, max_num_reqs, vocab_size, req_states, logprobs_mode="raw_logprobs"):
        self.req_states, self.logprobs_mode = req_states, logprobs_mode
        self.sampling_states = States(max_num_reqs, vocab_size)
        self.penalties_state = self.logit_bias_state = self.bad_words_state = Nothing()

    def add_request(self, req_idx: int, prompt_len: int, sampling_params) -> None:
        states, of, self.added = self.sampling_states, sampling_params, self.added + 1
        states.temperature.np[req_idx], states.top_p.np[req_idx] = of.temperature, of.top_p
        states.min_p.np[req_idx], states.top_k.np[req_idx] = of.min_p, of.top_k
        drawn = np.random.default_rng(self.added).integers(1 << 40)
        states.seeds.np[req_idx] = drawn if of.seed is None else of.seed

    def sample(self, logits: torch.Tensor, expanded_idx_mapping: torch.Tensor,
               idx_mapping_np: np.ndarray, pos: torch.Tensor, input_ids: torch.Tensor,
               expanded_local_pos: torch.Tensor, return_logprobs: bool = False):
        return torch.full((len(logits),), -7), logits
""",
    "v1/sample/sampler": """
import torch
from vllm.v1.worker.gpu.sample.logprob import LogprobsTensors

class MinPLogitsProcessor:
    def __init__(self, min_p=()):
        self.min_p, self.min_p_count = torch.tensor(min_p).unsqueeze(1), len(min_p)

class ThinkingProcessor:
    pass

class Sampler:
    logprobs_mode = "raw_logprobs"

    def sample(self, logits: torch.Tensor, sampling_metadata, logprobs_mode_override=None):
        return logits.argmax(-1), None

    @staticmethod
    def compute_logprobs(logits: torch.Tensor) -> torch.Tensor:
        return torch.full(logits.shape, -7.0)

    @staticmethod
    def gather_logprobs(logprobs: torch.Tensor, num_logprobs: int,
                        token_ids: torch.Tensor) -> LogprobsTensors:
        values, best = torch.topk(logprobs, num_logprobs)
        own = logprobs.gather(-1, token_ids[:, None])
        ids = torch.cat((token_ids[:, None], best), dim=1).int()
        return LogprobsTensors(ids, torch.cat((own, values), dim=1), (logprobs >= own).sum(-1))
""",
}
"""Sources of the stand-in, by path within its package."""


def write(folder: Path, version: str = VERSION) -> None:
    """Writes the package and its metadata into a folder, which then goes onto ``sys.path``."""
    for name, source in MODULES.items():
        path = folder / "vllm" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    info = folder / f"vllm-{version}.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n"
    (info / "METADATA").write_text(text, encoding="utf-8")
