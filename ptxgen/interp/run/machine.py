"""The machine: runs waves of CTAs segment by segment, all lanes of a segment in one step.

A *wave* is a group of CTAs with about :data:`WAVE_LANES` lanes; waves run one after the other, so
CTAs of different waves cannot wait for each other. A kernel that orders memory between CTAs runs in
one wave, in which a CTA starts when a GPU would have room for it.

Within a wave, lanes are grouped by the segment that they execute next. The group of the first
segment runs; with a ``seed``, random warps run instead, which must not change any result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import (
    BarrierFault,
    DeadlockFault,
    DeviceError,
    KernelFault,
    OptionError,
    RaceFault,
    StepLimitFault,
    UninitializedFault,
)
from ptxgen.interp.memory import access as memory_access
from ptxgen.interp.memory.allocations import Allocation, GlobalMemory
from ptxgen.interp.memory.causality import GlobalHistory
from ptxgen.interp.memory.proxy import GROUP, ProxyHistory
from ptxgen.interp.memory.race import Conflict
from ptxgen.interp.run.program import Program
from ptxgen.interp.text import flow
from ptxgen.interp.text.ordering import polls
from ptxgen.interp.text.ptx import WARP, Instruction
from ptxgen.interp.units import bulk, sync
from ptxgen.interp.units.kernel import Block
from ptxgen.interp.units.sync import Arrivals, ClusterBarrier, Copies, Mbarriers
from ptxgen.spec.base import BLOCK_LIMIT, GRID_LIMIT, THREADS_MAX

Array = NDArray[Any]
Mask = NDArray[np.bool_] | None
"""Mask over the lanes of a wave; None: all of them."""
Lanes = NDArray[np.int64]

Unit = TypeVar("Unit")
_log = logging.getLogger("ptxgen.interp")

WAVE_LANES = 4096
"""Most lanes of a wave of several clusters: enough to amortise NumPy's cost per call."""
VISITS = 1 << 20
"""Default limit of how often a wave executes one segment, before it counts as an endless loop."""
YIELD_AFTER = 1 << 12
"""Executions of one segment by a wave, after which other runnable segments run now and then."""
YIELD_EVERY = 16
"""Executions of one segment, beyond YIELD_AFTER, between two executions of other segments."""
WARN_SECONDS = 5.0
"""Estimated duration of a launch in seconds from which a warning is logged."""
LOCAL_BYTES = 256 << 20
"""Most bytes of local memory of a wave, unless it is a single cluster."""
MAX_SHARED = 227 << 10


class Observer(memory_access.MemoryObserver, Protocol):
    """Interface of a launch's observer, such as :class:`ptxgen.interp.run.profile.Profiler`."""

    def segment(self, wave: Wave, block: Block, mask: Mask) -> None:
        """Is called before the lanes of ``mask`` (None: all) run ``block``."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a launch: schedule, limits, observer. Results do not depend on them."""

    seed: int | None = None
    """Seed of a random schedule of warps; None: the first runnable segment, all warps together."""
    early: bool = False
    """Whether asynchronous operations complete when they are issued, not as late as allowed."""
    visits: int = VISITS
    wave_lanes: int = WAVE_LANES
    observer: Observer | None = None

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("visits", 1), ("wave_lanes", 1)):
            value = getattr(self, name)
            if (value is None and name == "seed") or (
                isinstance(value, int | np.integer) and value >= least
            ):
                continue
            raise OptionError(f"{name} is {value!r}; takes an integer from {least} on")


class Wave:
    """State of a wave: CTAs that run together. Lanes have the index ``cta * threads + thread``."""

    def __init__(
        self,
        program: Program,
        memory: GlobalMemory,
        settings: Settings,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        ctas: range,
        params: bytes,
        shared_bytes: int,
    ) -> None:
        self.program, self.memory, self.settings = program, memory, settings
        self.observer = settings.observer
        self.grid, self.block, self.ctas, self.params = grid, block, ctas, params
        size = block[0] * block[1] * block[2]
        self.threads = -(-size // WARP) * WARP
        self.cluster = program.cluster
        count = len(ctas)
        self.lanes: Lanes = np.arange(count * self.threads)
        self.thread = self.lanes % self.threads
        self.alive = self.thread < size
        self.all_alive = size == self.threads
        self.shared_bytes = -(-shared_bytes // 16) * 16
        self.shared_limit = shared_bytes
        self.shared = np.full(count * self.shared_bytes, 0xCD, np.uint8)
        self._shared_rows: dict[tuple[Any, int], Array] = {}
        self.shared_start: Lanes = self.lanes // self.threads * self.shared_bytes
        starts = np.arange(0, self.threads - GROUP + 1, GROUP)
        self.history = ProxyHistory(
            count // self.cluster,
            self.threads * self.cluster,
            max(self.shared_bytes, 16) * self.cluster,
            program.granule,
            (np.arange(self.cluster)[:, None] * self.threads + starts).reshape(-1),
        )
        self.local = np.full((count * self.threads, program.local_bytes), 0xCD, np.uint8)
        self.local_written = np.zeros(self.local.shape, np.bool_)
        self.causality = GlobalHistory(self.history, self.threads) if program.orders_ctas else None
        self.copies = Copies(self)
        self.arrivals = Arrivals(self)
        self.mbarriers = Mbarriers(self)
        self.cluster_barrier = ClusterBarrier(self)
        self._units: dict[Any, Any] = {}
        self.recent: Allocation | None = None
        self.registers: list[Any] = program.registers(self)
        self.random = (
            None if settings.seed is None else np.random.default_rng((settings.seed, ctas.start))
        )
        # The group that is running:
        self.mask: Mask = None
        self._last_picked = -1
        """Position of the segment that :meth:`_pick_other` picked last."""
        self._active: Lanes | None = None
        # Groups that can run, and lanes that wait, by the position of their segment.
        self.ready: dict[int, Mask] = {}
        self.parked: dict[int, NDArray[np.bool_]] = {}
        self.stalls: dict[int, int] = {}
        """Time-outs of waits by position of the segment, since a barrier last completed a phase."""
        self.clusters = count // self.cluster
        self.started = 0
        """Clusters that have started; the others wait for one to exit."""
        self._dispatch()
        for start, data in program.shared_init:
            for cta in range(count):
                at = cta * self.shared_bytes + start
                self.shared[at : at + len(data)] = np.frombuffer(data, np.uint8)
                self.history.fill(at, len(data))

    @property
    def early(self) -> bool:
        """Whether asynchronous operations complete as soon as they are issued."""
        return self.settings.early

    def unit(self, kind: Callable[[sync.Wave], Unit]) -> Unit:
        """Returns the wave's only instance of the unit class ``kind``; creates it on the first
        call.
        """
        found = self._units.get(kind)
        if found is None:
            found = self._units[kind] = kind(self)
        made: Unit = found
        return made

    def end(self) -> None:
        """Drops all state after the run, as the cyclic garbage collector would free it late."""
        vars(self).clear()

    # -- lanes ----------------------------------------------------------------------
    @property
    def active(self) -> Lanes | None:
        """Indices of the running lanes; None: all lanes of the wave."""
        if self.mask is None:
            return None
        if self._active is None:
            self._active = np.flatnonzero(self.mask)
        return self._active

    def lane_at(self, lanes: Lanes | None, index: int) -> int:
        """Returns the flat index of the lane at position ``index`` of ``lanes`` (None: all)."""
        if lanes is None:
            return index
        return int(lanes[min(index, len(lanes) - 1)])

    def cta_of(self, lane: int) -> tuple[int, int, int]:
        """Returns the grid coordinates (x, y, z) of a lane's CTA."""
        flat = self.ctas[lane // self.threads]
        x, y, _ = self.grid
        return flat % x, flat // x % y, flat // (x * y)

    def thread_text(self, lane: int) -> str:
        """Returns a lane's thread, warp and lane number as text for a message."""
        inside = lane % self.threads
        return f"thread {inside} (warp {inside // WARP}, lane {inside % WARP})"

    def fault(
        self,
        kind: type[KernelFault],
        message: str,
        instruction: Instruction,
        lane: int | None = None,
        address: int | None = None,
    ) -> KernelFault:
        """Returns an exception that names kernel, instruction and lane; the caller raises it."""
        inside = None if lane is None else lane % self.threads
        return kind(
            message,
            kernel=self.program.name,
            line=instruction.line,
            text=instruction.text,
            source=instruction.source,
            cta=None if lane is None else self.cta_of(lane),
            warp=None if inside is None else inside // WARP,
            lane=None if inside is None else inside % WARP,
            address=address,
        )

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
        lane = int(lanes[conflict.index])
        address = int(conflict.at) % max(self.shared_bytes, 16)
        place = f"byte {address} of shared memory"
        if found is not None:
            address = found.base + int(conflict.at)
            size = f"{found.name or 'an allocation'} of {found.nbytes} bytes"
            place = f"byte {int(conflict.at)} of {size}"
        if conflict.kind == "uninitialised":
            message = f"{what} of {place}, which nothing has written"
            return self.fault(UninitializedFault, message, instruction, lane, address)
        other = "another access"
        if conflict.other_site:
            there = self.program.site(conflict.other_site)
            other = f"line {there.line} ({there.text})"
        who = ""
        if conflict.other_lane is not None and conflict.other_lane < len(self.lanes):
            who = f" by {self.thread_text(conflict.other_lane)}"
            if found is not None:
                who += f" of CTA {self.cta_of(conflict.other_lane)}"
        if conflict.kind == "unfenced":
            message = (
                f"{what} of {place}, which an ordinary store{who} at {other} has written; "
                "fence.proxy.async is missing in between"
            )
        elif conflict.kind == "noncoherent":
            message = (
                f"non-coherent {what} of {place}, which the launch itself writes{who} at {other}: "
                "ld.global.nc takes memory that is only read"
            )
        elif conflict.kind == "pending":
            waited = "nothing has waited for it"
            if found is not None:
                waited = "no cp.async.bulk.wait_group without .read has waited for it"
            message = (
                f"{what} of {place}, into which an asynchronous copy{who} from {other} is still "
                f"under way: {waited}"
            )
        else:
            verb = "write" if conflict.other_is_write else "read"
            message = f"race: {what} of {place} is not ordered with the {verb}{who} at {other}"
        return self.fault(RaceFault, message, instruction, lane, address)

    def shared_rows(self, dtype: np.dtype[Any], vector: int) -> Array:
        """Returns shared memory as ``[elements]`` of ``dtype``, or ``[rows, vector]`` if ``vector``
        > 1.
        """
        key = (dtype, vector)
        found = self._shared_rows.get(key)
        if found is None:
            found = self.shared.view(dtype)
            if vector > 1:
                found = found.reshape(-1, vector)
            self._shared_rows[key] = found
        return found

    # -- groups ---------------------------------------------------------------------
    def send(self, block: sync.ResumePoint, mask: Mask) -> None:
        """Makes the lanes of ``mask`` ready to run ``block``."""
        order = block.order
        if mask is None or order not in self.ready:
            self.ready[order] = mask
            return
        there = self.ready[order]
        if there is not None:
            together = there | mask
            self.ready[order] = None if together.all() else together

    def park(self, block: sync.ResumePoint, mask: NDArray[np.bool_]) -> None:
        """Parks lanes at ``block`` until :meth:`wake` makes them ready again."""
        there = self.parked.get(block.order)
        self.parked[block.order] = mask if there is None else there | mask

    def wake(self, order: int | None = None) -> None:
        """Makes parked lanes ready to run: those at the segment at position ``order`` of the weak
        topological order; None: all.
        """
        orders = list(self.parked) if order is None else [order]
        for at in orders:
            if at in self.parked:
                self.send(self.program.blocks[at], self.parked.pop(at))

    def leave(self, mask: Mask) -> None:
        """Ends the lanes of ``mask`` (None: all); opens barriers that waited only for these."""
        if self.copies.stores:
            bulk.check_exit(self, mask)
        if mask is None:
            self.alive[:] = False
        else:
            self.alive &= ~mask
        self.all_alive = False
        if self.started < self.clusters:
            self._dispatch()
        if self.parked or self.arrivals.waiting:
            self.arrivals.open_complete()
            self.cluster_barrier.open_complete()
            self.wake()

    def _dispatch(self) -> None:
        """Starts clusters in the order of their indices: all, or in a kernel that orders CTAs as
        many as a GPU has room for besides those that run.
        """
        stop = self.clusters
        if self.program.orders_ctas:
            ended = ~np.any(self.alive.reshape(stop, -1), axis=1)[: self.started]
            stop = min(stop, self.program.resident_clusters + int(np.count_nonzero(ended)))
        size = self.threads * self.cluster
        mask = self.alive.copy()
        mask[: self.started * size] = False
        mask[stop * size :] = False
        self.started = stop
        if mask.any():
            self.send(self.program.blocks[self.program.entry_order], None if mask.all() else mask)

    # -- running --------------------------------------------------------------------
    def run(self) -> None:
        """Runs all lanes until they have exited."""
        ready, blocks, registers = self.ready, self.program.blocks, self.registers
        visits = [0] * len(blocks)
        limit, patience = self.settings.visits, YIELD_AFTER
        due: dict[int, int] = {}
        if self.random is not None:
            limit *= len(self.lanes) // WARP
            patience *= len(self.lanes) // WARP
        while ready or self._stalled():
            if self.random is None:
                order = min(ready)
                mask = ready.pop(order)
            else:
                order, mask = self._pick()
            block = blocks[order]
            if visits[order] >= due.get(order, patience) and ready:
                due[order] = visits[order] + YIELD_EVERY
                order, mask = self._pick_other(order, mask)
                block = blocks[order]
            visits[order] += 1
            if visits[order] > limit:
                raise self._endless(block, mask, limit)
            self.mask, self._active = mask, None
            if self.observer is not None:
                self.observer.segment(self, block, mask)
            alone = not ready and not self.parked and not self.arrivals.waiting
            if self.started < self.clusters:
                alone = False
            for operation in block.full if alone else block.masked:
                operation(self, registers)
            block.end(self, registers)

    def _pick_other(self, order: int, mask: Mask) -> tuple[int, Mask]:
        """Picks lanes at another segment than the one at ``order``, which has been executed very
        often.

        Lanes that spin there may wait for a store of other lanes: a flag, a lock. At a barrier or a
        warp-wide instruction, only warps without a lane elsewhere are picked. Returns the segment's
        position and the mask.
        """
        ready = self.ready
        self.send(self.program.blocks[order], mask)
        later = sorted(ready, key=lambda at: (at <= self._last_picked, at))
        for other in later:
            there = ready[other]
            if other == order or there is None:
                continue
            going = there
            if flow.may_wait(self.program.blocks[other].first):
                elsewhere = np.zeros(len(self.lanes), np.bool_)
                for at, lanes in ready.items():
                    if at != other and lanes is not None:
                        elsewhere |= lanes
                torn = elsewhere.reshape(-1, WARP).any(axis=1)
                going = there & ~np.repeat(torn, WARP)
                if not going.any():
                    continue
            ready.pop(other)
            rest = there & ~going
            if rest.any():
                ready[other] = rest
            self._last_picked = other
            return other, going
        return order, ready.pop(order)

    def _endless(self, block: Block, mask: Mask, limit: int) -> KernelFault:
        first, last = self.ctas.start, self.ctas.stop - 1
        seed = self.settings.seed
        return self.fault(
            StepLimitFault,
            f"a wave of CTAs has come here {limit} times, which is taken for an endless loop (the "
            f"limit is the setting visits=; seed is {seed}). CTAs {first} to {last} run together, "
            "before all later ones; to wait for more of them takes a larger wave_lanes=",
            block.first,
            self._first_lane(mask),
        )

    def _first_lane(self, mask: Mask) -> int:
        return 0 if mask is None else int(np.flatnonzero(mask)[0])

    def _pick(self) -> tuple[int, Mask]:
        """Picks the lanes that run next, under a random schedule: some or all warps at one random
        segment. Returns the segment's position, and the mask of the lanes.

        If the lanes of a warp are at several segments, only the first of these is eligible.
        """
        assert self.random is not None
        ready = self.ready
        warps = len(self.lanes) // WARP
        first = np.full(warps, len(self.program.blocks))
        for order, mask in ready.items():
            here = (
                np.ones(warps, np.bool_) if mask is None else mask.reshape(warps, WARP).any(axis=1)
            )
            np.minimum(first, np.where(here, order, first), out=first)
        order = int(self.random.choice(np.unique(first[first < len(self.program.blocks)])))
        candidates = np.flatnonzero(first == order)
        if self.random.random() < 0.5:
            count = int(self.random.integers(1, len(candidates) + 1))
            candidates = self.random.choice(candidates, count, replace=False)
        chosen = np.zeros((warps, WARP), np.bool_)
        chosen[candidates] = True
        mask = ready.pop(order)
        if mask is not None:
            chosen &= mask.reshape(warps, WARP)
        running = chosen.reshape(-1)
        rest = ~running if mask is None else mask & ~running
        if rest.any():
            ready[order] = rest
        return order, None if running.all() else running

    def _stalled(self) -> bool:
        """Makes a lane ready to run when none is: completes asynchronous transfers, then lets
        mbarrier waits time out. Returns True then, False if all lanes have exited; raises
        DeadlockFault or BarrierFault if lanes wait and nothing can wake them.
        """
        while not self.ready:
            if self.copies.land():
                self.wake()
            elif self._time_out():
                pass
            elif self.parked or self.arrivals.waiting:
                self._deadlock()
            else:
                return False
        return True

    def _time_out(self) -> bool:
        """Lets the waits of the lanes parked at one segment time out, if they can, for each segment
        only so often without progress. Returns False if no such wait is left.
        """
        for order in list(self.parked):
            block = self.program.blocks[order]
            if self.stalls.get(order, 0) < block.patience:
                self.stalls[order] = self.stalls.get(order, 0) + 1
                block.on_time_out(self, self.parked.pop(order))
                return True
        return False

    def _deadlock(self) -> NoReturn:
        places: list[tuple[Instruction, NDArray[np.bool_]]] = [
            (self.program.blocks[order].first, mask) for order, mask in self.parked.items()
        ]
        places.sort(key=lambda place: not polls(place[0]))
        places += [(a.instruction, a.mask) for a in self.arrivals.waiting]
        said = []
        for instruction, mask in places:
            lane = self._first_lane(mask)
            said.append(
                f"{int(mask.sum())} threads at line {instruction.line} ({instruction.text}), the "
                f"first {self.thread_text(lane)} of CTA {self.cta_of(lane)}"
            )
        instruction, mask = places[0]
        kind = DeadlockFault
        collective = any(self.program.blocks[order].collective for order in self.parked)
        if collective and not polls(instruction):
            kind = BarrierFault  # type: ignore[assignment]
        gone = int((~self.alive).sum() - (self.thread >= self._size()).sum())
        later = (self.clusters - self.started) * self.cluster
        waiting = f"; {later} CTAs have not started, as an SM has no room for them" if later else ""
        raise self.fault(
            kind,
            f"no thread can go on: {'; '.join(said)}; {gone} threads have exited{waiting}",
            instruction,
            self._first_lane(mask),
        )

    def _size(self) -> int:
        x, y, z = self.block
        return x * y * z


def launch(
    program: Program,
    memory: GlobalMemory,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    params: bytes,
    dynamic_shared: int,
    settings: Settings,
) -> None:
    """Runs all CTAs of a grid. Raises DeviceError for an illegal launch, KernelFault for a kernel's
    error.
    """
    _check(program, grid, block, params)
    shared = program.shared_bytes(dynamic_shared)
    if shared > MAX_SHARED:
        raise DeviceError(
            f"{program.name} has {shared} bytes of shared memory a CTA; takes at most {MAX_SHARED}"
        )
    threads = -(-block[0] * block[1] * block[2] // WARP) * WARP
    total = grid[0] * grid[1] * grid[2]
    lanes = settings.wave_lanes
    if program.local_bytes:
        lanes = min(lanes, LOCAL_BYTES // program.local_bytes)
    count = max(lanes // threads // program.cluster, 1) * program.cluster
    if program.orders_ctas:
        count = total
    began = time.monotonic()
    with np.errstate(all="ignore"):
        for start in range(0, total, count):
            ctas = range(start, min(start + count, total))
            try:
                wave = Wave(program, memory, settings, grid, block, ctas, params, shared)
            except MemoryError:
                each = shared + threads * program.local_bytes
                raise DeviceError(
                    f"{program.name}: this machine has no memory for {len(ctas)} CTAs of {each} "
                    "bytes of shared and local memory; smaller waves take less (wave_lanes=)"
                ) from None
            wave.run()
            wave.end()
            if not start and total > count:
                _announce(program, (time.monotonic() - began) * total / count)


def _announce(program: Program, seconds: float) -> None:
    """Warns if a launch will take long; ``seconds`` is extrapolated from its first wave."""
    if seconds >= WARN_SECONDS:
        _log.warning(
            "the CPU device interprets PTX, and %s will take about %.0f s; it is meant for tests "
            "and small problems (logging.getLogger('ptxgen').setLevel('ERROR') silences this)",
            program.name,
            seconds,
        )


def _check(
    program: Program, grid: tuple[int, int, int], block: tuple[int, int, int], params: bytes
) -> None:
    name = program.name
    if len(params) != program.parameter_bytes:
        raise DeviceError(
            f"{name} takes {program.parameter_bytes} bytes of parameters "
            f"({', '.join(p.type for p in program.entry.parameters)}), got {len(params)}"
        )
    for what, got, limit in (("grid", grid, GRID_LIMIT), ("block", block, BLOCK_LIMIT)):
        if not all(1 <= g <= most for g, most in zip(got, limit, strict=True)):
            raise DeviceError(f"{name}: {what} {got} is illegal; takes 1 to {limit}")
    size = block[0] * block[1] * block[2]
    if size > THREADS_MAX:
        raise DeviceError(f"{name}: a block of {size} threads; takes at most {THREADS_MAX}")
    program.check_block(block)
    if grid[0] * grid[1] * grid[2] % program.cluster:
        raise DeviceError(f"{name}: grid {grid} is no multiple of its cluster {program.cluster}")
