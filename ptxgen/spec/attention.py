"""Attention, contract ``attention/2``: kernels that stream keys and values past rows of queries.

================  ================================================================================
``ROWS``          queries times heads that share keys, of a sequence; where sequences are one behind
                  the other, of all of them
``EXTRA``         tiles of rows that those may take besides: one for each, and one more; else 0
``PAIRS``         sequences times heads of keys; where sequences are one behind the other, heads
``KEYS``          keys of a sequence, at most
``DEPTH, WIDTH``  the head dimensions of keys and of values, filled up to 16
``PAGED``         keys of a page, as the copy engine takes them (:func:`paged`); 1: other pages; 0:
                  none
``MAPS``          blocks of queries of a map of the mask (:mod:`ptxgen.spec.attention_mask`); 0: no
                  mask, or kernels read it as it lies
``SMS``           streaming multiprocessors of the device
``FEWEST``        tiles of 16 rows
``LARGE``         tiles of 128 rows
================  ================================================================================

Queries, keys and values begin at multiples of 16 bytes, and so do their rows. Kernels are told
besides: how far apart elements lie along each dimension, and :data:`SIZES`.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import Expr, all_of, ceil_div, maximum, minimum, select, var
from ptxgen.numerics import activation, attention, ex2, logsumexp
from ptxgen.numerics.contract import AUTO_TIER, Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formula import Formula, Output, read
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

ROWS, EXTRA, PAIRS, KEYS = var("ROWS"), var("EXTRA"), var("PAIRS"), var("KEYS")
DEPTH, WIDTH, PAGED = var("DEPTH"), var("WIDTH"), var("PAGED")
SMS, SPLITS, FEWEST, LARGE = var("SMS"), var("SPLITS"), var("FEWEST"), var("LARGE")
HEADS, SEQS = var("HEADS"), var("SEQS")
PAGE, BLOCKS = var("PAGE"), var("BLOCKS")
"""What kernels are told, of heads that keys have, of sequences and of pages."""
QUERIES, TOTAL_K = var("QUERIES"), var("TOTAL_K")
FLAGS, WINDOW = var("FLAGS"), var("WINDOW")
"""The same of a sequence's queries and keys, and of which keys are seen."""
TOTALS_MAX = 128
"""The largest head dimension of values whose sums of splits fit shared memory beside the ring, of
two warpgroups."""
WIDE_MAX = 192
"""The largest for which one warpgroup has registers."""
ALONE_MAX = 96
"""The same of one warpgroup, which has half an SM's."""
PAGES = 16, 32, 64, 128, 256
"""Keys of the pages that the copy engine takes."""
PANEL = 64
"""Elements of a row of a tile that is swizzled by 128 bytes."""
TILE_MIN = 32
"""Rows of the smallest tile."""
ROWS_MAX = 1 << 30
TOLD = 96, 16
"""Bytes of what a kernel knows of a tile, and of a warpgroup's rows in it."""
ROW = 16
"""Bytes of what it knows of a row's result."""
JOINED = 16
"""Rows whose splits a CTA joins, a warp each."""


def laid_out(**sizes: int) -> Mapping[str, int]:
    """Offsets of areas of so many bytes, one behind the other, and where the last has its end."""
    return MappingProxyType(
        dict(zip((*sizes, "end"), accumulate(sizes.values(), initial=0), strict=True))
    )


def tiles(rows: int) -> Expr:
    """Tiles of so many rows, at most."""
    return (ceil_div(ROWS, rows) + EXTRA) * PAIRS


SPACE = Space(
    "attention",
    (
        ("ROWS", Between(1, ROWS_MAX)),
        ("EXTRA", Between(0, ROWS_MAX)),
        ("PAIRS", SIZE),
        ("KEYS", SIZE),
        ("DEPTH", Between(16, attention.HEAD_MAX)),
        ("WIDTH", Between(16, attention.HEAD_MAX)),
        ("PAGED", OneOf((0, 1, *PAGES))),
        ("MAPS", Between(0, ROWS_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    (("SPLITS", ceil_div(KEYS, attention.SPLIT)), ("FEWEST", tiles(16)), ("LARGE", tiles(128))),
    within=tiles(TILE_MIN) <= GRID_MAX,
)
CAUSAL, CAPPED, BIAS_F32 = 1, 2, 4
"""Flags."""
DTYPES = ("bf16", "f16", "f32")
LISTED = 128, 128
"""Head dimensions of the kernels that are listed."""
PARTS = ("whole", "split", "join")
STAGES_MAX = 4
STEP = 16
"""What head dimensions are filled up to a multiple of."""
SIZES = (
    *("seqs", "heads", "group", "queries", "keys", "total_k", "head", "head_v"),
    *("page", "blocks", "flags", "window", "splits"),
)
"""Words that kernels are told."""
OF_LOGITS = (
    ptr("bias", "const void*", optional=True),
    ptr("mask", "const unsigned char*", optional=True),
    ptr("slopes", "const float*", optional=True),
)
"""Parameters for what makes logits of scores."""
LENGTHS = tuple(
    ptr(name, "const int*", optional=True)
    for name in ("lengths", "starts", "query_lengths", "cu_seqlens", "cu_seqlens_k")
)
"""Parameters for the places of sequences."""


def paged(page: int, begun: bool) -> int:
    """``PAGED`` of pages of so many keys. ``begun``: whether sequences begin where a page does, so
    that blocks of keys are pages, or parts of one.
    """
    return page if begun and page in PAGES else 1


@dataclass(frozen=True)
class Form:
    """What a kernel is made for. ``head``, ``head_v``: the head dimensions, filled up to 16;
    ``rounded``: logits are rounded numbers (softcap, bias, slopes, a scale that is not positive).
    """

    dtype: str
    head: int
    head_v: int
    rounded: bool = False

    def __str__(self) -> str:
        heads = str(self.head) if self.head == self.head_v else f"{self.head}_{self.head_v}"
        return f"{self.dtype}_{heads}{'_rounded' if self.rounded else ''}"


class Attends(KernelSpec):
    """What kernels of attention and of its gradients share: of ``head`` and ``head_v``, a warp has
    16 of what a CTA holds.
    """

    head: int
    head_v: int
    rounded: bool
    warps: int
    part: str

    legible: ClassVar[bool] = False
    parts: ClassVar[tuple[str, ...]]
    CAUSAL: ClassVar[int] = CAUSAL
    CAPPED: ClassVar[int] = CAPPED
    BIAS_F32: ClassVar[int] = BIAS_F32
    log2_e: ClassVar[str] = f"{attention.LOG2_E:.9g}f"
    mapped: ClassVar[bool] = False
    """Whether it is given a map of a mask (:mod:`ptxgen.spec.attention_mask`), not the mask."""
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "head": "the head dimension of queries and keys, filled up to 16",
        "head_v": "that of values",
        "rounded": "whether logits are rounded numbers",
        "budget": "KiB of shared memory that it may have",
    }

    def check_form(self) -> None:
        """Raises SpecError for a dtype, head dimensions or a part that there are not."""
        self.check_choices(dtype=DTYPES, part=self.parts, min_arch=[*ARCHITECTURES])
        name = type(self).__name__
        for what in ("head", "head_v"):
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
        """What it is made for."""
        return Form(self.dtype, self.head, self.head_v, self.rounded)

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def rows(self) -> int:
        """What a CTA holds: queries of the heads that share keys; of some gradients keys."""
        return 16 * self.warps

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def depth(self) -> int:
        """The head dimension of queries and keys, filled up."""
        return self.head

    @property
    def width(self) -> int:
        """That of values."""
        return self.head_v

    @property
    def multiplier(self) -> str:
        """Unit that multiplies, one of :data:`ptxgen.cost.kernel.UNITS`."""
        return "mma" if self.tier == "tc" else "fma"

    @property
    def widths(self) -> Expr:
        """Products of a row and a key, each as long as the head dimension of keys or of values."""
        return DEPTH + WIDTH

    def against(self, past: Expr) -> Expr:
        """Products of whole tiles of rows with ``past`` keys (or the other way round), of which
        causal attention sees half, and a window no more than its width.
        """
        unseen = select((FLAGS % 2).eq(CAUSAL), minimum(QUERIES, TOTAL_K), 0)
        twice = TOTAL_K * 2 - unseen
        twice = select(WINDOW > 0, minimum(twice, WINDOW * 2), twice)
        rows = ceil_div(ROWS, self.rows) * self.rows
        return rows * PAIRS * past * self.widths * twice // (TOTAL_K * 2)

    def pitch(self, width: int) -> int:
        """Bytes from row to row in shared memory: 8 rows' vectors lie in different banks."""
        return width * self.itemsize + 16

    @property
    def waits(self) -> bool:
        return True

    @property
    def work(self) -> str:
        """The share of a CTA, for people."""
        raise NotImplementedError

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract.implemented}: {self.contract.step}",
            f"{self.form}: {self.work}, {self.shared_bytes} bytes of shared memory",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )

    @property
    def multiplies(self) -> tuple[Expect, ...]:
        """The instructions of tensor cores."""
        shape = f"m16n8k16.row.col.f32.{self.dtype}.{self.dtype}.f32"
        return (Expect(f"mma.sync.aligned.{shape}", ("*mma.*",)),)

    @property
    def expects(self) -> tuple[Expect, ...]:
        if self.tier != "tc":
            return super().expects
        return (*self.multiplies, Expect(ex2.INSTRUCTION, ("ex2.*",)), *super().expects)


@dataclass(frozen=True)
class AttentionSpec(Attends):
    """A CTA of ``warps`` warps has 16 rows each, against all keys ("whole") or a split of them
    ("split"); "join" joins the splits. ``budget``: KiB of shared memory that a CTA may have.
    """

    head: int = LISTED[0]
    head_v: int = LISTED[1]
    rounded: bool = False
    warps: int = 4
    budget: int = 163
    part: str = "whole"
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = attention.ATTENTION["tc"]

    family: ClassVar[str] = "attention"
    parts: ClassVar[tuple[str, ...]] = PARTS
    meanings: ClassVar[Mapping[str, str]] = {
        **Attends.meanings,
        "warps": "warps, of 16 rows each",
        "part": "what of the keys it takes",
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

    # -- what a CTA has ---------------------------------------------------------------------
    @property
    def block(self) -> int:
        """Keys of a block of the contract."""
        return attention.block(self.depth, self.width)

    @property
    def tile(self) -> int:
        """Keys that are copied at a time: 16 KiB of them."""
        wide = max(self.depth, self.width)
        held = (1 << 14) // (wide * self.itemsize)
        return min(self.block, 1 << held.bit_length() - 1)

    @property
    def stage(self) -> int:
        """Bytes of a stage of the ring."""
        return self.tile * self.pitch(max(self.depth, self.width))

    @property
    def at(self) -> Mapping[str, int]:
        """Offsets of areas in shared memory: queries, weights on their way, the sums of the splits
        before; behind these the ring.
        """
        return laid_out(
            queries=self.rows * self.pitch(self.depth),
            weights=0 if self.tier == "tc" else self.rows * self.tile * 4,
            totals=self.rows * self.width * 4 if self.part == "whole" else 0,
        )

    @property
    def stages(self) -> int:
        """Tiles that the ring has room for."""
        return min(STAGES_MAX, ((self.budget << 10) - self.at["end"]) // self.stage)

    @property
    def shared_bytes(self) -> int:
        return 0 if self.part == "join" else self.at["end"] + self.stages * self.stage

    # -- where it is right ------------------------------------------------------------------
    @property
    def items(self) -> Expr:
        """Tiles of rows, with all keys or a split each; a CTA's rows of tiles ("join")."""
        each: dict[str, Expr | int] = {"split": SPLITS, "join": self.rows // JOINED}
        return tiles(self.rows) * each.get(self.part, 1)

    @property
    def grid(self) -> Expr:
        return self.items

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(self.against(KEYS), self.multiplier)

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return MappingProxyType({} if self.part == "whole" else {"partial": self.partial * 4})

    @property
    def partial(self) -> Expr:
        """Numbers, in f32, that are the sums of all splits."""
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
            ("begin + lane, tile of a sequence", EXTRA + WARP),
        )
        return tuple((text, value, INDEX_MAX) for text, value in found)

    # -- what it is given -------------------------------------------------------------------
    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        partial = ptr("partial", "const float*" if self.part == "join" else "float*")
        reads = (
            *(ptr(n, f"const {element}*") for n in "qkv"),
            ptr("block_table", "const int*", optional=True),
            *OF_LOGITS,
        )
        writes = (
            ptr("out", f"{element}*"),
            ptr("lse", "float*", optional=True),
            ptr("sinks", "const float*", optional=True),
        )
        scalars = strides(("out", "lse"), "batch", "head", "row")
        taken = (
            *strides("qkv", "batch", "head", "row"),
            *strides(("bias", "mask"), "batch", "head", "row", "key"),
            Param("table_row", "i64"),
        )
        words = tuple(Param(n, "u32") for n in SIZES)
        numbers = tuple(Param(n, "f32") for n in ("factor", "inner", "outer"))
        if self.part == "join":
            return Abi((*LENGTHS, partial, *writes, *scalars, *words))
        if self.part == "split":
            return Abi((*reads, *LENGTHS, partial, *taken, *words, *numbers))
        return Abi((*reads, *LENGTHS, *writes, *taken, *scalars, *words, *numbers))

    @property
    def context(self) -> Mapping[str, Any]:
        """See :attr:`KernelSpec.context`."""
        return context(self.rounded and self.part != "join")

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
    """What templates of attention are given by name. ``rounded``: whether logits may be capped."""
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


def reading_maps(abi: Abi) -> Abi:
    """The parameters of a kernel that reads a map in place of a mask."""
    found = [p for p in abi.params if p.name not in ("mask", "mask_key")]
    given = ptr("mask_bits", "const unsigned*"), ptr("mask_blocks", "const uint2*")
    return Abi((*given, *found))


def strides(names: Iterable[str], *along: str) -> tuple[Param, ...]:
    """Elements from one to the next along dimensions of arrays."""
    return tuple(Param(f"{name}_{each}", "i64") for name in names for each in along)


def tokens_map(
    name: str, box: tuple[int, int], swizzle: int, size: Expr, tokens: Expr, heads: Expr
) -> Param:
    """A tensor map: dimension (of ``size``), tokens, heads, sequences. Where a stride is 0, there
    is one along that dimension.
    """
    x = name.upper()
    row = maximum(var(f"{x}_ROW"), (size + 7) // 8 * 8)
    steps = var(f"{x}_HEAD"), var(f"{x}_BATCH")
    sizes = tuple(select(s > 0, n, 1) for s, n in zip(steps, (heads, SEQS), strict=True))
    pitches = (row, *(select(s > 0, s, row) for s in steps))
    found = MapBox(name, (size, tokens, *sizes), pitches, 2, box, swizzle=swizzle)
    return Param(f"map_{name}", "map", "const __grid_constant__ TensorMap", found)


def keys_map(name: str, box: tuple[int, int], swizzle: int) -> Param:
    """That of keys or values."""
    size = var("HEAD" if name == "k" else "HEAD_V")
    return tokens_map(name, box, swizzle, size, var("TOTAL_K"), HEADS)


def pages_map(name: str, box: tuple[int, int], swizzle: int) -> Param:
    """The same of pages: dimension, keys of a page, heads, pages; a box has a page, or a part."""
    of_keys = keys_map(name, box, swizzle)
    assert of_keys.box is not None, "a map has a box"
    width, rows = box
    step = var(f"{name.upper()}_BATCH")
    size = (*of_keys.box.size[:1], PAGE, of_keys.box.size[2], select(step > 0, BLOCKS, 1))
    return replace(of_keys, box=replace(of_keys.box, size=size, box=(width, minimum(PAGE, rows))))


class Brought(Attends):
    """What kernels by wgmma and the copy engine share: ``warps`` of consumers, four a warpgroup of
    64 of what a CTA holds, and one warpgroup that has the others brought. ``registers``: of a
    consumer's thread.
    """

    registers: int

    meanings: ClassVar[Mapping[str, str]] = {
        **Attends.meanings,
        "registers": "of a consumer's thread",
    }

    @property
    def products(self) -> tuple[Instruction, ...]:
        """What it multiplies by."""
        raise NotImplementedError

    @property
    def multiplier(self) -> str:
        return "wgmma"

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return self.warps // 4

    @property
    def threads(self) -> int:
        return (self.consumers + 1) * WARPGROUP

    @property
    def slots(self) -> int:
        """CTAs that may share an SM."""
        return 2 if self.consumers == 1 else 1

    @property
    def producer_registers(self) -> int:
        """Of a thread of the other: what is left of what a CTA is launched with."""
        threads = self.threads * self.slots
        launched = ARCHITECTURES[self.min_arch].registers_per_sm // threads // 8 * 8
        return min(launched, launched + self.consumers * (launched - self.registers))

    @property
    def depth(self) -> int:
        return -(-self.head // PANEL) * PANEL

    @property
    def multiplies(self) -> tuple[Expect, ...]:
        return tuple(Expect(f"wgmma.mma_async.sync.aligned.{form}", ()) for form in self.products)

    def runs_on(self, arch: str) -> bool:
        """Only on sm_90: later architectures have other instructions."""
        return ARCHITECTURES[arch].compute == ARCHITECTURES[self.min_arch].compute


@dataclass(frozen=True)
class HopperSpec(Brought, AttentionSpec):
    """By wgmma and the copy engine: warpgroups have 64 rows each; keys and values are brought.
    There are as many CTAs as SMs, and each takes one tile of rows after another, with all keys
    ("whole") or a split ("split"). Keys do not lie in pages.
    """

    warps: int = 8
    budget: int = 227
    min_arch: str = "sm_90"
    registers: int = 232

    family: ClassVar[str] = "attention_wgmma"
    parts: ClassVar[tuple[str, ...]] = ("whole", "split")
    mask_macros: ClassVar[str] = "attention/mask/bytes.cuh.j2"
    """Macros that find keys that a mask hides."""
    bring_macros: ClassVar[str] = "attention/bring/tokens.cuh.j2"
    """Macros that bring keys and values."""
    AHEAD: ClassVar[int] = 2
    """Tiles that consumers are told of: the one that they have, and the next."""
    LOOKING: ClassVar[int] = 2
    """Warps that look for values that are no number."""
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionSpec.meanings,
        **Brought.meanings,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.warps % 4 == 0, self.name, "warps of whole warpgroups", self.warps, 4)

    @property
    def template(self) -> str:  # type: ignore[override]
        return "attention/hopper.cu.j2"

    @property
    def beside(self) -> bool:
        """Whether scores and weights of a block are made beside the values of the one before: where
        a thread has registers, and a stage is left for the next values.
        """
        roomy = self.consumers == 2 and self.stages > 2 and not self.rounded
        return roomy and self.part == "whole"

    @property
    def width(self) -> int:
        return max(self.head_v, PANEL)

    @property
    def tiles(self) -> tuple[Operand, Operand, Operand]:
        """Of queries, keys and values, in shared memory."""
        return (
            Operand("q", True, self.rows, self.depth, 1),
            Operand("k", True, self.block, self.depth, 1),
            Operand("v", False, self.width, self.block, 1),
        )

    @property
    def scores(self) -> Instruction:
        """What scores are made by."""
        return Instruction(self.block, self.dtype)

    @property
    def sums(self) -> Instruction:
        """What values are added up by."""
        return Instruction(self.width, self.dtype, held=True, transposed=(False, True))

    @property
    def stage(self) -> int:
        return max(tile.bytes for tile in self.tiles[1:])

    @property
    def at(self) -> Mapping[str, int]:
        """Offsets of areas in shared memory: queries, the ring, sums and results of warps; where
        these note what their rows see, then what is known of results; the mbarriers; where warps
        note what they found in stages; what consumers are told of tiles.
        """
        return laid_out(
            queries=self.tiles[0].bytes,
            ring=self.stages * self.stage,
            totals=self.warps * self.room,
            rows=self.warps * self.noted,
            barriers=16 * (self.stages + self.AHEAD) + 8 * self.stages,
            found=4 * self.LOOKING * self.stages,
            told=self.AHEAD * self.told,
        )

    @property
    def noted(self) -> int:
        """Bytes of what a warp notes of its rows."""
        return 16 * ROW

    @property
    def fitting(self) -> int:
        """The largest head dimension of values whose sums of splits fit beside the ring."""
        return ALONE_MAX if self.consumers == 1 else TOTALS_MAX * 8 // self.warps

    @property
    def kept(self) -> bool:
        """Whether sums of the splits before lie in global memory."""
        return self.part == "whole" and self.width > self.fitting

    @property
    def out(self) -> int:
        """Columns of results that are on their way at a time."""
        most = (PANEL // self.slots) if self.kept else self.width
        return next(n for n in range(most, 0, -STEP) if self.width % n == 0)

    @property
    def room(self) -> int:
        """Bytes of a warp: for sums of the splits before, then for results."""
        return 16 * self.out * 4 if self.part == "whole" else 0

    @property
    def stages(self) -> int:
        held = self.tiles[0].bytes + self.warps * (self.room + self.noted)
        held += (24 + 4 * self.LOOKING) * STAGES_MAX + self.AHEAD * (16 + self.told)
        return min(STAGES_MAX, ((self.budget << 10) - held) // self.stage)

    @property
    def shared_bytes(self) -> int:
        return self.at["end"]

    @property
    def told(self) -> int:
        """Bytes of what consumers are told of a tile."""
        whole, each = TOLD
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
        # Where threads have no registers for more sums of values.
        most = {1: WIDE_MAX, 3: TOTALS_MAX}.get(self.consumers)
        held = () if most is None else (WIDTH <= most,)
        return all_of((self.pages, *held, *fits))

    @property
    def pages(self) -> Expr:
        """Condition on the pages that keys lie in: there are none."""
        return PAGED.eq(0)

    @property
    def scratch(self) -> Mapping[str, Expr]:
        if self.part == "split":
            return super().scratch
        several = (WIDTH > self.fitting) & (SPLITS > 1)
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
        """The tensor map of keys or values."""
        return keys_map(name, box, swizzle)


@dataclass(frozen=True)
class PagedSpec(HopperSpec):
    """The same of keys in pages (:data:`PAGES`). A block of keys is brought page by page, or is a
    part of one.
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
    """Reads a map of a mask: blocks of keys that no row of a tile sees are left out, those that all
    see are as without a mask, and of others each row has its bits.
    """

    family: ClassVar[str] = "attention_wgmma_masked"
    mapped: ClassVar[bool] = True
    mask_macros: ClassVar[str] = "attention/mask/map.cuh.j2"
    bring_macros: ClassVar[str] = "attention/bring/told.cuh.j2"

    def __post_init__(self) -> None:
        super().__post_init__()
        check(not self.rounded, type(self).__name__, "rounded", self.rounded, False)

    @property
    def bits(self) -> int:
        """Blocks of keys of a chunk of the map: bits of a word."""
        return maps.CHUNK // self.block

    @property
    def told(self) -> int:
        return super().told + 2 * maps.CHUNKS_MAX * self.bits // 8

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return MappingProxyType({**super().scratch, **maps.scratch(KEYS)})

    @property
    def requires(self) -> Expr:
        return all_of((super().requires, maps.required(KEYS)))

    @property
    def abi(self) -> Abi:
        return reading_maps(super().abi)
