"""Statistics of ratios and regrets over many problems, by layout and by band: a range of M, or
:data:`ptxgen.bench.cases.TOKENS`.

The regret of a problem is the chosen kernel's time / the fastest kernel's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from ptxgen.bench.cases import TOKENS
from ptxgen.bench.results import Row, columns, geomean
from ptxgen.ui import table

BANDS = (48, 512)
"""Upper bounds of the ranges of M except the last, which has none."""
NAMES = (
    *(f"{low + 1}-{high}" for low, high in zip((0, *BANDS), BANDS, strict=False)),
    f"above {BANDS[-1]}",
)
"""Names of the ranges of M, such as "1-48"."""
ALL = "all"
WORST = 10
"""Number of problems in a table of the worst problems."""


@dataclass(frozen=True)
class Measure:
    """A quantity to summarise over problems, such as a ratio. ``worst``: ``min`` or ``max``,
    whichever end of it is bad.
    """

    field: str
    """Name of the row attribute that holds the quantity."""
    share: float
    """Tail quantile that is reported, 0 .. 1."""
    worst: Callable[[Iterable[float]], float]
    names: tuple[str, str]
    """Column headings of the quantile and of the worst value."""

    def of(self, row: Any) -> float:
        """Returns the attribute ``field`` of ``row``."""
        value: float = getattr(row, self.field)
        return value


RATIO = Measure("ratio", 0.1, min, ("P10", "least"))
REGRET = Measure("regret", 0.9, max, ("P90", "worst"))


@dataclass(frozen=True)
class Spread:
    """Statistics of a quantity over problems: their number, the geometric mean, a tail quantile,
    and the worst value with the name of its problem.
    """

    cases: int
    geomean: float
    tail: float
    worst: float
    worst_at: str

    @classmethod
    def of(cls, found: Sequence[tuple[float, str]], measure: Measure = RATIO) -> Spread:
        """Returns the statistics of one or more pairs (value, name of the problem)."""
        values = [value for value, _ in found]
        worst = measure.worst(values)
        at = found[values.index(worst)][1]
        return cls(len(found), geomean(values), quantile(values, measure.share), worst, at)


Part = tuple[str, ...]


def by(
    rows: Iterable[Any],
    key: Callable[[Any], Part],
    measure: Measure = RATIO,
    at: Callable[[Any], str] = attrgetter("shape"),
) -> dict[Part, Spread]:
    """Groups rows by ``key``; returns the statistics of ``measure`` in each group.

    ``at`` returns the name of a row's problem.
    """
    found: dict[Part, list[tuple[float, str]]] = {}
    for row in rows:
        found.setdefault(key(row), []).append((measure.of(row), at(row)))
    return {part: Spread.of(of, measure) for part, of in found.items()}


def table_of(
    spreads: Mapping[Part, Spread],
    names: Part,
    measure: Measure = RATIO,
    cases: str = "cases",
    at: str = "at",
) -> str:
    """Returns a table with a line for each group: its key, number of cases and statistics.

    ``names``, ``cases``, ``at``: headings of the key, of the number, and of the worst case.
    """
    lines = [
        (*part, s.cases, *(f"{x:.3f}" for x in (s.geomean, s.tail, s.worst)), s.worst_at)
        for part, s in spreads.items()
    ]
    return table(lines, (*names, cases, "geomean", *measure.names, at))


def band_of(m: int) -> str:
    """Returns the name of the range of M that contains ``m``."""
    return NAMES[bisect_left(BANDS, m)]


def band(row: Row) -> str:
    """Returns the band of a row: its group if that is TOKENS, else the name of its range of M."""
    return TOKENS if row.group == TOKENS else band_of(row.m)


def quantile(values: Iterable[float], share: float) -> float:
    """Returns the quantile ``share`` (0 .. 1) of ``values``, interpolated linearly."""
    return float(np.quantile([*values], share))


def with_regret(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows whose regret was measured, one a case: a case has a row for each peer."""
    key = attrgetter("group", "op", "layout", "shape")
    return list({key(r): r for r in rows if r.regret is not None}.values())


def spread(rows: Sequence[Row], measure: Measure) -> Spread:
    """Returns the statistics of ``measure`` over ``rows`` of matrix products."""
    return Spread.of([(measure.of(r), f"{r.shape} {r.layout}") for r in rows], measure)


def spreads(rows: Sequence[Row], measure: Measure) -> dict[Part, Spread]:
    """Returns the statistics by layout and band, and over all layouts and all bands.

    Groups without a problem are omitted.
    """
    layouts = [*dict.fromkeys(r.layout for r in rows), ALL]
    parts = {
        (layout, name): [r for r in rows if layout in (r.layout, ALL) and name in (band(r), ALL)]
        for layout in layouts
        for name in (*NAMES, TOKENS, ALL)
    }
    return {part: spread(members, measure) for part, members in parts.items() if members}


def spread_table(rows: Sequence[Row], measure: Measure) -> str:
    """Returns a table of the statistics of ``measure``, a line for each layout and band."""
    return table_of(spreads(rows, measure), ("layout", "M"), measure, at="at (M x K x N)")


def worst_table(rows: Sequence[Row], measure: Measure) -> str:
    """Returns a table of the :data:`WORST` problems by ``measure``, the worst first."""
    ordered = sorted(rows, key=measure.of, reverse=measure.worst is max)[:WORST]
    judged = [("regret", "regret:.3f"), ("best", "best")]
    return columns(
        ordered,
        [
            *(("M x K x N", "shape"), ("layout", "layout"), ("ours µs", "ours_us:.1f")),
            *((f"{rows[0].peer} µs", "peer_us:.1f"), ("ratio", "ratio:.3f"), ("kernel", "kernel")),
            *(judged if any(r.regret is not None for r in ordered) else []),
        ],
    )
