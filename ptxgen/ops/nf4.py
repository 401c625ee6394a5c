"""Products with NF4 weights: ``nf4_linear`` and ``nf4_linear_dgrad``.

They are read as the dense products that they have the bits of, whose weight is ``[N, K]``, in the
dtype of the other operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics import gemm as dense
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.numerics.dtype import BYTES
from ptxgen.numerics.nf4 import ACCUMULATE, ACCUMULATED, DGRAD, LINEAR
from ptxgen.numerics.option import Activation, Dtype, Kernel
from ptxgen.numerics.signature import Signature
from ptxgen.ops import gemm
from ptxgen.ops.gradients import through_activation
from ptxgen.ops.nf4_weight import DTYPES as WEIGHTS
from ptxgen.ops.nf4_weight import Weight, checked, whole_blocks
from ptxgen.ops.products import bias_gradient
from ptxgen.ops.views import alignment, check_contiguous, check_dtype, single
from ptxgen.program.buffer import Buffer, imagined
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import SCRATCH_MAX, Problem
from ptxgen.tiles import TABLES

LAYOUT = "nk"
"""How the weight of the dense product is stored."""
_READ = {"data": 16, "scales": 4}
"""Bytes that kernels read at a time."""
_STORED = {"data": "uint8", "scales": "float32"}
Accumulate = Annotated[str, ACCUMULATE]


def _lowered(
    b: ProgramBuilder,
    signature: Signature,
    like: Signature,
    operands: Mapping[str, Buffer | None],
    out: Any,
    out_dtype: str | None,
    accumulate: str,
    activation: str | None,
    kernel: str | None,
) -> Buffer:
    """The product that a call asks for; ``like``: the dense one."""
    given = {name: x for name, x in operands.items() if x is not None}
    for name, dtype in _STORED.items():
        check_dtype(name, given[name].dtype, (dtype,))
        check_contiguous(name, given[name])
        if given[name].size and alignment(name, given[name]) < _READ[name]:
            raise ShapeError(
                f"{name} starts off a multiple of {_READ[name]} bytes; pass a copy of it"
            )
    inferred = signature.infer({name: view.shape for name, view in given.items()})
    sizes, first = inferred.sizes, signature.arguments[0]
    dtype = given[first].dtype
    check_dtype(first, dtype, WEIGHTS)
    whole_blocks(first, sizes["K"], given[first].shape)
    tier = _tier(dtype, accumulate)
    w = imagined((sizes["N"], sizes["K"]), dtype)
    factors = {name: v for name, v in given.items() if name in like.arguments} | {"w": w}
    target = single(out)
    wanted = gemm.result_dtype(like.name, factors, out_dtype, target)
    y = b.result(inferred.results[0], wanted, target)
    if b.abstract:
        return y
    storage = OPERATIONS[like.name].products[LAYOUT].layout
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
        bind = {"a": given[first], "data": given["data"], "scales": given["scales"]}
        if "bias" in signature.arguments:
            bind["bias"] = given.get("bias")  # type: ignore[assignment]
        size = sizes["N"] * sizes["K"] * BYTES[dtype]
        ((problem, _),) = found.launched(y)
        b.launch(lambda: _quantised(problem, tier, size), {**bind, "c": y}, kernel)
    else:
        gemm.check_out(y, gemm.matrices("out", y, ())[0])
    return y


def _quantised(found: Problem, tier: str, size: int) -> Problem:
    """The problem, in a tier, whose weight is dequantised into what ``found`` reads, of ``size``
    bytes. Raises ShapeError where that is too many for scratch memory, and no kernel reads it as it
    is stored.
    """
    made = replace(
        found,
        table=("nf4", *found.table[:-1], tier),
        values=tuple(pair for pair in found.values if pair[0] != "ALIGN_B"),
        what=f"nf4_{found.what}",
    )
    space = TABLES[made.table].space
    if size > SCRATCH_MAX and not space.within.evaluate(space.environment(made.given(1))):
        raise ShapeError(
            f"the weight has {size} bytes when it is dequantised, which {made} takes: it may have "
            f"{SCRATCH_MAX}; split it along N, or lay x out at multiples of 16 bytes"
        )
    return made


def _tier(dtype: str, asked: str) -> str:
    """The tier of kernels that ``accumulate`` asks for."""
    tiers = ACCUMULATED[dtype]
    if asked not in ("auto", *tiers):
        takes = ", ".join(map(repr, ("auto", *tiers)))
        raise OptionError(f"accumulate is {asked!r}; {dtype} takes {takes}")
    return tiers[0] if asked == "auto" else asked


def _vjp(b: Builder, at: Backward) -> Gradients:
    """By x and the bias; the weight is frozen."""
    dy, found = frozen_vjp(b, at)
    if "bias" in at.needs:
        found["bias"] = bias_gradient(b, dy, b.dtype(at["bias"]))
    return found


def frozen_vjp(b: Builder, at: Backward) -> tuple[Any, Gradients]:
    """dy by the product and the bias, and the gradient by x."""
    given, how = [at[n] for n in ("x", "data", "scales", "bias")], at.only("accumulate")
    dy = through_activation(b, at, partial(b.nf4_linear, *given, **how))
    found = {"x": b.nf4_linear_dgrad(dy, *given[1:3], **how)} if "x" in at.needs else {}
    return dy, found


@op(forms=LINEAR, vjp=_vjp, public=False, dtypes=_STORED)
def nf4_linear(
    b: ProgramBuilder,
    x: Buffer,
    data: Buffer,
    scales: Buffer,
    bias: Buffer | None = None,
    *,
    accumulate: Accumulate = "auto",
    activation: Activation = None,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """:func:`ptxgen.nf4.linear` of a weight's ``data`` [N, K/2] and ``scales`` [N, K/64]."""
    of = {"x": x, "data": data, "scales": scales, "bias": bias}
    how = out, out_dtype, accumulate, activation, kernel
    return _lowered(b, LINEAR, dense.LINEAR, of, *how)


def _dgrad_vjp(b: Builder, at: Backward) -> Gradients:
    dy = b.packed(b.cast(at.dys[0], b.dtype(at["dy"])))
    return {"dy": b.nf4_linear(dy, at["data"], at["scales"], **at.only("accumulate"))}


@op(forms=DGRAD, vjp=_dgrad_vjp, public=False, dtypes=_STORED)
def nf4_linear_dgrad(
    b: ProgramBuilder,
    dy: Buffer,
    data: Buffer,
    scales: Buffer,
    *,
    accumulate: Accumulate = "auto",
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """:func:`ptxgen.nf4.linear_dgrad` of a weight's ``data`` and ``scales``."""
    of = {"dy": dy, "data": data, "scales": scales}
    return _lowered(b, DGRAD, dense.DGRAD, of, out, out_dtype, accumulate, None, kernel)


# -- of weights -------------------------------------------------------------------------------
def operands(q: Any) -> tuple[Any, Any]:
    """The arrays of a weight, as operations take them. Raises DtypeError for what is none."""
    return checked(q).operands


def linear(
    x: Any,
    q: Weight,
    bias: Any = None,
    *,
    activation: str | None = None,
    accumulate: str = "auto",
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``y = activation(x · Wᵀ + bias)`` of an NF4 weight W ``[N, K]``, strictly batch-invariant.

    Shapes
        ``x`` ``[..., K]``; ``q`` a :class:`ptxgen.nf4.Weight` of N rows of K numbers; ``bias``
        ``[N]``; the result ``[..., N]``.
    Dtypes
        ``x`` float32, bfloat16 or float16; ``bias`` and the result as in :func:`ptxgen.linear`.
    Accumulation
        ``"tc"``: tensor cores, contract ``tc16/3``, for bfloat16 and float16. ``"simt"``: FMA
        units, contract ``fma/3``, for float32. ``"f64"``: sums in f64, rounded once, contract
        ``wide/1``, for float32. ``"auto"``: the first for x's dtype.
    Order
        The bits are those of :func:`ptxgen.linear` on ``ptxgen.nf4.dequantize(q, x.dtype)`` with
        ``layout="nk"``, whatever the route, unless sums are in f64.
        :func:`ptxgen.reference.nf4_linear` returns the same.
    Storage
        Rows of x may be strided, of stride 1 along the last dimension. Where no kernel reads the
        weight as it is stored (rows off 16 bytes, or many in float32), it is dequantised into
        scratch memory of the stream, and may have 1 GiB then.
    Errors
        Those of :func:`ptxgen.linear`, whose other arguments these are.
    Source
        ``ptxgen/ops/nf4.py``, ``ptxgen/tiles/nf4.py``.

    >>> import numpy, ptxgen
    >>> q = ptxgen.nf4.quantize(numpy.eye(2, 64, dtype="f4"))
    >>> ptxgen.reference.nf4_linear(numpy.arange(64, dtype="f4"), q)
    array([0., 1.], dtype=float32)
    """
    how = {"activation": activation, "accumulate": accumulate, "out": out, "out_dtype": out_dtype}
    return nf4_linear.function(x, *operands(q), bias, **how, stream=stream, kernel=kernel)


def linear_dgrad(
    dy: Any,
    q: Weight,
    *,
    accumulate: str = "auto",
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``dx = dy · W`` of an NF4 weight W ``[N, K]``, strictly batch-invariant.

    Shapes
        ``dy`` ``[..., N]``; ``q`` as in :func:`ptxgen.nf4.linear`; the result ``[..., K]``. N = 0
        gives zeros.
    Dtypes
        ``dy`` float32, bfloat16 or float16; the result as in :func:`ptxgen.linear_dgrad`.
    Order
        The bits are those of :func:`ptxgen.linear_dgrad` on ``ptxgen.nf4.dequantize(q, dy.dtype)``
        with ``layout="nk"``; :func:`ptxgen.reference.nf4_linear_dgrad` returns the same.
    Errors
        Those of :func:`ptxgen.nf4.linear`; all else is as there.
    Source
        ``ptxgen/ops/nf4.py``, ``ptxgen/tiles/nf4.py``.

    >>> import numpy, ptxgen
    >>> q = ptxgen.nf4.quantize(numpy.eye(2, 64, dtype="f4"))
    >>> ptxgen.reference.nf4_linear_dgrad(numpy.float32([3, 4]), q)[:4]
    array([3., 4., 0., 0.], dtype=float32)
    """
    how = {"accumulate": accumulate, "out": out, "out_dtype": out_dtype}
    return nf4_linear_dgrad.function(dy, *operands(q), **how, stream=stream, kernel=kernel)
