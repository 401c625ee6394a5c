"""Convolutions on a real GPU: bits of the oracle, and images in PyTorch's channels_last format."""

from __future__ import annotations

import calls
import pytest
import window_cases
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.program.launch import architecture
from ptxgen.runtime import get_device
from ptxgen.tiles import TABLES
from ptxgen.tiles.conv import DEPTHWISE, KEY, SUMMED, TURNED

torch = pytest.importorskip("torch")
pt = pytest.importorskip("ptxgen.torch")
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["conv", "conv_transpose", "conv_dgrad", "conv_wgrad"])
def test_bits_are_the_oracles(name):
    """Convolutions in f32 and f64, whose bits depend on no architecture, have the oracle's bits."""
    for seed in range(12):
        call = calls.valid(name, seed)
        if next(iter(call.given.values())).dtype.itemsize > 2:
            got = getattr(ptxgen, name)(**call.given)
            same_bits(got, getattr(reference, name)(**call.given), seed=seed, what=f"{call}")


ROUTES = {
    route.name: (route, window_cases.depthwise if key == DEPTHWISE else window_cases.products)
    for key in (KEY, TURNED, SUMMED, DEPTHWISE)
    for dtype in TABLES[key].dtypes
    for route in (each.of(dtype) for each in TABLES[key].routes)
}


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_kernels_that_read_windows(name):
    """Every kernel that reads windows has the oracle's bits on problems across its edges,
    forced.
    """
    device, (route, cases) = get_device("cuda"), ROUTES[name]
    arch = architecture(device)
    if not all(kernel.runs_on(arch) for kernel in route.kernels):
        pytest.skip(f"not on {arch}")
    for check in cases(route.main.name):
        check(device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("groups", [1, 4, 64])
@pytest.mark.parametrize(
    ("taps", "image"), [(3, (15, 14)), (1, (15, 14)), (1, (16, 8)), (5, (9, 8))]
)
@pytest.mark.parametrize("bias", [True, False])
def test_images_that_lie_channels_last(dtype, groups, taps, image, bias):
    """The block's results lie as PyTorch's; neither that nor the batch changes a bit."""
    torch.manual_seed(0)
    how = {"padding": taps // 2, "groups": groups, "bias": bias}
    module = torch.nn.Conv2d(64, 64, taps, **how).to("cuda", dtype)
    x = torch.randn(7, 64, *image, device="cuda", dtype=dtype, requires_grad=True)
    last = x.detach().to(memory_format=torch.channels_last).requires_grad_()
    dy = torch.randn_like(x)
    with pt.batch_invariant() as block:
        y, z = module(x), module(last)
        y.backward(dy)
        z.backward(dy)
        assert torch.equal(module(x[3:4]), y[3:4])
    assert not block.unknown
    assert torch.equal(y, z) and torch.equal(x.grad, last.grad)
    assert y.is_contiguous() and z.is_contiguous(memory_format=torch.channels_last)
