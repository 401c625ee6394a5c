"""Graphs on a GPU: the bits of the block, replayed as CUDA graphs too."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
test_graph = pytest.importorskip("test_graph")
functions = pytest.importorskip("test_torch_functions")
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
