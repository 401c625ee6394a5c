"""``ptxgen bench nf4``: products with NF4 weights against dense products and bitsandbytes."""

from __future__ import annotations

import importlib
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import bands, cases, draw, measure, results
from ptxgen.bench.cases import Case, Shape
from ptxgen.bench.measure import Work, WrongBitsError
from ptxgen.bench.results import Environment, Row, Sample, Summary
from ptxgen.bench.runner import QUICK, Area, Timed, only_drawn
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import AUTO_TIER, DTYPES
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.ops.explaining import problem_of
from ptxgen.spec import SCRATCH_MAX, KernelSpec, Problem
from ptxgen.ui import emit, note

ACCUMULATE = {"tc": ("bf16", "f16"), "simt": ("f32",), "f64": ("f32",)}
"""Dtypes of x for each value of the option ``accumulate``; the first is the default."""
OPS = {"linear": "linear", "dgrad": "linear_dgrad"}
"""Operations that are timed: the dense library operation, by name on the command line."""
WEIGHTS = (
    *((2560, 2560), (2560, 640), (2560, 6912), (6912, 2560)),
    *((4096, 14336), (14336, 4096)),
)
"""Pairs (K, N) of weights of the named shapes, from the layers of two models."""
GATE, BITSANDBYTES, PEAK = "torch", "bitsandbytes", "FMA peak"
"""Peers: cuBLAS with the dequantized weight; bitsandbytes; and, for f64 accumulation, which neither
of them has, the time of the multiplications at the FMA units' peak.
"""
CHECKED = 8
"""Number of rows and of columns at each end that are compared with the oracle (f64 accumulation).
"""


@dataclass(frozen=True)
class Group:
    """Values of M (``rows``) that share targets.

    ``targets``: by peer, minimum geometric mean and minimum single value of peer time / ptxgen time
    (None: no target).
    """

    rows: tuple[int, ...]
    targets: dict[str, tuple[float | None, float | None]]


GROUPS = {
    "nf4-decode": Group((1, 2, 4, 8, 16, 32), {GATE: (1.4, None), BITSANDBYTES: (None, 1.0)}),
    "nf4-rows": Group((1024, 4096), {GATE: (0.9, None), PEAK: (None, 0.5)}),
}
"""Groups of named shapes: each of their ``rows`` with each of :data:`WEIGHTS`."""


@dataclass(frozen=True)
class Nf4Case(Case):
    """A product with an NF4 weight.

    ``op`` and ``stored``: operation and operand layout of the same product with a dequantized
    weight; ``tier``: the call's option ``accumulate``.
    """

    def __str__(self) -> str:
        return f"nf4 {super().__str__()}"

    def problem(self, align: tuple[int, int]) -> Problem:
        """Returns the problem that the dispatcher is called with; ``align``: operands' byte
        alignments.
        """
        sizes = self.shape.m, self.shape.n, self.shape.k
        how = {"accumulate": self.tier, "format": NF4.name}
        return problem_of(f"quantized_{self.op}", sizes, self.dtype, align, how)

    @property
    def dense(self) -> Case:
        """Dense product with the dequantized weight. Its result has the same bits, except with
        f64 accumulation.
        """
        return Case(self.group, self.op, self.stored, self.shape, self.dtype, self.tier)

    @property
    def bytes(self) -> int:
        """Least memory traffic in bytes: 4-bit weight, f32 scales, x and the result."""
        s = self.shape
        return s.n * s.k // 2 + 4 * s.n * s.k // NF4.block + self.itemsize * s.m * (s.k + s.n)


def select(
    sets: Sequence[str], ops: Sequence[str], dtype: str, accumulate: str, *, quick: bool = False
) -> list[Nf4Case]:
    """Returns the cases of ``sets``, which are names of :data:`GROUPS` or shapes MxKxN.

    ``ops``: keys of :data:`OPS`; ``quick``: whether to take only every third M of a group. Raises
    OptionError for malformed shapes, and if K is no multiple of an NF4 block.
    """
    found: list[tuple[str, Shape]] = []
    for name in sets:
        if name in GROUPS:
            few = GROUPS[name].rows[:: 3 if quick else 1]
            found += [(name, s) for s in cases.shapes_of(few, WEIGHTS)]
        else:
            found.append((cases.CUSTOM, cases.shape_of(name, GROUPS)))
    for _, shape in found:
        if shape.k % NF4.block:
            raise OptionError(f"shape {shape} has K = {shape.k}; takes a multiple of {NF4.block}")
    return [Nf4Case(g, OPS[op], "nk", s, dtype, accumulate) for g, s in found for op in ops]


def drawn(count: int, seed: int, ops: Sequence[str], dtype: str, accumulate: str) -> list[Nf4Case]:
    """Returns the first ``count`` random problems, with K rounded to whole NF4 blocks."""
    itemsize = ITEMSIZE[dtype]
    found: list[Shape] = []
    more = count
    while len(found) < count:  # a longer draw begins with a shorter one
        more *= 2
        whole = (
            Shape(s.m, max(NF4.block * round(s.k / NF4.block), NF4.block), s.n)
            for s in draw.shapes(more, seed, dtype)
        )
        fit = (s for s in whole if s.k * s.n * itemsize <= SCRATCH_MAX)
        found = [s for s in fit if draw.admitted(s, itemsize)][:count]
    return [Nf4Case(cases.RANDOM, OPS[op], "nk", s, dtype, accumulate) for s in found for op in ops]


# -- peers ----------------------------------------------------------------------------------
class Weights:
    """A random weight, quantized and dequantized, and the matrices ``x`` to multiply by it.

    4-bit codes are uniform, as they nearly are for normally distributed weights.
    """

    def __init__(self, torch: Any, shape: Shape, dtype: str, seed: int) -> None:
        n, k = shape.n, shape.k
        random = torch.Generator(device="cuda").manual_seed(seed)
        on = {"device": "cuda", "generator": random}
        data = torch.randint(0, 256, (n * k // 2,), dtype=torch.uint8, **on)
        scales = torch.rand(n * k // NF4.block, **on) + 1
        self.kind = measure.torch_dtype(torch, dtype)
        self.q = ptxgen.nf4.Weight(data, scales, n, k)
        self.dense = ptxgen.nf4.dequantize(self.q, self.kind)
        self.x = {
            op: torch.randn((shape.m, size), dtype=self.kind, **on)
            for op, size in (("linear", k), ("linear_dgrad", n))
        }

    def empty(self, case: Nf4Case) -> Any:
        """Returns memory for a case's result, filled with NaN."""
        return self.dense.new_full(case.product[:2], float("nan"))

    def ours(self, op: str, out: Any, accumulate: str, kernel: str | None = None) -> Work:
        """Returns ptxgen's call of ``op`` that writes the product to ``out``, by the route named
        ``kernel`` if given.
        """
        call = getattr(ptxgen.nf4, op)
        how = {"accumulate": accumulate, "kernel": kernel}
        return partial(call, self.x[op], self.q, out=out, **how)


def _torch(torch: Any, weights: Weights, op: str, out: Any) -> Work:
    right = weights.dense.T if op == "linear" else weights.dense
    return partial(torch.mm, weights.x[op], right, out=out)


def _bitsandbytes(torch: Any, weights: Weights, op: str, out: Any) -> Work:
    """Returns bitsandbytes' call: ``Linear4bit``, or its backward product without autograd."""
    package = importlib.import_module("bitsandbytes")
    param = ptxgen.nf4.to_bitsandbytes(weights.q, weights.kind)
    x, q = weights.x[op], weights.q
    if op == "linear_dgrad":
        dequantize = importlib.import_module("bitsandbytes.functional").dequantize_4bit
        return lambda: torch.mm(x, dequantize(param.data, param.quant_state), out=out)
    layer = package.nn.Linear4bit(
        q.k, q.n, bias=False, compute_dtype=weights.kind, quant_type="nf4", device="meta"
    )
    layer.weight = param

    def run() -> Any:
        with torch.no_grad():
            return layer(x)

    out.copy_(run())  # once for the comparison; timed calls allocate their results
    return run


PEERS: dict[str, Callable[..., Work]] = {GATE: _torch, BITSANDBYTES: _bitsandbytes}


# -- the run --------------------------------------------------------------------------------
class Nf4(Area):
    """Benchmark ``ptxgen bench nf4``: products with NF4 weights, against cuBLAS with the
    dequantized weight, and bitsandbytes.
    """

    name = "nf4"
    about = (
        "Times nf4.linear and nf4.linear_dgrad beside cuBLAS with the dequantized "
        "weight and beside bitsandbytes, in one run, with a cold L2, after comparing all bits with "
        "the dense product's. ratio = peer time / our time. Sums in f64 are compared with the "
        "oracle, and their peer is the time that the FMA units need at the least."
    )
    row = Row
    drawn = "instead of --shapes, so many that --seed draws"

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--accumulate", choices=("auto", *ACCUMULATE), default="auto", help="(%(default)s)"
        )
        known = [d for d in DTYPES.values() if d != "f64"]
        what = "of x and the result (bf16 for tc, f32 for simt and f64)"
        arguments.add_dtype(parser, known, default=None, help=what)
        parser.add_argument("--op", choices=(*OPS, "all"), default="all", help="(%(default)s)")
        parser.add_argument(
            "--shapes",
            type=arguments.some,
            metavar="LIST",
            help=f"{', '.join(GROUPS)}, or MxKxN; several with commas (all)",
        )
        parser.add_argument(
            "--peers",
            type=arguments.words(*PEERS),
            metavar="LIST",
            default=[*PEERS],
            help=f"({','.join(PEERS)})",
        )
        parser.add_argument("--brief", action="store_true", help="no table of the cases")

    def cases(self) -> list[Nf4Case]:
        options = self.options
        self.tier, dtype = _kind(options.accumulate, options.dtype)
        ops = tuple(OPS) if options.op == "all" else (options.op,)
        if only_drawn(options):
            self.effort = QUICK
            return drawn(options.random, options.seed, ops, dtype, self.tier)
        sets = options.shapes or tuple(GROUPS)
        return select(sets, ops, dtype, self.tier, quick=options.quick)

    def kernels(self, case: Nf4Case) -> Iterator[KernelSpec]:
        same_bits = [case.dense] if case.tier != "f64" else []
        for each in (case, *same_bits):
            yield from measure.chosen(each, measure.natural_alignment(each)).kernels

    @cached_property
    def versions(self) -> dict[str, str]:
        """Versions of the peers that are installed, by name."""
        found = {}
        for name in self.options.peers:
            try:
                found[name] = str(importlib.import_module(name).__version__)
            except ImportError:
                note(f"{name}: not installed")
        return found

    def check(self, case: Nf4Case) -> Timed:
        shape, seed = case.shape, self.seed + zlib.crc32(str(case.shape).encode())
        weights = self.cached(shape, lambda: Weights(self.torch, shape, case.dtype, seed))
        out, self.checked = _checked(self.torch, case, weights)
        work = {"ours": weights.ours(case.op, out, case.tier)}
        for name in self.versions if case.tier != "f64" else ():
            theirs = self.torch.full_like(out, float("nan"))
            run = PEERS[name](self.torch, weights, case.op, theirs)
            run()
            measure.compare(self.torch, name, theirs, out, case.product[2])
            work[name] = run
        return Timed(work, 1.5 * results.floor(case, self.limits).us)

    def found(self, case: Nf4Case, times: Mapping[str, Sample]) -> Iterator[Row]:
        limits = self.limits
        timed = [((n, self.versions[n]), t) for n, t in times.items() if n != "ours"]
        if case.tier == "f64":
            peak = 1e6 * case.flops / limits.flops
            timed = [((PEAK, limits.source), Sample(peak, peak, peak, 0))]
        kernel = " + ".join(measure.chosen(case, measure.natural_alignment(case)).names)
        for peer, theirs in timed:
            yield results.row(case, kernel, times["ours"], peer, theirs, limits, self.checked)

    def show(self, rows: Sequence[Row], runs: Sequence[Environment]) -> None:
        if not self.options.brief:
            emit()
            emit(results.case_table(rows))
        if named := [r for r in rows if r.group != cases.RANDOM]:
            emit()
            emit(results.summary_table(summarise(named)))
        by_peer = {r.peer: [s for s in rows if s.peer == r.peer] for r in rows}
        seeds = ", ".join(str(each.seed) for each in runs)
        for peer, members in by_peer.items():
            emit(f"\n{peer} time / ours (NT: linear, NN: linear_dgrad), seed {seeds}")
            emit(bands.spread_table(members, bands.RATIO))


def _checked(torch: Any, case: Nf4Case, weights: Weights) -> tuple[Any, int]:
    """Runs ptxgen's product and checks its bits; returns the result and the number of outputs that
    were checked.

    All outputs are compared with those of the product with the dequantized weight; with f64
    accumulation, some are compared with the oracle instead. Raises WrongBitsError.
    """
    x, q = weights.x[case.op], weights.q
    m, n, _ = case.product
    out = weights.empty(case)
    weights.ours(case.op, out, case.tier)()
    if case.tier == "f64":
        return out, _sampled(case, q, x, out)
    expected = getattr(ptxgen, case.op)(x, weights.dense, layout="nk", tier=case.tier)
    if not torch.equal(out, expected):
        differ = int((out != expected).sum())
        raise WrongBitsError(
            f"{differ} of {out.numel()} outputs have other bits than with the dequantized weight"
        )
    return out, m * n


def _sampled(case: Nf4Case, q: Any, x: Any, out: Any) -> int:
    """Compares sampled outputs in ``out``, the product of ``x`` and the NF4 weight ``q``, with the
    oracle (f64 accumulation); returns their number.

    Sampled are the first and last :data:`CHECKED` rows and columns; for ``linear_dgrad`` instead
    the columns of the first NF4 block. Raises WrongBitsError.
    """
    data, scales = (array.cpu().numpy() for array in q.operands[:2])
    forward = case.op == "linear"
    pick = [*range(CHECKED), *range(-CHECKED, 0)]
    rows = sorted({i % case.shape.m for i in pick})
    if forward:
        columns = sorted({i % q.n for i in pick})
        data, scales, k = data[columns], scales[columns], q.k
    else:  # whole blocks
        columns, k = list(range(NF4.block)), NF4.block
        data, scales = data[:, : NF4.block // 2], scales[:, :1]
    part = ptxgen.nf4.Weight(
        data.reshape(-1).copy(), scales.reshape(-1).copy(), len(columns) if forward else q.n, k
    )
    oracle = getattr(ptxgen.reference, f"nf4_{case.op}")
    expected = oracle(x[rows].cpu().numpy(), part, accumulate="f64")
    got = out[rows][:, columns].cpu().numpy()
    if (got != expected).any():
        raise WrongBitsError(f"{(got != expected).sum()} of {got.size} outputs differ")
    return int(got.size)


def summarise(found: Sequence[Row]) -> list[Summary]:
    """Returns a summary for each group, peer and layout, which differs between ``linear`` and its
    gradient. Tiers tc and f64 have targets.
    """
    parts: dict[tuple[str, str, str], list[Row]] = {}
    for r in found:
        parts.setdefault((r.group, r.peer, r.layout), []).append(r)
    summaries = []
    for names, members in parts.items():
        group, peer, _ = names
        group_targets = (
            GROUPS[group].targets if group in GROUPS and members[0].tier != "simt" else {}
        )
        targets = group_targets.get(peer, (None, None))
        summaries.append(results.summary(members, names, targets, at="op"))
    return summaries


def _kind(accumulate: str, dtype: str | None) -> tuple[str, str]:
    """Returns ``accumulate`` and dtype, with defaults in place of "auto" and None.

    Raises OptionError for a dtype that ``accumulate`` does not take.
    """
    if accumulate == "auto":
        accumulate = AUTO_TIER[dtype or "bf16"]
    taken = ACCUMULATE[accumulate]
    if dtype is not None and dtype not in taken:
        raise OptionError(f"--accumulate {accumulate} takes --dtype {' or '.join(taken)}")
    return accumulate, dtype or taken[0]


main, _parser = Nf4.main, Nf4.parser
