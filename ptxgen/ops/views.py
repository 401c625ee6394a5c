"""What operations ask of the views of their arguments: alignment, pitch, advice."""

from __future__ import annotations

from ptxgen.errors import ShapeError
from ptxgen.runtime.arrays import ArrayView
from ptxgen.runtime.dlpack import contiguous_strides

ALIGN_MAX = 16
_COPIES = {
    "torch": "{}.contiguous()",
    "cupy": "cupy.ascontiguousarray({})",
    "numpy": "numpy.ascontiguousarray({})",
}


def alignment(name: str, view: ArrayView, *strides: int) -> int:
    """The largest of 2, 4, 8, 16 that divides the address and ``strides`` (elements), in bytes.

    16 for an empty array. Raises ShapeError if the address is off a whole element.
    """
    if view.size == 0:
        return ALIGN_MAX
    if view.ptr % view.itemsize:
        raise ShapeError(
            f"{name} is at address {view.ptr:#x}; takes a multiple of {view.itemsize}, the size "
            f"of its elements; pass a copy of {name}"
        )
    low = view.ptr | ALIGN_MAX
    for stride in strides:
        low |= stride * view.itemsize
    return low & -low


def contiguous_copy(name: str, view: ArrayView) -> str:
    """How to make a contiguous copy of the argument ``name``, in its framework's words."""
    form = _COPIES.get(view.framework, "a contiguous copy of {}")
    return form.format(name)


def contiguous(view: ArrayView) -> bool:
    """Whether the elements lie one behind the other, in the order of their indices."""
    strides = contiguous_strides(view.shape)
    return view.size == 0 or all(
        size == 1 or own == wanted
        for size, own, wanted in zip(view.shape, view.strides, strides, strict=True)
    )


def check_contiguous(name: str, view: ArrayView, *, result: bool = False) -> None:
    """ShapeError unless the argument ``name``, or the ``result``, is contiguous."""
    if not contiguous(view):
        raise ShapeError(
            f"{name} has strides {list(view.strides)}; takes a contiguous array: pass "
            f"{contiguous_copy(name, view)}{f', or leave {name}= away' if result else ''}"
        )


def apart(name: str, view: ArrayView) -> ShapeError:
    """The error for an argument whose last dimension has another stride than 1."""
    return ShapeError(
        f"{name} has strides {list(view.strides)}; takes stride 1 along the last dimension: pass "
        f"{contiguous_copy(name, view)}"
    )


def leading(rows: int, width: int, stride: int, itemsize: int) -> int:
    """Elements from row to row.

    Nobody steps from a single row, so any pitch is right; whole 16 bytes admit most kernels.
    """
    unit = ALIGN_MAX // itemsize
    return stride if rows > 1 else max(-(-width // unit) * unit, unit)
