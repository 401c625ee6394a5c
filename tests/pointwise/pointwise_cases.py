"""Arrays as pointwise kernels meet them: layouts of two operands and a result, on any device."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from bits import NUMPY, same_bits
from numpy.lib.stride_tricks import as_strided
from steps import Arrays

import ptxgen
from ptxgen import functions as f
from ptxgen.autograd import operation
from ptxgen.program.launch import serving
from ptxgen.tiles import SPECS, TABLES

BYTES = {
    "u8": np.dtype("u1"),
    "i8": np.dtype("i1"),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
"""Dtypes of 8 bits, which casts and copies take, by short name."""
WHOLE = {"i32": np.dtype("i4"), "i64": np.dtype("i8")}
KINDS = {**NUMPY, **WHOLE, "bool": np.dtype("?"), **BYTES}
PARTS = {"c64": "f32", "c128": "f64"}
"""Kind of the parts of complex numbers, by short dtype."""


@dataclass(frozen=True)
class Lie:
    """Layout of an array: shape, strides and first element, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        """Number of elements up to the end of the last one."""
        reach = sum((n - 1) * max(s, 0) for n, s in zip(self.shape, self.strides, strict=True))
        return self.offset + reach + 1


def rows(*shape: int, pitch: int = 0, offset: int = 0) -> Lie:
    """Returns a row-major layout, with rows of ``pitch`` elements."""
    strides, step = [], 1
    for i, size in enumerate(reversed(shape)):
        strides.append(step)
        step = max(pitch, size) if i == 0 else step * size
    return Lie(shape, tuple(reversed(strides)), offset)


LAYOUTS: dict[str, tuple[tuple[Lie, Lie, Lie], str]] = {
    "one element": ((rows(1), Lie((), ()), rows(1)), "flat"),
    "flat": ((rows(16, 64), rows(16, 64), rows(16, 64)), "flat"),
    "flat, a tail": ((rows(1003), rows(1003), rows(1003)), "flat"),
    "flat, a number for all": ((rows(1027), Lie((), ()), rows(1027)), "flat"),
    "one off 16 bytes": ((rows(1003, offset=1), rows(1003), rows(1003)), "flat"),
    "rows, every third": ((Lie((9, 24), (130, 3)), rows(24), rows(9, 24)), "rows"),
    "off 16 bytes": ((rows(999, offset=1), rows(999), rows(999, offset=3)), "any"),
    "a bias": ((rows(7, 64), rows(64), rows(7, 64)), "rows"),
    "a number a row": ((rows(7, 64), Lie((7, 1), (1, 1)), rows(7, 64)), "rows"),
    "pitched": ((rows(5, 64, pitch=80), rows(5, 64), rows(5, 64, pitch=96)), "rows"),
    "odd rows": ((rows(5, 61), rows(61), rows(5, 61)), "any"),
    "both turned": ((Lie((48, 32), (1, 48)), Lie((48, 32), (1, 48)), rows(48, 32)), "blocks"),
    "one turned": ((Lie((48, 32), (1, 48)), rows(48, 32), rows(48, 32)), "blocks"),
    "turned, a bias": ((Lie((80, 16), (1, 80)), rows(16), rows(80, 16)), "blocks"),
    "turned, a column": ((Lie((80, 16), (1, 80)), Lie((80, 1), (1, 1)), rows(80, 16)), "blocks"),
    "all turned": ((Lie((48, 32), (1, 48)),) * 3, "flat"),
    "heads": ((Lie((2, 3, 16, 32), (1536, 32, 96, 1)), rows(16, 1), rows(2, 3, 16, 32)), "rows"),
    "heads, turned": (
        (Lie((2, 3, 16, 32), (1536, 512, 1, 16)), rows(3, 1, 32), rows(2, 3, 16, 32)),
        "blocks",
    ),
    "turned, odd": ((Lie((3, 9, 96), (864, 1, 9)), rows(96), rows(3, 9, 96)), "rows"),
    "turned, odd, short": ((Lie((3, 9, 24), (216, 1, 9)), rows(24), rows(3, 9, 24)), "rows"),
    "every third": ((Lie((9, 21), (130, 3)), rows(9, 21), rows(9, 21)), "any"),
    "backwards": ((Lie((9, 24), (-24, 1), 192), rows(9, 24), rows(9, 24)), "rows"),
    "backwards along rows": (
        (rows(9, 24), Lie((24,), (-1,), 23), Lie((9, 24), (-24, -1), 215)),
        "any",
    ),
    "backwards, turned": ((Lie((48, 32), (1, -48), 1488), rows(48, 32), rows(48, 32)), "blocks"),
    "five": (
        (Lie((3, 2, 5, 4, 3), (1, 3, 240, 48, 6)), rows(5, 1, 3), rows(3, 2, 5, 4, 3)),
        "any",
    ),
}
"""Two operands and the result, and the way of the kernel that serves them."""


def drawn(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of all sizes, with every special one among them."""
    if kind == "bool":
        return rng.integers(0, 2, count).astype(np.bool_)
    if kind in PARTS:
        return drawn(PARTS[kind], 2 * count, rng).view(f"c{2 * KINDS[PARTS[kind]].itemsize}")
    if kind in BYTES:  # all codes
        return rng.integers(0, 256, count, np.uint8).view(KINDS[kind])
    if kind in WHOLE:
        limits = np.iinfo(KINDS[kind])
        found = rng.integers(limits.min, limits.max, count, KINDS[kind], endpoint=True)
        found[rng.random(count) < 0.3] >>= 24 if kind == "i32" else 56
        return found
    found = rng.standard_normal(count) * 2.0 ** rng.integers(-20, 20, count)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -3e-39, 6e-8, 65504.0, 1.0])
    picked = rng.random(count) < 0.2
    found[picked] = rng.choice(special, int(picked.sum()))
    with np.errstate(over="ignore"):
        return found.astype(KINDS[kind])


def strided(lie: Lie, base: np.ndarray) -> np.ndarray:
    """Returns a view of ``base`` with this layout."""
    steps = tuple(s * base.itemsize for s in lie.strides)
    bits = base[lie.offset :].view(f"u{base.itemsize}")  # as_strided refuses float8_e5m2
    return as_strided(bits, lie.shape, steps).view(base.dtype)


def computed(device, function, lies, bases, outs, kernel=None):
    """Computes on memory of ``device``, where no array is packed; copies results into ``outs``.
    ``bases``: the memory of each operand (or a number), then of each result, which may be an
    operand's.
    """
    held, given, memory, places, seen = Arrays(function.name), list(bases), {}, {}, {}
    for i, (lie, base) in enumerate(zip(lies, bases, strict=True)):
        if not isinstance(base, np.ndarray):
            continue
        if id(base) not in places:  # results may lie where an operand does
            places[id(base)] = device.alloc(base.nbytes)
            device.copy_in(places[id(base)], base.ctypes.data, base.nbytes)
        at = places[id(base)]
        pointer = at + lie.offset * base.itemsize
        if (id(base), lie) not in seen:  # the same array is one buffer
            found = held.at(f"a{i}", pointer, lie.shape, lie.strides, base.dtype.name, True)
            seen[id(base), lie] = found
        given[i] = seen[id(base), lie]
        memory[i] = at
    count = len(outs)
    inputs, targets = given[: len(lies) - count], tuple(given[len(lies) - count :])
    out = targets[0] if count == 1 else targets
    program = held.builder.finish(function.lower(held.builder, *inputs, out=out))
    if kernel in TABLES["pointwise",].named:  # as it is made for this problem
        kernel = TABLES["pointwise",].named[kernel].of(program.steps[0].problem.dtype).name
    held.fire(program, device, kernel)
    for i, out in enumerate(outs):
        at = memory[len(lies) - count + i]
        device.copy_out(out.ctypes.data, at, out.nbytes)
    device.synchronize()
    for at in places.values():
        device.free(at)
    return program.steps[0].problem


BYTE_LAYOUTS = (
    *("flat, a tail", "one off 16 bytes", "off 16 bytes", "pitched", "one turned", "heads, turned"),
    *("turned, odd", "backwards along rows", "five"),
)
"""Keys of :data:`LAYOUTS` that together are served by every kernel in every way."""


def check_bytes(device, layout: str) -> set[str]:
    """Checks a copy and a cast of arrays of bytes, laid out so, by every kernel that serves them:
    the copy moves every bit, and nothing else is written. Returns the ways of these kernels.
    """
    ways = set()
    lies = [LAYOUTS[layout][0][i] for i in (0, 2)]
    rng = np.random.default_rng(11)
    for function, kind, to in ((f.copy, "e5m2", "e5m2"), (operation("cast_e4m3"), "f32", "e4m3")):
        bases = [drawn(k, lie.size + 5, rng) for k, lie in zip((kind, to), lies, strict=True)]
        x, wanted = strided(lies[0], bases[0]), bases[1].copy()
        found = x if kind == to else function.reference(x, out_dtype=to)
        strided(lies[1], wanted.view("u1"))[...] = found.view("u1")
        out = np.empty_like(bases[1])
        names: list[str | None] = [None]
        for name in names:
            out.view("u1")[...] = 0
            problem = computed(device, function, lies, bases, (out,), name)
            np.testing.assert_array_equal(out.view("u1"), wanted.view("u1"), f"{layout} {name}")
            if name is None:
                routes = serving(problem, device.sms)
                names += [route.name for route in routes[1:]]
                ways |= {route.main.indexing for route in routes}
    return ways


# -- the kernels of the table ---------------------------------------------------------------------
@ptxgen.pointwise
def representative(x, y, s):
    return f.fma(x, s, y)


@ptxgen.pointwise
def scaled(x, by):
    return x * by


_UNEVEN = Lie((2, 5, 7), (300, 40, 3)), Lie((2, 5, 1), (9, 1, 1)), Lie((2, 5, 7), (160, 24, 2))
REPRESENTED = {
    "factor": (rows(1003), Lie((), ()), rows(1003)),
    "flat": (rows(1003),) * 3,
    "rows": (rows(7, 64), Lie((7, 64), (200, 3)), rows(7, 64)),
    "blocks": (Lie((2, 48, 32), (1536, 1, 48)), Lie((2, 48, 1), (60, 1, 1)), rows(2, 48, 32)),
    "any": _UNEVEN,
    "wide": _UNEVEN,
}
"""Arrays of the form that a kernel has in the table, by its way."""


def turned(rows_: int, columns: int) -> tuple[Lie, Lie, Lie]:
    """An array that lies along its first dimension, and a column, which only blocks serve."""
    column = Lie((rows_, 1), (1, 1))
    return Lie((rows_, columns), (1, rows_)), column, rows(rows_, columns)


def representatives(name: str):
    """The one problem that a kernel of the table is run on; others are in test_pointwise.py."""
    return [checked(name, REPRESENTED[SPECS[name].indexing])]


def checked(name: str, lies: tuple[Lie, Lie, Lie]):
    """Returns a check that runs the route of the table's kernel ``name`` on arrays laid out so."""

    def check(device) -> None:
        product = SPECS[name].indexing == "factor"
        function, numbers = (scaled, ()) if product else (representative, (-0.7,))
        kinds = "bf16", "f32" if product else "bf16", "bf16"
        rng = np.random.default_rng(7)
        bases = [drawn(kind, lie.size + 5, rng) for kind, lie in zip(kinds, lies, strict=True)]
        x, y = (strided(lie, base) for lie, base in zip(lies[:2], bases[:2], strict=True))
        if product:
            bases[2] = bases[0]
        wanted = bases[2].copy()
        strided(lies[2], wanted)[...] = function.reference(x, y, *numbers, out_dtype="bf16")
        out = np.empty_like(bases[2])
        places = (*lies[:2], *(None for _ in numbers), lies[2])
        computed(device, function, places, (*bases[:2], *numbers, bases[2]), (out,), name)
        same_bits(out, wanted, seed=7, spec=name)

    return check
