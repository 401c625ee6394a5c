"""``ptxgen bench host``: host time of a call, against torch's own calls.

The problem is small, so a call never waits for the GPU. Calls run in batches that alternate; a
batch is shorter than the launch queue and begins with an idle GPU. The median over batches counts.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ptxgen import arguments
from ptxgen.bench import measure
from ptxgen.bench.cases import Case, Shape, tier_of
from ptxgen.bench.measure import Work
from ptxgen.bench.runner import Area, add_list
from ptxgen.numerics.contract import DTYPES

CALLS, BATCH = 2000, 100
SHAPE = Shape(16, 64, 64)

Pairs = Sequence[tuple[str, str, float | None]]
PAIRS: Pairs = (
    ("ptxgen.linear, out=", "torch.mm, out=", 0.0),
    ("ptxgen.linear, nk, out=", "torch.mm, nk, out=", 0.0),
    ("ptxgen.linear", "torch.mm", None),
    ("ptxgen.torch.linear", "F.linear", 1.0),
    ("ptxgen.torch.linear, bias", "F.linear, bias", 1.0),
    ("ptxgen.torch.linear, grad", "F.linear, grad", 1.0),
)
"""Name of ptxgen's call, name of the peer's call, and extra µs allowed to ptxgen's (None: no
target).
"""


@dataclass(frozen=True)
class Cost:
    """Host time of one ptxgen call and of the peer's: median µs a call.

    ``allowed``: µs that ptxgen's call may take beyond the peer's (None: no target).
    """

    dtype: str
    call: str
    us: float
    peer: str
    peer_us: float
    allowed: float | None

    @property
    def ok(self) -> bool | None:
        """Whether ptxgen's call takes at most :attr:`limit_us`; None if there is no target."""
        return None if self.limit_us is None else self.us <= self.limit_us

    @property
    def limit_us(self) -> float | None:
        """Maximum µs of ptxgen's call by its target; None if there is no target."""
        return None if self.allowed is None else self.peer_us + self.allowed

    @property
    def verdict(self) -> str | None:
        """The value of :attr:`ok` as a word: "ok" or "short"; None if there is no target."""
        return {True: "ok", False: "short", None: None}[self.ok]


def costs(torch: Any, dtype: str, calls: int = CALLS, batch: int = BATCH) -> list[Cost]:
    """Returns the host costs of the pairs in :data:`PAIRS` that are available here."""
    return _time_pairs(torch, dtype, _calls(torch, dtype), PAIRS, calls, batch)


def _time_pairs(
    torch: Any, dtype: str, work: Mapping[str, Work], pairs: Pairs, calls: int, batch: int
) -> list[Cost]:
    """Times calls on the host; returns the cost of each of ``pairs`` (ptxgen's call, peer's call,
    allowed extra µs), as far as ``work`` has both.

    ``work``: calls by name; ``calls``: timed calls of each; ``batch``: calls between two
    synchronisations.
    """
    found = _medians(torch, work, calls, batch)
    known = [pair for pair in pairs if {*pair[:2]} <= found.keys()]
    return [Cost(dtype, ours, found[ours], peer, found[peer], most) for ours, peer, most in known]


def _calls(torch: Any, dtype: str) -> dict[str, Work]:
    """Returns the calls that :data:`PAIRS` compares, by name; those of ``ptxgen.torch`` only if it
    can be imported.
    """
    import ptxgen

    tier = tier_of(dtype)
    cases = [Case("host", "linear", stored, SHAPE, dtype, tier) for stored in ("kn", "nk")]
    operands = measure.Operands(torch, cases[0].product, 0, dtype)
    out = operands.empty()
    x, w = operands.stored("NT")
    (a, b), (_, turned) = operands.views("NN"), operands.views("NT")
    bias = torch.randn(SHAPE.n, device="cuda", dtype=x.dtype)
    weight = torch.nn.Parameter(w.clone())
    found: dict[str, Work] = {
        "ptxgen.linear, out=": measure.ours(cases[0], operands, out),
        "ptxgen.linear, nk, out=": measure.ours(cases[1], operands, out),
        "ptxgen.linear": functools.partial(ptxgen.linear, a, b, layout="kn"),
        "torch.mm, out=": functools.partial(torch.mm, a, b, out=out),
        "torch.mm, nk, out=": functools.partial(torch.mm, a, turned, out=out),
        "torch.mm": functools.partial(torch.mm, a, b),
    }
    theirs = torch.nn.functional.linear
    linears = {"F.linear": theirs}
    with contextlib.suppress(ImportError, AttributeError):  # ptxgen.torch is optional
        linears["ptxgen.torch.linear"] = importlib.import_module("ptxgen.torch").linear
    for name, linear in linears.items():
        found[name] = functools.partial(linear, x, w)
        found[f"{name}, bias"] = functools.partial(linear, x, w, bias)
        found[f"{name}, grad"] = functools.partial(linear, x, weight, bias)
    return found


def _medians(torch: Any, work: Mapping[str, Work], calls: int, batch: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in work}
    for run in work.values():
        for _ in range(batch):
            run()
    gc.disable()
    try:
        for _ in range(max(1, calls // batch)):
            for name, run in work.items():
                torch.cuda.synchronize()
                start = time.perf_counter_ns()
                for _ in range(batch):
                    run()
                taken[name].append((time.perf_counter_ns() - start) / batch / 1e3)
    finally:
        gc.enable()
        torch.cuda.synchronize()
    return {name: statistics.median(times) for name, times in taken.items()}


def other_costs(torch: Any, dtype: str, calls: int = CALLS, batch: int = BATCH) -> list[Cost]:
    """Returns the host costs of operations other than products (softmax, sums, RMS norm, …), called
    and as training steps, with PyTorch's as peers.

    ``calls``: timed calls of each; ``batch``: calls between two synchronisations.
    """
    import ptxgen
    import ptxgen.torch as ours

    functional, grad = torch.nn.functional, torch.autograd.grad
    random = functools.partial(torch.randn, device="cuda", dtype=measure.torch_dtype(torch, dtype))
    (m, k), last = (SHAPE.m, SHAPE.k), (SHAPE.k,)
    x, y, w, dy = random(m, k), random(m, k), random(k), random(m, k)
    leaf, weight = random(m, k).requires_grad_(), random(k).requires_grad_()
    target = torch.randint(0, k, (m,), device="cuda")
    add = ptxgen.pointwise(lambda a, b: a + b)
    both = leaf, weight
    work: dict[str, Work] = {
        "ptxgen softmax": lambda: ptxgen.softmax(x),
        "torch softmax": lambda: torch.softmax(x, -1),
        "ptxgen sum": lambda: ptxgen.sum(x, -1),
        "torch sum": lambda: x.sum(-1),
        "ptxgen sum down": lambda: ptxgen.sum(x, 0),
        "torch sum down": lambda: x.sum(0),
        "ptxgen mean, kept": lambda: ptxgen.mean(x, -1, keepdims=True),
        "torch mean, kept": lambda: x.mean(-1, keepdim=True),
        "ptxgen rms_norm": lambda: ptxgen.rms_norm(x, w),
        "torch rms_norm": lambda: functional.rms_norm(x, last, w, 1e-6),
        "ptxgen cross_entropy": lambda: ptxgen.cross_entropy(x, target),
        "torch cross_entropy": lambda: functional.cross_entropy(x, target),
        "ptxgen pointwise add": lambda: add(x, y),
        "torch pointwise add": lambda: x + y,
        "ptxgen concat": lambda: ptxgen.layout.concat((x, y), -1),
        "torch concat": lambda: torch.cat((x, y), -1),
        "ptxgen softmax, step": lambda: grad(ours.softmax(leaf), leaf, dy),
        "torch softmax, step": lambda: grad(torch.softmax(leaf, -1), leaf, dy),
        "ptxgen rms_norm, step": lambda: grad(ours.rms_norm(leaf, weight), both, dy),
        "torch rms_norm, step": lambda: grad(
            functional.rms_norm(leaf, last, weight, 1e-6), both, dy
        ),
    }
    names = [*work]
    pairs = [(own, theirs, 0.0) for own, theirs in zip(names[::2], names[1::2], strict=True)]
    return _time_pairs(torch, dtype, work, pairs, calls, batch)


ALLOWED = 2.0
"""Extra host time, µs, that an operator may take in ``batch_invariant()``."""


def block_costs(torch: Any, dtype: str, calls: int = CALLS, batch: int = BATCH) -> list[Cost]:
    """Returns the host costs of PyTorch operators in ``batch_invariant()``, with the same operators
    outside as peers.

    ``calls``: timed calls of each; ``batch``: calls between two synchronisations.
    """
    functional = torch.nn.functional
    random = functools.partial(torch.randn, device="cuda", dtype=measure.torch_dtype(torch, dtype))
    x, w, bias = random(SHAPE.m, SHAPE.k), random(SHAPE.n, SHAPE.k), random(SHAPE.n)
    rows = random(SHAPE.k)
    batches = random(4, SHAPE.m, SHAPE.k), random(4, SHAPE.k, SHAPE.n)
    q = random(2, 4, 8, 64)
    work: dict[str, Work] = {
        "mm": lambda: torch.mm(x, w.T),
        "addmm": lambda: functional.linear(x, w, bias),
        "bmm": lambda: torch.bmm(*batches),
        "softmax": lambda: torch.softmax(x, -1),
        "mean": lambda: x.mean(-1, keepdim=True),
        "sum": lambda: x.sum(-1),
        "layer_norm": lambda: functional.layer_norm(x, (SHAPE.k,), rows, rows),
        "rms_norm": lambda: functional.rms_norm(x, (SHAPE.k,), rows, 1e-6),
        "attention": lambda: functional.scaled_dot_product_attention(q, q, q),
        "topk": lambda: x.topk(4),
        "add": lambda: x + x,
        "view": lambda: x.view(-1),
    }
    with torch.no_grad():
        outside, inside = _time_in_and_outside(torch, work, calls, batch)
    return [
        Cost(dtype, f"{name}, in the block", inside[name], name, us, ALLOWED)
        for name, us in outside.items()
    ]


def _time_in_and_outside(
    torch: Any, work: Mapping[str, Work], calls: int, batch: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Times calls on the host in four rounds, each outside and then inside ``batch_invariant()``;
    returns median µs by call: outside, and inside.
    """
    from ptxgen.torch import batch_invariant

    def turn(block: Any) -> dict[str, float]:
        with block:
            return _medians(torch, work, calls // 4, batch)

    blocks: dict[str, Any] = {"outside": contextlib.nullcontext(), "inside": batch_invariant()}
    variants = {name: functools.partial(turn, block) for name, block in blocks.items()}
    taken = measure.alternate(variants, 4, warm=0)
    outside, inside = (
        {name: statistics.median(each[name] for each in of) for name in work}
        for of in taken.values()
    )
    return outside, inside


RATIO = 1.25
"""Maximum time of a forward and backward step in ``batch_invariant()``, relative to stock PyTorch.
"""
STEPS = 25
"""Training steps between two synchronisations: few enough that all their launches fit in the launch
queue.
"""


def backward_costs(torch: Any, dtype: str, calls: int = CALLS, batch: int = STEPS) -> list[Cost]:
    """Returns the host cost of each operator's training step (forward and backward) in
    ``batch_invariant()``, with the same step of stock PyTorch as the peer.

    ``calls``: timed steps of each; ``batch``: steps between two synchronisations.
    """
    outside, inside = _time_in_and_outside(torch, steps(torch, dtype), calls, batch)
    return [
        Cost(dtype, f"{name}, step in the block", inside[name], name, us, (RATIO - 1) * us)
        for name, us in outside.items()
    ]


def steps(torch: Any, dtype: str, device: str = "cuda") -> dict[str, Work]:
    """Returns training steps by operator name: calls that run an operator forward, then backward
    from a fixed output gradient.
    """
    functional, kind = torch.nn.functional, measure.torch_dtype(torch, dtype)

    def leaf(*shape: int, by_token: bool = False) -> Any:
        found = torch.randn(shape, device=device, dtype=kind)
        return (found.transpose(1, 2) if by_token else found).requires_grad_()

    x, w, row, bias = leaf(SHAPE.m, SHAPE.k), leaf(SHAPE.n, SHAPE.k), leaf(64), leaf(64)
    q, k, v, *few = (leaf(2, 16, heads, 64, by_token=True) for heads in (8, 8, 8, 2, 2))
    logits, table = leaf(16, 1000), leaf(100, 64)
    image, filters = leaf(1, 16, 8, 8), leaf(16, 16, 3, 3)
    targets, tokens = (torch.randint(0, n, (16,), device=device) for n in (1000, 100))
    attention, last = functional.scaled_dot_product_attention, (SHAPE.k,)
    shared = {"is_causal": True, "enable_gqa": True}
    calls: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
        "sdpa": (lambda: attention(q, k, v), (q, k, v)),
        "sdpa, causal, shared heads": (lambda: attention(q, *few, **shared), (q, *few)),
        "linear": (lambda: functional.linear(x, w, bias), (x, w, bias)),
        "layer_norm": (lambda: functional.layer_norm(x, last, row, bias), (x, row, bias)),
        "rms_norm": (lambda: functional.rms_norm(x, last, row, 1e-6), (x, row)),
        "cross_entropy": (lambda: functional.cross_entropy(logits, targets), (logits,)),
        "conv2d": (lambda: functional.conv2d(image, filters, padding=1), (image, filters)),
        "embedding": (lambda: functional.embedding(tokens, table), (table,)),
    }

    def step(call: Callable[[], Any], leaves: tuple[Any, ...]) -> Work:
        dy = torch.ones_like(call())

        def work() -> None:
            for each in leaves:
                each.grad = None
            call().backward(dy)

        return work

    return {name: step(call, leaves) for name, (call, leaves) in calls.items()}


PARTS = {"calls": costs, "others": other_costs, "block": block_costs, "backward": backward_costs}
WITHOUT_F64 = ("block", "backward")
"""Parts of the benchmark that f64 skips."""


class Host(Area):
    """Benchmark ``ptxgen bench host``: host time of a call on a small problem, against PyTorch's.

    A case is a dtype and one of :data:`PARTS`: linear layers, other operations, and operators in
    ``batch_invariant()``, called or as training steps.
    """

    name = "host"
    about = "What a call on a small problem costs the host, µs, beside torch's own calls."
    row = Cost
    columns = (
        *(("dtype", "dtype"), ("call", "call"), ("µs", "us:.2f"), ("peer", "peer")),
        *(("µs", "peer_us:.2f"), ("limit", "limit_us:.2f"), ("verdict", "verdict")),
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        many = {"action": "append", "default": None, "help": "(all of them)"}
        arguments.add_dtype(parser, (*DTYPES.values(),), **many)
        add_list(parser, "--only", known=PARTS, default=[*PARTS])
        parser.add_argument(
            "--backward", action="store_true", help="steps forward and back in a block alone"
        )
        parser.add_argument("--calls", type=int, default=CALLS, help="of each (%(default)s)")

    def cases(self) -> list[tuple[str, str]]:
        options = self.options
        only = ["backward"] if options.backward else options.only
        every = product(options.dtype or DTYPES.values(), only)
        return [(d, part) for d, part in every if d != "f64" or part not in WITHOUT_F64]

    def rows(self, case: tuple[str, str]) -> list[Cost]:
        dtype, part = case
        calls = self.options.calls // 10 if self.options.quick else self.options.calls
        return PARTS[part](self.torch, dtype, calls)


main, _parser = Host.main, Host.parser
