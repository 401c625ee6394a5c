"""``ptxgen bench splats``: pictures of random scenes of Gaussian splats, and their gradients.

The peer is gsplat if it is installed, else the formula in PyTorch, for all pairs of a splat and a
pixel (:func:`plain`). Boxes of splats reach to 3.33 standard deviations, as gsplat's do, and lists
have a tenth more entries than the scene needs. Each entry of :data:`OPERATIONS` draws cases of one
operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from random import Random
from typing import Any

from ptxgen.bench import draw
from ptxgen.bench.opcase import (
    DrawnArea,
    OpArea,
    OpCase,
    Timing,
    Work,
    device_of,
    medians,
    with_gradients,
)
from ptxgen.bench.results import Sample
from ptxgen.bench.runner import QUICK
from ptxgen.ui import note, plural

MOST_PAIRS, PLAIN_PAIRS = 1 << 36, 1 << 33
"""Most pairs of a splat and a pixel (scenes with more are drawn again), and most beside
:func:`plain`."""
PAIRS_AT_ONCE = 1 << 26
"""Pairs of a splat and a pixel that :func:`plain` computes at a time."""
RADIUS = 10 / 3
"""Radius of boxes in standard deviations, beyond which no opacity reaches the cutoff 1/255."""
CLOSE = 2.0**-7
"""Maximum L2 distance of pictures, and of gradients, relative to the peer's norm."""
CUTOFF, LARGEST, LEAST_LEFT, BLUR, NEAR = 1 / 255, 0.99, 1e-4, 0.3, 0.01
"""Constants of both sides' formulas: least and largest opacity at a pixel, transmittance at which a
pixel is done, variance that is added (pixels squared), and depth of the near plane."""


@dataclass(frozen=True)
class SplatTiming(Timing):
    """Times of a scene; ``peer``: the name of the peer."""

    peer: str = ""


# -- the formula in PyTorch -----------------------------------------------------------------
def harmonics(torch: Any, d: Any) -> Any:
    """Returns real spherical harmonics up to degree 3 of unit vectors, [N, 16]."""
    x, y, z = d.unbind(-1)
    xx, yy, zz = x * x, y * y, z * z
    band = (
        torch.full_like(x, math.sqrt(1 / (4 * math.pi))),
        *(-y, z, -x),
        *(x * y, -y * z, 2 * zz - xx - yy, -x * z, xx - yy),
        *(-y * (3 * xx - yy), x * y * z, -y * (4 * zz - xx - yy)),
        *(z * (2 * zz - 3 * xx - 3 * yy), -x * (4 * zz - xx - yy)),
        *(z * (xx - yy), -x * (xx - 3 * yy)),
    )
    of = [1.0, *[math.sqrt(3 / (4 * math.pi))] * 3]
    of += [math.sqrt(n / math.pi) / 4 for n in (60, 60, 5, 60, 15)]
    of += [math.sqrt(n / math.pi) / 8 for n in (70, 1680, 42, 28, 42, 420, 70)]
    return torch.stack(band, -1) * torch.tensor(of, dtype=d.dtype, device=d.device)


def projected(
    torch: Any, splats: Sequence[Any], view: Any, lens: Any, width: int, height: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Projects splats; returns depths [N], centres [N, 2], inverse covariances [N, 3] (xx, xy, yy),
    opacities [N] (0 before the near plane) and colours [N, 3].

    ``splats``: as in :func:`plain`.
    """
    positions, scales, rotations, opacities, colours = splats
    t = positions @ view[:3, :3].T + view[:3, 3]
    depth = t[:, 2]
    seen = depth > NEAR
    z = depth.where(seen, 1.0)[:, None]
    w, *q = torch.nn.functional.normalize(rotations, dim=-1).unbind(-1)
    x, y, k = q
    turn = torch.stack(
        (
            *(1 - 2 * (y * y + k * k), 2 * (x * y - w * k), 2 * (x * k + w * y)),
            *(2 * (x * y + w * k), 1 - 2 * (x * x + k * k), 2 * (y * k - w * x)),
            *(2 * (x * k - w * y), 2 * (y * k + w * x), 1 - 2 * (x * x + y * y)),
        ),
        -1,
    ).view(-1, 3, 3)
    focal, middle = lens.diagonal()[:2], lens[:2, 2]
    size = lens.new_tensor([width, height])
    slope = t[:, :2] / z
    centre = focal * slope + middle
    high, low = (size - middle + 0.15 * size) / focal, -(middle + 0.15 * size) / focal
    slope = torch.minimum(torch.maximum(slope, low), high)
    rows = (focal / z)[..., None] * (view[:2, :3] - slope[..., None] * view[2, :3])
    rows = rows @ (turn * scales[:, None])
    xx, xy, yy = ((rows[:, i] * rows[:, j]).sum(-1) for i, j in ((0, 0), (0, 1), (1, 1)))
    xx, yy = xx + BLUR, yy + BLUR
    inverse = torch.stack((yy, -xy, xx), -1) / (xx * yy - xy * xy)[:, None]
    if colours.ndim == 3:
        towards = torch.nn.functional.normalize(positions + view[:3, :3].T @ view[:3, 3], dim=-1)
        basis = harmonics(torch, towards)[:, : colours.shape[1], None]
        colours = ((basis * colours).sum(1) + 0.5).clamp(min=0)
    return depth, centre, inverse, opacities * seen, colours


def plain(torch: Any, splats: Sequence[Any], camera: Sequence[Any], width: int, height: int) -> Any:
    """Draws a scene by the formula, in the dtype of the splats; returns a picture [H, W, 3].

    ``splats``: positions, scales, rotations, opacities, colours or coefficients of harmonics;
    ``camera``: view, intrinsics, background. Blocks of pixels are computed again in a backward
    pass, so that memory suffices.
    """
    view, lens, ground = camera
    depth, *parts = projected(torch, splats, view, lens, width, height)
    centre, inverse, opacity, colours = (x[depth.argsort(stable=True)] for x in parts)

    def pixels(at: Any) -> Any:
        dx, dy = (centre - at[:, None]).unbind(-1)
        a, b, c = inverse.unbind(-1)
        alpha = opacity * torch.exp(-0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy)
        alpha = alpha.clamp(max=LARGEST).where(alpha >= CUTOFF, 0.0)
        after = torch.log1p(-alpha).cumsum(-1).exp()  # the gradient of cumprod waits for the host
        before = torch.cat((torch.ones_like(after[:, :1]), after[:, :-1]), -1)
        weight = (alpha * before).where(after > LEAST_LEFT, 0.0)
        return weight @ colours + (1 - weight.sum(-1, keepdim=True)) * ground

    places = torch.cartesian_prod(*(torch.arange(n, device=centre.device) for n in (height, width)))
    at = (places.flip(-1) + 0.5).to(centre.dtype)
    blocks = at.split(max(1, PAIRS_AT_ONCE // max(len(centre), 1)))
    checkpoint = torch.utils.checkpoint.checkpoint
    drawn = [checkpoint(pixels, block, use_reentrant=False) for block in blocks]
    return torch.cat(drawn).view(height, width, 3)


# -- cases ----------------------------------------------------------------------------------
def gsplat() -> Any:
    """Returns the module gsplat, None if it is not installed."""
    try:
        return import_module("gsplat")
    except ModuleNotFoundError:
        return None


def gsplat_picture(
    module: Any, splats: Sequence[Any], camera: Sequence[Any], width: int, height: int
) -> Any:
    """Draws a scene by gsplat; arguments as those of :func:`plain`."""
    positions, scales, rotations, opacities, colours = splats
    view, lens, ground = camera
    picture, _, _ = module.rasterization(
        *(positions, rotations, scales, opacities, colours, view[None], lens[None]),
        *(width, height),
        sh_degree=math.isqrt(colours.shape[1]) - 1 if colours.ndim == 3 else None,
        packed=False,
        backgrounds=ground[None],
    )
    return picture[0]


def scene(torch: Any, count: int, bands: int, width: int, height: int) -> list[Any]:
    """Returns random splats before a camera, and the camera: positions, scales, rotations,
    opacities, coefficients of ``bands`` harmonics (0: colours), view, intrinsics and background.
    """
    device = device_of(torch)
    wide = width / height
    spread = torch.tensor([2.2 * max(wide, 1), 2.2 / min(wide, 1), 1.0], device=device)
    ahead = torch.tensor([0.0, 0.0, 4.0], device=device)
    positions = (2 * torch.rand(count, 3, device=device) - 1) * spread + ahead
    # A splat's size falls with their number, so that a pixel sees tens of them.
    scales = torch.exp(torch.randn(count, 3, device=device) * 0.5) * (4.7 / math.sqrt(count))
    rotations = torch.randn(count, 4, device=device)
    # gsplat caps the opacity at a pixel at 0.999, ptxgen at LARGEST: no splat reaches either.
    opacities = torch.rand(count, device=device) * 0.85 + 0.1
    colours = torch.rand(count, 3, device=device)
    if bands:
        colours = torch.randn(count, bands, 3, device=device) * 0.2
    focal = 0.88 * min(width, height)
    lens = torch.tensor([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1]], device=device)
    view, ground = torch.eye(4, device=device), torch.zeros(3, device=device)
    return [positions, scales, rotations, opacities, colours, view, lens, ground]


def close(ours: Any, theirs: Any) -> bool:
    """Returns whether each tensor is within :data:`CLOSE` of the peer's."""
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    return all(bool((a - b).norm() <= CLOSE * b.norm()) for a, b in pairs)


@dataclass(frozen=True)
class Scene(OpCase):
    """A case of a scene; ``pairs``: number of pairs of a splat and a pixel."""

    pairs: int = 0


def scene_case(count: int, bands: int, width: int, height: int, backward: bool = False) -> Scene:
    """Returns a case of rendering a scene, alone or with the gradients of all splats."""

    def make(torch: Any) -> Work:
        import ptxgen.torch as of

        given = scene(torch, count, bands, width, height)
        camera, size = given[5:], {"width": width, "height": height}
        size_of: dict[str, Any] = {**size, "radius_scale": RADIUS}
        with torch.no_grad():
            boxes = of.splat_prepare(*given[:-1], **size_of)[2]
        entries = max(1, int(1.1 * int(boxes[:, 3].sum())))

        def ours(*splats: Any) -> Any:
            return of.splat_render(*splats, *camera, **size_of, max_list_entries=entries)[0]

        module = gsplat()
        theirs = partial(gsplat_picture, module) if module else partial(plain, torch)

        def stock(*splats: Any) -> Any:
            return theirs(splats, camera, width, height)

        if backward:
            dpicture = torch.randn(height, width, 3, device=boxes.device)
            made = with_gradients(torch, dpicture, given[:5], ours, stock)
            return made._replace(agree=close)
        return Work(tuple(given[:5]), ours, stock, compiled=False, agree=close)

    name = f"render{' + backward' if backward else ''}"
    numbers = count * (11 + 3 * max(bands, 1)) * (1 + 2 * backward) + 3 * width * height
    sizes, pairs = f"{count} sh{bands} {width}x{height}", count * width * height
    return Scene(name, sizes, 4 * numbers, make, pairs)


def _drawn(random: Random, *, backward: bool = False) -> Scene:
    while True:
        count = draw.integer(random, 1 << 10, 1 << 18)
        width, height = (draw.integer(random, 128, 1024, 8) for _ in "wh")
        bands = int(random.choice((0, 1, 4, 9, 16)))
        found = scene_case(count, bands, width, height, backward)
        if found.pairs <= MOST_PAIRS:
            return found


def _backward(random: Random) -> Scene:
    return _drawn(random, backward=True)


OPERATIONS: Mapping[str, Callable[[Random], OpCase]] = {
    "render": _drawn,
    "render + backward": _backward,
}
"""Functions that draw a random case, by name of the case."""


class Splats(DrawnArea):
    """Benchmark ``ptxgen bench splats``: random scenes, against gsplat or the plain formula."""

    name = "splats"
    about = (
        "Times pictures of Gaussian splats, and their gradients, beside gsplat, or beside the "
        "formula in PyTorch if gsplat is not installed, in one run, with a cold L2, after "
        "comparing results; medians in µs. limit = bytes / 4.3 TB/s, each number once."
    )
    row = SplatTiming
    effort = QUICK  # the formula takes long
    operations = OPERATIONS
    columns = (
        *((h.replace("eager", "peer"), c) for h, c in OpArea.columns if h != "compile"),
        ("peer is", "peer"),
    )

    def cases(self) -> list[OpCase]:
        """Returns the drawn scenes; without gsplat those for which the formula is fast enough."""
        drawn = super().cases()
        if gsplat() is not None:
            return drawn
        few: list[OpCase] = [
            case for case in drawn if isinstance(case, Scene) and case.pairs <= PLAIN_PAIRS
        ]
        if left := len(drawn) - len(few):
            note(f"{plural(left, 'scene')} left out: too large for the formula; gsplat draws them")
        return few

    def found(self, case: OpCase, times: Mapping[str, Sample]) -> Iterator[SplatTiming]:
        peer = "gsplat" if gsplat() else "PyTorch"
        row = case.name, case.sizes, case.nbytes, case.limit_us, *medians(times)
        yield SplatTiming(*row, peer)


main, _parser = Splats.main, Splats.parser
