"""Specs: illegal ones cannot exist, names say what the kernel is, and nothing else does."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from ptxgen.contract import Contract
from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, ceil_div
from ptxgen.render import render
from ptxgen.spec import (
    ARCHITECTURES,
    CHUNKS,
    DIM_MAX,
    GRID_MAX,
    INDEX_MAX,
    SPLITS,
    WORKSPACE_MAX,
    K,
    KernelSpec,
    M,
    N,
    ReduceSpec,
    Route,
    TileSpec,
)
from ptxgen.tiles import ROUTES, SPECS

BASE: dict[str, Any] = {
    "layout": "NN",
    "bm": 128,
    "bn": 128,
    "bk": 16,
    "tm": 8,
    "tn": 8,
    "lanes_m": 4,
    "warps_m": 4,
    "warps_n": 2,
    "stages": 3,
    "copy_a": "transpose",
    "copy_b": "vector",
}


def tile(**changes: Any) -> TileSpec:
    return TileSpec(**{**BASE, **changes})


def rebuilt(spec: KernelSpec) -> KernelSpec:
    """A spec from its canonical text alone."""
    fields = json.loads(spec.canonical())
    kind = {"TileSpec": TileSpec, "ReduceSpec": ReduceSpec}[fields.pop("kind")]
    fields["contract"] = Contract(**fields["contract"])
    return kind(**fields)  # type: ignore[no-any-return]


# -- invariants -------------------------------------------------------------------------
# What breaks, and both sides as they must appear in the message.
VIOLATIONS: list[tuple[dict[str, Any], object, object]] = [
    ({"layout": "XX"}, "XX", ("NN", "NT", "TN", "TT")),
    ({"split": "half"}, "half", SPLITS),
    ({"lanes_m": 5}, 5, 32),
    ({"bm": 120}, 128, 120),
    ({"bn": 120}, 128, 120),
    ({"bm": 48, "tm": 3}, 3, 4),
    ({"bn": 96, "tn": 6}, 6, 4),
    ({"stages": 1}, 1, ">= 2"),
    ({"slices": 2}, 2, "none"),
    ({"slices": 2, "split": "slices"}, 8, 1),
    ({"bm": 256, "bn": 512, "warps_m": 8, "warps_n": 8}, 2048, 1024),
    ({"bm": 256, "bn": 256, "tm": 16, "tn": 16}, 16 * 16 + 2 * 32 + 16, 255),
    ({"bk": 12}, 12, 8),
]


@pytest.mark.parametrize(
    ("changes", "left", "right"), VIOLATIONS, ids=[str(v[0]) for v in VIOLATIONS]
)
def test_violations_show_both_sides(changes: dict[str, Any], left: object, right: object) -> None:
    tile()  # the base is legal
    with pytest.raises(SpecError, match=re.escape(f": {left} vs {right}") + "$"):
        tile(**changes)


@pytest.mark.parametrize("side", ["copy_a", "copy_b"])
def test_copies_fit_the_layout(side: str) -> None:
    wrong = {"copy_a": "vector", "copy_b": "transpose"}[side]
    with pytest.raises(SpecError, match=f"{side} in layout NN: {wrong} vs "):
        tile(**{side: wrong})


def test_shared_memory_is_bounded() -> None:
    used = tile(stages=8).shared_bytes // 8 * 40
    limit = ARCHITECTURES["sm_80"].shared_per_cta
    assert used > limit
    with pytest.raises(SpecError, match=rf"shared memory on sm_80, bytes: {used} vs {limit}$"):
        tile(stages=40)


def test_copies_cover_the_tile_evenly() -> None:
    two_columns = {"bm": 256, "bn": 2, "tn": 2, "lanes_m": 32, "warps_m": 1, "warps_n": 1}
    with pytest.raises(SpecError, match=r"copy width divides .*: 4 vs 2$"):
        tile(**two_columns)
    odd = {"bm": 64, "bn": 96, "tn": 12, "warps_m": 2, "warps_n": 1, "copy_b": "scalar"}
    with pytest.raises(SpecError, match=r"divide one another: 96 vs 64$"):
        tile(**odd)
    with pytest.raises(SpecError, match=r"lanes along k .*: 6 vs 256$"):
        tile(copy_a="kvector", bk=24)
    uneven = {"bm": 48, "tm": 12, "bk": 8, "warps_m": 1, "copy_a": "kvector"}
    with pytest.raises(SpecError, match=r"copied at once divide the tile.*: 32 vs 48$"):
        tile(**uneven)


def test_reduce_has_whole_warps() -> None:
    with pytest.raises(SpecError, match="whole warps: 100 vs 32"):
        ReduceSpec(cta_threads=100)


def test_routes_are_checked() -> None:
    reduce = ReduceSpec()
    with pytest.raises(SpecError, match="launches: 3 vs 1 or 2"):
        Route((reduce, reduce, reduce), TRUE, "three")
    with pytest.raises(SpecError, match=r"prefer is a predicate: M \+ 1 vs boolean"):
        Route((reduce,), M + 1, "not a predicate")


# -- identity ---------------------------------------------------------------------------
def test_names_are_unique() -> None:
    kernels = [k for routes in ROUTES.values() for r in routes for k in r.kernels]
    by_name: dict[str, KernelSpec] = {}
    for kernel in kernels:
        assert by_name.setdefault(kernel.name, kernel) == kernel, kernel.name
    assert by_name == SPECS
    assert len({k.canonical() for k in SPECS.values()}) == len(SPECS)


def test_names_are_symbols() -> None:
    for name in SPECS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name


def test_names_and_canonical_texts_are_stable() -> None:
    """The same in a fresh process with other hash seeds."""
    code = "from ptxgen.tiles import SPECS\nfor s in SPECS.values(): print(s.name, s.canonical())"
    expected = [f"{s.name} {s.canonical()}" for s in SPECS.values()]
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert run.stdout.splitlines() == expected


@pytest.mark.parametrize("name", SPECS)
def test_canonical_text_round_trips(name: str) -> None:
    spec = SPECS[name]
    again = rebuilt(spec)
    assert again == spec and again.name == spec.name and again.canonical() == spec.canonical()
    fields = json.loads(spec.canonical())
    assert set(fields) == {"kind", *(f.name for f in dataclasses.fields(spec))}


# Other values of every field; most are illegal for most specs, which is no matter.
ALTERNATIVES: dict[str, list[Any]] = {
    "bk": [8, 16, 32, 64],
    "stages": [2, 3, 4, 5],
    "copy_a": ["scalar", "vector", "transpose", "kvector", "staged"],
    "copy_b": ["scalar", "vector", "transpose", "kvector", "staged"],
    "slices": [1, 2, 4, 8],
    "split": list(SPLITS),
    "persistent": [False, True],
    "ctas_per_sm": [1, 2, 3],
    "raster": [4, 8, 16],
    "order": ["rows", "columns", "cols"],
}


def variants(spec: TileSpec) -> dict[str, list[TileSpec]]:
    """The legal specs that differ from ``spec`` in one field (tile sizes: with what they imply)."""
    found: dict[str, list[TileSpec]] = {}
    changes: list[tuple[str, dict[str, Any]]] = [
        (field, {field: value})
        for field, values in ALTERNATIVES.items()
        if hasattr(spec, field)
        for value in values
    ]
    lanes_n = 32 // spec.lanes_m
    for layout in ("NN", "NT", "TN", "TT"):
        copy_a = "vector" if layout[0] == "T" else "transpose"
        copy_b = "vector" if layout[1] == "N" else "transpose"
        changes.append(("layout", {"layout": layout, "copy_a": copy_a, "copy_b": copy_b}))
    changes += [
        ("tm", {"tm": 2 * spec.tm, "bm": 2 * spec.bm}),
        ("tn", {"tn": 2 * spec.tn, "bn": 2 * spec.bn}),
        (
            "tm/tn",
            {
                "tm": spec.tn,
                "tn": spec.tm,
                "bm": spec.bm * spec.tn // spec.tm,
                "bn": spec.bn * spec.tm // spec.tn,
            },
        ),
        ("warps_m", {"warps_m": 2 * spec.warps_m, "bm": 2 * spec.bm}),
        ("warps_n", {"warps_n": 2 * spec.warps_n, "bn": 2 * spec.bn}),
        (
            "lanes_m",
            {
                "lanes_m": lanes_n,
                "bm": spec.bm * lanes_n // spec.lanes_m,
                "bn": spec.bn * spec.lanes_m // lanes_n,
            },
        ),
        (
            "warps",
            {
                "warps_m": spec.warps_n,
                "warps_n": spec.warps_m,
                "bm": spec.warps_n * spec.lanes_m * spec.tm,
                "bn": spec.warps_m * lanes_n * spec.tn,
            },
        ),
    ]
    for field, change in changes:
        try:
            other = dataclasses.replace(spec, **change)
        except (SpecError, TypeError):
            continue
        if other != spec:
            found.setdefault(field, []).append(other)
    return found


def source_of(spec: KernelSpec) -> str:
    """The generated source, whatever the kernel is called."""
    return render(spec).replace(spec.name, "NAME")


TILES = [s for s in SPECS.values() if isinstance(s, TileSpec)]


def test_what_changes_the_source_changes_the_name() -> None:
    varied: set[str] = set()
    for spec in (tile(), *TILES):
        own = source_of(spec)
        for field, others in variants(spec).items():
            for other in others:
                if source_of(other) != own:
                    varied.add(field)
                    assert other.name != spec.name, f"{field}: {spec} and {other}"
                assert other.canonical() != spec.canonical(), field
    assert varied >= {"bk", "stages", "layout", "tm", "warps_m", "lanes_m", "ctas_per_sm"}, varied


# -- derived formulas -------------------------------------------------------------------
@pytest.mark.parametrize("name", SPECS)
def test_formulas_read_problem_variables_only(name: str) -> None:
    spec = SPECS[name]
    known = {"M", "N", "K", "CHUNK", "CHUNKS", "ALIGN_A", "ALIGN_B", "SMS"}
    assert spec.requires.boolean and not spec.grid.boolean
    for formula in (spec.requires, spec.grid, spec.workspace):
        assert formula.variables() <= known
    for text, largest, limit in spec.index_bounds:
        assert text and largest.variables() <= known and limit == INDEX_MAX
    assert spec.threads % 32 == 0 and spec.shared_bytes >= 0


@pytest.mark.parametrize("name", SPECS)
def test_specs_run_on_an_architecture_that_has_room(name: str) -> None:
    spec = SPECS[name]
    oldest = json.loads(spec.canonical())["min_arch"]
    for arch in ARCHITECTURES.values():
        fits = spec.shared_bytes <= arch.shared_per_cta
        new_enough = arch.compute >= ARCHITECTURES[oldest].compute
        assert spec.runs_on(arch.name) == (fits and new_enough)
    assert spec.runs_on(oldest)


def test_formulas_of_a_tile() -> None:
    plain, split = tile(), tile(split="workspace")
    assert plain.grid == ceil_div(M, 128) * ceil_div(N, 128)
    assert split.grid == plain.grid * CHUNKS
    env = {"M": 129, "N": 128, "K": 77, "CHUNK": 32, "CHUNKS": 3, "ALIGN_A": 4, "ALIGN_B": 16}
    assert plain.grid.evaluate(env) == 2 and split.grid.evaluate(env) == 6
    assert split.workspace.evaluate(env) == 3 * 129 * 128 * 4
    assert plain.workspace.evaluate(env) == 0
    assert not plain.requires.evaluate(env), "one chain only"
    assert split.requires.evaluate(env) and plain.requires.evaluate({**env, "CHUNKS": 1})
    assert not split.requires.evaluate({**env, "ALIGN_B": 8}), "vector copies need 16 bytes"
    over = WORKSPACE_MAX // (3 * 128 * 4) + 1
    assert split.requires.evaluate({**env, "M": over - 1})
    assert not split.requires.evaluate({**env, "M": over}), "the workspace is capped"


def test_grids_are_bounded() -> None:
    wide = {"M": DIM_MAX, "N": DIM_MAX, "CHUNKS": 1, "ALIGN_A": 16, "ALIGN_B": 16}
    assert not tile().requires.evaluate(wide)
    walking = tile(persistent=True)
    assert walking.requires.evaluate(wide) and walking.grid.evaluate(wide) <= GRID_MAX


def test_a_route_needs_what_its_kernels_need() -> None:
    split = tile(split="workspace")
    route = Route((split, ReduceSpec()), K > 4, "reason")
    assert route.name == split.name and route.workspace == split.workspace
    env = {"M": 1 << 14, "N": 1 << 12, "CHUNKS": 1, "ALIGN_B": 16, "ALIGN_A": 16}
    assert route.requires.evaluate(env) and not route.requires.evaluate({**env, "CHUNKS": 2})
