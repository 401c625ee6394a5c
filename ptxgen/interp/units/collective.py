"""Decoding of instructions that several lanes execute together: barriers, mbarriers, warp exchanges
(shfl, vote, match, redux, elect), mma, ldmatrix and stmatrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import BarrierFault
from ptxgen.interp.memory import access as memory_access
from ptxgen.interp.memory.access import Access
from ptxgen.interp.text.ptx import WARP, Address, Immediate, Instruction, Operand, Register, Sink
from ptxgen.interp.units import operate, tensor, undefined, warp
from ptxgen.interp.units.kernel import WINDOWS, Block, Kernel, Operation, active, operand_items
from ptxgen.interp.units.operate import Variants
from ptxgen.interp.units.sync import Wave

Array = NDArray[Any]
Bools = NDArray[np.bool_]


def waiting(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes an instruction at which lanes may wait, the only one of its segment: a barrier, an
    mbarrier wait, or an instruction of a whole warp. Returns the operation that runs it, and sends
    its lanes on or parks them.
    """
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in ("bar", "barrier"):
        if modifiers[:1] == ("warp",):
            return _warp_barrier(kernel, block, instruction)
        if modifiers[:1] == ("cluster",):
            return _cluster_barrier(kernel, block, instruction)
        return _barrier(kernel, block, instruction)
    if opcode == "mbarrier":
        return _mbarrier_wait(kernel, block, instruction)
    return _collective(kernel, block, instruction)


# -- barriers -------------------------------------------------------------------------


def _barrier(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes bar.sync, bar.arrive, barrier.sync and barrier.arrive."""
    modifiers = [m for m in instruction.modifiers if m != "cta"]
    aligned = instruction.opcode == "bar" or "aligned" in modifiers
    kind = modifiers[0] if modifiers else ""
    operands = instruction.operands
    if kind not in ("sync", "arrive") or not 1 <= len(operands) <= 2:
        raise kernel.error("this form of barrier is outside the subset", instruction)
    if kind == "arrive" and len(operands) != 2:
        raise kernel.error("bar.arrive takes a number of threads", instruction)
    number = kernel.value(operands[0], "u32", instruction)
    count = kernel.value(operands[1], "u32", instruction) if len(operands) == 2 else None
    guard = operate.guard_of(kernel, instruction)

    def end(wave: Wave, registers: list[Any]) -> None:
        mask = wave.mask
        if guard is not None:
            held = np.broadcast_to(guard(wave, registers), wave.lanes.shape)
            going = held if mask is None else held & mask
            rest = ~held if mask is None else mask & ~held
            if rest.any():
                wave.send(block.following, rest)
            if not going.any():
                return
            mask = None if going.all() else going
        numbers = number(wave, registers)
        counts = None if count is None else count(wave, registers)
        if numbers.size == 1 and (counts is None or counts.size == 1):
            expected = None if counts is None else int(counts[0])
            wave.arrivals.arrive(
                instruction, block.following, mask, int(numbers[0]), expected,
                waits=kind == "sync", aligned=aligned,
            )  # fmt: skip
            return
        here = np.ones(len(wave.lanes), np.bool_) if mask is None else mask
        numbers = np.broadcast_to(numbers, wave.lanes.shape)
        counts = np.broadcast_to(np.uint32(0) if counts is None else counts, wave.lanes.shape)
        for pair in np.unique(np.stack((numbers, counts))[:, here], axis=1).T.tolist():
            part = here & (numbers == pair[0]) & (counts == pair[1])
            wave.arrivals.arrive(
                instruction, block.following, part, pair[0], pair[1] if count is not None else None,
                waits=kind == "sync", aligned=aligned,
            )  # fmt: skip

    return end


def wait_for_members(
    wave: Wave, block: Block, members: Array, instruction: Instruction
) -> Bools | None:
    """Parks the running lanes until all living lanes of their member mask have arrived at the
    barrier.

    ``members``: the member mask of each lane, or one for all. Returns the mask ``[warps, 32]`` of
    lanes that continue now; None if there are none. A lane that is not in its own member mask
    raises BarrierFault.
    """
    # Lanes that came earlier and wait here for the others of their warp.
    before = wave.parked.pop(block.order, None)
    mask = np.ones(len(wave.lanes), np.bool_) if wave.mask is None else wave.mask
    if before is None and wave.mask is None and wave.all_alive and _names_all(members):
        return mask.reshape(-1, WARP)
    if before is not None:
        mask = mask | before
    rows = mask.reshape(-1, WARP)
    here = warp.ballot(rows)
    if _names_all(members) and (here + np.uint32(1) <= 1).all():  # whole warps, all of each
        return rows
    alive = wave.alive.reshape(-1, WARP)
    bits = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
    wanted = rows_of(wave, members)
    stray = rows & alive & ((wanted & bits) == 0)
    if stray.any():
        lane = int(np.flatnonzero(stray)[0])
        raise wave.fault(
            BarrierFault, "the member mask does not name a lane that is here", instruction, lane
        )
    complete = ((wanted & warp.ballot(alive)) & ~here) == 0
    go = rows & complete
    stay = rows & ~complete
    if stay.any():
        wave.park(block, stay.reshape(-1).copy())
    if not go.any():
        return None
    result: Bools = go
    return result


def _names_all(members: Array) -> bool:
    """Whether the member mask is uniform and names all 32 lanes."""
    return members.size == 1 and bool(members.flat[0] == 0xFFFFFFFF)


def _send(wave: Wave, block: Block, go: Bools) -> None:
    flat = go.reshape(-1)
    wave.send(block.following, None if flat.all() else flat)


def _warp_barrier(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes bar.warp.sync, the barrier of the lanes in a member mask."""
    block.collective = True
    members = kernel.value(instruction.operands[0], "b32", instruction)
    if instruction.guard is not None:
        raise kernel.error("a guard on bar.warp.sync is outside the subset", instruction)

    def end(wave: Wave, registers: list[Any]) -> None:
        given = members(wave, registers)
        go = wait_for_members(wave, block, given, instruction)
        if go is None:
            return
        _warp_sync(wave, go, given)
        _send(wave, block, go)

    return end


def _warp_sync(wave: Wave, go: Bools, members: Array) -> None:
    """Records bar.warp.sync in the race check: the lanes in the mask ``go`` that have equal member
    masks synchronise with each other. ``members``: the member mask of each lane, or one for all.
    """
    lanes = wave.lanes.reshape(-1, WARP)
    if go.all() and members.size == 1 and int(members[0]) == 0xFFFFFFFF:
        wave.history.sync(lanes)
        return
    whole = go.all(axis=1)
    given = np.broadcast_to(members, wave.lanes.shape).reshape(-1, WARP)
    whole &= (given == 0xFFFFFFFF).all(axis=1)
    if whole.any():
        wave.history.sync(lanes[whole])
    for row in np.flatnonzero(go.any(axis=1) & ~whole).tolist():
        for mask in np.unique(given[row][go[row]]).tolist():
            chosen = go[row] & (given[row] == mask)
            wave.history.sync(lanes[row][chosen][None, :])


def _cluster_barrier(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes barrier.cluster.arrive and .wait, the two halves of the cluster's barrier."""
    kind, *rest = instruction.modifiers[1:]
    aligned = rest[-1:] == ["aligned"]
    rest = rest[:-1] if aligned else rest
    forms = {"arrive": ([], ["release"], ["relaxed"]), "wait": ([], ["acquire"])}
    if rest not in forms.get(kind, ()) or instruction.operands or instruction.guard is not None:
        raise kernel.error("this form of barrier is outside the subset", instruction)

    def end(wave: Wave, registers: list[Any]) -> None:
        barrier, mask = wave.cluster_barrier, wave.mask
        if aligned:
            wave.arrivals.check_whole_warps(instruction, wave.alive if mask is None else mask)
        if kind == "arrive":
            barrier.arrive(instruction, mask, release=rest != ["relaxed"])
            wave.send(block.following, mask)
            return
        going = barrier.wait(instruction, mask)
        if going.any():
            wave.send(block.following, None if going.all() else going)
        staying = (wave.alive if mask is None else mask) & ~going
        if staying.any():
            wave.park(block, staying)

    return end


# -- exchanges and matrix instructions ------------------------------------------------


def _collective(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes an instruction that the lanes of a member mask, or of the warp, execute together
    (shfl, mma, ldmatrix, ...). Returns the operation that runs it when they have all arrived.
    """
    block.collective = True
    if instruction.guard is not None:
        raise kernel.error("a guard on this instruction is outside the subset", instruction)
    action, members = _ACTIONS[instruction.opcode](kernel, instruction)
    whole = np.array([0xFFFFFFFF], np.uint32)

    def end(wave: Wave, registers: list[Any]) -> None:
        given = whole if members is None else members(wave, registers)
        go = wait_for_members(wave, block, given, instruction)
        if go is None:
            return
        if members is None:
            check_whole(wave, go, instruction)
        action(wave, registers, go)
        _send(wave, block, go)

    return end


def check_whole(wave: Wave, go: Bools, instruction: Instruction) -> None:
    """Raises BarrierFault if a warp-wide instruction is executed by some, but not all 32 lanes of a
    warp. ``go``: the mask of the executing lanes, ``[warps, 32]``.
    """
    if go.all():
        return
    torn = go.any(axis=1) & ~go.all(axis=1)
    if torn.any():
        row = int(np.flatnonzero(torn)[0])
        lane = row * WARP + int(np.flatnonzero(~go[row])[0])
        raise wave.fault(
            BarrierFault, "a whole warp must carry this out, but a lane of it has exited",
            instruction, lane,
        )  # fmt: skip


Action = Callable[["Wave", list[Any], Bools], None]
Decoded = tuple[Action, Any]


def rows_of(wave: Wave, value: Array) -> Array:
    """Returns a register's value as ``[warps, 32]``; a uniform value, ``[1]``, is broadcast."""
    if value.shape != wave.lanes.shape:
        value = np.broadcast_to(value, wave.lanes.shape)
    return value.reshape(-1, WARP)


def _write_lanes(wave: Wave, registers: list[Any], writer: Any, values: Array, go: Bools) -> None:
    """Writes ``values``, ``[warps, 32]``, in the lanes where ``go`` is True; ``writer`` is the
    function of the register, from :func:`.operate.write`.
    """
    if go.all():
        writer(wave, registers, np.ascontiguousarray(values).reshape(-1), None)
    else:
        flat = go.reshape(-1)
        writer(wave, registers, values.reshape(-1)[flat], np.flatnonzero(flat))


def _exchange(kernel: Kernel, instruction: Instruction) -> Decoded:
    """Decodes shfl, vote, match, redux and elect, which are functions of a warp's registers."""
    operands = instruction.operands
    targets, sources = operand_items(operands[0]), operands[1:]
    dst, src, function = _EXCHANGES[instruction.opcode](instruction)
    if len(sources) != len(src) or not 1 <= len(targets) <= len(dst):
        raise kernel.error(
            f"takes up to {len(dst)} destinations and {len(src)} sources", instruction
        )
    values = [kernel.value(o, t, instruction) for o, t in zip(sources, src, strict=True)]
    writers = [
        operate.write(kernel, target, type, instruction)
        for target, type in zip(targets, dst, strict=False)
    ]
    carried = undefined.shuffle(kernel, instruction) if instruction.opcode == "shfl" else None

    def action(wave: Wave, registers: list[Any], go: Bools) -> None:
        given = [rows_of(wave, v(wave, registers)) for v in values]
        *results, read = function(*given, go)
        if read is not None:
            lost = go & ~np.take_along_axis(go, np.broadcast_to(read, go.shape), axis=1)
            if lost.any():
                lane = int(np.flatnonzero(lost)[0])
                raise wave.fault(
                    BarrierFault, "reads a lane that does not take part", instruction, lane
                )
        for writer, result in zip(writers, results, strict=False):
            _write_lanes(wave, registers, writer, np.broadcast_to(result, go.shape), go)
        if carried is not None:
            carried(wave, registers, np.broadcast_to(read, go.shape), go)

    return action, values[-1]


Exchange = tuple[tuple[str, ...], tuple[str, ...], Callable[..., Any]]
"""Signature of a warp exchange: PTX types of the results; PTX types of the operands, the member
mask last; a function of the operands and the mask of participating lanes, which returns the results
and the lanes read (or None).
"""


def _shfl(instruction: Instruction) -> Exchange:
    run = warp.shfl(instruction)
    return ("b32", "pred"), ("b32", "u32", "u32", "b32"), lambda a, b, c, mask, go: run(a, b, c)


def _vote(instruction: Instruction) -> Exchange:
    run = warp.vote(instruction)
    result = "b32" if instruction.modifiers[-1] == "b32" else "pred"
    return (result,), ("pred", "b32"), lambda flags, mask, go: (run(flags, go, mask), None)


def _match(instruction: Instruction) -> Exchange:
    run = warp.match(instruction)
    types = (instruction.modifiers[-1], "b32")
    return ("b32", "pred"), types, lambda value, mask, go: (*run(value, go, mask), None)


def _redux(instruction: Instruction) -> Exchange:
    run = warp.redux(instruction)
    type = instruction.modifiers[-1]
    return (type,), (type, "b32"), lambda value, mask, go: (run(value, go, mask), None)


def _elect(instruction: Instruction) -> Exchange:
    if instruction.modifiers != ("sync",):
        raise warp.refuse(instruction, "elect.sync")
    return ("b32", "pred"), ("b32",), lambda mask, go: (*warp.elect(go, mask), None)


_EXCHANGES: dict[str, Callable[[Instruction], Exchange]] = {
    "shfl": _shfl,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
}


def _mma(kernel: Kernel, instruction: Instruction) -> Decoded:
    """Decodes mma.sync: D = A B + C on register fragments."""
    if "aligned" not in instruction.modifiers:
        raise kernel.error("takes .aligned", instruction)
    mma = tensor.mma(instruction)
    groups = [operand_items(o) for o in instruction.operands]
    a, b, c = mma.counts
    if [len(g) for g in groups] != [c, a, b, c]:
        raise kernel.error(f"takes fragments of {c}, {a}, {b} and {c} registers", instruction)
    writers = [operate.write(kernel, t, mma.sum, instruction) for t in groups[0]]
    values = [
        [kernel.value(o, type, instruction) for o in group]
        for group, type in zip(groups[1:], (mma.factor, mma.factor, mma.sum), strict=True)
    ]
    arch = f"sm_{kernel.compute}"

    def action(wave: Wave, registers: list[Any], go: Bools) -> None:
        warps = np.flatnonzero(go[:, 0])
        a, b, c = ([rows_of(wave, v(wave, registers)) for v in group] for group in values)
        lanes = None
        if len(warps) < len(go):
            a, b, c = ([register[warps] for register in group] for group in (a, b, c))
            lanes = wave.lanes.reshape(-1, WARP)[warps].reshape(-1)
        for writer, result in zip(writers, mma.run(a, b, c, arch), strict=True):
            writer(wave, registers, np.ascontiguousarray(result).reshape(-1), lanes)

    return action, None


def _matrix(kernel: Kernel, instruction: Instruction) -> Decoded:
    """Decodes ldmatrix and stmatrix, which load or store 8x8 matrices by rows of 16 bytes."""
    loads = instruction.opcode == "ldmatrix"
    move = tensor.matrix_move(instruction)
    register, place = instruction.operands if loads else instruction.operands[::-1]
    parts = operand_items(register)
    if len(parts) != move.count:
        raise kernel.error(f"takes {move.count} registers", instruction)
    address = kernel.address(place, instruction)
    access = Access(instruction, kernel.new_site(instruction), np.dtype(np.uint32), 4)
    window = np.uint64(_window(instruction))
    writers = [operate.write(kernel, p, "b32", instruction) for p in parts] if loads else []
    values = [] if loads else [kernel.value(p, "b32", instruction) for p in parts]

    def action(wave: Wave, registers: list[Any], go: Bools) -> None:
        warps = np.flatnonzero(go[:, 0])
        lanes = wave.lanes.reshape(-1, WARP)[warps]
        at = rows_of(wave, address(wave, registers))[warps][:, : move.lanes].reshape(-1)
        if window:
            at = at - window
        own = lanes[:, : move.lanes].reshape(-1)
        if loads:
            rows = memory_access.load_shared(wave, access, at, own)
            whole = None if len(warps) == len(go) else lanes.reshape(-1)
            for writer, result in zip(writers, move.load(rows), strict=True):
                writer(wave, registers, np.ascontiguousarray(result).reshape(-1), whole)
            return
        given = [rows_of(wave, v(wave, registers))[warps] for v in values]
        rows = np.ascontiguousarray(move.store(given)).view(np.uint32).reshape(-1, 4)
        memory_access.store_shared(wave, access, at, rows, own)

    return action, None


def _setmaxnreg(kernel: Kernel, instruction: Instruction) -> Decoded:
    """Decodes setmaxnreg: checks the operand only, as the interpreter has registers to spare."""
    form, operands = instruction.modifiers, instruction.operands
    number = operands[0].value if operands and isinstance(operands[0], Immediate) else 0
    if form[:1] not in (("inc",), ("dec",)) or form[1:] != ("sync", "aligned", "u32"):
        raise warp.refuse(instruction, "setmaxnreg.{inc,dec}.sync.aligned.u32")
    if not 24 <= number <= 256 or number % 8:
        raise kernel.error("takes a multiple of 8 from 24 to 256", instruction)

    def action(wave: Wave, registers: list[Any], go: Bools) -> None:
        """Does nothing: register counts change no result."""

    return action, None


_ACTIONS: dict[str, Callable[[Kernel, Instruction], Decoded]] = {
    "shfl": _exchange,
    "vote": _exchange,
    "match": _exchange,
    "redux": _exchange,
    "elect": _exchange,
    "mma": _mma,
    "ldmatrix": _matrix,
    "stmatrix": _matrix,
    "setmaxnreg": _setmaxnreg,
}


def activemask(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes activemask: the lanes of the warp that run the instruction together."""
    writer = operate.write(kernel, instruction.operands[0], "b32", instruction)

    def operation(wave: Wave, registers: list[Any]) -> None:
        lanes = wave.active
        mask = wave.alive if wave.mask is None else wave.mask
        spread = np.repeat(warp.ballot(mask.reshape(-1, WARP)), WARP)
        writer(wave, registers, spread if lanes is None else spread[lanes], lanes)

    return operation, operation


# -- mbarriers ------------------------------------------------------------------------


def _running_lanes(
    wave: Wave, registers: list[Any], guard: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Returns the indices of the running lanes whose guard is true (None: no guard), twice; the
    second result is None if these are all lanes of the wave. ``guard``: from
    :func:`.operate.guard_of`.
    """
    lanes = active(wave, None if guard is None else guard(wave, registers))
    if lanes is None and not wave.all_alive:
        lanes = np.flatnonzero(wave.alive)
    return (wave.lanes if lanes is None else lanes), lanes


def _mbarrier_offsets(
    wave: Wave, access: Access, at: Array, own: NDArray[np.int64], window: int
) -> NDArray[np.int64]:
    """Returns byte offsets into the wave's shared memory for the addresses of mbarriers of the
    lanes ``own``. ``window``: first generic address of shared memory, or 0 for shared addresses.
    """
    at = np.broadcast_to(at, wave.lanes.shape)[own]
    if window:
        at = at - np.uint64(window)
    return memory_access.shared_offsets(wave, access, at, 8, own)


def _window(instruction: Instruction) -> int:
    spaces = [m.partition("::")[0] for m in instruction.modifiers]
    return 0 if "shared" in spaces else WINDOWS["shared"]


def mbarrier(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes all mbarrier instructions but test_wait and try_wait."""
    kind, *rest = instruction.modifiers
    if kind == "pending_count":
        return operate.pure(
            kernel, instruction, "u32", ["u64"], lambda state: (state >> _HALF).astype(np.uint32)
        )
    operands = list(instruction.operands)
    target: Operand | None = None
    if kind in ("arrive", "arrive_drop") and not isinstance(operands[0], Address):
        target = operands.pop(0)
    expects, remote = "expect_tx" in rest, "shared::cluster" in rest
    address = kernel.address(operands.pop(0), instruction)
    number = kernel.value(operands[0], "u32", instruction) if operands else None
    known = _MBARRIER | {"expect_tx", "noComplete"} if kind.startswith("arrive") else _MBARRIER
    if (
        kind not in ("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx")
        or not known.issuperset(rest)
        or (expects and number is None)
        or (number is None and kind in ("init", "expect_tx", "complete_tx"))
        or len(operands) > 1
        or ("relaxed" in rest and kind.startswith("arrive"))  # orders only with fences
    ):
        raise kernel.error("this form of mbarrier is outside the subset", instruction)
    access = Access(instruction, kernel.new_site(instruction), np.dtype(np.uint64), 1)
    guard = operate.guard_of(kernel, instruction)
    window = _window(instruction)
    writer = None
    if target is not None and not isinstance(target, Sink):
        if remote:
            raise kernel.error("an arrival in shared::cluster has no state; takes _", instruction)
        writer = operate.write(kernel, target, "b64", instruction)

    def operation(wave: Wave, registers: list[Any]) -> None:
        own, lanes = _running_lanes(wave, registers, guard)
        if not own.size:
            return
        at = _mbarrier_offsets(wave, access, address(wave, registers), own, window)
        given = np.ones(len(own), np.int64)
        if number is not None:
            values = np.broadcast_to(number(wave, registers), wave.lanes.shape)[own]
            given = values.astype(np.int64)
        bars = wave.mbarriers
        if kind == "init":
            bars.init(access, at, own, given)
        elif kind == "inval":
            bars.invalidate(access, at, own)
        elif kind == "expect_tx":
            bars.expect(access, at, own, given)
        elif kind == "complete_tx":
            bars.complete(access, at, own, given)
        else:
            if expects:
                bars.expect(access, at, own, given)
                given = np.ones(len(own), np.int64)
            states = bars.arrive(
                access, at, own, given,
                drop=kind == "arrive_drop", completes="noComplete" not in rest,
            )  # fmt: skip
            if writer is not None:
                writer(wave, registers, states, lanes)

    return operation, operation


_HALF = np.uint64(32)
_MBARRIER = frozenset(
    (
        *("release", "relaxed", "acquire", "cta", "cluster"),
        *("shared", "shared::cta", "shared::cluster", "b64"),
    )
)


_PATIENCE = 8
"""Most time-outs of a wait on an mbarrier while nothing makes progress; after them, the launch ends
with DeadlockFault.
"""
_IMPATIENCE = 0.25
"""Probability that a wait on an mbarrier times out immediately, under a random schedule."""


def _mbarrier_wait(kernel: Kernel, block: Block, instruction: Instruction) -> Operation:
    """Decodes mbarrier.test_wait and .try_wait: lanes wait until the phase has completed.

    A wait times out if nothing else can run and, with a seed, at random, as hardware may.
    """
    rest = instruction.modifiers[1:]
    if not (_MBARRIER | {"parity"}).issuperset(rest) or len(instruction.operands) > 4:
        raise kernel.error("this form of mbarrier is outside the subset", instruction)
    parity = "parity" in rest
    target, place, wanted = instruction.operands[:3]
    if not isinstance(target, Register):
        raise kernel.error("takes a predicate as destination", instruction)
    address = kernel.address(place, instruction)
    value = kernel.value(wanted, "u32" if parity else "b64", instruction)
    access = Access(instruction, kernel.new_site(instruction), np.dtype(np.uint64), 1)
    writer = operate.write(kernel, target, "pred", instruction)
    window = _window(instruction)
    if instruction.guard is not None:
        raise kernel.error("a guard on this instruction is outside the subset", instruction)
    block.patience = _PATIENCE

    def end(wave: Wave, registers: list[Any]) -> None:
        own, _ = _running_lanes(wave, registers, None)
        at = _mbarrier_offsets(wave, access, address(wave, registers), own, window)
        phases = np.broadcast_to(value(wave, registers), wave.lanes.shape)[own].astype(np.int64)
        over = wave.mbarriers.phase_completed(access, at, own, phases, parity=parity)
        done = own[over]
        if len(done):
            writer(wave, registers, np.ones(len(done), np.bool_), done)
            mask = np.zeros(len(wave.lanes), np.bool_)
            mask[done] = True
            wave.send(block.following, None if mask.all() else mask)
        if len(done) < len(own):
            mask = np.zeros(len(wave.lanes), np.bool_)
            mask[own[~over]] = True
            if wave.random is not None and wave.random.random() < _IMPATIENCE:
                on_time_out(wave, mask)
            else:
                wave.park(block, mask)

    def on_time_out(wave: Wave, mask: Bools) -> None:
        lanes = np.flatnonzero(mask)
        writer(wave, wave.registers, np.zeros(len(lanes), np.bool_), lanes)
        wave.send(block.following, mask)

    block.on_time_out = on_time_out
    return end
