"""``ptxgen bench serving --bits``: log-probabilities of vLLM with the extension, and those of the
trainer, compared bit for bit.

A checkpoint of a small model with random weights is served by vLLM in mode ``strict``, with options
that change its batches: CUDA graphs, small batches of tokens, a prefix cache with so few pages that
requests are preempted. The model of `transformers` then computes the log-probabilities of the same
tokens, one sequence at a time, in ``batch_invariant()``: half of the replies in training mode with
gradients. Each model and engine runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ptxgen.bench import vllm_process
from ptxgen.bench.runner import Area, add_list
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.ui import note

REPLIES, TOKENS = 48, 48
"""Number of replies that are compared with the trainer's, and tokens of each."""
SHORTEST, LONGEST = 5, 301
"""Fewest and most tokens of a prompt."""
SHARED = 96
"""Tokens with which every third prompt begins, so that a prefix cache finds some."""
BESIDE = 31
"""Number of requests beside which request 0 is served again."""
VOCABULARY = 2048
MODES: Mapping[str, str] = MappingProxyType({"PTXGEN_VLLM": "strict", "VLLM_BATCH_INVARIANT": "0"})
"""Environment variables of a process."""


class Model(NamedTuple):
    """A configuration class of `transformers` without its suffix, and values that differ."""

    family: str
    values: Mapping[str, Any]

    @property
    def mixture(self) -> bool:
        """Whether the model has experts."""
        return "num_experts_per_tok" in self.values


def _model(family: str, **values: Any) -> Model:
    shared = {
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }
    return Model(family, MappingProxyType(shared | values))


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "Llama": _model("Llama"),
        "Qwen3": _model("Qwen3"),
        "Gemma-2": _model(
            "Gemma2", query_pre_attn_scalar=64, sliding_window=128, tie_word_embeddings=True
        ),
        "Mixtral": _model("Mixtral", num_local_experts=8, num_experts_per_tok=2),
        "gpt-oss": _model(
            "GptOss",
            intermediate_size=256,
            num_local_experts=8,
            num_experts_per_tok=4,
            sliding_window=128,
        ),
        "Qwen3-MoE": _model(
            "Qwen3Moe",
            moe_intermediate_size=128,
            num_experts=16,
            num_experts_per_tok=4,
            norm_topk_prob=True,
        ),
    }
)
"""Models by name: one of each family whose roundings the extension has."""


class Engine(NamedTuple):
    """Options of vLLM's ``LLM``, and the number of requests that are served together."""

    requests: int
    options: Mapping[str, Any]


_GRAPHS = {"cudagraph_capture_sizes": [1, 2, 4, 8, 16, 32, 64, 128, 256]}
ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        "graphs": Engine(256, MappingProxyType({"compilation_config": _GRAPHS})),
        "eager": Engine(
            REPLIES, MappingProxyType({"enforce_eager": True, "max_num_batched_tokens": 512})
        ),
        "pages": Engine(
            REPLIES,
            MappingProxyType(
                {
                    "compilation_config": _GRAPHS,
                    "enable_prefix_caching": True,
                    "num_gpu_blocks_override": 80,
                }
            ),
        ),
    }
)
"""Engines by name: CUDA graphs; no graphs and batches of up to 512 tokens; a prefix cache with 80
pages.
"""


class Case(NamedTuple):
    """Names of a model and of an engine."""

    model: str
    engine: str

    def __str__(self) -> str:
        return f"{self.model}, {self.engine}"


@dataclass(frozen=True)
class Row:
    """Comparison of one model in one engine: numbers of log-probabilities, and of those that differ
    in a bit: of replies and of one prompt, vLLM's and the trainer's; of request 0, whose tokens are
    counted, too, alone and beside others.

    ``runner``: vLLM's model runner, "V1" or "V2"; ``preempted``: number of preemptions, None if
    vLLM does not tell; ``cached``: tokens of prompts that came from the prefix cache.
    """

    model: str
    engine: str
    runner: str
    requests: int
    replies_differ: int
    replies: int
    prompt_differ: int
    prompt: int
    beside_differ: int
    beside: int
    preempted: int | None
    cached: int

    @property
    def differ(self) -> int:
        """Number of all values that differ."""
        return self.replies_differ + self.prompt_differ + self.beside_differ

    @property
    def reply_counts(self) -> str:
        """Values of replies that differ, of those compared, as text."""
        return f"{self.replies_differ} of {self.replies}"

    @property
    def prompt_counts(self) -> str:
        """Values of the prompt that differ, of those compared, as text."""
        return f"{self.prompt_differ} of {self.prompt}"

    @property
    def beside_counts(self) -> str:
        """Values of request 0 that differ, of those compared, as text."""
        return f"{self.beside_differ} of {self.beside}"


def differing(found: Sequence[float], expected: Sequence[float]) -> int:
    """Returns the number of values whose f32 bits differ. A NaN differs from all, itself too, and
    so does a value that is no f32. Raises PtxgenError for different numbers of values, and for
    none.
    """
    if len(found) != len(expected) or not len(found):
        raise PtxgenError(f"{len(found)} values beside {len(expected)}: nothing to compare")
    wide = [np.asarray(values, np.float64) for values in (found, expected)]
    with np.errstate(over="ignore"):
        narrow = [x.astype(np.float32) for x in wide]
    rounded = [x.astype(np.float64) != y for x, y in zip(narrow, wide, strict=True)]  # NaN, too
    a, b = (x.view(np.uint32) for x in narrow)
    return int(np.count_nonzero((a != b) | rounded[0] | rounded[1]))


# -- one model in one engine, in a process of its own ----------------------------------------
class Request(NamedTuple):
    """Tokens of a prompt; temperature and seed of a reply."""

    prompt: list[int]
    temperature: float
    seed: int


def requests(count: int) -> list[Request]:
    """Draws requests: prompts of :data:`SHORTEST` to :data:`LONGEST` tokens, of which request 1
    alone has the most. Even requests are sampled, odd ones greedy.
    """
    draw = random.Random(7)
    shared = [draw.randrange(10, VOCABULARY) for _ in range(SHARED)]
    found = []
    for i in range(count):
        length = LONGEST if i == 1 else draw.randrange(SHORTEST, LONGEST)
        begin = shared if i % 3 == 0 else []
        prompt = [*begin, *(draw.randrange(10, VOCABULARY) for _ in range(LONGEST))][:length]
        found.append(Request(prompt, 0.0 if i % 2 else 0.8, 1000 + i))
    return found


def serve(asked: str) -> None:
    """Serves a model in this process, and prints log-probabilities as JSON: those that vLLM and the
    trainer give, and what request 0 has in other batches. ``asked``: model, engine and number of
    replies to compare, as JSON.
    """
    given = json.loads(asked)
    model, engine = MODELS[given["model"]], ENGINES[given["engine"]]
    trained = make_model(model)
    with tempfile.TemporaryDirectory() as folder:
        trained.save_pretrained(folder)
        llm = _load(folder, engine)
    preempted = count_preemptions(llm)
    drawn = requests(engine.requests)
    served = reply(llm, drawn)
    found: dict[str, Any] = {
        "runner": "V2" if llm.llm_engine.vllm_config.use_v2_model_runner else "V1",
        "cached": sum(max(0, each.cached) for each in served),
        "preempted": preempted(),
        "beside": [
            reply(llm, drawn[:1])[0][:2],
            reply(llm, drawn[: 1 + BESIDE])[0][:2],
            reply(llm, [*drawn[1 : 1 + BESIDE], drawn[0]])[-1][:2],
        ],
        "first": served[0][:2],
    }
    logprobs = trainer(trained.to("cuda"))
    compared = list(zip(drawn, served, strict=True))[: given["replies"]]
    expected = []
    for i, (request, got) in enumerate(compared):
        values = logprobs([*request.prompt, *got.tokens], i % 4 < 2)  # of both kinds of requests
        expected.append(values[len(request.prompt) - 1 :])
        if got.prompt:
            found["prompt"] = [got.prompt, values[: len(request.prompt) - 1]]
    found["replies"] = [[got.logprobs for _, got in compared], expected]
    print(json.dumps(found), flush=True)


def make_model(model: Model) -> Any:
    """Returns a model of `transformers` in bfloat16, on the CPU, with ptxgen's attention and
    experts. Each weight is drawn by a generator that its name seeds.
    """
    import torch
    import transformers

    import ptxgen.torch as pt

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    pt.register_attention()
    how = {"dtype": torch.bfloat16, "attn_implementation": "ptxgen"}
    if model.mixture:
        pt.register_experts()
        how["experts_implementation"] = "ptxgen"
    config = getattr(transformers, f"{model.family}Config")(**model.values)
    made = transformers.AutoModelForCausalLM.from_config(config, **how)
    with torch.no_grad():
        for name, x in made.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            if "norm" in name:
                x.normal_(1.0, 0.1, generator=generator)
            else:
                x.normal_(0.0, 0.5 if x.dim() == 1 else x.shape[-1] ** -0.5, generator=generator)
    return made


def _load(folder: str, engine: Engine) -> Any:
    """Returns vLLM's engine for a checkpoint. Raises PtxgenError if vLLM did not load the extension
    into this process.
    """
    from vllm import LLM

    from ptxgen import engines

    made = LLM(
        **{
            "model": folder,
            "skip_tokenizer_init": True,
            "dtype": "bfloat16",
            "max_model_len": 384,
            "max_num_seqs": 256,
            "gpu_memory_utilization": 0.05,
            "kv_cache_memory_bytes": 1 << 30,
            "enable_prefix_caching": False,
            "seed": 0,
            **engine.options,
        }
    )
    if engines.report().mode != MODES["PTXGEN_VLLM"]:
        raise PtxgenError("vLLM has not loaded the extension: install ptxgen beside it")
    return made


class Reply(NamedTuple):
    """Tokens and raw log-probabilities of a reply; those of the prompt from its second token on,
    empty if they were not asked for; tokens of the prompt that came from the prefix cache.
    """

    tokens: list[int]
    logprobs: list[float]
    prompt: list[float]
    cached: int


def reply(llm: Any, asked: Sequence[Request]) -> list[Reply]:
    """Serves requests together; a prompt of :data:`LONGEST` tokens has log-probabilities, too."""
    from vllm import SamplingParams

    how = [
        SamplingParams(
            temperature=each.temperature,
            **({"seed": each.seed, "top_k": 200, "top_p": 0.95} if each.temperature else {}),
            max_tokens=TOKENS,
            ignore_eos=True,
            detokenize=False,
            logprobs=0,
            prompt_logprobs=0 if len(each.prompt) == LONGEST else None,
        )
        for each in asked
    ]
    prompts = [{"prompt_token_ids": each.prompt} for each in asked]
    return [
        Reply(
            list(out.outputs[0].token_ids),
            _of(out.outputs[0].token_ids, out.outputs[0].logprobs),
            _of(each.prompt[1:], (out.prompt_logprobs or [])[1:]),
            out.num_cached_tokens or 0,
        )
        for each, out in zip(asked, llm.generate(prompts, how, use_tqdm=False), strict=True)
    ]


def _of(tokens: Sequence[int], found: Sequence[Mapping[int, Any]]) -> list[float]:
    """Returns the log-probabilities of tokens from vLLM's dictionaries, if there are any."""
    return [by[token].logprob for token, by in zip(tokens, found, strict=True)] if found else []


def count_preemptions(llm: Any) -> Callable[[], int | None]:
    """Returns a function that returns the number of preemptions from now on; None if the scheduler
    is not of the version that is known.
    """
    core = getattr(llm.llm_engine.engine_core, "engine_core", None)
    scheduler: Any = getattr(core, "scheduler", None)
    if not hasattr(scheduler, "_preempt_request"):
        return lambda: None
    original = scheduler._preempt_request
    calls: list[None] = []

    def counted(*given: Any) -> Any:
        calls.append(None)
        return original(*given)

    scheduler._preempt_request = counted
    return lambda: len(calls)


def trainer(model: Any) -> Callable[[Sequence[int], bool], list[float]]:
    """Returns a function that computes the log-probabilities of a sequence's tokens from the second
    on, by ``model`` in ``batch_invariant()``; its second argument: in training mode, with gradients
    recorded.
    """
    import torch

    import ptxgen.torch as pt

    def logprobs(tokens: Sequence[int], training: bool) -> list[float]:
        ids = torch.tensor([tokens], device=model.device)
        places = torch.arange(len(tokens), device=model.device)[None]
        model.train(training)
        with pt.batch_invariant(), torch.set_grad_enabled(training):
            logits = model(ids, position_ids=places, use_cache=False).logits
            found = pt.token_logprobs(logits[:, :-1], ids[:, 1:])
        if found.requires_grad is not training:
            raise PtxgenError(f"gradients are recorded: {found.requires_grad}, not {training}")
        values: list[float] = found[0].tolist()
        return values

    return logprobs


# -- all models and engines -------------------------------------------------------------------
def compare(case: Case, replies: int) -> Row:
    """Runs :func:`serve` in a process of its own, and counts what differs."""
    asked = {**case._asdict(), "replies": replies}
    found = vllm_process.run(
        "serving_bits", asked, MODES, "vLLM", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1"
    )
    pairs = {"replies": list(zip(*found["replies"], strict=True)), "prompt": [found["prompt"]]}
    pairs["beside"] = [
        pair for other in found["beside"] for pair in zip(other, found["first"], strict=True)
    ]
    fields = {name: found[name] for name in ("runner", "preempted", "cached")}
    for name, of in pairs.items():
        fields[name] = sum(len(values) for values, _ in of)
        fields[f"{name}_differ"] = sum(differing(*pair) for pair in of)
    return Row(**case._asdict(), requests=ENGINES[case.engine].requests, **fields)


class Bits(Area):
    """Comparison ``ptxgen bench serving --bits``; its options are those of
    :class:`ptxgen.bench.serving.Serving`.
    """

    name = "serving"
    about = "Compares log-probabilities of vLLM with the extension with those of the trainer."
    row = Row
    columns = (
        *(("model", "model"), ("engine", "engine"), ("runner", "runner")),
        *(("requests", "requests"), ("replies differ", "reply_counts")),
        *(("prompt differs", "prompt_counts"), ("request 0 differs", "beside_counts")),
        *(("preempted", "preempted"), ("cached", "cached")),
    )

    @staticmethod
    def add_to(parser: ArgumentParser) -> None:
        """Adds the options that belong to this comparison."""
        parser.add_argument(
            "--bits",
            action="store_true",
            help="times nothing: compares log-probabilities of small models with the trainer's",
        )
        text = f"with --bits ({','.join(ENGINES)})"
        add_list(parser, "--engines", text, known=ENGINES)
        jobs = max(1, min(8, (os.cpu_count() or 1) // 2))
        parser.add_argument(
            "--jobs", type=int, help=f"processes at once, with --bits ({jobs} here)", default=jobs
        )

    def cases(self) -> list[Case]:
        if self.options.layers is not None or self.options.ways:
            raise OptionError("--bits takes neither --layers nor --ways")
        if self.options.jobs < 1:
            raise OptionError(f"--jobs is {self.options.jobs}; takes 1 or more")
        models = self.options.models or [*MODELS]
        if wrong := [name for name in models if name not in MODELS]:
            raise OptionError(f"--bits takes no model {wrong[0]}; takes {', '.join(MODELS)}")
        engines = self.options.engines or [*ENGINES]
        return [Case(model, engine) for model in models for engine in engines]

    def prepare(self, selected: Sequence[Case]) -> None:
        """Raises PtxgenError if a package is missing."""
        if missing := [name for name in ("vllm", "transformers") if find_spec(name) is None]:
            raise PtxgenError(f"--bits needs vLLM and transformers; missing: {', '.join(missing)}")

    def timed(self, selected: Sequence[Case]) -> Iterator[Row]:
        """Yields the rows of all cases, of which ``--jobs`` run at once."""
        replies = 12 if self.options.quick else REPLIES
        with ThreadPoolExecutor(self.options.jobs) as pool:
            self._found: dict[Case, Future[Row]] = {
                case: pool.submit(compare, case, replies) for case in selected
            }
            try:
                yield from super().timed(selected)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def rows(self, case: Case) -> list[Row]:
        row = self._found[case].result()
        note(f"{case}: {row.differ} of {row.replies + row.prompt + row.beside} values differ")
        return [row]

    def status(self, rows: Sequence[Row]) -> int:
        """Returns 1 if a value of a row differs."""
        return int(any(row.differ for row in rows))
