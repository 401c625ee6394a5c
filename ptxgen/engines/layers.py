"""Layers of language models for inference engines, with the roundings of `transformers`.

An engine's log-probabilities equal a trainer's only if both round at the same places. Here the
modules of `transformers`, run eagerly in a ``batch_invariant()`` block, decide: each function has
their bits, in fewer launches. Its docstring names the rounding that engines do not have.

The host reads no values, so CUDA graphs can capture all functions but :func:`inverse_frequencies`.
Nothing is recorded for autograd: call them under ``torch.no_grad()`` or with tensors that require
no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import torch

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import functions as f
from ptxgen.numerics.dtype import SINGLE
from ptxgen.numerics.formula import Node, cast, primitive
from ptxgen.numerics.option import Bool, Choice, DtypeName, Integer, Real
from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.rotary import rotate_heads
from ptxgen.ops.select import is_routable
from ptxgen.ops.views import check_dtype, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.invoke import Frame
from ptxgen.program.operation import Op
from ptxgen.program.parameters import Out, Written
from ptxgen.torch.functional import linear
from ptxgen.torch.record import function
from ptxgen.torch.sdpa import attention as _attention

__all__ = [
    "attention",
    "embedding",
    "experts",
    "gated",
    "inverse_frequencies",
    "linear",
    "logits",
    "rms_norm",
    "rotary",
    "rotary_table",
    "router",
    "softcapped",
    "write_pages",
]

Finite = Annotated[float, Real(least=-3e38, most=3e38)]


def _called(name: str, lower: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of tensors that runs ``lower``, a function of a builder and buffers, as
    one program; ``name``: for messages.
    """
    return Frame(Op(lower, name=name, public=False), copies=True).function


def _stored(node: Node) -> str:
    """Returns the dtype of the array that an input of a formula reads, such as "bf16"."""
    return str(node.data.dtype)


# -- norms ------------------------------------------------------------------------------------
STYLES: Final = {"llama": (True, 0.0), "gemma": (False, 1.0), "gpt_oss": (False, 0.0)}
"""RMS norms by style: whether ``x * rsqrt(...)`` is rounded before the weight, and a number that is
added to the weight."""
_rms_norm = function(OPERATIONS["rms_norm"])


def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    residual: torch.Tensor | None = None,
    *,
    style: str = "llama",
    out: Any = None,
) -> Any:
    """``x * rsqrt(mean(x**2) + eps) * weight`` of each row; with a residual of ``x + residual``.

    "llama" (Llama, Mistral, Mixtral, Qwen) rounds before the weight, and again behind it. "gemma"
    multiplies by ``1 + weight``, and "gpt_oss" by the weight, in float32 and rounds once. The sum
    with a residual is rounded before it is normalised.

    Shapes
        ``x`` ``[..., N]``, ``residual`` as x, ``weight`` ``[N]``. The result is as x; with a
        residual a pair, the norm and the sum, and so is ``out``.
    Dtypes
        ``x`` and ``residual`` bfloat16, float16 or float32; ``weight`` one of them. The result has
        the dtype of x; in style "llama" that of x times weight, as PyTorch promotes it.
    Order
        Contract ``rows/1``.
    Errors
        OptionError for another ``style``; those of :func:`ptxgen.rms_norm`.
    """
    if style not in STYLES:
        raise OptionError(f"style is {style!r}; takes {', '.join(map(repr, STYLES))}")
    rounded, offset = STYLES[style]
    how = {"rounded": rounded, "offset": offset, "out": out}
    if not rounded or weight.dtype is x.dtype or x.dtype is torch.float32:
        return _rms_norm(x, weight, eps, residual=residual, **how)
    promoted = torch.promote_types(x.dtype, weight.dtype)
    found = _rms_norm(x, weight, eps, residual=residual, out_dtype=promoted, **how)
    return found if residual is None else (found[0], found[1].to(x.dtype))  # already rounded to it


# -- gated activations ------------------------------------------------------------------------
def _gate(activation: Callable[[Node], Node]) -> Pointwise:
    def gated(gate: Node, up: Node) -> Node:
        return cast(activation(gate), _stored(gate)) * up

    return Pointwise(gated, "gated")


def _clamped_swiglu(gate: Node, up: Node, alpha: Node, limit: Node) -> Node:
    dtype = _stored(gate)

    def rounded(x: Node) -> Node:
        return cast(x, dtype)

    gate = rounded(primitive("min", gate, limit))
    up = rounded(primitive("max", primitive("min", up, limit), -limit))
    share = rounded(f.sigmoid(rounded(gate * alpha)))
    return rounded(up + 1) * rounded(gate * share)


_SWIGLU = Pointwise(_clamped_swiglu, "clamped_swiglu")
_GATED: Final = {
    **dict.fromkeys(("silu", "swish"), _gate(f.silu)),
    "gelu": _gate(f.gelu),
    **dict.fromkeys(("gelu_tanh", "gelu_pytorch_tanh"), _gate(f.gelu_tanh)),
}
"""Formulas ``activation(gate) * up`` by the activation's name, in `transformers` or in ptxgen."""
ACTIVATIONS: Final = (*_GATED, "gpt_oss")
"""Activations that :func:`gated` computes."""


def _gate_rows(
    b: ProgramBuilder,
    x: Buffer,
    *,
    activation: Annotated[str, Choice(*ACTIVATIONS)],
    alpha: Finite,
    limit: Finite,
    out: Out = None,
) -> Buffer:
    check_dtype("x", x.dtype, SINGLE)
    if not x.shape or x.shape[-1] % 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes [..., 2 D]")
    half = x.shape[-1] // 2
    y = b.result((*x.shape[:-1], half), x.dtype, single(out))
    if activation == "gpt_oss":
        gate, up = (b.narrow(x, -1, i, half, 2) for i in (0, 1))
        b.call(_SWIGLU, gate, up, alpha, limit, out=y)
    else:
        gate, up = (b.narrow(x, -1, i * half, half) for i in (0, 1))
        b.call(_GATED[activation], gate, up, out=y)
    return y


_gated = _called("gated", _gate_rows)


def gated(
    x: torch.Tensor,
    activation: str,
    *,
    alpha: float = 1.702,
    limit: float = 7.0,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """``round(activation(gate)) * up``, where the rows of ``x`` are a gate and a factor ``up``.

    "silu" ("swish"), "gelu" and "gelu_tanh" ("gelu_pytorch_tanh") take the first half of a row as
    the gate. "gpt_oss" takes its even elements: ``(up + 1) * gate * sigmoid(alpha * gate)`` of
    numbers clamped to ``limit``, each operation rounded to the dtype.

    Shapes
        ``x`` ``[..., 2 D]``, the result and ``out`` ``[..., D]``.
    Dtypes
        bfloat16, float16 or float32, and so the result.
    Order
        Contract ``pointwise/1``; the activation is rounded to the dtype before the product.
    Errors
        OptionError for another activation; ShapeError, DtypeError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    found: torch.Tensor = _gated(x, activation=activation, alpha=alpha, limit=limit, out=out)
    return found


# -- rotary embedding -------------------------------------------------------------------------
ROPE_TYPES: Final = ("default", "linear", "llama3", "yarn")
"""Types of rotary embedding whose frequencies do not depend on the batch."""


def inverse_frequencies(config: Any, layer_type: str | None = None) -> tuple[torch.Tensor, float]:
    """Returns the inverse frequencies ``[R / 2]`` of a model's rotary embedding, float32 in host
    memory, and the factor of cosines and sines.

    They are computed by PyTorch on the CPU, by the functions of `transformers`, as a model does
    when it is made: outside of a ``batch_invariant()`` block. ``config``: the model's
    configuration; ``layer_type``: the layer's, where types of layers have different parameters.

    Raises OptionError for types that read the batch, such as "dynamic" and "longrope", and
    ModuleNotFoundError without `transformers`.
    """
    parameters = config.rope_parameters
    parameters = parameters if layer_type is None else parameters[layer_type]
    kind = parameters["rope_type"]
    if kind not in ROPE_TYPES:
        raise OptionError(
            f"rope_type is {kind!r}; takes {', '.join(ROPE_TYPES)}: frequencies of others depend "
            "on the lengths of a batch"
        )
    with torch.device("cpu"):
        if kind != "default":
            from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

            of = {} if layer_type is None else {"layer_type": layer_type}
            found, scaling = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), **of)
            return found, float(scaling)
        head = getattr(config, "head_dim", None)
        head = head or config.hidden_size // config.num_attention_heads
        width = int(head * (parameters.get("partial_rotary_factor") or 1.0))
        powers = parameters["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float) / width)
        return 1.0 / powers, 1.0


def _angle_functions(position: Node, frequency: Node, scaling: Node) -> tuple[Node, Node]:
    angle = cast(position, "f32") * frequency
    return f.cos(angle) * scaling, f.sin(angle) * scaling


_cos_sin = Pointwise(_angle_functions, "cos_sin")


def _fill_rotary_table(
    b: ProgramBuilder,
    positions: Buffer,
    frequencies: Buffer,
    *,
    scaling: Finite,
    dtype: Annotated[str, DtypeName(SINGLE)],
) -> Buffer:
    count, half = positions.shape[0], frequencies.shape[0]
    table = b.empty((count, 2 * half), dtype)
    parts = tuple(b.narrow(table, -1, at, half) for at in (0, half))
    rows, columns = b.reshape(positions, (count, 1)), b.reshape(frequencies, (1, half))
    b.call(_cos_sin, rows, columns, scaling, out=parts)
    return table


_rotary_table = _called("rotary_table", _fill_rotary_table)


def rotary_table(
    inv_freq: torch.Tensor,
    scaling: float,
    positions: int | torch.Tensor,
    *,
    dtype: torch.dtype,
    device: Any = None,
) -> torch.Tensor:
    """``[cos(p * inv_freq), sin(p * inv_freq)] * scaling`` of positions p, rounded to ``dtype``.

    A rotary embedding of `transformers` computes these rows for each call; the cache of an engine
    is made by other arithmetic.

    Shapes
        ``inv_freq`` ``[R / 2]``; ``positions`` ``[P]``, or a number P for positions 0 to P - 1; the
        result ``[P, R]``, on ``device`` (default: that of the positions or of ``inv_freq``).
    Dtypes
        ``inv_freq`` float32; ``positions`` int64; ``dtype`` bfloat16, float16 or float32.
    Order
        ``p * inv_freq``, cos and sin and their product with ``scaling`` are rounded to float32 each
        (contract ``pointwise/1``), then once to ``dtype``.
    Errors
        DtypeError, ShapeError, DeviceError or CompileError.
    """
    if isinstance(positions, int):
        where = inv_freq.device if device is None else device
        positions = torch.arange(positions, dtype=torch.int64, device=where)
    elif device is not None:
        positions = positions.to(device)
    if positions.dim() != 1 or inv_freq.dim() != 1:
        raise ShapeError(
            f"positions have shape {list(positions.shape)}, inv_freq {list(inv_freq.shape)}; takes "
            "[P] and [R / 2]"
        )
    if inv_freq.dtype is not torch.float32 or positions.dtype is not torch.int64:
        raise DtypeError(
            f"inv_freq has dtype {inv_freq.dtype}, positions {positions.dtype}; takes "
            "torch.float32 and torch.int64"
        )
    frequencies = inv_freq.to(positions.device)
    found: torch.Tensor = _rotary_table(positions, frequencies, scaling=scaling, dtype=dtype)
    return found


_rotary = Frame(rotate_heads, copies=True).function


def rotary(
    positions: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor | None,
    cos_sin: torch.Tensor,
    *,
    interleaved: bool = False,
    norms: tuple[torch.Tensor, torch.Tensor] | None = None,
    eps: float = 1e-6,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Any:
    """``q * cos + rotate_half(q) * sin`` for queries and keys, with its three roundings.

    ``cos_sin``: a table of :func:`rotary_table`, whose row p is that of position p. The first R
    elements of a head are rotated, element i with element i + R / 2 or, ``interleaved``, 2 i with
    2 i + 1; others are copied. ``norms``: weights of RMS norms of the heads of queries and of keys,
    in style "llama" of :func:`rms_norm`, which come first. Norms, angles and rotations of both
    arrays are one launch if R is D, a multiple of 16 up to 256 (with norms a power of two), halves
    are rotated, dtypes have 16 bits, and rows begin at multiples of 16 bytes.

    Shapes
        ``positions`` ``[T]``; ``q`` ``[T, H, D]`` and ``k`` ``[T, HK, D]`` (None: queries alone),
        of any strides; ``cos_sin`` ``[P, R]``; ``norms`` a pair of ``[D]``. The results, and
        ``out``, which may be ``(q, k)``, are as q and k.
    Dtypes
        ``q``, ``k``, ``cos_sin`` and ``norms`` bfloat16, float16 or float32, one for all;
        ``positions`` int64.
    Order
        Contract ``pointwise/1``: both products and their sum are rounded to the dtype. A position
        beyond the table gives zeros. Norms have contract ``rows/1`` and are rounded to the dtype.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    """
    q_out, k_out = (None, None) if out is None else out
    how = {"interleaved": interleaved, "q_out": q_out, "k_out": k_out}
    weights = norms or (None, None)
    return _rotary(q, k, positions, cos_sin, *weights, eps=eps, **how)


# -- embedding, logits ------------------------------------------------------------------------
def _embed(
    b: ProgramBuilder,
    weight: Buffer,
    ids: Buffer,
    *,
    scale: Annotated[float | None, Real(least=-3e38, most=3e38)] = None,
) -> Buffer:
    found: Buffer = b.embedding(weight, ids)
    return found if scale is None else b.mul(found, scale)


_embedding = _called("embedding", _embed)


def embedding(ids: torch.Tensor, weight: torch.Tensor, scale: float | None = None) -> torch.Tensor:
    """``weight[ids] * scale``; ``scale`` (Gemma) is rounded to the weight's dtype first.

    Shapes
        ``ids`` ``[...]``, ``weight`` ``[V, N]``, the result ``[..., N]``.
    Dtypes
        ``ids`` int32 or int64; ``weight`` bfloat16, float16 or float32, and so the result.
    Order
        Rows are copied; the product with ``scale`` is rounded once. The row of an id out of range
        is zeros.
    Errors
        Those of :func:`ptxgen.embedding`.
    """
    if scale is not None:
        scale = torch.tensor(scale, dtype=weight.dtype, device="cpu").item()
    found: torch.Tensor = _embedding(weight, ids, scale=scale)
    return found


def _capped(divided: Callable[[Node, Node], Node]) -> Pointwise:
    def capped(x: Node, cap: Node) -> Node:
        dtype = _stored(x)
        return cast(f.tanh(cast(divided(x, cap), dtype)), dtype) * cap

    return Pointwise(capped, "softcap")


_CAPPED: Final = {True: _capped(lambda x, cap: x * (1 / cap)), False: _capped(lambda x, y: x / y)}
"""Formulas of a softcap, by whether PyTorch divides by a number as it does on GPUs: by a product
with its reciprocal."""


def _cap(
    b: ProgramBuilder,
    x: Buffer,
    *,
    cap: Annotated[float, Real(above=0.0, most=3e38)],
    reciprocal: Bool,
) -> Buffer:
    check_dtype("x", x.dtype, SINGLE)
    found: Buffer = b.call(_CAPPED[reciprocal], x, cap, out_dtype=x.dtype)
    return found


_softcapped = _called("softcapped", _cap)


def softcapped(x: torch.Tensor, cap: float) -> torch.Tensor:
    """``tanh(x / cap) * cap``, each of the three operations rounded to the dtype of ``x``.

    Shapes
        ``x`` any, and so the result.
    Dtypes
        bfloat16, float16 or float32, and so the result.
    Order
        Contract ``pointwise/1``. On a GPU the quotient is a product with ``1 / cap``, as PyTorch
        computes it there.
    Errors
        OptionError for a ``cap`` that is not positive; DtypeError, DeviceError, GradError or
        CompileError.
    """
    found: torch.Tensor = _softcapped(x, cap=cap, reciprocal=x.device.type != "cpu")
    return found


def logits(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    softcap: float | None = None,
) -> torch.Tensor:
    """``x · weightᵀ + bias``, and then ``tanh(x / softcap) * softcap`` if given (Gemma 2).

    Shapes
        ``x`` ``[..., K]``, ``weight`` ``[V, K]``, ``bias`` ``[V]``; the result ``[..., V]``.
    Dtypes
        Those of :func:`ptxgen.torch.linear`.
    Order
        That of :func:`ptxgen.torch.linear`, rounded to the dtype; then that of :func:`softcapped`.
    Errors
        Those of both.
    """
    found = linear(x, weight, bias)
    return found if softcap is None else softcapped(found, softcap)


# -- attention over pages ---------------------------------------------------------------------
def attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    query_start_loc: torch.Tensor,
    seq_lens: torch.Tensor,
    block_table: torch.Tensor,
    *,
    scale: float | None = None,
    window: int | None = None,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
    causal: bool = True,
    out: torch.Tensor | None = None,
) -> Any:
    """``softmax(scale · q kᵀ + mask) · v`` of a ragged batch over pages of keys and values.

    A sequence has the bits of a model of `transformers` with ``attn_implementation="ptxgen"`` that
    computes it alone, at once: prompts, chunks of them and single tokens alike, whatever else is in
    the batch, and whichever pages hold its keys.

    Shapes
        ``q`` ``[T, H, D]``: the last queries of each sequence, those of sequence i from
        ``query_start_loc[i]`` ``[B + 1]`` on; ``seq_lens`` ``[B]``: number of its keys, those of
        its queries included; ``block_table`` ``[B, P]``: its pages. ``k_cache`` and ``v_cache``:
        views ``[blocks, page, HK, D]`` whose rows are contiguous and begin at multiples of 16
        bytes. The result and ``out`` are as q; tokens behind the last sequence get zeros.
    Dtypes
        bfloat16, float16 or float32; offsets, lengths and tables int32.
    Order
        Contract ``attention/2``.
    Errors
        ShapeError for pages that kernels cannot read in place; those of
        :func:`ptxgen.torch.attention`.
    """
    for name, x in (("k_cache", k_cache), ("v_cache", v_cache)):
        *steps, last = x.stride()
        unit = 16 // x.element_size()
        if last != 1 or any(step % unit for step in steps) or x.data_ptr() % 16:
            raise ShapeError(
                f"{name} has strides {list(x.stride())}; takes rows of stride 1 that begin at "
                "multiples of 16 bytes, as a copy would be of all pages"
            )
    places = {"cu_seqlens": query_start_loc, "lengths": seq_lens, "block_table": block_table}
    how = {"scale": scale, "window": window, "softcap": softcap, "sinks": sinks}
    return _attention(q, k_cache, v_cache, causal=causal, out=out, **places, **how)


def _put_pages(
    b: ProgramBuilder,
    k: Buffer,
    v: Buffer | None,
    rows: Buffer,
    *,
    cache: Annotated[Any, Written()],
) -> Any:
    """Writes rows ``[k, v]`` [rows, width] to the cache, [all rows, width] as it is in memory."""
    source = b.packed(k) if v is None else b.concat((k, v), -1)
    flat = b.reshape(cache, (1, -1, cache.shape[-1]))
    source = b.reshape(source, (1, rows.shape[0], cache.shape[-1]))
    b.put_rows(flat, rows, source, out=flat)
    return cache


_written = _called("write_pages", _put_pages)


def write_pages(
    k: torch.Tensor,
    v: torch.Tensor,
    cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
) -> None:
    """Writes keys and values of tokens to their slots: ``cache[s // page, s % page] = [k, v]``.

    A slot below 0 or beyond the pages writes nothing, so that padding needs no slot. Of equal slots
    the last token counts.

    Shapes
        ``k`` and ``v`` ``[T, HK, D]``, of any strides; ``slots`` ``[T]``; ``cache`` ``[blocks,
        page, HK, 2 D]``, keys and values side by side, or a pair ``[blocks, page, HK, D]`` of both.
        A cache is contiguous as it is, or with its heads before the tokens of a page.
    Dtypes
        ``k``, ``v`` and ``cache`` one dtype of 16, 32 or 64 bits; ``slots`` int64.
    Order
        Bits are copied unchanged.
    Errors
        ShapeError, DtypeError, DeviceError, GradError or CompileError, before anything is written.
    """
    if isinstance(cache, torch.Tensor):
        _write([k, v], cache, slots)
    else:
        _write([k], cache[0], slots)
        _write([v], cache[1], slots)


def _write(given: list[torch.Tensor], pages: torch.Tensor, slots: torch.Tensor) -> None:
    """Writes rows of ``given``, side by side, to their slots; as :func:`write_pages`."""
    each = (*given[0].shape[1:2], sum(x.shape[-1] for x in given))
    if any(x.dim() != 3 for x in given) or pages.dim() != 4 or tuple(pages.shape[2:]) != each:
        raise ShapeError(
            f"cache has shape {list(pages.shape)}, what is written {[list(x.shape) for x in given]}"
            "; takes [blocks, page, HK, D] and [T, HK, D]"
        )
    if any(x.dtype is not pages.dtype for x in given):
        raise DtypeError(
            f"k and v have dtypes {[x.dtype for x in given]}; takes {pages.dtype}, of the cache"
        )
    (page, heads), turned = pages.shape[1:3], pages.transpose(1, 2)
    by_token = pages.is_contiguous()
    if not (by_token or turned.is_contiguous()):
        raise ShapeError(
            f"cache has strides {list(pages.stride())}; takes contiguous pages, or such with heads "
            "before tokens"
        )
    *given, pages = _in_words(*given, pages if by_token else turned)
    width = pages.shape[-1]
    if by_token:  # a row for each token
        rows, flat = slots, pages.view(-1, heads * width)
    else:  # a row for each head: (block * heads + head) * page + slot % page
        block = slots.div(page, rounding_mode="floor")
        first = torch.add(slots, block, alpha=page * (heads - 1))
        ends = torch.arange(heads, device=slots.device) * page
        rows, flat = (first[:, None] + ends).view(-1), pages.view(-1, width)
    _written(given[0], given[1] if len(given) > 1 else None, rows, cache=flat)


def _in_words(*arrays: torch.Tensor) -> list[torch.Tensor]:
    """Returns arrays as views of 64-bit integers, which move in fewer pieces; as they are if a row
    of one is not made of whole, aligned words.
    """
    each = 8 // arrays[0].element_size()
    whole = all(
        x.stride(-1) == 1
        and not any(n % each for n in (x.shape[-1], x.storage_offset(), *x.stride()[:-1]))
        and x.data_ptr() % 8 == 0
        for x in arrays
    )
    return [x.view(torch.int64) for x in arrays] if whole else list(arrays)


# -- mixtures of experts ----------------------------------------------------------------------
ROUTERS: Final = ("mixtral", "qwen3_moe", "gpt_oss")
"""Routers by the model that has them."""
_Count = Annotated[int, Integer(1, 1 << 20)]


def _route(
    b: ProgramBuilder,
    logits: Buffer,
    *,
    k: _Count,
    style: Annotated[str, Choice(*ROUTERS)],
    normalize: Bool,
    index: Annotated[str, Choice("int64", "int32")],
) -> tuple[Buffer, Buffer]:
    check_dtype("logits", logits.dtype, SINGLE)
    normalize, narrow = normalize or style == "mixtral", style == "qwen3_moe"
    if style == "gpt_oss":
        values, chosen = b.topk(logits, k)
        weights = b.softmax(values)
    elif is_routable(logits.shape[-1], k):
        how = {"normalize": normalize, "narrow": narrow, "index": index}
        weights, chosen = b.route_tokens(b.packed(logits), k, **how)
    else:
        weights, chosen = b.moe_router(logits, k, normalize=normalize)
        weights = b.cast(weights, logits.dtype) if narrow else weights
    return weights, b.cast(chosen, index)


_router = _called("router", _route)


def router(
    logits: torch.Tensor,
    k: int,
    *,
    style: str,
    normalize: bool = True,
    index: str = "int64",
) -> tuple[torch.Tensor, torch.Tensor]:
    """``topk(softmax(logits), k)`` of each token: weights and indices of its experts.

    "mixtral" divides the weights by their sum and leaves them in float32. "qwen3_moe" divides if
    ``normalize`` and rounds them to the dtype of the logits. "gpt_oss" takes the largest logits,
    and then their softmax, rounded to their dtype.

    Shapes
        ``logits`` ``[T, E]``; both results ``[T, k]``.
    Dtypes
        ``logits`` bfloat16, float16 or float32; weights as said; ``index``, the dtype of the
        indices, int64 or int32.
    Order
        That of :func:`ptxgen.moe_router`; the first of equal scores is taken.
    Errors
        OptionError for another ``style`` and for a ``k`` above E; ShapeError, DtypeError,
        DeviceError, GradError or CompileError.
    """
    found: tuple[torch.Tensor, torch.Tensor]
    found = _router(logits, k=k, style=style, normalize=normalize, index=index)
    return found


def _mix(
    b: ProgramBuilder,
    x: Buffer,
    weights: Buffer,
    chosen: Buffer,
    gate_up: Buffer,
    down: Buffer,
    gate_up_bias: Buffer | None,
    down_bias: Buffer | None,
    *,
    activation: Annotated[str, Choice(*ACTIVATIONS)],
    layout: Annotated[str, Choice("kn", "nk")],
    alpha: Finite,
    limit: Finite,
) -> Buffer:
    rows, places, offsets = b.moe_dispatch(x, chosen, gate_up.shape[0])
    y = b.grouped_linear(rows, gate_up, offsets, gate_up_bias, layout=layout)
    y = _gate_rows(b, y, activation=activation, alpha=alpha, limit=limit)
    y = b.grouped_linear(y, down, offsets, down_bias, layout=layout)
    wide = weights if weights.dtype == y.dtype else b.cast(weights, "float32")
    found: Buffer = b.moe_combine(y, places, wide)
    return found


_experts = _called("experts", _mix)


def experts(
    x: torch.Tensor,
    weights: torch.Tensor,
    chosen: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    gate_up_bias: torch.Tensor | None = None,
    down_bias: torch.Tensor | None = None,
    *,
    activation: str = "silu",
    layout: str = "nk",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """``sum over j of weights[t, j] * expert(chosen[t, j])(x[t])``: a mixture of gated experts.

    It has the bits of a model of `transformers` with ``experts_implementation="ptxgen"``.

    Shapes
        ``x`` ``[T, K]``; ``weights`` and ``chosen`` ``[T, J]``, of :func:`router`; ``gate_up``
        ``[E, 2 D, K]`` and ``down`` ``[E, K, D]``, or with ``layout="kn"`` ``[E, K, 2 D]`` and
        ``[E, D, K]``; biases ``[E, 2 D]`` and ``[E, K]``. The result is ``[T, K]``.
    Dtypes
        bfloat16, float16 or float32, one for all; ``weights`` that or float32; ``chosen`` int32 or
        int64.
    Order
        Those of :func:`ptxgen.grouped_linear`, :func:`gated` and :func:`ptxgen.moe_combine`. An
        expert out of range gives zeros.
    Errors
        Those of these functions.
    """
    how = {"activation": activation, "layout": layout, "alpha": alpha, "limit": limit}
    found: torch.Tensor
    found = _experts(x, weights, chosen, gate_up, down, gate_up_bias, down_bias, **how)
    return found
