"""Memory instructions as the memory consistency model sees them: strength, scope, order, proxy.

Source: PTX ISA 9.0, 8.5 (scope), 8.6 (proxies), 8.7 (morally strong operations), 8.8 (release and
acquire patterns), 9.7.13 (membar and fence).
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.interp.text.ptx import SIZES, Instruction

CTA, CLUSTER, GPU, SYS = range(4)
_SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "gl": GPU, "sys": SYS}
_ELSEWHERE = {"shared", "local", "param", "const"}
_ORDERS = {"relaxed", "acquire", "release", "acq_rel"}


@dataclass(frozen=True, slots=True)
class Ordering:
    """Semantics of a memory instruction. The defaults are those of a weak access."""

    scope: int = -1
    """Scope of a strong access, CTA to SYS; -1: the access is weak."""
    acquires: bool = False
    releases: bool = False
    is_atomic: bool = False
    """Whether it reads and writes in one step (atom, red)."""
    is_bulk: bool = False
    """Whether it is performed in the async proxy (bulk and tensor copies)."""
    is_noncoherent: bool = False
    """Whether it assumes that no thread writes the data during the launch (ld.global.nc)."""
    itemsize: int = 0
    """Bytes of an element of a strong access (vectors and packed types have several elements); 0 if
    the access is weak.
    """


def ordering(instruction: Instruction) -> Ordering:
    """Returns the semantics of a load, store, atomic or copy."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "cp":
        return Ordering(is_bulk="bulk" in modifiers)
    orders = _ORDERS.intersection(modifiers)
    is_atomic = opcode in ("atom", "red")
    scopes = [_SCOPES[m] for m in modifiers if m in _SCOPES]
    scope = -1
    if "volatile" in modifiers:
        scope = SYS
    elif orders or is_atomic:
        scope = scopes[0] if scopes else GPU
    return Ordering(
        scope,
        acquires=bool(orders & {"acquire", "acq_rel"}),
        releases=bool(orders & {"release", "acq_rel"}),
        is_atomic=is_atomic,
        is_noncoherent="nc" in modifiers,
        itemsize=SIZES[modifiers[-1].removesuffix("x2")] if scope >= CTA else 0,
    )


def fence_scope(instruction: Instruction) -> int | None:
    """Returns the scope of a memory fence (fence, membar); None for other instructions, among them
    proxy fences.
    """
    form = [m for m in instruction.modifiers if m not in ("sc", "acq_rel")]
    if instruction.opcode not in ("fence", "membar") or len(form) != 1:
        return None
    return _SCOPES.get(form[0])


def polls(instruction: Instruction) -> bool:
    """Whether an instruction is a load with which threads may poll what other CTAs store: relaxed
    or acquire, at the scope of the GPU, of global memory.
    """
    return (
        instruction.opcode == "ld"
        and not _ORDERS.isdisjoint(instruction.modifiers)
        and _is_global(instruction)
        and ordering(instruction).scope >= GPU
    )


def orders_ctas(instruction: Instruction) -> bool:
    """Whether an instruction can order global memory between CTAs by itself: it polls, or is a
    release or an acquire at the scope of the GPU. A fence or an atomic alone does not count.
    """
    if instruction.opcode not in ("ld", "st", "atom", "red") or not _is_global(instruction):
        return False
    found = ordering(instruction)
    return polls(instruction) or (found.scope >= GPU and (found.acquires or found.releases))


def _is_global(instruction: Instruction) -> bool:
    """Whether the address may be in global memory."""
    return _ELSEWHERE.isdisjoint(m.partition("::")[0] for m in instruction.modifiers)
