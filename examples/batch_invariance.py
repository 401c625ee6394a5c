"""Shows whether a row's result depends on how many rows are computed with it.

For torch.mm it does: cuBLAS picks its kernel, and with it the order of the sums, by the whole
problem. ptxgen's contract may not look at M, so the bits of a row are its own.

python examples/batch_invariance.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import ptxgen

K, N = 1024, 1024
BATCHES = (1, 2, 3, 8, 17, 64, 100, 256, 1000)


def main() -> int:
    """Prints how many bits of row 0 change with the batch; 1 if ptxgen's do."""
    random = np.random.default_rng(0)
    x = random.standard_normal((max(BATCHES), K), dtype=np.float32)
    w = random.standard_normal((K, N), dtype=np.float32)
    show_torch(x, w)
    device = ptxgen.devices()[0]  # a GPU if there is one, else the interpreter
    batches = BATCHES if device.kind == "cuda" else (1, 2, 17)
    with ptxgen.use_device(device):
        return show(
            f"ptxgen on {device}", lambda rows: ptxgen.linear(rows, w, layout="kn"), x, batches
        )


def show(
    what: str, product: Callable[[np.ndarray], Any], x: np.ndarray, batches: Iterable[int]
) -> int:
    """Compares row 0 of the product for each batch size with the first; 1 if it changes."""
    print(f"{what}: row 0 of [M, {K}] x [{K}, {N}], as M grows")
    first = None
    changed = 0
    for m in batches:
        bits = np.asarray(product(x[:m]))[0].view(np.uint32)
        first = bits if first is None else first
        differ = int((bits != first).sum())
        changed += differ > 0
        print(f"  M = {m:5}: {differ:5} of {N} results differ from M = 1")
    print(f"  the row's bits {'DEPEND on M' if changed else 'do not depend on M'}")
    return int(changed > 0)


def show_torch(x: np.ndarray, w: np.ndarray) -> None:
    """Shows torch.mm with the same batches, where torch is installed."""
    try:
        import torch
    except ModuleNotFoundError:
        print("PyTorch is not installed, so torch.mm cannot be shown.")
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weight = torch.from_numpy(w).to(device)
    show(
        f"torch.mm on {device}",
        lambda rows: torch.mm(torch.from_numpy(rows).to(device), weight).cpu().numpy(),
        x,
        BATCHES,
    )


if __name__ == "__main__":
    sys.exit(main())
