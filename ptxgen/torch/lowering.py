"""Lowering of ATen operators to steps of programs, for compiled graphs.

:func:`lower` appends the steps of one call: by a handler of :mod:`ptxgen.torch.aten`, an
elementwise formula, or a rule of this module. It raises ``NotServed`` for other operators, which
remain calls of PyTorch (:mod:`ptxgen.torch.graphs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import torch

from ptxgen.errors import ShapeError
from ptxgen.numerics.dtype import COMPLEX, DTYPES, STORABLE
from ptxgen.numerics.dtype import NAMES as SHORT
from ptxgen.numerics.sort import KEYS
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.runtime.strided import Ints, is_contiguous
from ptxgen.spec.counting_sort import BINS_MAX, COUNT_MAX
from ptxgen.torch import elementwise, images, pointwise
from ptxgen.torch.aten import (
    LOWERED,
    add_at_indices,
    axes,
    can_add_at_indices,
    indexed_dims_first,
    wrapped,
)
from ptxgen.torch.elementwise import is_float
from ptxgen.torch.functions import FUNCTIONS, empty, meta
from ptxgen.torch.operators import registered
from ptxgen.torch.record import NAMES
from ptxgen.torch.unserved import UNKNOWN, NotServed

VIEWS: Final = {
    *("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "permute", "t", "transpose"),
    *("expand", "slice", "select", "split", "split_with_sizes", "unbind", "detach", "alias"),
    *("view_as_real", "view_as_complex", "unfold"),
}
"""Operators whose results are views, by overload packet. (Those of ``_unsafe_view`` and ``reshape``
may be copies.)
"""


@dataclass(frozen=True)
class Like:
    """Shape, strides, dtype (PyTorch's) and device of a tensor of the graph."""

    shape: Ints
    strides: Ints
    dtype: torch.dtype
    device: torch.device

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return int(prod(self.shape) * self.dtype.itemsize)

    def empty(self, b: ProgramBuilder) -> Buffer:
        """Returns a new dense buffer with the tensor's shape, dtype and order of dimensions."""
        return empty(b, self.shape, self.strides, NAMES[self.dtype])

    def strides_match(self, x: Buffer) -> bool:
        """Whether a buffer has the tensor's strides, apart from dimensions of size 1."""
        pairs = zip(self.shape, self.strides, x.strides, strict=True)
        return all(s == t for n, s, t in pairs if n > 1) or 0 in self.shape

    @property
    def dense(self) -> bool:
        """Whether the tensor's strides leave no gaps, in any order of dimensions."""
        order = sorted(range(len(self.shape)), key=lambda i: (-self.strides[i], i))
        return is_contiguous(*(tuple(of[i] for i in order) for of in (self.shape, self.strides)))


@dataclass(frozen=True)
class Context:
    """Context of one lowering: ``likes``, shape, strides and dtype of the results; ``tier`` of
    products; device type ``kind``; whether elementwise ``functions`` are ptxgen's; ``scatters``,
    whether kernels write rows at indices (else PyTorch does, in place).
    """

    likes: tuple[Like, ...]
    tier: str
    kind: str
    functions: bool
    scatters: bool = False

    @property
    def like(self) -> Like:
        """Shape, strides, dtype and device of the only result."""
        return self.likes[0]

    @property
    def shape(self) -> Ints:
        """Shape of the only result."""
        return self.likes[0].shape


Rule = Callable[..., Any]


# -- views --------------------------------------------------------------------------------------
def _reshape(b: Any, at: Context, x: Buffer, *_: Any) -> Any:
    return b.reshape(x, at.shape)


def _view(name: str) -> Rule:
    """Returns the rule of a view operator: PyTorch computes shape, strides and offset with a meta
    tensor.
    """
    op = getattr(torch.ops.aten, name)

    def rule(b: Any, at: Context, x: Buffer, *where: Any, **how: Any) -> Any:
        found = op(meta(x), *where, **how)
        several = isinstance(found, tuple | list)
        made = tuple(_as_view(x, view) for view in (found if several else (found,)))
        return made if several else made[0]

    return rule


def _as_view(x: Buffer, view: torch.Tensor) -> Buffer:
    offset = x.offset + view.storage_offset() * x.itemsize
    return replace(x, shape=tuple(view.shape), strides=view.stride(), offset=offset)


def _same(b: Any, at: Context, x: Buffer, *_: Any, **__: Any) -> Any:
    return x


# -- moves --------------------------------------------------------------------------------------
def _cast(b: Any, at: Context, x: Buffer, *_: Any, **__: Any) -> Any:
    """Casts ``x`` to the dtype of the result."""
    to = NAMES[at.like.dtype]
    if x.dtype == to:
        return x
    if x.dtype in COMPLEX and to not in COMPLEX:
        raise NotServed(UNKNOWN)  # PyTorch warns of the lost imaginary part
    if {x.dtype, to} - STORABLE.keys() or (is_float(x.dtype) and not is_float(to)):
        raise NotServed(UNKNOWN)  # casts of floats out of range differ from device to device
    if to == "float8_e4m3fn" and not elementwise.saturates():
        raise NotServed(UNKNOWN)
    return elementwise.lowered(b, "copied", at.kind, at.like.empty(b), (x,), {})


def _called(name: str) -> Rule:
    """Returns the rule that calls operation ``name`` on all operands, for a new tensor."""

    def rule(b: Any, at: Context, *given: Buffer) -> Any:
        return getattr(b, name)(*given, out=at.like.empty(b))

    return rule


def _put(name: str) -> Rule:
    """Returns the rule of ``slice_scatter`` or the like: copies ``x``, writes ``source`` to a view
    of it.
    """
    view = _view(name)

    def rule(b: Any, at: Context, x: Buffer, source: Buffer, *where: Any, **how: Any) -> Any:
        out = b.copied(x, at.like.empty(b))
        b.copied(source, view(b, at, out, *where, **how))
        return out

    return rule


def _view_backward(name: str) -> Rule:
    """Returns the rule of a view's gradient: zeros, with the incoming gradient written to a view of
    them.
    """
    put = _put(name)
    return lambda b, at, dy, sizes, *where: put(b, at, b.filled(sizes, dy.dtype, 0), dy, *where)


def _cat(b: Any, at: Context, arrays: Sequence[Buffer], dim: int = 0) -> Any:
    out = at.like.empty(b)
    given = [x for x in arrays if x.shape != (0,) or x.ndim == out.ndim]
    if any(x.dtype != out.dtype for x in given):
        raise NotServed(UNKNOWN)
    return b.concat(given, dim, out=out)


def _stack(b: Any, at: Context, arrays: Sequence[Buffer], dim: int = 0) -> Any:
    out = at.like.empty(b)
    for i, x in enumerate(arrays):
        b.copied(x, out.one(dim, i))
    return out


def _copy(b: Any, at: Context, x: Buffer, source: Buffer, *_: Any) -> Any:
    return _cast(b, at, source).expanded(at.shape)


def _filled(value: Any) -> Rule:
    """Returns the lowering rule that fills a new tensor of the result's shape with the number
    ``value``; if it is None, with the fill value among the call's arguments.
    """

    def rule(b: Any, at: Context, first: Any, *rest: Any, **how: Any) -> Any:
        number = how.get("fill_value", rest[0] if rest else None) if value is None else value
        if not isinstance(number, bool | int | float):
            raise NotServed(UNKNOWN)
        dtype = NAMES.get(at.like.dtype)
        if dtype not in SHORT or (isinstance(number, float) and not is_float(dtype)):
            raise NotServed(UNKNOWN)
        number = bool(number) if dtype == "bool" else number
        out = at.like.empty(b)
        b.fill(out, number, out=out)
        return out

    return rule


def _fill(b: Any, at: Context, x: Buffer, value: Any) -> Any:
    return _copy(b, at, x, value) if isinstance(value, Buffer) else _filled(value)(b, at, x)


def _embedding(b: Any, at: Context, weight: Buffer, indices: Buffer, *_: Any, **__: Any) -> Any:
    return b.embedding(weight, b.packed(indices))


def _of_images(move: Callable[..., Any], *how: Any) -> Rule:
    """Returns a rule that calls ``move``, a function of :mod:`ptxgen.torch.images`, with the
    builder, ``how`` and the operator's arguments.
    """
    return lambda b, at, *args: move(b, *how, *args)


def _repeat(b: Any, at: Context, x: Buffer, counts: Sequence[int]) -> Any:
    sizes = (1,) * (len(counts) - x.ndim) + x.shape
    pairs = list(zip(counts, sizes, strict=True))
    apart = b.reshape(x, [n for _, size in pairs for n in (1, size)])
    return b.reshape(apart.expanded([n for pair in pairs for n in pair]), at.shape)


def _shuffle(b: Any, at: Context, x: Buffer, by: int) -> Any:
    *lead, c, h, w = x.shape
    d = len(lead)
    parts = b.reshape(x, (*lead, c // by**2, by, by, h, w))
    order = *range(d), d, d + 3, d + 1, d + 4, d + 2
    return b.reshape(parts.permuted(order), at.shape)


def _unshuffle(b: Any, at: Context, x: Buffer, by: int) -> Any:
    *lead, c, h, w = x.shape
    d = len(lead)
    parts = b.reshape(x, (*lead, c, h // by, by, w // by, by))
    order = *range(d), d, d + 2, d + 4, d + 1, d + 3
    return b.reshape(parts.permuted(order), at.shape)


def _groups_shuffle(b: Any, at: Context, x: Buffer, groups: int) -> Any:
    n, c, *sizes = x.shape
    parts = b.reshape(x, (n, groups, c // groups, *sizes))
    return b.reshape(b.move(parts, 1, 2), at.shape)


def _roll(b: Any, at: Context, x: Buffer, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims:
        return b.reshape(b.roll(b.reshape(x, (x.size,)), *shifts, axis=0), x.shape)
    for by, dim in zip(shifts, dims, strict=True):
        x = b.roll(x, by, dim)
    return x


def _pad(b: Any, at: Context, x: Buffer, widths: Sequence[int], value: Any = 0) -> Any:
    """Pads with a constant. ``widths``: before and after, for each dimension from the last on;
    negative widths crop.
    """
    pairs = list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    if not isinstance(value, bool | int | float):
        raise NotServed(UNKNOWN)
    if not is_float(x.dtype) and x.dtype not in COMPLEX:
        value = int(value)
    for d, (low, high) in enumerate(pairs):
        start, end = max(-low, 0), x.shape[d] - max(-high, 0)
        x = x.narrowed(d, start, end - start)
    return b.pad(x, [(max(low, 0), max(high, 0)) for low, high in pairs], value)


def _index_select(b: Any, at: Context, x: Buffer, dim: int, index: Buffer) -> Any:
    if not x.shape:
        raise NotServed(UNKNOWN)
    return b.gather(b.packed(x), b.packed(b.reshape(index, (index.size,))), axis=dim)


MOVES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze"), _reshape),
    **{name: _view(name) for name in ("permute", "t", "transpose", "expand", "slice", "select")},
    **{name: _view(name) for name in ("split", "split_with_sizes", "unbind", "unfold")},
    **dict.fromkeys(("detach", "alias", "clone", "lift_fresh_copy"), _same),
    "view_as_real": lambda b, at, x: b.view_as_real(x),
    "view_as_complex": lambda b, at, x: b.view_as_complex(x),
    **dict.fromkeys(("_conj", "_conj_physical", "conj_physical"), _called("conj")),
    "complex": _called("complex"),
    "_to_copy": _cast,
    "copy": _copy,
    "fill": _fill,
    "cat": _cat,
    "stack": _stack,
    **{f"{name}_scatter": _put(name) for name in ("slice", "select")},
    **{f"{name}_backward": _view_backward(name) for name in ("slice", "select")},
    "embedding": _embedding,
    **{f"upsample_nearest{rank}d": _of_images(images.nearest) for rank in (1, 2, 3)},
    **{
        f"{kind}_pad{rank}d": _of_images(images.padded, kind)
        for kind in ("reflection", "replication")
        for rank in (1, 2, 3)
    },
    "repeat": _repeat,
    "pixel_shuffle": _shuffle,
    "pixel_unshuffle": _unshuffle,
    "channel_shuffle": _groups_shuffle,
    "roll": _roll,
    "constant_pad_nd": _pad,
    "index_select": _index_select,
    **dict.fromkeys(("zero", "zeros", "zeros_like", "new_zeros"), _filled(0)),
    **dict.fromkeys(("empty_like", "new_empty", "new_empty_strided"), _filled(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _filled(1)),
    **dict.fromkeys(("full", "full_like", "new_full"), _filled(None)),
}
"""Rules of operators that move values without arithmetic, by overload packet."""


# -- indexing -----------------------------------------------------------------------------------
_INTEGERS = ("int32", "int64")


def _row_index(x: Buffer, indices: Sequence[Any]) -> Buffer:
    """Returns the one integer index tensor of an indexing call that gathers rows of ``x``; raises
    NotServed for any other indexing.
    """
    first, *others = indices
    if others or not isinstance(first, Buffer) or first.dtype not in _INTEGERS or not x.shape:
        raise NotServed(UNKNOWN)
    return first


def _index(b: Any, at: Context, x: Buffer, indices: Sequence[Any]) -> Any:
    """Gathers rows of ``x`` by an integer index tensor; negative indices count from the end."""
    index, width = _row_index(x, indices), prod(x.shape[1:])
    rows = b.reshape(x, (x.shape[0], width))
    own = b.call(wrapped, b.packed(index), x.shape[0])
    return b.reshape(b.embedding(rows, own), at.shape)


def _index_put(
    b: Any, at: Context, x: Buffer, indices: Sequence[Any], values: Buffer, accumulate: bool = False
) -> Any:
    """Lowers ``index_put`` on a vector, or along one dimension, as in KV caches; of values with the
    same index the last wins. With ``accumulate``, values with the same index are added in order,
    and indices may be into any dimensions.
    """
    if accumulate:
        if x.dtype not in DTYPES or not can_add_at_indices(x, indices, values, _INTEGERS):
            raise NotServed(UNKNOWN)
        rows, source, order = indexed_dims_first(b, x, indices, values)
        found = add_at_indices(b, rows, source, *(i for i in indices if i is not None))
        return b.permute(found, [order.index(d) for d in range(len(order))])
    *ahead, last = indices
    if at.scatters and x.ndim > 1 and all(i is None for i in ahead):
        return _index_copy(b, at, x, len(ahead), last, values)
    index = _row_index(x, indices)
    alike = x.shape == index.shape == values.shape and x.dtype == values.dtype == "int64"
    if alike and _permutes(b, index):  # nothing of x is left
        return b.placed(b.packed(index), b.packed(values))
    if x.ndim != 1 or index.ndim != 1 or not 0 < index.size <= COUNT_MAX:
        raise NotServed(UNKNOWN)
    own = b.call(wrapped, b.packed(index), x.shape[0])
    given = b.packed(values.expanded(index.shape))
    x, given = (b.reshape(v, (1, v.size, 1)) for v in (b.packed(x), given))
    return b.reshape(b.put_rows(x, own, given), at.shape)


def _index_copy(b: Any, at: Context, x: Buffer, dim: int, index: Any, values: Buffer) -> Any:
    """Writes slices along dimension ``dim`` at integer indices; of several with one index the last
    wins. Negative indices count from the end; indices out of range write nothing.
    """
    index = _row_index(x, (index,))
    if not at.scatters or index.ndim > 1 or not 0 < index.size <= COUNT_MAX:
        raise NotServed(UNKNOWN)
    dim %= x.ndim
    ahead, behind = x.shape[:dim], x.shape[dim + 1 :]
    out = b.copied(x, at.like.empty(b))
    flat = out.reshaped((prod(ahead), x.shape[dim], prod(behind))) if out.contiguous else None
    if flat is None or values.dtype != x.dtype:
        raise NotServed(UNKNOWN)
    own = b.call(wrapped, b.reshape(b.packed(index), (index.size,)), x.shape[dim])
    given = b.packed(values.expanded((*ahead, index.size, *behind)))
    b.put_rows(flat, own, b.reshape(given, (flat.shape[0], index.size, flat.shape[2])), out=flat)
    return out


def _permutes(b: ProgramBuilder, index: Buffer) -> bool:
    """Whether ``index`` is the permutation returned by a sort of the builder's program."""
    made = (s.bind["at"] for s in b.steps if s.problem.table == ("counting_sort", "sort"))
    return index.whole and any(isinstance(x, Buffer) and x.memory is index.memory for x in made)


def _sort(b: Any, at: Context, x: Buffer, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    """Sorts along ``dim``; equal elements keep their order."""
    if not x.shape or x.dtype not in KEYS:
        raise NotServed(UNKNOWN)
    if x.ndim == 1 and x.dtype in _INTEGERS and not descending and 0 < x.size <= COUNT_MAX:
        return b.sort_integers(b.packed(x))
    return b.sort(x, dim, descending=descending)


def _histc(b: Any, at: Context, x: Buffer, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """Counts integers, with one bin for each integer from ``min`` to ``max``."""
    if x.dtype not in _INTEGERS or min != int(min) or max - min + 1 != bins or bins > BINS_MAX:
        raise NotServed(UNKNOWN)
    found = b.count_integers(b.reshape(b.packed(x), (x.size,)), bins, first=int(min))
    return b.cast(found, x.dtype)


def _integers_summed(b: Any, at: Context, x: Buffer, dim: int, **_: Any) -> Any:
    """Computes the prefix sums of a vector of integers."""
    to = NAMES[at.like.dtype]
    if x.ndim != 1 or x.dtype not in _INTEGERS or to not in _INTEGERS:
        raise NotServed(UNKNOWN)
    return b.cumsum(b.packed(b.cast(x, to)))


def _counted(
    b: Any, at: Context, x: Buffer, dim: Any = None, keepdim: bool = False, **_: Any
) -> Any:
    """Sums integers, or counts booleans that are true."""
    if is_float(x.dtype) or NAMES[at.like.dtype] != "int64":
        raise NotServed(UNKNOWN)
    return b.sum(b.cast(x, "int64"), axis=axes(x, dim), keepdims=keepdim)


def _extreme_at(name: str) -> Rule:
    """Returns the lowering rule of ``name``, argmax or argmin: the index of the first extreme
    element, or of the first NaN.
    """

    def rule(b: Any, at: Context, x: Buffer, dim: Any = None, keepdim: bool = False) -> Any:
        return getattr(b, name)(x, axis=axes(x, dim), keepdims=keepdim)

    return rule


INDEXING: Final[dict[str, Rule]] = {
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index_put,
    "index_copy": _index_copy,
    "argmax": _extreme_at("argmax"),
    "argmin": _extreme_at("argmin"),
    "sum": _counted,
    "sort": _sort,
    "histc": _histc,
    "cumsum": _integers_summed,
}
"""Rules of operators that compute indices, or gather or scatter rows by them."""


# -- operators of the library -----------------------------------------------------------------
def _own(b: Any, packet: str, args: Sequence[Any], how: Mapping[str, Any]) -> Any:
    """Lowers operator ``packet`` of ``torch.ops.ptxgen``: an operation of the library, or its
    gradient.
    """
    if packet == "pointwise":
        return pointwise.lower(b, *args)
    name = packet.removesuffix("_vjp")
    of = registered(name)
    if of is None or packet.endswith("_vjp_"):
        raise NotServed(UNKNOWN)
    if name != packet:
        return of.lower_vjp(b, *args, **how)
    return of.lower(b, args, how)


# -- all ----------------------------------------------------------------------------------------
def _bound(
    op: Any, args: Sequence[Any], how: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Returns all arguments of a call, defaults included: positional ones, and keyword ones."""
    placed, by_name = [], {}
    for i, a in enumerate(op._schema.arguments):
        value = args[i] if i < len(args) else how.get(a.name, a.default_value)
        if a.kwarg_only:
            by_name[a.name] = value
        else:
            placed.append(value)
    return placed, by_name


def _lowered(b: ProgramBuilder, op: Any, at: Context, args: Any, how: Mapping[str, Any]) -> Any:
    packet, name = op.overloadpacket.__name__, op.name()
    if op.namespace == "ptxgen":
        return _own(b, packet, args, how)
    if op.namespace != "aten":
        raise NotServed(UNKNOWN)
    name = name.removeprefix("aten::")
    if name in LOWERED and (at.functions or name not in FUNCTIONS):
        placed, by_name = _bound(op, args, how)
        try:
            return LOWERED[name](b, at.tier, *placed, **by_name)
        except NotServed:
            if packet not in elementwise.SERVED and packet not in INDEXING:
                raise
    rule = MOVES.get(packet) or INDEXING.get(packet)
    if rule is not None:
        return rule(b, at, *args, **how)
    if packet in elementwise.SERVED and "out" not in how:
        if NAMES.get(at.like.dtype) not in SHORT | COMPLEX:
            raise NotServed(UNKNOWN)
        return elementwise.lowered(b, packet, at.kind, at.like.empty(b), args, dict(how))
    raise NotServed(UNKNOWN)


def lower(b: ProgramBuilder, op: Any, at: Context, args: Any, how: Mapping[str, Any]) -> Any:
    """Appends the steps of a call of ``op``; returns result buffers. ``args``, ``how``: positional
    and keyword arguments, with buffers for tensors. Copies operands with strides that no kernel
    reads.

    Raises NotServed, or the error of the operation, for a call that PyTorch has to make; the
    builder's steps are then unchanged.
    """
    count = len(b.steps)
    try:
        try:
            return _lowered(b, op, at, args, how)
        except ShapeError:
            del b.steps[count:]
            return _lowered(b, op, at, _packed(b, args), how)
    except Exception:
        del b.steps[count:]
        raise


def _packed(b: ProgramBuilder, tree: Any) -> Any:
    if isinstance(tree, Buffer):
        return b.contiguous(tree)
    if isinstance(tree, tuple | list):
        return type(tree)(_packed(b, x) for x in tree)
    return tree
