"""Warp-level instructions and matrix layouts, against the formulas of the PTX ISA, lane by lane."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits

from ptxgen.errors import PtxError, SpecError
from ptxgen.interp.text.ptx import Immediate, Instruction, Register, Vector
from ptxgen.interp.units import tensor, warp
from ptxgen.interp.units.tma import TensorMap
from ptxgen.oracle import half
from ptxgen.oracle.dot16 import dot16

SEED = 816


def instruction(name, *operands):
    opcode, *modifiers = name.split(".")
    return Instruction(opcode, tuple(modifiers), operands, line=7, text=f"{name} ...;")


def halves(rng, shape, dtype="bf16"):
    return half.downcast(rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 6, shape), dtype)


def pair(low, high):
    return int(low) | int(high) << 16


def words(warps):
    return np.zeros((warps, 32), np.uint32)


# -- mma ------------------------------------------------------------------------------
# PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
def a_place(lane, i):
    row = lane // 4 + (0 if i in (0, 1, 4, 5) else 8)
    return row, lane % 4 * 2 + i % 2 + (8 if i >= 4 else 0)


def b_place(lane, i):
    return lane % 4 * 2 + i % 2 + (8 if i >= 2 else 0), lane // 4


def c_place(lane, i):
    return lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + i % 2


def fragments(matrix, place, count):
    """Registers of 16-bit pairs of matrices ``[warps, rows, columns]``."""
    out = [words(len(matrix)) for _ in range(count)]
    for w in range(len(matrix)):
        for lane in range(32):
            for r in range(count):
                out[r][w, lane] = pair(*(matrix[w][place(lane, 2 * r + i)] for i in (0, 1)))
    return out


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_mma(dtype, arch):
    rng = np.random.default_rng(SEED)
    warps = 3
    a, b = halves(rng, (warps, 16, 16), dtype), halves(rng, (warps, 16, 8), dtype)
    c = rng.standard_normal((warps, 16, 8)).astype(np.float32)
    c_registers = [np.zeros((warps, 32), np.float32) for _ in range(4)]
    for lane in range(32):
        for i in range(4):
            c_registers[i][:, lane] = c[(slice(None), *c_place(lane, i))]
    run = tensor.mma(instruction(f"mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32")).run
    d = run(fragments(a, a_place, 4), fragments(b, b_place, 2), c_registers, arch)
    for w in range(warps):
        for m in range(16):
            expected = [
                dot16(a[w, m], b[w, :, n], c[w, m, n], dtype=dtype, arch=arch) for n in range(8)
            ]
            got = np.zeros(8, np.float32)
            for lane in range(32):
                for i in range(4):
                    if c_place(lane, i)[0] == m:
                        got[c_place(lane, i)[1]] = d[i][w, lane]
            same_bits(got, np.array(expected, np.float32), seed=SEED, what=f"warp {w}, row {m}")


# PTX ISA, "Matrix Fragments for mma.m16n8k32", 8-bit integers.
def a8_place(lane, i):
    row = lane // 4 + (0 if i < 4 or 8 <= i < 12 else 8)
    return row, lane % 4 * 4 + i % 4 + (16 if i >= 8 else 0)


def b8_place(lane, i):
    return lane % 4 * 4 + i % 4 + (16 if i >= 4 else 0), lane // 4


def fragments8(matrix, place, count):
    """Registers of four bytes of matrices ``[warps, rows, columns]``."""
    out = np.zeros((count, len(matrix), 32, 4), np.uint8)
    for lane in range(32):
        for i in range(4 * count):
            row, column = place(lane, i)
            out[i // 4, :, lane, i % 4] = matrix[:, row, column].view(np.uint8)
    return list(out.view(np.uint32)[..., 0])


@pytest.mark.parametrize("of_b", ["s8", "u8"])
@pytest.mark.parametrize("of_a", ["s8", "u8"])
def test_mma_of_bytes(of_a, of_b):
    """Sums are Python's, modulo 2^32; accumulators start near both ends."""
    rng = np.random.default_rng(SEED)
    warps = 3
    kinds = {"s8": np.int8, "u8": np.uint8}

    def drawn(shape, kind):
        ends = np.iinfo(kinds[kind])
        values = rng.integers(ends.min, ends.max, shape, endpoint=True)
        return np.where(rng.random(shape) < 0.3, ends.min, values).astype(kinds[kind])

    a, b = drawn((warps, 16, 32), of_a), drawn((warps, 32, 8), of_b)
    c = rng.choice(np.array([-(2**31), 2**31 - 1, 0, -77]), (warps, 16, 8)).astype(np.int32)
    c_registers = [np.zeros((warps, 32), np.int32) for _ in range(4)]
    for lane in range(32):
        for i in range(4):
            c_registers[i][:, lane] = c[(slice(None), *c_place(lane, i))]
    made = tensor.mma(instruction(f"mma.sync.aligned.m16n8k32.row.col.s32.{of_a}.{of_b}.s32"))
    assert (made.factor, made.sum, made.counts) == ("b32", "s32", (4, 2, 4))
    d = made.run(fragments8(a, a8_place, 4), fragments8(b, b8_place, 2), c_registers, "sm_80")
    for w in range(warps):
        for lane in range(32):
            for i in range(4):
                m, n = c_place(lane, i)
                exact = int(c[w, m, n]) + sum(
                    int(x) * int(y) for x, y in zip(a[w, m], b[w, :, n], strict=True)
                )
                assert d[i][w, lane] == (exact + 2**31) % 2**32 - 2**31, (w, m, n)
                assert d[i].dtype == np.int32


@pytest.mark.parametrize(
    "name",
    [
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
        "mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.f32",
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        "mma.sync.aligned.m16n8k16.row.row.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32",
        "mma.m16n8k16.row.col.f32.bf16.bf16.f32",
    ],
)
def test_mma_refuses(name):
    with pytest.raises(PtxError, match=r"m16n8k16\.row\.col\.f32") as caught:
        tensor.mma(instruction(name))
    assert caught.value.line == 7
    assert name in caught.value.text


# -- ldmatrix, stmatrix -----------------------------------------------------------------
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_and_stmatrix(count, transposed):
    rng = np.random.default_rng(SEED)
    warps = 2
    matrices = rng.integers(0, 1 << 16, (warps, count, 8, 8)).astype(np.uint16)
    rows = matrices.view(np.uint8).reshape(warps, 8 * count, 16)
    suffix = f"sync.aligned.m8n8.x{count}{'.trans' * transposed}.shared.b16"
    load, store = (
        tensor.matrix_move(instruction(f"{op}.{suffix}")) for op in ("ldmatrix", "stmatrix")
    )
    assert load.count == count
    assert load.lanes == 8 * count
    loaded = load.load(rows)
    assert len(loaded) == count
    for i, register in enumerate(loaded):
        for w in range(warps):
            m = matrices[w, i].T if transposed else matrices[w, i]
            for lane in range(32):
                row, column = lane // 4, lane % 4 * 2
                assert register[w, lane] == pair(m[row, column], m[row, column + 1])
    assert (store.store(loaded).view(np.uint8) == rows).all()


def test_tile_through_ldmatrix():
    """A and B row-major in memory, as kernels load them: x4, and x2.trans."""
    rng = np.random.default_rng(SEED)
    a, b = halves(rng, (16, 16)), halves(rng, (16, 8))
    a_rows = [a[lane % 16, lane // 16 * 8 :][:8] for lane in range(32)]
    b_rows = [b[lane] for lane in range(16)]
    fa = tensor.MatrixMove(4, transposed=False).load(np.array(a_rows)[None])
    fb = tensor.MatrixMove(2, transposed=True).load(np.array(b_rows)[None])
    zero = [np.zeros((1, 32), np.float32)] * 4
    run = tensor.mma(instruction("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")).run
    d = run(fa, fb, zero, "sm_90")
    got = np.empty((16, 8), np.float32)
    for lane in range(32):
        for i in range(4):
            got[c_place(lane, i)] = d[i][0, lane]
    same_bits(got, dot16(a[:, None], b.T, 0.0, dtype="bf16"), seed=SEED)


# -- shfl -----------------------------------------------------------------------------
def shuffle_lane(mode, lane, b, c):
    """The pseudocode of the PTX ISA: (source, predicate)."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    max_lane = (lane & segment) | (clamp & ~segment & 31)
    min_lane = lane & segment
    if mode == "up":
        j = lane - b
        p = j >= max_lane
    elif mode == "down":
        j = lane + b
        p = j <= max_lane
    elif mode == "bfly":
        j = lane ^ b
        p = j <= max_lane
    else:
        j = min_lane | (b & ~segment & 31)
        p = j <= max_lane
    return (j if p else lane), p


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl(mode):
    rng = np.random.default_rng(SEED)
    warps = 5
    value = rng.integers(0, 1 << 32, (warps, 32)).astype(np.uint32)
    run = warp.shfl(instruction(f"shfl.sync.{mode}.b32"))
    cs = [0x1F, 0, 0x181F, 0x1C00, 0x1E1F, 0x0807]
    uniform = [(b, c) for b in (0, 1, 2, 3, 7, 16, 31, 32, 35) for c in cs]
    cases = [
        tuple(np.broadcast_to(np.array([x], np.uint32), (warps, 32)) for x in case)
        for case in uniform
    ]
    spread = rng.integers(0, 40, (warps, 32)).astype(np.uint32)
    cases += [(spread, np.full((warps, 32), c, np.uint32)) for c in cs]
    cases += [(spread, rng.choice(np.array(cs, np.uint32), (warps, 32)))]
    for b, c in cases:
        result, valid, sources = run(value, b, c)
        valid, sources = (np.broadcast_to(x, (warps, 32)) for x in (valid, sources))
        for w in range(warps):
            for lane in range(32):
                j, p = shuffle_lane(mode, lane, int(b[w, lane]), int(c[w, lane]))
                where = (mode, w, lane, int(b[w, lane]), int(c[w, lane]))
                assert (valid[w, lane], sources[w, lane]) == (p, j), where
                assert result[w, lane] == value[w, j], where


# -- vote, match, redux, elect ----------------------------------------------------------
def groups(rng, warps):
    """Active lanes and member masks: whole warps, parts of one, and two parts at once."""
    active = rng.random((warps, 32)) < 0.7
    active[0] = True
    mask = np.zeros((warps, 32), np.uint32)
    for w in range(warps):
        side = rng.random(32) < 0.5 if w % 2 else np.ones(32, np.bool_)
        for part in (side & active[w], ~side & active[w]):
            mask[w, part] = sum(1 << int(lane) for lane in np.flatnonzero(part))
    return active, mask


def lanes_of(mask):
    return [lane for lane in range(32) if int(mask) >> lane & 1]


@pytest.mark.parametrize("density", [0.0, 0.1, 0.9, 1.0])
def test_vote(density):
    rng = np.random.default_rng(SEED)
    active, mask = groups(rng, 6)
    flags = rng.random((6, 32)) < density
    models = {
        "all.pred": all,
        "any.pred": any,
        "uni.pred": lambda votes: len(set(votes)) == 1,
        "ballot.b32": None,
    }
    for name, model in models.items():
        result = warp.vote(instruction(f"vote.sync.{name}"))(flags, active, mask)
        for w, lane in zip(*np.nonzero(active), strict=True):
            inside = lanes_of(mask[w, lane])
            if model is None:
                expected = sum(1 << j for j in inside if flags[w, j])
            else:
                expected = model([bool(flags[w, j]) for j in inside])
            assert result[w, lane] == expected, (name, w, lane)


@pytest.mark.parametrize("distinct", [1, 3])
@pytest.mark.parametrize("bits", [32, 64])
def test_match(bits, distinct):
    rng = np.random.default_rng(SEED)
    active, mask = groups(rng, 6)
    values = rng.integers(0, 1 << bits, distinct, dtype=np.uint64).astype(f"u{bits // 8}")
    value = rng.choice(values, (6, 32))
    some, _ = warp.match(instruction(f"match.any.sync.b{bits}"))(value, active, mask)
    whole, agree = warp.match(instruction(f"match.all.sync.b{bits}"))(value, active, mask)
    for w, lane in zip(*np.nonzero(active), strict=True):
        inside = lanes_of(mask[w, lane])
        expected = sum(1 << j for j in inside if value[w, j] == value[w, lane])
        assert some[w, lane] == expected
        assert agree[w, lane] == (expected == mask[w, lane])
        assert whole[w, lane] == (mask[w, lane] if expected == mask[w, lane] else 0)


@pytest.mark.parametrize("name", ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32",
                                  "and.b32", "or.b32", "xor.b32"])  # fmt: skip
def test_redux(name):
    rng = np.random.default_rng(SEED)
    active, mask = groups(rng, 6)
    operation, kind = name.split(".")
    dtype = np.dtype(np.int32 if kind == "s32" else np.uint32)
    value = rng.integers(0, 1 << 32, (6, 32)).astype(np.uint32).view(dtype)
    if operation == "and":
        value |= np.uint32(0xFFFF_FF00)
    models = {
        "add": lambda x, y: x + y,
        "min": min,
        "max": max,
        "and": lambda x, y: x & y,
        "or": lambda x, y: x | y,
        "xor": lambda x, y: x ^ y,
    }
    for chosen in (slice(0, 1), slice(0, 5, 2), slice(None)):  # one mask a warp, or several
        result = warp.redux(instruction(f"redux.sync.{name}"))(
            value[chosen], active[chosen], mask[chosen]
        )
        assert result.dtype == dtype
        for w, lane in zip(*np.nonzero(active[chosen]), strict=True):
            inside = [int(value[chosen][w, j]) for j in lanes_of(mask[chosen][w, lane])]
            expected = inside[0]
            for x in inside[1:]:
                expected = models[operation](expected, x)
            assert int(result[w, lane]) % (1 << 32) == expected % (1 << 32), (w, lane)


def test_elect_and_activemask():
    rng = np.random.default_rng(SEED)
    active, mask = groups(rng, 6)
    leader, chosen = warp.elect(active, mask)
    everyone = warp.activemask(active)
    for w, lane in zip(*np.nonzero(active), strict=True):
        inside = lanes_of(mask[w, lane])
        assert leader[w, lane] == inside[0]
        assert chosen[w, lane] == (lane == inside[0])
        assert everyone[w, lane] == sum(1 << j for j in range(32) if active[w, j])


@pytest.mark.parametrize(
    "name",
    [
        "shfl.sync.left.b32",
        "shfl.up.b32",
        "vote.sync.all.b32",
        "vote.ballot.b32",
        "match.any.sync.b16",
        "redux.sync.add.b32",
        "redux.sync.max.f32",
    ],
)
def test_exchanges_refuse(name):
    with pytest.raises(PtxError, match="outside the subset") as caught:
        getattr(warp, name.partition(".")[0])(instruction(name))
    assert caught.value.line == 7


@pytest.mark.parametrize(
    "name",
    [
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32",
        "stmatrix.sync.aligned.m8n8.x1.global.b16",
        "ldmatrix.m8n8.x1.shared.b16",
    ],
)
def test_matrix_moves_refuse(name):
    with pytest.raises(PtxError, match="m8n8"):
        tensor.matrix_move(instruction(name))


# -- wgmma ----------------------------------------------------------------------------
def chunk_place(address, width):
    """Swizzled address of a byte: the chunk's number in its row of the pattern, xor the row's."""
    rows_of_128, low = divmod(address, 128)
    chunk, byte = divmod(low, 16)
    per_row = max(width // 16, 1)
    return rows_of_128 * 128 + (chunk ^ rows_of_128 % per_row) * 16 + byte


def fill(matrix, width, transposed, start, leading, stride, size=1 << 16):
    """Shared memory with ``matrix`` ``[rows, 16]`` in the canonical layout of a descriptor.

    In units of 128 bits (T = 8 elements), from the table of canonical layouts.
    """
    memory = np.zeros(size, np.uint8)
    for row in range(matrix.shape[0]):
        for k in range(16):
            if not transposed and width == 0:
                offset = row % 8 * 16 + row // 8 * stride + k // 8 * leading + k % 8 * 2
            elif not transposed:
                offset = row % 8 * width + row // 8 * stride + k * 2
            elif width == 0:
                offset = row % 8 * 2 + row // 8 * stride + k % 8 * 16 + k // 8 * leading
            else:
                inner, unit, outer = row % 8, row // 8 % (width // 16), row // (width // 2)
                offset = inner * 2 + unit * 16 + outer * leading + k % 8 * width + k // 8 * stride
            at = chunk_place(start + offset, width)
            memory[at : at + 2] = np.array([matrix[row, k]], np.uint16).view(np.uint8)
    return memory


def descriptor(start, leading, stride, width, base=0):
    code = {0: 0, 128: 1, 64: 2, 32: 3}[width]
    fields = (start >> 4, 0), (leading >> 4, 16), (stride >> 4, 32), (base, 49), (code, 62)
    return sum(value << low for value, low in fields)


def strides(rows, width, transposed):
    """Leading and stride byte offsets of a dense matrix."""
    if not transposed:
        return (rows * 16, 128) if width == 0 else (16, 8 * width)
    if width == 0:
        return rows // 8 * 128, 128
    return 16 * width, 8 * width  # the two halves along K, then the next rows


def gathered(memory, addresses):
    return memory[addresses[..., None] + np.arange(16)]


LAYOUTS = [(width, transposed) for width in (0, 32, 64, 128) for transposed in (False, True)]


@pytest.mark.parametrize(("width", "transposed"), LAYOUTS)
@pytest.mark.parametrize("rows", [8, 64, 128, 256])
def test_shared_matrix(rows, width, transposed):
    matrix = np.arange(rows * 16, dtype=np.uint16).reshape(rows, 16) + 1
    leading, stride = strides(rows, width, transposed)
    places = []
    starts = (1024, 3072)
    operand = tensor.SharedMatrix(rows, transposed)
    ds = np.array([descriptor(s, leading, stride, width) for s in starts], np.uint64)
    chunks = operand.chunks(ds)
    elements = operand.elements(ds)
    assert chunks.shape == (2, 2 * rows)
    for i, start in enumerate(starts):
        memory = fill(matrix, width, transposed, start, leading, stride)
        assert np.count_nonzero(memory.view(np.uint16)) == matrix.size  # nothing lies on another
        got = operand.matrix(gathered(memory, chunks[i : i + 1]))
        assert (got[:, 0, :] == matrix.T).all()
        assert (memory.view(np.uint16)[elements[i] // 2] == matrix).all()
        places.append(chunks[i] - start)
    assert (places[0] == places[1]).all()


@pytest.mark.parametrize(
    ("width", "leading", "stride", "row_strides", "k_strides"),
    [
        (0, 128, 64, {1: 1, 8: 64}, {1: 8, 8: 128}),
        (32, 128, 256, {1: 1, 8: 8, 16: 128}, {1: 16, 8: 256}),
        (64, 256, 512, {1: 1, 8: 8, 32: 256}, {1: 32, 8: 512}),
    ],
)
def test_documented_examples(width, leading, stride, row_strides, k_strides):
    """The examples of MN-major bf16 matrices in the PTX ISA; offsets and strides in elements."""
    rows = {0: 16, 32: 32, 64: 64}[width]

    def place(index, strides):
        total = 0
        for unit in sorted(strides, reverse=True):
            total, index = total + index // unit * strides[unit], index % unit
        return total

    d = np.array([descriptor(1024, 2 * leading, 2 * stride, width)], np.uint64)
    elements = tensor.SharedMatrix(rows, True).elements(d)[0]
    for row in range(rows):
        for k in range(16):
            offset = 2 * (place(row, row_strides) + place(k, k_strides))
            assert elements[row, k] == chunk_place(1024 + offset, width)


def test_steps_along_k():
    """Kernels step along K in a swizzled pattern by 32 bytes in the start address."""
    matrix = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    memory = np.zeros(1 << 14, np.uint8)
    for row in range(64):
        for k in range(64):
            at = chunk_place(1024 + row * 128 + k * 2, 128)
            memory[at : at + 2] = np.array([matrix[row, k]], np.uint16).view(np.uint8)
    operand = tensor.SharedMatrix(64, False)
    for step in range(4):
        d = np.array([descriptor(1024 + 32 * step, 16, 1024, 128)], np.uint64)
        got = operand.matrix(gathered(memory, operand.chunks(d)))
        assert (got[:, 0, :] == matrix[:, 16 * step : 16 * step + 16].T).all()


def test_base_offset():
    """A pattern that starts three rows of 128 bytes after a boundary of 1024."""
    operand = tensor.SharedMatrix(8, False)
    anchored = operand.chunks(np.array([descriptor(1024, 16, 1024, 128)], np.uint64))
    moved = operand.chunks(np.array([descriptor(1024 + 384, 16, 1024, 128, base=3)], np.uint64))
    assert (moved - 384 == anchored).all()
    unaware = operand.chunks(np.array([descriptor(1024 + 384, 16, 1024, 128)], np.uint64))
    assert (unaware != moved).any()


def d_place(thread, i):
    """Row and column of register i of an accumulator m64nN, thread of the warpgroup."""
    row = thread // 32 * 16 + thread % 32 // 4 + (8 if i % 4 >= 2 else 0)
    return row, i // 4 * 8 + thread % 4 * 2 + i % 2


def wgmma_of(n, dtype, registers, scales=(1, 1), transposed=(0, 0)):
    d = Vector(tuple(Register(f"%f{i}") for i in range(n // 2)))
    a = Vector(tuple(Register(f"%r{i}") for i in range(4))) if registers else Register("%rd1")
    immediates = [*scales, *(transposed[1:] if registers else transposed)]
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{dtype}.{dtype}"
    b, scale_d = Register("%rd2"), Register("%p1")
    return tensor.wgmma(instruction(name, d, a, b, scale_d, *(Immediate(x) for x in immediates)))


@pytest.mark.parametrize(
    ("n", "dtype", "registers", "width", "transposed", "scales"),
    [
        (64, "bf16", False, 128, (0, 0), (1, 1)),
        (128, "f16", False, 128, (0, 1), (1, 1)),
        (64, "bf16", False, 64, (1, 1), (1, -1)),
        (32, "bf16", True, 32, (0, 0), (-1, 1)),
        (8, "f16", True, 0, (0, 1), (-1, -1)),
        (24, "bf16", False, 0, (1, 0), (1, 1)),
        (256, "bf16", False, 128, (0, 0), (1, 1)),
    ],
)
def test_wgmma(n, dtype, registers, width, transposed, scales):
    rng = np.random.default_rng(SEED)
    groups = 2
    a, b = halves(rng, (groups, 64, 16), dtype), halves(rng, (groups, n, 16), dtype)
    c = rng.standard_normal((groups, 64, n)).astype(np.float32)
    made = wgmma_of(n, dtype, registers, scales, transposed)
    assert made.registers == n // 2

    def operand(shared, matrices, rows, flag):
        leading, stride = strides(rows, width, flag)
        parts = []
        for matrix in matrices:
            memory = fill(matrix, width, flag, 2048, leading, stride)
            d = np.array([descriptor(2048, leading, stride, width)], np.uint64)
            parts.append(gathered(memory, shared.chunks(d)))
        return shared.matrix(np.concatenate(parts))

    if registers:
        assert made.a is None
        left = made.a_of(fragments(a.reshape(groups * 4, 16, 16), a_place, 4))
    else:
        left = operand(made.a, a, 64, transposed[0])
    right = operand(made.b, b, n, transposed[1])
    start = [np.empty((groups * 4, 32), np.float32) for _ in range(n // 2)]
    for thread in range(128):
        for i in range(n // 2):
            start[i].reshape(groups, 128)[:, thread] = c[(slice(None), *d_place(thread, i))]
    scale_d = np.array([True, False])
    d = made.run(left, right, start, scale_d, "sm_90")
    assert len(d) == n // 2
    a, b = a ^ (0x8000 if scales[0] < 0 else 0), b ^ (0x8000 if scales[1] < 0 else 0)
    for g in range(groups):
        expected = dot16(a[g][:, None], b[g], c[g] if scale_d[g] else 0.0, dtype=dtype)
        got = np.empty((64, n), np.float32)
        for thread in range(128):
            for i in range(n // 2):
                got[d_place(thread, i)] = d[i].reshape(groups, 128)[g, thread]
        same_bits(got, expected, seed=SEED, what=f"group {g}")


def wgmma8_of(n, element, registers=False, more=()):
    d = Vector(tuple(Register(f"%r{i}") for i in range(n // 2)))
    a = Vector(tuple(Register(f"%a{i}") for i in range(4))) if registers else Register("%rd1")
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.{element}.{element}"
    rest = (Immediate(x) for x in more)
    return tensor.wgmma(instruction(name, d, a, Register("%rd2"), Register("%p1"), *rest))


@pytest.mark.parametrize(
    ("n", "element", "registers", "width"),
    [(8, "s8", False, 128), (24, "u8", False, 0), (48, "s8", False, 64), (256, "u8", True, 32)],
)
def test_wgmma_of_bytes(n, element, registers, width):
    """Exact sums, which wrap; a byte lies where half of a 16-bit number would."""
    rng = np.random.default_rng(SEED)
    low = -128 if element == "s8" else 0
    a, b = (rng.integers(low, low + 256, (rows, 32)) for rows in (64, n))
    c = rng.integers(-(1 << 31), 1 << 31, (64, n))
    made = wgmma8_of(n, element, registers)
    assert (made.registers, made.sum) == (n // 2, "s32")

    def pairs(matrix):
        return (matrix & 255).astype(np.uint8).view(np.uint16)

    def operand(shared, matrix):
        leading, stride = strides(len(matrix), width, False)
        memory = fill(pairs(matrix), width, False, 2048, leading, stride)
        d = np.array([descriptor(2048, leading, stride, width)], np.uint64)
        return shared.matrix(gathered(memory, shared.chunks(d)))

    if registers:
        assert made.a is None
        left = made.a_of(fragments(pairs(a).reshape(4, 16, 16), a_place, 4))
    else:
        left = operand(made.a, a)
    start = [np.empty((4, 32), np.int32) for _ in range(n // 2)]
    for thread in range(128):
        for i in range(n // 2):
            start[i].reshape(128)[thread] = c[d_place(thread, i)]
    for keep in (True, False):
        d = made.run(left, operand(made.b, b), start, np.array([keep]), "sm_90")
        expected = (a @ b.T + c * keep).astype(np.int32)
        for thread in (0, 1, 37, 127):
            for i in range(n // 2):
                assert d[i].dtype == np.int32
                assert d[i].reshape(128)[thread] == expected[d_place(thread, i)]


def test_wgmma_refuses():
    for n, element in ((0, "s8"), (12, "s8"), (40, "u8"), (264, "u8"), (16, "s4")):
        with pytest.raises(PtxError, match="N a multiple of 8 up to 32 or of 16"):
            wgmma8_of(n, element)
    with pytest.raises(PtxError, match=r"the descriptor of B, scale-d\n"):
        wgmma8_of(16, "s8", more=(1, 1))
    for n in (0, 4, 12, 264):
        with pytest.raises(PtxError, match="up to 256"):
            wgmma_of(n, "bf16", True)
    with pytest.raises(PtxError, match="up to 256"):
        wgmma_of(64, "tf32", True)
    with pytest.raises(PtxError, match="two scales of 1 or -1"):
        wgmma_of(64, "bf16", False, scales=(2, 1))
    with pytest.raises(PtxError, match="two scales of 1 or -1"):
        wgmma_of(64, "bf16", True, transposed=(0, 3))


# -- tensor maps ------------------------------------------------------------------------
def a_map(**changes):
    fields = {
        "address": 0x1000, "itemsize": 2, "dims": (50, 20, 3), "strides": (112, 112 * 20),
        "box": (32, 8, 2), "swizzle": 64,
    }  # fmt: skip
    return TensorMap(**{**fields, **changes})


MAPS = [
    a_map(),
    a_map(swizzle=0, box=(40, 5, 3)),
    a_map(swizzle=128, box=(64, 8, 1), element_strides=(1, 3, 1)),
    a_map(swizzle=32, box=(16, 16, 1)),
    TensorMap(1 << 44, 4, (1000,), (), (256,)),
    TensorMap(16, 8, (9, 2, 3, 4, 5), (80, 160, 480, 1920), (4, 2, 2, 2, 2), (1, 1, 2, 1, 1), 32),
]


@pytest.mark.parametrize("one", MAPS)
def test_tensor_map_survives_encoding(one):
    data = one.encode()
    assert len(data) == 128
    assert TensorMap.decode(data) == one


@pytest.mark.parametrize("one", MAPS)
def test_box(one):
    rng = np.random.default_rng(SEED)
    rank = len(one.dims)
    for _ in range(4):
        corner = [int(rng.integers(-5, n + 1)) for n in one.dims]
        addresses, inside = one.global_addresses(corner)
        shared = one.shared_addresses(4096)
        steps = (1, *one.element_strides[1:])
        counts = [len(range(0, n, s)) for n, s in zip(one.box, steps, strict=True)]
        assert one.nbytes == int(np.prod(counts)) * one.itemsize
        assert len(set(shared.tolist())) == len(shared) == len(addresses)
        for flat, index in enumerate(np.ndindex(*counts[::-1])):
            at = [corner[d] + index[rank - 1 - d] * steps[d] for d in range(rank)]
            within = all(0 <= x < n for x, n in zip(at, one.dims, strict=True))
            assert inside[flat] == within
            if within:
                outer = sum(x * s for x, s in zip(at[1:], one.strides, strict=True))
                assert addresses[flat] == one.address + at[0] * one.itemsize + outer
            assert shared[flat] == chunk_place(4096 + flat * one.itemsize, one.swizzle)


def test_box_is_what_wgmma_reads():
    """A K-major box with a swizzle of 128 bytes lies as a descriptor of that width says."""
    one = TensorMap(0x10000, 2, (64, 64), (128,), (64, 64), swizzle=128)
    addresses, inside = one.global_addresses([0, 0])
    assert inside.all()
    shared = one.shared_addresses(2048)
    operand = tensor.SharedMatrix(64, False)
    memory = np.zeros(1 << 14, np.int64)
    memory[shared // 2] = addresses
    for step in range(4):
        d = np.array([descriptor(2048 + 32 * step, 16, 1024, 128)], np.uint64)
        rows, k = np.mgrid[0:64, 16 * step : 16 * step + 16]
        assert (memory[operand.elements(d)[0] // 2] == 0x10000 + rows * 128 + k * 2).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"address": 8}, "multiple of 16"),
        ({"itemsize": 3}, "1, 2, 4 or 8"),
        ({"dims": (50, 0, 3)}, r"1 to 2\^32"),
        ({"dims": ()}, "1 to 5"),
        ({"strides": (112,)}, "2, 3 and 3"),
        ({"strides": (100, 2240)}, "multiples of 16"),
        ({"box": (32, 257, 1)}, r"1 to \(256, 256, 256\)"),
        ({"box": (4, 8, 2)}, "rows of 8 bytes"),
        ({"box": (64, 8, 2)}, "swizzle's width of 64"),
        ({"element_strides": (1, 9, 1)}, "1 to 8"),
        ({"swizzle": 16}, "0, 32, 64 or 128"),
    ],
)
def test_tensor_map_refuses(changes, message):
    with pytest.raises(SpecError, match=message):
        a_map(**changes)


def test_tensor_map_refuses_other_bytes():
    data = a_map().encode()
    for bad in (data[:64], b"\0" * 128, data[:16] + b"\0" * 112):
        with pytest.raises(SpecError, match="tensor map"):
            TensorMap.decode(bad)
    with pytest.raises(SpecError, match="2 coordinates"):
        a_map().global_addresses([0, 0])
