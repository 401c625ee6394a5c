"""Epilogues that are formulas: what kernels of products compute of a result before they store it.

The table of a product has its kernels without one. Those that have one are made of these, but of
wgmma's, when they are first asked for (:meth:`ptxgen.spec.gemm.GemmSpec.of`): ``requires``, grid
and index bounds are the same. A route whose last kernel adds partial sums has the formula there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ptxgen.expr import Expr
from ptxgen.numerics.contract import K, M, N
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formula import STORED, Formula
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Param, ptr

PRODUCT = "product"
"""The input of a formula that is the product's result."""


class Array(NamedTuple):
    """An array that a formula reads or writes: its name, its dtype, and ``step``, whether numbers
    of a row are neighbours ("v") or the same one ("u").
    """

    name: str
    dtype: str
    step: str = "v"
    written: bool = False

    @property
    def element(self) -> str:
        """The C++ type of its elements."""
        return cuda.STORAGE[self.dtype]

    @property
    def pointer(self) -> str:
        """The C++ type of a pointer to it."""
        return f"{self.element}*" if self.written else f"const {self.element}*"

    @property
    def ctype(self) -> str:
        """The C++ type that is computed in."""
        return cuda.CTYPES[STORED[self.dtype]]

    @property
    def pitch(self) -> str:
        """The parameter that says how many elements lie between rows."""
        return f"ld{self.name}"


@dataclass(frozen=True)
class Epilogue:
    """``formula`` of the result of a product of operands of ``dtype``.

    It reads :data:`PRODUCT`, the result as it would have been stored, in ``dtype``, and arrays
    ``x0``, ``x1``, ... whose steps are the letters of ``steps`` (:class:`Array`). Its results are
    ``c``, which is where the product's result would have been, ``y1``, ``y2``, ...
    """

    dtype: str
    formula: Formula
    steps: str

    def __str__(self) -> str:
        return f"{self.dtype} {self.formula} {self.steps}"

    @cached_property
    def reads(self) -> tuple[Array, ...]:
        """What is read beside the product."""
        beside = {i.name: i.dtype for i in self.formula.inputs if i.name != PRODUCT}
        names = (f"x{i}" for i in range(len(self.steps)))
        return tuple(Array(n, beside[n], s) for n, s in zip(names, self.steps, strict=True))

    @cached_property
    def writes(self) -> tuple[Array, ...]:
        """What is written."""
        return tuple(Array(o.name, o.dtype, written=True) for o in self.formula.outputs)

    @property
    def operations(self) -> Expr:
        """Operations of a problem, beside the product's."""
        return M * N * self.formula.size

    @property
    def counted(self) -> Expr:
        """Bytes of a problem that are the product's own: its operands and its result."""
        return (M * K + K * N + M * N) * ITEMSIZE[self.dtype]

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All of them, ``c`` first."""
        return (*self.writes, *self.reads)

    @property
    def pointers(self) -> Iterator[Param]:
        """The pointers that a kernel takes beside those of a product."""
        yield from (ptr(a.name, a.pointer) for a in self.arrays[1:])

    @property
    def pitches(self) -> Iterator[Param]:
        """The scalars that it takes besides."""
        yield from (Param(a.pitch, "i64") for a in self.arrays[1:])

    @property
    def statements(self) -> Iterator[str]:
        """Of ``a_product`` and numbers that have the arrays' names, to results ``r_...``."""
        names = {n: f"a_{n.data.name}" for n in self.formula.nodes if n.op == "input"}
        yield from cuda.statements((o.node for o in self.formula.outputs), names)
        yield from (
            f"r_{o.name}.at[q] = ptxgen_to_{o.dtype}({names[o.node]});"
            for o in self.formula.outputs
        )

    @property
    def context(self) -> Mapping[str, Any]:
        """What ``include/formula.cuh.j2`` is given."""
        return {"formula": self.formula, "functions": cuda.functions}
