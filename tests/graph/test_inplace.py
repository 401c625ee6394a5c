"""Compiled functions that mutate tensors write in place: results and state are the block's."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxgen.errors import OptionError
from ptxgen.runtime import default_device

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
graphs = pytest.importorskip("ptxgen.torch.graphs")
replay = pytest.importorskip("ptxgen.torch.replay")
test_graph = pytest.importorskip("test_graph")
functional = torch.nn.functional
same, on_the_cpu_device = test_graph.same, test_graph.on_the_cpu_device


def drawn(*shape):
    return torch.randn(shape)


def compared(function, *tensors, calls=2, **options):
    """Compiled as in the block: results and all tensors behind each of some calls; the report."""
    backend = pt.Backend(**options)
    made = torch.compile(function, backend=backend, fullgraph=True)
    for _ in range(calls):
        own, ours = ([t.clone() for t in tensors] for _ in range(2))
        with pt.batch_invariant():
            expected = function(*own)
        found = made(*ours)
        pairs = zip((*_all(expected), *own), (*_all(found), *ours), strict=True)
        assert [i for i, (a, b) in enumerate(pairs) if not same(a, b)] == []
        tensors = own
    return backend.report()


def _all(found):
    return found if isinstance(found, tuple) else (found,)


def places(c):
    return torch.arange(2, -1, -2, device=c.device)


def slices(c, x):
    c[:, 1:3].copy_(x[:, :2])
    c[:, 1] = x[:, 0]
    c.narrow(1, 1, 2).mul_(3)
    return c @ x


def views(c, x):
    c.select(0, 1).add_(x[0])
    c[1][:, 1:].sub_(x[0][:, 1:])
    c.transpose(1, 2)[:, 1:2].copy_(x[:, :1])
    return c[0] @ c[1]


def indices(c, x):
    c.index_copy_(1, places(c), x[:, :2])
    c.index_put_((places(c) % 2, places(c)), x[0, :2])
    c[0].zero_()
    return c @ x


def scattered(c, x):
    c.scatter_(1, torch.zeros_like(x, dtype=torch.int64), x)
    c.scatter_(0, places(c)[:1, None, None] // 2, 4.0)
    return c * x


def chain(c, x):
    c.index_copy_(1, places(c), x[:, :2])
    c[:1].add_(1)
    c.mul_(x)
    return c @ x


def before(c, x):
    y = c @ x, c.clone()
    c.add_(x)
    return *y, c @ x


def statistics(c, x):
    c.mul_(0.9).add_(x.mean(0) * 0.1)
    return x - c.mean(0)


def swapped(c, x):
    old = c.clone()
    c.copy_(x)
    x.copy_(old)
    return c - x


def stacked(c, x):
    c[0].copy_(x[0])
    c[1].copy_(x[1] * 2)
    return c[0] + c[1]


def turned(c, x):
    c.copy_(c.transpose(1, 2).clone() + 0)
    c[:, 0].fill_(1)
    return c @ x


IN_PLACE = (slices, views, indices, scattered, before, statistics, swapped, stacked, turned, chain)


def returned(c, x):
    c.add_(x)
    return c[1:], c @ x


def late(c, x):
    y = c.flip(0).asinh()
    z = (y @ x).asinh() + c
    c[0].add_(x[0])
    return z, c.sum(0)


def smoothed(c, x):
    y = c * 2
    c.lerp_(x, 0.25)
    return y


def added(c, x):
    c.index_put_((places(c) % 2, places(c)), x[0, :2], accumulate=True)
    return c * x


OTHERS = (added, returned, late, smoothed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", IN_PLACE + OTHERS)
def test_mutations(function, dtype):
    tensors = drawn(2, 4, 4).to(dtype), drawn(2, 4, 4).to(dtype)
    report = compared(function, *tensors)
    if function in IN_PLACE:
        assert not report.updated["copied back"]
        assert "arguments that are written: " in str(report)
    report = compared(function, *tensors, passes=["fuse"], calls=1)
    assert not report.updated["in place"]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.lists(st.sampled_from(IN_PLACE + OTHERS), min_size=2, max_size=4))
def test_random_mutations(data, chosen):
    places = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in chosen]

    def function(*given):
        found = []
        for each, (i, j) in zip(chosen, places, strict=True):
            other = given[j] if each is swapped else given[j] * 1
            found += [y * 1 for y in _all(each(given[i], other))]
        return tuple(found)

    torch._dynamo.reset()
    compared(function, drawn(2, 4, 4), drawn(2, 4, 4), drawn(2, 4, 4), calls=1)


def test_a_counter_of_what_is_written():
    """Integers that PyTorch's calls read before they are written, and behind."""

    def function(cache, count, x):
        cache.index_copy_(1, count + torch.arange(2), x)
        count.add_(2)
        seen = torch.arange(8) < count
        return torch.where(seen[:, None], cache.exp(), 0.0) @ x.transpose(1, 2), count * 1

    report = compared(function, drawn(2, 8, 4), torch.tensor([1]), drawn(2, 2, 4), calls=3)
    assert report.updated["in place"]


class Cached(torch.nn.Module):
    """Attention of a token to what a static cache has, written by slices or by indices."""

    def __init__(self, indexed):
        super().__init__()
        self.indexed, self.qkv = indexed, torch.nn.Linear(16, 48, bias=False)
        self.register_buffer("keys", torch.zeros(1, 2, 64, 8))
        self.register_buffer("values", torch.zeros(1, 2, 64, 8))

    def forward(self, x, at):
        q, k, v = self.qkv(x).view(1, 1, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        for cache, new in ((self.keys, k * 0.5), (self.values, v)):
            if self.indexed:
                cache.index_copy_(2, at, new)
            else:
                cache[:, :, 5:6].copy_(new)
        return functional.scaled_dot_product_attention(q, self.keys, self.values).transpose(1, 2)


@pytest.mark.parametrize("indexed", [False, True])
def test_a_cache_is_neither_copied_nor_returned(indexed):
    torch.manual_seed(0)
    model, backend = Cached(indexed).requires_grad_(False), pt.Backend(strict=True)
    made, expected = torch.compile(model, backend=backend), copy.deepcopy(model)
    for place in (3, 4):
        x, at = drawn(1, 1, 16), torch.tensor([place])
        with pt.batch_invariant():
            wanted = expected(x, at)
        assert same(made(x, at), wanted)
        assert same(model.keys, expected.keys) and same(model.values, expected.values)
    report = backend.report()
    assert report.updated == {"in place": 2}
    whole = model.keys.nbytes
    writing = [
        s for p in report.programs for s in p.steps if max(b.nbytes for b in s.writes()) >= whole
    ]
    assert not writing
    steps = [s for p in report.programs for s in p.steps]
    assert ["mul+copy" in str(s.problem.what) for s in steps].count(True) == (not indexed)


@pytest.mark.parametrize("second", [(0, 2), (1, 3), (2, 4)])
def test_arguments_that_share_memory(second):
    def function(a, b, x):
        a.add_(x)
        b.mul_(2)
        return a + b

    x, ours = drawn(2, 4), drawn(4, 4)
    own = ours.clone()
    with pt.batch_invariant():
        expected = function(own[:2], own[slice(*second)], x)
    found = torch.compile(function, backend=pt.Backend())(ours[:2], ours[slice(*second)], x)
    assert same(found, expected) and same(ours, own)


def test_what_the_host_waits_for_is_not_recorded():
    def waiting(function):
        backend = pt.Backend()
        torch._dynamo.reset()
        made = torch.compile(function, backend=backend, fullgraph=True)
        made(drawn(4, 4), drawn(4) > 0)
        (own,) = {segment.of for segment in backend.report()._segments}
        calls = [m.outputs[0] for m in own.sequence if isinstance(m, graphs.TorchCall)]
        return [str(n.target) for n in calls if not own._enqueued(n)]

    def places(x, mask):
        found = mask.cumsum(0) - 1
        return x[torch.arange(4), found] * x

    def numbered(x, mask):
        return torch.where(mask, torch.scalar_tensor(-1.0), x) * x

    def routed(x, mask):
        chosen = x.topk(2).indices
        return torch.zeros_like(x).scatter(1, chosen, 1.0) * x + x.gather(1, chosen).sum()

    def masked(x, mask):
        x[mask] = 1.0
        return x * x

    def by_itself(x, mask):
        mask[mask] = False
        return x * mask

    assert waiting(places) == waiting(numbered) == waiting(routed) == []
    for function in (masked, by_itself):
        assert waiting(function) == ["aten.index_put.default"]


class Recorded:
    """Stand-in for a CUDA graph: runs the schedule at the addresses that it was recorded with."""

    def __init__(self, schedule, own, index):
        self.schedule, self.own = schedule, own
        kept = [x.clone() for x in own]
        self.results = schedule.run(list(own))
        for x, old in zip(own, kept, strict=True):
            if 0 not in x.stride():  # what is expanded is not written
                x.copy_(old)  # nothing is done while a graph is recorded

    def replay(self):
        for x, y in zip(self.results, self.schedule.run(list(self.own)), strict=True):
            x.copy_(y)


@pytest.mark.parametrize("streams", [1, 4])
def test_replayed_on_several_streams(monkeypatch, streams):
    """Programs with a call of PyTorch's between them."""

    def captured(schedule, own, index):
        with schedule.replay.streams.open(default_device()):
            found = Recorded(schedule, own, index)
        return found, found.results

    def function(x, q, k, v):
        h = torch.clamp(x @ q + (x @ k) * (x @ v), min=0.5)  # which stays PyTorch's
        return h @ k, h @ v

    monkeypatch.setattr(replay, "captured", captured)
    monkeypatch.setattr(graphs.Schedule, "_recordable", lambda self: True)
    backend = pt.Backend(capture=True, streams=streams)
    made, weights = torch.compile(function, backend=backend), [drawn(8, 8) for _ in range(3)]
    for _ in range(4):
        x = drawn(4, 8)
        with pt.batch_invariant():
            expected = function(x, *weights)
        assert all(map(same, made(x, *weights), expected))
    (used,) = backend.report().streams
    assert used == 1 if streams == 1 else 1 < used <= streams
    assert f"replayed: 1, on at most {used} streams" in str(backend.report())


def test_streams_are_options():
    for streams in (0, "4", 129):
        with pytest.raises(OptionError, match="takes an integer from 1 to 128"):
            pt.Backend(capture=True, streams=streams)


def test_replayed_with_caches_that_move(monkeypatch):
    """A cache is written where it was when it was recorded, or else copied there and back."""

    def captured(*given):
        found = Recorded(*given)
        return found, found.results

    def function(cache, state, x, at):
        cache.index_copy_(0, at, x)
        state.mul_(0.5).add_(x.sum(0))
        return cache @ state, cache[0]

    monkeypatch.setattr(replay, "captured", captured)
    monkeypatch.setattr(graphs.Schedule, "_recordable", lambda self: True)
    made = torch.compile(function, backend=pt.Backend(capture=True))
    caches = [drawn(8, 4) for _ in range(3)]
    own, state, ours = [c.clone() for c in caches], drawn(4), None
    ours = state.clone()
    for number, which in enumerate((0, 0, 0, 1, 1, 2, 0, 0)):
        x, at = drawn(1, 4), torch.tensor([number])
        with pt.batch_invariant():
            expected = function(own[which], state, x, at)
        found = made(caches[which], ours, x, at)
        assert all(map(same, found, expected)), number
        assert same(ours, state) and all(map(same, caches, own)), number


def test_replayed_with_expanded_arguments(monkeypatch):
    """Masks of models are expanded: they are copied with their strides, each element once."""

    strides = []

    def captured(schedule, own, index):
        strides.extend(x.stride() for x in own)
        found = Recorded(schedule, own, index)
        return found, found.results

    monkeypatch.setattr(replay, "captured", captured)
    monkeypatch.setattr(graphs.Schedule, "_recordable", lambda self: True)
    made = torch.compile(lambda mask, x: x @ x.mT + mask, backend=pt.Backend(capture=True))
    for _ in range(5):
        mask, x = drawn(4).expand(2, 4, 4), drawn(2, 4, 4)
        with pt.batch_invariant():
            expected = x @ x.mT + mask
        assert same(made(mask, x), expected)
    assert (0, 0, 1) in strides


@pytest.mark.parametrize("function", test_graph.SHARING)
def test_replayed_with_outputs_that_are_views(monkeypatch, function):
    """Copies of results share memory as the results do."""

    def captured(*given):
        found = Recorded(*given)
        return found, found.results

    monkeypatch.setattr(replay, "captured", captured)
    monkeypatch.setattr(graphs.Schedule, "_recordable", lambda self: True)
    made = torch.compile(function, backend=pt.Backend(capture=True))
    tensors = test_graph.matrices((6, 4), (6, 4))
    with pt.batch_invariant():
        expected = test_graph.both(function, tensors)
    for _ in range(3):
        assert all(map(same, test_graph.both(made, tensors), expected))
    ours, theirs = made(*tensors), function(*tensors)
    assert test_graph.memory([*tensors, *ours]) == test_graph.memory([*tensors, *theirs])
    (view, *_) = (y for y in ours if y._base is not None)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        view.mul_(2)
