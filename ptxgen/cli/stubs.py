"""Writes stubs (.pyi) of modules that load names lazily, for type checkers and editors.

``ptxgen generate`` writes them beside the modules, from the operations' parameters.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ptxgen
from ptxgen import reference
from ptxgen.cli.definitions import defined
from ptxgen.cli.torch_stubs import torch_stubs
from ptxgen.ops.pointwise import Pointwise
from ptxgen.program.description import Description
from ptxgen.program.parameters import NEEDED, Parameter, shown

STUBBED = (
    *("ptxgen", "ptxgen.functions", "ptxgen.int4", "ptxgen.layout", "ptxgen.quantized"),
    "ptxgen.reference",
)
"""Modules that get a stub."""
ASKING = {"residual": "Array", "return_lse": "bool", "return_state": "bool"}
"""Types of the arguments that make an operation return a second result, by name."""
INTEGERS = ("argmax", "argmin", "sample", "experts", "indices", "offsets", "places")
"""Names of operations and results whose elements are integers, whatever the first array's dtype."""
ELEMENTWISE = """\
class _Elementwise(Pointwise):
    @overload
    def __call__(self, first: ArrayT, /, *args: Any, **named: Any) -> ArrayT: ...
    @overload
    def __call__(self, *args: Any, **named: Any) -> Any: ...

"""
"""Stub of pointwise functions with one result, whose type is that of a first array argument."""


def stubs() -> dict[Path, str]:
    """Returns the text of every stub file, by its path."""
    root = Path(ptxgen.__file__).parent
    found = {}
    for name in STUBBED:
        path = root / "__init__.pyi" if name == "ptxgen" else root / f"{name.split('.')[1]}.pyi"
        found[path] = _text(import_module(name))
    return found | torch_stubs()


def _text(module: ModuleType) -> str:
    imports: set[str] = set()
    lines: list[str] = []
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            imports.add(f"from ptxgen import {name} as {name}")
        elif isinstance(value, Pointwise):
            imports.add("from ptxgen.ops.pointwise import Pointwise")
            lines.append(f"{name}: {'_Elementwise' if len(value.results) == 1 else 'Pointwise'}")
        elif module is reference:
            lines += _oracle(name, value)
        elif (op := _described(value)) is not None:
            lines += _operation(name, op)
        elif _home(module, name, value) == module.__name__:
            lines += _function(name, value)
        else:
            imports.add(f"from {_home(module, name, value)} import {name} as {name}")
    body = "\n".join(lines)
    if "_Elementwise" in body:
        body = ELEMENTWISE + body
    if "Sequence[" in body:
        imports.add("from collections.abc import Sequence")
    if "NDArray[" in body:
        imports.add("from numpy.typing import ArrayLike, NDArray")
    typing = [n for n in ("Any", "Literal", "overload") if re.search(rf"\b{n}\b", body)]
    if typing:
        imports.add(f"from typing import {', '.join(typing)}")
    names = ("Array", "ArrayT", "DtypeLike", "Stream")
    types = [name for name in names if re.search(rf"\b{name}\b", body)]
    if types:
        imports.add(f"from ptxgen.types import {', '.join(types)}")
    version = "\n__version__: str\n" if module is ptxgen else ""
    head = "# As `ptxgen generate` writes it.\n" + "\n".join(sorted(imports)) + "\n" + version
    return head + (f"\n{body}\n" if body else "")


def _described(value: Any) -> Description | None:
    """Returns the operation whose public function is ``value``; None if there is none."""
    from ptxgen.ops import OPERATIONS

    if isinstance(value, Description):
        return value
    found = OPERATIONS.get(getattr(value, "__name__", ""))
    return found if found is not None and found.function is value else None


def _home(module: ModuleType, name: str, value: Any) -> str:
    """Returns the name of the module that defines ``value``, which ``module`` has as ``name``."""
    homes: dict[str, str] = getattr(module, "_HOMES", {})
    if name in homes:
        return homes[name].partition(":")[0]
    home: str = value.__module__
    return home


def _operation(name: str, op: Description) -> Iterator[str]:
    plain = [_argument(p) for p in op.parameters if not p.keyword]
    named = [_argument(p) for p in op.parameters if p.keyword]
    plain[0] = plain[0].replace("Array", "ArrayT")
    return _returning(name, op, plain, named, "ArrayT")


def _oracle(name: str, function: Any) -> Iterator[str]:
    """Yields the lines of an oracle's definition; it takes array-likes and returns NumPy arrays."""
    from ptxgen.ops import OPERATIONS

    plain: list[str] = []
    named: list[str] = []
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            plain.append(f"*{p.name}: Any")
            continue
        if p.kind is p.VAR_KEYWORD:
            named.append(f"**{p.name}: Any")
            continue
        default = "" if p.default is p.empty else f" = {p.default!r}"
        text = f"{p.name}: {_read_by_numpy(str(p.annotation))}{default}"
        (named if p.kind is p.KEYWORD_ONLY else plain).append(text)
    if name in OPERATIONS:
        return _returning(name, OPERATIONS[name], plain, named, "NDArray[Any]")
    return defined(name, plain, named, "NDArray[Any]")


def _read_by_numpy(annotation: str) -> str:
    """Translates ``annotation``, of an oracle's argument, to NumPy's types for a stub; returns
    "Any" if it contains other types.
    """
    text = re.sub(r"\b(?:Array|F32|U16)\b", "ArrayLike", annotation)
    text = re.sub(r"\bAxis\b", "int | Sequence[int] | None", text)
    known = re.fullmatch(r"(?:ArrayLike|bool|float|int|str|None|Sequence|[\[\], |.])+", text)
    return text if known else "Any"


def _returning(
    name: str, op: Description, plain: list[str], named: list[str], array: str
) -> Iterator[str]:
    """Yields the stub lines of operation ``name``, whose results have type ``array``.

    ``plain`` and ``named``: texts of its positional and keyword-only parameters. If one of
    :data:`ASKING` decides whether there is a second result, the lines are overloads.
    """
    asking = [n for n in named if n.partition(":")[0] in ASKING]
    if not asking:
        yield from defined(name, plain, named, _result(name, op, array))
        return
    (argument,) = asking
    asks, both = argument.partition(":")[0], f"tuple[{array}, {array}]"
    overloads = {
        "Literal[False] = False": array,
        "Literal[True]": both,
        "bool": f"{array} | {both}",
    }
    if ASKING[asks] == "Array":
        given = argument.removeprefix(f"{asks}: ").partition(" |")[0]
        overloads = {"None = None": array, given: both}
    for kind, returns in overloads.items():
        yield "@overload"
        arguments = [f"{asks}: {kind}" if each is argument else each for each in named]
        yield from defined(name, plain, arguments, returns)


def _result(name: str, op: Description, array: str) -> str:
    if any(p.name.endswith("_grad") for p in op.parameters):  # asked for, behind the others
        return f"tuple[{array}, ...]"
    unwanted = {p.name for p in op.parameters if p.flag}
    of_first = array == "ArrayT"
    types = ["Any" if of_first and {name, r}.intersection(INTEGERS) else array for r in op.results]
    types = [f"{t} | None" if r in unwanted else t for t, r in zip(types, op.results, strict=True)]
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"


def _function(name: str, function: Any) -> Iterator[str]:
    """Yields the stub lines of ``function``, which is no operation, under ``name``."""
    of = inspect.signature(function)
    plain: list[str] = []
    named: list[str] = []
    for p in of.parameters.values():
        default = "" if p.default is p.empty else f" = {p.default!r}"
        text = f"{p.name}: {p.annotation}{default}"
        (named if p.kind is p.KEYWORD_ONLY else plain).append(text)
    returns = str(of.return_annotation)
    if plain[0] == "x: Any":  # an array, of any framework
        plain[0], returns = "x: ArrayT", returns.replace("Any", "ArrayT")
    return defined(name, plain, named, returns)


def _argument(p: Parameter) -> str:
    if p.default is NEEDED or p.stated:
        return f"{p.name}: {shown(p)}"
    return f"{p.name}: {shown(p)} = {p.default!r}"
