"""A kernel's parameters: their offsets, their packing, and their declarations in CUDA C++.

Parameters follow CUDA's layout: one after the other, each aligned to its own size (tensor maps to
64 bytes).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ptxgen.errors import SpecError
from ptxgen.expr import Expr

MAP_BYTES = 128
"""Bytes of a ``CUtensorMap``, whose alignment is 64."""
PARAMETERS_MAX = 4096
"""Most bytes of parameters that every CUDA kernel may have."""
_KINDS = {  # kind: (size, alignment, struct format)
    "ptr": (8, 8, "Q"),
    "i64": (8, 8, "q"),
    "u64": (8, 8, "Q"),
    "u32": (4, 4, "I"),
    "f32": (4, 4, "f"),
    "f64": (8, 8, "d"),
    "map": (MAP_BYTES, 64, f"{MAP_BYTES}s"),
}
_C_TYPES = {
    "i64": "long long",
    "u64": "unsigned long long",
    "u32": "unsigned",
    "f32": "float",
    "f64": "double",
}


BOX_RANK_MAX = 5
"""Most dimensions of a tensor map."""


@dataclass(frozen=True)
class MapBox:
    """A tensor-map parameter: an array of 2 to 5 dimensions as it is stored, innermost first, and
    the box that one TMA copy moves.

    ``operand``: the pointer parameter of the array. ``size``: extent of each dimension, in
    elements. ``pitches``: strides of all dimensions but the first, in elements, as expressions.
    ``itemsize``: bytes of an element. ``box``: extent of the box along each dimension, an integer
    or an expression; missing dimensions have extent 1. ``steps``: element strides within the box
    (empty: 1). ``swizzle``: width in bytes of the pattern in shared memory (0, 32, 64 or 128).
    Elements outside the array read as zeros.

    ``corners``: im2col mode, for an array of pixels (channels, 1 to 3 dimensions of an image,
    images). The box is then channels x pixels. The pixels traverse the bounding box of each image
    with strides ``steps``. The first corner is an offset from the image's first pixel, the second
    one from its last pixel.
    """

    operand: str
    size: tuple[Expr, ...]
    pitches: tuple[Expr, ...]
    itemsize: int
    box: tuple[int | Expr, ...]
    swizzle: int = 128
    steps: tuple[int | Expr, ...] = ()
    corners: tuple[tuple[Expr, ...], tuple[Expr, ...]] | None = None

    def __post_init__(self) -> None:
        rank = len(self.size)
        fits = 2 <= rank <= BOX_RANK_MAX and len(self.pitches) == rank - 1
        if not fits or not 1 <= len(self.box) <= rank or len(self.steps) not in (0, rank):
            raise SpecError(
                f"map of {self.operand}: {rank} sizes, {len(self.pitches)} pitches, a box of "
                f"{len(self.box)} dimensions, {len(self.steps)} steps; takes 2 to {BOX_RANK_MAX} "
                "sizes, a pitch for all but the first, a box of no more, and no steps or one each"
            )


@dataclass(frozen=True)
class Param:
    """A kernel parameter: name, kind ("ptr", "i64", "u64", "u32", "f32", "f64" or "map") and, of a
    pointer or map, C++ type.

    ``box``: only of a map. ``optional``: whether the pointer may be null.
    """

    name: str
    kind: str
    ctype: str = ""
    box: MapBox | None = None
    optional: bool = False

    @property
    def writes(self) -> bool:
        """Whether the kernel writes through this pointer: its type is not const."""
        pointer = self.kind == "ptr" and self.ctype.endswith("*")
        return pointer and not self.ctype.startswith("const ")

    @property
    def declaration(self) -> str:
        """Declaration of the parameter in CUDA C++."""
        return f"{self.ctype or _C_TYPES[self.kind]} {self.name}"


def ptr(name: str, ctype: str, *, optional: bool = False) -> Param:
    """Returns a pointer parameter of C++ type ``ctype``, null if ``optional``."""
    return Param(name, "ptr", ctype, optional=optional)


@dataclass(frozen=True)
class Abi:
    """Parameter list of a kernel: pointers first, which a launch writes in one copy; then scalars;
    tensor maps last.
    """

    params: tuple[Param, ...]

    def __post_init__(self) -> None:
        names = [p.name for p in self.params]
        if len(set(names)) < len(names):
            raise SpecError(f"parameters {names}: one occurs twice")
        for p in self.params:
            if p.kind not in _KINDS or (p.kind == "map") != (p.box is not None):
                raise SpecError(f"parameter {p.name}: kind {p.kind!r} with box {p.box}")
        if tuple(p.name for p in self.pointers) != tuple(names[: len(self.pointers)]):
            raise SpecError(f"parameters {names}: pointers come first")
        if any(p.kind == "map" for p in self.params[: len(names) - len(self.maps)]):
            raise SpecError(f"parameters {names}: tensor maps come last")

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Byte offset of each parameter in the packed list, by name."""
        found, at = {}, 0
        for p in self.params:
            size, align, _ = _KINDS[p.kind]
            at = -(-at // align) * align
            found[p.name] = at
            at += size
        return found

    @cached_property
    def size(self) -> int:
        """Bytes of the packed parameter list."""
        last = self.params[-1]
        return self.offsets[last.name] + _KINDS[last.kind][0]

    @property
    def pointers(self) -> tuple[Param, ...]:
        """Pointer parameters of the kernel, in order."""
        return tuple(p for p in self.params if p.kind == "ptr")

    @property
    def maps(self) -> tuple[Param, ...]:
        """Tensor-map parameters of the kernel, in order."""
        return tuple(p for p in self.params if p.kind == "map")

    @property
    def scalars(self) -> tuple[Param, ...]:
        """Scalar parameters of the kernel, in order."""
        return tuple(p for p in self.params if p.kind not in ("ptr", "map"))

    def pack(self, values: Mapping[str, int | float]) -> bytes:
        """Returns the packed parameter list with ``values``, by name; missing pointers and all
        tensor maps are zeros.

        Raises SpecError for a scalar that is missing or does not fit.
        """
        packed = bytearray(self.size)
        for p in self.params:
            if p.kind == "map" or (p.kind == "ptr" and p.name not in values):
                continue
            try:
                value = values[p.name]
                struct.pack_into(f"<{_KINDS[p.kind][2]}", packed, self.offsets[p.name], value)
            except (KeyError, struct.error) as error:
                given = values.get(p.name, "nothing")
                raise SpecError(f"parameter {p.name} ({p.kind}) is given {given}") from error
        return bytes(packed)

    def unpack(self, packed: bytes) -> dict[str, int | float]:
        """Returns the pointers and scalars in a packed parameter list, by name."""
        return {
            p.name: struct.unpack_from(f"<{_KINDS[p.kind][2]}", packed, self.offsets[p.name])[0]
            for p in self.params
            if p.kind != "map"
        }

    @property
    def signature(self) -> str:
        """Parameter list of the kernel in CUDA C++."""
        return ",\n    ".join(p.declaration for p in self.params)
