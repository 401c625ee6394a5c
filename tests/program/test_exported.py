"""Models as one saved program: the block's bits, what is written in its place, what is refused."""

from __future__ import annotations

import copy
import json
import zipfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptxgen
from ptxgen.errors import (
    GradError,
    OptionError,
    SavedError,
    ShapeError,
    TraceError,
    UnservedError,
)

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
test_graph = pytest.importorskip("test_graph")
test_inplace = pytest.importorskip("test_inplace")
functional = torch.nn.functional
same, on_the_cpu_device = test_graph.same, test_graph.on_the_cpu_device
PLACES = 16


class Norm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class Layer(torch.nn.Module):
    def __init__(self, size, heads, shared):
        super().__init__()
        self.heads, self.shared, self.width = heads, shared, size // heads
        own = shared * self.width
        self.first, self.second = Norm(size), Norm(size)
        self.q = torch.nn.Linear(size, size, bias=False)
        self.k, self.v = (torch.nn.Linear(size, own, bias=False) for _ in "kv")
        self.o = torch.nn.Linear(size, size, bias=False)
        self.gate, self.up = (torch.nn.Linear(size, 2 * size, bias=False) for _ in "gu")
        self.down = torch.nn.Linear(2 * size, size, bias=False)

    def turned(self, x, places):
        power = torch.arange(0, self.width, 2, device=x.device) / self.width
        angle = places[:, None] * 100.0**-power
        angle = torch.cat([angle, angle], -1)
        first, second = x.float().chunk(2, -1)
        return (x * angle.cos() + torch.cat([-second, first], -1) * angle.sin()).to(x.dtype)

    def forward(self, x, places, cache):
        y, (batch, rows, _) = self.first(x), x.shape
        q, k, v = (
            w(y).view(batch, rows, count, self.width).transpose(1, 2)
            for w, count in ((self.q, self.heads), (self.k, self.shared), (self.v, self.shared))
        )
        q, k, seen = self.turned(q, places), self.turned(k, places), None
        if cache is not None:
            keys, values = cache
            keys.index_copy_(2, places, k)
            values[:, :, places] = v
            k, v, seen = keys, values, torch.arange(PLACES, device=x.device) <= places[:, None]
        found = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=seen, is_causal=cache is None, enable_gqa=True
        )
        x = x + self.o(found.transpose(1, 2).reshape(x.shape))
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(torch.nn.Module):
    def __init__(self, layers=2, size=64, heads=4, shared=2, words=32):
        super().__init__()
        self.embed = torch.nn.Embedding(words, size)
        self.layers = torch.nn.ModuleList(Layer(size, heads, shared) for _ in range(layers))
        self.norm, self.head = Norm(size), torch.nn.Linear(size, words, bias=False)
        self.shape = shared, PLACES, size // heads

    def caches(self, batch):
        like = self.head.weight
        return [
            tuple(
                torch.zeros(batch, *self.shape, dtype=like.dtype, device=like.device) for _ in "kv"
            )
            for _ in self.layers
        ]

    def forward(self, ids, places, caches=None):
        x = self.embed(ids)
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            x = layer(x, places, cache)
        return {"logits": self.head(self.norm(x)), "none": None}


def llama(dtype=torch.float32, device="cpu", **how):
    torch.manual_seed(0)
    return Llama(**how).to(dtype).to(device).requires_grad_(False)


def flat(caches):
    return [x for pair in caches for x in pair]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_is_saved_and_loaded(dtype, tmp_path, device="cpu"):
    model, places = llama(dtype, device, layers=1), torch.arange(7, device=device)
    ids = torch.randint(0, 32, (2, 7), device=device)
    made = pt.export(model, (ids,), {"places": places})
    made.save(tmp_path / "whole")
    made.save(tmp_path / "without", arrays=False)
    runs = (
        made,
        ptxgen.load(tmp_path / "whole", device=device),
        ptxgen.load(tmp_path / "without", device=device, arrays=model.state_dict()),
    )
    compiled = torch.compile(model, backend=pt.Backend(strict=True))
    for _ in range(2):
        with pt.batch_invariant():
            expected = model(ids, places)["logits"]
        assert same(compiled(ids, places)["logits"], expected)
        for run in runs:
            logits, none = run(ids, places)
            assert same(logits, expected) and none is None
        ids = expected.argmax(-1)
    assert made.inputs == runs[1].inputs == ("ids", "places")
    assert {m.name for _, m in made._outside} >= set(model.state_dict())
    with pytest.raises(ShapeError, match=r"ids has shape \[1, 7\]; takes \[2, 7\]"):
        runs[1](ids[:1], places)


def decoded(model, tmp_path, device="cpu"):
    """A prompt, and tokens one at a time: the block, what is exported, and what is loaded."""
    torch.manual_seed(0)
    ids, start = torch.randint(0, 32, (2, 5), device=device), 0
    wanted, ours, others = (model.caches(2) for _ in range(3))
    runs = {}
    for step in range(5):
        places = torch.arange(start, start + ids.shape[1], device=device)
        if ids.shape not in runs:
            made = pt.export(model, (ids, places, wanted))
            made.save(tmp_path / "it")
            runs[ids.shape] = made, ptxgen.load(tmp_path / "it", device=device, streams=3)
        with pt.batch_invariant():
            expected = model(ids, places, wanted)["logits"]
        if step == 3:  # a cache that has moved
            ours = [tuple(x.clone() for x in pair) for pair in ours]
        for run, caches in zip(runs[ids.shape], (ours, others), strict=True):
            assert same(run(ids, places, *flat(caches))[0], expected), step
            assert all(map(same, flat(caches), flat(wanted))), step
        ids, start = expected[:, -1:].argmax(-1), start + ids.shape[1]
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_decoding_writes_caches_where_they_are(dtype, tmp_path):
    made = decoded(llama(dtype), tmp_path)
    text = json.loads(zipfile.ZipFile(tmp_path / "it").read("program.json"))
    assert [x["written"] for x in text["arguments"]] == [False] * 2 + [True] * 4
    assert not any(x["written"] for x in text["outside"])
    steps = made.program.steps
    whole = {b.memory for s in steps for b in s.writes() if b.memory.written}
    assert len(whole) == 4
    writing = Counter(s.problem.table[-1] for s in steps for b in s.writes() if b.memory in whole)
    assert writing == {"put": 4}, "no cache is copied"
    assert [s.problem.table for s in steps].count(("counting_sort", "sort")) == 1
    with pytest.raises(TraceError, match="Llama writes caches_0_0; call it with all arguments"):
        made.replay()


@pytest.mark.parametrize("indexed", [False, True])
def test_buffers_of_a_model_are_written(indexed, tmp_path):
    """An exported model writes the module's buffers in place; a loaded one has its own, which are
    saved with it.
    """
    torch.manual_seed(0)
    model = test_inplace.Cached(indexed).requires_grad_(False)
    expected = copy.deepcopy(model)
    made = pt.export(model, (torch.randn(1, 1, 16), torch.tensor([0])))
    made.save(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it")
    for place in (3, 4, 6):
        x, at = torch.randn(1, 1, 16), torch.tensor([place])
        with pt.batch_invariant():
            wanted = expected(x, at)
        assert same(made(x, at), wanted) and same(loaded(x, at), wanted)
        assert same(model.keys, expected.keys) and same(model.values, expected.values)
        loaded.save(tmp_path / "it")
        loaded = ptxgen.load(tmp_path / "it")


def test_all_that_a_model_writes():
    """A parameter, a buffer, and an argument of the buffer's name."""

    class Writing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4), requires_grad=False)
            self.register_buffer("state", torch.randn(4))

        def forward(self, x, state):
            self.weight.add_(x)
            self.state.mul_(state)
            state.sub_(x)
            return self.weight - self.state, state * x

    model, x, state = Writing(), torch.randn(4), torch.randn(4)
    expected, own = copy.deepcopy(model), state.clone()
    made = pt.export(model, (x, state))
    for _ in range(2):
        with pt.batch_invariant():
            wanted = expected(x, own)
        assert all(map(same, made(x, state), wanted)) and same(state, own)
        assert same(model.weight, expected.weight) and same(model.state, expected.state)


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *given):
        return self.function(*given)


def compared(function, *tensors, path):
    """Exported and loaded as in the block: results, and all arguments behind each of two calls."""
    made = pt.export(Module(function), tensors)
    made.save(path)
    for run in (made, ptxgen.load(path)):
        arguments = tensors
        for _ in range(2):
            own, ours = ([t.clone() for t in arguments] for _ in range(2))
            with pt.batch_invariant():
                expected = function(*own)
            found = run(*ours)
            all_of = test_inplace._all
            pairs = zip((*all_of(expected), *own), (*all_of(found), *ours), strict=True)
            assert [i for i, (a, b) in enumerate(pairs) if not same(a, b)] == []
            arguments = own
    return made


REFUSED = {
    test_inplace.indices: r"aten.index_put.default \(1\)",
    test_inplace.scattered: r"aten.scatter.src \(1\), aten.scatter.value \(1\)",
    test_inplace.late: r"aten.asinh.default \(2\), aten.flip.default \(1\)",
    test_inplace.smoothed: r"aten.lerp.Scalar \(1\)",
}


@pytest.mark.parametrize("function", test_inplace.IN_PLACE + test_inplace.OTHERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mutations(function, dtype, tmp_path):
    tensors = (test_inplace.drawn(2, 4, 4).to(dtype) for _ in range(2))
    if function in REFUSED:
        with pytest.raises(UnservedError, match=f"would have to compute {REFUSED[function]}; "):
            pt.export(Module(function), tuple(tensors))
    else:
        compared(function, *tensors, path=tmp_path / "it")


SERVED = [x for x in test_inplace.IN_PLACE + test_inplace.OTHERS if x not in REFUSED]


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.lists(st.sampled_from(SERVED), min_size=2, max_size=4))
def test_random_mutations(tmp_path_factory, data, chosen):
    places = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in chosen]

    def function(*given):
        found = []
        for each, (i, j) in zip(chosen, places, strict=True):
            other = given[j] if each is test_inplace.swapped else given[j] * 1
            found += [y * 1 for y in test_inplace._all(each(given[i], other))]
        return tuple(found)

    tensors = [test_inplace.drawn(2, 4, 4) for _ in range(3)]
    compared(function, *tensors, path=tmp_path_factory.mktemp("it") / "it")


@pytest.mark.parametrize("indices", [[3], [1, 3, 1, 0], [2, -1, 2]])
def test_rows_that_are_put(indices, tmp_path):
    """Along each dimension; from the end; the last of several."""

    def function(c, x, at):
        for dim in range(3):
            c.index_copy_(dim, at.abs(), x.narrow(dim, 0, at.numel()))
        c[:, at] = x[0, : at.numel()] + 1
        c[:, :, at.int()] = 2.0
        c[at, 1:] = x[: at.numel(), 1:] * 3
        return c * 2

    tensors = test_inplace.drawn(4, 4, 4), test_inplace.drawn(4, 4, 4)
    made = compared(function, *tensors, torch.tensor(indices), path=tmp_path / "it")
    assert sum(s.problem.table == ("counting_sort", "put") for s in made.program.steps) == 6


def test_sorts_along_dimensions(tmp_path):
    """Values, and indices of equal ones, of floats and of integers."""

    def function(x, i):
        values, places = x.floor().sort(1, descending=True)
        return values * 2, places, x.argsort(dim=0, stable=True), i.sort(-1)[0], i.sort(-1)[1]

    tensors = torch.randn(4, 9, 3), torch.randint(0, 4, (3, 8))
    made = compared(function, *tensors, path=tmp_path / "it")
    assert sum(s.problem.table[0] == "sort" for s in made.program.steps) == 4


def test_what_no_argument_goes_into_is_a_constant(tmp_path):
    """Constants that depend on no argument are saved in the file."""

    class Masked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.rand(8), requires_grad=False)
            self.table = torch.linspace(0, 1, 8)  # neither a parameter nor a buffer

        def forward(self, x):
            mask = torch.full((8, 8), -1e4, device=x.device).triu(1)
            places = torch.arange(8, device=x.device).flip(0)
            kept = torch.eye(8, device=x.device).exp().asinh() + self.table.cosh()
            return (x + mask * kept) @ x.T * self.scale, places * 2

    model, x = Masked(), torch.randn(8, 8)
    with pt.batch_invariant():
        expected = model(x)
    made = pt.export(model, (x,))
    made.save(tmp_path / "it", arrays=False)
    names = zipfile.ZipFile(tmp_path / "it").namelist()
    held = [n for n in names if n.startswith("arrays/")]
    assert held and not [n for n in held if "scale" in n]
    with pytest.raises(SavedError, match=r"without its arrays; pass arrays= for scale$"):
        ptxgen.load(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it", arrays=model.state_dict() | {"other": x})
    for run in (made, loaded):
        assert all(map(same, run(x), expected))


def test_options_are_those_of_a_backend():
    def function(x, w):
        return functional.softmax(x.exp() @ w, -1) * 2

    x, w = torch.randn(5, 8).bfloat16(), torch.randn(8, 16).bfloat16()
    with pt.batch_invariant(tier="simt"):
        expected = function(x, w)
    made = pt.export(Module(function), (x, w), tier="simt", passes=())
    assert same(made(x, w), expected) and len(made.program.steps) == 4
    with pytest.raises(UnservedError, match=r"aten.exp.default \(1\)"):
        pt.export(Module(function), (x, w), functions=False)
    with pytest.raises(OptionError, match="passes has 'x'"):
        pt.export(Module(function), (x, w), passes=["x"])


def test_what_is_refused():
    x = torch.randn(4, 4)
    for function, arguments, error, says in [
        (lambda x: x.asinh().cos().asinh(), (x,), UnservedError, r"aten.asinh.default \(2\); do"),
        (lambda x: x + torch.rand(4), (x,), UnservedError, r"aten.rand.default \(1\)"),
        (lambda x: x[x > 0], (x,), UnservedError, "aten.* makes a number or a size of what is in"),
        (
            lambda x: x * x.sum().item(),
            (x,),
            UnservedError,
            "aten._local_scalar_dense.default makes a number",
        ),
        (lambda x: (x * 2, 3), (x,), TraceError, "Module returns 3, which is no tensor"),
        (lambda x: None, (x,), TraceError, "Module returns no tensor"),
        (lambda n: torch.ones(n), (3,), TraceError, "Module is given no tensor"),
        (lambda x: x * 2, (x.clone().requires_grad_(),), GradError, "argument 0 requires grad"),
    ]:
        with pytest.raises(error, match=says):
            pt.export(Module(function), arguments)
    with pytest.raises(TraceError, match=r"takes a torch.nn.Module; got a function"):
        pt.export(lambda x: x, (x,))


def test_an_altered_file_is_refused(tmp_path):
    decoded(llama(layers=1), tmp_path)
    data = (tmp_path / "it").read_bytes()
    at = len(data) // 2
    (tmp_path / "it").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(SavedError, match="altered"):
        ptxgen.load(tmp_path / "it")


def test_arguments_and_results_of_any_structure(tmp_path):
    """Tensors in their order, turned ones too; numbers are those of now; one result twice."""

    class Structured(torch.nn.Module):
        def forward(self, x, pair, scale, *, named, flag=False):
            y = (x @ pair[0] + named["b"]) * scale
            y = y - pair[1] if flag else y
            return {"y": y, "turned": (y.T, None), "again": [y, x]}

    x, a, b, c = (torch.randn(4, 4).T for _ in range(4))
    given, named = (x, [a, b], 0.5), {"named": {"b": c}, "flag": True}
    with pt.batch_invariant():
        found = Structured()(*given, **named)
    expected = found["y"], *found["turned"], *found["again"]
    made = pt.export(Structured(), given, named)
    made.save(tmp_path / "it")
    for run in (made, ptxgen.load(tmp_path / "it")):
        results = run(x, a, b, c)
        assert all(map(same, results, expected)) and len(results) == 5
        results[0].zero_()
        assert same(results[3], expected[3]), "each is an array of its own"
