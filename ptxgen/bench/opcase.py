"""Benchmarks of memory-bound operations: cases, peers, checks and rows."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from random import Random
from typing import Any, ClassVar, NamedTuple, TypeVar

from ptxgen import arguments
from ptxgen.bench import bands, draw, measure, results
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.results import Environment, Sample
from ptxgen.bench.runner import Area, Timed, add_list
from ptxgen.errors import OptionError
from ptxgen.ui import emit, note

T = TypeVar("T")
BANDWIDTH = 4.3e12
"""Bytes/s that a copy reaches on an H200: the roofline limit of memory-bound operations."""


class Work(NamedTuple):
    """Calls of a case on the tensors ``inputs``: ptxgen's function and PyTorch's (``stock``)."""

    inputs: tuple[Any, ...]
    ours: Callable[..., Any]
    stock: Callable[..., Any]
    compiled: bool = True
    """Whether ``stock`` is also timed when compiled by ``torch.compile``."""
    peer: Callable[..., Any] | None = None
    """Another library's function, timed in place of compiled ``stock``."""
    agree: Callable[[Any, Any], bool] | None = None
    """Function that compares ptxgen's result with PyTorch's; None: they have to be nearly equal."""


@dataclass(frozen=True)
class OpCase:
    """A case of an operation: one line of the table.

    ``name``, ``sizes``: its texts. ``make(torch)`` draws the inputs and returns the calls;
    ``nbytes``: bytes read and written, each element once.
    """

    name: str
    sizes: str
    nbytes: int
    make: Callable[[Any], Work]

    def __str__(self) -> str:
        return f"{self.name} {self.sizes}"

    @property
    def limit_us(self) -> float:
        """The time of moving ``nbytes`` at :data:`BANDWIDTH`, µs."""
        return 1e6 * self.nbytes / BANDWIDTH


class VersusTorch:
    """Times in µs of ptxgen and of PyTorch, eager and compiled.

    ``compiled_us``: time with ``torch.compile`` (None: not compiled). Cases with another peer have
    the peer's time here.
    """

    ours_us: float
    eager_us: float
    compiled_us: float | None

    @property
    def peer_us(self) -> float:
        """The time of PyTorch in µs, eager or compiled, whichever is faster."""
        return min(self.eager_us, self.compiled_us or self.eager_us)

    ratio = results.quotient("peer_us", "ours_us")


@dataclass(frozen=True)
class Timing(VersusTorch):
    """Times of a case in µs, bytes that it moves, and their time at the bandwidth limit."""

    name: str
    sizes: str
    nbytes: int
    limit_us: float
    ours_us: float
    eager_us: float
    compiled_us: float | None

    share = results.quotient("limit_us", "ours_us")


class OpArea(Area):
    """Base class of benchmarks whose cases are :class:`OpCase`."""

    row: ClassVar[type[Any]] = Timing
    effort = 60.0, 7, 51
    columns: ClassVar[results.Columns] = (
        *(("operation", "name"), ("sizes", "sizes"), ("ours", "ours_us:.1f")),
        *(("eager", "eager_us:.1f"), ("compile", "compiled_us:.1f"), ("limit", "limit_us:.1f")),
        *(("of limit", "share:.2f"), ("peer / ours", "ratio:.2f")),
    )

    def check(self, case: OpCase) -> Timed:
        made = case.make(self.torch)
        calls = checked_calls(self.torch, case, made)
        self.examine(case, made)
        return Timed(calls, 3 * case.limit_us + 10)

    def examine(self, case: Any, made: Work) -> None:
        """Measures more of a case whose results are right, for its row; nothing by default."""

    def found(self, case: OpCase, times: Mapping[str, Sample]) -> Iterator[Timing]:
        yield Timing(case.name, case.sizes, case.nbytes, case.limit_us, *medians(times))


class DrawnArea(OpArea):
    """Base class of benchmarks that draw cases of each of several operations by a seed.

    ``operations``: functions that draw a random case, by name of the case; ``count``: the number of
    cases of each that are drawn by default; ``slow_host``: as in :class:`Timed`.
    """

    operations: ClassVar[Mapping[str, Callable[[Random], OpCase]]]
    count: ClassVar[int] = 8
    slow_host: ClassVar[bool] = True

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add_list(parser, "--only", "names or patterns (all)", default=["*"])
        text = "cases of each (%(default)s)"
        parser.add_argument(
            "--random", "--cases", type=int, default=cls.count, metavar="COUNT", help=text
        )
        arguments.add_seed(parser, 1)

    @classmethod
    def drawn_cases(cls, count: int, seed: int, patterns: Sequence[str] = ("*",)) -> list[OpCase]:
        """Draws ``count`` cases of each operation whose name matches a pattern.

        The cases of an operation do not depend on the others. Raises OptionError if none matches.
        """
        draw.check(count, seed)
        found = []
        for name in matching({name: name for name in cls.operations}, patterns):
            random = Random(f"{seed} {name}")
            found += [cls.operations[name](random) for _ in range(count)]
        return found

    def cases(self) -> list[OpCase]:
        return self.drawn_cases(self.options.random, self.options.seed, self.options.only)

    def check(self, case: OpCase) -> Timed:
        self.torch.manual_seed(self.seed)
        return replace(super().check(case), slow_host=self.slow_host)

    def show(self, rows: Sequence[Any], runs: Sequence[Environment]) -> None:
        super().show(rows, runs)
        emit("\npeer's time / ours")
        spreads = bands.by(rows, lambda row: (row.name,), at=lambda row: str(row.sizes))
        if len(spreads) > 1:
            total = bands.by(rows, lambda row: (bands.ALL,), at=lambda r: f"{r.name} {r.sizes}")
            spreads |= total
        emit(bands.table_of(spreads, ("operation",)))


def medians(times: Mapping[str, Sample]) -> tuple[float, float, float | None]:
    """Returns the median times in µs of ptxgen, of eager PyTorch, and of a third call: compiled
    PyTorch or another library (None without one).
    """
    ours, eager, *others = (sample.median for sample in times.values())
    return ours, eager, others[0] if others else None


def with_gradients(
    torch: Any,
    dy: Any,
    given: Sequence[Any],
    ours: Callable[..., Any],
    stock: Callable[..., Any],
) -> Work:
    """Returns calls that run forward, then backward from the output gradient ``dy``, and return the
    gradients of all of ``given``.

    ``ours``, ``stock``: ptxgen's function and PyTorch's, of the arguments ``given``.
    """

    def both(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda dy, *given: torch.autograd.grad(call(*given), given, dy)

    leaves = (each.requires_grad_() for each in given)
    return Work((dy, *leaves), both(ours), both(stock), compiled=False)


def device_of(torch: Any) -> str:
    """Returns the device of benchmarks' tensors: "cpu" where there is no GPU, as in tests."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def checked_calls(torch: Any, case: object, made: Work) -> dict[str, measure.Work]:
    """Compares ptxgen's results with PyTorch's and, if there is one, the other peer's; returns the
    calls to time, by name.

    ``made``: the calls of ``case`` and their inputs. ``torch.compile``'s call is left out if
    compilation fails. Raises WrongBitsError if results disagree.
    """
    ours, stock = (partial(call, *made.inputs) for call in (made.ours, made.stock))
    work: dict[str, measure.Work] = {"ours": ours, "eager": stock}
    compare(ours(), stock(), made.agree)
    if made.peer is not None:
        work["peer"] = partial(made.peer, *made.inputs)
        compare(ours(), work["peer"](), made.agree)
    elif made.compiled:
        torch._dynamo.reset()
        compiled = partial(torch.compile(made.stock, dynamic=False), *made.inputs)
        try:
            compiled()
        except Exception as error:  # any failure of the compiler leaves it out
            note(f"{case}: torch.compile fails: {type(error).__name__}")
        else:
            work["compiled"] = compiled
    return work


def compare(ours: Any, theirs: Any, agree: Callable[[Any, Any], bool] | None = None) -> None:
    """Raises WrongBitsError unless ``agree(ours, theirs)``; without ``agree``, unless results are
    close by :func:`ptxgen.bench.measure.require_close`.
    """
    if agree is None:
        measure.require_close("ours", ours, theirs)
    elif not agree(ours, theirs):
        raise WrongBitsError("not what was to be computed")


def matching(every: Mapping[T, str], patterns: Sequence[str]) -> list[T]:
    """Returns the cases that match one of ``patterns`` by their name or by their text.

    ``every``: names by case. Raises OptionError if none matches.
    """
    found = [
        thing
        for thing, name in every.items()
        if any(fnmatch(text, p) for p in patterns for text in (name, str(thing)))
    ]
    if not found:
        known = ", ".join(dict.fromkeys(every.values()))
        raise OptionError(f"--only {','.join(patterns)} matches nothing; there are {known}")
    return found
