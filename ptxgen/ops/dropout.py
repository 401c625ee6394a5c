"""Dropout whose mask depends on a seed, and on the element's position and column, alone."""

from __future__ import annotations

from typing import Annotated, Any

from ptxgen.errors import GradError, ShapeError
from ptxgen.numerics.formula import where
from ptxgen.numerics.option import Real
from ptxgen.numerics.select import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL
from ptxgen.numerics.signature import Signature, broadcast
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op

FLOATS = ("float32", "bfloat16", "float16", "float64")
LOW = 0xFFFFFFFF
DROPOUT = Signature(
    "dropout",
    ("x", "seeds", "positions"),
    ("out",),
    {"": {"x": "... N", "seeds": "...", "positions": "...", "out": "... N"}},
    ("M", "N"),
)
Chance = Annotated[float, Real(least=0.0, most=1.0)]


def _kept(seed: Any, position: Any, column: Any, least: Any) -> Any:
    """Formula of whether an element is kept: the first 32 bits that Philox4x32-10 returns for the
    counter (``position``, ``column``) and the key ``seed``, 64 bits each, are at least ``least``.
    """
    c = [position & LOW, (position >> 32) & LOW, column & LOW, (column >> 32) & LOW]
    k = [seed & LOW, (seed >> 32) & LOW]
    for _ in range(PHILOX_ROUNDS):
        a, b = c[0] * PHILOX_MULTIPLIERS[0], c[2] * PHILOX_MULTIPLIERS[1]
        high = [(x >> 32) & LOW for x in (a, b)]
        c = [high[1] ^ c[1] ^ k[0], b & LOW, high[0] ^ c[3] ^ k[1], a & LOW]
        k = [(key + weyl) & LOW for key, weyl in zip(k, PHILOX_WEYL, strict=True)]
    return c[0] >= least


_mask = Pointwise(_kept, "dropout_mask")
_masked = Pointwise(lambda x, kept, scale: where(kept, x * scale, 0), "masked")


def _dropped(b: Builder, x: Any, seeds: Any, positions: Any, p: float) -> Any:
    columns = b.cumsum(b.filled((x.shape[-1],), "int64", 1, seeds), exclusive=True)
    of = (b.unsqueeze(v, -1) for v in (seeds, positions))
    kept = b.call(_mask, *of, columns, round(p * 2**32))
    scale = 1.0 / (1.0 - p) if p < 1 else 1.0
    return b.call(_masked, x, kept, scale, out_dtype=b.dtype(x))


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``dropout`` by x: dy under the same mask, which is recomputed."""
    if at.needs - {"x"}:
        raise GradError("dropout has no gradients of seeds and positions")
    return {"x": _dropped(b, at.dys[0], at["seeds"], at["positions"], at.options["p"])}


@op(forms=DROPOUT, any_rank=True, vjp=_vjp, dtypes={"seeds": "int64", "positions": "int64"})
def dropout(
    b: ProgramBuilder, x: Buffer, seeds: Buffer, positions: Buffer, p: Chance = 0.5
) -> Buffer:
    """``x / (1 - p)``, or 0 with the probability ``p``, by a seed and a position for each row.

    Give each sequence a seed, ``[B, 1]``, and each row its position in the sequence, ``[T]``: the
    mask then depends neither on the rest of the batch nor on how a sequence is split into calls.

    Shapes
        ``x`` ``[..., N]``, and so the result; ``seeds`` and ``positions`` broadcast to ``[...]``.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64, and so the result; the others int64.
    Order
        Integer arithmetic: element j of a row is kept if the first 32 bits that Philox4x32-10 (as
        in :func:`ptxgen.sample`) returns for the counter (position, j) and the key seed, both 64
        bits, low words first, are at least ``round(p * 2**32)``. Then it is multiplied by ``1 / (1
        - p)`` and rounded once. :func:`ptxgen.reference.dropout` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError (``p`` beyond 0 .. 1), DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    check_dtype("x", x.dtype, FLOATS)
    if not x.shape:
        raise ShapeError("x has no dimensions; takes at least one")
    for name, view in (("seeds", seeds), ("positions", positions)):
        check_dtype(name, view.dtype, ("int64",))
        if broadcast(view.shape, x.shape[:-1]) != x.shape[:-1]:
            raise ShapeError(
                f"{name} has shape {list(view.shape)}; takes what broadcasts to "
                f"{list(x.shape[:-1])}, the rows of x"
            )
    if b.abstract or not x.size:
        return b.result(x.shape, x.dtype)
    found: Buffer = _dropped(b, x, seeds, positions, p)
    return found
