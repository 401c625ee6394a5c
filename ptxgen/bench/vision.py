"""``ptxgen bench vision``: unmodified models of ``timm``, stock and in ``batch_invariant()``.

Each model has random weights and runs forward passes of eight images, stock and in
:class:`ptxgen.torch.batch_invariant` alternately. A pass begins with an idle GPU and is timed on
the host until the GPU is done. Results of a batch of two images are compared bit for bit with those
of the batch of eight.
"""

from __future__ import annotations

import random
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from ptxgen import arguments
from ptxgen.bench import measure, results
from ptxgen.bench.runner import Area, add_list
from ptxgen.ui import emit, missing, note

MODELS = (
    *("nfnet_l0", "poolformer_s12", "efficientnet_b0", "dpn68", "inception_v3", "vgg11_bn"),
    *("fastvit_t8", "resnet18", "resnet50", "convnext_tiny", "vit_tiny_patch16_224"),
    *("vit_small_patch16_224", "swin_tiny_patch4_window7_224", "mobilenetv3_large_100"),
    *("regnety_008", "densenet121", "mixer_s16_224", "deit_tiny_patch16_224", "repvgg_a2"),
    *("ghostnet_100", "coat_lite_tiny", "pvt_v2_b0", "levit_128", "xcit_tiny_12_p16_224"),
    *("maxvit_tiny_tf_224", "coatnet_0_rw_224", "edgenext_small", "hrnet_w18"),
    *("resnext50_32x4d", "seresnet50", "darknet53", "tresnet_m"),
)
"""Names of ``timm`` models, one of each of 32 families."""
BATCH, TURNS, PASSES = 8, 6, 4
LARGEST = 60_000_000
"""Maximum parameters of a random model."""


@dataclass(frozen=True)
class Row:
    """Times, operators and bit comparison of one model.

    ``block_ms``, ``stock_ms``: median times of a forward pass in ``batch_invariant()`` and stock;
    ``block_host_ms``, ``stock_host_ms``: median times until the host has issued it. ``served``:
    number of operator calls of a pass that ptxgen computed; ``unknown``: counts of operators that
    the block does not know; ``same``: whether images have the same bits in another batch.
    """

    model: str
    block_ms: float
    stock_ms: float
    block_host_ms: float
    stock_host_ms: float
    served: int
    unknown: Mapping[str, int] = field(default_factory=dict)
    same: bool = True

    ratio = results.quotient("block_ms", "stock_ms")

    @property
    def names(self) -> str:
        """Names of the operators in ``unknown``, separated by commas."""
        return ", ".join(self.unknown) or "-"


def drawn(timm: Any, torch: Any, count: int, seed: int) -> list[str]:
    """Draws the names of ``count`` models, each of a family that :data:`MODELS` lacks."""
    choose = random.Random(seed)
    families = sorted(timm.list_modules())
    choose.shuffle(families)
    found: list[str] = []
    for family in families:
        names = timm.list_models(module=family)
        if not names or not set(MODELS).isdisjoint(names):
            continue
        name = choose.choice(names)
        with torch.device("meta"):
            size = sum(p.numel() for p in timm.create_model(name, pretrained=False).parameters())
        if size <= LARGEST:
            found.append(name)
        if len(found) == count:
            break
    return found


class Vision(Area):
    """Benchmark ``ptxgen bench vision``: forward passes of ``timm`` models in ``batch_invariant()``
    and stock. Cases are names of models.
    """

    name = "vision"
    about = (
        "Times forward passes of models of timm, eight images each, stock and in "
        "batch_invariant(), after comparing rows with those of another batch."
    )
    row = Row
    columns = (
        *(("model", "model"), ("block ms", "block_ms:.2f"), ("stock ms", "stock_ms:.2f")),
        *(("/ stock", "ratio:.3f"), ("host ms", "block_host_ms:.2f")),
        *(("stock host ms", "stock_host_ms:.2f"), ("served", "served"), ("unknown", "names")),
        ("same bits", "same"),
    )
    tier = "tc"

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        named = "names of timm (one of each of 32 families)"
        add_list(parser, "--models --only", named, default=[*MODELS])
        parser.add_argument(
            "--random",
            "--draw",
            type=int,
            metavar="COUNT",
            help="models of so many other families, which --seed draws",
        )
        arguments.add_seed(parser)
        arguments.add_dtype(parser, ("bf16", "f16", "f32"))

    def cases(self) -> list[str]:
        try:
            import timm
        except ModuleNotFoundError as error:
            raise missing("the benchmark", error) from error
        self.timm = timm
        names: list[str] = self.options.models
        return names

    def timed(self, selected: Sequence[str]) -> Iterator[Row]:
        if self.options.random:
            selected = drawn(self.timm, self.torch, self.options.random, self.seed)
        yield from super().timed(selected)

    def rows(self, case: str) -> Iterator[Row]:
        row = self.measured(case, 2 if self.options.quick else TURNS)
        note(f"{row.model}: {row.ratio:.3f}")
        yield row

    def measured(self, name: str, turns: int) -> Row:
        """Compares a model's bits in batches of two and eight images, then times its forward pass
        in ``batch_invariant()`` and stock, in ``turns`` alternating rounds.
        """
        from ptxgen.torch import batch_invariant

        torch, dtype = self.torch, measure.torch_dtype(self.torch, self.options.dtype)
        torch.manual_seed(0)
        with torch.device(self.device):
            model = self.timm.create_model(name, pretrained=False).eval().to(dtype)
            images = torch.randn(BATCH, *model.default_cfg["input_size"]).to(dtype)
        variants = {"stock": nullcontext, "block": batch_invariant}

        def turn(entered: Callable[[], Any]) -> list[tuple[float, float]]:
            with entered():
                model(images)
                return [self._pass(model, images) for _ in range(PASSES)]

        with torch.no_grad():
            with batch_invariant() as block:
                whole, two = model(images), model(images[1:3])
            taken = measure.alternate({way: partial(turn, w) for way, w in variants.items()}, turns)
        ms = {
            way: [statistics.median(x) for x in zip(*chain(*said), strict=True)]
            for way, said in taken.items()
        }
        report = block.report()
        return Row(
            name,
            block_ms=ms["block"][1],
            stock_ms=ms["stock"][1],
            block_host_ms=ms["block"][0],
            stock_host_ms=ms["stock"][0],
            served=sum(report.served.values()) // 2,
            unknown=dict(report.unknown),
            same=bool(torch.equal(whole[1:3], two)),
        )

    def _pass(self, model: Callable[[Any], Any], images: Any) -> tuple[float, float]:
        """Runs a forward pass; returns the ms until the host has issued it and until it is done."""
        self._wait()
        begun = time.perf_counter()
        model(images)
        issued = time.perf_counter()
        self._wait()
        return 1e3 * (issued - begun), 1e3 * (time.perf_counter() - begun)

    def _wait(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def show(self, rows: Sequence[Row], runs: Sequence[results.Environment]) -> None:
        super().show(rows, runs)
        emit(summary(rows))

    def status(self, rows: Sequence[Row]) -> int:
        """Returns 1 if some image's result depends on the batch, else 0."""
        return int(not all(row.same for row in rows))


def summary(rows: Sequence[Row]) -> str:
    """Returns a line with geometric mean, 90th percentile and maximum of block / stock time."""
    ratios = sorted((r.ratio for r in rows), reverse=True)
    mean, tenth = results.geomean(ratios), ratios[len(ratios) // 10]
    return (
        f"{len(rows)} models, time ratio block / stock: geometric mean {mean:.3f}, a tenth above "
        f"{tenth:.3f}, worst {ratios[0]:.3f}"
    )


main, _parser = Vision.main, Vision.parser
