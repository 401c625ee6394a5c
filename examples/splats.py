"""Fits Gaussian splats to pictures of a scene, twice, to identical splats.

The scene is a ring of coloured splats, seen from several cameras. Other splats start at random and
learn its pictures. Loss and splats of both runs are compared bit for bit. Needs PyTorch.

python examples/splats.py                 # on the CPU device with a few splats, without a GPU
python examples/splats.py --pictures DIR  # writes splats.png there
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


def main(argv: list[str] | None = None) -> int:
    """Prints loss, PSNR and a digest of both runs' splats; returns 1 if a bit differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="write pictures to DIR")
    chosen = parser.parse_args(argv)
    try:
        import torch
    except ModuleNotFoundError:
        print("This example needs PyTorch; there is nothing to show without.")
        return 0
    fast = torch.cuda.is_available()
    device = torch.device("cuda" if fast else "cpu")
    views, size, count, steps = (6, 160, 800, 400) if fast else (2, 16, 20, 3)
    runs = [fit(torch, device, views, size, count, steps, render) for _ in range(2)]
    for made in runs:
        print(
            f"{count} splats, {steps} steps: loss {made.losses[0]:.5f} -> {made.losses[-1]:.5f}, "
            f"PSNR {made.psnr:.2f} dB, {made.digest}"
        )
    same = runs[0][:3] == runs[1][:3]  # losses, PSNR, digest
    print(f"{'identical' if same else 'DIFFERENT'} losses and splats in both runs")
    if chosen.pictures:
        draw(chosen.pictures, *runs[0].pictures, runs[0].losses)
    return int(not same)


class Fit(NamedTuple):
    """Losses of all steps; PSNR of all pictures after the last, in dB; digest of the splats; and
    the first camera's pictures: asked, before and after.
    """

    losses: list[float]
    psnr: float
    digest: str
    pictures: list[Any]


def render(splats: list[Any], camera: tuple[Any, Any], size: int) -> Any:
    """Returns the picture of a camera, [size, size, 3]."""
    import ptxgen.torch

    return ptxgen.torch.splat_render(*splats, *camera, width=size, height=size)[0]


def cameras(torch: Any, device: Any, size: int, count: int) -> list[tuple[Any, Any]]:
    """Returns views and intrinsics of cameras around the scene, which look at its middle."""
    lens = [[1.1 * size, 0, size / 2], [0, 1.1 * size, size / 2], [0, 0, 1]]
    found = []
    for i in range(count):
        c, s = math.cos(2 * math.pi * i / count), math.sin(2 * math.pi * i / count)
        view = [[c, 0, s, 0], [0, 1, 0, 0], [-s, 0, c, 4.0], [0, 0, 0, 1]]
        found.append(tuple(torch.tensor(x, device=device) for x in (view, lens)))
    return found


def ring(torch: Any, device: Any, count: int = 240) -> list[Any]:
    """Returns the splats of a ring that winds around itself, in all colours."""
    t = torch.arange(count) * (2 * math.pi / count)
    radius = 1 + 0.35 * torch.cos(5 * t)
    positions = torch.stack(
        [radius * torch.cos(t), 0.5 * torch.sin(5 * t), radius * torch.sin(t)], 1
    )
    scales = torch.full((count, 3), 0.09)
    rotations = torch.tensor([1.0, 0, 0, 0]).repeat(count, 1)
    colours = torch.stack([0.5 + 0.5 * torch.cos(t + k) for k in (0, 2, 4)], 1)
    opacities = torch.full((count,), 0.9)
    return [x.to(device) for x in (positions, scales, rotations, opacities, colours)]


def fit(
    torch: Any,
    device: Any,
    views: int,
    size: int,
    count: int,
    steps: int,
    render: Callable[[list[Any], tuple[Any, Any], int], Any],
) -> Fit:
    """Fits ``count`` splats to pictures of the ring from ``views`` cameras, both drawn by
    ``render``.
    """
    seen_from, scene = cameras(torch, device, size, views), ring(torch, device)
    torch.manual_seed(0)
    start = [torch.randn(count, 3) * 0.7, torch.full((count, 3), math.log(0.08))]
    start += [torch.randn(count, 4), torch.full((count,), -1.0), torch.zeros(count, 3)]
    leaves = [x.to(device).requires_grad_() for x in start]

    def splats() -> list[Any]:
        positions, scales, rotations, opacities, colours = leaves
        return [positions, scales.exp(), rotations, opacities.sigmoid(), colours.sigmoid()]

    def pictures(of: list[Any], count: int = views) -> Any:
        with torch.no_grad():
            return torch.stack([render(of, camera, size) for camera in seen_from[:count]])

    asked, before = pictures(scene), pictures(splats(), 1)
    optimizer = torch.optim.Adam(leaves, lr=0.02)
    losses = []
    for step in range(steps):
        camera = step % len(seen_from)
        loss = (render(splats(), seen_from[camera], size) - asked[camera]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    after = pictures(splats())
    error = (after.clamp(0, 1) - asked).square().mean()
    bits = b"".join(x.detach().cpu().numpy().tobytes() for x in leaves)
    return Fit(
        torch.stack(losses).tolist(),
        float(-10 * error.log10()),
        hashlib.sha256(bits).hexdigest()[:16],
        [x[0].clamp(0, 1).cpu().numpy() for x in (asked, before, after)],
    )


def draw(folder: Path, asked: Any, before: Any, after: Any, losses: list[float]) -> None:
    """Writes the pictures and the loss."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 4, figsize=(12, 3), layout="constrained")
    for axis, picture, title in zip(
        axes, (asked, before, after), ("asked", "before", "after"), strict=False
    ):
        axis.imshow(picture)
        axis.set_title(title)
        axis.axis("off")
    axes[3].semilogy(losses)
    axes[3].set_title("loss")
    axes[3].set_xlabel("step")
    figure.savefig(folder / "splats.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
