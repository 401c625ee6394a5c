"""Race checks for global memory, in kernels whose CTAs hand data to each other.

Within a CTA (or cluster), :class:`~ptxgen.interp.memory.race.SharedHistory` knows which accesses
are ordered. Between CTAs, a release pattern on a flag synchronises with an acquire pattern that
reads it:

- A release stores its thread's vector clock, and every snapshot which that thread has acquired from
  other CTAs, with the flag. A relaxed store after a fence counts as a release with the fence's
  clock. An atomic adds to the flag's snapshot, a store replaces it. A store that leaves the flag's
  value unchanged does not synchronise, as no load can distinguish it from the one before.
- An acquire (or a relaxed load before a fence) is recorded as an access of its thread. Accesses
  ordered after it, by barriers for example, inherit the flag's snapshot.

The shadow memory of a granule has its last write and its last read. Reads that another thread's
read has displaced go to a log, which is searched only when such a granule is written.

A bulk copy accesses global memory in the async proxy. Its read lasts until its mbarrier completes,
its write until its thread has waited for the whole group (not ``.read``). While a bulk read is in
flight, no thread may write its bytes; while a bulk write is, no thread may access them. The copy
sees an ordinary store only after a ``fence.proxy.async`` of the storing or of the issuing thread;
the other way round, completion is such a fence. A write after a read of the other proxy is not
checked for a proxy fence.

Source: PTX ISA 9.0, 8.7 (morally strong operations), 8.8 (release and acquire patterns), 8.9.4
(memory synchronization), 8.9.5 (causality order), 9.7.9.25.2 (async proxy), 9.7.9.25.4 (bulk
copies: completion, wait_group).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxgen.interp.memory.allocations import Allocation
from ptxgen.interp.memory.race import PENDING, Conflict, Ints, Kind, SharedHistory, Stamps
from ptxgen.interp.text.ordering import GPU, Ordering, ordering
from ptxgen.interp.text.ptx import Instruction

Snapshot = dict[int, Stamps]
"""Vector clocks, by CTA (or cluster), of the accesses that happen before a point of a thread."""
_LINE = 16
"""Bytes of the widest access, and the first size of a granule."""
_LOG = 1 << 20
"""Logged reads of an allocation from which repeated ones are dropped."""


@dataclass(slots=True, eq=False)
class _Acquired:
    """Acquire by ``lane`` at the time ``stamp``, of a flag with ``snapshot``."""

    lane: int
    stamp: int
    snapshot: Snapshot


@dataclass(slots=True, eq=False)
class InFlight:
    """Accesses of a bulk copy in flight: ``width`` bytes at each offset in an allocation."""

    found: Allocation
    at: Ints
    width: int
    site: int


class _Reads:
    """Reads of the granules of one allocation: the last one of each, and a log of those that reads
    of other threads have displaced.
    """

    def __init__(self, granules: int) -> None:
        self.stamp: Stamps = np.zeros(granules, np.int32)  # 0: no read
        self.reader: Stamps = np.zeros(granules, np.int32)
        self.site: Stamps = np.zeros(granules, np.int32)
        self.displaced: list[NDArray[np.int32]] = []
        """Columns granule, stamp, reader, site of displaced reads, in the order of time."""
        self.count = 0
        self.is_sorted = True

    def refine(self, many: int) -> None:
        """Divides each granule into ``many``."""
        self.stamp, self.reader, self.site = (
            np.repeat(x, many) for x in (self.stamp, self.reader, self.site)
        )
        parts = [np.repeat(part, many, axis=1) for part in self.displaced]
        for part in parts:
            part[0] = part[0] * many + np.arange(part.shape[1]) % many
        self.displaced = parts

    def record(self, granules: Ints, readers: Ints, stamps: Stamps, site: int) -> None:
        others = (self.stamp[granules] != 0) & (self.reader[granules] != readers)
        if others.any():
            old = granules[others]
            self._displace(old, self.stamp[old], self.reader[old], self.site[old])
        self.stamp[granules] = stamps
        self.reader[granules] = readers
        self.site[granules] = site
        others = self.reader[granules] != readers  # several threads read the same granule
        if others.any():
            old = granules[others]
            self._displace(old, stamps[others], readers[others], self.site[old])

    def _displace(self, granules: Ints, stamps: Stamps, readers: Ints, sites: Stamps) -> None:
        self.displaced.append(np.stack([granules, stamps, readers, sites]).astype(np.int32))
        self.count += len(granules)
        self.is_sorted = False
        if self.count > _LOG:
            self._sort()

    def _sort(self) -> None:
        """Sorts the log by granule, and keeps the latest read of each thread only."""
        if self.is_sorted:
            return
        log = np.concatenate(self.displaced, axis=1)
        log = log[:, np.lexsort((log[1], log[2], log[0]))]
        newer = (log[0, 1:] == log[0, :-1]) & (log[2, 1:] == log[2, :-1])
        log = log[:, np.append(~newer, True)]
        self.displaced, self.count, self.is_sorted = [log], 0, True

    def find(self, granules: Ints) -> tuple[Ints, NDArray[np.int32]]:
        """Returns all recorded reads of ``granules``: positions in the argument, and an array
        [3, reads] of stamps, readers and sites.
        """
        stamp = self.stamp[granules]
        which = np.flatnonzero(stamp)
        held = granules[which]
        last = np.stack([stamp[which], self.reader[held], self.site[held]])
        if not self.displaced:
            return which, last
        self._sort()
        (log,) = self.displaced
        first = np.searchsorted(log[0], granules, "left")
        counts = np.searchsorted(log[0], granules, "right") - first
        again = np.repeat(np.arange(len(granules)), counts)
        entry = np.arange(len(again)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        return np.concatenate([which, again]), np.concatenate([last, log[1:, entry]], axis=1)


class _Shadow:
    """History of one allocation. Its granules are as wide as the narrowest access so far."""

    def __init__(self, nbytes: int) -> None:
        count = -(-nbytes // _LINE)
        self.granule = _LINE
        self.stamp: Stamps = np.zeros(count, np.int32)  # 0: not written in this launch
        self.writer: Stamps = np.zeros(count, np.int32)
        self.site: Stamps = np.zeros(count, np.int32)
        # Reads of bulk copies in flight, and the site of the latest.
        self.flight: Stamps = np.zeros(count, np.int32)
        self.flight_site: Stamps = np.zeros(count, np.int32)
        self.weak, self.strong = _Reads(count), _Reads(count)

    def granules(self, at: Ints, width: int) -> tuple[Ints, int]:
        """Returns the granules of accesses of ``width`` bytes at the offsets ``at``, and how many
        there are for each access.
        """
        if width < self.granule:
            many = self.granule // width
            self.stamp, self.writer, self.site, self.flight, self.flight_site = (
                np.repeat(x, many)
                for x in (self.stamp, self.writer, self.site, self.flight, self.flight_site)
            )
            self.weak.refine(many)
            self.strong.refine(many)
            self.granule = width
        many = width // self.granule
        first = at // self.granule
        if many == 1:
            return first, 1
        return (first[:, None] + np.arange(many)).reshape(-1), many


@dataclass(slots=True)
class _Sites:
    """Semantics of the kernel's memory instructions, by site number."""

    known: dict[int, Ordering] = field(default_factory=dict)
    sizes: set[int] = field(default_factory=set)
    """Bytes of the elements of strong accesses."""
    scope: Stamps = field(default_factory=lambda: np.full(64, -1, np.int32))
    itemsize: Stamps = field(default_factory=lambda: np.zeros(64, np.int32))
    is_bulk: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))

    def find(self, site: int, instruction: Instruction) -> Ordering:
        found = self.known.get(site)
        if found is None:
            found = self.known[site] = ordering(instruction)
            self.sizes |= {found.itemsize} - {0}
            while site >= len(self.scope):
                self.scope = np.append(self.scope, np.full(len(self.scope), -1, np.int32))
                self.itemsize = np.append(self.itemsize, np.zeros(len(self.itemsize), np.int32))
                self.is_bulk = np.append(self.is_bulk, np.zeros(len(self.is_bulk), np.bool_))
            self.scope[site], self.is_bulk[site] = found.scope, found.is_bulk
            self.itemsize[site] = found.itemsize
        return found


class GlobalHistory:
    """Access history of global memory during one launch, by CTAs whose accesses to shared memory
    ``history`` follows. ``threads``: threads of a CTA.

    Accesses are arrays of equal length: ``at``, byte offsets in the allocation ``found``, and
    ``lanes``, the thread of each. ``site`` numbers the instruction. All checks raise Conflict.
    """

    def __init__(self, history: SharedHistory, threads: int) -> None:
        self._history, self._threads = history, threads
        self._shadows: dict[int, _Shadow] = {}
        self._sites = _Sites()
        self._acquired: list[list[_Acquired]] = [[] for _ in range(history.ctas)]
        self._learnt: set[tuple[int, int]] = set()
        # By address of a flag: its bytes, and what threads that acquire it learn.
        self._flags: dict[int, tuple[int, Snapshot]] = {}
        # By thread: what relaxed loads have seen and no fence has acquired yet; its latest fence.
        self._seen: dict[int, list[Snapshot]] = {}
        self._fenced: dict[int, Snapshot] = {}
        # By thread: time of its latest proxy fence, and what is ordered before that.
        self._proxy_stamp: Stamps = np.zeros(history.lanes, np.int32)
        self._proxy_fenced: dict[int, Snapshot] = {}

    # -- accesses ---------------------------------------------------------------------

    def read(
        self,
        found: Allocation,
        at: Ints,
        lanes: Ints,
        width: int,
        site: int,
        instruction: Instruction,
    ) -> None:
        """Checks and records reads of ``width`` bytes, also those of atomics. Reads of bulk copies
        are left to :meth:`begin_read`.
        """
        kind = self._sites.find(site, instruction)
        if kind.is_bulk:
            return
        shadow, granules, many, own = self._granules(found, at, lanes, width)
        self._check_writes(shadow, granules, many, own, kind)
        reads = shadow.strong if kind.scope >= GPU else shadow.weak
        reads.record(granules, own, self._history.stamps(own), site)
        if kind.scope >= GPU and self._flags:
            for address, lane in zip((at + found.base).tolist(), lanes.tolist(), strict=True):
                flag = self._flag(address, kind)
                if flag is None:
                    continue
                if kind.acquires:
                    self._acquire(lane, flag)
                    continue
                seen = self._seen.setdefault(lane, [])
                if not seen or seen[-1] is not flag:
                    seen.append(flag)

    def write(
        self,
        found: Allocation,
        at: Ints,
        lanes: Ints,
        width: int,
        site: int,
        instruction: Instruction,
        *,
        same: NDArray[np.bool_],
    ) -> None:
        """Checks and records writes of ``width`` bytes, also those of atomics. Writes of bulk
        copies are left to :meth:`begin_write`. ``same``: mask of writes that change no bit.
        """
        kind = self._sites.find(site, instruction)
        if kind.is_bulk:
            return
        shadow, granules, many, own = self._granules(found, at, lanes, width)
        self._check(shadow, granules, many, own, kind, site)
        shadow.writer[granules] = own
        twice = shadow.writer[granules] // self._threads != own // self._threads
        if kind.scope < GPU and twice.any():
            i = int(twice.argmax())
            other = int(shadow.writer[granules[i]])
            raise Conflict("race", i // many, self._byte(shadow, granules[i]), other, site, True)
        shadow.stamp[granules] = self._history.stamps(own)
        shadow.site[granules] = site
        if kind.scope >= GPU:
            changing = np.arange(len(at)) if kind.is_atomic else np.flatnonzero(~same)
            for i in changing.tolist():
                self._release(int(at[i]) + found.base, int(lanes[i]), kind)

    def begin_read(
        self,
        found: Allocation,
        at: Ints,
        lanes: Ints,
        width: int,
        site: int,
        instruction: Instruction,
    ) -> InFlight:
        """Starts reads of a bulk copy, which :meth:`end_read` ends."""
        kind = self._sites.find(site, instruction)
        shadow, granules, many, own = self._granules(found, at, lanes, width)
        self._check_writes(shadow, granules, many, own, kind)
        np.add.at(shadow.flight, granules, 1)
        shadow.flight_site[granules] = site
        return InFlight(found, at, width, site)

    def end_read(self, reads: InFlight, writers: Ints, stamps: Stamps) -> None:
        """Ends reads in flight. They count as accesses of ``writers`` with the times ``stamps``, as
        the copy's writes to shared memory do (:meth:`.race.SharedHistory.last_writes`).
        """
        shadow = self._shadow(reads.found)
        granules, many = shadow.granules(reads.at, reads.width)
        np.subtract.at(shadow.flight, granules, 1)
        shadow.weak.record(granules, np.repeat(writers, many), np.repeat(stamps, many), reads.site)

    def begin_write(
        self,
        found: Allocation,
        at: Ints,
        lanes: Ints,
        width: int,
        site: int,
        instruction: Instruction,
    ) -> InFlight:
        """Starts writes of a bulk copy, which :meth:`end_write` ends."""
        kind = self._sites.find(site, instruction)
        shadow, granules, many, own = self._granules(found, at, lanes, width)
        self._check(shadow, granules, many, own, kind, site)
        shadow.stamp[granules] = PENDING
        shadow.writer[granules] = own
        shadow.site[granules] = site
        return InFlight(found, at, width, site)

    def end_write(self, writes: InFlight, lane: int) -> None:
        """Ends writes in flight, for whose group ``lane`` has waited: they count as its own."""
        shadow = self._shadow(writes.found)
        granules, _ = shadow.granules(writes.at, writes.width)
        shadow.stamp[granules] = self._history.stamps(np.array([lane]))[0]

    # -- fences -------------------------------------------------------------------------

    def fence(self, lanes: Ints) -> None:
        """Records that ``lanes`` execute a memory fence at the scope of the GPU."""
        for lane in lanes.tolist():
            for flag in self._seen.pop(lane, ()):
                self._acquire(lane, flag)
            self._fenced[lane] = self._publish(lane)

    def fence_proxy(self, lanes: Ints) -> None:
        """Records that ``lanes`` execute fence.proxy.async of global memory."""
        for lane in lanes.tolist():
            self._proxy_fenced[lane] = known = self._publish(lane)
            cta, thread = divmod(lane, self._history.threads)
            self._proxy_stamp[lane] = known[cta][thread]

    # -- flags --------------------------------------------------------------------------

    def _publish(self, lane: int) -> Snapshot:
        """Records a release by ``lane``, and returns the snapshot that happens before it."""
        cta = lane // self._history.threads
        acquired, known = self._acquired[cta], Snapshot()
        if acquired:
            lanes = np.array([a.lane for a in acquired])
            stamps = np.array([a.stamp for a in acquired], np.int32)
            behind = self._history.ordered(lanes, stamps, np.full(len(lanes), lane))
            for i in np.flatnonzero(behind).tolist():
                known = _joined(known, acquired[i].snapshot)
        return _joined(known, {cta: self._history.publish(lane)})

    def _acquire(self, lane: int, flag: Snapshot) -> None:
        """Records an acquire by ``lane``, once for each snapshot ``flag``."""
        if (lane, id(flag)) in self._learnt:
            return
        self._learnt.add((lane, id(flag)))  # which stays alive in the record of the acquire
        stamp = int(self._history.stamps(np.array([lane]))[0])
        self._acquired[lane // self._history.threads].append(_Acquired(lane, stamp, flag))

    def _flag(self, address: int, kind: Ordering) -> Snapshot | None:
        """Returns the snapshot of the flag at ``address``; None if there is none, or if its size is
        not that of an access of semantics ``kind``.
        """
        itemsize, snapshot = self._flags.get(address, (0, None))
        return snapshot if itemsize == kind.itemsize else None

    def _release(self, address: int, lane: int, kind: Ordering) -> None:
        """Updates the snapshot of the flag at ``address`` for a write by ``lane``."""
        released = self._publish(lane) if kind.releases else self._fenced.get(lane)
        before = self._flag(address, kind) if kind.is_atomic else None
        if released is not None and before is not None:
            self._flags[address] = kind.itemsize, _joined(before, released)
        elif released is not None:
            self._flags[address] = kind.itemsize, released
        elif before is None:
            self._flags.pop(address, None)

    # -- checks -------------------------------------------------------------------------

    def _shadow(self, found: Allocation) -> _Shadow:
        shadow = self._shadows.get(found.base)
        if shadow is None:
            shadow = self._shadows[found.base] = _Shadow(len(found.data))
        return shadow

    def _granules(
        self, found: Allocation, at: Ints, lanes: Ints, width: int
    ) -> tuple[_Shadow, Ints, int, Ints]:
        """Returns the history of an allocation, the granules of accesses of ``width`` bytes, how
        many there are for each access, and the thread of each granule.
        """
        shadow = self._shadow(found)
        granules, many = shadow.granules(at, width)
        return shadow, granules, many, lanes if many == 1 else np.repeat(lanes, many)

    def _byte(self, shadow: _Shadow, granule: int) -> int:
        """Returns the offset of a granule's first byte in its allocation."""
        return int(granule) * shadow.granule

    def _ordered(self, writers: Ints, stamps: Stamps, lanes: Ints) -> NDArray[np.bool_]:
        """Returns the mask of accesses of ``writers`` at times ``stamps`` that happened before all
        that ``lanes`` do from now on.
        """
        homes, ctas = self._history.homes(writers), lanes // self._history.threads
        fine: NDArray[np.bool_] = homes == ctas
        fine[fine] = self._history.ordered(writers[fine], stamps[fine], lanes[fine])
        for cta in np.unique(ctas[~fine]).tolist():
            for acquired in reversed(self._acquired[cta]):
                left = np.flatnonzero(~fine & (ctas == cta))
                if not len(left):
                    break
                left = left[
                    self._covers(acquired.snapshot, homes[left], writers[left], stamps[left])
                ]
                if len(left):
                    lane, stamp = np.full(len(left), acquired.lane), np.int32(acquired.stamp)
                    fine[left] = self._history.ordered(lane, np.full(len(left), stamp), lanes[left])
        return fine

    def _covers(
        self, snapshot: Snapshot, homes: Ints, writers: Ints, stamps: Stamps
    ) -> NDArray[np.bool_]:
        """Returns the mask of accesses of ``writers``, in the CTAs (or clusters) ``homes``, at
        times ``stamps`` that ``snapshot`` knows of.
        """
        fine = np.zeros(len(writers), np.bool_)
        for home in np.unique(homes).tolist():
            if home in snapshot:
                part = homes == home
                fine[part] = self._history.covers(snapshot[home], writers[part], stamps[part])
        return fine

    def _is_strong(
        self, kind: Ordering, sites: Stamps, writers: Ints, lanes: Ints
    ) -> NDArray[np.bool_]:
        """Returns the mask of accesses at ``sites`` by ``writers`` that are morally strong with one
        of semantics ``kind`` by ``lanes``: both are strong, each is in the other's scope, and they
        overlap completely, as elements of one size do.
        """
        narrower = np.minimum(self._sites.scope[sites], kind.scope)
        apart = np.where(writers // self._threads == lanes // self._threads, 0, 1)
        apart[self._history.homes(writers) != lanes // self._history.threads] = GPU
        strong: NDArray[np.bool_] = narrower >= apart
        strong &= self._sites.itemsize[sites] == kind.itemsize
        return strong

    def _check_writes(
        self,
        shadow: _Shadow,
        granules: Ints,
        many: int,
        lanes: Ints,
        kind: Ordering,
        site: int = 0,
    ) -> None:
        """Raises Conflict unless the last write of each granule happened before an access of it by
        ``lanes``, and where its proxy is another, behind a proxy fence.

        ``site``: number of a storing instruction; threads of a CTA may all execute it with the same
        address, and store the same value.
        """
        stamps = shadow.stamp[granules]
        which = np.flatnonzero(stamps)
        if not len(which):
            return
        stamps, held, lanes = stamps[which], granules[which], lanes[which]
        writers, sites = shadow.writer[held].astype(np.int64), shadow.site[held]

        def refuse(bad: NDArray[np.bool_], why: Kind) -> None:
            i = int(bad.argmax())
            raise Conflict(
                why,
                int(which[i]) // many,
                self._byte(shadow, held[i]),
                int(writers[i]),
                int(sites[i]),
                True,
            )

        pending = stamps == PENDING
        if pending.any():
            refuse(pending, "pending")
        fine = (sites == site) & (writers // self._threads == lanes // self._threads)
        fine |= self._is_strong(kind, sites, writers, lanes)
        rest = np.flatnonzero(~fine)
        fine[rest] = self._ordered(writers[rest], stamps[rest], lanes[rest])
        if not fine.all():
            refuse(~fine, "race")
        if kind.is_noncoherent:
            refuse(stamps != 0, "noncoherent")
        if kind.is_bulk:
            fine = self._sites.is_bulk[sites] | (stamps <= self._proxy_stamp[writers])
            for lane in np.unique(lanes[~fine]).tolist():
                part = np.flatnonzero((lanes == lane) & ~fine)
                homes = self._history.homes(writers[part])
                known = self._proxy_fenced.get(lane, {})
                fine[part] = self._covers(known, homes, writers[part], stamps[part])
            if not fine.all():
                refuse(~fine, "unfenced")

    def _check(
        self,
        shadow: _Shadow,
        granules: Ints,
        many: int,
        lanes: Ints,
        kind: Ordering,
        site: int,
    ) -> None:
        """Raises Conflict unless all accesses of the granules happened before a write of ``lanes``
        at instruction ``site``.
        """
        self._check_writes(shadow, granules, many, lanes, kind, site)
        busy = shadow.flight[granules] != 0
        if busy.any():
            i = int(busy.argmax())
            site = int(shadow.flight_site[granules[i]])
            raise Conflict("race", i // many, self._byte(shadow, granules[i]), None, site)
        # Strong reads are morally strong with a strong write if all elements have one size.
        all_strong = kind.scope >= GPU and len(self._sites.sizes) == 1
        for reads in (shadow.weak,) if all_strong else (shadow.weak, shadow.strong):
            which, (stamps, readers, sites) = reads.find(granules)
            writers = readers.astype(np.int64)
            fine = self._is_strong(kind, sites, writers, lanes[which])
            rest = np.flatnonzero(~fine)
            fine[rest] = self._ordered(writers[rest], stamps[rest], lanes[which[rest]])
            if not fine.all():
                i = int(np.flatnonzero(~fine)[0])
                granule = granules[which[i]]
                raise Conflict(
                    "race",
                    int(which[i]) // many,
                    self._byte(shadow, granule),
                    int(writers[i]),
                    int(sites[i]),
                )


def _joined(one: Snapshot, other: Snapshot) -> Snapshot:
    """Returns the element-wise maximum of two snapshots."""
    result = dict(one)
    for cta, known in other.items():
        old = result.get(cta)
        if old is None:
            result[cta] = known
        elif len(old) <= len(known):
            result[cta] = known.copy()
            np.maximum(old, known[: len(old)], out=result[cta][: len(old)])
        else:
            result[cta] = old.copy()
            np.maximum(known, old[: len(known)], out=result[cta][: len(known)])
    return result
