"""Norms of rows with all that is optional: bits, gradients, what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits
from row_cases import device

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError

DTYPES = ("f32", "bf16", "f16", "f64")


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device(device()):
        yield


def rows(rng, shape, dtype):
    """Plain rows, of which the first, if there are several, has NaN and infinities."""
    found = operand(rng, shape, "normal", dtype)
    if len(found) > 1 < found.ndim:
        found[0] = operand(rng, found[0].shape, "special", dtype)
    return found


def vectors(rng, n, dtype, *kinds):
    """Vectors of ``n`` elements: of the dtype, or ("wide") of what is computed in."""
    wide = "f64" if dtype == "f64" else "f32"
    return [operand(rng, n, "normal", wide if kind == "wide" else dtype) for kind in kinds]


def exact(x, dtype):
    return x.astype(np.float64 if dtype == "f64" else np.float32)


# -- a bias of rms_norm ------------------------------------------------------------------------
SHAPES = [(40,), (3, 1032), (2, 3, 7), (1, 2050), (0, 8), (3, 0)]
SHOWN = [("bf16", shape) for shape in SHAPES] + [("f32", SHAPES[0]), ("f64", SHAPES[0])]
"""All shapes in one dtype, one shape in the others, but for f16, which is rounded as bf16 is."""


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        pytest.param(*case, marks=() if case in SHOWN else pytest.mark.long)
        for case in itertools.product(DTYPES, SHAPES)
    ],
)
def test_a_bias_is_added_last(dtype, shape):
    """A bias is added to the unrounded norm, last, with and without weight and residual."""
    rng = np.random.default_rng([5, *shape])
    x, residual = (rows(rng, shape, dtype) for _ in range(2))
    weight, bias = vectors(rng, shape[-1], dtype, "own", "wide")
    wide = exact(x, dtype).dtype.name
    for w in (None, weight):
        got = ptxgen.rms_norm(x, w, bias=bias)
        with np.errstate(all="ignore"):
            unrounded = reference.rms_norm(x, w, out_dtype=wide)
            expected = (unrounded + exact(bias, dtype)).astype(NUMPY[dtype])
            total = (exact(x, dtype) + exact(residual, dtype)).astype(NUMPY[dtype])
        same_bits(got, expected)
        same_bits(reference.rms_norm(x, w, bias=bias), expected)
        got = ptxgen.rms_norm(x, w, bias=bias, residual=residual)
        same_bits(got[1], total)
        same_bits(got[0], reference.rms_norm(total, w, bias=bias))
        both = reference.rms_norm(x, w, bias=bias, residual=residual)
        for one, other in zip(got, both, strict=True):
            same_bits(one, other)
    assert ptxgen.rms_norm(x, bias=bias, out_dtype=wide).dtype.name == wide


def test_a_bias_that_does_not_fit():
    x = np.ones((2, 8), np.float32)
    with pytest.raises(ShapeError, match=r"bias has shape \[3\]; takes \[N\]"):
        ptxgen.rms_norm(x, bias=x[0, :3])
    with pytest.raises(DtypeError, match="bias has dtype float64; takes float32"):
        ptxgen.rms_norm(x, bias=np.ones(8))
    with pytest.raises(ShapeError, match="out shares memory with bias"):
        ptxgen.rms_norm(x[0], bias=x[1], out=x[1])
    for given in ({}, {"residual": True}):
        found = ptxgen.explain("rms_norm", 2, 8, bias=True, **given)
        assert len(found.launches) == 1 and "bias=f32" in found.dtype


@pytest.mark.parametrize("residual", [False, True])
def test_gradients_by_a_bias(residual):
    """Bits of dy's sum down the rows; beside differences, with all others."""
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(3)
    x, r, dy = (torch.randn(2, 37, 40).bfloat16() for _ in range(3))
    for kind in (torch.bfloat16, torch.float32):
        bias = torch.randn(40).to(kind).requires_grad_()
        given = {"residual": r} if residual else {}
        y = ours.rms_norm(x, bias=bias, **given)
        (got,) = torch.autograd.grad(y[0] if residual else y, bias, dy)
        rows = np.ascontiguousarray(dy.float().numpy().reshape(-1, 40).T)
        assert got.dtype is kind
        assert torch.equal(got, torch.from_numpy(reference.sum(rows, -1)).to(kind))
    given = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in ((3, 5), 5, 5, (3, 5))]

    def norm(x, weight, bias, r):
        return ours.rms_norm(x, weight, bias=bias, residual=r if residual else None)

    assert torch.autograd.gradcheck(norm, given)


# -- an offset of the weight, and a rounding before it -----------------------------------------
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        pytest.param(dtype, shape, marks=pytest.mark.long if dtype != "bf16" else ())
        for dtype in DTYPES
        for shape in [(2, 3, 7), (3, 1032), (0, 8)]
    ],
)
def test_an_offset_and_a_rounding_before_the_weight(dtype, shape):
    rng = np.random.default_rng([7, *shape])
    x, residual = (rows(rng, shape, dtype) for _ in range(2))
    weights = vectors(rng, shape[-1], dtype, "own", "wide")
    wide = exact(x, dtype).dtype.name
    with np.errstate(all="ignore"):
        total = (exact(x, dtype) + exact(residual, dtype)).astype(NUMPY[dtype])
    for weight, offset, rounded in itertools.product(weights, (0.0, 1.0), (False, True)):
        how = {"offset": offset, "rounded": rounded}
        for h, given in ((x, {}), (total, {"residual": residual})):
            got = ptxgen.rms_norm(x, weight, **given, **how)
            with np.errstate(all="ignore"):
                y = reference.rms_norm(h, out_dtype=wide)
                y = exact(y.astype(NUMPY[dtype]), dtype) if rounded else y
                expected = (y * (exact(weight, dtype) + y.dtype.type(offset))).astype(NUMPY[dtype])
            same_bits(got[0] if given else got, expected)
            oracle = reference.rms_norm(x, weight, **given, **how)
            same_bits(oracle[0] if given else oracle, expected)


def test_an_offset_without_a_weight():
    x = np.ones((2, 8), np.float32)
    for call in (ptxgen.rms_norm, reference.rms_norm):
        with pytest.raises(OptionError, match=r"offset is 1.0, .* there is no weight"):
            call(x, offset=1.0)
    found = ptxgen.explain("rms_norm", 2, 8, dtype="bf16", weight=True, offset=1.0, rounded=True)
    assert len(found.launches) == 1 and "offset=f32" in found.dtype


def test_gradients_of_a_rounded_norm():
    """The gradient by x is that of a norm that is not rounded; the weight's has rounded factors."""
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(5)
    x, dy = (torch.randn(37, 40).bfloat16() for _ in range(2))
    weight = torch.randn(40).bfloat16().requires_grad_()
    leaf = x.clone().requires_grad_()
    dx, dw = (
        torch.autograd.grad(ours.rms_norm(leaf, weight, offset=1.0, rounded=rounded), of, dy)[0]
        for rounded, of in ((True, leaf), (True, weight))
    )
    plain = ours.rms_norm(leaf, weight, offset=1.0)
    assert torch.equal(dx, torch.autograd.grad(plain, leaf, dy)[0])
    products = dy.float() * ours.rms_norm(x).float()
    expected = reference.sum(np.ascontiguousarray(products.numpy().T), -1)
    assert torch.equal(dw, torch.from_numpy(expected).bfloat16())
    given = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in ((3, 5), 5, (3, 5))]

    def norm(x, weight, r):
        return ours.rms_norm(x, weight, residual=r, offset=1.0, rounded=True)

    assert torch.autograd.gradcheck(norm, given)


# -- a residual's own bias ---------------------------------------------------------------------
NORMS = ("rms_norm", "layer_norm")


@pytest.mark.parametrize("shape", [(2, 1032), (2, 3, 7), (0, 8)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NORMS)
def test_a_residuals_bias_is_added_to_it_first(name, dtype, shape):
    """A residual's bias is added to it first; sums are rounded in the working precision, their
    total to x's dtype.
    """
    rng = np.random.default_rng([6, *shape])
    x, residual = (rows(rng, shape, dtype) for _ in range(2))
    weight, bias, own, wide = vectors(rng, shape[-1], dtype, "own", "wide", "own", "wide")
    norm, oracle = getattr(ptxgen, name), getattr(reference, name)
    for vector, given in ((own, {}), (wide, {"weight": weight, "bias": bias})):
        with np.errstate(all="ignore"):
            other = exact(residual, dtype) + exact(vector, dtype)
            total = (exact(x, dtype) + other).astype(NUMPY[dtype])
        how = {**given, "residual": residual, "residual_bias": vector}
        got = norm(x, **how)
        same_bits(got[1], total)
        same_bits(got[0], oracle(total, **given))
        for one, wanted in zip(got, oracle(x, **how), strict=True):
            same_bits(one, wanted)


@pytest.mark.parametrize("name", NORMS)
def test_a_bias_of_no_residual(name):
    x = np.ones((2, 8), np.float32)
    norm = getattr(ptxgen, name)
    for call in (norm, getattr(reference, name)):
        with pytest.raises(OptionError, match="residual_bias is that of a residual, of which"):
            call(x, residual_bias=x[0])
    with pytest.raises(ShapeError, match=r"residual_bias has shape \[3\]; takes \[N\]"):
        norm(x, residual=x, residual_bias=x[0, :3])
    with pytest.raises(DtypeError, match="residual_bias has dtype float64; takes float32"):
        norm(x, residual=x, residual_bias=np.ones(8))
    found = ptxgen.explain(name, 2, 8, residual=True, residual_bias=True)
    assert len(found.launches) == 1 and "residual_bias=f32" in found.dtype


@pytest.mark.parametrize("name", NORMS)
def test_gradients_by_a_residuals_bias(name):
    """Bits of the sum's gradient, added down the rows; beside differences, with all others."""
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(4)
    norm = getattr(ours, name)
    given = [torch.randn(2, 37, 40).bfloat16().requires_grad_() for _ in range(2)]
    bias = torch.randn(40).requires_grad_()
    out, total = norm(given[0], residual=given[1], residual_bias=bias)
    seeds = [torch.randn(2, 37, 40).bfloat16() for _ in range(2)]
    dx, dr, db = torch.autograd.grad((out, total), (*given, bias), seeds)
    added = np.ascontiguousarray(dx.float().numpy().reshape(-1, 40).T)
    assert torch.equal(dx, dr) and torch.equal(db, torch.from_numpy(reference.sum(added, -1)))
    shapes = (3, 5), 5, 5, (3, 5), 5
    given = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]

    def both(x, weight, bias, r, rb):
        return norm(x, weight, bias=bias, residual=r, residual_bias=rb)

    assert torch.autograd.gradcheck(both, given)
