"""Handlers of ATen's Fourier transforms, for the tables of :mod:`ptxgen.torch.aten`.

PyTorch composes ``torch.fft``, ``torch.stft`` and ``torch.istft`` of them, and so their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ptxgen.numerics.dtype import PARTS
from ptxgen.ops.fft import SERVED, axes_of_transform
from ptxgen.ops.pool import Axis, overlapped
from ptxgen.torch.unserved import UNKNOWN, NotServed, Serve, require_floats

_FORWARD: Final = "backward", "ortho", "forward"
"""Norm of a forward transform, by ATen's ``fft_norm_mode``: none, by sqrt(n), by n."""
_INVERSE: Final = _FORWARD[::-1]


def _transform(
    b: Any,
    x: Any,
    dims: Sequence[int],
    norm: str,
    inverse: bool,
    kind: str,
    length: int | None = None,
) -> Any:
    """Transforms ``x`` along ``dims``. ``kind``: see
    :func:`ptxgen.ops.fft.axes_of_transform`; ``length``: that of the last transform.
    """
    takes = PARTS if kind in ("complex", "half") else SERVED
    if x.dtype not in takes or not dims or 0 in x.shape:
        raise NotServed(UNKNOWN)
    axes = [d % len(x.shape) for d in dims]
    lengths = (*[None] * (len(axes) - 1), length)
    y = b.view_as_real(x) if x.dtype in PARTS else x
    for step in axes_of_transform(x.shape, axes, lengths, kind):
        y = step.of(b, b.packed(y), norm, inverse)
    return y if kind == "half" else b.view_as_complex(y)


def _r2c(b: Any, tier: str, x: Any, dims: Any, norm: int, onesided: bool) -> Any:
    return _transform(b, x, dims, _FORWARD[norm], False, "spectrum" if onesided else "real")


def _c2r(b: Any, tier: str, x: Any, dims: Any, norm: int, length: int) -> Any:
    return _transform(b, x, dims, _INVERSE[norm], True, "half", length)


def _c2c(b: Any, tier: str, x: Any, dims: Any, norm: int, forward: bool) -> Any:
    of = _FORWARD if forward else _INVERSE
    return _transform(b, x, dims, of[norm], not forward, "complex")


def _unfold_backward(
    b: Any, tier: str, dy: Any, sizes: Sequence[int], dim: int, size: int, step: int
) -> Any:
    """Lowers the gradient of ``Tensor.unfold``, which ``istft`` adds frames by: each element adds
    its windows ascending. ``dy`` ``[..., count, ..., size]`` has the windows along ``dim``.
    """
    require_floats(dy)
    dim %= max(len(sizes), 1)
    if 0 in dy.shape or not sizes:
        raise NotServed(UNKNOWN)
    axis = Axis(sizes[dim], dy.shape[dim], size, step)
    windows = b.move(dy, dim, -1)  # [..., size, count]
    return b.contiguous(b.move(overlapped(b, windows, (axis,), dy.dtype), -1, dim))


LOWERED: Final[dict[str, Serve]] = {
    "_fft_r2c": _r2c,
    "_fft_c2r": _c2r,
    "_fft_c2c": _c2c,
    "unfold_backward": _unfold_backward,
}
"""Handlers by operator name, that append steps to a program."""
