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
from ptxgen.spec.mma import BLOCK, VECTOR, MmaLoop, MmaSide
from ptxgen.spec.nf4_packed import HELPERS, Nf4GemmSpec

SPLITS = ("none", "serial")


@dataclass(frozen=True)
class Nf4TensorSpec(MmaLoop, Nf4GemmSpec):
    """A kernel of products whose B is an NF4 weight, as it is stored: ``data`` and ``scales``.

    A CTA of ``warps_m`` x ``warps_n`` warps that multiply, and ``helpers`` that bring operands,
    computes ``bm`` x ``bn`` outputs, ``bk`` k's per stage. Columns of B are the instruction's 16
    rows, rows of A its 8 columns.

    ``stages``: those of what is copied (A, indices, scales); of widened B there are two.
    ``split``: "none" (the plan must give one chunk) or "serial" (a CTA takes one chunk after
    another, and keeps a second set of sums). ``ahead``: steps of 16 k by which fragments are
    fetched ahead. ``stream``: "b" if L2 is told to evict the weight first.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    warps_m: int
    warps_n: int
    helpers: int
    stages: int
    ahead: int = 3
    split: str = "none"
    stream: str = "b"
    ctas_per_sm: int = 1
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = TC16

    family: ClassVar[str] = "nf4_mma"
    template: ClassVar[str] = "nf4/gemm.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **MEANINGS,
        "helpers": HELPERS,
    }

    def __post_init__(self) -> None:
        for what in ("bm", "bn", "bk", "warps_m", "warps_n", "helpers", "ctas_per_sm"):
            check(getattr(self, what) >= 1, type(self).__name__, what, getattr(self, what), ">= 1")
        name = self.name
        for what, legal in (
            ("dtype", TIERS["tc"]),
            ("split", SPLITS),
            ("stream", ("", "b")),
            ("min_arch", [*ARCHITECTURES]),
        ):
            check(getattr(self, what) in legal, name, what, getattr(self, what), legal)
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        check(1 <= self.ahead <= 7, name, "ahead", self.ahead, "1 .. 7")
        for what, unit in (("bk", max(BLOCK, self.block)), ("bm", 8 * self.warps_m)):
            check(getattr(self, what) % unit == 0, name, f"{unit} divides {what}", unit, what)
        check(self.bn % (16 * self.warps_n) == 0, name, "16 * warps_n divides bn", self.bn, 16)
        self.check_packed()
        a, threads = self.side("a"), self.helpers * WARP
        check(threads % a.vectors == 0, name, "rows of A at once", threads, a.vectors)
        arch = ARCHITECTURES[self.min_arch]
        for what, needed, there in (
            ("threads", self.threads, arch.threads_per_cta),
            (f"shared memory on {arch.name}, bytes", self.shared_bytes, arch.shared_per_cta),
        ):
            check(needed <= there, name, what, needed, there)
        wide, slim = self.side("b").fragments, self.side("a").fragments
        needed = (2 if self.split == "serial" else 1) * 4 * wide * slim + 24
        needed += self.buffers * (4 * wide + 2 * slim)
        available = min(
            arch.registers_per_thread, arch.registers_per_sm // (self.threads * self.ctas_per_sm)
        )
        what = "registers per thread (accumulators, two fragments, addresses)"
        check(needed <= available, name, what, needed, available)

    # -- derived --------------------------------------------------------------
    @property
    def slots(self) -> int:
        return self.ctas_per_sm

    @property
    def threads(self) -> int:
        return (self.warps_m * self.warps_n + self.helpers) * WARP

    @property
    def grid(self) -> Expr:
        return self.tiles

    @property
    def multiplier(self) -> str:
        return "mma"

    @property
    def copied(self) -> int:
        """Stages of indices."""
        return self.stages

    def side(self, x: str) -> MmaSide:
        """The operand "a" or "b", as it lies in shared memory: B as a dense one."""
        a = x == "a"
        extent, warps = (self.bm, self.warps_m) if a else (self.bn, self.warps_n)
        k_contiguous = a or self.along_k
        return MmaSide(
            copy="vector",
            k_contiguous=k_contiguous,
            extent=extent,
            rows=extent if k_contiguous else self.bk,
            vectors=(self.bk if k_contiguous else extent) // VECTOR,
            threads=self.helpers * WARP,
            wide=not a,
            warp=extent // warps,
        )

    @property
    def shared_bytes(self) -> int:
        copied = self.side("a").nbytes + self.packed.nbytes
        ring = self.stages * copied + 2 * self.side("b").nbytes
        return max(ring, 4 * self.bm * self.exchange_pitch)

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
            terms.append((CHUNK % self.block).eq(0) | (CHUNKS <= 1))
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
            Expect("mul.rn.f32", ("mul.f32", "mul.ftz*")),
            *super().expects,
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"C[M, N] = A . B, layout {self.layout}, {self.dtype}, B an NF4 weight; CTA tile "
            f"{self.bm} x {self.bn} x {self.bk}, {self.threads} threads, "
            f"{self.shared_bytes} bytes of shared memory",
            f"{self.helpers} helping warps, {self.stages} stages, split: {self.split}",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )
