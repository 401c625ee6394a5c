"""Decoding of memory instructions: loads, stores, atomics and cp.async."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import MemoryFault
from ptxgen.interp.memory import access as memory_access
from ptxgen.interp.memory.access import Access
from ptxgen.interp.memory.allocations import GLOBAL_BASE
from ptxgen.interp.text.ordering import GPU, ordering
from ptxgen.interp.text.ptx import (
    SIZES,
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Symbol,
)
from ptxgen.interp.units import bulk
from ptxgen.interp.units.kernel import (
    EMPTY,
    Block,
    Kernel,
    Operation,
    Value,
    active,
    extend,
    operand_items,
    put,
)
from ptxgen.interp.units.operate import Variants, apply, guard_of, write
from ptxgen.interp.units.sync import Wave
from ptxgen.interp.values.scalar import STORAGE

Array = NDArray[Any]
_SPACES = ("param", "global", "shared", "local", "const")
_QUALIFIERS = frozenset(
    (
        *("nc", "weak", "relaxed", "acquire", "release", "acq_rel", "volatile"),  # how
        *("cta", "gpu", "sys", "cluster"),  # for whom
        *("ca", "cg", "cs", "lu", "cv", "wb", "wt"),  # through which caches
    )
)


def _mode(kernel: Kernel, instruction: Instruction) -> tuple[str, int, str]:
    """Returns the state space, vector length and element type of a load or store."""
    space, vector = "generic", 1
    type = instruction.modifiers[-1] if instruction.modifiers else ""
    for modifier in instruction.modifiers[:-1]:
        base = modifier.partition("::")[0]
        if base in _SPACES:
            space = base
        elif modifier in ("v2", "v4", "v8"):
            vector = int(modifier[1])
        elif base not in _QUALIFIERS and base not in ("L1", "L2"):
            raise kernel.error(f"modifier .{modifier} is outside the subset", instruction)
    if type not in SIZES or SIZES[type] * vector > 16:
        raise kernel.error(
            f"type .{type} x {vector} is outside the subset; takes up to 16 bytes", instruction
        )
    return ("global" if space == "const" else space), vector, type


def raw(type: str) -> np.dtype[Any]:
    """Returns the NumPy dtype in which loads and stores of ``type`` move bits: floats, else
    unsigned.
    """
    return STORAGE[type] if type in ("f32", "f64") else np.dtype(f"u{SIZES[type]}")


def _extender(kernel: Kernel, target: Operand, type: str, instruction: Instruction) -> Any:
    """Returns a function (wave, registers, values, lanes) that writes loaded values of ``type`` to
    the register ``target``, extended to its width (sign-extended for signed types), or discards
    them if ``target`` is ``_``. Raises PtxError if the register is too narrow.
    """
    if isinstance(target, Sink):
        return lambda wave, registers, values, lanes: None
    if not isinstance(target, Register):
        raise kernel.error("a load takes registers as destination", instruction)
    kept, slot, signed = kernel.dtype(target.name), kernel.slot(target.name), type[0] == "s"
    if kept == np.bool_ or kept.itemsize < SIZES[type]:
        raise kernel.error(f"a {type} does not fit {target.name}", instruction)

    def writer(wave: Wave, registers: list[Any], values: Array, lanes: Any) -> None:
        put(wave, registers, slot, extend(values, signed, kept), lanes)

    return writer


def load(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes ``ld`` from any state space."""
    space, vector, type = _mode(kernel, instruction)
    target, source = instruction.operands[:2]
    if space == "param":
        return _load_param(kernel, instruction, type, vector)
    targets = operand_items(target)
    if len(targets) != vector:
        raise kernel.error(f"takes {vector} destinations, got {len(targets)}", instruction)
    writers = [_extender(kernel, t, type, instruction) for t in targets]
    access = Access(instruction, kernel.new_site(instruction), raw(type), vector)
    if space in ("shared", "generic"):
        kernel.granule = min(kernel.granule, SIZES[type])
    address = kernel.address(source, instruction)
    guard = guard_of(kernel, instruction)
    one = writers[0]

    def load(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        if lanes is EMPTY:
            return
        at = address(wave, registers)
        if lanes is not None and at.size > 1:
            if not lanes.size:
                return
            at = at[lanes]
        if space == "generic":
            at = _spread(wave, at, lanes)
        values = memory_access.load(wave, access, space, at, lanes)
        if vector == 1:
            one(wave, registers, values, lanes)
            return
        columns = np.ascontiguousarray(values.T)
        for writer, column in zip(writers, columns, strict=True):
            writer(wave, registers, column, lanes)

    return load, load


class Polls:
    """Loads of a wave that poll global memory. A lane that executes such a load again, of the same
    address, waits until a strong store or an atomic may have changed what it reads.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.changes = 0
        self._orders: set[int] = set()
        self._last: dict[int, tuple[Array, Array]] = {}

    def changed(self) -> None:
        """Wakes lanes that poll, after a strong store or an atomic."""
        self.changes += 1
        self.wave.stalls.clear()
        for order in self._orders:
            self.wave.wake(order)

    def again(self, block: Block, at: Array, lanes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns the mask of ``lanes`` that would read at their addresses ``at`` what they have
        read there when they last executed ``block``.
        """
        self._orders.add(block.order)
        where, when = self._state(block)
        result: NDArray[np.bool_] = (where[lanes] == at) & (when[lanes] == self.changes)
        return result

    def record(self, block: Block, at: Array, lanes: NDArray[np.int64]) -> None:
        """Records that ``lanes`` execute ``block``, which reads at their addresses ``at``."""
        where, when = self._state(block)
        where[lanes], when[lanes] = at, self.changes

    def forget(self, block: Block, mask: NDArray[np.bool_]) -> None:
        """Lets the lanes of ``mask`` execute ``block`` once more."""
        self._state(block)[1][mask] = -1

    def _state(self, block: Block) -> tuple[Array, Array]:
        """Returns the address of each lane's last read at ``block``, and ``changes`` then."""
        found = self._last.get(block.order)
        if found is None:
            count = len(self.wave.lanes)
            found = np.zeros(count, np.uint64), np.full(count, -1)
            self._last[block.order] = found
        return found


_PATIENCE = 1 << 10
"""Most time-outs of a load that polls while no strong store and no atomic is executed; after them,
the launch ends with DeadlockFault.
"""


def polling(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes a load that may poll global memory (:func:`.ordering.polls`), the only instruction of
    its segment. Returns the operation that runs it, or parks lanes whose result cannot have
    changed. If nothing else can run, they read once more.
    """
    run, _ = load(kernel, instruction)
    address = kernel.address(instruction.operands[1], instruction)
    guard = guard_of(kernel, instruction)
    block.patience = _PATIENCE

    def end(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        own = np.flatnonzero(wave.alive) if lanes is None else lanes
        at = np.broadcast_to(address(wave, registers), wave.lanes.shape)[own].astype(np.uint64)
        polls = wave.unit(Polls)
        again = polls.again(block, at, own)
        if again.any():
            staying = np.zeros(len(wave.lanes), np.bool_)
            staying[own[again]] = True
            wave.park(block, staying)
            going = (wave.alive if wave.mask is None else wave.mask) & ~staying
            if going.any():
                wave.send(block, going)
            return
        polls.record(block, at, own)
        run(wave, registers)
        wave.send(block.following, wave.mask)

    def on_time_out(wave: Wave, mask: NDArray[np.bool_]) -> None:
        wave.unit(Polls).forget(block, mask)
        wave.send(block, mask)

    block.on_time_out = on_time_out
    return end


def _announcing(instruction: Instruction, operation: Operation) -> Operation:
    """Returns ``operation``, a store or an atomic, so that it wakes lanes that poll if it may write
    what they read.
    """
    if ordering(instruction).scope < GPU:
        return operation

    def announcing(wave: Wave, registers: list[Any]) -> None:
        operation(wave, registers)
        wave.unit(Polls).changed()

    return announcing


def _spread(wave: Wave, at: Array, lanes: Any) -> Array:
    """Returns one address per lane in ``lanes`` (None: all), also where ``at`` is one address that
    all share.
    """
    if at.size > 1:
        return at
    return np.broadcast_to(at, len(wave.lanes) if lanes is None else len(lanes))


def _load_param(kernel: Kernel, instruction: Instruction, type: str, vector: int) -> Variants:
    address = instruction.operands[1]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        raise kernel.error("ld.param takes the name of a parameter", instruction)
    by_name = {p.name: p for p in kernel.entry.parameters}
    if address.base.name not in by_name:
        raise kernel.error(f"{address.base.name} is no parameter", instruction)
    parameter = by_name[address.base.name]
    start = address.offset + address.base.offset
    if not 0 <= start <= parameter.nbytes - SIZES[type] * vector:
        raise kernel.error(
            f"reads byte {start} of parameter {parameter.name} of {parameter.nbytes} bytes",
            instruction,
        )
    operations: list[Variants] = []
    for i, target in enumerate(operand_items(instruction.operands[0])):
        if not isinstance(target, Register):
            raise kernel.error("ld.param takes registers as destination", instruction)
        slot = kernel.parameter(
            parameter.offset + start + i * SIZES[type], type, kernel.dtype(target.name)
        )
        operations.append(
            apply(
                kernel.slot(target.name),
                [slot],
                lambda value: value,
                kernel.is_local(target.name),
                guard_of(kernel, instruction),
            )
        )
    if len(operations) == 1:
        return operations[0]

    def both(which: int) -> Operation:
        def operation(wave: Wave, registers: list[Any]) -> None:
            for variants in operations:
                variants[which](wave, registers)

        return operation

    return both(0), both(1)


def store(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes ``st`` to any state space."""
    if instruction.modifiers[:1] == ("async",):
        return bulk.store_async(kernel, instruction)
    space, vector, type = _mode(kernel, instruction)
    target, source = instruction.operands[:2]
    sources = operand_items(source)
    if len(sources) != vector:
        raise kernel.error(f"takes {vector} sources, got {len(sources)}", instruction)
    dtype = raw(type)
    taken = type if type in ("f32", "f64") else f"u{8 * SIZES[type]}"
    values = [kernel.value(s, taken, instruction) for s in sources]
    access = Access(instruction, kernel.new_site(instruction), dtype, vector)
    if space in ("shared", "generic"):
        kernel.granule = min(kernel.granule, SIZES[type])
    address = kernel.address(target, instruction)
    guard = guard_of(kernel, instruction)

    def store(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        if lanes is not None and not lanes.size:
            return
        at = address(wave, registers)
        if lanes is not None and at.size > 1:
            at = at[lanes]
        at = _spread(wave, at, lanes)
        columns = []
        for value in values:
            column = value(wave, registers)
            columns.append(column[lanes] if lanes is not None and column.size > 1 else column)
        if vector == 1:
            data = columns[0]
        else:
            data = np.empty((len(at), vector), dtype)
            for i, column in enumerate(columns):
                data[:, i] = column
        memory_access.store(wave, access, space, at, data, lanes)

    operation = _announcing(instruction, store)
    return operation, operation


def atomic(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes atom and red; lanes run one after the other, in ascending order."""
    modifiers = [
        m
        for m in instruction.modifiers
        if m.partition("::")[0] not in _QUALIFIERS and m not in ("noftz",)
    ]
    space = "generic"
    if modifiers and modifiers[0].partition("::")[0] in _SPACES:
        space = modifiers.pop(0).partition("::")[0]
    if len(modifiers) != 2 or modifiers[0] not in _ATOMS or modifiers[1] not in SIZES:
        raise kernel.error("this form is outside the subset", instruction)
    name, type = modifiers
    if type not in ("u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64"):
        raise kernel.error(f"type .{type} is outside the subset", instruction)
    function = _ATOMS[name]
    flushes = (name, type) == ("add", "f32")
    operands = list(instruction.operands)
    target = operands.pop(0) if instruction.opcode == "atom" else None
    writer = None if target is None else write(kernel, target, type, instruction)
    address = kernel.address(operands.pop(0), instruction)
    values = [kernel.value(o, type, instruction) for o in operands]
    access = Access(instruction, kernel.new_site(instruction), STORAGE[type], 1)
    guard = guard_of(kernel, instruction)

    def atomic(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        if lanes is not None and not lanes.size:
            return
        own = wave.lanes[wave.alive] if lanes is None else lanes
        at = np.broadcast_to(address(wave, registers), wave.lanes.shape)
        given = [np.broadcast_to(v(wave, registers), wave.lanes.shape) for v in values]
        old = np.empty(len(own), STORAGE[type])
        for i, lane in enumerate(own.tolist()):
            one = own[i : i + 1]
            here = at[lane : lane + 1]
            found = memory_access.load_atomic(wave, access, space, here, one)
            old[i] = found[0]
            new = function(found, *[g[lane : lane + 1] for g in given])
            if flushes and here[0] >= GLOBAL_BASE:
                new = _flushed(_flushed(found) + _flushed(given[0][lane : lane + 1]))
            memory_access.store_atomic(wave, access, space, here, new, one)
        if writer is not None:
            writer(wave, registers, old, lanes if lanes is not None or wave.all_alive else own)

    operation = _announcing(instruction, atomic)
    return operation, operation


def _flushed(value: Array) -> Array:
    """Flushes subnormals to zeros of their sign, as global atomic additions do (PTX ISA)."""
    return np.where(np.abs(value) < np.float32(2.0**-126), np.copysign(np.float32(0), value), value)


_ATOMS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": lambda old, compare, new: np.where(old == compare, new, old),
    "inc": lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
}


# -- asynchronous copies --------------------------------------------------------------


def copy(kernel: Kernel, instruction: Instruction) -> Variants | None:
    """Decodes all instructions that begin with cp.async: copies, commit and wait groups, mbarrier
    arrivals, bulk copies. None for a bulk prefetch, which has no effect.
    """
    modifiers = instruction.modifiers
    if modifiers[:1] != ("async",):
        raise kernel.error("this form is outside the subset", instruction)
    if modifiers[1] == "bulk":
        return bulk.bulk(kernel, instruction)
    if modifiers[1] in ("commit_group", "wait_group", "wait_all"):
        return _copy_group(kernel, instruction)
    if modifiers[1] == "mbarrier":
        return bulk.copy_arrive(kernel, instruction)
    sizes = [o for o in instruction.operands[2:] if not isinstance(o, Address)]
    if "L2::cache_hint" in modifiers:
        sizes = sizes[:-1]  # the policy, which changes no result
    if (
        modifiers[1] not in ("ca", "cg")
        or not sizes
        or not isinstance(sizes[0], Immediate)
        or sizes[0].value not in ((16,) if modifiers[1] == "cg" else (4, 8, 16))
        or any(m.partition("::")[0] not in ("shared", "global", "L2") for m in modifiers[2:])
        or len(sizes) > 2
    ):
        raise kernel.error("this form is outside the subset", instruction)
    size = int(sizes[0].value)
    if len(sizes) == 2 and isinstance(sizes[1], Immediate) and sizes[1].value > size:
        raise kernel.error(f"reads {sizes[1].value} bytes and writes {size}", instruction)
    limit = _source_size(kernel, instruction, sizes[1], size) if len(sizes) == 2 else None
    words = size // 4
    site = kernel.new_site(instruction)
    access = Access(instruction, site, np.dtype(np.uint32), words)
    word = Access(instruction, site, np.dtype(np.uint32), 1)
    byte = Access(instruction, site, np.dtype(np.uint8), 1)
    to = kernel.address(instruction.operands[0], instruction)
    source = kernel.address(instruction.operands[1], instruction)
    guard = guard_of(kernel, instruction)

    def part(wave: Wave, at: Array, own: Any, counts: Array) -> Array:
        """Loads the first ``counts`` bytes of each row of ``size`` bytes; the remaining bytes are
        zero.
        """
        rows = np.zeros((len(at), size), np.uint8)
        if counts.any():  # where nothing is read, the address may be anything
            read = counts > 0
            memory_access.check_alignment(wave, access, at[read], size, own[read])
        for count in np.unique(counts).tolist():
            if not count:
                continue
            which = np.flatnonzero(counts == count)
            lanes, start = own[which], at[which]
            if count == size:
                loaded = memory_access.load_global(wave, access, start, lanes)
                rows[which] = loaded.reshape(len(start), -1).view(np.uint8)
                continue
            unit = word if count % 4 == 0 else byte
            step = unit.width
            for i in range(0, count, step):
                loaded = memory_access.load_global(wave, unit, start + np.uint64(i), lanes)
                rows[which, i : i + step] = loaded.reshape(-1, 1).view(np.uint8)
        return rows.view(np.uint32)

    def copy(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        if lanes is not None and not lanes.size:
            return
        own = wave.lanes if lanes is None else lanes
        at, start = to(wave, registers), source(wave, registers)
        if lanes is not None:
            at = at[lanes] if at.size > 1 else at
            start = start[lanes] if start.size > 1 else start
        start = _spread(wave, start, lanes)
        flat = memory_access.shared_offsets(wave, access, at, size, lanes)
        if wave.observer is not None:
            wave.observer.memory(wave, access, "shared", "async", flat, lanes)
        if limit is None:
            values = memory_access.load_global(wave, access, start, lanes)
        else:
            counts = np.broadcast_to(limit(wave, registers), wave.lanes.shape)[own]
            if counts.max() > size:
                first = int(np.flatnonzero(counts > size)[0])
                raise wave.fault(
                    MemoryFault,
                    f"src-size {int(counts[first])} is above {size}",
                    instruction,
                    int(own[first]),
                )
            if counts.min() == size:
                values = memory_access.load_global(wave, access, start, lanes)
            else:
                values = part(wave, start, own, counts)
        values = values.reshape(len(own), words) if words > 1 else values.reshape(len(own))
        wave.copies.issue(access, flat, own, values)

    return copy, copy


def _source_size(kernel: Kernel, instruction: Instruction, operand: Operand, size: int) -> Value:
    """Returns a function (wave, registers) that gives the number of bytes that each lane of a
    cp.async reads: the value of operand src-size or, if the operand is the predicate ignore-src, 0
    where that is true, else ``size``.
    """
    if not (isinstance(operand, Register) and kernel.entry.registers[operand.name] == "pred"):
        return kernel.value(operand, "u32", instruction)
    ignored = kernel.value(operand, "pred", instruction)
    return lambda wave, registers: np.where(ignored(wave, registers), np.uint32(0), np.uint32(size))


def _copy_group(kernel: Kernel, instruction: Instruction) -> Variants:
    if instruction.modifiers[1] == "commit_group":

        def commit(wave: Wave, registers: list[Any]) -> None:
            wave.copies.commit(wave.active)

        return commit, commit
    newest = -1
    if instruction.modifiers[1] == "wait_group":
        operand = instruction.operands[0] if instruction.operands else None
        if not isinstance(operand, Immediate) or int(operand.value) < 0:
            raise kernel.error("cp.async.wait_group takes a number of groups", instruction)
        newest = int(operand.value)

    def wait(wave: Wave, registers: list[Any]) -> None:
        wave.copies.wait(wave.mask, newest)

    return wait, wait
