"""Bulk copies (cp.async.bulk and its tensor form): execution and decoding.

A copy is executed as late as possible: when no lane can run without it, or at its issue if the
settings say ``early``. Copies into shared memory complete on an mbarrier; copies out of it by
groups: first their reads, then the whole.

Source: PTX ISA 9.0, 9.7.9.25 (cp.async.bulk, cp.async.bulk.tensor, groups).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import MemoryFault, RaceFault, SpecError
from ptxgen.interp.memory import access as memory_access
from ptxgen.interp.memory.access import Access
from ptxgen.interp.memory.allocations import SHARED_BASE
from ptxgen.interp.memory.causality import InFlight
from ptxgen.interp.memory.proxy import PIECE, Reading
from ptxgen.interp.memory.race import Conflict
from ptxgen.interp.text.ptx import SIZES, Address, Immediate, Instruction, Operand, Vector
from ptxgen.interp.units import operate
from ptxgen.interp.units.kernel import WINDOWS, Kernel, Value, active, operand_items
from ptxgen.interp.units.operate import Variants
from ptxgen.interp.units.sync import OutboundCopy, Transfer, Wave
from ptxgen.interp.units.tma import NBYTES, TensorMap

Array = NDArray[Any]
Lanes = NDArray[np.int64]
_U32 = np.dtype(np.uint32)
_U64 = np.dtype(np.uint64)


# -- under way ------------------------------------------------------------------------


class Load(Transfer):
    """Bulk copies into shared memory, one for each row of ``at``, that complete on mbarriers.

    ``at``: destination offsets ``[copies, pieces]``, in the wave's shared memory, of pieces with
    the width of ``access``; ``bars``: offset of each copy's mbarrier; ``fetch``: returns the data;
    ``reading``: the read of the source, if that is shared memory. ``source``: its reads in the race
    check of global memory, with the row of ``at`` to which each belongs.
    """

    def __init__(
        self,
        wave: Wave,
        access: Access,
        lanes: Lanes,
        at: Lanes,
        bars: Lanes,
        fetch: Callable[[], Array],
        reading: Reading | None = None,
    ) -> None:
        self.wave, self.access, self.lanes, self.at = wave, access, lanes, at
        self.bars, self.fetch, self.reading = bars, fetch, reading
        self.source: list[tuple[InFlight, Lanes]] = []
        self.own = np.repeat(lanes, at.shape[1])
        try:
            self.token = wave.history.issue(
                at.reshape(-1), self.own, access.width, access.site, engine=True
            )
        except Conflict as conflict:
            raise wave.conflict(
                conflict, access.instruction, "asynchronous write", self.own
            ) from None
        for bar, lane in zip(bars.tolist(), lanes.tolist(), strict=True):
            wave.mbarriers.get(access, bar, lane)

    def land(self) -> None:
        """Writes the bytes to shared memory, and signals them to the mbarriers (complete_tx)."""
        wave, access = self.wave, self.access
        wave.copies.bulk.remove(self)
        values = self.fetch()
        if self.reading is not None:
            wave.history.end(self.reading)
        rows = wave.shared_rows(access.dtype, access.vector)
        rows[self.at.reshape(-1) // access.width] = values.reshape(-1, *rows.shape[1:])
        now = np.array([
            wave.mbarriers.get(access, bar, lane).arrival_object
            for bar, lane in zip(self.bars.tolist(), self.lanes.tolist(), strict=True)
        ])  # fmt: skip
        wave.history.complete(self.token, np.repeat(now, self.at.shape[1]))
        if wave.causality is not None:
            writers, stamps = wave.history.last_writes(self.at[:, 0])
            for reads, row in self.source:
                wave.causality.end_read(reads, writers[row], stamps[row])
        nbytes = np.full(len(self.lanes), self.at.shape[1] * access.width)
        wave.mbarriers.complete(access, self.bars, self.lanes, nbytes)


class Store(OutboundCopy):
    """Bulk copy of one lane from shared to global memory, in one of the lane's bulk groups.
    ``target``: its writes in the race check of global memory.
    """

    def __init__(
        self,
        wave: Wave,
        access: Access,
        lane: int,
        at: Lanes,
        write: Callable[[Array], None],
    ) -> None:
        self.wave, self.access, self.lanes, self.at = wave, access, np.array([lane]), at
        self.write = write
        self.target: list[InFlight] = []
        self.group = int(wave.copies.bulk_groups[lane])
        self.values: Array | None = None
        own = np.full(len(at), lane)
        try:
            self.reading: Reading | None = wave.history.begin(at, own, access.site)
        except Conflict as conflict:
            raise wave.conflict(conflict, access.instruction, "bulk read", own) from None
        wave.copies.stores.append(self)

    def read(self) -> None:
        """Copies the source bytes from shared memory to ``values``, unless that has been done
        before.
        """
        if self.values is None:
            self.values = self.wave.shared_rows(_U32, 4)[self.at // PIECE]

    def land(self) -> None:
        """Writes the bytes to global memory."""
        self.wave.copies.bulk.remove(self)
        self.read()
        assert self.values is not None
        self.write(self.values)

    def complete_wait(self, *, read: bool) -> None:
        """Completes the copy after its lane's cp.async.bulk.wait_group; ``read``: the wait was
        wait_group.read, so that only the source is read, and the global memory is written later.
        """
        self.read()
        if self.reading is not None:
            self.wave.history.end(self.reading)
            self.reading = None
            self.wave.copies.stores.remove(self)
        if not read and self in self.wave.copies.bulk:
            self.land()
        if not read and self.wave.causality is not None and self in self.wave.copies.writes:
            self.wave.copies.writes.remove(self)
            for writes in self.target:
                self.wave.causality.end_write(writes, int(self.lanes[0]))


def start(wave: Wave, transfer: Transfer) -> None:
    """Starts a transfer; completes it immediately if the settings say ``early``."""
    wave.copies.bulk.append(transfer)
    if wave.early:
        transfer.land()


def check_same_cta(
    wave: Wave, instruction: Instruction, at: Lanes, bars: Lanes, lanes: Lanes
) -> None:
    """Raises MemoryFault unless each copy's destination and mbarrier are in the same CTA."""
    apart = at[:, 0] // wave.shared_bytes != bars // wave.shared_bytes
    if apart.any():
        raise wave.fault(
            MemoryFault,
            "the mbarrier is in another CTA than the destination",
            instruction,
            int(lanes[apart.argmax()]),
        )


def check_exit(wave: Wave, mask: NDArray[np.bool_] | None) -> None:
    """Raises RaceFault if a lane of ``mask`` (None: all), which exits, has a bulk copy out of
    shared memory for whose read it has not waited.
    """
    for store in wave.copies.stores:
        lane = int(store.lanes[0])
        if mask is None or mask[lane]:
            raise wave.fault(
                RaceFault,
                "exits without having waited (cp.async.bulk.wait_group.read) for its bulk copy to "
                "have read shared memory",
                store.access.instruction,
                lane,
            )


# -- decoding -------------------------------------------------------------------------


def bulk(kernel: Kernel, instruction: Instruction) -> Variants | None:
    """Decodes all instructions that begin with cp.async.bulk: copies, commit_group and wait_group.
    None for a prefetch, which has no effect.
    """
    modifiers = list(instruction.modifiers[2:])
    if modifiers[:1] == ["commit_group"]:
        return _commit(kernel, instruction)
    if modifiers[:1] == ["wait_group"]:
        return _wait(kernel, instruction)
    if modifiers[:1] == ["prefetch"]:
        return None
    return _Copy(kernel, instruction, modifiers).variants()


def _commit(kernel: Kernel, instruction: Instruction) -> Variants:
    guard = operate.guard_of(kernel, instruction)

    def commit(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        if lanes is None:
            wave.copies.bulk_groups += 1
        else:
            wave.copies.bulk_groups[lanes] += 1

    return commit, commit


def _wait(kernel: Kernel, instruction: Instruction) -> Variants:
    operand = instruction.operands[0] if instruction.operands else None
    if not isinstance(operand, Immediate) or int(operand.value) < 0:
        raise kernel.error("takes a number of groups", instruction)
    newest, read = int(operand.value), "read" in instruction.modifiers
    guard = operate.guard_of(kernel, instruction)

    def wait(wave: Wave, registers: list[Any]) -> None:
        copies = wave.copies
        if not copies.stores and not copies.bulk and not copies.writes:
            return
        lanes = active(wave, None if guard is None else guard(wave, registers))
        here = wave.alive if lanes is None else np.isin(wave.lanes, lanes)
        done = [t for t in copies.bulk if isinstance(t, Store)]
        for store in {id(s): s for s in (*copies.stores, *copies.writes, *done)}.values():
            lane = int(store.lanes[0])
            if here[lane] and store.group < int(copies.bulk_groups[lane]) - newest:
                store.complete_wait(read=read)

    return wait, wait


class _Copy:
    """Decoded cp.async.bulk copy, plain or of a tensor: between global and shared memory, or to the
    shared memory of another CTA of the cluster.
    """

    def __init__(self, kernel: Kernel, instruction: Instruction, modifiers: list[str]) -> None:
        self.kernel, self.instruction = kernel, instruction
        rest = list(modifiers)
        self.rank = 0
        if rest[:1] == ["tensor"]:
            self.rank = int(rest[1][0]) if rest[1:2] and rest[1][:-1] in "12345" else 0
            if not self.rank:
                raise self._outside()
            rest = rest[2:]
        spaces = [m for m in rest if m in ("shared::cta", "shared::cluster", "global")]
        others = [m for m in rest if m not in spaces]
        self.target, self.source = ["", ""] if len(spaces) != 2 else spaces
        loads = self.target.startswith("shared") and self.source in ("global", "shared::cta")
        if self.rank and self.source != "global":
            loads = False
        stores = (self.target, self.source) == ("global", "shared::cta")
        self.multicast = "multicast::cluster" in others
        hint = "L2::cache_hint" in others
        for known in ("multicast::cluster", "L2::cache_hint"):
            if known in others:
                others.remove(known)
        self.im2col = bool(self.rank) and loads and others[:1] == ["im2col"]
        if self.im2col or (self.rank and others[:1] == ["tile"]):
            others = others[1:]
        if not (
            (loads and others == ["mbarrier::complete_tx::bytes"])
            or (stores and others == ["bulk_group"] and not self.multicast)
        ) or (self.multicast and self.source != "global"):
            raise self._outside()
        self.loads = loads
        operands = list(instruction.operands)
        wanted = 2 + (not self.rank) + loads + self.im2col + self.multicast + hint
        if len(operands) != wanted:
            raise kernel.error(f"takes {wanted} operands, got {len(operands)}", instruction)
        first, second = self._address(operands.pop(0)), self._address(operands.pop(0))
        self.shared, self.outer = (first, second) if loads else (second, first)
        self.to = kernel.address(first, instruction)
        self.from_ = kernel.address(second, instruction)
        self.coordinates: list[Value] = []
        if self.rank:
            given = (second if loads else first).coordinates
            if len(given) != self.rank:
                raise kernel.error(f"takes {self.rank} coordinates, got {len(given)}", instruction)
            self.coordinates = [kernel.value(c, "s32", instruction) for c in given]
        self.size = None if self.rank else kernel.value(operands.pop(0), "u32", instruction)
        self.bar = kernel.address(operands.pop(0), instruction) if loads else None
        self.offsets: list[Value] = []
        if self.im2col:
            right = operands.pop(0)
            assert isinstance(right, Vector), "forms see to it"
            self.offsets = [kernel.value(o, "u16", instruction) for o in right.items]
        self.mask = kernel.value(operands.pop(0), "u16", instruction) if self.multicast else None
        site = kernel.new_site(instruction)
        self.access = Access(instruction, site, _U32, 4)
        self.bar_access = Access(instruction, site, _U64, 1)
        self.elements = {n: Access(instruction, site, np.dtype(f"u{n}"), 1) for n in (1, 2, 4, 8)}
        self.guard = operate.guard_of(kernel, instruction)

    def _outside(self) -> Exception:
        return self.kernel.error(
            f"{self.instruction.name} is outside the subset; it has cp.async.bulk{{.tensor.1d to "
            ".5d}.shared::cluster.global{.tile, .im2col}.mbarrier::complete_tx::bytes"
            "{.multicast::cluster}, .global.shared::cta{.tile}.bulk_group, and "
            ".shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
            self.instruction,
        )

    def _address(self, operand: Operand) -> Address:
        if not isinstance(operand, Address):
            raise self.kernel.error("an address [..] is missing", self.instruction)
        return operand

    def variants(self) -> Variants:
        """Returns the operation that runs the copies, twice: it finds its active lanes itself, so
        it serves for all lanes and under a mask.
        """

        def operation(wave: Wave, registers: list[Any]) -> None:
            lanes = active(wave, None if self.guard is None else self.guard(wave, registers))
            own = np.flatnonzero(wave.alive) if lanes is None else lanes
            if len(own):
                self.run(wave, registers, own)

        return operation, operation

    # -- running --------------------------------------------------------------------
    def run(self, wave: Wave, registers: list[Any], own: Lanes) -> None:
        """Starts the bulk copies of the lanes ``own``."""

        def of(value: Value) -> Array:
            return np.broadcast_to(value(wave, registers), wave.lanes.shape)[own]

        if self.rank:
            self._tensor(wave, own, of)
            return
        assert self.size is not None
        sizes = of(self.size).astype(np.int64)
        for size in np.unique(sizes).tolist():
            part = np.flatnonzero(sizes == size)
            lanes = own[part]
            if size % PIECE:
                raise wave.fault(
                    MemoryFault, f"a bulk copy of {size} bytes; takes multiples of 16",
                    self.instruction, int(lanes[0]),
                )  # fmt: skip
            if not size:
                continue
            steps = np.arange(0, size, PIECE)
            to, from_ = of(self.to)[part], of(self.from_)[part]
            bars = None if self.bar is None else of(self.bar)[part]
            masks = None if self.mask is None else of(self.mask)[part]
            if self.source == "global":
                self._bounds(wave, from_, size, lanes)
                addresses = from_[:, None].astype(np.uint64) + steps.astype(np.uint64)
                at = self._shared(wave, to, size, lanes)[:, None] + steps
                self._load(wave, lanes, at, bars, masks, addresses, self.access, None)
            elif self.loads:
                at = self._shared(wave, to, size, lanes)[:, None] + steps
                source = self._shared(wave, from_, size, lanes)[:, None] + steps
                self._copy_in_cluster(wave, lanes, at, bars, source)
            else:
                self._bounds(wave, to, size, lanes)
                at = self._shared(wave, from_, size, lanes)[:, None] + steps
                addresses = to[:, None].astype(np.uint64) + steps.astype(np.uint64)
                for i, lane in enumerate(lanes.tolist()):
                    self._store(wave, lane, at[i], addresses[i], self.access, None)

    def _shared(self, wave: Wave, address: Array, size: int, lanes: Lanes) -> Lanes:
        """Returns byte offsets into the wave's shared memory; raises MemoryFault unless ``size``
        bytes fit.
        """
        flat = memory_access.shared_offsets(wave, self.access, address, PIECE, lanes)
        over = flat % wave.shared_bytes + size > wave.shared_bytes
        if over.any():
            lane = int(np.flatnonzero(over)[0])
            raise wave.fault(
                MemoryFault,
                f"out of bounds: {size} bytes at offset {int(flat[lane]) % wave.shared_bytes} of "
                f"{wave.shared_bytes} bytes of shared memory",
                self.instruction,
                int(lanes[lane]),
                int(address[lane]),
            )
        return flat

    def _bounds(self, wave: Wave, address: Array, size: int, lanes: Lanes) -> None:
        """Raises MemoryFault unless ``size`` bytes of global memory are at each address."""
        memory_access.check_alignment(wave, self.access, address, PIECE, lanes)
        for start, lane in zip(address.tolist(), lanes.tolist(), strict=True):
            if wave.memory.find(start, size) is None:
                raise wave.fault(
                    MemoryFault,
                    f"out of bounds: {size} bytes, {wave.memory.describe(start, size)}",
                    self.instruction,
                    lane,
                    start,
                )

    def _load(
        self,
        wave: Wave,
        lanes: Lanes,
        at: Lanes,
        bars: Array | None,
        masks: Array | None,
        addresses: Array,
        access: Access,
        inside: NDArray[np.bool_] | None,
    ) -> None:
        """Starts loads into shared memory, one for each lane in ``lanes``; with multicast, one for
        each destination CTA.

        ``at`` and ``addresses``, ``[loads, pieces]``: destinations as offsets in the wave's shared
        memory, and global addresses; elements where ``inside`` is False are zero. ``bars``: shared
        addresses of the mbarriers; ``masks``: destination CTAs of multicast, a bit each.
        """
        assert bars is not None
        target = memory_access.shared_offsets(wave, self.bar_access, bars, 8, lanes)
        check_same_cta(wave, self.instruction, at, target, lanes)
        if masks is not None:
            lane, rank = np.nonzero((masks[:, None] >> np.arange(16, dtype=np.uint16)) & 1)
            if len(rank) and int(rank.max()) >= wave.cluster:
                raise wave.fault(
                    MemoryFault,
                    f"multicast to rank {int(rank.max())} of a cluster of {wave.cluster}",
                    self.instruction,
                    int(lanes[lane[rank.argmax()]]),
                )
            cta = lanes[lane] // wave.threads
            base = (cta - cta % wave.cluster + rank) * wave.shared_bytes
            at = base[:, None] + at[lane] % wave.shared_bytes
            target = base + target[lane] % wave.shared_bytes
            lanes, addresses = lanes[lane], addresses[lane]
            inside = None if inside is None else inside[lane]
        pieces = 1 if wave.random is None else len(lanes)
        for part in np.array_split(np.arange(len(lanes)), pieces):
            if len(part):
                rows = addresses[part]
                within = None if inside is None else inside[part]
                own = np.repeat(lanes[part], rows.shape[1])
                fetch = _fetcher(wave, access, rows, within, own)
                load = Load(wave, self.access, lanes[part], at[part], target[part], fetch)
                if wave.causality is not None:
                    used = np.arange(rows.size) if within is None else np.flatnonzero(within)
                    reads = memory_access.begin_bulk(
                        wave, access, rows.reshape(-1)[used], own[used], writes=False
                    )
                    load.source = [(r, used[index] // rows.shape[1]) for r, index in reads]
                start(wave, load)

    def _copy_in_cluster(
        self, wave: Wave, lanes: Lanes, at: Lanes, bars: Array | None, source: Lanes
    ) -> None:
        """Starts copies from shared memory to that of another CTA of the cluster, one for each lane
        in ``lanes``. ``source`` and ``at``: source and destination offsets of 16-byte pieces, a row
        per lane; ``bars``: shared addresses of the mbarriers. Raises MemoryFault if both are in one
        CTA.
        """
        assert bars is not None
        target = memory_access.shared_offsets(wave, self.bar_access, bars, 8, lanes)
        check_same_cta(wave, self.instruction, at, target, lanes)
        here = at[:, 0] // wave.shared_bytes == source[:, 0] // wave.shared_bytes
        if here.any():
            raise wave.fault(
                MemoryFault,
                "a copy to the CTA that it comes from, which compute-sanitizer takes for an error",
                self.instruction,
                int(lanes[here.argmax()]),
            )
        for i in range(len(lanes)):
            own = np.full(source.shape[1], lanes[i])
            try:
                reading = wave.history.begin(source[i], own, self.access.site)
            except Conflict as conflict:
                raise wave.conflict(conflict, self.instruction, "bulk read", own) from None

            def fetch(at: Lanes = source[i]) -> Array:
                return wave.shared_rows(_U32, 4)[at // PIECE]

            one = slice(i, i + 1)
            transfer = Load(wave, self.access, lanes[one], at[one], target[one], fetch, reading)
            start(wave, transfer)

    def _store(
        self,
        wave: Wave,
        lane: int,
        at: Lanes,
        addresses: Array,
        access: Access,
        inside: NDArray[np.bool_] | None,
    ) -> None:
        """Starts one lane's bulk copy from shared to global memory. ``at``: source offsets of
        16-byte pieces; ``addresses``: global address of each element (or vector) of ``access``,
        which is not written where ``inside`` is False.
        """

        def write(values: Array) -> None:
            rows: Array = values.reshape(-1).view(access.dtype)
            if access.vector > 1:
                rows = rows.reshape(-1, access.vector)
            places = addresses
            if inside is not None:
                rows, places = rows[inside], places[inside]
            if len(places):
                own = np.full(len(places), lane)
                memory_access.store_global(wave, access, places, rows, own)

        store = Store(wave, self.access, lane, at, write)
        if wave.causality is not None:
            places = addresses if inside is None else addresses[inside]
            own = np.full(len(places), lane)
            writes = memory_access.begin_bulk(wave, access, places, own, writes=True)
            store.target = [flight for flight, _ in writes]
            wave.copies.writes.append(store)
        start(wave, store)

    # -- tensors --------------------------------------------------------------------
    def _tensor(self, wave: Wave, own: Lanes, of: Callable[[Value], Array]) -> None:
        places = of(self.from_ if self.loads else self.to)
        shared = of(self.to if self.loads else self.from_)
        coordinates = np.stack([of(c).astype(np.int64) for c in self.coordinates], axis=1)
        offsets = [[int(o) for o in each] for each in zip(*map(of, self.offsets), strict=True)]
        bars = None if self.bar is None else of(self.bar)
        masks = None if self.mask is None else of(self.mask)
        for place in np.unique(places).tolist():
            part = np.flatnonzero(places == place)
            lanes = own[part]
            found = self._map(wave, place, int(lanes[0]))
            flat = memory_access.shared_offsets(wave, self.access, shared[part], PIECE, lanes)
            inner = flat % wave.shared_bytes
            memory_access.check_alignment(wave, self.access, inner, found.alignment, lanes)
            at = _pieces(found, inner + SHARED_BASE) - SHARED_BASE
            if int(at.max()) + PIECE > wave.shared_bytes:
                raise wave.fault(
                    MemoryFault,
                    f"out of bounds: a box of {found.nbytes} bytes in {wave.shared_bytes} bytes "
                    "of shared memory",
                    self.instruction,
                    int(lanes[int(at.max(axis=1).argmax())]),
                )
            at += (flat - inner)[:, None]
            where = coordinates[part].tolist()
            if self.im2col:
                boxes = self._columns(wave, found, where, [offsets[i] for i in part], lanes)
            else:
                boxes = [found.global_addresses(c) for c in where]
            addresses = np.stack([b[0] for b in boxes]).view(np.uint64)
            inside = np.stack([b[1] for b in boxes])
            access = self.elements[found.itemsize]
            self._tensor_bounds(wave, addresses, inside, found, lanes)
            if self.loads:
                given = None if bars is None else bars[part]
                chosen = None if masks is None else masks[part]
                self._load(wave, lanes, at, given, chosen, addresses, access, inside)
            else:
                if found.dims[0] * found.itemsize % PIECE:
                    raise wave.fault(
                        MemoryFault,
                        f"a store through a tensor map whose rows have {found.dims[0]} elements of "
                        f"{found.itemsize} bytes: hardware writes their last {PIECE} bytes whole",
                        self.instruction,
                        int(lanes[0]),
                    )
                for i, lane in enumerate(lanes.tolist()):
                    self._store(wave, lane, at[i], addresses[i], access, inside[i])

    def _columns(
        self,
        wave: Wave,
        found: TensorMap,
        where: list[list[int]],
        offsets: list[list[int]],
        lanes: Lanes,
    ) -> list[tuple[Lanes, NDArray[np.bool_]]]:
        columns = []
        for i, lane in enumerate(lanes.tolist()):
            try:
                columns.append(found.column_addresses(where[i], offsets[i]))
            except SpecError as error:
                raise wave.fault(MemoryFault, str(error), self.instruction, lane) from None
        return columns

    def _tensor_bounds(
        self,
        wave: Wave,
        addresses: Array,
        inside: NDArray[np.bool_],
        found: TensorMap,
        lanes: Lanes,
    ) -> None:
        if not inside.any():
            return
        used = addresses[inside]
        low, high = int(used.min()), int(used.max()) + found.itemsize
        if wave.memory.find(low, high - low) is None:
            raise wave.fault(
                MemoryFault,
                "the tensor map names memory that is not there: "
                + wave.memory.describe(low, high - low),
                self.instruction,
                int(lanes[0]),
                low,
            )

    def _map(self, wave: Wave, place: int, lane: int) -> TensorMap:
        """Returns the tensor map at generic address ``place``, in global memory or the kernel's
        parameters. Raises MemoryFault, which names ``lane``, if none is there, or one of another
        rank or mode than the instruction's.
        """
        data = b""
        if place % 64:
            raise wave.fault(
                MemoryFault, "a tensor map takes an address that is a multiple of 64",
                self.instruction, lane, place,
            )  # fmt: skip
        window = WINDOWS["param"]
        found = wave.memory.find(place, NBYTES)
        if found is not None:
            data = found.data[place - found.base :][:NBYTES].tobytes()
        elif window <= place < window + len(wave.params):
            data = wave.params[place - window :][:NBYTES]
        try:
            result = _decode(data)
        except SpecError as error:
            raise wave.fault(
                MemoryFault, f"no tensor map is here: {error}", self.instruction, lane, place
            ) from None
        if len(result.dims) != self.rank:
            raise wave.fault(
                MemoryFault, f"the tensor map has {len(result.dims)} dimensions, not {self.rank}",
                self.instruction, lane, place,
            )  # fmt: skip
        if result.im2col != self.im2col:
            modes = ("tile", "im2col")
            raise wave.fault(
                MemoryFault,
                f"the tensor map is of {modes[result.im2col]} mode, the copy of "
                f"{modes[self.im2col]} mode",
                self.instruction, lane, place,
            )  # fmt: skip
        return result


@lru_cache(maxsize=64)
def _decode(data: bytes) -> TensorMap:
    return TensorMap.decode(data)


def _pieces(found: TensorMap, starts: Lanes) -> Lanes:
    """Returns the shared addresses of the 16-byte pieces of a box of tensor map ``found`` whose
    copy begins at each shared address in ``starts``, as ``[starts, pieces]``.
    """
    step = PIECE // found.itemsize
    cache: dict[int, Lanes] = {}
    for start in np.unique(starts).tolist():
        cache[start] = found.shared_addresses(start)[::step]
    return np.stack([cache[s] for s in starts.tolist()])


def _fetcher(
    wave: Wave, access: Access, rows: Array, inside: NDArray[np.bool_] | None, own: Lanes
) -> Callable[[], Array]:
    """Returns a function that loads the elements (of the dtype of ``access``) at the global
    addresses ``rows``, and returns their bytes as a flat array of 32-bit words.

    ``own``: the issuing lane of each element. Elements where ``inside`` is False are not loaded,
    but zero; None: all are inside.
    """

    def fetch() -> Array:
        flat = rows.reshape(-1)
        if inside is None or inside.all():
            values = memory_access.load_global(wave, access, flat, own)
        else:
            which = inside.reshape(-1)
            values = np.zeros(len(flat), access.dtype)
            if which.any():
                values[which] = memory_access.load_global(wave, access, flat[which], own[which])
        return np.ascontiguousarray(values).reshape(-1).view(np.uint32)

    return fetch


# -- copies that arrive -----------------------------------------------------------------


def copy_arrive(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes cp.async.mbarrier.arrive: a lane arrives at an mbarrier when all cp.async copies that
    it has issued before are complete. Without ``.noinc``, the phase also waits for one more arrival
    of each lane.
    """
    form = [m for m in instruction.modifiers[3:] if m != "b64"]
    counts = form[:1] != ["noinc"]
    spaces = form if counts else form[1:]
    if instruction.modifiers[2] != "arrive" or spaces not in (["shared"], ["shared::cta"], []):
        raise kernel.error("this form is outside the subset", instruction)
    address = kernel.address(instruction.operands[0], instruction)
    access = Access(instruction, kernel.new_site(instruction), _U64, 1)
    guard = operate.guard_of(kernel, instruction)
    window = np.uint64(0 if spaces else WINDOWS["shared"])

    def operation(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        own = np.flatnonzero(wave.alive) if lanes is None else lanes
        if not len(own):
            return
        given = np.broadcast_to(address(wave, registers), wave.lanes.shape)[own]
        if window:
            given = given - window
        at = memory_access.shared_offsets(wave, access, given, 8, own)
        if counts:
            wave.mbarriers.add_pending(access, at, own)
        wave.copies.arrive(access, at, own)

    return operation, operation


# -- stores that count ------------------------------------------------------------------


def store_async(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes st.async, a store to a CTA of the cluster that signals its bytes to an mbarrier
    there.
    """
    form = [m for m in instruction.modifiers if m != "weak"]
    vector = int(form[3][1:]) if form[3:4] in (["v2"], ["v4"]) else 1
    type = form[-1]
    size = SIZES.get(type, 0)
    wanted = ["async", "shared::cluster", "mbarrier::complete_tx::bytes"]
    if vector > 1:
        wanted.append(f"v{vector}")
    if form != [*wanted, type] or size not in (4, 8) or size * vector > PIECE:
        raise kernel.error("this form is outside the subset", instruction)
    target, source, bar = instruction.operands
    sources = operand_items(source)
    if len(sources) != vector:
        raise kernel.error(f"takes {vector} sources, got {len(sources)}", instruction)
    dtype = np.dtype(f"u{size}")
    values = [kernel.value(s, f"b{8 * size}", instruction) for s in sources]
    to, signal = kernel.address(target, instruction), kernel.address(bar, instruction)
    site = kernel.new_site(instruction)
    access = Access(instruction, site, dtype, vector)
    bar_access = Access(instruction, site, _U64, 1)
    kernel.granule = min(kernel.granule, size)
    guard = operate.guard_of(kernel, instruction)

    def operation(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        own = np.flatnonzero(wave.alive) if lanes is None else lanes
        if not len(own):
            return

        def of(value: Value) -> Array:
            return np.broadcast_to(value(wave, registers), wave.lanes.shape)[own]

        at = memory_access.shared_offsets(wave, access, of(to), access.width, own)[:, None]
        bars = memory_access.shared_offsets(wave, bar_access, of(signal), 8, own)
        check_same_cta(wave, instruction, at, bars, own)
        data = np.stack([of(v) for v in values], axis=-1).astype(dtype)
        parts = 1 if wave.random is None else len(own)
        for part in np.array_split(np.arange(len(own)), parts):

            def fetch(rows: Array = data[part]) -> Array:
                return rows

            start(wave, Load(wave, access, own[part], at[part], bars[part], fetch))

    return operation, operation
