"""Weights of GGUF files and of checkpoints, converted: the same numbers, by other decoders."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from bits import same_bits

from ptxgen import quantized, reference
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics.formats.gguf import PACKINGS

SEED = 53


def bits_of(words, width):
    """Fields of ``width`` bits of each row of 32-bit words, as a stream from the lowest bit on."""
    bytes = np.ascontiguousarray(words).view(np.uint8)
    bits = np.unpackbits(bytes, axis=1, bitorder="little")
    count = bits.shape[1] // width
    fields = bits[:, : count * width].reshape(len(words), count, width)
    return fields.astype(np.int64) @ (1 << np.arange(width))


def words_of(codes, width):
    """Rows of codes as a stream of bits in 32-bit words, filled with zeros."""
    bits = (codes[..., None] >> np.arange(width) & 1).astype(np.uint8).reshape(len(codes), -1)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 32)))
    return np.packbits(bits, axis=1, bitorder="little").view(np.int32)


@pytest.mark.parametrize("type", [*PACKINGS])
def test_gguf_blocks_stand_for_ggmls_numbers(type):
    """All bytes, scales that are NaN, infinite and subnormal among them."""
    gguf = pytest.importorskip("gguf")
    packing, n, k = PACKINGS[type], 5, 768
    size = k // packing.elements * packing.nbytes
    raw = np.random.default_rng(SEED).integers(0, 256, (n, size), np.uint8)
    with np.errstate(all="ignore"):
        known = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[type.upper()])
    q = quantized.from_gguf(raw, type.upper(), (n, k))
    assert q.format.name == type
    same_bits(quantized.dequantize(q), known.reshape(n, k), seed=SEED)
    same_bits(reference.dequantize(q), known.reshape(n, k), seed=SEED)


def test_gguf_data_that_does_not_fit_is_refused():
    raw = np.zeros((2, 144), np.uint8)
    for data, type, shape, error, message in (
        (raw, "Q4_1_X", (2, 256), OptionError, "type is 'Q4_1_X'; takes 'Q4_0', 'Q4_1'"),
        (raw, 12, (2, 256), OptionError, "type is 12"),
        (
            raw[:, :143],
            "q4_k",
            (2, 256),
            ShapeError,
            "data has 286 bytes; q4_k takes 288 for N = 2",
        ),
        (raw, "q4_k", (2, 128), ShapeError, "k is 128; takes a multiple of 256"),
        (raw.view(np.int8), "q4_k", (2, 256), DtypeError, "data has dtype int8; takes uint8"),
    ):
        with pytest.raises(error, match=message):
            quantized.from_gguf(data, type, shape)


AWQ_ORDER = 0, 2, 4, 6, 1, 3, 5, 7
"""Column of each nibble of a word, from the lowest on (AutoAWQ, version gemm)."""


def awq_words(codes):
    """Rows of codes in AWQ's order."""
    own = codes.reshape(len(codes), -1, 8)[..., AWQ_ORDER]
    return words_of(own.reshape(len(codes), -1), 4)


def test_awq_has_its_numbers():
    rng, (n, k, group) = np.random.default_rng(SEED), (24, 96, 32)
    codes, zeros = rng.integers(0, 16, (k, n)), rng.integers(0, 16, (k // group, n))
    scales = rng.standard_normal((k // group, n)).astype(np.float16)
    q = quantized.from_awq(awq_words(codes), awq_words(zeros), scales)
    assert q.format.name == "int4_zero_point_g32" and (q.n, q.k) == (n, k)
    at = np.arange(k) // group
    known = ((codes - zeros[at]) * scales[at].astype(np.float32)).astype(np.float32).T
    same_bits(quantized.dequantize(q), known, seed=SEED)
    # AutoAWQ's own arithmetic in float16, which rounds once
    own = (codes - zeros[at]).astype(np.float16) * scales[at]
    same_bits(quantized.dequantize(q, "float16"), own.T, seed=SEED)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("version", ["gptq", "gptq_v2"])
def test_gptq_has_its_numbers(bits, version):
    rng, (n, k, group) = np.random.default_rng(SEED), (32, 128, 64)
    codes, zeros = (rng.integers(0, 1 << bits, s) for s in ((n, k), (k // group, n)))
    scales = rng.standard_normal((k // group, n)).astype(np.float16)
    stored = (zeros - (version == "gptq")) % (1 << bits)
    qweight, qzeros = words_of(codes, bits).T, words_of(stored, bits)
    how = {"bits": bits, "version": version}
    at = np.arange(k) // group
    q = quantized.from_gptq(qweight, qzeros, scales, at.astype(np.int32), **how)
    assert q.format.name == f"int{bits}_zero_point_g64"

    def known(at):
        return ((codes.T - zeros[at]) * scales[at].astype(np.float32)).astype(np.float32).T

    same_bits(quantized.dequantize(q), known(at), seed=SEED)
    same_bits(quantized.from_gptq(qweight, qzeros, scales, **how).data, q.data, seed=SEED)
    at = rng.permutation(at).astype(np.int32)
    if bits in (2, 3):
        with pytest.raises(OptionError, match=f"bits is {bits}; with groups in another order"):
            quantized.from_gptq(qweight, qzeros, scales, at, **how)
        return
    q = quantized.from_gptq(qweight, qzeros, scales, at, **how)
    assert q.format.name == f"int{bits}_zero_point_ordered_g64"
    same_bits(quantized.dequantize(q), known(at), seed=SEED)
    same_bits(reference.dequantize(q), known(at), seed=SEED)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_compressed_tensors_has_its_numbers(bits, kind):
    rng, (n, k) = np.random.default_rng(SEED), (12, 96)
    for group, asymmetric in ((32, False), (96, False), (24, True)):
        half = 1 << bits - 1
        codes = rng.integers(-half, half, (n, k))
        zeros = rng.integers(-half, half, (n, k // group)) * asymmetric
        scales = rng.standard_normal((n, k // group)).astype(kind)
        points = words_of((zeros + half).T, bits).T if asymmetric else None
        q = quantized.from_compressed_tensors(
            words_of(codes + half, bits), scales, points, shape=(n, k), bits=bits
        )
        at = np.arange(k) // group
        known = (codes - zeros[:, at]) * scales.astype(np.float32)[:, at]
        same_bits(quantized.dequantize(q), known.astype(np.float32), seed=SEED)
        if group % 32:
            assert q.prepared() is q
        assert q.format.name.startswith(f"int{bits}_{'zero_point' if asymmetric else 'block'}")


@pytest.mark.parametrize("kind", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_fp8_scales_of_tensors_rows_and_blocks(kind):
    rng, (n, k) = np.random.default_rng(SEED), (200, 264)
    w = rng.standard_normal((n, k)).astype(kind)
    wide = w.astype(np.float32)
    blocks = rng.standard_normal((2, 3)).astype(np.float32)
    rows = rng.standard_normal(n).astype(np.float32)
    for scale, known in (
        (np.float32(0.3).reshape(()), wide * np.float32(0.3)),
        (rows, wide * rows[:, None]),
        (rows[:, None].astype(np.float16), wide * rows[:, None].astype(np.float16)),
        (blocks, wide * np.repeat(np.repeat(blocks, 128, 0)[:n], 128, 1)[:, :k]),
    ):
        q = quantized.from_fp8(w, np.asarray(scale))
        same_bits(quantized.dequantize(q), known.astype(np.float32), seed=SEED)
    with pytest.raises(ShapeError, match=r"scale has shape \[2, 2\]; takes \[2, 3\]"):
        quantized.from_fp8(w, blocks[:, :2])
    with pytest.raises(ShapeError, match="K = 5; takes a multiple of 8"):
        quantized.from_fp8(w[:, :5], np.float32(1).reshape(()))


def nvfp4():
    """Codes, scales and the global scale of a weight [6, 48] in NVFP4; and its numbers."""
    rng, (n, k) = np.random.default_rng(SEED), (6, 48)
    data = rng.integers(0, 256, (n, k // 2), np.uint8)
    scales = rng.uniform(-448, 448, (n, k // 16)).astype(ml_dtypes.float8_e4m3fn)
    whole = np.float32([6543.21])
    codes = np.stack((data & 15, data >> 4), -1).reshape(n, k)
    quotients = scales.astype(np.float32) / whole
    known = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32) * quotients.repeat(16, 1)
    assert (scales.astype(np.float32) * (1 / whole) != quotients).any(), "another rounding"
    return data, scales, whole, known


def test_nvfp4_scales_are_divided_once():
    data, scales, whole, known = nvfp4()
    q = quantized.from_nvfp4(data, scales, whole)
    assert q.format.name == "fp4_e2m1" and q.prepared() is q
    same_bits(quantized.dequantize(q), known, seed=SEED)
    again = quantized.from_nvfp4(data, scales, whole.reshape(()))
    same_bits(again.scales, q.scales, seed=SEED)


def test_nvfp4_is_read_from_tensors():
    torch = pytest.importorskip("torch")
    data, scales, whole, known = nvfp4()
    bytes = torch.from_numpy(scales.view(np.uint8)).view(torch.float8_e4m3fn)
    there = quantized.from_nvfp4(torch.from_numpy(data), bytes, torch.from_numpy(whole))
    same_bits(quantized.dequantize(there).numpy(), known, seed=SEED)


def test_arrays_that_do_not_fit_are_refused():
    rng, i32 = np.random.default_rng(SEED), np.int32
    weight, zeros = rng.integers(0, 99, (64, 2)).astype(i32), np.zeros((2, 2), i32)
    scales = np.ones((2, 16), np.float16)
    swapped = np.arange(64, dtype=i32)[::-1] // 32
    packed, one = np.zeros((4, 16), np.uint8), np.ones(1, np.float32)
    eights = np.ones((4, 2), ml_dtypes.float8_e4m3fn)
    for call, error, message in (
        (lambda: quantized.from_awq(weight, zeros[:1], scales), ShapeError, "qzeros has shape"),
        (lambda: quantized.from_awq(weight, zeros, scales[:, :8]), ShapeError, "qweight has shape"),
        (lambda: quantized.from_awq(weight.astype("i8"), zeros, scales), DtypeError, "takes int32"),
        (lambda: quantized.from_awq(weight, np.zeros((5, 2), i32), np.ones((5, 16), "f2")),
         ShapeError, "of 5 groups for K = 64; takes groups of a multiple of 8"),
        (lambda: quantized.from_awq(weight[:0], zeros, scales), ShapeError,
         "of 2 groups for K = 0; takes groups of a multiple of 8"),
        (lambda: quantized.from_gptq(weight, zeros, scales, bits=5), OptionError, "bits is 5"),
        (lambda: quantized.from_gptq(weight, zeros, scales, version="v3"), OptionError, "version"),
        (lambda: quantized.from_gptq(weight[:8, :1].repeat(16, 1), zeros, scales, swapped + 7),
         IndexRangeError, "groups has an index 8; takes 0 .. 1"),
        (lambda: quantized.from_gptq(weight[:8, :1].repeat(16, 1), zeros, scales, swapped[1:]),
         ShapeError, "g_idx has shape .63.; takes .64."),
        (lambda: quantized.from_compressed_tensors(weight, scales, shape=(64, 24)), ShapeError,
         "weight_packed has shape .64, 2.; takes .64, 3."),
        (lambda: quantized.from_compressed_tensors(weight, scales, shape=(64, 16)), ShapeError,
         "weight_scale has 2 rows; takes 64"),
        (lambda: quantized.from_nvfp4(packed, eights[:, :1], one), ShapeError,
         "weight_scale has shape .4, 1.; takes .4, 2."),
        (lambda: quantized.from_nvfp4(packed[:, :12], eights, one), ShapeError,
         "weight_packed has shape .4, 12., so K = 24; takes a multiple of 16"),
        (lambda: quantized.from_nvfp4(packed, eights, one.repeat(4)), ShapeError,
         "weight_global_scale has shape .4.; takes .1."),
        (lambda: quantized.from_nvfp4(packed, eights, one.astype("f2")), DtypeError,
         "weight_global_scale has dtype float16; takes float32"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


def test_torch_tensors_are_converted_alike():
    torch = pytest.importorskip("torch")
    rng, (n, k) = np.random.default_rng(SEED), (16, 64)
    codes, zeros = rng.integers(0, 16, (k, n)), rng.integers(0, 16, (2, n))
    scales = rng.standard_normal((2, n)).astype(np.float16)
    given = awq_words(codes), awq_words(zeros), scales
    here, there = quantized.from_awq(*given), quantized.from_awq(*map(torch.from_numpy, given))
    same_bits(quantized.dequantize(there).numpy(), quantized.dequantize(here), seed=SEED)
    raw = rng.integers(0, 256, (2, 210), np.uint8)
    here, there = (quantized.from_gguf(x, "q6_k", (2, 256)) for x in (raw, torch.from_numpy(raw)))
    same_bits(there.data.numpy(), here.data, seed=SEED)
    same_bits(there.scales.numpy(), here.scales, seed=SEED)
    same_bits(there.outer.numpy(), here.outer, seed=SEED)
    w = torch.from_numpy(rng.standard_normal((n, k))).to(torch.float8_e4m3fn)
    q = quantized.from_fp8(w, torch.ones(1))
    same_bits(quantized.dequantize(q).numpy(), w.float().numpy(), seed=SEED)
