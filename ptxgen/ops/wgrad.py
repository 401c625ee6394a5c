"""``linear_wgrad``: the gradient of a linear layer's weight."""

from __future__ import annotations

from typing import Any

from ptxgen.ops.gemm import OPS
from ptxgen.ops.run import caller

run = caller(OPS["linear_wgrad"])


def linear_wgrad(
    x: Any,
    dy: Any,
    *,
    layout: str = "kn",
    tier: str = "auto",
    out: Any = None,
    accumulate: bool = False,
    chain: bool = False,
    out_dtype: str | None = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``dW = xᵀ · dy (+ out)``, summed over the batch.

    Shapes
        ``x`` ``[..., K]``, ``dy`` ``[..., N]`` with the same leading dimensions; the result is
        stored like the weight: ``[K, N]`` (``layout="kn"``) or ``[N, K]`` (``"nk"``). An empty
        batch gives zeros. The result is float32 unless ``out`` or ``out_dtype`` give
        the operands' dtype (one rounding, after everything).
    Bits
        The contracts of :func:`ptxgen.linear`, summed over m ascending in chunks whose length
        depends on the shape only (:data:`ptxgen.numerics.contract.BATCH` and ``TC_BATCH``), chunks
        added ascending in f32; with ``accumulate`` then ``+ out`` in f32 (so an old -0.0 plus
        nothing becomes +0.0). :func:`ptxgen.reference.linear_wgrad` returns the same bits
        (``out_old=``).

    ``accumulate`` adds to ``out``, which must be given then.

    ``chain``: the sum over m is one chain, never cut; with ``accumulate`` it begins with what
    ``out`` holds instead of +0.0, and nothing is added at its end. So, with an ``out`` of float32
    (float64 of float64), the bits do not depend on how a batch is cut into calls: one over its
    first a rows, then one with ``accumulate`` over the others, give those of one call over all. In
    the contract ``tc16`` (:func:`ptxgen.linear`) a is to be a multiple of 16, otherwise anything.
    An ``out`` of 16 bits is rounded to at the end of each call, with which the next one begins.

    x and dy are read in rows of stride 1; transposed views are refused. Everything else is as in
    :func:`ptxgen.linear`.

    >>> import numpy, ptxgen
    >>> x, dy = numpy.ones((4, 2), "f4"), numpy.arange(4, dtype="f4").reshape(4, 1)
    >>> ptxgen.reference.linear_wgrad(x, dy, layout="nk")
    array([[6., 6.]], dtype=float32)
    >>> ptxgen.linear_wgrad(x, dy, accumulate=True)
    Traceback (most recent call last):
    ptxgen.errors.OptionError: accumulate=True adds to out, but out is None; pass out=
    """
    return run(x, dy, out, stream, (layout, tier, bool(accumulate), bool(chain), out_dtype, kernel))
