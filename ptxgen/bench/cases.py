"""What is timed, and which ratio to the gating peer each group is meant to reach."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from ptxgen.contract import OPERATIONS, Plan
from ptxgen.errors import OptionError

LAYOUTS = ("NN", "NT", "TN")
"""Products that are timed, by the storage of A and B."""
OPS = ("linear", "wgrad")

_SERVED_BY = {
    "linear": {"NN": ("linear", "kn"), "NT": ("linear", "nk"), "TN": ("matmul", "tn")},
    "wgrad": {"TN": ("linear_wgrad", "kn")},
}
"""The library operation, and its layout, that serves a kind of case in a product layout."""


@dataclass(frozen=True, order=True)
class Shape:
    """The operation's own sizes: M rows (the batch), K inputs, N outputs."""

    m: int
    k: int
    n: int

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}"


@dataclass(frozen=True)
class Group:
    """Shapes that share a target.

    ``op`` is one of :data:`OPS`. ``geomean`` and ``each`` are the smallest geometric mean of the
    ratios (peer time / our time) and the smallest single ratio that meet it; None where
    nothing is asked. ``quick`` are the shapes of a quick run.
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

    ``op`` and ``stored`` are keys of ``contract.OPERATIONS`` and of its products: the
    operation, and how its operands are stored.
    """

    group: str
    op: str
    stored: str
    shape: Shape

    @property
    def layout(self) -> str:
        """The operand layout of the product, "NN" .. "TT"."""
        return OPERATIONS[self.op].products[self.stored].layout

    @property
    def plan(self) -> Plan:
        """How its contract cuts the reduction."""
        return OPERATIONS[self.op].plan

    @property
    def product(self) -> tuple[int, int, int]:
        """M, N and K of the product that computes it."""
        own = {"M": self.shape.m, "N": self.shape.n, "K": self.shape.k}
        m, n, k = (own[d] for d in OPERATIONS[self.op].products[self.stored].dims)
        return m, n, k

    @property
    def flops(self) -> int:
        """Floating-point operations, a multiply-add counting two."""
        m, n, k = self.product
        return 2 * m * n * k

    @property
    def bytes(self) -> int:
        """The fewest bytes that device memory must move: each operand read, the result written."""
        m, n, k = self.product
        return 4 * (m * k + k * n + m * n)


def _shapes(ms: Iterable[int], kn: Iterable[tuple[int, int]]) -> tuple[Shape, ...]:
    return tuple(Shape(m, k, n) for (k, n), m in product(kn, ms))


_SMALL_M = (1, 2, 4, 8, 16, 32)

GROUPS = {
    g.name: g
    for g in (
        Group(
            "large",
            "linear",
            (
                Shape(4096, 4096, 4096),
                Shape(8192, 8192, 8192),
                Shape(8192, 4096, 14336),
                Shape(4096, 1536, 3072),
                Shape(2048, 768, 3072),
            ),
            quick=(Shape(4096, 4096, 4096), Shape(2048, 768, 3072)),
            geomean=1.03,
            each=1.00,
        ),
        Group(
            "odd",
            "linear",
            (Shape(2048, 768, 512), Shape(128, 641, 257), Shape(1000, 1000, 1000)),
            quick=(Shape(2048, 768, 512), Shape(128, 641, 257), Shape(1000, 1000, 1000)),
            geomean=None,
            each=1.00,
        ),
        Group(
            "medium",
            "linear",
            _shapes((64, 128, 256), ((4096, 4096), (14336, 4096), (4096, 1024))),
            quick=_shapes((64, 256), ((4096, 4096), (4096, 1024))),
            geomean=1.15,
            each=1.00,
        ),
        Group(
            "decode",
            "linear",
            _shapes(_SMALL_M, ((4096, 4096), (14336, 4096), (4096, 14336))),
            quick=_shapes((1, 16), ((4096, 4096), (4096, 14336))),
            geomean=1.20,
            each=0.95,
        ),
        Group(
            "decode-small",
            "linear",
            _shapes(_SMALL_M, ((4096, 1024), (2048, 512))),
            quick=_shapes((1, 16), ((4096, 1024), (2048, 512))),
            geomean=1.00,
            each=0.80,
        ),
        Group(
            "wgrad",
            "wgrad",
            _shapes((32, 2048, 8192, 65536), ((64, 64), (768, 3072), (4096, 4096))),
            quick=_shapes((2048, 8192), ((64, 64), (768, 3072))),
            geomean=1.10,
            each=0.95,
        ),
    )
}
CUSTOM = "custom"
"""The group of shapes given by hand, of which nothing is asked."""


def select(
    sets: Iterable[str] = ("all",),
    layouts: Iterable[str] = LAYOUTS,
    ops: Iterable[str] = OPS,
    *,
    quick: bool = False,
) -> list[Case]:
    """The cases of ``sets``: "all", names of groups, or shapes such as "4096x4096x1024" (M, K, N).

    Cases of one shape follow one another, so that they can share operands. ``layouts`` are
    those of the product cases; a weight gradient is always TN. Raises OptionError.
    """
    layouts, ops = tuple(layouts), tuple(ops)
    _check("layout", layouts, LAYOUTS)
    _check("op", ops, OPS)
    return [case for name in sets for case in _cases(name, layouts, ops, quick)]


def _cases(
    name: str, layouts: tuple[str, ...], ops: tuple[str, ...], quick: bool
) -> Iterator[Case]:
    if name == "all":
        for each in GROUPS:
            yield from _cases(each, layouts, ops, quick)
        return
    if name in GROUPS:
        group = GROUPS[name]
        served = tuple(op for op in ops if op == group.op)
        shapes = group.quick if quick else group.shapes
    else:
        found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)", name)
        if not found:
            known = ", ".join(("all", *GROUPS))
            raise OptionError(f"shapes {name!r}: expected one of {known}, or MxKxN")
        m, k, n = map(int, found.groups())
        served, shapes, name = ops, (Shape(m, k, n),), CUSTOM
    for op, shape in product(served, shapes):
        for layout in layouts if op == "linear" else ("TN",):
            yield Case(name, *_SERVED_BY[op][layout], shape)


def _check(what: str, values: tuple[str, ...], known: tuple[str, ...]) -> None:
    for value in values:
        if value not in known:
            raise OptionError(f"{what} {value!r}: expected one of {', '.join(known)}")
