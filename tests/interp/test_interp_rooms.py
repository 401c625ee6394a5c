"""The rooms of the interpreter: imports go one way between them, and never in a circle."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import ptxgen.interp

ROOT = Path(ptxgen.interp.__file__).parent
ROOMS = ("text", "values", "memory", "units", "run", "__init__")
NAME = "ptxgen.interp."


def imported(path: Path) -> set[str]:
    """The modules of the interpreter that one imports anywhere, for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(NAME):
            here = (node.module or "").removeprefix(NAME)
            if (ROOT / here.replace(".", "/")).is_dir():
                found |= {f"{here}.{alias.name}" for alias in node.names}
            else:
                found.add(here)
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix(NAME) for a in node.names if a.name.startswith(NAME)}
    return found


def graph() -> dict[str, set[str]]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): imported(path)
        for path in sorted(ROOT.rglob("*.py"))
    }


def test_imports_between_rooms_go_one_way() -> None:
    edges = [(a, b) for a, names in graph().items() for b in names]
    assert len(edges) > 50
    for importer, name in edges:
        here, there = importer.partition(".")[0], name.partition(".")[0]
        assert ROOMS.index(there) <= ROOMS.index(here), f"{importer} imports {name}, below it"


def test_no_modules_import_each_other() -> None:
    order = list(TopologicalSorter(graph()).static_order())  # raises CycleError with the circle
    assert order.index("text.ptx") < order.index("units.kernel") < order.index("run.program")
