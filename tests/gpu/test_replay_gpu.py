"""Calls that are remembered whole: bits on other data, on streams, in graphs, in a block."""

from __future__ import annotations

import numpy as np
import pytest

import ptxgen
from ptxgen import layout, reference
from ptxgen.ops import replay

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
ours = pytest.importorskip("ptxgen.torch")
functional = torch.nn.functional


def concat(x, y):
    return layout.concat((x, y), -1)


def residual(x, y):
    return ptxgen.rms_norm(x, residual=y)


def halves(x, y):
    return layout.rope(x, y[:, :64], y[:, 64:128])


def turned(x, y):
    a, b, cos, sin = x[:, :64], x[:, 64:128], y[:, :64], y[:, 64:128]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[:, 128:]], -1)


def normed(x, y):
    total = x + y
    return reference.rms_norm(x, residual=y)[0], total


CASES = {
    "softmax": (lambda x, y: ptxgen.softmax(x), lambda x, y: reference.softmax(x)),
    "kept": (
        lambda x, y: ptxgen.mean(x, -1, keepdims=True),
        lambda x, y: reference.mean(x, -1, keepdims=True),
    ),
    "down": (lambda x, y: ptxgen.sum(x, 0), lambda x, y: reference.sum(x, 0)),
    "all": (lambda x, y: ptxgen.sum(x), lambda x, y: reference.sum(x)),
    "groups": (lambda x, y: ptxgen.group_norm(x, 5), lambda x, y: reference.group_norm(x, 5)),
    "residual": (residual, normed),
    "concat": (concat, lambda x, y: np.concatenate([x, y], -1)),
    "rope": (halves, turned),
    "turned": (lambda x, y: layout.contiguous(x.T), lambda x, y: x.T),
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """The second call of a kind is followed."""
    monkeypatch.setattr(replay, "PATIENCE", 1)


@pytest.fixture
def decided(monkeypatch):
    """The calls that had no plan, by what was followed."""
    calls = []
    real = replay.followed

    def followed(*args, **named):
        calls.append(args[3])
        return real(*args, **named)

    monkeypatch.setattr(replay, "followed", followed)
    return calls


def drawn(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((7, 130), dtype=np.float32) for _ in range(2)]


def poisoned():
    """What the next results are allocated in has NaN in it."""
    for count in (1, 7, 130, 910, 1820):
        torch.full((count,), torch.nan, device="cuda")


def matches(got, expected):
    got, expected = (x if isinstance(x, tuple) else (x,) for x in (got, expected))
    for one, other in zip(got, expected, strict=True):
        assert np.array_equal(one.cpu().numpy(), np.asarray(other))


@pytest.mark.parametrize("name", CASES)
def test_on_other_data(name):
    function, oracle = CASES[name]
    for seed in range(4):
        x, y = drawn(seed)
        given = [torch.from_numpy(a).cuda() for a in (x, y)]
        poisoned()
        matches(function(*given), oracle(x, y))


def test_second_calls_decide_nothing(decided):
    for _ in range(3):
        for function, _ in CASES.values():
            function(*(torch.from_numpy(a).cuda() for a in drawn(1)))
    assert len(decided) <= len(CASES)


def test_on_a_stream_and_in_a_graph():
    x, y = (torch.from_numpy(a).cuda() for a in drawn(5))
    expected = [function(x, y) for function, _ in CASES.values()]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = [function(x, y) for function, _ in CASES.values()]
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    a, b = torch.zeros_like(x), torch.zeros_like(y)
    with torch.cuda.graph(graph):
        captured = [function(a, b) for function, _ in CASES.values()]
    a.copy_(x)
    b.copy_(y)
    graph.replay()
    torch.cuda.synchronize()
    for results in (found, captured):
        for one, other in zip(results, expected, strict=True):
            several = other if isinstance(other, tuple) else (other,)
            matches(one, tuple(t.cpu().numpy() for t in several))


def test_what_is_whole_in_a_block_has_the_bits_of_what_is_recorded():
    x, w = (torch.from_numpy(a).cuda() for a in drawn(6))
    w = w[0].contiguous()
    functions = (
        lambda x: functional.layer_norm(x, (130,), w),
        lambda x: functional.rms_norm(x, (130,), w, 1e-6),
        lambda x: functional.rms_norm(x, (130,)),
        lambda x: functional.softmax(x, -1),
        lambda x: functional.log_softmax(x, 0),
    )
    with ours.batch_invariant(strict=True) as block:
        for function in functions:
            recorded = function(x.clone().requires_grad_())
            recorded.sum().backward()
            for _ in range(3):
                poisoned()
                assert torch.equal(function(x.clone()), recorded.detach())
        wide = functional.layer_norm(x.bfloat16(), (130,), w.bfloat16())
        assert torch.equal(wide, ptxgen.layer_norm(x.bfloat16(), w.bfloat16()))
    assert not block.unknown
