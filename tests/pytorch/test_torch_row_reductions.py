"""Operations over rows as operators of PyTorch: gradients have the oracle's bits."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ptxgen  # noqa: E402
import ptxgen.torch as ours  # noqa: E402
from ptxgen.errors import GradError, ShapeError  # noqa: E402
from ptxgen.ops import OPERATIONS, norms  # noqa: E402
from ptxgen.oracle.row_reductions import compute  # noqa: E402
from ptxgen.program.build import ProgramBuilder  # noqa: E402
from ptxgen.torch.record import function, recorder  # noqa: E402


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def tensors(*shapes):
    torch.manual_seed(5)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def same(got, expected):
    assert np.array_equal(got.detach().numpy(), expected), (got, expected)


def test_gradients_of_softmax():
    x, dy = tensors((3, 40), (3, 40))
    for name in ("softmax", "log_softmax"):
        y = getattr(ours, name)(x)
        (dx,) = torch.autograd.grad(y, x, dy.detach())
        same(y, compute(name, x.detach().numpy()))
        same(dx, compute(f"{name}_backward", dy.detach().numpy(), y.detach().numpy()))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_of_rows_with_lengths(name):
    """A row's gradient is that of its first ``length`` elements alone, and 0 beyond, where neither
    x nor dy is read.
    """
    x, dy = tensors((4, 40), (4, 40))
    lengths = torch.tensor([0, 1, 17, 40])
    with torch.no_grad():
        for row, length in enumerate(lengths):
            x[row, length:] = torch.nan
            dy[row, length:] = torch.nan
    f = getattr(ours, name)
    y = f(x, lengths=lengths)
    (dx,) = torch.autograd.grad(y, x, dy.detach())
    for row, length in enumerate(lengths):
        one = x[row, :length].detach().requires_grad_()
        (of,) = torch.autograd.grad(f(one), one, dy[row, :length].detach()) if length else (one,)
        assert torch.equal(dx[row, :length], of) and not dx[row, length:].any()
    made = torch.compile(lambda x, n: f(x, lengths=n), fullgraph=True, backend="aot_eager")
    again = made(x, lengths)
    assert torch.equal(torch.autograd.grad(again, x, dy.detach())[0], dx)
    assert torch.equal(again, y)
    turned = f(x.T, 0, lengths=lengths.int())
    assert torch.equal(turned, y.T)
    assert torch.equal(torch.autograd.grad(turned, x, dy.detach().T)[0], dx)


def test_gradients_of_norms():
    x, w, b, dy = tensors((3, 40), (40,), (40,), (3, 40))
    given = [t.detach().numpy() for t in (dy, x, w)]
    dx, dw = torch.autograd.grad(ours.rms_norm(x, w), (x, w), dy.detach())
    expected, scale = compute("rms_norm_backward", *given)
    same(dx, expected)
    rows = (given[0] * (given[1] * scale[:, None])).T
    same(dw, compute("sum", np.ascontiguousarray(rows)))
    dx, _, db = torch.autograd.grad(ours.layer_norm(x, w, b), (x, w, b), dy.detach())
    same(dx, compute("layer_norm_backward", *given)[0])
    same(db, compute("sum", np.ascontiguousarray(given[0].T)))


@contextmanager
def noted(monkeypatch):
    """The names of operations that are lowered meanwhile."""
    asked = set()
    call = ProgramBuilder.call

    def noting(builder, op, *args, **options):
        asked.add(op.name)
        return call(builder, op, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ProgramBuilder, "call", noting)
        yield asked


@pytest.mark.parametrize("norm", [ours.rms_norm, ours.layer_norm])
def test_gradients_by_rows_and_weights_in_one_pass(norm, monkeypatch):
    """Bits are those of two passes, one of which goes down the columns."""
    vectors = 1 if norm is ours.rms_norm else 2
    given = [torch.randn(s).bfloat16().requires_grad_() for s in ((2, 37, 40), *[(40,)] * vectors)]
    dy = torch.randn(2, 37, 40).bfloat16()
    monkeypatch.setattr(norms, "DOWN_LEAST", 40)
    found, made = [], []
    for least in (75, 74):
        monkeypatch.setitem(norms.DOWN_ROWS, norm.__name__, least)
        monkeypatch.setattr(recorder(OPERATIONS[norm.__name__]), "_plans", {})
        with noted(monkeypatch) as asked:
            found.append(torch.autograd.grad(norm(*given), given, dy))
        made.append(asked)
    kind = norm.__name__
    assert made[0] >= {f"{kind}_backward", f"{kind}_wgrad"} and f"{kind}_gradients" not in made[0]
    assert made[1] >= {f"{kind}_gradients"} and f"{kind}_backward" not in made[1]
    for one, other in zip(*found, strict=True):
        assert one.dtype is torch.bfloat16 and torch.equal(one, other)


def test_a_residual_takes_part_in_both_results():
    x, r, w = tensors((3, 40), (3, 40), (40,))
    out, total = ours.rms_norm(x, w, residual=r)
    dx, dr = torch.autograd.grad((out * 2).sum() + total.sum(), (x, r))
    alone = (x + r).detach().requires_grad_()
    (expected,) = torch.autograd.grad((ours.rms_norm(alone, w) * 2).sum() + alone.sum(), alone)
    assert torch.equal(dx, expected) and torch.equal(dr, expected)


def test_gradients_of_losses():
    (x,) = tensors((4, 40))
    target = torch.tensor([3, -100, 39, 0])
    loss = ours.cross_entropy(x, target, label_smoothing=0.1)
    (dx,) = torch.autograd.grad(loss, x)
    dy = np.full(4, np.float32(1) / np.float32(3), np.float32)
    same(
        dx,
        compute(
            "cross_entropy_backward", x.detach().numpy(), target.numpy(), dy, label_smoothing=0.1
        ),
    )
    assert not dx[1].any()


@pytest.mark.parametrize(
    "function",
    [
        ours.softmax,
        ours.log_softmax,
        ours.logsumexp,
        lambda x: ours.cross_entropy(x, torch.tensor([3, -100]), label_smoothing=0.2),
        lambda x: ours.cross_entropy(x, torch.tensor([3, 1]), reduction="none", softcap=4.0),
    ],
)
def test_gradients_of_float64(function):
    """Gradients in float64 pass ``gradcheck``: differences 1e-6 apart are right to 1e-9, its bound
    is 1e-5.
    """
    x = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    assert function(x).dtype is torch.float64
    assert torch.autograd.gradcheck(function, (x,))


def test_a_mean_of_no_losses_has_no_gradient():
    (x,) = tensors((3, 8))
    loss = ours.cross_entropy(x, torch.full((3,), -100))
    (dx,) = torch.autograd.grad(loss, x)
    assert loss == 0 and not dx.any()


@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2)])
def test_reductions_beside_torch(dim):
    """Sums of small integers equal PyTorch's, as they are exact in every order."""
    x = torch.arange(120.0).reshape(3, 5, 8).requires_grad_()
    every = (0, 1, 2) if dim is None else dim
    for keepdim in (False, True):
        got, expected = ours.sum(x, dim, keepdim), torch.sum(x, every, keepdim)
        assert torch.equal(got, expected)
        (one,) = torch.autograd.grad(got.sum(), x)
        assert torch.equal(one, torch.ones_like(x))
        assert torch.equal(ours.amax(x, dim, keepdim), torch.amax(x, every, keepdim))
    (share,) = torch.autograd.grad(ours.amax(x * 0, dim).sum(), x, retain_graph=True)
    assert share.sum() == 0


@pytest.mark.parametrize("dim", [0, -1, None])
def test_gradients_of_products(dim):
    """The product of the others: without zeros, with one, and with two in a row."""
    (x,) = tensors((3, 40))
    with torch.no_grad():
        x.round_(decimals=1)[x == 0] = 1.5
        x[1, 3] = x[2, 5] = x[2, 39] = 0.0
    wide = x.detach().double().requires_grad_()
    y, expected = ours.prod(x, dim), wide.prod() if dim is None else wide.prod(dim)
    dy = torch.randn(y.shape)
    (dx,), (exact,) = (
        torch.autograd.grad(y, x, dy),
        torch.autograd.grad(expected, wide, dy.double()),
    )
    # At most 121 products and two quotients, each off by 2**-24 of it, and f64 by far less.
    assert ((dx - exact).abs() <= 125 * 2**-24 * exact.abs()).all()
    assert exact.count_nonzero() == {0: 40 * 3 - 6, -1: 41, None: 0}[dim]
    if dim == -1:
        given = (t.detach().numpy() for t in (x, dy))
        same(dx, compute("prod_backward", *given))
        assert dx[1].count_nonzero() == 1 and not dx[2].any()


def test_refusals():
    x, _ = tensors((3, 40), (3, 40))
    dy, kept, scale = torch.randn(3, 40), torch.randn(3, 40), torch.rand(3)
    with pytest.raises(GradError, match="rms_norm_wgrad has no gradient"):
        function(OPERATIONS["rms_norm_wgrad"])(dy.requires_grad_(), kept, scale)
    with pytest.raises(ShapeError, match="axis is 2"):
        ours.softmax(x, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ours.softmax(x, dim=0),
        lambda x: ours.rms_norm(x, eps=1e-6),
        lambda x: ours.layer_norm(x),
        lambda x: ours.sum(x, dim=None),
        lambda x: ours.cumsum(x, exclusive=True, reverse=False),
    ],
)
def test_one_graph(function):
    (x,) = tensors((3, 8))
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(compiled, function(x))
    (dx,) = torch.autograd.grad(compiled.sum(), x)
    assert torch.equal(dx, torch.autograd.grad(function(x).sum(), x)[0])


@pytest.mark.parametrize("name", ["var", "std"])
def test_spreads_may_be_as_wide_as_sums(name):
    x = torch.randn(3, 40).bfloat16().requires_grad_()
    y = getattr(ours, name)(x, 1, out_dtype=torch.float32)
    assert torch.equal(y.detach(), getattr(ours, name)(x.detach().float(), 1))
    (dx,) = torch.autograd.grad(y.sum(), x)
    assert dx.dtype is torch.bfloat16 and dx.any()


REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "var", "std", "argmax", "argmin")


def test_an_axis_is_an_integer_or_a_sequence():
    """An axis may be an integer or a sequence, in one compiled graph with nothing left to
    PyTorch.
    """
    (x,) = tensors((3, 4, 5))

    def reduced(x):
        found = [getattr(ours, name)(x, axis) for name in REDUCTIONS for axis in (-1, 0, (1,))]
        return found + [getattr(ours, name)(x, (0, 2)) for name in REDUCTIONS[:7]]

    backend = ours.Backend()
    compiled = torch.compile(reduced, fullgraph=True, backend=backend)(x)
    expected = reduced(x)
    assert all(map(torch.equal, compiled, expected))
    assert not backend.report().torch and not backend.report().unknown
    sums = [sum(y.sum() for y in ys if y.requires_grad) for ys in (compiled, expected)]
    assert torch.equal(*(torch.autograd.grad(s, x)[0] for s in sums))


@pytest.mark.parametrize("axis", [(0, 1), (), "0", 1.5])
def test_an_argument_of_the_largest_has_one_axis(axis):
    with pytest.raises(ShapeError, match="takes an integer, or None for all"):
        ours.argmax(torch.zeros(3, 4), axis)


def test_a_function_that_a_compiler_sees_first_is_the_same_afterwards():
    vars(ours).pop("cumsum", None)
    x = torch.arange(6.0).view(2, 3)
    found = torch.compile(lambda x: ours.cumsum(x), backend="eager", fullgraph=True)(x)
    assert torch.equal(found, ours.cumsum(x))
    assert ours.cumsum.__name__ == "cumsum" and "Order" in (ours.cumsum.__doc__ or "")
