"""Gaussian splats: the plain formula in float64, gradients, culling, lists, errors. (Kernels have
their cases in ``interp_cases``.)
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from bits import same_bits
from splat_cases import BACKGROUND, scene

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError

SIZE = {"width": 24, "height": 19}
NAMES = ("positions", "scales", "rotations", "opacities", "colours")


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


# -- the plain formula --------------------------------------------------------------------------
def harmonics(d):
    """Real spherical harmonics up to degree 3, with the constants that splat viewers print."""
    x, y, z = d.T
    one = 0.4886025119029199
    return np.stack(
        [
            0 * x + 0.28209479177387814,
            *(-one * y, one * z, -one * x),
            *(1.0925484305920792 * x * y, -1.0925484305920792 * y * z),
            0.31539156525252005 * (2 * z * z - x * x - y * y),
            *(-1.0925484305920792 * x * z, 0.5462742152960396 * (x * x - y * y)),
            -0.5900435899266435 * y * (3 * x * x - y * y),
            2.890611442640554 * x * y * z,
            -0.4570457994644658 * y * (4 * z * z - x * x - y * y),
            0.3731763325901154 * z * (2 * z * z - 3 * x * x - 3 * y * y),
            -0.4570457994644658 * x * (4 * z * z - x * x - y * y),
            1.445305721320277 * z * (x * x - y * y),
            -0.5900435899266435 * x * (x * x - 3 * y * y),
        ],
        axis=1,
    )


def plain(*given):
    """Draws a scene in float64, splat by splat over the whole picture."""
    p, s, q, opacity, c, v, k = (np.asarray(x, float) for x in given)
    width, height = SIZE["width"], SIZE["height"]
    t = p @ v[:3, :3].T + v[:3, 3]
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    turn = np.stack(
        [
            *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        ],
        axis=1,
    ).reshape(-1, 3, 3)
    shape = turn * s[:, None]
    focal, middle = k.diagonal()[:2], k[:2, 2]
    slope = t[:, :2] / t[:, 2:]
    centre = focal * slope + middle
    size = np.array([width, height])
    slope = np.minimum(slope, (size - middle + 0.15 * size) / focal)
    slope = np.maximum(slope, -(middle + 0.15 * size) / focal)
    lens = focal / t[:, 2:]
    slopes = lens[..., None] * (v[:2, :3] - slope[..., None] * v[2, :3])
    rows = slopes @ shape
    inverse = np.linalg.inv(rows @ rows.swapaxes(1, 2) + 0.3 * np.eye(2))
    if c.ndim == 3:
        d = p + v[:3, :3].T @ v[:3, 3]
        d /= np.linalg.norm(d, axis=1, keepdims=True)
        c = np.maximum((harmonics(d)[:, : c.shape[1], None] * c).sum(1) + 0.5, 0)
    left, picture = np.ones((height, width)), np.zeros((height, width, 3))
    going = np.ones((height, width), bool)
    pixel = np.stack(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5), axis=-1)
    for i in np.argsort(t[:, 2], kind="stable"):
        if t[i, 2] < 0.01:
            continue
        d = centre[i] - pixel
        weight = opacity[i] * np.exp(-0.5 * np.einsum("...i,ij,...j", d, inverse[i], d))
        alpha = np.where((weight >= 1 / 255) & going, np.minimum(weight, 0.99), 0)
        going &= ~((alpha > 0) & (left * (1 - alpha) <= 1e-4))
        alpha = np.where(going, alpha, 0)
        picture += (alpha * left)[..., None] * c[i]
        left = left * (1 - alpha)
    return picture + left[..., None] * BACKGROUND


@pytest.mark.parametrize("harmonics", [0, 1, 16])
def test_a_picture_is_that_of_the_plain_formula(harmonics):
    given = scene(4, 30, *SIZE.values(), harmonics)
    picture, left, dropped = reference.splat_render(*given, BACKGROUND, **SIZE, radius_scale=4.0)
    assert np.abs(picture - plain(*given)).max() < 1e-5
    assert 0 < left.min() < 0.5 and left.max() <= 1 and dropped == 0


def test_every_step_has_the_oracles_bits_and_any_order_of_splats_the_same_picture():
    given = scene(5, 40, *SIZE.values(), 9)
    points, depths, boxes = ptxgen.splat_prepare(*given, **SIZE)
    *lists, _ = ptxgen.splat_sort(depths, boxes, **SIZE)
    picture, left, stops = ptxgen.splat_rasterize(points, *lists, BACKGROUND, **SIZE)
    expected = reference.splat_render(*given, BACKGROUND, **SIZE)
    for got, one in zip((picture, left), expected[:2], strict=True):
        same_bits(got, one)
    assert stops.max() > 3
    turned = np.random.default_rng(0).permutation(40)
    again = [x[turned] for x in given[:5]]
    same_bits(ptxgen.splat_render(*again, *given[5:], BACKGROUND, **SIZE)[0], picture)


def test_gradients_are_those_of_the_plain_formula():
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    given = scene(6, 12, *SIZE.values(), 4)
    weights = np.random.default_rng(1).standard_normal((SIZE["height"], SIZE["width"], 3))
    tensors = [torch.tensor(x, requires_grad=True) for x in given[:5]]
    camera = [torch.tensor(x) for x in given[5:]]
    ground = torch.tensor(BACKGROUND, requires_grad=True)
    picture, *_ = pt.splat_render(*tensors, *camera, ground, **SIZE, radius_scale=4.0)
    (picture * torch.tensor(weights, dtype=torch.float32)).sum().backward()
    rng = np.random.default_rng(2)
    for at, name in enumerate(NAMES):
        direction, step = rng.standard_normal(given[at].shape), 1e-5
        ends = []
        for sign in (1, -1):
            moved = [np.asarray(x, float) for x in given]
            moved[at] = moved[at] + sign * step * direction
            ends.append((plain(*moved) * weights).sum())
        slope = (tensors[at].grad.numpy() * direction).sum()
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-3), name
    left = reference.splat_render(*given, **SIZE, radius_scale=4.0)[1]
    assert ground.grad.numpy() == pytest.approx((weights * left[..., None]).sum((0, 1)), rel=1e-4)


def test_two_runs_have_the_same_gradients_and_a_clip_bounds_the_pictures():
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    given = scene(7, 15, *SIZE.values())
    camera = [torch.tensor(x) for x in given[5:]]

    def gradients(dpicture, **how):
        tensors = [torch.tensor(x, requires_grad=True) for x in given[:5]]
        picture, *_ = pt.splat_render(*tensors, *camera, **SIZE, **how)
        picture.backward(dpicture)
        return [x.grad.numpy() for x in tensors]

    ones = torch.ones(SIZE["height"], SIZE["width"], 3)
    first = gradients(ones)
    assert all(np.abs(x).max() > 0 for x in first)
    for other in (gradients(ones), gradients(7 * ones, loss_grad_clip=1.0)):
        for one, two in zip(first, other, strict=True):
            same_bits(one, two)


@pytest.mark.long
@pytest.mark.torch
def test_a_fitted_scene_has_the_psnr_of_the_plain_formula_in_f64():
    """The example's fit, by ptxgen and by the formula in PyTorch, which cuts no splat off at three
    standard deviations.
    """
    torch = pytest.importorskip("torch")
    from ptxgen.bench.splats import plain

    path = Path(__file__).parents[2] / "examples" / "splats.py"
    spec = importlib.util.spec_from_file_location("fitted", path)
    example = importlib.util.module_from_spec(spec)
    sys.modules["fitted"] = example
    spec.loader.exec_module(example)

    def in_f64(splats, camera, size):
        given = [x.double() for x in splats]
        of = [*(x.double() for x in camera), torch.zeros(3, dtype=torch.float64)]
        return plain(torch, given, of, size, size).float()

    device, sizes = torch.device("cpu"), (2, 16, 20, 8)
    fits = [example.fit(torch, device, *sizes, render) for render in (example.render, in_f64)]
    ours, theirs = (fit.psnr for fit in fits)
    start = -10 * np.log10(fits[0].losses[0])
    assert ours == pytest.approx(theirs, abs=0.01) and ours > start + 0.3


# -- culling and lists --------------------------------------------------------------------------
def test_splats_behind_the_camera_or_beside_the_picture_are_culled():
    given = scene(8, 6, *SIZE.values())
    given[0][:] = [[0, 0, -3], [0, 0, -0.31], [900, 0, 4], [0, 0, 3], [0, 1e20, 4], [0, 0, 4]]
    _, depths, boxes = reference.splat_prepare(*given, **SIZE, far=3.5)
    assert np.isinf(depths).tolist() == [True, True, True, False, True, True]
    assert (boxes[:, 3] > 0).tolist() == [False, False, False, True, False, False]
    given[0][:, 2] = -1
    picture, left, _ = ptxgen.splat_render(*given, BACKGROUND, **SIZE)
    same_bits(picture, np.broadcast_to(BACKGROUND, picture.shape))
    assert (left == 1).all()
    nobody = [x[:0] for x in given[:5]]
    picture, *_ = ptxgen.splat_render(*nobody, *given[5:], BACKGROUND, **SIZE)
    same_bits(picture, np.broadcast_to(BACKGROUND, picture.shape))


def test_equal_depths_keep_the_order_of_indices():
    given = scene(9, 5, *SIZE.values())
    given[0][:] = [0, 0, 3]
    given[5][:] = np.eye(4)
    *_, order, _ = reference.splat_sort(*reference.splat_prepare(*given, **SIZE)[1:], **SIZE)
    assert order.tolist() == [0, 1, 2, 3, 4]


def test_scales_are_raised_to_the_largest_anisotropy_and_bands_are_left_out():
    given = scene(10, 8, *SIZE.values(), 16)
    raised = [x.copy() for x in given]
    raised[1] = np.maximum(raised[1], raised[1].max(1, keepdims=True) * np.float32(0.5))
    one = reference.splat_prepare(*given, **SIZE, max_anisotropy=2.0)
    for got, expected in zip(one, reference.splat_prepare(*raised, **SIZE), strict=True):
        assert np.array_equal(got, expected)
    raised[4] = given[4][:, :4]
    two = reference.splat_prepare(*given, **SIZE, max_anisotropy=2.0, sh_band=1)
    same_bits(two[0], reference.splat_prepare(*raised, **SIZE)[0])


def test_a_list_that_is_too_short_is_refused_or_drops_the_farthest():
    given = scene(11, 30, *SIZE.values())
    how = {**SIZE, "max_list_entries": 40}
    with pytest.raises(OptionError, match="max_list_entries is 40; the splats have"):
        ptxgen.splat_render(*given, **how)
    picture, _, dropped = ptxgen.splat_render(*given, **how, overflow="drop")
    _, depths, boxes = reference.splat_prepare(*given, **SIZE)
    order = np.argsort(depths, kind="stable")
    assert dropped == boxes[:, 3].sum() - 40 and np.isfinite(picture).all()
    whole = order[: np.searchsorted(boxes[order, 3].cumsum(), 40, side="right")]
    near = [x[whole] for x in given[:5]]
    nearest = ptxgen.splat_render(*near, *given[5:], **SIZE)[0]
    assert (picture == nearest).all(2).mean() > 0.5  # tiles that lost no splat


def test_a_list_that_is_too_short_is_refused_with_gradients_too():
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("ptxgen.torch")
    given = [torch.tensor(x) for x in scene(11, 30, *SIZE.values())]
    given[0].requires_grad_()
    _, _, dropped = reference.splat_render(
        *(x.detach().numpy() for x in given), **SIZE, max_list_entries=40, overflow="drop"
    )
    with pytest.raises(OptionError, match=f"is 40; the splats have {40 + dropped} tiles"):
        pt.splat_render(*given, **SIZE, max_list_entries=40)


def test_what_bad_input_gets():
    given = scene(12, 4, *SIZE.values())
    lost = given[0].copy()
    lost[2, 1] = np.nan
    for at, wrong, error, text in (
        (0, lost, OptionError, "positions has a number that is not finite"),
        (0, given[0][:3], ShapeError, r"scales has shape \[4, 3\]; takes \[3, 3\]"),
        (1, given[1].astype("f8"), DtypeError, "scales has dtype float64; takes float32"),
        (2, given[2][:, :3], ShapeError, r"rotations has shape \[4, 3\]"),
        (4, np.zeros((4, 5, 3), "f4"), ShapeError, "K one of 1, 4, 9, 16"),
        (5, given[5][:3], ShapeError, r"view has shape \[3, 4\]"),
    ):
        called = [*given[:at], wrong, *given[at + 1 :]]
        with pytest.raises(error, match=text):
            ptxgen.splat_render(*called, **SIZE)
    with pytest.raises(OptionError, match="tile_size is 12; takes 8 or 16"):
        ptxgen.splat_render(*given, **SIZE, tile_size=12)
    with pytest.raises(ShapeError, match=r"background has shape \[4\]; takes \[3\]"):
        ptxgen.splat_render(*given, np.zeros(4, "f4"), **SIZE)
