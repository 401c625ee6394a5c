"""Shows whether a sequence's logits depend on the other sequences in its batch.

A small transformer of random weights writes 24 tokens, once alone and then as one sequence of
larger batches, greedily and with a key-value cache. With stock PyTorch the logits change with the
batch, because cuBLAS picks its kernel by the whole problem. In ``batch_invariant()`` the same model
gives the same bits at every batch size. Needs PyTorch and an NVIDIA GPU.

python examples/decode_invariance.py
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

WIDTH, HEADS, LAYERS, VOCABULARY = 1024, 8, 4, 4096
PROMPT, TOKENS = 16, 24
BATCHES = (1, 2, 3, 8, 17, 64)


def main() -> int:
    """Prints what changes with the batch, before and after; 1 if ptxgen's logits do."""
    try:
        import torch
    except ModuleNotFoundError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("This example needs PyTorch and an NVIDIA GPU; there is nothing to show without.")
        return 0
    import ptxgen.torch

    torch.manual_seed(0)
    model = decoder(torch).to("cuda", torch.bfloat16)
    prompts = torch.randint(VOCABULARY, (max(BATCHES), PROMPT), device="cuda")
    with torch.no_grad():
        compare(torch, "stock PyTorch", model, prompts, nullcontext())
        changed = compare(
            torch, "batch_invariant()", model, prompts, ptxgen.torch.batch_invariant()
        )
    return int(changed)


def compare(torch: Any, what: str, model: Any, prompts: Any, block: Any) -> bool:
    """Decodes the first prompt in batches of several sizes; whether its logits ever change."""
    print(f"{what}: the first sequence of a batch, {TOKENS} tokens of {VOCABULARY} logits each")
    alone = None
    changed = False
    with block:
        for batch in BATCHES:
            logits = decode(torch, model, prompts[:batch])
            alone = logits if alone is None else alone
            steps = (logits != alone).any(-1).sum().item()
            most = (logits - alone).abs().max().item()
            print(
                f"  batch {batch:3}: other logits at {steps:2} of {TOKENS} steps, by up to {most:g}"
            )
            changed |= steps > 0
    print(f"  the logits {'DEPEND on' if changed else 'do not depend on'} the batch")
    return changed


def decode(torch: Any, model: Any, prompts: Any) -> Any:
    """Returns the first sequence's logits, decoded greedily together with the others."""
    cache: list[Any] = [None] * LAYERS
    tokens, logits = prompts, []
    for _ in range(TOKENS):
        last = model(tokens, cache)[:, -1]
        tokens = last.argmax(-1, keepdim=True)
        logits.append(last[0].clone())
    return torch.stack(logits)


def decoder(torch: Any) -> Any:
    """Returns a decoder in plain PyTorch; nothing in it knows of ptxgen."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.up = nn.Linear(WIDTH, 4 * WIDTH)
            self.down = nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any, past: Any) -> tuple[Any, Any]:
            q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, -1)).unbind(2)
            if past is not None:
                k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
            queries, keys = q.shape[1], k.shape[1]
            scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
            seen = torch.ones(queries, keys, dtype=torch.bool, device=x.device)
            scores = scores.masked_fill(~seen.tril(keys - queries), -torch.inf)
            mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
            x = x + self.out(mixed.flatten(2))
            return x + self.down(functional.gelu(self.up(self.norms[1](x)))), (k, v)

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens: Any, cache: list[Any]) -> Any:
            x = self.embedding(tokens)
            for i, block in enumerate(self.blocks):
                x, cache[i] = block(x, cache[i])
            return self.head(x)

    return Decoder()


if __name__ == "__main__":
    sys.exit(main())
