"""``int4.gemm`` through the library, on the CPU device: every variant, the oracle's bits."""

from __future__ import annotations

import math
from dataclasses import replace

import int4_cases
import numpy as np
import pytest
from bits import same_bits
from int4_cases import Case, operands, representatives
from steps import problem
from test_int4 import REFUSED
from test_int4 import operands as some

import ptxgen
from ptxgen import int4, reference
from ptxgen.dispatch import choose, emit
from ptxgen.dispatch.prove import prove, prove_source
from ptxgen.errors import GradError, OptionError, ShapeError, SpecError, UncoveredError
from ptxgen.interp.run.profile import Profiler
from ptxgen.numerics.int4 import ELEMENTS, GEMM, LAYOUTS, VARIANTS
from ptxgen.ops import OPERATIONS
from ptxgen.program import prepared
from ptxgen.runtime.arrays import ArrayView
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.int4 import Int4Spec
from ptxgen.spec.realign import RealignSpec
from ptxgen.tiles import SPECS, TABLES

DEVICE = CpuDevice()
KERNELS = sorted(name for name, spec in SPECS.items() if isinstance(spec, Int4Spec))
OURS = {key: TABLES[key] for key in TABLES if key[0] == "int4"}
SHIFTING = [SPECS[k] for k in KERNELS if "_rcr_s4_" in k and SPECS[k].widen == "shift"]
SHAPES = ((1, 2, 2), (3, 6, 70), (5, 34, 192), (33, 40, 66))


@pytest.fixture(autouse=True)
def _on_the_cpu():
    with ptxgen.use_device(DEVICE):
        yield


@pytest.mark.parametrize(("dtype", "layout", "epilogue", "bias"), VARIANTS)
def test_every_variant_has_the_bits_of_the_oracle(dtype, layout, epilogue, bias):
    for i, (m, n, k) in enumerate(SHAPES):
        for with_c in ("", "beside"):
            case = Case(m, n, k, epilogue, bias or "float32", with_c, beta=(0.5, math.nan)[i == 2])
            given, options = operands(case, dtype, layout)
            got = int4.gemm(**given, **options)
            expected = reference.int4_gemm(**given, **options)
            same_bits(got, expected, what=f"{case} {dtype} {layout}")


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scaled_sums_are_rounded_as_the_oracle_does(dtype, layout):
    """Scaled sums are rounded half to even and saturated for any alpha, by each way to
    store them.
    """
    routes = [r for r in OURS["int4", layout, dtype].routes if r.main.bm in (32, 96)]
    first = {r.main.family: r.name for r in reversed(routes)}
    assert sorted(first) == ["int4", "int4_packed"]
    for alpha in (0.5, -0.125, 3.0, 0.0, 1e-31, 2e30, math.inf, -math.inf, math.nan):
        given, options = operands(Case(5, 96, 32, alpha=alpha), dtype, layout)
        expected = reference.int4_gemm(**given, **options)
        for kernel in first.values():
            got = int4.gemm(**given, **options, kernel=kernel)
            same_bits(got, expected, what=f"{kernel}, alpha {alpha}")


def test_shifted_factors_are_for_reductions_that_cannot_overflow():
    """A warp has no more than its share of the k's. (Run up to the last one in tests/gpu.)"""
    for spec in SHIFTING:
        splits = spec.warps_k * spec.cluster_k
        assert splits * 131_071 - spec.bk * spec.cluster_k < spec.k_max <= splits * 131_071
    assert {s.warps_k * s.cluster_k for s in SHIFTING} >= {1, 8, 64}
    given, options = operands(Case(1, 2, 131_104), "s4", "rcr")
    for spec in SHIFTING:
        if spec.k_max == 131_071:
            with pytest.raises(OptionError, match="it requires K <= 131071"):
                int4.gemm(**given, **options, kernel=spec.name)


def test_out_may_be_c_and_nothing_else():
    given, options = operands(Case(5, 20, 34, "relu", with_c="beside"), "s4", "rrr")
    expected = reference.int4_gemm(**given, **options)
    c = given["c"].copy()
    assert int4.gemm(**{**given, "c": c}, **options, out=c) is c
    assert (c == expected).all()
    with pytest.raises(ShapeError, match="out shares memory with a"):
        int4.gemm(given["a"], given["b"], layout="rrr", out=given["a"][:, 4:14])
    buffer = np.zeros((6, 10), np.uint8)
    with pytest.raises(ShapeError, match="out shares memory with c"):
        int4.gemm(given["a"], given["b"], buffer[1:], layout="rrr", out=buffer[:-1])


class OneCta(CpuDevice):
    """A device that starts one cluster of CTAs, which has to walk over all tiles."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster = cluster

    def launch(self, function, grid, block, stream, params, what):
        super().launch(function, (self.cluster, 1, 1), block, stream, params, what)


class Tensor:
    """Stand-in for a tensor, with the attributes that prepared calls read."""

    requires_grad = False
    dtype = "int32"

    def __init__(self, ptr, shape=(2, 8)):
        self.ptr, self.shape = ptr, shape

    def data_ptr(self):
        return self.ptr

    def stride(self):
        return self.shape[1], 1

    def get_device(self):
        return 0


A, B, C, BESIDE = map(Tensor, (256, 512, 1024, 2048))


@pytest.mark.parametrize(
    ("out", "fires"),
    [
        (Tensor(4096), True),  # beside C
        (Tensor(1024), True),  # C itself
        (Tensor(1024, (4, 4)), False),  # where C is, and of another shape
        (Tensor(1040), False),  # a part of C
        (Tensor(256), False),  # A itself
    ],
)
def test_prepared_calls_let_out_be_c(monkeypatch, out, fires):
    """Once calls beside C and over it are known."""
    monkeypatch.setattr(prepared.TORCH, "types", {Tensor})
    of, memo, missed = OPERATIONS["int4_gemm"], {}, []
    of = of.name, of.parameters, lambda key, *_: missed.append(key), memo
    front = prepared.writing_fast_path(*of, lambda index: 0, lambda *_: 0)

    def call(out):
        return front(A, B, C, None, "s4", "rcr", None, 1.0, 0.0, out, None, None, None)

    for known in (BESIDE, C):
        assert call(known) is None, "nothing is known"
        sizes = (64, 64, 64, 0, 64)
        memo[missed.pop()] = prepared.Into(lambda *given: given[-1], sizes, False, 0, False)
    assert len(memo) == 2 and None not in memo
    assert (call(out) is out) == fires == (not missed)


@pytest.mark.parametrize("out", ["int32", "float32", "s4", "uint8", np.int32])
def test_what_comes_out(out):
    given, options = operands(Case(3, 12, 64, "silu", with_c="beside"), "s4", "rcr")
    options["out_dtype"] = out
    got, expected = int4.gemm(**given, **options), reference.int4_gemm(**given, **options)
    same_bits(got, expected)
    options["out_dtype"] = None
    given_out = np.zeros_like(expected)
    assert int4.gemm(**given, **options, out=given_out) is given_out
    same_bits(given_out, expected)


@pytest.mark.parametrize("alpha", [math.nan, math.inf, -math.inf, 1e39, 2**-149, 1e-60, 0, 3])
def test_any_alpha(alpha):
    given, options = operands(Case(3, 12, 64, with_c="beside", alpha=alpha), "s4", "rcr")
    options["out_dtype"] = None
    same_bits(int4.gemm(**given, **options), reference.int4_gemm(**given, **options))


def test_rows_may_lie_apart_and_backwards_views_may_not():
    given, options = operands(Case(6, 12, 64), "u4", "rcr")
    apart = np.zeros((6, 50), np.uint8)
    apart[:, 3:35] = given["a"]
    expected = reference.int4_gemm(**given, **options)
    same_bits(int4.gemm(**{**given, "a": apart[:, 3:35]}, **options), expected)
    view = ArrayView(4096, (6, 32), (16, 1), "uint8", "cuda", 0, False, "torch", None)
    b = replace(view, shape=(12, 32), strides=(32, 1))
    with pytest.raises(ShapeError, match=r"a has shape \[6, 32\] and strides \[16, 1\]; takes"):
        problem("int4_gemm", {"a": view, "b": b}, **options)
    with pytest.raises(ShapeError, match=r"strides \[1, 6\]; takes stride 1 along the last"):
        turned = replace(view, strides=(1, 6))
        problem("int4_gemm", {"a": turned, "b": b}, **options)


def test_empty_products():
    a, b = np.zeros((2, 0), np.uint8), np.zeros((4, 0), np.uint8)
    got = int4.gemm(a, b, bias=np.arange(4, dtype=np.int32))
    assert int4.unpack(got).tolist() == [[0, 1, 2, 3]] * 2
    assert int4.gemm(a[:0], b).shape == (0, 2)
    assert int4.gemm(a, b[:0]).shape == (2, 0)


@pytest.mark.parametrize(("given", "error", "message"), REFUSED)
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        int4.gemm(**{**some(), **given})


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_numbers_are_asked_for(name):
    with pytest.raises(OptionError, match=f"{name} is 'half'; takes a number"):
        int4.gemm(**some(), **{name: "half"})


def test_reductions_that_are_too_long_are_refused():
    long = ArrayView(4096, (1, 2**24), (2**24, 1), "uint8", "cuda", 0, False, "torch", None)
    views = {"a": long, "b": replace(long, shape=(2, 2**24))}
    with pytest.raises(ShapeError, match=r"K is 33554432; of s4 takes at most 33554431"):
        problem("int4_gemm", views)
    for dtype, element in ELEMENTS.items():
        how = {"arch": "sm_90", "sms": 132}
        values = {"M": 1, "N": 2, "K": element.k_max + 1, "ALIGN_A": 16, "ALIGN_B": 16}
        with pytest.raises(UncoveredError, match="K is"):
            choose(("int4", "rcr", dtype), values, **how)
        assert choose(("int4", "rcr", dtype), {**values, "K": element.k_max}, **how)


def test_explain_takes_the_elements_dtype():
    found = ptxgen.explain("int4_gemm", 4096, 4096, 4096, dtype="u4", layout="rrr", align=16)
    assert (found.table, found.dtype, found.contract) == (("int4", "rrr", "u4"), "u4", "int4/1")
    assert found.winner.name.startswith("int4_unpack_a+int4_packed_rrr_u4_128x128")
    assert ptxgen.explain("int4_gemm", 1, 2, 2, align=1).dtype == "s4"
    with pytest.raises(ShapeError, match="K is 3; takes a multiple of 2"):
        ptxgen.explain("int4_gemm", 1, 2, 3)
    with pytest.raises(OptionError, match="dtype is 'float32'; takes 's4', 'u4'"):
        ptxgen.explain("int4_gemm", 1, 2, 2, dtype="float32")


def test_it_has_an_operator_without_gradients():
    with pytest.raises(GradError, match="int4_gemm has no gradients"):
        OPERATIONS["int4_gemm"].vjp(None, None)
    torch = pytest.importorskip("torch")
    import ptxgen.torch

    given, options = operands(Case(5, 20, 34, "bias", with_c="beside"), "u4", "rrr")
    tensors = [torch.from_numpy(given[name]) for name in GEMM.arguments]
    got = ptxgen.torch.int4_gemm(*tensors, **options)
    assert (got.numpy() == reference.int4_gemm(**given, **options)).all()
    torch.library.opcheck(torch.ops.ptxgen.int4_gemm, tuple(tensors), options)


# -- kernels ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_regime_has_its_kernel(layout, dtype):
    def route(m, n, k, align=16):
        asked = {"dtype": dtype, "layout": layout, "align": align}
        return OURS["int4", layout, dtype].named[
            ptxgen.explain("int4_gemm", m, n, k, **asked).winner.name
        ]

    assert route(1, 4096, 4096).main != route(8192, 8192, 8192).main
    assert len(route(8192, 8192, 8192, 8).steps) > 1  # copied first
    assert route(4, 64, 64, 1).main.copy == "bytes"
    for k in (131_104, 1_000_000):  # longer than shifted factors of one warp may be
        assert route(64, 4096, k).main.copy == "vector"


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_off_16_bytes(layout, dtype):
    """Routes that copy unaligned operands first have the bits of the routes that do not."""
    routes = OURS["int4", layout, dtype].routes
    copying = [r for r in routes if isinstance(r.kernels[0], RealignSpec)]
    assert {r.main.layout for r in copying} == {layout}
    for n, k in ((36, 70), (32, 70), (36, 64)):
        given, options = operands(Case(34, n, k, "gelu", "int32", "beside"), dtype, layout)
        expected = reference.int4_gemm(**given, **options)
        same_bits(int4.gemm(**given, **options), expected)
        served = 0
        for route in copying:
            try:
                got = int4.gemm(**given, **options, kernel=route.name)
            except OptionError as refusal:
                assert "it requires 16 <= ALIGN" in str(refusal)
            else:
                same_bits(got, expected)
                served += 1
        assert served >= 2


WAYS = "warps_k", "cluster_k", "prefetch", "copy"


@pytest.mark.parametrize("name", representatives(*WAYS))
def test_schedules_do_not_matter(name):
    """Warps at random, copies that land early: no race, no read of what nobody wrote."""
    spec = SPECS[name]
    k = spec.bk * spec.cluster_k * (spec.stages + 1) - 2
    for settings in ({"seed": 5}, {"early": True}):
        int4_cases.check(name, Case(5, 12, k, with_c="over"), CpuDevice(**settings))


@pytest.mark.parametrize("name", representatives(*WAYS, "layout"))
def test_ctas_walk_over_more_tiles_than_fit_a_grid(name):
    spec = SPECS[name]
    case = Case(spec.bm + 1, spec.bn + 2, spec.bk * 3 + 2, "relu", with_c="over")
    int4_cases.check(name, case, OneCta(spec.cluster_k))


@pytest.mark.parametrize("name", representatives("layout", "bm", "bn", "bk", "warps_k"))
def test_tiles_are_copied_and_read_without_bank_conflicts(name):
    spec, observer = SPECS[name], Profiler()
    b = (spec.bn, spec.bk // 2) if spec.layout == "rcr" else (spec.bk, spec.bn // 2)
    with ptxgen.use_device(CpuDevice(observer=observer)):
        int4.gemm(np.zeros((spec.bm, spec.bk // 2), np.uint8), np.zeros(b, np.uint8),
                  dtype=spec.dtype, layout=spec.layout, kernel=name)  # fmt: skip
    sites = [s for s in observer.kernels({})[0].sites if s.space == "shared"]
    tiles = [s for s in sites if s.kind != "load" or s.name.startswith("ldmatrix")]
    assert {s.name.partition(".")[0] for s in tiles} >= {"ldmatrix", "st"}
    assert [s for s in tiles if s.excess] == []


# -- proofs -------------------------------------------------------------------------------


def test_everything_is_proved():
    results = prove(emit.tables(OURS))
    assert all(result.ok for result in results), [str(r) for r in results if not r.ok]
    bounds = [r for r in results if "magnitude of an accumulator" in r.subject]
    assert len(bounds) >= len(KERNELS)


def test_a_longer_reduction_is_not_proved():
    """A reduction longer by one than the bound on shifted factors could overflow, and is not
    proved.
    """
    (table,) = emit.tables({("int4", "rcr", "s4"): OURS["int4", "rcr", "s4"]})
    source = emit.checked_in(table)
    assert "k <= most_k" in source and ", 131071," in source
    forged = source.replace(", 131071,", ", 131072,")
    failed = [r for r in prove_source(table, forged) if not r.ok]
    assert {r.goal for r in failed} == {"requires"}
    assert all(r.shape["K"] == 2**17 for r in failed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": "ccr"}, "layout: ccr"),
        ({"dtype": "s8"}, "dtype: s8"),
        ({"copy": "floats"}, "copy: floats"),
        ({"bm": 48}, "warps_m x 32 divides bm: 64 vs 48"),
        ({"warps_k": 3}, "warps_k x 32 divides bk: 96 vs 256"),
        ({"stages": 1}, "stages: 1 vs >= 2"),
        ({"stages": 12}, "shared memory on sm_80, bytes"),
        ({"warps_n": 1, "bn": 96}, "blocks_n: 3 vs a power of two"),
        ({"bn": 256, "ctas_per_sm": 8}, "registers per thread"),
        ({"cluster_k": 3, "min_arch": "sm_90"}, "cluster_k: 3"),
        ({"cluster_k": 2}, "min_arch of clusters: sm_80 vs sm_90"),
    ],
)
def test_illegal_specs_do_not_exist(change, message):
    spec = Int4Spec("rcr", 64, 64, 256, 2, 2, 4)
    with pytest.raises(SpecError, match=message):
        replace(spec, **change)
