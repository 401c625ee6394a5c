"""Spectra: log-mel features and Welch's power spectral density, of transforms in block layout."""

from __future__ import annotations

import math
from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.formula import Node, fma
from ptxgen.numerics.functions import log, maximum
from ptxgen.numerics.option import Integer, Real
from ptxgen.numerics.signature import DIM_MAX, Signature
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op

SERVED = ("float32", "float64")
Positive = Annotated[float, Real(above=0)]
Range = Annotated[float | None, Real(above=0)]
Count = Annotated[int, Integer(1, DIM_MAX)]
LOG_MEL = Signature(
    "log_mel",
    ("spectrum", "filters"),
    ("out",),
    {"": {"spectrum": "... N", "filters": "F K", "out": "... F"}},
    ("M", "N", "F", "K"),
)
LOG10_E = math.log10(math.e)


def _of_power(re: Node, im: Node) -> Node:
    return fma(re, re, im * im)


def _of_log(x: Node, floor: Node) -> Node:
    return log(maximum(x, floor)) * LOG10_E


spectral_power = Pointwise(_of_power, "spectral_power")
_log = Pointwise(_of_log, "log10_above")


def _bins(name: str, x: Buffer) -> int:
    """Returns the number of bins of spectra in block layout."""
    check_dtype(name, x.dtype, SERVED)
    if len(x.shape) < 2 or x.shape[-1] % 2 or not x.shape[-1]:
        raise ShapeError(
            f"{name} has shape {list(x.shape)}; takes [..., M, 2n]: n real parts, then n imaginary "
            "parts of each of M spectra"
        )
    return x.shape[-1] // 2


def _powers(b: Builder, x: Any, bins: int) -> Any:
    """Returns the squared magnitude of the first ``bins`` bins of spectra in block layout."""
    return b.call(spectral_power, *_parts(b, x, bins))


def _parts(b: Builder, x: Any, bins: int) -> tuple[Any, Any]:
    return b.narrow(x, -1, 0, bins), b.narrow(x, -1, x.shape[-1] // 2, bins)


def _power_gradient(b: Builder, x: Any, dy: Any) -> Any:
    """Returns the gradient of spectra in block layout by that of the powers of their first bins."""
    bins, rest = dy.shape[-1], x.shape[-1] // 2 - dy.shape[-1]
    parts = list(b.call(spectral_power.gradient((True, True)), *_parts(b, x, bins), dy))
    if rest:
        empty = b.filled((*dy.shape[:-1], rest), b.dtype(dy), 0, dy)
        parts = [parts[0], empty, parts[1], empty]
    return b.concat(parts, len(x.shape) - 1)


# -- log-mel --------------------------------------------------------------------------------------
def mel_features(b: Builder, power: Any, filters: Any, floor: float, clamp: float | None) -> Any:
    """Returns ``log10`` of the filtered powers ``[..., M, K]``, at least ``floor``, and at least
    the largest result minus ``clamp``.
    """
    found = b.call(_log, b.linear(power, filters, layout="nk"), floor)
    return found if clamp is None else b.maximum(found, _least(b, found, clamp))


def _least(b: Builder, features: Any, clamp: float) -> Any:
    return b.sub(b.amax(features, axis=(-2, -1), keepdims=True), clamp)


def mel_gradient(
    b: Builder, power: Any, filters: Any, floor: float, clamp: float | None, dy: Any
) -> Any:
    """Returns the gradient of the filtered powers by that of :func:`mel_features`; the largest
    value of a ``clamp`` counts as a constant.
    """
    mel = b.linear(power, filters, layout="nk")
    if clamp is not None:
        plain = b.call(_log, mel, floor)
        dy = b.where(b.ge(plain, _least(b, plain, clamp)), dy, 0)
    return b.call(_log.gradient((True, False)), mel, floor, dy)


def _log_mel_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients by spectrum and filters."""
    x, filters = at["spectrum"], at["filters"]
    bins = filters.shape[1]
    power = _powers(b, x, bins)
    dmel = mel_gradient(b, power, filters, at.options["floor"], at.options["clamp"], at.dys[0])
    found: Gradients = {}
    if "spectrum" in at.needs:
        found["spectrum"] = _power_gradient(b, x, b.linear_dgrad(dmel, filters, layout="nk"))
    if "filters" in at.needs:
        rows = math.prod(dmel.shape[:-1])
        flat = b.reshape(power, (rows, bins)), b.reshape(dmel, (rows, filters.shape[0]))
        found["filters"] = b.linear_wgrad(*flat, layout="nk")
    return found


@op(forms=LOG_MEL, any_rank=True, vjp=_log_mel_vjp)
def log_mel(
    b: ProgramBuilder,
    spectrum: Buffer,
    filters: Buffer,
    *,
    floor: Positive = 1e-10,
    clamp: Range = None,
) -> Buffer:
    """``log10(max(power · filtersᵀ, floor))`` with ``power = re**2 + im**2``: log-mel features of
    spectra in block layout.

    Shapes
        ``spectrum`` ``[..., M, 2n]``: M spectra (frames) of n real parts, then n imaginary parts;
        ``filters`` ``[F, K]`` of the first K bins, K at most n (:func:`ptxgen.mel_filters`); the
        result ``[..., M, F]``.
    Dtypes
        float32 or float64, the same for both, and so the result.
    Order
        ``power = fma(re, re, im * im)``; the product adds as :func:`ptxgen.linear` does; ``log10``
        is ``log`` times ``log10(e)``; each operation is rounded once. A frame depends on itself
        alone, but for ``clamp``. :func:`ptxgen.reference.log_mel` returns the same bits.
    Options
        ``floor``: the least value whose logarithm is taken. ``clamp``: results are at least the
        largest one of the last two dimensions minus this (8 in Whisper); the gradient takes that
        largest one as a constant.
    Errors
        ShapeError for filters that do not fit, DtypeError, OptionError, DeviceError or
        CompileError, before anything is launched or written.
    """
    bins = _bins("spectrum", spectrum)
    check_dtype("filters", filters.dtype, (spectrum.dtype,))
    if len(filters.shape) != 2 or not 1 <= filters.shape[1] <= bins:
        raise ShapeError(
            f"filters has shape {list(filters.shape)}; takes [F, K] with K from 1 to {bins}, the "
            "bins of spectrum"
        )
    if b.abstract:
        return b.result((*spectrum.shape[:-1], filters.shape[0]), spectrum.dtype)
    power = _powers(b, spectrum, filters.shape[1])
    found: Buffer = mel_features(b, power, filters, floor, clamp if spectrum.size else None)
    return found


# -- Welch ----------------------------------------------------------------------------------------
def _grouped(shape: tuple[int, ...], segments: int) -> int:
    """Returns the number of groups of ``segments`` spectra."""
    if shape[-2] % segments:
        raise OptionError(f"segments is {segments}; takes a divisor of {shape[-2]}, the spectra")
    return shape[-2] // segments


def _welch_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``welch``: that of each segment is the group's, divided by their number."""
    x, segments = at["spectra"], at.options["segments"]
    *lead, count, width = x.shape
    each = b.mul(at.dys[0], at.options["scale"] / segments)
    wide = b.expand(b.unsqueeze(each, -2), (*lead, count // segments, segments, width // 2))
    return {"spectra": _power_gradient(b, x, b.reshape(wide, (*lead, count, width // 2)))}


@op(vjp=_welch_vjp)
def welch(b: ProgramBuilder, spectra: Buffer, segments: Count, *, scale: Positive = 1.0) -> Buffer:
    """``scale * mean(re**2 + im**2)`` over each group of ``segments`` spectra: Welch's estimate of
    the power spectral density.

    Shapes
        ``spectra`` ``[..., M, 2n]`` in block layout (n real parts, then n imaginary parts), M a
        multiple of ``segments``; the result ``[..., M / segments, n]``.
    Dtypes
        float32 or float64, and so the result.
    Order
        ``fma(re, re, im * im)``, then :func:`ptxgen.mean` over the segments, then one product with
        ``scale``, unless it is 1. A group depends on itself alone. :func:`ptxgen.reference.welch`
        returns the same bits.
    Options
        ``scale``: for a density ``1 / (sample_rate * sum(window**2))``.
    Errors
        OptionError if ``segments`` does not divide M; ShapeError, DtypeError, DeviceError or
        CompileError, before anything is launched or written.
    """
    bins = _bins("spectra", spectra)
    groups = _grouped(spectra.shape, segments)
    lead = spectra.shape[:-2]
    if b.abstract:
        return b.result((*lead, groups, bins), spectra.dtype)
    power = _powers(b, spectra, bins)
    found: Buffer = b.mean(b.reshape(power, (*lead, groups, segments, bins)), axis=-2)
    return found if scale == 1 else b.mul(found, scale)


@op(results=("powers", "bins"))
def welch_peaks(
    b: ProgramBuilder, spectra: Buffer, segments: Count, k: Count, *, scale: Positive = 1.0
) -> tuple[Buffer, Buffer]:
    """``topk(welch(spectra, segments), k)``: the k largest bins of each group, and their powers.

    Shapes
        ``spectra`` as in :func:`ptxgen.welch`; both results ``[..., M / segments, k]``.
    Dtypes
        float32 or float64, and so the powers; the bins int64.
    Order
        As :func:`ptxgen.welch`; of equal powers the lower bin comes first (``topk/1``).
        :func:`ptxgen.reference.welch_peaks` returns the same bits.
    Errors
        OptionError for a ``k`` above n; else as :func:`ptxgen.welch`; GradError (it has no
        gradient).
    """
    bins = _bins("spectra", spectra)
    if k > bins:
        raise OptionError(f"k is {k}; takes 1 .. {bins}, the bins of spectra")
    powers, found = b.topk(b.welch(spectra, segments, scale=scale), k)
    return powers, found
