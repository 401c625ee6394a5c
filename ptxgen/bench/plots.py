"""Plots: ratio by shape, and which kernel serves which problems. Needs matplotlib, no GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ptxgen.bench.bands import ALL, NAMES, RATIO, REGRET, band_of, spread
from ptxgen.bench.cases import select, target
from ptxgen.bench.measure import natural_alignment
from ptxgen.bench.results import GATE, Environment, Row, geomean
from ptxgen.errors import PtxgenError

# Okabe and Ito's palette: told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
INK, MUTED, GRID = "#222222", "#6b6b6b", "#dddddd"
WIDTH, DPI = 8.6, 110  # inches, and dots per inch: about what a README shows
_MARKS = {
    "NN": ("o", COLOURS[0]),
    "NT": ("s", COLOURS[1]),
    "TN": ("^", COLOURS[2]),
    "rcr": ("o", COLOURS[0]),
    "rrr": ("s", COLOURS[1]),
}
_PEERS = {
    "torch": "cuBLAS (torch.mm)",
    "triton": "Triton, batch-invariant",
    "sgemm_bi": "sgemm-bi",
    "int_mm": "cuBLASLt (torch._int_mm)",
}


class Compared(Protocol):
    """Ours and a peer on one case: what :func:`ratios` reads of a row of a benchmark."""

    @property
    def group(self) -> str: ...
    @property
    def shape(self) -> str: ...
    @property
    def layout(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def tier(self) -> str: ...
    @property
    def peer(self) -> str: ...
    @property
    def ratio(self) -> float: ...


def require() -> Any:
    """The module matplotlib. Raises PtxgenError where it is not installed."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise PtxgenError("plots need matplotlib; pip install 'ptxgen[bench]'") from error
    return matplotlib


def _pyplot() -> Any:
    require().use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "axes.edgecolor": MUTED,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": MUTED,
            "ytick.color": INK,
            "svg.hashsalt": "ptxgen",  # the same file for the same data
        }
    )
    return plt


def _save(plt: Any, figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    undated = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=DPI, facecolor="white", metadata=undated)
    plt.close(figure)


# -- ratios -----------------------------------------------------------------------
def ratios(rows: Sequence[Compared], environment: Environment | None, path: Path) -> None:
    """A dot per case of one peer's ``rows``: one line per shape, groups one under another."""
    plt = _pyplot()
    from matplotlib.ticker import FixedLocator, NullLocator

    groups: dict[str, dict[str, list[Compared]]] = {}
    for row in rows:
        groups.setdefault(row.group, {}).setdefault(row.shape, []).append(row)
    # Inches, from the top: a heading, then per group a title and a line per shape.
    line, title, heading, footer = 0.165, 0.3, 0.8, 0.52
    height = heading + sum(title + line * (len(g) + 0.2) for g in groups.values()) + footer
    figure = plt.figure(figsize=(WIDTH, height))
    axes: list[Any] = []
    y = height - heading
    for shapes in groups.values():
        tall = line * (len(shapes) + 0.2)
        y -= title + tall
        place = (0.185, y / height, 0.795, tall / height)
        axes.append(figure.add_axes(place, sharex=axes[0] if axes else None))
    every = [row.ratio for row in rows]
    low = min(0.8, min(every) / 1.08)
    high = max(2.0, max(every) * 1.08)
    for ax, (name, shapes) in zip(axes, groups.items(), strict=True):
        _group(ax, name, shapes, rows[0].peer == GATE)
        ax.set_xscale("log", base=2)
        ax.set_xlim(low, high)
        ax.xaxis.set_major_locator(FixedLocator(_ticks(low, high)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.tick_params(axis="x", labelbottom=ax is axes[-1])
    figure.text(
        0.177,
        axes[0].get_position().y1 + 0.075 / height,
        "M × K × N",
        fontsize=7.5,
        color=MUTED,
        ha="right",
        va="center",
    )
    axes[-1].set_xlabel("ratio = peer's time / ours (log scale); right of 1, ours is faster")
    peer = rows[0].peer
    top = _heading(figure, _against(rows[0]), environment)
    _legend(figure, rows, peer == GATE, top)
    _save(plt, figure, path)


def _against(row: Compared) -> str:
    return f"ptxgen against {_PEERS.get(row.peer, row.peer)}, {row.dtype}, {row.tier} tier"


def _heading(figure: Any, title: str, environment: Environment | None) -> float:
    """Writes title and surroundings; where the title is."""
    height = figure.get_figheight()
    top = 1 - 0.22 / height
    figure.text(0.02, top, title, fontsize=12, weight="bold", va="center")
    if environment is not None:
        e = environment
        text = (
            f"{e.gpu}, cold L2, medians, CUDA {e.cuda}, torch {e.torch}, {e.commit}, {e.date[:10]}"
        )
        figure.text(0.02, top - 0.22 / height, text, fontsize=8, color=MUTED, va="center")
    return float(top)


def _group(ax: Any, name: str, shapes: dict[str, list[Compared]], gated: bool) -> None:
    found = [row.ratio for members in shapes.values() for row in members]
    mean = math.exp(sum(map(math.log, found)) / len(found))
    ax.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    first = next(iter(shapes.values()))[0]
    asked_of = target(name, first.dtype, first.tier) if gated else None
    if asked_of and asked_of.each is not None:
        ax.axvspan(0.01, asked_of.each, color="#D55E00", alpha=0.09, linewidth=0, zorder=0)
    if asked_of and asked_of.geomean is not None:
        ax.axvline(asked_of.geomean, color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    ax.axvline(mean, color=COLOURS[3], linewidth=1.6, zorder=1.5)
    for y, members in enumerate(shapes.values()):
        for row in members:
            mark, colour = _MARKS.get(row.layout, ("D", MUTED))
            shift = 0.2 * (list(_MARKS).index(row.layout) % 3 - 1) if len(members) > 1 else 0
            ax.plot(
                row.ratio,
                y + shift,
                mark,
                color=colour,
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.6,
                zorder=3,
            )
    ax.set_yticks(range(len(shapes)), [shape.replace("x", " × ") for shape in shapes], fontsize=7.5)
    ax.set_ylim(len(shapes) - 0.4, -0.6)  # the first on top
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", length=2, labelsize=8)
    ax.grid(axis="x", color=GRID, linewidth=0.6, zorder=0)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    asked = ""
    if asked_of:
        wanted = [f"mean ≥ {asked_of.geomean:.2f}"] if asked_of.geomean is not None else []
        wanted += [f"each ≥ {asked_of.each:.2f}"] if asked_of.each is not None else []
        asked = f"   asked: {', '.join(wanted)}"
    ax.text(0, 1.0, name, transform=ax.transAxes, fontsize=9, weight="bold", va="bottom")
    ax.text(
        1,
        1.0,
        f"geometric mean {mean:.2f}{asked}",
        transform=ax.transAxes,
        fontsize=8,
        color=MUTED,
        va="bottom",
        ha="right",
    )


def _ticks(low: float, high: float) -> list[float]:
    usual = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 12, 16, 32)
    ticks = [t for t in usual if low <= t <= high]
    if math.log2(high / low) > 2.6:  # would overlap
        ticks = [t for t in ticks if t not in (0.6, 0.7, 0.9, 1.1, 1.25, 2.5, 5)]
    return ticks


def _legend(figure: Any, rows: Sequence[Compared], gated: bool, top: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    present = dict.fromkeys(row.layout for row in rows)
    handles: list[Any] = [
        Line2D([], [], marker=_MARKS[name][0], color=_MARKS[name][1], linestyle="", label=name)
        for name in _MARKS
        if name in present
    ]
    handles.append(Line2D([], [], color=COLOURS[3], linewidth=1.6, label="geometric mean"))
    if gated:
        handles.append(Line2D([], [], color=MUTED, linestyle=(0, (2, 2)), label="mean asked"))
        handles.append(Patch(color="#D55E00", alpha=0.15, label="below what is asked of each"))
    figure.legend(
        handles=handles,
        loc="center left",
        ncols=len(handles),
        frameon=False,
        fontsize=8,
        bbox_to_anchor=(0.008, top - 0.43 / figure.get_figheight()),
        handletextpad=0.4,
        columnspacing=1.3,
    )


# -- many problems ------------------------------------------------------------------
def scatter(rows: Sequence[Row], environment: Environment | None, path: Path) -> None:
    """One peer's ratio over M, over K and over N, of the ``rows`` of random problems."""
    plt = _pyplot()
    from matplotlib.lines import Line2D

    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 4.4), sharey=True)
    layouts = [name for name in _MARKS if any(row.layout == name for row in rows)]
    for ax, size in zip(axes, "mkn", strict=True):
        for row in rows:
            mark, colour = _MARKS[row.layout]
            ax.plot(
                getattr(row, size),
                row.ratio,
                mark,
                markersize=3.2,
                color=colour if _aligned(row) else "none",
                markeredgecolor=colour,
                markeredgewidth=0.6,
                alpha=0.75,
                zorder=3,
            )
        _log_axis(ax, "x", (getattr(row, size) for row in rows), _POWERS[::2])
        _log_axis(ax, "y", (row.ratio for row in rows), _POWERS)
        ax.set_xlabel(f"{size.upper()} (log scale)")
        _plain(ax)
    for band in NAMES:
        of_band = [row for row in rows if band_of(row.m) == band]
        if of_band:
            mean = geomean(row.ratio for row in of_band)
            ends = [low_high(row.m for row in of_band) for low_high in (min, max)]
            axes[0].plot(ends, [mean, mean], color=INK, linewidth=1.6, zorder=4)
    axes[0].set_ylabel("ratio = peer's time / ours; above 1, ours is faster", fontsize=8)
    found = spread(rows, RATIO)
    numbers = f"geometric mean {found.geomean:.2f}, P10 {found.tail:.2f}, least {found.worst:.2f}"
    top = _heading(figure, _against(rows[0]), environment)
    _below(figure, f"{len(rows)} random problems: {numbers}", top)
    handles = [
        Line2D([], [], marker=_MARKS[name][0], color=_MARKS[name][1], linestyle="", label=name)
        for name in layouts
    ]
    hollow = Line2D([], [], marker="o", color="none", markeredgecolor=MUTED)
    hollow.set_label("rows not aligned to 16 bytes")
    handles.append(hollow)
    handles.append(Line2D([], [], color=INK, linewidth=1.6, label="geometric mean of a band of M"))
    _key(figure, handles)
    figure.subplots_adjust(left=0.075, right=0.985, top=0.81, bottom=0.2, wspace=0.06)
    _save(plt, figure, path)


def costs(
    points: Sequence[tuple[str, float, float]],
    title: str,
    environment: Environment | None,
    path: Path,
) -> None:
    """Time over memory, a point a method: (name, ms, MB). Ours have a colour, and a line; their
    numbers are rows of a chunk.
    """
    plt = _pyplot()
    figure, ax = plt.subplots(figsize=(WIDTH, 4.2))
    ours = [p for p in points if p[0].startswith("ptxgen")]
    for name, ms, mb in points:
        own = name.startswith("ptxgen")
        colour = _MARKS["NN"][1] if own else MUTED
        ax.plot(max(mb, 1.0), ms, "o", markersize=5, color=colour, zorder=3)
        label = name.removeprefix("ptxgen, ").removeprefix("chunks of ")
        place, side = ((0, -13), "center") if own else ((7, -3), "left")
        if "f32" in name:
            place = (0, 7)
        ax.annotate(
            label, (max(mb, 1.0), ms), place, textcoords="offset points", ha=side, fontsize=8
        )
    line = sorted((max(mb, 1.0), ms) for name, ms, mb in ours if "f32" not in name)
    ax.plot(*zip(*line, strict=True), color=_MARKS["NN"][1], linewidth=1.0, zorder=2)
    ax.set_xscale("log")
    ax.set_xlim(0.6, 4 * max(mb for _, _, mb in points))
    ax.set_ylim(0, 1.08 * max(ms for _, ms, _ in points))
    ax.set_xlabel("memory beyond operands and results, MB (log scale)")
    ax.set_ylabel("loss and gradients, ms")
    ax.grid(True, color=MUTED, alpha=0.15)
    _plain(ax)
    top = _heading(figure, title, environment)
    figure.subplots_adjust(left=0.075, right=0.985, top=top - 0.09, bottom=0.12)
    _save(plt, figure, path)


def regrets(rows: Sequence[Row], environment: Environment | None, path: Path) -> None:
    """The regrets of ``rows``, sorted: which share of the problems has at most which."""
    plt = _pyplot()
    from matplotlib.lines import Line2D

    figure, ax = plt.subplots(figsize=(WIDTH, 4.4))
    handles = []
    parts = [([row for row in rows if row.layout == name], name) for name in _MARKS]
    for members, name in [(rows, ALL), *parts]:
        if not members:
            continue
        ordered = sorted(REGRET.of(row) for row in members)
        colour = INK if name == ALL else _MARKS[name][1]
        width = 2.2 if name == ALL else 1.2
        shares = [100 * (i + 0.5) / len(ordered) for i in range(len(ordered))]
        ax.plot(shares, ordered, color=colour, linewidth=width, zorder=3)
        found = spread(members, REGRET)
        label = (
            f"{name}, {found.cases} problems: geometric mean {found.geomean:.3f}, "
            f"P90 {found.tail:.2f}, worst {found.worst:.2f} ({found.worst_at.replace('x', ' × ')})"
        )
        handles.append(Line2D([], [], color=colour, linewidth=width, label=label))
    _log_axis(ax, "y", (REGRET.of(row) for row in rows), _FINE)
    ax.set_xlim(0, 100)
    ax.axvline(90, color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    ax.text(89.3, ax.get_ylim()[1], "P90", fontsize=8, color=MUTED, ha="right", va="top")
    ax.set_xlabel("% of the problems")
    ax.set_ylabel("regret (log scale)")
    _plain(ax)
    ax.legend(handles=handles, loc="upper left", fontsize=8, frameon=False)
    title = f"ptxgen's chosen kernel against its best, {rows[0].dtype}, {rows[0].tier} tier"
    _below(
        figure,
        "regret = time of the chosen kernel / of the best one, both timed afresh; below 1 is noise",
        _heading(figure, title, environment),
    )
    figure.subplots_adjust(left=0.075, right=0.975, top=0.82, bottom=0.115)
    _save(plt, figure, path)


def _aligned(row: Row) -> bool:
    """Whether the rows of both operands of a random problem are aligned to 16 bytes."""
    (case,) = select([row.shape], [row.layout], ["linear"], dtype=row.dtype, tier=row.tier)
    return min(natural_alignment(case)) >= 16


_POWERS = tuple(2.0**e for e in range(-16, 32))
_FINE = (1, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 12, 16, 32)


def _log_axis(ax: Any, name: str, values: Iterable[float], ticks: Sequence[float]) -> None:
    """Makes the axis "x" or "y" a log axis around ``values``; y has a line at 1."""
    from matplotlib.ticker import FixedLocator, NullLocator

    listed = list(values)
    low, high = min(listed) / 1.15, max(listed) * 1.15
    if name == "y":
        low, high = min(low, 0.9), max(high, 1.1)
        ax.axhline(1.0, color=INK, linewidth=1.0, zorder=1)
    ax.set(**{f"{name}scale": "log", f"{name}lim": (low, high)})
    axis = getattr(ax, f"{name}axis")
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda x, _: _short(int(x)) if x >= 1024 else f"{x:.3g}")


def _plain(ax: Any) -> None:
    ax.grid(color=GRID, linewidth=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(length=2, labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _below(figure: Any, text: str, top: float) -> None:
    """A third line of the heading."""
    figure.text(0.02, top - 0.43 / figure.get_figheight(), text, fontsize=8, va="center")


def _key(figure: Any, handles: Sequence[Any]) -> None:
    figure.legend(handles=handles, loc="lower left", ncols=len(handles), frameon=False, fontsize=8)


# -- routes -----------------------------------------------------------------------
@dataclass(frozen=True)
class RouteMap:
    """The routes of a plane, and which of them owns each cell."""

    title: str
    subtitle: str
    axes: tuple[str, str]
    routes: tuple[str, ...]
    labels: tuple[str, ...]
    reasons: tuple[str, ...]
    owner: list[list[int]]  # [N][M], indices into routes
    edges_m: list[float]
    edges_n: list[float]
    centres_m: list[float]
    centres_n: list[float]


def route_map(found: RouteMap, path: Path) -> None:
    """The (M, N) plane in the colours of the routes that serve it, labelled in place."""
    plt = _pyplot()
    import numpy as np
    from matplotlib.colors import ListedColormap

    owner = np.array(found.owner)  # [N, M] of indices into found.routes
    count = len(found.routes)
    tints = (0.35, 0.6, 0.8, 0.15)  # light enough for dark labels
    rounds = [divmod(i, len(COLOURS)) for i in range(count)]
    colours = [_tint(COLOURS[i], tints[min(turn, len(tints) - 1)]) for turn, i in rounds]
    height = 5.4 + 0.2 * count
    figure, ax = plt.subplots(figsize=(WIDTH, height))
    ax.pcolormesh(
        found.edges_m,
        found.edges_n,
        owner,
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=count - 0.5,
        rasterized=True,
    )
    _borders(ax, found, owner)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_tick_params(length=3)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    for setter, edges in ((ax.set_xticks, found.edges_m), (ax.set_yticks, found.edges_n)):
        powers = [2**e for e in range(0, 32, 2) if edges[0] <= 2**e <= edges[-1]]
        setter(powers, [_short(p) for p in powers])
    ax.minorticks_off()
    ax.set_xlim(found.edges_m[0], found.edges_m[-1])
    ax.set_ylim(found.edges_n[0], found.edges_n[-1])
    ax.set_xlabel(f"{found.axes[0]} (log scale)")
    ax.set_ylabel(f"{found.axes[1]} (log scale)")
    for index in range(count):
        place = _roomiest(owner == index)
        if place is None:
            continue
        row, column, run = place
        width = run / len(found.centres_m) * 0.89 * WIDTH * 72  # points
        label, size = _label_that_fits(found.labels[index], str(index + 1), width)
        ax.text(
            found.centres_m[column],
            found.centres_n[row],
            label,
            ha="center",
            va="center",
            fontsize=size,
            weight="bold",
        )
    top = 1 - 0.25 / height
    figure.text(0.02, top, found.title, fontsize=12, weight="bold", va="center")
    figure.text(0.02, top - 0.23 / height, found.subtitle, fontsize=8, color=MUTED, va="center")
    base = 0.2 * count + 0.15
    for index, route in enumerate(found.routes):
        y = (base - 0.2 * (index + 0.5) - 0.05) / height
        figure.patches.append(
            plt.Rectangle(
                (0.02, y - 0.05 / height),
                0.018,
                0.11 / height,
                color=colours[index],
                transform=figure.transFigure,
                figure=figure,
            )
        )
        share = (owner == index).mean()
        figure.text(0.062, y, str(index + 1), fontsize=8, va="center", ha="right")
        figure.text(0.07, y, found.labels[index], fontsize=8, weight="bold", va="center")
        figure.text(
            0.25,
            y,
            _fit(f"{route}: {found.reasons[index]}", 101),
            fontsize=7,
            color=MUTED,
            va="center",
        )
        figure.text(
            0.985,
            y,
            f"{100 * share:.0f}%" if share >= 0.005 else "< 1%",
            fontsize=7,
            color=MUTED,
            va="center",
            ha="right",
        )
    figure.subplots_adjust(
        left=0.085, right=0.975, top=1 - 0.62 / height, bottom=(base + 0.52) / height
    )
    _save(plt, figure, path)


def _borders(ax: Any, found: RouteMap, owner: Any) -> None:
    """White lines between the regions."""
    import numpy as np

    for row, column in np.argwhere(owner[:, 1:] != owner[:, :-1]):
        x = found.edges_m[column + 1]
        ax.plot([x, x], [found.edges_n[row], found.edges_n[row + 1]], color="white", linewidth=1.2)
    for row, column in np.argwhere(owner[1:] != owner[:-1]):
        y = found.edges_n[row + 1]
        ax.plot(
            [found.edges_m[column], found.edges_m[column + 1]], [y, y], color="white", linewidth=1.2
        )


def _roomiest(mask: Any) -> tuple[int, int, int] | None:
    """Where in ``mask`` a label has most room: row, column, and the cells free along the row."""
    import numpy as np

    if not mask.any():
        return None
    inner = np.pad(mask, 1)
    while inner.any():  # erode it; what is left last is farthest from the border
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
    """The label, its tile alone, or the number in the legend; and a font size."""
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
