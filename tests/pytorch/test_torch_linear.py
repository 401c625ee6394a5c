"""``ptxgen.torch`` without a GPU: gradients, autocast, compilation, modules; on the CPU device."""

from __future__ import annotations

import copy
import functools
import io

import numpy as np
import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
functional = torch.nn.functional

M, N, K = 5, 7, 20
ACTIVATIONS = {
    None: lambda z: z,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"),
    "silu": functional.silu,
}


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def operands(*shape, seed=0, grad=True, dtype=torch.float32):
    """x [*shape, K], w [N, K], bias [N], and a gradient of the result."""
    torch.manual_seed(seed)
    shape = shape or (M,)
    x, w, b = torch.randn(*shape, K), torch.randn(N, K), torch.randn(N)
    x, w, b = (t.to(dtype).requires_grad_(grad) for t in (x, w, b))
    return x, w, b, torch.randn(*shape, N).to(dtype)


def array(t):
    return t.detach().numpy()


def grads(f, *tensors, dy):
    """The result of f and its gradients; ``tensors`` are left as they were."""
    leaves = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    y = f(*leaves)
    y.backward(dy)
    return [y.detach(), *(t.grad for t in leaves)]


def equal(these, those):
    return all((a is None) is (b is None) and (a is None or torch.equal(a, b))
               for a, b in zip(these, those, strict=True))  # fmt: skip


# -- bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["nk", "kn"])
def test_the_bits_are_the_contracts(layout):
    x, w, b, dy = operands()
    stored = w.detach() if layout == "nk" else w.detach().T.contiguous()
    stored.requires_grad_()
    y = pt.linear(x, stored, b, layout=layout, activation="silu")
    same_bits(array(y), reference.linear(
        array(x), array(stored), array(b), layout=layout, activation="silu"))  # fmt: skip
    y, dx, dw, db = grads(lambda *t: pt.linear(*t, layout=layout), x, stored, b, dy=dy)
    same_bits(array(dx), reference.linear_dgrad(array(dy), array(stored), layout=layout))
    same_bits(array(dw), reference.linear_wgrad(array(x), array(dy), layout=layout))
    same_bits(
        array(db), reference.linear_wgrad(np.ones((M, 1), np.float32), array(dy), layout="kn")[0]
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_against_float64(activation, bias):
    x, w, b, dy = operands(2, 3)
    b = b if bias else None
    given = [t for t in (x, w, b) if t is not None]
    got = grads(lambda *t: pt.linear(*t, activation=activation), *given, dy=dy)
    expected = grads(
        lambda *t: ACTIVATIONS[activation](functional.linear(*t)),
        *(t.detach().double().requires_grad_() for t in given),
        dy=dy.double(),
    )
    for mine, exact in zip(got, expected, strict=True):
        # At most 20 products of numbers below 5, each sum rounded to 24 bits: far below 1e-4.
        torch.testing.assert_close(mine.double(), exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_all_ways_give_the_same_bits(activation):
    """Straight, through autograd, as an operator, and traced."""
    x, w, b, dy = operands()

    def product(x, w, b):
        return pt.linear(x, w, b, activation=activation)

    def operator(x, w, b):
        return torch.ops.ptxgen.linear(x, w, b, activation=activation)

    expected = grads(product, x, w, b, dy=dy)
    with torch.no_grad():
        assert torch.equal(product(x, w, b), expected[0])
    assert equal(grads(operator, x, w, b, dy=dy), expected)
    compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
    assert equal(grads(compiled, x, w, b, dy=dy), expected)


def test_a_gradient_of_a_gradient():
    x, w, b, _ = operands()

    def penalty(f, x, w, b):
        y = f(x, w, b)
        dx, dw, db = torch.autograd.grad(y.square().sum(), (x, w, b), create_graph=True)
        return torch.autograd.grad(
            dx.square().sum() + (dw * dw).sum() + db.square().sum(), (x, w, b)
        )

    for activation, exact in ACTIVATIONS.items():
        mine = penalty(lambda *t, a=activation: pt.linear(*t, activation=a), x, w, b)
        doubles = [t.detach().double().requires_grad_() for t in (x, w, b)]
        theirs = penalty(lambda *t, e=exact: e(functional.linear(*t)), *doubles)
        for got, expected in zip(mine, theirs, strict=True):
            # Some thirty roundings of 2^-24 each, of terms about as large as the largest result.
            scale = expected.abs().max()
            torch.testing.assert_close(got.double(), expected, rtol=0, atol=2e-6 * scale.item())


def test_matmul_and_its_gradients():
    torch.manual_seed(0)
    a = torch.randn(4, 9, requires_grad=True)
    b = torch.randn(6, 9, requires_grad=True)
    g = torch.randn(4, 6)
    y, da, db = grads(lambda a, b: pt.matmul(a, b.T), a, b, dy=g)
    same_bits(array(y), reference.matmul(array(a), array(b), transpose_b=True))
    same_bits(array(da), reference.matmul(array(g), array(b)))
    same_bits(array(db), reference.matmul(array(g), array(a), transpose_a=True))
    strided = torch.randn(4, 18)[:, ::2]
    same_bits(array(pt.matmul(strided, b.T)), reference.matmul(array(strided), array(b).T))


PAIRS = (
    (torch.float32, torch.bfloat16),
    (torch.bfloat16, torch.float32),
    (torch.float32, torch.half),
)


@pytest.mark.parametrize("dtypes", PAIRS, ids=str)
@pytest.mark.parametrize("name", ["linear", "matmul", "batch", "baddbmm"])
def test_two_dtypes_and_their_gradients(name, dtypes):
    """Gradients are those of float32 operands, each rounded once to its operand's dtype."""
    torch.manual_seed(0)
    shapes = {"linear": ((5, 9), (6, 9)), "matmul": ((2, 5, 9), (9, 6))}
    shapes |= {"batch": ((2, 5, 9), (2, 9, 6)), "baddbmm": ((2, 5, 9), (2, 9, 6))}
    pair = zip(shapes[name], dtypes, strict=True)
    a, b = (torch.randn(of).to(d).requires_grad_() for of, d in pair)
    added = functools.partial(pt.baddbmm, torch.zeros(()), alpha=0.5)
    f = {"linear": pt.linear, "baddbmm": added}.get(name, pt.matmul)
    g = torch.randn(f(a, b).shape)
    y, da, db = grads(f, a, b, dy=g)
    wide = [x.detach().float().requires_grad_() for x in (a, b)]
    expected, *those = grads(f, *wide, dy=g)
    assert y.dtype == torch.float32 and torch.equal(y, expected)
    for found, of, x in zip((da, db), those, (a, b), strict=True):
        assert found.dtype == x.dtype and torch.equal(found, of.to(x.dtype))
    if name == "matmul":
        operator = grads(torch.ops.ptxgen.matmul, a, b, dy=g)
        compiled = grads(torch.compile(pt.matmul, fullgraph=True, backend="aot_eager"), a, b, dy=g)
        assert equal(operator, [y, da, db]) and equal(compiled, [y, da, db])


BATCHES = {
    "batches": ((3, 4, 9), (3, 9, 6)),
    "one b": ((3, 4, 9), (9, 6)),
    "one a": ((4, 9), (3, 9, 6)),
    "broadcast": ((2, 1, 4, 9), (3, 9, 6)),
    "more than two strides": ((2, 1, 2, 4, 9), (1, 3, 2, 9, 6)),
}


@pytest.mark.parametrize("case", BATCHES)
def test_matmul_of_batches_and_its_gradients(case):
    torch.manual_seed(0)
    a, b = (torch.randn(shape, requires_grad=True) for shape in BATCHES[case])
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    g = torch.randn(*batch, 4, 6)
    y, da, db = grads(pt.matmul, a, b, dy=g)
    left, right = (array(x.expand(*batch, *x.shape[-2:])) for x in (a, b))
    same_bits(array(y), reference.matmul(left, right))
    of_a = torch.from_numpy(reference.matmul(array(g), right, transpose_b=True))
    of_b = torch.from_numpy(reference.matmul(left, array(g), transpose_a=True))
    assert torch.equal(da, of_a.sum_to_size(a.shape))
    if case == "one b":
        same_bits(array(db), reference.linear_wgrad(array(a), array(g), layout="kn"))
    else:
        assert torch.equal(db, of_b.sum_to_size(b.shape))
    operator = grads(torch.ops.ptxgen.matmul, a, b, dy=g)
    compiled = grads(torch.compile(pt.matmul, fullgraph=True, backend="aot_eager"), a, b, dy=g)
    assert equal(operator, [y, da, db]) and equal(compiled, [y, da, db])


def test_views_of_batches_are_not_copied(monkeypatch):
    x = torch.randn(2, 5, 3, 9).transpose(1, 2)
    every = torch.randn(9, 6).expand(2, 3, 9, 6)
    monkeypatch.setattr(torch.Tensor, "contiguous", None)
    same_bits(array(pt.matmul(x, every)), reference.matmul(array(x), array(every)))
    same_bits(array(pt.matmul(x.mT, x)), reference.matmul(array(x.mT), array(x)))


def test_bmm_and_baddbmm():
    torch.manual_seed(0)
    a, b = (torch.randn(s, requires_grad=True) for s in ((3, 4, 9), (3, 9, 6)))
    c, g = torch.randn(4, 1, requires_grad=True), torch.randn(3, 4, 6)
    product = torch.from_numpy(reference.matmul(array(a), array(b)))
    assert equal(grads(pt.bmm, a, b, dy=g), grads(pt.matmul, a, b, dy=g))
    for beta, alpha in ((1, 1), (0, 1), (0.5, 3), (1, 2), (2, 1)):

        def added(c, a, b, beta=beta, alpha=alpha):
            return pt.baddbmm(c, a, b, beta=beta, alpha=alpha)

        y, dc, da, db = grads(added, c, a, b, dy=g)
        scaled = product if alpha == 1 else product * alpha
        addend = c.detach() if beta == 1 else c.detach() * beta
        assert torch.equal(y, scaled + addend if beta else scaled)
        total = reference.sum(array(g * beta), (0, 2))[:, None]
        same_bits(array(dc), total)
        for mine, plain in zip((da, db), grads(pt.bmm, a, b, dy=g)[1:], strict=True):
            assert torch.equal(mine, plain * alpha)
        compiled = torch.compile(added, fullgraph=True, backend="aot_eager")
        assert equal(grads(compiled, c, a, b, dy=g), [y, dc, da, db])
    low = [x.detach().bfloat16() for x in (c, a, b)]
    wide = pt.bmm(*low[1:], out_dtype=torch.float32)
    assert torch.equal(pt.baddbmm(*low), (wide + low[0]).bfloat16())
    assert torch.equal(pt.baddbmm(c.detach(), *low[1:]), (wide + c.detach()).bfloat16())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(pt.bmm(a, b), pt.bmm(*low[1:]))
        assert torch.equal(pt.baddbmm(low[0], a, b), pt.baddbmm(*low))
    for f in (pt.bmm, lambda a, b: pt.baddbmm(c, a, b)):
        with pytest.raises(ShapeError, match=r"a has shape \[3, 4, 9\], b \[2, 9, 6\]; takes"):
            f(a, b[:2])


def test_only_the_gradients_asked_for():
    x, w, b, dy = operands()
    for wanted in ((True, False, False), (False, True, False), (False, False, True)):
        tensors = [t.detach().requires_grad_(on) for t, on in zip((x, w, b), wanted, strict=True)]
        for activation in (None, "relu", "gelu"):
            _, *found = grads(lambda *t, a=activation: pt.linear(*t, activation=a), *tensors, dy=dy)
            assert tuple(g is not None for g in found) == wanted


# -- what PyTorch gives ---------------------------------------------------------------------


def test_any_strides():
    x, w, b, _ = operands(3, 4, grad=False)
    expected = pt.linear(x, w, b)
    for same in (
        x.transpose(0, 1).contiguous().transpose(0, 1),
        torch.stack([x, x], -1)[..., 0],
        torch.cat([x, x], -1)[..., :K],
    ):
        assert same.stride() != x.stride()
        assert torch.equal(pt.linear(same, w, b), expected)
    assert torch.equal(pt.linear(x, w.T.contiguous().T, b), expected)
    assert torch.equal(pt.linear(x, torch.stack([w, w], -1)[..., 1], b), expected)
    assert torch.equal(pt.linear(x, w, torch.stack([b, b], -1)[:, 0]), expected)
    row = pt.linear(x[0, 0], w, b)  # one dimension is one row
    assert row.shape == (N,) and torch.equal(row, expected[0, 0])
    assert torch.equal(pt.linear(x[:1, :1].expand(3, 4, K), w, b), row.expand(3, 4, N))


def test_gradients_of_any_strides():
    x, w, b, dy = operands(3, 4)
    ones = torch.ones(3, 4, N)
    expected = grads(pt.linear, x, w, b, dy=ones)
    assert equal(grads(pt.linear, x, w, b, dy=ones[:1, :1, :1].expand(3, 4, N)), expected)
    expected = grads(pt.linear, x, w, b, dy=dy)
    turned = dy.transpose(0, 2).contiguous().transpose(0, 2)
    assert equal(grads(pt.linear, x, w, b, dy=turned), expected)
    x.grad = None
    pt.linear(x, w, b).sum().backward()
    assert x.grad is not None


STRIDED = {
    "transposed x": (pt.linear, lambda: (torch.randn(44, 13).T, torch.randn(11, 44))),
    "steps": (
        lambda *t: pt.linear(*t, activation="gelu"),
        lambda: (torch.randn(13, 88)[:, ::2], torch.randn(11, 88)[:, ::2], torch.randn(22)[::2]),
    ),
    "matrices": (pt.matmul, lambda: (torch.randn(13, 88)[:, ::2], torch.randn(88, 11)[::2])),
    "a batch of one matrix": (pt.matmul, lambda: (torch.randn(3, 44, 13).mT, torch.randn(44, 11))),
    "three strides": (
        pt.matmul,
        lambda: (torch.randn(2, 3, 5, 13, 44).transpose(0, 2), torch.randn(5, 1, 2, 44, 11)),
    ),
    "added": (
        pt.baddbmm,
        lambda: (torch.randn(13, 1), torch.randn(3, 13, 88)[..., ::2], torch.randn(3, 44, 11)),
    ),
}


@pytest.mark.parametrize("case", STRIDED)
def test_gradients_of_any_strides_are_launched_on_a_gpu(case, monkeypatch):
    """Gradients of strided arrays are launched without copies. The fake GPU computes nothing, and
    no other test has these shapes.
    """
    import torch_fakes

    function, made = STRIDED[case]
    with monkeypatch.context() as patch:
        device = torch_fakes.gpu(patch)
        given = [t.requires_grad_() for t in made()]
        y = function(*given)
        assert device.fired
        found, fired = device.called(torch.autograd.grad, y, given, torch.ones(y.shape))
    assert fired and [g.shape for g in found] == [t.shape for t in given]


def test_a_single_row_without_dimensions_of_its_own():
    x, w, b, dy = operands(1)
    one = grads(pt.linear, x.detach()[0].requires_grad_(), w, b, dy=dy[0])
    many = grads(pt.linear, x, w, b, dy=dy)
    assert equal(one, [many[0][0], many[1][0], *many[2:]])


def test_empty_batches():
    x, w, b, dy = operands(0)
    y, dx, dw, db = grads(pt.linear, x, w, b, dy=dy)
    assert y.shape == (0, N) and dx.shape == (0, K)
    assert not dw.any() and not db.any() and dw.shape == w.shape and db.shape == b.shape


def test_checkpointing():
    from torch.utils.checkpoint import checkpoint

    x, w, b, dy = operands()

    def block(x, w, b):
        return pt.linear(pt.linear(x, w, b, activation="gelu"), w.T, activation="relu") @ w.T

    expected = grads(block, x, w, b, dy=dy)
    for reentrant in (False, True):
        again = grads(
            lambda *t, r=reentrant: checkpoint(block, *t, use_reentrant=r), x, w, b, dy=dy
        )
        assert equal(again, expected)


def test_selective_checkpointing_sees_the_operator():
    from torch.utils.checkpoint import (
        CheckpointPolicy,
        checkpoint,
        create_selective_checkpoint_contexts,
    )

    x, w, b, dy = operands()
    seen = []

    def policy(context, op, *args, **kwargs):
        seen.append(op)
        kept = op is torch.ops.ptxgen.linear.default
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    again = grads(
        lambda *t: checkpoint(
            lambda *u: pt.linear(*u).sin(),
            *t,
            use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        ),
        x, w, b, dy=dy,
    )  # fmt: skip
    assert torch.ops.ptxgen.linear.default in seen
    assert equal(again, grads(lambda *t: pt.linear(*t).sin(), x, w, b, dy=dy))


def test_vmap():
    x, w, b, _ = operands(3, 4, grad=False)
    got = torch.vmap(lambda rows: pt.linear(rows, w, b))(x)
    assert torch.equal(got, pt.linear(x, w, b))


# -- compiling --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "linear_dgrad", "linear_wgrad", "matmul", "baddbmm"])
def test_the_operators_are_well_formed(name):
    x, w, b, dy = operands()
    dy.requires_grad_()
    arguments = {
        "linear": (x, w, b),
        "linear_dgrad": (dy, w.detach().T.contiguous().requires_grad_()),
        "linear_wgrad": (x, dy),
        "matmul": (x, w.detach().T.contiguous().requires_grad_()),
        "baddbmm": (b, torch.randn(2, M, K), torch.randn(2, K, N, requires_grad=True)),
    }
    torch.library.opcheck(getattr(torch.ops.ptxgen, name).default, arguments[name])


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
def test_gradients_are_well_formed(activation):
    """Operators that return gradients, and those that add them to sums, pass ``opcheck``."""
    x, w, b, dy = operands(grad=False)
    y = pt.linear(x, w, b, activation=activation)
    given = [x, w, b, None, None], [y], [dy]
    needs, how = [True, True, True, False, False], {"activation": activation}
    torch.library.opcheck(torch.ops.ptxgen.linear_vjp.default, (*given, needs), how)
    sums = [torch.zeros(N, K), torch.zeros(N)]
    needs = [False, True, True, False, False]
    torch.library.opcheck(torch.ops.ptxgen.linear_vjp_.default, (*given, needs, sums), how)


def test_a_chain_is_continued():
    x, _, _, dy = operands(grad=False)
    how = {"layout": "nk", "chain": True}
    whole = torch.ops.ptxgen.linear_wgrad(x, dy, **how)
    part = torch.ops.ptxgen.linear_wgrad(x[:1], dy[:1], **how)
    ptxgen.linear_wgrad(x[1:], dy[1:], out=part, accumulate=True, **how)
    same_bits(array(part), array(whole))
    same_bits(array(whole), reference.linear_wgrad(array(x), array(dy), **how))


def test_dynamic_shapes_compile_once():
    """The graph holds the operator, so the kernel is picked from the rows of each call."""
    compiled = []

    def backend(graph, example):
        compiled.append([n.target for n in graph.graph.nodes if n.op == "call_function"])
        return graph

    _, w, b, _ = operands()

    def block(x, w, b):
        return pt.linear(x, w, b, activation="relu") + 1

    fast = torch.compile(block, fullgraph=True, dynamic=True, backend=backend)
    for m in (3, 5, 64, 200):
        x = operands(m, seed=m, grad=False)[0]
        with torch.no_grad():
            assert torch.equal(fast(x, w, b), block(x, w, b))
    assert len(compiled) == 1 and torch.ops.ptxgen.linear in compiled[0]


def test_compiled_modules_train_like_eager_ones():
    def trained(compile):
        torch.manual_seed(3)
        model = torch.nn.Sequential(pt.Linear(K, 9), torch.nn.GELU(), pt.Linear(9, N))
        step = torch.compile(model, fullgraph=True, backend="aot_eager") if compile else model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for m in (4, 6, 5):
            x = operands(m, seed=m, grad=False)[0]
            optimizer.zero_grad()
            step(x).square().mean().backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    assert equal(trained(False), trained(True))
    assert equal(trained(False), trained(False))


def test_export():
    x = operands(grad=False)[0]
    layer = pt.Linear(K, N)
    program = torch.export.export(
        layer, (x,), dynamic_shapes={"input": {0: torch.export.Dim("m", min=2)}}
    )
    targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
    assert torch.ops.ptxgen.linear.default in targets
    longer = operands(9, grad=False)[0]
    assert torch.equal(program.module()(longer), layer(longer))


def test_export_of_4_bit_integers():
    torch.manual_seed(0)
    a, b = (ptxgen.int4.pack(torch.randint(-8, 8, (rows, 20))) for rows in (5, 6))

    class Product(torch.nn.Module):
        def forward(self, a):
            return pt.int4_gemm(a, b, alpha=0.1)

    program = torch.export.export(
        Product(), (a,), dynamic_shapes={"a": {0: torch.export.Dim("m", min=2)}}
    )
    longer = torch.cat([a, a])
    assert torch.equal(program.module()(longer), ptxgen.int4.gemm(longer, b, alpha=0.1))


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x, w = torch.empty(2, 3, K, device="cuda"), torch.empty(N, K, device="cuda")
        y = pt.linear(x, w)
        assert y.shape == (2, 3, N) and y.device.type == "cuda" and y.dtype == torch.float32
        y = pt.linear(x.bfloat16(), w.bfloat16(), out_dtype=torch.float32)
        assert y.dtype == torch.float32
        with pytest.raises(ShapeError, match=r"w has shape \[7, 20\]; takes \[N, K\] with K = 19"):
            pt.linear(torch.empty(2, 3, K - 1, device="cuda"), w)


# -- main gradients ---------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_main_grad(compiled):
    x, w, b, dy = operands()
    old_w, old_b = torch.randn(N, K), torch.randn(N)
    w.main_grad, b.main_grad = old_w.clone(), old_b.clone()
    f = torch.compile(pt.linear, fullgraph=True, backend="aot_eager") if compiled else pt.linear
    f(x, w, b).backward(dy)
    assert w.grad is None and b.grad is None and x.grad is not None
    same_bits(array(w.main_grad), reference.linear_wgrad(
        array(x), array(dy), layout="nk", out_old=array(old_w)))  # fmt: skip
    same_bits(array(b.main_grad)[None], reference.linear_wgrad(
        np.ones((M, 1), np.float32), array(dy), layout="kn",
        out_old=array(old_b)[None]))  # fmt: skip


def test_a_main_grad_is_checked():
    x, w, b, _ = operands()
    for wrong, error, message in (
        (torch.zeros(N, K, dtype=torch.float64), DtypeError, "main_grad has dtype torch.float64"),
        (torch.zeros(K, N), ShapeError, r"main_grad has shape \[20, 7\]; takes \[7, 20\]"),
        (torch.zeros(N, K, requires_grad=True), GradError, "main_grad requires grad"),
    ):
        w.main_grad = wrong
        with pytest.raises(error, match=message):
            pt.linear(x, w, b)


def test_adding_to_a_main_grad_is_not_recorded():
    x, w, _, _ = operands()
    w.main_grad = torch.zeros(N, K)
    for product in (pt.linear, torch.compile(pt.linear, backend="eager")):
        with pytest.raises(GradError, match="x requires grad"):
            product(x, w).square().sum().backward(create_graph=True)
    assert not w.main_grad.any()


# -- errors -----------------------------------------------------------------------------------


def test_errors_are_those_of_the_library():
    x, w, b, _ = operands()
    for error, message, arguments, options in (
        (ShapeError, "w has shape", (x, w[:, 1:], b), {}),
        (ShapeError, "bias has shape", (x, w, b[1:]), {}),
        (DtypeError, "w has dtype float32; takes float64", (x.double(), w, b), {}),
        (DtypeError, "w has dtype float16", (x.bfloat16(), w.half(), b), {}),
        (DtypeError, "bias has dtype float16", (x, w, b.half()), {}),
        (DtypeError, "out_dtype is 'float64'", (x, w, b), {"out_dtype": torch.float64}),
        (OptionError, "activation is 'tanh'", (x, w, b), {"activation": "tanh"}),
        (OptionError, "layout is 'km'", (x, w, b), {"layout": "km"}),
        (OptionError, "tier is 'fast'", (x, w, b), {"tier": "fast"}),
    ):
        for grad in (False, True):
            with torch.set_grad_enabled(grad), pytest.raises(error, match=message):
                pt.linear(*arguments, **options)


def test_forward_mode_is_refused():
    from torch.autograd import forward_ad

    x, w, b, _ = operands(grad=False)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        for f in (pt.linear, lambda x, w, b: pt.matmul(x, w.T)):
            with pytest.raises(GradError, match="forward-mode"):
                f(dual, w, b)
        assert torch.equal(pt.linear(x, w, b), ptxgen.linear(x, w, b, layout="nk"))


def test_tracers_record_the_operator():
    x = operands(grad=False)[0]
    layer = pt.Linear(K, N)
    graph = torch.fx.symbolic_trace(torch.nn.Sequential(layer))
    assert "torch.ops.ptxgen.linear" in graph.code
    assert torch.equal(graph(x), layer(x))


# -- modules ----------------------------------------------------------------------------------


def test_the_module_is_nn_linear():
    torch.manual_seed(7)
    mine = pt.Linear(K, N)
    torch.manual_seed(7)
    theirs = torch.nn.Linear(K, N)
    assert repr(mine) == repr(theirs)
    assert equal(mine.state_dict().values(), theirs.state_dict().values())
    assert list(mine.state_dict()) == list(theirs.state_dict())
    x = operands(grad=False)[0]
    # Other bits, the same layer: both round 21 partial sums, below 4, to 24 bits.
    torch.testing.assert_close(mine(x), theirs(x), rtol=0, atol=2 * 21 * 4 * 2**-24)
    other = torch.nn.Linear(K, N, bias=False)
    layer = pt.Linear(K, N, bias=False, tier="simt")
    layer.load_state_dict(other.state_dict())
    other.load_state_dict(layer.state_dict())
    assert layer.bias is None and repr(layer).endswith("bias=False, tier='simt')")
    assert torch.equal(layer(x), pt.linear(x, other.weight))
    with pytest.raises(OptionError, match="tier is 'x'"):
        pt.Linear(K, N, tier="x")


def test_modules_are_copied_and_saved():
    layer = pt.Linear(K, N, tier="simt")
    x = operands(grad=False)[0]
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for again in (copy.deepcopy(layer), torch.load(file, weights_only=False)):
        assert torch.equal(again(x), layer(x)) and again.tier == "simt"


def test_convert():
    class Own(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    model = torch.nn.ModuleDict(
        {
            "first": torch.nn.Linear(K, 8),
            "own": Own(8, 8),
            "inner": torch.nn.Sequential(torch.nn.Linear(8, N), torch.nn.ReLU()),
            "wide": torch.nn.Linear(8, N).double(),
            "narrow": torch.nn.Linear(8, N).to(torch.float8_e5m2),
            "patched": torch.nn.Linear(8, N),
            "ours": pt.Linear(8, N, tier="simt"),
        }
    )
    model["tied"] = torch.nn.Linear(K, 8)
    model["tied"].weight = model["first"].weight
    model["patched"].forward = lambda x: x
    calls = []
    model["first"].register_forward_hook(lambda *a: calls.append(1))
    before = dict(model.named_modules())
    parameters = dict(model.named_parameters())
    done = pt.convert(model, tier="simt")
    assert done.converted == ["first", "inner.0", "wide", "tied"]
    assert set(done.skipped) == {"own", "narrow", "patched"}
    assert "Own" in done.skipped["own"] and "float8_e5m2" in done.skipped["narrow"]
    assert "converted 4 linear layers, skipped 3" in str(done) and "own: is a " in str(done)
    assert all(module is before[name] for name, module in model.named_modules())
    assert all(p is parameters[name] for name, p in model.named_parameters())
    assert model["tied"].weight is model["first"].weight
    x = operands(grad=False)[0]
    first = model["first"]
    assert type(first) is pt.Linear and first.tier == "simt"
    assert torch.equal(first(x), pt.linear(x, first.weight, first.bias)) and calls
    assert pt.convert(model).converted == []
    alone = torch.nn.Linear(K, N)
    assert pt.convert(alone).converted == [""] and type(alone) is pt.Linear
    with pytest.raises(OptionError, match="tier is 'x'"):
        pt.convert(model, tier="x")


# -- sixteen bits, autocast ---------------------------------------------------------------------

HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])


@HALVES
@pytest.mark.parametrize("bias_dtype", [None, torch.float32])
def test_sixteen_bits(dtype, bias_dtype):
    x, w, b, dy = operands(dtype=dtype)
    b = b.detach().to(bias_dtype or dtype).requires_grad_()
    y, dx, dw, db = grads(pt.linear, x, w, b, dy=dy)
    x, w, b = (t.detach() for t in (x, w, b))
    name = str(dtype).removeprefix("torch.")
    assert torch.equal(y, ptxgen.linear(x, w, b, layout="nk"))
    assert torch.equal(dx, ptxgen.linear_dgrad(dy, w, layout="nk"))
    assert torch.equal(dw, ptxgen.linear_wgrad(x, dy, layout="nk", out_dtype=name))
    sums = ptxgen.linear_wgrad(torch.ones(M, 1, dtype=dtype), dy, tier="simt", layout="kn")[0]
    assert (dx.dtype, dw.dtype, db.dtype) == (dtype, dtype, b.dtype)
    assert torch.equal(db, sums.to(b.dtype))
    assert torch.equal(pt.linear(x, w, out_dtype=torch.float32),
                       ptxgen.linear(x, w, layout="nk", out_dtype="float32"))  # fmt: skip


@HALVES
def test_main_grad_of_sixteen_bits(dtype):
    x, w, _, dy = operands(dtype=dtype)
    old = torch.randn(N, K)
    w.main_grad = old.clone()
    pt.linear(x, w).backward(dy)
    ptxgen.linear_wgrad(x.detach(), dy, layout="nk", out=old, accumulate=True)
    assert torch.equal(w.main_grad, old) and w.grad is None


@HALVES
def test_autocast(dtype):
    """x and w are rounded once; the gradients of f32 parameters are never rounded to 16 bits."""
    x, w, b, dy = operands()
    dy = dy.to(dtype)

    def product(x, w, b):
        with torch.autocast("cpu", dtype=dtype):
            return pt.linear(x, w, b, activation="relu")

    def operator(x, w, b):
        with torch.autocast("cpu", dtype=dtype):
            return torch.ops.ptxgen.linear(x, w, b, activation="relu")

    y, dx, dw, db = grads(product, x, w, b, dy=dy)
    low_x, low_w, bias = x.detach().to(dtype), w.detach().to(dtype), b.detach()
    assert torch.equal(y, ptxgen.linear(low_x, low_w, bias, layout="nk", activation="relu"))
    masked = torch.where(y > 0, dy, 0)
    assert torch.equal(dx, ptxgen.linear_dgrad(masked, low_w, layout="nk").float())
    assert torch.equal(dw, ptxgen.linear_wgrad(low_x, masked, layout="nk"))
    assert dw.dtype == db.dtype == torch.float32
    compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
    for other in (operator, compiled):
        assert equal(grads(other, x, w, b, dy=dy), [y, dx, dw, db])
    with torch.no_grad():
        assert torch.equal(product(x, w, b), y)
    with torch.autocast("cpu", dtype=dtype):
        assert pt.linear(x.to(dtype), w, b.to(dtype)).dtype == dtype  # mixed dtypes
        a = x.detach().clone().requires_grad_()
        assert torch.equal(pt.matmul(a, w.T), ptxgen.matmul(low_x, low_w.T))
        y = pt.linear(a, w, b)
        y.backward(dy)  # inside: the backward pass rounds nothing again
    assert torch.equal(a.grad, ptxgen.linear_dgrad(dy, low_w, layout="nk").float())
    with torch.autocast("cpu", dtype=dtype), torch.autocast("cpu", enabled=False):
        assert pt.linear(x, w, b).dtype == torch.float32


@HALVES
def test_training_twice(dtype):
    def trained():
        torch.manual_seed(3)
        model = torch.nn.Sequential(pt.Linear(K, 9), torch.nn.GELU(), pt.Linear(9, N)).to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for m in (4, 6, 5):
            optimizer.zero_grad()
            model(operands(m, seed=m, grad=False, dtype=dtype)[0]).square().mean().backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    assert equal(trained(), trained())


def test_a_result_that_gradients_do_not_read_may_be_written():
    """PyTorch refuses to write what is saved; a compiler is shown operators, which save less."""
    x, w = (torch.randn(4, 4, requires_grad=True) for _ in "xw")

    def function(x, w):
        return pt.linear(x, w).add_(1.0).sum()

    found = []
    for run in (function, torch.compile(function, backend="aot_eager", fullgraph=True)):
        run(x, w).backward()
        found.append((x.grad, w.grad))
        x.grad = w.grad = None
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
