"""Bit maps of boolean attention masks: a bit for each query and key, and summaries of blocks.

=========  =======================================================================================
``MAPS``   blocks of :data:`QUERIES` queries over all distinct masks: dimensions of the mask that
           are broadcast (sequences, heads, queries) count once
``KEYS``   keys of the longest sequence
=========  =======================================================================================

Bit i of a row belongs to key i of its sequence; rows are padded to whole chunks of :data:`CHUNK`
keys with zeros. A block of queries has two words for each chunk, a bit for each group of
:data:`GROUPED` keys: "some" (some query sees some key of the group) and "all" (every query sees
every key).
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
"""Queries of a block of the bit map, which its summary words describe together."""
GROUPED = 32
"""Keys of a group: one word (32 bits) in a query's row of the map, one bit in a summary word of a
block of queries."""
CHUNK = GROUPED * 32
"""Keys of a chunk: 32 groups, one bit each in a summary word."""
CHUNKS_MAX = 64
"""Most chunks of a sequence's keys that attention kernels can read from a bit map."""


def chunks(keys: Expr) -> Expr:
    """Returns the number of chunks of ``keys`` keys."""
    return ceil_div(keys, CHUNK)


def scratch(keys: Expr) -> dict[str, Expr]:
    """Returns the bytes of a mask's two scratch arrays, by pointer parameter: ``mask_bits`` has a
    bit for each query and key; ``mask_blocks`` has two summary words for each block of
    :data:`QUERIES` queries and chunk of :data:`CHUNK` keys (for each group of 32 keys a bit whether
    some query sees some key, and one whether all see all). ``keys``: keys of the longest sequence.
    """
    blocks = MAPS * chunks(keys)
    return {"mask_bits": blocks * (QUERIES * CHUNK // 8), "mask_blocks": blocks * 8}


def required(keys: Expr) -> Expr:
    """Returns the predicate under which kernels support the bit map of a mask for ``keys`` keys:
    there is a mask, and its map fits the limits of chunks and scratch memory.
    """
    size = scratch(keys)["mask_bits"]
    return all_of((MAPS >= 1, keys <= CHUNK * CHUNKS_MAX, size <= SCRATCH_MAX))


@dataclass(frozen=True)
class MaskSpec(KernelSpec):
    """A kernel that packs a boolean attention mask to bits, and stores for each group of 32 keys
    whether queries of a block see some key, and whether all see all. A CTA packs a block of queries
    and a chunk of keys, a warp some rows, a lane a word of 32 keys of each.
    """

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
            f"contract {self.contract}: {self.contract.step}",
            f"CTAs {self.grid}: {QUERIES} queries and {CHUNK} keys each",
        )
