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
"""Kinds of problems. "training" is forward and backward; "decode" has one query a sequence;
"paged" is decoding from a paged KV cache.
"""
SEQUENCES, HEADS, GROUPS, KEYS = 64, 64, 16, (16, 32768)
DEPTHS = (64, 96, 128, 192, 256)
PAGES = (16, 32, 64, 128, 256)
MOST_FLOPS = 1 << 43
"""Most FLOPs of a problem that is drawn: about 15 ms on an H200."""
MOST_BYTES = 8 << 30
"""Most bytes of the arrays of a problem that is drawn, gradients and pages included."""
RATE = 5e14
"""Assumed FLOP/s, from which the number of repetitions follows."""
NAMED = (
    *("1x32/8x4096x4096x128c", "4x32/8x2048x2048x128c", "1x32/8x16384x16384x128c"),
    *("1x32/8x4096x4096x128", "8x16/16x1024x1024x64c", "2x16/16x512x512x64c"),
    *("4x32/32x2048x2048x96c", "2x16/4x4096x4096x192c", "2x16/4x4096x4096x256c"),
    *("1x32/8x1x4096x128", "1x32/8x1x32768x128", "16x32/8x1x4096x128"),
    *("64x32/8x1x4096x128", "256x32/8x1x2048x128"),
    *("1x32/8x1x32768x128p64", "16x32/8x1x4096x128p16", "64x32/8x1x4096x128p64"),
    "256x32/8x1x2048x128p256",
)
"""Named problems, in the notation of :attr:`Case.shape`."""


@dataclass(frozen=True)
class Case:
    """A problem of attention. ``page``: keys in a page; 0 where the keys are contiguous."""

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
        """Text of the sizes: sequences x query heads / KV heads x queries x keys x head dimension;
        then "c" if causal, and "p" with the keys in a page if paged.
        """
        sizes = f"{self.queries}x{self.keys}x{self.depth}{'c' if self.causal else ''}"
        page = f"p{self.page}" if self.page else ""
        return f"{self.sequences}x{self.heads}/{self.kv_heads}x{sizes}{page}"

    def __str__(self) -> str:
        return f"{self.kind} {self.shape}"

    @property
    def flops(self) -> int:
        """FLOPs of two products (seven with the backward pass), halved under a causal mask."""
        products = 7 if self.kind == TRAINING else 2
        pairs = self.queries * self.keys >> self.causal
        return 2 * products * self.sequences * self.heads * pairs * self.depth

    @property
    def nbytes(self) -> int:
        """Bytes of q, k, v and the result at 2 bytes an element; twice as many in training."""
        rows = self.heads * self.queries + self.kv_heads * self.keys
        return 4 * self.sequences * rows * self.depth << (self.kind == TRAINING)

    @property
    def held(self) -> int:
        """Bytes of all arrays. Paged problems count twice: peers read a contiguous copy."""
        return self.nbytes << (self.kind == PAGED)

    @property
    def expected_us(self) -> float:
        """Estimated time, µs: 1.5 times the roofline of :data:`RATE` and :data:`BANDWIDTH`."""
        return 1.5e6 * max(self.flops / RATE, self.nbytes / BANDWIDTH)


def drawn(count: int, seed: int, kinds: Iterable[str]) -> list[Case]:
    """Returns the first ``count`` problems of each kind that ``seed`` draws, kinds in turns.

    Raises OptionError for arguments that :func:`ptxgen.bench.draw.check` refuses.
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
    """Returns the problems of these shapes, kinds in turns.

    Raises OptionError for malformed shapes, or if there is no problem.
    """
    return draw.taking_turns((case for shape in shapes for case in _read(shape)), kinds, shapes)


def _read(shape: str) -> list[Case]:
    """Returns the cases of a shape, one for each kind that it fits. Raises OptionError."""
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
