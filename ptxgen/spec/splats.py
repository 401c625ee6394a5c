"""Gaussian splats, contract ``splat/1``: lists of tiles, pictures and their gradients.

=================  ==============================================================
``COUNT``          number of splats
``ENTRIES``        length of the list of pairs (tile, splat)
``WIDTH, HEIGHT``  size of the picture, in pixels
``TILE``           edge of a tile, in pixels
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: ``ACROSS`` and ``DOWN``, tiles of the picture; ``CUTOFF`` and
``THRESHOLD``, the least opacity and transmittance; ``MOST``, the most splats of a pixel.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import TRUE, Expr, ceil_div, var
from ptxgen.numerics import ex2, splats
from ptxgen.numerics.contract import Contract
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, SCRATCH_MAX, Expect, KernelSpec
from ptxgen.spec.space import SMS_MAX, Between, OneOf, Space

COUNT, ENTRIES, TILE = var("COUNT"), var("ENTRIES"), var("TILE")
WIDTH, HEIGHT = var("WIDTH"), var("HEIGHT")
COUNT_MAX = 1 << 27
"""Most splats of a picture."""
ENTRIES_MAX = SCRATCH_MAX // (4 * splats.WIDTH)
"""Most pairs (tile, splat): their gradients are one scratch array."""
EDGE_MAX = 1 << 15
"""Most pixels of a picture's edge."""
_SMS = ("SMS", Between(1, SMS_MAX))
_SPLATS = (("COUNT", Between(1, COUNT_MAX)), ("ENTRIES", Between(1, ENTRIES_MAX)))
_PICTURE = tuple((name, Between(1, EDGE_MAX)) for name in ("WIDTH", "HEIGHT"))
LISTS = Space("splat_entries", (*_SPLATS, _SMS))
PICTURES = Space("splat_raster", (*_SPLATS, *_PICTURE, ("TILE", OneOf(splats.TILES)), _SMS))
PARTS = ("entries", "raster", "gradient", "sums")


@dataclass(frozen=True)
class SplatSpec(KernelSpec):
    """A kernel of one step of Gaussian splatting.

    ``part``: "entries" (a thread finds the tile and the splat of an entry), "raster" (a CTA draws a
    tile), "gradient" (a CTA computes the gradients of a tile's entries) or "sums" (a thread adds
    the entries of a number of a splat). ``tile``: edge of a tile in pixels, 0 in "entries" and
    "sums".
    """

    part: str
    tile: int = 0
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = splats.SPLAT

    family: ClassVar[str] = "splats"
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "step: entries, raster, gradient or sums",
        "tile": "edge of a tile, in pixels",
    }

    def __post_init__(self) -> None:
        tiles = splats.TILES if self.part in ("raster", "gradient") else (0,)
        self.check_choices(part=PARTS, tile=tiles, dtype=("f32",), min_arch=ARCHITECTURES)

    @property
    def template(self) -> str:  # type: ignore[override]
        return f"splats/{self.part}.cu.j2"

    @property
    def label(self) -> str:
        return f"{self.part}_{self.dtype}{f'_{self.tile}' if self.tile else ''}"

    @property
    def threads(self) -> int:
        return self.tile**2 or 256

    @property
    def context(self) -> Mapping[str, Any]:
        ln2 = struct.unpack("f", struct.pack("f", splats.LN2))[0]
        numbers = {"ALPHA_MAX": splats.ALPHA_MAX, "LN2": ln2}
        return MappingProxyType({"splats": {**vars(splats), **numbers}})

    @property
    def waits(self) -> bool:
        return True

    @property
    def expects(self) -> tuple[Expect, ...]:
        powers = (Expect(ex2.INSTRUCTION, ("ex2.*",)),) if self.tile else ()
        return (*powers, *super().expects)

    @property
    def abi(self) -> Abi:
        floats, ints, longs = (f"const {t}* __restrict__" for t in ("float", "int", "long long"))
        sizes = Param("width", "u32"), Param("height", "u32"), Param("entries", "u32")
        given: tuple[Param, ...]
        counts: tuple[Param, ...] = (Param("count", "u32"), Param("entries", "u32"))
        if self.part == "entries":
            given = ptr("boxes", ints), ptr("ends", longs), ptr("order", longs)
            made = ptr("tiles", "int*"), ptr("splats", "int*")
            return Abi((*given, *made, *counts, Param("across", "u32"), Param("down", "u32")))
        if self.part == "sums":
            given = ptr("parts", floats), ptr("ends", longs), ptr("order", longs)
            return Abi((*given, ptr("dpoints", "float*"), *counts))
        lists = ptr("points", floats), ptr("tiles", ints), ptr("splats", ints)
        cutoff = Param("cutoff", "f32")
        if self.part == "raster":
            given = ptr("background", floats), ptr("picture", "float*"), ptr("left", "float*")
            last = ptr("stops", "int*"), *sizes, Param("most", "u32"), cutoff
            return Abi((*lists, *given, *last, Param("threshold", "f32")))
        given = (
            *(ptr("places", longs), ptr("background", floats), ptr("left", floats)),
            *(ptr("stops", ints), ptr("dpicture", floats), ptr("dleft", floats, optional=True)),
        )
        return Abi((*lists, *given, ptr("parts", "float*"), *sizes, cutoff))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        if self.part in ("gradient", "sums"):
            return {"parts": ENTRIES * (4 * splats.WIDTH)}
        return {}

    @property
    def grid(self) -> Expr:
        if self.part == "entries":
            return ceil_div(ENTRIES, self.threads)
        if self.part == "sums":
            return ceil_div(COUNT * splats.WIDTH, self.threads)
        return ceil_div(WIDTH, self.tile) * ceil_div(HEIGHT, self.tile)

    @property
    def requires(self) -> Expr:
        return TILE.eq(self.tile) if self.tile else TRUE

    def roofline(self, dtype: object) -> Roofline:
        return Roofline()

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        if self.part == "entries":
            return (("e", ENTRIES + self.threads, INDEX_MAX),)
        if self.part == "sums":
            return (("e", COUNT * splats.WIDTH + self.threads, INDEX_MAX),)
        return (
            ("(last - first) * WIDTH", ENTRIES * splats.WIDTH + self.threads, INDEX_MAX),
            ("row", WIDTH + HEIGHT + 2 * self.tile, INDEX_MAX),
        )

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: CTAs {self.grid} of {self.threads} threads",
        )
