"""Reductions down columns, and the gradients of weights of norms.

Other operations that reduce along a strided axis make their problems here (:func:`problem`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.columns import REDUCTIONS, Reduction, computed
from ptxgen.numerics.dtype import ELEMENTS, name_of
from ptxgen.numerics.formula import Formula
from ptxgen.numerics.pointwise import FULL
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.rowgradients import GRADIENTS
from ptxgen.ops.run import caller
from ptxgen.ops.views import ALIGN_MAX, alignment, apart, check_contiguous
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import Problem
from ptxgen.spec.columns import item, state, variant

TABLE = ("columns",)


def problem(
    label: str,
    formula: Formula,
    sizes: tuple[int, int, int],
    matrices: Mapping[str, ArrayView],
    pointers: tuple[str, ...],
) -> Problem:
    """The problem of reducing ``[OUTER, N, INNER]`` (``sizes``) to ``[OUTER, INNER]``.

    ``formula``: one of rows of N elements with a single level of reductions, whose results have a
    number for each row; ``label``: its name. ``matrices``: views of shape [OUTER, N, INNER] of the
    inputs that have a number for each element, of stride 1 along INNER; the other inputs are
    contiguous. ``pointers``: of the call's arguments and results, in order, the names of the
    formula's inputs, and ``out_`` with those of its results.
    """
    outer, n, inner = sizes
    if outer * -(-inner // 32) > DIM_MAX:
        raise ShapeError(f"{label}: there are {outer} times {inner} columns; takes at most 2^36")
    wide, unit = item(formula), min(inner & -inner, ALIGN_MAX)
    told: list[tuple[str, int | float]] = []
    for name, view in matrices.items():
        down, along = view.strides[1] if n > 1 else 0, view.strides[0] if outer > 1 else 0
        unit = min(unit, alignment(name, view, down, along) // view.itemsize)
        told += [(f"LD_{name.upper()}", down), (f"LO_{name.upper()}", along)]
    values = (
        ("OUTER", outer),
        ("N", n),
        ("INNER", inner),
        ("ITEM", wide),
        ("ALIGN", min(unit * wide, ALIGN_MAX)),
        ("STATE", state(formula)),
    )
    what = f"{label} [{outer}, {n}, {inner}]"
    return Problem(TABLE, variant(label, formula), values, tuple(told), pointers, what)


def columns_of(name: str, view: ArrayView, shape: tuple[int, int, int]) -> ArrayView:
    """A view of three dimensions, checked: its columns are neighbours."""
    if shape[2] > 1 and view.size and view.strides[2] != 1:
        raise apart(name, view)
    return view


@dataclass(frozen=True, slots=True)
class Reading:
    """Columns to be reduced (:class:`ptxgen.ops.op.Reading`)."""

    name: str
    formula: Formula
    sizes: tuple[int, int, int]
    matrices: dict[str, ArrayView]
    pointers: tuple[str, ...]
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        outs = (p.removeprefix("out_") for p in self.pointers[-len(targets) :])
        for name, target in zip(outs, targets, strict=True):
            alignment(name, target, 0)
            check_contiguous(name, target, result=True)
        if self.sizes[0] * self.sizes[2] == 0:
            return None
        return problem(self.name, self.formula, self.sizes, self.matrices, self.pointers)


def read(
    row: Reduction,
    views: Mapping[str, ArrayView],
    options: Options,
    targets: tuple[str | None, ...],
) -> Reading:
    """The columns that a call asks to be reduced."""
    signature = row.signature
    dtypes = []
    wide = ""
    for name, kind in row.kinds.items():
        given = views[name].dtype
        if kind == "element":
            if given not in row.takes:
                raise DtypeError(f"{name} has dtype {given}; takes {' or '.join(row.takes)}")
            wide = computed((*(d for d in (wide,) if d), ELEMENTS[given]))
        elif ELEMENTS.get(given) != wide:
            raise DtypeError(f"{name} has dtype {given}; takes {FULL[wide]}")
        dtypes.append(ELEMENTS[given])
    inferred = signature.infer({name: view.shape for name, view in views.items()})
    found = inferred.sizes
    sizes = found.get("O", 1), found.get("N", found.get("M", 1)), found["I"]
    matrices = {}
    for name, kind in row.kinds.items():
        view = views[name]
        if kind == "element":
            view = view if len(view.shape) == 3 and "O" in found else _single(name, view)
            matrices[name] = columns_of(name, view, sizes)
        else:
            check_contiguous(name, view)
    first = views[signature.arguments[0]].dtype
    accepted = tuple(dict.fromkeys((first, FULL[wide])))
    if wide.startswith("i"):
        accepted = tuple(dict.fromkeys((first, "int64")))
    what, wanted = "out_dtype", options["out_dtype"]
    wanted = None if wanted is None else name_of(wanted, what, ELEMENTS)
    if wanted is None:
        what = f"{signature.results[0]}'s dtype"
        wanted = next((t for t in targets if t is not None), first)
    if wanted not in accepted:
        raise DtypeError(f"{what} is {wanted!r}; takes {' or '.join(map(repr, accepted))}")
    formula = row.formula(tuple(dtypes), ELEMENTS[wanted])
    results = tuple(Result(shape, wanted) for shape in inferred.results)
    pointers = (*signature.arguments, *(f"out_{r}" for r in signature.results))
    return Reading(signature.name, formula, sizes, matrices, pointers, results)


def _single(name: str, view: ArrayView) -> ArrayView:
    """[..., I] as one matrix [1, N, I]."""
    from dataclasses import replace

    flat = view.matrix(name)
    return replace(flat, shape=(1, *flat.shape), strides=(0, *flat.strides))


def pose(row: Reduction, question: Question) -> Problem:
    """The problem of the signature's sizes."""
    known = {ELEMENTS[d] for d in row.takes}
    if question.dtype not in known:
        raise DtypeError(f"dtype is {question.dtype}; takes {' or '.join(row.takes)}")
    found = question.sizes
    if any(v > DIM_MAX for v in found.values()):
        raise ShapeError(f"sizes are {found}; takes at most {DIM_MAX}")
    sizes = found.get("O", 1), found.get("N", found.get("M", 1)), max(found["I"], 1)
    wide = computed((question.dtype,))
    dtypes = tuple(question.dtype if k == "element" else wide for k in row.kinds.values())
    formula = row.formula(dtypes, question.dtype)
    values = (
        ("OUTER", max(sizes[0], 1)),
        ("N", sizes[1]),
        ("INNER", sizes[2]),
        ("ITEM", item(formula)),
        ("ALIGN", _aligned(sizes[2], item(formula), question.aligns)),
        ("STATE", state(formula)),
    )
    pointers = (*row.signature.arguments, *(f"out_{r}" for r in row.signature.results))
    name = row.signature.name
    return Problem(TABLE, variant(name, formula), values, (), pointers, f"{name} {list(sizes)}")


def _aligned(inner: int, itemsize: int, aligns: tuple[int, ...]) -> int:
    low = inner * itemsize | ALIGN_MAX
    for each in aligns:
        low |= each
    return low & -low


def _ops() -> dict[str, Op]:
    return {
        name: Op(row.signature, partial(read, row), partial(pose, row), GRADIENTS.get(name))
        for name, row in REDUCTIONS.items()
    }


OPS = _ops()
"""The rows of reductions down columns."""
CALLS = {name: caller(op) for name, op in OPS.items()}


def reduce_columns(
    how: str, *arguments: Any, out: Any = None, out_dtype: Any = None, stream: Any = None,
    kernel: str | None = None,
) -> Any:  # fmt: skip
    """A reduction of REDUCTIONS by its name; several results are a tuple, and so is ``out``."""
    signature = REDUCTIONS[how].signature
    outs = out if isinstance(out, tuple) else (out,) * len(signature.results)
    return CALLS[how](*arguments, *outs, stream, (out_dtype, kernel))


def rms_norm_wgrad(
    dy: Any,
    x: Any,
    rstd: Any,
    *,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``dweight = sum(dy * (x * rstd))`` over all leading dimensions: the weight's of an RMS norm.

    Shapes
        ``dy`` and ``x`` ``[..., I]``; ``rstd`` ``[...]``, that of each row; the result ``[I]``.
    Dtypes
        ``dy`` and ``x`` float32, bfloat16, float16 or float64; ``rstd`` float32 (float64 if any of
        those is); the result of ``dy``'s, unless ``out`` or ``out_dtype`` say what is computed in.
    Order
        Rows are added in the order of contract ``rows/1``, every product rounded once.
    Errors
        ShapeError, DtypeError for what does not fit.
    """
    return CALLS["rms_norm_wgrad"](dy, x, rstd, out, stream, (out_dtype, kernel))


def layer_norm_wgrad(
    dy: Any,
    x: Any,
    mean: Any,
    rstd: Any,
    *,
    out: Any = None,
    out_bias: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``(dweight, dbias)``: ``sum(dy * ((x - mean) * rstd))``, ``sum(dy)``, of a layer norm.

    As :func:`rms_norm_wgrad`; ``mean`` and ``rstd`` are those of each row.
    """
    return CALLS["layer_norm_wgrad"](dy, x, mean, rstd, out, out_bias, stream, (out_dtype, kernel))
