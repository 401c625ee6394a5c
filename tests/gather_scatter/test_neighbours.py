"""The nearest of points: beside its formula in NumPy, f64, ties, errors."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


@pytest.mark.parametrize("dtype", [np.float32, bfloat16, np.float16])
def test_bits_are_those_of_the_formula(dtype):
    x = np.random.default_rng(0).standard_normal((37, 11)).astype(dtype)
    x[20] = x[4]
    products = reference.matmul(x, np.ascontiguousarray(x.T), out_dtype="float32")
    squares = reference.sum(x.astype("f4") * x.astype("f4"), -1)
    far = np.maximum(squares[:, None] + squares - np.float32(2) * products, 0)
    np.fill_diagonal(far, 0)
    order = np.argsort(far, -1, kind="stable")[:, :6]
    distances, indices = ptxgen.umap_knn(x, 6)
    assert (indices == order).all() and (indices[:, 0] == np.arange(37))[np.arange(37) != 20].all()
    expected = np.sqrt(np.take_along_axis(far, order, -1))
    same_bits(distances, expected, seed=0, spec="", what="umap_knn")
    for one, other in zip(reference.umap_knn(x, 6), (distances, indices), strict=True):
        same_bits(one, other, seed=0, spec="", what="oracle")


def test_whole_numbers_are_exact():
    """Integer coordinates give exact distances; among a grid's many ties the lowest index comes
    first.
    """
    x = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(36, 2).astype("f4")
    far = ((x[:, None].astype("f8") - x) ** 2).sum(-1)
    order = np.argsort(far, -1, kind="stable")[:, :9]
    distances, indices = ptxgen.umap_knn(x, 9)
    assert (indices == order).all()
    assert (distances == np.sqrt(np.take_along_axis(far, order, -1)).astype("f4")).all()


def test_what_bad_input_gets():
    x = np.zeros((4, 3), np.float32)
    for wrong, error, text in (
        (lambda: ptxgen.umap_knn(x, 5), OptionError, "k is 5; takes 1 .. 4"),
        (lambda: ptxgen.umap_knn(x, 0), OptionError, "k is 0"),
        (lambda: ptxgen.umap_knn(x[0], 1), ShapeError, "x"),
        (lambda: ptxgen.umap_knn(x.astype("f8"), 1), DtypeError, "x has dtype float64"),
    ):
        with pytest.raises(error, match=text):
            wrong()
