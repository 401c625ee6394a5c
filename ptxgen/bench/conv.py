"""``ptxgen bench conv``: convolutions and their gradients beside cuDNN.

cuDNN is asked through PyTorch, channels last, with ``benchmark=True`` and without TF32. Ours is
``channels_last``, so both read the same memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import bands, conv_cases, measure, results
from ptxgen.bench.attention import compare
from ptxgen.bench.conv_cases import DGRAD, GROUPED, KINDS, NAMED, WGRAD, Case
from ptxgen.bench.measure import Work, WrongBitsError
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.numerics.contract import ITEMSIZE
from ptxgen.ops import OPERATIONS
from ptxgen.program.launch import question
from ptxgen.program.operation import lowering
from ptxgen.runtime import default_device
from ptxgen.spec import KernelSpec
from ptxgen.tiles import TABLES
from ptxgen.ui import emit, note, plural, table

BUDGET_S = 300.0
WINDOWS = 64
"""Windows of a forward convolution whose bits are compared with those of ``linear``."""


@dataclass(frozen=True)
class Row:
    """A problem and its times, µs, ours with quartiles. ``steps``: what ours launches."""

    group: str  # "named" or "random"
    kind: str
    shape: str
    dtype: str
    batch: int
    size: int
    channels: int
    outputs: int
    taps: int
    stride: int
    steps: int
    kernel: str
    ours_us: float
    ours_q1_us: float
    ours_q3_us: float
    ours_count: int
    cudnn_us: float

    @property
    def ratio(self) -> float:
        """cuDNN's time over ours: above 1, ours is faster."""
        return self.cudnn_us / self.ours_us


# -- what is timed ----------------------------------------------------------------------------
class Operands:
    """Random operands of a case, and the calls that take them."""

    def __init__(self, torch: Any, case: Case, dtype: str, seed: int, device: str) -> None:
        self._torch, self.case = torch, case
        random = torch.Generator(device=device).manual_seed(seed)
        options = {
            "generator": random,
            "device": device,
            "dtype": measure.torch_dtype(torch, dtype),
        }
        sides = (case.size,) * case.rank
        taps = (case.taps,) * case.rank
        self.x = torch.randn((case.batch, *sides, case.channels), **options)
        each = case.channels // case.groups
        self.w = torch.randn((case.outputs, *taps, each), **options)
        self.dy: Any = None
        if case.kind in (DGRAD, WGRAD):
            sides = (case.along,) * case.rank
            self.dy = torch.randn((case.batch, *sides, case.outputs), **options)

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """Our operation, and what it is given."""
        case = self.case
        lies = {"stride": case.stride, "padding": case.padding, "groups": case.groups}
        how = {**lies, "layout": "channels_last"}
        if case.kind == DGRAD:
            return "conv_dgrad", {"dy": self.dy, "w": self.w, "image": case.size, **how}
        if case.kind == WGRAD:
            how["out_dtype"] = str(self.x.dtype).removeprefix("torch.")
            return "conv_wgrad", {"x": self.x, "dy": self.dy, "taps": case.taps, **how}
        return "conv", {"x": self.x, "w": self.w, **how}

    def ours(self) -> Work:
        """Our call."""
        name, given = self.arguments()
        return partial(getattr(ptxgen, name), **given)

    def peer(self) -> Work:
        """cuDNN's, of the same memory."""
        x, w, dy = (None if v is None else v.movedim(-1, 1) for v in (self.x, self.w, self.dy))
        case, rank = self.case, self.case.rank
        if case.kind not in (DGRAD, WGRAD):
            call = (self._torch.conv1d, self._torch.conv2d)[rank - 1]
            return partial(call, x, w, None, case.stride, case.padding, 1, case.groups)
        stock = self._torch.ops.aten.convolution_backward
        mask = [case.kind == DGRAD, case.kind == WGRAD, False]
        along = [[n] * rank for n in (case.stride, case.padding, 1)]
        lies = *along, False, [0] * rank, case.groups
        at = mask.index(True)
        return lambda: stock(dy, x, w, None, *lies, mask)[at]

    def check(self, ours: Any) -> None:
        """Ours beside cuDNN's, and of forward ones the bits of some windows."""
        theirs: Any = self.peer()()
        compare(f"{self.case}, beside cuDNN", ours, theirs.movedim(1, -1))
        if self.case.kind in (DGRAD, WGRAD, *GROUPED):
            return
        rows, places = self._windows(ours)
        w = self.w.reshape(self.case.outputs, -1)
        if not self._torch.equal(ptxgen.linear(rows, w, layout="nk"), places):
            raise WrongBitsError(f"{self.case}: windows have other bits than linear gives them")

    def _windows(self, y: Any) -> tuple[Any, Any]:
        """Some windows as rows, and what ours has there."""
        torch, case = self._torch, self.case
        random = torch.Generator(device=y.device).manual_seed(0)
        flat = y.reshape(-1, case.outputs)
        at = torch.randint(len(flat), (WINDOWS,), generator=random, device=y.device)
        wide = torch.nn.functional.pad(self.x, (0, 0, *(case.padding,) * 4))
        down, along = y.shape[1:3]
        n, p, q = at // (down * along), at // along % down, at % along
        taps = torch.arange(case.taps, device=y.device)
        i = (p * case.stride)[:, None, None] + taps[:, None]
        j = (q * case.stride)[:, None, None] + taps
        return wide[n[:, None, None], i, j].reshape(WINDOWS, -1), flat[at]

    def kernels(self) -> list[KernelSpec]:
        """The kernels of our call, in order. Nothing is launched."""
        device, (name, given) = default_device(), self.arguments()
        found: list[KernelSpec] = []
        for step in lowering(OPERATIONS[name], given)[1].program.steps:
            choice = choose(step.problem.table, **question(step.problem, device))
            route = TABLES[step.problem.table].route(choice.route, step.problem.dtype)
            found += (each.kernel for each in route.steps)
        return found


# -- the run ----------------------------------------------------------------------------------
class Bench:
    """Checks and times cases. What is wrong is said, kept in ``wrong``, and not timed."""

    def __init__(
        self, torch: Any, dtype: str, seed: int, *, quick: bool = False, device: str = "cuda"
    ) -> None:
        self._torch, self._dtype, self._seed, self._device = torch, dtype, seed, device
        self._effort = (8.0, 3, 9) if quick else (60.0, 5, 31)
        self._timer = measure.Timer(torch)
        self.wrong: list[str] = []
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False

    def prepare(self, cases: Sequence[Case]) -> None:
        """Compiles the kernels of all ``cases``."""
        found = {k.name: k for case in cases for k in self._operands(case).kernels()}
        seconds = measure.build(list(found.values()))
        note(f"{plural(len(found), 'kernel')} ready in {seconds:.1f} s")

    def _operands(self, case: Case) -> Operands:
        return Operands(self._torch, case, self._dtype, self._seed, self._device)

    def rows(self, cases: Sequence[Case], group: str, budget: float) -> Iterator[Row]:
        """The rows of ``cases``, until ``budget`` seconds are over."""
        one = partial(self._row, group=group)
        return measure.in_budget(self._torch, cases, one, budget, self.wrong)

    def _row(self, case: Case, group: str) -> Row:
        operands = self._operands(case)
        kernels = operands.kernels()
        operands.check(operands.ours()())
        calls = [operands.ours(), operands.peer()]
        flushes = self._timer.flushes(calls)
        expected = case.expected_us(ITEMSIZE[self._dtype])
        count = measure.repetitions(expected + measure.FLUSH_US * flushes, *self._effort)
        mine, theirs = self._timer(calls, [count] * 2, flushes=flushes)
        return Row(
            group=group,
            shape=case.shape,
            dtype=self._dtype,
            steps=len(kernels),
            kernel=" + ".join(dict.fromkeys(k.label for k in kernels)),
            ours_us=mine.median,
            ours_q1_us=mine.q1,
            ours_q3_us=mine.q3,
            ours_count=mine.count,
            cudnn_us=theirs.median,
            **asdict(case),
        )


# -- what is said -----------------------------------------------------------------------------
def summary_table(rows: Sequence[Row]) -> str:
    """cuDNN's time over ours: a line for each kind."""
    lines = []
    for kind in (k for k in KINDS if any(r.kind == k for r in rows)):
        mine = [r for r in rows if r.kind == kind]
        ratios = [r.ratio for r in mine]
        worst = min(mine, key=lambda r: r.ratio)
        values = results.geomean(ratios), bands.quantile(ratios, 0.1), worst.ratio
        lines.append((kind, len(mine), *map("{:.3f}".format, values), worst.shape))
    return table(lines, ("kind", "cases", "geomean", "P10", "least", "at"))


def case_table(rows: Sequence[Row]) -> str:
    """One line per row."""
    lines = [
        (*(r.kind, r.shape, f"{r.ours_us:.1f}", f"{r.cudnn_us:.1f}", f"{r.ratio:.2f}"),
         *(r.steps, r.kernel))
        for r in rows
    ]  # fmt: skip
    return table(lines, ("kind", "shape", "ours µs", "cuDNN µs", "ratio", "launches", "kernels"))


def show(rows: Sequence[Row], surroundings: results.Environment) -> None:
    """Prints a run."""
    emit(results.heading(surroundings))
    for group in dict.fromkeys(r.group for r in rows):
        those = [r for r in rows if r.group == group]
        emit(f"\n{plural(len(those), f'{group} problem')}, seed {surroundings.seed}")
        emit(case_table(those))
        emit("\ncuDNN's time / ours")
        emit(summary_table(those))


def main(argv: Sequence[str] | None = None) -> int:
    """The command. 0 if every result was right, whatever the times; 1 if not."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    if options.rows:
        show(*results.read_rows(Row, options.rows, "conv"))
        return 0
    if options.random is not None and options.shapes:
        raise OptionError("--random draws problems: no --shapes")
    group = "named" if options.random is None else "random"
    if options.random is None:
        cases = conv_cases.select(options.shapes or NAMED, options.kinds)
    else:
        cases = conv_cases.drawn(options.random, options.seed, options.kinds)
    torch = measure.require_torch()
    bench = Bench(torch, options.dtype, options.seed, quick=options.quick)
    bench.prepare(cases)
    measure.warm_up(torch)
    tier = "simt" if options.dtype == "f32" else "tc"
    surroundings = measure.environment(torch, measure.limits(torch, tier), options.seed)
    rows: list[Row] = []
    try:
        rows.extend(bench.rows(cases, group, options.budget))
    finally:
        if rows:
            results.keep(options, results.records(rows, surroundings))
            show(rows, surroundings)
    for line in bench.wrong:
        emit(f"WRONG {line}")
    return 1 if bench.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench conv",
        description="Times convolutions beside cuDNN (PyTorch's, channels last, benchmark=True, "
        "TF32 off), in one run, with a cold L2, after comparing results. ratio = cuDNN's time / "
        "our time.",
    )
    parser.add_argument(
        "--dtype",
        type=arguments.dtype,
        choices=("bf16", "f16", "f32"),
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
        help=f"BATCHxIMAGExCHANNELSxOUTPUTSrTAPSsSTRIDE: {NAMED[0]}, {NAMED[-1]} (some of models)",
    )
    parser.add_argument(
        "--random",
        type=int,
        metavar="COUNT",
        help="instead of --shapes, so many problems of each kind that --seed draws "
        "(ptxgen/bench/conv_cases.py)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the draw and of the operands (%(default)s)"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=BUDGET_S,
        metavar="SECONDS",
        help="begin no problem after so long; kinds take turns (%(default).0f)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    arguments.add_rows(parser)
    parser.add_argument("--rows", type=Path, metavar="FILE", help="print an earlier run's rows")
    return parser


def _list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except PtxgenError as error:
        raise SystemExit(f"error: {error}") from error
