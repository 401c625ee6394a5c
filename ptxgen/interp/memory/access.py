"""Loads and stores of all lanes in one call: address translation, checks, data movement.

A call takes an array of addresses, one per active lane (or a single one for all), and an
:class:`Access`, which describes the instruction. All checks run before any byte moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import KernelFault, MemoryFault, UninitializedFault
from ptxgen.interp.memory.allocations import (
    CLUSTER_STRIDE,
    GLOBAL_BASE,
    LOCAL_BASE,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_BASE,
    SHARED_WINDOW,
    Allocation,
    GlobalMemory,
)
from ptxgen.interp.memory.causality import GlobalHistory, InFlight
from ptxgen.interp.memory.proxy import PIECE, ProxyHistory
from ptxgen.interp.memory.race import Conflict
from ptxgen.interp.text.ptx import Instruction

Array = NDArray[Any]
Lanes = NDArray[np.int64]
ActiveLanes = Lanes | None
"""Indices of the lanes that execute an instruction; None: all lanes of the wave."""


class Wave(Protocol):
    """Attributes of a wave (CTAs that run together) that memory accesses use.

    Lanes have the index ``cta * threads + thread``.
    """

    lanes: Lanes
    alive: NDArray[np.bool_]
    threads: int
    """Threads per CTA, rounded up to whole warps."""
    cluster: int
    """CTAs per cluster."""
    memory: GlobalMemory
    recent: Allocation | None
    """Allocation that the last global access found; the next access tries it first."""
    history: ProxyHistory
    causality: GlobalHistory | None
    """Race check of global memory; None if the kernel orders nothing between CTAs."""
    shared_bytes: int
    shared_start: Lanes
    local: NDArray[np.uint8]
    local_written: NDArray[np.bool_]

    @property
    def observer(self) -> MemoryObserver | None:
        """Observer that is called for every access, or None."""

    def lane_at(self, lanes: Lanes | None, index: int) -> int:
        """Returns the flat index of the lane at position ``index`` of ``lanes`` (None: all)."""

    def shared_rows(self, dtype: np.dtype[Any], vector: int) -> Array:
        """Returns shared memory as ``[elements]`` of ``dtype``, or ``[rows, vector]`` if ``vector``
        > 1.
        """

    def fault(
        self,
        kind: type[KernelFault],
        message: str,
        instruction: Instruction,
        lane: int | None = None,
        address: int | None = None,
    ) -> KernelFault:
        """Returns an exception that names kernel, instruction and lane; the caller raises it."""

    def conflict(
        self,
        conflict: Conflict,
        instruction: Instruction,
        what: str,
        lanes: Lanes,
        found: Allocation | None = None,
    ) -> KernelFault:
        """Returns the exception for a race-check conflict in ``instruction``, RaceFault or
        UninitializedFault; the caller raises it. ``what`` names the access in the message ("read");
        ``lanes``: the lane of each access that was checked; ``found``: the allocation in global
        memory, None for shared memory.
        """


class MemoryObserver(Protocol):
    """Observer of memory traffic.

    It sees accesses to global memory, loads and stores of shared memory, and asynchronous copies;
    not local memory and atomics of shared memory.
    """

    def memory(
        self, wave: Wave, access: Access, space: str, kind: str, address: Array, lanes: ActiveLanes
    ) -> None:
        """Is called for each access by ``lanes`` (None: all lanes), of ``kind`` load, store or
        async.

        ``address``: by ``space``, global addresses, or byte offsets into the wave's shared memory.
        """


@dataclass(frozen=True, slots=True)
class Access:
    """Accesses of one memory instruction: ``vector`` elements of ``dtype`` per lane. ``site``: the
    instruction's number among the kernel's memory instructions, from 1.
    """

    instruction: Instruction
    site: int
    dtype: np.dtype[Any]
    vector: int = 1

    @property
    def width(self) -> int:
        """Bytes that one lane loads or stores."""
        return self.dtype.itemsize * self.vector


def check_alignment(
    wave: Wave, access: Access, address: Array, width: int, lanes: ActiveLanes
) -> None:
    """Raises MemoryFault unless all addresses are multiples of ``width``."""
    low = int(np.bitwise_or.reduce(address)) & (width - 1)
    if low:
        bad = int(np.flatnonzero(address & (width - 1))[0])
        raise wave.fault(
            MemoryFault,
            f"misaligned access of {width} bytes",
            access.instruction,
            wave.lane_at(lanes, bad),
            int(address[bad]),
        )


# -- global memory --------------------------------------------------------------------


def split_by_allocation(
    wave: Wave, access: Access, address: Array, width: int, lanes: ActiveLanes
) -> Iterator[tuple[Allocation, Array, Array | None]]:
    """Groups accesses by allocation; raises MemoryFault for one out of bounds.

    Yields an allocation, the byte offsets of the accesses in it, and their mask in ``address``
    (None: all).
    """
    low, high = int(address.min()), int(address.max())
    found = wave.recent
    if found is None or low < found.base or high + width > found.end or found.freed:
        found = wave.memory.find(low, width)
        if found is not None:
            wave.recent = found
    if found is not None and high + width <= found.end:
        check_alignment(wave, access, address, width, lanes)
        yield found, address.astype(np.int64) - found.base, None
        return
    rest = np.ones(address.shape, np.bool_)
    parts: list[tuple[Allocation, Array, Array | None]] = []
    while rest.any():
        first = int(np.flatnonzero(rest)[0])
        found = wave.memory.find(int(address[first]), width)
        if found is None:
            raise wave.fault(
                MemoryFault,
                f"out of bounds: {width} bytes, {wave.memory.describe(int(address[first]), width)}",
                access.instruction,
                wave.lane_at(lanes, first),
                int(address[first]),
            )
        inside = rest & (address >= found.base) & (address + np.uint64(width) <= found.end)
        parts.append((found, address[inside].astype(np.int64) - found.base, inside))
        rest &= ~inside
    check_alignment(wave, access, address, width, lanes)
    yield from parts


def load_global(wave: Wave, access: Access, address: Array, lanes: ActiveLanes) -> Array:
    """Loads from global memory: ``[addresses]`` elements, or ``[addresses, vector]``."""
    if wave.observer is not None:
        wave.observer.memory(wave, access, "global", "load", address, lanes)
    result: Array | None = None
    for found, offsets, which in split_by_allocation(wave, access, address, access.width, lanes):
        unwritten = found.unwritten(offsets, access.width)
        if unwritten is not None:
            bad = int(np.flatnonzero(unwritten)[0])
            at = bad if which is None else int(np.flatnonzero(which)[bad])
            raise wave.fault(
                UninitializedFault,
                f"read of global memory that nothing has written (byte {int(offsets[bad])} of "
                f"{found.name or 'an allocation'} of {found.nbytes} bytes)",
                access.instruction,
                wave.lane_at(lanes, at),
                int(address[at]),
            )
        if wave.causality is not None:
            _follow(wave, access, "read", wave.causality.read, found, offsets, which, lanes)
        values: Array = found.rows(access.dtype, access.vector)[offsets // access.width]
        if which is None:
            return values
        if result is None:
            result = np.empty(address.shape + values.shape[1:], access.dtype)
        result[which] = values
    assert result is not None
    return result


def store_global(
    wave: Wave, access: Access, address: Array, values: Array, lanes: ActiveLanes
) -> None:
    """Stores ``values`` to global memory: an element or a ``vector``-element row per address."""
    if wave.observer is not None:
        wave.observer.memory(wave, access, "global", "store", address, lanes)
    for found, offsets, which in split_by_allocation(wave, access, address, access.width, lanes):
        if found.constant:
            raise wave.fault(
                MemoryFault,
                "store to constant memory",
                access.instruction,
                wave.lane_at(lanes, 0),
                int(address[0]),
            )
        part = values if which is None or len(values) == 1 else values[which]
        rows = found.rows(access.dtype, access.vector)
        if wave.causality is not None:
            old = rows[offsets // access.width]
            new = np.ascontiguousarray(np.broadcast_to(part, old.shape), old.dtype)
            bits = old.view(np.uint8) == new.view(np.uint8)
            same = bits.reshape(len(offsets), -1).all(axis=1)
            write = partial(wave.causality.write, same=same)
            _follow(wave, access, "write", write, found, offsets, which, lanes)
        rows[offsets // access.width] = part
        found.mark_at(offsets, access.width)


_Result = TypeVar("_Result")


def _follow(
    wave: Wave,
    access: Access,
    what: str,
    check: Callable[[Allocation, Lanes, Lanes, int, int, Instruction], _Result],
    found: Allocation,
    offsets: Lanes,
    which: Array | None,
    lanes: ActiveLanes,
    width: int = 0,
) -> _Result:
    """Passes accesses of one allocation, as :func:`split_by_allocation` yields them, to ``check``,
    a method of the race check of global memory; raises RaceFault for a conflict. ``width``: bytes
    of each access; 0: those of ``access``.
    """
    own = wave.lanes if lanes is None else lanes
    if which is not None:
        own = own[which]
    try:
        at = np.broadcast_to(offsets, own.shape)
        return check(found, at, own, width or access.width, access.site, access.instruction)
    except Conflict as conflict:
        raise wave.conflict(conflict, access.instruction, what, own, found) from None


def begin_bulk(
    wave: Wave, access: Access, address: Array, lanes: Lanes, *, writes: bool
) -> list[tuple[InFlight, Lanes]]:
    """Starts a bulk copy's accesses of global memory in the race check: reads, or writes if
    ``writes``. Returns those of each allocation, with their positions in ``address``.
    """
    assert wave.causality is not None
    if not len(address):
        return []
    what, check = "bulk read", wave.causality.begin_read
    if writes:
        what, check = "bulk write", wave.causality.begin_write
    width, index = access.width, np.arange(len(address))
    many = PIECE // width
    if len(address) % many == 0:  # whole pieces of 16 bytes have smaller shadows
        pieces, own = address.reshape(-1, many), lanes.reshape(-1, many)
        steps = np.arange(many, dtype=address.dtype) * address.dtype.type(width)
        if (
            not (pieces[:, 0] % PIECE).any()
            and (pieces - steps == pieces[:, :1]).all()
            and (own == own[:, :1]).all()
        ):
            width, index = PIECE, index[::many]
            address, lanes = pieces[:, 0], own[:, 0]
    return [
        (
            _follow(wave, access, what, check, found, offsets, which, lanes, width),
            index if which is None else index[which],
        )
        for found, offsets, which in split_by_allocation(wave, access, address, width, lanes)
    ]


# -- shared memory --------------------------------------------------------------------


def shared_offsets(
    wave: Wave, access: Access, address: Array, width: int, lanes: ActiveLanes
) -> Lanes:
    """Returns byte offsets into the wave's shared memory for shared addresses of ``lanes``; raises
    MemoryFault if they are out of bounds or misaligned.
    """
    offset = address.astype(np.int64)
    offset -= SHARED_BASE
    limit = wave.shared_bytes - width
    if limit < 0 or bool((offset.view(np.uint64) > limit).any()):
        return _cluster_offsets(wave, access, offset, width, lanes)
    low = int(np.bitwise_or.reduce(offset)) & (width - 1)
    if low:
        check_alignment(wave, access, address, width, lanes)
    base = wave.shared_start if lanes is None else wave.shared_start[lanes]
    result: Lanes = offset + base
    return result


def _cluster_offsets(
    wave: Wave, access: Access, offset: Lanes, width: int, lanes: ActiveLanes
) -> Lanes:
    """Returns byte offsets into the wave's shared memory for addresses in any CTA of the cluster.

    ``offset``: the addresses minus SHARED_BASE; ``width``: bytes of each access. Raises MemoryFault
    if one is out of bounds or misaligned, or if all threads of its CTA have exited.
    """
    offset = np.broadcast_to(offset, wave.lanes.shape if lanes is None else lanes.shape)
    rank, inside = offset // CLUSTER_STRIDE, offset % CLUSTER_STRIDE
    own = wave.lanes if lanes is None else lanes
    cta = own // wave.threads
    bad = (inside > wave.shared_bytes - width) | (rank < 0) | (rank > wave.cluster)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        size = wave.shared_bytes
        raise wave.fault(
            MemoryFault,
            f"out of bounds: {width} bytes at offset {int(offset[first])} of {size} bytes of "
            "shared memory",
            access.instruction,
            wave.lane_at(lanes, first),
            int(offset[first]) + SHARED_BASE,
        )
    # Rank 0 of an address is the own CTA (shared::cta is a part of shared::cluster).
    target = np.where(rank == 0, cta, cta // wave.cluster * wave.cluster + rank - 1)
    left: Array = np.any(wave.alive.reshape(-1, wave.threads), axis=1)
    gone = ~left[target]
    if gone.any():
        first = int(gone.argmax())
        raise wave.fault(
            MemoryFault,
            f"access to the shared memory of the CTA of rank {int(rank[first]) - 1} of the "
            "cluster, all of whose threads have exited",
            access.instruction,
            wave.lane_at(lanes, first),
            int(offset[first]) + SHARED_BASE,
        )
    check_alignment(wave, access, inside, width, lanes)
    result: Lanes = target * wave.shared_bytes + inside
    return result


def load_shared(wave: Wave, access: Access, address: Array, lanes: ActiveLanes) -> Array:
    """Loads from shared memory; checks for races and unwritten bytes."""
    at = shared_offsets(wave, access, address, access.width, lanes)
    own = wave.lanes if lanes is None else lanes
    if wave.observer is not None:
        wave.observer.memory(wave, access, "shared", "load", at, lanes)
    try:
        wave.history.read(at, own, access.width, access.site)
    except Conflict as conflict:
        raise wave.conflict(conflict, access.instruction, "read", own) from None
    values: Array = wave.shared_rows(access.dtype, access.vector)[at // access.width]
    return values


def store_shared(
    wave: Wave, access: Access, address: Array, values: Array, lanes: ActiveLanes
) -> None:
    """Stores ``values`` to shared memory; checks for races."""
    at = shared_offsets(wave, access, address, access.width, lanes)
    own = wave.lanes if lanes is None else lanes
    if wave.observer is not None:
        wave.observer.memory(wave, access, "shared", "store", at, lanes)
    try:
        wave.history.write(at, own, access.width, access.site)
    except Conflict as conflict:
        raise wave.conflict(conflict, access.instruction, "write", own) from None
    wave.shared_rows(access.dtype, access.vector)[at // access.width] = values


# -- local memory ---------------------------------------------------------------------


def _local_at(
    wave: Wave, access: Access, address: Array, lanes: ActiveLanes
) -> tuple[Lanes, Lanes]:
    own = wave.lanes if lanes is None else lanes
    offset = np.broadcast_to(address.astype(np.int64) - LOCAL_BASE, own.shape)
    bad = (offset < 0) | (offset > wave.local.shape[1] - access.width)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise wave.fault(
            MemoryFault,
            f"out of bounds: {access.width} bytes of local memory",
            access.instruction,
            int(own[first]),
            int(offset[first]) + LOCAL_BASE,
        )
    check_alignment(wave, access, offset, access.width, lanes)
    return own, offset // access.width


def load_local(wave: Wave, access: Access, address: Array, lanes: ActiveLanes) -> Array:
    """Loads from the lanes' own local memory; raises if a byte was never written."""
    own, row = _local_at(wave, access, address, lanes)
    written = wave.local_written.reshape(len(wave.local), -1, access.width)[own, row].all(axis=1)
    if not written.all():
        first = int(np.flatnonzero(~written)[0])
        raise wave.fault(
            UninitializedFault,
            "read of local memory that nothing has written",
            access.instruction,
            int(own[first]),
            int(row[first]) * access.width + LOCAL_BASE,
        )
    data: Array = wave.local.view(access.dtype)
    if access.vector > 1:
        data = data.reshape(len(data), -1, access.vector)
    result: Array = data[own, row]
    return result


def store_local(
    wave: Wave, access: Access, address: Array, values: Array, lanes: ActiveLanes
) -> None:
    """Stores ``values`` to the lanes' own local memory."""
    own, row = _local_at(wave, access, address, lanes)
    data: Array = wave.local.view(access.dtype)
    if access.vector > 1:
        data = data.reshape(len(data), -1, access.vector)
    data[own, row] = values
    wave.local_written.reshape(len(wave.local), -1, access.width)[own, row] = True


# -- generic addresses ----------------------------------------------------------------

_WINDOWS = (
    (GLOBAL_BASE, 1 << 64, "global", 0),
    (PARAM_WINDOW, GLOBAL_BASE, "param", PARAM_WINDOW),
    (LOCAL_WINDOW, PARAM_WINDOW, "local", LOCAL_WINDOW),
    (SHARED_WINDOW, LOCAL_WINDOW, "shared", SHARED_WINDOW),
    (0, SHARED_WINDOW, "global", 0),  # nothing is there: an error that says so
)


def split_by_space(address: Array) -> Iterator[tuple[str, Array, Array | None]]:
    """Splits generic addresses by state space.

    Yields a state space, the addresses within it, and their mask in ``address`` (None: all).
    """
    low, high = int(address.min()), int(address.max())
    for start, stop, space, base in _WINDOWS:
        if start <= low and high < stop:
            yield space, address - np.uint64(base), None
            return
    for start, stop, space, base in _WINDOWS:
        which = (address >= np.uint64(start)) & (address <= np.uint64(stop - 1))
        if which.any():
            yield space, address[which] - np.uint64(base), which


LOADS = {
    "global": load_global,
    "shared": load_shared,
    "local": load_local,
}
STORES = {
    "global": store_global,
    "shared": store_shared,
    "local": store_local,
}


def _split_accessible(
    wave: Wave, access: Access, address: Array, lanes: ActiveLanes
) -> Iterator[tuple[str, Array, Array | None]]:
    """Splits generic addresses by state space; raises MemoryFault for a parameter's address."""
    for found, part, which in split_by_space(address):
        if found == "param":
            raise wave.fault(
                MemoryFault,
                "generic access to parameters",
                access.instruction,
                wave.lane_at(lanes, 0),
                int(address[0]),
            )
        yield found, part, which


def load(wave: Wave, access: Access, space: str, address: Array, lanes: ActiveLanes) -> Array:
    """Loads from state space ``space``, which may be ``generic``."""
    if space != "generic":
        return LOADS[space](wave, access, address, lanes)
    result: Array | None = None
    for found, part, which in _split_accessible(wave, access, address, lanes):
        if which is None:
            return LOADS[found](wave, access, part, lanes)
        own = (wave.lanes if lanes is None else lanes)[which]
        values = LOADS[found](wave, access, part, own)
        if result is None:
            result = np.empty(address.shape + values.shape[1:], access.dtype)
        result[which] = values
    assert result is not None
    return result


def store(
    wave: Wave, access: Access, space: str, address: Array, values: Array, lanes: ActiveLanes
) -> None:
    """Stores to state space ``space``, which may be ``generic``."""
    if space != "generic":
        STORES[space](wave, access, address, values, lanes)
        return
    for found, part, which in _split_accessible(wave, access, address, lanes):
        if which is None:
            STORES[found](wave, access, part, values, lanes)
        else:
            own = (wave.lanes if lanes is None else lanes)[which]
            chosen = values if len(values) == 1 else values[which]
            STORES[found](wave, access, part, chosen, own)


def load_atomic(wave: Wave, access: Access, space: str, address: Array, lanes: Lanes) -> Array:
    """Returns the value in memory before an atomic operation of the one lane in ``lanes``. Without
    race check if the address is in shared memory.
    """
    for found, part, _ in (
        split_by_space(address) if space == "generic" else [(space, address, None)]
    ):
        if found == "shared":
            at = shared_offsets(wave, access, part, access.width, lanes)
            return wave.shared_rows(access.dtype, 1)[at // access.width]
        return load_global(wave, access, part, lanes)
    raise AssertionError("an address is somewhere")


def store_atomic(
    wave: Wave, access: Access, space: str, address: Array, values: Array, lanes: Lanes
) -> None:
    """Stores ``values``, the result of an atomic operation of the one lane in ``lanes``, whose old
    value :func:`load_atomic` returned. Without race check if the address is in shared memory.
    """
    for found, part, _ in (
        split_by_space(address) if space == "generic" else [(space, address, None)]
    ):
        if found == "shared":
            at = shared_offsets(wave, access, part, access.width, lanes)
            wave.shared_rows(access.dtype, 1)[at // access.width] = values
        else:
            store_global(wave, access, part, values, lanes)
