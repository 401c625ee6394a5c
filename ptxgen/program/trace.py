"""Tracing: turns a function of arrays into a program, without computing anything.

:func:`trace` calls a function with placeholders for its arguments (:class:`Traced`). The library's
operations on them become the steps of the program. A function that reads a value of a placeholder,
or passes one to another library, cannot be traced: TraceError names the line.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from ptxgen.errors import DtypeError, OptionError, ShapeError, TraceError
from ptxgen.numerics.dtype import PARTS
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.description import Description
from ptxgen.program.launch import covered
from ptxgen.program.parameters import (
    ARRAY,
    ARRAYS,
    EITHER,
    OPERAND,
    OPTION,
    STREAM,
    WRITTEN,
    is_array,
)
from ptxgen.program.registry import OPERATIONS
from ptxgen.program.step import Program
from ptxgen.runtime import Call, Device, framework_of
from ptxgen.runtime.arrays import ArrayView


class Tracing:
    """A trace in progress: the builder of its program, and the closed-over arrays (``outside``).

    ``lead``: an array on the device that closed-over arrays must be on; None if none are allowed.
    """

    def __init__(self, name: str, lead: ArrayView | None, device: Device) -> None:
        served = partial(covered, device=device)
        self.builder = ProgramBuilder(OPERATIONS, name, contiguous_results=True, covered=served)
        self.outside: dict[int, tuple[Any, Buffer]] = {}
        self.lead = lead

    def buffer(self, name: str, x: Any) -> Buffer:
        """Returns the buffer of ``x``: a traced array, or a closed-over one, which becomes an
        input. ``name``: its name in errors. Raises TraceError for an array of another trace, and
        for a closed-over one where none are allowed.
        """
        if isinstance(x, Traced):
            if x.tracing is not self:
                raise TraceError(f"{name} is an array of another trace, which has ended")
            return x.buffer
        if self.lead is None:
            raise TraceError(f"{name} is an array; takes nodes of the program, and numbers")
        found = self.outside.get(id(x))
        if found is None:
            return self.outer(f"outside{len(self.outside)}", x, name)
        return found[1]

    def outer(self, memory: str, x: Any, name: str = "") -> Buffer:
        """Returns the buffer of ``x``, a closed-over array, which becomes input ``memory`` of the
        program at first use. ``name``: the array's name in errors. Raises TraceError unless it is
        on the device of the arguments.
        """
        if id(x) not in self.outside:
            seen = Call({name or memory: x}).lead
            if self.lead is None or (seen.kind, seen.index) != (self.lead.kind, self.lead.index):
                here = "nowhere" if self.lead is None else self.lead.where
                raise TraceError(f"{name or memory} is in {seen.where}, the arguments in {here}")
            layout = seen.packed if seen.kind == "host" else seen
            self.outside[id(x)] = x, self.builder.input(memory, layout)
        return self.outside[id(x)][1]


def line() -> str:
    """Returns the caller's file, line number and text: the innermost frame outside this package."""
    return _innermost(traceback.extract_stack())


def line_of(error: BaseException) -> str:
    """Returns file, line number and text of the innermost frame of an error outside this
    package.
    """
    return _innermost(traceback.extract_tb(error.__traceback__))


def _innermost(frames: Sequence[traceback.FrameSummary]) -> str:
    for frame in reversed(frames):
        name = frame.filename.replace("\\", "/")
        if "/ptxgen/" not in name and not name.startswith("<prepared"):
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return ""


class Traced:
    """A placeholder for an array of a program: its shape and dtype are known, its values not."""

    __slots__ = ("buffer", "tracing")

    def __init__(self, tracing: Tracing, buffer: Buffer) -> None:
        self.tracing, self.buffer = tracing, buffer

    def __repr__(self) -> str:
        return f"<traced {self.buffer.dtype} {list(self.shape)}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self.buffer.shape

    @property
    def dtype(self) -> str:
        """Full name of the dtype, such as "float32"."""
        return self.buffer.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.buffer.ndim

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    # -- views --------------------------------------------------------------------------------
    def _wrapped(self, buffer: Buffer) -> Traced:
        return Traced(self.tracing, buffer)

    def reshape(self, *shape: Any) -> Traced:
        """Returns the elements in another shape: a view if strides express it, else a copy."""
        to = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return self._wrapped(self.tracing.builder.reshape(self.buffer, to))

    view = reshape

    def permute(self, *order: Any) -> Traced:
        """Returns a view with the dimensions in another order."""
        to = order[0] if len(order) == 1 and isinstance(order[0], Sequence) else order
        return self._wrapped(self.buffer.permuted([i % self.ndim for i in to]))

    def swapaxes(self, first: int, second: int) -> Traced:
        """Returns a view with two dimensions swapped."""
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self.permute(order)

    def transpose(self, *order: Any) -> Traced:
        """Returns a transposed view. Takes an order or nothing (NumPy), or two axes (PyTorch)."""
        if not order:
            return self.permute(list(range(self.ndim))[::-1])
        if len(order) == 2 and self.ndim != 2:
            return self.swapaxes(*order)
        return self.permute(*order)

    @property
    def T(self) -> Traced:  # noqa: N802 - NumPy's name
        """View with the dimensions in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Traced:  # noqa: N802
        """View with the last two dimensions swapped."""
        return self.swapaxes(-1, -2)

    def unsqueeze(self, axis: int) -> Traced:
        """Returns a view with a new dimension of size 1 at ``axis``."""
        return self._wrapped(self.buffer.unsqueezed(axis))

    def expand(self, *shape: Any) -> Traced:
        """Returns a view broadcast to a shape."""
        to = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return self._wrapped(self.buffer.expanded(to))

    def __getitem__(self, index: Any) -> Traced:
        items = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in items:
            at = items.index(Ellipsis)
            rest = self.ndim - sum(i is not None for i in items) + 1
            items[at : at + 1] = [slice(None)] * rest
        found, axis = self.buffer, 0
        for item in items:
            if item is None:
                found = found.unsqueezed(axis)
                axis += 1
            elif isinstance(item, slice):
                start, stop, step = item.indices(found.shape[axis])
                found = found.narrowed(axis, start, len(range(start, stop, step)), step)
                axis += 1
            elif isinstance(item, int):
                size = found.shape[axis]
                if not -size <= item < size:
                    raise ShapeError(f"index {item} is beyond axis {axis}, of {size}")
                found = found.one(axis, item % size)
            else:
                raise TraceError(f"{self} is indexed by {item!r}, at {line()}; takes slices")
        return self._wrapped(found)

    def view_as_real(self) -> Traced:
        """Returns a view of complex numbers as pairs of real and imaginary parts, [..., 2]."""
        return self._wrapped(self.tracing.builder.view_as_real(self.buffer))

    def view_as_complex(self) -> Traced:
        """Returns pairs [..., 2] as complex numbers: a view if strides allow it, else a copy."""
        return self._wrapped(self.tracing.builder.view_as_complex(self.buffer))

    @property
    def real(self) -> Traced:
        """View of the real parts; of real numbers the array itself."""
        return self.view_as_real()[..., 0] if self.dtype in PARTS else self

    @property
    def imag(self) -> Traced:
        """View of the imaginary parts of complex numbers."""
        return self.view_as_real()[..., 1]

    def conj(self) -> Any:
        """Returns the complex conjugates."""
        return self._apply("conj", self)

    # -- what cannot be known -----------------------------------------------------------------
    def _refuse_values(self, *_: Any, **__: Any) -> NoReturn:
        raise TraceError(
            f"{self} is asked for its values while it is traced, at {line()}; a traced function "
            "only calls ptxgen's operations and takes views"
        )

    __bool__ = __float__ = __int__ = __index__ = __iter__ = _refuse_values
    __array__ = __dlpack__ = item = tolist = numpy = cpu = _refuse_values

    def __eq__(self, other: object) -> Any:
        return self._apply("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return self._apply("ne", self, other)

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        raise TraceError(
            f"{self} is asked for {name!r} while it is traced, at {line()}; a traced function only "
            "calls ptxgen's operations and takes views"
        )

    # -- operators: pointwise functions -----------------------------------------------------------
    def _apply(self, name: str, *given: Any) -> Any:
        return OPERATIONS[name].function(*given)

    def __add__(self, other: Any) -> Any:
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._apply("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._apply("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._apply("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._apply("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._apply("div", other, self)

    def __neg__(self) -> Any:
        return self._apply("neg", self)

    def __abs__(self) -> Any:
        return self._apply("abs", self)


def traced(op: Description, given: Mapping[str, Any]) -> Any:
    """Records the steps of a call of ``op`` with traced arrays, and returns its traced results."""
    tracing = next(x.tracing for x in leaves(given.values()) if isinstance(x, Traced))
    named: dict[str, Any] = {}
    written: list[Memory] = []
    for p in op.parameters:
        name, value = p.name, given[p.name]
        is_traced = isinstance(value, Traced)
        if p.kind == OPTION or (p.kind == EITHER and not is_traced and not is_array(value)):
            named[name] = p.read(value)
        elif p.kind == STREAM:
            if value is not None:
                raise OptionError("stream is given, but a traced call has none; leave it away")
        elif p.kind == ARRAYS:
            named[name] = tuple(tracing.buffer(n, x) for n, x in p.items(value).items())
        elif p.kind == WRITTEN and isinstance(value, tuple | list) and not p.flag:
            named[name] = tuple(tracing.buffer(f"{name}[{i}]", x) for i, x in enumerate(value))
        elif value is None and p.kind in (ARRAY, OPERAND):
            raise DtypeError(f"{name} is None; takes an array")
        elif value is None or (p.kind == WRITTEN and isinstance(value, bool)):
            named[name] = value
        elif is_traced or framework_of(value) != "other":
            named[name] = tracing.buffer(name, value)
            if p.kind == WRITTEN and is_traced:
                written.append(value.buffer.memory)
        elif p.option is not None:
            named[name] = p.read(value)
        elif p.kind == OPERAND:
            named[name] = value
        else:
            raise DtypeError(f"{name} is a {type(value).__qualname__}; takes an array")
    if named.get("check"):
        raise TraceError(
            f"{op.name} has check=True, at {line()}: the host would read values, which a program "
            "does not wait for; leave it away, and values out of range are clamped"
        )
    made = _lowered(tracing, op, named)
    for memory in written:
        memory.written = True
    if isinstance(made, tuple | list):
        return tuple(None if b is None else Traced(tracing, b) for b in made)
    return Traced(tracing, made)


def _lowered(tracing: Tracing, op: Description, named: dict[str, Any]) -> Any:
    """Lowers an operation, records its steps, and returns its results.

    A call on host arrays takes any strides, since it uploads contiguous copies. So if no kernel
    takes the strides of a view, a traced function on host arrays copies the view, too. On a device
    both refuse it.
    """
    builder = tracing.builder
    before = len(builder.steps)
    try:
        return op.lower(builder, **named)
    except ShapeError:
        written = {p.name for p in op.parameters if p.kind == WRITTEN}
        views = [x for name, x in named.items() if name not in written]
        strided = any(isinstance(x, Buffer) and not x.contiguous for x in leaves(views))
        if not strided or tracing.lead is None or tracing.lead.kind != "host":
            raise
        del builder.steps[before:]

        def packed(x: Any) -> Any:
            return builder.contiguous(x) if isinstance(x, Buffer) else x

        for name in named.keys() - written:
            x = named[name]
            named[name] = tuple(map(packed, x)) if isinstance(x, tuple) else packed(x)
        return op.lower(builder, **named)


def refuse_untraceable(name: str, function: Any, example: Sequence[Any]) -> None:
    """Raises TraceError unless ``function`` is callable and ``example`` has at least one array.

    ``name``: the caller's name, for errors.
    """
    if not callable(function):
        raise TraceError(f"{name} takes a function; got a {type(function).__qualname__}")
    if not example:
        raise TraceError(f"{name} takes at least one array as an example of the arguments")


def leaves(values: Iterable[Any]) -> Iterator[Any]:
    """Yields the values; of a tuple or list its members, one by one."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from value
        else:
            yield value


def argument_names(function: Callable[..., Any], count: int) -> tuple[str, ...]:
    """Returns names of the first ``count`` positional arguments of a function: of its parameters,
    and ``argument0``, ``argument1``, ... of those that have no parameter of their own.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a callable that is not written in Python
        parameters = {}.values()
    own = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    found = (*own[:count], *(f"argument{i}" for i in range(len(own), count)))
    return found if len({*found}) == count else tuple(f"argument{i}" for i in range(count))


def trace(
    function: Callable[..., Any],
    views: Sequence[ArrayView],
    device: Device,
    held: Mapping[str, Any] | None = None,
) -> tuple[Program, Tracing]:
    """Traces ``function`` for a device, with an argument for each of ``views``, and a keyword
    argument for each closed-over array in ``held``.

    Returns the program, whose results are contiguous, and the tracing, which has the closed-over
    arrays. A function that returns a mapping names the outputs of its program.
    """
    name = getattr(function, "__name__", type(function).__name__)
    tracing = Tracing(name, views[0], device)
    arguments = [
        Traced(tracing, tracing.builder.input(own, seen))
        for own, seen in zip(argument_names(function, len(views)), views, strict=True)
    ]
    keyed = {n: Traced(tracing, tracing.outer(n, x)) for n, x in (held or {}).items()}
    found = function(*arguments, **keyed)
    if isinstance(found, Mapping):
        results = dict(found)
    else:
        results = dict(enumerate(found if isinstance(found, tuple | list) else (found,)))
    for i, each in results.items():
        if isinstance(found, Mapping) and not isinstance(i, str):
            raise TraceError(f"{name} names a result {i!r}; takes strings as names")
        if each is not None and not (isinstance(each, Traced) and each.tracing is tracing):
            raise TraceError(
                f"{name} returns a {type(each).__qualname__} as result {i}; takes arrays that "
                "ptxgen's operations made of its arguments"
            )
    if all(each is None for each in results.values()):
        raise TraceError(f"{name} returns nothing; takes a function that returns arrays")
    buffers = {i: None if x is None else x.buffer for i, x in results.items()}
    return tracing.builder.finish(
        buffers if isinstance(found, Mapping) else [*buffers.values()]
    ), tracing
