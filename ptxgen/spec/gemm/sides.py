"""Shared-memory tiles of operands that threads copy by vectors, in the order of memory."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.spec.base import check

VECTOR_BYTES = 16


@dataclass(frozen=True)
class Side:
    """A tile of ``rows`` rows of ``vectors`` 16-byte vectors, swizzled for ldmatrix.

    Vector v of a row is stored at ``v ^ (row >> shift & mask)``, so that the 8 rows that ldmatrix
    reads at a time are in different banks.
    """

    rows: int
    vectors: int

    @property
    def pitch(self) -> int:
        """Bytes of a row of the shared-memory tile."""
        return VECTOR_BYTES * self.vectors

    @property
    def nbytes(self) -> int:
        """Bytes of the shared-memory tile."""
        return self.rows * self.pitch

    @property
    def mask(self) -> int:
        """Mask of the vector-index bits that the swizzle permutes: the largest power of two up to 8
        that divides ``vectors``, minus 1.
        """
        return min(self.vectors & -self.vectors, 8) - 1

    @property
    def shift(self) -> int:
        """Base-2 logarithm of the number of consecutive rows that are permuted alike."""
        return 4 - (self.mask + 1).bit_length()


@dataclass(frozen=True)
class CopiedSide(Side):
    """Shared-memory tile of A or B. ``k_contiguous``: whether its rows run along k, else along m or
    n.
    """

    k_contiguous: bool
    threads: int
    """Threads that copy the tile."""
    warp: int
    """Extent of a warp's tile along m or n."""

    @property
    def at_once(self) -> int:
        """Rows of the tile that all threads copy at a time, one vector a thread."""
        return self.threads // self.vectors

    @property
    def copies(self) -> int:
        """Vectors that a thread copies of each tile."""
        return self.rows // self.at_once

    def check(self, name: str, x: str) -> None:
        """Raises SpecError if the threads do not divide the tile of operand ``x``."""
        what = f"a row of {x} is copied at once: vectors, threads"
        check(self.vectors <= self.threads, name, what, self.vectors, self.threads)
        even = self.threads % self.vectors == self.rows % self.at_once == 0
        check(even, name, f"rows of {x} copied at once divide a tile's", self.at_once, self.rows)
