"""Global memory of the CPU device, and the address windows of all state spaces.

Every allocation has an address range of its own, far from all others and never reused, so a stray
address never hits another allocation. A shadow array marks the bytes that have been written.
"""

from __future__ import annotations

import bisect
import ctypes
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import DeviceError
from ptxgen.locks import Lock

Array = NDArray[Any]

# Windows of the state spaces among generic addresses. Shared and local addresses themselves are
# offsets; nothing starts at 0, so that a null pointer is invalid.
SHARED_BASE = 1 << 10
"""First shared address of a CTA; as on sm_90, the first 1024 bytes are the system's."""
CLUSTER_STRIDE = 1 << 24
"""Distance in bytes between the shared memories of two CTAs in shared::cluster addresses."""
LOCAL_BASE = 1 << 4
SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 1 << 41
PARAM_WINDOW = 1 << 42
GLOBAL_BASE = 1 << 44
_GAP = 1 << 22
LIMIT = 2 << 30
"""Default limit of a device's memory in bytes; the shadow of written bytes takes as much again."""
_REMEMBERED = 64
_ALIGN = 256


@dataclass(slots=True, eq=False)
class Allocation:
    """One allocation of ``nbytes`` bytes at global address ``base``. ``data``: its bytes, padded to
    16; ``name``: for messages; ``constant``: stores fault; ``freed``: all accesses fault.
    """

    base: int
    nbytes: int
    data: NDArray[np.uint8]
    written: NDArray[np.uint8] | None
    """1 for each byte of ``data`` that has been written, else 0; None once all have been."""
    name: str = ""
    constant: bool = False
    freed: bool = False
    views: dict[Any, Array] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.base + self.nbytes

    def rows(self, dtype: np.dtype[Any], vector: int) -> Array:
        """Returns a view of ``data`` with dtype ``dtype``: of shape ``[elements]``, or, if
        ``vector`` is above 1, of ``[elements / vector, vector]``.
        """
        key = (dtype, vector)
        found = self.views.get(key)
        if found is None:
            found = self.data.view(dtype)
            if vector > 1:
                size = found.size // vector * vector
                found = found[:size].reshape(-1, vector)
            self.views[key] = found
        return found

    def mark(self, start: int, nbytes: int) -> None:
        """Marks ``nbytes`` bytes from offset ``start`` on as written."""
        if self.written is not None:
            self.written[start : start + nbytes] = 1
            if (start == 0 and nbytes == self.nbytes) or self.written[: self.nbytes].all():
                self.written = None

    def mark_at(self, offsets: NDArray[np.int64], width: int) -> None:
        """Marks ``width`` aligned bytes at each of ``offsets`` as written."""
        if self.written is not None:
            if width == 1:
                self.written[offsets] = 1
            else:
                self.written.reshape(-1, width)[offsets // width] = 1

    def unwritten(self, offsets: NDArray[np.int64], width: int) -> NDArray[np.bool_] | None:
        """Returns the mask of accesses of ``width`` bytes that touch unwritten bytes; None if none
        does.
        """
        if self.written is None:
            return None
        if width == 1:
            bad = self.written[offsets] == 0
        else:
            bad = ~self.written.reshape(-1, width)[offsets // width].all(axis=1)
        return bad if bad.any() else None


class GlobalMemory:
    """The allocations of one device, ``limit`` bytes at most. Safe to use from several threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._bases: list[int] = []
        self._live: dict[int, Allocation] = {}
        # The latest freed ranges, for messages about stale addresses; bounded in length.
        self._freed: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._limit, self._held = limit, 0
        self._next = GLOBAL_BASE
        # Reentrant: the garbage collector may free an array in the middle of either method.
        self._lock = Lock()

    def alloc(self, nbytes: int, name: str = "", *, written: bool = False) -> Allocation:
        """Allocates ``nbytes`` bytes: unwritten, or zeroed and marked as written if ``written``.

        Raises DeviceError if device or host have too little memory.
        """
        padded = -(-max(nbytes, 1) // 16) * 16
        if padded > self._limit - self._held:
            raise DeviceError(
                f"{nbytes} bytes do not fit: the CPU device holds at most {self._limit} bytes, of "
                f"which {self._held} are in use; it interprets kernels, so take a smaller problem"
            )
        try:
            # Not zeros: a read of unwritten bytes must not find the value that hides the bug.
            data = np.zeros(padded, np.uint8) if written else np.full(padded, 0xCD, np.uint8)
            shadow = None if written else np.zeros(padded, np.uint8)
        except MemoryError:
            raise DeviceError(f"this machine has no memory for {nbytes} bytes") from None
        with self._lock:
            self._held += padded
            base = self._next
            self._next += -(-padded // _ALIGN) * _ALIGN + _GAP
            found = Allocation(base, nbytes, data, shadow, name)
            self._bases.append(base)  # grows upwards, so it stays sorted
            self._live[base] = found
        return found

    def free(self, base: int) -> bool:
        """Frees the allocation at address ``base``; returns False if there is none."""
        with self._lock:
            found = self._live.pop(base, None)
            if found is None:
                return False
            found.freed = True
            self._held -= len(found.data)
            self._bases.remove(base)  # in one step; find() reads the list without the lock
            self._freed.append((base, found.end))
        return True

    def find(self, address: int, nbytes: int = 1) -> Allocation | None:
        """Returns the live allocation that contains ``nbytes`` bytes at ``address``, or None."""
        at = bisect.bisect_right(self._bases, address) - 1
        if at < 0:
            return None
        found = self._live.get(self._bases[at])
        return found if found is not None and address + nbytes <= found.end else None

    def describe(self, address: int, nbytes: int) -> str:
        """Returns why ``nbytes`` bytes at ``address`` cannot be accessed, for a message."""
        for base, end in reversed(self._freed):
            if base <= address < end:
                return f"the memory [{base:#x}, {end:#x}) has been freed"
        at = bisect.bisect_right(self._bases, address) - 1
        near = []
        for i in (at, at + 1):
            if 0 <= i < len(self._bases) and (found := self._live.get(self._bases[i])):
                what = found.name or "an allocation"
                size = f"{what} of {found.nbytes} bytes at {found.base:#x}"
                if address >= found.base:
                    near.append((address - found.base, f"byte {address - found.base} of {size}"))
                else:
                    near.append((found.base - address, f"{found.base - address} before {size}"))
        if address < SHARED_WINDOW or not near or min(near)[0] > _GAP:
            return f"{address:#x} belongs to no allocation"
        return min(near)[1]

    # Host access, by Device.copy_in and the like. All raise LookupError with the reason.
    def _range(self, address: int, nbytes: int) -> tuple[Allocation, int]:
        found = self.find(address, nbytes)
        if found is None:
            raise LookupError(self.describe(address, nbytes))
        return found, address - found.base

    def write(self, address: int, host: int, nbytes: int) -> None:
        """Copies ``nbytes`` bytes from host address ``host`` to device address ``address``."""
        found, start = self._range(address, nbytes)
        ctypes.memmove(found.data.ctypes.data + start, host, nbytes)
        found.mark(start, nbytes)

    def read(self, host: int, address: int, nbytes: int) -> None:
        """Copies ``nbytes`` bytes from device address ``address`` to host address ``host``."""
        found, start = self._range(address, nbytes)
        ctypes.memmove(host, found.data.ctypes.data + start, nbytes)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Sets ``nbytes`` bytes at device address ``address`` to ``value``."""
        found, start = self._range(address, nbytes)
        found.data[start : start + nbytes] = value
        found.mark(start, nbytes)
