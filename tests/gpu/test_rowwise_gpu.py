"""Operations over rows on a GPU: every operation and kernel, bit for bit its oracle."""

from __future__ import annotations

import numpy as np
import pytest
from bits import KINDS, operand, same_bits
from ml_dtypes import bfloat16
from test_rowwise import NATIVE, SEED, arrays

import ptxgen
from ptxgen import reference
from ptxgen.numerics.rowops import LONG, TABLE
from ptxgen.ops.rowwise import run
from ptxgen.reference.rowops import compute
from ptxgen.spec.rowwise import held, way
from ptxgen.tiles import TABLES

pytestmark = pytest.mark.gpu
ROUTES = TABLES["rows",].routes
SHAPES = [(5, 104), (9, 1000), (4, 2051), (3, 8192), (2, 20000), (2, 33001), (1, 70000)]


def call(name, given, kernel=None):
    row = TABLE[name]
    options = (o.default for o in row.signature.options.values())
    return run(name)(*given, *[None] * len(row.results), None, (*options, kernel))


def check(name, given, kernel=None):
    got, expected = call(name, given, kernel), compute(name, *given)
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for one, other in pairs:
        same_bits(one, other, seed=SEED, spec=kernel or name, what=f"{name} {given[0].shape}")


@pytest.mark.parametrize("dtype", sorted(NATIVE))
@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_operation(name, dtype):
    if dtype not in (LONG[d] for d in TABLE[name].dtypes):
        pytest.skip(f"{name} takes no {dtype}")
    floats = "int" not in dtype
    for shape, kind in ((5, 104), "normal"), ((3, 4096), "special"), ((4, 3001), "special"):
        check(name, arrays(name, shape, NATIVE[dtype], kind if floats else "normal"))


@pytest.mark.parametrize("name", ["softmax", "layer_norm_backward", "sum", "argmax"])
@pytest.mark.parametrize("route", range(len(ROUTES)))
def test_every_kernel(name, route):
    row = TABLE[name]
    dtypes = {n: "i64" if n in row.integers else "bf16" for n in row.arrays}
    numbers = row.given({n: o.default for n, o in row.numbers.items()})
    variant = row.variant(dtypes, row.outputs("bf16"), numbers)
    served = 0
    for i, (m, n) in enumerate(SHAPES):
        values = {"ROWS": m, "COLS": n, "VECTOR": int(n % 8 == 0), "SMS": 132}
        values |= {"HELD": held(variant), "WAY": way(variant)}
        if not ROUTES[route].requires.evaluate(TABLES["rows",].space.environment(values)):
            continue
        rng = np.random.default_rng([SEED, route, i])
        given = arrays(name, (m, n), bfloat16)
        given[0] = operand(rng, (m, n), KINDS[(route + i) % len(KINDS)], "bf16")
        check(name, given, ROUTES[route].of(variant).name)
        served += 1
    assert served or way(variant) != (1 if ROUTES[route].kernels[0].final else 2)


def test_strides_and_alignments():
    torch = pytest.importorskip("torch")
    wide = torch.randn(40, 1100, device="cuda", dtype=torch.bfloat16)
    for offset in (0, 1, 3, 8):
        for step in (1, 3):
            x = wide[::step, offset : offset + 1032]
            got = ptxgen.softmax(x)
            assert torch.equal(got, ptxgen.softmax(x.contiguous()))
            assert torch.equal(got[3], ptxgen.softmax(x[3:4])[0])


def test_long_rows():
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((2, 128256)).astype(np.float32).astype(bfloat16)
    same_bits(ptxgen.softmax(x), reference.softmax(x), seed=SEED, spec="", what="vocabulary")
    flat = rng.standard_normal((1 << 24) + 1).astype(np.float32)
    for name in ("sum", "amax", "var"):
        got, expected = getattr(ptxgen, name)(flat), getattr(reference, name)(flat)
        same_bits(got, expected, seed=SEED, spec=name, what="2^24 + 1")
