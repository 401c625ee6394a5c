"""``linear``: the forward pass of a linear layer."""

from __future__ import annotations

from typing import Any

from ptxgen.ops.gemm import OPS
from ptxgen.ops.run import caller

run = caller(OPS["linear"])


def linear(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    layout: str = "kn",
    tier: str = "auto",
    activation: str | None = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> Any:
    """``y = activation(x · W + bias)``, strictly batch-invariant.

    Shapes
        ``x`` ``[..., K]``; ``w`` ``[K, N]`` (``layout="kn"``) or ``[N, K]`` (``"nk"``, that of
        ``torch.nn.Linear``); ``bias`` ``[N]``; the result ``[..., N]``. An empty x or N = 0 gives
        an empty result; K = 0 gives ``activation(bias)``, or zeros.
    Dtypes
        float32, or bfloat16 or float16, the same for x and w. ``bias`` has theirs or is float32; so
        does the result: theirs unless ``out`` or ``out_dtype`` say ``"float32"``.
    Tiers
        ``"simt"``: FMA units, contract ``fma/2``; all dtypes. ``"tc"``: tensor cores, contract
        ``tc16/2``; 16-bit dtypes. ``"auto"``: simt for float32, else tc.
    Storage
        Rows may be strided. Transposed views (``x.T``, ``w.T``) are recognised and cost nothing.
        Any alignment of whole elements is served; 16 bytes are fastest. All bits are the same.
    Bits
        ``fma/2``: for each output ``acc = fma(x[k], w[k], acc)`` in f32 from +0.0, k ascending, in
        chunks whose length depends on (N, K) only (:data:`ptxgen.numerics.contract.ROWS`), chunks
        added ascending. ``tc16/2``: ``acc = dot16(x[k:k+16], w[k:k+16], acc)``, k ascending, in
        chunks likewise (:data:`ptxgen.numerics.contract.TC_ROWS`); its bits depend on the GPU's
        architecture (:data:`ptxgen.numerics.contract.TENSOR_CORES`). Both:
        then ``+ bias``, one rounding in f32; then the activation, a fixed sequence of f32 steps
        (relu is exact; docs/contracts.md has the largest errors of the others); then one rounding
        to the result's dtype. A row of the result depends on its row of x, and on no other row nor
        their number.
        :func:`ptxgen.reference.linear` returns the same bits.

    ``activation``: None, ``"relu"``, ``"gelu"`` (erf), ``"gelu_tanh"`` or ``"silu"``. ``out``:
    where to write (it is returned then); rows of stride 1, sharing no memory with the arguments.
    ``stream``: a handle, a torch or CuPy stream, or an object with ``__cuda_stream__``; default:
    the current stream of the arguments' framework. Nothing waits, except that NumPy arrays
    are computed on the default device (:class:`ptxgen.use_device`) and copied back.
    ``kernel``: forces the route of this name (tests, debugging): refused unless
    its ``requires`` admits the problem. The bits stay the same.

    Nothing is recorded for autograd: arguments that require grad are refused while grad mode
    is on.

    Raises ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before
    anything is launched or written. Source: :mod:`ptxgen.ops`, ``ptxgen/tiles``.

    >>> import numpy, ptxgen
    >>> x = numpy.array([[1, 2], [3, 4]], "f4")
    >>> ptxgen.reference.linear(x, x, numpy.array([-10, 0], "f4"), activation="relu")
    array([[ 0., 10.],
           [ 5., 22.]], dtype=float32)
    >>> ptxgen.linear(x, x, layout="km")
    Traceback (most recent call last):
    ptxgen.errors.OptionError: layout is 'km'; takes 'kn', 'nk'
    """
    return run(x, w, bias, out, stream, (layout, tier, activation, out_dtype, kernel))
