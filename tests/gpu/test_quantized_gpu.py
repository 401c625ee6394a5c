"""Products with quantized weights on a real GPU: the bits of the dense ones, on every route."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from format_cases import stands_for, weight
from registries import registries_kept
from toy import five

import ptxgen
from ptxgen import nf4, quantized
from ptxgen.errors import OptionError
from ptxgen.numerics.formats import FORMATS, format_named
from ptxgen.numerics.weight_format import Quantized
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.tiles import SPECS, TABLES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

NAMES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
ROUTES = {
    twin.name: (key, dtype.dtype)
    for key, table in TABLES.items()
    if key[0] == "quantized" and key[-1] != "f64"
    for dtype in table.dtypes
    for twin in (route.of(dtype) for route in table.routes)
}
"""The table and dtype of each route with the bits of dense products."""
SHAPES = [(1, 1, 64), (1, 37, 192), (65, 70, 320), (257, 129, 1152), (3, 5, 4160), (2, 4159, 64)]


@functools.cache
def problem(m, n, k, dtype):
    """x, dy, bias, the weight, and that as a dense one."""
    torch.manual_seed(m + n + k)
    q = nf4.quantize(torch.randn(n, k, device="cuda"))
    x, dy, bias = (torch.randn(s, device="cuda").to(dtype) for s in ((m, k), (m, n), (n,)))
    return x, dy, bias, q, nf4.dequantize(q, dtype)


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_every_route_has_the_dense_bits(name):
    key, dtype = ROUTES[name]
    served = 0
    for shape in SHAPES:
        x, dy, bias, q, w = problem(*shape, NAMES[dtype])
        try:
            if key[1] == "NT":
                got = nf4.linear(x, q, bias, activation="silu", kernel=name)
                dense = ptxgen.linear(x, w, bias, activation="silu", layout="nk")
            else:
                got = nf4.linear_dgrad(dy, q, kernel=name)
                dense = ptxgen.linear_dgrad(dy, w, layout="nk")
        except OptionError as error:
            assert "it requires" in str(error)
            continue
        assert torch.equal(got, dense), (name, shape)
        served += 1
    assert served


VARIANTS = ("q4_k_prepared", "int4_block_g64_bf16", "int4_zero_point_g64_bf16")
"""Formats beside those of the package: two levels multiplied out, and scales of bf16."""


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("name", [*FORMATS, five.FORMAT.name, *VARIANTS])
def test_every_format_has_the_dense_bits(name, dtype):
    """Every format, one that a test registers, and those that products read as they are stored,
    have the bits of dense products and of the CPU device.
    """
    with registries_kept():
        quantized.register(five.FORMAT)
        q, codes = weight(format_named(name), 70, 12, 5)
        on_gpu = [None if a is None else moved(a) for a in q.operands]
        there = quantized.QuantizedWeight(name, *on_gpu, shape=(q.n, q.k))
        w = quantized.dequantize(there, NAMES[dtype])
        known = stands_for(q, codes)
        assert np.array_equal(quantized.dequantize(there).cpu().numpy(), known, equal_nan=True)
        for m in 1, 37, 300:
            torch.manual_seed(m)
            x, dy = (torch.randn(m, s, device="cuda").to(NAMES[dtype]) for s in (q.k, q.n))
            assert alike(quantized.linear(x, there), ptxgen.linear(x, w, layout="nk"))
            dx = ptxgen.linear_dgrad(dy, w, layout="nk")
            assert alike(quantized.linear_dgrad(dy, there), dx)
            ends = torch.tensor([m // 3, m // 2, m], dtype=torch.int32, device="cuda")[:2]
            y = ptxgen.grouped_linear(x, w.reshape(2, 35, -1), ends, layout="nk")
            assert alike(quantized.grouped_linear(x, there, ends), y)
        which = torch.tensor([[69, 0], [3, 69]], device="cuda")
        assert alike(quantized.embedding(which, there, dtype=NAMES[dtype]), w[which])


def alike(one, other):
    """Whether two tensors have the same bits, or NaN in the same places."""
    nan = one.isnan() & other.isnan()
    return one.dtype is other.dtype and torch.equal(
        one.masked_fill(nan, 0), other.masked_fill(nan, 0)
    )


def moved(array):
    """An array of NumPy on the GPU."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("i2")).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


@pytest.mark.parametrize(
    "name", sorted(n for n, s in SPECS.items() if isinstance(s, QuantizedGemmSpec))
)
def test_kernels_that_read_the_weight_as_it_is(name):
    """Rows of operand and result apart, nothing written between them, rows that know no others."""
    spec = SPECS[name]
    forward, dtype, m = spec.layout == "NT", NAMES[spec.dtype], spec.bm + 1
    x, dy, _, q, w = problem(m, 136, 1088, dtype)
    given = x if forward else dy
    wide = torch.zeros(m, given.shape[1] + 24, device="cuda", dtype=dtype)
    wide[:, 8:-16] = given
    call = functools.partial(nf4.linear if forward else nf4.linear_dgrad, kernel=name)
    expected = (ptxgen.linear if forward else ptxgen.linear_dgrad)(given, w, layout="nk")
    beside = torch.full((m, expected.shape[1] + 3), float("nan"), device="cuda", dtype=dtype)
    call(wide[:, 8:-16], q, out=beside[:, :-3])
    assert torch.equal(beside[:, :-3], expected) and beside[:, -3:].isnan().all()
    for rows in (slice(0, 1), slice(1, m), slice(m // 2, m // 2 + 3)):
        assert torch.equal(call(given[rows], q), expected[rows])


READ = ("int4_zero_point", "q4_1", "int8_block", "int8_zero_point")
"""Formats with offsets and without, of 4 and 8 bits, whose kernels are derived from listed ones."""


@pytest.mark.parametrize("layout", ["NT", "NN"])
@pytest.mark.parametrize("name", [*READ, "fp8_e4m3"])
def test_every_kernel_reads_prepared_weights(name, layout):
    """All kernels that a format has, on whole tiles and cut ones."""
    row, dtype, ran = format_named(name), torch.bfloat16, 0
    q, _ = weight(row, 392, 640 // row.block, 7)
    there = quantized.QuantizedWeight(
        name, *(None if a is None else moved(a) for a in q.operands), shape=(q.n, q.k)
    )
    w = quantized.dequantize(there, dtype)
    call = quantized.linear if layout == "NT" else quantized.linear_dgrad
    dense = ptxgen.linear if layout == "NT" else ptxgen.linear_dgrad
    table, kind = TABLES["quantized", layout, "chunks", "half", "tc"], Quantized("bf16", row)
    for i, route in enumerate(table.routes):
        if not isinstance(route.main, QuantizedGemmSpec) or not route.takes(kind):
            continue
        kernel, m = table.route(i, kind).name, route.main.bm + 1
        torch.manual_seed(i)
        x = torch.randn(m, q.k if layout == "NT" else q.n, device="cuda").to(dtype)
        assert alike(call(x, there, kernel=kernel), dense(x, w, layout="nk")), kernel
        torch.cuda.synchronize()
        ran += 1
    assert ran > 8


@pytest.mark.parametrize("dtype", NAMES.values(), ids=str)
def test_strided_rows_hot_calls_graphs_and_the_cpu_device(dtype):
    x, dy, _, q, w = problem(33, 70, 192, dtype)
    wide = torch.zeros(33, 201, device="cuda", dtype=dtype)
    wide[:, 5:197] = x
    expected = ptxgen.linear(x, w, layout="nk")
    for _ in range(3):  # from the second on by the hot path
        assert torch.equal(nf4.linear(wide[:, 5:197], q), expected)
        assert torch.equal(nf4.linear(x[:1], q), expected[:1])
    graph, out = torch.cuda.CUDAGraph(), torch.zeros_like(expected)
    with torch.cuda.graph(graph):
        nf4.linear(x, q, out=out)
    graph.replay()
    assert torch.equal(out, expected)
    host = nf4.Weight(q.data.cpu().numpy(), q.scales.cpu().numpy(), q.n, q.k)
    if dtype == torch.float32:
        with ptxgen.use_device("cpu"):
            got = nf4.linear_dgrad(dy.cpu().numpy(), host)
        assert (got == nf4.linear_dgrad(dy, q).cpu().numpy()).all()
    assert torch.equal(nf4.quantize(w.float()).data, nf4.quantize(w.float().cpu()).data.cuda())
