"""Problems of ``ptxgen bench conv``: named ones, and random ones generated from a seed.

Log-uniform: batch 1 .. 64, side of the square image 7 .. 256, channels 3 .. 2048 (nine in ten
rounded to a multiple of 8), length of causal sequences 128 .. 16384. Filters have 1, 3, 5 or 7 taps
a side (causal ones 2 to 4), stride is 1 or 2, padding half the filter. Forward, dgrad and wgrad
share the draws of a seed; problems above :data:`MOST_FLOPS` or :data:`MOST_BYTES` are drawn again.
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
"""Kinds of problems. "dgrad" and "wgrad" are the gradients of image and filters. "depthwise" is a
forward convolution with one channel a group; "causal" is a depthwise convolution of sequences,
padded only at the front.
"""
GROUPED = DEPTHWISE, CAUSAL
BATCH, IMAGE, CHANNELS, LENGTH = (1, 64), (7, 256), (3, 2048), (128, 16384)
TAPS = (1, 3, 5, 7)
MOST_FLOPS = 1 << 42
"""Maximum FLOPs of a random problem: about 8 ms on an H200."""
MOST_BYTES = 1 << 30
"""Maximum bytes of image, filters and result of a random problem, at 4 bytes an element."""
RATE = 4e14
"""16-bit FLOP/s assumed in time estimates, which set the number of repetitions."""
NAMED = (
    *("32x56x64x64r3s1", "32x28x128x128r3s1", "32x14x256x256r3s1", "32x7x512x512r3s1"),
    *("32x56x256x64r1s1", "32x56x128x128r3s2", "32x224x3x64r7s2", "8x64x320x320r3s1"),
)
"""Named problems, of ResNet-50 and a diffusion model, in the notation of :attr:`Case.shape`."""
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)x(\d+)r(\d+)s(\d+)")


@dataclass(frozen=True)
class Case:
    """A convolution of ``batch`` images of ``size`` x ``size``, or of causal sequences of ``size``.

    ``kind``: one of :data:`KINDS`, such as "dgrad"; ``channels``, ``outputs``: input and output
    channels; ``taps``: size of the filter along each side.
    """

    kind: str
    batch: int
    size: int
    channels: int
    outputs: int
    taps: int
    stride: int

    @property
    def shape(self) -> str:
        """Sizes as text: BATCHxSIZExCHANNELSxOUTPUTSrTAPSsSTRIDE."""
        sizes = f"{self.batch}x{self.size}x{self.channels}x{self.outputs}"
        return f"{sizes}r{self.taps}s{self.stride}"

    def __str__(self) -> str:
        return f"{self.kind} {self.shape}"

    @property
    def rank(self) -> int:
        """Number of spatial dimensions: 1 for sequences, 2 for images."""
        return 1 if self.kind == CAUSAL else 2

    @property
    def groups(self) -> int:
        """Number of groups that the channels are split into."""
        return self.channels if self.kind in GROUPED else 1

    @property
    def padding(self) -> int:
        """Zeros on each side: half the filter, or ``taps - 1`` for causal sequences."""
        return self.taps - 1 if self.kind == CAUSAL else self.taps // 2

    @property
    def along(self) -> int:
        """Number of output positions along each side of an image, or along a sequence."""
        return (self.size + 2 * self.padding - self.taps) // self.stride + 1

    @property
    def windows(self) -> int:
        """Number of output positions in all images of the batch."""
        return int(self.batch * self.along**self.rank)

    @property
    def flops(self) -> int:
        """FLOPs of the convolution; a multiply-add counts as two."""
        each = self.channels // self.groups
        return int(2 * self.windows * self.outputs * each * self.taps**self.rank)

    def nbytes(self, itemsize: int) -> int:
        """Returns the bytes of image, filters and result at ``itemsize`` bytes an element."""
        image = self.batch * self.size**self.rank * self.channels
        filters = self.outputs * (self.channels // self.groups) * self.taps**self.rank
        return int(itemsize * (image + filters + self.windows * self.outputs))

    def expected_us(self, itemsize: int) -> float:
        """Returns the estimated time in µs: the larger of ``flops / RATE`` (f32: ``RATE / 10``) and
        ``nbytes / BANDWIDTH``.
        """
        rate = RATE if itemsize == 2 else RATE / 10
        return 1e6 * max(self.flops / rate, self.nbytes(itemsize) / BANDWIDTH)


def drawn(count: int, seed: int, kinds: Iterable[str]) -> list[Case]:
    """Returns the first ``count`` random problems of each kind that ``seed`` generates, kinds
    interleaved.

    Raises OptionError for arguments that :func:`ptxgen.bench.draw.check` refuses.
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
    """Returns the problems of ``shapes`` that are of these ``kinds``, kinds interleaved.

    Depthwise and causal problems need a shape with as many output channels as channels. Raises
    OptionError for malformed shapes, or if there is no problem.
    """
    return draw.interleave_kinds((case for shape in shapes for case in _read(shape)), kinds, shapes)


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
