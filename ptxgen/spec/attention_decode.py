"""Attention with few rows (decode), contract ``attention/2``: the warps of a CTA, or of a cluster,
share 16 rows of a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr, all_of
from ptxgen.numerics.attention import HEAD_MAX, SPLIT
from ptxgen.spec.attention import DEPTH, KEYS, SPLITS, STEP, WIDTH, AttentionSpec, area_offsets
from ptxgen.spec.base import ARCHITECTURES, WARP, check

RING_MAX = 6
"""Most stages of the ring of keys and values."""
LOADERS = 4
"""Producer warps of a CTA that does not share an SM."""
KEYS_MAX = 128
"""Most keys of a tile at 16 keys a warp; in larger CTAs a warp has 8."""
TILE_MAX = 52 << 10
"""Most bytes of a tile with 16 keys a warp."""
WIDE_MAX = 1 << 10
"""Largest product of head dimension and warps at which two CTAs share an SM."""
LARGE_CTA_WARPS = 16
"""Warps of a CTA that does not share an SM."""
LARGE_CTA_WIDTH_MAX = 128
"""Largest head dimension whose accumulators fit the registers of CTAs of :data:`LARGE_CTA_WARPS`
warps."""
WARP_KEYS = 16, 32
"""Legal numbers of keys whose scores one warp of a cluster computes."""
CLUSTER_WIDTH_MAX = {4: 128, 8: HEAD_MAX}
"""Largest head dimension at which a cluster's shared memory holds all keys and values of one split,
by the number of CTAs of the cluster."""
CTA_WIDTH_MAX = {8: HEAD_MAX, 16: 192}
"""Largest head dimension whose keys and values fit shared memory with 16 keys a warp, by the number
of warps of a CTA."""


@dataclass(frozen=True)
class DecodeSpec(AttentionSpec):
    """A decode kernel: the ``warps`` warps of a CTA share 16 rows and stream a split of the keys
    ("split"), or all of them ("whole"). "join" combines the splits.
    """

    warps: int = 4
    shared_kib: int = 99
    part: str = "split"

    family: ClassVar[str] = "attention_decode"
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionSpec.meanings,
        "warps": "warps of a CTA, which share 16 query rows",
    }

    def __post_init__(self) -> None:
        self.check_form()
        self.check_choices(tier=("tc",), warps=(4, 8, 16))
        if self.part != "join" and self.wide <= self.wide_max:
            name = type(self).__name__
            held = self.span // self.tile, 2
            check(self.stages >= max(held), name, "stages in the budget", self.stages, max(held))

    def check_memory(self) -> None:
        """Raises SpecError if a head dimension that the kernel supports needs more shared memory
        than a CTA may have.
        """
        if self.wide <= self.wide_max:
            most, name = self.shared_kib << 10, type(self).__name__
            check(self.shared_bytes <= most, name, "shared memory", self.shared_bytes, most)

    @property
    def template(self) -> str:  # type: ignore[override]
        return f"attention/{'join' if self.part == 'join' else 'decode'}.cu.j2"

    @property
    def rows(self) -> int:
        return 16

    # -- tiles and shared memory ------------------------------------------------------------
    @property
    def wide(self) -> int:
        """Larger of the two padded head dimensions: keys and values share the stages of the
        ring.
        """
        return max(self.depth, self.width)

    @property
    def wide_max(self) -> int:
        """Largest head dimension that the kernel supports; ``requires`` excludes wider ones."""
        return (
            HEAD_MAX if self.part == "join" or self.warps < LARGE_CTA_WARPS else LARGE_CTA_WIDTH_MAX
        )

    @property
    def loaders(self) -> int:
        """Producer warps: two if CTAs share an SM, else :data:`LOADERS`."""
        return 2 if self.shares else LOADERS

    @property
    def threads(self) -> int:
        loaders = 0 if self.part == "join" else self.loaders
        return super().threads + loaders * WARP

    @property
    def keys(self) -> int:
        """Keys of a tile for each warp, 16 or 8."""
        fits = 16 * self.warps <= KEYS_MAX and 16 * self.warps * self.pitch(self.wide) <= TILE_MAX
        return 16 if fits else 8

    @property
    def tile(self) -> int:
        return self.warps * self.keys

    @property
    def span(self) -> int:
        """Keys of a span: a CTA computes all scores of a span, then all its softmax weights, then
        their products with values. Each warp has 32 of them, which are in one tile.
        """
        return self.warps * WARP

    @property
    def weights_pitch(self) -> int:
        """Bytes of a row of f32 weights, padded so that 8 words of each of 4 rows are in different
        banks.
        """
        return self.span * 4 + 32

    @property
    def stage(self) -> int:
        """Bytes of a stage, which holds a tile of keys or of values."""
        return self.tile * self.pitch(self.wide)

    @property
    def stages(self) -> int:
        """Stages that fit shared memory, at most :data:`RING_MAX`."""
        return min(RING_MAX, (self._shared_capacity - self.at["end"]) // self.stage)

    @property
    def _shared_capacity(self) -> int:
        """Bytes of shared memory that a CTA may use: half of the SM's if two CTAs share it."""
        most = self.shared_kib << 10
        return min(most, ARCHITECTURES["sm_90"].shared_for(2)) if self.shares else most

    @property
    def shares(self) -> bool:
        """Whether two CTAs share an SM: wide heads leave too few registers, and two stages must fit
        half of the shared memory.
        """
        few = self.warps < LARGE_CTA_WARPS and self.wide * self.warps <= WIDE_MAX
        half = ARCHITECTURES["sm_90"].shared_for(2)
        return few and half - self.at["end"] >= 2 * self.stage

    @property
    def at(self) -> Mapping[str, int]:
        """Byte offsets in shared memory: queries; weights in 16 bits and in f32; rescale factors,
        one a row and block; each warp's row maxima; row sums of the weights; two mbarriers a stage.
        The ring begins at ``end``.
        """
        return area_offsets(
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
        """f32 elements in a row of maxima, padded so that 8 rows use different banks."""
        return self.warps + 4

    @property
    def requires(self) -> Expr:
        most = self.wide_max
        held = () if most == HEAD_MAX else (DEPTH <= most, WIDTH <= most)
        return all_of((*held, super().requires))

    @property
    def ctas(self) -> int:
        """Resident CTAs per SM, few enough that a thread has 96 registers or more."""
        fits = (n for n in (3, 2) if self.shared_bytes <= ARCHITECTURES["sm_90"].shared_for(n))
        return min(next(fits, 1), 512 // (self.warps * WARP))


@dataclass(frozen=True)
class ClusterSpec(DecodeSpec):
    """A decode kernel in which a cluster of ``cluster`` CTAs shares 16 rows and one split of the
    keys. "whole" supports problems of a single split. Each CTA computes the scores of some keys and
    the sums of some columns of values. All loads are in flight at once: there is no ring.
    """

    warps: int = 8
    cluster: int = 4
    shared_kib: int = 227
    min_arch: str = "sm_90"

    family: ClassVar[str] = "attention_cluster"
    parts: ClassVar[tuple[str, ...]] = ("whole", "split")
    meanings: ClassVar[Mapping[str, str]] = {
        **DecodeSpec.meanings,
        "warps": "warps of a CTA",
        "cluster": "CTAs of a cluster, which share 16 query rows",
    }

    def __post_init__(self) -> None:
        self.check_form()
        name = type(self).__name__
        self.check_choices(tier=("tc",), cluster=[*CLUSTER_WIDTH_MAX])
        check(self.unit in WARP_KEYS, name, "keys of a warp", self.unit, WARP_KEYS)
        groups = self.columns // STEP
        check(groups < self.warps, name, "groups of columns", groups, f"< {self.warps}")
        self.check_memory()

    @property
    def template(self) -> str:  # type: ignore[override]
        return "attention/cluster.cu.j2"

    # -- tiles and shared memory ------------------------------------------------------------
    @property
    def loaders(self) -> int:
        return 0

    @property
    def unit(self) -> int:
        """Keys of a split whose scores one warp computes."""
        return SPLIT // (self.cluster * self.warps)

    @property
    def columns(self) -> int:
        """Columns of the result that one CTA of the cluster accumulates."""
        return -(-self.width // (STEP * self.cluster)) * STEP

    @property
    def units(self) -> int:
        """Warps in a cluster; each computes the scores of one unit of a split's keys."""
        return self.cluster * self.warps

    @property
    def at(self) -> Mapping[str, int]:
        """Byte offsets in shared memory: queries; weights in 16 bits; each unit's row maxima; row
        sums of the weights; mbarriers that signal the other CTAs' maxima and weights; addresses of
        paged keys; f32 weights of this CTA's rows for all keys; each warp's keys; values.
        """
        return area_offsets(
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
        """Shared memory of a warp for its keys, in bytes. The f32 weights of these keys later take
        the same place.
        """
        return self.unit * max(self.pitch(self.depth), self.rows * 4)

    @property
    def shared_bytes(self) -> int:
        return self.at["end"]

    # -- predicates and bounds --------------------------------------------------------------
    @property
    def grid(self) -> Expr:
        return super().grid * self.cluster

    @property
    def wide_max(self) -> int:
        return CLUSTER_WIDTH_MAX[self.cluster]

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
    """A decode kernel for short key sequences: a CTA computes 16 rows with all keys, 16 keys a
    warp.
    """

    warps: int = 8
    shared_kib: int = 227
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

    # -- tiles and shared memory ------------------------------------------------------------
    @property
    def loaders(self) -> int:
        return 0

    @property
    def unit(self) -> int:
        """Keys whose scores one warp computes."""
        return STEP

    @property
    def capacity(self) -> int:
        """Most keys of a sequence: 16 for each warp of the CTA."""
        return self.unit * self.warps

    @property
    def columns(self) -> int:
        """Columns of the result that one warp accumulates."""
        return -(-self.width // (STEP * self.warps)) * STEP

    @property
    def weights_pitch(self) -> int:
        return self.capacity * 4 + 32

    @property
    def at(self) -> Mapping[str, int]:
        """Byte offsets in shared memory: queries; weights in 16 bits; each warp's row maxima; keys,
        later f32 weights; values.
        """
        keys = self.capacity * self.pitch(self.depth)
        return area_offsets(
            queries=self.rows * self.pitch(self.depth),
            rounded=self.rows * self.pitch(self.capacity),
            maxima=self.rows * self.warps * 4,
            keys=max(keys, self.rows * self.weights_pitch),
            values=self.capacity * self.pitch(self.width),
        )

    @property
    def shared_bytes(self) -> int:
        return self.at["end"]

    # -- predicates and bounds --------------------------------------------------------------
    @property
    def wide_max(self) -> int:
        return CTA_WIDTH_MAX[self.warps]

    @property
    def requires(self) -> Expr:
        return all_of((KEYS <= self.capacity, super().requires))

    @property
    def work(self) -> str:
        return f"{self.rows} rows and all keys, up to {self.capacity}, a CTA"
