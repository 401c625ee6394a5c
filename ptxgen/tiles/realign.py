"""Routes for misaligned operands: a copy into rows aligned to 16 bytes, then a kernel by vectors.

A copy costs a launch, and reads and writes the operand once; a kernel that copies by elements loses
up to half of its speed. The cost model predicts which is faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxgen.expr import Expr, const
from ptxgen.numerics.contract import ITEMSIZE, K, M, N
from ptxgen.spec import ALIGN_A, ALIGN_B, GemmSpec, KernelSpec, Route, Step
from ptxgen.spec.realign import VECTOR, RealignSpec, pitch

ALIGN = {"a": ALIGN_A, "b": ALIGN_B}


def realigned(operands: str, kernel: GemmSpec, *then: KernelSpec) -> tuple[Step | KernelSpec, ...]:
    """Returns the steps that copy ``operands`` ("a", "b" or "ab") into aligned rows, and run
    ``kernel`` and ``then``.
    """
    stored = {"a": (M, K), "b": (K, N)}
    copied = {
        x: stored[x] if kernel.layout["ab".index(x)] == "N" else stored[x][::-1] for x in operands
    }
    return *copying(copied, ITEMSIZE[kernel.dtype], kernel), *then


def copying(
    matrices: Mapping[str, tuple[Expr, Expr]], size: int, kernel: KernelSpec
) -> tuple[Step, Step]:
    """Returns the steps that copy ``matrices`` into aligned rows, and run ``kernel`` on the copies.
    ``matrices``: rows and columns by the names of the kernel's operands; ``size``: bytes of an
    element.
    """
    copying: tuple[dict[str, str], dict[str, Expr]] = {}, {}
    reading: tuple[dict[str, str], dict[str, Expr]] = {}, {}
    for i, (x, (rows, cols)) in enumerate(matrices.items()):
        copy = f"{x}_realigned"
        copying[0].update({f"x{i}": x, f"ldx{i}": f"ld{x}", f"y{i}": copy})
        copying[1].update({f"ROWS{i}": rows, f"COLS{i}": cols})
        reading[0].update({x: copy})
        reading[1].update(
            {f"ALIGN_{x.upper()}": const(VECTOR), f"LD{x.upper()}": pitch(cols, size)}
        )
    return Step(RealignSpec(size, len(matrices)), *copying), Step(kernel, *reading)


def routes(
    kernel: GemmSpec, *then: KernelSpec, operands: tuple[str, ...] = ("a", "b", "ab")
) -> Iterator[Route]:
    """Yields a route for each entry of ``operands`` whose alignment ``kernel`` needs: it copies
    these operands into aligned rows, then runs ``kernel`` and ``then``.
    """
    needs = "".join(x for x in "ab" if ALIGN[x].args[0] in kernel.requires.variables())
    for copied in operands:
        if set(copied) <= set(needs):
            reason = f"{' and '.join(copied.upper())} not aligned to 16 bytes: copied first"
            yield Route(realigned(copied, kernel, *then), reason=reason)
