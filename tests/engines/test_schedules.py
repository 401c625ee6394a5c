"""Requests that a scheduler batches, cuts and preempts at random have the bits of each alone."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from schedules import HEADS, VOCABULARY, Decoder, Request, Scheduler, draw_tokens

import ptxgen

BF16 = ml_dtypes.bfloat16
SINKS = np.linspace(-1, 1, HEADS, dtype=np.float32)


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device("cpu"):
        yield


def draw_requests(seed, count, prompt, new):
    """Draws requests whose prompts share prefixes. ``prompt``, ``new``: most tokens of each."""
    rng = np.random.default_rng(seed)
    common = rng.integers(VOCABULARY, size=prompt).tolist()
    requests = []
    for i in range(count):
        length = int(rng.integers(1, prompt + 1))
        shared = int(rng.integers(length // 2, length + 1))
        tokens = common[:shared] + rng.integers(VOCABULARY, size=length - shared).tolist()
        goal = length + int(rng.integers(1, new + 1))
        requests.append(Request(tokens, goal, seed=100 * seed + i))
    return requests


def check(seed, page, pages, sizes, dtype=BF16, **how):
    """Compares every row of logits and every drawn token with those of its request alone."""
    decoder = Decoder(seed, dtype, **how)
    requests = draw_requests(seed, *sizes)
    prompts = [len(r.tokens) for r in requests]
    events = Scheduler(decoder, seed, page, pages).run(requests)
    assert all(events.values()), f"seed {seed} shows too little: {events}"
    for request, prompt in zip(requests, prompts, strict=True):
        alone = decoder.alone(request.tokens)
        for position, row in request.logits:
            assert np.array_equal(row.view(np.int32), alone[position].view(np.int32)), position
        places = np.arange(prompt, request.goal)
        drawn = draw_tokens(alone[places - 1], [request.seed] * len(places), places)
        assert drawn.tolist() == request.tokens[prompt:]


@pytest.mark.parametrize(("seed", "page", "pages"), [(18, 4, 6), (26, 1, 24)])
def test_schedules(seed, page, pages):
    check(seed, page, pages, (4, 14, 4))


@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "page", "pages", "sizes", "how"),
    [
        (85, 16, 14, (4, 150, 4), {}),
        (60, 4, 9, (5, 20, 5), {"window": 7}),
        (18, 8, 6, (5, 24, 5), {"softcap": 3.0, "sinks": SINKS}),
        (40, 4, 9, (5, 20, 5), {"dtype": np.float32}),
    ],
)
def test_longer_schedules(seed, page, pages, sizes, how):
    """Prompts that cross blocks of keys, windows, softcaps and sinks, and f32."""
    check(seed, page, pages, sizes, **how)
