"""Synchronisation of lanes: barriers of a CTA or cluster, asynchronous copies, mbarriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import BarrierFault, KernelFault, MemoryFault, UninitializedFault
from ptxgen.interp.memory import access as memory_access
from ptxgen.interp.memory.access import Access
from ptxgen.interp.memory.allocations import SHARED_BASE
from ptxgen.interp.memory.race import Conflict
from ptxgen.interp.text.ptx import WARP, Instruction

Array = NDArray[Any]
Lanes = NDArray[np.int64]
_MOST = 1 << 20
"""Exclusive upper limit of an mbarrier's pending arrivals, and of its pending bytes."""

Unit = TypeVar("Unit")


class ResumePoint(Protocol):
    """Segment at which lanes continue after a wait."""

    order: int
    """Position of the segment in the kernel's weak topological order."""


class Wave(memory_access.Wave, Protocol):
    """Attributes of a wave (CTAs that run together) that execution units use."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    ctas: range
    params: bytes
    thread: Lanes
    """Thread index of each lane in its CTA."""
    all_alive: bool
    mask: NDArray[np.bool_] | None
    """Mask of the running lanes; None: all lanes of the wave."""
    registers: list[Any]
    shared_limit: int
    random: np.random.Generator | None
    parked: dict[int, NDArray[np.bool_]]
    stalls: dict[int, int]
    copies: Copies
    arrivals: Arrivals
    mbarriers: Mbarriers
    cluster_barrier: ClusterBarrier

    @property
    def early(self) -> bool:
        """Whether asynchronous operations complete as soon as they are issued."""

    @property
    def active(self) -> Lanes | None:
        """Indices of the running lanes; None: all lanes of the wave."""

    def unit(self, kind: Callable[[Wave], Unit]) -> Unit:
        """Returns the wave's only instance of the unit class ``kind``."""

    def thread_text(self, lane: int) -> str:
        """Returns a lane's thread, warp and lane number as text for a message."""

    def send(self, block: ResumePoint, mask: NDArray[np.bool_] | None) -> None:
        """Makes the lanes of ``mask`` ready to run ``block``."""

    def park(self, block: ResumePoint, mask: NDArray[np.bool_]) -> None:
        """Parks lanes at ``block`` until :meth:`wake` makes them ready again."""

    def wake(self, order: int | None = None) -> None:
        """Makes parked lanes ready to run: those at the segment at position ``order`` of the weak
        topological order; None: all.
        """

    def leave(self, mask: NDArray[np.bool_] | None) -> None:
        """Ends the lanes of ``mask``; None: all of the wave."""


# -- barriers of a CTA ----------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Arrival:
    """Arrival of the lanes in ``mask`` at barrier ``number`` of their CTAs, kept until that barrier
    opens.
    """

    instruction: Instruction
    number: int
    mask: NDArray[np.bool_]
    expected: int | None
    """Threads that the barrier waits for; None: all that have not exited."""
    block: ResumePoint | None
    """Segment at which the lanes continue; None for an arrival without a wait (bar.arrive)."""


class Arrivals:
    """The numbered barriers of all CTAs of a wave (bar.sync, bar.arrive)."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.waiting: list[Arrival] = []
        self.objects: dict[tuple[int, int], int] = {}
        """Race-check objects by CTA and barrier, into which bar.arrive releases."""

    def arrive(
        self,
        instruction: Instruction,
        block: ResumePoint,
        mask: NDArray[np.bool_] | None,
        number: int,
        expected: int | None,
        *,
        waits: bool = True,
        aligned: bool = True,
    ) -> None:
        """Records the arrival of the lanes in ``mask`` at barrier ``number``.

        They continue at ``block``: immediately, or if ``waits``, when the barrier opens.
        ``expected``: threads that it waits for; None: all that have not exited.
        """
        wave = self.wave
        if not 0 <= number < 16:
            lane = 0 if mask is None else _first(mask)
            raise wave.fault(BarrierFault, f"barrier {number}; takes 0 to 15", instruction, lane)
        if mask is None and expected is None and not self.waiting and waits:  # everyone is here
            if wave.cluster == 1:
                wave.history.barrier(np.arange(len(wave.ctas)))
            else:
                wave.history.sync(wave.lanes.reshape(-1, wave.threads))
            wave.send(block, None)
            return
        mask = wave.alive.copy() if mask is None else mask
        if aligned:
            self.check_whole_warps(instruction, mask)
        if expected is not None and (expected % WARP or not 0 < expected <= wave.threads):
            raise wave.fault(
                BarrierFault,
                f"a barrier for {expected} threads; takes a multiple of {WARP} up to the "
                f"{wave.threads} of the CTA",
                instruction,
                _first(mask),
            )
        for other in self.waiting:
            if other.number == number and other.expected != expected:
                both = self._ctas(other.mask) & self._ctas(mask)
                if both.any():
                    raise wave.fault(
                        BarrierFault,
                        f"barrier {number} is reached for {_threads(expected)}, but at line "
                        f"{other.instruction.line} ({other.instruction.text}) for "
                        f"{_threads(other.expected)}",
                        instruction,
                        _first(mask),
                    )
        self.waiting.append(Arrival(instruction, number, mask, expected, block if waits else None))
        if not waits:
            self._release(mask, number)
            wave.send(block, mask)
        self.open_complete()

    def _release(self, mask: NDArray[np.bool_], number: int) -> None:
        """Records that the lanes in ``mask`` arrive at a barrier without waiting for it."""
        threads = self.wave.threads
        for cta in np.flatnonzero(self._ctas(mask)).tolist():
            if (cta, number) not in self.objects:
                new = self.wave.history.new_object(cta // self.wave.cluster)
                self.objects[cta, number] = new
            lanes = cta * threads + np.flatnonzero(mask[cta * threads : (cta + 1) * threads])
            self.wave.history.release(lanes, np.array([self.objects[cta, number]]))

    def _ctas(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Counts the lanes in ``mask`` of each CTA."""
        counts: NDArray[np.int64] = mask.reshape(-1, self.wave.threads).sum(axis=1)
        return counts

    def check_whole_warps(self, instruction: Instruction, mask: NDArray[np.bool_]) -> None:
        """Raises BarrierFault if ``mask`` has only some of a warp's living lanes."""
        wave = self.wave
        rows = mask.reshape(-1, WARP)
        missing = wave.alive.reshape(-1, WARP) & ~rows
        missing &= rows.any(axis=1, keepdims=True)
        if missing.any():
            lane = int(np.flatnonzero(missing.reshape(-1))[0])
            raise wave.fault(
                BarrierFault,
                f"divergent barrier: {wave.thread_text(lane)} of the warp is not here",
                instruction,
                lane,
            )

    def open_complete(self) -> None:
        """Opens each barrier at which all expected threads have arrived."""
        wave = self.wave
        alive = self._ctas(wave.alive)
        for number in {a.number for a in self.waiting}:
            here = [a for a in self.waiting if a.number == number]
            arrived = sum((self._ctas(a.mask) for a in here), np.zeros(len(alive), np.int64))
            for cta in np.flatnonzero(arrived).tolist():
                low, high = cta * wave.threads, (cta + 1) * wave.threads
                members = [a for a in here if a.mask[low:high].any()]
                expected = members[0].expected
                wanted = int(alive[cta]) if expected is None else expected
                # Aligned arrivals count by warps: threads that do not exist or have exited count.
                got = (
                    int(arrived[cta])
                    if expected is None
                    else sum(
                        WARP * int(a.mask[low:high].reshape(-1, WARP).any(axis=1).sum())
                        for a in members
                    )
                )
                if got > wanted:
                    raise wave.fault(
                        BarrierFault,
                        f"{got} threads have arrived at barrier {number}, which waits for {wanted}",
                        members[-1].instruction,
                        low + _first(members[-1].mask[low:high]),
                    )
                if got == wanted:
                    self._open(members, low, high)
        self.waiting = [a for a in self.waiting if a.mask.any()]

    def _open(self, members: list[Arrival], low: int, high: int) -> None:
        """Opens a barrier of the CTA with the lanes from ``low`` to ``high``: lanes that wait
        continue, ordered after all arrivals.
        """
        wave = self.wave
        together = np.zeros(len(wave.lanes), np.bool_)
        for arrival in members:
            part = np.zeros(len(wave.lanes), np.bool_)
            part[low:high] = arrival.mask[low:high]
            arrival.mask = arrival.mask & ~part
            if arrival.block is not None:
                together |= part
                wave.send(arrival.block, None if part.all() else part)
        lanes = np.flatnonzero(together)
        if wave.cluster == 1 and (together[low:high] | ~wave.alive[low:high]).all():
            wave.history.barrier(np.array([low // wave.threads]))
        else:
            wave.history.sync(lanes[None, :])
        if any(arrival.block is None for arrival in members):
            found = self.objects[low // wave.threads, members[0].number]
            wave.history.acquire(lanes, np.full(len(lanes), found))


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[0])


def _threads(expected: int | None) -> str:
    return "all threads of the CTA" if expected is None else f"{expected} threads"


# -- asynchronous copies --------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Copy:
    """Execution of a cp.async whose copies, one per lane of ``lanes``, are in flight: ``values``
    (rows of ``access.vector`` elements) go to the byte offsets ``at`` in the wave's shared memory.
    ``token`` is the copy in the race check.
    """

    access: Access
    at: Lanes
    lanes: Lanes
    group: NDArray[np.int64]
    """Index of the cp.async group of each lane's copy, counted from the lane's first group."""
    values: Array
    token: Any


class Copies:
    """Asynchronous copies of a wave.

    A cp.async copy reads its source when it is issued, and writes when the issuing lane waits for
    its group, or immediately, if the settings say ``early``. Other lanes may read the bytes only
    after a barrier; the race check verifies that. Other transfers, such as bulk copies, may
    complete at any time; they are listed in ``bulk``.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.pending: list[Copy] = []
        self.bulk: list[Transfer] = []
        """Transfers in flight; they complete at the latest when no lane can run."""
        self.committed = np.zeros(len(wave.lanes), np.int64)
        self.stores: list[OutboundCopy] = []
        """Bulk copies out of shared memory for whose reads no lane has waited."""
        self.writes: list[OutboundCopy] = []
        """Bulk copies to global memory for whose writes no lane has waited, if the wave has a race
        check of global memory.
        """
        self.bulk_groups = np.zeros(len(wave.lanes), np.int64)

    def issue(self, access: Access, at: Lanes, lanes: Lanes, values: Array) -> None:
        """Starts a cp.async of each of ``lanes``: its row of ``values`` (``access.vector``
        elements) goes to its byte offset in ``at`` in the wave's shared memory.
        """
        wave = self.wave
        try:
            token = wave.history.issue(at, lanes, access.width, access.site)
        except Conflict as conflict:
            raise wave.conflict(conflict, access.instruction, "asynchronous write", lanes) from None
        copy = Copy(access, at, lanes, self.committed[lanes], values, token)
        if wave.early:
            self.store(copy)
        self.pending.append(copy)

    def commit(self, lanes: Lanes | None) -> None:
        """Executes cp.async.commit_group: the copies that each of ``lanes`` (None: all) has issued
        since its last commit become a group.
        """
        if lanes is None:
            self.committed += 1
        else:
            self.committed[lanes] += 1

    def wait(self, mask: NDArray[np.bool_] | None, newest: int) -> None:
        """Executes cp.async.wait_group: each lane in ``mask`` (None: all) completes all its groups
        but the ``newest`` youngest. -1, wait_all: also copies that are in no group yet.
        """
        rest: list[Copy] = []
        for copy in self.pending:
            done = copy.group < self.committed[copy.lanes] - newest
            if newest < 0:
                done[:] = True
            if mask is not None:
                done &= mask[copy.lanes]
            landed, staying = self._divide(copy, done)
            if landed is not None:
                self._land(landed)
            if staying is not None:
                rest.append(staying)
        self.pending = rest
        for transfer in list(self.bulk):
            if isinstance(transfer, CopyArrival):
                transfer.wait(mask, newest)

    def _divide(self, copy: Copy, part: NDArray[np.bool_]) -> tuple[Copy | None, Copy | None]:
        """Splits a copy in two: the elements where ``part`` is True, and the others; None for a
        half without elements.
        """
        if part.all():
            return copy, None
        if not part.any():
            return None, copy
        tokens = self.wave.history.split(copy.token, part)
        first, second = (
            Copy(copy.access, copy.at[m], copy.lanes[m], copy.group[m], copy.values[m], token)
            for m, token in zip((part, ~part), tokens, strict=True)
        )
        return first, second

    def _land(self, copy: Copy) -> None:
        if not self.wave.early:
            self.store(copy)
        self.wave.history.complete(copy.token)

    def store(self, copy: Copy) -> None:
        """Writes the bytes of ``copy`` to shared memory; the race check is not involved."""
        access = copy.access
        self.wave.shared_rows(access.dtype, access.vector)[copy.at // access.width] = copy.values

    def arrive(self, access: Access, at: Lanes, lanes: Lanes) -> None:
        """Starts cp.async.mbarrier.arrive on the mbarrier at each lane's shared offset ``at``.

        A lane arrives when all its earlier copies have completed.
        """
        wave = self.wave
        chosen = np.zeros(len(wave.lanes), np.bool_)
        chosen[lanes] = True
        own_copies, rest = [], []
        for copy in self.pending:
            one, other = self._divide(copy, chosen[copy.lanes])
            if one is not None:
                wave.history.complete_on_object(one.token)
                own_copies.append(one)
            if other is not None:
                rest.append(other)
        self.pending = rest
        earlier = [t for t in self.bulk if isinstance(t, CopyArrival) and chosen[t.lanes].any()]
        transfer = CopyArrival(self, access, lanes, at, own_copies, earlier)
        copying = np.zeros(len(wave.lanes), np.bool_)
        for copy in own_copies:
            copying[copy.lanes] = True
        idle = ~copying[lanes]
        if idle.any():  # without a copy, these lanes release into the mbarrier
            now = [wave.mbarriers.get(access, *pair).arrival_object for pair in zip(
                at[idle].tolist(), lanes[idle].tolist(), strict=True)]  # fmt: skip
            wave.history.release(lanes[idle], np.array(now))
        self.bulk.append(transfer)
        if wave.early:
            transfer.land()

    def land(self) -> bool:
        """Completes one transfer of ``bulk``: the oldest, or a random one under a random schedule.
        Returns False if none is in flight.
        """
        if not self.bulk:
            return False
        at = 0 if self.wave.random is None else int(self.wave.random.integers(len(self.bulk)))
        self.bulk[at].land()
        return True


class Transfer:
    """Asynchronous operation that may complete at any time; :attr:`Copies.bulk` lists it."""

    lanes: Lanes
    """Lanes that have issued the operation."""

    def land(self) -> None:
        """Completes the operation, and removes it from :attr:`Copies.bulk`."""
        raise NotImplementedError


class OutboundCopy(Transfer):
    """Bulk copy that one lane has issued out of shared memory, and waits for by its group number
    ``group`` (cp.async.bulk.wait_group).
    """

    access: Access
    group: int

    def complete_wait(self, *, read: bool) -> None:
        """Completes the copy after its lane's cp.async.bulk.wait_group; ``read``: the wait was
        wait_group.read, which only requires that the source has been read.
        """
        raise NotImplementedError


class CopyArrival(Transfer):
    """Execution of cp.async.mbarrier.arrive: each of ``lanes`` arrives at the mbarrier at its
    shared offset in ``at`` when its cp.async copies are complete: those in ``waits_for``, and those
    of its previous executions, ``earlier``.
    """

    def __init__(
        self,
        copies: Copies,
        access: Access,
        lanes: Lanes,
        at: Lanes,
        waits_for: list[Copy],
        earlier: list[CopyArrival],
    ) -> None:
        self.copies, self.access, self.lanes, self.at = copies, access, lanes, at
        self.waits_for, self.earlier = waits_for, earlier

    def land(self) -> None:
        """Writes the cp.async copies that the lanes issued before cp.async.mbarrier.arrive, then
        arrives at the mbarriers, once per lane.
        """
        if self not in self.copies.bulk:
            return
        self.copies.bulk.remove(self)
        for transfer in self.earlier:
            transfer.land()
        wave = self.copies.wave
        bars = wave.mbarriers
        handles = np.zeros(len(wave.lanes), np.int64)
        for offset, lane in zip(self.at.tolist(), self.lanes.tolist(), strict=True):
            handles[lane] = bars.get(self.access, offset, lane).arrival_object
        for copy in self.waits_for:
            if not wave.early:
                self.copies.store(copy)
            wave.history.complete(copy.token, handles[copy.lanes])
        bars.arrive(
            self.access, self.at, self.lanes, np.ones(len(self.at), np.int64), release=False
        )

    def wait(self, mask: NDArray[np.bool_] | None, newest: int) -> None:
        """Executes cp.async.wait_group for the lanes in ``mask`` (None: all) and all groups but the
        ``newest`` youngest: if one of these has a copy of this operation, completes the operation,
        and orders the copies before later accesses of the waiting lanes.
        """
        wave = self.copies.wave
        for copy in self.waits_for:
            done = copy.group < self.copies.committed[copy.lanes] - newest
            if newest < 0:
                done[:] = True
            if mask is not None:
                done &= mask[copy.lanes]
            if done.any():
                self.land()
                lanes = np.unique(copy.lanes[done])
                at = dict(zip(self.lanes.tolist(), self.at.tolist(), strict=True))
                for lane in lanes.tolist():
                    found = wave.mbarriers.get(self.access, at[lane], lane)
                    wave.history.acquire(np.array([lane]), np.array([found.arrival_object]))


# -- mbarriers ------------------------------------------------------------------------


@dataclass(slots=True)
class Mbarrier:
    """State of an mbarrier: ``pending`` arrivals and ``bytes`` for which its current phase still
    waits, ``expected`` arrivals for which each later phase waits, ``phase`` completed phases.
    """

    expected: int
    pending: int
    arrival_object: int
    """Handle of the race check's synchronisation object into which arrivals release."""
    wait_object: int
    """Handle of the race check's synchronisation object that waiting lanes acquire: the arrivals of
    each phase are merged into it when the phase completes.
    """
    bytes: int = 0
    phase: int = 0


class Mbarriers:
    """Mbarriers of a wave, by byte offset in its shared memory."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.at: dict[int, Mbarrier] = {}

    def init(self, access: Access, at: Lanes, lanes: Lanes, counts: Array) -> None:
        """Executes mbarrier.init by each of ``lanes`` at its shared offset in ``at``: starts phase
        0, which waits for the lane's number of arrivals in ``counts``.
        """
        wave = self.wave
        self._own(access, at, lanes, "mbarrier.init")
        for offset, lane, count in zip(at.tolist(), lanes.tolist(), counts.tolist(), strict=True):
            if not 0 < count < _MOST:
                raise wave.fault(
                    MemoryFault,
                    f"mbarrier.init with count {count}; takes 1 to 2^20 - 1",
                    access.instruction,
                    lane,
                )
            cluster = offset // (wave.shared_bytes * wave.cluster)
            new = wave.history.new_object
            self.at[offset] = Mbarrier(count, count, new(cluster), new(cluster))

    def invalidate(self, access: Access, at: Lanes, lanes: Lanes) -> None:
        """Executes mbarrier.inval by ``lanes`` on the mbarriers at the shared offsets ``at``: later
        uses of these raise UninitializedFault.
        """
        self._find(access, at, lanes)
        self._own(access, at, lanes, "mbarrier.inval")
        for offset in at.tolist():
            self.at.pop(offset, None)

    def _own(self, access: Access, at: Lanes, lanes: Lanes, what: str) -> None:
        wave = self.wave
        try:
            wave.history.write(at, lanes, 8, access.site)
        except Conflict as conflict:
            raise wave.conflict(conflict, access.instruction, what, lanes) from None

    def get(self, access: Access, offset: int, lane: int) -> Mbarrier:
        """Returns the mbarrier at a shared offset; raises UninitializedFault if there is none."""
        found = self.at.get(offset)
        if found is None:
            raise self.wave.fault(
                UninitializedFault,
                "no mbarrier has been initialised here",
                access.instruction,
                lane,
                offset % max(self.wave.shared_bytes, 1) + SHARED_BASE,
            )
        return found

    def _find(
        self, access: Access, at: Lanes, lanes: Lanes
    ) -> tuple[list[Mbarrier], NDArray[np.int64]]:
        """Returns the mbarriers at the shared offsets ``at``, each once, and for each lane the
        index of its mbarrier. Raises UninitializedFault if there is none, RaceFault if its
        initialisation is not ordered before the use by ``lanes``.
        """
        offsets, first, which = np.unique(at, return_index=True, return_inverse=True)
        found = [
            self.get(access, offset, lane)
            for offset, lane in zip(offsets.tolist(), lanes[first].tolist(), strict=True)
        ]
        try:
            self.wave.history.check_read(at, lanes, 8)
        except Conflict as conflict:
            raise self.wave.conflict(
                conflict, access.instruction, "use of the mbarrier", lanes
            ) from None
        return found, which

    def arrive(
        self,
        access: Access,
        at: Lanes,
        lanes: Lanes,
        counts: Array,
        *,
        release: bool = True,
        drop: bool = False,
        completes: bool = True,
    ) -> Array:
        """Records ``counts`` arrivals of each lane at the mbarrier at its shared offset in ``at``;
        returns, per lane, the mbarrier's state before its arrival.

        A state has the phase in its lower half, the pending arrivals in its upper half.
        ``release``: the arrival is a release; ``drop``: later phases do not wait for it;
        ``completes``: it may complete the phase.
        """
        found, which = self._find(access, at, lanes)
        counts = counts.astype(np.int64)
        total = np.bincount(which, counts, len(found)).astype(np.int64).tolist()
        if any(n > b.pending for n, b in zip(total, found, strict=True)):
            return self._arrive_singly(access, at, lanes, counts, release, drop, completes)
        # No phase ends before the last arrival, so all lanes arrive together.
        if release:
            now = np.array([b.arrival_object for b in found])
            self.wave.history.release(lanes, now[which])
        phases = np.array([b.phase for b in found], np.int64)[which]
        order = np.argsort(which, kind="stable")
        before = np.empty(len(at), np.int64)
        running = np.cumsum(counts[order]) - counts[order]
        starts = np.searchsorted(which[order], np.arange(len(found)))
        before[order] = running - running[starts][which[order]]
        pending = np.array([b.pending for b in found], np.int64)[which] - before
        for barrier, n in zip(found, total, strict=True):
            barrier.pending -= n
            barrier.expected -= n if drop else 0
            if not barrier.pending and not completes:
                raise self._completed(access, int(lanes[0]))
            self.complete_phase(barrier)
        return (phases | pending << 32).view(np.uint64)

    def _completed(self, access: Access, lane: int) -> KernelFault:
        return self.wave.fault(
            BarrierFault,
            "an arrival with .noComplete is the last one that its phase waits for",
            access.instruction,
            lane,
        )

    def _arrive_singly(
        self,
        access: Access,
        at: Lanes,
        lanes: Lanes,
        counts: Array,
        release: bool,
        drop: bool,
        completes: bool,
    ) -> Array:
        """Records arrivals as :meth:`arrive` does, but lane by lane. Needed when there are
        more arrivals than the current phase waits for, so that it completes between them.
        """
        states = np.empty(len(at), np.int64)
        for i, (offset, lane, count) in enumerate(
            zip(at.tolist(), lanes.tolist(), counts.tolist(), strict=True)
        ):
            barrier = self.get(access, offset, lane)
            states[i] = barrier.phase | barrier.pending << 32
            if release:
                self.wave.history.release(np.array([lane]), np.array([barrier.arrival_object]))
            if not 0 < count <= barrier.pending:
                raise self.wave.fault(
                    BarrierFault,
                    f"{count} arrivals at an mbarrier that waits for {barrier.pending} more in "
                    "this phase",
                    access.instruction,
                    lane,
                    offset % self.wave.shared_bytes + SHARED_BASE,
                )
            barrier.pending -= count
            barrier.expected -= count if drop else 0
            if not barrier.pending and not completes:
                raise self._completed(access, lane)
            self.complete_phase(barrier)
        return states.view(np.uint64)

    def add_pending(self, access: Access, at: Lanes, lanes: Lanes) -> None:
        """Makes the current phase of the mbarrier at each lane's shared offset ``at`` wait for one
        more arrival (for cp.async.mbarrier.arrive without .noinc).
        """
        found, which = self._find(access, at, lanes)
        for barrier, n in zip(found, np.bincount(which).tolist(), strict=True):
            barrier.pending += n

    def expect(self, access: Access, at: Lanes, lanes: Lanes, nbytes: Array) -> None:
        """Executes expect_tx by ``lanes``: the current phase of the mbarrier at each lane's shared
        offset ``at`` waits for ``nbytes`` more bytes of asynchronous copies.
        """
        found, which = self._find(access, at, lanes)
        total = np.bincount(which, nbytes, len(found)).astype(np.int64).tolist()
        for i, (barrier, n) in enumerate(zip(found, total, strict=True)):
            barrier.bytes += n
            if abs(barrier.bytes) >= _MOST:
                raise self.wave.fault(
                    BarrierFault,
                    f"an mbarrier that waits for {barrier.bytes} bytes; takes up to 2^20 - 1",
                    access.instruction,
                    int(lanes[int(np.argmax(which == i))]),
                )

    def complete(self, access: Access, at: Lanes, lanes: Lanes, nbytes: Array) -> None:
        """Executes complete_tx by ``lanes``: the current phase of the mbarrier at each lane's
        shared offset ``at`` waits for ``nbytes`` bytes fewer.
        """
        for offset, lane, n in zip(at.tolist(), lanes.tolist(), nbytes.tolist(), strict=True):
            barrier = self.get(access, offset, lane)
            barrier.bytes -= n
            self.complete_phase(barrier)

    def complete_phase(self, barrier: Mbarrier) -> None:
        """Completes the current phase of ``barrier`` if no arrival and no byte is pending; then
        starts the next phase, and makes all parked lanes ready.
        """
        if barrier.pending == 0 and barrier.bytes == 0:
            self.wave.history.merge(barrier.arrival_object, barrier.wait_object)
            barrier.phase += 1
            barrier.pending = barrier.expected
            self.wave.stalls.clear()
            self.wave.wake()

    def phase_completed(
        self, access: Access, at: Lanes, lanes: Lanes, wanted: Array, *, parity: bool
    ) -> NDArray[np.bool_]:
        """Returns the mask of ``lanes`` whose phase has completed at the mbarrier at ``at``, and
        records that these acquire its arrivals. ``wanted``: per lane, the phase's parity if
        ``parity``, else the state that an arrival returned.
        """
        found, which = self._find(access, at, lanes)
        phase = np.array([b.phase for b in found], np.int64)[which]
        if parity:
            over: NDArray[np.bool_] = (phase & 1) != wanted
        else:
            over = phase != (wanted & 0xFFFFFFFF)
        if over.any():
            done = np.array([b.wait_object for b in found])
            self.wave.history.acquire(lanes[over], done[which[over]])
        return over


# -- barriers of a cluster ------------------------------------------------------------


class ClusterBarrier:
    """State of barrier.cluster, for all clusters of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.size = wave.threads * wave.cluster
        count = len(wave.lanes) // self.size
        self.phase = np.zeros(count, np.int64)
        self.arrived = np.zeros(len(wave.lanes), np.int64)
        """Arrivals of each lane so far."""
        self.waited = np.zeros(len(wave.lanes), np.int64)
        """Completed waits of each lane so far."""
        self.objects: tuple[Lanes, Lanes] | None = None
        self.fences: Lanes | None = None

    def _lanes(self, mask: NDArray[np.bool_] | None) -> Lanes:
        return np.flatnonzero(self.wave.alive if mask is None else mask)

    def arrive(
        self, instruction: Instruction, mask: NDArray[np.bool_] | None, *, release: bool
    ) -> None:
        """Records barrier.cluster.arrive of the lanes in ``mask`` (None: all). ``release``: their
        earlier accesses happen before those of other lanes after their waits. Raises BarrierFault
        for a lane that has arrived before and not waited since.
        """
        wave, lanes = self.wave, self._lanes(mask)
        twice = self.arrived[lanes] > self.waited[lanes]
        if twice.any():
            raise wave.fault(
                BarrierFault,
                "arrives at the barrier of the cluster again without having waited",
                instruction,
                int(lanes[twice.argmax()]),
            )
        self.arrived[lanes] += 1
        if release:
            now, _ = self._objects()
            wave.history.release(lanes, now[lanes // self.size])
        self.open_complete()

    def fence(self, lanes: Lanes) -> None:
        """Records that ``lanes`` have executed fence.acq_rel or fence.sc: after it, even a relaxed
        arrival at the barrier makes their earlier accesses visible to lanes that wait.
        """
        if not len(lanes):
            return
        history = self.wave.history
        if self.fences is None:
            self.fences = np.array([history.new_object(c) for c in range(len(self.phase))])
        history.release(lanes, self.fences[lanes // self.size])

    def _objects(self) -> tuple[Lanes, Lanes]:
        """Returns two arrays with a race-check object for each cluster: arrivals release into the
        first, waits acquire the second. They are merged when the barrier opens.
        """
        if self.objects is None:
            new = self.wave.history.new_object
            self.objects = (
                np.array([new(c) for c in range(len(self.phase))]),
                np.array([new(c) for c in range(len(self.phase))]),
            )
        return self.objects

    def wait(self, instruction: Instruction, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Executes barrier.cluster.wait of the lanes in ``mask`` (None: all). Returns the mask of
        those whose cluster's lanes have all arrived or exited, which acquire the arrivals; the
        others must wait. Raises BarrierFault for a lane that has not arrived.
        """
        wave, lanes = self.wave, self._lanes(mask)
        idle = self.arrived[lanes] == self.waited[lanes]
        if idle.any():
            raise wave.fault(
                BarrierFault,
                "waits at the barrier of the cluster without having arrived",
                instruction,
                int(lanes[idle.argmax()]),
            )
        over = self.arrived[lanes] <= self.phase[lanes // self.size]
        going = lanes[over]
        self.waited[going] += 1
        if len(going) and self.objects is not None:
            wave.history.acquire(going, self.objects[1][going // self.size])
        result = np.zeros(len(wave.lanes), np.bool_)
        result[going] = True
        return result

    def open_complete(self) -> None:
        """Opens the barrier of each cluster whose lanes have all arrived or exited."""
        alive = self.wave.alive.reshape(-1, self.size)
        arrived = self.arrived.reshape(-1, self.size) > self.phase[:, None]
        complete = (arrived | ~alive).all(axis=1) & (arrived & alive).any(axis=1)
        for cluster in np.flatnonzero(complete).tolist():
            self.phase[cluster] += 1
            now, done = self._objects()
            self.wave.history.merge(int(now[cluster]), int(done[cluster]))
            if self.fences is not None:
                self.wave.history.merge(int(self.fences[cluster]), int(done[cluster]))
        if complete.any():
            self.wave.stalls.clear()
            self.wave.wake()
