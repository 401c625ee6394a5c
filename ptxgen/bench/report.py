"""``ptxgen bench report``: writes docs/performance.md and its plots from recorded runs.

:mod:`ptxgen.bench.report_areas` lists the areas with their result files. For each group of cases
the newest run counts, from a clean tree if there is one; all runs of a comparison are from one GPU.
The text is the same for the same result files; plots differ between versions of matplotlib.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ptxgen import arguments
from ptxgen.bench import plots
from ptxgen.bench.bands import Spread
from ptxgen.bench.report_areas import SECTIONS, Comparison, Section, SpeedUp
from ptxgen.bench.results import Environment, geomean
from ptxgen.cost.tuning import short_name
from ptxgen.errors import PtxgenError
from ptxgen.ui import emit, plural

CHECKOUT = Path(__file__).parents[2]
RESULTS, PAGE = CHECKOUT / "bench/results", CHECKOUT / "docs/performance.md"
OVERVIEW, MOST = "performance", 16.0
"""File name of the plot of all comparisons, without suffix; and the largest speed-up that it shows.
"""
LINES, REST = 10, "others"
"""Maximum number of lines in a section's table, and the name of the group that merges the rest."""
WIDTH = 100
"""Maximum number of characters in a line of prose."""
FILE = re.compile(r"(.+?)-[a-z]+\d+-\d{8}-\w+?(-dirty)?\.json")
"""Name of a result file: area, GPU, date, commit, and whether the tree was dirty."""

INTRODUCTION = """# Performance

This page shows how fast ptxgen is beside the libraries that PyTorch calls. `ptxgen bench report`
writes it, with its plots, from the recorded runs in
[bench/results](../bench/results/README.md).

**Speed-up = peer's time ÷ our time. Above 1, ptxgen is faster.** The geomean is the
geometric mean; one case in ten is below p10. The worst case of each group is named.

- Random cases are drawn by a seed, and preferred to chosen ones.
- The newest run that has a group of cases counts. A run of an edited tree (`-dirty`) counts only
  where there is no other.
- CUDA events time operations, with a cold L2; the host times models, until the GPU is done. All
  times are medians. ptxgen and its peers run in one process, cuBLAS and cuDNN without TF32.
- Results are checked before they are timed ([how](../bench/results/README.md#what-is-measured)).
- {machines}

```sh checkout
ptxgen bench report            # writes this page; needs matplotlib and no GPU
ptxgen bench report --check    # fails if the page is not that of the result files
ptxgen bench sort --rows bench/results/sort-h200-20261130-7373400.json    # rows of a recorded run
```
"""


@dataclass(frozen=True)
class Run:
    """A recorded run: its file, rows, and environment."""

    path: Path
    rows: Sequence[Any]
    environment: Environment

    @property
    def seeds(self) -> set[int]:
        """The seeds that the rows were drawn with; a file may have rows of several seeds."""
        return {record["seed"] for record in json.loads(self.path.read_text(encoding="utf-8"))}


@dataclass(frozen=True)
class Found:
    """The speed-ups of a comparison by group, and the runs that they come from, newest first."""

    comparison: Comparison
    runs: tuple[Run, ...]
    groups: Mapping[str, Sequence[SpeedUp]]

    @property
    def all(self) -> list[SpeedUp]:
        """The speed-ups of all groups."""
        return [*chain.from_iterable(self.groups.values())]

    @property
    def gpu(self) -> str:
        """The GPU's short name, such as "H100"."""
        return short_name(self.runs[0].environment.gpu).upper()


# -- from files to speed-ups ----------------------------------------------------------------
def spread(found: Sequence[SpeedUp]) -> Spread:
    """Returns the statistics of one or more speed-ups."""
    return Spread.of([(each.value, each.case) for each in found])


def files(folder: Path, names: Iterable[str]) -> list[Path]:
    """Returns the result files of the first of ``names`` that has any.

    Files of dirty trees are returned only if there are no others.
    """
    there = [(path, match) for path in folder.iterdir() if (match := FILE.fullmatch(path.name))]
    for name in names:
        if own := {path: match[2] for path, match in there if match[1] == name}:
            return sorted(path for path, dirty in own.items() if not dirty) or sorted(own)
    return []


def find(comparison: Comparison, folder: Path) -> Found | None:
    """Returns the speed-ups of a comparison by group, from result files in ``folder``; None if
    there are none.

    Each group comes from the newest run that has it, on the GPU of the newest run.
    """
    read = [Run(path, *comparison.area.read(path)) for path in files(folder, comparison.files)]
    read.sort(key=lambda run: run.environment.date, reverse=True)
    groups: dict[str, Sequence[SpeedUp]] = {}
    runs: list[Run] = []
    for run in read:
        if runs and run.environment.gpu != runs[0].environment.gpu:
            continue
        own: dict[str, list[SpeedUp]] = {}
        for each in comparison.read(run.rows):
            own.setdefault(each.group, []).append(each)
        if new := {group: found for group, found in own.items() if group not in groups}:
            groups |= new
            runs.append(run)
    return Found(comparison, tuple(runs), groups) if groups else None


def find_sections(folder: Path) -> dict[Section, list[Found]]:
    """Returns the results of each section's comparisons; sections without results are omitted.

    Raises PtxgenError if no section has results.
    """
    if not folder.is_dir():
        raise PtxgenError(f"there is no folder {folder}; the report is made in a checkout")
    found = {s: [f for c in s.comparisons if (f := find(c, folder))] for s in SECTIONS}
    if not any(found.values()):
        raise PtxgenError(f"{folder} has no result files that the report shows")
    return {section: each for section, each in found.items() if each}


def merge_groups(found: Iterable[Found]) -> dict[str, Sequence[SpeedUp]]:
    """Merges the speed-ups of a section by group into at most :data:`LINES` groups; the smallest
    groups become :data:`REST`.
    """
    groups = dict(chain.from_iterable(each.groups.items() for each in found))
    if len(groups) <= LINES:
        return groups
    large = sorted(groups, key=lambda name: len(groups[name]), reverse=True)[: LINES - 1]
    rest = [each for name, those in groups.items() if name not in large for each in those]
    return {name: those for name, those in groups.items() if name in large} | {REST: rest}


# -- the page -------------------------------------------------------------------------------
def page(found: Mapping[Section, Sequence[Found]]) -> str:
    """Returns the Markdown text of the page."""
    introduction = INTRODUCTION.format(machines=_wrapped(_machines(found), "  "))
    parts = [introduction, _summary(found), *(_section(s, each) for s, each in found.items())]
    shown = {each.comparison for those in found.values() for each in those}
    absent = {
        _wrapped(f"- {c.what} beside {c.peer}: `{_command(c)}`.", "  ")
        for section in SECTIONS
        for c in section.comparisons
        if c not in shown
    }
    if absent:
        parts.append("\n".join(["## Areas without a run", "", *sorted(absent), ""]))
    return "\n".join(parts)


def _machines(found: Mapping[Section, Sequence[Found]]) -> str:
    of = [run.environment for those in found.values() for each in those for run in each.runs]
    gpus = " and ".join(sorted({e.gpu for e in of}))
    versions = " and ".join(sorted({e.torch for e in of}))
    return f"Machines: one {gpus.replace(' and ', ' and one ')}; PyTorch {versions}."


def _summary(found: Mapping[Section, Sequence[Found]]) -> str:
    lines = [
        (
            f"[{each.comparison.what}](#{_anchor(section.title)})",
            *(each.comparison.peer, str(len(each.all))),
            *_figures(spread(each.all)),
            each.gpu,
        )
        for section, those in found.items()
        for each in those
    ]
    header = "area", "peer", "cases", "geomean", "p10", "worst", "GPU"
    return f"## Summary\n\n{_image(OVERVIEW, 'Speed-ups of all areas')}\n\n{_table(header, lines)}"


def _section(section: Section, found: Sequence[Found]) -> str:
    lines = []
    for group, those in merge_groups(found).items():
        of = spread(those)
        mean, tail, worst = _figures(of)
        lines.append((group, str(of.cases), mean, tail, f"{worst} ({of.worst_at})"))
    header = "group", "cases", "geomean", "p10", "worst"
    return "\n".join(
        [
            *(f"## {section.title}", "", _wrapped(section.about), ""),
            *(_image(section.image, section.title), "", _table(header, lines)),
            *_sources(found),
            "",
        ]
    )


def _sources(found: Sequence[Found]) -> list[str]:
    """Returns the items of a list of sources: peers, then GPU, date, commit and command of their
    run.

    Peers of one run share an item. If several comparisons have one peer in common, items name what
    each compares instead.
    """
    peers: dict[str, list[str]] = {}
    several = len(found) > len({each.comparison.peer for each in found}) == 1
    for each in found:
        name = each.comparison.what if several else each.comparison.peer
        peers.setdefault(_source(each), []).append(f"{name}{_memory(each)}")
    return [
        _wrapped(f"- {'; '.join(dict.fromkeys(of))}: {source}", "  ")
        for source, of in peers.items()
    ]


def _source(found: Found) -> str:
    dates = sorted({run.environment.date[:10] for run in found.runs})
    commits = dict.fromkeys(run.environment.commit for run in found.runs)
    options = found.comparison.options
    drawn = found.runs if "{seed}" in options else ()
    seeds = sorted(set().union(*(run.seeds for run in drawn)))
    more = f" Seeds {', '.join(map(str, seeds))}." if seeds[1:] else ""
    measured = options.format(seed=found.runs[0].environment.seed)
    paths = ", ".join(f"`{run.path.name}`" for run in found.runs)
    return (
        f"{found.gpu}, {', '.join([*dates, *commits])}.{more} "
        f"Measured by `{_command(found.comparison, measured)}`; rows: {paths}."
    )


def _memory(found: Found) -> str:
    known = [(each.memory, each.case) for each in found.all if each.memory is not None]
    if not known:
        return ""
    least, case = min(known)
    mean = geomean(value for value, _ in known)
    return f" (peak memory, ours ÷ peer's: geomean {1 / mean:.3g}, most {1 / least:.3g} at {case})"


def _command(comparison: Comparison, *options: str) -> str:
    words = "ptxgen bench", comparison.area.name, *options
    return " ".join(word for word in words if word)


def _figures(of: Spread) -> tuple[str, str, str]:
    return f"{of.geomean:.2f}", f"{of.tail:.2f}", f"{of.worst:.2f}"


def _image(name: str, title: str) -> str:
    return f"![{title}](images/{name}.png)"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _wrapped(text: str, indent: str = "") -> str:
    """Returns ``text`` wrapped to :data:`WIDTH` characters; code spans are not broken.

    ``indent`` begins all lines but the first.
    """
    lines = [""]
    for word in re.findall(r"(?:[^\s`]|`[^`]*`)+", text):
        if lines[-1].strip() and len(lines[-1]) + len(word) >= WIDTH:
            lines.append(indent)
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return "\n".join(lines)


# -- the command ----------------------------------------------------------------------------
def drawn(found: Mapping[Section, Sequence[Found]]) -> Iterator[tuple[str, plots.SpeedUps]]:
    """Yields the report's plots, the overview first: file name without suffix, and content."""
    every = [each for those in found.values() for each in those]
    groups = {
        f"{each.comparison.what}: {each.comparison.peer}".replace("`", ""): each.all
        for each in every
    }
    yield OVERVIEW, replace(_plot("All areas", every, groups), most=MOST)
    for section, those in found.items():
        yield section.image, _plot(section.title, those, merge_groups(those))


def _plot(
    title: str, found: Iterable[Found], groups: Mapping[str, Sequence[SpeedUp]]
) -> plots.SpeedUps:
    machines = " and ".join(dict.fromkeys(each.runs[0].environment.gpu for each in found))
    values = {name: [each.value for each in of] for name, of in groups.items()}
    return plots.SpeedUps(title, machines, values)


def differences(page: Path, text: str, images: Iterable[Path]) -> list[str]:
    """Returns lines of text that say how the file ``page`` differs from ``text``, and which
    ``images`` are missing; empty if the page is up to date.
    """
    wrong = [f"there is no {path}" for path in images if not path.exists()]
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    if old != text:
        pair = old.splitlines(), text.splitlines()
        wrong += [f"{page} is not the page of the result files; `ptxgen bench report` writes it"]
        wrong += difflib.unified_diff(*pair, str(page), "report", n=0, lineterm="")
    return wrong


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``ptxgen bench report`` with the arguments ``argv``; returns its exit status, 1 if a
    checked page differs.
    """
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    found = find_sections(options.results)
    text, shown = page(found), dict(drawn(found))
    images = {options.page.parent / f"images/{name}.png": plot for name, plot in shown.items()}
    if options.check:
        wrong = differences(options.page, text, images)
        emit("\n".join(wrong) if wrong else f"{options.page} is that of the result files")
        return int(bool(wrong))
    plots.require()
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(text, encoding="utf-8")
    for path, plot in images.items():
        plots.speed_ups(plot, path)
    emit(f"wrote {options.page} and {plural(len(images), 'plot')}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench report",
        description="Writes docs/performance.md and its plots from recorded runs. Needs no GPU.",
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="(bench/results)"
    )
    parser.add_argument(
        "--page",
        type=Path,
        default=PAGE,
        metavar="FILE",
        help="plots go to images/ beside it (docs/performance.md)",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page would change"
    )
    return parser
