"""``ptxgen bench ops``: memory-bound operations against PyTorch, eager and compiled."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ptxgen
from ptxgen import arguments, layout
from ptxgen import functions as f
from ptxgen.autograd import pointwise
from ptxgen.bench import results, row_reductions
from ptxgen.bench.opcase import BANDWIDTH, OpArea, OpCase, Timing, Work, matching, with_gradients
from ptxgen.bench.runner import add_list
from ptxgen.errors import OptionError
from ptxgen.ui import emit

LARGE = 64 << 20
"""Bytes above which :func:`summary` reports a case's share of the bandwidth limit."""


# -- cases ----------------------------------------------------------------------------------
def _random(torch: Any, *shape: int) -> Any:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def _row_case(name: str, m: int, n: int, label: str = "") -> OpCase:
    """Returns the case of an operation of :mod:`row_reductions <ptxgen.bench.row_reductions>` on m
    contiguous rows of n.
    """
    case = row_reductions.Case(name, m, n, row_reductions.DENSE)

    def make(torch: Any) -> Work:
        return row_reductions.Operands(torch, case, 0).work()

    return OpCase(label or name, f"{m}x{n}", case.nbytes, make)


def _norm_step(norm: str, m: int, n: int) -> OpCase:
    """Returns the case of a norm's forward and backward pass, with gradients of all inputs."""

    def make(torch: Any) -> Work:
        import ptxgen.torch

        shapes = (m, n), (n,), *([(n,)] if norm == "layer_norm" else [])
        given = [_random(torch, *shape) for shape in shapes]
        ours = partial(getattr(ptxgen.torch, norm), eps=1e-6)
        call = getattr(torch.nn.functional, norm)

        def stock(x: Any, *vectors: Any) -> Any:
            return call(x, (n,), *vectors, eps=1e-6)

        return with_gradients(torch, _random(torch, m, n), given, ours, stock)

    return OpCase(f"{norm} + backward", f"{m}x{n}", 2 * m * n * 5, make)


def _embedding_cases(vocabulary: int, width: int, count: int) -> list[OpCase]:
    """Returns the cases of an embedding lookup of ``count`` tokens and of its weight gradient."""
    sizes = f"{count} of {vocabulary}x{width}"

    def which(torch: Any) -> Any:
        return torch.randint(0, vocabulary, (count,), device="cuda")

    def forward(torch: Any) -> Work:
        inputs = _random(torch, vocabulary, width), which(torch)
        return Work(inputs, ptxgen.embedding, lambda w, i: torch.nn.functional.embedding(i, w))

    def backward(torch: Any) -> Work:
        dense = torch.ops.aten.embedding_dense_backward
        return Work(
            (_random(torch, count, width), which(torch)),
            lambda dy, i: ptxgen.embedding_backward(dy, i, vocabulary),
            lambda dy, i: dense(dy, i, vocabulary, -1, False),
        )

    return [
        OpCase("embedding", sizes, 4 * count * width, forward),
        OpCase("embedding_backward", sizes, 2 * (count + vocabulary) * width, backward),
    ]


TEMPERATURE = 0.8


def _sampling_case(m: int, n: int, top_k: int, top_p: float) -> OpCase:
    """Returns a case of sampling from logits; PyTorch runs softmax, topk or sort, cumsum,
    multinomial.
    """

    def kept(torch: Any, x: Any) -> tuple[Any, Any | None]:
        """Returns the probabilities after top-k and top-p, and their columns (None: all)."""
        p, which = torch.softmax(x.float() / TEMPERATURE, -1), None
        if top_k:
            p, which = p.topk(top_k)
        elif top_p < 1:
            p, which = p.sort(-1, descending=True)
        if top_p < 1:
            p = p.where(p.cumsum(-1) - p < top_p * p.sum(-1, keepdim=True), 0.0)
        return p, which

    def make(torch: Any) -> Work:
        x = _random(torch, m, n)

        def stock(x: Any) -> Any:
            p, which = kept(torch, x)
            found = torch.multinomial(p, 1)
            return (found if which is None else which.gather(-1, found)).squeeze(-1)

        def likely(ours: Any, theirs: Any) -> bool:
            p, which = kept(torch, x)
            logits = x if which is None else x.gather(-1, which)
            least = logits.where(p > 0, torch.inf).amin(-1)
            return bool((x.gather(-1, ours[:, None])[:, 0] >= least).all())

        how: dict[str, Any] = {"temperature": TEMPERATURE, "top_k": top_k, "top_p": top_p}
        return Work((x,), partial(ptxgen.sample, **how, seed=1), stock, agree=likely)

    how = (f" top_k {top_k}" if top_k else "") + (f" top_p {top_p}" if top_p < 1 else "")
    return OpCase(f"draw{how}", f"{m}x{n}", 2 * m * n, make)


def _pointwise(
    name: str,
    shapes: tuple[tuple[int, ...], ...],
    traffic: float,
    ours: Callable[..., Any],
    stock: Callable[..., Any],
) -> OpCase:
    """Returns the case of a pointwise formula of tensors with these ``shapes``.

    ``ours``, ``stock``: ptxgen's function and PyTorch's; ``traffic``: bytes moved, in multiples of
    the first tensor's.
    """

    def make(torch: Any) -> Work:
        given = tuple(_random(torch, *shape) for shape in shapes)
        return Work(given, ours, lambda *x: stock(torch, *x))

    nbytes = int(2 * math.prod(shapes[0]) * traffic)
    return OpCase(name, "x".join(map(str, shapes[0])), nbytes, make)


@pointwise
def biased(x: Any, bias: Any) -> Any:
    """Adds a bias and applies GELU in its tanh form, in one pointwise function."""
    return f.gelu_tanh(x + bias)


def _halves(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def pointwise_cases() -> list[OpCase]:
    """Returns the cases of pointwise formulas, and of copies that permute elements."""
    large, small, square, heads = (8192, 14336), (16, 4096), (8192, 8192), (8, 2048, 32, 128)
    angles = (2048, 1, 64)

    def gated(torch: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.silu(x) * y

    def stock_biased(torch: Any, x: Any, bias: Any) -> Any:
        return torch.nn.functional.gelu(x + bias, approximate="tanh")

    def transposed(x: Any) -> Any:
        return layout.contiguous(x.t())

    def heads_first(x: Any) -> Any:
        return layout.contiguous(x.transpose(1, 2))

    case = _pointwise
    return [
        *(case("swiglu", (s, s), 3, f.swiglu, gated) for s in (large, (256, 14336), small)),
        case("gelu", (large,), 2, f.gelu, lambda torch, x: torch.nn.functional.gelu(x)),
        case("bias + gelu_tanh", (large, large[1:]), 2, biased, stock_biased),
        *(case("add", (s, s), 3, f.add, lambda torch, x, y: x + y) for s in (large, small)),
        case("contiguous, transposed", (square,), 2, transposed, lambda _, x: x.t().contiguous()),
        case(
            *("contiguous, heads", (heads,), 2, heads_first),
            lambda _, x: x.transpose(1, 2).contiguous(),
        ),
        case("rope", (heads, angles, angles), 2, layout.rope, _halves),
    ]


SIZES: Mapping[str, tuple[tuple[int, int], ...]] = {
    "rms_norm": ((16, 4096), (8192, 4096), (8192, 8192), (64, 128256), (262144, 128)),
    "layer_norm": ((16, 4096), (8192, 4096)),
    "softmax": ((16, 4096), (8192, 4096), (8192, 8192), (4096, 32000), (4096, 50257)),
    "log_softmax": ((4096, 32000), (4096, 50257)),
    "cross_entropy": ((4096, 32000),),
    "sum of rows": ((8192, 8192),),
    "sum of columns": ((8192, 8192),),
    "sum of all": ((8192, 8192),),
    "argmax": ((4096, 32000),),
    "cumsum": ((8192, 4096), (64, 128256), (1, 128256)),
    "topk 50": ((64, 128256),),
    "topk 1024": ((64, 128256),),
    "topk 8": ((8192, 64),),
    "sample": ((64, 128256),),
}
"""Pairs (rows, columns) of the cases of each row operation."""
LABELS = {"sum of rows": "sum axis 1", "sum of columns": "sum axis 0"}
"""Names in tables and files that differ from the keys of :data:`SIZES`."""


def cases() -> list[OpCase]:
    """Returns all named cases of ``ptxgen bench ops``, in the order of the table."""
    over_rows = [
        _row_case(name, *size, LABELS.get(name, ""))
        for name, sizes in SIZES.items()
        for size in sizes
    ]
    first = next(i for i, case in enumerate(over_rows) if case.name == "cumsum")
    return [
        *over_rows[:first],
        *(_norm_step(norm, 8192, 4096) for norm in ("rms_norm", "layer_norm")),
        *_embedding_cases(128256, 4096, 8192),
        *over_rows[first:],
        *(
            _sampling_case(m, n, top_k, top_p)
            for m, n in ((64, 128256), (32, 32000))
            for top_k, top_p in ((0, 1.0), (50, 0.9), (0, 0.9))
        ),
        *pointwise_cases(),
    ]


def select(patterns: Sequence[str], *, quick: bool = False) -> list[OpCase]:
    """Returns the cases whose name, or name and sizes, match a pattern.

    Raises OptionError if there are none.
    """
    return matching({case: case.name for case in cases()}, patterns)[:: 3 if quick else 1]


# -- the run --------------------------------------------------------------------------------
def summary(found: Sequence[Timing]) -> list[str]:
    """Returns lines of text for the targets: mean ratio to ``torch.compile``, worst ratio to the
    faster of PyTorch's variants, and the smallest share of the bandwidth limit among large cases.
    """
    lines = []
    if compiled := [t for t in found if t.compiled_us is not None]:
        mean = results.geomean((t.compiled_us or 0.0) / t.ours_us for t in compiled)
        lines.append(f"torch.compile's time / ours: {mean:.2f} in the mean of {len(compiled)}")
    worst = min(found, key=lambda t: t.ratio)
    lines.append(
        f"ours / the faster of PyTorch's: at most {1 / worst.ratio:.2f} "
        f"({worst.name} {worst.sizes})"
    )
    if large := [t for t in found if t.nbytes > LARGE]:
        least = min(large, key=lambda t: t.share)
        lines.append(
            f"of {BANDWIDTH / 1e12:.1f} TB/s, above {LARGE >> 20} MiB: at least "
            f"{least.share:.2f} ({least.name} {least.sizes})"
        )
    return lines


class Ops(OpArea):
    """Benchmark ``ptxgen bench ops``: named cases of operations other than products, against
    PyTorch, eager and compiled.

    With ``--random`` :class:`ptxgen.bench.row_reductions.Rows` runs instead.
    """

    name = "ops"
    about = (
        "Times operations beside PyTorch's, eager and by torch.compile, in bf16, in "
        "one run, with a cold L2; medians in µs. limit = bytes / 4.3 TB/s."
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add_list(parser, "--only", "names, or patterns, with commas (all)", default=["*"])
        parser.add_argument(
            "--random",
            type=int,
            nargs="?",
            const=True,
            metavar="COUNT",
            help="instead of named cases, so many row operations that --seed draws "
            "(ptxgen/bench/row_reductions.py)",
        )
        parser.add_argument(
            "--problems", type=int, default=120, metavar="COUNT", help="of --random (%(default)s)"
        )
        arguments.add_seed(parser)
        parser.add_argument(
            "--regret",
            action="store_true",
            help="with --random: time every kernel that serves a problem too",
        )
        parser.add_argument(
            "--no-compile",
            dest="compiled",
            action="store_false",
            help="with --random: leave torch.compile out, which takes seconds a problem",
        )

    def run(self) -> int:
        drawn = row_reductions.Rows(self.options)
        earlier = self.options.rows and row_reductions.has_random_rows(self.options.rows[0])
        return drawn.run() if earlier or self.options.random is not None else super().run()

    def cases(self) -> list[OpCase]:
        if self.options.regret:
            raise OptionError("--regret is of random problems: --random")
        return select(self.options.only, quick=self.options.quick)

    def show(self, rows: Sequence[Timing], runs: Sequence[results.Environment]) -> None:
        super().show(rows, runs)
        for line in summary(rows):
            emit(line)


main, _parser = Ops.main, Ops.parser
