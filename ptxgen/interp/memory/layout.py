"""Addresses of a kernel's variables in their state spaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxgen.errors import PtxError
from ptxgen.interp.memory.allocations import GLOBAL_BASE, LOCAL_BASE, SHARED_BASE, GlobalMemory
from ptxgen.interp.text.ptx import Entry, Module

STATIC_SHARED = 227 << 10
"""Most bytes of statically sized shared variables per CTA; ptxas itself accepts 48 KiB."""
CONST = 64 << 10
LOCAL = 512 << 10
"""Most bytes of local memory per thread (CUDA programming guide, technical specifications)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Addresses of a kernel's variables in their state spaces (``symbols``, by name), and the bytes
    of shared and local memory that they take.
    """

    symbols: dict[str, int]
    filled: list[tuple[int, bytes]]
    """Initial contents of shared memory: (byte offset, data) pairs."""
    shared: int
    """Bytes of static shared memory per CTA."""
    local: int
    """Bytes of local memory per thread."""


def assign_addresses(module: Module, entry: Entry, memory: GlobalMemory) -> Layout:
    """Assigns addresses to all variables of a kernel; allocates those in global memory."""
    symbols: dict[str, int] = {}
    filled: list[tuple[int, bytes]] = []
    shared = local = 0
    dynamic: list[tuple[str, int]] = []
    for variable in (*module.variables, *entry.variables):
        if variable.space == "const" and variable.nbytes > CONST:
            raise PtxError(
                f"{variable.name} has {variable.nbytes} bytes of .const memory; takes {CONST}",
                file=module.file,
                line=variable.line,
            )
        if variable.space in ("global", "const"):
            found = memory.alloc(variable.nbytes, variable.name, written=True)
            if variable.init:
                found.data[: len(variable.init)] = np.frombuffer(variable.init, np.uint8)
            found.constant = variable.space == "const"
            symbols[variable.name] = found.base
        elif variable.space == "shared":
            if variable.extern or variable.count == 0:
                dynamic.append((variable.name, variable.align))
                continue
            shared = -(-shared // variable.align) * variable.align
            symbols[variable.name] = SHARED_BASE + shared
            if variable.init:
                filled.append((shared, variable.init))
            shared += variable.nbytes
        else:
            local = -(-local // variable.align) * variable.align
            symbols[variable.name] = LOCAL_BASE + local
            local += variable.nbytes
    for variable in (*module.variables, *entry.variables):
        for at, target, _ in variable.addresses:
            where = symbols.get(target.name)
            holder = memory.find(symbols[variable.name])
            if where is None or holder is None or where < GLOBAL_BASE:
                raise PtxError(
                    f"{variable.name} is initialised with the address of {target.name}, which is "
                    "no variable in global memory",
                    file=module.file,
                    line=variable.line,
                )
            holder.data[at : at + 8].view(np.uint64)[0] = where + target.offset
    if dynamic:
        align = max(align for _, align in dynamic)
        shared = -(-shared // align) * align
        for name, _ in dynamic:
            symbols[name] = SHARED_BASE + shared
    for what, size, most in (("shared", shared, STATIC_SHARED), ("local", local, LOCAL)):
        if size > most:
            raise PtxError(
                f"{entry.name} declares {size} bytes of .{what} memory; takes at most {most}",
                file=module.file,
                line=entry.line,
            )
    return Layout(symbols, filled, shared, -(-local // 16) * 16)
