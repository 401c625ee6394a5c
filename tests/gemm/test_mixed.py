"""Products of operands of two dtypes: float32 beside 16 bits, which is converted to it exactly."""

from __future__ import annotations

import numpy as np
import pytest
from batch_cases import numbers
from bits import NUMPY, same_bits

import ptxgen
from ptxgen import functions as f
from ptxgen import graph, reference
from ptxgen.errors import DtypeError, OptionError
from ptxgen.numerics.contract import DEFAULT_PLAN
from ptxgen.numerics.dtype import Mixed
from ptxgen.ops.explaining import program_of
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import LAYOUTS
from ptxgen.tiles import TABLES
from ptxgen.tiles.gemm import mixes

PAIRS = ("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f16", "f32")
SHAPES = {
    "linear": ((5, 37), (37, 9)),
    "linear_dgrad": ((5, 37), (9, 37)),
    "linear_wgrad": ((37, 5), (37, 9)),
    "matmul": ((5, 37), (37, 9)),
}


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


def wide(*arrays):
    return [x.astype(np.float32) for x in arrays]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("name", SHAPES)
def test_bits_are_those_of_float32(name, pair):
    a, b = (numbers(*of, dtype=dtype) for of, dtype in zip(SHAPES[name], pair, strict=True))
    how = {} if name == "matmul" else {"layout": "kn"}
    expected = getattr(reference, name)(*wide(a, b), **how)
    got = getattr(ptxgen, name)(a, b, **how)
    assert got.dtype == np.float32
    same_bits(got, expected)
    same_bits(getattr(reference, name)(a, b, **how), expected)


@pytest.mark.parametrize("pair", PAIRS[:2], ids="-".join)
def test_every_way_to_lie(pair):
    """Transposed, strided, at any address, a batch, an empty reduction; no copy by the caller."""
    x, w = numbers(5, 37, dtype=pair[0]), numbers(37, 9, dtype=pair[1])
    expected = reference.linear(*wide(x, w), layout="kn")
    turned = np.ascontiguousarray(w.T)
    same_bits(ptxgen.linear(x, turned.T, layout="kn"), expected)
    same_bits(ptxgen.linear(x, turned, layout="nk"), expected)
    odd = np.zeros((37, 11), w.dtype)[:, 1:10]
    odd[...] = w
    same_bits(ptxgen.linear(x, odd, layout="kn"), expected)
    same_bits(ptxgen.matmul(x, turned, transpose_b=True), expected)
    a, b = numbers(2, 3, 5, 16, dtype=pair[0]), numbers(3, 16, 8, dtype=pair[1])
    same_bits(ptxgen.matmul(a, b), reference.matmul(*wide(a, b)))
    assert not ptxgen.linear(x[:, :0], w[:0], layout="kn").any()


@pytest.mark.parametrize("of_bias", ["f32", "bf16"])
def test_bias_activation_and_what_is_added_to(of_bias):
    x, w, bias = numbers(5, 37), numbers(37, 9, dtype="bf16"), numbers(9, dtype=of_bias)
    got = ptxgen.linear(x, w, bias, activation="gelu", layout="kn")
    same_bits(got, reference.linear(*wide(x, w, bias), activation="gelu", layout="kn"))
    same_bits(reference.linear(x, w, bias, activation="gelu", layout="kn"), got)
    dy, old = numbers(5, 9, dtype="bf16"), numbers(37, 9)
    expected = reference.linear_wgrad(*wide(x, dy), out_old=old, layout="kn")
    same_bits(ptxgen.linear_wgrad(x, dy, out=old.copy(), accumulate=True, layout="kn"), expected)


def test_other_pairs_are_refused():
    """Other pairs of dtypes are refused by name, with what goes together; tensor cores take one
    dtype.
    """
    x = {dtype: numbers(4, 4, dtype=dtype) for dtype in NUMPY if dtype in ("f32", "f64", "f16")}
    x["bf16"] = numbers(4, 4, dtype="bf16")
    for a, b, options, message in (
        ("bf16", "f16", {}, "b has dtype float16; takes bfloat16, that of a"),
        ("f32", "f64", {}, "b has dtype float64; takes float32, that of a or bfloat16 or float16"),
        ("f64", "bf16", {}, "b has dtype bfloat16; takes float64, that of a"),
        ("f32", "bf16", {"tier": "tc"}, "a has dtype float32; takes bfloat16 or float16"),
        ("bf16", "f32", {"tier": "tc"}, "b has dtype float32; takes bfloat16, that of a"),
        ("bf16", "bf16", {"out_dtype": "float16"}, "out_dtype is 'float16'"),
    ):
        with pytest.raises(DtypeError, match=message):
            ptxgen.matmul(x[a], x[b], **options)
    for a, b in (("bf16", "f16"), ("f32", "f64"), ("f64", "bf16")):
        with pytest.raises(DtypeError):
            reference.matmul(x[a], x[b])
    with pytest.raises(DtypeError, match="bias has dtype float64"):
        ptxgen.linear(x["f32"], x["bf16"], x["f64"][0], layout="kn")


def test_kernels_read_a_16_bit_second_operand_as_it_is():
    """A weight of 16 bits, and a bias of its dtype, cost no step; a 16-bit x is converted first."""
    for what, first, second in (("linear", "x", "w"), ("linear_dgrad", "dy", "w")):
        (step,) = program_of(what, (16, 8, 24), options={second: "bf16"}).steps
        assert step.problem.dtype == Mixed("f32", "bf16")
        assert {b.dtype for b in step.reads()} == {"float32", "bfloat16"}
        cast, step = program_of(what, (16, 8, 24), options={first: "f16"}).steps
        assert cast.problem.what.startswith("cast_f32") and step.problem.dtype == "f32"
    assert len(program_of("linear", (16, 8, 24), "bf16", options={"w": "bf16"}).steps) == 1
    x, w = numbers(5, 16), numbers(8, 16, dtype="f16")
    for of_bias, steps in (("f16", 1), ("f32", 1), ("bf16", 2)):
        given = x, w, numbers(8, dtype=of_bias)
        program = graph.trace(lambda x, w, b: ptxgen.linear(x, w, b, layout="nk"), *given)
        assert len(program.steps) == steps, of_bias


def test_a_capture_multiplies_by_the_parameters_as_they_are():
    """A network whose parameters have 16 bits: a step for each layer, no array of float32 beside
    activations, and new parameters at a replay.
    """

    def network(x, up, bias, down):
        return ptxgen.linear(f.tanh(ptxgen.linear(x, up, bias, layout="nk")), down, layout="nk")

    x, up, down = numbers(3, 16), numbers(24, 16, dtype="f16"), numbers(8, 24, dtype="f16")
    given = x, up, numbers(24, dtype="f16"), down
    captured = ptxgen.capture(network, *given, passes=graph.fewer)
    assert [s.problem.what.split()[0] for s in captured.program.steps] == ["linear+tanh", "linear"]
    assert [m.nbytes for m in captured.program.temporaries] == [4 * 3 * 24]
    for arrays in (given, (x, -up, *given[2:])):
        expected = network(*wide(*arrays))
        same_bits(captured(*arrays), expected)
        same_bits(network(*arrays), expected)


CHUNKED = 2064
"""Length of a reduction of several chunks."""
KEYS = [(layout, DEFAULT_PLAN, "f32", "simt") for layout in LAYOUTS]


def test_every_kernel_of_float32_has_a_twin_with_weaker_conditions():
    """A twin is correct wherever the float32 kernel is, so that the proved dispatcher serves it."""
    assert [key for key in TABLES if mixes(key)] == KEYS
    for key in KEYS:
        for route in TABLES[key].routes:
            for narrow in ("f16", "bf16"):
                main = route.of(Mixed("f32", narrow)).main
                assert (main.operand_dtype("a"), main.operand_dtype("b")) == ("f32", narrow)
                assert main.grid == route.main.grid and main.batched == route.main.batched
                for x, of_element in (("a", 4), ("b", 2)):
                    asked, known = main.alignment(x), route.main.alignment(x)
                    assert asked <= known if known > 4 else asked <= of_element, (main.name, x)


SMALL = 2048
"""Most outputs of a tile in kernels that are always tested."""


def routes(key, narrow, every):
    """Routes of a table for operands of two dtypes: all, or a small one for each way to copy."""
    found = [route.of(Mixed("f32", narrow)) for route in TABLES[key].routes]
    if every:
        return found
    small = [route for route in found if route.main.bm * route.main.bn <= SMALL]
    ways = {(r.main.copy_a, r.main.copy_b, r.main.split): r for r in small}
    return [*ways.values()]


def check(layout, narrow, every=False):
    """Compares kernels with the oracle: unaligned, aligned, and in several chunks."""
    how = {f"transpose_{x}": layout[i] == "T" for i, x in enumerate("ab")}
    for route in routes((layout, DEFAULT_PLAN, "f32", "simt"), narrow, every):
        ran = 0
        for m, n, k in ((5, 21, 37), (8, 24, 40), (4, 16, CHUNKED)):
            a, b, bias = numbers(m, k), numbers(k, n, dtype=narrow), numbers(n, dtype=narrow)
            expected = reference.matmul(*wide(a, b, bias))
            given = (x.T.copy() if t else x for x, t in zip((a, b), how.values(), strict=True))
            try:
                got = ptxgen.matmul(*given, bias, kernel=route.name, **how)
            except OptionError as error:  # by alignment, or by the number of chunks
                assert "requires" in str(error)
                continue
            same_bits(got, expected, spec=route.name)
            ran += 1
        assert ran, route.name


@pytest.mark.parametrize(
    ("layout", "narrow"), [("NT", "f16"), pytest.param("NN", "bf16", marks=pytest.mark.long)]
)
def test_each_way_to_copy_has_the_bits_of_float32(layout, narrow):
    check(layout, narrow)


@pytest.mark.long
@pytest.mark.parametrize("layout", ["NN", "NT", "TT"])  # those of TN copy a weight as NN does
def test_every_kernel_has_the_bits_of_float32(layout):
    check(layout, "f16", every=True)
