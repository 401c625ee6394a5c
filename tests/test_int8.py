"""Products of 4-bit integers by wgmma, of operands that are unpacked first: on the CPU device."""

from __future__ import annotations

from dataclasses import replace

import int4_cases
import numpy as np
import pytest
from int4_cases import Case

import ptxgen
from ptxgen import int4
from ptxgen.errors import OptionError, SpecError
from ptxgen.expr import const
from ptxgen.interp.run.profile import Profiler
from ptxgen.numerics.int4 import BIASES, EPILOGUES
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.int8 import LINE, Int8Spec, PackedSpec, UnpackSpec, UnpackTurnedSpec, pitch
from ptxgen.tiles import TABLES

ROUTES = {
    route.name: route
    for key, table in TABLES.items()
    if key[0] == "int4"
    for route in table.routes
    if isinstance(route.main, Int8Spec)
}
every_route = pytest.mark.parametrize("name", sorted(ROUTES))
SIGNED = [name for name in sorted(ROUTES) if ROUTES[name].main.signed]
FIRST = [*{ROUTES[name].main: name for name in SIGNED}.values()]  # one of each signed product


class OneCluster(CpuDevice):
    """A device that starts one cluster of CTAs that wait, which has to walk over all tiles."""

    def __init__(self, symbol, ctas):
        super().__init__()
        self.symbol, self.ctas = symbol, ctas

    def launch(self, function, grid, block, stream, params, what):
        grid = (self.ctas, 1, 1) if function.symbol == self.symbol else grid
        super().launch(function, grid, block, stream, params, what)


def cases(name):
    """Beyond a cluster's tiles; a ring that goes round; whole tiles, which leave from registers;
    the least; an empty reduction. Operands lie anywhere.
    """
    spec, turn = ROUTES[name].main, sorted(ROUTES).index(name)
    bm, bn, bk = spec.bm, spec.bn, spec.bk
    shapes = [
        (bm * spec.cluster_m + 1, 66, bk + 2),
        (63, bn + 2, (spec.stages + 1) * bk + 6),
        (bm, bn + 64, 2 * bk),
        (70, 64, 34),
        (1, 2, 2),
        (17, 10, 0),
    ]
    lies = [(1, 16), (8, 1), (16, 8), (4, 2)]
    if isinstance(spec, PackedSpec):  # which the copy engine brings as it is
        lies = [(a, 16) for a, _ in lies]
    for i, shape in enumerate(shapes):
        whole = i in (2, 3)
        yield Case(
            *shape,
            epilogue=EPILOGUES[(turn + i) % (2 if whole else len(EPILOGUES))],
            bias=BIASES[(turn + i) // 2 % 2],
            with_c=("", "beside", "over")[(turn + i) % 3],
            align=lies[(turn + i) % len(lies)] if shape[2] else (16, 16),
            extra=0 if whole else (0, 4, 1)[i % 3],
            offset=0 if whole else i % 3,
        )
    yield Case(5, 64, 258, out="int32", kind=("low", "high")[turn % 2])
    yield Case(65, 6, 130, "silu", out="float32", with_c="beside")


@every_route
def test_bits(name):
    """One route of a product has all cases, the others have some."""
    device, found = CpuDevice(), list(cases(name))
    for case in found if name in FIRST else found[sorted(ROUTES).index(name) % 2 :: 3]:
        int4_cases.check(name, case, device)


@pytest.mark.parametrize("name", SIGNED)
def test_schedules_do_not_matter(name):
    """Warps at random, copies and products that land early: no race, nothing read unwritten."""
    spec = ROUTES[name].main
    b = 16 if isinstance(spec, PackedSpec) else 1
    case = Case(65, 66, spec.bk * (spec.stages + 2), "bias", align=(1, b))
    settings = {"seed": 5} if name in FIRST else {"early": True}
    int4_cases.check(name, case, CpuDevice(**settings))


@pytest.mark.parametrize("name", FIRST)
def test_clusters_walk_over_tiles(name):
    """Of two bands, the last of which is not full."""
    spec = ROUTES[name].main
    shape = spec.bm * spec.cluster_m + 64, spec.bn * spec.cluster_n + 66, 130
    case = Case(*shape, "relu", with_c="over")
    int4_cases.check(name, case, OneCluster(spec.name, spec.ctas))


@pytest.mark.parametrize("name", SIGNED)
def test_shared_memory_is_used_without_bank_conflicts(name):
    (first, main), observer = ROUTES[name].kernels, Profiler()
    b = (LINE, LINE // 2)  # both layouts
    with ptxgen.use_device(CpuDevice(observer=observer)):
        int4.gemm(np.zeros((17, LINE // 2), np.uint8), np.zeros(b, np.uint8),
                  layout=int4_cases.served(name)[1], kernel=name)  # fmt: skip
    found = {k.name: [s for s in k.sites if s.space == "shared"] for k in observer.kernels({})}
    assert bool(found[first.name]) == isinstance(first, UnpackTurnedSpec)
    matrices = [s for s in found[main.name] if s.name.startswith("ldmatrix")]
    assert bool(matrices) == isinstance(main, PackedSpec)
    assert [s for s in (*found[first.name], *matrices) if s.excess] == []


def test_a_route_serves_its_own_layout():
    """Its product reads bytes, and does not know how they were stored."""
    name = next(n for n in SIGNED if n.startswith("unpack_turned"))
    square = np.zeros((64, 32), np.uint8)
    with ptxgen.use_device("cpu"), pytest.raises(OptionError, match="it serves int4 rrr s4"):
        int4.gemm(square, square, kernel=name)


def test_what_the_product_is_told_of_the_copies():
    for route in ROUTES.values():
        first, second = route.steps
        for sizes in ({"M": 3, "N": 34, "K": 130}, {"M": 1, "N": 2, "K": 128}):
            for rows, x in zip("MN", "ab", strict=True):
                if second.bound(x) == x:  # read as it is
                    assert x == "b" and isinstance(route.main, PackedSpec)
                    assert f"LD{x.upper()}" not in second.given
                    continue
                told = second.given[f"LD{x.upper()}"].evaluate(sizes)
                assert told % LINE == 0 <= told - sizes["K"] < LINE
                assert route.scratch[second.bound(x)].evaluate(sizes) == sizes[rows] * told
                assert second.bound(x) in first.scratch()
    assert pitch(const(0)).evaluate({}) == LINE  # the copy engine takes no rows without a distance


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "s8"}, "dtype: s8"),
        ({"min_arch": "sm_100"}, "min_arch: sm_100"),
        ({"bn": 96}, "bn is a multiple of 64 up to 256: 96"),
        ({"bk": 64}, "bk is a multiple of 128: 64"),
        ({"bm": 192}, "64 [*] consumers divides bm: 128 vs 192"),
        ({"stages": 5}, "shared memory on sm_90, bytes"),
        ({"registers": 0}, "registers per thread"),
        ({"raster": 0}, "raster: 0 vs >= 1"),
    ],
)
def test_illegal_products_do_not_exist(change, message):
    spec = Int8Spec(128, 256, 128, 2, 4, registers=232)
    with pytest.raises(SpecError, match=message):
        replace(spec, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": "nt"}, "layout: nt"),
        ({"bk": 256}, "bk: 256"),
        ({"cluster_m": 2}, "cluster_m: 2"),
        ({"bm": 24}, "bm is a multiple of 16 up to 256: 24"),
        ({"bn": 256}, "128 columns a consumer: 256 vs 128"),
        ({"stages": 5}, "shared memory on sm_90, bytes"),
        ({"registers": 0}, "registers per thread"),
    ],
)
def test_illegal_products_of_a_packed_b_do_not_exist(change, message):
    spec = PackedSpec(128, 128, 128, 1, 4, ctas_per_sm=2, registers=208)
    with pytest.raises(SpecError, match=message):
        replace(spec, **change)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UnpackSpec("s8"), "dtype: s8"),
        (lambda: UnpackSpec(cta_threads=48), "whole warps: 48"),
        (lambda: UnpackSpec(turns=0), "turns: 0"),
        (lambda: UnpackSpec(operands="b"), "operands: b"),
        (lambda: UnpackTurnedSpec(operands="a"), "both operands, in order: a"),
        (lambda: UnpackTurnedSpec(apart=True), "both operands, in order"),
        (lambda: UnpackTurnedSpec(cta_threads=128), "threads of a tile: 128 vs 256"),
    ],
)
def test_illegal_copies_do_not_exist(make, message):
    with pytest.raises(SpecError, match=message):
        make()
