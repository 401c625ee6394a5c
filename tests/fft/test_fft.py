"""Transforms: the definition, factorisations, roots of unity, kernels against the oracle, rows
alone, inverses, gradients and errors.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import log2, prod

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import fft as numerics
from ptxgen.ops import OPERATIONS
from ptxgen.ops.fft import axes_of_transform
from ptxgen.oracle.fft import fft_pairs, transform
from ptxgen.program.interpret import Interpreter
from ptxgen.spec.fft import FftSpec, Form

PAIRS = OPERATIONS["fft_pairs"].function
EPS = {"f4": 2.0**-24, "f8": 2.0**-53}


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


@pytest.fixture
def short_parts(monkeypatch):
    """Transforms of more than 12 elements have parts of at most 8, and primes above 7 take chirps,
    so that tests are quick.
    """
    for limits, most in ((numerics.WHOLE, 12), (numerics.PART, 8), (numerics.PRIMES, (2, 3, 5, 7))):
        for dtype in limits:
            monkeypatch.setitem(limits, dtype, most)
    made = numerics.parts, numerics.is_direct
    for each in made:
        each.cache_clear()
    yield
    for each in made:
        each.cache_clear()


def drawn(*shape, kind="f4"):
    return np.random.default_rng(shape).standard_normal(shape).astype(kind)


def as_complex(pairs):
    return pairs[..., 0].astype("f8") + 1j * pairs[..., 1]


def error(got, expected):
    """Returns the RMS error relative to the RMS of the expected values."""
    return np.sqrt(np.mean(abs(got - expected) ** 2) / np.mean(abs(expected) ** 2))


# -- the definition -----------------------------------------------------------------------------
def dense(n):
    """Returns the matrix of the transform of length n, of roots that are rounded to f64."""
    w = np.array([complex(*root) for root in numerics.roots(n)], np.clongdouble)
    return w[np.outer(np.arange(n), np.arange(n)) % n]


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_transforms_are_as_exact_as_their_roundings(kind):
    for n in (*range(1, 65), 97, 128, 243, 343):
        x = drawn(2 + 256 // n, n, 2, kind=kind)
        found = error(as_complex(fft_pairs(x)), as_complex(x) @ dense(n))
        assert found <= bound(n, kind), n


def bound(n, kind):
    """Returns the bound of the relative RMS error of a transform that contracts.md states: errors
    of levels add in squares; chirps take three transforms.
    """
    if numerics.is_direct(n, {"f4": "f32", "f8": "f64"}[kind]):
        return 0.7 * EPS[kind] * log2(n) ** 0.5
    return EPS[kind] * (1 + 3 * log2(numerics.padded(n))) ** 0.5


def test_known_transforms_are_exact():
    for n in (1, 2, 4, 6, 12, 16, 60, 256):
        x = np.zeros((n, 2), "f4")
        x[0] = 1, -2
        assert (fft_pairs(x) == [1, -2]).all()  # of an impulse: constant
        x[:] = 3, 5
        assert (fft_pairs(x)[0] == [3 * n, 5 * n]).all()


# -- factorisations and roots -------------------------------------------------------------------
def test_factorisations_are_functions_of_the_length():
    assert numerics.passes(4096) == (16, 16, 16) and numerics.passes(8192) == (16, 8, 8, 8)
    assert numerics.passes(1000) == (10, 10, 10) and numerics.passes(1) == (1,)
    assert numerics.passes(16384) == (16, 16, 8, 8) and numerics.passes(19 * 62) == (31, 19, 2)
    assert numerics.bases(16) == (4, 4) and numerics.bases(12) == (4, 3)
    assert numerics.bases(15) == (3, 5) and numerics.bases(31) == (31, 1)
    assert numerics.parts(1 << 20, "f32") == (1024, 1024)
    assert numerics.parts(1 << 24, "f32") == (2048, 64, 128)
    assert numerics.padded(17) == 36 and numerics.padded(4097) == 9216
    for n in range(1, 2000):
        for dtype in ("f32", "f64"):
            if numerics.is_direct(n, dtype):
                found = numerics.passes(n)
                assert prod(found) == n and list(found) == sorted(found, reverse=True)
                assert set(found) <= {1, *numerics.RADICES, *numerics.PRIMES[dtype]}
        assert 2 * n - 1 <= numerics.padded(n) <= max(1, 1.34 * (2 * n - 1))
    for n in (9_000_000, 13**7, (1 << 28) - 1, 1 << 28):
        for dtype in ("f32", "f64"):
            size = n if numerics.is_direct(n, dtype) else numerics.padded(n)
            found = numerics.parts(size, dtype)
            assert prod(found) == size and max(found) <= numerics.PART[dtype] and len(found) <= 3


def test_each_long_row_has_a_kernel():
    """Making a kernel checks its threads, registers and shared memory."""
    for dtype, most in numerics.WHOLE.items():
        sizes = [n for n in range(most // 2 + 1, most + 1) if numerics.is_direct(n, dtype)]
        forms = [Form(dtype, n) for n in sizes]
        forms += [Form(dtype, f << e, chirp=5) for f in (1, 3, 5, 7, 9) for e in range(14)]
        for form in forms:
            if form.n <= most:
                spec = FftSpec.made(form)
                assert spec.shared_bytes <= 99 << 10 and spec.resident * spec.threads <= 2048


def exact_root(k, n):
    """Returns ``exp(-2πi k/n)`` by Taylor series in decimals, rounded to f64."""
    with localcontext() as context:
        context.prec = 50
        angle = 2 * Decimal("3.14159265358979323846264338327950288419716939937510582") * k / n
        term, sums = Decimal(1), [Decimal(0), Decimal(0)]
        for i in range(1, 90):
            sums[(i - 1) % 2] += term if (i - 1) % 4 in (0, 3) else -term
            term = term * angle / i
        return [float(s) if abs(s) > Decimal("1e-40") else 0.0 for s in sums]


def test_roots_of_unity_are_correctly_rounded():
    for n in (1, 7, 16, 4095, 8192):
        for k in {0, 1, n // 8, n // 4, n // 3, n // 2, n - 1} - {n}:
            assert list(numerics.roots(n)[k]) == exact_root(k, n), (k, n)
    assert numerics.roots(4) == ((1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0))


def test_twiddles_of_two_levels_are_within_an_ulp():
    from ptxgen.oracle.fft import _twiddle

    m = np.arange(0, 6 << 16, 1009)
    for dtype, kind in (("f32", "f4"), ("f64", "f8")):
        re, im = _twiddle(m, 6 << 16, dtype)
        found = np.array([exact_root(int(k), 6 << 16) for k in m[:100]])
        assert (abs(np.stack([re, im], -1)[:100] - found) <= 2 * EPS[kind] * abs(found)).all()


# -- kernels ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("n", "kind"),
    [(1, "f4"), (2, "f8"), (3, "f4"), (5, "f4"), (7, "f8"), (8, "f4"), (11, "f4"), (13, "f4"),
     (16, "f8"), (17, "f4"), (36, "f4"), (62, "f4"), (105, "f8"), (128, "f4"), (101, "f8"),
     (9216, "f4"), (67, "f4"), (38, "f8")],
)  # fmt: skip
def test_kernels_have_the_bits_of_the_contract(n, kind):
    x = drawn(3 if n < 1000 else 1, 2 * n, kind=kind)
    for how in ({}, {"inverse": True, "norm": "ortho"}):
        same_bits(ptxgen.fft_block(x, **how), reference.fft_block(x, **how))


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ((3, 6, 5, 2), {"axis": 1, "inverse": True}),
        ((3, 4, 2), {"axis": 0, "n": 5}),
        ((2, 9, 2), {"n": 6, "count": 3}),
        ((2, 9), {"source": "real", "count": 5}),
        ((2, 4, 2), {"source": "half", "sink": "real", "inverse": True}),
        ((2, 3, 2), {"source": "half", "sink": "real", "n": 11, "norm": "forward"}),
        ((2, 8, 2), {"source": "half", "sink": "real", "n": 17}),
    ],
)
def test_pairs_have_the_bits_of_the_contract(shape, how):
    same_bits(PAIRS(drawn(*shape), **how), fft_pairs(drawn(*shape), **how))


@pytest.mark.parametrize(
    ("n", "shape", "how"),
    [
        (48, (2, 48), {"source": "real", "count": 25}),
        (245, (2, 240, 2), {}),
        (512, (1, 257, 2), {"source": "half", "sink": "real", "inverse": True}),
        (19, (2, 19, 2), {"inverse": True, "norm": "ortho"}),
        (103, (2, 52, 2), {"source": "half", "sink": "real", "n": 103}),
        (40, (40, 3, 2), {"axis": 0}),
    ],
)
def test_long_transforms_have_the_bits_of_the_contract(n, shape, how, short_parts):
    """Two and three parts, chirps in parts, and columns, which are copied to rows."""
    x, how = drawn(*shape), {"n": n, **how}
    same_bits(PAIRS(x, **how), fft_pairs(x, **how))


def test_transforms_by_parts_are_transforms(short_parts):
    for n in (48, 245, 512, 19, 103):
        x = drawn(n, 2, kind="f8")
        assert error(as_complex(fft_pairs(x)), np.fft.fft(as_complex(x))) < 16 * EPS["f8"]


def test_a_row_has_its_bits_alone():
    x = drawn(70, 60)
    whole = ptxgen.fft_block(x)
    same_bits(ptxgen.fft_block(x[11:12]), whole[11:12])
    same_bits(ptxgen.fft_block(x[11:44]), whole[11:44])
    pairs = drawn(20, 12, 2)
    columns = PAIRS(np.ascontiguousarray(pairs.swapaxes(0, 1)), axis=0)
    same_bits(columns.swapaxes(0, 1), PAIRS(pairs))


def test_special_values_stay_in_their_row():
    x = drawn(3, 24)
    x[1, 3] = np.inf
    found = ptxgen.fft_block(x)
    same_bits(found[::2], reference.fft_block(x[::2]))
    assert not np.isfinite(found[1]).all()
    tiny = (drawn(1, 24) * 2.0**-130).astype("f4")
    same_bits(ptxgen.fft_block(tiny), reference.fft_block(tiny))
    assert ptxgen.fft_block(tiny).any()


# -- several axes, inverses ---------------------------------------------------------------------
@pytest.mark.parametrize("n", [16, 30, 31, 1000])
@pytest.mark.parametrize("norm", numerics.NORMS)
def test_an_inverse_undoes_a_transform(n, norm):
    """The error has twice the variance of a transform's, one of the scale, and is within 2 ulp of
    the norm.
    """
    x = drawn(4, n, 2)
    found = fft_pairs(fft_pairs(x, norm=norm), norm=norm, inverse=True)
    assert error(as_complex(found), as_complex(x)) <= 2**0.5 * bound(n, "f4") + EPS["f4"]
    ulp = np.spacing(np.linalg.norm(x, axis=(1, 2), keepdims=True))
    assert (abs(found - x) <= 2 * ulp).all()


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("norm", numerics.NORMS)
def test_options_mean_what_they_mean_to_numpy(inverse, norm):
    x = drawn(3, 10, 7, kind="f8")
    pairs = np.stack([x, x[::-1]], -1)
    how = {"norm": norm, "inverse": inverse}
    full = np.fft.ifft if inverse else np.fft.fft
    for n in (None, 6, 13):
        got = as_complex(fft_pairs(pairs, axis=1, n=n, **how))
        assert error(got, full(as_complex(pairs), n, 1, norm)) < 1e-15
    got = as_complex(fft_pairs(x, source="real", count=4, **how))
    assert error(got, full(x, norm=norm)[..., :4]) < 1e-15
    real = np.fft.irfft if inverse else np.fft.hfft
    for n in (None, 7, 20):
        got = fft_pairs(pairs, axis=1, n=n, source="half", sink="real", **how)
        half = as_complex(pairs)
        assert error(got, real(half, n, 1, norm)) < 1e-15


def along_axes(x, kind, axes, lengths, inverse=False, norm="backward"):
    """Returns a transform of several axes, and the gradient of it for ``dy`` = the result."""
    b = Interpreter("fftn")
    y = b.array("x", x)
    steps = axes_of_transform(
        x.shape[: x.ndim - (kind in ("complex", "half"))], axes, lengths, kind
    )
    for step in steps:
        y = step.of(b, y, norm, inverse)
    dx = y
    for step in reversed(steps):
        dx = step.adjoint(b, dx, norm, inverse)
    return b.value(y), b.value(dx)


def test_several_axes():
    x = drawn(4, 6, 9, kind="f8")
    half, dx = along_axes(x, "spectrum", (0, 2), (5, 8))
    expected = np.fft.rfftn(x, (5, 8), (0, 2))
    assert error(as_complex(half), expected) < 1e-15
    assert abs((dx * x).sum() - (half**2).sum()) < 1e-13 * (half**2).sum()  # <F* y, x> = <y, y>
    back, dx = along_axes(half, "half", (0, 2), (5, 8), inverse=True)
    assert error(back, np.fft.irfftn(expected, (5, 8), (0, 2))) < 1e-15
    assert abs((dx * half).sum() - (back**2).sum()) < 1e-13 * (back**2).sum()
    full, _ = along_axes(x, "real", (0, 1, 2), (None, None, None), norm="ortho")
    assert error(as_complex(full), np.fft.fftn(x, norm="ortho")) < 1e-15


# -- gradients ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ((2, 6, 2), {}),
        ((2, 6, 2), {"n": 4, "norm": "ortho", "inverse": True}),
        ((2, 6, 2), {"n": 9, "count": 7, "norm": "forward"}),
        ((2, 6), {"source": "real", "count": 4}),
        ((3, 5), {"source": "real", "axis": 0, "n": 4}),
        ((2, 4, 2), {"source": "half", "sink": "real", "inverse": True}),
        ((2, 4, 2), {"source": "half", "sink": "real", "n": 7}),
        ((2, 6, 2), {"source": "half", "sink": "real", "n": 6}),
        ((3, 1, 2), {"source": "half", "sink": "real", "n": 2, "axis": 0}),
    ],
)
def test_gradients_are_adjoint_transforms(shape, how):
    """``<dy, F x>`` equals ``<F* dy, x>`` for the gradient F* of the linear map F."""
    from ptxgen.program.operation import Backward

    op, x = OPERATIONS["fft_pairs"], drawn(*shape, kind="f8")
    y = fft_pairs(x, **how)
    dy = np.random.default_rng(1).standard_normal(y.shape)
    b = Interpreter("gradient")
    given = [b.array(n, v) for n, v in (("x", x), ("y", y), ("dy", dy))]
    at = Backward({"x": given[0]}, op.check(how), (given[1],), (given[2],), frozenset("x"))
    dx = b.value(op.vjp(b, at)["x"])
    assert dx.shape == x.shape
    for e in np.eye(x.size).reshape(x.size, *x.shape)[:: max(x.size // 7, 1)]:
        assert abs((dx * e).sum() - (dy * fft_pairs(e, **how)).sum()) < 1e-14 * x.size


def test_a_gradient_in_torch_is_an_inverse():
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    x, dy = drawn(2, 3, 20)
    given = torch.from_numpy(x).clone().requires_grad_()
    pt.fft_block(given).backward(torch.from_numpy(dy))
    same_bits(given.grad.numpy(), reference.fft_block(dy, inverse=True, norm="forward"))


# -- errors -------------------------------------------------------------------------------------
def test_what_bad_input_gets():
    x = drawn(2, 8)
    for wrong, how, kind, text in (
        (x.astype("f2"), {}, DtypeError, "x has dtype float16; takes float32 or float64"),
        (x[:, :7], {}, ShapeError, "x has shape"),
        (x[:, :0], {}, ShapeError, "n is 0"),
        (x, {"norm": "unitary"}, OptionError, "norm is 'unitary'; takes 'backward'"),
        (x, {"inverse": 2}, OptionError, "inverse is 2"),
    ):
        with pytest.raises(kind, match=text):
            ptxgen.fft_block(wrong, **how)
    pairs = drawn(2, 3, 2)
    for wrong, how, kind, text in (
        (pairs[..., :1], {}, ShapeError, r"takes pairs \[..., 2\]"),
        (pairs, {"axis": 2}, ShapeError, "axis is 2"),
        (pairs, {"n": 0}, ShapeError, "n is 0"),
        (pairs, {"count": 4}, ShapeError, "count is 4; takes at most n = 3"),
        (pairs[:, :0], {}, ShapeError, "n is 0"),
        (pairs[:, :1], {"source": "half", "sink": "real"}, ShapeError, "n is 0"),
        (pairs, {"source": "half"}, OptionError, "sink is 'pairs'"),
    ):
        with pytest.raises(kind, match=text):
            PAIRS(wrong, **how)
    assert ptxgen.fft_block(drawn(0, 8)).shape == (0, 8)


def test_results_can_be_written_to_memory_that_pairs_do_not_fit():
    x, room = drawn(3, 5, 2), np.zeros(31, "f4")
    out = room[1:].reshape(3, 5, 2)
    PAIRS(x, out=out)
    same_bits(out, fft_pairs(x))
    assert room[0] == 0
    same_bits(np.asarray(transform((x[..., 0], x[..., 1]), "f32")).transpose(1, 2, 0), fft_pairs(x))
