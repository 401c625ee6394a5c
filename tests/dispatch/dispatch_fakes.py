"""Kernels and route tables that exist only in tests of the dispatcher, sound and unsound."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.cost.kernel import KernelCost
from ptxgen.dispatch.emit import Table
from ptxgen.expr import TRUE, Expr, all_of, ceil_div, maximum, minimum
from ptxgen.numerics.contract import FMA, PLANS, Contract, Plan
from ptxgen.spec import (
    ALIGN_A,
    ALIGN_B,
    CHUNKS,
    GRID_MAX,
    INDEX_MAX,
    SMS,
    WORKSPACE_MAX,
    Abi,
    K,
    KernelSpec,
    M,
    N,
    Route,
    ptr,
)
from ptxgen.spec.gemm import space


@dataclass(frozen=True)
class Fake(KernelSpec):
    """A kernel whose formulas are given, rather than derived."""

    called: str
    ctas: Expr
    correct: Expr
    partial: Expr | None = None
    bounds: tuple[tuple[str, Expr, int], ...] = ()
    shared: int = 0
    min_arch: str = "sm_80"
    dtype: str = "f32"
    contract: Contract = FMA
    work: KernelCost | None = None

    family = "fake"
    template = "fake.cu.j2"
    threads = 128
    abi = Abi((ptr("c", "float*"), ptr("workspace", "float*", optional=True)))

    @property
    def label(self) -> str:
        return self.called

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.called

    @property
    def shared_bytes(self) -> int:
        return self.shared

    @property
    def grid(self) -> Expr:
        return self.ctas

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {} if self.partial is None else {"workspace": self.partial}

    @property
    def cost(self) -> KernelCost | None:
        return self.work

    @property
    def requires(self) -> Expr:
        return self.correct

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return self.bounds

    def describe(self) -> tuple[str, ...]:
        return ()


SPLIT_PLAN = Plan("chunks", maximum(256, ceil_div(K, 16)))


def tiles(bm: int, bn: int) -> Expr:
    return ceil_div(M, bm) * ceil_div(N, bn)


def kernels() -> dict[str, Fake]:
    """Sound kernels by the part that they play in :func:`table`."""
    scratch = CHUNKS * M * N * 4
    return {
        "big": Fake(
            "big",
            tiles(128, 128),
            all_of((ALIGN_A >= 8, ALIGN_B >= 16, CHUNKS <= 1, tiles(128, 128) <= GRID_MAX)),
            bounds=(("GROUP * tiles_n", ceil_div(N, 128) * 8, INDEX_MAX),),
        ),
        "partial": Fake(
            "partial",
            tiles(64, 64) * CHUNKS,
            all_of((scratch <= WORKSPACE_MAX, tiles(64, 64) * CHUNKS <= GRID_MAX)),
            partial=scratch,
        ),
        # Its requires does not bound its grid: that the workspace does is for the prover to see.
        "reduce": Fake("reduce", ceil_div(M * N, 256), scratch <= WORKSPACE_MAX),
        "thin": Fake("thin", tiles(8, 64), tiles(8, 64) <= GRID_MAX, shared=200 << 10),
        "filler": Fake("filler", minimum(tiles(64, 64), GRID_MAX), TRUE),
    }


def table(
    prefer: dict[str, Expr] | None = None,
    plan: Plan = SPLIT_PLAN,
    **changes: dict[str, Any],
) -> Table:
    """A sound table, but for the ``prefer`` of some routes and ``changes`` of some kernels."""
    k = {
        name: dataclasses.replace(kernel, **changes.get(name, {}))
        for name, kernel in kernels().items()
    }
    p = {
        "big": (tiles(128, 128) >= SMS) & (M >= 128),
        "partial": (CHUNKS >= 4) & (tiles(64, 64) < SMS),
        "thin": (M <= 8) | ((N % 4).eq(0) & (M <= 32)),
        "filler": TRUE,
        **(prefer or {}),
    }
    return Table(
        ("NN", "chunks", "f32", "simt"),
        space(plan),
        (
            Route((k["big"],), p["big"], "fills the GPU"),
            Route((k["partial"], k["reduce"]), p["partial"], "long reductions, few tiles"),
            Route((k["thin"],), p["thin"], "thin outputs"),
            Route((k["filler"],), p["filler"], "everything else"),
        ),
    )


def by_hand(of: Table, shape: Mapping[str, int]) -> dict[str, int]:
    """The variables of a problem; of products, CHUNK and CHUNKS from the plan's expression,
    without the space's own arithmetic.
    """
    plans = (SPLIT_PLAN, *(plan for by_name in PLANS.values() for plan in by_name.values()))
    for plan in plans:
        if of.space == space(plan):
            chunk = max(1, min(shape["K"], plan.chunk.evaluate(dict(shape))))
            return {**shape, "CHUNK": chunk, "CHUNKS": (shape["K"] + chunk - 1) // chunk}
    return of.space.environment(shape)
