"""Sorts, transforms and Gaussian splats on a GPU: large sorts exact and stable, transforms and
pictures with the oracle's bits.
"""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from splat_cases import BACKGROUND, scene

from ptxgen import reference
from ptxgen.ops import OPERATIONS

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
pytestmark = pytest.mark.gpu

SEED = 20265


@pytest.mark.parametrize("dtype", ["int32", "float32", "int64"])
def test_2_to_the_24_keys_are_sorted_exactly_and_stably(dtype) -> None:
    """A few thousand values, so that most keys have thousands of equals."""
    generator = torch.Generator("cuda").manual_seed(SEED)
    keys = torch.randint(-3000, 3000, (1 << 24,), device="cuda", generator=generator)
    keys = keys.to(getattr(torch, dtype))
    for descending in (False, True):
        values, indices = pt.sort(keys, descending=descending)
        assert torch.equal(values, keys[indices])
        step, before = values.diff(), indices.diff() > 0
        rising = (step <= 0) if descending else (step >= 0)
        assert (rising & (before | (step != 0))).all()
        assert torch.equal(indices.sort().values, torch.arange(1 << 24, device="cuda"))


LENGTHS = (1, 2, 3, 7, 16, 17, 60, 64, 100, 243, 1000, 1009, 1024, 4096, 5005, 8192, 10007, 65536)


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_transforms_have_the_oracles_bits(kind) -> None:
    """Lengths of one launch and of several, with small factors and by chirps, rows and columns."""
    pairs = OPERATIONS["fft_pairs"]
    rng = np.random.default_rng(SEED)
    for n in LENGTHS:
        x = rng.standard_normal((3, n, 2)).astype(kind)
        given = torch.from_numpy(x).cuda()
        for how in ({}, {"inverse": True, "norm": "ortho"}):
            found = pairs.function(given, **how)
            same_bits(found.cpu().numpy(), pairs.oracle(x, **how), seed=SEED, what=f"{n} {how}")
        turned = given.transpose(0, 1).contiguous()
        assert torch.equal(pairs.function(turned, axis=0).transpose(0, 1), pairs.function(given))


def test_a_scene_has_the_oracles_bits_and_two_runs_the_same_gradients() -> None:
    size = {"width": 70, "height": 45}
    given = scene(3, 700, *size.values(), 16)
    expected = reference.splat_render(*given, BACKGROUND, **size)
    dpicture = torch.from_numpy(np.random.default_rng(SEED).standard_normal((45, 70, 3))).float()

    def run():
        leaves = [torch.tensor(x, device="cuda", requires_grad=True) for x in given[:5]]
        camera = [torch.tensor(x, device="cuda") for x in (*given[5:], BACKGROUND)]
        picture, left, _ = pt.splat_render(*leaves, *camera, **size)
        picture.backward(dpicture.cuda())
        return [x.detach().cpu().numpy() for x in (picture, left, *(x.grad for x in leaves))]

    first, second = run(), run()
    for got, one in zip(first[:2], expected[:2], strict=True):
        same_bits(got, one, seed=SEED)
    for one, two in zip(first, second, strict=True):
        assert np.isfinite(one).all() and one.any()
        same_bits(one, two)
