"""Instructions in which the lanes of a warp exchange values.

Arrays are ``[warps, 32]``; a mask operand has its value in every lane. The caller checks that the
lanes of each member mask are ``active``. Results in inactive lanes are meaningless.

Source: PTX ISA 9.0, 9.7.9 (shfl.sync) and 9.7.13 (vote, match, redux, elect, activemask).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import PtxError
from ptxgen.interp.text.ptx import WARP, Instruction

Array = NDArray[Any]
Bool = NDArray[np.bool_]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

_LANE = np.arange(WARP, dtype=np.int64)
_BIT = np.uint32(1) << np.arange(WARP, dtype=np.uint32)


def refuse(instruction: Instruction, accepted: str) -> PtxError:
    """Returns the exception for an instruction outside the subset; it names the accepted forms."""
    return PtxError(
        f"{instruction.name} is outside the subset; it has {accepted}",
        line=instruction.line,
        text=instruction.text,
    )


def ballot(flags: Bool) -> U32:
    """Packs flags ``[warps, 32]`` to words ``[warps, 1]``, lane l to bit l."""
    return np.packbits(flags, axis=1, bitorder="little").view(np.uint32)


def members(mask: U32) -> Bool:
    """Unpacks words ``[...]`` to flags ``[..., 32]``, bit l to lane l."""
    inside: Bool = (mask[..., None] & _BIT) != 0
    return inside


def activemask(active: Bool) -> U32:
    """Returns ``activemask.b32``: the word of the active lanes, in every lane."""
    return np.broadcast_to(ballot(active), active.shape)


# -- shfl -----------------------------------------------------------------------------
SHUFFLES = ("up", "down", "bfly", "idx")


def shuffle_source(mode: str, b: Array, c: Array) -> tuple[I64, Bool]:
    """Returns the lane that each lane reads in a shuffle, and the predicate: whether it is in
    range.

    ``b``: distance, mask or lane; ``c``: clamp in bits 0 to 4, segment mask in bits 8 to 12. A lane
    whose source is out of range reads itself.
    """
    step = b.astype(np.int64) & 31
    clamp, segment = c.astype(np.int64) & 31, (c.astype(np.int64) >> 8) & 31
    first = _LANE & segment
    last = first | (clamp & ~segment)
    if mode == "up":
        source = _LANE - step
        valid = source >= last
    else:
        if mode == "down":
            source = _LANE + step
        elif mode == "bfly":
            source = _LANE ^ step
        else:
            source = first | (step & ~segment)
        valid = source <= last
    return np.where(valid, source, _LANE), valid


@lru_cache(maxsize=256)
def _uniform_source(mode: str, b: int, c: int) -> tuple[I64, Bool]:
    return shuffle_source(mode, np.array([b]), np.array([c]))


def _is_uniform(x: Array) -> bool:
    return x.size == 1 or not any(x.strides)


Shuffle = Callable[[Array, Array, Array], tuple[Array, Bool, I64]]


def shfl(instruction: Instruction) -> Shuffle:
    """Returns ``shfl.sync.mode.b32`` as a function of value, b and c.

    The function returns the result, the predicate, and the lane that each lane reads, which may be
    inactive. The last two are ``[warps, 32]`` or ``[32]``.
    """
    form = instruction.modifiers
    if len(form) != 3 or form[0::2] != ("sync", "b32") or form[1] not in SHUFFLES:
        raise refuse(instruction, "shfl.sync.{up,down,bfly,idx}.b32")
    mode = form[1]

    def run(value: Array, b: Array, c: Array) -> tuple[Array, Bool, I64]:
        if _is_uniform(b) and _is_uniform(c):
            source, valid = _uniform_source(mode, int(b.flat[0]) & 31, int(c.flat[0]) & 0x1F1F)
            return np.take(value, source, axis=1), valid, source
        source, valid = shuffle_source(mode, b, c)
        source = np.broadcast_to(source, value.shape)
        return np.take_along_axis(value, source, axis=1), valid, source

    return run


# -- vote, match, redux, elect ----------------------------------------------------------
def vote(instruction: Instruction) -> Callable[[Bool, Bool, U32], Array]:
    """Returns ``vote.sync.{all,any,uni}.pred`` or ``vote.sync.ballot.b32`` as a function of the
    lanes' predicates, the active lanes and the member masks.
    """
    form = instruction.modifiers
    mode = form[1] if len(form) == 3 else ""
    if form not in [("sync", k, "pred") for k in ("all", "any", "uni")] + [
        ("sync", "ballot", "b32")
    ]:
        raise refuse(instruction, "vote.sync.{all,any,uni}.pred and vote.sync.ballot.b32")

    def run(flags: Bool, active: Bool, mask: U32) -> Array:
        words: Array = ballot(flags & active) & mask
        if mode == "all":
            words = words == mask
        elif mode == "any":
            words = words != 0
        elif mode == "uni":
            words = (words == mask) | (words == 0)
        return words

    return run


def match(instruction: Instruction) -> Callable[[Array, Bool, U32], tuple[U32, Bool]]:
    """Returns ``match.{any,all}.sync.{b32,b64}`` as a function of value, active lanes and member
    masks.

    The function returns the lanes with the same value (for ``all``: the member mask if all values
    are equal, else 0), and whether all are equal.
    """
    form = instruction.modifiers
    if form not in [(k, "sync", t) for k in ("any", "all") for t in ("b32", "b64")]:
        raise refuse(instruction, "match.{any,all}.sync.{b32,b64}")
    whole = form[0] == "all"

    def run(value: Array, active: Bool, mask: U32) -> tuple[U32, Bool]:
        equal = (value[:, :, None] == value[:, None, :]) & active[:, None, :]
        same = np.packbits(equal, axis=2, bitorder="little").view(np.uint32)[:, :, 0] & mask
        agree = same == mask
        return (np.where(agree, mask, np.uint32(0)) if whole else same), agree

    return run


_REDUCTIONS: dict[str, tuple[np.ufunc, tuple[str, ...]]] = {
    "add": (np.add, ("u32", "s32")),
    "min": (np.minimum, ("u32", "s32")),
    "max": (np.maximum, ("u32", "s32")),
    "and": (np.bitwise_and, ("b32",)),
    "or": (np.bitwise_or, ("b32",)),
    "xor": (np.bitwise_xor, ("b32",)),
}


def redux(instruction: Instruction) -> Callable[[Array, Bool, U32], Array]:
    """Returns ``redux.sync.op.type`` as a function of value, active lanes and member masks.

    The value's dtype is that of ``type``; sums wrap around.
    """
    form = instruction.modifiers
    if form not in [("sync", k, t) for k, (_, types) in _REDUCTIONS.items() for t in types]:
        raise refuse(
            instruction, "redux.sync.{add,min,max}.{u32,s32} and redux.sync.{and,or,xor}.b32"
        )
    operation, ufunc = form[1], _REDUCTIONS[form[1]][0]
    limits = np.iinfo(np.int32 if form[2] == "s32" else np.uint32)
    neutral = {"and": limits.max, "min": limits.max, "max": limits.min}.get(operation, 0)

    def run(value: Array, active: Bool, mask: U32) -> Array:
        leader = np.where(active, mask, 0).max(axis=1, keepdims=True)
        identity = value.dtype.type(neutral)
        if ((mask == leader) | ~active).all():  # one mask in each warp
            chosen = np.where(members(leader[:, 0]) & active, value, identity)
            total = ufunc.reduce(chosen, axis=1, keepdims=True, dtype=value.dtype)
            return np.broadcast_to(total, value.shape)
        chosen = np.where(members(mask) & active[:, None, :], value[:, None, :], identity)
        result: Array = ufunc.reduce(chosen, axis=2, dtype=value.dtype)
        return result

    return run


def elect(active: Bool, mask: U32) -> tuple[U32, Bool]:
    """Executes ``elect.sync``: returns the leader's lane, and whether each lane is the leader.

    The leader is the lowest member; hardware only guarantees that it is always the same one.
    """
    inside = mask & ballot(active)
    lowest = inside & (~inside + np.uint32(1))
    leader = np.frexp(lowest.astype(np.float64))[1] - 1
    return np.maximum(leader, 0).astype(np.uint32), leader == _LANE
