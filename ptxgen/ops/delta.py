"""Recurrences whose state is a matrix: ``gated_delta_rule`` and ``ssd``, contract ``delta/1``."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import prod, sqrt
from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics import functions
from ptxgen.numerics.delta import COLUMNS_MAX, ROWS_MAX, RULE, SSD, STEP, groups, parts
from ptxgen.numerics.dtype import DTYPES, SINGLE
from ptxgen.numerics.formula import fma
from ptxgen.numerics.option import Bool, Kernel, Real
from ptxgen.numerics.signature import Inferred
from ptxgen.ops.attention import steps
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import check_dtype, results, rows_apart, strided_rows
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out, Written
from ptxgen.spec import Key, Problem
from ptxgen.spec.delta import BETA_F32, G_F32, SPACE, Form

FINITE = Real(least=-3e38, most=3e38)
Scale = Annotated[float | None, FINITE]
Factor = Annotated[float, FINITE]
OverState = Annotated[Any, Written(over=("state",))]


def _sizes(of: Any, arrays: Mapping[str, Buffer | None]) -> Inferred:
    """Returns the sizes and result shapes of a call with ``arrays`` (by name), from ``of``, the
    operation's signature. Raises ShapeError for unsupported state sizes.
    """
    found: Inferred = of.infer({n: x.shape for n, x in arrays.items() if x is not None})
    for what, size, most in (("N", "rows", ROWS_MAX), ("P", "columns", COLUMNS_MAX)):
        n = found.sizes[what]
        if not 1 <= n <= most or n % STEP:
            raise ShapeError(
                f"states have {n} {size}, {what}; takes a multiple of {STEP} from {STEP} to {most}"
            )
    return found


def _alike(arrays: Mapping[str, Buffer | None], first: str, *others: str) -> None:
    """Raises DtypeError unless ``first`` has a supported dtype, and ``others`` the same."""
    dtype = arrays[first].dtype  # type: ignore[union-attr]
    check_dtype(first, dtype, SINGLE)
    for name in others:
        x = arrays[name]
        if x is not None and x.dtype != dtype:
            raise DtypeError(f"{name} has dtype {x.dtype}; takes {dtype}, that of {first}")


def _either(arrays: Mapping[str, Buffer | None], first: str, *others: str) -> None:
    """Raises DtypeError unless ``others`` have the dtype of ``first`` or float32, and the state is
    float32.
    """
    takes = tuple(dict.fromkeys((arrays[first].dtype, "float32")))  # type: ignore[union-attr]
    for name in (*others, "state"):
        x = arrays[name]
        if x is not None:
            check_dtype(name, x.dtype, ("float32",) if name == "state" else takes)


# -- what kernels do ----------------------------------------------------------------------------
def _launch(
    b: ProgramBuilder,
    table: Key,
    read: Mapping[str, Buffer],
    also: Mapping[str, Buffer | None],
    sizes: tuple[int, int, int],
    scale: float,
    delta: bool,
    kernel: str | None = None,
) -> None:
    """Records the launch of a recurrence over the tokens of all sequences, by a kernel of
    ``table``. ``read``: arrays ``[..., L, heads, ...]``, by kernel parameter, which are passed with
    their strides (inputs, and ``out``); ``also``: contiguous arrays, or None. ``sizes``: number of
    heads of values that share a key, rows and columns of a state; ``delta``: whether the delta rule
    applies.
    """
    share, rows, cols = sizes
    *lead, tokens, heads = read["g"].shape
    seqs = prod(lead)
    bind, scalars = {n: x for n, x in also.items() if x is not None}, []
    for name, x in read.items():
        inner = x.shape[len(lead) + 1 :]
        strided = len(inner) > 1 and x.strides[-1] != 1 and x.shape[-1] > 1
        if name == "out" and strided:
            raise strided_rows(name, x)
        flat = (b.contiguous(x) if strided else x).reshaped((seqs, tokens, *inner))
        if flat is None and name == "out":
            raise ShapeError(f"out has strides {list(x.strides)}; takes batches evenly spaced")
        bind[name] = flat = flat or b.reshape(x, (seqs, tokens, *inner))
        scalars += steps(name, flat, "batch", "row", "head")
    form = Form(next(DTYPES[x.dtype] for n, x in read.items() if n == "k"), delta, groups(rows))
    values = (("PAIRS", seqs * heads), ("COLS", cols), ("TOKENS", tokens))
    what = f"{table[-1]} {form} PAIRS={seqs * heads} COLS={cols} TOKENS={tokens}"
    if not SPACE.within.evaluate(dict(values)):
        raise ShapeError(f"{what}: takes at most 2^31 parts of states")
    wide = {"g": G_F32, "beta": BETA_F32}
    flags = sum(bit for n, bit in wide.items() if read[n].dtype == "float32")
    scalars += [("HEADS", heads), ("GROUP", share), ("ROWS", rows)]
    scalars += [("FLAGS", flags), ("SCALE", scale)]
    b.launch(lambda: Problem(table, form, values, tuple(scalars), what), bind, kernel)


def _aligned(b: ProgramBuilder, state: Buffer | None) -> Buffer | None:
    return state if state is None or _is_aligned(state) else b.copied(state)


def _is_aligned(state: Buffer) -> bool:
    """Whether kernels can access a state in place: contiguous, aligned to 16 bytes."""
    return state.contiguous and state.address % 16 == 0


def _state(v: Buffer, rows: int, delta: bool) -> tuple[int, ...]:
    """Returns the shape of the state: ``[..., heads, rows, cols]``, ``rows`` the size of a key and
    ``cols`` that of a value; without the delta rule its transpose.
    """
    *lead, _, heads, cols = v.shape
    return (*lead, heads, *((rows, cols) if delta else (cols, rows)))


@op(
    public=False,
    oracle=lazy.function("ptxgen.oracle.delta:recurrence"),
    results=("out", "last", "writes"),
)
def recurrence(
    b: ProgramBuilder,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    g: Buffer,
    beta: Buffer,
    *,
    skip: Buffer | None = None,
    state: Buffer | None = None,
    scale: Factor = 1.0,
    delta: Bool = True,
    return_state: Bool = True,
    return_writes: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Any:
    """Runs the recurrence ``S = exp(g) S + k d``, ``o = scale q S + skip v``, token by token, with
    ``d = beta w``. ``delta``: whether ``w = v - k exp(g) S`` (delta rule), or ``w = v``; ``state``:
    the first S. Returns o; with ``return_state`` also the last states ``[..., H, N, P]``, or
    without the delta rule their transposes ``[..., H, P, N]``; with ``return_writes`` also w,
    float32.
    """
    memory = results(out, 1 + return_state + return_writes)
    y, last, w = b.result(v.shape, v.dtype, memory[0]), None, None
    if return_state:
        shape = _state(v, q.shape[-1], delta)
        last = b.result(shape, "float32", memory[1], "last")
    if return_writes:
        w = b.result(v.shape, "float32", memory[-1], "writes")
    found = tuple(x for x in (y, last, w) if x is not None)
    if not b.abstract and any(x.size for x in found):
        written = last if last is None or _is_aligned(last) else b.empty(last.shape, "float32")
        also = {"state_in": _aligned(b, state), "state_out": written, "w": w}
        also["skip"] = None if skip is None else b.packed(b.cast(skip, "float32"))
        read = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "out": y}
        sizes = v.shape[-2] // q.shape[-2], q.shape[-1], v.shape[-1]
        _launch(b, ("delta",), read, also, sizes, scale, delta, kernel)
        if last is not None and written is not None and written is not last:
            b.copied(written, last)
    return found if len(found) > 1 else y


# -- gradients ----------------------------------------------------------------------------------
@op(public=False, oracle=lazy.function("ptxgen.oracle.delta:descend"), results=("dd", "dk", "last"))
def delta_descend(
    b: ProgramBuilder,
    do: Buffer,
    q: Buffer,
    k: Buffer,
    w: Buffer,
    g: Buffer,
    beta: Buffer,
    *,
    dstate: Buffer | None = None,
    scale: Factor = 1.0,
    delta: Bool = True,
) -> tuple[Buffer, Buffer, Buffer]:
    """Runs the backward recurrence of :func:`recurrence` from the last token to the first. ``do``:
    gradient by the results; ``w``: as :func:`recurrence` returns it; ``dstate``: gradient by the
    last state; ``delta``: whether the delta rule applies. Returns, in float32, dd
    ``[..., L, H, P]``, the gradient by ``d = beta w``; partial sums of dk, one for each 64 columns
    of the state, ``[..., L, H, parts, N]``; and the gradient by the first state.
    """
    rows, cols = q.shape[-1], do.shape[-1]
    dd = b.empty(do.shape, "float32")
    dk = b.empty((*do.shape[:-1], parts(cols), rows), "float32")
    first = b.empty(_state(do, rows, delta), "float32")
    if not b.abstract and first.size:
        read = {"q": q, "k": k, "dout": do, "w": w, "g": g, "beta": beta}
        also = {"state_in": _aligned(b, dstate), "state_out": first, "dd": dd, "dk": dk}
        sizes = do.shape[-2] // q.shape[-2], rows, cols
        _launch(b, ("delta_grad", "descend"), read, also, sizes, scale, delta)
    return dd, dk, first


@op(public=False, oracle=lazy.function("ptxgen.oracle.delta:ascend"), results=("dq", "dk"))
def delta_ascend(
    b: ProgramBuilder,
    do: Buffer,
    k: Buffer,
    w: Buffer,
    g: Buffer,
    beta: Buffer,
    dd: Buffer | None = None,
    *,
    state: Buffer | None = None,
    scale: Factor = 1.0,
) -> Any:
    """Recomputes the states of :func:`recurrence` from the first token to the last, for the
    gradient by q. ``do``: gradient by the results; ``w``: as :func:`recurrence` returns it;
    ``state``: the first state; ``dd``: first result of :func:`delta_descend`, passed with the delta
    rule. Returns partial sums of dq ``[..., L, H, parts, N]`` in float32, one for each 64 columns
    of the state; with ``dd`` a pair: these and further partial sums of dk, of the same shape.
    """
    rows, cols = k.shape[-1], do.shape[-1]
    shape = (*do.shape[:-1], parts(cols), rows)
    dq = b.empty(shape, "float32")
    dk = None if dd is None else b.empty(shape, "float32")
    if not b.abstract and dq.size:
        read = {"k": k, "dout": do, "w": w, "g": g, "beta": beta}
        read |= {} if dd is None else {"dd": dd}
        also = {"state_in": _aligned(b, state), "dq": dq, "dk": dk}
        sizes = do.shape[-2] // k.shape[-2], rows, cols
        _launch(b, ("delta_grad", "ascend"), read, also, sizes, scale, dd is not None)
    return dq if dk is None else (dq, dk)


_through = Pointwise(lambda dw, do, skip: fma(skip, do, dw), "through")
_later = Pointwise(lambda read, given: read - given, "later")


def _dot(b: Builder, x: Any, y: Any) -> Any:
    """Computes ``sum(x * y)`` along the last dimension, in f32."""
    return b.rows("dot", *(b.packed(b.cast(a, "float32")) for a in (x, y)), out_dtype="float32")


def _gradients(
    b: Builder,
    needs: Set[str],
    given: Mapping[str, Any],
    do: Any,
    states: tuple[Any, Any] | None,
    *,
    scale: float,
    delta: bool,
) -> Gradients:
    """Returns the gradients of :func:`recurrence` by its arguments ``given`` (by name), at least by
    those in ``needs``. ``do``: gradient by the results; ``states``: the last state and its
    gradient, or None if it was not returned; ``scale``, ``delta``: options of the call.
    """
    q, k, v, g, beta = (given[n] for n in ("q", "k", "v", "g", "beta"))
    first, how = given["state"], {"scale": scale}
    share, wide = v.shape[-2] // q.shape[-2], "float32"
    do, w = b.cast(do, b.dtype(v)), v
    if delta:
        _, w = b.recurrence(
            q, k, v, g, beta, state=first, **how, return_state=False, return_writes=True
        )
    dstate = None if states is None else states[1]
    dd, late, dfirst = b.delta_descend(do, q, k, w, g, beta, dstate=dstate, delta=delta, **how)
    dw = b.mul(dd, b.unsqueeze(beta, -1), out_dtype=wide)
    found = {"state": dfirst, "v": b.cast(dw, b.dtype(v))}
    if given["skip"] is not None:
        skip = b.unsqueeze(given["skip"], -1)
        found["v"] = b.call(_through, dw, do, skip, out_dtype=b.dtype(v))
        if "skip" in needs:
            found["skip"] = b.summed_to(_dot(b, do, v), given["skip"].shape)
    if "beta" in needs:
        found["beta"] = _dot(b, dd, w)
    early = None
    if needs & ({"q", "k", "g"} if delta else {"q", "g"}):
        dq = b.delta_ascend(do, k, w, g, beta, dd if delta else None, state=first, **how)
        dq, early = dq if delta else (dq, None)
        dq = b.sum(dq, axis=-2)
        if "q" in needs:
            found["q"] = _shared(b, b.unsqueeze(dq, -2), q)
        if "g" in needs:
            queries = b.expand(b.unsqueeze(q, -2), (*q.shape[:-1], share, q.shape[-1]))
            queries = b.reshape(queries, dq.shape)
            change = b.move(b.call(_later, _dot(b, queries, dq), _dot(b, v, dw)), -2, -1)
            dg = b.cumsum(b.packed(change), reverse=True)
            if states is not None:
                flat = (b.reshape(b.packed(x), (*x.shape[:-2], prod(x.shape[-2:]))) for x in states)
                dg = b.add(dg, b.unsqueeze(_dot(b, *flat), -1))
            found["g"] = b.move(dg, -1, -2)
    if "k" in needs:
        found["k"] = _shared(b, late, k, early)
    return found


def _shared(b: Builder, of_parts: Any, like: Any, more: Any = None) -> Any:
    """Sums partial gradients by ``like`` (q or k, ``[..., G, N]``) over its heads. ``of_parts``
    ``[..., H, parts, N]``: one for each head of values and each 64 columns of its state; all of
    heads that share a head of ``like`` are added. ``more``: further ones, summed likewise and
    added. Returns the dtype of ``like``.
    """
    *lead, heads, count, width = of_parts.shape
    shape = (*lead, like.shape[-2], heads // like.shape[-2] * count, width)
    sums = [b.sum(b.reshape(x, shape), axis=-2) for x in (of_parts, more) if x is not None]
    return b.cast(sums[0] if more is None else b.add(*sums), b.dtype(like))


# -- the delta rule -----------------------------------------------------------------------------
def _scale(scale: float | None, q: Any) -> float:
    return 1 / sqrt(q.shape[-1]) if scale is None else scale


def _states(at: Backward) -> tuple[Any, Any] | None:
    """Returns the last states and their gradients, or None if the call returned no states."""
    return (at.results[1], at.dys[1]) if at.options["return_state"] else None


def _rule_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``gated_delta_rule``, through the norms of q and k with ``l2_norm``."""
    given, norms = {**at.arguments, "skip": None}, ("q", "k") if at.options["l2_norm"] else ()
    given |= {n: b.rows("l2_norm", b.packed(at[n])) for n in norms}
    scale = _scale(at.options["scale"], at["q"])
    found = _gradients(b, at.needs, given, at.dys[0], _states(at), scale=scale, delta=True)
    for name in norms:
        if name in at.needs:
            dx = b.rows("l2_norm_backward", b.packed(found[name]), b.packed(at[name]))
            found[name] = dx
    return {n: b.cast(x, b.dtype(at[n])) for n, x in found.items() if n in at.needs}


@op(forms=RULE, vjp=_rule_vjp, dtypes={"state": "float32"})
def gated_delta_rule(
    b: ProgramBuilder,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    g: Buffer,
    beta: Buffer,
    *,
    state: Buffer | None = None,
    scale: Scale = None,
    l2_norm: Bool = False,
    return_state: Bool = False,
    out: OverState = None,
    kernel: Kernel = None,
) -> Any:
    """``S = exp(g) S``, ``S = S + k (beta (v - kᵀ S))ᵀ``, ``o = scale qᵀ S``: the gated delta rule,
    for each head, token by token.

    ``scale``: ``1 / sqrt(N)`` by default. ``l2_norm``: q and k are first divided by
    ``sqrt(sum(x²) + 1e-6)``, and rounded to their dtype. ``state``: S before the first token, zeros
    by default; ``return_state``: also returns S after the last, from which a later call continues.

    Shapes
        ``q`` and ``k`` ``[..., L, G, N]``, ``v`` ``[..., L, H, P]``, H a multiple of G: H / G
        heads of values share a query and a key. ``g`` and ``beta`` ``[..., L, H]``; states
        ``[..., H, N, P]``. The result ``[..., L, H, P]``. N and P are multiples of 8 up to 256.
        The last state may overwrite the first: ``out=(y, state)``.
    Dtypes
        bfloat16, float16 or float32, ``q``, ``k`` and ``v`` alike, and so the result; ``g`` and
        ``beta`` the same or float32; states float32.
    Order
        Contract ``delta/1`` (:mod:`ptxgen.numerics.delta`): token by token, the state exact in
        between, all in f32. So a token's result depends on its sequence up to there, not on how
        that is split into calls: a prompt, its parts and single steps have the same bits.
        A sum over N adds 16 neighbours at a time in 4 fma chains, then such sums as a binary tree.
        :func:`ptxgen.reference.gated_delta_rule` returns the same.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/delta.py``, ``ptxgen/tiles/delta.py``.
    """
    arrays = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "state": state}
    _alike(arrays, "q", "k", "v")
    _either(arrays, "v", "g", "beta")
    _sizes(RULE, arrays)
    if l2_norm:
        q, k = (b.rows("l2_norm", rows_apart(b, x)) for x in (q, k))
    how = {"state": state, "return_state": return_state, "out": out}
    return b.recurrence(q, k, v, g, beta, **how, scale=_scale(scale, q), kernel=kernel)


# -- state space duality ------------------------------------------------------------------------
def _stepped(dt: Any, a: Any) -> tuple[Any, Any]:
    return dt, dt * a


def _biased(dt: Any, a: Any, bias: Any) -> tuple[Any, Any]:
    return _stepped(dt + bias, a)


def _softened(dt: Any, a: Any) -> tuple[Any, Any]:
    return _stepped(functions.softplus(dt), a)


def _softened_biased(dt: Any, a: Any, bias: Any) -> tuple[Any, Any]:
    return _stepped(functions.softplus(dt + bias), a)


_STEPS = {
    (False, False): Pointwise(_stepped, "ssd_steps"),
    (False, True): Pointwise(_biased, "ssd_steps"),
    (True, False): Pointwise(_softened, "ssd_steps"),
    (True, True): Pointwise(_softened_biased, "ssd_steps"),
}
"""Formulas of ``ssd`` that compute the pair (step size, logarithm of the decay) from dt, a and the
bias, where the logarithm is step size times a. Key: (softplus is applied, there is a bias).
"""


def _steps(b: Builder, dt: Any, a: Any, bias: Any, softplus: bool) -> Any:
    given = (dt, a) if bias is None else (dt, a, bias)
    return b.call(_STEPS[softplus, bias is not None], *given, out_dtype="float32")


def _ssd_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``ssd``, from those of :func:`recurrence` without the delta rule; dt, a and
    dt_bias get theirs through the formulas of step size and decay.
    """
    softplus, wide = at.options["softplus"], "float32"
    of = [n for n in ("dt", "a", "dt_bias") if at[n] is not None]
    beta, g = _steps(b, at["dt"], at["a"], at["dt_bias"], softplus)
    names = {"q": "c", "k": "b", "v": "x", "skip": "d", "state": "state"}
    given = {n: at[own] for n, own in names.items()} | {"g": g, "beta": beta}
    needs = {n for n, own in names.items() if own in at.needs}
    needs |= {"g", "beta"} if at.needs & set(of) else set()
    made = _gradients(b, needs, given, at.dys[0], _states(at), scale=1.0, delta=False)
    found = {own: made[n] for n, own in names.items() if n in made}
    if "g" in needs:
        function = _STEPS[softplus, "dt_bias" in of].gradient((True,) * len(of), 2)
        each = b.call(function, *(at[n] for n in of), made["beta"], made["g"], out_dtype=wide)
        found |= {n: b.summed_to(x, at[n].shape) for n, x in zip(of, each, strict=True)}
    return {n: b.cast(x, b.dtype(at[n])) for n, x in found.items() if n in at.needs}


@op(forms=SSD, vjp=_ssd_vjp, dtypes={"state": "float32"})
def ssd(
    to: ProgramBuilder,
    x: Buffer,
    dt: Buffer,
    a: Buffer,
    b: Buffer,
    c: Buffer,
    d: Buffer | None = None,
    *,
    dt_bias: Buffer | None = None,
    state: Buffer | None = None,
    softplus: Bool = False,
    return_state: Bool = False,
    out: OverState = None,
    kernel: Kernel = None,
) -> Any:
    """``S = exp(dt a) S + (dt x) bᵀ``, ``y = S c + d x``: state space duality (Mamba-2), for each
    head, token by token.

    ``dt_bias`` is first added to dt; ``softplus``: softplus is then applied. ``state``: S before
    the first token, zeros by default; ``return_state``: also returns S after the last, from which a
    later call continues.

    Shapes
        ``x`` ``[..., L, H, P]``, and so the result; ``dt`` ``[..., L, H]``; ``b`` and ``c``
        ``[..., L, G, N]``, H a multiple of G: H / G heads share them. ``a``, ``d`` and
        ``dt_bias`` ``[H]``; states ``[..., H, P, N]``. N and P are multiples of 8 up to 256.
        The last state may overwrite the first: ``out=(y, state)``.
    Dtypes
        bfloat16, float16 or float32, ``x``, ``b`` and ``c`` alike, and so the result; the others
        the same or float32; states float32.
    Order
        Contract ``delta/1`` (:mod:`ptxgen.numerics.delta`), of ``q = c``, ``k = b``, ``v = x``,
        ``g = dt a`` and ``beta = dt``, each rounded once to float32: token by token, the state
        exact in between, all in f32. So a token's result depends on its sequence up to there, not
        on how that is split into calls: a prompt, its parts and single steps have the same bits.
        :func:`ptxgen.reference.ssd` returns the same.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/delta.py``, ``ptxgen/tiles/delta.py``.
    """
    arrays = {"x": x, "dt": dt, "a": a, "b": b, "c": c, "d": d}
    arrays |= {"dt_bias": dt_bias, "state": state}
    _alike(arrays, "x", "b", "c")
    _either(arrays, "x", "dt", "a", "d", "dt_bias")
    _sizes(SSD, arrays)
    beta, g = _steps(to, dt, a, dt_bias, softplus)
    how = {"skip": d, "state": state, "return_state": return_state}
    return to.recurrence(c, b, x, g, beta, **how, delta=False, out=out, kernel=kernel)
