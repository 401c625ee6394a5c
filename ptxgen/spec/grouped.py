"""Grouped GEMM: rows of A, sorted by group, times their group's matrix B.

Group sizes are known only on the device: ``offsets`` has the end of each group. A kernel first
reads them into a table in shared memory, and looks up there the group of its tile.

===================  ===================================================================
``M, N, K``          rows of all groups, columns, reduction length; 1 .. 2^31 - 1. Where
                     groups divide the reduction, M and N are the sizes of a group's result, and K
                     counts the rows of all groups
``GROUPS``           number of groups; 1 .. 1024
``CHUNK, CHUNKS``    as in other products
``ALIGN_A/B``        as in other products; B's also divides the stride from matrix to matrix
``SMS``              streaming multiprocessors of the device
===================  ===================================================================

Further scalar parameters: ``LDA, LDB, LDC`` and ``FLAGS``; ``BATCH_B`` (or ``BATCH_C``, where
groups divide the reduction): elements from a group's matrix to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar

from ptxgen.expr import Expr, ceil_div, const, minimum, var
from ptxgen.numerics.contract import ITEMSIZE, K, M, N, Plan
from ptxgen.numerics.grouped import GROUPS_MAX
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import check
from ptxgen.spec.gemm import LDA, LDB, MEANINGS, SMS, GemmSpec, ctypes, space_of
from ptxgen.spec.gemm.rasters import Raster, WalkGroups
from ptxgen.spec.gemm.schedules import Groups, Schedule
from ptxgen.spec.gemm.stores import Rows, Store
from ptxgen.spec.mma import MmaSpec
from ptxgen.spec.simt import SimtSpec
from ptxgen.spec.space import Between, Space
from ptxgen.spec.wgmma import WgmmaSpec

GROUPS = var("GROUPS")
TABLE_BYTES = 8 * (GROUPS_MAX + 1)
"""Shared memory of the group table, in bytes: two 32-bit words for each group, and for one more:
the end of its rows, and of its tiles."""
GROUPINGS = ("rows", "sums")
"""Dimension that the groups divide: rows of A and of the result ("rows"), or the reduction
("sums"), where each group has a result matrix of its own."""


@cache
def space(plan: Plan) -> Space:
    """Returns the space of grouped products whose reduction is split by ``plan``."""
    return space_of("grouped products", plan, leading=(("GROUPS", Between(1, GROUPS_MAX)),))


class GroupedSpec(GemmSpec):
    """Base of the grouped GEMM kernels: persistent CTAs loop over the tiles of all groups.

    ``grouped_by``: dimension that the groups divide, "rows" (of A and the result) or "sums" (the
    reduction). Rows that belong to no group are treated as one more group, whose result is zeros.
    """

    grouped_by: str

    legible: ClassVar[bool] = False  # the texts of the other families show the same code
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "grouped_by": "dimension that groups divide: rows of the result, or sums (one result a "
        "group)",
    }

    def check_grouped(self) -> None:
        """Raises SpecError for splits that grouped kernels do not support."""
        self.check_choices(grouped_by=GROUPINGS)
        whole = self.split in ("none", "serial", "slices")
        check(whole, self.name, "split", self.split, "none, serial or slices")
        check(
            self.grouped_by == "rows" or self.split == "none",
            self.name,
            "grouped_by",
            self.grouped_by,
            self.split,
        )

    @property
    def batched(self) -> bool:
        return False

    @property
    def cost(self) -> None:  # type: ignore[override]
        """No cost: group sizes are known only on the device, so routes are tried in order."""
        return None

    @property
    def tiles(self) -> Expr:
        """Upper bound of the number of output tiles: each group that has rows has at most one
        partial row of tiles.
        """
        wide = ceil_div(N, self.bn)
        if self.grouped_by == "sums":
            return ceil_div(M, self.bm) * wide * GROUPS
        return (M // self.bm + minimum(GROUPS + 1, M)) * wide

    @property
    def operands(self) -> tuple[Param, ...]:
        """Pointer parameters of the kernel, in order."""
        element, beside, _ = ctypes(self.dtype)
        return (
            ptr("x", f"const {element}*"),
            ptr("w", f"const {element}*"),
            *(
                (ptr("biases", f"const {beside}*", optional=True),)
                if self.grouped_by == "rows"
                else ()
            ),
            ptr("offsets", "const int*"),
            ptr("y", f"{beside}*"),
        )

    @cached_property
    def abi(self) -> Abi:
        apart = "batch_b" if self.grouped_by == "rows" else "batch_c"
        return Abi(
            (
                *self.operands,
                *(Param(name, "i64") for name in ("lda", "ldb", "ldc", apart)),
                *(Param(name, "u32") for name in ("m", "n", "k", "chunk", "flags", "groups")),
                *self.maps,
            )
        )

    @property
    def maps(self) -> tuple[Param, ...]:
        """Tensor-map parameters of the kernel, in order."""
        return ()

    @property
    def shared_bytes(self) -> int:
        """Shared memory of the kernel, in bytes, the group table included."""
        return super().shared_bytes + TABLE_BYTES  # type: ignore[safe-super]  # a family comes next

    @property
    def table_at(self) -> int:
        """Byte offset of the group table in shared memory."""
        return self.shared_bytes - TABLE_BYTES

    @property
    def table_rows(self) -> int:
        """Rows of an output tile by which the group table counts a group's tiles; 1 where groups
        divide the reduction.
        """
        return self.bm if self.grouped_by == "rows" else 1


class GroupedStagedSpec(GroupedSpec):
    """Base of the grouped kernels whose threads copy tiles; their grid is persistent.

    Tiles of groups of rows reduce over the same K, so that as many CTAs as run at a time share them
    evenly, and no CTA reads the group table only to find no tile: the host's bound of their number
    is above the number of tiles that exist. Groups of "sums" differ in length: a CTA takes one
    tile, and the GPU starts the next where one ends.
    """

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # a family comes next
        self.check_grouped()
        check(self.persistent, self.name, "persistent", self.persistent, True)

    @property
    def schedule(self) -> Raster:
        """Raster that loops over the tiles of all groups."""
        return WalkGroups()

    @property
    def grid(self) -> Expr:
        if self.grouped_by == "sums":
            return super().grid
        return minimum(self.tiles, SMS * self.slots)


@dataclass(frozen=True)
class GroupedMmaSpec(GroupedStagedSpec, MmaSpec):
    """A grouped kernel of the mma family. ``grouped_by``: dimension that the groups divide, "rows"
    (of A and the result) or "sums" (the reduction).
    """

    grouped_by: str = "rows"

    family: ClassVar[str] = "grouped_mma"


@dataclass(frozen=True)
class GroupedSimtSpec(GroupedStagedSpec, SimtSpec):
    """A grouped kernel of the simt family. ``grouped_by``: dimension that the groups divide, "rows"
    (of A and the result) or "sums" (the reduction).
    """

    grouped_by: str = "rows"

    family: ClassVar[str] = "grouped_simt"


@dataclass(frozen=True)
class GroupedWgmmaSpec(GroupedSpec, WgmmaSpec):
    """A grouped kernel of the wgmma family. ``grouped_by``: dimension that the groups divide,
    "rows" (of A and the result) or "sums" (the reduction).

    A tile of rows that belong to no group is multiplied as well: its boxes are outside the tensor
    map, so they are zeros. In "sums" the last stage of a group is masked in shared memory: rows of
    the next group become zeros.
    """

    grouped_by: str = "rows"

    family: ClassVar[str] = "grouped_wgmma"
    meanings: ClassVar[Mapping[str, str]] = GroupedSpec.meanings

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_grouped()

    @property
    def schedule(self) -> Schedule:
        return Groups(self.grouped_by)

    @property
    def store(self) -> Store:
        return Rows("sums" if self.grouped_by == "sums" else "groups")

    @property
    def maps(self) -> tuple[Param, ...]:
        """Tensor maps of A and B; where groups divide rows, B's spans the matrices of all
        groups.
        """
        item, one = ITEMSIZE[self.dtype], const(1)
        of_rows = self.grouped_by == "rows"
        size_a: tuple[Expr, ...] = (M, K) if self.layout[0] == "T" else (K, M)
        size_b: tuple[Expr, ...] = (K, N) if self.layout[1] == "T" else (N, K)
        apart, count = (var("BATCH_B"), GROUPS) if of_rows else (LDB, one)
        a, b = self.a, self.b
        of_a = MapBox("x", (*size_a, one, one), (LDA,) * 3, item, a.box, swizzle=a.swizzle)
        pitches = (LDB, apart, apart)
        of_b = MapBox("w", (*size_b, count, one), pitches, item, b.box, swizzle=b.swizzle)
        kind = "const __grid_constant__ TensorMap"
        return Param("map_a", "map", kind, of_a), Param("map_b", "map", kind, of_b)

    @property
    def grid(self) -> Expr:
        return minimum(self.work, self.resident_clusters)
