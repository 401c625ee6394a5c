"""Problems of ``ptxgen bench attention``: named ones, and those that a seed draws.

Integers are log-uniform: sequences 1 .. 64; heads that share one of keys 1 .. 16, and heads of
keys, with at most 64 heads in all; keys 16 .. 32768, as many queries, or one in decoding. Head
dimensions (64, 96, 128, 192, 256), causal or full, and the keys of a page (16 .. 256, powers of
two) are uniform. A seed draws the same problems for all kinds; each leaves out those that take too
long (:data:`MOST_FLOPS`) or too much memory (:data:`MOST_BYTES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from ptxgen.arguments import attention_sizes
from ptxgen.bench import draw
from ptxgen.bench.opcase import BANDWIDTH
from ptxgen.errors import OptionError

FORWARD, TRAINING, DECODE, PAGED = KINDS = ("forward", "training", "decode", "paged")
"""Training: forward and backward. Decode: one query a sequence; paged: of keys in pages."""
SEQUENCES, HEADS, GROUPS, KEYS = 64, 64, 16, (16, 32768)
DEPTHS = (64, 96, 128, 192, 256)
PAGES = (16, 32, 64, 128, 256)
MOST_FLOPS = 1 << 43
"""Of a problem: what an H200 needs some 15 ms for."""
MOST_BYTES = 8 << 30
"""Of a problem's arrays, gradients and pages among them."""
RATE = 5e14
"""Flops a second; only to choose a number of repetitions."""
NAMED = (
    *("1x32/8x4096x4096x128c", "4x32/8x2048x2048x128c", "1x32/8x16384x16384x128c"),
    *("1x32/8x4096x4096x128", "8x16/16x1024x1024x64c", "2x16/16x512x512x64c"),
    *("4x32/32x2048x2048x96c", "2x16/4x4096x4096x192c", "2x16/4x4096x4096x256c"),
    *("1x32/8x1x4096x128", "1x32/8x1x32768x128", "16x32/8x1x4096x128"),
    *("64x32/8x1x4096x128", "256x32/8x1x2048x128"),
    *("1x32/8x1x32768x128p64", "16x32/8x1x4096x128p16", "64x32/8x1x4096x128p64"),
    "256x32/8x1x2048x128p256",
)
"""As :attr:`Case.shape` writes them."""


@dataclass(frozen=True)
class Case:
    """Attention of bf16 or f16. ``page``: keys of a page; 0: a sequence's keys lie together."""

    kind: str
    sequences: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    depth: int
    causal: bool = False
    page: int = 0

    @property
    def shape(self) -> str:
        """Sequences x heads of queries / of keys x queries x keys x head dimension; c: causal, p:
        keys of a page.
        """
        sizes = f"{self.queries}x{self.keys}x{self.depth}{'c' if self.causal else ''}"
        page = f"p{self.page}" if self.page else ""
        return f"{self.sequences}x{self.heads}/{self.kv_heads}x{sizes}{page}"

    def __str__(self) -> str:
        return f"{self.kind} {self.shape}"

    @property
    def flops(self) -> int:
        """Of two products, or with the backward pass of seven; those of causal ones halved."""
        products = 7 if self.kind == TRAINING else 2
        pairs = self.queries * self.keys >> self.causal
        return 2 * products * self.sequences * self.heads * pairs * self.depth

    @property
    def nbytes(self) -> int:
        """Of q, k, v and the result; of the gradients in training."""
        rows = self.heads * self.queries + self.kv_heads * self.keys
        return 4 * self.sequences * rows * self.depth << (self.kind == TRAINING)

    @property
    def held(self) -> int:
        """Of all arrays: keys of pages lie together as well, for the peers."""
        return self.nbytes << (self.kind == PAGED)

    @property
    def expected_us(self) -> float:
        """About the time that it takes."""
        return 1.5e6 * max(self.flops / RATE, self.nbytes / BANDWIDTH)


def drawn(count: int, seed: int, kinds: Iterable[str]) -> list[Case]:
    """``count`` problems of each kind, the first of those that ``seed`` draws, kinds in turns.
    Raises OptionError as :func:`ptxgen.bench.draw.shapes`.
    """
    return draw.first(count, seed, *(_drawn(Random(seed), kind) for kind in kinds))


def _drawn(random: Random, kind: str) -> Iterator[Case]:
    for case in _any(random, kind):
        if case.flops <= MOST_FLOPS and case.held <= MOST_BYTES:
            yield case


def _any(random: Random, kind: str) -> Iterator[Case]:
    integer = partial(draw.integer, random)
    while True:
        sequences, group = integer(1, SEQUENCES), integer(1, GROUPS)
        kv_heads, keys = integer(1, HEADS // group), integer(*KEYS)
        depth, page = (of[int(random.random() * len(of))] for of in (DEPTHS, PAGES))
        causal = random.random() < 0.5
        sizes = sequences, kv_heads * group, kv_heads
        if kind in (FORWARD, TRAINING):
            yield Case(kind, *sizes, keys, keys, depth, causal)
        else:
            yield Case(kind, *sizes, 1, keys, depth, page=page if kind == PAGED else 0)


def select(shapes: Sequence[str], kinds: Sequence[str]) -> list[Case]:
    """The problems of these shapes, kinds in turns. OptionError for other text, or none."""
    return draw.taking_turns((case for shape in shapes for case in _read(shape)), kinds, shapes)


def _read(shape: str) -> list[Case]:
    """The kinds of a problem."""
    sizes, causal, page = attention_sizes(shape)
    sequences, heads, kv_heads, queries, keys, depth = sizes
    if heads % kv_heads:
        raise OptionError(f"the shape is {shape!r}; takes heads that are a multiple of KV_HEADS")
    if causal and queries != keys:
        raise OptionError(f"the shape is {shape!r}; causal takes as many queries as keys")
    if page and queries > 1:
        raise OptionError(f"the shape is {shape!r}; pages take one query")
    kinds = (PAGED,) if page else (DECODE,) if queries == 1 else (FORWARD, TRAINING)
    return [
        Case(kind, sequences, heads, kv_heads, queries, keys, depth, causal, page) for kind in kinds
    ]
