"""Areas of operations that memory bounds: what is called, beside what, and how it is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

from ptxgen.bench import measure, results
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.results import Sample
from ptxgen.bench.runner import Area, Timed
from ptxgen.errors import OptionError
from ptxgen.ui import note

T = TypeVar("T")
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


class Beside:
    """Our time beside PyTorch's, µs; ``compiled_us`` is None where that was not asked to compile,
    and another library's time where a case has a peer.
    """

    ours_us: float
    eager_us: float
    compiled_us: float | None

    @property
    def peer_us(self) -> float:
        """The faster of PyTorch's."""
        return min(self.eager_us, self.compiled_us or self.eager_us)

    ratio = results.quotient("peer_us", "ours_us")


@dataclass(frozen=True)
class Timing(Beside):
    """A case's times."""

    name: str
    sizes: str
    nbytes: int
    limit_us: float
    ours_us: float
    eager_us: float
    compiled_us: float | None

    share = results.quotient("limit_us", "ours_us")


class OpArea(Area):
    """An area whose cases are :class:`OpCase`."""

    row: ClassVar[type[Any]] = Timing
    effort = 60.0, 7, 51
    columns: ClassVar[results.Columns] = (
        *(("operation", "name"), ("sizes", "sizes"), ("ours", "ours_us:.1f")),
        *(("eager", "eager_us:.1f"), ("compile", "compiled_us:.1f"), ("limit", "limit_us:.1f")),
        *(("of limit", "share:.2f"), ("peer / ours", "ratio:.2f")),
    )

    def check(self, case: OpCase) -> Timed:
        return Timed(agreed(self.torch, case, case.make(self.torch)), 3 * case.limit_us + 10)

    def found(self, case: OpCase, times: Mapping[str, Sample]) -> Iterator[Timing]:
        yield Timing(case.name, case.sizes, case.nbytes, case.limit_us, *medians(times))


def medians(times: Mapping[str, Sample]) -> tuple[float, float, float | None]:
    """Our time, PyTorch's, and that of the third, None where there is none."""
    ours, eager, *others = (sample.median for sample in times.values())
    return ours, eager, others[0] if others else None


def trained(
    torch: Any,
    dy: Any,
    given: Sequence[Any],
    ours: Callable[..., Any],
    stock: Callable[..., Any],
) -> Work:
    """Forward and backward, with gradients by all that is given."""

    def both(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda dy, *given: torch.autograd.grad(call(*given), given, dy)

    leaves = (each.requires_grad_() for each in given)
    return Work((dy, *leaves), both(ours), both(stock), compiled=False)


def agreed(torch: Any, case: object, made: Work) -> dict[str, measure.Work]:
    """The calls of a case by name, of which ours agrees with PyTorch's and a peer's; without the
    compiled one where torch.compile fails.
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
        except Exception as error:  # a compiler's own
            note(f"{case}: torch.compile fails: {type(error).__name__}")
        else:
            work["compiled"] = compiled
    return work


def compare(ours: Any, theirs: Any, agree: Callable[[Any, Any], bool] | None = None) -> None:
    """Raises WrongBitsError for results that do not agree, or are far from each other."""
    if agree is None:
        measure.near("ours", ours, theirs)
    elif not agree(ours, theirs):
        raise WrongBitsError("not what was to be computed")


def matching(every: Mapping[T, str], patterns: Sequence[str]) -> list[T]:
    """Those of ``every``, by name, that have a name or a text that matches a pattern. OptionError
    if none does.
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
