"""Random problems of row operations (``ptxgen bench ops --random``); no kernel was tuned for them.

An operation of :data:`OPERATIONS` is drawn, then columns: one of :data:`COLUMNS`, or, one time in
fourteen, log-uniform in 64 .. 200000; then rows, log-uniform in 1 .. 2^27 / columns. One time in
eight the rows are strided (8 elements of padding), one time in eight they are misaligned (the array
begins one element after a 16-byte boundary).

Regret is defined as for products (:mod:`ptxgen.bench.regret`): the chosen kernel's time over that
of the fastest kernel that is correct for the problem. All kernels must return the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import Any

import ptxgen
from ptxgen.bench import bands, draw, measure, opcase, results
from ptxgen.bench.measure import Work
from ptxgen.bench.regret import time_best
from ptxgen.bench.runner import Area, Timed
from ptxgen.bench.tune import timings
from ptxgen.errors import OptionError
from ptxgen.ops import OPERATIONS as LIBRARY
from ptxgen.program.launch import architecture, named, serving
from ptxgen.program.operation import lowering
from ptxgen.program.step import Step
from ptxgen.runtime import get_device
from ptxgen.spec import KernelSpec
from ptxgen.ui import emit, plural

COLUMNS = (128, 256, 512, 768, 1024, 2048, 2880, 3072, 4096, 5120, 7168, 8192, 14336)
ELEMENTS = 1 << 27
"""Maximum elements (rows x columns) of a problem."""
DENSE, APART, OFF = "dense", "apart", "off 16 bytes"
"""Memory layouts of the rows: contiguous, padded by 8 elements, or not 16-byte aligned."""
VOCABULARY = 1 << 16
"""Maximum rows of an embedding's weight."""


@dataclass(frozen=True)
class Operation:
    """An operation over the rows of a matrix x.

    ``ours``: name of the library operation; ``given``: its arguments besides arrays. ``stock``:
    PyTorch's function, which takes torch and the arrays. ``vectors``: number of further arguments
    with one element a column. ``traffic``: bytes moved, in multiples of x's. ``least``: minimum
    columns.
    """

    ours: str
    stock: Callable[..., Any]
    given: Mapping[str, Any]
    vectors: int = 0
    traffic: int = 2
    least: int = 1


def _stock(name: str, *given: Any) -> Callable[..., Any]:
    return lambda torch, x: getattr(torch, name)(x, *given)


def _normed(name: str, *eps: float) -> Callable[..., Any]:
    def stock(torch: Any, x: Any, *vectors: Any) -> Any:
        return getattr(torch.nn.functional, name)(x, x.shape[1:], *vectors, *eps)

    return stock


def _topk(k: int) -> Operation:
    return Operation("topk", _stock("topk", k), {"k": k}, traffic=1, least=k)


OPERATIONS: Mapping[str, Operation] = {
    "softmax": Operation("softmax", _stock("softmax", -1), {}),
    "log_softmax": Operation("log_softmax", _stock("log_softmax", -1), {}),
    "logsumexp": Operation("logsumexp", _stock("logsumexp", -1), {}, traffic=1),
    "rms_norm": Operation("rms_norm", _normed("rms_norm", 1e-6), {}, vectors=1),
    "layer_norm": Operation("layer_norm", _normed("layer_norm"), {}, vectors=2),
    "cross_entropy": Operation(
        "cross_entropy",
        lambda torch, x, target: torch.nn.functional.cross_entropy(x.float(), target),
        {},
        traffic=1,
    ),
    "sum of rows": Operation("sum", _stock("sum", 1), {"axis": 1}, traffic=1),
    "sum of columns": Operation("sum", _stock("sum", 0), {"axis": 0}, traffic=1),
    "argmax": Operation("argmax", _stock("argmax", -1), {"axis": -1}, traffic=1),
    "cumsum": Operation("cumsum", _stock("cumsum", -1), {}),
    "embedding": Operation(
        "embedding", lambda torch, w, i: torch.nn.functional.embedding(i, w), {}
    ),
    "topk 50": _topk(50),
    "topk 1024": _topk(1024),
}
"""Operations of random problems, equally likely; ``topk`` with k above the columns is redrawn."""
NAMED: Mapping[str, Operation] = {
    **OPERATIONS,
    "sum of all": Operation("sum", lambda torch, x: x.sum(), {}, traffic=1),
    "topk 8": _topk(8),
    "sample": Operation("sample", lambda torch, x: x.argmax(-1), {}, traffic=1),
}
"""All row operations, by name: those of random problems, and others that :mod:`ptxgen.bench.ops`
times.
"""


@dataclass(frozen=True)
class Case:
    """An operation on ``rows`` of ``cols`` elements; ``layout``: memory layout of the rows."""

    name: str
    rows: int
    cols: int
    layout: str

    @property
    def operation(self) -> Operation:
        """The operation that ``name`` refers to."""
        return NAMED[self.name]

    @property
    def nbytes(self) -> int:
        """Bytes that are read and written in bf16, each element once."""
        return 2 * self.rows * self.cols * self.operation.traffic

    def __str__(self) -> str:
        return f"{self.name} {self.rows}x{self.cols}, {self.layout}"


def cases(count: int, seed: int) -> list[Case]:
    """Returns the first ``count`` problems that ``seed`` draws.

    Raises OptionError for arguments that :func:`ptxgen.bench.draw.check` refuses.
    """
    return draw.first(count, seed, _drawn(Random(seed)))


def _drawn(random: Random) -> Iterator[Case]:
    # By random() alone: its numbers are the same in every version of Python.
    names = [*OPERATIONS]
    while True:
        name = names[int(random.random() * len(names))]
        at = int(random.random() * (len(COLUMNS) + 1))
        other = draw.integer(random, 64, 200000)
        cols = COLUMNS[at] if at < len(COLUMNS) else other
        rows = draw.integer(random, 1, ELEMENTS // cols)
        layout = (APART, OFF, *[DENSE] * 6)[int(random.random() * 8)]
        if cols >= OPERATIONS[name].least:
            yield Case(name, rows, cols, layout)


# -- what is timed ----------------------------------------------------------------------------
class Operands:
    """bf16 arrays of a case, random (uninitialised without ``seed``), and the calls on them."""

    def __init__(self, torch: Any, case: Case, seed: int | None, device: str = "cuda") -> None:
        self._torch, self.case = torch, case
        random = torch.Generator(device=device).manual_seed(seed or 0)

        def made(*shape: int) -> Any:
            empty = torch.empty(shape, dtype=torch.bfloat16, device=device)
            return empty if seed is None else empty.normal_(generator=random)

        rows, cols, of = case.rows, case.cols, case.operation
        count = min(VOCABULARY, ELEMENTS // cols) if of.ours == "embedding" else rows
        pitch, begin = cols + 8 * (case.layout == APART), int(case.layout == OFF)
        x = made(begin + count * pitch)[begin:].view(count, pitch)[:, :cols]
        more = [made(cols) for _ in range(of.vectors)]
        if most := {"embedding": count, "cross_entropy": cols}.get(of.ours):
            which = torch.empty(rows, dtype=torch.int64, device=device)
            more.append(which if seed is None else which.random_(0, most, generator=random))
        self.arrays = (x, *more)

    def work(self, compiled: bool = True) -> opcase.Work:
        """Returns ptxgen's function and PyTorch's; ``compiled``: times ``torch.compile``, too."""
        of, torch = self.case.operation, self._torch
        return opcase.Work(
            *(self.arrays, partial(getattr(ptxgen, of.ours), **of.given)),
            lambda *arrays: of.stock(torch, *arrays),
            compiled,
            agree=partial(agree, self.case, self.arrays[0]),
        )

    def ours(self, kernel: str | None = None) -> Work:
        """Returns ptxgen's call, with the route named ``kernel`` if given."""
        forced = {} if kernel is None else {"kernel": kernel}
        return partial(self.work().ours, *self.arrays, **forced)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the program that ptxgen's call is lowered to."""
        op = LIBRARY[self.case.operation.ours]
        names = (p.name for p in op.parameters)
        given = dict(zip(names, self.arrays, strict=False)) | dict(self.case.operation.given)
        return lowering(op, given)[1].program.steps

    @property
    def step(self) -> Step:
        """The step of the program with the most memory traffic."""
        return max(self.steps, key=lambda step: step.nbytes)

    def kernels(self, device: Any) -> dict[str, tuple[KernelSpec, ...]]:
        """Returns the kernels of each route that is correct for :attr:`step`, by route name.

        The dispatcher's choice is first.
        """
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
class Timing(opcase.VersusTorch):
    """Times of a case in µs (None: not timed).

    ``lies``: memory layout of the rows. ``steps``: number of steps of the program. ``table``,
    ``dtype`` and ``values``: the problem of the step with the most memory traffic. ``routes``: µs
    of each route of that step, by name, with ``--regret``; ``regret``: the chosen route's time over
    that of ``best``.
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
    def sizes(self) -> str:
        """Rows, columns and memory layout as text."""
        return f"{self.rows}x{self.cols}{'' if self.lies == DENSE else ', ' + self.lies}"


class Rows(Area):
    """Benchmark ``ptxgen bench ops --random``: random problems of row operations (softmax, norms,
    sums, top-k, …), against PyTorch.
    """

    name = "ops"
    row = Timing
    effort = 40.0, 7, 31

    def cases(self) -> list[Case]:
        if self.options.only != ["*"]:
            raise OptionError("--random draws operations over rows: no --only")
        count = self.options.random  # True where none is given
        return cases(self.options.problems if count is True else count, self.seed)

    @cached_property
    def gpu(self) -> Any:
        """The device that holds all arrays."""
        return get_device(self.device)

    def kernels(self, case: Case) -> list[KernelSpec]:
        found = list(Operands(self.torch, case, None).kernels(self.gpu).values())
        return [kernel for of in found[: None if self.options.regret else 1] for kernel in of]

    def check(self, case: Case) -> Timed:
        self.operands = Operands(self.torch, case, self.seed)
        made = self.operands.work(self.options.compiled)
        return Timed(opcase.checked_calls(self.torch, case, made), 10 + case.nbytes / 3e6)

    def found(self, case: Case, times: Mapping[str, results.Sample]) -> Iterator[Timing]:
        kernels, problem = self.operands.kernels(self.gpu), self.operands.step.problem
        routes: dict[str, float] = {}
        best = None
        if self.options.regret:
            routes, best = self.route_times(self.operands, [*kernels], self.operands.ours()())
        yield Timing(
            *(case.name, case.rows, case.cols, case.layout, case.nbytes),
            *opcase.medians(times),
            " + ".join(kernel.name for kernel in next(iter(kernels.values()))),
            len(self.operands.steps),
            problem.table,
            problem.dtype if isinstance(problem.dtype, str) else repr(problem.dtype),
            dict(problem.values),
            routes,
            best.kernel if best else "",
            best.regret if best else None,
        )

    def route_times(
        self, operands: Operands, routes: Sequence[str], expected: Any
    ) -> tuple[dict[str, float], results.Best]:
        """Returns the µs of each route, and the fastest with the regret of ``routes[0]``, the
        chosen one.

        Routes whose bits differ from ``expected`` are reported and not timed.
        """
        work: dict[str, Work] = {}
        for name in routes:
            run = operands.ours(name)
            if same(self.torch, run(), expected):
                work[name] = run
            else:
                self.refuse(operands.case, f"{name} returns other bits")
        times = timings(self.timer, work)
        chosen, *_ = work
        return times, time_best(self.timer, self.effort, work, chosen, times)

    def records(
        self, rows: Sequence[Timing], surroundings: results.Environment
    ) -> list[dict[str, Any]]:
        """Returns rows as records to save. Each has the GPU's peak rates, to which the constants
        are relative that ``ptxgen tune`` fits to it.
        """
        rates = measure.rates()
        assert rates is not None, "a GPU's driver states them"
        known = {"rates": asdict(rates)}
        return [record | known for record in super().records(rows, surroundings)]

    def show(self, rows: Sequence[Timing], runs: Sequence[results.Environment]) -> None:
        emit(f"\nthe faster of PyTorch's / ours, {plural(len(rows), 'problem')}")
        emit(spread_table(rows, bands.RATIO))
        emit("\nthe worst of them")
        emit(worst_table(rows))
        if known := [t for t in rows if t.regret is not None]:
            emit("\nchosen kernel's time / the best one's")
            emit(spread_table(known, bands.REGRET))


def has_random_rows(path: Path) -> bool:
    """Whether a file of ``bench ops`` has random problems. Raises PtxgenError for other files."""
    with results.reading(path, "ops"):
        return "lies" in json.loads(path.read_text(encoding="utf-8"))[0]


def agree(case: Case, x: Any, ours: Any, theirs: Any) -> bool:
    """Whether ptxgen's result and PyTorch's agree; raises WrongBitsError if they are far apart.

    Prefix sums are compared with sums in f32, as PyTorch rounds every step to bf16. ``argmax`` and
    ``topk`` are compared by value, as equal elements may be selected in any order.
    """
    if case.name in ("argmax", "sample"):
        ours, theirs = (x.gather(-1, i[:, None].long()) for i in (ours, theirs))
    elif case.name == "cumsum":
        exact = x.float().cumsum(-1)
        return bool((ours - exact).abs().max() <= 2**-7 * exact.abs().max())
    elif case.name.startswith("topk"):
        ours, theirs = ours[0], theirs[0]
    measure.require_close("ours", ours, theirs)
    return True


def same(torch: Any, a: Any, b: Any) -> bool:
    """Whether two results, tensors or tuples of them, have the same bits."""
    pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    return all(torch.equal(p.view(torch.uint8), q.view(torch.uint8)) for p, q in map(_flat, pairs))


def _flat(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return pair[0].reshape(-1), pair[1].reshape(-1)


# -- what is said -----------------------------------------------------------------------------
def spread_table(found: Sequence[Timing], measure: bands.Measure) -> str:
    """Returns a table of the statistics of ``measure`` (ratio or regret), a line for each operation
    and one for all.
    """
    ordered = sorted(found, key=lambda t: [*OPERATIONS].index(t.name))
    spreads = bands.by(ordered, lambda t: (t.name,), measure, lambda t: t.sizes)
    spreads |= bands.by(found, lambda t: (bands.ALL,), measure, lambda t: f"{t.name} {t.sizes}")
    return bands.table_of(spreads, ("operation",), measure, cases="problems")


def worst_table(found: Sequence[Timing]) -> str:
    """Returns a table of the :data:`bands.WORST` problems with the smallest ratios."""
    columns = [
        *(("operation", "name"), ("sizes", "sizes"), ("ours µs", "ours_us:.1f")),
        *(("peer µs", "peer_us:.1f"), ("ratio", "ratio:.3f"), ("kernel", "kernel")),
    ]
    return results.columns(sorted(found, key=lambda t: t.ratio)[: bands.WORST], columns)
