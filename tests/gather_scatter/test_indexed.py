"""Gather, embedding, sums into rows and prefix sums, against their oracles; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from gather_cases import numbers
from steps import unchecked

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.oracle.reduction_order import reduce
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.gather_scatter import LANES_MAX, gather_lanes
from ptxgen.tiles import TABLES

DTYPES = ("bf16", "f32", "f64", "i64")


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_read_and_added(dtype):
    rng = np.random.default_rng(1)
    for rows, width, count, kind in (
        (10, 16, 40, np.int32),
        (3, 5, 9, np.int64),
        (5, 1, 1, np.int64),
    ):
        x = numbers(rng, (rows, width), dtype, "special")
        dy = numbers(rng, (count, width), dtype)
        which = rng.integers(0, rows, count).astype(kind)
        same_bits(ptxgen.embedding(x, which), x[which])
        which[which == 1] = 0
        got = ptxgen.embedding_backward(dy, which, rows, padding_idx=-1)
        same_bits(got, reference.embedding_backward(dy, which, rows, padding_idx=rows - 1))
        assert not got[rows - 1].any() and not got[1].any()
        expected = reference.index_add(x, which, dy)
        same_bits(ptxgen.index_add(x, which, dy), expected)
        assert ptxgen.index_add(x, which, dy, out=x) is x
        same_bits(x, expected)


def test_slices_along_any_axis():
    rng = np.random.default_rng(2)
    x = numbers(rng, (3, 7, 8), "f32")
    which = rng.integers(0, 3, (2, 5))
    for axis in (0, 1, -1):
        got = ptxgen.gather(x, which, axis)
        same_bits(got, np.take(x, which, axis))
        same_bits(reference.gather(x, which, axis), got)
    assert ptxgen.gather(x, np.zeros(0, np.int32), 1).shape == (3, 0, 8)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.bool_])
@pytest.mark.parametrize(
    ("start", "width"), [(0, 16), (0, 4), (2, 6), (1, 16), (0, 3000), (3, 3001)]
)
def test_bytes_are_moved_from_any_address(dtype, start, width):
    rng = np.random.default_rng(width)
    room = rng.integers(0, 2 if dtype is np.bool_ else 256, start + 5 * width, np.uint8)
    x = room[start:].reshape(5, width).view(dtype)
    which = np.array([4, 0, 0, 3], np.int64)
    for got in (ptxgen.gather(x, which), reference.gather(x, which)):
        assert got.dtype == dtype and (got == x[which]).all()


def test_what_moves_bytes_takes_any_alignment():
    """Gathers choose the widest words that alignment allows; the byte kernel serves any
    alignment.
    """
    routes = TABLES["gather",].routes
    problem = {"OUTER": 1, "COUNT": 4, "BYTES": 48, "LANES": 1, "SMS": 132}
    for align, expected in ((1, [1]), (2, [2, 1]), (4, [4, 2, 1]), (16, [16, 4, 2, 1])):
        found = [
            r.main.vector_bytes for r in routes if r.requires.evaluate({**problem, "ALIGN": align})
        ]
        assert found == expected


def test_few_rows_have_more_threads_than_many():
    """Many rows get a CTA's threads at most; few rows as many as they have words, or as
    fill a GPU.
    """
    shared = {(r, u): gather_lanes(r, u) for r in (1, 2, 4000, 1 << 31) for u in (1, 300, 1 << 20)}
    assert [shared[r, 1] for r in (1, 1 << 31)] == [1, 1]
    assert [shared[r, 300] for r in (1, 4000, 1 << 31)] == [512, 128, 128]
    assert [shared[r, 1 << 20] for r in (1, 2, 4000, 1 << 31)] == [LANES_MAX, LANES_MAX, 256, 256]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_added_where_each_says(dtype, axis):
    """Adds several elements to one place and none to some, with more elements than a warp or
    places.
    """
    rng = np.random.default_rng(7)
    shape = [3, 4, 5]
    shape[axis] = 90
    source, x = numbers(rng, shape, dtype, "wide"), numbers(rng, (3, 4, 5), dtype, "special")
    which = rng.integers(0, 3, shape).astype(np.int32 if axis else np.int64)
    got = ptxgen.scatter_add(x, which, source, axis)
    same_bits(got, reference.scatter_add(x, which, source, axis))
    columns = [
        np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1).T for a in (x, which, source, got)
    ]
    for old, places, given, new in zip(*columns, strict=True):  # each as rows of one element
        alone = ptxgen.index_add(old[:, None], np.ascontiguousarray(places), given[:, None])
        same_bits(new[:, None], alone)


def test_elements_of_no_place():
    x, source = np.ones((2, 4), np.float32), np.ones((2, 3), np.float32)
    which = np.array([[0, 0, 3], [-1, 4, 4]])
    with pytest.raises(IndexRangeError, match=r"has an index -1, along x of 4; takes 0 \.\. 3"):
        ptxgen.scatter_add(x, which, source, 1)
    # Unknown without waiting: nothing is added, not to a neighbour either.
    got = unchecked("scatter_add")(x, which, source, 1)
    same_bits(got, np.float32([[3, 1, 1, 2], [1, 1, 1, 1]]))
    same_bits(reference.scatter_add(x, which, source, 1), got)
    for given in (x[:, :0], which[:, :0], source[:, :0]), (x, which[:, :0], source[:, :0]):
        same_bits(ptxgen.scatter_add(*given, 1), given[0])
    with pytest.raises(
        ShapeError, match=r"indices has shape \[2, 3\], x \[2, 4\]; they may differ along axis 0"
    ):
        ptxgen.scatter_add(x, which * 0, source)
    with pytest.raises(ShapeError, match="axis is 2"):
        ptxgen.scatter_add(x, which, source, 2)


@pytest.mark.parametrize("route", [r.name for r in TABLES[("scatter",)].routes][::3])
def test_many_of_one_index(route):
    """More than a leaf of one index, several sorted blocks, and indices that no row has."""
    rng = np.random.default_rng(3)
    merged = "sort_+" in route
    for count, width in ((1500, 24), (4500, 3 if "_0_" in route else 8))[: 1 + merged]:
        dy = numbers(rng, (count, width), "bf16", "wide")
        which = rng.integers(-2, 72, count)
        which[rng.random(count) < 0.5] = 33
        got = unchecked("embedding_backward")(dy, which, 70, kernel=route)
        same_bits(got, reference.embedding_backward(dy, which, 70), spec=route)


def test_a_row_of_contributions_is_a_row():
    """Contract scatter/1 by its own words: ascending by position, as rows/1 adds a row."""
    rng = np.random.default_rng(4)
    dy = numbers(rng, (300, 4), "f32", "wide")
    which = rng.integers(0, 2, 300)
    got = ptxgen.embedding_backward(dy, which, 2)
    for row in range(2):
        mine = np.ascontiguousarray(dy[which == row].T)
        same_bits(got[row], reduce("sum", mine)[:, 0])
    permuted = np.concatenate([np.flatnonzero(which == 1), np.flatnonzero(which == 0)])
    same_bits(ptxgen.embedding_backward(dy[permuted], which[permuted], 2), got)


@pytest.mark.parametrize("width", [1, 8, 40])
def test_rows_that_one_thread_adds_and_that_all_share(width):
    """Lengths around 32, each at any place among the sorted keys."""
    rng = np.random.default_rng(5)
    lengths = [*range(29, 37), 0, 1, 64, 65, 33, 33, 2, 33, 96, 300, *rng.integers(0, 70, 12)]
    which = rng.permutation(np.repeat(np.arange(len(lengths)), lengths))
    dy = numbers(rng, (which.size, width), "bf16", "wide")
    got = ptxgen.embedding_backward(dy, which, len(lengths) + 1)
    same_bits(got, reference.embedding_backward(dy, which, len(lengths) + 1))


def test_nothing_to_add():
    x, none = np.full((5, 8), -0.0, np.float32), np.zeros(0, np.int64)
    assert not np.signbit(ptxgen.embedding_backward(x[:0], none, 5)).any()
    same_bits(ptxgen.index_add(x, none, x[:0]), x + np.float32(0))
    assert ptxgen.embedding_backward(x[:, :0], np.zeros(5, np.int64), 3).shape == (3, 0)


def test_indices_out_of_range():
    x, which = np.ones((4, 8), np.float32), np.array([0, 4])
    for call, index, of in (
        (lambda: ptxgen.embedding(x, which), 4, "weight"),
        (lambda: ptxgen.gather(x, which), 4, "x"),
        (lambda: ptxgen.embedding_backward(x[:2], which, 4), 4, "rows"),
        (lambda: ptxgen.index_add(x, -which, x[:2]), -4, "x"),
    ):
        said = rf"indices has an index {index}, along {of} of 4; takes 0 \.\. 3"
        with pytest.raises(IndexRangeError, match=said):
            call()
    with pytest.raises(IndexRangeError, match="padding_idx is 4"):
        ptxgen.embedding_backward(x[:2], which[:1].repeat(2), 4, padding_idx=4)
    # Unknown without waiting: zeros are read, and nothing is added.
    same_bits(unchecked("embedding")(x, which), x[:2] * np.float32([[1], [0]]))
    got = unchecked("embedding_backward")(x[:2], which, 4)
    same_bits(got, x * np.array([[1], [0], [0], [0]], np.float32))


def test_what_is_refused():
    x, which = np.ones((4, 8), np.float32), np.array([0, 3])
    with pytest.raises(DtypeError, match="indices has dtype float32; takes int32 or int64"):
        ptxgen.embedding(x, np.ones(2, np.float32))
    with pytest.raises(DtypeError, match="dy has dtype int16"):
        ptxgen.embedding_backward(x[:2].astype(np.int16), which, 4)
    with pytest.raises(DtypeError, match="source has dtype float64; takes that of x, float32"):
        ptxgen.index_add(x, which, x[:2].astype(np.float64))
    with pytest.raises(ShapeError, match="axis is 2"):
        ptxgen.gather(x, which, 2)
    with pytest.raises(ShapeError, match=r"dy has shape|indices has shape"):
        ptxgen.embedding_backward(x, which, 4)
    with pytest.raises(OptionError, match="rows is -1"):
        ptxgen.embedding_backward(x[:2], which, -1)
    with pytest.raises(ShapeError, match="out shares memory with source"):
        ptxgen.index_add(x, which, x[:2], out=x)


# -- roll -------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 4, 3), (0, 3), (3, 0), (1, 4)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_roll_is_numpys(dtype, shape):
    """Rolls equal NumPy's by 0, backwards, by the length and beyond, for empty and
    strided arrays.
    """
    x = numbers(np.random.default_rng(8), (*shape, 2), dtype, "special")[..., 1]
    for axis in range(-x.ndim, x.ndim):
        for shifts in (0, 1, -1, 2, x.shape[axis], -x.shape[axis], 10**12 + 1):
            got = ptxgen.roll(x, shifts, axis)
            same_bits(got, np.roll(x, shifts, axis), what=f"{shifts} along {axis}")
            same_bits(reference.roll(x, shifts, axis), got)
            assert not np.shares_memory(got, x)
    last = ptxgen.roll(x[::-1], 1 - (1 << 63))
    same_bits(last, np.roll(x[::-1], (1 - (1 << 63)) % max(len(x), 1), 0))


def test_roll_is_one_pass_and_refuses():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = np.full((3, 4), np.nan, np.float32)
    assert ptxgen.roll(x, 2, 1, out=given) is given
    same_bits(given, np.roll(x, 2, 1))
    found = ptxgen.explain("roll", 8, 6, shifts=2, axis=1)
    assert found.launches == 2 and not found.scratch
    halves = ptxgen.explain("roll", 8, 6, shifts=3, axis=1)
    assert len(halves.launches) == 1, "parts of one size are brought in one launch"
    with pytest.raises(ShapeError, match=r"axis is 2; x has shape \[3, 4\]"):
        ptxgen.roll(x, 1, 2)
    with pytest.raises(ShapeError, match="axis is 0"):
        ptxgen.roll(x[0, 0], 1)
    with pytest.raises(ShapeError, match="out shares memory with x"):
        ptxgen.roll(x, 1, out=x)
    with pytest.raises(OptionError, match=r"shifts is 1\.5; takes an integer"):
        ptxgen.roll(x, 1.5)
    with pytest.raises(OptionError, match=f"shifts is {1 << 63}; takes"):
        ptxgen.roll(x, 1 << 63)


# -- prefix sums ------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", DTYPES)
def test_prefix_sums(dtype):
    rng = np.random.default_rng(5)
    for shape, kind in (((3, 5), "special"), ((2, 300), "wide"), ((2, 3, 1), "normal")):
        for exclusive in (False, True):
            for reverse in (False, True):
                x = numbers(rng, shape, dtype, kind)
                got = ptxgen.cumsum(x, exclusive=exclusive, reverse=reverse)
                same_bits(got, reference.cumsum(x, exclusive=exclusive, reverse=reverse))


@pytest.mark.parametrize("dtype", ["i64", "f64"])
def test_prefix_sums_by_every_route(dtype):
    """Every route has the oracle's bits for rows longer than a CTA's tile, which carry between
    tiles.
    """
    long = numbers(np.random.default_rng(7), (2, 8192 + 520), dtype, "wide")
    for route in TABLES["scan",].routes:
        x = long if route.main.lanes == 32 else long[:, :101]
        name = route.of(dtype).name
        got = ptxgen.cumsum(x, exclusive=True, reverse=True, kernel=name)
        same_bits(got, reference.cumsum(x, exclusive=True, reverse=True), what=name)


def test_a_prefix_depends_on_what_is_before_it():
    x = numbers(np.random.default_rng(6), (1, 1100), "f32", "wide")
    whole = ptxgen.cumsum(x)
    for n in (1, 256, 257, 1000):
        same_bits(ptxgen.cumsum(x[:, :n]), whole[:, :n])
    same_bits(ptxgen.cumsum(x[:, ::-1].copy())[:, ::-1], ptxgen.cumsum(x, reverse=True))
    n = np.arange(600, dtype=np.int64)[None]
    same_bits(ptxgen.cumsum(n, exclusive=True), np.cumsum(n, axis=1) - n)


def test_prefix_sums_in_place_and_of_nothing():
    x = numbers(np.random.default_rng(7), (2, 40), "bf16")
    expected = reference.cumsum(x)
    assert ptxgen.cumsum(x, out=x) is x
    same_bits(x, expected)
    assert ptxgen.cumsum(np.zeros((2, 0), np.float32)).shape == (2, 0)
    with pytest.raises(DtypeError, match="x has dtype int16"):
        ptxgen.cumsum(np.ones(3, np.int16))
