"""What is selected from rows: the largest (``topk``), and draws (``sample``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.numerics.select import K_MAX, SAMPLE, TOPK, VOCABULARY_MAX
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.run import caller
from ptxgen.ops.views import alignment, apart, check_contiguous, contiguous
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import Problem
from ptxgen.spec.select import GREEDY, LARGEST_ROW, SMALLEST

LOGITS = ("float32", "bfloat16", "float16")
ORDERED = (*LOGITS, "int32")


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows to be selected from (:class:`ptxgen.ops.op.Reading`)."""

    made: Problem | None
    results: tuple[Result, ...]
    names: tuple[str, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        for name, target in zip(self.names, targets, strict=True):
            alignment(name, target, 0)
            check_contiguous(name, target, result=True)
        return self.made


def _rows(name: str, view: ArrayView, takes: tuple[str, ...], most: int) -> tuple[int, int, int]:
    """Rows, elements of each, and elements from row to row."""
    if view.dtype not in takes:
        raise DtypeError(f"{name} has dtype {view.dtype}; takes {' or '.join(takes)}")
    matrix = view.matrix(name)
    if matrix.strides[1] != 1 and view.size:
        raise apart(name, view)
    alignment(name, view, 0)
    count, width = matrix.shape
    if width > most:
        raise ShapeError(f"{name} has rows of {width}; takes at most {most}")
    return count, width, matrix.strides[0] if count > 1 else 0


def _typed(
    names: tuple[str, ...], wanted: tuple[str, ...], targets: tuple[str | None, ...]
) -> None:
    for name, dtype, target in zip(names, wanted, targets, strict=True):
        if target not in (None, dtype):
            raise DtypeError(f"{name} has dtype {target}; takes {dtype}")


def _problem(
    table: str,
    dtype: str,
    count: int,
    width: int,
    k: int,
    told: tuple[tuple[str, int | float], ...],
    pointers: tuple[str, ...],
) -> Problem:
    values = (("ROWS", max(count, 1)), ("COLS", max(width, 1)), ("K", k))
    what = f"{table} M={count} N={width} k={k}"
    return Problem((table,), dtype, values, told, pointers, what)


def read_topk(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """The rows whose largest elements a call asks for."""
    x, k = views["x"], options["k"]
    count, width, pitch = _rows("x", x, ORDERED, LARGEST_ROW)
    if not isinstance(k, int) or not 0 <= k <= min(width, K_MAX):
        raise OptionError(f"k is {k!r}; takes 0 .. {min(width, K_MAX)}, rows having {width}")
    _typed(TOPK.results, (x.dtype, "int64"), targets)
    found = TOPK.infer({"x": x.shape}, given={"K": k}).results
    results = Result(found[0], x.dtype), Result(found[1], "int64")
    flags = 0 if options["largest"] else SMALLEST
    told = (("LDX", pitch), ("FLAGS", flags))
    pointers = ("x", "values", "indices")
    made = _problem("topk", ELEMENTS[x.dtype], count, width, max(k, 1), told, pointers)
    return Reading(made if count * k else None, results, TOPK.results)


def _kept(options: Options, width: int) -> int:
    """How many of a row are drawn from; 0: all."""
    return min(int(options["top_k"]), width) if options["temperature"] else 1


def read_sample(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """The rows that a call asks for draws from."""
    logits = views["logits"]
    count, width, pitch = _rows("logits", logits, LOGITS, VOCABULARY_MAX)
    if width == 0:
        raise ShapeError(f"logits has shape {list(logits.shape)}; takes rows that are not empty")
    (shape,) = SAMPLE.infer({name: view.shape for name, view in views.items()}).results
    for name in ("seeds", "offsets"):
        if name in views and (views[name].dtype != "int64" or not contiguous(views[name])):
            raise DtypeError(f"{name} is {views[name].dtype}; takes contiguous int64, one a row")
    temperature, top_k, top_p = options["temperature"], options["top_k"], options["top_p"]
    if not (isfinite(temperature) and 0 <= temperature < 1e38) or 0 < temperature < 1e-30:
        raise OptionError(f"temperature is {temperature}; takes 0, or 1e-30 .. 1e38")
    if not isinstance(top_k, int) or top_k < 0:
        raise OptionError(f"top_k is {top_k!r}; takes 0 (all) or how many are kept")
    if not 0 < top_p <= 1:
        raise OptionError(f"top_p is {top_p}; takes more than 0, up to 1 (all)")
    for name in ("seed", "offset"):
        if not -(1 << 63) <= options[name] < 1 << 63:
            raise OptionError(f"{name} is {options[name]}; takes an integer of 64 bits")
    _typed(SAMPLE.results, ("int64",), targets)
    told = (
        ("LDX", pitch),
        ("SEED", options["seed"]),
        ("OFFSET", options["offset"]),
        ("NUCLEUS", round(top_p * 2**32)),
        ("TEMPERATURE", float(temperature) or 1.0),
        ("FLAGS", 0 if temperature else GREEDY),
    )
    pointers = ("x", "seeds", "offsets", "y")
    k = _kept(options, width)
    made = _problem("sample", ELEMENTS[logits.dtype], count, width, k, told, pointers)
    return Reading(made if count else None, (Result(shape, "int64"),), SAMPLE.results)


def _pose(
    table: str, k: int, takes: tuple[str, ...], pointers: tuple[str, ...], question: Question
) -> Problem:
    if question.dtype not in (ELEMENTS[d] for d in takes):
        raise DtypeError(f"dtype is {question.dtype}; takes {' or '.join(takes)}")
    sizes = question.sizes
    return _problem(table, question.dtype, sizes["M"], sizes["N"], k, (), pointers)


def backward(
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    gradients: tuple[Any, ...],
    options: Options,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """The gradients of the values, where they were: no two of a row at one place."""
    (x,), (_, indices), (dy, _) = arguments, results, gradients
    return (x.new_zeros(x.shape).scatter(-1, indices, dy),)


OPS = {
    "topk": Op(
        TOPK,
        read_topk,
        lambda q: _pose("topk", q.options["k"], ORDERED, ("x", "values", "indices"), q),
        backward,
    ),
    "sample": Op(
        SAMPLE,
        read_sample,
        lambda q: _pose(
            "sample", _kept(q.options, q.sizes["N"]), LOGITS, ("x", "seeds", "offsets", "y"), q
        ),
    ),
}
"""The rows of what is selected."""
CALLS = {name: caller(op) for name, op in OPS.items()}


def topk(
    x: Any,
    k: int,
    *,
    largest: bool = True,
    out: tuple[Any, Any] | None = None,
    stream: Any = None,
    kernel: str | None = None,
) -> tuple[Any, Any]:
    """The k largest of each row, in descending order, and their indices.

    Shapes
        ``x`` ``[..., N]``; both results ``[..., k]``, ``k`` at most N and 1024.
    Dtypes
        float32, bfloat16, float16 or int32; the indices int64.
    Order
        Contract ``topk/1``: of equal elements the lowest index comes first, -0.0 equals +0.0, and a
        NaN is larger than all numbers. ``largest=False``: the smallest, in ascending order.
    Errors
        OptionError for a ``k`` that rows do not have, ShapeError, DtypeError.
    """
    values, indices = out or (None, None)
    found: tuple[Any, Any] = CALLS["topk"](x, values, indices, stream, (k, largest, kernel))
    return found


def sample(
    logits: Any,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: Any = 0,
    offset: Any = 0,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """An index drawn from each row, with the probabilities ``softmax(logits / temperature)``.

    Shapes
        ``logits`` ``[..., V]``, V up to 2^20; the result ``[...]``.
    Dtypes
        float32, bfloat16 or float16; the result int64.
    Options
        ``temperature``: 0 takes the largest, of equal ones that of the lowest index. ``top_k``:
        only the k largest are drawn from (0: all). ``top_p``: of these only the largest, as many as
        have this part of the probability. ``seed``, ``offset``: integers of 64 bits, or contiguous
        int64 arrays ``[...]`` with those of each row. Row r of an integer ``offset`` has
        ``offset + r``.
    Order
        Contract ``sample/1``: integer arithmetic. A row's result depends on the row, its seed and
        its offset, neither on the batch nor on the GPU.
    Errors
        OptionError for an option out of range, ShapeError, DtypeError.
    """
    seeds, seed = (None, seed) if isinstance(seed, int) else (seed, 0)
    offsets, offset = (None, offset) if isinstance(offset, int) else (offset, 0)
    options = (temperature, top_k, top_p, seed, offset, kernel)
    return CALLS["sample"](logits, seeds, offsets, out, stream, options)
