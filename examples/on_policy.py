"""Reinforcement learning on policy to the bit: rollouts have the log-probabilities of the trainer.

A small Llama with random weights learns to count, in the manner of GRPO: from each prompt a group
of sequences is sampled, and a sequence is rewarded for tokens that follow the one before them. The
rollouts come from the continuous batching of `transformers` (or from its ``generate``, or from
vLLM), the gradients from the same model with padded sequences. Both run with ptxgen's operations,
so in every step the divergence KL(rollout || trainer) is exactly 0: as each rollout is used for one
step, importance weights are 1 and nothing is clipped. The model is trained twice, the second time
with smaller batches in its rollouts, and ends with the same weights.

Needs PyTorch and transformers. Without a GPU the kernels run on the CPU device, with a smaller
model; ``--rollout vllm`` needs a GPU and vLLM.

python examples/on_policy.py
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """Sizes of the model, of a step, and of the rollouts' batches."""

    vocabulary: int
    width: int
    layers: int
    prompts: int
    group: int
    """Sequences sampled from each prompt."""
    tokens: int
    """Number of tokens that are sampled in a sequence."""
    steps: int
    budgets: tuple[int, int]
    """Most tokens in a batch of the rollouts, in the first and in the second run."""


ON_A_GPU = Sizes(256, 128, 4, 8, 8, 24, 40, (512, 48))
ON_THE_CPU = Sizes(32, 32, 1, 2, 2, 4, 2, (64, 5))


def main() -> int:
    """Prints rewards and divergences of two runs; returns 1 if their weights differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    rollouts = {
        "batching": sample_by_batching,
        "generate": sample_by_generate,
        "vllm": SampleByVllm(),
    }
    parser.add_argument("--rollout", choices=rollouts, default="batching", help="(%(default)s)")
    parser.add_argument("--steps", type=int, help="training steps of a run")
    options = parser.parse_args()
    needed = {"torch": "PyTorch", "transformers": "transformers"}
    if options.rollout == "vllm":
        needed["vllm"] = "vLLM"
    if missing := [each for each in needed if importlib.util.find_spec(each) is None]:
        names = " and ".join(needed.values())
        print(f"This example needs {names}; missing: {', '.join(missing)}.")
        return 0
    import torch

    if options.rollout == "vllm" and not torch.cuda.is_available():
        print("Rollouts by vLLM need an NVIDIA GPU.")
        return 0

    import ptxgen

    sizes = ON_A_GPU if torch.cuda.is_available() else ON_THE_CPU
    if options.steps is not None:
        sizes = replace(sizes, steps=options.steps)
    sample = rollouts[options.rollout]
    if torch.cuda.is_available():
        digests = [train(torch, sizes, "cuda", sample, n) for n in sizes.budgets]
    else:
        with ptxgen.use_device("cpu"):
            digests = [train(torch, sizes, "cpu", sample, n) for n in sizes.budgets]
    same = digests[0] == digests[1]
    print(f"on policy in every step, {'identical' if same else 'DIFFERENT'} weights in both runs")
    return int(not same)


def train(torch: Any, sizes: Sizes, device: str, sample: Any, budget: int) -> str:
    """Trains one model, and returns a digest of its weights after the last step."""
    import ptxgen.torch

    torch.manual_seed(0)
    model = language_model(torch, sizes, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    start = time.perf_counter()
    for step in range(sizes.steps):
        # Prompts of 2 to 5 tokens, a group of each, and a seed for each sequence.
        prompts = [
            [(7 * step + 5 * p + i) % sizes.vocabulary for i in range(2 + p % 4)]
            for p in range(sizes.prompts)
            for _ in range(sizes.group)
        ]
        seeds = [step * len(prompts) + i for i in range(len(prompts))]
        tokens, logprobs = sample(torch, model, prompts, seeds, sizes.tokens, budget)
        rewards = torch.tensor(
            [reward(p, t, sizes.vocabulary) for p, t in zip(prompts, tokens, strict=True)]
        ).view(sizes.prompts, sizes.group)
        advantages = (rewards - rewards.mean(1, keepdim=True)).flatten().to(device)

        with ptxgen.torch.batch_invariant():
            ids, mask, chosen = padded(torch, prompts, tokens, device)
            places = torch.arange(ids.shape[1], device=device).expand_as(ids)
            out = model(ids, attention_mask=mask, position_ids=places, use_cache=False)
            current = ptxgen.torch.token_logprobs(out.logits[:, :-1], ids[:, 1:])
            old = torch.zeros_like(current)
            old[chosen] = torch.tensor(logprobs, device=device).flatten()
            ratio = torch.exp(current - old)
            gains = torch.where(chosen, ratio * advantages[:, None], 0)
            optimizer.zero_grad()
            (-gains.sum() / chosen.sum()).backward()
            optimizer.step()
            # Schulman's estimate from the sampled tokens: each term is 0 only where both are equal.
            terms = (ratio - 1 - (current - old)).detach()
            divergence = float(torch.where(chosen, terms, 0).sum() / chosen.sum())
        assert divergence == 0 and torch.equal(current.detach()[chosen], old[chosen])
        mean = float(rewards.mean())
        print(f"  step {step}: reward {mean:.4f}, KL(rollout || trainer) {divergence}")
    weights = [p.detach().float().cpu().numpy().tobytes() for p in model.parameters()]
    digest = hashlib.sha256(b"".join(weights)).hexdigest()
    seconds = time.perf_counter() - start
    print(f"batches of {budget:3} tokens: weights {digest[:16]}, {seconds:.1f} s")
    return digest


def language_model(torch: Any, sizes: Sizes, device: str) -> Any:
    """Returns a Llama of these sizes with random weights, and ptxgen's attention: bfloat16 on a
    GPU, else float32.
    """
    import transformers

    import ptxgen.torch

    ptxgen.torch.register_attention()
    transformers.logging.set_verbosity_error()
    config = transformers.LlamaConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.width,
        intermediate_size=2 * sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.width // 16,
        num_key_value_heads=sizes.width // 32,
        max_position_embeddings=128,
        pad_token_id=0,
        eos_token_id=None,
    )
    # Not ``model.to(dtype)``, which would round the rotary embedding's inverse frequencies, too.
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    how = {"dtype": dtype, "attn_implementation": "ptxgen"}
    return transformers.AutoModelForCausalLM.from_config(config, **how).to(device)


def reward(prompt: list[int], tokens: list[int], vocabulary: int) -> float:
    """Returns the share of tokens that are the successors of those before them."""
    before = [prompt[-1], *tokens[:-1]]
    good = [t == (b + 1) % vocabulary for b, t in zip(before, tokens, strict=True)]
    return sum(good) / len(good)


def padded(
    torch: Any, prompts: list[list[int]], tokens: list[list[int]], device: str
) -> tuple[Any, Any, Any]:
    """Returns sequences padded on the right, their attention mask, and a mask of the sampled tokens
    that has no column for the first token.
    """
    wholes = [[*p, *t] for p, t in zip(prompts, tokens, strict=True)]
    longest = max(map(len, wholes))
    ids = [[*w, *[0] * (longest - len(w))] for w in wholes]
    mask = [[i < len(w) for i in range(longest)] for w in wholes]
    chosen = [
        [len(p) <= i < len(w) for i in range(1, longest)]
        for p, w in zip(prompts, wholes, strict=True)
    ]
    made = torch.tensor(ids), torch.tensor(mask).long(), torch.tensor(chosen)
    ids, mask, chosen = (x.to(device) for x in made)
    return ids, mask, chosen


def sample_by_batching(
    torch: Any, model: Any, prompts: list[list[int]], seeds: list[int], count: int, budget: int
) -> tuple[list[list[int]], list[list[float]]]:
    """Samples by continuous batching; returns tokens and log-probabilities of each sequence.

    ``budget``: most tokens in a batch, which cuts prompts into chunks.
    """
    import transformers

    from ptxgen.engines.transformers import serve

    batching = transformers.ContinuousBatchingConfig(
        num_blocks=16, max_batch_tokens=budget, return_logprobs=True
    )
    config = transformers.GenerationConfig(max_new_tokens=count, do_sample=True, eos_token_id=-1)
    with serve(model, seeds=seeds):
        found = model.generate_batch(prompts, config, batching).values()
    return [f.generated_tokens for f in found], [f.logprobs for f in found]


def sample_by_generate(
    torch: Any, model: Any, prompts: list[list[int]], seeds: list[int], count: int, budget: int
) -> tuple[list[list[int]], list[list[float]]]:
    """Samples by ``generate``, with prompts padded on the left; returns tokens and
    log-probabilities of each sequence.

    ``budget``: most tokens in a batch of sequences, padding included, but for a single sequence.
    """
    import ptxgen.torch
    from ptxgen.engines.transformers import Draws

    together = max(1, budget // (max(map(len, prompts)) + count))
    tokens, logprobs = [], []
    for first in range(0, len(prompts), together):
        batch = prompts[first : first + together]
        lengths = [len(p) for p in batch]
        longest = max(lengths)
        ids = torch.tensor([[*[0] * (longest - len(p)), *p] for p in batch], device=model.device)
        mask = torch.arange(longest)[None] >= longest - torch.tensor(lengths)[:, None]
        draws = Draws(seeds[first : first + together], lengths)
        with ptxgen.torch.batch_invariant():
            found = model.generate(
                input_ids=ids,
                attention_mask=mask.long().to(model.device),
                max_new_tokens=count,
                do_sample=False,
                logits_processor=[draws],
            )
        tokens += found[:, longest:].tolist()
        logprobs += torch.stack(draws.logprobs, 1).tolist()
    return tokens, logprobs


class SampleByVllm:
    """Samples by vLLM in this process, with ptxgen's extension in mode ``strict``.

    The engine starts at the first call. Each call writes the model's weights into it.
    """

    def __init__(self) -> None:
        self.engine: Any = None

    def __call__(
        self,
        torch: Any,
        model: Any,
        prompts: list[list[int]],
        seeds: list[int],
        count: int,
        budget: int,
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Returns tokens and log-probabilities of each sequence.

        ``budget``: most tokens of sequences that are served together, but for a single sequence.
        """
        if self.engine is None:
            self.engine = self.start(model)
        from vllm import SamplingParams

        weights = [(name, x.detach()) for name, x in model.named_parameters()]
        self.engine.apply_model(lambda served: served.load_weights(weights))
        self.engine.reset_prefix_cache()  # its keys and values are of the old weights
        how = {"max_tokens": count, "ignore_eos": True, "detokenize": False, "logprobs": 0}
        together = max(1, budget // (max(map(len, prompts)) + count))
        tokens, logprobs = [], []
        for first in range(0, len(prompts), together):
            batch = [{"prompt_token_ids": p} for p in prompts[first : first + together]]
            options = [SamplingParams(seed=s, **how) for s in seeds[first : first + together]]
            for found in self.engine.generate(batch, options, use_tqdm=False):
                (reply,) = found.outputs
                tokens.append(list(reply.token_ids))
                pairs = zip(reply.token_ids, reply.logprobs, strict=True)
                logprobs.append([by_token[token].logprob for token, by_token in pairs])
        return tokens, logprobs

    def start(self, model: Any) -> Any:
        """Returns an engine that serves a checkpoint of the model."""
        os.environ["PTXGEN_VLLM"] = "strict"
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the trainer's weights are in reach
        import vllm

        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            return vllm.LLM(
                folder,
                skip_tokenizer_init=True,
                dtype="bfloat16",
                gpu_memory_utilization=0.1,
                kv_cache_memory_bytes=1 << 28,
                max_num_seqs=64,
            )


if __name__ == "__main__":
    sys.exit(main())
