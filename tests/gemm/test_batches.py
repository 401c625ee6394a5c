"""Batches of products: every layout in memory, bit for bit, on the CPU device."""

from __future__ import annotations

import numpy as np
import pytest
from batch_cases import BATCHED, WAYS, cases, forced, numbers, sizes
from bits import same_bits
from interp_launch import KERNELS
from numpy.lib.stride_tricks import as_strided
from steps import fire, problem

import ptxgen
from ptxgen import reference
from ptxgen.dispatch import candidates
from ptxgen.errors import OptionError, ShapeError, SpecError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.ops import OPERATIONS
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.launch import launch, question
from ptxgen.runtime import ArrayView
from ptxgen.runtime.cpu import SMS, CpuDevice
from ptxgen.spec import BATCH_MAX
from ptxgen.tiles import SPECS, TABLES

FULL = {short: name for name, short in DTYPES.items()}


class Watched(CpuDevice):
    """A CPU device that keeps the grids of its launches."""

    def __init__(self):
        super().__init__()
        self.grids = []

    def launch(self, function, grid, *rest):
        self.grids.append(grid)
        super().launch(function, grid, *rest)


def elements(data, array, kind):
    """The bytes ``data`` as ``array`` lies in memory, as far from 16 bytes as it is there."""
    start = array.ctypes.data % 16
    return as_strided(data[start:].view(kind), array.shape, array.strides, writeable=True)


def placed(device, array, dtype, values=True):
    """``array`` in the device's memory, with its strides; nothing else there may be read.

    Returns the view, and the memory, which ends with the last element.
    """
    item = array.itemsize
    steps = tuple(step // item for step in array.strides)
    last = sum(step * (size - 1) for step, size in zip(steps, array.shape, strict=True))
    start = array.ctypes.data % 16
    memory = device.memory.alloc(start + (last + 1) * item, "operand")
    memory.data[...] = 0xA5
    if values:
        elements(memory.data, array, array.dtype)[...] = array
        elements(memory.written, array, f"u{item}")[...] = int.from_bytes(b"\1" * item, "little")
        memory.mark(0, 0)  # in case that this is everything
    given = memory.base + start, array.shape, steps, FULL[dtype]
    return ArrayView(*given, "cpu", 0, False, "numpy", array), memory


def asked(a, b, out, layout="nn", tier="auto", kernel=None):
    """Returns the problem that the library poses for views."""
    turned = {f"transpose_{x}": letter == "t" for x, letter in zip("ab", layout, strict=True)}
    views = {"a": a, "b": b, "out": out}
    return problem("matmul", views, **turned, tier=tier, kernel=kernel)


def multiplied(a, b, out, dtype, layout="nn", tier="auto", kernel=None):
    """``a`` times ``b`` where they lie, to where ``out`` lies, in one launch; and its grid."""
    device = Watched()
    (va, _), (vb, _), (vc, memory) = (
        placed(device, x, dtype, values=x is not out) for x in (a, b, out)
    )
    found = asked(va, vb, vc, layout, tier, kernel)
    fire(found, {"a": va.ptr, "b": vb.ptr, "c": vc.ptr}, device, kernel)
    assert len(device.grids) == 1
    result = elements(memory.data, out, out.dtype).copy()
    elements(memory.data, out, f"u{out.itemsize}")[...] = int.from_bytes(b"\xa5" * out.itemsize)
    assert (memory.data == 0xA5).all(), "wrote beside the result"
    return result, found, device.grids[0]


# -- as it is called --------------------------------------------------------------------

BROADCASTS = [
    ((3,), (3,)),
    ((3,), ()),
    ((), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (3,)),
    ((2, 1, 2), (1, 3, 2)),
    ((1,), (1,)),
    ((0,), (1,)),
    ((2, 0), (0,)),
]


@pytest.mark.parametrize(
    ("dtype", "of_a", "of_b"),
    [(dtype, *each) for dtype in ("f32", "f64", "bf16") for each in BROADCASTS]
    + [("f16", (2, 3), (3,))],
)
def test_a_batch_is_a_loop_over_products(dtype, of_a, of_b):
    a, b = numbers(*of_a, 5, 24, dtype=dtype), numbers(*of_b, 24, 9, dtype=dtype)
    batch = np.broadcast_shapes(of_a, of_b)
    with ptxgen.use_device("cpu"):
        got = ptxgen.matmul(a, b)
        assert got.shape == (*batch, 5, 9)
        left, right = np.broadcast_to(a, (*batch, 5, 24)), np.broadcast_to(b, (*batch, 24, 9))
        for each in np.ndindex(*batch):
            same_bits(got[each], ptxgen.matmul(left[each], right[each]))
    same_bits(got, reference.matmul(a, b))


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("k", [0, 1, 37])
def test_transposed_batches(layout, k):
    a, b = numbers(2, 3, k), numbers(2, k, 5)
    turned = {"transpose_a": layout[0] == "t", "transpose_b": layout[1] == "t"}
    a = a.swapaxes(1, 2) if turned["transpose_a"] else a
    b = b.swapaxes(1, 2) if turned["transpose_b"] else b
    expected = reference.matmul(a, b, **turned)
    out = np.full((2, 3, 5), 7, np.float32)
    with ptxgen.use_device("cpu"):
        assert ptxgen.matmul(a, b, **turned, out=out) is out
    same_bits(out, expected)
    plain = (
        (a.swapaxes(1, 2) if turned["transpose_a"] else a),
        (b.swapaxes(1, 2) if turned["transpose_b"] else b),
    )
    each = [reference.matmul(x, y) for x, y in zip(*plain, strict=True)]
    same_bits(expected, np.stack(each))


# -- in memory --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("name", list(cases("f32")))
def test_where_a_batch_lies(name, dtype):
    a, b, out, batch, rows = cases(dtype)[name]
    got, found, _ = multiplied(a, b, out, dtype)
    same_bits(got, reference.matmul(a, b))
    assert (found.batch, dict(found.values)["M"]) == (batch, rows)


def lying(a, b, out):
    """Returns the steps of a product of f32 arrays with these shapes and strides."""
    builder, made = ProgramBuilder(OPERATIONS), {}
    for name, x in {"a": a, "b": b, "out": out}.items():
        steps = tuple(step // x.itemsize for step in x.strides)
        view = ArrayView(64, x.shape, steps, "float32", "cpu", 0, False, "numpy", None)
        made[name] = builder.input(name, view, written=name == "out")
    return builder.finish(OPERATIONS["matmul"].lower(builder, **made)).steps


def ranks():
    """Maps a name to a, b and out, the batch of each launch, and the number of launches."""

    def axes(x, *order):
        return x.transpose(*order, x.ndim - 2, x.ndim - 1)

    def n(*shape, seed=0):
        return numbers(*shape, seed=seed)

    def out(*shape):
        return np.zeros(shape, np.float32)

    return {
        "three dimensions apart": (n(2, 3, 4, 5, 16)[:, :2, :2], n(2, 2, 2, 16, 8),
                                   out(2, 2, 2, 5, 8), (2, 2), 2),
        "the shortest is walked": (n(4, 3, 5, 2, 16)[:, :, ::2],
                                   n(4, 5, 3, 16, 8)[:, ::2].swapaxes(1, 2),
                                   out(4, 3, 3, 2, 8), (3, 4), 3),
        "all in another order": (axes(n(2, 3, 4, 5, 16), 2, 0, 1), axes(n(2, 3, 4, 16, 8), 2, 0, 1),
                                 axes(out(2, 3, 4, 5, 8), 2, 0, 1), (24, 1), 1),
        "a in another order": (axes(n(2, 3, 4, 5, 16), 2, 1, 0), n(4, 3, 2, 16, 8),
                               out(4, 3, 2, 5, 8), (3, 4), 2),
        "six dimensions": (axes(n(3, 2, 2, 2, 3, 16), 1, 0, 3, 2)[..., :2, :], n(2, 3, 1, 2, 16, 7),
                           out(2, 3, 2, 2, 2, 7), (2, 3), 4),
        "heads in groups": (n(2, 3, 4, 2, 5, 16), n(2, 1, 4, 1, 16, 8), out(2, 3, 4, 2, 5, 8),
                            (4, 3), 2),
        "one b for a last dimension": (axes(n(3, 2, 4, 5, 16), 1, 2, 0), n(2, 4, 1, 16, 8),
                                       out(2, 4, 3, 5, 8), (3, 8), 1),
        "results in another order": (n(2, 3, 4, 5, 16), n(2, 3, 4, 16, 8),
                                     axes(out(3, 2, 4, 5, 8), 1, 0, 2), (4, 3), 2),
        "one b for rows of some": (n(3, 4, 5, 6, 2, 16)[:2, :3, :4, :5], n(16, 8),
                                   out(2, 3, 4, 5, 2, 8), (4, 3), 2),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(ranks()))
def test_batches_of_any_rank(name):
    """A launch serves two batch dimensions; more dimensions take more launches and no copy."""
    a, b, out, batch, count = ranks()[name]
    steps = lying(a, b, out)
    assert [step.problem.batch for step in steps] == [batch] * count
    assert [[*step.bind] for step in steps] == [["a", "b", "bias", "c"]] * count
    expected = reference.matmul(np.ascontiguousarray(a), np.ascontiguousarray(b))
    with ptxgen.use_device("cpu"):
        same_bits(ptxgen.matmul(a, b), expected)
        into = np.full_like(out, np.nan)
        assert into.strides == out.strides and ptxgen.matmul(a, b, out=into) is into
    same_bits(np.ascontiguousarray(into), expected)


@pytest.mark.parametrize("dtype", ["f64", "bf16"])
def test_batches_of_any_rank_in_other_dtypes(dtype):
    a = numbers(2, 3, 2, 5, 24, dtype=dtype).transpose(2, 1, 0, 3, 4)
    b = numbers(3, 1, 24, 9, dtype=dtype)
    with ptxgen.use_device("cpu"):
        same_bits(ptxgen.matmul(a, b), reference.matmul(a, b))


def test_batches_that_are_cut():
    def cut(shape, *steps):
        a, b, out = (
            ArrayView(64, (*shape, 1, 1), (*each, 1, 1), "float32", "cpu", 0, False, "numpy", None)
            for each in steps
        )
        return asked(a, b, out)

    found = cut((70000,), (16,), (16,), (1,))
    told = dict(found.scalars)
    assert found.batch == (35000, 2) and (told["BATCH"], told["INNER"]) == (70000, 35000)
    assert (told["BATCH_A"], told["OUTER_A"], told["OUTER_C"]) == (16, 35000 * 16, 35000)

    prime = 65537
    first, rest = lying(*(np.zeros((prime, 1, 1), np.float32) for _ in range(3)))
    assert (first.problem.batch, rest.problem.batch) == ((BATCH_MAX, 1), (2, 1))
    assert [rest.bind[n].offset for n in "abc"] == [4 * BATCH_MAX] * 3
    assert {x.span()[1] for x in rest.bind.values() if x is not None} == {4 * prime}


# -- kernels ----------------------------------------------------------------------------


def check_forced(name, of_a, of_b, shape, odd=0):
    """Runs kernel ``name`` on a batch; its grid. ``odd``: elements between rows of the result."""
    a, b, options, expected = forced(name, of_a, of_b, *shape)
    room = np.zeros((*expected.shape[:-2], shape[0] + odd, shape[1] + odd), expected.dtype)
    layout = SPECS[name].layout.lower()
    out = room[..., odd:, odd:]
    got, _, grid = multiplied(a, b, out, SPECS[name].dtype, layout, options["tier"], name)
    same_bits(got, expected, spec=name)
    return grid


GIVEN = ((2, 3), 0), ((2, 1), 1)
"""Batches of A, and elements between rows of the result; that of B is (3,)."""


def ways():
    """Yields every third kernel with one of GIVEN, in turn; all kernels with all in long runs."""
    for turn, name in enumerate(sorted(WAYS)):
        for i, given in enumerate(GIVEN):
            marks = pytest.mark.long if turn % 3 or (turn // 3 + i) % len(GIVEN) else ()
            yield pytest.param(name, *given, marks=marks)


@pytest.mark.parametrize(("name", "of_a", "odd"), list(ways()))
def test_every_way_to_work_takes_batches(name, of_a, odd):
    spec, shape = SPECS[name], sizes(name)
    grid = check_forced(name, of_a, (3,), shape, odd)
    if spec.family == "wgmma" and spec.split in ("none", "serial"):
        tiles = spec.tiles.evaluate(dict(zip("MNK", shape, strict=True)))
        assert grid == (6 * tiles * spec.ctas, 1, 1)
    else:
        assert grid[1:] == (3, 2)


def test_more_tiles_than_clusters():
    """A persistent kernel's CTAs go from the tiles of one matrix to those of others."""
    name = min(name for name in BATCHED if name.startswith("wgmma_nn_bf16_64x16x"))
    assert check_forced(name, (67,), (67,), (8, 24, 8)) == (SMS, 1, 1)


def test_kernels_that_leave_partial_sums_take_no_batches():
    partial = {name for name in KERNELS if getattr(SPECS[name], "split", "") == "workspace"}
    assert partial and not partial & set(BATCHED)
    name = min(n for n in partial if n.startswith("simt_tn_f32"))
    a, b = numbers(2, 8, 8), numbers(2, 8, 8)
    refused = pytest.raises(OptionError, match="in a batch of 2 on sm_90: it takes no batches")
    with ptxgen.use_device("cpu"), refused:
        ptxgen.matmul(a, b, transpose_a=True, kernel=name)


def test_copies_into_aligned_rows_take_no_batches():
    """Off 16 bytes these are candidates for a product, and none for a batch of them."""
    device = CpuDevice()

    def found(batch):
        operands = numbers(batch, 999, 333), numbers(batch, 333, 999), numbers(batch, 999, 999)
        a, b, out = (placed(device, x, "bf16", values=False)[0] for x in operands)
        lies = asked(a, b, out)
        routes = TABLES[lies.table].routes
        how = question(lies, device)
        return [routes[each.choice.route] for each in candidates(lies.table, **how)]

    alone, several = found(1), found(2)
    assert any(route.main is not route.kernels[0] for route in alone)
    assert several and several == [route for route in alone if route.batched]


def test_a_batch_shares_the_gpu():
    """A product too small to fill the GPU takes a larger tile in a batch."""

    def chosen(batch):
        device = CpuDevice()
        device.kernel = lambda name, *_: SPECS[name]
        device.prepare = lambda spec, grid, *_: (spec, grid)
        operands = numbers(batch, 256, 64), numbers(batch, 64, 256), numbers(batch, 256, 256)
        a, b, out = (placed(device, x, "f32")[0] for x in operands)
        return launch(asked(a, b, out), ("a", "b", "c"), device)

    (alone, grid), (shared, grids) = chosen(1), chosen(64)
    assert alone.bm * alone.bn < shared.bm * shared.bn
    assert grid[1:] == (1, 1) and grids[1:] == (64, 1)


def test_more_tiles_than_are_counted_are_refused():
    spec = SPECS[min(name for name in BATCHED if name.startswith("wgmma_nn_bf16_64x16x"))]
    one, largest = {"M": 1, "N": 16, "K": 8, "SMS": SMS}, (BATCH_MAX, BATCH_MAX)
    assert spec.launched(1, largest, one) == (SMS, 1, 1)
    with pytest.raises(SpecError, match="work"):
        spec.launched(1, largest, {**one, "N": 17})


# -- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("room", [ptxgen, reference])
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((2, 4, 5), (3, 5, 6), r"b has shape \[3, 5, 6\]; .* a, which has shape \[2, 4, 5\]"),
        ((2, 4, 5), (2, 4, 6), r"b has shape \[2, 4, 6\]; takes \[\.\.\., K, N\] with K = 5"),
        ((2, 4, 5), (5,), r"b has shape \[5\]; takes \[\.\.\., K, N\]"),
    ],
)
def test_shapes_that_do_not_fit(room, a, b, message):
    with ptxgen.use_device("cpu"), pytest.raises(ShapeError, match=message):
        room.matmul(numbers(*a), numbers(*b))


def test_results_that_do_not_fit():
    a, b = numbers(2, 4, 5), numbers(5, 6)
    with ptxgen.use_device("cpu"):
        with pytest.raises(ShapeError, match=r"out has shape \[4, 6\]; takes \[2, 4, 6\]"):
            ptxgen.matmul(a, b, out=np.zeros((4, 6), np.float32))
        shared = as_strided(np.zeros((4, 6), np.float32), (2, 4, 6), (0, 24, 4))
        with pytest.raises(ShapeError, match="elements share memory"):
            ptxgen.matmul(a, b, out=shared)
