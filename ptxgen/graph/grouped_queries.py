"""Folds ``repeat_kv`` into grouped-query attention, which reads the original keys and values.

In grouped-query attention several query heads share one KV head. Some models repeat keys and values
for each query head, since the attention that they call has no grouped heads, or is written as
batched products; this copies the whole KV cache for each token. Contract ``attention/2`` does not
depend on the layout of keys, and a row of a product does not depend on the other rows, so queries
that share keys may be rows of one product. So no bit changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ptxgen.graph.fuse import axis_splits, index_of
from ptxgen.graph.inplace import copied
from ptxgen.ops import gemm
from ptxgen.ops.attention import sharing
from ptxgen.program.buffer import INPUT, Buffer, Memory
from ptxgen.program.step import Program, Step

TABLE = "attention"

Copies = Mapping[Memory, tuple[Buffer, Buffer]]
"""For each memory that is a copy: the source of the copy, and the buffer of the whole memory."""


def shared(program: Program) -> Iterator[Step]:
    """Yields the steps of a program, in which attention and batched products read original keys and
    values instead of copies that repeat them for several heads.
    """
    copies: dict[Memory, tuple[Buffer, Buffer]] = {}
    for step in program.steps:
        written = {b.memory for b in step.writes()}
        still = {m: pair for m, pair in copies.items() if pair[0].memory not in written}
        of = _attention if step.problem.table[0] == TABLE else _products
        yield (of(step, still) if step.kernel is None else None) or step
        copies = {memory: pair for memory, pair in still.items() if memory not in written}
        pair = copied(step)
        if pair is not None and pair[1].whole and pair[1].memory.role != INPUT:
            copies[pair[1].memory] = pair


def _attention(step: Step, copies: Copies) -> Step | None:
    """Returns an attention step that reads the original keys and values instead of repeated copies;
    None if it reads no such copies.
    """
    k, v = (x for n in "kv" if isinstance(x := step.bind[n], Buffer))
    if k.memory not in copies or v.memory not in copies:
        return None
    for by in range(k.shape[-2], 1, -1):
        keys, values = (_one_per_group(x, by, *copies[x.memory]) for x in (k, v))
        if keys is None or values is None:
            continue
        problem = sharing(step.problem, by, keys, values)
        if problem is not None:
            return replace(step, problem=problem, bind={**step.bind, "k": keys, "v": values})
    return None


def _one_per_group(x: Buffer, by: int, source: Buffer, target: Buffer) -> Buffer | None:
    """Returns the original heads of repeated keys or values: a view of ``source`` with one head for
    each ``by`` adjacent heads of ``x``.

    ``x`` [batch, tokens, heads, ...] is a view of ``target``, which is a copy of ``source``.
    Returns None unless each ``by`` adjacent heads repeat one head of ``source``.
    """
    if x.ndim != 4 or x.shape[2] % by:
        return None
    view = x.split(2, by)
    index = index_of(target, view)
    found = index.of(source, view.shape) if index is not None else None
    return found.one(3, 0) if found is not None and found.strides[3] == 0 else None


def _products(step: Step, copies: Copies) -> Step | None:
    """Returns a batched product that reads its second operand's original matrices instead of
    repeated copies; None if it reads no such copies.
    """
    a, b, c = (step.bind.get(n) for n in "abc")
    if step.problem.count == 1 or step.also_read:
        return None
    if not isinstance(a, Buffer) or not isinstance(b, Buffer) or not isinstance(c, Buffer):
        return None
    if b.memory not in copies:
        return None
    source, target = copies[b.memory]
    first, second, result = gemm.batch_of(step.problem, a, b, c)
    for axis, inner in axis_splits(second.one(-1, 0).one(-1, 0), target):
        first, second, result = (x.split(axis, inner) for x in (first, second, result))
    index = index_of(target, second)
    if index is None:
        return None
    found = index.of(source, second.shape)
    problem = gemm.sharing(step.problem, first, found, result)
    return (
        replace(step, problem=problem, bind={**step.bind, "b": _without_broadcast(found)})
        if problem
        else None
    )


def _without_broadcast(x: Buffer) -> Buffer:
    """Returns a view without dimensions of size 1 or stride 0."""
    for axis in reversed(range(x.ndim)):
        if x.shape[axis] == 1 or not x.strides[axis]:
            x = x.one(axis, 0)
    return x
