"""A builder for programs: adds the nodes of another framework's op graph one by one.

Each node is lowered as it is added, by the functions that lower calls on arrays. So operations,
their options and their errors are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError, TraceError
from ptxgen.numerics.dtype import BYTES, STORABLE, name_of
from ptxgen.numerics.option import AxisNumber, Integers
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import Memory, imagined
from ptxgen.program.step import Program
from ptxgen.program.trace import Traced, Tracing, leaves
from ptxgen.runtime import Device, default_device, get_device
from ptxgen.runtime.arrays import view
from ptxgen.runtime.strided import Strided


class Builder:
    """Builds a program node by node, for a device (by default the one that computes NumPy's
    arrays).

    ``b.NAME(...)`` adds a node of any operation, with its options: ``b.softmax(x, axis=-1)``,
    ``b.add(x, 2.0)``. Nodes are arrays whose values are not known; they have ``shape``, ``dtype``,
    and the views and operators of arrays. A node with invalid arguments raises the errors of its
    operation when it is added, and leaves the program unchanged.

    >>> from ptxgen import graph
    >>> b = graph.Builder("layer", device="cpu")
    >>> x, w = b.input("x", (8, 64), "float32"), b.input("w", (64, 32), "float32")
    >>> b.output(b.softmax(b.linear(x, w, activation="gelu", layout="kn")))
    >>> [step.problem.what for step in b.program().steps]
    ['linear M=8 N=32 K=64 gelu', 'softmax M=8 N=32']
    """

    def __init__(self, name: str = "program", *, device: str | Device | None = None) -> None:
        if not isinstance(name, str):
            raise OptionError(f"name is {name!r}; takes a string")
        where = default_device() if device is None else get_device(device, "device")
        self._tracing = Tracing(name, None, where)
        self._outputs: list[Traced] = []
        self._names: list[str] = []
        self._constants: dict[Memory, Any] = {}
        self._program: Program | None = None

    # -- what goes in and out -----------------------------------------------------------------
    def input(self, name: str, shape: Sequence[int], dtype: Any) -> Traced:
        """Adds an input: a contiguous array, passed in this order when the program runs.

        Raises TraceError for a name that another input has, ShapeError and DtypeError.
        """
        self._open()
        sizes = Integers().read(f"shape of {name}", shape)
        like = imagined(sizes, name_of(dtype, f"dtype of {name}", BYTES))
        return self._named(name, like)

    def _named(self, name: str, like: Strided) -> Traced:
        """Adds an input with the layout of ``like``. Raises TraceError for a name in use."""
        builder = self._tracing.builder
        if not isinstance(name, str) or name in {m.name for m in builder.inputs}:
            raise TraceError(f"an input is named {name!r}; takes a name that no other has")
        return Traced(self._tracing, builder.input(name, like))

    def constant(self, name: str, array: Any) -> Traced:
        """Adds an array, such as a weight, that is no argument: runs read it, with the values that
        it has at capture if it is in host memory, and in place if it is on the device.

        Raises TraceError for a name that another input has; errors for an object that is no array.
        """
        self._open()
        seen = view(array, f"constant {name}")
        found = self._named(name, seen.packed if seen.kind == "host" else seen)
        self._constants[found.buffer.memory] = array
        return found

    def output(self, *nodes: Traced, **named: Traced) -> None:
        """Adds nodes to the outputs of the program, after earlier ones. Outputs have names, by
        which a run returns them in a dict, or none has.

        Raises TraceError for a name that another output has, and if some have names.
        """
        self._own("output", (*nodes, *named.values()))
        for name in named:
            if name in self._names:
                raise TraceError(f"an output is named {name!r}; takes a name that no other has")
        names = [*self._names, *named]
        if names and len(names) != len(self._outputs) + len(nodes) + len(named):
            raise TraceError("some outputs have no names; takes names for all, or for none")
        self._outputs += (*nodes, *named.values())
        self._names = names

    def program(self) -> Program:
        """Finishes and returns the program; no node can be added afterwards. ``ptxgen.capture``
        runs it, with or without passes. Raises TraceError if it has no output.
        """
        if self._program is None:
            if not self._outputs:
                raise TraceError(f"{self._tracing.builder.name} returns nothing; call output()")
            found = [x.buffer for x in self._outputs]
            named = dict(zip(self._names, found, strict=True)) if self._names else found
            program = self._tracing.builder.finish(named)
            self._program = replace(program, constants=dict(self._constants))
        return self._program

    # -- nodes --------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in OPERATIONS:
            near = get_close_matches(name, OPERATIONS, 3)
            hint = f"; there are {', '.join(near)}" if near else ""
            raise AttributeError(f"there is no operation {name!r}{hint}")
        return lambda *args, **options: self.call(name, *args, **options)

    def call(self, operation: str | Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Adds a node of an operation, given by name, or of a function of arrays that calls
        operations, such as one from :func:`ptxgen.pointwise`. Returns a node for each result.

        Raises OptionError for an unknown name or an object that is no function, TraceError for
        arrays that are no nodes of this program, and the errors of the operation.
        """
        if isinstance(operation, str):
            if operation not in OPERATIONS:
                near = ", ".join(get_close_matches(operation, OPERATIONS, 3)) or "other names"
                raise OptionError(f"there is no operation {operation!r}; takes for example {near}")
            name, function = operation, OPERATIONS[operation].function
        elif not callable(operation):
            raise OptionError(f"operation is {operation!r}; takes a name, or a function of arrays")
        else:
            name, function = getattr(operation, "__name__", "function"), operation
        given = [x for x in leaves((*args, *options.values())) if isinstance(x, Traced)]
        if not given:
            raise TraceError(f"{name} is given no node; takes inputs of the program, and nodes")
        self._own(name, given)
        with self._whole():
            return function(*args, **options)

    def cast(self, x: Traced, dtype: Any) -> Traced:
        """Adds a node that casts ``x`` to another dtype, rounded once."""
        found: Traced = self.call(f"cast_{STORABLE[name_of(dtype, 'dtype', STORABLE)]}", x)
        return found

    # -- views --------------------------------------------------------------------------------
    def reshape(self, x: Traced, shape: Sequence[int]) -> Traced:
        """Returns ``x`` in another shape, of which one size may be -1: a view, or else a copy.
        Raises ShapeError for another number of elements.
        """
        self._own("reshape", [x])
        to = Integers(least=-1).read("shape", shape)
        with self._whole():
            return x.reshape(to)

    def permute(self, x: Traced, order: Sequence[int]) -> Traced:
        """Returns a view with the axes in ``order``. Raises ShapeError if it is no permutation."""
        self._own("permute", [x])
        axes = Integers().read("order", order)
        if sorted(axes) != list(range(x.ndim)):
            raise ShapeError(f"order is {list(axes)}; takes each of the axes 0 to {x.ndim - 1}")
        return x.permute(axes)

    def slice(self, x: Traced, axis: int, start: int, stop: int, step: int = 1) -> Traced:
        """Returns a view of indices ``start``, ``start + step``, ... below ``stop`` along ``axis``.
        Raises ShapeError for an axis that ``x`` lacks, and for a slice beyond its end.
        """
        self._own("slice", [x])
        given = {"axis": axis, "start": start, "stop": stop, "step": step}
        axis, start, stop, step = (AxisNumber().read(n, value) for n, value in given.items())
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"axis is {axis}; x has shape {list(x.shape)}")
        if not (0 <= start <= stop <= x.shape[axis] and step > 0):
            raise ShapeError(
                f"the slice is from {start} to {stop} by {step}; x has {x.shape[axis]} elements "
                f"along axis {axis}"
            )
        return x[(*[slice(None)] * axis, slice(start, stop, step))]

    def expand(self, x: Traced, shape: Sequence[int]) -> Traced:
        """Returns a view broadcast to a shape. Raises ShapeError if it does not broadcast."""
        self._own("expand", [x])
        return x.expand(Integers().read("shape", shape))

    def view_as_real(self, x: Traced) -> Traced:
        """Returns a view of complex numbers as pairs of real and imaginary parts, ``[..., 2]``.
        Raises DtypeError for real numbers.
        """
        self._own("view_as_real", [x])
        return x.view_as_real()

    def view_as_complex(self, x: Traced) -> Traced:
        """Returns pairs of real and imaginary parts, ``[..., 2]``, as complex numbers: a view if
        the strides allow it, else a copy. Raises DtypeError and ShapeError for other arrays.
        """
        self._own("view_as_complex", [x])
        with self._whole():
            return x.view_as_complex()

    # -- what is refused ----------------------------------------------------------------------
    def _open(self) -> None:
        if self._program is not None:
            raise TraceError(f"{self._program.name} is finished; begin another Builder")

    def _own(self, name: str, nodes: Iterable[Any]) -> None:
        self._open()
        for x in nodes:
            if not isinstance(x, Traced):
                raise DtypeError(f"{name} is given a {type(x).__qualname__}; takes nodes")
            if x.tracing is not self._tracing:
                raise TraceError(f"{name} is given {x}, a node of another program")

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Context manager that removes the steps added in its body if an exception leaves it."""
        steps = self._tracing.builder.steps
        before = len(steps)
        try:
            yield
        except BaseException:
            del steps[before:]
            raise
