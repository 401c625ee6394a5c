"""Mixtures of experts: routers, the way to the experts and back, and graphs that have them."""

from __future__ import annotations

import numpy as np
import pytest
from bits import operand, same_bits

import ptxgen
from ptxgen import functions, reference
from ptxgen.errors import OptionError, ShapeError
from ptxgen.ops import OPERATIONS
from ptxgen.oracle import counting_sort as oracle
from ptxgen.program.interpret import Interpreter

TOKENS, WIDTH, EXPERTS, EACH = 13, 16, 5, 2


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


def drawn(dtype="f32", seed=0):
    rng = np.random.default_rng(seed)
    x = operand(rng, (TOKENS, WIDTH), "normal", dtype)
    w = operand(rng, (EXPERTS, WIDTH, WIDTH), "normal", dtype)
    experts = np.stack([rng.permutation(EXPERTS)[:EACH] for _ in range(TOKENS)])
    return x, w, experts, rng.random((TOKENS, EACH), np.float32)


def mixture(x, w, experts, weights, of=ptxgen):
    rows, places, offsets = of.moe_dispatch(x, experts, EXPERTS)
    return of.moe_combine(of.grouped_linear(rows, w, offsets, layout="kn"), places, weights)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_token_does_not_know_the_others(dtype):
    x, w, experts, weights = drawn(dtype)
    y = mixture(x, w, experts, weights)
    same_bits(y, mixture(x, w, experts, weights, reference), what="the oracle")
    some = np.array([7, 2, 11])
    same_bits(mixture(x[some], w, experts[some], weights[some]), y[some], what="elsewhere")
    for t in (0, 5):
        each = [ptxgen.linear(x[t : t + 1], w[e], layout="kn")[0].astype("f4") for e in experts[t]]
        total = each[0] * weights[t, 0] + each[1] * weights[t, 1]
        same_bits(y[t], total.astype(y.dtype), what="in the order of the slots")


def test_the_sort_is_stable_and_its_places_lead_back():
    x, _, experts, _ = drawn()
    rows, places, offsets = ptxgen.moe_dispatch(x, experts, EXPERTS)
    order = np.argsort(experts.ravel(), kind="stable")
    assert (rows == x[order // EACH]).all()
    assert (rows[places] == x[:, None]).all()
    assert (offsets == np.bincount(experts.ravel(), minlength=EXPERTS).cumsum()).all()
    assert (places.dtype, offsets.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("experts", "k"),
    [(1, 1), (12, 9), (260, 32), (40, 33), pytest.param(1025, 8, marks=pytest.mark.long)],
)
def test_one_choice_has_the_bits_of_separate_steps(experts, k, normalize):
    """Experts and slots up to those that a warp takes, and more; equal scores, and NaN."""
    rng = np.random.default_rng(experts)
    for dtype, scale in (("f32", 1.0), ("bf16", 2.5)):
        logits = operand(rng, (9, 2 * experts), "normal", dtype)[:, :experts]
        logits[0], logits[1, -1], logits[2, 0] = -np.inf, np.nan, np.inf
        expected, indices = ptxgen.topk(ptxgen.softmax(logits, out_dtype="float32"), k)
        if normalize:
            expected = expected / (ptxgen.sum(expected, axis=1)[:, None] + np.float32(1e-20))
        expected = expected * np.float32(scale)
        for of in (ptxgen, reference):
            weights, chosen = of.moe_router(logits, k, normalize=normalize, scale=scale)
            same_bits(weights, expected, what=f"{dtype} weights")
            same_bits(chosen, indices, what=f"{dtype} experts")


@pytest.mark.parametrize(
    ("tokens", "count", "index"),
    [
        (1, 3, "i8"),
        (128, 1023, "i4"),
        (129, 8, "i8"),
        (512, 128, "i4"),
        (513, 8, "i8"),
        (9, 1024, "i4"),
    ],
)
def test_one_sort_has_the_results_of_separate_steps(tokens, count, index):
    """Slots and experts up to those that a CTA sorts, and more."""
    rng = np.random.default_rng(tokens)
    x = rng.integers(0, 99, (tokens, 4), np.int32)
    experts = rng.integers(-1, count + 1, (tokens, 8)).astype(index)
    own = np.where((experts >= 0) & (experts < count), experts, count).ravel()
    order = oracle.sort_integers(own)[1]
    expected = x[order // 8], oracle.placed(order).reshape(tokens, 8)
    ends = oracle.count_integers(own, count, up_to=True)
    for got, exact in zip(ptxgen.moe_dispatch(x, experts, count), (*expected, ends), strict=True):
        assert got.dtype == exact.dtype and (got == exact).all()


def test_slots_without_an_expert_give_zeros():
    x, w, experts, weights = drawn()
    experts[3] = -1, EXPERTS + 4
    experts[4, 0] = EXPERTS
    y = mixture(x, w, experts, weights)
    assert not y[3].any()
    one = ptxgen.linear(x[4:5], w[experts[4, 1]], layout="kn")[0] * weights[4, 1]
    same_bits(y[4], one, what="the slot that has one")


@pytest.mark.parametrize("each", [1, 8, 9, 32, 33])
def test_sums_of_slots_have_the_bits_of_separate_steps(each):
    """Every dtype and layout that moe_combine takes, with places out of range."""
    rng = np.random.default_rng(each)
    for dtype, wide, index in (("f32", "f32", "i4"), ("bf16", "f32", "i8"), ("f16", "f16", "i4")):
        room = operand(rng, (5 * each, 24), "wide", dtype)
        places = rng.permutation(5 * each).reshape(5, each).astype(index)
        places[1, 0], places[2, -1] = -1, 5 * each
        weights = operand(rng, (each, 5), "wide", wide).T
        for y in (room[:, :16], room[:, 3:8]):  # in vectors of 16 bytes, and in elements
            rows = reference.embedding(y, places)
            products = functions.mul(rows, weights[..., None], out_dtype="float32")
            sums = ptxgen.sum(products, axis=1).astype(y.dtype)
            same_bits(ptxgen.moe_combine(y, places, weights), sums, what=f"{dtype} {y.shape}")
            same_bits(reference.moe_combine(y, places, weights), sums, what=f"{dtype} oracle")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("scoring", ["softmax", "sigmoid"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_routers(scoring, biased, groups):
    """DeepSeek's gate, token by token, in f64."""
    rng = np.random.default_rng(1)
    logits, bias = rng.standard_normal((9, 16), np.float32), rng.random(16, np.float32)
    how = {"scoring": scoring, "groups": groups, "top_groups": min(groups, 2)}
    how |= {"bias": bias} if biased else {}
    weights, experts = ptxgen.moe_router(logits, 3, **how, normalize=True, scale=2.5)
    wide = logits.astype(np.float64)
    scores = softmax(wide) if scoring == "softmax" else 1 / (1 + np.exp(-wide))
    choice = scores + (bias if biased else 0)
    if groups > 1:
        parts = np.sort(choice.reshape(9, groups, -1), axis=-1)[..., ::-1]
        best = parts[..., :2].sum(-1) if biased else parts[..., 0]
        kept = np.argsort(-best, axis=-1)[:, :2]
        for t in range(9):
            lost = [g for g in range(groups) if g not in kept[t]]
            choice.reshape(9, groups, -1)[t, lost] = -np.inf
    expected = np.argsort(-choice, axis=-1, kind="stable")[:, :3]
    assert (experts == expected).all()
    taken = np.take_along_axis(scores, expected, -1)
    # An exponential of 2^-23, a sum of 16, two divisions: some 20 of 2^-24.
    np.testing.assert_allclose(weights, 2.5 * taken / taken.sum(-1, keepdims=True), rtol=1e-5)
    alone = ptxgen.moe_router(logits[4:5], 3, **how, normalize=True, scale=2.5)
    same_bits(alone[0], weights[4:5], what="a token alone")


def test_what_is_refused():
    x, _, experts, weights = drawn()
    with pytest.raises(OptionError, match="groups is 3"):
        ptxgen.moe_router(np.zeros((2, 16), "f4"), 2, groups=3)
    with pytest.raises(OptionError, match="k is 5; takes at most 4"):
        ptxgen.moe_router(np.zeros((2, 16), "f4"), 5, groups=4, top_groups=1)
    with pytest.raises(ShapeError, match="y has 13 rows; takes 26"):
        ptxgen.moe_combine(x, experts, weights)
    with pytest.raises(ShapeError, match="takes at most 1048576"):
        ptxgen.moe_dispatch(np.zeros((1 << 20, 1), "f4"), np.zeros((1 << 20, 2), "i8"), 2)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("scoring", ["softmax", "sigmoid"])
def test_gradients(scoring, normalize):
    torch = pytest.importorskip("torch")
    import ptxgen.torch as served

    torch.manual_seed(0)
    x, w, *_ = (torch.from_numpy(v) for v in drawn())
    gate = torch.randn(WIDTH, EXPERTS) / 4
    given = [v.clone().requires_grad_() for v in (x, w, gate)]
    same = [v.clone().requires_grad_() for v in (x, w, gate)]
    how = {"scoring": scoring, "normalize": normalize}

    def ours(x, w, gate):
        weights, experts = served.moe_router(served.linear(x, gate.t()), EACH, **how)
        return mixture(x, w, experts, weights, served)

    def plain(x, w, gate):
        logits = x @ gate
        scores = logits.softmax(-1) if scoring == "softmax" else logits.sigmoid()
        weights, experts = scores.topk(EACH)
        weights = weights / weights.sum(-1, keepdim=True) if normalize else weights
        return torch.einsum("th,tjhi,tj->ti", x, w[experts], weights)

    y, z, dy = ours(*given), plain(*same), torch.randn(TOKENS, WIDTH)
    # f32 both, other orders: sums of WIDTH products, then of EACH, 2^-20 of numbers below 2^4.
    torch.testing.assert_close(y, z, rtol=1e-4, atol=1e-5)
    y.backward(dy)
    z.backward(dy)
    for one, other in zip(given, same, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-5)


# -- graphs -------------------------------------------------------------------------------------
def experts_forward(x, up, down, index, weights, offsets):
    """Computes experts like ``transformers`` (integrations/moe.py, grouped_mm), given offsets."""
    import torch

    each = index.size(-1)
    ids, order = torch.sort(index.reshape(-1))
    rows, scale = x[order // each], weights.reshape(-1)[order]
    gate, value = torch._grouped_mm(rows, up.transpose(-2, -1), offs=offsets).chunk(2, dim=-1)
    inner = torch.nn.functional.silu(gate) * value
    y = torch._grouped_mm(inner, down.transpose(-2, -1), offs=offsets) * scale.unsqueeze(-1)
    back = torch.empty_like(order)
    back[order] = torch.arange(order.size(0))
    return y[back].view(x.size(0), each, -1).sum(dim=1).to(x.dtype), ids


def test_a_mixture_of_transformers_is_one_program():
    torch = pytest.importorskip("torch")
    from ptxgen.torch import Backend

    torch.manual_seed(0)
    x, _, index, weights = (torch.from_numpy(v) for v in drawn())
    x, weights = x.bfloat16(), weights.bfloat16()
    up = torch.randn(EXPERTS, 48, WIDTH, dtype=torch.bfloat16)
    down = torch.randn(EXPERTS, WIDTH, 24, dtype=torch.bfloat16)

    def called(tokens):
        counts = torch.bincount(index[tokens].reshape(-1), minlength=EXPERTS)
        given = x[tokens], up, down, index[tokens], weights[tokens]
        return compiled(*given, counts.cumsum(0).int())

    backend = Backend(strict=True)
    compiled = torch.compile(experts_forward, backend=backend, fullgraph=True, dynamic=False)
    y, ids = called(slice(None))
    report = backend.report()
    assert len(report.programs) == 1
    assert all("arange" in name for name in report.torch), report.torch
    assert (ids == index.reshape(-1).sort().values).all()
    one, _ = called(slice(4, 5))
    assert torch.equal(one, y[4:5]), "a token alone"
    wide = [v.float() for v in (x, up, down, weights)]
    for t in range(TOKENS):
        total = 0
        for j in range(EACH):
            e = index[t, j]
            gate, value = (wide[1][e] @ wide[0][t]).chunk(2)
            inner = torch.nn.functional.silu(gate) * value
            total = total + wide[3][t, j] * (wide[2][e] @ inner)
        # Four results in a row are rounded to bfloat16, 2^-8 of what they are, and cancel then.
        torch.testing.assert_close(y[t].float(), total, rtol=0.05, atol=0.3)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("gated", [False, True])
def test_experts_of_transformers(transposed, gated):
    """A module as their decorator makes it, with biases; called, and compiled."""
    torch = pytest.importorskip("torch")
    from ptxgen.torch import Backend, experts

    torch.manual_seed(0)
    silu = torch.nn.functional.silu

    class Module(torch.nn.Module):
        has_gate, has_bias, is_transposed = gated, True, transposed
        act_fn = staticmethod(silu)

        def __init__(self):
            super().__init__()
            wide, inner = (48, 24) if gated else (24, 24)
            for name, n, k in (("up", wide, WIDTH), ("down", WIDTH, inner)):
                name = f"{'gate_up' if gated and name == 'up' else name}_proj"
                shape = (EXPERTS, k, n) if transposed else (EXPERTS, n, k)
                self.register_parameter(name, torch.nn.Parameter(torch.randn(shape) / 4))
                bias = torch.nn.Parameter(torch.randn(EXPERTS, n))
                self.register_parameter(f"{name}_bias", bias)

        def _apply_gate(self, y):
            gate, up = y.chunk(2, dim=-1)
            return silu(gate) * up

    module = Module()
    x, _, index, weights = (torch.from_numpy(v) for v in drawn())
    y = experts.compute_experts(module, x, index, weights)
    names = ("gate_up_proj" if gated else "up_proj"), "down_proj"
    for t in range(TOKENS):
        total = 0
        for j, e in enumerate(index[t]):
            inner = x[t]
            for name in names:
                w = getattr(module, name)[e]
                inner = (inner @ w if transposed else w @ inner) + getattr(module, f"{name}_bias")[
                    e
                ]
                if name != "down_proj":
                    inner = module._apply_gate(inner) if gated else silu(inner)
            total = total + weights[t, j] * inner
        # f32 both, other orders: two products in a row, 2^-20 of numbers below 2^6.
        torch.testing.assert_close(y[t], total, rtol=1e-4, atol=1e-4)
    y.sum().backward()
    assert all(p.grad is not None for p in module.parameters())
    with torch.no_grad():
        backend = Backend(strict=True)
        compiled = torch.compile(
            experts.compute_experts, backend=backend, fullgraph=True, dynamic=False
        )
        one = compiled(module, x, index, weights)
        assert len(backend.report().programs) == 1 and not backend.report().torch
        torch.testing.assert_close(one, y)  # PyTorch's silu where it is not compiled
        assert torch.equal(compiled(module, x[3:4], index[3:4], weights[3:4]), one[3:4])


def test_models_of_transformers_with_the_switch():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import ptxgen.torch as served

    served.register_experts()
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "num_local_experts": 4}
    config = transformers.MixtralConfig(**sizes, **heads, experts_implementation="eager")
    model = transformers.MixtralForCausalLM(config).eval()
    ids = torch.randint(0, 64, (2, 5))
    with torch.no_grad():
        expected = model(ids).logits
        model.set_experts_implementation("ptxgen")
        # A layer in f32, other orders: some ten sums in a row, 2^-20 of numbers below 2^3.
        torch.testing.assert_close(model(ids).logits, expected, rtol=1e-3, atol=1e-4)


def test_counts_of_integers_are_steps():
    pytest.importorskip("torch")
    from ptxgen.torch.lowering import INDEXING

    at = Interpreter("histc")
    ids = np.array([0, 3, 3, 1, 7, -1], np.int32)
    found = INDEXING["histc"](at, None, at.array("x", ids), 4, 0, 3)
    assert at.value(found).tolist() == [1, 1, 0, 2]


@pytest.mark.parametrize("by", [1, 3, 8, 1000003])
def test_integers_divided(by):
    torch = pytest.importorskip("torch")
    from ptxgen.torch import Backend

    limits = np.iinfo(np.int64)
    x = np.array([0, 1, 2, 3, 7, -1, -3, -8, limits.max, limits.min, 1 << 53, -(1 << 53) - 1])
    compiled = torch.compile(lambda x: x // by, backend=Backend(), dynamic=False)
    assert (compiled(torch.from_numpy(x)).numpy() == x // by).all()


@pytest.mark.parametrize("count", [1, 2, 33, 5000, pytest.param(65540, marks=pytest.mark.long)])
def test_vectors_of_integers(count):
    rng = np.random.default_rng(count)
    x = rng.integers(-3, 9, count)
    for got, expected in zip(OPERATIONS["sort_integers"](x), oracle.sort_integers(x), strict=True):
        assert (got == expected).all()
    places, rows = rng.permutation(count)[: count // 2 + 1], rng.integers(0, 99, (count, 2))
    given = np.zeros((1, count, 2), np.int64), places, rows[None, : len(places)]
    assert (OPERATIONS["put_rows"](*given) == oracle.put_rows(*given)).all()
