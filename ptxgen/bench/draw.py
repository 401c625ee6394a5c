"""Random matrix-product problems, reproducible from a seed; no kernel was tuned for them.

M is log-uniform in 1 .. 16384, half of them powers of two. K and N are

====  ==============================================================================
50 %  model sizes: one is h, a multiple of 64, log-uniform in 512 .. 16384, the other
      h times one of 1/8, 1/4, 1, 4/3, 2, 8/3, 3, 3.5, 4, rounded to 64; in either order
25 %  multiples of 8, log-uniform in 16 .. 32768
15 %  any integers, log-uniform in 1 .. 16384
10 %  thin: one in 1 .. 256, the other log-uniform in 1024 .. 131072; in either order
====  ==============================================================================

Problems above :data:`MOST_PRODUCTS` or :data:`MOST_BYTES` are drawn again.

Problems of the kind :data:`TOKENS` are the tokens of a batch times a model's weight
(:data:`LAYERS`): M is log-uniform in :data:`FEWEST_TOKENS` .. 16384 and no multiple of 64.

Batches (:func:`batches`) have 2 to 1024 products (log-uniform), M log-uniform in 1 .. 4096, half of
them powers of two, K and N log-uniform in 32 .. 4096, three quarters of both multiples of 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, zip_longest
from random import Random
from typing import Any, TypeVar

from ptxgen.bench import cases
from ptxgen.bench.bands import BANDS
from ptxgen.bench.cases import LAYOUTS, RANDOM, TOKENS, Case, Shape
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import ITEMSIZE

T = TypeVar("T")

ROWS = 16384
FEWEST_TOKENS = BANDS[-1] + 1
"""Minimum M of problems of the kind TOKENS, that of the last range of M."""
KINDS = RANDOM, TOKENS
"""Kinds of random matrix products; each has a draw of its own."""
LAYERS = (
    *((4096, 4096), (4096, 1024), (4096, 14336), (14336, 4096), (4096, 6144)),  # Llama 3 8B
    *((8192, 8192), (8192, 1024), (8192, 28672), (28672, 8192)),  # Llama 3 70B
    *((3584, 3584), (3584, 512), (3584, 18944), (18944, 3584)),  # Qwen 2.5 7B
    *((5120, 5120), (5120, 27648), (27648, 5120)),  # Qwen 2.5 32B
    *((4096, 12288), (12288, 4096), (2560, 9728), (9728, 2560)),  # Qwen 3 8B, 4B
    *((5120, 14336), (5120, 32768)),  # Mistral Nemo, Small
    *((3072, 9216), (3072, 16384), (17920, 5120)),  # Phi 3 mini, Phi 4
    *((2880, 4096), (4096, 2880), (2880, 5760)),  # gpt-oss
    *((7168, 1536), (1536, 24576), (7168, 18432), (16384, 7168)),  # DeepSeek V3
)
"""Pairs (K, N) of weights of models' linear layers: input and output features."""
MATRICES, BATCHED = 1024, 4096
"""Maximum number of products in a batch, and maximum M, K and N of a batched product."""
RATIOS = (1 / 8, 1 / 4, 1.0, 4 / 3, 2.0, 8 / 3, 3.0, 3.5, 4.0)
MOST_PRODUCTS = {2: 1 << 40, 4: 1 << 37, 8: 1 << 36}
"""Maximum M * N * K of a problem, by bytes of an element."""
MOST_BYTES = 4 << 30
"""Maximum bytes of an operand, and of the result."""
SEEDS = range(1 << 63)
"""Accepted seeds; negative ones are refused, as Python's Random draws the same from -1 and 1."""


def select(
    count: int,
    seed: int,
    layouts: Iterable[str] = LAYOUTS,
    *,
    dtype: str = "f32",
    tier: str = "auto",
    kinds: Iterable[str] = (RANDOM,),
) -> list[Case]:
    """Returns random :func:`shapes` of each of ``kinds``, which take turns, as cases of ``linear``
    (NN, NT) and ``matmul`` (TN). The kind is the group of a case.

    Raises OptionError like :func:`shapes`, and for a dtype that the tier lacks.
    """
    tier = cases.tier_of(dtype, tier)
    of = [[(kind, shape) for shape in shapes(count, seed, dtype, kind)] for kind in kinds]
    return [
        replace(case, group=kind)
        for kind, shape in chain(*zip(*of, strict=True))
        for case in cases.select([str(shape)], layouts, ("linear",), dtype=dtype, tier=tier)
    ]


def shapes(count: int, seed: int, dtype: str, kind: str = RANDOM) -> list[Shape]:
    """Returns the first ``count`` random shapes of ``kind``, one of :data:`KINDS`, that ``seed``
    generates for operands of ``dtype``.

    Dtypes of one item size get the same shapes; a longer list begins with a shorter one. Raises
    OptionError unless ``count`` is at least 1 and ``seed`` is one of :data:`SEEDS`.
    """
    itemsize = ITEMSIZE[dtype]
    drawn = _tokens if kind == TOKENS else _drawn
    return first(count, seed, (s for s in drawn(Random(seed)) if admitted(s, itemsize)))


def batches(count: int, seed: int, dtype: str) -> list[tuple[int, Shape]]:
    """Returns the first ``count`` random batches of ``seed``: (number of products, their shape).

    An operand of the whole batch has at most a quarter of :data:`MOST_BYTES`, and the batch at most
    a sixteenth of :data:`MOST_PRODUCTS`. Raises OptionError like :func:`shapes`.
    """
    itemsize = ITEMSIZE[dtype]

    def fits(number: int, shape: Shape) -> bool:
        m, k, n = shape.m, shape.k, shape.n
        largest, work = max(m * k, k * n, m * n) * itemsize, m * n * k
        return number * largest <= MOST_BYTES // 4 and number * work <= MOST_PRODUCTS[itemsize] >> 4

    return first(count, seed, (batch for batch in _batches(Random(seed)) if fits(*batch)))


def _batches(random: Random) -> Iterator[tuple[int, Shape]]:
    while True:
        number = integer(random, 2, MATRICES)
        m = rows(random, 1, BATCHED)
        unit = 8 if random.random() < 0.75 else 1
        k, n = (integer(random, 32, BATCHED, unit) for _ in "kn")
        yield number, Shape(m, k, n)


def check(count: int, seed: int) -> None:
    """Raises OptionError unless ``count`` is at least 1 and ``seed`` is one of :data:`SEEDS`."""
    if count < 1:
        raise OptionError(f"{count} random problems: expected 1 or more")
    if seed not in SEEDS:
        raise OptionError(f"seed {seed}: expected 0 to 2^63 - 1")


def first(count: int, seed: int, *each: Iterator[T]) -> list[T]:
    """Returns the first ``count`` problems of each of the iterators ``each``, interleaved.

    Raises OptionError for ``count`` or ``seed`` that :func:`check` refuses.
    """
    check(count, seed)
    return [next(cases) for _ in range(count) for cases in each]


def interleave_kinds(
    every: Iterable[Any], kinds: Iterable[str], shapes: Iterable[str]
) -> list[Any]:
    """Selects the cases whose kind is in ``kinds``; returns them with kinds taking turns.

    Raises OptionError if there are none; its message names ``shapes``, the user's texts.
    """
    of = [*every]
    found = {kind: [case for case in of if case.kind == kind] for kind in kinds}
    cases = [case for case in chain(*zip_longest(*found.values())) if case is not None]
    if not cases:
        raise OptionError(f"{', '.join(shapes)}: none is of kind {' or '.join(found)}")
    return cases


def admitted(shape: Shape, itemsize: int) -> bool:
    """Whether a matrix product is within :data:`MOST_PRODUCTS` and :data:`MOST_BYTES`."""
    largest = max(shape.m * shape.k, shape.k * shape.n, shape.m * shape.n) * itemsize
    return shape.m * shape.n * shape.k <= MOST_PRODUCTS[itemsize] and largest <= MOST_BYTES


def _drawn(random: Random) -> Iterator[Shape]:
    # By random() alone: its numbers are the same in every version of Python.
    while True:
        m = rows(random, 1, ROWS)
        kind = random.random()
        if kind < 0.5:
            h = integer(random, 512, 16384, 64)
            ratio = RATIOS[int(random.random() * len(RATIOS))]
            pair = h, max(64 * round(h * ratio / 64), 64)
        elif kind < 0.75:
            pair = integer(random, 16, 32768, 8), integer(random, 16, 32768, 8)
        elif kind < 0.9:
            pair = integer(random, 1, 16384), integer(random, 1, 16384)
        else:
            pair = 1 + int(random.random() * 256), integer(random, 1024, 131072)
        k, n = pair if random.random() < 0.5 else pair[::-1]
        yield Shape(m, k, n)


def _tokens(random: Random) -> Iterator[Shape]:
    while True:
        m = integer(random, FEWEST_TOKENS, ROWS)
        k, n = LAYERS[int(random.random() * len(LAYERS))]
        if m % 64:
            yield Shape(m, k, n)


def rows(random: Random, low: int, high: int) -> int:
    """Draws a log-uniform integer in ``low`` .. ``high``; half of them are rounded to a power of
    two.
    """
    found = integer(random, low, high)
    return 1 << round(math.log2(found)) if random.random() < 0.5 else found


def integer(random: Random, low: float, high: float, unit: int = 1) -> int:
    """Draws a log-uniform integer in ``low`` .. ``high``, rounded to a multiple of ``unit``."""
    return unit * round(log_uniform(random, low, high) / unit)


def log_uniform(random: Random, low: float, high: float) -> float:
    """Draws a float in ``low`` .. ``high`` whose logarithm is uniform."""
    return math.exp(math.log(low) + random.random() * (math.log(high) - math.log(low)))
