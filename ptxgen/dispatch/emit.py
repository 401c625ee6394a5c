"""Writes the dispatch functions of ``generated/`` from the route tables of ``tiles``.

Each line of generated code is an :class:`~ptxgen.expr.Expr` as Python text, or a row of its
constants (:mod:`ptxgen.dispatch.modules`). A function yields the routes that the architecture runs
and whose ``requires`` holds, each with its predicted time. If a table's kernels have no cost, its
routes are taken in order: the function yields the first whose ``prefer`` holds as well.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxgen.dispatch.choice import Dispatch, by_architecture, named
from ptxgen.dispatch.layout import quoted, tuple_of
from ptxgen.dispatch.modules import Module, modules
from ptxgen.dispatch.table import Table, condition, conjuncts, tables

__all__ = ["Difference", "Table", "checked_in", "condition", "conjuncts", "functions", "generate"]
__all__ += ["source", "sources", "tables"]

GENERATED = Path(__file__).parent / "generated"


def sources(of: Iterable[Table] | None = None) -> dict[str, str]:
    """Returns the text of every generated module, by file name."""
    made = modules(tables() if of is None else of)
    return {"__init__.py": _index(made), **{f"{module.name}.py": module.text for module in made}}


def source(table: Table) -> str:
    """Returns the text of a module that serves one table alone."""
    (module,) = modules([table])
    return module.text


def checked_in(table: Table) -> str:
    """Reads the committed module that serves a table. Raises KeyError if there is none."""
    from ptxgen.dispatch.generated import TABLES

    return (GENERATED / f"{TABLES[table.key]}.py").read_text(encoding="utf-8")


def functions(table: Table) -> dict[str, Dispatch]:
    """Generates and compiles the dispatch functions of a table; returns them by architecture."""
    namespace: dict[str, Any] = {}
    exec(compile(source(table), f"<dispatch of {' '.join(table.key)}>", "exec"), namespace)
    return by_architecture(namespace["candidates"], table.key)


@dataclass(frozen=True)
class Difference:
    """A generated file whose text differs from what the tables generate. ``what``: "stale",
    "missing" or "orphan" (a file that nothing generates); ``diff``: unified diff from the file to
    the generated text.
    """

    path: Path
    what: str  # "stale", "missing" or "orphan"
    diff: str  # unified, from the file to what it should be

    def __str__(self) -> str:
        return f"{self.path.name}: {self.what}\n{self.diff}"


def generate(
    check: bool = False, of: Iterable[Table] | None = None, directory: Path = GENERATED
) -> list[Difference]:
    """Writes the generated files of the tables ``of`` (default: all) to ``directory``, or with
    ``check`` only compares them.

    Returns the files that differed: stale, missing, or orphans, which nothing generates (without
    ``check`` they are removed).
    """
    wanted: dict[Path, str | None] = dict.fromkeys(
        p for p in sorted(directory.glob("*")) if p.is_file()
    )
    wanted |= {directory / name: text for name, text in sources(of).items()}
    return written(wanted, check)


def written(wanted: Mapping[Path, str | None], check: bool = False) -> list[Difference]:
    """Writes files, or with ``check`` only compares them; returns those that differed.

    ``wanted``: text by path; None means that the file is removed.
    """
    found = []
    for path in sorted(wanted):
        old = path.read_text(encoding="utf-8") if path.exists() else None
        new = wanted[path]
        if old == new:
            continue
        what = "missing" if old is None else "orphan" if new is None else "stale"
        found.append(Difference(path, what, _diff(path.name, old or "", new or "")))
        if check:
            continue
        if new is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8")
    return found


# -- text ---------------------------------------------------------------------
def _diff(name: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), f"{name} (on disk)", f"{name} (from the tables)"
    )
    return "".join(lines)


def _index(of: Iterable[Module]) -> str:
    homes = {table.key: module.name for module in of for table in module.tables}
    lines = [
        '"""The modules of generated dispatch functions, by the table\'s key.',
        "",
        "A module is imported when one of its tables is first used.",
        "",
        "Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate",
        '"""',
        "",
        "TABLES: dict[tuple[str, ...], str] = {",
        *(
            f"    {tuple_of([*map(quoted, key)])}: {quoted(homes[key])},"
            for key in sorted(homes, key=named)
        ),
        "}",
    ]
    return "\n".join(lines) + "\n"
