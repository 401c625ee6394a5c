"""Cases of ``ptxgen bench ops``: pointwise formulas, and copies that arrange elements anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxgen import functions as f
from ptxgen import layout
from ptxgen.autograd import pointwise
from ptxgen.bench.opcase import OpCase, Work


def _case(
    name: str,
    shapes: tuple[tuple[int, ...], ...],
    files: float,
    ours: Callable[..., Any],
    stock: Callable[..., Any],
) -> OpCase:
    """Of bf16 tensors; ``files``: how many like the first are read and written."""
    size = 1
    for each in shapes[0]:
        size *= each

    def make(torch: Any) -> Work:
        given = (torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in shapes)
        return Work(tuple(given), ours, lambda *x: stock(torch, *x))

    return OpCase(name, "x".join(map(str, shapes[0])), int(2 * size * files), make)


@pointwise
def biased(x: Any, bias: Any) -> Any:
    """As a fused function."""
    return f.gelu_tanh(x + bias)


def _halves(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def cases() -> list[OpCase]:
    """All of them, in the order of the table."""
    large, small = (8192, 14336), (16, 4096)
    square, heads = (8192, 8192), (8, 2048, 32, 128)
    angles = (2048, 1, 64)

    def gated(torch: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.silu(x) * y

    def stock_biased(torch: Any, x: Any, bias: Any) -> Any:
        return torch.nn.functional.gelu(x + bias, approximate="tanh")

    return [
        *(_case("swiglu", (s, s), 3, f.swiglu, gated) for s in (large, (256, 14336), small)),
        _case("gelu", (large,), 2, f.gelu, lambda torch, x: torch.nn.functional.gelu(x)),
        _case("bias + gelu_tanh", (large, large[1:]), 2, biased, stock_biased),
        _case("add", (large, large), 3, f.add, lambda torch, x, y: x + y),
        _case("add", (small, small), 3, f.add, lambda torch, x, y: x + y),
        _case(
            "contiguous, transposed",
            (square,),
            2,
            lambda x: layout.contiguous(x.t()),
            lambda torch, x: x.t().contiguous(),
        ),
        _case(
            "contiguous, heads",
            (heads,),
            2,
            lambda x: layout.contiguous(x.transpose(1, 2)),
            lambda torch, x: x.transpose(1, 2).contiguous(),
        ),
        _case("rope", (heads, angles, angles), 2, layout.rope, _halves),
    ]
