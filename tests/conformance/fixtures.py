"""Recorded results on disk: one compressed file for each family, and an index.

``index.json`` names the machine and says, for each case, which kernel and operands (their
digest) the results belong to, or why there are none. ``<family>.xz`` holds the results of the
family's recorded cases, one behind the other in the order of the index.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from conformance.case import Case

DIRECTORY = Path(__file__).parent / "fixtures"
INDEX = "index.json"
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


class Fixtures:
    """The results of one recording."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._directory = directory
        self.index: dict[str, Any] = json.loads((directory / INDEX).read_text())
        self.digests: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._places: dict[str, tuple[str, int, int]] = {}
        self._unpacked: dict[str, bytes] = {}
        for family, entries in self.index["families"].items():
            at = 0
            for name, entry in entries.items():
                self.digests[name] = entry["digest"]
                if "failure" in entry:
                    self.failures[name] = entry["failure"]
                    continue
                self._places[name] = family, at, entry["nbytes"]
                at += entry["nbytes"]

    def results(self, name: str) -> bytes:
        """Returns the recorded results of a case; raises KeyError if none were recorded."""
        family, at, nbytes = self._places[name]
        if family not in self._unpacked:
            packed = (self._directory / f"{family}.xz").read_bytes()
            self._unpacked[family] = lzma.decompress(packed)
        return self._unpacked[family][at : at + nbytes]


def write(
    directory: Path,
    about: Mapping[str, Any],
    cases: Iterable[Case],
    results: Mapping[str, bytes],
    failures: Mapping[str, str],
) -> int:
    """Writes a recording; the number of its bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in (*directory.glob("*.xz"), *directory.glob(INDEX)):
        old.unlink()
    families: dict[str, dict[str, Any]] = {}
    parts: dict[str, list[bytes]] = {}
    for case in cases:
        entry: dict[str, Any] = {"digest": case.digest}
        if case.name in results:
            entry["nbytes"] = len(results[case.name])
            parts.setdefault(case.family, []).append(results[case.name])
        else:
            entry["failure"] = failures.get(case.name, "not run")
        families.setdefault(case.family, {})[case.name] = entry
    for family, pieces in parts.items():
        packed = lzma.compress(b"".join(pieces), format=lzma.FORMAT_XZ, filters=_FILTERS)
        (directory / f"{family}.xz").write_bytes(packed)
    lines = [f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in about.items()]
    blocks = []
    for family, entries in families.items():
        inside = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
        blocks.append(f"{json.dumps(family)}: {{\n" + ",\n".join(inside) + "\n}")
    text = "{\n" + "".join(lines) + '"families": {\n' + ",\n".join(blocks) + "\n}\n}\n"
    (directory / INDEX).write_text(text)
    return sum(path.stat().st_size for path in directory.iterdir())
