"""Reduce kernels: they add the partial sums of a split reduction and apply the epilogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ptxgen.cost.kernel import KernelCost, Phase
from ptxgen.expr import Expr, all_of, ceil_div, const
from ptxgen.numerics.contract import ITEMSIZE, K, M, N
from ptxgen.spec.abi import Abi
from ptxgen.spec.base import GRID_MAX, INDEX_MAX, WARP, WORKSPACE_MAX, KernelSpec, check
from ptxgen.spec.gemm import CHUNK, CHUNKS, CONTEXT, MEANINGS, PARTIAL_SUMS, abi


class FinishingSpec(KernelSpec):
    """Base of the kernels that finish a product after the GEMM kernel: they add partial sums or
    apply the epilogue. A CTA has ``cta_threads`` threads.
    """

    cta_threads: int

    meanings: ClassVar[Mapping[str, str]] = MEANINGS

    def __post_init__(self) -> None:
        whole = self.cta_threads >= WARP and self.cta_threads % WARP == 0
        check(whole, self.name, "whole warps", self.cta_threads, WARP)

    @property
    def context(self) -> Mapping[str, Any]:
        return CONTEXT

    @property
    def waits(self) -> bool:
        return True

    @property
    def threads(self) -> int:
        return self.cta_threads

    @property
    def shared_bytes(self) -> int:
        return 0

    def moving(self, steps: Expr, loads: Expr, stores: Expr, unit: str) -> KernelCost:
        """Returns the cost of a kernel that only moves data: ``loads`` bytes, in ``steps``
        dependent steps of a ``unit`` (one of :data:`ptxgen.cost.kernel.UNITS`), and ``stores``
        bytes stored.
        """
        return KernelCost(8, self.grid, (Phase(unit, steps, const(0)),), loads, loads, stores)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}",
            f"CTAs {self.grid} of {self.threads} threads",
        )


class SumsSpec(FinishingSpec):
    """A kernel that adds partial sums in ascending order and applies the epilogue.

    A thread computes ``outputs_per_thread`` outputs; the loads of ``chunks_in_flight`` chunks are
    in flight together. The workspace is [CHUNKS][M][N]. From compute capability 9.0 on the kernel
    begins with ``griddepcontrol.wait``, so it may be launched before the one ahead of it ends.
    """

    chunks_in_flight: int

    family: ClassVar[str] = "reduce"

    if TYPE_CHECKING:

        @property
        def outputs_per_thread(self) -> int: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        check(
            self.chunks_in_flight >= 1, self.name, "chunks_in_flight", self.chunks_in_flight, ">= 1"
        )

    @property
    def partial_bytes(self) -> Expr:
        """Bytes of the partial sums of all chunks."""
        return PARTIAL_SUMS * ITEMSIZE[self.contract.accumulator]

    @property
    def grid(self) -> Expr:
        return ceil_div(M * N, self.cta_threads * self.outputs_per_thread)

    @property
    def cost(self) -> KernelCost:
        unit = "fma64" if self.contract.accumulator == "f64" else "fma"
        steps, results = ceil_div(CHUNKS, self.chunks_in_flight), M * N * ITEMSIZE[self.dtype]
        return self.moving(steps, self.partial_bytes, results, unit)

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {"workspace": self.partial_bytes}

    @property
    def abi(self) -> Abi:
        return abi(self.dtype)

    @property
    def requires(self) -> Expr:
        return all_of((self.partial_bytes <= WORKSPACE_MAX, self.grid <= GRID_MAX))

    def bounds(self, ahead: str, count: int, last: str, most: Expr) -> tuple[Any, ...]:
        """Returns the bounds of the kernel's 32-bit index arithmetic
        (:attr:`KernelSpec.index_bounds`). ``ahead``: C++ expression of the next chunk to load,
        which is at most ``count`` past the last; ``last``: C++ expression of the last output's
        index, which is at most ``most``.
        """
        return (
            ("k + chunk - 1", K + CHUNK - 1, INDEX_MAX),
            (ahead, CHUNKS + count, INDEX_MAX),
            ("outputs", M * N, INDEX_MAX),
            (last, most, INDEX_MAX),
        )
