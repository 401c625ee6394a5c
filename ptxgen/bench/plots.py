"""Plots of speed-ups by group, and of the kernel that serves each problem.

Plotting needs matplotlib, and no GPU.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxgen.bench.results import geomean
from ptxgen.errors import PtxgenError

# Okabe and Ito's palette: told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
INK, MUTED, GRID = "#222222", "#6b6b6b", "#dddddd"
FASTER, SLOWER = COLOURS[0], COLOURS[5]
WIDTH, DPI = 8.6, 110  # inches, and dots per inch: about what a README shows
PALETTE = 24
"""Number of colours in a PNG file."""
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
    if path.suffix == ".png":
        _save_few_colours(figure, path)
    else:
        figure.savefig(path, dpi=DPI, facecolor="white", metadata=undated)
    plt.close(figure)


def _save_few_colours(figure: Any, path: Path) -> None:
    """Writes a PNG with :data:`PALETTE` colours, which takes a third of the bytes."""
    from PIL import Image  # a requirement of matplotlib

    whole = io.BytesIO()
    figure.savefig(whole, dpi=DPI, facecolor="white", format="png")
    image = Image.open(whole).convert("RGB")
    image.quantize(PALETTE, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def _heading(figure: Any, title: str, *lines: str) -> None:
    """Writes a title at the top of the figure, and lines below it."""
    height = figure.get_figheight()
    figure.text(0.02, 1 - 0.22 / height, title, fontsize=12, weight="bold", va="center")
    for number, line in enumerate(lines, start=2):
        figure.text(0.02, 1 - 0.22 * number / height, line, fontsize=8, color=MUTED, va="center")


def _log_axis(ax: Any, name: str, ends: tuple[float, float], ticks: Iterable[float]) -> None:
    """Makes axis "x" or "y" logarithmic with limits ``ends``, and shows ``ticks`` within them."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.set(**{f"{name}scale": "log", f"{name}lim": ends})
    axis = getattr(ax, f"{name}axis")
    axis.set_major_locator(FixedLocator([tick for tick in ticks if ends[0] <= tick <= ends[1]]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda x, _: _short(int(x)) if x >= 1024 else f"{x:.3g}")
    ax.tick_params(length=2, labelsize=8)


def _axis_limits(values: Iterable[float], *more: float) -> tuple[float, float]:
    """Returns axis limits that contain ``values`` with a margin of 15 %, and ``more`` without."""
    listed = [*values]
    return min([min(listed) / 1.15, *more]), max([max(listed) * 1.15, *more])


# -- speed-ups --------------------------------------------------------------------
@dataclass(frozen=True)
class SpeedUps:
    """Speed-ups (peer time / ptxgen time) by group, and title and subtitle of their plot.

    ``most``: larger speed-ups are drawn at this value, as triangles.
    """

    title: str
    subtitle: str
    groups: Mapping[str, Sequence[float]]
    most: float = math.inf


def speed_ups(found: SpeedUps, path: Path) -> None:
    """Plots a row for each group: a dot for each case, and a bar at the geometric mean.

    Dots below 1, where the peer is faster, have another colour.
    """
    plt = _pyplot()
    names, values, most = [*found.groups], [*found.groups.values()], found.most
    height = 1.3 + 0.3 * len(names)
    figure, ax = plt.subplots(figsize=(WIDTH, height))
    for y, of in enumerate(values):
        dots = [(value, y + _jitter(i, len(of))) for i, value in enumerate(of)]
        for mark, colour, some in (
            ("o", SLOWER, [dot for dot in dots if dot[0] < 1]),
            ("o", FASTER, [dot for dot in dots if 1 <= dot[0] <= most]),
            (">", FASTER, [(most, at) for value, at in dots if value > most]),
        ):
            how = {"color": colour, "markersize": 3.2, "alpha": 0.45, "markeredgewidth": 0}
            ax.plot([x for x, _ in some], [y for _, y in some], mark, **how)
        mean = geomean(of)
        ax.plot([min(mean, most)] * 2, [y - 0.36, y + 0.36], color=INK, linewidth=2.0, zorder=4)
        ax.text(1.01, y, f"{mean:.2f}", transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    every = [min(v, most) for of in values for v in of]
    ends = _axis_limits(every, 0.5, 2.0)
    octaves = math.log2(ends[1] / ends[0])
    _log_axis(ax, "x", ends, RATIOS if octaves < 3 else FEW_RATIOS if octaves < 5 else POWERS)
    ax.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    labels = [f"{name} ({len(of)})" for name, of in found.groups.items()]
    ax.set_yticks(range(len(names)), labels, fontsize=8)
    ax.set_ylim(len(names) - 0.5, -0.5)  # the first on top
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", zorder=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("speed-up = peer's time / ours (log scale); right of 1, ptxgen is faster")
    beyond = f"; triangles: above {most:g}" if max(map(max, values)) > most else ""
    _heading(figure, found.title, found.subtitle + beyond)
    longest = max(map(len, labels))
    left = min(0.02 + 0.0072 * longest, 0.5)
    figure.text(0.985, 1 - 0.44 / height, "mean", fontsize=8, ha="right", va="center")
    figure.subplots_adjust(left=left, right=0.945, top=1 - 0.58 / height, bottom=0.5 / height)
    _save(plt, figure, path)


def _jitter(i: int, count: int) -> float:
    """Returns the vertical offset of dot ``i`` of ``count`` in its row, so that dots do not
    overlap.
    """
    return 0.56 * ((0.618034 * i) % 1 - 0.5) if count > 8 else 0.0


# -- routes -----------------------------------------------------------------------
@dataclass(frozen=True)
class RouteMap:
    """A map of the (M, N) plane: the route (sequence of kernels) that serves each cell.

    ``routes``, ``labels``: names of the routes, and short texts to draw in their regions;
    ``reasons``: why each route is listed.
    """

    title: str
    subtitle: str
    routes: tuple[str, ...]
    labels: tuple[str, ...]
    reasons: tuple[str, ...]
    owner: list[list[int]]  # [N][M], indices into routes
    edges: list[float]  # of cells, along either axis
    centres: list[float]


def route_map(found: RouteMap, path: Path) -> None:
    """Plots the (M, N) plane in the colours of the routes that serve it, with labels in the
    regions.
    """
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
        cell = _label_cell(owner == index)
        if cell is None:
            continue
        row, column, run = cell
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
        figure.text(0.25, y, _truncated(f"{route}: {found.reasons[index]}", 101), **muted)
        text = f"{100 * share:.0f}%" if share >= 0.005 else "< 1%"
        figure.text(0.985, y, text, ha="right", **muted)
    bottom = (base + 0.52) / height
    figure.subplots_adjust(left=0.085, right=0.975, top=1 - 0.62 / height, bottom=bottom)
    _save(plt, figure, path)


def _label_cell(mask: Any) -> tuple[int, int, int] | None:
    """Finds the cell for a label: the one of ``mask`` that is farthest from its border.

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

    Candidates are the label, its tile size alone, and ``number``, its index in the legend.
    """
    tile = label.partition(",")[0].partition(" ")[0]
    for text, size in ((label, 8.5), (tile, 8.5), (tile, 7.0)):
        if 0.72 * size * len(text) + 4 <= width:  # a bold digit is 0.7 em wide
            return text, size
    return number, 8.0


def _tint(colour: str, amount: float) -> tuple[float, ...]:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(c + (1 - c) * amount for c in channels)


def _truncated(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _short(value: int) -> str:
    return f"{value >> 10}k" if value >= 1024 else str(value)
