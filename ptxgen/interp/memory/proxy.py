"""Race checks for the async proxy: reads in flight, and missing proxy fences.

Bulk copies and wgmma read shared memory from their issue until a thread waits for them. Until then
every write to those bytes is a race. A later write must be ordered after the wait:

- of a bulk copy: after the wait of the issuing thread, which counts as that thread's read;
- of a wgmma: after the wait of *any* thread of its warpgroup, since the warpgroup waits as one.

The async proxy sees an ordinary store only after a ``fence.proxy.async``: one of the writing thread
after the store, or one of the issuing thread that is ordered after the store. A fence of a third
thread in between is legal too, but is not tracked here.

Source: PTX ISA 9.0, 8.2.4 and 8.10 (proxies, causality order), 9.7.9.25 (bulk copies) and 9.7.15
(wgmma).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.interp.memory.race import (
    PENDING,
    START,
    Conflict,
    Copy,
    Ints,
    SharedHistory,
    Stamps,
)

PIECE = 16
"""Granularity in bytes of the async proxy's reads, which are all aligned to it."""
GROUP = 128
"""Threads of a warpgroup."""


@dataclass(slots=True, eq=False)
class Reading:
    """Async-proxy reads in flight: 16 bytes at each byte offset in ``at``, issued by the thread in
    ``lanes`` (of wgmma, the first of its warpgroup) at instruction ``site``.
    """

    at: Ints
    lanes: Ints
    site: int


class ProxyHistory(SharedHistory):
    """Access history of shared memory that also tracks reads of the async proxy.

    ``warpgroups``: index in the CTA of the first thread of each warpgroup that can run wgmma.
    """

    def __init__(
        self, ctas: int, threads: int, nbytes: int, granule: int, warpgroups: Ints
    ) -> None:
        super().__init__(ctas, threads, nbytes, granule)
        self._pieces = ctas * nbytes // PIECE
        self._groups = warpgroups
        self._under_way = 0
        self._reading: NDArray[np.int32] | None = None  # reads in flight, by piece
        self._reader: Stamps = np.zeros(0, np.int32)
        self._reader_site: Stamps = np.zeros(0, np.int32)
        # By warpgroup and piece: time of its last wait for a wgmma that read the piece.
        self._group_stamp: Stamps | None = None
        self._group_site: Stamps = np.zeros((0, 0), np.int32)
        # By thread: time of its last fence; its CTA's floor and its vector clock at that time.
        self._fenced: Stamps = np.zeros(self.lanes, np.int32)
        self._fenced_floor: Stamps = np.zeros(self.lanes, np.int32)
        self._fenced_vectors: Stamps | None = None

    # -- reads ------------------------------------------------------------------------

    def check_read(self, at: Ints, lanes: Ints, width: int) -> None:
        """Checks a read of ``width`` bytes at each of ``at`` by ``lanes`` as :meth:`read` does, but
        does not record it: later writes cannot conflict with it.
        """
        stamp = self._view(width)[0].take(at // width, axis=0)
        if stamp.max(initial=START) > self._low or not stamp.all():
            self._check_writes(stamp, at, lanes, width, reading=True)

    def begin(self, at: Ints, lanes: Ints, site: int) -> Reading:
        """Starts async-proxy reads of 16 bytes at each of ``at``, issued by ``lanes`` at
        instruction ``site``. Raises Conflict for a race or a missing proxy fence.
        """
        self.check_read(at, lanes, PIECE)
        self._check_fences(at, lanes)
        return self._begin(at, lanes, site)

    def begin_group(self, at: Ints, groups: Ints, site: int) -> Reading:
        """Starts reads of wgmma, checked for conflicts: warpgroup i, with lanes ``groups[i]``,
        reads 16 bytes at each byte offset in ``at[i]``. ``site``: number of the instruction. Raises
        Conflict.
        """
        chosen = self._representatives(groups)
        count, pieces = at.shape
        own = np.repeat(chosen.reshape(-1), pieces)
        spread = np.broadcast_to(at[:, None], (count, chosen.shape[1], pieces)).reshape(-1)
        self.check_read(spread, own, PIECE)
        self._check_fences(spread, own)
        return self._begin(at.reshape(-1), np.repeat(groups[:, 0], pieces), site)

    def readers(self, at: Ints, groups: Ints) -> Ints:
        """Returns the lane of each read that :meth:`begin_group` checks with the same arguments; if
        that raises Conflict, its ``index`` is a position in this array.
        """
        return np.repeat(self._representatives(groups).reshape(-1), at.shape[1])

    def _representatives(self, groups: Ints) -> Ints:
        """Returns a few lanes of each warpgroup in ``groups``, ``[groups, 128]``, which suffice for
        a check: a write that is ordered before all of them is ordered before the warpgroup.

        Threads with equal vector clocks share a row of the table. Each run of them is represented
        by its first and its last thread, as one of the two may be the writer.
        """
        if self._vectors is None:
            return groups[:, [0, -1]]
        rows = self._row[groups]
        border = np.ones(rows.shape[1] + 1, np.bool_)
        (rows[:, 1:] != rows[:, :-1]).any(axis=0, out=border[1:-1])
        return groups[:, border[1:] | border[:-1]]

    def _begin(self, at: Ints, lanes: Ints, site: int) -> Reading:
        if self._reading is None:
            self._reading = np.zeros(self._pieces, np.int32)
            self._reader = np.zeros(self._pieces, np.int32)
            self._reader_site = np.zeros(self._pieces, np.int32)
        piece = at // PIECE
        np.add.at(self._reading, piece, 1)
        self._reader[piece] = lanes
        self._reader_site[piece] = site
        self._under_way += 1
        return Reading(at, lanes, site)

    def end(self, reading: Reading) -> None:
        """Ends reads in flight, for which their issuing threads have waited: they now count as
        ordinary reads of these threads.
        """
        self._end(reading.at)
        self.read(reading.at, reading.lanes, PIECE, reading.site)

    def split_reading(self, reading: Reading, part: NDArray[np.bool_]) -> tuple[Reading, Reading]:
        """Splits the reads in flight in two: those where ``part``, an element for each read, is
        True, and the others.
        """
        self._under_way += 1
        first, second = (
            Reading(reading.at[mask], reading.lanes[mask], reading.site) for mask in (part, ~part)
        )
        return first, second

    def end_group(self, reading: Reading) -> None:
        """Ends reads of wgmma for which their warpgroups have waited. Later writes by other
        warpgroups must be ordered after the wait of at least one of each group's threads.
        """
        self._end(reading.at)
        if self._group_stamp is None:
            shape = (len(self._groups), self._pieces)
            self._group_stamp = np.zeros(shape, np.int32)
            self._group_site = np.zeros(shape, np.int32)
        group = np.searchsorted(self._groups, reading.lanes % self.threads)
        self._group_stamp[group, reading.at // PIECE] = self._time
        self._group_site[group, reading.at // PIECE] = reading.site

    def _end(self, at: Ints) -> None:
        assert self._reading is not None
        np.subtract.at(self._reading, at // PIECE, 1)
        self._under_way -= 1

    def _check(self, at: Ints, lanes: Ints, width: int) -> None:
        super()._check(at, lanes, width)
        if self._under_way:
            assert self._reading is not None
            busy = self._reading.take(at // PIECE) != 0
            if busy.any():
                i = int(busy.argmax())
                piece = int(at[i]) // PIECE
                raise Conflict(
                    "race", i, int(at[i]), int(self._reader[piece]), int(self._reader_site[piece])
                )
        if self._group_stamp is not None:
            self._check_groups(self._group_stamp, at, lanes)

    def _check_groups(self, latest: Stamps, at: Ints, lanes: Ints) -> None:
        stamps = latest.take(at // PIECE, axis=1)
        if stamps.max(initial=0) <= self._low:
            return
        group, i = np.nonzero(stamps > self._floor[lanes // self.threads])
        first = self._groups[group]
        inside = lanes[i] % self.threads - first
        other = (inside < 0) | (inside >= GROUP)  # waits of its own warpgroup are ordered before it
        group, i, first = group[other], i[other], first[other]
        if not len(i):
            return
        vectors = self._vector_table()
        count = len(self._groups)
        pairs, which = np.unique(self._row[lanes[i]] * count + group, return_inverse=True)
        columns = self._groups[pairs % count][:, None] + np.arange(GROUP)
        known = vectors[(pairs // count)[:, None], columns].max(axis=1)
        racing = np.flatnonzero(known[which] < stamps[group, i])
        if len(racing):
            one = racing[np.argmin(i[racing])]
            a = int(i[one])
            lane = int(lanes[a]) // self.threads * self.threads + int(first[one])
            site = int(self._group_site[group[one], at[a] // PIECE])
            raise Conflict("race", a, int(at[a]), lane, site)

    # -- fences -----------------------------------------------------------------------

    def fence(self, lanes: Ints) -> None:
        """Records that ``lanes`` execute fence.proxy.async: from then on, the async proxy sees all
        writes that are ordered before the fence.
        """
        if not len(lanes):
            return
        vectors = self._vector_table()
        if self._fenced_vectors is None or self._fenced_vectors.shape[1] < self._columns:
            wider = np.zeros((self.lanes, self._columns), np.int32)
            if self._fenced_vectors is not None:
                wider[:, : self._fenced_vectors.shape[1]] = self._fenced_vectors
            self._fenced_vectors = wider
        self._fenced[lanes] = self._time
        self._fenced_floor[lanes] = self._floor[lanes // self.threads]
        self._fenced_vectors[lanes] = vectors[self._row[lanes]]
        self._advance(lanes >> 5)

    def _check_fences(self, at: Ints, lanes: Ints) -> None:
        writer = self._view(PIECE)[1].take(at // PIECE, axis=0)
        generic = writer < self.lanes
        if not generic.any():
            return
        stamp = self._view(PIECE)[0].take(at // PIECE, axis=0)
        generic &= stamp > START
        generic &= stamp != PENDING
        if not generic.any():
            return
        i, j = np.nonzero(generic)
        stamp, writer, lane = stamp[i, j], writer[i, j], lanes[i]
        # A fence of the writing thread, or one of the issuing thread ordered after the write.
        fine = (stamp <= self._fenced[writer]) | (stamp <= self._fenced_floor[lane])
        if self._fenced_vectors is not None:
            fine |= stamp <= self._fenced_vectors[lane, writer % self.threads]
        if fine.all():
            return
        one = int(fine.argmin())
        byte = int(at[i[one]]) + int(j[one]) * self.granule
        site = int(self._site[byte // self.granule])
        raise Conflict("unfenced", int(i[one]), byte, int(writer[one]), site, True)

    # -- copies -------------------------------------------------------------------------

    def complete_on_object(self, copy: Copy) -> None:
        """Changes how the cp.async copy ``copy`` in flight completes: on a synchronisation object
        (an mbarrier), given to :meth:`complete` later, and not by a wait of its threads.

        Completion also releases into that object what the issuing threads have accessed up to now.
        """
        vectors = self._vector_table()
        unique, copy.issuer = np.unique(copy.lanes, return_inverse=True)
        copy.vectors = vectors[self._row[unique]]
        copy.vectors[np.arange(len(unique)), unique % self.threads] = self._time
        self._advance(unique >> 5)
