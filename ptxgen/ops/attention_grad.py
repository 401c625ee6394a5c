"""``attention_grad``: the gradients of ``attention``, by contract ``attention_grad/3``."""

from __future__ import annotations

from functools import cache, partial, reduce
from math import inf
from operator import add
from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import functions
from ptxgen.numerics.attention import QUERIES, part, parts
from ptxgen.numerics.formula import fma, where
from ptxgen.numerics.option import Bool, Choice, Kernel
from ptxgen.ops.attention import (
    LAYOUTS,
    Scalars,
    Scale,
    Sizes,
    Softcap,
    Window,
    check_arrays,
    check_ranges,
    check_vectors,
    expand_to_scores,
    flat_of,
    form_of,
    launch_scalars,
    maps,
    sizes_of,
    steps,
    stride_scalars,
)
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import results, strided_rows
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.attention import ROWS_MAX, Form
from ptxgen.spec.attention_grad import SPACE, SUMS
from ptxgen.tiles.attention_grad import KERNELS, key

_sunk = Pointwise(
    lambda sink, lse, delta: where(lse == -inf, 0, -functions.exp(sink - lse) * delta), "sunk"
)
"""Formula ``-exp(sink - lse) * delta``: a query's term in the gradient by its head's sink; 0 for a
query without keys (``lse`` is -inf). ``delta``: the query's ``sum(do * o)``.
"""
ADDED = 8
"""Most partial sums of dk and dv that one launch adds."""


def _like(name: str, x: Buffer, shape: tuple[int, ...], dtype: str) -> None:
    """Raises ShapeError or DtypeError unless array ``x`` has this shape and dtype."""
    if tuple(x.shape) != shape or x.dtype != dtype:
        raise (ShapeError if tuple(x.shape) != shape else DtypeError)(
            f"{name} has dtype {x.dtype} and shape {list(x.shape)}; takes {dtype} {list(shape)}, "
            "as q and v have them"
        )


@op(
    public=False,
    oracle=lazy.function("ptxgen.oracle.attention_grad:attention_backward"),
    results=("dq", "dk", "dv", "delta"),
)
def attention_backward(
    b: ProgramBuilder,
    do: Buffer,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    o: Buffer,
    lse: Buffer,
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
    slopes: Buffer | None = None,
    scale: Scale = None,
    softcap: Softcap = None,
    layout: Annotated[str, Choice(*LAYOUTS)] = "bhsd",
    dlogits: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Any:
    """Returns dq, dk, dv, ``D = sum(do * o)`` of each query, and with ``dlogits`` the gradient by
    the logits, given results ``o`` and logarithms ``lse``. ``k`` and ``v`` have all of q's leading
    dimensions.
    """
    arrays: dict[str, Buffer | None] = {
        **{"q": q, "k": k, "v": v, "dout": do, "o": o, "lse": lse},
        **{"bias": bias, "mask": mask, "slopes": slopes, "sinks": None, "block_table": None},
        **{"lengths": lengths, "starts": starts, "query_lengths": query_lengths},
        **{"cu_seqlens": cu_seqlens, "cu_seqlens_k": cu_seqlens_k},
    }
    of = sizes_of(arrays, layout)
    check_arrays(of, arrays)
    for name, x in (("do", do), ("o", o)):
        _like(name, x, (*q.shape[:-1], of.head_v), q.dtype)
    _like("lse", lse, tuple(q.shape[:-1]), "float32")
    if dlogits and (bias is None or of.packed):
        raise OptionError("dlogits is True; takes a bias, and no cu_seqlens")
    memory = results(out, 5 if dlogits else 4)
    named = zip(("dq", "dk", "dv"), (q, k, v), memory, strict=False)
    made = {n: b.result(x.shape, x.dtype, m, n) for n, x, m in named}
    delta = b.result(q.shape[:-1], "float32", memory[3], "delta")
    logits = None
    if dlogits:
        logits = b.result(
            (*of.lead, of.heads_q, of.queries, of.keys), "float32", memory[4], "dlogits"
        )
    found = (*made.values(), delta, *(() if logits is None else (logits,)))
    arrays |= {n: expand_to_scores(b, n, arrays[n], of) for n in ("mask", "bias")}
    if b.abstract:
        return found
    nothing = do.size == 0 or of.keys == 0
    sums: dict[str, Buffer] = {}
    if parts(of.group) > 1 and not nothing:
        sums = {n: b.empty((parts(of.group), *made[n].shape), "float32") for n in ("dk", "dv")}
    # Kernels write no gradients of keys outside sequences, nor of logits that are masked.
    partial_keys = any(x is not None for x in (lengths, starts, cu_seqlens))
    covered = {"dq": True, "delta": True, "dk": not partial_keys, "dv": not partial_keys}
    if nothing:
        covered = {"delta": do.size > 0}  # D needs no keys: it is sum(do * o)
    written = made | sums | {"delta": delta} | ({} if logits is None else {"dlogits": logits})
    for name, x in written.items():
        if x.size and not covered.get(name):
            b.fill(x, 0, out=x)
    if nothing:
        if do.size:
            b.sum(b.mul(b.cast(do, "float32"), b.cast(o, "float32")), axis=-1, out=delta)
        return found
    check_vectors(arrays)
    for name, y in made.items():
        if y.strides[-1] != 1 and y.shape[-1] > 1:
            raise strided_rows(name, y)
    form, scale = form_of(of, q.dtype, scale, softcap, bias, slopes)
    scalars: Scalars = [
        ("KEYS", of.keys),
        ("SCALE", scale),
        ("PART", part(of.group)),
        *launch_scalars(of, causal, window, bias, scale, softcap, form.rounds_scores),
    ]
    if sums:
        scalars = [(n, int(x) | SUMS if n == "FLAGS" else x) for n, x in scalars]
    arrays |= {"lse": b.contiguous(lse), "delta": delta, **made}
    arrays |= {n: x.one(0, 0) for n, x in sums.items()}
    for name in ("q", "k", "v", "dout", "o", "lse", "delta", "dq", "dk", "dv"):
        arrays[name] = flat = flat_of(b, of, name, arrays[name])
        scalars += stride_scalars(of, name, flat)
    scalars += [(f"{n.upper()}_PART", sums[n].strides[0] if sums else 0) for n in ("dk", "dv")]
    for name in ("bias", "mask"):
        scalars += steps(name, arrays[name], "batch", "head", "row", "key")
    if logits is not None:
        arrays["dlogits"] = b.reshape(logits, (of.seqs, *logits.shape[-3:]))
    scalars += steps("dlogits", arrays.get("dlogits"), "batch", "head", "row")
    if of.packed and cu_seqlens_k is None:
        arrays["cu_seqlens_k"] = cu_seqlens
    bind = {n: x for n, x in (arrays | sums).items() if x is not None}
    plain = not form.rounds_scores and _is_loadable(arrays["q"]) and _is_loadable(arrays["dout"])
    mapped = maps(of, arrays["mask"], starts is not None, form)
    for which in KERNELS:
        unused = {"dkdv": {"dq", "dlogits", "o"}, "dq": {"dk", "dv"}}[which]
        what = f"attention_grad {which} {form} {of}"
        sizes = _sizes(of, which, form, {"PLAIN": int(plain), "MAPS": mapped}, what)
        problem = partial(Problem, key(which, form.dtype), form, sizes, tuple(scalars), what)
        own = {n: x for n, x in bind.items() if n not in unused}
        forced = kernel if kernel and ("_dq_" in kernel) == (which == "dq") else None
        b.launch(problem, own, forced)
    for name, x in sums.items():
        _add(b, x, scale if name == "dk" else 1.0, made[name])
    return found


@cache
def _sum_of(count: int) -> Pointwise:
    """Returns the formula ``fma((x0 + x1) + x2 …, factor, 0)`` of ``count`` arrays."""

    def formula(factor: Any, **given: Any) -> Any:
        return fma(reduce(add, given.values()), factor, 0.0)

    return Pointwise(formula, "sum_of_parts", ("factor", *(f"x{i}" for i in range(count))))


def _add(b: ProgramBuilder, sums: Buffer, factor: float, out: Buffer) -> None:
    """Writes ``factor`` times the sum of ``sums``, two or more partial sums along its first
    dimension, to ``out``: adds them in order, at most ``ADDED`` a launch.
    """
    first, *rest = (sums.one(0, i) for i in range(sums.shape[0]))
    while rest:
        some, rest = rest[: ADDED - 1], rest[ADDED - 1 :]
        how = {} if rest else {"out": out}
        first = b.call(_sum_of(len(some) + 1), 1.0 if rest else factor, first, *some, **how)


def _is_loadable(x: Buffer | None) -> bool:
    """Whether TMA can load rows of queries from ``x``: all strides are positive."""
    assert x is not None
    return all(s > 0 for s, n in zip(x.strides[:-1], x.shape[:-1], strict=True) if n > 1)


def _sizes(
    of: Sizes, which: str, form: Form, facts: dict[str, int], what: str
) -> tuple[tuple[str, int], ...]:
    """Returns the sizes of a call as variables of the route table for kernel ``which`` ("dq" or
    "dkdv"). ``facts``: further variables by name; ``what``: the call, for the message. Raises
    ShapeError for sizes that are too large.
    """
    if which == "dq":
        rows, past, tokens, count = of.rows, of.keys, of.queries, 1
    else:
        rows, tokens = of.keys, of.keys
        past = -(-of.queries // QUERIES) * QUERIES * of.group
        count = parts(of.group)
    sizes = {"ROWS": rows, **of.tiled(tokens), "PAST": past}
    sizes["PAIRS"] *= count
    sizes |= {"DEPTH": form.head_dim, "WIDTH": form.head_dim_v, **facts}
    if max(rows, past) > ROWS_MAX or not SPACE.within.evaluate(SPACE.environment(sizes)):
        raise ShapeError(
            f"{what}: takes at most {ROWS_MAX} keys, and rows of queries and heads; 2^31 tiles"
        )
    return tuple(sizes.items())


@op(checks=check_ranges, results=("dq", "dk", "dv"))
def attention_grad(
    b: ProgramBuilder,
    do: Buffer,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    o: Buffer,
    lse: Buffer,
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
    bias_grad: Bool = False,
    sinks_grad: Bool = False,
    check: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Any:
    """The gradients ``(dq, dk, dv)`` of :func:`attention`, for the gradient ``do`` of its result.

    ``o`` and ``lse`` are its results with ``return_lse=True``; keyword arguments are those of that
    call. ``bias_grad``, ``sinks_grad``: also returns the gradients by ``bias`` and by ``sinks``, in
    this order; that by the bias takes memory for all logits.

    Shapes
        As those of ``attention``; ``do`` and ``o`` have the shape of its result. A gradient has the
        shape of its argument.
    Dtypes
        bfloat16, float16 or float32, as ``attention``, and so the gradients by q, k and v; those by
        bias and sinks are summed in float32 and rounded once to their dtypes.
    Order
        Contract ``attention_grad/3`` (:mod:`ptxgen.numerics.attention`): sums over keys and
        over query rows ascend, sixteen at a time. Rows are ordered by block of 64 queries, then by
        head, then by query. At most four of the heads that share a key have one sum; such partial
        sums are added in order. No sum depends on the order in which CTAs run. The gradients of a
        sequence depend on it alone, not on the batch or on padding. The gradient by the bias is
        summed along its broadcast dimensions, that by the sinks over all queries, as by
        :func:`ptxgen.sum`. :func:`ptxgen.reference.attention_grad` returns the same bits. Masked
        keys and values may be NaN or uninitialised; their gradients are 0.
    Errors
        ShapeError, DtypeError, OptionError (with ``block_table``, too), DeviceError, GradError or
        CompileError, before anything is launched or written; with ``check`` IndexRangeError for
        counts out of range.
    Source
        ``ptxgen/ops/attention_grad.py``, ``ptxgen/tiles/attention_grad.py``.
    """
    if block_table is not None:
        raise OptionError("block_table is given; attention_grad takes keys without one")
    if bias_grad and bias is None:
        raise OptionError("bias_grad is True, bias is None; pass the bias")
    if sinks_grad and sinks is None:
        raise OptionError("sinks_grad is True, sinks is None; pass the sinks")
    arrays: dict[str, Buffer | None] = {
        **{"q": q, "k": k, "v": v, "block_table": None, "bias": bias, "mask": mask},
        **{"lengths": lengths, "starts": starts, "query_lengths": query_lengths},
        **{"cu_seqlens": cu_seqlens, "cu_seqlens_k": cu_seqlens_k},
        **{"sinks": sinks, "slopes": slopes},
    }
    of = sizes_of(arrays, layout)
    check_arrays(of, arrays)
    for name, x in (("do", do), ("o", o)):
        _like(name, x, (*q.shape[:-1], of.head_v), q.dtype)
    _like("lse", lse, tuple(q.shape[:-1]), "float32")
    memory = results(out, 3 + bias_grad + sinks_grad)
    wide = [x if of.packed else b.expand(x, (*of.lead, *x.shape[-3:])) for x in (k, v)]
    whole = tuple(wide[0].shape) == tuple(k.shape) and tuple(wide[1].shape) == tuple(v.shape)
    found = b.attention_backward(
        do,
        q,
        *wide,
        o,
        lse,
        causal=causal,
        window=window,
        bias=bias,
        mask=mask,
        lengths=lengths,
        starts=starts,
        query_lengths=query_lengths,
        cu_seqlens=cu_seqlens,
        cu_seqlens_k=cu_seqlens_k,
        slopes=slopes,
        scale=scale,
        softcap=softcap,
        layout=layout,
        dlogits=bias_grad,
        out=(*memory[:3], None) if whole and not bias_grad and None not in memory[:3] else None,
        kernel=kernel,
    )
    given = [b.summed_to(x, y.shape) for x, y in zip(found, (q, k, v), strict=False)]
    if bias_grad:
        assert bias is not None
        given.append(b.cast(b.summed_to(found[4], bias.shape), bias.dtype))
    if sinks_grad:
        given.append(_by_sinks(b, of, sinks, lse, found[3]))
    return tuple(b.delivered(x, m) for x, m in zip(given, memory, strict=True))


def _by_sinks(b: ProgramBuilder, of: Sizes, sinks: Any, lse: Buffer, delta: Buffer) -> Any:
    """Returns the gradient by the sinks: ``sum(-exp(sink - lse) * D)`` of each head."""
    axis = len(lse.shape) - (2 if of.turned else 1)
    wide = b.cast(sinks, "float32")
    own = b.reshape(wide, (*sinks.shape, *(1,) * (len(lse.shape) - 1 - axis)))
    each = b.call(_sunk, b.expand(own, lse.shape), lse, delta)
    total = b.sum(each, axis=tuple(i for i in range(len(lse.shape)) if i != axis))
    return b.cast(total, sinks.dtype)
