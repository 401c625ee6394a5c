"""Layout of arrays: views and copies that only move elements, and rotary embedding.

Views are taken from arrays of any framework that slices as NumPy does. Other results are new arrays
in the caller's framework, made by one pass over memory (:mod:`ptxgen.ops.layout`).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from ptxgen import lazy
from ptxgen.autograd import operation
from ptxgen.errors import DtypeError, ShapeError, described
from ptxgen.numerics.dtype import PARTS, WHOLE
from ptxgen.numerics.option import AxisNumber, Integers, whole
from ptxgen.ops.views import axis_of
from ptxgen.program.trace import Traced
from ptxgen.runtime.arrays import framework_of

__all__ = [
    *("concat", "contiguous", "expand", "narrow", "pad", "rope", "split_qkv", "transpose"),
    *("view_as_complex", "view_as_real"),
]
_PASSES = ("concat", "contiguous", "pad", "rope")
"""Names of the operations in :mod:`ptxgen.layout` that write a new array, in one pass; the other
functions return views.
"""


_FUNCTIONS = lazy.LazyDict({name: partial(operation, name) for name in _PASSES})

__getattr__, __dir__ = lazy.attributes(__name__, _FUNCTIONS.__getitem__, lambda: __all__)


def narrow(x: Any, axis: int, start: int, length: int) -> Any:
    """``x[start : start + length]`` along ``axis``: a view.

    Shapes
        ``x`` any; the result has ``length`` along ``axis``.
    Dtypes
        Any.
    Order
        Nothing is computed, and nothing copied.
    Errors
        ShapeError for an axis that ``x`` lacks, and for elements beyond its end; DtypeError for
        an ``x`` that is no array.
    Source
        ``ptxgen/layout.py``.
    """
    at = _axis("axis", x, axis)
    first, count = whole(start), whole(length)
    if first is None or count is None or not 0 <= first <= first + count <= x.shape[at]:
        raise ShapeError(
            f"start is {described(start)} and length {described(length)}; x has "
            f"{x.shape[at]} elements along axis {at}"
        )
    return x[(*[slice(None)] * at, slice(first, first + count))]


def transpose(x: Any, first: int = -2, second: int = -1) -> Any:
    """A view of ``x`` with axes ``first`` and ``second`` swapped.

    Shapes
        ``x`` any.
    Dtypes
        Any.
    Order
        Nothing is computed, and nothing copied.
    Errors
        ShapeError for an axis that ``x`` lacks; DtypeError for an ``x`` that is no array.
    Source
        ``ptxgen/layout.py``.
    """
    one, other = _axis("first", x, first), _axis("second", x, second)
    if framework_of(x) == "torch":
        return x.transpose(one, other)
    return x.swapaxes(one, other)


def expand(x: Any, shape: Sequence[int]) -> Any:
    """A view of ``x`` that is broadcast to ``shape``, as NumPy does.

    Shapes
        ``x`` any that broadcasts to ``shape``.
    Dtypes
        Any.
    Order
        Nothing is computed, and nothing copied.
    Errors
        ShapeError if ``x`` does not broadcast to it; DtypeError for an ``x`` that is no array.
    Source
        ``ptxgen/layout.py``.
    """
    _array(x)
    to = Integers().read("shape", shape)
    lead = len(to) - len(x.shape)
    fits = zip(x.shape, to[max(lead, 0) :], strict=lead >= 0)
    if lead < 0 or any(size not in (1, wanted) for size, wanted in fits):
        raise ShapeError(f"x has shape {list(x.shape)}, which does not broadcast to {list(to)}")
    framework = framework_of(x)
    if framework == "torch" or isinstance(x, Traced):
        return x.expand(to)
    return importlib.import_module(framework).broadcast_to(x, to)


def view_as_real(x: Any) -> Any:
    """A view of complex numbers ``a + b i`` as pairs ``[a, b]``.

    Shapes
        ``x`` any; the result ``[..., 2]``.
    Dtypes
        ``x`` complex64 or complex128; the result float32 or float64.
    Order
        Nothing is computed, and nothing copied.
    Errors
        DtypeError for an ``x`` that is no array of complex numbers.
    Source
        ``ptxgen/layout.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.layout.view_as_real(numpy.array([1 + 2j, 3j], "c8"))
    array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    _array(x)
    part = PARTS.get(_dtype(x))
    if part is None:
        raise DtypeError(f"x has dtype {_dtype(x)}; takes {' or '.join(PARTS)}")
    if isinstance(x, Traced):
        return x.view_as_real()
    if framework_of(x) == "torch":
        import torch

        return torch.view_as_real(x)
    return x[..., None].view(part)


def view_as_complex(x: Any) -> Any:
    """A view of pairs ``[a, b]`` as complex numbers ``a + b i``.

    Shapes
        ``x`` ``[..., 2]``, of stride 1 along the last dimension; the result without it.
    Dtypes
        ``x`` float32 or float64; the result complex64 or complex128.
    Order
        Nothing is computed, and nothing copied.
    Errors
        ShapeError for an ``x`` whose last dimension is not 2 or has another stride; DtypeError for
        an ``x`` that is no array of these dtypes.
    Source
        ``ptxgen/layout.py``.

    >>> import numpy, ptxgen
    >>> ptxgen.layout.view_as_complex(numpy.array([[1, 2], [0, 3]], "f8"))
    array([1.+2.j, 0.+3.j])
    """
    _array(x)
    whole = WHOLE.get(_dtype(x))
    if whole is None:
        raise DtypeError(f"x has dtype {_dtype(x)}; takes {' or '.join(WHOLE)}")
    if not x.shape or x.shape[-1] != 2:
        raise ShapeError(f"x has shape {list(x.shape)}; takes [..., 2], pairs of parts")
    if isinstance(x, Traced):
        return x.view_as_complex()
    try:
        if framework_of(x) == "torch":
            import torch

            return torch.view_as_complex(x)
        return x.view(whole)[..., 0]
    except (RuntimeError, ValueError) as error:
        raise ShapeError(
            f"x is no view of complex numbers, pass a contiguous copy: {error}"
        ) from None


def _dtype(x: Any) -> str:
    """Returns the full name of the dtype of an array of any framework."""
    return str(getattr(x.dtype, "name", x.dtype)).removeprefix("torch.")


def split_qkv(x: Any, heads: int, kv_heads: int) -> tuple[Any, Any, Any]:
    """Queries, keys and values of a packed projection: views of ``x``.

    A row holds all heads of the queries, then those of the keys, then those of the values.
    :func:`ptxgen.attention` with ``layout="bshd"`` reads these views without a copy.

    Shapes
        ``x`` ``[..., (heads + 2 kv_heads) D]``, of stride 1 along the last dimension; the results
        ``[..., heads, D]`` and twice ``[..., kv_heads, D]``.
    Dtypes
        Any.
    Order
        Nothing is computed, and nothing copied.
    Errors
        ShapeError unless ``heads + 2 kv_heads`` divides the last dimension; DtypeError for an ``x``
        that is no array.
    Source
        ``ptxgen/layout.py``.

    >>> import numpy, ptxgen
    >>> [y.shape for y in ptxgen.layout.split_qkv(numpy.zeros((2, 5, 64)), 4, 2)]
    [(2, 5, 4, 8), (2, 5, 2, 8), (2, 5, 2, 8)]
    """
    last = _axis("axis", x, -1)
    width = x.shape[last]
    counts = [whole(n) for n in (heads, kv_heads, kv_heads)]
    if None in counts or min(counts) < 1 or width % sum(counts):
        raise ShapeError(
            f"heads is {described(heads)} and kv_heads {described(kv_heads)}; x has {width} "
            "elements a row, which so many heads of queries, of keys and of values do not divide"
        )
    size, found, start = width // sum(counts), [], 0
    for count in counts:
        part = x[..., start : start + count * size]
        found.append(part.reshape((*x.shape[:-1], count, size)))
        start += count * size
    return tuple(found)


def _array(x: Any) -> None:
    if framework_of(x) not in ("torch", "numpy", "cupy") and not isinstance(x, Traced):
        raise DtypeError(
            f"x is a {type(x).__qualname__}, of which ptxgen takes no views; takes PyTorch, CuPy "
            "or NumPy"
        )


def _axis(name: str, x: Any, axis: Any) -> int:
    _array(x)
    return axis_of("x", x, AxisNumber().read(name, axis), name)
