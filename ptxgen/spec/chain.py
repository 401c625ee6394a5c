"""The wgmma_chain family: weight gradients on Hopper, whose accumulators start from the old C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr
from ptxgen.numerics.contract import ITEMSIZE, M, N
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import WARPGROUP, Expect, check
from ptxgen.spec.gemm import ALIGN_C, ITEM_C, LDC, MEANINGS, matrix
from ptxgen.spec.wgmma import PANEL, WgmmaSpec


@dataclass(frozen=True)
class ChainSpec(WgmmaSpec):
    """A wgmma kernel that loads and stores C by TMA, through a shared-memory buffer of a whole
    tile.

    Both overlap with the multiplication of another tile. ``itemsize``: bytes of an element of C.
    The producer warpgroup has one warp for each consumer, which moves the consumer's pieces of C:
    boxes of 64 rows of 128 bytes.
    """

    split: str = "onto"
    itemsize: int = 2

    family: ClassVar[str] = "wgmma_chain"
    template: ClassVar[str] = "wgmma/chain.cu.j2"
    splits: ClassVar[tuple[str, ...]] = ("onto",)
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "itemsize": "bytes of an element of C",
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.itemsize in (2, 4), name, "itemsize", self.itemsize, "2 or 4")
        columns = self.piece_columns
        check(self.bn % columns == 0, name, "columns of a piece divide bn", columns, self.bn)
        super().__post_init__()
        check(self.ctas == 1, name, "CTAs of a cluster", self.ctas, 1)

    # -- derived --------------------------------------------------------------
    @property
    def label(self) -> str:
        result = self.dtype if self.itemsize == 2 else "f32"
        return f"{super().label}_{result}"

    @property
    def result(self) -> int:
        return self.itemsize

    @property
    def batched(self) -> bool:
        return False

    @property
    def threads(self) -> int:
        return (self.consumers + 1) * WARPGROUP

    @property
    def piece_columns(self) -> int:
        """Columns of a piece of C, a box of 64 rows of 128 bytes."""
        return PANEL // self.itemsize

    @property
    def piece_bytes(self) -> int:
        """Bytes of a piece of C: 64 rows of 128 bytes."""
        return 64 * PANEL

    @property
    def pieces(self) -> int:
        """Number of pieces of C in a tile: boxes of 64 rows of 128 bytes, which TMA moves."""
        return self.bm * self.bn * self.itemsize // self.piece_bytes

    @property
    def barriers_offset(self) -> int:
        """Byte offset of the mbarriers in shared memory, after the ring and a tile of C."""
        return self.stages * self.stage_bytes + self.pieces * self.piece_bytes

    @property
    def shared_bytes(self) -> int:
        return self.barriers_offset + 2 * 8 * (self.stages + self.pieces)

    @property
    def abi(self) -> Abi:
        item = ITEMSIZE[self.dtype]
        box = MapBox("c", (N, M), (LDC,), self.itemsize, (self.piece_columns, 64), swizzle=PANEL)
        return Abi(
            (
                ptr("a", "const Element*"),
                ptr("b", "const Element*"),
                ptr("c", "void*"),
                *(Param(name, "u32") for name in ("m", "n", "k", "flags")),
                *(matrix(x.name, self.layout, x.box, item, x.swizzle) for x in (self.a, self.b)),
                Param("map_c", "map", "const __grid_constant__ TensorMap", box),
            )
        )

    @property
    def requires(self) -> Expr:
        # TMA stores whole 16-byte units, so a row must end at a multiple of them.
        whole = (N % (16 // self.itemsize)).eq(0)
        return super().requires & (ALIGN_C >= 16) & ITEM_C.eq(self.itemsize) & whole

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (Expect("cp.async.bulk.commit_group"), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return (*super().describe(), f"C in {self.itemsize} bytes, {self.pieces} pieces of a tile")
