"""``ptxgen bench attention --step``: a Llama of four layers, stock PyTorch against ptxgen.

Layers have the sizes of an 8-billion-parameter Llama and call ``scaled_dot_product_attention``;
ptxgen serves it in ``batch_invariant()``. The vocabulary is small, so that layers dominate.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ptxgen.bench import measure, model, results
from ptxgen.bench.runner import Area

SHAPE = model.LLAMA_8B
DECODED = 32, 2048
"""Decoding step: number of sequences, and keys of each with the new token."""
COUNT = 7
WAYS = "stock", "ptxgen"


@dataclass(frozen=True)
class Row:
    """Times of a workload in stock PyTorch (``stock``) and in ``batch_invariant()`` (``ours``):
    median ms on the host clock, and PyTorch's peak allocated bytes.

    Bytes are None for CUDA graphs, which keep their memory between replays.
    """

    what: str
    stock_ms: float
    ours_ms: float
    stock_bytes: int | None
    ours_bytes: int | None

    to_stock = results.quotient("ours_ms", "stock_ms")
    memory = results.quotient("ours_bytes", "stock_bytes")

    stock_gb = results.quotient("stock_bytes", 1e9)
    ours_gb = results.quotient("ours_bytes", 1e9)


def rows(
    torch: Any, shape: model.Shape = SHAPE, decoded: tuple[int, int] = DECODED, count: int = COUNT
) -> Iterator[Row]:
    """Times a training step (loss and gradients), a forward pass and a decoding step of a Llama of
    sizes ``shape``.

    ``decoded``: sequences and keys of the decoding step; ``count``: timings of each. Timings of
    stock PyTorch and of ``batch_invariant()`` alternate.
    """
    llama = model.Static(torch, shape)
    blocks = model.blocks(torch)
    variants = [blocks[name] for name in WAYS]
    tokens, targets = (
        llama.drawn(shape.batch, shape.length),
        llama.drawn(shape.batch * shape.length),
    )
    weights = llama.weights()

    def train() -> None:
        torch.autograd.grad(llama.loss(tokens, targets), weights)

    def forward() -> None:
        with torch.no_grad():
            llama(tokens)

    for weight in weights:
        weight.requires_grad_()
    yield _row(torch, "training step", variants, [train, train], count)
    yield _row(torch, "forward", variants, [forward, forward], count)

    token, cache = llama.drawn(decoded[0], 1), llama.reserve(*decoded)
    graphs = []
    for way in variants:
        with way(), torch.no_grad():
            graphs.append(_captured(torch, lambda: llama(token, cache)))
    sizes = " x ".join(map(str, decoded))
    row = _row(
        torch, f"token of {sizes}, CUDA graph", variants, [g.replay for g in graphs], 5 * count
    )
    yield replace(row, stock_bytes=None, ours_bytes=None)


def _captured(torch: Any, call: Callable[[], Any]) -> Any:
    """Captures ``call`` as a CUDA graph, after three runs on a side stream."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def _row(
    torch: Any,
    what: str,
    variants: Sequence[Callable[[], AbstractContextManager[Any]]],
    works: Sequence[Callable[[], Any]],
    count: int,
) -> Row:
    def turn(
        way: Callable[[], AbstractContextManager[Any]], work: Callable[[], Any]
    ) -> tuple[float, int]:
        with way():
            torch.cuda.reset_peak_memory_stats()
            return measure.host_ms(torch, work), torch.cuda.max_memory_allocated()

    both = {name: partial(turn, *pair) for name, *pair in zip(WAYS, variants, works, strict=True)}
    found = measure.alternate(both, count, warm=2)
    stock, ours = (statistics.median(ms for ms, _ in found[name]) for name in WAYS)
    return Row(what, stock, ours, *(found[name][-1][1] for name in WAYS))


class Steps(Area):
    """Benchmark ``ptxgen bench attention --step``: training step, forward pass and decoding step of
    a model, stock and in ``batch_invariant()``.
    """

    name = "attention --step"
    row = Row
    columns = (
        *(("what", "what"), ("stock ms", "stock_ms:.3f"), ("ours ms", "ours_ms:.3f")),
        *(("/ stock", "to_stock:.3f"), ("stock GB", "stock_gb:.2f"), ("ours GB", "ours_gb:.2f")),
        ("/ stock", "memory:.3f"),
    )
    tier = "tc"

    def cases(self) -> list[model.Shape]:
        return [replace(SHAPE, dtype=self.options.dtype)]

    def rows(self, case: model.Shape) -> Iterator[Row]:
        return rows(self.torch, case, count=3 if self.options.quick else COUNT)
