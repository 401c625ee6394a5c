# As `ptxgen generate` writes it.
from collections.abc import Sequence
from ptxgen import functions as functions
from ptxgen import int4 as int4
from ptxgen import layout as layout
from ptxgen import nf4 as nf4
from ptxgen import reference as reference
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
from ptxgen.ops.profiling import profile as profile
from ptxgen.program.autotune import autotune as autotune
from ptxgen.program.capture import capture as capture
from ptxgen.program.load import load as load
from ptxgen.runtime import devices as devices
from ptxgen.runtime import set_default_device as set_default_device
from ptxgen.runtime import use_device as use_device
from ptxgen.types import Array, DtypeLike, Stream
from ptxgen.watch import pointwise as pointwise
from typing import Any

__version__: str

def adaptive_avg_pool(x: Array, size: Sequence[int], *, stream: Stream = None) -> Any: ...
def adaptive_max_pool(
    x: Array,
    size: Sequence[int],
    *,
    stream: Stream = None,
) -> tuple[Any, Any]: ...
def amax(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def amin(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def argmax(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def argmin(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def attention(
    q: Array,
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
    return_lse: bool = False,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def attention_grad(
    do: Array,
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
) -> tuple[Any, Any, Any]: ...
def avg_pool(
    x: Array,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    ceil: bool = False,
    count_padding: bool = True,
    divisor: int = 0,
    stream: Stream = None,
) -> Any: ...
def batch_norm(
    x: Array,
    running_mean: Array,
    running_var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-05,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Any: ...
def batch_norm_train(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    *,
    momentum: float = 0.1,
    eps: float = 1e-05,
    stream: Stream = None,
) -> tuple[Any, Any, Any]: ...
def conv(
    x: Array,
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
) -> Any: ...
def conv_dgrad(
    dy: Array,
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
) -> Any: ...
def conv_transpose(
    x: Array,
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
) -> Any: ...
def conv_wgrad(
    x: Array,
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
) -> Any: ...
def cross_entropy(
    x: Array,
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
) -> Any: ...
def cumsum(
    x: Array,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def dropout(
    x: Array,
    seeds: Array,
    positions: Array,
    p: float = 0.5,
    *,
    stream: Stream = None,
) -> Any: ...
def embedding(
    weight: Array,
    indices: Array,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def embedding_backward(
    dy: Array,
    indices: Array,
    rows: int,
    *,
    padding_idx: int | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def gated_delta_rule(
    q: Array,
    k: Array,
    v: Array,
    g: Array,
    beta: Array,
    *,
    state: Array | None = None,
    scale: float | None = None,
    l2_norm: bool = False,
    return_state: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def gather(
    x: Array,
    indices: Array,
    axis: int = 0,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def group_norm(
    x: Array,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    eps: float = 1e-05,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Any: ...
def grouped_linear(
    x: Array,
    w: Array,
    offsets: Array,
    bias: Array | None = None,
    *,
    layout: str = 'kn',
    activation: str | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def grouped_linear_wgrad(
    x: Array,
    dy: Array,
    offsets: Array,
    *,
    layout: str = 'kn',
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def index_add(
    x: Array,
    indices: Array,
    source: Array,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
    *,
    residual: Array | None = None,
    residual_bias: Array | None = None,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def layer_norm2d(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-06,
    *,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
) -> Any: ...
def layer_norm_wgrad(
    dy: Array,
    x: Array,
    mean: Array,
    rstd: Array,
    *,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def linear(
    x: Array,
    w: Array,
    bias: Array | None = None,
    *,
    layout: str = 'kn',
    tier: str = 'auto',
    activation: str | None = None,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def linear_cross_entropy(
    x: Array,
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
    stream: Stream = None,
) -> Any: ...
def linear_cross_entropy_grad(
    x: Array,
    w: Array,
    target: Array,
    bias: Array | None = None,
    *,
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
    stream: Stream = None,
) -> tuple[Any, Any, Any, Any]: ...
def linear_dgrad(
    dy: Array,
    w: Array,
    *,
    layout: str = 'kn',
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def linear_recurrence(
    a: Array,
    b: Array,
    state: Array | None = None,
    *,
    return_state: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def linear_wgrad(
    x: Array,
    dy: Array,
    *,
    layout: str = 'kn',
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    accumulate: bool = False,
    chain: bool = False,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def log_softmax(
    x: Array,
    axis: int = -1,
    *,
    lengths: Array | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def logcumsumexp(
    x: Array,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def logsumexp(
    x: Array,
    *,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def matmul(
    a: Array,
    b: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tier: str = 'auto',
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def max_pool(
    x: Array,
    window: Sequence[int],
    *,
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = (),
    dilation: int | Sequence[int] = (),
    ceil: bool = False,
    stream: Stream = None,
) -> tuple[Any, Any]: ...
def mean(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def moe_combine(y: Array, places: Array, weights: Array, *, stream: Stream = None) -> Any: ...
def moe_dispatch(
    x: Array,
    experts: Array,
    count: int,
    *,
    stream: Stream = None,
) -> tuple[Any, Any, Any]: ...
def moe_router(
    logits: Array,
    k: int,
    *,
    bias: Array | None = None,
    scoring: str = 'softmax',
    groups: int = 1,
    top_groups: int = 1,
    normalize: bool = False,
    scale: float = 1.0,
    stream: Stream = None,
) -> tuple[Any, Any]: ...
def prod(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def resize(
    x: Array,
    size: Sequence[int],
    *,
    mode: str = 'nearest',
    align_corners: bool = False,
    stream: Stream = None,
) -> Any: ...
def resize_nearest_2x(x: Array, *, stream: Stream = None) -> Any: ...
def rms_norm(
    x: Array,
    weight: Array | None = None,
    eps: float = 1e-06,
    *,
    bias: Array | None = None,
    residual: Array | None = None,
    residual_bias: Array | None = None,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def rms_norm_wgrad(
    dy: Array,
    x: Array,
    rstd: Array,
    *,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def roll(
    x: Array,
    shifts: int,
    axis: int = 0,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> Any: ...
def sample(
    logits: Array,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: Array | int = 0,
    offset: Array | int = 0,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def scatter_add(
    x: Array,
    indices: Array,
    source: Array,
    axis: int = 0,
    *,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def selective_scan(
    x: Array,
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
    return_state: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def softmax(
    x: Array,
    axis: int = -1,
    *,
    lengths: Array | None = None,
    check: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def solve_triangular(
    a: Array,
    b: Array,
    *,
    upper: bool = False,
    unitriangular: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def ssd(
    x: Array,
    dt: Array,
    a: Array,
    b: Array,
    c: Array,
    d: Array | None = None,
    *,
    dt_bias: Array | None = None,
    state: Array | None = None,
    softplus: bool = False,
    return_state: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def std(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    correction: float = 1.0,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def sum(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
def topk(
    x: Array,
    k: int,
    *,
    largest: bool = True,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> tuple[Any, Any]: ...
def umap_knn(x: Array, k: int, *, stream: Stream = None) -> tuple[Any, Any]: ...
def var(
    x: Array,
    axis: int | Sequence[int] | None = None,
    *,
    correction: float = 1.0,
    keepdims: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: DtypeLike | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> Any: ...
