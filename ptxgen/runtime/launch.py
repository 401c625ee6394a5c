"""Launches prepared once per problem and fired many times.

The parameter list of a kernel is one packed buffer, pointers first. Preparing a launch packs the
whole list; firing rewrites only the pointers, and the addresses in tensor maps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any, Protocol

from ptxgen.errors import DeviceError
from ptxgen.runtime.workspace import Workspace
from ptxgen.spec.abi import MAP_BYTES

Dim3 = tuple[int, int, int]
"""Sizes (x, y, z) of a grid or a block."""
SCRATCH_UNIT = 256
"""Alignment of each scratch memory of a launch, bytes."""


@dataclass(frozen=True, slots=True)
class TensorBox:
    """A tensor-map (CUtensorMap) parameter: an array in global memory, and the box of it that one
    TMA copy transfers. All dimensions are innermost first. ``itemsize``: bytes of an element;
    ``box``: sizes of the box, elements; ``swizzle``: span of the swizzle in shared memory, bytes (0
    for none).
    """

    pointer: int
    """Index of the array's pointer among those that the launch is fired with."""
    at: int
    """Offset of the map in the parameter list, bytes."""
    itemsize: int
    size: tuple[int, ...]
    """Sizes of the array, elements; the contiguous dimension first."""
    pitches: tuple[int, ...]
    """Strides of all dimensions but the first, bytes."""
    box: tuple[int, ...]
    swizzle: int
    steps: tuple[int, ...] = ()
    """Element strides of the copy (``elementStrides`` of CUDA's encoder); empty: all 1."""
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Lower and upper corner of the bounding box of an im2col map, whose ``box`` is (channels,
    pixels) (:class:`ptxgen.spec.abi.MapBox`); None for a tiled map."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """A kernel's parameter list without its pointers and tensor maps, which firing writes.

    ``packed``: the whole list, with zeros for pointers and maps. ``order``: for each leading
    pointer parameter, the index of its value in the arguments of ``fire``, None for null.
    ``offsets``: byte offset of each parameter that is no map. ``maps``: the tensor maps.
    """

    packed: bytes
    order: tuple[int | None, ...]
    offsets: tuple[int, ...] = ()
    maps: tuple[TensorBox, ...] = ()

    def faults(self, fired: int) -> Iterator[tuple[str, str, str]]:
        """Yields each invalid value, for a launch with ``fired`` pointers, as texts: the field, its
        value, the accepted values. Launches write to memory at these offsets, and generate code
        with these indices, so both must be valid.
        """
        size = len(self.packed)
        if 8 * len(self.order) > size:
            yield "order", f"of {len(self.order)} pointers", f"at most {size // 8}, of 8 bytes each"
        for i, which in enumerate(self.order):
            if which is not None and not _is_index(which, fired):
                yield f"order[{i}]", ascii(which), f"null or one of {fired} pointers"
        end = 0
        for i, at in enumerate(self.offsets):
            if not _is_index(at, size - 3) or at % 4 or at < end:
                takes = f"a multiple of 4 from {end} to {size - 4}"
                yield f"offsets[{i}]", ascii(at), takes
                return
            end = at + 4
        for i, box in enumerate(self.maps):
            if not _is_index(box.pointer, fired):
                yield f"maps[{i}].pointer", ascii(box.pointer), f"one of {fired} pointers"
            if not _is_index(box.at, size - MAP_BYTES + 1) or box.at % 64 or box.at < end:
                takes = f"a multiple of 64 from {end} to {size - MAP_BYTES}"
                yield f"maps[{i}].at", ascii(box.at), takes
                return
            end = box.at + MAP_BYTES

    @property
    def writes(self) -> int:
        """Number of leading pointer parameters that each launch writes: up to the last that is not
        null.
        """
        return max((i + 1 for i, which in enumerate(self.order) if which is not None), default=0)

    def pick(self, fired: int) -> Callable[[Sequence[int]], Sequence[int]] | None:
        """Returns a function that selects the kernel's pointers from the ``fired`` ones; None if
        the kernel takes all of these, in their order.
        """
        order = self.order[: self.writes]
        if order == tuple(range(fired)):
            return None
        if not order:
            return lambda pointers: ()
        if None in order:
            take: Callable[[Any], Any] = itemgetter(*(fired if i is None else i for i in order))
            one = len(order) == 1
            return lambda pointers: (take((*pointers, 0)),) if one else take((*pointers, 0))
        take = itemgetter(*order)
        return take if len(order) > 1 else lambda pointers: (take(pointers),)


def _is_index(value: Any, count: int) -> bool:
    return type(value) is int and 0 <= value < count


def check_parameters(params: Parameters, fired: int, what: str) -> None:
    """Raises DeviceError if ``params`` has an invalid value for a launch that is fired with
    ``fired`` pointers; ``what`` describes the launch in the error.
    """
    if not _is_index(fired, 1 << 31):
        raise DeviceError(f"launching {what}: pointers is {fired!r}; takes how many there are")
    for at, got, takes in params.faults(fired):
        raise DeviceError(f"launching {what}: {at} is {got}; takes {takes}")


class Runner(Protocol):
    """The part of :class:`ptxgen.runtime.device.Device` that launches use."""

    workspace: Workspace

    def launch(
        self, function: Function, grid: Dim3, block: Dim3, stream: int, params: bytes, what: str
    ) -> None:
        """Enqueues one launch with the packed parameter list ``params``."""

    def tensor_map(self, box: TensorBox, pointer: int) -> bytes:
        """Encodes the tensor map of ``box`` at ``pointer``, for kernels of this device."""


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel loaded on one device. ``handle`` is valid on that device only; ``image`` is the
    cubin or PTX that it was loaded from.
    """

    device: Runner
    symbol: str
    handle: int
    shared_bytes: int
    image: bytes = field(default=b"", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Arguments of :meth:`Device.prepare` from which a kernel launch was prepared."""

    function: Function
    grid: Dim3
    block: Dim3
    params: Parameters
    pointers: int
    """Number of pointers that the launch is fired with."""
    what: str
    programmatic: bool = False


class Launch(Protocol):
    """Protocol of a prepared launch; threads may fire it concurrently."""

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """Arguments from which each kernel launch was prepared, in order."""

    def fire(self, stream: int, *pointers: int) -> None:
        """Enqueues the work on ``stream`` (a handle) with these pointers.

        Raises DeviceError, naming kernel and problem, when the driver refuses it.
        """


class GenericLaunch:
    """A launch that packs all parameters and calls :meth:`Device.launch`, for devices without a
    faster method.
    """

    __slots__ = ("_leading", "_of", "_pick")

    def __init__(
        self,
        function: Function,
        grid: Dim3,
        block: Dim3,
        params: Parameters,
        pointers: int,
        what: str,
        programmatic: bool = False,
    ) -> None:
        check_parameters(params, pointers, what)
        self._of = Prepared(function, grid, block, params, pointers, what, programmatic)
        self._leading = struct.Struct(f"<{params.writes}Q")
        self._pick = params.pick(pointers)

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """The arguments that this launch was prepared from, as a tuple of one."""
        return (self._of,)

    def fire(self, stream: int, *pointers: int) -> None:
        """Packs the parameter list with ``pointers`` and enqueues the launch."""
        of = self._of
        packed = bytearray(of.params.packed)
        self._leading.pack_into(packed, 0, *(self._pick(pointers) if self._pick else pointers))
        device = of.function.device
        for box in of.params.maps:
            packed[box.at : box.at + MAP_BYTES] = device.tensor_map(box, pointers[box.pointer])
        device.launch(of.function, of.grid, of.block, stream, bytes(packed), of.what)


class ScratchLaunch:
    """A sequence of launches on one stream that share scratch memory.

    ``steps``: the launches; ``sizes``: bytes of each scratch memory. Every step receives the
    caller's pointers, then a pointer to each scratch memory. The scratch is borrowed while the
    steps are enqueued, so the steps of two threads on one stream never share it.
    """

    __slots__ = ("_nbytes", "_offsets", "_workspace", "sizes", "steps")

    def __init__(self, device: Runner, steps: tuple[Launch, ...], sizes: tuple[int, ...]) -> None:
        self._workspace = device.workspace
        self.sizes = sizes
        units = [-(-nbytes // SCRATCH_UNIT) * SCRATCH_UNIT for nbytes in sizes]
        *self._offsets, self._nbytes = accumulate(units, initial=0)
        self.steps = steps

    @property
    def prepared(self) -> tuple[Prepared, ...]:
        """Arguments from which each step's launches were prepared, in order."""
        return tuple(each for step in self.steps for each in step.prepared)

    def fire(self, stream: int, *pointers: int) -> None:
        """Borrows scratch memory and enqueues all steps."""
        idle, scratch = self._workspace.borrow(stream, self._nbytes)
        scratch_pointers = [scratch.ptr + offset for offset in self._offsets]
        try:
            for step in self.steps:
                step.fire(stream, *pointers, *scratch_pointers)
        finally:  # work of later borrowers comes after these steps in stream order
            idle.append(scratch)
