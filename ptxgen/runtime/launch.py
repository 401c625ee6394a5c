"""Launches prepared once per problem and fired many times.

The parameter list of a kernel is one packed block, pointers first. Preparing a launch
packs everything; firing rewrites the leading pointers only.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ptxgen.runtime.device import Device, Function
    from ptxgen.runtime.workspace import Workspace

GEMM_PARAMS = struct.Struct("<5Q3q5I")
"""A, B, bias, C, workspace · lda, ldb, ldc (elements) · M, N, K, chunk, flags: 84 bytes."""


class Launch(Protocol):
    """Something prepared. May be fired from any thread, also by several at once."""

    def fire(self, stream: int, *pointers: int) -> None:
        """Enqueues the work on ``stream`` (a handle) with these pointers.

        Raises DeviceError, naming kernel and problem, when the driver refuses it.
        """


class GenericLaunch:
    """A launch through :meth:`Device.launch`, for devices without a faster way."""

    __slots__ = ("_block", "_function", "_grid", "_leading", "_tail", "_what")

    def __init__(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        params: bytes,
        pointers: int,
        what: str,
    ) -> None:
        self._function, self._grid, self._block, self._what = function, grid, block, what
        self._leading = struct.Struct(f"<{pointers}Q")
        self._tail = params[self._leading.size :]

    def fire(self, stream: int, *pointers: int) -> None:
        """See :meth:`Launch.fire`."""
        params = self._leading.pack(*pointers) + self._tail
        function = self._function
        function.device.launch(function, self._grid, self._block, stream, params, self._what)


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
