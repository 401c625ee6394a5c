"""From measured times to few rules: which kernel is the fastest choice in which box.

The measured problems span a grid of M, N and K. A problem stands for the sizes around it:
up to halfway (geometrically) to its neighbours, except that a small M or N, where it decides
whether a tile's height is filled, stands for the sizes below it. Cells of the grid that nobody
measured go by the nearest measured problem, and count little.

Rules are a decision list, the first that fits decides. It grows from its end: the next rule is
always the kernel and the box that save most of the time still lost, and it is put before the
others, as an exception to them. Operands that are aligned worse have rules behind all of those.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from ptxgen.tiles.tunings import Bounds, Rule

MOST_RULES = 64
FEW = 3
"""Rules that every pair of alignments may have."""
LEAST_GAIN = 0.02
"""What a rule must save to be worth its line: 2 % of a problem's time, or 1 % of two, ..."""
SLACK_US = 0.1
"""So many µs above the best are none: short times are not repeated better."""
UNMEASURED = 0.01
"""What a cell that nobody measured counts."""
FITS = 256
"""M and N up to this stand for the sizes below, not around: they fill a tile or do not."""
_UNSERVED = 2.0  # logarithm of a slowness, to begin with

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Box = tuple[slice, ...]


@dataclass(frozen=True)
class Point:
    """A measured problem: the product's sizes, the alignments, and each kernel's time in µs.

    ``weight``: as how many problems it counts.
    """

    m: int
    n: int
    k: int
    align: tuple[int, int]
    times: Mapping[str, float]
    weight: float = 1.0

    @property
    def sizes(self) -> tuple[int, int, int]:
        """M, N and K."""
        return self.m, self.n, self.k

    @property
    def best(self) -> float:
        """The fastest kernel's time."""
        return min(self.times.values())


@dataclass(frozen=True)
class Learnt:
    """Rules, and how they do on the points they were learnt from."""

    rules: tuple[Rule, ...]
    mean: float
    """The geometric mean of time with the rules / best time."""
    worst: float
    worst_at: Point


def learn(points: Iterable[Point], *, itemsize: int = 4, most: int = MOST_RULES) -> Learnt:
    """About ``most`` rules for ``points``: every pair of alignments its share, or :data:`FEW`.

    ``itemsize``: bytes of an element, by which every operand is aligned.
    """
    points = [point for point in points if point.times]
    if not points:
        raise ValueError("nothing was measured")
    # The best aligned first: worse aligned kernels serve them too, but not the other way round.
    ordered = sorted(points, key=lambda p: (-sum(p.align), p.align))
    rules: list[Rule] = []
    for align, members in groupby(ordered, key=lambda p: p.align):
        same = list(members)
        share = max(min(FEW, most), most * len(same) // len(points))
        a, b = (1 if x <= itemsize else x for x in align)
        rules += _Grid(same).rules((a, b), share)
    losses = [(time_by(rules, p) / p.best, p) for p in points]
    worst, at = max(losses, key=lambda x: x[0])
    mean = math.exp(sum(math.log(loss) for loss, _ in losses) / len(losses))
    return Learnt(tuple(rules), mean, worst, at)


def chosen_by(rules: Iterable[Rule], point: Point) -> str | None:
    """The kernel of the first rule that serves ``point``; None if there is none."""
    m, n, k = point.sizes
    env = {"M": m, "N": n, "K": k, "ALIGN_A": point.align[0], "ALIGN_B": point.align[1]}
    fitting = (r.kernel for r in rules if r.kernel in point.times and r.prefer.evaluate(env))
    return next(fitting, None)


def time_by(rules: Iterable[Rule], point: Point) -> float:
    """The time of that kernel; infinite if there is none."""
    kernel = chosen_by(rules, point)
    return math.inf if kernel is None else point.times[kernel]


class _Grid:
    """The cells that points of one alignment span."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.points = points
        self.axes = [sorted(set(axis)) for axis in zip(*(p.sizes for p in points), strict=True)]
        self.shape = tuple(map(len, self.axes))
        self.upper = [
            _upper(axis, fits) for axis, fits in zip(self.axes, (FITS, FITS, 0), strict=True)
        ]
        self.kernels = sorted({name for p in points for name in p.times})
        self.measured: Flags = np.zeros(self.shape, bool)
        self.owner = np.zeros(self.shape, int)
        """The point that a cell goes by."""
        self._place()
        weights: Floats = np.array([p.weight for p in points])
        self.weight: Floats = np.where(self.measured, weights[self.owner], UNMEASURED)
        lost: Floats = np.full((len(self.kernels), len(points)), np.inf)
        for i, p in enumerate(points):
            for name, us in p.times.items():
                lost[self.kernels.index(name), i] = _loss(max(us - SLACK_US, p.best) / p.best)
        self.lost = lost[:, self.owner]
        """What each kernel loses in each cell; infinite where it does not serve."""

    def _place(self) -> None:
        places = np.array(
            [[a.index(s) for a, s in zip(self.axes, p.sizes, strict=True)] for p in self.points]
        )
        for i, place in enumerate(places):
            self.owner[tuple(place)] = i
            self.measured[tuple(place)] = True
        logs = [np.log2(np.array(axis, float)) for axis in self.axes]
        known = np.stack([log[i] for log, i in zip(logs, places.T, strict=True)], axis=1)
        for cell in np.argwhere(~self.measured):
            here = np.array([log[i] for log, i in zip(logs, cell, strict=True)])
            self.owner[tuple(cell)] = int(((known - here) ** 2).sum(axis=1).argmin())

    def rules(self, align: tuple[int, int], most: int) -> list[Rule]:
        """At most ``most`` rules, the first that fits decides."""
        rules = []
        decided: Flags = np.zeros(self.shape, bool)
        for kernel, box in self._without_idle(self._revised(self._grown(most))):
            cells = self._in(box) & ~decided & np.isfinite(self.lost[kernel])
            decided |= cells
            name = self.kernels[kernel]
            reason = self._reason(name, cells)
            rules.append(replace(self._bounded(box), kernel=name, align=align, reason=reason))
        return rules

    def _grown(self, most: int) -> list[tuple[int, Box]]:
        """The list, from its end: each kernel and box save most of what is still lost."""
        lost: Floats = np.full(self.shape, _loss(math.exp(_UNSERVED)))
        found: list[tuple[int, Box]] = []
        while len(found) < most:
            saved = np.where(np.isfinite(self.lost), lost - self.lost, 0.0) * self.weight
            boxes = [_heaviest(each) for each in saved]
            kernel = max(range(len(boxes)), key=lambda i: boxes[i][0])
            gain, box = boxes[kernel]
            if gain < LEAST_GAIN:
                break
            box = self._widened(box, saved[kernel], gain - LEAST_GAIN / 10)
            self._serve(lost, kernel, box)
            found.insert(0, (kernel, box))
        return found

    def _serve(self, lost: Floats, kernel: int, box: Box) -> None:
        """Has ``kernel`` decide in ``box``, wherever it serves."""
        here = self.lost[kernel][box]
        lost[box] = np.where(np.isfinite(here), here, lost[box])

    def _widened(self, box: Box, saved: Floats, least: float) -> Box:
        """``box`` without the bounds that keep (almost) nothing out: fewer words."""
        for axis, size in enumerate(self.shape):
            part = box[axis]
            for whole in (slice(0, size), slice(0, part.stop), slice(part.start, size)):
                wider = (*box[:axis], whole, *box[axis + 1 :])
                if saved[wider].sum() >= least:
                    box = wider
                    break
        return box

    def _revised(self, boxes: list[tuple[int, Box]]) -> list[tuple[int, Box]]:
        """Each box once more with the kernel that is best now that there are exceptions."""
        for index, (_, box) in reversed(list(enumerate(boxes))):
            choices = [
                [*boxes[:index], (kernel, box), *boxes[index + 1 :]]
                for kernel in range(len(self.kernels))
            ]
            boxes = min([boxes, *choices], key=self._total)
        return boxes

    def _without_idle(self, boxes: list[tuple[int, Box]]) -> list[tuple[int, Box]]:
        """Leaves out what later exceptions have made useless."""
        for index in reversed(range(len(boxes))):
            without = boxes[:index] + boxes[index + 1 :]
            if self._total(without) <= self._total(boxes) + LEAST_GAIN / 2:
                boxes = without
        return boxes

    def _total(self, boxes: Sequence[tuple[int, Box]]) -> float:
        lost: Floats = np.full(self.shape, _loss(math.exp(_UNSERVED)))
        for kernel, box in reversed(boxes):
            self._serve(lost, kernel, box)
        return float((lost * self.weight).sum())

    def _in(self, box: Box) -> Flags:
        cells: Flags = np.zeros(self.shape, bool)
        cells[box] = True
        return cells

    def _bounded(self, box: Box) -> Rule:
        bounds: list[Bounds] = []
        for part, upper, size in zip(box, self.upper, self.shape, strict=True):
            low = upper[part.start - 1] + 1 if part.start else None
            bounds.append((low, upper[part.stop - 1] if part.stop < size else None))
        m, n, k = bounds
        return Rule("", "", m=m, n=n, k=k)

    def _reason(self, name: str, cells: Flags) -> str:
        at = np.unique(self.owner[cells & self.measured])
        if not len(at):
            return "not measured: as the nearest measured problem"
        others = [
            min((us for n, us in p.times.items() if n != name), default=math.inf) / p.times[name]
            for p in (self.points[i] for i in at)
        ]
        lead = math.exp(sum(map(math.log, others)) / len(others)) - 1
        where = f"measured at {len(at)} problem{'' if len(at) == 1 else 's'}"
        if lead == math.inf:
            return f"{where}: the only kernel"
        if lead >= 0.005:
            return f"{where}: {100 * lead:.0f} % faster than the next"
        behind = f"{-100 * lead:.1f} % behind the best" if lead < -0.0005 else "as fast as the best"
        return f"{where}: {behind}"


def _loss(slowness: float) -> float:
    """What a choice loses that takes ``slowness`` times the best: outliers count more."""
    x = math.log(slowness)
    return x + 10 * x * x


def _upper(axis: Sequence[int], fits: int) -> list[int]:
    """The largest size that each value of an axis stands for (the last: itself, unused)."""
    halfway = [math.isqrt(a * b) for a, b in pairwise(axis)]
    return [a if a <= fits else half for a, half in zip(axis, halfway, strict=False)] + [axis[-1]]


def _heaviest(weight: Floats) -> tuple[float, Box]:
    """The box with the largest sum of ``weight``, and that sum; (0, ()) if none is positive."""
    rows, columns = (_intervals(size) for size in weight.shape[:2])
    total = np.zeros((weight.shape[0] + 1, weight.shape[1] + 1, weight.shape[2]))
    total[1:, 1:] = weight.cumsum(axis=0).cumsum(axis=1)
    tall = total[rows[:, 1]] - total[rows[:, 0]]
    sums = tall[:, columns[:, 1]] - tall[:, columns[:, 0]]  # [rows, columns, K]
    best = 0.0
    found: Box = ()
    run = np.zeros(sums.shape[:2])  # the heaviest that ends before k, along K
    start = np.zeros(sums.shape[:2], int)
    for k in range(sums.shape[2]):
        start = np.where(run > 0, start, k)
        run = np.maximum(run, 0.0) + sums[:, :, k]
        row, column = np.unravel_index(run.argmax(), run.shape)
        if run[row, column] > best + 1e-9:
            best = float(run[row, column])
            along = slice(int(start[row, column]), k + 1)
            found = (slice(*rows[row].tolist()), slice(*columns[column].tolist()), along)
    return best, found


def _intervals(size: int) -> NDArray[np.int64]:
    return np.array([(i, j) for i in range(size) for j in range(i + 1, size + 1)])
