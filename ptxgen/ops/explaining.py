"""``explain``: which kernels serve an operation of these sizes, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from ptxgen.cost.tuning import driver_name, tunings
from ptxgen.dispatch import accepted, choose
from ptxgen.dispatch.explain import SHOWN_US, Explanation, explain_problem, legend
from ptxgen.errors import OptionError, PtxgenError, ShapeError, proposal
from ptxgen.numerics.dtype import BYTES, FULL, NAMES, name_of
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.option import Choice, name_text, whole
from ptxgen.numerics.signature import packed
from ptxgen.ops import attention_shapes
from ptxgen.program.arena import Piece, place
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import Op
from ptxgen.program.parameters import ARRAY, EITHER, OPTION, OPTIONAL
from ptxgen.program.registry import OPERATIONS
from ptxgen.program.step import Program
from ptxgen.runtime.strided import contiguous_strides
from ptxgen.spec import ALIGNMENT, Problem, architecture_named


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
    """Returns which kernels serve a problem of the operation ``op``, and why.

    ``sizes``: the operation's sizes, in its order (M, N, K of products). ``options``: those of the
    operation, such as ``layout`` and ``tier``; with the name of an optional array, True passes that
    array; with the name of any array, a dtype sets its dtype. ``dtype``: dtype of the other
    operands (default: float32), or of packed elements, if the operation has an option ``dtype``.
    ``align``: alignment in bytes, of all operands or of each.

    ``gpu``: the GPU whose tuning predicts times (default: an H200, unless ``arch`` or ``sms`` is
    given). A GPU without a tuning for its SMs takes ``arch`` and ``sms``. ``arch``, ``sms``: by
    default those of the GPU's tuning, or of an H200, sm_90 with 132 SMs.

    The operation is lowered to its program. A program of one step returns an :class:`Explanation`,
    one of several steps a :class:`Composition`.

    Raises OptionError for unknown names, DtypeError, ShapeError for invalid sizes, and
    UncoveredError if no kernel serves the problem.
    """
    if sms is not None:
        sms = _size("sms", sms, OptionError)
    note = ""
    if arch is not None:
        arch = architecture_named(arch).name
    if gpu is None and arch is None and sms is None:
        gpu = "NVIDIA H200"
    if gpu is not None:
        gpu = driver_name(name_text("gpu", gpu))
        arch, sms, note = _gpu(gpu, arch, sms)
    arch, sms = arch or "sm_90", sms or 132
    program = program_of(op, sizes, dtype, align, options, arch, sms)
    each = partial(explain_problem, arch=arch, sms=sms, gpu=gpu, note=note)
    if not program.steps:
        raise ShapeError(f"{program.name} of sizes {list(sizes)} launches nothing")
    if len(program.steps) == 1:
        return each(
            program.steps[0].problem, program.steps[0].nbytes, algorithms=program.algorithms
        )
    return Composition(program, each)


# -- programs of sizes ------------------------------------------------------------------------
def program_of(
    op: str,
    sizes: Sequence[int],
    dtype: Any = None,
    align: int | tuple[int, ...] | None = 16,
    options: Mapping[str, Any] | None = None,
    arch: str = "sm_90",
    sms: int = 132,
) -> Program:
    """Returns the program of an operation for arrays of these sizes.

    Addresses are aligned to ``align`` bytes, and rows are padded to 16 bytes where the operation
    allows that. ``align=None``: contiguous arrays, aligned to 16 bytes. Raises as :func:`explain`.
    """
    given = {n: v for n, v in (options or {}).items() if v is not None}
    row = operation(op)
    of, itemsize = operands(row, dtype)
    if "dtype" in row.options:
        given["dtype"] = of
    arrays = {p.name: p.kind for p in row.parameters if p.kind in (ARRAY, OPTIONAL, EITHER)}
    attending = row.name in attention_shapes.ATTENDING
    page = attention_shapes.read(given, op) if attending else None
    either = {p.name: p for p in row.parameters if p.kind == EITHER}
    numbers = {
        n: p.read(given.pop(n)) for n, p in either.items() if type(given.get(n)) in (int, float)
    }
    own = {n: name_of(given.pop(n), n, NAMES) for n in arrays if isinstance(given.get(n), str)}
    there = [n for n, k in arrays.items() if k == ARRAY or n in own or given.pop(n, None) is True]
    if "axis" in row.options and row.options["axis"] is None:
        given.setdefault("axis", -1)
    if row.layouts and "layout" in given:
        layout = Choice(*row.layouts).read("layout", given.pop("layout"))
        for name, value in row.layouts[layout].items():
            if given.setdefault(name, value) != value:
                raise OptionError(f"{name} is {given[name]!r}, but layout {layout!r} says {value}")
    named = _named(row, sizes)
    given = {**{name: named[size] for name, size in row.sizes.items()}, **given}
    needed = (p.name for p in row.parameters if p.needed and p.kind == OPTION)
    if lacking := [name for name in needed if name not in given]:
        raise OptionError(f"{op} takes the option {lacking[0]}, which has no default")
    taken = row.check(given)
    dtypes = row.dtypes_of(taken)
    if callable(row.dtypes):
        there += [name for name in dtypes if name not in there]
    if attending:
        made = attention_shapes.arrays(named, of, taken["layout"], page)
        shapes = {name: made[name][0] for name in there}
        dtypes = {name: made[name][1] for name in there if made[name][1] != of}
    else:
        shapes = _shapes(row, named, row.layout_of(taken), there)
    low = _alignments(16 if align is None else align, of, itemsize)

    def program(padded: bool) -> Program:
        covered = partial(_covered, arch=arch, sms=sms)
        what = " ".join((row.name, *(f"{n}={size}" for n, size in named.items()), of))
        builder = ProgramBuilder(OPERATIONS, what, covered=covered)
        free = iter(range(len(there)))
        buffers = {}
        for name in there:
            kind = own.get(name) or dtypes.get(name, of)
            kind = _wide(of) if kind == "wide" else FULL.get(kind, kind)
            fixed = name in dtypes and "dtype" not in row.options
            address = 16 if fixed else low[next(free) % len(low)]
            buffers[name] = builder.input(name, _input(shapes[name], kind, address, padded))
        return builder.finish(row.lower(builder, **buffers, **numbers, **taken))

    if align is None:
        return program(False)
    try:
        return program(True)
    except ShapeError:  # some arrays must have no gaps between their rows
        return program(False)


def problem_of(
    op: str,
    sizes: Sequence[int],
    dtype: Any = None,
    align: int | tuple[int, ...] | None = 16,
    options: Mapping[str, Any] | None = None,
) -> Problem:
    """Returns the problem of an operation with a single step; raises as :func:`explain`."""
    (step,) = program_of(op, sizes, dtype, align, options).steps
    return step.problem


def operation(op: str) -> Op:
    """Returns operation ``op``; raises OptionError unless sizes determine its arrays' shapes."""
    if name_text("op", op) not in OPERATIONS:
        raise accepted("operation", op, posed_names())
    found: Op = OPERATIONS[op]
    if not _posed(found):
        raise OptionError(f"{op} is of any shapes, which sizes do not say; call {op}.kernels")
    return found


def _posed(row: Op) -> bool:
    """Whether an operation's sizes determine the shapes of its arrays."""
    return row.forms is not None or row.name in attention_shapes.ATTENDING


def posed_names() -> tuple[str, ...]:
    """Returns the names of operations that ``explain`` takes, without those named ``*_rows``."""
    return tuple(n for n, each in OPERATIONS.items() if _posed(each) and not n.endswith("_rows"))


def size_names(row: Op) -> tuple[str, ...]:
    """Returns the names of an operation's sizes, in the order that ``explain`` takes them."""
    if row.forms is None:
        return attention_shapes.SIZES
    names: tuple[str, ...] = row.forms.sizes
    return names


def operands(row: Op, dtype: Any, what: str = "dtype") -> tuple[str, int]:
    """Returns the dtype of the operands of an operation, and the bytes of an item of their arrays.
    ``dtype``: the dtype to take, or None for float32; ``what``: its name in messages.

    If the operation has an option ``dtype``, its elements are packed into bytes: the first result
    is the dtype of the elements (``dtype``, or the option's default), the second is 1.
    """
    if "dtype" in row.options:
        return row.options["dtype"] if dtype is None else dtype, 1
    found = name_of("float32" if dtype is None else dtype, what, NAMES)
    return found, BYTES[found]


def _named(row: Op, sizes: Sequence[int]) -> dict[str, int]:
    names = size_names(row)
    if len(sizes) != len(names):
        raise ShapeError(f"{row.name} is given {len(sizes)} sizes; takes {', '.join(names)}")
    return {name: _size(name, size) for name, size in zip(names, sizes, strict=True)}


def _size(name: str, value: Any, error: type[PtxgenError] = ShapeError) -> int:
    found = whole(value)
    if found is None or found < 1:
        raise error(f"{name} is {value!r}; takes an integer, 1 or more")
    return found


def _shapes(
    row: Op, named: Mapping[str, int], layout: str, there: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    assert row.forms is not None, "operation has checked"
    forms = row.forms
    layout = layout if layout in forms.forms else next(iter(forms.forms))
    for name, unit in packed(forms.forms[layout]).items():
        if named.get(name, 0) % unit:
            raise ShapeError(f"{name} is {named[name]}; takes a multiple of {unit}")
    lead = (named["M"],) if "M" in named else ()
    found = forms.shapes(named, layout, lead, there)
    return dict(zip(there, found, strict=True))


def _alignments(align: int | tuple[int, ...], of: str, itemsize: int) -> tuple[int, ...]:
    aligns = (align,) if isinstance(align, int) else tuple(align)
    legal = [a for a in ALIGNMENT.values if a >= itemsize]
    if not aligns or not set(aligns) <= set(legal):
        raise OptionError(
            f"align is {align!r}; operands of {of} are aligned to {', '.join(map(str, legal))} "
            "bytes"
        )
    return aligns


def _wide(dtype: str) -> str:
    """Returns the dtype of arithmetic on arrays of ``dtype``."""
    return FULL[STORED[NAMES[dtype]]]


def _input(shape: tuple[int, ...], dtype: str, address: int, padded: bool) -> Buffer:
    """Returns a buffer of this shape and dtype that begins at ``address``, which decides its
    alignment. Its row pitch is a multiple of 16 bytes if ``padded``; else it is contiguous.
    """
    strides = contiguous_strides(shape)
    if padded and len(shape) > 1:
        unit = max(16 // BYTES[dtype], 1)
        pitch = -(-shape[-1] // unit) * unit
        strides = (*(n * pitch for n in contiguous_strides(shape[:-1])), 1)
    return Buffer(Memory("", "", low=address % 16), shape, strides, dtype)


def _covered(problem: Problem, arch: str, sms: int) -> None:
    values: dict[str, Any] = {"dtype": problem.dtype, "count": problem.count}
    choose(problem.table, dict(problem.values), arch=arch, sms=sms, what=str(problem), **values)


# -- several steps ----------------------------------------------------------------------------
class Composition:
    """Explanation of an operation whose program has several steps. ``str`` formats it as text.
    ``program``: the program; ``each``: function that makes the explanation of a problem from it and
    the bytes that its step moves.
    """

    def __init__(self, program: Program, each: Any) -> None:
        self.program, self._each = program, each

    @property
    def problem(self) -> str:
        """Name of the program: operation, sizes and dtype."""
        return self.program.name

    @cached_property
    def explained(self) -> dict[Problem, Explanation]:
        """Explanation of each distinct problem: the kernels that serve it."""
        nbytes = {step.problem: step.nbytes for step in self.program.steps}
        return {problem: self._each(problem, moved) for problem, moved in nbytes.items()}

    @cached_property
    def steps(self) -> tuple[tuple[int, Explanation], ...]:
        """(Count of steps, explanation) of each distinct problem, in the order of first use."""
        counts: dict[Problem, int] = {}
        for step in self.program.steps:
            counts[step.problem] = counts.get(step.problem, 0) + 1
        return tuple((count, self.explained[problem]) for problem, count in counts.items())

    @property
    def launches(self) -> int:
        """Number of kernel launches in the program."""
        return sum(count * len(step.launches) for count, step in self.steps)

    @property
    def nbytes(self) -> int:
        """Bytes that the steps read and write, in total."""
        return sum(step.nbytes for step in self.program.steps)

    @property
    def time(self) -> float:
        """Predicted time of all steps, µs."""
        return sum(count * step.winner.time for count, step in self.steps)

    @property
    def scratch(self) -> dict[str, int]:
        """Bytes of each temporary array, by name."""
        return {memory.name: memory.nbytes for memory in self.program.temporaries}

    @cached_property
    def memory(self) -> int:
        """Bytes of the one allocation that holds temporaries and the scratch memory of kernels."""
        lives: dict[Memory, list[int]] = {}
        pieces = []
        for number, step in enumerate(self.program.steps):
            for operand in step.bind.values():
                if isinstance(operand, Buffer) and operand.memory in self.program.temporaries:
                    lives.setdefault(operand.memory, []).append(number)
            scratch = self.explained[step.problem].scratch.values()
            pieces += [Piece(size, number, number) for size in scratch]
        pieces += [Piece(m.nbytes, numbers[0], numbers[-1]) for m, numbers in lives.items()]
        return place(pieces)[1]

    def asdict(self) -> dict[str, Any]:
        """Returns the composition as a dict, for use by programs."""
        steps = [
            {"count": count, "problem": found.problem, "kernels": found.winner.kernels}
            | {"time": found.winner.time}
            for count, found in self.steps
        ]
        facts = ("problem", "launches", "nbytes", "memory", "time", "scratch")
        return {name: getattr(self, name) for name in facts} | {"steps": steps}

    def legend(self) -> str:
        """Returns text: meaning and unit of the terms in predicted times."""
        terms = (term for _, found in self.steps for term in found.winner.terms.items())
        return legend(name for name, us in terms if us >= SHOWN_US)

    def brief(self) -> str:
        """Returns text: the steps, their kernels, bytes and predicted times."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.problem
        nbytes: dict[Problem, int] = {}
        for step in self.program.steps:
            nbytes[step.problem] = nbytes.get(step.problem, 0) + step.nbytes
        yield from map(str, self.program.algorithms)
        for (problem, found), (count, _) in zip(self.explained.items(), self.steps, strict=True):
            kernels = " + ".join(found.winner.kernels)
            us = f"predicted {count * found.winner.time:.1f} µs"
            yield f"{count} x {problem}: {kernels}; {nbytes[problem]} bytes, {us}"
        yield (
            f"{self.launches} launches; {self.nbytes} bytes read and written, predicted "
            f"{self.time:.1f} µs; {self.memory} bytes of memory besides operands and results"
        )
        yield from (f"  {name}: {size} bytes" for name, size in self.scratch.items())

    def __str__(self) -> str:
        return "\n\n".join([self.brief(), *(step.brief() for _, step in self.steps)])


# -- GPUs -------------------------------------------------------------------------------------
def _gpu(gpu: str, arch: str | None, sms: int | None) -> tuple[str, int, str]:
    """Returns the architecture and number of SMs of ``gpu`` for which kernels are chosen, and a
    note if there is no tuning for them ("" if there is one). ``arch``, ``sms``: those asked for, or
    None for those of the GPU's tuning. Raises OptionError if they are needed and missing.
    """
    of_it = [p for p in tunings() if p.gpu == gpu and arch in (None, p.arch)]
    for tuning in of_it:
        if sms in (None, tuning.sms):
            return tuning.arch, tuning.sms, ""
    if arch is None and of_it:  # with another number of SMs
        arch = of_it[0].arch
    if arch is None or sms is None:
        there_are = ", ".join(f"{p.gpu} with {p.sms} SMs" for p in tunings()) or "none"
        close = proposal(gpu, (name for p in tunings() for name in (p.gpu, p.short)))
        raise OptionError(
            f"there is no tuning of {gpu!r}{f' with {sms} SMs' if sms else ''} (of: {there_are})"
            f"{close}; give its architecture and its SMs, to have it routed by these"
        )
    return arch, sms, f"no tuning of {gpu} with {sms} SMs: routed by its architecture"
