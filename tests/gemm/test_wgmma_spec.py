"""Specs of the wgmma family: illegal ones cannot exist, and what follows from their fields."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import pytest
from bits import same_bits
from interp_launch import Case, oracle, run

from ptxgen.build.render import render
from ptxgen.errors import SpecError
from ptxgen.expr import Expr
from ptxgen.interp.run.profile import Profiler
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import ARCHITECTURES, LAYOUTS
from ptxgen.spec.wgmma import SPLITS, Operand, WgmmaSpec, WgmmaSwappedSpec
from ptxgen.tiles import SPECS, wgmma

BASE = WgmmaSpec("NT", bm=128, bn=128, bk=64, consumers=2, stages=4)
PROBLEM = {"M": 1000, "N": 1000, "K": 512, "CHUNK": 512, "CHUNKS": 1, "SMS": 132}
ALIGNED = {"ALIGN_A": 16, "ALIGN_B": 16}

# What breaks, and both sides as they must appear in the message.
VIOLATIONS: list[tuple[dict[str, Any], object, object]] = [
    ({"layout": "XX"}, "XX", LAYOUTS),
    ({"dtype": "f32"}, "f32", ("bf16", "f16")),
    ({"min_arch": "sm_80"}, "sm_80", "sm_90"),
    ({"split": "half"}, "half", SPLITS),
    ({"consumers": 0}, 0, ">= 1"),
    ({"consumers": 4, "bm": 256}, 4, "<= 3"),
    ({"stages": 1}, 1, ">= 2"),
    ({"bm": 64}, 128, 64),
    ({"bn": 72}, 72, 256),
    ({"bn": 272}, 272, 256),
    ({"bk": 96}, 96, 64),
    ({"cluster_m": 4, "cluster_n": 4}, 16, 8),
    ({"bn": 48, "cluster_m": 5}, 5, 48),
    ({"bn": 16, "cluster_m": 4}, 4, 256),
    ({"bm": 256, "bn": 256, "stages": 2}, 304, 168),
    ({"bn": 256}, 176, 168),
    ({"registers": 236}, 236, 240),
    ({"registers": 248}, 248, 240),
    ({"registers": 240, "consumers": 3, "bm": 192}, 512 - 3 * 240, ">= 24"),
]


@pytest.mark.parametrize(
    ("changes", "left", "right"), VIOLATIONS, ids=[str(v[0]) for v in VIOLATIONS]
)
def test_violations_show_both_sides(changes: dict[str, Any], left: object, right: object) -> None:
    with pytest.raises(SpecError, match=re.escape(f": {left} vs {right}") + "$"):
        replace(BASE, **changes)


@pytest.mark.parametrize(
    ("changes", "left", "right"),
    [
        ({"bm": 100}, 100, 256),
        ({"bm": 264}, 264, 256),
        ({"bn": 64}, 128, 64),
        ({"cluster_m": 2}, 2, 1),
        ({"split": "onto"}, "onto", ("none", "serial", "workspace")),
        ({"split": "serial", "registers": 240, "stages": 3, "spilled_sums": 52}, 52, None),
        ({"bm": 96, "bn": 256, "split": "serial", "spilled_sums": 52}, 52, 48),
    ],
    ids=str,
)
def test_swapped_operands_have_rows_in_multiples_of_8(
    changes: dict[str, Any], left: object, right: object
) -> None:
    spec = WgmmaSwappedSpec("NT", bm=200, bn=128, bk=64, consumers=2, stages=4, registers=232)
    assert spec.instruction.columns == 200
    with pytest.raises(SpecError, match=re.escape(f": {left} vs {right}") + "$"):
        replace(spec, **changes)


def test_last_tiles_overlap_where_loads_would_take_longer_than_products() -> None:
    assert BASE.overlapping_rows and replace(BASE, layout="NN").overlapping_rows
    assert not replace(BASE, layout="TN").overlapping_rows  # rows of A are columns of a box
    assert not replace(BASE, bn=256, registers=240).overlapping_rows


def test_shared_memory_is_bounded() -> None:
    limit = ARCHITECTURES["sm_90"].shared_per_cta
    with pytest.raises(SpecError, match=rf"shared memory on sm_90, bytes: \d+ vs {limit}$"):
        replace(BASE, stages=8)


def test_names_tell_specs_apart() -> None:
    changes: list[dict[str, Any]] = [
        {},
        *({"layout": layout} for layout in LAYOUTS if layout != BASE.layout),
        {"dtype": "f16"},
        {"bn": 64},
        {"bm": 256, "registers": 232},
        {"registers": 232},
        {"bm": 192, "consumers": 3},
        {"bk": 128, "stages": 2},
        {"stages": 3},
        {"raster": 4},
        {"cluster_m": 2},
        {"cluster_n": 2},
        {"split": "workspace"},
    ]
    specs = [replace(BASE, **change) for change in changes]
    assert len({s.name for s in specs}) == len({s.canonical() for s in specs}) == len(specs)
    assert all(re.fullmatch(r"wgmma_[a-z0-9_]*", s.name) for s in specs)


def test_descriptions_name_the_instruction() -> None:
    kernels = [spec for spec in SPECS.values() if isinstance(spec, WgmmaSpec)]
    assert {type(k) for k in kernels} > {WgmmaSpec, WgmmaSwappedSpec}
    for kernel in kernels:
        (shape,) = re.findall(r"m64n\d+k\d+", "\n".join(kernel.describe()))
        assert str(kernel.instruction).startswith(f"{shape}."), kernel.name


def test_only_hopper_runs_it() -> None:
    assert [arch for arch in ARCHITECTURES if BASE.runs_on(arch)] == ["sm_90"]


@pytest.mark.parametrize("k_major", [True, False])
@pytest.mark.parametrize(("extent", "bk"), [(64, 64), (192, 64), (112, 64), (128, 128), (32, 64)])
@pytest.mark.parametrize("share", [1, 2, 4])
def test_boxes_cover_a_tile_once(k_major: bool, extent: int, bk: int, share: int) -> None:
    """The CTAs that share a tile copy every row of every panel exactly once."""
    tile = Operand("b", k_major, extent, bk, share)
    if not tile.whole_panels and tile.rows % share:
        pytest.skip("refused by the spec")
    copied = []
    for member, i in itertools.product(range(share), range(tile.boxes)):
        panel = member * tile.boxes + i if tile.whole_panels else i
        row = 0 if tile.whole_panels else member * tile.box_rows
        copied += [(panel, row + r) for r in range(tile.box_rows)]
    assert sorted(copied) == [(p, r) for p in range(tile.panels) for r in range(tile.rows)]
    assert tile.bytes == tile.panels * tile.rows * tile.width * 2
    wide = bk if k_major else extent
    assert tile.panels * tile.width >= wide > (tile.panels - 1) * tile.width
    assert tile.box == (tile.width, tile.box_rows)
    assert tile.swizzle == 2 * tile.width


@pytest.mark.parametrize("sms", [16, 78, 114, 132, 144])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (4, 1), (2, 2)])
def test_grids_are_whole_clusters_that_run_at_once(sms: int, cluster: tuple[int, int]) -> None:
    spec = replace(BASE, cluster_m=cluster[0], cluster_n=cluster[1])
    for m, n in ((1, 1), (1000, 1000), (100000, 5000)):
        grid = spec.grid.evaluate({**PROBLEM, "M": m, "N": n, "SMS": sms})
        assert 0 < grid <= sms and grid % spec.ctas == 0
        work = spec.work.evaluate({**PROBLEM, "M": m, "N": n})
        assert grid <= work * spec.ctas


def test_requires() -> None:
    def holds(requires: Expr, **values: int) -> bool:
        return bool(requires.evaluate({**PROBLEM, **ALIGNED, **values}))

    assert holds(BASE.requires)
    assert not holds(BASE.requires, ALIGN_A=8)
    assert not holds(BASE.requires, ALIGN_B=8)
    assert not holds(BASE.requires, CHUNKS=2, CHUNK=256)
    assert not holds(BASE.requires, M=(1 << 31) - 1)
    workspace = replace(BASE, split="workspace").requires
    assert holds(workspace) and holds(workspace, CHUNKS=2, CHUNK=256)
    assert not holds(workspace, CHUNKS=3, CHUNK=200)
    assert not holds(workspace, M=100000, N=100000, CHUNKS=2, CHUNK=256)
    swapped = WgmmaSwappedSpec("NT", bm=80, bn=128, bk=64, consumers=2, stages=8, split="serial")
    assert holds(swapped.requires, M=65) and not holds(swapped.requires, M=64)
    assert holds(swapped.requires, M=513)
    workspace = replace(swapped, split="workspace").requires
    assert holds(workspace, M=65, CHUNKS=2, CHUNK=256) and not holds(workspace, M=64)
    assert holds(workspace, M=512) and not holds(workspace, M=513)


def test_every_layout_turns_its_operands() -> None:
    """The last two operands of the instruction: whether A, and B, are contiguous outside of k."""
    for layout in LAYOUTS:
        turned = int(layout[0] == "T"), int(layout[1] == "N")
        source = render(replace(BASE, layout=layout))
        assert f"p, 1, 1, {turned[0]}, {turned[1]}; }}" in source


def test_tables_name_each_kernel_once() -> None:
    kernels = [
        kernel
        for dtype in ("bf16", "f16")
        for layout in LAYOUTS
        for kernel in (
            *wgmma.specs(layout, dtype),
            *wgmma.swapped(layout, dtype),
            *wgmma.partial(layout, dtype),
            *wgmma.swapped_partial(layout, dtype),
        )
    ]
    kernels += [kernel for dtype in ("bf16", "f16") for kernel in wgmma.continued(dtype)]
    assert len({k.name for k in kernels}) == len(kernels)
    assert {k.split for k in kernels} == {*SPLITS, "onto"}
    for layout in LAYOUTS:
        shapes = {(k.bm, k.bn) for k in wgmma.swapped(layout, "bf16")}
        assert len(shapes) == (14 if layout in ("NN", "NT") else 0), "as ADR 118 lists"


@pytest.mark.parametrize("wide", [False, True])
def test_results_are_added_to_by_vectors(wide: bool) -> None:
    """16 bytes a lane, read and written once, whatever the width of the result."""
    tile = WgmmaSpec("TN", bm=64, bn=64, bk=64, consumers=1, stages=12, split="serial")
    name = tile.name
    case = Case(64, 64, 16, op="linear_wgrad", bias=False, accumulate=True, out_f32=wide)
    case = case.of(SPECS[name])
    observer = Profiler()
    got, _ = run(CpuDevice(observer=observer), name, case)
    same_bits(got, oracle(case))
    (counted,) = observer.kernels({})
    sites = [s for s in counted.sites if s.space == "global" and "bulk" not in s.name]
    assert {s.width for s in sites} == {16}
    assert sum(s.bytes for s in sites) == 2 * got.nbytes
