"""Profiler: counts instructions and memory traffic of launches that the interpreter runs.

A :class:`Profiler` is an :class:`~ptxgen.interp.run.machine.Observer`; :meth:`Profiler.kernels`
returns its counts. All counts are of PTX instructions, not SASS: ptxas reorders instructions,
merges some and drops most moves, but leaves memory accesses as they are.

Models
======
Instructions
    A *warp instruction* is executed by at least one lane of a warp, a *lane instruction* by one
    lane, whatever its guard. Lanes that wait (for others of the warp, for an mbarrier) count
    each time they try.
Global memory
    Moves in sectors of 32 bytes. A request (the lanes of a warp at one instruction) takes the
    distinct sectors that it touches; the ideal is as many as its distinct bytes would fill.
    Source: CUDA C++ Programming Guide, global memory; Nsight Compute's "sectors/request".
Shared memory
    32 banks of 4 bytes; a bank serves one word per wavefront, to all lanes that read it. Requests
    of 8 and 16 bytes per lane run as half-warps and quarter-warps, one after the other; loads run
    in parts twice as large if all participating lanes i and i ^ 1 of the warp, or all i and i ^ 2,
    read the same address. The ideal is one wavefront for each part with an active lane; all
    others are bank conflicts. An asynchronous copy writes shared memory as a store of its width
    would.
    Source: CUDA C++ Programming Guide, shared memory of compute capability 5.x and later; the
    parts of a warp: GTC 2019, S9593 (cuTENSOR); pairs: developer forums of NVIDIA, topic 77228
    (there for compute capability 7.x).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.interp.memory import access as memory_access
from ptxgen.interp.memory.access import Access
from ptxgen.interp.run.machine import Mask, Wave
from ptxgen.interp.run.program import Program
from ptxgen.interp.text.ptx import WARP, Instruction
from ptxgen.interp.units.kernel import Block

Array = NDArray[Any]
Ints = NDArray[np.int64]
Lanes = NDArray[np.int64]

SECTOR = 32
"""Bytes of a sector, the unit of global memory traffic."""
BANKS = 32
WORD = 4
"""Bytes of a shared-memory bank's word."""

CLASSES = (
    "fma", "tensor", "float", "integer", "move", "warp", "control", "barrier", "async copy",
    "global load", "global store", "shared load", "shared store", "local load", "local store",
    "param load", "generic load", "generic store", "atomic",
)  # fmt: skip
"""Instruction classes of a profile, in the order of its table."""

_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f64"}
_PACKED = {"f16x2", "bf16x2"}
_OPCODES = {
    opcode: kind
    for kind, opcodes in {
        "fma": ("fma",),
        "tensor": ("mma",),
        "move": ("mov", "cvt", "cvta", "selp", "mapa"),
        "warp": ("shfl", "vote", "match", "redux", "elect", "activemask", "setmaxnreg"),
        "control": ("bra", "brx", "call", "ret", "exit", "trap"),
        "barrier": ("bar", "barrier", "mbarrier", "fence", "membar", "griddepcontrol", "nanosleep"),
        "global load": ("prefetch",),
        "shared load": ("ldmatrix",),
        "shared store": ("stmatrix",),
        "atomic": ("atom", "red"),
    }.items()
    for opcode in opcodes
}
_SPACES = ("param", "global", "shared", "local")
_NO_FLOP = {"abs", "neg", "min", "max", "setp", "set", "copysign", "testp"}


def classify(instruction: Instruction) -> str:
    """Returns the class of an instruction, one of :data:`CLASSES`."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _OPCODES:
        return _OPCODES[opcode]
    bases = [m.partition("::")[0] for m in modifiers]
    if opcode in ("ld", "ldu", "st"):
        space = next(
            (b for b in bases if b in _SPACES), "global" if "const" in bases else "generic"
        )
        return f"{space} {'store' if opcode == 'st' else 'load'}"
    if opcode == "cp":
        return "barrier" if {"commit_group", "wait_group", "wait_all"} & {*bases} else "async copy"
    if opcode == "wgmma":
        return "tensor" if bases[:1] == ["mma_async"] else "barrier"
    if modifiers and modifiers[-1] in _FLOATS:
        return "fma" if opcode == "mad" else "float"
    return "integer"


def _flop(instruction: Instruction, kind: str) -> int:
    """Returns the FLOP of one lane: an fma counts two, comparisons count none."""
    if kind == "tensor":
        shape = next((f for m in instruction.modifiers if (f := _SHAPE.fullmatch(m))), None)
        lanes = 4 * WARP if instruction.opcode == "wgmma" else WARP  # that share the product
        return 0 if shape is None else 2 * int(shape[1]) * int(shape[2]) * int(shape[3]) // lanes
    packed = 2 if _PACKED.intersection(instruction.modifiers) else 1
    if kind == "fma":
        return 2 * packed
    return packed if kind == "float" and instruction.opcode not in _NO_FLOP else 0


_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


# -- results ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Count:
    """Number of executions, counted by warps and by lanes."""

    warps: int = 0
    lanes: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.warps + other.warps, self.lanes + other.lanes)


@dataclass(frozen=True, slots=True)
class Site:
    """Traffic of one memory instruction in one state space."""

    line: int
    """Line of the PTX text, from 1."""
    text: str
    """Text of the instruction."""
    name: str
    """Opcode with all modifiers."""
    space: str
    """State space: global or shared."""
    kind: str
    """Kind of access: load, store or async."""
    width: int
    """Bytes per lane and access."""
    hot: bool
    """Whether the instruction is in the main loop."""
    requests: int
    """Executions of the instruction by warps with at least one active lane; of a bulk copy, the
    copies.
    """
    lanes: int
    bytes: int
    """Bytes that the lanes request, ``lanes * width``."""
    units: int
    """Sectors (global memory) or wavefronts (shared memory)."""
    ideal: int
    """Sectors or wavefronts that the same accesses would take if they were coalesced, or had no
    bank conflicts.
    """
    lines: tuple[int, ...] = ()
    """CUDA line of the instruction, then the lines of the calls that it was inlined at; empty
    without line information.
    """
    cuda: str = ""
    """CUDA source line, as text, of the innermost call that the instruction was inlined at, or else
    of the instruction itself; empty without source.
    """

    @property
    def excess(self) -> int:
        """Sectors or wavefronts above the fewest possible."""
        return self.units - self.ideal


@dataclass(frozen=True, slots=True)
class GlobalTraffic:
    """Global memory traffic of a kernel. ``requests`` are executions of memory instructions by
    warps, and bulk copies; ``sectors`` the 32-byte sectors that they transfer; ``ideal_sectors``
    those if all accesses were coalesced. ``loaded`` and ``stored`` count the bytes that lanes
    request, ``touched_loads`` and ``touched_stores`` distinct bytes.
    """

    requests: int
    sectors: int
    ideal_sectors: int
    loaded: int
    """Bytes that the lanes request; a byte that n lanes request counts n times."""
    stored: int
    touched_loads: int
    """Distinct bytes that loads read."""
    touched_stores: int

    @property
    def moved(self) -> int:
        """Bytes of all sectors that are transferred."""
        return self.sectors * SECTOR


@dataclass(frozen=True, slots=True)
class SharedTraffic:
    """Shared memory traffic of a kernel: executions of memory instructions by warps (``requests``),
    ``wavefronts`` that they take, those without bank conflicts (``ideal_wavefronts``), and
    ``bytes`` that lanes request.
    """

    requests: int
    wavefronts: int
    ideal_wavefronts: int
    bytes: int

    @property
    def conflicts(self) -> int:
        """Additional wavefronts due to bank conflicts."""
        return self.wavefronts - self.ideal_wavefronts


@dataclass(frozen=True, slots=True)
class Copies:
    """Executions of asynchronous copies, of commits of their groups, and of waits for them, each
    counted once per warp; ``bytes`` that were copied.
    """

    copies: int
    commits: int
    waits: int
    bytes: int


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """Instruction and traffic counts of all launches of one kernel."""

    name: str
    launches: int
    ctas: int
    threads: int
    """Threads per CTA."""
    mix: Mapping[str, Count]
    """Counts by opcode with all modifiers, most frequent first."""
    classes: Mapping[str, Count]
    loop: Mapping[str, Count]
    """Counts by class in the main loop, the innermost loop around most of the arithmetic."""
    total: Count
    partial: int
    """Warp instructions in which some lane of the warp that has not exited is inactive."""
    cta_barriers: int
    """Arrivals of warps at CTA barriers."""
    warp_barriers: int
    flop: int
    copies: Copies
    global_memory: GlobalTraffic
    shared_memory: SharedTraffic
    sites: tuple[Site, ...] = field(repr=False)
    """Memory instructions in the order of the PTX text."""

    @property
    def lanes_per_instruction(self) -> float:
        """Average active lanes of a warp instruction; 32 without divergence."""
        return self.total.lanes / max(self.total.warps, 1)

    def site(self, line: int, space: str) -> Site:
        """Returns the traffic at a PTX line in a state space; raises KeyError if there is none."""
        for site in self.sites:
            if (site.line, site.space) == (line, space):
                return site
        raise KeyError(f"line {line} does not access {space} memory")

    def json(self) -> dict[str, Any]:
        """Returns all counts as JSON values: integers, strings, lists and dicts."""
        value = asdict(self)
        value["sites"] = [{**site, "lines": list(site["lines"])} for site in value["sites"]]
        return value

    def table(self, sites: int = 10) -> str:
        """Returns the profile as a table in text. ``sites``: the most memory instructions to list
        of those with more sectors or wavefronts than necessary.
        """
        return "\n".join((*self._head(), "", *self._instructions(), "", *self._accesses(sites)))

    def _head(self) -> Iterable[str]:
        launches = f"{self.launches} launches of " if self.launches != 1 else ""
        yield f"{self.name}: {launches}{_plural(self.ctas // max(self.launches, 1), 'CTA')}"
        memory, shared, warps = self.global_memory, self.shared_memory, -(-self.threads // WARP)
        yield from _pairs(
            [
                ("threads", f"{self.threads} per CTA, {_plural(warps, 'warp')}"),
                ("global memory", f"{memory.loaded} bytes asked for by loads, {memory.stored} by "
                 f"stores; {memory.moved} moved in {memory.sectors} sectors, of which "
                 f"{memory.ideal_sectors} are needed"),
                ("", f"{memory.touched_loads} distinct bytes read, "
                 f"{memory.touched_stores} written"),
                ("shared memory", f"{shared.requests} requests of {shared.bytes} bytes: "
                 f"{shared.wavefronts} wavefronts, of which {shared.conflicts} by bank conflicts"),
                ("copies", f"{self.copies.copies} cp.async of {self.copies.bytes} bytes, "
                 f"{self.copies.commits} commits, {self.copies.waits} waits"),
                ("barriers", f"{self.cta_barriers} arrivals of warps at the CTA's, "
                 f"{self.warp_barriers} within a warp"),
                ("divergence", f"{self.lanes_per_instruction:.2f} lanes per warp instruction; "
                 f"{self.partial} of {self.total.warps} without all lanes"),
            ]
        )  # fmt: skip

    def _instructions(self) -> Iterable[str]:
        arithmetic = self._arithmetic(self.classes), self._arithmetic(self.loop)
        unit = "fma" if self.classes.get("fma") else "tensor"
        rows = []
        for name, of, loop in (
            *((c, self.classes[c], self.loop.get(c, Count())) for c in self.classes),
            ("total", self.total, sum(self.loop.values(), Count())),
        ):
            rows.append(
                (
                    name,
                    of.warps,
                    of.lanes,
                    _ratio(of.lanes, arithmetic[0]),
                    loop.warps,
                    _ratio(loop.lanes, arithmetic[1]),
                )
            )
        head = ("instructions", "by warps", "by lanes", f"per {unit}", "main loop", f"per {unit}")
        yield from _columns(head, rows)

    @staticmethod
    def _arithmetic(classes: Mapping[str, Count]) -> int:
        of = classes.get("fma") or classes.get("tensor") or Count()
        return of.lanes

    def _accesses(self, sites: int) -> Iterable[str]:
        kinds: dict[tuple[str, str, str, int, bool], list[Site]] = {}
        for site in self.sites:
            key = site.name, site.space, site.kind, site.width, site.hot
            kinds.setdefault(key, []).append(site)
        rows: list[tuple[object, ...]] = []
        for (name, space, _, _, hot), of in sorted(kinds.items(), key=lambda k: k[0][1:]):
            requests, units = sum(s.requests for s in of), sum(s.units for s in of)
            ideal = sum(s.ideal for s in of)
            place = "main loop" if hot else ""
            per = f"{units / max(requests, 1):.2f}", f"{ideal / max(requests, 1):.2f}"
            rows.append((name, space, place, len(of), requests, units, *per))
        head = ("access", "memory", "", "sites", "requests", "sectors/wavefronts", "each", "ideal")
        yield from _columns(head, rows)
        bad = sorted((s for s in self.sites if s.excess), key=lambda s: (-s.excess, s.line))
        yield ""
        if not bad:
            yield "no site takes more sectors or wavefronts than the ideal"
            return
        shown = bad[:sites]
        yield (
            f"{_plural(len(bad), 'site')} above the ideal"
            + (f", the worst {len(shown)}" if 0 < len(shown) < len(bad) else "")
        )
        if not shown:
            return
        lines = any(s.lines for s in shown)
        rows = [
            (
                s.line,
                s.space,
                "main loop" if s.hot else "",
                s.requests,
                f"{s.units / s.requests:.2f}",
                f"{s.ideal / s.requests:.2f}",
                *((s.lines[min(1, len(s.lines) - 1)] if s.lines else "", s.cuda) if lines else ()),
                s.text,
            )
            for s in shown
        ]
        cuda = ("CUDA line", "text") if lines else ()
        yield from _columns(
            ("PTX line", "memory", "", "requests", "each", "ideal", *cuda, "instruction"), rows
        )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def _pairs(items: Sequence[tuple[str, str]]) -> Iterable[str]:
    width = max(len(name) for name, _ in items)
    return (f"  {name.ljust(width)}  {value}" for name, value in items)


def _columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterable[str]:
    """Yields lines with aligned columns; columns of numbers are right-aligned."""
    body = [[str(cell) for cell in row] for row in rows]
    right = [
        all(row[i] == "-" or row[i].replace(".", "", 1).isdigit() for row in body)
        for i in range(len(head))
    ]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    for row in ([*head], *body):
        cells = zip(row, widths, right, strict=True)
        yield "  " + "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in cells).rstrip()


# -- models -----------------------------------------------------------------------------


def _warps(count: int, address: Array, lanes: Lanes | None) -> tuple[Ints, NDArray[np.bool_]]:
    """Converts an access of a wave of ``count`` lanes to rows by warp: returns addresses and active
    lanes, ``[warps, 32]`` each, of the warps with at least one of ``lanes`` (None: all).
    """
    flat = address.astype(np.int64)
    if lanes is None:
        rows = np.broadcast_to(flat, count).reshape(-1, WARP)
        return rows, np.ones(rows.shape, np.bool_)
    full = np.zeros(count, np.int64)
    here = np.zeros(count, np.bool_)
    full[lanes] = flat
    here[lanes] = True
    rows, mask = full.reshape(-1, WARP), here.reshape(-1, WARP)
    kept = mask.any(axis=1)
    return rows[kept], mask[kept]


def is_bulk(instruction: Instruction) -> bool:
    """Whether ``instruction`` is a bulk copy, which the copy engine executes."""
    return instruction.opcode == "cp" and instruction.modifiers[1:2] == ("bulk",)


def engine_sectors(
    count: int, address: Array, lanes: Lanes | None, width: int
) -> tuple[int, int, int]:
    """Returns (copies, sectors, ideal sectors) of one execution of a bulk copy instruction by a
    wave of ``count`` lanes. ``address``: addresses of pieces of ``width`` bytes; ``lanes``: the
    lane that copies each piece (None: lane i copies piece i). All pieces of one lane are one copy.
    """
    who = np.arange(count) if lanes is None else lanes
    pieces = np.unique(np.stack((who, address.astype(np.int64))), axis=1)
    copies, each = np.unique(pieces[0], return_counts=True)
    touched = np.unique(np.stack((pieces[0], pieces[1] // SECTOR)), axis=1)
    return len(copies), touched.shape[1], int((-(-each * width // SECTOR)).sum())


def _parts(rows: Ints, mask: NDArray[np.bool_], size: int) -> Ints:
    """Splits the addresses ``rows``, ``[warps, 32]``, into rows of ``size`` lanes; drops rows
    without an active lane in ``mask``.

    Inactive lanes get the address of an active lane of their row, so that they count no traffic.
    """
    rows, mask = rows.reshape(-1, size), mask.reshape(-1, size)
    kept = mask.any(axis=1)
    rows, mask = rows[kept], mask[kept]
    spare = rows[np.arange(len(rows)), mask.argmax(axis=1)]
    return np.where(mask, rows, spare[:, None])


def _distinct(rows: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Sorts the values in each row; returns the rows, and a mask that is True at the first of equal
    values, so that its sum counts distinct values.
    """
    rows = np.sort(rows, axis=1)
    first = np.ones(rows.shape, np.bool_)
    np.not_equal(rows[:, 1:], rows[:, :-1], out=first[:, 1:])
    return rows, first


def sectors(count: int, address: Array, lanes: Lanes | None, width: int) -> tuple[int, int, int]:
    """Returns (requests, sectors, ideal sectors) of one global access by a wave of ``count`` lanes:
    ``width`` bytes at the ``address`` of each of ``lanes`` (None: all). Each warp is one request.
    """
    rows = _parts(*_warps(count, address, lanes), WARP)
    _, first = _distinct(rows)
    nbytes = first.sum(axis=1) * width
    _, touched = _distinct(rows // SECTOR)
    return len(rows), int(touched.sum()), int((-(-nbytes // SECTOR)).sum())


def wavefronts(
    count: int, address: Array, lanes: Lanes | None, width: int, *, pairs: bool = False
) -> tuple[int, int, int]:
    """Returns (requests, wavefronts, ideal wavefronts) of one shared-memory access by a wave of
    ``count`` lanes: ``width`` bytes at the ``address`` of each of ``lanes`` (None: all). Each warp
    is one request; the ideal is free of bank conflicts.

    ``pairs``: whether neighbouring lanes with equal addresses are served together (loads).
    """
    rows, mask = _warps(count, address, lanes)
    words = max(width // WORD, 1)
    paired = np.zeros(len(rows), np.bool_)
    if pairs and words > 1:
        for distance in (1, 2):
            other = np.arange(WARP) ^ distance
            same = (rows == rows[:, other]) | ~(mask & mask[:, other])
            paired |= same.all(axis=1)
    total = ideal = 0
    for chosen, size in ((~paired, WARP // words), (paired, 2 * WARP // words)):
        if not chosen.any():
            continue
        parts = _parts(rows[chosen], mask[chosen], size)
        each = (parts // WORD)[:, :, None] + np.arange(words)
        values, first = _distinct(each.reshape(len(parts), -1))
        place = np.arange(len(parts))[:, None] * BANKS + values % BANKS
        busy = np.bincount(place[first], minlength=len(parts) * BANKS).reshape(-1, BANKS)
        total += int(busy.max(axis=1).sum())
        ideal += len(parts)
    return len(rows), total, ideal


class _SiteCounter:
    """Traffic counters of one memory instruction in one state space. Caches the counts of the last
    address pattern, as most accesses repeat it.
    """

    __slots__ = ("access", "ideal", "kind", "known", "lanes", "model", "requests", "space", "units")

    def __init__(self, access: Access, space: str, kind: str) -> None:
        self.access, self.space, self.kind = access, space, kind
        loads = kind == "load" and access.instruction.opcode != "ldmatrix"
        self.model = sectors if space == "global" else partial(wavefronts, pairs=loads)
        if is_bulk(access.instruction):
            self.model = engine_sectors
        self.requests = self.lanes = self.units = self.ideal = 0
        self.known: tuple[int, Lanes | None, int, Array, tuple[int, int, int]] | None = None

    def add(self, count: int, address: Array, lanes: Lanes | None, width: int) -> None:
        """Counts one access by a wave of ``count`` lanes: ``width`` bytes at the ``address`` of
        each of ``lanes`` (None: all).
        """
        start = int(address[0])
        # Sectors repeat every 32 bytes; banks only turn when all addresses move by words.
        phase = start % (SECTOR if self.space == "global" else WORD)
        pattern = address - address[0]
        known = self.known
        if (
            known is None
            or known[0] != count
            or known[2] != phase * 64 + width
            or not _same(known[1], lanes)
            or not np.array_equal(known[3], pattern)
        ):
            found = self.model(count, address, lanes, width)
            known = self.known = (count, lanes, phase * 64 + width, pattern, found)
        requests, units, ideal = known[4]
        self.requests += requests
        self.units += units
        self.ideal += ideal
        self.lanes += count if lanes is None else len(lanes)


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


# -- the observer -----------------------------------------------------------------------


class _KernelCounter:
    """Counters of all launches of one kernel."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.launches = self.ctas = self.threads = 0
        self.visits: Ints = np.zeros((len(program.blocks), 3), np.int64)
        """Executions by segment: of warps, of lanes, of warps with an inactive lane that has not
        exited.
        """
        self.sites: dict[tuple[int, str], _SiteCounter] = {}
        self.bytes = {"load": 0, "store": 0}
        self.touched: dict[str, dict[int, NDArray[np.bool_]]] = {"load": {}, "store": {}}

    def touch(
        self, wave: memory_access.Wave, kind: str, address: Array, width: int, lanes: int
    ) -> None:
        """Counts the bytes of a global access of ``kind`` load or store, ``width`` for each of
        ``lanes`` lanes, and marks those at each ``address`` as touched. Leaves bytes out of bounds
        unmarked; the access faults later.
        """
        self.bytes[kind] += width * lanes
        flat = np.asarray(address, np.uint64)
        while flat.size:
            found = wave.memory.find(int(flat.min()), width)
            if found is None:
                return
            inside = flat <= np.uint64(found.end - width)
            marks = self.touched[kind].get(found.base)
            if marks is None:
                marks = self.touched[kind][found.base] = np.zeros(len(found.data), np.bool_)
            offsets = flat[inside].astype(np.int64) - found.base
            marks[: len(marks) // width * width].reshape(-1, width)[offsets // width] = True
            flat = flat[~inside]


class Profiler:
    """Observer that counts instructions and traffic; pass it to a device or as
    ``Settings(observer=...)``.
    """

    def __init__(self) -> None:
        self._kernels: dict[int, _KernelCounter] = {}
        self._wave: Wave | None = None
        self._counter: _KernelCounter

    def segment(self, wave: Wave, block: Block, mask: Mask) -> None:
        """Counts the warps and lanes of ``mask`` that run ``block``."""
        if wave is not self._wave:
            self._enter(wave)
        visits = self._counter.visits[block.order]
        if mask is None:
            count = len(wave.lanes)
            visits += (count // WARP, count, 0)
            return
        rows = mask.reshape(-1, WARP)
        here = rows.any(axis=1)
        missing = (wave.alive.reshape(-1, WARP) & ~rows).any(axis=1) & here
        visits += (
            np.count_nonzero(here),
            np.count_nonzero(mask),
            np.count_nonzero(missing),
        )

    def memory(
        self,
        wave: memory_access.Wave,
        access: Access,
        space: str,
        kind: str,
        address: Array,
        lanes: Lanes | None,
    ) -> None:
        """Counts one access of ``lanes`` (None: all) to ``space``, global or shared; ``kind``:
        load, store or async. Ignores atomics, whose lanes the interpreter runs one by one.
        """
        opcode = access.instruction.opcode
        if opcode in ("atom", "red"):
            return  # one lane after the other here, which says nothing about hardware
        counter = self._counter
        count = len(wave.lanes)
        active = count if lanes is None else len(lanes)
        if not active:
            return
        if space == "global":
            counter.touch(wave, kind, address, access.width, active)
        if opcode == "cp":
            kind = "async"
            if is_bulk(access.instruction):  # one copy has many lines, of any phase
                address = np.broadcast_to(address, active)
        site = counter.sites.get((access.site, space))
        if site is None:
            site = counter.sites[access.site, space] = _SiteCounter(access, space, kind)
        site.add(count, address, lanes, access.width)

    def _enter(self, wave: Wave) -> None:
        self._wave = wave
        counter = self._kernels.get(id(wave.program))
        if counter is None:
            counter = self._kernels[id(wave.program)] = _KernelCounter(wave.program)
        self._counter = counter
        counter.launches += wave.ctas.start == 0
        counter.ctas += len(wave.ctas)
        x, y, z = wave.block
        counter.threads = x * y * z

    def kernels(self, sources: Mapping[str, str] | None = None) -> tuple[KernelProfile, ...]:
        """Returns the profile of each kernel so far, in the order of first launches.

        ``sources``: CUDA source by kernel name, to quote lines if the PTX has line information.
        """
        self._wave = None
        return tuple(
            _summary(counter, (sources or {}).get(counter.program.name, ""))
            for counter in self._kernels.values()
        )


# -- adding up --------------------------------------------------------------------------


def _main_loop(program: Program, visits: Ints) -> range:
    """Returns the positions, in the order of ``program.blocks``, of the main loop's basic blocks:
    the innermost loop around the basic block with the most FLOP (if none has any, around the one
    that the most lanes executed). Empty if that is in no loop.

    ``visits``: counts ``[basic blocks, 3]``: warps that executed each basic block, lanes that did,
    and warps with an inactive lane.
    """
    work = [
        int(lanes) * (1 + (sum(_flop(i, classify(i)) for i in block.instructions) << 32))
        for block, (_, lanes, _) in zip(program.blocks, visits.tolist(), strict=True)
    ]
    heart = work.index(max(work))
    loops = [
        range(target.order, block.order + 1)
        for block in program.blocks
        if (target := getattr(block, "target", None)) is not None
        and target.order <= heart <= block.order
    ]
    return min(loops, key=len, default=range(0))


def _summary(counter: _KernelCounter, source: str) -> KernelProfile:
    program = counter.program
    hot = _main_loop(program, counter.visits)
    mix: dict[str, Count] = {}
    classes: dict[str, Count] = {}
    loop: dict[str, Count] = {}
    total = Count()
    flop = torn = 0
    order: dict[int, int] = {}
    for block, (warps, lanes, missing) in zip(program.blocks, counter.visits.tolist(), strict=True):
        for instruction in block.instructions:
            order[id(instruction)] = block.order
            if not warps:
                continue
            count, kind = Count(warps, lanes), classify(instruction)
            mix[instruction.name] = mix.get(instruction.name, Count()) + count
            classes[kind] = classes.get(kind, Count()) + count
            if block.order in hot:
                loop[kind] = loop.get(kind, Count()) + count
            total += count
            flop += lanes * _flop(instruction, kind)
            torn += missing
    lines = locations(program.module.text) if source else {}
    text = source.splitlines()
    sites = tuple(
        _site(counter.sites[key], order, hot, lines, text)
        for key in sorted(counter.sites, key=lambda k: (program.site(k[0]).line, k[1]))
    )
    return KernelProfile(
        name=program.name,
        launches=counter.launches,
        ctas=counter.ctas,
        threads=counter.threads,
        mix=dict(sorted(mix.items(), key=lambda item: (-item[1].lanes, item[0]))),
        classes={name: classes[name] for name in CLASSES if name in classes},
        loop={name: loop[name] for name in CLASSES if name in loop},
        total=total,
        partial=torn,
        cta_barriers=_total(mix, lambda n: n[0] in ("bar", "barrier") and n[1] not in _INNER),
        warp_barriers=_total(mix, lambda n: n[:2] == ["bar", "warp"]),
        flop=flop,
        copies=Copies(
            classes.get("async copy", Count()).warps,
            _total(mix, lambda n: n[:2] == ["cp", "async"] and "commit_group" in n),
            _total(mix, lambda n: n[:2] == ["cp", "async"] and "wait_" in ".".join(n)),
            sum(s.bytes for s in sites if (s.space, s.kind) == ("shared", "async"))
            + sum(s.bytes for s in sites if s.space == "global" and ".bulk" in s.name),
        ),
        global_memory=_global(counter, [s for s in sites if s.space == "global"]),
        shared_memory=_shared([s for s in sites if s.space == "shared"]),
        sites=sites,
    )


_INNER = ("warp", "cluster")


def _total(mix: Mapping[str, Count], wanted: Callable[[list[str]], bool]) -> int:
    return sum(count.warps for name, count in mix.items() if wanted(name.split(".")))


def _site(
    counter: _SiteCounter,
    order: Mapping[int, int],
    hot: range,
    locations: Mapping[int, tuple[int, ...]],
    source: Sequence[str],
) -> Site:
    instruction = counter.access.instruction
    lines = locations.get(instruction.line, ())
    shown = lines[min(1, len(lines) - 1)] if lines else 0
    return Site(
        line=instruction.line,
        text=" ".join(instruction.text.split()),
        name=instruction.name,
        space=counter.space,
        kind=counter.kind,
        width=counter.access.width,
        hot=order[id(instruction)] in hot,
        requests=counter.requests,
        lanes=counter.lanes,
        bytes=counter.lanes * counter.access.width,
        units=counter.units,
        ideal=counter.ideal,
        lines=lines,
        cuda=source[shown - 1].strip() if 0 < shown <= len(source) else "",
    )


def _global(counter: _KernelCounter, sites: Sequence[Site]) -> GlobalTraffic:
    touched = {
        kind: sum(int(marks.sum()) for marks in of.values()) for kind, of in counter.touched.items()
    }
    return GlobalTraffic(
        requests=sum(s.requests for s in sites),
        sectors=sum(s.units for s in sites),
        ideal_sectors=sum(s.ideal for s in sites),
        loaded=counter.bytes["load"],
        stored=counter.bytes["store"],
        touched_loads=touched["load"],
        touched_stores=touched["store"],
    )


def _shared(sites: Sequence[Site]) -> SharedTraffic:
    return SharedTraffic(
        requests=sum(s.requests for s in sites),
        wavefronts=sum(s.units for s in sites),
        ideal_wavefronts=sum(s.ideal for s in sites),
        bytes=sum(s.bytes for s in sites),
    )


_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_DEPTH = 16


def locations(text: str) -> dict[int, tuple[int, ...]]:
    """Maps each PTX line to its CUDA line, followed by the lines of the calls that it was inlined
    at.

    In PTX, ``inlined_at`` names a position that has a ``.loc`` of its own (PTX ISA, .loc).
    """
    above: dict[tuple[str, ...], tuple[str, ...] | None] = {}
    found: dict[int, tuple[int, ...]] = {}
    chain: tuple[int, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LOC.search(line)
        if match is not None:
            here, at = match.groups()[:3], match.groups()[3:]
            above[here] = None if at[0] is None else at
            place: tuple[str, ...] | None = here
            lines: list[int] = []
            while place is not None and len(lines) < _DEPTH:
                lines.append(int(place[1]))
                place = above.get(place)
            chain = tuple(lines)
        elif chain:
            found[number] = chain
    return found
