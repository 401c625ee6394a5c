"""Triangular systems, contract ``solve/1``.

=================  ==============================================================
``COUNT``          number of systems
``N, COLS``        rows of a system, and right-hand sides (columns)
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: ``STEP``, elements from matrix to matrix (0: one for all), and ``FLAGS``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import TRUE, Expr, ceil_div, var
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.triangular import SOLVE
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, GRID_MAX, INDEX_MAX, WARP, KernelSpec
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

COUNT, N, COLS = var("COUNT"), var("N"), var("COLS")
GRID = COUNT * ceil_div(COLS, WARP)
SPACE = Space(
    "triangular",
    (("COUNT", SIZE), ("N", SIZE), ("COLS", SIZE), ("SMS", Between(1, SMS_MAX))),
    within=GRID <= GRID_MAX,
)
UPPER, UNIT, TURNED = 1, 2, 4
"""Bits of ``flags``: the matrix is upper triangular; its diagonal is all ones; memory holds its
transpose."""


@dataclass(frozen=True)
class TriangularSpec(KernelSpec):
    """A triangular solver: each lane of a warp solves for one right-hand side, ``block_rows`` rows
    at a time, in registers.
    """

    block_rows: int = 32
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = SOLVE

    family: ClassVar[str] = "triangular"
    template: ClassVar[str] = "triangular/solve.cu.j2"
    legible: ClassVar[bool] = False
    shared_bytes: ClassVar[int] = 0
    threads: ClassVar[int] = WARP
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "block_rows": "rows of the matrix that are solved together",
    }

    def __post_init__(self) -> None:
        self.check_choices(dtype=("f32", "f64"), block_rows=(WARP,), min_arch=ARCHITECTURES)

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.block_rows}"

    @property
    def element(self) -> str:
        """C++ type of the elements."""
        return cuda.CTYPES[self.dtype]

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"triangular": sys.modules[__name__]})

    @property
    def waits(self) -> bool:
        return True

    @property
    def abi(self) -> Abi:
        a, b = (ptr(name, f"const {self.element}* __restrict__") for name in ("a", "b"))
        scalars = Param("step", "i64"), *(Param(name, "u32") for name in ("n", "cols", "flags"))
        return Abi((a, b, ptr("x", f"{self.element}*"), *scalars))

    @property
    def grid(self) -> Expr:
        return GRID

    @property
    def requires(self) -> Expr:
        return TRUE

    def roofline(self, dtype: object) -> Roofline:
        return Roofline(COUNT * COLS * N * N)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("begin + ROWS", N + 2 * self.block_rows, INDEX_MAX),
            ("column", COLS + WARP, INDEX_MAX),
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"CTAs {self.grid} of a warp, a column a lane, {self.block_rows} rows at a time",
        )
