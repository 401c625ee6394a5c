"""``ptxgen.torch`` on a real GPU: compiling, graphs, autocast, training, served products, cost."""

from __future__ import annotations

import threading

import pytest

import ptxgen

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
functional = torch.nn.functional

pytestmark = pytest.mark.gpu

DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16], ids=["f32", "bf16", "f16"]
)
HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
M, N, K = 50, 72, 104


def operands(*shape, dtype=torch.float32, grad=True, seed=0):
    torch.manual_seed(seed)
    shape = shape or (M,)
    tensors = (torch.randn(s, device="cuda") for s in ((*shape, K), (N, K), (N,), (*shape, N)))
    x, w, b, dy = (t.to(dtype) for t in tensors)
    return *(t.requires_grad_(grad) for t in (x, w, b)), dy


def grads(f, *tensors, dy):
    leaves = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    y = f(*leaves)
    y.backward(dy)
    return [y.detach(), *(t.grad for t in leaves)]


def equal(these, those):
    return all(torch.equal(a, b) for a, b in zip(these, those, strict=True))


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


# -- gradients ----------------------------------------------------------------------------


@DTYPES
def test_the_gradients_are_the_librarys(dtype):
    x, w, b, dy = operands(5, 10, dtype=dtype)
    y, dx, dw, db = grads(pt.linear, x, w, b, dy=dy)
    x, w, b = (t.detach() for t in (x, w, b))
    for _ in range(2):
        assert torch.equal(y, ptxgen.linear(x, w, b, layout="nk"))
        assert torch.equal(dx, ptxgen.linear_dgrad(dy, w, layout="nk"))
        expected = ptxgen.linear_wgrad(x, dy, layout="nk", out_dtype=name_of(dtype))
        assert torch.equal(dw, expected)
        ones = torch.ones(5, 10, 1, dtype=dtype, device="cuda")
        sums = ptxgen.linear_wgrad(ones, dy, tier="simt", out_dtype=name_of(dtype), layout="kn")
        assert torch.equal(db, sums[0])


@DTYPES
def test_batches_and_their_gradients(dtype):
    shapes = (3, 5, K), (3, K, N), (3, 5, N)
    a, b, g = (torch.randn(shape, device="cuda").to(dtype) for shape in shapes)
    for x in (a, b):
        x.requires_grad_()
    y, da, db = grads(pt.bmm, a, b, dy=g)
    added = grads(lambda a, b: pt.baddbmm(g, a, b), a, b, dy=g)
    a, b = a.detach(), b.detach()
    for i in range(3):
        assert torch.equal(y[i], ptxgen.matmul(a[i], b[i]))
        assert torch.equal(da[i], ptxgen.matmul(g[i], b[i].T))
        assert torch.equal(db[i], ptxgen.matmul(a[i].T, g[i]))
    wide = ptxgen.matmul(a, b, out_dtype="float32")
    assert equal(added, [(wide + g).to(dtype), da, db])


@DTYPES
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
def test_gradients_against_float64(dtype, activation):
    """Gradients are within twice the roundings of their dtype: of dy, of the sums, of the
    result.
    """
    exact_activation = {
        None: lambda z: z,
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"),
        "silu": functional.silu,
    }[activation]
    x, w, b, dy = operands(dtype=dtype)
    got = grads(lambda *t: pt.linear(*t, activation=activation), x, w, b, dy=dy)
    exact = grads(
        lambda *t: exact_activation(functional.linear(*t)),
        *(t.detach().double().requires_grad_() for t in (x, w, b)),
        dy=dy.double(),
    )
    unit = {torch.float32: 2**-20, torch.bfloat16: 2**-7, torch.float16: 2**-10}[dtype]
    for mine, theirs in zip(got, exact, strict=True):
        # Sums of at most 104 terms: their rounding is relative to the largest of the sums.
        difference = (mine.double() - theirs).abs().max()
        assert difference <= unit * theirs.abs().max()


@DTYPES
def test_any_strides(dtype):
    x, w, b, dy = operands(4, 6, dtype=dtype)
    expected = grads(pt.linear, x, w, b, dy=dy)
    turned = x.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    y = pt.linear(turned, w, b)
    y.backward(dy.transpose(0, 2).contiguous().transpose(0, 2))
    assert equal([y.detach(), turned.grad, w.grad, b.grad], expected)
    x, w, b, _ = operands(4, 6, dtype=dtype)
    pt.linear(x, w, b).sum().backward()  # an expanded gradient
    assert torch.isfinite(w.grad).all()


@DTYPES
def test_main_grad(dtype):
    x, w, _, dy = operands(dtype=dtype)
    old = torch.randn(N, K, device="cuda")
    w.main_grad = old.clone()
    for _ in range(3):
        pt.linear(x, w).backward(dy)
        ptxgen.linear_wgrad(x.detach(), dy, layout="nk", out=old, accumulate=True)
    assert torch.equal(w.main_grad, old) and w.grad is None


@DTYPES
def test_rows_do_not_depend_on_the_batch(dtype):
    layer = pt.Linear(K, N, dtype=dtype, device="cuda")
    x = operands(300, dtype=dtype, grad=False)[0]
    with torch.no_grad():
        expected = layer(x)
        for m in (1, 2, 3, 8, 17, 64, 129, 256):
            assert torch.equal(layer(x[:m]), expected[:m])
            assert torch.equal(layer(x[-m:]), expected[-m:])


# -- compiling, graphs ----------------------------------------------------------------------


@DTYPES
def test_compiled_with_dynamic_shapes(dtype):
    def block(x, w, b):
        return pt.linear(x, w, b, activation="gelu") * 2

    fast = torch.compile(block, fullgraph=True, dynamic=True)
    for m in (3, 64, 200, 513):
        x, w, b, dy = operands(m, dtype=dtype, seed=m)
        assert equal(grads(fast, x, w, b, dy=dy), grads(block, x, w, b, dy=dy))
    with torch.no_grad():
        assert torch.equal(fast(x, w, b), block(x, w, b))


def test_compiled_main_grad():
    x, w, b, dy = operands()
    old = torch.randn(N, K, device="cuda")
    w.main_grad = old.clone()
    torch.compile(pt.linear, fullgraph=True)(x, w, b).backward(dy)
    ptxgen.linear_wgrad(x.detach(), dy, layout="nk", out=old, accumulate=True)
    assert torch.equal(w.main_grad, old) and w.grad is None


def test_compiled_into_cuda_graphs():
    layer = pt.Linear(K, N, device="cuda")
    fast = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    with torch.no_grad():
        for seed in range(6):
            x = operands(seed=seed, grad=False)[0]
            assert torch.equal(fast(x), layer(x))


@DTYPES
def test_a_training_step_in_a_cuda_graph(dtype):
    def model():
        torch.manual_seed(1)
        return torch.nn.Sequential(pt.Linear(K, 64), torch.nn.GELU(), pt.Linear(64, N)).to(
            "cuda", dtype
        )

    x, _, _, dy = operands(dtype=dtype, grad=False)
    eager, captured = model(), model()

    def step(model):
        model.zero_grad(set_to_none=False)
        model(x).backward(dy)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step(captured)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(captured)
    for seed in (5, 6):
        x.copy_(operands(dtype=dtype, grad=False, seed=seed)[0])
        graph.replay()
        step(eager)
        for p, q in zip(eager.parameters(), captured.parameters(), strict=True):
            assert torch.equal(p.grad, q.grad)


@DTYPES
def test_checkpointing(dtype):
    from torch.utils.checkpoint import checkpoint

    def block(x, w, b):
        return pt.linear(pt.linear(x, w, b, activation="silu"), w, layout="kn")

    x, w, b, _ = operands(dtype=dtype)
    dy = torch.randn(M, K, device="cuda").to(dtype)
    expected = grads(block, x, w, b, dy=dy)
    again = grads(lambda *t: checkpoint(block, *t, use_reentrant=False), x, w, b, dy=dy)
    assert equal(again, expected)


# -- autocast -------------------------------------------------------------------------------


@HALVES
def test_autocast(dtype):
    x, w, b, dy = operands()
    dy = dy.to(dtype)

    def product(x, w, b):
        with torch.autocast("cuda", dtype=dtype):
            return pt.linear(x, w, b)

    y, dx, dw, db = grads(product, x, w, b, dy=dy)
    low_x, low_w, bias = x.detach().to(dtype), w.detach().to(dtype), b.detach()
    assert torch.equal(y, ptxgen.linear(low_x, low_w, bias, layout="nk"))
    assert torch.equal(dx, ptxgen.linear_dgrad(dy, low_w, layout="nk").float())
    assert torch.equal(dw, ptxgen.linear_wgrad(low_x, dy, layout="nk"))
    compiled = torch.compile(product, fullgraph=True)
    assert equal(grads(compiled, x, w, b, dy=dy), [y, dx, dw, db])
    with torch.autocast("cuda", dtype=dtype):
        assert torch.equal(torch.ops.ptxgen.linear(x, w, b), y)


# -- training -------------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize("compiled", [False, True])
def test_training_twice_gives_the_same_weights(dtype, compiled):
    def trained():
        torch.manual_seed(3)
        model = torch.nn.Sequential(pt.Linear(K, 256), torch.nn.GELU(), pt.Linear(256, N)).to(
            "cuda", dtype
        )
        step = torch.compile(model, fullgraph=True) if compiled else model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for seed in range(8):
            x = operands(256, seed=seed, grad=False, dtype=dtype)[0]
            optimizer.zero_grad()
            step(x).float().square().mean().backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    first, second = trained(), trained()
    assert equal(first, second) and all(torch.isfinite(p).all() for p in first)


@DTYPES
def test_checkpoints_go_both_ways(dtype):
    theirs = torch.nn.Linear(K, N, device="cuda", dtype=dtype)
    mine = pt.Linear(K, N, device="cuda", dtype=dtype)
    mine.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(mine.state_dict())
    x = operands(dtype=dtype, grad=False)[0]
    expected = functional.linear(x.double(), theirs.weight.double(), theirs.bias.double())
    unit = {torch.float32: 2**-20, torch.bfloat16: 2**-8, torch.float16: 2**-11}[dtype]
    assert (mine(x).double() - expected).abs().max() <= unit * expected.abs().max()
    converted = torch.nn.Sequential(theirs)
    assert pt.convert(converted).converted == ["0"]
    assert torch.equal(converted(x), mine(x))


# -- serving ATen's products ------------------------------------------------------------------


@DTYPES
def test_products_are_served(dtype):
    x, w, b, _ = operands(4, 6, dtype=dtype, grad=False)
    with pt.batch_invariant() as block:
        assert torch.equal(functional.linear(x, w, b), ptxgen.linear(x, w, b, layout="nk"))
        assert torch.equal(x @ w.T, ptxgen.linear(x, w, layout="nk"))
        batch = torch.bmm(x, w.T.expand(4, K, N).contiguous())
        assert torch.equal(batch, ptxgen.linear(x, w, layout="nk"))
        out = torch.empty(24, N, device="cuda", dtype=dtype)
        torch.mm(x.view(24, K), w.T, out=out)
        assert torch.equal(out.view(4, 6, N), batch)
    assert block.served == {"addmm": 1, "mm": 2, "bmm": 1}


@DTYPES
def test_rows_of_a_whole_model_do_not_depend_on_the_batch(dtype):
    """A transformer layer's projections and its attention's products, of a model left as it is."""
    torch.manual_seed(0)
    wq, wo = (torch.randn(64, 64, device="cuda", dtype=dtype) / 8 for _ in range(2))

    def logits(x):
        q = functional.linear(x, wq).unflatten(-1, (4, 16)).transpose(1, 2)
        attention = torch.softmax(q @ q.transpose(-1, -2), -1) @ q
        return functional.linear(attention.transpose(1, 2).flatten(2), wo)

    x = torch.randn(40, 9, 64, device="cuda", dtype=dtype)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), pt.batch_invariant():
            whole = logits(x)
            for m in (1, 2, 7, 33):
                assert torch.equal(logits(x[:m]), whole[:m])


@DTYPES
def test_backward_passes_are_served_in_autograds_threads(dtype):
    x, w, b, dy = operands(dtype=dtype)
    with pt.batch_invariant() as block:
        y = functional.linear(x, w, b)
        y.backward(dy)
    assert block.served == {"addmm": 1, "mm": 2, "sum": 1}
    assert torch.equal(x.grad, ptxgen.linear_dgrad(dy, w.detach(), layout="nk"))
    assert torch.equal(w.grad, ptxgen.matmul(dy.T, x.detach()))


def test_served_under_autocast():
    x, w, b, _ = operands(grad=False)
    with torch.autocast("cuda", dtype=torch.bfloat16), pt.batch_invariant() as block:
        y = functional.linear(x, w, b)
    expected = ptxgen.linear(x.bfloat16(), w.bfloat16(), b.bfloat16(), layout="nk")
    assert torch.equal(y, expected) and block.served == {"addmm": 1}


def test_compiled_functions_are_not_bypassed():
    """A function compiled before the block runs eagerly inside it, and so is served."""
    x, w, _, _ = operands(grad=False)
    compiled = torch.compile(lambda x, w: functional.linear(x, w).relu())
    compiled(x, w)
    with pt.batch_invariant() as block:
        y = compiled(x, w)
    assert torch.equal(y, ptxgen.linear(x, w, layout="nk").relu()) and block.served["mm"] == 1


def test_other_threads_are_served_too():
    x, w, b, _ = operands(grad=False)
    results = []
    thread = threading.Thread(target=lambda: results.append(functional.linear(x, w, b)))
    with pt.batch_invariant() as block:
        thread.start()
        thread.join()
    assert torch.equal(results[0], ptxgen.linear(x, w, b, layout="nk"))
    assert block.served == {"addmm": 1}


# -- calls like earlier ones -----------------------------------------------------------------


@DTYPES
def test_repeated_calls_return_the_bits_of_the_first(dtype):
    """Through every way in: the functions, the layer, the operator, what is served."""
    x, w, b, _ = operands(dtype=dtype, grad=False)
    layer = pt.Linear(K, N, device="cuda", dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(w)
        layer.bias.copy_(b)
    wg, bg = w.clone().requires_grad_(), b.clone().requires_grad_()
    plain, biased = ptxgen.linear(x, w, layout="nk"), ptxgen.linear(x, w, b, layout="nk")
    calls = {
        "linear": (lambda: pt.linear(x, w), plain),
        "linear, bias": (lambda: pt.linear(x, w, b), biased),
        "linear, grad": (lambda: pt.linear(x, wg, bg), biased),
        "Linear, grad": (lambda: layer(x), biased),
        "operator": (lambda: torch.ops.ptxgen.linear(x, w), plain),
        "operator, grad": (lambda: torch.ops.ptxgen.linear(x, wg, bg), biased),
    }
    for name, (call, expected) in calls.items():
        for _ in range(3):
            assert torch.equal(call(), expected), name
    with pt.batch_invariant():
        for _ in range(3):
            assert torch.equal(functional.linear(x, w), plain)
