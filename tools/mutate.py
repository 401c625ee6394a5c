"""Plants mistakes into a copy of the tree, one at a time; each must be caught by its gate.

    python tools/mutate.py                    # all of tools/mistakes.py; minutes
    python tools/mutate.py --only rows        # those whose text contains the words
    python tools/mutate.py --list

Each gate (a command line of Python) must pass without a mistake; ``--passed`` skips this. Then it
must find the mistake: by a failed test, or a check that reports the fault; a Python error or a
kernel that does not compile does not count. Prints a table; exit status 1 if a mistake is not
caught or its text no longer occurs.
"""

from __future__ import annotations

import argparse
import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from mistakes import MISTAKES, Command, Mistake  # noqa: E402

COPIED = ("ptxgen", "tests", "golden", "pyproject.toml")
LIMIT = 300
"""Time limit of one gate in seconds."""
FOUND = re.compile(
    r"^E  +(\S.*)|^((?:stale|forbidden|lacks|missing|spill) .*)|^(\S+: stale.*)"
    r"|^(.* (?:has moved|is gone|is not committed))|^(FAIL .*)",
    re.MULTILINE,
)
"""Lines of a gate's output that report a mistake."""
BROKEN = re.compile(
    r"^E +(?:\w+\.)*(?:SyntaxError|NameError|ImportError|CompileError|ModuleNotFoundError)\b.*"
    r"|^Traceback .*|errors? during collection|.*the compiler refused.*|.*no tests ran.*",
    re.MULTILINE,
)
"""Lines of a gate's output that show an error other than the mistake."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a gate: whether it ``caught`` the mistake, and its message or why it did not."""

    caught: bool
    said: str
    seconds: float = 0.0


def copy(tree: Path) -> None:
    """Copies the part of the tree that gates read, and compiles it to bytecode.

    Bytecode is validated by a hash of its source: a mistake may keep a file's size and time.
    """
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    by_hash = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(tree, quiet=2, invalidation_mode=by_hash)


def run(
    gate: Command, tree: Path, cache: Path, limit: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a gate in a copy of the tree, for at most ``limit`` seconds."""
    return subprocess.run(
        [sys.executable, *gate],
        cwd=tree,
        env={
            **os.environ,
            "PYTHONPATH": str(tree),
            "PYTHONDONTWRITEBYTECODE": "1",  # see copy()
            "PTXGEN_CACHE_DIR": str(cache),
        },
        capture_output=True,
        text=True,
        timeout=limit,
    )


def planted(mistake: Mistake, tree: Path) -> str | None:
    """Returns the file's text with the mistake; None if the replaced text does not occur exactly
    once.
    """
    text = (tree / mistake.file).read_text(encoding="utf-8")
    return text.replace(mistake.old, mistake.new) if text.count(mistake.old) == 1 else None


def outcome_of(done: subprocess.CompletedProcess[str], seconds: float) -> Outcome:
    """Returns the outcome of a finished gate: whether it found the planted mistake."""
    said = done.stdout + done.stderr
    if done.returncode == 0:
        return Outcome(False, "SURVIVED: the gate passes", seconds)
    if broken := BROKEN.search(said):
        return Outcome(False, f"BROKEN, not caught: {broken[0].strip()}", seconds)
    found = FOUND.search(said)
    if done.returncode != 1 or found is None:
        last = (said.strip().splitlines() or ["nothing said"])[-1]
        return Outcome(False, f"ended with {done.returncode}: {last}", seconds)
    return Outcome(True, next(text for text in found.groups() if text), seconds)


def plant_one(mistake: Mistake, tree: Path, cache: Path) -> Outcome:
    """Plants a mistake, runs its gate, and restores the file; returns the outcome."""
    path = tree / mistake.file
    before, began = path.read_text(encoding="utf-8"), time.perf_counter()
    text = planted(mistake, tree)
    if text is None:
        count = before.count(mistake.old)
        return Outcome(False, f"its text occurs {count} times in {mistake.file}, not once")
    path.write_text(text, encoding="utf-8")
    try:
        done = run(mistake.gate, tree, cache, LIMIT)
    except subprocess.TimeoutExpired:
        return Outcome(False, f"the gate took more than {LIMIT} s", LIMIT)
    finally:
        path.write_text(before, encoding="utf-8")
    return outcome_of(done, time.perf_counter() - began)


def merge_gates(gates: Iterable[Command]) -> list[Command]:
    """Returns each gate once; those that select tests of the same files are joined into one.

    (A gate that selects no test is found when a mistake is planted.)
    """
    selections: dict[tuple[Command, Command], list[str]] = {}
    for gate in dict.fromkeys(gates):
        at = gate.index("-k") + 1 if "-k" in gate else len(gate)
        selections.setdefault((gate[:at], gate[at + 1 :]), []).extend(gate[at : at + 1])
    joined = {
        key: (" or ".join(f"({words})" for words in each) if all(each) else "",) if each else ()
        for key, each in selections.items()
    }
    return [(*before, *words, *after) for (before, after), words in joined.items()]


def name_of(gate: Command) -> str:
    """Returns a gate's command line without the options that all gates share."""
    unsaid = ("-m", "-q", "-x", "-p", "no:cacheprovider", "--assert=plain")
    words = [word for word in gate if word not in unsaid]
    return " ".join(f"'{word}'" if " " in word else word for word in words)


def plant(mistakes: Sequence[Mistake], jobs: int, passed: bool = False) -> list[Outcome]:
    """Plants all mistakes, ``jobs`` at a time; returns their outcomes.

    Raises SystemExit for a gate that fails without a mistake. ``passed``: skips that check.
    """
    with tempfile.TemporaryDirectory(prefix="ptxgen-mutate-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for i in range(jobs):
            tree = Path(folder) / f"tree{i}"
            tree.mkdir()
            copy(tree)
            trees.put(tree)
        cache = Path(folder) / "cache"
        cache.mkdir(mode=0o700)

        def clean(gate: Command) -> tuple[Command, str]:
            tree = trees.get()
            try:
                done = run(gate, tree, cache)
            finally:
                trees.put(tree)
            skipped = gate[1] == "pytest" and not re.search(r"\d+ passed", done.stdout)
            return gate, done.stdout + done.stderr if done.returncode or skipped else ""

        def one(mistake: Mistake) -> Outcome:
            tree = trees.get()
            try:
                return plant_one(mistake, tree, cache)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            gates = [] if passed else merge_gates(m.gate for m in mistakes)
            for gate, said in pool.map(clean, gates):
                if said:
                    sys.exit(f"without a mistake, this gate fails: {name_of(gate)}\n{said}")
            if not passed:
                note("all gates pass without a mistake")
            outcomes = []
            for mistake, outcome in zip(mistakes, pool.map(one, mistakes), strict=True):
                outcomes.append(outcome)
                note(row(mistake, outcome))
            return outcomes


def row(mistake: Mistake, outcome: Outcome) -> str:
    """Returns a mistake's lines of the table."""
    mark = "caught" if outcome.caught else "NOT   "
    said = outcome.said if len(outcome.said) <= 90 else outcome.said[:87] + "..."
    where = mistake.file.removeprefix("ptxgen/")
    return (
        f"{mark}  {mistake.what}  [{where}]\n"
        f"        {name_of(mistake.gate)}  ({outcome.seconds:.0f} s)\n        {said}"
    )


def note(text: str) -> None:
    """Prints a line and flushes it."""
    print(text, flush=True)


def chosen(only: Iterable[str]) -> list[Mistake]:
    """Returns the mistakes whose name, file or gate contains each of the words ``only``."""
    return [
        m for m in MISTAKES if all(word in f"{m.what} {m.file} {name_of(m.gate)}" for word in only)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="WORD", help="those with all words"
    )
    parser.add_argument("--jobs", type=int, default=2, help="at a time (default: %(default)s)")
    parser.add_argument(
        "--torch", action="store_true", help="those whose gates need PyTorch, in place of others"
    )
    parser.add_argument(
        "--passed", action="store_true", help="do not run the gates without a mistake first"
    )
    parser.add_argument("--list", action="store_true", help="say what would be planted, and stop")
    arguments = parser.parse_args(argv)
    mistakes = [m for m in chosen(arguments.only) if m.torch == arguments.torch]
    if arguments.list:
        for mistake in mistakes:
            note(f"{mistake.what}  [{mistake.file}]\n        {name_of(mistake.gate)}")
        return 0
    if not mistakes:
        others = "; others need PyTorch (--torch)" if not arguments.torch else ""
        sys.exit(f"no mistake has these words{others}")
    began = time.perf_counter()
    outcomes = plant(mistakes, max(arguments.jobs, 1), arguments.passed)
    survivors = [m.what for m, o in zip(mistakes, outcomes, strict=True) if not o.caught]
    took = time.perf_counter() - began
    note(f"{len(outcomes) - len(survivors)} of {len(outcomes)} mistakes caught in {took:.0f} s")
    for what in survivors:
        note(f"not caught: {what}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
