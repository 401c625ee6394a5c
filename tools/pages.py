"""The site of ``make docs``: the documents as they are, and a reference from the docstrings.

Hooks of mkdocs (mkdocs.yml). Names of the library are made when they are first used, so before the
site is built they are written down, as ``build/api/ptxgen/*.py``: signatures and docstrings, which
mkdocstrings reads as it reads any source. Documents are for readers of files, too: what only these
understand (links out of docs/, the words behind a fence) is rewritten as pages are read.
"""

from __future__ import annotations

import ast
import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterator
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
SECTION = re.compile(r"^(\w[\w ]*):?\n((?:[ ]{4}.*\n|\n(?=[ ]{4}))+)", re.MULTILINE)
"""A heading of a docstring, and what is indented below it."""


# -- the reference ------------------------------------------------------------------------------
def on_startup(command: str, dirty: bool) -> None:
    """Writes the stubs. mkdocstrings looks for their folder as early as ``on_config``."""
    STUBS.mkdir(parents=True, exist_ok=True)
    for name, text in stubs().items():
        (STUBS / f"{name}.py").write_text(text, encoding="utf-8")


def stubs() -> dict[str, str]:
    """Returns the text of each module of the reference, by file name."""
    found = {}
    for name in MODULES:
        module = import_module(name)
        found[name.partition(".")[2] or "__init__"] = _module(module)
    found["torch"] = _torch()
    known = {"ptxgen", *_paths(found)}
    return {name: _linked(text, known) for name, text in found.items()}


def _paths(texts: dict[str, str]) -> Iterator[str]:
    """Yields the full name of everything in the reference."""
    for name, text in texts.items():
        base = "ptxgen" if name == "__init__" else f"ptxgen.{name}"
        yield base
        for each in ast.parse(text).body:
            if isinstance(each, ast.FunctionDef | ast.ClassDef):
                yield f"{base}.{each.name}"


def _module(module: ModuleType) -> str:
    parts = [_quoted(inspect.getdoc(module) or "")]
    for name in sorted(n for n in dir(module) if not n.startswith("_")):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            continue
        if isinstance(value, type):
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
            parts.append(_declared(node))
        elif callable(value):
            parts.append(_function(name, value))
        else:
            parts.append(f"{name}: {type(value).__name__}\n{_quoted(_said(module, name))}")
    return "\n\n".join(parts) + "\n"


def _function(name: str, value: Any) -> str:
    doc = getattr(value, "doc", None) or inspect.getdoc(value) or ""
    try:
        taken = str(inspect.signature(value)).replace("'", '"')
        ast.parse(f"def f{taken}: ...")
    except (SyntaxError, ValueError):  # a default that has no text
        taken = "(*args, **options)"
    return _written(name, taken, doc)


def _written(name: str, taken: object, doc: str) -> str:
    return f"def {name}{taken}:\n{textwrap.indent(_quoted(doc), '    ')}"


def _said(module: ModuleType, name: str) -> str:
    """Returns the docstring below a constant in its module's source."""
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
    """Returns the page of ``ptxgen.torch``, read from its source: this needs no PyTorch."""
    tree = ast.parse((TORCH / "__init__.py").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for each in tree.body:
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("ptxgen.torch."):
            source = TORCH / f"{each.module.rpartition('.')[2]}.py"
            taken = {alias.asname or alias.name for alias in each.names}
            for node in ast.parse(source.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in taken:
                    found[node.name] = _declared(node)
    from ptxgen.ops import OPERATIONS
    from ptxgen.ops.reductions import RowFunction

    for name, op in OPERATIONS.items():
        offered = op.public or name == "int4_gemm"
        if isinstance(op, RowFunction):
            found[name] = _written(name, *op.as_torch)
        elif offered and name not in found and not any(p.flag for p in op.parameters):
            found[name] = _function(name, op.function)
    parts = (_quoted(ast.get_docstring(tree) or ""), *(found[n] for n in sorted(found)))
    return "\n\n".join(parts) + "\n"


def _declared(node: ast.AST) -> str:
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
            body.append(ast.parse(_declared(each)).body[0])
    node.decorator_list, node.body = [], body
    return ast.unparse(node)


def _shown(node: ast.FunctionDef) -> bool:
    own = node.name.startswith("_") and node.name not in ("__init__", "__call__")
    return bool(not own and ast.get_docstring(node))


def _quoted(doc: str) -> str:
    text = markdown(doc).replace("\\", "\\\\").replace('"""', '\\"""')
    return f'"""{text}\n"""' if text else '"""."""'


def markdown(doc: str) -> str:
    """Returns a docstring as Markdown: headings as terms, examples as code."""

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
    """Returns text with roles (``:func:`ptxgen.linear```) as links into the reference, or code."""

    def link(found: re.Match[str]) -> str:
        name = found[1]
        return f"[`{name}`][{name}]" if name in known else f"`{name}`"

    return re.sub(r":(?:func|mod|class|meth|data|attr):`~?([\w.]+)`", link, text)


# -- the documents ------------------------------------------------------------------------------
def on_files(files: Any, config: Any) -> Any:
    """Makes the README the first page of the site."""
    from mkdocs.structure.files import File

    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\(docs/", "](", text)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "examples/README.md"):
        text = text.replace(f"]({name})", f"](../{name})")
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites, on the site's pages, what only readers of files understand."""
    return page_text(text, page.file.src_uri)


def page_text(text: str, page: str) -> str:
    """Returns a document as mkdocs takes it: words behind a fence become a title, and links that
    lead out of docs/ become paths.
    """

    def titled(found: re.Match[str]) -> str:
        told = ", ".join(NEEDS[word] for word in found[2].split() if word in NEEDS)
        return f'```{found[1]} title="{told}"' if told else f"```{found[1]}"

    text = re.sub(r"^```python from (\S+)$", r'```python title="\1"', text, flags=re.MULTILINE)
    text = re.sub(r"^```(\w+) ([a-z ]+)$", titled, text, flags=re.MULTILINE)

    def outside(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[2]))
        if not path.startswith("../"):
            return found[0]
        path = path.removeprefix("../")
        return f"{found[1]} (`{path}`)" if path not in found[1] else found[1]

    return re.sub(r"(?<!!)\[([^\]]+)\]\(((?!\w+:|#)[^)#\s]+)[^)\s]*\)", outside, text)
