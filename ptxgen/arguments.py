"""Parsers of command-line arguments that commands share: sizes, dtypes, options for JSON.

Sizes are joined by x: the product ``MxKxN`` multiplies x, [M, K], by a weight, [K, N].
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

from ptxgen.errors import OptionError, proposal
from ptxgen.ui import emit_json, warn

SIZE_DIGITS = 18
"""Maximum number of digits in a size argument; operations check their own limits."""
PRODUCT = ("M", "K", "N")
"""Names of a matrix product's sizes, in their order on the command line."""

FORM = "SEQUENCESxHEADS/KV_HEADSxQUERIESxKEYSxDEPTH"
"""Syntax of an attention problem's sizes on the command line."""


class Parser(argparse.ArgumentParser):
    """An ``ArgumentParser`` whose errors are one line with the closest word; exit status 2."""

    def error(self, message: str) -> NoReturn:
        """Prints ``message`` on one line and exits with status 2."""
        line = printable(" ".join(message.split()))
        more = "" if line.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: {line}{more}\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses like argparse, but an unknown argument is an error that proposes similar ones."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flag = unknown[0].partition("=")[0]
            close = proposal(flag, self._option_string_actions)
            self.error(f"unknown argument {unknown[0]!r}{close}")
        return found, []

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        both = dtype_names(known) if action.type is dtype else known
        close = proposal(str(value), both) or f"; takes {', '.join(known)}"
        raise argparse.ArgumentError(action, f"unknown value {value!r}{close}")


def printable(text: str) -> str:
    """Returns ``text`` with control characters escaped, so that it is one line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


# -- sizes ----------------------------------------------------------------------------------
def written(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the size names of an operation in the order of the command line, K before N.

    ``names``: size names in the operation's own order, in which N may come first.
    """
    if not {"N", "K"} <= {*names}:
        return tuple(names)
    order = [*names]
    n, k = order.index("N"), order.index("K")
    if n < k:
        order[n], order[k] = "K", "N"
    return tuple(order)


def sizes(text: str, names: Sequence[str] = PRODUCT) -> tuple[int, ...]:
    """Parses sizes such as ``"16x4096x4096"``, one for each of ``names``. Raises OptionError."""
    found = text.split("x")
    if len(found) != len(names) or not all(_is_size(each) for each in found):
        raise no_sizes(text, names)
    return tuple(map(int, found))


def ranges(text: str, names: Sequence[str] = PRODUCT) -> tuple[range, ...]:
    """Parses sizes like :func:`sizes`; each may be a range such as ``1..32``, ends included."""
    found = []
    for each in text.split("x"):
        low, dots, high = each.partition("..")
        if not _is_size(low) or (dots and not _is_size(high)):
            raise no_sizes(text, names)
        found.append(range(int(low), int(high if dots else low) + 1))
    if len(found) != len(names) or not all(found):
        raise no_sizes(text, names)
    return tuple(found)


def no_sizes(text: str, names: Sequence[str]) -> OptionError:
    """Returns the error for a ``text`` that is not one size for each of ``names``."""
    example = "x".join(str(4 << 2 * i) for i in range(1, len(names) + 1))
    return OptionError(
        f"sizes are {printable(text)!r}; takes {'x'.join(names)}, numbers from 1 on, such as "
        f"{example}"
    )


def _is_size(text: str) -> bool:
    return re.fullmatch(rf"0*[1-9][0-9]{{0,{SIZE_DIGITS - 1}}}", text) is not None


def attention_sizes(text: str) -> tuple[tuple[int, ...], bool, int]:
    """Parses an attention problem such as ``1x32/8x4096x4096x128c``: sizes as in :data:`FORM`, then
    ``c`` if causal, then ``p`` and the keys per page if paged.

    Returns the sizes, whether it is causal, and the keys per page (0: not paged). Raises
    OptionError.
    """
    read = re.fullmatch(r"(\d+)x(\d+)/(\d+)x(\d+)x(\d+)x(\d+)(c?)(?:p(\d+))?", text, re.ASCII)
    found = [read[i] for i in range(1, 7)] if read else []
    page = read[8] if read else None
    if not read or not all(map(_is_size, found)) or (page and not _is_size(page)):
        raise OptionError(
            f"the shape is {printable(text)!r}; takes {FORM}, then c if causal or pKEYS of pages, "
            "such as 1x32/8x4096x4096x128c"
        )
    return tuple(map(int, found)), bool(read[7]), int(page or 0)


def numbers(words: Sequence[str], names: Sequence[str]) -> str:
    """Returns size arguments as one text such as ``16x4096x4096``.

    ``words``: one such text or, deprecated, a number for each of ``names``, in this order.
    """
    if len(words) == 1 or len(words) != len(names):
        return "x".join(words) if len(words) == 1 else " ".join(words)
    own = dict(zip(names, words, strict=True))
    text = "x".join(own[name] for name in written(names))
    warn(
        f"sizes are written {'x'.join(written(names))}: {printable(text)}; the next version takes "
        f"no {' '.join(names)}"
    )
    return text


# -- dtypes ---------------------------------------------------------------------------------
def dtype(text: str) -> str:
    """Returns the short name of a dtype: ``bf16`` for ``bfloat16`` or ``bf16``.

    Other words are returned unchanged; the caller checks them against its choices.
    """
    from ptxgen.numerics.dtype import NAMES

    return NAMES.get(text, text)


def dtype_names(known: Sequence[str]) -> list[str]:
    """Returns both names, short and full, of each dtype in ``known``."""
    from ptxgen.numerics.dtype import FULL

    return [name for short in known for name in dict.fromkeys((short, FULL.get(short, short)))]


# -- choices in a list ----------------------------------------------------------------------
def words(*known: str) -> Callable[[str], list[str]]:
    """Returns an argparse type for comma-separated words in ``known``, dtypes by either name."""

    def read(text: str) -> list[str]:
        found = [dtype(part) for part in text.split(",") if part]
        for word in found:
            if word not in known:
                close = proposal(word, dtype_names(known)) or f"; takes {', '.join(known)}"
                raise argparse.ArgumentTypeError(f"unknown value {word!r}{close}")
        return found

    return read


def add_dtype(parser: argparse.ArgumentParser, known: Sequence[str], **given: Any) -> None:
    """Adds ``--dtype``, one of ``known`` by short or full name; ``given``: for ``add_argument``."""
    how = {"default": known[0], "help": "(%(default)s)", **given}
    parser.add_argument("--dtype", type=dtype, choices=tuple(known), **how)


def some(text: str) -> list[str]:
    """Splits comma-separated words; empty ones are dropped."""
    return [part for part in text.split(",") if part]


# -- JSON -----------------------------------------------------------------------------------
def add_seed(parser: argparse.ArgumentParser, usual: int = 0) -> None:
    """Adds the option ``--seed``, whose default is ``usual``."""
    parser.add_argument(
        "--seed", type=int, default=usual, help="of the draw and of the operands (%(default)s)"
    )


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Adds a benchmark's options ``--json``, ``--save`` (write result rows), ``--rows`` (read)."""
    parser.add_argument(
        "--json", action="store_true", help="print the rows as JSON; tables go to stderr"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the rows to FILE")
    parser.add_argument(
        "--rows", type=Path, nargs="+", metavar="FILE", help="print the rows of earlier runs"
    )


def run(
    parser: argparse.ArgumentParser,
    work: Callable[[argparse.Namespace], int],
    argv: Sequence[str] | None = None,
) -> int:
    """Parses ``argv``, runs ``work`` with the options, and returns its exit status.

    ``work`` stores its result rows in ``options.records``. With ``--json``, stdout gets only
    these, as JSON.
    """
    given = sys.argv[1:] if argv is None else [*argv]
    options = parser.parse_args(_renamed(given))
    options.records = []
    if not getattr(options, "json", False):
        return work(options)
    with redirect_stdout(sys.stderr):
        status = work(options)
    earlier = getattr(options, "rows", None) or ()  # files that ``work`` has read and checked
    read = (row for path in earlier for row in json.loads(path.read_text(encoding="utf-8")))
    emit_json(options.records or [*read])
    return status


def _renamed(argv: list[str]) -> list[str]:
    """Returns ``argv`` with each deprecated ``--json FILE`` replaced by ``--save FILE``; warns."""
    found: list[str] = []
    rest = iter(argv)
    for word in rest:
        flag, equals, path = word.partition("=")
        if flag != "--json":
            found.append(word)
            continue
        after = path if equals else next(rest, None)
        if after is None or (not equals and not after.endswith(".json")):
            found += [word] if after is None else [word, *_renamed([after])]
            continue
        warn("--json prints to stdout; a file is --save FILE, and --json FILE goes next version")
        found += ["--save", after]
    return found
