"""A decoder of ptxgen's operations over pages, and a scheduler that batches its requests at random.

The scheduler does what engines do: it mixes prefill and decoding, cuts prompts into chunks, gives
requests random pages, shares pages of equal prefixes, and preempts requests, whose keys are then
computed again. Pages that nobody has are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

import ptxgen

VOCABULARY, WIDTH, HEADS, KEY_HEADS, HEAD, LAYERS = 32, 32, 2, 1, 16, 2
PLACES = 512
"""Most tokens of a sequence."""


class Decoder:
    """Decoder with random weights. ``how``: options of its attention."""

    def __init__(self, seed, dtype=ml_dtypes.bfloat16, **how):
        rng = np.random.default_rng(seed)

        def draw(*shape, scale=1.0):
            return (rng.standard_normal(shape) * scale).astype(dtype)

        self.dtype, self.how = dtype, {"causal": True, **how}
        self.embedding, self.places = draw(VOCABULARY, WIDTH), draw(PLACES, WIDTH)
        split = (HEADS + 2 * KEY_HEADS) * HEAD
        self.layers = [
            (draw(WIDTH, split, scale=0.4), draw(HEADS * HEAD, WIDTH, scale=0.4))
            for _ in range(LAYERS)
        ]

    def __call__(self, ids, positions, attend):
        """Returns the logits [T, VOCABULARY] of tokens. ``attend(layer, q, k, v)``: attention."""
        x = self.embedding[ids] + self.places[positions]
        for number, (inner, outer) in enumerate(self.layers):
            rows = ptxgen.linear(ptxgen.rms_norm(x), inner, layout="kn")
            q, k, v = np.split(rows.reshape(len(ids), -1, HEAD), (HEADS, HEADS + KEY_HEADS), 1)
            found = attend(number, q, k, v).reshape(len(ids), -1)
            x = x + ptxgen.linear(found, outer, layout="kn")
        return ptxgen.linear(x, self.embedding, layout="nk", out_dtype=np.float32)

    def alone(self, tokens):
        """Returns the logits of one sequence, computed at once and without pages."""

        def attend(number, q, k, v):
            return ptxgen.attention(q, k, v, layout="bshd", **self.how)

        return self(np.array(tokens), np.arange(len(tokens)), attend)


def draw_tokens(logits, seeds, positions):
    """Draws a token from each row of logits, by the seed of its request and its position."""
    seed, offset = (np.array(x, np.int64) for x in (seeds, positions))
    return ptxgen.sample(logits, temperature=1.0, top_k=8, seed=seed, offset=offset)


@dataclass(eq=False)
class Request:
    """Request with its tokens so far. ``goal``: number of tokens at its end; ``known``: number of
    tokens whose keys are in its pages; ``logits``: every row that was computed, with its position.
    """

    tokens: list[int]
    goal: int
    seed: int
    known: int = 0
    pages: list[int] = field(default_factory=list)
    logits: list[tuple[int, np.ndarray]] = field(default_factory=list)

    @property
    def finished(self):
        return len(self.tokens) == self.goal


class Scheduler:
    """Scheduler of requests over ``count`` pages of ``page`` keys. ``events`` counts what happened:
    batches, mixed batches, chunks of prompts, shared pages and preemptions.
    """

    def __init__(self, decoder, seed, page, count):
        self.decoder, self.page = decoder, page
        self.rng = np.random.default_rng(seed)
        # Keys and values of a token are adjacent in memory, as in engines.
        shape = LAYERS, count, page, KEY_HEADS, 2 * HEAD
        self.cache = np.full(shape, np.nan, decoder.dtype)
        self.users = np.zeros(count, int)
        self.prefixes: dict[tuple[int, ...], int] = {}
        self.waiting: list[Request] = []
        self.active: list[Request] = []
        self.events = dict.fromkeys(("batches", "mixed", "chunks", "shared", "preempted"), 0)

    def run(self, requests):
        """Serves all requests to their ends."""
        self.waiting = list(requests)
        while self.waiting or self.active:
            while self.waiting and (not self.active or self.rng.random() < 0.8):
                self._admit(self.waiting.pop(0))
            batch = self._batch()
            if batch:
                self._forward(batch)
            for request in [r for r in self.active if r.finished]:
                self._release(request)
        return self.events

    def _admit(self, request):
        """Makes a request active, with the pages of its longest prefix that are there."""
        for end in range(self.page, len(request.tokens), self.page):
            page = self.prefixes.get(tuple(request.tokens[:end]))
            if page is None:
                break
            self.users[page] += 1
            request.pages.append(page)
            request.known = end
            self.events["shared"] += 1
        self.active.append(request)

    def _release(self, request):
        """Takes a request's pages, of which those that nobody has any more become NaN."""
        self.active.remove(request)
        for page in request.pages:
            self.users[page] -= 1
            if not self.users[page]:
                self.cache[:, page] = np.nan
                self.prefixes = {k: p for k, p in self.prefixes.items() if p != page}
        request.pages, request.known = [], 0

    def _batch(self):
        """Returns requests and numbers of their tokens for a batch, at random, with pages."""
        chosen = self.rng.permutation(len(self.active))[: 1 + self.rng.integers(len(self.active))]
        batch = []
        for request in [self.active[i] for i in chosen]:
            if request not in self.active:  # preempted for an earlier one
                continue
            left = len(request.tokens) - request.known
            count = left if self.rng.random() < 0.3 else 1 + int(self.rng.integers(left))
            if self._reserve(request, request.known + count, [request, *(r for r, _ in batch)]):
                batch.append((request, count))
        return batch

    def _reserve(self, request, keys, kept):
        """Gives a request random pages for ``keys`` keys, preempting others but ``kept``."""
        while len(request.pages) * self.page < keys:
            free = np.flatnonzero(self.users == 0)
            if not len(free):
                others = [r for r in self.active if not any(r is k for k in kept)]
                if not others:
                    return False
                victim = others[self.rng.integers(len(others))]
                self._release(victim)
                self.waiting.append(victim)
                self.events["preempted"] += 1
                continue
            page = int(self.rng.choice(free))
            self.users[page] += 1
            request.pages.append(page)
        return True

    def _forward(self, batch):
        """Runs the decoder for a ragged batch, and draws the next tokens."""
        counts = [n for _, n in batch]
        places = [np.arange(r.known, r.known + n) for r, n in batch]
        ids = [np.array(r.tokens)[at] for (r, _), at in zip(batch, places, strict=True)]
        offsets = np.cumsum([0, *counts], dtype=np.int32)
        lengths = np.array([r.known + n for r, n in batch], np.int32)
        columns = 1 + max(len(r.pages) for r, _ in batch)  # the last has a page of anybody
        table = self.rng.integers(len(self.users), size=(len(batch), columns), dtype=np.int32)
        for row, (request, _) in zip(table, batch, strict=True):
            row[: len(request.pages)] = request.pages
        slots = [(t[at // self.page], at % self.page) for t, at in zip(table, places, strict=True)]
        page, slot = (np.concatenate(x) for x in zip(*slots, strict=True))

        def attend(number, q, k, v):
            self.cache[number, page, slot] = np.concatenate((k, v), -1)
            keys, values = self.cache[number, ..., :HEAD], self.cache[number, ..., HEAD:]
            how = {"cu_seqlens": offsets, "lengths": lengths, "block_table": table}
            return ptxgen.attention(q, keys, values, **how, **self.decoder.how)

        logits = self.decoder(np.concatenate(ids), np.concatenate(places), attend)
        decoding = [len(r.tokens) - r.known == 1 for r, _ in batch]
        self.events["batches"] += 1
        self.events["mixed"] += any(decoding) and not all(decoding)
        last = [end - 1 for end in offsets[1:]]
        drawn = draw_tokens(logits[last], [r.seed for r, _ in batch], lengths)
        for (request, count), begin, token in zip(batch, offsets, drawn, strict=False):
            rows = logits[begin : begin + count]
            request.logits += [(request.known + i, row) for i, row in enumerate(rows)]
            request.known += count
            if request.known < len(request.tokens):
                self.events["chunks"] += 1
            else:
                request.tokens.append(int(token))
            ends = range(self.page, request.known + 1, self.page)
            for end, number in zip(ends, request.pages, strict=False):
                self.prefixes.setdefault(tuple(request.tokens[:end]), number)
