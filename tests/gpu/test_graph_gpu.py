"""Graphs on a GPU: the bits of the block, replayed as CUDA graphs too."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
replay = pytest.importorskip("ptxgen.torch.replay")
test_graph = pytest.importorskip("test_graph")
functions = pytest.importorskip("test_torch_functions")
test_inplace = pytest.importorskip("test_inplace")
pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def anew():
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_elementwise_operators_have_pytorchs_bits(dtype):
    torch.manual_seed(0)
    special = torch.tensor(test_graph.SPECIAL, dtype=torch.float64)
    count = len(special)
    x = torch.cat([torch.randn(5001) * 3, special.repeat(count)]).to(getattr(torch, dtype))
    y = torch.cat([torch.randn(5001), special.repeat_interleave(count)]).to(x.dtype)

    def all_of_them(x, y):
        return tuple(f(x, y) for f in test_graph.ELEMENTWISE.values())

    how = {"how": test_graph.traced, "passes": (), "functions": False}
    test_graph.compared(all_of_them, x.cuda(), y.cuda(), **how)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_functions_have_the_oracles_bits(dtype):
    functions.test_block_graph_and_oracle_give_the_same_bits(dtype, "cuda")


def test_functions_have_pytorchs_dtypes_and_strides():
    functions.test_dtypes_are_pytorchs("cuda")


def test_a_function_of_a_tensor_of_the_cpu():
    x = torch.rand(5, device="cuda")
    with pt.batch_invariant(strict=True) as block:
        y = x ** torch.tensor(2.5)
    assert torch.equal(y, x ** torch.tensor(2.5)) and block.free["pow"] == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_block_of_a_llama_with_gradients(dtype):
    torch.manual_seed(0)
    model = test_graph.Block(256, 4, 2).to(dtype).cuda()
    function, parameters = test_graph.of_model(model)
    x = torch.randn(2, 65, 256).to(dtype).cuda().requires_grad_()
    test_graph.compared(function, x, *parameters, strict=True)


def test_replayed_at_changing_sizes_and_with_a_parameter_that_moves():
    model = test_graph.Block(256, 4, 2).cuda().requires_grad_(False)
    made = torch.compile(model, backend=pt.Backend(capture=True), dynamic=True)
    for number, rows in enumerate((8, 8, 5, 8, 5, 5, 5, 8)):
        if number == 6:
            model.q.weight = torch.nn.Parameter(model.q.weight * 2, requires_grad=False)
        x = torch.randn(2, rows, 256, device="cuda")
        with pt.batch_invariant():
            expected = model(x)
        found = made(x)
        torch.cuda.synchronize()
        assert test_graph.same(found, expected), number


def test_replayed_training_steps():
    torch.manual_seed(0)
    model = test_graph.Block(256, 4, 2).cuda()
    made = torch.compile(model, backend=pt.Backend(capture=True))
    for _ in range(4):
        x = torch.randn(2, 16, 256, device="cuda")
        found = []
        for way in (made, model):
            model.zero_grad()
            if way is made:
                way(x).square().mean().backward()
            else:
                with pt.batch_invariant():
                    way(x).square().mean().backward()
            found.append([p.grad.clone() for p in model.parameters()])
        assert all(map(test_graph.same, *found))


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("function", test_graph.SHARING)
def test_outputs_that_are_views_have_the_blocks_gradients(function, capture):
    tensors = [t.detach().cuda().requires_grad_() for t in test_graph.matrices((6, 4), (6, 4))]
    with pt.batch_invariant():
        expected = test_graph.both(function, tensors)
    made = torch.compile(function, backend=pt.Backend(capture=capture))
    for _ in range(4):
        assert all(map(test_graph.same, test_graph.both(made, tensors), expected))
    found, own = ([*tensors, *f(*tensors)] for f in (made, function))
    assert test_graph.memory(found) == test_graph.memory(own)


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("function", test_inplace.IN_PLACE + test_inplace.OTHERS)
def test_mutations_of_what_lies_still_and_of_what_moves(function, capture):
    """The first is at its place until the fifth call, the second moves with each."""
    torch.manual_seed(0)
    made = torch.compile(function, backend=pt.Backend(capture=capture))
    state, x = (torch.randn(2, 4, 4, device="cuda") for _ in range(2))
    ours = state.clone()
    for number in range(7):
        other = x.clone()
        with pt.batch_invariant():
            expected = function(state, x)
        if number == 4:
            ours = ours.clone()
        found = made(ours, other)
        pairs = zip(test_inplace._all(expected), test_inplace._all(found), strict=True)
        assert all(test_graph.same(a, b) for a, b in pairs), number
        assert test_graph.same(ours, state) and test_graph.same(other, x), number
        kept = other  # noqa: F841 - so that the next lies elsewhere


def test_places_that_pytorch_counts_are_replayed(monkeypatch):
    def function(x, mask):
        places = mask.cumsum(-1) - 1
        return x[torch.arange(4, device="cuda")[:, None], places] @ x

    def captured(*given):
        recorded.append(given)
        return own(*given)

    recorded, own = [], replay.captured
    monkeypatch.setattr(replay, "captured", captured)
    made = torch.compile(function, backend=pt.Backend(capture=True))
    for _ in range(5):
        x, mask = torch.randn(4, 16, 16, device="cuda"), torch.rand(4, 16, device="cuda") > 0.5
        mask[:, 0] = True
        with pt.batch_invariant():
            expected = function(x, mask)
        assert test_graph.same(made(x, mask), expected)
    assert recorded


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_cache_of_a_token_at_a_time(indexed, capture):
    torch.manual_seed(0)
    model = test_inplace.Cached(indexed).cuda().requires_grad_(False)
    expected = copy.deepcopy(model)
    backend = pt.Backend(strict=True, capture=capture)
    made = torch.compile(model, backend=backend)
    for place in range(6):
        x, at = torch.randn(1, 1, 16, device="cuda"), torch.tensor([place], device="cuda")
        with pt.batch_invariant():
            wanted = expected(x, at)
        assert test_graph.same(made(x, at), wanted), place
        assert test_graph.same(model.keys, expected.keys), place
    assert backend.report().updated == {"in place": 2}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_residual_norms(dtype):
    def function(x, y, w, v):
        x = x + y @ v
        x = x + torch.nn.functional.rms_norm(x, (256,), w) @ v
        return torch.nn.functional.layer_norm(x, (256,), w, w) @ v, x

    shapes = (3, 65, 256), (3, 65, 256), (256,), (256, 256)
    tensors = [t.cuda() for t in test_graph.matrices(*shapes, grad=False, dtype=dtype)]
    report = test_graph.compared(function, *tensors)
    done = [d for d in report.done if d.name in ("fuse_reductions", "epilogues")]
    assert sum(d.steps[0] - d.steps[1] for d in done) == 2  # each sum is a norm's, or a product's
