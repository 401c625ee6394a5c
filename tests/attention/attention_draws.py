"""Random calls of attention: every option, alone and with others, for every kernel that takes them.

Keys, values and queries that nobody sees are NaN, or large, and each array has exactly its size.
So a read beyond what a row has is a fault, or gives other bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, cycle, islice
from random import Random
from typing import Any

import numpy as np
from attention_cases import BF16, in_pages
from bits import NUMPY, same_bits

from ptxgen import reference
from ptxgen.numerics.attention import SPLIT
from ptxgen.spec import Route
from ptxgen.spec.attention import Form, HopperSpec, PagedSpec
from ptxgen.spec.attention_decode import FewSpec
from ptxgen.spec.attention_grad import HopperGradSpec
from ptxgen.tiles import TABLES
from ptxgen.tiles.attention_grad import KERNELS

SEED = 48
QUERIES = range(1, 18)
"""Numbers of queries: fewer than a tile of 16 rows, as many, one more."""
OPTIONS = (
    *("causal", "window", "scale", "negative scale", "softcap", "slopes", "sinks", "bias"),
    *("wide bias", "mask", "lengths", "starts", "query lengths", "bshd", "packed", "paged"),
)
ROUNDED = frozenset(("negative scale", "softcap", "slopes", "bias", "wide bias"))
"""Options that make logits numbers rounded on their own."""
HEAD = 16
"""Head dimension that kernels are instantiated for: the smallest."""
KEYS = 1, 7, 40, 100
GROUPS = 1, 2, 3, 5, 20
"""Query heads per key head: tiles of 16 rows end within a query, with one, and behind several."""
ROWS = 40
"""Most rows of a sequence; more would only take longer."""
SINKS = BF16, np.float16, np.float32


@dataclass(frozen=True)
class Kernel:
    """A route of a table, which calls ask for by name."""

    route: Route
    key: tuple[str, ...]

    @property
    def spec(self) -> Any:
        """The main kernel."""
        return self.route.main

    def __str__(self) -> str:
        return self.route.name

    def takes(self, names: frozenset[str]) -> bool:
        """Returns whether the kernel serves calls with these options."""
        paged, rounded = "paged" in names, bool(ROUNDED & names)
        if self.spec.mapped:
            return "mask" in names and not (paged or rounded)
        if isinstance(self.spec, HopperGradSpec):
            return not (names & {"mask", "paged"} or rounded)
        if self.spec.rounds_scores != rounded or (paged and self.backward):
            return False
        if isinstance(self.spec, PagedSpec):
            return paged and "starts" not in names
        return not (paged and isinstance(self.spec, HopperSpec))

    @property
    def backward(self) -> bool:
        """Whether it computes gradients."""
        return self.key[0] == "attention_grad"


def kernels(backward: bool = False) -> list[Kernel]:
    """Returns kernels of every route, for scaled scores and for rounded logits, in bf16 and f32;
    those for few keys in f16, too.
    """
    keys = [("attention_grad", part) for part in KERNELS] if backward else [("attention",)]
    found = {}
    for kind, dtypes in (("half", ("bf16", "f16")), ("f32", ("f32",))):
        for key in ((*each, kind) for each in keys):
            for route in TABLES[key].routes:
                for dtype in dtypes if isinstance(route.main, FewSpec) else dtypes[:1]:
                    for rounded in (False, True):
                        main = route.main
                        if rounded and (isinstance(main, HopperGradSpec) or main.mapped):
                            continue
                        own = route.of(Form(dtype, HEAD, HEAD, rounded))
                        found[own.name] = Kernel(own, key)
    return list(found.values())


def together(names: Iterable[str]) -> frozenset[str]:
    """Returns the options without those that packed sequences do not take."""
    found = frozenset(names)
    if "packed" in found:
        found -= {"query lengths", "bias", "wide bias", "mask", "bshd"}
        if "paged" not in found:
            found -= {"lengths", "starts"}
    if "paged" in found:
        found |= {"lengths"}
    return found


def combinations(
    kernel: Kernel, seed: int, more: int, some: int = len(QUERIES)
) -> Iterator[tuple[int, frozenset[str]]]:
    """Yields numbers of queries with options: each option alone, and packed queries against pages,
    for all of :data:`QUERIES` or ``some`` of them in turn; then ``more`` random combinations for
    each of ``some`` numbers.
    """
    pick = Random(f"{seed} {kernel}")
    turns = cycle(Random(f"{kernel}").sample(QUERIES, len(QUERIES)))
    always = {"paged"} if isinstance(kernel.spec, PagedSpec) else set()
    always |= {"mask"} if kernel.spec.mapped else set()
    each = [together(always | {*x}) for x in (*((x,) for x in OPTIONS), ("packed", "paged"))]
    for names in dict.fromkeys(filter(kernel.takes, each)):
        yield from ((n, names) for n in sorted(islice(turns, some)))
    for n in sorted(islice(turns, some)):
        drawn = (together(always | {x for x in OPTIONS if pick.random() < 0.3}) for _ in count(0))
        yield from ((n, names) for names in islice(filter(kernel.takes, drawn), more))


@dataclass(frozen=True)
class Call:
    """Arguments of a call; ``text`` is code that draws the call again."""

    arrays: tuple[Any, ...]
    how: dict[str, Any]
    text: str

    def check(self, function: Any, kernel: Kernel) -> None:
        """Runs the call by ``function``, and compares the results with the oracle's."""
        given, how = self.arrays, self.how
        oracle = reference.attention_grad if kernel.backward else reference.attention
        if kernel.backward:
            do, *rest = given
            given = do, *rest, *reference.attention(*rest, return_lse=True, **how)
            how = how | {f"{n}_grad": True for n in ("bias", "sinks") if n in how}
        else:
            how = how | {"return_lse": True}
        expected = oracle(*given, **how)
        try:
            found = function(*given, **how, kernel=str(kernel))
        except Exception as error:
            error.add_note(self.text)
            raise
        for x, y in zip(found, expected, strict=True):
            same_bits(x, y, what=self.text)


def drawn(kernel: Kernel, seed: int, queries: int, names: frozenset[str]) -> Call:
    """Draws the call of a seed: so many queries (of packed sequences, in all) and these options."""
    text = f"drawn({kernel}, {seed}, {queries}, {sorted(names)})"
    rng = np.random.default_rng(seed)
    dtype = NUMPY[kernel.spec.dtype]
    group = int(rng.choice([n for n in GROUPS if n * queries <= ROWS]))
    heads = int(rng.integers(1, 3)) if group * queries <= 16 else 1
    unseen = np.nan if rng.random() < 0.3 else 7.0  # by NaN kernels take a longer way
    packed, paged = "packed" in names, "paged" in names
    # More than a split of keys takes long: rarely, and of one sequence.
    long = kernel.spec.part == "split" and rng.random() < 0.05
    keys, seqs = (SPLIT + 20, 1) if long else (int(rng.choice(KEYS)), 2)
    head, head_v = (int(x) for x in rng.choice((HEAD, HEAD, HEAD - 3), 2))

    def normal(*shape: int, dtype: Any = dtype) -> Any:
        return rng.standard_normal(shape).astype(dtype)

    def counts(most: Any) -> Any:
        return rng.integers(0, np.broadcast_to(most, seqs), endpoint=True).astype(np.int32)

    def ends(most: int) -> Any:
        return np.append(0, np.sort(counts(most))).astype(np.int32)

    options = {
        "causal": lambda: {"causal": True},
        "window": lambda: {"window": int(rng.integers(1, 30))},
        "scale": lambda: {"scale": 0.7},
        "negative scale": lambda: {"scale": -0.3},
        "softcap": lambda: {"softcap": 2.0},
        "slopes": lambda: {"slopes": normal(heads * group, dtype=np.float32)},
        "sinks": lambda: {"sinks": normal(heads * group, dtype=SINKS[rng.integers(3)])},
        "bshd": lambda: {"layout": "bshd"},
        "query lengths": lambda: {"query_lengths": counts(queries)},
    }
    how: dict[str, Any] = {}
    for name, made in options.items():
        how |= made() if name in names else {}
    starts, lengths = np.zeros(seqs, np.int32), np.full(seqs, keys, np.int32)
    if "starts" in names:
        how["starts"] = starts = counts(keys)
    if "lengths" in names:
        how["lengths"] = lengths = counts(keys - starts)
    own = (heads * group, queries) if not packed else (queries, heads * group)
    lead = () if packed else (seqs,)
    q, out = (normal(*lead, *own, n) for n in (head, head_v))
    for i, length in enumerate(how.get("query_lengths", ())):
        q[i, :, length:] = np.nan
    if packed:
        how["cu_seqlens"] = last = ends(queries)  # tokens may be behind the last sequence
    if packed and not paged:
        keys = queries if rng.random() < 0.3 else keys
        if keys != queries:
            how["cu_seqlens_k"] = last = ends(keys)
        k, v = (normal(keys, heads, n) for n in (head, head_v))
        k[last[-1] :] = v[last[-1] :] = unseen
    else:
        k, v = (normal(seqs, heads, keys, n) for n in (head, head_v))
        for i, (begin, length) in enumerate(zip(starts, lengths, strict=True)):
            for x in (k, v):
                x[i, :, :begin] = x[i, :, begin + length :] = unseen
    if paged:
        page = int(rng.choice((16, 32) if isinstance(kernel.spec, PagedSpec) else (3, 16)))
        k, v, how["block_table"] = in_pages(k, v, page, unwritten=unseen)
        keys = page * how["block_table"].shape[1]
    scores = seqs, heads * group, queries, keys
    if "mask" in names:
        how["mask"] = rng.random(scores[int(rng.integers(3)) :]) < 0.5
    if names & {"bias", "wide bias"}:
        kind = np.float32 if "wide bias" in names else dtype
        how["bias"] = normal(*scores[int(rng.integers(3)) :], dtype=kind)
    if "bshd" in names:
        q, out = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, out))
        if not paged:
            k, v = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (k, v))
    return Call((out, q, k, v) if kernel.backward else (q, k, v), how, text)
