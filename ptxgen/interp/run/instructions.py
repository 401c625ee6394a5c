"""Decoding of segments: :func:`decode_segment` appends the operations of each instruction to a
block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import PtxError, TrapFault
from ptxgen.interp.text.ordering import CTA, GPU, fence_scope
from ptxgen.interp.text.ptx import Instruction, Vector
from ptxgen.interp.units import collective, operate, transfer, undefined, wgmma
from ptxgen.interp.units.kernel import Block, Kernel, Operation, active
from ptxgen.interp.units.operate import Variants, compute, guard_of, move
from ptxgen.interp.units.sync import Wave
from ptxgen.interp.values.scalar import lookup

Array = NDArray[Any]


def decode_segment(kernel: Kernel, block: Block, kind: str) -> None:
    """Decodes the instructions of ``block`` into its operations, and the last one into the
    operation that ends it, if ``kind`` is branch, exit or wait; after "fall", lanes continue at the
    next segment. Raises PtxError with the line of an instruction that is outside the subset.
    """
    try:
        _decode_segment(kernel, block, kind)
    except PtxError as error:
        if error.line and error.file == kernel.module.file:
            raise
        message = str(error).partition(": ")[2].removesuffix(f"\n    {error.text}")
        raise kernel.error(message, kernel.decoding) from None


def _decode_segment(kernel: Kernel, block: Block, kind: str) -> None:
    kernel.decoding = block.instructions[-1]
    instructions = list(block.instructions)
    if kind == "wait":
        instruction = instructions.pop()
        families = {"wgmma": wgmma.waiting, "ld": transfer.polling}
        waiting = families.get(instruction.opcode, collective.waiting)
        block.end = waiting(kernel, block, instruction)
    elif kind in ("branch", "exit"):
        block.end = _end(kernel, block, instructions.pop(), kind)
    else:
        block.end = _fall(block)
    tracker = undefined.Tracker(kernel, block)

    def instrument(instruction: Instruction) -> None:
        tracker.instrument(instruction)
        check = wgmma.register_check(kernel, instruction)
        if check is not None:
            block.full.append(check)
            block.masked.append(check)

    for instruction in instructions:
        kernel.decoding = instruction
        instrument(instruction)
        variants = decode(kernel, instruction)
        if variants is not None:
            block.full.append(variants[0])
            block.masked.append(variants[1])
    if kind != "fall":
        instrument(block.instructions[-1])


# -- ends of segments -----------------------------------------------------------------


def _fall(block: Block) -> Operation:
    def end(wave: Wave, registers: list[Any]) -> None:
        wave.send(block.following, wave.mask)

    return end


def _end(kernel: Kernel, block: Block, instruction: Instruction, kind: str) -> Operation:
    guard = guard_of(kernel, instruction)
    if instruction.opcode == "trap":

        def go(wave: Wave, mask: NDArray[np.bool_] | None) -> None:
            lane = 0 if mask is None else int(np.flatnonzero(mask)[0])
            raise wave.fault(TrapFault, "the kernel stopped itself (trap)", instruction, lane)

    elif kind == "exit":

        def go(wave: Wave, mask: NDArray[np.bool_] | None) -> None:
            wave.leave(mask)

    else:

        def go(wave: Wave, mask: NDArray[np.bool_] | None) -> None:
            wave.send(block.target, mask)

    if guard is None:
        return lambda wave, registers: go(wave, wave.mask)

    def end(wave: Wave, registers: list[Any]) -> None:
        taken = guard(wave, registers)
        mask = wave.mask
        if taken.size == 1 and len(wave.lanes) > 1:
            if taken[0]:
                go(wave, mask)
            else:
                wave.send(block.following, mask)
            return
        if mask is None:
            if taken.all():
                go(wave, None)
            elif not taken.any():
                wave.send(block.following, None)
            else:
                wave.send(block.following, ~taken)
                go(wave, taken)
            return
        yes = taken & mask
        if not yes.any():
            wave.send(block.following, mask)
            return
        no = mask & ~taken
        if no.any():
            wave.send(block.following, no)
        go(wave, yes)

    return end


# -- decoding -------------------------------------------------------------------------


def decode(kernel: Kernel, instruction: Instruction) -> Variants | None:
    """Decodes an instruction inside a segment: its operations for all lanes and under a mask; None
    if it has no effect.
    """
    if instruction.opcode == "mov" and _plain_mov(instruction) is False:
        return move(kernel, instruction)
    scalar = lookup(instruction)
    if scalar is not None:
        return compute(kernel, instruction, scalar)
    family = _FAMILIES.get(instruction.opcode)
    if family is None:
        raise kernel.error(f"instruction {instruction.name} is outside the subset", instruction)
    return family(kernel, instruction)


def _plain_mov(instruction: Instruction) -> bool:
    return not any(isinstance(o, Vector) for o in instruction.operands)


def _fence(kernel: Kernel, instruction: Instruction) -> Variants | None:
    """Decodes ``fence`` and ``membar``: returns operations that record it in the race checks if
    these track it (in a kernel with clusters, acq_rel and sc of a scope beyond the CTA; in one that
    orders CTAs, all of the scope of the GPU; fence.proxy.async), else None: it has no effect.
    Raises PtxError for other proxy fences.
    """
    form = instruction.modifiers
    guard = guard_of(kernel, instruction)
    in_cluster = form[:1] in (("acq_rel",), ("sc",)) and kernel.cluster > 1 and form[1:] != ("cta",)
    in_grid = kernel.orders_ctas and (fence_scope(instruction) or CTA) >= GPU
    if in_cluster or in_grid:

        def fence(wave: Wave, registers: list[Any]) -> None:
            lanes = active(wave, None if guard is None else guard(wave, registers))
            own = np.flatnonzero(wave.alive) if lanes is None else lanes
            if in_cluster:
                wave.cluster_barrier.fence(own)
            if in_grid and wave.causality is not None:
                wave.causality.fence(own)

        return fence, fence
    if form[:1] != ("proxy",) or form[1:2] == ("alias",):
        return None
    if form[1:2] != ("async",) or form[2:] not in (
        (), ("global",), ("shared::cta",), ("shared::cluster",)
    ):  # fmt: skip
        raise kernel.error("this form of fence is outside the subset", instruction)
    in_global = kernel.orders_ctas and form[2:] in ((), ("global",))
    in_shared = form[2:] != ("global",)
    if not in_global and not in_shared:
        return None

    def operation(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        own = np.flatnonzero(wave.alive) if lanes is None else lanes
        if in_shared:
            wave.history.fence(own)
        if in_global and wave.causality is not None:
            wave.causality.fence_proxy(own)

    return operation, operation


def _ignored(kernel: Kernel, instruction: Instruction) -> Variants | None:
    """Returns None, as ``griddepcontrol``, ``nanosleep`` and ``prefetch`` have no effect."""
    return None


_FAMILIES: dict[str, Callable[[Kernel, Instruction], Variants | None]] = {
    "ld": transfer.load,
    "ldu": transfer.load,
    "st": transfer.store,
    "atom": transfer.atomic,
    "red": transfer.atomic,
    "cvta": operate.cvta,
    "mapa": operate.mapa,
    "getctarank": operate.getctarank,
    "isspacep": operate.isspacep,
    "cp": transfer.copy,
    "fence": _fence,
    "membar": _fence,
    "griddepcontrol": _ignored,
    "nanosleep": _ignored,
    "prefetch": _ignored,
    "activemask": collective.activemask,
    "mbarrier": collective.mbarrier,
}
