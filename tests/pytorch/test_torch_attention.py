"""``ptxgen.torch.attention``: gradients, compilation, pages; ``scaled_dot_product_attention`` by it
in ``batch_invariant``. On the CPU device.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch_fakes
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import GradError, OptionError, ShapeError
from ptxgen.ops import OPERATIONS

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
serve = pytest.importorskip("ptxgen.torch.serve")
aten = pytest.importorskip("ptxgen.torch.aten")
operators = pytest.importorskip("ptxgen.torch.operators")
functional = torch.nn.functional
sdpa = functional.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def operands(*shapes, dtype=torch.float32, grad=False):
    torch.manual_seed(0)
    return [torch.randn(s).to(dtype).requires_grad_(grad) for s in shapes]


QKV = (2, 4, 5, 16), (2, 2, 7, 16), (2, 2, 7, 24)
SQUARE = ((2, 4, 5, 16),) * 3


def array(t):
    import ml_dtypes

    if t is None or not isinstance(t, torch.Tensor):
        return t
    if t.dtype is torch.bfloat16:
        return t.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return t.detach().numpy()


def oracle(*given, **options):
    return reference.attention(*map(array, given), **{n: array(x) for n, x in options.items()})


def same(found, expected, what=""):
    same_bits(array(found), np.asarray(expected), what=what)


# -- the function ---------------------------------------------------------------------------
def test_it_has_the_bits_of_the_library():
    q, k, v = operands(*QKV)
    y, lse = pt.attention(q, k, v, causal=True, return_lse=True)
    for found, expected in zip(
        (y, lse), oracle(q, k, v, causal=True, return_lse=True), strict=True
    ):
        same(found, expected)
    assert torch.equal(pt.attention(q, k, v, causal=True), y)
    assert torch.equal(ptxgen.attention(q, k, v, causal=True), y)


def gradient_of(y):
    drawn = np.random.default_rng(1).standard_normal(y.shape, dtype=np.float32)
    return torch.from_numpy(drawn).to(y.dtype)


def differentiated(f, *given, **options):
    leaves = [t.detach().clone().requires_grad_() for t in given]
    y = f(*leaves, **options)
    return [y.detach(), *torch.autograd.grad(y, leaves, gradient_of(y))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients(dtype):
    given = operands(*QKV, dtype=dtype)
    y, *gradients = differentiated(pt.attention, *given, causal=True)
    again, lse = pt.attention(*given, causal=True, return_lse=True)
    assert torch.equal(y, again)
    expected = ptxgen.attention_grad(gradient_of(y), *given, y, lse, causal=True)
    for found, each in zip(gradients, expected, strict=True):
        assert torch.equal(found, each)
    exact = differentiated(
        lambda q, k, v: sdpa(q, k, v, attn_mask=causal_at_end(5, 7), enable_gqa=True),
        *(t.double() for t in given),
    )[1:]
    for found, each in zip(gradients, exact, strict=True):
        bound = 2**-18 if dtype is torch.float32 else 2**-5
        assert (found - each).abs().max() <= bound * each.abs().max()


def causal_at_end(queries, keys):
    return torch.ones(queries, keys).bool().tril(keys - queries)


def test_sinks_of_a_model_in_bf16():
    """Sinks in bf16 need no conversion by the caller, and their gradient is in bf16."""
    q, k, v = operands(*QKV, dtype=torch.bfloat16)
    (sinks,) = operands((4,), dtype=torch.bfloat16, grad=True)
    wide = sinks.detach().float().requires_grad_()
    narrow, other = (pt.attention(q, k, v, sinks=x) for x in (sinks, wide))
    assert torch.equal(narrow, other)
    dy = gradient_of(narrow)
    found, expected = (
        torch.autograd.grad(y, x, dy)[0] for y, x in ((narrow, sinks), (other, wide))
    )
    assert found.dtype == torch.bfloat16 and torch.equal(found, expected.bfloat16())


def test_the_logarithms_have_no_gradient():
    q, k, v = operands(*QKV, grad=True)
    y, lse = pt.attention(q, k, v, return_lse=True)
    assert y.requires_grad and not lse.requires_grad
    with pytest.raises(GradError, match="attention_grad has no gradient"):
        dq = torch.autograd.grad(y.sum(), q, create_graph=True)
        torch.autograd.grad(dq[0].sum(), k)


def test_an_operator_without_gradients_refuses_what_requires_grad():
    q, k, v = operands(*SQUARE, grad=True)
    y, lse = pt.attention(q, k, v, return_lse=True)
    made = operators.operator(OPERATIONS["attention_grad"])
    with pytest.raises(GradError, match="attention_grad has no gradient"):
        made(y, q, k, v, y, lse)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    def f(q, k, v):
        return pt.attention(q * 2, k, v, causal=True, window=4).sin()

    torch.compiler.reset()
    compiled = torch.compile(f, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for shapes in (QKV, ((1, 2, 3, 16), (1, 1, 6, 16), (1, 1, 6, 16))):
        given = operands(*shapes)
        assert torch.equal(compiled(*given), f(*given))
        found, expected = differentiated(compiled, *given), differentiated(f, *given)
        assert all(map(torch.equal, found, expected))


def test_the_operator():
    q, k, v = operands(*QKV)
    made = torch.ops.ptxgen.attention
    with torch.no_grad():
        y, lse = made(q, k, v, causal=True)
    assert torch.equal(y, pt.attention(q, k, v, causal=True)) and lse.shape == (2, 4, 5)
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(made.default, (q, k, v), {"causal": True}, test_utils=tests)


@pytest.mark.parametrize("page", [1, 16])
def test_pages_have_the_bits_of_contiguous_keys(page):
    lengths, starts = (5, 33, 18), (0, 1, 4, 6)
    most = -(-max(lengths) // page)
    table = torch.randperm(3 * most + 2)[: 3 * most].view(3, most).int()
    cache = torch.full((2, 3 * most + 2, page, 2, 16), torch.nan)
    (q,) = operands((7, 4, 16))
    expected = torch.zeros(7, 4, 16)
    for b, n in enumerate(lengths):
        k, v = torch.randn(2, n, 2, 16)
        for half, x in zip(cache, (k, v), strict=True):
            for i in range(n):
                half[table[b, i // page], i % page] = x[i]
        own = slice(starts[b], starts[b + 1])
        expected[own] = pt.attention(q[own], k, v, causal=True, layout="bshd")
    places = (torch.tensor(x, dtype=torch.int32) for x in (starts, lengths))
    given = q, cache, *places, table
    assert torch.equal(pt.paged_attention(*given), expected)
    compiled = torch.compile(pt.paged_attention, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(*given), expected)
    with pytest.raises(ShapeError, match="block_table has shape"):
        pt.paged_attention(*given[:-1], table[:2])


# -- in the block -----------------------------------------------------------------------------
FORMS = {
    "plain": (SQUARE, {}, {}),
    "causal": (SQUARE, {"is_causal": True}, {"causal": True}),
    "scaled": (SQUARE, {"scale": 0.3}, {"scale": 0.3}),
    "three dimensions": ([s[1:] for s in SQUARE], {}, {}),
    "five": ([(2, *s) for s in SQUARE], {"is_causal": True}, {"causal": True}),
    "values of another size": (((2, 3, 5, 16), (2, 3, 7, 16), (2, 3, 7, 24)), {}, {}),
    "shared heads": (QKV, {"enable_gqa": True}, {}),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", FORMS)
def test_forms_have_the_bits_of_the_operation(name, dtype):
    shapes, options, own = FORMS[name]
    given = operands(*shapes, dtype=dtype)
    with pt.batch_invariant(strict=True) as block:
        same(sdpa(*given, **options), oracle(*given, **own), name)
    assert block.served == {"scaled_dot_product_attention": 1}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masks(dtype):
    q, k, v = operands(*SQUARE, dtype=dtype)
    seen = torch.rand(2, 1, 5, 5) < 0.7
    added = torch.randn(4, 1, 5)
    with pt.batch_invariant(strict=True):
        same(sdpa(q, k, v, attn_mask=seen), oracle(q, k, v, mask=seen))
        for bias in (added, added.to(dtype)):
            same(sdpa(q, k, v, attn_mask=bias), oracle(q, k, v, bias=bias))


@pytest.mark.parametrize(("queries", "keys"), [(3, 6), (6, 3), (1, 4)])
def test_a_causal_mask_begins_with_the_first_query(queries, keys):
    """The causal mask starts at the first query, as in PyTorch; ptxgen's own ends at the last."""
    given = operands((2, 4, queries, 16), (2, 2, keys, 16), (2, 2, keys, 16))
    mask = torch.ones(queries, keys).bool().tril()

    def causal(q, k, v):
        return sdpa(q, k, v, is_causal=True, enable_gqa=True)

    with pt.batch_invariant(strict=True):
        y, *gradients = differentiated(causal, *given)
        same(y, oracle(*given, mask=mask))
    for found, expected in zip(gradients, differentiated(causal, *given)[1:], strict=True):
        assert (found - expected).abs().max() <= 2**-18 * max(expected.abs().max(), 1)


def test_what_the_operation_does_not_take_is_composed():
    for shape, dtype, tier in (
        ((1, 2, 3, 8), torch.float64, "auto"),
        ((1, 2, 3, 264), torch.float32, "auto"),
        ((1, 2, 3, 8), torch.bfloat16, "simt"),
    ):
        given = operands(*[shape] * 3, dtype=dtype)
        with pt.batch_invariant(strict=True, tier=tier) as block:
            y = sdpa(*given)
        assert block.served == {"scaled_dot_product_attention": 1}
        bound = {torch.float64: 2**-48, torch.float32: 2**-18, torch.bfloat16: 2**-6}[dtype]
        assert (y - sdpa(*given)).abs().max() <= bound


EMPTY = torch.tensor([[1, 0, 1, 0, 1], [0] * 5, [1] * 5]).bool()
COMPOSED = {
    "plain": {},
    "scaled": {"scale": 0.3},
    "causal": {"is_causal": True},
    "bool": {"attn_mask": EMPTY},
    "added": {"attn_mask": torch.arange(15.0, dtype=torch.float64).view(3, 5)},
}


@pytest.mark.parametrize("name", COMPOSED)
def test_gradients_of_what_is_composed(name):
    """Gradients in float64 with shared heads match PyTorch's; a fully masked query adds nothing."""
    given = operands((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8), dtype=torch.float64)

    def f(q, k, v):
        return sdpa(q, k, v, enable_gqa=True, **COMPOSED[name])

    with pt.batch_invariant(strict=True):
        found, plain = differentiated(f, *given), f(*given)
    assert torch.equal(found[0], plain)
    for one, other in zip(found, differentiated(f, *given), strict=True):
        assert (one - other).abs().max() <= 2**-45


def test_dropout_is_refused_by_name():
    given = operands(*SQUARE)
    with (
        pytest.raises(ptxgen.errors.UnservedError, match="scaled_dot_product_attention"),
        pt.batch_invariant(strict=True),
    ):
        sdpa(*given, dropout_p=0.5)
    with pytest.raises(OptionError, match=r"dropout is 0\.5"):
        pt.models.attend(None, *given, None, dropout=0.5)


def test_nothing():
    q, k, v = operands(*SQUARE)
    with pt.batch_invariant(strict=True):
        assert sdpa(q[:0], k[:0], v[:0]).shape == (0, 4, 5, 16)
        assert not sdpa(q, k[:, :, :0], v[:, :, :0]).any()


BACKENDS = {
    "flash_attention": (lambda call, q, k, v, m: call(q, k, v), False),
    "cudnn_attention": (lambda call, q, k, v, m: call(q, k, v, m, True), True),
    "efficient_attention": (lambda call, q, k, v, m: call(q, k, v, m, True), True),
    "flash_attention_for_cpu": (lambda call, q, k, v, m: call(q, k, v, attn_mask=m), True),
}


@pytest.mark.parametrize("name", BACKENDS)
def test_operators_of_backends(name):
    """Operators of PyTorch's attention backends have PyTorch's shapes and the operation's bits."""
    given, (call, masks) = operands(*SQUARE), BACKENDS[name]
    bias = torch.randn(2, 4, 5, 5) if masks else None
    full = f"_scaled_dot_product_{name}"
    op = getattr(torch.ops.aten, full)
    found = call(lambda *a, **n: aten.DIRECT[full]("auto", *a, **n), *given, bias)
    fakes = [t.to("meta") for t in given]
    like = call(op, *fakes, bias if bias is None else bias.to("meta"))
    for x, y in zip(found, like, strict=True):
        assert getattr(x, "shape", x) == getattr(y, "shape", y)
        assert getattr(x, "dtype", None) == getattr(y, "dtype", None)
    expected = oracle(*given, bias=bias, return_lse=True)
    same(found[0], expected[0])
    lse = found[1].reshape(2, 4, -1)[..., :5]
    same(lse, expected[1])
    dy = gradient_of(found[0])
    saved = {
        "flash_attention": (found[0], found[1], None, None, 5, 5, 0.0, False, *found[6:8]),
        "cudnn_attention": (*found[:2], *found[6:8], bias, None, None, 5, 5, 0.0, False),
        "flash_attention_for_cpu": (found[0], found[1], 0.0, False),
        "efficient_attention": (bias, *found, 0.0, [True] * 4, False),
    }[name]
    named = {"attn_mask": bias} if name.endswith("cpu") else {}
    gradients = aten.DIRECT[f"{full}_backward"]("auto", dy, *given, *saved, **named)
    wanted = name == "efficient_attention"
    how = {} if bias is None else {"bias": bias, "bias_grad": True}
    exact = ptxgen.attention_grad(dy, *given, found[0], lse.contiguous(), **how)
    assert len(gradients) == (4 if wanted else 3)
    for one, other in zip(gradients, exact, strict=False):
        assert torch.equal(one, other)


def test_a_backend_that_is_called():
    """The one that there is without a GPU, through the dispatcher."""
    given = operands(*SQUARE)

    def call(q, k, v):
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)[0]

    with pt.batch_invariant(strict=True) as block:
        found = differentiated(call, *given)
        expected = differentiated(lambda *x: sdpa(*x, is_causal=True), *given)
        assert all(map(torch.equal, found, expected))
    name = "_scaled_dot_product_flash_attention_for_cpu"
    assert block.served[name] == block.served[f"{name}_backward"] == 1


def test_queries_without_keys_have_no_weight():
    q, k, v = operands(*SQUARE)
    with pt.batch_invariant(strict=True):
        y = sdpa(q, k, v, attn_mask=torch.full((5, 5), -math.inf))
    assert not y.any()


def test_one_key_for_all_tokens_is_copied_for_the_copy_engine(monkeypatch):
    device = torch_fakes.gpu(monkeypatch)
    q, k, v = operands((1, 2, 80, 64), (1, 1, 1, 64), (1, 1, 90, 64), dtype=torch.bfloat16)
    _, apart = device.called(ptxgen.attention, q, k.expand(1, 1, 90, 64).contiguous(), v)
    _, same = device.called(ptxgen.attention, q, k.expand(1, 1, 90, 64), v)
    assert [f.kernel for f in same[1:]] == [f.kernel for f in apart]
