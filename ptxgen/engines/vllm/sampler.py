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
    """Extends the draw of the V1 model runner, which stays vLLM's: random draws have a line in the
    report.
    """

    def draw(
        self: Any, logits: torch.Tensor, sampling_metadata: Any, logprobs_mode_override: Any = None
    ) -> Any:
        if not sampling_metadata.all_greedy:
            REPORT.leave("sampler", "random draws of the V1 model runner")
        return original(self, logits, sampling_metadata, logprobs_mode_override)

    return draw


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
