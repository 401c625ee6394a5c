"""Patches of other libraries while a ``batch_invariant()`` block is open.

A block overrides operators in PyTorch's dispatcher. Where that is not enough, it patches modules of
other libraries, which need not be installed:

- `transformers` repeats keys and values for the query heads that share them; attention of ptxgen
  reads them once;
- bitsandbytes packs a weight of 4 bits for CPUs at a layer's first call, and rounds its scales to
  bfloat16, before the block sees the product;
- :data:`LAYERS` lists layers whose kernels the dispatcher does not see, or that quantize
  activations: they are reported as unknown operators.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial, wraps
from typing import Any, Final, NamedTuple

from ptxgen.torch.unserved import W8A8

Undo = Callable[[], None]
Patch = Callable[[Any], Iterator[Undo]]
"""Function that patches a module, and yields the functions that undo it."""
Count = Callable[[str, str], None]
"""Function that reports the unknown operator of a name, with the reason why it is not served."""

SHARING: Final = "transformers.integrations.sdpa_attention"
"""The module of `transformers` that calls ``scaled_dot_product_attention``."""
LINEAR_4BIT: Final = "bitsandbytes.nn.modules"
"""The module of bitsandbytes with the layer ``Linear4bit``."""
ACTIVATIONS: Final = "compressed_tensors.quantization.lifecycle.forward"
"""The module of compressed-tensors whose ``forward_quantize`` quantizes activations."""

_COMPRESSED = (
    f"{W8A8}; load the model with quantization_config=CompressedTensorsConfig(dequantize=True)"
)
_FP8 = (
    f"{W8A8}; load the model with quantization_config=FineGrainedFP8Config(dequantize=True), or "
    "its codes by ptxgen.torch.convert(model, weights=folder)"
)
_UNSEEN = "its Triton kernels are not seen by the block; load the model with "
_MXFP4 = (
    f"{_UNSEEN}quantization_config=Mxfp4Config(dequantize=True), or its codes by "
    "ptxgen.torch.convert(model, weights=folder)"
)
_GROUPED = (
    f"{_UNSEEN}the backend 'torch' (GPTQ) or 'torch_awq' of gptqmodel, or its codes by "
    "ptxgen.torch.convert(model, weights=folder)"
)


class Layers(NamedTuple):
    """Layers of a module that a block reports."""

    names: tuple[str, ...]
    why: str
    """Reason why they are not served."""
    dense: bool
    """Whether they may have dense weights, with which they are served."""


LAYERS: Final[Mapping[str, Layers]] = {
    "transformers.integrations.mxfp4": Layers(
        ("Mxfp4GptOssMLP", "Mxfp4GptOssExperts"), _MXFP4, dense=False
    ),
    "gptqmodel.nn_modules.qlinear.tritonv2": Layers(("TritonV2Linear",), _GROUPED, dense=False),
    "gptqmodel.nn_modules.qlinear.gemm_awq_triton": Layers(
        ("AwqGEMMTritonLinear",), _GROUPED, dense=False
    ),
    "transformers.integrations.finegrained_fp8": Layers(
        ("FP8Linear", "FP8GroupedLinear", "FP8Experts"), _FP8, dense=True
    ),
}
"""Layers that are reported, by the module that defines them."""


class Patches(importlib.abc.MetaPathFinder):
    """Patches of modules between :meth:`open` and :meth:`close`, also of those imported meanwhile.

    ``patches``: a function by module.
    """

    def __init__(self, patches: Mapping[str, Patch]) -> None:
        self._patches = dict(patches)
        self._undo: list[Undo] = []

    def open(self) -> None:
        """Patches the modules that are imported, and waits for the others."""
        for name in list(self._patches):
            if name in sys.modules:
                self._apply(name, sys.modules[name])
        if self._patches:
            sys.meta_path.insert(0, self)

    def close(self) -> None:
        """Undoes the patches."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._patches.clear()  # for a module that is being imported meanwhile
        while self._undo:
            self._undo.pop()()

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds a module as other finders do, and patches it after its import."""
        if name not in self._patches:
            return None
        others = (finder.find_spec for finder in sys.meta_path if finder is not self)
        found = next((spec for find in others if (spec := find(name, path, target))), None)
        if found is not None and found.loader is not None:
            execute = found.loader.exec_module

            def run(module: Any) -> None:
                execute(module)
                self._apply(name, module)

            found.loader.exec_module = run  # type: ignore[method-assign]
        return found

    def _apply(self, name: str, module: Any) -> None:
        patch = self._patches.pop(name, None)
        if patch is not None:
            self._undo.extend(patch(module))


def patches(kinds: Collection[str], count: Count) -> dict[str, Patch]:
    """Returns the patches for tensors on device types ``kinds``, by module."""
    found: dict[str, Patch] = {
        SHARING: lambda module: _share_keys(module, kinds),
        LINEAR_4BIT: lambda module: _keep_packing(module, kinds),
        ACTIVATIONS: lambda module: _report_activations(module, kinds, count),
    }
    for name, layers in LAYERS.items():
        found[name] = partial(_report_layers, layers=layers, kinds=kinds, count=count)
    return found


def _set(owner: Any, name: str, value: Any) -> Undo:
    """Sets an attribute of a module or class; returns the function that undoes it."""
    own = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, own)


def _share_keys(module: Any, kinds: Collection[str]) -> Iterator[Undo]:
    """Patches `transformers` so that it does not repeat keys and values on ``kinds``."""
    own = getattr(module, "use_gqa_in_sdpa", None)
    if own is None:
        return

    def use_gqa_in_sdpa(attention_mask: Any, key: Any, *rest: Any, **how: Any) -> Any:
        return key.device.type in kinds or own(attention_mask, key, *rest, **how)

    yield _set(module, "use_gqa_in_sdpa", use_gqa_in_sdpa)


def _keep_packing(module: Any, kinds: Collection[str]) -> Iterator[Undo]:
    """Patches bitsandbytes so that calls of ``Linear4bit`` leave the weight as it is stored, where
    CPU tensors are served.
    """
    if "cpu" in kinds and hasattr(module, "_convert_weight_packed_for_cpu"):
        yield _set(module, "_convert_weight_packed_for_cpu", lambda data, state: (data, state))


def _report_activations(module: Any, kinds: Collection[str], count: Count) -> Iterator[Undo]:
    """Patches compressed-tensors so that layers report activations that they quantize."""
    own = getattr(module, "forward_quantize", None)
    if own is None:
        return

    @wraps(own)
    def forward_quantize(layer: Any, value: Any, base_name: str, args: Any) -> Any:
        if base_name != "weight" and value.device.type in kinds:
            count(f"compressed_tensors.{base_name}_activations", _COMPRESSED)
        return own(layer, value, base_name, args)

    yield _set(module, "forward_quantize", forward_quantize)


def _report_layers(
    module: Any, layers: Layers, kinds: Collection[str], count: Count
) -> Iterator[Undo]:
    """Patches a module so that calls of ``layers`` are reported, by library and class."""
    library = module.__name__.partition(".")[0]
    for name in layers.names:
        kind = getattr(module, name, None)
        if kind is not None:
            named = f"{library}.{name}"
            yield _set(kind, "forward", _reporting(kind.forward, named, layers, kinds, count))


def _reporting(own: Any, name: str, of: Layers, kinds: Collection[str], count: Count) -> Any:
    """Returns the method ``own`` of the layer ``name``, which reports a call before it runs."""

    @wraps(own)
    def forward(layer: Any, x: Any, *rest: Any, **how: Any) -> Any:
        coded = not of.dense or any(p.element_size() == 1 for p in layer.parameters())
        if coded and x.device.type in kinds:
            count(name, of.why)
        return own(layer, x, *rest, **how)

    return forward
