"""Commands ``golden check``, ``update``, ``diff``, ``bits``: compare code and bits with goldens."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxgen.cli.kernels import UnknownSpecError, find
from ptxgen.errors import DtypeError, OptionError, PtxgenError
from ptxgen.ui import Progress, emit, note, paint, plural, size

if TYPE_CHECKING:
    from ptxgen.golden import Change, Goldens
    from ptxgen.spec import KernelSpec

_SHOWN = 40
_SECONDS = 0.3  # that a CPU takes for a kernel and an architecture, on the average


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen golden`` and its actions to the subcommands ``commands``."""
    group = commands.add_parser(
        "golden",
        help="compare the generated code with what is committed",
        description="golden/ has a line for every kernel and architecture (digests, registers, "
        "spills, instructions) and the PTX of some. A refactor shows no difference; a change "
        "shows one that a reviewer can read. docs/how-to/diff-ptx.md says more.",
    )
    actions = group.add_subparsers(metavar="ACTION", required=True)

    action = actions.add_parser(
        "check",
        help="fail on missing, orphan and stale goldens, on spills and on forbidden instructions",
        description="Compiles the kernels whose source is not the recorded one, and a sample of "
        "the others.",
    )
    _common(action)
    action.add_argument("--all", action="store_true", help="compile every kernel, not a sample")
    action.add_argument(
        "--sample",
        type=_count,
        default=16,
        metavar="N",
        help="kernels to compile afresh, of as many files of records (default: %(default)s)",
    )
    action.add_argument(
        "--seed", metavar="TEXT", help="which ones (default: the date, so every day others)"
    )
    action.set_defaults(run=_check)

    action = actions.add_parser(
        "update",
        help="write the goldens; review and commit the result",
        description="Compiles the kernels whose source is not the recorded one.",
    )
    _common(action)
    action.add_argument("--all", action="store_true", help="compile every kernel")
    action.set_defaults(run=_update)

    action = actions.add_parser(
        "diff",
        help="what changed: numbers first, then text",
        description="Compares the goldens of a revision with the kernels as they are now, or "
        "with those of another revision. Text is made by each side's own code.",
    )
    _common(action)
    action.add_argument("--stat", action="store_true", help="numbers only, no text")
    action.add_argument(
        "--against", metavar="REV", default="HEAD", help="the older side (default: %(default)s)"
    )
    action.add_argument("--to", metavar="REV", help="the newer side (default: the working tree)")
    action.add_argument(
        "--limit",
        type=_count,
        default=5,
        metavar="N",
        help="how many kernels get text, those that changed most first (default: %(default)s)",
    )
    action.add_argument("--exit-code", action="store_true", help="exit with 1 if anything differs")
    action.set_defaults(run=_diff)

    action = actions.add_parser(
        "bits",
        help="fail if a result of an oracle has other bits than those committed",
        description="golden/bits.json has digests of what the oracles return on fixed inputs, by "
        "contract, operation and dtype. What moves a bit is a new version of its contract.",
    )
    action.add_argument("--update", action="store_true", help="write them; review and commit")
    _folder_option(action)
    action.set_defaults(run=_bits)


def _common(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "match", metavar="MATCH", nargs="*", help="kernels, or patterns such as 'mma_nn_*'"
    )
    _folder_option(action)


def _folder_option(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--golden", type=Path, metavar="DIR", help="the folder (default: golden/ of the checkout)"
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return int(text)


def _folder(arguments: argparse.Namespace) -> Path:
    from ptxgen.golden import checkout_folder

    return arguments.golden.resolve() if arguments.golden else checkout_folder()


def _kernels() -> dict[str, KernelSpec]:
    """Returns the kernels with golden records, by name: those of the tables, and pinned ones."""
    from ptxgen.tiles import PINNED, SPECS

    return {**SPECS, **PINNED}


def _selected(patterns: Sequence[str]) -> list[KernelSpec]:
    """Returns the kernels whose names match one of ``patterns``; all kernels without a pattern."""
    specs = _kernels()
    chosen: dict[str, KernelSpec] = {}
    for pattern in patterns or ["*"]:
        names = [name for name in specs if fnmatchcase(name, pattern)]
        if not names and not set(pattern) & set("*?["):
            names = [find(pattern).name]  # raises an error that proposes similar names
        if not names and patterns:
            raise UnknownSpecError(f"no kernel matches {pattern!r}; see ptxgen list")
        chosen |= {name: specs[name] for name in names}
    return list(chosen.values())


def _compiled(specs: Sequence[KernelSpec], why: str, **options: Any) -> Goldens:
    from ptxgen.build.compile import cpus
    from ptxgen.golden import arches, build

    if specs:
        count, workers = sum(len(arches(spec)) for spec in specs), cpus()
        note(
            f"compiling {plural(len(specs), 'kernel')} ({why}): {plural(count, 'compilation')} on "
            f"{plural(workers, 'CPU')}, about {max(1, round(count * _SECONDS / workers))} s"
        )
    with Progress("compiling") as progress:
        return build(specs, progress=progress, **options)


def _check(arguments: argparse.Namespace) -> int:
    from ptxgen.build.cache import Anew
    from ptxgen.build.compile import TOOLCHAIN
    from ptxgen.golden import changed, check, load, sample

    stored = load(_folder(arguments))
    specs = _selected(arguments.match)
    # All goldens of another compiler are stale, which one message says.
    known = stored.kernels() if stored.nvrtc == TOOLCHAIN.nvrtc else set()
    recorded = [spec for spec in specs if spec.name in known]
    differing = changed(stored, recorded)
    emit(f"{plural(len(recorded), 'source')} rendered: {len(differing)} not as recorded")
    fresh = _compiled(differing, "the source, or how it is compiled, has changed")
    others = [spec for spec in recorded if spec not in differing]
    seed = arguments.seed or time.strftime("%Y-%m-%d", time.gmtime())
    if arguments.all:
        again = _compiled(others, "all", cache=Anew())
    else:
        others = sample(others, arguments.sample, seed)
        again = _compiled(others, f"a sample, --seed {seed}", cache=None)
    fresh = replace(
        fresh,
        records={**fresh.records, **again.records},
        texts={**fresh.texts, **again.texts},
    )
    problems = check(stored, fresh, _kernels().values())
    if arguments.match:
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
    emit(
        f"goldens: {plural(len(specs), 'kernel')} as committed, "
        f"{len({kernel for _, kernel in fresh.records})} of them compiled and compared"
    )
    return 0


def _update(arguments: argparse.Namespace) -> int:
    from ptxgen.build.compile import TOOLCHAIN
    from ptxgen.golden import changed, check, load, read_by_people, save, textless, updated

    folder = _folder(arguments)
    specs, kernels = _selected(arguments.match), _kernels()
    stored = load(folder)
    if arguments.match and stored.nvrtc not in ("", TOOLCHAIN.nvrtc):
        raise OptionError(
            f"the goldens were made with NVRTC {stored.nvrtc}, now it is {TOOLCHAIN.nvrtc}; "
            "update all kernels at once"
        )
    shown = read_by_people(kernels.values())
    todo = [*specs] if arguments.all else changed(stored, specs)
    lacking = textless(stored, kernels.values())
    todo += [spec for spec in specs if spec.name in lacking and spec not in todo]
    fresh = _compiled(todo, "all" if arguments.all else "changed, or without its text")
    goldens = updated(stored, fresh, kernels, shown)
    changed_files = save(folder, goldens)
    for name in changed_files:
        emit(name)
    text = sum(len(ptx) for ptx in goldens.texts.values())
    emit(
        f"goldens: {plural(len(changed_files), 'file')} changed; {folder.name}/ holds "
        f"{plural(len(goldens.kernels()), 'kernel')}, {size(text)} of PTX"
    )
    problems = [
        p
        for p in check(goldens, fresh, kernels.values())
        if not arguments.match or p.kind not in ("missing", "orphan")
    ]
    for problem in problems:
        note(problem)
    return 1 if problems else 0


def _bits(arguments: argparse.Namespace) -> int:
    try:
        from ptxgen.golden import bits
    except ModuleNotFoundError as error:
        raise DtypeError(
            f"`ptxgen golden bits` makes arrays of bfloat16, and {error.name} is not installed: "
            "pip install 'ptxgen[test]'"
        ) from error
    path = _folder(arguments) / "bits.json"
    found = bits.digests()
    moved = bits.differences(bits.load(path), found)
    for each in moved[:_SHOWN]:
        emit(each)
    if len(moved) > _SHOWN:
        emit(f"... and {len(moved) - _SHOWN} more")
    if arguments.update:
        path.write_text(bits.text(found), encoding="utf-8")
        emit(f"bits: {plural(len(moved), 'difference')} written to {path.name}")
        return 0
    if moved:
        note(
            f"bits: {plural(len(moved), 'difference')}. What moves a bit is a new version of its "
            "contract; `ptxgen golden bits --update` accepts it"
        )
        return 1
    emit(f"bits: {plural(bits.count(found), 'digest')} as committed")
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    from ptxgen.golden import Revision, changes

    folder = _folder(arguments)
    patterns = arguments.match or ["*"]
    with ExitStack() as stack:
        old = stack.enter_context(Revision(arguments.against, folder))
        if arguments.to:
            newer = stack.enter_context(Revision(arguments.to, folder))
            new, make = newer.goldens, newer.text
        else:
            new, make = _now(folder, old.goldens, patterns), _text
        found = [
            change
            for change in changes(old.goldens, new)
            if any(fnmatchcase(change.kernel, pattern) for pattern in patterns)
        ]
        for change in found:
            emit(f"{change.status:<8} {paint(change.kernel, 'bold')}")
            for line in change.numbers:
                emit(f"  {line}")
        if not arguments.stat:
            with_text = sorted(
                (c for c in found if c.arch), key=lambda change: (-change.weight, change.kernel)
            )
            for change in with_text[: arguments.limit]:
                _show(change, old.name, old.text, arguments.to or "now", make)
            rest = len(with_text) - arguments.limit
            if rest > 0:
                note(f"text of {plural(rest, 'more kernel')} is not shown; --limit N shows N")
    counts = [(s, sum(c.status == s for c in found)) for s in ("added", "removed", "changed")]
    summary = ", ".join(f"{count} {status}" for status, count in counts if count)
    note(f"goldens: {summary or 'no difference'}")
    return 1 if found and arguments.exit_code else 0


def _now(folder: Path, old: Goldens, patterns: Sequence[str]) -> Goldens:
    """Returns the goldens of the working tree, of kernels that match ``patterns``: the records in
    ``folder`` that are current; others are compiled now.

    ``old``: goldens of another revision, from which records are taken if their inputs are the
    current ones.
    """
    from ptxgen.golden import changed, load

    specs = [s for s in _kernels().values() if any(fnmatchcase(s.name, p) for p in patterns)]
    current = load(folder)
    unknown = changed(current, specs)
    if unknown:  # perhaps the change has been taken back
        todo = changed(old, unknown)
        taken_back = {spec.name for spec in unknown} - {spec.name for spec in todo}
        fresh = _compiled(todo, "the goldens on disk are of other sources")
        records = {**old.only(taken_back).records, **fresh.records}
    else:
        records = {}
    kept = current.only({spec.name for spec in specs} - {spec.name for spec in unknown})
    return replace(current, records={**kept.records, **records})


def _text(kernel: str, arch: str) -> str:
    """Compiles a kernel from the current source; returns its PTX."""
    from ptxgen.build.compile import compile_ptx
    from ptxgen.build.render import source

    made = compile_ptx(source(find(kernel)), name=kernel, arch=arch.replace("sm_", "compute_"))
    return made.text


def _show(
    change: Change,
    older: str,
    old: Callable[[str, str], str],
    newer: str,
    new: Callable[[str, str], str],
) -> None:
    """Prints a diff of the PTX of a changed kernel.

    ``older``, ``newer``: names of the two sides; ``old``, ``new``: functions of (kernel,
    architecture) that return their PTX.
    """
    from ptxgen.golden import text_diff

    emit()
    try:
        texts = old(change.kernel, change.arch), new(change.kernel, change.arch)
    except PtxgenError as error:
        note(f"no text of {change.kernel}: {error}")
        return
    label = f"{change.kernel} for {change.arch}"
    lines = text_diff(*texts, (f"{label}, {older}", f"{label}, {newer}"))
    for line in lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        emit(paint(line, colour) if colour else line)
    if not lines:
        emit(f"{label}: the texts differ in names of registers alone, or not at all")
