"""``ptxgen.torch.batch_invariant`` without a GPU: it is told to serve CPU tensors."""

from __future__ import annotations

import threading

import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import OptionError

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
serve = pytest.importorskip("ptxgen.torch.serve")
functional = torch.nn.functional


@pytest.fixture(autouse=True)
def on_the_cpu_device(monkeypatch):
    monkeypatch.setattr(serve, "DEVICES", {"cpu"})
    with ptxgen.use_device("cpu"):
        yield


def matrices(*shapes, grad=False):
    torch.manual_seed(0)
    return [torch.randn(s, requires_grad=grad) for s in shapes]


def array(t):
    return t.detach().numpy()


def product(a, b):
    return torch.from_numpy(reference.matmul(array(a), array(b)))


def test_products_are_served_with_the_contracts_bits():
    a, b, v, bias, c = matrices((6, 40), (40, 9), (40,), (9,), (6, 9))
    with pt.batch_invariant() as block:
        assert torch.equal(torch.mm(a, b), product(a, b))
        assert torch.equal(a @ b.T.contiguous().T, product(a, b))
        assert torch.equal(a[:, ::2] @ b[::2], product(a[:, ::2], b[::2]))
        assert torch.equal(a @ v, product(a, v[:, None])[:, 0])
        assert torch.equal(torch.addmm(bias, a, b), product(a, b) + bias)
        assert torch.equal(torch.addmm(c, a, b), product(a, b) + c)
        assert torch.equal(torch.addmm(c, a, b, beta=0.5, alpha=3), product(a, b) * 3 + c * 0.5)
        nan = torch.full((9,), torch.nan)
        assert torch.equal(torch.addmm(nan, a, b, beta=0), product(a, b))
        assert torch.equal(torch.addmv(c[:, 0], a, v), product(a, v[:, None])[:, 0] + c[:, 0])
        x = a.view(2, 3, 40)
        assert torch.equal(functional.linear(x, b.T, bias).view(6, 9), product(a, b) + bias)
        assert torch.equal(functional.linear(x, b.T).view(6, 9), product(a, b))
        assert torch.equal(torch.einsum("abk,kn->abn", x, b).view(6, 9), product(a, b))
        assert torch.equal(c.clone().addmm_(a, b), product(a, b) + c)
    assert block.served == {"mm": 4, "mv": 1, "addmm": 5, "addmv": 1, "bmm": 1, "addmm_": 1}


def test_batches_of_matrices():
    a, b, c = matrices((3, 4, 20), (3, 20, 5), (3, 4, 5))
    each = torch.stack([product(x, y) for x, y in zip(a, b, strict=True)])
    one = torch.stack([product(x, b[0]) for x in a])
    with pt.batch_invariant():
        assert torch.equal(torch.bmm(a, b), each)
        assert torch.equal(a @ b, each)
        assert torch.equal(torch.baddbmm(c, a, b), each + c)
        assert torch.equal(torch.baddbmm(c, a, b, alpha=2, beta=3), each * 2 + c * 3)
        assert torch.equal(torch.bmm(a, b[:1].expand(3, 20, 5)), one)
        assert torch.equal(a[:, :, None] @ b[:, None], torch.stack(
            [torch.stack([product(r[None], y) for r in x]) for x, y in zip(a, b, strict=True)]
        ))  # fmt: skip
        assert torch.bmm(a[:0], b[:0]).shape == (0, 4, 5)
        with pytest.raises(ValueError, match="batch1 has shape"):
            torch.bmm(a, b[:2])


def test_out_variants():
    a, b, bias = matrices((6, 40), (40, 9), (9,))
    with pt.batch_invariant() as block:
        for out in (torch.empty(6, 9), torch.empty(9, 6).T, torch.empty(0)):
            assert torch.mm(a, b, out=out) is out
            assert torch.equal(out, product(a, b))
            torch.addmm(bias, a, b, out=out)
            assert torch.equal(out, product(a, b) + bias)
        out = torch.empty(2, 6, 9)
        torch.bmm(a.expand(2, 6, 40), b.expand(2, 40, 9), out=out)
        assert torch.equal(out, product(a, b).expand(2, 6, 9))
    assert block.served == {"mm": 3, "addmm": 3, "bmm": 1}


def test_forward_and_backward():
    x, w, b = matrices((2, 3, 20), (7, 20), (7,), grad=True)
    dy = torch.randn(2, 3, 7)
    with pt.batch_invariant() as block:
        y = functional.linear(x, w, b)
        y.backward(dy)
    flat, rows = x.detach().view(6, 20), dy.view(6, 7)
    assert torch.equal(y.detach().view(6, 7), product(flat, w.detach().T) + b.detach())
    assert torch.equal(x.grad.view(6, 20), product(rows, w))
    assert torch.equal(w.grad, product(rows.T, flat))
    assert block.served == {"addmm": 1, "mm": 2}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_autograd(mode):
    x, w, b = matrices((2, 3, 20), (7, 20), (7,))
    expected = product(x.view(6, 20), w.T)
    with mode(), pt.batch_invariant() as block:
        assert torch.equal(functional.linear(x, w, b).view(6, 7), expected + b)
        assert torch.equal((x @ w.T).view(6, 7), expected)
        assert torch.equal(torch.einsum("abk,nk->abn", x, w).view(6, 7), expected)
    assert sum(block.served.values()) == 3


def test_nesting_and_exceptions():
    a, b = matrices((3, 8), (8, 4))
    with pt.batch_invariant() as outer:
        with pt.batch_invariant(tier="simt") as inner:
            a @ b
        with pytest.raises(RuntimeError, match="boom"), pt.batch_invariant():
            raise RuntimeError("boom")
        with pytest.raises(ptxgen.ShapeError):
            torch.mm(a, a)
        a @ b
    a @ b
    assert (outer.served, inner.served) == ({"mm": 2}, {"mm": 1})
    with outer:  # a block can be entered again
        a @ b
    assert outer.served["mm"] == 3
    with pytest.raises(OptionError, match="tier is 'x'"):
        pt.batch_invariant(tier="x")


def test_other_threads_are_not_concerned():
    a, b = matrices((3, 8), (8, 4))
    inside, done = threading.Event(), threading.Event()

    def other():
        inside.wait(60)
        a @ b
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with pt.batch_invariant() as block:
        inside.set()
        done.wait(60)
        a @ b
    thread.join()
    assert block.served == {"mm": 1}


def test_everything_else_is_untouched(monkeypatch):
    a, b = matrices((3, 8), (8, 4))
    expected = a @ b
    with pt.batch_invariant() as block:
        a.cfloat() @ b.cfloat()
        a.long() @ b.long()
        torch.softmax(a, 1).sum().item()
        assert torch.equal(torch.dot(a[0], a[1]), torch.dot(a[0].clone(), a[1]))
        with pytest.raises(RuntimeError):
            a @ b.double()
        monkeypatch.setattr(serve, "DEVICES", {"cuda"})
        assert torch.equal(a @ b, expected)
    assert not block.served


def test_ptxgens_own_operations_work_inside():
    x, w = matrices((3, 8), (4, 8), grad=True)
    expected = pt.linear(x, w)
    with pt.batch_invariant():
        y = pt.linear(x, w)
        y.sum().backward()
    assert torch.equal(y, expected) and x.grad is not None


def test_compiled_functions_run_uncompiled_inside():
    a, b = matrices((3, 8), (8, 4))
    runs = []

    def backend(graph, example):
        def run(*args):
            runs.append(1)
            return graph(*args)

        return run

    compiled = torch.compile(lambda a, b: a @ b, backend=backend)
    compiled(a, b)
    assert runs == [1]
    with pt.batch_invariant() as block:
        same_bits(array(compiled(a, b)), array(product(a, b)))
    assert block.served == {"mm": 1} and runs == [1]
