"""The kernels that read NF4 weights as they are stored, of mma.sync and of wgmma, contract tc16/2.

How to read a line of mma.sync: a CTA tile BM x BN x BK, the warps along m and n that multiply,
those that bring operands, and the stages that these copy ahead; of wgmma: the tile, consumer
warpgroups and stages.
"""

from __future__ import annotations

from ptxgen.spec import Route
from ptxgen.spec.nf4_mma import Nf4MmaSpec
from ptxgen.spec.nf4_wgmma import Nf4WgmmaSpec
from ptxgen.tiles.regimes import routes as made


def specs(layout: str, dtype: str = "bf16") -> tuple[Nf4MmaSpec, ...]:
    """The kernels of few rows."""
    return (Nf4MmaSpec(layout, 8, 32, 256, 1, 2, 4, 5, split="serial", dtype=dtype),)


def wide(layout: str, dtype: str = "bf16") -> tuple[Nf4WgmmaSpec, ...]:
    """The kernels of more rows, on Hopper."""
    return (
        Nf4WgmmaSpec(layout, 64, 128, 64, 1, 6, dtype=dtype),
        Nf4WgmmaSpec(layout, 128, 128, 64, 2, 5, dtype=dtype),
        Nf4WgmmaSpec(layout, 256, 128, 64, 2, 3, registers=176, dtype=dtype),
    )


def routes(layout: str) -> tuple[Route, ...]:
    """Their routes."""
    return (
        *made(specs(layout), "few rows: the weight streams once, as it is stored"),
        *made(wide(layout), "more rows: the weight as it is stored, by wgmma"),
    )
