"""``ptxgen bench gemm``: the GEMM triad beside its peers."""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from ptxgen import arguments
from ptxgen.bench import bands, cases, draw, host, measure, results
from ptxgen.bench.cases import Case
from ptxgen.bench.kernels import time_kernels
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.peers import Peer, discover
from ptxgen.bench.regret import Judge, serving
from ptxgen.bench.results import Best, Row
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.numerics.contract import AUTO_TIER, DTYPES, TIERS
from ptxgen.ui import emit, note, plural

__all__ = ["main", "run", "time_kernels"]

ALL_PEERS = "torch,triton,sgemm_bi"
SAVE_S = 15.0
"""Rows are written at least so often, so that an interruption loses little."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command. 0 if every result was right, whatever the times; 1 if not."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    selected = _selected(options)
    few = options.quick or options.random is not None
    peers_wanted = options.peers or (["torch"] if few else ALL_PEERS.split(","))
    if options.plot:
        from ptxgen.bench import plots

        plots.require()  # before the run, not after it
    if options.rows:
        rows, surroundings = results.read_json(options.rows)
        _print(rows, surroundings, brief=options.brief)
        if options.plot:
            _plot(rows, surroundings, options.plot)
        return 0
    torch = measure.require_torch()
    begin = time.monotonic()
    if options.host:
        _print_host(torch, options.dtype)
        return 0
    peers, missing = discover(peers_wanted)
    for line in missing:
        note(line)
    names = dict.fromkeys(name for case in selected for name in _kernels(case, options.regret))
    seconds = measure.precompile(list(names))
    note(f"{plural(len(names), 'kernel')} ready in {seconds:.1f} s")

    measure.warm_up(torch)
    tier = cases.tier_of(options.dtype, options.tier)
    surroundings = measure.environment(torch, measure.limits(torch, tier), options.seed)
    rows = []
    wrong: list[str] = []
    bench = _Bench(torch, peers, surroundings, quick=options.quick, regret=options.regret)
    saved = time.monotonic()
    try:
        for group, members in groupby(selected, key=lambda case: case.group):
            start = time.monotonic()
            timed = list(members)
            for found in bench.rows(timed, wrong):
                rows.append(found)
                if options.save and time.monotonic() - saved > SAVE_S:
                    results.write_json(options.save, rows, surroundings)
                    saved = time.monotonic()
                    note(f"{plural(len(rows), 'row')} in {options.save}")
            note(f"{group}: {plural(len(timed), 'case')} in {time.monotonic() - start:.1f} s")
    finally:
        if rows:
            results.keep(options, results.records(rows, surroundings))
            _print(rows, surroundings, brief=options.brief)
    if options.random is None:
        _print_host(torch, options.dtype)
    if options.plot and rows:
        _plot(rows, surroundings, options.plot)
    emit(f"{plural(len(selected), 'case')} in {time.monotonic() - begin:.0f} s")
    for line in wrong:
        emit(f"WRONG {line}")
    return 1 if wrong else 0


def run(
    selected: Sequence[Case], peers: Sequence[Peer], *, seed: int = 0, quick: bool = False
) -> list[Row]:
    """Checks and times ``selected`` beside ``peers``; raises WrongBitsError at a wrong result."""
    torch = measure.require_torch()
    tier = selected[0].tier if selected else "simt"
    surroundings = measure.environment(torch, measure.limits(torch, tier), seed)
    return list(_Bench(torch, peers, surroundings, quick=quick).rows(selected, None))


def _selected(options: argparse.Namespace) -> list[Case]:
    """The cases that are asked for, named or drawn. Raises OptionError."""
    kind = {"dtype": options.dtype, "tier": options.tier}
    if options.random is None:
        ops = cases.OPS if options.op == "all" else (options.op,)
        shapes = options.shapes or ["all"]
        return cases.select(shapes, options.layouts, ops, quick=options.quick, **kind)
    if options.shapes or options.op == "wgrad":
        raise OptionError(
            "--random draws problems of linear and matmul: no --shapes, no --op wgrad"
        )
    return draw.select(options.random, options.seed, options.layouts, **kind)


def _kernels(case: Case, every: bool) -> Iterable[str]:
    """The kernels that will be timed: the chosen, or every one that serves the case."""
    align = measure.natural_alignment(case)
    return chain(*serving(case, align).values()) if every else measure.chosen(case, align).names


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench gemm",
        description="Times linear (NN, NT), matmul (TN) and linear_wgrad beside their peers, in "
        "one run, with a cold L2, after checking bits. ratio = peer time / our time. Results have "
        "the operands' dtype, as torch.mm's do; that of linear_wgrad is f32 unless out= says so.",
    )
    parser.add_argument(
        "--dtype",
        type=arguments.dtype,
        choices=tuple(DTYPES.values()),
        default="f32",
        help="of operands and results (%(default)s)",
    )
    parser.add_argument(
        "--tier",
        choices=("auto", *TIERS),
        default="auto",
        help="simt or tc (auto: tc for 16 bits, simt for f32)",
    )
    parser.add_argument(
        "--shapes",
        type=_list,
        default=None,
        metavar="SET",
        help=f"all, {', '.join(cases.GROUPS['simt'])}, or MxKxN; several with commas (all)",
    )
    parser.add_argument(
        "--random",
        type=int,
        metavar="COUNT",
        help="instead of --shapes, so many problems that --seed draws (ptxgen/bench/draw.py)",
    )
    parser.add_argument(
        "--regret",
        action="store_true",
        help="time every kernel that serves a problem too: the chosen one's time / the best one's",
    )
    parser.add_argument(
        "--layouts",
        type=lambda text: [name.upper() for name in _list(text)],
        default=list(cases.LAYOUTS),
        metavar="LIST",
        help="of the product cases (NN,NT,TN)",
    )
    parser.add_argument("--op", choices=(*cases.OPS, "all"), default="all", help="(%(default)s)")
    parser.add_argument(
        "--peers",
        type=_list,
        default=None,
        metavar="LIST",
        help=f"({ALL_PEERS}; torch in a quick run, and with --random)",
    )
    arguments.add_rows(parser)
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="FILE",
        help="time nothing: print and plot an earlier run's rows",
    )
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write ratio plots here")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and repetitions")
    parser.add_argument("--brief", action="store_true", help="no table of the cases")
    parser.add_argument("--host", action="store_true", help="only what a call costs the host")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the draw and of the operands (%(default)s)"
    )
    return parser


def _list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _name(case: Case) -> str:
    return f"{case.op} {case.stored} {case.shape} (M x K x N) {case.dtype} {case.tier}"


class _Bench:
    """Checks and times cases, the layouts of a shape on the same numbers."""

    def __init__(
        self,
        torch: Any,
        peers: Sequence[Peer],
        surroundings: results.Environment,
        *,
        quick: bool,
        regret: bool = False,
    ) -> None:
        self._torch, self._peers, self._seed = torch, list(peers), surroundings.seed
        self._limits = results.Limits(
            surroundings.bandwidth_limit, surroundings.flops_limit, surroundings.limits_source
        )
        # Milliseconds for each of ours and the peers, and bounds on their repetitions.
        self._effort = (8.0, 3, 9) if quick else (80.0, 7, 51)
        self._timer = measure.Timer(torch)
        self._judge = Judge(torch, self._timer, self._effort, self._seed) if regret else None

    def rows(self, selected: Sequence[Case], wrong: list[str] | None) -> Iterator[Row]:
        """Rows of ``selected``; wrong results go to ``wrong``, or are raised where it is None."""
        for (product, plan), members in groupby(selected, key=lambda c: (c.product, c.plan)):
            same = list(members)
            seed = self._seed + zlib.crc32(f"{plan.name} {product}".encode())
            dtype, tier = same[0].dtype, same[0].tier
            operands = measure.Operands(self._torch, product, seed, dtype)
            chunk = plan.chunk_length(product[2])
            oracle = measure.Oracle(operands, chunk, seed, dtype, tier, measure.target()[0])
            first: Any = None
            for case in same:
                try:
                    out, checked = self._check(case, operands, oracle, first)
                except PtxgenError as error:  # wrong bits, or a kernel that cannot be built
                    if wrong is None:
                        raise
                    wrong.append(str(error))
                    note(f"not timed: {error}")
                    continue
                first = out if first is None else first
                best = self._best(case, operands, out, wrong)
                yield from self._time(case, operands, out, checked, best)

    def _check(
        self, case: Case, operands: measure.Operands, oracle: measure.Oracle, first: Any
    ) -> tuple[Any, int]:
        """Our result, right in the sampled bits, roughly right everywhere, equal to ``first``."""
        torch = self._torch
        k = case.product[2]
        what = _name(case)
        out = operands.empty(float("nan"))
        measure.ours(case, operands, out)()
        checked = oracle.check(what, out)
        if first is not None and not torch.equal(out, first):
            differ = int((out != first).sum())
            raise WrongBitsError(f"{what}: {differ} outputs have other bits than in another layout")
        if first is None:
            measure.compare(torch, what, out, torch.mm(*operands.views(case.layout)), k)
        return out, checked

    def _best(
        self, case: Case, operands: measure.Operands, out: Any, wrong: list[str] | None
    ) -> Best | None:
        """The best kernel, if that was asked for; what is wrong with others, as in ``rows``."""
        if self._judge is None:
            return None
        best, failed = self._judge(case, operands, out)
        for name, why in failed.items():
            line = f"{_name(case)} {name}: {why}"
            if wrong is None:
                raise WrongBitsError(line)
            wrong.append(line)
            note(f"not timed: {line}")
        return best

    def _time(
        self,
        case: Case,
        operands: measure.Operands,
        out: Any,
        checked: int,
        best: Best | None,
    ) -> Iterator[Row]:
        torch = self._torch
        served = []
        for peer in list(self._peers):
            theirs = torch.full_like(out, float("nan"))
            try:
                work = peer.work(case, operands, theirs)
                if work is None:
                    continue
                work()
                torch.cuda.synchronize()
                measure.compare(torch, peer.name, theirs, out, case.product[2])
            except WrongBitsError as error:
                note(f"{case.layout} {case.shape}: {peer.name} left out: {error}")
                continue
            except Exception as error:  # a peer's own failure must not end our run
                if peer.name == results.GATE:
                    raise
                note(f"{peer.name} left out from here on: {type(error).__name__}: {error}")
                self._peers.remove(peer)
                continue
            served.append((peer, work))
        budget, least, most = self._effort
        expected = 1.5 * results.floor(case, self._limits).us
        count = measure.repetitions(expected, budget, least, most)
        # The other peers are several times slower, and nothing is asked of us there.
        counts = [count if p.name == results.GATE else max(3, count // 4) for p, _ in served]
        mine, *others = self._timer(
            [measure.ours(case, operands, out), *(work for _, work in served)], [count, *counts]
        )
        align = tuple(measure.alignment(t) for t in operands.stored(case.layout))
        kernel = " + ".join(measure.chosen(case, (align[0], align[1])).names)
        for (peer, _), theirs in zip(served, others, strict=True):
            yield results.row(
                case, kernel, mine, (peer.name, peer.version), theirs, self._limits, checked, best
            )


def _print(rows: Sequence[Row], surroundings: results.Environment, *, brief: bool) -> None:
    emit(results.heading(surroundings))
    if not brief:
        emit()
        emit(results.case_table(rows))
    drawn = [r for r in rows if r.group == cases.RANDOM]
    named = [r for r in rows if r.group != cases.RANDOM]
    if named:
        gated = [r for r in named if r.peer == results.GATE]
        emit()
        emit(results.summary_table(results.summarise(gated, by_layout=True)))
        emit()
        emit(results.summary_table(results.summarise(named)))
    for peer in dict.fromkeys(r.peer for r in drawn):
        _print_spread(
            f"{peer} time / ours, seed {surroundings.seed}",
            [r for r in drawn if r.peer == peer],
            bands.RATIO,
        )
    if judged := bands.judged(rows):
        _print_spread("chosen kernel's time / the best one's", judged, bands.REGRET)


def _print_spread(what: str, rows: Sequence[Row], measure: bands.Measure) -> None:
    emit(f"\n{what}, {plural(len(rows), 'problem')}")
    emit(bands.spread_table(rows, measure))
    emit("\nthe worst of them")
    emit(bands.worst_table(rows, measure))


def _print_host(torch: Any, dtype: str) -> None:
    emit("\nhost cost of a call")
    emit(host.cost_table(host.costs(torch, dtype)))


def _plot(rows: Sequence[Row], surroundings: results.Environment, directory: Path) -> None:
    from ptxgen.bench import plots

    dtype, tier = rows[0].dtype, rows[0].tier
    what = dtype if tier == AUTO_TIER[dtype] else f"{dtype}-{tier}"

    def write(plot: Callable[..., None], rows: Sequence[Row], name: str) -> None:
        if rows:
            plot(rows, surroundings, directory / f"{name}.png")
            emit(f"wrote {directory / name}.png")

    for peer in dict.fromkeys(r.peer for r in rows):
        theirs = [r for r in rows if r.peer == peer]
        drawn = [r for r in theirs if r.group == cases.RANDOM]
        named = [r for r in theirs if r.group != cases.RANDOM]
        write(plots.ratios, named, f"gemm-{what}-{peer}")
        write(plots.scatter, drawn, f"random-{what}-{peer}")
    write(plots.regrets, bands.judged(rows), f"regret-{what}")


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except PtxgenError as error:
        raise SystemExit(f"error: {error}") from error
