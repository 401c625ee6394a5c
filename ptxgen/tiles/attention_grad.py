"""Route tables of attention's gradients, by the gradients that a kernel computes and by dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from ptxgen.expr import TRUE
from ptxgen.numerics.attention import ATTENTION_GRAD
from ptxgen.numerics.contract import AUTO_TIER
from ptxgen.spec import Key, Route, RouteTable, Step
from ptxgen.spec.attention import LISTED, ROWS, SMS
from ptxgen.spec.attention_grad import (
    PAST,
    SPACE,
    THREE_MAX,
    AttentionGradSpec,
    HopperGradSpec,
    MaskedGradSpec,
)
from ptxgen.spec.attention_mask import MaskSpec

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
        "dv": ((2, 99), (2, 99)),
    },
}
"""Warps, and KiB of shared memory, of the portable kernels' CTAs, largest first, by width of the
dtype and gradient."""
ONE: Mapping[str, Any] = MappingProxyType({"warps": 4, "registers": 224})
"""Fields of Hopper's kernels with one consumer warpgroup, for sequences of at most one tile, or
problems in which each CTA has an SM to itself."""
THREE: Mapping[str, Any] = MappingProxyType({"warps": 12, "registers": 160})
"""Fields of Hopper's kernel with three consumer warpgroups, for dq alone and heads up to
THREE_MAX."""
WIDE = 256
KERNELS = "dq", "dkdv"
"""Parts whose kernels together compute all gradients, in order: dq also writes delta (row sums of
the output times its gradient) for dkdv."""
PINNED: Mapping[str, tuple[AttentionGradSpec, ...]] = MappingProxyType(
    {
        "dq": (AttentionGradSpec("dq", 64, 64, True, warps=2, shared_kib=99),),
        "dkdv": (
            AttentionGradSpec("dkdv", 64, 64, True, warps=4, shared_kib=99),
            HopperGradSpec("dkdv", 64, 64),
        ),
    }
)
"""Pinned kernels by part: with rounded logits, and with keys and values in registers."""


def key(part: str, dtype: str) -> Key:
    """Returns the key of a gradient's route table."""
    return "attention_grad", part, "f32" if dtype == "f32" else "half"


def _table(part: str, kind: str) -> RouteTable:
    dtype = "bf16" if kind == "half" else "f32"
    contract = ATTENTION_GRAD[AUTO_TIER[dtype]]
    routes = []
    # Heads up to LISTED, and wider ones, whose dk and dv are accumulated by different CTAs.
    for head, parts in ((LISTED[0], (part,)), (WIDE, ("dk", "dv")))[: 2 if part == "dkdv" else 1]:
        if kind == "half":
            both = HopperGradSpec(part, head, head, dtype=dtype, contract=contract)
            one = replace(both, **ONE)
            alone = (ROWS <= one.rows) | (one.grid <= SMS)
            why = "Hopper: wgmma and TMA"
            # With few rows and few keys the portable kernel of dq is faster.
            wanted = (ROWS > one.rows) | (PAST > one.rows) if part == "dq" else TRUE
            routes.append(Route((one,), wanted & alone, f"{why}; one consumer warpgroup"))
            if part == "dq":
                three = replace(both, head_dim=THREE_MAX, head_dim_v=THREE_MAX, **THREE)
                routes.append(Route((three,), wanted, f"{why}; three consumer warpgroups"))
            routes.append(Route((both,), wanted, f"{why}; two consumer warpgroups"))
            routes += _masked(routes[-3 if part == "dq" else -2 :])
        given = [CTAS[kind][each] for each in parts]
        for n, ctas in enumerate(zip(*given, strict=True), 1):
            specs = [
                AttentionGradSpec(
                    each, head, head, warps=warps, shared_kib=budget, dtype=dtype, contract=contract
                )
                for each, (warps, budget) in zip(parts, ctas, strict=True)
            ]
            last = n == len(given[0])
            wanted, why = (
                (TRUE, "portable; small tiles")
                if last
                else (specs[0].grid >= SMS, "portable; large tiles, where each SM gets one")
            )
            routes.append(Route(specs, wanted, why))

    pinned = PINNED[part] if kind == "half" else ()
    return RouteTable(SPACE, tuple(routes), (dtype,), opened=True, pinned=lambda: pinned)


def _masked(routes: list[Route]) -> list[Route]:
    """Returns variants of ``routes`` whose kernels read the bit map of a mask, which a step before
    them packs. Kernels of several warpgroups whose CTAs compute dk or dv alone have no variant,
    since the map does not fit their shared memory; kernels of one warpgroup take their place.
    """
    found = []
    for route in routes:
        spec = route.main
        assert isinstance(spec, HopperGradSpec), f"{spec.name} has no map"
        apart = len(spec.each) > 1
        if apart and spec.consumers > 1:
            continue
        masked = MaskedGradSpec(**{f.name: getattr(spec, f.name) for f in fields(spec)})
        steps = Step(MaskSpec(), given={"KEYS": masked.keys}), masked
        prefer = TRUE if apart else route.prefer
        found.append(Route(steps, prefer, f"{route.reason}, bit map of the mask"))
    return found


def _constructor(part: str, kind: str) -> Callable[[], RouteTable]:
    return lambda: _table(part, kind)


TABLES: dict[Key, Callable[[], RouteTable]] = {
    ("attention_grad", part, kind): _constructor(part, kind) for kind in CTAS for part in KERNELS
}
"""Constructors of the route tables, by key."""
