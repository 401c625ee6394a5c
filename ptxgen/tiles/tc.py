"""The routes of the tc tier: kernels of the wgmma and mma families, contract tc16.

Predicted times choose the kernel of a problem (:mod:`ptxgen.cost.tuning`); the order here does not
matter. Regimes:

- *few rows* (M <= 64): the weight is read once, by mma kernels with swapped operands;
- *more rows*: wgmma kernels, on Hopper, and mma kernels, with tiles of many sizes, as the SM with
  the most outputs takes the longest;
- few outputs of a long reduction: CTAs compute a chunk each, and a reduce kernel adds them;
- operands too misaligned for vector copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ptxgen.lazy import LazyDict
from ptxgen.numerics.contract import DEFAULT_PLAN, TC16
from ptxgen.spec import LAYOUTS, Key, Route
from ptxgen.spec.simt import ReduceSpec
from ptxgen.tiles import mma, realign, wgmma
from ptxgen.tiles.regimes import last, routes

_SWAPPED = "more than 64 rows, which tiles of 64 do not divide: by wgmma with swapped operands"


def _chunks(layout: str, dtype: str) -> tuple[Route, ...]:
    if layout == "TT":
        return _serial(layout, dtype)
    few = (mma.few_rows_partial(layout, dtype),)
    return (
        *routes(few, "few rows, few outputs: split-K, by mma", _reduce(dtype)),
        *_split_k(layout, dtype),
        *_serial(layout, dtype),
    )


def _reduce(dtype: str) -> ReduceSpec:
    return ReduceSpec(dtype=dtype, contract=TC16)


def _split_k(layout: str, dtype: str) -> Iterator[Route]:
    """Yields split-K routes: a CTA for each tile and chunk, and a kernel that adds the chunks."""
    reduce = _reduce(dtype)
    fast, others = wgmma.partial(layout, dtype), mma.partial(layout, dtype)
    yield from routes(
        (*fast, *wgmma.swapped_partial(layout, dtype), *others),
        "a long reduction: split-K, a CTA for each tile and chunk",
        reduce,
    )
    for kernel in fast:
        yield from realign.routes(kernel, reduce, operands=_copied(layout))


def _serial(layout: str, dtype: str) -> tuple[Route, ...]:
    """Returns the routes without split-K. ``mma.specs`` has kernels for few rows first, then tiles
    from small to large, then kernels for misaligned operands.
    """
    *kernels, filler = mma.specs(layout, dtype)
    vector = [s for s in kernels if s.copy_a == s.copy_b == "vector"]
    return (
        *routes((s for s in vector if s.streamed), "few rows: the weight is read once"),
        *routes(wgmma.specs(layout, dtype), "many rows, by wgmma"),
        *routes(wgmma.swapped(layout, dtype), _SWAPPED),
        *routes((s for s in vector if not s.streamed), "many rows, by mma"),
        *(_realigned(layout, dtype) if layout != "TT" else ()),
        *routes((s for s in kernels if s not in vector), "operands not aligned to 16 bytes"),
        last(filler),
    )


def _realigned(layout: str, dtype: str) -> Iterator[Route]:
    """Yields routes that first copy misaligned operands."""
    for tile in (128, 256), (128, 128), (64, 64), (64, 16):
        for split in "none", "serial":  # of one chunk, and of several
            fitting = (
                s for s in wgmma.specs(layout, dtype) if (s.bm, s.bn, s.split) == (*tile, split)
            )
            if kernel := next(fitting, None):
                yield from realign.routes(kernel, operands=_copied(layout))
    for large in (s for s in mma.specs(layout, dtype) if (s.bm, s.bn) == (128, 128)):
        yield from realign.routes(large, operands=("ab",))


def _copied(layout: str) -> tuple[str, ...]:
    """Returns the sets of operands to realign, a route for each: "a", "b", and "ab", both. In
    layout NT rows of A and B have K elements, so that both tend to be misaligned, or neither.
    """
    return ("ab",) if layout == "NT" else ("a", "b", "ab")


def _continued(dtype: str) -> tuple[Route, ...]:
    """Returns routes of weight gradients that start from an earlier call's result."""
    fast = wgmma.continued(dtype)
    large, filler = mma.continued(dtype)
    return (
        *routes(fast, "one chain that continues an earlier result, by wgmma"),
        *(r for k in fast if k.bm == 128 for r in realign.routes(k, operands=("a",))),
        *routes((large,), "one chain that continues an earlier result, by mma"),
        last(filler),
    )


ROUTES: LazyDict[Key, tuple[Route, ...]] = LazyDict(
    {
        **{
            (layout, DEFAULT_PLAN, "half", "tc"): partial(_chunks, layout, "bf16")
            for layout in LAYOUTS
        },
        ("TN", "chain", "half", "tc"): partial(_continued, "bf16"),
    }
)
