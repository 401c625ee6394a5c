"""Terminal output of the commands: tables, colours and progress, plain and stable in a pipe."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol, TextIO

from ptxgen.errors import PtxgenError

_BAR = 24
_PLAIN_EVERY_S = 5.0  # between lines of progress where there is no terminal


def emit(text: object = "") -> None:
    """Prints a line of the command's result to stdout."""
    print(text)


def note(text: object) -> None:
    """Prints a line about the progress of the work to stderr, so that results can be piped."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


def warn(text: object) -> None:
    """Prints a warning to stderr."""
    note(f"ptxgen: warning: {text}")


def emit_json(value: Any) -> None:
    """Prints ``value`` to stdout as JSON."""
    print(json.dumps(value, indent=2))


def table(rows: Iterable[Sequence[object]], header: Sequence[str], indent: str = "") -> str:
    """Returns a table of aligned columns: numbers right, text left, None as a dash."""
    body = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    numeric = [
        all(row[i] == "-" or row[i].replace(".", "", 1).isdigit() for row in body)
        for i in range(len(header))
    ]
    widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
    return "\n".join(
        indent
        + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in (list(header), *body)
    )


def pairs(items: Iterable[tuple[str, object]], indent: str = "  ") -> str:
    """Returns aligned ``name value`` lines; further lines of a value are indented below it."""
    listed = list(items)
    width = max((len(name) for name, _ in listed), default=0)
    gap = "\n" + indent + " " * (width + 2)
    return "\n".join(
        f"{indent}{name.ljust(width)}  {str(value).replace(chr(10), gap)}" for name, value in listed
    )


def missing(what: str, error: ModuleNotFoundError) -> PtxgenError:
    """Returns the error for ``what``, which needs an optional package; it says what to install."""
    extra = {"z3": "test", "matplotlib": "bench", "shtab": "completion"}.get(str(error.name))
    how = f"'ptxgen[{extra}]', or '.[{extra}]' in a checkout" if extra else str(error.name)
    return PtxgenError(
        f"{what} needs the package {error.name}, which `pip install ptxgen` leaves out; "
        f"pip install {how}"
    )


def size(count: int) -> str:
    """Returns a number of bytes with a unit, such as "1.5 MiB"."""
    value, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun: ``"1 kernel"``, ``"2 kernels"``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Returns ``text`` in a colour if ``stream`` (default: stdout) is a terminal with colours."""
    stream = stream or sys.stdout
    if not stream.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return text
    codes = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "bold": 1}
    return f"\x1b[{codes[colour]}m{text}\x1b[0m"


class Named(Protocol):
    """Protocol of an item whose progress can be reported: anything with a name."""

    @property
    def name(self) -> str:
        """The name that the progress bar shows."""


class Progress:
    """A progress bar on stderr if that is a terminal, else a line every few seconds.

    Call it with (done, total, item) after each item. Use it as a context manager.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = self._last_line = time.monotonic()
        self._live = sys.stderr.isatty()
        self._drawn = False

    def __enter__(self) -> Callable[[int, int, Named], None]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, done: int, total: int, item: Named) -> None:
        now = time.monotonic()
        seconds = now - self._start
        if self._live:
            full = _BAR * done // total
            line = f"{self._what} [{'#' * full}{'.' * (_BAR - full)}] {done}/{total}"
            line += f"  {seconds:.0f} s  {item.name}"
            sys.stderr.write("\r" + line[: shutil.get_terminal_size().columns - 1] + "\x1b[K")
            sys.stderr.flush()
            self._drawn = True
        elif now - self._last_line >= _PLAIN_EVERY_S:
            self._last_line = now
            note(f"{self._what}: {done}/{total}, {seconds:.0f} s")
