"""Differences between two sets of goldens: numbers first, then diffs of PTX."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count

from ptxgen.golden.git import diff
from ptxgen.golden.store import Goldens, Record

_SHOWN = 8  # opcodes named in one line; the rest is counted
_NAME = re.compile(r"%[a-zA-Z_]+\d+\b|\$L__\w+")
_NUMBER = re.compile(r"\d+$")


@dataclass(frozen=True)
class Change:
    """The difference of one kernel between two sets of goldens.

    ``status``: "added", "removed" or "changed". ``numbers``: a line of text for each group of
    architectures with the same change. ``arch``: the first one whose PTX is known to differ, or
    empty. ``weight``: sum of the changes of its instruction counts there, which is a lower bound of
    the instructions added and removed.
    """

    kernel: str
    status: str
    numbers: tuple[str, ...]
    arch: str
    weight: int


def changes(old: Goldens, new: Goldens) -> Iterator[Change]:
    """Yields the change of every kernel that differs, sorted by name."""
    before = {kernel for _, kernel in old.records}
    after = {kernel for _, kernel in new.records}
    keys = dict.fromkeys((*old.records, *new.records))
    differing: dict[str, dict[str, list[str]]] = {}
    text: dict[str, tuple[str, int]] = {}
    for arch, kernel in keys:
        was, now = old.records.get((arch, kernel)), new.records.get((arch, kernel))
        if sentence := difference(was, now):
            differing.setdefault(kernel, {}).setdefault(sentence, []).append(arch)
        if was and now and _recompiled(was, now):
            changed = _count_changes(was.mix, now.mix).values()
            text.setdefault(kernel, (arch, sum(map(abs, changed))))
    for kernel in sorted(differing):
        both = kernel in before and kernel in after
        status = "changed" if both else "added" if kernel in after else "removed"
        lines = tuple(f"{', '.join(where)}: {s}" for s, where in differing[kernel].items())
        yield Change(kernel, status, lines, *text.get(kernel, ("", 0)))


def difference(old: Record | None, new: Record | None) -> str:
    """Describes how two records differ: ``"registers 126 -> 128, instructions 90 -> 91: …"``; empty
    if they do not.

    A dash stands for a missing number. PTX is compared if both have its digest.
    """
    was, now = _numbers(old), _numbers(new)
    parts = [
        f"{name.replace('_', ' ')} {was.get(name, '-')} -> {now.get(name, '-')}"
        for name in dict.fromkeys((*was, *now))
        if was.get(name) != now.get(name)
    ]
    if old and new and _recompiled(old, new):
        changed = _count_changes(old.mix, new.mix)
        if not changed:
            return ", ".join([*parts, "the same instructions in another order or otherwise used"])
        order = sorted(changed, key=lambda op: (-abs(changed[op]), op))
        parts.append(
            f"instructions {sum(old.mix.values())} -> {sum(new.mix.values())}: "
            + ", ".join(f"{op} {changed[op]:+d}" for op in order[:_SHOWN])
            + (f", and {len(order) - _SHOWN} more" if len(order) > _SHOWN else "")
        )
    return ", ".join(parts)


def _recompiled(old: Record, new: Record) -> bool:
    """Whether the PTX of two records differs; false if a record has no digest of it."""
    return bool(old.ptx and new.ptx) and old.ptx != new.ptx


def _numbers(record: Record | None) -> dict[str, int]:
    if record is None:
        return {}
    optional = {"local": record.local} if record.local else {}
    return asdict(record.usage) | optional


def _count_changes(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    changed = {op: new.get(op, 0) - old.get(op, 0) for op in {*old, *new}}
    return {op: by for op, by in changed.items() if by}


# -- text ------------------------------------------------------------------------
def text_diff(old: str, new: str, names: tuple[str, str] = ("old", "new")) -> list[str]:
    """Returns a unified diff of PTX, after renaming registers and labels of ``new`` as in ``old``.

    One more instruction renumbers all registers behind it. So the lines of both texts are paired
    first without names; each new name then becomes the old name that it is paired with most often.
    """
    return diff(old, renamed(old, new), names)


def renamed(old: str, new: str) -> str:
    """Returns ``new`` with registers and labels renamed to match ``old``."""
    before, after = old.splitlines(), new.splitlines()
    bare = [_NAME.sub(_nameless, line) for line in before]
    bare_new = [_NAME.sub(_nameless, line) for line in after]
    votes: Counter[tuple[str, str]] = Counter()
    for i, j in _pairs(bare, bare_new):
        votes.update(zip(_names(after[j]), _names(before[i]), strict=True))
    old_names: dict[str, str] = {}
    used = set()
    for (new_name, old_name), _ in votes.most_common():
        if new_name not in old_names and old_name not in used:
            old_names[new_name] = old_name
            used.add(old_name)
    used |= set(_names(old))
    spare: Iterator[int] = count(1 + max((int(n) for name in used for n in _tail(name)), default=0))
    for name in dict.fromkeys(_names(new)):
        if name not in old_names:
            stem = _NUMBER.sub("", name)
            old_names[name] = name if name not in used else f"{stem}{next(spare)}"
            used.add(old_names[name])
    return _NAME.sub(lambda match: old_names[match[0]], new)


def _names(text: str) -> list[str]:
    return [match[0] for match in _NAME.finditer(text)]


def _tail(name: str) -> list[str]:
    """Returns the digits at the end of ``name`` as a list of one text; empty if there are none."""
    return [match[0] for match in _NUMBER.finditer(name)]


def _nameless(match: re.Match[str]) -> str:
    """Returns the register or label name that ``match`` found, without its final number."""
    return _NUMBER.sub("", match[0])


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields index pairs (old, new) of the lines that a diff finds equal."""
    i = j = 0
    hunks = diff("\n".join(old) + "\n", "\n".join(new) + "\n", context=0)
    for line in (*hunks, f"@@ -{len(old) + 1} +{len(new) + 1} @@"):
        if found := re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start, removed, other, added = (int(n) if n else 1 for n in found.groups())
            # For a hunk without lines on one side, diff gives the line before it.
            start, other = start - (removed > 0), other - (added > 0)
            yield from zip(range(i, start), range(j, other), strict=True)
            i, j = start + removed, other + added
