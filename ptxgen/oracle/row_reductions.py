"""Oracles of operations over rows: their formulas, reduced in the order of contract ``rows/1``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.dtype import FULL, NAMES, name_of
from ptxgen.numerics.option import AxisNumbers, axes_of
from ptxgen.numerics.row_reductions import BY_PARTS, formula, known
from ptxgen.oracle.formula import results, stored, widened
from ptxgen.oracle.reduction_order import reduce

Array = NDArray[Any]


def compute(name: str, *arrays: ArrayLike | None, out_dtype: Any = None, **numbers: Any) -> Any:
    """Computes operation ``name`` of :mod:`ptxgen.numerics.row_reductions` over the last dimension,
    of ``arrays`` (None if absent) and scalars by name.

    Returns a result, or a tuple of them. Raises DtypeError and ShapeError.
    """
    row = known(name)
    given = dict(zip(row.arrays, (*arrays, *[None] * len(row.arrays)), strict=False))
    found = {n: np.asarray(a) for n, a in given.items() if a is not None}
    dtypes = {}
    for each, array in found.items():
        short = NAMES.get(array.dtype.name)
        if short is None or not array.dtype.isnative:
            raise DtypeError(f"{each} has dtype {array.dtype.name}; takes {', '.join(NAMES)}")
        dtypes[each] = short
    first = next(iter(row.arrays))
    if dtypes[first] not in row.dtypes:
        names = " or ".join(FULL[d] for d in row.dtypes)
        raise DtypeError(f"{first} has dtype {found[first].dtype.name}; takes {names}")
    inferred = row.signature.infer({n: a.shape for n, a in found.items()})
    if inferred.sizes["N"] == 0 and not row.empty:
        raise ShapeError(f"{name} takes at least one element; got rows of none")
    wanted = None if out_dtype is None else NAMES[name_of(out_dtype, "out_dtype", NAMES)]
    options = row.given({n: numbers.get(n, o.default) for n, o in row.numbers.items()})
    outputs = row.outputs(dtypes[first], found, wanted)
    what = formula(row.variant(dtypes, outputs, options))
    wide = FULL[row.computed(dtypes[first])]
    inputs: dict[str, Any] = {}
    for each, kind in row.arrays.items():
        if each in found:
            inputs[each] = found[each][..., None] if kind == "row" else found[each]
    for each, value in options.items():
        inputs[each] = np.asarray(value, FULL.get(row.numbers[each].dtype, wide))
    values = results(what, inputs, reduce, inferred.sizes["N"])
    shaped = []
    pairs = zip(inferred.results, row.results, strict=True)
    shapes = [shape for shape, name in pairs if name in row.present(found)]
    for value, shape, output in zip(values, shapes, what.outputs, strict=True):
        full = (*shape, 1) if output.level == "row" else shape
        shaped.append(np.array(np.broadcast_to(value, full).reshape(shape), order="C"))
    return shaped[0] if len(shaped) == 1 else tuple(shaped)


# -- as users call them -----------------------------------------------------------------------
Axis = int | Sequence[int] | None


def _reduction(name: str) -> Callable[..., Any]:
    def oracle(
        x: ArrayLike,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out_dtype: Any = None,
        **numbers: Any,
    ) -> Any:
        array = np.asarray(x)
        if array.dtype.kind == "c" and name in BY_PARTS and out_dtype in (None, array.dtype):
            how: dict[str, Any] = {"keepdims": keepdims, **numbers}
            parts = oracle(array.real, axis, **how), oracle(array.imag, axis, **how)
            return np.stack(parts, -1).view(array.dtype)[..., 0]
        axes = axes_of(AxisNumbers().read("axis", axis), array)
        lead = [i for i in range(array.ndim) if i not in axes]
        moved = array.transpose(*lead, *axes)
        width = prod(array.shape[i] for i in axes)
        rows = moved.reshape(*(array.shape[i] for i in lead), width)
        found = compute(name, rows, out_dtype=out_dtype, **numbers)
        if not keepdims:
            return found
        return found.reshape([1 if i in axes else n for i, n in enumerate(array.shape)])

    return _named(oracle, name)


def _along(name: str) -> Callable[..., Any]:
    def oracle(
        x: ArrayLike, axis: int = -1, *, lengths: ArrayLike | None = None, out_dtype: Any = None
    ) -> Any:
        moved = np.moveaxis(np.asarray(x), axis, -1)
        each = () if lengths is None else (np.broadcast_to(lengths, moved.shape[:-1]),)
        return np.moveaxis(compute(name, moved, *each, out_dtype=out_dtype), -1, axis)

    return _named(oracle, name)


def _named(oracle: Callable[..., Any], name: str) -> Callable[..., Any]:
    oracle.__name__ = oracle.__qualname__ = name
    oracle.__doc__ = f"NumPy oracle of :func:`ptxgen.{name}`, bit for bit."
    return oracle


def cross_entropy(
    x: ArrayLike, target: ArrayLike, *, reduction: str = "mean", **numbers: Any
) -> Any:
    """Cross-entropy, with the arguments and bits of :func:`ptxgen.cross_entropy`."""
    losses = compute("cross_entropy", x, target, **numbers)
    ignored = {k: v for k, v in numbers.items() if k == "ignore_index"}
    return reduced(losses, target, reduction, **ignored)


def reduced(losses: Array, target: ArrayLike, reduction: str, **ignored: Any) -> Any:
    """Returns the rows' losses ("none"), their "sum", or their "mean" over targets not ignored.

    ``ignored``: the option ``ignore_index``, if given.
    """
    if reduction == "none":
        return losses
    if reduction == "sum":
        return compute("sum", losses.reshape(-1))
    return compute("mean_loss", losses.reshape(-1), np.asarray(target).reshape(-1), **ignored)


def group_norm(
    x: ArrayLike,
    groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-5,
    out_dtype: Any = None,
) -> Any:
    """Layer norm of each group of channels, then weight and bias of each channel, with the bits of
    :func:`ptxgen.group_norm`.
    """
    array = np.asarray(x)
    if array.ndim < 2 or groups < 1 or array.shape[1] % groups:
        raise ShapeError(
            f"x has shape {list(array.shape)}; takes [N, C, *], C a multiple of groups"
        )
    count, channels, *spatial = array.shape
    dtype = array.dtype.name if out_dtype is None else name_of(out_dtype, "out_dtype", NAMES)
    rows = array.reshape(count * groups, channels // groups * prod(spatial))
    wide = {"float64": "float64"}.get(array.dtype.name, "float32")
    found = compute("layer_norm", rows, eps=eps, out_dtype=wide).reshape(array.shape)
    for operate, vector in ((np.multiply, weight), (np.add, bias)):
        if vector is not None:
            given = np.asarray(vector)
            numbers = widened(given, NAMES[given.dtype.name])
            with np.errstate(all="ignore"):
                found = operate(found, numbers.reshape(channels, *[1] * len(spatial)))
    return stored(found, NAMES[dtype])


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin", "argmax", "argmin", "var", "std")
ORACLES: dict[str, Callable[..., Any]] = {
    **{name: _reduction(name) for name in REDUCTIONS},
    **{name: _along(name) for name in ("softmax", "log_softmax")},
    "cross_entropy": cross_entropy,
    "group_norm": group_norm,
}
"""Oracles of the public operations over rows, by name."""
