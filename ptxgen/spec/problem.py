"""One problem of an operation: which table serves it, and every number that its launch needs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import prod

from ptxgen.spec.route import Key


@dataclass(frozen=True, slots=True)
class Problem:
    """What an operation asks of the kernels.

    ``table``: the key of the route table. ``dtype``: what kernels are made for: the dtype of their
    operands, or, of opened tables, whatever says what is computed of what. ``values``: of
    the space's variables (but SMS, which the device has), by name. ``scalars``: what kernels are
    given besides, by name (pitches, flags). ``what``: the problem, for messages. ``batch``: how
    many problems there are like this, along an inner and an outer dimension; how far apart they
    lie is among the scalars.
    """

    table: Key
    dtype: Hashable
    values: tuple[tuple[str, int], ...]
    scalars: tuple[tuple[str, int | float], ...]
    what: str
    batch: tuple[int, int] = (1, 1)

    def given(self, sms: int) -> dict[str, int]:
        """The variables by name, on a device with ``sms`` SMs."""
        return {**dict(self.values), "SMS": sms}

    @property
    def count(self) -> int:
        """How many there are in the batch."""
        return prod(self.batch)

    def parameters(self, environment: Mapping[str, int]) -> dict[str, int | float]:
        """All scalars that parameters may be bound to, in lower case."""
        return {name.lower(): value for name, value in (*environment.items(), *self.scalars)}

    def __str__(self) -> str:
        return self.what
