"""``nn.Linear`` with ptxgen's kernels, dense or quantized weights, and ``convert`` for models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import torch

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.contract import TIERS
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.option import Choice
from ptxgen.numerics.quantized import ACCUMULATE
from ptxgen.numerics.weight_format import ARRAYS, WeightFormat
from ptxgen.ops.bitsandbytes import from_bitsandbytes
from ptxgen.ops.quantized_weight import QuantizedWeight, quantize, whole_blocks, zeros
from ptxgen.torch.functional import linear, multiplied


class Linear(torch.nn.Linear):
    """``torch.nn.Linear``, computed by :func:`ptxgen.torch.linear`.

    Constructor, initial values, layout ([N, K]) and ``state_dict`` are those of
    ``torch.nn.Linear``, so checkpoints fit either. ``tier`` is that of :func:`ptxgen.linear`.

    Raises OptionError for an unknown tier; a call raises the errors of :func:`ptxgen.torch.linear`.
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
        self.tier = check_tier(tier)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns ``input · Wᵀ + bias``."""
        return linear(input, self.weight, self.bias, tier=self.tier)

    def extra_repr(self) -> str:
        tier = "" if self.tier == "auto" else f", tier={self.tier!r}"
        return f"{super().extra_repr()}{tier}"


class QuantizedLinear(torch.nn.Module):
    """Linear layer with a frozen quantized weight: :func:`ptxgen.torch.quantized_linear`.

    The weight is stored in buffers: ``data`` (uint8 ``[out_features, in_features * bits / 8]``),
    ``scales`` and, if the format has them, ``offsets`` (``[out_features, in_features / block]``).
    :attr:`q` is a :class:`ptxgen.quantized.QuantizedWeight` of them. Casting the module to another
    dtype leaves the buffers as they are: the layer computes in the dtype of its input, or
    autocast's. The bias is a parameter. Gradients go to the input and the bias. ``accumulate`` is
    that of :func:`ptxgen.quantized.linear`, ``format`` a name of ``ptxgen.quantized.FORMATS``.

    The constructor sets the weight to zero, for a checkpoint to be loaded; :meth:`from_weight`,
    :meth:`from_linear` and :meth:`from_bitsandbytes` take one. ``dtype`` is the bias's.

    Raises ShapeError unless ``in_features`` is a multiple of the block, and OptionError.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        format: str,
        accumulate: str = "auto",
    ) -> None:
        super().__init__()
        row, on = format_named(format), {"device": device}
        whole_blocks(row, "in_features", in_features)
        made = torch.nn.Parameter(torch.zeros(out_features, dtype=dtype, **on)) if bias else None
        shape = out_features, in_features
        self._set_weight(row, shape, zeros(row, shape, on), made, accumulate)

    @classmethod
    def from_weight(
        cls, q: QuantizedWeight, bias: torch.Tensor | None = None, *, accumulate: str = "auto"
    ) -> Self:
        """Returns a layer with weight ``q`` of PyTorch tensors, whose memory it shares.

        ``bias``: a parameter, which the layer then shares; any other tensor becomes a parameter.

        Raises DtypeError for a weight of NumPy arrays, ShapeError for a bias of another length.
        """
        if not isinstance(q.data, torch.Tensor):
            raise DtypeError(f"q is {q}; takes a weight of PyTorch tensors")
        if bias is not None and bias.shape != (q.n,):
            raise ShapeError(f"bias has shape {list(bias.shape)}; takes [{q.n}]")
        if bias is not None and not isinstance(bias, torch.nn.Parameter):
            bias = torch.nn.Parameter(bias, requires_grad=bias.requires_grad)
        made = cls.__new__(cls)
        torch.nn.Module.__init__(made)
        made._set_weight(q.format, (q.n, q.k), q.operands, bias, accumulate)
        return made

    @classmethod
    def from_linear(cls, module: torch.nn.Linear, *, format: str, accumulate: str = "auto") -> Self:
        """Returns a layer with the quantized weight of ``module``, and its bias (the same
        parameter).

        Raises the errors of :func:`ptxgen.quantized.quantize`.
        """
        q = quantize(module.weight, format)
        made = cls.from_weight(q, module.bias, accumulate=accumulate)
        made.train(module.training)
        return made

    @classmethod
    def from_bitsandbytes(cls, module: Any, *, accumulate: str = "auto") -> Self:
        """Returns a layer with the weight and bias of a ``bitsandbytes.nn.Linear4bit``.

        ``module`` may also be a bare ``Params4bit``. The dtype in which bitsandbytes computes
        (``compute_dtype``) is ignored.

        Raises the errors of :func:`ptxgen.quantized.from_bitsandbytes`.
        """
        q = from_bitsandbytes(getattr(module, "weight", module))
        return cls.from_weight(q, getattr(module, "bias", None), accumulate=accumulate)

    def _set_weight(
        self,
        row: WeightFormat,
        shape: tuple[int, int],
        weight: tuple[torch.Tensor | None, ...],
        bias: torch.nn.Parameter | None,
        accumulate: str,
    ) -> None:
        """Initialises the module with a quantized weight of format ``row`` and ``shape``
        (out_features, in_features), whose tensors become buffers.
        """
        self.out_features, self.in_features = shape
        self.format, self.accumulate = row.name, check_accumulate(accumulate)
        for name, buffer in zip(ARRAYS, weight, strict=True):
            if buffer is not None:
                self.register_buffer(name, buffer)
        self.register_parameter("bias", bias)

    @classmethod
    def _replace(cls, module: Any, q: QuantizedWeight, accumulate: str) -> None:
        """Turns a linear layer into a layer of this class with weight ``q``, in place."""
        del module._parameters["weight"]
        for name in ("tier", "quant_state"):  # ours, and bitsandbytes'
            vars(module).pop(name, None)
        module.__class__ = cls
        module._set_weight(q.format, (q.n, q.k), q.operands, module.bias, accumulate)

    @property
    def weight_buffers(self) -> tuple[torch.Tensor | None, ...]:
        """Buffers of the quantized weight in the order of ``ARRAYS``; None for those that the
        format has not.
        """
        return tuple(self._buffers.get(name) for name in ARRAYS)

    @property
    def q(self) -> QuantizedWeight:
        """Quantized weight that shares the module's buffers."""
        shape = self.out_features, self.in_features
        return QuantizedWeight(self.format, *self.weight_buffers, shape=shape)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns ``input · Wᵀ + bias``."""
        weight, how = self.weight_buffers, self.accumulate
        return multiplied(input, weight, self.bias, self.format, accumulate=how)

    def extra_repr(self) -> str:
        how = "" if self.accumulate == "auto" else f", accumulate={self.accumulate!r}"
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, format={self.format!r}{how}"
        )

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Applies ``fn`` as ``to``, ``half`` and others ask; the weight's buffers keep their
        dtypes.
        """
        before = {name: self._buffers[name] for name in ARRAYS if name in self._buffers}
        super()._apply(fn, recurse)
        for name, was in before.items():
            moved = self._buffers[name]
            if moved.dtype is not was.dtype:
                self._buffers[name] = was.to(moved.device)
        return self


@dataclass
class Conversion:
    """Result of :func:`convert`: names of converted modules, and of skipped ones with reasons.

    With ``weights=``: ``missing``, parameters for which the checkpoint has nothing, and ``unused``,
    tensors of the checkpoint that the model has no place for.
    """

    converted: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"converted {len(self.converted)} linear layers, skipped {len(self.skipped)}"]
        lines += [f"  {name}: {why}" for name, why in self.skipped.items()]
        lines += [f"  missing in the checkpoint: {name}" for name in self.missing]
        lines += [f"  not used of the checkpoint: {name}" for name in self.unused]
        return "\n".join(lines)


def check_tier(tier: str) -> str:
    """Returns ``tier``; raises OptionError for one that is not known."""
    return str(Choice("auto", *TIERS).read("tier", tier))


def check_accumulate(accumulate: str) -> str:
    """Returns ``accumulate``, of a quantized layer; raises OptionError if it is not known."""
    return str(ACCUMULATE.read("accumulate", accumulate))
