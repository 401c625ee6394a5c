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
    """The difference of one kernel.

    ``status``: "added", "removed" or "changed". ``numbers``: a line for each group of architectures
    with the same change. ``arch``: the first architecture whose PTX is known to differ, or empty.
    ``weight``: least number of instructions that were added or removed there.
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
            text.setdefault(kernel, (arch, sum(map(abs, _moved(was.mix, now.mix).values()))))
    for kernel in sorted(differing):
        both = kernel in before and kernel in after
        status = "changed" if both else "added" if kernel in after else "removed"
        lines = tuple(f"{', '.join(where)}: {s}" for s, where in differing[kernel].items())
        yield Change(kernel, status, lines, *text.get(kernel, ("", 0)))


def difference(old: Record | None, new: Record | None) -> str:
    """Returns how two records differ: ``"registers 126 -> 128, instructions 90 -> 91: …"``.

    Empty if no fact that both records have differs; a dash stands for a missing number.
    """
    was, now = _numbers(old), _numbers(new)
    said = [
        f"{name.replace('_', ' ')} {was.get(name, '-')} -> {now.get(name, '-')}"
        for name in dict.fromkeys((*was, *now))
        if was.get(name) != now.get(name)
    ]
    if old and new and _recompiled(old, new):
        moved = _moved(old.mix, new.mix)
        if not moved:
            return ", ".join([*said, "the same instructions in another order or otherwise used"])
        order = sorted(moved, key=lambda op: (-abs(moved[op]), op))
        said.append(
            f"instructions {sum(old.mix.values())} -> {sum(new.mix.values())}: "
            + ", ".join(f"{op} {moved[op]:+d}" for op in order[:_SHOWN])
            + (f", and {len(order) - _SHOWN} more" if len(order) > _SHOWN else "")
        )
    return ", ".join(said)


def _recompiled(old: Record, new: Record) -> bool:
    """Whether the PTX of two records differs; false if that of one is unknown."""
    return bool(old.ptx and new.ptx) and old.ptx != new.ptx


def _numbers(record: Record | None) -> dict[str, int]:
    if record is None:
        return {}
    optional = {"local": record.local} if record.local else {}
    return asdict(record.usage) | optional


def _moved(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
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
    taken: dict[str, str] = {}
    used = set()
    for (ours, theirs), _ in votes.most_common():
        if ours not in taken and theirs not in used:
            taken[ours] = theirs
            used.add(theirs)
    used |= set(_names(old))
    spare: Iterator[int] = count(1 + max((int(n) for name in used for n in _tail(name)), default=0))
    for name in dict.fromkeys(_names(new)):
        if name not in taken:
            stem = _NUMBER.sub("", name)
            taken[name] = name if name not in used else f"{stem}{next(spare)}"
            used.add(taken[name])
    return _NAME.sub(lambda match: taken[match[0]], new)


def _names(text: str) -> list[str]:
    return [match[0] for match in _NAME.finditer(text)]


def _tail(name: str) -> list[str]:
    """Returns the number at the end of ``name``, in a list; empty if there is none."""
    return [match[0] for match in _NUMBER.finditer(name)]


def _nameless(match: re.Match[str]) -> str:
    """Returns a matched name without its number."""
    return _NUMBER.sub("", match[0])


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields index pairs of the lines that a diff finds equal."""
    i = j = 0
    hunks = diff("\n".join(old) + "\n", "\n".join(new) + "\n", context=0)
    for line in (*hunks, f"@@ -{len(old) + 1} +{len(new) + 1} @@"):
        if found := re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start, taken, other, added = (int(n) if n else 1 for n in found.groups())
            # For a hunk without lines on one side, diff gives the line before it.
            start, other = start - (taken > 0), other - (added > 0)
            yield from zip(range(i, start), range(j, other), strict=True)
            i, j = start + taken, other + added
