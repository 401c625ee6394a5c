"""Quantized weights on the CPU device, in NF4: the kernel that dequantizes, routes, operations."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits
from interp_launch import Matrix
from steps import step

import ptxgen
from ptxgen import graph, nf4, reference
from ptxgen.build.compile import compile_ptx
from ptxgen.build.render import render
from ptxgen.build.targets import portable_target
from ptxgen.dispatch import choose
from ptxgen.errors import DtypeError, OptionError, ShapeError, SpecError
from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.ops import OPERATIONS
from ptxgen.ops import quantized as ops
from ptxgen.ops.explaining import problem_of
from ptxgen.program.launch import launch, named, parameters
from ptxgen.runtime import get_device
from ptxgen.runtime.arrays import ArrayView
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import Step
from ptxgen.spec.quantized import DequantizeSpec
from ptxgen.tiles import TABLES
from ptxgen.tiles.quantized import WEIGHT

SEED = 16
NAMED = {"format": NF4.name}
QUANTIZED = {key: table for key, table in TABLES.items() if key[0] == "quantized"}
"""The tables of products with quantized weights."""


def image(spec):
    return lambda _: compile_ptx(render(spec), name=spec.name, arch=portable_target(spec)).image


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_the_kernel_dequantizes(dtype):
    """Bit for bit, any number of blocks, scales of all kinds; nothing beside them is touched."""
    spec, device = DequantizeSpec(dtype), CpuDevice()
    function = device.kernel(spec.name, image(spec), spec.shared_bytes)
    whole = spec.threads * spec.vectors_per_thread * 8 // NF4.block  # blocks of a CTA
    kinds = ("normal", "subnormal", "special", "wide")
    for turn, blocks in enumerate((1, 3, whole, whole + 1, 2 * whole + 5)):
        rng = np.random.default_rng([SEED, turn])
        scales = np.abs(operand(rng, (1, blocks), kinds[turn % len(kinds)]))
        data = rng.integers(0, 256, (1, blocks * NF4.block // 2), np.uint8)
        expected = reference.dequantize(
            nf4.Weight(data[0], scales[0], 1, blocks * NF4.block), NUMPY[dtype]
        )
        given = {
            "data": Matrix(device.memory, "data", (1, blocks * 8), data.view("f4")),
            "scales": Matrix(device.memory, "scales", scales.shape, scales),
            "y": Matrix(device.memory, "y", expected.shape, dtype=dtype, band=64),
        }
        prepared = device.prepare(
            function, (spec.grid.evaluate({"BLOCKS": blocks}), 1, 1), (spec.threads, 1, 1),
            parameters(Step(spec), tuple(given), {"blocks": blocks}), 3, "dequantize", False,
        )  # fmt: skip
        prepared.fire(0, *(matrix.ptr for matrix in given.values()))
        same_bits(given["y"].values, expected, seed=SEED, spec=spec.name, what=f"{blocks} blocks")
        assert given["y"].intact(), blocks


def test_a_spec_refuses_what_it_cannot_be():
    for bad, why in (
        ({"dtype": "f64"}, "dtype: f64 vs"),
        ({"cta_threads": 48}, "whole warps: 48 vs 32"),
        ({"vectors_per_thread": 0}, "vectors_per_thread: 0 vs >= 1"),
        ({"min_arch": "sm_70"}, "min_arch: sm_70 vs"),
    ):
        with pytest.raises(SpecError, match=why):
            DequantizeSpec(**bad)


# -- operations -------------------------------------------------------------------------


@functools.cache
def problem(m, n, k, dtype, kind="normal"):
    """x, dy and a bias, the weight, and that as a dense one."""
    rng = np.random.default_rng([SEED, m, n, k])
    q = nf4.quantize(operand(rng, (n, k), kind))
    x, dy = (operand(rng, (m, size), kind, dtype) for size in (k, n))
    return x, dy, operand(rng, (n,), kind, dtype), q, nf4.dequantize(q, x.dtype)


SHAPES = [(1, 1, 64), (1, 37, 192), (7, 70, 64), (33, 9, 320), (2, 3, 2112)]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_are_the_dense_ones(shape, dtype):
    """Forward and backward, as the library's dense operations and as the oracles have them."""
    x, dy, bias, q, w = problem(*shape, dtype)
    with ptxgen.use_device(CpuDevice()):
        y, dx = nf4.linear(x, q, bias, activation="gelu"), nf4.linear_dgrad(dy, q)
        dense = ptxgen.linear(x, w, bias, activation="gelu", layout="nk")
        same_bits(y, dense, seed=SEED, what=str(shape))
        same_bits(dx, ptxgen.linear_dgrad(dy, w, layout="nk"), seed=SEED, what=str(shape))
    same_bits(y, reference.quantized_linear(x, q, bias, activation="gelu"), seed=SEED)
    same_bits(dx, reference.quantized_linear_dgrad(dy, q), seed=SEED)


def routes():
    """Every route, those of more than a kernel of each kind as long tests."""
    seen = set()
    for key, table in QUANTIZED.items():
        for route in table.named.values():
            kind = key, route.main.family, len(route.steps)
            marks = [pytest.mark.long] if kind in seen else []
            yield pytest.param(key, route.name, marks=marks, id=route.name)
            seen.add(kind)


@pytest.mark.parametrize(("key", "name"), list(routes()))
def test_routes(key, name):
    """Bit for bit the oracle, at edges; the scratch has never been written before."""
    table, forward = QUANTIZED[key], key[1] == "NT"
    dtype, served = table.dtypes[0].dtype, 0
    long = 1152 if dtype == "f32" else 4160  # which the plan cuts
    edges = ((3, 5, long),) if forward else ((2, long - 1, 64), (19, 48, 64))
    for shape in ((1, 9, 64), (35, 70, 128), *edges):
        x, dy, bias, q, _ = problem(*shape, dtype, "cancelling")
        with ptxgen.use_device(CpuDevice()):
            call = functools.partial(nf4.linear, x, q, bias)
            call = call if forward else functools.partial(nf4.linear_dgrad, dy, q)
            try:
                got = call(kernel=name, accumulate=key[-1])
            except OptionError as error:
                assert "it requires" in str(error)
                continue
        if forward:
            expected = reference.quantized_linear(x, q, bias, accumulate=key[-1])
        else:
            expected = reference.quantized_linear_dgrad(dy, q, accumulate=key[-1])
        same_bits(got, expected, seed=SEED, spec=name, what=str(shape))
        served += 1
    assert served


def test_strided_and_batched_arguments():
    """Rows apart, off 16 bytes, single rows, leading dimensions, ``out`` with rows apart."""
    x, dy, _, q, _ = problem(6, 11, 128, "bf16")
    device = CpuDevice()
    wide = {"x": np.zeros((6, 133), x.dtype), "dy": np.zeros((6, 40), x.dtype)}
    wide["x"][:, 3:131], wide["dy"][:, 5:16] = x, dy
    y, dx = reference.quantized_linear(x, q), reference.quantized_linear_dgrad(dy, q)
    with ptxgen.use_device(device):
        same_bits(nf4.linear(wide["x"][:, 3:131], q), y)
        same_bits(nf4.linear_dgrad(wide["dy"][:, 5:16], q), dx)
        same_bits(nf4.linear(x[::-2], q), y[::-2])
        same_bits(nf4.linear(x.reshape(2, 3, 128), q), y.reshape(2, 3, 11))
        same_bits(nf4.linear(x[0], q), y[0])
        out = np.full((6, 20), np.nan, np.float32)
        assert nf4.linear(x, q, out=out[:, :11]).base is out
        same_bits(out[:, :11], reference.quantized_linear(x, q, out_dtype="float32"))
        assert np.isnan(out[:, 11:]).all()


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_rows_do_not_know_each_other(dtype):
    x, dy, bias, q, _ = problem(40, 24, 128, dtype)
    with ptxgen.use_device(CpuDevice()):
        y, dx = nf4.linear(x, q, bias), nf4.linear_dgrad(dy, q)
        for rows in (slice(0, 1), slice(7, 9), slice(3, 40)):
            same_bits(nf4.linear(x[rows], q, bias), y[rows])
            same_bits(nf4.linear_dgrad(dy[rows], q), dx[rows])


def test_nothing_to_add_or_to_write():
    x, dy, bias, q, _ = problem(3, 5, 64, "bf16")
    empty = nf4.Weight(q.data[:0], q.scales[:0], 0, 64)
    with ptxgen.use_device(CpuDevice()):
        assert nf4.linear(x[:0], q, bias).shape == (0, 5)
        assert nf4.linear(x, empty).shape == (3, 0)
        got = nf4.linear_dgrad(dy[:, :0], empty)
        same_bits(got, np.zeros((3, 64), x.dtype))


def test_refused_by_name():
    x, dy, bias, q, w = problem(3, 5, 64, "bf16")
    wide = x.astype(np.float32)
    for call, error, message in (
        (lambda: nf4.linear(x, w), DtypeError, "q is a ndarray; takes a ptxgen.quantized.Quan"),
        (lambda: nf4.linear(x[:, :62], q), ShapeError, "K = 62; takes a multiple of 64"),
        (lambda: nf4.linear_dgrad(x, q), ShapeError, "data has shape"),
        (lambda: nf4.linear(x, q, dy), ShapeError, r"bias has shape \[3, 5\]"),
        (lambda: nf4.linear(wide.astype(float), q), DtypeError, "x has dtype float64"),
        (lambda: nf4.linear(x, q, bias.astype("f2")), DtypeError, "bias has dtype float16"),
        (
            lambda: nf4.linear(x, q, accumulate="simt"),
            OptionError,
            "bfloat16 and nf4 take 'auto', 'tc'",
        ),
        (
            lambda: nf4.linear(wide, q, accumulate="tc"),
            OptionError,
            "float32 and nf4 take 'auto', 'simt'",
        ),
        (
            lambda: nf4.linear(x, q, accumulate="f64"),
            OptionError,
            "bfloat16 and nf4 take 'auto', 'tc'",
        ),
        (lambda: nf4.linear(x, q, accumulate="f16"), OptionError, "accumulate is 'f16'; takes"),
        (lambda: nf4.linear(x, q, activation="tanh"), OptionError, "activation is 'tanh'"),
        (lambda: nf4.linear(x, q, out_dtype="float16"), DtypeError, "out_dtype is 'float16'"),
    ):
        with ptxgen.use_device(CpuDevice()), pytest.raises(error, match=message):
            call()
    large = 1 << 17, 1 << 13
    with pytest.raises(ShapeError, match=r"it may have 1073741824; split it along N"):
        ptxgen.explain("quantized_linear_dgrad", 4096, *large, dtype="f32", format="nf4")
    for op in ("quantized_linear", "quantized_linear_dgrad"):  # read as it is stored, of any size
        for rows in (1, 17, 4096):
            found = ptxgen.explain(op, rows, *large, dtype="bf16", format="nf4")
            assert WEIGHT not in found.scratch
    with pytest.raises(ShapeError, match="K is 96; takes a multiple of 64"):
        ptxgen.explain("quantized_linear_dgrad", 1, 64, 96, format="nf4")
    with pytest.raises(DtypeError, match="x has dtype float64; takes float32 or bf"):
        ptxgen.explain("quantized_linear", 1, 64, 64, dtype="float64", format="nf4")


def test_a_weight_beyond_scratch_memory_is_dequantized_in_pieces():
    """A vocabulary of Llama 3 in f32, which no kernel multiplies as it is stored."""
    m, n, k = 4096, 128256, 8192
    b = graph.Builder(device="cpu")
    x, bias = b.input("x", (m, k), "float32"), b.input("bias", (n,), "float32")
    data, scales = b.input("data", (n, k // 2), "uint8"), b.input("scales", (n, k // 64), "float32")
    y = b.call(
        OPERATIONS["quantized_linear"].function, x, data, scales, bias=bias, format="nf4",
        activation="relu",
    )  # fmt: skip
    b.output(y)
    steps = b.program().steps
    sizes = [dict(s.problem.values)["N"] for s in steps]
    assert sum(sizes) == n and len(sizes) == 4 and max(sizes) * k * 4 <= 1 << 30
    for each in steps:
        assert named(each.problem, CpuDevice())
        assert each.bind["bias"].shape == (dict(each.problem.values)["N"],)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_pieces_have_the_bits_of_the_whole(monkeypatch, dtype):
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((3, 5, 128)).astype(dtype)
    q = nf4.quantize(rng.standard_normal((700, 128), dtype=np.float32))
    bias = rng.standard_normal(700).astype(dtype)
    with ptxgen.use_device(CpuDevice()):
        whole = nf4.linear(x, q, bias, activation="silu")
        monkeypatch.setattr(ops, "_direct", lambda *_: False)
        monkeypatch.setattr(ops, "SCRATCH_MAX", 300 * 128 * x.itemsize)
        out = np.zeros((3, 5, 700), dtype)
        function = functools.partial(nf4.linear, q=q, bias=bias, activation="silu")
        steps = graph.trace(lambda x: function(x), x).steps
        assert [dict(s.problem.values)["N"] for s in steps] == [256, 256, 188]
        assert function(x, out=out) is out
    same_bits(out, whole, seed=SEED, spec="", what="pieces")
    same_bits(out, reference.quantized_linear(x, q, bias, activation="silu"), seed=SEED, spec="",
              what="oracle")  # fmt: skip


def seen(shape, dtype, strides, ptr=0):
    """An array on a GPU, as operations see it."""
    return ArrayView(ptr, shape, strides, dtype, "cuda", 0, False, "torch", None)


def test_storage_that_is_read_and_that_is_not():
    """GPU operands are never copied: rows of x may have gaps; other strides and unaligned bytes are
    refused.
    """
    good = {
        "x": seen((3, 128), "bfloat16", (130, 1), 2),
        "data": seen((5, 64), "uint8", (64, 1), 16),
        "scales": seen((5, 2), "float32", (2, 1), 4),
    }
    out = seen((3, 5), "bfloat16", (5, 1))
    made = step("quantized_linear", {**good, "out": out}, **NAMED)
    found = made.problem
    assert found.table == ("quantized", "NT", "chunks", "half", "tc")
    assert dict(found.values) == {"M": 3, "N": 5, "K": 128, "ALIGN_A": 2}
    assert tuple(made.bind) == ("a", "data", "scales", "bias", "c")
    assert dict(found.scalars)["LDA"] == 130
    for name, bad, message in (
        ("x", seen((3, 128), "bfloat16", (1, 3)), r"strides \[1, 3\].*takes stride 1 along"),
        ("data", seen((5, 64), "uint8", (64, 1), 8), "data starts off a multiple of 16 bytes"),
        ("data", seen((5, 64), "uint8", (80, 1)), r"data has strides \[80, 1\]; takes a cont"),
        ("scales", seen((5, 2), "float32", (1, 5)), r"scales has strides \[1, 5\]; takes"),
        ("scales", seen((5, 3), "float32", (3, 1)), "with K = 128, that of x"),
    ):
        with pytest.raises(ShapeError, match=message):
            step("quantized_linear", {**good, name: bad}, **NAMED)
    with pytest.raises(DtypeError, match="data has dtype int8; takes uint8"):
        step("quantized_linear", {**good, "data": seen((5, 64), "int8", (64, 1))}, **NAMED)
    # A column of dy is read as rows of one element, not as a row of its transpose.
    one = {
        "dy": seen((3, 1), "float32", (1, 1)),
        "data": seen((1, 64), "uint8", (64, 1)),
        "scales": seen((1, 2), "float32", (2, 1)),
    }
    made = step(
        "quantized_linear_dgrad", {**one, "out": seen((3, 128), "float32", (128, 1))}, **NAMED
    )
    assert made.problem.table == ("quantized", "NN", "chunks", "f32", "simt")
    assert tuple(made.bind) == ("a", "data", "scales", "c")


def test_only_dense_products_are_profiled():
    route = QUANTIZED["quantized", "NT", "chunks", "half", "tc"].routes[-1]
    with pytest.raises(OptionError, match="is no route of dense products"):
        ptxgen.profile(route.name, 1, 64, 64)


def test_a_dense_kernel_is_no_route_of_them():
    x, _, _, q, _ = problem(3, 5, 64, "bf16")
    dense = QUANTIZED["quantized", "NT", "chunks", "half", "tc"].routes[-1].main.name
    with (
        ptxgen.use_device(CpuDevice()),
        pytest.raises(OptionError, match="takes bf16, got bf16 and"),
    ):
        nf4.linear(x, q, kernel=dense)
    with (
        ptxgen.use_device(CpuDevice()),
        pytest.raises(OptionError, match="takes bf16 and nf4, got bf16"),
    ):
        ptxgen.linear(x, x[:, :64].T, kernel=f"quantized_datascales+{dense}", layout="kn")


# -- tables -----------------------------------------------------------------------------


def test_what_a_kernel_is_told_of_the_weight_is_so():
    """Rows of whole blocks, at multiples of 16 bytes, all of which the first step writes."""
    for key, table in QUANTIZED.items():
        for route in table.routes:
            first, *others = route.steps
            if not isinstance(first.kernel, DequantizeSpec):
                assert first.kernel.layout == key[1] and "data" in first.kernel.abi.offsets
                continue
            main = next(step for step in others if step.kernel is route.main)
            assert main.kernel.layout == key[1]
            assert main.bound("b") == first.bound("y") and first.kernel.dtype == main.kernel.dtype
            item = {"f32": 4, "bf16": 2}[first.kernel.dtype]
            for n, k in ((3, 128), (17, 64)):
                n_k = {"N": n, "K": k} if key[1] == "NT" else {"N": k, "K": n}
                assert main.given["LDB"].evaluate(n_k) == k
                assert route.scratch[main.bound("b")].evaluate(n_k) == n * k * item


def test_rows_of_gradients_off_16_bytes_are_copied():
    """Copied by single elements, 32 rows of 14722 take 30 times as long."""
    odd = {"M": 32, "N": 64, "K": 14722, "ALIGN_A": 4}
    choice = choose(("quantized", "NN", "chunks", "half", "tc"), odd, arch="sm_90", sms=132)
    kinds = [name.split("_")[0] for name in choice.kernels]
    assert kinds == ["quantized", "realign", "wgmma", "reduce"]


def test_what_loads_much_is_launched_in_order():
    """CTAs that come while others leave have SMs in no order, which costs more than it saves."""
    pointers, device = ("a", "data", "scales", "bias", "c"), get_device("cpu")

    def early(m: int) -> list[bool]:
        problem = problem_of("quantized_linear_dgrad", (m, 4096, 2304), "bf16", 16, NAMED)
        kernel = "quantized_datascales+wgmma_nn_bf16_128x128x64_25492e"
        return [each.programmatic for each in launch(problem, pointers, device, kernel).prepared]

    assert early(256) == [False, True] and early(4096) == [False, False]


def test_the_fastest_route_is_taken_of_those_whose_scratch_there_is():
    key = "quantized", "NT", "chunks", "half", "tc"
    large = {"M": 4096, "N": 14336, "K": 4096, "ALIGN_A": 16}
    choice = choose(key, large, arch="sm_90", sms=132, gpu="NVIDIA H200")
    assert choice.kernels[0] == DequantizeSpec("bf16").name
    assert choice.kernels[1].startswith("wgmma_nt_bf16_128x")
    assert choice.scratch == (14336 * 4096 * 2,) and choice.grids[0] == 14336 * 4096 // 8192
    few = choose(key, {**large, "M": 4}, arch="sm_90", sms=132, gpu="NVIDIA H200")
    assert len(few.kernels) == 1 and few.kernels[0].startswith("quantized_pairs_nf4_nt_bf16_8x")
    beyond = choose(key, {**large, "N": 1 << 20}, arch="sm_90", sms=132)
    assert not beyond.scratch and beyond.kernels[0].startswith("quantized_")
