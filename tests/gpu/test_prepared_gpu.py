"""Prepared calls on a GPU: bits on other data, on streams, in graphs, in a block."""

from __future__ import annotations

import calls
import numpy as np
import pytest
from bits import difference

import ptxgen
from ptxgen import functions, layout, reference
from ptxgen.errors import ShapeError
from ptxgen.program import invoke
from ptxgen.runtime import get_device

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
    "product": (
        lambda x, y: ptxgen.linear(x, y, layout="nk", activation="silu"),
        lambda x, y: reference.linear(x, y, layout="nk", activation="silu"),
    ),
    "gradient": (
        lambda x, y: ptxgen.linear_wgrad(x, y, layout="kn"),
        lambda x, y: reference.linear_wgrad(x, y, layout="kn"),
    ),
    "formula": (lambda x, y: functions.add(x, y), functions.add.reference),
}


@pytest.fixture
def followed(monkeypatch):
    """The operations whose calls were followed, in order."""
    found = []
    real = invoke.invoke

    def noted(frame, *rest):
        found.append(frame.op.name)
        return real(frame, *rest)

    monkeypatch.setattr(invoke, "invoke", noted)
    return found


def drawn(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((7, 130), dtype=np.float32) for _ in range(2)]


def on_gpu(arrays):
    return [torch.from_numpy(a).cuda() for a in arrays]


def poisoned():
    """Frees blocks filled with NaN, so that the next results are allocated on NaN."""
    for count in (1, 7, 130, 910, 1820):
        torch.full((count,), torch.nan, device="cuda")


def several(found):
    return found if isinstance(found, tuple) else (found,)


def matches(got, expected):
    for one, other in zip(several(got), several(expected), strict=True):
        assert np.array_equal(one.cpu().numpy(), np.asarray(other))


@pytest.mark.parametrize("name", CASES)
def test_on_other_data(name):
    function, oracle = CASES[name]
    for seed in range(4):
        x, y = drawn(seed)
        given = on_gpu((x, y))
        poisoned()
        matches(function(*given), oracle(x, y))


def test_third_calls_follow_nothing(followed):
    given = [on_gpu(drawn(1)) for _ in range(3)]
    for x, y in given[:2]:  # the first of all makes the type of tensors known
        for function, _ in CASES.values():
            function(x, y)
    followed.clear()
    for function, _ in CASES.values():
        function(*given[2])
    assert followed == []


@pytest.mark.parametrize("name", sorted(n for n in calls.operations() if "quantized" not in n))
def test_every_operation_has_the_oracles_bits(name):
    """Followed and prepared calls have the oracle's bits, the latter on other numbers than they
    were prepared with.
    """
    if get_device("cuda").compute != (9, 0):
        pytest.skip("the tensor cores of the oracles' default are sm_90's")
    of, ran = calls.operations()[name], 0
    for seed in range(60):
        call = calls.valid(name, seed)
        given = {n: tensors(v) for n, v in call.given.items()}
        if not any(torch.is_tensor(v) for v in leaves(given.values())):
            continue
        try:
            of.function(**given), of.function(**given)
        except ShapeError:  # what no kernel reads as it lies, which is packed from host memory
            continue
        for host, there in zip(leaves(call.given.values()), leaves(given.values()), strict=True):
            if isinstance(host, np.ndarray) and host.size:
                host.flags.writeable = True
                host[...] = calls.Draw(seed).numpy.permutation(host.reshape(-1)).reshape(host.shape)
                there.copy_(tensors(host))
        with np.errstate(all="ignore"):
            expected = several(of.oracle(**call.given))
        for got, wanted in zip(several(of.function(**given)), expected, strict=True):
            assert (got is None) == (wanted is None), f"{call}"
            assert got is None or not difference(back(got), wanted), f"{call}"
        ran += 1
        if ran == 4:
            return
    assert ran


def leaves(values):
    for value in values:
        yield from value if isinstance(value, list | tuple) else (value,)


def tensors(value):
    """Arrays of some size on the GPU, as they lie if torch has such strides."""
    if isinstance(value, list):
        return [tensors(v) for v in value]
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    backwards = any(s < 0 for s in value.strides)
    bits = np.array(value) if backwards or not value.flags.writeable else value
    kind = {"bfloat16": torch.bfloat16}.get(bits.dtype.name)
    found = torch.from_numpy(bits if kind is None else bits.view(np.int16))
    whole = torch.empty_strided(found.shape, found.stride(), dtype=found.dtype, device="cuda")
    whole.copy_(found)
    return whole if kind is None else whole.view(kind)


def back(tensor):
    """A NumPy array with the bits of a tensor."""
    found = tensor.cpu()
    if found.dtype is torch.bfloat16:
        from ml_dtypes import bfloat16

        return found.view(torch.int16).numpy().view(bfloat16)
    return found.numpy()


def test_results_are_written_where_it_is_said(followed):
    for seed in range(4):
        x, y = drawn(seed)
        given, out = on_gpu((x, y)), torch.full((9, 7), torch.nan, device="cuda")[1:8]
        assert ptxgen.linear(*given, layout="nk", out=out) is out
        matches(out, reference.linear(x, y, layout="nk"))
        x0 = given[0].clone()
        assert functions.neg(x0, out=x0) is x0  # in place
        matches(x0, -x)
        with pytest.raises(ShapeError, match="out shares memory with x"):
            ptxgen.linear(*given, layout="nk", out=given[0][:, :7])
        assert torch.equal(given[0].cpu(), torch.from_numpy(x))
    assert followed.count("neg") <= 2


def test_on_a_stream_and_in_a_graph():
    x, y = on_gpu(drawn(5))
    expected = [function(x, y) for function, _ in CASES.values()]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = [function(x, y) for function, _ in CASES.values()]
        explicit = torch.empty_like(x)
    ptxgen.softmax(x, out=explicit, stream=stream)
    stream.synchronize()
    matches(explicit, expected[0].cpu().numpy())
    graph = torch.cuda.CUDAGraph()
    a, b = torch.zeros_like(x), torch.zeros_like(y)
    with torch.cuda.graph(graph):
        captured = [function(a, b) for function, _ in CASES.values()]
    for seed in (5, 6):
        x, y = on_gpu(drawn(seed))
        a.copy_(x)
        b.copy_(y)
        graph.replay()
        torch.cuda.synchronize()
        expected = [function(x, y) for function, _ in CASES.values()]
        for one, other in zip(captured, expected, strict=True):
            matches(one, tuple(t.cpu().numpy() for t in several(other)))
        if seed == 5:
            for one, other in zip(found, expected, strict=True):
                matches(one, tuple(t.cpu().numpy() for t in several(other)))


def test_memory_of_a_call_on_a_stream_is_that_streams():
    """Memory that a prepared call allocates is not reused before its launches have ended."""
    x = torch.randn(64, 4096, device="cuda")
    expected = ptxgen.sum(x, 0)
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    found = []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(ptxgen.sum(x, 0))
    torch.cuda.synchronize()
    assert all(torch.equal(each, expected) for each in found)


def test_what_is_whole_in_a_block_has_the_bits_of_what_is_recorded():
    x, w = on_gpu(drawn(6))
    w = w[0].contiguous()
    block_functions = (
        lambda x: functional.layer_norm(x, (130,), w),
        lambda x: functional.rms_norm(x, (130,), w, 1e-6),
        lambda x: functional.rms_norm(x, (130,)),
        lambda x: functional.softmax(x, -1),
        lambda x: functional.log_softmax(x, 0),
    )
    with ours.batch_invariant(strict=True) as block:
        for function in block_functions:
            recorded = function(x.clone().requires_grad_())
            recorded.sum().backward()
            for _ in range(3):
                poisoned()
                assert torch.equal(function(x.clone()), recorded.detach())
        wide = functional.layer_norm(x.bfloat16(), (130,), w.bfloat16())
        assert torch.equal(wide, ptxgen.layer_norm(x.bfloat16(), w.bfloat16()))
    assert not block.unknown
