"""Formulas of ATen's elementwise functions, made of :mod:`ptxgen.functions`.

PyTorch takes these functions from math libraries, each with bits of its own. Inside a
:class:`ptxgen.torch.batch_invariant` block, and in compiled graphs, they have the bits of a
formula: an entry of :data:`FUNCTIONS`. Dtype and strides of the result are PyTorch's. Operands are
cast to that dtype, 16-bit ones are computed in f32, and the result is rounded once. PyTorch
computes float64 for functions without an f64 formula.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import torch

from ptxgen.errors import DtypeError, FormulaError
from ptxgen.numerics import functions as f
from ptxgen.numerics.dtype import NAMES as SHORT
from ptxgen.numerics.formula import FLOATS, STORED, Function, Node, cast, fma, where
from ptxgen.numerics.pointwise import scalar_type
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.buffer import Buffer
from ptxgen.runtime.strided import Ints
from ptxgen.torch.record import NAMES
from ptxgen.torch.unserved import ROW_WISE, NotServed, overload

_hex = float.fromhex
LOG10_E: Final = {
    "f32": (_hex("0x1.bcb7b2p-2"), _hex("-0x1.5b235ep-27")),
    "f64": (_hex("0x1.bcb7b1526e50ep-2"), _hex("0x1.95355baaafad3p-57")),
}
"""``1 / log(10)`` by type, as the sum of a high and a low part."""


# -- formulas ---------------------------------------------------------------------------------
def _gradient(function: Function, *, of_result: bool = False) -> Callable[[Node, Node], Node]:
    """Returns a function for ``dy * f'``, the gradient of ``function``. Its second argument is the
    argument of ``function``, or its result with ``of_result``.
    """

    def backward(dy: Node, at: Node) -> Node:
        assert function.slope is not None, "rows have slopes"
        return dy * function.slope(at, at if of_result else function(at))[0]

    return backward


_GELU: Final = {"none": f.gelu, "tanh": f.gelu_tanh}


def _gelu(x: Node, approximate: str) -> Node:
    return _GELU[approximate](x)


def _gelu_backward(dy: Node, x: Node, approximate: str) -> Node:
    return _gradient(_GELU[approximate])(dy, x)


def _log10(x: Node) -> Node:
    high, low = LOG10_E[x.type]
    y = f.log(x)
    return where(abs(y) < float("inf"), fma(y, high, y * low), y)


def _softplus(x: Node, beta: Node, threshold: Node) -> Node:
    return where(x * beta > threshold, x, f.softplus(x * beta) / beta)


def _softplus_backward(dy: Node, x: Node, beta: Node, threshold: Node) -> Node:
    return where(x * beta > threshold, dy, dy * f.sigmoid(x * beta))


def _mish(x: Node) -> Node:
    return x * f.tanh(f.softplus(x))


def _mish_backward(dy: Node, x: Node) -> Node:
    t = f.tanh(f.softplus(x))
    return dy * fma(x * f.sigmoid(x), fma(-t, t, 1), t)


def _elu(x: Node, alpha: Node, scale: Node, input_scale: Node) -> Node:
    return where(x > 0, x * scale, f.expm1(x * input_scale) * (alpha * scale))


def _celu(x: Node, alpha: Node) -> Node:
    return where(x > 0, x, f.expm1(x / alpha) * alpha)


def _elu_backward(
    dy: Node, alpha: Node, scale: Node, input_scale: Node, of_result: bool, x: Node
) -> Node:
    """Computes the gradient of ELU; ``x`` is ELU's result if ``of_result``, else its argument."""
    below = alpha * scale
    low = input_scale * (x + below if of_result else below * f.exp(x * input_scale))
    return where(x <= 0, dy * low, dy * scale)


FUNCTIONS: Final[dict[str, Callable[..., Node]]] = {
    **{name: getattr(f, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log1p")},
    **{name: getattr(f, name) for name in ("sqrt", "rsqrt", "sin", "cos", "tan", "atan", "erf")},
    **{name: getattr(f, name) for name in ("tanh", "sigmoid", "silu")},
    "log10": _log10,
    "pow.Tensor_Scalar": f.power,
    "pow.Scalar": f.power,
    "pow.Tensor_Tensor": f.power,
    "gelu": _gelu,
    "softplus": _softplus,
    "mish": _mish,
    "elu": _elu,
    "celu": _celu,
    "tanh_backward": _gradient(f.tanh, of_result=True),
    "sigmoid_backward": _gradient(f.sigmoid, of_result=True),
    "silu_backward": _gradient(f.silu),
    "gelu_backward": _gelu_backward,
    "softplus_backward": _softplus_backward,
    "mish_backward": _mish_backward,
    "elu_backward": _elu_backward,
}
"""Formulas by operator name. Tensors and scalars among the arguments become nodes of the formula,
other arguments are passed as they are.
"""


# -- calls of them ------------------------------------------------------------------------------
def call(
    b: Any, name: str, args: Sequence[Any], options: Mapping[str, Any], out: Buffer | None = None
) -> Any:
    """Lowers a call of operator ``name`` of :data:`FUNCTIONS`; the result is written to ``out`` if
    given. Raises NotServed if there is no formula for the dtypes.
    """
    arrays = [x for x in args if isinstance(x, Buffer)]
    if any(x.dtype not in SHORT for x in arrays):
        raise NotServed(ROW_WISE)
    like = overload(f"aten::{name}")(*map(meta, args), **options)
    dtype = SHORT.get(NAMES.get(like.dtype, ""), "")
    if STORED.get(dtype) not in FLOATS:
        raise NotServed(ROW_WISE)
    same = scalar_type([SHORT[x.dtype] for x in arrays]) == STORED[dtype]
    spec: list[Any] = []
    given: list[Any] = []
    for x in args:
        array = isinstance(x, Buffer)
        if array or (same and _number(x) and not (name[:3] == "pow" and x in f.POWERS)):
            given.append(x)
            spec.append(SHORT[x.dtype] if array else None)
        else:
            spec.append(scalar_key(x))
    function = _function(name, dtype, tuple(spec), tuple(options.items()))
    if out is None:
        out = empty(b, like.shape, like.stride(), NAMES[like.dtype])
    try:
        return b.call(function, *given, out=out)
    except (DtypeError, FormulaError):
        raise NotServed(ROW_WISE) from None


def meta(x: Any) -> Any:
    """Returns a meta tensor with the shape, strides and dtype of a buffer; other values as they
    are.
    """
    if not isinstance(x, Buffer):
        return x
    how: dict[str, Any] = {"dtype": getattr(torch, x.dtype), "device": "meta"}
    return torch.empty_strided(x.shape, x.strides, **how)


def _number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def scalar_key(value: Any) -> tuple[str, Any]:
    """Returns a hashable key of a value that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    return type(value).__name__, struct.pack("<d", value) if isinstance(value, float) else value


def scalar_of(key: tuple[str, Any]) -> Any:
    """Returns the value whose key :func:`scalar_key` returned."""
    return struct.unpack("<d", key[1])[0] if key[0] == "float" else key[1]


@cache
def _function(
    name: str, dtype: str, spec: tuple[Any, ...], options: tuple[tuple[str, Any], ...]
) -> Pointwise:
    """Returns the formula of an operator with a result of ``dtype``. ``spec`` describes the
    arguments: the dtype of an array, None for a scalar that is a kernel argument, or the
    :func:`scalar_key` of a constant.
    """
    names = tuple(f"x{i}" for i, each in enumerate(spec) if not isinstance(each, tuple))

    def compute(**given: Node) -> Node:
        operands = [
            scalar_of(each) if isinstance(each, tuple)
            else given[f"x{i}"] if each in (None, dtype)
            else cast(given[f"x{i}"], dtype)
            for i, each in enumerate(spec)
        ]  # fmt: skip
        return FUNCTIONS[name](*operands, **dict(options))

    return Pointwise(compute, name.partition(".")[0], names)


def empty(b: Any, shape: Ints, strides: Ints, dtype: str) -> Buffer:
    """Returns a new dense buffer whose dimensions have the order of ``strides`` in memory."""
    order = list(range(len(shape)))
    if not any(s == 0 and n > 1 for s, n in zip(strides, shape, strict=True)):
        order.sort(key=lambda i: (-strides[i], i))
    made: Buffer = b.empty([shape[i] for i in order], dtype)
    return made.permuted([order.index(i) for i in range(len(shape))])
