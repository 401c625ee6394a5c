"""A linear layer, forward and backward, with every bit compared with the NumPy oracle.

python examples/quickstart.py
"""

from __future__ import annotations

import sys

import numpy as np

import ptxgen
from ptxgen import reference


def main() -> int:
    """Runs the layer on the GPU if there is one, else on the CPU device."""
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 200), dtype=np.float32)  # [M, K]
    w = random.standard_normal((200, 96), dtype=np.float32)  # [K, N], layout "kn"
    bias = random.standard_normal(96, dtype=np.float32)
    dy = random.standard_normal((64, 96), dtype=np.float32)

    oracle = {
        "y  = gelu(x w + bias)": reference.linear(x, w, bias, activation="gelu", layout="kn"),
        "dx = dy w'": reference.linear_dgrad(dy, w, layout="kn"),
        "dw = x' dy": reference.linear_wgrad(x, dy, layout="kn"),
    }
    print(f"on {ptxgen.devices()[0]}")  # a GPU if there is one, else the PTX interpreter
    y, dx, dw = on_torch(x, w, bias, dy) or (
        ptxgen.linear(x, w, bias, activation="gelu", layout="kn"),
        ptxgen.linear_dgrad(dy, w, layout="kn"),
        ptxgen.linear_wgrad(x, dy, layout="kn"),
    )
    for (name, expected), got in zip(oracle.items(), (y, dx, dw), strict=True):
        same = np.array_equal(got.view(np.uint32), expected.view(np.uint32))
        print(f"{name}: {got.size} results, {'same bits' if same else 'DIFFERENT BITS'}")
        if not same:
            return 1
    return 0


def on_torch(*arrays: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Makes the same calls on torch tensors on the GPU; None without a torch that has one."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    if not torch.cuda.is_available():
        return None
    x, w, bias, dy = (torch.from_numpy(array).cuda() for array in arrays)
    y = torch.empty((64, 96), device="cuda")
    ptxgen.linear(
        x, w, bias, activation="gelu", out=y, layout="kn"
    )  # on the current stream, no wait
    dx = ptxgen.linear_dgrad(dy, w, layout="kn")
    dw = ptxgen.linear_wgrad(x, dy, layout="kn")
    print("on torch tensors:", y.device)
    return tuple(t.cpu().numpy() for t in (y, dx, dw))


if __name__ == "__main__":
    sys.exit(main())
