"""Products of operands of two dtypes: float32 beside 16 bits, which is brought to it exactly."""

from __future__ import annotations

import numpy as np
import pytest
from batch_cases import numbers
from bits import NUMPY, same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError
from ptxgen.ops.explaining import program_of
from ptxgen.runtime.cpu import CpuDevice

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


def test_the_program_says_so():
    """A step that widens what is narrow, into memory of the program, and one that multiplies."""
    for option, moved in ({"w": "bf16"}, 4 * 8 * 24), ({"x": "f16"}, 4 * 16 * 24):
        steps = program_of("linear", (16, 8, 24), options=option).steps
        assert [step.problem.what.split()[0] for step in steps] == ["cast_f32", "linear"]
        (made,) = steps[0].writes()
        assert made.dtype == "float32" and made.nbytes == moved
        assert any(b.memory is made.memory for b in steps[1].reads())
    assert len(program_of("linear", (16, 8, 24), "bf16", options={"w": "bf16"}).steps) == 1
