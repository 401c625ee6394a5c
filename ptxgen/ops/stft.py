"""Short-time Fourier transforms: ``stft`` of overlapping frames, and ``istft``, its inverse.

They are programs of a copy, a product, transforms and a sum of windows (:mod:`ptxgen.ops.pool`).
Signals of complex numbers are framed as two rows of reals.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.dtype import PARTS
from ptxgen.numerics.fft import LENGTH_MAX
from ptxgen.numerics.option import Bool, Choice, Flag, Integer
from ptxgen.numerics.signature import Signature
from ptxgen.ops.fft import SERVED, Along
from ptxgen.ops.pool import NUMBER_MAX, Axis, overlapped
from ptxgen.ops.views import axis_of, check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.runtime.strided import Ints

Size = Annotated[int, Integer(1, LENGTH_MAX)]
Part = Annotated[int | None, Integer(1, LENGTH_MAX)]
Samples = Annotated[int | None, Integer(1, NUMBER_MAX)]
Width = Annotated[int, Integer(0, NUMBER_MAX)]
PADDINGS = ("constant", "reflect", "replicate", "circular")
PadMode = Annotated[str, Choice(*PADDINGS)]
Sided = Annotated[bool | None, Flag()]
STFT = Signature(
    "stft",
    ("x", "window"),
    ("out",),
    {"": {"x": "... L", "window": "W", "out": "... K T"}},
    ("M", "L", "N"),
    optional=frozenset({"window"}),
)
"""Shapes of :func:`stft`; N is ``n_fft``, by which and the other options W, K and T follow."""
LEAST_ENVELOPE = 1e-11
"""Least sum of squared windows at a sample that ``istft`` divides by, as in PyTorch."""


# -- padding ------------------------------------------------------------------------------------
@op(vjp=lambda b, at: {"x": b.flip(at.dys[0])}, public=False, backwards=True)
def flip(b: ProgramBuilder, x: Buffer) -> Buffer:
    """Copies ``x`` with the last axis reversed.

    Shapes
        ``x`` with at least one axis, and so the result.
    Dtypes
        Those of :func:`ptxgen.pointwise`.
    Order
        Nothing is computed. The gradient is reversed, too.
    Errors
        ShapeError, DtypeError, DeviceError or CompileError, before anything is launched.
    """
    axis_of("x", x, -1)
    if b.abstract or not x.size:
        return b.result(x.shape, x.dtype)
    return b.copied(b.narrow(x, -1, x.shape[-1] - 1, x.shape[-1], -1))


def _unpadded(b: Builder, dy: Any, size: int, width: int, mode: str) -> Any:
    """Returns the gradient of the ``size`` elements that ``pad_ends`` padded:
    ``(inner + left) + right``, those of both ends laid on the elements that they copied.
    """
    found = b.narrow(dy, -1, width, size)
    if mode == "constant" or not width:
        return found
    ends = [b.narrow(dy, -1, start, width) for start in (0, width + size)]
    starts = {"reflect": (1, size - 1 - width), "circular": (size - width, 0)}
    if mode == "reflect":
        ends = [b.flip(end) for end in ends]
    elif mode == "replicate":
        ends = [b.sum(end, axis=-1, keepdims=True) for end in ends]
    for end, start in zip(ends, starts.get(mode, (0, size - 1)), strict=True):
        found = b.add(found, _laid(b, end, start, size))
    return found


def _laid(b: Builder, x: Any, start: int, size: int) -> Any:
    """Returns ``x`` with zeros along the last axis: ``start`` before it, and up to ``size``."""
    rest = size - start - x.shape[-1]
    return b.pad(x, (*[(0, 0)] * (len(x.shape) - 1), (start, rest))) if start or rest else x


def _check_padding(name: str, size: int, width: int, mode: str) -> None:
    least = {"constant": 0, "reflect": width + 1, "replicate": 1, "circular": width}[mode]
    if width and size < least:
        raise ShapeError(
            f"{name} has {size} elements along its last axis; takes at least {least} to pad "
            f"{width} at both ends, mode {mode!r}"
        )


def _pad_ends_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``pad_ends``: the inner one, and those of both ends, added."""
    how = at.options
    return {"x": _unpadded(b, at.dys[0], at["x"].shape[-1], how["width"], how["mode"])}


@op(vjp=_pad_ends_vjp, public=False, backwards=True)
def pad_ends(b: ProgramBuilder, x: Buffer, width: Width, mode: PadMode = "reflect") -> Buffer:
    """Pads the last axis with ``width`` elements at both ends (``torch.nn.functional.pad``).

    Shapes
        ``x`` ``[..., L]``; the result ``[..., L + 2 * width]``.
    Dtypes
        float32 or float64, and so the result.
    Order
        Nothing is computed. The gradient adds those of both ends to the inner one, the first end
        first.
    Options
        ``mode``: "constant" (zeros), "reflect" (without the first and last element), "replicate" or
        "circular".
    Errors
        ShapeError for an axis that is too short, DtypeError, OptionError, DeviceError or
        CompileError, before anything is launched.
    """
    check_dtype("x", x.dtype, SERVED)
    axis_of("x", x, -1)
    size = x.shape[-1]
    _check_padding("x", size, width, mode)
    if b.abstract or not x.size:
        return b.result((*x.shape[:-1], size + 2 * width), x.dtype)
    if not width:
        return x
    if mode == "constant":
        padded: Buffer = _laid(b, x, width, size + 2 * width)
        return padded
    if mode == "reflect":
        ends = b.narrow(x, -1, width, width, -1), b.narrow(x, -1, size - 2, width, -1)
    elif mode == "circular":
        ends = b.narrow(x, -1, size - width, width), b.narrow(x, -1, 0, width)
    else:
        wide = (*x.shape[:-1], width)
        first, last = (b.narrow(x, -1, at, 1) for at in (0, size - 1))
        ends = b.expand(first, wide), b.expand(last, wide)
    found: Buffer = b.concat([ends[0], x, ends[1]], len(x.shape) - 1)
    return found


# -- frames ---------------------------------------------------------------------------------------
def _summed(b: Builder, x: Any, y: Any) -> Any:
    """Returns ``x * y`` added over all frames: the gradient of a window."""
    rows = prod(x.shape[:-1])
    return b.sum(b.reshape(b.packed(b.mul(x, y)), (rows, x.shape[-1])), axis=0)


def _frames_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``frames``: ``overlap_add`` of ``dy``, and sums of products."""
    x, window, (dy,) = at["x"], at.arguments.get("window"), at.dys
    size, hop = at.options["size"], at.options["hop"]
    found: Gradients = {}
    if "x" in at.needs:
        found["x"] = _laid(b, b.overlap_add(dy, window, hop=hop), 0, x.shape[-1])
    if "window" in at.needs:
        own = b.frames(x, size=size, hop=hop)
        found["window"] = _summed(b, own, dy)
    return found


@op(vjp=_frames_vjp, public=False)
def frames(
    b: ProgramBuilder, x: Buffer, window: Buffer | None = None, *, size: Size, hop: Size
) -> Buffer:
    """``y[..., t, j] = x[..., t * hop + j] * window[j]``: frames of a signal.

    Shapes
        ``x`` ``[..., L]``; ``window`` ``[size]``; the result ``[..., T, size]`` with
        ``T = (L - size) // hop + 1``.
    Dtypes
        float32 or float64, and so the result.
    Order
        One product an element, without ``window`` a copy. The gradient is ``overlap_add``.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError or CompileError, before anything is
        launched.
    """
    check_dtype("x", x.dtype, SERVED)
    axis_of("x", x, -1)
    if x.shape[-1] < size:
        raise ShapeError(f"x has {x.shape[-1]} samples; takes at least {size}, those of a frame")
    count = (x.shape[-1] - size) // hop + 1
    shape = *x.shape[:-1], count, size
    if b.abstract or not x.size:
        return b.result(shape, x.dtype)
    step = x.strides[-1]
    seen = x.laid(shape, (*x.strides[:-1], step * hop, step))
    found: Buffer = b.copied(seen) if window is None else b.mul(seen, window)
    return found


def _overlap_add_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``overlap_add``: ``frames`` of ``dy``, and sums of products."""
    x, window, (dy,), hop = at["x"], at.arguments.get("window"), at.dys, at.options["hop"]
    how = {"size": x.shape[-1], "hop": hop}
    found: Gradients = {}
    if "x" in at.needs:
        found["x"] = b.frames(dy, window, **how)
    if "window" in at.needs:
        own = b.frames(dy, **how)
        found["window"] = _summed(b, x, own)
    return found


@op(vjp=_overlap_add_vjp, public=False)
def overlap_add(b: ProgramBuilder, x: Buffer, window: Buffer | None = None, *, hop: Size) -> Buffer:
    """``y[..., i] = sum(x[..., t, j] * window[j])`` over the frames t with ``t * hop + j = i``.

    Shapes
        ``x`` ``[..., T, n]``; ``window`` ``[n]``; the result ``[..., n + (T - 1) * hop]``.
    Dtypes
        float32 or float64, and so the result.
    Order
        That of :func:`ptxgen.col2im`: a sample adds its frames ascending, the products rounded
        before. No atomics.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError or CompileError, before anything is
        launched.
    """
    check_dtype("x", x.dtype, SERVED)
    if len(x.shape) < 2 or not x.shape[-1] or not x.shape[-2]:
        raise ShapeError(f"x has shape {list(x.shape)}; takes frames [..., T, n], at least one")
    *lead, count, size = x.shape
    total = size + (count - 1) * hop
    if b.abstract or not x.size:
        return b.result((*lead, total), x.dtype)
    if window is not None:
        x = b.mul(x, window)
    axis = Axis(total, count, size, hop)
    found: Buffer = b.contiguous(overlapped(b, b.transpose(x), (axis,), x.dtype))
    return found


# -- options --------------------------------------------------------------------------------------
def _lengths(n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    """Returns the hop and the length of the window, by default ``n_fft // 4`` and ``n_fft``."""
    hop = max(n_fft // 4, 1) if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if length > n_fft:
        raise OptionError(f"win_length is {length}; takes 1 .. {n_fft}, n_fft")
    return hop, length


def _check_window(window: Buffer | None, length: int, dtype: str) -> None:
    if window is None:
        return
    check_dtype("window", window.dtype, (dtype,))
    if window.shape != (length,):
        raise ShapeError(f"window has shape {list(window.shape)}; takes [{length}], win_length")


def _wide_window(b: Builder, window: Any, n_fft: int, length: int, like: Any) -> Any:
    """Returns the window of ``n_fft`` elements: ``window``, or ones, with zeros at both ends. It is
    None for ones without zeros.
    """
    if length == n_fft:
        return window
    if window is None:
        window = b.filled((length,), b.dtype(like), 1, like)
    left = (n_fft - length) // 2
    return b.pad(window, ((left, n_fft - length - left),))


def _window_gradient(b: Builder, wide: Any, n_fft: int, length: int) -> Any:
    return b.narrow(wide, 0, (n_fft - length) // 2, length)


def _rows(b: Builder, x: Any) -> Any:
    """Returns reals ``[..., L]`` as they are, complex numbers as ``[..., 2, L]``."""
    return b.move(b.view_as_real(x), -1, -2) if b.dtype(x) in PARTS else x


def _norm(normalized: bool) -> str:
    return "ortho" if normalized else "backward"


# -- stft -----------------------------------------------------------------------------------------
def check_signal(name: str, x: Buffer, window: Buffer | None, how: Any) -> int:
    """Returns the number of frames of signal ``x``, argument ``name``. Raises ShapeError,
    DtypeError or OptionError for a signal, a window or lengths that do not fit. ``how``: options
    of :func:`stft`.
    """
    axis_of(name, x, -1)
    n_fft, size = how["n_fft"], x.shape[-1]
    hop, length = _lengths(n_fft, how["hop_length"], how["win_length"])
    _check_window(window, length, PARTS.get(x.dtype, x.dtype))
    width = n_fft // 2 if how["center"] else 0
    _check_padding(name, size, width, how["pad_mode"])
    if size + 2 * width < n_fft:
        padded = f", {size + 2 * width} with padding" if width else ""
        raise ShapeError(f"{name} has {size} samples{padded}; takes at least {n_fft}, n_fft")
    return int((size + 2 * width - n_fft) // hop + 1)


def stft_along(n_fft: int, rank: int, real: bool, onesided: bool) -> Along:
    """Returns the transform of frames ``[..., T, n_fft]`` with ``rank`` dimensions."""
    count = n_fft // 2 + 1 if onesided else n_fft
    return Along(rank - 1, n_fft, n_fft, count, "real" if real else "pairs")


def stft_pairs(b: Any, x: Any, window: Any, how: Any) -> Any:
    """Returns the spectra of a signal ``[..., L]`` as pairs ``[..., T, bins, 2]``. ``how``: the
    options of :func:`stft`, ``onesided`` a bool.
    """
    n_fft, real = how["n_fft"], b.dtype(x) not in PARTS
    hop, length = _lengths(n_fft, how["hop_length"], how["win_length"])
    wide = _wide_window(b, window, n_fft, length, _rows(b, x))
    y = _padded(b, x, how)
    y = b.frames(y, wide, size=n_fft, hop=hop)
    if not real:
        y = b.contiguous(b.move(y, -3, -1))
    rank = len(y.shape) - (not real)
    along = stft_along(n_fft, rank, real, how["onesided"])
    return along.of(b, y, _norm(how["normalized"]), False)


def _padded(b: Any, x: Any, how: Any) -> Any:
    rows = _rows(b, x)
    return b.pad_ends(rows, how["n_fft"] // 2, how["pad_mode"]) if how["center"] else rows


def stft_gradients(
    b: Builder, x: Any, window: Any, how: Any, dpairs: Any, needs: tuple[bool, bool]
) -> tuple[Any, Any]:
    """Returns the gradients of signal and window by that of :func:`stft_pairs`; None for one that
    is not needed (``needs``).
    """
    n_fft, real = how["n_fft"], b.dtype(x) not in PARTS
    hop, length = _lengths(n_fft, how["hop_length"], how["win_length"])
    along = stft_along(n_fft, len(dpairs.shape) - 1, real, how["onesided"])
    dy = along.adjoint(b, dpairs, _norm(how["normalized"]), False)
    dy = b.packed(dy if real else b.move(dy, -1, -3))
    dx = dwindow = None
    if needs[0]:
        size, width = x.shape[-1], n_fft // 2 if how["center"] else 0
        added = b.overlap_add(dy, _wide_window(b, window, n_fft, length, dy), hop=hop)
        dx = _unpadded(b, _laid(b, added, 0, size + 2 * width), size, width, how["pad_mode"])
        dx = dx if real else b.view_as_complex(b.packed(b.move(dx, -2, -1)))
    if needs[1]:
        own = b.frames(_padded(b, x, how), size=n_fft, hop=hop)
        dwindow = _window_gradient(b, _summed(b, own, dy), n_fft, length)
    return dx, dwindow


def _onesided(onesided: bool | None, real: bool) -> bool:
    if onesided and not real:
        raise OptionError("onesided is True; takes False for complex x, whose spectra are whole")
    return real if onesided is None else onesided


def _stft_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``stft``: the adjoint transforms, added up by ``overlap_add``."""
    x, (dy,) = at["x"], at.dys
    real = b.dtype(x) not in PARTS
    how = {**at.options, "onesided": _onesided(at.options["onesided"], real)}
    pairs = b.view_as_real(dy) if how["return_complex"] else dy
    dpairs, names = b.packed(b.move(pairs, -2, -3)), ("x", "window")
    needs = "x" in at.needs, "window" in at.needs
    found = stft_gradients(b, x, at.arguments.get("window"), how, dpairs, needs)
    return {n: dx for n, dx in zip(names, found, strict=True) if dx is not None}


@op(forms=STFT, any_rank=True, sizes={"n_fft": "N"}, vjp=_stft_vjp)
def stft(
    b: ProgramBuilder,
    x: Buffer,
    n_fft: Size,
    hop_length: Part = None,
    win_length: Part = None,
    window: Buffer | None = None,
    center: Bool = True,
    pad_mode: PadMode = "reflect",
    normalized: Bool = False,
    onesided: Sided = None,
    return_complex: Bool = True,
) -> Buffer:
    """Short-time Fourier transform of signals, as ``torch.stft``:
    ``X[k, t] = sum(window[j] * x[t * hop_length + j] * exp(-2πi j k / n_fft))``.

    Shapes
        ``x`` ``[..., L]``, ``window`` ``[win_length]``; the result ``[..., K, T]``: K is
        ``n_fft // 2 + 1``, or ``n_fft`` unless ``onesided``; T is ``(L - n_fft) // hop_length + 1``
        of the padded signal.
    Dtypes
        ``x`` float32, float64, complex64 or complex128; ``window`` float32 or float64, that of the
        parts of ``x``; the result complex, with parts of the same dtype.
    Order
        A copy (padding), a product with the window (``pointwise/1``), and ``fft/1`` along each
        frame: a spectrum depends on its frame alone. :func:`ptxgen.reference.stft` returns the same
        bits. Gradients are transforms, and frames added ascending as by :func:`ptxgen.col2im`.
    Options
        ``hop_length``: by default ``n_fft // 4``. ``win_length``: by default ``n_fft``; a shorter
        window is centred between zeros; without ``window`` it is ones. ``center``: pads
        ``n_fft // 2`` samples at both ends, by ``pad_mode``: "constant" (zeros), "reflect",
        "replicate" or "circular". ``normalized``: divides by ``sqrt(n_fft)``. ``onesided``: of real
        signals, by default, the first half of the spectrum. ``return_complex``: without it, pairs
        of real numbers ``[..., K, T, 2]``.
    Errors
        ShapeError for a signal that is too short or another window, DtypeError, OptionError,
        DeviceError, GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/stft.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.reference.stft(numpy.ones(8, "f4"), 4, center=False).real
    array([[4., 4., 4., 4., 4.],
           [0., 0., 0., 0., 0.],
           [0., 0., 0., 0., 0.]], dtype=float32)
    """
    real = x.dtype in SERVED
    check_dtype("x", x.dtype, (*SERVED, *PARTS))
    part, sided = PARTS.get(x.dtype, x.dtype), _onesided(onesided, real)
    how = {
        **{"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "center": center},
        **{"pad_mode": pad_mode, "normalized": normalized, "onesided": sided},
    }
    count = check_signal("x", x, window, how)
    if b.abstract or not x.size:
        bins = n_fft // 2 + 1 if sided else n_fft
        empty = b.result((*x.shape[:-1], bins, count, 2), part)
        return b.view_as_complex(empty) if return_complex else empty
    pairs = stft_pairs(b, x, window, how)
    found: Buffer = b.move(pairs, -2, -3)
    return b.transpose(b.view_as_complex(pairs)) if return_complex else found


# -- istft ----------------------------------------------------------------------------------------
def _span(n_fft: int, hop: int, count: int, center: bool, length: int | None) -> Ints:
    """Returns the first sample of the result, the one after the last, and the number of all samples
    of ``count`` frames.
    """
    total = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    if length is not None:
        return start, start + length, total
    return start, total - start, total


def _check_envelope(window: Sequence[float], how: Any, count: int) -> None:
    """Raises OptionError for squared windows whose sum is zero at a sample (NOLA)."""
    import numpy as np

    n_fft = how["n_fft"]
    hop, length = _lengths(n_fft, how["hop_length"], how["win_length"])
    start, end, _ = _span(n_fft, hop, count, how["center"], how["length"])
    reach = -(-n_fft // hop)
    parts = np.zeros(reach * hop)
    left = (n_fft - length) // 2
    parts[left : left + length] = np.square(window)
    envelope = np.zeros((count + reach - 1, hop))
    for i, part in enumerate(parts.reshape(reach, hop)):
        envelope[i : i + count] += part
    least = envelope.reshape(-1)[start : min(end, n_fft + hop * (count - 1))]
    if least.size and not least.min() >= LEAST_ENVELOPE:
        raise OptionError(
            f"window: the squares of the windows add up to {least.min():g} at a sample, sample "
            f"{int(least.argmin())} of the result; takes a window and hop_length {hop} that cover "
            "every sample (nonzero overlap-add)"
        )


def _invertible(arrays: Any, options: Any) -> None:
    """Checks the sum of squared windows of a call with a ``window``."""
    window = arrays.get("window")
    if window is not None:
        _check_envelope(window.tolist(), options, arrays["x"].shape[-1])


def _istft_along(n_fft: int, rank: int, bins: int, real: bool) -> Along:
    """Returns the transform of spectra ``[..., T, bins]``, which have ``rank`` dimensions."""
    own = ("half", "real") if real else ("pairs", "pairs")
    return Along(rank - 1, bins, n_fft, n_fft, *own)


def _frames_of(b: Any, x: Any, how: Any, real: bool) -> Any:
    """Returns the inverse transforms of spectra: frames ``[..., T, n_fft]``, of complex numbers as
    ``[..., 2, T, n_fft]``.
    """
    pairs = b.contiguous(b.move(b.view_as_real(x), -2, -3))
    along = _istft_along(how["n_fft"], len(x.shape), x.shape[-2], real)
    y = along.of(b, pairs, _norm(how["normalized"]), True)
    return y if real else b.move(y, -1, -3)


def _envelope(b: Any, window: Any, like: Any, count: int, n_fft: int, hop: int) -> Any:
    """Returns the sum of the squared windows at each sample."""
    if window is None:
        squares = b.filled((1, n_fft), b.dtype(like), 1, like)
    else:
        squares = b.reshape(b.mul(window, window), (1, n_fft))
    return b.overlap_add(b.expand(squares, (count, n_fft)), hop=hop)


def _istft_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``istft``: transforms of frames of ``dy`` divided by the envelope; of the window
    also by the envelope.
    """
    x, window, how = at["x"], at.arguments.get("window"), at.options
    n_fft, real, (y,) = how["n_fft"], not how["return_complex"], at.results
    hop, length = _lengths(n_fft, how["hop_length"], how["win_length"])
    count, dy = x.shape[-1], _rows(b, at.dys[0])
    start, end, total = _span(n_fft, hop, count, how["center"], how["length"])
    kept = min(end, total) - start
    wide = _wide_window(b, window, n_fft, length, dy)
    envelope = b.narrow(_envelope(b, wide, dy, count, n_fft, hop), 0, start, kept)
    dsum = b.div(b.narrow(dy, -1, 0, kept), envelope)
    whole = _laid(b, dsum, start, total)
    found: Gradients = {}
    if "x" in at.needs:
        dframes = b.frames(whole, wide, size=n_fft, hop=hop)
        dframes = dframes if real else b.move(dframes, -3, -1)
        along = _istft_along(n_fft, len(x.shape), x.shape[-2], real)
        dx = along.adjoint(b, b.packed(dframes), _norm(how["normalized"]), True)
        found["x"] = b.view_as_complex(b.packed(b.move(dx, -3, -2)))
    if "window" in at.needs:
        own = _frames_of(b, x, how, real)
        dframes = b.frames(whole, size=n_fft, hop=hop)
        dwide = _summed(b, own, dframes)
        product = b.mul(dsum, b.narrow(_rows(b, y), -1, 0, kept))
        flat = b.reshape(b.packed(product), (prod(product.shape[:-1]), kept))
        denvelope = _laid(b, b.neg(b.sum(flat, axis=0)), start, total)
        squares = b.sum(b.frames(denvelope, size=n_fft, hop=hop), axis=0)
        dwide = b.add(dwide, b.mul(b.mul(squares, wide), 2.0))
        found["window"] = _window_gradient(b, dwide, n_fft, length)
    return found


@op(vjp=_istft_vjp, checks=_invertible)
def istft(
    b: ProgramBuilder,
    x: Buffer,
    n_fft: Size,
    hop_length: Part = None,
    win_length: Part = None,
    window: Buffer | None = None,
    center: Bool = True,
    normalized: Bool = False,
    onesided: Sided = None,
    length: Samples = None,
    return_complex: Bool = False,
    *,
    check: Bool = False,
) -> Buffer:
    """Inverse of :func:`ptxgen.stft`, as ``torch.istft``: frames are transformed back, multiplied
    by the window, added where they overlap, and divided by the sum of the squared windows.

    Shapes
        ``x`` ``[..., K, T]``, ``window`` ``[win_length]``; the result ``[..., L]``: L is
        ``n_fft + hop_length * (T - 1)``, without ``n_fft // 2`` samples at both ends if ``center``,
        or ``length``; what the frames do not reach is zero.
    Dtypes
        ``x`` complex64 or complex128; ``window``, and the result, that of its parts (complex with
        ``return_complex``).
    Order
        ``fft/1`` along each frame, a product with the window, the sum of
        :func:`ptxgen.col2im` (a sample adds its frames ascending; no atomics), and one quotient
        (``pointwise/1``); the squared windows are added alike. :func:`ptxgen.reference.istft`
        returns the same bits. Gradients are transforms.
    Options
        As :func:`ptxgen.stft`; ``onesided``: by default whether K differs from ``n_fft``.
        ``return_complex``: the signal is complex; the spectra are whole. ``check``: waits for the
        window, and checks it.
    Errors
        OptionError for squared windows that add up to less than 1e-11 at a sample, if ``window`` is
        absent, for arrays in host memory, and with ``check``; without it such samples are not
        finite. ShapeError for another number of bins or another window, DtypeError, OptionError,
        DeviceError, GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/stft.py``.

    >>> import numpy, ptxgen
    >>> spectrum = ptxgen.reference.stft(numpy.arange(8, dtype="f4"), 4)
    >>> ptxgen.reference.istft(spectrum, 4)
    array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    check_dtype("x", x.dtype, tuple(PARTS))
    part, real = PARTS[x.dtype], not return_complex
    if len(x.shape) < 2 or not x.shape[-1]:
        raise ShapeError(f"x has shape {list(x.shape)}; takes spectra [..., K, T], at least one")
    hop, win = _lengths(n_fft, hop_length, win_length)
    if hop > win:
        raise OptionError(f"hop_length is {hop}; takes 1 .. {win}, win_length")
    _check_window(window, win, part)
    bins, count = x.shape[-2:]
    sided = bins != n_fft if onesided is None else onesided
    if sided and return_complex:
        raise OptionError("onesided is True; takes False for complex results, of whole spectra")
    takes = n_fft // 2 + 1 if sided else n_fft
    if bins != takes:
        raise ShapeError(f"x has {bins} bins; takes {takes}, as n_fft is {n_fft}")
    start, end, total = _span(n_fft, hop, count, center, length)
    shape = *x.shape[:-2], max(end - start, 0)
    if end <= start or start >= total:
        raise ShapeError(f"x has {count} frames of {n_fft}, which leave no sample of the result")
    how = {
        **{"n_fft": n_fft, "hop_length": hop, "win_length": win, "center": center},
        **{"normalized": normalized, "length": length},
    }
    if b.abstract or not x.size:
        return b.result(shape, part if real else x.dtype)
    if window is None:
        _check_envelope([1.0] * win, how, count)
    if real and not sided:
        x = b.narrow(x, -2, 0, n_fft // 2 + 1)
    y = _frames_of(b, x, how, real)
    wide = _wide_window(b, window, n_fft, win, y)
    kept = min(end, total) - start
    signal = b.narrow(b.overlap_add(y, wide, hop=hop), -1, start, kept)
    envelope = b.narrow(_envelope(b, wide, y, count, n_fft, hop), 0, start, kept)
    found = b.div(signal, envelope)
    found = _laid(b, found, 0, end - start)
    return found if real else b.view_as_complex(b.move(found, -2, -1))
