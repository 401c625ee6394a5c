"""The site of ``make docs``: the documents, and a reference generated from docstrings.

The functions ``on_*`` are hooks of mkdocs (mkdocs.yml). The library makes its public names on first
use, so stubs are generated before the site is built, as ``build/api/ptxgen/*.py``: signatures and
docstrings, which mkdocstrings reads like any source. Documents are also read as files: links out of
docs/ and the words after a fence's language are rewritten for the site.
"""

from __future__ import annotations

import ast
import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

CHECKOUT = Path(__file__).parents[1]
STUBS = CHECKOUT / "build" / "api" / "ptxgen"
MODULES = (
    "ptxgen",
    *(f"ptxgen.{m}" for m in ("functions", "layout", "int4", "quantized", "reference")),
)
TORCH = CHECKOUT / "ptxgen" / "torch"
NEEDS = {
    "gpu": "needs a GPU",
    "checkout": "in a checkout",
    "completion": "needs the packages of .[completion]",
    "test": "needs the packages of .[test]",
    "recipe": "after the edits above",
}
"""Titles of blocks on the site, by the words behind a fence (tools/doc_commands.py)."""
GROUPED = {
    "api/ptxgen.md": ("ptxgen", "__init__.py"),
    "api/torch.md": ("ptxgen.torch", "torch.py"),
    "api/reference.md": ("ptxgen.reference", "reference.py"),
}
"""Pages of the reference that are grouped by task: module and stub of each."""
TASKS = CHECKOUT / "docs" / "reference" / "support.md"
"""The page whose sections are the tasks."""
SECTION = re.compile(r"^(\w[\w ]*):?\n((?:[ ]{4}.*\n|\n(?=[ ]{4}))+)", re.MULTILINE)
"""Pattern of a docstring's heading and the indented text below it."""


# -- the reference ------------------------------------------------------------------------------
def on_startup(command: str, dirty: bool) -> None:
    """Writes the stubs. mkdocstrings looks for their folder as early as ``on_config``."""
    STUBS.mkdir(parents=True, exist_ok=True)
    for name, text in stubs().items():
        (STUBS / f"{name}.py").write_text(text, encoding="utf-8")


def stubs() -> dict[str, str]:
    """Returns the stub of each module of the reference, by file name without suffix."""
    found = {}
    for name in MODULES:
        module = import_module(name)
        found[name.partition(".")[2] or "__init__"] = _module(module)
    found["torch"] = _torch()
    known = {"ptxgen", *_paths(found)}
    return {name: _linked(text, known) for name, text in found.items()}


def _paths(texts: dict[str, str]) -> Iterator[str]:
    """Yields the full names of all modules, functions and classes in the reference."""
    for name, text in texts.items():
        base = "ptxgen" if name == "__init__" else f"ptxgen.{name}"
        yield base
        yield from (f"{base}.{each}" for each in _names(text))


def _names(text: str) -> Iterator[str]:
    """Yields the names that a stub defines: functions, classes and constants."""
    for each in ast.parse(text).body:
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.AnnAssign):
            yield ast.unparse(each.target)


def _module(module: ModuleType) -> str:
    parts = [_quoted(inspect.getdoc(module) or "")]
    for name in sorted(n for n in dir(module) if not n.startswith("_")):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            continue
        if isinstance(value, type):
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
            parts.append(_stub(node))
        elif callable(value):
            parts.append(_function(name, value))
        else:
            parts.append(f"{name}: {type(value).__name__}\n{_quoted(_constant_doc(module, name))}")
    return "\n\n".join(parts) + "\n"


def _function(name: str, value: Any) -> str:
    doc = getattr(value, "doc", None) or inspect.getdoc(value) or ""
    try:
        taken = str(inspect.signature(value)).replace("'", '"')
        ast.parse(f"def f{taken}: ...")
    except (SyntaxError, ValueError):  # a default that has no text
        taken = "(*args, **options)"
    return _function_stub(name, taken, doc)


def _function_stub(name: str, taken: object, doc: str) -> str:
    return f"def {name}{taken}:\n{textwrap.indent(_quoted(doc), '    ')}"


def _constant_doc(module: ModuleType, name: str) -> str:
    """Returns the docstring after a constant's assignment in its module's source."""
    home = import_module(vars(module)["_HOMES"][name].partition(":")[0])
    body = ast.parse(inspect.getsource(home)).body
    for each, after in pairwise(body):
        target = each.target if isinstance(each, ast.AnnAssign) else None
        if isinstance(each, ast.Assign):
            target = each.targets[0]
        if isinstance(target, ast.Name) and target.id == name and isinstance(after, ast.Expr):
            return inspect.cleandoc(ast.literal_eval(after.value))
    return ""


def _torch() -> str:
    """Returns the stub of ``ptxgen.torch``, made from its source, without importing PyTorch."""
    tree = ast.parse((TORCH / "__init__.py").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for each in tree.body:
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("ptxgen.torch."):
            source = TORCH / f"{each.module.rpartition('.')[2]}.py"
            taken = {alias.asname or alias.name for alias in each.names}
            for node in ast.parse(source.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in taken:
                    found[node.name] = _stub(node)
    from ptxgen.ops import OPERATIONS
    from ptxgen.ops.reductions import RowFunction

    for name, op in OPERATIONS.items():
        offered = op.public or name == "int4_gemm"
        if isinstance(op, RowFunction):
            found[name] = _function_stub(name, *op.as_torch)
        elif offered and name not in found and not any(p.flag for p in op.parameters):
            found[name] = _function(name, op.function)
    parts = (_quoted(ast.get_docstring(tree) or ""), *(found[n] for n in sorted(found)))
    return "\n\n".join(parts) + "\n"


def _stub(node: ast.AST) -> str:
    """Returns a function's or class's source without bodies: signatures and docstrings."""
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    doc = [ast.parse(_quoted(ast.get_docstring(node) or "")).body[0]]
    if isinstance(node, ast.FunctionDef):
        shown = [d for d in node.decorator_list if ast.unparse(d) in ("property", "classmethod")]
        node.decorator_list, node.body = shown, doc
        return ast.unparse(node)
    body: list[ast.stmt] = [*doc]
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and _shown(each):
            body.append(ast.parse(_stub(each)).body[0])
    node.decorator_list, node.body = [], body
    return ast.unparse(node)


def _shown(node: ast.FunctionDef) -> bool:
    own = node.name.startswith("_") and node.name not in ("__init__", "__call__")
    return bool(not own and ast.get_docstring(node))


def _quoted(doc: str) -> str:
    text = markdown(doc).replace("\\", "\\\\").replace('"""', '\\"""')
    return f'"""{text}\n"""' if text else '"""."""'


def markdown(doc: str) -> str:
    """Converts a docstring to Markdown: headings to definition lists, examples to code."""

    def term(found: re.Match[str]) -> str:
        body = textwrap.dedent(found[2]).strip()
        if body.startswith(">>>"):
            return f"{found[1]}:\n\n{body}\n"
        first, *rest = body.split("\n")
        lines = (f"    {line}" if line else "" for line in rest)
        return "\n".join((f"\n{found[1]}", f":   {first}", *lines, ""))

    text = re.sub(r"``([^`]+)``", r"`\1`", doc.rstrip() + "\n")
    text = SECTION.sub(term, text)
    return re.sub(
        r"(?m)^([ ]*)>>> .*\n(?:[ ]*\S.*\n)*",
        lambda m: f"\n{m[1]}```pycon\n{m[0]}{m[1]}```\n",
        text,
    ).strip()


def _linked(text: str, known: set[str]) -> str:
    """Replaces roles (``:func:`ptxgen.linear```) by links into the reference, or by code."""

    def link(found: re.Match[str]) -> str:
        name = found[1]
        return f"[`{name}`][{name}]" if name in known else f"`{name}`"

    return re.sub(r":(?:func|mod|class|meth|data|attr):`~?([\w.]+)`", link, text)


def grouped(module: str, names: Sequence[str], tasks: str) -> str:
    """Returns a module's page of the reference with a heading for each task.

    ``tasks``: a document with a section for each task, whose tables have an operation a row. What
    it does not have comes behind, and errors last.
    """
    groups: dict[str, list[str]] = {}
    for section in re.split(r"^## ", tasks, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        groups[title] = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    errors = [name for name in names if re.search("(Error|Fault|Warning)$", name)]
    placed = {name for group in (*groups.values(), errors) for name in group}
    groups["Other functions and types"] = [name for name in names if name not in placed]
    groups["Errors"] = errors
    parts = [f"::: {module}\n    options:\n      members: false\n"]
    for title, group in groups.items():
        here = [name for name in group if name in names]
        parts += [f"## {title}\n"] if here else []
        parts += (f"::: {module}.{n}\n    options:\n      heading_level: 3\n" for n in here)
    return "\n".join(parts)


# -- the documents ------------------------------------------------------------------------------
def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites, on the site's pages, what only readers of files understand."""
    if (uri := page.file.src_uri) in GROUPED:
        module, stub = GROUPED[uri]
        names = [*_names((STUBS / stub).read_text(encoding="utf-8"))]
        return grouped(module, names, TASKS.read_text(encoding="utf-8"))
    return page_text(text, uri)


def page_text(text: str, page: str) -> str:
    """Converts a document for mkdocs: words after a fence's language become the block's title, and
    links that lead out of docs/ become paths.
    """

    def titled(found: re.Match[str]) -> str:
        title = ", ".join(NEEDS[word] for word in found[2].split() if word in NEEDS)
        return f'```{found[1]} title="{title}"' if title else f"```{found[1]}"

    text = re.sub(r"^```python from (\S+)$", r'```python title="\1"', text, flags=re.MULTILINE)
    text = re.sub(r"^```(\w+) ([a-z ]+)$", titled, text, flags=re.MULTILINE)

    def outside(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[2]))
        if not path.startswith("../"):
            return found[0]
        path = path.removeprefix("../")
        return f"{found[1]} (`{path}`)" if path not in found[1] else found[1]

    return re.sub(r"(?<!!)\[([^\]]+)\]\(((?!\w+:|#)[^)#\s]+)[^)\s]*\)", outside, text)
