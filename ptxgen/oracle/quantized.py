"""Oracles of products with quantized weights: dense oracles on the dequantized weight."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.dtype import DTYPES, name_of
from ptxgen.numerics.quantized import ACCUMULATE, ACCUMULATED, DGRAD, LINEAR
from ptxgen.numerics.weight_format import ARRAYS, SCALE_VALUES, WeightFormat
from ptxgen.oracle import grouped, ops
from ptxgen.oracle.activation import activate, check_activation
from ptxgen.oracle.f32 import F32, add
from ptxgen.oracle.gather_scatter import gather
from ptxgen.oracle.half import downcast

Array = NDArray[Any]


class Weight(Protocol):
    """Interface of a quantized weight [n, k]: its format, and its arrays (None for absent ones)."""

    @property
    def format(self) -> WeightFormat: ...
    @property
    def data(self) -> Any: ...
    @property
    def scales(self) -> Any: ...
    @property
    def offsets(self) -> Any: ...
    @property
    def outer(self) -> Any: ...
    @property
    def groups(self) -> Any: ...
    @property
    def n(self) -> int: ...
    @property
    def k(self) -> int: ...


def dequantize(q: Weight, dtype: Any = "float32") -> Array:
    """Returns the weight ``[N, K]`` in f32, or rounded once more to a 16-bit ``dtype`` (bfloat16 of
    ml_dtypes).
    """
    row = q.format
    bits = np.unpackbits(np.asarray(q.data, np.uint8).reshape(-1), bitorder="little")
    codes = bits.reshape(-1, row.bits).astype(np.int64) @ (1 << np.arange(row.bits))
    code = np.array(row.values, np.float32)[codes].reshape(q.n, q.k)
    each: dict[str, Array] = {}
    for array, (kind, block, names) in row.beside.items():
        stored, table = np.asarray(getattr(q, array)), SCALE_VALUES.get(kind)
        wide = stored.astype(np.float32) if table is None else np.array(table, np.float32)[stored]
        grouped = q.groups is not None and array != "outer"
        at = np.asarray(q.groups) if grouped else np.arange(q.k) // block
        for i, name in enumerate(names):
            each[name] = wide.reshape(q.n, q.k // block, len(names))[:, at, i]
    with np.errstate(all="ignore"):
        wide = np.asarray(row.decode(code, **each), np.float32)
    wanted = name_of(dtype)
    if wanted == "float32":
        return wide
    if wanted == "float64":
        raise DtypeError("dtype is 'float64'; takes 'float32', 'bfloat16', 'float16'")
    return downcast(wide, DTYPES[wanted]).view(np.dtype(wanted))


def quantized_linear(
    x: ArrayLike,
    q: Weight,
    bias: ArrayLike | None = None,
    *,
    activation: str | None = None,
    accumulate: str = "auto",
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``activation(x @ W.T + bias)``: ``[..., K]`` and a weight of N rows to ``[..., N]``.

    Arguments and errors are those of :func:`ptxgen.reference.linear`; ``accumulate`` is "tc",
    "simt" or "f64" (:mod:`ptxgen.numerics.quantized`), by default "tc" for 16 bits and "simt" for
    float32.
    """
    x = np.asarray(x)
    if _tier(x, accumulate) != "f64":
        weight = dequantize(q, x.dtype)
        more = {"activation": activation, "out_dtype": out_dtype, "arch": arch}
        return ops.linear(x, weight, bias, layout="nk", **more)
    activation = check_activation(activation)
    _only_f32("out_dtype", out_dtype)
    given = {"x": x.shape, "data": (q.n, q.format.sizes(q.k)["data"])}
    given.update({} if bias is None else {"bias": np.shape(bias)})
    (shape,) = LINEAR.infer(given, q.format.name).results
    total = _product(x, dequantize(q).T).reshape(shape)
    if bias is not None:
        _only_f32("bias", np.asarray(bias).dtype)
        total = add(total, bias)
    return activate(activation, total) if activation != "none" else total


def quantized_linear_dgrad(
    dy: ArrayLike,
    q: Weight,
    *,
    accumulate: str = "auto",
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Array:
    """``dx = dy @ W``: ``[..., N]`` to ``[..., K]``; arguments as in :func:`quantized_linear`."""
    dy = np.asarray(dy)
    if _tier(dy, accumulate) != "f64":
        weight = dequantize(q, dy.dtype)
        return ops.linear_dgrad(dy, weight, layout="nk", out_dtype=out_dtype, arch=arch)
    _only_f32("out_dtype", out_dtype)
    given = {"dy": dy.shape, "data": (q.n, q.format.sizes(q.k)["data"])}
    (shape,) = DGRAD.infer(given, q.format.name).results
    return _product(dy, dequantize(q)).reshape(shape)


def quantized_embedding(indices: ArrayLike, q: Weight, *, dtype: Any = "float32") -> Array:
    """Rows ``indices`` of the dequantized weight, ``[..., K]``, with the bits of
    :func:`ptxgen.quantized.embedding`: a row of which no array has an element has zeros for codes,
    scales and offsets.
    """
    which = np.asarray(indices)
    rows = {
        name: gather(np.asarray(getattr(q, name)).reshape(q.n, -1), which.reshape(-1))
        for name in q.format.dtypes
        if name != "groups"
    }
    own = {name: rows.get(name) for name in ARRAYS} | {"groups": q.groups}
    taken = SimpleNamespace(format=q.format, n=which.size, k=q.k, **own)
    return dequantize(taken, dtype).reshape(*which.shape, q.k)


def quantized_grouped_linear(
    x: ArrayLike, q: Weight, ends: ArrayLike, bias: ArrayLike | None = None, **how: Any
) -> Array:
    """``activation(x @ W[g].T + bias[g])`` for the rows of each group g: arguments and bits of
    :func:`ptxgen.quantized.grouped_linear`.
    """
    rows, ends = np.asarray(x), np.asarray(ends)
    experts = ends.shape[0] if ends.ndim == 1 else 0
    if not experts or q.n % experts:
        raise ShapeError(f"q has {q.n} rows; takes as many for each of the {experts} groups")
    weights = dequantize(q, rows.dtype).reshape(experts, q.n // experts, q.k)
    return grouped.grouped_linear(rows, weights, ends, bias, layout="nk", **how)


def _tier(x: Array, accumulate: str) -> str:
    ACCUMULATE.read("accumulate", accumulate)
    if x.dtype.name not in ACCUMULATED:
        raise DtypeError(f"got {x.dtype}; takes {' or '.join(ACCUMULATED)}")
    choices = ACCUMULATED[x.dtype.name]
    if accumulate not in ("auto", *choices):
        raise OptionError(f"accumulate is {accumulate!r}; {x.dtype} takes {', '.join(choices)}")
    return choices[0] if accumulate == "auto" else accumulate


def _only_f32(what: str, dtype: Any) -> None:
    if dtype is not None and (found := name_of(dtype, what)) != "float32":
        raise DtypeError(f"{what} is {found!r}; takes 'float32'")


def _product(x: Array, weight: F32) -> F32:
    """``x @ weight`` by contract ``wide``: exact products, f64 sums with k ascending, then f32."""
    left, right = ops.rows(x).astype(np.float64), weight.astype(np.float64)
    acc = np.zeros((len(left), right.shape[1]))
    with np.errstate(all="ignore"):
        for k in range(len(right)):
            acc += left[:, k, None] * right[k]
        return (acc + 0.0).astype(np.float32)
