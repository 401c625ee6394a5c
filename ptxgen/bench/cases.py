"""Matrix-product cases of the benchmarks, and the speed targets of each group of cases."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from ptxgen import arguments
from ptxgen.errors import OptionError, proposal
from ptxgen.numerics.contract import AUTO_TIER, CONTRACTS, DTYPES, ITEMSIZE, OPERATIONS, TIERS, Plan
from ptxgen.ops.explaining import problem_of
from ptxgen.spec import Key, Problem
from ptxgen.tiles import TABLES

LAYOUTS = ("NN", "NT", "TN")
"""Memory layouts of A and B that are timed (T: stored transposed)."""
OPS = ("linear", "wgrad")

_SERVED_BY = {
    "linear": {
        "NN": ("linear", "kn"),
        "NT": ("linear", "nk"),
        "TN": ("matmul", "tn"),
        "TT": ("matmul", "tt"),
    },
    "wgrad": {"TN": ("linear_wgrad", "kn")},
}
"""The library operation and its ``layout`` argument, by kind of case and layout of the product."""


@dataclass(frozen=True, order=True)
class Shape:
    """Sizes of a matrix product: M rows (the batch), K input features, N output features."""

    m: int
    k: int
    n: int

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}"


@dataclass(frozen=True)
class Group:
    """Shapes that share a target.

    ``op`` is one of :data:`OPS`. ``geomean`` and ``each`` are targets: the smallest geometric mean
    and the smallest single value of peer time / ptxgen time; None: no target. ``quick``: shapes of
    a ``--quick`` run.
    """

    name: str
    op: str
    shapes: tuple[Shape, ...]
    quick: tuple[Shape, ...]
    geomean: float | None
    each: float | None


@dataclass(frozen=True)
class Case:
    """One problem of a library operation.

    ``op`` is a key of ``contract.OPERATIONS``, ``stored`` one of that operation's operand layouts.
    ``dtype`` is the operands' dtype, and the result's unless ``result`` names another.
    ``plan_option``: name of the option that selects a reduction plan (the split of K into chunks);
    empty for the default plan.
    """

    group: str
    op: str
    stored: str
    shape: Shape
    dtype: str = "f32"
    tier: str = "simt"
    plan_option: str = ""
    result: str = ""

    def __str__(self) -> str:
        return f"{self.op} {self.stored} {self.shape} (M x K x N) {self.dtype} {self.tier}"

    @property
    def layout(self) -> str:
        """The memory layout of the product's operands A and B, "NN" .. "TT" (T: transposed)."""
        return OPERATIONS[self.op].products[self.stored].layout

    @property
    def plan(self) -> Plan:
        """The plan by which the reduction over K is split into chunks."""
        return OPERATIONS[self.op].plan(CONTRACTS[self.tier][self.dtype], self.plan_option)

    @property
    def table(self) -> Key:
        """The key of the route table in ``tiles.TABLES`` that serves the case."""
        return self.problem((16, 16)).table

    def problem(self, align: tuple[int, int]) -> Problem:
        """Returns the problem that the dispatcher is called with; ``align``: byte alignments of A
        and B.
        """
        sizes = self.shape.m, self.shape.n, self.shape.k
        out = next(name for name, short in DTYPES.items() if short == (self.result or self.dtype))
        options = {"layout": self.stored, "tier": self.tier, "out_dtype": out, **self.plan_options}
        return problem_of(self.op, sizes, self.dtype, align, options)

    @property
    def plan_options(self) -> dict[str, bool]:
        """Keyword arguments of the call that select the reduction plan."""
        return {self.plan_option: True} if self.plan_option else {}

    @property
    def itemsize(self) -> int:
        """Bytes of one operand element."""
        return ITEMSIZE[self.dtype]

    @property
    def product(self) -> tuple[int, int, int]:
        """M, N and K of the matrix product that computes the operation."""
        own = {"M": self.shape.m, "N": self.shape.n, "K": self.shape.k}
        m, n, k = (own[d] for d in OPERATIONS[self.op].products[self.stored].dims)
        return m, n, k

    @property
    def flops(self) -> int:
        """FLOPs of the product; a multiply-add counts as two."""
        m, n, k = self.product
        return 2 * m * n * k

    @property
    def bytes(self) -> int:
        """Least memory traffic in bytes: each operand is read and the result written once."""
        m, n, k = self.product
        return self.itemsize * (m * k + k * n + m * n)


def case_of(table: Key, shape: Shape, choice: int = 0) -> Case:
    """Returns a case of ``shape`` that route table ``table`` serves.

    ``choice`` selects an operation, modulo their number, if several use the table.
    """
    layout, plan, _, tier = table
    dtype = TABLES[table].dtypes[0]
    serving = [
        of[layout]
        for of in _SERVED_BY.values()
        if layout in of and plan in OPERATIONS[of[layout][0]].plan_names
    ]
    op, stored = serving[choice % len(serving)]
    plan_option = plan if plan in OPERATIONS[op].asked_plans else ""
    return Case(CUSTOM, op, stored, shape, dtype, tier, plan_option)


def shapes_of(ms: Iterable[int], kn: Iterable[tuple[int, int]]) -> tuple[Shape, ...]:
    """Returns the shapes of every M with every (K, N)."""
    return tuple(Shape(m, k, n) for (k, n), m in product(kn, ms))


_FEW = (1, 2, 4, 8, 16, 32)
_LARGE, _HIGH, _WIDE, _SMALL = (4096, 4096), (14336, 4096), (4096, 14336), (4096, 1024)
"""Pairs (K, N) of weights: input and output features."""


def _named(*texts: str) -> tuple[Shape, ...]:
    return tuple(Shape(*arguments.sizes(text)) for text in texts)


_SQUARE = "4096x4096x4096", "8192x8192x8192", "8192x4096x14336", "4096x1536x3072"
_F32 = (
    Group(
        *("large", "linear", _named(*_SQUARE, "2048x768x3072")),
        quick=_named(_SQUARE[0], "2048x768x3072"),
        geomean=1.03,
        each=1.00,
    ),
    Group(
        *("odd", "linear", _named("2048x768x512", "128x641x257", "1000x1000x1000")),
        quick=_named("2048x768x512", "128x641x257", "1000x1000x1000"),
        geomean=None,
        each=1.00,
    ),
    Group(
        *("medium", "linear", shapes_of((64, 128, 256), (_LARGE, _HIGH, _SMALL))),
        quick=shapes_of((64, 256), (_LARGE, _SMALL)),
        geomean=1.15,
        each=1.00,
    ),
    Group(
        *("decode", "linear", shapes_of(_FEW, (_LARGE, _HIGH, _WIDE))),
        quick=shapes_of((1, 16), (_LARGE, _WIDE)),
        geomean=1.20,
        each=0.95,
    ),
    Group(
        *("decode-small", "linear", shapes_of(_FEW, (_SMALL, (2048, 512)))),
        quick=shapes_of((1, 16), (_SMALL, (2048, 512))),
        geomean=1.00,
        each=0.80,
    ),
    Group(
        *("wgrad", "wgrad", shapes_of((32, 2048, 8192, 65536), ((64, 64), (768, 3072), _LARGE))),
        quick=shapes_of((2048, 8192), ((64, 64), (768, 3072))),
        geomean=1.10,
        each=0.95,
    ),
)
_TENSOR_CORES = (
    Group(
        *("large", "linear", _named(*_SQUARE)),
        quick=_named(_SQUARE[0], _SQUARE[3]),
        geomean=1.00,
        each=0.97,
    ),
    Group(
        *("odd", "linear"),
        _named("2048x768x3072", "2048x768x512", "1024x1024x1024", "3000x5000x1000"),
        quick=_named("2048x768x512", "3000x5000x1000"),
        geomean=1.00,
        each=0.92,
    ),
    Group(
        *("medium", "linear", shapes_of((64, 128, 256), (_LARGE, _HIGH, _WIDE, _SMALL))),
        quick=shapes_of((64, 256), (_LARGE, _SMALL)),
        geomean=1.00,
        each=0.90,
    ),
    Group(
        *("decode", "linear", shapes_of(_FEW, (_LARGE, _HIGH, _WIDE, _SMALL))),
        quick=shapes_of((1, 16), (_LARGE, _SMALL)),
        geomean=1.05,
        each=0.92,
    ),
    Group(
        *("wgrad", "wgrad", shapes_of((512, 8192, 65536), ((768, 3072), _LARGE, (128, 128)))),
        quick=shapes_of((512, 8192), ((768, 3072), (128, 128))),
        geomean=1.00,
        each=0.92,
    ),
)
GROUPS = {
    tier: {group.name: group for group in groups}
    for tier, groups in (("simt", _F32), ("tc", _TENSOR_CORES))
}
"""Groups by tier ("simt": FMA units, "tc": tensor cores) and name. In tier "simt", 16-bit operands
are timed on the shapes of f32.
"""
CUSTOM = "custom"
"""Name of the group of shapes from the command line; it has no targets."""
RANDOM = "random"
"""Name of the group of random shapes (:mod:`ptxgen.bench.draw`); it has no targets."""
TOKENS = "tokens"
"""Name of the group of random shapes of models' weights, whose M is no multiple of 64; it has no
targets."""
INVARIANT = {"triton": 3.0, "sgemm_bi": 3.5}
"""Target geometric mean of peer time / ptxgen time over all tensor-core cases, by batch-invariant
peer.
"""


def target(group: str, dtype: str, tier: str) -> Group | None:
    """Returns the group whose targets apply to rows of ``dtype`` and ``tier``; None if none do."""
    held = tier == AUTO_TIER[dtype] and dtype != "f64"  # f64 is timed on the shapes of f32
    return GROUPS[tier].get(group) if held else None


def add_kind(parser: ArgumentParser) -> None:
    """Adds the options ``--dtype`` and ``--tier`` to a benchmark's command line."""
    arguments.add_dtype(parser, tuple(DTYPES.values()), help="of operands and results (f32)")
    what = "(auto: tc for 16 bits, simt for f32)"
    parser.add_argument("--tier", choices=("auto", *TIERS), default="auto", help=what)


def tier_of(dtype: str, tier: str = "auto") -> str:
    """Returns ``tier``, with "auto" resolved. Raises OptionError unless the tier has ``dtype``."""
    _check("dtype", (dtype,), tuple(DTYPES.values()))
    tier = AUTO_TIER[dtype] if tier == "auto" else tier
    _check(f"tier of {dtype}", (tier,), tuple(t for t, dtypes in TIERS.items() if dtype in dtypes))
    return tier


def select(
    sets: Iterable[str] = ("all",),
    layouts: Iterable[str] = LAYOUTS,
    ops: Iterable[str] = OPS,
    *,
    quick: bool = False,
    dtype: str = "f32",
    tier: str = "auto",
) -> list[Case]:
    """Returns the cases of ``sets``: "all", group names, or shapes "4096x4096x1024" (M, K, N).

    Cases of one shape follow one another, so that they can share operands. ``layouts`` apply to
    ``linear``; a weight gradient is always TN. Raises OptionError for unknown names, malformed
    shapes, and a dtype that the tier lacks.
    """
    layouts, ops, tier = tuple(layouts), tuple(ops), tier_of(dtype, tier)
    _check("layout", layouts, LAYOUTS)
    _check("op", ops, OPS)
    return [
        Case(group, *_SERVED_BY[op][layout], shape, dtype, tier)
        for name in sets
        for group, served, shapes in _groups(name, GROUPS[tier], ops, quick)
        for op, shape in product(served, shapes)
        for layout in (layouts if op == "linear" else ("TN",))
    ]


def _groups(
    name: str, groups: dict[str, Group], ops: Iterable[str], quick: bool
) -> Iterator[tuple[str, Iterable[str], tuple[Shape, ...]]]:
    """Yields name, operations and shapes of each group that ``name`` selects: "all", the name of
    one of ``groups``, or a shape MxKxN, which becomes group :data:`CUSTOM`.

    ``ops``: requested operations; a group yields its own only. ``quick``: whether to yield only the
    shapes of a ``--quick`` run.
    """
    if name != "all" and name not in groups:
        yield CUSTOM, ops, (shape_of(name, ("all", *groups)),)
        return
    for group in groups.values() if name == "all" else (groups[name],):
        served = [op for op in ops if op == group.op]
        yield group.name, served, group.quick if quick else group.shapes


def shape_of(text: str, names: Iterable[str] = ()) -> Shape:
    """Parses a shape "MxKxN".

    Raises OptionError, whose message also offers ``names``.
    """
    try:
        return Shape(*arguments.sizes(text))
    except OptionError as error:
        close = proposal(text, names)
        known = [*names, "MxKxN"]
        raise OptionError(f"shapes {text!r}{close}; takes one of {', '.join(known)}") from error


def _check(what: str, values: tuple[str, ...], known: tuple[str, ...]) -> None:
    for value in values:
        if value not in known:
            raise OptionError(f"{what} {value!r}: expected one of {', '.join(known)}")
