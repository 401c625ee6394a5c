"""Loads and stores of all lanes at once: address translation, checks, data movement, recording.

A request is an array of addresses, one per active lane (or a single one that all share), and
an *access* of ``vector`` elements of one dtype. All checks run before any byte moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

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
from ptxgen.interp.memory.proxy import ProxyHistory
from ptxgen.interp.memory.race import Conflict
from ptxgen.interp.text.ptx import Instruction

Array = NDArray[Any]
Lanes = NDArray[np.int64]
Where = Lanes | None
"""The lanes that take part; None: all of the wave."""


class Wave(Protocol):
    """State of the CTAs that run together, as memory needs it. Lanes are flat: CTA, thread."""

    lanes: Lanes
    alive: NDArray[np.bool_]
    threads: int
    """Threads per CTA, rounded up to whole warps."""
    cluster: int
    """CTAs per cluster."""
    memory: GlobalMemory
    recent: Allocation | None
    """Allocation of the last global access; the next access probably hits it again."""
    history: ProxyHistory
    shared_bytes: int
    shared_start: Lanes
    local: NDArray[np.uint8]
    local_written: NDArray[np.bool_]

    @property
    def observer(self) -> Watcher | None:
        """Observer that is told of every access, or None."""

    def lane_at(self, lanes: Lanes | None, index: int) -> int:
        """The flat lane of request ``index`` (requests all lanes share are the first's)."""

    def shared_rows(self, dtype: np.dtype[Any], vector: int) -> Array:
        """All shared memory as elements, or as rows of ``vector`` elements."""

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
        self, conflict: Conflict, instruction: Instruction, what: str, lanes: Lanes
    ) -> KernelFault:
        """Returns the fault for a conflict that the history found in a request of ``lanes``."""


class Watcher(Protocol):
    """Observer of memory traffic: called for accesses to global memory, loads and stores of shared
    memory, and asynchronous copies; not for local memory and atomics of shared memory.
    """

    def memory(
        self, wave: Wave, access: Access, space: str, kind: str, address: Array, lanes: Where
    ) -> None:
        """The lanes (None: all) access global addresses, or flat offsets of shared memory."""


@dataclass(frozen=True, slots=True)
class Access:
    """Dtype, vector length and site number (from 1) of one memory instruction."""

    instruction: Instruction
    site: int
    dtype: np.dtype[Any]
    vector: int = 1

    @property
    def width(self) -> int:
        """Bytes that one lane moves."""
        return self.dtype.itemsize * self.vector


def misaligned(wave: Wave, access: Access, address: Array, width: int, lanes: Where) -> None:
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


def pieces(
    wave: Wave, access: Access, address: Array, width: int, lanes: Where
) -> Iterator[tuple[Allocation, Array, Array | None]]:
    """Yields each allocation that ``address`` points into, the byte offsets of the accesses in
    it, and the mask of those requests (None: all).
    """
    low, high = int(address.min()), int(address.max())
    found = wave.recent
    if found is None or low < found.base or high + width > found.end or found.freed:
        found = wave.memory.find(low, width)
        if found is not None:
            wave.recent = found
    if found is not None and high + width <= found.end:
        misaligned(wave, access, address, width, lanes)
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
    misaligned(wave, access, address, width, lanes)
    yield from parts


def load_global(wave: Wave, access: Access, address: Array, lanes: Where) -> Array:
    """Returns the elements at ``address``, or rows of ``vector`` elements, one per address."""
    if wave.observer is not None:
        wave.observer.memory(wave, access, "global", "load", address, lanes)
    result: Array | None = None
    for found, offsets, which in pieces(wave, access, address, access.width, lanes):
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
        values: Array = found.rows(access.dtype, access.vector)[offsets // access.width]
        if which is None:
            return values
        if result is None:
            result = np.empty(address.shape + values.shape[1:], access.dtype)
        result[which] = values
    assert result is not None
    return result


def store_global(wave: Wave, access: Access, address: Array, values: Array, lanes: Where) -> None:
    """Stores ``values``, an element or a row of ``vector`` elements per address."""
    if wave.observer is not None:
        wave.observer.memory(wave, access, "global", "store", address, lanes)
    for found, offsets, which in pieces(wave, access, address, access.width, lanes):
        if found.constant:
            raise wave.fault(
                MemoryFault,
                "store to constant memory",
                access.instruction,
                wave.lane_at(lanes, 0),
                int(address[0]),
            )
        part = values if which is None or len(values) == 1 else values[which]
        found.rows(access.dtype, access.vector)[offsets // access.width] = part
        found.mark_at(offsets, access.width)


# -- shared memory --------------------------------------------------------------------


def shared_at(wave: Wave, access: Access, address: Array, width: int, lanes: Where) -> Lanes:
    """Returns flat byte offsets into the wave's shared memory for shared addresses of ``lanes``."""
    offset = address.astype(np.int64)
    offset -= SHARED_BASE
    limit = wave.shared_bytes - width
    if limit < 0 or bool((offset.view(np.uint64) > limit).any()):
        return _other_cta(wave, access, offset, width, lanes)
    low = int(np.bitwise_or.reduce(offset)) & (width - 1)
    if low:
        misaligned(wave, access, address, width, lanes)
    base = wave.shared_start if lanes is None else wave.shared_start[lanes]
    result: Lanes = offset + base
    return result


def _other_cta(wave: Wave, access: Access, offset: Lanes, width: int, lanes: Where) -> Lanes:
    """Returns flat offsets of addresses in other CTAs of the cluster; raises if out of bounds."""
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
    # Rank 0 of an address is the own CTA (shared::cta lies within shared::cluster).
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
    misaligned(wave, access, inside, width, lanes)
    result: Lanes = target * wave.shared_bytes + inside
    return result


def load_shared(wave: Wave, access: Access, address: Array, lanes: Where) -> Array:
    """Loads from shared memory; checks for races and unwritten bytes."""
    at = shared_at(wave, access, address, access.width, lanes)
    own = wave.lanes if lanes is None else lanes
    if wave.observer is not None:
        wave.observer.memory(wave, access, "shared", "load", at, lanes)
    try:
        wave.history.read(at, own, access.width, access.site)
    except Conflict as conflict:
        raise wave.conflict(conflict, access.instruction, "read", own) from None
    values: Array = wave.shared_rows(access.dtype, access.vector)[at // access.width]
    return values


def store_shared(wave: Wave, access: Access, address: Array, values: Array, lanes: Where) -> None:
    """Stores ``values`` to shared memory; checks for races."""
    at = shared_at(wave, access, address, access.width, lanes)
    own = wave.lanes if lanes is None else lanes
    if wave.observer is not None:
        wave.observer.memory(wave, access, "shared", "store", at, lanes)
    try:
        wave.history.write(at, own, access.width, access.site)
    except Conflict as conflict:
        raise wave.conflict(conflict, access.instruction, "write", own) from None
    wave.shared_rows(access.dtype, access.vector)[at // access.width] = values


# -- local memory ---------------------------------------------------------------------


def _local_at(wave: Wave, access: Access, address: Array, lanes: Where) -> tuple[Lanes, Lanes]:
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
    misaligned(wave, access, offset, access.width, lanes)
    return own, offset // access.width


def load_local(wave: Wave, access: Access, address: Array, lanes: Where) -> Array:
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


def store_local(wave: Wave, access: Access, address: Array, values: Array, lanes: Where) -> None:
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


def windows(address: Array) -> Iterator[tuple[str, Array, Array | None]]:
    """Splits generic addresses by state space: (space, addresses in it, which; None: all)."""
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


def _spaces(
    wave: Wave, access: Access, address: Array, lanes: Where
) -> Iterator[tuple[str, Array, Array | None]]:
    """Splits generic addresses by state space; raises MemoryFault for a parameter's address."""
    for found, part, which in windows(address):
        if found == "param":
            raise wave.fault(
                MemoryFault,
                "generic access to parameters",
                access.instruction,
                wave.lane_at(lanes, 0),
                int(address[0]),
            )
        yield found, part, which


def load(wave: Wave, access: Access, space: str, address: Array, lanes: Where) -> Array:
    """Loads from state space ``space``, which may be ``generic``."""
    if space != "generic":
        return LOADS[space](wave, access, address, lanes)
    result: Array | None = None
    for found, part, which in _spaces(wave, access, address, lanes):
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
    wave: Wave, access: Access, space: str, address: Array, values: Array, lanes: Where
) -> None:
    """Stores to state space ``space``, which may be ``generic``."""
    if space != "generic":
        STORES[space](wave, access, address, values, lanes)
        return
    for found, part, which in _spaces(wave, access, address, lanes):
        if which is None:
            STORES[found](wave, access, part, values, lanes)
        else:
            own = (wave.lanes if lanes is None else lanes)[which]
            chosen = values if len(values) == 1 else values[which]
            STORES[found](wave, access, part, chosen, own)


def load_atomic(wave: Wave, access: Access, space: str, address: Array, lanes: Lanes) -> Array:
    """Loads for an atomic operation of one lane, without the race check in shared memory."""
    for found, part, _ in windows(address) if space == "generic" else [(space, address, None)]:
        if found == "shared":
            at = shared_at(wave, access, part, access.width, lanes)
            return wave.shared_rows(access.dtype, 1)[at // access.width]
        return load_global(wave, access, part, lanes)
    raise AssertionError("an address is somewhere")


def store_atomic(
    wave: Wave, access: Access, space: str, address: Array, values: Array, lanes: Lanes
) -> None:
    """Stores the result of an atomic operation whose operand :func:`load_atomic` read."""
    for found, part, _ in windows(address) if space == "generic" else [(space, address, None)]:
        if found == "shared":
            at = shared_at(wave, access, part, access.width, lanes)
            wave.shared_rows(access.dtype, 1)[at // access.width] = values
        else:
            store_global(wave, access, part, values, lanes)
