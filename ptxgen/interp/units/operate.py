"""Decoding of scalar instructions, moves and address conversions to operations on registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.interp.memory.allocations import CLUSTER_STRIDE, GLOBAL_BASE, SHARED_BASE
from ptxgen.interp.text.ptx import SIZES, Instruction, Operand, Register, Sink, Special, Vector
from ptxgen.interp.units.kernel import (
    WINDOWS,
    Kernel,
    Operation,
    Value,
    active,
    extend,
    merge,
    operand_items,
    put,
)
from ptxgen.interp.units.sync import Wave
from ptxgen.interp.values.scalar import STORAGE, Scalar

Array = NDArray[Any]
Variants = tuple[Operation, Operation]
"""The two functions (wave, registers) that execute a decoded instruction: one for all lanes of the
wave, one for the lanes in ``wave.mask``.
"""


def guard_of(kernel: Kernel, instruction: Instruction) -> Value | None:
    """Returns a function (wave, registers) that gives the instruction's guard per lane, negated for
    ``@!p``; None if it has no guard.
    """
    if instruction.guard is None:
        return None
    slot = kernel.slot(instruction.guard.name)
    if instruction.negated:
        return lambda wave, registers: ~registers[slot]
    return lambda wave, registers: registers[slot]


def compute(kernel: Kernel, instruction: Instruction, scalar: Scalar) -> Variants:
    """Decodes an instruction that computes ``scalar`` of its operands in each lane: returns the
    operations that convert them, apply the function, and write the results. Raises PtxError if
    ``scalar`` takes other operands.
    """
    destinations = operand_items(instruction.operands[0])
    operands = instruction.operands[1:]
    if len(destinations) != len(scalar.dst) or len(operands) != len(scalar.src):
        raise kernel.error(
            f"{instruction.name} takes {len(scalar.dst)} destinations and {len(scalar.src)} "
            f"sources, got {len(destinations)} and {len(operands)}",
            instruction,
        )
    slots, converts = [], []
    for operand, type in zip(operands, scalar.src, strict=True):
        slot, convert = kernel.source(operand, type, instruction)
        slots.append(slot)
        converts.append(convert)
    function = _converted(scalar.function, converts)
    if len(destinations) == 1:
        target = destinations[0]
        if isinstance(target, Sink):
            return no_operation, no_operation
        function, slot = result(kernel, instruction, target, scalar.dst[0], function)
        assert isinstance(target, Register)
        return apply(
            slot, slots, function, kernel.is_local(target.name), guard_of(kernel, instruction)
        )
    return _apply_many(kernel, instruction, destinations, scalar, slots, function)


def no_operation(wave: Wave, registers: list[Any]) -> None:
    """Does nothing; for instructions whose result goes to the sink ``_``."""


def _converted(function: Callable[..., Any], converts: list[Any]) -> Callable[..., Any]:
    if not any(converts):
        return function
    if len(converts) == 1:
        (one,) = converts
        return lambda a: function(one(a))
    if len(converts) == 2:
        one, two = converts
        if two is None:
            return lambda a, b: function(one(a), b)
        if one is None:
            return lambda a, b: function(a, two(b))
        return lambda a, b: function(one(a), two(b))
    return lambda *given: function(
        *[a if c is None else c(a) for a, c in zip(given, converts, strict=True)]
    )


def result(
    kernel: Kernel,
    instruction: Instruction,
    target: Operand,
    type: str,
    function: Callable[..., Any],
) -> tuple[Callable[..., Any], int]:
    """Returns ``function``, whose result is of type ``type``, with the result extended to the width
    of the register ``target``; and the register's slot. Raises PtxError if the result does not fit.
    """
    if not isinstance(target, Register):
        raise kernel.error(f"a destination {target} is not taken here", instruction)
    kept, made = kernel.dtype(target.name), STORAGE[type]
    slot = kernel.slot(target.name)
    if kept == made:
        return function, slot
    if kept.itemsize < made.itemsize or (kept == np.bool_) != (made == np.bool_):
        raise kernel.error(f"a {type} does not fit {target.name}", instruction)
    signed = type[0] == "s"
    return lambda *given: extend(function(*given), signed, kept), slot


def apply(
    d: int, slots: list[int], function: Callable[..., Any], local: bool, guard: Value | None
) -> Variants:
    """Returns the operations that compute ``function`` of the registers in ``slots``, and write the
    result to slot ``d`` in the lanes whose ``guard`` is true (None: no guard).

    ``local``: no other segment reads ``d``, so that inactive lanes may be overwritten.
    """
    plain: Operation
    if len(slots) == 1:
        (a,) = slots

        def plain(wave: Wave, registers: list[Any]) -> None:
            registers[d] = function(registers[a])

    elif len(slots) == 2:
        a, b = slots

        def plain(wave: Wave, registers: list[Any]) -> None:
            registers[d] = function(registers[a], registers[b])

    elif len(slots) == 3:
        a, b, c = slots

        def plain(wave: Wave, registers: list[Any]) -> None:
            registers[d] = function(registers[a], registers[b], registers[c])

    else:

        def plain(wave: Wave, registers: list[Any]) -> None:
            registers[d] = function(*[registers[s] for s in slots])

    if guard is not None:

        def guarded(wave: Wave, registers: list[Any]) -> None:
            held = guard(wave, registers)
            old = registers[d]
            if held.size == 1 and not held[0]:
                return
            new = function(*[registers[s] for s in slots])
            registers[d] = merge(wave, old, new, held)

        return guarded, guarded
    if local:
        return plain, plain

    def masked(wave: Wave, registers: list[Any]) -> None:
        old = registers[d]
        new = function(*[registers[s] for s in slots])
        mask = wave.mask
        registers[d] = new if old is None or mask is None else np.where(mask, new, old)

    return plain, masked


def _apply_many(
    kernel: Kernel,
    instruction: Instruction,
    destinations: Any,
    scalar: Scalar,
    slots: list[int],
    function: Callable[..., Any],
) -> Variants:
    guard = guard_of(kernel, instruction)
    targets: list[tuple[int, int, bool]] = []
    for i, target in enumerate(destinations):
        if not isinstance(target, Sink):
            _, slot = result(kernel, instruction, target, scalar.dst[i], function)
            targets.append((i, slot, kernel.is_local(target.name)))

    def operation(wave: Wave, registers: list[Any]) -> None:
        results = function(*[registers[s] for s in slots])
        held = None if guard is None else guard(wave, registers)
        for i, slot, _ in targets:
            registers[slot] = merge(wave, registers[slot], results[i], held)

    return operation, operation


def pure(
    kernel: Kernel,
    instruction: Instruction,
    dst: str,
    src: list[str],
    function: Callable[..., Any],
) -> Variants:
    """Decodes an instruction as :func:`compute` does, by a ``function`` of operands of PTX types
    ``src`` with a result of type ``dst``; for those that :func:`.scalar.lookup` does not know.
    """
    return compute(kernel, instruction, Scalar((dst,), tuple(src), function))


def write(kernel: Kernel, target: Operand, type: str, instruction: Instruction) -> Any:
    """Returns a function (wave, registers, values, lanes) that writes ``values`` of PTX type
    ``type`` to the register ``target``, extended to its width, or discards them if ``target`` is
    ``_``. Raises PtxError if they do not fit.
    """
    if isinstance(target, Sink):
        return lambda wave, registers, values, lanes: None
    identity = result(kernel, instruction, target, type, lambda x: x)
    convert, slot = identity

    def writer(wave: Wave, registers: list[Any], values: Array, lanes: Any) -> None:
        put(wave, registers, slot, convert(values), lanes)

    return writer


# -- moves and addresses ----------------------------------------------------------------


def move(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes a mov that packs a vector of registers into one register, or unpacks one."""
    target, source = instruction.operands
    bits = SIZES[instruction.modifiers[-1]]
    guard = guard_of(kernel, instruction)
    if isinstance(target, Vector):
        part = bits // len(target.items)
        whole = kernel.value(source, f"b{8 * bits}", instruction)
        writers = [write(kernel, item, f"b{8 * part}", instruction) for item in target.items]

        def unpack(wave: Wave, registers: list[Any]) -> None:
            lanes = active(wave, None if guard is None else guard(wave, registers))
            value = whole(wave, registers)
            pieces = np.ascontiguousarray(value).view(f"u{part}").reshape(len(value), -1)
            for i, writer in enumerate(writers):
                values = pieces[:, i].copy()
                if lanes is not None and len(values) > 1:
                    values = values[lanes]
                writer(wave, registers, values, lanes)

        return unpack, unpack
    assert isinstance(source, Vector)
    part = bits // len(source.items)
    parts = [kernel.value(item, f"b{8 * part}", instruction) for item in source.items]
    writer = write(kernel, target, f"b{8 * bits}", instruction)

    def pack(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        values = (
            np.stack(np.broadcast_arrays(*[p(wave, registers) for p in parts]), axis=-1)
            .reshape(-1)
            .view(f"u{bits}")
        )
        if lanes is not None and len(values) > 1:
            values = values[lanes]
        writer(wave, registers, values, lanes)

    return pack, pack


def cvta(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes cvta, between generic addresses and addresses of a state space."""
    to = instruction.modifiers[0] == "to"
    space = instruction.modifiers[1 if to else 0].partition("::")[0]
    if space not in (*WINDOWS, "global", "const"):
        raise kernel.error(f"state space {space} is outside the subset", instruction)
    window = np.uint64(WINDOWS.get(space, 0))
    if to:
        return pure(kernel, instruction, "u64", ["u64"], lambda a: a - window)
    return pure(kernel, instruction, "u64", ["u64"], lambda a: a + window)


def mapa(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes mapa, which maps a shared address to another CTA of the cluster."""
    kind = instruction.modifiers[-1]
    window = 0 if "shared::cluster" in instruction.modifiers else WINDOWS["shared"]

    def function(address: Array, rank: Array) -> Array:
        inside = (address.astype(np.int64) - window - SHARED_BASE) % CLUSTER_STRIDE
        found = inside + (rank.astype(np.int64) + 1) * CLUSTER_STRIDE + SHARED_BASE + window
        return found.astype(STORAGE[kind])

    return pure(kernel, instruction, kind, [kind, "u32"], function)


def _rank(address: Array, window: int) -> Array:
    """Returns the number of whole CLUSTER_STRIDEs by which each shared address is above
    SHARED_BASE: 1 + rank of the CTA for a shared::cluster address, 0 for an address of the
    executing CTA.

    ``window``: first address of shared memory if addresses are generic, else 0.
    """
    inside = address.astype(np.int64) - window - SHARED_BASE
    rank: Array = inside // CLUSTER_STRIDE
    return rank


def getctarank(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes getctarank: the rank of the CTA whose shared memory contains an address."""
    kind = instruction.modifiers[-1]
    if instruction.modifiers[:-1] not in ((), ("shared::cluster",)) or kind not in ("u32", "u64"):
        raise kernel.error("this form is outside the subset", instruction)
    window = 0 if len(instruction.modifiers) == 2 else WINDOWS["shared"]
    here = kernel.value(Special("%cluster_ctarank"), "u32", instruction)
    address = kernel.value(instruction.operands[1], kind, instruction)
    writer = write(kernel, instruction.operands[0], "u32", instruction)
    guard = guard_of(kernel, instruction)

    def operation(wave: Wave, registers: list[Any]) -> None:
        lanes = active(wave, None if guard is None else guard(wave, registers))
        rank = _rank(address(wave, registers), window)
        found = np.where(rank == 0, here(wave, registers), (rank - 1).astype(np.uint32))
        found = np.broadcast_to(found, wave.lanes.shape)
        writer(wave, registers, found if lanes is None else found[lanes], lanes)

    return operation, operation


def isspacep(kernel: Kernel, instruction: Instruction) -> Variants:
    """Decodes isspacep, which tests whether a generic address is in a state space."""
    space = instruction.modifiers[0] if len(instruction.modifiers) == 1 else ""
    low, high = {
        "global": (GLOBAL_BASE, 1 << 64),
        "const": (GLOBAL_BASE, 1 << 64),
        "shared": (WINDOWS["shared"] + SHARED_BASE, WINDOWS["shared"] + CLUSTER_STRIDE),
        "shared::cta": (WINDOWS["shared"] + SHARED_BASE, WINDOWS["shared"] + CLUSTER_STRIDE),
        "shared::cluster": (WINDOWS["shared"] + SHARED_BASE, WINDOWS["local"]),
        "local": (WINDOWS["local"], WINDOWS["param"]),
        "param": (WINDOWS["param"], GLOBAL_BASE),
    }.get(space, (0, 0))
    if not high or space == "const":
        raise kernel.error("this form is outside the subset", instruction)
    first, last = np.uint64(low), np.uint64(high - 1)
    return pure(kernel, instruction, "pred", ["u64"], lambda a: (a >= first) & (a <= last))
