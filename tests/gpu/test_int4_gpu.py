"""Products of 4-bit integers on a real GPU: the oracle's bits, by every kernel."""

from __future__ import annotations

import functools
import math

import int4_cases
import numpy as np
import pytest
from int4_cases import Case

import ptxgen
from ptxgen import int4, reference
from ptxgen.errors import OptionError
from ptxgen.numerics.int4 import LAYOUTS, VARIANTS
from ptxgen.runtime import get_device
from ptxgen.tiles import TABLES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

ROUTES = {r.name: key for key, t in TABLES.items() if key[0] == "int4" for r in t.routes}
"""The table of each route."""
SHAPES = ((1, 2, 2), (1, 32, 2), (5, 34, 66), (33, 64, 544), (130, 288, 1568), (17, 96, 8224))
LARGE = 257, 512, 4096


@functools.cache
def problem(case, dtype, layout):
    """The library's arguments on the GPU, its options, and the oracle's result."""
    given, options = int4_cases.operands(case, dtype, layout)
    on_gpu = {
        x: None if v is None else torch.from_numpy(np.ascontiguousarray(v)).cuda()
        for x, v in given.items()
    }
    return on_gpu, options, reference.int4_gemm(**given, **options)


def operands(case, dtype, layout):
    """A problem, and poisoned memory for our result."""
    given, options, expected = problem(case, dtype, layout)
    kind = torch.from_numpy(expected).dtype
    return given, options, expected, torch.full(expected.shape, 77, dtype=kind, device="cuda")


def same(out, expected):
    """Whether the bits are the same, but for those of NaNs."""
    got = out.cpu().numpy()
    return np.array_equal(got, expected, equal_nan=got.dtype.kind == "f")


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_every_route_has_the_bits_of_the_oracle(name):
    _, layout, dtype = ROUTES[name]
    variants = [(e, b) for d, lay, e, b in VARIANTS if (d, lay) == (dtype, layout)]
    served = 0
    for shape in (*SHAPES, LARGE):
        for i, (epilogue, bias) in enumerate(variants):
            how = ("uint8", "float32", "int32")[i % 3] if shape != LARGE else "uint8"
            with_c = ("", "beside")[i % 2]
            case = Case(
                *shape, epilogue, bias or "float32", with_c, how, beta=(0.5, math.inf)[i // 7]
            )
            given, options, expected, out = operands(case, dtype, layout)
            try:
                int4.gemm(**given, **options, out=out, kernel=name)
            except OptionError as error:
                assert "it requires" in str(error) or "not run on" in str(error)
                break
            assert same(out, expected), case
            served += 1
    assert served >= len(variants)


@pytest.mark.parametrize("name", sorted(ROUTES))
@pytest.mark.parametrize("kind", ["low", "high"])
def test_the_extremes_are_exact(name, kind):
    _, layout, dtype = ROUTES[name]
    given, options, expected, out = operands(
        Case(33, 64, 4128, kind=kind, out="int32"), dtype, layout
    )
    int4.gemm(**given, **options, out=out, kernel=name)
    assert same(out, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_start_anywhere(layout):
    given, options, expected, _ = operands(Case(9, 34, 70, "gelu", with_c="beside"), "s4", layout)
    for shift in (1, 2, 4, 8):
        lies = {}
        for x in "abc":
            rows, width = given[x].shape
            lies[x] = torch.full((rows, width + 21), 0x5A, dtype=torch.uint8, device="cuda")
            lies[x] = lies[x][:, shift : shift + width].copy_(given[x])
        memory = torch.full((9, 41), 77, dtype=torch.uint8, device="cuda")
        out = memory[:, shift : shift + 17]
        for _ in range(2):  # the second by the hot path
            int4.gemm(**{**given, **lies}, **options, out=out)
        assert same(out, expected)
        assert (memory[:, :shift] == 77).all() and (memory[:, shift + 17 :] == 77).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["s4", "u4"])
def test_a_row_has_the_same_bits_in_every_batch(dtype, layout):
    case = Case(1100, 512, 2048, "silu", with_c="beside")
    given, options, expected, out = operands(case, dtype, layout)
    int4.gemm(**given, **options, out=out)
    assert same(out, expected)
    for m in (1, 2, 17, 32, 33, 64, 100, 129, 256, 500, 1024):
        part = {**given, "a": given["a"][-m:], "c": given["c"][-m:]}
        assert torch.equal(int4.gemm(**part, **options), out[-m:]), m


def test_a_graph_replays_and_out_may_be_c():
    given, options, expected, out = operands(
        Case(16, 256, 1024, "relu", with_c="beside"), "s4", "rcr"
    )
    int4.gemm(**given, **options)  # compiled, before anything is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        int4.gemm(**given, **options, out=out)
    out.fill_(77)
    graph.replay()
    assert same(out, expected)
    c = given["c"].clone()
    assert int4.gemm(**{**given, "c": c}, **options, out=c) is c
    assert same(c, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_cpu_device_computes_the_same(layout):
    given, options, expected, _ = operands(Case(5, 34, 96, "gelu", "int32", "beside"), "u4", layout)
    host = {x: None if v is None else v.cpu().numpy() for x, v in given.items()}
    with ptxgen.use_device("cpu"):
        got = int4.gemm(**host, **options)
    assert (
        got.tobytes() == expected.tobytes() == int4.gemm(**given, **options).cpu().numpy().tobytes()
    )
    assert get_device("cuda").sms > 0


@pytest.mark.parametrize("name", sorted(n for n, key in ROUTES.items() if key[2] == "s4"))
def test_the_longest_reductions(name):
    """All products the largest, at the last k's that a kernel with shifted factors takes."""
    _, layout, dtype = ROUTES[name]
    main = TABLES[ROUTES[name]].named[name].main
    k = min(getattr(main, "k_max", 1 << 20) // 32 * 32, 1 << 20)
    a = torch.full((1, k // 2), 0x88, dtype=torch.uint8, device="cuda")
    b = torch.full(
        (32, k // 2) if layout == "rcr" else (k, 16), 0x88, dtype=torch.uint8, device="cuda"
    )
    got = int4.gemm(a, b, layout=layout, dtype=dtype, out_dtype="int32", kernel=name)
    assert (got == 64 * k).all()
