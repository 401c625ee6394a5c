"""Float64 arithmetic that carries a bound of what a contract's arithmetic may be off by.

A :class:`Num` is an array of numbers, each with the most that an evaluation of the same formula in
a working precision may differ from it. The bounds follow from counts of roundings:

- *One operation* (``+ - * /``) rounds once: ``u * |result|``, u being half an ulp of 1, plus half
  of the smallest subnormal. What operands are off by goes through to first order, exactly.
- *A sum of n terms, in any order,* passes each term through at most n roundings: it is off by
  ``gamma * sum(|term|)`` with ``gamma = n u / (1 - n u)`` (Higham, Accuracy and Stability, 4.4).
  Trees, chunks, chains of fma: each is such an order, so no bound depends on a contract's.
- *A function* is off by so many ulps of its result: those of docs/reference/functions.md, which
  tests hold every argument to.
- *A step of tensor cores* cuts each of its products, and the accumulator, by less than 2^-bits of
  the largest of them, and its sum by less than 2 u of it; no partial sum exceeds ``sum(|term|)``.

In float64 the formula is itself rounded as often, so u counts twice there. A bound is infinite,
and nothing is judged, where an intermediate result may be beyond the largest number, or a sign or
an infinity is not certain. A NaN and an infinity that are certain must be there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SLACK = 1 + 2.0**-16
"""Products of bounds, which first order leaves out, and this module's own roundings."""


@dataclass(frozen=True)
class Precision:
    """Working precision: ``u`` is half an ulp of 1, ``tiny`` half the least subnormal,
    ``top`` the largest number.
    """

    u: float
    tiny: float
    top: float


def _precision(bits: int, least: int, top: float) -> Precision:
    return Precision(2.0**-bits, 2.0 ** (least - 1), top)


F32 = _precision(24, -149, (2 - 2.0**-23) * 2.0**127)
F64 = Precision(2.0**-52, 2.0**-1074, (2 - 2.0**-52) * 2.0**1023)
"""Precision of float64 with doubled roundings: the contract's, and those of the formula here."""
OF = {
    "float32": F32,
    "float64": F64,
    "bfloat16": _precision(8, -133, (2 - 2.0**-7) * 2.0**127),
    "float16": _precision(11, -24, 65504.0),
}
"""Precisions by dtype name."""


def working(*dtypes: Any) -> Precision:
    """Precision that operands of these dtypes are computed in."""
    return F64 if any(np.dtype(d).name == "float64" for d in dtypes) else F32


class Num:
    """Numbers ``v``, and bounds ``e`` of what a computation in ``p`` may be off by."""

    __array_ufunc__ = None

    def __init__(self, v: Any, e: Any = 0.0, p: Precision = F32) -> None:
        self.v = np.asarray(v, np.float64)
        self.e = np.broadcast_to(np.asarray(e, np.float64), self.v.shape)
        self.p = p

    # -- views ------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        return self.v.shape

    def each(self, view: Callable[[Any], Any]) -> Num:
        """Numbers and bounds through a view, or a move, of arrays."""
        return Num(view(self.v), view(self.e), self.p)

    def __getitem__(self, at: Any) -> Num:
        return self.each(lambda x: x[at])

    def reshape(self, *shape: int) -> Num:
        return self.each(lambda x: x.reshape(shape))

    def swapaxes(self, one: int, other: int) -> Num:
        return self.each(lambda x: x.swapaxes(one, other))

    @property
    def mT(self) -> Num:  # noqa: N802 - NumPy's name
        return self.swapaxes(-1, -2)

    # -- arithmetic -------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Num:
        other = self._like(other)
        return self._made(self.v + other.v, self.e + other.e, other)

    __radd__ = __add__

    def __neg__(self) -> Num:
        return Num(-self.v, self.e, self.p)

    def __sub__(self, other: Any) -> Num:
        return self + -self._like(other)

    def __rsub__(self, other: Any) -> Num:
        return self._like(other) + -self

    def __mul__(self, other: Any) -> Num:
        other = self._like(other)
        e = abs(self.v) * other.e + abs(other.v) * self.e + self.e * other.e
        sure = _sure(self, other) & _sure(other, self)
        return self._made(self.v * other.v, e, other, sure)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Num:
        other = self._like(other)
        v = self.v / other.v
        room = abs(other.v) - other.e
        e = np.where(room > 0, (self.e + abs(v) * other.e) / room, np.inf)
        exact = (other.v == 0) & (other.e == 0) & (abs(self.v) > self.e)
        e = np.where(exact | (np.isinf(other.v) & (other.e == 0)), 0.0, e)
        return self._made(v, e, other, (room > 0) | exact | np.isnan(v))

    def __rtruediv__(self, other: Any) -> Num:
        return self._like(other) / self

    def _like(self, other: Any) -> Num:
        if isinstance(other, Num):
            return other
        return Num(other, 0.0, self.p)

    def _made(self, v: Any, e: Any, other: Num | None = None, sure: Any = True) -> Num:
        """A result that is rounded once."""
        parts = [self] if other is None else [self, other]
        unknown = ~np.asarray(sure) | np.any(
            np.broadcast_arrays(*(np.isinf(x.e) for x in parts), np.zeros(v.shape, bool)), 0
        )
        p = self.p if other is None or self.p.u < other.p.u else other.p
        return rounded(Num(v, np.where(unknown, np.inf, e), p), p)

    # -- functions --------------------------------------------------------------------------------
    def apply(self, f: Any, ulps: float, steep: float | None = None) -> Num:
        """``f`` of these, which a computation has ``ulps`` of: one that only rises or falls, or
        one whose slope is at most ``steep``.
        """
        v = np.asarray(f(self.v), np.float64)
        if steep is not None:
            e = np.where(np.isfinite(self.v), steep * self.e, 0.0)
        else:
            low, high = (np.asarray(f(self.v + s * self.e), np.float64) for s in (-1, 1))
            nowhere = np.isnan(v) & np.isnan(low) & np.isnan(high)
            e = np.maximum(abs(low - v), abs(high - v))
            e = np.where((self.e == 0) | nowhere, 0.0, e)
        off = ulps * 2 * (self.p.u * (abs(v) + e) + self.p.tiny)
        e = np.where(np.isnan(e), np.inf, e) + np.where(np.isfinite(v), off, 0.0)
        return _settled(Num(v, np.where(np.isinf(self.e), np.inf, e), self.p))

    def max(self, axis: Any, keepdims: bool = False) -> Num:
        """The largest, which no rounding makes; NaN where one is."""
        v = self.v.max(axis, keepdims=keepdims, initial=-np.inf)
        unknown = np.isinf(self.e).any(axis, keepdims=keepdims)
        e = self.e.max(axis, keepdims=keepdims, initial=0.0)
        return Num(v, np.where(unknown, np.inf, np.where(np.isfinite(v), e, 0.0)), self.p)

    def sum(self, axis: Any, keepdims: bool = False, more: int = 0) -> Num:
        """The sum in any order; ``more``: roundings of each term besides."""
        v = self.v.sum(axis, keepdims=keepdims)
        finite = np.isfinite(self.v)
        size = np.where(finite, abs(self.v) + self.e, 0.0).sum(axis, keepdims=keepdims)
        count = self.v.size // max(v.size, 1) if v.size else 0
        return _summed(self, v, self.e.sum(axis, keepdims=keepdims), size, count + more)

    def rounded(self, dtype: Any) -> Num:
        """Rounded once more, to what ``dtype`` has; infinite where it is certainly beyond that."""
        p = OF[np.dtype(dtype).name]
        beyond = np.isfinite(self.v) & (abs(self.v) - self.e > p.top * (1 + 2 * p.u))
        found = rounded(self, p)
        v = np.where(beyond, np.copysign(np.inf, self.v), found.v)
        return Num(v, np.where(beyond, 0.0, found.e), self.p)


def _sure(x: Num, other: Num) -> Any:
    """Marks products with ``x`` that are certain: no infinity meets what may be zero."""
    return ~np.isinf(x.v) | (other.e == 0) | (abs(other.v) > other.e)


def rounded(x: Num, p: Precision) -> Num:
    """Returns ``x`` rounded once to ``p``; later arithmetic stays in the precision of ``x``."""
    e = x.e + np.where(np.isfinite(x.v), p.u * (abs(x.v) + x.e) + p.tiny, 0.0)
    found = _settled(Num(x.v, e, p))
    return Num(found.v, found.e, x.p)


def _settled(x: Num) -> Num:
    """Bounds that are infinite where a number may be beyond the largest: a product that an fma does
    not round may be, and its sum not.
    """
    finite = np.isfinite(x.v)
    e = np.where(finite, x.e * SLACK, np.where(np.isinf(x.e), np.inf, 0.0))
    e = np.where(np.isnan(e) | (finite & (abs(x.v) + e > x.p.top)), np.inf, e)
    return Num(x.v, e, x.p)


def _summed(of: Num, v: Any, e: Any, size: Any, roundings: int) -> Num:
    """A sum of terms of these sizes, each of which passes so many roundings."""
    n = roundings * of.p.u
    gamma = n / (1 - n)
    e = np.where(np.isinf(e), np.inf, e + gamma * size + 2 * roundings * of.p.tiny)
    e = np.where(size * (1 + gamma) > of.p.top, np.inf, e)
    return _settled(Num(v, e, of.p))


def dot(a: Num, b: Num, core: Any = None, more: int = 0) -> Num:
    """``a @ b`` of matrices, or batches of them, in any order; ``core``: on tensor cores."""
    k = a.shape[-1]
    p = a.p if a.p.u < b.p.u else b.p
    with np.errstate(all="ignore"):
        v = np.einsum("...mk,...kn->...mn", a.v, b.v) if k else np.zeros(_outer(a, b))
        x, y = (np.where(np.isfinite(z.v), abs(z.v), 0.0) for z in (a, b))
        size = np.matmul(x + np.where(np.isinf(a.e), 0, a.e), y + np.where(np.isinf(b.e), 0, b.e))
        e = np.matmul(a.e, y) + np.matmul(x, b.e) + np.matmul(a.e, b.e)
        odd = [np.where(np.isfinite(z.v), 0.0, 1.0) for z in (a, b)]
        loose = [np.where(z.e > 0, 1.0, 0.0) for z in (a, b)]
        unsure = np.matmul(odd[0], loose[1]) + np.matmul(loose[0], odd[1]) > 0
    found = _summed(
        Num(v, 0.0, p), v, np.where(unsure | np.isnan(e), np.inf, e), size, 2 * k + 4 + more
    )
    if core is not None and k:
        steps = -(-k // core.terms) + 1
        cut = steps * (core.terms + 1) * 2.0**-core.bits * size * SLACK
        cut = cut + steps * 2 * p.u * size
        floor = steps * (core.terms + 1) * 2.0 ** (core.floor - core.bits)
        found = _settled(
            Num(found.v, found.e + np.where(np.isfinite(found.v), cut + floor, 0.0), p)
        )
    return found


def _outer(a: Num, b: Num) -> tuple[int, ...]:
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return *lead, a.shape[-2], b.shape[-1]


def where(condition: Any, a: Any, b: Any) -> Num:
    """``a`` where ``condition`` is certain to hold, else ``b``."""
    like = a if isinstance(a, Num) else b
    a, b = (like._like(x) for x in (a, b))
    return Num(np.where(condition, a.v, b.v), np.where(condition, a.e, b.e), like.p)


def fault(got: Any, of: Num) -> str:
    """First result that is further off than it may be, in words; empty if none is."""
    got = np.asarray(got)
    if got.shape != of.shape:
        return f"f64: shape {list(got.shape)}, where the formula has {list(of.shape)}"
    mine = got.astype(np.float64)
    with np.errstate(all="ignore"):
        near = (abs(mine - of.v) <= of.e) | (mine == of.v) | (np.isnan(mine) & np.isnan(of.v))
    wrong = ~near & ~np.isinf(of.e)
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    mine, v, e = (np.atleast_1d(x)[at] for x in (mine, of.v, of.e))
    return (
        f"f64: {int(wrong.sum())} of {wrong.size} results are off, first at {list(at)}: "
        f"{mine!r}, where the formula has {v!r} within {e!r}"
    )
