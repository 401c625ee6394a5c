"""Linear recurrences along a sequence: ``selective_scan`` and ``linear_recurrence``."""

from __future__ import annotations

from typing import Annotated, Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics import recurrence as numerics
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.functions import sigmoid, silu
from ptxgen.numerics.option import Bool, Dtype, Kernel
from ptxgen.numerics.recurrence import LINEAR, SELECTIVE, STATES_MAX, tile
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import alignment, check_dtype, dense, result_dtype, results
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Written
from ptxgen.spec import GRID_MAX, Problem
from ptxgen.spec.recurrence import LINEAR_SPACE, OUT_F32, SOFTPLUS, SPACE, TURNED

OverState = Annotated[Any, Written(over=("state",))]
Scalars = list[tuple[str, int]]


def _steps(name: str, x: Buffer | None, *along: str) -> Scalars:
    """Returns the strides of ``x`` as scalars ``NAME_ALONG``, in elements; 0 for size 1 or None."""
    along = along or ("batch", "token", "channel")
    if x is None:
        return [(f"{name}_{each}".upper(), 0) for each in along]
    alignment(name, x, 0)
    moved = zip(along, x.shape, x.strides, strict=False)
    return [(f"{name}_{each}".upper(), step if n > 1 else 0) for each, n, step in moved]


def _rows(b: ProgramBuilder, x: Buffer) -> Buffer:
    """Returns ``x`` if its last dimension has stride 1, else a contiguous copy."""
    return x if x.strides[-1] == 1 or x.shape[-1] == 1 or not x.size else b.copied(x)


def _check(what: str, first: str, arrays: dict[str, Buffer | None], wide: tuple[str, ...]) -> None:
    """Raises DtypeError unless arrays have the dtype of ``first``, those in ``wide`` float32."""
    lead = arrays[first]
    assert lead is not None
    check_dtype(first, lead.dtype, numerics.DTYPES)
    for name, x in arrays.items():
        if x is None:
            continue
        takes = "float32" if name in wide else lead.dtype
        if x.dtype != takes:
            suffix = "" if name in wide else f", that of {first}"
            raise DtypeError(f"{name} has dtype {x.dtype}; {what} takes {takes}{suffix}")


def _within(space: Any, values: dict[str, int], what: str) -> None:
    if not space.within.evaluate(values):
        raise ShapeError(f"{what}: takes at most {GRID_MAX} groups of 4 channels of a sequence")


# -- selective scan ---------------------------------------------------------------------------
_WIDE = ("A", "D", "delta_bias", "state")


def _sizes(arrays: dict[str, Buffer | None]) -> tuple[dict[str, int], tuple[Any, ...]]:
    """Returns the sizes B, L, D and N of a call, and the shapes of its results."""
    _check("selective_scan", "x", arrays, _WIDE)
    found = SELECTIVE.infer({n: v.shape for n, v in arrays.items() if v is not None})
    states = found.sizes["N"]
    if isinstance(states, int) and not 1 <= states <= STATES_MAX:
        raise ShapeError(f"A has {states} states of a channel; takes 1 .. {STATES_MAX}")
    return dict(found.sizes), found.results


def _launch(
    b: ProgramBuilder,
    part: str,
    arrays: dict[str, Buffer | None],
    sizes: dict[str, int],
    softplus: bool,
    more: dict[str, Buffer | None],
    kernel: str | None,
) -> None:
    """Records a launch of a kernel of the route table ``part``, "selective_scan" or
    "selective_scan_grad". ``arrays``: the call's arguments by name; ``sizes``: B, L, D and N;
    ``more``: by name, the results and what only gradients read (dy, kept states).
    """
    x, y = arrays["x"], more.get("y")
    assert x is not None
    given = {n: v if v is None else b.packed(v) for n, v in arrays.items() if n in _WIDE}
    given |= {n: arrays[n] for n in ("x", "delta", "z") if n in arrays}
    given |= {n: _rows(b, v) for n in "BC" if (v := arrays[n]) is not None}
    scalars = [s for n in ("x", "delta") for s in _steps(n, given[n])]
    scalars += [s for n in "BC" for s in _steps(n, given[n], "batch", "token")]
    flags = (SOFTPLUS if softplus else 0) | (TURNED if 1 == x.strides[1] != x.strides[2] else 0)
    if "dy" not in more:
        scalars += [*_steps("z", given.get("z")), *_steps("y", y)]
        flags |= OUT_F32 if y is not None and y.dtype == "float32" != x.dtype else 0
    values = {
        **{"BATCH": sizes["B"], "TOKENS": sizes["L"]},
        **{"CHANNELS": sizes["D"], "STATES": sizes["N"]},
    }
    what = f"{part} B={sizes['B']} L={sizes['L']} D={sizes['D']} N={sizes['N']}"
    _within(SPACE, values, what)
    bind = {n.lower(): v for n, v in (given | more).items() if v is not None}
    scalars.append(("FLAGS", flags))
    problem = Problem((part,), DTYPES[x.dtype], tuple(values.items()), tuple(scalars), what)
    b.launch(lambda: problem, bind, kernel)


def _named(
    x: Buffer,
    delta: Buffer,
    A: Buffer,
    B: Buffer,
    C: Buffer,
    D: Buffer | None,
    delta_bias: Buffer | None,
    state: Buffer | None,
) -> dict[str, Buffer | None]:
    found = {"x": x, "delta": delta, "A": A, "B": B, "C": C, "D": D}
    return {**found, "delta_bias": delta_bias, "state": state}


@op(
    public=False,
    oracle=lazy.function("ptxgen.oracle.recurrence:selective_scan_kept"),
    results=("y", "kept"),
)
def selective_scan_kept(
    b: ProgramBuilder,
    x: Buffer,
    delta: Buffer,
    A: Buffer,
    B: Buffer,
    C: Buffer,
    D: Buffer | None = None,
    delta_bias: Buffer | None = None,
    state: Buffer | None = None,
    *,
    softplus: Bool = False,
    gated: Bool = False,
) -> Any:
    """Recomputes a selective scan for its gradients. Returns the states [B, tiles, D, N], float32,
    before the first token of each tile of tokens; with ``gated`` a pair: the results before the
    gate ``silu(z)``, float32, and these states.
    """
    arrays = _named(x, delta, A, B, C, D, delta_bias, state)
    sizes, shapes = _sizes(arrays)
    size, n = tile(sizes["N"]), sizes["N"]
    kept = b.empty((sizes["B"], -(-sizes["L"] // size), sizes["D"], n), "float32")
    y = b.empty(shapes[0], "float32") if gated else None
    found = kept if y is None else (y, kept)
    if not b.abstract and x.size:
        _launch(b, "selective_scan", arrays, sizes, softplus, {"y": y, "kept": kept}, None)
    return found


@op(
    public=False,
    oracle=lazy.function("ptxgen.oracle.recurrence:selective_scan_backward"),
    results=("dx", "dd", "dA", "dB", "dC", "dstate"),
)
def selective_scan_backward(
    b: ProgramBuilder,
    dy: Buffer,
    kept: Buffer,
    x: Buffer,
    delta: Buffer,
    A: Buffer,
    B: Buffer,
    C: Buffer,
    D: Buffer | None = None,
    delta_bias: Buffer | None = None,
    dlast: Buffer | None = None,
    *,
    softplus: Bool = False,
    kernel: Kernel = None,
) -> Any:
    """Computes gradients of ``selective_scan`` by steps 5 to 8 of its contract. ``dy``: gradient by
    the results before the gate, float32; ``kept``: states from :func:`selective_scan_kept`;
    ``dlast``: gradient by the last state. Returns dx and, in float32, the gradient by the step
    sizes, dA of each sequence [B, D, N], dB and dC of each block of channels [blocks, B, L, N], and
    the gradient by the first state.
    """
    arrays = _named(x, delta, A, B, C, D, delta_bias, None)
    sizes, shapes = _sizes(arrays)
    blocks = -(-sizes["D"] // numerics.block(sizes["N"]))
    made = {"dx": b.empty(shapes[0], x.dtype), "dd": b.empty(shapes[0], "float32")}
    made["da"] = b.empty(shapes[1], "float32")
    for name in ("db", "dc"):
        made[name] = b.empty((blocks, *B.shape), "float32")
    made["dstate"] = b.empty(shapes[1], "float32")
    if not b.abstract and x.size:
        given = {"dy": b.packed(dy), "kept": kept, "dlast": b.packed(dlast)}
        _launch(b, "selective_scan_grad", arrays, sizes, softplus, given | made, kernel)
    return tuple(made.values())


_through_gate = Pointwise(lambda dy, y, z: (dy * silu(z), dy * y * _silu_slope(z)), "through_gate")
_through_softplus = Pointwise(lambda dd, delta: dd * sigmoid(delta), "through_softplus")
_through_biased = Pointwise(
    lambda dd, delta, bias: dd * sigmoid(delta + bias), "through_biased_softplus"
)


def _silu_slope(z: Any) -> Any:
    s = sigmoid(z)
    return s * (z * (1 - s) + 1)


def _of_nothing(b: Builder, at: Backward) -> Gradients:
    """Returns the gradients of a call without tokens: zeros, except by the first state. The last
    state is then the first one, so its gradient is that by the last state, if the call returned it.
    """
    found = {n: b.filled(at[n].shape, b.dtype(at[n]), 0, at.dys[0]) for n in at.needs}
    if at.options["return_state"] and "state" in at.needs:
        found["state"] = at.dys[1]
    return found


def _vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``selective_scan``; states (and with z the ungated result) are recomputed."""
    names = ("x", "delta", "A", "B", "C", "D", "delta_bias")
    given, found = [at[n] for n in names], {}
    dy, how = b.cast(at.dys[0], "float32"), at.only("softplus")
    if not at["x"].size:
        return _of_nothing(b, at)
    if at["z"] is None:
        kept = b.selective_scan_kept(*given, at["state"], **how)
    else:
        y, kept = b.selective_scan_kept(*given, at["state"], **how, gated=True)
        dy, dz = b.call(_through_gate, dy, y, at["z"], out_dtype="float32")
        found["z"] = b.cast(dz, b.dtype(at["z"]))
    dlast = at.dys[1] if at.options["return_state"] else None
    dx, dd, da, db, dc, dstate = b.selective_scan_backward(dy, kept, *given, dlast, **how)
    if how["softplus"]:
        bias = at["delta_bias"]
        function = _through_softplus if bias is None else _through_biased
        given = [dd, at["delta"], *([] if bias is None else [bias])]
        dd = b.call(function, *given, out_dtype="float32")
    found |= {"x": dx, "delta": b.cast(dd, b.dtype(at["delta"])), "state": dstate}
    for name, parts in (("A", da), ("B", db), ("C", dc)):
        if name in at.needs:
            found[name] = b.cast(b.sum(parts, axis=0), b.dtype(at[name]))
    if "delta_bias" in at.needs:
        found["delta_bias"] = b.sum(dd, axis=(0, 1))
    if "D" in at.needs:
        found["D"] = b.sum(b.mul(dy, at["x"], out_dtype="float32"), axis=(0, 1))
    return found


@op(
    forms=SELECTIVE,
    vjp=_vjp,
    dtypes={"A": "float32", "D": "float32", "delta_bias": "float32", "state": "float32"},
)
def selective_scan(
    b: ProgramBuilder,
    x: Buffer,
    delta: Buffer,
    A: Buffer,
    B: Buffer,
    C: Buffer,
    D: Buffer | None = None,
    z: Buffer | None = None,
    delta_bias: Buffer | None = None,
    state: Buffer | None = None,
    *,
    softplus: Bool = False,
    return_state: Bool = False,
    out: OverState = None,
    kernel: Kernel = None,
) -> Any:
    """``h[t] = exp(delta[t] A) h[t-1] + delta[t] B[t] x[t]``, ``y[t] = C[t] · h[t] + D x[t]``: the
    selective scan of Mamba, for each channel.

    ``delta_bias`` is added to delta; ``softplus``: softplus is then applied to it. ``z``: y is
    multiplied by ``silu(z)``. ``state``: h before the first token, zeros by default.
    ``return_state``: also returns the state after the last token. The next call continues from it,
    with the bits of a single call over all tokens.

    Shapes
        ``x``, ``delta`` and ``z`` ``[B, L, D]``, ``A`` ``[D, N]``, ``B`` and ``C`` ``[B, L, N]``,
        ``D`` and ``delta_bias`` ``[D]``, states ``[B, D, N]``; N is at most 256. The result is
        ``[B, L, D]``, or a pair of that and the state (and so is ``out``, whose second may be
        ``state``).
    Dtypes
        ``x`` float32, bfloat16 or float16; ``delta``, ``B``, ``C``, ``z`` and the result as x;
        ``A``, ``D``, ``delta_bias`` and states float32.
    Storage
        ``x``, ``delta`` and ``z`` of any strides: ``[B, D, L]`` is read as a transposed view. B and
        C may have any pitch; other arrays are copied unless they are contiguous.
    Order
        Contract ``selective_scan/1`` (:mod:`ptxgen.numerics.recurrence`): token by token in f32, a
        sum over states as a tree of leaves of 4. A token's result depends on its sequence up to
        there alone, not on the batch, nor on how the sequence is split into calls.
        :func:`ptxgen.reference.selective_scan` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/recurrence.py``, ``ptxgen/tiles/recurrence.py``.

    >>> import numpy, ptxgen
    >>> x, one = numpy.arange(3, dtype="f4").reshape(1, 3, 1), numpy.ones((1, 3, 1), "f4")
    >>> ptxgen.reference.selective_scan(x, one, numpy.zeros((1, 1), "f4"), one, one).ravel()
    array([0., 1., 3.], dtype=float32)
    """
    arrays = _named(x, delta, A, B, C, D, delta_bias, state) | {"z": z}
    sizes, shapes = _sizes(arrays)
    memory = results(out, 2 if return_state else 1)
    y = b.result(shapes[0], x.dtype, memory[0])
    last = b.result(shapes[1], "float32", memory[1], "last") if return_state else None
    found = y if last is None else (y, last)
    if b.abstract or sizes["B"] * sizes["D"] == 0:
        return found
    if sizes["L"] == 0:
        _unchanged(b, state, last)
        return found
    if last is not None:
        dense("out", last, 0)
    _launch(b, "selective_scan", arrays, sizes, softplus, {"y": y, "last": last}, kernel)
    return found


def _unchanged(b: ProgramBuilder, state: Buffer | None, last: Buffer | None) -> None:
    """Records the launch that writes ``last``, the last state of a call without tokens: it is the
    first one, ``state``, or zeros for None.
    """
    if last is not None and state is None:
        b.fill(last, 0, out=last)
    elif last is not None and state is not None and state.memory is not last.memory:
        b.copied(state, last)


# -- linear recurrence ------------------------------------------------------------------------
def _linear(
    b: ProgramBuilder,
    part: str,
    sizes: dict[str, int],
    a: Buffer,
    scalars: Scalars,
    bind: dict[str, Buffer | None],
    kernel: str | None,
) -> None:
    values = {"BATCH": sizes["B"], "TOKENS": sizes["L"], "CHANNELS": sizes["D"]}
    what = f"{part} B={sizes['B']} L={sizes['L']} D={sizes['D']}"
    _within(LINEAR_SPACE, values, what)
    scalars = [*_steps("a", a), *scalars]
    problem = Problem((part,), DTYPES[a.dtype], tuple(values.items()), tuple(scalars), what)
    given = {n: v for n, v in ({"a": a} | bind).items() if v is not None}
    b.launch(lambda: problem, given, kernel)


@op(
    public=False,
    oracle=lazy.function("ptxgen.oracle.recurrence:linear_recurrence_backward"),
    results=("da", "db", "dstate"),
)
def linear_recurrence_backward(
    b: ProgramBuilder,
    dy: Buffer,
    a: Buffer,
    h: Buffer,
    state: Buffer | None = None,
    dlast: Buffer | None = None,
    *,
    kernel: Kernel = None,
) -> Any:
    """Computes the gradients of ``linear_recurrence``. ``dy``: gradient by ``h``, the states after
    each token, both float32; ``state``: the first state; ``dlast``: gradient by the last one.
    Returns the gradients by a, b and the first state (float32).
    """
    sizes = dict(LINEAR.infer({"a": a.shape, "b": h.shape}).sizes)
    made = {n: b.empty(a.shape, a.dtype) for n in ("da", "db")}
    made["dstate"] = b.empty((sizes["B"], sizes["D"]), "float32")
    if not b.abstract and a.size:
        given = {"dy": dy, "h": h, "state": state, "dlast": dlast}
        bind = {n: b.packed(v) for n, v in given.items()} | made
        _linear(b, "linear_recurrence_grad", sizes, a, [], bind, kernel)
    return tuple(made.values())


def _linear_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``linear_recurrence``; states are recomputed in float32 if h was rounded."""
    a, state = at["a"], at["state"]
    if not a.size:
        return _of_nothing(b, at)
    h = at.results[0]
    if b.dtype(h) != "float32":
        h = b.linear_recurrence(a, at["b"], state, out_dtype="float32")
    dlast = at.dys[1] if at.options["return_state"] else None
    dy = b.cast(at.dys[0], "float32")
    found = b.linear_recurrence_backward(dy, a, h, state, dlast)
    return dict(zip(("a", "b", "state"), found, strict=True))


@op(forms=LINEAR, vjp=_linear_vjp, dtypes={"state": "float32"})
def linear_recurrence(
    builder: ProgramBuilder,
    a: Buffer,
    b: Buffer,
    state: Buffer | None = None,
    *,
    return_state: Bool = False,
    out: OverState = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Any:
    """``h[t] = a[t] * h[t-1] + b[t]`` of each channel, the recurrence of RG-LRU.

    ``state``: h before the first token, zeros by default. ``return_state``: also returns the state
    after the last token, in float32. The next call continues from it, with the bits of a single
    call over all tokens.

    Shapes
        ``a`` and ``b`` ``[B, L, D]``, states ``[B, D]``. The result, all h, is ``[B, L, D]``, or a
        pair of that and the state (and so is ``out``, whose second may be ``state``).
    Dtypes
        ``a`` and ``b`` float32, bfloat16 or float16, and so the result; ``out`` or ``out_dtype``
        may ask for float32. States float32.
    Storage
        ``a`` and ``b`` of any strides.
    Order
        Contract ``linear_recurrence/1`` (:mod:`ptxgen.numerics.recurrence`): one fma of f32 a
        token; h is carried in f32, and rounded where it is written. A token's result depends on
        its sequence up to there alone, not on the batch, nor on how the sequence is split into
        calls. :func:`ptxgen.reference.linear_recurrence` returns the same bits.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/recurrence.py``, ``ptxgen/tiles/recurrence.py``.

    >>> import numpy, ptxgen
    >>> a, b = numpy.full((1, 3, 1), 0.5, "f4"), numpy.ones((1, 3, 1), "f4")
    >>> ptxgen.reference.linear_recurrence(a, b).ravel()
    array([1.  , 1.5 , 1.75], dtype=float32)
    """
    arrays = {"a": a, "b": b, "state": state}
    _check("linear_recurrence", "a", arrays, ("state",))
    inferred = LINEAR.infer({n: v.shape for n, v in arrays.items() if v is not None})
    sizes, shapes = dict(inferred.sizes), inferred.results
    memory = results(out, 2 if return_state else 1)
    wanted = result_dtype(out_dtype, memory[0], a.dtype, (a.dtype, "float32"))
    y = builder.result(shapes[0], wanted, memory[0])
    last = builder.result(shapes[1], "float32", memory[1], "last") if return_state else None
    found = y if last is None else (y, last)
    if builder.abstract or sizes["B"] * sizes["D"] == 0:
        return found
    if sizes["L"] == 0:
        _unchanged(builder, state, last)
        return found
    if last is not None:
        dense("out", last, 0)
    flags = OUT_F32 if wanted != a.dtype else 0
    scalars = [*_steps("b", b), *_steps("y", y), ("FLAGS", flags)]
    bind = {"b": b, "state": builder.packed(state), "y": y, "last": last}
    _linear(builder, "linear_recurrence", sizes, a, scalars, bind, kernel)
    return found
