"""QLoRA, bit for bit: a frozen base of 4 bits, LoRA adapters, and any cut into micro-batches.

A small model is trained twice with the same cut of its batches, then with others: each run must
end with the same weights. Two things make it so. Every product here is batch-invariant, forward
and backward, so what belongs to a token does not depend on the tokens beside it. And the gradient
of an adapter, a sum over tokens, is taken of one sequence at a time and added to an f32 sum in the
order of the sequences, so that the sum does not depend on where a micro-batch ends. (One product
over all rows of a micro-batch would be faster, and its bits would depend on the cut.)

Needs PyTorch. Without a GPU the kernels run on the CPU device, with a smaller model.

python examples/qlora.py
"""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """Sizes of the model and of its batches."""

    width: int
    layers: int
    vocabulary: int
    rank: int
    sequences: int
    length: int
    steps: int
    cuts: tuple[int, ...]
    """Sequences in a micro-batch, one number for each run."""


ON_A_GPU = Sizes(256, 4, 512, 16, 8, 64, 30, (1, 1, 2, 8))
ON_THE_CPU = Sizes(64, 1, 64, 8, 4, 4, 2, (1, 1, 2))


def main() -> int:
    """Prints the losses and a digest of each run's adapters; returns 1 if a bit differs."""
    try:
        import torch
    except ModuleNotFoundError:
        print("This example needs PyTorch; there is nothing to show without.")
        return 0
    import ptxgen

    if torch.cuda.is_available():
        return compare(torch, ON_A_GPU, "cuda")
    with ptxgen.use_device("cpu"):
        return compare(torch, ON_THE_CPU, "cpu")


def compare(torch: Any, sizes: Sizes, device: str) -> int:
    """Trains once for each cut and compares the runs; returns 1 if a bit differs."""
    results = [train(torch, sizes, device, together) for together in sizes.cuts]
    same = all(result == results[0] for result in results)
    print(f"{'identical' if same else 'DIFFERENT'} losses and weights in {len(results)} runs")
    return int(not same)


def train(torch: Any, sizes: Sizes, device: str, together: int) -> tuple[list[float], str]:
    """Trains one model; returns the losses and a digest of the adapters after the last step."""
    functional = torch.nn.functional
    torch.manual_seed(0)
    model = language_model(torch, sizes).to(device)
    adapters = [p for p in model.parameters() if p.requires_grad]
    for p in adapters:
        p.main_grad = torch.zeros_like(p)
    optimizer = torch.optim.AdamW(adapters, lr=1e-2)
    shape = sizes.steps, sizes.sequences, 1
    start = torch.randint(sizes.vocabulary, shape, device=device)
    steps = torch.arange(sizes.length + 1, device=device)
    data = (start * 31 + steps * 7) % sizes.vocabulary  # something to learn
    losses = []
    begin = time.perf_counter()
    for batch in data:
        found = []
        for part in batch.split(together):
            logits = model(part[:, :-1])
            loss = functional.cross_entropy(
                logits.float().flatten(0, 1), part[:, 1:].flatten(), reduction="none"
            )
            # The mean over the whole batch: each token's share does not know the micro-batch.
            loss.backward(torch.full_like(loss, 1 / (sizes.sequences * sizes.length)))
            found.append(loss.detach())
        for p in adapters:
            p.grad = p.main_grad
        optimizer.step()
        for p in adapters:
            p.main_grad.zero_()
        losses.append(float(torch.cat(found).double().mean()))
    weights = b"".join(p.detach().cpu().numpy().tobytes() for p in adapters)
    digest = hashlib.sha256(weights).hexdigest()
    print(
        f"{sizes.sequences // together} x {together} sequences: loss {losses[0]:.4f} -> "
        f"{losses[-1]:.4f}, adapters {digest[:16]}, {time.perf_counter() - begin:.1f} s"
    )
    return losses, digest


def language_model(torch: Any, sizes: Sizes) -> Any:
    """Returns a model that predicts the next token from the last, in bfloat16 but for adapters."""
    import ptxgen.torch

    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(sizes.width)
            self.up = nn.Linear(sizes.width, 4 * sizes.width)
            self.down = nn.Linear(4 * sizes.width, sizes.width)

        def forward(self, x: Any) -> Any:
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    model = nn.Sequential(
        nn.Embedding(sizes.vocabulary, sizes.width),
        *(Block() for _ in range(sizes.layers)),
        nn.Linear(sizes.width, sizes.vocabulary),
    )
    model.requires_grad_(False)
    done = ptxgen.torch.convert(model, format="nf4")
    assert len(done.converted) == 2 * sizes.layers + 1 and not done.skipped, done
    model.to(torch.bfloat16)  # which leaves the weights of 4 bits as they are
    for block in model[1:-1]:
        block.up = lora(torch, block.up, sizes.rank)
        block.down = lora(torch, block.down, sizes.rank)
    return model


def lora(torch: Any, base: Any, rank: int) -> Any:
    """Returns a module that computes ``base(x) + B·A·x``; A and B, in f32, are trained."""
    import ptxgen

    class Product(torch.autograd.Function):
        """``x · wᵀ`` for sequences x; the gradient of w is added to its ``main_grad``."""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.w, low = w, w.to(x.dtype)
            ctx.save_for_backward(x, low)
            return ptxgen.linear(x, low, layout="nk")

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, low = ctx.saved_tensors
            dy = dy.contiguous()
            for sequence, gradient in zip(x, dy, strict=True):  # always in this order
                ptxgen.linear_wgrad(
                    sequence, gradient, layout="nk", out=ctx.w.main_grad, accumulate=True
                )
            return ptxgen.linear_dgrad(dy, low, layout="nk"), None

    class Lora(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base_layer = base
            self.a = torch.nn.Parameter(torch.randn(rank, base.in_features) / rank)
            self.b = torch.nn.Parameter(torch.zeros(base.out_features, rank))

        def forward(self, x: Any) -> Any:
            return self.base_layer(x) + Product.apply(Product.apply(x, self.a), self.b)

    return Lora()


if __name__ == "__main__":
    sys.exit(main())
