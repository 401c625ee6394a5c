"""The attention backend ``CUSTOM`` of vLLM: ragged batches over its pages, by ptxgen.

vLLM packs keys and values of a head in the last dimension: a layer's cache is [blocks, HK, block
size, 2 D] for its readers, and lies in memory as [blocks, block size, HK, 2 D] (NHD) or as it reads
(HND). Attention reads both as strided views. The host reads no lengths, so a CUDA graph serves
every batch of its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm._custom_ops import reshape_and_cache_flash
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    MultipleOf,
)
from vllm.v1.attention.backends.utils import get_kv_cache_layout

import ptxgen.torch as pt
from ptxgen.engines.vllm.layers import count
from ptxgen.errors import EngineError
from ptxgen.numerics.attention import HEAD_MAX

BLOCK = 16
"""Number of tokens of which a block of the cache has a multiple."""
HEAD_STEP = 8
"""Divisor of head sizes: rows of a cache then begin at multiples of 16 bytes, and are read in
place."""
DECODER = "decoder"
"""vLLM's name of causal attention over a cache."""


class Backend(AttentionBackend):
    """Causal attention with windows, sinks and softcaps."""

    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes: ClassVar[list[str]] = ["auto", "float16", "bfloat16"]
    forward_includes_kv_cache_update = False

    @staticmethod
    def get_supported_kernel_block_sizes() -> list[Any]:
        return [MultipleOf(BLOCK)]

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[Implementation]:
        return Implementation

    @staticmethod
    def get_builder_cls() -> type[MetadataBuilder]:
        return MetadataBuilder

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int,
        block_size: int,
        num_kv_heads: int,
        head_size: int,
        cache_dtype_str: str = "auto",
    ) -> tuple[int, ...]:
        return num_blocks, num_kv_heads, block_size, 2 * head_size

    @staticmethod
    def get_kv_cache_stride_order(include_num_layers_dimension: bool = False) -> tuple[int, ...]:
        orders: dict[tuple[str, bool], tuple[int, ...]] = {
            ("NHD", False): (0, 2, 1, 3),
            ("HND", False): (0, 1, 2, 3),
            ("NHD", True): (1, 0, 3, 2, 4),
            ("HND", True): (1, 2, 0, 3, 4),
        }
        return orders[get_kv_cache_layout(), include_num_layers_dimension]

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size % HEAD_STEP == 0 and head_size <= HEAD_MAX

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        return True


@dataclass
class Metadata:
    """A batch: tokens of all requests one after the other, and the pages of each.

    ``query_start_loc`` [B + 1]: first token of each request; ``seq_lens`` [B]: its number of keys,
    those of this step's tokens included; ``block_table`` [B, most]: its blocks. All are int32.
    """

    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor


class MetadataBuilder(AttentionMetadataBuilder):
    """Takes over the tensors of a batch as they are. They live as long as the engine, and nothing
    of a launch depends on their values, so every batch may run in a CUDA graph.
    """

    _cudagraph_support: ClassVar[Any] = AttentionCGSupport.ALWAYS

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> Metadata:
        of = common_attn_metadata
        if of.causal is not True:
            raise EngineError(f"attention of a batch with causal = {of.causal!r}; takes True")
        return Metadata(of.query_start_loc, of.seq_lens, of.block_table_tensor)


class Implementation(AttentionImpl):
    """The attention of one layer. Arguments are vLLM's; ``sinks`` [H] are those of gpt-oss.

    Raises EngineError for ALiBi, and for attention other than causal over a cache.
    """

    supports_dcp = False

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: torch.Tensor | None = None,
    ) -> None:
        if alibi_slopes is not None or attn_type != DECODER:
            what = "ALiBi" if alibi_slopes is not None else f"attention of type {attn_type!r}"
            advice = "choose a backend of vLLM, such as attention_config={'backend': 'FLASH_ATTN'}"
            raise EngineError(f"{what} is not served; {advice}")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.options: dict[str, Any] = {
            "scale": self.scale,
            "window": sliding_window or None,
            "softcap": logits_soft_cap or None,
            "sinks": sinks,
        }

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: Metadata | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Writes attention of queries [T, H, D] over the cache to ``output`` [T, H, D] and returns
        it. Tokens that pad the batch get zeros, and so do all without metadata (vLLM's profiling).

        Raises EngineError for a quantized output.
        """
        if output_scale is not None or output_block_scale is not None:
            raise EngineError(f"{layer.layer_name}: a quantized output of attention is not served")
        if attn_metadata is None:
            return output.fill_(0)
        of = attn_metadata
        places = of.query_start_loc, of.seq_lens, of.block_table
        given, how = (query, self._split(kv_cache), *places), {**self.options, "out": output}
        count(getattr(layer, "layer_name", layer), "attention", pt.paged_attention, *given, **how)
        with torch.no_grad():
            pt.paged_attention(*given, **how)
        return output

    def do_kv_cache_update(
        self,
        layer: Any,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        """Copies keys and values [T, HK, D] to their slots of the cache, bit for bit. Slot -1 is
        left out.
        """
        caches = self._split(kv_cache)
        scales = layer._k_scale, layer._v_scale
        reshape_and_cache_flash(key, value, *caches, slot_mapping, self.kv_cache_dtype, *scales)

    def _split(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns keys and values [blocks, block size, HK, D] as views of a layer's cache."""
        keys, values = kv_cache.transpose(1, 2).split(self.head_size, dim=-1)
        return keys, values
