"""``solve_triangular``: exact answers, columns and rows alone, gradients, errors. (Kernels have
their cases in ``interp_cases``.)
"""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, ShapeError
from ptxgen.oracle import fma

WAYS = [(u, d) for u in (False, True) for d in (False, True)]


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def drawn(*shape, kind="f4"):
    """Matrices that have an inverse, and right-hand sides."""
    rng = np.random.default_rng(shape)
    *outer, n, cols = shape
    a = rng.standard_normal((*outer, n, n)) / n + 2 * np.eye(n)
    return a.astype(kind), rng.standard_normal((*outer, n, cols)).astype(kind)


def test_the_contract_is_forward_substitution():
    a, b = drawn(5, 1)
    x = b[:, 0].copy()
    for i in range(5):
        for k in range(i):
            x[i] = fma(-a[i, k], x[k], x[i])
        x[i] /= a[i, i]
    for lib in (ptxgen, reference):
        same_bits(lib.solve_triangular(a, b)[:, 0], x)


@pytest.mark.parametrize(("upper", "unit"), WAYS)
def test_whole_numbers_are_exact(upper, unit):
    rng = np.random.default_rng(0)
    a = (np.triu if upper else np.tril)(rng.integers(-1, 2, (6, 6))).astype("f8")
    np.fill_diagonal(a, 7.0 if unit else 2.0)
    x = rng.integers(-9, 10, (6, 4)).astype("f8")
    there = a.copy()
    if unit:
        np.fill_diagonal(there, 1.0)
    got = ptxgen.solve_triangular(a, there @ x, upper=upper, unitriangular=unit)
    assert (got == x).all()


def test_a_column_and_a_row_depend_on_what_is_before_them_alone():
    a, b = drawn(3, 40, 35)
    whole = ptxgen.solve_triangular(a, b)
    same_bits(ptxgen.solve_triangular(a[1], b[1, :, 7:8]), whole[1, :, 7:8])
    same_bits(ptxgen.solve_triangular(a[:, :33, :33], b[:, :33]), whole[:, :33])
    for i in range(3):
        same_bits(ptxgen.solve_triangular(a[i], b)[i], whole[i])  # one matrix for all


def test_upper_is_lower_the_other_way_round():
    a, b = drawn(35, 3)
    turned = ptxgen.solve_triangular(a[::-1, ::-1].copy(), b[::-1].copy(), upper=True)
    same_bits(turned[::-1], ptxgen.solve_triangular(a, b))


def test_leading_dimensions_broadcast():
    a, b = drawn(3, 1, 9, 2)[0], drawn(4, 9, 2)[1]
    got = ptxgen.solve_triangular(a, b)
    assert got.shape == (3, 4, 9, 2)
    same_bits(got, reference.solve_triangular(a, b))
    assert ptxgen.solve_triangular(a, np.zeros((4, 9, 0), "f4")).shape == (3, 4, 9, 0)


def test_what_bad_input_gets():
    a, b = drawn(4, 2)
    for wrong, error, text in (
        ((a.astype("f2"), b), DtypeError, "a has dtype float16; takes float32 or float64"),
        ((a, b.astype("f8")), DtypeError, "b has dtype float64; takes float32"),
        ((a[:3], b), ShapeError, "a has shape"),
        ((a, b[:3]), ShapeError, "b has shape"),
    ):
        with pytest.raises(error, match=text):
            ptxgen.solve_triangular(*wrong)


@pytest.mark.parametrize(("upper", "unit"), WAYS)
def test_gradients_of_whole_numbers_are_exact(upper, unit):
    """Divided by powers of two alone, so PyTorch's are, too."""
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    rng = np.random.default_rng(1)
    a = rng.integers(-1, 2, (5, 5)).astype("f8")
    np.fill_diagonal(a, 2.0)
    b, dx = rng.integers(-9, 10, (2, 2, 5, 3)).astype("f8")
    found = []
    for solve in (pt.solve_triangular, torch.linalg.solve_triangular):
        given = [torch.from_numpy(x).clone().requires_grad_() for x in (a, b)]
        solve(*given, upper=upper, unitriangular=unit).backward(torch.from_numpy(dx))
        found.append([x.grad.numpy() for x in given])
    for got, expected in zip(*found, strict=True):
        assert (got == expected).all() and got.any()


@pytest.mark.parametrize("left", [False, True])
def test_the_block_serves_torch_linalg(left):
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    a, b = map(torch.from_numpy, drawn(2, 9, 3))
    given = b if left else b.mT
    with pt.batch_invariant(strict=True) as block:
        a.requires_grad_()
        x = torch.linalg.solve_triangular(a, given, upper=left, left=left)
        x.sum().backward()
    same_bits((x if left else x.mT).detach().numpy(), reference.solve_triangular(
        (a if left else a.mT).detach().numpy(), b.numpy(), upper=True
    ))  # fmt: skip
    assert block.served["linalg_solve_triangular"] == 2 and a.grad is not None
