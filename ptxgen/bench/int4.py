"""``ptxgen bench int4``: products of 4-bit integers beside cuBLASLt's of the unpacked ones."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ptxgen import arguments, int4, reference
from ptxgen.bench import draw, measure, plots, results
from ptxgen.bench.bands import quantile
from ptxgen.bench.cases import Shape, shapes_of
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.results import Environment, geomean
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError
from ptxgen.numerics.int4 import ELEMENTS, LAYOUTS
from ptxgen.ops import OPERATIONS
from ptxgen.program.launch import question
from ptxgen.program.operation import lowering
from ptxgen.runtime import default_device
from ptxgen.spec import Key
from ptxgen.ui import emit, note, table

WEIGHTS = ((4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192))
"""K and N."""
GROUPS = {
    "decode": shapes_of((1, 2, 4, 8, 16, 32), WEIGHTS),
    "64-512": shapes_of((64, 128, 256, 512), WEIGHTS),
    "1024-": shapes_of((1024, 2048, 4096, 8192), WEIGHTS),
}
PEER = "torch._int_mm"
PEER_ROWS = 32
"""The fewest that it takes."""
PEER_UNIT = 8
"""What must divide K and N for it."""
CHECKED = 16
"""Columns of the first and of the last row that are compared with the oracle."""


@dataclass(frozen=True)
class Row:
    """A product: our time and the peer's, µs, medians with a cold L2."""

    group: str
    dtype: str
    layout: str
    m: int
    k: int
    n: int
    kernel: str
    us: float
    peer_us: float
    ratio: float
    tops: float

    tier: ClassVar[str] = "int4"
    peer: ClassVar[str] = "int_mm"

    @property
    def shape(self) -> str:
        """M x K x N."""
        return str(Shape(self.m, self.k, self.n))


@dataclass(frozen=True)
class Int4Case:
    """A problem of a route table, as the tuner takes it (:class:`ptxgen.bench.cases.Case`)."""

    layout: str
    dtype: str
    shape: Shape

    @property
    def table(self) -> Key:
        """The key of its route table."""
        return "int4", self.layout, self.dtype

    @property
    def product(self) -> tuple[int, int, int]:
        """M, N and K."""
        return self.shape.m, self.shape.n, self.shape.k

    @property
    def align(self) -> tuple[int, int]:
        """The alignments of freshly allocated operands."""
        m, n, k = self.product
        b = (n, k) if self.layout == "rcr" else (k, n)
        align_a, align_b = (
            next(x for x in (16, 8, 4, 2, 1) if rows == 1 or not elements // 2 % x)
            for rows, elements in ((m, k), b)
        )
        return align_a, align_b


class Operands:
    """Random operands of a product, packed for each layout, and unpacked for the peer."""

    def __init__(self, torch: Any, shape: Shape, dtype: str, seed: int) -> None:
        self.dtype = dtype
        self._torch = torch
        low, high = ELEMENTS[dtype].low, ELEMENTS[dtype].high
        random = torch.Generator(device="cuda").manual_seed(seed)
        self.left, self.right = (
            torch.randint(low, high + 1, size, generator=random, device="cuda", dtype=torch.int8)
            for size in ((shape.m, shape.k), (shape.n, shape.k))
        )
        self.a = int4.pack(self.left, dtype)
        self.b = {
            "rcr": int4.pack(self.right, dtype),
            "rrr": int4.pack(self.right.t().contiguous(), dtype),
        }
        self.shape = shape
        # A power of two, with which results spread over the elements.
        spread = math.sqrt(shape.k) if low < 0 else shape.k
        self.alpha = 2.0 ** -round(math.log2(4 * spread))

    def empty(self) -> Any:
        """Memory for the result, full of what none has everywhere."""
        size = self.shape.m, self.shape.n // 2
        return self._torch.full(size, 0x5A, dtype=self._torch.uint8, device="cuda")

    def ours(self, layout: str, out: Any, kernel: str | None = None) -> measure.Work:
        """Our product into ``out``."""
        how: dict[str, Any] = {"dtype": self.dtype, "layout": layout}
        return partial(
            int4.gemm, self.a, self.b[layout], out=out, alpha=self.alpha, kernel=kernel, **how
        )

    def peer(self) -> tuple[measure.Work, Any]:
        """The peer's product of the unpacked operands, and the sums that it writes."""
        m, k, n = self.shape.m, self.shape.k, self.shape.n
        rows = max(m, PEER_ROWS)
        left = self.left.new_zeros((rows, k))
        left[:m] = self.left
        sums = self._torch.empty((rows, n), dtype=self._torch.int32, device="cuda")
        return partial(self._torch._int_mm, left, self.right.t(), out=sums), sums

    def check(self, what: str, out: Any, sums: Any, layout: str) -> None:
        """Compares every output with what the contract makes of the peer's exact sums, and some
        with the oracle. Raises WrongBitsError.
        """
        torch, element = self._torch, ELEMENTS[self.dtype]
        value = (sums[: self.shape.m].float() * self.alpha).round_()  # half to even
        value = value.clamp_(element.low, element.high).to(torch.int8)
        wrong = int((int4.pack(value, self.dtype) != out).sum())
        if wrong:
            raise WrongBitsError(f"{what}: {wrong} of {out.numel()} bytes are not those of {PEER}")
        rows = sorted({0, self.shape.m - 1})
        b = self.b[layout]
        b = b[:CHECKED] if layout == "rcr" else b[:, : CHECKED // 2]
        expected = reference.int4_gemm(
            self.a[rows].cpu().numpy(),
            b.cpu().numpy(),
            dtype=self.dtype,
            layout=layout,
            alpha=self.alpha,
        )
        if out[rows, : expected.shape[1]].cpu().numpy().tobytes() != expected.tobytes():
            raise WrongBitsError(f"{what}: outputs differ from the oracle's")


def drawn(count: int, seed: int) -> list[Shape]:
    """The random problems of 16 bits, K and N rounded up to what the peer takes."""
    return [
        Shape(s.m, *(-(-x // PEER_UNIT) * PEER_UNIT for x in (s.k, s.n)))
        for s in draw.shapes(count, seed, "bf16")
    ]


def rows(
    torch: Any,
    groups: Mapping[str, Sequence[Shape]],
    dtypes: Sequence[str],
    layouts: Sequence[str],
    kernel: str | None = None,
    seed: int = 0,
) -> Iterator[Row]:
    """Checks and times every product in every layout, in turns with the peer; what the peer refuses
    is left out. Raises WrongBitsError.
    """
    timer = measure.Timer(torch)
    wanted = [(name, shape) for name, shapes in groups.items() for shape in shapes]
    for dtype in dtypes:
        for group, shape in wanted:
            operands = Operands(torch, shape, dtype, seed)
            peer, sums = operands.peer()
            try:
                peer()
            except RuntimeError as error:
                note(f"{shape} is left out: {PEER}: {str(error).splitlines()[0]}")
                continue
            work, kernels = [peer], []
            for layout in layouts:
                out = operands.empty()
                ours = operands.ours(layout, out, kernel)
                ours()
                operands.check(f"int4 {layout} {shape} {dtype}", out, sums, layout)
                work.append(ours)
                kernels.append(kernel or _kernel(operands, layout, out))
            operations = 2 * shape.m * shape.n * shape.k
            count = measure.repetitions(operations / 7e8, 80.0, 7, 51)
            peer_us, *ours_us = (s.median for s in timer(work, [count] * len(work)))
            for layout, name, us in zip(layouts, kernels, ours_us, strict=True):
                yield Row(
                    *(group, dtype, layout, shape.m, shape.k, shape.n, name),
                    *(us, peer_us, peer_us / us, operations / us / 1e6),
                )


def _kernel(operands: Operands, layout: str, out: Any) -> str:
    """The kernel that serves a product."""
    given = {"a": operands.a, "b": operands.b[layout], "out": out}
    how = {"dtype": operands.dtype, "layout": layout}
    _, lowered = lowering(OPERATIONS["int4_gemm"], given | how)
    problem = lowered.program.steps[0].problem
    return choose(problem.table, **question(problem, default_device())).kernels[-1]


def summary(found: Sequence[Row]) -> str:
    """The ratios of each group, dtype and layout; and of the layouts' times to each other."""
    lines = []
    kinds = dict.fromkeys((r.group, r.dtype, r.layout) for r in found)
    for kind in kinds:
        of = [r for r in found if (r.group, r.dtype, r.layout) == kind]
        lines.append((*kind, *_spread({r.shape: r.ratio for r in of})))
    for group, dtype in dict.fromkeys(kind[:2] for kind in kinds):
        times = {
            layout: {r.shape: r.us for r in found if (r.group, r.dtype, r.layout) == key}
            for layout in LAYOUTS
            for key in [(group, dtype, layout)]
        }
        if all(times.values()):
            of_rcr = {shape: us / times["rrr"][shape] for shape, us in times["rcr"].items()}
            lines.append((group, dtype, "rrr : rcr", *_spread(of_rcr)))
    return table(lines, ("group", "dtype", "layout", "cases", "geomean", "P10", "least", "at"))


def _spread(ratios: dict[str, float]) -> tuple[object, ...]:
    values = [*ratios.values()]
    least = min(ratios, key=lambda shape: ratios[shape])
    numbers = geomean(values), quantile(values, 0.1), ratios[least]
    return len(values), *(f"{x:.3f}" for x in numbers), least


def _shape(text: str) -> Shape:
    shape = Shape(*arguments.sizes(text))
    if shape.k % PEER_UNIT or shape.n % PEER_UNIT:
        raise OptionError(f"the shape is {text}; {PEER} takes multiples of {PEER_UNIT} as K and N")
    return shape


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    if options.plot:
        plots.require()
    if options.rows:
        found, surroundings = read(options.rows)
    else:
        found, surroundings = _timed(options)
    lines = [
        (r.group, r.dtype, r.layout, r.shape, r.kernel, f"{r.us:.1f}", f"{r.peer_us:.1f}",
         f"{r.ratio:.2f}", f"{r.tops:.0f}")
        for r in found
    ]  # fmt: skip
    header = ("group", "dtype", "layout", "M x K x N", "kernel", "µs", PEER, "ratio", "TOP/s")
    emit(table(lines, header))
    emit(summary(found))
    if options.plot:
        plots.ratios(found, surroundings, options.plot)
        emit(f"wrote {options.plot}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench int4",
        description=f"Times products of 4-bit integers beside {PEER} of the unpacked operands "
        f"(padded to {PEER_ROWS} rows, as it demands), in one run, with a cold L2, after comparing "
        "every output with its exact sums, and some with the oracle. ratio = its time / ours.",
    )
    parser.add_argument(
        "--dtype", type=arguments.dtype, choices=tuple(ELEMENTS), action="append", help="(s4)"
    )
    parser.add_argument("--layout", choices=LAYOUTS, action="append", help="(both)")
    parser.add_argument("--group", choices=tuple(GROUPS), action="append", help="(all)")
    parser.add_argument("--shapes", metavar="LIST", help="MxKxN,..., in place of the groups")
    parser.add_argument("--random", type=int, metavar="N", help="random problems, in their place")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="that draws them, and operands (%(default)s)",
    )
    parser.add_argument("--kernel", metavar="NAME", help="forces a kernel")
    arguments.add_rows(parser)
    parser.add_argument("--rows", type=Path, metavar="FILE", help="time nothing, read these rows")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a dot per product")
    return parser


def read(path: Path) -> tuple[list[Row], Environment]:
    """The rows in a file of ``--json``, and where they were measured. PtxgenError for another."""
    return results.read_rows(Row, path, "int4")


def _timed(options: argparse.Namespace) -> tuple[list[Row], Environment]:
    groups: dict[str, Sequence[Shape]]
    if options.shapes:
        groups = {"given": [_shape(text) for text in options.shapes.split(",")]}
    elif options.random:
        groups = {"random": drawn(options.random, options.seed)}
    else:
        groups = {name: GROUPS[name] for name in options.group or GROUPS}
    torch = measure.require_torch()
    measure.warm_up(torch)
    surroundings = measure.environment(torch, measure.limits(torch), options.seed)
    wanted = options.dtype or ["s4"], options.layout or LAYOUTS
    found = list(rows(torch, groups, *wanted, options.kernel, options.seed))
    results.keep(options, results.records(found, surroundings))
    return found, surroundings
