"""Kernels of discrete Fourier transforms, contract ``fft/1``.

A kernel transforms one part of one length (:class:`Form`), for any number of transforms, of which a
CTA has a tile. Complex numbers are pairs of reals. The factorisation is compiled into the kernel,
with the roots of unity that it needs.

=================  ==============================================================
``CTAS``           tiles of transforms
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

A transform is named by p < N0, m < N1 and a third number o. Element j of its input is at index
``i = j * XS + p * X0 + m * X1`` of an array whose element i is at ``i * XE + p * XB + o * XO``;
strides count complex numbers of "pairs", else reals; ``XI`` is the distance of an imaginary part.
Elements at indices of NX and more count as zeros. Results have the same parameters with Y, and
indices of NY and more are not stored. Kernels of rows take S and E as 1. ``WHOLE`` is the length of
the whole transform, whose half the input may be, and of which each element has a weight; without
weights and chirps, all indices are below it. ``FLAGS`` has the bits below, and each result is
multiplied by ``SCALE``.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

from ptxgen.expr import TRUE, Expr, var
from ptxgen.numerics import fft
from ptxgen.numerics.contract import ITEMSIZE, Contract
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, KernelSpec
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

CTAS = var("CTAS")
SPACE = Space("transforms", (("CTAS", SIZE), ("SMS", Between(1, SMS_MAX))))
SWAP_INPUT, SWAP_SPECTRUM, SWAP_RESULT = 1, 2, 4
"""Bits of ``flags``: real and imaginary parts are exchanged as they are loaded; before results are
multiplied by weights; after that."""
SOURCES = ("pairs", "split", "real", "half")
"""Forms of the input: pairs of reals; real and imaginary parts apart; real parts alone; pairs of
half a spectrum, whose other half follows."""
SINKS = ("pairs", "split", "real")

TILE_BYTES = 1 << 16
"""Most bytes of a tile of transforms in shared memory, before padding."""
THREADS_MOST = 512
THREADS_LONG = 1024
"""Most threads of a CTA whose transform exchanges real and imaginary parts in turns, unless it is
one by chirps, which needs more registers (H200, n = 4099: 496 µs with 384 threads, 539 with 768).
"""
ELEMENTS_LONG = 20
"""Elements that such a thread has at least: with fewer, an SM has no room for a second CTA."""
ROW_BYTES = 1 << 14
"""Bytes that a CTA transforms if rows are shorter than this."""
ROWS_MOST = 256
REGISTERS = {"f32": 64, "f64": 128}
"""Registers of a thread, by dtype: enough for two butterflies of radix 16."""
REGISTERS_LEAST = 20
"""Registers of a thread besides those of its elements."""
SEGMENT = 128
"""Bytes of neighbouring transforms that are loaded together where elements are strided."""
SECTOR = 32
"""Bytes of global memory that are loaded at least."""
LEVEL_BYTES = 1 << 13
"""Most bytes of a table of twiddles in shared memory."""
SCHEDULERS = 4
"""Partitions of an SM, each of which has a quarter of the registers."""
BANKS = 128
"""Bytes that one access of shared memory moves: 32 banks of 4."""


@dataclass(frozen=True)
class Form:
    """Variant of a kernel. ``n``: length of the part that it transforms; ``source``, ``sink``: see
    :data:`SOURCES`. ``rows_in``, ``rows_out``: whether the elements of a transform are neighbours
    in memory, or those of the next transform. ``twist``: the order of the roots of unity by which
    results of a part are multiplied, 0: none. ``chirp``: the length of the transform that the
    kernel computes by a convolution of length n with chirps, 0: none. ``weigh_in``, ``weigh_out``:
    whether elements, results are multiplied by an array of complex weights.
    """

    dtype: str
    n: int
    source: str = "pairs"
    sink: str = "pairs"
    rows_in: bool = True
    rows_out: bool = True
    twist: int = 0
    chirp: int = 0
    weigh_in: bool = False
    weigh_out: bool = False

    def __str__(self) -> str:
        sides = (
            f"{kind}{'' if rows else '_apart'}{'_weighed' if weighed else ''}"
            for kind, rows, weighed in (
                (self.source, self.rows_in, self.weigh_in),
                (self.sink, self.rows_out, self.weigh_out),
            )
        )
        more = f"_chirp{self.chirp}" if self.chirp else f"_twist{self.twist}" if self.twist else ""
        return f"{self.dtype}_{self.n}{more}_{'_'.join(sides)}"

    @property
    def pair_bytes(self) -> int:
        """Bytes of a complex number."""
        return 2 * ITEMSIZE[self.dtype]

    @property
    def tile(self) -> int:
        """Transforms that a CTA computes."""
        room = TILE_BYTES // (self.n * self.pair_bytes)
        if self.rows_in and self.rows_out:
            return max(min(ROW_BYTES // (self.n * self.pair_bytes), ROWS_MOST), 1)
        most = min(room, SEGMENT // self.pair_bytes)
        return 1 << (max(most, 1).bit_length() - 1)


@dataclass(frozen=True)
class FftSpec(KernelSpec):
    """A kernel that transforms tiles of rows or columns (:class:`Form`, whose fields it has)."""

    n: int
    source: str = "pairs"
    sink: str = "pairs"
    rows_in: bool = True
    rows_out: bool = True
    twist: int = 0
    chirp: int = 0
    weigh_in: bool = False
    weigh_out: bool = False
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = fft.FFT

    family: ClassVar[str] = "fft"
    template: ClassVar[str] = "fft/fft.cu.j2"
    legible: ClassVar[bool] = False
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "n": "length of the part that the kernel transforms, or of its convolution",
        "source": "input: pairs, split parts, real parts alone or half a spectrum",
        "sink": "results: pairs, split parts or real parts alone",
        "rows_in": "whether a transform's elements are neighbours, or those of the next transform",
        "rows_out": "whether a transform's results are neighbours, or those of the next one",
        "twist": "order of the roots of unity that results are multiplied by (0: none)",
        "chirp": "length of the transform that is a convolution with chirps (0: none)",
        "weigh_in": "whether elements are multiplied by weights in memory",
        "weigh_out": "whether results are multiplied by weights in memory",
    }

    def __post_init__(self) -> None:
        self.check_choices(
            dtype=tuple(fft.WHOLE), source=SOURCES, sink=SINKS, min_arch=ARCHITECTURES
        )
        self.check_counts("n")
        self.check_resources(self.held + REGISTERS_LEAST, "complex numbers of a butterfly", 1)

    @classmethod
    def made(cls, form: Form) -> Self:
        """Returns the kernel of a form."""
        return cls(**asdict(form))

    def of(self, dtype: Hashable) -> Self:
        if isinstance(dtype, Form):
            return cast(Self, replace(cast(Any, self), **asdict(dtype)))
        return super().of(dtype)

    @property
    def form(self) -> Form:
        """Variant that the kernel is compiled for, made of its own fields."""
        names = Form.__dataclass_fields__
        return Form(**{name: getattr(self, name) for name in names})

    @property
    def label(self) -> str:
        return str(self.form)

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """Radices of the passes, in order."""
        return fft.passes(self.n)

    @cached_property
    def tile(self) -> int:
        """Transforms of a CTA."""
        return self.form.tile

    @cached_property
    def threads(self) -> int:
        if not self.halves:
            return min(-(-self.tile * self.n // (self.radices[0] * WARP)) * WARP, THREADS_MOST)
        found, arch = [], ARCHITECTURES[self.min_arch]
        most = THREADS_MOST if self.chirp else THREADS_LONG
        for threads in range(WARP, most + 1, WARP):
            held = self._held(threads)
            room = min(arch.registers_per_sm // threads, arch.registers_per_thread)
            if held + REGISTERS_LEAST <= room:
                found.append((max(held, ELEMENTS_LONG * self.form.pair_bytes // 4), threads))
        return min(found, default=(0, most))[1]

    @property
    def held(self) -> int:
        """Registers for the elements that a thread has at a time."""
        return self._held(self.threads)

    def _held(self, threads: int) -> int:
        most = max(-(-self.tile * self.n // (r * threads)) * r for r in self.radices)
        return most * self.form.pair_bytes // 4

    @property
    def halves(self) -> bool:
        """Whether a transform is too long for shared memory, which then has the real parts of all
        elements and after these the imaginary parts.
        """
        return self.n * self.form.pair_bytes > TILE_BYTES

    @property
    def planes(self) -> tuple[str, ...]:
        """Parts of elements that are exchanged in turns, as C++ suffixes."""
        return (".x", ".y") if self.halves else ("",)

    @property
    def shared_element(self) -> str:
        """C++ type of an element of shared memory."""
        return "T" if self.halves else "V"

    @property
    def unit_bytes(self) -> int:
        """Bytes of an element of shared memory."""
        return self.form.pair_bytes // len(self.planes)

    @property
    def staged(self) -> bool:
        """Whether rows are copied to shared memory first, and results from there, since a thread's
        butterfly, or that of a few, is a whole row: these would access less than a sector each.
        """
        few = self.n // max(self.radices[0], self.radices[-1]) * self.form.pair_bytes < SECTOR
        return self.rows_in and self.rows_out and few and self.n > 1 and not self.chirp

    @property
    def exchanges(self) -> bool:
        """Whether threads exchange elements through shared memory."""
        return len(self.radices) > 1 or bool(self.chirp) or self.staged

    @property
    def gap(self) -> int:
        """Elements of a transform, or of a tile that is staged, after which shared memory has a gap
        of one, 0: no gaps. Results of a butterfly of the first pass are neighbours, so lanes have
        strides of a radix, which must be odd to reach different banks.
        """
        if self.staged:
            return BANKS // self.unit_bytes if self.n % 4 == 0 else 0
        return self.radices[0] if self.radices[0] % 2 == 0 else 0

    @property
    def padded(self) -> int:
        """Elements of a transform in shared memory, with gaps."""
        return self.n + (self.n // self.gap if self.gap else 0)

    @property
    def by_rows(self) -> bool:
        """Whether shared memory holds one transform after the other, or element after element."""
        return self.rows_in or self.rows_out

    @property
    def pitch(self) -> int:
        """Complex numbers of shared memory from transform to transform, or from element to
        element. Where rows become columns, neighbouring transforms begin in other banks.
        """
        if not self.by_rows:
            return self.tile
        if self.rows_in == self.rows_out:
            return self.padded
        period = BANKS // self.unit_bytes
        return self.padded + (period // self.tile - self.padded) % period

    @property
    def level_bytes(self) -> int:
        """Bytes of shared memory for the second table of twiddles (:func:`fft.levels`); 0 if it is
        read from global memory.
        """
        size = self.form.pair_bytes << fft.low_bits(self.twist)
        return size if self.twist and self.exchanges and size <= LEVEL_BYTES else 0

    @property
    def shared_bytes(self) -> int:
        if not self.exchanges:
            return 0
        count = (self.tile if self.by_rows else self.padded) * self.pitch
        if self.staged:
            count = self.tile * self.n + (self.tile * self.n // self.gap if self.gap else 0)
        return count * self.unit_bytes + self.level_bytes

    @property
    def resident(self) -> int:
        """Resident CTAs per SM, the second argument of ``__launch_bounds__``."""
        arch, wanted = ARCHITECTURES["sm_90"], REGISTERS[self.dtype]
        if 2 * self.held > wanted and not (self.halves and self.held <= 2 * ELEMENTS_LONG):
            wanted = min(self.held * 3 // 2 + REGISTERS_LEAST, arch.registers_per_thread)
        if self.chirp:
            wanted *= 2
        warps = SCHEDULERS * (arch.registers_per_sm // (SCHEDULERS * WARP * wanted))
        fit = arch.shared_per_sm // (self.shared_bytes + 1024)
        return max(min(warps * WARP // self.threads, fit), 1)

    @property
    def element(self) -> str:
        """C++ type of a real number."""
        return cuda.CTYPES[self.dtype]

    def butterfly(self, radix: int) -> Iterator[str]:
        """Yields the C++ statements that transform ``v[0]``, ... ``v[radix - 1]`` in place."""
        code = _Code(self.dtype)
        results = fft.dft([(f"v[{q}].x", f"v[{q}].y") for q in range(radix)], code)
        yield from code.lines
        if radix > 1:
            for q, (re, im) in enumerate(results):
                yield f"v[{q}].x = {re}, v[{q}].y = {im};"

    def twiddles(self) -> Iterator[tuple[int, int, int, int]]:
        """Yields, for each pass, its index, its radix, the product of the radices before it and
        the number of elements in its table of roots of unity.
        """
        length = 1
        for at, radix in enumerate(self.radices):
            yield at, radix, length, (radix - 1) * length if length > 1 else 0
            length *= radix

    def table(self, index: int) -> str:
        """Returns the roots of unity of pass ``index``, as the initialiser of an array."""
        length, radix = prod(self.radices[:index]), self.radices[index]
        w, step = fft.roots(self.n), self.n // (length * radix)
        return self._bits(w[lane * q * step] for q in range(1, radix) for lane in range(length))

    def chirps(self) -> str:
        """Returns the chirps, as the initialiser of an array."""
        return self._bits(fft.chirp(self.chirp))

    def spectrum(self) -> str:
        """Returns the spectrum of the chirps, as the initialiser of an array."""
        return self._bits(fft.chirp_spectrum(self.chirp))

    def _bits(self, numbers: Iterable[Sequence[float]]) -> str:
        return bits((v for pair in numbers for v in pair), self.dtype)

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"kernels": sys.modules[__name__], "fft": fft, "bits": bits})

    @property
    def waits(self) -> bool:
        return True

    @property
    def abi(self) -> Abi:
        def weights(name: str, there: bool) -> tuple[Param, ...]:
            return (ptr(name, f"const {self.element}* __restrict__"),) if there else ()

        pointers = (
            ptr("x", f"const {self.element}* __restrict__"),
            *weights("wx", self.weigh_in),
            *weights("wy", self.weigh_out),
            ptr("y", f"{self.element}*"),
        )
        strides = (Param(f"{side}{name}", "i64") for side in "xy" for name in "ebio")
        places = (Param(f"{side}{name}", "u32") for side in "xy" for name in "s01")
        counts = (Param(name, "u32") for name in ("nx", "ny", "n0", "n1", "whole", "flags"))
        return Abi((*pointers, *strides, *places, *counts, Param("scale", self.dtype)))

    @property
    def grid(self) -> Expr:
        return CTAS

    @property
    def requires(self) -> Expr:
        return TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("blockIdx.x", CTAS, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return self.described(
            f"{self.source} to {self.sink}; n = {' * '.join(map(str, self.radices))}",
            f"{self.tile} transforms, {self.sizes}",
        )


class _Code:
    """Arithmetic that writes C++ statements; values are expressions without side effects."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.lines = dtype, list[str]()
        self._type = cuda.CTYPES[dtype]

    def _made(self, name: str, *args: Any) -> str:
        f = {"fma": "fmaf"}.get(name, f"f{name}") if self.dtype == "f32" else f"d{name}"
        f = "fma" if f == "dfma" else f
        found = f"t{len(self.lines)}"
        called = f"__{f}_rn({', '.join(map(self._shown, args))})"
        self.lines.append(f"const {self._type} {found} = {called};")
        return found

    def _shown(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        digits, suffix = ("%.9g", "f") if self.dtype == "f32" else ("%.17g", "")
        text = digits % fft.rounded(value, self.dtype)
        return (text if "." in text or "e" in text else f"{text}.0") + suffix

    def add(self, a: Any, b: Any) -> str:
        return self._made("add", a, b)

    def sub(self, a: Any, b: Any) -> str:
        return self._made("sub", a, b)

    def mul(self, a: Any, b: Any) -> str:
        return self._made("mul", a, b)

    def neg(self, a: Any) -> str:
        return a[1:] if a.startswith("-") else f"-{a}"

    def fma(self, a: Any, b: Any, c: Any) -> str:
        return self._made("fma", a, b, c)


def bits(numbers: Iterable[float], dtype: str) -> str:
    """Returns numbers, rounded to ``dtype``, as the bits of unsigned integers, for C++."""
    real, whole, suffix = ("<f", "<I", "u") if dtype == "f32" else ("<d", "<Q", "ull")
    rows = (struct.unpack(whole, struct.pack(real, v))[0] for v in numbers)
    return ",".join(f"{v:#x}{suffix}" for v in rows)


@dataclass(frozen=True)
class ChirpForm:
    """Variant of a kernel that computes the chirps of transforms of length ``n``."""

    dtype: str
    n: int


@dataclass(frozen=True)
class ChirpSpec(KernelSpec):
    """A kernel that writes the chirps ``c`` [n] of a transform of length ``n``, and ``d`` [M], the
    sequence whose spectrum is the contract's B.
    """

    n: int
    dtype: str = "f32"
    min_arch: str = "sm_80"
    contract: Contract = fft.FFT

    family: ClassVar[str] = "fft_chirp"
    template: ClassVar[str] = "fft/chirp.cu.j2"
    legible: ClassVar[bool] = False
    threads: ClassVar[int] = 256
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {**KernelSpec.meanings, "n": "length of the transform"}

    def __post_init__(self) -> None:
        self.check_choices(dtype=tuple(fft.WHOLE), min_arch=ARCHITECTURES)
        self.check_counts("n")

    def of(self, dtype: Hashable) -> Self:
        if isinstance(dtype, ChirpForm):
            return cast(Self, replace(cast(Any, self), **asdict(dtype)))
        return super().of(dtype)

    @property
    def form(self) -> ChirpForm:
        """Variant that the kernel is compiled for, made of its own fields."""
        return ChirpForm(self.dtype, self.n)

    @property
    def label(self) -> str:
        return f"{self.dtype}_{self.n}"

    @property
    def element(self) -> str:
        """C++ type of a real number."""
        return cuda.CTYPES[self.dtype]

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"fft": fft, "bits": bits})

    @property
    def waits(self) -> bool:
        return True

    @property
    def abi(self) -> Abi:
        return Abi((ptr("c", f"{self.element}*"), ptr("d", f"{self.element}*"), Param("m", "u32")))

    @property
    def grid(self) -> Expr:
        return CTAS

    @property
    def requires(self) -> Expr:
        return TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (("blockIdx.x", CTAS, INDEX_MAX),)

    def describe(self) -> tuple[str, ...]:
        return self.described(f"chirps of n = {self.n}", self.sizes)
