"""Oracles of composed operations: their programs, run with NumPy.

:func:`derived` lowers an operation, and runs the oracle of each operation that it is composed of on
NumPy arrays. So a composed operation needs no oracle of its own. If it has one all the same,
because its contract was written first, the two must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any

from ptxgen.errors import PtxgenError, SpecError, UncoveredError
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.description import Description
from ptxgen.program.parameters import is_array
from ptxgen.program.registry import OPERATIONS
from ptxgen.runtime.arrays import framework_of, host_bits, host_empty, view
from ptxgen.spec import Problem


class Interpreter(ProgramBuilder):
    """A builder that runs each operation immediately, by its oracle, on NumPy arrays."""

    def __init__(self, name: str) -> None:
        super().__init__(OPERATIONS, name)
        self._bytes: dict[Memory, Any] = {}

    @cached_property
    def _shapes(self) -> ProgramBuilder:
        return ProgramBuilder(OPERATIONS, self.name)

    def array(self, name: str, array: Any, *, written: bool = False) -> Buffer:
        """Adds a NumPy array as an input, and returns its buffer. An array that is only read is
        copied to contiguous memory first, as calls do with arrays in host memory.
        """
        import numpy as np

        own = np.asarray(array) if written else np.array(array, order="C")
        found = self.input(name, view(own, name), written=written)
        self._bytes[found.memory] = own
        return found

    def value(self, x: Any) -> Any:
        """Returns a buffer's elements as a NumPy view; a tuple for a sequence; other values
        unchanged.
        """
        if isinstance(x, tuple | list):
            return tuple(map(self.value, x))
        if not isinstance(x, Buffer):
            return x
        base = self._bytes.get(x.memory)
        if base is None:
            base = self._bytes[x.memory] = _memory(x.memory)
        whole = view(base, x.memory.name)
        seen = replace(whole.laid(x.shape, x.strides), ptr=whole.ptr + x.offset, dtype=x.dtype)
        return host_bits(seen).view(_dtype(x.dtype))

    def call(self, op: Description, *args: Any, **options: Any) -> Any:
        """Runs the oracle of an operation, or lowers the operation if it has none."""
        if op.oracle is None:
            return super().call(op, *args, **options)
        found = self._shapes.call(op, *args, **options)
        several = found if isinstance(found, tuple) else (found,)
        how = {n: v for n, v in options.items() if n not in ("out", "kernel", "stream", "check")}
        if how.pop("accumulate", False):
            how["out_old"] = self.value(options["out"]).copy()
        if "out_dtype" in op.options:
            dtypes = tuple(b.dtype for b in several)
            how["out_dtype"] = dtypes if len(dtypes) > 1 and op.typed_each else dtypes[0]
        made = op.oracle(*map(self.value, args), **{n: self.value(v) for n, v in how.items()})
        values = made if isinstance(made, tuple) else (made,)
        for buffer, value in zip(several, values, strict=True):
            self.value(buffer)[...] = value
        return found

    def require(self, problem: Problem) -> None:
        """Raises UncoveredError: NumPy has no kernels, so operations take another algorithm."""
        raise UncoveredError(str(problem), "NumPy computes it")

    def launch(self, problem: Any, bind: Any, *_: Any, **__: Any) -> None:
        """Raises SpecError: an operation that launches kernels needs an oracle."""
        raise SpecError(f"{self.name} launches {problem()}, and has no oracle")


def _memory(memory: Memory) -> Any:
    """Allocates the NumPy array of a memory, filled with poison: bytes 0xFF, or 1 for bool."""
    import numpy as np

    assert memory.natural is not None, "all memory of programs is laid"
    shape, dtype = memory.natural.shape, memory.natural.dtype
    like = view(np.empty(0, np.float32), memory.name)
    found = host_empty(like, shape, dtype)
    found.reshape(-1).view(np.uint8).fill(0xFF if dtype != "bool" else 1)
    return found


def _dtype(name: str) -> Any:
    import numpy as np

    return host_empty(view(np.empty(0, np.float32), "x"), (0,), name).dtype


def derived(op: Description) -> Callable[..., Any]:
    """Returns the oracle of an operation, composed of the oracles of the operations in it."""

    @wraps(op.lower)
    def oracle(*args: Any, **named: Any) -> Any:
        given = op.bound(args, named)
        at = Interpreter(op.name)
        arguments = {}
        for p in op.parameters:
            value = given[p.name]
            if p.kind == "stream":
                continue
            if p.kind == "written" and value is not None and not isinstance(value, bool):
                several = value if isinstance(value, tuple | list) else (value,)
                made = tuple(at.array(p.name, v, written=True) for v in several)
                arguments[p.name] = made if isinstance(value, tuple | list) else made[0]
            elif p.kind == "arrays":
                arguments[p.name] = tuple(at.array(p.name, v) for v in value)
            elif p.kind == "option" or (p.kind == "either" and not is_array(value)):
                arguments[p.name] = p.read(value)
            elif value is not None and framework_of(value) == "numpy":
                arguments[p.name] = at.array(p.name, value)
            else:
                arguments[p.name] = value
        shapes = {n: x.shape for n, x in arguments.items() if isinstance(x, Buffer)}
        op.check_shapes(shapes, arguments)
        try:
            found = at.value(op.lower(at, **arguments))
        except PtxgenError as error:
            error.name_call(op.name)
            raise
        return tuple(found) if isinstance(found, tuple) else found

    oracle.__signature__ = op.signature  # type: ignore[attr-defined]
    oracle.__doc__ = op.doc
    oracle.__name__ = op.name
    return oracle
