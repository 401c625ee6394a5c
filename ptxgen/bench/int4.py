"""``ptxgen bench int4``: products of 4-bit integers against cuBLASLt on the unpacked integers."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from ptxgen import arguments, int4, reference
from ptxgen.bench import bands, draw, measure
from ptxgen.bench.cases import Shape, shapes_of
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.results import Environment, Sample
from ptxgen.bench.runner import Area, Timed, add_list, only_drawn
from ptxgen.errors import OptionError
from ptxgen.numerics.int4 import ELEMENTS, LAYOUTS
from ptxgen.spec import Key
from ptxgen.ui import emit, note

WEIGHTS = ((4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192))
"""Pairs (K, N) of the named shapes."""
GROUPS = {
    "decode": shapes_of((1, 2, 4, 8, 16, 32), WEIGHTS),
    "64-512": shapes_of((64, 128, 256, 512), WEIGHTS),
    "1024-": shapes_of((1024, 2048, 4096, 8192), WEIGHTS),
}
PEER = "torch._int_mm"
PEER_ROWS = 32
"""Fewest rows (M) that ``torch._int_mm`` takes."""
PEER_UNIT = 8
"""Divisor of K and N that ``torch._int_mm`` requires."""
CHECKED = 16
"""Number of columns, in the first and the last row, that are compared with the oracle."""


@dataclass(frozen=True)
class Row:
    """Times in µs of a 4-bit product, ptxgen's and ``torch._int_mm``'s: medians with a cold L2.

    ``ratio``: ``peer_us / us``; ``tops``: ptxgen's rate, 10**12 operations per second.
    """

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
        """Text of the sizes, M x K x N."""
        return str(Shape(self.m, self.k, self.n))


@dataclass(frozen=True)
class Int4Case:
    """A product of 4-bit integers to tune kernels on. It has the attributes of
    :class:`ptxgen.bench.cases.Case` that the tuner reads.

    ``layout``: "rcr" (B column-major) or "rrr" (B row-major); ``dtype``: "s4" or "u4".
    """

    layout: str
    dtype: str
    shape: Shape

    @property
    def table(self) -> Key:
        """The key of the route table that serves the product."""
        return "int4", self.layout, self.dtype

    @property
    def product(self) -> tuple[int, int, int]:
        """M, N and K of the product."""
        return self.shape.m, self.shape.n, self.shape.k

    @property
    def align(self) -> tuple[int, int]:
        """Byte alignments of A and B when freshly allocated."""
        return measure.fresh("NT" if self.layout == "rcr" else "NN", self.product, 4)


class Operands:
    """Random operands of a 4-bit product, packed for each layout, and as int8 for the peer."""

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
        # A power of two that scales the sums to the range of the 4-bit results.
        spread = math.sqrt(shape.k) if low < 0 else shape.k
        self.alpha = 2.0 ** -round(math.log2(4 * spread))

    def empty(self) -> Any:
        """Returns memory for the packed result, filled with a byte pattern that marks unwritten
        bytes.
        """
        size = self.shape.m, self.shape.n // 2
        return self._torch.full(size, 0x5A, dtype=self._torch.uint8, device="cuda")

    def ours(self, layout: str, out: Any, kernel: str | None = None) -> measure.Work:
        """Returns ptxgen's call that writes the product to ``out``, by the route named ``kernel``
        if given.
        """
        how: dict[str, Any] = {"dtype": self.dtype, "layout": layout}
        return partial(
            int4.gemm, self.a, self.b[layout], out=out, alpha=self.alpha, kernel=kernel, **how
        )

    def peer(self) -> tuple[measure.Work, Any]:
        """Returns the call of ``torch._int_mm`` on the unpacked operands, M padded to at least
        :data:`PEER_ROWS`, and the int32 sums that it writes.
        """
        m, k, n = self.shape.m, self.shape.k, self.shape.n
        rows = max(m, PEER_ROWS)
        left = self.left.new_zeros((rows, k))
        left[:m] = self.left
        sums = self._torch.empty((rows, n), dtype=self._torch.int32, device="cuda")
        return partial(self._torch._int_mm, left, self.right.t(), out=sums), sums

    def check(self, what: str, out: Any, sums: Any, layout: str) -> None:
        """Compares ``out`` with the peer's exact integer sums, and some outputs with the oracle.

        The sums are scaled, rounded and clamped as the contract says. Raises WrongBitsError.
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
    """Returns the first ``count`` random shapes that ``seed`` generates for bf16 products, K and N
    rounded up to multiples of :data:`PEER_UNIT`, which the peer requires.
    """
    return [
        Shape(s.m, *(-(-x // PEER_UNIT) * PEER_UNIT for x in (s.k, s.n)))
        for s in draw.shapes(count, seed, "bf16")
    ]


def summary(found: Sequence[Row]) -> str:
    """Returns a table of peer time / ptxgen time by group, dtype and layout.

    A further line for each group and dtype has ptxgen's time in layout "rcr" (B column-major) / its
    time in layout "rrr" (B row-major).
    """
    spreads = bands.by(found, lambda r: (r.group, r.dtype, r.layout))
    for both in dict.fromkeys(kind[:2] for kind in spreads):
        own = [r for r in found if (r.group, r.dtype) == both]
        times = {of: {r.shape: r.us for r in own if r.layout == of} for of in LAYOUTS}
        if all(times.values()):
            pairs = [(us / times["rrr"][shape], shape) for shape, us in times["rcr"].items()]
            spreads[*both, "rrr : rcr"] = bands.Spread.of(pairs)
    return bands.table_of(spreads, ("group", "dtype", "layout"))


class Problem(NamedTuple):
    """A benchmark case: one product, timed in every requested layout."""

    group: str
    dtype: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype}"


class Int4(Area):
    """Benchmark ``ptxgen bench int4``: products of 4-bit integers, against ``torch._int_mm`` on the
    same integers as int8.
    """

    name = "int4"
    about = (
        f"Times products of 4-bit integers beside {PEER} of the unpacked operands "
        f"(padded to {PEER_ROWS} rows, as it demands), in one run, with a cold L2, after comparing "
        "every output with its exact sums, and some with the oracle. ratio = its time / ours."
    )
    row = Row
    columns = (
        *(("group", "group"), ("dtype", "dtype"), ("layout", "layout"), ("M x K x N", "shape")),
        *(("kernel", "kernel"), ("µs", "us:.1f"), (PEER, "peer_us:.1f"), ("ratio", "ratio:.2f")),
        ("TOP/s", "tops:.0f"),
    )
    drawn = "instead of groups, so many problems that --seed draws"

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        many = {"action": "append", "default": None, "help": "(s4)"}
        arguments.add_dtype(parser, tuple(ELEMENTS), **many)
        parser.add_argument("--layout", choices=LAYOUTS, action="append", help="(both)")
        parser.add_argument("--group", choices=tuple(GROUPS), action="append", help="(all)")
        add_list(parser, "--shapes", "MxKxN,..., not the groups")
        parser.add_argument("--kernel", metavar="NAME", help="forces a kernel")

    def cases(self) -> list[Problem]:
        options = self.options
        groups: dict[str, Sequence[Shape]]
        if only_drawn(options):
            groups = {"random": drawn(options.random, options.seed)}
        elif options.shapes:
            groups = {"given": [_shape(text) for text in options.shapes]}
        else:
            groups = {name: GROUPS[name] for name in options.group or GROUPS}
        dtypes = options.dtype or ["s4"]
        return [Problem(g, d, s) for d in dtypes for g, shapes in groups.items() for s in shapes]

    def rows(self, case: Problem) -> Iterator[Row]:
        """Yields a row for each layout; none for a problem that the peer refuses."""
        self.operands = Operands(self.torch, case.shape, case.dtype, self.seed)
        self.peer, self.sums = self.operands.peer()
        try:
            self.peer()
        except RuntimeError as error:
            note(f"{case.shape} is left out: {PEER}: {str(error).splitlines()[0]}")
        else:
            yield from super().rows(case)

    def check(self, case: Problem) -> Timed:
        operands, how = self.operands, {"dtype": case.dtype}
        work: dict[str, measure.Work] = {}
        self.kernel: dict[str, str] = {}
        for layout in self.options.layout or LAYOUTS:
            out = operands.empty()
            work[layout] = operands.ours(layout, out, self.options.kernel)
            work[layout]()
            operands.check(layout, out, self.sums, layout)
            given = {"a": operands.a, "b": operands.b[layout], "out": out, "layout": layout}
            forced = self.options.kernel
            self.kernel[layout] = forced or measure.kernels("int4_gemm", given | how)[-1].name
        shape = case.shape
        self.operations = 2 * shape.m * shape.n * shape.k
        return Timed({**work, PEER: self.peer}, self.operations / 7e8)

    def found(self, case: Problem, times: Mapping[str, Sample]) -> Iterator[Row]:
        peer, s = times[PEER].median, case.shape
        for layout, kernel in self.kernel.items():
            us = times[layout].median
            known = case.group, case.dtype, layout, s.m, s.k, s.n, kernel
            yield Row(*known, us, peer, peer / us, self.operations / us / 1e6)

    def show(self, rows: Sequence[Row], runs: Sequence[Environment]) -> None:
        super().show(rows, runs)
        emit(summary(rows))


def _shape(text: str) -> Shape:
    shape = Shape(*arguments.sizes(text))
    if shape.k % PEER_UNIT or shape.n % PEER_UNIT:
        raise OptionError(f"the shape is {text}; {PEER} takes multiples of {PEER_UNIT} as K and N")
    return shape


main, _parser = Int4.main, Int4.parser
