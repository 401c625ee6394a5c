"""Operations over rows: a table of formulas (:mod:`ptxgen.numerics.formula`) with reductions.

Contract ``rows/1`` (:mod:`ptxgen.numerics.reduction_order`) fixes the order in which a row is
added. An operation is an entry of :data:`TABLE`: its formula, and its arrays, results and scalars.
Kernels, oracle, shapes and the library's functions follow from it.

A *variant* is an operation with dtypes, as text: the arrays and scalars that a call passes, and the
dtypes of arrays and results. It identifies the formula of a kernel::

    rms_norm x=bf16 weight=bf16 eps=f32 > bf16
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import Any

from ptxgen.errors import SpecError
from ptxgen.numerics import functions
from ptxgen.numerics.formula import (
    STORED,
    Formula,
    Function,
    Node,
    Output,
    cast,
    compare,
    const,
    index,
    length,
    primitive,
    read,
    trace,
    where,
)
from ptxgen.numerics.gradient import gradients
from ptxgen.numerics.option import AnyReal, Integer, Option, Real
from ptxgen.numerics.select import TEMPERATURE_MAX, TEMPERATURE_MIN
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.softcap import capped

REAL = ("f32", "bf16", "f16", "f64")
NUMBERS = (*REAL, "i32", "i64")
LAST = (1 << 31) - 1
"""Sentinel index, greater than the index of any element of a row."""
_EMPTY: Mapping[str, Any] = MappingProxyType({})
EPS = Real(least=0.0, most=3e38)
OFFSET = Real(least=-3e38, most=3e38)
"""Option ``offset``: a number that is added to a norm's weight."""
INDEX = Integer(-(1 << 63), (1 << 63) - 1)
SMOOTHING = Real(least=0.0, most=1.0)
SOFTCAP = Real(above=0.0, most=3e38)
Z_LOSS = Real(least=0.0, most=3e38)
"""Option ``z_loss``: the weight of ``logsumexp**2`` in a loss."""


ANY = AnyReal()


@dataclass(frozen=True)
class Number:
    """A scalar argument of an operation over rows.

    ``default``: its value in calls that pass none. ``neutral``: the value at which the scalar is
    dropped from the formula (None is always dropped). ``dtype``: its short dtype name, or "" for
    the compute type. ``option``: reads and checks the caller's value.
    """

    default: Any = None
    neutral: Any = None
    dtype: str = ""
    option: Option = ANY


@dataclass(frozen=True, eq=False)
class RowOp:
    """An operation over rows: an entry of :data:`TABLE`.

    ``formula``: builds the result nodes from nodes of the arrays and scalars, passed by name, None
    for absent ones. ``arrays``: name to kind (:data:`ptxgen.numerics.formula.KINDS`), the
    ``optional`` ones included; ``numbers``: the scalars by name. ``results``: name to (level,
    dtype). The level is "element", "row" or "column", each of which has one value of the result;
    "column" means the sum of the elements down all rows. A dtype is a short name, or "": that of
    the first array, or ``out_dtype``, which may name the compute type; "wide": the compute type;
    "sum": as "", but i64 by default for integers. ``dtypes``: allowed dtypes of the first array;
    ``integers``: names of arrays of i64 or i32. ``empty``: whether rows of no elements are allowed.
    ``over``: result to the arrays that it may overwrite. ``wide``: the compute type, if not that of
    the first array. ``narrow``: whether ``out_dtype`` may have 16 bits where the first array has
    32.

    ``when``: result to the optional array without which it is not computed. ``lengths``: arrays
    with the number of valid elements of each row (:attr:`Signature.lengths`). ``form``: how users
    call it: "reduce" (over any axes), "along" (over one axis), "own" (by a hand-written function of
    its name), "" (only other operations call it). ``says``: its docstring.
    """

    name: str
    formula: Callable[..., Any]
    arrays: Mapping[str, str] = field(default_factory=lambda: {"x": "element"})
    results: Mapping[str, tuple[str, str]] = field(default_factory=lambda: {"out": ("element", "")})
    numbers: Mapping[str, Number] = field(default_factory=lambda: _EMPTY)
    optional: frozenset[str] = frozenset()
    dtypes: tuple[str, ...] = REAL
    integers: frozenset[str] = frozenset()
    empty: bool = True
    over: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _EMPTY)
    wide: str = ""
    narrow: bool = False
    when: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    lengths: frozenset[str] = frozenset()
    form: str = ""
    says: str = ""

    @cached_property
    def signature(self) -> Signature:
        """Signature of the operation on rows of N elements: shapes of its arrays and results."""
        forms = {"element": "... N", "row": "...", "column": "N"}
        shapes = {name: forms[kind] for name, kind in self.arrays.items()}
        shapes |= {name: forms[level] for name, (level, _) in self.results.items()}
        return Signature(
            self.name,
            tuple(self.arrays),
            tuple(self.results),
            {"": shapes},
            ("M", "N"),
            optional=self.optional,
            over=self.over,
            lengths=dict.fromkeys(self.lengths, "N"),
        )

    @property
    def down(self) -> bool:
        """Whether a result of the operation has level "column", a sum down all rows."""
        return any(level == "column" for level, _ in self.results.values())

    @property
    def chooses(self) -> bool:
        """Whether the operation has an option ``out_dtype``."""
        return any(dtype in ("", "sum") for _, dtype in self.results.values())

    def computed(self, first: str) -> str:
        """Returns the compute type of a call whose first array has dtype ``first`` (both short)."""
        return self.wide or STORED[first]

    def present(self, given: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Returns the results of a call that passes arrays ``given``, name to (level, dtype),
        without those whose optional array (``when``) is absent.
        """
        names = set(given)
        return {n: r for n, r in self.results.items() if self.when.get(n, n) in {n, *names}}

    def outputs(
        self, first: str, given: Iterable[str], wanted: str | None = None
    ) -> tuple[str, ...]:
        """Returns the short dtypes of the results of a call.

        ``first``: dtype of the first array; ``given``: names of the arrays passed, since some
        results need an optional one; ``wanted``: ``out_dtype``, or None.
        """
        natural = {"": first, "wide": self.computed(first)}
        natural["sum"] = first if first in REAL else "i64"
        return tuple(
            wanted if wanted and dtype in ("", "sum") else natural.get(dtype, dtype)
            for _, dtype in self.present(given).values()
        )

    def variant(
        self, dtypes: Mapping[str, str], outputs: Iterable[str], numbers: Iterable[str] = ()
    ) -> str:
        """Returns a variant of the operation as text, such as ``rms_norm x=bf16 eps=f32 > bf16``.

        ``dtypes``: short dtypes of the arrays passed, by name; ``outputs``: those of the results;
        ``numbers``: names of the scalars that the formula uses.
        """
        wide = self.computed(dtypes[next(iter(self.arrays))])
        words = [self.name]
        words += [f"{name}={dtypes[name]}" for name in self.arrays if name in dtypes]
        given = set(numbers)
        words += [f"{n}={o.dtype or wide}" for n, o in self.numbers.items() if n in given]
        return " ".join((*words, ">", *outputs))

    def given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the scalars among ``options`` that the formula uses: neither None nor neutral."""
        found = {name: options[name] for name in self.numbers}
        return {
            name: value
            for name, value in found.items()
            if value is not None and value != self.numbers[name].neutral
        }


@cache
def known(name: str) -> RowOp:
    """Returns the operation ``name`` of :data:`TABLE` or :data:`MADE`; SpecError if unknown."""
    row = TABLE.get(name) or MADE.get(name)
    if row is None:
        raise SpecError(f"unknown operation over rows {name!r}; there are {', '.join(TABLE)}")
    return row


def formula(variant: str) -> Formula:
    """Builds the formula of ``variant``, a text as :meth:`RowOp.variant` returns it. Raises
    SpecError for an unknown operation.
    """
    head, _, outputs = variant.partition(" > ")
    name, *given = head.split()
    row = known(name)
    dtypes = dict(word.split("=") for word in given)
    nodes: dict[str, Any] = dict.fromkeys((*row.arrays, *row.numbers))
    for each, dtype in dtypes.items():
        nodes[each] = read(each, dtype, row.arrays.get(each, "scalar"))
    found = trace(row.formula, nodes)
    named = zip(row.present(dtypes).items(), outputs.split(), found, strict=True)
    return Formula(
        tuple(
            Output(n, d, _converted(node, d), level == "column")
            for (n, (level, _)), d, node in named
        )
    )


def _converted(node: Node, dtype: str) -> Node:
    return node if node.type == STORED[dtype] else cast(node, STORED[dtype])


# -- formulas ---------------------------------------------------------------------------------
def _count(like: Node) -> Node:
    return cast(length(), like.type)


def _decay(x: Node) -> Node:
    return functions._exp_normal(primitive("max", x, _LEAST[x.type]))


_LEAST = {"f32": -88, "f64": -709}
"""Lower clamp of the argument of :data:`decay`, by type. At the clamp the result is 0."""
decay = Function("decay", _decay, 1, types=("f32", "f64"))
"""``exp(x)`` for x <= 0, with results below 2**-126.5 (2**-1022.5 in f64) replaced by 0. So the
factor ``2**n`` is always a normal number, and no argument needs a special case."""


def _widen_integers(x: Node) -> Node:
    """Converts i32 and bool nodes to i64, the type of their sums and products; returns others."""
    return cast(x, "i64") if x.type in ("i32", "bool") else x


def _sum(x: Node) -> Node:
    return _widen_integers(x).reduce("sum")


def _prod(x: Node) -> Node:
    return _widen_integers(x).reduce("prod")


def _prod_backward(x: Node, dy: Node) -> Node:
    """Gradient of a row's product by each element: ``dy`` times the product of the others."""
    (found,) = gradients([_prod(x)], [dy], [x])
    assert found is not None
    return found


def _mean(x: Node) -> Node:
    return x.reduce("sum") / _count(x)


def _extreme(x: Node, how: str) -> Node:
    return x.reduce(how)


def _arg_extreme(x: Node, how: str) -> Node:
    """Argmax or argmin of each row (``how`` is "max" or "min"): the index, i64, of the first
    element that attains it, or of the first NaN if there is one.
    """
    there = x == x.reduce(how)
    if x.type in ("f32", "f64"):
        there = there | (x != x)
    found = where(there, cast(index(), "i32"), LAST).reduce("min")
    return cast(found, "i64")


def _var(x: Node, correction: Node) -> Node:
    d = x - _mean(x)
    return (d * d).reduce("sum") / primitive("max", _count(x) - correction, 0)


def _std(x: Node, correction: Node) -> Node:
    return functions.sqrt(_var(x, correction))


def _first_of(lengths: Node | None) -> Callable[[Node, float], Node]:
    """Returns a function ``f(x, beyond)`` that replaces the elements of x past the row's length by
    the constant ``beyond``; without ``lengths`` it returns x.
    """
    if lengths is None:
        return lambda x, _: x
    inside = cast(index(), lengths.type) < lengths
    return lambda x, beyond: where(inside, x, beyond)


def _softmax(x: Node, lengths: Node | None) -> Node:
    of = _first_of(lengths)
    e = of(decay(x - of(x, -math.inf).reduce("max")), 0)
    return of(e * (1 / e.reduce("sum")), 0)


def _attention_weights(x: Node, seen: Node | None, scale: Node | None) -> Node:
    """Softmax of ``x * scale`` over the first ``seen`` elements of a row, by default all; a row
    whose scores are all -inf gives 0.
    """
    z = x if scale is None else x * scale
    if seen is not None:
        z = where(cast(index(), "i32") < cast(seen, "i32"), z, -math.inf)
    m = z.reduce("max")
    e = decay(z - m)
    return where(m == -math.inf, 0, e * (1 / e.reduce("sum")))


def _softmax_backward(dy: Node, y: Node, lengths: Node | None) -> Node:
    of = _first_of(lengths)
    return of((dy - of(dy * y, 0).reduce("sum")) * y, 0)


def _log_softmax(x: Node, lengths: Node | None) -> Node:
    of = _first_of(lengths)
    shifted = x - of(x, -math.inf).reduce("max")
    return of(shifted - functions.log(of(decay(shifted), 0).reduce("sum")), -math.inf)


def _log_softmax_backward(dy: Node, y: Node, lengths: Node | None) -> Node:
    of = _first_of(lengths)
    return of(dy - decay(y) * of(dy, 0).reduce("sum"), 0)


def _logsumexp(x: Node) -> Node:
    """``log(sum(exp(x)))`` of a row; if the maximum is infinite, the maximum."""
    m = x.reduce("max")
    total = functions.log(decay(x - m).reduce("sum"))
    return where(functions.isinf(m), m, total + m)


def _capped(x: Node, softcap: Node | None) -> tuple[Node, Node | None]:
    """Returns ``softcap * tanh(x / softcap)`` and its derivative by x, with the general tanh and
    not that of :func:`capped`; without a softcap, x and None.
    """
    if softcap is None:
        return x, None
    t = functions.tanh(x * (1 / softcap))
    return softcap * t, 1 - t * t


def _match_target(target: Node, ignore_index: Node | None = None) -> tuple[Node, Node, Node]:
    """Returns three nodes: whether an element is its row's target, the target, and whether the
    target is a class and not ignored.
    """
    target = cast(target, "i64") if target.type == "i32" else target
    valid = (target >= 0) & (target < length())
    if ignore_index is not None:
        valid = valid & (target != ignore_index)
    return cast(index(), "i32") == cast(target, "i32"), target, valid


def _tempered(x: Node, temperature: Node | None, divisor: Node | None) -> Node:
    """``x / temperature / divisor``, without what is None. A temperature below the range by which
    :func:`ptxgen.sample` divides counts as 1.
    """
    if temperature is not None:
        most = primitive("min", temperature, TEMPERATURE_MAX)
        x = x / where(temperature >= TEMPERATURE_MIN, most, 1)
    return x if divisor is None else x / divisor


def _tempered_softmax(logits: Node, *by: Node | None) -> tuple[Node, Node, Node]:
    """Returns ``m = max(z)``, ``z - m`` and ``log(sum(exp(z - m)))``, where ``z`` is the logits
    divided by ``by`` (:func:`_tempered`). Rounded division by a positive number keeps the order, so
    m is the quotient of the largest logit.
    """
    m = _tempered(logits.reduce("max"), *by)
    shifted = _tempered(logits, *by) - m
    return m, shifted, functions.log(decay(shifted).reduce("sum"))


def _token_logprobs(
    logits: Node, ids: Node, temperature: Node | None, divisor: Node | None
) -> Node:
    """Log-softmax of the divided logits at a token: each step as :func:`_log_softmax` has it."""
    hit, _, valid = _match_target(ids)
    m, _, log_sum = _tempered_softmax(logits, temperature, divisor)
    token = _tempered(where(hit, logits, 0).reduce("sum"), temperature, divisor)
    return where(valid, token - m - log_sum, math.nan)


def _token_logprobs_backward(
    logits: Node, ids: Node, dy: Node, temperature: Node | None, divisor: Node | None
) -> Node:
    hit, _, valid = _match_target(ids)
    _, shifted, log_sum = _tempered_softmax(logits, temperature, divisor)
    total = where(valid, dy, 0)
    dz = where(hit, total, 0) - decay(shifted - log_sum) * total
    return _tempered(dz, temperature, divisor)


def _cross_entropy(
    x: Node,
    target: Node,
    ignore_index: Node,
    label_smoothing: Node | None,
    softcap: Node | None,
    z_loss: Node | None,
) -> Node:
    z, _ = _capped(x, softcap)
    hit, target, valid = _match_target(target, ignore_index)
    m = z.reduce("max")
    log_sum = functions.log(decay(z - m).reduce("sum"))  # of the log of the sum, above m
    loss = log_sum - (where(hit, z, 0).reduce("sum") - m)
    if label_smoothing is not None:
        even = log_sum - (z.reduce("sum") / _count(z) - m)
        loss = (1 - label_smoothing) * loss + label_smoothing * even
    if z_loss is not None:
        lse = log_sum + m
        loss = loss + z_loss * (lse * lse)
    return where(valid, loss, 0)


def _cross_entropy_backward(
    x: Node,
    target: Node,
    dy: Node | None,
    ignore_index: Node,
    label_smoothing: Node | None,
    softcap: Node | None,
    z_loss: Node | None,
) -> Node:
    z, slope = _capped(x, softcap)
    hit, target, valid = _match_target(target, ignore_index)
    m = z.reduce("max")
    e = decay(z - m)
    s = e.reduce("sum")
    share = 1 / s
    if z_loss is not None:
        share = share * (1 + 2 * z_loss * (functions.log(s) + m))
    p = e * share
    if label_smoothing is None:
        g = where(hit, p - 1, p)
    else:
        p = p - label_smoothing / _count(x)
        g = where(hit, p - (1 - label_smoothing), p)
    if slope is not None:
        g = g * slope
    return where(valid, g if dy is None else g * dy, 0)


def _cross_entropy_joined(
    top: Node,
    total: Node,
    hit: Node,
    target: Node,
    even: Node | None,
    ignore_index: Node,
    classes: Node,
    label_smoothing: Node | None,
    softcap: Node | None,
    z_loss: Node | None,
) -> tuple[Node, Node, Node]:
    """Combines a row's segments: returns the row's loss, its largest logit m (after the softcap),
    and the factor of ``exp(z - m)`` in the loss's gradient by a logit z.

    ``top``, ``total``: maximum and sum of exponentials of each segment
    (:mod:`ptxgen.numerics.vocab_segments`); ``hit``: logit of the target, before the softcap;
    ``even``: mean of the logits after it, for label smoothing; ``classes``: number of logits.
    """
    target = cast(target, "i64") if target.type == "i32" else target
    valid = (target >= 0) & (target < classes) & (target != ignore_index)
    m = top.reduce("max")
    s = (total * decay(top - m)).reduce("sum")
    log_sum = functions.log(s)
    loss = log_sum - (capped(hit, softcap)[0] - m)
    if label_smoothing is not None and even is not None:
        loss = (1 - label_smoothing) * loss + label_smoothing * (log_sum - (even - m))
    scale = 1 / s
    if z_loss is not None:
        lse = log_sum + m
        loss = loss + z_loss * (lse * lse)
        scale = scale * (1 + 2 * z_loss * lse)
    return where(valid, loss, 0), m, scale


def _capped_mean(x: Node, softcap: Node | None) -> Node:
    return _mean(capped(x, softcap)[0])


def _loss_gradients(wide: str, counted: bool) -> Callable[..., Node]:
    """Returns a function that builds the gradient by each row's loss, from ``dy``, the gradient by
    the sum of the losses or (``counted``) their mean.

    That gradient is ``times * dy``, 1 for an absent factor, and for a mean divided by the number of
    targets that are not ignored; it is 0 for ignored targets. ``wide``: the compute type.
    """

    def share(target: Node, dy: Node | None, ignore_index: Node, times: Node | None) -> Node:
        counts = _is_counted(target, ignore_index)
        found = const(1, wide)
        for by in (times, dy):
            found = found if by is None else found * by
        if counted:
            found = found / cast(counts, wide).reduce("sum")
        return where(counts, found, 0)

    return share


def _is_counted(target: Node, ignore_index: Node) -> Node:
    target = cast(target, "i64") if target.type == "i32" else target
    return compare("ne", target, ignore_index)


def _mean_loss(x: Node, target: Node, ignore_index: Node) -> Node:
    """Mean of the losses over targets that are not ignored; 0 if all are ignored."""
    count = cast(_is_counted(target, ignore_index), x.type).reduce("sum")
    return where(count > 0, x.reduce("sum") / count, 0)


def _mean_loss_backward(dy: Node, target: Node, ignore_index: Node) -> Node:
    counts = _is_counted(target, ignore_index)
    return where(counts, dy / cast(counts, dy.type).reduce("sum"), 0)


def no_class(target: Any, ignore_index: Any, classes: Any) -> Any:
    """Whether a target is neither ignored nor in [0, classes), for arrays or nodes of formulas."""
    return (target != ignore_index) & ((target < 0) | (target >= classes))


def _reduced_losses(mean: bool) -> Callable[..., Node]:
    """Returns the formula of the losses' sum or (``mean``) mean; the mean is NaN if all targets are
    ignored, as in PyTorch. Both are NaN if a target is neither ignored nor a class.
    """

    def reduced(x: Node, target: Node, ignore_index: Node, classes: Node) -> Node:
        at = cast(target, "i64") if target.type == "i32" else target
        total = where(no_class(at, ignore_index, classes), math.nan, x).reduce("sum")
        return total / cast(_is_counted(at, ignore_index), x.type).reduce("sum") if mean else total

    return reduced


def _rms(x: Node, eps: Node) -> Node:
    return functions.rsqrt((x * x).reduce("sum") / _count(x) + eps)


def _rms_norm(
    x: Node,
    weight: Node | None,
    eps: Node,
    bias: Node | None = None,
    offset: Node | None = None,
    dtype: str | None = None,
) -> Node:
    """RMS norm of a row. ``offset``: added to the weight; ``dtype``: what ``x * scale`` is rounded
    to before the weight.
    """
    y = x * _rms(x, eps)
    y = y if dtype is None else cast(y, dtype)
    if weight is not None:
        y = y * (weight if offset is None else weight + offset)
    return y if bias is None else y + bias


def _rms_norm_rounded(x: Node, **rest: Any) -> Node:
    return _rms_norm(x, dtype=x.data.dtype, **rest)


def _l2_norm(x: Node, eps: Node) -> Node:
    return x * functions.rsqrt((x * x).reduce("sum") + eps)


def _l2_norm_backward(dy: Node, x: Node, eps: Node) -> Node:
    (found,) = gradients([_l2_norm(x, eps)], [dy], [x])
    assert found is not None
    return found


def _add_residual(x: Node, residual: Node, residual_bias: Node | None) -> Node:
    """``x + (residual + residual_bias)``, rounded to the dtype of x; the bias is optional."""
    other = residual if residual_bias is None else residual + residual_bias
    return cast(x + other, x.data.dtype)


def _add_rms_norm(
    x: Node,
    residual: Node,
    residual_bias: Node | None,
    dtype: str | None = None,
    **rest: Any,
) -> tuple[Node, Node]:
    total = _add_residual(x, residual, residual_bias)
    return _rms_norm(total, dtype=dtype, **rest), total


def _add_rms_norm_rounded(x: Node, **rest: Any) -> tuple[Node, Node]:
    return _add_rms_norm(x, dtype=x.data.dtype, **rest)


def _rms_norm_backward(dy: Node, x: Node, weight: Node | None, eps: Node) -> tuple[Node, Node]:
    g = dy if weight is None else dy * weight
    r = _rms(x, eps)
    c = (g * x).reduce("sum") / _count(x) * (r * r)
    return r * (g - x * c), r


def _rms_norm_gradients(dy: Node, x: Node, weight: Node | None, eps: Node) -> tuple[Node, Node]:
    """Returns an RMS norm's gradient by x, and a term per element, ``dy * (x * scale)``: its sum
    down each column is the gradient by weight.
    """
    dx, r = _rms_norm_backward(dy, x, weight, eps)
    return dx, dy * (x * r)


def _moments(x: Node, eps: Node) -> tuple[Node, Node]:
    """Returns the mean of a row, and the layer norm's scale ``rsqrt(var + eps)``."""
    mean = _mean(x)
    d = x - mean
    return mean, functions.rsqrt((d * d).reduce("sum") / _count(x) + eps)


def _layer_norm(x: Node, weight: Node | None, bias: Node | None, eps: Node) -> Node:
    mean, r = _moments(x, eps)
    y = (x - mean) * r
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _add_layer_norm(
    x: Node,
    residual: Node,
    weight: Node | None,
    bias: Node | None,
    residual_bias: Node | None,
    eps: Node,
) -> tuple[Node, Node]:
    total = _add_residual(x, residual, residual_bias)
    return _layer_norm(total, weight, bias, eps), total


def _layer_norm_backward(
    dy: Node, x: Node, weight: Node | None, eps: Node
) -> tuple[Node, Node, Node]:
    g = dy if weight is None else dy * weight
    mean, r = _moments(x, eps)
    d = x - mean
    c = (g * d).reduce("sum") / _count(x) * (r * r)
    return r * ((g - _mean(g)) - d * c), mean, r


def _layer_norm_gradients(
    dy: Node, x: Node, weight: Node | None, eps: Node
) -> tuple[Node, Node, Node]:
    """Returns a layer norm's gradient by x, and two terms per element,
    ``dy * ((x - mean) * scale)`` and ``dy``: their sums down each column are the gradients by
    weight and by bias.
    """
    dx, mean, r = _layer_norm_backward(dy, x, weight, eps)
    return dx, dy * ((x - mean) * r), dy


def _group_norm_sums(dy: Node, x: Node, mean: Node, scale: Node) -> tuple[Node, Node]:
    """Returns the two sums over a channel from which a group norm's gradients follow: ``sum(dy)``
    and ``sum(dy * ((x - mean) * scale))``.

    ``mean``, ``scale`` (``rsqrt(var + eps)``): statistics of the channel's group.
    """
    return dy.reduce("sum"), (dy * ((x - mean) * scale)).reduce("sum")


def _layer_norm_with_statistics(
    x: Node, weight: Node | None, bias: Node | None, eps: Node
) -> tuple[Node, Node, Node]:
    """Layer norm of a row, its mean and its scale ``rsqrt(var + eps)``; PyTorch saves the last two
    for the backward pass.
    """
    return _layer_norm(x, weight, bias, eps), *_moments(x, eps)


def _layer_norm_backward_from_statistics(
    dy: Node, x: Node, weight: Node | None, mean: Node, scale: Node
) -> Node:
    g = dy if weight is None else dy * weight
    d = x - mean
    c = (g * d).reduce("sum") / _count(x) * (scale * scale)
    return scale * ((g - _mean(g)) - d * c)


def _rms_norm_with_statistics(x: Node, weight: Node | None, eps: Node) -> tuple[Node, Node]:
    """RMS norm of a row, and its scale ``rsqrt(mean(x**2) + eps)``, which PyTorch saves for the
    backward pass.
    """
    return _rms_norm(x, weight, eps), _rms(x, eps)


def _rms_norm_backward_from_statistics(dy: Node, x: Node, weight: Node | None, scale: Node) -> Node:
    g = dy if weight is None else dy * weight
    return scale * (g - x * ((g * x).reduce("sum") / _count(x) * (scale * scale)))


# -- the table --------------------------------------------------------------------------------
_ROW = {"out": ("row", "")}
_WIDE = {"out": ("row", "wide")}
_SUM = {"out": ("row", "sum")}
_INDEX = {"out": ("row", "i64")}
_LOSS = {"loss": ("row", "wide")}
_BACK = {"dx": ("element", "")}
_MOMENTS = {"mean": ("row", "wide"), "scale": ("row", "wide")}
_CORRECTION = {"correction": Number(1.0, option=Real(least=-3e38, most=3e38))}
_EPS = {"eps": Number(1e-6, option=EPS)}
_EPS_OFFSET = {**_EPS, "offset": Number(0.0, neutral=0.0, option=OFFSET)}
_EPS_LAYER = {"eps": Number(1e-5, option=EPS)}
_X = {"x": "element"}
_DY_Y, _LENGTHS = {"dy": "element", "y": "element"}, {"lengths": "row"}
_COUNTS = frozenset(_LENGTHS)
_RowOpWithLengths = partial(RowOp, optional=_COUNTS, integers=_COUNTS, lengths=_COUNTS)
_RESIDUAL = {
    "residual": "element",
    "weight": "column",
    "bias": "column",
    "residual_bias": "column",
}
_ADDED = {"out": ("element", ""), "total": ("element", "")}
_IGNORED = {"ignore_index": Number(-100, dtype="i64", option=INDEX)}
_CLASSES = {
    **_IGNORED,
    "label_smoothing": Number(0.0, neutral=0.0, option=SMOOTHING),
    "softcap": Number(None, option=SOFTCAP),
    "z_loss": Number(0.0, neutral=0.0, option=Z_LOSS),
}
_WEIGHT = frozenset({"weight"})
_RMS_NORMS: dict[
    str, tuple[Callable[..., Any], Callable[..., Any], Mapping[str, Number], tuple[str, ...]]
] = {
    "rms_norm": (_rms_norm, _add_rms_norm, _EPS, REAL),
    "rms_norm_offset": (_rms_norm, _add_rms_norm, _EPS_OFFSET, REAL),
    "rms_norm_rounded": (
        _rms_norm_rounded,
        _add_rms_norm_rounded,
        _EPS_OFFSET,
        ("bf16", "f16"),
    ),
}
"""RMS norms by name: formula, formula with a residual, scalars, and dtypes of x. Those with an
offset of the weight, and with a rounding before it, are operations of their own."""
_TARGET = frozenset({"target"})
_DIVISOR = {"divisor": Number(1.0, neutral=1.0, option=Real(above=0.0, most=TEMPERATURE_MAX))}
_BOTH = frozenset({"weight", "bias"})

BY_PARTS = ("sum", "mean")
"""Reductions that also take complex numbers: they reduce real and imaginary parts by themselves."""
TABLE: dict[str, RowOp] = {
    op.name: op
    for op in (
        RowOp(
            "sum",
            _sum,
            results=_SUM,
            dtypes=(*NUMBERS, "bool"),
            form="reduce",
            says="``sum(x)`` over ``axis``. For integers and bools the result is int64, and wraps.",
        ),
        RowOp(
            "prod",
            _prod,
            results=_SUM,
            dtypes=(*NUMBERS, "bool"),
            form="reduce",
            says="``prod(x)`` over ``axis``, in the order of a sum. For integers and bools the "
            "result is int64, and wraps.",
        ),
        RowOp("prod_backward", _prod_backward, _X | {"dy": "row"}, _BACK),
        RowOp(
            "mean",
            _mean,
            results=_ROW,
            form="reduce",
            says="``sum(x) / n`` over ``axis``; NaN for no elements.",
        ),
        *(
            RowOp(
                f"a{how}",
                partial(_extreme, how=how),
                results=_ROW,
                dtypes=NUMBERS,
                empty=False,
                form="reduce",
                says=f"``{how}(x)`` over ``axis``. A NaN if there is one; {zeros}.",
            )
            for how, zeros in (
                ("max", "+0.0 is above -0.0"),
                ("min", "-0.0 is below +0.0"),
            )
        ),
        *(
            RowOp(
                f"arg{how}",
                partial(_arg_extreme, how=how),
                results=_INDEX,
                dtypes=NUMBERS,
                empty=False,
                form="reduce",
                says=f"``arg{how}(x)`` along ``axis``: the first index of the {which} element. "
                f"A NaN is {beyond} than any number; zeros are equal.",
            )
            for how, which, beyond in (
                ("max", "largest", "larger"),
                ("min", "smallest", "smaller"),
            )
        ),
        RowOp(
            "var",
            _var,
            results=_ROW,
            numbers=_CORRECTION,
            form="reduce",
            says="``sum((x - mean)**2) / max(n - correction, 0)`` over ``axis``.",
        ),
        RowOp(
            "std",
            _std,
            results=_ROW,
            numbers=_CORRECTION,
            form="reduce",
            says="``sqrt(var(x))`` over ``axis``.",
        ),
        _RowOpWithLengths(
            "softmax",
            _softmax,
            _X | _LENGTHS,
            form="along",
            says="``e * (1 / sum(e))`` along ``axis``, ``e = exp(x - max(x))``. A row of -inf, or "
            "with a NaN or +inf, gives NaN. ``lengths``: how many elements of each row count; the "
            "others give 0.",
        ),
        RowOp(
            "attention_weights",
            _attention_weights,
            _X | {"seen": "row"},
            numbers={"scale": Number(1.0, neutral=1.0)},
            optional=frozenset({"seen"}),
            dtypes=("f32", "f64"),
            integers=frozenset({"seen"}),
            narrow=True,
        ),
        RowOp("dot", lambda x, y: (x * y).reduce("sum"), {"x": "element", "y": "element"}, _WIDE),
        _RowOpWithLengths("softmax_backward", _softmax_backward, _DY_Y | _LENGTHS, _BACK),
        _RowOpWithLengths(
            "log_softmax",
            _log_softmax,
            _X | _LENGTHS,
            form="along",
            says="``d - log(sum(exp(d)))`` along ``axis``, ``d = x - max(x)``. A row of -inf, or "
            "with a NaN or +inf, gives NaN. ``lengths``: how many elements of each row count; the "
            "others give -inf.",
        ),
        _RowOpWithLengths("log_softmax_backward", _log_softmax_backward, _DY_Y | _LENGTHS, _BACK),
        RowOp("logsumexp_f64", _logsumexp, results=_ROW, dtypes=("f64",)),
        RowOp(
            "cross_entropy",
            _cross_entropy,
            _X | {"target": "row"},
            _LOSS,
            _CLASSES,
            integers=_TARGET,
            empty=False,
            form="own",
        ),
        RowOp(
            "cross_entropy_backward",
            _cross_entropy_backward,
            _X | {"target": "row", "dy": "row"},
            _BACK,
            _CLASSES,
            integers=_TARGET,
            empty=False,
        ),
        RowOp(
            "token_logprobs",
            _token_logprobs,
            {"logits": "element", "ids": "row", "temperature": "row"},
            _WIDE,
            _DIVISOR,
            frozenset({"temperature"}),
            ("f32", "bf16", "f16"),
            frozenset({"ids"}),
            empty=False,
            form="own",
        ),
        RowOp(
            "token_logprobs_backward",
            _token_logprobs_backward,
            {"logits": "element", "ids": "row", "dy": "row", "temperature": "row"},
            _BACK,
            _DIVISOR,
            frozenset({"temperature"}),
            ("f32", "bf16", "f16"),
            frozenset({"ids"}),
            empty=False,
        ),
        RowOp(
            "cross_entropy_joined",
            _cross_entropy_joined,
            {"top": "element", "total": "element", "hit": "row", "target": "row", "even": "row"},
            {"loss": ("row", "wide"), "peak": ("row", "wide"), "scale": ("row", "wide")},
            {**_IGNORED, "classes": Number(0, dtype="i64", option=INDEX), **_CLASSES},
            optional=frozenset({"even"}),
            dtypes=("f32", "f64"),
            integers=_TARGET,
            empty=False,
        ),
        RowOp(
            "capped_mean",
            _capped_mean,
            results=_WIDE,
            numbers={"softcap": Number(None, option=SOFTCAP)},
            empty=False,
        ),
        *(
            RowOp(
                f"{reduction}_shares_{wide}",
                _loss_gradients(wide, reduction == "mean"),
                {"target": "element", "dy": "row"},
                {"share": ("element", "wide")},
                _IGNORED | {"times": Number(1.0, neutral=1.0)},
                optional=frozenset({"dy"}),
                dtypes=("i64", "i32"),
                integers=_TARGET,
                wide=wide,
            )
            for reduction in ("mean", "sum")
            for wide in ("f32", "f64")
        ),
        RowOp(
            "mean_loss",
            _mean_loss,
            _X | {"target": "element"},
            {"out": ("row", "")},
            _IGNORED,
            integers=_TARGET,
        ),
        *(
            RowOp(
                name,
                _reduced_losses(name == "averaged_loss"),
                _X | {"target": "element"},
                {"out": ("row", "")},
                {**_IGNORED, "classes": Number(0, dtype="i64", option=INDEX)},
                dtypes=("f32", "f64"),
                integers=_TARGET,
            )
            for name in ("summed_loss", "averaged_loss")
        ),
        RowOp(
            "mean_loss_backward",
            _mean_loss_backward,
            {"dy": "row", "target": "element"},
            _BACK,
            _IGNORED,
            integers=_TARGET,
        ),
        *(
            RowOp(
                name,
                norm,
                _X | {"weight": "column", "bias": "column"},
                numbers=numbers,
                optional=_BOTH,
                dtypes=dtypes,
                form="own" if name == "rms_norm" else "",
            )
            for name, (norm, _, numbers, dtypes) in _RMS_NORMS.items()
        ),
        RowOp("l2_norm", _l2_norm, numbers=_EPS),
        RowOp(
            "l2_norm_backward", _l2_norm_backward, {"dy": "element", "x": "element"}, numbers=_EPS
        ),
        *(
            RowOp(
                f"add_{name}",
                norm,
                _X | _RESIDUAL,
                _ADDED,
                numbers,
                _BOTH | {"residual_bias"},
                dtypes,
            )
            for name, (_, norm, numbers, dtypes) in _RMS_NORMS.items()
        ),
        RowOp(
            "rms_norm_backward",
            _rms_norm_backward,
            {"dy": "element", "x": "element", "weight": "column"},
            _BACK | {"scale": ("row", "wide")},
            _EPS,
            _WEIGHT,
        ),
        RowOp(
            "layer_norm",
            _layer_norm,
            _X | {"weight": "column", "bias": "column"},
            numbers=_EPS_LAYER,
            optional=_BOTH,
            form="own",
        ),
        RowOp(
            "add_layer_norm",
            _add_layer_norm,
            _X | _RESIDUAL,
            _ADDED,
            _EPS_LAYER,
            _BOTH | {"residual_bias"},
        ),
        RowOp(
            "layer_norm_backward",
            _layer_norm_backward,
            {"dy": "element", "x": "element", "weight": "column"},
            _BACK | _MOMENTS,
            _EPS_LAYER,
            _WEIGHT,
        ),
        RowOp(
            "rms_norm_gradients",
            _rms_norm_gradients,
            {"dy": "element", "x": "element", "weight": "column"},
            _BACK | {"dweight": ("column", "")},
            _EPS,
            _WEIGHT,
            dtypes=("bf16", "f16"),
        ),
        RowOp(
            "layer_norm_gradients",
            _layer_norm_gradients,
            {"dy": "element", "x": "element", "weight": "column"},
            _BACK | {"dweight": ("column", ""), "dbias": ("column", "")},
            _EPS_LAYER,
            _WEIGHT,
            dtypes=("bf16", "f16"),
        ),
        RowOp("moments", _moments, results=_MOMENTS, numbers=_EPS_LAYER),
        RowOp(
            "group_norm_sums",
            _group_norm_sums,
            {"dy": "element", "x": "element", "mean": "row", "scale": "row"},
            {"shift": ("row", "wide"), "stretch": ("row", "wide")},
        ),
        RowOp(
            "native_layer_norm",
            _layer_norm_with_statistics,
            _X | {"weight": "column", "bias": "column"},
            {"out": ("element", "")} | _MOMENTS,
            _EPS_LAYER,
            _BOTH,
        ),
        RowOp(
            "native_layer_norm_backward",
            _layer_norm_backward_from_statistics,
            {"dy": "element", "x": "element", "weight": "column", "mean": "row", "scale": "row"},
            _BACK,
            optional=_WEIGHT,
        ),
        RowOp(
            "native_rms_norm",
            _rms_norm_with_statistics,
            _X | {"weight": "column"},
            {"out": ("element", ""), "scale": ("row", "wide")},
            _EPS,
            _WEIGHT,
        ),
        RowOp(
            "native_rms_norm_backward",
            _rms_norm_backward_from_statistics,
            {"dy": "element", "x": "element", "weight": "column", "scale": "row"},
            _BACK,
            optional=_WEIGHT,
        ),
    )
}
"""Operations over rows by name."""

MADE: dict[str, RowOp] = {}
"""Operations over rows that are derived on demand, by name: gradients of operations of
:data:`TABLE`, and fused parts of programs (:mod:`ptxgen.graph.fuse_reductions`)."""
