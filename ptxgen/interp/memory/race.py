"""Race detection and initialisation checks for the shared memory of all CTAs of a wave.

Two accesses race if they touch the same bytes, one of them is a write, and nothing orders them.
Order is tracked with vector clocks, as in FastTrack (Flanagan and Freund, PLDI 2009), with one
global time instead of one counter per thread:

- Every release (a barrier, an arrival) takes the next value of the time. The vector clock of a
  thread has, for every other thread, the time of its latest release that this thread has acquired.
  An access is stamped with its warp's clock: the time of the latest release by any of its lanes,
  plus one. It is ordered before all later accesses of thread v if v's vector clock has a release of
  the accessing thread at or after the stamp.
- A barrier of the whole CTA raises the CTA's *floor*: every access stamped at or below it is
  ordered before everything from now on. Kernels without other synchronisation have no vector
  clocks.
- Threads with equal vector clocks share one, so that synchronising full warps costs a row per warp.

The shadow of a granule (the smallest access of the kernel) is its last write: stamp, thread,
instruction. That is enough: earlier writes are ordered before it, or a conflict would have been
raised. Reads are recorded per access width, so that a 16-byte read costs one entry and not four:
the latest stamp per (piece of that width, warp), and a log, from which lanes are computed only when
stamps do not decide.

The result is exact: a conflict is raised if and only if the accesses recorded up to then contain
one. Only the description of the other access loses some detail, see :class:`Conflict`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.interp.text.ptx import WARP

Ints = NDArray[np.int64]
Stamps = NDArray[np.int32]
Masks = NDArray[np.uint32]
Kind = Literal["race", "pending", "uninitialised", "unfenced", "noncoherent"]

_NEVER = 0  # the stamp of a granule that nothing has written
START = 1  # the stamp of initialised data, and the first floor
_ENGINE = 2**30  # added to the stamps of the copy engine's writes, so that no floor reaches them
PENDING = 2**31 - 1  # the stamp of a granule that an asynchronous copy in flight will write
_MORE_OBJECTS = 32  # least number of columns that are added to vector clocks, one per object
_LOG = 1 << 21  # logged reads from which the log is merged, to bound memory
_OLDER = 1024  # entries of older reads from which they are compacted, to bound memory
_ROW: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.int32),
    2: np.dtype(np.int64),
    4: np.dtype(np.complex128),
}
"""Maps n to a NumPy dtype as wide as n int32, for copying a row of n entries of the race check's
shadow arrays as one element, which is faster.
"""


class Conflict(Exception):  # noqa: N818 - what it is
    """Two conflicting accesses, described from the later one.

    ``kind``: ``"race"`` (nothing orders it after another access), ``"pending"`` (an asynchronous
    copy to these bytes has not been waited for), ``"uninitialised"`` (a read of bytes never
    written), ``"unfenced"`` (a read of the async proxy after an ordinary write, without a proxy
    fence), ``"noncoherent"`` (a non-coherent load of global memory that the launch writes).
    ``index``: position of the first offending access in the arrays passed; ``at``: its
    first offending byte. The other access: ``other_lane`` (None if there is none or it was the copy
    engine), ``other_site``, ``other_is_write``.

    Nothing of the refused access has been recorded, except if two of its own lanes conflict. If
    several lanes of a warp have read the bytes, ``other_lane`` is one that conflicts,
    ``other_site`` the warp's last read of them. Of several conflicts, the one with the lowest
    ``index`` is raised; at equal index, one with a write.
    """

    def __init__(
        self,
        kind: Kind,
        index: int,
        at: int,
        other_lane: int | None = None,
        other_site: int | None = None,
        other_is_write: bool = False,
    ) -> None:
        super().__init__(f"{kind} at byte {at} (element {index})")
        self.kind, self.index, self.at = kind, index, at
        self.other_lane, self.other_site = other_lane, other_site
        self.other_is_write = other_is_write

    def precedes(self, other: Conflict) -> bool:
        """Whether this conflict is raised rather than ``other``: it has the lower ``index``, else
        is with a write, else has the lower ``at``.
        """
        if self.index != other.index or self.other_is_write != other.other_is_write:
            return (self.index, not self.other_is_write) < (other.index, not other.other_is_write)
        return self.at < other.at


@dataclass(slots=True, eq=False)
class Copy:
    """Asynchronous copy in flight, of ``width`` bytes to each shared offset in ``at``, issued by
    the thread in ``lanes`` at instruction ``site``; :meth:`SharedHistory.complete` ends it.
    """

    at: Ints
    lanes: Ints
    width: int
    site: int
    vectors: Stamps | None = None
    """Vector clocks of the distinct issuing threads at the issue, a row each, if the copy completes
    on a synchronisation object; None if its issuing threads wait for it.
    """
    issuer: Ints | None = None
    """Index of the row in ``vectors`` of the thread that issued each element; None if ``vectors``
    is None.
    """


@dataclass(slots=True, eq=False)
class _Log:
    """Log of reads of one width, all made while no warp's clock changed.

    ``clocks`` and ``aligned``: by warp, the clock, and the clock at the last synchronisation of the
    whole warp; ``newest``: the greatest clock. ``keys`` (see :class:`_Reads`), ``lanes`` and
    ``sites`` have an entry for each recorded execution: two arrays with an element per access, and
    the instruction's number.
    """

    clocks: Stamps
    aligned: Stamps
    newest: int
    keys: list[Ints] = field(default_factory=list)
    lanes: list[Ints] = field(default_factory=list)
    sites: list[int] = field(default_factory=list)


class _Reads:
    """Recorded reads of ``width`` bytes each, from ``ctas`` CTAs of ``warps`` warps with ``nbytes``
    bytes of shared memory. The memory is divided in pieces of ``width`` bytes; the reads of a piece
    by a warp have the key ``piece * warps + warp``, where ``warp`` counts within the CTA.
    """

    def __init__(self, width: int, nbytes: int, ctas: int, warps: int) -> None:
        self.width, self.warps = width, warps
        self.keys_per_cta = nbytes // width * warps
        self.count = ctas * self.keys_per_cta
        self.latest: Stamps = np.zeros(self.count, np.int32)
        self.newest = 0
        self.log: list[_Log] = []
        self.logged = 0
        self.rows: dict[int, Stamps] = {}
        # From merged logs: the lanes that read at ``clock``, and their instruction.
        self.clock: Stamps | None = None
        self.mask: Masks = np.zeros(0, np.uint32)
        self.site: Stamps = np.zeros(0, np.int32)
        # Older reads by lanes that have not read since, and that need not have happened
        # before the newer ones: columns key, clock, mask, site, in the order of keys.
        self.older: Ints = np.zeros((4, 0), np.int64)
        self.compacted = 0

    def record(self, key: Ints, lanes: Ints, stamps: Stamps | int, log: _Log, site: int) -> None:
        self.latest[key] = stamps
        self.newest = log.newest
        if not self.log or self.log[-1] is not log:
            self.log.append(log)
        log.keys.append(key)
        log.lanes.append(lanes)
        log.sites.append(site)
        self.logged += len(key)

    def forget(self, floor: int) -> None:
        """Drops logged reads that cannot conflict any more. ``floor``: the earliest of the times of
        the CTAs' latest barriers; reads with stamps (times) up to it are ordered before everything
        from now on.
        """
        while self.log and self.log[0].newest <= floor:
            self.logged -= sum(map(len, self.log.pop(0).keys))

    def merge_log(self, floor: Stamps) -> None:
        """Processes the logged reads, and empties the log: for each piece and warp, stores the
        stamp of the newest reads, the lanes that made them, and their instruction. Older reads by
        other lanes are kept as long as they can conflict.

        ``floor``: time of each CTA's latest barrier; reads with stamps up to it cannot conflict.
        """
        if self.clock is None:
            self.clock = np.zeros(self.count, np.int32)
            self.mask = np.zeros(self.count, np.uint32)
            self.site = np.zeros(self.count, np.int32)
        self.forget(int(floor.min()))
        for log in self.log:
            key = np.concatenate(log.keys)
            lane = np.concatenate(log.lanes)
            warp = lane >> 5
            stamp = log.clocks[warp]
            bit = np.left_shift(np.uint32(1), (lane & 31).astype(np.uint32))
            old = self.clock[key]
            newer = old < stamp
            # Reads before a sync of the whole warp are ordered before all its later accesses.
            doubtful = newer & (old > log.aligned[warp])
            which = np.flatnonzero(doubtful) if doubtful.any() else None
            if which is not None:
                which = which[np.unique(key[which], return_index=True)[1]]
                lost = np.stack(
                    [key[which], old[which], self.mask[key[which]], self.site[key[which]]]
                ).astype(np.int64)
            self.mask[key[newer]] = 0
            self.clock[key] = stamp
            np.bitwise_or.at(self.mask, key, bit)
            self.site[key] = np.repeat(log.sites, list(map(len, log.keys)))
            if which is not None:
                lost[2] &= ~self.mask[lost[0]].astype(np.int64)
                self._keep(lost[:, lost[2] != 0], floor)
        # The last one may still grow; it starts again without the merged entries.
        for log in self.log:
            log.keys, log.lanes, log.sites = [], [], []
        self.log, self.logged = [], 0

    def _keep(self, lost: Ints, floor: Stamps) -> None:
        older = np.concatenate([self.older, lost], axis=1)
        older = older[:, np.argsort(older[0], kind="stable")]
        if older.shape[1] > 2 * self.compacted + _OLDER:
            # Per key and lane, only the latest counts, and nothing at or below the floor.
            older = older[:, older[1] > floor[older[0] // self.keys_per_cta]]
            entry, lane = np.nonzero(older[2][:, None] >> np.arange(WARP) & 1)
            parts = older[:, entry]
            order = np.lexsort((parts[1], lane, parts[0]))
            name = (parts[0] * WARP + lane)[order]
            last = order[np.append(name[1:] != name[:-1], True)[: len(name)]]
            parts[2] = 1 << lane
            older = parts[:, last]
            self.compacted = older.shape[1]
        self.older = older

    def pieces(self, at: Ints, width: int) -> Stamps:
        """Returns the stamps (times) of the latest reads of the pieces that each access of
        ``width`` bytes at the offsets ``at`` touches.

        The shape is ``[accesses, pieces, warps]``: an access touches one or several pieces of
        ``self.width`` bytes, and each warp of the CTA may have read each of them. 0: no read.
        """
        many = max(width // self.width, 1)
        rows = self.rows.get(many)
        if rows is None:
            rows = self.rows[many] = self.latest.reshape(-1, many * self.warps)
        return rows.take(at // max(width, self.width), axis=0).reshape(-1, many, self.warps)


class SharedHistory:
    """Access history of the shared memory of ``ctas`` CTAs of ``threads`` threads each.

    ``nbytes``: shared bytes of each CTA, a multiple of 16. ``granule``: the smallest access of the
    kernel in bytes. Accesses are arrays of equal length, which callers must not change afterwards:
    ``at``, byte offsets ``CTA * nbytes + offset`` (in bounds and aligned), and ``lanes``, thread
    indices ``CTA * threads + thread``.

    A cluster is passed as one CTA with the threads and bytes of all its CTAs; then :meth:`barrier`
    is the cluster's barrier, and a barrier of one CTA is a :meth:`sync`.
    """

    def __init__(self, ctas: int, threads: int, nbytes: int, granule: int) -> None:
        if threads % WARP or threads <= 0:
            raise ValueError(f"threads={threads}: expected a multiple of {WARP}")
        if nbytes % 16 or granule not in (1, 2, 4, 8, 16):
            raise ValueError(
                f"nbytes={nbytes}, granule={granule}: expected a multiple of 16; 1, 2, 4, 8 or 16"
            )
        self.ctas, self.threads, self.nbytes, self.granule = ctas, threads, nbytes, granule
        self.lanes, self.warps = ctas * threads, threads // WARP
        granules = ctas * nbytes // granule
        self._stamp: Stamps = np.zeros(granules, np.int32)
        self._writer: Stamps = np.zeros(granules, np.int32)
        self._site: Stamps = np.zeros(granules, np.int32)
        self._views: dict[int, tuple[NDArray[Any], ...]] = {}
        self._reads: dict[int, _Reads] = {}
        self._logs: dict[int, _Log] = {}
        self._known_lanes: tuple[Ints, Ints] | None = None

        self._time = START + 1
        self._floor: Stamps = np.full(ctas, START, np.int32)
        self._low = START  # the lowest floor
        # Per warp. Replaced, never changed: the logs of reads refer to them.
        self._clocks: Stamps = np.full(ctas * self.warps, self._time, np.int32)
        self._aligned: Stamps = np.full(ctas * self.warps, START, np.int32)
        self._clock: int | None = self._time  # if all warps' are equal

        # Vector clocks: a column per thread, then one per object for writes of its copies.
        self._vectors: Stamps | None = None
        self._least: Stamps = np.zeros((0, 0), np.int32)  # minimum of each row and warp
        self._row: Ints = np.zeros(0, np.int64)  # of each thread
        self._users: Ints = np.zeros(0, np.int64)  # of each row
        self._objects: Stamps = np.zeros((0, 0), np.int32)
        self._columns = threads
        self._engine = False  # whether anything has a stamp of the copy engine
        self._object_counts: list[int] = [0] * ctas
        self._column: Ints = np.arange(self.lanes, dtype=np.int64) % threads  # of each writer
        self._home: Ints = np.arange(self.lanes, dtype=np.int64) // threads  # of each writer

    # -- accesses ---------------------------------------------------------------------

    def fill(self, at: int, nbytes: int) -> None:
        """Marks ``nbytes`` bytes from byte offset ``at`` on as initialised before the kernel
        starts, so that reads of them are neither races nor uninitialised.
        """
        self._stamp[at // self.granule : -(-(at + nbytes) // self.granule)] = START

    def read(self, at: Ints, lanes: Ints, width: int, site: int) -> None:
        """Checks and records reads of ``width`` bytes at each offset in ``at`` by the thread in
        ``lanes``. ``site``: number of the instruction. Raises Conflict.
        """
        stamp = self._view(width)[0].take(at // width, axis=0)
        if stamp.max(initial=START) > self._low or not stamp.all():
            self._check_writes(stamp, at, lanes, width, reading=True)
        reads = self._reads.get(width)
        if reads is None:
            reads = self._reads[width] = _Reads(width, self.nbytes, self.ctas, self.warps)
        log = self._logs.get(width)
        if log is None:
            newest = int(self._clocks.max())
            log = self._logs[width] = _Log(self._clocks, self._aligned, newest)
        known = self._known_lanes
        if known is None or known[0] is not lanes:
            known = self._known_lanes = (lanes, (lanes >> 5) % self.warps)
        key = at // width
        key *= self.warps
        key += known[1]
        stamps = self._clock if self._clock is not None else self._clocks[lanes >> 5]
        reads.record(key, lanes, stamps, log, site)
        if reads.logged > _LOG:
            reads.merge_log(self._floor)

    def write(self, at: Ints, lanes: Ints, width: int, site: int) -> None:
        """Checks and records writes of ``width`` bytes at each offset in ``at`` by the thread in
        ``lanes``. ``site``: number of the instruction. Raises Conflict.

        Conflicts with earlier accesses are reported before those between two lanes of this write;
        of these, ``index`` is the first lane's, ``other_lane`` the last.
        """
        self._check(at, lanes, width)
        stamps = self._clock if self._clock is not None else self._clocks[lanes >> 5]
        self._record_writes(at, lanes, width, site, stamps)

    def issue(self, at: Ints, lanes: Ints, width: int, site: int, *, engine: bool = False) -> Copy:
        """Starts an asynchronous copy of ``width`` bytes to each of ``at``, checked like a write by
        instruction ``site``. Raises Conflict.

        Until :meth:`complete`, every access to these bytes is a conflict. ``engine``: the copy
        completes on an object (an mbarrier), not when the issuing thread waits.
        """
        self._check(at, lanes, width)
        self._record_writes(at, lanes, width, site, PENDING)
        copy = Copy(at, lanes, width, site)
        if engine:
            vectors = self._vector_table()
            unique, copy.issuer = np.unique(lanes, return_inverse=True)
            copy.vectors = vectors[self._row[unique]]
            copy.vectors[np.arange(len(unique)), unique % self.threads] = self._time
            self._advance(unique >> 5)
        return copy

    def complete(self, copy: Copy, handles: ArrayLike | None = None) -> None:
        """Completes ``copy``: accesses that are ordered after its completion are no conflicts any
        more.

        Without ``handles``, the issuing threads have waited for it: it counts as their write, now.
        With ``handles``, for copies that were issued with ``engine``, it counts as a write of the
        copy engine. ``handles`` are the synchronisation objects that the elements signal (one for
        each element, or one for all): a thread that acquires such an object sees that write, and
        all accesses of the issuing thread before the issue, but no other copy's.
        """
        at, lanes, width = copy.at, copy.lanes, copy.width
        if (copy.vectors is None) != (handles is None):
            raise ValueError("engine copies complete on objects, and only they do")
        if copy.vectors is None or copy.issuer is None:
            stamps = self._clock if self._clock is not None else self._clocks[lanes >> 5]
            self._scatter(0, at, width, stamps)
            return
        objects = np.broadcast_to(np.asarray(handles, np.int64), at.shape)
        self._scatter(0, at, width, _ENGINE + self._time)
        self._scatter(1, at, width, (objects + self.lanes).astype(np.int32))
        pairs = np.unique(objects * len(copy.vectors) + copy.issuer)
        self._join_objects(pairs // len(copy.vectors), copy.vectors[pairs % len(copy.vectors)])
        self._objects[objects, self._column[self.lanes + objects]] = _ENGINE + self._time
        self._time += 1
        self._engine = True

    def split(self, copy: Copy, part: NDArray[Any]) -> tuple[Copy, Copy]:
        """Splits a pending copy in two: the elements in the mask ``part``, and the others."""
        first, second = (
            Copy(
                copy.at[mask],
                copy.lanes[mask],
                copy.width,
                copy.site,
                copy.vectors,
                None if copy.issuer is None else copy.issuer[mask],
            )
            for mask in (part, ~part)
        )
        return first, second

    # -- synchronisation --------------------------------------------------------------

    def barrier(self, ctas: Ints) -> None:
        """Records a barrier of all threads of each CTA in ``ctas``, which are distinct."""
        everywhere = len(ctas) == self.ctas
        if self._engine:  # floors do not order its writes
            self._join_groups(ctas[:, None] * self.threads + np.arange(self.threads))
        if everywhere:
            self._floor[:] = self._time
            self._aligned = np.full(len(self._aligned), self._time, np.int32)
            self._time += 1
            self._clocks = np.full(len(self._clocks), self._time, np.int32)
            self._clock = self._time
            self._logs.clear()
        else:
            warps = (ctas[:, None] * self.warps + np.arange(self.warps)).ravel()
            self._floor[ctas] = self._time
            self._aligned = self._aligned.copy()
            self._aligned[warps] = self._time
            self._advance(warps)
        self._low = int(self._floor.min())
        for reads in self._reads.values():
            reads.forget(self._low)

    def sync(self, groups: Ints) -> None:
        """Records a barrier among the threads of each row of ``groups``.

        A row has distinct threads of one CTA; no thread is in two rows.
        """
        size = groups.shape[1]
        if not len(groups) or size < 2:
            return
        if size == self.threads:
            self.barrier(groups[:, 0] // self.threads)
            return
        whole = self._join_groups(groups)
        if whole is not None:
            self._aligned = self._aligned.copy()
            self._aligned[whole] = self._time
        self._advance(groups.ravel() >> 5)

    def _join_groups(self, groups: Ints) -> Ints | None:
        """Gives all threads in a row of ``groups`` the maximum of their vector clocks, as a barrier
        among them does. Returns the indices of the warps if each row consists of whole warps, else
        None.
        """
        vectors = self._vector_table()
        size = groups.shape[1]
        rows = self._row[groups]
        target = rows[:, 0]
        same = bool((rows == target[:, None]).all() and (self._users[target] == size).all())
        if not same:
            joined = vectors[target]
            for column in np.flatnonzero((rows[:, 1:] != rows[:, :-1]).any(axis=0)) + 1:
                np.maximum(joined, vectors[rows[:, column]], out=joined)
            target = self._unused_rows(len(groups))
            vectors[target] = joined
            self._assign(groups.ravel(), np.repeat(target, size))
        vectors[target[:, None], groups % self.threads] = self._time
        whole: Ints | None = None
        if size % WARP == 0:
            split = groups.reshape(-1, WARP)
            if (split == (split[:, :1] & -WARP) + np.arange(WARP)).all():
                whole = split[:, 0] >> 5
        if same and whole is not None:
            self._least[np.repeat(target, size // WARP), whole % self.warps] = self._time
        else:
            self._least[target] = self._minima(target)
        return whole

    def new_object(self, cta: int) -> int:
        """Returns the handle of a new synchronisation object of ``cta``, such as an mbarrier.

        Releases into an object accumulate. If threads may wait for one phase while others arrive at
        the next, use two objects: one for arrivals, and one for waits, into which the first is
        merged (:meth:`merge`) when the phase completes.
        """
        if self._vectors is None:
            self._columns += _MORE_OBJECTS
        vectors = self._vector_table()
        handle = len(self._column) - self.lanes
        column = self.threads + self._object_counts[cta]
        self._object_counts[cta] += 1
        self._column = np.append(self._column, column)
        self._home = np.append(self._home, cta)
        if column >= self._columns:
            more = max(_MORE_OBJECTS, self._columns - self.threads)
            self._columns += more
            self._vectors = np.pad(vectors, ((0, 0), (0, more)))
            self._objects = np.pad(self._objects, ((0, 0), (0, more)))
        if handle >= len(self._objects):
            more = max(8, len(self._objects))
            self._objects = np.pad(self._objects, ((0, more), (0, 0)))
        return handle

    def release(self, lanes: Ints, handles: ArrayLike) -> None:
        """Records a release: joins the vector clock of each of ``lanes`` into the object of its
        handle.
        """
        if not len(lanes):
            return
        vectors = self._vector_table()
        objects = np.asarray(handles, np.int64)
        pairs = np.unique(objects * len(vectors) + self._row[lanes])
        self._join_objects(pairs // len(vectors), vectors[pairs % len(vectors)])
        self._objects[objects, lanes % self.threads] = self._time
        self._advance(lanes >> 5)

    def acquire(self, lanes: Ints, handles: ArrayLike) -> None:
        """Records that each of ``lanes`` (distinct) acquires the synchronisation object of its
        handle: all that was released into the object is ordered before the lane's later accesses.
        """
        if not len(lanes):
            return
        vectors = self._vector_table()
        count = len(self._column)
        each = self._row[lanes] * count + np.asarray(handles, np.int64)
        if (each == each[0]).all():  # the most frequent case, and cheap to detect
            pairs, which, users = each[:1], np.zeros(len(each), np.int64), np.array([len(each)])
        else:
            pairs, which, users = np.unique(each, return_inverse=True, return_counts=True)
        source = pairs // count
        learnt = self._objects[pairs % count]
        new = (learnt > vectors[source]).any(axis=1)
        if not new.any():
            return
        np.maximum(learnt, vectors[source], out=learnt)
        target = source.copy()
        moves = new & (self._users[source] != users)
        target[moves] = self._unused_rows(int(moves.sum()))
        vectors[target[new]] = learnt[new]
        self._least[target[new]] = self._minima(target[new])
        moving = moves[which]
        self._assign(lanes[moving], target[which[moving]])

    def merge(self, source: int, target: int) -> None:
        """Joins the vector clock of object ``source`` into that of object ``target``."""
        np.maximum(self._objects[target], self._objects[source], out=self._objects[target])

    # -- order of accesses to other memory ----------------------------------------------

    def stamps(self, lanes: Ints) -> Stamps:
        """Returns the time with which an access of each of ``lanes`` is stamped now."""
        found: Stamps = self._clocks[lanes >> 5]
        return found

    def last_writes(self, at: Ints) -> tuple[Ints, Stamps]:
        """Returns the writer and the stamp of the last write of the bytes at offsets ``at``.

        A writer is a thread index or, for a copy that completes on a synchronisation object, the
        object's handle plus :attr:`lanes`.
        """
        return self._writer[at // self.granule].astype(np.int64), self._stamp[at // self.granule]

    def homes(self, writers: Ints) -> Ints:
        """Returns the index of the CTA (with clusters: of the cluster) of each writer."""
        return self._home[writers]

    def ordered(self, writers: Ints, stamps: Stamps, lanes: Ints) -> NDArray[np.bool_]:
        """Returns the mask of accesses that happened before all that ``lanes`` do from now on.

        ``writers`` (as :meth:`last_writes` returns them) made the accesses, of the same CTA as the
        lanes, with the times ``stamps``.
        """
        fine: NDArray[np.bool_] = stamps <= self._floor[lanes // self.threads]
        fine |= (writers == lanes) & (stamps != PENDING)
        if self._vectors is not None:
            fine |= stamps <= self._vectors[self._row[lanes], self._column[writers]]
        return fine

    def publish(self, lane: int) -> Stamps:
        """Records a release of ``lane``, and returns its vector clock: for each column, the time up
        to which accesses of that thread or object are ordered before the release.
        """
        known = np.full(self._columns, self._floor[lane // self.threads], np.int32)
        if self._vectors is not None:
            np.maximum(known, self._vectors[self._row[lane]], out=known)
        known[lane % self.threads] = self._time
        self._advance(np.array([lane >> 5]))
        return known

    def covers(self, known: Stamps, writers: Ints, stamps: Stamps) -> NDArray[np.bool_]:
        """Returns the mask of accesses, given as in :meth:`ordered`, that happened before the
        release of their CTA whose vector clock ``known`` :meth:`publish` returned.
        """
        column = self._column[writers]
        fine: NDArray[np.bool_] = column < len(known)  # objects may be newer than the release
        fine[fine] = stamps[fine] <= known[column[fine]]
        return fine

    # -- inside -----------------------------------------------------------------------

    def _advance(self, warps: Ints) -> None:
        """Advances the clock of ``warps`` (indices in the wave), so that the release just recorded
        does not cover their later accesses.
        """
        self._time += 1
        self._clocks = self._clocks.copy()
        self._clocks[warps] = self._time
        same = (self._clocks == self._time).all()
        self._clock = self._time if same else None
        self._logs.clear()

    def _vector_table(self) -> Stamps:
        if self._vectors is None:
            # Row 0 is all zeros. One row per thread may be in use, and as many be requested.
            rows = 2 * self.lanes + 1
            self._vectors = np.zeros((rows, self._columns), np.int32)
            self._least = np.zeros((rows, self.warps), np.int32)
            self._row = np.zeros(self.lanes, np.int64)
            self._users = np.zeros(rows, np.int64)
            self._users[0] = self.lanes + 1
            self._objects = np.zeros((0, self._columns), np.int32)
        return self._vectors

    def _unused_rows(self, count: int) -> Ints:
        """Returns ``count`` rows of the vector-clock table that no thread uses."""
        return np.flatnonzero(self._users == 0)[:count]

    def _assign(self, lanes: Ints, rows: Ints) -> None:
        size = len(self._users)
        self._users -= np.bincount(self._row[lanes], minlength=size)
        self._users += np.bincount(rows, minlength=size)
        self._row[lanes] = rows

    def _minima(self, rows: Ints) -> Stamps:
        assert self._vectors is not None
        own = self._vectors[rows, : self.threads]
        least: Stamps = own.reshape(-1, self.warps, WARP).min(axis=2)
        return least

    def _join_objects(self, handles: Ints, rows: Stamps) -> None:
        """Joins each vector clock ``rows[i]`` into synchronisation object ``handles[i]``;
        ``handles`` are sorted, and may repeat.
        """
        starts = np.flatnonzero(np.append(True, handles[1:] != handles[:-1]))
        joined = np.maximum.reduceat(rows, starts, axis=0)
        which = handles[starts]
        known = self._objects[which]
        np.maximum(known[:, : rows.shape[1]], joined, out=known[:, : rows.shape[1]])
        self._objects[which] = known

    def _view(self, width: int) -> tuple[NDArray[Any], ...]:
        """Returns six views of the shadow, the arrays with an int32 for each granule of shared
        memory: stamp (time), writer and site of the last write as ``[rows, granules]``, with a row
        for each ``width`` bytes; then the same three with each row as one element.
        """
        found = self._views.get(width)
        if found is None:
            many = width // self.granule
            kind: np.dtype[Any] = _ROW.get(many) or np.dtype((np.void, 4 * many))
            flat = (self._stamp, self._writer, self._site)
            found = tuple(x.reshape(-1, many) for x in flat) + tuple(x.view(kind) for x in flat)
            self._views[width] = found
        return found

    def _scatter(self, what: int, at: Ints, width: int, values: Stamps | int) -> None:
        """Writes ``values`` to the shadow of ``width`` bytes at each offset in ``at``: to the times
        of the last writes if ``what`` is 0, to their lanes if 1, to their instructions if 2.
        """
        many = width // self.granule
        pieces: NDArray[Any] = self._view(width)[3 + what]
        row = np.repeat(np.asarray(values, np.int32), many)
        kind: np.dtype[Any] = pieces.dtype
        pieces[at // width] = row.view(kind)

    def _record_writes(
        self, at: Ints, lanes: Ints, width: int, site: int, stamps: Stamps | int
    ) -> None:
        """Records writes of ``width`` bytes at each of ``at`` in the shadow: the writing lane, the
        instruction ``site`` and the time ``stamps``. Raises Conflict if two lanes write the same
        bytes.
        """
        own = lanes.astype(np.int32)
        self._scatter(1, at, width, own)
        written = self._view(width)[1].take(at // width, axis=0)
        many = written.shape[1]
        other = written.reshape(-1) != np.repeat(own, many)
        if other.any():
            first = int(other.argmax())
            i, j = divmod(first, many)
            byte = int(at[i]) + j * self.granule
            raise Conflict("race", i, byte, int(written[i, j]), site, True)
        self._scatter(0, at, width, stamps)
        self._scatter(2, at, width, site)

    def _check(self, at: Ints, lanes: Ints, width: int) -> None:
        """Checks writes of ``width`` bytes at each of ``at`` by ``lanes``: raises Conflict unless
        all earlier reads and writes of these bytes happened before them.
        """
        conflict: Conflict | None = None
        stamp = self._view(width)[0].take(at // width, axis=0)
        if stamp.max(initial=_NEVER) > self._low:
            try:
                self._check_writes(stamp, at, lanes, width, reading=False)
            except Conflict as found:
                conflict = found
        for reads in self._reads.values():
            if reads.newest > self._low:
                found_read = self._check_reads(reads, at, lanes, width)
                if found_read is not None and (conflict is None or found_read.precedes(conflict)):
                    conflict = found_read
        if conflict is not None:
            raise conflict

    def _check_writes(
        self, stamp: Stamps, at: Ints, lanes: Ints, width: int, *, reading: bool
    ) -> None:
        writer = self._view(width)[1].take(at // width, axis=0)
        first = int(writer.flat[0])
        if first >= self.lanes and (writer == first).all() and (stamp == stamp.flat[0]).all():
            # One copy of the engine, which vector clocks alone order.
            assert self._vectors is not None
            if (self._vectors[self._row[lanes], self._column[first]] >= stamp.flat[0]).all():
                return
        many = stamp.shape[1]
        if many > 1 and _uniform(stamp) and _uniform(writer):
            stamp, writer, many = stamp[:, 0], writer[:, 0], 1  # one for all granules
        else:
            stamp, writer = stamp.reshape(-1), writer.reshape(-1)
        # Usually the writer is in the same warp, before the warp's last sync.
        own, aligned = lanes.astype(np.int32), self._aligned[lanes >> 5]
        if many > 1:
            own, aligned = np.repeat(own, many), np.repeat(aligned, many)
        fine = ((writer ^ own) & -WARP) == 0
        fine &= stamp <= aligned
        if reading:
            fine &= stamp != _NEVER
        if fine.all():
            return
        which = np.flatnonzero(~fine)
        stamp, writer = stamp[which], writer[which]
        lane = lanes[which // many]
        fine = self.ordered(writer, stamp, lane)
        if reading:
            fine &= stamp != _NEVER
        if fine.all():
            return
        one = int(fine.argmin())
        i, j = divmod(int(which[one]), many)
        byte = int(at[i]) + j * self.granule
        value, other = int(stamp[one]), int(writer[one])
        if value == _NEVER:
            raise Conflict("uninitialised", i, byte)
        kind: Kind = "pending" if value == PENDING else "race"
        site = int(self._site[byte // self.granule])
        raise Conflict(kind, i, byte, other if other < self.lanes else None, site, True)

    def _check_reads(self, reads: _Reads, at: Ints, lanes: Ints, width: int) -> Conflict | None:
        latest = reads.pieces(at, width)
        if latest.max(initial=_NEVER) <= self._low:
            return None
        if self._vectors is not None:
            known = self._least.take(self._row[lanes], axis=0)
            bad = latest > np.maximum(known, self._low)[:, None, :]
        else:
            bad = latest > self._low
        if not bad.any():
            return None
        # Stamps alone do not decide: find the lanes.
        reads.merge_log(self._floor)
        assert reads.clock is not None
        i, j, warp = np.nonzero(bad)
        piece = at[i] // reads.width + j
        key = piece * reads.warps + warp
        clock, mask, site = reads.clock[key], reads.mask[key], reads.site[key]
        if reads.older.shape[1]:
            first = np.searchsorted(reads.older[0], key, "left")
            count = np.searchsorted(reads.older[0], key, "right") - first
            again = np.repeat(np.arange(len(key)), count)
            entry = np.arange(len(again)) + np.repeat(first - np.cumsum(count) + count, count)
            i, j, warp = (np.concatenate([x, x[again]]) for x in (i, j, warp))
            clock = np.concatenate([clock, reads.older[1, entry].astype(np.int32)])
            mask = np.concatenate([mask, reads.older[2, entry].astype(np.uint32)])
            site = np.concatenate([site, reads.older[3, entry].astype(np.int32)])
        lane = lanes[i]
        own = (lane >> 5) % self.warps == warp
        bit = np.left_shift(np.uint32(1), (lane & 31).astype(np.uint32))
        mask &= ~np.where(own, bit, np.uint32(0))
        left = mask != 0
        left &= clock > self._floor[lane // self.threads]
        i, j, warp, lane, clock, mask, site = (
            x[left] for x in (i, j, warp, lane, clock, mask, site)
        )
        if not len(i):
            return None
        readers = (mask[:, None] >> np.arange(WARP, dtype=np.uint32) & np.uint32(1)) != 0
        if self._vectors is not None:
            columns = warp[:, None] * WARP + np.arange(WARP)
            readers &= self._vectors[self._row[lane][:, None], columns] < clock[:, None]
        racing = np.flatnonzero(readers.any(axis=1))
        if not len(racing):
            return None
        one = racing[np.lexsort((j[racing], i[racing]))[0]]
        a = int(i[one])
        byte = max(int(at[a]), int(at[a]) // reads.width * reads.width + int(j[one]) * reads.width)
        cta = int(lane[one]) // self.threads
        other = cta * self.threads + int(warp[one]) * WARP + int(readers[one].argmax())
        return Conflict("race", a, byte, other, int(site[one]), False)


def _uniform(rows: NDArray[Any]) -> bool:
    """Whether the elements of each row are equal."""
    flat = rows.reshape(-1)
    anywhere = np.count_nonzero(flat[1:] != flat[:-1])
    return bool(anywhere == np.count_nonzero(rows[1:, 0] != rows[:-1, -1]))
