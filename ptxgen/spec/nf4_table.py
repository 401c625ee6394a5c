"""What kernels have in common that look an NF4 weight up in shared memory, as they multiply it."""

from __future__ import annotations

from typing import ClassVar

from ptxgen.spec.base import WARP, check
from ptxgen.spec.nf4_packed import INDICES, LAYOUTS, Nf4GemmSpec

TABLE = 1 << 16
"""Bytes of the table: 256 for each byte of two indices, of which each lane has two codes."""


class Nf4TableSpec(Nf4GemmSpec):
    """A kernel whose lanes look numbers of B up two at a time, where the instruction wants them.

    ``helpers`` warps copy stages of ``bk`` k's of indices and scales, a vector or a scale at a time.
    """

    helpers: int
    table_bytes: ClassVar[int] = TABLE

    @property
    def strips(self) -> int:
        """Times 16 columns that a warp multiplies."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        """Rows of the weight in a stage."""
        return self.bn if self.along_k else self.bk

    @property
    def columns(self) -> int:
        """Numbers of such a row."""
        return self.bk if self.along_k else self.bn

    @property
    def parts(self) -> int:
        """Vectors of indices of such a row."""
        return self.columns // INDICES

    @property
    def pitch(self) -> int:
        """Bytes from row to row: an odd number of vectors, so that rows lie in different banks."""
        return 16 * (self.parts | 1)

    @property
    def scale_parts(self) -> int:
        """Scales of such a row."""
        return max(self.columns // self.scale_block, 1)

    @property
    def weight_bytes(self) -> int:
        """Bytes of a stage of indices and scales."""
        return self.rows * (self.pitch + 4 * self.scale_parts)

    def check_table(self) -> None:
        """SpecError where threads, lanes and blocks do not fit."""
        name, threads = self.name, self.helpers * WARP
        check(self.layout in LAYOUTS, name, "layout", self.layout, LAYOUTS)
        whole = self.parts * INDICES
        check(whole == self.columns, name, "whole vectors of indices", whole, self.columns)
        check(threads % self.parts == 0, name, "rows of B at once", threads, self.parts)
        if not self.along_k:
            check(self.strips in (1, 2, 4), name, "strips of a warp", self.strips, (1, 2, 4))
            blocks = max(self.bn, self.scale_block) % min(self.bn, self.scale_block)
            check(blocks == 0, name, "columns beside whole blocks", blocks, 0)
