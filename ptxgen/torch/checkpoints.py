"""Loads quantized weights of checkpoints into a model: GGUF files, and folders of safetensors.

:func:`ptxgen.torch.convert` calls :func:`load`. Linear layers become
:class:`ptxgen.torch.QuantizedLinear`; all other tensors of a file are copied into the model's
parameters and buffers of their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from ptxgen.errors import CheckpointError, PtxgenError
from ptxgen.lazy import resolve
from ptxgen.numerics.formats.gguf import PACKINGS
from ptxgen.ops.checkpoint_weights import (
    from_awq,
    from_compressed_tensors,
    from_fp8,
    from_gptq,
    from_nvfp4,
)
from ptxgen.ops.quantized_weight import QuantizedWeight, dequantize, from_gguf
from ptxgen.torch.experts import PROJECTIONS, QuantizedExperts
from ptxgen.torch.module import Conversion, QuantizedLinear
from ptxgen.torch.unserved import W8A8

Tensors = Mapping[str, torch.Tensor]
Reader = Callable[[Tensors, tuple[int, int]], QuantizedWeight | None]
"""Function that makes a weight of a layer's tensors and its shape (N, K), or returns None if it is
not quantized."""
GGUF_NAMES = ("llama", "qwen2", "qwen3", "phi3")
"""Architectures of GGUF files whose tensors are those of the model, apart from their names and
llama's order of rows."""


def load(
    model: torch.nn.Module, path: str | PathLike[str], accumulate: str, skip: Collection[str]
) -> Conversion:
    """Loads a checkpoint into ``model``, in place: see :func:`ptxgen.torch.convert`.

    Raises CheckpointError for a path, a file or a scheme that cannot be read, before the model is
    changed.
    """
    path = Path(path)
    if path.is_dir():
        source: _Source = _Folder(path)
    elif path.suffix == ".gguf" and path.is_file():
        source = _Gguf(path, model)
    else:
        raise CheckpointError(f"weights is {str(path)!r}; takes a .gguf file or a folder")
    if any(parameter.is_meta for parameter in model.parameters()):
        raise CheckpointError("the model is on the device 'meta'; make it on the one it runs on")
    done, layers = Conversion(), dict(model.named_modules())
    found: dict[str, tuple[torch.nn.Linear, QuantizedWeight]] = {}
    experts: dict[str, tuple[torch.nn.Module, dict[str, QuantizedWeight]]] = {}
    for name, module in layers.items():
        linear = type(module) is torch.nn.Linear
        if not linear and not source.has_experts(name):
            continue
        if any(fnmatchcase(name, pattern) for pattern in skip):
            done.skipped[name] = "skip says so"
            continue
        if not linear:
            experts[name] = module, source.experts(name, module)
            continue
        q = source.weight(name, (module.out_features, module.in_features))
        if q is not None:
            if (q.n, q.k) != (module.out_features, module.in_features):
                raise CheckpointError(
                    f"the weight of {name} is [{q.n}, {q.k}]; the layer takes "
                    f"[{module.out_features}, {module.in_features}]"
                )
            found[name] = module, q
    rest = source.tensors(model, found)
    for name, (module, q) in found.items():
        own = _moved(q, module.weight.device).prepared()
        QuantizedLinear._replace(module, own, accumulate)
        done.converted.append(name)
    for name, (module, weights) in experts.items():
        on = {n: module.get_parameter(n).device for n in weights}
        QuantizedExperts._replace(module, {n: _moved(q, on[n]) for n, q in weights.items()})
        done.converted.append(name)
    with torch.no_grad():
        for own, tensor in rest:
            own.copy_(tensor)
    done.missing = sorted(source.missing(model))
    done.unused = sorted(source.unused())
    return done


def _moved(q: QuantizedWeight, device: torch.device) -> QuantizedWeight:
    """Returns a weight with its arrays on ``device``."""
    arrays = [None if a is None else a.to(device) for a in q.operands]
    return QuantizedWeight(q.format, *arrays, shape=(q.n, q.k))


class _Source:
    """A checkpoint. Names of tensors that the model takes are kept in ``taken``."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.loaded: set[str] = set()

    def weight(self, name: str, shape: tuple[int, int]) -> QuantizedWeight | None:
        """Returns the quantized weight of the layer ``name``, or None if it has none."""
        raise NotImplementedError

    def has_experts(self, name: str) -> bool:
        """Returns whether the checkpoint has quantized weights of the experts ``name``."""
        return False

    def experts(self, name: str, module: torch.nn.Module) -> dict[str, QuantizedWeight]:
        """Returns the quantized weights of the experts ``name`` by the names of
        :data:`PROJECTIONS`. Raises CheckpointError if they do not fit ``module``.
        """
        raise NotImplementedError

    def names(self) -> Collection[str]:
        """Returns the names of all tensors, as the model has them where they are known."""
        raise NotImplementedError

    def is_whole(self, name: str) -> bool:
        """Returns whether a tensor has numbers by itself, without scales in other tensors."""
        return True

    def tensor(self, name: str) -> torch.Tensor:
        """Returns a tensor that is not quantized, or dequantizes it."""
        raise NotImplementedError

    def tensors(
        self, model: torch.nn.Module, found: Collection[str]
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Returns the model's parameters and buffers that the checkpoint has, with the values;
        weights of the layers ``found`` are left out. Raises CheckpointError for another shape.
        """
        pairs, names = [], self.names()
        for name, own in (*model.named_parameters(), *model.named_buffers()):
            layer, _, last = name.rpartition(".")
            if name not in names:
                continue
            if last == "weight" and (layer in found or not self.is_whole(name)):
                continue
            tensor = self.tensor(name)
            if tensor.shape != own.shape:
                raise CheckpointError(
                    f"{name} of the checkpoint has shape {list(tensor.shape)}; the model's has "
                    f"{list(own.shape)}"
                )
            self.taken.add(name)
            self.loaded.add(name)
            pairs.append((own, tensor))
        return pairs

    def missing(self, model: torch.nn.Module) -> Iterator[str]:
        """Yields the names of parameters for which the checkpoint has nothing."""
        tied = {id(p) for name, p in model.named_parameters() if name in self.loaded}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if name not in self.loaded and id(parameter) not in tied:
                yield name

    def unused(self) -> set[str]:
        """Returns the names of tensors that nothing took."""
        return set(self.names()) - self.taken


class _Folder(_Source):
    """A folder with ``config.json`` and files of safetensors, quantized by AWQ, GPTQ,
    compressed-tensors, in FP8 or in MXFP4 (gpt-oss), as ``quantization_config`` says.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        try:
            config = json.loads((path / "config.json").read_text())
            how = config.get("quantization_config") or config["compression_config"]
            method = how["quant_method"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{path} has no config.json with a quantization_config ({error})"
            ) from error
        files = sorted(path.glob("*.safetensors"))
        if not files:
            raise CheckpointError(f"{path} has no files of safetensors")
        self._files: dict[str, Any] = {}
        for file in files:
            try:
                opened = _package("safetensors:safe_open")(file, "pt")
                self._files |= dict.fromkeys(opened.keys(), opened)
            except PtxgenError:
                raise
            except Exception as error:  # safetensors' own class, and OSError
                raise CheckpointError(f"{file} cannot be read: {error}") from error
        self._read = reader(method, how)
        self._mxfp4 = method == "mxfp4"

    def has_experts(self, name: str) -> bool:
        return self._mxfp4 and any(f"{name}.{p}_{_BLOCKS}" in self._files for p in PROJECTIONS)

    def experts(self, name: str, module: torch.nn.Module) -> dict[str, QuantizedWeight]:
        if why := QuantizedExperts.misfit(module):
            raise CheckpointError(f"the experts {name} are quantized, but the module {why}")
        found = {}
        for projection in PROJECTIONS:
            keys = [f"{name}.{projection}_{last}" for last in (_BLOCKS, "scales")]
            for key in keys:
                if key not in self._files:
                    raise CheckpointError(f"the experts {name}: there is no {key}")
            blocks, scales = (self._files[key].get_tensor(key) for key in keys)
            own = module.get_parameter(projection)
            experts, n, k = (own.mT if module.is_transposed else own).shape
            takes = experts, n, k // 32, 16
            if blocks.shape != takes or scales.shape != takes[:3] or k % 32:
                raise CheckpointError(
                    f"{keys[0]} and {keys[1]} have shapes {list(blocks.shape)} and "
                    f"{list(scales.shape)}; the experts take {list(takes)} and {list(takes[:3])}"
                )
            rows = experts * n
            arrays = blocks.reshape(rows, -1), scales.reshape(rows, -1)
            try:
                found[projection] = QuantizedWeight("mxfp4", *arrays, shape=(rows, k))
            except PtxgenError as error:
                raise CheckpointError(f"{keys[0]}: {error}") from error
            self.taken |= {*keys}
        return found

    def weight(self, name: str, shape: tuple[int, int]) -> QuantizedWeight | None:
        own = {
            key.removeprefix(f"{name}."): key for key in self._files if key.startswith(f"{name}.")
        }
        given = {last: self._files[key].get_tensor(key) for last, key in own.items() if last in ALL}
        try:
            q = self._read(given, shape)
        except PtxgenError as error:
            raise CheckpointError(f"the weight of {name}: {error}") from error
        if q is not None:
            self.taken |= {own[last] for last in given}
        return q

    def names(self) -> Collection[str]:
        return self._files.keys()

    def is_whole(self, name: str) -> bool:
        layer = name.rpartition(".")[0]
        return not any(f"{layer}.{last}" in self._files for last in _SCALES)

    def tensor(self, name: str) -> torch.Tensor:
        found: torch.Tensor = self._files[name].get_tensor(name)
        return found


ALL = (
    *("qweight", "qzeros", "scales", "g_idx", "weight", "weight_scale", "weight_scale_inv"),
    *("weight_packed", "weight_shape", "weight_zero_point", "weight_g_idx", "weight_global_scale"),
)
"""Last parts of the names of a quantized layer's tensors."""
_BLOCKS = "blocks"
"""Ending of the names of experts' codes in MXFP4."""
_SCALES = ("scales", "weight_scale", "weight_scale_inv")
"""Last parts of names of tensors that only quantized layers have."""


def reader(method: str, how: Mapping[str, Any]) -> Reader:
    """Returns the function that makes weights, for a ``quant_method`` and its options. Raises
    CheckpointError for one that is not read.
    """
    try:
        return _reader(method, how)
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"quantization_config cannot be read: {error!r}") from error


def _reader(method: str, how: Mapping[str, Any]) -> Reader:
    """Returns the function that makes weights; raises as :func:`reader`, or KeyError, TypeError or
    AttributeError for options of another form.
    """

    def takes(name: str, value: Any, *taken: Any) -> None:
        if value not in taken:
            raise CheckpointError(
                f"{name} of quantization_config is {value!r}; {method} takes "
                f"{', '.join(map(repr, taken))}"
            )

    if method == "awq":
        takes("version", str(how.get("version", "gemm")).lower(), "gemm")
        takes("bits", how.get("bits", 4), 4)
        return _of("qweight", lambda t, _: from_awq(t["qweight"], t["qzeros"], t["scales"]))
    if method == "gptq":
        bits, version = how.get("bits", 4), how.get("checkpoint_format", "gptq")
        takes("bits", bits, 2, 3, 4, 8)
        takes("checkpoint_format", version, "gptq", "gptq_v2")
        ordered = bool(how.get("desc_act", False))

        def gptq(t: Tensors, _: tuple[int, int]) -> QuantizedWeight:
            if ordered and "g_idx" not in t:
                raise CheckpointError("desc_act is set, but there is no g_idx")
            options = {"bits": bits, "version": version}
            return from_gptq(t["qweight"], t["qzeros"], t["scales"], t.get("g_idx"), **options)

        return _of("qweight", gptq)
    if method == "compressed-tensors":
        return _compressed(how, takes)
    if method == "fp8":
        high, wide = how.get("weight_block_size") or (128, 128)
        block = int(high), int(wide)
        scale = "weight_scale_inv"
        return _of(scale, lambda t, _: from_fp8(t["weight"], t[scale], block=block))
    if method == "mxfp4":
        return lambda tensors, _: None  # of experts only
    raise CheckpointError(
        f"quant_method of quantization_config is {method!r}; takes 'awq', 'gptq', "
        "'compressed-tensors', 'fp8', 'mxfp4'"
    )


_FORMATS = {
    "pack-quantized": ("int", (4, 8)),
    "float-quantized": ("float", (8,)),
    "naive-quantized": ("float", (8,)),
    "nvfp4-pack-quantized": ("float", (4,)),
}
"""Formats of compressed-tensors that are read, with the type and bits of their codes."""


def _compressed(how: Mapping[str, Any], takes: Callable[..., None]) -> Reader:
    """Returns the function that makes weights of a compressed-tensors checkpoint. ``takes``: raises
    CheckpointError for an option of another value.
    """
    format = how.get("format")
    takes("format", format, *_FORMATS)
    takes("transform_config", how.get("transform_config") or None, None)
    kind, sizes = _FORMATS[str(format)]
    groups = how["config_groups"].values()
    for group in groups:
        for name in "input_activations", "output_activations":
            if (given := group.get(name)) is not None:
                raise CheckpointError(f"{name} of quantization_config is {given!r}, but {W8A8}")
        weights = group["weights"]
        takes("format", group.get("format") or format, format)
        takes("type", weights.get("type", kind), kind)
        takes("num_bits", weights["num_bits"], *sizes)
        takes("actorder", weights.get("actorder"), None, "static", "weight")
    widths = sorted({group["weights"]["num_bits"] for group in groups})
    if len(widths) != 1:
        raise CheckpointError(f"num_bits of quantization_config are {widths}; takes one number")
    if format == "nvfp4-pack-quantized":
        names = "weight_packed", "weight_scale", "weight_global_scale"
        return _of("weight_packed", lambda t, _: from_nvfp4(*(t[name] for name in names)))
    if kind == "float":
        return _of("weight_scale", lambda t, _: from_fp8(t["weight"], t["weight_scale"]))

    def packed(t: Tensors, shape: tuple[int, int]) -> QuantizedWeight:
        given = t["weight_packed"], t["weight_scale"], t.get("weight_zero_point")
        return from_compressed_tensors(*given, shape=shape, bits=widths[0])

    return _of("weight_packed", packed)


def _of(first: str, make: Reader) -> Reader:
    """Returns ``make``, for layers that have the tensor ``first``; None for others. Raises
    CheckpointError where another tensor is missing.
    """

    def read(tensors: Tensors, shape: tuple[int, int]) -> QuantizedWeight | None:
        if first not in tensors:
            return None
        try:
            return make(tensors, shape)
        except KeyError as error:
            raise CheckpointError(f"there is no {error.args[0]} beside {first}") from error

    return read


def _package(home: str) -> Any:
    """Returns an object of an optional package; raises CheckpointError if it is not installed."""
    try:
        return resolve(home)
    except ImportError as error:
        package = home.partition(":")[0]
        raise CheckpointError(f"weights needs the package {package}: {error}") from error


class _Gguf(_Source):
    """A GGUF file, whose tensors have the model's names, or those of a known architecture."""

    def __init__(self, path: Path, model: torch.nn.Module) -> None:
        super().__init__()
        gguf = _package("gguf")
        try:
            reader = gguf.GGUFReader(path)
        except Exception as error:  # a file that is cut or malformed fails in many ways
            raise CheckpointError(f"{path} cannot be read: {error}") from error
        held = {tensor.name: tensor for tensor in reader.tensors}
        field = reader.get_field("general.architecture")
        self._architecture = str(field.contents()) if field else ""
        self._heads = {
            kind: int(found.contents())
            if (found := reader.get_field(f"{self._architecture}.{key}"))
            else 0
            for kind, key in (("q", "attention.head_count"), ("k", "attention.head_count_kv"))
        }
        own = [
            name
            for name, _ in (*model.named_parameters(remove_duplicate=False), *model.named_buffers())
        ]
        self._held: dict[str, Any] = {name: held[name] for name in own if name in held}
        if not self._held:
            self._held = self._mapped(gguf, held, own, model)
        self._rest = set(held) - {tensor.name for tensor in self._held.values()}
        for name, tensor in self._held.items():
            kind = tensor.tensor_type.name
            if kind not in _PLAIN and kind.lower() not in PACKINGS:
                takes = ", ".join((*_PLAIN, *map(str.upper, PACKINGS)))
                raise CheckpointError(f"{name} ({tensor.name}) has type {kind}; takes {takes}")

    def _mapped(
        self, gguf: Any, held: Mapping[str, Any], own: Collection[str], model: torch.nn.Module
    ) -> dict[str, Any]:
        """Returns the file's tensors by the names that the architecture's have in the model."""
        known = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
        if self._architecture not in GGUF_NAMES:
            raise CheckpointError(
                f"the file's architecture is {self._architecture!r}, and no tensor has a name of "
                f"the model; takes {', '.join(map(repr, GGUF_NAMES))}"
            )
        layers = sum(1 for name, _ in model.named_modules() if re.search(r"\.layers\.\d+$", name))
        names = gguf.get_tensor_name_map(known[self._architecture], layers)
        found = {name: names.get_name(name, try_suffixes=(".weight", ".bias")) for name in own}
        return {name: held[there] for name, there in found.items() if there in held}

    def _rows(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the rows of a tensor in the model's order: llama's files have the rows of
        queries and keys of each head in pairs of halves.
        """
        kind = re.search(r"\.([qk])_proj\.(weight|bias)$", name)
        if self._architecture != "llama" or kind is None or self._held[name].name == name:
            return tensor
        heads = self._heads[kind[1]] or self._heads["q"]
        pairs = tensor.reshape(heads, -1, 2, *tensor.shape[1:])
        return pairs.transpose(1, 2).reshape(tensor.shape)

    def weight(self, name: str, shape: tuple[int, int]) -> QuantizedWeight | None:
        key = f"{name}.weight"
        tensor = self._held.get(key)
        if tensor is None or tensor.tensor_type.name in _PLAIN:
            return None
        self.taken.add(key)
        return self._quantized(key, tensor)

    def _quantized(self, name: str, tensor: Any) -> QuantizedWeight:
        """Returns a quantized tensor of the file, as a matrix."""
        *lead, k = map(int, reversed(tensor.shape.tolist()))
        rows = prod(lead)
        data = torch.from_numpy(tensor.data.reshape(rows, -1).copy())
        try:
            return from_gguf(self._rows(name, data), tensor.tensor_type.name, (rows, k))
        except PtxgenError as error:
            raise CheckpointError(f"{name}: {error}") from error

    def names(self) -> Collection[str]:
        return self._held.keys()

    def unused(self) -> set[str]:
        return super().unused() | self._rest

    def tensor(self, name: str) -> torch.Tensor:
        held = self._held[name]
        shape = [int(n) for n in reversed(held.shape.tolist())]
        if held.tensor_type.name not in _PLAIN:
            return dequantize(self._quantized(name, held)).reshape(shape)
        data = torch.from_numpy(held.data.copy())
        if held.tensor_type.name == "BF16":
            data = data.view(torch.bfloat16)
        return self._rows(name, data.reshape(shape))


_PLAIN = ("F32", "F16", "BF16", "F64")
"""GGUF types of floats."""
