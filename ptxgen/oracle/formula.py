"""Oracle of formulas: evaluates every node as one NumPy operation, on arrays that broadcast.

:mod:`ptxgen.numerics.formula` defines each operation to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.formula import COMPLEX, INTEGERS, STORED, Formula, Function, Node, ordered
from ptxgen.oracle import f64, float8, half
from ptxgen.oracle.f32 import BLOCK, fma

Array = NDArray[Any]
KINDS: Mapping[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
    "c64": np.complex64,
    "c128": np.complex128,
}
"""NumPy type of each type of formula nodes."""
_TYPES = {FULL[type]: type for type in (*COMPLEX, *COMPLEX.values())}
"""Type of formula nodes by the full name of its dtype: complex types and those of their parts."""
_FLOATS = {**dict.fromkeys(half.FORMATS, half), **dict.fromkeys(float8.VALUES, float8)}
"""Modules that convert floats of 16 and 8 bits from and to f32, by short dtype."""
WIDTH = {"i32": 32, "i64": 64}
Reduce = Callable[[str, Array, Node], Array]
"""Type of functions ``reduce(kind, x, node)`` that reduce rows ``x`` [..., N] to [..., 1]. The kind
is "sum", "prod", "max" or "min"; ``node`` is the node of the reduction."""

_PLAIN: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "select": np.where,
    "real": np.real,
    "imag": np.imag,
}


def evaluate(
    roots: Iterable[Node],
    inputs: Mapping[str, Array],
    reduce: Reduce | None = None,
    columns: int = 0,
) -> list[Array]:
    """Evaluates formula nodes ``roots``; returns their values.

    ``inputs``: arrays by input name, in compute types, which broadcast: [..., N] for elements of
    rows, [..., 1] for values of rows. ``reduce``: computes reductions; ``columns``: N.
    """
    values: dict[Node, Array] = {}
    with np.errstate(all="ignore"):
        for node in ordered(roots):
            values[node] = _value(node, [values[a] for a in node.args], inputs, reduce, columns)
    return [values[root] for root in roots]


def _value(
    node: Node, args: list[Array], inputs: Mapping[str, Array], reduce: Reduce | None, columns: int
) -> Array:
    kind, op = KINDS[node.type], node.op
    if op in _PLAIN:
        return np.asarray(_PLAIN[op](*args), kind)
    if op == "complex":  # re + 1j * im would not keep every NaN and zero
        found = np.empty(np.broadcast_shapes(*(x.shape for x in args)), kind)
        found.real, found.imag = args
        return found
    if op == "input":
        return np.asarray(inputs[node.data.name], kind)
    if op == "const":
        return np.asarray(node.data, kind)
    if op == "index":
        return np.arange(columns, dtype=kind)
    if op == "length":
        return np.asarray(columns, kind)
    if op == "fma":
        return np.asarray((fma if node.type == "f32" else f64.fma)(*args), kind)
    if op in ("max", "min"):
        return extreme(op, *args)
    if op in ("shl", "shr"):
        count = args[1] & kind(WIDTH[node.type] - 1)
        return np.asarray((np.left_shift if op == "shl" else np.right_shift)(args[0], count), kind)
    if op == "convert":
        return convert(args[0], node.type)
    if op == "round_to":
        return _wide(_bits(args[0], node.data), node.data)
    if op in ("bits", "float"):
        return np.asarray(np.ascontiguousarray(args[0]).view(kind).reshape(args[0].shape))
    if op == "call":
        return call(node.data, *args)
    assert op == "reduce" and reduce is not None, f"{op} where there are no rows"
    reduced: Array = reduce(node.data, args[0], node)
    return reduced


def call(function: Function, *operands: Array) -> Array:
    """Evaluates a formula's function on arrays of floats or complex numbers, in blocks that fit the
    L2 cache.
    """
    parameters, result = function.formula(_TYPES[operands[0].dtype.name])
    arrays = np.broadcast_arrays(*operands)
    out = np.empty(arrays[0].shape, operands[0].dtype)
    flat = [x.reshape(-1) for x in arrays]
    for start in range(0, out.size, BLOCK):
        part = slice(start, start + BLOCK)
        named = {p.data.name: x[part] for p, x in zip(parameters, flat, strict=True)}
        out.reshape(-1)[part] = evaluate([result], named)[0]
    return out


def extreme(op: str, a: Array, b: Array) -> Array:
    """The larger ("max") or smaller ("min") of a and b; NaN if either is, and +0.0 above -0.0."""
    found = (np.maximum if op == "max" else np.minimum)(a, b)
    if found.dtype.kind == "f":
        zero = np.signbit(a) & np.signbit(b) if op == "max" else np.signbit(a) | np.signbit(b)
        sign = np.where(zero, found.dtype.type(-0.0), found.dtype.type(0))
        found = np.where((a == 0) & (b == 0), sign, found)
    return np.asarray(found)


def convert(x: Array, type: str) -> Array:
    """Converts to ``type``; floats to integers truncate and saturate, and a NaN gives 0."""
    if type in INTEGERS and x.dtype.kind == "f":
        low, high = -(2.0 ** (WIDTH[type] - 1)), 2.0 ** (WIDTH[type] - 1)
        whole = np.trunc(x.astype(np.float64))
        inside = (whole >= low) & (whole < high)
        kept = np.where(inside, whole, 0).astype(KINDS[type])
        limits = np.iinfo(KINDS[type])
        kept = np.where(whole >= high, limits.max, np.where(whole < low, limits.min, kept))
        return np.asarray(kept, KINDS[type])
    return np.asarray(x).astype(KINDS[type])


def widened(array: Any, dtype: str) -> Array:
    """Converts an array of ``dtype`` (short name) to its compute type, exactly."""
    given = np.asarray(array)
    return _wide(given.view(f"u{given.itemsize}") if dtype in _FLOATS else given, dtype)


def _wide(bits: Array, dtype: str) -> Array:
    """Converts elements of ``dtype``, floats of 16 and 8 bits as bits, to their compute type."""
    if dtype in _FLOATS:
        return np.asarray(_FLOATS[dtype].upcast(bits, dtype))
    return np.asarray(bits, KINDS[STORED[dtype]])


def _bits(values: Array, dtype: str) -> Array:
    """Converts values of a compute type to ``dtype``; floats of 16 and 8 bits are bits."""
    if dtype in _FLOATS:
        return np.asarray(_FLOATS[dtype].downcast(values, dtype))
    return np.asarray(values).astype(FULL[dtype], copy=False)


def stored(values: Array, dtype: str) -> Array:
    """Converts values of a compute type to an array of ``dtype`` (short name), rounded once."""
    kind: Any = FULL[dtype]
    if dtype in _FLOATS and dtype != "f16":
        import ml_dtypes

        kind = getattr(ml_dtypes, kind)
    return _bits(values, dtype).view(kind)


def results(
    formula: Formula, inputs: Mapping[str, Array], reduce: Reduce | None = None, columns: int = 0
) -> list[Array]:
    """Evaluates a formula; arrays and results have the dtypes of its inputs and outputs.

    ``reduce``, ``columns``: as in :func:`evaluate`.
    """
    wide = {i.name: widened(inputs[i.name], i.dtype) for i in formula.inputs}
    found = evaluate([o.node for o in formula.outputs], wide, reduce, columns)
    for i, output in enumerate(formula.outputs):
        if output.down:
            assert reduce is not None, "a sum down rows has the order of a row's"
            full = np.broadcast_shapes(found[i].shape, *(x.shape for x in wide.values()))
            rows = np.broadcast_to(found[i], full).reshape(-1, columns)
            found[i] = reduce("sum", rows.T, output.node)[..., 0]
    return [
        inputs[o.node.data.name] if o.moved and o.dtype in _FLOATS else stored(v, o.dtype)
        for v, o in zip(found, formula.outputs, strict=True)
    ]
