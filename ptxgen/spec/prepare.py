"""Base of the kernels that convert operands into scratch memory, for later kernels of a route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ptxgen.expr import Expr, all_of
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, SCRATCH_MAX, WARP, KernelSpec, check


class PreparingSpec(KernelSpec):
    """Base of the kernels that convert operands ahead of a product. A thread converts
    ``vectors_per_thread`` vectors; a CTA has ``cta_threads`` threads.
    """

    cta_threads: int
    vectors_per_thread: int

    prepares: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "cta_threads": "threads of a CTA",
    }

    def check_threads(self) -> None:
        """Raises SpecError for partial warps, ``vectors_per_thread`` < 1, or an unknown
        architecture.
        """
        name = self.name
        check(self.cta_threads % WARP == 0, name, "whole warps", self.cta_threads, WARP)
        check(
            self.vectors_per_thread >= 1,
            name,
            "vectors_per_thread",
            self.vectors_per_thread,
            ">= 1",
        )
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def threads(self) -> int:
        return self.cta_threads

    @property
    def slots(self) -> int:
        """Resident CTAs per SM."""
        return 2048 // self.threads

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def requires(self) -> Expr:
        return all_of(size <= SCRATCH_MAX for size in self.scratch.values())

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        reach = (self.grid + 1) * (self.threads * self.vectors_per_thread)
        return (("first + TURNS * THREADS", reach, INDEX_MAX),)
