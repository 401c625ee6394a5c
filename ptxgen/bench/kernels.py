"""``ptxgen bench kernels``: times every kernel that is correct for a problem, one by one.

The command is for studying single problems; ``ptxgen tune`` fits the constants that predict times.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ptxgen import arguments
from ptxgen.bench import measure, results
from ptxgen.bench.cases import CUSTOM, Case, Shape, add_kind, select, tier_of
from ptxgen.bench.results import Environment, Sample
from ptxgen.bench.runner import Area, add_list
from ptxgen.dispatch.explain import Explanation
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.ops.explaining import explain
from ptxgen.spec import KernelSpec
from ptxgen.tiles import ROUTES
from ptxgen.ui import emit

REPETITIONS = 7
"""Maximum timings of a kernel that is near the fastest."""
HOPELESS = 2.0
"""Multiple of the fastest kernel's time above which a kernel is timed only once."""


@dataclass(frozen=True)
class KernelTime:
    """Times of one route (sequence of kernels) on one problem, in µs: median, quartiles and number
    of timings. The call's option ``kernel`` forces the route.
    """

    op: str
    layout: str
    dtype: str
    tier: str
    m: int
    n: int
    k: int
    route: int
    kernel: str
    us: float
    q1_us: float
    q3_us: float
    count: int
    slowdown: float  # over the fastest
    chosen: bool  # by the dispatcher
    peer_us: float  # torch.mm
    ratio: float  # peer_us / us
    floor_us: float
    wrong: str  # why the result is wrong; empty if it is right

    @property
    def arrow(self) -> str:
        """The mark "->" in the row of the dispatcher's choice, else empty."""
        return "->" if self.chosen else ""

    share = results.quotient("floor_us", "us")

    @property
    def problem(self) -> str:
        """The problem in the notation of a ``--grid`` file, OP LAYOUT MxKxN."""
        return f"{self.op} {self.layout} {self.m}x{self.k}x{self.n}"


def _case(op: str, layout: str, sizes: Sequence[str]) -> Case:
    """Parses operation, operand layout and sizes M, K, N as a problem in f32.

    Raises OptionError for an unknown operation or layout, or malformed sizes.
    """
    m, k, n = arguments.sizes(arguments.numbers(sizes, ("M", "N", "K")))
    if op not in OPERATIONS:
        raise OptionError(f"operation {op!r}: expected one of {', '.join(OPERATIONS)}")
    known = OPERATIONS[op].products
    if layout not in known:
        raise OptionError(f"layout {layout!r} of {op}: expected one of {', '.join(known)}")
    return Case(CUSTOM, op, layout, Shape(m, k, n))


def read_grid(path: Path) -> list[Case]:
    """Reads problems from a file, ``OP LAYOUT MxKxN`` a line; # begins a comment.

    Raises OptionError if the file cannot be read, or a line is malformed.
    """
    found: list[Case] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise OptionError(f"--grid {path}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            op, layout, *sizes = words
            found.append(_case(op, layout, sizes))
        except ValueError as error:  # OptionError is one
            raise OptionError(
                f"{path}:{number}: {line.strip()!r}: expected OP LAYOUT MxKxN ({error})"
            ) from error
    return found


class Kernels(Area):
    """Benchmark ``ptxgen bench kernels``: every kernel that can solve a problem, fastest first and
    wrong ones last.
    """

    name = "kernels"
    about = (
        "Times every kernel that a problem admits, each forced, fastest first; the "
        "arrow marks the dispatcher's choice. ratio = torch.mm / kernel."
    )
    row = KernelTime
    columns = (
        *(("", "arrow"), ("route", "route"), ("kernel", "kernel"), ("µs", "us:.1f")),
        *(("q1", "q1_us:.1f"), ("q3", "q3_us:.1f"), ("slower", "slowdown:.2f")),
        *(("ratio", "ratio:.2f"), ("of limit", "share:.0%"), ("", "wrong")),
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("op", nargs="?", metavar="OP", help=", ".join(OPERATIONS))
        parser.add_argument(
            "layout", nargs="?", metavar="LAYOUT", help="kn or nk; nn .. tt of matmul"
        )
        parser.add_argument("sizes", nargs="*", metavar="MxKxN", help="such as 16x4096x4096")
        add_kind(parser)
        parser.add_argument("--grid", type=Path, metavar="FILE", help="a problem a line, as above")
        same = "the cases of `ptxgen bench gemm --shapes SET`"
        add_list(parser, "--shapes", same, metavar="SET")
        parser.add_argument(
            "--top", type=int, metavar="COUNT", help="lines per problem (all; of several: 3)"
        )
        arguments.add_seed(parser)

    def cases(self) -> list[Case]:
        options = self.options
        given = (options.op, options.grid, options.shapes)
        if sum(x is not None for x in given) != 1 or (options.op and not options.sizes):
            raise OptionError("takes one of OP LAYOUT MxKxN, --grid FILE and --shapes SET")
        if options.grid:
            found = read_grid(options.grid)
        elif options.shapes:
            found = select(options.shapes, dtype=options.dtype, tier=options.tier)
        else:
            found = [_case(options.op, options.layout, options.sizes)]
        self.tier = tier_of(options.dtype, options.tier)
        return [replace(c, group=CUSTOM, dtype=options.dtype, tier=self.tier) for c in found]

    def kernels(self, case: Case) -> Iterator[KernelSpec]:
        arch, *_ = measure.target()
        for route in ROUTES[case.table]:
            if all(each.runs_on(arch) for each in route.kernels):
                yield from route.kernels

    def rows(self, case: Case) -> list[KernelTime]:
        """Times every kernel of ``case``; one whose bits differ is not timed, and its row has the
        error.
        """
        torch, product = self.torch, case.product
        operands = measure.Operands(torch, product, self.seed, case.dtype)
        arch, sms, _ = measure.target()
        a, b = (measure.alignment(t) for t in operands.stored(case.layout))
        s, how = case.shape, {"dtype": case.dtype, "tier": case.tier, "layout": case.stored}
        # Without gpu=, explain() answers for any GPU of the architecture.
        found = explain(case.op, s.m, s.n, s.k, **how, arch=arch, sms=sms, align=(a, b))
        assert isinstance(found, Explanation), "a product is no composition"
        admitted = {c.name: c.route for c in reversed(found.candidates) if c.correct}
        # The operands and the oracle's bits depend on these values, and not on the layout.
        key = product, found.values["CHUNK"], case.dtype, case.tier
        oracle = self.cached(
            key, lambda: measure.Oracle(operands, key[1], self.seed, *key[2:], arch)
        )
        out = operands.empty()
        forced = partial(measure.ours, case, operands, out)
        work, wrong = measure.run_and_compare(
            torch, admitted, forced, out, partial(oracle.check, str(case))
        )
        peer = partial(torch.mm, *operands.views(case.layout), out=out)
        samples = self._samples([peer, *work.values()])
        timed = dict(zip(work, samples[1:], strict=True))
        nothing = Sample(math.nan, math.nan, math.nan, 0)
        best = min((s.median for s in timed.values()), default=math.nan)
        chosen, floor = measure.chosen(case, (a, b)).name, results.floor(case, self.limits).us

        def result(name: str) -> KernelTime:
            sample = timed.get(name, nothing)
            fields: tuple[Any, ...] = (
                *(case.op, case.stored, case.dtype, case.tier, s.m, s.n, s.k),
                *(admitted[name], name, *astuple(sample), sample.median / best, name == chosen),
                *(samples[0].median, samples[0].median / sample.median, floor),
                wrong.get(name, ""),
            )
            return KernelTime(*fields)

        return [result(name) for name in (*sorted(timed, key=lambda n: timed[n].median), *wrong)]

    def _samples(self, work: Sequence[measure.Work]) -> list[Sample]:
        """Times each call once, then repeats the first one (the peer) and those within
        :data:`HOPELESS` times the fastest; returns the statistics of all.
        """
        first = self.timer(work, [1] * len(work), warmup=1)
        best = min((s.median for s in first[1:]), default=0.0)
        near = [i for i, s in enumerate(first) if i == 0 or s.median <= HOPELESS * best]
        most = 3 if self.options.quick else REPETITIONS
        counts = [measure.repetitions(best, 40.0, 3, most)] * len(near)
        again = dict(zip(near, self.timer([work[i] for i in near], counts, 1), strict=True))
        return [again.get(i, once) for i, once in enumerate(first)]

    def show(self, rows: Sequence[KernelTime], runs: Sequence[Environment]) -> None:
        problems = dict.fromkeys(t.problem for t in rows)
        top = self.options.top or (3 if len(problems) > 1 else None)
        for problem in problems:
            found = [t for t in rows if t.problem == problem]
            best = found[0]
            chosen = next((t for t in found if t.chosen), best)
            emit(
                f"{problem}: torch.mm {best.peer_us:.1f} µs, "
                f"ratio of the best {best.ratio:.2f}, of the chosen {chosen.ratio:.2f}, floor "
                f"{best.floor_us:.1f} µs"
            )
            keep = [t for i, t in enumerate(found) if top is None or i < top or t.chosen or t.wrong]
            super().show(keep, runs)

    def status(self, rows: Sequence[KernelTime]) -> int:
        """Returns 1 unless every kernel returned the same bits, else 0."""
        return int(any(t.wrong for t in rows))


main, _parser = Kernels.main, Kernels.parser
