"""Areas of operations that memory bounds: what is called, beside what, and how it is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any, ClassVar, NamedTuple

from ptxgen.bench import measure, results
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.results import Sample
from ptxgen.bench.runner import Area, Timed
from ptxgen.errors import OptionError
from ptxgen.ui import emit, note

BANDWIDTH = 4.3e12
"""Bytes a second that an H200's memory gives a copy, the limit that times are held to."""


class Work(NamedTuple):
    """What is timed: functions of the same tensors, ours and PyTorch's."""

    inputs: tuple[Any, ...]
    ours: Callable[..., Any]
    stock: Callable[..., Any]
    compiled: bool = True
    """Whether ``stock`` is also timed as torch.compile makes it."""
    peer: Callable[..., Any] | None = None
    """What is timed in place of that: another library's."""
    agree: Callable[[Any, Any], bool] | None = None
    """Whether results agree, ours and PyTorch's, where they are not the same numbers."""


@dataclass(frozen=True)
class OpCase:
    """One line of the table. ``make`` is given torch; ``nbytes``: read and written, each once."""

    name: str
    sizes: str
    nbytes: int
    make: Callable[[Any], Work]

    def __str__(self) -> str:
        return f"{self.name} {self.sizes}"

    @property
    def limit_us(self) -> float:
        """The time that the bytes take."""
        return 1e6 * self.nbytes / BANDWIDTH


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

    @property
    def ratio(self) -> float:
        """The peer's time over ours."""
        return self.peer_us / self.ours_us

    @property
    def share(self) -> float:
        """The part of the limit that is reached."""
        return self.limit_us / self.ours_us


class OpArea(Area):
    """An area whose cases are :class:`OpCase`."""

    row: ClassVar[type[Any]] = Timing
    effort = 60.0, 7, 51
    third: ClassVar[str] = "compile"
    """The heading of ``compiled_us``."""

    def check(self, case: OpCase) -> Timed:
        """Ours agrees with PyTorch's and a peer's."""
        made = case.make(self.torch)
        ours, stock = (partial(call, *made.inputs) for call in (made.ours, made.stock))
        work: dict[str, measure.Work] = {"ours": ours, "eager": stock}
        compare(ours(), stock(), made.agree)
        if made.peer is not None:
            work["peer"] = partial(made.peer, *made.inputs)
            compare(ours(), work["peer"](), made.agree)
        elif made.compiled:
            work |= compiled(self.torch, made.stock, made.inputs, case)
        return Timed(work, 3 * case.limit_us + 10)

    def found(self, case: OpCase, times: Mapping[str, Sample]) -> Iterator[Timing]:
        mine, eager, *others = (sample.median for sample in times.values())
        known = case.name, case.sizes, case.nbytes, case.limit_us
        yield Timing(*known, mine, eager, others[0] if others else None)

    def show(self, rows: Sequence[Timing], runs: Sequence[results.Environment]) -> None:
        emit(timing_table(rows, self.third))


def compiled(
    torch: Any, stock: Callable[..., Any], inputs: Sequence[Any], case: object
) -> dict[str, measure.Work]:
    """The compiled ``stock``, by its name; nothing where torch.compile fails."""
    torch._dynamo.reset()
    work = partial(torch.compile(stock, dynamic=False), *inputs)
    try:
        work()
    except Exception as error:  # a compiler's own
        note(f"{case}: torch.compile fails: {type(error).__name__}")
        return {}
    return {"compiled": work}


def compare(ours: Any, theirs: Any, agree: Callable[[Any, Any], bool] | None = None) -> None:
    """Raises WrongBitsError for results that do not agree, or are far from each other."""
    if agree is None:
        measure.near("ours", ours, theirs)
    elif not agree(ours, theirs):
        raise WrongBitsError("not what was to be computed")


def timing_table(found: Sequence[Timing], third: str = "compile") -> str:
    """One line per case. ``third``: whose times ``compiled_us`` are."""
    columns = [
        *(("operation", "name"), ("sizes", "sizes"), ("ours", "ours_us:.1f")),
        *(("eager", "eager_us:.1f"), (third, "compiled_us:.1f"), ("limit", "limit_us:.1f")),
        *(("of limit", "share:.2f"), ("peer / ours", "ratio:.2f")),
    ]
    return results.columns(found, columns)


def matching(names: Iterable[tuple[str, ...]], patterns: Sequence[str]) -> list[bool]:
    """Picks things whose names match a pattern. OptionError if none does."""
    names = list(names)
    found = [any(fnmatch(name, p) for p in patterns for name in of) for of in names]
    if not any(found):
        known = ", ".join(dict.fromkeys(name for name, *_ in names))
        raise OptionError(f"--only {','.join(patterns)} matches nothing; there are {known}")
    return found
