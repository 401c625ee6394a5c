# As `ptxgen generate` writes it.
from collections.abc import Sequence
from typing import Any
from torch import Tensor
from ptxgen.types import DtypeLike, Stream
from ptxgen.torch.graphs import Backend as Backend
from ptxgen.torch.module import Conversion as Conversion
from ptxgen.torch.module import Linear as Linear
from ptxgen.torch.losses import LinearCrossEntropy as LinearCrossEntropy
from ptxgen.torch.module import QuantizedLinear as QuantizedLinear
from ptxgen.torch.sdpa import attention as attention
from ptxgen.torch.functional import baddbmm as baddbmm
from ptxgen.torch.serve import batch_invariant as batch_invariant
from ptxgen.torch.functional import bmm as bmm
from ptxgen.torch.convert import convert as convert
from ptxgen.torch.exported import export as export
from ptxgen.torch.functional import linear as linear
from ptxgen.torch.losses import linear_cross_entropy as linear_cross_entropy
from ptxgen.torch.functional import matmul as matmul
from ptxgen.torch.models import paged_attention as paged_attention
from ptxgen.torch.functional import quantized_linear as quantized_linear
from ptxgen.torch.models import register_attention as register_attention
from ptxgen.torch.models import register_experts as register_experts

def adaptive_avg_pool(x: Tensor, size: Sequence[int], *, stream: Stream = None) -> Tensor: ...
def adaptive_max_pool(
    x: Tensor,
    size: Sequence[int],
    *,
    stream: Stream = None,
) -> tuple[Tensor, Tensor]: ...
def amax(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def amin(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def argmax(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
def argmin(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
def argsort(
    x: Tensor,
    axis: int = -1,
    *,
    descending: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def attention_grad(
    do: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
    starts: Tensor | None = None,
    query_lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    block_table: Tensor | None = None,
    sinks: Tensor | None = None,
    slopes: Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    bias_grad: bool = False,
    sinks_grad: bool = False,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def avg_pool(
    x: Tensor,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    ceil: bool = False,
    count_padding: bool = True,
    divisor: int = 0,
    stream: Stream = None,
) -> Tensor: ...
def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-05,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Tensor: ...
def batch_norm_train(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    *,
    momentum: float = 0.1,
    eps: float = 1e-05,
    stream: Stream = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def bincount(
    x: Tensor,
    minlength: int,
    weights: Tensor | None = None,
    *,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def col2im(
    x: Tensor,
    size: Sequence[int],
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    stream: Stream = None,
) -> Tensor: ...
def conv(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    activation: str | None = None,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Tensor: ...
def conv_dgrad(
    dy: Tensor,
    w: Tensor,
    image: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Tensor: ...
def conv_transpose(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    activation: str | None = None,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Tensor: ...
def conv_wgrad(
    x: Tensor,
    dy: Tensor,
    taps: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str = 'channels_first',
    tier: str = 'auto',
    chain: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Tensor: ...
def cross_entropy(
    x: Tensor,
    target: Tensor,
    *,
    reduction: str = 'mean',
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    check: bool = False,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def cumsum(
    x: Tensor,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def dropout(
    x: Tensor,
    seeds: Tensor,
    positions: Tensor,
    p: float = 0.5,
    *,
    stream: Stream = None,
) -> Tensor: ...
def embedding(
    weight: Tensor,
    indices: Tensor,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def embedding_backward(
    dy: Tensor,
    indices: Tensor,
    rows: int,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def fft(
    x: Tensor,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def fft2(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def fft_block(
    x: Tensor,
    *,
    inverse: bool = False,
    norm: str = 'backward',
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def fftn(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    state: Tensor | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def gather(
    x: Tensor,
    indices: Tensor,
    axis: int = 0,
    *,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def group_norm(
    x: Tensor,
    groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-05,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Tensor: ...
def grouped_linear(
    x: Tensor,
    w: Tensor,
    offsets: Tensor,
    bias: Tensor | None = None,
    *,
    layout: str,
    activation: str | None = None,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def grouped_linear_wgrad(
    x: Tensor,
    dy: Tensor,
    offsets: Tensor,
    *,
    layout: str,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def hfft(
    x: Tensor,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def ifft(
    x: Tensor,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def ifft2(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def ifftn(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def ihfft(
    x: Tensor,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def im2col(
    x: Tensor,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def index_add(
    x: Tensor,
    indices: Tensor,
    source: Tensor,
    *,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def int4_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    dtype: str = 's4',
    layout: str = 'rcr',
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: Any | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def irfft(
    x: Tensor,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def irfft2(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def irfftn(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
    *,
    check: bool = False,
    stream: Stream = None,
) -> Tensor: ...
def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    *,
    residual: Tensor | None = None,
    residual_bias: Tensor | None = None,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def layer_norm2d(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-06,
    *,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Tensor: ...
def layer_norm_wgrad(
    dy: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Tensor, Tensor]: ...
def linear_dgrad(
    dy: Tensor,
    w: Tensor,
    *,
    layout: str,
    tier: str = 'auto',
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def linear_recurrence(
    a: Tensor,
    b: Tensor,
    state: Tensor | None = None,
    *,
    return_state: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def linear_wgrad(
    x: Tensor,
    dy: Tensor,
    *,
    layout: str,
    tier: str = 'auto',
    out: Tensor | tuple[Tensor, ...] | None = None,
    accumulate: bool = False,
    chain: bool = False,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def log_mel(
    spectrum: Tensor,
    filters: Tensor,
    *,
    floor: float = 1e-10,
    clamp: float | None = None,
    stream: Stream = None,
) -> Tensor: ...
def log_mel_spectrogram(
    waveform: Tensor,
    sample_rate: float = 16000.0,
    *,
    n_fft: int = 400,
    hop_length: int = 160,
    win_length: int | None = None,
    window: Tensor | None = None,
    n_mels: int = 80,
    low: float = 0.0,
    high: float | None = None,
    scale: str = 'slaney',
    norm: str = 'slaney',
    center: bool = True,
    pad_mode: str = 'reflect',
    normalized: bool = False,
    drop_last: bool = False,
    floor: float = 1e-10,
    clamp: float | None = None,
    stream: Stream = None,
) -> Tensor: ...
def log_softmax(
    x: Tensor,
    dim: int = -1,
    *,
    lengths: Tensor | None = None,
    check: bool = False,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def logcumsumexp(
    x: Tensor,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def logsumexp(
    x: Tensor,
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def max_pool(
    x: Tensor,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> tuple[Tensor, Tensor]: ...
def mean(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def min_pool(
    x: Tensor,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> tuple[Tensor, Tensor]: ...
def moe_combine(y: Tensor, places: Tensor, weights: Tensor, *, stream: Stream = None) -> Tensor: ...
def moe_dispatch(
    x: Tensor,
    experts: Tensor,
    count: int,
    *,
    stream: Stream = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def moe_router(
    logits: Tensor,
    k: int,
    *,
    bias: Tensor | None = None,
    scoring: str = 'softmax',
    groups: int = 1,
    top_groups: int = 1,
    normalize: bool = False,
    scale: float = 1.0,
    stream: Stream = None,
) -> tuple[Tensor, Tensor]: ...
def prod(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def prod_pool(
    x: Tensor,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> Tensor: ...
def resize(
    x: Tensor,
    size: Sequence[int],
    *,
    mode: str = 'nearest',
    align_corners: bool = False,
    stream: Stream = None,
) -> Tensor: ...
def resize_nearest_2x(x: Tensor, *, stream: Stream = None) -> Tensor: ...
def rfft(
    x: Tensor,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def rfft2(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def rfftn(
    x: Tensor,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def rms_norm(
    x: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-06,
    *,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    residual_bias: Tensor | None = None,
    offset: float = 0.0,
    rounded: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def rms_norm_wgrad(
    dy: Tensor,
    x: Tensor,
    rstd: Tensor,
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def roll(
    x: Tensor,
    shifts: int,
    axis: int = 0,
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> Tensor: ...
def sample(
    logits: Tensor,
    *,
    temperature: Tensor | float = 0.0,
    top_k: Tensor | int = 0,
    top_p: Tensor | float = 1.0,
    min_p: Tensor | float = 0.0,
    seed: Tensor | int = 0,
    offset: Tensor | int = 0,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def scatter_add(
    x: Tensor,
    indices: Tensor,
    source: Tensor,
    axis: int = 0,
    *,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def searchsorted(
    x: Tensor,
    values: Tensor,
    *,
    right: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def selective_scan(
    x: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    state: Tensor | None = None,
    *,
    softplus: bool = False,
    return_state: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def softmax(
    x: Tensor,
    dim: int = -1,
    *,
    lengths: Tensor | None = None,
    check: bool = False,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def solve_triangular(
    a: Tensor,
    b: Tensor,
    *,
    upper: bool = False,
    unitriangular: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def sort(
    x: Tensor,
    axis: int = -1,
    *,
    descending: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Tensor, Tensor]: ...
def splat_prepare(
    positions: Tensor,
    scales: Tensor,
    rotations: Tensor,
    opacities: Tensor,
    colours: Tensor,
    view: Tensor,
    intrinsics: Tensor,
    *,
    width: int,
    height: int,
    tile_size: int = 16,
    near: float = 0.01,
    far: float = 10000000000.0,
    blur: float = 0.3,
    radius_scale: float = 3.0,
    max_anisotropy: float | None = None,
    sh_band: int | None = None,
    check: bool = False,
    stream: Stream = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def splat_rasterize(
    points: Tensor,
    tiles: Tensor,
    splats: Tensor,
    places: Tensor,
    ends: Tensor,
    order: Tensor,
    background: Tensor | None = None,
    *,
    width: int,
    height: int,
    tile_size: int = 16,
    alpha_cutoff: float = 0.00392156862745098,
    transmittance_threshold: float = 0.0001,
    max_splat_steps: int = 2147483647,
    loss_grad_clip: float | None = None,
    stream: Stream = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def splat_render(
    positions: Tensor,
    scales: Tensor,
    rotations: Tensor,
    opacities: Tensor,
    colours: Tensor,
    view: Tensor,
    intrinsics: Tensor,
    background: Tensor | None = None,
    *,
    width: int,
    height: int,
    tile_size: int = 16,
    near: float = 0.01,
    far: float = 10000000000.0,
    blur: float = 0.3,
    radius_scale: float = 3.0,
    max_anisotropy: float | None = None,
    sh_band: int | None = None,
    max_list_entries: int | None = None,
    overflow: str = 'error',
    alpha_cutoff: float = 0.00392156862745098,
    transmittance_threshold: float = 0.0001,
    max_splat_steps: int = 2147483647,
    loss_grad_clip: float | None = None,
    check: bool = False,
    stream: Stream = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def splat_sort(
    depths: Tensor,
    boxes: Tensor,
    *,
    width: int,
    height: int,
    tile_size: int = 16,
    max_list_entries: int | None = None,
    overflow: str = 'error',
    check: bool = False,
    stream: Stream = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
def ssd(
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None = None,
    *,
    dt_bias: Tensor | None = None,
    state: Tensor | None = None,
    softplus: bool = False,
    return_state: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def std(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    correction: float = 1.0,
    keepdim: bool = False,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = 'reflect',
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool = True,
    *,
    stream: Stream = None,
) -> Tensor: ...
def sum(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def sum_pool(
    x: Tensor,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> Tensor: ...
def token_logprobs(
    logits: Tensor,
    ids: Tensor,
    temperature: Tensor | float = 1.0,
    *,
    check: bool = False,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Tensor: ...
def topk(
    x: Tensor,
    k: int,
    *,
    largest: bool = True,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Tensor, Tensor]: ...
def umap_knn(x: Tensor, k: int, *, stream: Stream = None) -> tuple[Tensor, Tensor]: ...
def unique(
    x: Tensor,
    size: int,
    *,
    out: Tensor | tuple[Tensor, ...] | None = None,
    stream: Stream = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def var(
    x: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    correction: float = 1.0,
    keepdim: bool = False,
    out_dtype: DtypeLike | None = None,
) -> Tensor: ...
def welch(
    spectra: Tensor,
    segments: int,
    *,
    scale: float = 1.0,
    stream: Stream = None,
) -> Tensor: ...
def welch_peaks(
    spectra: Tensor,
    segments: int,
    k: int,
    *,
    scale: float = 1.0,
    stream: Stream = None,
) -> tuple[Tensor, Tensor]: ...
