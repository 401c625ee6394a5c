"""Ways in which models are trained: each compiles to the bits of the block, on the CPU device."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import ptxgen

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
functional = torch.nn.functional
checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
WIDTH, WORDS = 16, 20


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield
    torch._dynamo.reset()


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.packed = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = self.packed(self.norm(x)).view(*x.shape[:2], 3, 2, WIDTH // 2)
        q, k, v = heads.float().permute(2, 0, 3, 1, 4)  # which autocast rounds again
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(functional.gelu(y.transpose(1, 2).reshape(x.shape)))


class Model(torch.nn.Module):
    """Language model whose forward pass returns the loss."""

    def __init__(self, checkpointed=False):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.layer, self.head = Layer(), torch.nn.Linear(WIDTH, WORDS)
        self.checkpointed = checkpointed

    def forward(self, ids):
        x = self.words(ids)
        again = partial(checkpoint, self.layer, use_reentrant=False)
        x = (again if self.checkpointed else self.layer)(x)
        return functional.cross_entropy(self.head(x).flatten(0, 1).float(), ids.flatten())


def tokens(count=3, length=9):
    torch.manual_seed(1)
    return torch.randint(0, WORDS, (count, length))


def gradients(model):
    return [p.grad for p in model.parameters()]


def plain(model, called):
    loss = called(tokens())
    loss.backward()
    return [loss.detach(), *gradients(model)]


def accumulated(model, called):
    for ids in tokens().split(1):
        called(ids).backward()
    return gradients(model)


def autocast(model, called):
    with torch.autocast("cpu", torch.bfloat16):
        loss = called(tokens())
    loss.backward()
    return [loss.detach(), *gradients(model)]


def scaled(model, called):
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = called(tokens())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return [p.detach().clone() for p in model.parameters()]


def functionally(model, called):
    """Returns loss and gradients of a functional call with other parameters than the model's."""
    own = {n: (2 * p.detach()).requires_grad_() for n, p in model.named_parameters()}
    loss = called(own, tokens())
    loss.backward()
    return [loss.detach(), *(p.grad for p in own.values())]


@pytest.mark.parametrize(
    ("train", "checkpointed"),
    [
        *((each, False) for each in (accumulated, autocast, scaled, functionally)),
        *((each, True) for each in (plain, autocast)),
    ],
)
def test_trained_as_in_the_block(train, checkpointed):
    """Each way of training compiles to the block's bits. Functional calls are not checkpointed:
    their parameters are gone when eager PyTorch recomputes a checkpoint.
    """
    found = []
    for backend in (None, pt.Backend(strict=True)):
        torch.manual_seed(0)
        model = called = Model(checkpointed)
        if train is functionally:
            called = partial(torch.func.functional_call, model)
        if backend is not None:
            called = torch.compile(called, backend=backend, fullgraph=True)
        with torch.enable_grad() if backend else pt.batch_invariant(strict=True):
            found.append(train(model, called))
    assert len(found[0]) == len(found[1]) and all(map(torch.equal, *found))


@pytest.mark.parametrize("dynamic", [True, pytest.param(None, marks=pytest.mark.long)])
def test_new_sizes_compile_nothing_anew(dynamic):
    """Graphs of one size, of any size but 1, and of sizes of 1 are what there may be."""
    torch.manual_seed(0)
    model, backend, made = Model(), pt.Backend(strict=True), []

    def counted(module, example):
        made.append(module)
        return backend(module, example)

    compiled = torch.compile(model, backend=counted, dynamic=dynamic, fullgraph=True)
    for count, length in ((3, 4), (2, 9), (5, 5), (4, 2), (2, 6)):
        found = []
        for called in (model, compiled):
            model.zero_grad()
            with pt.batch_invariant() if called is model else torch.enable_grad():
                loss = called(tokens(count, length))
                loss.backward()
            found.append([loss.detach(), *(g.clone() for g in gradients(model))])
        assert all(map(torch.equal, *found)), (count, length)
    assert len(made) <= 3


@pytest.mark.long
def test_sequences_spread_over_processes(tmp_path):
    """Logits, losses and dX do not depend on how many there are, by DDP and FSDP, in the block and
    compiled. Gradients of weights are summed by PyTorch: these are those of one process in one.
    """
    worker = Path(__file__).parent / "process_cases.py"
    found = {}
    for count in (1, 2):
        ranks = [[sys.executable, worker, str(i), str(count), tmp_path] for i in range(count)]
        running = [subprocess.Popen(command) for command in ranks]
        assert [each.wait(300) for each in running] == [0] * count
        parts = [torch.load(tmp_path / f"{count}.{i}") for i in range(count)]
        found[count] = {
            case: [torch.cat(x) for x in zip(*(part[case][:3] for part in parts), strict=True)]
            for case in parts[0]
        }
        weights = {case: part[3] for case, part in parts[0].items()}
        for how, compiled in weights:
            expected = weights["plain" if count == 1 else how, False]
            assert all(map(torch.equal, weights[how, compiled], expected)), (how, compiled, count)
    expected = found[1]["plain", False]
    for count, cases in found.items():
        for case, values in cases.items():
            assert all(map(torch.equal, values, expected)), (case, count)


def test_a_parameter_that_autocast_casts_for_each_reader():
    """Gradients of a parameter that autocast casts for each reader add up in its own dtype, in
    block and graph.
    """

    def loss(x, w):
        with torch.autocast("cpu", torch.bfloat16):
            for _ in range(3):
                x = torch.nn.functional.linear(x, w)
        return x.float().square().sum()

    torch.manual_seed(0)
    x, w = torch.randn(3, 8), torch.randn(8, 8, requires_grad=True)
    with pt.batch_invariant():
        (expected,) = torch.autograd.grad(loss(x, w), w)
    compiled = torch.compile(loss, backend=pt.Backend(), fullgraph=True)
    (found,) = torch.autograd.grad(compiled(x, w), w)
    assert torch.equal(found, expected)
    assert torch.is_autocast_cache_enabled()
