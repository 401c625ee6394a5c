"""An operation from outside the package: ``y = x + 3 steps of amount``, and ``z = y * y``.

It has two results, four launches, two scratch memories, a float among its kernels' parameters and
an argument that need not be given: what no operation of the package has.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ptxgen.expr import TRUE, Expr, ceil_div, var
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Option, Signature
from ptxgen.ops.op import Op, Result
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
    options={"amount": Option(1.0, kind="float")},
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


@dataclass(frozen=True)
class Reading:
    n: int
    amount: float
    results: tuple[Result, ...]

    def problem(self, targets):
        if self.n == 0:
            return None
        told = (("AMOUNT", self.amount),)
        return Problem(
            ("toy", "f32"), "f32", (("N", self.n),), told, ("x", "start", "y", "z"), "thrice"
        )


def read(views, options, targets) -> Reading:
    inferred = THRICE.infer({name: view.shape for name, view in views.items()})
    results = tuple(Result(shape, "float32") for shape in inferred.results)
    return Reading(inferred.sizes["N"], options["amount"], results)


def pose(question) -> Problem:
    values = (("N", question.sizes["N"]),)
    return Problem(("toy", "f32"), "f32", values, (), ("x", "start", "y", "z"), "thrice")


def backward(arguments, results, gradients, options, needs):
    (y, _), (dy, dz) = results, gradients
    return (dy + dz * 2 * y, None)


OP = Op(THRICE, read, pose, backward)


def reference(x, amount=1.0):
    """The oracle."""
    y = x
    for _ in range(3):
        y = (y + np.float32(amount)).astype(np.float32)
    return y, (y * y).astype(np.float32)
