"""Passes: functions of a program that return one with the same inputs, outputs and bits.

A pass looks at memories: who writes each, who reads it, and in which order. What several steps
write, or what is given to be written, it leaves as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from ptxgen.errors import OptionError
from ptxgen.graph.epilogues import in_epilogues
from ptxgen.graph.fuse import fused, together
from ptxgen.graph.fuse_reductions import over_rows
from ptxgen.graph.heads import shared
from ptxgen.graph.inplace import copied, renamed, reused, written_in_place
from ptxgen.graph.parts import in_parts
from ptxgen.graph.worth import microseconds
from ptxgen.program.buffer import INPUT, RESULT, TEMPORARY, Buffer, Memory
from ptxgen.program.step import Program, Step

Pass = Callable[[Program], Program]


def _with(program: Program, steps: Iterable[Step]) -> Program:
    return replace(program, steps=tuple(steps))


def _writers(program: Program) -> Counter[Memory]:
    """How many steps write each memory."""
    return Counter(m for s in program.steps for m in {b.memory for b in s.writes()})


def dead(program: Program) -> Program:
    """Without steps whose results nobody reads."""
    needed = {b.memory for b in program.outputs if b is not None}
    kept: list[Step] = []
    for step in reversed(program.steps):
        written = {b.memory for b in step.writes()}
        if any(m.role != TEMPORARY or m in needed for m in written):
            needed |= {b.memory for b in step.reads()}
            kept.append(step)
    return _with(program, reversed(kept))


def copies(program: Program) -> Program:
    """Without copies of what lies as they do: who reads one reads what it is a copy of, or what is
    copied is written there at once.
    """
    writers, at = _writers(program), _last(program)
    outputs = {b.memory for b in program.outputs if b is not None}
    found: dict[Memory, Memory] = {}
    kept: list[Step] = []
    for number, given in enumerate(program.steps):
        step = renamed(given, found)
        pair = _copied(step)
        if pair is not None:
            source, target = pair[0].memory, pair[1].memory
            once = writers[target] == 1 and target.role != INPUT and pair[1].whole
            still = at.get(source, -1) < number and not source.written
            if once and still and target not in outputs and _alike(source, target):
                found[target] = source
                continue
            own = source.role == TEMPORARY and source not in outputs and pair[0].whole
            if once and own and still and target.role == RESULT and _alike(source, target):
                kept = [renamed(s, {source: target}) for s in kept]
                found = {m: target if to is source else to for m, to in found.items()}
                found[source] = target
                continue
        kept.append(step)
    return _with(program, kept)


def _last(program: Program) -> dict[Memory, int]:
    """The last step that writes each memory."""
    return {b.memory: i for i, s in enumerate(program.steps) for b in s.writes()}


def _copied(step: Step) -> tuple[Buffer, Buffer] | None:
    """What a step copies, and where to, if it does nothing else and both lie alike."""
    pair = copied(step)
    if pair is None:
        return None
    source, target = pair
    alike = (source.contiguous and target.contiguous) or source.strides == target.strides
    return (source, target) if alike and source.offset == target.offset == 0 else None


def _alike(source: Memory, target: Memory) -> bool:
    """Whether what lies in one may lie in the other: as many bytes, as well aligned."""
    a, b = source.natural, target.natural
    if a is None or b is None or source.low != 0 or a.nbytes != b.nbytes:
        return False
    return (a.shape, a.strides) == (b.shape, b.strides) or (a.contiguous and b.contiguous)


def common(program: Program) -> Program:
    """Without steps that do what one before them did."""
    writers = _writers(program)
    outputs = {b.memory for b in program.outputs if b is not None}
    version: Counter[Memory] = Counter()
    seen: dict[Any, Step] = {}
    found: dict[Memory, Memory] = {}
    kept: list[Step] = []
    for given in program.steps:
        step = renamed(given, found)
        written = step.writes()
        own = [b.memory for b in written]
        alone = all(writers[m] == 1 and m.role == TEMPORARY and m not in outputs for m in own)
        if alone and not step.also_read and len(set(own)) == len(own):
            key = _does(step, version)
            first = seen.setdefault(key, step)
            if first is not step:
                pairs = zip(written, first.writes(), strict=True)
                found |= {b.memory: a.memory for b, a in pairs}
                continue
        version.update(set(own))
        kept.append(step)
    return _with(program, kept)


def _does(step: Step, version: Mapping[Memory, int]) -> Any:
    """What two steps have in common that do the same."""
    writes = set(step.written)

    def fact(name: str, x: Any) -> Any:
        if not isinstance(x, Buffer):
            return x
        where = (None, None) if name in writes else (x.memory, version[x.memory])
        return *where, x.offset, x.shape, x.strides, x.dtype

    return step.problem, step.kernel, tuple((n, fact(n, x)) for n, x in step.bind.items())


def heads(program: Program) -> Program:
    """Attention, and batches of products, read keys and values once for all heads that share them,
    where they were repeated for each; ``dead`` drops the copies.
    """
    return _with(program, shared(program))


def fuse(program: Program) -> Program:
    """Elementwise steps as one where one reads what another writes; each value is rounded as it
    was.
    """
    return _with(program, fused(program))


def siblings(program: Program) -> Program:
    """Elementwise steps as one where both read all of the same array; it is read once."""
    return _with(program, together(program))


def epilogues(program: Program) -> Program:
    """Elementwise steps in the epilogues of the products whose results they read, each value
    rounded as it was. It comes before ``fuse`` and ``rows``, which would else join a sum with the
    norm that reads it: the product would store what that adds, and the norm read it.
    """
    return _with(program, in_epilogues(program))


def parts(program: Program) -> Program:
    """Elementwise steps read what a concatenation is of, and not the concatenation, where nobody
    else does: each part of their results is computed beside the others.
    """
    return _with(program, in_parts(program))


def rows(program: Program) -> Program:
    """Operations over rows and the elementwise steps around them as one; each value is rounded as
    it was. It comes behind ``fuse``, so that what is elementwise is one step already.
    """
    return _with(program, over_rows(program))


def inplace(program: Program) -> Program:
    """What is copied to memory of the caller's is written there at once, where nobody reads what
    was there before.
    """
    return _with(program, written_in_place(program))


def reuse(program: Program) -> Program:
    """Elementwise steps write over what they read, where nobody reads that behind them."""
    return _with(program, reused(program))


PASSES: Final[dict[str, Pass]] = {
    "inplace": inplace,
    "common": common,
    "copies": copies,
    "heads": heads,
    "dead": dead,
    "epilogues": epilogues,
    "fuse": fuse,
    "parts": parts,
    "rows": rows,
    "siblings": siblings,
    "reuse": reuse,
}
"""Each pass, in the order in which they are done."""


def fewer(program: Program) -> Program:
    """A program after all passes."""
    return apply(program)[0]


@dataclass(frozen=True)
class Done:
    """What a pass did: steps, bytes that these move, and the µs that they are predicted to take,
    before and after.
    """

    name: str
    steps: tuple[int, int]
    nbytes: tuple[int, int]
    us: tuple[float, float]

    @classmethod
    def together(cls, name: str, of: Iterable[Done]) -> Done:
        """What a pass did to several programs."""
        all_of = tuple(of)

        def sums(fact: Callable[[Done], tuple[Any, Any]]) -> tuple[Any, Any]:
            before, after = zip(*map(fact, all_of), strict=True)
            return sum(before), sum(after)

        return cls(name, *(sums(attrgetter(fact)) for fact in ("steps", "nbytes", "us")))

    def __str__(self) -> str:
        (a, b), (x, y), (s, t) = self.steps, self.nbytes, self.us
        return f"{self.name}: {a} -> {b} steps, {x:,} -> {y:,} bytes, {s:.1f} -> {t:.1f} µs"


def chosen(names: Collection[str] | None, what: str = "names") -> Iterator[tuple[str, Pass]]:
    """The passes of these names, in their order; all for None. Raises OptionError, which calls the
    argument ``what``.
    """
    if names is None:
        return iter(PASSES.items())
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise OptionError(f"{what} is {names!r}; takes a list of {', '.join(PASSES)}, or None")
    given = tuple(names)
    if unknown := [n for n in given if not isinstance(n, str) or n not in PASSES]:
        raise OptionError(f"{what} has {unknown[0]!r}; takes {', '.join(PASSES)}")
    return (pair for pair in PASSES.items() if pair[0] in given)


def apply(
    program: Program, names: Collection[str] | None = None
) -> tuple[Program, tuple[Done, ...]]:
    """A program after the passes of these names (all for None), and what each did. Raises
    OptionError for what is no program, and for other names.
    """
    if not isinstance(program, Program):
        raise OptionError(f"program is a {type(program).__qualname__}; takes a Program")
    done, us = [], {step: microseconds([step]) for step in program.steps}
    for name, each in chosen(names):
        before, program = program, each(program)
        us |= {step: microseconds([step]) for step in program.steps if step not in us}
        of = [p.steps for p in (before, program)]
        (a, x, s), (b, y, t) = (
            (len(steps), sum(s.nbytes for s in steps), sum(us[s] for s in steps)) for steps in of
        )
        done.append(Done(name, (a, b), (x, y), (s, t)))
    return program, tuple(done)
