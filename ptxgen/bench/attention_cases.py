"""Problems of ``ptxgen bench attention``: named ones, and random ones generated from a seed.

Log-uniform integers: sequences 1 .. 64, query heads per KV head 1 .. 16, KV heads (at most 64 query
heads in all), keys 16 .. 32768. There are as many queries as keys, or one in decoding. Uniform:
head dimension (64, 96, 128, 192, 256), causal or full, page size (16 .. 256 keys, powers of two).
All kinds share the draws of a seed; each skips problems above its limits (:data:`MOST_FLOPS`,
:data:`MOST_BYTES`).
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
"""Maximum FLOPs of a random problem: about 15 ms on an H200."""
MOST_BYTES = 8 << 30
"""Maximum bytes of all arrays of a random problem, gradients and pages included."""
RATE = 5e14
"""Attention FLOP/s assumed in time estimates, which set the number of repetitions."""
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
    """An attention problem; ``depth``: head dimension; ``page``: keys a page, 0: not paged."""

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
        """Sizes as text, SEQUENCESxHEADS/KV_HEADSxQUERIESxKEYSxDEPTH, then "c" if causal, "pPAGE"
        if paged.
        """
        sizes = f"{self.queries}x{self.keys}x{self.depth}{'c' if self.causal else ''}"
        page = f"p{self.page}" if self.page else ""
        return f"{self.sequences}x{self.heads}/{self.kv_heads}x{sizes}{page}"

    def __str__(self) -> str:
        return f"{self.kind} {self.shape}"

    @property
    def flops(self) -> int:
        """FLOPs of the two products (seven with the backward pass), halved if causal."""
        products = 7 if self.kind == TRAINING else 2
        pairs = self.queries * self.keys >> self.causal
        return 2 * products * self.sequences * self.heads * pairs * self.depth

    @property
    def nbytes(self) -> int:
        """Bytes of q, k, v and the result at 2 bytes an element; twice as many in training."""
        rows = self.heads * self.queries + self.kv_heads * self.keys
        return 4 * self.sequences * rows * self.depth << (self.kind == TRAINING)

    @property
    def allocated(self) -> int:
        """Bytes of all arrays of the problem; twice :attr:`nbytes` if paged, as peers read a
        contiguous copy.
        """
        return self.nbytes << (self.kind == PAGED)

    @property
    def expected_us(self) -> float:
        """Estimated time in µs: 1.5 times the larger of ``flops / RATE`` and
        ``nbytes / BANDWIDTH``.
        """
        return 1.5e6 * max(self.flops / RATE, self.nbytes / BANDWIDTH)


def drawn(count: int, seed: int, kinds: Iterable[str]) -> list[Case]:
    """Returns the first ``count`` random problems of each kind that ``seed`` generates, kinds
    interleaved.

    Raises OptionError for arguments that :func:`ptxgen.bench.draw.check` refuses.
    """
    return draw.first(count, seed, *(_drawn(Random(seed), kind) for kind in kinds))


def _drawn(random: Random, kind: str) -> Iterator[Case]:
    for case in _any(random, kind):
        if case.flops <= MOST_FLOPS and case.allocated <= MOST_BYTES:
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
    """Returns the problems of ``shapes`` that are of these ``kinds``, kinds interleaved.

    Raises OptionError for malformed shapes, or if there is no problem.
    """
    return draw.interleave_kinds((case for shape in shapes for case in _read(shape)), kinds, shapes)


def _read(shape: str) -> list[Case]:
    """Parses a shape into cases, one for each kind that it fits. Raises OptionError."""
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
