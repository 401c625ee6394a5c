"""Chains whose results go through shared memory: the CPU device, and faults that it finds there."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from bits import same_bits
from interp_faults import BITS, attempt, in_source
from interp_launch import CONTINUED, SEED, Case, oracle, run

from ptxgen.errors import (
    BarrierFault,
    DeadlockFault,
    MemoryFault,
    RaceFault,
    SpecError,
    UninitializedFault,
)
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.chain import ChainSpec

BY_ITEM = {
    item: min(
        (spec.bm * spec.bn, name)
        for name, route in CONTINUED.items()
        if isinstance(spec := route.main, ChainSpec)
        and (spec.itemsize, spec.dtype) == (item, "bf16")
    )[1]
    for item in (2, 4)
}
"""The kernel of the smallest tile, by bytes of a result's element."""


def walk(name: str, *, accumulate: bool = True) -> Case:
    """Six tiles, with edges, and less than a stage behind the last whole one."""
    spec = CONTINUED[name].main
    n, k = 2 * spec.bn + 8, spec.bk + 16
    return Case(
        spec.bm + 3,
        n,
        k,
        op="linear_wgrad",
        kind="wide",
        bias=False,
        accumulate=accumulate,
        chain=True,
        extra=8,
        out_f32=spec.itemsize == 4,
    ).of(spec)


def few(sms: int, **settings: object) -> CpuDevice:
    """A device whose CTAs have several tiles each."""
    device = CpuDevice(**settings)
    device.sms = sms
    return device


@pytest.mark.parametrize("item", BY_ITEM)
@pytest.mark.parametrize(("sms", "seed"), [(1, None), (2, 7)])
def test_ctas_walk_over_tiles(item: int, sms: int, seed: int | None) -> None:
    """A CTA's tiles share one buffer: the stores of a tile and the loads of the next use it."""
    name = BY_ITEM[item]
    device = few(sms, seed=seed)
    for accumulate in (True, False):
        case = walk(name, accumulate=accumulate)
        got, intact = run(device, name, case)
        same_bits(got, oracle(case), seed=SEED, spec=name, what=str(case))
        assert intact


RACES = BITS, RaceFault, UninitializedFault
FAULTS = {
    "a consumer does not wait for its piece": (
        "barrier_wait(there + 8 * each, phase_c);",
        "",
        RACES,
    ),
    "a mover does not wait for the exchange": (
        "barrier_wait(gone + 8 * (own + i), phase);",
        "",
        (*RACES, BarrierFault),
    ),
    "its other way is not fenced": (r'asm volatile\("fence\.proxy\.async[^\n]*', "", (RaceFault,)),
    "pieces come before the last ones have left": (
        "store_wait();\n                if",
        "if",
        (RaceFault,),
    ),
    "the last piece is not waited for": ("wait_group.read 0", "wait_group.read 1", (RaceFault,)),
    "nobody says that there is nothing to wait for": (
        "barrier_arrive(there + 8 * (own + i))",
        "{}",
        (DeadlockFault,),
    ),
    "a tile goes where another one lies": (
        "last = locate(tile)",
        "last = locate(tile == first ? tile + clusters : tile)",
        RACES,
    ),
    "the swizzle is left out": (" ^ row ^ row % 2 * 4", "", (BITS, RaceFault)),
    "a piece too far": (
        "copy_box(buffer + (own + i) * PIECE",
        "copy_box(buffer + (own + i + 1) * PIECE",
        (*RACES, MemoryFault),
    ),
}
"""Planted faults by name: text, its replacement, and the faults that may follow."""


@pytest.mark.parametrize("what", FAULTS)
def test_faults_are_found(what: str) -> None:
    old, new, kinds = FAULTS[what]
    name = BY_ITEM[4]
    text = in_source(CONTINUED[name].main, old, new)
    assert text is not None, "nothing was planted"
    found = attempt(text, name, walk(name), device=few(1))
    kinds, bits = tuple(kind for kind in kinds if kind != BITS), BITS in kinds
    assert isinstance(found, kinds) or (found == BITS and bits), found


def test_specs_that_cannot_be() -> None:
    spec = CONTINUED[BY_ITEM[2]].main
    for change, left, right in (
        ({"split": "none"}, "none", ("onto",)),
        ({"itemsize": 8}, 8, "2 or 4"),
        ({"bn": 48}, 64, 48),
        ({"bn": 80, "itemsize": 4}, 32, 80),
        ({"bk": 40}, 40, 16),
    ):
        with pytest.raises(SpecError, match=re.escape(f": {left} vs {right}") + "$"):
            replace(spec, **change)


def test_where_it_is_right() -> None:
    """Kernels require a C that the copy engine takes (16-byte rows) with elements of their own
    width.
    """
    for item, name in BY_ITEM.items():
        requires = CONTINUED[name].main.requires
        fine = dict.fromkeys(("ALIGN_A", "ALIGN_B", "ALIGN_C"), 16) | {"ITEM_C": item}
        fine |= {"M": 1, "N": 8, "K": 1, "CHUNKS": 1, "SMS": 132}
        assert requires.evaluate(fine)
        assert requires.evaluate(fine | {"N": 4}) == (item == 4), "16 bytes are written whole"
        for change in ({"ALIGN_C": 8}, {"ITEM_C": 6 - item}, {"ALIGN_A": 8}, {"N": 6}):
            assert not requires.evaluate(fine | change), change
