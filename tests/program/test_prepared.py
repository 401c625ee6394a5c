"""The ways that a call runs: step by step, planned, prepared. All have the same bits, and a call
that is prepared does again what it did for arrays that lie so, and for no others.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from types import FunctionType

import calls
import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import functions, layout, reference
from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.ops import OPERATIONS
from ptxgen.program import autotune, invoke, launch, prepared
from ptxgen.program.invoke import Frame
from ptxgen.program.operation import Op
from ptxgen.program.parameters import ARRAY, Parameter
from ptxgen.program.prepared import Hooks
from ptxgen.program.streams import Streams
from ptxgen.runtime.cpu import CpuDevice


@pytest.fixture(autouse=True)
def on_cpu():
    with ptxgen.use_device("cpu"):
        yield


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


@contextlib.contextmanager
def nothing_followed(monkeypatch):
    """All calls must be known."""
    with monkeypatch.context() as patch:
        patch.setattr(invoke, "invoke", None)
        yield


def arrays_of(given):
    """The arrays among the arguments of a call, but ends of groups, which ascend."""
    for value in (v for n, v in given.items() if n != "offsets"):
        yield from (x for x in (value if isinstance(value, list | tuple) else (value,))
                    if isinstance(x, np.ndarray))  # fmt: skip


# -- arrays in host memory --------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(calls.operations().keys() - calls.UNTRACED))
def test_every_way_has_the_oracles_bits(name, monkeypatch, followed):
    """A prepared call has the oracle's bits for other numbers than it was prepared with."""
    ran = 0
    for seed in range(40):
        call = calls.valid(name, seed)
        arrays = [x for x in arrays_of(call.given) if x.size]
        if not arrays:
            continue
        with monkeypatch.context() as patch:
            patch.setattr(autotune, "enabled", lambda: True)  # nothing can be timed here
            assert not calls.judge(call, by_formula=False), f"step by step: {call}"
        for _ in range(2):  # the first of all makes types known
            assert not calls.judge(call, by_formula=False), f"planned: {call}"
        for x in arrays:
            x.flags.writeable = True
            x[...] = calls.Draw(seed).numpy.permutation(x.reshape(-1)).reshape(x.shape)
        followed.clear()
        assert not calls.judge(call, by_formula=False), f"prepared: {call}"
        ran += not followed or looks(name)
        if ran == 2:
            return
    assert ran


def looks(name):
    """Whether it looks at the values of what is in host memory, each time."""
    op = OPERATIONS.get(name)
    return op is not None and op.checks is not None


def test_options_that_are_equal_are_not_the_same():
    """0.0 and -0.0; 1, 1.0 and True."""
    x = np.ones((2, 3), np.float32)
    for value in (0.0, -0.0, 0, 0.0, -0.0):
        padded = layout.pad(x, ((0, 0), (1, 0)), value)
        assert (np.signbit(padded[:, 0]) == np.signbit(value)).all()
    for _ in range(3):
        same_bits(ptxgen.sum(x, axis=1), reference.sum(x, axis=1))
        same_bits(ptxgen.sum(x, axis=(0, 1)), reference.sum(x))
        for axis in (True, 1.0, (False, True), (0.0, 1.0)):
            with pytest.raises(ShapeError, match="axis is"):
                ptxgen.sum(x, axis=axis)
        same_bits(ptxgen.sum(x, keepdims=True), reference.sum(x, keepdims=True))
        with pytest.raises(OptionError, match="keepdims is 1; takes True or False"):
            ptxgen.sum(x, keepdims=1)
        same_bits(ptxgen.rms_norm(x, eps=1), reference.rms_norm(x, eps=1.0))
        with pytest.raises(OptionError, match="eps is True"):
            ptxgen.rms_norm(x, eps=True)


def test_numbers_in_the_place_of_arrays_are_given_each_time():
    x = np.float32([1, -2, 0])
    for number in (2, 2.5, -0.0, 0.0, float("nan"), 2):
        same_bits(functions.mul(x, number), functions.mul.reference(x, number))


def test_a_device_is_asked_for_what_it_knows():
    x = np.float32([[1, 2], [3, 4]])
    expected = reference.softmax(x)
    for _ in range(3):
        same_bits(ptxgen.softmax(x), expected)
    for _ in range(2):  # of the same name, and with memory of its own
        device = CpuDevice()
        with ptxgen.use_device(device):
            for _ in range(3):
                same_bits(ptxgen.softmax(x), expected)
        assert device.calls and device.loaded()


def test_an_array_of_another_kind_is_looked_at(followed):
    """Other shapes, strides, dtypes and types: none is taken for one that is known."""
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for _ in range(3):
        ptxgen.softmax(x)
    followed.clear()
    for other in (x[:2], x.T, x[:, ::2], x[::-1], x.astype(np.float16), x.astype(np.float64)):
        same_bits(ptxgen.softmax(other), reference.softmax(other))
    assert len(followed) == 6
    for bad in (x.astype(">f4"), x.astype(np.int32), np.ma.array(x), None, "x"):
        with pytest.raises(DtypeError, match="x"):
            ptxgen.softmax(bad)


def test_results_are_written_where_it_is_said():
    rng = np.random.default_rng(3)
    for _ in range(3):
        x, w = (rng.standard_normal(s).astype("f4") for s in ((5, 7), (7, 4)))
        out = np.full((5, 8), np.nan, np.float32)[:, ::2]
        assert ptxgen.linear(x, w, out=out, layout="kn") is out
        same_bits(np.ascontiguousarray(out), reference.linear(x, w, layout="kn"))
        with pytest.raises(ShapeError, match="out shares memory with x"):
            ptxgen.linear(x, w, out=x[:, :4], layout="kn")


# -- tensors of a GPU ---------------------------------------------------------------------------
torch = pytest.importorskip("torch", reason="needs PyTorch")

import torch_fakes  # noqa: E402
from ops_fakes import known_to_nobody  # noqa: E402

import ptxgen.torch as ours  # noqa: E402
from ptxgen.torch import serve  # noqa: E402

functional = torch.nn.functional
HALF = torch.bfloat16
NAMES = (
    *("softmax", "log_softmax", "sum", "mean", "amax", "var", "argmax", "logsumexp", "cumsum"),
    *("cross_entropy", "linear_cross_entropy", "linear_cross_entropy_grad", "rms_norm", "topk"),
    *("layer_norm", "group_norm", "linear", "matmul", "embedding"),
)


@pytest.fixture
def gpu(monkeypatch):
    """Fake GPU with no known calls; calls that become known are forgotten at the end."""
    types, kept = prepared.TORCH.types, set(prepared.TORCH.types)
    monkeypatch.setattr(serve, "served_kinds", lambda: frozenset({"cpu"}))  # as the GPU's
    device = torch_fakes.gpu(monkeypatch)
    known_to_nobody(monkeypatch, *NAMES)
    ptxgen.logsumexp(torch.zeros(1, 8))  # so that the type of tensors is known
    yield device
    types.intersection_update(kept)
    for each in gc.get_objects():
        if type(each) is dict and any(map(learnt, list(each.values()))):
            each.clear()


def learnt(value):
    """Returns whether a value is the code of a prepared call."""
    if type(value) in (prepared.NegationChecked, prepared.Into):
        return True
    return type(value) is FunctionType and value.__code__.co_filename == "<prepared call>"


@contextlib.contextmanager
def nothing_known():
    """Context in which every call is followed step by step."""
    kept = set(prepared.TORCH.types)
    prepared.TORCH.types.clear()
    yield
    prepared.TORCH.types.update(kept)


def rows(*shape, dtype=HALF):
    return torch.randn(shape).to(dtype)


def operands():
    """Draws new operands, with the shapes and strides of earlier ones."""
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
    """Runs fused cross-entropy and its gradients: features, weight, targets, bias, and dy."""
    found = ptxgen.linear_cross_entropy_grad(x, y, target, c, dy=dy, **options)
    return tuple(t for t in found if t is not None)


def concat(*arrays):
    return layout.concat(arrays, -1)


CASES = {
    "softmax": (lambda *x, **o: ptxgen.softmax(*x, **o), "x", {}),
    "to f32": (lambda *x, **o: ptxgen.log_softmax(*x, **o), "x", {"out_dtype": "float32"}),
    "kept": (lambda *x, **o: ptxgen.sum(*x, **o), "x", {"axis": [1], "keepdims": True}),
    "columns": (lambda *x, **o: ptxgen.sum(*x, **o), "x", {"axis": 0}),
    "all": (lambda *x, **o: ptxgen.mean(*x, **o), "x", {}),
    "several": (lambda *x, **o: ptxgen.mean(*x, **o), "h", {"axis": (2, 3), "keepdims": True}),
    "between": (lambda *x, **o: ptxgen.amax(*x, **o), "h", {"axis": (1, 2)}),
    "variance": (lambda *x, **o: ptxgen.var(*x, **o), "x", {"axis": -1, "correction": 0.0}),
    "index": (lambda *x, **o: ptxgen.argmax(*x, **o), "x", {"axis": 1, "keepdims": True}),
    "loss": (lambda *x, **o: ptxgen.cross_entropy(*x, **o), "x target", {"label_smoothing": 0.1}),
    "losses": (lambda *x, **o: ptxgen.cross_entropy(*x, **o), "x target", {"reduction": "none"}),
    "norm": (lambda *x, **o: ptxgen.rms_norm(*x, **o), "x", {}),
    "residual": (residual, "x w y", {}),
    "layer norm": (lambda *x, **o: ptxgen.layer_norm(*x, **o), "x w b", {"eps": 1e-3}),
    "bias": (lambda x, b: ptxgen.layer_norm(x, None, b), "x b", {}),
    "concat": (concat, "x y x", {}),
    "parts": (concat, "q k", {}),
    "contiguous": (lambda x: layout.contiguous(x.swapaxes(-1, -2)), "x", {}),
    "group norm": (lambda h, g: ptxgen.group_norm(h, 3, g, g), "h g", {}),
    "rope": (layout.rope, "q cos cos", {}),
    "pairs": (layout.rope, "q cos cos", {"interleaved": True}),
    "partial": (layout.rope, "q few few", {}),
    "product": (lambda x, y: ptxgen.linear(x, y, layout="nk"), "x y", {}),
    "formula": (lambda x, w: functions.fma(x, 2.5, w), "x w", {}),
    "last layer": (
        lambda *x, **o: ptxgen.linear_cross_entropy(*x, **o),
        "x y target c",
        {"softcap": 9.0},
    ),
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

    def place(word, own):
        within = [(word - low, i) for low, high, i in spans if low <= word < high]
        return min(within) if within else "memory" if own else word

    return [
        (f.kernel, f.grid, *(place(word, i in f.own) for i, word in enumerate(f.words)))
        for f in fired
    ]


def several(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", CASES)
def test_what_is_prepared_fires_what_the_call_fires(gpu, monkeypatch, name):
    """A prepared call on other tensors fires the same kernels, grids and numbers, with each pointer
    at the same place.
    """
    function, names, options = CASES[name]
    given = [[operands()[n] for n in names.split()] for _ in range(3)]
    first = several(function(*given[0], **options))
    with nothing_followed(monkeypatch):
        again, fired = gpu.called(function, *given[1], **options)
    with nothing_known():
        plain, expected = gpu.called(function, *given[2], **options)
    assert fired
    again, plain = several(again), several(plain)
    assert places(fired, given[1], again) == places(expected, given[2], plain)
    for results in zip(first, again, plain, strict=True):
        assert {type(r) for r in results} == {torch.Tensor}
        assert len({(r.shape, r.stride(), r.dtype) for r in results}) == 1


def test_tensors_that_were_one_may_be_two(gpu, monkeypatch):
    x, y = rows(3, 24), rows(3, 24)
    concat(x, x)
    with nothing_followed(monkeypatch):
        found, fired = gpu.called(concat, x, y)
    (launched,) = fired
    assert launched.words[:2] == (x.data_ptr(), y.data_ptr())
    assert launched.words[2:4] == (found.data_ptr(), found[:, 24:].data_ptr())


def variants():
    x = rows(4, 56)
    yield x, {}
    yield x.float(), {}
    yield rows(5, 56), {}
    yield rows(4, 64)[:, :56], {}
    yield rows(4 * 56 + 1)[1:].view(4, 56), {}
    yield x, {"out_dtype": "float32"}
    yield rows(4, 56, 1)[..., 0].T, {"axis": 0}


def test_what_decides_is_in_the_key(gpu, followed):
    for _ in range(2):
        for x, options in variants():
            ptxgen.softmax(x, **options)
    assert len(followed) == 7
    for x, options in variants():
        found, fired = gpu.called(ptxgen.softmax, x, **options)
        with nothing_known():
            other, expected = gpu.called(ptxgen.softmax, x, **options)
        assert places(fired, [x], [found]) == places(expected, [x], [other])


def test_errors_are_what_they_were(gpu):
    x = rows(4, 88)
    for _ in range(3):
        ptxgen.softmax(x, 1)
        layout.concat([x, x])
        gpu.log.clear()
        with pytest.raises(ShapeError, match=r"axis is 2; x has shape"):
            ptxgen.softmax(x, 2)
        with pytest.raises(DtypeError, match="x has dtype int32; takes"):
            ptxgen.softmax(x.int())
        with pytest.raises(DtypeError, match=r"arrays\[1\] has dtype float32"):
            layout.concat([x, x.float()])
        with pytest.raises(TypeError, match="unexpected keyword"):
            ptxgen.softmax(x, dim=1)
        assert gpu.log == []


def test_gradients_are_asked_for_each_time(gpu):
    x = rows(4, 96)
    ptxgen.softmax(x)
    ptxgen.softmax(x)
    with pytest.raises(GradError, match="x requires grad"):
        ptxgen.softmax(x.requires_grad_())
    with torch.no_grad():
        assert not ptxgen.softmax(x).requires_grad


def test_lazily_negated_tensors_are_never_taken_for_others(gpu):
    z = torch.randn(3, 8, dtype=torch.complex64)
    plain, negated = torch.view_as_real(z)[..., 1], z.conj().imag
    assert negated.is_neg() and negated.stride() == plain.stride()
    for function in (ptxgen.softmax, ptxgen.logsumexp):
        for _ in range(3):
            function(plain.unsqueeze(-1))
            with pytest.raises(ShapeError, match="lazily negated"):
                function(negated.unsqueeze(-1))
    conjugated = torch.randn(3, 8, dtype=torch.complex64).conj()
    for _ in range(3):
        functions.neg(z)
        with pytest.raises(ShapeError, match="lazily conjugated"):
            functions.neg(conjugated)
    plain, negated, out = (t.unsqueeze(-1) for t in (plain, negated, torch.empty(3, 8)))
    for _ in range(3):
        assert functions.neg(plain, out=out) is out
        with pytest.raises(ShapeError, match="lazily negated"):
            functions.neg(negated, out=out)


def test_memos_are_bounded(gpu, monkeypatch):
    monkeypatch.setattr(launch, "ENTRIES_MAX", 4)
    memo = ptxgen.softmax.__globals__["_find"].__self__
    for n in range(1, 20):
        for _ in range(2):
            ptxgen.softmax(rows(2, n))
        assert 1 <= len(memo) <= 4


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


def test_memory_that_is_given_is_checked_each_time(gpu):
    x, w, target = rows(6, 40), rows(24, 40), torch.randint(0, 24, (6,))
    for _ in range(3):
        dw = torch.empty(24, 40)
        (_, _, found, _), fired = gpu.called(ptxgen.linear_cross_entropy_grad, x, w, target, dw=dw)
        assert found is dw and any(dw.data_ptr() in each.words for each in fired)
        gpu.log.clear()
        with pytest.raises(ShapeError, match="dw shares memory with w"):
            ptxgen.linear_cross_entropy_grad(x, w, target, dw=w)
        assert gpu.log == []


def test_results_over_arguments_are_not_those_beside_them(gpu, monkeypatch):
    """Prepared calls of the same shapes differ if the result is x itself, other memory, or a part
    of x (which is refused).
    """
    for _ in range(3):
        x, other = rows(4, 96, dtype=torch.float32), torch.empty(4, 96)
        for out in (x, other):
            found, fired = gpu.called(functions.neg, x, out=out)
            (launched,) = fired
            assert found is out and launched.words[0] == x.data_ptr()
            assert out.data_ptr() in launched.words
        wide = rows(5, 96, dtype=torch.float32)
        with pytest.raises(ShapeError, match="out shares memory with x"):
            functions.neg(wide[:4], out=wide[1:])


def test_what_may_be_recorded_fires_the_same_on_several_streams(gpu, monkeypatch):
    """Steps that do not wait for each other; beside PyTorch's stream, 0, only while it records."""

    @contextlib.contextmanager
    def others(count):
        yield tuple(range(11, 11 + count))

    def lower(b, /, x, w):
        return b.softmax(x), b.log_softmax(x), b.rms_norm(b.log_softmax(x), w)

    monkeypatch.setattr(gpu, "streams", others)
    op = Op(lower, name="layer", takes=[Parameter(n, ARRAY) for n in "xw"], public=False)
    how, streams = {"aliases": True, "placed": True, "hooks": Hooks(autograd=False)}, Streams(4)
    plain, beside = Frame(op, **how), Frame(op, **how, streams=streams)
    given = [rows(6, 40), rows(40)]
    plain.function(*given), beside.function(*given)
    with nothing_followed(monkeypatch):
        expected, wanted = gpu.called(plain.function, *given)
        assert {event[4] for event in gpu.events("launch")} == {0}
        found, fired = gpu.called(beside.function, *given)
        assert places(fired, given, found) == places(wanted, given, expected)
        assert {event[4] for event in gpu.events("launch")} == {0} and streams.used == 0
        with streams.open(gpu):
            found, fired = gpu.called(beside.function, *given)
        assert places(fired, given, found) == places(wanted, given, expected)
        assert [event[4] for event in gpu.events("launch")] == [0, 11, 12, 12]
    assert streams.used == 3


def test_the_memory_of_a_program_is_one_allocation(gpu, monkeypatch):
    x, y, target = (operands()[n] for n in ("x", "y", "target"))
    fused(x, y, target)
    made, real = [], torch.empty_strided
    monkeypatch.setattr(
        torch, "empty_strided", lambda *of, dtype: made.append(dtype) or real(*of, dtype=dtype)
    )
    with nothing_followed(monkeypatch):
        found, fired = gpu.called(fused, x, y, target)
    assert len(fired) > 3 and len(made) == len(found) + 1 and made.count(torch.uint8) == 1


SERVED = {
    "softmax": lambda x: torch.softmax(x, -1),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "sum": lambda x: x.sum(0),
    "layer_norm": lambda x: functional.layer_norm(x, (120,)),
    "cumsum": lambda x: x.cumsum(-1),
    "topk": lambda x: tuple(x.topk(3)),
    "attention": lambda x: attention(x),
    "causal": lambda x: attention(x, is_causal=True),
}


def attention(x, **options):
    q = x.view(2, 2, -1, 24)
    return functional.scaled_dot_product_attention(q, q, q, **options)


@pytest.mark.parametrize("name", SERVED)
def test_operators_are_served_by_what_is_prepared(gpu, monkeypatch, name):
    function = SERVED[name]
    with torch.no_grad(), ours.batch_invariant() as block:
        for _ in range(2):
            function(rows(4, 120))
        x = rows(4, 120)
        with nothing_followed(monkeypatch):
            found, fired = gpu.called(function, x)
        assert fired
    assert sum(block.served.values()) == 3
    with torch.no_grad(), ours.batch_invariant(), nothing_followed(monkeypatch):
        again, same = gpu.called(function, x)  # what is prepared outlives blocks
    assert places(fired, [x], several(found)) == places(same, [x], several(again))


def test_a_step_of_the_last_layer_is_prepared(gpu, followed):
    x, w = rows(6, 40).requires_grad_(), rows(24, 40).requires_grad_()
    target = torch.randint(0, 24, (6,))

    def step():
        return torch.autograd.grad(ours.linear_cross_entropy(x, w, target), (x, w))

    step(), step()
    followed.clear()
    (dx, dw), fired = gpu.called(step)
    assert followed == []
    assert dx.shape == x.shape and dw.shape == w.shape and len(fired) > 3
