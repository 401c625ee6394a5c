"""Replacements of vLLM's sampler and log-probabilities.

A request's draw depends on its logits, its options, its seed and the position alone: all options
are tensors with an entry per request, which the host does not read. Log-probabilities have one
definition, :func:`ptxgen.torch.token_logprobs`: logits in f32, divided by the temperature, their
``log_softmax``, of which tokens are gathered. Logit biases, penalties and bad words are vLLM's; so
are the masks of top-k, top-p and min-p in processed log-probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import ptxgen.torch as pt
from ptxgen.engines.audit import REPORT
from ptxgen.engines.vllm.layers import count, leave

ROWS = 256
"""Number of rows whose log-probabilities of all tokens are in memory at once."""


# -- draws ------------------------------------------------------------------------------------
def sample(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the draw of the V2 model runner's sampler by :func:`ptxgen.torch.sample`. Returns
    the tokens, and the logits of which log-probabilities are computed.
    """

    def draw(
        self: Any,
        logits: torch.Tensor,
        expanded_idx_mapping: torch.Tensor,
        idx_mapping_np: Any,
        pos: torch.Tensor,
        input_ids: torch.Tensor,
        expanded_local_pos: torch.Tensor,
        return_logprobs: bool = False,
    ) -> Any:
        raw = self.logprobs_mode.startswith("raw_")
        if raw and return_logprobs:
            logits = logits.clone()  # those below write in place
        places = expanded_idx_mapping, idx_mapping_np
        self.logit_bias_state.apply_logit_bias(logits, *places, pos)
        self.penalties_state.apply_penalties(logits, *places, input_ids, expanded_local_pos)
        self.bad_words_state.apply_bad_words(logits, *places, input_ids, expanded_local_pos)
        states, options = self.sampling_states, dict[str, Any]()
        if states.temperature.np[idx_mapping_np].any():
            names = {"temperature": states.temperature, "top_k": states.top_k}
            names |= {"top_p": states.top_p, "min_p": states.min_p, "seed": states.seeds}
            options = {n: x.gpu[expanded_idx_mapping] for n, x in names.items()}
            options["offset"] = pos.to(torch.int64)
        count("sampler", "sample", pt.sample, logits, **options)
        with torch.no_grad():
            drawn = pt.sample(logits, **options)
        if not raw and return_logprobs:
            logits = _processed(states, logits, *places)
        return drawn, logits

    return draw


def _processed(
    states: Any, logits: torch.Tensor, expanded_idx_mapping: torch.Tensor, idx_mapping_np: Any
) -> torch.Tensor:
    """Returns logits in f32, divided by the temperature and masked by min-p, top-k and top-p.

    The masks are vLLM's. Its top-k keeps all tokens that equal the k-th in small batches alone.
    """
    unset = {"top_k": states.vocab_size, "top_p": 1.0, "min_p": 0.0}
    masks = [n for n, x in unset.items() if (getattr(states, n).np[idx_mapping_np] != x).any()]
    if masks:
        leave("sampler", f"masks of processed log-probabilities ({', '.join(masks)})")
    temperature = states.temperature.gpu[expanded_idx_mapping]
    divisor = torch.where(temperature == 0, 1.0, temperature)
    found = logits.to(torch.float32) / divisor[:, None]
    states.apply_min_p(found, expanded_idx_mapping, idx_mapping_np)
    masked: torch.Tensor = states.apply_top_k_top_p(found, expanded_idx_mapping, idx_mapping_np)
    return masked


def sample_v1(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces random draws of the V1 model runner by :func:`ptxgen.torch.sample`.

    A request with a seed draws by the seed and by the number of its tokens so far, which its
    generator counts. One without is drawn by a number of PyTorch's generator, as vLLM draws it.
    Draws with logits processors of other libraries, and those whose processed log-probabilities
    are returned, stay vLLM's.
    """

    def draw(
        self: Any, logits: torch.Tensor, sampling_metadata: Any, logprobs_mode_override: Any = None
    ) -> Any:
        of = sampling_metadata
        why = "" if of.all_greedy else _v1_fault(of, logprobs_mode_override or self.logprobs_mode)
        if why:
            leave("sampler", f"random draws of the V1 model runner {why}")
        if of.all_greedy or why:
            return original(self, logits, of, logprobs_mode_override)
        settings = {"temperature": of.temperature, "top_p": of.top_p}
        settings["top_k"] = None if of.top_k is None else of.top_k.to(torch.int32)
        settings["min_p"] = _min_p(of.logitsprocs.argmax_invariant)
        settings |= _places(of.generators, logits)
        settings = {n: x for n, x in settings.items() if x is not None}
        count("sampler", "sample", pt.sample, logits, **settings)
        with torch.no_grad():
            return pt.sample(logits, **settings), None

    return draw


MIN_P = "MinPLogitsProcessor"
"""Class of vLLM's logits processor of min-p, the only one that draws consider."""
STEP = 4
"""Number by which a draw advances the offset of a request's generator, as vLLM assumes: of a draw
that it discards, it takes that number back."""


def _v1_fault(of: Any, mode: str) -> str:
    """Returns why random draws of a V1 batch are not served; empty if they are."""
    others = [type(p).__name__ for p in of.logitsprocs.argmax_invariant]
    others = [name for name in others if name != MIN_P]
    if others:
        return f"with {', '.join(others)}"
    logprobs = of.max_num_logprobs is not None or of.logprob_token_ids
    return f"with {mode}" if logprobs and mode.startswith("processed_") else ""


def _min_p(processors: Any) -> torch.Tensor | None:
    """Returns min-p of each request, float32 [B]; None if no request has it."""
    found = next((p for p in processors if type(p).__name__ == MIN_P and p.min_p_count), None)
    return None if found is None else found.min_p.reshape(-1)


def _places(generators: dict[int, Any], logits: torch.Tensor) -> dict[str, torch.Tensor]:
    """Returns the seed and the offset of each row's draw, int64 [B], and advances the generators.
    Rows without a generator have a seed of PyTorch's.
    """
    rows, device = len(logits), logits.device
    found = {"seed": torch.randint(1 << 62, (rows,), device=device)}
    found["offset"] = torch.zeros_like(found["seed"])
    if len(generators) < rows:
        REPORT.notes["seeds"] = (
            "the V1 model runner draws by numbers of PyTorch's where there are none"
        )
    if not generators:
        return found
    numbers = [(i, _signed(g.initial_seed()), g.get_offset()) for i, g in generators.items()]
    for generator in generators.values():
        generator.set_offset(generator.get_offset() + STEP)
    index, seeds, offsets = (torch.tensor(x, device=device) for x in zip(*numbers, strict=True))
    found["seed"][index] = seeds
    found["offset"][index] = offsets // STEP
    return found


def _signed(seed: int) -> int:
    """Returns the signed 64-bit integer with the bits of an unsigned one."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)


def add_request(original: Callable[..., Any]) -> Callable[..., Any]:
    """Extends the sampler's new requests: seeds that vLLM draws for them go into the report. vLLM
    adds a preempted request anew; one that has tokens already keeps its seed.
    """

    def add(self: Any, req_idx: int, prompt_len: int, sampling_params: Any) -> None:
        original(self, req_idx, prompt_len, sampling_params)
        if sampling_params.seed is None and sampling_params.temperature:
            request = self.req_states.index_to_req_id.get(req_idx, str(req_idx))
            seeds = self.sampling_states.seeds.np
            if self.req_states.prefill_len.np[req_idx] > prompt_len:
                seeds[req_idx] = REPORT.seeds.get(request, seeds[req_idx])
            REPORT.seed(request, int(seeds[req_idx]))

    return add


# -- log-probabilities ------------------------------------------------------------------------
def token_logprobs(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the log-probabilities of tokens [N, k], given logits [N, V]."""

    def compute_token_logprobs(logits: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
        token_ids = token_ids.to(torch.int64)
        if token_ids.shape[1] == 1:
            count("sampler", "token_logprobs", pt.token_logprobs, logits, token_ids[:, 0])
            with torch.no_grad():
                found: torch.Tensor = pt.token_logprobs(logits, token_ids[:, 0])
            return found[:, None]
        pairs = zip(logits.split(ROWS), token_ids.split(ROWS), strict=True)
        return torch.cat([_log_softmax(x).gather(-1, ids) for x, ids in pairs])

    return compute_token_logprobs


def topk_scores(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the choice of the most probable tokens: of equal logits the lowest token is first,
    in every batch. Ranks, and the choice of tokens that a request names, stay vLLM's.
    """

    def compute_topk_scores(
        logits: torch.Tensor,
        num_logprobs: int,
        sampled_token_ids: torch.Tensor,
        cu_num_logits: Any = None,
        logprob_token_ids_state: Any = None,
        expanded_idx_mapping: torch.Tensor | None = None,
        max_per_req_token_ids: int = 0,
        logits_mode: bool = False,
    ) -> Any:
        named = logprob_token_ids_state, expanded_idx_mapping, max_per_req_token_ids
        given = sampled_token_ids, cu_num_logits, *named, logits_mode
        found = original(logits, 0, *given)
        if num_logprobs == 0:
            return found
        best = _topk(logits, num_logprobs)[1]
        if logits_mode:
            scores = logits.gather(-1, best).to(torch.float32)
        else:
            from vllm.v1.worker.gpu.sample.logprob import compute_token_logprobs

            scores = compute_token_logprobs(logits, best)
        theirs = found.logprob_token_ids, found.logprobs
        if max_per_req_token_ids:  # a request that names tokens has its own in place of the best
            naming = logprob_token_ids_state.num_token_ids.gpu[expanded_idx_mapping] > 0
            width = max(num_logprobs, max_per_req_token_ids)
            best, scores = (
                torch.where(naming[:, None], *(_widened(x, width, fill) for x in (own[:, 1:], top)))
                for own, top, fill in zip(theirs, (best, scores), (0, -torch.inf), strict=True)
            )
        ids, values = (
            torch.cat((own[:, :1], top), dim=1)
            for own, top in zip(theirs, (best, scores), strict=True)
        )
        return found._replace(logprob_token_ids=ids, logprobs=values)

    return compute_topk_scores


def gather_logprobs(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the choice of the most probable tokens of the V1 model runner: of equal numbers the
    lowest token is first, in every batch. Ranks stay vLLM's.
    """

    def gather(logprobs: torch.Tensor, num_logprobs: int, token_ids: torch.Tensor) -> Any:
        found = original(logprobs, 0, token_ids)
        if num_logprobs == 0:
            return found
        values, best = _topk(logprobs, num_logprobs)
        ids = found.logprob_token_ids
        return found._replace(
            logprob_token_ids=torch.cat((ids, best.to(ids.dtype)), dim=1),
            logprobs=torch.cat((found.logprobs, values), dim=1),
        )

    return gather


def _topk(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    count("sampler", "topk", pt.topk, x, k)
    with torch.no_grad():
        values, indices = pt.topk(x, k)
    return values, indices


def _widened(x: torch.Tensor, width: int, value: float) -> torch.Tensor:
    """Returns ``x`` [N, k] with columns of ``value`` behind it, [N, width]."""
    return torch.nn.functional.pad(x, (0, width - x.shape[1]), value=value)


def log_softmax(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the log-probabilities of the V1 model runner, [N, V] in float32."""

    def compute_logprobs(logits: torch.Tensor) -> torch.Tensor:
        return _log_softmax(logits)

    return compute_logprobs


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    x = logits.to(torch.float32)
    count("sampler", "log_softmax", pt.log_softmax, x, -1)
    with torch.no_grad():
        found: torch.Tensor = pt.log_softmax(x, -1)
    return found
