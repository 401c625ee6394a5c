"""Graphs as programs: every way gives the bits of the block, on the CPU device."""

from __future__ import annotations

import contextlib
import importlib
import random
import tomllib
from functools import partial
from pathlib import Path

import pytest
from model_cases import SIZES
from random_programs import TORCH, draw, subsets

import ptxgen
from ptxgen import functions as f
from ptxgen.errors import OptionError, UnservedError
from ptxgen.numerics.dtype import FULL

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
serve = pytest.importorskip("ptxgen.torch.serve")
elementwise = pytest.importorskip("ptxgen.torch.elementwise")
graphs = pytest.importorskip("ptxgen.torch.graphs")
checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
inputs = pytest.importorskip("ptxgen.torch.inputs")
outputs = pytest.importorskip("ptxgen.torch.outputs")
tracing = pytest.importorskip("ptxgen.torch.tracing")
functional = torch.nn.functional
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield
    torch._dynamo.reset()


def same(a, b):
    """Returns whether two tensors have the same bits; all NaNs are alike."""
    if a is None or b is None:
        return a is b
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    if a.is_floating_point() and a.element_size() == 1:  # of which PyTorch fills none by a mask
        a, b = a.float(), b.float()
    nan = torch.isnan(a) & torch.isnan(b) if a.is_floating_point() else torch.zeros_like(a).bool()
    a, b = (x.masked_fill(nan, 0).contiguous().view(BITS[x.element_size()]) for x in (a, b))
    return bool((a == b).all())


def traced(function, backend):
    """Compiles like ``torch.compile``, without reading Python's bytecode."""
    from functorch.compile import aot_function, default_partition

    how = graphs.Options.of(backend._options)
    compiler = partial(graphs._compiled, how, backend.report())
    made = aot_function(function, compiler, compiler, partition_fn=default_partition)

    def called(*args):
        with tracing.as_served():
            return made(*args)

    return called


def both(function, tensors):
    """Results, and gradients of what has such."""
    own = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    found = function(*own)
    found = tuple(found) if isinstance(found, tuple | list) else (found,)
    wanted = [y for y in found if y.requires_grad]
    torch.manual_seed(1)
    if wanted:
        torch.autograd.backward(wanted, [torch.randn_like(y) for y in wanted])
    return [*(y.detach() for y in found), *(t.grad for t in own)]


def compared(function, *tensors, how=torch.compile, **options):
    """Compiled as in the block; returns what the backend says."""
    torch.manual_seed(0)
    with pt.batch_invariant(functions=options.get("functions", True)):
        expected = both(function, tensors)
    backend = pt.Backend(**options)
    torch.manual_seed(0)
    made = traced(function, backend) if how is traced else how(function, backend=backend)
    found = both(made, tensors)
    assert [i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if not same(a, b)] == []
    return backend.report()


def matrices(*shapes, grad=True, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(s).to(dtype).requires_grad_(grad) for s in shapes]


# -- elementwise ----------------------------------------------------------------------------
SPECIAL = [0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 1e-40, -1e-40, 3.3e38, 1e-6]
ELEMENTWISE = {
    "add": lambda x, y: x + y,
    "add_number": lambda x, y: x + 0.5,
    "sub": lambda x, y: x - y,
    "rsub": lambda x, y: 2 - x,
    "mul": lambda x, y: x * y,
    "mul_number": lambda x, y: x * 0.1,
    "div": lambda x, y: x / y,
    "div_number": lambda x, y: x / 3,
    "leaky_relu": lambda x, y: functional.leaky_relu(x, 0.25),
    "leaky_relu_": lambda x, y: functional.leaky_relu_(x * 1, 0.5),
    "neg": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
    "sqrt": lambda x, y: x.sqrt(),
    "reciprocal": lambda x, y: x.reciprocal(),
    "floor": lambda x, y: x.floor(),
    "ceil": lambda x, y: x.ceil(),
    "trunc": lambda x, y: x.trunc(),
    "relu": lambda x, y: x.relu(),
    "square": lambda x, y: x.pow(2),
    "cube": lambda x, y: x.pow(3),
    "first": lambda x, y: x.pow(1),
    "isnan": lambda x, y: x.isnan(),
    "compare": lambda x, y: (x < y) | (x >= 0.5) & (x != y) & ~(x == 0),
    "where": lambda x, y: torch.where(x > y, x, y * 2),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, -torch.inf),
    "half": lambda x, y: x.to(torch.float16),
    "brain": lambda x, y: x.to(torch.bfloat16),
    "single": lambda x, y: x.float() + y,
    "double": lambda x, y: x.double() * y,
    "int": lambda x, y: (x > y).long() + 3,
    "mixed": lambda x, y: (x > y) * x,
    "gate": lambda x, y: torch.ops.aten.threshold_backward(x, y, 0),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_elementwise_operators_have_pytorchs_bits(dtype):
    torch.manual_seed(0)
    special = torch.tensor(SPECIAL, dtype=torch.float64)
    x = torch.cat([torch.randn(301) * 3, special.repeat(len(special))]).to(getattr(torch, dtype))
    y = torch.cat([torch.randn(301), special.repeat_interleave(len(special))]).to(x.dtype)

    def all_of_them(x, y):
        return tuple(f(x, y) for f in ELEMENTWISE.values())

    report = compared(all_of_them, x, y, how=traced, passes=(), functions=False)
    assert not report.unknown
    cubes = {"aten.pow.Tensor_Scalar": 1} if x.element_size() == 2 else {}
    assert dict(report.torch) == {"aten.sqrt.default": 1, **cubes}


def test_casts_of_the_library_are_compiled():
    """Casts name dtypes by their short names."""
    (x,) = matrices((5, 6))
    report = compared(lambda x: f.cast(f.cast(x, "bfloat16"), torch.float64), x, how=traced)
    assert not report.torch and not report.unknown


BYTES = [torch.uint8, torch.int8, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", BYTES, ids=str)
def test_dtypes_of_8_bits_are_cast_and_moved_in_programs(dtype):
    """Neither their casts nor their moves are left to PyTorch; those of floats to integers are."""
    if dtype == torch.float8_e4m3fn and not elementwise.saturates():
        pytest.skip("this PyTorch gives NaN beyond the largest number")
    torch.manual_seed(0)
    x = torch.randn(6, 40) * 300
    x[0, : len(SPECIAL)] = torch.tensor(SPECIAL)
    whole = torch.randint(-(1 << 40), 1 << 40, (6, 40))
    codes = torch.randint(0, 256, (6, 40), dtype=torch.uint8).view(dtype)

    def moved(x, whole, codes):
        low = (x if dtype.is_floating_point else whole).to(dtype)
        both = torch.cat([low, codes, whole.to(dtype)], 1)
        rows = torch.stack([codes.t().contiguous(), low.t()])
        ours = f.cast(f.cast(x, dtype), torch.float32)
        return both, rows, both.to(torch.bfloat16), codes.clone(), codes.roll(3, 1), ours

    report = compared(moved, x, whole, codes, how=traced)
    assert not report.torch and not report.unknown
    if not dtype.is_floating_point:
        assert dict(compared(lambda x: x.to(dtype) * 2, x, how=traced).torch) == {
            "aten._to_copy.default": 1,
            "aten.mul.Tensor": 1,
        }


# -- random programs --------------------------------------------------------------------------
COMPILED, CHUNK = 100, 25
"""Seeds of programs that `make check` compiles, and how many of them a test has."""


def tensors_of(drawn):
    """Arrays of a program as tensors; those of floats require gradients."""
    found = []
    for x, of in zip(drawn.arrays(), drawn.types[: drawn.inputs], strict=True):
        bits = torch.from_numpy(x.view("i2") if x.dtype.itemsize == 2 else x)
        tensor = bits.view(getattr(torch, FULL[of.dtype]))
        found.append(tensor.requires_grad_(tensor.is_floating_point()))
    return found


def has_views(drawn):
    """Whether results share memory with arguments or one another. ``traced`` leaves that alone."""
    given = tensors_of(drawn)
    found = drawn.torch(*given)
    storages = [x.untyped_storage().data_ptr() for x in (*given, *found)]
    return len({*storages}) < len(storages)


def compiled(seeds):
    """Compares random programs, and their gradients, with the block: with all passes, with none,
    and with a random subset.
    """
    for seed in seeds:
        drawn = draw(seed, rules=TORCH)
        *_, (_, some) = subsets(seed)
        how = torch.compile if has_views(drawn) else traced
        for passes in (None, (), some):
            torch._dynamo.reset()
            try:
                compared(drawn.torch, *tensors_of(drawn), how=how, passes=passes)
            except AssertionError as error:
                again = f"reproduce: test_graph.compiled([{seed}])"
                raise AssertionError(f"passes={passes!r}\n{drawn}\n{again}") from error


def test_random_programs_have_the_blocks_bits_with_any_passes():
    compiled(range(6))


@pytest.mark.long
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(n, marks=pytest.mark.xdist_group(f"compiled {n}"))
        for n in range(0, COMPILED, CHUNK)
    ],
)
def test_all_random_programs_have_the_blocks_bits_with_any_passes(first):
    compiled(range(first, first + CHUNK))


@pytest.mark.parametrize("seed", [1, 311, 684, 1600, 1856])
def test_random_programs_have_the_blocks_bits_by_torch_compile(seed):
    """The last four return views, whose gradients are added inside of the graph."""
    drawn = draw(seed, rules=TORCH)
    compared(drawn.torch, *tensors_of(drawn))


def test_a_condition_that_gradients_read_is_stored_as_it_was():
    """A condition that gradients read is stored unchanged, though a norm's step computes it, in 16
    bits and in f32.
    """

    def function(x):
        y = torch.where(x > 0, x, 0.1 * x)
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6), x > 0

    for dtype in (torch.bfloat16, torch.float32):
        compared(function, *matrices((6, 8), dtype=dtype), how=traced, passes=["fuse_reductions"])


# -- outputs that are views -------------------------------------------------------------------
def view_of_an_input(x, w):
    return x.view(-1), functional.rms_norm(x, (4,)), (x * w).softmax(-1)


def view_of_an_output(x, w):
    z = (x * w).exp()
    return z[0], z, z.softmax(-1) * z


def views_of_a_value(x, w):
    z = (x * w).exp()
    return z[:1], z[1:], z.softmax(-1) * z


def views_of_views(x, w):
    z = x * w
    y = z[0]
    return y[:3].view(3, 1), y[1], y.exp() * y, y


def views_that_overlap(x, w):
    return x[None].expand(2, *x.shape), x.t(), x.reshape(-1), (x * w).exp() + x.softmax(-1)


def input_that_was_contiguous(x, w):
    z = x.contiguous()
    return z, x.softmax(-1) * x + (x * w).exp()


def view_of_a_clone(x, w):
    z = x * w
    c = z.clone()  # which programs compute as z
    return z, c, c[0], c.softmax(-1) * c


SHARING = [
    view_of_an_input,
    view_of_an_output,
    views_of_a_value,
    views_of_views,
    views_that_overlap,
    input_that_was_contiguous,
    view_of_a_clone,
]


def memory(tensors):
    """Distances of all pairs of tensors, None of two that share no memory; and all strides."""
    storages = [x.untyped_storage().data_ptr() for x in tensors]
    places = [(s, x.storage_offset()) for s, x in zip(storages, tensors, strict=True)]
    apart = [[j - i if s == t else None for t, j in places] for s, i in places]
    return apart, [x.stride() for x in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", SHARING)
def test_outputs_that_are_views_have_the_blocks_gradients(function, dtype):
    tensors = matrices((6, 4), (6, 4), dtype=dtype)
    report = compared(function, *tensors)
    assert not report.torch, "views are no calls"
    found = torch.compile(function, backend=pt.Backend())(*tensors)
    assert memory([*tensors, *found]) == memory([*tensors, *function(*tensors)])
    assert all(x.requires_grad for x in found)


@pytest.mark.parametrize("recorded", [torch.enable_grad, torch.no_grad])
@pytest.mark.parametrize("function", SHARING[:4])
def test_views_that_are_written_have_right_gradients_or_none(function, recorded):
    """Writes to the input or an output that is a view have right values and gradients, or PyTorch
    refuses.
    """
    outcomes = set()
    for index in range(len(function(*matrices((6, 4), (6, 4)))) + 1):
        with pt.batch_invariant():
            values, gradients = after_a_write(function, index, recorded)
        made = torch.compile(function, backend=pt.Backend())
        own, mine = after_a_write(made, index, recorded)
        torch._dynamo.reset()
        assert own is None or all(map(same, own, values)), index
        assert mine is None or all(map(same, mine, gradients)), index
        outcomes.add((own is None, mine is None))
    refused, refused_later, right = (True, True), (False, True), (False, False)
    expected = (
        {refused, refused_later, right} if recorded is torch.enable_grad else {refused_later, right}
    )
    assert outcomes == expected


def after_a_write(function, index, recorded):
    """The input and all outputs after one of them is doubled, and gradients; None if refused."""
    values = None
    tensors = matrices((6, 4), (6, 4))
    x = tensors[0] * 1
    outputs = function(x, tensors[1])
    try:
        with recorded():
            [x, *outputs][index].mul_(2)
        values = [y.detach().clone() for y in (x, *outputs)]
        torch.manual_seed(1)
        torch.autograd.backward(outputs, [torch.randn_like(y) for y in outputs])
    except RuntimeError as error:
        assert "modified" in str(error)
        return values, None
    return values, [t.grad for t in tensors]


def hidden(function, *tensors):
    """Counts the outputs of a function that are hidden from AOTAutograd."""
    found = []

    def backend(module, _):
        outputs.separate(module)
        found.extend(n for n in module.graph.nodes if "output_view" in str(n.target))
        return module

    torch.compile(function, backend=backend)(*tensors)
    return len(found)


def test_only_views_whose_gradients_have_an_order_are_hidden():
    x, w = matrices((6, 4), (6, 4))
    assert hidden(view_of_an_input, x, w) == 1
    assert hidden(view_of_an_input, x.detach(), w) == 0
    assert hidden(lambda x: x.view(-1), x) == 0
    assert hidden(lambda x: (x.view(-1), x.detach() * 2), x) == 0
    assert hidden(lambda x: (x.view(-1), x > 0), x) == 0
    assert hidden(lambda x: (x.view(-1), x.t(), x[0]), x) == 3
    assert hidden(lambda x, w: ((x * w)[0], x * w), x, w) == 0
    with torch.no_grad():
        assert hidden(view_of_an_input, x, w) == 0

    def written(x, w):  # PyTorch writes it outside of the graph, and views it then
        x.mul_(w)
        return x[0], x.softmax(-1) * w

    assert hidden(written, x * 1, w) == 0


# -- inputs that are read several times -------------------------------------------------------
READS = {
    "alone": lambda x, w: x * w,
    "twice": lambda x, w: x * x,
    "in a row": lambda x, w: torch.cat([x, w, x], 1)[:, 2:8].softmax(-1),
    "by a view": lambda x, w: x.t().softmax(-1).t() * w,
    "by a name": lambda x, w: torch.where(input=x, other=x, condition=w > 0.5),
    "by a row": lambda x, w: torch.nn.functional.layer_norm(x, (6,), w[0], w[1]),
    "checkpointed": lambda x, w: checkpoint(lambda x: x.exp() * x, x, use_reentrant=False) * w,
    "in no gradient": lambda x, w: w * (x > 0.5),
}


def read_by(names):
    """A function of one graph that reads its first argument in these ways, one after the other."""

    def function(x, w, found):
        for name in names:
            found = found * READS[name](x, w)
        return found

    return function


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_what_graphs_read_several_times(dtype):
    """Gradients of a tensor that graphs read several times add up in the block's order."""
    rng = random.Random(51)
    for _ in range(8 if dtype is torch.float32 else 3):
        parts = [rng.choices(list(READS), k=rng.randint(1, 3)) for _ in range(rng.choice((2, 3)))]
        leaf = rng.random() < 0.5
        torch._dynamo.reset()
        found = []
        for compiled in (False, True):
            p, w = matrices((4, 6), (4, 6), dtype=dtype)
            y = w
            with pt.batch_invariant():
                x = p if leaf else p * 1
            for names in parts:
                call = read_by(names)
                if compiled:
                    y = torch.compile(call, backend=pt.Backend(), fullgraph=True)(x, w, y)
                else:
                    with pt.batch_invariant():
                        y = call(x, w, y)
            with pt.batch_invariant():
                z = y + x  # an input that is also used by whoever calls
                z.backward(torch.linspace(-1, 1, z.numel(), dtype=dtype).view_as(z))
            found.append((z.detach(), p.grad, w.grad))
        assert all(map(same, *found)), (parts, leaf)


def test_summands_are_told_apart_but_for_inputs_that_are_outputs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    given = x, x.view_as(x), x.view_as(x)
    one = torch.ones(2)

    def gradients(outputs, views=2):
        with inputs.Summands(given[: views + 1], [0] * views):
            each = [one] * len(outputs)
            try:
                return torch.autograd.grad(outputs, given[: views + 1], each, allow_unused=True)
            except inputs._MoreViewsError as more:
                return more.views

    def summed():
        return x.exp() + x * 3 + x

    assert all(map(torch.equal, gradients([summed()]), (one, x.exp(), one * 3)))
    assert gradients([summed()], views=1) == [0, 0]
    own = gradients([x, x * 3, x.exp()])
    whole = torch.autograd.grad([x, x * 3, x.exp()], x, [one] * 3)
    assert torch.equal(own[0], whole[0]) and own[1:] == (None, None)


def test_inputs_have_as_many_views_as_gradients_that_meet(monkeypatch):
    """Inputs get one view for each gradient that meets another; none if read once, without
    gradients, or unrecorded.
    """
    own, found = inputs._with_views, []

    def with_views(given, views):
        found.append(len(views))
        return own(given, views)

    def count(function, *given):
        torch._dynamo.reset()
        found.clear()
        torch.compile(function, backend=pt.Backend())(*given)
        return found

    monkeypatch.setattr(inputs, "_with_views", with_views)
    x, w = matrices((6, 4), (6, 4))
    assert count(lambda x, w: x * w, x, w) == [0]
    assert count(lambda x, w: x.exp() * w + x, x, w) == [1, 1], "traced, called"
    assert count(lambda x, w: x * x, x, w) == [0, 1, 1], "both gradients come from one reader"
    assert count(lambda x, w: (x * x).exp() * w + x, x, w) == [1, 2, 2]
    assert count(lambda x, w: w * (x > 0) * x, x, w) == [0]
    assert count(lambda x: x * x + x, x.detach()) == [0]
    with torch.no_grad():
        assert count(lambda x: x * x + x, x) == [0]


# -- torch.compile ----------------------------------------------------------------------------
class Block(torch.nn.Module):
    """A small Llama-style transformer block."""

    def __init__(self, dim=32, heads=4, shared=2):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, dim // heads
        self.q = torch.nn.Linear(dim, dim, bias=False)
        self.kv = torch.nn.Linear(dim, 2 * shared * self.size, bias=False)
        self.o = torch.nn.Linear(dim, dim, bias=False)
        self.gate = torch.nn.Linear(dim, 48, bias=False)
        self.up = torch.nn.Linear(dim, 48, bias=False)
        self.down = torch.nn.Linear(48, dim, bias=False)
        self.first, self.second = (torch.nn.Parameter(torch.rand(dim)) for _ in range(2))

    def norm(self, x, weight):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * wide.to(x.dtype)

    def turned(self, x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def forward(self, x):
        count, rows, _ = x.shape
        h = self.norm(x, self.first)
        places = torch.arange(rows, dtype=torch.float32, device=x.device)[:, None] * 0.1
        steps = torch.arange(1, self.size // 2 + 1, dtype=torch.float32, device=x.device)
        angles = places * steps
        angles = torch.cat([angles, angles], -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        q = self.q(h).view(count, rows, self.heads, self.size).transpose(1, 2)
        k, v = self.kv(h).view(count, rows, 2, self.shared, self.size).unbind(2)
        q, k = (self.turned(t, cos, sin) for t in (q, k.transpose(1, 2)))
        y = functional.scaled_dot_product_attention(
            q, k, v.transpose(1, 2), is_causal=True, enable_gqa=True
        )
        x = x + self.o(y.transpose(1, 2).reshape(count, rows, -1))
        h = self.norm(x, self.second)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


def of_model(model):
    """A model as a function of an input and its parameters."""
    names = [n for n, _ in model.named_parameters()]

    def function(x, *given):
        return torch.func.functional_call(model, dict(zip(names, given, strict=True)), (x,))

    return function, tuple(p.detach().requires_grad_() for p in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_block_of_a_llama_with_gradients(dtype):
    torch.manual_seed(0)
    function, parameters = of_model(Block().to(dtype))
    (x,) = matrices((2, 5, 32), dtype=dtype)
    report = compared(function, x, *parameters, strict=True)
    assert set(report.torch) <= {"aten.arange.start", "aten.arange.default"}
    assert len(report.programs) == 2, "one forward, one backward"
    plain = compared(function, x, *parameters, passes=())
    assert sum(len(p.steps) for p in report.programs) < sum(len(p.steps) for p in plain.programs)


def test_no_gradients_and_the_name_of_the_backend():
    model = Block().requires_grad_(False)
    (x,) = matrices((1, 3, 32), grad=False)
    with pt.batch_invariant():
        expected = model(x)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    home, _, name = project["project"]["entry-points"]["torch_dynamo_backends"]["ptxgen"].partition(
        ":"
    )
    assert getattr(importlib.import_module(home), name) is graphs.backend
    for _ in range(2):
        graphs.backend.register()
    with pytest.raises(OptionError, match="another backend 'ptxgen'"):
        pt.Backend().register()
    for how in ({}, {"options": {"passes": ["fuse"], "tier": "auto"}}):
        found = torch.compile(model, backend="ptxgen", **how)(x)
        assert same(found, expected)
    assert graphs.backend.report().lowered["aten.mm.default"] >= 5


def test_sizes_change():
    model = Block().requires_grad_(False)
    backend = pt.Backend()
    made = torch.compile(model, backend=backend, dynamic=True)
    for rows in (4, 3, 7, 3):
        x = torch.randn(2, rows, 32)
        with pt.batch_invariant():
            expected = model(x)
        assert same(made(x), expected)


def test_sizes_that_are_computed_cut_no_program():
    """Symbols of what is in a program, as those of halves along a size that follows from others."""

    def function(x, w):
        y = torch.exp(x @ w).unflatten(-1, (-1, 4))
        a, b = y.chunk(2, -1)
        return torch.cat((-b, a), -1).transpose(0, 1).softmax(-1)

    backend = pt.Backend(strict=True)
    made = torch.compile(function, backend=backend, dynamic=True)
    for rows in (3, 4):
        given = matrices((rows, 8), (8, 8 * rows), grad=False)
        with pt.batch_invariant():
            expected = function(*given)
        assert same(made(*given), expected)
    assert len(backend.report().programs) == 2, "one for each set of sizes"


@pytest.mark.parametrize("cut", [False, True])
def test_a_program_with_large_results_is_cut(monkeypatch, cut):
    """No part makes half of the gradients, and all bits are as before."""
    monkeypatch.setattr(graphs, "PARTS_FROM", 1 if cut else 1 << 28)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(32, 32, bias=False) for _ in range(12)]
    model = torch.nn.Sequential(*(each for w in layers for each in (w, torch.nn.ReLU())))
    x, found = torch.randn(4, 32), []
    backend = pt.Backend(strict=True)
    for run in (model, torch.compile(model, backend=backend, fullgraph=True)):
        with pt.batch_invariant() if run is model else contextlib.nullcontext():
            y = run(x)
            gradients = torch.autograd.grad(y, [w.weight for w in layers], torch.ones_like(y))
        found.append((y.detach(), *gradients))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    made = [
        sum(b.shape == (32, 32) for b in program.outputs) for program in backend.report().programs
    ]
    assert sum(made) == 12 and (max(made) <= 6) is cut
    assert (len(made) == 2) is not cut and len(made) <= 2 * graphs.PARTS


def test_graph_breaks_and_mutation():
    def function(x, state):
        y = x @ x
        state.add_(y * 2)
        torch._dynamo.graph_break()
        state[0] = 1
        return (y + state).relu_() * 3, y.view(-1), y

    x, state = matrices((4, 4), (4, 4), grad=False)
    other = state.clone()
    with pt.batch_invariant():
        expected = function(x, state)
    found = torch.compile(function, backend=pt.Backend())(x, other)
    assert all(map(same, expected, found))
    assert same(state, other)
    found[1].zero_()
    assert not found[2].any(), "views of one tensor are"
    assert same(found[0], expected[0])


def test_what_is_returned_is_nobody_elses():
    def function(x, y):
        z = x + y
        return z.clone(), z, x.clone(), (x * 1).t()

    x, y = matrices((3, 4), (3, 4), grad=False)
    found = torch.compile(function, backend=pt.Backend())(x, y)
    expected = function(x, y)
    found[0].zero_()
    found[2].zero_()
    assert same(found[1], expected[1])
    assert same(x, expected[2])
    assert [t.stride() for t in found] == [t.stride() for t in expected]


def test_random_numbers_are_drawn_in_their_order():
    def function(x):
        y = functional.dropout(x @ x.t(), 0.5)
        return functional.dropout(y, 0.2) + torch.rand_like(y)

    compared(function, *matrices((4, 4)))


def test_what_nothing_is_known_of():
    def function(x):
        return torch.linalg.inv_ex(x @ x).inverse + 1

    report = compared(function, *matrices((4, 4), grad=False))
    assert set(report.unknown) == {"aten.linalg_inv_ex.default"}
    assert "unknown: may depend on the batch: 1" in str(report)
    with pytest.raises(UnservedError, match=r"aten\.linalg_inv_ex"):
        torch.compile(function, backend=pt.Backend(strict=True))(*matrices((4, 4), grad=False))


def test_random_numbers_are_unknown_though_nothing_is_read():
    def function(x):
        return x @ x + torch.rand(4, 4)

    backend = pt.Backend(strict=True)
    with pytest.raises(UnservedError, match=r"aten\.rand\.default"):
        torch.compile(function, backend=backend)(*matrices((4, 4), grad=False))


def test_operations_of_the_library():
    scaled = ptxgen.pointwise(lambda x, y: x * 2 + y)

    def function(x, w):
        return scaled(pt.softmax(pt.linear(x, w), dim=-1), 0.5)

    report = compared(function, *matrices((5, 8), (4, 8)))
    assert {n for n in report.lowered if n.startswith("ptxgen")} >= {"ptxgen.pointwise.default"}
    assert not report.torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_residual_norms(dtype):
    """A norm and the sum that it reads are a step, with moments that gradients need as well."""

    def function(x, y, w, v):
        x = x + y @ v
        x = x + functional.layer_norm(x, (16,), w, w) @ v
        return functional.layer_norm(x, (16,), w) @ v, x

    tensors = matrices((3, 5, 16), (3, 5, 16), (16,), (16, 16), grad=False, dtype=dtype)
    found = compared(function, *tensors), compared(function, *tensors, passes=["fuse", "dead"])
    counts = [sum(len(p.steps) for p in report.programs) for report in found]
    assert counts[1] - counts[0] == 2
    assert "fuse_reductions: " in str(found[0])
    compared(function, *matrices((3, 5, 16), (3, 5, 16), (16,), (16, 16), dtype=dtype))


def test_a_loss():
    def function(x, w, targets):
        return functional.cross_entropy(x @ w, targets)

    compared(function, *matrices((6, 8), (8, 5)), torch.tensor([1, 0, 4, 2, -100, 3]))


def test_bad_options():
    with pytest.raises(OptionError, match="passes has 'x'; takes inplace"):
        pt.Backend(passes=["x"])
    with pytest.raises(OptionError, match="tier is 'x'"):
        pt.Backend(tier="x")
    with pytest.raises(OptionError, match="no option 'y'"):
        graphs.Options.of({"y": 1})


# -- models -----------------------------------------------------------------------------------
def in_the_block(model):
    """A model that runs in the block, as it comes."""

    def run(*given, **named):
        with pt.batch_invariant():
            return model(*given, **named)

    return run


def test_a_model_of_transformers_is_two_programs():
    """A Llama model compiles to one forward and one backward program (test_torch_reading.py
    compares its results and gradients).
    """
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    torch.manual_seed(0)
    mine = pt.Backend(strict=True)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    ids = torch.randint(1, 32, (2, 8))
    compiled = torch.compile(model, backend=mine, fullgraph=True)
    compiled(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    assert len(mine.report().programs) == 2, "one forward, one backward"


@pytest.mark.parametrize("name", ["Llama", "Gemma2"])
def test_decoding_with_a_static_cache(name):
    """Gemma2 writes its attention out, and repeats keys and values for each head."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    config = getattr(transformers, f"{name}Config")(**SIZES, layer_types=["full_attention"])
    found, mine = [], pt.Backend(strict=True)
    for made in (in_the_block, partial(torch.compile, backend=mine)):
        torch.manual_seed(0)
        model = getattr(transformers, f"{name}ForCausalLM")(config).eval().requires_grad_(False)
        run, cache = made(model), []
        state = transformers.StaticCache(config=config, max_cache_len=16)
        ids, start = torch.randint(1, 32, (2, 5)), 0
        for _ in range(3):
            places = torch.arange(start, start + ids.shape[1])
            logits = run(ids, past_key_values=state, cache_position=places).logits
            ids, start = logits[:, -1:].argmax(-1), start + ids.shape[1]
            cache.append(logits)
        found.append([*cache, *(x for layer in state.layers for x in (layer.keys, layer.values))])
    assert all(map(same, *found))
    programs = mine.report().programs
    assert len(programs) == 4, "of a prompt and a token, which PyTorch puts between"
    assert mine.report().updated == {"in place": 4}
    repeated = 2 * SIZES["num_attention_heads"] * 16 * SIZES["head_dim"]
    assert all(b.size < repeated for p in programs for s in p.steps for b in s.writes())


# -- operators that PyTorch's tracing would take apart ------------------------------------------
MODES = {
    **{f"nearest {rank}d": (rank, {"mode": "nearest"}) for rank in (1, 2, 3)},
    "linear": (1, {"mode": "linear"}),
    "bilinear": (2, {"mode": "bilinear"}),
    "corners": (2, {"mode": "bilinear", "align_corners": True}),
    "trilinear": (3, {"mode": "trilinear"}),
    "area": (2, {"mode": "area"}),
}


@pytest.mark.parametrize("size", [{"scale_factor": 1.7}, {"size": 5}], ids=["scale", "size"])
@pytest.mark.parametrize("mode", MODES)
def test_resized_images_have_the_blocks_bits(mode, size):
    rank, how = MODES[mode]
    made = torch.compile if (mode, *size) == ("bilinear", "size") else traced
    images = matrices((2, 2, *[4] * rank))
    report = compared(lambda x: functional.interpolate(x, **size, **how), *images, how=made)
    assert sum(report.lowered.values()) == 2 and not report.unknown and not report.torch


@pytest.mark.parametrize("mode", ["nearest 3d", "bilinear", "linear"])
def test_images_of_any_size_are_resized_by_one_graph(mode):
    """Images of any size are resized by one graph, forward and backward."""
    rank, how = MODES[mode]
    backend, graphs_made = pt.Backend(), []

    def counted(module, example):
        graphs_made.append(module)
        return backend(module, example)

    def resize(x):
        return functional.interpolate(x, scale_factor=2.0, **how)

    compiled = torch.compile(resize, backend=counted, dynamic=True, fullgraph=True)
    for size in (3, 5, 4):
        images = matrices((1, 2, *range(size, size + rank)))
        with pt.batch_invariant():
            expected = both(resize, images)
        assert all(map(same, both(compiled, images), expected))
    assert len(graphs_made) == 1 and not backend.report().unknown


def test_pytorchs_rules_are_back_after_a_graph():
    kernels = torch.ops.aten.upsample_bilinear2d.vec.py_kernels
    before = dict(kernels)
    with tracing.as_served():
        assert before and kernels != before
    assert kernels == before


SERVED = {
    "fold": lambda x: functional.fold(
        functional.unfold(x, 3, padding=1), x.shape[-2:], 3, padding=1
    ),
    "leaky_relu": lambda x: functional.leaky_relu(torch.cat([x, x - x.detach()]), 0.25),
    "prod": lambda x: x.prod(),
    "prod_dim": lambda x: x.prod(1),
    "cumprod": lambda x: x.cumprod(-1),
    "unsafe_index": lambda x: torch.ops.aten._unsafe_index(x, [None, torch.tensor([2, 0, 2])]),
    "largest": lambda x: (x.amax(1), x.amin((0, -1), keepdim=True), x.max(), x.min()),
    "both": lambda x: (*torch.aminmax(x, dim=2), *torch.aminmax(x)),
    "first": lambda x: (x.argmax(1), x.argmin(-1, keepdim=True), (x > 0).long().argmax()),
    "counted": lambda x: ((x > 0).sum(1), (x > 0).long().sum(), x.isnan().sum((0, 1))),
    "windows": lambda x: functional.unfold(x, (2, 3), padding=(0, 2), stride=2, dilation=(3, 1)),
    "repeat": lambda x: (x.repeat(2, 1, 1, 3), x.repeat(2, 1, 1, 1, 1), x.repeat(1, 1, 1, 1)),
    "shuffle": lambda x: functional.pixel_shuffle(x.reshape(1, 12, 5, 2), 2),
    "unshuffle": lambda x: functional.pixel_unshuffle(x.reshape(2, 1, 6, 10), 2),
    "channels": lambda x: functional.channel_shuffle(x.reshape(1, 6, 5, 4), 3),
    "roll": lambda x: (x.roll((1, -2), (0, -1)), x.roll(7)),
    "pad": lambda x: (functional.pad(x, (1, -2, -1, 3), value=0.5), functional.pad(x > 0, (1, 1))),
    "reflect": lambda x: functional.pad(x, (3, 1, 0, 2), mode="reflect"),
    "replicate": lambda x: functional.pad(x, (3, -1, 7, 2, 1, 1), mode="replicate"),
    "select": lambda x: x.index_select(1, torch.tensor([2, 0, 2])),
    "scalar": lambda x: x[0, 0, 0, 0].sum(0) + x[1, 1, 1, 1].amax(-1),
}


@pytest.mark.parametrize("name", SERVED)
def test_served_operators_have_the_blocks_bits(name):
    (x,) = matrices((2, 3, 5, 4))
    x.data[0, :, 0, :2] = torch.tensor([[0.0, -0.0], [-0.0, torch.nan], [0.0, 0.0]])
    report = compared(SERVED[name], x, how=traced)
    assert not report.unknown, report
    assert not report.torch or name in ("cumprod", "unsafe_index"), report.torch


LEFT = {
    "sort": lambda x: (*x.sort(-1), *x.sort(1, descending=True)),
    "gather": lambda x: x.gather(2, (x > 0).long()),
    "largest": lambda x: x.max(1),
    "cummax": lambda x: x.cummax(1),
    "bicubic": lambda x: functional.interpolate(x.detach(), size=(7, 7), mode="bicubic"),
}


@pytest.mark.parametrize("name", LEFT)
def test_operators_of_one_result_stay_pytorchs(name):
    """Operators of one result that stay PyTorch's are known: a strict graph takes them."""
    (x,) = matrices((2, 3, 5, 4))
    report = compared(lambda x: [*LEFT[name](x)], x, how=traced, strict=True)
    assert report.torch


def test_zeros_of_both_signs_have_one_largest():
    """Wherever they lie, and however many rows there are."""
    rows = torch.tensor([0.0, -0.0]).repeat(40)
    for x in (rows, rows.flip(0), rows.repeat(70, 1)):
        with pt.batch_invariant() as block:
            top, low = x.amax(-1), x.amin(-1)
            assert torch.equal(top.signbit(), low.signbit().logical_not()) and low.signbit().all()
            assert same(x.max(), top.max()) and same(x.min(), low.min())
        assert not block.unknown and block.served["amax"] == 1
