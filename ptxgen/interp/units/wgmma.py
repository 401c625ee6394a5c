"""wgmma: asynchronous matrix products of warpgroups.

A product is executed as late as possible: when its warpgroup waits for its group (or at its issue,
if the settings say ``early``). Until then no instruction may access its accumulators or the
registers of its A, nor write to the shared memory that it reads. Registers that another instruction
has accessed need a ``wgmma.fence`` before the next wgmma uses them.

Source: PTX ISA 9.0, 9.7.15 (asynchronous warpgroup level matrix instructions).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import BarrierFault, RaceFault
from ptxgen.interp.memory import access as memory_access
from ptxgen.interp.memory.access import Access
from ptxgen.interp.memory.proxy import GROUP, PIECE, Reading
from ptxgen.interp.memory.race import Conflict
from ptxgen.interp.text import flow
from ptxgen.interp.text.ptx import WARP, Immediate, Instruction, Vector
from ptxgen.interp.units import collective, operate, tensor, undefined
from ptxgen.interp.units.kernel import (
    DEFINED,
    Block,
    Kernel,
    Operation,
    Value,
    active,
    operand_items,
)
from ptxgen.interp.units.sync import Wave

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Lanes = NDArray[np.int64]
_U32 = np.dtype(np.uint32)
_SUMS = {"f32": np.float32, "s32": np.int32}


class WgmmaState:
    """State of a wave's wgmma instructions: products in flight, and registers that need a fence."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        warps = wave.threads // WARP
        count = len(wave.lanes) // wave.threads
        starts = np.arange(0, warps // 4 * 4, 4)
        first = (np.arange(count)[:, None] * warps + starts).reshape(-1)
        self.warps: Lanes = first[:, None] + np.arange(4)
        """Warps of each warpgroup, ``[groups, 4]``."""
        self.lanes: Lanes = (self.warps[:, :, None] * WARP + np.arange(WARP)).reshape(-1, GROUP)
        self.pending: list[Product] = []
        self.committed = np.zeros(len(first), np.int64)
        self.fenced = np.zeros(len(first), np.bool_)
        """Whether each warpgroup has executed ``wgmma.fence``."""
        self.touched: dict[int, Bools] = {}
        """Lanes that have accessed a register since their last fence, by register slot."""

    def mask_of(self, groups: Lanes) -> Bools:
        """Returns the mask of the wave's lanes that are in the warpgroups ``groups``."""
        mask = np.zeros(len(self.wave.lanes), np.bool_)
        mask[self.lanes[groups]] = True
        return mask

    def touch(self, names: list[tuple[str, int]], mask: Bools, instruction: Instruction) -> None:
        """Records that the lanes in ``mask`` access registers by ``instruction``, which is no
        wgmma; ``names``: (name, slot) of each. Raises RaceFault if a wgmma in flight uses one of
        them.
        """
        for product in self.pending:
            both = product.mask & mask
            if both.any():
                for name, slot in names:
                    if slot in product.slots:
                        raise self._in_use(product, name, both, instruction)
        for _, slot in names:
            there = self.touched.get(slot)
            self.touched[slot] = mask if there is None else there | mask

    def _in_use(
        self, product: Product, name: str, lanes: Bools, instruction: Instruction
    ) -> Exception:
        here = product.instruction
        return self.wave.fault(
            RaceFault,
            f"access to {name} while the wgmma of line {here.line} that uses it is under way: no "
            "wgmma.wait_group has waited for it",
            instruction,
            int(np.flatnonzero(lanes)[0]),
        )

    def fence(self, groups: Lanes) -> None:
        """Executes wgmma.fence of the warpgroups ``groups``: their later wgmma may use registers
        that other instructions have accessed before.
        """
        self.fenced[groups] = True
        if self.touched:
            mask = self.mask_of(groups)
            left = {slot: there & ~mask for slot, there in self.touched.items()}
            self.touched = {slot: there for slot, there in left.items() if there.any()}

    def issue(self, product: Product, names: dict[int, str]) -> None:
        """Starts a product. ``names``: the name of each of its registers, by slot. Raises RaceFault
        if its warpgroups have executed no wgmma.fence, or if another instruction has accessed one
        of the registers since, or if a product in flight with other accumulators uses one.
        """
        instruction, mask = product.instruction, product.mask
        unready = product.groups[~self.fenced[product.groups]]
        if len(unready):
            raise self.wave.fault(
                RaceFault,
                "no wgmma.fence comes before the first wgmma",
                instruction,
                int(self.lanes[unready[0], 0]),
            )
        for slot in product.slots & self.touched.keys():
            both = self.touched[slot] & mask
            if both.any():
                raise self.wave.fault(
                    RaceFault,
                    f"{names[slot]} has been accessed before this wgmma, and no wgmma.fence comes "
                    "in between",
                    instruction,
                    int(np.flatnonzero(both)[0]),
                )
        for other in self.pending:
            shared = other.slots & product.slots
            if not shared or not (other.mask & mask).any():
                continue
            # Only products of one shape may follow each other in the same accumulators.
            if other.sums != product.sums:
                raise self._in_use(other, names[min(shared)], other.mask & mask, instruction)
        self.pending.append(product)
        if self.wave.early:
            product.execute()

    def commit(self, groups: Lanes) -> None:
        """Executes wgmma.commit_group of the warpgroups ``groups``: the products that each has
        issued since its last commit become a group.
        """
        self.committed[groups] += 1

    def wait(self, groups: Lanes, newest: int) -> None:
        """Executes wgmma.wait_group for ``groups``: completes the products of all their commit
        groups but the ``newest`` youngest, which writes the accumulators.
        """
        chosen = np.zeros(len(self.committed), np.bool_)
        chosen[groups] = True
        rest: list[Product] = []
        for product in self.pending:
            old = product.number < self.committed[product.groups] - newest
            done = old & chosen[product.groups]
            if not done.any():
                rest.append(product)
                continue
            if not done.all():
                product, staying = product.split(done)
                rest.append(staying)
            if not self.wave.early:
                product.execute()
            self.wave.history.end_group(product.reading)
        self.pending = rest


@dataclass(slots=True, eq=False)
class Product:
    """A wgmma.mma_async of the warpgroups ``groups`` that is in flight: issued, not waited for.

    ``mask``: the lanes of these warpgroups; ``b``: operand B, as ``a`` in shared memory;
    ``scale_d``: whether each warpgroup adds to its accumulators, or starts from zero; ``reading``:
    the reads of shared memory in the race check.
    """

    wave: Wave
    form: Form
    groups: Lanes
    number: NDArray[np.int64]
    """Index of the commit group that the product belongs to, for each of ``groups``: the number of
    groups that the warpgroup had committed before it issued the product.
    """
    mask: Bools
    a: Lanes | list[Array]
    """Operand A: byte offsets of its 16-byte pieces in the wave's shared memory, a row per
    warpgroup; or the values of its four registers, ``[warps, 32]`` each.
    """
    b: Lanes
    scale_d: Bools
    reading: Reading

    @property
    def instruction(self) -> Instruction:
        return self.form.instruction

    @property
    def slots(self) -> frozenset[int]:
        """Slots (indices in the wave's list) of all registers that the product uses: accumulators,
        and A if that is in registers.
        """
        return self.form.slots

    @property
    def sums(self) -> tuple[int, ...]:
        """Slots of the accumulator registers."""
        return self.form.sums

    def split(self, part: Bools) -> tuple[Product, Product]:
        """Splits the product in two: of the warpgroups in the mask ``part``, and of the others."""
        matrices, history = self.wave.unit(WgmmaState), self.wave.history
        pieces = len(self.reading.at) // len(self.groups)
        readings = history.split_reading(self.reading, np.repeat(part, pieces))
        both = []
        for chosen, reading in zip((part, ~part), readings, strict=True):
            groups = self.groups[chosen]
            warps = np.repeat(chosen, 4)
            a = [x[warps] for x in self.a] if isinstance(self.a, list) else self.a[chosen]
            both.append(
                Product(
                    self.wave,
                    self.form,
                    groups,
                    self.number[chosen],
                    matrices.mask_of(groups),
                    a,
                    self.b[chosen],
                    self.scale_d[chosen],
                    reading,
                )
            )
        return both[0], both[1]

    def execute(self) -> None:
        """Computes the product, and writes the accumulators."""
        wave, form = self.wave, self.form
        wgmma = form.wgmma
        memory = wave.shared_rows(_U32, 4)
        if isinstance(self.a, list):
            a = wgmma.a_of(self.a)
        else:
            assert wgmma.a is not None
            a = wgmma.a.matrix(memory[self.a // PIECE])
        b = wgmma.b.matrix(memory[self.b // PIECE])
        matrices = wave.unit(WgmmaState)
        warps = matrices.warps[self.groups].reshape(-1)
        registers = wave.registers
        d = []
        for value, slot in zip(form.values, form.sums, strict=True):
            if registers[slot] is None:  # never written, nor used
                d.append(np.zeros((len(warps), WARP), _SUMS[wgmma.sum]))
            else:
                d.append(collective.rows_of(wave, value(wave, registers))[warps])
        results = wgmma.run(a, b, d, self.scale_d, form.arch)
        lanes = None if len(warps) * WARP == len(wave.lanes) else matrices.lanes[self.groups]
        flat = None if lanes is None else lanes.reshape(-1)
        for writer, result in zip(form.writers, results, strict=True):
            writer(wave, registers, np.ascontiguousarray(result).reshape(-1), flat)


class Form:
    """Decoded wgmma.mma_async instruction."""

    def __init__(self, kernel: Kernel, instruction: Instruction) -> None:
        self.instruction = instruction
        self.wgmma = tensor.wgmma(instruction)
        self.arch = f"sm_{kernel.compute}"
        d, a, b, scale_d = instruction.operands[:4]
        targets = operand_items(d)
        self.names = {kernel.slot(n): n for n in flow.matrices(instruction)}
        self.slots = frozenset(self.names)
        self.sums = tuple(kernel.slot(n) for n in flow.register_names(d))
        if len(set(self.sums)) != self.wgmma.registers:
            raise kernel.error("takes different registers as accumulators", instruction)
        self.kernel = kernel
        self.doubtful = [n for n in flow.register_names(d) if n in kernel.origins]
        self.values = [kernel.value(t, self.wgmma.sum, instruction) for t in targets]
        self.writers = [operate.write(kernel, t, self.wgmma.sum, instruction) for t in targets]
        self.a: list[Value] = (
            [kernel.value(x, "b32", instruction) for x in a.items]
            if isinstance(a, Vector)
            else [kernel.value(a, "b64", instruction)]
        )
        self.b = kernel.value(b, "b64", instruction)
        self.scale_d: Value | None = None
        self.scale_d_constant = False
        if isinstance(scale_d, Immediate):
            self.scale_d_constant = bool(scale_d.value)
        else:
            self.scale_d = kernel.value(scale_d, "pred", instruction)
        self.access = Access(instruction, kernel.new_site(instruction), _U32, 4)

    def start(self, wave: Wave, registers: list[Any], groups: Lanes) -> None:
        """Issues the wgmma for the warpgroups ``groups`` (indices in the wave): reads descriptors
        and scale-d from ``registers``, and checks the reads of A and B in shared memory for races.
        The product is computed when the warpgroups wait for it, or now if the settings say
        ``early``.
        """
        matrices = wave.unit(WgmmaState)
        lanes = matrices.lanes[groups]
        if self.scale_d is None:
            scale_d = np.full(len(groups), self.scale_d_constant)
        else:
            scale_d = self._warpgroup_uniform(wave, registers, self.scale_d, lanes, "scale-d")
        b = self._pieces(wave, registers, self.b, lanes, self.wgmma.b)
        a: Lanes | list[Array]
        read = b
        if self.wgmma.a is None:
            warps = matrices.warps[groups].reshape(-1)
            a = [collective.rows_of(wave, v(wave, registers))[warps] for v in self.a]
        else:
            a = self._pieces(wave, registers, self.a[0], lanes, self.wgmma.a)
            read = np.concatenate((a, b), axis=1)
        if self.doubtful:
            self._check_accumulators(wave, registers, lanes, scale_d)
        try:
            reading = wave.history.begin_group(read, lanes, self.access.site)
        except Conflict as conflict:
            own = wave.history.readers(read, lanes)
            raise wave.conflict(conflict, self.instruction, "read by wgmma", own) from None
        product = Product(
            wave,
            self,
            groups,
            matrices.committed[groups],
            matrices.mask_of(groups),
            a,
            b,
            scale_d,
            reading,
        )
        matrices.issue(product, self.names)

    def _warpgroup_uniform(
        self, wave: Wave, registers: list[Any], value: Value, lanes: Lanes, what: str
    ) -> Array:
        """Returns an operand's value per warpgroup; raises BarrierFault if its lanes disagree."""
        given = np.broadcast_to(value(wave, registers), wave.lanes.shape)[lanes]
        other = given != given[:, :1]
        if other.any():
            lane = int(lanes[other][0])
            raise wave.fault(
                BarrierFault,
                f"the lanes of a warpgroup give different values of {what}",
                self.instruction,
                lane,
            )
        result: Array = given[:, 0]
        return result

    def _pieces(
        self,
        wave: Wave,
        registers: list[Any],
        value: Value,
        lanes: Lanes,
        matrix: tensor.SharedMatrix,
    ) -> Lanes:
        """Returns the byte offsets, in the wave's shared memory, of the 16-byte pieces of a matrix
        in shared memory, ``[warpgroups, pieces]``; ``value`` gives the matrix descriptors of
        ``lanes``.

        Raises BarrierFault if lanes of a warpgroup have different descriptors, MemoryFault out of
        bounds.
        """
        words = self._warpgroup_uniform(wave, registers, value, lanes, "a matrix descriptor")
        chunks = matrix.chunks(words)
        own = np.repeat(lanes[:, 0], chunks.shape[1])
        flat = memory_access.shared_offsets(wave, self.access, chunks.reshape(-1), PIECE, own)
        return flat.reshape(chunks.shape)

    def _check_accumulators(
        self, wave: Wave, registers: list[Any], lanes: Lanes, scale_d: Bools
    ) -> None:
        """Raises UninitializedFault if an accumulator is undefined where scale-d is true; then
        marks all as defined.
        """
        slots = {name: self.kernel.origins[name] for name in self.doubtful}
        slots = {name: slot for name, slot in slots.items() if registers[slot] is not DEFINED}
        if not slots:
            return
        here = np.zeros(len(wave.lanes), np.bool_)
        here[lanes] = True
        for name, slot in slots.items():
            used = np.broadcast_to(registers[slot], wave.lanes.shape)[lanes] * scale_d[:, None]
            if used.any():
                at = int(np.flatnonzero(used)[0])
                origin, lane = int(used.flat[at]), int(lanes.flat[at])
                raise undefined.fault(self.kernel, wave, self.instruction, name, origin, lane)
            undefined.put(registers, slot, DEFINED, here)


def waiting(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes a wgmma instruction that ends a basic block: mma_async, fence, commit_group or
    wait_group. Returns the function that runs it for warpgroups whose four warps have all arrived,
    and parks the other warps.
    """
    block.collective = True
    kind, *rest = instruction.modifiers
    if instruction.guard is not None:
        raise kernel.error("a guard on this instruction is outside the subset", instruction)
    newest = 0
    form: Form | None = None
    if kind == "mma_async":
        form = Form(kernel, instruction)
    elif kind not in ("fence", "commit_group", "wait_group") or rest != ["sync", "aligned"]:
        raise kernel.error("this form of wgmma is outside the subset", instruction)
    elif kind == "wait_group":
        operand = instruction.operands[0] if instruction.operands else None
        if not isinstance(operand, Immediate) or int(operand.value) < 0:
            raise kernel.error("takes a number of groups", instruction)
        newest = int(operand.value)
    everyone = np.array([0xFFFFFFFF], np.uint32)

    def end(wave: Wave, registers: list[Any]) -> None:
        go = collective.wait_for_members(wave, block, everyone, instruction)
        if go is None:
            return
        collective.check_whole(wave, go, instruction)
        matrices = wave.unit(WgmmaState)
        here = go[:, 0]
        complete = here[matrices.warps].all(axis=1)
        groups = np.flatnonzero(complete)
        together = np.zeros(len(here), np.bool_)
        together[matrices.warps[groups]] = True
        rest = here & ~together
        if rest.any():
            inside = np.zeros(len(here), np.bool_)
            inside[matrices.warps] = True
            stray = np.flatnonzero(rest & ~inside)
            if len(stray):
                raise wave.fault(
                    BarrierFault,
                    "this warp belongs to no warpgroup: takes four warps, the first a multiple "
                    "of four",
                    instruction,
                    int(stray[0]) * WARP,
                )
            wave.park(block, np.repeat(rest, WARP))
        if not len(groups):
            return
        if form is not None:
            form.start(wave, registers, groups)
        elif kind == "fence":
            matrices.fence(groups)
        elif kind == "commit_group":
            matrices.commit(groups)
        else:
            matrices.wait(groups, newest)
        wave.send(block.following, None if together.all() else np.repeat(together, WARP))

    return end


def register_check(kernel: Kernel, instruction: Instruction) -> Operation | None:
    """Returns an operation that records the accesses of ``instruction``, which is no wgmma, to
    registers of wgmma, and raises RaceFault if one that uses them is in flight. None if it has no
    such registers, or is a wgmma.
    """
    if instruction.opcode == "wgmma" or not kernel.flow.matrices:
        return None
    found = {*flow.reads(instruction), *flow.writes(instruction)} & kernel.flow.matrices
    if not found:
        return None
    names = [(name, kernel.slot(name)) for name in sorted(found)]
    guard = operate.guard_of(kernel, instruction)

    def touch(wave: Wave, registers: list[Any]) -> None:
        if guard is None:
            mask = wave.alive.copy() if wave.mask is None else wave.mask
        else:
            lanes = active(wave, guard(wave, registers))
            mask = np.zeros(len(wave.lanes), np.bool_)
            mask[wave.lanes if lanes is None else lanes] = True
        wave.unit(WgmmaState).touch(names, mask, instruction)

    return touch
