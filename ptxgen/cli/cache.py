"""Commands ``cache info``, ``verify`` and ``clear``, for the compiled kernels on disk."""

from __future__ import annotations

import argparse
from typing import Any

from ptxgen.ui import emit, emit_json, note, pairs, plural, size


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen cache`` and its actions to the subcommands ``commands``."""
    group = commands.add_parser(
        "cache",
        help="the compiled kernels on disk",
        description="Compiled kernels are kept by the hash of everything they depend on, in "
        "$PTXGEN_CACHE_DIR, or ptxgen in $XDG_CACHE_HOME or ~/.cache. It may be removed at any "
        "time.",
    )
    actions = group.add_subparsers(metavar="ACTION", required=True)
    action = actions.add_parser("info", help="where it is and how much is in it")
    action.add_argument("--json", action="store_true", help="for programs")
    action.set_defaults(run=_info)
    action = actions.add_parser("verify", help="read every entry; fail if one is damaged")
    action.add_argument("--remove", action="store_true", help="remove the damaged ones")
    action.set_defaults(run=_verify)
    action = actions.add_parser("clear", help="remove every entry")
    action.set_defaults(run=_clear)


def _info(arguments: argparse.Namespace) -> None:
    from ptxgen.build.cache import default_cache

    info = default_cache().info()
    if arguments.json:
        emit_json(
            {
                "root": str(info.root),
                "entries": info.entries,
                "tuned": info.tuned,
                "bytes": info.bytes,
                "temporaries": info.temporaries,
                "distrust": info.distrust,
            }
        )
        return
    items: list[tuple[str, object]] = [
        ("directory", info.root),
        ("entries", f"{info.entries}, {size(info.bytes)}"),
        ("autotuned", plural(info.tuned, "problem")),
    ]
    if info.temporaries:
        items.append(("unfinished", plural(info.temporaries, "file")))
    if info.distrust:
        items.append(("not used", info.distrust))
    emit(pairs(items, indent=""))


def _verify(arguments: argparse.Namespace) -> int:
    from ptxgen.build.cache import default_cache

    cache = default_cache()
    entries = cache.info().entries
    bad = cache.verify(remove=arguments.remove)
    for path, reason in bad.items():
        emit(f"{path}: {reason}{' (removed)' if arguments.remove else ''}")
    if bad:
        note(
            f"{plural(len(bad), 'bad entry').replace('entrys', 'entries')} of {entries}; they are "
            "never used" + ("" if arguments.remove else "; --remove removes them")
        )
        return 1
    emit(f"{entries} entries, all sound")
    return 0


def _clear(arguments: argparse.Namespace) -> None:
    from ptxgen.build.cache import default_cache

    cache = default_cache()
    emit(f"removed {plural(cache.clear(), 'file')} from {cache.root}")
