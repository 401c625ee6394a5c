"""Products with quantized weights: ``quantized_linear`` and ``quantized_linear_dgrad``.

Each has the plan and the bits of a dense product, whose weight is ``[N, K]``, in the dtype of the
other operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics import gemm as dense
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.numerics.dtype import BYTES, DTYPES
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.option import Activation, Dtype, Kernel
from ptxgen.numerics.quantized import (
    ACCUMULATE,
    ACCUMULATED,
    DEQUANTIZE,
    DGRAD,
    EMBEDDING,
    GROUPED,
    LINEAR,
    FormatName,
)
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.weight_format import ARRAYS, Quantized, WeightFormat
from ptxgen.ops import gemm, grouped
from ptxgen.ops.gradients import through_activation
from ptxgen.ops.products import bias_gradient
from ptxgen.ops.quantized_weight import DTYPES as WEIGHTS
from ptxgen.ops.quantized_weight import QuantizedWeight, checked, whole_blocks
from ptxgen.ops.views import alignment, check_contiguous, check_dtype, single
from ptxgen.program.buffer import Buffer, imagined
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import SCRATCH_MAX, Key, Problem
from ptxgen.spec.quantized import PIECE
from ptxgen.spec.realign import VECTOR
from ptxgen.tiles import TABLES

LAYOUT = "nk"
"""Layout of the weight of the dense product that has the same bits."""
ROWS = 256
"""Rows of a weight of which pieces have a multiple, if they are dequantized one after the other."""
ALIGNMENTS = {"data": 16}
"""Required alignment of a quantized weight's arrays, in bytes, by array name. An array that is not
listed needs the alignment of its elements.
"""
Accumulate = Annotated[str, ACCUMULATE]
Format = Annotated[str, FormatName()]


def _lowered(
    b: ProgramBuilder,
    signature: Signature,
    like: Signature,
    operands: Mapping[str, Buffer | None],
    format: str,
    out: Any,
    out_dtype: str | None,
    accumulate: str,
    activation: str | None,
    kernel: str | None,
) -> Buffer:
    """Records the launch of a quantized product, and returns its result. ``like``: the signature of
    the dense product with the same bits.
    """
    first = signature.arguments[0]
    row, given = _given(format, operands)
    inferred = signature.infer({name: x.shape for name, x in given.items()}, format)
    sizes, dtype = inferred.sizes, given[first].dtype
    check_dtype(first, dtype, WEIGHTS)
    whole_blocks(row, first, sizes["K"], given[first].shape)
    w = imagined((sizes["N"], sizes["K"]), dtype)
    factors = {name: v for name, v in given.items() if name in like.arguments} | {"w": w}
    target = single(out)
    wanted = gemm.result_dtype(like.name, factors, out_dtype, target)
    y = b.result(inferred.results[0], wanted, target)
    storage = OPERATIONS[like.name].products[LAYOUT].layout
    key = _table(row, dtype, accumulate, storage)
    if b.abstract:
        return y
    found = gemm.read(
        like,
        factors,
        layout=LAYOUT,
        tier="auto",
        wanted=wanted,
        activation=activation,
        served=lambda asked, _: asked == storage,
    )
    if y.size:
        bind: dict[str, Any] = {"a": given[first], **{name: given[name] for name in row.dtypes}}
        if "bias" in signature.arguments:
            bind["bias"] = given.get("bias")
        padded = -(-sizes["K"] // PIECE) * PIECE  # rows in scratch memory are whole pieces
        size = sizes["N"] * padded * BYTES[dtype]
        ((problem, _),) = found.launched(y)
        if size > SCRATCH_MAX and like is dense.LINEAR and not _direct(problem, key, row):
            rows = max(SCRATCH_MAX // (padded * BYTES[dtype]) // ROWS * ROWS, ROWS)
            for start in range(0, sizes["N"], rows):
                part = _part(b, given, start, min(rows, sizes["N"] - start))
                to = b.narrow(y, -1, start, min(rows, sizes["N"] - start))
                how = out_dtype, accumulate, activation, kernel
                _lowered(b, signature, like, {**operands, **part}, format, to, *how)
            return y
        b.launch(lambda: _quantized(problem, key, row, size), {**bind, "c": y}, kernel)
    else:
        gemm.check_out(y, gemm.matrices("out", y, ())[0])
    return y


def _part(
    b: ProgramBuilder, given: Mapping[str, Buffer], start: int, count: int
) -> dict[str, Buffer]:
    """Returns the arrays of ``count`` rows of a weight, and their elements of a bias, by name."""
    return {
        name: x if name == "groups" else b.narrow(x, 0, start, count)
        for name, x in given.items()
        if name in (*ARRAYS, "bias")
    }


def _by_name(*arrays: Buffer | None) -> dict[str, Buffer | None]:
    """Returns the arrays of a weight, in the order of ``ARRAYS``, by name."""
    return dict(zip(ARRAYS, arrays, strict=True))


def _given(
    format: str, operands: Mapping[str, Buffer | None]
) -> tuple[WeightFormat, dict[str, Buffer]]:
    """Returns the format of a name, and the operands that are there. Raises OptionError, DtypeError
    and ShapeError for arrays of a weight that do not fit the format.
    """
    row = format_named(format)
    given = {name: x for name, x in operands.items() if x is not None}
    row.check_arrays(given)
    for name, dtype in row.dtypes.items():
        check_dtype(name, given[name].dtype, (dtype,))
        check_contiguous(name, given[name])
        least = ALIGNMENTS.get(name, BYTES[dtype])
        if given[name].size and alignment(name, given[name]) < least:
            raise ShapeError(f"{name} starts off a multiple of {least} bytes; pass a copy of it")
    return row, given


def _quantized(found: Problem, key: Key, row: WeightFormat, size: int) -> Problem:
    """Returns the problem of table ``key`` that computes the dense product ``found`` with a weight
    of format ``row``. Raises ShapeError if the dequantized weight, ``size`` bytes, exceeds scratch
    memory, and no kernel reads the codes.
    """
    made = _renamed(found, key, row)
    if size > SCRATCH_MAX and not _direct(found, key, row):
        raise ShapeError(
            f"the weight has {size} bytes when it is dequantized, which {made} takes: it may "
            f"have {SCRATCH_MAX}; split it along N, or lay x out at multiples of 16 bytes"
        )
    return made


def _renamed(found: Problem, key: Key, row: WeightFormat) -> Problem:
    return replace(
        found,
        table=key,
        dtype=Quantized(str(found.dtype), row),
        values=tuple(pair for pair in found.values if pair[0] != "ALIGN_B"),
        what=f"quantized_{found.what} {row.name}",
    )


def _direct(found: Problem, key: Key, row: WeightFormat) -> bool:
    """Whether a route of table ``key`` computes the dense product ``found`` with a weight of format
    ``row`` that is larger than scratch memory when it is dequantized: from its codes.
    """
    made, table = _renamed(found, key, row), TABLES[key]
    environment = table.space.environment(made.given(1))
    return any(r.takes(made.dtype) and r.requires.evaluate(environment) for r in table.routes)


def _table(row: WeightFormat, dtype: str, asked: str, storage: str) -> Key:
    """Returns the key of the route table of products with a weight of format ``row`` and operands
    of ``dtype``; ``asked``: the option ``accumulate``. Raises OptionError if that has no kernels
    for the format.
    """
    keys = {}
    for tier in ACCUMULATED[dtype]:
        width = "f32" if dtype == "float32" else "half"
        key = ("quantized", storage, "chunks", width, tier)
        what = Quantized(DTYPES[dtype], row)
        if any(route.takes(what) for route in TABLES[key].routes):
            keys[tier] = key
    if asked not in ("auto", *keys):
        takes = ", ".join(map(repr, ("auto", *keys)))
        raise OptionError(f"accumulate is {asked!r}; {dtype} and {row.name} take {takes}")
    return next(iter(keys.values())) if asked == "auto" else keys[asked]


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``quantized_linear`` by x and the bias; the weight is frozen."""
    dy, found = frozen_vjp(b, at)
    if "bias" in at.needs:
        found["bias"] = bias_gradient(b, dy, b.dtype(at["bias"]))
    return found


def frozen_vjp(b: Builder, at: Backward) -> tuple[Any, Gradients]:
    """Returns the gradient by the argument of ``quantized_linear``'s activation, and a dict with
    the gradient by x if that is needed.
    """
    stored, how = [at[n] for n in ARRAYS], at.only("format", "accumulate")
    product = partial(b.quantized_linear, at["x"], *stored, at["bias"], **how)
    dy = through_activation(b, at, product)
    wanted = "x" in at.needs
    return dy, {"x": b.quantized_linear_dgrad(dy, *stored, **how)} if wanted else {}


def _stored(options: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the dtypes of a weight's arrays, by name, for the option ``format``."""
    return format_named(options["format"]).dtypes


@op(forms=LINEAR, vjp=_vjp, public=False, dtypes=_stored)
def quantized_linear(
    b: ProgramBuilder,
    x: Buffer,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    outer: Buffer | None = None,
    groups: Buffer | None = None,
    bias: Buffer | None = None,
    *,
    format: Format,
    accumulate: Accumulate = "auto",
    activation: Activation = None,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """Computes :func:`ptxgen.quantized.linear` of a weight that is passed as its arrays (those of
    :data:`ptxgen.numerics.weight_format.ARRAYS`) and the name of its ``format``.
    """
    of = {"x": x, **_by_name(data, scales, offsets, outer, groups), "bias": bias}
    how = format, out, out_dtype, accumulate, activation, kernel
    return _lowered(b, LINEAR, dense.LINEAR, of, *how)


def _dgrad_vjp(b: Builder, at: Backward) -> Gradients:
    dy = b.packed(b.cast(at.dys[0], b.dtype(at["dy"])))
    stored = [at[n] for n in ARRAYS]
    return {"dy": b.quantized_linear(dy, *stored, **at.only("format", "accumulate"))}


@op(forms=DGRAD, vjp=_dgrad_vjp, public=False, dtypes=_stored)
def quantized_linear_dgrad(
    b: ProgramBuilder,
    dy: Buffer,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    outer: Buffer | None = None,
    groups: Buffer | None = None,
    *,
    format: Format,
    accumulate: Accumulate = "auto",
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """Computes :func:`ptxgen.quantized.linear_dgrad` of a weight that is passed as its arrays
    (those of :data:`ptxgen.numerics.weight_format.ARRAYS`) and the name of its ``format``.
    """
    of = {"dy": dy, **_by_name(data, scales, offsets, outer, groups)}
    return _lowered(b, DGRAD, dense.DGRAD, of, format, out, out_dtype, accumulate, None, kernel)


# -- dequantized ------------------------------------------------------------------------------
def _frozen(b: Builder, at: Backward) -> Gradients:
    """Gradients of an operation whose only array is a frozen weight: none."""
    return {}


@op(forms=DEQUANTIZE, vjp=_frozen, public=False, dtypes=_stored)
def quantized_dequantize(
    b: ProgramBuilder,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    outer: Buffer | None = None,
    groups: Buffer | None = None,
    *,
    format: Format,
    dtype: Dtype = None,
    out: Out = None,
) -> Buffer:
    """Dequantizes a weight by a kernel: :func:`ptxgen.quantized.dequantize` ``[N, K]``; ``dtype``
    is float32 by default.
    """
    stored = _by_name(data, scales, offsets, outer, groups)
    row, given = _given(format, stored)
    inferred = DEQUANTIZE.infer({name: x.shape for name, x in given.items()}, format)
    (n, k), wanted = inferred.results[0], dtype or "float32"
    check_dtype("dtype", wanted, WEIGHTS)
    y = b.result((n, k), wanted, single(out))
    if b.abstract or not y.size:
        return y
    whole_blocks(row, "data", k, data.shape)
    check_contiguous("out", y)
    if alignment("out", y) < VECTOR:
        raise ShapeError(f"out starts off a multiple of {VECTOR} bytes")
    key = "dequantize", "f32" if wanted == "float32" else "half"
    kind = Quantized(DTYPES[wanted], row)
    blocks = -(-k // PIECE)
    most = SCRATCH_MAX // (4 * PIECE * blocks)
    for start in range(0, n, most):
        rows = min(most, n - start)
        parts = {
            name: x if name == "groups" else b.narrow(x, 0, start, rows)
            for name, x in given.items()
        }
        values = ("BLOCKS", rows * blocks), ("COUNT", rows * k), ("COLUMNS", k)
        made = partial(Problem, key, kind, values, (), f"dequantize {rows} x {k} of {row.name}")
        b.launch(made, {**parts, "y": b.narrow(y, 0, start, rows)}, None)
    return y


def _embedded(options: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the dtypes of the arrays of ``quantized_embedding``, by name."""
    return {**_stored(options), "indices": "int64"}


def _grouped_dtypes(options: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the dtypes of the weight and of ``ends``, by name."""
    return {**_stored(options), "ends": "int32"}


@op(forms=EMBEDDING, vjp=_frozen, public=False, dtypes=_embedded)
def quantized_embedding(
    b: ProgramBuilder,
    indices: Buffer,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    outer: Buffer | None = None,
    groups: Buffer | None = None,
    *,
    format: Format,
    dtype: Dtype = None,
) -> Buffer:
    """Computes :func:`ptxgen.quantized.embedding` of a weight that is passed as its arrays."""
    stored = _by_name(data, scales, offsets, outer, groups)
    _, given = _given(format, stored)
    shapes = {name: x.shape for name, x in given.items()}
    (shape,) = EMBEDDING.infer({"indices": indices.shape, **shapes}, format).results
    wanted = dtype or "float32"
    if b.abstract or not prod(shape):
        return b.result(shape, wanted)
    flat = b.reshape(indices, (prod(indices.shape),))
    rows = {n: x if n == "groups" else b.embedding(x, flat) for n, x in given.items()}
    return b.reshape(b.quantized_dequantize(**rows, format=format, dtype=wanted), shape)


def _experts(b: Any, format: str, stored: Mapping[str, Any], x: Any, ends: Any) -> Any:
    """Returns the dequantized weights ``[E, N, K]`` of experts, in the dtype of x; ``stored``: the
    arrays of a weight ``[E · N, K]``; ``ends``: ``[E]``.
    """
    w = b.quantized_dequantize(**stored, format=format, dtype=b.dtype(x))
    total, k = w.shape
    experts = ends.shape[0] if len(ends.shape) == 1 else 0
    if not experts or total % experts:
        raise ShapeError(
            f"data has {total} rows, ends has shape {list(ends.shape)}; takes as many rows for "
            "each of its groups"
        )
    return b.reshape(w, (experts, total // experts, k))


def _grouped_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``quantized_grouped_linear`` by x and the bias; the weight is frozen."""
    stored = {name: at[name] for name in ARRAYS}
    w = _experts(b, at.options["format"], stored, at["x"], at["ends"])
    product = partial(b.grouped_linear, at["x"], w, at["ends"], at["bias"], layout=LAYOUT)
    dy, found = through_activation(b, at, product), {}
    if "x" in at.needs:
        found["x"] = b.grouped_linear(dy, w, at["ends"], layout="kn")
    if "bias" in at.needs:
        found["bias"] = grouped.bias_gradient(b, dy, at["ends"], b.dtype(at["bias"]))
    return found


@op(forms=GROUPED, vjp=_grouped_vjp, public=False, dtypes=_grouped_dtypes)
def quantized_grouped_linear(
    b: ProgramBuilder,
    x: Buffer,
    ends: Buffer,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    outer: Buffer | None = None,
    groups: Buffer | None = None,
    bias: Buffer | None = None,
    *,
    format: Format,
    activation: Activation = None,
    out: Out = None,
    out_dtype: Dtype = None,
) -> Buffer:
    """Computes :func:`ptxgen.quantized.grouped_linear` of a weight that is passed as its arrays."""
    stored = _by_name(data, scales, offsets, outer, groups)
    w = _experts(b, format, stored, x, ends)
    how = {"activation": activation, "out": out, "out_dtype": out_dtype}
    found: Buffer = b.grouped_linear(x, w, ends, bias, layout=LAYOUT, **how)
    return found


# -- of weights -------------------------------------------------------------------------------
def linear(
    x: Any,
    q: QuantizedWeight,
    bias: Any = None,
    *,
    activation: str | None = None,
    accumulate: str = "auto",
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``y = activation(x · Wᵀ + bias)`` for a quantized W ``[N, K]``, strictly batch-invariant.

    Shapes
        ``x`` ``[..., K]``; ``q`` a :class:`ptxgen.quantized.QuantizedWeight` ``[N, K]``;
        ``bias`` ``[N]``; the result ``[..., N]``.
    Dtypes
        ``x`` float32, bfloat16 or float16; ``bias`` and the result as in :func:`ptxgen.linear`.
    Accumulation
        ``"tc"``: tensor cores, contract ``tc16/3``, for bfloat16 and float16. ``"simt"``: FMA
        units, contract ``fma/3``, for float32. ``"f64"``: sums in f64, rounded once, contract
        ``wide/1``, for float32 and formats of 4 bits with f32 scales of 64 elements and no offsets.
        ``"auto"``: tc, or simt for float32.
    Order
        The bits are those of :func:`ptxgen.linear` on ``ptxgen.quantized.dequantize(q, x.dtype)``
        with ``layout="nk"``, whatever the route, unless sums are in f64.
        :func:`ptxgen.reference.quantized_linear` returns the same.
    Storage
        Rows of x may have any pitch, and stride 1 along the last dimension. Where no kernel reads
        the codes (formats other than prepared ones, rows off 16 bytes, or many rows in float32),
        the weight is dequantized into scratch memory of the stream, at most 1 GiB: a larger weight
        in pieces along N, one after the other, with the same bits.
    Errors
        Those of :func:`ptxgen.linear`; so are the other arguments.
    Source
        ``ptxgen/ops/quantized.py``, ``ptxgen/tiles/quantized.py``.

    >>> import numpy, ptxgen
    >>> q = ptxgen.quantized.quantize(numpy.eye(2, 64, dtype="f4"), "int8_block")
    >>> ptxgen.reference.quantized_linear(numpy.arange(64, dtype="f4"), q)
    array([0., 1.], dtype=float32)
    """
    how = {"activation": activation, "accumulate": accumulate, "out": out, "out_dtype": out_dtype}
    how |= {"format": checked(q).format.name, "stream": stream, "kernel": kernel}
    return quantized_linear.function(x, *checked(q).operands, bias, **how)


def linear_dgrad(
    dy: Any,
    q: QuantizedWeight,
    *,
    accumulate: str = "auto",
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``dx = dy · W`` for a quantized weight W ``[N, K]``, strictly batch-invariant.

    Shapes
        ``dy`` ``[..., N]``; ``q`` as in :func:`ptxgen.quantized.linear`; the result ``[..., K]``.
        N = 0 gives zeros.
    Dtypes
        ``dy`` float32, bfloat16 or float16; the result as in :func:`ptxgen.linear_dgrad`.
    Order
        The bits are those of :func:`ptxgen.linear_dgrad` on
        ``ptxgen.quantized.dequantize(q, dy.dtype)`` with ``layout="nk"``;
        :func:`ptxgen.reference.quantized_linear_dgrad` returns the same.
    Errors
        Those of :func:`ptxgen.quantized.linear`; all else is as there.
    Source
        ``ptxgen/ops/quantized.py``, ``ptxgen/tiles/quantized.py``.

    >>> import numpy, ptxgen
    >>> q = ptxgen.quantized.quantize(numpy.eye(2, 64, dtype="f4"), "int8_block")
    >>> ptxgen.reference.quantized_linear_dgrad(numpy.float32([3, 4]), q)[:4]
    array([3., 4., 0., 0.], dtype=float32)
    """
    how = {"accumulate": accumulate, "out": out, "out_dtype": out_dtype}
    how |= {"format": checked(q).format.name, "stream": stream, "kernel": kernel}
    return quantized_linear_dgrad.function(dy, *checked(q).operands, **how)


def embedding(
    indices: Any, q: QuantizedWeight, *, dtype: Any = "float32", stream: Any = None
) -> Any:
    """``y[..., :] = W[indices[...], :]`` for a quantized W ``[N, K]``: rows, dequantized.

    Shapes
        ``indices`` ``[...]``; ``q`` a :class:`ptxgen.quantized.QuantizedWeight` ``[N, K]``; the
        result ``[..., K]``.
    Dtypes
        ``indices`` int32 or int64. ``dtype``: float32, bfloat16 or float16.
    Order
        No sums: the bits are those of :func:`ptxgen.embedding` on
        ``ptxgen.quantized.dequantize(q, dtype)``. The row of an index out of range is decoded from
        codes, scales and offsets of 0.
    Errors
        Those of :func:`ptxgen.embedding`.
    Source
        ``ptxgen/ops/quantized.py``.
    """
    how = {"format": checked(q).format.name, "dtype": dtype, "stream": stream}
    return quantized_embedding.function(indices, *q.operands, **how)


def grouped_linear(
    x: Any,
    q: QuantizedWeight,
    ends: Any,
    bias: Any = None,
    *,
    activation: str | None = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> Any:
    """``y[i] = activation(x[i] · W[g]ᵀ + bias[g])`` for each row i of group g, by expert.

    Shapes
        ``x`` ``[M, K]``; ``q`` ``[E · N, K]``, the experts' weights one below the other;
        ``ends`` ``[E]``, the rows behind each group (``offsets`` of
        :func:`ptxgen.grouped_linear`), and ``bias`` ``[E, N]``; the result ``[M, N]``.
    Dtypes
        ``x`` float32, bfloat16 or float16; ``ends`` int32.
    Order
        The bits are those of :func:`ptxgen.grouped_linear` on
        ``ptxgen.quantized.dequantize(q, x.dtype)``, viewed as ``[E, N, K]``, with ``layout="nk"``.
        Rows after the last end, of no group, are zeros.
    Storage
        The weights of all experts are dequantized into the program's memory.
    Errors
        Those of :func:`ptxgen.grouped_linear`.
    Source
        ``ptxgen/ops/quantized.py``.
    """
    how = {"activation": activation, "out": out, "out_dtype": out_dtype, "stream": stream}
    how |= {"format": checked(q).format.name}
    return quantized_grouped_linear.function(x, ends, *q.operands, bias, **how)
