"""``ptxgen bench graph --only transformers``: unmodified models with random weights.

Each model runs a training step, a forward pass, and a decoding step with a static KV cache. Timings
of four variants alternate: stock PyTorch, stock ``torch.compile`` (``mode="reduce-overhead"`` when
decoding), :class:`ptxgen.torch.batch_invariant` and ``torch.compile(backend="ptxgen")``. Decoding
is also timed as CUDA graph replays, captured by the caller, of stock PyTorch and of the
``batch_invariant()`` block. Every result and gradient of the compiled model is compared bit for bit
with the block's.
"""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from ptxgen.bench import measure

SMALL: Mapping[str, Any] = MappingProxyType(
    {
        "vocab_size": 32000,
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "max_position_embeddings": 8192,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
)
"""Config values of the small models; :class:`Model` overrides some."""
EXPERTS: Mapping[str, Any] = MappingProxyType(
    {"num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 1408}
)
KEYS = 2048
"""Keys of each sequence in the KV cache when a token is decoded, the new token's included."""
DECODE_STEPS = 8
"""Number of tokens decoded one after the other, as in generation, before the next variant runs."""


@dataclass(frozen=True)
class Model:
    """A ``transformers`` model. ``prefix`` and ``head``: beginning and end of its class name;
    ``sizes``: config values besides :data:`SMALL`; ``attention``: name of its attention
    implementation.
    """

    prefix: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    attention: str = "sdpa"
    head: str = "ForCausalLM"
    steps: tuple[tuple[int, int], ...] = ((2, 777),)
    """Batches of training steps and forward passes, each (sequences, tokens a sequence)."""
    tokens: tuple[int, ...] = (1, 32)
    """Batch sizes of decoding, in sequences; each sequence gets one token."""


def _llama(hidden: int) -> Model:
    heads = hidden // 64
    sizes = {
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": max(heads // 4, 1),
    }
    return Model("Llama", sizes, steps=(), tokens=(1,))


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "Llama-8B": Model(
            "Llama",
            {
                "vocab_size": 128256,
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "head_dim": 128,
                "rope_theta": 500000.0,
            },
            steps=((1, 4096), (2, 777)),
        ),
        "GPT-2": Model("GPT2", {"n_embd": 768, "n_head": 12, "n_layer": 4}, head="LMHeadModel"),
        "Llama": Model("Llama"),
        "Qwen3": Model("Qwen3"),
        "Gemma": Model("Gemma"),
        "Mixtral": Model("Mixtral", EXPERTS),
        "Gemma 2": Model("Gemma2", {"sliding_window": 512}, "ptxgen"),
        "gpt-oss": Model("GptOss", {**EXPERTS, "sliding_window": 128}, "ptxgen"),
        "Phi 3": Model("Phi3"),
        "DeepSeek-V3": Model(
            "DeepseekV3",
            {
                "num_key_value_heads": 16,
                "kv_lora_rank": 256,
                "q_lora_rank": 384,
                "qk_rope_head_dim": 64,
                "qk_nope_head_dim": 128,
                "v_head_dim": 128,
                "head_dim": 64,
                "moe_intermediate_size": 512,
                "n_routed_experts": 16,
                "num_experts_per_tok": 4,
                "n_group": 4,
                "topk_group": 2,
                "first_k_dense_replace": 1,
            },
        ),
        **{f"Llama {hidden}": _llama(hidden) for hidden in (256, 512, 1024)},
    }
)


@dataclass(frozen=True)
class Measured:
    """Times, memory and bit comparison of one workload, by variant ("ours", "stock", "eager", ...).

    ``ms``: median times in ms on the host clock. ``mb``: peak memory above that allocated before,
    in MB. ``compared``: number of results and gradients that were compared with those of the
    ``batch_invariant()`` block; ``different``: names of those whose bits differ.
    """

    ms: Mapping[str, float]
    mb: Mapping[str, float]
    compared: int
    different: Sequence[str]


@dataclass(frozen=True)
class Work:
    """A workload: ``run(model)`` calls the model and returns results by name; ``reset`` restores
    the state that ``run`` changes.
    """

    run: Callable[[Callable[..., Any]], dict[str, Any]]
    reset: Callable[[], None] = lambda: None


class Shipped:
    """A ``transformers`` model with random weights, and the workloads that are timed on it."""

    def __init__(self, torch: Any, name: str, dtype: str = "bf16", device: str = "cuda") -> None:
        import transformers

        import ptxgen.torch as ours

        self.torch, self.ours, self.name, self.device = torch, ours, name, device
        self.transformers, self.model = transformers, MODELS[name]
        ours.register_attention()
        given = self.model
        self.config = getattr(transformers, f"{given.prefix}Config")(**{**SMALL, **given.sizes})
        self.config._attn_implementation = given.attention
        torch.manual_seed(0)
        before = torch.get_default_dtype()
        torch.set_default_dtype(measure.torch_dtype(torch, dtype))
        try:
            with torch.device(device):
                made = getattr(transformers, f"{given.prefix}{given.head}")(self.config)
        finally:
            torch.set_default_dtype(before)
        self.network = made.eval()

    def works(self) -> Iterator[tuple[str, Callable[[], Any], bool]]:
        """Yields each workload: name, function that makes it, and whether it decodes a token."""
        for sequences, length in self.model.steps:
            of = f"{sequences} x {length}"
            yield f"step {of}", partial(self.step, sequences, length), False
            yield f"forward {of}", partial(self.forward, sequences, length), False
        for sequences in self.model.tokens:
            yield f"token {sequences} x {KEYS}", partial(self.token, sequences), True

    def drawn(self, *size: int) -> Any:
        """Returns random token ids of shape ``size``, the same at each call."""
        random = self.torch.Generator(device=self.device).manual_seed(1)
        most = self.config.vocab_size
        return self.torch.randint(3, most, size, device=self.device, generator=random)

    def step(self, sequences: int, length: int, **given: Any) -> Work:
        """Returns the workload of a training step, whose results are loss, logits and gradients.

        ``given``: further arguments of the model's call.
        """
        ids = self.drawn(sequences, length)

        def work(call: Callable[..., Any]) -> dict[str, Any]:
            self.network.zero_grad(set_to_none=True)
            found = call(input_ids=ids, labels=ids, use_cache=False, **given)
            found.loss.backward()
            gradients = {
                n: p.grad for n, p in self.network.named_parameters() if p.grad is not None
            }
            return {"loss": found.loss.detach(), "logits": found.logits.detach(), **gradients}

        return Work(work)

    def forward(self, sequences: int, length: int, **given: Any) -> Work:
        """Returns the workload of a forward pass, whose result is the logits; ``given``: further
        arguments of the model's call.
        """
        ids = self.drawn(sequences, length)

        def work(call: Callable[..., Any]) -> dict[str, Any]:
            with self.torch.no_grad():
                return {"logits": call(input_ids=ids, use_cache=False, **given).logits}

        return Work(work)

    def token(self, sequences: int) -> Work:
        """Returns the workload that decodes one token a sequence at the last position of a static
        cache.
        """
        torch = self.torch
        cache = self.transformers.StaticCache(config=self.config, max_cache_len=KEYS)
        takes = inspect.signature(self.network.forward).parameters
        given = {"cache" if "cache" in takes else "past_key_values": cache}
        token = self.drawn(sequences, 1)
        with torch.no_grad(), self.ours.batch_invariant():
            self.network(input_ids=token, **given)
        random = torch.Generator(device=self.device).manual_seed(2)
        tensors = [
            (x, n, t) for x in cache.layers for n, t in vars(x).items() if torch.is_tensor(t)
        ]
        for _, name, kept in tensors:
            kept.fill_(KEYS) if name == "cumulative_length" else kept.normal_(generator=random)
        copies = [kept.clone() for _, _, kept in tensors]
        lengths = [kept for _, name, kept in tensors if name == "cumulative_length"]
        plain = [x for x in cache.layers if hasattr(x, "cumulative_length_int")]

        def reset() -> None:
            for (_, _, kept), copy in zip(tensors, copies, strict=True):
                kept.copy_(copy)

        def work(call: Callable[..., Any]) -> dict[str, Any]:
            with torch.no_grad():
                if lengths:
                    torch._foreach_sub_(lengths, 1)  # the token has the same place each time
                for layer in plain:
                    layer.cumulative_length_int = KEYS - 1
                return {"logits": call(input_ids=token, **given).logits}

        return Work(work, reset)

    def measured(self, work: Work, count: int, token: bool) -> Measured:
        """Compares the bits of ptxgen's compiled model with those in ``batch_invariant()``, then
        times all variants.

        ``count``: timed rounds; ``token``: whether ``work`` decodes a token, which is then also
        timed as a CUDA graph.
        """
        torch, ours = self.torch, self.ours
        torch._dynamo.reset()
        work.reset()
        with ours.batch_invariant():
            expected = {name: x.clone() for name, x in work.run(self.network).items()}
        variants: dict[str, tuple[Any, Callable[[], AbstractContextManager[Any]]]] = {}
        backend = ours.Backend(capture=token)
        variants["ours"] = torch.compile(self.network, backend=backend), nullcontext
        how = {"mode": "reduce-overhead"} if token else {}
        variants["stock"] = torch.compile(self.network, **how), nullcontext
        variants["eager"] = self.network, nullcontext
        variants["block"] = self.network, ours.batch_invariant
        different: set[str] = set()
        compared = len(expected)
        for _ in range(4 if token else 2):  # runs, records a CUDA graph, replays it
            work.reset()
            found = work.run(variants["ours"][0])
            different |= found.keys() ^ expected.keys()
            both = found.keys() & expected.keys()
            different |= {n for n in both if not torch.equal(found[n], expected[n])}
            del found
        del expected

        def turn(
            call: Callable[..., Any], block: Callable[[], AbstractContextManager[Any]]
        ) -> tuple[list[float], float]:
            with block():
                self.network.zero_grad(set_to_none=True)
                before = self._allocated(reset=True)
                run = partial(work.run, call)
                ms = [measure.host_ms(torch, run) for _ in range(DECODE_STEPS if token else 1)]
                return ms, (self._allocated() - before) / 1e6

        turns = {name: partial(turn, *way) for name, way in variants.items()}
        found = measure.alternate(turns, count, warm=3)
        taken = {name: [x for ms, _ in said for x in ms] for name, said in found.items()}
        most = {name: said[-1][1] for name, said in found.items()}
        self.network.zero_grad(set_to_none=True)
        if token and self.device == "cuda":
            taken |= self._replayed(work, variants, count)
        medians = {name: statistics.median(times) for name, times in taken.items()}
        return Measured(medians, most, compared, sorted(different))

    def _allocated(self, reset: bool = False) -> int:
        """Returns the peak bytes of GPU memory since the last reset (0 on a CPU).

        ``reset``: resets the peak first.
        """
        if self.device != "cuda":
            return 0
        if reset:
            self.torch.cuda.reset_peak_memory_stats()
        return int(self.torch.cuda.max_memory_allocated())

    def _replayed(
        self, work: Any, variants: Mapping[str, Any], count: int
    ) -> dict[str, list[float]]:
        """Captures ``work`` as CUDA graphs, outside and inside ``batch_invariant()``; returns the
        ms of ``count`` replays of each, by name.

        ``variants``: (model, context manager) by name; "eager" and "block" are captured. A variant
        that cannot be captured is omitted.
        """
        torch, graphs = self.torch, {}
        for name in ("eager", "block"):
            made = torch.cuda.CUDAGraph()
            try:
                with variants[name][1](), torch.cuda.graph(made):
                    work.run(self.network)
            except RuntimeError:
                continue
            graphs[f"{name}_graph"] = made
        calls = {n: partial(measure.host_ms, torch, made.replay) for n, made in graphs.items()}
        return measure.alternate(calls, count, warm=3)
