"""``ptxgen bench quantized``: products with quantized weights against dense products and
bitsandbytes.
"""

from __future__ import annotations

import importlib
import math
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import bands, cases, measure, results
from ptxgen.bench.cases import Shape
from ptxgen.bench.measure import Work, WrongBitsError
from ptxgen.bench.quantized_cases import (
    BANDS,
    BITSANDBYTES,
    FORMER,
    GROUPS,
    OPS,
    PEAK,
    QuantizedCase,
    band_of,
    cap,
    drawn,
    select,
)
from ptxgen.bench.quantized_weights import random_weight
from ptxgen.bench.results import GATE, Environment, Row, Sample, Summary
from ptxgen.bench.runner import QUICK, Area, Timed, add_list, only_drawn
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import AUTO_TIER, DTYPES
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.ops.bitsandbytes import to_bitsandbytes
from ptxgen.quantized import QuantizedWeight, dequantize
from ptxgen.spec import KernelSpec
from ptxgen.ui import emit, note, table

ACCUMULATE = {"tc": ("bf16", "f16"), "simt": ("f32",), "f64": ("f32",)}
"""Dtypes of x for each value of the option ``accumulate``; the first is the default."""
CHECKED = 8
"""Number of rows and of columns at each end that are compared with the oracle (f64 accumulation).
"""


@dataclass(frozen=True)
class QuantizedRow(Row):
    """Times of ptxgen and of one peer on a product with a quantized weight of a ``format``, in µs.

    Rows beside cuBLAS have ``empty_us``, the time of an empty launch, and for few rows ``cap``, a
    bound of the speed-up (:func:`ptxgen.bench.quantized_cases.cap`).
    """

    format: str = NF4.name
    empty_us: float | None = None
    cap: float | None = None

    @property
    def reached(self) -> float | None:
        """Share of the cap that the speed-up reaches, without an empty launch in both times."""
        if self.cap is None or self.empty_us is None:
            return None
        ours, theirs = (without(self.empty_us, us) for us in (self.ours_us, self.peer_us))
        return theirs / ours / self.cap


def without(empty_us: float, us: float) -> float:
    """Returns the time ``us`` of a call without that of an empty launch, at least a tenth of it."""
    return max(us - empty_us, us / 10)


# -- peers ----------------------------------------------------------------------------------
class Weights:
    """A random weight of a format, prepared (``q``) and dequantized (``dense``), and the matrices
    ``x`` to multiply by it.

    The weight is dequantized before it is prepared, so that a comparison of products covers the
    preparation.
    """

    def __init__(
        self, torch: Any, shape: Shape, dtype: str, seed: int, format: str = NF4.name
    ) -> None:
        n, k = shape.n, shape.k
        random = torch.Generator(device="cuda").manual_seed(seed)
        on = {"device": "cuda", "generator": random}

        def integers(low: int, high: int, count: int, dtype: str) -> Any:
            return torch.randint(low, high, (count,), dtype=getattr(torch, dtype), **on)

        stored = random_weight(format_named(format), n, k, integers)
        self.kind = measure.torch_dtype(torch, dtype)
        self.q = stored.prepared()
        self.dense = dequantize(stored, self.kind)
        self.x = {
            op: torch.randn((shape.m, size), dtype=self.kind, **on)
            for op, size in (("linear", k), ("linear_dgrad", n))
        }

    def empty(self, case: QuantizedCase) -> Any:
        """Returns memory for a case's result, filled with NaN."""
        return self.dense.new_full(case.product[:2], float("nan"))

    def ours(self, op: str, out: Any, accumulate: str, kernel: str | None = None) -> Work:
        """Returns ptxgen's call of ``op`` that writes the product to ``out``, by the route named
        ``kernel`` if given.
        """
        call = getattr(ptxgen.quantized, op)
        how = {"accumulate": accumulate, "kernel": kernel}
        return partial(call, self.x[op], self.q, out=out, **how)


def _torch(torch: Any, weights: Weights, op: str, out: Any) -> Work:
    right = weights.dense.T if op == "linear" else weights.dense
    return partial(torch.mm, weights.x[op], right, out=out)


def _bitsandbytes(torch: Any, weights: Weights, op: str, out: Any) -> Work:
    """Returns bitsandbytes' call: ``Linear4bit``, or its backward product without autograd."""
    package = importlib.import_module("bitsandbytes")
    param = to_bitsandbytes(weights.q, weights.kind)
    x, q = weights.x[op], weights.q
    if op == "linear_dgrad":
        decode = importlib.import_module("bitsandbytes.functional").dequantize_4bit
        return lambda: torch.mm(x, decode(param.data, param.quant_state), out=out)
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
class QuantizedProducts(Area):
    """Benchmark ``ptxgen bench quantized``: products with quantized weights, against cuBLAS with
    the dequantized weight, and for NF4 bitsandbytes.
    """

    name = "quantized"
    about = (
        "Times quantized.linear and quantized.linear_dgrad of prepared weights beside cuBLAS with "
        "the dequantized weight and, for NF4, beside bitsandbytes, in one run, with a cold L2, "
        "after comparing all bits with the dense product's. ratio = peer time / our time. Sums in "
        "f64 are compared with the oracle, and their peer is the time that the FMA units need at "
        "the least."
    )
    row = QuantizedRow
    drawn = "instead of --shapes, so many for each format, that --seed draws"

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add_list(
            *(parser, "--format", "of the weight: nf4, int8_block_g128_f16, ... (nf4)"),
            default=[NF4.name],
        )
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

    def cases(self) -> list[QuantizedCase]:
        options = self.options
        self.tier, dtype = _kind(options.accumulate, options.dtype)
        ops = tuple(OPS) if options.op == "all" else (options.op,)
        formats = [format_named(name, "--format").name for name in options.format]
        if only_drawn(options):
            self.effort = QUICK
            return drawn(options.random, options.seed, ops, dtype, self.tier, formats)
        sets = options.shapes or tuple(GROUPS)
        return select(sets, ops, dtype, self.tier, formats=formats, quick=options.quick)

    def kernels(self, case: QuantizedCase) -> Iterator[KernelSpec]:
        same_bits = [case.dense] if case.tier != "f64" else []
        for each in (case, *same_bits):
            yield from measure.chosen(each, measure.natural_alignment(each)).kernels

    @cached_property
    def versions(self) -> dict[str, str]:
        """Versions of the peers that are installed, by name."""
        found = {}
        for name in self.options.peers:
            if name == BITSANDBYTES and NF4.name not in self.options.format:
                continue
            try:
                found[name] = str(importlib.import_module(name).__version__)
            except ImportError:
                note(f"{name}: not installed")
        return found

    @cached_property
    def empty_us(self) -> float:
        """Median time of an empty launch in this timing, µs."""
        (empty,) = self.timer([partial(self.torch.cuda._sleep, 0)], [QUICK[2]])
        return empty.median

    @cached_property
    def clock(self) -> float:
        """Clock of the SMs in GHz, by the driver."""
        rates = measure.rates()
        return rates.clock if rates else math.inf

    def check(self, case: QuantizedCase) -> Timed:
        shape, seed = case.shape, self.seed + zlib.crc32(str(case.shape).encode())
        how = self.torch, shape, case.dtype, seed, case.format
        weights = self.cached((shape, case.format), lambda: Weights(*how))
        out, self.checked = _checked(self.torch, case, weights)
        work = {"ours": weights.ours(case.op, out, case.tier)}
        for name in self.versions if case.tier != "f64" else ():
            if name == BITSANDBYTES and case.format != NF4.name:
                continue
            theirs = self.torch.full_like(out, float("nan"))
            run = PEERS[name](self.torch, weights, case.op, theirs)
            run()
            measure.compare(self.torch, name, theirs, out, case.product[2])
            work[name] = run
        return Timed(work, 1.5 * results.floor(case, self.limits).us)

    def found(self, case: QuantizedCase, times: Mapping[str, Sample]) -> Iterator[QuantizedRow]:
        limits = self.limits
        timed = [((n, self.versions[n]), t) for n, t in times.items() if n != "ours"]
        if case.tier == "f64":
            peak = 1e6 * case.flops / limits.flops
            timed = [((PEAK, limits.source), Sample(peak, peak, peak, 0))]
        kernel = " + ".join(measure.chosen(case, measure.natural_alignment(case)).names)
        for peer, theirs in timed:
            found = results.row(case, kernel, times["ours"], peer, theirs, limits, self.checked)
            own: dict[str, Any] = {"format": case.format}
            if peer[0] == GATE:
                dense_us = without(self.empty_us, theirs.median)
                own |= {"empty_us": self.empty_us, "cap": cap(case, dense_us, self.clock)}
            yield QuantizedRow(**asdict(found), **own)

    def show(self, rows: Sequence[QuantizedRow], runs: Sequence[Environment]) -> None:
        for format in dict.fromkeys(r.format for r in rows):
            own = [r for r in rows if r.format == format]
            named = [r for r in own if r.group != cases.RANDOM]
            if named or not self.options.brief:
                emit(f"\n{format}")
            if not self.options.brief:
                emit(results.case_table(own))
            if named:
                emit(results.summary_table(summarise(named)))
        seeds = ", ".join(str(each.seed) for each in runs)
        for peer in dict.fromkeys(r.peer for r in rows):
            emit(f"\n{peer} time / ours, seed {seeds}")
            emit(band_table([r for r in rows if r.peer == peer]))


def _checked(torch: Any, case: QuantizedCase, weights: Weights) -> tuple[Any, int]:
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


def _sampled(case: QuantizedCase, q: Any, x: Any, out: Any) -> int:
    """Compares sampled outputs in ``out``, the product of ``x`` and the weight ``q``, with the
    oracle (f64 accumulation); returns their number.

    Sampled are the first and last :data:`CHECKED` rows and columns; for ``linear_dgrad`` instead
    the columns of the first block. Raises WrongBitsError.
    """
    row, forward = q.format, case.op == "linear"
    pick = [*range(CHECKED), *range(-CHECKED, 0)]
    rows = sorted({i % case.shape.m for i in pick})
    columns = sorted({i % q.n for i in pick}) if forward else list(range(row.unit))
    n, k = (len(columns), q.k) if forward else (q.n, row.unit)
    arrays = {}
    for name, size in row.sizes(k).items():  # formats of f64 have no other arrays
        array = getattr(q, name).reshape(q.n, -1)[:, :size].cpu().numpy()
        arrays[name] = (array[columns] if forward else array).copy()
    part = QuantizedWeight(row, **arrays, shape=(n, k))
    oracle = getattr(ptxgen.reference, f"quantized_{case.op}")
    expected = oracle(x[rows].cpu().numpy(), part, accumulate="f64")
    got = out[rows][:, columns].cpu().numpy()
    if (got != expected).any():
        raise WrongBitsError(f"{(got != expected).sum()} of {got.size} outputs differ")
    return int(got.size)


def band_table(found: Sequence[QuantizedRow]) -> str:
    """Returns a table with a line for each format, operation and band of rows: statistics of the
    speed-up, and the geometric means of the cap and of the share of it that is reached.
    """
    parts: dict[tuple[str, str, str], list[QuantizedRow]] = {}
    for r in sorted(found, key=lambda r: r.m):
        for band in (band_of(r.m), bands.ALL):
            parts.setdefault((r.format, r.op, band), []).append(r)
    formats, ops = ([*dict.fromkeys(getattr(r, n) for r in found)] for n in ("format", "op"))
    order = [*BANDS, band_of(math.inf), bands.ALL]
    lines = []
    for format, op, band in sorted(
        parts, key=lambda p: (formats.index(p[0]), ops.index(p[1]), order.index(p[2]))
    ):
        members = parts[format, op, band]
        spread = bands.Spread.of([(r.ratio, r.shape) for r in members])
        capped = [(r.cap, r.reached) for r in members if r.cap and r.reached]
        shares: tuple[str | None, ...] = (None, None)
        if len(capped) == len(members):
            of_cap, reached = (results.geomean(each) for each in zip(*capped, strict=True))
            shares = f"{of_cap:.2f}", f"{100 * reached:.0f}%"
        figures = (f"{x:.3f}" for x in (spread.geomean, spread.tail, spread.worst))
        lines.append((format, op, band, spread.cases, *figures, spread.worst_at, *shares))
    heads = "format", "operation", "M", "cases", "geomean", *bands.RATIO.names, "at (M x K x N)"
    return table(lines, (*heads, "cap", "reached"))


def summarise(found: Sequence[QuantizedRow]) -> list[Summary]:
    """Returns a summary for each group, peer and layout, which differs between ``linear`` and its
    gradient. NF4 has targets, in the tiers tc and f64.
    """
    parts: dict[tuple[str, str, str], list[QuantizedRow]] = {}
    for r in found:
        parts.setdefault((r.group, r.peer, r.layout), []).append(r)
    summaries = []
    for names, members in parts.items():
        group, peer, _ = names
        group_targets = {}
        held = members[0].format == NF4.name and members[0].tier != "simt"
        if held and (known := group.removeprefix(FORMER)) in GROUPS:
            group_targets = GROUPS[known].targets
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


main, _parser = QuantizedProducts.main, QuantizedProducts.parser
