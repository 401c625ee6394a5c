"""Specs: illegal ones cannot exist, names say what the kernel is, and nothing else does."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from loops import for_each

from ptxgen.build.render import render
from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, ceil_div, const
from ptxgen.numerics.contract import FMA, FMA_CHUNKS, ITEMSIZE, TC16
from ptxgen.numerics.formats import FORMATS
from ptxgen.spec import (
    ARCHITECTURES,
    CHUNKS,
    DIM_MAX,
    GRID_MAX,
    INDEX_MAX,
    LAYOUTS,
    WORKSPACE_MAX,
    Abi,
    K,
    KernelSpec,
    M,
    N,
    Param,
    Route,
    RouteTable,
    Step,
    ptr,
)
from ptxgen.spec.abi import MapBox
from ptxgen.spec.attention import WarpSpecialisedSpec
from ptxgen.spec.conv import ConvGatherSpec
from ptxgen.spec.gemm import space
from ptxgen.spec.mma import MmaSpec
from ptxgen.spec.simt import SPLITS, ReduceSpec, SimtSpec
from ptxgen.spec.wgmma import COORDINATE_MAX, WgmmaSpec
from ptxgen.tiles import SPECS, TABLES, named

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


def tile(**changes: Any) -> SimtSpec:
    return SimtSpec(**{**BASE, **changes})


def rebuilt(spec: KernelSpec) -> KernelSpec:
    """A spec from its canonical text alone."""
    fields = json.loads(spec.canonical())
    kinds = {type(kernel).__name__: type(kernel) for kernel in SPECS.values()}
    contracts = {str(kernel.contract): kernel.contract for kernel in SPECS.values()}
    if "contract" in fields:
        fields["contract"] = contracts[fields["contract"]]
    if "format" in fields:
        fields["format"] = {str(row): row for row in FORMATS.values()}[fields["format"]]
    if "form" in fields:
        forms = {
            str(kernel.form): kernel.form for kernel in SPECS.values() if hasattr(kernel, "form")
        }
        fields["form"] = forms[fields["form"]]
    return kinds[fields.pop("kind")](**fields)


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
    ({"dtype": "f64"}, "f64", ["f32", "bf16", "f16"]),
    ({"copy_b": "packed"}, "f32", ["bf16", "f16"]),
    ({"dtype": "bf16", "copy_a": "kvector", "bk": 8}, 8, 16),
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
    with pytest.raises(SpecError, match="dtype: f64 vs "):
        ReduceSpec(dtype="f64")
    with pytest.raises(SpecError, match="outputs of a thread: 3 vs "):
        ReduceSpec(outputs_per_thread=3)
    with pytest.raises(SpecError, match="chunks_in_flight: 0 vs "):
        ReduceSpec(chunks_in_flight=0)


def test_a_reduce_kernel_is_of_one_dtype_and_contract() -> None:
    each = [ReduceSpec(dtype=d, contract=c) for d in ("f32", "bf16", "f16") for c in (FMA, TC16)]
    assert len({spec.name for spec in each}) == len({render(spec) for spec in each}) == len(each)


# dtype, copies of A (k-contiguous) and B (not), the alignment that they need, and the bytes that
# their elements take in shared memory.
NEEDS = [
    ("f32", "transpose", "scalar", (4, 4), (4, 4)),
    ("f32", "staged", "vector", (16, 16), (4, 4)),
    ("bf16", "transpose", "scalar", (2, 2), (4, 4)),
    ("bf16", "staged", "packed", (8, 8), (4, 4)),
    ("f16", "staged", "vector", (8, 16), (4, 2)),
    ("f16", "kvector", "vector", (16, 16), (2, 2)),
]


@pytest.mark.parametrize(("dtype", "copy_a", "copy_b", "aligned", "sizes"), NEEDS)
def test_copies_need_alignment_and_room(
    dtype: str, copy_a: str, copy_b: str, aligned: tuple[int, int], sizes: tuple[int, int]
) -> None:
    small = {"bm": 32, "bn": 64, "tm": 4, "tn": 4, "warps_m": 2, "bk": 32}
    spec = tile(**small, copy_a=copy_a, copy_b=copy_b, dtype=dtype)
    env = {"M": 100, "N": 100, "K": 100, "CHUNKS": 1}
    env |= {"ALIGN_A": aligned[0], "ALIGN_B": aligned[1]}
    assert spec.requires.evaluate(env)
    for name, least in (("ALIGN_A", aligned[0]), ("ALIGN_B", aligned[1])):
        if least > ITEMSIZE[dtype]:
            assert not spec.requires.evaluate({**env, name: least // 2})
    assert (spec.size("a"), spec.size("b")) == sizes
    rows = 32  # of both stages, whichever way they lie
    for x, size in zip("ab", sizes, strict=True):
        assert 4 * spec.floats(x) == rows * spec.pitch(x) * size


def test_routes_are_checked() -> None:
    reduce = ReduceSpec()
    with pytest.raises(SpecError, match="launches: 0 vs >= 1"):
        Route((), TRUE, "none")
    with pytest.raises(SpecError, match=r"prefer is a predicate: M \+ 1 vs boolean"):
        Route((reduce,), M + 1, "not a predicate")
    with pytest.raises(SpecError, match=r"parameters that bind names: \['x'\] vs none"):
        Step(reduce, {"x": "c"})
    split = tile(split="workspace")
    two = Route((split, Step(reduce, {"workspace": "other"})), TRUE, "two scratch memories")
    assert two.scratch == {
        "workspace": split.scratch["workspace"], "other": reduce.scratch["workspace"],
    }  # fmt: skip
    assert Route((split, split, reduce), TRUE, "three").kernels == (split, split, reduce)


# -- identity ---------------------------------------------------------------------------
def test_names_are_unique() -> None:
    kernels = [k for table in TABLES.values() for k in table.kernels()]
    by_name: dict[str, KernelSpec] = {}
    for kernel in kernels:
        assert by_name.setdefault(kernel.name, kernel) == kernel, kernel.name
    assert by_name == SPECS
    assert len({k.canonical() for k in SPECS.values()}) == len(SPECS)


def test_names_are_symbols() -> None:
    for name in SPECS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name


def test_names_and_canonical_texts_are_stable() -> None:
    """Names and canonical texts are the same in fresh processes with other hash seeds."""
    code = "from ptxgen.tiles import SPECS\nfor s in SPECS.values(): print(s.name, s.canonical())"
    expected = [f"{s.name} {s.canonical()}" for s in SPECS.values()]
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert run.stdout.splitlines() == expected


@for_each("name", SPECS)
def test_canonical_text_round_trips(name: str) -> None:
    spec = SPECS[name]
    again = rebuilt(spec)
    assert again == spec and again.name == spec.name and again.canonical() == spec.canonical()
    fields = json.loads(spec.canonical())
    said = (f.name for f in dataclasses.fields(spec) if getattr(spec, f.name) is not None)
    assert set(fields) == {"kind", *said}


# Other values of every field; most are illegal for most specs, which is no matter.
ALTERNATIVES: dict[str, list[Any]] = {
    "bk": [8, 16, 32, 64],
    "stages": [2, 3, 4, 5],
    "copy_a": ["scalar", "vector", "transpose", "kvector", "staged", "packed", "words", "plain"],
    "copy_b": ["scalar", "vector", "transpose", "kvector", "staged", "packed", "words", "plain"],
    "slices": [1, 2, 4, 8],
    "split": ["none", "slices", "workspace", "cluster"],
    "persistent": [False, True],
    "ctas_per_sm": [1, 2, 3],
    "raster": [0, 4, 8, 16],
    "fma_order": ["rows", "columns", "cols"],
    "dtype": ["f32", "bf16", "f16"],
    "swap_operands": [False, True],
    "producer_warps": [0, 2, 4],
    "prefetch": [1, 2, 3],
    "streamed": ["", "a", "b", "ab"],
    "consumers": [1, 2, 3],
    "cluster_m": [1, 2, 4],
    "cluster_n": [1, 2, 4],
    "registers": [0, 232, 240],
}
Gemm = SimtSpec | MmaSpec | WgmmaSpec


def variants(spec: Gemm) -> dict[str, list[Gemm]]:
    """The legal specs that differ from ``spec`` in one field (tile sizes: with what they imply)."""
    found: dict[str, list[Gemm]] = {}
    changes: list[tuple[str, dict[str, Any]]] = [
        (field, {field: value})
        for field, values in ALTERNATIVES.items()
        if hasattr(spec, field)
        for value in values
    ]
    for field, change in changes + (
        changes_of_a_tile(spec) if isinstance(spec, SimtSpec) else changes_of_tensor_cores(spec)
    ):
        try:
            other = dataclasses.replace(spec, **change)
        except (SpecError, TypeError):
            continue
        if other != spec:
            found.setdefault(field, []).append(other)
    return found


def changes_of_tensor_cores(spec: MmaSpec | WgmmaSpec) -> list[tuple[str, dict[str, Any]]]:
    changes: list[tuple[str, dict[str, Any]]] = [("layout", {"layout": x}) for x in LAYOUTS]
    changes += [
        *(("bm", {"bm": m}) for m in (spec.bm // 2, 2 * spec.bm)),
        *(("bn", {"bn": n}) for n in (spec.bn // 2, 2 * spec.bn)),
        ("bm/bn", {"bm": spec.bn, "bn": spec.bm}),
    ]
    if isinstance(spec, MmaSpec):
        m, n = spec.warps_m, spec.warps_n
        changes += [
            ("warps_m", {"warps_m": 2 * m}),
            ("warps_n", {"warps_n": 2 * n}),
            ("warps", {"warps_m": n, "warps_n": m}),
        ]
    else:
        rows = spec.bm // spec.consumers
        changes += [("consumers", {"consumers": c, "bm": c * rows}) for c in (1, 2, 3)]
    return changes


def changes_of_a_tile(spec: SimtSpec) -> list[tuple[str, dict[str, Any]]]:
    changes: list[tuple[str, dict[str, Any]]] = []
    lanes_n = 32 // spec.lanes_m
    for layout in LAYOUTS:
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
    return changes


def source_of(spec: KernelSpec) -> str:
    """The generated source, whatever the kernel is called."""
    return render(spec).replace(spec.name, "NAME")


def of_kind(kind: type[Gemm]) -> list[Gemm]:
    """The kernels of a family; where there is one for bf16 and one for f16, that for bf16."""
    return [s for s in SPECS.values() if isinstance(s, kind) and s.dtype != "f16"]


@pytest.mark.parametrize(
    ("specs", "must_vary"),
    [
        (
            [tile(), *of_kind(SimtSpec)],
            {"bk", "stages", "layout", "tm", "warps_m", "lanes_m", "ctas_per_sm", "dtype"},
        ),
        (
            of_kind(MmaSpec),
            {
                "bm",
                "bn",
                "bk",
                "stages",
                "layout",
                "warps_m",
                "swap_operands",
                "split",
                "persistent",
            }
            | {"raster", "producer_warps", "prefetch", "streamed", "copy_a", "copy_b", "dtype"},
        ),
        (
            of_kind(WgmmaSpec),
            {"bm/bn", "bn", "stages", "layout", "split", "registers", "raster", "dtype"}
            | {"consumers", "cluster_m", "cluster_n"},
        ),
    ],
    ids=["simt", "mma", "wgmma"],
)
def test_what_changes_the_source_changes_the_name(
    specs: list[Gemm], must_vary: set[str], request: pytest.FixtureRequest
) -> None:
    """Changes of every third kernel; of all in long tests."""
    varied: set[str] = set()
    for spec in specs if request.config.getoption("--long") else specs[::3]:
        own = source_of(spec)
        for field, others in variants(spec).items():
            for other in others:
                if source_of(other) != own:
                    varied.add(field)
                    assert other.name != spec.name, f"{field}: {spec} and {other}"
                assert other.canonical() != spec.canonical(), field
    assert varied >= must_vary, varied


# -- derived formulas -------------------------------------------------------------------
@functools.cache
def told() -> dict[str, frozenset[str]]:
    """Returns the names that each kernel may read: its tables' variables, and those its steps
    define.
    """
    found: dict[str, frozenset[str]] = {}
    for table in TABLES.values():
        for dtype in table.dtypes:
            for step in (step for route in table.routes for step in route.of(dtype).steps):
                names = table.space.names.union(step.given)
                found[step.kernel.name] = found.get(step.kernel.name, names) & names
    return found


@for_each("name", SPECS)
def test_formulas_read_problem_variables_only(name: str) -> None:
    spec, known = SPECS[name], told()[name]
    assert spec.requires.boolean and not spec.grid.boolean
    for formula in (spec.requires, spec.grid, *spec.scratch.values()):
        assert formula.variables() <= known
    # Indices are unsigned; those that a tensor map takes, for M, N and K, are signed, and so are
    # the accumulators of integers, and where windows lie.
    gathers = isinstance(spec, ConvGatherSpec)
    signed = spec.abi.maps or spec.contract.accumulator == "s32" or gathers
    limits = {INDEX_MAX, COORDINATE_MAX} if signed else {INDEX_MAX}
    for text, largest, limit in spec.index_bounds:
        assert text and largest.variables() <= known and limit in limits
    assert spec.threads % 32 == 0 and spec.shared_bytes >= 0


@for_each("name", SPECS)
def test_specs_run_on_an_architecture_that_has_room(name: str) -> None:
    spec = SPECS[name]
    oldest = spec.min_arch
    for arch in ARCHITECTURES.values():
        fits = spec.shared_bytes <= arch.shared_per_cta
        new_enough = arch.compute >= ARCHITECTURES[oldest].compute
        # Of wgmma no other architecture has the instructions; of f64 mma, the shapes or the speed.
        only_there = (
            spec.family in ("wgmma", "int4_packed")
            or isinstance(spec, WarpSpecialisedSpec)
            or getattr(spec, "multiplier", "") in ("wgmma", "mma64")
            or getattr(spec, "unit", "") == "mma"
        )
        assert spec.runs_on(arch.name) == (
            arch.name == oldest if only_there else fits and new_enough
        )
    assert spec.runs_on(oldest)


def test_formulas_of_a_tile() -> None:
    plain, split = tile(), tile(split="workspace")
    assert plain.grid == ceil_div(M, 128) * ceil_div(N, 128)
    assert split.grid == plain.grid * CHUNKS
    env = {"M": 129, "N": 128, "K": 77, "CHUNK": 32, "CHUNKS": 3, "ALIGN_A": 4, "ALIGN_B": 16}
    assert plain.grid.evaluate(env) == 2 and split.grid.evaluate(env) == 6
    assert split.scratch["workspace"].evaluate(env) == 3 * 129 * 128 * 4
    assert not plain.scratch
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
    assert route.name == split.name and route.scratch == split.scratch
    env = {"M": 1 << 14, "N": 1 << 12, "CHUNKS": 1, "ALIGN_B": 16, "ALIGN_A": 16}
    assert route.requires.evaluate(env) and not route.requires.evaluate({**env, "CHUNKS": 2})


def test_a_step_says_what_variables_are_for_its_kernel() -> None:
    kernel = tile(split="workspace")
    step = Step(kernel, {"b": "copy"}, {"ALIGN_B": const(16), "LDB": N + 7, "M": K})
    env = {"M": 1, "N": 128, "K": 129, "CHUNKS": 3, "ALIGN_A": 16, "ALIGN_B": 4}
    assert not kernel.requires.evaluate(env) and step.requires.evaluate(env)
    for here, own in (
        (step.grid, kernel.grid),
        (step.scratch()["workspace"], kernel.scratch["workspace"]),
    ):
        assert here.evaluate(env) == own.evaluate({**env, "M": 129}) > own.evaluate(env)
    bounds = [value for _, value, _ in step.index_bounds]
    assert bounds == [value.substitute({"M": K}) for _, value, _ in kernel.index_bounds]
    values = {"n": 3, "k": 9, "m": 1, "ldb": 3, "amount": 0.5}
    assert step.parameters(values) == {**values, "m": 9, "ldb": 10, "align_b": 16}
    routes = tuple(Route((each,), TRUE, "") for each in (kernel, step))
    with pytest.raises(SpecError, match="one name, other steps"):
        _ = RouteTable(space(FMA_CHUNKS), routes).named


def test_pointers_come_first() -> None:
    with pytest.raises(SpecError, match="pointers come first"):
        Abi((Param("n", "u32"), ptr("x", "float*")))


def test_tensor_maps_come_last() -> None:
    box = MapBox("x", (N, M), (N,), 4, (32, 8))
    there = ptr("x", "float*"), Param("map_x", "map", "TensorMap", box), Param("by", "f32")
    with pytest.raises(SpecError, match="tensor maps come last"):
        Abi(there)
    assert Abi((there[0], there[2], there[1])).offsets["map_x"] == 64


def test_boxes_have_up_to_five_dimensions() -> None:
    five = MapBox("x", (N, M, M, M, M), (N,) * 4, 4, (32, 8), steps=(1, 2, 2, 1, 1))
    assert len(five.size) == 5
    for wrong in ({"size": (N,) * 6}, {"pitches": (N,)}, {"box": (1,) * 6}, {"steps": (1, 2)}):
        with pytest.raises(SpecError, match=r"map of x: .*; takes 2 to 5 sizes"):
            dataclasses.replace(five, **wrong)


def test_two_kernels_of_one_name_are_refused() -> None:
    kernel = tile()
    assert named([kernel, tile()], {}) == {kernel.name: kernel}
    other = dataclasses.replace(kernel, min_arch="sm_90")
    assert other.name != kernel.name, "the digest is of all fields"
    vars(other)["name"] = kernel.name  # as if their digests were the same
    for kernels, known in (([kernel, other], {}), ([other], {kernel.name: kernel})):
        with pytest.raises(SpecError, match=f"two kernels are named {kernel.name}: "):
            named(kernels, known)


def test_a_twin_is_alike_but_for_what_it_reads() -> None:
    half = tile(dtype="bf16")
    route = Route(
        (dataclasses.replace(half, split="workspace"), ReduceSpec(dtype="bf16")), TRUE, ""
    )
    twin = route.of("f16")
    assert [k.dtype for k in twin.kernels] == ["f16", "f16"]
    assert (twin.prefer, twin.reason, twin.scratch) == (route.prefer, route.reason, route.scratch)
    assert twin.of("bf16") == route and route.of("bf16") == route
    assert {k.name for k in twin.kernels}.isdisjoint(k.name for k in route.kernels)
