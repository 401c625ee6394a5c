"""Tensor maps, and the geometry of the boxes that cp.async.bulk.tensor copies (tile mode).

Source: PTX ISA 9.0, 5.5 (tensors) and 9.7.9.25 (tensor copies); CUDA driver API,
``cuTensorMapEncodeTiled`` (what a tensor map may be).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import SpecError
from ptxgen.interp.units.tensor import swizzle

Array = NDArray[Any]
I64 = NDArray[np.int64]

MAGIC = b"ptxgenTM"
NBYTES = 128
"""Size of an encoded map, ``sizeof(CUtensorMap)``."""
_FIELDS = struct.Struct("<8sQBBB5x5I4Q5H5B")
_SWIZZLES = (0, 32, 64, 128)
_MAX_RANK = 5


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box of it that one instruction copies.

    All sequences start with the innermost dimension, whose elements are contiguous; no
    interleaving. What is outside the tensor is read as zeros and not written.
    """

    address: int
    """Of the element at the origin; a multiple of 16."""
    itemsize: int
    """Bytes of an element: 1, 2, 4 or 8."""
    dims: tuple[int, ...]
    """Elements along each of 1 to 5 dimensions."""
    strides: tuple[int, ...]
    """Bytes from one element to the next along the second dimension and the further ones."""
    box: tuple[int, ...]
    """Elements that the box spans along each dimension, 1 to 256."""
    element_strides: tuple[int, ...] = field(default=())
    """Only every so many elements of the box are copied, 1 to 8; the first counts as 1.

    Empty: all 1."""
    swizzle: int = 0
    """Width in bytes of the pattern in shared memory: 0, 32, 64 or 128."""

    def __post_init__(self) -> None:
        rank = len(self.dims)
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * rank)
        lengths = [len(self.strides) + 1, len(self.box), len(self.element_strides)]
        self._check(1 <= rank <= _MAX_RANK, f"{rank} dimensions", "1 to 5")
        self._check(
            lengths == [rank] * 3,
            f"{lengths[0] - 1} strides, {lengths[1]} box sizes, {lengths[2]} element strides",
            f"{rank - 1}, {rank} and {rank} for {rank} dimensions",
        )
        self._check(
            self.address % 16 == 0 and 0 <= self.address < 1 << 64,
            f"address {self.address:#x}",
            "a multiple of 16",
        )
        self._check(
            self.itemsize in (1, 2, 4, 8), f"elements of {self.itemsize} bytes", "1, 2, 4 or 8"
        )
        self._check(
            all(1 <= n <= 1 << 32 for n in self.dims), f"dimensions {self.dims}", "1 to 2^32"
        )
        self._check(
            all(s % 16 == 0 and 0 <= s < 1 << 40 for s in self.strides),
            f"strides {self.strides}",
            "multiples of 16 below 2^40",
        )
        self._check(all(1 <= n <= 256 for n in self.box), f"box {self.box}", "1 to 256")
        self._check(
            all(1 <= n <= 8 for n in self.element_strides),
            f"element strides {self.element_strides}",
            "1 to 8",
        )
        self._check(self.swizzle in _SWIZZLES, f"swizzle {self.swizzle}", "0, 32, 64 or 128")
        row = self.box[0] * self.itemsize
        self._check(row % 16 == 0, f"a box with rows of {row} bytes", "a multiple of 16")
        self._check(
            not self.swizzle or row <= self.swizzle,
            f"a box with rows of {row} bytes",
            f"at most the swizzle's width of {self.swizzle}",
        )

    @staticmethod
    def _check(holds: bool, got: str, takes: str) -> None:
        if not holds:
            raise SpecError(f"tensor map: got {got}; takes {takes}")

    # -- as bytes ---------------------------------------------------------------------
    def encode(self) -> bytes:
        """The map as the 128 bytes that kernels of the CPU device receive; a private format."""
        rank = len(self.dims)

        def padded(values: Sequence[int], count: int = _MAX_RANK) -> list[int]:
            return [*values, *([0] * (count - len(values)))]

        packed = _FIELDS.pack(
            MAGIC,
            self.address,
            self.itemsize,
            rank,
            self.swizzle,
            *padded([n - 1 for n in self.dims]),
            *padded(self.strides, _MAX_RANK - 1),
            *padded(self.box),
            *padded(self.element_strides),
        )
        return packed.ljust(NBYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> TensorMap:
        """The inverse of :meth:`encode`; SpecError if ``data`` is no such map."""
        if len(data) != NBYTES or not data.startswith(MAGIC):
            raise SpecError(
                f"got {len(data)} bytes that start with {bytes(data[:8])!r}; a tensor map of the "
                f"CPU device has {NBYTES} and starts with {MAGIC!r}"
            )
        _, address, itemsize, rank, width, *rest = _FIELDS.unpack_from(data)
        dims, strides, box, element_strides = rest[:5], rest[5:9], rest[9:14], rest[14:19]
        if not 1 <= rank <= _MAX_RANK:
            raise SpecError(f"tensor map: got {rank} dimensions; takes 1 to 5")
        return cls(
            address,
            itemsize,
            tuple(n + 1 for n in dims[:rank]),
            tuple(strides[: rank - 1]),
            tuple(box[:rank]),
            tuple(element_strides[:rank]),
            width,
        )

    # -- boxes ------------------------------------------------------------------------
    @cached_property
    def _steps(self) -> tuple[int, ...]:
        return (1, *self.element_strides[1:])

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension that arrive in shared memory, innermost first."""
        return tuple(-(-n // s) for n, s in zip(self.box, self._steps, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes of a box in shared memory, all of which count for an mbarrier."""
        return math.prod(self.shape) * self.itemsize

    @property
    def alignment(self) -> int:
        """What a box's address in shared memory must be a multiple of."""
        return 128

    def global_addresses(self, coordinates: Sequence[int]) -> tuple[I64, NDArray[np.bool_]]:
        """Addresses of a box's elements, and which of them are in the tensor.

        ``coordinates`` (signed, innermost first) are those of the box's first element. Both
        results are flat, the innermost dimension fastest, as the box lies in shared memory. The
        addresses of elements outside the tensor mean nothing.
        """
        if len(coordinates) != len(self.dims):
            raise SpecError(
                f"got {len(coordinates)} coordinates for a tensor of {len(self.dims)} dimensions"
            )
        address = np.array(self.address, np.int64)
        inside = np.array(True)
        parts = zip(
            coordinates,
            self.shape,
            self._steps,
            self.dims,
            (self.itemsize, *self.strides),
            strict=True,
        )
        for first, count, step, size, stride in parts:
            index = first + step * np.arange(count, dtype=np.int64)
            address = index.reshape(-1, *[1] * address.ndim) * stride + address
            within = (index >= 0) & (index < size)
            inside = within.reshape(-1, *[1] * inside.ndim) & inside
        return address.reshape(-1), inside.reshape(-1)

    def shared_addresses(self, start: int) -> I64:
        """Shared addresses of the elements of a box at ``start``, in the same order.

        The box is dense; then chunks of 16 bytes are swizzled, by their addresses.
        """
        offsets = np.arange(math.prod(self.shape), dtype=np.int64) * self.itemsize
        return swizzle(start + offsets, self.swizzle)
