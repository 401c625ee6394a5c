"""Plots of ratios, regrets and costs, and of the kernel that serves each problem.

Plotting needs matplotlib, and no GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxgen.bench.bands import ALL, NAMES, RATIO, REGRET, band_of, spread
from ptxgen.bench.cases import select, target
from ptxgen.bench.measure import natural_alignment
from ptxgen.bench.results import GATE, Environment, Row, geomean
from ptxgen.errors import PtxgenError

# Okabe and Ito's palette: told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
INK, MUTED, GRID = "#222222", "#6b6b6b", "#dddddd"
MEAN, SHORT = COLOURS[3], COLOURS[5]
DASHES = (0, (2, 2))
WIDTH, DPI = 8.6, 110  # inches, and dots per inch: about what a README shows
MARKS = {
    "NN": ("o", COLOURS[0]),
    "NT": ("s", COLOURS[1]),
    "TN": ("^", COLOURS[2]),
    "rcr": ("o", COLOURS[0]),
    "rrr": ("s", COLOURS[1]),
}
"""Marks and colours of layouts."""
PEERS = {
    "torch": "cuBLAS (torch.mm)",
    "triton": "Triton, batch-invariant",
    "sgemm_bi": "sgemm-bi",
    "int_mm": "cuBLASLt (torch._int_mm)",
}
POWERS = tuple(2.0**e for e in range(-16, 32))
RATIOS = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 12, 16, 32)
FEW_RATIOS = tuple(x for x in RATIOS if x not in (0.6, 0.7, 0.9, 1.1, 1.25, 2.5, 5))


def require() -> Any:
    """Imports matplotlib and returns it. Raises PtxgenError where it is not installed."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise PtxgenError("plots need matplotlib; pip install 'ptxgen[bench]'") from error
    return matplotlib


# -- helpers of all plots -----------------------------------------------------------
def _pyplot() -> Any:
    require().use("Agg")
    import matplotlib.pyplot as plt

    colours = {"axes.edgecolor": MUTED, "axes.labelcolor": INK, "text.color": INK}
    colours |= {"xtick.color": MUTED, "ytick.color": INK}
    plain = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
    grid = {"grid.color": GRID, "grid.linewidth": 0.6, "axes.axisbelow": True}
    fonts = {"font.family": "DejaVu Sans", "font.size": 9, "legend.fontsize": 8}
    same = {"svg.hashsalt": "ptxgen"}  # the same file for the same data
    plt.rcParams.update({**colours, **plain, **grid, **fonts, **same})
    return plt


def _save(plt: Any, figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    undated = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=DPI, facecolor="white", metadata=undated)
    plt.close(figure)


def _heading(figure: Any, title: str, *lines: str) -> None:
    """Writes a title at the top of the figure, and lines below it."""
    height = figure.get_figheight()
    figure.text(0.02, 1 - 0.22 / height, title, fontsize=12, weight="bold", va="center")
    for number, line in enumerate(lines, start=2):
        figure.text(0.02, 1 - 0.22 * number / height, line, fontsize=8, color=MUTED, va="center")


def _against(row: Any) -> str:
    return f"ptxgen against {PEERS.get(row.peer, row.peer)}, {row.dtype}, {row.tier} tier"


def _surroundings(environment: Environment | None) -> str:
    if environment is None:
        return ""
    e = environment
    return f"{e.gpu}, cold L2, medians, CUDA {e.cuda}, torch {e.torch}, {e.commit}, {e.date[:10]}"


def _log_axis(ax: Any, name: str, ends: tuple[float, float], ticks: Iterable[float]) -> None:
    """Makes axis "x" or "y" logarithmic, with the ticks that lie between its ends."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.set(**{f"{name}scale": "log", f"{name}lim": ends})
    axis = getattr(ax, f"{name}axis")
    axis.set_major_locator(FixedLocator([tick for tick in ticks if ends[0] <= tick <= ends[1]]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda x, _: _short(int(x)) if x >= 1024 else f"{x:.3g}")
    ax.tick_params(length=2, labelsize=8)


def _around(values: Iterable[float], *more: float) -> tuple[float, float]:
    """Returns the ends of an axis that shows ``values`` with a margin, and ``more`` without."""
    listed = [*values]
    return min([min(listed) / 1.15, *more]), max([max(listed) * 1.15, *more])


def _line(**how: Any) -> Any:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **how)


def _layouts(rows: Sequence[Any]) -> list[Any]:
    """Entries of a legend for the memory layouts that occur in ``rows``."""
    there = {row.layout for row in rows}
    marks = {name: of for name, of in MARKS.items() if name in there}
    return [_line(marker=m, color=c, linestyle="", label=name) for name, (m, c) in marks.items()]


# -- ratios -----------------------------------------------------------------------
def ratios(rows: Sequence[Any], environment: Environment | None, path: Path) -> None:
    """Plots the ratios of one peer's ``rows`` of products.

    Each case is a dot, each shape a line, and each group a block of lines.
    """
    plt = _pyplot()
    groups: dict[str, dict[str, list[Any]]] = {}
    for row in rows:
        groups.setdefault(row.group, {}).setdefault(row.shape, []).append(row)
    # Inches, from the top: a heading, then per group a title and a line per shape.
    line, title, heading, footer = 0.165, 0.3, 0.8, 0.52
    height = heading + sum(title + line * (len(g) + 0.2) for g in groups.values()) + footer
    figure = plt.figure(figsize=(WIDTH, height))
    every = [row.ratio for row in rows]
    low, high = min(0.8, min(every) / 1.08), max(2.0, max(every) * 1.08)
    ticks = FEW_RATIOS if math.log2(high / low) > 2.6 else RATIOS  # more would overlap
    gated = rows[0].peer == GATE
    y = height - heading
    figure.text(
        *(0.177, (y - title + 0.075) / height, "M × K × N"),
        **{"fontsize": 7.5, "color": MUTED, "ha": "right", "va": "center"},
    )
    for name, shapes in groups.items():
        tall = line * (len(shapes) + 0.2)
        y -= title + tall
        ax = figure.add_axes((0.185, y / height, 0.795, tall / height))
        _log_axis(ax, "x", (low, high), ticks)
        _group(ax, name, shapes, gated)
        ax.tick_params(axis="x", labelbottom=False)
    ax.tick_params(axis="x", labelbottom=True)
    ax.set_xlabel("ratio = peer's time / ours (log scale); right of 1, ours is faster")
    _heading(figure, _against(rows[0]), _surroundings(environment))
    handles = [*_layouts(rows), _line(color=MEAN, linewidth=1.6, label="geometric mean")]
    if gated:
        handles.append(_line(color=MUTED, linestyle=DASHES, label="mean asked"))
        below = {"color": SHORT, "alpha": 0.15, "label": "below what is asked of each"}
        handles.append(plt.Rectangle((0, 0), 1, 1, **below))
    place = {"loc": "center left", "bbox_to_anchor": (0.008, 1 - 0.65 / height)}
    figure.legend(
        handles=handles, ncols=len(handles), handletextpad=0.4, columnspacing=1.3, **place
    )
    _save(plt, figure, path)


def _group(ax: Any, name: str, shapes: dict[str, list[Any]], gated: bool) -> None:
    mean = geomean(row.ratio for members in shapes.values() for row in members)
    first = next(iter(shapes.values()))[0]
    asked = target(name, first.dtype, first.tier) if gated else None
    wanted = []
    if asked and asked.geomean is not None:
        ax.axvline(asked.geomean, color=MUTED, linewidth=1.0, linestyle=DASHES, zorder=1)
        wanted.append(f"mean ≥ {asked.geomean:.2f}")
    if asked and asked.each is not None:
        ax.axvspan(0.01, asked.each, color=SHORT, alpha=0.09, linewidth=0, zorder=0)
        wanted.append(f"each ≥ {asked.each:.2f}")
    ax.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    ax.axvline(mean, color=MEAN, linewidth=1.6, zorder=1.5)
    for y, members in enumerate(shapes.values()):
        for row in members:
            mark, colour = MARKS.get(row.layout, ("D", MUTED))
            shift = 0.2 * ([*MARKS].index(row.layout) % 3 - 1) if len(members) > 1 else 0
            edge = {"markeredgecolor": "white", "markeredgewidth": 0.6}
            ax.plot(row.ratio, y + shift, mark, color=colour, markersize=5, zorder=3, **edge)
    ax.set_yticks(range(len(shapes)), [shape.replace("x", " × ") for shape in shapes], fontsize=7.5)
    ax.set_ylim(len(shapes) - 0.4, -0.6)  # the first on top
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", zorder=0)
    ax.spines["left"].set_visible(False)
    said = f"geometric mean {mean:.2f}" + (f"   asked: {', '.join(wanted)}" if wanted else "")
    of = {"transform": ax.transAxes, "va": "bottom"}
    ax.text(0, 1.0, name, fontsize=9, weight="bold", **of)
    ax.text(1, 1.0, said, fontsize=8, color=MUTED, ha="right", **of)


# -- many problems ------------------------------------------------------------------
def scatter(rows: Sequence[Row], environment: Environment | None, path: Path) -> None:
    """Plots the ratios of one peer's random problems over M, over K and over N."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 4.4), sharey=True)
    for ax, size in zip(axes, "mkn", strict=True):
        for row in rows:
            mark, colour = MARKS[row.layout]
            edge = {"markeredgecolor": colour, "markeredgewidth": 0.6}
            edge["color"] = colour if _aligned(row) else "none"
            ax.plot(
                getattr(row, size), row.ratio, mark, markersize=3.2, alpha=0.75, zorder=3, **edge
            )
        _log_axis(ax, "x", _around(getattr(row, size) for row in rows), POWERS[::2])
        _log_axis(ax, "y", _around((row.ratio for row in rows), 0.9, 1.1), POWERS)
        ax.axhline(1.0, color=INK, linewidth=1.0, zorder=1)
        ax.set_xlabel(f"{size.upper()} (log scale)")
        ax.grid(zorder=0)
    for band in NAMES:
        of_band = [row for row in rows if band_of(row.m) == band]
        if of_band:
            mean = geomean(row.ratio for row in of_band)
            ends = [low_high(row.m for row in of_band) for low_high in (min, max)]
            axes[0].plot(ends, [mean, mean], color=INK, linewidth=1.6, zorder=4)
    axes[0].set_ylabel("ratio = peer's time / ours; above 1, ours is faster", fontsize=8)
    found = spread(rows, RATIO)
    numbers = f"geometric mean {found.geomean:.2f}, P10 {found.tail:.2f}, least {found.worst:.2f}"
    said = f"{len(rows)} random problems: {numbers}"
    _heading(figure, _against(rows[0]), _surroundings(environment), said)
    hollow = {"marker": "o", "color": "none", "markeredgecolor": MUTED}
    handles = [
        *_layouts(rows),
        _line(**hollow, label="rows not aligned to 16 bytes"),
        _line(color=INK, linewidth=1.6, label="geometric mean of a band of M"),
    ]
    figure.legend(handles=handles, loc="lower left", ncols=len(handles))
    figure.subplots_adjust(left=0.075, right=0.985, top=0.81, bottom=0.2, wspace=0.06)
    _save(plt, figure, path)


def costs(
    points: Sequence[tuple[str, float, float]],
    title: str,
    environment: Environment | None,
    path: Path,
) -> None:
    """Plots time over memory, with a point (name, ms, MB) for each method.

    Our methods are coloured and joined by a line; their labels are the rows of a chunk.
    """
    plt = _pyplot()
    figure, ax = plt.subplots(figsize=(WIDTH, 4.2))
    line = []
    for name, ms, mb in points:
        own, at = name.startswith("ptxgen"), (max(mb, 1.0), ms)
        ax.plot(*at, "o", markersize=5, color=COLOURS[0] if own else MUTED, zorder=3)
        label = name.removeprefix("ptxgen, ").removeprefix("chunks of ")
        place, side = ((0, -13), "center") if own else ((7, -3), "left")
        if "f32" in name:
            place = (0, 7)
        elif own:
            line.append(at)
        ax.annotate(label, at, place, textcoords="offset points", ha=side, fontsize=8)
    ax.plot(*zip(*sorted(line), strict=True), color=COLOURS[0], linewidth=1.0, zorder=2)
    ax.set(xscale="log", xlim=(0.6, 4 * max(mb for *_, mb in points)))
    ax.set_ylim(0, 1.08 * max(ms for _, ms, _ in points))
    ax.set_xlabel("memory beyond operands and results, MB (log scale)")
    ax.set_ylabel("loss and gradients, ms")
    ax.tick_params(length=2, labelsize=8)
    ax.grid(zorder=0)
    _heading(figure, title, _surroundings(environment))
    figure.subplots_adjust(left=0.075, right=0.985, top=0.855, bottom=0.12)
    _save(plt, figure, path)


def regrets(rows: Sequence[Row], environment: Environment | None, path: Path) -> None:
    """Plots the sorted regrets of ``rows`` over the share of problems (a quantile function)."""
    plt = _pyplot()
    figure, ax = plt.subplots(figsize=(WIDTH, 4.4))
    parts = {ALL: rows, **{name: [row for row in rows if row.layout == name] for name in MARKS}}
    for name, members in parts.items():
        if not members:
            continue
        ordered = sorted(REGRET.of(row) for row in members)
        shares = [100 * (i + 0.5) / len(ordered) for i in range(len(ordered))]
        found = spread(members, REGRET)
        label = (
            f"{name}, {found.cases} problems: geometric mean {found.geomean:.3f}, "
            f"P90 {found.tail:.2f}, worst {found.worst:.2f} ({found.worst_at.replace('x', ' × ')})"
        )
        colour, width = (INK, 2.2) if name == ALL else (MARKS[name][1], 1.2)
        ax.plot(shares, ordered, color=colour, linewidth=width, zorder=3, label=label)
    _log_axis(ax, "y", _around((REGRET.of(row) for row in rows), 0.9, 1.1), RATIOS[6:])
    ax.set_xlim(0, 100)
    ax.axhline(1.0, color=INK, linewidth=1.0, zorder=1)
    ax.axvline(90, color=MUTED, linewidth=1.0, linestyle=DASHES, zorder=1)
    ax.text(89.3, ax.get_ylim()[1], "P90", fontsize=8, color=MUTED, ha="right", va="top")
    ax.set_xlabel("% of the problems")
    ax.set_ylabel("regret (log scale)")
    ax.grid(zorder=0)
    ax.legend(loc="upper left")
    title = f"ptxgen's chosen kernel against its best, {rows[0].dtype}, {rows[0].tier} tier"
    what = "regret = time of the chosen kernel / of the best one, both timed afresh"
    _heading(figure, title, _surroundings(environment), f"{what}; below 1 is noise")
    figure.subplots_adjust(left=0.075, right=0.975, top=0.82, bottom=0.115)
    _save(plt, figure, path)


def _aligned(row: Row) -> bool:
    """Whether the rows of both operands of a random problem are aligned to 16 bytes or more."""
    (case,) = select([row.shape], [row.layout], ["linear"], dtype=row.dtype, tier=row.tier)
    return min(natural_alignment(case)) >= 16


# -- routes -----------------------------------------------------------------------
@dataclass(frozen=True)
class RouteMap:
    """A map of the (M, N) plane: the routes, and the route that serves each cell."""

    title: str
    subtitle: str
    routes: tuple[str, ...]
    labels: tuple[str, ...]
    reasons: tuple[str, ...]
    owner: list[list[int]]  # [N][M], indices into routes
    edges: list[float]  # of cells, along either axis
    centres: list[float]


def route_map(found: RouteMap, path: Path) -> None:
    """Plots the (M, N) plane in the colours of the routes that serve it, labelled in place."""
    plt = _pyplot()
    import numpy as np
    from matplotlib.colors import ListedColormap

    owner, edges, count = np.array(found.owner), found.edges, len(found.routes)
    tints = (0.35, 0.6, 0.8, 0.15)  # light enough for dark labels
    rounds = [divmod(i, len(COLOURS)) for i in range(count)]
    colours = [_tint(COLOURS[i], tints[min(turn, len(tints) - 1)]) for turn, i in rounds]
    height = 5.4 + 0.2 * count
    figure, ax = plt.subplots(figsize=(WIDTH, height))
    how = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": count - 0.5}
    ax.pcolormesh(edges, edges, owner, rasterized=True, **how)
    for turned, plane in enumerate((owner, owner.T)):  # white lines between the regions
        for row, column in np.argwhere(plane[:, 1:] != plane[:, :-1]):
            ends = [edges[column + 1]] * 2, edges[row : row + 2]
            ax.plot(*(ends[::-1] if turned else ends), color="white", linewidth=1.2)
    for name in "xy":
        _log_axis(ax, name, (edges[0], edges[-1]), POWERS[::2])
    ax.set(xlabel="M (log scale)", ylabel="N (log scale)")
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)
    for index in range(count):
        place = _roomiest(owner == index)
        if place is None:
            continue
        row, column, run = place
        width = run / len(found.centres) * 0.89 * WIDTH * 72  # points
        label, size = _label_that_fits(found.labels[index], str(index + 1), width)
        at = found.centres[column], found.centres[row]
        ax.text(*at, label, ha="center", va="center", fontsize=size, weight="bold")
    _heading(figure, found.title, found.subtitle)
    base = 0.2 * count + 0.15
    for index, route in enumerate(found.routes):
        y = (base - 0.2 * (index + 0.5) - 0.05) / height
        where = {"transform": figure.transFigure, "figure": figure}
        patch = (0.02, y - 0.05 / height), 0.018, 0.11 / height
        figure.patches.append(plt.Rectangle(*patch, color=colours[index], **where))
        share, muted = (owner == index).mean(), {"fontsize": 7, "color": MUTED, "va": "center"}
        figure.text(0.062, y, str(index + 1), fontsize=8, va="center", ha="right")
        figure.text(0.07, y, found.labels[index], fontsize=8, weight="bold", va="center")
        figure.text(0.25, y, _fit(f"{route}: {found.reasons[index]}", 101), **muted)
        text = f"{100 * share:.0f}%" if share >= 0.005 else "< 1%"
        figure.text(0.985, y, text, ha="right", **muted)
    bottom = (base + 0.52) / height
    figure.subplots_adjust(left=0.085, right=0.975, top=1 - 0.62 / height, bottom=bottom)
    _save(plt, figure, path)


def _roomiest(mask: Any) -> tuple[int, int, int] | None:
    """Finds the place for a label that is farthest from the border of ``mask``.

    Returns row, column, and the number of free cells along the row; None for an empty mask.
    """
    import numpy as np

    if not mask.any():
        return None
    inner = np.pad(mask, 1)
    while inner.any():  # erode it; the last cells left are farthest from the border
        last = inner
        inner = inner.copy()
        inner[1:-1, 1:-1] &= last[:-2, 1:-1] & last[2:, 1:-1] & last[1:-1, :-2] & last[1:-1, 2:]
    cells = np.argwhere(last) - 1
    row, column = cells[np.abs(cells - cells.mean(axis=0)).sum(axis=1).argmin()]
    outside = np.flatnonzero(~np.pad(mask[row], 1)) - 1
    right = outside[outside > column].min()
    left = outside[outside < column].max() + 1
    return int(row), int(left + right - 1) // 2, int(right - left)


def _label_that_fits(label: str, number: str, width: float) -> tuple[str, float]:
    """Returns the longest text that fits ``width`` points, and its font size.

    Texts are the label, its tile alone, or its number in the legend.
    """
    tile = label.partition(",")[0].partition(" ")[0]
    for text, size in ((label, 8.5), (tile, 8.5), (tile, 7.0)):
        if 0.72 * size * len(text) + 4 <= width:  # a bold digit is 0.7 em wide
            return text, size
    return number, 8.0


def _tint(colour: str, amount: float) -> tuple[float, ...]:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(c + (1 - c) * amount for c in channels)


def _fit(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _short(value: int) -> str:
    return f"{value >> 10}k" if value >= 1024 else str(value)
