"""Builders: operations are lowered by asking a builder for views, operations and launches.

A function that lowers an operation is called with a builder and buffers, and asks the builder for
views, for other operations (``b.softmax(x)``: any of the library, by name), and, at the bottom, for
launches of problems. :class:`Builder` is the interface of all builders. :class:`ProgramBuilder`
records a :class:`ptxgen.program.step.Program`. Other builders compute at once: the oracle with
NumPy (:mod:`ptxgen.program.interpret`), and PyTorch where autograd is to see each operation.
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
    """Interface that operations are lowered with; each builder has its own type of array."""

    abstract = False
    """Whether only shapes and dtypes are asked for, so that no launch is recorded."""

    def __init__(self, operations: Mapping[str, Any]) -> None:
        self.operations = operations

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "operations" or name not in self.operations:
            raise AttributeError(f"there is no operation {name!r}")
        return lambda *args, **options: self.call(self.operations[name], *args, **options)

    @abstractmethod
    def call(self, op: Any, *args: Any, **options: Any) -> Any:
        """Applies operation ``op`` to these arguments and returns its results."""

    @abstractmethod
    def strides(self, x: Any) -> tuple[int, ...]:
        """Returns the strides of ``x``, elements."""

    @abstractmethod
    def dtype(self, x: Any) -> str:
        """Returns the full name of the dtype of ``x``."""

    @abstractmethod
    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Returns ``x`` in another shape: a view, or a copy where no view will do."""

    @abstractmethod
    def permute(self, x: Any, order: Sequence[int]) -> Any:
        """Returns a view of ``x`` with its dimensions in another order."""

    @abstractmethod
    def expand(self, x: Any, shape: Sequence[int]) -> Any:
        """Returns a view of ``x`` that is broadcast to ``shape``."""

    @abstractmethod
    def narrow(self, x: Any, axis: int, start: int, length: int, step: int = 1) -> Any:
        """Returns a view of ``length`` elements along ``axis``: ``start``, ``start + step``, ..."""

    def rows(self, name: str, *arrays: Any, **options: Any) -> Any:
        """Applies a row reduction over the last axis: ``name_rows`` if it exists, else ``name``."""
        own = f"{name}_rows"
        found = self.operations[own if own in self.operations else name]
        return self.call(found, *arrays, **options)

    # -- what follows from these --------------------------------------------------------------
    def move(self, x: Any, source: int, target: int) -> Any:
        """Returns a view of ``x`` with dimension ``source`` moved to position ``target``."""
        order = list(range(len(x.shape)))
        order.insert(target % len(order), order.pop(source % len(order)))
        return x if order == sorted(order) else self.permute(x, order)

    def transpose(self, x: Any) -> Any:
        """Returns a view of ``x`` with the last two dimensions swapped."""
        order = list(range(len(x.shape)))
        order[-2:] = order[:-3:-1]
        return self.permute(x, order)

    def unsqueeze(self, x: Any, axis: int) -> Any:
        """Returns a view of ``x`` with a new dimension of size 1 at ``axis``."""
        shape = list(x.shape)
        shape.insert(axis % (len(shape) + 1), 1)
        return self.reshape(x, shape)

    def squeeze(self, x: Any, axis: int) -> Any:
        """Returns a view of ``x`` without dimension ``axis``, whose size is 1."""
        shape = list(x.shape)
        del shape[axis % len(shape)]
        return self.reshape(x, shape)

    def cast(self, x: Any, dtype: str) -> Any:
        """Returns ``x`` in another dtype, rounded once; ``x`` itself if it has that dtype."""
        return x if self.dtype(x) == dtype else self.converted(x, dtype)

    def converted(self, x: Any, dtype: str) -> Any:
        """Returns a copy of ``x`` in another dtype, rounded once."""
        return self.call(self.operations[f"cast_{NAMES[dtype]}"], x, out_dtype=dtype)

    def summed_to(self, x: Any, shape: Sequence[int]) -> Any:
        """Sums ``x`` over the dimensions along which an array of ``shape`` was broadcast to it."""
        lead = len(x.shape) - len(shape)
        pairs = enumerate(zip(x.shape[lead:], shape, strict=True), lead)
        axes = [*range(lead), *(i for i, (size, own) in pairs if own == 1 != size)]
        return self.reshape(self.sum(x, axis=tuple(axes)), shape) if axes else x

    def gradient_of(self, name: str, x: Any, dy: Any) -> Any:
        """Returns the gradient by ``x`` of a pointwise function of one argument, in the dtype that
        the function computes in.
        """
        function = self.operations[name].gradient((True,), 1)
        return self.call(function, x, dy, out_dtype=self.wide(x))

    def packed(self, x: Any) -> Any:
        """Returns ``x``, or a contiguous copy, which every kernel can read; None for None."""
        return None if x is None else self.contiguous(x)

    @abstractmethod
    def contiguous(self, x: Any) -> Any:
        """Returns ``x`` if it is contiguous, else a contiguous copy."""

    @abstractmethod
    def filled(self, shape: Sequence[int], dtype: str, value: Any, like: Any) -> Any:
        """Returns an array that holds ``value`` throughout, on the device of ``like``."""

    def wide(self, x: Any) -> str:
        """Returns the dtype of arithmetic on ``x``: float64 for float64, else float32."""
        return "float64" if self.dtype(x) == "float64" else "float32"


class ProgramBuilder(Builder):
    """Records the steps of a program.

    ``rows``: whether results must be contiguous, as the caller's framework has no strides.
    ``aliases``: whether results may be views of arguments. ``covered``: a function that raises
    UncoveredError for a problem that no kernel serves on the program's device.
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
        """Adds an input with the shape, strides, dtype and alignment of ``like``."""
        memory = Memory(name, INPUT, 0, like.address % 16, written)
        self.inputs.append(memory)
        memory.natural = Buffer(memory, like.shape, like.strides, like.dtype)
        return memory.natural

    def empty(self, shape: Sequence[int], dtype: str, name: str = "") -> Buffer:
        """Returns a contiguous buffer in new temporary memory."""
        self._made += 1
        return dense(Memory(name or f"t{self._made}", TEMPORARY), shape, dtype)

    def result(
        self, shape: Sequence[int], dtype: str, out: Buffer | None = None, name: str = "out"
    ) -> Buffer:
        """Returns memory for a result: ``out`` if it is given, else a new buffer.

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
        """Returns ``out``, which has ``shape``, as a view in shape ``rows``, which kernels write.

        Returns None if there is no ``out`` or it is not contiguous, so that kernels cannot write to
        it. Raises ShapeError for an ``out`` of another shape.
        """
        if out is None:
            return None
        if out.shape != tuple(shape):
            raise ShapeError(f"out has shape {list(out.shape)}; takes {list(shape)}")
        return out.reshaped(rows) if out.contiguous else None

    def delivered(self, found: Buffer, out: Buffer | None) -> Buffer:
        """Returns ``out`` after copying ``found`` there if need be; ``found`` without ``out``."""
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
        """Records the launch of a problem.

        ``bind``: the operand of each pointer parameter of the kernels, in launch order. ``kernel``:
        a route forced by its name. ``also_read``: results that the kernels read before they write.
        """
        if not self.abstract:
            self.steps.append(Step(problem(), bind, kernel, frozenset(also_read)))

    def require(self, problem: Problem) -> None:
        """Raises UncoveredError if no kernel serves a problem on the program's device."""
        if self._covered is not None:
            self._covered(problem)

    def call(self, op: Any, *args: Any, **options: Any) -> Any:
        """Lowers operation ``op`` into this program; errors name the operation as their step."""
        try:
            return op.lower(self, *args, **options)
        except PtxgenError as error:
            error.step = error.step or op.name
            raise

    def finish(self, found: Any) -> Program:
        """Returns the program with outputs ``found``: a buffer, or several buffers and Nones."""
        several = tuple(found) if isinstance(found, tuple | list) else (found,)
        outputs = [None if b is None else self._handed(b) for b in several]
        return Program(
            self.name, tuple(self.inputs), tuple(outputs), tuple(self.steps), tuple(self.algorithms)
        )

    def _handed(self, found: Buffer) -> Buffer:
        """Turns a buffer into a result, copied if need be, and sets how its memory is allocated."""
        buffer = self.copied(found) if self._aside(found) else found
        memory = buffer.memory
        if memory.role == TEMPORARY:
            memory.role = RESULT
            if _fills(buffer):
                memory.natural = buffer
        return buffer

    def _aside(self, buffer: Buffer) -> bool:
        """Whether a result must be copied: it aliases an argument, or should be contiguous."""
        if buffer.memory.role == INPUT:
            return not (self._aliases or (buffer.memory.written and buffer.whole))
        taken = buffer.memory.role == RESULT and not buffer.whole
        return self._rows and (taken or not _fills(buffer))

    # -- views --------------------------------------------------------------------------------
    def strides(self, x: Any) -> tuple[int, ...]:
        """Returns the strides of ``x``, elements."""
        found: tuple[int, ...] = x.strides
        return found

    def dtype(self, x: Any) -> str:
        """Returns the full name of the dtype of ``x``."""
        return str(x.dtype)

    def reshape(self, x: Buffer, shape: Sequence[int]) -> Buffer:
        """Returns ``x`` in another shape: a view, or a recorded copy where no view will do."""
        found = x.laid(*_packed(x, shape)) if self.abstract else x.reshaped(shape)
        if found is None:
            found = self.copied(x).reshaped(shape)
            assert found is not None, "rows one behind the other have any shape"
        return found

    def permute(self, x: Buffer, order: Sequence[int]) -> Buffer:
        """Returns a view of ``x`` with its dimensions in another order."""
        return x.permuted(order)

    def expand(self, x: Buffer, shape: Sequence[int]) -> Buffer:
        """Returns a view of ``x`` that is broadcast to ``shape``."""
        return x.expanded(shape)

    def narrow(self, x: Buffer, axis: int, start: int, length: int, step: int = 1) -> Buffer:
        """Returns a view of ``length`` elements along ``axis``: ``start``, ``start + step``, ..."""
        return x.narrowed(axis, start, length, step)

    def filled(self, shape: Sequence[int], dtype: str, value: Any, like: Any = None) -> Buffer:
        """Returns new memory that a recorded step fills with ``value``."""
        out = self.empty(shape, dtype)
        found: Buffer = self.fill(out, value, out=out)
        return found

    def contiguous(self, x: Buffer) -> Buffer:
        """Returns ``x`` if it is contiguous, else a recorded copy."""
        return x if x.contiguous else self.copied(x)

    def copied(self, x: Buffer, out: Buffer | None = None) -> Buffer:
        """Records a copy of ``x`` into ``out``, or into new contiguous memory, and returns it."""
        found: Buffer = self.copy(x, out=self.result(x.shape, x.dtype, out))
        return found


def _fills(x: Buffer) -> bool:
    """Whether a buffer is contiguous and spans all of its memory."""
    return x.offset == 0 and x.contiguous and x.nbytes == x.memory.nbytes


def _packed(x: Buffer, shape: Sequence[int]) -> tuple[Any, Any]:
    to = sizes(x.shape, shape)
    return to, contiguous_strides(to)
