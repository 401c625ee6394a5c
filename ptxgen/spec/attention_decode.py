"""Attention of few rows, contract ``attention/1``: a CTA's warps share 16 rows of a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ptxgen.spec.attention import STAGES_MAX, AttentionSpec
from ptxgen.spec.base import ARCHITECTURES, check

OF_WARP = 16, 32
"""Keys of a block that a warp may have scores of."""


@dataclass(frozen=True)
class DecodeSpec(AttentionSpec):
    """A CTA of ``warps`` warps has 16 rows against a split of the keys ("split"), or against all
    ("whole"); "join" joins the splits.
    """

    warps: int = 4
    budget: int = 99
    part: str = "split"

    family: ClassVar[str] = "attention_decode"
    meanings: ClassVar[Mapping[str, str]] = {
        **AttentionSpec.meanings,
        "warps": "warps, that share 16 rows",
    }

    def __post_init__(self) -> None:
        self.check_form()
        self.check_choices(tier=("tc",), warps=(2, 4, 8))
        if self.part != "join":
            name = type(self).__name__
            check(self.block // self.warps in OF_WARP, name, "keys of a warp", self.block, OF_WARP)
            check(self.stages >= 1, name, "stages in the budget", self.stages, ">= 1")

    @property
    def template(self) -> str:  # type: ignore[override]
        return f"attention/{'join' if self.part == 'join' else 'decode'}.cu.j2"

    @property
    def rows(self) -> int:
        return 16

    # -- what a CTA has ---------------------------------------------------------------------
    @property
    def weights_pitch(self) -> int:
        """Bytes of a row of weights: 4 rows' 8 words lie in different banks."""
        return self.block * 4 + 32

    @property
    def stage(self) -> int:
        """Bytes of a block of keys and its values."""
        return self.block * (self.pitch(self.depth) + self.pitch(self.width))

    @property
    def stages(self) -> int:
        """Blocks that there is room for."""
        return min(STAGES_MAX, ((self.budget << 10) - self.ring_at) // self.stage)

    @property
    def rounded_at(self) -> int:
        """Where weights are, rounded."""
        return self.rows * self.pitch(self.depth)

    @property
    def weights_at(self) -> int:
        return self.rounded_at + self.rows * self.pitch(self.block)

    @property
    def maxima_at(self) -> int:
        """Where the largest scores of warps are."""
        return self.weights_at + self.rows * self.weights_pitch

    @property
    def ring_at(self) -> int:
        return self.maxima_at + self.rows * self.warps * 4

    @property
    def ctas(self) -> int:
        """CTAs that may share an SM."""
        return 2 if self.shared_bytes <= ARCHITECTURES["sm_90"].shared_for(2) else 1
