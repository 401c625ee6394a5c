"""``linear_dgrad``: the gradient of a linear layer's input."""

from __future__ import annotations

from typing import Any

from ptxgen.ops.gemm import OPS
from ptxgen.ops.run import caller

run = caller(OPS["linear_dgrad"])


def linear_dgrad(
    dy: Any,
    w: Any,
    *,
    layout: str = "kn",
    tier: str = "auto",
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``dx = dy · Wᵀ``, strictly batch-invariant.

    Shapes
        ``dy`` ``[..., N]``; ``w`` ``[K, N]`` (``layout="kn"``) or ``[N, K]`` (``"nk"``); the result
        ``[..., K]``. N = 0 gives zeros.
    Bits
        The contracts of :func:`ptxgen.linear`, summed over n ascending: ``fma/2`` in chunks whose
        length depends on (N, K) only (:data:`ptxgen.numerics.contract.ROWS`), ``tc16/2`` likewise
        (:data:`ptxgen.numerics.contract.TC_ROWS`).
        :func:`ptxgen.reference.linear_dgrad` returns the same bits.

    Dtypes, storage, the other arguments and errors are those of :func:`ptxgen.linear`.

    >>> import numpy, ptxgen
    >>> dy, w = numpy.ones((1, 3), "f4"), numpy.arange(6, dtype="f4").reshape(2, 3)
    >>> ptxgen.reference.linear_dgrad(dy, w)
    array([[ 3., 12.]], dtype=float32)
    """
    return run(dy, w, out, stream, (layout, tier, out_dtype, kernel))
