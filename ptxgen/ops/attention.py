"""``attention``: checks a call's arrays, and launches kernels of contract ``attention/2``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import e, log2, prod, sqrt
from typing import Annotated, Any

from ptxgen.errors import DtypeError, GradError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics.attention import HEAD_MAX
from ptxgen.numerics.dtype import DTYPES, SINGLE
from ptxgen.numerics.option import Bool, Choice, Integer, Kernel, Real
from ptxgen.numerics.signature import broadcast
from ptxgen.ops.views import alignment, check_vector, results, strided_rows
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.attention import BIAS_F32, CAPPED, CAUSAL, ROWS_MAX, SPACE, STEP, Form, paged
from ptxgen.spec.attention_mask import QUERIES

LAYOUTS = ("bhsd", "bshd")
Window = Annotated[int | None, Integer(1, (1 << 31) - 1)]
Scale = Annotated[float | None, Real(least=-3e38, most=3e38)]
Softcap = Annotated[float | None, Real(above=0.0, most=3e38)]
Scalars = list[tuple[str, int | float]]


@dataclass(frozen=True)
class Sizes:
    """Sizes of an attention call, from the shapes of its arrays.

    ``packed``: whether the batch is ragged (sequences concatenated along tokens); ``paged``:
    whether keys and values are in ``blocks`` pages of ``page`` keys; ``turned``: whether heads come
    before tokens. ``lead``: the batch dimensions of q; ``seqs``: number of sequences. ``queries``,
    ``keys``: those of a sequence, at most (not paged ragged batch: of all sequences). ``heads_q``,
    ``heads``: heads of queries, and of keys and values; ``head``, ``head_v``: head dimension of q
    and k, and of v.
    """

    packed: bool
    paged: bool
    turned: bool
    lead: tuple[int, ...]
    seqs: int
    queries: int
    keys: int
    heads_q: int
    heads: int
    head: int
    head_v: int
    page: int = 1
    blocks: int = 1

    @property
    def group(self) -> int:
        """Number of query heads that share one key head."""
        return self.heads_q // self.heads

    @property
    def rows(self) -> int:
        """Number of query rows that share keys: ``queries * group``."""
        return self.queries * self.group

    def tiled(self, tokens: int) -> dict[str, int]:
        """Variables of the route tables, by name, that bound the number of a launch's tiles. PAIRS:
        pairs of sequence and key head (ragged batch: key heads). RAGGED: most sequences of a ragged
        batch that have some of its ``tokens``, which are queries or keys; 1 for other batches.
        Tokens behind the last sequence count as one more.
        """
        if self.packed:
            return {"RAGGED": min(self.seqs + 1, tokens), "PAIRS": self.heads}
        return {"RAGGED": 1, "PAIRS": self.seqs * self.heads}

    def __str__(self) -> str:
        sizes = f"QUERIES={self.queries} KEYS={self.keys} SEQS={self.seqs}"
        return f"{sizes} HEADS={self.heads_q}/{self.heads}"


def sizes_of(arrays: Mapping[str, Any], layout: str) -> Sizes:
    """Returns the sizes of an attention call; raises ShapeError for shapes that do not agree."""
    q, k, v = (arrays[n] for n in "qkv")
    cu, table = arrays["cu_seqlens"], arrays["block_table"]
    packed, paged = cu is not None, table is not None
    for name, x in (("q", q), ("k", k), ("v", v)):
        cache = paged and name != "q"
        rank = 4 if cache else 3 if packed else 4 if paged else 0
        if len(x.shape) != rank if rank else len(x.shape) < 3:
            takes = f"{rank} dimensions" if rank else "3 dimensions or more"
            raise ShapeError(f"{name} has shape {list(x.shape)}; takes {takes}")
    turned = layout == "bhsd" and not packed
    own = (-2, -3) if turned else (-3, -2)
    of_keys = (-3, -2) if paged else own
    queries, heads_q, head = q.shape[own[0]], q.shape[own[1]], q.shape[-1]
    keys, heads, head_v = k.shape[of_keys[0]], k.shape[of_keys[1]], v.shape[-1]
    if k.shape[-1] != head or v.shape[-3:-1] != k.shape[-3:-1]:
        raise ShapeError(
            f"k has shape {list(k.shape)}, v {list(v.shape)}, q {list(q.shape)}; takes k with q's "
            "last dimension, v with k's other dimensions"
        )
    if not (1 <= head <= HEAD_MAX and 1 <= head_v <= HEAD_MAX):
        raise ShapeError(
            f"head dimensions are {head} (q, k) and {head_v} (v); takes 1 .. {HEAD_MAX}"
        )
    if heads == 0 or heads_q % heads:
        raise ShapeError(f"q has {heads_q} heads, k {heads}; takes a multiple of k's")
    lead = tuple(q.shape[:-3])
    for name, x in (("k", k), ("v", v)):
        if not paged and broadcast(lead, tuple(x.shape[:-3])) != lead:
            raise ShapeError(
                f"{name} has shape {list(x.shape)}; takes leading dimensions that broadcast to "
                f"those of q, {list(lead)}"
            )
    seqs = cu.shape[0] - 1 if packed else prod(lead)
    shapes = packed, paged, turned, lead, seqs, queries
    if not paged:
        return Sizes(*shapes, keys, heads_q, heads, head, head_v)
    if len(table.shape) != 2 or table.shape[0] != seqs:
        raise ShapeError(
            f"block_table has shape {list(table.shape)}; takes [{seqs}, blocks of each]"
        )
    inside = keys * table.shape[1]
    return Sizes(*shapes, inside, heads_q, heads, head, head_v, keys, k.shape[0])


COUNTS = ("lengths", "starts", "query_lengths")
OFFSETS = ("cu_seqlens", "cu_seqlens_k")
OF_HEADS = ("sinks", "slopes")
OF_ROWS = ("lse", "delta")
COPIED = ("q", "k", "v", "dout", "o")


def check_arrays(of: Sizes, arrays: Mapping[str, Any]) -> None:
    """Raises DtypeError or ShapeError for arrays that attention does not accept, and OptionError
    for arrays that exclude or require each other.
    """
    q, given = arrays["q"], {n for n, x in arrays.items() if x is not None}
    for name in "qkv":
        if arrays[name].dtype != q.dtype or q.dtype not in SINGLE:
            takes = q.dtype + ", that of q" if q.dtype in SINGLE else ", ".join(SINGLE)
            raise DtypeError(f"{name} has dtype {arrays[name].dtype}; takes {takes}")
    if "cu_seqlens_k" in given and (of.paged or not of.packed):
        raise OptionError("cu_seqlens_k is given; takes cu_seqlens with it, and no block_table")
    if of.paged and "lengths" not in given:
        raise OptionError("block_table is given, lengths is None; pass how many keys there are")
    alone = {"mask", "bias", "query_lengths"} | (set() if of.paged else {"lengths", "starts"})
    if of.packed and given & alone:
        raise OptionError(f"cu_seqlens is given, and {min(given & alone)}; takes one of them")
    expected: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        **dict.fromkeys(COUNTS, (("int32",), (of.seqs,))),
        **dict.fromkeys(OFFSETS, (("int32",), (of.seqs + 1,))),
        "sinks": (SINGLE, (of.heads_q,)),
        "slopes": (("float32",), (of.heads_q,)),
    }
    for name, (dtypes, shape) in expected.items():
        x = arrays[name]
        if x is None:
            continue
        if x.dtype not in dtypes:
            raise DtypeError(f"{name} has dtype {x.dtype}; takes {', '.join(dtypes)}")
        if tuple(x.shape) != shape:
            raise ShapeError(f"{name} has shape {list(x.shape)}; takes {list(shape)}")
    table, mask, bias = (arrays[n] for n in ("block_table", "mask", "bias"))
    if table is not None and table.dtype != "int32":
        raise DtypeError(f"block_table has dtype {table.dtype}; takes int32")
    if mask is not None and mask.dtype != "bool":
        raise DtypeError(f"mask has dtype {mask.dtype}; takes bool (bias= is added)")
    if bias is not None and bias.dtype not in (q.dtype, "float32"):
        raise DtypeError(f"bias has dtype {bias.dtype}; takes {q.dtype} or float32")


def check_vectors(arrays: Mapping[str, Buffer | None]) -> None:
    """Raises ShapeError for vectors (counts, offsets, sinks, slopes) that do not have stride 1."""
    for name in (*COUNTS, *OFFSETS, *OF_HEADS):
        if (x := arrays[name]) is not None:
            check_vector(name, x)


def check_ranges(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises IndexRangeError for counts and offsets out of range; waits for the arrays."""
    named = dict.fromkeys((*COUNTS, *OFFSETS, "block_table")) | dict(arrays)
    of = sizes_of(named, options["layout"])
    most = {
        "lengths": of.keys,
        "starts": of.keys,
        "query_lengths": of.queries,
        "cu_seqlens": of.queries,
        "cu_seqlens_k": of.keys,
        "block_table": of.blocks - 1,
    }
    for name, limit in most.items():
        x = named[name]
        if x is None or 0 in x.shape:
            continue
        low, high = int(x.min()), int(x.max())
        if low < 0 or high > limit:
            wrong = low if low < 0 else high
            raise IndexRangeError(f"{name} has a value {wrong}; takes 0 .. {limit}")
        if name in OFFSETS and (int(x[0]) or bool((x[1:] < x[:-1]).any())):
            raise IndexRangeError(f"{name} does not ascend from 0")


# -- arrays as kernels read them ----------------------------------------------------------------
def _is_readable(name: str, x: Buffer) -> bool:
    """Whether kernels can read ``x`` in place: rows have stride 1 and begin at multiples of 16
    bytes. Tokens of k and v must not have stride 0: TMA refuses that.
    """
    steps = [s for s, n in zip(x.strides[:-1], x.shape[:-1], strict=True) if n > 1]
    same = name in ("k", "v") and x.shape[-3] > 1 and not x.strides[-3]
    plain = x.shape[-1] == 1 or x.strides[-1] == 1
    return plain and not same and alignment(name, x, *steps) >= 16


def _readable(b: ProgramBuilder, name: str, x: Buffer) -> Buffer:
    """Returns ``x`` if kernels can read it in place, else a copy with rows of whole 16 bytes."""
    if _is_readable(name, x):
        return x
    unit = 16 // x.itemsize
    padded = b.empty((*x.shape[:-1], -(-x.shape[-1] // unit) * unit), x.dtype, name)
    return b.copied(x, padded.narrowed(-1, 0, x.shape[-1]))


def expand_to_scores(b: ProgramBuilder, name: str, x: Buffer | None, of: Sizes) -> Buffer | None:
    """Broadcasts a mask or a bias to [sequences, heads, queries, keys]; raises ShapeError."""
    if x is None:
        return None
    scores = (*of.lead, of.heads_q, of.queries, of.keys)
    fits = zip(reversed(x.shape), reversed(scores), strict=False)
    if len(x.shape) > len(scores) or any(m not in (1, n) for m, n in fits):
        raise ShapeError(f"{name} has shape {list(x.shape)}; takes what broadcasts to {scores}")
    return b.reshape(b.expand(x, scores), (of.seqs, *scores[-3:]))


def steps(name: str, x: Buffer | None, *along: str) -> Scalars:
    """Returns the strides of ``x`` as scalars ``NAME_ALONG``, in elements; 0 for size 1 or None."""
    if x is None:
        return [(f"{name}_{each}".upper(), 0) for each in along]
    moved = zip(along, x.shape, x.strides, strict=False)
    return [(f"{name}_{each}".upper(), step if n > 1 else 0) for each, n, step in moved]


def maps(of: Sizes, mask: Buffer | None, shifted: bool, form: Form) -> int:
    """Returns the number of blocks of queries for which a bit map is packed from the mask
    (:mod:`ptxgen.spec.attention_mask`): blocks of a mask's queries, times masks that differ.
    Returns 0 without a mask, or if kernels read the mask itself, as logits are rounded (``form``).
    ``shifted``: whether sequences begin at different keys (``starts``), so that each has a bit map.
    """
    if mask is None or form.rounds_scores:
        return 0
    own = dict(steps("mask", mask, "batch", "head", "row"))
    batches = of.seqs if own["MASK_BATCH"] or shifted else 1
    heads = of.heads_q if own["MASK_HEAD"] else 1
    return batches * heads * (-(-of.queries // QUERIES) if own["MASK_ROW"] else 1)


def launch_scalars(
    of: Sizes,
    causal: bool,
    window: int | None,
    bias: Buffer | None,
    scale: float,
    softcap: float | None,
    rounded: bool,
) -> Scalars:
    """Returns scalars of a launch: sizes, window, flags, and factors that turn scores into
    exponents of 2 (``scale``, ``softcap`` and ``log2(e)``). ``rounded``: whether logits are rounded
    (:attr:`Form.rounds_scores`).
    """
    factor = 1.0 if rounded else scale * log2(e)
    wide = BIAS_F32 if bias is not None and bias.dtype == "float32" else 0
    return [
        *(("SEQS", of.seqs), ("HEADS", of.heads), ("GROUP", of.group)),
        *(("QUERIES", of.queries), ("TOTAL_K", of.keys)),
        *(("HEAD", of.head), ("HEAD_V", of.head_v), ("WINDOW", window or 0)),
        ("FLAGS", (CAUSAL if causal else 0) | (CAPPED if softcap else 0) | wide),
        ("FACTOR", factor),
        ("INNER", 0.0 if softcap is None else scale / softcap),
        ("OUTER", (scale if softcap is None else softcap) * log2(e)),
    ]


_OPTIONS = ("causal", "window", "scale", "softcap", "layout")
_ARRAYS = ("bias", "mask", *COUNTS, *OFFSETS, *OF_HEADS)


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``attention`` by q, k, v, bias and sinks, by ``attention_grad``."""
    if at.arguments.get("block_table") is not None:
        raise GradError("attention with block_table has no gradient; pass keys without one")
    if "slopes" in at.needs:
        raise GradError("attention has no gradient by slopes; pass them without requires_grad")
    o, lse = at.results[:2]
    wanted = [n for n in ("bias", "sinks") if n in at.needs]
    found = b.attention_grad(
        b.cast(at.dys[0], b.dtype(at["q"])),
        *(at[n] for n in "qkv"),
        o,
        lse,
        **{n: at.arguments.get(n) for n in _ARRAYS},
        **at.only(*_OPTIONS),
        bias_grad="bias" in wanted,
        sinks_grad="sinks" in wanted,
    )
    return {n: x for n, x in zip(("q", "k", "v", *wanted), found, strict=True) if n in at.needs}


@op(checks=check_ranges, vjp=_vjp, results=("out",))
def attention(
    b: ProgramBuilder,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    *,
    causal: Bool = False,
    window: Window = None,
    bias: Buffer | None = None,
    mask: Buffer | None = None,
    lengths: Buffer | None = None,
    starts: Buffer | None = None,
    query_lengths: Buffer | None = None,
    cu_seqlens: Buffer | None = None,
    cu_seqlens_k: Buffer | None = None,
    block_table: Buffer | None = None,
    sinks: Buffer | None = None,
    slopes: Buffer | None = None,
    scale: Scale = None,
    softcap: Softcap = None,
    layout: Annotated[str, Choice(*LAYOUTS)] = "bhsd",
    return_lse: Bool = False,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Any:
    """``softmax(scale · q kᵀ + mask) · v``, for each query over the keys that it attends to.

    ``causal``: keys up to the query's position; the last query has the position of the last key.
    ``window``: keys less than ``window`` positions away. ``mask`` (bool): keys where it is True;
    ``bias``: added to the logits. ``softcap``: logits become ``softcap · tanh(x / softcap)``;
    ``slopes`` (ALiBi): ``slope · (j - i)`` is added; ``sinks``: a logit for each head without a
    value. ``scale``: ``1 / sqrt(D)`` by default. ``return_lse``: also returns the logarithm of the
    sum of exponentials.

    Shapes
        ``q`` ``[..., H, S, D]``, ``k`` ``[..., HK, L, D]``, ``v`` ``[..., HK, L, E]``, of any
        strides; H is a multiple of HK: H / HK query heads share a key head. The result is
        ``[..., H, S, E]``, the logarithms ``[..., H, S]``. ``layout="bshd"``: ``[..., S, H, D]``
        and so on. ``mask`` and ``bias`` broadcast to ``[..., H, S, L]``; ``sinks`` and ``slopes``
        ``[H]``.
        ``lengths``, ``starts`` and ``query_lengths`` ``[B]``: number of keys, index of the first
        key (left padding) and number of queries of each sequence; further queries give zeros.
        ``cu_seqlens`` ``[B + 1]``: a ragged batch, ``q`` ``[T, H, D]``; a sequence's queries begin
        there, its keys at ``cu_seqlens_k`` (default: at ``cu_seqlens``).
        ``block_table`` ``[B, P]``: a paged KV cache; the blocks of keys and values
        ``[blocks, page, HK, D]`` of each sequence, which has ``lengths`` keys.
    Dtypes
        bfloat16, float16 or float32, and so the result; ``mask`` bool, ``bias`` as ``q`` or
        float32, ``sinks`` bfloat16, float16 or float32 (converted to float32, exactly),
        ``slopes`` float32, the logarithms float32; counts int32, on the device: nothing waits for
        them, unless ``check``. Counts out of range are clamped.
    Order
        Contract ``attention/2`` (:mod:`ptxgen.numerics.attention`): blocks of 128 keys (64 where a
        head dimension exceeds 128) ascending, splits of 1024 keys merged ascending. A query's bits
        depend on it, and on the keys and values that it attends to, at their positions in the
        sequence: not on the batch, on other queries or on storage.
        :func:`ptxgen.reference.attention` returns the same bits. Masked keys and values may be NaN
        or uninitialised; a query without keys gives 0.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written; with ``check`` IndexRangeError for counts out of range.
    Source
        ``ptxgen/ops/attention.py``, ``ptxgen/tiles/attention.py``.
    """
    arrays: dict[str, Buffer | None] = {
        **{"q": q, "k": k, "v": v, "block_table": block_table, "bias": bias, "mask": mask},
        **{"lengths": lengths, "starts": starts, "query_lengths": query_lengths},
        **{"cu_seqlens": cu_seqlens, "cu_seqlens_k": cu_seqlens_k},
        **{"sinks": sinks, "slopes": slopes},
    }
    of = sizes_of(arrays, layout)
    check_arrays(of, arrays)
    memory = results(out, 2 if return_lse else 1)
    y = b.result((*q.shape[:-1], of.head_v), q.dtype, memory[0])
    sums = b.result(q.shape[:-1], "float32", memory[1], "lse") if return_lse else None
    found = (y, sums) if return_lse else y
    arrays |= {n: expand_to_scores(b, n, arrays[n], of) for n in ("mask", "bias")}
    if b.abstract or y.size == 0:
        return found
    if of.keys == 0:  # kernels read one zero key that no sequence contains
        lead = () if of.packed else of.lead
        tokens = (of.heads, 1) if of.turned else (1, of.heads)
        k, v = (b.filled((*lead, *tokens, n), q.dtype, 0) for n in (of.head, of.head_v))
        none = b.filled((of.seqs + of.packed,), "int32", 0)
        given = {"cu_seqlens": cu_seqlens, "query_lengths": query_lengths, "sinks": sinks}
        given["cu_seqlens_k" if of.packed else "lengths"] = none
        return b.attention(q, k, v, **given, layout=layout, return_lse=return_lse, out=out)
    check_vectors(arrays)
    if sinks is not None:
        arrays["sinks"] = b.cast(sinks, "float32")
    if y.strides[-1] != 1 and of.head_v > 1:
        raise strided_rows("out", y)
    form, scale = form_of(of, q.dtype, scale, softcap, bias, slopes)
    sizes = {
        "ROWS": of.rows,
        **of.tiled(of.queries),
        "KEYS": of.keys,
        "DEPTH": form.head_dim,
        "WIDTH": form.head_dim_v,
        "PAGED": paged(of.page, starts is None) if of.paged else 0,
        "MAPS": maps(of, arrays["mask"], starts is not None, form),
    }
    what = f"attention {form} {of}"
    if sizes["ROWS"] > ROWS_MAX or not SPACE.within.evaluate(SPACE.environment(sizes)):
        raise ShapeError(f"{what}: takes at most {ROWS_MAX} rows of queries and heads, 2^31 tiles")
    scalars: Scalars = [
        *(("PAGE", of.page), ("BLOCKS", of.blocks)),
        ("TABLE_ROW", 0 if block_table is None else block_table.strides[0]),
        *launch_scalars(of, causal, window, bias, scale, softcap, form.rounds_scores),
    ]
    arrays |= {"out": y, "lse": sums}
    for name in ("q", "k", "v", "out", "lse"):
        arrays[name] = flat = flat_of(b, of, name, arrays[name])
        scalars += stride_scalars(of, name, flat)
    for name in ("bias", "mask"):
        scalars += steps(name, arrays[name], "batch", "head", "row", "key")
    if of.packed and not of.paged and cu_seqlens_k is None:
        arrays["cu_seqlens_k"] = cu_seqlens
    table = ("attention", "f32" if form.dtype == "f32" else "half")
    values = tuple(sizes.items())
    bind = {name: x for name, x in arrays.items() if x is not None}
    b.launch(lambda: Problem(table, form, values, tuple(scalars), what), bind, kernel)
    return found


def sharing(problem: Problem, by: int, k: Buffer, v: Buffer) -> Problem | None:
    """Returns the attention problem that replaces ``problem``, in which each ``by`` neighbouring
    heads have equal keys and values: grouped-query attention, which reads these once, from ``k``
    and ``v`` [batch, tokens, heads / by, ...]. Returns None where kernels cannot read these.
    """
    values, scalars = dict(problem.values), dict(problem.scalars)
    heads, group = int(scalars["HEADS"]), int(scalars["GROUP"])
    values |= {"ROWS": values["ROWS"] * by, "PAIRS": values["PAIRS"] // by}
    scalars |= {"HEADS": heads // by, "GROUP": group * by}
    for name, x in (("k", k), ("v", v)):
        if not _is_readable(name, x):
            return None
        scalars |= dict(steps(name, x, "batch", "row", "head"))
    if values["ROWS"] > ROWS_MAX or not SPACE.within.evaluate(SPACE.environment(values)):
        return None
    named = f"HEADS={heads * group}/"
    what = problem.what.replace(f"{named}{heads}", f"{named}{heads // by}")
    return replace(problem, values=tuple(values.items()), scalars=tuple(scalars.items()), what=what)


def form_of(
    of: Sizes,
    dtype: str,
    scale: float | None,
    softcap: float | None,
    bias: Buffer | None,
    slopes: Buffer | None,
) -> tuple[Form, float]:
    """Returns the :class:`Form` that kernels are compiled for, and the scale of scores (default:
    ``1 / sqrt(head dimension)``). Logits are rounded if there is a ``softcap``, ``bias`` or
    ``slopes``, or if the scale is not positive.
    """
    scale = 1 / sqrt(of.head) if scale is None else scale
    rounded = any(x is not None for x in (softcap, bias, slopes)) or scale <= 0
    heads = (-(-n // STEP) * STEP for n in (of.head, of.head_v))
    return Form(DTYPES[dtype], next(heads), next(heads), rounded), scale


def flat_of(b: ProgramBuilder, of: Sizes, name: str, x: Buffer | None) -> Buffer | None:
    """Returns argument ``name`` as [batch, tokens, heads, ...], or as [tokens, heads, ...] in a
    ragged batch. Queries, keys, values, results and their gradients (``COPIED``) are copied where
    kernels cannot read them in place. Raises ShapeError for other arrays whose batch dimensions are
    not evenly spaced.
    """
    if x is None:
        return None
    cache = name in ("k", "v")
    inner = 2 if name in OF_ROWS else 3
    if of.turned and not (of.paged and cache):
        x = x.moved(-inner, 1 - inner)
    if cache and not of.packed and not of.paged:
        x = x.expanded((*of.lead, *x.shape[-3:]))
    if name in COPIED:
        x = _readable(b, name, x)
    if of.packed or (of.paged and cache):
        return x
    shape = (of.seqs, *x.shape[-inner:])
    flat = b.reshape(x, shape) if name in COPIED else x.reshaped(shape)
    if flat is None:
        raise ShapeError(f"{name} has strides {list(x.strides)}; takes batches evenly spaced")
    return flat


def stride_scalars(of: Sizes, name: str, flat: Buffer | None) -> Scalars:
    """Returns the strides of an array from :func:`flat_of`, as scalars, in elements."""
    if of.packed and not (of.paged and name in ("k", "v")):
        return [(f"{name}_batch".upper(), 0), *steps(name, flat, "row", "head")]
    return steps(name, flat, "batch", "row", "head")
