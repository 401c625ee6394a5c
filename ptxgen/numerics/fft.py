"""Discrete Fourier transforms: contract ``fft/1``, its factorisations and its roots of unity.

The ``fft`` contract, version 1
-------------------------------
``X[k] = scale * sum(x[j] * w**(j*k))`` with ``w = exp(-2πi/n)``, in f32 (f64 for f64). Every
addition, product and fma below is rounded once. How n is split depends on n and the dtype alone, so
the bits of a transform depend on its n elements alone.

*Products.* ``(a + bi) * (c + di)`` is ``fma(a, c, -(b*d))`` and ``fma(a, d, b*c)``. Roots of unity
are computed in fixed point with 192 bits, rounded to f64 and then to the dtype.

*Butterflies*, :func:`dft`. Radix 2 is ``(a+b, a-b)``. Radix 4 with ``s = x0+x2, d = x0-x2, t =
x1+x3, e = x1-x3`` is ``(s+t, d-ie, s-t, d+ie)``. An odd prime p adds ``s[j] = x[j]+x[p-j]`` and
``d[j] = x[j]-x[p-j]``. ``A[k]`` is the sum of ``x[0]`` and ``s[j] * cos(2πjk/p)``, and
``B[k]`` that of ``d[j] * sin(2πjk/p)``, in ascending order of the factors' magnitudes (for k = 0 of
j), by chains of :data:`CHAIN` fma, the first of A from ``x[0]`` and others from a product, which
are added in order. ``X[0] = A[0], X[k] = A[k] - iB[k], X[p-k] = A[k] + iB[k]``, for p = 3 by fma of
d and the sine. Other radices have two factors, n = r * m (:func:`bases`). Factors without a common
divisor need no roots between them (Good-Thomas): for each b < m the r elements ``x[(m*q + r*b) %
n]``, q < r, are transformed, for each k < r the m results k of these, and ``X[k]`` is result k % m
of those of k % r. Others (8, 9, 16, 25) are two passes with roots as constants, where quarter turns
exchange and negate parts.

*Passes.* n without prime factors other than :data:`PRIMES`, up to :data:`WHOLE`, is the product of
the radices :func:`passes`. With L, the product of the radices before it, a pass of radix r
transforms for each ``g < n/(r*L)`` and ``l < L`` the r elements ``x[g*L + l + q*n/r] *
w_{rL}**(l*q)`` (for L > 1 and q > 0; Stockham) and stores them at ``g*r*L + l + q*L``.

*Parts.* Longer ones are the product of :func:`parts`, n = n1 * m: each of the m columns of
``x[j1*m + j2]`` is transformed, result k1 is multiplied by :func:`twiddle` ``w_n**(j2*k1)``, and
each row of m elements, transformed by the other parts, gives ``X[k1 + n1*k2]``.

*Chirps.* Other n, and those of more than three parts (Bluestein): with ``c[j] = exp(-πi j²/n)`` and
M = :func:`padded` (n), ``y = x * c``, followed by zeros up to M, is transformed, multiplied by
``B``, transformed by the inverse, and ``X = z * c``. B is the transform of ``conj(c[|j|])``,
-n < j < n, of period M. If M is at most WHOLE, B is computed in f64 (:func:`chirp_spectrum`),
divided by M and rounded; else it is a transform of this contract in the dtype, c is
:func:`twiddle` of order 2n, and scale is divided by M in f64.

*Inverse and scale.* An inverse transform exchanges real and imaginary parts before and after a
forward one. Last, both parts are multiplied by scale: 1, 1/n or ``1/sqrt(n)``, computed in f64 and
rounded. A real transform is the complex one of ``x + 0i``; a half spectrum is completed by
``X[n-k] = conj(X[k])``, with imaginary parts 0 for k = 0 and k = n/2.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache, reduce
from math import gcd
from typing import Any, Protocol

from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import Signature

FFT = Contract("fft", 1, "Stockham passes; parts by twiddles; else chirps", "simt")
WHOLE = {"f32": 16384, "f64": 8192}
"""Longest transform without parts, by dtype: its real parts fit the shared memory of a CTA."""
PART = {"f32": 2048, "f64": 1024}
"""Longest part of a longer transform: tiles of four parts fit the shared memory of a CTA."""
PARTS_MAX = 3
RADICES = (*range(2, 17), 25)
"""Radices that are no primes above 16."""
PRIMES = {
    "f32": (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61),
    "f64": (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31),
}
"""Prime radices, by dtype: a thread's registers hold a butterfly."""
CHAIN = 6
"""Most products of a chain of fma in a butterfly: errors of longer chains grow."""
LENGTH_MAX = 1 << 28
"""Most elements of a transform."""
NORMS = ("backward", "ortho", "forward")

FFT_BLOCK = Signature(
    "fft_block", ("x",), ("out",), {"": {"x": "... N/1*2", "out": "... N/1*2"}}, ("M", "N")
)

Pair = tuple[Any, Any]
"""Real and imaginary part."""


class Arithmetic(Protocol):
    """Operations that are rounded once; constants are floats that it rounds to its dtype."""

    def add(self, a: Any, b: Any) -> Any: ...

    def sub(self, a: Any, b: Any) -> Any: ...

    def mul(self, a: Any, b: Any) -> Any: ...

    def neg(self, a: Any) -> Any: ...

    def fma(self, a: Any, b: Any, c: Any) -> Any: ...


# -- factorisations -----------------------------------------------------------------------------
@cache
def is_direct(n: int, dtype: str) -> bool:
    """Whether n is a product of :data:`PRIMES` in at most :data:`PARTS_MAX` parts."""
    rest = n
    for p in PRIMES[dtype]:
        while rest % p == 0:
            rest //= p
    return rest == 1 and len(parts(n, dtype)) <= PARTS_MAX


@cache
def passes(n: int) -> tuple[int, ...]:
    """Returns the radices of a transform of length n, largest first: primes above 16, and of the
    rest the fewest of :data:`RADICES`, of these the ones with the smallest sum, then with the
    smallest first.
    """
    if n == 1:
        return (1,)
    rest, found = n, []
    for p in PRIMES["f32"]:
        while p > 16 and rest % p == 0:
            rest //= p
            found.append(p)
    return tuple(sorted((*found, *(_passes(rest, max(RADICES)) or ())), reverse=True))


@cache
def _passes(n: int, most: int) -> tuple[int, ...] | None:
    if n == 1:
        return ()
    found = []
    for r in RADICES:
        rest = _passes(n // r, r) if r <= most and n % r == 0 else None
        if rest is not None:
            found.append((r, *rest))
    return min(found, key=lambda f: (len(f), sum(f), f), default=None)


def bases(radix: int) -> tuple[int, int]:
    """Returns two factors of a radix: 4, or else its smallest prime factor, and the rest."""
    first = 4 if radix % 4 == 0 else next((p for p in PRIMES["f32"] if radix % p == 0), 1)
    return first, radix // first


@cache
def parts(n: int, dtype: str) -> tuple[int, ...]:
    """Returns the lengths whose product is n: n itself up to :data:`WHOLE`, else two of at most
    :data:`PART` whose larger is smallest, the smaller first; if there are none, the largest divisor
    of at most PART and the parts of the rest.
    """
    return (n,) if n <= WHOLE[dtype] else _parts(n, PART[dtype])


def _parts(n: int, most: int) -> tuple[int, ...]:
    if n <= most:
        return (n,)
    divisors = [d for d in range(most, 1, -1) if n % d == 0]
    pairs = [(n // d, d) for d in divisors if n // d <= d]
    return (
        min(pairs, key=lambda p: p[1]) if pairs else (divisors[0], *_parts(n // divisors[0], most))
    )


def padded(n: int) -> int:
    """Returns the length of the cyclic convolution with chirps: the smallest of at least 2n - 1
    that is a power of two, or 3, 5, 7 or 9 times one.
    """
    return min(f << max((-(-(2 * n - 1) // f) - 1).bit_length(), 0) for f in (1, 3, 5, 7, 9))


def scale(n: int, norm: str, inverse: bool) -> float:
    """Returns the factor of a transform, in f64."""
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "backward") == inverse else 1.0


# -- butterflies --------------------------------------------------------------------------------
def product(x: Pair, w: Pair, a: Arithmetic) -> Pair:
    """Returns ``x * w``, the product of complex numbers."""
    (p, q), (c, d) = x, w
    return a.fma(p, c, a.neg(a.mul(q, d))), a.fma(p, d, a.mul(q, c))


def _turned(x: Pair, quarters: int, a: Arithmetic) -> Pair:
    """Returns ``x * (-i)**quarters``."""
    re, im = x
    return ((re, im), (im, a.neg(re)), (a.neg(re), a.neg(im)), (a.neg(im), re))[quarters]


def dft(x: Sequence[Pair], a: Arithmetic) -> list[Pair]:
    """Transforms ``len(x)`` complex numbers by a butterfly: one of :data:`RADICES`, or a prime."""
    n = len(x)
    r, m = bases(n)
    if m == 1:
        return _prime(list(x), a)
    if gcd(r, m) == 1:
        inner = [_prime([x[(m * q + r * b) % n] for q in range(r)], a) for b in range(m)]
        outer = [_prime([y[k] for y in inner], a) for k in range(r)]
        return [outer[k % r][k % m] for k in range(n)]
    inner = [_prime([x[b + q * m] for q in range(r)], a) for b in range(m)]
    found: list[Pair] = [()] * n  # type: ignore[list-item]
    for k in range(r):
        found[k::r] = _prime([_times_root(y[k], k * b, n, a) for b, y in enumerate(inner)], a)
    return found


def _times_root(x: Pair, at: int, n: int, a: Arithmetic) -> Pair:
    """Multiplies by ``exp(-2πi at/n)``; quarter turns exchange and negate parts."""
    return _turned(x, at * 4 // n, a) if at * 4 % n == 0 else product(x, roots(n)[at], a)


def _prime(x: list[Pair], a: Arithmetic) -> list[Pair]:
    """Transforms 1, 2 or 4 complex numbers, or an odd prime number of them."""

    def plus(p: Pair, q: Pair) -> Pair:
        return a.add(p[0], q[0]), a.add(p[1], q[1])

    def minus(p: Pair, q: Pair) -> Pair:
        return a.sub(p[0], q[0]), a.sub(p[1], q[1])

    n = len(x)
    if n == 1:
        return x
    if n == 2:
        return [plus(*x), minus(*x)]
    if n == 4:
        s, d, t, e = plus(x[0], x[2]), minus(x[0], x[2]), plus(x[1], x[3]), minus(x[1], x[3])
        turned = (a.add(d[0], e[1]), a.sub(d[1], e[0])), (a.sub(d[0], e[1]), a.add(d[1], e[0]))
        return [plus(s, t), turned[0], minus(s, t), turned[1]]
    half = n // 2 + 1
    sums = [x[0], *(plus(x[j], x[n - j]) for j in range(1, half))]
    differences = [minus(x[j], x[n - j]) for j in range(1, half)]

    def chains(values: Sequence[Pair], factors: Sequence[float], start: Pair | None) -> Pair:
        """Returns the sum of values times factors, by chains of :data:`CHAIN`, in ascending order
        of the factors' magnitudes.
        """
        order = sorted(range(len(values)), key=lambda j: abs(factors[j]))
        sums: list[Pair] = []
        for at in range(0, len(order), CHAIN):
            now: Any = None if at else start
            for v, by in ((values[j], factors[j]) for j in order[at : at + CHAIN]):
                if by == 1:
                    now = v if now is None else plus(now, v)
                elif now is None:
                    now = a.mul(v[0], by), a.mul(v[1], by)
                else:
                    now = a.fma(v[0], by, now[0]), a.fma(v[1], by, now[1])
            sums.append(now)
        return reduce(plus, sums)

    w = roots(n)
    found = [chains(sums[1:], [1.0] * (half - 1), x[0])] * n
    for k in range(1, half):
        cos, sin = ([w[j * k % n][part] for j in range(1, half)] for part in (0, 1))
        even = chains(sums[1:], cos, x[0])
        if n == 3:
            (re, im), sine = differences[0], sin[0]
            found[1] = a.fma(im, -sine, even[0]), a.fma(re, sine, even[1])
            found[2] = a.fma(im, sine, even[0]), a.fma(re, -sine, even[1])
        else:
            odd = chains(differences, [-v for v in sin], None)
            found[k] = a.add(even[0], odd[1]), a.sub(even[1], odd[0])
            found[n - k] = a.sub(even[0], odd[1]), a.add(even[1], odd[0])
    return found


# -- roots of unity -----------------------------------------------------------------------------
BITS = 192
ONE = 1 << BITS


def _shifted(x: int) -> int:
    return (x + (ONE >> 1)) >> BITS


@cache
def _pi() -> int:
    """Computes π in fixed point by Machin's formula, ``16 atan(1/5) - 4 atan(1/239)``."""

    def atan(inverse: int) -> int:
        power, total, k = (ONE << 32) // inverse, 0, 0
        while power:
            total += (-power if k % 2 else power) // (2 * k + 1)
            power, k = power // (inverse * inverse), k + 1
        return total

    return (16 * atan(5) - 4 * atan(239)) >> 32


def _root(step: int, order: int) -> tuple[int, int]:
    """Computes ``exp(-2πi step/order)`` in fixed point, by the series of sine and cosine."""
    angle = 2 * _pi() * (step % order) // order
    sums, term, k = [0, 0], ONE, 0
    while term:
        sums[k % 2] += -term if k % 4 in (1, 2) else term  # 1, -θ, -θ²/2, θ³/6, ...
        k += 1
        term = _shifted(term * angle) // k
    return sums[0], sums[1]


def _powers(step: int, order: int, count: int) -> list[tuple[int, int]]:
    """Computes ``exp(-2πi step/order * k)`` for k < count, in fixed point, by products."""
    (c, d), found = _root(step, order), [(ONE, 0)]
    for _ in range(count - 1):
        p, q = found[-1]
        found.append((_shifted(p * c - q * d), _shifted(p * d + q * c)))
    return [(_snapped(p), _snapped(q)) for p, q in found]


def _snapped(x: int) -> int:
    """Returns 0 for a part that is zero but for errors of fixed point, far below 1/LENGTH_MAX."""
    return 0 if abs(x) < 1 << (BITS // 2) else x


@cache
def roots(n: int) -> tuple[tuple[float, float], ...]:
    """Returns ``exp(-2πi k/n)`` for k < n, each part correctly rounded to f64."""
    return tuple((p / ONE, q / ONE) for p, q in _powers(1, n, n))


def rounded(x: float, dtype: str) -> float:
    """Rounds a number of f64 to ``dtype``, f32 or f64."""
    return x if dtype == "f64" else float(struct.unpack("<f", struct.pack("<f", x))[0])


def low_bits(order: int) -> int:
    """Returns the number of bits of an exponent that index the second table of :func:`levels`: 9,
    so that it fits shared memory, or half of them for orders above 2^22.
    """
    return 9 if order <= 1 << 22 else (order.bit_length() + 1) // 2


@cache
def levels(order: int, dtype: str) -> tuple[tuple[tuple[float, ...], ...], tuple[Pair, ...]]:
    """Returns the two tables from which :func:`twiddle` computes roots of unity of ``order``.

    With s = :func:`low_bits`: for each h the parts of ``w**(h << s)``, rounded, and of what is
    missing to it; for each l < 2**s the parts of ``w**l - 1``.
    """
    shift = low_bits(order)
    high = []
    for p, q in _powers(1 << shift, order, -(-order >> shift)):
        near = [rounded(v / ONE, dtype) for v in (p, q)]
        left = [(v - _fixed(r)) / ONE for v, r in zip((p, q), near, strict=True)]
        high.append((*near, *(rounded(v, dtype) for v in left)))
    low = _powers(1, order, 1 << shift)
    return tuple(high), tuple(tuple(rounded(v / ONE, dtype) for v in (p - ONE, q)) for p, q in low)  # type: ignore[misc]


def _fixed(x: float) -> int:
    over, under = x.as_integer_ratio()
    return over * ONE // under


def twiddle(high: Sequence[Any], low: Pair, a: Arithmetic) -> Pair:
    """Returns ``w**m``, m = (h << s) + l, from entries h and l of :func:`levels`: with ``high``
    (H, E) and ``low`` L it is ``H + (E + H*L)``, by two fma a part, and an addition.
    """
    p, q, more, less = high
    c, d = low
    re = a.fma(p, c, a.fma(a.neg(q), d, more))
    im = a.fma(p, d, a.fma(q, c, less))
    return a.add(p, re), a.add(q, im)


# -- chirps -------------------------------------------------------------------------------------
@cache
def chirp(n: int) -> tuple[tuple[float, float], ...]:
    """Returns ``exp(-πi j²/n)`` for j < n, in f64."""
    w = roots(2 * n)
    return tuple(w[j * j % (2 * n)] for j in range(n))


@cache
def chirp_spectrum(n: int) -> tuple[tuple[float, float], ...]:
    """Returns B of the contract, divided by M = :func:`padded` (n), in f64.

    By recursion over the prime factors of M, smallest first: each product and each sum is rounded,
    in Python's floats.
    """
    size, c = padded(n), chirp(n)
    real, imaginary = [0.0] * size, [0.0] * size
    for j in range(n):
        for at in (j, -j):
            real[at], imaginary[at] = c[j][0], -c[j][1]
    found = _plain(real, imaginary, roots(size), 1)
    return tuple((p / size, q / size) for p, q in zip(*found, strict=True))


def _plain(
    re: list[float], im: list[float], w: Sequence[tuple[float, float]], step: int
) -> tuple[list[float], list[float]]:
    """Transforms by decimation in time; ``w[step * k]`` are the roots of unity of ``len(re)``."""
    n = len(re)
    if n == 1:
        return re, im
    r = next(p for p in (2, 3, 5, 7) if n % p == 0)
    m = n // r
    smaller = [_plain(re[q::r], im[q::r], w, step * r) for q in range(r)]
    out = [0.0] * n, [0.0] * n
    for k in range(n):
        p, q = smaller[0][0][k % m], smaller[0][1][k % m]
        for j in range(1, r):
            c, d = w[step * (j * k % n)]
            x, y = smaller[j][0][k % m], smaller[j][1][k % m]
            p, q = p + (x * c - y * d), q + (x * d + y * c)
        out[0][k], out[1][k] = p, q
    return out
