"""What changed between two sets of goldens: numbers first, then text."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from ptxgen.golden.ptx import instructions
from ptxgen.golden.store import Goldens, Usage

T = TypeVar("T")

_SHOWN = 12  # opcodes named in one line; the rest is counted


@dataclass(frozen=True)
class Change:
    """How one kernel differs.

    ``status``: "added", "removed" or "changed". ``numbers``: one line per target and
    architecture. ``text``: a unified diff, line by line, of the PTX that changed (empty for
    added and removed kernels, whose text is no comparison).
    """

    kernel: str
    status: str
    numbers: tuple[str, ...]
    text: tuple[str, ...] = field(repr=False)


def changes(old: Goldens, new: Goldens) -> Iterator[Change]:
    """Every kernel that differs, by name."""
    before, after = old.kernels(), new.kernels()
    for kernel in sorted(before | after):
        numbers: list[str] = []
        text: list[str] = []
        for target, was, now in _pairs(kernel, old.ptx, new.ptx):
            numbers.append(f"{target:<10} {_mix(was or '', now or '')}")
            if was and now:
                text += _unified(f"{target}/{kernel}.ptx", was, now)
        for arch, used, uses in _pairs(kernel, old.usage, new.usage):
            numbers.append(f"{arch:<10} {usage_change(used, uses)}")
        if numbers:
            both = kernel in before and kernel in after
            status = "changed" if both else "added" if kernel in after else "removed"
            yield Change(kernel, status, tuple(numbers), tuple(text))


def _pairs(
    kernel: str, old: Mapping[tuple[str, str], T], new: Mapping[tuple[str, str], T]
) -> Iterator[tuple[str, T | None, T | None]]:
    """(architecture, old, new) where they differ; None where there is none."""
    for arch in dict.fromkeys(a for a, k in (*old, *new) if k == kernel):
        was, now = old.get((arch, kernel)), new.get((arch, kernel))
        if was != now:
            yield arch, was, now


def _mix(old: str, new: str) -> str:
    """The instruction mix, opcodes with the largest change first."""
    was, now = instructions(old), instructions(new)
    total = f"{was.total()} -> {now.total()} instructions"
    moved = sorted(
        (op for op in was | now if was[op] != now[op]),
        key=lambda op: (-abs(now[op] - was[op]), op),
    )
    if not moved:
        return f"{was.total()} instructions, the same mix in another order or with other operands"
    named = ", ".join(f"{op} {was[op]} -> {now[op]}" for op in moved[:_SHOWN])
    rest = len(moved) - _SHOWN
    return f"{total}: {named}" + (f", and {rest} more opcodes" if rest > 0 else "")


def usage_change(old: Usage | None, new: Usage | None) -> str:
    """The numbers that differ, such as ``"registers 126 -> 128"``; a dash where there is none."""
    was = asdict(old) if old else {}
    now = asdict(new) if new else {}
    return ", ".join(
        f"{name.replace('_', ' ')} {was.get(name, '-')} -> {now.get(name, '-')}"
        for name in dict.fromkeys((*was, *now))
        if was.get(name) != now.get(name)
    )


def _unified(name: str, old: str, new: str) -> Iterator[str]:
    return difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"old/{name}", f"new/{name}", lineterm=""
    )
