"""Quotients by a reciprocal that is rounded once (``quotient`` of
ptxgen/templates/attention/weights.cuh.j2) are those of a division.

With a and b integers of 24 bits, ``a / b`` lies ``r / (b * 2**scale)`` from the middle between two
numbers, where ``a * 2**scale = b * m + r`` for an odd m of 25 bits. What is computed errs by less
than 5 * 2**-24 of a unit in the last place, so only |r| up to 10 can be rounded otherwise.
"""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen.oracle.f32 import fma

f32, BITS, STEP, NEAREST = np.float32, 24, 64, 10


def quotient(a, b):
    inverse = (f32(1) / b).astype(f32)
    q = fma(a, inverse, f32(0))
    return fma(fma(-q, b, a), inverse, q)


def hard(b, twos):
    """All a and b, of these, which have ``twos`` factors of 2, with such a quotient."""
    odd = b >> twos
    inverse = odd.copy()  # modulo a power of two: each time twice as many bits are right
    for _ in range(5):
        inverse = inverse * (2 - odd * inverse) % (1 << 32)
    for scale in (BITS, BITS + 1):
        size = 1 << (scale - twos)
        for r in range(-NEAREST, NEAREST + 1):
            if r % (1 << twos) == 0:
                first = -(r >> twos) * inverse % size
                for m in range(0, 1 << (BITS + 1), size):
                    m = first + m
                    a = (b * m + r) >> scale
                    own = (m % 2 == 1) & (m >> BITS == 1) & (a >> (BITS - 1) == 1)
                    yield a[own], b[own]


PARTS = [n for n in range(STEP) if n % 16]


@pytest.mark.parametrize(
    "part", [pytest.param(n, marks=pytest.mark.long if n > 2 else ()) for n in PARTS]
)
def test_the_hardest_quotients(part):
    b = np.arange((1 << (BITS - 1)) + part, 1 << BITS, STEP, dtype=np.int64)
    tried = 0
    for a, by in hard(b, (part & -part).bit_length() - 1):
        x, y = (n.astype(f32) for n in (a, by))
        assert (quotient(x, y) == x / y).all()
        tried += len(a)
    assert tried > len(b)


@pytest.mark.parametrize("seed", range(2))
def test_random_quotients(seed):
    """0, and whatever a kernel takes: sums from 2**-80 on, divisors from 1/2 to 2**40."""
    rng = np.random.default_rng(seed)
    a = (rng.standard_normal(1 << 18) * 2.0 ** rng.integers(-78, 100, 1 << 18)).astype(f32)
    b = (rng.uniform(0.5, 1, 1 << 18) * 2.0 ** rng.integers(1, 40, 1 << 18)).astype(f32)
    a[:100] = 0
    assert (quotient(a, b).view(np.int32) == (a / b).view(np.int32)).all()
