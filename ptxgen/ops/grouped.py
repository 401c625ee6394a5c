"""Products of groups of rows, each with its own weight: ``grouped_linear`` and its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ptxgen.errors import DtypeError, IndexRangeError, ShapeError
from ptxgen.numerics.activation import CODES
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE
from ptxgen.numerics.grouped import GROUPED_LINEAR, GROUPED_WGRAD, GROUPS_MAX
from ptxgen.numerics.option import Activation, Bool, Dtype, Kernel, Layout
from ptxgen.ops.gemm import storages_of
from ptxgen.ops.gradients import through_activation
from ptxgen.ops.views import (
    alignment,
    check_contiguous,
    check_dtype,
    leading,
    result_dtype,
    rows_of,
    single,
)
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import ACTIVATION_SHIFT, BIAS_F32, OUT_F32, Problem
from ptxgen.tiles.gemm import WIDTH_OF

_TRANSPOSED = {"kn": "nk", "nk": "kn"}
TIERS = {"float32": "simt", "bfloat16": "tc", "float16": "tc"}
"""Tier of the kernels for each dtype that has some."""


def has_kernels(dtype: str | None, tier: str, groups: int) -> bool:
    """Whether kernels multiply ``groups`` groups of ``dtype`` (a full name) in ``tier``."""
    return dtype in TIERS and tier in ("auto", TIERS[dtype]) and 0 < groups <= GROUPS_MAX


def _ascending(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises IndexRangeError for offsets that do not ascend within 0 .. M; waits for them."""
    offsets, rows = arrays["offsets"], int(arrays["x"].shape[0])
    before = 0
    for i, end in enumerate(offsets.tolist()):
        if not before <= end <= rows:
            raise IndexRangeError(
                f"offsets[{i}] is {end}; takes {before} .. {rows}: ends of groups, ascending, of "
                f"{rows} rows"
            )
        before = end


def _groups(offsets: Buffer) -> int:
    check_dtype("offsets", offsets.dtype, ("int32",))
    count = offsets.shape[0] if len(offsets.shape) == 1 else 0
    if count > GROUPS_MAX:
        raise ShapeError(f"offsets has {count} groups; takes at most {GROUPS_MAX}")
    return count


def _dtypes(name: str, given: Mapping[str, Buffer]) -> str:
    """Returns the common dtype of the operands; raises DtypeError."""
    (one, x), *others = given.items()
    check_dtype(one, x.dtype, tuple(TIERS))
    for other, y in others:
        if y.dtype != x.dtype:
            raise DtypeError(f"{other} has dtype {y.dtype}; takes {x.dtype}, that of {one}")
    return x.dtype


def _mixed(dtype: str) -> tuple[str, ...]:
    return (dtype,) if dtype == "float32" else (dtype, "float32")


def _pitch(name: str, x: Buffer) -> int:
    """Returns the elements from row to row of ``x``; raises ShapeError."""
    count, width, down = rows_of(name, x)
    return leading(count, width, down, x.itemsize)


def _problem(
    over: str,
    storage: str,
    dtype: str,
    sizes: tuple[int, int, int, int],
    aligns: tuple[int, int],
    scalars: Mapping[str, int],
    what: str,
) -> Problem:
    m, n, k, groups = sizes
    short = DTYPES[dtype]
    if k == 0:  # nothing is read, so the alignment is only an element's
        aligns = ITEMSIZE[short], ITEMSIZE[short]
    values = (
        *(("M", m), ("N", n), ("K", max(k, 1)), ("GROUPS", groups)),
        *(("ALIGN_A", aligns[0]), ("ALIGN_B", aligns[1])),
    )
    table = "grouped", storage, over, WIDTH_OF[short], TIERS[dtype]
    return Problem(table, short, values, tuple(scalars.items()), what)


def _weights(b: ProgramBuilder, w: Buffer, layout: str) -> tuple[Buffer, str, int, int]:
    """Returns the groups' matrices, copied if kernels cannot read them in place: array, storage
    letter, elements from row to row, and from matrix to matrix.
    """
    one = replace(w, shape=w.shape[1:], strides=w.strides[1:])
    storages = storages_of(one, "N")
    step = w.strides[0]
    if not storages or (w.shape[0] > 1 and step <= 0 and w.size):
        return _weights(b, b.copied(w), layout)
    letter, pitch = storages[0]
    if w.shape[0] == 1 or not w.size:
        step = w.shape[1 if letter == "N" else 2] * pitch
    if layout == "nk":
        letter = "T" if letter == "N" else "N"
    return w, letter, pitch, step


def _linear_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``grouped_linear``: dx by ``grouped_linear`` with transposed weights, dW by
    ``grouped_linear_wgrad``, dbias by the latter with a column of ones.
    """
    x, w, offsets, bias = (at[n] for n in ("x", "w", "offsets", "bias"))
    found, layout = {}, at.options["layout"]
    dy = through_activation(b, at, partial(b.grouped_linear, x, w, offsets, bias, layout=layout))
    if "x" in at.needs:
        found["x"] = b.grouped_linear(dy, w, offsets, layout=_TRANSPOSED[layout])
    if "w" in at.needs:
        found["w"] = b.grouped_linear_wgrad(x, dy, offsets, layout=layout, out_dtype=b.dtype(w))
    if "bias" in at.needs:
        found["bias"] = bias_gradient(b, dy, offsets, b.dtype(bias))
    return found


def bias_gradient(b: Builder, dy: Any, offsets: Any, dtype: str) -> Any:
    """Returns the sums ``[E, N]`` of the rows of ``dy`` in each group, rounded to ``dtype``."""
    ones = b.filled((dy.shape[0], 1), "float32", 1.0, dy)
    total = b.grouped_linear_wgrad(ones, b.cast(dy, "float32"), offsets, layout="kn")
    return b.cast(b.squeeze(total, 1), dtype)


@op(forms=GROUPED_LINEAR, vjp=_linear_vjp, checks=_ascending, dtypes={"offsets": "int32"})
def grouped_linear(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    offsets: Buffer,
    bias: Buffer | None = None,
    *,
    layout: Layout,
    activation: Activation = None,
    check: Bool = False,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y[i] = activation(x[i] · w[g] + bias[g])`` for each row i of group g, batch-invariant.

    State ``layout``, that of each matrix of ``w``, as for :func:`ptxgen.linear`.

    Group g has the rows from ``offsets[g - 1]`` (the first: 0) to below ``offsets[g]``: experts
    applied to rows that are sorted by expert. Only the device reads ``offsets``: nothing waits, and
    a call can be captured in a CUDA graph and replayed with other offsets.

    Shapes
        ``x`` ``[M, K]``; ``w`` ``[E, K, N]`` (``layout="kn"``) or ``[E, N, K]`` (``"nk"``);
        ``offsets`` ``[E]``; ``bias`` ``[E, N]``; the result ``[M, N]``. A group may have any number
        of rows, also 0. E is at most 1024.
    Dtypes
        float32, bfloat16 or float16, the same for x and w, and so the result; ``offsets`` int32.
        Where these have 16 bits, ``bias`` may be float32, and so may the result, if ``out`` or
        ``out_dtype`` say so.
    Storage
        Rows of x may have any pitch; matrices of w may be transposed, and have any pitch and
        positive stride; other w are copied. Any alignment of whole elements is served; 16 bytes
        are fastest.
    Order
        A row has the bits of :func:`ptxgen.linear` with ``w[g]`` and ``bias[g]``: contract
        ``fma/3`` for float32, ``tc16/3`` for 16 bits. They depend neither on other rows nor on the
        size of a group. :func:`ptxgen.reference.grouped_linear` returns the same bits. Rows after
        the last offset, of no group, are zeros.
    Options
        ``activation``: as of :func:`ptxgen.linear`. ``check``: waits for ``offsets``, and raises
        IndexRangeError unless they ascend within 0 .. M.
    Errors
        IndexRangeError for offsets that do not ascend or are out of range, in host memory or with
        ``check``; without it an offset counts as the largest of itself and those before it, clamped
        to 0 .. M. ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError,
        before anything is launched or written.
    Source
        ``ptxgen/ops/grouped.py``, ``ptxgen/tiles/grouped.py``.

    >>> import numpy, ptxgen
    >>> x, w = numpy.ones((3, 2), "f4"), numpy.array([1, 10], "f4").repeat(2).reshape(2, 2, 1)
    >>> ptxgen.reference.grouped_linear(x, w, numpy.array([1, 3], "i4"), layout="kn")
    array([[ 2.],
           [20.],
           [20.]], dtype=float32)
    """
    dtype = _dtypes("grouped_linear", {"x": x, "w": w})
    groups = _groups(offsets)
    given = {"x": x, "w": w, "offsets": offsets} | ({} if bias is None else {"bias": bias})
    found = GROUPED_LINEAR.infer({name: v.shape for name, v in given.items()}, layout)
    if bias is not None:
        check_dtype("bias", bias.dtype, _mixed(dtype))
    wanted = result_dtype(out_dtype, single(out), dtype, _mixed(dtype))
    y = b.result(found.results[0], wanted, single(out))
    if b.abstract or y.size == 0:
        return y
    sizes = found.sizes
    m, n, k = (sizes[name] for name in ("M", "N", "K"))
    if groups == 0:
        b.fill(y, 0, out=y)
        return y
    check_contiguous("offsets", offsets)
    w, letter, ldb, step = _weights(b, w, layout)
    lda, ldc = _pitch("x", x), _pitch("out", y)
    alignment("out", y, ldc)
    flags = CODES[activation or "none"] << ACTIVATION_SHIFT
    flags |= OUT_F32 if wanted != dtype else 0
    if bias is not None:
        check_contiguous("bias", bias)
        alignment("bias", bias)
        flags |= BIAS_F32 if bias.dtype != dtype else 0
    problem = _problem(
        "rows",
        "N" + letter,
        dtype,
        (m, n, k, groups),
        (alignment("x", x, lda), alignment("w", w, ldb, step)),
        {"LDA": lda, "LDB": ldb, "LDC": ldc, "BATCH_B": step, "FLAGS": flags, "K": k},
        f"grouped_linear M={m} N={n} K={k} in {groups} groups",
    )
    bind = {"x": x, "w": w, "biases": bias, "offsets": offsets, "y": y}
    b.launch(lambda: problem, bind, kernel)
    return y


def _wgrad_vjp(b: Builder, at: Backward) -> Gradients:
    x, dy, offsets = (at[n] for n in ("x", "dy", "offsets"))
    g, found, layout = b.packed(b.cast(at.dys[0], b.dtype(x))), {}, at.options["layout"]
    if "x" in at.needs:
        found["x"] = b.grouped_linear(dy, g, offsets, layout=_TRANSPOSED[layout])
    if "dy" in at.needs:
        found["dy"] = b.grouped_linear(x, g, offsets, layout=layout)
    return found


@op(forms=GROUPED_WGRAD, vjp=_wgrad_vjp, checks=_ascending, dtypes={"offsets": "int32"})
def grouped_linear_wgrad(
    b: ProgramBuilder,
    x: Buffer,
    dy: Buffer,
    offsets: Buffer,
    *,
    layout: Layout,
    check: Bool = False,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``dW[g] = x[rows of g]ᵀ · dy[rows of g]``: the gradient of ``grouped_linear``'s weights.

    State ``layout``, that of each matrix of the result, as for :func:`ptxgen.linear`.

    Shapes
        ``x`` ``[M, K]``; ``dy`` ``[M, N]``; ``offsets`` ``[E]``, as of
        :func:`ptxgen.grouped_linear`; the result is stored like the weights: ``[E, K, N]``
        (``layout="kn"``) or ``[E, N, K]`` (``"nk"``). A group without rows gives zeros.
    Dtypes
        float32, bfloat16 or float16, the same for x and dy; ``offsets`` int32. The result is
        float32 unless ``out`` or ``out_dtype`` give the operands' dtype (one rounding, at the
        end).
    Order
        One chain for each output, over the group's rows, ascending, from +0.0: the bits of
        :func:`ptxgen.linear_wgrad` of these rows with ``chain=True``. So a group's result
        depends on that group's rows alone. :func:`ptxgen.reference.grouped_linear_wgrad` returns
        the same bits.
    Errors
        Those of :func:`ptxgen.grouped_linear`. x and dy are read in rows of stride 1; out is
        contiguous.
    Source
        ``ptxgen/ops/grouped.py``, ``ptxgen/tiles/grouped.py``.

    >>> import numpy, ptxgen
    >>> x, dy = numpy.ones((3, 1), "f4"), numpy.arange(3, dtype="f4").reshape(3, 1)
    >>> ends = numpy.array([1, 1, 3], "i4")
    >>> ptxgen.reference.grouped_linear_wgrad(x, dy, ends, layout="kn").ravel()
    array([0., 0., 3.], dtype=float32)
    """
    dtype = _dtypes("grouped_linear_wgrad", {"x": x, "dy": dy})
    groups = _groups(offsets)
    found = GROUPED_WGRAD.infer({"x": x.shape, "dy": dy.shape, "offsets": offsets.shape}, layout)
    wanted = result_dtype(out_dtype, single(out), "float32", _mixed(dtype))
    y = b.result(found.results[0], wanted, single(out))
    if b.abstract or y.size == 0:
        return y
    sizes = found.sizes
    rows = sizes["M"]
    sides = [("x", x, sizes["K"]), ("dy", dy, sizes["N"])]
    (a, one, m), (c, other, n) = sides if layout == "kn" else sides[::-1]
    check_contiguous("offsets", offsets)
    check_contiguous("out", y, result=True)
    alignment("out", y)
    lda, ldb = _pitch(a, one), _pitch(c, other)
    problem = _problem(
        "sums",
        "TN",
        dtype,
        (m, n, rows, groups),
        (alignment(a, one, lda), alignment(c, other, ldb)),
        {
            "LDA": lda,
            "LDB": ldb,
            "LDC": n,
            "BATCH_C": m * n,
            "FLAGS": OUT_F32 if wanted != dtype else 0,
            "K": rows,
        },
        f"grouped_linear_wgrad M={rows} N={sizes['N']} K={sizes['K']} in {groups} groups",
    )
    b.launch(lambda: problem, {"x": one, "w": other, "offsets": offsets, "y": y}, kernel)
    return y
