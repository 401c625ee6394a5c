"""Oracle of fused linear cross-entropy: contract ``flce/3``, by the oracles of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.errors import OptionError
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, NAMES, name_of
from ptxgen.numerics.flce import REDUCTIONS, chunk_of
from ptxgen.oracle import ops
from ptxgen.oracle.formula import stored, widened
from ptxgen.oracle.row_reductions import compute, reduced
from ptxgen.oracle.vocab_segments import logit_gradient, logit_segments

Array = NDArray[Any]


def linear_cross_entropy(
    x: ArrayLike,
    w: ArrayLike,
    target: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    layout: str = "nk",
    tier: str = "auto",
    chunk: int | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
) -> Any:
    """Cross-entropy of ``x @ W (+ bias)``, with the bits of :func:`ptxgen.linear_cross_entropy`,
    whose arguments it takes; ``chunk`` is ignored.
    """
    z = ops.linear(x, w, bias, layout=layout, tier=tier, arch=arch)
    losses, *_ = joined(
        z,
        target,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        softcap=softcap,
        z_loss=z_loss,
    )
    loss = _reduced(losses, np.asarray(target), reduction, ignore_index)
    return loss if out_dtype is None else stored(loss, NAMES[name_of(out_dtype, "out_dtype")])


def linear_cross_entropy_grad(
    x: ArrayLike,
    w: ArrayLike,
    target: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    loss: Any = None,
    dx: Any = True,
    dw: Any = True,
    dbias: Any = None,
    dy: ArrayLike | None = None,
    accumulate: bool = False,
    reduction: str = "mean",
    ignore_index: int = -100,
    layout: str = "nk",
    tier: str = "auto",
    chunk: int | None = None,
    out_dtype: Any = None,
    arch: str = "sm_90",
    **numbers: Any,
) -> tuple[Any, Any, Any, Any]:
    """Returns loss, dx, dw and dbias with the bits of :func:`ptxgen.linear_cross_entropy_grad`,
    whose arguments it takes.

    An array passed as ``loss``, ``dx``, ``dw`` or ``dbias`` sets the dtype of that result; with
    ``accumulate`` the arrays passed as dw and dbias are added to the results. No array is written.
    """
    wide = "float64" if np.asarray(x).dtype == np.float64 else "float32"
    rows, targets = ops.rows(np.asarray(x)), np.asarray(target).reshape(-1)
    weight = np.asarray(w)
    how: dict[str, Any] = {"layout": layout, "tier": tier, "arch": arch}
    z = ops.linear(rows, weight, bias, **how)
    of_mean = reduction == "mean"
    if dy is not None and np.ndim(dy) and np.size(dy) == targets.size and reduction == "none":
        share: Any = np.asarray(dy).reshape(-1)
    else:
        share = _loss_gradients(targets, dy, ignore_index, wide, of_mean)
    numbers["ignore_index"] = ignore_index
    losses, peak, scale = joined(z, targets, **numbers)
    numbers.pop("z_loss", None)
    g = logit_gradient(z, targets, peak, scale, share, **numbers)
    total = _reduced(losses, targets, reduction, ignore_index)
    total = total.reshape(np.shape(target)) if reduction == "none" else total
    wanted = _dtype(loss) if out_dtype is None else out_dtype
    if wanted is not None:
        total = stored(total, NAMES[name_of(wanted, "out_dtype")])
    found: list[Any] = [total, None, None, None]
    if dx is not False:
        of_x = ops.linear_dgrad(g, weight, out_dtype=_dtype(dx), **how)
        found[1] = of_x.reshape(np.shape(x))
    if dw is not False:
        dtype = _dtype(dw) or weight.dtype
        old = dw if accumulate and isinstance(dw, np.ndarray) else None
        (m, k), n = rows.shape, g.shape[1]
        step = chunk_of(m, n, k, ITEMSIZE[DTYPES[rows.dtype.name]], True, chunk)
        for i in range(0, max(m, 1), step):
            part = rows[i : i + step], g[i : i + step]
            old = ops.linear_wgrad(*part, out_old=old, out_dtype=dtype, chain=True, **how)
        found[2] = old
    if dbias is not False and bias is not None:
        found[3] = _bias_gradient(g, np.asarray(bias).dtype, dbias, accumulate, wide)
    elif dbias not in (None, False):
        raise OptionError("dbias is wanted, but there is no bias; leave it away")
    return tuple(found)


def joined(
    z: Array,
    target: ArrayLike,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
) -> Any:
    """Returns each row's loss, its largest logit m (after the softcap), and the factor of
    ``exp(z - m)`` in its gradient, for logits ``z`` [M, N]. The options are those of
    :func:`linear_cross_entropy`.
    """
    found = logit_segments(z, target, softcap=softcap)
    return compute(
        "cross_entropy_joined",
        *found,
        target,
        compute("capped_mean", z, softcap=softcap) if label_smoothing else None,
        ignore_index=ignore_index,
        classes=z.shape[-1],
        label_smoothing=label_smoothing,
        softcap=softcap,
        z_loss=z_loss,
    )


def _bias_gradient(g: Array, own: Any, memory: Any, accumulate: bool, wide: str) -> Array:
    """Returns the gradient by the bias [N]: the sum of ``g`` [M, N] over rows, in one chain.

    ``memory``: the argument ``dbias``; an array sets the result's dtype, and is added if
    ``accumulate``. ``own``: the dtype otherwise; ``wide``: the accumulator's dtype.
    """
    given = isinstance(memory, np.ndarray)
    dtype = memory.dtype if given else own
    adds = accumulate and given
    begin = memory.reshape(-1, 1) if adds and dtype == wide else None
    ones = np.ones((g.shape[0], 1), g.dtype)
    sums = ops.linear_wgrad(ones, g, layout="nk", tier="simt", out_old=begin, chain=True)[:, 0]
    if adds and dtype != wide:
        with np.errstate(all="ignore"):
            sums = widened(memory, NAMES[dtype.name]) + sums
    return stored(sums, NAMES[dtype.name])


def _loss_gradients(
    targets: Array, dy: Any, ignore_index: int, wide: str, of_mean: bool
) -> Array | None:
    """Returns the gradient by each row's loss [M], in dtype ``wide``; None if all are 1.

    ``targets`` [M]: the rows' classes, of which ``ignore_index`` gets 0. ``dy``: gradient by the
    sum of the losses or (``of_mean``) their mean; None means 1.
    """
    number = dy is None or not hasattr(dy, "__setitem__")
    times = 1.0 if dy is None or not number else float(dy)
    if number and not of_mean and times == 1:
        return None
    name = f"{'mean' if of_mean else 'sum'}_shares_{NAMES[wide]}"
    by = None if number else np.asarray(dy).reshape(())
    found: Array = compute(name, targets, by, ignore_index=ignore_index, times=times)
    return found


def _dtype(memory: Any) -> Any:
    return memory.dtype if isinstance(memory, np.ndarray) else None


def _reduced(losses: Array, target: Array, reduction: str, ignore_index: int) -> Any:
    if reduction not in REDUCTIONS:
        raise OptionError(f"reduction is {reduction!r}; takes {', '.join(map(repr, REDUCTIONS))}")
    return reduced(losses, target, reduction, ignore_index=ignore_index)
