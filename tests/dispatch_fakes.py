"""Kernels and route tables that exist only in tests of the dispatcher, sound and unsound."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ptxgen.dispatch.emit import Table
from ptxgen.expr import TRUE, Expr, all_of, ceil_div, const, maximum, minimum
from ptxgen.numerics.contract import FMA, Contract, Plan
from ptxgen.spec import (
    ALIGN_A,
    ALIGN_B,
    CHUNKS,
    GRID_MAX,
    INDEX_MAX,
    SMS,
    WORKSPACE_MAX,
    K,
    KernelSpec,
    M,
    N,
    Route,
)


@dataclass(frozen=True)
class Fake(KernelSpec):
    """A kernel whose formulas are given, rather than derived."""

    label: str
    ctas: Expr
    correct: Expr
    scratch: Expr = dataclasses.field(default_factory=lambda: const(0))
    bounds: tuple[tuple[str, Expr, int], ...] = ()
    shared: int = 0
    min_arch: str = "sm_80"
    dtype: str = "f32"
    contract: Contract = FMA

    template = "fake.cu.j2"
    threads = 128

    @property
    def name(self) -> str:
        return self.label

    @property
    def shared_bytes(self) -> int:
        return self.shared

    @property
    def grid(self) -> Expr:
        return self.ctas

    @property
    def workspace(self) -> Expr:
        return self.scratch

    @property
    def requires(self) -> Expr:
        return self.correct

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return self.bounds

    def describe(self) -> tuple[str, ...]:
        return ()


SPLIT_PLAN = Plan("rows", maximum(256, ceil_div(K, 16)), batch_invariant=True)


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
            scratch=scratch,
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
        "NN",
        plan,
        (
            Route((k["big"],), p["big"], "fills the GPU"),
            Route((k["partial"], k["reduce"]), p["partial"], "long reductions, few tiles"),
            Route((k["thin"],), p["thin"], "thin outputs"),
            Route((k["filler"],), p["filler"], "everything else"),
        ),
    )
