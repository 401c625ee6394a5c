"""golden check, update, diff: the committed PTX and resource use of every kernel."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxgen.cli.kernels import selected
from ptxgen.cli.ui import Progress, emit, note, paint, plural, size
from ptxgen.errors import OptionError

if TYPE_CHECKING:
    from ptxgen.golden import Goldens
    from ptxgen.spec import KernelSpec

_SHOWN = 40


def add_commands(commands: Any) -> None:
    """Adds this module's commands to the parser."""
    group = commands.add_parser(
        "golden",
        help="compare the generated code with what is committed",
        description="golden/ holds the PTX of every kernel and what it takes per architecture. "
        "A refactor shows no difference; a change shows one that a reviewer can read.",
    )
    actions = group.add_subparsers(metavar="ACTION", required=True)

    action = actions.add_parser(
        "check",
        help="fail on missing, orphan and stale goldens, on spills and on forbidden instructions",
    )
    _common(action)
    action.set_defaults(run=_check)

    action = actions.add_parser("update", help="write the goldens; review and commit the result")
    _common(action)
    action.set_defaults(run=_update)

    action = actions.add_parser(
        "diff",
        help="what changed: numbers first, then text",
        description="Compares the goldens with what specs and templates make now; with "
        "--against, the goldens of a git revision with those in the working tree (which "
        "compiles nothing).",
    )
    _common(action)
    action.add_argument("--stat", action="store_true", help="numbers only, no text")
    action.add_argument("--against", metavar="REV", help="the older goldens are those of REV")
    action.add_argument("--to", metavar="REV", help="the newer ones too (with --against)")
    action.add_argument("--exit-code", action="store_true", help="exit with 1 if anything differs")
    action.set_defaults(run=_diff)


def _common(action: argparse.ArgumentParser) -> None:
    action.add_argument("spec", metavar="SPEC", nargs="*", help="kernels (default: all)")
    action.add_argument(
        "--golden", type=Path, metavar="DIR", help="the folder (default: golden/ of the checkout)"
    )


def _folder(arguments: argparse.Namespace) -> Path:
    from ptxgen.golden import checkout_folder

    return arguments.golden.resolve() if arguments.golden else checkout_folder()


def _fresh(specs: Sequence[KernelSpec]) -> Goldens:
    from ptxgen.golden import build

    with Progress("compiling") as progress:
        return build(specs, progress=progress)


def _check(arguments: argparse.Namespace) -> int:
    from ptxgen.golden import check, load
    from ptxgen.tiles import SPECS

    folder = _folder(arguments)
    specs = selected(arguments.spec)
    problems = check(load(folder), _fresh(specs), SPECS.values())
    if arguments.spec:
        names = {spec.name for spec in specs}
        problems = [p for p in problems if p.kernel in names or p.arch == "*"]
    for problem in problems[:_SHOWN]:
        emit(problem)
    if len(problems) > _SHOWN:
        emit(f"... and {len(problems) - _SHOWN} more")
    if problems:
        note(
            f"goldens: {plural(len(problems), 'problem')}. `ptxgen golden diff` shows what "
            "changed, `ptxgen golden update` accepts it"
        )
        return 1
    emit(f"goldens: {plural(len(specs), 'kernel')} as committed")
    return 0


def _update(arguments: argparse.Namespace) -> int:
    from ptxgen.golden import load, rules, save
    from ptxgen.tiles import SPECS

    folder = _folder(arguments)
    specs = selected(arguments.spec)
    stored, fresh = load(folder), _fresh(specs)
    touched = {spec.name for spec in specs} | (stored.kernels() - SPECS.keys())  # orphans go
    if arguments.spec and stored.nvrtc not in ("", fresh.nvrtc):
        raise OptionError(
            f"the goldens were made with NVRTC {stored.nvrtc}, now it is {fresh.nvrtc}; "
            "update all kernels at once"
        )
    goldens = stored.replaced(fresh, touched)
    changed = save(folder, goldens)
    for name in changed:
        emit(name)
    text = sum(len(ptx) for ptx in goldens.ptx.values())
    emit(
        f"goldens: {plural(len(changed), 'file')} changed; {folder.name}/ holds "
        f"{plural(len(goldens.kernels()), 'kernel')}, {size(text)} of PTX"
    )
    problems = sorted(rules(goldens))
    for problem in problems:
        note(problem)
    return 1 if problems else 0


def _diff(arguments: argparse.Namespace) -> int:
    from ptxgen.golden import changes, load, load_revision

    folder = _folder(arguments)
    names = {spec.name for spec in selected(arguments.spec)} if arguments.spec else None
    if arguments.to and not arguments.against:
        raise OptionError("--to REV needs --against REV, the revision to compare it with")
    if arguments.against:
        old = load_revision(arguments.against, folder)
        new = load_revision(arguments.to, folder) if arguments.to else load(folder)
    else:
        old, new = load(folder), _fresh(selected(arguments.spec))
    found = [c for c in changes(old, new) if names is None or c.kernel in names]
    for change in found:
        emit(f"{change.status:<8} {paint(change.kernel, 'bold')}")
        for line in change.numbers:
            emit(f"  {line}")
    if not arguments.stat:
        for change in found:
            if change.text:
                emit()
            for line in change.text:
                colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
                emit(paint(line, colour) if colour else line)
    counts = [(s, sum(c.status == s for c in found)) for s in ("added", "removed", "changed")]
    said = ", ".join(f"{count} {status}" for status, count in counts if count)
    note(f"goldens: {said or 'no difference'}")
    return 1 if found and arguments.exit_code else 0
