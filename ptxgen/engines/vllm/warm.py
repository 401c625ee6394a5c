"""Kernels that vLLM needs for a model, found from the model's configuration alone.

The layers of :mod:`ptxgen.engines.layers` are called as the extension calls them, for each number
of tokens, with tensors that have shapes but no memory (:mod:`ptxgen.engines.kernels`). Neither
vLLM, nor weights, nor a GPU is needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch

import ptxgen.torch as pt
from ptxgen.engines import layers
from ptxgen.engines.kernels import problems
from ptxgen.engines.vllm.families import FAMILIES, Family
from ptxgen.engines.vllm.quantized import checkpoint_fault
from ptxgen.errors import CheckpointError, OptionError, PtxgenError
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.formats import format_named
from ptxgen.ops.quantized_weight import zeros
from ptxgen.program.launch import kernels_of
from ptxgen.runtime.compiling import CompilingDevice
from ptxgen.runtime.registry import META
from ptxgen.spec import KernelSpec, Problem
from ptxgen.torch.checkpoints import reader
from ptxgen.torch.functional import multiplied

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
"""Dtypes of models, by name."""
CAPTURED = (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16))
"""Numbers of tokens for which vLLM captures CUDA graphs."""
PREFILLS = tuple(1 << i for i in range(10, 18))
"""Numbers of tokens of larger batches. Products are chosen for those between them, too."""
STEP = 8
"""Tiles of products have multiples of so many rows."""
BLOCK = 128
"""Rows N of the small weight [N, K] that stands for a quantized checkpoint's, a multiple of all
blocks; also K where only the format is asked for."""
PAGES = 1 << 15
"""Number of pages of the cache; a real one is as large as memory is."""


class Limits(NamedTuple):
    """Limits of the engine, by vLLM's names."""

    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256
    max_model_len: int | None = None
    block_size: int = 16

    @property
    def tokens(self) -> tuple[int, ...]:
        """Numbers of tokens of batches: those of graphs, and larger ones up to the maximum."""
        most = self.max_num_batched_tokens
        return (*(n for n in (*CAPTURED, *PREFILLS) if n < most), most)

    @property
    def rows(self) -> tuple[int, ...]:
        """Numbers of requests whose next tokens are drawn at once."""
        most = min(self.max_num_seqs, self.max_num_batched_tokens)
        return (*(n for n in CAPTURED if n < most), most)


@dataclass(frozen=True)
class Model:
    """Sizes of a model, read from its configuration, ``given``: that of `transformers`, as JSON.

    Raises OptionError for a configuration without a size that is needed.
    """

    given: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Model:
        """Reads the ``config.json`` of a folder, or a file. Raises OptionError if there is none."""
        file = path / "config.json" if path.is_dir() else path
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OptionError(f"{file} is no configuration of a model: {error}") from None
        if not isinstance(found, dict):
            raise OptionError(f"{file} is no configuration of a model: it has no names")
        text = found.get("text_config") or {}
        return cls({**found, **text})

    def size(self, *names: str) -> int:
        """Returns the first of the entries ``names`` that is there; OptionError if none is."""
        for name in names:
            found = self.given.get(name)
            if isinstance(found, int) and found > 0:
                return found
        raise OptionError(f"the configuration has no {' or '.join(names)}")

    @property
    def kind(self) -> str:
        """Model type, such as "llama"."""
        return str(self.given.get("model_type", ""))

    @property
    def family(self) -> Family:
        """Family of the model type; of another one than those in FAMILIES, that of a Llama."""
        return FAMILIES.get(self.kind, Family())

    @property
    def head(self) -> int:
        """Head dimension of attention."""
        found = self.given.get("head_dim")
        return found or self.size("hidden_size") // self.size("num_attention_heads")

    @property
    def experts(self) -> int:
        """Number of experts; 0 if the model has none."""
        found = (self.given.get(name) for name in ("num_local_experts", "num_experts"))
        return next((n for n in found if n), 0)

    @property
    def activation(self) -> str:
        """Activation of gated layers, by the name in `transformers`."""
        found = self.given.get("hidden_activation") or self.given.get("hidden_act") or ""
        return self.family.experts_activation or str(found)

    @property
    def quantization(self) -> Mapping[str, Any]:
        """Options by which the checkpoint's weights are quantized; empty if they are not."""
        return self.given.get("quantization_config") or {}

    def dtype(self, name: str | None = None) -> torch.dtype:
        """Returns the dtype ``name``, short or full; by default that of the configuration."""
        found = name or self.given.get("dtype") or self.given.get("torch_dtype") or "bfloat16"
        found = FULL.get(found, found)
        if found not in DTYPES:
            raise OptionError(f"dtype is {found!r}; takes {', '.join(DTYPES)}")
        return DTYPES[found]

    def left(self) -> list[tuple[str, str]]:
        """Returns the parts whose kernels are not found, and why."""
        found = []
        if self.kind not in FAMILIES:
            why = f"it is read as that of a Llama; those of {', '.join(FAMILIES)} were compared"
            found.append((f"model type {self.kind!r}", why))
        if self.quantization:
            try:
                _format(json.dumps(self.quantization), BLOCK, self.dtype())
            except PtxgenError as error:
                found.append(("linear layers", f"their weights are quantized: {error}"))
            if self.experts:
                found.append(("experts", "their weights are quantized, so vLLM multiplies"))
        if self.experts and not self.family.router:
            served = ", ".join(kind for kind, of in FAMILIES.items() if of.router)
            found.append(("mixture of experts", f"takes {served}"))
        if self.activation not in layers.ACTIVATIONS:
            found.append(("gated activation", f"{self.activation!r} is not served"))
        found.append(("top log-probabilities, k > 1", "the kernel depends on k"))
        return found


class Call(NamedTuple):
    """A call of a layer: its operation, and the function that makes it.

    ``tokens``: numbers of tokens of the batches that the call stands for, in descending order;
    ``make`` calls the layer with the first.
    """

    operation: str
    make: Callable[[], Any]
    tokens: range = range(0)

    def problems(self, made: Problem) -> Iterator[Problem]:
        """Yields the problem ``made``, which the call prepared. If its M is a multiple of the
        number of tokens, yields it with the M of each other number of tokens, too.
        """
        yield made
        values = dict(made.values)
        if len(self.tokens) > 1 and "M" in values and values["M"] % self.tokens[0] == 0:
            each = values["M"] // self.tokens[0]
            for tokens in self.tokens[1:]:
                yield replace(made, values=tuple({**values, "M": each * tokens}.items()))


def find_kernels(
    model: Model, device: CompilingDevice, limits: Limits | None = None, dtype: str | None = None
) -> tuple[dict[str, dict[str, KernelSpec]], list[tuple[str, str]]]:
    """Returns the kernels that a model's layers and its sampler need on a GPU: for each operation
    the kernels by name; and the parts whose kernels were not found, each with a reason.
    """
    limits, kind = limits or Limits(), model.dtype(dtype)
    left = dict(model.left())
    found: dict[str, dict[str, KernelSpec]] = {}
    with device.opened(), torch.no_grad():
        for call in _calls(model, limits, kind):
            try:
                made = list(problems(call.make, device))
            except PtxgenError as error:
                left.setdefault(call.operation, str(error))
                continue
            specs = found.setdefault(call.operation, {})
            for one, forced in made:
                for problem in call.problems(one):
                    specs.update((s.name, s) for s in kernels_of(problem, device, forced))
    return found, list(left.items())


def _calls(model: Model, limits: Limits, dtype: torch.dtype) -> Iterator[Call]:
    yield Call("rotary_table", partial(_table, model, limits, dtype))
    for before, tokens in pairwise((0, *limits.tokens)):
        between = range(tokens, before, -STEP)
        for call in _layer(model, limits, dtype, tokens):
            yield call._replace(tokens=between)
    for rows in limits.rows:
        yield from _next_tokens(model, dtype, rows)


def _empty(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=META)


def _table(model: Model, limits: Limits, dtype: torch.dtype) -> torch.Tensor:
    """Makes the table of cos and sin of all positions, as the loading of a model does."""
    partly = (model.given.get("rope_parameters") or {}).get("partial_rotary_factor") or 1.0
    frequencies = _empty(int(model.head * partly) // 2, dtype=torch.float32)
    positions = limits.max_model_len or model.size("max_position_embeddings")
    return layers.rotary_table(frequencies, 1.0, positions, dtype=dtype)


def _layer(model: Model, limits: Limits, dtype: torch.dtype, tokens: int) -> Iterator[Call]:
    """Yields the calls of a decoder layer for a batch of so many tokens."""
    of, new, family = model.size, partial(_empty, dtype=dtype), model.family
    hidden, head = of("hidden_size"), model.head
    heads = of("num_attention_heads")
    shared = of("num_key_value_heads", "num_attention_heads")
    biased = bool(model.given.get("attention_bias"))
    x, weight = new(tokens, hidden), new(hidden)
    norm = partial(layers.rms_norm, x, weight, 1e-6, style=family.norm)
    yield Call("rms_norm", norm)
    yield Call("rms_norm", partial(norm, x))

    width = (heads + 2 * shared) * head
    yield from _product(model, x, width, biased)
    yield from _product(model, new(tokens, heads * head), hidden, biased)
    by_head = new(tokens, width).view(tokens, -1, head)  # queries, keys and values
    q, k = by_head[:, :heads], by_head[:, heads : heads + shared]
    norms = (new(head), new(head)) if family.normed_attention else None
    table = _table(model, limits, dtype)
    positions = _empty(tokens, dtype=torch.int64)
    yield Call("rotary", partial(layers.rotary, positions, q, k, table, norms=norms, out=(q, k)))
    yield from _attention(model, limits, q, (shared, head))
    yield from _feed_forward(model, x)


# -- products -----------------------------------------------------------------------------------
def _product(model: Model, x: torch.Tensor, n: int, biased: bool) -> Iterator[Call]:
    """Yields the product of ``x`` [M, K] by a weight [N, K] of the model, quantized as its
    checkpoint's are; nothing for one that is not read.
    """
    k, new = x.shape[-1], partial(_empty, dtype=x.dtype)
    bias = new(n) if biased else None
    try:
        name = _format(json.dumps(model.quantization), k, model.dtype())
    except PtxgenError:
        return
    if name:
        arrays = zeros(format_named(name), (n, k), {"device": META})
        yield Call("quantized_linear", partial(multiplied, x, arrays, bias, name))
    else:
        yield Call("linear", partial(pt.linear, x, new(n, k), bias))


@cache
def _format(quantization: str, k: int, dtype: torch.dtype) -> str:
    """Returns the name of the format that weights [N, K] of a checkpoint get; empty if they are not
    quantized. It is that of a small weight of zeros, read as the checkpoint is. ``quantization``:
    its options, as JSON; ``dtype``: that of its scales.

    Raises CheckpointError, ShapeError or OptionError for weights that are not read.
    """
    options = json.loads(quantization)
    if not options:
        return ""
    if why := checkpoint_fault(options):
        raise CheckpointError(why)
    read = reader(str(options.get("quant_method")), options)
    try:
        tensors = _tensors(options, k, dtype)
    except (KeyError, TypeError, StopIteration) as error:
        raise CheckpointError(f"quantization_config cannot be read: {error!r}") from error
    q = read(tensors, (BLOCK, k))
    return "" if q is None else q.prepared().format.name


def _tensors(options: Mapping[str, Any], k: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Returns tensors of zeros, as a checkpoint has them for a weight [:data:`BLOCK`, K]."""
    method, n = options["quant_method"], BLOCK
    if method == "fp8":
        high, wide = options["weight_block_size"]
        scales = torch.zeros(-(-n // high), -(-k // wide))
        weight = torch.zeros(n, k, dtype=torch.float8_e4m3fn)
        return {"weight": weight, "weight_scale_inv": scales}
    words = partial(torch.zeros, dtype=torch.int32)
    if method == "compressed-tensors":
        how = next(iter(options["config_groups"].values()))["weights"]
        bits, groups = how["num_bits"], k // _group(how.get("group_size"), k)
        packed = {"weight_packed": words(n, k * bits // 32)}
        if not how.get("symmetric", True):
            packed["weight_zero_point"] = words(n * bits // 32, groups)
        return {**packed, "weight_scale": torch.zeros(n, groups, dtype=dtype)}
    if method not in ("awq", "gptq"):
        return {}
    bits = options.get("bits", 4)
    group = _group(options.get("group_size", options.get("q_group_size")), k)
    shape = (k, n * bits // 32) if method == "awq" else (k * bits // 32, n)
    index = torch.arange(k, dtype=torch.int32) // group
    return {
        "qweight": words(*shape),
        "qzeros": words(k // group, n * bits // 32),
        "scales": torch.zeros(k // group, n, dtype=dtype),
        "g_idx": index.flip(0) if options.get("desc_act") else index,
    }


def _group(size: int | None, k: int) -> int:
    """Returns the number of elements that share a scale: ``size``, or K if it is none or -1."""
    return k if size is None or size < 1 else size


def _attention(
    model: Model, limits: Limits, q: torch.Tensor, sizes: tuple[int, int]
) -> Iterator[Call]:
    """Yields attention over pages: of requests with a token each, and of one with all tokens.
    ``sizes``: number of key heads, and head dimension.
    """
    shared, head = sizes
    context = limits.max_model_len or model.size("max_position_embeddings")
    tokens, heads = q.shape[:2]
    pages = _empty(PAGES, limits.block_size, shared, 2 * head, dtype=q.dtype)
    cache = pages.split(head, dim=-1)
    window = model.given.get("sliding_window") if model.family.windows else None
    sinks = _empty(heads, dtype=q.dtype) if model.family.sinks else None
    how = {"softcap": model.given.get("attn_logit_softcapping"), "sinks": sinks}
    whole = partial(_empty, dtype=torch.int32)
    for requests in dict.fromkeys((min(tokens, limits.max_num_seqs), 1)):
        table = whole(requests, -(-context // limits.block_size))
        places = whole(requests + 1), whole(requests), table
        for each in dict.fromkeys((None, window)):
            out = _empty(*q.shape, dtype=q.dtype)
            given = {**how, "scale": head**-0.5, "window": each, "out": out}
            yield Call("attention", partial(pt.paged_attention, q, cache, *places, **given))


def _feed_forward(model: Model, x: torch.Tensor) -> Iterator[Call]:
    """Yields the gated layer behind attention, or the mixture of experts."""
    (tokens, hidden), of = x.shape, model.size
    new = partial(_empty, dtype=x.dtype)
    served = model.activation in layers.ACTIVATIONS
    if not model.experts:
        inner = of("intermediate_size")
        biased = bool(model.given.get("mlp_bias"))
        yield from _product(model, x, 2 * inner, biased)
        yield from _product(model, new(tokens, inner), hidden, biased)
        if served:
            gated = partial(layers.gated, new(tokens, 2 * inner), model.activation)
            yield Call("gated", gated)
        return
    family = model.family
    if not family.router:
        return
    count, chosen = model.experts, of("num_experts_per_tok", "experts_per_token")
    inner, biased = of("moe_intermediate_size", "intermediate_size"), family.experts_biased
    gate = new(count, hidden), new(count) if biased else None
    yield Call("linear", partial(pt.linear, x, *gate))
    scores = new(tokens, count)
    yield Call("router", partial(layers.router, scores, chosen, style=family.router))
    if served and not model.quantization:
        kind = torch.float32 if family.router == "mixtral" else x.dtype
        places = _empty(tokens, chosen, dtype=torch.int32)
        given = [x, _empty(tokens, chosen, dtype=kind), places]
        given += [new(count, 2 * inner, hidden), new(count, hidden, inner)]
        given += [new(count, 2 * inner), new(count, hidden)] if biased else []
        yield Call("experts", partial(layers.experts, *given, activation=model.activation))


def _next_tokens(model: Model, dtype: torch.dtype, rows: int) -> Iterator[Call]:
    """Yields the LM head, draws and log-probabilities of so many requests."""
    hidden, vocabulary = model.size("hidden_size"), model.size("vocab_size")
    new = partial(_empty, dtype=dtype)
    yield Call("linear", partial(pt.linear, new(rows, hidden), new(vocabulary, hidden)))
    logits = new(rows, vocabulary)
    if cap := model.given.get("final_logit_softcapping"):
        yield Call("softcapped", partial(layers.softcapped, logits, cap))
    yield Call("sample", partial(pt.sample, logits))
    settings: dict[str, Any] = {
        **{n: _empty(rows, dtype=torch.float32) for n in ("temperature", "top_p", "min_p")},
        **{n: _empty(rows, dtype=torch.int64) for n in ("seed", "offset")},
        "top_k": _empty(rows, dtype=torch.int32),
    }
    yield Call("sample", partial(pt.sample, logits, **settings))
    ids = _empty(rows, dtype=torch.int64)
    yield Call("token_logprobs", partial(pt.token_logprobs, logits, ids))
    yield Call("log_softmax", partial(pt.log_softmax, logits.to(torch.float32), -1))
    yield Call("topk", partial(pt.topk, logits, 1))
