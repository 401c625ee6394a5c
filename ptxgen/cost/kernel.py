"""The work of a kernel, as formulas over the variables of its problem.

Specs derive a :class:`KernelCost` or a :class:`Roofline` from their fields, and
:mod:`ptxgen.cost.tuning` predicts times from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ptxgen.errors import SpecError
from ptxgen.expr import Expr, const

UNITS = ("fma", "mma", "wgmma", "fma64", "mma64", "mma8", "wgmma8")
"""Units that multiply: FMA units, tensor cores by mma.sync and by wgmma; FMA units and tensor cores
of f64; tensor cores of 8-bit integers, by mma.sync and by wgmma."""


@dataclass(frozen=True)
class Phase:
    """Part of a CTA's work: multiplications on one of :data:`UNITS`."""

    unit: str
    steps: Expr
    """Sequential steps of a CTA's reduction (iterations of its main loop)."""
    products: Expr
    """Multiplications that a CTA does in the phase."""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SpecError(f"a phase on {self.unit!r}; takes {', '.join(UNITS)}")


NOTHING = const(0)
MOVE = Phase("fma", const(1), NOTHING)
"""Phase of kernels that only move bytes: one step, no multiplications."""


@dataclass(frozen=True)
class KernelCost:
    """Work of a kernel, as formulas over the problem's variables, from which the quantities of
    :data:`ptxgen.cost.tuning.TERMS` follow.

    ``slots``: CTAs that an SM runs at a time. ``phases``: parts of a CTA's work, whose times add
    up.
    """

    slots: int
    ctas: Expr
    """Number of CTAs; for a persistent kernel, the tiles of all CTAs."""
    phases: tuple[Phase, ...]
    loads: Expr
    """Bytes that all CTAs load together, repeated loads of the same data included."""
    operands: Expr
    """Bytes of the arrays that CTAs load from: each array once, however many CTAs load it."""
    stores: Expr
    """Bytes that all CTAs write."""

    def __post_init__(self) -> None:
        if not self.phases:
            raise SpecError("a cost without phases; takes one or more")

    @property
    def units(self) -> tuple[str, ...]:
        """Unit that each phase multiplies on, one of :data:`UNITS`, in order."""
        return tuple(phase.unit for phase in self.phases)

    @property
    def formulas(self) -> tuple[Expr, ...]:
        """All formulas in a fixed order: CTAs; steps and products of the first phase; loads,
        operands, stores; steps and products of each further phase.
        """
        (first, *more) = ((phase.steps, phase.products) for phase in self.phases)
        return self.ctas, *first, self.loads, self.operands, self.stores, *chain(*more)

    def arguments(self, values: Mapping[str, int]) -> tuple[Any, ...]:
        """Evaluates the formulas for the problem variables ``values``, which include SMS, the GPU's
        number of SMs. Returns the arguments of :meth:`ptxgen.cost.tuning.Tuning.terms`.
        """
        counts = [formula.evaluate(values) for formula in self.formulas]
        more = zip(self.units[1:], counts[6::2], counts[7::2], strict=True)
        return self.units[0], self.slots, values["SMS"], *counts[:6], *chain(*more)

    def substitute(self, given: Mapping[str, Expr]) -> KernelCost:
        """Returns the cost with variables replaced: ``given`` has an expression for each variable's
        name.
        """
        ctas, steps, products, loads, operands, stores, *more = (
            formula.substitute(given) for formula in self.formulas
        )
        of = zip(self.units, (steps, *more[::2]), (products, *more[1::2]), strict=True)
        phases = tuple(Phase(*each) for each in of)
        return KernelCost(self.slots, ctas, phases, loads, operands, stores)


@dataclass(frozen=True)
class Roofline:
    """Operations and bytes of a kernel without :class:`KernelCost`, from which a roofline time is
    predicted. The formulas read the problem's variables and integer scalars.

    ``operations``: number of operations on ``unit``, one of :data:`UNITS`. ``nbytes``: bytes read
    and written; None means all bytes of the problem's arrays.
    """

    operations: Expr = NOTHING
    unit: str = "fma"
    nbytes: Expr | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SpecError(f"a roofline of {self.unit!r}; takes {', '.join(UNITS)}")
