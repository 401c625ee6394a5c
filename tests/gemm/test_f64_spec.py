"""Specs of the f64 family: illegal ones cannot exist, and what is derived fits together."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from ptxgen.errors import SpecError
from ptxgen.expr import Expr
from ptxgen.numerics.contract import CHAIN, FMA64, FMA64_CHUNKS, Plan
from ptxgen.spec import ARCHITECTURES, LAYOUTS
from ptxgen.spec.f64 import F64_SPLITS, UNITS, F64ReduceSpec, F64Spec
from ptxgen.tiles import f64

Key = tuple[str, str, str, str]

BASE: dict[str, Any] = {
    "layout": "NN",
    "bm": 64,
    "bn": 64,
    "bk": 32,
    "warps_m": 2,
    "warps_n": 2,
    "stages": 3,
}
FMA: dict[str, Any] = {"unit": "fma", "mma_k": 1}
CLUSTER: dict[str, Any] = {"split": "cluster", "cluster": 4}


def tile(**changes: Any) -> F64Spec:
    return F64Spec(**{**BASE, **changes})


# What breaks, and both sides as they must appear in the message.
VIOLATIONS: list[tuple[dict[str, Any], object, object]] = [
    ({"layout": "XX"}, "XX", LAYOUTS),
    ({"unit": "sfu"}, "sfu", UNITS),
    ({"split": "half"}, "half", F64_SPLITS),
    ({"align_a": 4}, 4, (8, 16)),
    ({"align_b": 32}, 32, (8, 16)),
    ({"lanes_m": 2}, 2, (4, 8)),
    ({"bm": 0}, 0, ">= 1"),
    ({"stages": 1}, 1, ">= 2"),
    ({"bk": 24}, 16, 24),
    ({"mma_k": 2}, 2, (4, 8, 16)),
    ({"mma_k": 8, "unit": "fma"}, 8, (1,)),
    ({"prefetch": 4}, 4, "0 .. 3"),
    ({"mma_k": 16, "prefetch": 2}, 64, 32),
    ({"bm": 48}, 32, 48),
    ({"bn": 48}, 32, 48),
    ({"bm": 16, "warps_m": 1, "unit": "fma", "mma_k": 1, "bn": 24}, 16, 24),
    ({"cluster": 2}, 2, "none"),
    ({"split": "cluster"}, 1, "cluster"),
    ({"split": "cluster", "cluster": 16}, 16, "<= 8"),
    ({"split": "cluster", "cluster": 6}, 6, 64),
    ({**CLUSTER, **FMA}, "fma", ("mma",)),
    ({**CLUSTER, "persistent": True}, "cluster", "none, onto, serial"),
    ({"warps_m": 1, "bm": 16, "warps_n": 1, "bn": 128}, 64, 32),
    ({"bm": 1024, "warps_m": 32}, 2048, 1024),
    ({"bm": 128, "bn": 128}, 2 * (128 + 2 * 2 * (8 + 8)), 255),
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
    used = 6 * tile().stage
    tile(stages=6)
    with pytest.raises(SpecError, match=rf"shared memory on sm_80, bytes: {used} vs {limit}$"):
        tile(stages=6, **FMA)


def test_shared_memory_holds_the_exchanged_tile() -> None:
    small = tile(bk=16, stages=2, **CLUSTER)
    assert small.shared_bytes == 64 * (64 + 2) * 8 > 2 * small.stage
    assert tile(bk=16, stages=2).shared_bytes == 2 * small.stage


# A field, a value unlike the base's, and what else it takes.
CHANGES: list[dict[str, Any]] = [
    {"layout": "TT"},
    {"bm": 128},
    {"bn": 128},
    {"bk": 16},
    {"warps_m": 1},
    {"warps_n": 4},
    {"stages": 2},
    FMA,
    {**FMA, "lanes_m": 4},
    {"align_a": 8},
    {"align_b": 8},
    {"split": "serial"},
    CLUSTER,
    {"split": "cluster", "cluster": 2},
    {"split": "workspace"},
    {"persistent": True},
    {"mma_k": 4},
    {"prefetch": 0},
    {"ctas_per_sm": 2},
    {"raster": 4},
]


def test_every_field_is_in_the_name() -> None:
    changed = [tile(**change) for change in CHANGES]
    assert len({tile().name, *(kernel.name for kernel in changed)}) == len(changed) + 1
    named = {name for change in CHANGES for name in change}
    fields = {field.name for field in dataclasses.fields(F64Spec)}
    assert fields - named == {"contract"}


def test_tensor_cores_multiply_only_where_their_bits_were_measured() -> None:
    assert [arch for arch in ARCHITECTURES if tile().runs_on(arch)] == ["sm_90"]
    assert tile(**FMA).runs_on("sm_80")
    assert tile(**FMA).runs_on("sm_120")
    assert not tile(**FMA, stages=4).runs_on("sm_89")


def _holds(predicate: Expr, **values: int) -> bool:
    shape = {"M": 1, "N": 1, "K": 1, "CHUNK": 1, "CHUNKS": 1, "ALIGN_A": 8, "ALIGN_B": 8, "SMS": 1}
    return bool(predicate.evaluate({**shape, **values}))


def test_requires() -> None:
    off: dict[str, Any] = {"align_a": 8, "align_b": 8}
    vectors, elements = tile().requires, tile(**off).requires
    assert _holds(elements)
    assert not _holds(vectors, ALIGN_A=16)
    assert not _holds(vectors, ALIGN_B=16)
    assert _holds(vectors, ALIGN_A=16, ALIGN_B=16)
    assert _holds(tile(align_a=8).requires, ALIGN_B=16)
    assert not _holds(tile(align_a=8).requires, ALIGN_A=16)
    assert not _holds(elements, K=2, CHUNKS=2)
    assert _holds(tile(**off, split="serial").requires, K=2, CHUNKS=2)
    assert _holds(tile(**off, **CLUSTER).requires, K=4, CHUNKS=4)
    assert not _holds(tile(**off, **CLUSTER).requires, K=5, CHUNKS=5)
    most = (1 << 31) - 1
    assert not _holds(elements, M=most, N=most)
    assert _holds(tile(**off, persistent=True).requires, M=most, N=most)


def test_grids() -> None:
    shape = {"M": 65, "N": 129, "K": 64, "CHUNK": 32, "CHUNKS": 2, "SMS": 1}
    assert tile().grid.evaluate(shape) == 2 * 3
    assert tile(**CLUSTER).grid.evaluate(shape) == 2 * 3 * 4
    assert tile(split="workspace").grid.evaluate(shape) == 2 * 3 * 2
    assert tile(split="workspace").scratch["workspace"].evaluate(shape) == 2 * 65 * 129 * 8


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("extent", [32, 64])
def test_rows_of_a_stage_are_whole_lines(layout: str, extent: int) -> None:
    """Rows of a stage fill whole 128-byte lines, as the swizzle of 32-byte pieces assumes."""
    kernel = tile(layout=layout, bm=extent, bn=extent)
    assert kernel.side("a").pitch % 128 == kernel.side("b").pitch % 128 == 0


# -- tables ------------------------------------------------------------------------------
def _first(key: Key, arch: str, plan: Plan, **values: int) -> F64Spec | None:
    """The first kernel of a route that serves a problem."""
    env = plan.environment({"ALIGN_A": 16, "ALIGN_B": 16, "SMS": 132, **values})
    for route in f64.ROUTES[key]:
        if all(kernel.runs_on(arch) for kernel in route.kernels) and route.requires.evaluate(env):
            return route.kernels[0]
    return None


def _plan(key: Key) -> Plan:
    return {"chunks": FMA64_CHUNKS, "chain": CHAIN}[key[1]]


@pytest.mark.parametrize("key", f64.ROUTES, ids="-".join)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("align", [8, 16])
def test_every_problem_has_a_route(key: Key, arch: str, align: int) -> None:
    most = (1 << 31) - 1
    for m in (1, 16, 17, 300, 4096, most):
        for n in (1, 2048, 2049, most):
            for k in (1, 2047, 2048, most):
                shape = {"M": m, "N": n, "K": k, "ALIGN_A": align, "ALIGN_B": align}
                kernel = _first(key, arch, _plan(key), **shape)
                assert kernel is not None, shape
                assert arch == "sm_90" or kernel.unit == "fma", shape


def test_the_kernels_have_names_of_their_own() -> None:
    kernels = {k for routes in f64.ROUTES.values() for r in routes for k in r.kernels}
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    assert {kernel.contract for kernel in kernels} == {FMA64}


@pytest.mark.parametrize(("k", "chunk"), [(2047, 2047), (2048, 512), (2049, 528), (65536, 16384)])
def test_chunks(k: int, chunk: int) -> None:
    """Reductions have at most as many chunks as a cluster has CTAs."""
    assert FMA64_CHUNKS.chunk_length(k) == chunk
    assert FMA64_CHUNKS.chunks(k) <= f64.CLUSTER


@pytest.mark.parametrize("batch", [0, -1])
def test_a_reduce_kernel_loads_something(batch: int) -> None:
    with pytest.raises(SpecError, match=f"chunks_in_flight: {batch} vs >= 1$"):
        F64ReduceSpec(chunks_in_flight=batch)
    with pytest.raises(SpecError, match=r"whole warps: 48 vs 32$"):
        F64ReduceSpec(cta_threads=48)
