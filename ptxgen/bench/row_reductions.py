"""Row operations on random problems (``ptxgen bench ops --random``): what nobody tuned for.

An operation of :data:`OPERATIONS` is drawn, then columns: one of :data:`COLUMNS`, or, one time in
fourteen, log-uniform in 64 .. 200000; then rows, log-uniform in 1 .. 2^27 / columns. One time in
eight rows lie apart (8 elements between them), one time in eight off 16 bytes (the array begins one
element behind such an address).

Regret is as of products (:mod:`ptxgen.bench.regret`): the chosen kernel's time over that of the
best that is right for the problem. All of them must return the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import Any

import ptxgen
from ptxgen.bench import bands, draw, measure, results
from ptxgen.bench.measure import Work, WrongBitsError
from ptxgen.bench.regret import best_of
from ptxgen.bench.tune import timings
from ptxgen.errors import PtxgenError
from ptxgen.ops import OPERATIONS as LIBRARY
from ptxgen.program.launch import architecture, named, serving
from ptxgen.program.operation import lowering
from ptxgen.program.step import Step
from ptxgen.runtime import get_device
from ptxgen.spec import KernelSpec
from ptxgen.ui import note, table

COLUMNS = (128, 256, 512, 768, 1024, 2048, 2880, 3072, 4096, 5120, 7168, 8192, 14336)
ELEMENTS = 1 << 27
"""The most of a problem."""
DENSE, APART, OFF = "dense", "apart", "off 16 bytes"
"""How rows lie."""
VOCABULARY = 1 << 16
"""The most rows that are gathered from."""


@dataclass(frozen=True)
class Operation:
    """An operation over rows of x.

    ``ours``: the library's, and what it is given besides arrays. ``stock``: PyTorch's, of torch and
    the arrays. ``vectors``: how many arrays, one number a column, it takes besides. ``files``:
    matrices that are read and written. ``least``: columns that it takes.
    """

    ours: str
    stock: Callable[..., Any]
    given: Mapping[str, Any]
    vectors: int = 0
    files: int = 2
    least: int = 1


def _stock(name: str, *given: Any) -> Callable[..., Any]:
    return lambda torch, x: getattr(torch, name)(x, *given)


def _normed(name: str, *eps: float) -> Callable[..., Any]:
    def stock(torch: Any, x: Any, *vectors: Any) -> Any:
        return getattr(torch.nn.functional, name)(x, x.shape[1:], *vectors, *eps)

    return stock


def _topk(k: int) -> Operation:
    return Operation("topk", _stock("topk", k), {"k": k}, files=1, least=k)


OPERATIONS: Mapping[str, Operation] = {
    "softmax": Operation("softmax", _stock("softmax", -1), {}),
    "log_softmax": Operation("log_softmax", _stock("log_softmax", -1), {}),
    "logsumexp": Operation("logsumexp", _stock("logsumexp", -1), {}, files=1),
    "rms_norm": Operation("rms_norm", _normed("rms_norm", 1e-6), {}, vectors=1),
    "layer_norm": Operation("layer_norm", _normed("layer_norm"), {}, vectors=2),
    "cross_entropy": Operation(
        "cross_entropy",
        lambda torch, x, target: torch.nn.functional.cross_entropy(x.float(), target),
        {},
        files=1,
    ),
    "sum of rows": Operation("sum", _stock("sum", 1), {"axis": 1}, files=1),
    "sum of columns": Operation("sum", _stock("sum", 0), {"axis": 0}, files=1),
    "argmax": Operation("argmax", _stock("argmax", -1), {"axis": -1}, files=1),
    "cumsum": Operation("cumsum", _stock("cumsum", -1), {}),
    "embedding": Operation(
        "embedding", lambda torch, w, i: torch.nn.functional.embedding(i, w), {}
    ),
    "topk 50": _topk(50),
    "topk 1024": _topk(1024),
}
"""What is drawn from, each as often; ``topk`` of more than there are columns is drawn again."""


@dataclass(frozen=True)
class Case:
    """A problem: an operation, and rows that lie so."""

    name: str
    rows: int
    cols: int
    lies: str

    @property
    def operation(self) -> Operation:
        """What is computed."""
        return OPERATIONS[self.name]

    @property
    def nbytes(self) -> int:
        """Bytes that are read and written, each once."""
        return 2 * self.rows * self.cols * self.operation.files

    def __str__(self) -> str:
        return f"{self.name} {self.rows}x{self.cols}, {self.lies}"


def cases(count: int, seed: int) -> list[Case]:
    """``count`` problems, the first of those that ``seed`` draws. Raises OptionError."""
    draw.check(count, seed)
    drawn = _drawn(Random(seed))
    return [next(drawn) for _ in range(count)]


def _drawn(random: Random) -> Iterator[Case]:
    # By random() alone: its numbers are the same in every version of Python.
    names = [*OPERATIONS]
    while True:
        name = names[int(random.random() * len(names))]
        at = int(random.random() * (len(COLUMNS) + 1))
        other = round(draw.log_uniform(random, 64, 200000))
        cols = COLUMNS[at] if at < len(COLUMNS) else other
        rows = round(draw.log_uniform(random, 1, ELEMENTS // cols))
        lies = (APART, OFF, *[DENSE] * 6)[int(random.random() * 8)]
        if cols >= OPERATIONS[name].least:
            yield Case(name, rows, cols, lies)


# -- what is timed ----------------------------------------------------------------------------
class Operands:
    """The arrays of a case in bf16 (``seed`` None: memory alone), and the calls that take them."""

    def __init__(self, torch: Any, case: Case, seed: int | None, device: str = "cuda") -> None:
        self._torch, self.case = torch, case
        random = torch.Generator(device=device).manual_seed(seed or 0)

        def made(*shape: int) -> Any:
            empty = torch.empty(shape, dtype=torch.bfloat16, device=device)
            return empty if seed is None else empty.normal_(generator=random)

        rows, cols, of = case.rows, case.cols, case.operation
        count = min(VOCABULARY, ELEMENTS // cols) if of.ours == "embedding" else rows
        pitch, begin = cols + 8 * (case.lies == APART), int(case.lies == OFF)
        x = made(begin + count * pitch)[begin:].view(count, pitch)[:, :cols]
        more = [made(cols) for _ in range(of.vectors)]
        if most := {"embedding": count, "cross_entropy": cols}.get(of.ours):
            which = torch.empty(rows, dtype=torch.int64, device=device)
            more.append(which if seed is None else which.random_(0, most, generator=random))
        self.arrays = (x, *more)

    def ours(self, kernel: str | None = None) -> Work:
        """Our call; ``kernel`` forces a route."""
        given = dict(self.case.operation.given)
        if kernel is not None:
            given["kernel"] = kernel
        return partial(getattr(ptxgen, self.case.operation.ours), *self.arrays, **given)

    def stock(self) -> Callable[..., Any]:
        """PyTorch's function of the arrays."""
        stock, torch = self.case.operation.stock, self._torch
        return lambda *arrays: stock(torch, *arrays)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What our call does."""
        op = LIBRARY[self.case.operation.ours]
        names = (p.name for p in op.parameters)
        given = dict(zip(names, self.arrays, strict=False)) | dict(self.case.operation.given)
        return lowering(op, given)[1].program.steps

    @property
    def step(self) -> Step:
        """The step that moves most."""
        return max(self.steps, key=lambda step: step.nbytes)

    def kernels(self, device: Any) -> dict[str, tuple[KernelSpec, ...]]:
        """The routes that are right for that step, by name, the chosen one first."""
        problem, arch = self.step.problem, architecture(device)
        found = {
            route.name: route.kernels
            for route in serving(problem, device.sms)
            if all(kernel.runs_on(arch) for kernel in route.kernels)
        }
        served = named(problem, device)
        chosen = next(n for n, of in found.items() if tuple(k.name for k in of) == served)
        return {chosen: found[chosen], **found}


@dataclass(frozen=True)
class Timing:
    """A case's times, µs (None: not timed). ``table``, ``dtype`` and ``values``: the problem of
    that of its ``steps`` that moves most. ``routes``: the time of each of its routes, by name, if
    regret is asked for; ``regret``: the chosen one's over that of the ``best``.
    """

    name: str
    rows: int
    cols: int
    lies: str
    nbytes: int
    ours_us: float
    eager_us: float
    compiled_us: float | None
    kernel: str
    steps: int = 1
    table: tuple[str, ...] = ()
    dtype: str = ""
    values: Mapping[str, int] | None = None
    routes: Mapping[str, float] | None = None
    best: str = ""
    regret: float | None = None

    @property
    def peer_us(self) -> float:
        """The faster of PyTorch's."""
        return min(self.eager_us, self.compiled_us or self.eager_us)

    @property
    def ratio(self) -> float:
        """The peer's time over ours."""
        return self.peer_us / self.ours_us

    @property
    def sizes(self) -> str:
        """Of the problem, for people."""
        return f"{self.rows}x{self.cols}{'' if self.lies == DENSE else ', ' + self.lies}"


class Bench:
    """Checks and times cases. What is wrong is said, kept in ``wrong``, and not timed."""

    def __init__(self, torch: Any, seed: int, *, compiled: bool, regret: bool, quick: bool) -> None:
        self._torch, self._seed = torch, seed
        self._compiled, self._regret = compiled, regret
        self._effort = (8.0, 3, 9) if quick else (40.0, 7, 31)
        self._timer, self._device = measure.Timer(torch), get_device("cuda")
        self.wrong: list[str] = []

    def prepare(self, of: Sequence[Case]) -> None:
        """Compiles the kernels of all cases."""
        found: dict[str, KernelSpec] = {}
        for case in of:
            kernels = Operands(self._torch, case, None).kernels(self._device)
            some = kernels.values() if self._regret else [next(iter(kernels.values()))]
            found |= {kernel.name: kernel for of in some for kernel in of}
        seconds = measure.build(list(found.values()))
        note(f"{len(found)} kernels ready in {seconds:.1f} s")

    def timings(self, of: Sequence[Case]) -> Iterator[Timing]:
        """The times of cases."""
        for case in of:
            try:
                yield self._timing(case)
            except (PtxgenError, self._torch.OutOfMemoryError) as error:
                self.wrong.append(f"{case}: {error}")
                note(f"not timed: {self.wrong[-1]}")

    def _timing(self, case: Case) -> Timing:
        operands = Operands(self._torch, case, self._seed)
        ours, stock = operands.ours(), partial(operands.stock(), *operands.arrays)
        found = ours()
        agree(case, operands.arrays[0], found, stock())
        work: list[Work] = [ours, stock, *self._compile(operands)]
        samples = self._timer(work, self._counts(case, len(work)))
        kernels = operands.kernels(self._device)
        chosen = next(iter(kernels))
        judged = self._judged(operands, [*kernels], found) if self._regret else ({}, "", 0.0)
        routes, best, regret = judged
        problem = operands.step.problem
        times = [sample.median for sample in samples]
        return Timing(
            case.name,
            case.rows,
            case.cols,
            case.lies,
            case.nbytes,
            times[0],
            times[1],
            times[2] if len(times) > 2 else None,
            " + ".join(kernel.name for kernel in kernels[chosen]),
            len(operands.steps),
            problem.table,
            problem.dtype if isinstance(problem.dtype, str) else repr(problem.dtype),
            dict(problem.values),
            routes,
            best,
            regret or None,
        )

    def _counts(self, case: Case, several: int) -> list[int]:
        expected = 10 + case.nbytes / 3e6
        return [measure.repetitions(expected, *self._effort)] * several

    def _compile(self, operands: Operands) -> list[Work]:
        if not self._compiled:
            return []
        self._torch._dynamo.reset()
        made = self._torch.compile(operands.stock(), dynamic=False)
        work = partial(made, *operands.arrays)
        try:
            work()
        except Exception as error:  # a compiler's own
            note(f"{operands.case}: torch.compile fails: {type(error).__name__}")
            return []
        return [work]

    def _judged(
        self, operands: Operands, routes: Sequence[str], expected: Any
    ) -> tuple[dict[str, float], str, float]:
        """The time of each route, the best, and the regret of the first, the chosen one."""
        case = operands.case
        work: dict[str, Work] = {}
        for name in routes:
            run = operands.ours(name)
            if same(self._torch, run(), expected):
                work[name] = run
            else:
                self.wrong.append(f"{case}: {name} returns other bits")
                note(self.wrong[-1])
        chosen, *_ = work

        def timed(names: Sequence[str]) -> list[float]:
            samples = self._timer([work[n] for n in names], self._counts(case, len(names)))
            return [sample.median for sample in samples]

        times = timings(self._timer, work)
        best = best_of(chosen, times, timed)
        return times, best.kernel, best.regret


def agree(case: Case, x: Any, ours: Any, theirs: Any) -> None:
    """Results that were rounded once or a few times: a coarse guard against nonsense.

    Prefix sums are held to those in f32 (PyTorch rounds every step to bf16); of maxima that are
    equal any may be named; of the smallest selected values the same holds.
    """
    if case.name == "argmax":
        ours, theirs = (x.gather(-1, i[:, None].long()) for i in (ours, theirs))
    elif case.name == "cumsum":
        theirs = x.float().cumsum(-1)
    elif case.name.startswith("topk"):
        ours, theirs = ours[0], theirs[0]
    off = (ours.float() - theirs.float()).abs().max().item()
    scale = theirs.float().abs().max().item() or 1.0
    if not off <= 2**-4 * scale:
        raise WrongBitsError(f"{case}: off by {off / scale:.3g} of the largest")


def same(torch: Any, a: Any, b: Any) -> bool:
    """Whether results have the same bits."""
    pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    return all(torch.equal(p.view(torch.uint8), q.view(torch.uint8)) for p, q in map(_flat, pairs))


def _flat(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return pair[0].reshape(-1), pair[1].reshape(-1)


# -- what is said -----------------------------------------------------------------------------
def ratio_table(found: Sequence[Timing]) -> str:
    """The peer's time over ours, by operation: geometric mean, P10, least and where."""
    return _spread(found, lambda t: t.ratio, 0.1, min, ("P10", "least"))


def regret_table(found: Sequence[Timing]) -> str:
    """Regret by operation: geometric mean, P90, worst and where."""
    return _spread(found, lambda t: t.regret or 1.0, 0.9, max, ("P90", "worst"))


def _spread(
    found: Sequence[Timing],
    value: Callable[[Timing], float],
    share: float,
    worst: Callable[..., Timing],
    names: tuple[str, str],
) -> str:
    lines = []
    for name in (*OPERATIONS, bands.ALL):
        of = [t for t in found if name in (t.name, bands.ALL)]
        if not of:
            continue
        at = worst(of, key=value)
        values = [value(t) for t in of]
        figures = results.geomean(values), bands.quantile(values, share), value(at)
        where = f"{at.name} {at.sizes}" if name == bands.ALL else at.sizes
        lines.append((name, len(of), *(f"{x:.3f}" for x in figures), where))
    return table(lines, ("operation", "problems", "geomean", *names, "at"))


def worst_table(found: Sequence[Timing]) -> str:
    """One line for each of the problems with the least ratio."""
    lines = [
        (t.name, t.sizes, f"{t.ours_us:.1f}", f"{t.peer_us:.1f}", f"{t.ratio:.3f}", t.kernel)
        for t in sorted(found, key=lambda t: t.ratio)[: bands.WORST]
    ]
    return table(lines, ("operation", "sizes", "ours µs", "peer µs", "ratio", "kernel"))
