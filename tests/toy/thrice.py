"""An operation from outside the package: ``y = x + 3 steps of amount``, and ``z = y * y``.

It has two results, four launches, two scratch memories, a float among its kernels' parameters and
an argument that need not be given: what no operation of the package has.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from ptxgen.expr import TRUE, Expr, ceil_div, var
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.option import Kernel, Real
from ptxgen.numerics.signature import Signature
from ptxgen.ops.views import results
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import (
    GRID_MAX,
    INDEX_MAX,
    SMS_MAX,
    WORKSPACE_MAX,
    Abi,
    Between,
    KernelSpec,
    Param,
    Problem,
    Route,
    RouteTable,
    Space,
    Step,
    ptr,
)

N = var("N")
TOY = Contract("toy", 1, "y = x + a + a + a", "simt")
SPACE = Space(
    "toy", (("N", Between(1, 1 << 24)), ("SMS", Between(1, SMS_MAX))), (("TILES", ceil_div(N, 64)),)
)
THRICE = Signature(
    "thrice",
    ("x", "start"),
    ("y", "z"),
    {"": {"x": "N", "start": "N", "y": "N", "z": "N"}},
    ("N",),
    optional=frozenset({"start"}),
)


@dataclass(frozen=True)
class ToySpec(KernelSpec):
    """Adds an amount, or squares."""

    square: bool = False
    writes: str = ""
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = TOY

    family: ClassVar[str] = "toy"
    template: ClassVar[str] = "step.cu.j2"
    folder: ClassVar[Path | None] = Path(__file__).parent
    threads: ClassVar[int] = 64
    shared_bytes: ClassVar[int] = 0

    @property
    def label(self) -> str:
        return "square" if self.square else "add"

    @property
    def abi(self) -> Abi:
        pointers = ptr("from", "const float*"), ptr("to", "float*")
        return Abi((*pointers, Param("n", "u32"), Param("amount", "f32")))

    @property
    def scratch(self) -> dict[str, Expr]:
        return {"to": N * 4} if self.writes else {}

    @property
    def grid(self) -> Expr:
        return var("TILES")

    @property
    def requires(self) -> Expr:
        return (self.grid <= GRID_MAX) & (N * 4 <= WORKSPACE_MAX)

    @property
    def index_bounds(self):
        return (("i", self.grid * 64, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return ("a toy",)


HELD, ADD, SQUARE = ToySpec(writes="scratch"), ToySpec(), ToySpec(square=True)
TABLES = {
    ("toy", "f32"): RouteTable(
        SPACE,
        (
            Route(
                (
                    Step(HELD, {"from": "x", "to": "one"}),
                    Step(HELD, {"from": "one", "to": "two"}),
                    Step(ADD, {"from": "two", "to": "y"}),
                    Step(SQUARE, {"from": "y", "to": "z"}),
                ),
                TRUE,
                "there is no other",
            ),
        ),
    ),
}


def vjp(b: Builder, at: Backward) -> Gradients:
    """``dx = dy + 2 * y * dz``."""
    (y, _), (dy, dz) = at.results, at.dys
    return {"x": b.add(dy, b.mul(b.mul(dz, 2.0), y))}


@op(forms=THRICE, oracle=lambda *args, **how: reference(*args, **how), vjp=vjp)
def thrice(
    b: ProgramBuilder,
    x: Buffer,
    start: Buffer | None = None,
    *,
    amount: Annotated[float, Real()] = 1.0,
    out: Out = None,
    kernel: Kernel = None,
) -> tuple[Buffer, Buffer]:
    """``y = x + 3 steps of amount``, and ``z = y * y``."""
    inferred = THRICE.infer({"x": x.shape})
    n, memory = inferred.sizes["N"], results(out, 2)
    named = zip(inferred.results, memory, THRICE.results, strict=True)
    y, z = (b.result(shape, "float32", m, name) for shape, m, name in named)
    values, scalars = (("N", n),), (("AMOUNT", amount),)
    if n:
        bind = {"x": x, "y": y, "z": z}
        b.launch(lambda: Problem(("toy", "f32"), "f32", values, scalars, "thrice"), bind, kernel)
    return y, z


@op(forms=THRICE, vjp=lambda b, at: {"x": b.mul(at.dys[0], 1.0)}, results=("y",))
def sixfold(b: ProgramBuilder, x: Buffer, *, amount: Annotated[float, Real()] = 1.0) -> Buffer:
    """``thrice`` of itself: its oracle, programs and operator follow."""
    y, _ = b.thrice(b.thrice(x, amount=amount)[0], amount=amount)
    return y


def reference(x, start=None, *, amount=1.0):
    """The oracle: adds ``amount`` three times; returns the sum and its square."""
    y = x
    for _ in range(3):
        y = (y + np.float32(amount)).astype(np.float32)
    return y, (y * y).astype(np.float32)
