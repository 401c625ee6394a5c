"""The tuner's journal: a file of measured times, a line a problem, so that stopped runs resume."""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ptxgen.cost.gpu import Rates
from ptxgen.errors import PtxgenError
from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.spec import Key

FORMAT = 1
PACKED = ".xz"
"""File suffix of a compressed journal, which is read-only."""
UNREADABLE = OSError, EOFError, lzma.LZMAError

WEIGHTS = "quantized"
"""First word of the keys of route tables for quantized weights."""
CLOSE = 1.25
"""Multiple of the fastest kernel's time up to which a kernel is timed again."""


class Problem(NamedTuple):
    """The key of a measurement: one problem of a route table.

    ``table``: key of the route table. ``product``: M, N, K. ``align``: byte alignments of A and B,
    then, in tables that have them, alignment and item size of C. ``batch``: products in one launch.
    ``format``: name of the format of a quantized weight, as kernels read it; else empty.
    """

    table: Key
    product: tuple[int, int, int]
    align: tuple[int, ...]
    batch: int = 1
    format: str = ""

    @property
    def group(self) -> int:
        """A hash of N and K; cross-validation holds out problems of one group together."""
        _, n, k = self.product
        return k * 7919 + n * 104729

    def __str__(self) -> str:
        m, n, k = self.product
        batch = f"{self.batch} x " if self.batch > 1 else ""
        align = ",".join(map(str, self.align))
        format = f" {self.format}" if self.format else ""
        return f"{' '.join(self.table)}{format} {batch}M={m} N={n} K={k} align {align}"


@dataclass(frozen=True)
class Header:
    """The first line of a journal: GPU, date, commit and versions of the run that began it."""

    gpu: str
    sms: int
    arch: str
    date: str
    commit: str
    driver: str
    cuda: str
    rates: Rates | None = None
    """Peak rates of the GPU; fitted constants are relative to them."""

    def __str__(self) -> str:
        return (
            f"{self.date[:10]}, ptxgen at {self.commit}, driver {self.driver}, CUDA {self.cuda}, "
            "cold L2, medians"
        )


@dataclass(frozen=True)
class Record:
    """Measurements of one problem: ``times``, µs by kernel name, and ``wrong``, errors by kernel
    name.
    """

    problem: Problem
    times: Mapping[str, float]
    wrong: Mapping[str, str]

    @property
    def kernels(self) -> frozenset[str]:
        """Names of all kernels that were run, right or wrong."""
        return frozenset(self.times) | frozenset(self.wrong)

    def slowness(self, kernel: str) -> float:
        """Returns the time of ``kernel`` / the fastest kernel's; 0 if it was not timed."""
        return self.times[kernel] / min(self.times.values()) if kernel in self.times else 0.0

    @classmethod
    def averaged(cls, records: Sequence[Record]) -> Record:
        """Merges several measurements of one problem into one record.

        Clocks differ between runs, so each run has a level: the median of its times / the first
        run's, over kernels that all runs timed. A kernel's time is the median of time / level,
        times the median level. Only runs in which the kernel was within :data:`CLOSE` of the
        fastest count, if there are any: slower kernels are timed few times, and a single time may
        be much too long. A kernel that was wrong once is wrong. If the runs have no kernel in
        common, the last record is returned.
        """
        common = set.intersection(*(set(r.times) for r in records))
        if not common or len(records) == 1:
            return records[-1]
        first = records[0].times
        levels = [median(r.times[name] / first[name] for name in common) for r in records]
        usual = median(levels)
        wrong = {name: why for r in records for name, why in r.wrong.items()}
        timed = {name: None for r in records for name in r.times if name not in wrong}
        times = {}
        for name in timed:
            runs = [(r, level) for r, level in zip(records, levels, strict=True) if name in r.times]
            close = [(r, level) for r, level in runs if r.slowness(name) <= CLOSE]
            times[name] = usual * median(r.times[name] / lv for r, lv in close or runs)
        return cls(records[0].problem, times, wrong)

    def line(self) -> str:
        """Returns the record as a line of the journal, in JSON."""
        key, (m, n, k), align, batch, format = self.problem
        found = {"table": " ".join(key), "m": m, "n": n, "k": k, "align": align}
        if batch > 1:
            found["batch"] = batch
        if format:
            found["format"] = format
        times = {name: round(us, 3) for name, us in self.times.items()}
        return json.dumps({**found, "times": times, "wrong": dict(self.wrong)})

    @classmethod
    def of(cls, line: str) -> Record:
        """Parses a record from a line of the journal.

        Raises ValueError, LookupError or TypeError for a malformed line.
        """
        found = json.loads(line)
        table = tuple(found["table"].split())
        m, n, k = (int(found[size]) for size in "mnk")
        align = tuple(map(int, found["align"]))
        batch = int(found.get("batch", 1))
        # Journals without formats are of the one format that was measured then.
        format = str(found.get("format", NF4.name if table[0] == WEIGHTS else ""))
        times = {str(name): float(us) for name, us in found["times"].items()}
        if not all(0 < us < math.inf for us in times.values()) or min(m, n, k, batch) < 1:
            raise ValueError("a time or a size that cannot be")
        if len(table) < 3 or not align:
            raise ValueError("a table that cannot be")
        problem = Problem(table, (m, n, k), align, batch, format)
        return cls(problem, times, dict(found["wrong"]))


@dataclass
class Journal:
    """A journal file and its records by problem; new records are appended to the file at once.

    ``damaged``: numbers of the lines that could not be read; their problems are measured again.
    """

    path: Path
    header: Header
    records: dict[Problem, Record] = field(default_factory=dict)
    damaged: list[int] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> Journal:
        """Reads a journal from a file, which may be compressed (``.xz``).

        Raises PtxgenError for a file that is no journal.
        """
        try:
            read = lzma.open if path.suffix == PACKED else open
            with read(path, "rt", encoding="utf-8", errors="replace") as file:
                first, *lines = file.read().splitlines()
            found = json.loads(first)
            if found.pop("ptxgen tune") != FORMAT:
                raise ValueError("another format")
            if rates := found.get("rates"):
                found["rates"] = Rates(**{**rates, "products": tuple(rates["products"])})
            journal = cls(path, Header(**found))
        except (*UNREADABLE, ValueError, LookupError, TypeError, AttributeError) as error:
            raise PtxgenError(
                f"{path} is no journal of `ptxgen tune`: {error!r}; name another with --journal, "
                "or begin it anew with --fresh"
            ) from error
        for number, line in enumerate(lines, start=2):
            try:
                record = Record.of(line)
            except (ValueError, LookupError, TypeError, AttributeError):
                journal.damaged.append(number)
            else:
                journal.records[record.problem] = record
        return journal

    @classmethod
    def merged(cls, paths: Sequence[Path]) -> Journal:
        """Reads several journals of one GPU as one; records of the same problem are averaged."""
        journals = [cls.load(path) for path in paths]
        first = journals[0]
        found: dict[Problem, list[Record]] = {}
        for journal in journals:
            _check_same_gpu(journal.path, journal.header, first.header)
            for problem, record in journal.records.items():
                found.setdefault(problem, []).append(record)
        first.records = {problem: Record.averaged(each) for problem, each in found.items()}
        return first

    @classmethod
    def begin(cls, path: Path, header: Header) -> Journal:
        """Creates a new journal at ``path``; overwrites an existing file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"ptxgen tune": FORMAT, **asdict(header)}) + "\n", "utf-8")
        return cls(path, header)

    @classmethod
    def resume(cls, path: Path, header: Header) -> Journal:
        """Reads the journal at ``path``, to add to it, or creates one with ``header`` if there is
        none.

        Raises PtxgenError if the journal is another GPU's, or compressed.
        """
        if path.suffix == PACKED:
            raise PtxgenError(f"{path} is done and compressed; name another with --journal")
        if not path.exists():
            return cls.begin(path, header)
        journal = cls.load(path)
        _check_same_gpu(path, journal.header, header)
        return journal

    def add(self, record: Record) -> None:
        """Appends a record to the file, then to memory; first terminates a truncated last line."""
        with self.path.open("rb+") as file:
            file.seek(-1, 2)
            whole = file.read(1) == b"\n"
            file.write(("" if whole else "\n").encode() + record.line().encode() + b"\n")
        self.records[record.problem] = record

    def has(self, problem: Problem, kernels: Sequence[str]) -> bool:
        """Whether ``problem`` was measured with all of ``kernels``."""
        return problem in self.records and self.records[problem].kernels.issuperset(kernels)


def _check_same_gpu(path: Path, its: Header, wanted: Header) -> None:
    theirs, here = ((h.gpu, h.sms, h.arch) for h in (its, wanted))
    if theirs != here:
        raise PtxgenError(
            f"{path} is of {theirs[0]} ({theirs[2]}, {theirs[1]} SMs), this is {here[0]} "
            f"({here[2]}, {here[1]} SMs); name another with --journal"
        )
