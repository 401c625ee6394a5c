"""Control flow of a kernel: straight-line segments, their order, and assigned registers.

Lanes wait for each other at segments. Where lanes of a warp diverge, those at the first segment in
a *weak topological order* run (Bourdoncle 1993): every loop is contiguous in it, and code behind a
loop or a branch comes later. So lanes that are ahead wait for those behind, and all reconverge at
the latest where their paths join (thread frontiers, Diamos et al. 2011), as on hardware, where the
compiler reconverges them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxgen.errors import PtxError
from ptxgen.interp.text.ptx import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)


@dataclass(slots=True, eq=False)
class Segment:
    """Instructions that run one after the other.

    A segment ends behind a branch, an exit, or an instruction at which lanes may have to wait;
    ``target`` is the segment that its branch goes to, ``following`` the one below it.
    """

    index: int
    instructions: list[Instruction]
    kind: str = "fall"
    """Kind of its end: fall, branch, exit or wait (see :func:`waits`)."""
    target: Segment | None = None
    following: Segment | None = None
    order: int = -1
    """Position in the weak topological order; lower runs first."""
    next: list[Segment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Flow:
    """The segments of a kernel, in the order of its text."""

    segments: tuple[Segment, ...]
    globals: frozenset[str]
    """Registers that carry a value from one segment to another; all others are local to one."""
    unwritten: tuple[str, ...]
    """Registers that may be read, on some path, before anything has been written to them."""
    doubtful: frozenset[str]
    """Registers whose value may be undefined: ``unwritten``, and all computed from them."""
    matrices: frozenset[str]
    """Registers that a wgmma uses: accumulators and fragments of A."""


def waits(instruction: Instruction) -> bool:
    """Whether lanes may have to wait at ``instruction``; a segment then holds nothing else."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    return (
        opcode in ("bar", "barrier", "shfl", "vote", "match", "redux", "elect")
        or (opcode == "mbarrier" and modifiers[0] in ("try_wait", "test_wait"))
        or (opcode in ("wgmma", "mma", "ldmatrix", "stmatrix", "setmaxnreg"))
    )


def analyse(entry: Entry, file: str) -> Flow:
    """The flow of ``entry``. Raises PtxError when control can run off its end."""
    segments, labels = _cut(entry)
    for at, segment in enumerate(segments):
        below = segments[at + 1] if at + 1 < len(segments) else None
        last = segment.instructions[-1] if segment.instructions else None
        if segment.kind == "branch":
            assert last is not None
            name = last.operands[0]
            if not isinstance(name, Symbol) or name.name not in labels:
                raise PtxError("a branch takes a label", file=file, line=last.line, text=last.text)
            segment.target = segments[labels[name.name]]
            segment.next.append(segment.target)
        if segment.kind in ("fall", "wait") or (last is not None and last.guard is not None):
            if below is None:
                raise PtxError(
                    f"control runs off the end of {entry.name}; ret or exit is missing",
                    file=file,
                    line=last.line if last else entry.line,
                    text=last.text if last else "",
                )
            segment.following = below
            if below not in segment.next:
                segment.next.append(below)
    for order, segment in enumerate(_weak_topological_order(segments)):
        segment.order = order
    used = frozenset(n for s in segments for i in s.instructions for n in matrices(i))
    reading = [[tuple(reads(i)) for i in s.instructions] for s in segments]
    carried, unwritten = _registers(segments, reading)
    doubtful = _made_of(segments, reading, unwritten)
    return Flow(tuple(segments), carried, tuple(sorted(unwritten)), doubtful, used)


def _cut(entry: Entry) -> tuple[list[Segment], dict[str, int]]:
    segments: list[Segment] = []
    labels: dict[str, int] = {}
    current: list[Instruction] = []
    branches = {
        item.operands[0].name
        for item in entry.body
        if isinstance(item, Instruction)
        and item.opcode == "bra"
        and isinstance(item.operands[0], Symbol)
    }

    def close(kind: str) -> None:
        nonlocal current
        segments.append(Segment(len(segments), current, kind))
        current = []

    for item in entry.body:
        if isinstance(item, Label):
            if item.name not in branches:
                continue  # a mark of line information
            if current:
                close("fall")
            labels[item.name] = len(segments)
        elif waits(item):
            if current:
                close("fall")
            current.append(item)
            close("wait")
        else:
            current.append(item)
            if item.opcode == "bra":
                close("branch")
            elif item.opcode in ("ret", "exit", "trap"):
                close("exit")
    if current or len(segments) in labels.values():
        close("fall")
    return segments, labels


def _weak_topological_order(segments: list[Segment]) -> list[Segment]:
    """Bourdoncle's order, by strongly connected components; without recursion in Python's sense.

    A component that is a loop is laid out contiguously: its head (where it is entered),
    then the rest of it without the edges back to the head, in the same manner.
    """
    order: list[Segment] = []
    # A work list of (nodes, entry); each is replaced by its components in topological order.
    stack: list[tuple[set[int], Segment]] = [({s.index for s in segments}, segments[0])]
    while stack:
        nodes, entry = stack.pop()
        components = _components(segments, nodes, entry)
        work: list[tuple[set[int], Segment]] = []
        for component in components:
            if len(component) == 1:
                work.append(({component[0].index}, component[0]))
            else:
                work.append(({s.index for s in component}, component[-1]))
        if len(work) == 1 and len(work[0][0]) == len(nodes) > 1:  # one loop: take out its head
            head = work[0][1]
            order.append(head)
            rest = nodes - {head.index}
            for segment in _entries(segments, rest, head):
                if segment.index in rest:
                    reached = _reachable(segments, rest, segment)
                    stack.append((reached, segment))
                    rest -= reached
            continue
        if len(nodes) == 1:
            order.append(entry)
            continue
        stack.extend(reversed(work))
    return order


def _entries(segments: list[Segment], nodes: set[int], head: Segment) -> list[Segment]:
    return [s for s in head.next if s.index in nodes]


def _reachable(segments: list[Segment], nodes: set[int], start: Segment) -> set[int]:
    seen, work = {start.index}, [start]
    while work:
        for following in work.pop().next:
            if following.index in nodes and following.index not in seen:
                seen.add(following.index)
                work.append(following)
    return seen


def _components(segments: list[Segment], nodes: set[int], entry: Segment) -> list[list[Segment]]:
    """Tarjan's strongly connected components within ``nodes``, in topological order.

    In each, the node that was entered first comes last.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[Segment] = []
    on_path: set[int] = set()
    found: list[list[Segment]] = []
    starts = [entry] + [segments[i] for i in sorted(nodes)]
    for start in starts:
        if start.index in index:
            continue
        work: list[tuple[Segment, Iterator[Segment]]] = []

        def visit(node: Segment, work: list[tuple[Segment, Iterator[Segment]]] = work) -> None:
            index[node.index] = low[node.index] = len(index)
            path.append(node)
            on_path.add(node.index)
            work.append((node, iter(node.next)))

        visit(start)
        while work:
            node, following = work[-1]
            for successor in following:
                if successor.index not in nodes:
                    continue
                if successor.index not in index:
                    visit(successor)
                    break
                if successor.index in on_path:
                    low[node.index] = min(low[node.index], index[successor.index])
            else:
                work.pop()
                if work:
                    above = work[-1][0].index
                    low[above] = min(low[above], low[node.index])
                if low[node.index] == index[node.index]:
                    component = []
                    while True:
                        member = path.pop()
                        on_path.discard(member.index)
                        component.append(member)
                        if member is node:
                            break
                    found.append(component)
    return found[::-1]


# -- registers ------------------------------------------------------------------------


def named(operand: Operand) -> Iterator[str]:
    """The registers that ``operand`` mentions."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Negated):
        yield operand.register.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from named(item)
    elif isinstance(operand, Pair):
        yield from named(operand.first)
        yield from named(operand.second)
    elif isinstance(operand, Address):
        yield from named(operand.base)
        for item in operand.coordinates:
            yield from named(item)


_NO_DESTINATION = frozenset(
    [
        "st",
        "red",
        "bar",
        "barrier",
        "bra",
        "ret",
        "exit",
        "trap",
        "cp",
        "fence",
        "membar",
        "griddepcontrol",
        "stmatrix",
        "prefetch",
        "discard",
        "nanosleep",
        "setmaxnreg",
        "pmevent",
        "brkpt",
        "prefetchu",
        "applypriority",
    ]
)


def destinations(instruction: Instruction) -> int:
    """Returns the number of leading operands that ``instruction`` writes: 0 or 1."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "mbarrier":
        if modifiers[0] in ("test_wait", "try_wait", "pending_count"):
            return 1
        return int(
            modifiers[0].startswith("arrive")
            and len(instruction.operands) > 1
            and (not isinstance(instruction.operands[0], Address))
        )
    if opcode == "wgmma":
        return int(modifiers[0] == "mma_async")
    if opcode == "bar" and modifiers and modifiers[0] == "red":
        return 1
    return 0 if opcode in _NO_DESTINATION else 1


def writes(instruction: Instruction) -> list[str]:
    """The registers that ``instruction`` writes."""
    if not destinations(instruction):
        return []
    target = instruction.operands[0]
    return [target.name] if isinstance(target, Register) else list(named(target))


def reads(instruction: Instruction) -> list[str]:
    """The registers that ``instruction`` reads, its guard among them."""
    found = [] if instruction.guard is None else [instruction.guard.name]
    written = destinations(instruction)
    for operand in instruction.operands[written:]:
        if isinstance(operand, Register):
            found.append(operand.name)
        elif not isinstance(operand, Immediate):
            found += named(operand)
    if instruction.opcode == "wgmma" and written:  # accumulates in place
        found += named(instruction.operands[0])
    return found


def pure(instruction: Instruction) -> bool:
    """Whether ``instruction`` computes registers of a lane from such, and does nothing else.

    Then an undefined operand makes its result undefined; all others *use* what they read.
    """
    return (
        destinations(instruction) == 1
        and not waits(instruction)
        and not any(isinstance(operand, Address) for operand in instruction.operands)
    )


def matrices(instruction: Instruction) -> Iterator[str]:
    """The registers that a ``wgmma.mma_async`` uses while it is under way."""
    if instruction.opcode == "wgmma" and instruction.modifiers[0] == "mma_async":
        for operand in instruction.operands[:2]:
            if isinstance(operand, Vector):
                yield from named(operand)


Reading = list[list[tuple[str, ...]]]
"""By segment and instruction, what :func:`reads` gives."""


def _registers(segments: list[Segment], reading: Reading) -> tuple[frozenset[str], frozenset[str]]:
    """Registers read in a segment before it writes them; and those perhaps never written then."""
    exposed: list[set[str]] = []
    defined: list[set[str]] = []
    for segment, names in zip(segments, reading, strict=True):
        before: set[str] = set()
        done: set[str] = set()
        for instruction, read in zip(segment.instructions, names, strict=True):
            for name in read:
                if name not in done:
                    before.add(name)
            if instruction.guard is None:
                done.update(writes(instruction))
        exposed.append(before)
        defined.append(done)
    carried = frozenset().union(*exposed)
    bit = {name: 1 << i for i, name in enumerate(sorted(carried))}
    everything = (1 << len(bit)) - 1
    gen = [sum(bit[n] for n in done if n in bit) for done in defined]
    need = [sum(bit[n] for n in before) for before in exposed]
    into = [everything] * len(segments)
    into[0] = 0
    # Forward, "assigned on every path": the greatest fixed point.
    changed = set(range(len(segments)))
    while changed:
        at = changed.pop()
        out = into[at] | gen[at]
        for following in segments[at].next:
            meet = into[following.index] & out
            if meet != into[following.index]:
                into[following.index] = meet
                changed.add(following.index)
    doubtful = 0
    for at in range(len(segments)):
        doubtful |= need[at] & ~into[at]
    return carried, frozenset(n for n, b in bit.items() if b & doubtful)


def _made_of(
    segments: list[Segment], reading: Reading, unwritten: frozenset[str]
) -> frozenset[str]:
    """``unwritten``, and every register that instructions may compute from it."""
    if not unwritten:
        return unwritten
    left = [
        pair
        for segment, names in zip(segments, reading, strict=True)
        for pair in zip(segment.instructions, names, strict=True)
    ]
    found, count = set(unwritten), -1
    while count != len(left):
        count, rest = len(left), []
        for instruction, read in left:
            if found.isdisjoint(read):
                rest.append((instruction, read))
            elif pure(instruction) or instruction.opcode == "shfl":
                found.update(writes(instruction))
        left = rest
    return frozenset(found)
