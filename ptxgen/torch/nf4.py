"""Deprecated names for quantized layers of format NF4; the next version removes them."""

from __future__ import annotations

import warnings
from typing import Any, Self

import torch

from ptxgen.numerics.formats.nf4 import NF4
from ptxgen.torch.functional import quantized_linear as nf4_linear
from ptxgen.torch.module import QuantizedLinear

__all__ = ["NF4Linear", "nf4_linear"]


class NF4Linear(QuantizedLinear):
    """:class:`ptxgen.torch.QuantizedLinear` of format "nf4"."""

    def __init__(self, *given: Any, format: str = NF4.name, **how: Any) -> None:
        super().__init__(*given, format=format, **how)

    @classmethod
    def from_linear(
        cls, module: torch.nn.Linear, *, format: str = NF4.name, accumulate: str = "auto"
    ) -> Self:
        return super().from_linear(module, format=format, accumulate=accumulate)


def renamed(name: str) -> Any:
    """Returns the object with the deprecated name ``name``, after a FutureWarning."""
    new = {"NF4Linear": 'QuantizedLinear(..., format="nf4")', "nf4_linear": "quantized_linear"}
    warnings.warn(
        f"{name} is {new[name]}; the next version of ptxgen.torch has no other name",
        FutureWarning,
        stacklevel=3,
    )
    return globals()[name]
