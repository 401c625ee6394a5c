"""Lines of a program listing: each step's kernels, arrays, bytes and predicted time."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ptxgen.numerics.dtype import BYTES, NAMES


class Shown(NamedTuple):
    """An array in a listing: its memory's name and role, its dtype and shape."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return prod(self.shape) * BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.name} {NAMES.get(self.dtype, self.dtype)}{list(self.shape)}"


class Line(NamedTuple):
    """A step in a listing. ``what``: its operation; ``kernels``: names of its kernels; ``reads``,
    ``writes``: its arrays; ``nbytes``: bytes that it reads and writes; ``us``: its predicted time,
    µs.
    """

    what: str
    kernels: tuple[str, ...]
    reads: tuple[Shown, ...]
    writes: tuple[Shown, ...]
    nbytes: int
    us: float
