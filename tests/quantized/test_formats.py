"""Every format of quantized weights: codes, kernels, products, gradients, both frameworks."""

from __future__ import annotations

import importlib
from fractions import Fraction

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits
from format_cases import ROWS, stands_for, weight
from registries import registries_kept
from toy import five

import ptxgen
from ptxgen import quantized, reference
from ptxgen.errors import DtypeError, OptionError, ShapeError, SpecError
from ptxgen.numerics.formats import FORMATS, format_named, is_prepared
from ptxgen.numerics.weight_format import Quantized, WeightFormat, signed, unsigned
from ptxgen.ops.explaining import explain
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.quantized import LOOKED_UP
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.tiles import SPECS, TABLES

SEED = 51
DTYPES = ("f32", "bf16", "f16")


@pytest.fixture(params=[*ROWS, five.FORMAT.name])
def row(request):
    """Each format of the package, and one that a test registers."""
    with registries_kept():
        if request.param == five.FORMAT.name:
            quantized.register(five.FORMAT)
        yield FORMATS[request.param]


@pytest.mark.parametrize("kind", ["normal", "wide", "subnormal", "special"])
def test_every_code_stands_for_its_number(row, kind):
    q, codes = weight(row, 5, -(-(1 << row.bits) // row.block) + 1, SEED, kind)
    assert {*codes} == {*range(1 << row.bits)}
    expected = stands_for(q, codes)
    same_bits(reference.dequantize(q), expected, seed=SEED, what=row.name)
    same_bits(quantized.dequantize(q), expected, seed=SEED, what=row.name)
    for dtype in ("bf16", "f16"):
        once = reference.dequantize(q, NUMPY[dtype])
        with np.errstate(over="ignore"):
            same_bits(once, expected.astype(NUMPY[dtype]), seed=SEED, what=row.name)
        same_bits(quantized.dequantize(q, NUMPY[dtype]), once, seed=SEED, what=row.name)
    same_bits(quantized.dequantize(q, layout="kn"), expected.T, seed=SEED)


@pytest.mark.parametrize("dtype", ["f32", "bf16", pytest.param("f16", marks=pytest.mark.long)])
def test_products_are_the_dense_ones(row, dtype):
    """Products have the bits of the dequantized weight's, forward and backward, whole and
    by rows.
    """
    q, _ = weight(row, 9, 3, SEED + 1)
    rng, w = np.random.default_rng(SEED), quantized.dequantize(q, NUMPY[dtype])
    x, dy = operand(rng, (5, q.k), "normal", dtype), operand(rng, (5, q.n), "normal", dtype)
    bias = operand(rng, (q.n,), "normal", dtype)
    with ptxgen.use_device(CpuDevice()):
        y = quantized.linear(x, q, bias, activation="gelu")
        dx = quantized.linear_dgrad(dy, q)
        same_bits(quantized.linear(x[3:4], q, bias, activation="gelu"), y[3:4], seed=SEED)
        same_bits(quantized.linear_dgrad(dy[:2], q), dx[:2], seed=SEED)
        same_bits(y, ptxgen.linear(x, w, bias, activation="gelu", layout="nk"), seed=SEED)
        same_bits(dx, ptxgen.linear_dgrad(dy, w, layout="nk"), seed=SEED)
    same_bits(y, reference.quantized_linear(x, q, bias, activation="gelu"), seed=SEED)
    same_bits(dx, reference.quantized_linear_dgrad(dy, q), seed=SEED)


def test_a_kernel_decodes_any_number_of_blocks(row):
    """Numbers of all lengths around a CTA's share, of scales of all kinds."""
    for turn, (n, blocks) in enumerate(((1, 1), (3, 1), (1, 341), (7, 50))):
        kind = ("normal", "subnormal", "wide")[turn % 3]
        q, codes = weight(row, n, blocks, SEED + turn, kind)
        one = np.eye(1, n, n - 1, dtype=np.float32)  # the last row, times 1
        with ptxgen.use_device(CpuDevice()):
            got = quantized.linear_dgrad(one, q)
        w = stands_for(q, codes)
        expected = w[-1] + np.float32(0)
        expected[~np.isfinite(w[:-1]).all(0)] = np.nan  # 0 times Inf or NaN
        same_bits(got[0], expected, seed=SEED, what=str((n, blocks)))


def test_numbers_become_the_nearest_codes(row):
    if row.quantize is None:
        with pytest.raises(OptionError, match=f"'{row.name}', which nothing is quantized to"):
            quantized.quantize(np.ones((1, row.block), np.float32), row.name)
        return
    rng = np.random.default_rng(SEED)
    w = operand(rng, (3, 2 * row.block), "normal")
    w[1, : row.block] = 0
    q = quantized.quantize(w, row.name)
    blocks, finite = w.reshape(-1, row.block), np.isfinite(row.values)
    largest, most = np.float32(np.array(row.values)[finite].max()), abs(blocks).max(1)
    offsets = np.zeros(len(blocks), np.float32)
    if row.quantize == "mx":
        exponents = np.frexp(most)[1] - np.frexp(largest)[1]
        scales = np.ldexp(np.float32(1), np.where(most == 0, -127, exponents))
        same_bits(q.scales, (np.frexp(scales)[1] + 126).astype(np.uint8), seed=SEED)
    elif row.quantize == "minmax":
        offsets = blocks.min(1)
        scales = (blocks.max(1) - offsets) / largest
        same_bits(q.offsets, offsets, seed=SEED)
        same_bits(q.scales, scales, seed=SEED)
    else:
        scales = (most / largest).astype(NUMPY[row.scales])
        same_bits(q.scales, scales, seed=SEED)
    known = {v: code for code, v in reversed([*enumerate(row.values)]) if np.isfinite(v)}
    even = row.encoding in ("e2m1", "e4m3", "e5m2")
    for numbers, scale, offset, got in zip(
        blocks, scales, offsets, quantized.dequantize(q).reshape(-1, row.block), strict=True
    ):
        for number, found in zip(numbers[:24], got[:24], strict=True):
            wanted = Fraction(float(number)) - Fraction(float(offset))
            far = {v: abs(wanted - Fraction(float(scale)) * Fraction(v)) for v in sorted(known)}
            least = min(far.values())
            best = [v for v in far if far[v] == least]
            value = best[-1] if even and known[best[0]] % 2 else best[0]
            value = value if scale else 0.0
            assert found == np.float32(scale) * np.float32(value) + offset


PREPARED = {
    "nf4": "nf4",
    "int4_block": "int4_block",
    "int4_block_asym": "int4_block_asym",
    "int4_block_g128_bf16": "int4_block_g128_bf16",
    "int4_block_g384_bf16": "int4_block_g384_bf16_prepared",
    "int4_zero_point": "int4_zero_point",
    "q4_1": "q4_1",
    "q4_k": "q4_k_prepared",
    "iq4_xs": "iq4_xs_prepared",
    "mxfp4": "mxfp4",
    "int8_block": "int8_block",
    "int8_zero_point": "int8_zero_point",
    "q8_0": "q8_0",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "mxfp8": "mxfp8",
    "nvfp4": None,  # blocks of 16
    "fp4_e2m1": None,
    "fp4_e2m1_g32": "fp4_e2m1_g32",
    "q5_0": None,  # 5 bits
    "int4_zero_point_ordered": None,  # groups in any order
}
"""Formats, and the formats that products read as they are stored."""


@pytest.mark.parametrize("name", PREPARED)
def test_weights_are_prepared_for_products(name):
    """Products read the codes, with the bits of the weight before it was prepared."""
    wanted = PREPARED[name]
    q, _ = weight(format_named(name), 72, -(-256 // format_named(name).unit), SEED)
    fast = q.prepared()
    assert fast.prepared() is fast and fast.format is format_named(fast.format.name)
    assert fast.format.name == (wanted or name)
    same_bits(quantized.dequantize(fast), quantized.dequantize(q), seed=SEED)
    found = explain("quantized_linear", 5, q.n, q.k, dtype="bf16", format=fast.format.name)
    assert bool(found.scratch) == (wanted is None)
    if wanted is None:
        return
    rng = np.random.default_rng(SEED)
    dtype = ("bf16", "f16")[list(PREPARED).index(name) % 2]
    x, dy = (operand(rng, (9, size), "normal", dtype) for size in (q.k, q.n))
    bias = operand(rng, (q.n,), "normal", dtype)
    with ptxgen.use_device(CpuDevice()):
        y, dx = quantized.linear(x, fast, bias), quantized.linear_dgrad(dy, fast)
        same_bits(quantized.linear(x[3:4], fast, bias), y[3:4], seed=SEED)
    same_bits(y, reference.quantized_linear(x, q, bias), seed=SEED)
    same_bits(dx, reference.quantized_linear_dgrad(dy, q), seed=SEED)


@pytest.mark.parametrize("layout", [pytest.param("NT", marks=pytest.mark.long), "NN"])
def test_every_family_of_kernels_reads_prepared_weights(layout):
    """The kernels of each family, with offsets, with blocks of 32, and with codes of 8 bits."""
    dtype = "bf16"
    table = TABLES["quantized", layout, "chunks", "half", "tc"]
    for name in ("int4_zero_point", "q4_k_prepared", "int8_zero_point"):
        row, ran = format_named(name), set()
        q, _ = weight(row, 136, 4, SEED)
        rng = np.random.default_rng(SEED)
        x = operand(rng, (17, q.k if layout == "NT" else q.n), "normal", dtype)
        call = quantized.linear if layout == "NT" else quantized.linear_dgrad
        oracle = "quantized_linear" if layout == "NT" else "quantized_linear_dgrad"
        expected = getattr(reference, oracle)(x, q)
        for i, route in enumerate(table.routes):
            spec = route.main
            kind = type(spec), getattr(spec, "teams", None), getattr(spec, "copy_a", None)
            if not (isinstance(spec, QuantizedGemmSpec) and route.takes(Quantized(dtype, row))):
                continue
            if kind in ran:
                continue
            kernel = table.route(i, Quantized(dtype, row)).name
            with ptxgen.use_device(CpuDevice()):
                same_bits(call(x, q, kernel=kernel), expected, seed=SEED, what=kernel)
            ran.add(kind)
        forward = {"QuantizedSkinnySpec", "QuantizedHeldSpec"} if layout == "NT" else set()
        families = {"QuantizedTensorSpec", "QuantizedWgmmaSpec", *forward}
        assert {kind.__name__ for kind, *_ in ran} == families


def test_scales_that_their_dtype_has_not_are_refused():
    row = WeightFormat("small", 4, 32, signed(4), scales="f16", quantize="absmax")
    w = np.ones((2, 64), np.float32)
    w[1, 40] = 3e6
    with pytest.raises(
        DtypeError, match="w has a block of scale 428571, beyond the range of float16"
    ):
        quantized.quantize(w, row)
    w[1, 40] = np.inf
    assert np.isinf(quantized.quantize(w, row).scales[3])


def test_torch_has_the_same_bits(row):
    torch = pytest.importorskip("torch")
    q, _ = weight(row, 4, 2, SEED)

    def tensor(array):
        if array is None or array.dtype.name != "bfloat16":
            return None if array is None else torch.from_numpy(np.asarray(array))
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)

    own = quantized.QuantizedWeight(row.name, *map(tensor, q.operands), shape=(q.n, q.k))
    for name in ("float32", "float16"):
        same_bits(quantized.dequantize(own, name).numpy(), reference.dequantize(q, name), seed=SEED)
    if row.quantize:
        w = np.random.default_rng(SEED).standard_normal((4, 2 * row.block), np.float32)
        there, here = quantized.quantize(torch.from_numpy(w), row), quantized.quantize(w, row)
        same_bits(there.data.numpy(), here.data, seed=SEED)
        same_bits(there.scales.numpy(), here.scales, seed=SEED)
    layer = ptxgen_torch().QuantizedLinear.from_weight(own)
    x = np.random.default_rng(SEED).standard_normal((3, q.k), np.float32)
    with ptxgen.use_device("cpu"):
        y = layer(torch.from_numpy(x).requires_grad_())
        y.sum().backward()
    same_bits(y.detach().numpy(), reference.quantized_linear(x, q), seed=SEED)
    empty = ptxgen_torch().QuantizedLinear(q.k, q.n, format=row.name)
    assert empty.state_dict().keys() == {*row.dtypes, "bias"}
    assert not empty(torch.zeros(1, q.k)).detach().numpy().any()
    empty.load_state_dict({**layer.state_dict(), "bias": torch.zeros(q.n)})
    assert torch.equal(empty.q.data, layer.q.data) and empty.half().scales.dtype is own.scales.dtype


def ptxgen_torch():
    return importlib.import_module("ptxgen.torch")


def test_a_format_is_explained_and_has_kernels_of_its_own(row):
    sizes = 300, 64, 2 * row.unit
    found = explain("quantized_linear", *sizes, dtype="bf16", format=row.name)
    assert row.name in str(found)
    first = found.launches[0].kernel
    if row in LOOKED_UP:
        assert first in SPECS and not found.scratch
    elif is_prepared(row):
        assert row.name in first and first not in SPECS and not found.scratch
    else:
        assert first.startswith(f"quantized_{row.name}_bf16_") and first not in SPECS
        assert found.scratch


def test_a_format_of_a_folder_of_its_own_is_refused_by_name():
    row = five.FORMAT
    with registries_kept():
        with pytest.raises(
            OptionError, match=f"format is 'five'; takes {', '.join(map(repr, ROWS))}"
        ):
            quantized.quantize(np.ones((1, 24), np.float32), "five")
        assert quantized.register(row) is quantized.register(row)
        with pytest.raises(SpecError, match="there is a format 'five' already"):
            quantized.register(WeightFormat("five", 5, 24, unsigned(5)))
        q, _ = weight(row, 2, 2, SEED)
        make = quantized.QuantizedWeight
        for call, error, message in (
            (lambda: make("five", q.data, q.scales, shape=(2, 48)), OptionError, "has offsets; p"),
            (lambda: make("nf4", q.data, q.scales, q.offsets, shape=(2, 64)), OptionError,
             "'nf4' has no offsets; leave"),
            (lambda: make("five", q.data, q.scales, q.scales, shape=(2, 48)), DtypeError,
             "offsets has dtype float16; takes bfloat16"),
            (lambda: make("five", q.data, q.scales, q.offsets, shape=(2, 50)), ShapeError,
             "k is 50; takes a multiple of 24: so many share a scale in five"),
            (lambda: make("five", q.data[1:], q.scales, q.offsets, shape=(2, 48)), ShapeError,
             r"data has shape \[59\]; takes \[60\] or \[2, 30\] for N = 2 and K = 48"),
            (lambda: make("five", q.data, q.scales, q.offsets, shape=(2,)), ShapeError, ".N, K"),
            (lambda: quantized.linear(np.ones((2, 48), "f4"), q, accumulate="f64"), OptionError,
             "accumulate is 'f64'; float32 and five take 'auto', 'simt'"),
            (lambda: quantized.linear(np.ones((2, 24), "f4"), q), ShapeError, "data has shape"),
            (lambda: explain("quantized_linear", 1, 3 << 13, 1 << 14, format="five"), ShapeError,
             "K is 16384; takes a multiple of 24"),
            (lambda: explain("quantized_linear_dgrad", 1, 1 << 14, 3 << 14, format="five"),
             ShapeError, "it may have 1073741824; split it along N"),
            (lambda: explain("quantized_linear_dgrad", 1, 1 << 24, 24, format="five", dtype="bf16"),
             ShapeError, "the weight has 2147483648 bytes when .*it may have 1073741824"),
        ):  # fmt: skip
            with pytest.raises(error, match=message), ptxgen.use_device(CpuDevice()):
                call()
    assert "five" not in FORMATS


def test_a_record_refuses_what_does_not_fit():
    good = {"name": "x", "bits": 4, "block": 32, "values": signed(4)}
    assert WeightFormat(**good).bits_of_all == 5
    for changes, message in (
        ({"name": "a b"}, "name is 'a b'"),
        ({"bits": 9}, r"bits is 9; takes 2 \.\. 8"),
        ({"block": 20}, "block is 20; takes a multiple of 8"),
        ({"values": unsigned(3)}, "number of values is 8; takes 16"),
        ({"values": (*unsigned(4)[:-1], 0.1)}, "values is .*; takes f32 numbers"),
        ({"values": (*unsigned(4)[:-1], 1e39)}, "values is .*; takes f32 numbers"),
        ({"scales": "f64"}, "dtype of scales is f64; takes f32, bf16, f16"),
        ({"offsets": "i16"}, "dtype of offsets is i16"),
        ({"quantize": "best"}, "quantize is best; takes absmax"),
        ({"quantize": "absmax", "decoding": "code * scale"}, "decoding to quantize to is code"),
        ({"quantize": "absmax", "values": (1.0,) * 16}, "values to quantize to"),
        ({"quantize": "absmax", "scales": "u8"}, "dtype of scales to quantize to is u8"),
        ({"quantize": "mx"}, "dtype of scales to quantize to is f32; takes e8m0"),
        ({"quantize": "minmax"}, "decoding to quantize to is scale . code; takes scale . code . o"),
        ({"outer": "u8"}, "dtype of outer is u8"),
        ({"outer": "f16", "outer_block": 48}, "outer_block is 48; takes a multiple of the block"),
        ({"outer_block": 32}, "outer_block is 32; takes 0"),
        ({"outer": "f16", "outer_block": 64}, r"takes \['code', 'outer_scale', 'scale'\]"),
        ({"decoding": "code"}, r"names in decoding is \['code'\]; takes \['code', 'scale'\]"),
        ({"decoding": "scale * code +"}, "decoding 'scale . code .': invalid syntax"),
        ({"decoding": "scale / code"}, r"takes \+, - and \* of"),
        ({"decoding": "scale * code * 2"}, "numbers such as 8.0"),
        ({"decoding": "scale * code * 0.1"}, "numbers such as 8.0"),
        ({"offsets": "f16"}, r"takes \['code', 'offset', 'scale'\]"),
    ):
        with pytest.raises(SpecError, match=message):
            WeightFormat(**(good | changes))
