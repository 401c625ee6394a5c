"""Calls that run each listed kernel of transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bits import same_bits
from interp_launch import SEED

import ptxgen
from ptxgen.ops import OPERATIONS
from ptxgen.program.operation import lowering
from ptxgen.tiles import SPECS

PAIRS = OPERATIONS["fft_pairs"]
CALLS: dict[tuple[int, int, int], tuple[str, tuple[int, ...], dict[str, Any]]] = {
    (240, 0, 0): ("fft_block", (11, 480), {"inverse": True, "norm": "ortho"}),
    (9, 0, 0): ("fft_pairs", (300, 8, 2), {"n": 9}),
    (38, 0, 0): ("fft_pairs", (3, 38, 19, 2), {"axis": 1}),
    (4116, 0, 0): ("fft_pairs", (1, 4116, 2), {"inverse": True}),
    (144, 0, 67): ("fft_pairs", (3, 34, 2), {"n": 67, "source": "half", "sink": "real"}),
    (128, 16384, 0): ("fft_pairs", (1, 16000), {"n": 16384, "source": "real", "count": 8193}),
    (96, 9216, 0): ("fft_pairs", (1, 4000, 2), {"n": 4099}),
    (96, 0, 0): ("fft_pairs", (1, 4099, 2), {"inverse": True}),
}
"""Operation, shape and options of a call, by length, order of twiddles and length by chirps."""


def check(name: str, of: str, shape: tuple[int, ...], how: dict[str, Any], device: Any) -> None:
    """Calls an operation of which a step launches kernel ``name``, and compares the bits."""
    op, spec = OPERATIONS[of], SPECS[name]
    kind = "f8" if spec.dtype == "f64" else "f4"
    x = np.random.default_rng([SEED, *shape]).standard_normal(shape).astype(kind)
    with ptxgen.use_device(device):
        _, made = lowering(op, {"x": x, **how})
        assert spec.form in [step.problem.dtype for step in made.program.steps]
        same_bits(op.function(x, **how), op.oracle(x, **how), spec=name, what=f"{shape} {how}")


def transforms(name: str) -> list[Callable[[Any], None]]:
    """Returns the call of a listed kernel."""
    spec = SPECS[name]
    return [functools.partial(check, name, *CALLS[spec.n, spec.twist, spec.chirp])]


def chirps(name: str) -> list[Callable[[Any], None]]:
    """Returns a transform that needs the chirps of one length."""
    return [functools.partial(check, name, "fft_pairs", (2, SPECS[name].n, 2), {})]


LENGTHS = (1, 2, 3, 8, 13, 16, 17, 60, 64, 243, 1009, 1024, 2048, 4096, 5005, 8192, 10007, 16384)
"""Lengths of one kernel and of several, with small factors and by chirps."""
SIDES: tuple[dict[str, Any], ...] = (
    {},
    {"inverse": True, "norm": "ortho"},
    {"source": "real"},
    {"source": "half", "sink": "real", "inverse": True},
)
"""Options of a transform of pairs, of reals to half a spectrum, and back."""


def edges() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yields labels and checks of transforms of rows and columns of all :data:`LENGTHS`; three
    rows do not fill a CTA.
    """
    for kind in ("f4", "f8"):
        for n in LENGTHS:
            yield f"fft_{kind}_{n}", functools.partial(check_length, kind, n)


def check_length(kind: str, n: int, device: Any) -> None:
    """Transforms three rows from and to each form, and columns beside them."""
    x = np.random.default_rng([SEED, n]).standard_normal((3, n, 2)).astype(kind)
    half = n // 2 + 1
    with ptxgen.use_device(device):
        for how in SIDES:
            given = {"real": x[..., 0], "half": x[:, :half]}.get(how.get("source", ""), x)
            how = {**how, "n": n} | ({"count": half} if how.get("source") == "real" else {})
            given = np.ascontiguousarray(given)
            expected = PAIRS.oracle(given, **how)
            same_bits(PAIRS.function(given, **how), expected, what=f"{kind} {n} {how}")
        columns = np.ascontiguousarray(x.swapaxes(0, 1))
        expected = PAIRS.oracle(columns, axis=0)
        same_bits(PAIRS.function(columns, axis=0), expected, what=f"{kind} {n}, columns")
