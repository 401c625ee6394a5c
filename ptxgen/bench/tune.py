"""``ptxgen tune``: times every admissible kernel on random problems, and fits this GPU's tuning.

A tuning is the constants by which kernel times on one GPU are predicted. Every kernel that is
correct for a problem is forced on it, with a cold L2, interleaved with the others. Times go to a
journal, a line a problem, so that a run can be stopped at any time and resumed. The constants are
fitted to the journal (:mod:`ptxgen.cost.fit`) and written to a tuning file
(:mod:`ptxgen.cost.tuning`), to be reviewed and committed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from ptxgen import arguments
from ptxgen.bench import bmm, cases, draw, int4, measure, quantized, quantized_cases
from ptxgen.bench.bands import ALL, NAMES, band_of
from ptxgen.bench.cases import Case, Shape, case_of
from ptxgen.bench.journal import CLOSE, WEIGHTS, Header, Journal, Problem, Record
from ptxgen.bench.quantized_cases import QuantizedCase
from ptxgen.bench.results import columns
from ptxgen.bench.runner import add_list
from ptxgen.bench.timed_routes import environment, points, read_rows, row_points
from ptxgen.cost.fit import FAR, NO_PRIOR, Point, Regret, fit, fit_with_prior, held_out
from ptxgen.cost.gpu import TYPICAL, Rates
from ptxgen.cost.tuning import FALLBACK, FOLDER, Constants, Tuning, read, tuning_name, write
from ptxgen.errors import OptionError
from ptxgen.numerics import contract
from ptxgen.numerics.contract import AUTO_TIER, DTYPES, ITEMSIZE, OPERATIONS, TIERS
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.int4 import ELEMENTS
from ptxgen.numerics.int4 import LAYOUTS as INT4_LAYOUTS
from ptxgen.numerics.weight_format import Quantized
from ptxgen.spec import ALIGNMENT, Key, Route, of_result
from ptxgen.tiles import ROUTES, TABLES
from ptxgen.tiles.gemm import WIDTH_OF
from ptxgen.ui import Progress, emit, note, plural

STAGES = ((1, FAR), (3, CLOSE), (5, 1.08), (11, 0.0))
"""Stages of timing: maximum repetitions, and the multiple of the fastest kernel's time up to which
a kernel enters the next stage.
"""
SHORT_US = 300.0
"""Minimum time of the fastest kernel, µs, at which a single timing suffices to exclude slow
kernels. A single timing may be 50 µs too long.
"""
BUDGET_MS = 30.0
"""Milliseconds of timing of one kernel in one stage."""
SEED = 0
"""Seed of the operands' values, which do not affect times."""
PROBLEMS = 300
"""Default number of random problems of each table."""
BATCHES = 60
"""Default number of random batches of each table."""
WEIGHTED = "bf16"
"""Dtype by whose default tier ``--tier auto`` selects among tables for quantized weights."""
TUNED_FORMATS = ("nf4", "int4_zero_point", "int8_block_g128_f16")
"""Formats of quantized weights that problems have in turn: a codebook, integers of 4 bits with zero
points, and integers of 8 bits. Constants of a kernel are those of all formats.
"""
LAYOUTS = ("NN", "NT", "TN", "TT", *INT4_LAYOUTS)
KINDS = (*DTYPES.values(), *ELEMENTS, WEIGHTS)
PLANS = tuple(dict.fromkeys(name for plans in contract.PLANS.values() for name in plans))
Tuned = Case | int4.Int4Case | bmm.BatchCase
"""Types of cases that kernels are timed on."""
BATCHED = (("NN", contract.DEFAULT_PLAN), ("NT", contract.DEFAULT_PLAN))
"""Pairs (layout, plan) of the tables for which batches are timed."""
Meter = Callable[[Tuned, Sequence[str]], tuple[dict[str, float], dict[str, str]]]
"""Function that times kernels, each forced on a case by the name of a route for the case's dtype
(:func:`derived`): returns µs by these names, and errors of wrong kernels by name.
"""


# -- tasks ----------------------------------------------------------------------------
@dataclass(frozen=True)
class Task:
    """A case to be timed, the values of its memory variables (alignments), and the names of the
    routes that are correct for it, as its table lists them.
    """

    case: Tuned
    align: tuple[int, ...]
    kernels: tuple[str, ...]

    @property
    def problem(self) -> Problem:
        """The key of the task's record in the journal."""
        count = self.case.count if isinstance(self.case, bmm.BatchCase) else 1
        format = self.case.read.name if isinstance(self.case, QuantizedCase) else ""
        return Problem(self.case.table, self.case.product, self.align, count, format)

    @property
    def routes(self) -> dict[str, Route]:
        """The routes that are timed, for the case's dtype, by the names of the listed ones."""
        routes = derived(self.case.table, dtype_of(self.case))
        return {name: routes[name] for name in self.kernels}

    @property
    def name(self) -> str:
        """The problem as text, which the progress bar shows."""
        return str(self.problem)


def tables(
    dtypes: Iterable[str], tier: str, layouts: Iterable[str], plans: Iterable[str]
) -> list[Key]:
    """Returns the keys of the route tables of these dtypes, layouts and plans, in ``tier``.

    Raises OptionError if there are none.
    """
    dtypes, layouts, plans = tuple(dtypes), tuple(layouts), tuple(plans)
    dense = (d for d in dtypes if d in ITEMSIZE)
    wanted = [(WIDTH_OF.get(d, d), cases.tier_of(d, tier)) for d in dense]
    products = (key for key in ROUTES if len(key) == 4)
    found: list[Key] = [
        k for k in products if k[0] in layouts and k[1] in plans and k[2:] in wanted
    ]
    found += [k for k in ROUTES if k[0] == "int4" and k[1] in layouts and k[2] in dtypes]
    weights = tier if tier != "auto" else AUTO_TIER[WEIGHTED]
    found += [k for k in ROUTES if k[0] in dtypes and k[1] in layouts and k[-1] == weights]
    if not found:
        raise OptionError(
            f"there is no route table of {', '.join(layouts)}, {', '.join(plans)}, "
            f"{', '.join(dtypes)}, tier {tier}"
        )
    return found


def tasks(
    keys: Iterable[Key],
    count: int,
    seed: int,
    arch: str,
    sms: int,
    kinds: Sequence[str] = draw.KINDS,
) -> list[Task]:
    """Returns tasks for the first ``count`` random problems that ``seed`` draws for every table.

    All tables' first problems come first, then all second ones, so that a run that is stopped has
    measured every table. ``arch``, ``sms``: the GPU. ``kinds``: kinds of products of dense
    operands, which take turns.
    """
    drawn = zip(*(_drawn(key, count, seed, kinds) for key in keys), strict=True)
    return _tasks(chain.from_iterable(drawn), arch, sms)


def batches(keys: Iterable[Key], count: int, seed: int, arch: str, sms: int) -> list[Task]:
    """Returns tasks for the first ``count`` random batches of every table of :data:`BATCHED`."""
    drawn = (
        [bmm.BatchCase(key, *of) for of in draw.batches(count, seed, TABLES[key].dtypes[0])]
        for key in keys
        if count and key[:2] in BATCHED
    )
    return _tasks(chain.from_iterable(zip(*drawn, strict=True)), arch, sms)


def _tasks(drawn: Iterable[Tuned | None], arch: str, sms: int) -> list[Task]:
    """Returns a task for each distinct problem of ``drawn`` (None is skipped) that some route
    serves on a GPU of ``arch`` with ``sms`` SMs.
    """
    found: dict[Problem, Task] = {}
    for case in drawn:
        if case is None:
            continue
        align = memory_variables(case) if isinstance(case, Case) else case.align
        task = Task(case, align, admissible(case, align, arch, sms))
        if task.kernels:
            found.setdefault(task.problem, task)
    return list(found.values())


def _drawn(key: Key, count: int, seed: int, kinds: Sequence[str]) -> list[Tuned | None]:
    """Returns the first ``count`` random problems that ``seed`` draws for table ``key``, of
    ``kinds`` in turn; None in place of those that are too large.
    """
    dtype = TABLES[key].dtypes[0]
    if key[0] == "int4":
        return [int4.Int4Case(key[1], dtype, shape) for shape in int4.drawn(count, seed)]
    if key[0] == WEIGHTS:
        return [*_weighted(key, count, seed)]
    found: list[Tuned | None] = []
    results = ("", "f32") if "ITEM_C" in TABLES[key].space.names and ITEMSIZE[dtype] == 2 else ("",)
    turns = zip(*(draw.shapes(count, seed, dtype, kind) for kind in kinds), strict=True)
    # Operations and results alternate from turn to turn, so that all kinds have all of them.
    for turn, shape in [(turn, s) for turn, each in enumerate(turns) for s in each][:count]:
        case = replace(case_of(key, shape, turn), result=results[turn % len(results)])
        m, n, k = case.product
        found.append(case if draw.admitted(Shape(m, k, n), ITEMSIZE[dtype]) else None)
    return found


def _weighted(key: Key, count: int, seed: int) -> list[QuantizedCase]:
    """Returns the first ``count`` random problems of table ``key`` of products with quantized
    weights; those of :data:`TUNED_FORMATS` that the table serves take turns.
    """
    op = next(
        op
        for op, name in quantized_cases.OPS.items()
        if OPERATIONS[name].products["nk"].layout == key[1]
    )
    dtype = TABLES[key].dtypes[0].dtype
    formats = [name for name in TUNED_FORMATS if derived(key, Quantized(dtype, format_named(name)))]
    each = [
        quantized_cases.varied(count, seed, op, dtype, key[-1], format=name) for name in formats
    ]
    return [each[number % len(each)][number] for number in range(count)]


def memory_variables(case: Case) -> tuple[int, ...]:
    """Returns the memory variables of a case in its route table: byte alignments of A and B, then
    alignment and item size of the result, as far as the table has them.

    In the order of the table's arguments they follow M, N, K and SMS.
    """
    (m, n, _), item = case.product, ITEMSIZE[case.result or case.dtype]
    align = next(x for x in ALIGNMENT.values[::-1] if m == 1 or not n * item % x)
    space = TABLES[case.table].space
    pairs = zip(("ALIGN_A", "ALIGN_B"), measure.natural_alignment(case), strict=True)
    operands = (value for name, value in pairs if name in space.arguments)
    return (*operands, *(value for _, value in of_result(space, align, item)))


def admissible(case: Tuned, align: tuple[int, ...], arch: str, sms: int) -> tuple[str, ...]:
    """Returns the names of the routes that are correct for ``case``, as its table lists them."""
    env = environment(case.table, case.product, align, sms)
    served = derived(case.table, dtype_of(case)).items()
    routes = {n: r for n, r in served if _runs(r, arch) and r.requires.evaluate(env)}
    batches = isinstance(case, bmm.BatchCase)
    return tuple(name for name, route in routes.items() if route.batched or not batches)


def dtype_of(case: Tuned) -> Hashable:
    """Returns the dtype for which a table's routes are derived to serve ``case``."""
    return case.kind if isinstance(case, QuantizedCase) else case.dtype


@cache
def derived(key: Key, dtype: Hashable) -> dict[str, Route]:
    """Returns the routes of table ``key`` for ``dtype``, by the names of the listed routes.

    Kernels of listed routes have the constants, those of derived ones run: they differ in their
    names, and perhaps in their dtype and weight format. Routes that do not take ``dtype`` are left
    out.
    """
    routes = TABLES[key].routes
    return {route.name: route.of(dtype) for route in routes if route.takes(dtype)}


def _runs(route: Route, arch: str) -> bool:
    return all(kernel.runs_on(arch) for kernel in route.kernels)


# -- measuring ------------------------------------------------------------------------
def missing(wanted: Iterable[Task], journal: Journal) -> list[Task]:
    """Returns the tasks that have no record in the journal, or one that lacks some kernels."""
    return [task for task in wanted if not journal.has(task.problem, task.kernels)]


def measure_all(
    wanted: Sequence[Task], journal: Journal, meter: Meter, *, seconds: float = math.inf
) -> int:
    """Measures the tasks that the journal lacks, for at most ``seconds``.

    Returns the number of tasks that remain.
    """
    todo = missing(wanted, journal)
    end = time.monotonic() + seconds
    with Progress("measuring") as progress:
        for done, task in enumerate(todo, start=1):
            if time.monotonic() >= end:
                return len(todo) - done + 1
            listed = {route.name: name for name, route in task.routes.items()}
            times, wrong = meter(task.case, tuple(listed))
            us = {listed[name]: each for name, each in times.items()}
            why = {listed[name]: each for name, each in wrong.items()}
            journal.add(Record(task.problem, us, why))
            progress(done, len(todo), task)
    return 0


class GpuMeter:
    """Times kernels on the current GPU; a kernel whose bits differ from the first's is wrong."""

    def __init__(self, torch: Any, seed: int = 0) -> None:
        self._torch, self._seed = torch, seed
        self._timer = measure.Timer(torch)
        self._operands: tuple[object, measure.Operands | int4.Operands] | None = None

    def __call__(
        self, case: Tuned, kernels: Sequence[str]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Times kernels on a case; returns µs by kernel, and errors of wrong kernels by name."""
        out, ours = self._product(case)
        work, wrong = measure.run_and_compare(self._torch, kernels, ours, out)
        return timings(self._timer, work), wrong

    def _product(self, case: Tuned) -> tuple[Any, Callable[[str], measure.Work]]:
        """Returns memory for the result of ``case``, and a function from a kernel's name to the
        call that computes the result with that kernel.
        """
        key = (case.product, case.dtype)
        kept = self._operands[1] if self._operands and self._operands[0] == key else None
        self._operands = None  # so that memory is free for the next
        if isinstance(case, bmm.BatchCase):
            batch = case.operands(self._torch, self._seed)
            out = batch.empty()
            return out, partial(batch.ours, out)
        if isinstance(case, int4.Int4Case):
            if not isinstance(kept, int4.Operands):
                kept = int4.Operands(self._torch, case.shape, case.dtype, self._seed)
            out, ours = kept.empty(), partial(kept.ours, case.layout)
            self._operands = key, kept
            return out, partial(ours, out)
        if isinstance(case, QuantizedCase):
            how = self._torch, case.shape, case.dtype, self._seed, case.format
            weights = quantized.Weights(*how)
            out = weights.empty(case)
            return out, partial(weights.ours, case.op, out, case.tier)
        if not isinstance(kept, measure.Operands):
            kept = measure.Operands(self._torch, case.product, self._seed, case.dtype)
        out = kept.empty(dtype=case.result)
        self._operands = key, kept
        return out, partial(measure.ours, case, kept, out)


def timings(timer: measure.Timer, work: Mapping[str, measure.Work]) -> dict[str, float]:
    """Times calls that have just run once, in :data:`STAGES`, each of which drops the slower
    kernels.

    ``work``: the call of each kernel by name. Returns the median µs by kernel, of the last stage
    that the kernel took part in.
    """
    times: dict[str, float] = {}
    alive = list(work)
    for most, within in STAGES:
        if not alive:
            break
        best = min(times.values(), default=0.0)
        count = measure.repetitions(best, BUDGET_MS, min(3, most), most)
        warm = 1 if times else 0
        taken = timer([work[n] for n in alive], [count] * len(alive), warmup=warm)
        times |= {n: sample.median for n, sample in zip(alive, taken, strict=True)}
        best = min(times[n] for n in alive)
        if most > 1 or best >= SHORT_US:
            alive = [n for n in alive if times[n] <= within * best]
    return times


# -- the tuning --------------------------------------------------------------------------
@dataclass(frozen=True)
class Report:
    """Regret (time of the chosen kernel / time of the fastest) on problems held out of the fit, for
    one route table and one range of M, or one weight format (``rows``).
    """

    table: str
    rows: str
    regret: Regret


def learn(
    journal: Journal,
    keys: Iterable[Key],
    rates: Rates,
    before: Mapping[str, Constants],
    prior: Mapping[str, Constants] = NO_PRIOR,
) -> tuple[dict[str, Constants], list[Report]]:
    """Fits the constants of the kernels of tables ``keys``; returns them, and reports of regret.

    Kernels whose first table is not in ``keys`` keep their constants of ``before``. ``prior``: as
    in :func:`ptxgen.cost.fit.fit`.
    """
    h = journal.header
    tuning = Tuning(h.gpu, h.sms, h.arch, str(h), rates)
    known: list[Point] = []
    reports = []
    keys = tuple(keys)
    held = {name: c for name, c in before.items() if _homes().get(name) not in keys}
    for key in keys:
        records = [r for r in journal.records.values() if r.problem.table == key and r.times]
        name = " ".join(key)
        if not records:
            note(f"{name}: not measured, left as it is")
            continue
        measured = points(records, tuning, held)
        lost = held_out(measured, partial(fit, prior=prior))
        formats = sorted({r.problem.format for r in records})
        for band in (*NAMES, "batches", *(formats if len(formats) > 1 else ()), ALL):
            inside = {at: x for at, x in lost.items() if band in (_band(at), at.format, ALL)}
            reports.append(Report(name, band, Regret.of(inside)))
        known += measured
    return fit(known, prior), reports  # together: tables share kernels


def _band(problem: Problem) -> str:
    return "batches" if problem.batch > 1 else band_of(problem.product[0])


def write_tuning(
    journal: Journal,
    keys: Iterable[Key],
    path: Path,
    rates: Rates | None = None,
    hold: bool = False,
) -> list[Report]:
    """Fits the constants of tables ``keys`` and writes them to the tuning file ``path``.

    Constants of other kernels and of families stay, as do the rates unless ``rates`` are given;
    those of kernels that are in no table any more are removed. Kernels of other tables that the
    tuning lacks are held at the constants of :data:`~ptxgen.cost.tuning.FALLBACK` in the fit. If
    ``path`` is another GPU's tuning, only kernel constants are written: they are relative to the
    peak rates of the GPU that was measured. ``hold``: the tuning's constants are the fit's prior.
    """
    h = journal.header
    before = read(path) if path.exists() else None
    rates = rates or h.rates or (before.rates if before else TYPICAL[h.arch])
    known = before.kernels if before else {}
    borrowed = read(FOLDER / f"{FALLBACK}.json").kernels
    prior = known if hold else NO_PRIOR
    constants, reports = learn(journal, keys, rates, {**borrowed, **known}, prior)
    kernels = _current({**known, **constants})
    if before and path.stem != tuning_name(h.gpu, h.sms):
        write(replace(before, kernels=kernels), path)
        return reports
    families = before.families if before else {}
    write(Tuning(h.gpu, h.sms, h.arch, str(h), rates, kernels, families), path)
    return reports


@cache
def _homes() -> dict[str, Key]:
    """Returns the first table that has each kernel: table keys by kernel name."""
    found: dict[str, Key] = {}
    for key, kind in TABLES.items():
        for route in kind.routes:
            for kernel in route.kernels:
                found.setdefault(kernel.name, key)
    return found


def _current(kernels: Mapping[str, Constants]) -> dict[str, Constants]:
    """Returns the constants of those kernels that are still in some table."""
    return {name: c for name, c in kernels.items() if name in _homes()}


def write_rows(files: Iterable[Path], output: Path | None) -> list[Report]:
    """Fits the constants of row operations to the results in ``files``, and writes them to a
    tuning.

    ``output``: its file (default: the tuning of the first result's GPU). Constants are relative to
    a GPU's peak rates, so results of several GPUs may be mixed.
    """
    records = read_rows(files)
    gpu, sms = records[0]["gpu"], records[0]["sms"]
    path = output or FOLDER / f"{tuning_name(gpu, sms)}.json"
    before, known = read(path), row_points(records)
    routes = Counter(point.problem for point in known)
    reports: list[Report] = []
    constants: dict[str, Constants] = {}
    for name in dict.fromkeys(point.table for point in known):
        of = [point for point in known if point.table == name]
        lost = {at: ratio for at, ratio in held_out(of, fit_with_prior).items() if routes[at] > 1}
        reports.append(Report(" ".join(name), ALL, Regret.of(lost)))
        constants |= fit_with_prior(of, (k.name for r in TABLES[name].routes for k in r.kernels))
    write(replace(before, kernels=_current({**before.kernels, **constants})), path)
    return reports


def report_table(reports: Iterable[Report]) -> str:
    """Returns a table of reports, a line for each route table and range of M."""
    shown = [
        *(("table", "table"), ("rows", "rows"), ("problems", "regret.problems")),
        *(("mean", "regret.mean:.3f"), ("P90", "regret.p90:.3f"), ("worst", "regret.worst:.2f")),
        ("worst at", "regret.worst_at"),
    ]
    return columns([r for r in reports if r.regret.problems], shown)


# -- the command -------------------------------------------------------------------------
def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``ptxgen tune`` with the arguments ``argv``; returns 1 if a kernel returned wrong bits,
    else 0.
    """
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    if options.rows:
        emit("time of the chosen kernel / of the fastest, where columns were not learnt")
        emit(report_table(write_rows(options.rows, options.output)))
        return 0
    if options.learn:
        journal = Journal.merged(options.learn)
        left = 0
    else:
        journal, left = _measured(options)
    if journal.damaged:
        note(
            f"{journal.path}: {plural(len(journal.damaged), 'line')} could not be read "
            f"({', '.join(map(str, journal.damaged[:8]))}); they count as not measured"
        )
    wrong = {
        f"{r.problem} {name}: {why}"
        for r in journal.records.values()
        for name, why in r.wrong.items()
    }
    for line in sorted(wrong):
        emit(f"WRONG {line}")
    header = journal.header
    path = _tuning_path(options, header)
    rates = None if options.learn else measure.rates()
    reports = write_tuning(journal, _keys(options), path, rates, options.hold)
    emit(f"{path.stem}: time of the chosen kernel / of the fastest, where K and N were not learnt")
    emit(report_table(reports))
    emit(f"wrote {path}")
    if left:
        note(f"{plural(left, 'problem')} not measured yet: the same command goes on")
    return 1 if wrong else 0


def _tuning_path(options: argparse.Namespace, header: Header) -> Path:
    name = tuning_name(header.gpu, header.sms)
    path: Path = options.output or FOLDER / f"{name}.json"
    if path.stem == name or (header.rates and path.exists() and read(path).arch == header.arch):
        return path
    raise OptionError(f"--output is {path}; a tuning's name is its file's: takes {name}.json")


def _keys(options: argparse.Namespace) -> list[Key]:
    return tables(options.dtype, options.tier, options.layout, options.plan)


def _measured(options: argparse.Namespace) -> tuple[Journal, int]:
    torch = measure.require_torch()
    start = time.monotonic()
    arch, sms, gpu = measure.target()
    header = Header(gpu, sms, arch, "", "", "", "", measure.rates())
    _tuning_path(options, header)  # refuses a wrong --output before the measuring
    s = measure.environment(torch, measure.limits(torch), SEED)
    header = replace(header, date=s.date, commit=s.commit, driver=s.driver, cuda=s.cuda)
    path = options.journal or Path(f"tune-{tuning_name(gpu, sms)}.jsonl")
    journal = Journal.begin(path, header) if options.fresh else Journal.resume(path, header)
    if journal.header.commit != header.commit:
        note(
            f"{path} was begun at commit {journal.header.commit}, this is {header.commit}: times "
            "of kernels that have changed since are not measured again (--fresh does)"
        )
    drawn = options.seed, arch, sms
    wanted = tasks(_keys(options), options.random, *drawn, options.kinds)
    wanted += batches(_keys(options), options.batches, *drawn)
    todo = missing(wanted, journal)
    note(
        f"{plural(len(wanted), 'problem')}, {plural(sum(len(t.kernels) for t in todo), 'kernel')} "
        f"to be timed on {len(todo)} of them; journal {path}"
    )
    specs = {k.name: k for task in todo for route in task.routes.values() for k in route.kernels}
    seconds = measure.build([*specs.values()])
    note(f"{plural(len(specs), 'kernel')} ready in {seconds:.1f} s")
    measure.warm_up(torch)
    left = measure_all(
        wanted,
        journal,
        GpuMeter(torch, SEED),
        seconds=options.budget - (time.monotonic() - start),
    )
    note(f"measured in {time.monotonic() - start:.0f} s")
    return journal, left


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen tune",
        description="Times every kernel that serves a problem, on random problems, and fits the "
        "constants that times are predicted by: the tuning of this GPU. A run that was stopped "
        "goes on where it was. "
        "No result depends on a tuning: all kernels of a contract return the same bits.",
        epilog="example: ptxgen tune --dtype bf16 --budget 300 --journal tune.jsonl",
    )
    parser.add_argument(
        "--dtype",
        type=arguments.words(*KINDS),
        default=["bf16"],
        metavar="LIST",
        help=f"of {', '.join(KINDS)} (bf16); quantized: of weights",
    )
    parser.add_argument("--tier", choices=("auto", *TIERS), default="auto", help="(%(default)s)")
    add_list(parser, "--layout", f"of {', '.join(LAYOUTS)} (all)", LAYOUTS, default=[*LAYOUTS])
    plans = "of chunks and chain (weight gradients that are continued) (all)"
    add_list(parser, "--plan", plans, PLANS, default=[*PLANS])
    kinds = "of random problems of dense operands, which take turns (all)"
    add_list(parser, "--kinds", kinds, draw.KINDS, default=[*draw.KINDS])
    for name, usual, metavar, what in (
        ("--random", PROBLEMS, "N", "problems a table"),
        ("--batches", BATCHES, "N", "batches a table that has them"),
        ("--seed", 1, "S", "that draws them"),
    ):
        shown = f"{what} (%(default)s)"
        parser.add_argument(name, type=int, default=usual, metavar=metavar, help=shown)
    parser.add_argument(
        "--budget", type=float, default=math.inf, metavar="SECONDS", help="stop measuring then"
    )
    parser.add_argument(
        "--journal", type=Path, metavar="FILE", help="(tune-<gpu>_<sms>.jsonl, in this directory)"
    )
    parser.add_argument("--fresh", action="store_true", help="begin the journal anew")
    parser.add_argument(
        "--hold",
        action="store_true",
        help="keep constants near those of the tuning, which few measurements change little",
    )
    for name, what in (
        ("--learn", "journals of one GPU (needs none)"),
        ("--rows", "of `ptxgen bench ops --random --regret --save`"),
    ):
        shown = f"measure nothing, learn from these {what}"
        parser.add_argument(name, type=Path, nargs="+", metavar="FILE", help=shown)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the tuning (cost/tunings/<gpu>_<sms>.json)"
    )
    return parser
