"""Time ``grouped_linear`` beside ``torch._grouped_mm`` on a GPU, and compare bits with ``linear``.

``python tools/time_grouped.py [--seconds 60]`` prints a line for each model's experts, number of
tokens and load (even, or Zipf's law): medians of 7 replayed graphs each, ways in turns, L2 written
over before each. The least time is that of the bytes that active experts have at 3 TB/s, or of the
products at 800 TFLOP/s.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import ptxgen

MODELS = {  # experts, K, N, experts of a token, storage of weights
    "Mixtral, up": (8, 4096, 28672, 2, "nk"),
    "Mixtral, down": (8, 14336, 4096, 2, "nk"),
    "Qwen3-30B, up": (128, 2048, 1536, 8, "nk"),
    "gpt-oss-20b, up": (32, 2880, 5760, 4, "kn"),
    "DeepSeek-V3, up": (256, 7168, 4096, 8, "nk"),
}
TOKENS = (1, 16, 128, 1024, 8192)


class Timed:
    """A call, captured."""

    def __init__(self, call: Callable[[], Any]) -> None:
        call()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = call()

    def us(self, flush: Any) -> float:
        """Microseconds of a replay behind a written L2."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.fill_(1)
        begin.record()
        self.graph.replay()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3


def ends(rows: int, experts: int, load: str) -> Any:
    """Where the rows of experts end, drawn."""
    share = torch.ones(experts)
    if load == "Zipf":
        share = 1 / torch.arange(1, experts + 1)[torch.randperm(experts)].float()
    drawn = torch.multinomial(share / share.sum(), rows, replacement=True)
    return torch.bincount(drawn, minlength=experts).cumsum(0).int().cuda()


def same(y: Any, x: Any, w: Any, offsets: Any) -> bool:
    """Whether all rows are those of ``linear``."""
    begin = 0
    for group, end in enumerate(offsets.tolist()):
        if end > begin and not torch.equal(y[begin:end], ptxgen.linear(x[begin:end], w[group])):
            return False
        begin = end
    return True


def line(name: str, tokens: int, load: str, w: Any, flush: Any) -> str:
    """One row of the table."""
    experts, k, n, each, _ = MODELS[name]
    rows = tokens * each
    x = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    offsets = ends(rows, experts, load)
    ours = Timed(lambda: ptxgen.grouped_linear(x, w, offsets))
    stock = Timed(lambda: torch._grouped_mm(x, w, offs=offsets))
    times: list[tuple[float, float]] = [(ours.us(flush), stock.us(flush)) for _ in range(7)]
    own, other = (statistics.median(column) for column in zip(*times, strict=True))
    active = int((offsets.diff(prepend=offsets[:1] * 0) > 0).sum())
    nbytes = 2 * (active * k * n + rows * (k + n))
    least = max(nbytes / 3e12, 2 * rows * k * n / 800e12) * 1e6
    right = "" if same(ours.result, x, w, offsets) else " WRONG BITS"
    return (
        f"| {name} | {tokens} | {load} | {active} | {least:.1f} | {other:.1f} | {own:.1f} | "
        f"{other / own:.2f} |{right}"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="no new line after these")
    begin, limit = time.monotonic(), parser.parse_args().seconds
    torch.manual_seed(0)
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    print(torch.cuda.get_device_name(), torch.__version__)
    print("| experts | tokens | load | active | least, µs | torch | ptxgen | times |")
    for name, (experts, k, n, _, storage) in MODELS.items():
        shape = (experts, n, k) if storage == "nk" else (experts, k, n)
        w = torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_(std=0.05)
        w = w.transpose(1, 2) if storage == "nk" else w
        for tokens in TOKENS:
            for load in ("even", "Zipf"):
                if time.monotonic() - begin < limit:
                    print(line(name, tokens, load, w, flush), flush=True)
        del w
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
