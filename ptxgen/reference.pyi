# As `ptxgen generate` writes it.
from collections.abc import Sequence
from numpy.typing import ArrayLike, NDArray
from typing import Any, Literal, overload

def activate(name: str | None, x: ArrayLike) -> NDArray[Any]: ...
def adaptive_avg_pool(x: ArrayLike, size: Sequence[int], *, stream: Any = None) -> NDArray[Any]: ...
def adaptive_max_pool(
    x: ArrayLike,
    size: Sequence[int],
    *,
    stream: Any = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def amax(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def amin(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def argmax(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def argmin(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def argsort(x: ArrayLike, axis: int = -1, *, descending: bool = False) -> NDArray[Any]: ...
@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    return_lse: Literal[False] = False,
    check: bool = False,
    arch: str = 'sm_90',
) -> NDArray[Any]: ...
@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    return_lse: Literal[True],
    check: bool = False,
    arch: str = 'sm_90',
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    return_lse: bool,
    check: bool = False,
    arch: str = 'sm_90',
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def attention_grad(
    do: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    o: ArrayLike,
    lse: ArrayLike,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    bias_grad: bool = False,
    sinks_grad: bool = False,
    check: bool = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> tuple[NDArray[Any], ...]: ...
def avg_pool(
    x: ArrayLike,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    ceil: bool = False,
    count_padding: bool = True,
    divisor: int = 0,
    stream: Any = None,
) -> NDArray[Any]: ...
def batch_norm(
    x: ArrayLike,
    running_mean: ArrayLike,
    running_var: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-05,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def batch_norm_train(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    *,
    momentum: float = 0.1,
    eps: float = 1e-05,
    stream: Any = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def bincount(x: ArrayLike, minlength: int, weights: ArrayLike | None = None) -> NDArray[Any]: ...
def chain(
    a: ArrayLike,
    b: ArrayLike,
    chunk: int,
    begin: ArrayLike | None = None,
) -> NDArray[Any]: ...
def chain16(
    a: ArrayLike,
    b: ArrayLike,
    chunk: int,
    dtype: str,
    core: Any,
    begin: ArrayLike | None = None,
) -> NDArray[Any]: ...
def col2im(
    x: ArrayLike,
    size: Sequence[int],
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    stream: Any = None,
) -> NDArray[Any]: ...
def conv(
    x: ArrayLike,
    w: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    activation: str | None = None,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def conv_dgrad(
    dy: ArrayLike,
    w: ArrayLike,
    image: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def conv_transpose(
    x: ArrayLike,
    w: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    activation: str | None = None,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def conv_wgrad(
    x: ArrayLike,
    dy: ArrayLike,
    taps: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str = 'channels_first',
    tier: str = 'auto',
    chain: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def cross_entropy(
    x: ArrayLike,
    target: ArrayLike,
    *,
    reduction: str = 'mean',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def cumsum(x: ArrayLike, *, exclusive: bool = False, reverse: bool = False) -> NDArray[Any]: ...
def dequantize(q: Any, dtype: Any = 'float32') -> NDArray[Any]: ...
def dropout(
    x: ArrayLike,
    seeds: ArrayLike,
    positions: ArrayLike,
    p: float = 0.5,
    *,
    stream: Any = None,
) -> NDArray[Any]: ...
def embedding(
    weight: ArrayLike,
    indices: ArrayLike,
    *,
    padding_idx: int | None = None,
) -> NDArray[Any]: ...
def embedding_backward(
    dy: ArrayLike,
    indices: ArrayLike,
    rows: int,
    *,
    padding_idx: int | None = None,
) -> NDArray[Any]: ...
def fft_block(x: ArrayLike, *, inverse: bool = False, norm: str = 'backward') -> NDArray[Any]: ...
def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> NDArray[Any]: ...
@overload
def gated_delta_rule(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    g: ArrayLike,
    beta: ArrayLike,
    *,
    state: ArrayLike | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: Literal[False] = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> NDArray[Any]: ...
@overload
def gated_delta_rule(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    g: ArrayLike,
    beta: ArrayLike,
    *,
    state: ArrayLike | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: Literal[True],
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def gated_delta_rule(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    g: ArrayLike,
    beta: ArrayLike,
    *,
    state: ArrayLike | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: bool,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def gather(x: ArrayLike, indices: ArrayLike, axis: int = 0) -> NDArray[Any]: ...
def group_norm(
    x: ArrayLike,
    groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-05,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def grouped_linear(
    x: ArrayLike,
    w: ArrayLike,
    offsets: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    layout: str,
    activation: str | None = None,
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def grouped_linear_wgrad(
    x: ArrayLike,
    dy: ArrayLike,
    offsets: ArrayLike,
    *,
    layout: str,
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def im2col(
    x: ArrayLike,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    out: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def index_add(x: ArrayLike, indices: ArrayLike, source: ArrayLike) -> NDArray[Any]: ...
def int4_gemm(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    dtype: str = 's4',
    layout: str = 'rcr',
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
@overload
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-05,
    *,
    residual: None = None,
    residual_bias: ArrayLike | None = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> NDArray[Any]: ...
@overload
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-05,
    *,
    residual: ArrayLike,
    residual_bias: ArrayLike | None = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def layer_norm2d(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-06,
    *,
    out_dtype: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def layer_norm_wgrad(*arguments: Any, **named: Any) -> tuple[NDArray[Any], NDArray[Any]]: ...
def linear(
    x: ArrayLike,
    w: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    layout: str,
    tier: str = 'auto',
    activation: str | None = None,
    out_old: ArrayLike | None = None,
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def linear_cross_entropy(
    x: ArrayLike,
    w: ArrayLike,
    target: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    reduction: str = 'mean',
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    layout: str = 'nk',
    tier: str = 'auto',
    chunk: int | None = None,
    out_dtype: Any = None,
    arch: str = 'sm_90',
) -> NDArray[Any]: ...
def linear_cross_entropy_grad(
    x: ArrayLike,
    w: ArrayLike,
    target: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    loss: Any = None,
    dx: Any = True,
    dw: Any = True,
    dbias: Any = None,
    dy: ArrayLike | None = None,
    accumulate: bool = False,
    reduction: str = 'mean',
    ignore_index: int = -100,
    layout: str = 'nk',
    tier: str = 'auto',
    chunk: int | None = None,
    out_dtype: Any = None,
    arch: str = 'sm_90',
    **numbers: Any,
) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None, NDArray[Any] | None]: ...
def linear_dgrad(
    dy: ArrayLike,
    w: ArrayLike,
    *,
    layout: str,
    tier: str = 'auto',
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
@overload
def linear_recurrence(
    a: ArrayLike,
    b: ArrayLike,
    state: ArrayLike | None = None,
    *,
    return_state: Literal[False] = False,
    out_dtype: Any = None,
) -> NDArray[Any]: ...
@overload
def linear_recurrence(
    a: ArrayLike,
    b: ArrayLike,
    state: ArrayLike | None = None,
    *,
    return_state: Literal[True],
    out_dtype: Any = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def linear_recurrence(
    a: ArrayLike,
    b: ArrayLike,
    state: ArrayLike | None = None,
    *,
    return_state: bool,
    out_dtype: Any = None,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def linear_wgrad(
    x: ArrayLike,
    dy: ArrayLike,
    *,
    layout: str,
    tier: str = 'auto',
    chain: bool = False,
    out_old: ArrayLike | None = None,
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    accumulate: Any = False,
) -> NDArray[Any]: ...
def log_softmax(
    x: ArrayLike,
    axis: int = -1,
    *,
    lengths: ArrayLike | None = None,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def logcumsumexp(
    x: ArrayLike,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> NDArray[Any]: ...
def logsumexp(
    x: ArrayLike,
    *,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tier: str = 'auto',
    activation: str | None = None,
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def max_pool(
    x: ArrayLike,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Any = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def mean(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def min_pool(
    x: ArrayLike,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Any = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def moe_combine(
    y: ArrayLike,
    places: ArrayLike,
    weights: ArrayLike,
    *,
    stream: Any = None,
) -> NDArray[Any]: ...
def moe_dispatch(
    x: ArrayLike,
    experts: ArrayLike,
    count: int,
    *,
    stream: Any = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def moe_router(
    logits: ArrayLike,
    k: int,
    *,
    bias: ArrayLike | None = None,
    scoring: str = 'softmax',
    groups: int = 1,
    top_groups: int = 1,
    normalize: bool = False,
    scale: float = 1.0,
    stream: Any = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def prod(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def prod_pool(
    x: ArrayLike,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Any = None,
) -> NDArray[Any]: ...
def quantized_embedding(
    indices: ArrayLike,
    q: Any,
    *,
    dtype: Any = 'float32',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def quantized_grouped_linear(
    x: ArrayLike,
    q: Any,
    ends: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **how: Any,
) -> NDArray[Any]: ...
def quantized_linear(
    x: ArrayLike,
    q: Any,
    bias: ArrayLike | None = None,
    *,
    activation: str | None = None,
    accumulate: str = 'auto',
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def quantized_linear_dgrad(
    dy: ArrayLike,
    q: Any,
    *,
    accumulate: str = 'auto',
    out_dtype: Any = None,
    arch: str = 'sm_90',
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def resize(
    x: ArrayLike,
    size: Sequence[int],
    *,
    mode: str = 'nearest',
    align_corners: bool = False,
    stream: Any = None,
) -> NDArray[Any]: ...
def resize_nearest_2x(x: ArrayLike, *, stream: Any = None) -> NDArray[Any]: ...
@overload
def rms_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    eps: float = 1e-06,
    *,
    bias: ArrayLike | None = None,
    residual: None = None,
    residual_bias: ArrayLike | None = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> NDArray[Any]: ...
@overload
def rms_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    eps: float = 1e-06,
    *,
    bias: ArrayLike | None = None,
    residual: ArrayLike,
    residual_bias: ArrayLike | None = None,
    out: Any = None,
    out_dtype: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def rms_norm_wgrad(*arguments: Any, **named: Any) -> NDArray[Any]: ...
def roll(
    x: ArrayLike,
    shifts: int,
    axis: int = 0,
    *,
    out: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def sample(
    logits: ArrayLike,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: Any = 0,
    offset: Any = 0,
) -> NDArray[Any]: ...
def scatter_add(
    x: ArrayLike,
    indices: ArrayLike,
    source: ArrayLike,
    axis: int = 0,
) -> NDArray[Any]: ...
def searchsorted(x: ArrayLike, values: ArrayLike, *, right: bool = False) -> NDArray[Any]: ...
@overload
def selective_scan(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    z: ArrayLike | None = None,
    delta_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    *,
    softplus: bool = False,
    return_state: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def selective_scan(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    z: ArrayLike | None = None,
    delta_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    *,
    softplus: bool = False,
    return_state: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def selective_scan(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    z: ArrayLike | None = None,
    delta_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    *,
    softplus: bool = False,
    return_state: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def softmax(
    x: ArrayLike,
    axis: int = -1,
    *,
    lengths: ArrayLike | None = None,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
) -> NDArray[Any]: ...
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    *,
    upper: bool = False,
    unitriangular: bool = False,
) -> NDArray[Any]: ...
def sort(
    x: ArrayLike,
    axis: int = -1,
    *,
    descending: bool = False,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def ssd(
    x: ArrayLike,
    dt: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike | None = None,
    *,
    dt_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    softplus: bool = False,
    return_state: Literal[False] = False,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> NDArray[Any]: ...
@overload
def ssd(
    x: ArrayLike,
    dt: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike | None = None,
    *,
    dt_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    softplus: bool = False,
    return_state: Literal[True],
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def ssd(
    x: ArrayLike,
    dt: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike | None = None,
    *,
    dt_bias: ArrayLike | None = None,
    state: ArrayLike | None = None,
    softplus: bool = False,
    return_state: bool,
    out: Any = None,
    stream: Any = None,
    kernel: str | None = None,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def std(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def sum(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
def sum_pool(
    x: ArrayLike,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Any = None,
) -> NDArray[Any]: ...
def topk(x: ArrayLike, k: int, *, largest: bool = True) -> tuple[NDArray[Any], NDArray[Any]]: ...
def umap_knn(x: ArrayLike, k: int, *, stream: Any = None) -> tuple[NDArray[Any], NDArray[Any]]: ...
def unique(
    x: ArrayLike,
    size: int,
    *,
    out: Any = None,
    stream: Any = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def var(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out_dtype: Any = None,
    out: Any = None,
    kernel: Any = None,
    stream: Any = None,
    **numbers: Any,
) -> NDArray[Any]: ...
