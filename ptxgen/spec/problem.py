"""One problem of an operation: its route table, and every number that its launch needs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import prod

from ptxgen.spec.route import Key


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem that an operation asks the kernels to solve.

    ``table``: key of the route table. ``dtype``: dtype of the operands, or, in opened tables,
    whatever identifies the computation. ``values``: values of the space's variables, by name (SMS,
    which the device sets, is missing). ``scalars``: further scalar parameters, by name (strides,
    flags). ``what``: a description for messages. ``batch``: number of such problems along an inner
    and an outer dimension; their strides are among the scalars.
    """

    table: Key
    dtype: Hashable
    values: tuple[tuple[str, int], ...]
    scalars: tuple[tuple[str, int | float], ...]
    what: str
    batch: tuple[int, int] = (1, 1)

    def given(self, sms: int) -> dict[str, int]:
        """Returns the variables by name, on a device with ``sms`` SMs."""
        return {**dict(self.values), "SMS": sms}

    @property
    def count(self) -> int:
        """Number of problems in the batch."""
        return prod(self.batch)

    def parameters(self, environment: Mapping[str, int]) -> dict[str, int | float]:
        """Returns all values that parameters may be bound to, by lower-case name."""
        return {name.lower(): value for name, value in (*environment.items(), *self.scalars)}

    def __str__(self) -> str:
        return self.what
