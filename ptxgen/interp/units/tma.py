"""Tensor maps, and the elements that cp.async.bulk.tensor copies: boxes in tile mode, columns of
pixels in im2col mode.

Source: PTX ISA 9.0, 5.5 (tensors) and 9.7.9.25 (tensor copies); CUDA driver API,
``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col`` (limits of a tensor map).
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
"""Bytes of an encoded map, ``sizeof(CUtensorMap)``."""
_FIELDS = struct.Struct("<8sQBBBB4x5I4Q5H5B6h")
_SWIZZLES = (0, 32, 64, 128)
_MAX_RANK = 5
_CORNER_BITS = {3: 16, 4: 8, 5: 5}
"""Bits of a coordinate of an im2col bounding box, and of an im2col offset, by tensor rank."""


@dataclass(frozen=True)
class TensorMap:
    """Tensor in global memory, and the box of it that one instruction copies.

    All sequences start with the innermost dimension, whose elements are contiguous; no
    interleaving. Elements outside the tensor are read as zeros and not written.
    """

    address: int
    """Global address in bytes of the element at the origin; a multiple of 16."""
    itemsize: int
    """Bytes of an element: 1, 2, 4 or 8."""
    dims: tuple[int, ...]
    """Elements along each of 1 to 5 dimensions."""
    strides: tuple[int, ...]
    """Strides in bytes of the second and all further dimensions."""
    box: tuple[int, ...]
    """Elements that the box spans along each dimension, 1 to 256."""
    element_strides: tuple[int, ...] = field(default=())
    """Element strides, 1 to 8: n copies every n-th element of the box; the first counts as 1.
    Empty: all 1.
    """
    swizzle: int = 0
    """Swizzle width in bytes in shared memory: 0, 32, 64 or 128."""
    lower: tuple[int, ...] = ()
    """First pixel of the im2col bounding box along each image dimension, relative to the image's
    first pixel. Empty: tile mode.

    The dimensions of an im2col map are channels, 1 to 3 of an image, and images. Its ``box`` is
    (channels per pixel, pixels per column), and ``element_strides`` are the steps from pixel to
    pixel. A column runs through the bounding boxes of successive images.
    """
    upper: tuple[int, ...] = ()
    """End of the bounding box along each image dimension, relative to the image's last pixel."""

    @property
    def im2col(self) -> bool:
        """Whether the map is an im2col map, not a tiled one."""
        return bool(self.lower)

    def __post_init__(self) -> None:
        rank = len(self.dims)
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * rank)
        boxed = len(self.box) if not self.im2col else rank + len(self.box) - 2
        lengths = [len(self.strides) + 1, boxed, len(self.element_strides)]
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
        most = (256, 1024) if self.im2col else (256,) * rank
        fits = all(1 <= n <= m for n, m in zip(self.box, most, strict=True))
        self._check(fits, f"box {self.box}", f"1 to {most}")
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
        if self.im2col:
            self._check_bounds(rank)

    def _check_bounds(self, rank: int) -> None:
        """Raises SpecError for a bounding box outside the limits of an im2col map."""
        self._check(rank in _CORNER_BITS, f"{rank} dimensions in im2col mode", "3 to 5")
        counts = len(self.lower), len(self.upper)
        self._check(counts == (rank - 2,) * 2, f"corners of {counts} numbers", f"{rank - 2} each")
        half = 1 << _CORNER_BITS[rank] - 1
        corners = (*self.lower, *self.upper)
        self._check(
            all(-half <= c < half for c in corners), f"corners {corners}", f"{-half} to {half - 1}"
        )
        self._check(
            all(n > 0 for n in self._spans), f"a bounding box of {self._spans} pixels", "1 or more"
        )
        ends = self.element_strides[0], self.element_strides[-1]
        self._check(ends == (1, 1), f"steps {ends} of channels and images", "1 of both")

    @staticmethod
    def _check(holds: bool, got: str, takes: str) -> None:
        if not holds:
            raise SpecError(f"tensor map: got {got}; takes {takes}")

    # -- as bytes ---------------------------------------------------------------------
    def encode(self) -> bytes:
        """Encodes the map as the 128 bytes that kernels of the CPU device receive; a private
        format.
        """
        rank = len(self.dims)

        def padded(values: Sequence[int], count: int = _MAX_RANK) -> list[int]:
            return [*values, *([0] * (count - len(values)))]

        packed = _FIELDS.pack(
            MAGIC,
            self.address,
            self.itemsize,
            rank,
            self.swizzle,
            len(self.lower),
            *padded([n - 1 for n in self.dims]),
            *padded(self.strides, _MAX_RANK - 1),
            *padded(self.box),
            *padded(self.element_strides),
            *padded(self.lower, 3),
            *padded(self.upper, 3),
        )
        return packed.ljust(NBYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> TensorMap:
        """Decodes a map from the bytes of :meth:`encode`; raises SpecError if ``data`` is none."""
        if len(data) != NBYTES or not data.startswith(MAGIC):
            raise SpecError(
                f"got {len(data)} bytes that start with {bytes(data[:8])!r}; a tensor map of the "
                f"CPU device has {NBYTES} and starts with {MAGIC!r}"
            )
        _, address, itemsize, rank, width, corners, *rest = _FIELDS.unpack_from(data)
        dims, strides, box, element_strides = rest[:5], rest[5:9], rest[9:14], rest[14:19]
        if not 1 <= rank <= _MAX_RANK:
            raise SpecError(f"tensor map: got {rank} dimensions; takes 1 to 5")
        return cls(
            address,
            itemsize,
            tuple(n + 1 for n in dims[:rank]),
            tuple(strides[: rank - 1]),
            tuple(box[: 2 if corners else rank]),
            tuple(element_strides[:rank]),
            width,
            tuple(rest[19 : 19 + corners]),
            tuple(rest[22 : 22 + corners]),
        )

    # -- boxes ------------------------------------------------------------------------
    @cached_property
    def _steps(self) -> tuple[int, ...]:
        return (1, *self.element_strides[1:])

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Elements of a box in shared memory along each dimension, innermost first."""
        if self.im2col:
            return self.box
        return tuple(-(-n // s) for n, s in zip(self.box, self._steps, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes of a box in shared memory; an mbarrier counts them all, zero-filled ones too."""
        return math.prod(self.shape) * self.itemsize

    @property
    def alignment(self) -> int:
        """Alignment in bytes of a box's shared address."""
        return 128

    @property
    def _spans(self) -> tuple[int, ...]:
        """Pixels of the im2col bounding box along each image dimension."""
        sides = zip(self.dims[1:-1], self.lower, self.upper, strict=True)
        return tuple(size + high - low for size, low, high in sides)

    def column_addresses(
        self, coordinates: Sequence[int], offsets: Sequence[int]
    ) -> tuple[I64, NDArray[np.bool_]]:
        """Returns the global addresses of an im2col column, and the mask of those in the tensor.

        The column starts at the pixel ``coordinates``, in the bounding box; each element is read
        ``offsets`` pixels further. The order is that of :meth:`global_addresses`.
        """
        channel, *first, image = coordinates
        steps, spans = self.element_strides[1:-1], self._spans
        most = (1 << _CORNER_BITS[len(self.dims)]) - 1
        if not all(0 <= offset <= most for offset in offsets):
            raise SpecError(f"im2col offsets {[*offsets]}; takes 0 to {most}")
        for at, low, span, step in zip(first, self.lower, spans, steps, strict=True):
            if not 0 <= at - low < span or (at - low) % step:
                raise SpecError(
                    f"a column begins at {first}; takes pixels of the bounding box from "
                    f"{[*self.lower]} on, of {[*spans]}, every {[*steps]}"
                )
        if not 0 <= image < self.dims[-1]:
            raise SpecError(f"a column begins in image {image} of {self.dims[-1]}")
        counts = [-(-span // step) for span, step in zip(spans, steps, strict=True)]
        own = zip(first, self.lower, steps, strict=True)
        index = np.ravel_multi_index(
            (image, *reversed([(at - low) // step for at, low, step in own])),
            (self.dims[-1] + self.box[1], *reversed(counts)),
        )
        images, *back = np.unravel_index(
            int(index) + np.arange(self.box[1], dtype=np.int64),
            (self.dims[-1] + self.box[1], *reversed(counts)),
        )
        channels = channel + np.arange(self.box[0], dtype=np.int64)
        address = self.address + images * self.strides[-1]
        inside = images < self.dims[-1]
        for i, count in enumerate(reversed(back)):
            place = self.lower[i] + count * steps[i] + offsets[i]
            address = address + place * self.strides[i]
            inside = inside & (place >= 0) & (place < self.dims[i + 1])
        within = (channels >= 0) & (channels < self.dims[0])
        return (
            (address[:, None] + channels * self.itemsize).reshape(-1),
            (inside[:, None] & within).reshape(-1),
        )

    def global_addresses(self, coordinates: Sequence[int]) -> tuple[I64, NDArray[np.bool_]]:
        """Returns the global addresses of a box's elements, and the mask of those in the tensor.

        ``coordinates`` (signed, innermost first) are those of the box's first element. Both results
        are flat, the innermost dimension fastest, like the box in shared memory. Addresses of
        elements outside the tensor are meaningless.
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
        """Returns the shared addresses of a box's elements, innermost dimension fastest.

        The box at ``start`` is dense, with its 16-byte chunks swizzled by their addresses.
        """
        offsets = np.arange(math.prod(self.shape), dtype=np.int64) * self.itemsize
        return swizzle(start + offsets, self.swizzle)
