"""Types of arguments and results, for the signatures of operations and their stubs."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable


@runtime_checkable
class Array(Protocol):
    """An array that operations read: one of PyTorch, CuPy, JAX or NumPy, a NumPy scalar, or any
    object with ``__dlpack__`` or ``__cuda_array_interface__``.

    Results are arrays of the framework of the first argument.
    """

    @property
    def shape(self) -> Any:
        """The sizes of the dimensions."""

    @property
    def dtype(self) -> Any:
        """The type of the elements."""


ArrayT = TypeVar("ArrayT", bound=Array)
"""Type variable of an operation's first array, such as ``torch.Tensor``, and of its results. (A
dtype in NumPy's type is the argument's own, not the result's.)
"""
DtypeLike: TypeAlias = Any
"""A dtype: its full name, such as "bfloat16", or a dtype of PyTorch, NumPy, CuPy or JAX."""
Stream: TypeAlias = Any
"""A stream of PyTorch or CuPy, or the handle of one as an integer; None: the framework's current
one.
"""
