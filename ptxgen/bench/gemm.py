"""``ptxgen bench gemm``: matrix products and weight gradients against other libraries."""

from __future__ import annotations

import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ptxgen import arguments
from ptxgen.bench import bands, cases, draw, host, measure, results
from ptxgen.bench.cases import Case
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.peers import PEERS, Peer, discover
from ptxgen.bench.regret import measure_regret, serving
from ptxgen.bench.results import Best, Environment, Row, Sample
from ptxgen.bench.runner import Area, Timed, add_list, only_drawn
from ptxgen.bench.tune import GpuMeter
from ptxgen.errors import OptionError
from ptxgen.spec import KernelSpec
from ptxgen.tiles import SPECS
from ptxgen.ui import emit, note, plural


class Shared:
    """Operands, oracle (NumPy's bits) and first result of a product, which its cases in different
    memory layouts share.
    """

    def __init__(self, torch: Any, case: Case, seed: int) -> None:
        seed += zlib.crc32(f"{case.plan.name} {case.product}".encode())
        self.operands = measure.Operands(torch, case.product, seed, case.dtype)
        chunk, arch = case.plan.chunk_length(case.product[2]), measure.target()[0]
        self.oracle = measure.Oracle(self.operands, chunk, seed, case.dtype, case.tier, arch)
        self.first: Any = None


class Gemm(Area):
    """Benchmark ``ptxgen bench gemm``: matrix products and weight gradients, against ``torch.mm``
    and batch-invariant libraries (:mod:`ptxgen.bench.peers`).
    """

    name = "gemm"
    about = (
        "Times linear (NN, NT), matmul (TN) and linear_wgrad beside their peers, in "
        "one run, with a cold L2, after checking bits. ratio = peer time / our time. Results have "
        "the operands' dtype, as torch.mm's do; that of linear_wgrad is f32 unless out= says so."
    )
    row = Row
    kinds = draw.KINDS
    drawn = (
        "instead of --shapes, so many problems of each kind that --seed draws "
        "(ptxgen/bench/draw.py)"
    )

    @classmethod
    def read(cls, path: Path) -> tuple[list[Row], Environment]:
        return results.read_json(path)

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        cases.add_kind(parser)
        shapes = f"all, {', '.join(cases.GROUPS['simt'])}, or MxKxN; several with commas (all)"
        add_list(parser, "--shapes", shapes, metavar="SET")
        parser.add_argument(
            "--regret",
            action="store_true",
            help="time every kernel that serves a problem: the chosen one's time / the best one's",
        )
        how: dict[str, Any] = {"type": lambda text: arguments.some(text.upper())}
        what, usual = "of the product cases (NN,NT,TN)", [*cases.LAYOUTS]
        add_list(parser, "--layouts", what, default=usual, **how)
        parser.add_argument(
            "--op", choices=(*cases.OPS, "all"), default="all", help="(%(default)s)"
        )
        few = f"({','.join(PEERS)}; torch in a quick run, and with --random)"
        add_list(parser, "--peers", few, PEERS)
        parser.add_argument("--brief", action="store_true", help="no table of the cases")
        parser.add_argument("--host", action="store_true", help="only what a call costs the host")

    def cases(self) -> Sequence[Case]:
        options = self.options
        kind = {"dtype": options.dtype, "tier": options.tier}
        self.tier = cases.tier_of(**kind)
        if options.host:
            return ()
        if not only_drawn(options):
            if tuple(options.kinds) != self.kinds:
                raise OptionError("--kinds are of random problems: no --random")
            ops = cases.OPS if options.op == "all" else (options.op,)
            shapes = options.shapes or ["all"]
            return cases.select(shapes, options.layouts, ops, quick=options.quick, **kind)
        if options.op == "wgrad":
            raise OptionError("--random draws problems of linear and matmul: no --op wgrad")
        of = options.random, options.seed, options.layouts
        return draw.select(*of, **kind, kinds=options.kinds)

    def kernels(self, case: Case) -> Iterable[KernelSpec]:
        align = measure.natural_alignment(case)
        if not self.options.regret:
            return measure.chosen(case, align).kernels
        return (SPECS[name] for names in serving(case, align).values() for name in names)

    def check(self, case: Case) -> Timed:
        """Compares sampled outputs bit for bit with the oracle. All outputs are compared too: in
        the first layout of a product coarsely with torch's, in others bit for bit with the first's.

        Returns the calls to time. Raises WrongBitsError.
        """
        torch, k = self.torch, case.product[2]
        shared = self.shared(case)
        operands = shared.operands
        self.out = out = operands.empty(float("nan"))
        ours = measure.ours(case, operands, out)
        ours()
        self.checked = shared.oracle.check("ours", out)
        if shared.first is None:
            measure.compare(torch, "ours", out, torch.mm(*operands.views(case.layout)), k)
            shared.first = out
        elif not torch.equal(out, shared.first):
            differ = int((out != shared.first).sum())
            raise WrongBitsError(f"{differ} outputs have other bits than in another layout")
        self.served = {peer.name: (peer, work) for peer, work in self._served(case, operands, out)}
        return Timed(
            {"ours": ours, **{name: work for name, (_, work) in self.served.items()}},
            1.5 * results.floor(case, self.limits).us,
            # The other peers are several times slower, and have no targets for single groups.
            seldom=self.served.keys() - {results.GATE},
        )

    @cached_property
    def peers(self) -> list[Peer]:
        """The peers to time that are available on this machine: those requested, by default all (in
        quick and random runs ``torch.mm`` alone).
        """
        few = self.options.quick or self.options.random is not None
        found, missing = discover(self.options.peers or (PEERS if not few else [results.GATE]))
        for line in missing:
            note(line)
        return found

    @cached_property
    def regret_of(self) -> Callable[..., tuple[Best | None, dict[str, str]]]:
        """A function of (case, operands, out) that times all kernels of a case. It returns the
        fastest, with the regret of the chosen one, and the errors of wrong kernels.
        """
        return partial(measure_regret, GpuMeter(self.torch, self.seed), self.timer, self.effort)

    def shared(self, case: Case) -> Shared:
        """Returns operands and oracle of a case; consecutive cases of one product share them."""
        key = case.product, case.plan
        found: Shared = self.cached(key, lambda: Shared(self.torch, case, self.seed))
        return found

    def _served(
        self, case: Case, operands: measure.Operands, out: Any
    ) -> Iterator[tuple[Peer, measure.Work]]:
        """Yields each peer whose result for ``case`` is right, and its call."""
        for peer in list(self.peers):
            theirs = self.torch.full_like(out, float("nan"))
            try:
                work = peer.work(case, operands, theirs)
                if work is None:
                    continue
                work()
                self.torch.cuda.synchronize()
                measure.compare(self.torch, peer.name, theirs, out, case.product[2])
            except WrongBitsError as error:
                note(f"{case.layout} {case.shape}: {peer.name} left out: {error}")
                continue
            except Exception as error:  # a peer's own failure must not end our run
                if peer.name == results.GATE:
                    raise
                note(f"{peer.name} left out from here on: {type(error).__name__}: {error}")
                self.peers.remove(peer)
                continue
            yield peer, work

    def found(self, case: Case, times: Mapping[str, Sample]) -> Iterator[Row]:
        operands = self.shared(case).operands
        best = None
        if self.options.regret:
            best, failed = self.regret_of(case, operands, self.out)
            for name, why in failed.items():
                self.refuse(f"{case} {name}", why)
        a, b = (measure.alignment(t) for t in operands.stored(case.layout))
        kernel = " + ".join(measure.chosen(case, (a, b)).names)
        for peer, _ in self.served.values():
            theirs = (peer.name, peer.version), times[peer.name]
            yield results.row(case, kernel, times["ours"], *theirs, self.limits, self.checked, best)

    def close(self) -> None:
        if self.options.host or self.options.random is None:
            emit("\nhost cost of a call")
            costs = host.costs(self.torch, self.options.dtype)
            emit(results.columns(costs, host.Host.columns))

    def show(self, rows: Sequence[Row], runs: Sequence[Environment]) -> None:
        if not self.options.brief:
            emit()
            emit(results.case_table(rows))
        drawn = [r for r in rows if r.group in draw.KINDS]
        if named := [r for r in rows if r.group not in draw.KINDS]:
            gated = [r for r in named if r.peer == results.GATE]
            emit()
            emit(results.summary_table(results.summarise(gated, by_layout=True)))
            emit()
            emit(results.summary_table(results.summarise(named)))
        for peer in dict.fromkeys(r.peer for r in drawn):
            seeds = ", ".join(str(each.seed) for each in runs)
            theirs = [r for r in drawn if r.peer == peer]
            _print_spread(f"{peer} time / ours, seed {seeds}", theirs, bands.RATIO)
        if timed := bands.with_regret(rows):
            _print_spread("chosen kernel's time / the best one's", timed, bands.REGRET)


def _print_spread(what: str, rows: Sequence[Row], measure: bands.Measure) -> None:
    emit(f"\n{what}, {plural(len(rows), 'problem')}")
    emit(bands.spread_table(rows, measure))
    emit("\nthe worst of them")
    emit(bands.worst_table(rows, measure))


main, _parser = Gemm.main, Gemm.parser
