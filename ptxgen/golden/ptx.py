"""A minimal PTX reader for goldens: instruction counts, entry points and local memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping
from fnmatch import fnmatchcase
from functools import cache

from ptxgen.numerics import ex2

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"(?:[\w$%]+:)?[\s{}]*")
_OPCODE = re.compile(r"(?:@!?%?[\w$]+\s+)?([a-z]\w*(?:[.:]+\w+)*)")

FORBIDDEN = {
    "atomics have no order of summation": ("atom.*", "red.*", "multimem.*", "cp.reduce.*"),
    "CTAs do not wait for each other through global memory": (
        *("ld.*.gpu.*", "ld.*.sys.*", "st.*.gpu.*", "st.*.sys.*", "*.volatile.global.*"),
    ),
    "no document gives the bits of an approximation": ("*.approx", "*.approx.*", "div.full.*"),
    "subnormals are inside the contract": ("*.ftz", "*.ftz.*"),
}
"""Patterns of opcodes that no kernel may have, by the reason."""
MEASURED = (ex2.INSTRUCTION,)
"""Forbidden opcodes whose bits a contract defines; allowed if the kernel's spec expects them."""

_WHOLE = 0
_KEPT: tuple[tuple[str, int], ...] = (
    *((pattern, _WHOLE) for patterns in FORBIDDEN.values() for pattern in patterns),
    # The arithmetic whose order and roundings a contract fixes. (A rounding means floats.)
    ("wgmma.mma_async.*", _WHOLE),
    ("mma.*", _WHOLE),
    ("wgmma.*", 2),
    ("fma.*", _WHOLE),
    ("*.r[nzmp].*", _WHOLE),
    ("add.f*", _WHOLE),
    ("sub.f*", _WHOLE),
    ("mul.f*", _WHOLE),
    ("sqrt.*", _WHOLE),
    # Memory: width and path of accesses.
    ("ld.param.*", 2),
    ("ld.*", _WHOLE),
    ("st.*", _WHOLE),
    ("ldu.*", _WHOLE),
    ("cp.async.bulk.*", 4),
    ("cp.async.*", 3),
    ("ldmatrix.*", 1),
    ("stmatrix.*", 1),
    ("prefetch*", 2),
    # Synchronisation.
    ("bar.*", 2),
    ("barrier.*", 3),
    ("mbarrier.*", 2),
    ("fence.*", 2),
    ("membar.*", 2),
    ("griddepcontrol.*", _WHOLE),
    ("setmaxnreg.*", 2),
    ("shfl.*", 1),
    ("vote.*", 1),
    # Calls, branches and divisions.
    ("call*", 1),
    ("bra*", 1),
    ("div.*", _WHOLE),
    ("rem.*", _WHOLE),
)
"""Patterns of opcodes that records count, and how many of the dot-separated words of an opcode are
kept (0: all). The first match holds. Opcodes without a match are counted as :data:`OTHER`."""

OTHER = "other"


def instructions(text: str) -> Counter[str]:
    """Counts each opcode, with its modifiers, in PTX ``text``.

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


def summary(text: str) -> dict[str, int]:
    """Counts the instructions of PTX ``text`` under the names that golden records use, sorted.

    >>> summary("add.s32 %r1, %r2, %r3; fma.rn.f32 %f1, %f2, %f3, %f4; bra.uni L; bra M;")
    {'bra': 2, 'fma.rn.f32': 1, 'other': 1}
    """
    found: Counter[str] = Counter()
    for opcode, count in instructions(text).items():
        found[_kept(opcode)] += count
    return dict(sorted(found.items()))


@cache
def _kept(opcode: str) -> str:
    for pattern, words in _KEPT:
        if fnmatchcase(opcode, pattern):
            return ".".join(opcode.split(".")[: words or None])
    return OTHER


def forbidden(mix: Mapping[str, int], expected: Container[str] = ()) -> list[str]:
    """Returns a sentence for each forbidden opcode in ``mix`` (counts by opcode). ``expected``:
    opcodes that the kernel's spec expects; those of :data:`MEASURED` among them are allowed.
    """
    return [
        f"{count} x {opcode}: {reason}"
        for opcode, count in sorted(mix.items())
        if opcode not in MEASURED or opcode not in expected
        for reason, patterns in FORBIDDEN.items()
        if any(fnmatchcase(opcode, pattern) for pattern in patterns)
    ]


def entries(text: str) -> list[str]:
    """Returns the names of the kernels that PTX ``text`` exports."""
    return re.findall(r"\.visible\s+\.entry\s+([\w$]+)", text)


def local_depot(text: str) -> int:
    """Returns the bytes of local memory in PTX ``text`` for arrays that do not fit registers."""
    return sum(int(n) for n in re.findall(r"\.local\b[^;]*?__local_depot\w*\[(\d+)\]", text))
