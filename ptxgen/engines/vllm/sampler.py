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
from ptxgen.engines.vllm.layers import count

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
        with torch.no_grad():
            drawn = pt.sample(logits, **options)
        count("sampler", "sample", logits)
        if not raw and return_logprobs:
            logits = _processed(states, logits, *places)
        return drawn, logits

    return draw


def _processed(
    states: Any, logits: torch.Tensor, expanded_idx_mapping: torch.Tensor, idx_mapping_np: Any
) -> torch.Tensor:
    """Returns logits in f32, divided by the temperature and masked by min-p, top-k and top-p."""
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
            REPORT.leave("sampler", f"random draws of the V1 model runner {why}")
        if of.all_greedy or why:
            return original(self, logits, of, logprobs_mode_override)
        count("sampler", "sample", logits)
        settings = {"temperature": of.temperature, "top_p": of.top_p}
        settings["top_k"] = None if of.top_k is None else of.top_k.to(torch.int32)
        settings["min_p"] = _min_p(of.logitsprocs.argmax_invariant)
        settings |= _places(of.generators, logits)
        with torch.no_grad():
            found = pt.sample(logits, **{n: x for n, x in settings.items() if x is not None})
        return found, None

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
    """Extends the sampler's new requests: seeds that vLLM draws for them go into the report."""

    def add(self: Any, req_idx: int, prompt_len: int, sampling_params: Any) -> None:
        original(self, req_idx, prompt_len, sampling_params)
        if sampling_params.seed is None and sampling_params.temperature:
            request = self.req_states.index_to_req_id.get(req_idx, str(req_idx))
            REPORT.seed(request, int(self.sampling_states.seeds.np[req_idx]))

    return add


# -- log-probabilities ------------------------------------------------------------------------
def token_logprobs(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the log-probabilities of tokens [N, k], given logits [N, V]."""

    def compute_token_logprobs(logits: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
        token_ids = token_ids.to(torch.int64)
        count("sampler", "token_logprobs", logits)
        with torch.no_grad():
            if token_ids.shape[1] == 1:
                found: torch.Tensor = pt.token_logprobs(logits, token_ids[:, 0])
                return found[:, None]
            pairs = zip(logits.split(ROWS), token_ids.split(ROWS), strict=True)
            return torch.cat([_log_softmax(x).gather(-1, ids) for x, ids in pairs])

    return compute_token_logprobs


def topk_scores(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the choice of the most probable tokens: of equal logits the lowest index is first,
    in every batch. Ranks, and tokens that a request names, stay vLLM's.
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
        if num_logprobs == 0 or max_per_req_token_ids or logits_mode:
            rest = logprob_token_ids_state, expanded_idx_mapping, max_per_req_token_ids
            given = logits, num_logprobs, sampled_token_ids, cu_num_logits, *rest, logits_mode
            return original(*given)
        found = original(logits, 0, sampled_token_ids, cu_num_logits)
        with torch.no_grad():
            best = pt.topk(logits, num_logprobs)[1]
        count("sampler", "topk", logits)
        from vllm.v1.worker.gpu.sample.logprob import compute_token_logprobs

        return found._replace(
            logprob_token_ids=torch.cat((found.logprob_token_ids, best), dim=1),
            logprobs=torch.cat((found.logprobs, compute_token_logprobs(logits, best)), dim=1),
        )

    return compute_topk_scores


def log_softmax(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces the log-probabilities of the V1 model runner, [N, V] in float32."""

    def compute_logprobs(logits: torch.Tensor) -> torch.Tensor:
        count("sampler", "log_softmax", logits)
        with torch.no_grad():
            return _log_softmax(logits)

    return compute_logprobs


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = pt.log_softmax(logits.to(torch.float32), -1)
    return found
