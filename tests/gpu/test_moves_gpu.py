"""Columns, moves with indices, prefix sums and selections on a GPU: the oracles' bits, by every
kernel, into memory that holds something else.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bits import KINDS, operand, same_bits
from gather_cases import agree, numbers

import ptxgen
from ptxgen import reference
from ptxgen.errors import IndexRangeError, OptionError
from ptxgen.numerics.column_reductions import REDUCTIONS
from ptxgen.ops import OPERATIONS
from ptxgen.oracle.column_reductions import reduce_columns as columns_oracle
from ptxgen.spec.base import WARP
from ptxgen.spec.column_reductions import ITEMSIZE, variant
from ptxgen.tiles import TABLES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu
TORCH = {"bf16": "bfloat16", "f16": "float16"}


def on_gpu(array):
    """A tensor with the bits of a NumPy array."""
    kind = TORCH.get({"bfloat16": "bf16", "float16": "f16"}.get(array.dtype.name, ""))
    if kind is None:
        return torch.from_numpy(np.ascontiguousarray(array)).cuda()
    bits = torch.from_numpy(np.ascontiguousarray(array).view(np.int16)).cuda()
    return bits.view(getattr(torch, kind))


def back(tensor, like):
    """Returns a tensor as a NumPy array of ``like``'s dtype, bit for bit."""
    if tensor.element_size() == 2:
        return tensor.view(torch.int16).cpu().numpy().view(like.dtype)
    return tensor.cpu().numpy()


def poisoned(shape, like):
    """Memory that a kernel has to write."""
    return torch.full(shape, -77 if like.dtype in (torch.int32, torch.int64) else float("nan"),
                      dtype=like.dtype, device="cuda")  # fmt: skip


@pytest.mark.parametrize("dtype", ["bf16", "f32", "f64", "i32"])
def test_columns_by_every_kernel(dtype):
    rng = np.random.default_rng(1)
    name = variant("sum_columns", REDUCTIONS["sum_columns"].formula((dtype,), dtype))
    served = set()
    for turn, shape in enumerate(
        ((1, 5000, 512), (3, 1025, 264), (1, 33 * 1024 + 5, 16), (2, 9, 7))
    ):
        x = numbers(rng, shape, dtype, KINDS[turn])
        given, expected = on_gpu(x), columns_oracle("sum_columns", x)
        for route in TABLES[("column_reductions",)].routes:
            kernel = route.of(name).name
            out = poisoned(expected.shape, given)
            try:
                OPERATIONS["sum_columns"](given, out=out, kernel=kernel)
            except OptionError:
                continue  # of wider rows
            served.add(kernel)
            same_bits(back(out, x), expected, spec=kernel, what=f"{shape} {KINDS[turn]}")
    widths = [r.of(name).main.vector_bytes for r in TABLES[("column_reductions",)].routes]
    assert len(served) == sum(w == 0 or w >= ITEMSIZE[dtype] for w in widths)


def test_gradients_of_norms():
    rng = np.random.default_rng(2)
    for shape in ((4100, 96), (70, 4096), (3, 5)):
        dy, x = (operand(rng, shape, "normal", "bf16") for _ in range(2))
        mean, rstd = (operand(rng, shape[:1], "normal", "f32") for _ in range(2))
        given = [on_gpu(a) for a in (dy, x, mean, rstd)]
        got = tuple(back(g, x) for g in ptxgen.layer_norm_wgrad(*given))
        agree(got, reference.layer_norm_wgrad(dy, x, mean, rstd))


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "f64", "i64"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_read_and_added(dtype, index):
    rng = np.random.default_rng(3)
    for rows, width, count in (
        (1000, 256, 5000),
        (37, 100, 333),
        (128256, 64, 8192),
        (5, 33, 20000),
    ):
        x, dy = numbers(rng, (rows, width), dtype), numbers(rng, (count, width), dtype)
        which = rng.integers(0, rows, count).astype(index)
        weight, indices = on_gpu(x), on_gpu(which)
        same_bits(back(ptxgen.embedding(weight, indices), x), x[which])
        which[::5], which[1], which[2] = which[0], -1, rows
        indices = on_gpu(which)
        same_bits(back(ptxgen.embedding(weight, indices), x), reference.embedding(x, which))
        with pytest.raises(IndexRangeError, match="has an index -1"):
            ptxgen.embedding(weight, indices, check=True)
        out = poisoned((rows, width), weight)
        ptxgen.embedding_backward(on_gpu(dy), indices, rows, out=out)
        same_bits(back(out, x), reference.embedding_backward(dy, which, rows))
        expected = reference.index_add(x, which, dy)
        assert ptxgen.index_add(weight, indices, on_gpu(dy), out=weight) is weight
        same_bits(back(weight, x), expected)


@pytest.mark.parametrize("route", TABLES[("scatter",)].routes, ids=lambda route: route.name)
def test_sums_into_rows_by_every_kernel(route):
    rng = np.random.default_rng(4)
    count = 4000 if len(route.steps) == 3 else 40000
    width = 24 if route.main.rows_per_cta > WARP else 40
    dy = operand(rng, (count, width), "wide", "bf16")
    which = rng.integers(0, 700, count)
    which[rng.random(count) < 0.3] = 5
    out = poisoned((700, width), on_gpu(dy))
    ptxgen.embedding_backward(on_gpu(dy), on_gpu(which), 700, out=out, kernel=route.name)
    same_bits(back(out, dy), reference.embedding_backward(dy, which, 700), spec=route.name)


@pytest.mark.parametrize("dtype", ["bf16", "f32", "f64", "i64"])
def test_elements_are_added_where_each_says(dtype):
    rng = np.random.default_rng(8)
    for shape, places, axis in (((50, 900), 40, 0), ((3, 2000, 7), 5, 1), ((4, 30), 1000, -1)):
        source = numbers(rng, shape, dtype, "wide")
        own = list(shape)
        own[axis] = places
        x, which = numbers(rng, tuple(own), dtype), rng.integers(0, places, shape)
        got = ptxgen.scatter_add(*map(on_gpu, (x, which, source)), axis)
        same_bits(back(got, x), reference.scatter_add(x, which, source, axis), what=str(shape))


SCANS = [
    *(("scan", "cumsum", dtype) for dtype in ("bf16", "f32", "f64", "i64")),
    *(("logscan", "logcumsumexp", dtype) for dtype in ("bf16", "f32", "f64")),
]


@pytest.mark.parametrize(("table", "name", "dtype"), SCANS)
def test_prefix_sums_by_every_kernel(table, name, dtype):
    rng = np.random.default_rng(5)
    shapes = (3, 1), (5, 257), (300, 1000), (2, 128256), (33, 8192), (37, 77)
    for shape, kind in zip(shapes, itertools.cycle(KINDS), strict=False):
        x = numbers(rng, shape, dtype, kind)
        for exclusive, reverse in ((False, False), (True, True)):
            expected = getattr(reference, name)(x, exclusive=exclusive, reverse=reverse)
            for route in TABLES[table,].routes:
                out, kernel = poisoned(shape, on_gpu(x)), route.of(dtype).name
                if not route.requires.evaluate({"ROWS": shape[0], "COLS": shape[1]}):
                    continue
                getattr(ptxgen, name)(
                    on_gpu(x), exclusive=exclusive, reverse=reverse, out=out, kernel=kernel
                )
                same_bits(back(out, x), expected, spec=kernel, what=f"{shape} {kind}")


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_selections(dtype):
    rng = np.random.default_rng(6)
    for (shape, k), kind in (
        (((3, 1), 1), "normal"), (((7, 1009), 1009), "special"), (((2, 128256), 1024), "normal"),
        (((50, 64), 8), "special"),
    ):  # fmt: skip
        x = operand(rng, shape, kind, dtype)
        for largest in (True, False):
            values, indices = ptxgen.topk(on_gpu(x), k, largest=largest)
            expected = reference.topk(x, k, largest=largest)
            agree((back(values, x), back(indices, x)), expected, what=f"{shape} {k}")
        for how in ({}, {"temperature": 0.8}, {"temperature": 1.2, "top_k": 40, "top_p": 0.9},
                    {"temperature": 1.0, "top_p": 0.7}):  # fmt: skip
            got = ptxgen.sample(on_gpu(x), seed=11, offset=5, **how)
            expected = reference.sample(x, seed=11, offset=5, **how)
            same_bits(back(got, x), expected, what=f"{shape} {how}")
    equal = np.full((3, 5000), -np.inf, np.float32)
    assert (back(ptxgen.topk(on_gpu(equal), 100)[1], equal) == np.arange(100)).all()


def test_a_draw_depends_on_its_row_alone():
    x = on_gpu(operand(np.random.default_rng(7), (8, 3000), "normal", "bf16"))
    seeds = torch.arange(8, device="cuda") + 7
    whole = ptxgen.sample(x, temperature=1.0, seed=seeds, offset=3 * seeds)
    for i in range(8):
        part = slice(i, i + 1)
        alone = ptxgen.sample(x[part], temperature=1.0, seed=seeds[part], offset=3 * seeds[part])
        assert torch.equal(alone, whole[part])


def test_draws_in_a_graph():
    """Seeds and offsets are those that a replay finds."""
    import ptxgen.torch

    x = operand(np.random.default_rng(8), (4, 3000), "normal", "bf16")
    logits, seeds, offsets = (
        on_gpu(x),
        torch.arange(4, device="cuda"),
        torch.zeros(4, device="cuda").long(),
    )
    rows = {
        "temperature": torch.tensor([0.8, 0, 1.5, 1], device="cuda"),
        "top_k": torch.tensor([0, 5, 90, 4000], device="cuda", dtype=torch.int32),
        "min_p": torch.tensor([0, 0.5, 0.01, 0.2], device="cuda"),
    }
    few = {**rows, "top_k": 40, "top_p": torch.full((4,), 0.9, device="cuda")}
    for how in ({}, {"temperature": 0.8}, {"temperature": 1.0, "top_k": 40, "top_p": 0.9}, rows,
                few):  # fmt: skip
        ptxgen.torch.sample(logits, **how, seed=seeds, offset=offsets)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tokens = ptxgen.torch.sample(logits, **how, seed=seeds, offset=offsets)
        for offset in (5, 1 << 40):
            offsets.fill_(offset)
            graph.replay()
            where = {"seed": np.arange(4), "offset": np.full(4, offset)}
            own = {n: v.cpu().numpy() if torch.is_tensor(v) else v for n, v in how.items()}
            same_bits(tokens.cpu().numpy(), reference.sample(x, **own, **where), what=f"{how}")


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_log_probabilities_have_the_bits_of_the_block(dtype):
    """Results and gradients of rows of many vocabularies, temperatures being tensors."""
    import ptxgen.torch

    for count, classes in ((5, 3000), (64, 32000), (3, 152064)):
        x = on_gpu(operand(np.random.default_rng(9), (count, classes), "normal", dtype))
        x = x.requires_grad_()
        ids = torch.arange(count, device="cuda") * 31 % classes
        warm, dy = torch.rand(count, device="cuda") + 0.5, torch.randn(count, device="cuda")
        with ptxgen.torch.batch_invariant():
            z = torch.log_softmax(x.float() / warm[:, None], -1)
            expected = z.gather(-1, ids[:, None])[:, 0]
            (dx,) = torch.autograd.grad(expected, x, dy)
        got = ptxgen.torch.token_logprobs(x, ids, warm)
        assert torch.equal(got, expected)
        assert torch.equal(torch.autograd.grad(got, x, dy)[0], dx)
