"""NF4 weights in PyTorch: gradients, modules, conversion; on the CPU device."""

from __future__ import annotations

import copy
import functools
import io
from types import SimpleNamespace

import pytest

import ptxgen
from ptxgen import nf4
from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.ops import OPERATIONS

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
nn = torch.nn

K, N = 128, 6


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def operands(dtype=torch.float32, seed=0):
    """x [2, 3, K], a weight, a bias, and a gradient of the result."""
    torch.manual_seed(seed)
    x, b = torch.randn(2, 3, K).to(dtype), torch.randn(N).to(dtype)
    q = nf4.quantize(torch.randn(N, K))
    return x.requires_grad_(), q, b.requires_grad_(), torch.randn(2, 3, N).to(dtype)


def grads(f, x, b, dy):
    """The result of f and its gradients."""
    x, b = (t.detach().clone().requires_grad_(t.requires_grad) for t in (x, b))
    y = f(x, b)
    y.backward(dy)
    return [y.detach(), x.grad, b.grad]


def equal(these, those):
    return all(torch.equal(a, b) for a, b in zip(these, those, strict=True))


# -- bits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("activation", [None, "relu", "silu"])
def test_every_way_has_the_bits_of_the_dense_layer(dtype, activation):
    """Forward, dx and the bias's gradient: straight, as an operator, and traced."""
    x, q, b, dy = operands(dtype)
    w = nf4.dequantize(q, dtype)
    expected = grads(lambda x, b: pt.linear(x, w, b, activation=activation), x, b, dy)

    def product(x, b):
        return pt.quantized_linear(x, q, b, activation=activation)

    def operator(x, b):
        return torch.ops.ptxgen.quantized_linear(
            x, *q.operands, b, format="nf4", activation=activation
        )

    ways = [product, operator]
    if dtype is torch.float32:  # the others take the same way
        ways.append(torch.compile(product, fullgraph=True, backend="aot_eager"))
    for way in ways:
        assert equal(grads(way, x, b, dy), expected)
    with torch.no_grad():
        assert torch.equal(product(x, b), expected[0])


def test_strides_that_no_kernel_reads_are_copied():
    x, q, b, _ = operands()
    wide = torch.randn(2, 3, 2 * K)[..., ::2]
    turned = torch.randn(N, 3, 2).transpose(0, 2)
    got = grads(lambda x, b: pt.quantized_linear(wide, q, b), x.detach(), b, turned)
    assert torch.equal(got[0], nf4.linear(wide.contiguous(), q, b.detach()))
    assert torch.equal(got[2], grads(lambda x, b: pt.quantized_linear(x, q, b), x, b, turned)[2])


def test_a_gradient_of_a_gradient():
    x, q, _, dy = operands()
    w = nf4.dequantize(q)

    def penalty(product):
        leaf, g = x.detach().clone().requires_grad_(), dy.clone().requires_grad_()
        (dx,) = torch.autograd.grad(product(leaf), leaf, g, create_graph=True)
        return torch.autograd.grad(dx.square().sum(), g)

    assert equal(penalty(lambda x: pt.quantized_linear(x, q)), penalty(lambda x: pt.linear(x, w)))
    operator = functools.partial(torch.ops.ptxgen.quantized_linear, format="nf4")
    assert equal(penalty(lambda x: operator(x, *q.operands)), penalty(lambda x: pt.linear(x, w)))


def test_autocast():
    """x is rounded once, a bias of f32 is not, and the scales never are."""
    x, q, b, dy = operands()
    low = x.detach().bfloat16().requires_grad_()
    y, dx, db = grads(lambda x, b: pt.quantized_linear(x, q, b), low, b, dy.bfloat16())

    def product(x, b):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return pt.quantized_linear(x, q, b)

    def operator(x, b):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.ops.ptxgen.quantized_linear(x, *q.operands, bias=b, format="nf4")

    for way in product, operator:
        assert equal(grads(way, x, b, dy.bfloat16()), [y, dx.float(), db])
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(OptionError, match="'simt'"):
        pt.quantized_linear(x, q, accumulate="simt")


def test_every_product_is_added_up_as_asked(monkeypatch):
    """Forward, again for the activation's derivative, and backward."""
    x, q, _, dy = operands()
    asked = []
    for name in ("quantized_linear", "quantized_linear_dgrad"):
        op = OPERATIONS[name]

        def lower(*args, name=name, lower=op.lower, **options):
            asked.append((name, options["accumulate"]))
            return lower(*args, **options)

        monkeypatch.setattr(op, "lower", lower)
    every = {("quantized_linear", "f64"), ("quantized_linear_dgrad", "f64")}
    pt.quantized_linear(x, q, activation="gelu", accumulate="f64").backward(dy)
    assert set(asked) == every
    asked.clear()
    layer = pt.QuantizedLinear.from_weight(q, accumulate="f64")
    layer(x).backward(dy)
    assert set(asked) == every


def test_main_grad_of_the_bias():
    x, q, b, dy = operands()
    expected = grads(lambda x, b: pt.quantized_linear(x, q, b), x, b, dy)[2]
    b.main_grad = torch.ones(N)
    pt.quantized_linear(x, q, b).backward(dy)
    assert b.grad is None and torch.equal(b.main_grad, expected + 1)


def test_operators_are_as_pytorch_wants_them():
    x, q, b, dy = operands()
    few = {"test_utils": ("test_schema", "test_autograd_registration", "test_faketensor")}
    how = {"format": "nf4", "activation": "gelu"}
    torch.library.opcheck(torch.ops.ptxgen.quantized_linear, (x, *q.operands, b), how, **few)
    dy.requires_grad_()
    torch.library.opcheck(
        torch.ops.ptxgen.quantized_linear_dgrad, (dy, *q.operands), {"format": "nf4"}, **few
    )


def test_export():
    layer = pt.QuantizedLinear.from_linear(nn.Linear(K, N), format="nf4")
    x = torch.randn(4, K)
    shapes = {"input": {0: torch.export.Dim("m", min=2)}}
    program = torch.export.export(layer, (x,), dynamic_shapes=shapes)
    targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
    assert targets == [torch.ops.ptxgen.quantized_linear.default]
    longer = torch.randn(9, K)
    assert torch.equal(program.module()(longer), layer(longer))


def test_refused_by_name():
    x, q, b, _ = operands()
    learning = nf4.Weight(q.data, q.scales.clone().requires_grad_(), q.n, q.k)
    for error, message, call in (
        (GradError, "scales requires grad", lambda: pt.quantized_linear(x, learning)),
        (ShapeError, "data has shape", lambda: pt.quantized_linear(x[..., :64], q)),
        (ShapeError, "bias has shape", lambda: pt.quantized_linear(x, q, b[1:])),
        (DtypeError, "x has dtype float64", lambda: pt.quantized_linear(x.double(), q)),
        (OptionError, "accumulate is 'tc'", lambda: pt.quantized_linear(x, q, accumulate="tc")),
        (ShapeError, "in_features is 96; takes a multiple of 64",
         lambda: pt.QuantizedLinear(96, N, format="nf4")),
        (ShapeError, "K = 96",
         lambda: pt.QuantizedLinear.from_linear(nn.Linear(96, N), format="nf4")),
        (OptionError, "accumulate is 'f16'",
         lambda: pt.QuantizedLinear(K, N, accumulate="f16", format="nf4")),
        (ShapeError, r"bias has shape \[5\]; takes \[6\]",
         lambda: pt.QuantizedLinear.from_weight(q, b[1:])),
        (DtypeError, "q is <nf4 weight .1, 64. of numpy>; takes",
         lambda: pt.QuantizedLinear.from_weight(nf4.quantize(torch.ones(1, 64).numpy()))),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


# -- modules --------------------------------------------------------------------------------


def test_the_module():
    linear = nn.Linear(K, N)
    layer = pt.QuantizedLinear.from_linear(linear, format="nf4")
    assert layer.bias is linear.bias and [*layer.state_dict()] == ["bias", "data", "scales"]
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    x = torch.randn(3, K)
    expected = nf4.linear(x, nf4.quantize(linear.weight), linear.bias.detach())
    assert torch.equal(layer(x), expected)
    fresh = pt.QuantizedLinear(K, N, accumulate="simt", format="nf4")
    assert repr(fresh) == (
        "QuantizedLinear(in_features=128, out_features=6, bias=True, format='nf4', "
        "accumulate='simt')"
    )
    assert not nf4.dequantize(fresh.q).any() and not fresh(x).any()
    fresh.load_state_dict(layer.state_dict())
    assert torch.equal(fresh(x), expected)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for again in copy.deepcopy(layer), torch.load(file, weights_only=False):
        assert torch.equal(again(x), expected)
    bare = pt.QuantizedLinear.from_weight(layer.q)
    assert bare.bias is None and bare.data.data_ptr() == layer.data.data_ptr()
    assert torch.equal(bare(x), nf4.linear(x, layer.q))


def test_moves_keep_the_codes():
    layer = pt.QuantizedLinear.from_linear(nn.Linear(K, N), format="nf4")
    data, scales = layer.data.clone(), layer.scales.clone()
    for move in (
        lambda: layer.half(),
        lambda: layer.type(torch.float16),
        lambda: layer.double(),
        lambda: nn.Sequential(layer).to(torch.bfloat16),
    ):
        move()
        assert torch.equal(layer.data, data) and torch.equal(layer.scales, scales)
    assert layer.bias.dtype is torch.bfloat16
    assert layer(torch.randn(2, K).bfloat16()).dtype is torch.bfloat16
    moved = copy.deepcopy(layer).to("meta", torch.float16)
    assert {t.device.type for t in moved.state_dict().values()} == {"meta"}
    assert (moved.data.dtype, moved.scales.dtype) == (torch.uint8, torch.float32)
    assert pt.QuantizedLinear(K, N, device="meta", format="nf4").to_empty(
        device="cpu"
    ).scales.shape == (N, 2)


# -- convert --------------------------------------------------------------------------------


class Lora(nn.Module):
    """A layer with an adapter around it, as PEFT has them."""

    def __init__(self, base):
        super().__init__()
        self.base_layer = base
        self.lora_a = nn.Linear(base.in_features, 8, bias=False)
        self.lora_b = nn.Linear(8, base.out_features, bias=False)

    def forward(self, x):
        return self.base_layer(x) + self.lora_b(self.lora_a(x))


def test_convert():
    class Own(nn.Linear):
        pass

    names = ("first", "tied", "narrow", "own", "head", "patched")
    shapes = ((K, 64), (K, 64), (96, N), (K, N), (64, N), (K, N))
    model = nn.ModuleDict({n: nn.Linear(*s) for n, s in zip(names, shapes, strict=True)})
    model["own"], model["ours"] = Own(K, N), pt.Linear(K, N, tier="simt")
    model["tied"].weight = model["first"].weight
    model["patched"].forward = lambda x: x
    model["embedding"], model["out"] = nn.Embedding(10, 64), nn.Linear(64, 10)
    model["out"].weight = model["embedding"].weight
    model["first"].eval()
    calls = []
    model["first"].register_forward_hook(lambda *_: calls.append(1))
    before, bias = dict(model.named_modules()), model["first"].bias
    q = nf4.quantize(model["first"].weight)
    done = pt.convert(model, format="nf4", skip=["he*"])
    assert done.converted == ["first", "tied", "ours"]
    assert done.skipped == {
        "head": "skip says so",
        "narrow": "w has shape [6, 96], so K = 96; takes a multiple of 64: so many share a "
        "scale in nf4",
        "own": done.skipped["own"],
        "patched": "has a forward of its own",
        "out": "its weight is also that of embedding",
    }
    assert "Own, not plain nn.Linear" in done.skipped["own"]
    first = model["first"]
    assert all(module is before[name] for name, module in model.named_modules())
    assert type(first) is pt.QuantizedLinear and first.bias is bias and not first.training
    assert not hasattr(first, "weight") and not hasattr(model["ours"], "tier")
    assert first.data is model["tied"].data and torch.equal(first.q.data.reshape(-1), q.data)
    x = torch.randn(3, K)
    assert torch.equal(first(x), nf4.linear(x, q, bias.detach())) and calls
    assert pt.convert(model, format="nf4").converted == []
    alone = nn.Linear(K, N)
    assert pt.convert(alone, format="nf4", accumulate="simt").converted == [""]
    assert alone.accumulate == "simt"
    for options, message in (
        ({"format": "nf4", "tier": "simt"}, "tier is 'simt'; with format='nf4' convert takes 'au"),
        ({"accumulate": "simt"}, "accumulate is 'simt'; with format=None"),
        ({"format": "nf4", "accumulate": "x"}, "accumulate is 'x'"),
    ):
        with pytest.raises(OptionError, match=message):
            pt.convert(model, **options)
    with pytest.raises(OptionError, match=r"format is 'nf5'; did you mean nf4.; takes 'fp8_e4m3"):
        pt.convert(model, format="nf5")
    with pytest.warns(FutureWarning, match='pass format="nf4" for nf4=True'):
        assert pt.convert(nn.Linear(K, N), nf4=True).converted == [""]
    eight = nn.Linear(K, N)
    assert pt.convert(eight, format="int8_block").converted == [""]
    q = ptxgen.quantized.quantize(nn.Linear(K, N).weight, "int8_block")
    assert eight.q.format == q.format and eight.data.shape == (N, K)
    dense = nn.Sequential(nn.Linear(K, N), nn.Linear(N, N))
    assert pt.convert(dense, skip=["1"]).converted == ["0"]


def test_names_of_before_warn():
    with pytest.warns(FutureWarning, match=r"NF4Linear is QuantizedLinear\(..., format=.nf4.\)"):
        kind = pt.NF4Linear
    assert kind(K, N).format == kind.from_linear(nn.Linear(K, N)).format == "nf4"
    with pytest.warns(FutureWarning, match="nf4_linear is quantized_linear"):
        assert pt.nf4_linear is pt.quantized_linear


def test_adapters_stay_and_learn():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(K, 64), nn.GELU(), nn.Linear(64, N)).requires_grad_(False)
    dense = copy.deepcopy(model)
    model[0], model[2] = Lora(model[0]), Lora(model[2])
    done = pt.convert(model, format="nf4")
    assert done.converted == ["0.base_layer", "2.base_layer"]
    assert set(done.skipped) == {f"{i}.lora_{x}" for i in (0, 2) for x in "ab"}
    assert "it is to be trained" in done.skipped["0.lora_a"]
    assert pt.convert(model, format="nf4").converted == [], "an NF4 base counts as frozen"
    assert pt.convert(model).converted == ["0.lora_a", "0.lora_b", "2.lora_a", "2.lora_b"]
    for i in (0, 2):
        weight = nf4.dequantize(model[i].base_layer.q)
        dense[i].weight.data.copy_(weight)
        dense[i] = Lora(dense[i])
        dense[i].lora_a.load_state_dict(model[i].lora_a.state_dict())
        dense[i].lora_b.load_state_dict(model[i].lora_b.state_dict())
    pt.convert(dense)
    x = torch.randn(5, K, requires_grad=True)
    found = []
    for each in model, dense:
        x.grad = None
        y = each(x)
        y.square().sum().backward()
        found.append([y, x.grad] + [p.grad for p in each.parameters() if p.requires_grad])
    assert len(found[0]) == 6 and equal(*found)


def test_layers_of_bitsandbytes_are_recognised():
    """Layers of bitsandbytes are recognised by name; tests/gpu has the package itself."""

    class Linear4bit(nn.Linear):
        __module__ = "bitsandbytes.nn.modules"

        def forward(self, x):
            raise AssertionError

    class Different(Linear4bit):
        def forward(self, x):
            return x

    def quantised(kind, **changed):
        layer = kind(K, N).requires_grad_(False)
        q = nf4.quantize(layer.weight)
        stored = (q.data << 4 | q.data >> 4)[:, None]
        layer.weight = nn.Parameter(stored, requires_grad=False)
        state = {"absmax": q.scales, "shape": (N, K), "code": torch.tensor(nf4.CODE),
                 "blocksize": 64, "quant_type": "nf4", "state2": None}  # fmt: skip
        layer.weight.quant_state = layer.quant_state = SimpleNamespace(**{**state, **changed})
        return layer, q

    (first, q), (fp4, _) = quantised(Linear4bit), quantised(Linear4bit, quant_type="fp4")
    model = nn.ModuleDict({"first": first, "fp4": fp4, "raw": Linear4bit(K, N)})
    model["own"] = quantised(Different)[0]
    model["raw"].requires_grad_(False)
    copied = pt.QuantizedLinear.from_bitsandbytes(first)
    done = pt.convert(model, format="nf4")
    assert done.converted == ["first"] and not hasattr(first, "quant_state")
    assert done.skipped["fp4"] == "param has quant_type 'fp4'; takes 'nf4'"
    assert "has no quant_state" in done.skipped["raw"] and "Different" in done.skipped["own"]
    x = torch.randn(2, K)
    for layer in first, copied:
        assert isinstance(layer, pt.QuantizedLinear) and torch.equal(
            layer.q.data.reshape(-1), q.data
        )
        assert torch.equal(layer(x), nf4.linear(x, q, layer.bias.detach()))
