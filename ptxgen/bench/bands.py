"""Many problems in a few numbers: ratios and regrets by layout and band of M."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from ptxgen.bench.results import Row, columns, geomean
from ptxgen.ui import table

BANDS = (48, 512)
"""The largest M of each band but the last, which has none."""
NAMES = (
    *(f"{low + 1}-{high}" for low, high in zip((0, *BANDS), BANDS, strict=False)),
    f"above {BANDS[-1]}",
)
"""Of the bands."""
ALL = "all"
WORST = 10
"""Problems in a table of the worst."""


@dataclass(frozen=True)
class Measure:
    """A number of a problem that is summed up, such as a ratio, and where its bad end is."""

    field: str
    """The attribute of rows that is this number."""
    share: float
    """The quantile that is reported."""
    worst: Callable[[Iterable[float]], float]
    names: tuple[str, str]
    """The names of that quantile and of the worst."""

    def of(self, row: Any) -> float:
        """The number of a row."""
        value: float = getattr(row, self.field)
        return value


RATIO = Measure("ratio", 0.1, min, ("P10", "least"))
REGRET = Measure("regret", 0.9, max, ("P90", "worst"))


@dataclass(frozen=True)
class Spread:
    """The spread of a number over problems."""

    cases: int
    geomean: float
    tail: float
    worst: float
    worst_at: str

    @classmethod
    def of(cls, found: Sequence[tuple[float, str]], measure: Measure = RATIO) -> Spread:
        """The spread of numbers, at least one, each with the name of its problem."""
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
    """The spreads of rows that have the same key. ``at``: the name of a row's problem."""
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
    """One line per spread, behind what it is of; ``names``: the headings of that."""
    lines = [
        (*part, s.cases, *(f"{x:.3f}" for x in (s.geomean, s.tail, s.worst)), s.worst_at)
        for part, s in spreads.items()
    ]
    return table(lines, (*names, cases, "geomean", *measure.names, at))


def band_of(m: int) -> str:
    """The name of M's band."""
    return NAMES[bisect_left(BANDS, m)]


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie, between neighbours by a straight line."""
    return float(np.quantile([*values], share))


def judged(rows: Iterable[Row]) -> list[Row]:
    """One row, of whichever peer, of each case whose regret is known."""
    key = attrgetter("group", "op", "layout", "shape")
    return list({key(r): r for r in rows if r.regret is not None}.values())


def spread(rows: Sequence[Row], measure: Measure) -> Spread:
    """The spread of ``rows`` of products."""
    return Spread.of([(measure.of(r), f"{r.shape} {r.layout}") for r in rows], measure)


def spreads(rows: Sequence[Row], measure: Measure) -> dict[Part, Spread]:
    """Those of each layout and band, and of all; where there is no problem, there is none."""
    layouts = [*dict.fromkeys(r.layout for r in rows), ALL]
    parts = {
        (layout, band): [
            r for r in rows if layout in (r.layout, ALL) and band in (band_of(r.m), ALL)
        ]
        for layout in layouts
        for band in (*NAMES, ALL)
    }
    return {part: spread(members, measure) for part, members in parts.items() if members}


def spread_table(rows: Sequence[Row], measure: Measure) -> str:
    """One line for each layout and band."""
    return table_of(spreads(rows, measure), ("layout", "M"), measure, at="at (M x K x N)")


def worst_table(rows: Sequence[Row], measure: Measure) -> str:
    """One line for each of the worst problems, the worst first."""
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
