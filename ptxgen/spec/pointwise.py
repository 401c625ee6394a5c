"""Pointwise formulas: the problems, and the kernels that compute any formula.

A kernel computes a formula for all elements of arrays of one shape. Dimensions that are contiguous
in all arrays are merged beforehand (:mod:`ptxgen.ops.pointwise`). Its variables are

===========  ====================================================================================
``COUNT``    number of elements; 1 .. 2^39
``CHUNKS``   vectors of elements (:attr:`Form.vector`), rounded up
``BLOCKS``   threads that compute square blocks, where STEP is 3; else 0
``RANK``     number of dimensions
``STEP``     strides along the innermost dimension: 0, any; 2, some arrays have aligned vectors, the
             others any stride; 3, every array has stride 0, aligned vectors, or aligned vectors
             along the next dimension
``FACTOR``   1 where an array is multiplied by one scalar in memory (:attr:`Form.factor`), in place;
             else 0
``SMS``      streaming multiprocessors of the device
===========  ====================================================================================

A kernel's :class:`Form` (formula and strides) is no variable: ``requires``, grid and index bounds
are the same for every formula, so a proof for one formula holds for all. The tables list the
kernels of :data:`FORMS`; :meth:`PointwiseSpec.of` derives the others when they are first needed.
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
from ptxgen.numerics.dtype import BYTE_SIZED, FLOAT8, ITEMSIZE
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
COPIES_MAX = 64
"""Most copies of a formula, each of arrays of its own, that one launch computes."""
BESIDE = 4
"""Square blocks that are neighbours along the second dimension and are copied by neighbouring
lanes."""
INDEXINGS = ("factor", "flat", "rows", "blocks", "any", "wide")
DIVIDEND_MAX = (1 << 31) - 1
"""Largest index that a kernel divides by multiplication with a precomputed inverse (:func:`magic`),
which is exact below 2^31."""


@dataclass(frozen=True)
class Form:
    """Variant of a pointwise kernel: a ``formula``, and the strides of its arrays.

    A stride set has the strides of one or several arrays along all dimensions. ``sets``: for each
    array (the formula's inputs in order, without scalars, then its results) the index of its set.
    ``steps``: a letter for each set, its step along the innermost dimension: "v" 1, in aligned
    vectors; "u" 0; "w" any, but "v" along the next dimension; "s" any. ``rank``: number of
    dimensions. ``copies``: how often a launch computes the formula, each time of other arrays and
    scalars of the same strides; grid.y counts them.
    """

    formula: Formula
    sets: tuple[int, ...]
    steps: str
    rank: int
    copies: int = 1

    def __str__(self) -> str:
        several = f" x{self.copies}" if self.copies > 1 else ""
        return f"{self.formula} {self.sets} {self.steps} {self.rank}{several}"

    def operand(self, name: str, copy: int) -> str:
        """Name of the kernel argument of operand ``name`` of the formula, in a copy."""
        return name if self.copies == 1 else f"{name}_{copy}"

    @cached_property
    def arrays(self) -> tuple[Input | Output, ...]:
        """Arrays that have strides: inputs other than scalars, then results."""
        read = (i for i in self.formula.inputs if i.kind != "scalar")
        return (*read, *self.formula.outputs)

    @cached_property
    def vector(self) -> int:
        """Elements of a vector load, where all arrays allow vectors."""
        return vectors(self.formula)[0]

    @cached_property
    def factor(self) -> tuple[str, str] | None:
        """Names (array, scalar) if the formula multiplies an array, in place, by a scalar in
        memory, and does nothing else; else None. Where that scalar is 1 the array need not change:
        a product with 1 is exact and rounds to the dtype that it came from.
        """
        outputs = self.formula.outputs
        several = len(outputs) > 1 or self.copies > 1
        if several or outputs[0].node.op != "mul" or self.rank > 1:
            return None
        set_of = dict(zip((a.name for a in self.arrays), self.sets, strict=True))
        for x, by in itertools.permutations(outputs[0].node.args):
            if x.op == by.op == "input" and {x.data.name, by.data.name} <= set_of.keys():
                alike = x.data.dtype == outputs[0].dtype
                alike = alike and set_of[x.data.name] == set_of[outputs[0].name]
                if alike and self.steps[set_of[by.data.name]] == "u":
                    return x.data.name, by.data.name
        return None

    @cached_property
    def side(self) -> int:
        """Elements along a side of a square block."""
        return vectors(self.formula)[1]


def vectors(formula: Formula) -> tuple[int, int]:
    """Returns the elements of a vector, and those along a side of a square block, for the dtypes of
    ``formula``. A vector has 16 bytes of the smallest dtype, at most 32 of the largest; a side at
    most 16 bytes of any.
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
"""Variants that stand for each value of ``PointwiseSpec.indexing``. The route table lists their
kernels; those of other variants are derived."""


@dataclass(frozen=True)
class PointwiseSpec(KernelSpec):
    """A kernel of pointwise formulas.

    ``indexing``: "flat" (all arrays are contiguous: vectors, 64-bit indices), "factor" (contiguous,
    for :attr:`Form.factor`: it returns immediately if the scalar is 1), "rows" (vectors of the
    innermost dimension; the other indices come from a division by multiplication), "blocks" (square
    blocks of the two innermost dimensions, for arrays that are contiguous along different ones),
    "any" (single elements) or "wide" (single elements, with 64-bit division). A thread computes
    ``vectors_per_thread`` vectors or elements in a grid-stride loop, or one block.
    """

    indexing: str
    form: Form = FORMS["flat"]
    threads: int = 128
    vectors_per_thread: int = 1
    min_arch: str = "sm_80"
    contract: Contract = POINTWISE

    family: ClassVar[str] = "pointwise"
    template: ClassVar[str] = "pointwise/pointwise.cu.j2"
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "indexing": "addressing of elements: flat, factor, rows, blocks, any or wide",
        "form": "formula, and strides of its arrays",
        "threads": "threads of a CTA",
        "vectors_per_thread": "vectors (or elements) that a thread computes",
    }

    def __post_init__(self) -> None:
        check(self.indexing in INDEXINGS, type(self).__name__, "indexing", self.indexing, INDEXINGS)
        name, form = self.name, self.form
        check(len(form.sets) == len(form.arrays), name, "sets", form.sets, len(form.arrays))
        check(set(form.sets) == set(range(len(form.steps))), name, "sets", form.sets, form.steps)
        check(1 <= form.rank <= RANK_MAX, name, "rank", form.rank, f"1 .. {RANK_MAX}")
        check(1 <= form.copies <= COPIES_MAX, name, "copies", form.copies, f"1 .. {COPIES_MAX}")
        check(self.indexing != "flat" or form.rank == 1, name, "dimensions of flat", form.rank, 1)
        found = form.factor is not None or self.indexing != "factor"
        check(found, name, "result of factor", form.formula.text, "an array times a number")
        known = {"factor": "uvs", "flat": "uvs", "rows": "uvs", "blocks": "uvw"}
        steps = set(form.steps)
        takes = known.get(self.indexing, "uvws")
        check(steps <= set(takes), name, "steps", form.steps, takes)
        check(
            self.indexing != "blocks" or form.rank > 1, name, "dimensions of blocks", form.rank, 2
        )
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def dtype(self) -> str:
        return self.form.formula.outputs[0].dtype

    @property
    def label(self) -> str:
        return f"{self.indexing}_{self.dtype}"

    def of(self, dtype: Hashable) -> PointwiseSpec:
        """Returns this kernel for a :class:`Form`; for a dtype, the kernel itself."""
        return replace(self, form=dtype) if isinstance(dtype, Form) else self

    @property
    def batched(self) -> bool:
        return self.indexing != "factor"  # of a Form with as many copies

    @property
    def vectors(self) -> bool:
        """Whether the kernel loads and stores vectors."""
        return self.indexing in ("factor", "flat", "rows")

    @property
    def vector(self) -> int:
        """Elements of a piece: a vector, a side of a block, or one element."""
        if self.indexing == "blocks":
            return self.form.side
        return self.form.vector if self.vectors else 1

    @property
    def wide(self) -> bool:
        """Whether the index of a piece (a vector, or one element) has 64 bits."""
        return self.indexing in ("factor", "flat", "wide")

    @property
    def batch(self) -> int:
        """Pieces (vectors or elements) that a thread loads before it computes the first: as many of
        ``vectors_per_thread`` as registers allow.
        """
        read = sum(ITEMSIZE[i.dtype] for i in self.form.formula.inputs if i.kind != "scalar")
        registers = -(-read * self.vector // 4)
        return max(1, min(self.vectors_per_thread, 40 // max(registers, 1)) & -2 or 1)

    @property
    def bounds(self) -> tuple[Node, Node] | None:
        """Lower and upper bounds of the result that fix most of its bits (``Function.bounds``),
        else None. They pay off for the 8 significant bits of bf16, hardly for the 11 of f16.
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
        """Scalar inputs of the formula, which a call passes by value."""
        return tuple(i for i in self.form.formula.inputs if i.kind == "scalar")

    @property
    def divisors(self) -> tuple[str, ...]:
        """Names of the parameters by which a kernel divides an element's index to find its
        coordinates: sizes of all dimensions but the outermost, innermost first.
        """
        if self.form.rank == 1:
            return ()
        if self.indexing == "blocks":
            return ("e0", "e1", *(f"d{i}" for i in range(2, self.form.rank - 1)))[
                : self.form.rank - 1
            ]
        first = "e0" if self.vectors else "d0"
        return (first, *(f"d{i}" for i in range(1, self.form.rank - 1)))

    def strides(self, of: int) -> Iterator[tuple[int, str]]:
        """Yields a pair (dimension, name of its stride parameter) for each dimension of stride set
        ``of``, innermost first. A fixed step along the innermost dimension has no parameter.
        """
        stepped = self.form.steps[of] in ("s", "w") or self.indexing == "blocks"
        for dimension in range(0 if stepped else 1, self.form.rank):
            yield dimension, f"t{of}_{dimension}"

    @property
    def operands(self) -> Mapping[str, str]:
        """C++ type of each operand of the formula, by name: arguments, then results."""
        # In the order of a call's arguments: a launch writes scalars, like pointers, as 8 bytes.
        given = sorted(self.form.formula.inputs, key=lambda i: int(i.name[1:]))
        scalar = "unsigned long long"
        read = {
            i.name: scalar if i.kind == "scalar" else f"const {cuda.STORAGE[i.dtype]}*"
            for i in given
        }
        return read | {o.name: f"{cuda.STORAGE[o.dtype]}*" for o in self.form.formula.outputs}

    @cached_property
    def abi(self) -> Abi:
        pointers = [
            ptr(self.form.operand(name, copy), of)
            for copy in range(self.form.copies)
            for name, of in self.operands.items()
        ]
        blocks = [Param(name, "i64") for name in ("blocks", "b1")]
        params = blocks if self.indexing == "blocks" else [Param("count", "i64")]
        for name in self.divisors:
            if self.wide:
                params.append(Param(name, "i64"))
            else:
                params += [Param(f"{name}{part}", "u32") for part in ("", "m", "h")]
        sets = range(len(self.form.steps))
        params += [Param(name, "i64") for of in sets for _, name in self.strides(of)]
        return Abi((*pointers, *params))

    @property
    def context(self) -> Mapping[str, Any]:
        formula = self.form.formula
        passed = _passed(formula)
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
                "ctype": lambda dtype: passed.get(dtype) or cuda.CTYPES[f.STORED[dtype]],
                "loaded": _loaded,
                "passed": lambda dtype: "" if dtype in passed else _loaded(dtype),
                "storage": cuda.STORAGE,
                "itemsize": ITEMSIZE,
                "number": _scalar,
                "BESIDE": BESIDE,
                "statements": list(_statements(formula)),
                "bounds": [] if self.bounds is None else list(_bounds(formula, self.bounds)),
            }
        )

    @property
    def units(self) -> Expr:
        """Number of units that the grid divides among threads: blocks, vectors or elements."""
        return BLOCKS if self.indexing == "blocks" else CHUNKS if self.vectors else COUNT

    @property
    def grid(self) -> Expr:
        if self.vectors_per_thread == 1:
            return ceil_div(self.units, self.threads)
        # Few elements are spread over all SMs, one piece a thread.
        beside = 16 if self.indexing == "factor" else 2
        spread = minimum(ceil_div(self.units, self.threads), SMS * beside)
        return maximum(ceil_div(self.units, self.threads * self.vectors_per_thread), spread)

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
        }[self.indexing]
        return all_of((*terms, self.grid <= GRID_MAX))

    @property
    def expects(self) -> tuple[Expect, ...]:
        outputs = (o for o in self.form.formula.outputs if not o.moved)
        short = dict.fromkeys(o.dtype for o in outputs if o.dtype in _FLOAT16)
        return (*super().expects, *(Expect(f"cvt.rn.{dtype}.f32") for dtype in short))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.wide:
            return ()
        last = self.grid * (self.threads * self.vectors_per_thread)
        return (("first + PIECES * THREADS * gridDim.x", last, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        lines = self.form.formula.text.splitlines()
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.indexing}: {self.form.rank} dimensions, vectors of {self.vector}",
            *([f"{self.form.copies} copies, of other arrays"] if self.form.copies > 1 else ()),
            *(lines if len(lines) <= 60 else [*lines[:20], "...", *lines[-40:]]),
        )


_FLOAT16 = ("bf16", "f16")


def _passed(formula: Formula) -> dict[str, str]:
    """Returns the C++ type in which elements are passed to ``formula``, by dtype, where that is not
    the compute type: bits, as a conversion to f32 and back would change those of a NaN.
    """
    copied = (o.dtype for o in formula.outputs if o.moved and o.dtype in _FLOAT16)
    return {dtype: cuda.STORAGE[dtype] for dtype in (*FLOAT8.values(), *copied)}


def _loaded(dtype: str) -> str:
    """Returns the name of the device function that converts an element to its compute type."""
    return f"ptxgen_{'half' if dtype == 'bf16' else 'from'}_{dtype}"


def _inputs(formula: Formula) -> dict[Node, str]:
    """Returns the C++ expression of each input node, from arguments ``a_...``."""
    nodes = [n for n in formula.nodes if n.op == "input"]
    names = {n: f"a_{n.data.name}" for n in nodes}
    passed = _passed(formula)
    converted = (n for n in nodes if n.data.dtype in passed)
    return names | {n: f"{_loaded(n.data.dtype)}({names[n]})" for n in converted}


def _scalar(name: str, type: str) -> str:
    """Returns the C++ expression of the scalar in the 8-byte parameter ``name``
    (:func:`ptxgen.numerics.pointwise.number`).
    """
    double = f"__longlong_as_double((long long){name})"
    return {
        "f32": f"__double2float_rn({double})",
        "f64": double,
        "i32": f"(int){name}",
        "i64": f"(long long){name}",
        "bool": f"{name} != 0",
    }[type]


def _statements(formula: Formula) -> Iterator[str]:
    """Yields the C++ statements that compute the results ``r_...`` of one element from inputs
    ``a_...``.
    """
    names, nodes = _inputs(formula), {o: _unrounded(o) for o in formula.outputs}
    passed = _passed(formula)
    yield from cuda.statements(nodes.values(), names)
    for o, node in nodes.items():
        if node.op == "complex" and any(part.op == "const" for part in node.args):
            # Of vectors with constants NVRTC 13.0 stores unwritten registers, and then the parts.
            parts = (
                names[n] if n.op != "const" else f"ptxgen_opaque({names[n]})" for n in node.args
            )
            yield f"r_{o.name} = make_{cuda.CTYPES[node.type]}({', '.join(parts)});"
            continue
        moved = o.moved and o.dtype in passed
        value = f"a_{node.data.name}" if moved else f"ptxgen_to_{o.dtype}({names[node]})"
        yield f"r_{o.name} = {value};"


def _unrounded(output: Output) -> Node:
    """Returns the node whose value is rounded where ``output`` is stored. Of two equal roundings to
    8 bits one is left out, as the compiler does not see that the second changes nothing.
    """
    node, dtype = output.node, output.dtype
    twice = dtype in BYTE_SIZED.values() and node.op == "round_to" and node.data == dtype
    return node.args[0] if twice else node


def _bounds(formula: Formula, bounds: tuple[Node, Node]) -> Iterator[str]:
    """Yields the C++ statements that compute ``low`` and ``high``, the bounds of the result, from
    inputs ``a_...``.
    """
    names = _inputs(formula)
    yield from cuda.statements(bounds, names)
    yield from (f"{to} = {names[n]};" for to, n in zip(("low", "high"), bounds, strict=True))


def magic(divisor: int) -> tuple[int, int]:
    """Returns multiplier and shift: ``n // divisor == (n * m // 2**32 + n) >> h`` for n < 2**31.

    T. Granlund, P. Montgomery: Division by invariant integers using multiplication (1994).
    """
    shift = (divisor - 1).bit_length()
    return (((1 << 32) * ((1 << shift) - divisor)) // divisor + 1) & INDEX_MAX, shift


def loop_parameters(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], vector: int, side: int = 0
) -> dict[str, int]:
    """Returns the kernel's size and stride parameters by name; sizes that are divisors have a
    multiplier and a shift (:func:`magic`). ``sizes``: extents of the dimensions, ``strides``:
    strides of each stride set, innermost dimension first. ``vector``: elements of a vector;
    ``side``: elements of a side of a square block, 0 if there are no blocks.
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
