"""``ptxgen bench bmm``: batches of products beside ``torch.bmm``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import measure, results
from ptxgen.bench.cases import Shape
from ptxgen.bench.measure import WrongBitsError
from ptxgen.dispatch import choose
from ptxgen.errors import PtxgenError
from ptxgen.numerics.contract import DTYPES, ITEMSIZE
from ptxgen.ops import OPERATIONS
from ptxgen.program.launch import question
from ptxgen.program.operation import lowering
from ptxgen.runtime import default_device
from ptxgen.spec import Key
from ptxgen.tiles import TABLES
from ptxgen.ui import emit, table

SHAPES = (
    "32x200x64x200",
    "512x1x128x4096",
    "128x2048x128x2048",
    "64x512x2048x512",
    "8x1000x1000x1000",
)
"""Batch x M x K x N: attention's scores, one token, long attention, experts, off 16 bytes."""
LAYOUTS = ("nn", "nt")
CHECKED = 8
"""Matrices of a batch whose bits are compared with those of the product alone."""


@dataclass(frozen=True)
class BatchCase:
    """A batch of a route table's products, as the tuner takes it
    (:class:`ptxgen.bench.cases.Case`).
    """

    table: Key
    count: int
    shape: Shape

    @property
    def layout(self) -> str:
        """How A and B lie in memory, "NN" .. "TT"."""
        return self.table[0]

    @property
    def dtype(self) -> str:
        """The first of the table's."""
        return TABLES[self.table].dtypes[0]

    @property
    def product(self) -> tuple[int, int, int]:
        """M, N and K of a product."""
        return self.shape.m, self.shape.n, self.shape.k

    @property
    def align(self) -> tuple[int, int]:
        """The alignments of freshly allocated operands: of rows, and of matrices."""
        m, n, k = self.product
        a = (m, k) if self.layout[0] == "N" else (k, m)
        b = (k, n) if self.layout[1] == "N" else (n, k)
        align_a, align_b = (
            math.gcd(16, ITEMSIZE[self.dtype] * (width if rows > 1 else rows * width))
            for rows, width in (a, b)
        )
        return align_a, align_b


class Operands:
    """Random operands of a batch."""

    def __init__(self, torch: Any, case: BatchCase, seed: int) -> None:
        m, n, k = case.product
        random = torch.Generator(device="cuda").manual_seed(seed)
        kind = measure.torch_dtype(torch, case.dtype)
        options = {"device": "cuda", "generator": random, "dtype": kind}
        self._torch, self._size, self._kind = torch, (case.count, m, n), kind
        self._tier = case.table[3]
        self._a, self._b = (
            torch.randn((case.count, *size), **options)
            if how == "N"
            else torch.randn((case.count, *size[::-1]), **options).mT
            for size, how in zip(((m, k), (k, n)), case.layout, strict=True)
        )

    def empty(self) -> Any:
        """Memory for the result."""
        return self._torch.empty(self._size, device="cuda", dtype=self._kind)

    def ours(self, out: Any, kernel: str | None = None) -> measure.Work:
        """Our product into ``out``."""
        return partial(ptxgen.matmul, self._a, self._b, out=out, tier=self._tier, kernel=kernel)


@dataclass(frozen=True)
class Row:
    """A batch: our time and torch's, µs, medians with a cold L2."""

    dtype: str
    layout: str
    shape: str
    kernel: str
    us: float
    torch_us: float
    tflops: float


def rows(torch: Any, shapes: Sequence[str], dtypes: Sequence[str], layouts: Sequence[str],
         kernel: str | None = None) -> Iterator[Row]:  # fmt: skip
    """Checks and times every batch. Raises WrongBitsError."""
    timer = measure.Timer(torch)
    for dtype in dtypes:
        for shape in shapes:
            batch, m, k, n = _sizes(shape)
            torch.manual_seed(0)
            kind = measure.torch_dtype(torch, dtype)
            a = torch.randn(batch, m, k, device="cuda").to(kind)
            for layout in layouts:
                stored = (batch, n, k) if layout == "nt" else (batch, k, n)
                b = torch.randn(stored, device="cuda").to(kind)
                b = b.mT if layout == "nt" else b
                ours, theirs = (torch.empty(batch, m, n, device="cuda", dtype=kind) for _ in "ab")
                work = partial(ptxgen.matmul, a, b, out=ours, kernel=kernel)
                peer = partial(torch.bmm, a, b, out=theirs)
                work()
                peer()
                what = f"bmm {layout} {shape} {dtype}"
                for i in {*range(0, batch, max(batch // CHECKED, 1)), batch - 1}:
                    if not torch.equal(ours[i], ptxgen.matmul(a[i], b[i])):
                        raise WrongBitsError(f"{what}: matrix {i} has other bits than alone")
                measure.compare(torch, what, ours.flatten(0, 1), theirs.flatten(0, 1), k)
                operations = 2 * batch * m * n * k
                count = measure.repetitions(operations / 2e7, 80.0, 7, 51)
                mine, other = (sample.median for sample in timer([work, peer], [count, count]))
                yield Row(
                    *(dtype, layout, shape, kernel or _kernel(a, b, ours)),
                    *(mine, other, operations / mine / 1e6),
                )


def _sizes(shape: str) -> tuple[int, ...]:
    return arguments.sizes(shape, ("BATCH", *arguments.PRODUCT))


def _kernel(a: Any, b: Any, out: Any) -> str:
    """The kernel that serves a batch."""
    _, lowered = lowering(OPERATIONS["matmul"], {"a": a, "b": b, "out": out})
    problem = lowered.program.steps[0].problem
    return choose(problem.table, **question(problem, default_device())).kernels[0]


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    shapes = options.shapes.split(",")
    for shape in shapes:
        _sizes(shape)
    torch = measure.require_torch()
    measure.warm_up(torch)
    wanted = options.dtype or ["f32", "bf16"], options.layout or LAYOUTS
    found = list(rows(torch, shapes, *wanted, options.kernel))
    if options.json or options.save:
        surroundings = measure.environment(torch, measure.limits(torch), seed=0)
        results.keep(options, results.records(found, surroundings))
    lines = [
        (r.dtype, r.layout, r.shape, r.kernel, f"{r.us:.1f}", f"{r.torch_us:.1f}",
         f"{r.torch_us / r.us:.2f}", f"{r.tflops:.1f}")
        for r in found
    ]  # fmt: skip
    header = ("dtype", "layout", "B x M x K x N", "kernel", "µs", "torch.bmm", "ratio", "TFLOP/s")
    emit(table(lines, header))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench bmm",
        description="Times batches of products beside torch.bmm, in one run, with a cold L2, after "
        "comparing bits with products alone. ratio = torch's time / our time.",
    )
    parser.add_argument(
        "--dtype",
        type=arguments.dtype,
        choices=tuple(DTYPES.values()),
        action="append",
        help="(f32 and bf16)",
    )
    parser.add_argument(
        "--shapes", metavar="LIST", default=",".join(SHAPES), help="BATCHxMxKxN,... (%(default)s)"
    )
    parser.add_argument("--layout", choices=LAYOUTS, action="append", help="(both)")
    parser.add_argument("--kernel", metavar="NAME", help="forces a kernel")
    arguments.add_rows(parser)
    return parser


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except PtxgenError as error:
        raise SystemExit(f"error: {error}") from error
