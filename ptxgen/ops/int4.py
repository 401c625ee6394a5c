"""``int4.gemm``: products of packed 4-bit integers."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.numerics.activation import CODES
from ptxgen.numerics.int4 import (
    BIASES,
    EPILOGUES,
    GEMM,
    PACKED,
    check_k,
    epilogue,
    result,
    shape,
)
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.run import caller
from ptxgen.ops.views import ALIGN_MAX, alignment, contiguous_copy, leading
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import Problem
from ptxgen.spec.int4 import ACTIVATION_SHIFT, BIAS_I32, OUT_F32, OUT_I32

_OUTS = {"int32": OUT_I32, "float32": OUT_F32}


@dataclass(frozen=True, slots=True)
class Reading:
    """A product that a call asks for (:class:`ptxgen.ops.op.Reading`)."""

    layout: str
    dtype: str
    sizes: Mapping[str, int]
    aligns: tuple[int, int]
    told: tuple[tuple[str, int | float], ...]
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        (target,) = targets
        alignment("out", target)
        told = (*self.told, ("LDD", _pitch("out", target)))
        if target.size == 0:
            return None
        return _problem(self.layout, self.dtype, self.sizes, self.aligns, told)


def read(
    views: Mapping[str, ArrayView], options: Options, targets: tuple[str | None, ...]
) -> Reading:
    """The product that a call asks for."""
    dtype, layout = options["dtype"], options["layout"]
    for name, view in views.items():
        accepted = BIASES if name == "bias" else (PACKED,)
        if view.dtype not in accepted:
            raise DtypeError(f"{name} has dtype {view.dtype}; takes {' or '.join(accepted)}")
    bias = views.get("bias")
    named = epilogue(options["activation"], bias is not None)
    wanted = result(dtype, options["out_dtype"], targets[0])
    sizes = GEMM.infer({name: view.shape for name, view in views.items()}, layout).sizes
    check_k(dtype, sizes["K"])
    pitches = {name: _pitch(name, view) for name, view in views.items() if name != "bias"}
    if bias is not None:
        alignment("bias", bias)
        if bias.size > 1 and bias.strides != (1,):
            raise ShapeError(
                f"bias has stride {bias.strides[0]}; takes stride 1: pass "
                f"{contiguous_copy('bias', bias)}"
            )
    flags = CODES[named if named in EPILOGUES[2:] else "none"] << ACTIVATION_SHIFT
    flags |= BIAS_I32 if bias is not None and bias.dtype == "int32" else 0
    told: tuple[tuple[str, int | float], ...] = (
        ("K", sizes["K"]),  # the kernels of k = 1 serve an empty reduction, if told so
        *((f"LD{x.upper()}", pitches.get(x, 0)) for x in "abc"),
        ("FLAGS", flags | _OUTS.get(wanted, 0)),
        *((x.upper(), _single(x, options[x])) for x in ("alpha", "beta")),
    )
    return Reading(
        layout,
        dtype,
        sizes,
        (_aligned("a", views["a"], pitches["a"]), _aligned("b", views["b"], pitches["b"])),
        told,
        (Result(shape(sizes["M"], sizes["N"], wanted), wanted),),
    )


def pose(question: Question) -> Problem:
    """The problem of sizes M, N and K."""
    for name in "NK":
        if question.sizes[name] % 2:
            raise ShapeError(f"{name} is {question.sizes[name]}; takes an even number")
    check_k(question.dtype, question.sizes["K"])
    align_a, align_b = (question.aligns * 2)[:2]
    layout = question.options["layout"]
    return _problem(layout, question.dtype, question.sizes, (align_a, align_b), ())


def _problem(
    layout: str,
    dtype: str,
    sizes: Mapping[str, int],
    aligns: tuple[int, int],
    told: tuple[tuple[str, int | float], ...],
) -> Problem:
    m, n, k = (sizes[name] for name in GEMM.sizes)
    return Problem(
        ("int4", layout, dtype),
        dtype,
        (("M", m), ("N", n), ("K", max(k, 1)), ("ALIGN_A", aligns[0]), ("ALIGN_B", aligns[1])),
        told,
        ("a", "b", "c", "bias", "d"),
        f"int4_gemm M={m} N={n} K={k}",
    )


def _pitch(name: str, view: ArrayView) -> int:
    """Items from row to row of a matrix, whose rows must lie apart."""
    (rows, width), (down, along) = view.shape, view.strides
    if view.size and ((along != 1 and width > 1) or (rows > 1 and down < width)):
        raise ShapeError(
            f"{name} has shape {list(view.shape)} and strides {list(view.strides)}; takes stride 1 "
            f"along the last dimension, and rows apart: pass {contiguous_copy(name, view)}"
        )
    return leading(rows if view.size else 1, width, down, view.itemsize)


def _aligned(name: str, view: ArrayView, pitch: int) -> int:
    """As :func:`alignment`; of an empty matrix, that of its address: the copy engine is told it."""
    low = view.ptr | ALIGN_MAX
    return alignment(name, view, pitch) if view.size else low & -low


def _single(name: str, value: Any) -> float:
    """``value`` rounded to f32; every NaN is the same, so that problems can be compared."""
    try:
        found = ctypes.c_float(value).value
    except TypeError:
        raise OptionError(f"{name} is {value!r}; takes a number") from None
    return math.nan if math.isnan(found) else found


def backward(*_: Any) -> tuple[Any, ...]:
    """Refuses: what is rounded to 4 bits has no gradients."""
    raise GradError(
        f"{GEMM.name} has no gradients; pass what does not require grad, such as bias.detach()"
    )


OPS = {GEMM.name: Op(GEMM, read, pose, backward)}
"""The row of products of 4-bit integers."""

run = caller(OPS["int4_gemm"])


def int4_gemm(
    a: Any,
    b: Any,
    c: Any = None,
    bias: Any = None,
    *,
    dtype: str = "s4",
    layout: str = "rcr",
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``D = saturate(activation(alpha · (A · B) + beta · C + bias))``, of packed 4-bit integers.

    Shapes
        In bytes, each of two elements (:func:`ptxgen.int4.pack`): ``a`` ``[M, K/2]``; ``b``
        ``[N, K/2]`` (``layout="rcr"``) or ``[K, N/2]`` (``"rrr"``); ``c`` and the result
        ``[M, N/2]``; ``bias`` ``[N]``. N and K are even. M = 0 or N = 0 gives an empty result;
        K = 0 has sums of 0.
    Dtypes
        Arrays of uint8, whose elements are ``dtype``: ``"s4"`` (-8 .. 7) or ``"u4"`` (0 .. 15).
        ``bias`` is float32 or int32. ``out_dtype`` (or ``out``) may also ask for ``"int32"``, the
        exact sums, whatever the epilogue is, or ``"float32"``, what would be rounded: ``[M, N]``.
    Epilogue
        ``activation``: None (with ``bias`` if there is one), ``"identity"`` (without one),
        ``"relu"``, ``"gelu"`` (erf) or ``"silu"`` (with one). Without ``c``, ``beta`` is not used.
    Storage
        Rows may be any bytes apart, and start anywhere; multiples of 16 are fastest.
    Bits
        Contract ``int4/1`` (:mod:`ptxgen.numerics.int4`): sums are exact (K at most 33,554,431 for
        s4, 9,544,371 for u4), the epilogue has one f32 rounding a step, results are rounded half to
        even and saturate; NaN gives 0. So no kernel, and no other row, has a part in them.
        :func:`ptxgen.reference.int4_gemm` returns the same bits.

    ``out`` may be ``c`` itself. ``out``, ``stream`` and ``kernel`` are else as in
    :func:`ptxgen.linear`.

    ``torch.ops.ptxgen.int4_gemm`` is an operator for ``torch.compile``, without gradients.

    Raises ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before
    anything is launched or written. Source: ``ptxgen/tiles/int4.py``.

    >>> import numpy, ptxgen
    >>> a = ptxgen.int4.pack(numpy.array([[1, 2], [3, 4]]))
    >>> ptxgen.int4.unpack(ptxgen.reference.int4_gemm(a, a, alpha=0.5))
    array([[2, 6],
           [6, 7]], dtype=int8)
    """
    how = dtype, layout, activation, alpha, beta, out_dtype, kernel
    return run(a, b, c, bias, out, stream, how)
