"""Running a case on a device, and comparing what it leaves with what was recorded."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from conformance.case import FILL, Case
from conformance.values import DTYPE, FORMATS, PACKED, WIDTH
from ptxgen.runtime import Parameters

Array = np.ndarray[Any, Any]
_PARAMETERS = struct.Struct("<QQI")


def run(case: Case, device: Any, times: int = 1) -> list[bytes]:
    """The result memory after a launch of the case's kernel; of each of several launches."""
    image = case.ptx.encode() + b"\0"
    function = device.load(image, case.symbol, case.shared_bytes)
    inputs, nbytes = case.inputs, max(case.nbytes, 16)
    source = (ctypes.c_char * len(inputs)).from_buffer_copy(inputs)
    held = (ctypes.c_char * nbytes)()
    pointers = device.alloc(len(inputs)), device.alloc(nbytes)
    results = []
    try:
        device.copy_in(pointers[0], ctypes.addressof(source), len(inputs))
        packed = _PARAMETERS.pack(*pointers, case.threads)
        grid, block = (case.grid, 1, 1), (case.block, 1, 1)
        launch = device.prepare(function, grid, block, Parameters(packed, (0, 1)), 2, case.name)
        for _ in range(times):
            ctypes.memset(held, FILL, nbytes)
            device.copy_in(pointers[1], ctypes.addressof(held), nbytes)
            launch.fire(0, *pointers)
            device.copy_out(ctypes.addressof(held), pointers[1], nbytes)
            device.synchronize()
            results.append(held.raw[: case.nbytes])
    finally:
        for pointer in pointers:
            device.free(pointer)
    return results


def columns(case: Case, raw: bytes) -> list[Array]:
    """The values of each column of results, as unsigned integers."""
    found, at = [], 0
    for field in case.outputs:
        dtype = DTYPE[WIDTH[field.type]]
        found.append(np.frombuffer(raw, dtype, field.count, at))
        at += field.nbytes
    return found


def canonical(values: Array, kind: str) -> Array:
    """Bit patterns of a type, with one NaN for all."""
    if kind in PACKED:
        halves = canonical(np.ascontiguousarray(values).view("<u2"), PACKED[kind])
        return halves.view("<u4")
    if kind not in FORMATS:
        return values
    exponent, fraction = FORMATS[kind]
    infinity = ((1 << exponent) - 1) << fraction
    magnitude = values & values.dtype.type((1 << (exponent + fraction)) - 1)
    nan = values.dtype.type(infinity | 1 << (fraction - 1))
    return np.where(magnitude > infinity, nan, values)


def difference(case: Case, got: bytes, expected: bytes) -> str:
    """The first results that differ, in words; empty when all bits agree.

    Any NaN of a floating-point result equals any other: payloads are in no contract.
    """
    if len(got) != len(expected):
        return f"{case.name}: {len(got)} bytes of results, expected {len(expected)}"
    lines = []
    pairs = zip(case.outputs, columns(case, got), columns(case, expected), strict=True)
    for number, (field, mine, theirs) in enumerate(pairs):
        left, right = canonical(mine, field.type), canonical(theirs, field.type)
        wrong = np.nonzero(left != right)[0]
        if wrong.size:
            digits = WIDTH[field.type] // 4
            lines.append(f"result {number} ({field.type}): {wrong.size} of {field.count} differ")
            for lane in wrong[:4]:
                lines.append(
                    f"  [{lane}] got 0x{int(mine[lane]):0{digits}x}, "
                    f"expected 0x{int(theirs[lane]):0{digits}x}" + _operands(case, int(lane))
                )
    return f"{case.name}:\n" + "\n".join(lines) if lines else ""


def _operands(case: Case, lane: int) -> str:
    """The operands of one thread, where they are read off the kernel's own loads."""
    found = []
    for line in case.ptx.splitlines():
        words = line.split()
        if not line.strip().startswith("ld.global.") or len(words) != 3:
            continue
        base, _, at = words[2].strip("[];").partition("+")
        size = base.removeprefix("%in")
        if base == size or not size.isdigit() or not at.isdigit():
            continue
        start = int(at) + lane * int(size)
        raw = case.inputs[start : start + int(size)]
        if len(raw) == int(size):
            found.append(f"0x{int.from_bytes(raw, 'little'):0{2 * int(size)}x}")
    return f" from {', '.join(found[:12])}" if found else ""


def same_nan(case: Case, raw: bytes) -> bytes:
    """Results with one NaN for all: equal exactly if no difference counts."""
    pairs = zip(case.outputs, columns(case, raw), strict=True)
    return b"".join(canonical(values, field.type).tobytes() for field, values in pairs)
