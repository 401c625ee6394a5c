"""Calls that are remembered whole: what they fire again, for what, and what is not remembered."""

from __future__ import annotations

import contextlib
import gc
import threading
from types import FunctionType

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import torch_fakes  # noqa: E402

import ptxgen  # noqa: E402
import ptxgen.torch as ours  # noqa: E402
from ptxgen import layout  # noqa: E402
from ptxgen.errors import DtypeError, GradError, ShapeError  # noqa: E402
from ptxgen.ops import replay, run  # noqa: E402
from ptxgen.ops.replay import remembered  # noqa: E402
from ptxgen.torch import serve  # noqa: E402

functional = torch.nn.functional
HALF = torch.bfloat16


@pytest.fixture(scope="module")
def gpu():
    """A GPU; what is learnt of it is forgotten at the end."""
    known = replay.TENSORS, replay.OPTIONAL
    before = [set(each) for each in known]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve, "DEVICES", {"cpu"})
        patch.setattr(replay, "PATIENCE", 1)
        device = torch_fakes.gpu(patch)
        ptxgen.logsumexp(torch.zeros(1, 8))  # so that the type of tensors is known
        yield device
    for each, kept in zip(known, before, strict=True):
        each.intersection_update(kept)
    for each in gc.get_objects():
        if type(each) is dict and any(map(learnt, list(each.values()))):
            each.clear()


def learnt(value):
    plan = type(value) is FunctionType and value.__code__.co_filename == "<plan>"
    return plan or type(value) is run._Entry


@pytest.fixture
def plans(gpu, monkeypatch):
    """Whether each followed call became a plan."""
    found = []
    real = replay.Recorder.plan

    def plan(self, *args):
        made = real(self, *args)
        found.append(made is not None)
        return made

    monkeypatch.setattr(replay.Recorder, "plan", plan)
    return found


@contextlib.contextmanager
def nothing_remembered():
    """All calls are careful ones."""
    kept = set(replay.TENSORS)
    replay.TENSORS.clear()
    yield
    replay.TENSORS.update(kept)


@contextlib.contextmanager
def nothing_decided(monkeypatch):
    """No call may be a careful one."""
    with monkeypatch.context() as patch:
        patch.setattr(run, "_checked", None)
        patch.setattr(replay, "followed", None)
        yield


def rows(*shape, dtype=HALF):
    return torch.randn(shape).to(dtype)


def operands():
    """New ones, which lie as those before."""
    packed = rows(2, 6, 3, 4, 16)
    return {
        "x": rows(6, 40),
        "y": rows(6, 40),
        "w": rows(40),
        "b": rows(40),
        "h": rows(2, 3, 4, 16),
        "g": rows(3),
        "c": rows(6),
        "dy": torch.randn(6),
        "q": packed[:, :, 0],
        "k": packed[:, :, 1],
        "cos": rows(6, 1, 8),
        "few": rows(6, 1, 4),
        "target": torch.randint(0, 40, (6,)),
        "long": rows(40, 40),
        "long_target": torch.randint(0, 6, (40,)),
    }


def residual(x, w, r):
    return ptxgen.rms_norm(x, w, residual=r)


def fused(x, y, target, c=None, dy=None, **options):
    """Features, weight, targets, bias, and what comes from above."""
    found = ptxgen.linear_cross_entropy_grad(x, y, target, c, dy=dy, **options)
    return tuple(t for t in found if t is not None)


def concat(*arrays):
    return layout.concat(arrays, -1)


CASES = {
    "softmax": (ptxgen.softmax, "x", {}),
    "to f32": (ptxgen.log_softmax, "x", {"out_dtype": "float32"}),
    "kept": (ptxgen.sum, "x", {"axis": [1], "keepdims": True}),
    "columns": (ptxgen.sum, "x", {"axis": 0}),
    "all": (ptxgen.mean, "x", {}),
    "several": (ptxgen.mean, "h", {"axis": (2, 3), "keepdims": True}),
    "between": (ptxgen.amax, "h", {"axis": (1, 2)}),
    "variance": (ptxgen.var, "x", {"axis": -1, "correction": 0.0}),
    "index": (ptxgen.argmax, "x", {"axis": 1, "keepdims": True}),
    "mean loss": (ptxgen.cross_entropy, "x target", {"label_smoothing": 0.1}),
    "losses": (ptxgen.cross_entropy, "x target", {"reduction": "none"}),
    "norm": (ptxgen.rms_norm, "x", {}),
    "residual": (residual, "x w y", {}),
    "layer norm": (ptxgen.layer_norm, "x w b", {"eps": 1e-3}),
    "bias": (lambda x, b: ptxgen.layer_norm(x, None, b), "x b", {}),
    "concat": (concat, "x y x", {}),
    "parts": (concat, "q k", {}),
    "contiguous": (lambda x: layout.contiguous(x.mT), "x", {}),
    "group norm": (lambda h, g: ptxgen.group_norm(h, 3, g, g), "h g", {}),
    "rope": (layout.rope, "q cos cos", {}),
    "pairs": (layout.rope, "q cos cos", {"interleaved": True}),
    "partial": (layout.rope, "q few few", {}),
    "last layer": (ptxgen.linear_cross_entropy, "x y target c", {"softcap": 9.0}),
    "its gradients": (fused, "x y target", {}),
    "in chunks": (lambda *given: fused(*given, chunk=16), "long y long_target c", {}),
    "by row": (fused, "x y target c dy", {"reduction": "none"}),
    "one of them": (fused, "x y target", {"dx": False, "reduction": "sum"}),
}


def places(fired, given, results):
    """Launches, with what pointers point to in place of addresses."""
    spans = []
    for i, tensor in enumerate((*given, *results)):
        memory = tensor.untyped_storage()
        spans.append((tensor.data_ptr(), memory.data_ptr() + memory.nbytes(), i))

    def place(word):
        within = [(word - low, i) for low, high, i in spans if low <= word < high]
        return min(within) if within else "memory" if word > 1 << 32 else word

    return [(f.kernel, f.grid, *map(place, f.words)) for f in fired]


def several(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", CASES)
def test_a_plan_fires_what_the_call_fires(gpu, plans, monkeypatch, name):
    """On other tensors: the same kernels, grids and numbers, each pointer at the same place."""
    function, names, options = CASES[name]
    given = [[operands()[n] for n in names.split()] for _ in range(4)]
    function(*given[3], **options)
    assert plans == [], "a call that comes once is not followed"
    first = several(function(*given[0], **options))
    assert plans == [True]
    with nothing_decided(monkeypatch):
        again, fired = gpu.called(function, *given[1], **options)
    with nothing_remembered():
        plain, expected = gpu.called(function, *given[2], **options)
    assert fired
    again, plain = several(again), several(plain)
    assert places(fired, given[1], again) == places(expected, given[2], plain)
    for results in zip(first, again, plain, strict=True):
        assert {type(r) for r in results} == {torch.Tensor}
        assert len({(r.shape, r.stride(), r.dtype) for r in results}) == 1


def test_tensors_that_were_one_may_be_two(gpu, monkeypatch):
    x, y = rows(3, 24), rows(3, 24)
    concat(x, x), concat(x, x)
    with nothing_decided(monkeypatch):
        found, fired = gpu.called(concat, x, y)
    (launched,) = fired
    assert launched.words[:2] == (x.data_ptr(), y.data_ptr())
    assert launched.words[2:4] == (found.data_ptr(), found[:, 24:].data_ptr())


def test_memory_between_launches_is_let_go(gpu, monkeypatch):
    x, target = rows(5, 48), torch.zeros(5, dtype=torch.int64)
    ptxgen.cross_entropy(x, target), ptxgen.cross_entropy(x, target)
    with nothing_decided(monkeypatch):
        loss, fired = gpu.called(ptxgen.cross_entropy, x, target)
    (losses,) = {*fired[0].words[:3]} - {x.data_ptr(), target.data_ptr()}
    assert {*fired[1].words[:3]} == {target.data_ptr(), losses, loss.data_ptr()}


def variants():
    x = rows(4, 56)
    yield ptxgen.softmax, x, {}
    yield ptxgen.softmax, x.float(), {}
    yield ptxgen.softmax, rows(5, 56), {}
    yield ptxgen.softmax, rows(4, 64)[:, :56], {}
    yield ptxgen.softmax, rows(4 * 56 + 1)[1:].view(4, 56), {}
    yield ptxgen.softmax, x, {"out_dtype": "float32"}
    yield ptxgen.softmax, rows(4, 56, 1)[..., 0].T, {"axis": 0}


def test_what_decides_is_in_the_key(gpu, plans, monkeypatch):
    for _ in range(2):
        for function, x, options in variants():
            function(x, **options)
    learnt = len(plans)
    assert learnt == 7
    for function, x, options in variants():
        found, fired = gpu.called(function, x, **options)
        with nothing_remembered():
            other, expected = gpu.called(function, x, **options)
        assert places(fired, [x], [found]) == places(expected, [x], [other])
    assert len(plans) == learnt  # which were known by then


def test_what_else_is_done_to_tensors_is_done_again(gpu, plans):
    """A function is called each time that computes with torch, reads a value, or waits for one."""
    calls = []

    def made(function):
        @remembered("x", "y")
        def call(x, y, *, out=None, stream=None):
            calls.append(function)
            return function(x, y)

        return call

    x, y = rows(4, 72), rows(4, 72)
    softmax = lambda x: ptxgen.softmax(x)  # noqa: E731
    for function in (
        lambda x, y: softmax(x + y),
        lambda x, y: softmax(x) * 2,
        lambda x, y: softmax(x).add_(1),
        lambda x, y: softmax(x.copy_(y)),
        lambda x, y: softmax(x if x[0, 0] < 9 else y),
        lambda x, y: softmax(x if y.max().item() < 99 else y),
        lambda x, y: softmax(torch.cat([x, y])),
        lambda x, y: softmax(x.t().contiguous()),
        lambda x, y: softmax(x)[:, [1, 0]],
        lambda x, y: (softmax(x), x),
        lambda x, y: (softmax(x), 3),
        lambda x, y: softmax(x).view(torch.int32),
        lambda x, y: softmax(y if y.tolist() else x),
        lambda x, y: ptxgen.sum(x.new_empty(4, 72).fill_(1), -1),
    ):
        call = made(function)
        plans.clear()
        calls.clear()
        found = [call(x, y) for _ in range(3)]
        assert calls == [function] * 3 and False in plans
        assert all(type(r) is not replay._followed() for r in several(found[0]))


def test_views_of_results_are_views(gpu, monkeypatch):
    @remembered("x")
    def call(x):
        y = ptxgen.softmax(x)
        return y[1:], y.view(-1), ptxgen.softmax(y)

    x = rows(4, 80)
    for _ in range(3):
        (part, flat, last), fired = gpu.called(call, x)
        assert part.data_ptr() == flat.data_ptr() + 160 and flat.shape == (320,)
        assert fired[1].words[:2] == (flat.data_ptr(), last.data_ptr())


def test_errors_are_what_they_were(gpu, plans):
    x = rows(4, 88)
    for _ in range(2):
        with pytest.raises(ShapeError, match="axis is 2; takes -2"):
            ptxgen.softmax(x, 2)
        with pytest.raises(DtypeError, match="x has dtype int32; takes"):
            ptxgen.softmax(x.int())
        with pytest.raises(DtypeError, match=r"arrays\[1\] has dtype torch.float32"):
            layout.concat([x, x.float()])
        with pytest.raises(TypeError, match="unexpected keyword"):
            ptxgen.softmax(x, dim=1)
    assert plans == []


def test_gradients_are_asked_for_each_time(gpu):
    x = rows(4, 96)
    ptxgen.softmax(x)
    ptxgen.softmax(x)
    with pytest.raises(GradError, match="x requires grad"):
        ptxgen.softmax(x.requires_grad_())
    with torch.no_grad():
        assert not ptxgen.softmax(x).requires_grad


def test_lazily_negated_tensors_are_never_taken_for_others(gpu, plans):
    z = torch.randn(3, 8, dtype=torch.complex64)
    plain, negated = torch.view_as_real(z)[..., 1], z.conj().imag
    assert negated.is_neg() and negated.stride() == plain.stride()
    for function in (ptxgen.softmax, ptxgen.logsumexp):
        for _ in range(3):
            function(plain.unsqueeze(-1))
            with pytest.raises(ShapeError, match="lazily negated"):
                function(negated.unsqueeze(-1))
    assert plans == []


@pytest.mark.parametrize(
    "function",
    [lambda x: layout.contiguous(x.T), lambda x: layout.rope(x, x[:, :1], x[:, 1:])],
)
def test_compilers_see_operators(gpu, function):
    """No plan, and no address."""
    x, seen = rows(4, 2), []

    def backend(graph, inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    expected = function(x)
    traced = torch.compile(function, fullgraph=True, backend=backend)(x)
    assert traced.shape == expected.shape and any("ptxgen" in target for target in seen)


def test_memos_are_bounded(gpu, monkeypatch):
    from ptxgen.ops import launch

    monkeypatch.setattr(launch, "ENTRIES_MAX", 4)
    call = remembered("x")(lambda x, n: ptxgen.softmax(x))
    memo = call.__closure__  # made of exec: its memo is what `find` belongs to
    assert memo is None
    found = call.__globals__["find"].__self__
    for n in range(20):
        call(rows(2, 104), n)
        assert 1 <= len(found) <= 4


def test_threads(gpu):
    x = [rows(3, 112) for _ in range(8)]
    wrong = []

    def work(x):
        for _ in range(50):
            if ptxgen.sum(x, 0, keepdims=True).shape != (1, 112):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(each,)) for each in x]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


SERVED = {
    "softmax": (lambda x: torch.softmax(x, -1), (ptxgen.softmax, {})),
    "mean": (lambda x: x.mean(-1, keepdim=True), (ptxgen.mean, {"axis": -1})),
    "sum": (lambda x: x.sum(0), (ptxgen.sum, {"axis": 0})),
    "layer_norm": (lambda x: functional.layer_norm(x, (120,)), None),
    "cumsum": (lambda x: x.cumsum(-1), (ptxgen.cumsum, {})),
    "topk": (lambda x: tuple(x.topk(3)), (ptxgen.topk, {"k": 3})),
    "attention": (lambda x: attention(x), None),
    "causal": (lambda x: attention(x, is_causal=True), None),
    "masked": (lambda x: attention(x, attn_mask=torch.ones(5, 5).bool()), None),
}


def attention(x, **options):
    q = x.view(2, 2, -1, 24)
    return functional.scaled_dot_product_attention(q, q, q, **options)


@pytest.mark.parametrize("name", SERVED)
def test_operators_are_served_by_plans(gpu, plans, monkeypatch, name):
    function, same = SERVED[name]
    with torch.no_grad(), ours.batch_invariant() as block:
        function(rows(4, 120)), function(rows(4, 120))
        assert plans == [True]
        x = rows(4, 120)
        with nothing_decided(monkeypatch):
            found, fired = gpu.called(function, x)
    assert sum(block.served.values()) == 3
    with torch.no_grad(), ours.batch_invariant(), nothing_decided(monkeypatch):
        function(x)  # plans outlive blocks
    if same is not None:
        with nothing_remembered():
            other, expected = gpu.called(same[0], x, **same[1])
        assert places(fired, [x], several(found)) == places(expected, [x], several(other))


def test_gradients_of_norms_are_two_launches(gpu, plans, monkeypatch):
    x, w, dy = (rows(4, 128).requires_grad_(), rows(128).requires_grad_(), rows(4, 128))

    def step():
        return torch.autograd.grad(ours.rms_norm(x, w), (x, w), dy)

    step(), step(), step()
    assert plans == [True]
    with nothing_decided(monkeypatch):
        (dx, dw), fired = gpu.called(step)
    assert len(fired) == 3 and dx.data_ptr() in fired[1].words and dw.data_ptr() in fired[2].words


def test_a_step_of_the_last_layer_is_one_plan(gpu, plans, monkeypatch):
    """Eight launches forward, and one for each gradient back, which mostly finds a 1."""
    x, w = rows(6, 40).requires_grad_(), rows(24, 40).requires_grad_()
    target = torch.randint(0, 24, (6,))

    def step():
        return torch.autograd.grad(ours.linear_cross_entropy(x, w, target), (x, w))

    step(), step(), step()
    assert plans == [True]
    with nothing_decided(monkeypatch):
        (dx, dw), fired = gpu.called(step)
    assert len(fired) == 10
    for gradient, launched in zip((dx, dw), fired[-2:], strict=True):
        assert launched.kernel.startswith("pw_factor")
        assert launched.words[0] == launched.words[2] == gradient.data_ptr()


def test_memory_that_is_given_is_checked_each_time(gpu, plans):
    x, w, target = rows(6, 40), rows(24, 40), torch.randint(0, 24, (6,))
    for _ in range(3):
        dw = torch.empty(24, 40)
        assert ptxgen.linear_cross_entropy_grad(x, w, target, dw=dw)[2] is dw
        with pytest.raises(ShapeError, match="dw shares memory with w"):
            ptxgen.linear_cross_entropy_grad(x, w, target, dw=w)
    assert plans == []


def test_calls_that_come_seldom_are_not_followed(gpu, plans, monkeypatch):
    monkeypatch.setattr(replay, "PATIENCE", 5)
    for n in range(150, 153):  # as a sequence that grows, with four layers
        for _ in range(4):
            ptxgen.softmax(rows(2, n))
    assert plans == []
    for _ in range(3):
        ptxgen.softmax(rows(2, 151))
    assert plans == [True]


def test_calls_of_many_launches_are_not_kept(gpu, plans, monkeypatch):
    monkeypatch.setattr(replay, "STEPS_MAX", 2)
    x, target = rows(5, 136), torch.zeros(5, dtype=torch.int64)
    for function in (ptxgen.cross_entropy, ptxgen.linear_cross_entropy_grad):
        given = (x, target) if function is ptxgen.cross_entropy else (x, rows(7, 136), target)
        for _ in range(3):
            function(*given)
    assert plans == [True, False]
