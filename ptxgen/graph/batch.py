"""Batching: equal elementwise steps of different arrays become one launch.

Steps are equal if they compute the same formula, of arrays of the same shapes and strides. One
launch computes all of them, each as a copy of the formula with arrays and scalars of its own
(:attr:`ptxgen.spec.pointwise.Form.copies`), so no bit changes. It accesses memory as the least
aligned arrays allow. A step is moved to an earlier or a later one of its kind only past steps that
neither read what it writes nor write what it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from ptxgen.graph.fuse import elementwise
from ptxgen.graph.inplace import may_overlap
from ptxgen.graph.worth import microseconds
from ptxgen.ops.pointwise import problem
from ptxgen.program.buffer import ALIGN, Buffer
from ptxgen.program.step import Operand, Program, Step
from ptxgen.spec.abi import PARAMETERS_MAX
from ptxgen.spec.pointwise import COPIES_MAX, Form, PointwiseSpec

BYTES_MAX = 32 << 20
"""Most bytes that the steps of one launch read and write together. Longer steps gain nothing, and
results of more bytes would leave the L2 cache before the next step reads them."""
DISTANCE_MAX = 256
"""Largest distance, in launches, over which a step is moved."""


@dataclass(eq=False)
class _Group:
    """Equal steps that become one launch, or one step of any kind. ``key``: what equal steps agree
    in, None for a step that is launched alone; ``most``: largest number of steps.
    """

    steps: list[Step]
    key: Any
    most: int
    nbytes: int

    def reads(self) -> Iterator[Buffer]:
        """Yields the buffers that the steps read."""
        return (b for s in self.steps for b in s.reads())

    def writes(self) -> Iterator[Buffer]:
        """Yields the buffers that the steps write."""
        return (b for s in self.steps for b in s.writes())

    def precedes(self, other: _Group) -> bool:
        """Whether the group has to run before ``other``, which now follows it."""
        return any(
            may_overlap(a, b) and not _interleaved(a, b)
            for one, two in (
                (self.writes(), [*other.reads(), *other.writes()]),
                (self.reads(), [*other.writes()]),
            )
            for a in one
            for b in two
        )

    def step(self) -> Step:
        """Converts the group to a step."""
        first, count = self.steps[0], len(self.steps)
        if count == 1:
            return first
        assert isinstance(first.problem.dtype, Form), "of equal elementwise steps"
        formula, shape = first.problem.dtype.formula, first.writes()[0].shape
        least = {n: _least_aligned([s.bind[n] for s in self.steps]) for n in first.bind}
        name = first.problem.what.split(" of shape")[0]
        made = problem(name, formula, shape, least, len(formula.outputs))
        assert isinstance(made.dtype, Form), "that of a formula"
        form = replace(made.dtype, copies=count)
        bind: dict[str, Operand] = {
            form.operand(name, copy): x
            for copy, step in enumerate(self.steps)
            for name, x in step.bind.items()
        }
        what = f"{made.what}, {count} times"
        return Step(replace(made, dtype=form, batch=(count, 1), what=what), bind)


def _least_aligned(operands: Sequence[Operand]) -> Operand:
    """Returns the array with the least aligned address, or one of the scalars."""
    arrays = [x for x in operands if isinstance(x, Buffer)]
    return min(arrays, key=lambda x: x.address & -x.address or ALIGN) if arrays else operands[0]


def _interleaved(a: Buffer, b: Buffer) -> bool:
    """Whether two arrays in one memory are disjoint because they repeat with the same largest
    stride, and take different bytes of each of its periods, as slices of rows do.
    """
    one, two = _period(a), _period(b)
    if one is None or two is None or one.period != two.period:
        return False
    return one.high <= two.low or two.high <= one.low


class _Period(NamedTuple):
    """Bytes ``low`` to before ``high`` of each ``period`` bytes of a memory."""

    period: int
    low: int
    high: int


def _period(x: Buffer) -> _Period | None:
    """Returns the bytes that an array takes of each period of its largest stride; None if there are
    strides below 1, or if these bytes reach beyond a period.
    """
    steps = [(s, n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1]
    if not steps or min(steps)[0] < 1:
        return None
    steps.sort()
    period = steps.pop()[0] * x.itemsize
    low = x.offset % period
    high = low + x.itemsize * (1 + sum(s * (n - 1) for s, n in steps))
    return _Period(period, low, high) if high <= period else None


def _group(step: Step) -> _Group:
    key, most, formula = None, 1, elementwise(step)
    if formula is not None and not dict(step.problem.values)["FACTOR"]:
        facts = tuple(
            (name, (x.shape, x.strides, x.dtype) if isinstance(x, Buffer) else None)
            for name, x in step.bind.items()
        )
        key, most = (formula, facts), _copies(step.problem.dtype)
    return _Group([step], key, most, step.nbytes)


@lru_cache(maxsize=4096)
def _copies(form: Any) -> int:
    """Returns the largest number of copies of a form whose arguments fit a launch, with as many
    strides as its arrays can have.
    """
    some = replace(form, sets=tuple(range(len(form.arrays))), steps="s" * len(form.arrays))
    one, two = (PointwiseSpec("wide", replace(some, copies=n)).abi.size for n in (1, 2))
    return min(COPIES_MAX, 1 + max(PARAMETERS_MAX - one, 0) // (two - one))


def batched(program: Program) -> Iterator[Step]:
    """Yields the steps of a program, with equal elementwise steps batched where the launch is not
    predicted to take longer than the steps.
    """
    groups: list[_Group] = []
    for step in program.steps:
        own = _group(step)
        at = _partner(groups, own)
        if at is None:
            groups.append(own)
            continue
        other = groups.pop(at)
        place = at if not any(g.precedes(own) for g in groups[at:]) else len(groups)
        both = _Group([*other.steps, step], own.key, own.most, other.nbytes + own.nbytes)
        groups.insert(place, both)
    for group in groups:
        batch = group.step()
        if len(group.steps) > 1 and microseconds([batch]) > microseconds(group.steps):
            yield from group.steps
        else:
            yield batch


def _partner(groups: Sequence[_Group], own: _Group) -> int | None:
    """Returns the index of the latest group that ``own``, which comes after ``groups``, can join,
    at the group's place or at its own; None if there is none.
    """
    if own.key is None:
        return None
    for at in range(len(groups) - 1, max(-1, len(groups) - DISTANCE_MAX - 1), -1):
        group = groups[at]
        fits = len(group.steps) < group.most and group.nbytes + own.nbytes <= BYTES_MAX
        if group.key != own.key or not fits or group.precedes(own):
            continue
        between = groups[at + 1 :]
        early = not any(g.precedes(own) for g in between)
        if early or not any(group.precedes(g) for g in between):
            return at
    return None
