"""Passes: functions from a program to one with the same inputs, outputs and bits.

A pass examines the steps that write and read each memory, and their order. Memories that several
steps write, and memories that the caller passed for results, are left unchanged.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from ptxgen.errors import OptionError
from ptxgen.graph.batch import batched
from ptxgen.graph.epilogues import in_epilogues
from ptxgen.graph.fuse import fused, together
from ptxgen.graph.fuse_concat import in_parts
from ptxgen.graph.fuse_reductions import over_rows
from ptxgen.graph.grouped_queries import shared
from ptxgen.graph.inplace import copied, renamed, reused, written_in_place
from ptxgen.graph.worth import microseconds
from ptxgen.program.buffer import INPUT, RESULT, TEMPORARY, Buffer, Memory
from ptxgen.program.step import Program, Step

Pass = Callable[[Program], Program]


def _with_steps(program: Program, steps: Iterable[Step]) -> Program:
    return replace(program, steps=tuple(steps))


def _writers(program: Program) -> Counter[Memory]:
    """Returns the number of steps that write each memory."""
    return Counter(m for s in program.steps for m in {b.memory for b in s.writes()})


def dead(program: Program) -> Program:
    """Removes steps that write nothing but temporaries which no remaining step reads (dead code
    elimination).
    """
    needed = {b.memory for b in program.outputs if b is not None}
    kept: list[Step] = []
    for step in reversed(program.steps):
        written = {b.memory for b in step.writes()}
        if any(m.role != TEMPORARY or m in needed for m in written):
            needed |= {b.memory for b in step.reads()}
            kept.append(step)
    return _with_steps(program, reversed(kept))


def copies(program: Program) -> Program:
    """Removes copies that have the layout of their source: readers read the source instead, or the
    step that writes the source writes to the copy's memory.
    """
    writers, at = _writers(program), _last(program)
    outputs = {b.memory for b in program.outputs if b is not None}
    found: dict[Memory, Memory] = {}
    kept: list[Step] = []
    for number, given in enumerate(program.steps):
        step = renamed(given, found)
        pair = _plain_copy(step)
        if pair is not None:
            source, target = pair[0].memory, pair[1].memory
            once = writers[target] == 1 and target.role != INPUT and pair[1].whole
            still = at.get(source, -1) < number and not source.written
            if once and still and target not in outputs and _interchangeable(source, target):
                found[target] = source
                continue
            own = source.role == TEMPORARY and source not in outputs and pair[0].whole
            if (
                once
                and own
                and still
                and target.role == RESULT
                and _interchangeable(source, target)
            ):
                kept = [renamed(s, {source: target}) for s in kept]
                found = {m: target if to is source else to for m, to in found.items()}
                found[source] = target
                continue
        kept.append(step)
    return _with_steps(program, kept)


def _last(program: Program) -> dict[Memory, int]:
    """Returns the index of the last step that writes each memory."""
    return {b.memory: i for i, s in enumerate(program.steps) for b in s.writes()}


def _plain_copy(step: Step) -> tuple[Buffer, Buffer] | None:
    """Returns (source, target) of a step that only copies and keeps the layout; None for others."""
    pair = copied(step)
    if pair is None:
        return None
    source, target = pair
    alike = (source.contiguous and target.contiguous) or source.strides == target.strides
    return (source, target) if alike and source.offset == target.offset == 0 else None


def _interchangeable(source: Memory, target: Memory) -> bool:
    """Whether steps can use one memory in place of the other: both have the same size and the same
    layout, and ``source`` is aligned to 16 bytes.
    """
    a, b = source.natural, target.natural
    if a is None or b is None or source.low != 0 or a.nbytes != b.nbytes:
        return False
    return (a.shape, a.strides) == (b.shape, b.strides) or (a.contiguous and b.contiguous)


def common(program: Program) -> Program:
    """Removes steps that repeat an earlier step (common subexpression elimination)."""
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
            key = _value_key(step, version)
            first = seen.setdefault(key, step)
            if first is not step:
                pairs = zip(written, first.writes(), strict=True)
                found |= {b.memory: a.memory for b, a in pairs}
                continue
        version.update(set(own))
        kept.append(step)
    return _with_steps(program, kept)


def _value_key(step: Step, version: Mapping[Memory, int]) -> Any:
    """Returns a key that is equal for steps that compute the same results from the same values.
    ``version``: number of writes to each memory before the step, which tells its contents apart.
    """
    writes = set(step.written)

    def fact(name: str, x: Any) -> Any:
        if not isinstance(x, Buffer):
            return x
        where = (None, None) if name in writes else (x.memory, version[x.memory])
        return *where, x.offset, x.shape, x.strides, x.dtype

    return step.problem, step.kernel, tuple((n, fact(n, x)) for n, x in step.bind.items())


def grouped_queries(program: Program) -> Program:
    """Makes attention read the original keys and values instead of copies that repeat them for each
    query head (``repeat_kv``), also where it is written as batched products. Afterwards
    :func:`dead` removes the copies.
    """
    return _with_steps(program, shared(program))


def fuse(program: Program) -> Program:
    """Fuses elementwise steps where one reads another's result; each value is rounded as before."""
    return _with_steps(program, fused(program))


def fuse_horizontal(program: Program) -> Program:
    """Fuses elementwise steps of one shape that read the same view of an array, which is then read
    once.
    """
    return _with_steps(program, together(program))


def epilogues(program: Program) -> Program:
    """Fuses elementwise steps into the epilogues of the products that they read; each value is
    rounded as before. It runs before ``fuse`` and ``fuse_reductions``, which would fuse a residual
    sum with the norm that reads it, so that the product's result is stored and loaded again.
    """
    return _with_steps(program, in_epilogues(program))


def fuse_concat(program: Program) -> Program:
    """Fuses concatenations that only one elementwise step reads: each part of its result is
    computed from its own operand, and the concatenation is not stored.
    """
    return _with_steps(program, in_parts(program))


def fuse_reductions(program: Program) -> Program:
    """Fuses row reductions with the elementwise steps around them; each value is rounded as before.
    It runs after ``fuse``, so that elementwise chains are single steps already.
    """
    return _with_steps(program, over_rows(program))


def inplace(program: Program) -> Program:
    """Makes steps write directly to the caller's memory that their results are copied to, if no
    step reads the previous content.
    """
    return _with_steps(program, written_in_place(program))


def reuse(program: Program) -> Program:
    """Makes an elementwise step write its result over a temporary of the same size and layout that
    it is the last step to read.
    """
    return _with_steps(program, reused(program))


def batch(program: Program) -> Program:
    """Computes equal elementwise steps of different arrays in one launch, up to 64 of them. It runs
    last, since other passes take the steps one by one.
    """
    return _with_steps(program, batched(program))


PASSES: Final[dict[str, Pass]] = {
    "inplace": inplace,
    "common": common,
    "copies": copies,
    "grouped_queries": grouped_queries,
    "dead": dead,
    "epilogues": epilogues,
    "fuse": fuse,
    "fuse_concat": fuse_concat,
    "fuse_reductions": fuse_reductions,
    "fuse_horizontal": fuse_horizontal,
    "reuse": reuse,
    "batch": batch,
}
"""The passes by name, in the order in which they run."""
RENAMED: Final[dict[str, str]] = {
    "heads": "grouped_queries",
    "parts": "fuse_concat",
    "rows": "fuse_reductions",
    "siblings": "fuse_horizontal",
}
"""Present name of each pass that was renamed. Former names are still accepted, with a
DeprecationWarning."""


def fewer(program: Program) -> Program:
    """Applies all passes to a program (:data:`PASSES`)."""
    return apply(program)[0]


@dataclass(frozen=True)
class Done:
    """The effect of the pass ``name``, as pairs (before, after): number of steps, bytes that they
    read and write (``nbytes``), and their predicted time (``us``), µs.
    """

    name: str
    steps: tuple[int, int]
    nbytes: tuple[int, int]
    us: tuple[float, float]

    @classmethod
    def together(cls, name: str, of: Iterable[Done]) -> Done:
        """Returns the summed effect of a pass on several programs."""
        all_of = tuple(of)

        def sums(fact: Callable[[Done], tuple[Any, Any]]) -> tuple[Any, Any]:
            before, after = zip(*map(fact, all_of), strict=True)
            return sum(before), sum(after)

        return cls(name, *(sums(attrgetter(fact)) for fact in ("steps", "nbytes", "us")))

    def __str__(self) -> str:
        (a, b), (x, y), (s, t) = self.steps, self.nbytes, self.us
        return f"{self.name}: {a} -> {b} steps, {x:,} -> {y:,} bytes, {s:.1f} -> {t:.1f} µs"


def chosen(names: Collection[str] | None, what: str = "names") -> Iterator[tuple[str, Pass]]:
    """Returns (name, pass) of each pass in ``names``, in the order in which passes run; of all
    passes for None. Former names (:data:`RENAMED`) are accepted, with a warning.

    Raises OptionError for an unknown name; ``what``: the argument's name in errors.
    """
    if names is None:
        return iter(PASSES.items())
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise OptionError(f"{what} is {names!r}; takes a list of {', '.join(PASSES)}, or None")
    given = tuple(names)
    for old in (n for n in given if isinstance(n, str) and n in RENAMED):
        message = f"{what} has {old!r}; it is called {RENAMED[old]!r}, and the next version"
        warnings.warn(f"{message} refuses it", DeprecationWarning, stacklevel=3)
    given = tuple(RENAMED.get(n, n) if isinstance(n, str) else n for n in given)
    if unknown := [n for n in given if not isinstance(n, str) or n not in PASSES]:
        raise OptionError(f"{what} has {unknown[0]!r}; takes {', '.join(PASSES)}")
    return (pair for pair in PASSES.items() if pair[0] in given)


def apply(
    program: Program, names: Collection[str] | None = None
) -> tuple[Program, tuple[Done, ...]]:
    """Returns a program after the passes of these names (all for None), and each pass's effect.

    Raises OptionError for an object that is no Program, and for unknown names.
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
