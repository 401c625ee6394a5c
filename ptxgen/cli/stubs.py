"""Stubs: the names that modules load when they are used, for type checkers and editors.

``ptxgen generate`` writes them beside the modules, from the operations' parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ptxgen
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.description import Description
from ptxgen.program.parameters import NEEDED, Parameter, shown

STUBBED = ("ptxgen", "ptxgen.functions", "ptxgen.int4", "ptxgen.layout", "ptxgen.nf4")
"""The modules."""
WIDTH = 100


def stubs() -> dict[Path, str]:
    """The text of each stub."""
    root = Path(ptxgen.__file__).parent
    found = {}
    for name in STUBBED:
        path = root / "__init__.pyi" if name == "ptxgen" else root / f"{name.split('.')[1]}.pyi"
        found[path] = _text(import_module(name))
    return found


def _text(module: ModuleType) -> str:
    imports: set[str] = set()
    lines: list[str] = []
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            imports.add(f"from ptxgen import {name} as {name}")
        elif isinstance(value, Pointwise):
            imports.add("from ptxgen.ops.pointwise import Pointwise")
            lines.append(f"{name}: Pointwise")
        elif (op := _described(value)) is not None:
            lines += _operation(name, op)
        elif _home(module, name, value) == module.__name__:
            lines += _function(name, value)
        else:
            imports.add(f"from {_home(module, name, value)} import {name} as {name}")
    body = "\n".join(lines)
    if "Sequence[" in body:
        imports.add("from collections.abc import Sequence")
    if "Any" in body:
        imports.add("from typing import Any")
    types = [name for name in ("Array", "DtypeLike", "Stream") if name in body]
    if types:
        imports.add(f"from ptxgen.types import {', '.join(types)}")
    version = "\n__version__: str\n" if module is ptxgen else ""
    head = "# As `ptxgen generate` writes it.\n" + "\n".join(sorted(imports)) + "\n" + version
    return head + (f"\n{body}\n" if body else "")


def _described(value: Any) -> Description | None:
    """The operation behind a function."""
    from ptxgen.ops import OPERATIONS

    if isinstance(value, Description):
        return value
    found = OPERATIONS.get(getattr(value, "__name__", ""))
    return found if found is not None and found.function is value else None


def _home(module: ModuleType, name: str, value: Any) -> str:
    """Where a name is defined that is no operation."""
    homes: dict[str, str] = getattr(module, "_HOMES", {})
    if name in homes:
        return homes[name].partition(":")[0]
    home: str = value.__module__
    return home


def _operation(name: str, op: Description) -> Iterator[str]:
    plain = [_argument(p) for p in op.parameters if not p.keyword]
    named = [_argument(p) for p in op.parameters if p.keyword]
    count = len(op.results)
    returns = "Any" if count == 1 else f"tuple[{', '.join(['Any'] * count)}]"
    return _defined(name, plain, named, returns)


def _function(name: str, function: Any) -> Iterator[str]:
    """One that the module itself defines."""
    of = inspect.signature(function)
    plain: list[str] = []
    named: list[str] = []
    for p in of.parameters.values():
        default = "" if p.default is p.empty else f" = {p.default!r}"
        text = f"{p.name}: {p.annotation}{default}"
        (named if p.kind is p.KEYWORD_ONLY else plain).append(text)
    return _defined(name, plain, named, str(of.return_annotation))


def _defined(name: str, plain: list[str], named: list[str], returns: str) -> Iterator[str]:
    arguments = [*plain, *(["*"] if named else []), *named]
    line = f"def {name}({', '.join(arguments)}) -> {returns}: ..."
    if len(line) <= WIDTH:
        yield line
        return
    yield f"def {name}("
    yield from (f"    {argument}," for argument in arguments)
    yield f") -> {returns}: ..."


def _argument(p: Parameter) -> str:
    if p.default is NEEDED:
        return f"{p.name}: {shown(p)}"
    return f"{p.name}: {shown(p)} = {p.default!r}"
