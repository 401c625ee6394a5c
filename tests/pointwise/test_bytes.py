"""Dtypes of 8 bits in casts and copies: all codes on the CPU device, and how floats are rounded."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from bits import NUMPY, same_bits
from pointwise_cases import BYTE_LAYOUTS, BYTES, KINDS, WHOLE, check_bytes

import ptxgen
from ptxgen import functions as f
from ptxgen import layout, reference
from ptxgen.autograd import operation
from ptxgen.errors import DtypeError, OptionError
from ptxgen.ops.pointwise_table import MOVED, ROWS
from ptxgen.oracle import float8
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.pointwise import INDEXINGS

SEED = 20263
CODES = np.arange(256, dtype=np.uint8)
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
FLOAT8 = list(LARGEST)


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield


def cast(x, to):
    """Casts by the kernel and by the oracle, and compares the bits; returns them."""
    found, wanted = f.cast(x, to), operation(f"cast_{to}").reference(x, out_dtype=to)
    assert found.dtype == wanted.dtype == KINDS[to]
    same_bits(found, wanted, seed=SEED, what=f"{x.dtype} to {to}")
    return found


def floats() -> np.ndarray:
    """Every bf16 and f16, every number between two neighbours of a float of 8 bits, the f32 next to
    it, and random ones.
    """
    halves = np.arange(1 << 16, dtype=np.uint16)
    rng = np.random.default_rng(SEED)
    parts = [(halves.astype(np.uint32) << 16).view("f4"), halves.view("f2").astype("f4")]
    for dtype in FLOAT8:
        values = np.sort(np.unique(float8.upcast(CODES[:0x7C], dtype)))
        values = np.append(values, 2 * values[-1] - values[-2])
        middles = (values[1:] + values[:-1]) / 2
        near = [np.nextafter(middles, np.float32(to)) for to in (-np.inf, np.inf)]
        parts += [s * x for s in (1, -1) for x in (middles, *near, values)]
    parts += [rng.integers(0, 1 << 32, 5000, np.uint32).view("f4")]
    return np.concatenate(parts)


# -- casts --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", BYTES)
def test_every_code_is_cast_to_every_dtype(kind) -> None:
    for to in KINDS:
        found = cast(CODES.view(KINDS[kind]), to)
        if to in NUMPY or (to in WHOLE and kind not in FLOAT8):  # which hold each value
            with np.errstate(invalid="ignore"):
                back = f.cast(found, kind)
            nan = found != found
            np.testing.assert_array_equal(back.view("u1")[~nan], CODES[~nan])
            assert (back.view("u1")[nan] == 0x7F).all()


@pytest.mark.parametrize("kind", FLOAT8)
def test_floats_are_rounded_to_nearest_even(kind) -> None:
    """The kernel's integers, the oracle's table and ml_dtypes agree up to the largest number."""
    x = floats()
    found = cast(x, kind).view("u1")
    with np.errstate(all="ignore"):
        theirs = x.astype(KINDS[kind]).view("u1")
    low = np.abs(x) <= LARGEST[kind]
    np.testing.assert_array_equal(found[low], theirs[low])
    assert low.sum() > 50_000 and (found[np.isnan(x)] == 0x7F).all()
    high = np.abs(x) > LARGEST[kind]
    if kind == "e5m2":
        np.testing.assert_array_equal(found[high], theirs[high])
    else:
        np.testing.assert_array_equal(found[high], np.where(x[high] < 0, 0xFE, 0x7E))


def test_floats_become_whole_and_saturate() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.9, 0.9, 127.5, 128, -128.9, -129, 255.9, 256, 1e30])
    for source in ("f32", "f64", "bf16"):
        given = x.astype(KINDS[source])
        whole = np.trunc(np.nan_to_num(given.astype(float), posinf=1e9, neginf=-1e9))
        np.testing.assert_array_equal(cast(given, "u8"), np.clip(whole, 0, 255))
        np.testing.assert_array_equal(cast(given, "i8"), np.clip(whole, -128, 127))


def test_integers_keep_their_low_bits() -> None:
    for source in ("i32", "i64"):
        limits = np.iinfo(KINDS[source])
        x = np.array([0, -1, 127, 128, 255, 256, -129, 1000, limits.min, limits.max], KINDS[source])
        for to in ("u8", "i8"):
            np.testing.assert_array_equal(cast(x, to), x.astype(KINDS[to]))
    flags = np.array([False, True])
    for to in BYTES:
        np.testing.assert_array_equal(cast(flags, to).astype(float), [0, 1])


# -- moves --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", BYTES)
def test_copies_move_every_bit(kind) -> None:
    """NaNs keep their sign and payload; borders of a pad are the value, rounded."""
    x = CODES.view(KINDS[kind]).reshape(16, 16)
    square = CODES.reshape(16, 16)
    whole = operation("copy")
    for view in (np.s_[:], np.s_[::-1, ::2], np.s_[1:, 3:11]):
        for got in (layout.contiguous(x[view].T), whole(x[view].T), whole.reference(x[view].T)):
            assert got.dtype == KINDS[kind]
            np.testing.assert_array_equal(got.view("u1"), square[view].T)
    for axis in (0, 1):
        got = layout.concat([x, x.T, x[:4] if axis == 0 else x[:, :4]], axis).view("u1")
        last = square[:4] if axis == 0 else square[:, :4]
        np.testing.assert_array_equal(got, np.concatenate([square, square.T, last], axis))
    for roll in (ptxgen.roll, reference.roll):
        np.testing.assert_array_equal(roll(x, 3, 1).view("u1"), np.roll(square, 3, 1))
    part = ptxgen.capture(lambda x: layout.narrow(f.copy(x), 1, 3, 5), x)(x)  # a view of a result
    np.testing.assert_array_equal(part.view("u1"), square[:, 3:8])
    got = layout.pad(x, [(1, 0), (0, 2)], 2)
    np.testing.assert_array_equal(got[1:, :16].view("u1"), square)
    assert (got[0].astype(float) == 2).all() and (got[:, 16:].astype(float) == 2).all()


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_copies_move_every_bit_of_16(kind) -> None:
    """Copies keep sign and payload of a NaN, whatever else their kernel computes; all conversions
    give one NaN.
    """
    codes = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    x = codes.view(KINDS[kind])
    whole = operation("copy")
    for view in (np.s_[:], np.s_[::-1, ::2], np.s_[100:, 3:]):
        for got in (whole(x[view].T), whole.reference(x[view].T)):
            np.testing.assert_array_equal(got.view("u2"), codes[view].T)
    np.testing.assert_array_equal(layout.concat([x, x.T], 1).view("u2")[:, 256:], codes.T)
    kept, turned, rows = ptxgen.capture(
        lambda x: (f.copy(x), f.neg(x), ptxgen.softmax(f.mul(x, 0.5))), x
    )(x)
    np.testing.assert_array_equal(kept.view("u2"), codes)
    expected = np.where(np.isnan(x.astype("f4")), 0x7FFF, codes ^ 0x8000)
    for got in (turned, f.neg.reference(x)):
        np.testing.assert_array_equal(got.view("u2"), expected)
    assert np.isnan(rows[-1].astype("f4")).all()


def test_every_kernel_moves_and_casts_bytes() -> None:
    device = CpuDevice()
    ways = set().union(*(check_bytes(device, name) for name in BYTE_LAYOUTS))
    assert ways == set(INDEXINGS) - {"factor"}


def test_programs_fuse_what_bytes_allow() -> None:
    """Elementwise steps are fused, and bits stay; rows and products read no bytes."""
    x = CODES.view(KINDS["e4m3"]).reshape(8, 32)
    w = np.ones((32, 32), np.float32)

    def function(x, w):
        kept = f.copy(x)
        y = ptxgen.softmax(f.cast(kept, "f32"))
        low = f.cast(f.cast(f.mul(y, 300.0), "u8"), "f32")
        return kept, f.cast(ptxgen.matmul(low, w), "e5m2"), f.cast(f.cast(y, "e4m3"), "f32")

    plain = ptxgen.capture(function, x, w, passes=lambda p: p)(x, w)
    for a, b in zip(plain, ptxgen.capture(function, x, w)(x, w), strict=True):
        same_bits(a, b, what="fused")
    np.testing.assert_array_equal(plain[0].view("u1"), x.view("u1"))


# -- functions and errors -----------------------------------------------------------------------
def test_functions_read_bytes() -> None:
    """Floats of 8 bits are computed in f32, integers in i32, of which a result keeps low bits."""
    scale = np.array(0.3, np.float32)
    scaled = ptxgen.pointwise(lambda x, s: f.cast(x, "f32") * s)
    for kind in BYTES:
        x = CODES.view(KINDS[kind])
        found = scaled(x, scale)
        same_bits(found, x.astype(np.float32) * scale, what=kind)
        same_bits(found, scaled.reference(x, scale), what=kind)
    doubled = ptxgen.pointwise(lambda x: x + x)
    np.testing.assert_array_equal(doubled(CODES), CODES * np.uint8(2))


def test_other_functions_refuse_bytes() -> None:
    for row in ROWS:
        function = getattr(f, row.name)
        given = [CODES.astype(bool) if a == "condition" else CODES for a in function.arguments]
        if row.takes == MOVED:
            assert function(*given).dtype == np.uint8
            continue
        for call in (function, function.reference):
            with pytest.raises(
                DtypeError, match=r"has dtype uint8; takes float32, .* bool(, complex.*)?$"
            ):
                call(*given)
    for wrong in (np.uint16, np.uint32):
        with pytest.raises(DtypeError, match=r"x has dtype .*; takes float32, .* float8_e5m2"):
            f.cast(np.zeros(3, wrong), "f32")
        with pytest.raises(DtypeError, match=r"dtype is .*; takes 'float32', .* 'float8_e5m2'"):
            f.cast(CODES, wrong)
    with pytest.raises(DtypeError, match=r"arrays\[1\] has dtype float8_e5m2.*cast one"):
        layout.concat([CODES.view(ml_dtypes.float8_e4m3fn), CODES.view(ml_dtypes.float8_e5m2)])
    with pytest.raises(OptionError, match=r"value is 256; uint8 has 0 \.\. 255"):
        layout.pad(CODES, [(1, 1)], 256)
