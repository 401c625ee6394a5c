"""The tables of attention: of 16 bits, on tensor cores, and of f32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ptxgen.expr import TRUE, ceil_div
from ptxgen.numerics.attention import ATTENTION
from ptxgen.numerics.contract import AUTO_TIER
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.attention import (
    DEPTH,
    EXTRA,
    FEWEST,
    KEYS,
    LARGE,
    ROWS,
    SMS,
    SPACE,
    SPLITS,
    WIDE_MAX,
    WIDTH,
    AttentionSpec,
    HopperSpec,
    MaskedSpec,
    PagedSpec,
    tiles,
)
from ptxgen.spec.attention_decode import FITS, ClusterSpec, DecodeSpec, FewSpec
from ptxgen.spec.attention_mask import MaskSpec

SMALL = 99
"""KiB of shared memory that a CTA has on any architecture."""

THREE: Mapping[str, Any] = MappingProxyType(
    {"warps": 12, "registers": 152, "head": 64, "head_v": 64}
)
"""What makes Hopper's kernel one of three warpgroups, listed where it has registers."""
ONE: Mapping[str, Any] = MappingProxyType({"warps": 4, "registers": 216, "budget": 113})
"""One of a warpgroup, two CTAs an SM."""
ONE_KEYS_MAX = 512
"""The most keys for which it is chosen, however many tiles it has."""
AT_ONCE_KEYS_MAX, AT_ONCE_MAX = 4096, 128
"""The same where all of its tiles have a place at once, and up to which head dimension."""
LONGER = 4, 3
"""How long a round of three warpgroups takes, to one of two."""
FEWER_ROUNDS = 3, 5
"""Rounds of Hopper's CTAs that have a split, to those of CTAs that have all keys, below which they
are done sooner: their sums have to be stored, read and joined."""
THREE_MAX = 96
"""The largest head dimension for which these have registers."""

FEW_KEYS = 128
"""More keys than these are worth more warps."""
SEVERAL_KEYS = 256
"""More keys than these are worth a cluster of CTAs."""
WHOLE_SPLITS = 4
"""The most splits that a CTA has one after the other, where it might have one."""
SPLIT_TILES_MAX = 16
"""Tiles an SM beyond which it has enough warps for splits, however many a CTA has."""
SIXTEEN: Mapping[str, Any] = MappingProxyType({"warps": 16, "budget": 227, "min_arch": "sm_90"})
EIGHT: Mapping[str, Any] = MappingProxyType({"warps": 8, "budget": 227, "min_arch": "sm_90"})
FOUR: Mapping[str, Any] = MappingProxyType({"warps": 4, "budget": SMALL})
"""CTAs whose warps share 16 rows; the smallest are of any architecture."""
CLUSTERED = 15, 16
"""SMs that clusters have at once, of so many: those of a GPC are no multiple of a cluster. An H100
of 132 has room for 30 clusters of four, or 15 of eight."""


FEWEST_ROWS = 16
"""Rows of a sequence that are shared by warps; where these are one behind the other, on average."""
FEW_ROWS = (ROWS <= FEWEST_ROWS) | (ROWS < EXTRA * FEWEST_ROWS)

BRIEF = (KEYS <= ONE_KEYS_MAX) & ((FEWEST <= SMS) | (FEWEST <= SMS * 2) & (KEYS <= FEW_KEYS))
"""Short prompts, where an SM has one tile of so many rows, or two of fewest keys: they share these,
too, where Hopper's kernel of one warpgroup has no registers, and elsewhere than on Hopper."""


def _few(dtype: str) -> list[Route]:
    """Of so few keys that a CTA has all at once; of more, where it has an SM."""
    alone = FEWEST <= SMS
    routes = []
    for warps, where in (8, FEW_ROWS | alone), (16, alone):
        spec = FewSpec(warps=warps, dtype=dtype)
        why = f"few rows and keys: {warps} warps have all at once"
        routes.append(Route((spec,), where & (KEYS <= spec.capacity), why))
    return routes


def _decode(dtype: str) -> list[Route]:
    """Of few rows of a sequence."""
    join = DecodeSpec(part="join", warps=16, dtype=dtype)
    few = FEW_ROWS | BRIEF
    # CTAs that have all keys fill the SMs at once, or in rounds, the last nearly full; of many keys
    # those that have a split are faster all the same.
    filled = (FEWEST * 10 >= SMS * 9) & (FEWEST <= SMS * 2)
    even = ceil_div(FEWEST, SMS * 2) * SMS * 16 <= FEWEST * 9
    several = few & (SPLITS > 1) & ((SPLITS > WHOLE_SPLITS) | (~filled & ~even))
    # So few that all CTAs of clusters run at once; fewer keys take no longer without.
    least = FEW_ROWS & (KEYS > SEVERAL_KEYS)
    clusters = []
    each = ((c, p) for c in FITS for p in ClusterSpec.parts)
    for of in (ClusterSpec(part=p, dtype=dtype, cluster=c) for c, p in each):
        number, after = (SPLITS > 1, (join,)) if of.part == "split" else (SPLITS.eq(1), ())
        why = f"fewest rows: {of.cluster} CTAs share 16"
        fits = of.grid * CLUSTERED[1] <= SMS * CLUSTERED[0]
        clusters.append(Route((of, *after), least & number & fits, why))
    some = FEWEST <= SMS * SPLIT_TILES_MAX
    why = "few rows: {} warps share 16, a CTA has {}"
    splits, wholes = [], []
    # CTAs that have an SM each; of more tiles than SMs one has as many as fit.
    alone = FEWEST <= SMS
    apart = FEWEST * SPLITS <= SMS, alone & (KEYS > FEW_KEYS)
    for shape, filling, enough in ((SIXTEEN, *apart), (EIGHT, some, alone), (FOUR, TRUE, TRUE)):
        split, whole = (DecodeSpec(part=p, dtype=dtype, **shape) for p in ("split", "whole"))
        splits.append(Route((split, join), several & filling, why.format(split.warps, "a split")))
        wholes.append(Route((whole,), few & enough, why.format(whole.warps, "all keys")))
    return [*clusters, *splits, *wholes]


def _hopper(kind: type[HopperSpec], dtype: str) -> list[Route]:
    """Three warpgroups where a thread's sums of values leave them room, and rounds are so many
    fewer; one where keys, rows or tiles are few; two of wide heads, however few rows. Of few tiles
    and many keys a CTA has a split.
    """
    one, two, three = (kind(dtype=dtype, **how) for how in (ONE, {}, THREE))
    of_one, of_two = (replace(spec, part="split") for spec in (one, two))
    of_three, of_others = LONGER
    held = (DEPTH <= THREE_MAX) & (WIDTH <= THREE_MAX)
    wide = three.rows // 2 < ROWS
    rounds = ceil_div(tiles(three.rows), SMS), ceil_div(LARGE, SMS)
    several = held & (rounds[0] * of_three <= rounds[1] * of_others)
    narrow = (DEPTH <= AT_ONCE_MAX) & (WIDTH <= AT_ONCE_MAX) & (KEYS <= AT_ONCE_KEYS_MAX)
    at_once = narrow & (tiles(one.rows) <= SMS * one.slots)
    few = (KEYS <= ONE_KEYS_MAX) | (ROWS <= one.rows) | (tiles(one.rows) <= SMS)
    short = at_once | (WIDTH <= WIDE_MAX) & few
    many = (one.rows < ROWS) & ~FEW_ROWS
    # Rounds of CTAs, a split each; those that have all keys have one after the other.
    split, whole = ceil_div(LARGE * SPLITS, SMS), ceil_div(LARGE, SMS) * SPLITS
    fewer, than = FEWER_ROUNDS
    sooner = (LARGE < SMS * 2) & ~several & (split * than < whole * fewer)
    alone = (WIDTH <= WIDE_MAX) & ((ROWS <= one.rows) | (of_one.items <= SMS))
    more = {PagedSpec: ", of pages", MaskedSpec: ", a map of the mask"}.get(kind, "")
    why = f"Hopper: wgmma, the copy engine{more}"
    before = (MaskSpec(),) if kind.mapped else ()
    joins = {
        s: AttentionSpec(warps=s.warps, budget=SMALL, part="join", dtype=dtype)
        for s in (of_one, of_two)
    }
    of_split = f"{why}, few rows, many keys: a CTA has a split"
    return [
        Route((*before, of_one, joins[of_one]), ~FEW_ROWS & sooner & alone, of_split),
        Route((*before, of_two, joins[of_two]), many & sooner, of_split),
        Route((*before, three), many & wide & several & ~at_once, f"{why}: three warpgroups"),
        Route((*before, one), ~FEW_ROWS & short, f"{why}: one warpgroup"),
        Route((*before, two), ~FEW_ROWS & ((WIDTH <= WIDE_MAX) | ~BRIEF), why),
    ]


def _table(
    dtype: str,
    *ctas: tuple[int, int],
    half: bool = False,
    pinned: tuple[AttentionSpec, ...] = (),
) -> RouteTable:
    """``ctas``: warps, and KiB of shared memory, of CTAs, the larger first."""
    contract = ATTENTION[AUTO_TIER[dtype]]
    routes = []
    if half:
        # Short prompts of more keys are Hopper's before they are decode's.
        routes = _few(dtype)
        routes += [r for kind in (MaskedSpec, HopperSpec, PagedSpec) for r in _hopper(kind, dtype)]
        routes += _decode(dtype)
    for warps, budget in ctas:
        whole, split, join = (
            AttentionSpec(warps=warps, budget=kib, part=part, dtype=dtype, contract=contract)
            for part, kib in (("whole", budget), ("split", SMALL), ("join", SMALL))
        )
        wanted = TRUE if (warps, budget) == ctas[-1] else whole.rows // 2 < ROWS
        few = wanted & (SPLITS > 1) & (whole.grid < SMS * 2)
        routes.append(Route((split, join), few, "few rows, many keys: a CTA has a split"))
        routes.append(Route((whole,), wanted, "a CTA has all keys"))
    return RouteTable(SPACE, tuple(routes), (dtype,), opened=True, pinned=lambda: pinned)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("attention", "half"): lambda: _table(
        "bf16",
        (4, 163),
        (2, SMALL),
        half=True,
        pinned=(AttentionSpec(64, 64, rounded=True),),
    ),
    ("attention", "f32"): lambda: _table("f32", (2, SMALL)),
}
"""What makes the tables."""
