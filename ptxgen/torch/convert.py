"""``convert``: turns the linear layers of a model into those of ptxgen, in place."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from fnmatch import fnmatchcase
from os import PathLike

import torch

from ptxgen.errors import OptionError, PtxgenError
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.ops.bitsandbytes import from_bitsandbytes
from ptxgen.ops.quantized_weight import QuantizedWeight, quantize
from ptxgen.torch.checkpoints import load
from ptxgen.torch.functional import NAMES
from ptxgen.torch.module import Conversion, Linear, QuantizedLinear, check_accumulate, check_tier

_TAKEN = ", ".join(map(str, NAMES))


def convert(
    model: torch.nn.Module,
    *,
    tier: str = "auto",
    format: str | None = None,
    accumulate: str = "auto",
    skip: Collection[str] = (),
    weights: str | PathLike[str] | None = None,
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

    With ``weights``, the path of a checkpoint, the model is loaded from it, in place: layers whose
    weight is quantized there become :class:`QuantizedLinear`, with the checkpoint's codes, and
    all other tensors are copied to the model's dtypes. It is a GGUF file (package ``gguf``), whose
    tensors have the model's names or those of llama, qwen2, qwen3 or phi3 models of
    ``transformers``; or a folder of safetensors (package ``safetensors``) with a ``config.json``
    whose ``quantization_config`` is of AWQ, GPTQ, compressed-tensors (``pack-quantized``,
    ``float-quantized``, ``naive-quantized`` of floats, ``nvfp4-pack-quantized``; not with quantized
    activations), FP8, whose activations are not quantized here, or MXFP4, whose experts (gpt-oss)
    become :class:`ptxgen.torch.experts.QuantizedExperts`. The result's ``missing`` and ``unused``
    say what did not match.

    Code that reads a layer's weight and multiplies by itself does not call the layer, in particular
    ``nn.MultiheadAttention``. :class:`ptxgen.torch.batch_invariant` serves such products.

    Raises OptionError for an unknown ``tier``, ``format`` or ``accumulate``. Raises CheckpointError
    for ``weights`` that cannot be read or do not fit the model, before it is changed.
    """
    if nf4 is not None:
        format = _format_before(nf4, format)
    row = None if format is None else format_named(format)
    check_tier(tier)
    check_accumulate(accumulate)
    if weights is not None:
        for name, value, default in ("format", format, None), ("tier", tier, "auto"):
            if value != default:
                raise OptionError(f"{name} is {value!r}; with weights= convert takes {default!r}")
        return load(model, weights, accumulate, skip)
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


def _learns(module: torch.nn.Linear) -> bool:
    """Whether the weight of a linear layer requires grad. Where compressed-tensors has packed it,
    there is none before the model's first call.
    """
    weight = getattr(module, "weight", None)
    return weight is not None and weight.requires_grad


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
        isinstance(m, QuantizedLinear) or (isinstance(m, torch.nn.Linear) and not _learns(m))
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
