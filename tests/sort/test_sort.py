"""Sorts, searches, counts and unique values: NumPy's results, bit for bit, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from sort_cases import drawn, rows, same

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics.sort import KEYS
from ptxgen.ops import OPERATIONS
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.sort import ROW_MAX, TILE
from ptxgen.tiles import TABLES

PASS = TABLES["sort", "pass"].routes[0]


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


@pytest.mark.parametrize("dtype", KEYS)
def test_every_dtype_is_in_the_order_of_numpy(dtype):
    x = drawn(dtype, (2, 300))
    x[:, 1::3] = x[:, ::3]  # equal elements
    for descending in (False, True):
        got = ptxgen.sort(x, descending=descending)
        same(got, reference.sort(x, descending=descending), dtype)
        few = x[:, : 9 + 30 * descending]  # by comparisons
        same(ptxgen.sort(few, descending=descending), reference.sort(few, descending=descending))
    by_passes = ptxgen.sort(few, descending=True, kernel=PASS.of(KEYS[dtype]).name)
    same(by_passes, reference.sort(few, descending=True), dtype)
    wide = x.astype(np.float32) if dtype in ("bfloat16", "float16") else x
    same(ptxgen.argsort(x), np.argsort(wide, -1, kind="stable"))


@pytest.mark.parametrize(
    "n", [0, 1, 2, 31, 33, 64, 65, 128, 129, 1000, ROW_MAX, ROW_MAX + 1, 2 * TILE + 1]
)
def test_every_length(n):
    x = rows((2, n), 5) if n else np.empty((2, 0), np.float32)
    same(ptxgen.sort(x), reference.sort(x))
    same(ptxgen.argsort(x[0], descending=True), reference.argsort(x[0], descending=True))


def test_equal_elements_keep_their_order():
    for n in (700, TILE + 700):
        equal = np.full(n, 7, np.uint16)
        for descending in (False, True):
            assert (ptxgen.argsort(equal, descending=descending) == np.arange(n)).all()
    x = np.array([1, 0.0, np.nan, -0.0, -np.nan, -np.inf, 0.0, np.inf], np.float32)
    assert ptxgen.argsort(x).tolist() == [5, 1, 3, 6, 0, 7, 2, 4]
    assert ptxgen.argsort(x, descending=True).tolist() == [2, 4, 7, 0, 1, 3, 6, 5]
    same(ptxgen.sort(x)[0], x[[5, 1, 3, 6, 0, 7, 2, 4]])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint16", "uint64", "int8"])
def test_every_axis(dtype):
    x = drawn(dtype, (3, 5, 7))
    for axis in (0, -2, 2):
        same(ptxgen.sort(x, axis), reference.sort(x, axis), f"{dtype} {axis}")
    out = np.empty_like(x), np.empty(x.shape, np.int64)
    assert ptxgen.sort(x, 1, out=out)[0] is out[0]
    same(out, reference.sort(x, 1))
    for shape in ((0, 3), (3, 0)):
        assert ptxgen.sort(x[0].ravel()[:0].reshape(shape), 0)[1].shape == shape


def test_a_row_depends_on_itself_alone():
    x = rows((3, 200))
    values, indices = ptxgen.sort(x)
    for i in range(3):
        same(ptxgen.sort(x[i]), (values[i], indices[i]))


def test_the_gradient_is_put_back():
    dy = np.random.default_rng(0).standard_normal((3, 4, 2)).astype(np.float32)
    x = drawn("float32", dy.shape)
    x[:, 2] = x[:, 1]
    indices = reference.sort(x, 1)[1]
    expected = np.empty_like(dy)
    np.put_along_axis(expected, indices, dy, 1)
    got = gradient("sort", x, dy, axis=1)
    same(got, expected)


def gradient(name, x, dy, **options):
    """Returns the gradient by x of the first result of an operation, by its oracles."""
    from ptxgen.program.description import Backward
    from ptxgen.program.interpret import Interpreter

    op, b = OPERATIONS[name], Interpreter(name)
    results = tuple(b.array("y", y) for y in op.oracle(x, **options))
    how = {**op.options, **options}
    at = Backward({"x": b.array("x", x)}, how, results, (b.array("dy", dy), None), frozenset("x"))
    return np.array(b.value(op.vjp(b, at)["x"]))


# -- searches, counts, unique values ------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_positions_in_sorted_rows(dtype):
    x = reference.sort(drawn(dtype, (2, 90)))[0]
    values = np.concatenate([drawn(dtype, (2, 9)), x[:, ::7]], 1)
    for right in (False, True):
        same(ptxgen.searchsorted(x, values, right=right),
             reference.searchsorted(x, values, right=right))  # fmt: skip
        same(ptxgen.searchsorted(x[0], values, right=right),
             reference.searchsorted(x[0], values, right=right))  # fmt: skip
    assert not ptxgen.searchsorted(x[0, :0], values).any()
    assert ptxgen.searchsorted(x[0], values[0, 0]).shape == ()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_counts_of_integers(dtype):
    rng = np.random.default_rng(1)
    for count, bins in ((300, 7), (40, 120), (0, 3), (0, 0)):
        x = rng.integers(0, max(min(bins, 100), 1), count).astype(dtype)
        same(ptxgen.bincount(x, bins), np.bincount(x.astype(np.int64), minlength=bins))
    x = rng.integers(0, 9, 50).astype(dtype)
    weights = rng.standard_normal(50).astype(np.float32)
    same(ptxgen.bincount(x, 9, weights), reference.bincount(x, 9, weights))
    whole = ptxgen.bincount(x, 9, np.arange(50))
    assert (whole == np.bincount(x, np.arange(50), 9)).all()


def test_integers_out_of_range_are_not_counted(monkeypatch):
    x = np.array([-(1 << 40), 3, 1 << 40, 0, 4, -1], np.int64)
    with pytest.raises(IndexRangeError, match="x has an integer -1099511627776"):
        ptxgen.bincount(x, 4)
    with pytest.raises(IndexRangeError, match=r"integer 4; minlength is 4: takes 0 \.\. 3"):
        ptxgen.bincount(x[3:5], 4)
    monkeypatch.setattr(OPERATIONS["bincount"], "checks", None)
    assert OPERATIONS["bincount"](x, 4).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8", "bool"])
def test_unique_values(dtype):
    x = (np.random.default_rng(2).integers(0, 6, (7, 20)) % (2 if dtype == "bool" else 6)).astype(
        np.dtype(getattr(ml_dtypes, dtype, dtype))
    )
    if dtype == "float32":
        x[0, :3], x[1] = np.nan, -x[1]
    expected = np.unique(x.astype(np.float64), return_inverse=True, return_counts=True)
    many = len(expected[0])
    for size in (many + 3, many, 2, 0):
        values, count, inverse, counts = ptxgen.unique(x, size)
        assert count == many and (inverse == expected[1].reshape(x.shape)).all()
        kept = min(size, many)
        assert (counts[:kept] == expected[2][:kept]).all() and not counts[kept:].any()
        np.testing.assert_array_equal(values[:kept].astype(np.float64), expected[0][:kept])
        same(ptxgen.unique(x, size), reference.unique(x, size))
    assert ptxgen.unique(x[:0], 2)[1] == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_more_than_1024_of_a_row(dtype):
    x = drawn(dtype, (2, 1500))
    for k, largest in ((1025, True), (1500, False)):
        same(ptxgen.topk(x, k, largest=largest), reference.topk(x, k, largest=largest), str(k))


# -- what is refused ----------------------------------------------------------------------------
def test_what_is_refused():
    x = np.ones((2, 3), np.float32)
    for name, wrong in (("sort", 2), ("argsort", -3)):
        with pytest.raises(ShapeError, match=f"axis is {wrong}"):
            getattr(ptxgen, name)(x, wrong)
    for call in (ptxgen.sort, ptxgen.argsort, lambda v: ptxgen.unique(v, 2)):
        with pytest.raises(DtypeError, match="complex64"):
            call(x.astype(np.complex64))
    with pytest.raises(ShapeError, match="x has no dimensions"):
        ptxgen.sort(x[0, 0])
    with pytest.raises(DtypeError, match="values has dtype float64; takes that of x, float32"):
        ptxgen.searchsorted(x[0], np.ones(3))
    with pytest.raises(ShapeError, match=r"values has shape \[3, 3\]; takes \[2, 'K'\]"):
        ptxgen.searchsorted(x, np.ones((3, 3), np.float32))
    with pytest.raises(OptionError, match="size is -1"):
        ptxgen.unique(x, -1)
    with pytest.raises(OptionError, match="minlength is -1"):
        ptxgen.bincount(np.arange(3), -1)
    with pytest.raises(DtypeError, match="x has dtype float32"):
        ptxgen.bincount(x[0], 3)
    with pytest.raises(ShapeError, match=r"weights has shape \[2\]"):
        ptxgen.bincount(np.arange(3), 3, np.ones(2, np.float32))
    with pytest.raises(OptionError, match=r"k is 4; takes 0 \.\. 3"):
        ptxgen.topk(x, 4)
    with pytest.raises(ShapeError, match="takes at most 2147483647"):
        ptxgen.explain("sort", 1 << 20, 1 << 12)


def test_small_integers_are_sorted_by_the_bits_that_they_have():
    """More than a row of a CTA; one pass of digits, and two."""
    for bound in (7, 300):
        x = np.random.default_rng(bound).integers(0, bound, 9000).astype("i4")
        values, indices = OPERATIONS["sort_below"].function(x, bound)
        order = np.argsort(x, kind="stable")
        assert (indices == order).all() and (values == x[order]).all()
