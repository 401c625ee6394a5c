"""The contracts that there are, and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ptxgen.numerics import (
    attention,
    contract,
    int4,
    logits,
    moves,
    nf4,
    rows,
    rowwise,
    scan,
    select,
)


@cache
def versions() -> dict[str, int]:
    """The version of each contract, by name."""
    modules = attention, contract, int4, logits, moves, nf4, rows, rowwise, scan, select
    found: dict[str, int] = {}
    for module in modules:
        for value in vars(module).values():
            several = value.values() if isinstance(value, Mapping) else (value,)
            found |= {c.name: c.version for c in several if isinstance(c, contract.Contract)}
    return found
