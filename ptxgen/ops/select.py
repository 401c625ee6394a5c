"""Selections from rows: the largest elements (``topk``), random draws (``sample``), and the
log-probabilities of drawn tokens (``token_logprobs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import GradError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics.dtype import ELEMENTS
from ptxgen.numerics.option import Bool, Choice, Integer, Kernel, Real, real
from ptxgen.numerics.select import (
    K_MAX,
    ROUTE,
    SAMPLE,
    TEMPERATURE_MAX,
    TEMPERATURE_MIN,
    TOKEN_LOGPROBS,
    TOPK,
    VOCABULARY_MAX,
)
from ptxgen.numerics.sort import ELEMENTS_MAX, KEYS
from ptxgen.ops.sort import copy_bits
from ptxgen.ops.views import check_dtype, dense, results, row_step, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Either, Out
from ptxgen.spec import Problem
from ptxgen.spec.base import WARP
from ptxgen.spec.select import (
    INDEX_64,
    LARGEST_ROW,
    NORMALIZE,
    ROUTE_MAX,
    SMALLEST,
    WEIGHTS_F32,
)

LOGITS = ("float32", "bfloat16", "float16")
ORDERED = (*LOGITS, "int32")
WORD = Integer(-(1 << 63), (1 << 63) - 1)
SETTINGS = {
    **dict.fromkeys(("temperature", "top_p", "min_p"), "float32"),
    **{"top_k": "int32", "seed": "int64", "offset": "int64"},
}
"""Dtypes of arrays of settings, by argument of ``sample``."""
Temperature = Annotated[Any, Either(Real(least=0.0, most=TEMPERATURE_MAX))]


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


def is_routable(experts: int, k: int) -> bool:
    """Whether ``route_tokens`` takes so many experts, and so many of a token."""
    return experts <= ROUTE_MAX and k <= WARP


@op(
    forms=ROUTE,
    oracle=lazy.function("ptxgen.oracle.select:route_tokens"),
    public=False,
    sizes={"k": "J"},
)
def route_tokens(
    b: ProgramBuilder,
    logits: Buffer,
    k: Annotated[int, Integer(1, WARP)],
    *,
    normalize: Bool = False,
    scale: Annotated[float, Real()] = 1.0,
    narrow: Bool = False,
    index: Annotated[str, Choice("int64", "int32")] = "int64",
    kernel: Kernel = None,
) -> tuple[Buffer, Buffer]:
    """``topk(softmax(logits), k)``, of at most ``ROUTE_MAX`` experts: weights and experts of each
    token. ``normalize`` divides weights by their sum plus ``NORMAL_MIN``; then ``scale`` multiplies
    them. Weights are float32, with ``narrow`` of the dtype of ``logits``; experts have the dtype
    ``index``.
    """
    check_dtype("logits", logits.dtype, LOGITS)
    sizes = ROUTE.infer({"logits": logits.shape}, given={"J": k}).sizes
    if k > sizes["E"] or not is_routable(sizes["E"], k):
        raise OptionError(f"k is {k} of {sizes['E']} experts; takes 1 .. {ROUTE_MAX} experts")
    shape = sizes["T"], k
    weights = b.result(shape, logits.dtype if narrow else "float32", name="weights")
    experts = b.result(shape, index, name="experts")
    if b.abstract or sizes["T"] == 0:
        return weights, experts
    flags = NORMALIZE if normalize else 0
    flags |= WEIGHTS_F32 if weights.dtype == "float32" else 0
    flags |= INDEX_64 if index == "int64" else 0
    scalars = ("LDX", row_step("logits", logits)), ("FLAGS", flags), ("SCALE", scale)
    bind = {"x": logits, "weights": weights, "experts": experts}
    b.launch(lambda: _problem("route", logits, k, scalars), bind, kernel)
    return weights, experts


# -- draws ------------------------------------------------------------------------------------
def _arrays(settings: Mapping[str, Any]) -> dict[str, Buffer]:
    """Returns the settings that are arrays, by name. Raises DtypeError for arrays of another dtype
    than :data:`SETTINGS` says, and OptionError for a temperature between 0 and the least one.
    """
    found = {n: v for n, v in settings.items() if isinstance(v, Buffer)}
    for name, view in found.items():
        check_dtype(name, view.dtype, (SETTINGS[name], "a number"))
    temperature = settings["temperature"]
    if "temperature" not in found and 0 < temperature < TEMPERATURE_MIN:
        raise OptionError(
            f"temperature is {temperature}; takes 0, or {TEMPERATURE_MIN} .. {TEMPERATURE_MAX}"
        )
    return found


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


@op(forms=SAMPLE, checks=_drawable, dtypes=SETTINGS)
def sample(
    b: ProgramBuilder,
    logits: Buffer,
    *,
    temperature: Temperature = 0.0,
    top_k: Annotated[Any, Either(Integer(0))] = 0,
    top_p: Annotated[Any, Either(Real(above=0.0, most=1.0))] = 1.0,
    min_p: Annotated[Any, Either(Real(least=0.0, most=1.0))] = 0.0,
    seed: Annotated[Any, Either(WORD)] = 0,
    offset: Annotated[Any, Either(WORD)] = 0,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """Draws an index from each row, with the probabilities ``softmax(logits / temperature)``.

    Shapes
        ``logits`` ``[..., V]``, V up to 2^20; the result ``[...]``. Each setting is a number, or an
        array ``[...]`` with one for each row, in any mixture.
    Dtypes
        float32, bfloat16 or float16; the result int64. Arrays of ``temperature``, ``top_p`` and
        ``min_p`` are float32, of ``top_k`` int32, of ``seed`` and ``offset`` int64.
    Options
        ``temperature``: 0 takes the largest element, the first of equal ones. ``min_p``: draws
        from elements whose probability is at least ``min_p`` times the largest one's. ``top_k``: of
        these, from the k largest only (0: all). ``top_p``: of these, from the fewest largest whose
        probabilities are together ``top_p`` of what is left. ``seed``, ``offset``: 64-bit integers;
        with an integer ``offset``, row r has ``offset + r``.
        ``check``: waits for the logits, and raises IndexRangeError for a row without an element
        above -inf; logits in host memory are always checked. Without it, such a row draws from its
        largest elements.
    Values
        Arrays of settings are not read on the host: CUDA graphs read them at each replay. Values
        out of range are clamped: a temperature below 1e-30 or NaN is 0, above 1e38 it is 1e38; a
        ``top_k`` below 0 is 0; ``top_p`` and ``min_p`` are clamped to 0 .. 1, and NaN leaves them
        out.
    Order
        Contract ``sample/2``: integer arithmetic. A row's result depends on the row, its settings,
        its seed and its offset, neither on the batch nor on the GPU.
        :func:`ptxgen.reference.sample` returns the same.
    Errors
        OptionError for a number out of range, IndexRangeError for a row without an element above
        -inf, ShapeError, DtypeError, DeviceError, GradError or CompileError, before anything is
        launched or written.
    Source
        ``ptxgen/ops/select.py``, ``ptxgen/tiles/select.py``.
    """
    _rows("logits", logits, LOGITS, VOCABULARY_MAX)
    width = logits.shape[-1]
    if width == 0:
        raise ShapeError(f"logits has shape {list(logits.shape)}; takes rows that are not empty")
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    settings |= {"seed": seed, "offset": offset}
    each = _arrays(settings)
    shapes = {"logits": logits.shape, **{n: v.shape for n, v in each.items()}}
    (shape,) = SAMPLE.infer(shapes).results
    y = b.result(shape, "int64", single(out))
    if b.abstract or y.size == 0:
        return y
    dense("out", y, 0)
    if "temperature" not in each and not temperature:
        settings, each = dict.fromkeys(settings, 0) | {"top_k": 1}, {}
    number = {n: 0 if n in each else v for n, v in settings.items()}
    scalars = (
        ("LDX", row_step("logits", logits)),
        ("FLAGS", 0),
        *((n.upper(), number[n]) for n in ("seed", "offset")),
        *((n.upper(), float(number[n])) for n in ("temperature", "top_p", "min_p")),
    )
    k = min(number["top_k"], width)
    bind = {"x": logits, **{f"{n}s": b.packed(each.get(n)) for n in settings}, "y": y}
    b.launch(lambda: _problem("sample", logits, k, scalars), bind, kernel)
    return y


# -- log-probabilities ------------------------------------------------------------------------
def _token_logprobs_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient by the logits: ``(g - exp(log_softmax) * sum(g)) / temperature``, where g is dy at
    the row's token, else 0.
    """
    if "temperature" in at.needs:
        raise GradError("token_logprobs has no gradient of the temperature; pass one without grad")
    arrays = (b.packed(x) for x in (at["logits"], at["ids"], at.dys[0]))
    by, divisor = _divisor(b, at["temperature"])
    return {"logits": b.rows("token_logprobs_backward", *arrays, by, divisor=divisor)}


def _divisor(b: Builder, temperature: Any) -> tuple[Any, float]:
    """Returns the array, or None, and the number that divide logits for ``temperature``. A
    temperature of 0 divides by 1.
    """
    number = real(temperature) if hasattr(temperature, "shape") else temperature
    return (b.packed(temperature), 1.0) if number is None else (None, float(number) or 1.0)


def _in_vocabulary(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises IndexRangeError for a token that the rows of logits do not have."""
    ids, count = arrays["ids"], arrays["logits"].shape[-1]
    if 0 in ids.shape:
        return
    wrong = (ids < 0) | (ids >= count)
    if bool(wrong.any()):
        found = int(ids[wrong][0]) if ids.shape else int(ids)
        raise IndexRangeError(f"ids has {found}; takes 0 .. {count - 1}, {count} logits a row")


@op(
    forms=TOKEN_LOGPROBS,
    vjp=_token_logprobs_vjp,
    checks=_in_vocabulary,
    dtypes={"ids": "int64", "temperature": SETTINGS["temperature"]},
)
def token_logprobs(
    b: ProgramBuilder,
    logits: Buffer,
    ids: Buffer,
    temperature: Temperature = 1.0,
    *,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Buffer:
    """Log-probabilities of tokens: ``log_softmax(logits / temperature)`` of each row at its id.

    A sampler, a trainer and a loss that call it have the same bits. They are those of
    ``log_softmax`` of the divided logits, gathered, and the gradient is that of these steps.

    Shapes
        ``logits`` ``[..., V]``; ``ids`` ``[...]``; ``temperature`` a number, or an array ``[...]``
        with one for each row; the result ``[...]``.
    Dtypes
        ``logits`` float32, bfloat16 or float16; ``ids`` int64 or int32; an array of temperatures
        and the result float32. The gradient has the dtype of the logits.
    Options
        ``temperature``: 0 counts as 1, as :func:`ptxgen.sample` takes the largest logit then.
        ``check``: waits for the ids, and raises IndexRangeError for one out of range; ids in host
        memory are always checked. Without it the result of such a row is NaN, its gradient 0.
    Values
        Temperatures in arrays are not read on the host. Those below 1e-30 and NaN count as 1, those
        above 1e38 as 1e38.
    Order
        Contract ``rows/1``: with ``z = f32(logits) / temperature``, rounded once, and
        ``d = z - max(z)``, the result is ``d[id] - log(sum(exp(d)))``. The gradient is ``(g -
        exp(y) * dy) / temperature``, rounded once more to 16 bits, where y is the log-softmax, and
        g is dy at the token and 0 elsewhere. :func:`ptxgen.reference.token_logprobs` returns the
        same bits.
    Errors
        IndexRangeError for an id out of range, in host memory or with ``check``; OptionError for a
        temperature out of range, ShapeError, DtypeError, DeviceError, GradError or CompileError,
        before anything is launched or written.
    Source
        ``ptxgen/ops/select.py``, ``ptxgen/numerics/row_reductions.py``.
    """
    each = _arrays({"temperature": temperature})
    shapes = {"logits": logits.shape, "ids": ids.shape, **{n: v.shape for n, v in each.items()}}
    TOKEN_LOGPROBS.infer(shapes)
    by, divisor = _divisor(b, temperature)
    found: Buffer = b.rows(
        "token_logprobs", logits, b.packed(ids), by, divisor=divisor, out=single(out), kernel=kernel
    )
    return found
