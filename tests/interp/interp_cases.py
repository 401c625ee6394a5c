"""The problems that every kernel is run on in every test run, by the kind of kernel.

A kind of kernels adds its maker to :data:`MAKERS`; a kernel of a known kind needs nothing.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import attention_cases
import delta_cases
import fft_cases
import gather_cases
import grouped_cases
import int4_cases
import numpy as np
import pointwise_cases
import quantized_cases
import quantized_ptx_cases
import recurrence_cases
import rotary_cases
import segment_cases
import sort_cases
import splat_cases
import window_cases
from bits import KINDS, NUMPY, operand, same_bits
from interp_launch import CONTINUED, KERNELS, SEED, Case, admits, oracle, run

import ptxgen
from ptxgen import reference
from ptxgen.numerics import logsumexp as numerics
from ptxgen.numerics.contract import ACTIVATIONS, ITEMSIZE
from ptxgen.ops import OPERATIONS
from ptxgen.oracle.row_reductions import compute
from ptxgen.runtime.cpu import SMS
from ptxgen.spec import GemmSpec, KernelSpec
from ptxgen.spec.attention import AttentionSpec
from ptxgen.spec.attention_grad import AttentionGradSpec
from ptxgen.spec.column_reductions import ColumnsSpec
from ptxgen.spec.conv import ConvSpec
from ptxgen.spec.counting_sort import ExpertsSpec, OrderSpec
from ptxgen.spec.delta import DeltaGradSpec, DeltaSpec
from ptxgen.spec.depthwise import DepthwiseSpec
from ptxgen.spec.fft import ChirpSpec, FftSpec
from ptxgen.spec.gather_scatter import BagSpec, GatherSpec
from ptxgen.spec.grouped import GroupedSpec
from ptxgen.spec.int4 import Int4Spec
from ptxgen.spec.logsumexp import LogSumExpSpec
from ptxgen.spec.pointwise import PointwiseSpec
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.spec.quantized_ptx import QuantizedPtxSpec
from ptxgen.spec.recurrence import LinearSpec, SelectiveSpec
from ptxgen.spec.rotary import RotarySpec
from ptxgen.spec.row_reductions import DOWN, RowSpec
from ptxgen.spec.scan import ScanSpec
from ptxgen.spec.select import DrawSpec, RouteSpec, SampleSpec, SelectSpec
from ptxgen.spec.sort import RadixSortSpec, SearchSpec
from ptxgen.spec.splats import SplatSpec
from ptxgen.spec.triangular import TriangularSpec
from ptxgen.spec.vocab_segments import LogitsSpec
from ptxgen.spec.wgmma import WgmmaSegmentsSpec
from ptxgen.tiles import SPECS, TABLES

Check = Callable[[Any], None]
"""Runs a kernel on a device, and compares with the oracle."""

EPILOGUES = list(itertools.product(ACTIVATIONS, (True, False)))
"""Activation, and whether there is a bias."""


def checks(name: str) -> list[Check]:
    """Returns the checks of the route ``name``.

    Fails for a kernel whose kind has no maker: every kernel is run.
    """
    spec = SPECS[name]
    makers = [maker for kind, maker in MAKERS.items() if isinstance(spec, kind)]
    assert makers, f"{name}: tests/interp/interp_cases.py has no maker for a {type(spec).__name__}"
    return makers[0](name)


def twin(name: str) -> bool:
    """Returns whether the kernel differs from a bf16 one in its dtype (f16) alone, and so is tested
    less.
    """
    spec = SPECS[name]
    return spec.dtype == "f16" and spec.of("bf16").name in SPECS


def representatives(names, *fields: str, twins: bool = False) -> list[str]:
    """Returns the kernel of least work for each combination of ``fields`` (None if it lacks one).

    Twins stand for nobody; but if ``twins``, they alone do, for others.
    """

    def work(name: str) -> int:
        extents = "bm", "bn", "bk", "warps", "head_dim_v"
        return math.prod(getattr(SPECS[name], extent, 1) for extent in extents)

    found: dict[tuple[Any, ...], str] = {}
    for name in sorted(names, key=lambda n: (work(n), n)):
        if twin(name) == twins:
            found.setdefault(tuple(getattr(SPECS[name], field, None) for field in fields), name)
    return sorted(found.values())


# -- products ---------------------------------------------------------------------------


def check_product(name: str, case: Case, device: Any) -> None:
    """Runs ``case`` and compares it with the oracle."""
    case = case.of(SPECS[name])
    got, intact = run(device, name, case)
    same_bits(got, oracle(case), seed=SEED, spec=name, what=str(case))
    assert intact, f"{case}: wrote beside the result"


def sizes(spec: KernelSpec) -> tuple[int, ...]:
    """BM, BN, BK and stages; something for kernels that have none."""
    names = {"bm": 32, "bn": 32, "bk": 32, "stages": 2}
    return tuple(getattr(spec, name, other) for name, other in names.items())


def alignments(dtype: str) -> list[tuple[int, int]]:
    """Returns pairs of byte alignments that operands a and b may have."""
    low = {2: (2, 4, 8), 4: (4,), 8: (8,)}[ITEMSIZE[dtype]]
    return [pair for a in low for pair in ((a, a), (a, 16), (16, a))]


def chunked(name: str) -> list[Case]:
    """Problems whose reduction is split: evenly and not."""
    layout, route = KERNELS[name]
    spec = route.kernels[0]
    bm, bn, _, _ = sizes(spec)
    found = []
    if spec.tier == "tc":
        found.append(Case(3, 5, 4100, kind="cancelling", activation="silu", extra=2))
        found.append(replace(found[0], kind="wide", align=(2, 2), bias=False))
    else:
        found.append(Case(2, bn + 3, 2085, kind="cancelling", activation="silu", extra=2))
        if getattr(spec, "slices", 1) > 1:
            low = ITEMSIZE[spec.dtype]
            some_rows = Case(min(bm, 32) + 1, 5, 2064, bias=False)
            found += [replace(found[0], kind="wide", align=(low, low)), some_rows]
    if layout == "TN":  # a weight's gradient, added to what is there
        how = {"op": "linear_wgrad", "activation": "none", "bias": False, "accumulate": True}
        found[0] = replace(found[0], **how)
    return found


def crossings(spec: KernelSpec, turn: int) -> list[tuple[int, int, int]]:
    """Returns the few (M, N, K) that cross every edge of a kernel.

    Beyond the tile in all three; short of it, with a ring of stages that goes round; a whole tile,
    stored by vectors; and by turns the least problem, an empty reduction, rows beyond a raster.
    """
    bm, bn, bk, stages = sizes(spec)
    rare = (
        (1, 1, 1),
        (bm + 1, bn, 0),
        (getattr(spec, "raster", 8) * min(bm, 32) + 1, 1, 3),
    )
    return [
        (bm + 1, bn + 1, bk + 1),
        (max(bm - 1, 1), max(bn - 1, 1), (stages + 1) * bk + bk // 2 + 1),
        (bm, -(-bn // 8) * 8, 2 * bk),
        rare[turn % len(rare)],
    ]


def kind_of(number: int, spec: KernelSpec, k: int) -> str:
    """Returns the kind of numbers of a case, in turn, where it is of use and fast."""
    kind = KINDS[number % len(KINDS)]
    if kind == "special" and k > 20:
        return "normal"  # else everything is NaN
    if kind == "subnormal" and k > 40 and spec.dtype == "f64":
        return "normal"  # each sum of such is one of Python's fractions: seconds
    return kind


def continued(name: str) -> list[Check]:
    """Returns checks of a kernel that continues chains from the result, and one that does not
    continue; of a twin one of these, in turn.
    """
    route = CONTINUED[name]
    spec, turn = route.kernels[0], sorted(CONTINUED).index(name)
    lies = alignments(spec.dtype)
    found: list[Case] = []
    for i, (m, n, k) in enumerate(crossings(spec, 1)):
        accumulate = i != 1
        case = Case(
            m,
            n,
            k,
            op="linear_wgrad",
            kind=kind_of(turn + i, spec, k),
            bias=False,
            accumulate=accumulate,
            chain=True,
            odd=("both", "offset", "pitch")[(turn + i) % 3],
            extra=(1, 3, 0, 4)[i],
            offset=(2, 1, 0, 3)[i],
            out_f32=accumulate or turn % 2 == 1,
        )
        if getattr(spec, "result", 0):  # such a kernel also asks how the result lies
            wide = spec.result == 4
            case = replace(case, n=n + -n % (4 if wide else 8), out_f32=wide, extra=8, offset=0)
        aligns = (*lies, (16, 16)) if i != 2 and k else ((16, 16),)
        found += [c for c in (replace(case, align=a) for a in aligns) if admits(route, c, SMS)][:1]
    assert len(found) == 4, f"{name} admits too few of its cases"
    if twin(name):
        found = [found[turn % len(found)]]
    return [functools.partial(check_product, name, case) for case in found]


def products(name: str) -> list[Check]:
    """Returns the checks of a product kernel; of a twin one of these, in turn."""
    if name in CONTINUED:
        return continued(name)
    layout, route = KERNELS[name]
    spec = route.kernels[0]
    turn = sorted(KERNELS).index(name)
    lies = alignments(spec.dtype)
    lies = lies[turn % len(lies) :] + lies[: turn % len(lies)]
    found: list[Case] = []
    for i, (m, n, k) in enumerate(crossings(spec, turn)):
        m = spec.rows_from(m)
        kind = kind_of(turn + i, spec, k)
        activation, bias = EPILOGUES[(3 * turn + i) % len(EPILOGUES)]
        plain = Case(
            m,
            n,
            k,
            kind=kind,
            activation=activation,
            bias=bias,
            odd=("both", "offset", "pitch")[(turn + i) % 3],
            extra=(0, 3, 4, 1)[(turn + i) % 4] if i != 2 else 0,
            offset=(turn + i) % 3 if i != 2 else 0,
            bias_f32=(turn + i) // 2 % 2 == 1,
            out_f32=(turn + i) // 4 % 2 == 1,
        )
        ways = [plain]
        if layout == "TN":
            added = replace(
                plain, op="linear_wgrad", bias=False, activation="none", accumulate=i % 2 == 0
            )
            ways.insert(turn % 2 if len(route.kernels) == 1 else 0, added)
        # Off 16 bytes where the kernel takes it; aligned in the whole tile.
        placed = [
            replace(way, align=align)
            for way in ways
            for align in ((*lies, (16, 16)) if i != 2 and k else ((16, 16),))
        ]
        found += [case for case in placed if admits(route, case, SMS)][:1]
    split = [replace(case, m=spec.rows_from(case.m)) for case in chunked(name)]
    split = [case for case in split if admits(route, case, SMS)]
    if getattr(spec, "split", "none") != "none":
        found.append(split[turn % len(split)])
    assert len(found) >= 3, f"{name} admits too few of its cases"
    if twin(name):
        found = [found[-1] if len(route.kernels) > 1 else found[turn % len(found)]]
    return [functools.partial(check_product, name, case) for case in found]


# -- logsumexp --------------------------------------------------------------------------


def check_rows(name: str, shape: tuple[int, int], kind: str, out: str | None, device: Any) -> None:
    """Runs rows of ``shape`` and compares them with the oracle."""
    rng = np.random.default_rng([SEED, *shape])
    x = operand(rng, shape, kind, SPECS[name].dtype)
    with ptxgen.use_device(device):
        got = ptxgen.logsumexp(x, out_dtype=out, kernel=name)
    expected = reference.logsumexp(x, out_dtype=out)
    same_bits(got, expected, seed=SEED, spec=name, what=f"{shape} {kind} {out}")


def rows(name: str) -> list[Check]:
    """Rows around a segment's end, several segments, and more rows than warps: of f32 many, as few
    logarithms show in which order they are added. Rows with infinities and NaN.
    """
    spec, segment = SPECS[name], numerics.SEGMENT
    assert isinstance(spec, LogSumExpSpec)
    warps, capacity = spec.warps, spec.capacity
    many = 25 if spec.dtype == "f32" else 1
    shapes = [(many * warps + 1, 5), (3, segment), (2, 2 * segment + 3), (1, warps * segment + 1)]
    if spec.part == "short":
        shapes = [
            (many * warps + 1, 5),
            (3, capacity),
            (warps * spec.rows_per_warp + 1, capacity - 3),
        ]
    return [
        functools.partial(check_rows, name, shape, kind, ("float32", None)[i % 2])
        for i, (shape, kind) in enumerate([*zip(shapes, KINDS, strict=False), ((64, 9), "special")])
    ]


# -- operations over rows ---------------------------------------------------------------


def check_rowwise(name: str, shape: tuple[int, int], kind: str, device: Any) -> None:
    """Softmax of rows of ``shape``, or their sums, by routes that have one stage only."""
    rng = np.random.default_rng([SEED, *shape])
    x = operand(rng, shape, kind, "bf16")
    total = "_sum_" in name
    with ptxgen.use_device(device):
        got = ptxgen.sum(x, -1, kernel=name) if total else ptxgen.softmax(x, kernel=name)
    expected = reference.sum(x, -1) if total else reference.softmax(x)
    same_bits(got, expected, seed=SEED, spec=name, what=f"{shape} {kind}")


def rowwise(name: str) -> list[Check]:
    """Rows around the end of what a lane, a warp and a kernel has; more rows than a CTA's."""
    if SPECS[name].part in DOWN:
        return down(name)
    routes = [r for r in TABLES["row_reductions",].routes if name in r.names]
    spec, route = SPECS[name], routes[-1]  # of routes in several steps: all of them
    split = len(route.kernels) > 1
    if split and route.kernels[0].is_last:
        route = route.of("sum x=bf16 > bf16")
    held = spec.part in ("held", "dense", "cluster", "staged")
    most = spec.capacity if held else 2 * 1024 + 24
    # A multiple of 8, or, for what takes rows off 16 bytes, one less.
    widths = {min(most, w) // 8 * 8 - (not spec.vectorized) for w in (24, 1024 + 8, most)}
    widths |= set() if spec.vectorized else {min(most - 1, 1043)}
    shapes = [(spec.rows_per_cta + 1 if w < 3000 else 1, w) for w in sorted(widths)]
    kinds = KINDS if not split else ("normal", "special", "wide")
    return [
        functools.partial(check_rowwise, route.name, shape, kinds[i % len(kinds)])
        for i, shape in enumerate(shapes)
    ]


def check_down(name: str, shape: tuple[int, int], kind: str, device: Any) -> None:
    """Gradients of a norm, some of which are sums down rows."""
    rng = np.random.default_rng([SEED, *shape])
    given = [operand(rng, s, kind, "bf16") for s in (shape, shape, (1, shape[1]))]
    given[2] = given[2][0]
    with ptxgen.use_device(device):
        got = OPERATIONS["rms_norm_gradients"].function(*given, eps=1e-6, kernel=name)
    for one, other in zip(got, compute("rms_norm_gradients", *given), strict=True):
        same_bits(one, other, seed=SEED, spec=name, what=f"{shape} {kind}")


def down(name: str) -> list[Check]:
    """Lanes without rows and with some, two leaves of rows; rows of one warp and of all."""
    route = next(r for r in TABLES["row_reductions", "down"].routes if name in r.names)
    vector = route.main.vectorized
    most = min(route.main.capacity, 1024 * 3)
    shapes = [(11, most if vector else most - 3), (1034, 24 if vector else 13), (0, 8)]
    return [
        functools.partial(check_down, route.name, shape, kind)
        for shape, kind in zip(shapes, ("special", "normal", "normal"), strict=True)
    ]


def check_solve(name: str, shape: tuple[int, ...], flags: tuple[bool, bool], device: Any) -> None:
    """Triangular systems whose matrices hold NaN where nothing may be read."""
    rng, kind = np.random.default_rng([SEED, *shape]), NUMPY[SPECS[name].dtype]
    *outer, n, cols = shape
    a, b = (rng.standard_normal((*outer, n, m)).astype(kind) for m in (n, cols))
    upper, unit = flags
    seen = np.tri(n, k=-1 if unit else 0, dtype=bool)
    a[..., ~(seen.T if upper else seen)] = np.nan
    how = {"upper": upper, "unitriangular": unit}
    expected = reference.solve_triangular(a, b, **how)
    with ptxgen.use_device(device):
        for given in (a, np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)):
            got = ptxgen.solve_triangular(given, b, **how, kernel=name)
            same_bits(got, expected, seed=SEED, spec=name, what=f"{shape} {flags}")
    assert not np.isnan(expected).any()


def triangular(name: str) -> list[Check]:
    """Matrices of more rows than a block and fewer, more columns than lanes and fewer."""
    ways = itertools.product((False, True), repeat=2)
    shapes = ((2, 33, 5), (3, 1, 33), (65, 2), (7, 40))
    return [functools.partial(check_solve, name, *each) for each in zip(shapes, ways, strict=True)]


MAKERS: dict[type[KernelSpec], Callable[[str], list[Check]]] = {
    QuantizedGemmSpec: quantized_cases.products,
    WgmmaSegmentsSpec: segment_cases.products,
    LogitsSpec: segment_cases.rows,
    GroupedSpec: grouped_cases.products,
    ConvSpec: window_cases.products,
    DepthwiseSpec: window_cases.depthwise,
    GemmSpec: products,
    AttentionSpec: attention_cases.forward,
    AttentionGradSpec: attention_cases.gradients,
    Int4Spec: int4_cases.products,
    LogSumExpSpec: rows,
    ColumnsSpec: gather_cases.columns,
    GatherSpec: gather_cases.gather,
    BagSpec: gather_cases.bag,
    ScanSpec: gather_cases.scan,
    SelectiveSpec: recurrence_cases.selective,
    LinearSpec: recurrence_cases.linear,
    DeltaGradSpec: delta_cases.gradient,
    DeltaSpec: delta_cases.forward,
    OrderSpec: gather_cases.order,
    ExpertsSpec: gather_cases.experts,
    SampleSpec: gather_cases.sample,
    DrawSpec: gather_cases.sample,
    RouteSpec: gather_cases.router,
    SelectSpec: gather_cases.topk,
    RadixSortSpec: sort_cases.cases,
    SearchSpec: sort_cases.cases,
    RotarySpec: rotary_cases.heads,
    RowSpec: rowwise,
    QuantizedPtxSpec: quantized_ptx_cases.products,
    PointwiseSpec: pointwise_cases.representatives,
    SplatSpec: splat_cases.kernels,
    TriangularSpec: triangular,
    FftSpec: fft_cases.transforms,
    ChirpSpec: fft_cases.chirps,
}
