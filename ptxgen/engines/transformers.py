"""Continuous batching of `transformers` whose requests have the bits of each request alone.

``generate_batch`` of a model batches requests anew for each forward pass, cuts prompts into chunks,
and shares pages of equal prefixes. While :func:`serve` is open for a model,

- its operators are those of :class:`ptxgen.torch.batch_invariant`, and its attention, registered by
  :func:`ptxgen.torch.register_attention`, attends to the keys of each request in their order;
- a token is drawn by :func:`ptxgen.torch.sample` with the seed of its request and its position, in
  place of one generator for the whole batch, and has the log-probability of ``log_softmax``.

So tokens and log-probabilities of a request do not depend on other requests, on the sizes of
batches and chunks, or on preemption, and the log-probabilities are those that the model computes
for the same tokens in the block.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module, metadata
from typing import Any, Final

import torch

import ptxgen.torch as pt
from ptxgen.errors import EngineError, OptionError, described
from ptxgen.runtime import default_device, use_device
from ptxgen.torch import models

VERSIONS: Final = (5, 17), (6, 0)
"""First version of `transformers` that is served, and the first that is not."""
_BATCHING: Final = "transformers.generation.continuous_batching"
_API: Final = f"{_BATCHING}.continuous_api"
_PROCESSORS: Final = f"{_BATCHING}.cb_logits_processors"
HOOKS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    (_API, "ContinuousMixin.init_continuous_batching"): (
        "self generation_config continuous_batching_config workload_hints",
    ),
    (_API, "ContinuousBatchingManager.__init__"): (
        "self model generation_config continuous_batching_config workload_hints",
    ),
    (_API, "ContinuousBatchingManager.switch_to_cb_friendly_attn"): (
        "self model",
        "self model auto_switch_to_flash",
    ),
    (_API, "ContinuousBatchingManager._create_batch_processor"): ("self",),
    (_API, "ContinuousBatchingManager.add_request"): (
        "self input_ids request_id max_new_tokens streaming record_timestamps eos_token_id "
        "logit_processor_kwargs",
    ),
    (_API, "ContinuousBatchingManager.stop"): (
        "self block timeout keep_for_next_session hard_stop",
    ),
    (f"{_BATCHING}.model_runner", "ModelRunner._sample"): ("self scores output_ids",),
    (_PROCESSORS, "ContinuousBatchingLogitsProcessor.fill_defaults"): ("self int32_tensor",),
    (_PROCESSORS, "ContinuousBatchingLogitsProcessor.prepare_tensor_args"): (
        "self requests_with_new_token",
    ),
}
"""Parameters of each method that is overridden or called, by module and name; several where
versions of `transformers` differ.
"""

CHILD: Final = "__child#"
"""Separator of a request's name and the number of one of its further sequences."""
HALF: Final = 32
"""Bits of a number of a batch's static memory: half of those of seeds and offsets."""


class Serving:
    """Settings and record of :func:`serve`.

    Attributes
    ----------
        ``seeds``: seed of each request, in the order of ``generate_batch``'s ``inputs``, for the
        next call; None: they are drawn. ``used``: seed of each request so far, by its name, of the
        latest call. ``block``: the :class:`~ptxgen.torch.batch_invariant` block, with its report.

    """

    def __init__(self, seeds: Sequence[int] | None, block: pt.batch_invariant) -> None:
        self.seeds = seeds
        self.used: dict[str, int] = {}
        self.block = block


@contextmanager
def serve(model: Any, *, seeds: Sequence[int] | None = None, **block: Any) -> Iterator[Serving]:
    """Gives continuous batching of ``model`` the bits of each request alone while it is open.

    ``model.generate_batch`` is then called as usual. A token is drawn from the softmax of its
    scores, which the processors of the generation configuration (such as temperature and ``top_p``)
    have changed, with the seed of its request and its position. Further sequences of a request
    (``num_return_sequences``) have draws of their own. Log-probabilities are those of the same
    scores.

    ``seeds``: seed of each request, integers of 64 bits in the order of ``inputs``. By default
    PyTorch's generator draws one for each call, to which the number of a request is added; so
    ``torch.manual_seed`` decides them, and :attr:`Serving.used` reports them. ``block``: options of
    :class:`ptxgen.torch.batch_invariant`, which is open, too. A manager is not kept for a next
    session (``persistent_manager``), since its prefix cache may be older than the weights.

    Raises ModuleNotFoundError without transformers, EngineError for a version of it with other
    signatures than :data:`HOOKS`, and OptionError for a model with another attention than
    :func:`ptxgen.torch.register_attention` registers and for seeds that are no 64-bit integers or,
    by ``generate_batch``, as many as requests.
    """
    check_version()
    model = _owner(model)
    _check_attention(model)
    _check_seeds(seeds)
    with pt.batch_invariant(**block) as opened:
        serving = Serving(seeds, opened)

        def init_continuous_batching(
            generation_config: Any = None,
            continuous_batching_config: Any = None,
            workload_hints: Any = None,
        ) -> Any:
            config = model.generation_config if generation_config is None else generation_config
            _check_seeds(serving.seeds)
            _check_count(serving.seeds, workload_hints, config)
            return _manager()(model, config, continuous_batching_config, workload_hints, serving)

        model.init_continuous_batching = init_continuous_batching
        try:
            yield serving
        finally:
            del model.init_continuous_batching


class Draws:
    """Logits processor that draws tokens in ``generate``, with ``do_sample=False``: it leaves the
    drawn token alone as the largest score.

    A token is drawn from the softmax of the scores with the seed of its sequence and its position:
    that which continuous batching draws in :func:`serve` for the same seed and prompt. Processors
    before it in the list, such as ``TemperatureLogitsWarper``, change the scores.

    ``seeds``: one for each sequence; ``lengths``: number of tokens of each prompt, without padding.
    An object is for one call. :attr:`logprobs` has the log-probabilities of the drawn tokens,
    float32 ``[B]`` for each step.

    Raises OptionError for seeds that are no 64-bit integers.
    """

    def __init__(self, seeds: Sequence[int], lengths: Sequence[int]) -> None:
        _check_seeds(seeds)
        if len(seeds) != len(lengths):
            raise OptionError(f"there are {len(seeds)} seeds and {len(lengths)} lengths")
        self._seeds, self._lengths = list(seeds), list(lengths)
        self._placed: tuple[torch.Tensor, torch.Tensor] | None = None
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if self._placed is None:
            first = [n - input_ids.shape[1] for n in self._lengths]
            seeds, offsets = (torch.tensor(x, device=scores.device) for x in (self._seeds, first))
            self._placed = seeds, offsets
        seeds, offsets = self._placed
        tokens = pt.sample(scores, temperature=1.0, seed=seeds, offset=offsets + input_ids.shape[1])
        self.logprobs.append(pt.token_logprobs(scores, tokens))
        places = torch.arange(scores.shape[-1], device=scores.device)
        return torch.where(places == tokens[:, None], 0.0, -torch.inf)


def count_positions(model: Any) -> Any:
    """Adds a hook to ``model`` that passes ``position_ids`` where a caller passes a padding mask
    alone: numbers of a sequence's own tokens, as continuous batching counts them.

    Without it, models of `transformers` count padding on the left as tokens, so rotary embeddings
    of a trainer that pads on the left are not those of its rollouts. Returns the hook's handle,
    whose ``remove()`` takes it away. Raises nothing itself.
    """
    names = list(inspect.signature(model.forward).parameters)

    def add_positions(
        _: Any, args: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        named = {**dict(zip(names, args, strict=False)), **given}
        mask, ids = named.get("attention_mask"), named.get("input_ids", args[0] if args else None)
        if mask is not None and mask.ndim == 2 and named.get("position_ids") is None:
            places = (mask.long().cumsum(-1) - 1).clamp(min=0)
            places = places if ids is None else places[:, -ids.shape[1] :]
            if "position_ids" in names[: len(args)]:  # None, passed by position
                at = names.index("position_ids")
                args = (*args[:at], places, *args[at + 1 :])
            else:
                given["position_ids"] = places
        return args, given

    return model.register_forward_pre_hook(add_positions, with_kwargs=True)


# -- checks -----------------------------------------------------------------------------------
def check_version(hooks: Mapping[tuple[str, str], tuple[str, ...]] = HOOKS) -> str:
    """Returns the version of `transformers`; raises EngineError if it is not one of
    :data:`VERSIONS`, or if a method has other parameters than ``hooks`` says.
    """
    version = metadata.version("transformers")
    found = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    least, end = VERSIONS
    if not least <= found < end:
        takes = f"{least[0]}.{least[1]} or later, below {end[0]}"
        raise EngineError(f"transformers has version {version}; takes {takes}")
    for (module, name), expected in hooks.items():
        owner: Any = import_module(module)
        for part in name.split("."):
            owner = getattr(owner, part, None)
        given = " ".join(inspect.signature(owner).parameters) if callable(owner) else "nothing"
        if given not in expected:
            raise EngineError(
                f"transformers {version}: {module}.{name} takes ({given}); ptxgen knows "
                f"({') or ('.join(expected)})"
            )
    return version


def _owner(model: Any) -> Any:
    """Returns the model whose method ``model.generate_batch`` is: that inside of a wrapper. Raises
    OptionError if there is none, or if it is served already.
    """
    owner = getattr(getattr(model, "generate_batch", None), "__self__", None)
    if owner is None:
        raise OptionError(f"{type(model).__name__} has no generate_batch; takes a model that has")
    if "init_continuous_batching" in vars(owner):
        raise OptionError(f"{type(owner).__name__} is served already; close the other serve()")
    return owner


def _check_attention(model: Any) -> None:
    """Raises OptionError unless the attention of ``model`` is ptxgen's."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    name = model.config.get_text_config()._attn_implementation
    if ALL_ATTENTION_FUNCTIONS.get(name) is not models.attend:
        raise OptionError(
            f"{type(model).__name__} has attn_implementation={name!r}; takes one of "
            'ptxgen.torch.register_attention: model.set_attn_implementation("ptxgen")'
        )


def _check_seeds(seeds: Any) -> None:
    for seed in () if seeds is None else seeds:
        if not isinstance(seed, int) or not -(1 << 63) <= seed < 1 << 63:
            raise OptionError(f"seeds has {described(seed)}; takes integers of 64 bits")


def _check_count(seeds: Sequence[int] | None, hints: Any, config: Any) -> None:
    """Raises OptionError unless ``seeds`` are as many as the requests of ``generate_batch``."""
    if seeds is None or hints is None:
        return
    requests = hints.num_requests // (config.num_return_sequences or 1)
    if len(seeds) != requests:
        raise OptionError(f"there are {len(seeds)} seeds, and {requests} requests")


# -- draws ------------------------------------------------------------------------------------
def _halves(number: int) -> tuple[int, int]:
    """Returns the low and the high half of a 64-bit integer, each as a signed 32-bit integer."""
    half = 1 << HALF - 1
    low, high = ((n + half) % (1 << HALF) - half for n in (number, number >> HALF))
    return low, high


def _joined(low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Returns the int64 numbers of which int32 tensors have the halves."""
    return low.long() & (1 << HALF) - 1 | high.long() << HALF


def _seed(state: Any) -> int:
    return int(state.logit_processor_kwargs.get("seed", 0))  # a request of a warm-up has none


def _offset(state: Any) -> int:
    """Returns the offset of the next draw of a request: its position, and in the high half the
    number of the sequence, which counts from 1 for those that are forked from it.
    """
    child = state.request_id.partition(CHILD)[2]
    return int(state.position_offset) + ((int(child) + 1 if child else 0) << HALF)


def _draw(
    halves: Sequence[Any], sampled: bool, logprobs: bool, scores: torch.Tensor, output: torch.Tensor
) -> None:
    """Draws the tokens of a batch, in place of ``ModelRunner._sample``.

    ``halves``: the processors that have the halves of seeds and offsets; ``scores``: float32 ``[1,
    rows, V]``; ``output``: int32 memory of the tokens and, with ``logprobs``, of the bits of their
    log-probabilities, a row each. Unless ``sampled``, a token is the first of the largest scores.
    """
    rows = scores[0]
    count = rows.shape[0]
    seed, offset = (_joined(*(p.row[:count] for p in halves[i : i + 2])) for i in (0, 2))
    tokens = pt.sample(rows, temperature=1.0 if sampled else 0.0, seed=seed, offset=offset)
    output[0, :count].copy_(tokens)
    if logprobs:
        output[1, :count].copy_(pt.token_logprobs(rows, tokens).view(torch.int32))


@cache
def _manager() -> Any:
    """Returns the class of served models' managers."""
    api: Any = import_module(_API)
    processors: Any = import_module(_PROCESSORS)
    transformers: Any = import_module("transformers")

    class Half(processors.ContinuousBatchingLogitsProcessor):
        """Processor that keeps the scores. Its argument, a row of the batch's static memory, is a
        half of a 64-bit number of each request.
        """

        supported_kwargs: Mapping[str, type] = {"seed": int}
        ignored_kwargs = ()

        def __init__(self, number: Callable[[Any], int], half: int) -> None:
            self.number, self.half = number, half
            self.row: Any = None

        def fill_defaults(self, int32_tensor: Any) -> None:
            int32_tensor.zero_()

        def prepare_tensor_args(self, requests_with_new_token: Any) -> Any:
            values = [_halves(self.number(r.state))[self.half] for r in requests_with_new_token]
            return torch.tensor(values, dtype=torch.int32)

        def __call__(self, scores: Any, tensor_arg: Any) -> Any:
            self.row = tensor_arg
            return scores

    class Manager(api.ContinuousBatchingManager):
        """Manager that draws by the seeds of requests, and keeps the model's attention."""

        def __init__(
            self, model: Any, config: Any, batching: Any, hints: Any, serving: Serving
        ) -> None:
            if batching is None:
                batching = getattr(config, "continuous_batching_config", None)
            if batching is None:
                batching = transformers.ContinuousBatchingConfig()
            super().__init__(model, config, batching, hints)
            self._halves = [Half(number, i) for number in (_seed, _offset) for i in (0, 1)]
            found = self.logit_processor
            found.logits_processor.extend(self._halves)
            found.tensors_required += len(self._halves)
            found.supported_keys.update(Half.supported_kwargs)
            found.do_processing = True
            self._seeds, self._used = serving.seeds, serving.used
            self._used.clear()
            self._drawn, self._device = _drawn_seed(), default_device()

        def switch_to_cb_friendly_attn(self, model: Any, *_: Any) -> None:
            """Keeps ptxgen's attention, by the name that it has in continuous batching."""
            name, names = model.config._attn_implementation, transformers.AttentionInterface()
            if f"{models.PAGED}sdpa" in names.valid_keys() and not name.startswith(models.PAGED):
                model.set_attn_implementation(f"{models.PAGED}{name}")
                self._original_attn_impl = name

        def add_request(
            self, input_ids: Any, request_id: str | None = None, *rest: Any, **how: Any
        ) -> Any:
            """Adds a request, as the base class does, with a seed: that of the option ``seed``, its
            own of :attr:`Serving.seeds`, or a drawn one.
            """
            if request_id is None:
                with self._request_lock:
                    request_id = f"req_{self._request_counter}"
                    self._request_counter += 1
            seed = how.pop("seed", None)
            if seed is None:
                seed = self._seed_of(request_id)
            _check_seeds([seed])
            self._used[request_id] = seed
            return super().add_request(input_ids, request_id, *rest, seed=seed, **how)

        def _seed_of(self, request_id: str) -> int:
            number = request_id.removeprefix("req_")
            if self._seeds is None:
                return self._drawn + int(number) if number.isdecimal() else _drawn_seed()
            if not number.isdecimal() or int(number) >= len(self._seeds):
                raise OptionError(
                    f"request {request_id!r} has none of {len(self._seeds)} seeds; pass "
                    "add_request(seed=)"
                )
            return self._seeds[int(number)]

        def stop(
            self,
            block: bool = True,
            timeout: float | None = None,
            keep_for_next_session: bool = False,
            hard_stop: bool = False,
        ) -> None:
            """Stops the manager, and does not keep it for a next session."""
            if keep_for_next_session:
                warnings.warn(
                    "persistent_manager: no manager is kept while ptxgen serves the model, since "
                    "its prefix cache may be older than the weights",
                    stacklevel=2,
                )
            super().stop(block, timeout, False, hard_stop)

        def _run_generation_loop(self, *given: Any, **how: Any) -> None:
            with use_device(self._device):  # which a new thread does not inherit
                super()._run_generation_loop(*given, **how)

        def _create_batch_processor(self) -> Any:
            made = super()._create_batch_processor()
            runner = made.model_runner
            runner._sample = partial(_draw, self._halves, runner.do_sample, runner.return_logprobs)
            return made

    return Manager


def _drawn_seed() -> int:
    """Draws a seed from PyTorch's generator. Requests add their number to it: 63 bits suffice."""
    return int(torch.randint(1 << 62, ()))
