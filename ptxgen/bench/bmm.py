"""``ptxgen bench bmm``: batched matrix products against ``torch.bmm``."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import ptxgen
from ptxgen import arguments
from ptxgen.bench import measure, results
from ptxgen.bench.cases import Shape
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.results import Sample
from ptxgen.bench.runner import Area, Timed, add_list
from ptxgen.numerics.contract import DTYPES, ITEMSIZE
from ptxgen.spec import Key
from ptxgen.tiles import TABLES

SHAPES = (
    "32x200x64x200",
    "512x1x128x4096",
    "128x2048x128x2048",
    "64x512x2048x512",
    "8x1000x1000x1000",
)
"""Default shapes BATCHxMxKxN: attention scores, scores of one token, long attention, experts of a
mixture, and rows that are not aligned to 16 bytes.
"""
LAYOUTS = ("nn", "nt")
CHECKED = 8
"""Number of matrices of a batch whose bits are compared with separate products."""


@dataclass(frozen=True)
class BatchCase:
    """A batched product to tune kernels on. It has the attributes of
    :class:`ptxgen.bench.cases.Case` that the tuner reads.

    ``table``: key of the route table; ``count``: products in the batch; ``shape``: sizes of each.
    """

    table: Key
    count: int
    shape: Shape

    @property
    def layout(self) -> str:
        """The memory layout of A and B: "NN", "NT", "TN" or "TT" (T: stored transposed)."""
        return self.table[0]

    @property
    def dtype(self) -> str:
        """The operands' dtype: the first of the route table."""
        return str(TABLES[self.table].dtypes[0])

    @property
    def product(self) -> tuple[int, int, int]:
        """M, N and K of each product in the batch."""
        return self.shape.m, self.shape.n, self.shape.k

    @property
    def align(self) -> tuple[int, int]:
        """Byte alignments of A and B when freshly allocated, of rows and matrices alike."""
        (m, n, k), item = self.product, ITEMSIZE[self.dtype]
        a, b = (k if self.layout[0] == "N" else m), (n if self.layout[1] == "N" else k)
        return math.gcd(16, item * a), math.gcd(16, item * b)

    def operands(self, torch: Any, seed: int) -> Operands:
        """Returns random operands of the batch, generated from ``seed``."""
        sizes = self.count, *self.product
        return Operands(torch, self.layout, self.dtype, sizes, seed, self.table[3])


class Operands:
    """Random operands A and B of a batched product in memory layout "NN" .. "TT"."""

    def __init__(
        self,
        torch: Any,
        layout: str,
        dtype: str,
        sizes: tuple[int, int, int, int],
        seed: int,
        tier: str = "auto",
    ) -> None:
        count, m, n, k = sizes
        made, self._tier = measure.normal(torch, dtype, seed), tier
        self.a = made(count, m, k) if layout[0] == "N" else made(count, k, m).mT
        self.b = made(count, k, n) if layout[1] == "N" else made(count, n, k).mT

    def empty(self) -> Any:
        """Returns uninitialised memory for the result, [batch, M, N]."""
        return self.a.new_empty((*self.a.shape[:2], self.b.shape[2]))

    def ours(self, out: Any, kernel: str | None = None) -> measure.Work:
        """Returns ptxgen's call that writes the products to ``out``, by the route named ``kernel``
        if given.
        """
        return partial(ptxgen.matmul, self.a, self.b, out=out, tier=self._tier, kernel=kernel)


@dataclass(frozen=True)
class Row:
    """Times of a batched product, ptxgen's and torch's: medians in µs with a cold L2."""

    dtype: str
    layout: str
    shape: str
    kernel: str
    us: float
    torch_us: float
    tflops: float

    ratio = results.quotient("torch_us", "us")


class Batch(NamedTuple):
    """A benchmark case: dtype, layout and shape ("BATCHxMxKxN")."""

    dtype: str
    layout: str
    shape: str

    def __str__(self) -> str:
        return f"{self.layout} {self.shape} {self.dtype}"


class Bmm(Area):
    """Benchmark ``ptxgen bench bmm``: batches of matrix products, against ``torch.bmm``."""

    name = "bmm"
    about = (
        "Times batches of products beside torch.bmm, in one run, with a cold L2, after "
        "comparing bits with products alone. ratio = torch's time / our time."
    )
    row = Row
    columns = (
        *(("dtype", "dtype"), ("layout", "layout"), ("B x M x K x N", "shape")),
        *(("kernel", "kernel"), ("µs", "us:.1f"), ("torch.bmm", "torch_us:.1f")),
        *(("ratio", "ratio:.2f"), ("TFLOP/s", "tflops:.1f")),
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        many = {"action": "append", "default": None, "help": "(f32 and bf16)"}
        arguments.add_dtype(parser, (*DTYPES.values(),), **many)
        add_list(parser, "--shapes", f"BATCHxMxKxN,... ({','.join(SHAPES)})", default=SHAPES)
        parser.add_argument("--layout", choices=LAYOUTS, action="append", help="(both)")
        parser.add_argument("--kernel", metavar="NAME", help="forces a kernel")

    def cases(self) -> list[Batch]:
        options = self.options
        for shape in options.shapes:
            _sizes(shape)
        dtypes = options.dtype or ["f32", "bf16"]
        layouts = options.layout or LAYOUTS
        return [Batch(d, layout, s) for d, s, layout in product(dtypes, options.shapes, layouts)]

    def check(self, case: Batch) -> Timed:
        """Compares some matrices bit for bit with separate products, and all coarsely with torch's.

        Returns the calls to time. Raises WrongBitsError.
        """
        batch, m, k, n = _sizes(case.shape)
        operands = Operands(self.torch, case.layout.upper(), case.dtype, (batch, m, n, k), 0)
        ours, theirs = operands.empty(), operands.empty()
        work = operands.ours(ours, self.options.kernel)
        peer = partial(self.torch.bmm, operands.a, operands.b, out=theirs)
        work()
        peer()
        for i in {*range(0, batch, max(batch // CHECKED, 1)), batch - 1}:
            if not self.torch.equal(ours[i], ptxgen.matmul(operands.a[i], operands.b[i])):
                raise WrongBitsError(f"matrix {i} has other bits than alone")
        measure.compare(self.torch, "ours", ours.flatten(0, 1), theirs.flatten(0, 1), k)
        given = {"a": operands.a, "b": operands.b, "out": ours}
        self.kernel = self.options.kernel or measure.kernels("matmul", given)[0].name
        self.operations = 2 * batch * m * n * k
        return Timed({"ours": work, "torch": peer}, self.operations / 2e7)

    def found(self, case: Batch, times: Mapping[str, Sample]) -> Iterator[Row]:
        us = times["ours"].median
        yield Row(*case, self.kernel, us, times["torch"].median, self.operations / us / 1e6)


def _sizes(shape: str) -> tuple[int, ...]:
    return arguments.sizes(shape, ("BATCH", *arguments.PRODUCT))


main, _parser = Bmm.main, Bmm.parser
