"""Times a layer of Mixtral-8x7B on a GPU, stock PyTorch against ``batch_invariant()``.

``python tools/time_mixture.py`` needs ``transformers``. It makes a decoder layer of full size with
random bf16 weights, whose stock experts run ``torch._grouped_mm``. The forward pass is captured as
a CUDA graph both ways; replays alternate, after L2 is overwritten: medians of 9, µs.
"""

from __future__ import annotations

import contextlib
import statistics
from typing import Any

import torch
from time_grouped import Timed
from transformers import MixtralConfig
from transformers.models.mixtral import modeling_mixtral as mixtral

import ptxgen.torch

SIZES = ((1, 1), (8, 1), (64, 1), (1, 512), (4, 512), (1, 4096))
"""Pairs (sequences, tokens of each)."""
TURNS = 9


def layer() -> tuple[Any, Any]:
    """Returns a decoder layer, and the module that computes rotary angles from positions."""
    config = MixtralConfig()
    config._attn_implementation, config._experts_implementation = "sdpa", "grouped_mm"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        found = mixtral.MixtralDecoderLayer(config, 0).eval()
        rotary = mixtral.MixtralRotaryEmbedding(config)
    for weight in found.parameters():
        torch.nn.init.normal_(weight, std=0.02)
    return found, rotary


def captured(run: Any, block: bool) -> Timed:
    """Captures ``run`` as a CUDA graph, with ``block`` in ``batch_invariant()``."""
    way = ptxgen.torch.batch_invariant if block else contextlib.nullcontext
    with torch.no_grad(), way():
        run()
        return Timed(run)


def main() -> None:
    """Prints the table of times."""
    torch.manual_seed(0)
    of, rotary = layer()
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    print(torch.cuda.get_device_name(), torch.__version__)
    print("| sequences x tokens | stock | block | block / stock |")
    for batch, tokens in SIZES:
        x = torch.randn(batch, tokens, 4096, device="cuda")
        at = torch.arange(tokens, device="cuda")[None].expand(batch, -1)
        how = {"position_embeddings": rotary(x, at), "position_ids": at}
        graphs = [captured(lambda x=x, how=how: of(x, **how), block) for block in (False, True)]
        turns = [[graph.us(flush) for graph in graphs] for _ in range(TURNS)]
        stock, own = (statistics.median(column) for column in zip(*turns, strict=True))
        print(f"| {batch} x {tokens} | {stock:.1f} | {own:.1f} | {own / stock:.3f} |", flush=True)


if __name__ == "__main__":
    main()
