"""Active extents: one axis of the arguments of a capture that calls may make shorter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ptxgen.errors import OptionError, ShapeError, described, proposal
from ptxgen.runtime.arrays import ArrayView, view
from ptxgen.runtime.strided import contiguous_strides

Axes = int | Sequence[int | None] | Mapping[str, int]
"""Axis of every argument; or one for each (None: of a fixed shape); or some by name."""


@dataclass(frozen=True)
class Extent:
    """The axis of each argument that calls may make shorter (None: of none), and the size that it
    was captured with (``upper``).
    """

    axes: Mapping[str, int | None]
    upper: int

    def rows(self, name: str, given: Mapping[str, Any], asked: Any) -> int:
        """Returns the size that a call with these arguments has along the axis: ``asked``, unless
        it is None. ``name``: the captured function's name, for errors.

        Raises OptionError and ShapeError for a size beyond :attr:`upper`, sizes that differ, and an
        array that is shorter than ``asked``.
        """
        sizes = {n: self._size(n, given[n]) for n, axis in self.axes.items() if axis is not None}
        first, found = next(iter(sizes.items()))
        if asked is not None:
            if type(asked) is not int or not 0 <= asked <= self.upper:
                raise OptionError(
                    f"extent is {described(asked)}; {name} takes 0 to {self.upper}, as captured"
                )
            first, found = "extent", asked
        for n, size in sizes.items():
            wrong = size < found if asked is not None else size != found
            if wrong or size > self.upper:
                takes = f"at most {self.upper}" if size > self.upper else f"{found}, as {first}"
                raise ShapeError(f"{n} has size {size} along axis {self.axes[n]}; takes {takes}")
        return found

    def _size(self, name: str, x: Any) -> int:
        axis, shape = self.axes[name], view(x, name).shape
        if axis is None or axis >= len(shape):
            raise ShapeError(f"{name} has shape {list(shape)}; takes an array with axis {axis}")
        return shape[axis]

    def cut(self, given: Mapping[str, Any], rows: int) -> dict[str, Any]:
        """Returns the arguments with the first ``rows`` elements along the axis."""
        found = {}
        for name, x in given.items():
            axis = self.axes[name]
            whole = axis is None or self._size(name, x) == rows
            found[name] = x if whole else x[(*[slice(None)] * (axis or 0), slice(rows))]
        return found

    def layout(self, name: str, seen: ArrayView, rows: int) -> ArrayView:
        """Returns the contiguous layout of an argument with ``rows`` elements along the axis."""
        axis = self.axes[name]
        if axis is None:
            return seen
        shape = (*seen.shape[:axis], rows, *seen.shape[axis + 1 :])
        return replace(seen, shape=shape, strides=contiguous_strides(shape))


def extent_of(axes: Axes, views: Mapping[str, ArrayView]) -> Extent:
    """Returns the extent that ``capture(..., extent=axes)`` asks for. ``views``: the layouts of the
    arguments by name.

    Raises OptionError for an axis that an argument lacks, an unknown name, and no axis at all;
    ShapeError for arguments whose sizes along it differ.
    """
    if isinstance(axes, Mapping):
        for name in axes:
            if name not in views:
                near = proposal(name, views)
                raise OptionError(f"extent has {described(name)}{near}; has {', '.join(views)}")
        chosen: dict[str, Any] = {name: axes.get(name) for name in views}
    elif isinstance(axes, Sequence) and not isinstance(axes, str):
        if len(axes) != len(views):
            raise OptionError(f"extent has {len(axes)} axes; takes one for each of {len(views)}")
        chosen = dict(zip(views, axes, strict=True))
    else:
        chosen = dict.fromkeys(views, axes)
    found: dict[str, int | None] = {}
    for name, axis in chosen.items():
        shape = views[name].shape
        if axis is not None and (type(axis) is not int or not -len(shape) <= axis < len(shape)):
            raise OptionError(
                f"extent is {described(axis)} for {name}, of shape {list(shape)}; takes an axis"
            )
        found[name] = None if axis is None else axis % len(shape)
    sizes = {n: views[n].shape[axis] for n, axis in found.items() if axis is not None}
    if not sizes:
        raise OptionError("extent has no axis; takes that of one argument or more")
    first, upper = next(iter(sizes.items()))
    for name, size in sizes.items():
        if size != upper:
            raise ShapeError(
                f"{name} has size {size} along axis {found[name]}, and {first} {upper}; extent "
                "takes axes of one size: name those that calls make shorter"
            )
    return Extent(found, upper)
