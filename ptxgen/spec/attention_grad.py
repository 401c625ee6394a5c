"""Gradients of attention, contract ``attention_grad/1``: kernels that hold rows of queries, or
keys, and stream the others past them.

=========  =======================================================================================
``ROWS``   what kernels hold: queries times heads that share keys, or keys, of a sequence; where
           sequences are one behind the other, of all of them
``EXTRA``  tiles of rows that those may take besides: one for each, and one more; else 0
``PAIRS``  sequences times heads of keys; where sequences are one behind the other, heads
``PAST``   what streams past them: the other of both
``SMS``    streaming multiprocessors of the device
=========  =======================================================================================

Arrays begin at multiples of 16 bytes, and so do their rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, cast

from ptxgen.expr import Expr, var
from ptxgen.numerics import attention
from ptxgen.numerics.contract import Contract
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.attention import (
    EXTRA,
    LISTED,
    ROWS,
    ROWS_MAX,
    Attends,
    Form,
    context,
    strides,
    tiles,
)
from ptxgen.spec.base import (
    GRID_MAX,
    INDEX_MAX,
    WARP,
    check,
)
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

PAST = var("PAST")
TILE_MIN = 16
"""Rows or keys of the smallest tile."""
SPACE = Space(
    "attention_grad",
    (
        ("ROWS", Between(1, ROWS_MAX)),
        ("EXTRA", Between(0, ROWS_MAX)),
        ("PAIRS", SIZE),
        ("PAST", Between(1, ROWS_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    within=tiles(TILE_MIN) <= GRID_MAX,
)
PARTS = ("dq", "dkdv", "dk", "dv")
REGISTERS = {"dkdv": (160, 144)}
REGISTERS_ELSE = 144, 144
"""Sums and scores that a lane may have without spills; where logits are rounded."""
SIZES = (
    *("seqs", "heads", "group", "queries", "keys", "total_k", "head", "head_v"),
    *("flags", "window"),
)
"""Words that kernels are told."""


@dataclass(frozen=True)
class AttentionGradSpec(Attends):
    """A CTA of ``warps`` warps has 16 rows each ("dq"), or 16 keys ("dkdv", "dk", "dv"), against
    all keys or rows. ``budget``: KiB of shared memory that a CTA may have.
    """

    part: str
    head: int = LISTED[0]
    head_v: int = LISTED[1]
    rounded: bool = False
    warps: int = 4
    budget: int = 163
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = attention.ATTENTION_GRAD["tc"]

    family: ClassVar[str] = "attention_grad"
    template: ClassVar[str] = "attention/grad.cu.j2"
    parts: ClassVar[tuple[str, ...]] = PARTS
    STAGES: ClassVar[int] = 2
    """Tiles that the ring has room for."""
    meanings: ClassVar[Mapping[str, str]] = {
        **Attends.meanings,
        "warps": "warps, of 16 rows or keys each",
        "part": "which gradients it computes",
    }

    def __post_init__(self) -> None:
        self.check_form()
        what = "shared memory, bytes"
        check(self.tile > 0, type(self).__name__, what, self.budget << 10, "of a tile of 8")

    def of(self, dtype: Hashable) -> AttentionGradSpec:
        if isinstance(dtype, str):
            return replace(self, dtype=dtype)
        return replace(self, **asdict(cast(Form, dtype)))

    @property
    def label(self) -> str:
        return f"{self.part}_{self.form}_{self.rows}"

    # -- what a CTA has ---------------------------------------------------------------------
    def _stage(self, tile: int) -> int:
        return tile * (self.pitch(self.depth) + self.pitch(self.width) + 4 * self._words)

    @property
    def _words(self) -> int:
        """Numbers in f32 that stream with a row."""
        return {"dq": 0, "dv": 1}.get(self.part, 2)

    def _held(self, tile: int) -> tuple[int, int]:
        """Bytes of what is held, and of weights on their way."""
        each = self.pitch(self.depth) + (0 if self.part == "dv" else self.pitch(self.width))
        return self.rows * each, 0 if self.tier == "tc" else self.rows * tile * 4

    @property
    def tile(self) -> int:
        """Keys or rows that are copied at a time: as many as registers and memory take."""
        sums = sum(
            width
            for part, width in (("dq", self.depth), ("dk", self.depth), ("dv", self.width))
            if part in self.part
        )
        for tile in (64, 32, 16, 8)[: 3 if self.tier == "tc" else 4]:
            taken = sum(self._held(tile)) + self.STAGES * self._stage(tile)
            fits = taken <= self.budget << 10
            most = REGISTERS.get(self.part, REGISTERS_ELSE)[self.rounded]
            if fits and sums // 2 + tile <= most:
                return tile
        return 0

    @property
    def stage(self) -> int:
        """Bytes of a stage of the ring."""
        return self._stage(self.tile)

    @property
    def weights_at(self) -> int:
        return self._held(self.tile)[0]

    @property
    def ring_at(self) -> int:
        return sum(self._held(self.tile))

    @property
    def shared_bytes(self) -> int:
        return self.ring_at + self.STAGES * self.stage

    # -- where it is right ------------------------------------------------------------------
    @property
    def grid(self) -> Expr:
        return tiles(self.rows)

    @property
    def requires(self) -> Expr:
        return self.grid <= GRID_MAX

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = (
            ("place.first + ROWS", ROWS + (self.rows - 1)),
            ("begin + lane, tile of a sequence", EXTRA + WARP),
            ("tile * TILE", PAST + 3 * self.tile),
        )
        return tuple((text, value, INDEX_MAX) for text, value in found)

    # -- what it is given -------------------------------------------------------------------
    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        lengths = ("lengths", "starts", "query_lengths", "cu_seqlens", "cu_seqlens_k")
        integers = tuple(ptr(n, "const int*", optional=True) for n in lengths)
        operands = ("dout", "q", "k") if self.part == "dv" else ("dout", "q", "k", "v")
        numbers = ("lse",) if self.part == "dv" else ("lse", "delta")
        made = ("dk", "dv") if self.part == "dkdv" else (self.part,)
        logits = self.part == "dq" and self.rounded
        reads = (
            *(ptr(n, f"const {element}*") for n in operands),
            *(ptr(n, "const float*") for n in numbers),
            ptr("bias", "const void*", optional=True),
            ptr("mask", "const unsigned char*", optional=True),
            ptr("slopes", "const float*", optional=True),
        )
        writes = tuple(ptr(n, f"{element}*") for n in made)
        if logits:
            writes += (ptr("dlogits", "float*", optional=True),)
        taken = (
            *strides((*operands, *numbers, *made), "batch", "head", "row"),
            *strides(("bias", "mask"), "batch", "head", "row", "key"),
            *(strides(("dlogits",), "batch", "head", "row") if logits else ()),
        )
        words = tuple(Param(n, "u32") for n in SIZES)
        factors = tuple(Param(n, "f32") for n in ("per", "inner", "outer", "scale"))
        return Abi((*reads, *integers, *writes, *taken, *words, *factors))

    @property
    def context(self) -> Mapping[str, Any]:
        """See :attr:`KernelSpec.context`."""
        return context(self.tier, self.rounded)

    def describe(self) -> tuple[str, ...]:
        held, past = ("rows", "keys") if self.part == "dq" else ("keys", "rows")
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.form}: {self.part}; {self.rows} {held}, {past} in tiles of {self.tile}, "
            f"{self.STAGES} stages, {self.shared_bytes} bytes of shared memory",
            f"requires {self.requires}",
            f"grid {self.grid}",
        )
