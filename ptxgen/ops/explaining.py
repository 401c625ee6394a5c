"""``explain``: which kernels serve an operation of these sizes, and why."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.dispatch import accepted
from ptxgen.dispatch.explain import Explanation, explain_problem
from ptxgen.errors import OptionError, ShapeError, UncoveredError
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, name_of
from ptxgen.ops import COMPOSED, OPS
from ptxgen.ops.op import Op, Plan, Question
from ptxgen.spec import ALIGNMENT, Problem, architecture_named
from ptxgen.tiles.tunings import tunings


def explain(
    op: str,
    *sizes: int,
    dtype: Any = None,
    arch: str | None = None,
    sms: int | None = None,
    align: int | tuple[int, ...] = 16,
    gpu: str | None = None,
    **options: Any,
) -> Explanation | Composition:
    """Which kernels serve a problem of the operation ``op``, and why.

    ``sizes``: the operation's own, in its order (M, N, K of products). ``options``: those of the
    operation that say what serves it, such as ``layout`` and ``tier``. ``dtype``: of the operands
    (default: float32), or of their elements, where that is an option. ``arch``, ``sms``: default
    those of the GPU's tuning, or an H200's, sm_90 with 132. ``align``: bytes, of all operands or
    of each. ``gpu``: the GPU's name, whose tuning decides if there is one for its SMs (default: an
    H200's, unless ``arch`` or ``sms`` is given); if not, ``arch`` and ``sms`` must be given.

    Raises OptionError for what is unknown, DtypeError, ShapeError for sizes that are none, and
    UncoveredError.
    """
    sms = None if sms is None else _integer("sms", sms)
    if sms is not None and sms < 1:
        raise OptionError(f"sms is {sms}; takes 1 or more")
    if op in COMPOSED:
        where = {"arch": arch, "sms": sms, "align": align, "gpu": gpu}
        given = {name: value for name, value in options.items() if value is not None}
        return _composed(op, sizes, dtype, given, where)
    note = ""
    if gpu is None and arch is None and sms is None:
        gpu = "NVIDIA H200"
    if gpu is not None:
        arch, sms, note = _gpu(gpu, arch, sms)
    arch = architecture_named("sm_90" if arch is None else arch).name
    problem = pose(op, sizes, dtype, align, options)
    return explain_problem(problem, arch, 132 if sms is None else sms, gpu, note)


@dataclass(frozen=True)
class Composition:
    """The steps of an operation that is made of others. ``str`` is for people."""

    problem: str
    """In words, with what decides the steps."""
    steps: tuple[tuple[int, Explanation], ...]
    """How often each is taken, and what serves it."""
    scratch: Mapping[str, int]
    """Bytes of memory besides operands, results, and the steps' own, by name."""

    @property
    def launches(self) -> int:
        """Launches of kernels by the steps."""
        return sum(count * len(step.launches) for count, step in self.steps)

    def brief(self) -> str:
        """The steps and their kernels."""
        lines = [self.problem]
        for count, step in self.steps:
            lines.append(f"{count} x {step.problem}: {' + '.join(step.winner.kernels)}")
        lines.append(f"{self.launches} launches, and one or two of what is of all rows")
        lines += [f"scratch {name!r}: {size} bytes" for name, size in self.scratch.items()]
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n\n".join([self.brief(), *(step.brief() for _, step in self.steps)])


def _composed(
    op: str,
    sizes: tuple[int, ...],
    dtype: Any,
    options: Mapping[str, Any],
    where: Mapping[str, Any],
) -> Composition:
    plan = COMPOSED[op](tuple(_integer("a size", size) for size in sizes), dtype, options)
    while True:
        try:
            return Composition(plan.summary, tuple(_steps(plan, where)), plan.scratch)
        except UncoveredError:
            if plan.otherwise is None:
                raise
            plan = plan.otherwise


def _steps(plan: Plan, where: Mapping[str, Any]) -> Iterator[tuple[int, Explanation]]:
    for name, each, kind, how, count in plan.steps:
        found = explain(name, *each, dtype=kind, **where, **how)
        assert isinstance(found, Explanation), "steps are single operations"
        yield count, found


def pose(
    op: str,
    sizes: tuple[int, ...],
    dtype: Any,
    align: int | tuple[int, ...],
    options: dict[str, Any],
) -> Problem:
    """The problem of ``op`` with these sizes. Raises as :func:`explain`."""
    row = row_of(op)
    names = row.signature.sizes
    if len(sizes) != len(names):
        raise ShapeError(f"{op} is given {len(sizes)} sizes; takes {', '.join(names)}")
    named = {name: _integer(name, size) for name, size in zip(names, sizes, strict=True)}
    given = {name: value for name, value in options.items() if value is not None}
    of, itemsize = operands(row, dtype)
    taken = row.options({**given, "dtype": of} if "dtype" in row.signature.options else given)
    aligns = (align,) if isinstance(align, int) else tuple(align)
    legal = [a for a in (1, *ALIGNMENT.values) if a >= itemsize]
    if not set(aligns) <= set(legal):
        raise OptionError(
            f"align is {align!r}; operands of {of} are aligned to {', '.join(map(str, legal))} "
            "bytes"
        )
    return row.pose(Question(named, DTYPES.get(of, of), taken, aligns))


def operands(row: Op, dtype: Any, what: str = "dtype") -> tuple[str, int]:
    """The dtype of a row's operands, where ``dtype`` is asked for, and bytes of an item.

    Where it is an option it is that of elements, of which memory, in bytes, knows nothing.
    """
    option = row.signature.options.get("dtype")
    if option is not None:
        return option.default if dtype is None else dtype, 1
    found = name_of("float32" if dtype is None else dtype, what)
    return found, ITEMSIZE[DTYPES[found]]


def row_of(op: str) -> Op:
    """The row of an operation. Raises OptionError for an unknown one."""
    if op not in OPS:
        raise accepted("operation", op, OPS)
    return OPS[op]


def _gpu(gpu: str, arch: str | None, sms: int | None) -> tuple[str, int, str]:
    """The architecture and SMs of a GPU, and what to say where it has no tuning."""
    of_it = [p for p in tunings() if p.gpu == gpu and arch in (None, p.arch)]
    for tuning in of_it:
        if sms in (None, tuning.sms):
            return tuning.arch, tuning.sms, ""
    if arch is None and of_it:  # with another number of SMs
        arch = of_it[0].arch
    if arch is None or sms is None:
        there_are = ", ".join(f"{p.gpu} with {p.sms} SMs" for p in tunings()) or "none"
        raise OptionError(
            f"there is no tuning of {gpu!r}{f' with {sms} SMs' if sms else ''} (of: {there_are}); "
            "give its architecture and its SMs, to have it routed by these"
        )
    return arch, sms, f"no tuning of {gpu} with {sms} SMs: routed by its architecture"


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ShapeError(f"{name} is {value!r}; takes an integer") from None
