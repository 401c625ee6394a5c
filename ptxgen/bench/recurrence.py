"""``ptxgen bench recurrence``: recurrences of random sizes, against loops over tokens in PyTorch.

Each entry of :data:`OPERATIONS` draws cases of one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from ptxgen.bench import draw
from ptxgen.bench.opcase import DrawnArea, OpCase, Work, with_gradients
from ptxgen.bench.runner import QUICK

STATES = 16
"""State size of a channel, as in all Mamba models."""


def tokens(random: Random, batch: int, least: int = 256, most: int = 4096) -> int:
    """Draws the number of tokens of a sequence, log-uniform in ``least`` .. ``most``, so that
    ``batch`` sequences have at most 16384.
    """
    return min(draw.integer(random, least, most), 16384 // batch)


def channels(random: Random) -> int:
    """Draws a number of channels, a multiple of 128, log-uniform in 768 .. 5120."""
    return 128 * draw.integer(random, 6, 40)


# -- PyTorch's side -------------------------------------------------------------------------
def scanned(torch: Any, x: Any, delta: Any, a: Any, b: Any, c: Any, d: Any, z: Any, h: Any) -> Any:
    """Computes a selective scan with PyTorch token by token; first all decays, as ``transformers``
    does.

    Arguments as those of :func:`ptxgen.selective_scan`, all given, with softplus; ``h``: state
    before the first token.
    """
    f = torch.nn.functional
    steps = f.softplus(delta.float())
    decays = torch.exp(steps[..., None] * a)
    terms = (steps * x.float())[..., None] * b[:, :, None].float()
    ys = []
    for t in range(x.shape[1]):
        h = decays[:, t] * h + terms[:, t]
        ys.append(torch.matmul(h.to(x.dtype), c[:, t, :, None])[..., 0])
    y = torch.stack(ys, 1) + x * d.to(x.dtype)
    return y * f.silu(z)


def recurred(torch: Any, a: Any, b: Any) -> Any:
    """Computes ``h[t] = a[t] * h[t - 1] + b[t]`` with PyTorch token by token, in f32; returns all h
    in the dtype of ``a``.
    """
    h, ys = torch.zeros_like(a[:, 0], dtype=torch.float32), []
    for t in range(a.shape[1]):
        h = a[:, t].float() * h + b[:, t].float()
        ys.append(h.to(a.dtype))
    return torch.stack(ys, 1)


# -- cases ----------------------------------------------------------------------------------
def _selective(random: Random, *, decode: bool = False, backward: bool = False) -> OpCase:
    batch, n = random.choice((1, 2, 4, 8)), STATES
    length, width = 1 if decode else tokens(random, batch), channels(random)

    def make(torch: Any) -> Work:
        import ptxgen.torch

        def drawn(*shape: int, dtype: Any = torch.bfloat16) -> Any:
            return torch.randn(shape, device="cuda", dtype=dtype)

        wide = partial(drawn, dtype=torch.float32)
        x, delta, z = (drawn(batch, length, width) for _ in range(3))
        b, c = (drawn(batch, length, n) for _ in range(2))
        given = x, delta, -wide(width, n).abs(), b, c, wide(width), z, wide(batch, width, n)

        def ours(x: Any, delta: Any, a: Any, b: Any, c: Any, d: Any, z: Any, h: Any) -> Any:
            scan = ptxgen.torch.selective_scan if backward else ptxgen.selective_scan
            return scan(x, delta, a, b, c, d, z, state=h, softplus=True)

        stock = partial(scanned, torch)
        if backward:
            return with_gradients(torch, drawn(batch, length, width), given, ours, stock)
        return Work(given, ours, stock, compiled=False)

    name = f"selective_scan{' + backward' if backward else ' decode' if decode else ''}"
    passes = 1 if not backward else 3
    moved = passes * 2 * batch * length * (4 * width + 2 * n) + 4 * batch * width * n
    return OpCase(name, f"{batch}x{length}x{width}x{n}", moved, make)


def _linear(random: Random, *, backward: bool = False) -> OpCase:
    batch = random.choice((1, 2, 4, 8))
    length, width = tokens(random, batch), channels(random)

    def make(torch: Any) -> Work:
        import ptxgen.torch

        shape = batch, length, width
        a = torch.rand(shape, device="cuda")
        b, dy = (torch.randn(shape, device="cuda") for _ in range(2))
        stock = partial(recurred, torch)
        if backward:
            return with_gradients(torch, dy, (a, b), ptxgen.torch.linear_recurrence, stock)
        return Work((a, b), ptxgen.linear_recurrence, stock, compiled=False)

    name = f"linear_recurrence{' + backward' if backward else ''}"
    arrays = 3 if not backward else 3 + 5
    return OpCase(name, f"{batch}x{length}x{width}", 4 * arrays * batch * length * width, make)


OPERATIONS: Mapping[str, Callable[[Random], OpCase]] = {
    "selective_scan": _selective,
    "selective_scan decode": partial(_selective, decode=True),
    "selective_scan + backward": partial(_selective, backward=True),
    "linear_recurrence": _linear,
    "linear_recurrence + backward": partial(_linear, backward=True),
}
"""Functions that draw a random case, by name of the case."""


class Recurrence(DrawnArea):
    """Benchmark ``ptxgen bench recurrence``: random selective scans and linear recurrences, against
    loops over tokens in PyTorch.
    """

    name = "recurrence"
    about = (
        "Times recurrences beside loops over tokens in PyTorch, in one run, with a "
        "cold L2; medians in µs. Sizes are batch x tokens x channels (x states). "
        "limit = bytes / 4.3 TB/s."
    )
    effort = QUICK  # loops take long
    operations = OPERATIONS
    count = 4
    slow_host = False


main, _parser = Recurrence.main, Recurrence.parser
