"""Bias and activation of batched products, in the product's own step."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import graph, reference
from ptxgen.errors import DtypeError, OptionError, ShapeError


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ptxgen.use_device("cpu"):
        yield


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("dtype", [np.float32, bfloat16, np.float16])
def test_a_batch_has_the_bits_of_linear(dtype, activation):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 3, 5, 33)).astype(dtype)
    b = rng.standard_normal((3, 17, 33)).astype(dtype)
    bias = rng.standard_normal(17).astype(dtype)
    how = {"activation": activation, "transpose_b": True}
    got = ptxgen.matmul(a, b, bias, **how)
    same_bits(got, reference.matmul(a, b, bias, **how), seed=0, spec="", what="oracle")
    for i in np.ndindex(2, 3):
        one = ptxgen.linear(a[i], b[i[1]], bias, activation=activation, layout="nk")
        same_bits(got[i], one, seed=0, spec="", what=f"product {i}")
    program = graph.trace(lambda a, b, bias: ptxgen.matmul(a, b, bias, **how), a, b, bias)
    assert len(program.steps) == 1


def test_float64_and_mixed_dtypes():
    rng = np.random.default_rng(1)
    a, b, bias = (rng.standard_normal(s) for s in ((2, 3, 9), (2, 9, 5), (5,)))
    got = ptxgen.matmul(a, b, bias)
    same_bits(got, reference.matmul(a, b, bias), seed=1, spec="", what="float64")
    same_bits(got[1], ptxgen.linear(a[1], b[1], bias, layout="kn"), seed=1, spec="", what="alone")
    with pytest.raises(OptionError, match="activation is 'relu'"):
        ptxgen.matmul(a, b, bias, activation="relu")
    narrow = [x.astype(np.float16) for x in (a, b)]
    wide = ptxgen.matmul(*narrow, bias.astype("f4"), out_dtype="float32")
    expected = reference.matmul(*narrow, bias.astype("f4"), out_dtype="float32")
    same_bits(wide, expected, seed=1, spec="", what="a float32 bias")
    with pytest.raises(ShapeError, match=r"bias has shape \[4\]"):
        ptxgen.matmul(a, b, bias[:4])
    with pytest.raises(DtypeError, match="bias has dtype float16"):
        ptxgen.matmul(a, b, bias.astype("f2"))


@pytest.mark.parametrize("activation", [None, "relu", "silu"])
def test_gradients(activation):
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(0)
    given = [torch.randn(*s, requires_grad=True) for s in ((2, 3, 5, 7), (3, 7, 4), (4,))]
    fine = [t.detach().double().requires_grad_() for t in given]
    y = ours.matmul(*given, activation=activation)
    before = torch.matmul(*fine[:2]) + fine[2]
    z = before if activation is None else getattr(torch.nn.functional, activation)(before)
    dy = torch.randn_like(y)
    got, expected = torch.autograd.grad(y, given, dy), torch.autograd.grad(z, fine, dy.double())

    # Bounds from the roundings: one for each product and sum, and 8 for an activation and for its
    # derivative. These have slopes of at most 1.1 and 0.5 (of relu, whose kink is far, 1 and 0).
    u = 2.0**-24
    a, b, bias = (x.detach().abs() for x in fine)
    off = (7 + 1) * u * (a @ b + bias)
    assert activation != "relu" or (before.detach().abs() > off).all()
    exact = activation in (None, "relu")
    assert ((y - z).abs() <= 1.1 * off + (0 if exact else 8 * u * z.abs())).all()
    g, off_g = 1.1 * dy.double().abs(), dy.double().abs() * (0 if exact else 0.5 * off + 9 * u)
    sums = (  # of 4, 5 and 30 products
        (4, lambda g: g @ b.mT),
        (5, lambda g: a.mT @ g),
        (30, lambda g: g.sum((0, 1, 2))),
    )
    for one, other, (terms, total) in zip(got, expected, sums, strict=True):
        bound = total(off_g) + terms * u * total(g + off_g)
        assert ((one - other).abs() <= bound).all()
