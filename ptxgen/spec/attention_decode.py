"""Attention of few rows, contract ``attention/2``: the warps of a CTA, or of a cluster of these,
share 16 rows of a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr, all_of
from ptxgen.numerics.attention import HEAD_MAX, SPLIT
from ptxgen.spec.attention import DEPTH, KEYS, SPLITS, STEP, WIDTH, AttentionSpec, laid_out
from ptxgen.spec.base import ARCHITECTURES, WARP, check

RING_MAX = 6
"""The longest ring of tiles."""
LOADERS = 4
"""Warps that bring tiles to a CTA that has an SM."""
KEYS_MAX = 128
"""The most keys of a tile."""
TILE_MAX = 52 << 10
"""Bytes of the largest tile of 16 keys a warp."""
WIDE_MAX = 1 << 10
"""The largest head dimension, times warps, of two CTAs on an SM."""
ALONE = 16
"""Warps of a CTA that has an SM."""
ALONE_MAX = 128
"""The largest head dimension for which their threads have registers."""
OF_WARP = 16, 32
"""Keys that a warp of a cluster may have scores of."""
FITS = {4: 128, 8: HEAD_MAX}
"""The largest head dimension whose keys and values fit the shared memory of a cluster's CTAs."""
HELD = {8: HEAD_MAX, 16: 192}
"""The same of a CTA of so many warps, each of which has 16 keys."""


@dataclass(frozen=True)
class DecodeSpec(AttentionSpec):
    """A CTA of ``warps`` warps has 16 rows against a split of the keys ("split"), or against all
    ("whole"); "join" joins the splits.
    """

    warps: int = 4
    budget: int = 99
    part: str = "split"

    family: ClassVar[str] = "attention_decode"
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionSpec.meanings,
        "warps": "warps, that share 16 rows",
    }

    def __post_init__(self) -> None:
        self.check_form()
        self.check_choices(tier=("tc",), warps=(4, 8, 16))
        if self.part != "join" and self.wide <= self.wide_max:
            name = type(self).__name__
            held = self.span // self.tile, 2
            check(self.stages >= max(held), name, "stages in the budget", self.stages, max(held))

    def check_memory(self) -> None:
        """Raises SpecError for more shared memory than the budget, with heads that it takes."""
        if self.wide <= self.wide_max:
            most, name = self.budget << 10, type(self).__name__
            check(self.shared_bytes <= most, name, "shared memory", self.shared_bytes, most)

    @property
    def template(self) -> str:  # type: ignore[override]
        return f"attention/{'join' if self.part == 'join' else 'decode'}.cu.j2"

    @property
    def rows(self) -> int:
        return 16

    # -- what a CTA has ---------------------------------------------------------------------
    @property
    def wide(self) -> int:
        """The larger head dimension, filled up: keys and values take turns in the ring."""
        return max(self.depth, self.width)

    @property
    def wide_max(self) -> int:
        """The largest head dimension that it takes; a spec of a wider one tells so."""
        return HEAD_MAX if self.part == "join" or self.warps < ALONE else ALONE_MAX

    @property
    def loaders(self) -> int:
        """Warps that bring tiles: two of each CTA that shares an SM."""
        return 2 if self.shares else LOADERS

    @property
    def threads(self) -> int:
        loaders = 0 if self.part == "join" else self.loaders
        return super().threads + loaders * WARP

    @property
    def keys(self) -> int:
        """Keys of a tile, to a warp of the CTA."""
        fits = 16 * self.warps <= KEYS_MAX and 16 * self.warps * self.pitch(self.wide) <= TILE_MAX
        return 16 if fits else 8

    @property
    def tile(self) -> int:
        return self.warps * self.keys

    @property
    def span(self) -> int:
        """Keys whose weights are made at a time: a warp has 32, of one tile."""
        return self.warps * WARP

    @property
    def weights_pitch(self) -> int:
        """Bytes of a row of weights: 4 rows' 8 words lie in different banks."""
        return self.span * 4 + 32

    @property
    def stage(self) -> int:
        """Bytes of a tile of keys, or of values."""
        return self.tile * self.pitch(self.wide)

    @property
    def stages(self) -> int:
        """Tiles that there is room for."""
        return min(RING_MAX, (self._room - self.at["end"]) // self.stage)

    @property
    def _room(self) -> int:
        """Bytes of shared memory: no more than two CTAs of an SM may have, where two tiles fit, and
        threads have registers for wide queries.
        """
        most = self.budget << 10
        return min(most, ARCHITECTURES["sm_90"].shared_for(2)) if self.shares else most

    @property
    def shares(self) -> bool:
        """Whether CTAs share an SM."""
        few = self.warps < ALONE and self.wide * self.warps <= WIDE_MAX
        half = ARCHITECTURES["sm_90"].shared_for(2)
        return few and half - self.at["end"] >= 2 * self.stage

    @property
    def at(self) -> Mapping[str, int]:
        """Offsets in shared memory: queries; weights, rounded and not; what blocks multiply
        sums by; the largest scores of warps' keys; rows' sums of weights; the stages' barriers, two
        each; behind these the ring.
        """
        return laid_out(
            queries=self.rows * self.pitch(self.wide),
            rounded=self.rows * self.pitch(self.span),
            weights=self.rows * self.weights_pitch,
            factors=self.rows * (self.span // self.block) * 4,
            maxima=self.rows * self.maxima_pitch * 4,
            totals=self.rows * 4,
            barriers=RING_MAX * 16,
        )

    @property
    def maxima_pitch(self) -> int:
        """Numbers of a row of the largest scores: 8 rows' vectors lie in different banks."""
        return self.warps + 4

    @property
    def requires(self) -> Expr:
        most = self.wide_max
        held = () if most == HEAD_MAX else (DEPTH <= most, WIDTH <= most)
        return all_of((*held, super().requires))

    @property
    def ctas(self) -> int:
        """CTAs that may share an SM: threads have 96 registers, or more."""
        fits = (n for n in (3, 2) if self.shared_bytes <= ARCHITECTURES["sm_90"].shared_for(n))
        return min(next(fits, 1), 512 // (self.warps * WARP))


@dataclass(frozen=True)
class ClusterSpec(DecodeSpec):
    """A cluster of ``cluster`` CTAs has 16 rows and a split of the keys ("split"), or all keys, of
    which there are no more than a split has ("whole"). Each CTA has scores of some keys, and sums
    up some columns of values. All of them are on their way at once.
    """

    warps: int = 8
    cluster: int = 4
    budget: int = 227
    min_arch: str = "sm_90"

    family: ClassVar[str] = "attention_cluster"
    parts: ClassVar[tuple[str, ...]] = ("whole", "split")
    meanings: ClassVar[Mapping[str, str]] = {
        **DecodeSpec.meanings,
        "warps": "warps of a CTA",
        "cluster": "CTAs of a cluster, that share 16 rows",
    }

    def __post_init__(self) -> None:
        self.check_form()
        name = type(self).__name__
        self.check_choices(tier=("tc",), cluster=[*FITS])
        check(self.unit in OF_WARP, name, "keys of a warp", self.unit, OF_WARP)
        groups = self.columns // STEP
        check(groups < self.warps, name, "groups of columns", groups, f"< {self.warps}")
        self.check_memory()

    @property
    def template(self) -> str:  # type: ignore[override]
        return "attention/cluster.cu.j2"

    # -- what a CTA has ---------------------------------------------------------------------
    @property
    def loaders(self) -> int:
        return 0

    @property
    def unit(self) -> int:
        """Keys that a warp has scores of."""
        return SPLIT // (self.cluster * self.warps)

    @property
    def columns(self) -> int:
        """Columns of values that a CTA sums up."""
        return -(-self.width // (STEP * self.cluster)) * STEP

    @property
    def units(self) -> int:
        """Of a split."""
        return self.cluster * self.warps

    @property
    def at(self) -> Mapping[str, int]:
        """Offsets of areas in shared memory: queries; rounded weights; the largest scores of units;
        rows' sums of weights; the barriers that maxima and others' weights are waited for at; where
        keys of pages lie; weights of some rows and all keys; a warp's keys; values.
        """
        return laid_out(
            queries=self.rows * self.pitch(self.wide),
            rounded=SPLIT * self.rows * self.itemsize,
            maxima=self.rows * self.units * 4,
            totals=self.rows * 4,
            barriers=16,
            lies=SPLIT * 8,
            weights=self.rows // self.cluster * SPLIT * 4,
            keys=self.warps * self.of_warp,
            values=SPLIT * self.pitch(self.columns),
        )

    @property
    def of_warp(self) -> int:
        """Bytes of a warp's keys, and then of their weights."""
        return self.unit * max(self.pitch(self.depth), self.rows * 4)

    @property
    def shared_bytes(self) -> int:
        return self.at["end"]

    # -- where it is right ------------------------------------------------------------------
    @property
    def grid(self) -> Expr:
        return super().grid * self.cluster

    @property
    def wide_max(self) -> int:
        return FITS[self.cluster]

    @property
    def requires(self) -> Expr:
        all_keys = () if self.part == "split" else (SPLITS.eq(1),)
        return all_of((*all_keys, super().requires))

    @property
    def work(self) -> str:
        what = f"{self.rows} rows and a split of keys a cluster of {self.cluster} CTAs"
        return f"{what}, {self.columns} columns each"


@dataclass(frozen=True)
class FewSpec(DecodeSpec):
    """A CTA of ``warps`` warps has 16 rows and all keys, of which each warp has 16."""

    warps: int = 8
    budget: int = 227
    part: str = "whole"
    min_arch: str = "sm_90"

    family: ClassVar[str] = "attention_few"
    parts: ClassVar[tuple[str, ...]] = ("whole",)

    def __post_init__(self) -> None:
        self.check_form()
        self.check_choices(tier=("tc",), warps=(8, 16))
        self.check_memory()

    @property
    def template(self) -> str:  # type: ignore[override]
        return "attention/few.cu.j2"

    # -- what a CTA has ---------------------------------------------------------------------
    @property
    def loaders(self) -> int:
        return 0

    @property
    def unit(self) -> int:
        """Keys that a warp has scores of."""
        return STEP

    @property
    def capacity(self) -> int:
        """Keys of a CTA."""
        return self.unit * self.warps

    @property
    def columns(self) -> int:
        """Columns of values that a warp sums up."""
        return -(-self.width // (STEP * self.warps)) * STEP

    @property
    def weights_pitch(self) -> int:
        return self.capacity * 4 + 32

    @property
    def at(self) -> Mapping[str, int]:
        """Offsets of areas in shared memory: queries; rounded weights; the largest scores of warps;
        keys, and then weights; values.
        """
        keys = self.capacity * self.pitch(self.depth)
        return laid_out(
            queries=self.rows * self.pitch(self.depth),
            rounded=self.rows * self.pitch(self.capacity),
            maxima=self.rows * self.warps * 4,
            keys=max(keys, self.rows * self.weights_pitch),
            values=self.capacity * self.pitch(self.width),
        )

    @property
    def shared_bytes(self) -> int:
        return self.at["end"]

    # -- where it is right ------------------------------------------------------------------
    @property
    def wide_max(self) -> int:
        return HELD[self.warps]

    @property
    def requires(self) -> Expr:
        return all_of((KEYS <= self.capacity, super().requires))

    @property
    def work(self) -> str:
        return f"{self.rows} rows and all keys, up to {self.capacity}, a CTA"
