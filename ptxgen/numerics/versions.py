"""Names and versions of all numeric contracts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ptxgen.numerics import (
    attention,
    contract,
    delta,
    fft,
    formats,
    gather_scatter,
    int4,
    logsumexp,
    quantized,
    recurrence,
    reduction_order,
    scan,
    select,
    sort,
    splats,
    triangular,
    vocab_segments,
)


@cache
def versions() -> dict[str, int]:
    """Returns the current version of each contract, by name."""
    modules = (
        *(
            attention,
            contract,
            delta,
            int4,
            vocab_segments,
            gather_scatter,
            quantized,
            recurrence,
            logsumexp,
            reduction_order,
        ),
        *(fft, scan, select, sort, splats, triangular),
    )
    found: dict[str, int] = {}
    for module in modules:
        for value in vars(module).values():
            several = value.values() if isinstance(value, Mapping) else (value,)
            found |= {c.name: c.version for c in several if isinstance(c, contract.Contract)}
    return found | {row.contract.name: row.version for row in formats.FORMATS.values()}
