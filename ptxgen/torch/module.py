"""``nn.Linear`` on ptxgen's kernels, and how it gets into a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from ptxgen.errors import OptionError
from ptxgen.numerics.contract import TIERS
from ptxgen.torch.functional import NAMES, linear

_TAKEN = ", ".join(map(str, NAMES))


class Linear(torch.nn.Linear):
    """``torch.nn.Linear``, computed by :func:`ptxgen.torch.linear`.

    The same constructor, initial values, layout ([N, K]) and ``state_dict``, so that checkpoints
    go both ways. ``tier`` is that of :func:`ptxgen.linear`.
    """

    tier: str = "auto"  # of the class too, for modules that :func:`convert` turned into this

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        tier: str = "auto",
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.tier = _checked(tier)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """``input · Wᵀ + bias``."""
        return linear(input, self.weight, self.bias, tier=self.tier)

    def extra_repr(self) -> str:
        tier = "" if self.tier == "auto" else f", tier={self.tier!r}"
        return f"{super().extra_repr()}{tier}"


@dataclass
class Conversion:
    """What :func:`convert` did: the names of the modules converted, and those skipped with why."""

    converted: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"converted {len(self.converted)} linear layers, skipped {len(self.skipped)}"]
        return "\n".join([*lines, *(f"  {name}: {why}" for name, why in self.skipped.items())])


def convert(model: torch.nn.Module, *, tier: str = "auto") -> Conversion:
    """Turns the ``nn.Linear`` modules of ``model``, itself included, into :class:`Linear`.

    In place: a module stays the object that it is, with its parameters, hooks and mode; only its
    class changes. Skipped, and reported, are linear layers that do something of their own
    (subclasses, a ``forward`` set on the instance), and those whose weight no kernel takes.

    Code that reads a layer's weight and multiplies by itself goes past the layer, in particular
    ``nn.MultiheadAttention``. :class:`ptxgen.torch.batch_invariant` serves such products.
    """
    done = Conversion()
    _checked(tier)
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear) or isinstance(module, Linear):
            continue
        if type(module) is not torch.nn.Linear:
            kind = type(module)
            done.skipped[name] = f"is a {kind.__module__}.{kind.__qualname__}, not plain nn.Linear"
        elif "forward" in vars(module):
            done.skipped[name] = "has a forward of its own"
        elif module.weight.dtype not in NAMES:
            done.skipped[name] = f"its weight is {module.weight.dtype}; takes {_TAKEN}"
        else:
            module.__class__ = Linear
            module.tier = tier
            done.converted.append(name)
    return done


def _checked(tier: str) -> str:
    if tier not in ("auto", *TIERS):
        raise OptionError(f"tier is {tier!r}; takes {', '.join(map(repr, ('auto', *TIERS)))}")
    return tier
