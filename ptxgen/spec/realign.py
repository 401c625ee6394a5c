"""The realign family: kernels that copy matrices into rows aligned to 16 bytes.

Kernels that load 16 bytes at a time read such a copy where the operand itself is not aligned.

============================  =================================================================
``ROWS0, COLS0`` (``ROWS1``)  rows of the first (second) matrix, and elements of each; 0 .. 2^31 - 1
============================  =================================================================

Further scalar parameters: ``LDX0, LDX1``, the row strides in elements. A route's
:class:`~ptxgen.spec.route.Step` defines all of these by the variables of its table's space.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, Self

from ptxgen.cost.kernel import MOVE, KernelCost
from ptxgen.expr import Expr, ceil_div, const, var
from ptxgen.numerics.contract import COPY, Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import INDEX_MAX, Expect, check
from ptxgen.spec.prepare import PreparingSpec

VECTOR = 16
"""Bytes of a vector: a thread copies one at a time, and rows of a copy are aligned to it."""
_ELEMENTS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}


def pitch(columns: Expr, size: int) -> Expr:
    """Returns the row pitch of an aligned copy, in elements of ``size`` bytes."""
    return ceil_div(columns, VECTOR // size) * (VECTOR // size)


@dataclass(frozen=True)
class RealignSpec(PreparingSpec):
    """Copies ``matrices`` row-major matrices (1 or 2) of elements of ``itemsize`` bytes.

    ``y0[i, j] = x0[i, j]`` for rows of ``x0`` with pitch ``ldx0`` and any alignment; rows of ``y0``
    have the pitch :func:`pitch`, and zeros past the last column. Likewise ``x1`` and ``y1``.

    A thread copies ``vectors_per_thread`` vectors. An unaligned vector spans two aligned ones: the
    thread loads both if they are inside the row, else single elements, so that it reads nothing
    outside of rows.
    """

    itemsize: int
    matrices: int
    cta_threads: int = 256
    vectors_per_thread: int = 2
    min_arch: str = "sm_80"
    contract: Contract = COPY

    family: ClassVar[str] = "realign"
    template: ClassVar[str] = "realign/copy.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **PreparingSpec.meanings,
        "itemsize": "bytes of an element",
        "matrices": "matrices that one launch copies",
        "vectors_per_thread": "16-byte vectors that a thread copies",
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.itemsize in _ELEMENTS, name, "bytes of an element", self.itemsize, [*_ELEMENTS])
        check(self.matrices in (1, 2), name, "matrices", self.matrices, (1, 2))
        self.check_threads()

    @property
    def label(self) -> str:
        return f"{self.dtype}x{self.matrices}"

    @property
    def dtype(self) -> str:
        """Untyped dtype of the elements in PTX's notation: "b8" to "b64"."""
        return f"b{8 * self.itemsize}"

    def of(self, dtype: Hashable) -> Self:
        return replace(
            self, itemsize=ITEMSIZE.get(str(dtype), self.itemsize)
        )  # packed ones move as bytes

    @property
    def element(self) -> str:
        """C++ type of the elements."""
        return _ELEMENTS[self.itemsize]

    @property
    def unit(self) -> int:
        """Elements of a 16-byte vector."""
        return VECTOR // self.itemsize

    def _vectors(self, i: int) -> Expr:
        """Returns the number of vectors in the copy of matrix ``i``."""
        return var(f"ROWS{i}") * ceil_div(var(f"COLS{i}"), self.unit)

    @property
    def abi(self) -> Abi:
        which = range(self.matrices)
        pointers = ((ptr(f"x{i}", "const Element*"), ptr(f"y{i}", "Vector*")) for i in which)
        kinds = (("ldx", "i64"), ("rows", "u32"), ("cols", "u32"))
        scalars = (Param(f"{name}{i}", kind) for name, kind in kinds for i in which)
        return Abi((*chain.from_iterable(pointers), *scalars))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {f"y{i}": self._vectors(i) * VECTOR for i in range(self.matrices)}

    @property
    def grid(self) -> Expr:
        first, *others = (
            ceil_div(self._vectors(i), self.threads * self.vectors_per_thread)
            for i in range(self.matrices)
        )
        return sum(others, first)

    @property
    def cost(self) -> KernelCost:
        size = sum(self.scratch.values(), const(0))
        return KernelCost(self.slots, self.grid, (MOVE,), size, size, size)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        ends = (
            (f"at + 2 * UNIT, of matrix {i}", var(f"COLS{i}") + 2 * self.unit, INDEX_MAX)
            for i in range(self.matrices)
        )
        return (*super().index_bounds, *ends)

    @property
    def expects(self) -> tuple[Expect, ...]:
        early = Expect("griddepcontrol.launch_dependents", since="sm_90")
        return (Expect("st.global.v4.u32", ("st.global.u*",)), early)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.matrices} matrices of elements of {self.itemsize} bytes, into rows at "
            f"multiples of {VECTOR} bytes",
            f"CTAs {self.grid} of {self.threads} threads",
        )
