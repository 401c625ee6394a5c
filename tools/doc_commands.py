"""Runs every command and program of the documents from an installed wheel.

    python tools/doc_commands.py dist/*.whl                     # this Python, the newest NumPy
    python tools/doc_commands.py dist/*.whl --python python3.13 --numpy oldest --match README

Each line of a ``sh`` block and each ``python`` block runs in one empty directory, in a fresh
environment that has the wheel alone. Words after a fence's language say what else its block needs:

    gpu        a GPU: not run
    checkout   a checkout with an editable install: runs in a clone of HEAD with --checkout
    test       the packages of ``.[test]``: runs after those are installed (so with other extras)
    recipe     the edits that the page describes: not run

Lines of make, pip and pytest are not run (they have gates of their own), nor are lines with
``FILE``, which stands for a file of the reader's. Prints a table; status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import oldest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("*.md", "docs/**/*.md", "examples/*.md")
FENCE = re.compile(r"^```(sh|python)( [^\n]+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST_NUMPY = {"3.13": "2.1.0", "3.14": "2.3.2"}
"""First NumPy release with wheels for a Python, if the lower bound of NumPy has none for it."""
EXTRAS = ("completion", "test")
"""Extras of the package that a block may need."""
OWN_GATES = ("make", "pip", "pytest")
LIMIT = 600
"""Time limit of one command or program in seconds."""
DOCTEST = "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], False)[0] > 0)"


@dataclass(frozen=True)
class Item:
    """A command or program of a document; ``needs``: words after its fence's language."""

    location: str
    kind: str
    text: str
    needs: frozenset[str]

    @property
    def phase(self) -> str:
        """Name of the environment that the item runs in: "wheel", an extra, or "checkout"."""
        return next((word for word in ("checkout", *EXTRAS) if word in self.needs), "wheel")

    @property
    def shown(self) -> str:
        """First line of the item's text, shortened."""
        first = self.text.strip().splitlines()[0]
        return first if len(first) < 90 else first[:87] + "..."

    def skip_reason(self, *, checkout: bool) -> str:
        """Returns the reason why the item is not run, or an empty text."""
        if "gpu" in self.needs:
            return "needs a GPU"
        if "recipe" in self.needs:
            return "follows the page's edits"
        if "from" in self.needs:
            return "an excerpt of a file"
        if self.kind == "sh":
            if self.text.split()[0] in OWN_GATES:
                return "has a gate of its own"
            if re.search(r"\bFILE\b", self.text):
                return "FILE is the reader's"
        return "" if checkout or self.phase != "checkout" else "needs a checkout (--checkout)"


def collect() -> Iterator[Item]:
    """Yields the commands and programs of all documents, in order."""
    for document in sorted(p for pattern in DOCUMENTS for p in ROOT.glob(pattern)):
        text = document.read_text(encoding="utf-8")
        for block in FENCE.finditer(text):
            kind, needs = block[1], frozenset((block[2] or "").split())
            line = text.count("\n", 0, block.start(3)) + 1
            name = document.relative_to(ROOT).as_posix()
            if kind == "python":
                yield Item(f"{name}:{line}", kind, block[3], needs)
                continue
            for at, command in enumerate(block[3].splitlines(), line):
                if said := re.sub(r"(^|\s+)#.*", "", command):
                    yield Item(f"{name}:{at}", kind, said, needs)


def oldest_numpy(python: str) -> str:
    """Returns pyproject.toml's lower bound of NumPy, or the first release with wheels for
    ``python``.
    """
    asked = [python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    bounds = dict(each.split("==") for each in oldest.requirements([]))
    return FIRST_NUMPY.get(version, bounds["numpy"])


class Environment:
    """A virtual environment with the wheel, and the empty directory in which commands run."""

    def __init__(self, folder: Path, python: str, wheel: Path, numpy: str) -> None:
        self.wheel, self.clone = wheel, folder / "clone"
        self.numpy = [f"numpy=={oldest_numpy(python)}"] if numpy == "oldest" else []
        self.python, self.empty = folder / "venv/bin/python", folder / "empty"
        self.path = f"{self.python.parent}:/usr/bin:/bin"
        self.cache = folder / "cache"
        self.empty.mkdir()
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        self._install(str(wheel))

    def _install(self, *what: str) -> None:
        command = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *what, *self.numpy], check=True)

    def prepare(self, phase: str) -> None:
        """Installs the packages of ``phase`` that earlier phases do not need."""
        if phase in EXTRAS:
            self._install(f"{self.wheel}[{phase}]")
        if phase == "checkout":
            subprocess.run(["git", "clone", "--quiet", ROOT, self.clone], check=True)
            self._install("-e", f"{self.clone}[test,bench]")

    def run(self, item: Item) -> str:
        """Runs an item; returns an empty text, or status and last output line of a failed one."""
        where = self.clone if item.phase == "checkout" else self.empty
        if item.kind == "sh":
            command = ["bash", "-c", item.text]
        else:
            program = self.empty.parent / "program"
            program.write_text(item.text, encoding="utf-8")
            how = ["-c", DOCTEST] if item.text.startswith(">>>") else []
            command = [str(self.python), *how, str(program)]
        env = {"PATH": self.path, "HOME": str(self.empty), "PTXGEN_CACHE_DIR": str(self.cache)}
        try:
            done = subprocess.run(
                command, cwd=where, env=env, capture_output=True, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return f"ran past {LIMIT} s"
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or [""]
        return "" if done.returncode == 0 else f"status {done.returncode}: {said[-1]}"


def main() -> int:
    """Runs the selected commands and programs, and prints a table of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    parser.add_argument("--numpy", choices=("oldest", "newest"), default="newest")
    parser.add_argument("--match", default="", metavar="TEXT", help="only places with this text")
    parser.add_argument("--checkout", action="store_true", help="those that need a checkout, too")
    given = parser.parse_args()
    items = [item for item in collect() if given.match in item.location]
    reasons: dict[str, int] = {}
    ran = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        made = Environment(Path(folder), given.python, given.wheel.resolve(), given.numpy)
        for phase in ("wheel", *EXTRAS, "checkout"):
            chosen = [item for item in items if item.phase == phase]
            todo = [i for i in chosen if not i.skip_reason(checkout=given.checkout)]
            for item in chosen:
                if reason := item.skip_reason(checkout=given.checkout):
                    reasons[reason] = reasons.get(reason, 0) + 1
                    print(f"left out  {item.location:34} {item.shown}  ({reason})", flush=True)
            if todo:
                made.prepare(phase)
            for item in todo:
                begun = time.perf_counter()
                wrong = made.run(item)
                took = time.perf_counter() - begun
                ran, failed = ran + 1, failed + bool(wrong)
                state = "FAILED" if wrong else "ran"
                print(f"{state:8}  {item.location:34} {item.shown}  {took:.1f} s", flush=True)
                if wrong:
                    print(f"          {wrong}", flush=True)
    out = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    print(f"{ran - failed} of {ran} ran; left out: {out}")
    return int(failed > 0 or ran == 0)


if __name__ == "__main__":
    sys.exit(main())
