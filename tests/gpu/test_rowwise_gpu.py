"""Operations over rows on a GPU: every operation and kernel, bit for bit its oracle."""

from __future__ import annotations

import numpy as np
import pytest
from bits import KINDS, operand, same_bits
from ml_dtypes import bfloat16
from row_cases import NATIVE, SEED, arrays, over_rows

import ptxgen
from ptxgen import reference
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.row_reductions import TABLE
from ptxgen.ops import OPERATIONS
from ptxgen.oracle.row_reductions import compute
from ptxgen.spec.row_reductions import facts, reads, way
from ptxgen.tiles import TABLES

pytestmark = pytest.mark.gpu
ROUTES = TABLES["row_reductions",].routes
SHAPES = [(5, 104), (9, 1000), (4, 2051), (3, 8192), (2, 20000), (2, 33001), (1, 70000)]
SHAPES += [(140, 1043), (140, 1048), (2, 50257), (2, 50176), (35, 77), (9, 203), (9, 411)]


def call(name, given, kernel=None):
    return OPERATIONS[over_rows(name)](*given, kernel=kernel)


def check(name, given, kernel=None):
    got, expected = call(name, given, kernel), compute(name, *given)
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for one, other in pairs:
        same_bits(one, other, seed=SEED, spec=kernel or name, what=f"{name} {given[0].shape}")


@pytest.mark.parametrize("dtype", sorted(NATIVE))
@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_operation(name, dtype):
    if dtype not in (FULL[d] for d in TABLE[name].dtypes):
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
    variant = row.variant(dtypes, row.outputs("bf16", dtypes), numbers)
    served = 0
    for i, (m, n) in enumerate(SHAPES):
        values = {"ROWS": m, "COLS": n, "VECTOR": int(n % 8 == 0), "SMS": 132}
        values |= facts(variant)
        if not ROUTES[route].requires.evaluate(TABLES["row_reductions",].space.environment(values)):
            continue
        rng = np.random.default_rng([SEED, route, i])
        given = arrays(name, (m, n), bfloat16)
        given[0] = operand(rng, (m, n), KINDS[(route + i) % len(KINDS)], "bf16")
        check(name, given, ROUTES[route].of(variant).name)
        served += 1
    kernel = ROUTES[route].kernels[0]
    if kernel.part in ("dense", "staged") and reads(variant) > 2:
        return  # shared memory has no room for several arrays
    assert served or way(variant) != (1 if kernel.is_last else 2)


@pytest.mark.parametrize("name", ["rms_norm_gradients", "layer_norm_gradients"])
def test_sums_down_rows(name):
    """All kernels have the oracle's bits: lanes without rows, several leaves, more than a branch
    has.
    """
    for shape in (
        (1100, 2048),
        (70, 4096),
        (1030, 8192),
        (2050, 3001),
        (33 * 1024 + 9, 24),
        (0, 8),
    ):
        check(name, arrays(name, shape, bfloat16, "special" if shape[0] == 70 else "normal"))


def test_strides_and_alignments():
    torch = pytest.importorskip("torch")
    wide = torch.randn(40, 1100, device="cuda", dtype=torch.bfloat16)
    for offset in (0, 1, 3, 8):
        for step in (1, 3):
            x = wide[::step, offset : offset + 1032]
            got = ptxgen.softmax(x)
            assert torch.equal(got, ptxgen.softmax(x.contiguous()))
            assert torch.equal(got[3], ptxgen.softmax(x[3:4])[0])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_group_norm(dtype):
    rng = np.random.default_rng(SEED)
    for shape, groups in ((4, 64, 16, 16), 8), ((2, 12, 33, 31), 3), ((5, 24), 24), ((0, 4, 8), 2):
        x = (rng.standard_normal(shape) * 3 + 1).astype(NATIVE[dtype])
        weight, bias = (rng.standard_normal(shape[1]).astype(NATIVE[dtype]) for _ in range(2))
        got = ptxgen.group_norm(x, groups, weight, bias)
        expected = reference.group_norm(x, groups, weight, bias)
        same_bits(got, expected, seed=SEED, spec="", what=f"group_norm {shape}")


@pytest.mark.parametrize("shape", [(4, 64, 16, 16), (3, 32, 1000), (6, 32)])
def test_group_norm_backward(shape):
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(SEED)
    given = [torch.randn(s, device="cuda") for s in (shape, shape[1:2], shape[1:2])]
    fine = [t.double().requires_grad_() for t in given]
    given = [t.requires_grad_() for t in given]
    dy = torch.randn(shape, device="cuda")
    expected = torch.nn.functional.group_norm(fine[0], 8, *fine[1:])
    found = torch.autograd.grad(ours.group_norm(given[0], 8, *given[1:]), given, dy)
    # sums of up to 4000 terms of f32 that cancel: 4000 * 2^-24 of their size, some units
    for one, other in zip(found, torch.autograd.grad(expected, fine, dy.double()), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-3)


def test_long_rows():
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((2, 128256)).astype(np.float32).astype(bfloat16)
    same_bits(ptxgen.softmax(x), reference.softmax(x), seed=SEED, spec="", what="vocabulary")
    flat = rng.standard_normal((1 << 24) + 1).astype(np.float32)
    for name in ("sum", "amax", "var"):
        got, expected = getattr(ptxgen, name)(flat), getattr(reference, name)(flat)
        same_bits(got, expected, seed=SEED, spec=name, what="2^24 + 1")
