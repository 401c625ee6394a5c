"""``ptxgen bench attention``: attention against cuDNN, FlashAttention-2 and flex_attention.

cuDNN and FlashAttention-2 are backends of PyTorch's ``scaled_dot_product_attention``;
flex_attention is compiled. Where ptxgen's call reads a paged KV cache, the peers read contiguous
keys and values. A peer that raises is not timed on the problem, and counted.
"""

from __future__ import annotations

import warnings
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import attention_cases, bands, measure, results
from ptxgen.bench.attention_cases import KINDS, NAMED, TRAINING, Case
from ptxgen.bench.measure import Work, require_close
from ptxgen.bench.results import Environment, Sample
from ptxgen.bench.runner import Area, Timed, add_list, only_drawn
from ptxgen.spec import KernelSpec
from ptxgen.ui import emit, plural

BACKENDS = {"cudnn": "CUDNN_ATTENTION", "fa2": "FLASH_ATTENTION"}
"""PyTorch's ``scaled_dot_product_attention`` backends, by peer name."""
FLEX = "flex"
PEERS = (*BACKENDS, FLEX)
FASTER = "faster"
"""Pseudo-peer in fields and tables: on each problem, the faster of :data:`BACKENDS`."""
WIDE = 128
"""Largest head dimension of the problems that are summarised as small; those above are large."""


@dataclass(frozen=True)
class Row:
    """Times of one attention problem in µs, ptxgen's with quartiles; None for a peer not timed.

    ``refused``: errors of the peers that raised.
    """

    group: str  # "named" or "random"
    kind: str
    shape: str
    dtype: str
    sequences: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    depth: int
    causal: bool
    page: int
    kernel: str
    ours_us: float
    ours_q1_us: float
    ours_q3_us: float
    ours_count: int
    cudnn_us: float | None
    fa2_us: float | None
    flex_us: float | None
    refused: str

    @property
    def faster_us(self) -> float | None:
        """The time of the faster backend of :data:`BACKENDS`, µs; None if neither was timed."""
        return min((us for us in (self.cudnn_us, self.fa2_us) if us), default=None)

    to_faster, to_cudnn, to_fa2, to_flex = (
        results.quotient(f"{peer}_us", "ours_us") for peer in (FASTER, *PEERS)
    )

    def time_of(self, peer: str) -> float | None:
        """Returns the time of ``peer`` in µs; None if it was not timed."""
        us: float | None = getattr(self, f"{peer}_us")
        return us

    def ratio(self, peer: str) -> float | None:
        """Returns peer time / ptxgen time: above 1, ptxgen is faster; None if the peer was not
        timed.
        """
        found: float | None = getattr(self, f"to_{peer}")
        return found


# -- what is timed ----------------------------------------------------------------------------
class Operands:
    """Random operands of an attention case (uninitialised without ``seed``), and calls on them."""

    def __init__(self, torch: Any, case: Case, dtype: str, seed: int | None, device: str) -> None:
        self._torch, self.case, self._device = torch, case, device
        self._random = torch.Generator(device=device).manual_seed(seed or 0)
        options = {"device": device, "dtype": measure.torch_dtype(torch, dtype)}
        make = torch.empty if seed is None else partial(torch.randn, generator=self._random)
        of_queries = case.sequences, case.heads, case.queries, case.depth
        of_keys = case.sequences, case.kv_heads, case.keys, case.depth
        self.q, self.k, self.v = (make(s, **options) for s in (of_queries, of_keys, of_keys))
        if case.kind == TRAINING:
            self.do = make(of_queries, **options)
            for x in (self.q, self.k, self.v):
                x.requires_grad_()

    @cached_property
    def _how(self) -> dict[str, Any]:
        """Keyword arguments of ptxgen's call besides q, k, v: the causal flag, or page table and
        lengths.
        """
        torch, case = self._torch, self.case
        if not case.page:
            return {"causal": case.causal}
        integers = {"dtype": torch.int32, "device": self._device}
        count = case.sequences * -(-case.keys // case.page)
        pages = torch.randperm(count, generator=self._random, device=self._device).int()
        lengths = torch.full((case.sequences,), case.keys, **integers)
        return {"block_table": pages.view(case.sequences, -1), "lengths": lengths}

    @cached_property
    def _cache(self) -> tuple[Any, Any]:
        """Keys and values of ptxgen's call: contiguous, or as a paged cache with pages in random
        order.
        """
        if not self.case.page:
            return self.k, self.v
        return self._paged(self.k), self._paged(self.v)

    def _paged(self, x: Any) -> Any:
        places = self._how["block_table"].flatten().long()
        page, rows = self.case.page, len(places) // self.case.sequences
        padded = self._torch.nn.functional.pad(
            x.transpose(1, 2), (0, 0, 0, 0, 0, rows * page - self.case.keys)
        )
        pages = padded.reshape(-1, page, self.case.kv_heads, self.case.depth)
        return self._torch.empty_like(pages).index_copy_(0, places, pages)

    def ours(self) -> Work:
        """Returns ptxgen's attention call; for training, forward and backward."""
        if self.case.kind != TRAINING:
            return partial(ptxgen.attention, self.q, *self._cache, **self._how)
        from ptxgen.torch import attention

        return partial(self._trained, attention, **self._how)

    def _trained(self, call: Any, **how: Any) -> Any:
        found = call(self.q, self.k, self.v, **how)
        return self._torch.autograd.grad(found, (self.q, self.k, self.v), self.do)

    def peer(self, name: str) -> Work:
        """Returns the attention call of peer ``name``; for training, forward and backward."""
        shared = self.case.heads != self.case.kv_heads
        if name == FLEX:
            call, how = self._flex(), {"enable_gqa": shared, "block_mask": self._blocks()}
        else:
            call, how = self._sdpa(name), {"enable_gqa": shared, "is_causal": self.case.causal}
        if self.case.kind == TRAINING:
            return partial(self._trained, call, **how)
        return partial(call, self.q, self.k, self.v, **how)

    def _sdpa(self, name: str) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        backend = getattr(SDPBackend, BACKENDS[name])
        stock = self._torch.nn.functional.scaled_dot_product_attention

        def call(*operands: Any, **how: Any) -> Any:
            with sdpa_kernel(backend):
                return stock(*operands, **how)

        return call

    def _flex(self) -> Any:
        from torch.nn.attention.flex_attention import flex_attention

        self._torch._dynamo.reset()
        return self._torch.compile(flex_attention, dynamic=False)

    def _blocks(self) -> Any:
        from torch.nn.attention.flex_attention import create_block_mask

        if not self.case.causal:
            return None
        sizes = self.case.queries, self.case.keys
        return create_block_mask(lambda b, h, q, k: q >= k, None, None, *sizes, device=self._device)

    def kernels(self) -> list[KernelSpec]:
        """Returns the kernels that ptxgen's call would launch, in order; launches nothing."""
        k, v = self._cache
        given = {"q": self.q, "k": k, "v": v, **self._how}
        with self._torch.no_grad():
            if self.case.kind != TRAINING:
                return measure.kernels("attention", given)
            lse = self.q.new_empty(self.q.shape[:-1], dtype=self._torch.float32)
            arrays = {"do": self.do, "o": self.do, "lse": lse}
            forward = measure.kernels("attention", {**given, "return_lse": True})
            return forward + measure.kernels("attention_grad", {**given, **arrays})


# -- the run ----------------------------------------------------------------------------------
class Attention(Area):
    """Benchmark ``ptxgen bench attention``: attention against cuDNN, FlashAttention-2 and
    flex_attention, on named or random problems.
    """

    name = "attention"
    about = (
        "Times attention beside cuDNN, FlashAttention-2 (both PyTorch's) and compiled "
        "flex_attention, in one run, with a cold L2, after comparing results. ratio = peer time / "
        "our time; faster: of cuDNN and FlashAttention-2."
    )
    row = Row
    tier = "tc"
    effort = 60.0, 5, 31
    kinds = KINDS
    budget = 300.0
    drawn = (
        "instead of --shapes, so many problems of each kind that --seed draws "
        "(ptxgen/bench/attention_cases.py)"
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        arguments.add_dtype(parser, ("bf16", "f16"))
        form = f"{arguments.FORM}, with c if causal, or pKEYS of pages"
        add_list(parser, "--shapes", f"{form}: {NAMED[0]}, {NAMED[-1]} (some of models)")
        few = f"({','.join(PEERS)}; {FLEX} is not timed with --random)"
        add_list(parser, "--peers", few, PEERS, default=PEERS)
        parser.add_argument(
            "--step",
            action="store_true",
            help="instead, a Llama of four layers, stock and in batch_invariant(): a training "
            "step, the forward pass, a token in a CUDA graph",
        )

    def run(self) -> int:
        if self.options.step:
            from ptxgen.bench.attention_step import Steps

            return Steps(self.options).run()
        return super().run()

    def cases(self) -> Sequence[Case]:
        options = self.options
        self.refused: dict[str, str] = {}
        if only_drawn(options):
            return attention_cases.drawn(options.random, options.seed, options.kinds)
        return attention_cases.select(options.shapes or NAMED, options.kinds)

    def _operands(self, case: Case, seed: int | None) -> Operands:
        return Operands(self.torch, case, self.options.dtype, seed, self.device)

    def kernels(self, case: Case) -> list[KernelSpec]:
        return self._operands(case, None).kernels()

    def check(self, case: Case) -> Timed:
        """Compares ptxgen's result with that of the first peer that accepts the case.

        Returns the calls to time.
        """
        operands = self._operands(case, self.seed)
        ours = operands.ours()
        found = ours()
        work, self.refused = {"ours": ours}, {}
        for name in self.options.peers:
            if name == FLEX and self.options.random is not None:  # takes seconds to compile
                continue
            try:
                call = operands.peer(name)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # PyTorch warns why a backend refuses
                    theirs = call()
            except Exception as error:  # any exception of the peer leaves it out
                self.refused[name] = f"{type(error).__name__}: {error}".splitlines()[0][:100]
                continue
            if len(work) == 1:
                require_close(f"beside {name}", found, theirs)
            del theirs
            work[name] = call
        return Timed(work, case.expected_us, slow_host=True)

    def found(self, case: Case, times: Mapping[str, Sample]) -> Iterator[Row]:
        peers: dict[str, Any] = {
            f"{name}_us": times[name].median if name in times else None for name in PEERS
        }
        yield Row(
            group="named" if self.options.random is None else "random",
            shape=case.shape,
            dtype=self.options.dtype,
            kernel=" + ".join(dict.fromkeys(k.name for k in self.kernels(case))),
            **times["ours"].as_ours(),
            **peers,
            refused="; ".join(f"{name}: {why}" for name, why in self.refused.items()),
            **asdict(case),
        )

    def show(self, rows: Sequence[Row], runs: Sequence[Environment]) -> None:
        """Prints the rows of all runs together: every named problem, and the worst random ones."""
        several = "seeds" if len(runs) > 1 else "seed"
        seeds = f"{several} {', '.join(str(each.seed) for each in runs)}"
        for group in dict.fromkeys(r.group for r in rows):
            those = [r for r in rows if r.group == group]
            drawn = group != "named"
            what = f", {seeds}; the worst of each kind" if drawn else ""
            emit(f"\n{plural(len(those), f'{group} problem')}{what}")
            emit(case_table(worst(those) if drawn else those))
            emit("\npeers' time / ours")
            emit(bands.table_of(summarise(those), ("kind", "problems", "beside")))
            for line in left_out(those):
                emit(line)


# -- what is said -----------------------------------------------------------------------------
def summarise(rows: Sequence[Row]) -> dict[bands.Part, bands.Spread]:
    """Returns statistics of peer time / ptxgen time, by (kind, subset of problems, peer).

    Ratios to the faster of cuDNN and FlashAttention-2 are summarised over all problems, over small
    and large head dimensions, over causal and full attention; ratios to one peer over all problems.
    """
    found: dict[bands.Part, bands.Spread] = {}
    for kind in KINDS:
        own = [r for r in rows if r.kind == kind]
        parts = {
            f"d <= {WIDE}": [r for r in own if r.depth <= WIDE],
            f"d > {WIDE}": [r for r in own if r.depth > WIDE],
            "causal": [r for r in own if r.causal],
            "full": [r for r in own if not r.causal],
        }
        subsets = [("all", FASTER, own)]
        subsets += [(part, FASTER, some) for part, some in parts.items() if len(some) < len(own)]
        subsets += [("all", peer, own) for peer in PEERS]
        for part, peer, some in subsets:
            ratios = [(x, r.shape) for r in some if (x := r.ratio(peer)) is not None]
            if ratios:
                found[kind, part, peer] = bands.Spread.of(ratios)
    return found


def case_table(rows: Sequence[Row]) -> str:
    """Returns a table with a line a row: times, ratios to the faster backend and to each peer."""
    peers = [p for p in PEERS if any(r.time_of(p) is not None for r in rows)]
    times = ((f"{p} µs", f"{p}_us:.1f") for p in ("ours", *peers))
    ratios = ((f"/ {p}", f"to_{p}:.2f") for p in (FASTER, *peers))
    known = ("kind", "kind"), ("shape", "shape")
    return results.columns(rows, [*known, *times, *ratios, ("kernel", "kernel")])


def left_out(rows: Sequence[Row]) -> list[str]:
    """Returns a line for each peer that refused problems: their number, and the first error."""
    lines = []
    for peer in PEERS:
        those = [
            (r, why) for r in rows for why in r.refused.split("; ") if why.startswith(f"{peer}: ")
        ]
        if those:
            row, why = those[0]
            lines.append(f"{plural(len(those), 'problem')} without {why} ({row.kind} {row.shape})")
    if alone := sum(r.time_of(FASTER) is None for r in rows):
        lines.append(f"{plural(alone, 'problem')} with none of {', '.join(BACKENDS)}")
    return lines


def worst(rows: Sequence[Row]) -> list[Row]:
    """Returns, for each kind, the :data:`bands.WORST` rows with the smallest ratios to the faster
    backend.
    """
    found = []
    for kind in KINDS:
        those = [r for r in rows if r.kind == kind and r.ratio(FASTER) is not None]
        found += sorted(those, key=lambda r: r.ratio(FASTER) or 0.0)[: bands.WORST]
    return found


main, _parser = Attention.main, Attention.parser
