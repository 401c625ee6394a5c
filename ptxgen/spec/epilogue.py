"""Epilogue formulas: pointwise operations that a GEMM kernel fuses before it stores its result.

Route tables list GEMM kernels without one. :meth:`ptxgen.spec.gemm.GemmSpec.of` derives the kernel
with a formula when it is first needed; ``requires``, grid and index bounds stay the same. The wgmma
family supports no formula. Where a split reduction ends in a kernel that adds partial sums, that
kernel evaluates the formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ptxgen.expr import Expr
from ptxgen.numerics.contract import K, M, N
from ptxgen.numerics.dtype import ITEMSIZE, Mixed
from ptxgen.numerics.formula import STORED, Formula
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Param, ptr

PRODUCT = "product"
"""Name of the formula input that holds the result of the product."""


class Array(NamedTuple):
    """An array that an epilogue formula reads or writes: its name, its dtype, and ``step``: "v" if
    it has an element for each column, "u" if one element serves a whole row. ``written``: whether
    the formula writes it.
    """

    name: str
    dtype: str
    step: str = "v"
    written: bool = False

    @property
    def element(self) -> str:
        """C++ type of the elements in memory."""
        return cuda.STORAGE[self.dtype]

    @property
    def pointer(self) -> str:
        """C++ type of a pointer to the array."""
        return f"{self.element}*" if self.written else f"const {self.element}*"

    @property
    def ctype(self) -> str:
        """C++ type in which the formula computes with the elements."""
        return cuda.CTYPES[STORED[self.dtype]]

    @property
    def pitch(self) -> str:
        """Name of the parameter for the row stride, in elements."""
        return f"ld{self.name}"


@dataclass(frozen=True)
class Epilogue:
    """An epilogue: ``formula`` is applied to the result of a product of ``dtype`` operands.

    Its inputs are :data:`PRODUCT`, the result rounded to :attr:`product` as it would have been
    stored, and arrays ``x0``, ``x1``, ... whose steps are the letters of ``steps``
    (:class:`Array`). Its outputs are ``c``, stored in place of the product's result, and ``y1``,
    ``y2``, ... ``batched``: whether the arrays have strides along the two dimensions of a batch.
    """

    dtype: str | Mixed
    formula: Formula
    steps: str
    batched: bool = False

    def __str__(self) -> str:
        return f"{self.dtype} {self.formula} {self.steps}" + " batched" * self.batched

    @property
    def product(self) -> str:
        """Dtype of the product's result."""
        return self.dtype.wide if isinstance(self.dtype, Mixed) else self.dtype

    @cached_property
    def reads(self) -> tuple[Array, ...]:
        """Arrays that the formula reads besides the product's result."""
        beside = {i.name: i.dtype for i in self.formula.inputs if i.name != PRODUCT}
        names = (f"x{i}" for i in range(len(self.steps)))
        return tuple(Array(n, beside[n], s) for n, s in zip(names, self.steps, strict=True))

    @cached_property
    def writes(self) -> tuple[Array, ...]:
        """Arrays that the formula writes."""
        return tuple(Array(o.name, o.dtype, written=True) for o in self.formula.outputs)

    @property
    def operations(self) -> Expr:
        """Pointwise operations of the formula for M x N results."""
        return M * N * self.formula.size

    @property
    def counted(self) -> Expr:
        """Bytes of A, B and C of the product, each read or written once; the formula's other arrays
        are not included.
        """
        b = self.dtype.narrow if isinstance(self.dtype, Mixed) else self.dtype
        return (M * K + M * N) * ITEMSIZE[self.product] + K * N * ITEMSIZE[b]

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays of the formula, ``c`` first."""
        return (*self.writes, *self.reads)

    @property
    def pointers(self) -> Iterator[Param]:
        """Pointer parameters of the formula's arrays, except ``c``, which the product has."""
        yield from (ptr(a.name, a.pointer) for a in self.arrays[1:])

    @property
    def pitches(self) -> Iterator[Param]:
        """Stride parameters of the formula's arrays, except ``c``: from row to row, and along the
        inner and the outer dimension of a batch.
        """
        for a in self.arrays[1:]:
            along = (f"batch_{a.name}", f"outer_{a.name}") if self.batched else ()
            yield from (Param(name, "i64") for name in (a.pitch, *along))

    @property
    def statements(self) -> Iterator[str]:
        """CUDA C++ statements that compute the results ``r_...`` from ``a_product`` and the arrays'
        values ``a_...``.
        """
        names = {n: f"a_{n.data.name}" for n in self.formula.nodes if n.op == "input"}
        yield from cuda.statements((o.node for o in self.formula.outputs), names)
        yield from (
            f"r_{o.name}.at[q] = ptxgen_to_{o.dtype}({names[o.node]});"
            for o in self.formula.outputs
        )

    @property
    def context(self) -> Mapping[str, Any]:
        """Variables that the template ``include/formula.cuh.j2`` reads, by name."""
        return {"formula": self.formula, "functions": cuda.functions}
