"""Heads: attention whose keys were copied for each head of queries reads them where they were.

Several heads of queries may share one of keys and values. Models that repeat keys and values as
often, since the attention they call knows no such heads, copy all of a cache for each token.
Contract ``attention/1`` does not depend on where keys lie. So no bit moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxgen.graph.fuse import index_of
from ptxgen.graph.inplace import copied
from ptxgen.ops.attention import sharing
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.step import Program, Step

TABLE = "attention"


def shared(program: Program) -> Iterator[Step]:
    """The steps of a program; attention reads what its keys and values are copies of, where those
    are repeated for heads.
    """
    copies: dict[Memory, tuple[Buffer, Buffer]] = {}
    for step in program.steps:
        written = {b.memory for b in step.writes()}
        found = _sharing(step, copies, written) if step.problem.table[0] == TABLE else None
        copies = {
            memory: (source, target)
            for memory, (source, target) in copies.items()
            if source.memory not in written and memory not in written
        }
        pair = copied(step)
        if pair is not None and pair[1].whole and pair[1].memory.role != INPUT:
            copies[pair[1].memory] = pair
        yield found or step


def _sharing(
    step: Step, copies: dict[Memory, tuple[Buffer, Buffer]], written: set[Memory]
) -> Step | None:
    """A step of attention that reads what its keys and values are copies of; None if it cannot."""
    k, v = (x for n in "kv" if isinstance(x := step.bind[n], Buffer))
    if step.kernel is not None or k.memory not in copies or v.memory not in copies:
        return None
    for by in range(k.shape[-2], 1, -1):
        found = [_once(x, by, *copies[x.memory]) for x in (k, v)]
        keys, values = found
        if keys is None or values is None or {keys.memory, values.memory} & written:
            continue
        problem = sharing(step.problem, by, keys, values)
        if problem is not None:
            return replace(step, problem=problem, bind={**step.bind, "k": keys, "v": values})
    return None


def _once(x: Buffer, by: int, source: Buffer, target: Buffer) -> Buffer | None:
    """``x`` [batch, tokens, heads, ...], of which each ``by`` next heads are copies of one, as that
    lies in the source; None if they are not.
    """
    if x.ndim != 4 or x.shape[2] % by:
        return None
    step = x.strides[2]
    shape = (*x.shape[:2], x.shape[2] // by, by, x.shape[3])
    view = x.laid(shape, (*x.strides[:2], step * by, step, x.strides[3]))
    index = index_of(target, view)
    found = index.of(source, shape) if index is not None else None
    return found.one(3, 0) if found is not None and found.strides[3] == 0 else None
