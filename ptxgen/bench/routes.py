"""``ptxgen bench routes``: maps which kernel serves which part of the (M, N) plane.

It needs no GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ptxgen import arguments
from ptxgen.bench import plots
from ptxgen.bench.cases import add_kind, tier_of
from ptxgen.bench.plots import RouteMap
from ptxgen.cost.tuning import driver_name
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.ops.explaining import problem_of
from ptxgen.spec import KernelSpec, Problem, Route
from ptxgen.spec.simt import SimtSpec
from ptxgen.tiles import TABLES
from ptxgen.ui import emit

CELLS = 168
"""Number of cells of the map along each axis."""


def route_map(
    op: str,
    layout: str,
    k: int,
    *,
    arch: str = "sm_90",
    sms: int = 132,
    align: int = 16,
    dtype: str = "f32",
    tier: str = "auto",
    gpu: str | None = None,
    largest: int = 1 << 14,
    cells: int = CELLS,
) -> RouteMap:
    """Returns the route that the dispatcher chooses at each point of a logarithmic grid of M and N.

    ``op``, ``layout``: operation and operand layout; ``k``: its K. ``align``: byte alignment of
    both operands, the same for all M and N, so that the map shows the influence of size and not of
    divisibility. M and N go up to ``largest``, in ``cells`` steps. Raises OptionError for an
    unknown operation or layout.
    """
    if op not in OPERATIONS or layout not in OPERATIONS[op].products:
        known = "; ".join(f"{o}: {', '.join(OPERATIONS[o].products)}" for o in OPERATIONS)
        raise OptionError(f"{op} {layout}: expected an operation and its layout ({known})")
    edges = [largest ** (i / cells) for i in range(cells + 1)]
    centres = [largest ** ((i + 0.5) / cells) for i in range(cells)]
    sizes = [max(1, round(c)) for c in centres]
    tier = tier_of(dtype, tier)

    def problem(m: int, n: int) -> Problem:
        return problem_of(op, (m, n, k), dtype, align, {"layout": layout, "tier": tier})

    key = problem(1, 1).table
    table = TABLES[key].routes

    def route(m: int, n: int) -> int:
        values = dict(problem(m, n).values)
        return choose(key, values, arch=arch, sms=sms, dtype=dtype, gpu=gpu).route

    owner = [[route(m, n) for m in sizes] for n in sizes]
    present = sorted({index for line in owner for index in line})
    position = {route: index for index, route in enumerate(present)}
    names = tuple(" + ".join(kernel.name for kernel in table[r].kernels) for r in present)
    return RouteMap(
        title=f"Which kernel serves {op} ({layout}) at K = {k}",
        subtitle=f"{arch}, {sms} SMs, {dtype}, {tier}, operands aligned to {align} bytes; "
        "every choice returns the same bits",
        routes=names,
        labels=_labels([table[r] for r in present]),
        reasons=tuple(table[r].reason for r in present),
        owner=[[position[index] for index in line] for line in owner],
        edges=edges,
        centres=centres,
    )


def _labels(routes: Sequence[Route]) -> tuple[str, ...]:
    """Returns a short label for each route: its tile and its split of K, and a number if another
    has these, too.
    """
    short = [_label(route.main) for route in routes]
    return tuple(
        text if short.count(text) == 1 else f"{text} ({short[: i + 1].count(text)})"
        for i, text in enumerate(short)
    )


def _label(kernel: KernelSpec) -> str:
    sides = [getattr(kernel, side, None) for side in ("bm", "bn")]
    if None in sides:
        return kernel.name
    text = "×".join(map(str, sides))
    if kernel.family != "simt":
        text += f", {kernel.family}"
    if isinstance(kernel, SimtSpec) and kernel.slices > 1:
        text += f", {kernel.slices} slices"
    elif getattr(kernel, "split", "none") == "workspace":
        text += ", partial"
    if isinstance(kernel, SimtSpec) and kernel.persistent:
        text += ", any size"
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``ptxgen bench routes`` with the arguments ``argv``; returns its exit status."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    if min(options.k, options.sms) < 1 or options.largest < 2:
        raise OptionError("--k and --sms are at least 1, --largest at least 2")
    layout = options.layout or next(iter(OPERATIONS[options.op].products))
    names = ("arch", "sms", "align", "dtype", "tier", "largest")
    given = {name: getattr(options, name) for name in names}
    given["gpu"] = None if options.gpu is None else driver_name(options.gpu)
    given["cells"] = CELLS if options.plot else 64
    found = route_map(options.op, layout, options.k, **given)
    if options.plot:
        plots.route_map(found, options.plot)
        emit(f"wrote {options.plot}")
    else:
        emit(text_map(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench routes",
        description="Draws which kernel owns which part of the (M, N) plane at a K.",
    )
    parser.add_argument("--k", type=int, default=4096, help="(%(default)s)")
    parser.add_argument("--op", default="linear", choices=tuple(OPERATIONS), help="(%(default)s)")
    parser.add_argument(
        "--layout", metavar="LAYOUT", help="kn or nk; nn .. tt of matmul (the first)"
    )
    add_kind(parser)
    parser.add_argument("--arch", default="sm_90", help="(%(default)s)")
    parser.add_argument("--sms", type=int, default=132, help="(%(default)s)")
    parser.add_argument("--gpu", metavar="NAME", help="whose tuning decides (none: of any GPU)")
    parser.add_argument(
        "--align", type=int, default=16, choices=(2, 4, 8, 16), help="(%(default)s)"
    )
    parser.add_argument(
        "--largest", type=int, default=1 << 14, help="largest M and N (%(default)s)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png or .svg; without, text")
    return parser


def text_map(found: RouteMap) -> str:
    """Returns the map as text, a letter a route: M to the right, N upwards, every second row."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    lines = [found.title, found.subtitle, ""]
    for n, line in reversed(list(zip(found.centres, found.owner, strict=True))[::2]):
        lines.append(f"{round(n):>7} " + "".join(letters[i % len(letters)] for i in line))
    first, last = round(found.centres[0]), round(found.centres[-1])
    lines.append(f"{'N, M':>7} {first:<{len(found.centres) - len(str(last))}}{last}")
    lines.append("")
    for letter, name, reason in zip(letters, found.routes, found.reasons, strict=False):
        lines.append(f"  {letter}  {name}: {reason}")
    return "\n".join(lines)
