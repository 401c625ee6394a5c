"""Trains a small transformer twice, under different conditions, to identical weights.

The first run is plain. The second checkpoints its activations, so that every forward pass runs
twice, works on another stream, and shares the GPU with other work. Every loss and the weights are
compared bit for bit. Needs PyTorch and an NVIDIA GPU.

python examples/train_twice.py
"""

from __future__ import annotations

import hashlib
import sys
import time
from typing import Any

WIDTH, HEADS, LAYERS, VOCABULARY = 256, 4, 2, 512
BATCH, LENGTH, STEPS = 16, 64, 30


def main() -> int:
    """Prints the losses and a digest of both runs' weights; returns 1 if a bit differs."""
    try:
        import torch
    except ModuleNotFoundError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("This example needs PyTorch and an NVIDIA GPU; there is nothing to show without.")
        return 0
    torch.use_deterministic_algorithms(True)  # the embedding's gradient, for one
    differ = False
    for dtype in (torch.float32, torch.bfloat16):
        first = train(torch, dtype, disturbed=False)
        second = train(torch, dtype, disturbed=True)
        same = first == second
        print(f"  {'identical' if same else 'DIFFERENT'} losses and weights")
        differ |= not same
    return int(differ)


def train(torch: Any, dtype: Any, *, disturbed: bool) -> tuple[list[float], str]:
    """Trains one model; returns the losses and a digest of the weights after the last step."""
    import ptxgen.torch

    torch.manual_seed(0)
    model = transformer(torch).to("cuda", dtype)
    done = ptxgen.torch.convert(model)
    assert not done.skipped, done
    data = torch.randint(VOCABULARY, (STEPS, BATCH, 1), device="cuda")
    data = (
        data * 31 + torch.arange(LENGTH + 1, device="cuda") * 7
    ) % VOCABULARY  # something to learn
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    noise = torch.randn(1024, 1024, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    other.wait_stream(torch.cuda.current_stream())
    start = time.perf_counter()
    losses = []
    # The layers are converted; the block serves the products of the attention.
    with torch.cuda.stream(stream if disturbed else torch.cuda.current_stream()):
        for batch in data:
            if disturbed:
                with torch.cuda.stream(other):
                    noise = torch.tanh(noise * 1.1)
            with ptxgen.torch.batch_invariant():
                logits = model(batch[:, :-1], disturbed)
                targets = batch[:, 1:].flatten()
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets)
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        losses = torch.stack(losses).tolist()
        weights = [p.detach().float().cpu().numpy().tobytes() for p in model.parameters()]
    digest = hashlib.sha256(b"".join(weights)).hexdigest()
    seconds = time.perf_counter() - start
    print(
        f"{dtype}, {'disturbed' if disturbed else 'plain':9}: loss {losses[0]:.4f} -> "
        f"{losses[-1]:.4f}, weights {digest[:16]}, {seconds:.1f} s"
    )
    return losses, digest


def transformer(torch: Any) -> Any:
    """Returns a small transformer that predicts tokens, in plain PyTorch."""
    nn, functional = torch.nn, torch.nn.functional
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.up = nn.Linear(WIDTH, 4 * WIDTH)
            self.down = nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                self.qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            )
            scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
            hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=x.device).triu(1)
            mixed = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
            x = x + self.out(mixed.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norms[1](x))))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) / 10)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens: Any, again: bool) -> Any:
            x = self.embedding(tokens) + self.positions
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if again else block(x)
            return self.head(x)

    return Transformer()


if __name__ == "__main__":
    sys.exit(main())
