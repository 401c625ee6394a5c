"""Kernels that decode weights in registers: every code, with scales of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import quantized, reference
from ptxgen.build.compile import compile_cubin
from ptxgen.build.render import source
from ptxgen.numerics.contract import TC16_CHUNKS
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.formats.zero_point import INT4_ZERO_POINT
from ptxgen.numerics.weight_format import BYTES, Quantized
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.quantized_held import QuantizedHeldSpec
from ptxgen.spec.quantized_mma import QuantizedTensorSpec
from ptxgen.spec.quantized_packed import DECODERS, QuantizedGemmSpec
from ptxgen.spec.quantized_skinny import QuantizedSkinnySpec
from ptxgen.spec.quantized_wgmma import QuantizedWgmmaSpec
from ptxgen.tiles import TABLES

ml_dtypes = pytest.importorskip("ml_dtypes")

KEY = ("quantized", "NT", "chunks", "half", "tc")
SKINNY = (
    ("nf4", "bfloat16"),
    ("iq4_nl", "bfloat16"),
    ("int4_block", "bfloat16"),
    ("int4_block_asym", "bfloat16"),
    ("int4_block_g64_bf16", "bfloat16"),
    ("int4_block_g128_f16", "bfloat16"),
    ("int4_block_g128_f16", "float16"),
    ("q4_0", "bfloat16"),
    ("int4_zero_point", "bfloat16"),
    ("int4_zero_point", "float16"),
    ("int4_zero_point_g64_bf16", "bfloat16"),
    ("mxfp4", "bfloat16"),
    ("q4_k_prepared", "bfloat16"),
    ("int8_block", "bfloat16"),
    ("int8_zero_point", "bfloat16"),
    ("fp8_e4m3", "bfloat16"),
    ("fp8_e5m2", "bfloat16"),
    ("mxfp8", "float16"),
)
"""Formats and dtypes of x: all decoders, encodings and kinds of scales."""
EIGHT = (
    ("int4_block", "bfloat16"),
    ("int4_block_g128_f16", "bfloat16"),
    ("int4_zero_point", "float16"),
    ("mxfp4", "bfloat16"),
    ("int8_zero_point", "bfloat16"),
    ("fp8_e4m3", "bfloat16"),
    ("fp8_e5m2", "bfloat16"),
)
"""Formats and dtypes for kernels whose helper warps decode."""
HELD = (
    ("nf4", "bfloat16"),
    ("int4_block", "bfloat16"),
    ("int4_block_g128_f16", "bfloat16"),
    ("int4_zero_point", "float16"),
    ("mxfp4", "bfloat16"),
    ("q4_k_prepared", "bfloat16"),
    ("int8_zero_point", "bfloat16"),
    ("fp8_e4m3", "bfloat16"),
    ("mxfp8", "float16"),
)
"""Formats and dtypes for wgmma whose operand in registers is decoded: all decoders."""
CASES = (
    *((QuantizedSkinnySpec, *each) for each in SKINNY),
    *((QuantizedHeldSpec, *each) for each in HELD),
    *((QuantizedTensorSpec, *each) for each in EIGHT),
    (QuantizedWgmmaSpec, "int4_zero_point", "bfloat16"),
    (QuantizedWgmmaSpec, "q8_0", "float16"),
)
N = 64


def first(kind: type[QuantizedGemmSpec], wanted: Quantized) -> QuantizedGemmSpec:
    """Returns the first listed kernel of a class, for a dtype and a format."""
    return next(
        r.main.of(wanted)
        for r in TABLES[KEY].routes
        if isinstance(r.main, kind) and r.takes(wanted)
    )


def scales(rng: Any, dtype: str, count: int) -> Any:
    """Returns scales that begin with special ones: zeros, the least and the largest, Inf, NaN."""
    if dtype in BYTES:
        stored = np.arange(count) % 256 if dtype != "e8m0" else (np.arange(count) * 37) % 256
        return stored.astype("i1" if dtype == "i8" else "u1")
    kind = np.dtype({"f32": "f4", "f16": "f2", "bf16": ml_dtypes.bfloat16}[dtype])
    info = ml_dtypes.finfo(kind)
    least, most = float(info.smallest_subnormal), float(info.max)
    special = [0.0, -0.0, least, -3 * least, float(info.tiny), most, -most, np.inf, -np.inf, np.nan]
    found = rng.standard_normal(count) * 2.0 ** rng.integers(-8, 8, count)
    found[: len(special)] = special
    return found.astype(kind)


def weight(name: str) -> tuple[quantized.QuantizedWeight, int]:
    """Returns a weight that has every code with each of its rows' scales, and its K. Only the last
    rows have codes of NaN and Inf.
    """
    row = format_named(name)
    k = max(128, 1 << row.bits)
    rng = np.random.default_rng(3)
    codes = (np.arange(k)[None] * 5 + np.arange(N)[:, None] * 3) % (1 << row.bits)
    finite = np.isfinite(row.values)[codes]
    codes[:-4] = np.where(finite, codes, 0)[:-4]  # a NaN makes all products with its row NaN
    if row.bits == 4:
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    arrays = {"data": codes.astype("u1")}
    for array, (dtype, block, _) in row.beside.items():
        each = scales(rng, dtype, N)
        arrays[array] = np.repeat(each[:, None], k // block, 1)
        if array == "offsets":
            arrays[array] = np.ascontiguousarray(arrays[array][::-1])
    return quantized.QuantizedWeight(row, **arrays, shape=(N, k)), k


@pytest.mark.parametrize(
    ("kind", "name", "dtype"), CASES, ids=[f"{k.family}-{n}-{d}" for k, n, d in CASES]
)
def test_every_code_is_decoded(kind: type[QuantizedGemmSpec], name: str, dtype: str) -> None:
    """Products with the unit matrix return the decoded weight, code for code and scale for scale,
    and those with random numbers the oracle's bits.
    """
    q, k = weight(name)
    spec = first(kind, Quantized(DTYPES[dtype], q.format))
    numbers = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    random = np.random.default_rng(1).standard_normal((11, k))
    x = np.concatenate((np.eye(k), random)).astype(numbers)
    with np.errstate(all="ignore"), ptxgen.use_device(CpuDevice()):
        found = quantized.linear(x, q, kernel=spec.name)
        wanted = reference.quantized_linear(x, q)
    nan = np.isnan(wanted.astype("f4"))
    assert 0 < nan.mean() < 0.5 or q.format.scales in BYTES
    np.testing.assert_array_equal(np.isnan(found.astype("f4")), nan)
    np.testing.assert_array_equal(found.view("u2")[~nan], wanted.view("u2")[~nan])


def test_the_cases_have_all_decoders() -> None:
    """Each decoder decodes fragments, and each but the table groups of eight codes."""
    for kind, wanted in (
        (QuantizedSkinnySpec, DECODERS),
        (QuantizedHeldSpec, DECODERS),
        (QuantizedTensorSpec, DECODERS[:-1]),
    ):
        of = [first(kind, Quantized(DTYPES[d], format_named(n))) for k, n, d in CASES if k is kind]
        assert {spec.decoder for spec in of} == set(wanted)


@pytest.mark.parametrize("name", ["int4_zero_point", "nf4", "mxfp4", "fp8_e4m3", "int8_block"])
def test_products_overlap(name: str) -> None:
    """The compiler does not issue wgmma one by one: codes are decoded while products run."""
    spec = first(QuantizedHeldSpec, Quantized("bf16", format_named(name)))
    assert "C751" not in compile_cubin(source(spec), name=spec.name, arch="sm_90a").log


SPLIT = {
    r.main.of(Quantized("bf16", INT4_ZERO_POINT)).name: r.main
    for r in TABLES[KEY].routes
    if isinstance(r.main, (QuantizedSkinnySpec, QuantizedHeldSpec)) and r.main.split != "none"
}
"""Kernels that compute chunks side by side, by name."""


def split_kernels() -> Iterator[Any]:
    """Yields the kernels; of those that differ in their tiles alone all but the first are long."""
    seen = set()
    for name, spec in SPLIT.items():
        alike = type(spec), spec.split, getattr(spec, "sums", 0)
        yield pytest.param(name, marks=pytest.mark.long if alike in seen else ())
        seen.add(alike)


@pytest.mark.parametrize("name", list(split_kernels()))
def test_chunks_are_added_in_order(name: str) -> None:
    """Every listed kernel with as many chunks as it takes, the last one short."""
    chunks = getattr(SPLIT[name], "sums", 3)
    k = 3072 * (chunks - 1) + 1152 if chunks > 1 else 1152
    assert TC16_CHUNKS.chunks(k) == chunks
    rng, n = np.random.default_rng(chunks), 40
    arrays = {
        "data": rng.integers(0, 256, (n, k // 2), np.uint8),
        "scales": rng.uniform(0.5, 2, (n, k // 128)).astype("f2"),
        "offsets": rng.integers(0, 17, (n, k // 128), np.uint8),
    }
    q = quantized.QuantizedWeight(INT4_ZERO_POINT, **arrays, shape=(n, k))
    x = rng.standard_normal((9, k)).astype(ml_dtypes.bfloat16)
    with ptxgen.use_device(CpuDevice()):
        found = quantized.linear(x, q, kernel=name)
    np.testing.assert_array_equal(found.view("u2"), reference.quantized_linear(x, q).view("u2"))
