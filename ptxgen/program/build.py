"""Builders: the interface through which operations are lowered to launches.

The function that lowers an operation takes a builder and buffers. It calls the builder for views,
for other operations (``b.softmax(x)``: any of the library, by name), and finally for launches of
problems. :class:`ProgramBuilder` records a :class:`ptxgen.program.step.Program`. Other builders
compute immediately: the oracle with NumPy (:mod:`ptxgen.program.interpret`), and one with PyTorch,
whose autograd records each operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ptxgen.errors import DtypeError, PtxgenError, ShapeError
from ptxgen.numerics.dtype import PARTS, STORABLE, WHOLE
from ptxgen.program.algorithms import ChosenAlgorithm
from ptxgen.program.buffer import INPUT, RESULT, TEMPORARY, Buffer, Memory, dense, sizes
from ptxgen.program.step import Operand, Program, Step
from ptxgen.runtime.strided import Ints, Strided, contiguous_strides
from ptxgen.spec import Problem


class Builder(ABC):
    """Interface through which operations are lowered; each builder has its own type of array."""

    abstract = False
    """Whether only shapes and dtypes are inferred, so that no launch is recorded."""

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
        """Returns the strides of ``x``, in elements."""

    @abstractmethod
    def dtype(self, x: Any) -> str:
        """Returns the full name of the dtype of ``x``, such as "float32"."""

    @abstractmethod
    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Returns ``x`` in another shape: a view if strides express it, else a copy."""

    @abstractmethod
    def permute(self, x: Any, order: Sequence[int]) -> Any:
        """Returns a view of ``x`` with its dimensions in another order."""

    @abstractmethod
    def expand(self, x: Any, shape: Sequence[int]) -> Any:
        """Returns a view of ``x`` that is broadcast to ``shape``."""

    @abstractmethod
    def narrow(self, x: Any, axis: int, start: int, length: int, step: int = 1) -> Any:
        """Returns a view of ``length`` elements along ``axis``: ``start``, ``start + step``, ..."""

    @abstractmethod
    def view_as_real(self, x: Any) -> Any:
        """Returns a view of complex numbers as pairs of real and imaginary parts, ``[..., 2]``.
        Raises DtypeError for real numbers.
        """

    @abstractmethod
    def view_as_complex(self, x: Any) -> Any:
        """Returns pairs of real and imaginary parts, float32 or float64 ``[..., 2]``, as complex
        numbers: a view if the strides allow it, else a copy. Raises DtypeError and ShapeError for
        other arrays.
        """

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
        return self.call(self.operations[f"cast_{STORABLE[dtype]}"], x, out_dtype=dtype)

    def summed_to(self, x: Any, shape: Sequence[int]) -> Any:
        """Returns ``x`` summed over the dimensions along which an array of shape ``shape`` was
        broadcast to the shape of ``x``; the result has that shape.
        """
        lead = len(x.shape) - len(shape)
        pairs = enumerate(zip(x.shape[lead:], shape, strict=True), lead)
        axes = [*range(lead), *(i for i, (size, own) in pairs if own == 1 != size)]
        return self.reshape(self.sum(x, axis=tuple(axes)), shape) if axes else x

    def gradient_of(self, name: str, x: Any, dy: Any) -> Any:
        """Returns ``dy * f'(x)``, where f is the pointwise function ``name`` of one argument, in
        float64 for float64, else in float32.
        """
        function = self.operations[name].gradient((True,), 1)
        return self.call(function, x, dy, out_dtype=self.wide(x))

    def packed(self, x: Any) -> Any:
        """Returns ``x`` or, if it is not contiguous, a contiguous copy; None for None."""
        return None if x is None else self.contiguous(x)

    @abstractmethod
    def contiguous(self, x: Any) -> Any:
        """Returns ``x`` if it is contiguous, else a contiguous copy."""

    @abstractmethod
    def filled(self, shape: Sequence[int], dtype: str, value: Any, like: Any) -> Any:
        """Returns an array that holds ``value`` throughout, on the device of ``like``."""

    def wide(self, x: Any) -> str:
        """Returns the dtype that ``x`` is computed in: float64 and complex dtypes themselves, else
        float32.
        """
        own = self.dtype(x)
        return own if own == "float64" or own in PARTS else "float32"


class ProgramBuilder(Builder):
    """Records the ``steps`` of a program, its ``inputs``, and the ``algorithms`` that compute its
    results.

    ``contiguous_results``: whether results must be contiguous, since the caller's framework has no
    strides. ``aliases``: whether results may be views of arguments. ``covered``: a function that
    raises UncoveredError for a problem that no kernel computes on the program's device.
    """

    def __init__(
        self,
        operations: Mapping[str, Any],
        name: str = "program",
        *,
        contiguous_results: bool = False,
        aliases: bool = False,
        covered: Callable[[Problem], object] | None = None,
    ) -> None:
        super().__init__(operations)
        self.name, self._contiguous, self._aliases, self._covered = (
            name,
            contiguous_results,
            aliases,
            covered,
        )
        self.inputs: list[Memory] = []
        self.steps: list[Step] = []
        self.algorithms: list[ChosenAlgorithm] = []
        self._count = 0

    # -- memory -------------------------------------------------------------------------------
    def input(self, name: str, like: Strided, *, written: bool = False) -> Buffer:
        """Adds an input with the shape, strides, dtype and alignment of ``like``, and returns its
        buffer. ``written``: whether steps may write it.
        """
        memory = Memory(name, INPUT, 0, like.address % 16, written)
        self.inputs.append(memory)
        memory.natural = Buffer(memory, like.shape, like.strides, like.dtype)
        return memory.natural

    def empty(self, shape: Sequence[int], dtype: str, name: str = "") -> Buffer:
        """Returns a contiguous buffer in new temporary memory."""
        self._count += 1
        return dense(Memory(name or f"t{self._count}", TEMPORARY), shape, dtype)

    def result(
        self, shape: Sequence[int], dtype: str, out: Buffer | None = None, name: str = "out"
    ) -> Buffer:
        """Returns the buffer to write a result to: ``out`` unless it is None, else a new temporary.

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
        """Returns ``out``, the caller's array for a result, viewed in shape ``rows``, in which
        kernels write it; None if it is None or not contiguous. Raises ShapeError unless its shape
        is ``shape``.
        """
        if out is None:
            return None
        if out.shape != tuple(shape):
            raise ShapeError(f"out has shape {list(out.shape)}; takes {list(shape)}")
        return out.reshaped(rows) if out.contiguous else None

    def delivered(self, found: Buffer, out: Buffer | None) -> Buffer:
        """Returns the buffer in which a result is returned, after steps have computed it in
        ``found``. If ``out`` is None, this is ``found``. Else it is ``out``, the caller's array, to
        which a copy is recorded unless both are in one memory.
        """
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
        """Records a step that launches the kernels of a problem.

        ``problem``: a function that returns it, not called if the builder infers shapes alone.
        ``bind``: the operand of each pointer parameter of the kernels, in launch order. ``kernel``:
        name of a forced route. ``also_read``: names of written parameters whose old content the
        kernels read first, such as to accumulate.
        """
        if not self.abstract:
            self.steps.append(Step(problem(), bind, kernel, frozenset(also_read)))

    def require(self, problem: Problem) -> None:
        """Raises UncoveredError if no kernel can compute ``problem`` on the program's device."""
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
        """Returns the program with outputs ``found``: one buffer, several buffers and Nones, or a
        mapping of names to these.
        """
        names = tuple(found) if isinstance(found, Mapping) else ()
        found = tuple(found.values()) if isinstance(found, Mapping) else found
        several = tuple(found) if isinstance(found, tuple | list) else (found,)
        outputs = [None if b is None else self._as_output(b) for b in several]
        return Program(
            self.name,
            tuple(self.inputs),
            tuple(outputs),
            tuple(self.steps),
            tuple(self.algorithms),
            names,
        )

    def _as_output(self, found: Buffer) -> Buffer:
        """Returns ``found``, or a copy of it, as a buffer that the program can return; marks its
        memory RESULT, and sets its layout.
        """
        buffer = self.copied(found) if self._needs_copy(found) else found
        memory = buffer.memory
        if memory.role == TEMPORARY:
            memory.role = RESULT
            if _fills(buffer):
                memory.natural = buffer
        return buffer

    def _needs_copy(self, buffer: Buffer) -> bool:
        """Whether an output must be copied: it aliases an argument, or should be contiguous."""
        natural = buffer.memory.natural
        alike = natural is None or natural.dtype == buffer.dtype
        if not (alike or (buffer.memory.role == TEMPORARY and _fills(buffer))):
            return True  # a view of the array in the memory would have that array's dtype
        if buffer.memory.role == INPUT:
            return not (self._aliases or (buffer.memory.written and buffer.whole))
        taken = buffer.memory.role == RESULT and not buffer.whole
        return self._contiguous and (taken or not _fills(buffer))

    # -- views --------------------------------------------------------------------------------
    def strides(self, x: Any) -> tuple[int, ...]:
        found: tuple[int, ...] = x.strides
        return found

    def dtype(self, x: Any) -> str:
        return str(x.dtype)

    def reshape(self, x: Buffer, shape: Sequence[int]) -> Buffer:
        """Returns ``x`` in another shape: a view if strides express it, else a recorded copy."""
        found = x.laid(*_packed(x, shape)) if self.abstract else x.reshaped(shape)
        if found is None:
            found = self.copied(x).reshaped(shape)
            assert found is not None, "rows one behind the other have any shape"
        return found

    def permute(self, x: Buffer, order: Sequence[int]) -> Buffer:
        return x.permuted(order)

    def expand(self, x: Buffer, shape: Sequence[int]) -> Buffer:
        return x.expanded(shape)

    def narrow(self, x: Buffer, axis: int, start: int, length: int, step: int = 1) -> Buffer:
        return x.narrowed(axis, start, length, step)

    def view_as_real(self, x: Buffer) -> Buffer:
        check_complex(x)
        return x.as_real()

    def view_as_complex(self, x: Buffer) -> Buffer:
        check_pairs(x)
        if self.abstract:
            shape = x.shape[:-1]
            return replace(x, shape=shape, strides=contiguous_strides(shape), dtype=WHOLE[x.dtype])
        found = x.as_complex() or self.copied(x).as_complex()
        assert found is not None, "pairs one behind the other are complex numbers"
        return found

    def filled(self, shape: Sequence[int], dtype: str, value: Any, like: Any = None) -> Buffer:
        """Returns a new buffer that a recorded step fills with ``value``."""
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


def check_complex(x: Strided) -> None:
    """Raises DtypeError unless ``x`` has a complex dtype."""
    if x.dtype not in PARTS:
        raise DtypeError(f"x has dtype {x.dtype}; takes {' or '.join(PARTS)}")


def check_pairs(x: Strided) -> None:
    """Raises DtypeError or ShapeError unless ``x`` is an array of pairs, float32 or float64
    ``[..., 2]``.
    """
    if x.dtype not in WHOLE:
        raise DtypeError(f"x has dtype {x.dtype}; takes {' or '.join(WHOLE)}")
    if not x.shape or x.shape[-1] != 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes [..., 2], pairs of parts")


def _fills(x: Buffer) -> bool:
    """Whether a buffer is contiguous and spans all of its memory."""
    return x.offset == 0 and x.contiguous and x.nbytes == x.memory.nbytes


def _packed(x: Buffer, shape: Sequence[int]) -> tuple[Any, Any]:
    to = sizes(x.shape, shape)
    return to, contiguous_strides(to)
