"""``nn.Linear`` with ptxgen's kernels, dense or quantized weights, and ``convert`` for models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Self

import torch

from ptxgen.errors import DtypeError, OptionError, PtxgenError, ShapeError
from ptxgen.numerics.contract import TIERS
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.option import Choice
from ptxgen.numerics.quantized import ACCUMULATE
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.ops.bitsandbytes import from_bitsandbytes
from ptxgen.ops.quantized_weight import QuantizedWeight, quantize, whole_blocks, zeros
from ptxgen.torch.functional import NAMES, linear, multiplied

_TAKEN = ", ".join(map(str, NAMES))
_STORED = "data", "scales", "offsets"


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
        self.tier = _checked(tier)

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
        weight: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None],
        bias: torch.nn.Parameter | None,
        accumulate: str,
    ) -> None:
        """Initialises the module with a quantized weight of format ``row`` and ``shape``
        (out_features, in_features), whose tensors become buffers.
        """
        self.out_features, self.in_features = shape
        self.format, self.accumulate = row.name, _checked_accumulate(accumulate)
        for name, buffer in zip(_STORED, weight, strict=True):
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
    def weight_buffers(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Buffers of the quantized weight: data, scales, and offsets or None."""
        return self.data, self.scales, self._buffers.get("offsets")

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
        before = {name: self._buffers[name] for name in _STORED if name in self._buffers}
        super()._apply(fn, recurse)
        for name, was in before.items():
            moved = self._buffers[name]
            if moved.dtype is not was.dtype:
                self._buffers[name] = was.to(moved.device)
        return self


@dataclass
class Conversion:
    """Result of :func:`convert`: names of converted modules, and of skipped ones with reasons."""

    converted: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"converted {len(self.converted)} linear layers, skipped {len(self.skipped)}"]
        return "\n".join([*lines, *(f"  {name}: {why}" for name, why in self.skipped.items())])


def convert(
    model: torch.nn.Module,
    *,
    tier: str = "auto",
    format: str | None = None,
    accumulate: str = "auto",
    skip: Collection[str] = (),
    nf4: bool | None = None,
) -> Conversion:
    """Turns the ``nn.Linear`` modules of ``model``, itself included, into :class:`Linear`, in
    place.

    A module remains the same object, with its parameters, hooks and mode; only its class changes.
    Layers are skipped, and reported, if they have behaviour of their own (subclasses, a ``forward``
    set on the instance), a weight of a dtype that no kernel supports, or a name that a pattern in
    ``skip`` matches (``"*.lm_head"``, as in :mod:`fnmatch`).

    With ``format`` (of ``ptxgen.quantized.FORMATS``, such as "int8_block") they become
    :class:`QuantizedLinear`, and so do layers of bitsandbytes in that format (``Linear4bit``),
    exactly. A module remains the same object, but its weight is frozen, and no parameter any more.
    If the weight of any linear layer does not require grad, layers whose weight does are skipped:
    they are to be trained, such as LoRA's adapters. So freeze a base model before it is converted
    (``requires_grad_(False)``), as QLoRA does; a model without frozen layers is converted
    completely. A weight that several layers share is quantized once. Layers are skipped if a module
    that is not converted, such as an embedding, has their weight, too. ``tier`` is for dense
    weights, ``accumulate`` for quantized ones. ``nf4=True``, deprecated, means
    ``format="nf4"``.

    Code that reads a layer's weight and multiplies by itself does not call the layer, in particular
    ``nn.MultiheadAttention``. :class:`ptxgen.torch.batch_invariant` serves such products.

    Raises OptionError for an unknown ``tier``, ``format`` or ``accumulate``.
    """
    if nf4 is not None:
        format = _format_before(nf4, format)
    row = None if format is None else format_named(format)
    _checked(tier)
    _checked_accumulate(accumulate)
    for name, value, meant in ("tier", tier, not row), ("accumulate", accumulate, row):
        if value != "auto" and not meant:
            raise OptionError(f"{name} is {value!r}; with format={format!r} convert takes 'auto'")
    done, fit = Conversion(), {}
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear) or (isinstance(module, Linear) and not row):
            continue
        why = (
            "skip says so"
            if any(fnmatchcase(name, p) for p in skip)
            else _reason_to_skip(module, row)
        )
        if why is None:
            fit[name] = module
        else:
            done.skipped[name] = why
    if row:
        _freeze(model, fit, row, accumulate, done)
    else:
        for module in fit.values():
            module.__class__ = Linear
            module.tier = tier
        done.converted.extend(fit)
    return done


def _format_before(nf4: bool, format: str | None) -> str | None:
    """Returns the format that the deprecated argument ``nf4=`` selects, after a FutureWarning."""
    warnings.warn(
        'convert: pass format="nf4" for nf4=True, which the next version refuses',
        FutureWarning,
        stacklevel=3,
    )
    return "nf4" if nf4 else format


def _reason_to_skip(module: torch.nn.Linear, row: WeightFormat | None) -> str | None:
    """Returns the reason why a linear layer's class, ``forward`` or dtype rules out its conversion;
    None if they allow it. ``row``: format of the quantized weight; None for :class:`Linear`.
    """
    kind = type(module)
    theirs = row is not None and _is_bitsandbytes(kind)
    if not theirs and kind is not torch.nn.Linear and not (row and kind is Linear):
        return f"is a {kind.__module__}.{kind.__qualname__}, not plain nn.Linear"
    if "forward" in vars(module):
        return "has a forward of its own"
    if not theirs and module.weight.dtype not in NAMES:
        return f"its weight is {module.weight.dtype}; takes {_TAKEN}"
    return None


def _is_bitsandbytes(kind: type) -> bool:
    """Whether a class is the 4-bit linear layer of bitsandbytes, which need not be installed."""
    return any(
        base.__name__ == "Linear4bit"
        and base.__module__.startswith("bitsandbytes")
        and kind.forward is base.forward  # type: ignore[attr-defined]
        for base in kind.__mro__
    )


def _freeze(
    model: torch.nn.Module,
    fit: dict[str, torch.nn.Linear],
    row: WeightFormat,
    accumulate: str,
    done: Conversion,
) -> None:
    """Turns linear layers into :class:`QuantizedLinear`, in place. Adds their names to ``done``,
    and those of skipped ones with the reasons. ``fit``: the layers of ``model`` by name; ``row``:
    format of their weights.
    """
    modules = dict(model.named_modules())
    readers: dict[int, list[str]] = {}  # names of the modules that have a parameter
    for name, module in modules.items():
        for parameter in vars(module)["_parameters"].values():
            readers.setdefault(id(parameter), []).append(name)
    adapted = any(
        isinstance(m, QuantizedLinear)
        or (isinstance(m, torch.nn.Linear) and not m.weight.requires_grad)
        for m in modules.values()
    )
    shared: dict[int, QuantizedWeight] = {}
    for name, module in fit.items():
        weight = module.weight
        others = [reader for reader in readers[id(weight)] if reader not in fit]
        if adapted and weight.requires_grad:
            done.skipped[name] = "its weight requires grad, beside frozen ones: it is to be trained"
        elif others:
            done.skipped[name] = f"its weight is also that of {', '.join(others)}"
        else:
            try:
                if id(weight) not in shared:
                    theirs = _is_bitsandbytes(type(module))
                    q = from_bitsandbytes(weight) if theirs else quantize(weight, row)
                    if q.format != row:
                        done.skipped[name] = f"its weight is of {q.format.name}, not {row.name}"
                        continue
                    shared[id(weight)] = q
            except PtxgenError as error:
                done.skipped[name] = str(error)
                continue
            QuantizedLinear._replace(module, shared[id(weight)], accumulate)
            done.converted.append(name)


def _checked(tier: str) -> str:
    return str(Choice("auto", *TIERS).read("tier", tier))


def _checked_accumulate(accumulate: str) -> str:
    return str(ACCUMULATE.read("accumulate", accumulate))
