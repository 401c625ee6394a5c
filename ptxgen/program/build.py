"""Building programs: what an operation's function is given to say what is done.

A function that lowers an operation is called with a builder and buffers, and asks the builder for
views, for other operations (``b.softmax(x)``: any of the library, by name), and, at the bottom, for
launches of problems. :class:`Builder` is what all builders have; :class:`ProgramBuilder` makes a
:class:`ptxgen.program.step.Program`. Others compute at once: the oracle with NumPy
(:mod:`ptxgen.program.interpret`), and PyTorch where autograd is to see each operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ptxgen.errors import DtypeError, PtxgenError, ShapeError
from ptxgen.numerics.dtype import NAMES
from ptxgen.program.algorithms import ChosenAlgorithm
from ptxgen.program.buffer import INPUT, RESULT, TEMPORARY, Buffer, Memory, dense, sizes
from ptxgen.program.step import Operand, Program, Step
from ptxgen.runtime.strided import Ints, Strided, contiguous_strides
from ptxgen.spec import Problem


class Builder(ABC):
    """What operations are lowered with. Arrays are whatever the builder takes."""

    abstract = False
    """Whether only shapes and dtypes are asked for: no problem is made."""

    def __init__(self, operations: Mapping[str, Any]) -> None:
        self.operations = operations

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "operations" or name not in self.operations:
            raise AttributeError(f"there is no operation {name!r}")
        return lambda *args, **options: self.call(self.operations[name], *args, **options)

    @abstractmethod
    def call(self, op: Any, *args: Any, **options: Any) -> Any:
        """An operation of these arguments."""

    @abstractmethod
    def strides(self, x: Any) -> tuple[int, ...]:
        """How far elements of ``x`` lie apart along each dimension."""

    @abstractmethod
    def dtype(self, x: Any) -> str:
        """The full name of the dtype of ``x``."""

    @abstractmethod
    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """``x`` in another shape: a view, or a copy where no view will do."""

    @abstractmethod
    def permute(self, x: Any, order: Sequence[int]) -> Any:
        """A view of ``x`` with its dimensions in another order."""

    @abstractmethod
    def expand(self, x: Any, shape: Sequence[int]) -> Any:
        """A view of ``x`` that is broadcast to ``shape``."""

    @abstractmethod
    def narrow(self, x: Any, axis: int, start: int, length: int, step: int = 1) -> Any:
        """A view of ``x``: ``length`` elements along ``axis``, from ``start`` on."""

    def rows(self, name: str, *arrays: Any, **options: Any) -> Any:
        """An operation of the table of rows, over the last dimension."""
        own = f"{name}_rows"
        found = self.operations[own if own in self.operations else name]
        return self.call(found, *arrays, **options)

    # -- what follows from these --------------------------------------------------------------
    def move(self, x: Any, source: int, target: int) -> Any:
        """A view of ``x`` with one dimension at another place."""
        order = list(range(len(x.shape)))
        order.insert(target % len(order), order.pop(source % len(order)))
        return x if order == sorted(order) else self.permute(x, order)

    def transpose(self, x: Any) -> Any:
        """A view of ``x`` whose last two dimensions have changed places."""
        order = list(range(len(x.shape)))
        order[-2:] = order[:-3:-1]
        return self.permute(x, order)

    def unsqueeze(self, x: Any, axis: int) -> Any:
        """A view of ``x`` with a dimension of 1 at ``axis``."""
        shape = list(x.shape)
        shape.insert(axis % (len(shape) + 1), 1)
        return self.reshape(x, shape)

    def squeeze(self, x: Any, axis: int) -> Any:
        """A view of ``x`` without the dimension ``axis``, which is 1."""
        shape = list(x.shape)
        del shape[axis % len(shape)]
        return self.reshape(x, shape)

    def cast(self, x: Any, dtype: str) -> Any:
        """``x`` in another dtype, rounded once; ``x`` itself where it has that."""
        return x if self.dtype(x) == dtype else self.converted(x, dtype)

    def converted(self, x: Any, dtype: str) -> Any:
        """``x`` in another dtype, rounded once."""
        return self.call(self.operations[f"cast_{NAMES[dtype]}"], x, out_dtype=dtype)

    def summed_to(self, x: Any, shape: Sequence[int]) -> Any:
        """The sums of ``x`` along what an array of ``shape`` was broadcast along."""
        lead = len(x.shape) - len(shape)
        pairs = enumerate(zip(x.shape[lead:], shape, strict=True), lead)
        axes = [*range(lead), *(i for i, (size, own) in pairs if own == 1 != size)]
        return self.reshape(self.sum(x, axis=tuple(axes)), shape) if axes else x

    def gradient_of(self, name: str, x: Any, dy: Any) -> Any:
        """The gradient by ``x`` of a pointwise function of one argument, in what it is computed
        in.
        """
        function = self.operations[name].gradient((True,), 1)
        return self.call(function, x, dy, out_dtype=self.wide(x))

    def packed(self, x: Any) -> Any:
        """``x`` in rows one behind the other, as every kernel reads it; None stays None."""
        return None if x is None else self.contiguous(x)

    @abstractmethod
    def contiguous(self, x: Any) -> Any:
        """``x``, or a copy in rows one behind the other."""

    @abstractmethod
    def filled(self, shape: Sequence[int], dtype: str, value: Any, like: Any) -> Any:
        """An array of one value; where ``like`` is."""

    def wide(self, x: Any) -> str:
        """What numbers of the dtype of ``x`` are computed in: float64, or float32."""
        return "float64" if self.dtype(x) == "float64" else "float32"


class ProgramBuilder(Builder):
    """Notes steps. ``rows``: results are to lie row by row, as the caller's framework knows no
    strides. ``aliases``: results may be views of what was given. ``covered``: raises
    UncoveredError for a problem that no kernel serves where the program is to run.
    """

    def __init__(
        self,
        operations: Mapping[str, Any],
        name: str = "program",
        *,
        rows: bool = False,
        aliases: bool = False,
        covered: Callable[[Problem], object] | None = None,
    ) -> None:
        super().__init__(operations)
        self.name, self._rows, self._aliases, self._covered = name, rows, aliases, covered
        self.inputs: list[Memory] = []
        self.steps: list[Step] = []
        self.algorithms: list[ChosenAlgorithm] = []
        self._made = 0

    # -- memory -------------------------------------------------------------------------------
    def input(self, name: str, like: Strided, *, written: bool = False) -> Buffer:
        """An array of the caller that lies as ``like`` does."""
        memory = Memory(name, INPUT, 0, like.address % 16, written)
        self.inputs.append(memory)
        memory.natural = Buffer(memory, like.shape, like.strides, like.dtype)
        return memory.natural

    def empty(self, shape: Sequence[int], dtype: str, name: str = "") -> Buffer:
        """New memory, row by row."""
        self._made += 1
        return dense(Memory(name or f"t{self._made}", TEMPORARY), shape, dtype)

    def result(
        self, shape: Sequence[int], dtype: str, out: Buffer | None = None, name: str = "out"
    ) -> Buffer:
        """Memory for a result: ``out`` if it is given, else new.

        Raises ShapeError and DtypeError for an ``out`` of another shape or dtype.
        """
        if out is None:
            return self.empty(shape, dtype, name)
        if out.shape != tuple(shape):
            raise ShapeError(f"{name} has shape {list(out.shape)}; takes {list(shape)}")
        if out.dtype != dtype:
            raise DtypeError(f"{name} has dtype {out.dtype}; takes {dtype}")
        return out

    def given(self, out: Buffer | None, shape: Ints, rows: Ints) -> Buffer | None:
        """``out``, of ``shape``, seen in the shape that kernels write; None where it is not there,
        or no kernel writes to it as it lies. Raises ShapeError for another shape.
        """
        if out is None:
            return None
        if out.shape != tuple(shape):
            raise ShapeError(f"out has shape {list(out.shape)}; takes {list(shape)}")
        return out.reshaped(rows) if out.contiguous else None

    def delivered(self, found: Buffer, out: Buffer | None) -> Buffer:
        """``found``, or ``out``, to which it is copied unless it lies there."""
        if out is None:
            return found
        if found.memory is not out.memory:
            self.copied(found, self.result(found.shape, found.dtype, out))
        return out

    # -- steps --------------------------------------------------------------------------------
    def launch(
        self,
        problem: Callable[[], Problem],
        bind: Mapping[str, Operand],
        kernel: str | None = None,
        also_read: Iterable[str] = (),
    ) -> None:
        """A problem, and the buffer that each pointer of its kernels points to, in the order in
        which they are launched with them.
        """
        if not self.abstract:
            self.steps.append(Step(problem(), bind, kernel, frozenset(also_read)))

    def require(self, problem: Problem) -> None:
        """Raises UncoveredError if no kernel serves a problem where the program is to run."""
        if self._covered is not None:
            self._covered(problem)

    def call(self, op: Any, *args: Any, **options: Any) -> Any:
        """See :meth:`Builder.call`."""
        try:
            return op.lower(self, *args, **options)
        except PtxgenError as error:
            error.step = error.step or op.name
            raise

    def finish(self, found: Any) -> Program:
        """The program that returns ``found``: a buffer, or several, some of them None."""
        several = tuple(found) if isinstance(found, tuple | list) else (found,)
        outputs = [None if b is None else self._handed(b) for b in several]
        return Program(
            self.name, tuple(self.inputs), tuple(outputs), tuple(self.steps), tuple(self.algorithms)
        )

    def _handed(self, found: Buffer) -> Buffer:
        """A result, which gives its memory the shape in which it is allocated."""
        buffer = self.copied(found) if self._aside(found) else found
        memory = buffer.memory
        if memory.role == TEMPORARY:
            memory.role = RESULT
            if _fills(buffer):
                memory.natural = buffer
        return buffer

    def _aside(self, buffer: Buffer) -> bool:
        """Whether a result has to be copied: a view of an argument, or for who knows no strides."""
        if buffer.memory.role == INPUT:
            return not (self._aliases or (buffer.memory.written and buffer.whole))
        taken = buffer.memory.role == RESULT and not buffer.whole
        return self._rows and (taken or not _fills(buffer))

    # -- views --------------------------------------------------------------------------------
    def strides(self, x: Any) -> tuple[int, ...]:
        """See :meth:`Builder.strides`."""
        found: tuple[int, ...] = x.strides
        return found

    def dtype(self, x: Any) -> str:
        """See :meth:`Builder.dtype`."""
        return str(x.dtype)

    def reshape(self, x: Buffer, shape: Sequence[int]) -> Buffer:
        """See :meth:`Builder.reshape`."""
        found = x.laid(*_packed(x, shape)) if self.abstract else x.reshaped(shape)
        if found is None:
            found = self.copied(x).reshaped(shape)
            assert found is not None, "rows one behind the other have any shape"
        return found

    def permute(self, x: Buffer, order: Sequence[int]) -> Buffer:
        """See :meth:`Builder.permute`."""
        return x.permuted(order)

    def expand(self, x: Buffer, shape: Sequence[int]) -> Buffer:
        """See :meth:`Builder.expand`."""
        return x.expanded(shape)

    def narrow(self, x: Buffer, axis: int, start: int, length: int, step: int = 1) -> Buffer:
        """See :meth:`Builder.narrow`."""
        return x.narrowed(axis, start, length, step)

    def filled(self, shape: Sequence[int], dtype: str, value: Any, like: Any = None) -> Buffer:
        """See :meth:`Builder.filled`."""
        out = self.empty(shape, dtype)
        found: Buffer = self.fill(out, value, out=out)
        return found

    def contiguous(self, x: Buffer) -> Buffer:
        """See :meth:`Builder.contiguous`."""
        return x if x.contiguous else self.copied(x)

    def copied(self, x: Buffer, out: Buffer | None = None) -> Buffer:
        """A copy of ``x`` in rows one behind the other, or in ``out``."""
        found: Buffer = self.copy(x, out=self.result(x.shape, x.dtype, out))
        return found


def _fills(x: Buffer) -> bool:
    """Whether it is all of its memory, row by row."""
    return x.offset == 0 and x.contiguous and x.nbytes == x.memory.nbytes


def _packed(x: Buffer, shape: Sequence[int]) -> tuple[Any, Any]:
    to = sizes(x.shape, shape)
    return to, contiguous_strides(to)
