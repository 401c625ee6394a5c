"""The parts that a GEMM kernel is made of: ``Kernel = Schedule x Load x MainLoop x Split x Store``.

The main loop is the kernel's template. Every other part is a frozen dataclass that names its macro
file and rejects kernels that it does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.spec.gemm.kernel import Kernel
from ptxgen.spec.gemm.loads import Load
from ptxgen.spec.gemm.schedules import Schedule
from ptxgen.spec.gemm.splits import Split
from ptxgen.spec.gemm.stores import Store


@dataclass(frozen=True)
class Parts:
    """The four parts from which a GEMM kernel is made: ``schedule`` (order of work items), ``load``
    (fills stages), ``split`` (sums the chunks) and ``store`` (writes tiles).
    """

    schedule: Schedule
    load: Load
    split: Split
    store: Store

    @property
    def map_rank(self) -> int:
        """Rank of the tensor maps: 2 for a matrix, 4 with coordinates of a batch or of a tap."""
        return 4 if self.schedule.batched else self.load.map_rank

    @property
    def begin_tile(self) -> str:
        """C++ statements before the first chunk of a tile."""
        return self.schedule.begin_tile + self.load.begin_tile

    @property
    def each(self) -> tuple[Schedule, Load, Split, Store]:
        """All parts, in the order of the kernel's description."""
        return self.schedule, self.load, self.split, self.store

    def __str__(self) -> str:
        return " x ".join(repr(part) for part in self.each)

    def check(self, kernel: Kernel) -> None:
        """Raises SpecError if a part does not fit the kernel."""
        for part in self.each:
            part.check(kernel)
