"""``ptxgen bench attention``: beside cuDNN, FlashAttention-2 and compiled flex_attention.

The first two are those of PyTorch's ``scaled_dot_product_attention``; keys in pages are ours alone,
and the peers' lie together. A peer that raises is left out of the problem, and counted.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import attention_cases, bands, measure, results
from ptxgen.bench.attention_cases import KINDS, NAMED, TRAINING, Case
from ptxgen.bench.measure import Work, WrongBitsError
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.ops import OPERATIONS
from ptxgen.program.launch import question
from ptxgen.program.operation import lowering
from ptxgen.runtime import default_device
from ptxgen.spec import KernelSpec
from ptxgen.tiles import TABLES
from ptxgen.ui import emit, note, plural, table

BACKENDS = {"cudnn": "CUDNN_ATTENTION", "fa2": "FLASH_ATTENTION"}
"""Of scaled_dot_product_attention."""
FLEX = "flex"
PEERS = (*BACKENDS, FLEX)
FASTER = "faster"
"""Of those in :data:`BACKENDS`."""
BUDGET_S = 300.0
SAVE_S = 15.0
"""Rows are written at least so often, so that an interruption loses little."""
WIDE = 128
"""The largest head dimension of those that are summed up apart."""


@dataclass(frozen=True)
class Row:
    """A problem: times, µs (None: left out), ours with quartiles, and why peers are left out."""

    group: str  # "named" or "random"
    kind: str
    shape: str
    dtype: str
    sequences: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    depth: int
    causal: bool
    page: int
    kernel: str
    ours_us: float
    ours_q1_us: float
    ours_q3_us: float
    ours_count: int
    cudnn_us: float | None
    fa2_us: float | None
    flex_us: float | None
    refused: str

    def time_of(self, peer: str) -> float | None:
        """The peer's time."""
        if peer == FASTER:
            return min((us for us in map(self.time_of, BACKENDS) if us), default=None)
        us: float | None = getattr(self, f"{peer}_us")
        return us

    def ratio(self, peer: str) -> float | None:
        """The peer's time over ours: above 1, ours is faster."""
        us = self.time_of(peer)
        return us and us / self.ours_us


# -- what is timed ----------------------------------------------------------------------------
class Operands:
    """Random operands of a case (``seed`` None: memory alone), and the calls that take them."""

    def __init__(self, torch: Any, case: Case, dtype: str, seed: int | None, device: str) -> None:
        self._torch, self.case, self._device = torch, case, device
        self._random = torch.Generator(device=device).manual_seed(seed or 0)
        options = {"device": device, "dtype": measure.torch_dtype(torch, dtype)}
        make = torch.empty if seed is None else partial(torch.randn, generator=self._random)
        of_queries = case.sequences, case.heads, case.queries, case.depth
        of_keys = case.sequences, case.kv_heads, case.keys, case.depth
        self.q, self.k, self.v = (make(s, **options) for s in (of_queries, of_keys, of_keys))
        if case.kind == TRAINING:
            self.do = make(of_queries, **options)
            for x in (self.q, self.k, self.v):
                x.requires_grad_()

    @cached_property
    def _how(self) -> dict[str, Any]:
        """What our call is told besides q, k and v."""
        torch, case = self._torch, self.case
        if not case.page:
            return {"causal": case.causal}
        integers = {"dtype": torch.int32, "device": self._device}
        count = case.sequences * -(-case.keys // case.page)
        pages = torch.randperm(count, generator=self._random, device=self._device).int()
        lengths = torch.full((case.sequences,), case.keys, **integers)
        return {"block_table": pages.view(case.sequences, -1), "lengths": lengths}

    @cached_property
    def _cache(self) -> tuple[Any, Any]:
        """Our keys and values: those of pages lie in any order."""
        if not self.case.page:
            return self.k, self.v
        return self._paged(self.k), self._paged(self.v)

    def _paged(self, x: Any) -> Any:
        places = self._how["block_table"].flatten().long()
        page, rows = self.case.page, len(places) // self.case.sequences
        apart = self._torch.nn.functional.pad(
            x.transpose(1, 2), (0, 0, 0, 0, 0, rows * page - self.case.keys)
        )
        pages = apart.reshape(-1, page, self.case.kv_heads, self.case.depth)
        return self._torch.empty_like(pages).index_copy_(0, places, pages)

    def ours(self) -> Work:
        """Our call."""
        if self.case.kind != TRAINING:
            return partial(ptxgen.attention, self.q, *self._cache, **self._how)
        from ptxgen.torch import attention

        return partial(self._trained, attention, **self._how)

    def _trained(self, call: Any, **how: Any) -> Any:
        found = call(self.q, self.k, self.v, **how)
        return self._torch.autograd.grad(found, (self.q, self.k, self.v), self.do)

    def peer(self, name: str) -> Work:
        """A peer's call."""
        shared = self.case.heads != self.case.kv_heads
        if name == FLEX:
            call, how = self._flex(), {"enable_gqa": shared, "block_mask": self._blocks()}
        else:
            call, how = self._sdpa(name), {"enable_gqa": shared, "is_causal": self.case.causal}
        if self.case.kind == TRAINING:
            return partial(self._trained, call, **how)
        return partial(call, self.q, self.k, self.v, **how)

    def _sdpa(self, name: str) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        backend = getattr(SDPBackend, BACKENDS[name])
        stock = self._torch.nn.functional.scaled_dot_product_attention

        def call(*operands: Any, **how: Any) -> Any:
            with sdpa_kernel(backend):
                return stock(*operands, **how)

        return call

    def _flex(self) -> Any:
        from torch.nn.attention.flex_attention import flex_attention

        self._torch._dynamo.reset()
        return self._torch.compile(flex_attention, dynamic=False)

    def _blocks(self) -> Any:
        from torch.nn.attention.flex_attention import create_block_mask

        if not self.case.causal:
            return None
        sizes = self.case.queries, self.case.keys
        return create_block_mask(lambda b, h, q, k: q >= k, None, None, *sizes, device=self._device)

    def kernels(self) -> dict[str, KernelSpec]:
        """The kernels of our call, by name, in order. Nothing is launched."""
        device = default_device()
        k, v = self._cache
        given = {"q": self.q, "k": k, "v": v, **self._how}
        calls = [("attention", given)]
        if self.case.kind == TRAINING:
            lse = self.q.new_empty(self.q.shape[:-1], dtype=self._torch.float32)
            arrays = {"do": self.do, "o": self.do, "lse": lse}
            calls = [
                ("attention", {**given, "return_lse": True}),
                ("attention_grad", {**given, **arrays}),
            ]
        found: dict[str, KernelSpec] = {}
        with self._torch.no_grad():
            for name, arguments in calls:
                for step in lowering(OPERATIONS[name], arguments)[1].program.steps:
                    choice = choose(step.problem.table, **question(step.problem, device))
                    route = TABLES[step.problem.table].route(choice.route, step.problem.dtype)
                    found |= {each.kernel.name: each.kernel for each in route.steps}
        return found


# -- the run ----------------------------------------------------------------------------------
class Bench:
    """Checks and times cases. What is wrong is said, kept in ``wrong``, and not timed."""

    def __init__(
        self,
        torch: Any,
        dtype: str,
        peers: Sequence[str],
        seed: int,
        *,
        quick: bool = False,
        device: str = "cuda",
    ) -> None:
        self._torch, self._peers, self._seed = torch, peers, seed
        self._dtype, self._device = dtype, device
        # Milliseconds for each of ours and the peers, and bounds on their repetitions.
        self._effort = (8.0, 3, 9) if quick else (60.0, 5, 31)
        self._timer = measure.Timer(torch)
        self.wrong: list[str] = []

    def _operands(self, case: Case, seed: int | None) -> Operands:
        return Operands(self._torch, case, self._dtype, seed, self._device)

    def prepare(self, cases: Sequence[Case]) -> None:
        """Compiles the kernels of all ``cases``."""
        found: dict[str, KernelSpec] = {}
        for case in cases:
            found |= self._operands(case, None).kernels()
        seconds = measure.build(list(found.values()))
        note(f"{plural(len(found), 'kernel')} ready in {seconds:.1f} s")

    def rows(self, cases: Sequence[Case], group: str, budget: float) -> Iterator[Row]:
        """The rows of ``cases``, until ``budget`` seconds are over."""
        one = partial(self._row, group=group)
        return measure.in_budget(self._torch, cases, one, budget, self.wrong)

    def _row(self, case: Case, group: str) -> Row:
        operands = self._operands(case, self._seed)
        ours = operands.ours()
        found = ours()
        work: dict[str, Work] = {}
        refused: dict[str, str] = {}
        for name in self._peers:
            if name == FLEX and group != "named":  # which takes seconds to compile
                continue
            try:
                call = operands.peer(name)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # which say why a backend takes it not
                    theirs = call()
            except Exception as error:  # a peer's own
                refused[name] = f"{type(error).__name__}: {error}".splitlines()[0][:100]
                continue
            if not work:
                compare(f"{case}, beside {name}", found, theirs)
            del theirs
            work[name] = call
        del found
        calls = [ours, *work.values()]
        flushes = self._timer.flushes(calls)
        count = measure.repetitions(case.expected_us + measure.FLUSH_US * flushes, *self._effort)
        mine, *others = self._timer(calls, [count] * len(calls), flushes=flushes)
        times = {name: sample.median for name, sample in zip(work, others, strict=True)}
        return Row(
            group=group,
            shape=case.shape,
            dtype=self._dtype,
            kernel=" + ".join(operands.kernels()),
            ours_us=mine.median,
            ours_q1_us=mine.q1,
            ours_q3_us=mine.q3,
            ours_count=mine.count,
            cudnn_us=times.get("cudnn"),
            fa2_us=times.get("fa2"),
            flex_us=times.get(FLEX),
            refused="; ".join(f"{name}: {why}" for name, why in refused.items()),
            **asdict(case),
        )


def compare(what: str, ours: Any, theirs: Any) -> None:
    """Both round weights and results to 16 bits: a coarse guard against nonsense."""
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    for a, b in pairs:
        scale = b.abs().max().item() or 1.0
        off = (a - b).abs().max().item() / scale
        if not off <= 2**-4:
            raise WrongBitsError(f"{what}: off by {off:.3g} of the largest")


# -- what is said -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Summary:
    """Ratios to a peer of a kind's problems, or of some."""

    kind: str
    part: str
    peer: str
    cases: int
    geomean: float
    tenth: float
    least: float
    least_at: str


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """Of each kind to the faster of cuDNN and FlashAttention-2, of all and in parts, and to each
    peer.
    """
    found = []
    for kind in (k for k in KINDS if any(r.kind == k for r in rows)):
        mine = [r for r in rows if r.kind == kind]
        parts = {
            f"d <= {WIDE}": [r for r in mine if r.depth <= WIDE],
            f"d > {WIDE}": [r for r in mine if r.depth > WIDE],
            "causal": [r for r in mine if r.causal],
            "full": [r for r in mine if not r.causal],
        }
        asked = [("all", FASTER, mine)]
        asked += [(part, FASTER, some) for part, some in parts.items() if len(some) < len(mine)]
        asked += [("all", peer, mine) for peer in PEERS]
        for part, peer, some in asked:
            ratios = [(x, r.shape) for r in some if (x := r.ratio(peer)) is not None]
            if ratios:
                found.append(_summary(kind, part, peer, ratios))
    return found


def _summary(kind: str, part: str, peer: str, ratios: Sequence[tuple[float, str]]) -> Summary:
    values = [ratio for ratio, _ in ratios]
    mean, tenth = results.geomean(values), bands.quantile(values, 0.1)
    return Summary(kind, part, peer, len(ratios), mean, tenth, *min(ratios))


def summary_table(rows: Sequence[Row]) -> str:
    """One line per summary."""
    lines = [
        (*(s.kind, s.part, s.peer, s.cases), *map("{:.3f}".format, (s.geomean, s.tenth, s.least)),
         s.least_at)
        for s in summarise(rows)
    ]  # fmt: skip
    return table(lines, ("kind", "problems", "beside", "cases", "geomean", "P10", "least", "at"))


def case_table(rows: Sequence[Row]) -> str:
    """One line per row: times, and ratios to the faster of both peers and to each other."""
    peers = [p for p in PEERS if any(r.time_of(p) is not None for r in rows)]

    def shown(value: float | None, digits: int) -> str | None:
        return None if value is None else f"{value:.{digits}f}"

    lines = [
        [r.kind, r.shape, shown(r.ours_us, 1)]
        + [shown(r.time_of(p), 1) for p in peers]
        + [shown(r.ratio(p), 2) for p in (FASTER, *peers)]
        + [r.kernel]
        for r in rows
    ]
    header = ["kind", "shape", "ours µs", *(f"{p} µs" for p in peers)]
    return table(lines, [*header, *(f"/ {p}" for p in (FASTER, *peers)), "kernel"])


def left_out(rows: Sequence[Row]) -> list[str]:
    """What each peer refused, and the first reason."""
    lines = []
    for peer in PEERS:
        those = [
            (r, why) for r in rows for why in r.refused.split("; ") if why.startswith(f"{peer}: ")
        ]
        if those:
            row, why = those[0]
            lines.append(f"{plural(len(those), 'problem')} without {why} ({row.kind} {row.shape})")
    if alone := sum(r.time_of(FASTER) is None for r in rows):
        lines.append(f"{plural(alone, 'problem')} with none of {', '.join(BACKENDS)}")
    return lines


def worst(rows: Sequence[Row]) -> list[Row]:
    """Of each kind, those with the least ratios."""
    found = []
    for kind in KINDS:
        those = [r for r in rows if r.kind == kind and r.ratio(FASTER) is not None]
        found += sorted(those, key=lambda r: r.ratio(FASTER) or 0.0)[: bands.WORST]
    return found


def show(rows: Sequence[Row], *runs: results.Environment) -> None:
    """Prints runs as one: every named problem, and the worst of random ones."""
    for each in runs:
        emit(results.heading(each))
    seeds = f"{'seeds' if len(runs) > 1 else 'seed'} {', '.join(str(each.seed) for each in runs)}"
    for group in dict.fromkeys(r.group for r in rows):
        those = [r for r in rows if r.group == group]
        drawn = group != "named"
        what = f", {seeds}; the worst of each kind" if drawn else ""
        emit(f"\n{plural(len(those), f'{group} problem')}{what}")
        emit(case_table(worst(those) if drawn else those))
        emit("\npeers' time / ours")
        emit(summary_table(those))
        for line in left_out(those):
            emit(line)


def main(argv: Sequence[str] | None = None) -> int:
    """The command. 0 if every result was right, whatever the times; 1 if not."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    if options.rows:
        runs = [results.read_rows(Row, path, "attention") for path in options.rows]
        show([row for rows, _ in runs for row in rows], *(each for _, each in runs))
        return 0
    group = "named" if options.random is None else "random"
    if options.random is None:
        cases = attention_cases.select(options.shapes or NAMED, options.kinds)
    elif options.shapes:
        raise OptionError("--random draws problems: no --shapes")
    else:
        cases = attention_cases.drawn(options.random, options.seed, options.kinds)
    torch = measure.require_torch()
    if options.step:
        from ptxgen.bench import attention_step

        return attention_step.command(torch, options)
    bench = Bench(torch, options.dtype, options.peers, options.seed, quick=options.quick)
    bench.prepare(cases)
    measure.warm_up(torch)
    surroundings = measure.environment(torch, measure.limits(torch, "tc"), options.seed)
    rows: list[Row] = []
    saved = time.monotonic()
    try:
        for row in bench.rows(cases, group, options.budget):
            rows.append(row)
            if options.save and time.monotonic() - saved > SAVE_S:
                results.write_records(options.save, results.records(rows, surroundings))
                saved = time.monotonic()
    finally:
        if rows:
            results.keep(options, results.records(rows, surroundings))
            show(rows, surroundings)
    for line in bench.wrong:
        emit(f"WRONG {line}")
    return 1 if bench.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench attention",
        description="Times attention beside cuDNN, FlashAttention-2 (both PyTorch's) and compiled "
        "flex_attention, in one run, with a cold L2, after comparing results. ratio = peer time / "
        "our time; faster: of cuDNN and FlashAttention-2.",
    )
    parser.add_argument(
        "--dtype",
        type=arguments.dtype,
        choices=("bf16", "f16"),
        default="bf16",
        help="(%(default)s)",
    )
    parser.add_argument(
        "--kinds",
        type=arguments.words(*KINDS),
        default=KINDS,
        metavar="LIST",
        help=f"({','.join(KINDS)})",
    )
    parser.add_argument(
        "--shapes",
        type=_list,
        metavar="LIST",
        help="SEQUENCESxHEADS/KV_HEADSxQUERIESxKEYSxDEPTH, with c if causal, or pKEYS of pages: "
        f"{NAMED[0]}, {NAMED[-1]} (some of models)",
    )
    parser.add_argument(
        "--random",
        type=int,
        metavar="COUNT",
        help="instead of --shapes, so many problems of each kind that --seed draws "
        "(ptxgen/bench/attention_cases.py)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the draw and of the operands (%(default)s)"
    )
    parser.add_argument(
        "--peers",
        type=arguments.words(*PEERS),
        default=PEERS,
        metavar="LIST",
        help=f"({','.join(PEERS)}; {FLEX} is not timed with --random)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=BUDGET_S,
        metavar="SECONDS",
        help="begin no problem after so long; kinds take turns (%(default).0f)",
    )
    parser.add_argument(
        "--step",
        action="store_true",
        help="instead, a Llama of four layers, stock and in batch_invariant(): a training step, "
        "the forward pass, a token in a CUDA graph",
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    arguments.add_rows(parser)
    parser.add_argument(
        "--rows", type=Path, nargs="+", metavar="FILE", help="print earlier runs' rows together"
    )
    return parser


def _list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except PtxgenError as error:
        raise SystemExit(f"error: {error}") from error
