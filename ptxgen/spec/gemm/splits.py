"""Splits of a GEMM kernel: where the partial sums of a tile's chunks are added.

A split of a kernel with a ring (wgmma) defines ``multiply_tile``. In kernels whose threads copy
tiles (:class:`Meeting`) the macros depend on how the family's main loop keeps its sums, so each
family has its own; these classes state which reductions a kernel supports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr
from ptxgen.spec.base import WORKSPACE_MAX, check
from ptxgen.spec.gemm import CHUNK, CHUNKS
from ptxgen.spec.gemm.kernel import Kernel
from ptxgen.spec.gemm.rasters import Tiled


@dataclass(frozen=True)
class Split:
    """Base of the splits of wgmma kernels, which say how the chunks of a work item are summed. A
    split's macro file defines ``multiply_tile(at)``, which computes the sums in registers.
    """

    macros: ClassVar[str]

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError for a kernel that the split does not fit."""


@dataclass(frozen=True)
class Unsplit(Split):
    """No split: a work item accumulates each output in one chain, over all of K or one chunk."""

    macros: ClassVar[str] = "wgmma/split/none.cuh.j2"

    def check(self, kernel: Kernel) -> None:
        check(not kernel.spilled_sums, kernel.name, "split of held sums", kernel.split, "serial")


@dataclass(frozen=True)
class Serial(Split):
    """Split into chunks that a CTA computes one after another and adds to a second set of sums. A
    thread keeps the last ``spilled_sums`` sums of each fragment of that set in shared memory.
    """

    spilled_sums: int

    macros: ClassVar[str] = "wgmma/split/serial.cuh.j2"

    def check(self, kernel: Kernel) -> None:
        name, held, most = kernel.name, self.spilled_sums, kernel.instruction.accumulators
        check(held % 4 == 0 <= held <= most, name, "held is a multiple of 4 up to", held, most)


@dataclass(frozen=True)
class Meeting:
    """Base of the splits of a reduction in kernels whose threads copy tiles; a split says where the
    partial sums of a tile's chunks are added. ``file``: name of the split's macro file, in families
    that have one for each split.
    """

    file: ClassVar[str] = "chain"

    def macros(self, family: str) -> str:
        """Returns the macro file of the split in ``family``."""
        return f"{family}/split/{self.file}.cuh.j2"

    def requires(self, kernel: Tiled) -> list[Expr]:
        """Returns the predicates under which ``kernel`` supports a problem with this split."""
        return []


@dataclass(frozen=True)
class OneChain(Meeting):
    """No split: the reduction is one chunk, which starts from zeros or from the old values of C."""

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [CHUNKS <= 1]


@dataclass(frozen=True)
class Turns(Meeting):
    """Split into chunks that a CTA computes one after another and adds to a second set of sums.
    ``block``: k's of an unrolled iteration of the main loop, inside which no chunk may end; 1:
    chunks may end anywhere.
    """

    block: int = 1

    file: ClassVar[str] = "serial"

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [(CHUNK % self.block).eq(0) | (CHUNKS <= 1)] if self.block > 1 else []


@dataclass(frozen=True)
class Slices(Meeting):
    """Split over the slices of a CTA: one chunk each; they add their sums in shared memory."""

    file: ClassVar[str] = "slices"


@dataclass(frozen=True)
class ClusterSums(Meeting):
    """Split over the ``ctas`` CTAs of a cluster: one chunk of the same tile each; they add their
    sums in distributed shared memory.
    """

    ctas: int

    file: ClassVar[str] = "cluster"

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [CHUNKS <= self.ctas]


@dataclass(frozen=True)
class Workspace(Meeting):
    """Split over CTAs (split-K), which write partial sums to global memory; a reduce kernel adds
    them.
    """

    def requires(self, kernel: Tiled) -> list[Expr]:
        return [kernel.scratch["workspace"] <= WORKSPACE_MAX]
