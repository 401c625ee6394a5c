"""The tables of attention's gradients: by what a kernel computes, of 16 bits and of f32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ptxgen.expr import TRUE
from ptxgen.numerics.attention import ATTENTION_GRAD
from ptxgen.numerics.contract import AUTO_TIER
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.attention import LISTED, ROWS, SMS, WIDE_MAX
from ptxgen.spec.attention_grad import PARTS, PAST, SPACE, AttentionGradSpec, HopperGradSpec

Ctas = tuple[tuple[int, int], ...]
CTAS: dict[str, dict[str, Ctas]] = {
    "half": {
        "dq": ((4, 163), (2, 99)),
        "dkdv": ((8, 163), (4, 99)),
        "dk": ((4, 163), (2, 99)),
        "dv": ((4, 99), (2, 99)),
    },
    "f32": {
        "dq": ((2, 99),),
        "dkdv": ((2, 99),),
        "dk": ((2, 163), (1, 99)),
        "dv": ((2, 99),),
    },
}
"""Warps, and KiB of shared memory, of CTAs, the larger first."""
ONE: Mapping[str, Any] = MappingProxyType({"warps": 4, "registers": 224})
"""What makes Hopper's kernels those of one warpgroup: of few rows or keys, or for an SM alone."""
WIDE = 256
PINNED = {
    part: AttentionGradSpec(part, 64, 64, True, warps=warps, budget=99)
    for part, warps in (("dq", 2), ("dkdv", 4))
}
"""Kernels of rounded logits."""


def key(part: str, dtype: str) -> Key:
    """The table of a gradient."""
    return "attention_grad", part, "f32" if dtype == "f32" else "half"


def kernels(head: int, head_v: int) -> tuple[str, ...]:
    """The kernels that compute all gradients, in order: that by queries finds D for the others;
    sums for keys and values together, if a lane has registers for both.
    """
    return ("dq", "dkdv") if head + head_v <= sum(LISTED) else ("dq", "dk", "dv")


def _table(part: str, kind: str) -> RouteTable:
    dtype, ctas = "bf16" if kind == "half" else "f32", CTAS[kind][part]
    contract = ATTENTION_GRAD[AUTO_TIER[dtype]]
    head = WIDE if part in ("dk", "dv") else LISTED[0]
    routes = []
    if kind == "half" and part in HopperGradSpec.parts:
        both = HopperGradSpec(part, head, head, dtype=dtype, contract=contract)
        narrow = min(head, WIDE_MAX)
        one = replace(both, head=narrow, head_v=narrow, **ONE)
        alone = (ROWS <= one.rows) | (one.grid <= SMS)
        why = "Hopper: wgmma, the copy engine"
        # Of few rows and keys another has the gradient by queries sooner.
        wanted = (ROWS > one.rows) | (PAST > one.rows) if part == "dq" else TRUE
        routes += [
            Route((one,), wanted & alone, f"{why}: one warpgroup"),
            Route((both,), wanted, why),
        ]
    for warps, budget in ctas:
        spec = AttentionGradSpec(
            part, head, head, warps=warps, budget=budget, dtype=dtype, contract=contract
        )
        last = (warps, budget) == ctas[-1]
        wanted, why = (TRUE, "small tiles") if last else (spec.grid >= SMS, "one for each SM")
        routes.append(Route((spec,), wanted, why))

    pinned = (PINNED[part],) if kind == "half" and part in PINNED else ()
    return RouteTable(SPACE, tuple(routes), (dtype,), opened=True, pinned=lambda: pinned)


def _made(part: str, kind: str) -> Callable[[], RouteTable]:
    return lambda: _table(part, kind)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("attention_grad", part, kind): _made(part, kind) for kind in CTAS for part in PARTS
}
"""What makes the tables."""
