"""Draws from rows, as an operator. (``topk`` has one that is made from its row alone.)"""

from __future__ import annotations

import torch

from ptxgen.torch.generic import named


def sample(
    logits: torch.Tensor,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int | torch.Tensor = 0,
    offset: int | torch.Tensor = 0,
) -> torch.Tensor:
    """:func:`ptxgen.sample`, for compilers and CUDA graphs as well. Indices have no gradient.

    A graph that is captured has the numbers ``seed`` and ``offset`` of its capture, but of tensors
    what is in them when it is replayed.
    """
    seeds, seed = (seed, 0) if isinstance(seed, torch.Tensor) else (None, seed)
    offsets, offset = (offset, 0) if isinstance(offset, torch.Tensor) else (None, offset)
    options = {"temperature": float(temperature), "top_k": top_k, "top_p": float(top_p)}
    found: torch.Tensor = named("sample")(
        logits, seeds, offsets, **options, seed=seed, offset=offset
    )
    return found
