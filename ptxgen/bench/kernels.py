"""``ptxgen bench kernels``: every kernel that a problem admits, forced one by one.

For looking into one problem; what times are predicted by comes from ``ptxgen tune``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxgen import arguments
from ptxgen.bench import measure, results
from ptxgen.bench.cases import CUSTOM, Case, Shape, select, tier_of
from ptxgen.bench.results import Sample
from ptxgen.dispatch.explain import Explanation
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.numerics.contract import DTYPES, OPERATIONS, TIERS
from ptxgen.ui import emit, note, plural, table

REPETITIONS = 7
"""Timings of each kernel that is worth more than one."""
HOPELESS = 2.0
"""A kernel that takes this many times the fastest one's time is timed once."""

Problem = tuple[str, str, int, int, int]
"""Operation, layout, and the operation's own M, N, K."""

_oracles: dict[tuple[tuple[int, int, int], int, int, str, str], measure.Oracle] = {}


@dataclass(frozen=True)
class KernelTime:
    """One route of a problem's table, forced."""

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
    wrong: str  # what was wrong with the result; empty


def time_kernels(
    op: str,
    layout: str,
    m: int,
    n: int,
    k: int,
    *,
    dtype: str = "f32",
    tier: str = "auto",
    repetitions: int = REPETITIONS,
    seed: int = 0,
    timer: measure.Timer | None = None,
) -> list[KernelTime]:
    """Times every kernel that serves a problem, fastest first.

    ``op`` and ``layout`` as in ``contract.OPERATIONS``; ``m``, ``n``, ``k`` the operation's
    own. All results must have the same bits; one that has others is marked, not hidden.
    """
    from ptxgen.ops.explaining import explain

    torch = measure.require_torch()
    tier = tier_of(dtype, tier)
    case = _case((op, layout, m, n, k), dtype, tier)
    operands = measure.Operands(torch, case.product, seed, dtype)
    timer = timer or measure.Timer(torch)
    arch, sms, _ = measure.target()
    a, b = (measure.alignment(t) for t in operands.stored(case.layout))
    found = explain(  # of the table for any GPU, which has every kernel
        op, m, n, k, dtype=dtype, tier=tier, layout=layout, arch=arch, sms=sms, align=(a, b)
    )
    assert isinstance(found, Explanation), "a product is no composition"
    admitted = {c.name: c.route for c in reversed(found.candidates) if c.correct}
    chosen = measure.chosen(case, (a, b)).name

    # What decides the numbers, whatever the layout.
    chunk = found.values["CHUNK"]
    key = (case.product, chunk, seed, dtype, tier)
    if key not in _oracles:
        _oracles[key] = measure.Oracle(operands, chunk, seed, dtype, tier, arch)
    out = operands.empty()
    expected = None
    wrong: dict[str, str] = {}
    for name in admitted:
        try:
            got = _run(torch, measure.ours(case, operands, out, name), out)
            _oracles[key].check(f"{op} {layout} M={m} N={n} K={k}", got)
            expected = got.clone() if expected is None else expected
            if not torch.equal(got, expected):
                wrong[name] = f"{int((got != expected).sum())} outputs have other bits"
        except PtxgenError as error:
            wrong[name] = str(error)
    right = [name for name in admitted if name not in wrong]
    work = [measure.ours(case, operands, out, name) for name in right]
    samples = _samples(timer, [_mm(torch, case, operands, out), *work], repetitions)
    peer, mine = samples[0], dict(zip(right, samples[1:], strict=True))
    best = min((s.median for s in mine.values()), default=float("nan"))
    floor = results.floor(case, measure.limits(torch, tier)).us
    nothing = Sample(float("nan"), float("nan"), float("nan"), 0)

    def result(name: str) -> KernelTime:
        sample = mine.get(name, nothing)
        return KernelTime(
            op=op,
            layout=layout,
            dtype=dtype,
            tier=tier,
            m=m,
            n=n,
            k=k,
            route=admitted[name],
            kernel=name,
            us=sample.median,
            q1_us=sample.q1,
            q3_us=sample.q3,
            count=sample.count,
            slowdown=sample.median / best,
            chosen=name == chosen,
            peer_us=peer.median,
            ratio=peer.median / sample.median,
            floor_us=floor,
            wrong=wrong.get(name, ""),
        )

    right.sort(key=lambda name: mine[name].median)
    return [result(name) for name in (*right, *wrong)]


def _case(problem: Problem, dtype: str = "f32", tier: str = "simt") -> Case:
    op, layout, m, n, k = problem
    if op not in OPERATIONS:
        raise OptionError(f"operation {op!r}: expected one of {', '.join(OPERATIONS)}")
    known = OPERATIONS[op].products
    if layout not in known:
        raise OptionError(f"layout {layout!r} of {op}: expected one of {', '.join(known)}")
    if min(m, n, k) < 1:
        raise OptionError(f"{op} M={m} N={n} K={k}: sizes are at least 1")
    return Case(CUSTOM, op, layout, Shape(m, k, n), dtype, tier)


def _run(torch: Any, work: measure.Work, out: Any) -> Any:
    out.fill_(float("nan"))
    work()
    torch.cuda.synchronize()
    return out


def _mm(torch: Any, case: Case, operands: measure.Operands, out: Any) -> measure.Work:
    a, b = operands.views(case.layout)
    return lambda: torch.mm(a, b, out=out)


def _samples(timer: measure.Timer, work: Sequence[measure.Work], most: int) -> list[Sample]:
    """All once, then those within reach of the fastest of ours, and the peer, often."""
    first = timer(work, [1] * len(work), warmup=1)
    best = min((s.median for s in first[1:]), default=0.0)
    near = [i for i, s in enumerate(first) if i == 0 or s.median <= HOPELESS * best]
    count = measure.repetitions(best, 40.0, 3, most)
    again = dict(zip(near, timer([work[i] for i in near], [count] * len(near), 1), strict=True))
    return [again.get(i, once) for i, once in enumerate(first)]


def time_table(times: Sequence[KernelTime]) -> str:
    """One line per kernel."""
    lines = [
        (
            "->" if t.chosen else "",
            t.route,
            t.kernel,
            f"{t.us:.1f}",
            f"{t.q1_us:.1f}",
            f"{t.q3_us:.1f}",
            f"{t.slowdown:.2f}",
            f"{t.ratio:.2f}",
            f"{100 * t.floor_us / t.us:.0f}%",
            t.wrong,
        )
        for t in times
    ]
    header = ("", "route", "kernel", "µs", "q1", "q3", "slower", "ratio", "of limit", "")
    return table(lines, header)


def read_grid(path: Path) -> list[Problem]:
    """Problems from a file: ``OP LAYOUT MxKxN`` a line, # for comments. Raises OptionError."""
    problems: list[Problem] = []
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
            problem = _problem(op, layout, sizes)
            _case(problem)
        except ValueError as error:  # OptionError is one
            raise OptionError(
                f"{path}:{number}: {line.strip()!r}: expected OP LAYOUT MxKxN ({error})"
            ) from error
        problems.append(problem)
    return problems


def _problem(op: str, layout: str, words: Sequence[str]) -> Problem:
    m, k, n = arguments.sizes(arguments.numbers(words, ("M", "N", "K")))
    return op, layout, m, n, k


def _text(problem: Problem) -> str:
    """A problem as a grid's line has it."""
    op, layout, m, n, k = problem
    return f"{op} {layout} {m}x{k}x{n}"


def of_cases(cases: Iterable[Case]) -> list[Problem]:
    """The problems of benchmark cases."""
    return [(c.op, c.stored, c.shape.m, c.shape.n, c.shape.k) for c in cases]


def main(argv: Sequence[str] | None = None) -> int:
    """The command. 0 if every kernel returned the same bits, 1 if not."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    given = (options.op, options.grid, options.shapes)
    if sum(x is not None for x in given) != 1 or (options.op and not options.sizes):
        raise OptionError("takes one of OP LAYOUT MxKxN, --grid FILE and --shapes SET")
    if options.grid:
        problems = read_grid(options.grid)
    elif options.shapes:
        sets = options.shapes.split(",")
        problems = of_cases(select(sets, dtype=options.dtype, tier=options.tier))
    else:
        problems = [_problem(options.op, options.layout, options.sizes)]
    return _run_all(problems, options.top or (3 if options.op is None else None), options)


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench kernels",
        description="Times every kernel that a problem admits, each forced, fastest first; the "
        "arrow marks the dispatcher's choice. ratio = torch.mm / kernel.",
    )
    parser.add_argument("op", nargs="?", metavar="OP", help=", ".join(OPERATIONS))
    parser.add_argument("layout", nargs="?", metavar="LAYOUT", help="kn or nk; nn .. tt of matmul")
    parser.add_argument("sizes", nargs="*", metavar="MxKxN", help="such as 16x4096x4096")
    parser.add_argument(
        "--dtype",
        type=arguments.dtype,
        choices=tuple(DTYPES.values()),
        default="f32",
        help="(%(default)s)",
    )
    parser.add_argument("--tier", choices=("auto", *TIERS), default="auto", help="(%(default)s)")
    parser.add_argument("--grid", type=Path, metavar="FILE", help="a problem a line, as above")
    parser.add_argument(
        "--shapes", metavar="SET", help="the cases of `ptxgen bench gemm --shapes SET`"
    )
    arguments.add_rows(parser)
    parser.add_argument(
        "--top", type=int, metavar="COUNT", help="lines per problem (all; of several: 3)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the operands (%(default)s)")
    return parser


def _run_all(problems: Iterable[Problem], top: int | None, options: argparse.Namespace) -> int:
    from ptxgen.tiles import ROUTES

    problems = list(problems)
    dtype, tier = options.dtype, tier_of(options.dtype, options.tier)
    cases = [_case(problem, dtype, tier) for problem in problems]
    torch = measure.require_torch()
    arch, *_ = measure.target()
    tables = dict.fromkeys(case.table for case in cases)
    kernels = dict.fromkeys(
        kernel.name
        for key in tables
        for route in ROUTES[key]
        for kernel in route.kernels
        if all(each.runs_on(arch) for each in route.kernels)
    )
    seconds = measure.precompile(list(kernels))
    note(f"{plural(len(kernels), 'kernel')} ready in {seconds:.1f} s")
    measure.warm_up(torch)
    surroundings = measure.environment(torch, measure.limits(torch, tier), options.seed)
    timer = measure.Timer(torch)
    times: list[KernelTime] = []
    start = time.monotonic()
    try:
        for problem in problems:
            found = time_kernels(*problem, dtype=dtype, tier=tier, seed=options.seed, timer=timer)
            times += found
            best = found[0]
            chosen = next((t for t in found if t.chosen), best)
            emit(
                f"{_text(problem)}: torch.mm {best.peer_us:.1f} µs, "
                f"ratio of the best {best.ratio:.2f}, of the chosen {chosen.ratio:.2f}, floor "
                f"{best.floor_us:.1f} µs"
            )
            keep = [t for i, t in enumerate(found) if top is None or i < top or t.chosen or t.wrong]
            emit(time_table(keep))
    finally:
        if times:
            results.keep(options, results.records(times, surroundings))
    note(f"{plural(len(problems), 'problem')} in {time.monotonic() - start:.1f} s")
    return 1 if any(t.wrong for t in times) else 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except PtxgenError as error:
        raise SystemExit(f"error: {error}") from error
