"""Experts of models of `transformers`: of dense weights, and of quantized ones as a layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import torch

from ptxgen.numerics.weight_format import ARRAYS
from ptxgen.ops import OPERATIONS
from ptxgen.ops.quantized_weight import QuantizedWeight
from ptxgen.torch.dims import named
from ptxgen.torch.record import function

moe_dispatch, grouped_linear, moe_combine = (
    named(OPERATIONS[name]) for name in ("moe_dispatch", "grouped_linear", "moe_combine")
)
_quantized: Callable[..., torch.Tensor] = function(OPERATIONS["quantized_grouped_linear"])
PROJECTIONS: Final = "gate_up_proj", "down_proj"
"""Names of the two weights of experts with a gate."""


def compute_experts(module: Any, hidden: Any, experts: Any, weights: Any) -> Any:
    """Computes the experts of a module of `transformers` for tokens ``hidden`` [T, H]. ``experts``,
    ``weights``: indices and weights [T, J] of each token's top J experts.

    Raises DtypeError and ShapeError as :func:`ptxgen.torch.grouped_linear` does.
    """
    gated = getattr(module, "has_gate", True)
    names = "gate_up_proj" if gated else "up_proj", "down_proj"
    layout = "kn" if getattr(module, "is_transposed", False) else "nk"
    up, down = (getattr(module, n) for n in names)
    biases = [None, None]
    if getattr(module, "has_bias", False):
        biases = [getattr(module, f"{n}_bias") for n in names]
    rows, places, offsets = moe_dispatch(hidden.to(up.dtype), experts, up.shape[0])
    y = grouped_linear(rows, up, offsets, biases[0], layout=layout)
    y = module._apply_gate(y) if gated else module.act_fn(y)
    y = grouped_linear(y, down, offsets, biases[1], layout=layout)
    if getattr(module, "has_post_expert_norm", False):
        y = module.post_expert_norm(y)
    return _combined(y, places, weights).to(hidden.dtype)


def _combined(y: Any, places: Any, weights: Any) -> Any:
    """Adds the results ``y`` of each token's experts, times their weights."""
    return moe_combine(y, places, weights if weights.dtype is y.dtype else weights.float())


class QuantizedExperts(torch.nn.Module):
    """Experts of `transformers` with frozen quantized weights, as
    :func:`ptxgen.torch.register_experts` computes them: by ``moe_dispatch``,
    :func:`ptxgen.quantized.grouped_linear` and ``moe_combine``.

    :func:`ptxgen.torch.convert` makes it in the place of the experts of a model. The weights are
    stored in buffers, ``gate_up_proj_data``, ``gate_up_proj_scales`` and so on; :meth:`weight`
    returns one. Biases stay parameters, and the gate is that of the model. Gradients go to the
    input and the biases.
    """

    num_experts: int
    _gate: Callable[[Any, torch.Tensor], torch.Tensor]

    @staticmethod
    def misfit(module: Any) -> str | None:
        """Returns the reason why a module does not become one of this class; None if it does."""
        kind = type(module)
        if not kind.__module__.startswith("transformers.") or not hasattr(module, "is_transposed"):
            return f"is a {kind.__module__}.{kind.__qualname__}, not experts of transformers"
        if "forward" in vars(module) or getattr(module, "_is_expert_parallel", False):
            return "has a forward of its own, or experts on several devices"
        if not module.has_gate or module.has_post_expert_norm:
            return "has no gate, or a norm behind it"
        return None

    @classmethod
    def _replace(cls, module: Any, weights: Mapping[str, QuantizedWeight]) -> Self:
        """Turns experts of `transformers` into a module of this class, in place. ``weights``:
        ``[E · N, K]`` by the names of :data:`PROJECTIONS`.
        """
        gate, module._shapes = type(module)._apply_gate, {}
        module.__class__, module._gate = cls, gate
        for name, q in weights.items():
            del module._parameters[name]
            module._shapes[name] = q.format.name, (q.n, q.k)
            for array, buffer in zip(ARRAYS, q.operands, strict=True):
                if buffer is not None:
                    module.register_buffer(f"{name}_{array}", buffer)
        made: Self = module
        return made

    def weight(self, name: str) -> QuantizedWeight:
        """Returns the weight ``name``, "gate_up_proj" or "down_proj", ``[E · N, K]``, the experts
        one below the other; it shares the buffers.
        """
        format, shape = self._shapes[name]
        return QuantizedWeight(format, *self._arrays(name), shape=shape)

    def _arrays(self, name: str) -> tuple[torch.Tensor | None, ...]:
        return tuple(self._buffers.get(f"{name}_{array}") for array in ARRAYS)

    def _product(self, name: str, x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        bias = self._parameters.get(f"{name}_bias")
        return _quantized(x, offsets, *self._arrays(name), bias, format=self._shapes[name][0])

    def forward(
        self, hidden: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Returns the sums of each token's experts, times their weights. ``hidden`` [T, H];
        ``experts``, ``weights`` [T, J].
        """
        up, down = PROJECTIONS
        rows, places, offsets = moe_dispatch(hidden, experts, self.num_experts)
        y = self._gate(self, self._product(up, rows, offsets))
        found: torch.Tensor = _combined(self._product(down, y, offsets), places, weights)
        return found.to(hidden.dtype)

    def extra_repr(self) -> str:
        formats = ", ".join(f"{name}={format!r}" for name, (format, _) in self._shapes.items())
        return f"num_experts={self.num_experts}, {formats}"
