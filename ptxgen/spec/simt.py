"""The simt family: GEMM kernels on the FMA units, and the reduce kernel."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ptxgen.expr import Expr, ceil_div
from ptxgen.numerics.contract import CONTRACTS, FMA, ITEMSIZE, Contract, K, M, N
from ptxgen.numerics.dtype import Mixed
from ptxgen.spec.abi import Abi
from ptxgen.spec.base import ARCHITECTURES, WARP, Expect, check
from ptxgen.spec.epilogue import Epilogue
from ptxgen.spec.gemm import CHUNK, CHUNKS, LAYOUTS, abi, ctypes, with_epilogue
from ptxgen.spec.gemm.staged import StagedSpec
from ptxgen.spec.gemm.sums import SumsSpec

SPLITS = ("none", "onto", "slices", "workspace")
ORDERS = ("rows", "columns")
"""Order in which a thread updates its outputs at each k; no bit depends on it."""
OUTER_COPIES = ("vector", "packed", "scalar")
"""Copy methods to shared memory for an operand whose outer index (m or n) is contiguous."""
K_COPIES = ("transpose", "staged", "kvector")
"""Copy methods to shared memory for an operand whose reduction index is contiguous."""
RAW_COPIES = ("vector", "kvector")
"""Copy methods that keep 16-bit elements in shared memory; templates/simt/operand.cuh.j2 explains
each."""

DTYPES = [dtype for dtype, contract in CONTRACTS["simt"].items() if contract == FMA]
"""Dtypes of the operands: f32, or 16-bit floats that are upcast to f32."""
BUSY = 32
"""Outputs of a thread from which the main loop has no time to upcast 16-bit elements of B that it
reads from shared memory: they are upcast on their way there, whose copies go through registers."""


@dataclass(frozen=True)
class SimtSpec(StagedSpec):
    """A GEMM kernel of the simt family.

    A CTA computes ``bm`` x ``bn`` outputs; a thread ``tm`` x ``tn``; a warp's lanes form a
    ``lanes_m`` x ``lanes_n`` grid; a CTA has ``warps_m`` x ``warps_n`` warps, or ``slices`` times
    one warp (or part of one), which share the chunks of a split reduction: they never wait for one
    another before the epilogue.

    ``split``: "none" (one chunk), "onto" (one chunk, whose sums may start from the old f32 values
    of C), "slices" (any plan; partial sums are added in ascending order through shared memory) or
    "workspace" (a CTA per tile and chunk writes its partial sums; a reduce kernel adds them).
    ``copy_a``, ``copy_b``: copy methods of A and B to shared memory, of :data:`OUTER_COPIES` or
    :data:`K_COPIES`. ``dtype``: dtype of the operands; 16-bit ones are upcast to f32 before they
    are stored to shared memory or, with :data:`RAW_COPIES`, after they are read from there.
    ``lanes``: lanes of a warp in a slice; less than 32 puts several slices in a warp.
    ``ctas_per_sm``: CTAs that share an SM, which bounds the registers. ``raster``: tile rows of a
    band, which share columns of B in L2. ``persistent``: CTAs of a bounded grid loop over the
    tiles, with 64-bit indices. ``fma_order``: order in which a thread updates its outputs, one of
    :data:`ORDERS`. ``dtype_a``: "f32" if A is f32 and B, of 16 bits, has another dtype (``dtype``).
    """

    layout: str
    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    lanes_m: int
    warps_m: int
    warps_n: int
    stages: int
    copy_a: str
    copy_b: str
    slices: int = 1
    split: str = "none"
    persistent: bool = False
    ctas_per_sm: int = 1
    raster: int = 8
    lanes: int = WARP
    fma_order: str = "rows"
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = FMA
    epilogue: Epilogue | None = None
    dtype_a: str | None = None

    family: ClassVar[str] = "simt"
    template: ClassVar[str] = "simt/gemm.cu.j2"
    multiplier: ClassVar[str] = "fma"

    def __post_init__(self) -> None:
        self.check_counts("bm", "bn", "bk", "tm", "tn", "lanes_m", "warps_m", "warps_n", "slices")
        self.check_counts("ctas_per_sm", "raster")
        self.check_choices(
            fma_order=ORDERS,
            min_arch=[*ARCHITECTURES],
            dtype=DTYPES,
            layout=LAYOUTS,
            split=SPLITS,
        )
        name = self.name
        mixed = self.dtype_a is None or (self.dtype_a == "f32" != self.dtype)
        check(mixed, name, "dtype_a, beside a B of 16 bits", self.dtype_a, "f32")
        one = self.warps_m * self.warps_n == 1
        what = "lanes is a warp, or 8 or 16 with one (part of a) warp per slice"
        legal = self.lanes == WARP or (self.lanes in (8, 16) and one)
        check(legal, name, what, self.lanes, self.warps_m * self.warps_n)
        self.check_divides("lanes_m divides lanes", self.lanes_m, self.lanes)
        self.schedule.check(self)
        check(self.threads % WARP == 0, name, "whole warps", self.threads, WARP)
        rows = self.warps_m * self.lanes_m * self.tm
        cols = self.warps_n * self.lanes_n * self.tn
        check(rows == self.bm, name, "warps_m * lanes_m * tm = bm", rows, self.bm)
        check(cols == self.bn, name, "warps_n * lanes_n * tn = bn", cols, self.bn)
        for side, t in (("tm", self.tm), ("tn", self.tn)):
            check(t in (1, 2) or t % 4 == 0, name, f"{side} is 1, 2 or a multiple of 4", t, 4)
        for side, copy in self.copies:
            self.check_copies(side, copy)
        check(self.stages >= 2, name, "stages", self.stages, ">= 2")
        sliced = self.slices == 1 or self.split == "slices"
        check(sliced, name, "slices need split='slices'", self.slices, self.split)
        what = "warps of a slice, where there are several slices"
        check(self.slices == 1 or one, name, what, self.warps_m * self.warps_n, 1)
        needed = self.tm * self.tn + 2 * self.k_vector * (self.tm + self.tn) + 16
        self.check_resources(needed, "accumulators, two fragments, addresses", self.ctas_per_sm)

    def check_copies(self, x: str, copy: str) -> None:
        """Raises SpecError if the threads cannot copy operand ``x`` by the method ``copy``."""
        name, k_contiguous = self.name, self.k_contiguous(x)
        extent, width, threads = self.extent(x), self.width(x), self.slice_threads
        legal = K_COPIES if k_contiguous else OUTER_COPIES
        check(copy in legal, name, f"copy_{x} in layout {self.layout}", copy, legal)
        own, narrow = self.operand_dtype(x), [dtype for dtype in DTYPES if dtype != "f32"]
        packs = copy != "packed" or own in narrow
        check(packs, name, f"dtype of packed {x}, of 16 bits", own, narrow)
        if not k_contiguous:
            self.check_divides(f"copy width divides b{x}", width, extent)
            per_k = extent // width
            either = per_k % threads == 0 or threads % per_k == 0
            what = f"copies of {x} per k and slice threads divide one another"
            check(either, name, what, per_k, threads)
            return
        k_lanes = 8 if copy == "transpose" else self.bk // width
        unit = 2 * width if copy == "kvector" else 8
        check(self.bk % unit == 0, name, f"bk is a multiple of {unit} ({copy})", self.bk, unit)
        self.check_divides(f"lanes along k of {x} divide the slice", k_lanes, threads)
        at_once = threads // k_lanes
        whole = extent % at_once == 0 or extent < at_once
        check(whole, name, f"rows of {x} copied at once divide the tile", at_once, extent)

    def of(self, dtype: Hashable) -> Self:
        """Returns this kernel for another dtype, for operands of two dtypes (:class:`Mixed`), or
        with an :class:`Epilogue`.
        """
        if not isinstance(dtype, Mixed):
            return super().of(dtype)
        busy = self.copy_b == "vector" and self.tm * self.tn >= BUSY
        copy_b = "packed" if busy else self.copy_b
        return replace(self, dtype=dtype.narrow, dtype_a=dtype.wide, copy_b=copy_b)

    # -- derived --------------------------------------------------------------
    @property
    def label(self) -> str:
        dtype = f"{self.dtype_a}x{self.dtype}" if self.dtype_a else self.dtype
        return f"{self.layout.lower()}_{dtype}_{self.bm}x{self.bn}x{self.bk}"

    @property
    def lanes_n(self) -> int:
        """Lanes of a slice along n."""
        return self.lanes // self.lanes_m

    @property
    def abi(self) -> Abi:
        kind = self.dtype_a
        return abi(self.dtype, batched=self.batched, epilogue=self.epilogue, dtype_a=kind)

    def operand_dtype(self, operand: str) -> str:
        """Returns the dtype of operand "a" or "b" in global memory."""
        return (self.dtype_a if operand == "a" else None) or self.dtype

    def element(self, operand: str) -> str:
        """Returns the C++ type of the elements of operand "a" or "b"."""
        return ctypes(self.operand_dtype(operand))[0]

    @property
    def copies(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Operands "a" and "b", each with its copy method to shared memory."""
        return ("a", self.copy_a), ("b", self.copy_b)

    @property
    def outer_copies(self) -> tuple[str, ...]:
        """Copy methods :data:`OUTER_COPIES`, which the template reads."""
        return OUTER_COPIES

    def raw(self, operand: str) -> bool:
        """Returns whether operand "a" or "b" has 16-bit elements in shared memory."""
        return self.operand_dtype(operand) != "f32" and dict(self.copies)[operand] in RAW_COPIES

    def held(self, operand: str) -> bool:
        """Returns whether threads copy operand "a" or "b" through registers, not by cp.async."""
        copy = dict(self.copies)[operand]
        wide = self.operand_dtype(operand) == "f32"
        return copy == "staged" if wide else copy not in RAW_COPIES

    @property
    def staged(self) -> bool:
        """Whether an operand is copied through registers, from which threads store it to shared
        memory.
        """
        return self.held("a") or self.held("b")

    @property
    def async_copies(self) -> bool:
        """Whether the kernel copies an operand by cp.async, and has to wait for the copies."""
        return self.dtype == "f32" or not (self.held("a") and self.held("b"))

    def size(self, operand: str) -> int:
        """Returns the bytes of an element of operand "a" or "b" in shared memory."""
        return 2 if self.raw(operand) else 4

    def width(self, operand: str) -> int:
        """Returns how many neighbouring elements of ``operand`` a thread copies at a time."""
        copy = dict(self.copies)[operand]
        if copy in RAW_COPIES:
            return 16 // ITEMSIZE[self.operand_dtype(operand)]
        return 4 if copy in ("staged", "packed") else 1

    @property
    def ragged(self) -> bool:
        """Whether the kernel's source has a path that stores rows of the result by vectors though
        they begin at unaligned addresses. Kernels that copy B [K, N] by vectors have none: they
        require aligned rows of B, and rows of the result are as long, hence aligned, too. Kernels
        with several slices have none, since they store few outputs.
        """
        return self.slices == 1 and (self.layout[1] == "T" or self.width("b") == 1)

    @property
    def k_vector(self) -> int:
        """Number of k's that a thread loads from shared memory at a time."""
        return min((self.width(x) for x, copy in self.copies if copy == "kvector"), default=1)

    def group(self, operand: str) -> int:
        """Returns how many neighbouring rows of A or columns of B a thread multiplies."""
        own = self.tm if operand == "a" else self.tn
        return 1 if dict(self.copies)[operand] == "kvector" else min(own, 4)

    def extent(self, operand: str) -> int:
        """Returns the extent of the tile of operand "a" (along m) or "b" (along n)."""
        return self.bm if operand == "a" else self.bn

    def pitch(self, operand: str) -> int:
        """Returns the row pitch of a stage of operand "a" or "b" in shared memory, in elements.

        Transposing copies store 8 consecutive k x 4 consecutive outer indices per warp:
        conflict-free when the pitch is 4 modulo 8 (or the tile has one or two rows). In kvector
        mode, lanes read 16 bytes of consecutive rows: conflict-free when the pitch is an odd number
        of 16-byte units.
        """
        copy, extent = dict(self.copies)[operand], self.extent(operand)
        if copy == "kvector":
            return self.bk + self.width(operand)
        if copy in OUTER_COPIES or extent <= 2:
            return extent
        return extent + (4 - extent) % 8

    def floats(self, operand: str) -> int:
        """Returns the size of one stage of operand "a" or "b", in floats."""
        along_k = dict(self.copies)[operand] == "kvector"
        rows = self.extent(operand) if along_k else self.bk
        return self.pitch(operand) * rows * self.size(operand) // 4

    @property
    def slice_threads(self) -> int:
        """Threads of one slice."""
        return self.warps_m * self.warps_n * self.lanes

    @property
    def chains(self) -> int:
        return self.slices

    @property
    def threads(self) -> int:
        return self.slice_threads * self.slices

    @property
    def totals_offset(self) -> int:
        """Offset, in floats, of the running totals of a sliced kernel in shared memory.

        Before them is the ring of stages, which the epilogue's exchange buffer reuses.
        """
        ring = self.slices * self.stages * (self.floats("a") + self.floats("b"))
        stripe = self.warps_m * self.lanes_m * self.group("a")
        return max(ring, self.slices * stripe * (self.bn + 4))

    @property
    def shared_bytes(self) -> int:
        totals = self.bm * self.bn if self.split == "slices" else 0
        return 4 * (self.totals_offset + totals)

    def alignment(self, x: str) -> int:
        return self.width(x) * ITEMSIZE[self.operand_dtype(x)]

    @property
    def own_bounds(self) -> list[tuple[str, Expr]]:
        tiles_m, tiles_n = ceil_div(M, self.bm), ceil_div(N, self.bn)
        bounds = [
            ("m + BM - 1", M + (self.bm - 1)),
            ("n + BN - 1", N + (self.bn - 1)),
            ("m0 + row of a copy", tiles_m * self.bm + self.slice_threads),
            ("n0 + column of a copy", tiles_n * self.bn + self.slice_threads),
            ("k + BK - 1", K + (self.bk - 1)),
            ("k_begin + k of a copy", K + self.slice_threads),
        ]
        if self.split == "slices":
            bounds += [
                ("k + chunk - 1", K + CHUNK - 1),
                ("first + SLICES", CHUNKS + self.slices),
                ("(first + slice) * chunk, where slice < active", (CHUNKS - 1) * CHUNK),
            ]
        return bounds

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (Expect("fma.rn.f32", ("fma.*", "*mma.*")), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"C[M, N] = A . B, layout {self.layout}; CTA tile {self.bm} x {self.bn} x {self.bk}, "
            f"{self.sizes}",
            f"A: {self.copy_a}, B: {self.copy_b}; {self.stages} stages, {self.slices} slice(s), "
            f"split: {self.split}",
        )


@dataclass(frozen=True)
class ReduceSpec(SumsSpec):
    """A kernel that adds the f32 partial sums of a split reduction. ``dtype``: dtype of the
    operands, and of result and bias unless flags say f32.

    Rows whose length is a multiple of ``outputs_per_thread`` are read by vectors, and written by
    vectors if the result is aligned; others element by element.
    """

    cta_threads: int = 128
    outputs_per_thread: int = 4
    chunks_in_flight: int = 8
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = FMA
    epilogue: Epilogue | None = None

    template: ClassVar[str] = "simt/reduce.cu.j2"

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.dtype in DTYPES, self.name, "dtype", self.dtype, DTYPES)
        check(
            self.outputs_per_thread in (1, 2, 4),
            self.name,
            "outputs of a thread",
            self.outputs_per_thread,
            (1, 2, 4),
        )

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.cta_threads}x{self.outputs_per_thread}"

    @property
    def tail(self) -> int:
        """Chunks that a thread loads together when fewer than ``chunks_in_flight`` remain."""
        return min(self.chunks_in_flight, 4)

    @property
    def abi(self) -> Abi:
        return abi(self.dtype, epilogue=self.epilogue)

    @property
    def context(self) -> Mapping[str, Any]:
        own = self.epilogue.context if self.epilogue else {}
        return {**super().context, **own}

    def seen(self, dtype: Hashable) -> Hashable:
        """Returns ``dtype``; of operands of two dtypes B's, as flags say which arrays are f32."""
        return dtype.narrow if isinstance(dtype, Mixed) else super().seen(dtype)

    def of(self, dtype: Hashable) -> Self:
        """Returns this kernel for another dtype, or with an :class:`Epilogue`."""
        return with_epilogue(self, dtype) if isinstance(dtype, Epilogue) else super().of(dtype)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        most = (self.grid + 1) * (self.threads * self.outputs_per_thread)
        return self.bounds("next + TAIL", self.tail, "first + q * step", most)
