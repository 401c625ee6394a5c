"""Bases of the kernels that read a quantized weight as it is stored, and widen it themselves."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ptxgen.cost.kernel import KernelCost
from ptxgen.expr import Expr, all_of, ceil_div
from ptxgen.numerics.contract import K, M, N
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import GRID_MAX, INDEX_MAX, WARP, WORKSPACE_MAX, Expect, check
from ptxgen.spec.gemm import ALIGN_A, CHUNK, CHUNKS, CONTEXT, GemmSpec
from ptxgen.spec.gemm.rasters import Bands, Chunk, Raster
from ptxgen.spec.gemm.staged import StagedSpec
from ptxgen.spec.mma import VECTOR
from ptxgen.spec.quantized import STORAGE, PreparedSpec

LAYOUTS = ("NT", "NN")
"""Legal layouts: of the forward product, and of the input gradient."""
INDICES = 32
"""4-bit indices in a vector of 16 bytes."""
PRODUCERS = "warps that copy operands and widen the weight's indices"
"""Description of the field ``producer_warps``, for the ``ptxgen`` command."""
TEAMS = "teams of producers, which fill stages in rotation (none: all help at each)"
"""Description of the field ``teams``, for the ``ptxgen`` command."""
COPIED = 64
"""Most elements of a block whose f32 scale is copied by cp.async: with more, a stage might have
none. Offsets, and numbers of other dtypes, go through registers."""
ROWS = 8
"""Rows of a stage that a warp widens side by side, so that their stores go to different banks."""

DECODERS = ("halves", "floats", "numbers", "bytes", "table")
"""Decoders: integers, and E2M1, by arithmetic on pairs of 16 bits; integers, and codes of 8 bits,
by arithmetic in f32; a table of a codebook's values."""
PAIRED = ("halves", "floats")
"""Decoders that compute in the operands' dtype, two numbers at a time."""

TABLE = 1 << 15
"""Bytes of the table of a codebook in shared memory: 128 bytes for each byte of two codes, so that
each lane of half a warp reads the pair of values from its own copy."""


@dataclass(frozen=True)
class Packed:
    """A stage of codes of ``bits`` bits: ``rows`` rows of ``parts`` 16-byte vectors, copied by
    ``threads`` threads. ``block``: codes that share a scale; ``loaded``: those of
    :attr:`QuantizedGemmSpec.scale_arrays` that are loaded into registers; none if cp.async copies
    scales to shared memory.
    """

    rows: int
    parts: int
    threads: int
    bits: int
    block: int
    loaded: tuple[tuple[str, str, str], ...]

    @property
    def turns(self) -> int:
        """16-byte vectors of a stage that a thread copies."""
        return self.rows * self.parts // self.threads

    @property
    def shared(self) -> int:
        """Consecutive vectors of a thread that share a scale."""
        block = self.block // self.codes
        return block if self.turns % block == self.parts % block == 0 else 1

    @property
    def codes(self) -> int:
        """Codes in a 16-byte vector."""
        return 128 // self.bits

    @property
    def nbytes(self) -> int:
        """Bytes of a stage of the weight: for each vector 16 bytes of codes, and a copied scale."""
        return self.rows * self.parts * (16 + self.scale_bytes)

    @property
    def scale_bytes(self) -> int:
        """Bytes of shared memory for the scale of a vector."""
        return 0 if self.loaded else 4


class QuantizedGemmSpec(PreparedSpec, GemmSpec):
    """Base of the GEMM kernels whose B is a quantized weight as it is stored: ``data`` (4-bit
    indices) and ``scales`` (f32), together 9 bytes for 16 elements. ``producer_warps``: warps that
    copy the operands.
    """

    producer_warps: int

    if TYPE_CHECKING:

        @property
        def teams(self) -> int | None: ...

    @property
    def label(self) -> str:
        return f"{self.format.name}_{super().label}"

    @property
    def crews(self) -> int:
        """Number of producer teams: ``teams``, or 1 if all producers share each stage."""
        return self.teams or 1

    @property
    def along_k(self) -> bool:
        """Whether rows of the stored weight run along K (layout NT), not along N (layout NN)."""
        return self.layout[1] == "T"

    @property
    def scale_block(self) -> int:
        """Number of indices that share a scale."""
        return self.format.block

    @property
    def packed(self) -> Packed:
        """Layout of a stage of the weight's codes."""
        rows, columns = (self.bn, self.bk) if self.along_k else (self.bk, self.bn)
        threads = self.producer_warps * WARP // self.crews
        bits = self.format.bits
        parts = columns * bits // 128
        block, beside = self.scale_block, self.scale_arrays
        copied = block <= COPIED and [dtype for _, dtype, _ in beside] == ["f32"]
        loaded = () if copied else beside
        return Packed(rows, parts, threads, bits, block, loaded)

    @property
    def scale_arrays(self) -> tuple[tuple[str, str, str], ...]:
        """Name, short dtype and C++ type of the arrays of scales and of offsets, if any."""
        beside = self.format.beside.items()
        return tuple((name, dtype, STORAGE[dtype]) for name, (dtype, *_) in beside)

    @property
    def decoder(self) -> str:
        """Decoder of the weight's codes, one of :data:`DECODERS`."""
        row = self.format
        if row.encoding not in ("unsigned", "signed", "excess"):
            powers = row.encoding == "e2m1" and row.decoding == "scale * code"
            if powers and row.scales in ("e8m0", "bf16") and self.dtype == "bf16":
                return "floats"
            return "bytes" if row.bits == 8 else "table"
        plain = row.decoding in ("scale * code", "code * scale") and row.offsets is None
        centred = row.decoding == "(code - offset) * scale" and row.offsets == "u5"
        exact = row.bits == 4 and (plain or centred) and row.scales in ("f16", self.dtype)
        return "halves" if exact else "numbers"

    @property
    def table_bytes(self) -> int:
        """Bytes of the decoder's table."""
        return TABLE if self.decoder == "table" else 0

    @property
    def remainder(self) -> bool:
        """Whether a scale, which is of f16, is the sum of two numbers of bf16."""
        return self.decoder == "halves" and (self.format.scales, self.dtype) == ("f16", "bf16")

    @property
    def items(self) -> int:
        """Words that a block's codes are decoded with."""
        return 1 + bool(self.format.offsets) + self.remainder

    def bits_of(self, number: int) -> int:
        """Returns the bits of a number in the operands' dtype."""
        kind, shift = ("<f", 16) if self.dtype == "bf16" else ("<e", 0)
        return int.from_bytes(struct.pack(kind, number), "little") >> shift

    def check_packed(self) -> None:
        """Raises SpecError if a stage of the weight is not whole vectors of indices, or if the
        threads of a producer team do not divide these evenly.
        """
        packed, name = self.packed, self.name
        check(self.layout in LAYOUTS, name, "layout", self.layout, LAYOUTS)
        columns = packed.parts * packed.codes
        there = self.bk if self.along_k else self.bn
        check(columns == there, name, "whole vectors of indices", columns, there)
        at_once, vectors = ROWS * packed.parts, packed.rows * packed.parts
        check(packed.threads % at_once == 0, name, "rows copied", packed.threads, at_once)
        copied = packed.turns * packed.threads
        check(copied == vectors, name, "vectors copied at once", copied, vectors)

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({**CONTEXT, "CODE": self.format.values})

    @property
    def batched(self) -> bool:
        return False

    @property
    def cost(self) -> KernelCost:
        packed = N * K * round(2 * self.format.bits_of_all) // 16
        loads = ceil_div(N, self.bn) * (M * K * 2) + ceil_div(M, self.bm) * packed
        operands = M * K * 2 + packed
        return replace(super().cost, loads=loads, operands=operands)

    @property
    def partial(self) -> bool:
        """Whether each chunk's partial sums go to the workspace."""
        return self.split == "workspace"

    @property
    def pointers(self) -> tuple[Param, ...]:
        """Pointer parameters of the kernel, in order."""
        alone = "" if self.multiplier == "wgmma" else " __restrict__"
        sums = (ptr("workspace", "float*", optional=True),) if self.partial else ()
        beside = (ptr(name, f"const {kind}*{alone}") for name, _, kind in self.scale_arrays)
        return (
            ptr("a", f"const Element*{alone}"),
            ptr("data", f"const unsigned char*{alone}"),
            *beside,
            ptr("bias", f"const void*{alone}", optional=True),
            ptr("c", "void*"),
            *sums,
        )

    @property
    def expects(self) -> tuple[Expect, ...]:
        wrong = "mul.f32", "mul.ftz*"
        in_pairs = self.decoder in PAIRED
        rounded = Expect(f"fma.rn.{self.dtype}x2" if in_pairs else "mul.rn.f32", wrong)
        return (rounded, *super().expects)


class QuantizedTilesSpec(QuantizedGemmSpec):
    """Base of the kernels with a CTA for each tile, or with ``split`` "workspace" for each tile and
    chunk.
    """

    if TYPE_CHECKING:

        @property
        def copy_a(self) -> str | None: ...

    @property
    @abstractmethod
    def block(self) -> int:
        """Number of k's in an unrolled iteration of the main loop."""

    @property
    def schedule(self) -> Raster:
        return Chunk() if self.partial else Bands(0)

    @property
    def grid(self) -> Expr:
        return self.work

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                *self.pointers,
                *(Param(name, "i64") for name in ("lda", "ldc")),
                *(Param(name, "u32") for name in ("m", "n", "k", "chunk", "flags")),
            )
        )

    @property
    def requires(self) -> Expr:
        terms = [] if self.copy_a == "plain" else [ALIGN_A >= 2 * VECTOR]
        terms.append(self.grid <= GRID_MAX)
        if self.partial:
            terms.append(self.scratch["workspace"] <= WORKSPACE_MAX)
        terms.append((CHUNK % self.block).eq(0) | (CHUNKS <= 1))
        return all_of(terms)


class QuantizedSyncSpec(QuantizedTilesSpec, StagedSpec):
    """Base of the ``mma.sync`` kernels with producer warps."""

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        bounds = [
            ("m + BM - 1", M + (self.bm - 1)),
            ("m0 + BM", ceil_div(M, self.bm) * self.bm),
            ("n0 + BN", ceil_div(N, self.bn) * self.bn),
            ("k + BK - 1", K + (self.bk - 1)),
            ("step * BK of a copy", K + self.crews * self.stages * self.bk),
        ]
        known = (*bounds, *self.schedule.bounds(self))
        return tuple((text, value, INDEX_MAX) for text, value in known)

    @property
    def expects(self) -> tuple[Expect, ...]:
        shape = f"m16n8k16.row.col.f32.{self.dtype}.{self.dtype}.f32"
        return (
            Expect(f"mma.sync.aligned.{shape}", ("*mma.*",)),
            *super().expects,
        )

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"C[M, N] = A . B, layout {self.layout}, {self.dtype}, B a weight of "
            f"{self.format.name}; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.sizes}",
            f"{self.producer_warps} helping warps, {self.stages} stages, split: {self.split}",
        )
