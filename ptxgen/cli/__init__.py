"""The ``ptxgen`` command: :func:`main` and the parser. One module per group of commands."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from ptxgen import arguments
from ptxgen.cli import (
    cache,
    completion,
    engines,
    env,
    golden,
    kernels,
    new,
    profile,
    routes,
    work,
)
from ptxgen.errors import CompileError, DtypeError, OptionError, PtxgenError, ShapeError
from ptxgen.ui import note, warn

_EPILOG = """\
exit status: 0 done; 1 an error, or a check that found something; 2 wrong usage

examples:
  ptxgen list --layout NN                  the kernels of a layout, with their resources
  ptxgen explain linear 16x4096x11008      which kernel runs M=16, K=4096, N=11008, and why
  ptxgen golden diff --stat                what the working tree changes, in numbers
  ptxgen golden diff --against HEAD~1      what a commit changed in the generated code
"""


def parser(*, deferred: bool = True) -> argparse.ArgumentParser:
    """Returns the parser of the ``ptxgen`` command. Building it loads no compiler and no driver.

    ``deferred``: whether to leave out the options of benchmarks, whose modules are then imported
    when they run.
    """
    top = arguments.Parser(
        prog="ptxgen",
        description="A kernel compiler and a library of deterministic, batch-invariant GPU "
        "operations. All but timings (bench, tune) works without a GPU.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"ptxgen {env.version('ptxgen')}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for module in (kernels, routes, profile, golden, new, cache, env, engines):
        module.add_commands(commands)
    work.add_commands(commands, deferred=deferred)
    completion.add_commands(commands, parser)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``ptxgen`` with the arguments ``argv`` (default: those of the process).

    Returns the exit status: the command's own; 2 for bad arguments, 1 for other errors of ptxgen,
    130 after an interruption. Errors are printed on one line, to stderr.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for encodings without µ or ×
    options = parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            status = int(options.run(options) or 0)
        sys.stdout.flush()  # so that a closed pipe shows here
        return status
    except BrokenPipeError:
        _silence()  # the reader (head, less) has seen enough
        return 0
    except KeyboardInterrupt:
        note("ptxgen: interrupted")
        return 130
    except (OptionError, ShapeError, DtypeError) as error:
        note(f"ptxgen: {error}")
        return 2
    except PtxgenError as error:
        note(f"ptxgen: {error}")
        if isinstance(error, CompileError) and error.log and (path := _keep_log(error)):
            note(f"  the compiler's whole log is in {path}")
        return 1
    except OSError as error:  # the disk that is written to is full, or gone
        _silence()
        note(f"ptxgen: {error}")
        return 1


def _silence() -> None:
    """Redirects stdout to the null device after its reader has closed the pipe, so that the
    interpreter's last flush at exit does not fail.
    """
    with contextlib.suppress(OSError):  # an stdout without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Prints a warning on one line, without the line of code that raised it."""
    warn(message)


def _keep_log(error: CompileError) -> Path | None:
    """Writes NVRTC's log next to the source that it refused; returns the file, or None."""
    if error.source_path is None:
        return None
    path = Path(error.source_path).with_suffix(".log")
    try:
        path.write_text(error.log, encoding="utf-8")
    except OSError:
        return None
    return path
