"""The nf4_mma family: products with NF4 weights of few and of medium rows, contract tc16/2.

How to read a line: a CTA tile BM x BN x BK, the warps along m and n that multiply, those that
bring operands, and the stages that these copy ahead.
"""

from __future__ import annotations

from ptxgen.spec import Route
from ptxgen.spec.nf4_mma import Nf4MmaSpec
from ptxgen.tiles.regimes import routes as made


def specs(layout: str, dtype: str = "bf16") -> tuple[Nf4MmaSpec, ...]:
    """The kernels of an operand layout."""
    return (
        Nf4MmaSpec(layout, 8, 32, 256, 1, 2, 4, 5, split="serial", dtype=dtype),
    )


def routes(layout: str) -> tuple[Route, ...]:
    """Their routes."""
    return (*made(specs(layout), "few rows: the weight streams once, as it is stored"),)
