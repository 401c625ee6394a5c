"""``logcumsumexp``: bits of every route, what it is beside exact numbers, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from bits import operand, same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.tiles import TABLES

DTYPES = ("f32", "bf16", "f16", "f64")
WAYS = [{"exclusive": e, "reverse": r} for e in (False, True) for r in (False, True)]


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits(dtype):
    """Results have the oracle's bits: several ranks, rows within a lane, a chunk and beyond,
    strides.
    """
    rng = np.random.default_rng(5)
    for shape, kind in (((3, 5), "special"), ((2, 300), "wide"), ((2, 3, 1), "normal"), ((7,), "")):
        x = operand(rng, (*shape[:-1], shape[-1] + 3), kind or "subnormal", dtype)[..., :-3]
        for how in WAYS:
            same_bits(ptxgen.logcumsumexp(x, **how), reference.logcumsumexp(x, **how), what=how)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_bits_of_every_route(dtype):
    """Every route has the oracle's bits for rows longer than a CTA's tile, which carry between
    tiles.
    """
    x = operand(np.random.default_rng(7), (2, 4096 + 520), "normal", dtype)
    x[:, 3000:] += 90  # what is before hardly counts
    expected = reference.logcumsumexp(x, reverse=True)
    for route in TABLES["logscan",].routes:
        name = route.of(dtype).name
        same_bits(ptxgen.logcumsumexp(x, reverse=True, kernel=name), expected, what=name)


def test_a_prefix_depends_on_what_is_before_it():
    x = operand(np.random.default_rng(6), (1, 1100), "wide", "f32")
    whole = ptxgen.logcumsumexp(x)
    for n in (1, 256, 257, 1000):
        same_bits(ptxgen.logcumsumexp(x[:, :n]), whole[:, :n])
    same_bits(whole[:, 0], x[:, 0])
    reverse = ptxgen.logcumsumexp(x, reverse=True)
    same_bits(ptxgen.logcumsumexp(x[:, ::-1].copy())[:, ::-1], reverse)
    before = ptxgen.logcumsumexp(x, exclusive=True)
    assert before[0, 0] == -np.inf


def test_beside_exact_numbers():
    """Within 2^-21 of what is added and of the result: 16 additions of a chunk and one of each
    chunk before, each of an exp that is off by 2^-22 at most; of f64 as much of its own bits. A
    large element behind takes nothing from those before it.
    """
    rng = np.random.default_rng(8)
    for scale in (1, 30, 1e4):
        x = (rng.standard_normal((3, 2000)) * scale).astype(np.float32)
        x[:, -1] = 1e30
        exact = np.logaddexp.accumulate(x.astype(np.longdouble), axis=-1)
        for kind, unit in ((np.float32, 2.0**-21), (np.float64, 2.0**-49)):
            got = ptxgen.logcumsumexp(x.astype(kind))
            bound = 2 * unit * (1 + abs(exact))
            assert (abs(got - exact) <= bound).all(), (kind, scale, np.max(abs(got - exact)))


def test_infinities_and_nan_are_torchs():
    torch = pytest.importorskip("torch")
    inf, nan = np.inf, np.nan
    rows = [
        [-inf, -inf, 1, 2, -inf, 3, -inf, 0],
        [1, inf, 2, -inf, inf, inf, 3, 0],
        [nan, 1, inf, -inf, 0, 0, 0, 0],
        [0, inf, nan, 0, inf, -inf, 0, 0],
        [-inf] * 8,
        [3e38, 3e38, -3e38, 3e38, 0, 0, 0, 0],
        [0, -inf, nan, -inf, 0, 0, 0, 0],
        [-0.0, -1000, -inf, 1000, 0, 0, 0, 0],
    ]
    x = np.array(rows, np.float32)
    wanted = torch.logcumsumexp(torch.from_numpy(x), -1).numpy()
    got = ptxgen.logcumsumexp(x)
    plain = np.isfinite(wanted)
    # In units of 2^-24: an exp is off by 2 of its own, weighs e^-1 at most, and each of up to three
    # additions to a sum from 1 to 2 rounds by 1; a log by 1/2; y, from 2 to 4, by 2. That is below
    # 4 for two numbers (y = 2.3) and below 6 for four (y = 3.4), and as much for PyTorch's; the
    # bound, 4 (1 + y), is 13 and 17. A number alone is exact; 3e38 rounds once in either.
    assert np.array_equal(got[~plain], wanted[~plain], equal_nan=True)
    assert np.allclose(got[plain], wanted[plain], rtol=2.0**-22, atol=2.0**-22)
    same_bits(got, reference.logcumsumexp(x))


def test_in_place_of_nothing_and_refused():
    x = operand(np.random.default_rng(7), (2, 40), "normal", "bf16")
    expected = reference.logcumsumexp(x)
    assert ptxgen.logcumsumexp(x, out=x) is x
    same_bits(x, expected)
    for shape in ((2, 0), (0, 5)):
        assert ptxgen.logcumsumexp(np.zeros(shape, np.float32)).shape == shape
    with pytest.raises(DtypeError, match="x has dtype int32; takes float32 or bfloat16"):
        ptxgen.logcumsumexp(np.ones(3, np.int32))
    with pytest.raises(DtypeError, match="x has dtype int32; takes float32 or bfloat16"):
        reference.logcumsumexp(np.ones(3, np.int32))
    with pytest.raises(OptionError, match="reverse is 1; takes True or False"):
        ptxgen.logcumsumexp(np.ones(3, np.float32), reverse=1)
    with pytest.raises(ShapeError, match="x has shape"):
        ptxgen.logcumsumexp(np.float32(1).reshape(()))
    found = ptxgen.explain("logcumsumexp", 8, 40000, dtype="bfloat16")
    assert len(found.launches) == 3 and list(found.scratch) == ["sums"]


# -- gradients ---------------------------------------------------------------------------------
@pytest.mark.parametrize("how", WAYS, ids=str)
def test_gradients_beside_differences(how):
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(3)
    x = torch.randn(2, 9, dtype=torch.float64, requires_grad=True)

    def function(x):
        y = ours.logcumsumexp(x, **how)
        if how["exclusive"]:  # of nothing it is -inf, whatever x
            y = y[..., :-1] if how["reverse"] else y[..., 1:]
        return y

    assert torch.autograd.gradcheck(function, (x,))


def test_gradients_beside_exact_numbers():
    """Gradients match exact ones for dy of either sign and 0, elements 200 apart, three dtypes.

    Exponents are sums of three numbers up to 250, each rounded, and of a logarithm: 8 * 250 units;
    additions are 16 in a chunk and 3 chunks, each of an exp off by 4 units. bf16 rounds once more.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    rng = np.random.default_rng(4)
    x, dy = rng.standard_normal((3, 700)) * 60, rng.standard_normal((3, 700))
    dy[:, ::5] = 0
    kinds = (torch.float64, 2.0**-53, 0), (torch.float32, 2.0**-24, 0)
    for kind, unit, last in (*kinds, (torch.bfloat16, 2.0**-24, 2.0**-8)):
        given, seed = (torch.from_numpy(v).to(kind) for v in (x, dy))
        (got,) = torch.autograd.grad(ours.logcumsumexp(given.requires_grad_()), given, seed)
        wide, weights = (v.detach().double().numpy().astype(np.longdouble) for v in (given, seed))
        y = np.logaddexp.accumulate(wide, axis=-1)
        with np.errstate(over="ignore"):
            each = np.triu(np.exp(np.minimum(wide[:, :, None] - y[:, None, :], 0)))
        exact = (each * weights[:, None]).sum(-1)
        size = (each * abs(weights[:, None])).sum(-1)
        assert got.dtype is kind
        bound = 2200 * unit * size + last * abs(exact) + 1e-36
        assert (abs(got.double().numpy() - exact) <= bound).all()


def test_its_operator():
    torch = pytest.importorskip("torch")
    from ptxgen.ops import OPERATIONS
    from ptxgen.torch.operators import operator

    made = operator(OPERATIONS["logcumsumexp"])
    torch.library.opcheck(made.default, (torch.randn(2, 30, requires_grad=True),), {})


def test_gradients_of_infinities():
    """An infinite element has no weight in gradients; a NaN makes those of its sums NaN.

    Exponents are sums of numbers up to 3: four roundings of at most 2^-23, and exps and additions
    of 2^-22 each, of 2^-20 in all.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    inf = float("inf")
    rows = [[-inf, -inf, 1.0, 2.0], [0.0, inf, 1.0, 2.0], [1.0, 0.0, float("nan"), 2.0]]
    x = torch.tensor(rows, requires_grad=True)
    (dx,) = torch.autograd.grad(ours.logcumsumexp(x), x, torch.ones(3, 4))
    e = float(np.exp(1) / (np.exp(1) + np.exp(2)))
    wanted = torch.tensor([[0, 0, 1 + e, 1 - e], [1.0, 0, 0, 0]])
    assert torch.allclose(dx[:2], wanted, rtol=2.0**-20, atol=0) and torch.isnan(dx[2]).any()
