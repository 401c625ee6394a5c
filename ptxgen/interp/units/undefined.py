"""Undefined values: tracks unwritten registers, and everything computed from them.

Reading an unwritten register is no error. PTX gives an unspecified value, and compilers rely on
that: they compute an address before the guard that prevents its use. So a value computed from an
undefined one is undefined as well, and only its *use* is a fault: when it reaches memory, other
lanes or control flow.

Each register that may be undefined (:attr:`~ptxgen.interp.text.flow.Flow.doubtful`) has a slot of
*origins* next to its value, an array of all lanes or of one element: 0 in a lane where the value is
defined, else the number (from 1) of the unwritten register that it was computed from. If analysis
finds no such registers, there are no origins. docs/explanation/interpreter.md lists the
instructions that propagate an undefined value, and those that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import KernelFault, UninitializedFault
from ptxgen.interp.text import flow
from ptxgen.interp.text.ptx import Instruction, Operand
from ptxgen.interp.units.kernel import DEFINED, Block, Kernel, Operation, active
from ptxgen.interp.units.operate import Variants, guard_of
from ptxgen.interp.units.sync import Wave

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Rule = Callable[[Wave, list[Any]], Array]
"""Function of (wave, registers) that returns a result's origins: per lane, 0 if it is defined, else
the number (from 1) of the unwritten register that it was computed from.
"""
Step = tuple[bool, tuple[int, ...], tuple[int, ...]]
"""Update of origins (which unwritten register a value was computed from) by one instruction:
(local, slots of the results' origins, slots of the operands' origins). ``local``: no other segment
reads the results, so that inactive lanes may be overwritten.
"""


class Tracker:
    """Adds operations to a block that track undefined values: in front of each instruction, they
    compute which unwritten register its results stem from, or check its operands.
    """

    def __init__(self, kernel: Kernel, block: Block) -> None:
        self.kernel, self.block = kernel, block
        self.steps: list[Step] = []
        """Steps that the block's last operation executes; empty if it executes none."""

    def instrument(self, instruction: Instruction) -> None:
        """Adds operations to the block, in front of ``instruction``. If that is pure, they compute
        from which unwritten registers its results stem; else they raise UninitializedFault if an
        operand is undefined, and mark its results as defined.
        """
        origins = self.kernel.origins
        if not origins:
            return
        opcode, guard = instruction.opcode, instruction.guard
        results = tuple(origins[n] for n in flow.writes(instruction) if n in origins)
        sources: tuple[int, ...] = ()
        if flow.is_pure(instruction):
            if not results:
                return
            if opcode in ("selp", "and", "or"):
                self._add(
                    _assign(self.kernel, instruction, results, _rule(self.kernel, instruction))
                )
                return
            sources = _origins(self.kernel, *instruction.operands[1:])
        else:
            used = set(flow.reads(instruction))
            if opcode == "wgmma":  # accumulators count only if scale-d says so
                used -= set(flow.writes(instruction))
            elif opcode == "shfl":  # which carries its value
                used = {name for o in instruction.operands[2:] for name in flow.register_names(o)}
            check = _check(self.kernel, instruction, used)
            if check is not None:
                self._add((check, check))
            if opcode in ("wgmma", "shfl") or not results:
                return
        if guard is None:
            local = all(map(self.kernel.is_local, flow.writes(instruction)))
            self._step((local, results, sources))
        else:
            self._add(_assign(self.kernel, instruction, results, _join(sources)))

    def _add(self, variants: Variants) -> None:
        self.block.full.append(variants[0])
        self.block.masked.append(variants[1])
        self.steps = []

    def _step(self, step: Step) -> None:
        """Appends ``step`` to those that the block's last operation executes, if it executes any;
        else adds a new operation to the block, which executes it.
        """
        if self.steps:
            self.steps.append(step)
            return
        steps = [step]
        self._add(_run(steps))
        self.steps = steps


# -- results ----------------------------------------------------------------------------


def _run(steps: list[Step]) -> Variants:
    """Returns the operations that execute ``steps`` in sequence, for all lanes and under a mask.
    The caller may append to ``steps`` until their first execution. If every slot of the steps has
    the origins DEFINED, they return at once.
    """
    slots: list[int] = []  # all slots of the steps; if all are defined, the steps change nothing

    def variant(whole: bool) -> Operation:
        def operation(wave: Wave, registers: list[Any]) -> None:
            if not slots:
                slots.extend({s for _, results, sources in steps for s in (*results, *sources)})
            for slot in slots:
                if registers[slot] is not DEFINED:
                    break
            else:
                return
            for local, results, sources in steps:
                new = joined(registers, sources)
                for slot in results:
                    put(registers, slot, new, None if whole or local else wave.mask)

        return operation

    return variant(True), variant(False)


def joined(registers: list[Any], slots: tuple[int, ...]) -> Array:
    """Returns the origins of a value that is computed from the registers whose origins are in
    ``slots``: in each lane 0 if all are defined, else the largest number of an unwritten register.
    DEFINED if all registers are defined in every lane.
    """
    found = DEFINED
    for slot in slots:
        origins = registers[slot]
        if origins is not DEFINED:
            found = origins if found is DEFINED else np.maximum(found, origins)
    return found


def _join(slots: tuple[int, ...]) -> Rule:
    return lambda wave, registers: joined(registers, slots)


def _rule(kernel: Kernel, instruction: Instruction) -> Rule:
    """Returns the function that computes the origins of the result of ``selp``, ``and`` or ``or``.

    These depend on values: ``selp`` ignores the operand that it does not select; a defined 0
    decides ``and``, a defined all-ones decides ``or``, whatever the other operand is.
    """
    sources = instruction.operands[1:]
    each = [_origins(kernel, operand) for operand in sources]
    every = _origins(kernel, *sources)
    if instruction.opcode == "selp":
        condition = kernel.value(sources[2], "pred", instruction)

        def selected(wave: Wave, registers: list[Any]) -> Array:
            if joined(registers, every) is DEFINED:
                return DEFINED
            a, b, c = (joined(registers, slots) for slots in each)
            found = np.maximum(np.where(condition(wave, registers), a, b), c)
            return found if found.any() else DEFINED

        return selected
    values = [kernel.value(operand, instruction.modifiers[0], instruction) for operand in sources]
    ones = instruction.opcode == "or"

    def decided(wave: Wave, registers: list[Any]) -> Array:
        found = joined(registers, every)
        if found is DEFINED:
            return found
        for slots, value in zip(each, values, strict=True):
            given = value(wave, registers)
            decides = (~given if ones else given) == 0
            found = np.where(decides & (joined(registers, slots) == 0), 0, found)
        return found if found.any() else DEFINED

    return decided


def _origins(kernel: Kernel, *operands: Operand) -> tuple[int, ...]:
    """Returns the slots of the origins of the registers in ``operands``; registers that are always
    defined have none. An origin is, per lane, 0 or the number of the unwritten register from which
    the value was computed.
    """
    names = (name for operand in operands for name in flow.register_names(operand))
    return tuple(kernel.origins[name] for name in names if name in kernel.origins)


def _assign(
    kernel: Kernel, instruction: Instruction, slots: tuple[int, ...], rule: Rule
) -> Variants:
    """Returns the operations, for all lanes and under a mask, that compute the origins of an
    instruction's results by ``rule``, and write them to ``slots`` in the lanes where the guard is
    true. A lane whose guard is undefined gets the guard's origin.
    """
    guard = guard_of(kernel, instruction)
    deciding = () if instruction.guard is None else _origins(kernel, instruction.guard)

    def variant(whole: bool) -> Operation:
        def operation(wave: Wave, registers: list[Any]) -> None:
            new, here = rule(wave, registers), None if whole else wave.mask
            held = here if guard is None else _both(guard(wave, registers), here)
            doubt = joined(registers, deciding)
            for slot in slots:
                put(registers, slot, new, held)
                if doubt is not DEFINED:
                    put(registers, slot, doubt, _both(doubt != 0, here))

        return operation

    return variant(True), variant(False)


def _both(lanes: Bools, mask: Bools | None) -> Bools:
    return lanes if mask is None else lanes & mask


def put(registers: list[Any], slot: int, new: Array, mask: Bools | None) -> None:
    """Writes undefined-value origins ``new`` to ``slot`` in the lanes of ``mask`` (None: all)."""
    old = registers[slot]
    if new is old:
        return
    if mask is not None:
        new = np.where(mask, new, old)
    registers[slot] = new if new.any() else DEFINED


def shuffle(
    kernel: Kernel, instruction: Instruction
) -> Callable[[Wave, list[Any], NDArray[np.int64], Bools], None] | None:
    """Returns a function (wave, registers, read, go) that moves the origins of undefined values
    between lanes as shfl moves values; None if the results are always defined.

    ``read``: the lane that each lane reads; ``go``: the mask of participating lanes; both
    ``[warps, 32]``.
    """
    results = [name for name in flow.writes(instruction) if name in kernel.origins]
    if not results:
        return None
    value = next(flow.register_names(instruction.operands[0]))
    source = _origins(kernel, instruction.operands[1])

    def carry(wave: Wave, registers: list[Any], read: NDArray[np.int64], go: Bools) -> None:
        origins = joined(registers, source)
        if origins.size > 1:
            origins = np.take_along_axis(origins.reshape(read.shape), read, axis=1).reshape(-1)
        for name in results:
            new = origins if name == value else DEFINED  # the predicate tells of lanes
            put(registers, kernel.origins[name], new, go.reshape(-1))

    return carry


# -- uses -------------------------------------------------------------------------------


def _check(kernel: Kernel, instruction: Instruction, names: set[str]) -> Operation | None:
    """Returns an operation that raises UninitializedFault if a running lane whose guard is true has
    an undefined value in one of the registers ``names``. None if all of these are always defined.
    """
    used = [(name, kernel.origins[name]) for name in sorted(names & kernel.origins.keys())]
    if not used:
        return None
    guard = guard_of(kernel, instruction)
    deciding = "" if instruction.guard is None else instruction.guard.name

    def check(wave: Wave, registers: list[Any]) -> None:
        for name, slot in used:
            origins = registers[slot]
            if origins is DEFINED:
                continue
            held = None if guard is None or name == deciding else guard(wave, registers)
            lanes = active(wave, held)
            here = wave.lanes[wave.alive] if lanes is None else lanes
            found = np.broadcast_to(origins, wave.lanes.shape)[here]
            if found.any():
                at = int(np.flatnonzero(found)[0])
                raise fault(kernel, wave, instruction, name, int(found[at]), int(here[at]))

    return check


def fault(
    kernel: Kernel, wave: Wave, instruction: Instruction, name: str, origin: int, lane: int
) -> KernelFault:
    """Returns the fault for a use of register ``name``, undefined because of unwritten register
    number ``origin``.
    """
    source = kernel.flow.unwritten[origin - 1]
    said = "" if source == name else f", made of register {source}"
    return wave.fault(
        UninitializedFault,
        f"use of register {name}{said}, which nothing has written",
        instruction,
        lane,
    )
