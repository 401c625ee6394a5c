"""Discrete Fourier transforms, contract ``fft/1``.

Complex arrays are reals here: ``fft_block`` has real parts and then imaginary parts along the last
dimension, :func:`fft_pairs` a last dimension of two. :func:`axes_of_transform` says which
transforms along single axes one of several axes is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics import fft as numerics
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.option import Axis, Bool, Choice, Integer
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.ops.views import alignment, axis_of, check_dtype, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.fft import (
    SWAP_INPUT,
    SWAP_RESULT,
    SWAP_SPECTRUM,
    ChirpForm,
    ChirpSpec,
    Form,
)

SERVED = ("float32", "float64")
Norm = Annotated[str, Choice(*numerics.NORMS)]
Length = Annotated[int | None, Integer(least=1, most=numerics.LENGTH_MAX, error=ShapeError)]
Source = Annotated[str, Choice("pairs", "real", "half")]
Sink = Annotated[str, Choice("pairs", "real")]
REALS = ("real", "split")
"""Kinds of elements whose strides count reals."""
ADJOINT = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""Norm of the inverse transform that is the adjoint of a transform, by the norm of that."""


@dataclass(frozen=True)
class Side:
    """The input or the results of a kernel: element i of transform p of group o is at
    ``i * step + p * apart + o * outer``, of ``limit`` elements that exist. ``kind``: one of
    :data:`ptxgen.spec.fft.SOURCES`; ``imaginary``: distance of imaginary parts from real ones.

    Strides count complex numbers of "pairs" and "half", else reals.
    """

    buffer: Buffer
    kind: str
    limit: int
    step: int
    apart: int = 0
    outer: int = 0
    imaginary: int = 0

    def scalars(self, side: str, places: tuple[int, int, int]) -> list[tuple[str, int | float]]:
        """Returns the kernel's scalars of side "X" or "Y". ``places``: what element, transform and
        middle number are multiplied by in an index.
        """
        strides = zip("EBIO", (self.step, self.apart, self.imaginary, self.outer), strict=True)
        found = [*strides, *zip("S01", places, strict=True)]
        return [(f"{side}{name}", value) for name, value in found]


@dataclass(frozen=True)
class Plan:
    """A transform of length ``n``: the dtype, the groups of transforms, what to exchange (bits of
    :mod:`ptxgen.spec.fft`), the factor, weights of elements and of results, and the length of the
    whole transform.
    """

    dtype: str
    n: int
    groups: int
    flags: int
    scale: float
    whole: int
    weights_in: Buffer | None = None
    weights_out: Buffer | None = None


def _launch(
    b: ProgramBuilder,
    form: Form,
    plan: Plan,
    sides: tuple[Side, Side],
    places: tuple[tuple[int, int, int], tuple[int, int, int]],
    counts: tuple[int, int, int],
) -> None:
    """Records the launch of one kernel. ``counts``: transforms p, middle numbers and groups."""
    x, y = sides
    ctas = -(-counts[0] // form.tile) * counts[1] * counts[2]
    if ctas > DIM_MAX:
        raise ShapeError(f"there are {prod(counts)} transforms of {form.n}; takes {DIM_MAX} tiles")
    scalars = (
        *x.scalars("X", places[0]),
        *y.scalars("Y", places[1]),
        *(("NX", x.limit), ("NY", y.limit), ("N0", counts[0]), ("N1", counts[1])),
        *(("WHOLE", plan.whole), ("FLAGS", plan.flags), ("SCALE", plan.scale)),
    )
    bind = {"x": x.buffer, "y": y.buffer}
    if plan.weights_in is not None:
        bind["wx"] = plan.weights_in
    if plan.weights_out is not None:
        bind["wy"] = plan.weights_out
    what = f"fft {prod(counts)} x {form.n} {form.dtype}"
    b.launch(lambda: Problem(("fft",), form, (("CTAS", ctas),), scalars, what), bind)


def _at_once(b: ProgramBuilder, plan: Plan, x: Side, y: Side, columns: int, chirp: int) -> None:
    """Records transforms by one kernel, of ``columns`` neighbours a group, or of a row a group if
    there is one. ``chirp``: length of a transform by chirps, else 0.
    """
    rows = columns == 1
    if rows:
        x, y = (replace(s, apart=s.outer, outer=0) for s in (x, y))
    form = Form(plan.dtype, plan.n, x.kind, y.kind, rows, rows, 0, chirp)
    counts = (plan.groups, 1, 1) if rows else (columns, 1, plan.groups)
    _launch(b, form, plan, (x, y), ((1, 0, 0), (1, 0, 0)), counts)


def _by_parts(b: ProgramBuilder, plan: Plan, x: Side, y: Side) -> None:
    """Records transforms by one kernel for each part of their length, of a row a group."""
    n, parts = plan.n, numerics.parts(plan.n, plan.dtype)
    plain = replace(plan, flags=0, scale=1.0, weights_in=None, weights_out=None)
    done, here = 1, x
    for at, part in enumerate(parts[:-1]):
        rest = n // (done * part)
        step = plain
        if at == 0:
            step = replace(plain, flags=plan.flags & SWAP_INPUT, weights_in=plan.weights_in)
        weighed = step.weights_in is not None
        form = Form(plan.dtype, part, here.kind, "pairs", False, False, part * rest, 0, weighed)
        scratch = b.empty((plan.groups, n, 2), y.buffer.dtype)
        there = Side(scratch, "pairs", n, 1, outer=n)
        place = (rest, 1, part * rest)
        _launch(b, form, step, (here, there), (place, place), (rest, done, plan.groups))
        done, here = done * part, there
    first, last = parts[0], parts[-1]
    step = replace(plan, flags=plan.flags & ~SWAP_INPUT, weights_in=None)
    weighed = step.weights_out is not None
    form = Form(plan.dtype, last, "pairs", y.kind, True, False, weigh_out=weighed)
    places = (1, n // first, last), (done, 1, first)
    _launch(b, form, step, (here, y), places, (first, done // first, plan.groups))


def _by_chirps(b: ProgramBuilder, plan: Plan, x: Side, y: Side) -> None:
    """Records transforms of rows by convolutions with chirps that are too long for one kernel."""
    n, size, name = plan.n, numerics.padded(plan.n), y.buffer.dtype
    c, d, spectrum = (b.empty((count, 2), name) for count in (n, size, size))
    what, values = f"chirps {n} {plan.dtype}", (("CTAS", -(-size // ChirpSpec.threads)),)
    form = ChirpForm(plan.dtype, n)
    of = ("fft_chirp",)
    b.launch(lambda: Problem(of, form, values, (("M", size),), what), {"c": c, "d": d})
    alone, result, scratch = (
        Side(v, "pairs", size, 1, outer=size)
        for v in (d, spectrum, b.empty((plan.groups, size, 2), name))
    )
    _by_parts(b, Plan(plan.dtype, size, 1, 0, 1.0, size), alone, result)
    forth = replace(
        plan,
        n=size,
        flags=plan.flags & SWAP_INPUT | SWAP_RESULT,
        scale=1.0,
        weights_in=c,
        weights_out=spectrum,
    )
    _by_parts(b, forth, x, scratch)
    flags = plan.flags & SWAP_RESULT | SWAP_SPECTRUM
    back = replace(plan, n=size, flags=flags, scale=plan.scale / size, weights_out=c)
    _by_parts(b, back, scratch, y)


def _record(
    b: ProgramBuilder, x: Buffer, y: Buffer, kinds: tuple[str, str], limit: int, plan: Plan
) -> None:
    """Records transforms along dimension 1 of ``x`` and ``y``, [groups, elements, columns] and 2
    for pairs. ``kinds``: those of elements and of results; ``limit``: results that are stored.
    """
    columns, direct = x.shape[2], numerics.is_direct(plan.n, plan.dtype)
    size = plan.n if direct else numerics.padded(plan.n)
    if columns > 1 and size > numerics.PART[plan.dtype]:  # too few columns would share a CTA
        groups = plan.groups * columns
        source, results = x.moved(2, 1), y.moved(2, 1)
        target = b.empty(results.shape, y.dtype)
        flat = [
            b.reshape(v, (groups, v.shape[2], 1, *v.shape[3:]))
            for v in (b.contiguous(source), target)
        ]
        _record(b, flat[0], flat[1], kinds, limit, replace(plan, groups=groups))
        b.copied(target, results)
        return
    sides = []
    elements = x.shape[1] // (2 if kinds[0] == "split" else 1)
    for v, kind, count in ((x, kinds[0], elements), (y, kinds[1], limit)):
        outer, step, apart = (stride // (1 if kind in REALS else 2) for stride in v.strides[:3])
        imaginary = count * step if kind == "split" else 0
        apart = apart if columns > 1 else 0
        sides.append(Side(v, kind, count, step, apart, outer, imaginary))
    if size <= numerics.WHOLE[plan.dtype]:
        chirp = 0 if direct else plan.n
        _at_once(b, replace(plan, n=size), sides[0], sides[1], columns, chirp)
    elif direct:
        _by_parts(b, plan, sides[0], sides[1])
    else:
        _by_chirps(b, plan, sides[0], sides[1])


def _checked(x: Buffer, what: str, count: int) -> None:
    """Raises DtypeError and ShapeError for arrays that no kernel transforms."""
    check_dtype("x", x.dtype, SERVED)
    if not 1 <= count <= numerics.LENGTH_MAX:
        raise ShapeError(
            f"x has shape {list(x.shape)}, so {what} is {count}; takes 1 .. {numerics.LENGTH_MAX}"
        )


def _block_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``fft_block``: the adjoint transform of ``dy``."""
    inverse, norm = not at.options["inverse"], ADJOINT[at.options["norm"]]
    return {"x": b.fft_block(b.packed(at.dys[0]), inverse=inverse, norm=norm)}


@op(forms=numerics.FFT_BLOCK, vjp=_block_vjp)
def fft_block(
    b: ProgramBuilder,
    x: Buffer,
    *,
    inverse: Bool = False,
    norm: Norm = "backward",
    out: Out = None,
) -> Buffer:
    """Discrete Fourier transforms of rows in block layout: n real parts, then n imaginary parts.
    ``X[k] = scale * sum(x[j] * exp(-2πi j k / n))``; ``inverse``: with ``+2πi``.

    ``norm``: scale is 1 forward and 1/n inverse ("backward"), the other way round ("forward"), or
    1/sqrt(n) for both ("ortho").

    Shapes
        ``x`` ``[..., 2n]``, n from 1 to 2^28, and so the result.
    Dtypes
        float32 or float64, and so the result.
    Order
        Contract ``fft/1`` (:mod:`ptxgen.numerics.fft`): the factorisation depends on n and the
        dtype alone, so a row's bits depend on that row alone. :func:`ptxgen.reference.fft_block`
        returns the same bits. The gradient is the inverse transform (of an inverse the forward
        one) with the same scale.
    Errors
        ShapeError for an empty or odd last dimension, DtypeError, OptionError for another norm,
        DeviceError, GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/fft.py``, ``ptxgen/tiles/fft.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.reference.fft_block(numpy.array([[1, 2, 3, 4, 0, 0, 0, 0]], "f4"))
    array([[10., -2., -2., -2.,  0.,  2.,  0., -2.]], dtype=float32)
    """
    found = numerics.FFT_BLOCK.infer({"x": x.shape})
    n = found.sizes["N"]
    _checked(x, "n", n)
    y = b.result(found.results[0], x.dtype, single(out))
    if b.abstract or not x.size:
        return y
    rows = found.sizes["M"]
    alignment("x", x, 0)
    source, target = (b.reshape(v, (rows, 2 * n, 1)) for v in (b.contiguous(x), _writable(b, y)))
    plan = _planned(DTYPES[x.dtype], n, rows, inverse, norm)
    _record(b, source, target, ("split", "split"), n, plan)
    return b.delivered(b.reshape(target, y.shape), y)


def _planned(dtype: str, n: int, groups: int, inverse: bool, norm: str) -> Plan:
    """Returns the plan of a transform of length ``n``, without weights."""
    flags = SWAP_INPUT | SWAP_RESULT if inverse else 0
    return Plan(dtype, n, groups, flags, numerics.scale(n, norm, inverse), n)


def _writable(b: ProgramBuilder, y: Buffer) -> Buffer:
    """Returns ``y``, or new memory in its place if kernels cannot store pairs in its memory."""
    fits = y.contiguous and y.address % (2 * y.itemsize) == 0
    return y if fits else b.empty(y.shape, y.dtype)


@dataclass(frozen=True)
class Along:
    """A transform along one axis, of ``size`` elements: its length ``n``, the results that are kept
    (``count``), and the options ``source`` and ``sink`` of :func:`fft_pairs`.
    """

    axis: int
    size: int
    n: int
    count: int
    source: str = "pairs"
    sink: str = "pairs"

    def of(self, b: Any, x: Any, norm: str, inverse: bool, **how: Any) -> Any:
        """Returns the transform of ``x`` along the axis; ``how``: memory for it (``out``)."""
        how |= {"axis": self.axis, "n": self.n, "count": self.count, "norm": norm}
        return b.fft_pairs(x, inverse=inverse, source=self.source, sink=self.sink, **how)

    def adjoint(self, b: Any, dy: Any, norm: str, inverse: bool) -> Any:
        """Returns the adjoint transform of ``dy``, the gradient of :meth:`of`: twice that where an
        element of half a spectrum stands for two.
        """
        kept = min(self.size, self.n // 2 + 1 if self.source == "half" else self.n)
        back = Along(
            self.axis,
            self.count,
            self.n,
            kept,
            "real" if self.sink == "real" else "pairs",
            "real" if self.source == "real" else "pairs",
        )
        dx = back.of(b, b.packed(dy), ADJOINT[norm], not inverse)
        if self.source == "half":
            dx = b.mul(dx, self._doubled(b, dx, kept))
        if kept < self.size:
            widths = [(0, 0)] * len(dx.shape)
            widths[self.axis] = (0, self.size - kept)
            dx = b.pad(dx, tuple(widths))
        return dx

    def _doubled(self, b: Any, dx: Any, kept: int) -> Any:
        """Returns the factors of half a spectrum's gradient: 2, but (1, 0) for k = 0 and n/2, whose
        imaginary parts do not count.
        """
        one, zero, two = (b.filled((1, 1), b.dtype(dx), v, dx) for v in (1, 0, 2))
        end, inner = b.concat([one, zero], axis=1), b.concat([two, two], axis=1)
        ends = 1 + (kept == self.n // 2 + 1 and self.n % 2 == 0)
        middle = [b.contiguous(b.expand(inner, (kept - ends, 2)))] if kept > ends else []
        factors = b.concat([end, *middle, *[end] * (ends - 1)], axis=0)
        return b.reshape(factors, (kept, *[1] * (len(dx.shape) - 2 - self.axis), 2))


def axes_of_transform(
    shape: Sequence[int], axes: Sequence[int], lengths: Sequence[int | None], kind: str
) -> tuple[Along, ...]:
    """Returns the transforms along each axis, in order: the last axis first, but last if its
    results are real.

    ``shape``: that of the array, without a dimension of pairs; ``axes``: not negative; ``kind``:
    "complex", "real" (a real array), "spectrum" (a real array, of which half the spectrum is kept)
    or "half" (half a spectrum, to real numbers); that is along the last axis.
    """
    found = []
    for i, (axis, n) in enumerate(zip(axes, lengths, strict=True), 1):
        last = i == len(axes)
        source = {"complex": "pairs", "half": "half"}.get(kind, "real") if last else "pairs"
        length = _length(shape[axis], source, n)
        count = length // 2 + 1 if last and kind == "spectrum" else length
        sink = "real" if last and kind == "half" else "pairs"
        found.append(Along(axis, shape[axis], length, count, source, sink))
    return tuple(found if kind == "half" else reversed(found))


def _pairs_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``fft_pairs``: the adjoint transform."""
    x, how, y = at["x"], at.options, at.results[0]
    shape = x.shape if how["source"] == "real" else x.shape[:-1]
    axis = how["axis"] % len(shape)
    n = _length(shape[axis], how["source"], how["n"])
    along = Along(axis, shape[axis], n, y.shape[axis], how["source"], how["sink"])
    return {"x": along.adjoint(b, at.dys[0], how["norm"], how["inverse"])}


def _length(size: int, source: str, n: int | None) -> int:
    """Returns the length of a transform: ``n``, or as many elements as there are (``size``)."""
    return n if n is not None else 2 * (size - 1) if source == "half" else size


@op(vjp=_pairs_vjp, oracle=lazy.function("ptxgen.oracle.fft:fft_pairs"), public=False)
def fft_pairs(
    b: ProgramBuilder,
    x: Buffer,
    *,
    axis: Axis = -1,
    n: Length = None,
    count: Length = None,
    norm: Norm = "backward",
    inverse: Bool = False,
    source: Source = "pairs",
    sink: Sink = "pairs",
    out: Out = None,
) -> Buffer:
    """Transforms along ``axis``, a dimension that is not that of pairs, of length ``n``: ``x`` is
    cropped, or padded with zeros. ``count``: the number of results that are kept, by default n.

    ``source``: "pairs" (complex numbers), "real" (imaginary parts are zeros) or "half" (the first
    n/2 + 1 complex numbers of a spectrum, by default of length 2 (m - 1), that are completed by
    ``X[n-k] = conj(X[k])``; then results must be real). ``sink``: "pairs", or "real" for real parts
    alone.

    Shapes
        ``x`` ``[..., m, ..., 2]``, without the 2 if it is real; the result has ``count`` in place
        of m, and a 2 if it is complex.
    Dtypes
        float32 or float64, and so the result.
    Order
        Contract ``fft/1`` (:mod:`ptxgen.numerics.fft`).
    Errors
        ShapeError, DtypeError, OptionError, DeviceError or CompileError, before anything is
        launched or written.
    """
    complex_in, complex_out = source != "real", sink != "real"
    if complex_in and (not x.shape or x.shape[-1] != 2):
        raise ShapeError(f"x has shape {list(x.shape)}; takes pairs [..., 2]")
    if source == "half" and complex_out:
        raise OptionError("sink is 'pairs'; takes 'real' for source 'half'")
    shape = x.shape[:-1] if complex_in else x.shape
    if not shape:
        raise ShapeError(f"x has shape {list(x.shape)}; takes at least one axis")
    axis = axis_of("x", x.laid(shape, x.strides[: len(shape)]), axis)
    size = shape[axis]
    length = _length(size, source, n)
    _checked(x, "n", length if size else 0)
    kept = length if count is None else count
    if kept > length:
        raise ShapeError(f"count is {kept}; takes at most n = {length}")
    tail = (2,) if complex_out else ()
    y = b.result((*shape[:axis], kept, *shape[axis + 1 :], *tail), x.dtype, single(out))
    if b.abstract or not x.size:
        return y
    alignment("x", x, 0)
    x = b.contiguous(x)
    if complex_in and x.address % (2 * x.itemsize):
        x = b.copied(x)
    groups, columns = prod(shape[:axis]), prod(shape[axis + 1 :])
    target = _writable(b, y)
    source_rows = b.reshape(x, (groups, size, columns, *x.shape[len(shape) :]))
    target_rows = b.reshape(target, (groups, kept, columns, *tail))
    plan = _planned(DTYPES[x.dtype], length, groups, inverse, norm)
    _record(b, source_rows, target_rows, (source, sink), kept, plan)
    return b.delivered(target, y)
