"""Products of 4-bit integers by wgmma, of an A that is unpacked first: on the CPU device."""

from __future__ import annotations

from dataclasses import replace

import int4_cases
import numpy as np
import pytest
from int4_cases import Case
from steps import problem

import ptxgen
from ptxgen import int4
from ptxgen.errors import OptionError, SpecError
from ptxgen.expr import const
from ptxgen.interp.run.profile import Profiler
from ptxgen.numerics.int4 import BIASES, EPILOGUES
from ptxgen.runtime.arrays import ArrayView
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.int4_packed import LINE, PackedSpec, UnpackSpec, pitch
from ptxgen.tiles import TABLES

ROUTES = {
    route.name: route
    for key, table in TABLES.items()
    if key[0] == "int4"
    for route in table.routes
    if isinstance(route.main, PackedSpec)
}
every_route = pytest.mark.parametrize("name", sorted(ROUTES))
SIGNED = [name for name in sorted(ROUTES) if ROUTES[name].main.signed]
FIRST = [name for name in SIGNED if ROUTES[name].main.bm == 96]  # one of each layout


class OneCta(CpuDevice):
    """A device that starts one CTA of kernels that wait, which has to walk over all tiles."""

    def __init__(self, symbol):
        super().__init__()
        self.symbol = symbol

    def launch(self, function, grid, block, stream, params, what):
        grid = (1, 1, 1) if function.symbol == self.symbol else grid
        super().launch(function, grid, block, stream, params, what)


def cases(name):
    """Beyond a tile; short of it, with a ring that goes round; whole tiles; the least; an empty
    reduction; the extremes. A lies anywhere.
    """
    spec, turn = ROUTES[name].main, sorted(ROUTES).index(name)
    bm, bn, bk = spec.bm, spec.bn, spec.bk
    shapes = [
        (bm + 1, bn + 2, bk + 2),
        (bm - 1, bn - 2, (spec.stages + 1) * bk + 38),
        (bm, bn, 2 * bk),
        (1, 2, 2),
        (17, 10, 0),
    ]
    for i, shape in enumerate(shapes):
        yield Case(
            *shape,
            epilogue=EPILOGUES[(turn + i) % len(EPILOGUES)],
            bias=BIASES[(turn + i) // 2 % 2],
            with_c=("", "beside", "over")[(turn + i) % 3],
            align=((1, 8, 16, 4)[(turn + i) % 4], 16) if shape[2] else (16, 16),
            extra=(0, 4, 1)[i % 3],
            offset=i % 3,
        )
    yield Case(5, 64, 258, out="int32", kind=("low", "high")[turn % 2])
    yield Case(65, 6, 130, "silu", out="float32", with_c="beside")
    yield Case(bm + 1, bn + 40, 70)  # results that are packed as they lie


@every_route
def test_bits(name):
    """Every kernel has the oracle's bits: the first of each layout on all cases, the others on
    some.
    """
    device, found = CpuDevice(), list(cases(name))
    for case in found if name in FIRST else found[sorted(ROUTES).index(name) % 3 :: 3]:
        int4_cases.check(name, case, device)


@pytest.mark.parametrize("name", FIRST)
def test_schedules_do_not_matter(name):
    """Warps at random, copies and products that land early: no race, nothing read unwritten."""
    spec = ROUTES[name].main
    case = Case(65, 66, spec.bk * (spec.stages + 2), "bias", align=(1, 16))
    for settings in ({"seed": 5}, {"early": True}):
        int4_cases.check(name, case, CpuDevice(**settings))


@pytest.mark.parametrize("name", FIRST)
def test_operands_of_the_copy_engine_are_refused_off_16_bytes(name):
    for align in (8, 4, 2, 1):
        with pytest.raises(OptionError, match="it requires 16 <= ALIGN_B"):
            int4_cases.check(name, Case(5, 64, 256, align=(1, align)), CpuDevice())


@pytest.mark.parametrize("name", FIRST)
def test_ctas_walk_over_tiles(name):
    spec = ROUTES[name].main
    case = Case(spec.bm + 1, spec.bn + 2, spec.bk * (spec.stages - 1), "relu", with_c="over")
    int4_cases.check(name, case, OneCta(spec.name))


@pytest.mark.parametrize("name", SIGNED)
def test_shared_memory_is_used_without_bank_conflicts(name):
    observer = Profiler()
    b = (LINE, LINE // 2)  # both layouts
    with ptxgen.use_device(CpuDevice(observer=observer)):
        int4.gemm(np.zeros((17, LINE // 2), np.uint8), np.zeros(b, np.uint8),
                  layout=int4_cases.served(name)[1], kernel=name, out_dtype="int32")  # fmt: skip
    kernels = observer.kernels({})
    sites = [s for k in kernels for s in k.sites if s.space == "shared"]
    assert {s.name.partition(".")[0] for s in sites} >= {"ldmatrix", "st", "ld"}
    assert [s for s in sites if s.excess] == []


@pytest.mark.parametrize("layout", ["rcr", "rrr"])
def test_an_empty_operand_may_start_anywhere(layout):
    """The copy engine is told its address, and takes no odd one; other kernels are told nothing."""
    whole = np.zeros((64, 33), np.uint8)
    a, b = whole[:5, 1:1], whole[:, 1:1] if layout == "rcr" else whole[:0, 1:33]
    view = ArrayView(0x1001, b.shape, (33, 1), "uint8", "cuda", 0, False, "torch", None)
    views = {"a": replace(view, shape=a.shape), "b": view}
    for low, align in ((0x1001, 1), (0x1010, 16)):
        seen = {x: replace(v, ptr=low) for x, v in views.items()}
        found = dict(problem("int4_gemm", seen, layout=layout).values)
        assert (found["ALIGN_A"], found["ALIGN_B"]) == (align, align)


def test_what_the_product_is_told_of_the_copy():
    for route in ROUTES.values():
        *copying, first, second = route.steps
        assert first.kernel.split_parity == (second.kernel.layout == "rcr")
        for m, k in ((3, 130), (1, 128)):
            told = second.given["LDA"].evaluate({"K": k})
            assert told % LINE == 0 <= told - k < LINE
            assert route.scratch[second.bound("a")].evaluate({"M": m, "K": k}) == m * told
        copies = {name for step in copying for name in step.scratch()}
        assert {second.bound("a")} == set(first.scratch())
        assert {second.bound("b")} == (copies or {"b"})
    assert pitch(const(0)).evaluate({}) == LINE  # the copy engine takes no rows without a distance


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": "nt"}, "layout: nt"),
        ({"bk": 256}, "bk: 256"),
        ({"dtype": "s8"}, "dtype: s8"),
        ({"min_arch": "sm_100"}, "min_arch: sm_100"),
        ({"raster": 0}, "raster: 0 vs >= 1"),
        ({"bm": 24}, "bm is a multiple of 16 up to 256: 24"),
        ({"bn": 256}, "128 columns a consumer: 256 vs 128"),
        ({"stages": 5}, "shared memory on sm_90, bytes"),
        ({"registers": 0}, "registers per thread"),
    ],
)
def test_illegal_products_do_not_exist(change, message):
    spec = PackedSpec("rcr", 128, 128, 128, 1, 4, ctas_per_sm=2, registers=208)
    with pytest.raises(SpecError, match=message):
        replace(spec, **change)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UnpackSpec("s8"), "dtype: s8"),
        (lambda: UnpackSpec(cta_threads=48), "whole warps: 48"),
        (lambda: UnpackSpec(vectors_per_thread=0), "vectors_per_thread: 0"),
    ],
)
def test_illegal_copies_do_not_exist(make, message):
    with pytest.raises(SpecError, match=message):
        make()
