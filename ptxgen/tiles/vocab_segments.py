"""Route tables of cross entropy over a vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ptxgen.expr import TRUE
from ptxgen.numerics.contract import TC16_CHUNKS
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.gemm import space
from ptxgen.spec.vocab_segments import PARTS, SPACE, LogitsSpec
from ptxgen.spec.wgmma import WgmmaSegmentsSpec


def key(part: str, capped: bool) -> Key:
    """Returns the key of the route table of ``part``, "segments" or "gradient". ``capped``: whether
    logits have a softcap.
    """
    return ("logits", part, *(["capped"] if capped else []))


def _table(part: str, capped: bool) -> RouteTable:
    route = Route(
        (LogitsSpec(part, capped),), TRUE, "the only kernel: warps compute runs of segments"
    )
    return RouteTable(SPACE, (route,), ("bf16", "f16", "f32", "f64"))


def product_key(storage: str, capped: bool) -> Key:
    """Returns the key of the route table of products that store segments (maxima and sums) instead
    of logits. ``storage``: layout of the operands, "NT" or "NN"; ``capped``: whether logits have a
    softcap.
    """
    return ("segments", storage, *(["capped"] if capped else []))


def _products(storage: str, capped: bool) -> RouteTable:
    one_chunk = WgmmaSegmentsSpec(
        layout=storage,
        bm=128,
        bn=256,
        bk=64,
        consumers=2,
        stages=4,
        registers=232,
        raster=16,
        has_softcap=capped,
    )
    several = replace(one_chunk, stages=3, split="serial", spilled_sums=80)
    routes = tuple(
        Route((kernel,), TRUE, "a product that stores maxima and sums of segments, but no logits")
        for kernel in (one_chunk, several)
    )
    return RouteTable(space(TC16_CHUNKS), routes, ("bf16", "f16"), partial=True)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    **{key(p, capped): partial(_table, p, capped) for p in PARTS for capped in (False, True)},
    **{
        product_key(storage, capped): partial(_products, storage, capped)
        for storage in ("NT", "NN")
        for capped in (False, True)
    },
}
"""Constructors of the route tables, by key."""
