"""Route tables of discrete Fourier transforms: one kernel for each form, rendered when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.fft import SPACE, ChirpForm, ChirpSpec, FftSpec, Form

LISTED = (
    Form("f32", 240, "split", "split"),
    Form("f64", 9),
    Form("f32", 38, rows_in=False, rows_out=False),
    Form("f64", 4116),
    Form("f32", 144, "half", "real", chirp=67),
    Form("f64", 128, "real", "pairs", False, False, 16384),
    Form("f64", 96, "pairs", "pairs", False, False, 9216, weigh_in=True),
    Form("f64", 96, "pairs", "pairs", True, False, weigh_out=True),
)
"""Forms that goldens and tests look at: radices, sources and sinks of all kinds, and a transform
that exchanges real and imaginary parts in turns.
"""


def _fft() -> RouteTable:
    route = Route((FftSpec.made(LISTED[0]),), reason="the length's passes in one kernel")
    return RouteTable(SPACE, (route,), LISTED, opened=Form, pinned=_pinned)


def _pinned() -> Iterator[FftSpec]:
    """Yields a kernel for the goldens that has no shared memory, and so reads twiddles from global
    memory.
    """
    yield FftSpec.made(Form("f64", 4, "pairs", "pairs", False, False, 12))


def _chirps() -> RouteTable:
    form = ChirpForm("f64", 4099)
    route = Route((ChirpSpec(form.n, form.dtype),), reason="chirps of one length")
    return RouteTable(SPACE, (route,), (form,), opened=ChirpForm)


TABLES: dict[Key, Callable[[], RouteTable]] = {("fft",): _fft, ("fft_chirp",): _chirps}
"""Constructors of the route tables, by key."""
