# As `ptxgen generate` writes it.
from collections.abc import Sequence
from ptxgen import functions as functions
from ptxgen import int4 as int4
from ptxgen import layout as layout
from ptxgen import nf4 as nf4
from ptxgen import quantized as quantized
from ptxgen import reference as reference
from ptxgen.autograd import pointwise as pointwise
from ptxgen.errors import BarrierFault as BarrierFault
from ptxgen.errors import CacheWarning as CacheWarning
from ptxgen.errors import CompileError as CompileError
from ptxgen.errors import DeadlockFault as DeadlockFault
from ptxgen.errors import DeviceError as DeviceError
from ptxgen.errors import DtypeError as DtypeError
from ptxgen.errors import FormulaError as FormulaError
from ptxgen.errors import GradError as GradError
from ptxgen.errors import IndexRangeError as IndexRangeError
from ptxgen.errors import KernelFault as KernelFault
from ptxgen.errors import MemoryFault as MemoryFault
from ptxgen.errors import NoGpuError as NoGpuError
from ptxgen.errors import OptionError as OptionError
from ptxgen.errors import PtxError as PtxError
from ptxgen.errors import PtxgenError as PtxgenError
from ptxgen.errors import RaceFault as RaceFault
from ptxgen.errors import SavedError as SavedError
from ptxgen.errors import ShapeError as ShapeError
from ptxgen.errors import SpecError as SpecError
from ptxgen.errors import StepLimitFault as StepLimitFault
from ptxgen.errors import TraceError as TraceError
from ptxgen.errors import TrapFault as TrapFault
from ptxgen.errors import UncoveredError as UncoveredError
from ptxgen.errors import UninitializedFault as UninitializedFault
from ptxgen.ops.explaining import explain as explain
from ptxgen.ops.mel import mel_filters as mel_filters
from ptxgen.ops.profiling import profile as profile
from ptxgen.program.autotune import autotune as autotune
from ptxgen.program.capture import capture as capture
from ptxgen.program.load import load as load
from ptxgen.program.timeline import timeline as timeline
from ptxgen.runtime import devices as devices
from ptxgen.runtime import set_default_device as set_default_device
from ptxgen.runtime import use_device as use_device
from ptxgen.types import Array, ArrayT, DtypeLike, Stream
from typing import Any, Literal, overload

__version__: str

def adaptive_avg_pool(x: ArrayT, size: Sequence[int], *, stream: Stream = None) -> ArrayT: ...
def adaptive_max_pool(
    x: ArrayT,
    size: Sequence[int],
    *,
    stream: Stream = None,
) -> tuple[ArrayT, Any]: ...
def amax(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def amin(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def argmax(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def argmin(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def argsort(
    x: ArrayT,
    axis: int = -1,
    *,
    descending: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def attention(
    q: ArrayT,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    lengths: Array | None = None,
    starts: Array | None = None,
    query_lengths: Array | None = None,
    cu_seqlens: Array | None = None,
    cu_seqlens_k: Array | None = None,
    block_table: Array | None = None,
    sinks: Array | None = None,
    slopes: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    return_lse: Literal[False] = False,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def attention(
    q: ArrayT,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    lengths: Array | None = None,
    starts: Array | None = None,
    query_lengths: Array | None = None,
    cu_seqlens: Array | None = None,
    cu_seqlens_k: Array | None = None,
    block_table: Array | None = None,
    sinks: Array | None = None,
    slopes: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    return_lse: Literal[True],
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def attention(
    q: ArrayT,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    lengths: Array | None = None,
    starts: Array | None = None,
    query_lengths: Array | None = None,
    cu_seqlens: Array | None = None,
    cu_seqlens_k: Array | None = None,
    block_table: Array | None = None,
    sinks: Array | None = None,
    slopes: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    return_lse: bool,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT | tuple[ArrayT, ArrayT]: ...
def attention_grad(
    do: ArrayT,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    lengths: Array | None = None,
    starts: Array | None = None,
    query_lengths: Array | None = None,
    cu_seqlens: Array | None = None,
    cu_seqlens_k: Array | None = None,
    block_table: Array | None = None,
    sinks: Array | None = None,
    slopes: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    layout: str = 'bhsd',
    bias_grad: bool = False,
    sinks_grad: bool = False,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ...]: ...
def avg_pool(
    x: ArrayT,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    ceil: bool = False,
    count_padding: bool = True,
    divisor: int = 0,
    stream: Stream = None,
) -> ArrayT: ...
def batch_norm(
    x: ArrayT,
    running_mean: Array,
    running_var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-05,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def batch_norm_train(
    x: ArrayT,
    weight: Array | None = None,
    bias: Array | None = None,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    *,
    momentum: float = 0.1,
    eps: float = 1e-05,
    stream: Stream = None,
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
def bincount(
    x: ArrayT,
    minlength: int,
    weights: Array | None = None,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def col2im(
    x: ArrayT,
    size: Sequence[int],
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    stream: Stream = None,
) -> ArrayT: ...
def conv(
    x: ArrayT,
    w: Array,
    bias: Array | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    activation: str | None = None,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def conv_dgrad(
    dy: ArrayT,
    w: Array,
    image: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def conv_transpose(
    x: ArrayT,
    w: Array,
    bias: Array | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    activation: str | None = None,
    layout: str = 'channels_first',
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def conv_wgrad(
    x: ArrayT,
    dy: Array,
    taps: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str = 'channels_first',
    tier: str = 'auto',
    chain: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def cross_entropy(
    x: ArrayT,
    target: Array,
    *,
    reduction: str = 'mean',
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    check: bool = False,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def cumsum(
    x: ArrayT,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def dropout(
    x: ArrayT,
    seeds: Array,
    positions: Array,
    p: float = 0.5,
    *,
    stream: Stream = None,
) -> ArrayT: ...
def embedding(
    weight: ArrayT,
    indices: Array,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def embedding_backward(
    dy: ArrayT,
    indices: Array,
    rows: int,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def fft(
    x: ArrayT,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def fft2(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def fft_block(
    x: ArrayT,
    *,
    inverse: bool = False,
    norm: str = 'backward',
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def fftn(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
@overload
def gated_delta_rule(
    q: ArrayT,
    k: Array,
    v: Array,
    g: Array,
    beta: Array,
    *,
    state: Array | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: Literal[False] = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def gated_delta_rule(
    q: ArrayT,
    k: Array,
    v: Array,
    g: Array,
    beta: Array,
    *,
    state: Array | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: Literal[True],
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def gated_delta_rule(
    q: ArrayT,
    k: Array,
    v: Array,
    g: Array,
    beta: Array,
    *,
    state: Array | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: bool,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT | tuple[ArrayT, ArrayT]: ...
def gather(
    x: ArrayT,
    indices: Array,
    axis: int = 0,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def group_norm(
    x: ArrayT,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-05,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def grouped_linear(
    x: ArrayT,
    w: Array,
    offsets: Array,
    bias: Array | None = None,
    *,
    layout: str,
    activation: str | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def grouped_linear_wgrad(
    x: ArrayT,
    dy: Array,
    offsets: Array,
    *,
    layout: str,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def hfft(
    x: ArrayT,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def ifft(
    x: ArrayT,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def ifft2(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def ifftn(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def ihfft(
    x: ArrayT,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def im2col(
    x: ArrayT,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def index_add(
    x: ArrayT,
    indices: Array,
    source: Array,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def irfft(
    x: ArrayT,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def irfft2(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def irfftn(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def istft(
    x: ArrayT,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
    *,
    check: bool = False,
    stream: Stream = None,
) -> ArrayT: ...
@overload
def layer_norm(
    x: ArrayT,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
    *,
    residual: None = None,
    residual_bias: Array | None = None,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def layer_norm(
    x: ArrayT,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
    *,
    residual: Array,
    residual_bias: Array | None = None,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
def layer_norm2d(
    x: ArrayT,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-06,
    *,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def layer_norm_wgrad(
    dy: ArrayT,
    x: Array,
    mean: Array,
    rstd: Array,
    *,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
def linear(
    x: ArrayT,
    w: Array,
    bias: Array | None = None,
    *,
    layout: str,
    tier: str = 'auto',
    activation: str | None = None,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def linear_cross_entropy(
    x: ArrayT,
    w: Array,
    target: Array,
    bias: Array | None = None,
    *,
    reduction: str = 'mean',
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    layout: str = 'nk',
    tier: str = 'auto',
    chunk: int | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def linear_cross_entropy_grad(
    x: ArrayT,
    w: Array,
    target: Array,
    bias: Array | None = None,
    *,
    loss: Array | tuple[Array, ...] | None = None,
    dx: Array | bool | None = True,
    dw: Array | bool | None = True,
    dbias: Array | bool | None = None,
    dy: Array | float | None = None,
    accumulate: bool = False,
    reduction: str = 'mean',
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    layout: str = 'nk',
    tier: str = 'auto',
    chunk: int | None = None,
    check: bool = False,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> tuple[ArrayT, ArrayT | None, ArrayT | None, ArrayT | None]: ...
def linear_dgrad(
    dy: ArrayT,
    w: Array,
    *,
    layout: str,
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def linear_recurrence(
    a: ArrayT,
    b: Array,
    state: Array | None = None,
    *,
    return_state: Literal[False] = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def linear_recurrence(
    a: ArrayT,
    b: Array,
    state: Array | None = None,
    *,
    return_state: Literal[True],
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def linear_recurrence(
    a: ArrayT,
    b: Array,
    state: Array | None = None,
    *,
    return_state: bool,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT | tuple[ArrayT, ArrayT]: ...
def linear_wgrad(
    x: ArrayT,
    dy: Array,
    *,
    layout: str,
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    accumulate: bool = False,
    chain: bool = False,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def log_mel(
    spectrum: ArrayT,
    filters: Array,
    *,
    floor: float = 1e-10,
    clamp: float | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def log_mel_spectrogram(
    waveform: ArrayT,
    sample_rate: float = 16000.0,
    *,
    n_fft: int = 400,
    hop_length: int = 160,
    win_length: int | None = None,
    window: Array | None = None,
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
) -> ArrayT: ...
def log_softmax(
    x: ArrayT,
    axis: int = -1,
    *,
    lengths: Array | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def logcumsumexp(
    x: ArrayT,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def logsumexp(
    x: ArrayT,
    *,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def matmul(
    a: ArrayT,
    b: Array,
    bias: Array | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tier: str = 'auto',
    activation: str | None = None,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def max_pool(
    x: ArrayT,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> tuple[ArrayT, Any]: ...
def mean(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def min_pool(
    x: ArrayT,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> tuple[ArrayT, Any]: ...
def moe_combine(y: ArrayT, places: Array, weights: Array, *, stream: Stream = None) -> ArrayT: ...
def moe_dispatch(
    x: ArrayT,
    experts: Array,
    count: int,
    *,
    stream: Stream = None,
) -> tuple[ArrayT, Any, Any]: ...
def moe_router(
    logits: ArrayT,
    k: int,
    *,
    bias: Array | None = None,
    scoring: str = 'softmax',
    groups: int = 1,
    top_groups: int = 1,
    normalize: bool = False,
    scale: float = 1.0,
    stream: Stream = None,
) -> tuple[ArrayT, Any]: ...
def prod(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def prod_pool(
    x: ArrayT,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> ArrayT: ...
def resize(
    x: ArrayT,
    size: Sequence[int],
    *,
    mode: str = 'nearest',
    align_corners: bool = False,
    stream: Stream = None,
) -> ArrayT: ...
def resize_nearest_2x(x: ArrayT, *, stream: Stream = None) -> ArrayT: ...
def rfft(
    x: ArrayT,
    n: int | None = None,
    axis: int = -1,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def rfft2(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def rfftn(
    x: ArrayT,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = 'backward',
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
@overload
def rms_norm(
    x: ArrayT,
    weight: Array | None = None,
    eps: float = 1e-06,
    *,
    bias: Array | None = None,
    residual: None = None,
    residual_bias: Array | None = None,
    offset: float = 0.0,
    rounded: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def rms_norm(
    x: ArrayT,
    weight: Array | None = None,
    eps: float = 1e-06,
    *,
    bias: Array | None = None,
    residual: Array,
    residual_bias: Array | None = None,
    offset: float = 0.0,
    rounded: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
def rms_norm_wgrad(
    dy: ArrayT,
    x: Array,
    rstd: Array,
    *,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def roll(
    x: ArrayT,
    shifts: int,
    axis: int = 0,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def sample(
    logits: ArrayT,
    *,
    temperature: Array | float = 0.0,
    top_k: Array | int = 0,
    top_p: Array | float = 1.0,
    min_p: Array | float = 0.0,
    seed: Array | int = 0,
    offset: Array | int = 0,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def scatter_add(
    x: ArrayT,
    indices: Array,
    source: Array,
    axis: int = 0,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def searchsorted(
    x: ArrayT,
    values: Array,
    *,
    right: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def selective_scan(
    x: ArrayT,
    delta: Array,
    A: Array,
    B: Array,
    C: Array,
    D: Array | None = None,
    z: Array | None = None,
    delta_bias: Array | None = None,
    state: Array | None = None,
    *,
    softplus: bool = False,
    return_state: Literal[False] = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def selective_scan(
    x: ArrayT,
    delta: Array,
    A: Array,
    B: Array,
    C: Array,
    D: Array | None = None,
    z: Array | None = None,
    delta_bias: Array | None = None,
    state: Array | None = None,
    *,
    softplus: bool = False,
    return_state: Literal[True],
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def selective_scan(
    x: ArrayT,
    delta: Array,
    A: Array,
    B: Array,
    C: Array,
    D: Array | None = None,
    z: Array | None = None,
    delta_bias: Array | None = None,
    state: Array | None = None,
    *,
    softplus: bool = False,
    return_state: bool,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT | tuple[ArrayT, ArrayT]: ...
def softmax(
    x: ArrayT,
    axis: int = -1,
    *,
    lengths: Array | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def solve_triangular(
    a: ArrayT,
    b: Array,
    *,
    upper: bool = False,
    unitriangular: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def sort(
    x: ArrayT,
    axis: int = -1,
    *,
    descending: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, Any]: ...
def splat_prepare(
    positions: ArrayT,
    scales: Array,
    rotations: Array,
    opacities: Array,
    colours: Array,
    view: Array,
    intrinsics: Array,
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
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
def splat_rasterize(
    points: ArrayT,
    tiles: Array,
    splats: Array,
    places: Array,
    ends: Array,
    order: Array,
    background: Array | None = None,
    *,
    width: int,
    height: int,
    tile_size: int = 16,
    alpha_cutoff: float = 0.00392156862745098,
    transmittance_threshold: float = 0.0001,
    max_splat_steps: int = 2147483647,
    loss_grad_clip: float | None = None,
    stream: Stream = None,
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
def splat_render(
    positions: ArrayT,
    scales: Array,
    rotations: Array,
    opacities: Array,
    colours: Array,
    view: Array,
    intrinsics: Array,
    background: Array | None = None,
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
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
def splat_sort(
    depths: ArrayT,
    boxes: Array,
    *,
    width: int,
    height: int,
    tile_size: int = 16,
    max_list_entries: int | None = None,
    overflow: str = 'error',
    check: bool = False,
    stream: Stream = None,
) -> tuple[ArrayT, ArrayT, Any, ArrayT, ArrayT, ArrayT]: ...
@overload
def ssd(
    x: ArrayT,
    dt: Array,
    a: Array,
    b: Array,
    c: Array,
    d: Array | None = None,
    *,
    dt_bias: Array | None = None,
    state: Array | None = None,
    softplus: bool = False,
    return_state: Literal[False] = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
@overload
def ssd(
    x: ArrayT,
    dt: Array,
    a: Array,
    b: Array,
    c: Array,
    d: Array | None = None,
    *,
    dt_bias: Array | None = None,
    state: Array | None = None,
    softplus: bool = False,
    return_state: Literal[True],
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, ArrayT]: ...
@overload
def ssd(
    x: ArrayT,
    dt: Array,
    a: Array,
    b: Array,
    c: Array,
    d: Array | None = None,
    *,
    dt_bias: Array | None = None,
    state: Array | None = None,
    softplus: bool = False,
    return_state: bool,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT | tuple[ArrayT, ArrayT]: ...
def std(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    correction: float = 1.0,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def stft(
    x: ArrayT,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    pad_mode: str = 'reflect',
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool = True,
    *,
    stream: Stream = None,
) -> ArrayT: ...
def sum(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def sum_pool(
    x: ArrayT,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> ArrayT: ...
def token_logprobs(
    logits: ArrayT,
    ids: Array,
    temperature: Array | float = 1.0,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def topk(
    x: ArrayT,
    k: int,
    *,
    largest: bool = True,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[ArrayT, Any]: ...
def umap_knn(x: ArrayT, k: int, *, stream: Stream = None) -> tuple[ArrayT, Any]: ...
def unique(
    x: ArrayT,
    size: int,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> tuple[ArrayT, ArrayT, ArrayT, ArrayT]: ...
def var(
    x: ArrayT,
    axis: int | Sequence[int] | None = None,
    *,
    correction: float = 1.0,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def welch(
    spectra: ArrayT,
    segments: int,
    *,
    scale: float = 1.0,
    stream: Stream = None,
) -> ArrayT: ...
def welch_peaks(
    spectra: ArrayT,
    segments: int,
    k: int,
    *,
    scale: float = 1.0,
    stream: Stream = None,
) -> tuple[ArrayT, ArrayT]: ...
