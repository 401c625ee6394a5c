"""The bf16 and f16 kernels on the FMA units, contract fma on exactly upcast operands.

``tier="auto"`` never selects this tier: it is for debugging, and for bits that depend on no tensor
core. So a layout has one kernel a regime, and the last route supports misaligned operands (at a
cost that docs/adr/029 states). Lines read as in tiles/simt.py; f16 shares the table of bf16. An
operand is either "raw" (16-bit elements in shared memory, upcast when threads read them, in kernels
that are bound by memory) or "held" (upcast in registers on the way to shared memory, so that the
main loop is that of the f32 kernels; templates/simt/operand.cuh.j2).
"""

from __future__ import annotations

from functools import partial

from ptxgen.lazy import LazyDict
from ptxgen.numerics.contract import DEFAULT_PLAN
from ptxgen.spec import LAYOUTS, Key, Route
from ptxgen.spec.simt import ReduceSpec, SimtSpec
from ptxgen.tiles.regimes import gemm, last, routes

COPIES = {  # name: (of A if k is contiguous, if m is; of B if k is contiguous, if n is)
    "raw": ("kvector", "vector", "kvector", "vector"),
    "thin": ("kvector", "scalar", "kvector", "vector"),
    "mixed": ("staged", "scalar", "kvector", "vector"),
    "held": ("staged", "packed", "staged", "packed"),
    "plain": ("transpose", "scalar", "transpose", "scalar"),
}

_gemm = partial(gemm, COPIES)


def _chunks(dtype: str, layout: str) -> tuple[Route, ...]:
    return (
        *(_split_k(dtype) if layout == "TN" else ()),
        *routes(_split(dtype, layout), "slices of a CTA divide the chunks"),
        *routes(_unsplit(dtype, layout), "reductions of one chunk"),
        last(_filler(dtype, layout)),
    )


def _split(dtype: str, layout: str) -> tuple[SimtSpec, ...]:
    """Returns the kernels of several slices: one for few rows, one for more."""
    if layout[1] == "T":
        thin = _gemm(dtype, layout, (8, 32, 64), (2, 4), (4, 8), (1, 1), 3, "thin", slices=8)
    elif layout == "NN":
        thin = _gemm(dtype, layout, (8, 32, 32), (4, 2), (2, 16), (1, 1), 4, "thin", slices=8)
    else:
        thin = _gemm(dtype, layout, (4, 32, 32), (2, 2), (2, 16), (1, 1), 4, "mixed", slices=8)
    flat = _gemm(dtype, layout, (32, 64, 16), (8, 8), (4, 8), (1, 1), 2, "held", slices=8)
    return thin, flat


def _unsplit(dtype: str, layout: str) -> tuple[SimtSpec, ...]:
    """Returns the kernels for reductions of one chunk, largest tiles first."""
    large = _gemm(dtype, layout, (128, 128, 16), (8, 8), (4, 8), (4, 2), 2, "held", ctas=2)
    middle = _gemm(dtype, layout, (64, 64, 16), (8, 4), (4, 8), (2, 2), 2, "held", ctas=4)
    small = _gemm(dtype, layout, (16, 32, 64), (2, 2), (4, 8), (2, 2), 4, "raw", ctas=4)
    return (large,) if layout == "TT" else (large, middle, small)


def _filler(dtype: str, layout: str) -> SimtSpec:
    """Returns the kernel of last resort, whose operands are copied element by element, for any
    alignment.
    """
    return _gemm(
        dtype,
        layout,
        (64, 64, 16),
        (8, 4),
        (4, 8),
        (2, 2),
        2,
        "plain",
        slices=1,
        persistent=True,
    )


def _split_k(dtype: str) -> tuple[Route, ...]:
    """Returns split-K routes, for weight gradients: few outputs of a long reduction."""

    def partial_sums(tile: tuple[int, int, int], thread: tuple[int, int], copies: str) -> SimtSpec:
        return _gemm(
            dtype, "TN", tile, thread, (4, 8), (2, 2), 2, copies, ctas=4, split="workspace"
        )

    vector = partial_sums((64, 64, 16), (8, 4), "held")
    plain = partial_sums((32, 64, 16), (4, 4), "plain")
    reason = "a long reduction: split-K, a CTA for each tile and chunk"
    return routes((vector, plain), reason, ReduceSpec(dtype=dtype))


def _continued(dtype: str) -> tuple[Route, ...]:
    """Returns routes of weight gradients that start from an earlier call's result."""
    tile = (64, 64, 16), (8, 4), (4, 8), (2, 2), 2
    return (last(_gemm(dtype, "TN", *tile, "plain", split="onto", persistent=True, ctas=3)),)


ROUTES: LazyDict[Key, tuple[Route, ...]] = LazyDict(
    {
        **{
            (layout, DEFAULT_PLAN, "half", "simt"): partial(_chunks, "bf16", layout)
            for layout in LAYOUTS
        },
        ("TN", "chain", "half", "simt"): partial(_continued, "bf16"),
    }
)
