"""``ptxgen tune``: measures every admissible kernel, and writes this GPU's tuning.

Every kernel that serves a problem is forced on it, with a cold L2, in turns with the others.
What was measured is kept in a journal, a line a problem, so that a run can be stopped at any
time and goes on where it was. From the journal come rules (:mod:`ptxgen.bench.learn`), and from
them a tuning (:mod:`ptxgen.tiles.tunings`), to be reviewed and committed.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ptxgen.bench import cases, measure
from ptxgen.bench.cases import GROUPS, Case, Shape, case_of, shape_of, shapes_of
from ptxgen.bench.journal import CLOSE, Header, Journal, Problem, Record
from ptxgen.bench.learn import MOST_RULES, Point, learn
from ptxgen.cli.ui import Progress, emit, note, plural, table
from ptxgen.dispatch import emit as emitter
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.expr import FALSE, TRUE
from ptxgen.numerics.contract import DTYPES, ITEMSIZE, TIERS
from ptxgen.spec import Key, Route
from ptxgen.tiles import ROUTES, TABLES
from ptxgen.tiles.gemm import WIDTH_OF
from ptxgen.tiles.tunings import FOLDER, Rule, Rules, Tuning, read, tuning_name, write

_MS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
_ODD_MS = (1, 16, 128, 2048)
_WEIGHTS = (
    (4096, 4096),
    (14336, 4096),
    (4096, 14336),
    (4096, 1024),
    (768, 512),
    (768, 3072),
    (3072, 768),
    (1536, 3072),
    (1024, 1024),
    (8192, 8192),
    (256, 256),
)
SHAPES = {
    "rows": (
        *shapes_of(_MS, _WEIGHTS),
        *shapes_of(_ODD_MS, ((641, 257), (4095, 4097), (4096, 50257), (4095, 4096), (4100, 4100))),
    ),
    "batch": (
        *shapes_of(
            (64, 512, 2048, 8192, 32768, 65536),
            (
                (128, 128),
                (512, 512),
                (768, 768),
                (768, 3072),
                (1024, 4096),
                (4096, 1024),
                (4096, 4096),
                (4096, 14336),
            ),
        ),
        *shapes_of((512, 8192), ((641, 257), (4095, 4097), (4096, 4097))),
    ),
}
"""The problems that are measured, by plan, after those of the benchmark."""
STAGES = ((1, 2.0), (3, CLOSE), (5, 1.08), (11, 0.0))
"""How often a kernel is timed, and how far from the fastest it may be to be timed again."""
FAR, FALLS = 3.0, 1.2
"""How far behind the fastest, and how much farther than on a smaller problem, is hopeless."""
WEIGHT = 4.0
"""As how many problems of the grid one of the benchmark counts: its sizes are those of models."""
BUDGET_MS = 30.0
"""For the timings of a kernel in a stage; they are at least three."""
Meter = Callable[[Case, Sequence[str]], tuple[dict[str, float], dict[str, str]]]
"""Times kernels, forced on a case: µs by kernel, and of others what was wrong."""


# -- what is to be done ---------------------------------------------------------------
@dataclass(frozen=True)
class Task:
    """A case, and the kernels that serve it."""

    case: Case
    align: tuple[int, int]
    kernels: tuple[str, ...]

    @property
    def problem(self) -> Problem:
        """What its measurement is known by."""
        return self.case.table, self.case.product, self.align

    @property
    def series(self) -> tuple[object, ...]:
        """What it shares with tasks that differ in the batch only."""
        return self.case.table, self.case.shape.k, self.case.shape.n, self.align

    @property
    def name(self) -> str:
        """For people."""
        return f"{' '.join(self.case.table)} {self.case.shape}"


def tables(
    dtypes: Iterable[str], tier: str, layouts: Iterable[str], plans: Iterable[str]
) -> list[Key]:
    """The route tables of these dtypes, layouts and plans. Raises OptionError for none."""
    layouts, plans = tuple(layouts), tuple(plans)
    wanted = [(WIDTH_OF.get(d, d), cases.tier_of(d, tier)) for d in dtypes]
    products = (key for key in ROUTES if len(key) == 4)
    found: list[Key] = [
        k for k in products if k[0] in layouts and k[1] in plans and k[2:] in wanted
    ]
    if not found:
        raise OptionError(
            f"there is no route table of {', '.join(layouts)}, {', '.join(plans)}, "
            f"{', '.join(' '.join(w) for w in wanted)}"
        )
    return found


def tasks(keys: Iterable[Key], sets: Sequence[str], arch: str, sms: int) -> list[Task]:
    """The problems of ``sets`` in every table: "all", groups of the benchmark, or MxKxN.

    By weights, those of the benchmark first and the rest in no order, so that a run that was
    stopped has been everywhere; the batch grows (see :func:`measure_all`).
    """
    found: dict[Problem, Task] = {}
    for key in keys:
        for shape in _shapes(key, sets):
            case = case_of(key, shape)
            align = measure.natural_alignment(case)
            task = Task(case, align, admissible(case, align, arch, sms))
            if task.kernels:
                found.setdefault(task.problem, task)
    order = {series: i for i, series in enumerate(dict.fromkeys(t.series for t in found.values()))}
    return sorted(found.values(), key=lambda t: (order[t.series], t.case.shape.m))


def _shapes(key: Key, sets: Sequence[str]) -> Iterator[Shape]:
    op = "wgrad" if key[1] == "batch" else "linear"
    groups = GROUPS[key[3]]
    for name in sets:
        if name == "all":
            for group in groups.values():
                yield from group.shapes if group.op == op else ()
            yield from sorted(SHAPES[key[1]], key=lambda s: zlib.crc32(str(s).encode()))
        elif name in groups:
            yield from groups[name].shapes if groups[name].op == op else ()
        else:
            yield shape_of(name, ("all", *groups))


def admissible(case: Case, align: tuple[int, int], arch: str, sms: int) -> tuple[str, ...]:
    """The routes, by name, that are correct for ``case``."""
    env = environment(case.table, case.product, align, sms)
    fitting = (r.name for r in ROUTES[case.table] if _runs(r, arch) and r.requires.evaluate(env))
    return tuple(dict.fromkeys(fitting))


def _runs(route: Route, arch: str) -> bool:
    return all(kernel.runs_on(arch) for kernel in route.kernels)


def environment(
    key: Key, product: tuple[int, int, int], align: tuple[int, int], sms: int
) -> dict[str, int]:
    """The problem variables of a product."""
    space = TABLES[key].space
    values = dict(zip(space.arguments, (*product, sms, *align), strict=True))
    return space.environment(values)


# -- measuring ------------------------------------------------------------------------
def missing(wanted: Iterable[Task], journal: Journal) -> list[Task]:
    """The tasks that were not measured, or not with all of their kernels."""
    return [task for task in wanted if not journal.has(task.problem, task.kernels)]


def measure_all(
    wanted: Sequence[Task], journal: Journal, meter: Meter, *, seconds: float = math.inf
) -> int:
    """Measures what the journal does not have, for ``seconds`` at most; how much is left.

    A kernel that is far behind and falls back as the batch grows is left out where it grows
    further: small tiles take hundreds of times as long as large ones on large problems.
    """
    todo = missing(wanted, journal)
    end = time.monotonic() + seconds
    with Progress("measuring") as progress:
        for done, task in enumerate(todo, start=1):
            if time.monotonic() >= end:
                return len(todo) - done + 1
            before = [
                journal.records[t.problem]
                for t in wanted
                if t.series == task.series
                and t.case.shape.m < task.case.shape.m
                and t.problem in journal.records
            ][-2:]
            hopeless = tuple(n for n in task.kernels if _hopeless(n, before))
            tried = [n for n in task.kernels if n not in hopeless]
            journal.add(Record(task.problem, *meter(task.case, tried), hopeless))
            progress(done, len(todo), task)
    return 0


def _hopeless(kernel: str, before: Sequence[Record]) -> bool:
    """Whether a kernel fell back to far behind over the last two, smaller, problems."""
    if any(record.slowness(kernel) == math.inf for record in before):
        return True
    if len(before) < 2:
        return False
    earlier, last = (record.slowness(kernel) for record in before)
    return 0 < earlier and last >= max(FAR, FALLS * earlier)


class GpuMeter:
    """Times kernels on the present GPU. Those that differ from the first in a bit are wrong."""

    def __init__(self, torch: Any, seed: int = 0) -> None:
        self._torch, self._seed = torch, seed
        self._timer = measure.Timer(torch)
        self._operands: tuple[object, measure.Operands] | None = None

    def __call__(
        self, case: Case, kernels: Sequence[str]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """As :data:`Meter`."""
        operands = self._of(case)
        out, expected = operands.empty(), None
        work: dict[str, measure.Work] = {}
        wrong: dict[str, str] = {}
        for name in kernels:
            out.fill_(float("nan"))
            run = measure.ours(case, operands, out, name)
            try:
                run()
                self._torch.cuda.synchronize()
            except PtxgenError as error:
                wrong[name] = str(error)
                continue
            if expected is None:
                expected = out.clone()
            if not self._torch.equal(out, expected):
                wrong[name] = f"{int((out != expected).sum())} outputs have other bits"
                continue
            work[name] = run
        return self._times(work), wrong

    def _of(self, case: Case) -> measure.Operands:
        key = (case.product, case.dtype)
        if self._operands is None or self._operands[0] != key:
            self._operands = None  # so that memory is free for the next
            self._operands = (
                key,
                measure.Operands(self._torch, case.product, self._seed, case.dtype),
            )
        return self._operands[1]

    def _times(self, work: Mapping[str, measure.Work]) -> dict[str, float]:
        """All a few times, the better ones often, in turns."""
        times: dict[str, float] = {}
        alive = list(work)
        for most, within in STAGES:
            if not alive:
                break
            best = min(times.values(), default=0.0)
            count = measure.repetitions(best, BUDGET_MS, min(3, most), most)
            warm = 1 if times else 0  # the first time, each has just run
            taken = self._timer([work[n] for n in alive], [count] * len(alive), warmup=warm)
            times |= {n: sample.median for n, sample in zip(alive, taken, strict=True)}
            best = min(times[n] for n in alive)
            alive = [n for n in alive if times[n] <= within * best]
        return times


# -- the tuning --------------------------------------------------------------------------
@dataclass(frozen=True)
class Report:
    """How the rules of a table do on the problems that were measured."""

    key: Key
    problems: int
    rules: int
    mean: float
    worst: float
    worst_at: str
    table_mean: float
    """As ``mean``, with the table's own routes."""


def learn_table(
    key: Key, records: Iterable[Record], header: Header, most: int
) -> tuple[Rules, Report]:
    """The rules of a table, from its records."""
    known = {route.name for route in ROUTES[key]}
    benchmark = {case_of(key, shape).product for shape in _shapes(key, tuple(GROUPS[key[3]]))}
    points = [
        Point(
            *r.problem[1],
            r.problem[2],
            {n: us for n, us in r.times.items() if n in known},
            WEIGHT if r.problem[1] in benchmark else 1.0,
        )
        for r in records
    ]
    points = [point for point in points if point.times]
    learnt = learn(points, itemsize=ITEMSIZE[TABLES[key].dtypes[0]], most=most)
    at = learnt.worst_at
    losses = [loss for p in points if (loss := _table_loss(key, p, header)) is not None]
    report = Report(
        key,
        len(points),
        len(learnt.rules),
        learnt.mean,
        learnt.worst,
        f"M={at.m} N={at.n} K={at.k}",
        math.exp(sum(map(math.log, losses)) / len(losses)) if losses else math.nan,
    )
    return living(key, learnt.rules, header.arch), report


def _table_loss(key: Key, point: Point, header: Header) -> float | None:
    env = environment(key, point.sizes, point.align, header.sms)
    for route in ROUTES[key]:
        if (
            _runs(route, header.arch)
            and route.requires.evaluate(env)
            and route.prefer.evaluate(env)
        ):
            return point.times[route.name] / point.best if route.name in point.times else None
    return None


def living(key: Key, rules: Sequence[Rule], arch: str) -> Rules:
    """``rules`` and, behind them, the table's own routes: those that serve something.

    Sampling finds most. Of the others, rules and the last route of the table, which takes what
    nothing else does, stay unless the solver proves that nothing reaches them (or, without a
    solver, one before the last takes everything).
    """
    from ptxgen.dispatch.prove import SAMPLES, Prover

    names = tuple(route.name for route in ROUTES[key])
    routes = Rules(tuple(rules), names).routes(ROUTES[key], " ".join(key))
    (whole,) = emitter.tables({key: replace(TABLES[key], routes=routes)})
    dispatch = emitter.functions(whole)[arch]
    prover = Prover(whole)
    problems = prover.shapes(seed=1)
    taken: set[int] = set()
    for _ in range(SAMPLES):
        problem = next(problems)
        choice = dispatch(*(problem[name] for name in whole.space.arguments))
        taken |= {choice.route} if choice else set()
    conditions = [emitter.condition(route) for route in routes]
    last = len(conditions) - 1
    for i in {*range(len(rules)), last} - taken:
        before = conditions[:i]
        try:
            dead = prover.implies([conditions[i], *(~c for c in before)], FALSE).proved
        except ImportError:
            dead = i == last and any(before[j] in (TRUE, conditions[i]) for j in taken)
        if not dead:
            taken.add(i)
    return Rules(
        tuple(rule for i, rule in enumerate(rules) if i in taken),
        tuple(name for i, name in enumerate(names, start=len(rules)) if i in taken),
    )


def write_tuning(
    journal: Journal,
    keys: Iterable[Key],
    path: Path,
    *,
    most: int = MOST_RULES,
) -> list[Report]:
    """Learns the tables ``keys`` and enters them into the tuning in ``path``.

    What the tuning has of other tables stays.
    """
    header = journal.header
    reports = []
    learnt: dict[Key, Rules] = {}
    for key in keys:
        records = [r for r in journal.records.values() if r.problem[0] == key and r.times]
        if not records:
            note(f"{' '.join(key)}: not measured, left as it is")
            continue
        learnt[key], report = learn_table(key, records, header, most)
        reports.append(report)
    tuning = Tuning(header.gpu, header.sms, header.arch, str(header), learnt)
    if path.exists():
        tuning = replace(tuning, tables={**read(path).tables, **learnt})
    for key in learnt:
        tuning.routes(key)  # every kernel is there
    write(tuning, path)
    return reports


def report_table(reports: Iterable[Report]) -> str:
    """One line per table."""
    return table(
        [
            (
                " ".join(r.key),
                r.problems,
                r.rules,
                f"{r.mean:.3f}",
                f"{r.worst:.3f}",
                r.worst_at,
                f"{r.table_mean:.3f}",
            )
            for r in reports
        ],
        ("table", "problems", "rules", "mean", "worst", "worst at", "table's own"),
    )


# -- the command -------------------------------------------------------------------------
def main(argv: Sequence[str] | None = None) -> int:
    """The command. 1 if a kernel returned wrong bits, else 0."""
    options = _parser().parse_args(argv)
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
        f"{' '.join(r.problem[0])} M={m} N={n} K={k} {name}: {why}"
        for r in journal.records.values()
        for (m, n, k) in [r.problem[1]]
        for name, why in r.wrong.items()
    }
    for line in sorted(wrong):
        emit(f"WRONG {line}")
    header = journal.header
    path = _tuning_path(options, header.gpu, header.sms)
    reports = write_tuning(
        journal,
        _keys(options),
        path,
        most=options.most,
    )
    emit(f"{path.stem}: times with the rules / with the fastest kernel of each problem")
    emit(report_table(reports))
    emit(f"wrote {path}; review it, then `ptxgen generate` and `ptxgen prove`")
    if left:
        note(f"{plural(left, 'problem')} not measured yet: the same command goes on")
    return 1 if wrong else 0


def _tuning_path(options: argparse.Namespace, gpu: str, sms: int) -> Path:
    name = tuning_name(gpu, sms)
    path: Path = options.output or FOLDER / f"{name}.json"
    if path.stem != name:
        raise OptionError(f"--output is {path}; a tuning's name is its file's: takes {name}.json")
    return path


def _keys(options: argparse.Namespace) -> list[Key]:
    return tables(options.dtype, options.tier, options.layout, options.plan)


def _measured(options: argparse.Namespace) -> tuple[Journal, int]:
    torch = measure.require_torch()
    start = time.monotonic()
    arch, sms, gpu = measure.target()
    _tuning_path(options, gpu, sms)  # now, not after the measuring
    surroundings = measure.environment(torch, measure.limits(torch), options.seed)
    s = surroundings
    header = Header(gpu, sms, arch, s.date, s.commit, s.driver, s.cuda)
    path = options.journal or Path(f"tune-{tuning_name(gpu, sms)}.jsonl")
    journal = Journal.begin(path, header) if options.fresh else Journal.resume(path, header)
    if journal.header.commit != header.commit:
        note(
            f"{path} was begun at commit {journal.header.commit}, this is {header.commit}: times "
            "of kernels that have changed since are not measured again (--fresh does)"
        )
    wanted = tasks(_keys(options), options.shapes, arch, sms)
    todo = missing(wanted, journal)
    note(
        f"{plural(len(wanted), 'problem')}, {plural(sum(len(t.kernels) for t in todo), 'kernel')} "
        f"to be timed on {len(todo)} of them; journal {path}"
    )
    firsts = {name for task in todo for name in task.kernels}
    routes = {route.name: route for table in ROUTES.values() for route in table}
    names = dict.fromkeys(kernel.name for n in sorted(firsts) for kernel in routes[n].kernels)
    seconds = measure.precompile(list(names))
    note(f"{plural(len(names), 'kernel')} ready in {seconds:.1f} s")
    measure.warm_up(torch)
    left = measure_all(
        wanted,
        journal,
        GpuMeter(torch, options.seed),
        seconds=options.budget - (time.monotonic() - start),
    )
    note(f"measured in {time.monotonic() - start:.0f} s")
    return journal, left


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ptxgen tune",
        description="Times every kernel that serves a problem, on many problems, and writes which "
        "to prefer where: the tuning of this GPU. A run that was stopped goes on where it was. "
        "No result depends on a tuning: all kernels of a contract return the same bits.",
        epilog="example: ptxgen tune --dtype bf16 --budget 300 --journal tune.jsonl",
    )
    parser.add_argument(
        "--dtype",
        type=_choices(tuple(DTYPES.values())),
        default=["bf16"],
        metavar="LIST",
        help=f"of {', '.join(DTYPES.values())} (bf16)",
    )
    parser.add_argument("--tier", choices=("auto", *TIERS), default="auto", help="(%(default)s)")
    layouts, plans = ("NN", "NT", "TN", "TT"), ("rows", "batch")
    parser.add_argument(
        "--layout",
        type=_choices(layouts),
        default=list(layouts),
        metavar="LIST",
        help=f"of {', '.join(layouts)} (all)",
    )
    parser.add_argument(
        "--plan",
        type=_choices(plans),
        default=list(plans),
        metavar="LIST",
        help="of rows (forward, input gradient) and batch (weight gradient) (both)",
    )
    parser.add_argument(
        "--shapes",
        type=lambda text: text.split(","),
        default=["all"],
        metavar="SET",
        help="all, groups of `ptxgen bench gemm`, or MxKxN; several with commas (all)",
    )
    parser.add_argument(
        "--budget", type=float, default=math.inf, metavar="SECONDS", help="stop measuring then"
    )
    parser.add_argument(
        "--journal", type=Path, metavar="FILE", help="(tune-<gpu>_<sms>.jsonl, in this directory)"
    )
    parser.add_argument("--fresh", action="store_true", help="begin the journal anew")
    parser.add_argument(
        "--learn",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="measure nothing, learn from these journals of one GPU (needs none)",
    )
    parser.add_argument(
        "--most", type=int, default=MOST_RULES, metavar="COUNT", help="rules a table (%(default)s)"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the tuning (tiles/tunings/<gpu>_<sms>.json)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the operands (%(default)s)")
    return parser


def _choices(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        found = text.split(",")
        for value in found:
            if value not in known:
                raise argparse.ArgumentTypeError(f"{value!r}: takes {', '.join(known)}")
        return found

    return parse


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except PtxgenError as error:
        raise SystemExit(f"error: {error}") from error
