"""``matmul``: the bare product of matrices, or of batches of them."""

from __future__ import annotations

from typing import Any

from ptxgen.ops.gemm import OPS
from ptxgen.ops.run import caller

run = caller(OPS["matmul"])

_LAYOUTS = {(False, False): "nn", (False, True): "nt", (True, False): "tn", (True, True): "tt"}


def matmul(
    a: Any,
    b: Any,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tier: str = "auto",
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``op(a) · op(b)`` of matrices, ``op`` being a transposition where asked for.

    Shapes
        ``a`` ``[..., M, K]`` (``[..., K, M]`` with ``transpose_a``); ``b`` ``[..., K, N]``
        (``[..., N, K]`` with ``transpose_b``); the result ``[..., M, N]``. The leading dimensions
        broadcast as NumPy's do; all products are one launch. K = 0 gives zeros.
    Bits
        Those of :func:`ptxgen.linear`: ``matmul(a, b)`` and ``linear(a, b)`` are one contract,
        strictly batch-invariant. Each product of a batch has the bits that it has alone.
        :func:`ptxgen.reference.matmul` returns the same bits.
    Batches in memory
        Matrices may be any stride apart, also none, and nothing is copied: the leading dimensions
        of a, b and out may lie along one stride each, or two (the heads of a transposed
        ``[B, S, H, D]``). More are refused with ShapeError, and so are more than 65535 matrices
        along one of the two (where there is only one it is cut in two, if a divisor allows).

    Passing ``a.T`` and asking for ``transpose_a`` are the same thing, at the same cost. Dtypes,
    storage, the other arguments and errors are those of :func:`ptxgen.linear`.

    >>> import numpy, ptxgen
    >>> a, b = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.ones((2, 3), "f4")
    >>> ptxgen.reference.matmul(a, b, transpose_b=True)
    array([[ 3.,  3.],
           [12., 12.]], dtype=float32)
    """
    layout = _LAYOUTS[bool(transpose_a), bool(transpose_b)]
    return run(a, b, out, stream, (layout, tier, out_dtype, kernel))
