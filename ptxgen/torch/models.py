"""Attention and experts for models of `transformers`, and attention over an engine's paged cache.

A mask of `transformers` is a function of positions. For causal masks, windows and padding,
:func:`_mask` returns int32 ``[B, form, 1 + window, 3 or 3 + L]``, expanded in the second and third
dimension, whose sizes alone matter. The last dimension has a sequence's first key, number of keys,
and number of queries; then, if padding has holes or the host must not read it, a flag of visibility
for each of L keys. Any other mask is a tensor of booleans.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

from ptxgen.errors import OptionError
from ptxgen.numerics.attention import SPLIT
from ptxgen.torch.experts import compute_experts
from ptxgen.torch.sdpa import attention

PLAIN, CAUSAL, SHIFTED = 1, 1, 2
"""Numbers that add up to the size ``form`` of a mask's second dimension (see the module): PLAIN
always, CAUSAL for a causal mask, SHIFTED if the cache has dropped the first keys.
"""

PAGED: Final = "paged|"
"""Prefix of the name of an attention in continuous batching, in older versions of `transformers`,
such as 5.17.
"""


def register_attention(name: str = "ptxgen") -> None:
    """Registers :func:`ptxgen.attention` as ``attn_implementation=name`` for models of
    `transformers`.

    Windows, softcaps, sinks, causal masks and padding on either side become arguments of the
    operation; other masks are passed as tensors. Positions count from a sequence's first real
    token. So its bits do not depend on padding, on the rest of the batch, or on a key-value cache,
    even one that drops keys outside of a window. In continuous batching
    (:func:`ptxgen.engines.transformers.serve`) it attends to the keys of each request, however
    requests are batched and prompts are cut.

    Raises ModuleNotFoundError without transformers, of which it needs version 5. When a model runs,
    it raises OptionError for dropout of attention weights, and the errors of
    :func:`ptxgen.torch.attention`.
    """
    from transformers import AttentionInterface, AttentionMaskInterface, masking_utils

    AttentionInterface.register(name, attend)
    AttentionInterface.register(f"{PAGED}{name}", attend)
    outside_graph = torch.compiler.disable(partial(_mask, masking_utils, None))
    AttentionMaskInterface.register(name, partial(_mask, masking_utils, outside_graph))


def register_experts(name: str = "ptxgen") -> None:
    """Registers ptxgen's experts as ``experts_implementation=name`` for models of `transformers`:
    :func:`ptxgen.moe_dispatch`, :func:`ptxgen.grouped_linear` and :func:`ptxgen.moe_combine`.

    Products add the biases; results of a token's experts are added in f32. The host does not wait
    for the GPU, and a token's result depends on that token alone. Weights may be [K, N] or [N, K],
    with or without a gate. A slot whose expert the module lacks (experts on several GPUs) gives
    zeros.

    Raises ModuleNotFoundError without transformers, of which it needs version 5. When a model runs,
    it raises the errors of these functions.
    """
    from transformers.integrations.moe import ExpertsInterface

    ExpertsInterface.register(name, compute_experts)


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Any = None,
    position_bias: Any = None,
    **batch: Any,
) -> tuple[Any, None]:
    """Computes attention of q, k, v [B, H, S, D] for `transformers`; returns the result [B, S, H,
    D], and None for the weights. A mask, if given, replaces ``is_causal`` and ``sliding_window``.
    ``s_aux``: sinks; ``position_bias``: added to the scores; ``batch``: other arguments, among them
    those of continuous batching. Raises OptionError for dropout.
    """
    if dropout:
        raise OptionError(f"dropout is {dropout}; takes 0: weights of attention are not dropped")
    how: dict[str, Any] = {"scale": scaling, "softcap": softcap, "bias": position_bias}
    if s_aux is not None:
        how["sinks"] = s_aux
    if "read_index" in batch:
        how["window"] = sliding_window or getattr(module, "sliding_window", None)
        return _attend_requests(module, query, key, value, batch, how), None
    if attention_mask is None:
        how["causal"] = getattr(module, "is_causal", True) if is_causal is None else is_causal
        how["window"] = sliding_window
    elif attention_mask.dtype is torch.int32:
        form, window = attention_mask.shape[1] - PLAIN, attention_mask.shape[2] - 1
        numbers = attention_mask[:, 0, 0]
        how["starts"], how["lengths"], how["query_lengths"] = numbers[:, :3].T.contiguous()
        how["causal"], how["window"] = bool(form & CAUSAL), window or None
        mask = numbers[:, None, None, 3:].bool() if numbers.shape[1] > 3 else None
        if form & SHIFTED:
            key, value = (torch.nn.functional.pad(x, (0, 0, SPLIT, 0)) for x in (key, value))
            mask = None if mask is None else torch.nn.functional.pad(mask, (SPLIT, 0))
        how["mask"] = mask
    elif attention_mask.dtype is torch.bool:
        how["mask"] = attention_mask[..., : key.shape[-2]]
    elif position_bias is not None:
        how["bias"] = position_bias + attention_mask[..., : key.shape[-2]]
    else:
        how["bias"] = attention_mask[..., : key.shape[-2]]
    if how["bias"] is not None and how["bias"].dtype is not torch.float32:
        how["bias"] = how["bias"].to(query.dtype)
    given = (x.transpose(1, 2) for x in (query, key, value))
    return attention(*given, layout="bshd", **how), None


def _attend_requests(
    module: Any, query: Any, key: Any, value: Any, batch: dict[str, Any], how: dict[str, Any]
) -> Any:
    """Computes attention of a batch of `transformers`' continuous batching, a ragged one: queries
    [1, H, T, D], request after request, and their keys and values [1, HK, L, D], which its cache
    gathers. Returns [1, T, H, D].

    A cache of a window lacks the first keys of long requests. Then a page table of pages of one key
    gives each key its position modulo :data:`SPLIT`, as splits of which nothing is seen change no
    bit. Raises OptionError if the batch has a layout of other attentions.
    """
    if batch.get("block_table") is not None:
        raise OptionError("the batch has a block_table; takes keys that the cache gathers")
    if (cache := batch.get("cache")) is None:
        key, value = (x[0].transpose(0, 1) for x in (key, value))
    else:  # where the layer leaves the update of the cache to its attention
        indices = {n: batch[n] for n in ("read_index", "write_index")}
        key, value = cache.update(key, value, module.layer_idx, **indices)
    window = how["window"]
    kind = "sliding_attention" if window else "full_attention"
    queries, keys = (_of_layer(batch[f"cu_seq_lens_{x}"], kind) for x in "qk")
    how |= {"causal": True, "cu_seqlens": queries}
    if window and any(x.numel() for x in batch["read_index"]):  # keys of earlier batches
        longest = batch["max_length_k"] if "max_length_k" in batch else batch["max_seqlen_k"]
        if (positions := batch.get("position_ids")) is None:
            raise OptionError(
                f"{type(module).__name__} has a window and gets no position_ids, by which the keys "
                "of its cache have positions"
            )
        table, lengths = _positioned(queries, keys, positions[0], _of_layer(longest, kind), key)
        how |= {"block_table": table, "lengths": lengths}
        key, value = key[:, None], value[:, None]
    else:
        how["cu_seqlens_k"] = keys
    return attention(query[0].transpose(0, 1), key, value, **how)[None]


def _of_layer(x: Any, kind: str) -> Any:
    """Returns the value of a layer of this kind, where there are several kinds of layers."""
    return x[kind] if isinstance(x, dict) else x


def _positioned(queries: Any, keys: Any, positions: Any, longest: int, key: Any) -> tuple[Any, Any]:
    """Returns a page table, int32 ``[B, longest + SPLIT - 1]``, and numbers of keys ``[B]``, with
    which keys [L, HK, D] have their positions modulo :data:`SPLIT`. ``queries``, ``keys``: offsets
    of the requests' queries and keys, int32 ``[B + 1]``; ``positions``: those of the queries.
    """
    count = keys.diff()
    last = (queries[1:] - 1).clamp(min=0).long()
    first = torch.where(count > 0, (positions[last] + 1 - count) % SPLIT, 0)
    places = torch.arange(longest + SPLIT - 1, device=key.device)
    table = (keys[:-1] - first)[:, None] + places  # before its first key, others that none sees
    return table.clamp(0, key.shape[0] - 1).int(), (count + first).int()


def _mask(
    masking_utils: Any,
    outside_graph: Callable[..., Any] | None,
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Any = None,
    attention_mask: Any = None,
    device: Any = "cpu",
    **rest: Any,
) -> Any:
    """Returns the mask of visible keys for `transformers`. For causal masks, windows and padding it
    is int32 and has each sequence's bounds (see the module); else it is booleans [B, 1, S, L].

    ``masking_utils``: the module of `transformers`, which compilers do not import.
    ``outside_graph``: a function that a compiler calls outside of its graph, as it cannot read the
    closures of mask functions; not needed for whole sequences without padding. Other arguments are
    those of a mask function that is registered with `transformers`.
    """
    sizes = batch_size, q_length, kv_length, q_offset, kv_offset
    if mask_function is None:
        mask_function = masking_utils.causal_mask_function
    plain = (
        mask_function is masking_utils.causal_mask_function
        or mask_function is masking_utils.bidirectional_mask_function
    )
    if outside_graph is not None and not plain and torch.compiler.is_compiling():
        if not _starts_at_zero(attention_mask, q_offset, kv_offset):
            return outside_graph(*sizes, mask_function, attention_mask, device, **rest)
        known = None  # the mask's own comparisons are read where the graph is compiled
    else:
        known = _pattern(mask_function, masking_utils)
    if known is None or (kv_offset and not known[1]):
        rest |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return masking_utils.sdpa_mask(*sizes, mask_function, attention_mask, device=device, **rest)
    causal, window = known
    # Places count from where the mask begins; ``first`` and ``end`` are a sequence's own.
    last = kv_offset + kv_length
    first = torch.zeros(batch_size, dtype=torch.int64, device=device)
    end, holes = first + last, None
    if attention_mask is not None:
        seen = attention_mask[:, :last].bool()
        places = torch.arange(seen.shape[1], device=seen.device)
        first = torch.where(seen, places, last).amin(-1)
        end = torch.where(seen, places + 1, 0).amax(-1)
        if _must_not_sync(seen) or not bool((seen.sum(-1) >= end - first).all()):
            missing = (0, last - seen.shape[1])
            holes = torch.nn.functional.pad(seen, missing)[:, kv_offset:]
    if causal:
        end = (first * 0 + q_offset + q_length).minimum(end)
    queries = (end - q_offset).clamp(0, q_length) if causal or window else first * 0 + q_length
    gone = kv_offset - first  # keys of a sequence that are not there any more
    # They count in whole splits: these change no bit where nothing of them is seen.
    starts = torch.where(gone > 0, SPLIT - gone % SPLIT, SPLIT - gone) if kv_offset else first
    lengths = (end - kv_offset + (SPLIT if kv_offset else 0) - starts).clamp(min=0)
    numbers = torch.stack((starts, lengths, queries), -1).int()
    if holes is not None:
        numbers = torch.cat((numbers, holes.int()), -1)
    form = PLAIN + (CAUSAL if causal else 0) + (SHIFTED if kv_offset else 0)
    return numbers[:, None, None].expand(batch_size, form, 1 + window, -1)


def _starts_at_zero(attention_mask: Any, q_offset: Any, kv_offset: Any) -> bool:
    """Whether sizes alone say that all sequences have their first key at 0: a boolean mask is then
    enough, as attention has the same bits with it as with an int32 one (:func:`_mask`).
    """
    known = isinstance(q_offset, int) and isinstance(kv_offset, int)
    return attention_mask is None and known and kv_offset == 0


def _must_not_sync(x: Any) -> bool:
    """Whether the host must not read values: a compiler traces, or a CUDA graph is captured."""
    if torch.compiler.is_compiling():
        return True
    return bool(x.is_cuda and torch.cuda.is_current_stream_capturing())


def _pattern(function: Callable[..., Any], of: Any) -> tuple[bool, int] | None:
    """Returns whether a mask function is causal, and its window (0: none); None for other
    functions. ``of``: `transformers`' module ``masking_utils``.
    """
    if function in (of.causal_mask_function, of.bidirectional_mask_function):
        return function is of.causal_mask_function, 0
    code = getattr(function, "__code__", None)
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    if code is of.sliding_window_bidirectional_overlay(1).__code__:
        return False, held[0] + 1
    if code is not of.and_masks(of.causal_mask_function).__code__:
        return None
    back = of.sliding_window_overlay(1).__code__
    windows, parts = [], []
    for part in held[0]:
        if getattr(part, "__code__", None) is back:
            windows.append(part.__closure__[0].cell_contents)
        else:
            parts.append(_pattern(part, of))
    if None in parts:
        return None
    causal = any(p[0] for p in parts if p)
    if windows and not causal:
        return None
    windows += [p[1] for p in parts if p and p[1]]
    return causal, min(windows, default=0)


def paged_attention(
    query: torch.Tensor,
    kv_cache: torch.Tensor,
    query_start_loc: torch.Tensor,
    seq_lens: torch.Tensor,
    block_table: torch.Tensor,
    *,
    causal: bool = True,
    **options: Any,
) -> Any:
    """``softmax(scale · q kᵀ + mask) · v`` over an engine's pages: :func:`ptxgen.torch.attention`.

    Shapes
        ``query`` ``[tokens, H, D]``, sequence after sequence, with offsets ``query_start_loc`` ``[B
        + 1]``; ``kv_cache`` ``[2, blocks, block_size, HK, D]``, keys and values, or a pair of both;
        ``seq_lens`` ``[B]``: number of keys of each sequence, including those of its queries;
        ``block_table`` ``[B, most]``: indices of the blocks that contain them. The result is
        ``[tokens, H, D]``; tokens after the last sequence get zeros.
    Dtypes
        Those of :func:`ptxgen.attention`, whose ``options`` (``window``, ``softcap``, ``sinks``,
        ``scale``, ``return_lse``, ``out``, …) it takes; offsets, lengths and block indices int32.
    Order
        That of contiguous keys, whatever the size of blocks. The host reads no values, so a
        replayed CUDA graph uses the current contents of all tensors.
    Errors
        Those of :func:`ptxgen.attention`.
    Source
        ``ptxgen/torch/models.py``.
    """
    key, value = kv_cache[0], kv_cache[1]
    places = {"cu_seqlens": query_start_loc, "lengths": seq_lens, "block_table": block_table}
    return attention(query, key, value, causal=causal, **places, **options)
