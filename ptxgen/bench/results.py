"""Benchmark results: statistics, roofline floors, rows, tables, summaries, and their files."""

from __future__ import annotations

import json
import math
import statistics
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, astuple, dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from ptxgen.bench.cases import GROUPS, INVARIANT, Case, target
from ptxgen.errors import PtxgenError
from ptxgen.ui import paint, table

GATE = "torch"
"""Name of the peer to whose time the targets refer."""


@dataclass(frozen=True)
class Sample:
    """Median, quartiles and number of the timings of one call, in µs."""

    median: float
    q1: float
    q3: float
    count: int

    @classmethod
    def of(cls, times: Sequence[float]) -> Sample:
        """Returns the median and quartiles of ``times``."""
        if len(times) == 1:
            return cls(times[0], times[0], times[0], 1)
        q1, median, q3 = statistics.quantiles(times, n=4, method="inclusive")
        return cls(median, q1, q3, len(times))

    def as_ours(self) -> dict[str, Any]:
        """Returns the row fields for ptxgen's times: ``ours_us``, quartiles and count."""
        names = ("ours_us", "ours_q1_us", "ours_q3_us", "ours_count")
        return dict(zip(names, astuple(self), strict=True))


@dataclass(frozen=True)
class Limits:
    """Peak rates of a GPU: ``bandwidth``, bytes/s of memory, and ``flops``, FLOP/s of a tier
    ("simt", FMA units, or "tc", tensor cores). ``source``: text that says how they were obtained.
    """

    bandwidth: float
    flops: float
    source: str


LIMITS = {
    # Measured, not the datasheet's: a copy of 8.6 GB (bytes read + bytes written), and
    # independent FFMAs at their own clock. Tensor cores never reach the datasheet's 989 TF/s
    # within the power limit; how near they get depends on the data.
    ("NVIDIA H200", "simt"): Limits(4.3e12, 66e12, "measured on an H200 SXM"),
    ("NVIDIA H200", "tc"): Limits(
        4.3e12, 989e12, "bytes measured on an H200 SXM, flops of its datasheet"
    ),
}
"""Peak rates by GPU name and tier; other GPUs are measured at the start of a run."""


@dataclass(frozen=True)
class Floor:
    """The roofline time of a case, and the resource that bounds it."""

    us: float
    bound: str  # "memory" or "compute"


def floor(case: Case, limits: Limits) -> Floor:
    """Returns the roofline time of a case in µs, the larger of bytes / bandwidth and FLOPs / peak,
    and which of them it is ("memory" or "compute").
    """
    memory, compute = case.bytes / limits.bandwidth, case.flops / limits.flops
    return Floor(1e6 * max(memory, compute), "memory" if memory >= compute else "compute")


@dataclass(frozen=True)
class Environment:
    """GPU, driver, versions, clocks and peak rates of a run; part of every record."""

    date: str  # UTC, ISO 8601
    commit: str
    ptxgen: str
    gpu: str
    driver: str
    sms: int
    clock_sm_mhz: int | None  # under load, at the start of the run
    clock_memory_mhz: int | None
    cuda: str
    torch: str
    bandwidth_limit: float  # bytes/s
    flops_limit: float  # flop/s
    limits_source: str
    seed: int


@dataclass(frozen=True)
class Best:
    """The fastest kernel of a case, and the chosen kernel's regret (:mod:`ptxgen.bench.regret`)."""

    kernel: str
    us: float
    regret: float  # the chosen kernel's time / us


@dataclass(frozen=True)
class Row:
    """Times of ptxgen and of one peer on one matrix product, in µs.

    ``floor_us``: roofline time, and ``bound``, its cause, "memory" or "compute". ``tflops``,
    ``gbps``: ptxgen's rates.
    """

    group: str
    op: str
    dtype: str
    tier: str
    layout: str
    m: int
    k: int
    n: int
    kernel: str
    peer: str
    peer_version: str
    ours_us: float
    ours_q1_us: float
    ours_q3_us: float
    ours_count: int
    peer_us: float
    peer_q1_us: float
    peer_q3_us: float
    peer_count: int
    ratio: float  # peer_us / ours_us: above 1, ours is faster
    floor_us: float
    bound: str
    share: float  # floor_us / ours_us
    tflops: float
    gbps: float
    checked: int  # outputs whose bits were compared with the oracle
    # None unless every kernel was timed.
    best: str | None = None  # the fastest kernel
    best_us: float | None = None
    regret: float | None = None  # the chosen kernel's time / best_us, both timed afresh

    @property
    def shape(self) -> str:
        """Sizes of the case as text, MxKxN."""
        return f"{self.m}x{self.k}x{self.n}"


def row(
    case: Case,
    kernel: str,
    ours: Sample,
    peer: tuple[str, str],
    theirs: Sample,
    limits: Limits,
    checked: int,
    best: Best | None = None,
) -> Row:
    """Returns the row of ``case``, with ratios and rates computed.

    ``kernel``: name of the kernel that ran; ``ours``, ``theirs``: times of ptxgen and of the peer;
    ``peer``: its name and version; ``limits``: the GPU's peak rates; ``checked``: number of outputs
    whose bits were compared; ``best``: the fastest kernel, if all were timed.
    """
    least = floor(case, limits)
    fields: tuple[Any, ...] = (
        *(case.group, case.op, case.dtype, case.tier, case.layout, *astuple(case.shape), kernel),
        *(*peer, *astuple(ours), *astuple(theirs), theirs.median / ours.median),
        *(least.us, least.bound, least.us / ours.median),
        *(case.flops / ours.median / 1e6, case.bytes / ours.median / 1e3, checked),
        *(astuple(best) if best else ()),
    )
    return Row(*fields)


# -- summaries --------------------------------------------------------------------
@dataclass(frozen=True)
class Summary:
    """Statistics of peer time / ptxgen time for one group of cases, peer and layout (or "all").

    ``geomean``, ``least``: geometric mean, and smallest ratio, at case ``least_at``.
    ``geomean_target``, ``each_target``: lower bounds of the mean and of each ratio (None: no
    target).
    """

    group: str
    peer: str
    layout: str  # "all" or one
    cases: int
    geomean: float
    least: float
    least_at: str
    geomean_target: float | None
    each_target: float | None
    short: int
    """Number of cases below ``each_target``."""

    @property
    def ok(self) -> bool | None:
        """Whether all targets are met; None if there are none."""
        if self.geomean_target is None and self.each_target is None:
            return None
        return not self.short and (
            self.geomean_target is None or self.geomean >= self.geomean_target
        )

    @property
    def verdict(self) -> str | None:
        """Text on the targets: "ok", or "short" with the number of cases below them; None if there
        are none.
        """
        if self.short:
            return f"short, {self.short} of {self.cases} below"
        return {True: "ok", False: "short", None: None}[self.ok]


def geomean(values: Iterable[float]) -> float:
    """Returns the geometric mean of positive values."""
    return math.exp(statistics.fmean(math.log(v) for v in values))


def summarise(rows: Iterable[Row], *, by_layout: bool = False) -> list[Summary]:
    """Returns a summary for each peer and group (and layout), in the order of the rows.

    Only peer :data:`GATE` has targets for groups, and only over all layouts together. The peers of
    :data:`cases.INVARIANT` have a target over all cases, if ``rows`` have all groups.
    """
    rows = list(rows)
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for r in rows:
        groups.setdefault((r.peer, r.group, r.layout if by_layout else "all"), []).append(r)
    found = [_summary(*key, members) for key, members in groups.items()]
    for peer, mean in () if by_layout else INVARIANT.items():
        every = [r for r in rows if r.peer == peer and r.tier == "tc"]
        if {r.group for r in every} >= GROUPS["tc"].keys():
            whole = _summary(peer, "all", "all", every)
            found.append(replace(whole, geomean_target=mean))
    return found


def _summary(peer: str, group: str, layout: str, rows: list[Row]) -> Summary:
    gated = peer == GATE and layout == "all"
    group_targets = target(group, rows[0].dtype, rows[0].tier) if gated else None
    targets = (group_targets.geomean, group_targets.each) if group_targets else (None, None)
    return summary(rows, (group, peer, layout), targets)


def summary(
    rows: Sequence[Row],
    names: tuple[str, str, str],
    targets: tuple[float | None, float | None],
    at: str = "layout",
) -> Summary:
    """Returns the statistics of peer time / ptxgen time over ``rows``.

    ``names``: group, peer and layout of the rows. ``targets``: minimum geometric mean, and minimum
    single ratio (None: no target). ``at``: the field that names the worst case, besides its shape.
    """
    least = min(rows, key=lambda r: r.ratio)
    mean, each = targets
    return Summary(
        *(*names, len(rows), geomean(r.ratio for r in rows), least.ratio),
        *(f"{least.shape} {getattr(least, at)}", mean, each),
        short=0 if each is None else sum(r.ratio < each for r in rows),
    )


# -- text -------------------------------------------------------------------------
def heading(environment: Environment) -> str:
    """Returns two lines of text on a run: GPU, versions and date; clocks and peak rates."""
    e = environment
    return (
        f"{e.gpu}, {e.sms} SMs, driver {e.driver}, CUDA {e.cuda}, torch {e.torch}, "
        f"ptxgen {e.ptxgen} at {e.commit}, {e.date}\n"
        f"clocks {e.clock_sm_mhz or '?'} and {e.clock_memory_mhz or '?'} MHz (SM, memory, under "
        f"load); limits {e.bandwidth_limit / 1e12:.2f} TB/s and {e.flops_limit / 1e12:.1f} TF/s, "
        f"{e.limits_source}; cold L2, medians"
    )


def case_table(rows: Sequence[Row]) -> str:
    """Returns a table with a line for each case: ptxgen's time, each peer's time and ratio, the
    rate, and the share of the roofline limit.

    If every kernel was timed, it also has the regret and the fastest kernel.
    """
    judged = any(r.regret is not None for r in rows)
    peers = list(dict.fromkeys(r.peer for r in rows))
    cases: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for r in rows:
        cases.setdefault((r.group, r.op, r.shape, r.layout), {})[r.peer] = r
    lines = []
    for (group, _, shape, layout), found in cases.items():
        r = next(iter(found.values()))
        cells: list[object] = [group, shape, layout, f"{r.ours_us:.1f}"]
        for peer in peers:
            if peer in found:
                cells += [f"{found[peer].peer_us:.1f}", f"{found[peer].ratio:.2f}"]
            else:
                cells += [None, None]
        rate = f"{r.tflops:.1f} TF/s" if r.bound == "compute" else f"{r.gbps:.0f} GB/s"
        line = [*cells, rate, f"{100 * r.share:.0f}%", r.kernel]
        if judged:
            line += [r.regret and f"{r.regret:.2f}", r.best]
        lines.append(line)
    header = ["group", "M x K x N", "layout", "ours µs"]
    for peer in peers:
        header += [f"{peer} µs", "ratio"]
    header += ["rate", "of limit", "kernel", *(["regret", "best"] if judged else [])]
    return table(lines, header)


def quotient(a: str, b: str | float) -> property:
    """Returns a property that divides attribute ``a`` by ``b``, an attribute name or a number.

    The property is None where an attribute is None or 0.
    """

    def value(row: Any) -> float | None:
        of, by = getattr(row, a), getattr(row, b) if isinstance(b, str) else b
        return of / by if of and by else None

    return property(value)


Columns = Sequence[tuple[str, str]]
"""Columns of a table: pairs of a heading and a row attribute, after which a format may follow a
colon ("ours_us:.1f").
"""


def columns(rows: Iterable[object], shown: Columns) -> str:
    """Returns a table of the columns ``shown`` with a line for each row; None prints as a dash."""
    cells = [(attrgetter(cell.partition(":")[0]), cell.partition(":")[2]) for _, cell in shown]
    lines = []
    for row in rows:
        values = ((get(row), how) for get, how in cells)
        lines.append([None if value is None else format(value, how) for value, how in values])
    return table(lines, [heading for heading, _ in shown])


def summary_table(summaries: Sequence[Summary]) -> str:
    """Returns a table with a line for each summary, with "ok" or "short" if it has a target."""
    text = columns(
        summaries,
        [
            *(("group", "group"), ("peer", "peer"), ("layouts", "layout"), ("cases", "cases")),
            *(("geomean", "geomean:.3f"), ("asked", "geomean_target:.2f"), ("least", "least:.3f")),
            *(("asked", "each_target:.2f"), ("least at", "least_at"), ("verdict", "verdict")),
        ],
    )
    return "\n".join(_coloured(line) for line in text.splitlines())


def _coloured(line: str) -> str:
    if line.endswith(" ok"):
        return line[:-2] + paint("ok", "green")
    head, found, tail = line.rpartition(" short")
    return f"{head} {paint('short' + tail, 'red')}" if found else line


# -- JSON -------------------------------------------------------------------------
def records(rows: Iterable[Any], environment: Environment) -> list[dict[str, Any]]:
    """Returns rows (dataclass instances) as flat records, each with the environment's fields."""
    shared = asdict(environment)
    return [{**asdict(r), **shared} for r in rows]


def write_records(path: Path, found: Iterable[Mapping[str, Any]]) -> None:
    """Writes records as a JSON list, one a line; NaN (not timed) becomes null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(json_row(record), ensure_ascii=False) for record in found)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def store(options: Namespace, found: Sequence[Mapping[str, Any]]) -> None:
    """Puts records into ``options.records`` for ``--json``, and writes the file of ``--save``."""
    options.records = [json_row(record) for record in found]
    if options.save:
        write_records(options.save, found)


def json_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of a record with None in place of NaN (not timed)."""
    return {name: None if value != value else value for name, value in record.items()}


def read_json(path: Path) -> tuple[list[Row], Environment]:
    """Reads the rows of a file of ``ptxgen bench gemm``, and their environment.

    Rows of old files have no dtype: they are f32, tier simt. Raises PtxgenError for other files.
    """
    return read_rows(Row, path, "gemm", dtype="f32", tier="simt")


@contextmanager
def reading(path: Path, command: str) -> Iterator[None]:
    """Context in which errors of reading ``path``, a file of ``ptxgen bench command``, become
    PtxgenError.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise PtxgenError(
            f"there is no file {path}; recorded runs are in bench/results of a checkout and of the "
            "source distribution"
        ) from error
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise PtxgenError(f"{path} holds no rows of `ptxgen bench {command}`: {error!r}") from error


_Record = TypeVar("_Record")


def from_record(kind: type[_Record], record: Mapping[str, Any]) -> _Record:
    """Returns an instance of dataclass ``kind`` from a flat record; other keys are ignored.

    Raises LookupError if a field without a default is missing.
    """
    names = (f.name for f in fields(kind) if f.name in record or f.default is MISSING)  # type: ignore[arg-type]
    return kind(**{name: record[name] for name in names})


def read_rows(
    kind: type[_Record], path: Path, command: str, **older: Any
) -> tuple[list[_Record], Environment]:
    """Reads the rows of a file of ``ptxgen bench command``, and the environment of the first.

    ``older``: values of fields that rows of old files lack. Raises PtxgenError for other files.
    """
    with reading(path, command):
        found: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        rows = [from_record(kind, {**older, **record}) for record in found]
        return rows, from_record(Environment, found[0])
