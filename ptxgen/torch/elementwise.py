"""Elementwise operators of ATen as formulas with the bits of PyTorch's own kernels.

A ``batch_invariant()`` block leaves these operators to PyTorch, so compiled graphs may use a
formula only where its bits follow from IEEE 754: operands are cast to one dtype, computed in f32
(16 bits) or in that dtype, and rounded once. Functions that PyTorch takes from a math library (exp,
rsqrt, tanh ...) are in :mod:`ptxgen.torch.functions`, and the block computes them by the same
formulas. Operators whose vectorised and scalar kernels differ in PyTorch are in neither. (``sqrt``
and powers are here for ``functions=False``.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import torch

from ptxgen.numerics.dtype import COMPLEX, STORABLE
from ptxgen.numerics.dtype import NAMES as SHORT
from ptxgen.numerics.formula import FLOATS, STORED, Node, cast, compare, const, primitive, where
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.buffer import Buffer
from ptxgen.torch.functions import meta, scalar_key, scalar_of
from ptxgen.torch.record import NAMES
from ptxgen.torch.unserved import UNKNOWN, NotServed

SAME, COMPARED, CHOSEN = "same", "compared", "chosen"
"""Rules for the dtype that operands are cast to. SAME: the result's; COMPARED: the operands' common
dtype (``result_type``); CHOSEN: the result's, except for the first operand, a condition.
"""


def _compared(op: str) -> Callable[..., Node]:
    return lambda x, y: compare(op, x, y)


def _floor_divided(x: Node, y: Node) -> Node:
    """Divides integers by a positive number below 2^31, rounding down. The quotient in f64 is off
    by less than 2^11; adding that of the remainder makes it exact.
    """

    def once(z: Node) -> Node:
        return cast(primitive("floor", cast(z, "f64") / cast(y, "f64")), x.type)

    first = once(x)
    return first + once(x - first * y)


FORMULAS: Final[dict[str, tuple[str, Callable[..., Node]]]] = {
    "add": (SAME, lambda x, y: x + y),
    "sub": (SAME, lambda x, y: x - y),
    "rsub": (SAME, lambda x, y: y - x),
    "mul": (SAME, lambda x, y: x * y),
    "div": (SAME, lambda x, y: x / y),
    "floor_divide": (SAME, _floor_divided),
    "neg": (SAME, lambda x: -x),
    "abs": (SAME, abs),
    "sqrt": (SAME, lambda x: primitive("sqrt", x)),
    "reciprocal": (SAME, lambda x: 1 / x),
    "floor": (SAME, lambda x: primitive("floor", x)),
    "ceil": (SAME, lambda x: primitive("ceil", x)),
    "trunc": (SAME, lambda x: primitive("trunc", x)),
    # A GPU's maximum takes +0 for larger than -0; kernels for CPUs keep -0.
    "relu": (SAME, lambda x: primitive("max", x, const(0, x.type))),
    "relu_cpu": (SAME, lambda x: where(x < 0, 0, x)),
    "leaky_relu": (SAME, lambda x, slope=0.01: where(x > 0, x, x * slope)),
    "leaky_relu_backward": (SAME, lambda dy, x, slope, _: where(x > 0, dy, dy * slope)),
    "threshold_backward": (SAME, lambda dy, x, threshold: where(x <= threshold, 0, dy)),
    "bitwise_and": (SAME, lambda x, y: x & y),
    "bitwise_or": (SAME, lambda x, y: x | y),
    "bitwise_not": (SAME, lambda x: ~x),
    "logical_and": (SAME, lambda x, y: x & y),
    "logical_or": (SAME, lambda x, y: x | y),
    "logical_not": (SAME, lambda x: ~x),
    **{name: (COMPARED, _compared(name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "where": (CHOSEN, where),
    "cube": (SAME, lambda x: x * x * x),
    "copied": (SAME, lambda x: x),
}
"""Formulas by operator name (overload packet), each with the rule for its operands' dtype."""
SERVED: Final = {*FORMULAS, "pow", "masked_fill", "isnan"} - {"relu_cpu", "cube", "copied"}
_MOVED = ("neg", "eq", "ne", "where")
"""Operators that are exact on complex numbers; PyTorch's products, quotients and magnitudes of them
differ from device to device, and its sums scale an operand by 1 + 0i first.
"""
_EXACT = ("mul", "div")
"""Operators whose kernels read a scalar operand in f32, on any device and beside arrays of any
dtype. Other kernels may round it to the array's 16-bit dtype.
"""


def _rewritten(name: str, kind: str, args: list[Any], out: Buffer) -> tuple[str, list[Any]]:
    """Returns the name in :data:`FORMULAS` that computes operator ``name`` on device type ``kind``,
    and its operands. Raises NotServed if there is none.
    """
    if name == "pow" and isinstance(args[0], Buffer) and args[1:] in ([1], [2]):
        return ("mul", args[:1] * 2) if args[1] == 2 else ("copied", args[:1])
    if name == "pow" and args[1:] == [3] and out.dtype in ("float32", "float64"):
        return "cube", args[:1]
    if name == "floor_divide":
        whole = isinstance(args[1], int) and 0 < args[1] < 1 << 31
        if not whole or out.dtype not in ("int32", "int64"):
            raise NotServed(UNKNOWN)
    if name == "isnan":
        return "ne", args * 2
    if name == "masked_fill":
        return "where", [args[1], args[2], args[0]]
    if name == "relu" and kind == "cpu":
        return "relu_cpu", args
    if name == "div" and kind != "cpu" and not isinstance(args[1], Buffer) and out.dtype in SHORT:
        type = STORED[SHORT[out.dtype]]  # by a number: kernels for GPUs multiply by its reciprocal
        divisor = const(float(args[1]), type).data
        if divisor:
            return "mul", [args[0], const(1 / divisor, type).data]
    # On CPUs a library takes roots, and does not always round them right.
    if name not in FORMULAS or (name == "sqrt" and kind == "cpu"):
        raise NotServed(UNKNOWN)
    return name, args


def lowered(
    b: Any, name: str, kind: str, out: Buffer, args: Sequence[Any], options: dict[str, Any]
) -> Buffer:
    """Lowers operator ``name`` of :data:`SERVED`, with the bits of PyTorch on device type ``kind``;
    the result is written to ``out``. Raises NotServed if no formula has these bits.
    """
    if options.get("alpha", 1) != 1 or options.get("rounding_mode") is not None:
        raise NotServed(UNKNOWN)
    name, given = _rewritten(name, kind, list(args), out)
    how, _ = FORMULAS[name]
    dtype = _common_dtype(given) if how == COMPARED else out.dtype
    arrays = [x for x in given if isinstance(x, Buffer)]
    known = STORABLE if name == "copied" else SHORT
    known = {**known, **COMPLEX} if name in _MOVED else known
    if any(x not in known for x in (dtype, *(x.dtype for x in (*arrays, out)))):
        raise NotServed(UNKNOWN)
    first = int(how == CHOSEN)
    for x in given[first:]:
        if not _casts_alike(x, dtype, kind, name, whole=not out.shape):
            raise NotServed(UNKNOWN)
    spec = tuple(None if isinstance(x, Buffer) else _checked_key(x) for x in given)
    b.call(_function(name, known[dtype], known[out.dtype], spec), *arrays, out=out)
    return out


@cache
def saturates() -> bool:
    """Whether PyTorch's casts to float8_e4m3fn saturate, as the formula does; older versions return
    NaN beyond the largest number.
    """
    return bool(torch.tensor(torch.inf, device="cpu").to(torch.float8_e4m3fn).float() == 448)


def is_float(dtype: str) -> bool:
    """Whether a dtype is a floating-point dtype."""
    return bool(getattr(torch, dtype).is_floating_point)


def _casts_alike(x: Any, dtype: str, kind: str, name: str, *, whole: bool) -> bool:
    """Whether PyTorch's kernels, vectorised and scalar ones, all cast operand ``x``, a buffer or a
    number, to ``dtype`` in the same way, so that one formula has their bits. ``kind``: device type;
    ``name``: the operator's key in :data:`FORMULAS`; ``whole``: whether the result has no
    dimensions.
    """
    real = is_float(dtype)
    if isinstance(x, Buffer):
        cut = is_float(x.dtype) and not real
        scalar = x.dtype != dtype and not x.shape and not whole
        return not (cut or scalar)
    if isinstance(x, float) and not real:
        return False
    half = dtype in ("bfloat16", "float16")
    if half and (kind == "cpu" or FORMULAS[name][0] == COMPARED) and name not in _EXACT:
        return bool(torch.tensor(x, dtype=getattr(torch, dtype)).item() == x) or x != x
    return True


def _common_dtype(args: Sequence[Any]) -> str:
    """Returns the common dtype of operands, as ``torch.result_type`` does."""
    return NAMES[torch.result_type(*map(meta, args))]


def _checked_key(x: Any) -> tuple[str, Any]:
    if not isinstance(x, bool | int | float):
        raise NotServed(UNKNOWN)
    return scalar_key(x)


@cache
def _function(name: str, dtype: str, to: str, spec: tuple[Any, ...]) -> Pointwise:
    """Returns the formula of an operator on ``dtype`` with a result of dtype ``to``; ``spec``: None
    for each array, else a constant's :func:`scalar_key`.
    """
    (how, body), type = FORMULAS[name], STORED[dtype]
    condition = how == CHOSEN
    names = tuple(f"x{i}" for i, each in enumerate(spec) if each is None)

    def number(key: tuple[str, Any]) -> Node:
        kind = float if type in FLOATS else bool if type == "bool" else int
        return const(kind(scalar_of(key)), type)

    def compute(**given: Node) -> Node:
        operands = [
            number(each) if each is not None
            else given[f"x{i}"] if condition and i == 0
            else _brought(given[f"x{i}"], dtype)
            for i, each in enumerate(spec)
        ]  # fmt: skip
        found = body(*operands)
        return found if found.type == STORED[to] else cast(found, to)

    return Pointwise(compute, name.removesuffix("_cpu"), names, known=STORABLE)


def _brought(x: Node, dtype: str) -> Node:
    return x if x.data.dtype == dtype else cast(x, dtype)
