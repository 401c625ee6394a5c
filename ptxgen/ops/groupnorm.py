"""Group norms: the moments of groups by an operation over rows, then one pointwise formula.

The moments are those of :func:`ptxgen.layer_norm`, of rows that are groups, and the formula has its
order of roundings: so have results its bits, wherever weights are the same along a group.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.pointwise import FULL, NAMES
from ptxgen.numerics.rowops import REAL, wanted_dtype
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.replay import remembered
from ptxgen.ops.rowwise import run
from ptxgen.ops.run import refuse_gradients
from ptxgen.runtime.arrays import view

_FORMULAS = {
    (False, False): Pointwise(lambda x, m, r: (x - m) * r, "group_norm"),
    (True, False): Pointwise(lambda x, m, r, weight: (x - m) * r * weight, "group_norm"),
    (False, True): Pointwise(lambda x, m, r, bias: (x - m) * r + bias, "group_norm"),
    (True, True): Pointwise(
        lambda x, m, r, weight, bias: (x - m) * r * weight + bias, "group_norm"
    ),
}
"""By whether there is a weight, and a bias."""


@remembered("x", "weight", "bias")
def group_norm(
    x: Any,
    groups: int,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> Any:
    """``(x - mean) * rsqrt(var + eps) * weight + bias`` of each group of ``x`` [N, C, *].

    A group is C / ``groups`` neighbouring channels of one of the N, with all that lies behind them;
    ``mean`` and ``var`` (the mean of ``(x - mean)**2``) are a group's; ``weight`` and ``bias`` are
    [C]. float32, bfloat16, float16 or float64; weights of 16 bits or float32 of any but float64.
    The result has the dtype of x, or ``out_dtype``, "float32" of 16 bits; ``out`` may be ``x``.

    Two launches: moments (contract ``rows/1``), then ``pointwise/1``; rounded once to the dtype.
    Raises ShapeError (C no multiple of ``groups``), DtypeError, OptionError, DeviceError, GradError
    or CompileError. Source: ``ptxgen/ops/groupnorm.py``.
    """
    vectors = {n: v for n, v in (("weight", weight), ("bias", bias)) if v is not None}
    given = {"x": x, **vectors}
    views = {name: view(a, name) for name, a in given.items()}
    refuse_gradients(given)
    wide = check(x, groups, weight, bias)
    natural = views["x"].dtype
    wanted = None if out_dtype is None else wanted_dtype(out_dtype)
    if out is not None:
        target = view(out, "out")
        if target.shape != views["x"].shape:
            raise ShapeError(f"out has shape {list(target.shape)}; takes {list(x.shape)}")
        wanted = wanted or target.dtype
        if target.dtype != wanted:
            raise DtypeError(f"out has dtype {target.dtype}; takes {wanted}")
    wanted = wanted or natural
    if wanted not in (natural, wide):
        names = " or ".join(repr(d) for d in dict.fromkeys((natural, wide)))
        raise DtypeError(f"{'out_dtype' if out is None else 'out'} is {wanted!r}; takes {names}")
    rows = x.reshape(rows_of(x, groups))
    if stream is not None and views["x"].size and view(rows, "x").ptr != views["x"].ptr:
        raise OptionError(
            "stream is given, but x must be copied first, by its framework: pass a contiguous "
            "array, or leave stream= away"
        )
    mean, scale = run("moments")(rows, None, None, stream, (float(eps), None))
    found = scaled(x, mean, scale, weight, bias, groups, wanted, out, stream)
    return found if out is None else out


def check(x: Any, groups: int, weight: Any, bias: Any) -> str:
    """What is computed in. Raises ShapeError, DtypeError or OptionError."""
    if len(x.shape) < 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes [N, C, *]")
    try:
        count = operator.index(groups)
    except TypeError:
        count = 0
    if count < 1:
        raise OptionError(f"groups is {groups!r}; takes a positive integer")
    channels = x.shape[1]
    if channels % count:
        raise ShapeError(f"x has {channels} channels; takes a multiple of groups, {count}")
    own = NAMES.get(dtype_of(x))
    if own not in REAL:
        names = " or ".join(FULL[d] for d in REAL)
        raise DtypeError(f"x has dtype {dtype_of(x)}; takes {names}")
    taken = [FULL[d] for d in REAL if STORED[d] == STORED[own]]
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is None:
            continue
        if tuple(vector.shape) != (channels,):
            raise ShapeError(f"{name} has shape {list(vector.shape)}; takes [C] = [{channels}]")
        if dtype_of(vector) not in taken:
            raise DtypeError(f"{name} has dtype {dtype_of(vector)}; takes {' or '.join(taken)}")
    return FULL[STORED[own]]


def dtype_of(array: Any) -> str:
    """The full name of a dtype, in the words of any framework."""
    return str(array.dtype).removeprefix("torch.")


def rows_of(x: Any, groups: int) -> tuple[int, int]:
    """The shape of ``x`` [N, C, *] whose rows are groups."""
    return x.shape[0] * groups, x.shape[1] // groups * prod(x.shape[2:])


def by_group(x: Any, groups: int) -> Any:
    """A view of ``x`` [N, C, *] as [N, G, C / G, *]."""
    return x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))


def of_groups(rows: Any, x: Any, groups: int) -> Any:
    """A view of what has a number a group, as it broadcasts with :func:`by_group`."""
    return rows.reshape((x.shape[0], groups, *[1] * (len(x.shape) - 1)))


def of_channels(vector: Any, x: Any, groups: int) -> Any:
    """A view of what has a number a channel, as it broadcasts with :func:`by_group`."""
    return vector.reshape((groups, x.shape[1] // groups, *[1] * (len(x.shape) - 2)))


def scaled(
    x: Any,
    mean: Any,
    scale: Any,
    weight: Any,
    bias: Any,
    groups: int,
    out_dtype: str,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """The result, of the moments of groups."""
    vectors = [of_channels(v, x, groups) for v in (weight, bias) if v is not None]
    found = _FORMULAS[weight is not None, bias is not None](
        by_group(x, groups),
        of_groups(mean, x, groups),
        of_groups(scale, x, groups),
        *vectors,
        out=None if out is None else by_group(out, groups),
        out_dtype=out_dtype,
        stream=stream,
    )
    return found.reshape(tuple(x.shape))
