"""Decoding of instructions to operations on the registers of a wave.

Each instruction becomes one Python function of (wave, registers), in two variants: *full*, where
all living lanes run it, so that results simply replace a register's array; and *masked*, where
lanes at other segments keep their values. Registers are slots of a list. Each slot holds one NumPy
array of all lanes or, if the value is uniform, of one element. Arrays are never changed once they
are in a slot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import PtxError
from ptxgen.interp.memory.allocations import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    GlobalMemory,
)
from ptxgen.interp.memory.layout import assign_addresses
from ptxgen.interp.text import flow, forms
from ptxgen.interp.text.ordering import orders_ctas
from ptxgen.interp.text.ptx import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Vector,
)
from ptxgen.interp.units.sync import Wave
from ptxgen.interp.values.scalar import STORAGE, constant, lookup

Array = NDArray[Any]
Operation = Callable[[Wave, list[Any]], None]
Value = Callable[[Wave, list[Any]], Array]
"""Function of (wave, registers) that returns an operand's value, ``[lanes]`` or ``[1]``."""

_OUTSIDE = {
    "createpolicy": ": cache policies change no result, so leave out the policy and "
    ".L2::cache_hint, or pass a constant",
}
EMPTY = np.empty(0, np.int64)
DEFINED = np.zeros(1, np.int32)
"""Origins of a register that is defined in every lane: one 0. Elsewhere, an origin is the number of
the unwritten register that a lane's value was computed from (see :mod:`.undefined`).
"""

WHOLE: dict[str, str] = {
    "b8": "u8", "b16": "u16", "b32": "u32", "b64": "u64",
    "s8": "u8", "s16": "u16", "s32": "u32", "s64": "u64",
    "bf16": "u16", "f16": "f16", "f16x2": "u32", "bf16x2": "u32",
}  # fmt: skip


def register_dtype(type: str) -> np.dtype[Any]:
    """Returns the NumPy dtype of a register: f16, f32, f64 and pred as such, others unsigned."""
    return STORAGE[WHOLE.get(type, type)]


class Block:
    """Basic block of a decoded kernel: the operations that execute it if all lanes that have not
    exited run it (``full``), or only those in ``wave.mask`` (``masked``), then ``end``, the
    operation that branches, exits, waits or goes on to the next block.

    ``target`` is the block that its branch jumps to, ``following`` the next one in the text,
    ``order`` its position in the kernel's weak topological order, ``first`` its first instruction.
    """

    __slots__ = (
        "collective",
        "end",
        "first",
        "following",
        "full",
        "instructions",
        "masked",
        "on_time_out",
        "order",
        "patience",
        "sites",
        "target",
    )

    def __init__(self, segment: flow.Segment) -> None:
        self.order = segment.order
        self.instructions = tuple(segment.instructions)
        self.first = segment.instructions[0]
        self.sites: tuple[int, ...] = ()
        self.full: list[Operation] = []
        self.masked: list[Operation] = []
        self.end: Operation
        self.following: Block
        self.target: Block
        self.collective = False
        """Whether all lanes of the member mask must arrive before any continues."""
        self.patience = 0
        """Most time-outs of the wait while nothing makes progress; 0: it cannot time out."""
        self.on_time_out: Callable[[Wave, NDArray[np.bool_]], None]


class Kernel:
    """Kernel that is being decoded: assigns addresses to its variables and slots (indices in a
    wave's list of values) to its registers, and returns functions that read operands.
    """

    def __init__(self, module: Module, entry: Entry, memory: GlobalMemory, compute: int) -> None:
        self.module, self.entry, self.name = module, entry, entry.name
        self.compute = compute
        self._check_forms()
        layout = assign_addresses(module, entry, memory)
        self.symbols, self.local_bytes = layout.symbols, layout.local
        self.is_bound = False
        """Whether the decoded kernel contains an address in ``memory``, so that only its device can
        run it.
        """
        self.static_shared = layout.shared
        self.shared_init = layout.filled
        self.parameter_bytes = max((p.offset + p.nbytes for p in entry.parameters), default=0)
        self.cluster = math.prod(entry.directives.get("reqnctapercluster", (1, 1, 1)))
        self.orders_ctas = any(
            orders_ctas(item) for item in entry.body if isinstance(item, Instruction)
        )
        """Whether CTAs may hand data to each other, so that accesses to global memory are checked
        for races, and all CTAs run in one wave.
        """
        self.flow = flow.analyse(entry, module.file)
        self.granule = 4
        """Granularity of the race check in bytes: the smallest shared access, at most 4."""
        self.decoding = Instruction("", (), ())
        self._sites: list[Instruction] = []
        self._slots: dict[object, int] = {}
        self._count = 0
        self.origins = {name: self.new_slot() for name in sorted(self.flow.doubtful)}
        """Slot of the undefined-value origins of each register that may be undefined, by name."""
        # Initial values of slots; the later entry for a slot wins.
        self._constants: list[tuple[int, Array]] = []
        self._specials: list[tuple[int, str]] = []
        self._parameters: list[tuple[int, int, np.dtype[Any], bool, np.dtype[Any]]] = []

    def _check_forms(self) -> None:
        """Raises PtxError unless every instruction matches a form in :data:`.forms.TABLE`."""
        spaces = {v.name: v.space for v in (*self.module.variables, *self.entry.variables)}
        spaces |= {p.name: "param" for p in self.entry.parameters}
        for item in self.entry.body:
            if not isinstance(item, Instruction):
                continue
            try:
                known = forms.check(item, self.module.target, self.entry.registers, spaces)
            except forms.FormError as error:
                raise self.error(str(error), item) from None
            if not known:
                try:
                    lookup(item)  # which knows why some are outside the subset
                except PtxError as error:
                    why = str(error).partition(f"{item.name}: ")[2].partition("\n")[0]
                    raise self.error(f"{item.name}: {why}", item) from None
                why = _OUTSIDE.get(item.opcode, "")
                raise self.error(f"instruction {item.name} is outside the subset{why}", item)

    # -- facts ------------------------------------------------------------------------
    def site(self, number: int) -> Instruction:
        """Returns the memory instruction with a site number, from 1."""
        return self._sites[number - 1]

    def new_site(self, instruction: Instruction) -> int:
        """Returns a new site number for ``instruction``, from 1."""
        self._sites.append(instruction)
        return len(self._sites)

    # -- slots ------------------------------------------------------------------------
    def error(self, message: str, instruction: Instruction) -> PtxError:
        """Returns a PtxError for ``instruction``."""
        return PtxError(
            message, file=self.module.file, line=instruction.line, text=instruction.text
        )

    def new_slot(self) -> int:
        """Returns the index of a new register slot."""
        self._count += 1
        return self._count - 1

    def slot(self, name: str) -> int:
        """Returns the slot of register ``name`` in a wave's list of registers."""
        found = self._slots.get(name)
        if found is None:
            found = self._slots[name] = self.new_slot()
        return found

    def dtype(self, name: str) -> np.dtype[Any]:
        """Returns the NumPy dtype of register ``name``."""
        return register_dtype(self.entry.registers[name])

    def constant(self, value: Array) -> int:
        """Returns a register slot that always contains ``value``, one slot for equal values."""
        key = value.dtype, value.tobytes()
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = self.new_slot()
            self._constants.append((found, value))
        return found

    def special(self, name: str, instruction: Instruction) -> int:
        """Returns the slot of special register ``name`` in a wave's list of registers. Raises
        PtxError if it is not in :data:`SPECIALS`.
        """
        if name not in SPECIALS:
            raise self.error(f"special register {name} is outside the subset", instruction)
        found = self._slots.get(name)
        if found is None:
            found = self._slots[name] = self.new_slot()
            self._specials.append((found, name))
        return found

    def parameter(self, offset: int, type: str, register: np.dtype[Any]) -> int:
        """Returns the register slot that holds the kernel argument of PTX type ``type`` at byte
        ``offset`` of the parameter buffer, extended to dtype ``register``. The same argument gets
        one slot.
        """
        key = f"param {offset} {type} {register}"
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = self.new_slot()
            dtype = STORAGE[type] if type[0] == "f" else STORAGE["u" + type.lstrip("bsuf")]
            self._parameters.append((found, offset, dtype, type[0] == "s", register))
        return found

    def address_of(self, symbol: Symbol, instruction: Instruction) -> int:
        """Returns the address of a variable or parameter in its state space, as ``mov`` does."""
        for parameter in self.entry.parameters:
            if parameter.name == symbol.name:
                return parameter.offset + symbol.offset
        if symbol.name not in self.symbols:
            raise self.error(f"{symbol.name} is no variable", instruction)
        found = self.symbols[symbol.name]
        self.is_bound |= found >= GLOBAL_BASE
        return found + symbol.offset

    # -- operands ---------------------------------------------------------------------
    def source(self, operand: Operand, type: str, instruction: Instruction) -> tuple[int, Any]:
        """Returns the slot that holds ``operand``, and the function that converts the slot's value
        to PTX type ``type`` (None if it has that type). Constants and addresses get slots of their
        own.
        """
        wanted = STORAGE[type]
        if isinstance(operand, Register):
            slot, kept = self.slot(operand.name), self.dtype(operand.name)
            return slot, converter(kept, wanted, self.entry.registers[operand.name], type)
        if isinstance(operand, Negated):
            return self.slot(operand.register.name), np.logical_not
        if isinstance(operand, Immediate):
            return self.constant(constant(operand, type)), None
        if isinstance(operand, Special):
            slot = self.special(operand.name, instruction)
            return slot, converter(SPECIALS[operand.name], wanted, "", type)
        if isinstance(operand, Symbol):
            address = self.address_of(operand, instruction)
            return self.constant(np.array([address], np.uint64).astype(wanted)), None
        raise self.error(f"an operand {operand} is not taken here", instruction)

    def value(self, operand: Operand, type: str, instruction: Instruction) -> Value:
        """Returns a function (wave, registers) that gives the value of ``operand``, converted to
        PTX type ``type``: an array with an element per lane, or one element. Raises PtxError if the
        operand cannot have the type.
        """
        slot, convert = self.source(operand, type, instruction)
        if convert is None:
            return lambda wave, registers: registers[slot]
        return lambda wave, registers: convert(registers[slot])

    def address(self, operand: Operand, instruction: Instruction) -> Value:
        """Returns a function (wave, registers) that computes the addresses ``[base+offset]`` of a
        memory operand, one per lane or one for all, uint32 or uint64. Raises PtxError for another
        operand.
        """
        if not isinstance(operand, Address):
            raise self.error("an address [..] is missing", instruction)
        base, offset = operand.base, operand.offset
        if isinstance(base, Register):
            slot, dtype = self.slot(base.name), self.dtype(base.name)
            if dtype not in (np.dtype(np.uint32), np.dtype(np.uint64)):
                raise self.error("an address takes a 32- or 64-bit register", instruction)
            if not offset:
                return lambda wave, registers: registers[slot]
            step = np.array([offset % (1 << (8 * dtype.itemsize))], np.uint64).astype(dtype)[0]
            return lambda wave, registers: registers[slot] + step
        if isinstance(base, Immediate):
            at = int(base.value) + offset
        else:
            at = self.address_of(base, instruction) + offset
        slot = self.constant(np.array([at % (1 << 64)], np.uint64))
        return lambda wave, registers: registers[slot]

    def is_local(self, name: str) -> bool:
        """Whether a register's values never reach another segment."""
        return name not in self.flow.globals


WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}
"""First generic address of each state space; global addresses are generic already."""

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)
SPECIALS: dict[str, np.dtype[Any]] = {
    **{f"%{base}.{axis}": _U32 for base in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"},
    **{
        f"%{base}.{axis}": _U32
        for base in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid")
        for axis in "xyz"
    },
    **{f"%lanemask_{kind}": _U32 for kind in ("eq", "le", "lt", "ge", "gt")},
    "%laneid": _U32,
    "%warpid": _U32,
    "%nwarpid": _U32,
    "%cluster_ctarank": _U32,
    "%cluster_nctarank": _U32,
    "%is_explicit_cluster": np.dtype(np.bool_),
    "%dynamic_smem_size": _U32,
    "%total_smem_size": _U32,
}
"""Dtypes of the special registers in the subset: without clocks and SM ids, which vary between
runs.
"""


# -- values -----------------------------------------------------------------------------


def extend(value: Array, signed: bool, register: np.dtype[Any]) -> Array:
    """Returns ``value`` widened to the dtype ``register``, sign-extended if ``signed``, else with
    zeros.
    """
    if value.dtype == register:
        return value
    if value.dtype.itemsize == register.itemsize:
        return value.view(register)
    if value.dtype.kind == "f":
        value = value.view(f"u{value.dtype.itemsize}")
    if signed:
        value = value.view(f"i{value.dtype.itemsize}").astype(f"i{register.itemsize}")
    else:
        value = value.astype(f"u{register.itemsize}")
    return value.view(register)


def narrow(value: Array, dtype: np.dtype[Any]) -> Array:
    """Returns the low bytes of ``value``, a wider register's, as ``dtype``."""
    unsigned = value.view(f"u{value.dtype.itemsize}")
    return unsigned.astype(f"u{dtype.itemsize}").view(dtype)


def converter(kept: np.dtype[Any], wanted: np.dtype[Any], register: str, type: str) -> Any:
    """Returns a function that converts values of a register from dtype ``kept`` to ``wanted``: the
    same bits, or only the low ones. None if the dtypes are equal; PtxError if ``wanted`` is wider,
    or one of the two is a predicate. ``register`` and ``type`` name the PTX types in the message.
    """
    if kept == wanted:
        return None
    if kept == np.bool_ or wanted == np.bool_:
        raise PtxError(f"a {register or kept} where a {type} is taken")
    if kept.itemsize == wanted.itemsize:
        return lambda array: array.view(wanted)
    if kept.itemsize > wanted.itemsize:
        return lambda array: narrow(array, wanted)
    raise PtxError(f"a {register or kept} where a {type} is taken")


def active(wave: Wave, guard: Array | None) -> NDArray[np.int64] | None:
    """Returns the running lanes whose guard is true (None: no guard); None if all lanes are."""
    if guard is None:
        return wave.active
    if guard.size == 1:
        return wave.active if guard[0] else EMPTY
    mask = guard if wave.mask is None else guard & wave.mask
    if mask.all():
        return None
    lanes = np.flatnonzero(mask)
    return lanes if lanes.size else EMPTY


def put(
    wave: Wave, registers: list[Any], slot: int, values: Array, lanes: NDArray[np.int64] | None
) -> None:
    """Writes ``values`` to slot ``slot`` in ``lanes`` only (None: in all)."""
    if lanes is None:
        registers[slot] = values
        return
    old = registers[slot]
    count = len(wave.lanes)
    if old is None:
        new = np.zeros(count, values.dtype)
    elif old.size == count:
        new = old.copy()
    else:
        new = np.full(count, old[0])
    new[lanes] = values
    registers[slot] = new


def merge(wave: Wave, old: Array | None, new: Array, guard: Array | None) -> Array:
    """Returns a register's value after a write of ``new``: ``new`` in the running lanes whose guard
    is true (None: no guard), ``old`` in the others. If ``old`` is None (never written), all of
    ``new``.
    """
    mask = wave.mask
    if guard is not None:
        mask = guard if mask is None else mask & guard
    if old is None or mask is None:
        return new
    return np.where(mask, new, old)


def operand_items(operand: Operand) -> Sequence[Operand]:
    """Returns the items of a vector or pair operand; any other operand as a tuple of one."""
    if isinstance(operand, Vector):
        return operand.items
    if isinstance(operand, Pair):
        return (operand.first, operand.second)
    return (operand,)
