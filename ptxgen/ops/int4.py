"""``int4.gemm``: products of packed 4-bit integers."""

from __future__ import annotations

import ctypes
from math import nan
from typing import Annotated, Any

from ptxgen.errors import GradError, ShapeError
from ptxgen.numerics.activation import CODES
from ptxgen.numerics.int4 import (
    ACTIVATION,
    BIASES,
    DTYPE,
    EPILOGUES,
    GEMM,
    LAYOUT,
    PACKED,
    check_k,
    epilogue,
    result,
    shape,
)
from ptxgen.numerics.option import AnyReal, Kernel, Option
from ptxgen.ops.views import alignment, check_dtype, check_vector, leading, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Written
from ptxgen.spec import Problem
from ptxgen.spec.int4 import ACTIVATION_SHIFT, BIAS_I32, OUT_F32, OUT_I32

_OUTS = {"int32": OUT_I32, "float32": OUT_F32}
Factor = Annotated[float, AnyReal()]


def _pitch(name: str, view: Buffer) -> int:
    """Returns the pitch of a matrix, in elements of its array; raises ShapeError unless rows have
    stride 1 and do not overlap.
    """
    (rows, width), (down, along) = view.shape, view.strides
    if view.size and ((along != 1 and width > 1) or (rows > 1 and down < width)):
        raise ShapeError(
            f"{name} has shape {list(view.shape)} and strides {list(view.strides)}; takes stride 1 "
            f"along the last dimension, and rows apart: pass a contiguous copy of {name}"
        )
    return leading(rows if view.size else 1, width, down, view.itemsize)


def _f32(value: float) -> float:
    """Rounds ``value`` to f32; every NaN becomes one object, so that problems can be compared."""
    found = ctypes.c_float(value).value
    return nan if found != found else found


def _refused(b: Builder, at: Backward) -> Gradients:
    """Raises GradError: results rounded to 4 bits have no gradients."""
    raise GradError(
        f"{GEMM.name} has no gradients; pass what does not require grad, such as bias.detach()"
    )


@op(
    forms=GEMM,
    vjp=_refused,
    public=False,
    of_tensors=True,
    dtypes=dict.fromkeys(("a", "b", "c"), PACKED),
)
def int4_gemm(
    to: ProgramBuilder,
    a: Buffer,
    b: Buffer,
    c: Buffer | None = None,
    bias: Buffer | None = None,
    *,
    dtype: Annotated[str, DTYPE] = "s4",
    layout: Annotated[str, LAYOUT] = "rcr",
    activation: Annotated[str | None, ACTIVATION] = None,
    alpha: Factor = 1.0,
    beta: Factor = 0.0,
    out: Annotated[Any, Written(over=("c",))] = None,
    out_dtype: Annotated[Any, Option()] = None,
    kernel: Kernel = None,
) -> Buffer:
    """``D = saturate(activation(alpha · (A · B) + beta · C + bias))``, of packed 4-bit integers.

    Shapes
        In bytes, each of two elements (:func:`ptxgen.int4.pack`): ``a`` ``[M, K/2]``; ``b``
        ``[N, K/2]`` (``layout="rcr"``) or ``[K, N/2]`` (``"rrr"``); ``c`` and the result
        ``[M, N/2]``; ``bias`` ``[N]``. N and K are even. M = 0 or N = 0 gives an empty result;
        K = 0 has sums of 0.
    Dtypes
        Arrays of uint8, whose elements are ``dtype``: ``"s4"`` (-8 .. 7) or ``"u4"`` (0 .. 15).
        ``bias`` is float32 or int32. ``out_dtype`` (or ``out``) may also ask for ``"int32"``, the
        exact sums, whatever the epilogue is, or ``"float32"``, the results before they are rounded:
        ``[M, N]``.
    Epilogue
        ``activation``: None (with or without ``bias``), ``"identity"`` (without), ``"relu"``,
        ``"gelu"`` (erf) or ``"silu"`` (with a bias). Without ``c``, ``beta`` is not used.
    Storage
        Rows may have any pitch and alignment; multiples of 16 bytes are fastest. ``out`` may be
        ``c`` itself.
    Order
        Contract ``int4/1`` (:mod:`ptxgen.numerics.int4`): sums are exact (K at most 33,554,431 for
        s4, 9,544,371 for u4), the epilogue has one f32 rounding a step, results are rounded half to
        even and saturate; NaN gives 0. So results depend on no other row, nor on the kernel.
        :func:`ptxgen.reference.int4_gemm` returns the same bits.
    Gradients
        There are none. ``torch.ops.ptxgen.int4_gemm`` is an operator for ``torch.compile``.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written. ``stream`` and ``kernel`` are as in :func:`ptxgen.linear`.
    Source
        ``ptxgen/ops/int4.py``, ``ptxgen/tiles/int4.py``.

    >>> import numpy, ptxgen
    >>> a = ptxgen.int4.pack(numpy.array([[1, 2], [3, 4]]))
    >>> ptxgen.int4.unpack(ptxgen.reference.int4_gemm(a, a, alpha=0.5))
    array([[2, 6],
           [6, 7]], dtype=int8)
    """
    given = {n: v for n, v in (("a", a), ("b", b), ("c", c), ("bias", bias)) if v is not None}
    for name, view in given.items():
        accepted = BIASES if name == "bias" else (PACKED,)
        check_dtype(name, view.dtype, accepted)
    named, target = epilogue(activation, bias is not None), single(out)
    wanted = result(dtype, out_dtype, None if target is None else target.dtype)
    sizes = GEMM.infer({name: view.shape for name, view in given.items()}, layout).sizes
    check_k(dtype, sizes["K"])
    m, n, k = (sizes[name] for name in GEMM.sizes)
    d = to.result(shape(m, n, wanted), wanted, target)
    if to.abstract:
        return d
    pitches = {name: _pitch(name, view) for name, view in given.items() if name != "bias"}
    if bias is not None:
        check_vector("bias", bias)
    alignment("out", d)
    flags = CODES[named if named in EPILOGUES[2:] else "none"] << ACTIVATION_SHIFT
    flags |= BIAS_I32 if bias is not None and bias.dtype == "int32" else 0
    scalars: tuple[tuple[str, int | float], ...] = (
        ("K", k),  # kernels for K >= 1 serve K = 0 through this scalar
        *((f"LD{x.upper()}", pitches.get(x, 0)) for x in "abc"),
        ("FLAGS", flags | _OUTS.get(wanted, 0)),
        ("ALPHA", _f32(alpha)),
        ("BETA", _f32(beta)),
        ("LDD", _pitch("out", d)),
    )
    if d.size:
        aligns = [(f"ALIGN_{x.upper()}", alignment(x, given[x], pitches[x])) for x in "ab"]
        values = (("M", m), ("N", n), ("K", max(k, 1)), *aligns)
        what = f"int4_gemm M={m} N={n} K={k}"
        bind = {"a": a, "b": b, "c": c, "bias": bias, "d": d}
        key = "int4", layout, dtype
        to.launch(lambda: Problem(key, dtype, values, scalars, what), bind, kernel)
    return d
