"""Command ``completion``: prints a script by which a shell completes commands and options."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ptxgen.ui import emit, missing

SHELLS = ("bash", "zsh")
_EPILOG = """\
examples:
  ptxgen completion bash      source this in ~/.bashrc, or write it to
                              ~/.local/share/bash-completion/completions/ptxgen
  ptxgen completion zsh       write it to a file _ptxgen in a folder of $fpath
"""


Make = Callable[..., argparse.ArgumentParser]
"""A function that makes the parser, such as :func:`ptxgen.cli.parser`."""


def add_commands(commands: Any, make: Make) -> None:
    """Adds ``ptxgen completion`` to the subcommands ``commands``; ``make`` returns the parser whose
    words are completed.
    """
    command = commands.add_parser(
        "completion",
        help="a script that completes commands, options and names in a shell",
        description="Prints a script for a shell. It knows the options of all benchmarks, and the "
        "names of operations and kernels. Making it needs the package shtab; running it does not.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" or ".join(SHELLS))
    command.set_defaults(run=partial(_completion, make))


def _completion(make: Make, arguments: argparse.Namespace) -> None:
    try:
        shtab = importlib.import_module("shtab")
    except ModuleNotFoundError as error:
        raise missing("the script for completion", error) from error
    emit(shtab.complete(whole(make), shell=arguments.shell))


def whole(make: Make) -> argparse.ArgumentParser:
    """Returns the complete parser that ``make`` builds, with the options of benchmarks, and with
    names of kernels and operations as choices of their arguments.
    """
    from ptxgen.ops.explaining import posed_names
    from ptxgen.tiles import SPECS

    top = make(deferred=False)
    names = {"spec": (*SPECS,), "op": posed_names()}
    for action in _actions(top):
        if action.dest in names and action.choices is None and not action.option_strings:
            action.choices = names[action.dest]
    return top


def _actions(of: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in of._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _actions(each)
