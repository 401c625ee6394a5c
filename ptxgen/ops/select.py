"""Selections from rows: the largest elements (``topk``), and random draws (``sample``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.numerics.option import Bool, Integer, Kernel, Real
from ptxgen.numerics.select import K_MAX, SAMPLE, TOPK, VOCABULARY_MAX
from ptxgen.numerics.sort import ELEMENTS_MAX, KEYS
from ptxgen.ops.sort import copy_bits
from ptxgen.ops.views import check_dtype, dense, results, row_step, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Either, Out
from ptxgen.spec import Problem
from ptxgen.spec.select import GREEDY, LARGEST_ROW, SMALLEST

LOGITS = ("float32", "bfloat16", "float16")
ORDERED = (*LOGITS, "int32")
WORD = Integer(-(1 << 63), (1 << 63) - 1)


def _rows(name: str, view: Buffer, takes: tuple[str, ...], most: int) -> None:
    """Raises DtypeError or ShapeError for rows of a dtype or length that no kernel takes."""
    check_dtype(name, view.dtype, takes)
    if not view.shape:
        raise ShapeError(f"{name} has no dimensions; takes at least one")
    if view.shape[-1] > most:
        raise ShapeError(f"{name} has rows of {view.shape[-1]}; takes at most {most}")


def _problem(
    table: str, x: Buffer, k: int, scalars: tuple[tuple[str, int | float], ...]
) -> Problem:
    count, width = x.size // x.shape[-1], x.shape[-1]
    values = (("ROWS", max(count, 1)), ("COLS", max(width, 1)), ("K", k))
    what = f"{table} M={count} N={width} k={k}"
    return Problem((table,), ELEMENTS[x.dtype], values, scalars, what)


def _topk_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``topk`` by x: zeros, with the values' gradients scattered to their indices."""
    x, (_, indices) = at["x"], at.results
    zeros = b.filled(x.shape, b.dtype(x), 0.0, x)
    return {"x": b.scatter_add(zeros, b.packed(indices), b.packed(at.dys[0]), axis=-1)}


@op(forms=TOPK, vjp=_topk_vjp)
def topk(
    b: ProgramBuilder,
    x: Buffer,
    k: Annotated[int, Integer(0, ELEMENTS_MAX)],
    *,
    largest: Bool = True,
    out: Out = None,
    kernel: Kernel = None,
) -> tuple[Buffer, Buffer]:
    """``sort(x)[:k]`` of each row, descending: its k largest elements, and their indices.

    Shapes
        ``x`` ``[..., N]``; both results ``[..., k]``, ``k`` at most N. ``out`` is a pair.
    Dtypes
        Those of :func:`ptxgen.sort`, such as float32, bfloat16, float16, float64 and int32; the
        indices int64. A ``k`` above 1024, and dtypes other than float32, bfloat16, float16 and
        int32, take a sort of the rows, of which the first k elements are copied.
    Order
        Contract ``topk/1``: of equal elements the lowest index comes first, -0.0 equals +0.0, and a
        NaN is larger than any number. ``largest=False``: the smallest, in ascending order.
        :func:`ptxgen.reference.topk` returns the same bits.
    Errors
        OptionError for a ``k`` above N, ShapeError, DtypeError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/select.py``, ``ptxgen/tiles/select.py``.
    """
    _rows("x", x, tuple(KEYS), LARGEST_ROW)
    if k > x.shape[-1]:
        raise OptionError(f"k is {k!r}; takes 0 .. {x.shape[-1]}, rows having {x.shape[-1]}")
    shapes = TOPK.infer({"x": x.shape}, given={"K": k}).results
    memory = results(out, 2)
    values = b.result(shapes[0], x.dtype, memory[0], "out[0]")
    indices = b.result(shapes[1], "int64", memory[1], "out[1]")
    if b.abstract or values.size == 0:
        return values, indices
    for i, target in enumerate((values, indices)):
        dense(f"out[{i}]", target, 0)
    if k > K_MAX or x.dtype not in ORDERED:
        for found, target in zip(
            b.sort(x, descending=largest, kernel=kernel), (values, indices), strict=True
        ):
            copy_bits(b, b.narrow(found, -1, 0, k), target)
        return values, indices
    scalars = (("LDX", row_step("x", x)), ("FLAGS", 0 if largest else SMALLEST))
    bind = {"x": x, "values": values, "indices": indices}
    b.launch(lambda: _problem("topk", x, max(k, 1), scalars), bind, kernel)
    return values, indices


def _drawable(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises IndexRangeError for a row of logits without an element above -inf."""
    logits = arrays["logits"]
    if 0 in logits.shape or not logits.shape:
        return
    there = (logits > float("-inf")).any(-1)  # False for NaN
    if not bool(there.all()):
        raise IndexRangeError(
            "logits has a row without a number above -inf, of which nothing can be drawn"
        )


@op(forms=SAMPLE, checks=_drawable)
def sample(
    b: ProgramBuilder,
    logits: Buffer,
    *,
    temperature: Annotated[float, Real(least=0.0, most=1e38)] = 0.0,
    top_k: Annotated[int, Integer(0)] = 0,
    top_p: Annotated[float, Real(above=0.0, most=1.0)] = 1.0,
    seed: Annotated[Any, Either(WORD)] = 0,
    offset: Annotated[Any, Either(WORD)] = 0,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """Draws an index from each row, with the probabilities ``softmax(logits / temperature)``.

    Shapes
        ``logits`` ``[..., V]``, V up to 2^20; the result ``[...]``.
    Dtypes
        float32, bfloat16 or float16; the result int64.
    Options
        ``temperature``: 0 takes the largest element, the first of equal ones. ``top_k``: draws
        from the k largest only (0: all). ``top_p``: of these, draws from the fewest largest whose
        probabilities sum to ``top_p``. ``seed``, ``offset``: 64-bit integers, or contiguous int64
        arrays ``[...]`` with one a row. With an integer ``offset``, row r has ``offset + r``.
        ``check``: waits for the logits, and raises IndexRangeError for a row without an element
        above -inf; logits in host memory are always checked. Without it, such a row draws from its
        largest elements.
    Order
        Contract ``sample/1``: integer arithmetic. A row's result depends on the row, its seed and
        its offset, neither on the batch nor on the GPU. :func:`ptxgen.reference.sample` returns the
        same.
    Errors
        OptionError for an option out of range, IndexRangeError for a row without an element above
        -inf, ShapeError, DtypeError, DeviceError, GradError or CompileError, before anything is
        launched or written.
    Source
        ``ptxgen/ops/select.py``, ``ptxgen/tiles/select.py``.
    """
    _rows("logits", logits, LOGITS, VOCABULARY_MAX)
    width = logits.shape[-1]
    if width == 0:
        raise ShapeError(f"logits has shape {list(logits.shape)}; takes rows that are not empty")
    if 0 < temperature < 1e-30:
        raise OptionError(f"temperature is {temperature}; takes 0, or 1e-30 .. 1e38")
    each = {n: v for n, v in (("seed", seed), ("offset", offset)) if isinstance(v, Buffer)}
    for name, view in each.items():
        if view.dtype != "int64" or not view.contiguous or view.shape != logits.shape[:-1]:
            raise DtypeError(
                f"{name} is {view.dtype} of shape {list(view.shape)}; takes an integer, or "
                f"contiguous int64 of shape {list(logits.shape[:-1])}"
            )
    y = b.result(logits.shape[:-1], "int64", single(out))
    if b.abstract or y.size == 0:
        return y
    dense("out", y, 0)
    scalars = (
        ("LDX", row_step("logits", logits)),
        ("SEED", 0 if "seed" in each else seed),
        ("OFFSET", 0 if "offset" in each else offset),
        ("NUCLEUS", round(top_p * 2**32)),
        ("TEMPERATURE", float(temperature) or 1.0),
        ("FLAGS", 0 if temperature else GREEDY),
    )
    k = min(top_k, width) if temperature else 1
    bind = {"x": logits, "seeds": each.get("seed"), "offsets": each.get("offset"), "y": y}
    b.launch(lambda: _problem("sample", logits, k, scalars), bind, kernel)
    return y
