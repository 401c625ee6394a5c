"""A case: one PTX kernel, its operands, and the types of its results; and how to write one.

Every kernel has the parameters (u64 in, u64 out, u32 n), n being the number of threads. A
thread finds its operands and leaves its results in columns: one array per operand, one element
per thread; a column starts at a multiple of 16 bytes. Results that are never written keep the
bytes that the runner filled the memory with.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.values import DTYPE, WIDTH, operands

Array = np.ndarray[Any, Any]
FILL = 0x5A
"""The byte that result memory holds before a kernel runs."""

CLASS = {
    **{name: "f32" if name == "f32" else f"b{max(bits, 16)}" for name, bits in WIDTH.items()},
    "f64": "f64",
    "pred": "pred",
}
"""The register class that holds a type."""
PREFIX = {"b16": "h", "b32": "r", "b64": "d", "f32": "f", "f64": "g", "pred": "p"}


@dataclass(frozen=True)
class Field:
    """A column of results: ``count`` values of a PTX type. Its bytes are a multiple of 16."""

    type: str
    count: int

    @property
    def nbytes(self) -> int:
        return padded(self.count * WIDTH[self.type] // 8)


@dataclass(frozen=True)
class Case:
    """A kernel to run; ``name`` is unique in the corpus."""

    family: str
    name: str
    ptx: str = field(repr=False)
    symbol: str
    outputs: tuple[Field, ...]
    grid: int
    block: int
    shared_bytes: int
    make: Callable[[], bytes] = field(repr=False, compare=False)

    @functools.cached_property
    def inputs(self) -> bytes:
        """The operand memory."""
        return self.make()

    @property
    def threads(self) -> int:
        return self.grid * self.block

    @property
    def nbytes(self) -> int:
        """The size of the result memory."""
        return sum(column.nbytes for column in self.outputs)

    @property
    def digest(self) -> str:
        """Names everything that the results depend on."""
        shape = (self.name, self.symbol, self.grid, self.block, self.shared_bytes, self.outputs)
        parts = repr(shape).encode(), self.ptx.encode(), self.inputs
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def padded(nbytes: int) -> int:
    """``nbytes``, rounded up to a multiple of 16."""
    return -(-nbytes // 16) * 16


def pack(columns: Sequence[Array]) -> bytes:
    """Columns one behind the other, each padded to a multiple of 16 bytes."""
    parts = []
    for column in columns:
        raw = np.ascontiguousarray(column).tobytes()
        parts.append(raw + bytes(-len(raw) % 16))
    return b"".join(parts)


class Kernel:
    """The text of a kernel in the making, and the layout of its memory.

    A call emits one line. Ready to use: ``%id`` (the number of the thread in the grid),
    ``%thread`` (in the CTA), ``%n``, ``%in`` and ``%out`` (global addresses).
    """

    def __init__(
        self,
        name: str,
        block: int,
        grid: int = 1,
        *,
        target: str = "sm_80",
        version: str = "8.0",
        head: str = "",
        directives: str = "",
        shared_bytes: int = 0,
    ) -> None:
        self.name, self.block, self.grid = name, block, grid
        self.threads = block * grid
        self.target, self.version, self.head, self.directives = target, version, head, directives
        self.shared_bytes = shared_bytes
        self.symbol = "case_" + re.sub(r"\W+", "_", name)
        self.lines: list[str] = []
        self.declarations: list[str] = []
        self.outputs: list[Field] = []
        self._in = self._out = 0
        self._registers: dict[str, int] = {}
        self._pointers: dict[str, str] = {}

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    def reg(self, kind: str) -> str:
        """A new register for values of a type (or of a register class)."""
        prefix = PREFIX[CLASS.get(kind, kind)]
        number = self._registers.get(prefix, 0)
        self._registers[prefix] = number + 1
        return f"%{prefix}{number}"

    def regs(self, kind: str, count: int) -> list[str]:
        """``count`` new registers."""
        return [self.reg(kind) for _ in range(count)]

    def declare(self, line: str) -> None:
        """A variable of the kernel."""
        self.declarations.append(line)

    # -- operands and results -----------------------------------------------------------
    def space(self, nbytes: int) -> int:
        """Room for ``nbytes`` of operands: its offset."""
        at, self._in = self._in, self._in + padded(nbytes)
        return at

    def room(self, kind: str, count: int) -> int:
        """Room for ``count`` results: its offset."""
        at, column = self._out, Field(kind, count)
        self.outputs.append(column)
        self._out += column.nbytes
        return at

    def pointer(self, base: str, nbytes: int) -> str:
        """A register with the address of this thread's element of ``nbytes`` bytes in a column."""
        name = f"%{base}{nbytes}"
        self._pointers[name] = f"mad.wide.u32 {name}, %id, {nbytes}, %{base};"
        return name

    def load(self, kind: str) -> str:
        """A register with this thread's next operand."""
        nbytes = WIDTH[kind] // 8
        at = self.space(self.threads * nbytes)
        where = f"[{self.pointer('in', nbytes)}+{at}]"
        if kind == "pred":
            word, register = self.reg("b32"), self.reg("pred")
            self(f"ld.global.b32 {word}, {where};")
            self(f"setp.ne.u32 {register}, {word}, 0;")
            return register
        register = self.reg(kind)
        suffix = "u8" if nbytes == 1 else CLASS[kind]
        self(f"ld.global.{suffix} {register}, {where};")
        return register

    def store(self, kind: str, register: str) -> None:
        """Keeps this thread's value of ``register`` as the next result."""
        nbytes = WIDTH[kind] // 8
        where = f"[{self.pointer('out', nbytes)}+{self.room(kind, self.threads)}]"
        if kind == "pred":
            word = self.reg("b32")
            self(f"selp.u32 {word}, 1, 0, {register};")
            register = word
        suffix = "u8" if nbytes == 1 else "b32" if kind == "pred" else CLASS[kind]
        self(f"st.global.{suffix} {where}, {register};")

    # -- the whole ------------------------------------------------------------------------
    def text(self) -> str:
        """The PTX module."""
        declared = [
            f".reg .{kind} %{prefix}<{self._registers[prefix]}>;"
            for kind, prefix in PREFIX.items()
            if prefix in self._registers
        ]
        if self._pointers:
            declared.append(f".reg .b64 {', '.join(self._pointers)};")
        body = [
            ".reg .b64 %in, %out;",
            ".reg .b32 %id, %thread, %width, %n;",
            *declared,
            *self.declarations,
            "ld.param.u64 %in, [in];",
            "ld.param.u64 %out, [out];",
            "ld.param.u32 %n, [n];",
            "cvta.to.global.u64 %in, %in;",
            "cvta.to.global.u64 %out, %out;",
            "mov.u32 %thread, %tid.x;",
            "mov.u32 %id, %ctaid.x;",
            "mov.u32 %width, %ntid.x;",
            "mad.lo.u32 %id, %id, %width, %thread;",
            *self._pointers.values(),
            *self.lines,
            "ret;",
        ]
        return (
            f".version {self.version}\n.target {self.target}\n.address_size 64\n{self.head}\n"
            f".visible .entry {self.symbol}(.param .u64 in, .param .u64 out, .param .u32 n)\n"
            + (self.directives + "\n" if self.directives else "")
            + "{\n"
            + "".join(f"    {line}\n" for line in body)
            + "}\n"
        )

    def case(self, family: str, columns: Callable[[], Sequence[Array]]) -> Case:
        """The case; ``columns`` makes the operands, one array for each load or space."""
        expected = self._in

        def make() -> bytes:
            raw = pack(columns())
            assert len(raw) == expected, f"{self.name}: {len(raw)} bytes for {expected}"
            return raw or bytes(16)

        return Case(
            family,
            self.name,
            self.text(),
            self.symbol,
            tuple(self.outputs),
            self.grid,
            self.block,
            self.shared_bytes,
            make,
        )


def elementwise(
    family: str,
    name: str,
    kinds: tuple[str, ...],
    results: tuple[str, ...],
    body: str,
    *,
    lanes: int = 512,
    temps: tuple[str, ...] = (),
    columns: Callable[[], Sequence[Array]] | None = None,
    **options: Any,
) -> Case:
    """A case whose threads each do ``body`` on their own operands.

    The body names its operands {a0}, {a1} …, its results {d0}, {d1} …, and {t0} … of the types
    ``temps``. A kind of operand is a type, or "type:flavour" as in ``values.operands``.
    """
    block = min(lanes, 128)
    kernel = Kernel(name, block, lanes // block, **options)
    registers = {f"a{i}": kernel.load(kind.partition(":")[0]) for i, kind in enumerate(kinds)}
    registers |= {f"d{i}": kernel.reg(kind) for i, kind in enumerate(results)}
    registers |= {f"t{i}": kernel.reg(kind) for i, kind in enumerate(temps)}
    for line in body.strip().split("\n"):
        kernel(line.strip().format(**registers))
    for i, kind in enumerate(results):
        kernel.store(kind, registers[f"d{i}"])
    return kernel.case(family, columns or (lambda: operands(kinds, lanes, name)))


def view(values: Any, kind: str) -> Array:
    """Integers as the unsigned dtype of a type, wrapped to its width."""
    bits = WIDTH[kind]
    raw = np.asarray(values)
    wide = raw.astype(np.int64).astype(np.uint64) if raw.dtype.kind != "u" else raw
    return (wide.astype(np.uint64) & np.uint64((1 << bits) - 1)).astype(DTYPE[bits])
