"""Matrix instructions: mma, ldmatrix and stmatrix, wgmma and its shared-memory descriptors.

Registers are arrays ``[warps, 32]``; the four warps of a warpgroup are consecutive. Products of
16-bit factors *are* :mod:`ptxgen.oracle.dot16`, so only recorded answers of an H200 test them
(``tests/conformance``). Those of f64 are a chain of fma; integers are accumulated modulo 2^32.

Source: PTX ISA 9.0, 9.7.14 (mma, ldmatrix, stmatrix) and 9.7.15 (wgmma); the layouts of 9.7.15.5.1
in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ptxgen.interp.text.ptx import WARP, Immediate, Instruction, Vector
from ptxgen.interp.units.warp import refuse
from ptxgen.oracle import f64
from ptxgen.oracle.dot16 import accumulate, factors, tensor_core
from ptxgen.oracle.half import U16

Array = NDArray[Any]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Registers = Sequence[Array]

K = 16
"""Reduction length (k) of all matrix instructions of 16-bit factors."""


# -- fragments ------------------------------------------------------------------------
# Lane l of a warp is (g, t) = (l // 4, l % 4). A register of 16-bit pairs holds columns 2t and
# 2t + 1, the lower half first, of row g; further registers are 8 rows or 8 columns on.
def fragment_a(a: Registers) -> U16:
    """Converts A (16x16 per warp, four registers) to ``[16 k, warps, 16 m]``."""
    halves = np.stack(a).view(np.uint16).reshape(2, 2, -1, 8, 4, 2)  # k8, m8, warp, g, t, pair
    return halves.transpose(0, 4, 5, 2, 1, 3).reshape(K, -1, 16)


def fragment_b(b: Registers) -> U16:
    """Converts B (16x8 per warp, two registers) to ``[16 k, warps, 8 n]``."""
    halves = np.stack(b).view(np.uint16).reshape(2, -1, 8, 4, 2)  # k8, warp, g, t, pair
    return halves.transpose(0, 3, 4, 1, 2).reshape(K, -1, 8)


def tile_of(registers: Registers) -> Array:
    """Converts an accumulator of ``n // 2`` f32 or s32 registers to ``[warps, 16 m, n]``."""
    blocks = len(registers) // 4
    parts = np.stack(registers).reshape(blocks, 2, 2, -1, 8, 4)  # n8, m8, pair, warp, g, t
    return parts.transpose(3, 1, 4, 0, 5, 2).reshape(-1, 16, 8 * blocks)


def registers_of(tile: Array) -> list[Array]:
    """Converts a tile ``[warps, 16 m, n]`` to registers; inverse of :func:`tile_of`."""
    blocks = tile.shape[2] // 8
    parts = tile.reshape(-1, 2, 8, blocks, 4, 2).transpose(3, 1, 5, 0, 2, 4)
    return list(np.ascontiguousarray(parts).reshape(4 * blocks, -1, WARP))


# -- mma ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Mma:
    """One form of ``mma.sync``: register types and counts, and a function ``run``.

    ``run`` computes the registers of D from those of A, B and C, for an architecture such as
    ``sm_90``.
    """

    factor: str
    """PTX type of A's and B's registers."""
    sum: str
    """PTX type of C's and D's registers."""
    counts: tuple[int, int, int]
    """Registers per lane of A, of B, and of C or D."""
    run: Callable[[Registers, Registers, Registers, str], Sequence[Array]]


_TYPES: dict[tuple[str, ...], str] = {("f32", t, t, "f32"): t for t in ("bf16", "f16")}
_F64_SHAPES = {"m8n8k4": (8, 4), "m16n8k4": (16, 4), "m16n8k8": (16, 8), "m16n8k16": (16, 16)}
"""Rows of A (m) and reduction length (k) of each f64 shape."""
_BYTES: dict[tuple[str, ...], tuple[type[Any], type[Any]]] = {
    ("s32", a, b, "s32"): (of_a, of_b)
    for a, of_a in (("s8", np.int8), ("u8", np.uint8))
    for b, of_b in (("s8", np.int8), ("u8", np.uint8))
}


def mma(instruction: Instruction) -> Mma:
    """Returns the :class:`Mma` of an ``mma.sync``. Raises PtxError outside the subset."""
    form = instruction.modifiers
    dtype = _TYPES.get(form[5:])
    if form[:2] + form[3:5] == ("sync", "aligned", "row", "col"):
        if form[2] == "m16n8k16" and dtype is not None:
            return Mma("b32", "f32", (4, 2, 4), _mma16(dtype))
        if form[2] in _F64_SHAPES and form[5:] == ("f64",) * 4:
            rows, k = _F64_SHAPES[form[2]]
            return Mma("f64", "f64", (rows * k // WARP, k // 4, rows // 4), _mma64(rows, k))
        if form[2] == "m16n8k32" and form[5:] in _BYTES:
            return Mma("b32", "s32", (4, 2, 4), _mma8(*_BYTES[form[5:]]))
    raise refuse(
        instruction,
        "mma.sync.aligned.m16n8k16.row.col.f32.{bf16.bf16,f16.f16}.f32, "
        "mma.sync.aligned.m16n8k32.row.col.s32.{s8,u8}.{s8,u8}.s32 and "
        "mma.sync.aligned.{m8n8k4,m16n8k4,m16n8k8,m16n8k16}.row.col.f64.f64.f64.f64",
    )


def _mma16(dtype: str) -> Callable[[Registers, Registers, Registers, str], list[Array]]:
    def run(a: Registers, b: Registers, c: Registers, arch: str) -> list[Array]:
        left = factors(fragment_a(a)[:, :, :, None], dtype)
        right = factors(fragment_b(b)[:, :, None, :], dtype)
        return registers_of(accumulate(left, right, tile_of(c), tensor_core(arch)))

    return run


def _mma8(
    of_a: type[Any], of_b: type[Any]
) -> Callable[[Registers, Registers, Registers, str], list[Array]]:
    """Returns the :attr:`Mma.run` of m16n8k32 for 8-bit integers, of NumPy type ``of_a`` in A and
    ``of_b`` in B.

    Lane ``4 * g + t`` has four consecutive k, from 4t on, of row g of A and of column g of B in its
    first register; further registers have rows 8 further (A) or k 16 further.
    """

    def run(a: Registers, b: Registers, c: Registers, arch: str) -> list[Array]:
        right = np.stack(b).view(of_b).reshape(2, -1, 8, 4, 4)  # k16, warp, g, t, k
        right = right.transpose(1, 0, 3, 4, 2).reshape(-1, 32, 8)
        return registers_of(_sum8(_bytes_a(a, of_a), right, tile_of(c)))

    return run


def _bytes_a(a: Registers, of_a: type[Any]) -> Array:
    """Converts A of 8-bit integers (four registers) to ``[warps, 16 m, 32 k]``."""
    left: Array = np.stack(a).view(of_a).reshape(2, 2, -1, 8, 4, 4)  # k16, m8, warp, g, t, k
    return left.transpose(2, 1, 3, 0, 4, 5).reshape(-1, 16, 32)


def _sum8(a: Array, b: Array, start: Array) -> Array:
    """Returns ``start + a @ b`` of 8-bit integers, modulo 2^32."""
    products = a.astype(np.float64) @ b.astype(np.float64)  # exact: below 2^53
    total: Array = (start.astype(np.int64) + products.astype(np.int64)).astype(np.int32)
    return total


def _mma64(rows: int, k: int) -> Callable[[Registers, Registers, Registers, str], Sequence[Array]]:
    """Returns :attr:`Mma.run` for f64: a chain of fma, k ascending.

    Lane ``4 * g + t`` has of A row g (then g + 8) and column t (then t + 4, ...), of B row t (then
    t + 4, ...) and column g, of C row g (then g + 8) and columns 2t and 2t + 1.
    """
    eights = rows // 8

    def run(a: Registers, b: Registers, c: Registers, arch: str) -> Sequence[Array]:
        left = np.stack(a).reshape(k // 4, eights, -1, 8, 4)  # k4, m8, warp, g, t
        left = left.transpose(0, 4, 2, 1, 3).reshape(k, -1, rows, 1)
        right = np.stack(b).reshape(k // 4, -1, 8, 4).transpose(0, 3, 1, 2).reshape(k, -1, 1, 8)
        total = np.stack(c).reshape(eights, 2, -1, 8, 4)  # m8, pair, warp, g, t
        total = total.transpose(2, 0, 3, 4, 1).reshape(-1, rows, 8)
        for x, y in zip(left, right, strict=True):
            total = f64.fma(x, y, total)
        parts = total.reshape(-1, eights, 8, 4, 2).transpose(1, 4, 0, 2, 3)
        return list(np.ascontiguousarray(parts).reshape(2 * eights, -1, WARP))

    return run


# -- ldmatrix, stmatrix -----------------------------------------------------------------
@dataclass(frozen=True)
class MatrixMove:
    """An ``ldmatrix`` or ``stmatrix`` of ``count`` 8x8 matrices of 16-bit elements.

    Lane ``8 * i + r`` has the address of row r of matrix i: 16 bytes, aligned to 16. Lanes from
    ``8 * count`` on have addresses that are not used.
    """

    count: int
    transposed: bool

    @property
    def lanes(self) -> int:
        """Number of lanes whose addresses the instruction uses."""
        return 8 * self.count

    def load(self, rows: Array) -> list[U32]:
        """Returns the registers that ldmatrix writes, ``count`` arrays ``[warps, 32]``, for the
        rows in memory ``[warps, 8 * count, 16 bytes]``, of any dtype.
        """
        rows = np.ascontiguousarray(rows)
        if self.transposed:
            rows = _transposed(rows.view(np.uint16).reshape(-1, 8, 8))
        words = rows.view(np.uint32).reshape(-1, self.count, WARP)
        return [words[:, i] for i in range(self.count)]

    def store(self, registers: Registers) -> U32:
        """Returns the rows that stmatrix writes, ``[warps, 8 * count, 4 words]``, for the values of
        its ``count`` registers, ``[warps, 32]`` each.
        """
        words = np.stack(registers, axis=1)
        if self.transposed:
            words = _transposed(words.view(np.uint16).reshape(-1, 8, 8)).view(np.uint32)
        return words.reshape(-1, self.lanes, 4)


def _transposed(matrices: U16) -> U16:
    return np.ascontiguousarray(matrices.transpose(0, 2, 1))


def matrix_move(instruction: Instruction) -> MatrixMove:
    """Decodes ldmatrix or stmatrix: ``.sync.aligned.m8n8.{x1,x2,x4}{.trans}{.shared}.b16``."""
    form = instruction.modifiers
    transposed = form[4:5] == ("trans",)
    if (
        form[:3] != ("sync", "aligned", "m8n8")
        or form[3:4] not in (("x1",), ("x2",), ("x4",))
        or form[4 + transposed :] not in (("shared", "b16"), ("shared::cta", "b16"), ("b16",))
    ):
        raise refuse(
            instruction,
            f"{instruction.opcode}.sync.aligned.m8n8.{{x1,x2,x4}}{{.trans}}{{.shared}}.b16",
        )
    return MatrixMove(int(form[3][1:]), transposed)


# -- matrices in shared memory ------------------------------------------------------------
SWIZZLES = (0, 128, 64, 32)
"""Swizzle width in bytes, by the code in a matrix descriptor."""


def swizzle(address: I64, width: int, base: Array | int = 0) -> I64:
    """Returns swizzled shared addresses: address bits from 4 up, XORed with those from 7 up.

    A ``width`` of 32, 64 or 128 bytes swizzles 1, 2 or 3 bits; 0 leaves the address alone. The
    pattern starts at shared address 0, or ``base`` (0 to 7) rows of 128 bytes later.
    """
    if not width:
        return address
    return address ^ ((((address >> 7) - base) & (width // 16 - 1)) << 4)


@dataclass(frozen=True)
class Descriptor:
    """Fields of the 64-bit wgmma matrix descriptors that have the same swizzle width; arrays have
    an element per descriptor. ``start``: start address; ``leading`` and ``stride``: leading and
    stride byte offset; all in bytes.
    """

    start: I64
    leading: I64
    stride: I64
    base: I64
    """Base offset: row of 128 bytes in which the swizzle pattern starts, 0 to 7."""
    width: int
    """Swizzle width in bytes, the same in all descriptors."""


def descriptors(words: NDArray[np.uint64]) -> list[tuple[NDArray[np.int64], Descriptor]]:
    """Decodes the 64-bit matrix descriptors ``words``. Returns, for each swizzle width among them,
    the indices of its descriptors in ``words``, and their fields.
    """
    words = np.asarray(words, np.uint64)

    def bits(low: int, count: int) -> I64:
        return ((words >> np.uint64(low)) & np.uint64((1 << count) - 1)).astype(np.int64)

    fields = bits(0, 14) << 4, bits(16, 14) << 4, bits(32, 14) << 4, bits(49, 3)
    codes = bits(62, 2)
    found = []
    for code in np.unique(codes).tolist():
        at = np.flatnonzero(codes == code)
        start, leading, stride, base = (f[at] for f in fields)
        found.append((at, Descriptor(start, leading, stride, base, SWIZZLES[code])))
    return found


@dataclass(frozen=True)
class SharedMatrix:
    """Operand of wgmma in shared memory: ``rows`` rows of A (columns of B) by 32 bytes along K.

    ``transposed``: whether rows are contiguous ("MN-major"), not K; 16-bit elements only. Memory is
    read in chunks of 16 bytes along the contiguous axis. ``element``: NumPy type name of the
    elements.
    """

    rows: int
    transposed: bool
    element: str = "uint16"

    @cached_property
    def _chunks(self) -> tuple[I64, I64]:
        """Row and k of the first element of each 16-byte chunk of the matrix, in the order of
        :meth:`chunks`; k in units of 2 bytes, 0 to 15.
        """
        along_rows, along_k = (8, 1) if self.transposed else (1, 8)
        row, k = np.mgrid[0 : self.rows : along_rows, 0:K:along_k]
        return row.reshape(-1), k.reshape(-1)

    def chunks(self, words: NDArray[np.uint64]) -> I64:
        """Returns the shared addresses of the 16-byte chunks of the matrix that each of the
        descriptors ``words`` describes, ``[groups, 2 * rows]``.
        """
        out = np.empty((len(words), 2 * self.rows), np.int64)
        for at, d in descriptors(words):
            out[at] = self._addresses(d)
        return out

    def _addresses(self, d: Descriptor) -> I64:
        row, k = self._chunks
        start, leading, stride = (x[:, None] for x in (d.start, d.leading, d.stride))
        if not self.transposed:
            # Eight rows are a repeating unit; its rows are 16 bytes, or the swizzle's width, apart.
            offset = row % 8 * (d.width or 16) + row // 8 * stride
            # Unswizzled, the second half along K is a matrix of its own; else it comes next.
            offset = offset + (k // 8 * 16 if d.width else k // 8 * leading)
        elif d.width:
            across = d.width // 2  # elements in a row of the pattern
            offset = row % across * 2 + row // across * leading + k % 8 * d.width + k // 8 * stride
        else:
            offset = row // 8 * stride + k % 8 * 16 + k // 8 * leading
        return swizzle(start + offset, d.width, d.base[:, None])

    def elements(self, words: NDArray[np.uint64]) -> I64:
        """Returns the shared addresses of all 16-bit elements of the matrix that each of the
        descriptors ``words`` describes, ``[groups, rows, 16 k]``.
        """
        addresses = self.chunks(words)[:, :, None] + np.arange(0, 16, 2)
        return self._grid(addresses).transpose(1, 2, 0)

    def matrix(self, chunks: Array) -> Array:
        """Converts the bytes of the chunks, ``[groups, 2 * rows, 16 bytes]`` in the order of
        :meth:`chunks`, to the matrix ``[k, groups, rows]`` of numbers.
        """
        return self._grid(np.ascontiguousarray(chunks).view(self.element))

    def _grid(self, values: Array) -> Array:
        """Rearranges ``values``, one for each element of the matrix, from the order of memory,
        ``[groups, 2 * rows chunks, elements of a chunk]``, to ``[k, groups, rows]``.

        A chunk of 16 bytes has 8 elements of 16 bits (k is 16) or 16 of 8 bits (k is 32).
        """
        groups = len(values)
        if self.transposed:
            parts = values.reshape(groups, self.rows // 8, K, 8).transpose(2, 0, 1, 3)
        else:
            parts = values.reshape(groups, self.rows, 2, -1).transpose(2, 3, 0, 1)
        return parts.reshape(-1, groups, self.rows)


# -- wgmma ----------------------------------------------------------------------------
@dataclass(frozen=True)
class Wgmma:
    """A decoded ``wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T``, T bf16 or f16."""

    n: int
    a: SharedMatrix | None
    """Operand A in shared memory; None: A comes from four registers."""
    b: SharedMatrix
    dtype: str
    negate_a: bool = False
    negate_b: bool = False

    sum: ClassVar[str] = "f32"
    """PTX type of the accumulator's registers."""

    @property
    def registers(self) -> int:
        """Number of accumulator registers per lane."""
        return self.n // 2

    def a_of(self, registers: Registers) -> Array:
        """Converts A of 16-bit elements, four b32 registers of ``[warps, 32]``, to a matrix
        ``[16 k, groups, 64 m]``.
        """
        return fragment_a(registers).reshape(K, -1, 64)

    def run(self, a: Array, b: Array, d: Registers, scale_d: Array, arch: str) -> list[Array]:
        """Returns the accumulator registers after ``d = a @ b + d``.

        ``a``: ``[k, groups, 64]``, ``b``: ``[k, groups, n]``, from :meth:`SharedMatrix.matrix`;
        ``d``: the registers before; ``scale_d``: bools ``[groups]``, False starts the sum from +0.0
        instead of ``d``; ``arch``: GPU architecture, as "sm_90", which fixes how tensor cores add.
        """
        start = tile_of(d).reshape(-1, 64, self.n)
        start = np.where(np.asarray(scale_d)[:, None, None], start, start.dtype.type(0))
        return registers_of(self.total(a, b, start, arch).reshape(-1, 16, self.n))

    def total(self, a: Array, b: Array, start: Array, arch: str) -> Array:
        """Returns ``start + a @ b``, ``[groups, 64, n]``, added up as tensor cores of ``arch`` do.
        ``a``: ``[k, groups, 64]``, ``b``: ``[k, groups, n]``, each of 16-bit floats as bits, whose
        signs ``negate_a`` and ``negate_b`` flip.
        """
        sign = np.uint16(0x8000)
        left = factors((a ^ sign if self.negate_a else a)[:, :, :, None], self.dtype)
        right = factors((b ^ sign if self.negate_b else b)[:, :, None, :], self.dtype)
        return accumulate(left, right, start, tensor_core(arch))


@dataclass(frozen=True)
class Wgmma8(Wgmma):
    """A decoded ``wgmma.mma_async.sync.aligned.m64nNk32.s32.T.T``, T s8 or u8."""

    sum: ClassVar[str] = "s32"

    def a_of(self, registers: Registers) -> Array:
        """Converts A of 8-bit elements, four b32 registers of ``[warps, 32]``, to a matrix
        ``[32 k, groups, 64 m]``.
        """
        return (
            _bytes_a(registers, getattr(np, self.b.element)).transpose(2, 0, 1).reshape(32, -1, 64)
        )

    def total(self, a: Array, b: Array, start: Array, arch: str) -> Array:
        """Returns ``start + a @ b`` modulo 2^32, ``[groups, 64, n]``, on every ``arch``. ``a``:
        ``[k, groups, 64]``, ``b``: ``[k, groups, n]``, each of 8-bit integers.
        """
        return _sum8(a.transpose(1, 2, 0), b.transpose(1, 0, 2), start)


@lru_cache(maxsize=128)
def _shared_matrix(rows: int, transposed: bool, element: str = "uint16") -> SharedMatrix:
    return SharedMatrix(rows, transposed, element)


_EIGHT: dict[tuple[str, ...], str] = {("s32", "s8", "s8"): "int8", ("s32", "u8", "u8"): "uint8"}


def wgmma(instruction: Instruction) -> Wgmma:
    """Decodes a wgmma.mma_async with operands d, a, b, scale-d and immediates.

    The immediates are the scales of A and B (1 or -1), then the transpositions (0 or 1) of A, if it
    is in shared memory, and of B; an instruction of 8-bit elements has none.
    """
    form, operands = instruction.modifiers, instruction.operands
    shape = form[3] if len(form) == 7 else ""
    n = int(shape[4:-3]) if shape[:4] == "m64n" and shape[4:-3].isdigit() else 0
    eight = _EIGHT.get(form[4:])
    if (
        form[:3] != ("mma_async", "sync", "aligned")
        or shape != f"m64n{n}k{32 if eight else 16}"
        or not 8 <= n <= 256
        or n % (16 if eight and n > 32 else 8)
        or not (eight or form[4:] in (("f32", "bf16", "bf16"), ("f32", "f16", "f16")))
    ):
        raise refuse(
            instruction,
            "wgmma.mma_async.sync.aligned.m64nNk16.f32.{bf16.bf16,f16.f16}, N a multiple of 8 "
            "up to 256, and m64nNk32.s32.{s8.s8,u8.u8}, N a multiple of 8 up to 32 or of 16 up "
            "to 256",
        )
    from_registers = len(operands) > 1 and isinstance(operands[1], Vector)
    constants = [x.value if isinstance(x, Immediate) else None for x in operands[4:]]
    wanted = 0 if eight else 3 if from_registers else 4
    if (
        len(operands) < 4
        or len(constants) != wanted
        or not {*constants[:2]} <= {1, -1}
        or not {*constants[2:]} <= {0, 1}
        or not isinstance(operands[0], Vector)
        or len(operands[0].items) != n // 2
        or (isinstance(operands[1], Vector) and len(operands[1].items) != 4)
    ):
        raise refuse(
            instruction,
            f"{n // 2} registers of D, four of A or its descriptor, the descriptor of B, scale-d"
            + ("" if eight else ", two scales of 1 or -1, and for each descriptor 0 or 1"),
        )
    if eight:
        a = None if from_registers else _shared_matrix(64, False, eight)
        return Wgmma8(n, a, _shared_matrix(n, False, eight), form[5])
    return Wgmma(
        n,
        None if from_registers else _shared_matrix(64, constants[2] == 1),
        _shared_matrix(n, constants[-1] == 1),
        form[5],
        constants[0] == -1,
        constants[1] == -1,
    )
