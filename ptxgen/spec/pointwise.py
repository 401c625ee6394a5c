"""Pointwise formulas: the problems, and the kernels that compute any formula.

A kernel computes a formula for all elements of arrays of one shape; dimensions along which all
arrays lie evenly have become one (:mod:`ptxgen.ops.pointwise`). Its variables are

===========  ====================================================================================
``COUNT``    elements; 1 .. 2^39
``CHUNKS``   vectors of elements (:attr:`Form.vector`), rounded up
``BLOCKS``   threads that compute square blocks, where STEP is 3; else 0
``RANK``     dimensions
``STEP``     how arrays step along the innermost dimension: 0, anyhow; 2, some by whole aligned
             vectors, the others anyhow; 3, by 0, by whole aligned vectors, or by these along the
             next dimension
``FACTOR``   1 where an array is multiplied by one number in memory (:attr:`Form.factor`), in place;
             else 0
``SMS``      streaming multiprocessors of the device
===========  ====================================================================================

What a kernel is rendered for, its :class:`Form`, is none of them: ``requires``, grid and index
bounds are the same for every formula, so those of one formula are proved for all. The tables name
the kernels of :data:`FORM`; others are made of them when they are first asked for
(:meth:`PointwiseSpec.of`).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import Expr, all_of, ceil_div, maximum, minimum, var
from ptxgen.numerics import formula as f
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formula import Formula, Input, Node, Output
from ptxgen.numerics.reduction_order import POINTWISE
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, GRID_MAX, INDEX_MAX, Expect, KernelSpec, check
from ptxgen.spec.space import SMS_MAX, Between, OneOf, Space

COUNT, CHUNKS, BLOCKS, RANK, STEP, FACTOR, SMS = map(
    var, ("COUNT", "CHUNKS", "BLOCKS", "RANK", "STEP", "FACTOR", "SMS")
)
COUNT_MAX = 1 << 39
RANK_MAX = 16

SPACE = Space(
    "elements",
    (
        ("COUNT", Between(1, COUNT_MAX)),
        ("CHUNKS", Between(1, COUNT_MAX)),
        ("BLOCKS", Between(0, COUNT_MAX)),
        ("RANK", Between(1, RANK_MAX)),
        ("STEP", OneOf((0, 2, 3))),
        ("FACTOR", OneOf((0, 1))),
        ("SMS", Between(1, SMS_MAX)),
    ),
)

VECTOR_BYTES = 16
BESIDE = 4
"""Neighbours in a warp along the second dimension, of square blocks."""
WAYS = ("factor", "flat", "rows", "blocks", "any", "wide")
DIVIDEND_MAX = (1 << 31) - 1
"""Largest number that is divided by multiplying (``quotient`` in the template)."""


@dataclass(frozen=True)
class Form:
    """What a kernel is rendered for.

    ``formula``; ``sets``: for each array (the formula's inputs in their order, but scalars, then
    its results) which set of strides it has; ``steps``: for each set a letter, of the step along
    the innermost dimension: "v" 1, by aligned vectors, "u" 0, "w" any, but "v" along the next, "s"
    any; ``rank``: dimensions.
    """

    formula: Formula
    sets: tuple[int, ...]
    steps: str
    rank: int

    def __str__(self) -> str:
        return f"{self.formula} {self.sets} {self.steps} {self.rank}"

    @cached_property
    def arrays(self) -> tuple[Input | Output, ...]:
        """What has a set of strides."""
        read = (i for i in self.formula.inputs if i.kind != "scalar")
        return (*read, *self.formula.outputs)

    @cached_property
    def vector(self) -> int:
        """Elements that are moved at once where all arrays allow it."""
        return vectors(self.formula)[0]

    @cached_property
    def factor(self) -> tuple[str, str] | None:
        """The array and the number in memory whose product the only result is, by their names: all
        is as it was where that number is 1 and the result is that array. (Exactly: a product with 1
        is the other factor, and rounded to the dtype it came from.)
        """
        outputs = self.formula.outputs
        if len(outputs) > 1 or outputs[0].node.op != "mul" or self.rank > 1:
            return None
        lies = dict(zip((a.name for a in self.arrays), self.sets, strict=True))
        for x, by in itertools.permutations(outputs[0].node.args):
            if x.op == by.op == "input" and {x.data.name, by.data.name} <= lies.keys():
                alike = x.data.dtype == outputs[0].dtype
                alike = alike and lies[x.data.name] == lies[outputs[0].name]
                if alike and self.steps[lies[by.data.name]] == "u":
                    return x.data.name, by.data.name
        return None

    @cached_property
    def side(self) -> int:
        """Elements of a side of a square block."""
        return vectors(self.formula)[1]


def vectors(formula: Formula) -> tuple[int, int]:
    """Elements of a vector, 16 bytes of the smallest dtype and at most 32 of the largest; and of a
    side of a square block, at most 16 bytes of any.
    """
    dtypes = [i.dtype for i in formula.inputs if i.kind != "scalar"]
    sizes = [ITEMSIZE[d] for d in (*dtypes, *(o.dtype for o in formula.outputs))]
    along = VECTOR_BYTES // max(sizes)
    return min(VECTOR_BYTES // min(sizes), 2 * along), min(along, 8)


def _representative() -> Formula:
    x, y = f.read("x0", "bf16"), f.read("x1", "bf16")
    return Formula((Output("y0", "bf16", f.fma(x, f.read("x2", "f32", "scalar"), y)),))


def _product() -> Formula:
    return Formula((Output("y0", "bf16", f.read("x0", "bf16") * f.read("x1", "f32")),))


FORMS: Mapping[str, Form] = {
    "factor": Form(_product(), (0, 1, 0), "vu", 1),
    "flat": Form(_representative(), (0, 0, 0), "v", 1),
    "rows": Form(_representative(), (0, 1, 0), "vs", 2),
    "blocks": Form(_representative(), (0, 1, 2), "wuv", 3),
    "any": Form(_representative(), (0, 1, 2), "sus", 3),
    "wide": Form(_representative(), (0, 1, 2), "sus", 3),
}
"""The formula, and the strides, by which kernels stand in the table."""


@dataclass(frozen=True)
class PointwiseSpec(KernelSpec):
    """A kernel of pointwise formulas.

    ``way``: "flat" (all arrays lie one behind the other: vectors, 64-bit indices), "factor" (the
    same of :attr:`Form.factor`: it ends at once where nothing is to be done), "rows" (vectors of
    the innermost dimension; the others' indices are found by multiplying), "blocks" (squares of
    the two innermost, of which some arrays step along the other), "any" (single elements) or "wide"
    (the same with 64-bit division). A thread computes ``pieces`` vectors or elements, each a grid's
    threads behind the one before, or one block.
    """

    way: str
    form: Form = FORMS["flat"]
    threads: int = 128
    pieces: int = 1
    min_arch: str = "sm_80"
    contract: Contract = POINTWISE

    family: ClassVar[str] = "pointwise"
    template: ClassVar[str] = "pointwise/pointwise.cu.j2"
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "way": "how it finds the elements",
        "form": "formula, strides",
        "threads": "of a CTA",
        "pieces": "vectors or elements of a thread",
    }

    def __post_init__(self) -> None:
        check(self.way in WAYS, type(self).__name__, "way", self.way, WAYS)
        name, form = self.name, self.form
        check(len(form.sets) == len(form.arrays), name, "sets", form.sets, len(form.arrays))
        check(set(form.sets) == set(range(len(form.steps))), name, "sets", form.sets, form.steps)
        check(1 <= form.rank <= RANK_MAX, name, "rank", form.rank, f"1 .. {RANK_MAX}")
        check(self.way != "flat" or form.rank == 1, name, "dimensions of flat", form.rank, 1)
        found = form.factor is not None or self.way != "factor"
        check(found, name, "result of factor", form.formula.text, "an array times a number")
        known = {"factor": "uvs", "flat": "uvs", "rows": "uvs", "blocks": "uvw"}
        steps = set(form.steps)
        takes = known.get(self.way, "uvws")
        check(steps <= set(takes), name, "steps", form.steps, takes)
        check(self.way != "blocks" or form.rank > 1, name, "dimensions of blocks", form.rank, 2)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def dtype(self) -> str:
        return self.form.formula.outputs[0].dtype

    @property
    def label(self) -> str:
        return f"{self.way}_{self.dtype}"

    def of(self, dtype: Hashable) -> PointwiseSpec:
        """The same kernel for a :class:`Form`; that of the table is known by its dtype."""
        return replace(self, form=dtype) if isinstance(dtype, Form) else self

    @property
    def vectors(self) -> bool:
        """Whether it moves vectors."""
        return self.way in ("factor", "flat", "rows")

    @property
    def vector(self) -> int:
        """Elements of a piece."""
        if self.way == "blocks":
            return self.form.side
        return self.form.vector if self.vectors else 1

    @property
    def wide(self) -> bool:
        """Whether indices of pieces have 64 bits."""
        return self.way in ("factor", "flat", "wide")

    @property
    def batch(self) -> int:
        """Pieces that are read before the first of them is computed, as registers allow."""
        read = sum(ITEMSIZE[i.dtype] for i in self.form.formula.inputs if i.kind != "scalar")
        registers = -(-read * self.vector // 4)
        return max(1, min(self.pieces, 40 // max(registers, 1)) & -2 or 1)

    @property
    def bounds(self) -> tuple[Node, Node] | None:
        """What the result lies between, where that says most of its bits (``Function.bounds``):
        with bf16's 8 it does, with f16's 11 it would hardly pay.
        """
        outputs = self.form.formula.outputs
        if not self.vectors or self.vector % 2 or [o.dtype for o in outputs] != ["bf16"]:
            return None
        node = outputs[0].node
        if node.op == "round_to" and node.data == "bf16":
            (node,) = node.args
        if node.op != "call" or node.data.bounds is None:
            return None
        found: tuple[Node, Node] = node.data.bounds(*node.args)
        return found

    @property
    def scalars(self) -> tuple[Input, ...]:
        """The numbers of a call."""
        return tuple(i for i in self.form.formula.inputs if i.kind == "scalar")

    @property
    def divisors(self) -> tuple[str, ...]:
        """The parameters that are sizes, innermost first: of all dimensions but the outermost."""
        if self.form.rank == 1:
            return ()
        if self.way == "blocks":
            return ("e0", "e1", *(f"d{i}" for i in range(2, self.form.rank - 1)))[
                : self.form.rank - 1
            ]
        first = "e0" if self.vectors else "d0"
        return (first, *(f"d{i}" for i in range(1, self.form.rank - 1)))

    def strides(self, of: int) -> Iterator[tuple[int, str]]:
        """The dimensions and stride parameters of a set, innermost first."""
        stepped = self.form.steps[of] in ("s", "w") or self.way == "blocks"
        for dimension in range(0 if stepped else 1, self.form.rank):
            yield dimension, f"t{of}_{dimension}"

    @cached_property
    def abi(self) -> Abi:
        # In the order of calls; numbers are written as pointers are, when a launch is fired.
        given = sorted(self.form.formula.inputs, key=lambda i: int(i.name[1:]))
        pointers = [
            ptr(i.name, "unsigned long long")
            if i.kind == "scalar"
            else ptr(i.name, f"const {cuda.STORAGE[i.dtype]}*")
            for i in given
        ]
        pointers += [ptr(o.name, f"{cuda.STORAGE[o.dtype]}*") for o in self.form.formula.outputs]
        blocks = [Param(name, "i64") for name in ("blocks", "b1")]
        told = blocks if self.way == "blocks" else [Param("count", "i64")]
        for name in self.divisors:
            if self.wide:
                told.append(Param(name, "i64"))
            else:
                told += [Param(f"{name}{part}", "u32") for part in ("", "m", "h")]
        sets = range(len(self.form.steps))
        told += [Param(name, "i64") for of in sets for _, name in self.strides(of)]
        return Abi((*pointers, *told))

    @property
    def context(self) -> Mapping[str, Any]:
        formula = self.form.formula
        arrays: dict[str, Any] = {
            a.name: {"dtype": a.dtype, "set": s, "step": self.form.steps[s]}
            for a, s in zip(self.form.arrays, self.form.sets, strict=True)
        }
        return MappingProxyType(
            {
                "formula": formula,
                "functions": cuda.functions,
                "arrays": arrays,
                "reads": [i for i in formula.inputs if i.kind != "scalar"],
                "ctype": lambda dtype: cuda.CTYPES[f.STORED[dtype]],
                "loaded": lambda dtype: f"ptxgen_{'half' if dtype == 'bf16' else 'from'}_{dtype}",
                "storage": cuda.STORAGE,
                "itemsize": ITEMSIZE,
                "number": _number,
                "BESIDE": BESIDE,
                "statements": list(_statements(formula)),
                "bounds": [] if self.bounds is None else list(_bounds(formula, self.bounds)),
            }
        )

    @property
    def units(self) -> Expr:
        """What it has pieces of."""
        return BLOCKS if self.way == "blocks" else CHUNKS if self.vectors else COUNT

    @property
    def grid(self) -> Expr:
        if self.pieces == 1:
            return ceil_div(self.units, self.threads)
        # Few elements are spread over the device, a piece a thread.
        beside = 16 if self.way == "factor" else 2
        spread = minimum(ceil_div(self.units, self.threads), SMS * beside)
        return maximum(ceil_div(self.units, self.threads * self.pieces), spread)

    def roofline(self, dtype: Hashable) -> Roofline:
        assert isinstance(dtype, Form), "the table's"
        return Roofline(COUNT * dtype.formula.size)

    @property
    def requires(self) -> Expr:
        terms = {
            "factor": (STEP.eq(2), RANK.eq(1), FACTOR.eq(1)),
            "flat": (STEP.eq(2), RANK.eq(1)),
            "rows": (STEP.eq(2), RANK >= 2, CHUNKS <= DIVIDEND_MAX),
            "blocks": (STEP.eq(3), RANK >= 2, BLOCKS >= 1, BLOCKS <= DIVIDEND_MAX),
            "any": (COUNT <= DIVIDEND_MAX,),
            "wide": (),
        }[self.way]
        return all_of((*terms, self.grid <= GRID_MAX))

    @property
    def expects(self) -> tuple[Expect, ...]:
        outputs = self.form.formula.outputs
        short = dict.fromkeys(o.dtype for o in outputs if o.dtype in ("bf16", "f16"))
        return (*super().expects, *(Expect(f"cvt.rn.{dtype}.f32") for dtype in short))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.wide:
            return ()
        last = self.grid * (self.threads * self.pieces)
        return (("first + PIECES * THREADS * gridDim.x", last, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        lines = self.form.formula.text.splitlines()
        return (
            f"contract {self.contract.implemented}: {self.contract.step}",
            f"{self.way}: {self.form.rank} dimensions, vectors of {self.vector}",
            *(lines if len(lines) <= 60 else [*lines[:20], "...", *lines[-40:]]),
        )


def _number(name: str, type: str) -> str:
    """What a scalar's 8 bytes say (:func:`ptxgen.numerics.pointwise.number`)."""
    double = f"__longlong_as_double((long long){name})"
    return {
        "f32": f"__double2float_rn({double})",
        "f64": double,
        "i32": f"(int){name}",
        "i64": f"(long long){name}",
        "bool": f"{name} != 0",
    }[type]


def _statements(formula: Formula) -> Iterator[str]:
    """A piece's element: of values that have the inputs' names, to results ``r_...``."""
    names = {n: f"a_{n.data.name}" for n in formula.nodes if n.op == "input"}
    yield from cuda.statements((o.node for o in formula.outputs), names)
    for o in formula.outputs:
        yield f"r_{o.name} = ptxgen_to_{o.dtype}({names[o.node]});"


def _bounds(formula: Formula, bounds: tuple[Node, Node]) -> Iterator[str]:
    """The same of bounds of the result, to ``low`` and ``high``."""
    names = {n: f"a_{n.data.name}" for n in formula.nodes if n.op == "input"}
    yield from cuda.statements(bounds, names)
    yield from (f"{to} = {names[n]};" for to, n in zip(("low", "high"), bounds, strict=True))


def magic(divisor: int) -> tuple[int, int]:
    """Multiplier and shift: ``n // divisor == (n * m // 2**32 + n) >> h`` for n < 2**31.

    T. Granlund, P. Montgomery: Division by invariant integers using multiplication (1994).
    """
    shift = (divisor - 1).bit_length()
    return (((1 << 32) * ((1 << shift) - divisor)) // divisor + 1) & INDEX_MAX, shift


def walked(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], vector: int, side: int = 0
) -> dict[str, int]:
    """What kernels are given of ``sizes`` and the sets' ``strides``, innermost first: ``vector``
    elements of the innermost dimension are one, or of the two innermost ``side`` (if not 0).
    """
    divisors = {f"d{i}": size for i, size in enumerate(sizes[:-1])}
    found: dict[str, int] = {}
    if side:
        found["b1"] = sizes[1] // side
        divisors |= {"e0": sizes[0] // side, "e1": -(-found["b1"] // BESIDE)}
    elif len(sizes) > 1 and sizes[0] % vector == 0:
        divisors["e0"] = sizes[0] // vector
    for name, divisor in divisors.items():
        multiplier, shift = magic(divisor)
        found |= {name: divisor, f"{name}m": multiplier, f"{name}h": shift}
    for of, steps in enumerate(strides):
        found |= {f"t{of}_{i}": step for i, step in enumerate(steps)}
    return found
