"""Rows of logits: their segments' maxima and sums, and their gradient (contract ``flce/2``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.contract import OPERATIONS, TIERS
from ptxgen.numerics.formula import STORED, const
from ptxgen.numerics.gemm import LINEAR
from ptxgen.numerics.logits import LINEAR_SEGMENTS, LOGIT_GRADIENT, LOGIT_SEGMENTS, segments
from ptxgen.numerics.pointwise import FULL
from ptxgen.numerics.rowops import REAL
from ptxgen.numerics.signature import Signature
from ptxgen.ops import gemm
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.run import caller
from ptxgen.ops.views import alignment, apart, check_contiguous, leading
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import ALONE, Key, Problem
from ptxgen.spec.logits import WIDE_TARGET
from ptxgen.tiles.logits import TABLES, key, product_key

_DTYPES = {FULL[short]: short for short in REAL}


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows of logits (:class:`ptxgen.ops.op.Reading`)."""

    signature: Signature
    table: Key
    dtype: str
    count: int
    width: int
    told: tuple[tuple[str, int | float], ...]
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        told = self.told
        for name, target in zip(self.signature.results, targets, strict=True):
            if name == "g":
                told += ((f"LD{name.upper()}", _pitch(name, target, self.count, self.width)),)
            else:
                alignment(name, target)
                check_contiguous(name, target, result=True)
        if self.count == 0:
            return None
        return _problem(self.signature, self.table, self.dtype, self.count, self.width, told)


def _pitch(name: str, view: ArrayView, count: int, width: int) -> int:
    """Elements from row to row."""
    matrix = view.matrix(name)
    down, along = matrix.strides
    if along != 1 and width > 1 and view.size:
        raise apart(name, view)
    alignment(name, view, down if count > 1 else 0)
    return leading(count, width, down, view.itemsize)


def _read(
    signature: Signature,
    part: str,
    views: Mapping[str, ArrayView],
    options: Options,
    targets: tuple[str | None, ...],
) -> Reading:
    """The rows that a call is about."""
    x = views["x"]
    if x.dtype not in _DTYPES:
        raise DtypeError(f"x has dtype {x.dtype}; takes {' or '.join(_DTYPES)}")
    dtype = _DTYPES[x.dtype]
    wide = FULL[STORED[dtype]]
    for name, view in views.items():
        taken = {"x": (x.dtype,), "target": ("int64", "int32")}.get(name, (wide,))
        if view.dtype not in taken:
            raise DtypeError(f"{name} has dtype {view.dtype}; takes {' or '.join(taken)}")
        if name != "x":
            alignment(name, view)
            check_contiguous(name, view)
    shapes = {name: view.shape for name, view in views.items()}
    width = x.shape[-1] if x.shape else 0
    inferred = signature.infer(shapes, given={"S": segments(width)})
    count = inferred.sizes["M"]
    if width == 0:
        raise ShapeError(f"{signature.name} takes at least one class; got rows of none")
    own = [x.dtype if name == "g" else wide for name in signature.results]
    for name, dtypes, given in zip(signature.results, own, targets, strict=True):
        if given not in (None, dtypes):
            raise DtypeError(f"{name} has dtype {given}; takes {dtypes}")
    softcap = options["softcap"]
    told: list[tuple[str, int | float]] = [
        ("LDX", _pitch("x", x, count, width)),
        ("FLAGS", WIDE_TARGET if views["target"].dtype == "int64" else 0),
    ]
    if part == "gradient":
        told.append(("IGNORE_INDEX", options["ignore_index"]))
        told.append(("SMOOTHING", options["label_smoothing"]))
    told += _caps(softcap, STORED[dtype])
    results = tuple(map(Result, inferred.results, own))
    return Reading(
        signature, key(part, softcap is not None), dtype, count, width, tuple(told), results
    )


def _caps(softcap: float | None, wide: str) -> tuple[tuple[str, float], ...]:
    """What kernels are told of a softcap."""
    if softcap is None:
        return ()
    cap = const(softcap, wide).data
    return ("SOFTCAP", cap), ("INVERSE", const(1 / cap, wide).data)  # f64 holds enough for f32


def _pose(signature: Signature, part: str, question: Question) -> Problem:
    """The problem of sizes M (rows) and N (classes)."""
    if question.dtype not in REAL:
        raise DtypeError(f"dtype is {question.dtype}; takes {', '.join(REAL)}")
    table = key(part, question.options["softcap"] is not None)
    m, n = question.sizes["M"], question.sizes["N"]
    return _problem(signature, table, question.dtype, m, n, ())


def _problem(
    signature: Signature,
    table: Key,
    dtype: str,
    count: int,
    width: int,
    told: tuple[tuple[str, int | float], ...],
) -> Problem:
    values = (("ROWS", count), ("COLS", width))
    pointers = (*signature.arguments, *signature.results)
    what = f"{signature.name} M={count} N={width}"
    return Problem(table, dtype, values, told, pointers, what)


def _op(signature: Signature, part: str) -> Op:
    def read(
        views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
    ) -> Reading:
        return _read(signature, part, views, options, targets)

    return Op(signature, read, lambda question: _pose(signature, part, question))


@dataclass(frozen=True, slots=True)
class ProductReading:
    """A product whose segments alone are wanted (:class:`ptxgen.ops.op.Reading`)."""

    product: gemm.Reading
    flags: int
    softcap: float | None
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        for name, target in zip(LINEAR_SEGMENTS.results, targets, strict=True):
            alignment(name, target)
            check_contiguous(name, target, result=True)
        found = self.product
        if found.dims[0] == 0:
            return None
        told: dict[str, int | float] = {**dict(ALONE), "LDA": found.lds[0], "LDB": found.lds[1]}
        told |= {"FLAGS": self.flags, "K": found.dims[2]}
        told.update(_caps(self.softcap, "f32"))
        table = product_key(found.storage, self.softcap is not None)
        return _product(table, found.dtype, found.dims, found.aligns, tuple(told.items()))


def _read_product(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> ProductReading:
    factors = {name: view for name, view in views.items() if name != "target"}
    target = views["target"]
    if target.dtype not in ("int64", "int32"):
        raise DtypeError(f"target has dtype {target.dtype}; takes int64 or int32")
    alignment("target", target)
    check_contiguous("target", target)
    given = {"layout": options["layout"], "tier": options["tier"], "out_dtype": None}
    given["kernel"] = options["kernel"]
    found = gemm.read(LINEAR, factors, given, (None,), lambda storage, _: served(storage))
    shapes = {name: view.shape for name, view in views.items()}
    count = {"S": segments(found.dims[1])}
    inferred = LINEAR_SEGMENTS.infer(shapes, options["layout"], given=count)
    if found.tier != "tc":
        raise OptionError(f"tier is {found.tier!r}; linear_segments takes 'tc'")
    if any(dtype not in (None, "float32") for dtype in targets):
        raise DtypeError(f"results have dtypes {list(targets)}; takes float32")
    flags = found.flags | (WIDE_TARGET if target.dtype == "int64" else 0)
    results = tuple(Result(shape, "float32") for shape in inferred.results)
    return ProductReading(found, flags, options["softcap"], results)


def served(storage: str) -> bool:
    """Whether there are products of segments of operands stored so."""
    return product_key(storage, False) in TABLES


def _pose_product(question: Question) -> Problem:
    if question.dtype not in TIERS["tc"]:
        raise DtypeError(f"dtype is {question.dtype}; takes {', '.join(TIERS['tc'])}")
    storage = OPERATIONS["linear"].products[question.options["layout"]].layout
    m, n, k = (question.sizes[s] for s in LINEAR_SEGMENTS.sizes)
    align_a, align_b = (question.aligns * 2)[:2]
    table = product_key(storage, question.options["softcap"] is not None)
    return _product(table, question.dtype, (m, n, k), (align_a, align_b), ())


def _product(
    table: Key,
    dtype: str,
    dims: tuple[int, int, int],
    aligns: tuple[int, int],
    told: tuple[tuple[str, int | float], ...],
) -> Problem:
    m, n, k = dims
    values = (("M", m), ("N", n), ("K", max(k, 1)), ("ALIGN_A", aligns[0]), ("ALIGN_B", aligns[1]))
    pointers = ("a", "b", "target", "bias", *LINEAR_SEGMENTS.results)
    what = f"linear_segments M={m} N={n} K={k}"
    return Problem(table, dtype, values, told, pointers, what)


OPS = {
    LINEAR_SEGMENTS.name: Op(LINEAR_SEGMENTS, _read_product, _pose_product),
    LOGIT_SEGMENTS.name: _op(LOGIT_SEGMENTS, "segments"),
    LOGIT_GRADIENT.name: _op(LOGIT_GRADIENT, "gradient"),
}
"""The rows of what is done with logits."""

logit_segments = caller(OPS["logit_segments"])
linear_segments = caller(OPS["linear_segments"])
logit_gradient = caller(OPS["logit_gradient"])
