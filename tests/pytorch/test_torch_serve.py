"""``ptxgen.torch.batch_invariant`` without a GPU: the CPU device serves CPU tensors."""

from __future__ import annotations

import os
import threading
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import OptionError, UnservedError
from ptxgen.program import prepared
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import lowering

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
serve = pytest.importorskip("ptxgen.torch.serve")
aten = pytest.importorskip("ptxgen.torch.aten")
unserved = pytest.importorskip("ptxgen.torch.unserved")
functions = pytest.importorskip("ptxgen.torch.functions")
images = pytest.importorskip("ptxgen.torch.images")
functional = torch.nn.functional


@pytest.fixture(autouse=True)
def on_the_cpu_device():
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


LENGTHS = {torch.float32: 2100, torch.float64: 2050, torch.bfloat16: 4200, torch.half: 4200}
"""Reductions that the plans cut."""


@pytest.mark.parametrize("dtype", LENGTHS, ids=str)
def test_all_products_of_a_length_have_one_plan(dtype):
    """Every operator, for however many columns; those of decode and of prompts alike."""
    x, w = (v.to(dtype) for v in matrices((2, LENGTHS[dtype]), (16, LENGTHS[dtype])))
    nothing, weights = torch.zeros(16, dtype=dtype), torch.stack([w.T, w.T])
    with pt.batch_invariant(strict=True):
        ways = {
            "mm": x @ w.T,
            "mv": torch.stack([w @ row for row in x]),
            "addmm": torch.addmm(nothing, x, w.T),
            "scaled": torch.addmm(nothing[None], x, w.T, beta=2),
            "bmm": torch.bmm(x[None], w.T[None])[0],
            "an expert a row": torch.bmm(x[:, None], weights)[:, 0],
            "baddbmm": torch.baddbmm(nothing, x[None], w.T[None])[0],
            "einsum": torch.einsum("mk,nk->mn", x, w),
            "einsum of a batch": torch.einsum("bmk,bnk->bmn", x[None], w[None])[0],
            "apart": torch.cat([functional.linear(x, part) for part in w.split((3, 13))], 1),
            "a row": torch.cat([functional.linear(row, w) for row in x.split(1)]),
            "turned": (w @ x.T).T,
        }
        if dtype == torch.bfloat16:
            ends = torch.tensor([1, 2], dtype=torch.int32)
            ways["grouped"] = torch._grouped_mm(x, weights, offs=ends)
        whole = functional.linear(x, w)
    if dtype in (torch.float32, torch.float64):
        assert torch.equal(whole, product(x, w.T))
    assert [name for name, y in ways.items() if not torch.equal(y, whole)] == []


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
    assert torch.equal(b.grad, torch.from_numpy(reference.sum(rows.T.contiguous().numpy(), -1)))
    assert block.served == {"addmm": 1, "mm": 2, "sum": 1}


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
    before, threads = a @ b, torch._C._is_multithreading_enabled
    with pt.batch_invariant() as outer:
        with pt.batch_invariant(tier="simt") as inner:
            a @ b
        assert not threads(), "backward passes run in the thread that calls them"
        with pytest.raises(RuntimeError, match="boom"), pt.batch_invariant():
            raise RuntimeError("boom")
        with pytest.raises(ptxgen.ShapeError):
            torch.mm(a, a)
        a @ b
    a @ b
    assert (outer.served, inner.served) == ({"mm": 1}, {"mm": 1})
    with outer, outer:  # a block can be entered again, and within itself
        a @ b
    assert outer.served["mm"] == 2
    assert torch.equal(a @ b, before), "PyTorch's own kernels are back"
    assert threads(), "and so are autograd's threads"
    with pytest.raises(OptionError, match="tier is 'x'"):
        pt.batch_invariant(tier="x")


def test_other_threads_are_served_while_a_block_is_open():
    a, b = matrices((3, 8), (8, 4))
    opened, closed = threading.Event(), threading.Event()
    blocks = []

    def other():
        with pt.batch_invariant() as block:
            opened.set()
            closed.wait(60)
            a @ b
        blocks.append(block)

    thread = threading.Thread(target=other)
    with pt.batch_invariant() as block:
        a @ b
        thread.start()
        opened.wait(60)
        a @ b  # the block that was entered last counts, whoever asks
    closed.set()
    thread.join()
    assert (block.served, blocks[0].served) == ({"mm": 1}, {"mm": 2})
    assert not serve._overrides.blocks and not serve._overrides.seen


def test_what_is_not_taken_goes_to_pytorch():
    a, b = matrices((3, 8), (8, 4))
    with pt.batch_invariant() as block:
        expected = torch.complex(a, a) @ b.cfloat()
        a.long() @ b.long()
        torch.softmax(a, 1).sum().item()
        with pytest.raises(RuntimeError):
            a @ b.double()
        torch.logcumsumexp(a, 0)
    assert torch.equal(torch.complex(a, a) @ b.cfloat(), expected)
    assert block.served == {"_softmax": 1, "sum": 1}
    assert block.unknown == {"aten.mm.default": 2, "aten._logcumsumexp.default": 1}
    assert block.free == {"mm": 1}, "integers are exact"


def rows_of(shape, seed=0):
    torch.manual_seed(seed)
    return torch.randn(shape)


def test_sums_have_the_contracts_bits_along_any_dimension():
    x = rows_of((3, 4, 20))

    def of(array, how="sum"):
        return torch.from_numpy(getattr(reference, how)(array.contiguous().numpy(), -1))

    with pt.batch_invariant() as block:
        assert torch.equal(x.sum(-1), of(x))
        assert torch.equal(x.mean(-1, keepdim=True)[..., 0], of(x, "mean"))
        assert torch.equal(x.sum((0, 1)), of(x.view(12, 20).T))
        assert torch.equal(x.sum(1), of(x.mT))
        assert torch.equal(x.sum((0, 2)), of(x.transpose(0, 1).reshape(4, 60)))
        assert torch.equal(x.sum(), of(x.view(1, 240))[0])
        assert torch.equal(x.var(-1), of(x, "var"))
        out = torch.empty(3, 4)
        assert torch.equal(torch.sum(x, -1, out=out), of(x))
        assert torch.equal(x.int().sum(-1, dtype=torch.float32), x.int().sum(-1).float())
        assert x[:0].sum(0).tolist() == [[0] * 20] * 4
    assert block.served == {"sum": 8, "mean": 1, "var": 1} and not block.unknown


def test_rows_have_the_bits_of_the_library():
    x, w, b = rows_of((6, 20)), rows_of((20,), 1), rows_of((20,), 2)
    at = [t.numpy() for t in (x, w, b)]
    with pt.batch_invariant() as block:
        found = functional.layer_norm(x, (20,), w, b)
        kept = torch.native_layer_norm(x, (20,), w, b, 1e-5)
        assert torch.equal(x.softmax(-1), torch.from_numpy(reference.softmax(at[0])))
        assert torch.equal(x.log_softmax(-1), torch.from_numpy(reference.log_softmax(at[0])))
        assert torch.equal(x.cumsum(-1), torch.from_numpy(reference.cumsum(at[0])))
    assert torch.equal(found, torch.from_numpy(reference.layer_norm(*at)))
    assert torch.equal(kept[0], found)
    assert torch.equal(kept[1][:, 0], torch.from_numpy(reference.mean(at[0], -1)))
    assert block.served["native_layer_norm"] == 2


def test_what_is_whole_where_nothing_is_recorded(monkeypatch):
    """Norms and softmax make nothing for gradients then, and have the bits of what does."""
    x, w, b = rows_of((3, 20)), rows_of((20,), 1), rows_of((20,), 2)
    calls, call = [], ProgramBuilder.call

    def noted(builder, op, *args, **options):
        if op.name in ("layer_norm_rows", "native_layer_norm", "softmax", "log_softmax"):
            calls.append(op.name)
        return call(builder, op, *args, **options)

    monkeypatch.setattr(ProgramBuilder, "call", noted)
    monkeypatch.setattr(serve, "_memos", {})
    functions = {
        "layer_norm": lambda x: functional.layer_norm(x, (20,), w, b),
        "softmax": lambda x: x.softmax(0),
        "log_softmax": lambda x: functional.log_softmax(x, -1),
    }
    with pt.batch_invariant(strict=True) as block:
        alone = [function(x) for function in functions.values()]
        assert calls == ["layer_norm_rows", "softmax", "log_softmax"]
        recorded = [function(x.clone().requires_grad_()) for function in functions.values()]
        assert calls[3:] == ["native_layer_norm", "softmax", "log_softmax"]
        assert all(r.requires_grad for r in recorded)
        ones = torch.ones(20)  # with weights it is made of parts, the first names the dtype of x
        functional.cross_entropy(x, torch.tensor([3, 0, 19]), ones)
        assert calls[6:] == ["log_softmax"]
    assert all(map(torch.equal, alone, (r.detach() for r in recorded)))
    assert block.served == {"native_layer_norm": 2, "_softmax": 2, "_log_softmax": 3}


IMAGES = {
    "group_norm": lambda x, v: functional.group_norm(x, 3, v, v),
    "batch_norm": lambda x, v: functional.batch_norm(x, v, v.abs(), v, v),
    "max_pool2d": lambda x, v: functional.max_pool2d(x, 3, 2, 1),
    "max_pool2d, large": lambda x, v: functional.max_pool2d(x, 7, 2, 3, ceil_mode=True),
    "max_pool3d": lambda x, v: functional.max_pool3d(x[None], 2),
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", IMAGES)
def test_images_are_whole_where_nothing_is_recorded(name, dtype, layout):
    """Without recorded gradients, operators on images keep no indices, means or scales, and have
    the same bits.
    """
    x, v = rows_of((3, 6, 9, 10)).to(dtype), rows_of((6,), 1).to(dtype)
    x[0, 0, 0, :3], x[1], x[2, :, ::2] = float("nan"), -0.0, 0.0
    x, whole = x.contiguous(memory_format=layout), IMAGES[name]
    (part,) = {p for n, (p, _) in aten.INFERENCE.items() if n == name.split(",")[0]}
    with pt.batch_invariant(strict=True) as block:
        with torch.no_grad():
            alone = whole(x, v)
        recorded = whole(x.clone().requires_grad_(), v)
    assert alone.stride() == recorded.stride() and block.served[part] == 2
    bits = torch.int32 if dtype is torch.float32 else torch.int16
    assert torch.equal(alone.view(bits), recorded.detach().view(bits))


def test_what_no_program_serves_is_not_tried_again(monkeypatch):
    """Batch norm that writes statistics: above autograd and below it a program is tried once."""
    tried, carried_out = [], serve._run_program

    def noted(frame, *rest):
        tried.append(frame.op.name)
        return carried_out(frame, *rest)

    monkeypatch.setattr(serve, "_run_program", noted)
    assert prepared.TORCH.seen(torch.Tensor)  # as on a GPU: calls are told apart
    x, mean, var = rows_of((4, 5, 6)), torch.zeros(5), torch.ones(5)
    with pt.batch_invariant(strict=True) as block, torch.no_grad():
        ys = [functional.batch_norm(x, mean, var, training=True) for _ in range(3)]
    assert tried.count("batch_norm") == tried.count("native_batch_norm") == 1
    assert torch.equal(ys[0], ys[2]) and block.served == {"native_batch_norm": 3}
    expected = 3 * [torch.from_numpy(reference.batch_norm_train(array(x))[0])]
    assert all(map(torch.equal, ys, expected)) and mean.any()


@pytest.mark.parametrize("name", ["leaky_relu_", "elu_", "hardsigmoid_", "hardtanh_", "copysign_"])
def test_in_place_forms_are_as_free_as_their_operators(name):
    for overload in getattr(torch.ops.aten, name).overloads():
        assert unserved.reason(getattr(getattr(torch.ops.aten, name), overload))


def test_batch_norm_without_statistics_is_a_program(monkeypatch):
    """Models standardise filters so: nothing is written, and nothing is kept of variances."""
    x, v = rows_of((1, 5, 24)), rows_of((5,), 1)
    monkeypatch.setattr(images, "_batch_norm_written", None)
    monkeypatch.setattr(serve, "_memos", {})
    with pt.batch_invariant(strict=True) as block:
        y = functional.batch_norm(x, None, None, v, None, training=True)
    assert block.served == {"native_batch_norm": 1}
    assert torch.equal(y, torch.from_numpy(reference.batch_norm_train(array(x), array(v))[0]))


def test_what_is_not_whole_is_made_of_parts():
    """Weights of other shapes and dtypes, tangents: as PyTorch's own operator has it."""
    x, w = rows_of((3, 4, 20)), rows_of((4, 20), 1)
    with pt.batch_invariant(strict=True) as block:
        y = functional.layer_norm(x, (4, 20), w)
        assert functional.softmax(x.half(), -1, dtype=torch.float32).dtype is torch.float32
        with pytest.raises(ptxgen.ShapeError, match="weight has shape"):
            functional.layer_norm(x, (4,), w[:, 0].contiguous())
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            for _ in range(2):
                given = functional.softmax(dual * dual, -1)
                tangent = torch.autograd.forward_ad.unpack_dual(given).tangent
                assert tangent is not None and tangent.any()
    flat = reference.layer_norm(array(x).reshape(3, 80), array(w).reshape(80))
    assert torch.equal(y, torch.from_numpy(flat).view(x.shape))
    assert block.served["native_layer_norm"] == 1


def test_softmax_of_float64_is_served():
    x = rows_of((3, 40)).double().requires_grad_()
    with pt.batch_invariant(strict=True) as block:
        y = torch.softmax(x, -1)
        loss = functional.cross_entropy(x, torch.tensor([3, 0, 39]), torch.ones(40).double())
        (dx,) = torch.autograd.grad(loss, x)
    assert torch.equal(y.detach(), torch.from_numpy(reference.softmax(array(x))))
    logs = torch.from_numpy(reference.log_softmax(array(x)))
    assert loss.item() == -(logs[0, 3] + logs[1, 0] + logs[2, 39]).item() / 3
    assert dx.dtype is torch.float64 and dx.any()
    assert block.served == {"_softmax": 1, "_log_softmax": 1, "_log_softmax_backward_data": 1}


def test_group_norms_have_the_bits_of_the_library():
    x, w, b = rows_of((2, 6, 5)), rows_of((6,), 1), rows_of((6,), 2)
    x.requires_grad_()
    with pt.batch_invariant(strict=True) as block:
        y, mean, _ = torch.native_group_norm(x, w, b, 2, 6, 5, 3, 1e-5)
        (dx,) = torch.autograd.grad(y, x, y.detach())
    same_bits(
        array(y), reference.group_norm(array(x), 3, array(w), array(b)), seed=0, spec="", what="y"
    )
    assert torch.equal(mean, torch.from_numpy(reference.mean(array(x).reshape(2, 3, 10), -1)))
    alone = pt.group_norm(x, 3, w, b)
    assert torch.equal(dx, torch.autograd.grad(alone, x, y.detach())[0])
    assert block.served == {"native_group_norm": 1, "native_group_norm_backward": 1}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_of_classes_have_the_bits_of_the_library(dtype, reduction):
    """Cross-entropy and its gradients have the library's bits in the block and compiled; 16-bit
    logits that a model widens stay so.
    """
    x, target = rows_of((7, 20)).to(dtype), torch.tensor([3, 0, 19, 4, 4, 5, 1])
    how = {"ignore_index": 4, "label_smoothing": 0.25, "reduction": reduction}

    def loss(x):
        x = x.float() if dtype is torch.bfloat16 else x
        return functional.cross_entropy(x.view(7, 20), target, **how)

    found = []
    backend = pt.Backend(strict=True)
    for run in (loss, torch.compile(loss, backend=backend, fullgraph=True)):
        given = x.clone().requires_grad_()
        with pt.batch_invariant(strict=True) as block:
            y = run(given)
            (dx,) = torch.autograd.grad(y, given, torch.full_like(y, 0.75))
        found.append((y.detach(), dx))
        if run is loss:
            assert block.served["cross_entropy_loss"] == 1
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    wide = x if dtype is torch.float64 else x.float()
    expected = reference.cross_entropy(array(wide), target.numpy(), **how)
    same_bits(array(found[0][0]), np.asarray(expected), seed=0, spec="", what="loss")
    assert not backend.report().torch


def test_losses_under_autocast_read_float32():
    x, target = rows_of((7, 20)).bfloat16(), torch.arange(7)

    def loss(x):
        with torch.autocast("cpu", torch.bfloat16):
            return functional.cross_entropy(x, target)

    def widened(x):
        return functional.cross_entropy(x.float(), target)

    compiled = torch.compile(loss, backend=pt.Backend(), fullgraph=True)
    found = []
    for run in (widened, loss, compiled):
        given = x.clone().requires_grad_()
        with pt.batch_invariant(strict=True) as block, torch.no_grad():
            alone = run(x)
        with pt.batch_invariant(strict=True):
            run(given).backward()
        assert alone.dtype is torch.float32
        assert run is compiled or block.served == {"cross_entropy_loss": 1}
        found.append((alone, given.grad))
    assert all(torch.equal(a, b) for each in found[1:] for a, b in zip(found[0], each, strict=True))


def test_losses_that_are_no_numbers():
    """Losses of no target, as PyTorch's; of one that is no class, for which PyTorch stops a GPU."""
    x, ignored = rows_of((3, 20)), torch.full((3,), -100)
    wrong = torch.tensor([0, -100, 20])
    with pt.batch_invariant(strict=True):
        assert functional.cross_entropy(x, ignored).isnan()
        assert functional.cross_entropy(x, ignored, reduction="sum") == 0
        for reduction in ("sum", "mean"):
            assert functional.cross_entropy(x, wrong, reduction=reduction).isnan()
        rows = functional.cross_entropy(x, wrong, reduction="none")
    assert rows.isnan().tolist() == [False, False, True] and rows[1] == 0


PLACES = (torch.arange(3 * 4 * 20).view(3, 4, 20) * 7) % 11 % 6
SERVED = {
    "softmax": lambda x: x.softmax(-1),
    "softmax down": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "cross entropy": lambda x: functional.cross_entropy(x.flatten(0, 1), torch.arange(12)),
    "layer norm": lambda x: functional.layer_norm(x, (20,), torch.arange(20.0), torch.ones(20)),
    "rms norm": lambda x: functional.rms_norm(x, (20,), torch.arange(20.0)),
    "group norm": lambda x: functional.group_norm(x, 2, torch.arange(4.0), torch.ones(4)),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "topk": lambda x: x.topk(3, -1)[0],
    "sort": lambda x: x.sort(1)[0],
    "cumsum": lambda x: x.cumsum(1),
    "embedding": lambda x: functional.embedding(torch.tensor([[3, 1], [3, 0]]), x.view(12, 20)),
    "gather": lambda x: x.gather(1, torch.tensor([[[1] * 20, [0] * 20]] * 3)),
    "index": lambda x: x[torch.tensor([0, 2, 0]), torch.tensor([1, 1, -3])],
    "index add": lambda x: torch.zeros(2, 4, 20).index_add(0, torch.tensor([0, 1, 0]), x),
    "scatter add": lambda x: torch.ones(3, 6, 20).scatter_add(1, PLACES, x),
    "scatter few": lambda x: torch.ones(4, 6, 21).scatter_add(1, PLACES[:, :3], x[:, :3]),
    "scatter sum": lambda x: torch.ones(3, 6, 20).scatter_reduce(1, PLACES, x, "sum"),
    "scatter anew": lambda x: torch.ones(3, 6, 20).scatter_reduce(
        1, PLACES, x, "sum", include_self=False
    ),
    "attention": lambda x: attention(x, x, x),
    "causal": lambda x: attention(x, x, x, is_causal=True, scale=0.3),
    "bias": lambda x: attention(x, x, x, attn_mask=torch.arange(16.0).view(4, 4)),
    "one query": lambda x: attention(x[:, -1:], x, x),
    "shared heads": lambda x: attention(x.repeat(2, 1, 1), x, x, enable_gqa=True, is_causal=True),
}


def attention(q, k, v, **options):
    return functional.scaled_dot_product_attention(q[None], k[None], v[None], **options)[0]


@pytest.mark.parametrize("name", SERVED)
def test_values_and_gradients_are_near_pytorchs(name):
    x = rows_of((3, 4, 20)).requires_grad_()
    expected = SERVED[name](x)
    dy = torch.randn_like(expected)
    (dx,) = torch.autograd.grad(expected, x, dy)
    with pt.batch_invariant(strict=True) as block:
        y = SERVED[name](x)
        (mine,) = torch.autograd.grad(y, x, dy)
    assert block.served
    for got, other in ((y, expected), (mine, dx)):
        # Sums of at most 60 terms in another order: roundings below 2**-18 of the largest.
        assert (got - other).abs().max() <= 2**-18 * max(other.abs().max(), 1)


def test_masked_attention():
    x = rows_of((2, 4, 20))
    mask = torch.tensor([[1, 0, 1, 0], [0] * 4, [1] * 4, [0, 0, 0, 1]]).bool()
    with pt.batch_invariant() as block:
        y = attention(x, x, x, attn_mask=mask)
        assert not y[:, 1].any(), "a row without keys is zero, as PyTorch has it"
        # One key has all the weight, p: p * v is rounded, and its quotient by p.
        assert ((y[:, 3] - x[:, 3]).abs() <= 2**-23 * (1 + 2**-24) * x[:, 3].abs()).all()
        assert torch.equal(attention(x[:1], x[:1], x[:1], attn_mask=mask), y[:1])
        attention(x, x, x, dropout_p=0.5)
    assert block.served["scaled_dot_product_attention"] == 2
    assert block.unknown["aten.scaled_dot_product_attention.default"] == 1


MASKS = {
    "none": {},
    "scaled": {"scale": 0.3},
    "causal": {"is_causal": True},
    "keys": {"attn_mask": torch.tensor([[[[1, 0, 1, 1, 0]]], [[[0] * 5]]]).bool()},
    "added": {"attn_mask": torch.arange(20.0).view(4, 5) - 9},
    "a mask for more": {"attn_mask": torch.zeros(2, 1, 4, 5), "enable_gqa": False},
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_is_the_same_where_gradients_are_recorded(name, dtype):
    """Attention has the same bits fused (nothing recorded) and operator by operator, with infinite
    queries and keys.
    """
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, heads, n, 8) for heads, n in ((4, 4), (2, 5), (2, 5)))
    q[0, 1, 2] = torch.inf
    k[1, 1, 4, 0] = -torch.inf
    options = {"enable_gqa": True, **MASKS[name]}
    if "attn_mask" in options and options["attn_mask"].dtype != torch.bool:
        options["attn_mask"] = options["attn_mask"].to(dtype)
    given = [t.to(dtype) for t in (q, k, v)]
    if not options["enable_gqa"]:
        given = [t[:1, :2] for t in given]
    with pt.batch_invariant(strict=True):
        y = functional.scaled_dot_product_attention(*given, **options)
        z = functional.scaled_dot_product_attention(
            *(t.clone().requires_grad_() for t in given), **options
        )
    assert z.requires_grad and not y.requires_grad and y.isnan().any()
    same_bits(array(y.float()), array(z.float()), seed=1, what=name)


def test_gradients_of_convolutions_share_the_copy_of_dy():
    """Gradients of both operands and a bias: what all read is brought to channels last once."""
    of = torch.ops.aten.convolution_backward.default
    op = aten.operation(
        "convolution_backward", aten.LOWERED["convolution_backward"], serve._parameters(of)
    )
    image, filters = (2, 16, 8, 8), (16, 16, 3, 3)
    dy, x, w = (rows_of(shape).bfloat16() for shape in (image, image, filters))
    one, none = [1, 1], [0, 0]
    given = dy, x, w, [16], one, one, one, False, none, 1, [True] * 3
    program = lowering(op, {f"a{i}": v for i, v in enumerate(given)})[1].program
    reading = [step for step in program.steps if any(b.memory.name == "a0" for b in step.reads())]
    assert [step.problem.what.split()[0] for step in reading] == ["copy"]


ALONE = {
    "by head": ((2, 4, 3, 8), (2, 4, 5, 8), {}),
    "by token": ((2, 3, 4, 8), (2, 3, 2, 8), {"is_causal": True, "enable_gqa": True}),
    "a mask": ((2, 3, 4, 8), (2, 5, 2, 8), {"attn_mask": MASKS["keys"]["attn_mask"]}),
    "a bias": ((2, 3, 4, 8), (2, 5, 4, 8), {"attn_mask": torch.arange(15.0).view(3, 5)}),
    "causal, fewer keys": ((2, 4, 5, 8), (2, 4, 3, 8), {"is_causal": True}),
}


@pytest.mark.parametrize("name", ALONE)
def test_attention_is_one_node_that_gives_what_its_parts_give(name, monkeypatch):
    q, k, options = ALONE[name]
    given = rows_of(q), rows_of(k, 1), rows_of(k, 2)
    if name != "by head" and not name.startswith("causal"):
        given = tuple(t.transpose(1, 2) for t in given)
    mask = options.get("attn_mask")
    options = {"enable_gqa": True, **options}

    def called():
        leaves = [t.detach().requires_grad_() for t in given]
        leaves[1].requires_grad_(name != "by head")
        if mask is not None and mask.is_floating_point():
            leaves.append(mask.clone().requires_grad_())
            options["attn_mask"] = leaves[-1]
        y = functional.scaled_dot_product_attention(*leaves[:3], **options)
        dy = torch.arange(y.numel()).view(y.shape) / y.numel() - 0.5
        nodes = [type(n).__name__ for n, _ in y.grad_fn.next_functions if n is not None]
        wanted = [t for t in leaves if t.requires_grad]
        return {*nodes} == {"AccumulateGrad"}, (y, *torch.autograd.grad(y, wanted, dy))

    with pt.batch_invariant():
        one, found = called()
        monkeypatch.setattr(aten, "record_fused", lambda *args, **options: None)
        _, expected = called()
    assert one == (not name.startswith("causal"))
    for x, part in zip(found, expected, strict=True):
        assert torch.equal(x, part) and x.stride() == part.stride()


def test_what_is_recorded_once_types_of_tensors_are_known(monkeypatch):
    """From the second call on, as on a GPU, the block asks first whether autograd records it."""
    monkeypatch.setattr(prepared.TORCH, "types", {torch.Tensor})
    x, w = rows_of((2, 3, 20)), rows_of((20,), 1)
    with pt.batch_invariant(strict=True) as block:
        for function in (
            lambda x: functional.layer_norm(x, (20,), w),
            lambda x: x.softmax(-1),
            lambda x: attention(x, x, x),
        ):
            y, z = function(x), function(x.clone().requires_grad_())
            assert torch.equal(y, z) and z.requires_grad and not y.requires_grad
    assert block.served["scaled_dot_product_attention"] == 2


def test_attention_whose_operands_broadcast():
    """A query for many keys, and values for many of both: sums of what each of them gets."""
    torch.manual_seed(1)
    shapes = (1, 2, 3, 8), (5, 1, 4, 8), (1, 1, 4, 8)
    given = [torch.randn(s, requires_grad=True) for s in shapes]
    whole = [t.detach().expand(5, 2, *t.shape[2:]).requires_grad_() for t in given]
    dy = torch.randn(5, 2, 3, 8)
    with pt.batch_invariant(strict=True):
        y, z = (functional.scaled_dot_product_attention(*each) for each in (given, whole))
        found, parts = (torch.autograd.grad(r, t, dy) for r, t in ((y, given), (z, whole)))
    assert torch.equal(y, z)
    for dx, part, of in zip(found, parts, given, strict=True):
        axes = tuple(i for i in (0, 1) if of.shape[i] == 1)
        total = reference.sum(array(part), axes).reshape(of.shape)
        same_bits(array(dx), total, what=str(of.shape))


@pytest.mark.parametrize("recorded", [False, True])
def test_scores_of_minus_infinity_are_no_keys(recorded):
    q = torch.full((1, 2, 1, 4), torch.inf, requires_grad=recorded)
    k, v = -torch.ones(1, 2, 3, 4), rows_of((1, 2, 3, 4))
    expected = functional.scaled_dot_product_attention(q, k, v)
    with pt.batch_invariant():
        found = functional.scaled_dot_product_attention(q, k, v)
    assert torch.equal(found, expected) and not found.any()


def test_equals_are_ordered_by_place():
    x = torch.tensor([[1.0, 3, 3, 0, 3, 1]])
    with pt.batch_invariant():
        assert x.topk(2).indices.tolist() == [[1, 2]]
        assert x.topk(5, largest=False).indices.tolist() == [[3, 0, 5, 1, 2]]
        assert x.sort(descending=True).indices.tolist() == [[1, 2, 4, 0, 5, 3]]
        values, indices = torch.empty(0), torch.empty(0, dtype=torch.long)
        torch.topk(x, 1, out=(values, indices))
        assert (values.tolist(), indices.tolist()) == ([[3]], [[1]])


def test_groups_of_rows():
    a, b = rows_of((6, 8)), rows_of((3, 8, 4), seed=1)
    ends = torch.tensor([2, 2, 6], dtype=torch.int32)
    with pt.batch_invariant():
        rows = torch.cat([a[:2] @ b[0], a[2:] @ b[2]])
        found = aten._grouped_mm("auto", a, b, ends)
        assert torch.equal(found, rows)
        inner = aten._grouped_mm("auto", a.T, b.mT.reshape(12, 8)[:6], ends)
        assert torch.equal(inner[2], a[2:].T @ b.mT.reshape(12, 8)[2:6]) and not inner[1].any()


@pytest.mark.parametrize(("dtype", "tier"), [("float64", "auto"), ("bfloat16", "simt")])
def test_groups_that_cut_k_are_chains(dtype, tier):
    """Kernels take a group's k's as one chain, and so do the products of what has no kernel."""
    x, dy = (rows_of((2100, 2), seed=i).to(getattr(torch, dtype)) for i in range(2))
    ends = torch.tensor([2080, 2100], dtype=torch.int32)
    wide = torch.float64 if dtype == "float64" else torch.float32
    found = aten._grouped_mm(tier, x.T, dy, ends, out_dtype=wide)
    for group, part in enumerate((slice(0, 2080), slice(2080, 2100))):
        how = {"layout": "kn", "tier": tier, "out_dtype": wide}
        chain = ptxgen.linear_wgrad(x[part], dy[part], chain=True, **how)
        assert torch.equal(found[group], chain)
    assert not torch.equal(found[0], ptxgen.linear_wgrad(x[:2080], dy[:2080], **how))


# -- the three lists --------------------------------------------------------------------------
def test_the_list_of_a_call_is_the_one_that_counts_it():
    x, places = rows_of((3, 8)), (torch.tensor([0, 0]),)
    calls = {
        "mm.default": (x, x.T),
        "sum.dim_IntList": (x, [1]),
        "sigmoid.default": (x,),
        "_softmax.default": (x, -1, False),
        "relu.default": (x,),
        "view.default": (x, [-1]),
        "cumsum.default": (torch.arange(4), 0),  # exact
        "_index_put_impl_.default": (x.clone(), places, x[:2]),
        "_logcumsumexp.default": (x, -1),
        "linalg_inv_ex.default": (x[:3, :3],),
    }
    for adds in (False, True):
        for name, args in calls.items():
            packet, _, which = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet), which)
            given = {"accumulate": adds} if packet == "_index_put_impl_" else {}
            with pt.batch_invariant(watch=True) as block:
                op(*args, **given)
            counted = {"served": block.served, "free": block.free, "unknown": block.unknown}
            assert [k for k, names in counted.items() if any(packet in n for n in names)] == [
                serve.listed(op, args, given)
            ], (name, counted)


def test_the_report():
    x = rows_of((3, 8))
    with pt.batch_invariant(watch=True) as block:
        y = (x @ x.T).relu().view(9) + 1
        torch.logcumsumexp(x, -1)
        torch.bernoulli(y.clamp(0, 1))
    assert block.served == {"mm": 1}
    names = ("relu", "view", "add", "permute", "clamp")
    assert {n: block.free[n] for n in names} == dict.fromkeys(names, 1)
    assert block.unknown == {"aten._logcumsumexp.default": 1, "aten.bernoulli_.Tensor": 1}
    free = f"needs no serving: {sum(block.free.values())}"
    assert str(block.report()).splitlines()[:3] == ["served: 1", "         1 mm", free]
    with pt.batch_invariant() as block:
        x.relu()
    assert not block.free, "not touched, so not counted"


def test_strict_names_the_first_unknown_operator():
    x = rows_of((3, 8))
    block = pt.batch_invariant(strict=True)
    with (
        pytest.raises(UnservedError, match=r"aten\._logcumsumexp\.default may compute rows"),
        block,
    ):
        x.relu()
        torch.logcumsumexp(x, -1)
        raise AssertionError("strict went on")
    assert block.free["relu"] == 1 and block.unknown == {"aten._logcumsumexp.default": 1}
    with pt.batch_invariant(strict=True, allow={"aten._logcumsumexp.default"}) as block:
        torch.logcumsumexp(x, -1)
        torch.cumprod(x.long(), -1)
    assert block.unknown == {"aten._logcumsumexp.default": 1} and block.free["cumprod"] == 1


def test_strict_sees_other_libraries_and_layouts():
    library = torch.library.Library("ptxgen_test_serve", "FRAGMENT")
    library.define("mystery(Tensor x) -> Tensor")
    library.impl("mystery", lambda x: x.clone(), "CPU")
    x = rows_of((3, 8))
    sparse = x.to_sparse()
    with pytest.raises(UnservedError, match="mystery"), pt.batch_invariant(strict=True):
        torch.ops.ptxgen_test_serve.mystery(x)
    with pytest.raises(UnservedError, match=r"aten\.mm"), pt.batch_invariant(strict=True):
        sparse @ x.T
    library._destroy()


def test_every_operator_is_in_one_list():
    """Every kernel of the device is free by a reason, or overridden: served, or unknown."""
    planned = {each.op for each in serve._planned("CPU", True)}
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
    ops = [unserved.overload(n) for n in names if has(n, "CPU")]
    assert len(ops) > 900
    for op in ops:
        if op is not None:
            assert (op in planned) != (unserved.reason(op) is not None and op not in planned)
    listed = [n for names in unserved.REASONS.values() for n in names.split()]
    assert len(listed) == len(set(listed))
    missing = [n for n in listed if not hasattr(torch.ops.aten, n)]
    assert missing == []
    served = {n: unserved.overload(f"aten::{n}") for n in aten.SERVED}
    free = {n for n, op in served.items() if op is not None and unserved.reason(op)}
    assert free == set(functions.FUNCTIONS), "left, they are free"


def test_random_numbers_are_unknown():
    assert unserved.reason(unserved.overload("aten::multinomial")) is None
    assert unserved.reason(unserved.overload("aten::scatter_.reduce")) is None
    assert unserved.reason(unserved.overload("aten::_foreach_norm.Scalar")) is None
    assert unserved.reason(unserved.overload("aten::_foreach_mul.Scalar")) == unserved.POINTWISE


def test_kernels_are_made_once_and_call_what_pytorch_has_now(monkeypatch):
    x = rows_of((3, 8))
    with pt.batch_invariant():
        own = torch.cdist(x, x)  # ptxgen does not compute it
    frames = []
    monkeypatch.setattr(serve, "_frame", lambda *given: frames.append(given))
    theirs = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"[\s\S]*previously registered kernel")
        theirs.impl("_cdist_forward", lambda a, b, *_: a + b + 5, "CPU")
    with pt.batch_invariant() as block:
        assert torch.equal(torch.cdist(x, x), x + x + 5)
        assert block.unknown["aten._cdist_forward.default"] == 1
    theirs._destroy()
    with pt.batch_invariant():
        assert torch.equal(torch.cdist(x, x), own)
    assert not frames


def test_a_block_that_cannot_be_entered_leaves_nothing(monkeypatch):
    a, b = matrices((3, 8), (8, 4))
    before = a @ b

    def refuse(stance):
        raise RuntimeError("not now")

    monkeypatch.setattr(torch.compiler, "set_stance", refuse)
    block = pt.batch_invariant()
    with pytest.raises(RuntimeError, match="not now"), block:
        raise AssertionError("entered")
    assert torch.equal(a @ b, before) and not block.served
    assert not serve._overrides.blocks and not serve._overrides.seen
    monkeypatch.delattr(torch.library, "get_kernel")
    with pytest.raises(ptxgen.errors.PtxgenError, match="needs torch"), block:
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_goes_on():
    a, b = matrices((3, 8), (8, 4))
    with pt.batch_invariant() as block:
        a @ b
        child = os.fork()
        if child == 0:  # its own interpreter: leaves by os._exit, whatever happens
            code = 1
            try:
                with pt.batch_invariant() as inner:
                    a @ b
                code = 0 if inner.served == {"mm": 1} and block.served == {"mm": 1} else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert block.served == {"mm": 1}


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


# -- devices ----------------------------------------------------------------------------------
def on_a_gpu(monkeypatch):
    """Makes a GPU the default device, as far as blocks ask."""
    monkeypatch.setattr(serve, "default_device", lambda: SimpleNamespace(kind="cuda"))


def test_a_device_that_is_not_served_is_named_once(monkeypatch):
    a, b = matrices((6, 40), (40, 9))
    plain = a @ b
    on_a_gpu(monkeypatch)
    warned = pytest.warns(UserWarning, match="does not serve cpu tensors here")
    with warned as told, pt.batch_invariant() as block:
        assert torch.equal(a @ b, plain) and torch.equal(a @ b, plain)
        torch.randn(3)
    assert len(told) == 1 and told[0].filename == __file__
    assert block.unknown == {"aten.mm.default": 2, "aten.normal_.default": 1} and not block.served
    with pt.batch_invariant(strict=True):
        with pytest.raises(UnservedError, match=r"mm.* on cpu tensors: .*use_device\(\"cpu\"\)"):
            a @ b
        with pytest.raises(UnservedError, match=r"normal_.* is not served; compute"):
            torch.randn(3)


def test_the_block_entered_last_says_which_devices_are_served(monkeypatch):
    a, b = matrices((6, 40), (40, 9))
    plain = a @ b
    with warnings.catch_warnings(action="ignore"), pt.batch_invariant() as outer:
        with monkeypatch.context() as patch:
            on_a_gpu(patch)
            with pt.batch_invariant() as inner:
                assert torch.equal(a @ b, plain)
        assert torch.equal(a @ b, product(a, b))
    assert inner.unknown == {"aten.mm.default": 1} and outer.served == {"mm": 1}
    assert not serve._overrides.seen and not serve._overrides.kinds


# -- operators that were unknown --------------------------------------------------------------
FOLDS = {  # sizes of images, and how their windows lie
    "patches": ((6, 8), {"kernel_size": 2, "stride": 2}),
    "overlap": ((5, 6), {"kernel_size": 3}),
    "all": ((7, 5), {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 2), "dilation": 2}),
    "gaps": ((7, 7), {"kernel_size": 2, "stride": 3, "padding": 1}),
    "wide": ((9, 4), {"kernel_size": (8, 1), "dilation": (1, 3)}),
}


@pytest.mark.parametrize("name", FOLDS)
def test_folded_windows(name):
    """Sums of whole numbers are exact."""
    size, how = FOLDS[name]
    windows = functional.unfold(torch.ones(2, 3, *size), **how)
    torch.manual_seed(0)
    x = torch.randint(-8, 9, windows.shape).float()
    plain = functional.fold(x, size, **how)
    image = torch.randn(plain.shape)
    given = x.clone().requires_grad_()
    with pt.batch_invariant() as block:
        y = functional.fold(given, size, **how)
        assert torch.equal(y, plain)
        assert torch.equal(functional.fold(x[1], size, **how), y[1])
        y.backward(image)
        again = image.requires_grad_()
        functional.unfold(again, **how).backward(x)
    assert torch.equal(given.grad, functional.unfold(image.detach(), **how))
    assert torch.equal(again.grad, plain)
    assert block.served == {"col2im": 3, "im2col": 2} and not block.unknown


PADS = {
    "reflect": ((4, 5, 6), (3, 4, 1, 0, 2, 3)),
    "replicate": ((2, 5, 3), (9, 0, 0, 4, 1, 7)),
    "reflect cut": ((7, 5), (-2, 3, 1, -1)),
    "replicate cut": ((7,), (8, -3)),
}


@pytest.mark.parametrize("name", PADS)
def test_gradients_of_images_padded_with_what_is_there(name):
    """Sums of whole numbers are exact, also of 16 bits."""
    size, widths = PADS[name]
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        plain, own = (torch.zeros(2, 3, *size, dtype=dtype).requires_grad_() for _ in range(2))
        y = functional.pad(plain, widths, mode=name.split()[0])
        dy = torch.randint(-2, 3, y.shape).to(dtype)
        y.backward(dy)
        with pt.batch_invariant() as block:
            functional.pad(own, widths, mode=name.split()[0]).backward(dy)
        assert torch.equal(plain.grad, own.grad)
        assert not block.unknown and sum(block.served.values()) == 1


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_places(reduction, weighted):
    """Drawn are whole numbers, whose sums are exact."""
    torch.manual_seed(0)
    x = torch.randint(-9, 9, (3, 4, 5, 7)).float()
    target = torch.randint(-1, 4, (3, 5, 7))
    how = {"weight": torch.tensor([1.0, 2, 0, 4]) if weighted else None, "ignore_index": -1}
    plain, own = (x.clone().requires_grad_() for _ in range(2))
    y = functional.nll_loss(plain, target, reduction=reduction, **how)
    y.sum().backward()
    with pt.batch_invariant() as block:
        z = functional.nll_loss(own, target, reduction=reduction, **how)
        z.sum().backward()
    assert torch.equal(y, z) and torch.equal(plain.grad, own.grad) and not block.unknown


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_of_elements(dtype):
    """Products of powers of two are exact; one zero leaves its own gradient alone."""
    torch.manual_seed(0)
    x = (2.0 ** torch.randint(-1, 2, (3, 4, 5))).to(dtype)
    x[1, 2, 3] = 0
    how = ({}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"dim": -1, "dtype": torch.float32})
    for each in how:
        given, plain = x.clone().requires_grad_(), x.clone().requires_grad_()
        with pt.batch_invariant() as block:
            y = given.prod(**each)
            y.backward(torch.ones_like(y))
        z = plain.prod(**each)
        z.backward(torch.ones_like(z))
        assert torch.equal(y, z) and y.dtype is z.dtype and torch.equal(given.grad, plain.grad)
        assert block.served["prod"] == 1 and not block.unknown, block.report()
    x[1, 2, 3] = 1
    with pt.batch_invariant() as block:
        for dim in (0, 1, -1):
            assert torch.equal(x.cumprod(dim), torch.ops.aten.cumprod(x.double(), dim).to(dtype))
    assert block.served["cumprod"] == 3


def test_rows_of_products_do_not_depend_on_the_batch():
    (x,) = matrices((6, 300), grad=True)
    with pt.batch_invariant() as block:
        y = x.prod(-1)
        (dx,) = torch.autograd.grad(y.sum(), x)
        one = x[2:3].detach().requires_grad_()
        (alone,) = torch.autograd.grad(one.prod(-1).sum(), one)
        assert torch.equal(x[2:3].prod(-1), y[2:3]) and torch.equal(alone, dx[2:3])
        assert torch.equal(x[2:3].cumprod(-1), x.cumprod(-1)[2:3])
    assert not block.unknown


INDICES = {
    "last": (None, None, torch.tensor([3, 0, 3, -1])),
    "middle": (None, torch.tensor([[1, 1], [0, 2]])),
    "two": (None, torch.tensor([1, 1, 0]), torch.tensor([-1, 4, 2])),
    "apart": (torch.tensor([0, 0, 1]), None, torch.tensor([2, 2, 0])),
    "broadcast": (torch.tensor([[0], [1]]), torch.tensor([2, 2, 0])),
    "behind": (None, torch.tensor([0, 0, 1]), None, torch.tensor([[1], [3]])),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize(
    ("op", "counted"), [("index", "_index_put_impl_"), ("_unsafe_index", "_unsafe_index_put")]
)
def test_gradients_of_indices_of_any_dimension(op, counted, name):
    """Sums of whole numbers are exact."""
    (x,) = matrices((2, 3, 5, 4), grad=True)
    call = getattr(torch.ops.aten, op)
    (plain,) = torch.autograd.grad(call(x, INDICES[name]).sum(), x)
    with pt.batch_invariant() as block:
        y = call(x, INDICES[name])
        (dx,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(dx, plain) and torch.equal(y, torch.ops.aten.index(x, INDICES[name]))
    assert block.served[counted] == 1 and not block.unknown


@pytest.mark.parametrize("name", INDICES)
def test_values_put_in_shared_places_have_the_bits_of_the_block_when_compiled(name):
    """bfloat16 values, whose sums PyTorch rounds after each addition. Nothing is PyTorch's."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 4).bfloat16()
    indices = [
        i if i is None or i.shape[-1] == 1 else i.repeat_interleave(5, -1) for i in INDICES[name]
    ]
    values = torch.randn(torch.ops.aten.index(x, indices).shape).bfloat16()
    put = partial(torch.ops.aten.index_put, accumulate=True)
    with pt.batch_invariant():
        expected = put(x, indices, values)
    backend = pt.Backend()
    found = torch.compile(lambda *a: put(a[0], indices, a[1]), backend=backend)(x, values)
    assert torch.equal(found, expected)
    assert "aten.index_put.default" not in backend.report().torch


class Called(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_functions_of_tensors_serve_without_a_block():
    """A compiled graph calls them outside of one, where PyTorch's own sums depend on a GPU."""
    x, source, index = torch.ones(3, 4), torch.ones(6, 4), torch.arange(6)[:, None].expand(6, 4) % 3
    aten = torch.ops.aten
    calls = [
        (aten.scatter_reduce.two, (x, 0, index, source, "sum"), {"include_self": False}),
        (aten._index_put_impl_.default, (x, [index[:, 0]], source, True), {}),
    ]
    for op, args, how in calls:
        with Called() as called:
            serve.functional()[op]("auto", *args, **how)
        sums = {"scatter_add", "index_add", "index_put_", op.overloadpacket.__name__}
        assert not called.names & sums, op
