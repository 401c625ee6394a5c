"""Cases of ``ptxgen bench ops``: what is called, beside what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

BANDWIDTH = 4.3e12
"""Bytes a second that an H200's memory gives a copy, the limit that times are held to."""


class Work(NamedTuple):
    """What is timed: functions of the same tensors, ours and PyTorch's."""

    inputs: tuple[Any, ...]
    ours: Callable[..., Any]
    stock: Callable[..., Any]
    compiled: bool = True
    """Whether ``stock`` is also timed as torch.compile makes it."""
    peer: Callable[..., Any] | None = None
    """What is timed in place of that: another library's."""
    agree: Callable[[Any, Any], bool] | None = None
    """Whether results agree, ours and PyTorch's, where they are not the same numbers."""


@dataclass(frozen=True)
class OpCase:
    """One line of the table. ``make`` is given torch; ``nbytes``: read and written, each once."""

    name: str
    sizes: str
    nbytes: int
    make: Callable[[Any], Work]

    @property
    def limit_us(self) -> float:
        """The time that the bytes take."""
        return 1e6 * self.nbytes / BANDWIDTH
