"""Attention, contract ``attention/2``: a CTA holds rows of queries and streams keys and values.

================  ================================================================================
``ROWS``          queries of a sequence times query heads per key head; in a ragged batch, those of
                  all sequences together
``RAGGED``        most sequences of a ragged batch that can have rows: its sequences and one more,
                  for tokens behind the last, but at most its tokens; 1 in other batches
``PAIRS``         sequences times key heads; in a ragged batch, key heads
``KEYS``          keys of the longest sequence
``DEPTH, WIDTH``  head dimensions of keys and of values, padded to a multiple of 16
``PAGED``         page size in keys, if the copy engine can read such pages (:func:`paged`); 1:
                  pages of another size; 0: no pages
``MAPS``          blocks of queries in the bit map of a mask (:mod:`ptxgen.spec.attention_mask`); 0:
                  no mask, or kernels that read the mask itself
``SMS``           streaming multiprocessors of the device
``FURTHER``       rows that are not the first of their sequence
``TILES_16``      tiles of 16 rows, at most
``TILES_128``     tiles of 128 rows, at most
``DECODE_TILES``  tiles of 16 rows in a step of decoding: one a sequence of a ragged batch, or more
================  ================================================================================

Queries, keys and values and their rows are aligned to 16 bytes. Further scalar parameters are the
strides of all arrays, in elements, and :data:`SIZES`.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import Expr, all_of, ceil_div, const, maximum, minimum, select, var
from ptxgen.numerics import activation, attention, ex2, logsumexp
from ptxgen.numerics.contract import AUTO_TIER, Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formula import Formula, Output, read
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.numerics.softcap import tanh
from ptxgen.spec import attention_mask as maps
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, MapBox, Param, ptr
from ptxgen.spec.base import (
    ARCHITECTURES,
    GRID_MAX,
    INDEX_MAX,
    WARP,
    WARPGROUP,
    WORKSPACE_MAX,
    Expect,
    KernelSpec,
    check,
)
from ptxgen.spec.space import SIZE, SMS_MAX, Between, OneOf, Space
from ptxgen.spec.wgmma import Instruction, Operand

ROWS, RAGGED, PAIRS, KEYS = var("ROWS"), var("RAGGED"), var("PAIRS"), var("KEYS")
DEPTH, WIDTH, PAGED = var("DEPTH"), var("WIDTH"), var("PAGED")
SMS, SPLITS, TILES_16, TILES_128 = var("SMS"), var("SPLITS"), var("TILES_16"), var("TILES_128")
DECODE_TILES, FURTHER = var("DECODE_TILES"), var("FURTHER")
HEADS, SEQS = var("HEADS"), var("SEQS")
PAGE, BLOCKS = var("PAGE"), var("BLOCKS")
"""Keys of a page, and number of pages; ``HEADS, SEQS``: numbers of heads of keys, and of
sequences."""
QUERIES, TOTAL_K = var("QUERIES"), var("TOTAL_K")
FLAGS, WINDOW = var("FLAGS"), var("WINDOW")
"""Mask flags, and width of the sliding window, in keys; ``QUERIES, TOTAL_K``: numbers of queries
and of keys."""
TOTALS_MAX = 128
"""Largest head dimension of values whose running totals over splits fit shared memory next to the
ring, with two consumer warpgroups."""
WIDE_MAX = 192
"""Largest head dimension of values whose accumulators fit the registers of one warpgroup at two
CTAs per SM."""
ONE_WARPGROUP_TOTALS_MAX = 96
"""Largest head dimension of values whose running totals over splits fit shared memory with one
warpgroup, at two CTAs per SM."""
PAGES = 16, 32, 64, 128, 256
"""Page sizes, in keys, that the copy engine (TMA) can read."""
PANEL = 64
"""16-bit elements in a row of a tile with the 128-byte swizzle."""
TILE_MIN = 32
"""Rows of a tile of the portable kernel, which serves every problem: the space bounds its grid."""
ROWS_MAX = 1 << 30
TILE_RECORD_BYTES = 96, 16
"""Bytes of the record of a tile in shared memory (C++ type ``TileInfo``): its fixed part, and the
part of each warpgroup.
"""
ROW = 16
"""Bytes of the record of one result row (C++ ``Row``): its address and two scale factors."""
JOINED = 4
"""Rows whose splits one CTA combines, one row a warp."""


def area_offsets(**sizes: int) -> Mapping[str, int]:
    """Returns the byte offsets of consecutive areas of the given ``sizes`` in bytes, by name;
    ``end`` is their total.
    """
    return MappingProxyType(
        dict(zip((*sizes, "end"), accumulate(sizes.values(), initial=0), strict=True))
    )


def tiles(rows: int) -> Expr:
    """Returns an upper bound of the number of tiles in a problem, if a tile has ``rows`` rows.

    Each of n sequences has a first tile, and at most one further tile for each ``rows`` of the rows
    that are not the first of their sequence: ``n + (ROWS - n) // rows`` tiles for each pair,
    where n is RAGGED.
    """
    return (FURTHER // rows + RAGGED) * PAIRS


FURTHER_ROWS = "FURTHER", maximum(ROWS - RAGGED, 0)
"""Variable of :func:`tiles`: number of rows that are not the first of their sequence."""


SPACE = Space(
    "attention",
    (
        ("ROWS", Between(1, ROWS_MAX)),
        ("RAGGED", Between(1, ROWS_MAX)),
        ("PAIRS", SIZE),
        ("KEYS", SIZE),
        ("DEPTH", Between(16, attention.HEAD_MAX)),
        ("WIDTH", Between(16, attention.HEAD_MAX)),
        ("PAGED", OneOf((0, 1, *PAGES))),
        ("MAPS", Between(0, ROWS_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    (
        FURTHER_ROWS,
        ("SPLITS", ceil_div(KEYS, attention.SPLIT)),
        *(("TILES_16", tiles(16)), ("TILES_128", tiles(128))),
        ("DECODE_TILES", maximum(RAGGED, ceil_div(ROWS, 16)) * PAIRS),
    ),
    within=tiles(TILE_MIN) <= GRID_MAX,
)
CAUSAL, CAPPED, BIAS_F32 = 1, 2, 4
"""Bits of ``flags``: a causal mask, a softcap, an f32 bias with 16-bit operands."""
DTYPES = ("bf16", "f16", "f32")
LISTED = 128, 128
"""Head dimensions of the representative kernels in goldens, proofs and ``ptxgen list``."""
PARTS = ("whole", "split", "join")
STAGES_MAX = 4
STEP = 16
"""Number to whose multiples head dimensions are padded."""
SIZES = (
    *("seqs", "heads", "group", "queries", "keys", "total_k", "head", "head_v"),
    *("page", "blocks", "flags", "window", "splits"),
)
"""Names of the kernels' 32-bit scalar parameters."""
LOGIT_POINTERS = (
    ptr("bias", "const void*", optional=True),
    ptr("mask", "const unsigned char*", optional=True),
    ptr("slopes", "const float*", optional=True),
)
"""Pointer parameters of the arrays that turn scores into logits: bias, mask and ALiBi slopes."""
LENGTHS = tuple(
    ptr(name, "const int*", optional=True)
    for name in ("lengths", "starts", "query_lengths", "cu_seqlens", "cu_seqlens_k")
)
"""Pointer parameters of ragged batches: lengths, first keys and cumulative lengths."""


def paged(page: int, begun: bool) -> int:
    """Returns the value of the variable ``PAGED``, which says whether TMA can load blocks of keys
    from pages: ``page`` if it can, else 1. ``page``: keys of a page. ``begun``: whether each
    sequence begins at the start of a page, so that a block of keys is whole pages or a part of one.
    """
    return page if begun and page in PAGES else 1


@dataclass(frozen=True)
class Form:
    """Variant of an attention kernel. ``dtype``: dtype of the operands; ``head_dim``,
    ``head_dim_v``: head dimensions of keys and of values, padded to a multiple of 16;
    ``rounds_scores``: whether logits are rounded, as with a softcap, a bias, slopes or a scale that
    is not positive.
    """

    dtype: str
    head_dim: int
    head_dim_v: int
    rounds_scores: bool = False

    def __str__(self) -> str:
        heads = (
            str(self.head_dim)
            if self.head_dim == self.head_dim_v
            else f"{self.head_dim}_{self.head_dim_v}"
        )
        return f"{self.dtype}_{heads}{'_rounded' if self.rounds_scores else ''}"


class AttentionBaseSpec(KernelSpec):
    """Base of the kernels of attention and of its gradients. Each of a CTA's ``warps`` holds 16
    rows; ``head_dim`` and ``head_dim_v`` are the padded head dimensions. ``rounds_scores``: whether
    logits are rounded (:class:`Form`); ``part``: step of the computation.
    """

    head_dim: int
    head_dim_v: int
    rounds_scores: bool
    warps: int
    part: str

    legible: ClassVar[bool] = False
    parts: ClassVar[tuple[str, ...]]
    CAUSAL: ClassVar[int] = CAUSAL
    CAPPED: ClassVar[int] = CAPPED
    BIAS_F32: ClassVar[int] = BIAS_F32
    log2_e: ClassVar[str] = f"{attention.LOG2_E:.9g}f"
    mapped: ClassVar[bool] = False
    """Whether the kernel reads the bit map of a mask (:mod:`ptxgen.spec.attention_mask`) in place
    of the mask."""
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "head_dim": "head dimension of queries and keys, padded to a multiple of 16",
        "head_dim_v": "head dimension of values, padded to a multiple of 16",
        "rounds_scores": "whether logits are rounded, as with a softcap or a bias",
        "shared_kib": "most shared memory of a CTA, in KiB",
    }

    def check_form(self) -> None:
        """Raises SpecError if the dtype, a head dimension or the field ``part`` is not
        supported.
        """
        self.check_choices(dtype=DTYPES, part=self.parts, min_arch=[*ARCHITECTURES])
        name = type(self).__name__
        for what in ("head_dim", "head_dim_v"):
            value = getattr(self, what)
            fits = STEP <= value <= attention.HEAD_MAX and value % STEP == 0
            check(fits, name, what, value, f"a multiple of {STEP} up to {attention.HEAD_MAX}")
        tier = AUTO_TIER[self.dtype]
        check(tier == self.contract.tier, name, "tier of the contract", self.contract.tier, tier)

    def of(self, dtype: Hashable) -> Self:
        if isinstance(dtype, Form):
            return cast(Self, replace(cast(Any, self), **asdict(dtype)))
        return super().of(dtype)

    @property
    def form(self) -> Form:
        """Variant that the kernel is compiled for (:class:`Form`), made of its own fields."""
        return Form(self.dtype, self.head_dim, self.head_dim_v, self.rounds_scores)

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def rows(self) -> int:
        """Rows of a CTA's tile, 16 for each warp: queries of all heads that share keys; in gradient
        kernels for dk and dv, keys.
        """
        return 16 * self.warps

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def depth(self) -> int:
        """Padded head dimension of queries and keys."""
        return self.head_dim

    @property
    def width(self) -> int:
        """Padded head dimension of values."""
        return self.head_dim_v

    @property
    def multiplier(self) -> str:
        """Unit that multiplies, a key of :data:`ptxgen.cost.kernel.UNITS`."""
        return "mma" if self.tier == "tc" else "fma"

    @property
    def widths(self) -> Expr:
        """Multiply-adds for one row and one key: a dot product over DEPTH, and an update of WIDTH
        sums.
        """
        return DEPTH + WIDTH

    def multiply_adds(self, keys: Expr) -> Expr:
        """Returns the multiply-adds of a launch in which each tile of rows meets ``keys`` keys; in
        kernels whose tiles are keys, each meets ``keys`` rows. A causal mask halves them, a window
        limits them to its width.
        """
        unseen = select((FLAGS % 2).eq(CAUSAL), minimum(QUERIES, TOTAL_K), 0)
        twice = TOTAL_K * 2 - unseen
        twice = select(WINDOW > 0, minimum(twice, WINDOW * 2), twice)
        rows = ceil_div(ROWS, self.rows) * self.rows
        return rows * PAIRS * keys * self.widths * twice // (TOTAL_K * 2)

    def pitch(self, width: int) -> int:
        """Returns the row pitch, in bytes, of ``width`` elements in shared memory; 16 bytes of
        padding put the vectors of 8 consecutive rows into different banks.
        """
        return width * self.itemsize + 16

    @property
    def waits(self) -> bool:
        return True

    @property
    def work(self) -> str:
        """Text that describes a CTA's share of the work."""
        raise NotImplementedError

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.form}: {self.work}, {self.shared_bytes} bytes of shared memory",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )

    @property
    def multiplies(self) -> tuple[Expect, ...]:
        """Tensor-core instructions that the PTX must contain."""
        shape = f"m16n8k16.row.col.f32.{self.dtype}.{self.dtype}.f32"
        return (Expect(f"mma.sync.aligned.{shape}", ("*mma.*",)),)

    @property
    def expects(self) -> tuple[Expect, ...]:
        if self.tier != "tc":
            return super().expects
        return (*self.multiplies, Expect(ex2.INSTRUCTION, ("ex2.*",)), *super().expects)


@dataclass(frozen=True)
class AttentionSpec(AttentionBaseSpec):
    """A forward kernel by mma.sync or FMA. Each of a CTA's ``warps`` holds 16 rows and streams all
    keys ("whole") or a split of them ("split"); "join" combines the splits. ``shared_kib``: KiB of
    shared memory that a CTA may have.
    """

    head_dim: int = LISTED[0]
    head_dim_v: int = LISTED[1]
    rounds_scores: bool = False
    warps: int = 4
    shared_kib: int = 163
    part: str = "whole"
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = attention.ATTENTION["tc"]

    family: ClassVar[str] = "attention"
    parts: ClassVar[tuple[str, ...]] = PARTS
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionBaseSpec.meanings,
        "warps": "warps of a CTA, each of which computes 16 query rows",
        "part": "step: whole (all keys), split (one split of them) or join (combines splits)",
    }

    def __post_init__(self) -> None:
        self.check_form()
        if self.part != "join":
            check(
                self.stages >= 2, type(self).__name__, "stages in the budget", self.stages, ">= 2"
            )

    @property
    def template(self) -> str:  # type: ignore[override]
        return f"attention/{'join' if self.part == 'join' else 'forward'}.cu.j2"

    @property
    def label(self) -> str:
        part = "" if self.part == "whole" else f"{self.part}_"
        return f"{part}{self.form}_{self.rows}"

    @property
    def threads(self) -> int:
        return JOINED * WARP if self.part == "join" else super().threads

    # -- tiles and shared memory ------------------------------------------------------------
    @property
    def block(self) -> int:
        """Keys in a block, after which the contract rescales the sums."""
        return attention.block(self.depth, self.width)

    @property
    def tile(self) -> int:
        """Keys in a stage: a power of two, at most a block, within 16 KiB."""
        wide = max(self.depth, self.width)
        held = (1 << 14) // (wide * self.itemsize)
        return min(self.block, 1 << held.bit_length() - 1)

    @property
    def stage(self) -> int:
        """Bytes of a stage of the ring: a tile of keys or of values, whichever is larger."""
        return self.tile * self.pitch(max(self.depth, self.width))

    @property
    def at(self) -> Mapping[str, int]:
        """Byte offsets in shared memory: queries; softmax weights (f32 only); running totals of the
        splits before. The ring begins at ``end``.
        """
        return area_offsets(
            queries=self.rows * self.pitch(self.depth),
            weights=0 if self.tier == "tc" else self.rows * self.tile * 4,
            totals=self.rows * self.width * 4 if self.part == "whole" else 0,
        )

    @property
    def stages(self) -> int:
        """Stages of the ring: as many as fit shared memory, at most :data:`STAGES_MAX`."""
        return min(STAGES_MAX, ((self.shared_kib << 10) - self.at["end"]) // self.stage)

    @property
    def shared_bytes(self) -> int:
        return 0 if self.part == "join" else self.at["end"] + self.stages * self.stage

    # -- predicates and bounds --------------------------------------------------------------
    @property
    def items(self) -> Expr:
        """Work items: tiles of rows with all keys, or with one split of them; in "join"
        :data:`JOINED` rows of a tile.
        """
        each: dict[str, Expr | int] = {"split": SPLITS, "join": self.rows // JOINED}
        return tiles(self.rows) * each.get(self.part, 1)

    @property
    def grid(self) -> Expr:
        return self.items

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(self.multiply_adds(KEYS), self.multiplier)

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return MappingProxyType({} if self.part == "whole" else {"partial": self.partial * 4})

    @property
    def partial(self) -> Expr:
        """f32 elements of the workspace for the partial results of all splits."""
        return tiles(self.rows) * SPLITS * minimum(ROWS, self.rows) * (WIDTH + 4)

    @property
    def requires(self) -> Expr:
        if self.part == "whole":
            return self.grid <= GRID_MAX
        return all_of((self.grid <= GRID_MAX, self.partial <= WORKSPACE_MAX // 4))

    @property
    def multiplies(self) -> tuple[Expect, ...]:
        return () if self.part == "join" else super().multiplies

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = (
            ("first + ROWS - 1", ROWS + (self.rows - 1)),
            ("begin + lane, sequence", const(DIM_MAX) + WARP),
        )
        return tuple((text, value, INDEX_MAX) for text, value in found)

    # -- parameters -------------------------------------------------------------------------
    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        partial = ptr("partial", "const float*" if self.part == "join" else "float*")
        reads = (
            *(ptr(n, f"const {element}*") for n in "qkv"),
            ptr("block_table", "const int*", optional=True),
            *LOGIT_POINTERS,
        )
        writes = (
            ptr("out", f"{element}*"),
            ptr("lse", "float*", optional=True),
            ptr("sinks", "const float*", optional=True),
        )
        scalars = strides(("out", "lse"), "batch", "head", "row")
        read_strides = (
            *strides("qkv", "batch", "head", "row"),
            *strides(("bias", "mask"), "batch", "head", "row", "key"),
            Param("table_row", "i64"),
        )
        words = tuple(Param(n, "u32") for n in SIZES)
        numbers = tuple(Param(n, "f32") for n in ("factor", "inner", "outer"))
        if self.part == "join":
            return Abi((*LENGTHS, partial, *writes, *scalars, *words))
        if self.part == "split":
            return Abi((*reads, *LENGTHS, partial, *read_strides, *words, *numbers))
        return Abi((*reads, *LENGTHS, *writes, *read_strides, *scalars, *words, *numbers))

    @property
    def context(self) -> Mapping[str, Any]:
        """Variables that the template reads besides ``spec``; "join" computes no logits, so it has
        no softcap.
        """
        return context(self.rounds_scores and self.part != "join")

    @property
    def work(self) -> str:
        keys = f"blocks of {self.block} keys in tiles of {self.tile}"
        return f"{self.rows} rows, {keys}, {self.stages} stages"

    def describe(self) -> tuple[str, ...]:
        if self.part != "join":
            return super().describe()
        joins = f"joins splits of {attention.SPLIT} keys; CTAs {self.grid}"
        return (super().describe()[0], joins)


def context(rounded: bool) -> Mapping[str, Any]:
    """Returns the variables that attention templates read besides ``spec``. ``rounded``: whether
    logits may have a softcap.
    """
    capped = Formula((Output("y", "f32", tanh(read("x", "f32"))),))
    return MappingProxyType(
        {
            "attention": sys.modules[attention.__name__],
            "activation": sys.modules[activation.__name__],
            "ex2": sys.modules[ex2.__name__],
            "rows": sys.modules[logsumexp.__name__],
            "maps": maps,
            "formula": capped if rounded else None,
            "functions": lambda f: () if f is None else cuda.functions(f),
        }
    )


def with_mask_map(abi: Abi) -> Abi:
    """Returns ``abi`` with the pointers of a mask's bit map in place of the mask's parameters."""
    found = [p for p in abi.params if p.name not in ("mask", "mask_key")]
    given = ptr("mask_bits", "const unsigned*"), ptr("mask_blocks", "const uint2*")
    return Abi((*given, *found))


def strides(names: Iterable[str], *along: str) -> tuple[Param, ...]:
    """Returns the stride parameters, in elements, of each array along each dimension."""
    return tuple(Param(f"{name}_{each}", "i64") for name in names for each in along)


def tokens_map(
    name: str, box: tuple[int, int], swizzle: int, size: Expr, tokens: Expr, heads: Expr
) -> Param:
    """Returns a 4-D tensor map of the array ``name``: head dimension (extent ``size``), ``tokens``,
    ``heads``, sequences. A dimension with stride 0 has extent 1. ``box``: elements of a row, and
    rows, that a TMA copy moves; ``swizzle``: width of the swizzle pattern, in bytes.
    """
    x = name.upper()
    row = maximum(var(f"{x}_ROW"), (size + 7) // 8 * 8)
    steps = var(f"{x}_HEAD"), var(f"{x}_BATCH")
    sizes = tuple(select(s > 0, n, 1) for s, n in zip(steps, (heads, SEQS), strict=True))
    pitches = (row, *(select(s > 0, s, row) for s in steps))
    found = MapBox(name, (size, tokens, *sizes), pitches, 2, box, swizzle=swizzle)
    return Param(f"map_{name}", "map", "const __grid_constant__ TensorMap", found)


def keys_map(name: str, box: tuple[int, int], swizzle: int) -> Param:
    """Returns the tensor map of keys ("k") or values ("v") that are not paged. ``box``: elements of
    a row, and rows, that a TMA copy moves; ``swizzle``: width of the swizzle pattern, in bytes.
    """
    size = var("HEAD" if name == "k" else "HEAD_V")
    return tokens_map(name, box, swizzle, size, var("TOTAL_K"), HEADS)


def pages_map(name: str, box: tuple[int, int], swizzle: int) -> Param:
    """Returns the tensor map of paged keys ("k") or values ("v"): head dimension, keys of a page,
    heads, pages. A box is one page, or a part of one.
    """
    of_keys = keys_map(name, box, swizzle)
    assert of_keys.box is not None, "a map has a box"
    width, rows = box
    step = var(f"{name.upper()}_BATCH")
    size = (*of_keys.box.size[:1], PAGE, of_keys.box.size[2], select(step > 0, BLOCKS, 1))
    return replace(of_keys, box=replace(of_keys.box, size=size, box=(width, minimum(PAGE, rows))))


class WarpSpecialisedSpec(AttentionBaseSpec):
    """Base of the warp-specialised kernels (wgmma and TMA). Four of the ``warps`` make a consumer
    warpgroup, which computes 64 rows; one further warpgroup is the producer. ``registers``:
    registers of a consumer thread.
    """

    registers: int

    max_arch: ClassVar[str] = "sm_90"
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionBaseSpec.meanings,
        "registers": "registers of a consumer thread",
    }

    @property
    def products(self) -> tuple[Instruction, ...]:
        """Forms of the wgmma instructions that the kernel issues."""
        raise NotImplementedError

    @property
    def multiplier(self) -> str:
        return "wgmma"

    @property
    def consumers(self) -> int:
        """Consumer warpgroups, which multiply."""
        return self.warps // 4

    @property
    def threads(self) -> int:
        return (self.consumers + 1) * WARPGROUP

    @property
    def slots(self) -> int:
        """Resident CTAs per SM."""
        return 2 if self.consumers == 1 else 1

    @property
    def producer_registers(self) -> int:
        """Registers of a producer thread: its share at launch less those that the consumers'
        ``setmaxnreg`` takes.
        """
        threads = self.threads * self.slots
        launched = ARCHITECTURES[self.min_arch].registers_per_sm // threads // 8 * 8
        return min(launched, launched + self.consumers * (launched - self.registers))

    @property
    def depth(self) -> int:
        return -(-self.head_dim // PANEL) * PANEL

    @property
    def multiplies(self) -> tuple[Expect, ...]:
        return tuple(Expect(f"wgmma.mma_async.sync.aligned.{form}", ()) for form in self.products)


@dataclass(frozen=True)
class HopperSpec(WarpSpecialisedSpec, AttentionSpec):
    """A persistent, warp-specialised forward kernel (wgmma and TMA) without pages. Each warpgroup
    computes 64 rows. A CTA computes one tile of rows after another, with all keys ("whole") or a
    split ("split"); the grid has as many CTAs as fit the SMs.
    """

    warps: int = 8
    shared_kib: int = 227
    min_arch: str = "sm_90"
    registers: int = 232

    family: ClassVar[str] = "attention_wgmma"
    parts: ClassVar[tuple[str, ...]] = ("whole", "split")
    mask_macros: ClassVar[str] = "attention/mask/bytes.cuh.j2"
    """Template file with the macros that find masked keys."""
    bring_macros: ClassVar[str] = "attention/bring/tokens.cuh.j2"
    """Template file with the producer's macros, which load keys and values."""
    AHEAD: ClassVar[int] = 2
    """Depth of the queue of tile records from producer to consumers: the current tile and the
    next."""
    LOOKING: ClassVar[int] = 2
    """Warps that scan the values for NaN and infinity."""
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionSpec.meanings,
        **WarpSpecialisedSpec.meanings,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.warps % 4 == 0, self.name, "warps of whole warpgroups", self.warps, 4)

    @property
    def template(self) -> str:  # type: ignore[override]
        return "attention/hopper.cu.j2"

    @property
    def beside(self) -> bool:
        """Whether wgmma accumulates the values of one block while consumers compute scores and
        softmax of the next. This takes more registers per thread and a third stage.
        """
        roomy = self.consumers == 2 and self.stages > 2 and not self.rounds_scores
        return roomy and self.part == "whole"

    @property
    def width(self) -> int:
        return max(self.head_dim_v, PANEL)

    @property
    def tiles(self) -> tuple[Operand, Operand, Operand]:
        """Shared-memory tiles of queries, keys and values."""
        return (
            Operand("q", True, self.rows, self.depth, 1),
            Operand("k", True, self.block, self.depth, 1),
            Operand("v", False, self.width, self.block, 1),
        )

    @property
    def scores(self) -> Instruction:
        """Instruction (wgmma) of the scores, ``q @ k.T``."""
        return Instruction(self.block, self.dtype)

    @property
    def sums(self) -> Instruction:
        """Instruction (wgmma) that accumulates ``weights @ v``."""
        return Instruction(self.width, self.dtype, held=True, transposed=(False, True))

    @property
    def stage(self) -> int:
        return max(tile.bytes for tile in self.tiles[1:])

    @property
    def at(self) -> Mapping[str, int]:
        """Byte offsets in shared memory: queries; the ring; each warp's totals and results; its row
        records; mbarriers; results of the NaN scan, by stage; the queue of tile records.
        """
        return area_offsets(
            queries=self.tiles[0].bytes,
            ring=self.stages * self.stage,
            totals=self.warps * self.room,
            rows=self.warps * self.row_record_bytes,
            barriers=16 * (self.stages + self.AHEAD) + 8 * self.stages,
            found=4 * self.LOOKING * self.stages,
            told=self.AHEAD * self.tile_info_bytes,
        )

    @property
    def row_record_bytes(self) -> int:
        """Bytes of a warp's 16 row records."""
        return 16 * ROW

    @property
    def totals_width_max(self) -> int:
        """Largest head dimension of values whose running totals over splits fit the kernel's shared
        memory.
        """
        return ONE_WARPGROUP_TOTALS_MAX if self.consumers == 1 else TOTALS_MAX * 8 // self.warps

    @property
    def kept(self) -> bool:
        """Whether running totals over splits are kept in global memory, not in shared memory."""
        return self.part == "whole" and self.width > self.totals_width_max

    @property
    def out(self) -> int:
        """Columns of the result that a warp moves through shared memory at a time."""
        most = (PANEL // self.slots) if self.kept else self.width
        return next(n for n in range(most, 0, -STEP) if self.width % n == 0)

    @property
    def room(self) -> int:
        """Shared memory of a warp, in bytes, for its running totals, later reused for its
        results.
        """
        return 16 * self.out * 4 if self.part == "whole" else 0

    @property
    def stages(self) -> int:
        held = self.tiles[0].bytes + self.warps * (self.room + self.row_record_bytes)
        held += (24 + 4 * self.LOOKING) * STAGES_MAX + self.AHEAD * (16 + self.tile_info_bytes)
        return min(STAGES_MAX, ((self.shared_kib << 10) - held) // self.stage)

    @property
    def shared_bytes(self) -> int:
        return self.at["end"]

    @property
    def tile_info_bytes(self) -> int:
        """Bytes of a tile record in the queue from producer to consumers."""
        whole, each = TILE_RECORD_BYTES
        return whole + each * self.consumers

    @property
    def grid(self) -> Expr:
        return minimum(self.items, SMS * self.slots)

    @property
    def requires(self) -> Expr:
        ctas = self.items + SMS * self.slots
        kept = self.scratch.get("kept")
        room = self.partial <= WORKSPACE_MAX // 4 if kept is None else kept <= WORKSPACE_MAX
        fits = ctas <= GRID_MAX, room
        # Wider accumulators of values would spill.
        most = {1: WIDE_MAX, 3: TOTALS_MAX}.get(self.consumers)
        held = () if most is None else (WIDTH <= most,)
        return all_of((self.pages, *held, *fits))

    @property
    def pages(self) -> Expr:
        """Predicate on the page size: this kernel supports only keys that are not paged."""
        return PAGED.eq(0)

    @property
    def scratch(self) -> Mapping[str, Expr]:
        if self.part == "split":
            return super().scratch
        several = (WIDTH > self.totals_width_max) & (SPLITS > 1)
        of_sm = self.slots * self.rows * 4
        return MappingProxyType({"kept": select(several, SMS * of_sm * WIDTH, 0)})

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = "round * gridDim.x", self.items + SMS * self.slots, INDEX_MAX
        return (*super().index_bounds, found)

    @property
    def products(self) -> tuple[Instruction, ...]:
        return self.scores, self.sums

    @property
    def abi(self) -> Abi:
        found = list(super().abi.params)
        if self.part == "whole":
            found.insert([p.kind for p in found].index("i64"), ptr("kept", "float*"))
        k, v = self.tiles[1:]
        return Abi((*found, *(self.key_map(x.name, x.box, x.swizzle) for x in (k, v))))

    @staticmethod
    def key_map(name: str, box: tuple[int, int], swizzle: int) -> Param:
        """Returns the tensor map of keys ("k") or values ("v"). ``box``: elements of a row, and
        rows, that a TMA copy moves; ``swizzle``: width of the swizzle pattern, in bytes.
        """
        return keys_map(name, box, swizzle)


@dataclass(frozen=True)
class PagedSpec(HopperSpec):
    """A persistent wgmma kernel whose keys are in pages (:data:`PAGES`). The producer loads a block
    of keys page by page, or as a part of one page.
    """

    family: ClassVar[str] = "attention_wgmma_paged"
    bring_macros: ClassVar[str] = "attention/bring/pages.cuh.j2"

    @property
    def pages(self) -> Expr:
        return PAGED >= min(PAGES)

    @staticmethod
    def key_map(name: str, box: tuple[int, int], swizzle: int) -> Param:
        return pages_map(name, box, swizzle)


@dataclass(frozen=True)
class MaskedSpec(HopperSpec):
    """A persistent wgmma kernel that reads the bit map of a mask. It skips blocks of keys that no
    row of a tile sees, treats blocks that all rows see as unmasked, and reads bits for the others.
    """

    family: ClassVar[str] = "attention_wgmma_masked"
    mapped: ClassVar[bool] = True
    mask_macros: ClassVar[str] = "attention/mask/map.cuh.j2"
    bring_macros: ClassVar[str] = "attention/bring/told.cuh.j2"

    def __post_init__(self) -> None:
        super().__post_init__()
        check(
            not self.rounds_scores, type(self).__name__, "rounds_scores", self.rounds_scores, False
        )

    @property
    def bits(self) -> int:
        """Number of the kernel's key blocks in a chunk of the mask's bit map (1024 keys). Their
        visibility is kept as a bit for each.
        """
        return maps.CHUNK // self.block

    @property
    def tile_info_bytes(self) -> int:
        return super().tile_info_bytes + 2 * maps.CHUNKS_MAX * self.bits // 8

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return MappingProxyType({**super().scratch, **maps.scratch(KEYS)})

    @property
    def requires(self) -> Expr:
        return all_of((super().requires, maps.required(KEYS)))

    @property
    def abi(self) -> Abi:
        return with_mask_map(super().abi)
