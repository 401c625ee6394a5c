"""Many problems in a few numbers: ratios and regrets by layout and band of M."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from ptxgen.bench.results import Row, geomean
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
    """A field of rows that is summarised, and where its bad end is."""

    field: str
    share: float
    """The quantile that is reported."""
    worst: Callable[[Iterable[float]], float]
    names: tuple[str, str]
    """Of that quantile and of the worst."""

    def of(self, row: Row) -> float:
        """Its value."""
        value: float = getattr(row, self.field)
        return value


RATIO = Measure("ratio", 0.1, min, ("P10", "least"))
REGRET = Measure("regret", 0.9, max, ("P90", "worst"))


@dataclass(frozen=True)
class Spread:
    """How a measure is spread over the problems of a layout and band."""

    layout: str
    band: str
    cases: int
    geomean: float
    tail: float
    worst: float
    worst_at: str


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


def spread(rows: Sequence[Row], measure: Measure, layout: str = ALL, band: str = ALL) -> Spread:
    """The spread of ``rows``, at least one, which are those of ``layout`` and ``band``."""
    values = [measure.of(r) for r in rows]
    worst = measure.worst(values)
    at = rows[values.index(worst)]
    return Spread(
        layout,
        band,
        len(rows),
        geomean(values),
        quantile(values, measure.share),
        worst,
        f"{at.shape} {at.layout}",
    )


def spreads(rows: Sequence[Row], measure: Measure) -> list[Spread]:
    """Those of each layout and band, and of all; where there is no problem, there is none."""
    layouts = [*dict.fromkeys(r.layout for r in rows), ALL]
    parts = {
        (layout, band): [
            r for r in rows if layout in (r.layout, ALL) and band in (band_of(r.m), ALL)
        ]
        for layout in layouts
        for band in (*NAMES, ALL)
    }
    return [spread(part, measure, *names) for names, part in parts.items() if part]


def spread_table(rows: Sequence[Row], measure: Measure) -> str:
    """One line per spread."""
    lines = [
        (s.layout, s.band, s.cases, *(f"{x:.3f}" for x in (s.geomean, s.tail, s.worst)), s.worst_at)
        for s in spreads(rows, measure)
    ]
    tail, worst = measure.names
    return table(lines, ("layout", "M", "cases", "geomean", tail, worst, "at (M x K x N)"))


def worst_table(rows: Sequence[Row], measure: Measure) -> str:
    """One line for each of the worst problems, the worst first."""
    ordered = sorted(rows, key=measure.of, reverse=measure.worst is max)[:WORST]
    with_best = any(r.regret is not None for r in ordered)
    lines = []
    for r in ordered:
        line = [r.shape, r.layout, f"{r.ours_us:.1f}", f"{r.peer_us:.1f}", f"{r.ratio:.3f}"]
        best = [r.regret and f"{r.regret:.3f}", r.best] if with_best else []
        lines.append([*line, r.kernel, *best])
    header = ["M x K x N", "layout", "ours µs", f"{rows[0].peer} µs", "ratio", "kernel"]
    return table(lines, [*header, *(["regret", "best"] if with_best else [])])
