"""``ptxgen bench fft``: Fourier transforms of random lengths, against cuFFT.

cuFFT is called through ``torch.fft``. Rows of f32 have the error of both sides to the transform
in f64, as a root mean square relative to that of the results, in units of 2^-24. Each entry of
:data:`OPERATIONS` draws cases of one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from random import Random
from typing import Any

from ptxgen.bench import draw
from ptxgen.bench.opcase import DrawnArea, OpArea, OpCase, Timing, Work, device_of, medians
from ptxgen.bench.results import Sample
from ptxgen.numerics.dtype import ITEMSIZE

UNIT = 2.0**-24
"""Unit of errors: half the distance of f32 numbers from 1."""
CLOSE = {"f32": 16 * UNIT, "f64": 16 * 2.0**-53}
"""Maximum relative RMS difference between both sides' results, by dtype."""
WIDE = ("float64", "complex128")
FULL = {"f32": ("float32", "complex64"), "f64": WIDE}
"""Full names of the real and of the complex dtype, by short dtype."""


@dataclass(frozen=True)
class FftTiming(Timing):
    """Times of a transform, and errors to the transform in f64, in units of 2^-24 (None: f64)."""

    ours_error: float | None = None
    peer_error: float | None = None


@dataclass(frozen=True)
class FftCase(OpCase):
    """A case of a transform; ``dtype``: short name of the dtype of parts."""

    dtype: str = "f32"


def distance(torch: Any, found: Any, exact: Any) -> float:
    """Returns the RMS difference of tensors, real or complex, divided by the RMS of ``exact``."""
    norm = torch.linalg.vector_norm
    return float(norm(found.to(exact.dtype) - exact) / norm(exact))


# -- cases ----------------------------------------------------------------------------------
def fft_case(name: str, kind: str, shape: tuple[int, ...], axis: int, dtype: str) -> FftCase:
    """Returns a case of the transform ``kind``, such as "rfft", along an axis.

    ``shape``: the shape of the numbers; half a spectrum of an irfft has fewer.
    """
    n = shape[axis]

    def make(torch: Any) -> Work:
        import ptxgen.torch

        real, full = (getattr(torch, name) for name in FULL[dtype])
        given = list(shape)
        if kind == "irfft":
            given[axis] = n // 2 + 1
        x = torch.randn(given, device=device_of(torch), dtype=real if kind == "rfft" else full)
        length = {"n": n} if kind == "irfft" else {}
        ours = partial(getattr(ptxgen.torch, kind), axis=axis, **length)
        stock = partial(getattr(torch.fft, kind), dim=axis, **length)

        def agree(a: Any, b: Any) -> bool:
            return distance(torch, a, b) <= CLOSE[dtype]

        return Work((x,), ours, stock, compiled=False, agree=agree)

    count, size = prod(shape), ITEMSIZE[dtype]
    half = count // n * (n // 2 + 1)
    nbytes = size * (count + 2 * half) if kind in ("rfft", "irfft") else 4 * size * count
    sizes = "x".join(map(str, shape)) + (f" axis {axis}" if axis != len(shape) - 1 else "")
    return FftCase(name, f"{sizes} {dtype}", nbytes, make, dtype)


# -- draws ----------------------------------------------------------------------------------
def _batch(random: Random, n: int, most: int) -> int:
    """Draws the number of transforms of length n: numbers in all are log-uniform up to ``most``."""
    return max(1, draw.integer(random, most >> 6, most) // n)


def _power(random: Random, name: str, kind: str = "fft", dtype: str = "f32") -> FftCase:
    n = 1 << (4 + int(random.random() * 19))
    return fft_case(name, kind, (_batch(random, n, 1 << 24), n), 1, dtype)


def _any(random: Random, name: str, kind: str = "fft", dtype: str = "f32") -> FftCase:
    n = draw.integer(random, 8, 1 << 20)
    return fft_case(name, kind, (_batch(random, n, 1 << 23), n), 1, dtype)


def _one(random: Random, name: str) -> FftCase:
    return fft_case(name, "fft", (1, 1 << (10 + int(random.random() * 13))), 1, "f32")


def _columns(random: Random, name: str) -> FftCase:
    n = draw.rows(random, 8, 4096)
    across = 8 * draw.integer(random, 1, 64)
    outer = max(1, _batch(random, n, 1 << 23) // across)
    return fft_case(name, "fft", (outer, n, across), 1, "f32")


def _named(name: str, make: Callable[..., FftCase], **how: str) -> tuple[str, Any]:
    return name, partial(make, name=name, **how)


OPERATIONS: Mapping[str, Callable[[Random], OpCase]] = dict(
    (
        _named("fft, power of two", _power),
        _named("fft, any length", _any),
        _named("fft, one row", _one),
        _named("fft, columns", _columns),
        _named("rfft, power of two", _power, kind="rfft"),
        _named("rfft, any length", _any, kind="rfft"),
        _named("irfft, any length", _any, kind="irfft"),
        _named("fft f64, power of two", _power, dtype="f64"),
        _named("fft f64, any length", _any, dtype="f64"),
    )
)
"""Functions that draw a random case, by name of the case."""


class Fft(DrawnArea):
    """Benchmark ``ptxgen bench fft``: random transforms, against cuFFT."""

    name = "fft"
    about = (
        "Times Fourier transforms beside cuFFT (torch.fft), in one run, with a cold L2, after "
        "comparing results; medians in µs, relative RMS errors to f64 in units of 2^-24. "
        "limit = bytes / 4.3 TB/s, each number once."
    )
    row = FftTiming
    operations = OPERATIONS
    columns = (
        *((heading, cell) for heading, cell in OpArea.columns if heading != "compile"),
        *(("error", "ours_error:.2f"), ("peer's error", "peer_error:.2f")),
    )

    def examine(self, case: FftCase, made: Work) -> None:
        """Measures the errors of both sides to the transform in f64."""
        self._errors: tuple[float | None, float | None] = None, None
        if case.dtype == "f32":
            torch, (x,) = self.torch, made.inputs
            exact = made.stock(x.to(getattr(torch, WIDE[x.is_complex()])))
            off = [distance(torch, call(x), exact) / UNIT for call in (made.ours, made.stock)]
            self._errors = off[0], off[1]

    def found(self, case: OpCase, times: Mapping[str, Sample]) -> Iterator[FftTiming]:
        row = case.name, case.sizes, case.nbytes, case.limit_us, *medians(times)
        yield FftTiming(*row, *self._errors)


main, _parser = Fft.main, Fft.parser
