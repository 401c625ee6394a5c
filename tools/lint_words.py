"""Checks docstrings, names and commit subjects. ``make lint`` runs it.

A docstring is the text of a module, class or function, or the text after an assignment. Its first
line stands alone: it begins with a noun phrase or a verb in the third person, and has three words.
Functions, classes, fields, parameters and variables of the package have no name of BANNED.
A commit subject is an imperative of at most 72 characters without a full stop; commits after the
one that added this file are checked.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
FOLDERS = "ptxgen", "tests", "tools", "bench", "examples"
OPENINGS = (
    "What", "Which", "Where", "How", "Of", "As", "The same", "That of", "Those of", "Those", "That",
)  # fmt: skip
"""Forbidden first words of docstrings: they refer to a line above, or ask."""
LEAST = 3
"""Minimum number of words in a docstring."""
SUBJECT = 72
"""Maximum number of characters in a commit subject."""
FORMS = (
    "Adds",
    "Added",
    "Adding",
    "Fixes",
    "Fixed",
    "Fixing",
    "Makes",
    "Made",
    "Removes",
    "Removed",
)
"""Forbidden first words of commit subjects: verbs that are not imperative."""


BANNED = frozenset(
    {
        "add_up", "alone_along", "heard", "lie", "look_up", "meet", "mine", "missed", "no_way",
        "pw", "rowops", "rowwise", "stand", "stands", "swap", "told", "walked", "watched", "weigh",
        "whose", "workload",
    }
)  # fmt: skip
"""Names that say nothing of a thing, or have another meaning in the field; without underscores at
their ends, in lower case."""


def named(source: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the name of each definition, parameter and assignment."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def is_banned(name: str) -> bool:
    """Whether a name is one of :data:`BANNED`."""
    return name.strip("_").lower() in BANNED


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each docstring."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for i, each in enumerate(body):
            text = each.value if isinstance(each, ast.Expr) else None
            if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
                continue
            first = i == 0 and isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            if first or (i and isinstance(body[i - 1], ast.Assign | ast.AnnAssign)):
                yield each.lineno, text.value


def fault(text: str) -> str:
    """Returns a description of a docstring's fault, or an empty text."""
    words = text.split()
    if len(words) < LEAST:
        return f"has {len(words)} words; takes {LEAST} or more"
    found = next((o for o in OPENINGS if words[: len(o.split())] == o.split()), None)
    return (
        f"begins with {found!r}; takes a noun phrase or a verb in the third person" if found else ""
    )


def subject_fault(subject: str) -> str:
    """Returns a description of a commit subject's fault, or an empty text."""
    if len(subject) > SUBJECT:
        return f"has {len(subject)} characters; takes {SUBJECT}"
    if subject.endswith("."):
        return "ends with a full stop"
    opening = any(subject.startswith(f"{words} ") for words in (*OPENINGS, *FORMS))
    return "" if subject[:1].isupper() and not opening else "begins with no imperative"


def subjects() -> list[str]:
    """Returns the subjects of commits after the one that added this file; none without git."""
    own = Path(__file__).relative_to(CHECKOUT).as_posix()

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True)
        return done.stdout.splitlines() if done.returncode == 0 else []

    brought = git("log", "--diff-filter=A", "--format=%H", "--", own)
    return git("log", "--no-merges", "--format=%s", f"{brought[-1]}..HEAD") if brought else []


def faults(folders: list[str]) -> Iterator[tuple[str, str]]:
    """Yields file name and message of each fault of a docstring or a name."""
    for folder in folders:
        root = CHECKOUT / folder
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            source, name = path.read_text(encoding="utf-8"), path.relative_to(CHECKOUT).as_posix()
            for line, text in texts(source):
                if why := fault(text):
                    yield name, f"{name}:{line}: {text.split(chr(10))[0][:60]!r} {why}"
            for line, word in named(source) if name.startswith("ptxgen/") else ():
                if is_banned(word):
                    yield name, f"{name}:{line}: {word!r} is no name here (BANNED)"


def main() -> int:
    """Prints the faults, or their counts by folder; returns 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=list(FOLDERS), metavar="PATH")
    parser.add_argument("--count", action="store_true", help="numbers by room alone")
    options = parser.parse_args()
    found = [*faults(options.folders)]
    if options.count:
        rooms = Counter("/".join(name.split("/")[:2]) for name, _ in found)
        for room, number in rooms.most_common():
            print(f"{number:5} {room}")
        print(f"{len(found):5} in all")
        return 0
    lines = [line for _, line in found]
    lines += [f"commit {s!r} {why}" for s in subjects() if (why := subject_fault(s))]
    print("\n".join(lines), end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
