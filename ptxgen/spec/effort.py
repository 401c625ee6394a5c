"""What a kernel has to do for a problem, and what a GPU does it at: what predicted times are of.

Both are facts: the first follows from a spec, the second from the driver or a data sheet. How well
a kernel turns one into the other is fitted (:mod:`ptxgen.tiles.tunings`), and decides nothing but
which of several kernels that return the same bits is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any

from ptxgen.errors import SpecError
from ptxgen.expr import Expr, const

UNITS = ("fma", "mma", "wgmma", "fma64", "mma64", "mma8", "wgmma8")
"""What multiplies: FMA units, tensor cores by mma.sync or by wgmma; the same of f64; tensor cores,
of integers of 8 bits."""


@dataclass(frozen=True)
class Phase:
    """What a CTA multiplies on one unit, of :data:`UNITS`."""

    unit: str
    steps: Expr
    """Stages of the reduction that follow one another in a CTA."""
    products: Expr
    """Multiplications of a CTA."""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SpecError(f"a phase on {self.unit!r}; takes {', '.join(UNITS)}")


NOTHING = const(0)
MOVE = Phase("fma", const(1), NOTHING)
"""Of kernels that only move bytes."""


@dataclass(frozen=True)
class Effort:
    """What one kernel has to do, as formulas over the variables of its problems.

    ``slots``: CTAs that an SM has at a time. ``phases``: those of a CTA, whose times are added.
    """

    slots: int
    ctas: Expr
    """Tiles of all CTAs (of a persistent kernel: of all its turns)."""
    phases: tuple[Phase, ...]
    loads: Expr
    """Bytes that all CTAs together load."""
    operands: Expr
    """Bytes of what they load from, each counted once."""
    stores: Expr
    """Bytes written."""

    def __post_init__(self) -> None:
        if not self.phases:
            raise SpecError("an effort without phases; takes one or more")

    @property
    def units(self) -> tuple[str, ...]:
        """What multiplies, phase by phase."""
        return tuple(phase.unit for phase in self.phases)

    @property
    def formulas(self) -> tuple[Expr, ...]:
        """All formulas: CTAs, the first phase, bytes, and the other phases."""
        (first, *more) = ((phase.steps, phase.products) for phase in self.phases)
        return self.ctas, *first, self.loads, self.operands, self.stores, *chain(*more)

    def arguments(self, values: Mapping[str, int]) -> tuple[Any, ...]:
        """What a time is predicted of (:meth:`ptxgen.tiles.tunings.Tuning.terms`)."""
        numbers = [formula.evaluate(values) for formula in self.formulas]
        more = zip(self.units[1:], numbers[6::2], numbers[7::2], strict=True)
        return self.units[0], self.slots, values["SMS"], *numbers[:6], *chain(*more)

    def substitute(self, given: Mapping[str, Expr]) -> Effort:
        """The effort where variables are something else."""
        ctas, steps, products, loads, operands, stores, *more = (
            formula.substitute(given) for formula in self.formulas
        )
        of = zip(self.units, (steps, *more[::2]), (products, *more[1::2]), strict=True)
        phases = tuple(Phase(*each) for each in of)
        return Effort(self.slots, ctas, phases, loads, operands, stores)


@dataclass(frozen=True)
class Workload:
    """What a route has to do whose kernels state no :class:`Effort`: routes that are taken in
    order. Formulas over the variables of its problems, and the integers among their scalars.

    ``operations``: on ``unit``, one of :data:`UNITS`. ``nbytes``: bytes that are read and written,
    None where that is all of its arrays.
    """

    operations: Expr = NOTHING
    unit: str = "fma"
    nbytes: Expr | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SpecError(f"a workload on {self.unit!r}; takes {', '.join(UNITS)}")


@dataclass(frozen=True)
class Rates:
    """What a GPU can do: clock in GHz, memory in bytes a µs, L2 in bytes.

    ``products``: multiplications an SM and cycle, of each of :data:`UNITS`.
    """

    clock: float
    memory: float
    l2: float
    products: tuple[float, ...]

    def __post_init__(self) -> None:
        known = dict(zip(UNITS, self.products, strict=False))
        named = {"clock": self.clock, "memory": self.memory, "l2": self.l2, **known}
        if len(self.products) != len(UNITS) or not all(0 < r < math.inf for r in named.values()):
            raise SpecError(
                f"rates {named}: takes positive numbers, products of {', '.join(UNITS)}"
            )


def _rates(clock: float, memory: float, l2: float, *products: float) -> Rates:
    return Rates(clock, memory * 1e3, l2 * 1e6, products)


TYPICAL: Mapping[str, Rates] = MappingProxyType(
    {
        "sm_80": _rates(1.41, 2039, 40, 64, 1024, 1024, 32, 64, 2048, 2048),
        "sm_86": _rates(1.80, 768, 6, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_87": _rates(1.30, 205, 4, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_89": _rates(2.52, 1008, 72, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_90": _rates(1.98, 4800, 50, 128, 1280, 2048, 64, 128, 2560, 4096),
        "sm_100": _rates(1.85, 8000, 126, 128, 1024, 1024, 64, 64, 2048, 2048),
        "sm_103": _rates(1.92, 8000, 126, 128, 1024, 1024, 2, 2, 256, 256),
        "sm_110": _rates(1.57, 273, 32, 128, 1024, 1024, 2, 2, 2048, 2048),
        "sm_120": _rates(2.41, 1792, 96, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_121": _rates(2.42, 273, 24, 128, 256, 256, 2, 2, 1024, 1024),
    }
)
"""One GPU of each architecture, for where nothing else is known: A100 80 GB, RTX A6000, Jetson
AGX Orin, RTX 4090, H200, B200, B300, Jetson Thor, RTX 5090, GB10. NVIDIA's data sheets and
architecture papers; boost clocks (GHz), GB/s, MB; mma.sync on Hopper: five eighths of wgmma, as
measured on an H200."""
