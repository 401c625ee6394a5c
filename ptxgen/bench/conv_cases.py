"""Problems of ``ptxgen bench conv``: named ones, and those that a seed draws.

Batches are log-uniform in 1 .. 64, images square, log-uniform in 7 .. 256, channels log-uniform in
3 .. 2048, nine in ten of them multiples of 8. Filters have 1, 3, 5 or 7 taps a side, strides are 1
or 2, padding is half the filter. Causal ones are sequences, log-uniform in 128 .. 16384, with 2 to
4 taps. A seed draws the same problems for forward, dgrad and wgrad; what takes too long
(:data:`MOST_FLOPS`) or too much memory (:data:`MOST_BYTES`) is drawn again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from ptxgen.bench import draw
from ptxgen.bench.opcase import BANDWIDTH
from ptxgen.errors import OptionError

FORWARD, DGRAD, WGRAD, DEPTHWISE, CAUSAL = KINDS = (
    *("forward", "dgrad", "wgrad"),
    *("depthwise", "causal"),
)
"""dgrad and wgrad: the gradients of image and filters. Depthwise: forward, a channel and an output
in a group; causal: the same of a sequence, with all padding before it.
"""
GROUPED = DEPTHWISE, CAUSAL
BATCH, IMAGE, CHANNELS, LENGTH = (1, 64), (7, 256), (3, 2048), (128, 16384)
TAPS = (1, 3, 5, 7)
MOST_FLOPS = 1 << 42
"""Of a problem: what an H200 needs some 8 ms for."""
MOST_BYTES = 1 << 30
"""Of image, filters and result."""
RATE = 4e14
"""Flops a second; only to choose a number of repetitions."""
NAMED = (
    *("32x56x64x64r3s1", "32x28x128x128r3s1", "32x14x256x256r3s1", "32x7x512x512r3s1"),
    *("32x56x256x64r1s1", "32x56x128x128r3s2", "32x224x3x64r7s2", "8x64x320x320r3s1"),
)
"""As :attr:`Case.shape` writes them; of ResNet-50 and of a diffusion model."""
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)x(\d+)r(\d+)s(\d+)")


@dataclass(frozen=True)
class Case:
    """A convolution of ``batch`` images of ``size`` x ``size``, or of sequences if causal."""

    kind: str
    batch: int
    size: int
    channels: int
    outputs: int
    taps: int
    stride: int

    @property
    def shape(self) -> str:
        """Batch x image's side x channels x outputs; r: taps of a side, s: stride."""
        sizes = f"{self.batch}x{self.size}x{self.channels}x{self.outputs}"
        return f"{sizes}r{self.taps}s{self.stride}"

    def __str__(self) -> str:
        return f"{self.kind} {self.shape}"

    @property
    def rank(self) -> int:
        """Dimensions of the image."""
        return 1 if self.kind == CAUSAL else 2

    @property
    def groups(self) -> int:
        """Groups of channels."""
        return self.channels if self.kind in GROUPED else 1

    @property
    def padding(self) -> int:
        """Zeros at each side. Of causal ones the results beyond the sequence are left out."""
        return self.taps - 1 if self.kind == CAUSAL else self.taps // 2

    @property
    def along(self) -> int:
        """Windows along a side."""
        return (self.size + 2 * self.padding - self.taps) // self.stride + 1

    @property
    def windows(self) -> int:
        """Of all images."""
        return int(self.batch * self.along**self.rank)

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        each = self.channels // self.groups
        return int(2 * self.windows * self.outputs * each * self.taps**self.rank)

    def nbytes(self, itemsize: int) -> int:
        """Of image, filters and result."""
        image = self.batch * self.size**self.rank * self.channels
        filters = self.outputs * (self.channels // self.groups) * self.taps**self.rank
        return int(itemsize * (image + filters + self.windows * self.outputs))

    def expected_us(self, itemsize: int) -> float:
        """About the time that it takes."""
        rate = RATE if itemsize == 2 else RATE / 10
        return 1e6 * max(self.flops / rate, self.nbytes(itemsize) / BANDWIDTH)


def drawn(count: int, seed: int, kinds: Iterable[str]) -> list[Case]:
    """``count`` problems of each kind, the first of those that ``seed`` draws, kinds in turns.
    Raises OptionError as :func:`ptxgen.bench.draw.shapes`.
    """
    return draw.first(count, seed, *(_drawn(Random(seed), kind) for kind in kinds))


def _drawn(random: Random, kind: str) -> Iterator[Case]:
    for case in _any(random, kind):
        if case.flops <= MOST_FLOPS and case.nbytes(4) <= MOST_BYTES:
            yield case


def _any(random: Random, kind: str) -> Iterator[Case]:
    integer = partial(draw.integer, random)

    def channels() -> int:
        count, whole = integer(*CHANNELS), random.random() < 0.9
        return max(8 * round(count / 8), 8) if whole else count

    while True:
        batch, image, length = integer(*BATCH), integer(*IMAGE), integer(*LENGTH)
        one, other = channels(), channels()
        taps, stride = TAPS[int(random.random() * len(TAPS))], 1 + int(random.random() * 2)
        if kind == CAUSAL:
            yield Case(kind, batch, length, one, one, 2 + taps % 3, 1)
        elif kind == DEPTHWISE:
            yield Case(kind, batch, image, one, one, max(taps, 3), stride)
        else:
            yield Case(kind, batch, image, one, other, taps, stride)


def select(shapes: Sequence[str], kinds: Sequence[str]) -> list[Case]:
    """The problems of these shapes, kinds in turns: those whose outputs are as many as channels of
    all kinds. OptionError for other text, or none.
    """
    return draw.taking_turns((case for shape in shapes for case in _read(shape)), kinds, shapes)


def _read(shape: str) -> list[Case]:
    read = _SHAPE.fullmatch(shape)
    sizes = [int(n) for n in read.groups()] if read else [0]
    if min(sizes) < 1:
        raise OptionError(
            f"the shape is {shape!r}; takes BATCHxIMAGExCHANNELSxOUTPUTSrTAPSsSTRIDE, such as "
            f"{NAMED[0]}"
        )
    every = [Case(kind, *sizes) for kind in KINDS]
    return [c for c in every if c.kind not in GROUPED or c.channels == c.outputs]
