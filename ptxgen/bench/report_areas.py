"""Areas of ``ptxgen bench report``: their result files, peers, groups and speed-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ptxgen.bench import bands, row_reductions
from ptxgen.bench.attention import FASTER, WIDE, Attention
from ptxgen.bench.attention_cases import KINDS as ATTENTIONS
from ptxgen.bench.attention_step import Steps
from ptxgen.bench.bmm import Bmm
from ptxgen.bench.conv import Conv
from ptxgen.bench.conv_cases import CAUSAL, DEPTHWISE, DGRAD, WGRAD
from ptxgen.bench.conv_cases import KINDS as CONVOLUTIONS
from ptxgen.bench.delta import Delta
from ptxgen.bench.fft import Fft
from ptxgen.bench.flce import COMPILED, Flce
from ptxgen.bench.gemm import Gemm
from ptxgen.bench.graph import Graph
from ptxgen.bench.host import Host
from ptxgen.bench.int4 import Int4
from ptxgen.bench.ops import Ops
from ptxgen.bench.quantized import QuantizedProducts
from ptxgen.bench.quantized_cases import BANDS, BITSANDBYTES, band_of
from ptxgen.bench.recurrence import Recurrence
from ptxgen.bench.results import GATE
from ptxgen.bench.runner import Area
from ptxgen.bench.serving import Serving
from ptxgen.bench.sort import Sort
from ptxgen.bench.spectra import Spectra
from ptxgen.bench.splats import Splats
from ptxgen.bench.vision import Vision

CUBLAS, PYTORCH = "`torch.mm` (cuBLAS)", "PyTorch, eager or compiled"
"""Names of peers that several sections share."""
INVARIANT = {"triton": "Triton (fixed tiles)", "sgemm_bi": "sgemm-bi"}
"""Display names of the batch-invariant peers of ``bench gemm``."""
MEGABYTE = 1 << 20
"""Peaks of memory are compared only if both exceed this many bytes."""


class SpeedUp(NamedTuple):
    """A case's speed-up (peer time / ptxgen time), and peer / ptxgen peak memory if known."""

    group: str
    case: str
    value: float
    memory: float | None = None


Read = Callable[[Sequence[Any]], Iterable[SpeedUp]]


@dataclass(frozen=True)
class Comparison:
    """Times of ptxgen against one peer: a line of the summary.

    ``what``, ``peer``: texts for the operation and for the peer. ``area``: the benchmark;
    ``files``: names of its result files without GPU, date and commit; the first that exists is
    used. ``options``: command line of the run, in which ``{seed}`` is its seed. ``read`` converts
    rows to speed-ups.
    """

    what: str
    peer: str
    area: type[Area]
    files: tuple[str, ...]
    read: Read
    options: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the performance page: its title, comparisons, and introduction ``about``, which
    says what is timed. ``image``: file name of its plot, without suffix.
    """

    title: str
    image: str
    about: str
    comparisons: tuple[Comparison, ...]


# -- speed-ups of rows ----------------------------------------------------------------------
def _quotient(ours: float | None, theirs: float | None, least: float = 0) -> float | None:
    """Returns ``theirs / ours``, or None unless both are known and above ``least``."""
    return theirs / ours if ours and theirs and min(ours, theirs) > least else None


def _products(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    by_m = sorted((r for r in rows if r.peer == GATE), key=lambda r: (r.layout == "TN", r.m))
    for r in by_m:
        if r.op == "linear_wgrad":
            group = "weight gradient"
        elif r.layout == "TN":
            group = "TN (transposed A)"
        else:
            group = f"NN, NT; M {bands.band(r)}"
        yield SpeedUp(group, f"{r.shape} {r.layout}", r.ratio)


def _invariant(rows: Sequence[Any], peer: str, group: str) -> Iterator[SpeedUp]:
    for r in rows:
        if r.peer == peer:
            yield SpeedUp(group, f"{r.shape} {r.layout}", r.ratio)


FEW = BANDS["17-64"][1]
"""Most rows of products that a report counts among those of few rows."""


def _weights(
    rows: Sequence[Any], op: str, least: int = 1, most: int | None = None
) -> Iterator[SpeedUp]:
    """Yields the products ``op`` of ``least`` to ``most`` rows."""
    for r in sorted((r for r in rows if r.peer == GATE), key=lambda r: r.m):
        if r.op == op and least <= r.m <= (most or r.m):
            yield SpeedUp(f"{op}, M {band_of(r.m)}", f"{r.format}, {r.shape}", r.ratio)


def _nf4(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in sorted((r for r in rows if r.peer == BITSANDBYTES), key=lambda r: (r.op, r.m)):
        name = f"bitsandbytes, {r.op}, M {bands.band_of(r.m)}"
        yield SpeedUp(name, f"{r.shape} {r.layout}", r.ratio)


def _int4(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in sorted(rows, key=lambda r: (r.layout, r.m)):
        yield SpeedUp(f"{r.layout}, M {bands.band_of(r.m)}", r.shape, r.ratio)


def _batches(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        yield SpeedUp(f"{r.dtype}, {r.layout.upper()}", r.shape, r.ratio)


FAMILIES = {
    "softmax": "softmax, log_softmax",
    "log_softmax": "softmax, log_softmax",
    "sum of rows": "sum",
    "sum of columns": "sum",
    "topk 50": "topk",
    "topk 1024": "topk",
}
"""Groups of row operations in the report, by the operation's name; the others are groups of their
own.
"""


def _rows(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in sorted(rows, key=lambda r: [*row_reductions.OPERATIONS].index(r.name)):
        yield SpeedUp(FAMILIES.get(r.name, r.name), f"{r.name} {r.sizes}", r.ratio)


OTHERS = {
    **dict.fromkeys(("swiglu", "gelu", "bias + gelu_tanh", "add", "rope"), "pointwise"),
    "rms_norm + backward": "norm and its backward pass",
    "layer_norm + backward": "norm and its backward pass",
    **dict.fromkeys(("contiguous, transposed", "contiguous, heads"), "copy"),
    "embedding_backward": "embedding_backward",
    "sample": "sampling",
    "draw": "sampling",
    "sum of all": "sum of all",
    "topk 8": "topk 8",
}
"""Group of each named case that has no random counterpart, by the case's name or its first word."""


def _others(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        if group := OTHERS.get(r.name) or OTHERS.get(r.name.split()[0]):
            yield SpeedUp(group, f"{r.name} {r.sizes}", r.ratio)


def _operations(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        yield SpeedUp(r.name, r.sizes, r.ratio)


def _splats(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        if r.peer == "gsplat":
            yield SpeedUp(r.name, r.sizes, r.ratio)


def _served(rows: Sequence[Any], peer: str) -> Iterator[SpeedUp]:
    for r in rows:
        theirs = getattr(r, f"{peer}_ms")
        if r.work != "start" and r.ours_ms and theirs:
            yield SpeedUp(f"{r.model}, beside {PEERS[peer]}", r.work, theirs / r.ours_ms)


PEERS = {"stock": "vLLM", "invariant": "VLLM_BATCH_INVARIANT=1"}
"""Display names of the peers of ``bench serving``."""
CONV_GROUPS = {
    DGRAD: "gradient of the input",
    WGRAD: "gradient of the filters",
    DEPTHWISE: "depthwise, forward",
    CAUSAL: "depthwise, causal, of sequences",
}


def _convolutions(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in sorted(rows, key=lambda r: CONVOLUTIONS.index(r.kind)):
        yield SpeedUp(CONV_GROUPS.get(r.kind, r.kind), r.shape, r.ratio)


def _attention(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in sorted(rows, key=lambda r: (ATTENTIONS.index(r.kind), r.depth)):
        if (value := r.ratio(FASTER)) is not None:
            sign = "≤" if r.depth <= WIDE else ">"
            yield SpeedUp(f"{r.kind}, D {sign} {WIDE}", r.shape, value)


def _losses(rows: Sequence[Any], peer: str) -> Iterator[SpeedUp]:
    times = {(r.shape, r.method): r for r in rows if not r.failed}
    for (shape, method), theirs in times.items():
        ours = times.get((shape, "ptxgen"))
        if method == peer and ours is not None:
            case = "x".join(map(str, shape))
            memory = _quotient(ours.extra, theirs.extra)
            yield SpeedUp(f"beside {peer}", case, theirs.ms / ours.ms, memory)


def _work(row: Any) -> str:
    """Returns the kind of work that a row of ``bench graph`` timed, such as "token of 32
    sequences".
    """
    name, sizes = row.what.rpartition(", ")[2].split(" ", 1)
    if name != "token":
        return str(name)
    count = sizes.split(" ")[0]
    return f"token of {count} sequence{'' if count == '1' else 's'}"


def _model(row: Any) -> str:
    """Returns model name and input sizes of a row of ``bench graph``."""
    name, work = row.what.rsplit(", ", 1)
    return f"{name} {work.partition(' ')[2].replace(' ', '')}"


def _compiled(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        ours, theirs = (mb and 1e6 * mb for mb in (r.ours_mb, r.stock_mb))
        memory = _quotient(ours, theirs, MEGABYTE)
        yield SpeedUp(_work(r), _model(r), r.stock_ms / r.ours_ms, memory)


def _eager(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        yield SpeedUp(f"transformers, {_work(r)}", _model(r), r.eager_ms / r.block_ms)
    for r in (r for r in rows if r.graphs is not None):
        value = r.eager_graph_ms / r.block_graph_ms
        yield SpeedUp(f"transformers, {_work(r)}, CUDA graph", _model(r), value)


def _steps(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        memory = _quotient(r.ours_bytes, r.stock_bytes)
        name = r.what.replace(" x ", "x")
        yield SpeedUp(f"Llama, {name}", name, r.stock_ms / r.ours_ms, memory)


def _images(rows: Sequence[Any], group: str) -> Iterator[SpeedUp]:
    for r in rows:
        yield SpeedUp(group, r.model, r.stock_ms / r.block_ms)


def _calls(rows: Sequence[Any]) -> Iterator[SpeedUp]:
    for r in rows:
        yield SpeedUp(f"{r.call} beside {r.peer}", r.dtype, r.peer_us / r.us)


# -- the page's sections --------------------------------------------------------------------
MODELS = "graph-transformers"


LAYOUTS = "NN and NT are `linear` of x [M, K] with weights [K, N] and [N, K]. Cases are M x K x N."


def _random(dtype: str, about: str, drawn: str = "--random 60") -> Section:
    """Returns the report's section on random products of ``dtype`` against cuBLAS; ``about``: its
    introduction; ``drawn``: options of the draw.
    """
    return Section(
        title=f"Products, {dtype}",
        image=f"random-{dtype}-torch",
        about=about,
        comparisons=(
            Comparison(
                what=f"Products, {dtype}",
                peer=CUBLAS,
                area=Gemm,
                files=(f"random-{dtype}", f"gemm-{dtype}"),
                options=f"--dtype {dtype} {drawn} --seed {{seed}}",
                read=_products,
            ),
        ),
    )


SECTIONS = (
    _random("bf16", f"Random products. {LAYOUTS}"),
    _random("f16", "Random products, as above.", "--random 67 --kinds random"),
    _random("f32", "Random products, as above."),
    Section(
        title="Products, f64",
        image="gemm-f64-torch",
        about="Chosen products, on tensor cores. Cases and layouts are as above.",
        comparisons=(
            Comparison(
                what="Products, f64",
                peer=CUBLAS,
                area=Gemm,
                files=("random-f64", "gemm-f64"),
                options="--dtype f64",
                read=_products,
            ),
        ),
    ),
    Section(
        title="Other batch-invariant products",
        image="batch-invariant",
        about="Chosen products, beside kernels that promise the same: a Triton kernel with fixed "
        "tiles (`ptxgen/bench/triton_peer.py`) and sgemm-bi. Cases are M x K x N, layouts as "
        "above.",
        comparisons=tuple(
            Comparison(
                what=f"Batch-invariant products, {dtype}",
                peer=name,
                area=Gemm,
                files=(f"gemm-{dtype}",),
                options=f"--dtype {dtype}",
                read=partial(_invariant, peer=peer, group=f"{dtype}, {name}"),
            )
            for dtype in ("bf16", "f32")
            for peer, name in INVARIANT.items()
        ),
    ),
    Section(
        title="Batched products",
        image="bmm",
        about="Chosen batches. Cases are batch x M x K x N.",
        comparisons=(
            Comparison(
                what="Batched products",
                peer="`torch.bmm` (cuBLAS)",
                area=Bmm,
                files=("bmm",),
                read=_batches,
            ),
        ),
    ),
    Section(
        title="Quantized weights",
        image="quantized",
        about="Random products of prepared weights beside cuBLAS, which reads the dequantized bf16 "
        "weight; half have models' sizes. Chosen NF4 products beside bitsandbytes. "
        "Cases are M x K x N.",
        comparisons=(
            *(
                Comparison(
                    what=what,
                    peer="cuBLAS, bf16 weight",
                    area=QuantizedProducts,
                    files=("random-quantized",),
                    options="--format nf4,int4_block_g128_bf16,int4_zero_point,mxfp4,"
                    "int8_block_g128_f16,fp8_e4m3,q4_k --random 48 --seed {seed}",
                    read=read,
                )
                for what, read in (
                    (
                        f"Quantized weights, up to {FEW} rows",
                        partial(_weights, op="linear", most=FEW),
                    ),
                    (
                        f"Quantized weights, above {FEW} rows",
                        partial(_weights, op="linear", least=FEW + 1),
                    ),
                    ("Quantized weights, gradients", partial(_weights, op="linear_dgrad")),
                )
            ),
            Comparison(
                what="NF4 weights",
                peer="bitsandbytes",
                area=QuantizedProducts,
                files=("nf4",),
                read=_nf4,
            ),
        ),
    ),
    Section(
        title="4-bit integers",
        image="int4",
        about="Random products of s4 operands; the peer multiplies the same numbers as 8-bit "
        "integers. B is [N, K] in rcr, [K, N] in rrr. Cases are M x K x N.",
        comparisons=(
            Comparison(
                what="4-bit integers",
                peer="`torch._int_mm` (cuBLASLt)",
                area=Int4,
                files=("random-int4", "int4"),
                options="--random 100 --seed {seed} --quick",
                read=_int4,
            ),
        ),
    ),
    Section(
        title="Row operations",
        image="rows",
        about="Random matrices, bf16, beside the faster of eager PyTorch and `torch.compile`. "
        "Cases are rows x columns; `apart`: padded rows; `off 16 bytes`: rows that are not "
        "aligned to 16 bytes.",
        comparisons=(
            Comparison(
                what="Row operations",
                peer=PYTORCH,
                area=row_reductions.Rows,
                files=("ops-random",),
                options="--random 60 --seed {seed} --regret",
                read=_rows,
            ),
        ),
    ),
    Section(
        title="Other memory-bound operations",
        image="elements",
        about="Chosen sizes, bf16, beside the faster of eager PyTorch and `torch.compile`.",
        comparisons=(
            Comparison(
                what="Other memory-bound",
                peer=PYTORCH,
                area=Ops,
                files=("ops",),
                read=_others,
            ),
        ),
    ),
    Section(
        title="Convolutions",
        image="conv",
        about="Random problems, bf16, channels last. Cases are batch x image side (or tokens) x "
        "input channels x output channels, taps a side (r) and stride (s).",
        comparisons=(
            Comparison(
                what="Convolutions",
                peer="cuDNN",
                area=Conv,
                files=("conv-random", "conv"),
                options="--random 18 --seed {seed} --quick",
                read=_convolutions,
            ),
        ),
    ),
    Section(
        title="Attention",
        image="attention-random",
        about="Random problems, bf16. Training is forward and backward; decode has one query a "
        "sequence. Keys of `paged` lie in pages for ptxgen, contiguous for the peers. Cases are "
        "sequences x heads / KV heads x queries x keys x head dimension D; c: causal; p: size of a "
        "page.",
        comparisons=(
            Comparison(
                what="Attention",
                peer="faster of cuDNN and FlashAttention-2",
                area=Attention,
                files=("attention-random", "attention"),
                options="--random 24 --seed {seed} --quick",
                read=_attention,
            ),
        ),
    ),
    Section(
        title="Cross-entropy",
        image="cross-entropy",
        about="Last linear layer and loss with both gradients, bf16, default chunk: random sizes "
        "beside `torch.compile`, chosen ones beside the others. Cases are rows x features x "
        "classes.",
        comparisons=(
            Comparison(
                what="Cross-entropy",
                peer=f"`{COMPILED}`",
                area=Flce,
                files=("flce-random", "flce"),
                options="--shapes 8192x4096x128256 --random 5 --seed {seed} --quick",
                read=partial(_losses, peer=COMPILED),
            ),
            *(
                Comparison(
                    what="Cross-entropy",
                    peer=peer,
                    area=Flce,
                    files=("flce",),
                    read=partial(_losses, peer=peer),
                )
                for peer in ("Liger-Kernel", "Apple's CCE")
            ),
        ),
    ),
    Section(
        title="Recurrences",
        image="recurrences",
        about="Recurrences of channels (random sizes) and of matrices (chosen ones). Cases are "
        "batch x tokens (x channels x states).",
        comparisons=(
            Comparison(
                what="Recurrences",
                peer="loops over tokens in PyTorch",
                area=Recurrence,
                files=("recurrence",),
                options="--random 4 --seed {seed}",
                read=_operations,
            ),
            Comparison(
                what="Recurrences of a matrix",
                peer="faster of PyTorch and flash-linear-attention",
                area=Delta,
                files=("delta",),
                read=_operations,
            ),
        ),
    ),
    Section(
        title="Sorts",
        image="sorts",
        about="Random sorts, searches and counts; sorts are stable, with indices. Cases are sizes "
        "and dtypes of keys. PyTorch's `unique` and `bincount` wait for the host.",
        comparisons=(
            Comparison(
                what="Sorts, searches, counts",
                peer="PyTorch (CUB)",
                area=Sort,
                files=("sort",),
                options="--random 10 --seed {seed}",
                read=_operations,
            ),
        ),
    ),
    Section(
        title="Fourier transforms",
        image="transforms",
        about="Random lengths and batches. Cases are rows x length.",
        comparisons=(
            Comparison(
                what="Fourier transforms",
                peer="`torch.fft` (cuFFT)",
                area=Fft,
                files=("fft",),
                options="--random 12 --seed {seed}",
                read=_operations,
            ),
        ),
    ),
    Section(
        title="Spectra",
        image="spectra",
        about="Random log-mel features and Welch's densities. PyTorch transforms frames by "
        "`torch.stft` (cuFFT).",
        comparisons=(
            Comparison(
                what="Log-mel features, densities",
                peer=PYTORCH,
                area=Spectra,
                files=("spectra",),
                options="--random 10 --seed {seed}",
                read=_operations,
            ),
        ),
    ),
    Section(
        title="Gaussian splats",
        image="splat-pictures",
        about="Random scenes: pictures, and pictures with the gradients of all splats. Cases are "
        "splats, bands of harmonics, and sizes of the picture.",
        comparisons=(
            Comparison(
                what="Gaussian splats",
                peer="gsplat",
                area=Splats,
                files=("splats",),
                options="--random 6 --seed {seed}",
                read=_splats,
            ),
        ),
    ),
    Section(
        title="Compiled models",
        image="compiled",
        about="Unchanged models of `transformers`, bf16, random weights, by "
        '`torch.compile(model, backend="ptxgen")` and stock `torch.compile` (tokens: '
        '`mode="reduce-overhead"`). Results and gradients are compared with those of '
        "`batch_invariant()`, bit for bit.",
        comparisons=(
            Comparison(
                what="Compiled models",
                peer="stock `torch.compile`",
                area=Graph,
                files=(MODELS,),
                options="--only transformers",
                read=_compiled,
            ),
        ),
    ),
    Section(
        title="Models in batch_invariant()",
        image="block",
        about="Eager models in `ptxgen.torch.batch_invariant()`, bf16: four layers of a Llama with "
        "the sizes of 8 billion parameters, and the models of `transformers`.",
        comparisons=(
            Comparison(
                what="Llama, batch_invariant()",
                peer="stock PyTorch",
                area=Steps,
                files=("step",),
                read=_steps,
            ),
            Comparison(
                what="transformers, batch_invariant()",
                peer="stock PyTorch",
                area=Graph,
                files=(MODELS,),
                options="--only transformers",
                read=_eager,
            ),
        ),
    ),
    Section(
        title="Image models",
        image="vision",
        about="Unchanged models of `timm` in `batch_invariant()`, eager, bf16: forward passes of "
        "eight images.",
        comparisons=(
            Comparison(
                what="Image models, random",
                peer="stock PyTorch",
                area=Vision,
                files=("vision-random",),
                options="--random 8 --seed 50",
                read=partial(_images, group="random models"),
            ),
            Comparison(
                what="Image models, chosen",
                peer="stock PyTorch",
                area=Vision,
                files=("vision",),
                read=partial(_images, group="chosen models, one of a family"),
            ),
        ),
    ),
    Section(
        title="Serving",
        image="serving",
        about="Models with random weights, served by vLLM with the extension: 64 requests, their "
        "prefill, and time between tokens. Request 0 has the same bits in every batch with the "
        "extension and with vLLM's batch-invariant mode.",
        comparisons=tuple(
            Comparison(
                what="vLLM with the extension",
                peer=name,
                area=Serving,
                files=("serving",),
                read=partial(_served, peer=peer),
            )
            for peer, name in PEERS.items()
        ),
    ),
    Section(
        title="Host time",
        image="host",
        about="Time of a call on the host. The problem is small, so no call waits for the GPU. "
        "Cases are dtypes.",
        comparisons=(
            Comparison(
                what="Host time of a call",
                peer="PyTorch's calls",
                area=Host,
                files=("host",),
                read=_calls,
            ),
        ),
    ),
)
"""All sections, in the order of the page."""
