"""Command ``engines``: prints the inference engines that extensions fit, and what they replace."""

from __future__ import annotations

import argparse
from typing import Any

from ptxgen.ui import emit, emit_json, pairs, table


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen engines`` to the subcommands ``commands``."""
    command = commands.add_parser(
        "engines",
        help="inference engines that are installed, and what an extension would replace",
        description="Compares the installed engine's sources with the functions that the extension "
        "replaces, calls or implements. The engine is not imported.",
    )
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_engines)


def facts() -> dict[str, Any]:
    """Returns the entries of ``ptxgen engines`` for vLLM. Each hook has "found": the signature in
    the installed sources, or None; and "fits": whether it is the expected one.
    """
    from ptxgen.engines import vllm
    from ptxgen.engines.hooks import read_signature
    from ptxgen.engines.vllm.hooks import HOOKS

    version = vllm.installed_version()
    rows = []
    for hook in HOOKS:
        found = read_signature(hook) if version else None
        rows.append(
            {
                "part": hook.part,
                "function": hook.target,
                "replaced": bool(hook.replacement),
                "expects": hook.signature,
                "found": found,
                "fits": found == hook.signature,
            }
        )
    takes = f"{'.'.join(map(str, vllm.OLDEST))} to {'.'.join(map(str, vllm.NEWEST))}"
    return {
        "engine": "vLLM",
        "version": version or "not installed",
        "takes": takes,
        "fits": vllm.fits(version) and all(row["fits"] for row in rows),
        "mode": vllm.mode(),
        "hooks": rows,
    }


def _engines(arguments: argparse.Namespace) -> int:
    """Prints the facts. Returns 1 if an engine is installed that the extension does not fit."""
    found = facts()
    there = found["version"] != "not installed"
    status = int(there and not found["fits"])
    if arguments.json:
        emit_json(found)
        return status
    mode = f"{found['mode']} (PTXGEN_VLLM)"
    emit(pairs([("vLLM", found["version"]), ("takes", found["takes"]), ("mode", mode)], indent=""))
    words = {True: "fits", False: "differs"} if there else {False: "-"}
    rows = [
        (h["part"], h["function"], "replaced" if h["replaced"] else "used", words[h["fits"]])
        for h in found["hooks"]
    ]
    emit("\n" + table(rows, ("part", "function", "", "signature")))
    for hook in found["hooks"]:
        if there and not hook["fits"]:
            emit(f"\n{hook['function']}: expects {hook['expects']}, found {hook['found']}")
    return status
