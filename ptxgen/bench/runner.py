"""One runner of all areas of ``ptxgen bench``.

An area says what its cases are, what is timed of each, and what is printed of a row. The runner
does the rest, always in this order: options that do not fit are refused; all kernels are compiled;
the GPU is warmed up; results of a case are checked, then its calls are timed in turns; rows are
kept and printed, those of an interrupted run too. What is wrong is told, and not timed.
"""

from __future__ import annotations

import math
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from ptxgen import arguments
from ptxgen.bench import measure, results
from ptxgen.bench.measure import Work
from ptxgen.bench.results import Environment, Limits, Sample
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.spec import KernelSpec
from ptxgen.ui import emit, note, plural

SAVE_S = 15.0
"""Rows are written at least so often, so that an interruption loses little."""
QUICK = 8.0, 3, 9
"""The effort of a quick run."""


@dataclass(frozen=True)
class Timed:
    """Calls of a case whose results are right, by name: ours first, then the peers' that take it.

    ``expected_us``: about what a call takes, from which the number of turns follows. ``seldom``:
    calls that get a quarter of the turns. ``slow_host``: whether issuing a call may take the host
    longer than a flush takes the GPU, so that there must be more of these.
    """

    work: Mapping[str, Work]
    expected_us: float
    seldom: Collection[str] = ()
    slow_host: bool = False


class Area:
    """An area of ``ptxgen bench``; an instance is one run of it, with the options of that.

    The module of a subclass has its ``main`` and its ``parser``.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    row: ClassVar[type[Any]]
    """The dataclass of its rows, as they are kept."""
    tier: str = "simt"
    """The tier whose limits are those of the GPU."""
    effort: tuple[float, int, int] = (80.0, 7, 51)
    """Milliseconds for each call of a case, and bounds on its repetitions."""
    drawn: ClassVar[str] = ""
    """The help of --random, where problems are drawn."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of cases to choose from."""
    budget: ClassVar[float] = math.inf
    """Seconds after which no case is begun."""
    columns: ClassVar[results.Columns] = ()
    """The table of its rows."""

    def __init__(self, options: Namespace, torch: Any = None, device: str = "cuda") -> None:
        self.options, self.torch, self.device = options, torch, device
        self.seed = int(getattr(options, "seed", 0))
        self.wrong: list[str] = []
        self.limits: Limits
        self._kept: tuple[object, Any] = None, None
        if options.quick:
            self.effort = QUICK

    # -- what an area has of its own -------------------------------------------------------
    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Adds the area's own options."""

    def cases(self) -> Sequence[Any]:
        """The cases that are asked for. Raises OptionError; needs no GPU."""
        raise NotImplementedError

    def kernels(self, case: Any) -> Iterable[KernelSpec]:
        """The kernels that a case needs, to be compiled before anything is timed."""
        return ()

    def check(self, case: Any) -> Timed:
        """Checks the results of a case. Raises WrongBitsError."""
        raise NotImplementedError

    def found(self, case: Any, times: Mapping[str, Sample]) -> Iterable[Any]:
        """The rows of a case, of times of what :meth:`check` found right."""
        raise NotImplementedError

    def rows(self, case: Any) -> Iterable[Any]:
        """The rows of a case: first the check, then the times."""
        return self.found(case, self.turns(self.check(case)))

    def show(self, rows: Sequence[Any], runs: Sequence[Environment]) -> None:
        """Prints rows, below the headings of their runs."""
        emit(results.columns(rows, self.columns))

    def close(self) -> None:
        """Prints what follows the rows of a run."""

    def status(self, rows: Sequence[Any]) -> int:
        """The exit status of rows of which none was refused."""
        return 0

    def records(self, rows: Sequence[Any], surroundings: Environment) -> list[dict[str, Any]]:
        """Rows as they are kept."""
        return results.records(rows, surroundings)

    @classmethod
    def read(cls, path: Path) -> tuple[list[Any], Environment]:
        """The rows of an earlier run. Raises PtxgenError for a file that holds anything else."""
        return results.read_rows(cls.row, path, cls.name)

    # -- what an area is made of -----------------------------------------------------------
    @cached_property
    def timer(self) -> measure.Timer:
        """The timer of all calls."""
        return measure.Timer(self.torch)

    def turns(self, timed: Timed) -> dict[str, Sample]:
        """The times of calls, which take turns."""
        work = list(timed.work.values())
        flushes, expected = 1, timed.expected_us
        if timed.slow_host:
            flushes = self.timer.flushes(work)
            expected += measure.FLUSH_US * flushes
        count = measure.repetitions(expected, *self.effort)
        counts = [max(3, count // 4) if name in timed.seldom else count for name in timed.work]
        return dict(zip(timed.work, self.timer(work, counts, flushes=flushes), strict=True))

    def kept(self, key: object, make: Any) -> Any:
        """The result of ``make``, kept while the key stays the same. The last is dropped before."""
        if self._kept[0] != key:
            self._kept = None, None
            self._kept = key, make()
        return self._kept[1]

    def refuse(self, what: object, error: object) -> None:
        """Tells that something is wrong, and so is not timed."""
        self.wrong.append(f"{what}: {error}")
        note(f"not timed: {self.wrong[-1]}")

    # -- the run ---------------------------------------------------------------------------
    @classmethod
    def parser(cls) -> ArgumentParser:
        """The command line of the area."""
        parser = arguments.Parser(prog=f"ptxgen bench {cls.name}", description=cls.about)
        cls.add_options(parser)
        if cls.kinds:
            add_list(parser, "--kinds", known=cls.kinds, default=cls.kinds)
        if cls.drawn:
            parser.add_argument("--random", type=int, metavar="COUNT", help=cls.drawn)
            arguments.add_seed(parser)
        if cls.budget < math.inf:
            parser.add_argument(
                "--budget",
                type=float,
                default=cls.budget,
                metavar="SECONDS",
                help="begin no problem after so long; kinds take turns (%(default).0f)",
            )
        parser.add_argument("--quick", action="store_true", help="fewer cases or repetitions")
        arguments.add_rows(parser)
        return parser

    @classmethod
    def main(cls, argv: Sequence[str] | None = None) -> int:
        """Runs the command. Status 0 if all that was asked for is right, whatever the times."""
        return arguments.run(cls.parser(), lambda options: cls(options).run(), argv)

    def run(self) -> int:
        """Runs the command with options that were read."""
        options = self.options
        if getattr(options, "plot", None):
            from ptxgen.bench import plots

            plots.require()  # before the run, not after it
        if options.rows:
            files = [self.read(path) for path in options.rows]
            self._print([row for rows, _ in files for row in rows], [s for _, s in files])
            return 0
        selected = self.cases()
        self.torch = torch = measure.require_torch()
        self.prepare(selected)
        measure.warm_up(torch)
        self.limits = measure.limits(torch, self.tier)
        surroundings = measure.environment(torch, self.limits, self.seed)
        rows: list[Any] = []
        begun = saved = time.monotonic()
        try:
            for row in self.timed(selected):
                rows.append(row)
                if time.monotonic() - saved > SAVE_S:
                    results.keep(options, self.records(rows, surroundings))
                    saved = time.monotonic()
                    note(f"{plural(len(rows), 'row')} in {saved - begun:.0f} s")
        finally:
            if rows:
                results.keep(options, self.records(rows, surroundings))
                self._print(rows, [surroundings])
        self.close()
        note(f"{plural(len(rows), 'row')} in {time.monotonic() - begun:.0f} s")
        for line in self.wrong:
            emit(f"WRONG {line}")
        return 1 if self.wrong else self.status(rows)

    def prepare(self, selected: Sequence[Any]) -> None:
        """Compiles the kernels of all cases."""
        found = {k.name: k for case in selected for k in self.kernels(case)}
        if found:
            seconds = measure.build(list(found.values()))
            note(f"{plural(len(found), 'kernel')} ready in {seconds:.1f} s")

    def timed(self, selected: Sequence[Any]) -> Iterator[Any]:
        """The rows of cases, until the budget is over. Cases that are wrong, or that there is no
        memory for, are told.
        """
        seconds = getattr(self.options, "budget", math.inf)
        end = time.monotonic() + seconds
        for number, case in enumerate(selected):
            if time.monotonic() > end:
                note(f"{number} of {plural(len(selected), 'problem')} in {seconds:.0f} s")
                return
            try:
                yield from self.rows(case)
            except (PtxgenError, self.torch.OutOfMemoryError) as error:
                self.refuse(case, error)
            self.torch.cuda.empty_cache()

    def _print(self, rows: Sequence[Any], runs: Sequence[Environment]) -> None:
        for each in runs:
            emit(results.heading(each))
        self.show(rows, runs)


def add_list(
    parser: ArgumentParser, names: str, text: str = "", known: Iterable[str] = (), **given: Any
) -> None:
    """Adds an option that takes words with commas between them, of ``known`` if there are any."""
    known = tuple(known)
    read = arguments.words(*known) if known else arguments.some
    shown = text or f"({','.join(known)})"
    parser.add_argument(*names.split(), **{"type": read, "metavar": "LIST", "help": shown, **given})


def only_drawn(options: Namespace) -> bool:
    """Whether problems are drawn. Raises OptionError if some are named besides."""
    if options.random is not None and options.shapes:
        raise OptionError("--random draws problems: no --shapes")
    return options.random is not None
