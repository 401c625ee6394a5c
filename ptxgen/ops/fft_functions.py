"""Fourier transforms of complex and of real arrays: ``fft``, ``rfft`` and others of ``numpy.fft``.

Each is made of :func:`ptxgen.ops.fft.fft_pairs`, one step for each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxgen.errors import ShapeError
from ptxgen.numerics.dtype import PARTS
from ptxgen.numerics.fft import LENGTH_MAX, NORMS
from ptxgen.numerics.option import AxisNumber, AxisNumbers, Choice, Integer, Integers
from ptxgen.ops.fft import ADJOINT, SERVED, Along, axes_of_transform
from ptxgen.ops.views import check_dtype, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, Op
from ptxgen.program.parameters import ARRAY, OPTION, STREAM, WRITTEN, Parameter

COMPLEX_OF = {part: dtype for dtype, part in PARTS.items()}
"""Complex dtype of each dtype of parts, by full name."""
LENGTH = Integer(least=1, most=LENGTH_MAX, error=ShapeError)
NORM = Parameter("norm", OPTION, "backward", False, Choice(None, *NORMS))
OUTWARD = Parameter("out", WRITTEN, None, True), Parameter("stream", STREAM, None, True)
LINE = (
    Parameter("n", OPTION, None, False, LENGTH),
    Parameter("axis", OPTION, -1, False, AxisNumber()),
)


@dataclass(frozen=True)
class Row:
    """One function: ``kind`` of :func:`ptxgen.ops.fft.axes_of_transform` ("complex" also takes real
    arrays), direction, number of axes (0: any), and the first sentence of its docstring.
    ``conjugated``: computed by transforms of the opposite direction and norm, with spectra
    conjugated, as NumPy and PyTorch do.
    """

    name: str
    kind: str
    inverse: bool
    rank: int
    says: str
    conjugated: bool = False

    def runs(self, norm: str | None) -> tuple[str, bool]:
        """Returns norm and direction of the transforms that are computed."""
        norm = norm or "backward"
        return (ADJOINT[norm], not self.inverse) if self.conjugated else (norm, self.inverse)


def _rows() -> tuple[Row, ...]:
    forward, inverse = "Discrete Fourier transform", "Inverse discrete Fourier transform"
    real = "of real numbers: the first n/2 + 1 results, since ``X[n-k] = conj(X[k])``"
    half = "of half a spectrum to real numbers"
    each = (
        ("{}fft{}", "complex", False, forward),
        ("i{}fft{}", "complex", True, inverse),
        ("r{}fft{}", "spectrum", False, f"{forward} {real}"),
        ("ir{}fft{}", "half", True, f"{inverse} {half}"),
    )
    found = []
    for ending, rank, axes in (("", 1, ""), ("2", 2, " over two axes"), ("n", 0, " over axes")):
        for name, kind, back, says in each:
            found.append(Row(name.format("", ending), kind, back, rank, f"{says}{axes}."))
    found.append(Row("hfft", "half", False, 1, f"{forward} {half}.", True))
    found.append(Row("ihfft", "spectrum", True, 1, f"{inverse} {real}.", True))
    return tuple(found)


class FourierTransform(Op):
    """A public function of :data:`ROWS`."""

    def __init__(self, row: Row) -> None:
        self.row = row
        axes: Any = (-2, -1) if row.rank == 2 else None
        lengths = (
            Parameter("s", OPTION, None, False, Integers(least=1)),
            Parameter("axes", OPTION, axes, False, AxisNumbers()),
        )
        line = LINE if row.rank == 1 else lengths
        super().__init__(
            self._lowered,
            name=row.name,
            vjp=self._gradient,
            takes=(Parameter("x", ARRAY), *line, NORM, *OUTWARD),
        )

    @property
    def doc(self) -> str:
        return _doc(self.row)

    def _steps(self, shape: tuple[int, ...], how: Any, real: bool) -> tuple[Along, ...]:
        """Returns the transforms along single axes. Raises ShapeError for axes that ``x``, of this
        shape, has not.
        """
        kind = "real" if self.row.kind == "complex" and real else self.row.kind
        axes: Any
        lengths: Sequence[int | None]
        if self.row.rank == 1:
            axes, lengths = (how["axis"],), (how["n"],)
        else:
            axes, given = how["axes"], how["s"]
            if axes is None:
                axes = range(-len(given if given is not None else shape), 0)
            axes = (axes,) if isinstance(axes, int) else tuple(axes)
            lengths = (None,) * len(axes) if given is None else given
            if len(lengths) != len(axes) or not axes:
                raise ShapeError(
                    f"s is {given}, axes are {axes}; takes a length for each axis, and an axis"
                )
        for axis in axes:
            if not -len(shape) <= axis < len(shape):
                raise ShapeError(f"axis is {axis}; x has shape {list(shape)}")
        return axes_of_transform(shape, [axis % len(shape) for axis in axes], lengths, kind)

    def _lowered(self, b: ProgramBuilder, /, *args: Any, **named: Any) -> Any:
        """Records the steps, and returns the result."""
        given = self.bound(args, named)
        x: Buffer = given["x"]
        real = x.dtype in SERVED
        takes = {"spectrum": SERVED, "half": tuple(PARTS)}.get(self.row.kind, (*PARTS, *SERVED))
        check_dtype("x", x.dtype, takes)
        steps = self._steps(x.shape, given, real)
        part = x.dtype if real else PARTS[x.dtype]
        dtype = part if self.row.kind == "half" else COMPLEX_OF[part]
        shape = list(x.shape)
        for step in steps:
            shape[step.axis] = step.count
        memory = b.result(shape, dtype, single(given["out"]))
        if self.row.conjugated and not real:
            x = b.conj(x)
        y: Any = x if real else b.view_as_real(x)
        target = memory if self.row.kind == "half" else b.view_as_real(memory)
        norm, inverse = self.row.runs(given["norm"])
        for i, step in enumerate(steps, 1):
            out = {"out": target} if i == len(steps) else {}
            y = step.of(b, y, norm, inverse, **out)
        return b.conj(memory, out=memory) if self.row.conjugated and real else memory

    def _gradient(self, b: Builder, at: Backward) -> Gradients:
        """Gradient: the adjoint transforms, in the opposite order; of complex arrays by the
        conjugate, as PyTorch has it.
        """
        x, real = at["x"], b.dtype(at["x"]) in SERVED
        (dy,), conjugated = at.dys, self.row.conjugated
        if self.row.kind != "half":
            dy = b.view_as_real(b.conj(dy) if conjugated else dy)
        for step in reversed(self._steps(x.shape, at.options, real)):
            dy = step.adjoint(b, dy, *self.row.runs(at.options["norm"]))
        if real:
            return {"x": dy}
        dx = b.view_as_complex(dy)
        return {"x": b.conj(dx) if conjugated else dx}


def _doc(row: Row) -> str:
    sign = "+" if row.inverse else "-"
    length = (
        "``n``: the length along ``axis``" if row.rank == 1 else "``s``: lengths along ``axes``"
    )
    default = ", by default 2 (m - 1) for m elements" if row.kind == "half" else ""
    results = {"spectrum": "n/2 + 1 elements", "half": "n real elements"}
    takes = {"spectrum": "float32 or float64", "half": "complex64 or complex128"}
    return f"""{row.says}
    ``X[k] = scale * sum(x[j] * exp({sign}2πi j k / n))``.

    {length}{default}; ``x`` is cropped, or padded with zeros.
    ``norm``: scale is 1 forward and 1/n inverse ("backward"), the other way round ("forward"), or
    1/sqrt(n) ("ortho").

    Shapes
        ``x`` any; the result has {results.get(row.kind, "n elements")} along the (last) axis.
    Dtypes
        {takes.get(row.kind, "complex64, complex128, float32 or float64")}; the result
        has parts of the same size.
    Order
        Contract ``fft/1`` (:mod:`ptxgen.numerics.fft`) along each axis. The gradient is a
        transform, too.
    Errors
        ShapeError for an empty axis, DtypeError, OptionError for another norm, DeviceError,
        GradError or CompileError, before anything is launched or written.
    Source
        ``ptxgen/ops/fft_functions.py``.
    """


ROWS = {row.name: row for row in _rows()}
globals().update({name: FourierTransform(row) for name, row in ROWS.items()})
