"""Specs of the mma family: illegal ones cannot exist, and what is derived fits together."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from ptxgen.errors import SpecError
from ptxgen.expr import Expr
from ptxgen.numerics.formula import Formula, Output, read
from ptxgen.spec import ARCHITECTURES, LAYOUTS
from ptxgen.spec.epilogue import Epilogue
from ptxgen.spec.mma import MMA_COPIES, MMA_SPLITS, STREAMED, MmaSpec
from ptxgen.tiles import mma

BASE: dict[str, Any] = {
    "layout": "NN",
    "bm": 64,
    "bn": 128,
    "bk": 64,
    "warps_m": 2,
    "warps_n": 2,
    "stages": 3,
}


def tile(**changes: Any) -> MmaSpec:
    return MmaSpec(**{**BASE, **changes})


# What breaks, and both sides as they must appear in the message.
VIOLATIONS: list[tuple[dict[str, Any], object, object]] = [
    ({"layout": "XX"}, "XX", LAYOUTS),
    ({"dtype": "f32"}, "f32", ("bf16", "f16")),
    ({"split": "half"}, "half", MMA_SPLITS),
    ({"copy_a": "scalar"}, "scalar", [*MMA_COPIES]),
    ({"copy_b": "scalar"}, "scalar", [*MMA_COPIES]),
    ({"min_arch": "sm_70"}, "sm_70", [*ARCHITECTURES]),
    ({"bm": 0}, 0, ">= 1"),
    ({"stages": 1}, 1, ">= 2"),
    ({"raster": -1}, -1, ">= 0"),
    ({"bk": 48}, 48, 64),
    ({"bm": 48}, 32, 48),
    ({"bm": 8, "warps_m": 1}, 16, 8),
    ({"bn": 24}, 16, 24),
    ({"bn": 24, "swap_operands": True}, 32, 24),
    ({"prefetch": 8}, 8, "1 .. 7"),
    ({"prefetch": 4}, 128, 64),
    ({"prefetch": 2, "bk": 32}, 64, 32),
    ({"producer_warps": 31}, 1120, 1024),
    ({"bk": 512, "producer_warps": 1}, 64, 32),
    ({"streamed": "a"}, "a", STREAMED),
    ({"streamed": "b", "copy_b": "words"}, "words", "vector"),
    ({"producer_warps": -1}, -1, ">= 0"),
    ({"bm": 128, "bn": 256, "bk": 32, "warps_n": 1}, 4 * 128 + 24 + 2 * (4 * 4 + 32 * 2), 255),
]


@pytest.mark.parametrize(
    ("changes", "left", "right"), VIOLATIONS, ids=[str(v[0]) for v in VIOLATIONS]
)
def test_violations_show_both_sides(changes: dict[str, Any], left: object, right: object) -> None:
    tile()  # the base is legal
    with pytest.raises(SpecError, match=re.escape(f": {left} vs {right}") + "$"):
        tile(**changes)


def test_shared_memory_is_bounded() -> None:
    limit = ARCHITECTURES["sm_80"].shared_per_cta
    used = 8 * tile().stage
    with pytest.raises(SpecError, match=rf"shared memory on sm_80, bytes: {used} vs {limit}$"):
        tile(stages=8)


def test_shared_memory_holds_the_exchanged_tile() -> None:
    small = tile(bm=128, bk=32, stages=2)
    assert small.shared_bytes == 4 * 128 * (128 + 8) > 2 * small.stage


TABLES = [(layout, dtype) for layout in LAYOUTS for dtype in ("bf16", "f16")]


def test_names_are_unique_and_say_everything() -> None:
    kernels = [
        kernel for at in TABLES for table in (mma.specs, mma.partial) for kernel in table(*at)
    ]
    kernels += [kernel for dtype in ("bf16", "f16") for kernel in mma.continued(dtype)]
    assert len({kernel.name for kernel in kernels}) == len(set(kernels)) == len(kernels)


# A field, a value unlike the base's, and what else it takes.
CHANGES: list[dict[str, Any]] = [
    {"layout": "TT"},
    {"bm": 128},
    {"bn": 64},
    {"bk": 32},
    {"warps_m": 1},
    {"warps_n": 4},
    {"stages": 2},
    {"copy_a": "words"},
    {"copy_b": "plain"},
    {"swap_operands": True},
    {"split": "workspace"},
    {"persistent": True},
    {"ctas_per_sm": 2},
    {"raster": 0},
    {"streamed": "ab"},
    {"producer_warps": 4},
    {"prefetch": 2},
    {"dtype": "f16"},
    {"epilogue": Epilogue("bf16", Formula((Output("c", "f32", read("product", "bf16")),)), "")},
]


def test_every_field_is_in_the_name() -> None:
    changed = [tile(**change) for change in CHANGES]
    assert len({tile().name, *(kernel.name for kernel in changed)}) == len(changed) + 1
    named = {name for change in CHANGES for name in change}
    fields = {field.name for field in dataclasses.fields(MmaSpec)}
    assert fields - named == {"min_arch", "contract"}


@pytest.mark.parametrize(("layout", "dtype"), TABLES)
def test_tables(layout: str, dtype: str) -> None:
    kernels, parts = mma.specs(layout, dtype), mma.partial(layout, dtype)
    for kernel in (*kernels, *parts):
        assert (kernel.layout, kernel.dtype) == (layout, dtype)
        assert kernel.runs_on("sm_80")
    assert {kernel.split for kernel in kernels} == {"none", "serial"}
    assert {kernel.split for kernel in parts} == {"workspace"}
    # GPUs with less shared memory have kernels for few rows and many, and the catch-all.
    portable = [kernel for kernel in kernels if kernel.runs_on("sm_89")]
    assert {8, 16, 32, 64, 128} <= {kernel.bm for kernel in portable}
    assert kernels[-1] in portable
    assert parts[-1].runs_on("sm_89")


def _holds(predicate: Expr, **values: int) -> bool:
    shape = {"M": 1, "N": 1, "K": 1, "CHUNK": 1, "CHUNKS": 1, "ALIGN_A": 2, "ALIGN_B": 2, "SMS": 1}
    return bool(predicate.evaluate({**shape, **values}))


@pytest.mark.parametrize(("layout", "dtype"), TABLES)
def test_the_last_kernel_takes_everything(layout: str, dtype: str) -> None:
    last = mma.specs(layout, dtype)[-1]
    most = (1 << 31) - 1
    assert _holds(last.requires)
    assert _holds(last.requires, M=most, N=most, K=most, CHUNK=most)
    assert not _holds(last.requires, K=2, CHUNKS=2)


def test_copies_say_what_alignment_they_take() -> None:
    for copy, align in MMA_COPIES.items():
        a, b = tile(copy_a=copy, copy_b="plain"), tile(copy_b=copy, copy_a="plain")
        assert _holds(a.requires, ALIGN_A=align)
        assert _holds(b.requires, ALIGN_B=align)
        if align > 2:
            assert not _holds(a.requires, ALIGN_A=align // 2, ALIGN_B=16)
            assert not _holds(b.requires, ALIGN_B=align // 2, ALIGN_A=16)


@pytest.mark.parametrize("vectors", range(1, 65))
def test_eight_rows_lie_in_different_banks(vectors: int) -> None:
    """Eight rows that one ldmatrix reads (16 bytes each) fall into different banks."""
    side = dataclasses.replace(tile().side("a"), vectors=vectors, rows=64)
    for first in range(0, 64, 8):
        for vector in range(vectors):
            places = [
                row * vectors + (vector ^ (row >> side.shift & side.mask))
                for row in range(first, first + 8)
            ]
            assert len({place % 8 for place in places}) == 8
            assert all(place // vectors in range(first, first + 8) for place in places)
