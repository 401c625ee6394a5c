"""Oracles of cross-entropy by segments of logits: contract ``flce/3`` between the products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.numerics import vocab_segments
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formula import STORED, Formula
from ptxgen.numerics.vocab_segments import SEGMENT
from ptxgen.oracle import ops
from ptxgen.oracle.formula import KINDS, evaluate, stored, widened
from ptxgen.oracle.reduction_order import reduce

Array = NDArray[Any]


def logit_segments(
    x: ArrayLike, target: ArrayLike, *, softcap: float | None = None
) -> tuple[Array, Array, Array]:
    """Returns three arrays for logits ``x`` [..., N] in S segments: each segment's maximum [...,
    S], each segment's sum of exponentials relative to that maximum [..., S], both after the
    softcap, and the target's logit [...] before the softcap, 0 if the target is no class.
    """
    array, at = np.asarray(x), np.asarray(target)
    dtype = DTYPES[array.dtype.name]
    wide, n = widened(array, dtype), array.shape[-1]
    count = vocab_segments.segments(n)
    there = np.arange(count * SEGMENT) < n
    padded = np.full((*wide.shape[:-1], count * SEGMENT), -np.inf, wide.dtype)
    padded[..., :n] = wide
    parts = padded.reshape(*wide.shape[:-1], count, SEGMENT)
    numbers = {} if softcap is None else {"softcap": np.asarray(softcap, wide.dtype)}
    top = _value(
        vocab_segments.peak(dtype, softcap is not None), {"x": reduce("max", parts), **numbers}
    )
    shift = np.where(np.isinf(top), 0, top).astype(wide.dtype)
    terms = _value(
        vocab_segments.term(dtype, softcap is not None), {"x": parts, "m": shift, **numbers}
    )
    terms = np.where(there.reshape(count, SEGMENT), terms, 0)
    with np.errstate(all="ignore"):
        sums = terms[..., 0::2] + terms[..., 1::2]
        while sums.shape[-1] > 1:
            half = sums.shape[-1] // 2
            sums = sums[..., :half] + sums[..., half:]
        sums = np.where(top < np.inf, sums, np.nan)
    known = (at >= 0) & (at < n)
    found = np.take_along_axis(wide, np.where(known, at, 0)[..., None], -1)[..., 0]
    hit = np.where(known, found + wide.dtype.type(0), 0).astype(wide.dtype)
    return top[..., 0], sums[..., 0].astype(wide.dtype), hit


def linear_segments(
    x: ArrayLike,
    w: ArrayLike,
    target: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    layout: str = "nk",
    tier: str = "auto",
    softcap: float | None = None,
    arch: str = "sm_90",
) -> tuple[Array, Array, Array]:
    """Returns the results of :func:`logit_segments` for the logits ``x @ W (+ bias)``, which have
    the bits of :func:`ptxgen.reference.linear`.
    """
    z = ops.linear(x, w, bias, layout=layout, tier=tier, arch=arch)
    return logit_segments(z, target, softcap=softcap)


def logit_gradient(
    x: ArrayLike,
    target: ArrayLike,
    top: ArrayLike,
    scale: ArrayLike,
    dy: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
) -> Array:
    """Returns the gradient by each logit of ``x`` [..., N]; 0 where the target is ignored or no
    class.

    Of each row, ``top`` is the largest logit, ``scale`` the factor of ``exp(z - top)`` in the
    gradient, and ``dy`` the gradient by its loss, by default 1.
    """
    array, at = np.asarray(x), np.asarray(target)[..., None]
    dtype, n = DTYPES[array.dtype.name], array.shape[-1]
    wide = KINDS[STORED[dtype]]
    share = np.ones(at.shape, wide) if dy is None else np.asarray(dy, wide)[..., None]
    inputs = {
        "x": widened(array, dtype),
        "top": np.asarray(top)[..., None],
        "scale": np.asarray(scale)[..., None],
        "dy": share,
        "smoothing": np.asarray(label_smoothing, wide),
        "hit": np.arange(n) == at,
    }
    if softcap is not None:
        inputs["softcap"] = np.asarray(softcap, wide)
    g = _value(vocab_segments.gradient(dtype, softcap is not None), inputs, n)
    counts = (at >= 0) & (at < n) & (at != ignore_index)
    return stored(np.where(counts, g, 0).astype(wide), dtype)


def _value(formula: Formula, inputs: dict[str, Array], n: int = 0) -> Array:
    (output,) = formula.outputs
    return evaluate([output.node], inputs, columns=n)[0]
