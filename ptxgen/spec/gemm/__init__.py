"""Products ``C[M, N] = A[M, K] . B[K, N]``: their problem variables, parameters and kernels.

Problem variables, all integers:

=================  =====================================================================
``M, N, K``        rows, columns, reduction length; 1 .. 2^31 - 1
``CHUNK, CHUNKS``  chunk length of the contract's plan (1 .. K), and ceil(K / CHUNK)
``ALIGN_A/B``      largest of 1, 2, 4, 8, 16 bytes that divides the operand's address and the
                   byte distance of its rows
``ALIGN_C``        alignment of the result, in the same way, and ``ITEM_C``, bytes of its elements;
                   only if accumulators begin with its old values (:attr:`Plan.continued`)
``SMS``            streaming multiprocessors of the device
=================  =====================================================================

Further scalar parameters: ``LDA, LDB, LDC``, the row strides in elements; ``FLAGS``; and for a
batch of such products its size and the strides from matrix to matrix (:data:`ALONE`).
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast

from ptxgen.cost.kernel import KernelCost, Phase, Roofline
from ptxgen.expr import Expr, ceil_div, const, maximum, minimum, select, var
from ptxgen.numerics import activation
from ptxgen.numerics.contract import ITEMSIZE, K, M, N, Plan
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import GRID_MAX, KernelSpec, check
from ptxgen.spec.epilogue import Epilogue
from ptxgen.spec.space import ALIGNMENT, SIZE, SMS_MAX, Between, OneOf, Space

CHUNK, CHUNKS = var("CHUNK"), var("CHUNKS")
ALIGN_A, ALIGN_B = var("ALIGN_A"), var("ALIGN_B")
SMS = var("SMS")
LDA, LDB, LDC = var("LDA"), var("LDB"), var("LDC")
ALIGN_C, ITEM_C = var("ALIGN_C"), var("ITEM_C")

PARTIAL_SUMS = CHUNKS * M * N
"""Elements of the split-K workspace, [CHUNKS][M][N], of the accumulators' dtype."""

ACCUMULATE, BIAS_F32, OUT_F32, CONTINUE, ACTIVATION_SHIFT = 1, 2, 4, 8, 8
"""Bits of the parameter ``flags``. 1: add the old values of C at the end; 2, 4: bias, result is f32
where operands have 16 bits (f32 kernels ignore both); 8: start accumulators from the old values of
C (kernels with split "onto"). The activation's code begins at bit 8."""

LAYOUTS = ("NN", "NT", "TN", "TT")
"""Storage of A and B: "N" is [M, K] (A) or [K, N] (B), "T" the transpose."""

STRADDLE = 3
"""Factor by which a product's cost counts the bytes of a 128-byte piece that straddles two L2
lines. Of 1, 2, 3 and 5, the factors from 3 on led to equally good choices of kernels."""


RESULT = (("ALIGN_C", ALIGNMENT), ("ITEM_C", OneOf((2, 4, 8))))
"""Variables of the result's alignment and element size, for kernels that start from its old
values."""


def space_of(
    what: str,
    plan: Plan,
    leading: tuple[tuple[str, Any], ...] = (),
    trailing: tuple[tuple[str, Any], ...] = (),
    derived: tuple[tuple[str, Expr], ...] = (),
) -> Space:
    """Returns the space of problems of sizes M, N and K whose reduction is split by ``plan``.
    ``what``: name of the space. Further variables: ``leading`` ahead of SMS and alignments,
    ``trailing`` after these, and ``derived`` ones.
    """
    return Space(
        f"{what} under the plan {plan.name!r}",
        (
            *((name, SIZE) for name in "MNK"),
            *leading,
            ("SMS", Between(1, SMS_MAX)),
            ("ALIGN_A", ALIGNMENT),
            ("ALIGN_B", ALIGNMENT),
            *trailing,
        ),
        derived=(
            ("CHUNK", maximum(1, minimum(K, plan.chunk))),
            ("CHUNKS", ceil_div(K, CHUNK)),
            *derived,
        ),
        bounded=("CHUNKS",),
    )


@cache
def space(plan: Plan) -> Space:
    """Returns the space of products whose reduction is split by ``plan``."""
    return space_of("products", plan, trailing=RESULT if plan.continued else ())


def of_result(space: Space, align: int, item: int) -> tuple[tuple[str, int], ...]:
    """Returns the variables that describe the result in problems of ``space``: rows aligned to
    ``align`` bytes, elements of ``item`` bytes. Empty if the space has none.
    """
    known = {"ALIGN_C": align, "ITEM_C": item}
    return tuple((name, value) for name, value in known.items() if name in space.arguments)


BATCH, INNER = var("BATCH"), var("INNER")
"""Variables of a batch of matrices, which has two dimensions: ``BATCH`` is the number of all
matrices, ``INNER`` the size of the inner dimension (grid.y)."""
BATCH_MAX = (1 << 16) - 1
"""Most matrices along a dimension of a batch: largest grid.y and grid.z (CUDA programming guide,
compute capabilities)."""
STRIDES = ("batch_a", "batch_b", "batch_c", "outer_a", "outer_b", "outer_c")
"""Stride parameters of kernels that compute batches: elements from one matrix of A, B or C to the
next, along the inner dimension (grid.y) and along the outer one (grid.z)."""
ALONE = (*((name.upper(), 0) for name in STRIDES), ("BATCH", 1), ("INNER", 1))
"""Batch parameters of a single product: zero strides, one matrix."""


def matrix(
    operand: str,
    layout: str,
    box: tuple[int, int],
    itemsize: int,
    swizzle: int,
    *,
    batched: bool = False,
) -> Param:
    """Returns the tensor map of operand "a" or "b" in layout ``layout``. ``box``: elements of a
    row, and rows, that one TMA copy moves; ``itemsize``: bytes of an element; ``swizzle``: width of
    the swizzle pattern, in bytes. ``batched``: the map spans all matrices of a batch; a dimension
    with stride 0 has extent 1.
    """
    rows, columns, letter, pitch = (
        (M, K, layout[0], LDA) if operand == "a" else (K, N, layout[1], LDB)
    )
    size: tuple[Expr, ...] = (columns, rows) if letter == "N" else (rows, columns)
    pitches: tuple[Expr, ...] = (pitch,)
    if batched:
        x = operand.upper()
        for stride, count in ((var(f"BATCH_{x}"), INNER), (var(f"OUTER_{x}"), BATCH // INNER)):
            size += (select(stride > 0, count, 1),)
            pitches += (select(stride > 0, stride, pitch),)
    found = MapBox(operand, size, pitches, itemsize, box, swizzle=swizzle)
    return Param(f"map_{operand}", "map", "const __grid_constant__ TensorMap", found)


def ctypes(dtype: str) -> tuple[str, str, str]:
    """Returns the C++ types of operands of ``dtype``, of bias and result, and of partial sums."""
    alike = {"f32": "float", "f64": "double"}.get(dtype)
    return (alike, alike, alike) if alike else ("Element", "void", "float")


def abi(
    dtype: str,
    more: tuple[Param, ...] = (),
    *,
    batched: bool = False,
    aliased: bool = False,
    epilogue: Epilogue | None = None,
    dtype_a: str | None = None,
) -> Abi:
    """Returns the parameters of a GEMM kernel whose operands are of ``dtype``, with the scalar
    parameters ``more`` at the end. ``batched``: adds the strides of a batch. ``aliased``: omits
    ``__restrict__`` from the operands. ``epilogue``: adds the arrays of a fused formula.
    ``dtype_a``: dtype of A, if it is not ``dtype``.
    """
    operand, beside, accumulator = ctypes(dtype)
    alone = "" if aliased else " __restrict__"
    return Abi(
        (
            ptr("a", f"const {ctypes(dtype_a or dtype)[0]}*{alone}"),
            ptr("b", f"const {operand}*{alone}"),
            ptr("bias", f"const {beside}*{alone}", optional=True),
            ptr("c", f"{beside}*"),
            ptr("workspace", f"{accumulator}*", optional=True),
            *(epilogue.pointers if epilogue else ()),
            *(Param(name, "i64") for name in ("lda", "ldb", "ldc", *(STRIDES if batched else ()))),
            *(epilogue.pitches if epilogue else ()),
            *(Param(name, "u32") for name in ("m", "n", "k", "chunk", "flags")),
            *more,
        )
    )


MEANINGS: Mapping[str, str] = {
    **KernelSpec.meanings,
    "prefetch": "steps of 16 k by which fragments are loaded ahead of their use",
    "chunks_in_flight": "chunks whose loads are in flight together",
    "bk": "k's of a stage in shared memory",
    "bm": "rows of C in a CTA's tile",
    "bn": "columns of C in a CTA's tile",
    "cluster_m": "CTAs of a cluster along m; they share tiles of B",
    "cluster_n": "CTAs of a cluster along n; they share tiles of A",
    "consumers": "consumer warpgroups; one producer warp copies for them",
    "producer_warps": "warps that only copy (0: all warps copy)",
    "copy_a": "copy method of A to shared memory",
    "copy_b": "copy method of B to shared memory",
    "dtype_a": "dtype of A, if B has another (-: the same)",
    "cta_threads": "threads of a CTA",
    "ctas_per_sm": "CTAs that share an SM (bounds registers a thread)",
    "epilogue": "formula applied to the result before it is stored (-: none)",
    "spilled_sums": "sums of each fragment's second set that a thread keeps in shared memory",
    "whole_rows": "whether the kernel requires that M is a multiple of bm",
    "lanes": "lanes of a warp that belong to one slice",
    "lanes_m": "lanes of a slice along m; the others are along n",
    "layout": "storage of A and B, row-major: N is [M, K] or [K, N], T its transpose",
    "fma_order": "order in which a thread updates its outputs at each k",
    "outputs_per_thread": "outputs that a thread computes",
    "persistent": "whether the grid is bounded and each CTA computes several tiles",
    "align_a": "alignment of A's rows, in bytes; a copy moves as many",
    "align_b": "alignment of B's rows, in bytes; a copy moves as many",
    "cluster": "CTAs of a cluster; each computes one chunk of the same tile",
    "mma_k": "k's of an mma instruction (1 on FMA units)",
    "unit": "arithmetic unit: mma (tensor cores) or fma (FMA units)",
    "raster": "tile rows that are computed together, to share columns in L2 (0: all)",
    "registers": "registers of a consumer thread after setmaxnreg (0: as launched)",
    "slices": "warps, or parts of a warp, that each compute other chunks of a tile",
    "split": "place where partial sums of chunks are added: none (one chunk), onto (one chunk, "
    "added to the old C), serial (registers), slices (shared memory), cluster (distributed shared "
    "memory), workspace (global memory, by a reduce kernel)",
    "stages": "stages of the ring buffer in shared memory",
    "streamed": "operands loaded with L2's evict-first policy",
    "swap_operands": "whether mma's 16 rows are columns of B (for few rows of A)",
    "tm": "rows of C that a thread computes",
    "tn": "columns of C that a thread computes",
    "warps_m": "warps of a CTA (or slice) along m",
    "warps_n": "warps of a CTA (or slice) along n",
}
"""Descriptions of the fields of GEMM specs, for the ``ptxgen`` command."""


CONTEXT: Mapping[str, Any] = MappingProxyType(
    {"activation": activation, "gemm": sys.modules[__name__]}
)
"""Variables that all GEMM templates read besides ``spec``, by name."""


_Spec = TypeVar("_Spec", bound=KernelSpec)


def with_epilogue(kernel: _Spec, epilogue: Epilogue) -> _Spec:
    """Returns ``kernel`` with a fused epilogue formula."""
    plain = kernel.of(kernel.seen(epilogue.dtype))
    found: _Spec = replace(cast(Any, plain), epilogue=epilogue)
    return found


class GemmSpec(KernelSpec):
    """Base of the GEMM kernels: CTAs compute output tiles of ``bm`` x ``bn``, over all of K or
    chunk by chunk, in stages of ``bk`` k's.

    ``layout``: storage of A and B, one of :data:`LAYOUTS`. ``split``: where the chunks of a
    reduction are added; "workspace": in global memory. ``persistent``: CTAs loop over the tiles.
    ``ctas_per_sm``: CTAs that share an SM. ``epilogue``: a fused formula.
    """

    layout: str
    bm: int
    bn: int
    bk: int
    split: str  # where the chunks of a reduction meet; "workspace": in global memory
    persistent: bool  # whether CTAs walk over the tiles
    ctas_per_sm: int
    epilogue: Epilogue | None = None  # a fused formula

    meanings: ClassVar[Mapping[str, str]] = MEANINGS
    in_pieces: ClassVar[bool] = False
    """Whether the kernel reads rows of its tiles in pieces of 128 bytes, the size of an L2 line, so
    that unaligned rows cost extra traffic."""

    @property
    def label(self) -> str:
        return f"{self.layout.lower()}_{self.dtype}_{self.bm}x{self.bn}x{self.bk}"

    @property
    def context(self) -> Mapping[str, Any]:
        return {**CONTEXT, **self.epilogue.context} if self.epilogue else CONTEXT

    def of(self, dtype: Hashable) -> Self:
        """Returns this kernel for another dtype, or with an :class:`Epilogue`. A kernel that stores
        partial sums changes its dtype only: the kernel that adds them evaluates the formula.
        """
        if not isinstance(dtype, Epilogue):
            return super().of(dtype)
        check(self.takes(dtype), self.name, "epilogue", "a formula", "none")
        return self.of(dtype.dtype) if self.split == "workspace" else with_epilogue(self, dtype)

    @property
    def abi(self) -> Abi:
        return abi(self.dtype, batched=self.batched, epilogue=self.epilogue)

    def k_contiguous(self, x: str) -> bool:
        """Returns whether operand "a" or "b" is contiguous along the reduction."""
        return self.layout[0] == "N" if x == "a" else self.layout[1] == "T"

    @property
    def batched(self) -> bool:
        return self.split != "workspace"

    @property
    def ragged(self) -> bool:
        """Whether the kernel's source has a path that stores rows of the result by vectors though
        they begin at unaligned addresses.
        """
        return False

    def rows_from(self, least: int) -> int:
        """Returns the smallest M from ``least`` on that the kernel serves."""
        return least

    @property
    def continues(self) -> bool:
        return self.split == "onto"

    @property
    def result(self) -> int:
        """Element size, in bytes, that the kernel requires of the result; 0: any."""
        return 0

    @property
    def waits(self) -> bool:
        return True

    @property
    def tiles(self) -> Expr:
        """Number of output tiles of a problem."""
        return ceil_div(M, self.bm) * ceil_div(N, self.bn)

    @property
    def work(self) -> Expr:
        """Number of work items: output tiles, or output tiles times chunks."""
        return self.tiles * CHUNKS if self.split == "workspace" else self.tiles

    @property
    def grid(self) -> Expr:
        return minimum(self.tiles, GRID_MAX) if self.persistent else self.work

    @property
    def scratch(self) -> Mapping[str, Expr]:
        if self.split != "workspace":
            return {}
        return {"workspace": PARTIAL_SUMS * ITEMSIZE[self.contract.accumulator]}

    @property
    def multiplier(self) -> str:
        """Unit that multiplies, one of :data:`ptxgen.cost.kernel.UNITS`; by default "mma"."""
        return "mma"

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(M * N * K, self.multiplier)

    @property
    def shared_by(self) -> tuple[int, int]:
        """CTAs of a cluster along m and along n, which share loads by multicast."""
        return 1, 1

    @property
    def chains(self) -> int:
        """Chunks of the reduction that a CTA works on concurrently."""
        return 1

    @property
    def slots(self) -> int:
        """Resident CTAs per SM."""
        return self.ctas_per_sm

    @property
    def straddled(self) -> Expr:
        """Extra L2 traffic, in bytes for each k, of tile rows that are not aligned to 32 bytes.
        Their 128-byte pieces straddle two L2 lines; each byte counts :data:`STRADDLE` times.
        """
        if not self.in_pieces:
            return const(0)
        high, wide = self.shared_by
        item = ITEMSIZE[self.dtype]
        a = minimum((K if self.layout[0] == "N" else M) % (32 // item), 1) * (self.bm * high)
        b = minimum((N if self.layout[1] == "N" else K) % (32 // item), 1) * (self.bn * wide)
        return (a + b) * (STRADDLE * item)

    @property
    def cost(self) -> KernelCost:
        high, wide = self.shared_by
        cta_per_chunk = self.split in ("workspace", "cluster")  # each chunk has a CTA
        length = CHUNK if cta_per_chunk else K
        steps = ceil_div(length, self.bk)
        if self.split == "slices":
            steps = ceil_div(CHUNK, self.bk) * ceil_div(CHUNKS, self.chains)
        tiles = self.tiles if high * wide == 1 else self.tiles * (high * wide)
        item = ITEMSIZE[self.dtype]
        partial = PARTIAL_SUMS * ITEMSIZE[self.contract.accumulator]
        result = ITEM_C * 2 if self.continues else const(item)  # the old values are read, too
        return KernelCost(
            slots=self.slots,
            ctas=tiles * CHUNKS if cta_per_chunk else tiles,
            phases=(Phase(self.multiplier, steps, length * (self.bm * self.bn)),),
            loads=self.tiles * K * ((self.bm * high + self.bn * wide) * item + self.straddled),
            operands=(M + N) * K * item,
            stores=partial if self.split == "workspace" else M * N * result,
        )
