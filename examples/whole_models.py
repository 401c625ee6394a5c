"""Shows for models of `transformers`, unchanged, whether results depend on the batch.

Each model, small and of random weights, runs in ``ptxgen.torch.batch_invariant()``: logits of 32
padded sequences, all at once and in pieces of any size; tokens generated with a key-value cache,
greedy and sampled; a training step twice. Counts what differs, bit for bit, and what the block did
not know.

    python examples/whole_models.py [--models llama,mixtral] [--attention sdpa,ptxgen] [--stock]

Needs PyTorch, transformers and an NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

try:
    import torch
    import transformers
    from transformers import LogitsProcessor
except ImportError:
    torch = transformers = None
    LogitsProcessor = object

VOCABULARY, BATCH, LENGTH, NEW = 512, 32, 24, 6
PIECES = (1, 3, 16)
MOST = 4  # pieces of a size
ATTENTION = ("eager", "sdpa", "ptxgen")

_COMMON = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
_LLAMA = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 256,
    **_COMMON,
}
_GPT2 = {"n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 256, **_COMMON}
_NO_DROPOUT = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", _GPT2 | _NO_DROPOUT),
    "llama": ("LlamaConfig", "LlamaForCausalLM", _LLAMA),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", _LLAMA),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", _LLAMA),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        _LLAMA | {"num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", _LLAMA | {"sliding_window": 8}),
    "gpt_oss": (
        "GptOssConfig",
        "GptOssForCausalLM",
        _LLAMA | {"sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
}
"""Configuration class, model class and sizes in transformers, by model."""
WITHOUT = {("gpt_oss", "sdpa"), ("gemma2", "sdpa")}
"""Pairs (model, attention) that transformers does not have."""


@dataclass
class Result:
    """Counts of what differs, and operators that the block did not know."""

    rows: int = 0
    """Logits of real tokens that differ between the whole batch and a piece of it."""
    alone: int = 0
    """Logits that differ between a sequence right-padded in the batch, and alone without padding.
    """
    chunks: int = 0
    """Logits that differ between a prompt at once, and in chunks with a key-value cache."""
    left: int = 0
    """... between padding on the left and on the right: sums over keys then begin elsewhere, so
    this is no promise, but with ptxgen's own attention."""
    greedy: int = 0
    sampled: int = 0
    """Generated tokens, greedy and sampled, that differ between the whole batch and a piece of it.
    """
    gradients: int = 0
    """Gradients (and losses) that differ between two runs of one training step."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Calls of operators that the block did not know, by name."""

    @property
    def invariant(self) -> bool:
        """Whether no logit, token, gradient and operator breaks the promise."""
        counts = self.rows, self.alone, self.chunks, self.greedy, self.sampled, self.gradients
        return not (any(counts) or self.unknown)


class Gumbel(LogitsProcessor):
    """Noise that makes the largest score a sample of the softmax: a sequence's own, by its number
    and the position. So it does not depend on the place in a batch, as that of ``multinomial``.
    """

    def __init__(self, sequences: Sequence[int]) -> None:
        self.sequences = sequences

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        noise = []
        for sequence in self.sequences:
            random = np.random.default_rng((sequence, input_ids.shape[1]))
            noise.append(random.gumbel(size=scores.shape[-1]))
        return scores + torch.from_numpy(np.stack(noise)).to(scores)


def build(name: str, attention: str, dtype: Any = None) -> Any:
    """Returns a model of random weights on the GPU."""
    import ptxgen.torch

    ptxgen.torch.register_attention()
    config, model, sizes = MODELS[name]
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**sizes))
    made.set_attn_implementation(attention)
    return made.to("cuda", torch.bfloat16 if dtype is None else dtype).eval()


def padded(side: str) -> tuple[Any, Any]:
    """Draws sequences of several lengths, padded on one side; returns their tokens and mask."""
    random = torch.Generator().manual_seed(1)
    tokens = torch.randint(2, VOCABULARY, (BATCH, LENGTH), generator=random)
    lengths = torch.randint(5, LENGTH + 1, (BATCH, 1), generator=random)
    lengths[0] = LENGTH  # so that a piece is as long as the whole
    place = torch.arange(LENGTH)[None]
    if side == "left":
        tokens, place = (
            t.expand_as(tokens).gather(1, (place + lengths) % LENGTH) for t in (tokens, place)
        )
    mask = place < lengths
    return tokens.masked_fill(~mask, 0).cuda(), mask.long().cuda()


def pieces(size: int) -> Iterator[slice]:
    """Yields slices of ``size`` sequences of the batch: all, or the first and last few."""
    starts = range(0, BATCH, size)
    some = starts if len(starts) <= MOST else (*starts[: MOST // 2], *starts[-MOST // 2 :])
    return (slice(start, start + size) for start in some)


def check(name: str, attention: str, *, stock: bool = False, dtype: Any = None) -> Result:
    """Runs a model in the block (or without it, if ``stock``), and compares whole and pieces."""
    import ptxgen.torch

    model = build(name, attention, dtype)
    made: Any = contextlib.nullcontext() if stock else ptxgen.torch.batch_invariant()
    result = Result()
    with made as block:
        with torch.no_grad():
            logits = {}
            for side in ("left", "right"):
                tokens, mask = padded(side)
                logits[side] = whole = _logits(model, tokens, mask)
                for size in PIECES:
                    for part in pieces(size):
                        one = _logits(model, tokens[part], mask[part])
                        result.rows += _differ(one, whole[part], mask[part].bool())
            for i, length in list(enumerate(mask.sum(1).tolist()))[::4]:
                one = _logits(model, tokens[i : i + 1, :length], mask[i : i + 1, :length])
                result.alone += _differ(one[0], whole[i, :length])
                result.left += _differ(logits["left"][i, LENGTH - length :], whole[i, :length])
            result.chunks = _chunks(model, tokens[:1].expand(4, -1))
            tokens, mask = padded("left")  # as generating wants it
            for sampled in (False, True):
                whole = _generated(model, tokens, mask, slice(0, BATCH), sampled)
                for size in (1, 16):
                    for part in pieces(size):
                        one = _generated(model, tokens, mask, part, sampled)
                        differ = int((one != whole[part]).sum())
                        if sampled:
                            result.sampled += differ
                        else:
                            result.greedy += differ
        first, second = (_trained(model, tokens, mask) for _ in range(2))
        result.gradients = sum(not torch.equal(*pair) for pair in zip(first, second, strict=True))
    if not stock:
        result.unknown = dict(block.unknown)
    return result


def _logits(model: Any, tokens: Any, mask: Any) -> Any:
    places = (mask.cumsum(1) - 1).clamp(min=0)
    return model(input_ids=tokens, attention_mask=mask, position_ids=places).logits


def _differ(these: Any, those: Any, where: Any = None) -> int:
    differ = (these != those).any(-1)
    return int((differ if where is None else differ & where).sum())


def _chunks(model: Any, tokens: Any) -> int:
    """Counts rows of logits that differ between a prompt at once and in three chunks, the last of
    one.
    """
    whole = model(input_ids=tokens).logits
    found, cache = [], None
    for chunk in tokens.split((LENGTH // 2, LENGTH - LENGTH // 2 - 1, 1), 1):
        out = model(input_ids=chunk, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        found.append(out.logits)
    return _differ(torch.cat(found, 1), whole)


def _generated(model: Any, tokens: Any, mask: Any, part: slice, sampled: bool) -> Any:
    processors = [Gumbel(range(BATCH)[part])] if sampled else []
    return model.generate(
        input_ids=tokens[part],
        attention_mask=mask[part],
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        do_sample=False,
        logits_processor=processors,
    )[:, LENGTH:]


def _trained(model: Any, tokens: Any, mask: Any) -> list[Any]:
    model.zero_grad()
    loss = model(input_ids=tokens, attention_mask=mask, labels=tokens).loss
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS), help="(%(default)s)")
    parser.add_argument("--attention", default=",".join(ATTENTION), help="(%(default)s)")
    parser.add_argument("--stock", action="store_true", help="PyTorch's own kernels, too")
    options = parser.parse_args()
    if transformers is None or not torch.cuda.is_available():
        print("This example needs PyTorch and an NVIDIA GPU, and transformers for its models.")
        return
    titles = ("rows", "alone", "chunks", "greedy", "sampled", "gradients", "unknown", "(left)")
    print(f"{'model':10}{'attention':10}{'':8}" + "".join(f"{t:>10}" for t in titles))
    good = True
    for name in options.models.split(","):
        for attention in options.attention.split(","):
            if (name, attention) in WITHOUT:
                continue
            for stock in (True, False) if options.stock else (False,):
                r = check(name, attention, stock=stock)
                counts = (*(r.rows, r.alone, r.chunks, r.greedy, r.sampled, r.gradients),
                          *(len(r.unknown), r.left))  # fmt: skip
                line = "".join(f"{count:10}" for count in counts)
                print(f"{name:10}{attention:10}{'stock' if stock else 'ptxgen':8}{line}")
                for each, count in r.unknown.items():
                    print(f"    unknown: {each} {count}")
                left = attention == "ptxgen" and r.left
                good = good and (stock or (r.invariant and not left))
    print("no result depends on the batch" if good else "SOME RESULTS DEPEND ON THE BATCH")


if __name__ == "__main__":
    main()
