"""Products with NF4 weights: ``nf4_linear`` and ``nf4_linear_dgrad``.

They are read as the dense products that they have the bits of, whose weight is ``[N, K]``, in the
dtype of the other operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import gemm as dense
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, name_of
from ptxgen.numerics.nf4 import ACCUMULATED, DGRAD, LINEAR
from ptxgen.numerics.signature import Signature
from ptxgen.ops import gemm
from ptxgen.ops.nf4_weight import DTYPES as WEIGHTS
from ptxgen.ops.nf4_weight import Weight, whole_blocks
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.run import caller
from ptxgen.ops.views import alignment, contiguous, contiguous_copy
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import SCRATCH_MAX, Problem

DENSE = {LINEAR.name: dense.LINEAR, DGRAD.name: dense.DGRAD}
"""The dense operation of each."""
LAYOUT = "nk"
"""How the weight of that is stored."""
_READ = {"data": 16, "scales": 4}
"""Bytes that kernels read at a time."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A product that a call asks for (:class:`ptxgen.ops.op.Reading`), as the dense one."""

    product: gemm.Reading
    tier: str

    @property
    def results(self) -> tuple[Result, ...]:
        """See :attr:`ptxgen.ops.op.Reading.results`."""
        return self.product.results

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        found = self.product.problem(targets)
        return None if found is None else _quantised(found, self.tier)


def read(
    signature: Signature,
    views: Mapping[str, ArrayView],
    options: Options,
    targets: tuple[str | None, ...],
) -> Reading:
    """The product that a call asks for.

    Raises DtypeError, ShapeError and OptionError.
    """
    for name, dtype in ("data", "uint8"), ("scales", "float32"):
        if views[name].dtype != dtype:
            raise DtypeError(f"{name} has dtype {views[name].dtype}; takes {dtype}")
        if not contiguous(views[name]):
            copy = contiguous_copy(name, views[name])
            raise ShapeError(f"{name} is not contiguous; pass {copy}")
        if alignment(name, views[name]) < _READ[name]:
            raise ShapeError(
                f"{name} starts off a multiple of {_READ[name]} bytes; pass a copy of it"
            )
    sizes = signature.infer({name: view.shape for name, view in views.items()}).sizes
    dtype = views[signature.arguments[0]].dtype
    _check(signature.arguments[0], dtype, sizes)
    shape = sizes["N"], sizes["K"]
    w = replace(views["data"], ptr=0, shape=shape, strides=(shape[1], 1), dtype=dtype)
    given = {name: view for name, view in views.items() if name in DENSE[signature.name].arguments}
    how = {**options, "layout": LAYOUT, "tier": "auto", "accumulate": False}
    product = OPERATIONS[DENSE[signature.name].name].products[LAYOUT]

    def served(storage: str, plan: str) -> bool:
        return storage == product.layout

    found = gemm.read(DENSE[signature.name], {**given, "w": w}, how, targets, served)
    return Reading(found, _tier(dtype, options))


def pose(signature: Signature, question: Question) -> Problem:
    """The product of a problem given by sizes."""
    dtype = name_of(question.dtype)
    _check("dtype", dtype, question.sizes)
    how = {"layout": LAYOUT, "tier": "auto"}
    found = gemm.pose(DENSE[signature.name], question._replace(options=how))
    return _quantised(found, _tier(dtype, question.options))


def _quantised(found: Problem, tier: str) -> Problem:
    """The problem, in a tier, whose weight is dequantised into what ``found`` reads."""
    at = found.pointers.index("b")
    return replace(
        found,
        table=("nf4", *found.table[:-1], tier),
        values=tuple(pair for pair in found.values if pair[0] != "ALIGN_B"),
        pointers=(*found.pointers[:at], "data", "scales", *found.pointers[at + 1 :]),
        what=f"nf4_{found.what}",
    )


def _check(what: str, dtype: str, sizes: Mapping[str, int]) -> None:
    if dtype not in WEIGHTS:
        raise DtypeError(f"{what} has dtype {dtype}; takes {' or '.join(WEIGHTS)}")
    whole_blocks(sizes["K"])
    size = sizes["N"] * sizes["K"] * ITEMSIZE[DTYPES[dtype]]
    if size > SCRATCH_MAX:
        raise ShapeError(
            f"the weight has {size} bytes in {dtype} (N = {sizes['N']}, K = {sizes['K']}); takes "
            f"up to {SCRATCH_MAX}, as it is dequantised: split it along N"
        )


def _tier(dtype: str, options: Options) -> str:
    """The tier of kernels that ``accumulate`` asks for."""
    tiers, asked = ACCUMULATED[dtype], options["accumulate"]
    if asked not in ("auto", *tiers):
        takes = ", ".join(map(repr, ("auto", *tiers)))
        raise OptionError(f"accumulate is {asked!r}; {dtype} takes {takes}")
    return tiers[0] if asked == "auto" else str(asked)


def _operands(q: Any) -> tuple[Any, Any]:
    if not isinstance(q, Weight):
        raise DtypeError(
            f"q is a {type(q).__name__}; takes a ptxgen.nf4.Weight, as quantize and "
            "from_bitsandbytes of ptxgen.nf4 make it"
        )
    return q.operands


OPS = {s.name: Op(s, partial(read, s), partial(pose, s)) for s in (LINEAR, DGRAD)}
"""The rows of products with NF4 weights."""

_linear, _linear_dgrad = caller(OPS[LINEAR.name]), caller(OPS[DGRAD.name])


def nf4_linear(
    x: Any,
    q: Any,
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
    Bits
        Those of :func:`ptxgen.linear` on ``ptxgen.nf4.dequantize(q, x.dtype)`` with
        ``layout="nk"``, whatever the route, unless sums are in f64.
        :func:`ptxgen.reference.nf4_linear` returns the same.
    Accumulation
        ``"tc"``: tensor cores, contract ``tc16/2``, for bfloat16 and float16. ``"simt"``: FMA
        units, contract ``fma/2``, for float32. ``"f64"``: sums in f64, rounded once, contract
        ``wide/1``, for float32. ``"auto"``: the first for x's dtype.
    Storage
        Rows of x may be strided, of stride 1 along the last dimension. In x's dtype the weight may
        have 1 GiB: it is dequantised into scratch memory of the stream.

    Other arguments, dtypes of bias and result, and errors are those of :func:`ptxgen.linear`.

    >>> import numpy, ptxgen
    >>> q = ptxgen.nf4.quantize(numpy.eye(2, 64, dtype="f4"))
    >>> ptxgen.reference.nf4_linear(numpy.arange(64, dtype="f4"), q)
    array([0., 1.], dtype=float32)
    """
    options = accumulate, out_dtype, activation, kernel
    return _linear(x, *_operands(q), bias, out, stream, options)


def nf4_linear_dgrad(
    dy: Any,
    q: Any,
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
    Bits
        Those of :func:`ptxgen.linear_dgrad` on ``ptxgen.nf4.dequantize(q, dy.dtype)`` with
        ``layout="nk"``; :func:`ptxgen.reference.nf4_linear_dgrad` returns the same.

    All else is as in :func:`ptxgen.nf4.linear`.

    >>> import numpy, ptxgen
    >>> q = ptxgen.nf4.quantize(numpy.eye(2, 64, dtype="f4"))
    >>> ptxgen.reference.nf4_linear_dgrad(numpy.float32([3, 4]), q)[:4]
    array([3., 4., 0., 0.], dtype=float32)
    """
    return _linear_dgrad(dy, *_operands(q), out, stream, (accumulate, out_dtype, kernel))
