"""Problems: single steps of operations, each a route table with values of its variables and
scalars.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import prod

from ptxgen.spec.route import Key


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem for the kernels of one route table, such as a product of given sizes.

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
        """Returns the values of the variables by name, with SMS = ``sms``."""
        return {**dict(self.values), "SMS": sms}

    @property
    def count(self) -> int:
        """Number of problems in the batch."""
        return prod(self.batch)

    def parameters(self, environment: Mapping[str, int]) -> dict[str, int | float]:
        """Returns the values of kernel parameters by lower-case name: ``environment`` and the
        scalars.
        """
        return {name.lower(): value for name, value in (*environment.items(), *self.scalars)}

    def __str__(self) -> str:
        return self.what
