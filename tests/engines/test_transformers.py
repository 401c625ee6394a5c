"""Continuous batching of `transformers` has the bits of each request alone, and the trainer's."""

from __future__ import annotations

import contextlib
import inspect

import pytest

import ptxgen
from ptxgen.errors import EngineError, OptionError

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", minversion="5.17", reason="needs transformers")
pt = pytest.importorskip("ptxgen.torch")
ours = pytest.importorskip("ptxgen.engines.transformers")
models = pytest.importorskip("ptxgen.torch.models")

NEWER = "page_size" in inspect.signature(transformers.ContinuousBatchingConfig).parameters
"""Whether `transformers` is newer than 5.17, where pages have another name."""

SIZES = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "eos_token_id": None,
}
MODELS = {
    "llama": ("Llama", {"num_hidden_layers": 1}),
    "mistral": ("Mistral", {"num_hidden_layers": 1, "sliding_window": 3}),
    "gpt_oss": (
        "GptOss",
        {
            **{"num_hidden_layers": 2, "sliding_window": 3},
            **{"num_local_experts": 2, "num_experts_per_tok": 1},
        },
    ),
}
NEW = 3
PROMPTS = [[5, 9, 2, 11, 7, 3, 30, 8, 4], [5, 9, 2, 11, 7, 3, 6], [17]]
SEEDS = [11, -(1 << 62) - 5, 13]


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    pt.register_attention()
    with ptxgen.use_device("cpu"):
        yield


def make(name="llama", attention="ptxgen"):
    kind, sizes = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**SIZES | sizes)
    made = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.randn_like(p) * 0.3)
    made.set_attn_implementation(attention)
    return made


def generate(model, prompts, seeds, tokens=64, blocks=24, serving=None, **how):
    """Tokens and log-probabilities of requests. ``tokens``: most tokens of a batch."""
    size = {"page_size" if NEWER else "block_size": 4}
    batching = transformers.ContinuousBatchingConfig(
        **size, num_blocks=blocks, max_batch_tokens=tokens, return_logprobs=True
    )
    chosen = {"do_sample": True, "max_new_tokens": NEW, "eos_token_id": -1, **how}
    config = transformers.GenerationConfig(**chosen)
    context = ours.serve(model, seeds=seeds) if serving is None else contextlib.nullcontext()
    with context:
        found = model.generate_batch(prompts, config, batching).values()
    assert all(f.error is None for f in found)
    return [(f.generated_tokens, f.logprobs) for f in found]


def logprobs_of(model, prompt, tokens):
    """Log-probabilities by the plain model, in the block, of tokens behind a prompt."""
    with pt.batch_invariant(), torch.no_grad():
        logits = model(torch.tensor([prompt + tokens]), use_cache=False).logits[0]
        begin = len(prompt) - 1
        found = pt.token_logprobs(logits[begin:-1], torch.tensor(tokens))
    return found.tolist()


@pytest.mark.parametrize("name", ["llama", pytest.param("gpt_oss", marks=pytest.mark.long)])
def test_requests_have_the_bits_of_each_alone_and_of_the_trainer(name):
    """Beside others; with prompts in chunks and prefixes shared; and by the plain model. 7 tokens a
    batch cut the prompts, and the window of gpt-oss loses keys.
    """
    model = make(name)
    together = generate(model, PROMPTS, SEEDS)
    assert generate(model, PROMPTS, SEEDS, tokens=7) == together
    assert generate(model, PROMPTS[1:2], SEEDS[1:2], tokens=3) == together[1:2]
    for prompt, (tokens, logprobs) in zip(PROMPTS, together, strict=True):
        assert len(tokens) == NEW
        assert logprobs == logprobs_of(model, prompt, tokens)


@pytest.mark.long
@pytest.mark.parametrize(("name", "sampled"), [("llama", False), ("mistral", True)])
def test_any_chunks_and_preemption_have_the_bits_of_each_alone(name, sampled):
    model = make(name)
    how = {"do_sample": sampled, "max_new_tokens": 6}
    alone = [
        generate(model, [prompt], [seed], **how)[0]
        for prompt, seed in zip(PROMPTS, SEEDS, strict=True)
    ]
    for tokens, blocks in ((7, 24), (16, 5), (2, 5)):
        found = generate(model, PROMPTS, SEEDS, tokens, blocks, **how)
        assert found == alone, f"batches of {tokens} tokens, {blocks} blocks"
    for prompt, (tokens, logprobs) in zip(PROMPTS, alone, strict=True):
        assert logprobs == logprobs_of(model, prompt, tokens)


def test_generate_draws_the_same_tokens_padded_on_the_left():
    """The processors of the generation configuration change the scores before the draw."""
    model, warper = make(), transformers.TemperatureLogitsWarper(0.6)
    expected = generate(model, PROMPTS, SEEDS, temperature=0.6)
    lengths = [len(p) for p in PROMPTS]
    most = max(lengths)
    ids = torch.tensor([[0] * (most - len(p)) + p for p in PROMPTS])
    mask = (torch.arange(most)[None] >= most - torch.tensor(lengths)[:, None]).long()
    draws = ours.Draws(SEEDS, lengths)
    with pt.batch_invariant():
        found = model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=NEW,
            do_sample=False,
            logits_processor=[warper, draws],
        )
    assert found[:, most:].tolist() == [tokens for tokens, _ in expected]
    assert torch.stack(draws.logprobs, 1).tolist() == [logprobs for _, logprobs in expected]
    # A trainer that pads on the left and passes no positions has these log-probabilities, too.
    handle = ours.count_positions(model)
    mask = torch.cat((mask, torch.ones(len(PROMPTS), NEW, dtype=mask.dtype)), 1)
    with pt.batch_invariant():
        logits = model(found, attention_mask=mask, use_cache=False).logits[:, most - 1 : -1]
        again = pt.token_logprobs(warper(None, logits), found[:, most:])
    handle.remove()
    assert again.tolist() == [logprobs for _, logprobs in expected]
    loss = again.sum()
    assert loss.requires_grad


def test_positions_are_counted_however_arguments_are_passed():
    class Model(torch.nn.Module):
        def forward(self, input_ids=None, attention_mask=None, position_ids=None, **rest):
            return position_ids

    model, ids = Model(), torch.zeros(2, 3, dtype=torch.int64)
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    ours.count_positions(model)
    expected, own = torch.tensor([[0, 0, 1], [1, 2, 3]]), torch.arange(3)
    for args in ((), (ids,), (ids, mask), (ids, mask, None)):
        named = dict(zip(("input_ids", "attention_mask"), (ids, mask), strict=True))
        given = dict(list(named.items())[len(args) :])
        assert torch.equal(model(*args, **given), expected)
    assert model(ids, mask, own) is own and model(ids, mask, position_ids=own) is own
    assert model(ids) is None and model(ids, mask[None]) is None


@pytest.mark.long
@pytest.mark.skipif(not NEWER, reason="this version returns one sequence of a request")
def test_sequences_of_a_request_have_draws_of_their_own():
    """Drawn seeds are PyTorch's, and are reported; a request's further sequences differ."""
    model = make()
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        with ours.serve(model) as serving:
            how = {"num_return_sequences": 2}
            found.append(generate(model, PROMPTS[:1], None, serving=serving, **how))
        seed = serving.used["req_0"]
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
    # The request itself is the last; it has the draws of a request with one sequence.
    assert generate(model, PROMPTS[:1], [seed]) == found[0][-1:]


def test_keys_that_a_cache_dropped_change_no_bit():
    """Positions modulo a split keep the bits: of windows that begin before and behind splits."""
    torch.manual_seed(0)
    window, counts, past = 5, (2, 1, 3), (1023, 130, 2)
    sizes = list(zip(counts, past, strict=True))
    whole = [[torch.randn(1, heads, p + n, 16) for heads in (4, 2, 2)] for n, p in sizes]
    kept = [n + min(p, window - 1) for n, p in sizes]

    def last(number, sizes):
        parts = [x[number][:, :, -n:] for x, n in zip(whole, sizes, strict=True)]
        return torch.cat(parts, 2)

    def offsets(sizes):
        return torch.tensor([0, *sizes]).cumsum(0).int()

    q, k, v = last(0, counts), last(1, kept), last(2, kept)

    batch = {
        "cu_seq_lens_q": offsets(counts),
        "cu_seq_lens_k": offsets(kept),
        "max_length_k": max(kept),
        "read_index": [torch.zeros(1)],
        "position_ids": torch.cat([torch.arange(p, p + n) for n, p in sizes])[None],
    }
    module = torch.nn.Module()
    found, _ = models.attend(module, q, k, v, None, sliding_window=window, **batch)
    begin = 0
    for (a, b, c), n in zip(whole, counts, strict=True):
        expected = pt.attention(a, b, c, causal=True, window=window)[0, :, -n:].transpose(0, 1)
        assert torch.equal(found[0, begin : begin + n], expected), f"{a.shape[2]} tokens"
        begin += n
    del batch["position_ids"]
    with pytest.raises(OptionError, match="Module has a window and gets no position_ids"):
        models.attend(module, q, k, v, None, sliding_window=window, **batch)


def test_what_cannot_be_served_is_refused_by_name(monkeypatch):
    model = make(attention="sdpa")
    with pytest.raises(OptionError, match="attn_implementation='sdpa'"), ours.serve(model):
        pass
    with pytest.raises(OptionError, match="Linear has no generate_batch"):
        ours.serve(torch.nn.Linear(1, 1)).__enter__()
    model.set_attn_implementation("ptxgen")
    with pytest.raises(OptionError, match="there are 2 seeds, and 3 requests"):
        generate(model, PROMPTS, SEEDS[:2])
    with pytest.raises(OptionError, match="seeds has 9223372036854775808; takes integers of 64"):
        ours.serve(model, seeds=[1 << 63]).__enter__()
    with ours.serve(model), pytest.raises(OptionError, match="LlamaForCausalLM is served already"):
        ours.serve(model).__enter__()
    assert "init_continuous_batching" not in vars(model)
    api = pytest.importorskip("transformers.generation.continuous_batching.model_runner")
    monkeypatch.setattr(api.ModelRunner, "_sample", lambda self, scores: None)
    with pytest.raises(EngineError, match=r"ModelRunner\._sample takes \(self scores\)"):
        ours.serve(model).__enter__()
    monkeypatch.setattr(ours.metadata, "version", lambda name: "5.16.2")
    with pytest.raises(EngineError, match=r"version 5\.16\.2; takes 5\.17 or later, below 6"):
        ours.check_version()


def test_numbers_are_put_together_from_halves():
    values = [0, 1, -1, (1 << 63) - 1, -(1 << 63), 1 << 31, 0x1234_5678_9ABC_DEF0]
    halves = torch.tensor([ours._halves(v) for v in values], dtype=torch.int32)
    low, high = halves.T
    assert ours._joined(low, high).tolist() == values
