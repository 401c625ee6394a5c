"""Replacements of vLLM's linear methods for quantized checkpoints.

vLLM loads a checkpoint's tensors into parameters of their names. Before it repacks them for its own
kernels, they become a :class:`ptxgen.quantized.QuantizedWeight`, by the function that reads the
same checkpoint for :func:`ptxgen.torch.convert`. So the weights, and the products, are the
trainer's. A weight that cannot be read stays vLLM's, with the reason.

Each function takes vLLM's original and returns its replacement (:mod:`ptxgen.engines.hooks`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, NamedTuple

import torch

from ptxgen.engines.vllm.layers import DTYPES, count, name_of, operator
from ptxgen.errors import EngineError, PtxgenError
from ptxgen.numerics.weight_format import ARRAYS
from ptxgen.ops.quantized_weight import QuantizedWeight
from ptxgen.torch.checkpoints import ALL, reader
from ptxgen.torch.functional import multiplied

ACTIVATIONS = "VLLM_MARLIN_INPUT_DTYPE"
"""Environment variable by which vLLM quantizes the activations of weight-only checkpoints."""
SCALES = ("scales", "weight_scale")
"""Parameters that vLLM creates in the dtype of the model, whatever the checkpoint's is."""
SCHEME = "CompressedTensorsWNA16"
"""Scheme of compressed-tensors whose weights are packed integers, and whose activations are not
quantized."""
KEPT = "weight_shape"
"""Parameter that is not removed: vLLM loads it once more after a reloaded layer was processed."""
PARAMETERS = tuple(f"ptxgen_{name}" for name in ARRAYS)
"""Names of the parameters that a layer gets, one for each array of its weight."""
CREATED = "ptxgen_created"
"""Attribute of a layer: its :class:`Created`."""
FORMAT = "ptxgen_format"
"""Attribute of a layer: name of its weight's format; empty if the weight is left to vLLM."""
FAULT = "ptxgen_fault"
"""Attribute of a layer: reason why its weight is left to vLLM."""
ORDERS = "ptxgen_orders"
"""Attribute of a layer: ``g_idx`` of each fused weight, until the layer is processed."""


class Created(NamedTuple):
    """A layer's weight when vLLM created it: ``parts``, rows of each fused weight; ``k``, columns;
    ``scales``, vLLM's dtypes of scales by the parameter's name; ``loader``, the name of the layer's
    method that loads parameters.
    """

    parts: tuple[int, ...]
    k: int
    scales: Mapping[str, torch.dtype]
    loader: str


CONFIG_READERS: dict[str, Callable[[Any], Mapping[str, Any]]] = {
    **dict.fromkeys(
        ("AutoAWQLinearMethod", "AutoAWQMarlinLinearMethod", "AutoGPTQLinearMethod"),
        lambda method: method.quant_config.full_config,
    ),
    "Fp8LinearMethod": lambda method: {
        "quant_method": "fp8",
        "weight_block_size": method.quant_config.weight_block_size,
    },
    "CompressedTensorsLinearMethod": lambda method: method.quantization_config.config,
}
"""Functions that return the ``quantization_config`` of a checkpoint, by the class of the method."""


def checkpoint_fault(options: Mapping[str, Any]) -> str:
    """Returns why the linear layers of a checkpoint are left to vLLM, whatever their tensors are;
    empty if they are not. ``options``: its ``quantization_config``.
    """
    if options.get("quant_method") == "fp8" and not options.get("weight_block_size"):
        return "its scales are not of blocks, and its activations are quantized"
    return "its layers have options of their own (dynamic)" if options.get("dynamic") else ""


# -- weights ----------------------------------------------------------------------------------
def create_weights(original: Callable[..., Any]) -> Callable[..., Any]:
    """Extends the creation of parameters: scales are loaded in float32, which holds those of each
    checkpoint. vLLM would round them to the dtype of the model.
    """

    def create(
        self: Any,
        layer: Any,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        sizes = input_size_per_partition, output_partition_sizes, input_size, output_size
        original(self, layer, *sizes, params_dtype, **extra_weight_attrs)
        if type(self).__name__ not in CONFIG_READERS:
            return
        scales = {}
        for name in SCALES:
            scale = layer._parameters.get(name)
            if scale is not None and scale.dtype in DTYPES:
                scales[name] = scale.dtype
                scale.data = scale.data.to(torch.float32)
        loader = ""
        if (groups := layer._parameters.get("g_idx")) is not None:
            loader = groups.weight_loader.__name__
            groups.weight_loader = MethodType(_load_groups, layer)
        parts = tuple(output_partition_sizes)
        setattr(layer, CREATED, Created(parts, input_size_per_partition, scales, loader))

    return create


def _load_groups(
    layer: Any, param: Any, loaded_weight: torch.Tensor, *given: Any, **options: Any
) -> Any:
    """Loads ``g_idx`` of the first of fused weights, and keeps all of them, which must be equal.
    vLLM would load each over the one before, and count its elements: it would process a reloaded
    layer before the last tensors arrive. The function is bound to the layer, as vLLM rebinds
    loaders.
    """
    vars(layer).setdefault(ORDERS, []).append(loaded_weight)
    parts = [part[0] if isinstance(part, tuple) else part for part in (*given, *options.values())]
    if any(part not in (None, 0, "q") for part in parts):
        return None
    made: Created = getattr(layer, CREATED)
    return getattr(layer, made.loader)(param, loaded_weight, *given, **options)


def process_weights(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the repacking of loaded weights: they become parameters of the layer, one for each
    array of a prepared :class:`QuantizedWeight`. vLLM's parameters are removed, so that weights
    cannot be written to them later without notice. vLLM's ``reload_weights`` loads them anew, and
    writes the arrays in place.

    Raises EngineError for reloaded weights of another format.
    """

    def process(self: Any, layer: Any) -> Any:
        made = getattr(layer, CREATED, None)
        if made is None:
            return original(self, layer)
        q, why = None, ""
        try:
            q = _read(self, layer, made)
        except PtxgenError as error:
            why = str(error)
        found, before = q.format.name if q else "", getattr(layer, FORMAT, None)
        if before not in (None, found):
            raise EngineError(
                f"{name_of(layer)}: its weight was of {before or 'no format that is read'}, the "
                f"new one is of {found or 'none: ' + why}; load the model anew"
            )
        setattr(layer, FORMAT, found)
        setattr(layer, FAULT, why)
        if q is None:
            for name, dtype in made.scales.items():
                scale = layer._parameters[name]
                scale.data = scale.data.to(dtype)
            return original(self, layer)
        for name in ({*ALL} - {KEPT}) & layer._parameters.keys():
            delattr(layer, name)
        for name, array in zip(PARAMETERS, q.operands, strict=True):
            if array is not None:
                own = torch.nn.Parameter(array.contiguous(), requires_grad=False)
                layer.register_parameter(name, own)
        if hasattr(self, "fp8_linear"):  # vLLM would warm the kernels that it chose
            self.fp8_linear = None
        return None

    return process


def _read(method: Any, layer: Any, made: Created) -> QuantizedWeight:
    """Returns the quantized weight that vLLM's loaded parameters hold; raises PtxgenError if it
    cannot be read.
    """
    orders = vars(layer).pop(ORDERS, [])
    if os.environ.get(ACTIVATIONS):
        raise EngineError(f"its activations are quantized ({ACTIVATIONS})")
    scheme = type(getattr(layer, "scheme", None)).__name__
    if scheme not in ("NoneType", SCHEME):
        raise EngineError(f"its scheme is {scheme}")
    options = CONFIG_READERS[type(method).__name__](method)
    if why := checkpoint_fault(options):
        raise EngineError(why)
    read = reader(str(options.get("quant_method")), options)
    given = {n: layer._parameters[n].data for n in ALL if n in layer._parameters}
    if not options.get("desc_act"):
        given.pop("g_idx", None)  # not in each such checkpoint, and then not set
    elif any(not torch.equal(each, orders[0]) for each in orders[1:]):
        raise EngineError("its fused weights have groups in different orders (g_idx)")
    if "weight_scale_inv" in given:
        high = options["weight_block_size"][0]
        if any(n % high for n in made.parts[:-1]):
            raise EngineError(f"its parts of {made.parts} rows share blocks of {high}")
    for name in made.scales:
        given[name] = _narrowed(given[name], made.scales[name])
    with torch.no_grad():
        q = read(given, (sum(made.parts), made.k))
        if q is None:
            raise EngineError("it has no tensors of a format that is read")
        return q.prepared()


def _narrowed(scales: torch.Tensor, preferred: torch.dtype) -> torch.Tensor:
    """Returns f32 scales in a dtype of 16 bits that holds them all, if there is one; kernels read
    it faster, and decode the same weight.
    """
    for dtype in dict.fromkeys((preferred, torch.float16, torch.bfloat16)):
        short = scales.to(dtype)
        if torch.equal(short.to(torch.float32), scales):
            return short
    return scales


def product_fault(layer: Any) -> str:
    """Returns why a loaded layer with a quantized weight is not served; empty if it is."""
    if getattr(layer, FORMAT, ""):
        return ""
    why = getattr(layer, FAULT, "")
    kind = type(layer.quant_method).__name__
    return f"its weight is quantized ({kind}{': ' if why else ''}{why})"


# -- products ---------------------------------------------------------------------------------
def _product(
    x: torch.Tensor,
    data: torch.Tensor,
    scales: torch.Tensor,
    offsets: torch.Tensor | None,
    outer: torch.Tensor | None,
    groups: torch.Tensor | None,
    bias: torch.Tensor | None,
    format: str,
) -> torch.Tensor:
    with torch.no_grad():
        return multiplied(x, (data, scales, offsets, outer, groups), bias, format)


def _product_fake(x: torch.Tensor, data: torch.Tensor, *_: Any) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], data.shape[0]))


def multiply(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the product by :func:`ptxgen.torch.quantized_linear`. Fused weights (QKV, gate and
    up) give the bits of the separate ones.

    Raises EngineError for activations of another dtype: vLLM's own weight is not there any more.
    """
    product = operator("ptxgen_quantized_linear", _product, _product_fake)

    def apply(self: Any, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
        format = getattr(layer, FORMAT, "")
        if not format:
            return original(self, layer, x, bias)
        if x.dtype not in DTYPES:
            raise EngineError(f"{name_of(layer)}: a product of {x.dtype} by {format}")
        arrays = [getattr(layer, name, None) for name in PARAMETERS]
        count(layer, "quantized_linear", _product, x, *arrays, bias, format=format)
        return product(x, *arrays, bias, format)

    return apply
