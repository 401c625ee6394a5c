"""Control flow of a kernel: straight-line segments, their order, and assigned registers.

Diverged lanes wait for each other at segments: of a warp's lanes, those at the first segment in a
*weak topological order* run (Bourdoncle 1993). In that order every loop is contiguous, and code
after a loop or a branch comes later. So all reconverge at the latest where their paths join (thread
frontiers, Diamos et al. 2011), as on hardware, where the compiler reconverges them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxgen.errors import PtxError
from ptxgen.interp.text.ordering import polls
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
    """Basic block of a parsed kernel, number ``index`` in the text.

    It ends with a branch, an exit, or an instruction at which lanes may have to wait. ``target`` is
    the segment that its branch jumps to, ``following`` the next one in the text; ``next`` lists
    those of the two at which lanes may continue.
    """

    index: int
    instructions: list[Instruction]
    kind: str = "fall"
    """Kind of the segment's end: fall (through), branch, exit or wait (see :func:`may_wait`)."""
    target: Segment | None = None
    following: Segment | None = None
    order: int = -1
    """Position in the weak topological order; the lowest runs first."""
    next: list[Segment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Flow:
    """The segments of a kernel, in the order of its text."""

    segments: tuple[Segment, ...]
    globals: frozenset[str]
    """Registers that a segment reads before it writes them; all others are local to a segment."""
    unwritten: tuple[str, ...]
    """Registers that, on some path, are read before anything has written them."""
    doubtful: frozenset[str]
    """Registers whose value may be undefined: ``unwritten``, and all computed from them."""
    matrices: frozenset[str]
    """Registers that a wgmma accesses: accumulators and fragments of A."""


def may_wait(instruction: Instruction) -> bool:
    """Whether lanes may have to wait at ``instruction``, which then is a segment of its own."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    return (
        opcode in ("bar", "barrier", "shfl", "vote", "match", "redux", "elect")
        or (opcode == "mbarrier" and modifiers[0] in ("try_wait", "test_wait"))
        or (opcode in ("wgmma", "mma", "ldmatrix", "stmatrix", "setmaxnreg"))
        or polls(instruction)
    )


def analyse(entry: Entry, file: str) -> Flow:
    """Analyses a kernel's control flow. Raises PtxError if control can run off the kernel's end."""
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
    doubtful = _dependents(segments, reading, unwritten)
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
        elif may_wait(item):
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
    """Returns the segments in Bourdoncle's weak topological order, without recursion.

    A strongly connected component (a loop) is contiguous: its head, where it is entered, then its
    other segments, ordered likewise without the edges back to the head.
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
    """Returns the strongly connected components of the subgraph ``nodes`` (indices of segments), in
    topological order (Tarjan's algorithm). The search starts at ``entry``.

    The last segment of a component is the one that the search reached first.
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


def register_names(operand: Operand) -> Iterator[str]:
    """Yields the names of the registers in an operand."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Negated):
        yield operand.register.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from register_names(item)
    elif isinstance(operand, Pair):
        yield from register_names(operand.first)
        yield from register_names(operand.second)
    elif isinstance(operand, Address):
        yield from register_names(operand.base)
        for item in operand.coordinates:
            yield from register_names(item)


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
    """Returns the registers that ``instruction`` writes."""
    if not destinations(instruction):
        return []
    target = instruction.operands[0]
    return [target.name] if isinstance(target, Register) else list(register_names(target))


def reads(instruction: Instruction) -> list[str]:
    """Returns the registers that ``instruction`` reads, its guard included."""
    found = [] if instruction.guard is None else [instruction.guard.name]
    written = destinations(instruction)
    for operand in instruction.operands[written:]:
        if isinstance(operand, Register):
            found.append(operand.name)
        elif not isinstance(operand, Immediate):
            found += register_names(operand)
    if instruction.opcode == "wgmma" and written:  # accumulates in place
        found += register_names(instruction.operands[0])
    return found


def is_pure(instruction: Instruction) -> bool:
    """Whether ``instruction`` only computes registers of a lane from registers of the same lane.

    Such an instruction propagates undefined operands; for all others but ``shfl`` they are a fault.
    """
    return (
        destinations(instruction) == 1
        and not may_wait(instruction)
        and not any(isinstance(operand, Address) for operand in instruction.operands)
    )


def matrices(instruction: Instruction) -> Iterator[str]:
    """Yields the registers that a ``wgmma.mma_async`` accesses while it is in flight."""
    if instruction.opcode == "wgmma" and instruction.modifiers[0] == "mma_async":
        for operand in instruction.operands[:2]:
            if isinstance(operand, Vector):
                yield from register_names(operand)


Reading = list[list[tuple[str, ...]]]
"""Names of the registers that each instruction reads, ``[segment][instruction]``."""


def _registers(segments: list[Segment], reading: Reading) -> tuple[frozenset[str], frozenset[str]]:
    """Returns two sets of registers: those that some segment reads before it writes them; and of
    these, those that a path from the entry to such a read leaves unwritten.
    """
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
            common = into[following.index] & out
            if common != into[following.index]:
                into[following.index] = common
                changed.add(following.index)
    doubtful = 0
    for at in range(len(segments)):
        doubtful |= need[at] & ~into[at]
    return carried, frozenset(n for n, b in bit.items() if b & doubtful)


def _dependents(
    segments: list[Segment], reading: Reading, unwritten: frozenset[str]
) -> frozenset[str]:
    """Returns ``unwritten`` and all registers computed from them, directly or indirectly."""
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
            elif is_pure(instruction) or instruction.opcode == "shfl":
                found.update(writes(instruction))
        left = rest
    return frozenset(found)
