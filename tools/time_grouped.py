"""Times ``grouped_linear`` against ``torch._grouped_mm`` on a GPU, and compares bits.

``python tools/time_grouped.py [--seconds 60]`` prints a line for each model's experts, number of
tokens and load (even, or Zipf's law): medians of 7 CUDA graph replays each, alternating, with L2
overwritten before each. The column "least" is the larger of the active experts' bytes at 3 TB/s and
of the products at 800 TFLOP/s. Bits are compared with ``linear``.

``--random 60 --seed 1`` times random problems instead, with 4 to 128 experts, K and N of 512 to
7168, and 1 to 16384 rows: the product and both its gradients. It prints, by load, the geometric
mean, the tenth percentile and the minimum of torch's time / ptxgen's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import torch

import ptxgen
from ptxgen.bench.bands import quantile
from ptxgen.bench.draw import log_uniform
from ptxgen.bench.results import geomean

MODELS = {  # experts, K, N, experts of a token, storage of weights
    "Mixtral, up": (8, 4096, 28672, 2, "nk"),
    "Mixtral, down": (8, 14336, 4096, 2, "nk"),
    "Qwen3-30B, up": (128, 2048, 1536, 8, "nk"),
    "gpt-oss-20b, up": (32, 2880, 5760, 4, "kn"),
    "DeepSeek-V3, up": (256, 7168, 4096, 8, "nk"),
}
TOKENS = (1, 16, 128, 1024, 8192)
TURNS = 7
MOST_WEIGHTS = 1 << 31
"""Maximum elements of all experts' weights in a random problem."""


class Timed:
    """A call captured in a CUDA graph."""

    def __init__(self, call: Callable[[], Any]) -> None:
        call()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = call()

    def us(self, flush: Any) -> float:
        """Returns the time of one replay in µs, after overwriting L2 with ``flush``."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.fill_(1)
        begin.record()
        self.graph.replay()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3


def ends(rows: int, experts: int, load: str) -> Any:
    """Returns the row after the last of each expert's group, random, int32 ``[experts]``."""
    share = torch.ones(experts)
    if load == "Zipf":
        share = 1 / torch.arange(1, experts + 1)[torch.randperm(experts)].float()
    drawn = torch.multinomial(share / share.sum(), rows, replacement=True)
    return torch.bincount(drawn, minlength=experts).cumsum(0).int().cuda()


def weights(experts: int, k: int, n: int, storage: str) -> Any:
    """Returns random weights of all experts, ``[E, K, N]``; "nk" is a view of ``[E, N, K]``."""
    shape = (experts, n, k) if storage == "nk" else (experts, k, n)
    w = torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_(std=0.05)
    return w.transpose(1, 2) if storage == "nk" else w


def same(y: Any, x: Any, w: Any, offsets: Any) -> bool:
    """Returns whether all rows of ``y`` have the bits of ``linear``."""
    begin = 0
    for group, end in enumerate(offsets.tolist()):
        if end > begin and not torch.equal(
            y[begin:end], ptxgen.linear(x[begin:end], w[group], layout="kn")
        ):
            return False
        begin = end
    return True


def line(name: str, tokens: int, load: str, w: Any, flush: Any) -> str:
    """Times one problem of a model; returns its row of the table."""
    experts, k, n, each, _ = MODELS[name]
    rows = tokens * each
    x = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    offsets = ends(rows, experts, load)
    ours = Timed(lambda: ptxgen.grouped_linear(x, w, offsets, layout="kn"))
    stock = Timed(lambda: torch._grouped_mm(x, w, offs=offsets))
    times: list[tuple[float, float]] = [(ours.us(flush), stock.us(flush)) for _ in range(TURNS)]
    own, other = (statistics.median(column) for column in zip(*times, strict=True))
    active = int((offsets.diff(prepend=offsets[:1] * 0) > 0).sum())
    nbytes = 2 * (active * k * n + rows * (k + n))
    least = max(nbytes / 3e12, 2 * rows * k * n / 800e12) * 1e6
    right = "" if same(ours.result, x, w, offsets) else " WRONG BITS"
    return (
        f"| {name} | {tokens} | {load} | {active} | {least:.1f} | {other:.1f} | {own:.1f} | "
        f"{other / own:.2f} |{right}"
    )


def timed(ours: Callable[[], Any], stock: Callable[[], Any], flush: Any) -> tuple[float, float]:
    """Returns the median µs of both calls, replayed alternately. Raises ValueError if results
    differ.
    """
    mine, other = Timed(ours), Timed(stock)
    times = [(mine.us(flush), other.us(flush)) for _ in range(TURNS)]
    off = (mine.result.float() - other.result.float()).abs().max()
    if not off <= 2**-4 * other.result.float().abs().max():
        raise ValueError(f"results are off by {off.item():.3g}")
    return statistics.median(t for t, _ in times), statistics.median(t for _, t in times)


def drawn(random: Random, flush: Any) -> Iterator[tuple[str, str, float]]:
    """Draws a problem; yields kind, load, and torch's time / ptxgen's for each of its products."""
    experts = random.choice((4, 8, 16, 32, 64, 128))
    k, n = (64 * round(log_uniform(random, 8, 112)) for _ in range(2))
    while experts * k * n > MOST_WEIGHTS:
        experts //= 2
    rows, load = round(log_uniform(random, 1, 16384)), random.choice(("even", "Zipf"))
    storage = random.choice(("nk", "kn"))
    w = weights(experts, k, n, storage)
    x, dy = (torch.randn(rows, i, device="cuda", dtype=w.dtype) for i in (k, n))
    offs, wt = ends(rows, experts, load), w.transpose(1, 2)
    grouped, dtype = torch._grouped_mm, "bfloat16"
    kinds = {
        "forward": (
            lambda: ptxgen.grouped_linear(x, w, offs, layout="kn"),
            lambda: grouped(x, w, offs=offs),
        ),
        "dgrad": (
            lambda: ptxgen.grouped_linear(dy, wt, offs, layout="kn"),
            lambda: grouped(dy, wt, offs=offs),
        ),
        "wgrad": (
            lambda: ptxgen.grouped_linear_wgrad(x, dy, offs, out_dtype=dtype, layout="kn"),
            lambda: grouped(x.t(), dy, offs=offs),
        ),
    }
    for kind, (ours, stock) in kinds.items():
        own, other = timed(ours, stock, flush)
        print(f"{kind} {rows} rows, {experts} of {k} x {n} {storage}, {load}: ", end="")
        print(f"{own:.1f} {other:.1f} {other / own:.2f}", flush=True)
        yield kind, load, other / own


def main() -> None:
    """Prints the table, or statistics of random problems."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="no new line after these")
    parser.add_argument("--random", type=int, metavar="COUNT", help="problems that --seed draws")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin, limit = time.monotonic(), options.seconds
    torch.manual_seed(options.seed)
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    print(torch.cuda.get_device_name(), torch.__version__)
    if options.random:
        random, found = Random(options.seed), defaultdict(list)
        for _ in range(options.random):
            if time.monotonic() - begin < limit:
                for kind, load, ratio in drawn(random, flush):
                    found[kind, load].append(ratio)
        for (kind, load), ratios in sorted(found.items()):
            tail = quantile(ratios, 0.1)
            print(
                f"{kind}, {load}: {len(ratios)} problems, geometric mean {geomean(ratios):.3f}, "
                f"tenth percentile {tail:.3f}, least {min(ratios):.3f}"
            )
        return
    print("| experts | tokens | load | active | least, µs | torch | ptxgen | times |")
    for name, (experts, k, n, _, storage) in MODELS.items():
        w = weights(experts, k, n, storage)
        for tokens in TOKENS:
            for load in ("even", "Zipf"):
                if time.monotonic() - begin < limit:
                    print(line(name, tokens, load, w, flush), flush=True)
        del w
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
