"""Reading PTX as far as goldens need it: which instructions a kernel has."""

from __future__ import annotations

import re
from collections import Counter

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"(?:[\w$%]+:)?[\s{}]*")
_OPCODE = re.compile(r"(?:@!?%?[\w$]+\s+)?([a-z]\w*(?:[.:]+\w+)*)")


def instructions(text: str) -> Counter[str]:
    """How often each opcode, with its modifiers, stands in ``text``.

    >>> sorted(instructions("L: @%p1 bra L; { .reg .b32 t; ld.v2.f32 {%f1, %f2}, [%rd1]; }"))
    ['bra', 'ld.v2.f32']
    """
    found: Counter[str] = Counter()
    for statement in _COMMENT.sub("", text).split(";"):
        rest = statement
        while (start := _LABEL.match(rest)) and start.end():
            rest = rest[start.end() :]
        if opcode := _OPCODE.match(rest):
            found[opcode[1]] += 1
    return found


def forbidden(text: str) -> list[str]:
    """What a kernel must never hold, as sentences; usually none.

    Atomics, because the order of their additions is nobody's; approximations and
    flushing subnormals, because no contract allows them.
    """
    said = []
    for opcode, count in sorted(instructions(text).items()):
        base, *modifiers = opcode.split(".")
        if base in ("atom", "red", "multimem") or (base == "cp" and "reduce" in modifiers):
            said.append(f"{count} x {opcode}: atomics have no order of summation")
        if "approx" in modifiers or (base == "div" and "full" in modifiers):
            said.append(f"{count} x {opcode}: no document gives the bits of an approximation")
        if "ftz" in modifiers:
            said.append(f"{count} x {opcode}: subnormals are inside the contract")
    return said


def entries(text: str) -> list[str]:
    """The kernels that ``text`` exports."""
    return re.findall(r"\.visible\s+\.entry\s+([\w$]+)", text)


def local_depot(text: str) -> int:
    """Bytes of local memory that ``text`` reserves for arrays it could not keep in registers."""
    return sum(int(n) for n in re.findall(r"\.local\b[^;]*?__local_depot\w*\[(\d+)\]", text))
