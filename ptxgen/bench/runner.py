"""The runner of all areas of ``ptxgen bench``, such as ``gemm`` and ``attention``.

An area defines its cases, the calls that are timed for each, and the columns of a row. The runner
refuses options that do not fit, compiles all kernels, and warms up the GPU. For each case it then
checks the results and times the calls, interleaved. It saves and prints the rows, also those of an
interrupted run. Cases with wrong results are reported, and not timed.
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
"""Seconds between saves of the rows, so that an interruption loses little."""
QUICK = 8.0, 3, 9
"""Value of :attr:`Area.effort` in a ``--quick`` run."""


@dataclass(frozen=True)
class Timed:
    """Calls of a case by name, with checked results: ptxgen's first, then those of peers.

    ``expected_us``: estimated time of a call, which determines the repetitions. ``seldom``: calls
    that get a quarter of them. ``slow_host``: whether issuing a call may take the host longer than
    an L2 flush takes the GPU, so that a call needs several flushes before it.
    """

    work: Mapping[str, Work]
    expected_us: float
    seldom: Collection[str] = ()
    slow_host: bool = False


class Area:
    """Base class of the areas of ``ptxgen bench``; an instance is one run with its options.

    ``name``, ``about``: the area's command and its help text. The module of a subclass exports the
    subclass's ``main`` and ``_parser``.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    row: ClassVar[type[Any]]
    """The dataclass of the rows that the area measures and saves."""
    tier: str = "simt"
    """The tier ("simt": FMA units, "tc": tensor cores) whose peak FLOP/s is the compute limit."""
    effort: tuple[float, int, int] = (80.0, 7, 51)
    """Milliseconds of timing for each call of a case, and minimum and maximum repetitions."""
    drawn: ClassVar[str] = ""
    """Help text of ``--random``; empty if the area has no random problems."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of cases that ``--kinds`` selects from."""
    budget: ClassVar[float] = math.inf
    """Seconds after which no further case begins."""
    columns: ClassVar[results.Columns] = ()
    """Columns of the printed table of rows."""

    def __init__(self, options: Namespace, torch: Any = None, device: str = "cuda") -> None:
        self.options, self.torch, self.device = options, torch, device
        self.seed = int(getattr(options, "seed", 0))
        self.wrong: list[str] = []
        self.limits: Limits
        self._cached: tuple[object, Any] = None, None
        if options.quick:
            self.effort = QUICK

    # -- defined by each area --------------------------------------------------------------
    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Adds the area's own options."""

    def cases(self) -> Sequence[Any]:
        """Returns the cases that the options request; needs no GPU. Raises OptionError for bad
        ones.
        """
        raise NotImplementedError

    def kernels(self, case: Any) -> Iterable[KernelSpec]:
        """Returns the kernels that a case needs; they are compiled before anything is timed."""
        return ()

    def check(self, case: Any) -> Timed:
        """Checks the results of a case; returns the calls to time. Raises WrongBitsError."""
        raise NotImplementedError

    def found(self, case: Any, times: Mapping[str, Sample]) -> Iterable[Any]:
        """Makes the rows of a case from the times of its calls, by the names that :meth:`check`
        gave them.
        """
        raise NotImplementedError

    def rows(self, case: Any) -> Iterable[Any]:
        """Checks a case, times its calls, and returns its rows."""
        return self.found(case, self.time_calls(self.check(case)))

    def show(self, rows: Sequence[Any], runs: Sequence[Environment]) -> None:
        """Prints a table of rows, after the headings of ``runs``, which are already printed."""
        emit(results.columns(rows, self.columns))

    def close(self) -> None:
        """Prints text after the table of a run; does nothing by default."""

    def status(self, rows: Sequence[Any]) -> int:
        """Returns the exit status of a run that refused no case, from its rows; by default 0."""
        return 0

    def records(self, rows: Sequence[Any], surroundings: Environment) -> list[dict[str, Any]]:
        """Returns ``rows`` as the flat records that are saved; ``surroundings``: environment of the
        run.
        """
        return results.records(rows, surroundings)

    @classmethod
    def read(cls, path: Path) -> tuple[list[Any], Environment]:
        """Reads the rows and environment of an earlier run. Raises PtxgenError for other files."""
        return results.read_rows(cls.row, path, cls.name)

    # -- helpers of the areas --------------------------------------------------------------
    @cached_property
    def timer(self) -> measure.Timer:
        """The timer that all calls share."""
        return measure.Timer(self.torch)

    def time_calls(self, timed: Timed) -> dict[str, Sample]:
        """Times the calls of ``timed``, interleaved; returns the statistics of each by name."""
        work = list(timed.work.values())
        flushes, expected = 1, timed.expected_us
        if timed.slow_host:
            flushes = self.timer.flushes(work)
            expected += measure.FLUSH_US * flushes
        count = measure.repetitions(expected, *self.effort)
        counts = [max(3, count // 4) if name in timed.seldom else count for name in timed.work]
        return dict(zip(timed.work, self.timer(work, counts, flushes=flushes), strict=True))

    def cached(self, key: object, make: Any) -> Any:
        """Returns ``make()``, and at later calls the same object, as long as they pass an equal
        ``key``.

        A call with another key frees the previous object before it makes the new one.
        """
        if self._cached[0] != key:
            self._cached = None, None
            self._cached = key, make()
        return self._cached[1]

    def refuse(self, what: object, error: object) -> None:
        """Reports that ``what`` failed with ``error`` and is not timed."""
        self.wrong.append(f"{what}: {error}")
        note(f"not timed: {self.wrong[-1]}")

    # -- the run ---------------------------------------------------------------------------
    @classmethod
    def parser(cls) -> ArgumentParser:
        """Returns the parser of the area's command line."""
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
        """Runs ``ptxgen bench NAME`` with the arguments ``argv``; returns its exit status, 0 if all
        results are right.
        """
        return arguments.run(cls.parser(), lambda options: cls(options).run(), argv)

    def run(self) -> int:
        """Runs the benchmark with parsed options: checks and times all cases, saves and prints
        their rows. With ``--rows`` only prints those of earlier runs. Returns the exit status.
        """
        options = self.options
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
                    results.store(options, self.records(rows, surroundings))
                    saved = time.monotonic()
                    note(f"{plural(len(rows), 'row')} in {saved - begun:.0f} s")
        finally:
            if rows:
                results.store(options, self.records(rows, surroundings))
                self._print(rows, [surroundings])
        self.close()
        note(f"{plural(len(rows), 'row')} in {time.monotonic() - begun:.0f} s")
        for line in self.wrong:
            emit(f"WRONG {line}")
        return 1 if self.wrong else self.status(rows)

    def prepare(self, selected: Sequence[Any]) -> None:
        """Compiles the kernels of all cases, in parallel."""
        found = {k.name: k for case in selected for k in self.kernels(case)}
        if found:
            seconds = measure.build(list(found.values()))
            note(f"{plural(len(found), 'kernel')} ready in {seconds:.1f} s")

    def timed(self, selected: Sequence[Any]) -> Iterator[Any]:
        """Yields the rows of all cases until the time budget is spent.

        Cases with wrong results, or for which memory is too small, are reported.
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
    """Adds an option with a comma-separated list of words, only those of ``known`` if given.

    ``names``: names of the option, separated by spaces; ``text``: its help.
    """
    known = tuple(known)
    read = arguments.words(*known) if known else arguments.some
    shown = text or f"({','.join(known)})"
    parser.add_argument(*names.split(), **{"type": read, "metavar": "LIST", "help": shown, **given})


def only_drawn(options: Namespace) -> bool:
    """Whether ``--random`` is given. Raises OptionError if ``--shapes`` is given, too."""
    if options.random is not None and options.shapes:
        raise OptionError("--random draws problems: no --shapes")
    return options.random is not None
