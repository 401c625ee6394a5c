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
from pathlib import Path
from typing import Any


def main(argv: list[str] | None = None) -> int:
    """Prints the loss and a digest of both runs' splats; returns 1 if a bit differs."""
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
    size, count, steps = (160, 800, 400) if fast else (16, 20, 3)
    runs = [fit(torch, device, size, count, steps) for _ in range(2)]
    for losses, digest, _ in runs:
        print(f"{count} splats, {steps} steps: loss {losses[0]:.5f} -> {losses[-1]:.5f}, {digest}")
    same = runs[0][:2] == runs[1][:2]
    print(f"{'identical' if same else 'DIFFERENT'} losses and splats in both runs")
    if chosen.pictures:
        draw(chosen.pictures, *runs[0][2], runs[0][0])
    return int(not same)


def cameras(torch: Any, device: Any, size: int, count: int = 6) -> list[tuple[Any, Any]]:
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
    torch: Any, device: Any, size: int, count: int, steps: int
) -> tuple[list[float], str, list[Any]]:
    """Fits splats to pictures of the ring; returns the losses, a digest of the splats, and the
    first camera's pictures: asked, before and after.
    """
    import ptxgen.torch

    of, seen_from = {"width": size, "height": size}, cameras(torch, device, size)

    def render(splats: list[Any], camera: tuple[Any, Any]) -> Any:
        return ptxgen.torch.splat_render(*splats, *camera, **of)[0]

    with torch.no_grad():
        asked = [render(ring(torch, device), camera) for camera in seen_from]
    torch.manual_seed(0)
    start = [torch.randn(count, 3) * 0.7, torch.full((count, 3), math.log(0.08))]
    start += [torch.randn(count, 4), torch.full((count,), -1.0), torch.zeros(count, 3)]
    leaves = [x.to(device).requires_grad_() for x in start]

    def splats() -> list[Any]:
        positions, scales, rotations, opacities, colours = leaves
        return [positions, scales.exp(), rotations, opacities.sigmoid(), colours.sigmoid()]

    with torch.no_grad():
        before = render(splats(), seen_from[0])
    optimizer = torch.optim.Adam(leaves, lr=0.02)
    losses = []
    for step in range(steps):
        camera = step % len(seen_from)
        loss = (render(splats(), seen_from[camera]) - asked[camera]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        after = render(splats(), seen_from[0])
    bits = b"".join(x.detach().cpu().numpy().tobytes() for x in leaves)
    pictures = [x.clamp(0, 1).cpu().numpy() for x in (asked[0], before, after)]
    return torch.stack(losses).tolist(), hashlib.sha256(bits).hexdigest()[:16], pictures


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
