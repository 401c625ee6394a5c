"""Cases of ``ptxgen bench quantized`` and of tuning: products with quantized weights.

Random problems of the benchmark (:func:`drawn`) are of all :data:`BANDS` of rows in turn, M
log-uniform within each. Half of their weights have the sizes of a model's layer
(:data:`ptxgen.bench.draw.LAYERS`); K and N of the others are log-uniform in 1024 .. 28672, N a
multiple of 8. The tuner (:func:`varied`) draws problems as for dense products, and none of a layer
in that list: the benchmark shows how well constants predict times of weights that they were not
fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from ptxgen.bench import cases, draw
from ptxgen.bench.cases import Case, Shape
from ptxgen.bench.results import GATE
from ptxgen.errors import OptionError
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formats import format_named, prepared
from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.numerics.weight_format import Quantized, WeightFormat
from ptxgen.ops.explaining import problem_of
from ptxgen.spec import SCRATCH_MAX, Problem
from ptxgen.spec.quantized import PIECE

OPS = {"linear": "linear", "dgrad": "linear_dgrad"}
"""Operations that are timed: the dense library operation, by name on the command line."""
WEIGHTS = (
    *((2560, 2560), (2560, 640), (2560, 6912), (6912, 2560)),
    *((4096, 14336), (14336, 4096)),
)
"""Pairs (K, N) of weights of the named shapes, from the layers of two models."""
BITSANDBYTES, PEAK = "bitsandbytes", "FMA peak"
"""Peers beside :data:`~ptxgen.bench.results.GATE`, which is cuBLAS with the dequantized weight:
bitsandbytes; and, for f64 accumulation, which neither has, the time of the multiplications at the
FMA units' peak.
"""
BANDS = {"1-16": (1, 16), "17-64": (17, 64), "65-512": (65, 512), "513-8192": (513, 8192)}
"""Bands of rows of random problems: least and largest M, by name."""
FEW = BANDS["1-16"][1]
"""Most rows with a cap (:func:`cap`): a weight of 16 bits is read no faster than from memory."""
REACHABLE = {4: 3.6, 8: 1.9}
"""Largest quotient of bytes that a cap takes, by bits of a code: nine tenths and more of 4 and 2,
which no format reaches, as its scales take bytes too.
"""
STEP, STEP_CYCLES = 16, 33
"""Numbers along K that a dependent step of tensor cores adds, and cycles of such a step."""
SIDES = 1024, 28672
"""Least and largest K and N of random weights that are of no model."""


@dataclass(frozen=True)
class Group:
    """Values of M (``rows``) that share targets.

    ``targets``: by peer, minimum geometric mean and minimum single value of peer time / ptxgen time
    for NF4 (None: no target).
    """

    rows: tuple[int, ...]
    targets: dict[str, tuple[float | None, float | None]]


GROUPS = {
    "decode": Group((1, 2, 4, 8, 16, 32), {GATE: (1.4, None), BITSANDBYTES: (None, 1.0)}),
    "rows": Group((1024, 4096), {GATE: (0.9, None), PEAK: (None, 0.5)}),
}
"""Groups of named shapes: each of their ``rows`` with each of :data:`WEIGHTS`."""
FORMER = "nf4-"
"""Beginning of the groups' names when there was one format; results have it, commands may."""


@dataclass(frozen=True)
class QuantizedCase(Case):
    """A product with a quantized weight.

    ``op`` and ``stored``: operation and operand layout of the same product with a dequantized
    weight; ``tier``: the call's option ``accumulate``; ``format``: name of the weight's format,
    which is prepared before anything is timed.
    """

    format: str = NF4.name

    def __str__(self) -> str:
        return f"{self.format} {super().__str__()}"

    @cached_property
    def read(self) -> WeightFormat:
        """The format that kernels read: the prepared one if there is one."""
        row = format_named(self.format)
        return prepared(row) or row

    @property
    def kind(self) -> Quantized:
        """The dtype of the case's problem, for which kernels of its route table are derived."""
        return Quantized(self.dtype, self.read)

    def problem(self, align: tuple[int, int]) -> Problem:
        """Returns the problem that the dispatcher is called with; ``align``: operands' byte
        alignments.
        """
        sizes = self.shape.m, self.shape.n, self.shape.k
        how = {"accumulate": self.tier, "format": self.read.name}
        return problem_of(f"quantized_{self.op}", sizes, self.dtype, align, how)

    @property
    def dense(self) -> Case:
        """Dense product with the dequantized weight. Its result has the same bits, except with
        f64 accumulation.
        """
        return Case(self.group, self.op, self.stored, self.shape, self.dtype, self.tier)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weight as kernels read it: codes, scales and offsets."""
        return round(self.shape.n * self.shape.k * self.read.bits_of_all / 8)

    @property
    def bytes(self) -> int:
        """Least memory traffic in bytes: the weight as it is stored, x and the result."""
        s = self.shape
        return self.weight_bytes + self.itemsize * s.m * (s.k + s.n)


def band_of(m: float) -> str:
    """Returns the name of the band of :data:`BANDS` that has ``m`` rows, or of those above."""
    *_, (_, most) = BANDS.values()
    return next((name for name, (_, high) in BANDS.items() if m <= high), f"above {most}")


def cap(case: QuantizedCase, dense_us: float, clock: float) -> float | None:
    """Returns a bound of the speed-up over cuBLAS for few rows on tensor cores; None for others.

    It is the least of three: bytes of the dense weight over those of the stored one;
    :data:`REACHABLE`; cuBLAS's time, ``dense_us`` without the launch, over that of the contract's
    longest chain of dependent steps, at ``clock`` GHz.
    """
    if case.tier != "tc" or case.shape.m > FEW:
        return None
    dense = case.itemsize * case.shape.n * case.shape.k
    steps = case.dense.plan.chunk_length(case.product[2]) / STEP
    chain_us = steps * STEP_CYCLES / (1e3 * clock)
    limit = REACHABLE.get(case.read.bits, math.inf)
    return min(dense / case.weight_bytes, limit, dense_us / chain_us)


def select(
    sets: Sequence[str],
    ops: Sequence[str],
    dtype: str,
    accumulate: str,
    *,
    formats: Sequence[str] = (NF4.name,),
    quick: bool = False,
) -> list[QuantizedCase]:
    """Returns the cases of ``sets``, which are names of :data:`GROUPS` or shapes MxKxN.

    ``ops``: keys of :data:`OPS`; ``quick``: whether to take only every third M of a group. Raises
    OptionError for malformed shapes, and if K is no multiple of a format's block.
    """
    found: list[tuple[str, Shape]] = []
    for name in sets:
        if (group := name.removeprefix(FORMER)) in GROUPS:
            few = GROUPS[group].rows[:: 3 if quick else 1]
            found += [(group, s) for s in cases.shapes_of(few, WEIGHTS)]
        else:
            found.append((cases.CUSTOM, cases.shape_of(name, GROUPS)))
    for row in map(format_named, formats):
        for _, shape in found:
            if shape.k % row.unit:
                raise OptionError(
                    f"shape {shape} has K = {shape.k}; {row.name} takes a multiple of {row.unit}"
                )
    return [
        QuantizedCase(group, OPS[op], "nk", shape, dtype, accumulate, format=format)
        for format in formats
        for group, shape in found
        for op in ops
    ]


def drawn(
    count: int,
    seed: int,
    ops: Sequence[str],
    dtype: str,
    accumulate: str,
    formats: Sequence[str] = (NF4.name,),
) -> list[QuantizedCase]:
    """Returns the first ``count`` random problems for each format and operation.

    All formats have the same problems, with K rounded to the format's unit; where that is no
    multiple of a layer's K, another layer takes its place.
    """
    draw.check(count, seed)
    return [
        QuantizedCase(cases.RANDOM, OPS[op], "nk", shape, dtype, accumulate, format=format)
        for format in formats
        for shape in (_random(number, seed, format_named(format), dtype) for number in range(count))
        for op in ops
    ]


def _random(number: int, seed: int, row: WeightFormat, dtype: str) -> Shape:
    """Returns the random shape ``number`` of the benchmark: bands take turns, then both kinds of
    weights.
    """
    random = Random(f"quantized {seed} {number}")  # the tuner draws other numbers from a seed
    turn, band = divmod(number, len(BANDS))
    m = draw.integer(random, *[*BANDS.values()][band])
    while True:
        if turn % 2 == 0:
            k, n = draw.LAYERS[int(random.random() * len(draw.LAYERS))]
        else:
            k = draw.integer(random, *SIDES, row.unit)
            n = draw.integer(random, *SIDES, 8)
        if k % row.unit == 0 and _admitted(shape := Shape(m, k, n), dtype):
            return shape


def varied(
    count: int, seed: int, op: str, dtype: str, accumulate: str, format: str
) -> list[QuantizedCase]:
    """Returns the first ``count`` random problems of the tuner, with K rounded to the format's
    unit.
    """
    unit = format_named(format).unit
    found: list[Shape] = []
    more = count
    while len(found) < count:  # a longer draw begins with a shorter one
        more *= 2
        whole = (
            Shape(s.m, max(unit * round(s.k / unit), unit), s.n)
            for s in draw.shapes(more, seed, dtype)
        )
        learnt = (s for s in whole if (s.k, s.n) not in draw.LAYERS)
        found = [s for s in learnt if _admitted(s, dtype)][:count]
    return [
        QuantizedCase(cases.RANDOM, OPS[op], "nk", s, dtype, accumulate, format=format)
        for s in found
    ]


def _admitted(shape: Shape, dtype: str) -> bool:
    """Whether the dequantized weight, rows rounded up to whole pieces, fits scratch memory, and the
    product is none of the largest.
    """
    itemsize = ITEMSIZE[dtype]
    padded = -(-shape.k // PIECE) * PIECE
    return padded * shape.n * itemsize <= SCRATCH_MAX and draw.admitted(shape, itemsize)
