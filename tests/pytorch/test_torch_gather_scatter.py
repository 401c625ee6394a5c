"""Operators of moves with indices, prefix sums and selections: fakes, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import GradError, OptionError
from ptxgen.ops import OPERATIONS
from ptxgen.runtime.cpu import CpuDevice

torch = pytest.importorskip("torch")
pytest.importorskip("ptxgen.torch")


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


def checked(name, *given, **options):
    """The result of an operator that says of itself what is so."""
    from ptxgen.torch.operators import operator as made

    operator = made(OPERATIONS[name])
    utilities = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(operator.default, given, options, test_utils=utilities)
    return operator(*given, **options)


def test_embedding_and_its_gradient():
    weight = torch.randn(9, 8, requires_grad=True)
    which = torch.tensor([[1, 3, 3], [0, 1, 8]])
    y = checked("embedding", weight, which, padding_idx=8)
    dy = torch.randn(2, 3, 8)
    y.backward(dy)
    assert torch.equal(y, weight[which])
    expected = reference.embedding_backward(dy.numpy(), which.numpy(), 9, padding_idx=8)
    same_bits(weight.grad.numpy(), expected)
    ddy = checked("embedding_backward", dy.requires_grad_(), which, rows=9, padding_idx=8)
    ddy.backward(ones := torch.ones(9, 8))
    assert torch.equal(dy.grad, ones[which] * (which != 8)[..., None])


def test_slices_and_sums_into_rows():
    x = torch.randn(2, 5, 4, requires_grad=True)
    which = torch.tensor([4, 0, 4], dtype=torch.int32)
    y = checked("gather", x, which, axis=1)
    assert torch.equal(y, x.index_select(1, which))
    y.backward(dy := torch.randn(2, 3, 4))
    assert torch.allclose(x.grad, torch.zeros_like(x).index_add(1, which, dy))
    rows, source = torch.randn(5, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    total = checked("index_add", rows, which, source)
    assert torch.allclose(total, rows.index_add(0, which, source))
    total.backward(d := torch.randn(5, 4))
    assert torch.equal(rows.grad, d) and torch.equal(source.grad, d[which.long()])


def test_elements_are_added(monkeypatch):
    """Elements with an index out of range are not added where indices go unchecked, as on a GPU."""
    monkeypatch.setattr(OPERATIONS["scatter_add"], "checks", None)
    x, source = (torch.randn(2, n, 3, dtype=torch.float64, requires_grad=True) for n in (5, 7))
    which = torch.randint(-1, 6, (2, 7, 3))
    y = checked("scatter_add", x, which, source, axis=1)
    there = (which >= 0) & (which < 5)
    kept = which.clamp(0, 4)
    assert torch.allclose(y, x.scatter_add(1, kept, source.where(there, 0.0)))
    y.backward(dy := torch.randn(2, 5, 3, dtype=torch.float64))
    assert torch.equal(x.grad, dy) and torch.equal(source.grad, dy.gather(1, kept) * there)
    given = x, kept[:, :5], source[:, :5]
    z = ptxgen.torch.scatter_add(*given, 1)
    assert torch.allclose(z, torch.scatter_add(x, 1, *given[1:]))
    assert torch.autograd.grad(z, x, dy)[0].equal(dy)


@pytest.mark.parametrize("exclusive", [False, True])
def test_prefix_sums(exclusive):
    x = torch.randn(2, 30, dtype=torch.float64, requires_grad=True)
    y = checked("cumsum", x, exclusive=exclusive, reverse=False)
    y.backward(dy := torch.randn(2, 30, dtype=torch.float64))
    expected = reference.cumsum(dy.numpy(), exclusive=exclusive, reverse=True)
    same_bits(x.grad.numpy(), expected)
    assert torch.allclose(y, x.cumsum(-1) - (x if exclusive else 0))


def test_the_largest():
    x = torch.randn(3, 20, requires_grad=True)
    values, indices = checked("topk", x, k=4, largest=True)
    assert torch.equal(values, x.topk(4).values)
    values.sum().backward()
    assert torch.equal(x.grad, torch.zeros(3, 20).scatter(1, indices, 1.0))


def test_sorts_counts_and_unique_values():
    x = torch.randint(-3, 3, (3, 20, 2)).double().requires_grad_()
    values, indices = checked("sort", x, axis=1, descending=True)
    expected = torch.sort(x, stable=True, dim=1, descending=True)
    assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)
    dy = torch.randn(3, 20, 2, dtype=torch.float64)
    (dx,) = torch.autograd.grad(values, x, dy)
    assert torch.equal(dx, torch.autograd.grad(expected.values, x, dy)[0])
    assert torch.equal(checked("argsort", x.detach(), axis=0), x.argsort(dim=0, stable=True))
    row = values.detach()[0, :, 0].flip(0)
    found = checked("searchsorted", row, x.detach(), right=True)
    assert torch.equal(found, torch.searchsorted(row, x.detach(), right=True))
    which, weights = torch.randint(0, 5, (30,)), torch.randn(30, requires_grad=True)
    assert torch.equal(checked("bincount", which, minlength=7), which.bincount(minlength=7))
    sums = checked("bincount", which, weights, minlength=7)
    sums.backward(d := torch.randn(7))
    assert torch.allclose(sums, which.bincount(weights, 7).float())
    assert torch.equal(weights.grad, d[which])
    values, count, inverse, counts = checked("unique", which, size=9)
    several = torch.unique(which, return_inverse=True, return_counts=True)
    mine = values[:count], inverse, counts[:count]
    assert all(map(torch.equal, mine, several))


def test_a_block_sorts_by_the_kernels():
    from ptxgen.torch import batch_invariant

    x = torch.randint(-9, 9, (4, 1100)).to(torch.int16)
    with batch_invariant(strict=True) as block:
        found = x.sort(0), x.sort(1, True), x.float().topk(1030), x.argsort(dim=1, stable=True)
    assert block.served["sort"] == 3 and block.served["topk"] == 1
    expected = (
        torch.sort(x, dim=0, stable=True),
        torch.sort(x, dim=1, descending=True, stable=True),
    )
    for mine, own in zip(found[:2], expected, strict=True):
        assert torch.equal(mine.values, own.values) and torch.equal(mine.indices, own.indices)
    assert torch.equal(found[2].indices, expected[1].indices[:, :1030])
    assert torch.equal(found[3], x.argsort(dim=1, stable=True))
    which, weights = torch.randint(0, 5, (30,)), torch.randn(30)
    with batch_invariant(strict=True) as block:
        sums, counts = which.bincount(weights, 9), which.bincount()
    same_bits(sums.numpy(), reference.bincount(which.numpy(), 9, weights.numpy()))
    assert torch.equal(counts, which.bincount()) and block.served["bincount"] == 1


HOW = {"temperature": 0.9, "top_k": 12, "top_p": 0.8}


def test_draws():
    logits = torch.randn(4, 3, 50, requires_grad=True)
    numbers = {f"{name}_number": value for name, value in (HOW | {"seed": -5, "offset": 2}).items()}
    tokens = checked("sample", logits, **numbers)
    expected = reference.sample(logits.detach().numpy(), **HOW, seed=-5, offset=2)
    same_bits(tokens.numpy(), expected)
    assert not tokens.requires_grad
    seeds, offsets = torch.arange(12).reshape(4, 3), torch.full((4, 3), 7)
    warm, few, least = torch.rand(4, 3), torch.full((4, 3), 5, dtype=torch.int32), torch.rand(4, 3)
    each = warm, few, None, least, seeds, offsets
    tokens = checked("sample", logits.detach(), *each, top_p_number=0.9)
    names = ("temperature", "top_k", "min_p", "seed", "offset")
    arrays = (x.numpy() for x in each if x is not None)
    how = dict(zip(names, arrays, strict=True)) | {"top_p": 0.9}
    same_bits(tokens.numpy(), reference.sample(logits.detach().numpy(), **how))
    with pytest.raises(OptionError, match=r"top_p is 0\.0"):
        ptxgen.torch.sample(logits, temperature=1.0, top_p=0.0)


def test_draws_in_compiled_code():
    """Sampling compiles into one graph for any number of rows."""

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def step(logits, offset, least):
        seeds = torch.arange(logits.shape[0])
        how = HOW | {"min_p": least, "seed": seeds, "offset": offset}
        return ptxgen.torch.sample(logits * 2, **how) + 1

    for count in (2, 5):
        logits, offset, least = torch.randn(count, 33), torch.full((count,), 9), torch.rand(count)
        where = {"min_p": least.numpy(), "seed": np.arange(count), "offset": offset.numpy()}
        expected = reference.sample((logits * 2).numpy(), **HOW, **where)
        same_bits(step(logits, offset, least).numpy(), expected + 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
def test_log_probabilities_have_the_bits_of_the_block(dtype):
    """Results and gradients are those of log_softmax of the divided logits, gathered, in a block:
    eager, and compiled for numbers and for tensors.
    """
    from ptxgen.torch import batch_invariant

    torch.manual_seed(3)
    logits, ids = 3 * torch.randn(2, 3, 1030), torch.randint(1030, (2, 3))
    dy, rows = torch.randn(2, 3), torch.tensor([[0.7, 1.0, 1.3], [2.0, 0.1, 1e3]])
    compiled = torch.compile(ptxgen.torch.token_logprobs, fullgraph=True, backend="aot_eager")
    for temperature in (1.0, 0.7, rows):
        x = logits.to(dtype).requires_grad_()
        t = temperature[..., None] if temperature is rows else temperature
        with batch_invariant():
            z = torch.log_softmax(x.float() / t, -1)
            expected = z.gather(-1, ids[..., None])[..., 0]
            (dx,) = torch.autograd.grad(expected, x, dy)
        assert dx.dtype == dtype and dx.any(-1).all()
        for call in (ptxgen.torch.token_logprobs, compiled):
            got = call(x, ids, temperature)
            assert torch.equal(got, expected)
            assert torch.equal(torch.autograd.grad(got, x, dy)[0], dx), (call, temperature)
    got = checked("token_logprobs", logits, ids, rows)
    assert torch.equal(got, ptxgen.torch.token_logprobs(logits, ids, rows))
    with pytest.raises(GradError, match="no gradient of the temperature"):
        ptxgen.torch.token_logprobs(logits, ids, rows.requires_grad_()).sum().backward()


def test_gradients_of_norms():
    dy, x, rstd = torch.randn(2, 6, 8), torch.randn(2, 6, 8), torch.rand(2, 6)
    got = checked("rms_norm_wgrad", dy, x, rstd)
    same_bits(got.numpy(), reference.rms_norm_wgrad(dy.numpy(), x.numpy(), rstd.numpy()))
    assert np.isfinite(got.numpy()).all()


@pytest.mark.parametrize(("shifts", "axis"), [(2, 1), (-9, -2), (5, 1)])
def test_a_gradient_is_rolled_back(shifts, axis):
    from ptxgen.torch.operators import operator

    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    y = ptxgen.torch.roll(x, shifts, axis)
    y.backward(dy := torch.randn(3, 5, dtype=torch.float64))
    assert torch.equal(y, x.roll(shifts, axis))
    assert torch.equal(x.grad, dy.roll(-shifts, axis))
    made = operator(ptxgen.ops.OPERATIONS["roll"])
    torch.library.opcheck(made.default, (x,), {"shifts": shifts, "axis": axis})
    assert torch.autograd.gradcheck(lambda x: ptxgen.torch.roll(x, shifts, axis), (x,))
