"""``ptxgen bench ops``: operations that memory bounds, beside PyTorch, eager and compiled."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import measure, pointwise, results, row_reductions
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.opcase import BANDWIDTH, OpCase, Work
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.ui import emit, note, plural, table

LARGE = 64 << 20
"""Bytes of work from which on that limit is what counts."""


@dataclass(frozen=True)
class Timing:
    """A case's times, µs; ``compiled_us`` is None where PyTorch was not asked to compile.

    It is another library's time where a case has a peer.
    """

    name: str
    sizes: str
    nbytes: int
    limit_us: float
    ours_us: float
    eager_us: float
    compiled_us: float | None

    @property
    def peer_us(self) -> float:
        """The faster of PyTorch's."""
        return min(self.eager_us, self.compiled_us or self.eager_us)


# -- cases ----------------------------------------------------------------------------------
def _random(torch: Any, *shape: int) -> Any:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def _rows(
    name: str, m: int, n: int, ours: Callable[..., Any], stock: Callable[..., Any], files: float = 2
) -> OpCase:
    """A function of [m, n]; ``files``: how many such matrices are read and written."""

    def make(torch: Any) -> Work:
        return Work((_random(torch, m, n),), ours, lambda x: stock(torch, x))

    return OpCase(name, f"{m}x{n}", int(2 * m * n * files), make)


def _prefix(m: int, n: int) -> OpCase:
    """Prefix sums, held to those in f32: PyTorch rounds every step to bf16."""

    def make(torch: Any) -> Work:
        x = _random(torch, m, n)

        def close(ours: Any, theirs: Any) -> bool:
            exact = x.float().cumsum(-1)
            return bool((ours - exact).abs().max() <= 2**-7 * exact.abs().max())

        return Work((x,), ptxgen.cumsum, lambda x: x.cumsum(-1), agree=close)

    return OpCase("cumsum", f"{m}x{n}", 4 * m * n, make)


def _normed(name: str, m: int, n: int, bias: bool) -> OpCase:
    def make(torch: Any) -> Work:
        functional = torch.nn.functional
        inputs = _random(torch, m, n), *(_random(torch, n) for _ in range(1 + bias))
        if bias:
            return Work(
                inputs, ptxgen.layer_norm, lambda x, w, b: functional.layer_norm(x, (n,), w, b)
            )
        return Work(inputs, ptxgen.rms_norm, lambda x, w: functional.rms_norm(x, (n,), w, 1e-6))

    return OpCase(name, f"{m}x{n}", 4 * m * n, make)


def _trained(norm: str, m: int, n: int) -> OpCase:
    """Forward and backward, with gradients by x, the weight, and of a layer norm the bias."""

    def make(torch: Any) -> Work:
        import ptxgen.torch

        shapes = (m, n), (n,), *([(n,)] if norm == "layer_norm" else [])
        given = [_random(torch, *shape).requires_grad_() for shape in shapes]
        stock = getattr(torch.nn.functional, norm)

        def both(norm: Callable[..., Any]) -> Callable[..., Any]:
            return lambda dy, *given: torch.autograd.grad(norm(*given, eps=1e-6), given, dy)

        return Work(
            (_random(torch, m, n), *given),
            both(getattr(ptxgen.torch, norm)),
            both(lambda x, *vectors, eps: stock(x, (n,), *vectors, eps=eps)),
            compiled=False,
        )

    return OpCase(f"{norm} + backward", f"{m}x{n}", 2 * m * n * 5, make)


def _loss(m: int, n: int) -> OpCase:
    def make(torch: Any) -> Work:
        target = torch.randint(0, n, (m,), device="cuda")
        return Work(
            (_random(torch, m, n), target),
            ptxgen.cross_entropy,
            lambda x, t: torch.nn.functional.cross_entropy(x.float(), t),
        )

    return OpCase("cross_entropy", f"{m}x{n}", 2 * m * n, make)


def _indexed(vocabulary: int, width: int, count: int) -> list[OpCase]:
    """Rows of a weight that are read, and their gradient."""
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


def _draws(m: int, n: int, top_k: int, top_p: float) -> OpCase:
    """Draws from logits, beside softmax, sort or topk, cumsum and multinomial."""

    def kept(torch: Any, x: Any) -> tuple[Any, Any | None]:
        """The probabilities that are drawn from, and whose they are; None: everyone's, in order."""
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

        options: dict[str, Any] = {
            "temperature": TEMPERATURE,
            "top_k": top_k,
            "top_p": top_p,
            "seed": 1,
        }
        return Work((x,), partial(ptxgen.sample, **options), stock, agree=likely)

    how = (f" top_k {top_k}" if top_k else "") + (f" top_p {top_p}" if top_p < 1 else "")
    return OpCase(f"draw{how}", f"{m}x{n}", 2 * m * n, make)


def cases() -> list[OpCase]:
    """All of them, in the order of the table."""

    def softmax(m: int, n: int) -> OpCase:
        return _rows("softmax", m, n, ptxgen.softmax, lambda torch, x: torch.softmax(x, -1))

    def total(m: int, n: int, axis: int) -> OpCase:
        return _rows(
            f"sum axis {axis}",
            m,
            n,
            lambda x: ptxgen.sum(x, axis),
            lambda torch, x: x.sum(axis),
            files=1,
        )

    return [
        *(
            _normed("rms_norm", m, n, False)
            for m, n in ((16, 4096), (8192, 4096), (8192, 8192), (64, 128256), (262144, 128))
        ),
        _normed("layer_norm", 16, 4096, True),
        _normed("layer_norm", 8192, 4096, True),
        *(
            softmax(m, n)
            for m, n in ((16, 4096), (8192, 4096), (8192, 8192), (4096, 32000), (4096, 50257))
        ),
        *(
            _rows("log_softmax", m, n, ptxgen.log_softmax, lambda t, x: t.log_softmax(x, -1))
            for m, n in ((4096, 32000), (4096, 50257))
        ),
        _loss(4096, 32000),
        total(8192, 8192, 1),
        total(8192, 8192, 0),
        _rows("sum of all", 8192, 8192, ptxgen.sum, lambda torch, x: x.sum(), files=1),
        _rows("argmax", 4096, 32000, _argmax, lambda torch, x: x.argmax(-1), files=1),
        *(_trained(norm, 8192, 4096) for norm in ("rms_norm", "layer_norm")),
        *_indexed(128256, 4096, 8192),
        *(_prefix(m, n) for m, n in ((8192, 4096), (64, 128256), (1, 128256))),
        *(
            _rows(
                f"topk {k}",
                m,
                n,
                lambda x, k=k: ptxgen.topk(x, k)[0],
                lambda torch, x, k=k: x.topk(k).values,
                files=1,
            )
            for m, n, k in ((64, 128256, 50), (64, 128256, 1024), (8192, 64, 8))
        ),
        _rows("sample", 64, 128256, ptxgen.sample, lambda torch, x: x.argmax(-1), files=1),
        *(
            _draws(m, n, top_k, top_p)
            for m, n in ((64, 128256), (32, 32000))
            for top_k, top_p in ((0, 1.0), (50, 0.9), (0, 0.9))
        ),
        *pointwise.cases(),
    ]


def _argmax(x: Any) -> Any:
    return ptxgen.argmax(x, -1)


def select(patterns: Sequence[str], *, quick: bool = False) -> list[OpCase]:
    """The cases whose name, or name and sizes, match a pattern. OptionError if there are none."""
    found = [
        case
        for case in cases()
        if any(fnmatch(t, p) for p in patterns for t in (case.name, f"{case.name} {case.sizes}"))
    ]
    if not found:
        names = ", ".join(dict.fromkeys(case.name for case in cases()))
        raise OptionError(f"--only {','.join(patterns)} matches nothing; there are {names}")
    return found[::3] if quick else found


# -- the run --------------------------------------------------------------------------------
def run(torch: Any, selected: Sequence[OpCase], *, quick: bool = False) -> Iterator[Timing]:
    """Times every case, all ways in turns. WrongBitsError for results far from PyTorch's."""
    timer = measure.Timer(torch)
    budget, least, most = (8.0, 3, 9) if quick else (60.0, 7, 51)
    for case in selected:
        inputs, ours, stock, compiles, peer, agree = case.make(torch)
        work: list[Callable[[], Any]] = [partial(ours, *inputs), partial(stock, *inputs)]
        _compare(case, work[0](), work[1](), agree)
        if peer is not None:
            work.append(partial(peer, *inputs))
            _compare(case, work[0](), work[2](), agree)
        elif compiles:
            torch._dynamo.reset()
            compiled = partial(torch.compile(stock, dynamic=False), *inputs)
            try:
                compiled()
            except Exception as error:  # a compiler's own
                note(f"{case.name} {case.sizes}: torch.compile fails: {type(error).__name__}")
            else:
                work.append(compiled)
        count = measure.repetitions(3 * case.limit_us + 10, budget, least, most)
        mine, eager, *others = timer(work, [count] * len(work))
        yield Timing(
            case.name,
            case.sizes,
            case.nbytes,
            case.limit_us,
            mine.median,
            eager.median,
            others[0].median if others else None,
        )


def _compare(
    case: OpCase, ours: Any, theirs: Any, agree: Callable[[Any, Any], bool] | None = None
) -> None:
    """Both round each result once or a few times: a coarse guard against nonsense."""
    if agree is not None:
        if not agree(ours, theirs):
            raise WrongBitsError(f"{case.name} {case.sizes}: not what was to be computed")
        return
    first = ours if isinstance(ours, tuple) else (ours,)
    second = theirs if isinstance(theirs, tuple) else (theirs,)
    for a, b in zip(first, second, strict=True):
        scale = b.float().abs().max().item() or 1.0
        off = (a.float() - b.float()).abs().max().item() / scale
        if not off <= 2**-4:
            raise WrongBitsError(f"{case.name} {case.sizes}: off by {off:.3g} of the largest")


def summary(found: Sequence[Timing]) -> list[str]:
    """What the targets are about."""
    lines = []
    if compiled := [t for t in found if t.compiled_us is not None]:
        mean = results.geomean((t.compiled_us or 0.0) / t.ours_us for t in compiled)
        lines.append(f"torch.compile's time / ours: {mean:.2f} in the mean of {len(compiled)}")
    worst = max(found, key=lambda t: t.ours_us / t.peer_us)
    lines.append(
        f"ours / the faster of PyTorch's: at most {worst.ours_us / worst.peer_us:.2f} "
        f"({worst.name} {worst.sizes})"
    )
    if large := [t for t in found if t.nbytes > LARGE]:
        least = min(large, key=lambda t: t.limit_us / t.ours_us)
        lines.append(
            f"of {BANDWIDTH / 1e12:.1f} TB/s, above {LARGE >> 20} MiB: at least "
            f"{least.limit_us / least.ours_us:.2f} ({least.name} {least.sizes})"
        )
    return lines


def timing_table(found: Sequence[Timing], third: str = "compile") -> str:
    """For people. ``third``: what ``compiled_us`` are times of."""
    head = ["operation", "sizes", "ours", "eager", third, "limit", "of limit", "peer / ours"]
    body = [
        [
            t.name,
            t.sizes,
            f"{t.ours_us:.1f}",
            f"{t.eager_us:.1f}",
            "" if t.compiled_us is None else f"{t.compiled_us:.1f}",
            f"{t.limit_us:.1f}",
            f"{t.limit_us / t.ours_us:.2f}",
            f"{t.peer_us / t.ours_us:.2f}",
        ]
        for t in found
    ]
    return table(body, head)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    if options.rows:
        _show(*results.read_rows(row_reductions.Timing, options.rows, "ops --random"))
        return 0
    if options.random:
        return _random_rows(options)
    if options.regret:
        raise OptionError("--regret is of random problems: --random")
    selected = select(options.only.split(","), quick=options.quick)
    torch = measure.require_torch()
    measure.warm_up(torch)
    note(plural(len(selected), "case"))
    found: list[Timing] = []
    try:
        for timing in run(torch, selected, quick=options.quick):
            found.append(timing)
    finally:
        if found:
            surroundings = measure.environment(torch, measure.limits(torch), 0)
            results.keep(options, results.records(found, surroundings))
            emit(results.heading(surroundings))
            emit(timing_table(found))
            for line in summary(found):
                emit(line)
    return 0


def _random_rows(options: argparse.Namespace) -> int:
    """The command with ``--random``. 1 if a result was wrong."""
    if options.only != "*":
        raise OptionError("--random draws operations over rows: no --only")
    cases = row_reductions.cases(options.problems, options.seed)
    torch = measure.require_torch()
    how = {"compiled": options.compiled, "regret": options.regret, "quick": options.quick}
    bench = row_reductions.Bench(torch, options.seed, **how)
    bench.prepare(cases)
    measure.warm_up(torch)
    found: list[row_reductions.Timing] = []
    try:
        for timing in bench.timings(cases):
            found.append(timing)
    finally:
        if found:
            surroundings = measure.environment(torch, measure.limits(torch), options.seed)
            if options.json or options.save:
                rates = measure.rates()
                assert rates is not None, "a GPU's driver states them"
                known = {**asdict(surroundings), "rates": asdict(rates)}
                results.keep(options, [{**asdict(t), **known} for t in found])
            _show(found, surroundings)
    for line in bench.wrong:
        emit(f"WRONG {line}")
    return 1 if bench.wrong else 0


def _show(found: Sequence[row_reductions.Timing], surroundings: results.Environment) -> None:
    """The tables of random problems."""
    emit(results.heading(surroundings))
    emit(f"\nthe faster of PyTorch's / ours, {plural(len(found), 'problem')}")
    emit(row_reductions.ratio_table(found))
    emit("\nthe worst of them")
    emit(row_reductions.worst_table(found))
    known = [t for t in found if t.regret is not None]
    if known:
        emit("\nchosen kernel's time / the best one's")
        emit(row_reductions.regret_table(known))


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench ops",
        description="Times operations beside PyTorch's, eager and by torch.compile, in bf16, in "
        "one run, with a cold L2; medians in µs. limit = bytes / 4.3 TB/s.",
    )
    parser.add_argument(
        "--only", metavar="LIST", default="*", help="names, or patterns, with commas (all)"
    )
    parser.add_argument(
        "--random",
        action="store_true",
        help="instead of named cases, row operations that --seed draws "
        "(ptxgen/bench/row_reductions.py)",
    )
    parser.add_argument(
        "--problems", type=int, default=120, metavar="COUNT", help="of --random (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of --random (%(default)s)")
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
    parser.add_argument("--quick", action="store_true", help="fewer cases and repetitions")
    arguments.add_rows(parser)
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", help="print an earlier run's of --random"
    )
    return parser


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except PtxgenError as error:
        raise SystemExit(f"error: {error}") from error
