"""Specs of the kernels that read NF4 weights: illegal ones cannot exist, and what is derived."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from ptxgen.errors import SpecError
from ptxgen.spec.quantized_held import QuantizedHeldSpec
from ptxgen.spec.quantized_mma import SPLITS, QuantizedTensorSpec
from ptxgen.spec.quantized_packed import LAYOUTS
from ptxgen.spec.quantized_pairs import QuantizedPairsSpec
from ptxgen.spec.quantized_skinny import QuantizedSkinnySpec
from ptxgen.spec.quantized_wgmma import QuantizedWgmmaSpec

MMA: dict[str, Any] = {
    "layout": "NT", "bm": 8, "bn": 32, "bk": 256, "warps_m": 1, "warps_n": 2, "producer_warps": 4,
    "stages": 4,
}  # fmt: skip
PAIRS: dict[str, Any] = {
    "layout": "NT", "bm": 8, "bn": 32, "bk": 256, "warps": 2, "producer_warps": 4, "stages": 4,
}  # fmt: skip
SKINNY: dict[str, Any] = {
    "layout": "NT", "bm": 8, "bn": 32, "bk": 256, "warps": 2, "slices": 3, "stages": 3, "sums": 3,
    "min_arch": "sm_90",
}  # fmt: skip
HELD: dict[str, Any] = {"layout": "NT", "bm": 64, "bn": 128, "bk": 128, "stages": 4}
WGMMA: dict[str, Any] = {
    "layout": "NT", "bm": 128, "bn": 128, "bk": 64, "consumers": 2, "stages": 4,
}  # fmt: skip


def mma(**changes: Any) -> QuantizedTensorSpec:
    return QuantizedTensorSpec(**{**MMA, **changes})


def pairs(**changes: Any) -> QuantizedPairsSpec:
    return QuantizedPairsSpec(**{**PAIRS, **changes})


def skinny(**changes: Any) -> QuantizedSkinnySpec:
    return QuantizedSkinnySpec(**{**SKINNY, **changes})


def held(**changes: Any) -> QuantizedHeldSpec:
    return QuantizedHeldSpec(**{**HELD, **changes})


def wgmma(**changes: Any) -> QuantizedWgmmaSpec:
    return QuantizedWgmmaSpec(**{**WGMMA, **changes})


@pytest.mark.parametrize(
    ("make", "changes", "left", "right"),
    [
        (mma, {"layout": "TN"}, "TN", LAYOUTS),
        (mma, {"dtype": "f32"}, "f32", ("bf16", "f16")),
        (mma, {"split": "none"}, "none", SPLITS),
        (mma, {"streamed": "a"}, "a", ("", "b")),
        (mma, {"min_arch": "sm_70"}, "sm_70", "["),
        (mma, {"stages": 1}, 1, ">= 2"),
        (mma, {"prefetch": 8}, 8, "1 .. 7"),
        (mma, {"producer_warps": 0}, 0, ">= 1"),
        (mma, {"producer_warps": 6}, 192, 256),  # vectors that threads copy, and those there are
        (mma, {"producer_warps": 32}, 0, 256),  # more threads than vectors
        (mma, {"layout": "NN", "bn": 48, "warps_n": 1}, 32, 48),
        (mma, {"bk": 512, "producer_warps": 8, "stages": 9}, 231424, 166912),
        (mma, {"copy_a": "words"}, "words", (None, "plain")),
        (mma, {"teams": 2, "stages": 2}, 2, ">= 3"),
        (mma, {"teams": 4}, 4, "1 .. 3"),  # named barriers
        (mma, {"teams": 3}, 4, 3),  # helpers
        (pairs, {"layout": "TN"}, "TN", LAYOUTS),
        (pairs, {"split": "workspace"}, "workspace", ("serial",)),
        (pairs, {"stages": 2}, 2, ">= 3"),
        (pairs, {"prefetch": 3}, 3, "(1, 2, 4)"),
        (pairs, {"producer_warps": 0}, 0, ">= 1"),
        (pairs, {"bm": 12}, 8, "bm"),
        (pairs, {"bk": 192}, 128, "bk"),
        (pairs, {"bn": 48}, 48, 16),
        (pairs, {"layout": "NN", "bn": 48, "warps": 1}, 32, 48),  # vectors of indices
        (pairs, {"layout": "NN", "bn": 96, "warps": 3}, 128, 3),  # threads, and a row's vectors
        (pairs, {"layout": "NN", "bn": 256}, 8, "(1, 2, 4)"),  # bytes of a row that a lane loads
        (pairs, {"stages": 12}, 176128, 166912),
        (
            pairs,
            {"bm": 128, "bn": 64, "bk": 128, "stages": 3, "min_arch": "sm_90"},
            360,
            255,
        ),
        (skinny, {"layout": "NN"}, "NN", ("NT",)),
        (skinny, {"split": "serial"}, "serial", ("slices",)),
        (skinny, {"stages": 2}, 2, ">= 3"),
        (skinny, {"slices": 16, "sums": 16}, 16, 15),  # named barriers
        (skinny, {"slices": 4}, 4, 3),  # more than there are sums
        (skinny, {"bm": 12}, 8, 12),
        (skinny, {"bn": 48}, 48, 16),
        (skinny, {"bk": 192}, 128, 192),
        (skinny, {"bk": 512}, 16, 8),  # vectors of a row of codes
        (skinny, {"stages": 8}, 263936, 232448),
        (held, {"layout": "NN"}, "NN", ("NT",)),
        (held, {"split": "serial"}, "serial", ("none", "workspace")),
        (held, {"bm": 12}, 8, 12),
        (held, {"bn": 96}, 64, 96),
        (held, {"bk": 32}, 32, (64, 128)),
        (held, {"stages": 2}, 2, ">= 3"),
        (held, {"bm": 192, "bn": 256, "bk": 64}, 136, 128),
        (wgmma, {"layout": "TT"}, "TT", LAYOUTS),
        (wgmma, {"cluster_n": 2}, 2, 1),
        (wgmma, {"split": "onto"}, "onto", ("none", "serial", "workspace")),
        (wgmma, {"producer_warps": 3}, 3, ">= 4"),
        (wgmma, {"producer_warps": 6}, 6, 4),
        (wgmma, {"index_stages": 1}, 1, ">= 2"),
        (wgmma, {"teams": 2, "producer_warps": 4}, 4, 8),
        (
            wgmma,
            {"bm": 64, "bn": 64, "consumers": 1, "teams": 3, "producer_warps": 12, "stages": 2},
            3,
            2,
        ),
        (wgmma, {"layout": "NN", "bn": 16, "bm": 64, "consumers": 1}, 32, ">= 64"),
        (wgmma, {"bm": 256, "stages": 3}, 176, 128),
    ],
)
def test_violations_show_both_sides(make: Any, changes: Any, left: object, right: object) -> None:
    make()  # the base is legal
    with pytest.raises(SpecError, match=re.escape(f": {left} vs {right}")):
        make(**changes)


CHANGES = [
    {"layout": "NN"}, {"bm": 16}, {"bn": 64}, {"bk": 512}, {"warps_m": 2, "bm": 16},
    {"warps_n": 1}, {"producer_warps": 8}, {"stages": 5}, {"prefetch": 1}, {"streamed": ""},
    {"ctas_per_sm": 2}, {"dtype": "f16"}, {"producer_warps": 8, "teams": 2}, {"copy_a": "plain"},
]  # fmt: skip


def test_teams_have_stages_of_their_own() -> None:
    one, two = wgmma(), wgmma(teams=2)
    assert two.shared_bytes - one.shared_bytes == one.index_stages * one.packed.nbytes
    assert two.packed.turns == 2 * one.packed.turns
    one, two = mma(producer_warps=8), mma(producer_warps=8, teams=2)
    assert one.widened == 2 and two.widened == 4
    assert two.shared_bytes - one.shared_bytes == 4 * (8 * 512 + 5120) + 2 * 32 * 512


def test_numbers_of_a_may_lie_anywhere() -> None:
    for copy_a in (None, "plain"):
        needs = "ALIGN_A" in str(mma(layout="NN", copy_a=copy_a).requires)
        assert needs is (copy_a is None)


PAIRS_CHANGES = [
    {"layout": "NN"}, {"bm": 16}, {"bn": 64}, {"bk": 128}, {"warps": 1}, {"producer_warps": 8},
    {"stages": 5}, {"prefetch": 2}, {"ctas_per_sm": 2},
    {"dtype": "f16"},
]  # fmt: skip


def test_every_field_is_in_the_name_and_has_a_meaning() -> None:
    names = {mma().name, *(mma(**change).name for change in CHANGES)}
    assert len(names) == len(CHANGES) + 1
    fields = {field.name for field in dataclasses.fields(QuantizedTensorSpec)}
    assert fields - {name for change in CHANGES for name in change} == {
        "split",  # there is one
        "min_arch",
        "contract",
        "format",
    }
    assert (
        len(
            {
                wgmma(**x).name
                for x in ({}, {"producer_warps": 4}, {"index_stages": 3}, {"teams": 2})
            }
        )
        == 4
    )
    names = {pairs().name, *(pairs(**change).name for change in PAIRS_CHANGES)}
    assert len(names) == len(PAIRS_CHANGES) + 1
    fields = {field.name for field in dataclasses.fields(QuantizedPairsSpec)}
    assert fields - {name for change in PAIRS_CHANGES for name in change} == {
        "split",
        "streamed",
        "min_arch",
        "contract",
        "format",
    }
    for spec in (mma(), pairs(), wgmma()):
        assert {field.name for field in dataclasses.fields(spec)} <= set(spec.meanings)


def test_a_weight_costs_nine_bytes_for_sixteen_numbers() -> None:
    sizes = {"M": 8, "N": 64, "K": 512, "CHUNK": 512, "CHUNKS": 1, "SMS": 132}
    cost = mma().cost
    assert cost.operands.evaluate(sizes) == 8 * 512 * 2 + 64 * 512 * 9 // 16
    assert cost.loads.evaluate(sizes) == 2 * 8 * 512 * 2 + 64 * 512 * 9 // 16
    assert mma().scratch == wgmma().scratch == {} and not mma().batched
    assert pairs().cost == mma().cost


def test_rows_of_indices_lie_in_different_banks() -> None:
    """8 rows that a warp reads at once: forward neighbours, backward every second."""
    for spec, apart in ((pairs(), 1), (pairs(layout="NN", bn=64), 2)):
        banks = {row * apart * spec.pitch // 4 % 32 for row in range(8 // apart)}
        assert len(banks) == 8 // apart and spec.pitch % 16 == 0


def test_registers_are_shared_out_among_warpgroups() -> None:
    spec = wgmma(bm=256, stages=3, producer_warps=4, registers=208)
    assert spec.threads == 384 and spec.launch_registers == 168
    assert 2 * spec.registers + spec.producer_registers <= 3 * spec.launch_registers
    assert spec.producer_registers == 88


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_of_a_thread_share_a_scale_where_it_has_whole_blocks(layout: str) -> None:
    assert wgmma(layout=layout).packed.shared == 1  # a vector a thread
    assert wgmma(layout=layout, teams=2, stages=3).packed.shared == 2
    one = QuantizedTensorSpec("NN", 8, 32, 256, 1, 2, 4, 3).packed
    assert (one.turns, one.parts, one.shared) == (2, 1, 1)  # half a block in a row
