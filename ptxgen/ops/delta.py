"""Recurrences of a matrix: ``gated_delta_rule`` and ``ssd``, contract ``delta/1``."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt
from typing import Annotated, Any

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics import functions
from ptxgen.numerics.delta import COLUMNS_MAX, ROWS_MAX, RULE, SSD, STEP, groups
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.option import Bool, Kernel, Real
from ptxgen.numerics.signature import Inferred
from ptxgen.ops.attention import Scalars, steps
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import apart, check_dtype, results, rows_apart
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import op
from ptxgen.program.parameters import Out
from ptxgen.spec import Problem
from ptxgen.spec.delta import BETA_F32, G_F32, SPACE, Form

TAKES = ("bfloat16", "float16", "float32")
FINITE = Real(least=-3e38, most=3e38)
Scale = Annotated[float | None, FINITE]
Factor = Annotated[float, FINITE]


def _oracle(*arrays: Any, **options: Any) -> Any:
    from ptxgen.oracle import delta

    return delta.recurrence(*arrays, **options)


def _sizes(of: Any, arrays: Mapping[str, Buffer | None]) -> Inferred:
    """What shapes say. Raises ShapeError for states that no kernel has."""
    found: Inferred = of.infer({n: x.shape for n, x in arrays.items() if x is not None})
    for what, size, most in (("N", "rows", ROWS_MAX), ("P", "columns", COLUMNS_MAX)):
        n = found.sizes[what]
        if not 1 <= n <= most or n % STEP:
            raise ShapeError(
                f"states have {n} {size}, {what}; takes a multiple of {STEP} from {STEP} to {most}"
            )
    return found


def _alike(arrays: Mapping[str, Buffer | None], first: str, *others: str) -> None:
    """Raises DtypeError for arrays that are not of one dtype, or of none that is taken."""
    dtype = arrays[first].dtype  # type: ignore[union-attr]
    check_dtype(first, dtype, TAKES)
    for name in others:
        x = arrays[name]
        if x is not None and x.dtype != dtype:
            raise DtypeError(f"{name} has dtype {x.dtype}; takes {dtype}, that of {first}")


def _either(arrays: Mapping[str, Buffer | None], first: str, *others: str) -> None:
    """Raises DtypeError for arrays that are neither of that dtype nor float32; of a state that is
    not float32.
    """
    takes = tuple(dict.fromkeys((arrays[first].dtype, "float32")))  # type: ignore[union-attr]
    for name in (*others, "initial_state"):
        x = arrays[name]
        if x is not None:
            check_dtype(name, x.dtype, ("float32",) if name == "initial_state" else takes)


# -- what kernels do ----------------------------------------------------------------------------
@op(public=False, oracle=_oracle, results=("out", "state"))
def recurrence(
    b: ProgramBuilder,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    g: Buffer,
    beta: Buffer,
    *,
    skip: Buffer | None = None,
    initial_state: Buffer | None = None,
    scale: Factor = 1.0,
    delta: Bool = True,
    return_state: Bool = True,
    out: Out = None,
    kernel: Kernel = None,
) -> Any:
    """The results and the last states of ``S = exp(g) S + k d``, ``o = scale q S + skip v``, where
    d is ``beta v``, or by the delta rule ``beta (v - k exp(g) S)``. States without it lie column by
    column, ``[..., H, P, N]``.
    """
    arrays = {"q": q, "k": k, "v": v, "g": g, "beta": beta}
    heads, rows, cols = v.shape[-2], q.shape[-1], v.shape[-1]
    lead, tokens = v.shape[:-3], v.shape[-3]
    state = (rows, cols) if delta else (cols, rows)
    memory = results(out, 2 if return_state else 1)
    y = b.result(v.shape, v.dtype, memory[0])
    last = None
    if return_state:
        last = b.result((*lead, heads, *state), "float32", memory[1], "state")
    found = y if last is None else (y, last)
    if b.abstract or prod((*lead, heads)) == 0 or (last is None and tokens == 0):
        return found
    seqs = prod(lead)
    scalars: Scalars = []
    bind: dict[str, Buffer | None] = {}
    for name, x in (*arrays.items(), ("out", y)):
        inner = x.shape[len(lead) + 1 :]
        if name == "out" and x.strides[-1] != 1 and cols > 1:
            raise apart("out", x)
        plain = len(inner) == 1 or x.strides[-1] == 1
        flat = (x if plain else b.contiguous(x)).reshaped((seqs, tokens, *inner))
        if flat is None and name == "out":
            raise ShapeError(f"out has strides {list(x.strides)}; takes batches evenly spaced")
        bind[name] = flat = flat or b.reshape(x, (seqs, tokens, *inner))
        scalars += steps(name, flat, "batch", "row", "head")
    place = last if last is None or _lies(last) else b.empty(last.shape, "float32")
    bind |= {"state_in": _aligned(b, initial_state), "state_out": place}
    bind["skip"] = None if skip is None else b.packed(b.cast(skip, "float32"))
    form = Form(DTYPES[v.dtype], delta, groups(rows))
    values = (("PAIRS", seqs * heads), ("COLS", cols), ("TOKENS", tokens))
    what = f"delta {form} PAIRS={seqs * heads} COLS={cols} TOKENS={tokens}"
    if not SPACE.within.evaluate(dict(values)):
        raise ShapeError(f"{what}: takes at most 2^31 parts of states")
    flags = sum(bit for bit, x in ((G_F32, g), (BETA_F32, beta)) if x.dtype == "float32")
    scalars += [("HEADS", heads), ("GROUP", heads // q.shape[-2]), ("ROWS", rows)]
    scalars += [("FLAGS", flags), ("SCALE", scale)]
    given = {n: x for n, x in bind.items() if x is not None}
    b.launch(lambda: Problem(("delta",), form, values, tuple(scalars), what), given, kernel)
    if place is not last and place is not None:
        b.copied(place, last)
    return found


def _lies(state: Buffer) -> bool:
    """Whether kernels read and write states as they lie."""
    return state.contiguous and state.address % 16 == 0


def _aligned(b: ProgramBuilder, state: Buffer | None) -> Buffer | None:
    return state if state is None or _lies(state) else b.copied(state)


# -- the delta rule -----------------------------------------------------------------------------
@op(forms=RULE, dtypes={"initial_state": "float32"})
def gated_delta_rule(
    b: ProgramBuilder,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    g: Buffer,
    beta: Buffer,
    *,
    initial_state: Buffer | None = None,
    scale: Scale = None,
    l2_norm: Bool = False,
    return_state: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Any:
    """``S = exp(g) S``, ``S = S + k (beta (v - kᵀ S))ᵀ``, ``o = scale qᵀ S``: the gated delta rule,
    of each head, token by token.

    ``scale``: ``1 / sqrt(N)`` by default. ``l2_norm``: q and
    k are first divided by ``sqrt(sum(x²) + 1e-6)``, and rounded to their dtype.
    ``initial_state``: S before the first token, zeros by default; ``return_state``: that behind the
    last as well, with which a later call goes on.

    Shapes
        ``q`` and ``k`` ``[..., L, G, N]``, ``v`` ``[..., L, H, P]``, H a multiple of G: so many
        heads of values share a query and a key. ``g`` and ``beta`` ``[..., L, H]``; states
        ``[..., H, N, P]``. The result ``[..., L, H, P]``. N and P are multiples of 8 up to 256.
    Dtypes
        bfloat16, float16 or float32, ``q``, ``k`` and ``v`` alike, and so the result; ``g`` and
        ``beta`` the same or float32; states float32.
    Order
        Contract ``delta/1`` (:mod:`ptxgen.numerics.delta`): token by token, the state exact in
        between, all in f32. So a token's result depends on its sequence up to there, not on how
        that was cut into calls: a prompt, its parts and single steps have the same bits.
        Sums over keys are of 16 rows in 4 chains, then by twos.
        :func:`ptxgen.reference.gated_delta_rule` returns the same.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/delta.py``, ``ptxgen/tiles/delta.py``.
    """
    arrays = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "initial_state": initial_state}
    _alike(arrays, "q", "k", "v")
    _either(arrays, "v", "g", "beta")
    found = _sizes(RULE, arrays)
    scale = 1 / sqrt(found.sizes["N"]) if scale is None else scale
    if l2_norm:
        q, k = (b.rows("l2_norm", rows_apart(b, x)) for x in (q, k))
    how = {"initial_state": initial_state, "scale": scale, "return_state": return_state}
    return b.recurrence(q, k, v, g, beta, **how, out=out, kernel=kernel)


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
"""The step sizes of tokens, and the logarithms of decays; by softplus, and whether of a bias."""


def _steps(b: Builder, dt: Any, a: Any, bias: Any, softplus: bool) -> Any:
    given = (dt, a) if bias is None else (dt, a, bias)
    return b.call(_STEPS[softplus, bias is not None], *given, out_dtype="float32")


@op(forms=SSD, dtypes={"initial_state": "float32"})
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
    initial_state: Buffer | None = None,
    softplus: Bool = False,
    return_state: Bool = False,
    out: Out = None,
    kernel: Kernel = None,
) -> Any:
    """``S = exp(dt a) S + (dt x) bᵀ``, ``y = S c + d x``: state space duality (Mamba-2), of each
    head, token by token.

    ``dt_bias`` is added to dt before; ``softplus``: ``softplus`` is taken of that.
    ``initial_state``: S before the first token, zeros by default; ``return_state``: that behind the
    last as well, with which a later call goes on.

    Shapes
        ``x`` ``[..., L, H, P]``, and so the result; ``dt`` ``[..., L, H]``; ``b`` and ``c``
        ``[..., L, G, N]``, H a multiple of G: so many heads share them. ``a``, ``d`` and
        ``dt_bias`` ``[H]``; states ``[..., H, P, N]``. N and P are multiples of 8 up to 256.
    Dtypes
        bfloat16, float16 or float32, ``x``, ``b`` and ``c`` alike, and so the result; the others
        the same or float32; states float32.
    Order
        Contract ``delta/1`` (:mod:`ptxgen.numerics.delta`), of ``q = c``, ``k = b``, ``v = x``,
        ``g = dt a`` and ``beta = dt``, each rounded once to float32: token by token, the state
        exact in between, all in f32. So a token's result depends on its sequence up to there, not
        on how that was cut into calls: a prompt, its parts and single steps have the same bits.
        :func:`ptxgen.reference.ssd` returns the same.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/delta.py``, ``ptxgen/tiles/delta.py``.
    """
    arrays = {"x": x, "dt": dt, "a": a, "b": b, "c": c, "d": d}
    arrays |= {"dt_bias": dt_bias, "initial_state": initial_state}
    _alike(arrays, "x", "b", "c")
    _either(arrays, "x", "dt", "a", "d", "dt_bias")
    _sizes(SSD, arrays)
    beta, g = _steps(to, dt, a, dt_bias, softplus)
    how = {"skip": d, "initial_state": initial_state, "return_state": return_state}
    return to.recurrence(c, b, x, g, beta, **how, delta=False, out=out, kernel=kernel)
