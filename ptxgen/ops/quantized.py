"""Products with quantized weights: ``quantized_linear`` and ``quantized_linear_dgrad``.

Each has the plan and the bits of a dense product, whose weight is ``[N, K]``, in the dtype of the
other operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics import gemm as dense
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.numerics.dtype import BYTES, DTYPES
from ptxgen.numerics.formats import FORMATS
from ptxgen.numerics.option import Activation, Dtype, Kernel
from ptxgen.numerics.quantized import ACCUMULATE, ACCUMULATED, DGRAD, LINEAR, FormatName
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.weight_format import Quantized, WeightFormat
from ptxgen.ops import gemm
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
from ptxgen.tiles import TABLES

LAYOUT = "nk"
"""Layout of the weight of the dense product that has the same bits."""
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
    row, first = FORMATS[format], signature.arguments[0]
    given = {name: x for name, x in operands.items() if x is not None}
    row.check_arrays(given)
    for name, dtype in row.dtypes.items():
        check_dtype(name, given[name].dtype, (dtype,))
        check_contiguous(name, given[name])
        least = ALIGNMENTS.get(name, BYTES[dtype])
        if given[name].size and alignment(name, given[name]) < least:
            raise ShapeError(f"{name} starts off a multiple of {least} bytes; pass a copy of it")
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
        b.launch(lambda: _quantized(problem, key, row, size), {**bind, "c": y}, kernel)
    else:
        gemm.check_out(y, gemm.matrices("out", y, ())[0])
    return y


def _quantized(found: Problem, key: Key, row: WeightFormat, size: int) -> Problem:
    """Returns the problem of table ``key`` that computes the dense product ``found`` with a weight
    of format ``row``. Raises ShapeError if the dequantized weight, ``size`` bytes, exceeds scratch
    memory, and no kernel reads the codes.
    """
    dtype = Quantized(str(found.dtype), row)
    made = replace(
        found,
        table=key,
        dtype=dtype,
        values=tuple(pair for pair in found.values if pair[0] != "ALIGN_B"),
        what=f"quantized_{found.what} {row.name}",
    )
    if size > SCRATCH_MAX:
        table, given = TABLES[key], made.given(1)
        environment = table.space.environment(given)
        direct = any(r.takes(dtype) and r.requires.evaluate(environment) for r in table.routes)
        if not direct:
            raise ShapeError(
                f"the weight has {size} bytes when it is dequantized, which {made} takes: it may "
                f"have {SCRATCH_MAX}; split it along N, or lay x out at multiples of 16 bytes"
            )
    return made


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
    given = [at[n] for n in ("x", "data", "scales", "offsets", "bias")]
    how = at.only("format", "accumulate")
    dy = through_activation(b, at, partial(b.quantized_linear, *given, **how))
    wanted = "x" in at.needs
    return dy, {"x": b.quantized_linear_dgrad(dy, *given[1:4], **how)} if wanted else {}


def _stored(options: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the dtypes of a weight's arrays, by name, for the option ``format``."""
    return FORMATS[options["format"]].dtypes


@op(forms=LINEAR, vjp=_vjp, public=False, dtypes=_stored)
def quantized_linear(
    b: ProgramBuilder,
    x: Buffer,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    bias: Buffer | None = None,
    *,
    format: Format,
    accumulate: Accumulate = "auto",
    activation: Activation = None,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """Computes :func:`ptxgen.quantized.linear` of a weight that is passed as its arrays (``data``,
    ``scales``, ``offsets``) and the name of its ``format``.
    """
    of = {"x": x, "data": data, "scales": scales, "offsets": offsets, "bias": bias}
    how = format, out, out_dtype, accumulate, activation, kernel
    return _lowered(b, LINEAR, dense.LINEAR, of, *how)


def _dgrad_vjp(b: Builder, at: Backward) -> Gradients:
    dy = b.packed(b.cast(at.dys[0], b.dtype(at["dy"])))
    stored = [at[n] for n in ("data", "scales", "offsets")]
    return {"dy": b.quantized_linear(dy, *stored, **at.only("format", "accumulate"))}


@op(forms=DGRAD, vjp=_dgrad_vjp, public=False, dtypes=_stored)
def quantized_linear_dgrad(
    b: ProgramBuilder,
    dy: Buffer,
    data: Buffer,
    scales: Buffer,
    offsets: Buffer | None = None,
    *,
    format: Format,
    accumulate: Accumulate = "auto",
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """Computes :func:`ptxgen.quantized.linear_dgrad` of a weight that is passed as its arrays
    (``data``, ``scales``, ``offsets``) and the name of its ``format``.
    """
    of = {"dy": dy, "data": data, "scales": scales, "offsets": offsets}
    return _lowered(b, DGRAD, dense.DGRAD, of, format, out, out_dtype, accumulate, None, kernel)


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
        ``wide/1``, for float32 and formats of 4-bit codebooks. ``"auto"``: tc, or simt for float32.
    Order
        The bits are those of :func:`ptxgen.linear` on ``ptxgen.quantized.dequantize(q, x.dtype)``
        with ``layout="nk"``, whatever the route, unless sums are in f64.
        :func:`ptxgen.reference.quantized_linear` returns the same.
    Storage
        Rows of x may have any pitch, and stride 1 along the last dimension. Where no kernel reads
        the codes (formats other than 4-bit codebooks, rows off 16 bytes, or many rows in float32),
        the weight is dequantized into scratch memory of the stream, at most 1 GiB.
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
