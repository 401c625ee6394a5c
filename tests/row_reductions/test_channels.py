"""Batch norm and norms of positions: bits, PyTorch's numbers, gradients, the block, errors."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.ops import OPERATIONS, channels
from ptxgen.program.operation import lowering

SEED = 5
SHAPES = [(3, 5, 4, 7), (6, 8), (2, 3, 171), (2, 4, 3, 2, 5)]
DTYPES = (np.float32, bfloat16, np.float16, np.float64)


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def drawn(shape, dtype=np.float32):
    """x, a running mean and variance, a weight and a bias."""
    rng = np.random.default_rng([SEED, *shape])
    x = rng.standard_normal(shape) * 3 + 1
    mean, weight, bias = rng.standard_normal((3, shape[1]))
    var = rng.random(shape[1]) + 0.5
    return [v.astype(dtype) for v in (x, mean, var, weight, bias)]


def spread(v, x):
    return v.reshape(-1, *[1] * (x.ndim - 2))


@pytest.mark.parametrize("shape", SHAPES)
def test_evaluation_is_its_formula_operation_by_operation(shape):
    dtype = DTYPES[SHAPES.index(shape)]
    x, mean, var, weight, bias = drawn(shape, dtype)
    got = ptxgen.batch_norm(x, mean, var, weight, bias, eps=1e-3)
    wide = np.float64 if dtype is np.float64 else np.float32
    x, *vectors = (v.astype(wide) for v in (x, mean, var, weight, bias))
    mean, var, weight, bias = (spread(v, x) for v in vectors)
    scale = wide(1) / np.sqrt(var + wide(1e-3))
    # rsqrt of the library is within a unit of 1 / sqrt, and what follows is exact but for rounding
    near = ((x - mean) * scale * weight + bias).astype(np.float64)
    unit = 2.0**-50 if wide is np.float64 else 2.0**-21
    unit += {bfloat16: 2.0**-8, np.float16: 2.0**-10}.get(dtype, 0.0)
    size = np.abs((x - mean) * scale * weight) + np.abs(bias)
    assert (np.abs(got.astype(np.float64) - near) <= size * unit).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_are_the_oracles(shape):
    x, mean, var, weight, bias = drawn(shape, DTYPES[SHAPES.index(shape)])
    turned = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    for given in (x, np.moveaxis(turned, -1, 1)):
        pairs = [
            (ptxgen.batch_norm, reference.batch_norm, (mean, var, weight)),
            (ptxgen.batch_norm_train, reference.batch_norm_train, (None, bias, mean, var)),
            (ptxgen.batch_norm_train, reference.batch_norm_train, ()),
            (ptxgen.layer_norm2d, reference.layer_norm2d, (weight, bias)),
        ]
        for ours, oracle, rest in pairs:
            got, expected = ours(given, *rest), oracle(x, *rest)
            if not isinstance(got, tuple):
                got, expected = (got,), (expected,)
            for one, other in zip(got, expected, strict=True):
                assert one.dtype == other.dtype
                same_bits(np.asarray(one), other, seed=SEED, spec="", what=ours.__name__)


@pytest.mark.parametrize("vectors", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_launch_or_two_have_the_same_bits(monkeypatch, dtype, vectors):
    """The scale of a channel, computed for each element or once."""
    x, mean, var, weight, bias = drawn((3, 5, 4, 7), dtype)
    var[0] = 0.0
    given = mean, var, weight if vectors[0] else None, bias if vectors[1] else None
    names = "x", "running_mean", "running_var", "weight", "bias"
    monkeypatch.setattr(channels, "ONE_LAUNCH_MAX", x[:2].size)
    same = reference.batch_norm(x, *given)
    for rows, launches in ((x, 2), (x[:2], 1)):
        pairs = zip(names, (rows, *given), strict=True)
        named = {name: v for name, v in pairs if v is not None}
        assert len(lowering(OPERATIONS["batch_norm"], named)[1].program.steps) == launches
        got = ptxgen.batch_norm(rows, *given)
        same_bits(got, same[: len(rows)], seed=SEED, spec="", what=str(launches))


def test_training_is_made_of_the_librarys_sums():
    """A channel is a row, batch first, then positions."""
    x, mean, var, weight, bias = drawn((3, 5, 4, 7))
    rows = np.ascontiguousarray(np.moveaxis(x, 1, 0)).reshape(5, -1)
    layer = np.stack([reference.layer_norm(r[None])[0] for r in rows])
    y, own, spread_ = reference.batch_norm_train(x)
    assert (np.moveaxis(y, 1, 0).reshape(5, -1) == layer).all()
    assert (own == reference.mean(rows, -1)).all() and (spread_ == reference.var(rows, -1)).all()
    _, new_mean, new_var = reference.batch_norm_train(x, weight, bias, mean, var, momentum=0.25)
    quarter, rest = np.float32(0.25), np.float32(0.75)
    assert (new_mean == own * quarter + mean * rest).all()
    assert (new_var == spread_ * quarter + var * rest).all()


def test_layer_norm2d_is_a_layer_norm_of_positions():
    x, *_, weight, bias = drawn((3, 5, 4, 7))
    expected = reference.layer_norm(np.moveaxis(x, 1, -1).copy(), weight, bias, eps=1e-6)
    assert (np.moveaxis(ptxgen.layer_norm2d(x, weight, bias), 1, -1) == expected).all()


@pytest.mark.parametrize("count", [1, 3, 7])
def test_images_do_not_depend_on_the_batch(count):
    x, mean, var, weight, bias = drawn((7, 5, 6, 3))
    for call in (
        lambda v: ptxgen.batch_norm(v, mean, var, weight, bias),
        lambda v: ptxgen.layer_norm2d(v, weight, bias),
    ):
        assert (call(x[:count]) == call(x)[:count]).all()


def test_where_results_go_and_batches_of_none():
    x, mean, var, weight, bias = drawn((2, 6, 5), bfloat16)
    expected = reference.batch_norm(x, mean, var, weight, bias)
    fine = ptxgen.batch_norm(x, mean, var.astype("f4"), weight, bias, out_dtype="float32")
    assert fine.dtype == np.float32 and (fine.astype(bfloat16) == expected).all()
    assert ptxgen.batch_norm(x, mean, var, weight, bias, out=x) is x and (x == expected).all()
    assert ptxgen.batch_norm(x[:0], mean, var).shape == (0, 6, 5)
    assert ptxgen.layer_norm2d(x[:0]).shape == (0, 6, 5)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda x, v: ptxgen.batch_norm(x[0, 0], v, v), ShapeError, r"takes \[N, C, \*\]"),
        (lambda x, v: ptxgen.batch_norm(x, v[:2], v), ShapeError, "running_mean has shape"),
        (lambda x, v: ptxgen.batch_norm(x, v, v, eps=0.0), OptionError, "eps is 0"),
        (lambda x, v: ptxgen.batch_norm(x, v, v, eps=-1.0), OptionError, "eps is -1"),
        (lambda x, v: ptxgen.batch_norm(x, v, v.astype("f8")), DtypeError, "running_var has dtype"),
        (lambda x, v: ptxgen.batch_norm(x.astype("i4"), v, v), DtypeError, "x has dtype int32"),
        (lambda x, v: ptxgen.batch_norm_train(x, momentum=2.0), OptionError, "momentum is 2"),
        (lambda x, v: ptxgen.batch_norm_train(x[:1, :, :1]), ShapeError, "one value a channel"),
        (lambda x, v: ptxgen.batch_norm_train(x, v[:1]), ShapeError, "weight has shape"),
        (lambda x, v: ptxgen.layer_norm2d(x, v[:1]), ShapeError, "weight has shape"),
    ],
)
def test_what_bad_input_gets(wrong, error, text):
    x, mean, *_ = drawn((2, 6, 5))
    with pytest.raises(error, match=text):
        wrong(x, np.abs(mean))


# -- PyTorch ----------------------------------------------------------------------------------
def tensors(shape, dtype="float32"):
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(v).to(getattr(torch, dtype)) for v in drawn(shape)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", ["evaluation", "training", "positions"])
def test_gradients_are_those_of_f64_and_twice_the_same(shape, how):
    """Gradients repeat and match f64: each sums at most 420 products of numbers below 2^5, in f32,
    so it is off by some 2^-24 of 2^13.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    x, mean, var, weight, bias = tensors(shape)
    dy = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    functional = torch.nn.functional

    def plain(x, w, b):
        m, v = mean.to(x.dtype), var.to(x.dtype)
        if how == "positions":
            moved = functional.layer_norm(x.movedim(1, -1), x.shape[1:2], w, b, 1e-6)
            return moved.movedim(-1, 1)
        return functional.batch_norm(x, m.clone(), v.clone(), w, b, training=how == "training")

    def served(x, w, b):
        if how == "positions":
            return ours.layer_norm2d(x, w, b)
        if how == "training":
            return ours.batch_norm_train(x, w, b, mean, var)[0]
        return ours.batch_norm(x, mean, var, w, b)

    given = [t.clone().requires_grad_() for t in (x, weight, bias)]
    found = torch.autograd.grad(served(*given), given, dy)
    again = torch.autograd.grad(served(*given), given, dy)
    fine = [t.double().requires_grad_() for t in (x, weight, bias)]
    for one, two, other in zip(
        found, again, torch.autograd.grad(plain(*fine), fine, dy.double()), strict=True
    ):
        assert torch.equal(one, two) and one.any()
        # Sums of up to 2^9 terms below 2^4, whose roundings have random signs: 2^4.5 of 2^-20.
        torch.testing.assert_close(one.double(), other, rtol=2e-5, atol=5e-5)


def test_running_statistics_have_no_gradients():
    pytest.importorskip("torch")
    import ptxgen.torch as ours

    x, mean, var, *_ = tensors((2, 6, 5))
    with pytest.raises(GradError, match="no gradients of running_mean"):
        ours.batch_norm(x, mean.requires_grad_(), var).sum().backward()


@pytest.fixture
def served():
    pytest.importorskip("torch")
    return pytest.importorskip("ptxgen.torch").batch_invariant


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("stats", [True, False])
def test_modules_in_the_block(served, kind, stats):
    torch = pytest.importorskip("torch")
    module = getattr(torch.nn, f"BatchNorm{kind}d")(4, track_running_stats=stats)
    plain = getattr(torch.nn, f"BatchNorm{kind}d")(4, track_running_stats=stats)
    x = torch.randn(7, 4, *[5] * kind, generator=torch.Generator().manual_seed(kind))
    given, same = x.clone().requires_grad_(), x.clone().requires_grad_()
    with served(watch=True) as block:
        y = module(given)
        y.square().sum().backward()
        module.eval()
        rest = module(x)
        alone = module(x[2:3]) if stats else None
    z = plain(same)
    z.square().sum().backward()
    expected = reference.batch_norm_train(x.numpy(), np.ones(4, "f4"), np.zeros(4, "f4"))[0]
    assert (y.detach().numpy() == expected).all()
    # Sums of up to 2^10 terms below 2^4, in other orders: 2^5 of 2^-20, for elements. A gradient
    # has two of them, times a few elements.
    torch.testing.assert_close(y, z, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(given.grad, same.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(module.state_dict(), plain.state_dict(), rtol=1e-5, atol=1e-6)
    if stats:
        assert torch.equal(alone, rest[2:3])
    assert not block.unknown, block.report()
    assert block.served["native_batch_norm"] == (3 if stats else 2)
    assert block.served["native_batch_norm_backward"] == 1


def test_the_other_operators_of_batch_norm(served):
    """Batch norm operators that no PyTorch function calls on a CPU have the same results."""
    torch = pytest.importorskip("torch")
    from ptxgen.torch import serve

    x, mean, var, weight, bias = tensors((3, 5, 4, 7))
    x = x.to(memory_format=torch.channels_last)
    first, second = mean.clone(), var.clone()
    with served() as block:
        y, _, _ = torch.native_batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5)
        legit, *kept = torch._native_batch_norm_legit(
            x, weight, bias, first, second, True, 0.1, 1e-5
        )
    assert torch.equal(y, legit) and torch.equal(mean, first) and torch.equal(var, second)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert not block.unknown
    aten = torch.ops.aten
    of = serve.functional()
    # torch.ops' cuDNN has no kernel here: what would serve it is called
    third, fourth = (torch.from_numpy(v) for v in drawn((3, 5, 4, 7))[1:3])
    cudnn, *saved, _ = of[aten.cudnn_batch_norm.default](
        "auto", x, weight, bias, third, fourth, True, 0.1, 1e-5
    )
    assert torch.equal(y, cudnn) and torch.equal(mean, third)
    dy = torch.randn_like(x)
    one = of[aten.cudnn_batch_norm_backward.default](
        "auto", x, dy, weight, None, None, *saved, 1e-5, torch.empty(0)
    )
    two = of[aten.native_batch_norm_backward.default](
        "auto", dy, x, weight, None, None, *kept, True, 1e-5, [True] * 3
    )
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("training", [True, False])
def test_graphs_lower_it(training):
    torch = pytest.importorskip("torch")
    from ptxgen.torch import Backend

    module = torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.ReLU()).train(training)
    plain = torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.ReLU()).train(training)
    backend = Backend()
    made = torch.compile(module, backend=backend)
    x = torch.randn(3, 4, 6, 5, generator=torch.Generator().manual_seed(1))
    given, same = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, z = made(given), plain(same)
    (y * y).sum().backward()
    (z * z).sum().backward()
    # Sums of up to 2^10 terms below 2^4, in other orders: 2^5 of 2^-20, for elements. A gradient
    # has two of them, times a few elements.
    torch.testing.assert_close(y, z, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(given.grad, same.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(module.state_dict(), plain.state_dict(), rtol=1e-5, atol=1e-6)
    report = backend.report()
    assert not report.unknown, report
    assert not any("batch_norm" in name for name in report.torch), report
    torch._dynamo.reset()
