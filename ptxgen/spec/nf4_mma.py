"""The nf4_mma family: products with NF4 weights on tensor cores, by ``mma.sync``, sm_80 and on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.expr import Expr, all_of, ceil_div
from ptxgen.numerics.contract import TC16, TIERS, Contract, K, M, N
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, GRID_MAX, INDEX_MAX, WARP, Expect, check
from ptxgen.spec.gemm import ALIGN_A, CHUNK, CHUNKS, MEANINGS
from ptxgen.spec.mma import STEP, VECTOR, MmaSide
from ptxgen.spec.nf4_packed import INDICES, LAYOUTS, Nf4GemmSpec

SPLITS = ("none", "serial")


@dataclass(frozen=True)
class Indices:
    """How a tile's indices lie in shared memory: rows as the weight's, of ``vectors`` vectors.

    Rows along k are read 8 at a time, the same vector of each: vector v of a row lies at
    v ^ (row >> shift & mask). Of rows along n, 8 bytes of each other one of 8 are read at a time:
    they are as far apart as sends these to different banks.
    """

    rows: int
    vectors: int
    scales: int
    """Of a row."""
    along_k: bool

    @property
    def mask(self) -> int:
        """What is permuted."""
        return min(self.vectors & -self.vectors, 8) - 1 if self.along_k else 0

    @property
    def shift(self) -> int:
        """Rows, as a power of two, after which the permutation changes."""
        return 3 - self.mask.bit_length()

    @property
    def pitch(self) -> int:
        """Bytes of a row."""
        apart = 0 if self.along_k or self.vectors == 1 else 1
        return 16 * (self.vectors + apart)

    @property
    def nbytes(self) -> int:
        """Bytes of a tile."""
        return self.rows * self.pitch


@dataclass(frozen=True)
class Nf4MmaSpec(Nf4GemmSpec):
    """A kernel of products whose B is an NF4 weight, as it is stored: ``data`` and ``scales``.

    A CTA of ``warps_m`` x ``warps_n`` warps that multiply, and ``copiers`` that only copy, computes
    ``bm`` x ``bn`` outputs, ``bk`` k's per stage; indices become numbers in registers. ``swap``:
    columns of B are the instruction's 16 rows, rows of A its 8 columns; else the other way round.

    ``split``: "none" (the plan must give one chunk) or "serial" (a CTA takes one chunk after
    another, and keeps a second set of sums). ``stream``: "b" if L2 is told to evict the weight
    first.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps_m: int
    warps_n: int
    copiers: int
    stages: int
    swap: bool = True
    split: str = "none"
    stream: str = "b"
    ctas_per_sm: int = 1
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TC16

    family: ClassVar[str] = "nf4_mma"
    template: ClassVar[str] = "nf4/gemm.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = MEANINGS

    def __post_init__(self) -> None:
        for what in ("bm", "bn", "bk", "warps_m", "warps_n", "copiers", "ctas_per_sm"):
            check(getattr(self, what) >= 1, type(self).__name__, what, getattr(self, what), ">= 1")
        name = self.name
        for what, legal in (
            ("layout", LAYOUTS),
            ("dtype", TIERS["tc"]),
            ("split", SPLITS),
            ("stream", ("", "b")),
            ("min_arch", [*ARCHITECTURES]),
        ):
            check(getattr(self, what) in legal, name, what, getattr(self, what), legal)
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        for what, unit in (
            ("bk", 2 * self.steps * STEP),
            ("bm", (8 if self.swap else 16) * self.warps_m),
            ("bn", 8 * self.halves * self.warps_n),
            ("bn", 1 if self.along_k else INDICES),
        ):
            extent = getattr(self, what)
            check(extent % unit == 0, name, f"{unit} divides {what}", unit, extent)
        arch = ARCHITECTURES[self.min_arch]
        for what, needed, there in (
            ("threads", self.threads, arch.threads_per_cta),
            (f"shared memory on {arch.name}, bytes", self.shared_bytes, arch.shared_per_cta),
        ):
            check(needed <= there, name, what, needed, there)
        of_a, of_b, halves = self.a.fragments, self.fragments_b, self.halves
        needed = (2 if self.split == "serial" else 1) * 4 * of_a * of_b + 32
        # Of two blocks: A's fragments; words and scales of B's.
        words = halves * (8 + 1) if self.along_k else self.steps * (4 * halves + 4)
        needed += 2 * (self.steps * of_a * (2 if self.swap else 4) + of_b * words)
        available = min(
            arch.registers_per_thread, arch.registers_per_sm // (self.threads * self.ctas_per_sm)
        )
        what = "registers per thread (accumulators, two blocks, addresses)"
        check(needed <= available, name, what, needed, available)

    # -- derived --------------------------------------------------------------
    @property
    def slots(self) -> int:
        return self.ctas_per_sm

    @property
    def copier_threads(self) -> int:
        """Threads that copy."""
        return self.copiers * WARP

    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * WARP + self.copier_threads

    @property
    def grid(self) -> Expr:
        return self.tiles

    @property
    def multiplier(self) -> str:
        return "mma"

    @property
    def steps(self) -> int:
        """Instructions' k's that a warp loads ahead: with one scale of a row along k."""
        return 4 if self.along_k else 2

    @property
    def halves(self) -> int:
        """8 columns of B each, of an instruction."""
        return 2 if self.swap else 1

    @property
    def fragments_b(self) -> int:
        """A warp's fragments of B."""
        return self.bn // (8 * self.halves * self.warps_n)

    @property
    def a(self) -> MmaSide:
        """A's tile, as it lies in shared memory."""
        return MmaSide(
            copy="vector",
            k_contiguous=True,
            extent=self.bm,
            rows=self.bm,
            vectors=self.bk // VECTOR,
            threads=self.copier_threads,
            wide=not self.swap,
            warp=self.bm // self.warps_m,
        )

    @property
    def indices(self) -> Indices:
        """The tile of indices."""
        rows, columns = (self.bn, self.bk) if self.along_k else (self.bk, self.bn)
        scales = max(columns // self.scale_block, 1)
        return Indices(rows, columns // INDICES, scales, self.along_k)

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        return self.a.nbytes + self.indices.nbytes + 4 * self.indices.rows * self.indices.scales

    @property
    def exchange_pitch(self) -> int:
        """Floats between rows of the epilogue's exchange buffer."""
        return self.bn + 8

    @property
    def shared_bytes(self) -> int:
        return max(self.stages * self.stage, 4 * self.bm * self.exchange_pitch)

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                ptr("a", "const Element* __restrict__"),
                ptr("data", "const unsigned char* __restrict__"),
                ptr("scales", "const float* __restrict__"),
                ptr("bias", "const void* __restrict__", optional=True),
                ptr("c", "void*"),
                *(Param(name, "i64") for name in ("lda", "ldc")),
                *(Param(name, "u32") for name in ("m", "n", "k", "chunk", "flags")),
            )
        )

    @property
    def requires(self) -> Expr:
        terms = [ALIGN_A >= 2 * VECTOR, self.grid <= GRID_MAX]
        if self.split == "none":
            terms.append(CHUNKS <= 1)
        else:
            terms.append((CHUNK % (self.steps * STEP)).eq(0) | (CHUNKS <= 1))
        return all_of(terms)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        bounds = (
            ("m + BM - 1", M + (self.bm - 1)),
            ("m0 + BM", ceil_div(M, self.bm) * self.bm),
            ("n0 + BN", ceil_div(N, self.bn) * self.bn),
            ("k + BK - 1", K + (self.bk - 1)),
            ("step * BK of a copy", K + self.stages * self.bk),
        )
        return tuple((text, value, INDEX_MAX) for text, value in bounds)

    @property
    def expects(self) -> tuple[Expect, ...]:
        shape = f"m16n8k16.row.col.f32.{self.dtype}.{self.dtype}.f32"
        return (
            Expect(f"mma.sync.aligned.{shape}", ("*mma.*",)),
            Expect("mul.rn.f32", ("mul.f32", "mul.ftz*", "fma.*")),
            *super().expects,
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"C[M, N] = A . B, layout {self.layout}, {self.dtype}, B an NF4 weight; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.threads} threads, "
            f"{self.shared_bytes} bytes of shared memory",
            f"{self.copiers} copying warps, {self.stages} stages, split: {self.split}",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )
