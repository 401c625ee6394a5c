"""Draws programs as SVG pictures.

Steps are boxes, one below the other. An array that one step writes and others read is an edge: it
runs down a lane next to the boxes, from a dot at the writer to an arrow at each reader. The more
bytes it has, the wider it is. Text next to each box names the caller's arrays that the step reads,
and the arrays that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from math import log2

from ptxgen.program.buffer import INPUT, RESULT
from ptxgen.program.line import Line, Shown

ROW, BOX, LANE, MARGIN = 52, 38, 12, 16
CHARACTER, SMALL = 7.3, 6.1
"""Estimated width of a character in the large and small font, pixels."""
NAMED_MAX = 3
"""Most arrays that one line of text next to a step's box names; the rest are counted."""
COLORS = "#1f6fb4", "#c2571a", "#2c8a4b", "#b0307d", "#6a4bb5", "#1a8a8a", "#8a7a14", "#b3343a"
"""Colors of the edges, by lane, used cyclically. Every SVG element has its style as attributes,
since some viewers ignore style sheets."""
LARGE, SMALLER = 'font-size="12" fill="#1c2733"', 'font-size="10" fill="#5a6b7b"'


@dataclass
class _Edge:
    """An array that step ``first`` writes and later steps, up to ``last``, read. ``begin``,
    ``ends``: y of the writer's dot and of each reader's arrow, pixels; ``lane``: index of the
    vertical line that connects them, counted from the boxes outwards.
    """

    array: Shown
    first: int
    begin: int
    last: int = 0
    ends: list[int] = field(default_factory=list)
    lane: int = 0


def drawn(name: str, steps: Sequence[Line]) -> str:
    """Returns a picture of a program's steps as SVG text."""
    edges = _edges(steps)
    lanes = 1 + max((e.lane for e in edges), default=-1)
    left = MARGIN + LANE * (lanes + 1)
    boxes = [_box(number, line) for number, line in enumerate(steps)]
    width = 20 + max((_width(*box) for box in boxes), default=0)
    sides = [_side_lines(line) for line in steps]
    right = max((SMALL * len(text) for side in sides for text in side), default=0)
    whole = int(left + width + 3 * MARGIN + right)
    height = 2 * MARGIN + ROW * len(steps) + 24
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{height}" '
        f'viewBox="0 0 {whole} {height}">',
        f"<title>{escape(name)}</title>",
        f'<rect width="{whole}" height="{height}" fill="#ffffff"/>',
        '<g font-family="monospace">',
        _text(MARGIN, MARGIN + 8, f"{name}: {len(steps)} steps"),
    ]
    for edge in edges:
        text += _path(edge, left)
    for number, (head, kernel) in enumerate(boxes):
        y = _top(number)
        size = f'width="{width:.0f}" height="{BOX}" rx="5"'
        text.append(f'<rect x="{left}" y="{y}" {size} fill="#f3f6f9" stroke="#8fa1b3"/>')
        text.append(_text(left + 10, y + 16, head))
        text.append(_text(left + 10, y + 31, kernel, SMALLER))
        for i, line in enumerate(sides[number]):
            text.append(_text(left + width + MARGIN, y + 16 + 15 * i, line, SMALLER))
    return "\n".join([*text, "</g>", "</svg>", ""])


def _edges(steps: Sequence[Line]) -> list[_Edge]:
    """Returns the edges between steps, with their lanes.

    Each write of an array begins an edge. Earlier edges of the array that no step has read stay
    open, since they may hold other parts of it.
    """
    open_: dict[str, list[_Edge]] = {}
    found = []
    for number, line in enumerate(steps):
        read = [name for name in dict.fromkeys(x.name for x in line.reads) if name in open_]
        for i, name in enumerate(read):
            for edge in open_[name]:
                edge.last = number
                edge.ends.append(_top(number) + 7 + 6 * (i % 3))
        for i, array in enumerate(line.writes):
            edge = _Edge(array, number, _top(number) + BOX - 6 - 6 * (i % 2))
            unread = [e for e in open_.get(array.name, ()) if not e.ends]
            open_[array.name] = [*unread, edge]
            found.append(edge)
    edges = [e for e in found if e.ends]
    busy: list[int] = []  # the last step up to which each lane is taken
    for edge in edges:
        free = (i for i, last in enumerate(busy) if last <= edge.first)
        edge.lane = next(free, len(busy))
        busy[edge.lane : edge.lane + 1] = [edge.last]
    return edges


def _top(number: int) -> int:
    return MARGIN + 24 + ROW * number


def _path(edge: _Edge, left: int) -> Iterator[str]:
    """Yields the SVG of an edge: a dot at its writer, an arrow at each reader. ``left``: x of the
    boxes' left side, pixels.
    """
    x, begin = left - LANE * (edge.lane + 1), edge.begin
    color = COLORS[edge.lane % len(COLORS)]
    wide = 1 + log2(max(edge.array.nbytes, 1)) / 12
    lines = [
        f"M{left} {begin} H{x} V{edge.ends[-1]}",
        *(f"M{x} {y} H{left - 5}" for y in edge.ends),
    ]
    yield f"<g><title>{escape(f'{edge.array}, {edge.array.nbytes:,} bytes')}</title>"
    stroke = f'fill="none" stroke="{color}" stroke-width="{wide:.1f}"'
    yield f'<path {stroke} d="{" ".join(lines)}"/>'
    yield f'<circle cx="{left}" cy="{begin}" r="3" fill="{color}"/>'
    points = " ".join(f"M{left} {y} l-7 -4 v8 z" for y in edge.ends)
    yield f'<path fill="{color}" d="{points}"/></g>'


def _box(number: int, line: Line) -> tuple[str, str]:
    return f"{number} {line.what}  {line.us:.1f} µs", " + ".join(line.kernels)


def _width(head: str, kernel: str) -> float:
    return max(CHARACTER * len(head), SMALL * len(kernel))


def _side_lines(line: Line) -> list[str]:
    """Returns text next to a step's box: the caller's arrays that it reads, all that it writes."""
    given = [f"{x}, {x.nbytes:,} bytes" for x in line.reads if x.role == INPUT]
    made = [f"{x}, {x.nbytes:,} bytes{', returned' * (x.role == RESULT)}" for x in line.writes]
    rows = ("reads", given), ("writes", made)
    return [f"{verb} {_few(of)}" for verb, of in rows if of]


def _few(arrays: Sequence[str]) -> str:
    rest = len(arrays) - NAMED_MAX
    return "; ".join([*arrays[:NAMED_MAX], *([f"{rest} more"] if rest > 0 else [])])


def _text(x: float, y: float, text: str, style: str = LARGE) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(text)}</text>'
