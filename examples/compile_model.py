"""A model as programs: ``torch.compile(backend="ptxgen")``, bit for bit as in the block.

A layer as in a Llama is compiled with all passes and with none, forward and backward. Results and
gradients must be equal, on a GPU also to those in ``batch_invariant()``.

Needs PyTorch. Without a GPU the kernels run on the CPU device, with a smaller layer.

python examples/compile_model.py
"""

from __future__ import annotations

import sys
from typing import Any


def main() -> int:
    """Prints the report of the compiled graphs; returns 1 if a bit differs."""
    try:
        import torch
    except ModuleNotFoundError:
        print("This example needs PyTorch; there is nothing to show without.")
        return 0
    import ptxgen

    if torch.cuda.is_available():
        return compare(torch, "cuda", 1024, 512)
    with ptxgen.use_device("cpu"):
        return compare(torch, "cpu", 32, 4)


def layer(torch: Any, width: int) -> Any:
    """Returns a transformer layer: attention and a gated MLP, with norms and residuals."""
    functional = torch.nn.functional

    class Layer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
            self.out = torch.nn.Linear(width, width, bias=False)
            self.up = torch.nn.Linear(width, 4 * width, bias=False)
            self.down = torch.nn.Linear(2 * width, width, bias=False)
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))

        def forward(self, x: Any) -> Any:
            rows, length, _ = x.shape
            heads = self.qkv(self.norms[0](x)).view(rows, length, 3, 4, width // 4)
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(rows, length, width))
            gate, up = self.up(self.norms[1](x)).chunk(2, -1)
            return x + self.down(functional.relu(gate) * up)

    return Layer()


def compare(torch: Any, device: str, width: int, length: int) -> int:
    """Runs the layer compiled with passes, without, and in the block; compares the bits."""
    import ptxgen.torch

    torch.manual_seed(0)
    model = layer(torch, width).to(device)
    x = torch.randn(2, length, width, device=device)

    def results(run: Any) -> list[Any]:
        model.zero_grad()
        y = run(x)
        (y * y).mean().backward()
        return [y.detach(), *(p.grad for p in model.parameters())]

    all_passes, none = ptxgen.torch.Backend(strict=True), ptxgen.torch.Backend(passes=())
    found = [results(torch.compile(model, backend=b, dynamic=False)) for b in (all_passes, none)]
    if device == "cuda":
        with ptxgen.torch.batch_invariant():
            found.append(results(model))
    print(all_passes.report())
    forward, *_ = all_passes.report().programs
    print(f"\nthe forward pass:\n{forward}\n")
    first, *others = found
    if any(not torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True)):
        print("BITS DIFFER")
        return 1
    print(f"results and gradients have the same bits in {len(found)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
