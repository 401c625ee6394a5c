"""Launches prepared once per problem and fired many times.

The parameter list of a kernel is one packed block, pointers first. Preparing a launch
packs everything; firing rewrites the leading pointers only.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ptxgen.runtime.device import Device, Function
    from ptxgen.runtime.workspace import Workspace

GEMM_PARAMS = struct.Struct("<5Q3q5I")
"""A, B, bias, C, workspace · lda, ldb, ldc (elements) · M, N, K, chunk, flags: 84 bytes."""

GEMM_OFFSETS = (*range(0, 64, 8), *range(64, GEMM_PARAMS.size, 4))
"""Where each of them lies."""

MAPS_AT, MAP_BYTES = 128, 128
"""Where the tensor maps of a GEMM kernel that takes some begin, behind :data:`GEMM_PARAMS`, and the
size of one (``sizeof(CUtensorMap)``; 64 is its alignment)."""


@dataclass(frozen=True, slots=True)
class TensorBox:
    """A tensor-map parameter: a matrix in global memory, and the box of it that one copy takes."""

    pointer: int
    """Which of the launch's pointers it starts at."""
    itemsize: int
    size: tuple[int, int]
    """Elements along the contiguous dimension, and rows."""
    pitch: int
    """Bytes from row to row."""
    box: tuple[int, int]
    swizzle: int


def with_maps(params: bytes, count: int) -> bytes:
    """``params`` with room for ``count`` tensor maps behind."""
    return params.ljust(MAPS_AT + count * MAP_BYTES, b"\0") if count else params


class Launch(Protocol):
    """Something prepared. May be fired from any thread, also by several at once."""

    def fire(self, stream: int, *pointers: int) -> None:
        """Enqueues the work on ``stream`` (a handle) with these pointers.

        Raises DeviceError, naming kernel and problem, when the driver refuses it.
        """


class GenericLaunch:
    """A launch through :meth:`Device.launch`, for devices without a faster way."""

    __slots__ = ("_block", "_function", "_grid", "_leading", "_maps", "_params", "_what")

    def __init__(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        params: bytes,
        pointers: int,
        what: str,
        maps: tuple[TensorBox, ...] = (),
    ) -> None:
        self._function, self._grid, self._block, self._what = function, grid, block, what
        self._leading = struct.Struct(f"<{pointers}Q")
        self._params = with_maps(params, len(maps))
        self._maps = maps

    def fire(self, stream: int, *pointers: int) -> None:
        """See :meth:`Launch.fire`."""
        params = bytearray(self._params)
        self._leading.pack_into(params, 0, *pointers)
        device = self._function.device
        for at, box in enumerate(self._maps):
            start = MAPS_AT + at * MAP_BYTES
            params[start : start + MAP_BYTES] = device.tensor_map(box, pointers[box.pointer])
        device.launch(self._function, self._grid, self._block, stream, bytes(params), self._what)


class ScratchLaunch:
    """Launches that share scratch memory, enqueued back to back on one stream.

    Every step receives the caller's pointers and, behind them, the scratch pointer. The
    scratch is borrowed for the length of the enqueueing, so two threads on one stream
    never write the same scratch between each other's steps.
    """

    __slots__ = ("_nbytes", "_steps", "_workspace")

    def __init__(self, device: Device, steps: tuple[Launch, ...], nbytes: int) -> None:
        self._workspace: Workspace = device.workspace
        self._steps, self._nbytes = steps, nbytes

    def fire(self, stream: int, *pointers: int) -> None:
        """See :meth:`Launch.fire`."""
        shelf, scratch = self._workspace.borrow(stream, self._nbytes)
        try:
            for step in self._steps:
                step.fire(stream, *pointers, scratch.ptr)
        finally:  # later borrowers are behind these steps in stream order
            shelf.append(scratch)
