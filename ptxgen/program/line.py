"""What is shown of a step: what it does, which kernels serve it, what it reads and writes."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ptxgen.numerics.dtype import BYTES, NAMES


class Shown(NamedTuple):
    """An array: the name of its memory, that one's role, dtype and shape."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return prod(self.shape) * BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.name} {NAMES.get(self.dtype, self.dtype)}{list(self.shape)}"


class Line(NamedTuple):
    """A step. ``nbytes``: of what it reads and writes; ``us``: the time that it is predicted to
    take.
    """

    what: str
    kernels: tuple[str, ...]
    reads: tuple[Shown, ...]
    writes: tuple[Shown, ...]
    nbytes: int
    us: float
