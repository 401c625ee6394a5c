"""Gradients of attention, contract ``attention_grad/3``: a CTA holds queries and streams keys and
values (dq), or holds keys and values and streams queries (dk, dv).

===========  =====================================================================================
``ROWS``     what CTAs hold: queries of a sequence times query heads per key head (dq), or keys of a
             sequence (dk, dv); in a ragged batch, those of all sequences together
``RAGGED``   most sequences of a ragged batch that can have rows: its sequences and one more, for
             tokens behind the last, but at most its tokens; 1 in other batches
``PAIRS``    sequences times key heads, or times parts of the query heads that share them; in a
             ragged batch, key heads or parts
``PAST``     what CTAs stream: keys (dq) or queries (dk, dv)
``DEPTH``    head dimension of queries and keys, padded to a multiple of 16
``WIDTH``    head dimension of values, padded to a multiple of 16
``PLAIN``    1 if logits are scores times a scale, and the copy engine can read the operands:
             strides of rows and heads are not 0
``MAPS``     blocks of queries in the bit map of a mask (:mod:`ptxgen.spec.attention_mask`); 0: no
             mask, or kernels that read the mask itself
``SMS``      streaming multiprocessors of the device
``FURTHER``  rows that are not the first of their sequence
===========  =====================================================================================

Arrays and their rows are aligned to 16 bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import Expr, all_of, const, var
from ptxgen.numerics import attention
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.spec import attention_mask as maps
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.attention import (
    DEPTH,
    FURTHER_ROWS,
    HEADS,
    LENGTHS,
    LISTED,
    LOGIT_POINTERS,
    PANEL,
    ROWS,
    ROWS_MAX,
    WIDE_MAX,
    WIDTH,
    AttentionBaseSpec,
    WarpSpecialisedSpec,
    area_offsets,
    context,
    keys_map,
    strides,
    tiles,
    tokens_map,
    with_mask_map,
)
from ptxgen.spec.base import (
    GRID_MAX,
    INDEX_MAX,
    WARP,
    check,
)
from ptxgen.spec.space import SIZE, SMS_MAX, Between, OneOf, Space
from ptxgen.spec.wgmma import Instruction, Operand

PAST, PLAIN, GROUP = var("PAST"), var("PLAIN"), var("GROUP")
MAPS = maps.MAPS
TILE_MIN = 16
"""Fewest rows or keys of a CTA's tile."""
SPACE = Space(
    "attention_grad",
    (
        ("ROWS", Between(1, ROWS_MAX)),
        ("RAGGED", Between(1, ROWS_MAX)),
        ("PAIRS", SIZE),
        ("PAST", Between(1, ROWS_MAX)),
        ("DEPTH", Between(16, attention.HEAD_MAX)),
        ("WIDTH", Between(16, attention.HEAD_MAX)),
        ("PLAIN", OneOf((0, 1))),
        ("MAPS", Between(0, ROWS_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    (FURTHER_ROWS,),
    within=tiles(TILE_MIN) <= GRID_MAX,
)
PARTS = ("dq", "dkdv", "dk", "dv")
TILES_MAX = 4096
"""Most tiles of queries whose mask bits fit shared memory in the dk and dv kernels."""
THREE_MAX = 96
"""Largest head dimension of kernels with three consumer warpgroups."""
SUMS = 8
"""Bit of ``flags``: store f32 sums of dk and dv over each part of the query heads that share keys,
instead of gradients."""
REGISTERS = {"dkdv": (160, 144)}
REGISTERS_ELSE = 144, 144
"""Most registers of a lane for accumulators and scores without spills, with plain and with rounded
logits; ``REGISTERS``: exceptions, by part."""
SIZES = (
    *("seqs", "heads", "group", "part", "queries", "keys", "total_k", "head", "head_v"),
    *("flags", "window"),
)
"""Names of the kernels' 32-bit scalar parameters."""


@dataclass(frozen=True)
class AttentionGradSpec(AttentionBaseSpec):
    """A kernel of attention's gradients by mma.sync or FMA. Each of ``warps`` warps holds 16 rows
    of queries and streams all keys ("dq"), or holds 16 keys and streams all queries ("dkdv", "dk",
    "dv"). ``shared_kib``: KiB of shared memory that a CTA may have.
    """

    part: str
    head_dim: int = LISTED[0]
    head_dim_v: int = LISTED[1]
    rounds_scores: bool = False
    warps: int = 4
    shared_kib: int = 163
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = attention.ATTENTION_GRAD["tc"]

    family: ClassVar[str] = "attention_grad"
    template: ClassVar[str] = "attention/grad.cu.j2"
    parts: ClassVar[tuple[str, ...]] = PARTS
    SUMS: ClassVar[int] = SUMS
    STAGES: ClassVar[int] = 2
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionBaseSpec.meanings,
        "warps": "warps of a CTA, each of which holds 16 query rows or keys",
        "part": "gradients that the kernel computes",
    }

    def __post_init__(self) -> None:
        self.check_form()
        what = "shared memory, bytes"
        check(self.tile > 0, type(self).__name__, what, self.shared_kib << 10, "of a tile of 8")

    @property
    def label(self) -> str:
        return f"{self.part}_{self.form}_{self.rows}"

    # -- tiles and shared memory ------------------------------------------------------------
    def _stage(self, tile: int) -> int:
        return tile * (self.pitch(self.depth) + self.pitch(self.width) + 4 * self._floats_per_row)

    @property
    def _floats_per_row(self) -> int:
        """f32 values that accompany each row in the ring: none in "dq", its logsumexp in "dv",
        logsumexp and delta (row sum of the output times its gradient) in others.
        """
        return {"dq": 0, "dv": 1}.get(self.part, 2)

    def _resident_bytes(self, tile: int) -> tuple[int, int]:
        """Returns the shared memory, in bytes, of the operands that a CTA keeps, and of the softmax
        weights.
        """
        each = self.pitch(self.depth) + (0 if self.part == "dv" else self.pitch(self.width))
        return self.rows * each, 0 if self.tier == "tc" else self.rows * tile * 4

    @property
    def tile(self) -> int:
        """Keys ("dq") or rows of queries in a stage of the ring: the largest of 64, 32, 16 and,
        without tensor cores, 8 that fits registers and shared memory; 0 if none does.
        """
        sums = sum(
            width
            for part, width in (("dq", self.depth), ("dk", self.depth), ("dv", self.width))
            if part in self.part
        )
        for tile in (64, 32, 16, 8)[: 3 if self.tier == "tc" else 4]:
            taken = sum(self._resident_bytes(tile)) + self.STAGES * self._stage(tile)
            fits = taken <= self.shared_kib << 10
            most = REGISTERS.get(self.part, REGISTERS_ELSE)[self.rounds_scores]
            if fits and sums // 2 + tile <= most:
                return tile
        return 0

    @property
    def stages(self) -> int:
        """Stages of the shared-memory ring through which keys ("dq") or rows of queries stream."""
        return self.STAGES

    @property
    def stage(self) -> int:
        """Bytes of a stage of the ring."""
        return self._stage(self.tile)

    @property
    def at(self) -> Mapping[str, int]:
        """Byte offsets in shared memory, by name: "held" (operands that the CTA keeps), "weights"
        (softmax weights, f32 only) and "ring".
        """
        held, weights = self._resident_bytes(self.tile)
        return area_offsets(held=held, weights=weights, ring=self.STAGES * self.stage)

    @property
    def shared_bytes(self) -> int:
        return self.at["end"]

    # -- predicates and bounds --------------------------------------------------------------
    @property
    def grid(self) -> Expr:
        return tiles(self.rows)

    @property
    def widths(self) -> Expr:
        """Multiply-adds for one row and one key: scores, their gradients (not for dv), and each
        result.
        """
        found = {"dq": DEPTH * 2 + WIDTH, "dk": DEPTH * 2 + WIDTH, "dv": DEPTH + WIDTH}
        return found.get(self.part, (DEPTH + WIDTH) * 2)

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(self.multiply_adds(PAST), self.multiplier)

    @property
    def requires(self) -> Expr:
        fits = (DEPTH + WIDTH <= sum(LISTED),) if self.part == "dkdv" else ()
        return all_of((self.grid <= GRID_MAX, *fits))

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = (
            ("place.first + ROWS", ROWS + (self.rows - 1)),
            ("begin + lane, sequence", const(DIM_MAX) + WARP),
            ("tile * TILE", PAST + 3 * self.tile),
        )
        return tuple((text, value, INDEX_MAX) for text, value in found)

    # -- parameters -------------------------------------------------------------------------
    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        operands = ("dout", "q", "k", *(() if self.part == "dv" else ("v",)))
        operands += ("o",) if self.part == "dq" else ()
        over_rows = self.part != "dq"
        numbers = ("lse",) if self.part == "dv" else ("lse", "delta")
        results = ("dk", "dv") if self.part == "dkdv" else (self.part,)
        logits = self.part == "dq" and self.rounds_scores
        reads = (
            *(ptr(n, f"const {element}*") for n in operands),
            *(ptr(n, "const float*") for n in numbers if over_rows or n == "lse"),
            *LOGIT_POINTERS,
        )
        writes = tuple(ptr(n, "void*" if over_rows else f"{element}*") for n in results)
        if not over_rows:
            writes += (ptr("delta", "float*"),)
        if logits:
            writes += (ptr("dlogits", "float*", optional=True),)
        taken = (
            *strides((*operands, *numbers, *results), "batch", "head", "row"),
            *strides(("bias", "mask"), "batch", "head", "row", "key"),
            *(strides(("dlogits",), "batch", "head", "row") if logits else ()),
            *(strides(results, "part") if over_rows else ()),
        )
        words = tuple(Param(n, "u32") for n in SIZES if over_rows or n != "part")
        factors = tuple(Param(n, "f32") for n in ("factor", "inner", "outer", "scale"))
        return Abi((*reads, *LENGTHS, *writes, *taken, *words, *factors))

    @property
    def context(self) -> Mapping[str, Any]:
        """Variables that the template reads besides ``spec``, by name."""
        return context(self.rounds_scores)

    @property
    def work(self) -> str:
        held, past = ("rows", "keys") if self.part == "dq" else ("keys", "rows")
        tiles = f"{self.rows} {held}, {past} in tiles of {self.tile}"
        return f"{self.part}; {tiles}, {self.stages} stages"


def _rows_map(x: Operand) -> Param:
    """Returns the tensor map of queries ("q") or of the output's gradient ("dout"). ``x``: the
    shared-memory tile that a copy fills, which names the array.
    """
    size = var("HEAD" if x.name == "q" else "HEAD_V")
    return tokens_map(x.name, x.box, x.swizzle, size, var("QUERIES"), HEADS * GROUP)


@dataclass(frozen=True)
class HopperGradSpec(WarpSpecialisedSpec, AttentionGradSpec):
    """A gradient kernel by wgmma and TMA: each warpgroup holds 64 rows (or keys), and a producer
    streams the keys (or rows).
    """

    warps: int = 8
    shared_kib: int = 227
    min_arch: str = "sm_90"
    registers: int = 240

    family: ClassVar[str] = "attention_grad_wgmma"
    mask_macros: ClassVar[str] = "attention/mask/grad_none.cuh.j2"
    """Template file with the macros that find masked keys."""
    parts: ClassVar[tuple[str, ...]] = PARTS
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionGradSpec.meanings,
        **WarpSpecialisedSpec.meanings,
    }

    def __post_init__(self) -> None:
        self.check_form()
        name = type(self).__name__
        check(self.warps % 4 == 0, name, "warps of whole warpgroups", self.warps, 4)
        check(not self.rounds_scores, name, "rounds_scores", self.rounds_scores, False)
        for one in self.each:
            stages = one.stages + one.prefetch
            check(stages >= 2, name, "stages in the budget", stages, ">= 2")

    @property
    def template(self) -> str:  # type: ignore[override]
        return f"attention/hopper_{'dq' if self.part == 'dq' else 'dkdv'}.cu.j2"

    # -- tiles and shared memory ------------------------------------------------------------
    @property
    def slots(self) -> int:
        """Resident CTAs per SM: two with one consumer warpgroup, if their accumulators fit the
        registers.
        """
        sums = max(sum(mma.columns for mma in one.sums) for one in self.each)
        return (
            2
            if self.consumers == 1 and max(sums, self.head_dim, self.head_dim_v) <= WIDE_MAX
            else 1
        )

    @property
    def producer_registers(self) -> int:
        """Registers of a producer thread; 0: the kernel does not reallocate registers."""
        return super().producer_registers if self.consumers > 1 or self.slots > 1 else 0

    @property
    def each(self) -> tuple[Self, ...]:
        """Specs of the kinds of CTAs in one launch. This spec alone; or, where registers cannot
        hold the accumulators of both dk and dv, one spec for each, by half of the CTAs.
        """
        if self.part != "dkdv" or self.head_dim + self.head_dim_v <= sum(LISTED):
            return (self,)
        return replace(self, part="dk"), replace(self, part="dv")

    @property
    def width(self) -> int:
        return -(-self.head_dim_v // PANEL) * PANEL

    @property
    def tile(self) -> int:
        if self.part != "dq":
            return attention.QUERIES
        wide = self.depth + self.width
        if self.consumers == 3 or self.early:
            return 64
        return 128 if wide <= 128 else 96 if wide <= sum(LISTED) else 64

    @property
    def held(self) -> tuple[Operand, ...]:
        """Operand tiles that a CTA keeps in shared memory: queries and output gradients ("dq"),
        else keys and values.
        """
        names = ("q", "dout") if self.part == "dq" else ("k", "v")
        return self._pair(names, self.rows)[: 1 if self.part == "dv" else 2]

    @property
    def streamed(self) -> tuple[Operand, Operand]:
        """Tiles of the operands that stream through the ring: keys and values ("dq"), else queries
        and output gradients. They have the layout that products along the head dimension read:
        scores, and gradients of the softmax weights.
        """
        return self._pair(("k", "v") if self.part == "dq" else ("q", "dout"), self.tile)

    def _pair(self, names: tuple[str, str], outer: int) -> tuple[Operand, Operand]:
        x, y = names
        return Operand(x, True, outer, self.depth, 1), Operand(y, True, outer, self.width, 1)

    @property
    def summed(self) -> tuple[Operand, Operand]:
        """Tiles of :attr:`streamed` in the transposed layout, which the products that accumulate
        dq, dk and dv read.
        """
        x, y = self.streamed
        widths = (x, self.depth), (y, self.width)
        first, second = (Operand(t.name, False, n, self.tile, 1) for t, n in widths)
        return first, second

    @property
    def fixed(self) -> bool:
        """Whether keys and values are wgmma operands in registers, not in shared memory."""
        return self.part == "dkdv" and self.head_dim + self.head_dim_v <= 128

    @property
    def early(self) -> bool:
        """Whether wgmma computes the next tile's scores while threads compute this tile's logit
        gradients.
        """
        return (
            self.part == "dq" and self.consumers == 2 and max(self.head_dim, self.head_dim_v) <= 128
        )

    @property
    def scores(self) -> Instruction:
        """Instruction (wgmma) that computes the scores."""
        return Instruction(self.tile, self.dtype, self.fixed)

    @property
    def sums(self) -> tuple[Instruction, ...]:
        """Wgmma instructions that accumulate the kernel's results: the one of dq or dk, then that
        of dv, if the kernel computes them.
        """
        each = (self.head_dim, self.part != "dv"), (self.head_dim_v, "dv" in self.part)
        return tuple(Instruction(n, self.dtype, True, (False, True)) for n, of in each if of)

    @property
    def stage(self) -> int:
        """Bytes of a stage: a tile of keys or of values ("dq"), or one of queries and one of output
        gradients.
        """
        x, y = (t.bytes for t in self.streamed)
        return max(x, y) if self.part == "dq" else x + y

    @property
    def resident_bytes(self) -> int:
        """Shared memory of the operands that a CTA keeps, in bytes."""
        return sum(t.bytes for t in self.held)

    @property
    def known(self) -> int:
        """Bytes of the records of a stage's rows: logsumexp, delta and visible keys of each row,
        and 128 bytes for the stage; 0 in "dq".
        """
        return 0 if self.part == "dq" else 4 * (2 + self.seen_words) * self.tile + 128

    @property
    def seen_words(self) -> int:
        """32-bit words that describe a row's visible keys: the first key, and their number."""
        return 2

    @property
    def _ring_capacity(self) -> int:
        """Shared memory, in bytes, that remains for the rings after kept operands, mask bits and
        barriers.
        """
        return (self.shared_kib << 10) - self.resident_bytes - 320 - self.map_bytes

    @property
    def stages(self) -> int:
        """Stages of the ring ("dq"); in other parts, of each of two rings, for queries and for
        output gradients.
        """
        each = self.stage + self.known + (16 if self.part == "dq" else 32)
        most = 10 if self.consumers > 1 else 5
        if self.part != "dq":
            most = 3 if self.fixed else 4
        return min(most, self._ring_capacity // each)

    @property
    def prefetch(self) -> int:
        """Stages by which the ring of queries is longer than the ring of output gradients, 0 or 1.
        Queries stay in use longer.
        """
        queries = self.streamed[0].bytes + self.known + 16
        room = self._ring_capacity - self.stages * (self.stage + self.known + 32)
        return int(self.part == "dk" and self.stages == 1 and room >= queries)

    @property
    def at(self) -> Mapping[str, int]:
        """Byte offsets in shared memory, by name: "held" (operands that the CTA keeps), "ring"
        (both rings), "known" (records of the rows in the rings, :attr:`known`), "votes" (two words
        for each warp), "place" (the CTA's sequence, head and tile), "reach" (range of tiles that it
        reads through the ring), "barriers" (two mbarriers a stage, one for the kept operands) and
        "map" (bits of a mask's map).
        """
        rings = 1 if self.part == "dq" else 2
        return area_offsets(
            held=self.resident_bytes,
            ring=self.stages * self.stage + self.prefetch * self.streamed[0].bytes,
            known=(self.stages + self.prefetch) * self.known,
            votes=self.warps * 2 * 4,
            place=48,
            reach=16,
            barriers=16 * (rings * self.stages + self.prefetch) + 8,
            map=self.map_bytes,
        )

    @property
    def map_bytes(self) -> int:
        """Shared memory for bits of a mask's bit map, in bytes."""
        return 0

    @property
    def shared_bytes(self) -> int:
        if len(self.each) > 1:
            return max(one.shared_bytes for one in self.each)
        return self.at["end"]

    # -- predicates and bounds --------------------------------------------------------------
    @property
    def grid(self) -> Expr:
        return super().grid * len(self.each)

    @property
    def widths(self) -> Expr:
        """Multiply-adds for one row and one key, over all CTAs. Where some CTAs compute dk and
        others dv (:attr:`each`), both compute the scores.
        """
        return super().widths if len(self.each) == 1 else DEPTH * 3 + WIDTH * 2

    @property
    def requires(self) -> Expr:
        both = DEPTH + WIDTH <= sum(LISTED)
        fits = [both if len(self.each) == 1 else ~both] if self.part == "dkdv" else []
        if self.consumers == 3:
            fits += [DEPTH <= THREE_MAX, WIDTH <= THREE_MAX]
        return all_of((PLAIN.eq(1), self.masks, *fits, self.grid <= GRID_MAX))

    @property
    def masks(self) -> Expr:
        """Predicate on the mask: this kernel supports none."""
        return MAPS.eq(0)

    @property
    def products(self) -> tuple[Instruction, ...]:
        return self.scores, *self.sums

    # -- parameters -------------------------------------------------------------------------
    @property
    def abi(self) -> Abi:
        found = super().abi.params
        tiles = (*self.held, *self.streamed)
        of_keys = (keys_map(x.name, x.box, x.swizzle) for x in tiles if x.name in ("k", "v"))
        of_rows = () if self.part == "dq" else map(_rows_map, self.streamed)
        return Abi((*found, *of_keys, *of_rows))


@dataclass(frozen=True)
class MaskedGradSpec(HopperGradSpec):
    """A wgmma gradient kernel that reads the bit map of a mask. It skips blocks of keys that no row
    sees and rows that see no key, treats fully visible blocks as unmasked, and reads bits for the
    others.
    """

    family: ClassVar[str] = "attention_grad_wgmma_masked"
    mapped: ClassVar[bool] = True
    mask_macros: ClassVar[str] = "attention/mask/grad_map.cuh.j2"
    TILES_MAX: ClassVar[int] = TILES_MAX

    @property
    def seen_words(self) -> int:
        """32-bit words of a row's visibility bits."""
        return self.rows // maps.GROUPED

    @property
    def map_bytes(self) -> int:
        """Bytes of a mask's bits in shared memory: in "dq" two summary words a chunk of keys and a
        spare pair; else two bits a tile of rows.
        """
        return 8 * (maps.CHUNKS_MAX + 1) if self.part == "dq" else TILES_MAX // 4

    @property
    def keys(self) -> Expr:
        """Variable of the number of keys of a sequence: PAST in "dq", where keys stream; ROWS where
        the CTA holds keys.
        """
        return PAST if self.part == "dq" else ROWS

    @property
    def masks(self) -> Expr:
        tiles = () if self.part == "dq" else (PAST <= TILES_MAX * attention.QUERIES,)
        return all_of((maps.required(self.keys), *tiles))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return MappingProxyType(maps.scratch(self.keys))

    @property
    def abi(self) -> Abi:
        return with_mask_map(super().abi)
