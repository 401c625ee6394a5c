"""Converts 4-bit weights from and to those of bitsandbytes, exactly."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ptxgen.errors import DtypeError, OptionError, PtxgenError
from ptxgen.numerics.dtype import name_of
from ptxgen.numerics.formats import FORMATS
from ptxgen.ops.quantized_weight import QuantizedWeight, checked, whole_blocks
from ptxgen.runtime.arrays import framework_of
from ptxgen.spec.quantized import looked_up


def from_bitsandbytes(param: Any) -> QuantizedWeight:
    """Converts a quantized ``bitsandbytes.nn.Params4bit`` to a :class:`QuantizedWeight`.

    Shapes
        ``param`` of a weight ``[N, K]``, K a multiple of the format's block.
    Dtypes
        Its ``quant_type`` is the name of a format of 4-bit codebooks, and its ``blocksize`` and
        ``code`` are the format's. Scales that are quantized themselves become f32.
    Order
        No sums: it dequantizes to exactly the elements that bitsandbytes does.
    Errors
        OptionError, and ShapeError for a K that is no multiple of the block.
    Source
        ``ptxgen/ops/bitsandbytes.py``.
    """
    if getattr(param, "quant_state", None) is None:
        raise OptionError("param has no quant_state; takes a Params4bit that has been quantized")
    try:
        return _converted(param)
    except PtxgenError:
        raise
    except Exception as error:  # an object that only resembles a Params4bit
        raise OptionError(
            f"param has a quant_state that cannot be read: {type(error).__name__}: {error}; takes "
            "a Params4bit that has been quantized"
        ) from error


def _converted(param: Any) -> QuantizedWeight:
    """Converts a parameter whose ``quant_state`` is one of bitsandbytes; raises OptionError."""
    state = param.quant_state
    plain = not getattr(state, "packing_format_for_cpu", False)
    names = [name for name, row in FORMATS.items() if looked_up(row)]
    if state.quant_type not in names:
        takes = " or ".join(map(repr, names))
        raise OptionError(f"param has quant_type {state.quant_type!r}; takes {takes}")
    row = FORMATS[state.quant_type]
    for what, value, taken in (
        ("blocksize", state.blocksize, row.block),
        ("code", tuple(state.code.tolist()), row.values),
        ("packing", "plain" if plain else "for CPUs", "plain"),
    ):
        if value != taken:
            raise OptionError(f"param has {what} {value!r}; takes {taken!r}")
    n, k = state.shape
    whole_blocks(row, "param", k, state.shape)
    torch, scales = sys.modules["torch"], state.absmax
    if state.state2 is not None:
        outer = state.state2
        steps = outer.absmax.repeat_interleave(outer.blocksize)[: len(scales)]
        scales = outer.code[scales.long()] * steps + state.offset
    stored = param.data.detach().as_subclass(torch.Tensor).contiguous().view(torch.uint8)
    swapped = _swapped(stored.reshape(-1))
    return QuantizedWeight(row, swapped, scales.float(), shape=(int(n), int(k)))


def to_bitsandbytes(q: QuantizedWeight, dtype: Any = "float32") -> Any:
    """Converts ``q`` to a ``bitsandbytes.nn.Params4bit`` that dequantizes to the same elements.

    Shapes
        That of ``q``, ``[N, K]``.
    Dtypes
        ``q`` of PyTorch tensors, in a format of bitsandbytes; ``dtype``: the dtype
        that bitsandbytes dequantizes to.
    Order
        Nothing is computed.
    Errors
        DtypeError for a weight of NumPy; ImportError without the package bitsandbytes.
    Source
        ``ptxgen/ops/bitsandbytes.py``.
    """
    if framework_of(checked(q).data) != "torch":
        raise DtypeError(f"q is of {framework_of(q.data)} arrays; takes PyTorch tensors")
    row = q.format
    torch, numbers = sys.modules["torch"], name_of(dtype)
    functional = importlib.import_module("bitsandbytes.functional")
    state = functional.QuantState(
        absmax=q.scales.reshape(-1),
        shape=torch.Size((q.n, q.k)),
        code=torch.tensor(row.values, device=q.data.device),
        blocksize=row.block,
        quant_type=row.name,
        dtype=getattr(torch, numbers),
    )
    return importlib.import_module("bitsandbytes.nn").Params4bit(
        _swapped(q.data).reshape(-1, 1),
        requires_grad=False,
        quant_state=state,
        blocksize=row.block,
        compress_statistics=False,
        quant_type=row.name,
        bnb_quantized=True,
    )


def _swapped(data: Any) -> Any:
    """Swaps the two nibbles of each byte."""
    return data << 4 | data >> 4
