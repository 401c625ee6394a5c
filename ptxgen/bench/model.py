"""``ptxgen bench model``: a small Llama, stock and in ``ptxgen.torch.batch_invariant``.

The model is plain PyTorch with random weights, so it runs wherever torch does. Before timing,
logits and generated tokens of smaller batches are compared bit for bit with the whole batch.
"""

from __future__ import annotations

import contextlib
import copy
import statistics
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ptxgen import arguments
from ptxgen.bench import measure, results
from ptxgen.bench.runner import Area
from ptxgen.ui import emit, table


@dataclass(frozen=True)
class Shape:
    """Sizes of a Llama, and of the benchmark: ``batch`` prompts of ``length`` tokens, after each of
    which ``new`` tokens are generated. ``inner``: width of the MLP.
    """

    layers: int = 8
    hidden: int = 2048
    heads: int = 32
    kv_heads: int = 8
    inner: int = 5632
    vocabulary: int = 32000
    batch: int = 32
    length: int = 200
    new: int = 24
    dtype: str = "bf16"
    attention: str = "eager"
    """Implementation of attention: "eager" (products and a softmax) or "sdpa" (one operator)."""


LLAMA_8B = Shape(
    layers=4,
    hidden=4096,
    heads=32,
    kv_heads=8,
    inner=14336,
    vocabulary=1024,
    batch=1,
    length=4096,
    attention="sdpa",
)
"""Four layers with the sizes of a Llama of 8 billion parameters, and a small vocabulary."""


class Llama:
    """A Llama with random weights: RMS norm, rotary embedding, grouped-query attention, SwiGLU."""

    def __init__(self, torch: Any, shape: Shape, device: str = "cuda") -> None:
        self.torch, self.shape, self.device = torch, shape, device
        random = torch.Generator(device=device).manual_seed(0)
        dtype = measure.torch_dtype(torch, shape.dtype)

        def weight(n: int, k: int) -> Any:
            values = torch.randn(n, k, device=device, generator=random)
            return (values * k**-0.5).to(dtype)

        h, width = shape.hidden, shape.hidden // shape.heads
        kv = shape.kv_heads * width
        self.width = width
        self.embedding = weight(shape.vocabulary, h) * h**0.5
        self.head = weight(shape.vocabulary, h)
        ones = torch.ones(h, device=device, dtype=dtype)
        self.norm = ones
        self.layers = [
            {
                "norm": ones,
                "q": weight(h, h),
                "k": weight(kv, h),
                "v": weight(kv, h),
                "o": weight(h, h),
                "norm2": ones,
                "gate": weight(shape.inner, h),
                "up": weight(shape.inner, h),
                "down": weight(h, shape.inner),
            }
            for _ in range(shape.layers)
        ]
        powers = torch.arange(0, width, 2, device=device) / width
        self.frequencies = 10000.0**-powers

    def weights(self) -> list[Any]:
        """Returns all weight tensors, each once."""
        kept = [self.embedding, self.head, *(w for layer in self.layers for w in layer.values())]
        return list({id(w): w for w in kept}.values())

    def drawn(self, *size: int) -> Any:
        """Returns random token ids of shape ``size``, the same at each call."""
        random = self.torch.Generator(device=self.device).manual_seed(1)
        most = self.shape.vocabulary
        return self.torch.randint(most, size, device=self.device, generator=random)

    def _rms(self, x: Any, weight: Any) -> Any:
        wide = x.float()
        wide = wide * self.torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * wide.to(x.dtype)

    def _rotated(self, x: Any, cos: Any, sin: Any) -> Any:
        a, b = x.chunk(2, -1)
        return x * cos + self.torch.cat((-b, a), -1) * sin

    def __call__(self, tokens: Any, cache: list[Any] | None = None) -> Any:
        """Returns logits [batch, length, vocabulary]; appends keys and values to ``cache`` if
        given.
        """
        torch, s = self.torch, self.shape
        functional = torch.nn.functional
        x = functional.embedding(tokens, self.embedding)
        batch, length = tokens.shape
        past = cache[0][0].shape[2] if cache else 0
        at = torch.arange(past, past + length, device=self.device)
        angles = at[:, None] * self.frequencies[None]
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        keys = torch.arange(past + length, device=self.device)
        if s.attention == "eager":
            mask = torch.where(keys[None] <= at[:, None], 0.0, float("-inf")).to(x.dtype)
        causal = {"is_causal": True} if length > 1 else {}  # also works with symbolic sizes
        groups = s.heads // s.kv_heads
        for i, w in enumerate(self.layers):
            y = self._rms(x, w["norm"])
            q, k, v = (
                functional.linear(y, w[n]).unflatten(-1, (-1, self.width)).transpose(1, 2)
                for n in "qkv"
            )
            q, k = self._rotated(q, cos, sin), self._rotated(k, cos, sin)
            if cache is not None:
                k, v = self.extend_cache(cache, i, k, v)
            if s.attention == "sdpa":
                fused = functional.scaled_dot_product_attention
                y = fused(q, k, v, enable_gqa=True, **causal)
            else:
                k, v = (t.repeat_interleave(groups, 1) for t in (k, v))
                scores = q @ k.transpose(-1, -2) * self.width**-0.5 + mask
                weights = torch.softmax(scores, -1, dtype=torch.float32).to(x.dtype)
                y = weights @ v
            y = y.transpose(1, 2).reshape(batch, length, -1)
            x = x + functional.linear(y, w["o"])
            y = self._rms(x, w["norm2"])
            gate = functional.silu(functional.linear(y, w["gate"]))
            x = x + functional.linear(gate * functional.linear(y, w["up"]), w["down"])
        return functional.linear(self._rms(x, self.norm), self.head)

    def loss(self, tokens: Any, targets: Any) -> Any:
        """Returns the mean cross-entropy of the logits of ``tokens`` and ``targets``."""
        logits = self(tokens).flatten(0, 1).float()
        return self.torch.nn.functional.cross_entropy(logits, targets)

    def extend_cache(self, cache: list[Any], i: int, k: Any, v: Any) -> tuple[Any, Any]:
        """Appends ``k`` and ``v`` to the cache of layer ``i``; returns all its keys and values."""
        if i < len(cache):
            k, v = (self.torch.cat(pair, 2) for pair in zip(cache[i], (k, v), strict=True))
            cache[i] = k, v
        else:
            cache.append((k, v))
        return k, v

    def generate(self, tokens: Any, count: int) -> tuple[Any, Any]:
        """Decodes ``count`` tokens greedily after the prompts ``tokens``.

        Returns the tokens, [batch, count], and the first sequence's logits, [count, vocabulary].
        """
        cache: list[Any] = []
        found, first = [], []
        logits = self(tokens, cache)[:, -1]
        for _ in range(count):
            token = logits.argmax(-1, keepdim=True)
            found.append(token)
            first.append(logits[0])
            logits = self(token, cache)[:, -1]
        return self.torch.cat(found, 1), self.torch.stack(first)

    def module(self) -> Any:
        """Returns the model as an ``nn.Module`` with its weights as buffers, for ``export``."""
        nn, whole, names = self.torch.nn, self, ("embedding", "head", "norm", "frequencies")

        class Module(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                for name in names:
                    self.register_buffer(name, getattr(whole, name))
                self.layers = nn.ModuleList(nn.Module() for _ in whole.layers)
                for layer, weights in zip(self.layers, whole.layers, strict=True):
                    for name, weight in weights.items():
                        layer.register_buffer(name, weight)

            def forward(self, tokens: Any) -> Any:
                own = copy.copy(whole)
                for name in names:
                    setattr(own, name, getattr(self, name))
                own.layers = [
                    dict(layer.named_buffers(remove_duplicate=False)) for layer in self.layers
                ]
                return own(tokens)

        return Module()


class Static(Llama):
    """A Llama with a static KV cache; each token's keys and values overwrite the last position."""

    def reserve(self, sequences: int, keys: int) -> list[Any]:
        """Returns a pair of random KV caches for each layer, each [sequences, kv_heads, ``keys``,
        head dimension]; the model then writes to their last position.
        """
        torch, how = self.torch, {"device": self.device}
        self.position = torch.full((1,), keys - 1, dtype=torch.int64, **how)
        size = sequences, self.shape.kv_heads, keys, self.width
        caches = [torch.randn(size, dtype=self.norm.dtype, **how) for _ in 2 * self.layers]
        return list(zip(caches[::2], caches[1::2], strict=True))

    def extend_cache(self, cache: list[Any], i: int, k: Any, v: Any) -> tuple[Any, Any]:
        """Writes ``k`` and ``v`` to the last position of layer ``i``'s caches; returns these."""
        for kept, new in zip(cache[i], (k, v), strict=True):
            kept.index_copy_(2, self.position, new)
        keys, values = cache[i]
        return keys, values


@dataclass(frozen=True)
class Row:
    """Result of one variant of the model: stock, ptxgen's, or another library's mode.

    ``forward_ms``, ``token_ms``: medians of a forward pass and of a generated token. The counts are
    differences in bits between smaller batches and the whole batch. ``positions``: positions of the
    forward pass whose logits differ; ``logits``: generated tokens of the first sequence whose
    logits differ; ``tokens``: generated tokens of the first sequence that differ. All three are 0
    if the variant is batch-invariant.
    """

    name: str
    forward_ms: float
    token_ms: float
    tokens_per_second: float
    positions: int
    logits: int
    tokens: int


def blocks(torch: Any) -> dict[str, Callable[[], Any]]:
    """Returns context managers by variant: stock, ptxgen, and batch_invariant_ops if installed."""
    import ptxgen.torch

    found: dict[str, Callable[[], Any]] = {
        "stock": contextlib.nullcontext,
        "ptxgen": ptxgen.torch.batch_invariant,
    }
    with contextlib.suppress(ImportError):
        from batch_invariant_ops import set_batch_invariant_mode

        found["batch_invariant_ops"] = set_batch_invariant_mode
    return found


def rows(torch: Any, shape: Shape, count: int = 7) -> list[Row]:
    """Runs the model in each of :func:`blocks`: compares bits between batches, then times all
    variants alternately, ``count`` times each. Returns a row for each variant.
    """
    model = Llama(torch, shape)
    tokens = model.drawn(shape.batch, shape.length)
    variants = blocks(torch)
    differ = {}
    works: tuple[Callable[[], Any], ...] = (
        lambda: model(tokens),
        lambda: model(tokens, []),
        lambda: model.generate(tokens, shape.new),
    )
    with torch.no_grad():
        for name, block in variants.items():
            with block():
                differ[name] = _differ(model, tokens, shape.new)
        times = measure.alternate(
            {name: partial(_ms, torch, block, works) for name, block in variants.items()}, count
        )
    found = []
    for name in variants:
        forward, prefill, all_ = map(statistics.median, zip(*times[name], strict=True))
        speed = 1e3 * shape.batch * shape.length / forward
        token = (all_ - prefill) / shape.new
        found.append(Row(name, forward, token, speed, *differ[name]))
    return found


def _ms(torch: Any, block: Callable[[], Any], works: Sequence[Callable[[], Any]]) -> list[float]:
    with block():
        return [measure.host_ms(torch, work) for work in works]


def _differ(model: Llama, tokens: Any, count: int) -> tuple[int, int, int]:
    """Returns ``positions``, ``logits`` and ``tokens`` of :class:`Row`: bit differences in batches
    of 1, 2 and half the sequences ``tokens``; ``count``: tokens to generate.
    """
    fewer = sorted({1, 2, len(tokens) // 2} - {0})
    whole = model(tokens)
    positions = sum(int((model(tokens[:m]) != whole[:m]).any(-1).sum()) for m in fewer)
    del whole
    chosen, logits = model.generate(tokens, count)
    steps = others = 0
    for m in fewer:
        one, those = model.generate(tokens[:m], count)
        steps += int((those != logits).any(-1).sum())
        others += int((one[0] != chosen[0]).sum())
    return positions, steps, others


class Model(Area):
    """Benchmark ``ptxgen bench model``: a Llama in stock PyTorch, in ``batch_invariant()``, and in
    the mode of batch_invariant_ops if installed; a row for each.
    """

    name = "model"
    about = (
        "Times a small Llama of random weights: stock PyTorch, in "
        "ptxgen.torch.batch_invariant(), and in batch_invariant_ops' mode where it is installed."
    )
    row = Row

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        default = Shape()
        for name in SIZES:
            usual = getattr(default, name)
            parser.add_argument(f"--{name}", type=int, default=usual, help="(%(default)s)")
        arguments.add_dtype(parser, ("bf16", "f16", "f32"))
        parser.add_argument(
            "--attention", choices=("eager", "sdpa"), default="eager", help="(%(default)s)"
        )

    def cases(self) -> list[Shape]:
        names = (*SIZES, "dtype", "attention")
        return [Shape(**{name: getattr(self.options, name) for name in names})]

    def rows(self, case: Shape) -> list[Row]:
        return rows(self.torch, case, 3 if self.options.quick else 7)

    def show(self, rows: Sequence[Row], runs: Sequence[results.Environment]) -> None:
        stock = rows[0]
        lines = [
            (r.name, f"{r.forward_ms:.2f}", f"{r.forward_ms / stock.forward_ms:.2f}",
             f"{r.token_ms:.2f}", f"{r.token_ms / stock.token_ms:.2f}",
             f"{r.tokens_per_second:.0f}", str(r.positions), str(r.logits), str(r.tokens))
            for r in rows
        ]  # fmt: skip
        header = (
            *("way", "forward ms", "/ stock", "ms a token", "/ stock", "tokens/s"),
            *("positions that differ", "steps", "tokens"),
        )
        emit(table(lines, header))


SIZES = ("layers", "batch", "length", "new")
main, _parser = Model.main, Model.parser
