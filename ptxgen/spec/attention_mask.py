"""Maps of masks of booleans: the keys that queries see, as bits, and whole blocks of them.

=========  =======================================================================================
``MAPS``   blocks of :data:`QUERIES` queries of all masks that differ: one for each sequence and
           head that has its own, and one for each block of queries, where queries have their own
``KEYS``   keys of a sequence, at most
=========  =======================================================================================

A row of bits counts keys from a sequence's first, :data:`CHUNK` at a time; what is behind the last
is not seen. A block of queries has two words for each chunk: which groups of :data:`GROUPED` keys
some query sees a key of ("some"), and which all see all keys of ("all").
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

from ptxgen.expr import Expr, all_of, ceil_div, var
from ptxgen.numerics.contract import COPY, Contract
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, SCRATCH_MAX, KernelSpec

MAPS, KEYS = var("MAPS"), var("KEYS")
QUERIES = 32
"""Queries of a block."""
GROUPED = 32
"""Keys of a word of a row, and of a bit of a block's words."""
CHUNK = GROUPED * 32
"""Keys whose groups have a word."""
CHUNKS_MAX = 64
"""Most chunks that attention's kernels have room for."""


def chunks(keys: Expr) -> Expr:
    """Chunks of keys."""
    return ceil_div(keys, CHUNK)


def scratch(keys: Expr) -> dict[str, Expr]:
    """Bytes of a map of so many keys, by the parameters for its addresses."""
    blocks = MAPS * chunks(keys)
    return {"mask_bits": blocks * (QUERIES * CHUNK // 8), "mask_blocks": blocks * 8}


def required(keys: Expr) -> Expr:
    """Condition for a map of so many keys that attention's kernels have room for."""
    size = scratch(keys)["mask_bits"]
    return all_of((MAPS >= 1, keys <= CHUNK * CHUNKS_MAX, size <= SCRATCH_MAX))


@dataclass(frozen=True)
class MaskSpec(KernelSpec):
    """A CTA makes a chunk of a block of queries; a warp has rows, and a lane 32 keys of each."""

    warps: int = 8
    dtype: str = "b8"
    min_arch: str = "sm_80"
    contract: Contract = COPY

    family: ClassVar[str] = "attention_mask"
    template: ClassVar[str] = "attention/mask.cu.j2"
    prepares: ClassVar[bool] = True
    legible: ClassVar[bool] = False
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {**KernelSpec.meanings, "warps": "warps of a CTA"}

    def __post_init__(self) -> None:
        self.check_choices(dtype=("b8",), warps=(1, 2, 4, 8, 16, 32), min_arch=ARCHITECTURES)

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.warps}"

    def of(self, dtype: Hashable) -> Self:
        return self

    @property
    def threads(self) -> int:
        return self.warps * 32

    @property
    def waits(self) -> bool:
        return True

    @property
    def abi(self) -> Abi:
        pointers = (
            ptr("mask", "const unsigned char*"),
            ptr("starts", "const int*", optional=True),
            ptr("mask_bits", "unsigned*"),
            ptr("mask_blocks", "uint2*"),
        )
        steps = (Param(f"mask_{each}", "i64") for each in ("batch", "head", "row", "key"))
        sizes = (Param(name, "u32") for name in ("heads", "group", "queries", "total_k"))
        return Abi((*pointers, *steps, *sizes))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return MappingProxyType(scratch(KEYS))

    @property
    def grid(self) -> Expr:
        return MAPS * chunks(KEYS)

    @property
    def requires(self) -> Expr:
        return required(KEYS)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        bits = self.scratch["mask_bits"]
        return (("row * chunks * 32", bits // 4, INDEX_MAX), ("total_k", KEYS + CHUNK, INDEX_MAX))

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"maps": sys.modules[__name__]})

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract.implemented}: {self.contract.step}",
            f"CTAs {self.grid}: {QUERIES} queries and {CHUNK} keys each",
        )
