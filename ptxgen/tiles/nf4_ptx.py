"""The routes of products with NF4 weights whose kernels are written in PTX.

Those of f32 (tier "simt") leave the sums of the plan's chunks in scratch memory, where a reduce
kernel adds them and goes on with the epilogue. Those of ``accumulate="f64"`` have one chain, whose
value is the result but for bias and activation, which a second kernel sees to. On sm_90 they run on
tensor cores.
"""

from __future__ import annotations

from ptxgen.numerics.contract import N
from ptxgen.numerics.nf4 import WIDE
from ptxgen.spec import KernelSpec, Route, Step
from ptxgen.spec.nf4_ptx import FinishSpec, Nf4MmaSpec, Nf4PtxSpec
from ptxgen.spec.simt import ReduceSpec

NAMED: dict[str, KernelSpec] = {
    "nf4_gemm": Nf4PtxSpec("NT"),
    "nf4_gemm_f64": Nf4PtxSpec("NT", bm=16, tm=8, contract=WIDE),
    "nf4_dgrad": Nf4PtxSpec("NN", bm=16, tm=8, tn=8),
    "nf4_dgrad_f64": Nf4PtxSpec("NN", bm=16, tm=8, tn=4, contract=WIDE),
}
"""The kernels that are emitted for any target, by short names."""


def routes(layout: str) -> tuple[Route, ...]:
    """Those of f32, for few rows."""
    few = Nf4PtxSpec(layout)
    reduce = Step(ReduceSpec(), {"b": "data"})  # neither operand is read
    return tuple(
        Route(
            (Step(kernel, {"c": "workspace"}, {"LDC": N}), reduce),
            reason="few rows: the weight is read as it is stored",
        )
        for kernel in (few,)
    )


def wide_routes(layout: str) -> tuple[Route, ...]:
    """Those of sums in f64; the last serves everything."""
    then = (FinishSpec(),) if layout == "NT" else ()
    return (
        Route((Nf4MmaSpec(layout), *then), reason="sums in f64 on tensor cores"),
        Route((Nf4PtxSpec(layout, contract=WIDE, align_a=4), *then), reason="everything else"),
    )
