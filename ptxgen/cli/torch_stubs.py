"""The stub of :mod:`ptxgen.torch`, written without PyTorch: from the operations' parameters and
from what the module imports.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import ptxgen
from ptxgen.cli.definitions import defined
from ptxgen.program.description import Description

ASKING = {"residual", "return_lse", "return_state"}
"""Names of the options that make an operation return more results."""


def torch_stubs() -> dict[Path, str]:
    """Returns the text of the stub of :mod:`ptxgen.torch`, by its path."""
    from ptxgen.ops import OPERATIONS

    root = Path(ptxgen.__file__).parent / "torch"
    own = dict(_imported(root / "__init__.py"))
    lines = [f"from {home} import {name} as {name}" for name, home in sorted(own.items())]
    body: list[str] = []
    for name, op in sorted(OPERATIONS.items()):
        if op.in_torch and name not in own:
            body += _operation(name, op)
    head = [
        "# As `ptxgen generate` writes it.",
        "from collections.abc import Sequence",
        "from typing import Any",
        "from torch import Tensor",
        "from ptxgen.types import DtypeLike, Stream",
    ]
    return {root / "__init__.pyi": "\n".join([*head, *lines, "", *body, ""])}


def _imported(module: Path) -> Iterator[tuple[str, str]]:
    """Yields (name, source module) for each name that a file imports from ``ptxgen.torch.*``."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ptxgen.torch."):
            yield from ((a.name, str(node.module)) for a in node.names if a.asname is None)


def _operation(name: str, op: Description) -> Iterator[str]:
    """Yields the stub lines of operation ``name`` with the signature that it has in
    ``ptxgen.torch``.
    """
    signature = getattr(op, "as_torch", (op.signature,))[0]
    plain: list[str] = []
    named: list[str] = []
    for p in signature.parameters.values():
        default = "" if p.default is p.empty else f" = {p.default!r}"
        annotation = re.sub(r"\bArray\b", "Tensor", str(p.annotation))
        text = f"{p.name}: {annotation}{default}"
        (named if p.kind is inspect.Parameter.KEYWORD_ONLY else plain).append(text)
    count = len(op.results)
    result = "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
    if ASKING & signature.parameters.keys():
        result = "Any"
    yield from defined(name, plain, named, result)
