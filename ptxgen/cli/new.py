"""Command ``new``: writes the skeleton of an operation, a kernel or a weight format."""

from __future__ import annotations

import argparse
import keyword
import re
from pathlib import Path
from typing import Any

from ptxgen.errors import OptionError
from ptxgen.ui import emit

SKELETONS = Path(__file__).parent / "skeletons"
KINDS = {
    "operation": (
        "an operation that is made of others: a file of ptxgen/ops in a checkout",
        """\
{files}: `sum(x * x)` of each row. Say instead
  - FORMS: its arrays and their dimensions
  - {name}: what is computed of which operations, with its docstring
  - vjp: its gradient, of operations; leave it out if there is none
Then, in a checkout
  make generate                       stubs; its lines in operations.md and support.md
  make lint
  pytest tests/test_calls.py -k {name}     random calls, and gradients by differences
  make test
Elsewhere, `ptxgen.ops.register({name})` makes it ptxgen.{name}.""",
    ),
    "kernel": (
        "an operation with a kernel of its own: a module, and a template beside it",
        """\
{files}: `x * by`. Say instead
  - CONTRACT, FORMS and reference: which bits a call returns
  - {name}.cu.j2: the kernel, in CUDA C++ with explicit roundings
  - Spec: its parameters, grid, where it is correct, index bounds
  - {name}: how a call becomes a problem
Importing it registers ptxgen.{name}. Then
  python -c "import ptxgen, {name}; print(ptxgen.explain('{name}', 1000))"
docs/how-to/add-an-operation.md says how it is proved, and how it moves into the package.""",
    ),
    "format": (
        "a format of quantized weights: a file of ptxgen/numerics/formats in a checkout",
        """\
{files}: 4 bits, `scale * code + offset` in blocks of 32. Say instead
  - bits, block, values: the codes, and the numbers that they stand for
  - decoding, scales, offsets: the formula, and the dtypes of its numbers
  - quantize="absmax", if weights are quantized to it by their largest magnitude
Then, in a checkout
  make generate                       its line in docs/reference/quantized.md
  make lint
  pytest tests/quantized -k {name}     every code, kernels against oracles, products
  ptxgen golden bits --update         digests of its bits in golden/bits.json
  a line under Bits of CHANGELOG.md
  make test
Elsewhere, `ptxgen.quantized.register(FORMAT)` makes it known by its name.""",
    ),
}
"""Help text of each kind of skeleton, and the remaining steps, which are printed."""


HOMES = {"operation": "ptxgen/ops", "format": "ptxgen/numerics/formats", "kernel": ""}
"""Folders of a checkout for the files of each kind."""


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen new`` to the subcommands ``commands``."""
    command = commands.add_parser(
        "new",
        help="write the skeleton of an operation, a kernel or a weight format",
        description="Writes files that work, and says what to change in them. Kinds: "
        + "; ".join(f"{kind}: {text}" for kind, (text, _) in KINDS.items())
        + ".",
    )
    command.add_argument("kind", metavar="KIND", choices=tuple(KINDS), help=", ".join(KINDS))
    command.add_argument("name", metavar="NAME", help="a Python identifier in lower case")
    command.add_argument(
        "--to", type=Path, metavar="DIR", help="where (default: its folder of a checkout, or here)"
    )
    command.set_defaults(run=_new)


def _new(arguments: argparse.Namespace) -> None:
    kind, name = arguments.kind, arguments.name
    for made in write(kind, name, arguments.to or _folder(kind)):
        emit(f"wrote {made}")
    files = f"{name}.py and {name}.cu.j2" if kind == "kernel" else f"{name}.py"
    emit(KINDS[kind][1].format(name=name, files=files))


def _folder(kind: str) -> Path:
    """Returns the default folder for files of a ``kind``: in a checkout the folder of
    :data:`HOMES`, elsewhere the current folder.
    """
    home = Path.cwd() / HOMES[kind]
    return home if home.is_dir() else Path.cwd()


def write(kind: str, name: str, folder: Path) -> list[Path]:
    """Writes the skeleton files of an operation, kernel or format ``name``; returns their paths.

    Raises OptionError, and writes nothing, if the name is taken or malformed, or a file exists.
    """
    from ptxgen.numerics.formats import FORMATS
    from ptxgen.ops import OPERATIONS

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise OptionError(f"NAME is {name!r}; takes a Python identifier in lower case")
    known, what = (FORMATS, "a format") if kind == "format" else (OPERATIONS, "an operation")
    if name in known:
        raise OptionError(f"there is {what} {name!r} already")
    texts = {
        folder / source.name.removesuffix(".txt").replace(kind, name, 1): source.read_text("utf-8")
        for source in sorted(SKELETONS.glob(f"{kind}.*.txt"))
    }
    for path in texts:
        if path.exists():
            raise OptionError(f"there is a file {path} already")
    for path, text in texts.items():
        path.write_text(text.replace("NAME", name), "utf-8")
    return list(texts)
