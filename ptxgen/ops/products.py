"""Products: a linear layer forward and backward, and the product of matrices."""

from __future__ import annotations

from typing import Any

from ptxgen.errors import OptionError
from ptxgen.numerics.dtype import joint
from ptxgen.numerics.gemm import DGRAD, LINEAR, MATMUL, WGRAD
from ptxgen.numerics.option import Activation, Bool, Dtype, Kernel, Layout, Tier
from ptxgen.ops import gemm
from ptxgen.ops.views import single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out


def shared(b: Builder, one: Any, other: Any) -> str:
    """Returns the dtype to which a product converts these operands."""
    return joint(b.dtype(one), b.dtype(other)) or b.dtype(one)


def _wgrad(b: Builder, x: Any, dy: Any, dtype: str, **of: Any) -> Any:
    """Computes ``linear_wgrad(x, dy)``, rounded once to ``dtype``."""
    own = shared(b, x, dy)
    return b.cast(
        b.linear_wgrad(x, dy, **of, out_dtype=dtype if dtype == own else b.wide(dy)), dtype
    )


def _linear_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``linear``: dx by ``linear_dgrad``, dW by ``linear_wgrad``, dbias as the sum of
    dy's rows (``linear_wgrad`` with a column of ones). The activation is differentiated at
    ``x · W + bias``, recomputed in f32; relu at the result.
    """
    x, w, bias = (at[n] for n in ("x", "w", "bias"))
    (dy,), found, of = at.dys, {}, at.only("layout", "tier")
    if at.options["activation"] == "relu":
        dy = b.gradient_of("relu", at.results[0], dy)
    elif at.options["activation"] not in (None, "none"):
        z = b.linear(x, w, bias, **of, out_dtype="float32")
        dy = b.gradient_of(at.options["activation"], z, dy)
    dy = b.packed(b.cast(dy, shared(b, x, w)))
    if "x" in at.needs:
        found["x"] = b.cast(b.linear_dgrad(dy, w, **of), b.dtype(x))
    if "w" in at.needs:
        found["w"] = _wgrad(b, x, dy, b.dtype(w), **of)
    if "bias" in at.needs:
        found["bias"] = bias_gradient(b, dy, b.dtype(bias))
    return found


def bias_gradient(b: Builder, dy: Any, dtype: str) -> Any:
    """Sums dy's rows to ``dtype``, as ``linear_wgrad`` of a column of ones on FMA units."""
    ones = b.filled((*dy.shape[:-1], 1), b.dtype(dy), 1.0, dy)
    own = dtype if dtype == b.dtype(dy) else b.wide(dy)
    found = b.linear_wgrad(ones, dy, layout="kn", tier="simt", out_dtype=own)
    return b.cast(b.squeeze(found, 0), dtype)


@op(forms=LINEAR, vjp=_linear_vjp)
def linear(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    bias: Buffer | None = None,
    *,
    layout: Layout,
    tier: Tier = "auto",
    activation: Activation = None,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``y = activation(x · W + bias)``, strictly batch-invariant.

    ``layout`` says how ``w`` is stored: ``"kn"`` is ``[K, N]``, ``"nk"`` is ``[N, K]``, as in
    ``torch.nn.Linear.weight``. State it: a square ``w`` fits both, with different results. Leaving
    it out is deprecated; this version then takes ``"kn"`` with a FutureWarning, the next refuses.
    :func:`ptxgen.torch.linear` takes ``"nk"`` by default, as PyTorch does.

    Shapes
        ``x`` ``[..., K]``; ``w`` ``[K, N]`` (``layout="kn"``) or ``[N, K]`` (``"nk"``, that of
        ``torch.nn.Linear``); ``bias`` ``[N]``; the result ``[..., N]``. An empty x or N = 0 gives
        an empty result; K = 0 gives ``activation(bias)``, or zeros.
    Dtypes
        float32, bfloat16, float16 or float64, the same for x and w. ``bias`` has theirs, and so
        does the result. Where these have 16 bits, ``bias`` may be float32, and so may the result,
        if ``out`` or ``out_dtype`` say so. Where one of x and w is float32 and the other has 16
        bits, the product is that of float32, with the 16-bit elements converted, exactly. Kernels
        convert those of w, and of a bias of its dtype, as they load them: a weight that is kept in
        16 bits costs half the bytes. A step before the product converts a 16-bit x.
    Tiers
        ``"simt"``: FMA units, contract ``fma/3`` (``fma64/2`` of float64); all dtypes. ``"tc"``:
        tensor cores, contract ``tc16/3``; 16-bit dtypes. ``"auto"``: tc for 16 bits, else simt.
    Storage
        Rows may be strided. Transposed views (``x.T``, ``w.T``) are recognised and cost nothing.
        Any alignment of whole elements is served; 16 bytes are fastest. All bits are the same.
    Order
        ``fma/3``: for each output ``acc = fma(x[k], w[k], acc)`` in f32 from +0.0, k ascending, in
        chunks whose length depends on K only (:data:`ptxgen.numerics.contract.FMA_CHUNKS`), chunks
        added ascending. ``tc16/3``: ``acc = dot16(x[k:k+16], w[k:k+16], acc)``, k ascending, in
        chunks as well (:data:`ptxgen.numerics.contract.TC16_CHUNKS`); its bits depend on the GPU's
        architecture (:data:`ptxgen.numerics.contract.TENSOR_CORES`). Both:
        then ``+ bias``, one rounding in f32; then the activation, a fixed sequence of f32 steps
        (relu is exact; docs/reference/contracts.md has the largest errors of the others); then one
        rounding to the result's dtype. An element of the result depends on its row of x, its column
        of W (and of bias) and K, and on nothing else: not on other rows or columns, nor on how many
        there are. :func:`ptxgen.reference.linear` returns the same bits.
    Options
        ``activation``: None, ``"relu"``, ``"gelu"`` (erf), ``"gelu_tanh"`` or ``"silu"``; none in
        float64. ``out``: where to write (it is returned then); rows of stride 1, sharing no memory
        with the arguments. ``stream``: a handle, a torch or CuPy stream, or an object with
        ``__cuda_stream__``; default: the current stream of the arguments' framework. A call
        does not wait for the GPU; NumPy arrays alone are computed on the default device
        (:class:`ptxgen.use_device`) and copied back. ``kernel``: forces the route of this name
        (tests, debugging): refused unless its ``requires`` admits the problem. The bits stay the
        same.
    Gradients
        None are recorded: arguments that require grad are refused while grad mode is on.
        :func:`ptxgen.torch.linear` records them.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before
        anything is launched or written.
    Source
        ``ptxgen/ops/products.py``, ``ptxgen/tiles``.

    >>> import numpy, ptxgen
    >>> x = numpy.array([[1, 2], [3, 4]], "f4")
    >>> ptxgen.reference.linear(x, x, numpy.array([-10, 0], "f4"), activation="relu", layout="kn")
    array([[ 0., 10.],
           [ 5., 22.]], dtype=float32)
    >>> ptxgen.linear(x, x, layout="km")
    Traceback (most recent call last):
    ptxgen.errors.OptionError: layout is 'km'; takes 'kn', 'nk'
    """
    return gemm.lowered(
        b,
        LINEAR,
        {"x": x, "w": w, "bias": bias},
        single(out),
        layout=layout,
        tier=tier,
        out_dtype=out_dtype,
        activation=activation,
        kernel=kernel,
    )


def _dgrad_vjp(b: Builder, at: Backward) -> Gradients:
    dy, w, of = at["dy"], at["w"], at.only("layout", "tier")
    g, found = b.packed(b.cast(at.dys[0], shared(b, dy, w))), {}
    if "dy" in at.needs:
        found["dy"] = b.cast(b.linear(g, w, **of), b.dtype(dy))
    if "w" in at.needs:
        found["w"] = _wgrad(b, g, dy, b.dtype(w), **of)
    return found


@op(forms=DGRAD, vjp=_dgrad_vjp)
def linear_dgrad(
    b: ProgramBuilder,
    dy: Buffer,
    w: Buffer,
    *,
    layout: Layout,
    tier: Tier = "auto",
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``dx = dy · Wᵀ``, strictly batch-invariant. State ``layout``, as for :func:`ptxgen.linear`.

    Shapes
        ``dy`` ``[..., N]``; ``w`` ``[K, N]`` (``layout="kn"``) or ``[N, K]`` (``"nk"``); the result
        ``[..., K]``. N = 0 gives zeros.
    Dtypes
        float32, bfloat16, float16 or float64, the same for both, and so the result; float32 from
        16 bits, if ``out`` or ``out_dtype`` say so. float32 with 16 bits is served as by
        :func:`ptxgen.linear`.
    Order
        The contracts of :func:`ptxgen.linear`, summed over n ascending, in chunks whose length
        depends on N only.
        :func:`ptxgen.reference.linear_dgrad` returns the same bits.
    Errors
        Those of :func:`ptxgen.linear`; storage and the other arguments are as there.
    Source
        ``ptxgen/ops/products.py``, ``ptxgen/tiles``.

    >>> import numpy, ptxgen
    >>> dy, w = numpy.ones((1, 3), "f4"), numpy.arange(6, dtype="f4").reshape(2, 3)
    >>> ptxgen.reference.linear_dgrad(dy, w, layout="kn")
    array([[ 3., 12.]], dtype=float32)
    """
    of = {"dy": dy, "w": w}
    return gemm.lowered(
        b, DGRAD, of, single(out), layout=layout, tier=tier, out_dtype=out_dtype, kernel=kernel
    )


def _wgrad_vjp(b: Builder, at: Backward) -> Gradients:
    x, dy, of = at["x"], at["dy"], at.only("layout", "tier")
    g, found = b.packed(b.cast(at.dys[0], shared(b, x, dy))), {}
    if "x" in at.needs:
        found["x"] = b.cast(b.linear_dgrad(dy, g, **of), b.dtype(x))
    if "dy" in at.needs:
        found["dy"] = b.cast(b.linear(x, g, **of), b.dtype(dy))
    return found


@op(forms=WGRAD, vjp=_wgrad_vjp)
def linear_wgrad(
    b: ProgramBuilder,
    x: Buffer,
    dy: Buffer,
    *,
    layout: Layout,
    tier: Tier = "auto",
    out: Out = None,
    accumulate: Bool = False,
    chain: Bool = False,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``dW = xᵀ · dy (+ out)``, summed over the batch. State ``layout``, that of the result, as for
    :func:`ptxgen.linear`.

    Shapes
        ``x`` ``[..., K]``, ``dy`` ``[..., N]`` with the same leading dimensions; the result is
        stored like the weight: ``[K, N]`` (``layout="kn"``) or ``[N, K]`` (``"nk"``). An empty
        batch gives zeros.
    Dtypes
        float32, bfloat16, float16 or float64, the same for both. The result is float32 (float64 of
        float64) unless ``out`` or ``out_dtype`` give the operands' dtype (one rounding, at the
        end). float32 with 16 bits is served as by :func:`ptxgen.linear`.
    Order
        The contracts of :func:`ptxgen.linear`, summed over m ascending, in chunks whose length
        depends on M only, so that the bits of a column depend on no other column; with
        ``accumulate`` then ``+ out`` in f32 (so an old -0.0 plus an empty sum becomes +0.0).
        :func:`ptxgen.reference.linear_wgrad` returns the same bits (``out_old=``).
    Options
        ``accumulate`` adds to ``out``, which must be given then.

        ``chain``: the sum over m is one chain, never split into chunks; with ``accumulate`` it
        begins with ``out`` instead of +0.0, and nothing is added at its end. So, with a float32
        ``out`` (float64 of float64), the bits do not depend on how a batch is split into calls: a
        call over the first a rows, then one with ``accumulate`` over the others, return the bits of
        one call over all. In the contract ``tc16`` (:func:`ptxgen.linear`) a must be a multiple of
        16. A 16-bit ``out`` is rounded at the end of each call, and the next begins with that.
    Errors
        Those of :func:`ptxgen.linear`. With ``chain`` x and dy are read in rows of stride 1, and
        transposed views are refused. Everything else is as there.
    Source
        ``ptxgen/ops/products.py``, ``ptxgen/tiles``.

    >>> import numpy, ptxgen
    >>> x, dy = numpy.ones((4, 2), "f4"), numpy.arange(4, dtype="f4").reshape(4, 1)
    >>> ptxgen.reference.linear_wgrad(x, dy, layout="nk")
    array([[6., 6.]], dtype=float32)
    >>> ptxgen.linear_wgrad(x, dy, accumulate=True, layout="kn")
    Traceback (most recent call last):
    ptxgen.errors.OptionError: accumulate=True adds to out, but out is None; pass out=
    """
    if accumulate and out is None:
        raise OptionError("accumulate=True adds to out, but out is None; pass out=")
    return gemm.lowered(
        b,
        WGRAD,
        {"x": x, "dy": dy},
        single(out),
        layout=layout,
        tier=tier,
        out_dtype=out_dtype,
        accumulate=accumulate,
        chain=chain,
        kernel=kernel,
    )


def _matmul_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``matmul``, as products. The gradient of a broadcast operand is a sum of
    products in f32, rounded once: ``linear_wgrad`` for a matrix b, else a sum over the batch. That
    of a bias, and derivatives of activations, are as those of ``linear``.
    """
    tier, transposed = at.options["tier"], {n: at.options[f"transpose_{n}"] for n in ("a", "b")}
    left, right = (b.transpose(at[n]) if transposed[n] else at[n] for n in ("a", "b"))
    (dy,), activation, bias = at.dys, at.options["activation"], at["bias"]
    if activation == "relu":
        dy = b.gradient_of("relu", at.results[0], dy)
    elif activation not in (None, "none"):
        z = b.matmul(left, right, bias, tier=tier, out_dtype="float32")
        dy = b.gradient_of(activation, z, dy)
    g, found = b.packed(b.cast(dy, shared(b, left, right))), {}

    def gradient(one: Any, other: Any, of: Any) -> Any:
        if tuple(of.shape[:-2]) == tuple(g.shape[:-2]):
            return b.cast(b.matmul(one, other, tier=tier), b.dtype(of))
        y = b.matmul(one, other, tier=tier, out_dtype=b.wide(of))
        return b.cast(b.summed_to(y, of.shape), b.dtype(of))

    if "a" in at.needs:
        found["a"] = gradient(g, b.transpose(right), left)
    if "b" in at.needs and len(right.shape) == 2 < len(
        left.shape
    ):  # all rows of a share one matrix
        found["b"] = _wgrad(b, left, g, b.dtype(right), layout="kn", tier=tier)
    elif "b" in at.needs:
        found["b"] = gradient(b.transpose(left), g, right)
    found = {n: b.transpose(d) if transposed[n] else d for n, d in found.items()}
    if "bias" in at.needs:
        found["bias"] = bias_gradient(b, g, b.dtype(bias))
    return found


_LAYOUTS = {(False, False): "nn", (False, True): "nt", (True, False): "tn", (True, True): "tt"}
_OPTIONS = {name: {"transpose_a": a, "transpose_b": b} for (a, b), name in _LAYOUTS.items()}


@op(forms=MATMUL, vjp=_matmul_vjp, layouts=_OPTIONS)
def matmul(
    to: ProgramBuilder,
    a: Buffer,
    b: Buffer,
    bias: Buffer | None = None,
    *,
    transpose_a: Bool = False,
    transpose_b: Bool = False,
    tier: Tier = "auto",
    activation: Activation = None,
    out: Out = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``activation(op(a) · op(b) + bias)`` of matrices; op transposes with ``transpose_a`` or
    ``transpose_b``.

    Shapes
        ``a`` ``[..., M, K]`` (``[..., K, M]`` with ``transpose_a``); ``b`` ``[..., K, N]``
        (``[..., N, K]`` with ``transpose_b``); ``bias`` ``[N]``, for all products of a batch; the
        result ``[..., M, N]``. The leading dimensions broadcast as NumPy's do. K = 0 gives
        ``activation(bias)``, or zeros.
    Dtypes
        float32, bfloat16, float16 or float64, the same for both, and so the result; float32 from
        16 bits, if ``out`` or ``out_dtype`` say so. ``bias``, and float32 with 16 bits: as of
        :func:`ptxgen.linear`.
    Order
        That of :func:`ptxgen.linear`: ``matmul(a, b)`` and ``linear(a, b)`` have one contract. Each
        product of a batch has the bits of that product alone, and so has each slice of its rows and
        columns.
        :func:`ptxgen.reference.matmul` returns the same bits.
    Storage
        Leading dimensions may have any strides, also 0, and nothing is copied. A launch iterates
        over two batch dimensions of up to 65535 matrices each, after evenly spaced ones are merged:
        enough for the heads of a transposed ``[B, S, H, D]``. If more dimensions remain, there is a
        launch for each index along the shortest.
        ``a.T`` and ``transpose_a`` are equivalent, at the same cost.
    Errors
        Those of :func:`ptxgen.linear`; the other arguments are as there.
    Source
        ``ptxgen/ops/products.py``, ``ptxgen/tiles``.

    >>> import numpy, ptxgen
    >>> a, b = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.ones((2, 3), "f4")
    >>> ptxgen.reference.matmul(a, b, transpose_b=True)
    array([[ 3.,  3.],
           [12., 12.]], dtype=float32)
    """
    return gemm.lowered(
        to,
        MATMUL,
        {"a": a, "b": b, "bias": bias},
        single(out),
        layout=_LAYOUTS[transpose_a, transpose_b],
        tier=tier,
        out_dtype=out_dtype,
        activation=activation,
        kernel=kernel,
    )
