"""``ptxgen bench serving``: vLLM with the extension, as it comes, and with its batch-invariant
mode.

A model has the sizes of a known one and random weights. Each way to serve it runs in a process of
its own, one after the other: throughput of 64 requests, their prefill, and time between tokens of
requests that are all past their prefill. Before that, each process compares request 0 alone with
request 0 beside others, token by token and log-probability by log-probability.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ptxgen.bench import as_shipped, vllm_process
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.runner import Area, add_list
from ptxgen.bench.serving_bits import MODELS as SMALL
from ptxgen.bench.serving_bits import Bits
from ptxgen.errors import OptionError
from ptxgen.ui import note

REQUESTS, PROMPT, TOKENS = 64, 512, 64
"""Number of requests of the throughput, and tokens of a prompt and of a reply."""
CONTEXT, TOGETHER = 2048, (1, 32, 128)
"""Tokens of a prompt, and numbers of requests, of which times between tokens are taken."""
WARM, STEPS = 8, 64
"""Tokens of each request before the timed ones, and of one timing."""
REPEATS = 5
LONGEST = 4096
"""Most tokens of a request."""


@dataclass(frozen=True)
class Model:
    """A model's architecture, number of layers, and the other values of its configuration."""

    architecture: str
    layers: int
    sizes: Mapping[str, Any]


def _model(architecture: str, layers: int, **sizes: Any) -> Model:
    shared = {
        "head_dim": 128,
        "num_attention_heads": 32,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 8192,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    return Model(architecture, layers, MappingProxyType(shared | sizes))


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "Llama-8B": _model(
            "LlamaForCausalLM",
            32,
            model_type="llama",
            **as_shipped.MODELS["Llama-8B"].sizes,
        ),
        "Qwen3-30B-A3B": _model(
            "Qwen3MoeForCausalLM",
            48,
            model_type="qwen3_moe",
            hidden_size=2048,
            intermediate_size=6144,
            moe_intermediate_size=768,
            num_experts=128,
            num_experts_per_tok=8,
            norm_topk_prob=True,
            decoder_sparse_step=1,
            mlp_only_layers=[],
            num_key_value_heads=4,
            vocab_size=151936,
            rope_theta=1000000.0,
        ),
    }
)
"""Models by name."""
WAYS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "ours": {"PTXGEN_VLLM": "on", "VLLM_BATCH_INVARIANT": "0"},
        "stock": {"PTXGEN_VLLM": "off", "VLLM_BATCH_INVARIANT": "0"},
        "invariant": {"PTXGEN_VLLM": "off", "VLLM_BATCH_INVARIANT": "1"},
    }
)
"""Ways to serve a model, by name, and their environment variables."""


@dataclass(frozen=True)
class Row:
    """Times of one work of one model, medians in ms: ``ours_ms`` with the extension, ``stock_ms``
    without, ``invariant_ms`` with ``VLLM_BATCH_INVARIANT=1``; 0 for a way that was not run.

    ``same``: ways in which request 0 had the same tokens and log-probabilities in every batch.
    ``ours_pages``, ``stock_pages``: pages of the KV cache that fitted into memory; 0: not known.
    """

    model: str
    layers: int
    work: str
    ours_ms: float
    stock_ms: float
    invariant_ms: float
    same: Sequence[str]
    ours_pages: int = 0
    stock_pages: int = 0

    @property
    def ratio(self) -> float:
        """Stock's time / ours; 0 if either was not taken."""
        return self.stock_ms / self.ours_ms if self.ours_ms else 0.0

    @property
    def invariant_ratio(self) -> float:
        """Time of vLLM's batch-invariant mode / ours; 0 if either was not taken."""
        return self.invariant_ms / self.ours_ms if self.ours_ms else 0.0


# -- one way, in a process of its own -------------------------------------------------------
def serve(asked: str) -> None:
    """Serves a model in this process, and prints as JSON: times in ms by work, whether request 0
    had the same bits in every batch, and the number of pages of the KV cache. ``asked``: model,
    layers and repeats, as JSON.
    """
    given = json.loads(asked)
    began = time.perf_counter()
    llm = _load(MODELS[given["model"]], given["layers"])
    times = {"start": 1e3 * (time.perf_counter() - began)}
    vocabulary = MODELS[given["model"]].sizes["vocab_size"]
    same = is_invariant(partial(_replies, llm), partial(_prompts, vocabulary))
    for name, work in _work(llm, vocabulary, given["repeats"]).items():
        times[name] = statistics.median(work())
    pages = llm.llm_engine.vllm_config.cache_config.num_gpu_blocks
    print(json.dumps({"times": times, "same": same, "pages": pages}), flush=True)


def _load(model: Model, layers: int) -> Any:
    """Returns vLLM's engine for a model with weights drawn by the names of its parameters."""
    from vllm import LLM
    from vllm.model_executor.model_loader.dummy_loader import DummyModelLoader

    DummyModelLoader.load_weights = lambda self, module, config: draw_weights(module)
    with tempfile.TemporaryDirectory() as folder:
        config = {"architectures": [model.architecture], "num_hidden_layers": layers, **model.sizes}
        (Path(folder) / "config.json").write_text(json.dumps(config))
        return LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=LONGEST,
            gpu_memory_utilization=0.85,
            enable_prefix_caching=False,
            max_num_seqs=256,
            seed=0,
        )


def draw_weights(module: Any) -> None:
    """Draws the weights of a model: each from a generator that its name seeds, so that all ways to
    serve it have the same.
    """
    import torch

    with torch.no_grad():
        for name, x in module.state_dict().items():
            if not torch.is_floating_point(x) or x.device.type == "meta":
                continue
            if "rotary_emb" in name or "inv_freq" in name:  # tables, not weights
                continue
            generator = torch.Generator(device=x.device).manual_seed(zlib.crc32(name.encode()))
            scale = 1.0 if "embed_tokens" in name else 0.1 if "norm" in name else 0.02
            x.normal_(1.0 if "norm" in name else 0.0, scale, generator=generator)


def _prompts(vocabulary: int, count: int, length: int, seed: int) -> list[list[int]]:
    import torch

    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(10, vocabulary, (count, length), generator=generator)
    return [row.tolist() for row in drawn]


def _options(count: int, logprobs: int | None = None) -> Any:
    from vllm import SamplingParams

    return SamplingParams(
        temperature=0.0, max_tokens=count, ignore_eos=True, detokenize=False, logprobs=logprobs
    )


def _replies(llm: Any, prompts: Sequence[Sequence[int]], count: int) -> list[tuple[Any, Any]]:
    """Returns tokens and log-probabilities of ``count`` tokens for each prompt."""
    given = [{"prompt_token_ids": p} for p in prompts]
    outputs = [o.outputs[0] for o in llm.generate(given, _options(count, 0), use_tqdm=False)]
    return [
        (list(o.token_ids), [d[t].logprob for t, d in zip(o.token_ids, o.logprobs, strict=True)])
        for o in outputs
    ]


def is_invariant(replies: Callable[..., Any], prompts: Callable[..., Any]) -> bool:
    """Whether request 0 has the same tokens and log-probabilities alone, first of 2, 8, 32 and 64
    requests, and last of 64 of different lengths.

    ``replies(prompts, count)`` serves requests together; ``prompts(count, length, seed)`` draws
    them.
    """
    (first,) = prompts(1, PROMPT, 1)
    others = prompts(REQUESTS - 1, PROMPT, 2)
    ragged = [p[: 17 + 7 * i] for i, p in enumerate(others)]
    (alone,) = replies([first], TOKENS)
    batches = [[first, *others[:n]] for n in (1, 7, 31, 63)]
    same = all(replies(batch, TOKENS)[0] == alone for batch in batches)
    return bool(same and replies([*ragged, first], TOKENS)[-1] == alone)


def _work(llm: Any, vocabulary: int, repeats: int) -> dict[str, Callable[[], list[float]]]:
    """Returns calls by work; each returns ``repeats`` times in ms."""
    prompts = partial(_prompts, vocabulary)

    def generate(count: int) -> list[float]:
        return [once(count) for _ in range(repeats)]

    def once(count: int) -> float:
        given = [{"prompt_token_ids": p} for p in prompts(REQUESTS, PROMPT, time.time_ns() % 1000)]
        began = time.perf_counter()
        llm.generate(given, _options(count), use_tqdm=False)
        return 1e3 * (time.perf_counter() - began)

    def tokens(together: int) -> list[float]:
        drawn = prompts(together, CONTEXT, time.time_ns() % 1000)
        return [1e3 * s for s in between_tokens(llm.llm_engine, drawn, _options, repeats)]

    work: dict[str, Callable[[], list[float]]] = {
        f"{REQUESTS} x ({PROMPT} + {TOKENS})": partial(generate, TOKENS),
        f"prefill {REQUESTS} x {PROMPT}": partial(generate, 1),
    }
    for n in TOGETHER:
        work[f"between tokens, {n} x {CONTEXT}"] = partial(tokens, n)
    return work


def between_tokens(
    engine: Any,
    prompts: Sequence[Sequence[int]],
    options: Callable[[int], Any],
    repeats: int,
) -> list[float]:
    """Returns seconds between two tokens of a request, while all requests decode: ``repeats``
    times, each over :data:`STEPS` tokens of every request, after :data:`WARM`.

    ``options(count)``: sampling parameters for ``count`` tokens.
    """
    made: dict[str, int] = {}  # tokens by request
    for i, prompt in enumerate(prompts):
        # More tokens than are timed, so that no request ends before the others are timed.
        how = options(WARM + (repeats + 1) * STEPS)
        engine.add_request(f"{i} of {time.time_ns()}", {"prompt_token_ids": prompt}, how)

    def until(least: int) -> tuple[float, int]:
        while len(made) < len(prompts) or min(made.values()) < least:
            for output in engine.step():
                made[output.request_id] = len(output.outputs[0].token_ids)
        return time.perf_counter(), sum(made.values())

    marks = [until(WARM + i * STEPS) for i in range(repeats + 1)]
    engine.abort_request(list(made))
    while engine.has_unfinished_requests():
        engine.step()
    return [
        (end - begin) * len(made) / (last - first)
        for (begin, first), (end, last) in pairwise(marks)
    ]


# -- all ways -------------------------------------------------------------------------------
def run_way(way: str, model: str, layers: int, repeats: int) -> dict[str, Any]:
    """Returns what :func:`serve` prints, from a process with the environment of ``way``. Raises
    PtxgenError if the process fails.
    """
    cache = os.path.join(tempfile.gettempdir(), f"ptxgen-serving-{way}")
    asked = {"model": model, "layers": layers, "repeats": repeats}
    found: dict[str, Any] = vllm_process.run(
        "serving", asked, WAYS[way], f"{model}, {way}", VLLM_CACHE_ROOT=cache
    )
    return found


class Serving(Area):
    """Benchmark ``ptxgen bench serving``: vLLM with the extension, without it, and with its own
    batch-invariant mode. A case is a name of :data:`MODELS`.
    """

    name = "serving"
    about = (
        "Times a model with random weights, served by vLLM with ptxgen's extension, as vLLM comes, "
        "and with VLLM_BATCH_INVARIANT=1; each in a process of its own, medians of five. Compares "
        "request 0 alone with request 0 in batches before. With --bits compares log-probabilities "
        "of small models with the trainer's instead: the exit status is 1 if one differs. Needs "
        "vLLM."
    )
    row = Row
    columns = (
        *(("model", "model"), ("layers", "layers"), ("work", "work"), ("ours, ms", "ours_ms:.2f")),
        *(("vLLM", "stock_ms:.2f"), ("invariant", "invariant_ms:.2f")),
        *(("vLLM / ours", "ratio:.3f"), ("invariant / ours", "invariant_ratio:.2f")),
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        text = f"({','.join(MODELS)}; with --bits {','.join(SMALL)})"
        add_list(parser, "--models", text, known=(*MODELS, *SMALL))
        add_list(parser, "--ways", known=WAYS)
        parser.add_argument("--layers", type=int, help="number of layers (those of the model)")
        Bits.add_to(parser)

    def run(self) -> int:
        if self.options.bits:
            return Bits(self.options, self.torch, self.device).run()
        return super().run()

    def cases(self) -> list[str]:
        if self.options.engines:
            raise OptionError("--engines is for --bits")
        models = self.options.models or [*MODELS]
        if wrong := [name for name in models if name not in MODELS]:
            raise OptionError(f"only --bits takes a model {wrong[0]}; takes {', '.join(MODELS)}")
        if self.options.layers is not None and self.options.layers < 1:
            raise OptionError(f"--layers is {self.options.layers}; takes 1 or more")
        return list(models)

    def rows(self, case: str) -> Iterator[Row]:
        layers = self.options.layers or MODELS[case].layers
        repeats = 1 if self.options.quick else REPEATS
        found: dict[str, Any] = {}
        for way in self.options.ways or WAYS:
            found[way] = run_way(way, case, layers, repeats)
            if way == "ours" and not found[way]["same"]:
                raise WrongBitsError(f"{case}: request 0 depends on other requests")
            shown = (f"{work} {ms:.2f} ms" for work, ms in found[way]["times"].items())
            note(f"{case}, {way}: {'; '.join(shown)}")
        same = [way for way, of in found.items() if of["same"]]
        pages = [found[way]["pages"] if way in found else 0 for way in ("ours", "stock")]
        empty = Row(case, layers, "", 0.0, 0.0, 0.0, same, *pages)
        for work in next(iter(found.values()))["times"]:
            times = {f"{way}_ms": of["times"][work] for way, of in found.items()}
            yield replace(empty, work=work, **times)


main, _parser = Serving.main, Serving.parser
