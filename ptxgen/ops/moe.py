"""Mixtures of experts: router, dispatch of tokens to experts, combination of their results.

All are composed of other operations. A token's result depends on that token alone: its index among
the sorted rows does not change its bits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Annotated, Any, NamedTuple

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.formula import cast, primitive, where
from ptxgen.numerics.grouped import GROUPS_MAX
from ptxgen.numerics.option import Bool, Choice, Integer, Real
from ptxgen.numerics.select import NORMAL_MIN
from ptxgen.numerics.signature import Signature
from ptxgen.ops.indexing import flat_indices
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.select import is_routable
from ptxgen.ops.views import check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.spec.counting_sort import COUNT_MAX, EXPERTS_MAX, SLOTS_MAX
from ptxgen.spec.gather_scatter import BAG_MAX

INTEGERS = ("int32", "int64")
FLOATS = ("float32", "bfloat16", "float16")
Experts = Annotated[int, Integer(1, GROUPS_MAX)]
Count = Annotated[int, Integer(1, GROUPS_MAX)]


class _Scoring(NamedTuple):
    """Function of a token's logits whose values are the scores of its experts, in f32."""

    forward: Callable[[Any, Any], Any]
    """Takes a builder and packed logits."""
    backward: Callable[[Builder, Any, Any], Any]
    """Takes a builder, the gradient of the scores, and the scores."""
    is_routed: bool
    """Whether ``route_tokens`` computes it, together with the choice of experts."""


SCORINGS = {
    "softmax": _Scoring(
        forward=lambda b, logits: b.softmax(logits, out_dtype="float32"),
        backward=lambda b, ds, scores: b.rows("softmax_backward", ds, scores),
        is_routed=True,
    ),
    "sigmoid": _Scoring(
        forward=lambda b, logits: b.sigmoid(logits, out_dtype="float32"),
        backward=lambda b, ds, scores: b.mul(ds, b.mul(scores, b.sub(1.0, scores))),
        is_routed=False,
    ),
}
Scoring = Annotated[str, Choice(*SCORINGS)]
Scale = Annotated[float, Real()]

DISPATCH = Signature(
    "moe_dispatch",
    ("x", "experts"),
    ("rows", "places", "offsets"),
    {"": {"x": "T H", "experts": "T J", "rows": "S H", "places": "T J", "offsets": "E"}},
    ("T", "H", "J", "E"),
)
COMBINE = Signature(
    "moe_combine",
    ("y", "places", "weights"),
    ("out",),
    {"": {"y": "S H", "places": "T J", "weights": "T J", "out": "T H"}},
    ("T", "J", "S", "H"),
)
ROUTER = Signature(
    "moe_router",
    ("logits", "bias"),
    ("weights", "experts"),
    {"": {"logits": "T E", "bias": "E", "weights": "T J", "experts": "T J"}},
    ("T", "E", "J"),
    optional=frozenset({"bias"}),
)

_expert_or_none = Pointwise(
    lambda expert, count: cast(where((expert < 0) | (expert >= count), count, expert), "i32"),
    "known",
)
_token = Pointwise(
    lambda place, each: cast(
        primitive("floor", (cast(place, "f64") + 0.5) / cast(each, "f64")), "i64"
    ),
    "token",
)


def _slots(b: Builder, places: Any) -> Any:
    """Returns the slot of each row: the permutation that sorts ``places`` (a row for each slot)."""
    flat = b.reshape(b.packed(places), (prod(places.shape),))
    return b.sort_integers(flat)[1]


# -- to the experts, and back -------------------------------------------------------------------
def _dispatch_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``moe_dispatch``: the sum of the gradients of a token's rows, slots ascending."""
    rows = b.embedding(b.packed(at.dys[0]), at.results[1])
    return {"x": b.sum(rows, axis=-2)}


@op(forms=DISPATCH, vjp=_dispatch_vjp, dtypes={"experts": "int64"}, sizes={"count": "E"})
def moe_dispatch(
    b: ProgramBuilder, x: Buffer, experts: Buffer, count: Experts
) -> tuple[Buffer, Buffer, Buffer]:
    """``rows[places[t, j]] = x[t]``: a row for each slot j of each token, sorted by expert.

    The first and the third result are arguments of :func:`ptxgen.grouped_linear` (rows and
    offsets), whose result :func:`ptxgen.moe_combine` sums for each token. Nothing waits for the
    device.

    Shapes
        ``x`` ``[T, H]``; ``experts`` ``[T, J]``, of 0 to ``count`` - 1. Results: the rows
        ``[T J, H]``; the row index of each slot, ``places`` ``[T, J]``; and ``ends`` ``[count]``,
        the index after each expert's last row. T J is at most 2^20.
    Dtypes
        ``x`` of 1, 2, 4 or 8 bytes an element, and so the rows; ``experts`` int32 or int64. Places
        are int64, ends int32.
    Order
        The sort is stable: an expert's rows are in the order of tokens, then slots. Bits are
        copied unchanged.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written. Rows of slots whose expert is out of range come after all
        others and belong to no expert.
    """
    check_dtype("experts", experts.dtype, INTEGERS)
    found = DISPATCH.infer({"x": x.shape, "experts": experts.shape}, given={"S": 0, "E": count})
    tokens, each = found.sizes["T"], found.sizes["J"]
    slots = tokens * each
    if slots > COUNT_MAX:
        raise ShapeError(f"experts has {slots} integers; takes at most {COUNT_MAX}")
    if slots <= SLOTS_MAX and count <= EXPERTS_MAX:
        sources, places, offsets = b.sort_experts(b.packed(experts), count)
        return b.embedding(x, sources), places, offsets
    flat = b.reshape(b.packed(experts), (slots,))
    own = b.call(_expert_or_none, flat, count, out_dtype="int32")
    _, order = b.sort_below(own, count + 1)
    rows = b.embedding(x, b.call(_token, order, each))
    offsets = b.count_integers(own, count, up_to=True)
    return rows, b.reshape(b.placed(order), (tokens, each)), offsets


def _combine_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``moe_combine``, for slot j of token t and its row ``i = places[t, j]`` of y:
    ``dy[i] = weights[t, j] * dout[t]`` and ``dweights[t, j] = dot(y[i], dout[t])``.
    """
    y, places, weights = (at[n] for n in ("y", "places", "weights"))
    dy = b.unsqueeze(b.packed(at.dys[0]), -2)
    found = {}
    if "y" in at.needs:
        slots = b.mul(dy, b.unsqueeze(weights, -1), out_dtype=b.dtype(y))
        flat = b.reshape(b.packed(slots), y.shape)
        found["y"] = b.embedding(flat, _slots(b, places))
    if "weights" in at.needs:
        each = b.mul(b.embedding(y, b.packed(places)), dy, out_dtype="float32")
        found["weights"] = b.cast(b.sum(each, axis=-1), b.dtype(weights))
    return found


@op(forms=COMBINE, vjp=_combine_vjp, dtypes={"places": "int64", "weights": "float32"})
def moe_combine(b: ProgramBuilder, y: Buffer, places: Buffer, weights: Buffer) -> Buffer:
    """``out[t] = sum over j of weights[t, j] * y[places[t, j]]``: a weighted sum over each token's
    slots.

    Shapes
        ``y`` ``[S, H]``; ``places`` and ``weights`` ``[T, J]``, S being T J; the result ``[T, H]``.
    Dtypes
        ``y`` float32, bfloat16 or float16, and so the result; ``places`` int32 or int64;
        ``weights`` float32 or as y.
    Order
        In f32: each product rounded once, slots added in the order of ``rows/1`` (up to 8:
        ascending), the sum rounded once. No atomics: a token's result depends on that token alone,
        not on the indices of its rows.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written. A place out of range counts as a row of zeros.
    """
    check_dtype("y", y.dtype, FLOATS)
    check_dtype("places", places.dtype, INTEGERS)
    check_dtype("weights", weights.dtype, tuple(dict.fromkeys(("float32", y.dtype))))
    shapes = {"y": y.shape, "places": places.shape, "weights": weights.shape}
    sizes = COMBINE.infer(shapes).sizes
    if sizes["T"] * sizes["J"] != sizes["S"]:
        raise ShapeError(
            f"y has {sizes['S']} rows; takes {sizes['T'] * sizes['J']}, one for each of the places"
        )
    found: Buffer
    if sizes["J"] <= BAG_MAX:
        found = b.embedding_bag(y, b.packed(places), b.packed(weights))
    else:
        rows = b.embedding(y, b.packed(places))
        each = b.mul(rows, b.unsqueeze(weights, -1), out_dtype="float32")
        found = b.cast(b.sum(each, axis=-2), y.dtype)
    return found


# -- routers --------------------------------------------------------------------------------------
_normalized = Pointwise(lambda w, total, scale: w / (total + NORMAL_MIN) * scale, "normalized")
_masked = Pointwise(lambda kept, x: where(kept > 0, x, float("-inf")), "masked")
_scaled = Pointwise(lambda w, scale: w * scale, "scaled")


def _scores(b: Any, logits: Any, scoring: str) -> Any:
    return SCORINGS[scoring].forward(b, b.packed(logits))


def _router_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradient of ``moe_router`` by the logits, through the weights; the choice of experts has
    none.
    """
    logits, how = at["logits"], at.options
    scores, experts, dw = _scores(b, logits, how["scoring"]), at.results[1], at.dys[0]
    dw = b.mul(dw, how["scale"])
    if how["normalize"]:  # w = s / t: ds = (dw - sum(dw w)) / t
        s = _chosen_scores(b, scores, experts)
        total = b.unsqueeze(b.sum(s, axis=-1), -1)
        w = b.call(_normalized, s, total, 1.0)
        dw = b.div(b.sub(dw, b.unsqueeze(b.sum(b.mul(dw, w), axis=-1), -1)), total)
    zeros = b.filled(scores.shape, "float32", 0.0, scores)
    ds = b.scatter_add(zeros, b.packed(experts), b.packed(dw), axis=-1)
    dx = SCORINGS[how["scoring"]].backward(b, ds, scores)
    return {"logits": b.cast(dx, b.dtype(logits))}


def _chosen_scores(b: Any, scores: Any, experts: Any) -> Any:
    """Returns the scores [T, J] of each token's chosen experts."""
    flat = b.reshape(scores, (prod(scores.shape), 1))
    places = flat_indices(b, experts, scores.shape[-1])
    return b.reshape(b.embedding(flat, places), experts.shape)


@op(
    forms=ROUTER,
    vjp=_router_vjp,
    dtypes={"bias": "float32"},
    sizes={"k": "J"},
)
def moe_router(
    b: ProgramBuilder,
    logits: Buffer,
    k: Count,
    *,
    bias: Buffer | None = None,
    scoring: Scoring = "softmax",
    groups: Count = 1,
    top_groups: Count = 1,
    normalize: Bool = False,
    scale: Scale = 1.0,
) -> tuple[Buffer, Buffer]:
    """``topk(scores + bias, k)`` of each token's logits: weights and indices of its experts.

    Scores are ``softmax(logits)``, or ``sigmoid(logits)``. A weight is the expert's score without
    the bias, times ``scale``; ``normalize`` first divides it by the sum of the token's weights plus
    ``1e-20``.

    ``groups`` splits the experts into as many groups of neighbours; a token's experts come from
    ``top_groups`` of these: the groups with the largest ``max(scores + bias)`` or, if there is a
    bias, with the largest sum of their two largest (DeepSeek's gates).

    Shapes
        ``logits`` ``[T, E]``; ``bias`` ``[E]``; both results ``[T, k]``: weights, and experts in
        the order of :func:`ptxgen.topk`.
    Dtypes
        ``logits`` float32, bfloat16 or float16; ``bias`` float32. Weights are float32, experts
        int64.
    Order
        In f32, as ``softmax`` (``rows/1``) or ``sigmoid``, ``topk/1`` and ``sum``: a token's
        experts and weights depend on its logits alone. The first of equal scores is taken.
    Errors
        OptionError for a ``k`` above the number of experts (in ``top_groups`` groups), and for
        groups that do not divide the experts. ShapeError, DtypeError, DeviceError, GradError or
        CompileError, before anything is launched or written.
    """
    check_dtype("logits", logits.dtype, FLOATS)
    given = {"logits": logits.shape} | ({} if bias is None else {"bias": bias.shape})
    sizes = ROUTER.infer(given, given={"J": k}).sizes
    tokens, experts = sizes["T"], sizes["E"]
    if experts % groups or top_groups > groups:
        raise OptionError(
            f"groups is {groups}, top_groups {top_groups}; logits has {experts} experts: takes "
            "groups that divide them, and as many of these at most"
        )
    each = experts // groups
    if k > (each * top_groups if groups > 1 else experts):
        most = each * top_groups if groups > 1 else experts
        raise OptionError(f"k is {k}; takes at most {most}, as logits has {experts} experts")
    if SCORINGS[scoring].is_routed and bias is None and groups == 1 and is_routable(experts, k):
        found: tuple[Buffer, Buffer] = b.route_tokens(
            b.packed(logits), k, normalize=normalize, scale=scale
        )
        return found
    scores = choice = _scores(b, logits, scoring)
    if bias is not None:
        check_dtype("bias", bias.dtype, ("float32",))
        choice = b.add(scores, bias)
    if groups > 1:
        parts = b.reshape(choice, (tokens, groups, each))
        best = b.amax(parts, axis=-1)
        if bias is not None:
            best = b.sum(b.topk(parts, min(2, each))[0], axis=-1)
        _, kept = b.topk(best, top_groups)
        ones = b.filled(kept.shape, "float32", 1.0, kept)
        mask = b.scatter_add(b.filled(best.shape, "float32", 0.0, kept), kept, ones, axis=-1)
        choice = b.reshape(b.call(_masked, b.unsqueeze(mask, -1), parts), choice.shape)
    weights, indices = b.topk(choice, k)
    if choice is not scores:
        weights = _chosen_scores(b, scores, indices)
    if normalize:
        total = b.unsqueeze(b.sum(weights, axis=-1), -1)
        weights = b.call(_normalized, weights, total, scale)
    elif scale != 1.0:
        weights = b.call(_scaled, weights, scale)
    return weights, indices
