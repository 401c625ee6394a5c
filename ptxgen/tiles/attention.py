"""Route tables of attention: 16-bit dtypes on tensor cores, and f32 on FMA units."""

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
    DECODE_TILES,
    DEPTH,
    JOINED,
    KEYS,
    PAGED,
    RAGGED,
    ROWS,
    SMS,
    SPACE,
    SPLITS,
    TILES_16,
    TILES_128,
    WIDE_MAX,
    WIDTH,
    AttentionSpec,
    HopperSpec,
    MaskedSpec,
    PagedSpec,
    tiles,
)
from ptxgen.spec.attention_decode import CLUSTER_WIDTH_MAX, ClusterSpec, DecodeSpec, FewSpec
from ptxgen.spec.attention_mask import MaskSpec

SMALL = 99
"""KiB of shared memory that a CTA may have on every architecture."""

THREE: Mapping[str, Any] = MappingProxyType(
    {"warps": 12, "registers": 152, "head_dim": 64, "head_dim_v": 64}
)
"""Fields of the Hopper kernel with three consumer warpgroups, with head dimensions that fit its
registers."""
ONE: Mapping[str, Any] = MappingProxyType({"warps": 4, "registers": 216, "shared_kib": 113})
"""Fields of the Hopper kernel with one consumer warpgroup, two CTAs per SM."""
ONE_KEYS_MAX = 512
"""Most keys for which Hopper's kernel with one warpgroup is chosen, whatever the number of its
tiles."""
AT_ONCE_KEYS_MAX, AT_ONCE_MAX = 4096, 128
"""Most keys, and largest head dimension, for which Hopper's kernel with one warpgroup is chosen if
all its tiles run concurrently."""
WAVE_TIME_RATIO = 4, 3
"""Ratio, 4 to 3, of the time of a wave of CTAs with three warpgroups to one with two."""
SPLIT_WAVE_RATIO = 3, 5
"""Waves of split CTAs, relative to waves of CTAs with all keys, below which splitting is faster:
``waves(split) < 3/5 * waves(unsplit)``. Partial results have to be stored, read and combined."""
THREE_MAX = 96
"""Largest head dimension whose accumulators fit the registers of three warpgroups."""

FEW_KEYS = 128
"""Most keys of a decode for which more warps in a CTA do not pay off."""
SEVERAL_KEYS = 256
"""Most keys of a decode for which a cluster of CTAs does not pay off."""
WHOLE_SPLITS = 4
"""Most splits that a decode CTA computes one after the other."""
SPLIT_TILES_MAX = 16
"""Tiles for each SM beyond which decode CTAs of 8 warps with one split each no longer pay off."""
SIXTEEN: Mapping[str, Any] = MappingProxyType({"warps": 16, "shared_kib": 227, "min_arch": "sm_90"})
EIGHT: Mapping[str, Any] = MappingProxyType({"warps": 8, "shared_kib": 227, "min_arch": "sm_90"})
FOUR: Mapping[str, Any] = MappingProxyType({"warps": 4, "shared_kib": SMALL})
"""Fields of decode kernels, whose warps share 16 rows; ``FOUR`` runs on every architecture."""
CLUSTER_SM_SHARE = 15, 16
"""Share of the SMs that clusters can occupy, 15/16: the SMs of a GPC are no multiple of a cluster.
An H100 with 132 SMs holds 30 clusters of four CTAs, or 15 of eight. In pages, clusters may have as
many CTAs as there are SMs: tables are longer than most of their sequences."""


FEWEST_ROWS = 16
"""Most rows of a sequence (in ragged batches: on average) for which the warps of a CTA share the
rows, as in decode."""
FEW_ROWS = ROWS <= RAGGED * FEWEST_ROWS

SHORT_PROMPTS = (KEYS <= ONE_KEYS_MAX) & (
    (TILES_16 <= SMS) | (TILES_16 <= SMS * 2) & (KEYS <= FEW_KEYS)
)
"""Predicate of short prompts with so few tiles that decode kernels compute them: one tile of 16
rows for each SM, or two with the fewest keys. It applies where Hopper's kernel of one warpgroup
lacks registers, and on other architectures."""


def _few(dtype: str) -> list[Route]:
    """Returns the routes for sequences with so few keys that a CTA loads all of them together: up
    to 128 keys with 8 warps, up to 256 with 16 warps if each CTA has an SM to itself.
    """
    alone = TILES_16 <= SMS
    routes = []
    for warps, where in (8, FEW_ROWS | alone), (16, alone):
        spec = FewSpec(warps=warps, dtype=dtype)
        why = f"few rows and keys: {warps} warps share 16 rows and load all keys together"
        routes.append(Route((spec,), where & (KEYS <= spec.capacity), why))
    return routes


def _decode(dtype: str) -> list[Route]:
    """Returns the decode routes, for few rows of a sequence. They are preferred by DECODE_TILES:
    TILES_16, the most tiles that a ragged batch may have, is up to 15/16 larger than their number
    in a step of decoding, and the tiles beyond have no rows.
    """
    join = DecodeSpec(part="join", warps=JOINED, dtype=dtype)
    few = FEW_ROWS | SHORT_PROMPTS
    # CTAs with all keys fill the SMs at once (filled), or in waves of which the last is nearly full
    # (even). With many keys, CTAs with a split are faster all the same.
    filled = (DECODE_TILES * 10 >= SMS * 9) & (DECODE_TILES <= SMS * 2)
    even = ceil_div(DECODE_TILES, SMS * 2) * SMS * 16 <= DECODE_TILES * 9
    several = few & (SPLITS > 1) & ((SPLITS > WHOLE_SPLITS) | (~filled & ~even))
    # Clusters: only if all of them run at once, and not for few keys, which gain nothing.
    least = FEW_ROWS & (KEYS > SEVERAL_KEYS)
    clusters = []
    each = ((c, p) for c in CLUSTER_WIDTH_MAX for p in ClusterSpec.parts)
    for of in (ClusterSpec(part=p, dtype=dtype, cluster=c) for c, p in each):
        number, after = (SPLITS > 1, (join,)) if of.part == "split" else (SPLITS.eq(1), ())
        why = f"few rows: a cluster of {of.cluster} CTAs shares 16 rows"
        ctas = DECODE_TILES * SPLITS * of.cluster
        at_once = ctas * CLUSTER_SM_SHARE[1] <= SMS * CLUSTER_SM_SHARE[0]
        fits = at_once | (PAGED > 0) & (ctas <= SMS)
        clusters.append(Route((of, *after), least & number & fits, why))
    some = TILES_16 <= SMS * SPLIT_TILES_MAX
    why = "few rows: {} warps share 16 rows, a CTA streams {}"
    splits, wholes = [], []
    # Large CTAs where each has an SM of its own; with more tiles, small ones that share an SM.
    alone = TILES_16 <= SMS
    apart = DECODE_TILES * SPLITS <= SMS, alone & (KEYS > FEW_KEYS)
    for shape, filling, enough in ((SIXTEEN, *apart), (EIGHT, some, alone), (FOUR, TRUE, TRUE)):
        split, whole = (DecodeSpec(part=p, dtype=dtype, **shape) for p in ("split", "whole"))
        splits.append(
            Route((split, join), several & filling, why.format(split.warps, "a split of the keys"))
        )
        wholes.append(Route((whole,), few & enough, why.format(whole.warps, "all keys")))
    return [*clusters, *splits, *wholes]


def _hopper(kind: type[HopperSpec], dtype: str) -> list[Route]:
    """Returns the routes of Hopper's persistent kernels of class ``kind``.

    Three warpgroups where their accumulators fit and save enough waves (:data:`WAVE_TIME_RATIO`);
    one where keys, rows or tiles are few; two for wide heads with any number of rows. With few
    tiles and many keys a CTA computes one split.
    """
    one, two, three = (kind(dtype=dtype, **how) for how in (ONE, {}, THREE))
    of_one, of_two = (replace(spec, part="split") for spec in (one, two))
    of_three, of_others = WAVE_TIME_RATIO
    held = (DEPTH <= THREE_MAX) & (WIDTH <= THREE_MAX)
    wide = three.rows // 2 < ROWS
    rounds = ceil_div(tiles(three.rows), SMS), ceil_div(TILES_128, SMS)
    several = held & (rounds[0] * of_three <= rounds[1] * of_others)
    narrow = (DEPTH <= AT_ONCE_MAX) & (WIDTH <= AT_ONCE_MAX) & (KEYS <= AT_ONCE_KEYS_MAX)
    at_once = narrow & (tiles(one.rows) <= SMS * one.slots)
    few = (KEYS <= ONE_KEYS_MAX) | (ROWS <= one.rows) | (tiles(one.rows) <= SMS)
    short = at_once | (WIDTH <= WIDE_MAX) & few
    many = (one.rows < ROWS) & ~FEW_ROWS
    # Waves, in units of one split: CTAs with a split each, and CTAs that take all splits in turn.
    split, whole = ceil_div(TILES_128 * SPLITS, SMS), ceil_div(TILES_128, SMS) * SPLITS
    fewer, than = SPLIT_WAVE_RATIO
    sooner = (TILES_128 < SMS * 2) & ~several & (split * than < whole * fewer)
    alone = (WIDTH <= WIDE_MAX) & ((ROWS <= one.rows) | (of_one.items <= SMS))
    more = {PagedSpec: ", paged keys", MaskedSpec: ", bit map of the mask"}.get(kind, "")
    why = f"Hopper: wgmma and TMA{more}"
    before = (MaskSpec(),) if kind.mapped else ()
    joins = {
        s: AttentionSpec(warps=s.warps, shared_kib=SMALL, part="join", dtype=dtype)
        for s in (of_one, of_two)
    }
    of_split = f"{why}; few rows, many keys: a CTA computes a split"
    return [
        Route((*before, of_one, joins[of_one]), ~FEW_ROWS & sooner & alone, of_split),
        Route((*before, of_two, joins[of_two]), many & sooner, of_split),
        Route(
            (*before, three), many & wide & several & ~at_once, f"{why}; three consumer warpgroups"
        ),
        Route((*before, one), ~FEW_ROWS & short, f"{why}; one consumer warpgroup"),
        Route(
            (*before, two),
            ~FEW_ROWS & ((WIDTH <= WIDE_MAX) | ~SHORT_PROMPTS),
            f"{why}; two consumer warpgroups",
        ),
    ]


def _table(
    dtype: str,
    *ctas: tuple[int, int],
    half: bool = False,
    pinned: tuple[AttentionSpec, ...] = (),
) -> RouteTable:
    """Returns the route table of a dtype. ``ctas``: warps, and KiB of shared memory, of the
    portable kernels, largest first. ``half``: adds the routes of 16-bit dtypes, decode and Hopper's
    kernels. ``pinned``: kernels that no route lists, but goldens hold.
    """
    contract = ATTENTION[AUTO_TIER[dtype]]
    routes = []
    if half:
        # Short prompts with more keys take Hopper's kernels rather than decode kernels.
        routes = _few(dtype)
        routes += [r for kind in (MaskedSpec, HopperSpec, PagedSpec) for r in _hopper(kind, dtype)]
        routes += _decode(dtype)
    for warps, budget in ctas:
        whole, split, join = (
            AttentionSpec(warps=warps, shared_kib=kib, part=part, dtype=dtype, contract=contract)
            for part, kib in (("whole", budget), ("split", SMALL), ("join", SMALL))
        )
        wanted = TRUE if (warps, budget) == ctas[-1] else whole.rows // 2 < ROWS
        few = wanted & (SPLITS > 1) & (whole.grid < SMS * 2)
        routes.append(
            Route((split, join), few, "portable; few rows, many keys: a CTA computes a split")
        )
        routes.append(Route((whole,), wanted, "portable; a CTA streams all keys"))
    return RouteTable(SPACE, tuple(routes), (dtype,), opened=True, pinned=lambda: pinned)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("attention", "half"): lambda: _table(
        "bf16",
        (4, 163),
        (2, SMALL),
        half=True,
        pinned=(AttentionSpec(64, 64, rounds_scores=True),),
    ),
    ("attention", "f32"): lambda: _table("f32", (2, SMALL)),
}
"""Constructors of the route tables, by key."""
