"""The documents are right: their code runs, their links lead somewhere, their commands exist."""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import pydoc
import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from loops import for_each
from registries import registries_kept
from test_imports import ROOMS, ROOT

import ptxgen
from ptxgen import arguments
from ptxgen.cli import main, parser
from ptxgen.cli.kernels import find
from ptxgen.cli.routes import given_sizes
from ptxgen.dispatch import prove
from ptxgen.errors import PtxgenError
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.numerics.dtype import FULL, PARTS
from ptxgen.ops import OPERATIONS as ALL
from ptxgen.ops.explaining import operation, size_names
from ptxgen.ops.pointwise_table import ROWS, Row
from ptxgen.program.launch import routes_by_name
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.tiles import PINNED, SPECS

CHECKOUT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    p.relative_to(CHECKOUT) for p in (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"))
)
ARCHITECTURE = Path("docs/explanation/architecture.md")


PLAIN: list[list[str]] = [[], ["test"]]
"""Words behind a fence of a program that these tests run: none, or that it wants test packages."""


class Block(NamedTuple):
    """A fenced block of code: the words after the fence, the text, the line it begins at."""

    info: list[str]
    text: str
    line: int


def read(document: Path) -> str:
    return (CHECKOUT / document).read_text(encoding="utf-8")


def blocks(document: Path, language: str) -> Iterator[Block]:
    text = read(document)
    for found in re.finditer(r"^```(\w[^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        info = found[1].split()
        if info[0] == language:
            yield Block(info[1:], found[2], text.count("\n", 0, found.start(2)) + 1)


def programs(document: Path, *, gpu: bool) -> list[Block]:
    """The runnable Python of this kind."""
    wanted = [["gpu"]] if gpu else PLAIN
    return [b for b in blocks(document, "python") if b.info in wanted]


def with_python(*, gpu: bool) -> list[Path]:
    """The documents that have such."""
    return [d for d in DOCUMENTS if programs(d, gpu=gpu)]


def execute(document: Path, *, gpu: bool) -> None:
    """Runs a document's blocks, each in a namespace of its own: a reader copies one of them."""
    for block in programs(document, gpu=gpu):
        where = f"{document}:{block.line}"
        if block.text.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(
                block.text, {}, where, str(document), block.line - 1
            )
            report = io.StringIO()
            failed, _ = doctest.DocTestRunner(verbose=False).run(example, out=report.write)
            assert not failed, report.getvalue()
        else:
            # The lines before it make a traceback show the document's line.
            text = "\n" * (block.line - 1) + block.text
            code = compile(text, str(document), "exec", dont_inherit=True)
            with contextlib.redirect_stdout(io.StringIO()), registries_kept():
                exec(code, {"__name__": where})


@pytest.mark.parametrize("document", with_python(gpu=False), ids=str)
def test_python_runs(document: Path) -> None:
    execute(document, gpu=False)


@pytest.mark.gpu
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.parametrize("document", with_python(gpu=True), ids=str)
def test_python_runs_on_the_gpu(document: Path) -> None:
    execute(document, gpu=True)


@for_each("document", DOCUMENTS)
def test_python_parses(document: Path) -> None:
    for block in blocks(document, "python"):
        if not block.text.startswith(">>>"):
            ast.parse(textwrap.dedent(block.text), f"{document}:{block.line}")


@for_each("document", DOCUMENTS)
def test_excerpts_are_of_the_code(document: Path) -> None:
    """A block of Python is a program, one that needs a GPU, or what a file has: "from FILE"."""
    for block in blocks(document, "python"):
        match block.info:
            case ["from", name]:
                assert block.text in read(Path(name)), f"{document}:{block.line}: {name} has not"
            case info:
                assert info in (*PLAIN, ["gpu"]), f"{document}:{block.line}: {info}"


@for_each("document", DOCUMENTS)
def test_edits_fit_the_code(document: Path) -> None:
    """Edits that a recipe shows ("diff edit") apply to the code."""
    for block in blocks(document, "diff"):
        if block.info == ["edit"]:
            apply = ["git", "apply", "--check", "-"]
            done = subprocess.run(
                apply, input=block.text, cwd=CHECKOUT, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{document}:{block.line}: {done.stderr}"


def anchors(document: Path) -> set[str]:
    """The names that a document's headings can be linked by."""
    prose = re.sub(r"^```.*?^```$", "", read(document), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


@for_each("document", DOCUMENTS)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", read(document)):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (CHECKOUT / document.parent / name).resolve() if name else CHECKOUT / document
        assert path.exists(), f"{document} links to {target}"
        assert path.is_relative_to(CHECKOUT), f"{document} links out of the checkout: {target}"
        if anchor:
            assert anchor in anchors(path.relative_to(CHECKOUT)), f"{document} links to {target}"


def shell(document: Path) -> Iterator[list[str]]:
    """The ptxgen commands of a document's shell blocks, as words."""
    for block in blocks(document, "sh"):
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["ptxgen"]:
                yield words[1 : words.index(">") if ">" in words else None]


def spans(document: Path) -> Iterator[list[str]]:
    """The ptxgen commands with options that a document has in prose, as words."""
    for span in re.findall(r"`ptxgen ([^`\n]+ --[^`\n]+)`", read(document)):
        words = shlex.split(span)
        if not words[0].isupper():
            yield words


WHOLE = parser(deferred=False)
"""The command line with the options of benchmarks."""


def check_command(words: list[str]) -> None:
    """Raises an error unless the words are a command whose options and names there are."""
    try:
        options = vars(WHOLE.parse_args([w for w in words if w not in ("[FILE", "...]")]))
    except SystemExit:
        if not words[-1].startswith("--"):
            raise
        return check_command([*words, "1"])  # prose that names an option alone
    if words[1:] and words[1].isupper():
        return
    names = options.get("spec", [])
    for name in [names] if isinstance(names, str) else names:
        if words[0] != "profile" or name not in routes_by_name():
            find(name)
    op, sizes = options.get("op"), options.get("sizes")
    if words[0] == "explain":
        given_sizes(op, sizes)
    if words[0] == "build" and (asked := options["problems"]):
        arguments.ranges(asked[1], arguments.written(size_names(operation(asked[0]))))
    rows = options.get("rows") or []
    for path in [rows] if isinstance(rows, Path) else rows:
        assert path.name in ("FILE", "1") or list(CHECKOUT.glob(str(path))), path


@for_each("document", DOCUMENTS)
def test_commands_are_understood(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prose = () if document.name == "CHANGELOG.md" else spans(document)  # of older versions, too
    for words in (*shell(document), *prose):
        said = f"{document}: ptxgen {shlex.join(words)}"
        try:
            check_command(words)
        except (SystemExit, PtxgenError) as error:
            pytest.fail(f"{said}: {capsys.readouterr().err or error}")
        assert "warning" not in capsys.readouterr().err, said


def test_wrong_commands_are_seen() -> None:
    for line in (
        "explain lineal 1x2x3",
        "explain linear 1x2",
        "bench graph --json FILE",
        "bench gemm --rows bench/results/none.json",
        "show simt_nn_f32_64x64x16_bf213f",
        "build --for linear 1..2x3",
    ):
        with pytest.raises((SystemExit, PtxgenError, AssertionError)):
            check_command(shlex.split(line))


KERNEL = re.compile(r"\b([a-z]\w*?)_\w+_[0-9a-f]{6}\b")


@for_each("document", DOCUMENTS)
def test_kernels_exist(document: Path) -> None:
    """Kernels named in documents exist, except those made at run time (pointwise)."""
    made = {"pointwise"}
    named = {found[0] for found in KERNEL.finditer(read(document)) if found[1] not in made}
    for name in named - SPECS.keys() - PINNED.keys():
        pytest.fail(f"{document}: there is no kernel {name}")


@for_each("document", DOCUMENTS)
def test_kernels_of_commands_exist(document: Path) -> None:
    """Kernels in commands exist, except those that a recipe's edits make."""
    for block in blocks(document, "sh"):
        for name in re.findall(r"\b[a-z]\w*_[0-9a-f]{6}\b", block.text):
            assert "recipe" in block.info or name in SPECS, f"{document}:{block.line}: {name}"


def offered(*group: str) -> set[str]:
    """The commands that ``ptxgen [GROUP] --help`` lists."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        main([*group, "--help"])
    return set(re.findall(r"^ {4}(\w+)", out.getvalue(), re.MULTILINE))


@for_each("document", DOCUMENTS)
def test_commands_exist(document: Path) -> None:
    """Commands named in prose and tables, such as `ptxgen golden check`, exist."""
    for span in re.findall(r"`ptxgen ([^`\n]+)`", read(document)):
        command, *rest = re.match(r"[\w ]*", span)[0].split() or [""]
        if command and not command.isupper():
            assert command in offered(), f"{document}: ptxgen {span}"
        if command in ("golden", "cache", "bench") and rest:
            assert rest[0] in offered(command), f"{document}: ptxgen {span}"


def test_every_command_is_listed() -> None:
    page = read(Path("docs/reference/commands.md"))
    listed = re.findall(r"^\| `ptxgen (\w+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted(offered())


# -- the README, and what can be found from it ----------------------------------------------------
README = Path("README.md")
WIDTH, LINES = 100, 150


def test_the_readme_is_short() -> None:
    lines = read(README).splitlines()
    assert len(lines) <= LINES
    assert not [line for line in lines if len(line) > WIDTH]


@for_each("document", DOCUMENTS)
def test_lines_of_prose_are_short(document: Path) -> None:
    """Lines of prose are short; tables, code and unbreakable text are exempt."""
    text = re.sub(r"^( *)```.*?^\1```$", "", read(document), flags=re.MULTILINE | re.DOTALL)
    long = [line for line in text.splitlines() if len(line) > WIDTH and line[0] not in "|!#"]
    assert not [line for line in long if " " in re.sub(r"`[^`]*`", "", line).strip()]


LONG = {f"docs/reference/{name}.md" for name in ("contracts", "operations", "support")}
LONG |= {"docs/performance.md"}
"""Pages that may have more than WORDS words: of contracts, of operations, and generated tables."""
WORDS = 2500


@for_each("document", DOCUMENTS)
def test_pages_are_short(document: Path) -> None:
    """Pages have few words, table lines aside; notes and the changelog are no pages of the site."""
    if document.parts[0] == "docs" and document.parent.name != "notes":
        words = len(read(document).replace("|", " ").split())
        assert words <= WORDS or document.as_posix() in LONG, f"{document}: {words} words"


def test_the_readmes_areas_are_those_of_the_report() -> None:
    """The README's figures of an area are those of the page that ``bench report`` writes."""
    report = {
        tuple(
            re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", c) for c in line.strip("| ").split(" | ")[:2]
        ): line
        for line in table(Path("docs/performance.md"), "area")
    }
    for line in table(README, "area"):
        area, beside, figures = line.strip("| ").split(" | ")
        (found,) = (
            row.strip("| ").split(" | ")
            for (name, peer), row in report.items()
            if (name.lower(), peer) == (area.lower(), beside)
        )
        assert figures == f"{found[3]} ({found[4]})", area


def test_the_readmes_first_program_needs_no_gpu() -> None:
    first, *others = blocks(README, "python")
    assert first.info == [], "the first program is run everywhere"
    assert others and all(block.info in ([], ["gpu"]) for block in others), "all are run"


def test_the_readme_shows_what_its_example_prints() -> None:
    """The lines of ptxgen's own results, which are the same everywhere."""
    spec = importlib.util.spec_from_file_location("it", CHECKOUT / "examples/batch_invariance.py")
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    zeros = np.zeros((2, example.N), np.float32)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        example.show("ptxgen on cpu:0", lambda rows: zeros, zeros, (1, 2, 17))
    (shown,) = (block.text for block in blocks(README, "text"))
    assert out.getvalue() in shown


def test_the_readmes_figures_are_those_of_the_runs() -> None:
    """The README's table has the figures that its commands print."""
    of = [line for line in shell(README) if line[:3] == ["bench", "gemm", "--rows"]]
    bands = {"1 … 48": "1-48", "49 … 512": "49-512", "more": "above 512"}
    bands["more, weights of models"] = "tokens"
    rows = [line.strip("| ").split(" | ") for line in table(README, "rows")]
    assert len(of) == 2 and [row[0] for row in rows] == [*bands]
    for column, words in enumerate(of, 1):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(words) == 0
        printed = out.getvalue()
        for row in rows:
            band = bands[row[0]]
            figures = rf"^all +{band} +\d+ +([\d.]+) +([\d.]+) "
            mean, tenth = re.search(figures, printed, re.MULTILINE).groups()
            said, low = re.fullmatch(r"([\d.]+) \(([\d.]+)\)", row[column]).groups()
            assert abs(float(mean) - float(said)) <= 0.0056, "rounded, of what is rounded"
            assert abs(float(tenth) - float(low)) <= 0.0056


def linked(document: Path) -> set[str]:
    """The files that a document links to."""
    targets = re.findall(r"\]\(([^)#\s]+)", read(document))
    return {
        (CHECKOUT / document.parent / target).resolve().relative_to(CHECKOUT).as_posix()
        for target in targets
        if ":" not in target
    }


def test_every_document_is_found_from_the_readme() -> None:
    seen, after = {README.as_posix()}, [README]
    while after:
        new = {name for name in linked(after.pop()) if name.endswith(".md")} - seen
        seen |= new
        after += map(Path, new)
    assert {d.as_posix() for d in DOCUMENTS} - seen <= {"docs/api/index.md"} | PAGES


# -- public names ---------------------------------------------------------------------------------
MODULES = ("", "functions", "layout", "int4", "quantized", "reference", "torch")
PAGES = {f"docs/api/{name or 'ptxgen'}.md" for name in MODULES}


def public(name: str) -> dict[str, object]:
    """Returns the public names of a module, with their values."""
    if name == "torch":
        pytest.importorskip("torch")
    module = importlib.import_module(f"ptxgen.{name}".rstrip("."))
    found = {n: getattr(module, n) for n in dir(module) if not n.startswith("_")}
    return {n: value for n, value in found.items() if not isinstance(value, ModuleType)}


def pages() -> ModuleType:
    """tools/pages.py, of which the site is made."""
    spec = importlib.util.spec_from_file_location("pages", CHECKOUT / "tools/pages.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("module", MODULES)
def test_operations_names_everything(module: str) -> None:
    named = set(re.findall(r"`(\w+)", read(Path("docs/reference/operations.md"))))
    assert not public(module).keys() - named


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_everything(module: str) -> None:
    """A page for each module, with every name: from what mkdocstrings reads."""
    page = CHECKOUT / f"docs/api/{module or 'ptxgen'}.md"
    assert page.read_text() == f"::: {f'ptxgen.{module}'.rstrip('.')}\n"
    body = ast.parse(pages().stubs()[module or "__init__"]).body
    made = {e.name for e in body if isinstance(e, ast.FunctionDef | ast.ClassDef)}
    made |= {e.target.id for e in body if isinstance(e, ast.AnnAssign)}
    assert made == public(module).keys()


SECTIONS = ("Shapes", "Dtypes", "Order", "Errors")
NO_OPERATIONS = {
    "": {
        "autotune",
        "capture",
        "devices",
        "explain",
        "profile",
        "set_default_device",
        "timeline",
        "use_device",
    },
    "quantized": {
        *("FORMATS", "QuantizedWeight", "WeightFormat", "register"),
        *("signed", "unsigned", "excess", "floats"),
    },
    "torch": {
        "Backend",
        "Conversion",
        "Linear",
        "LinearCrossEntropy",
        "QuantizedLinear",
        "batch_invariant",
        "convert",
        "register_attention",
        "register_experts",
    },
}
"""Public names without shapes or sums, by module. Errors, which are classes, have none either."""
HARMLESS = {"devices", "Conversion", "FORMATS", "signed", "unsigned", "excess", "floats"}
"""Public names that raise nothing."""


def shown(value: object) -> str:
    """Returns the text of ``help``, with a function's indentation removed."""
    text = pydoc.plain(pydoc.render_doc(value))
    return textwrap.dedent(text.split("\n", 3)[3])


def lacks(text: str) -> list[str]:
    """Returns the parts that an operation's docstring lacks: a formula, or a section with text."""
    first = text.strip().partition("\n\n")[0]
    found = [] if re.search(r"``.+``", first, re.DOTALL) else ["a formula"]
    there = set(re.findall(r"^(\w+)\n[ ]{4}\S", text, re.MULTILINE))
    return found + [name for name in SECTIONS if name not in there]


@pytest.mark.parametrize("module", [m for m in MODULES if m != "reference"])
def test_help_says_formula_shapes_dtypes_order_and_errors(module: str) -> None:
    lacking = {}
    for name, value in public(module).items():
        other = name in NO_OPERATIONS.get(module, ())
        if isinstance(value, type) and issubclass(value, Exception):
            assert shown(value), name
        elif other:
            doc = inspect.getdoc(value) or ""
            if name not in HARMLESS and not re.search(r"Raises|^Errors", doc, re.MULTILINE):
                lacking[name] = ["what it raises"]
        elif missing := lacks(shown(value)):
            lacking[name] = missing
    assert not lacking
    assert NO_OPERATIONS.get(module, set()) <= public(module).keys(), "stale"


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings_run(module: str) -> None:
    offered = public(module)
    name = f"ptxgen.{module}".rstrip(".")
    report, count = io.StringIO(), 0
    runner = doctest.DocTestRunner(verbose=False)
    for each, value in {"": importlib.import_module(name), **offered}.items():
        doc = inspect.getdoc(value) or ""
        example = doctest.DocTestParser().get_doctest(doc, {}, f"{name}.{each}", None, 0)
        count += len(example.examples)
        with ptxgen.use_device(CpuDevice()):
            runner.run(example, out=report.write)
    assert not runner.failures, report.getvalue()
    assert count or module in ("int4", "layout"), "no example was found"


def commands(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its commands."""
    yield of
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from commands(each)


EXAMPLES = [
    re.split(" {2,}", found)[0]
    for command in commands(parser())
    for found in re.findall(r"^(?:examples?:)? *ptxgen (.+)$", command.epilog or "", re.MULTILINE)
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_of_help_run(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line)
    assert parser().parse_args(words)
    if words[0] == "completion":
        pytest.importorskip("shtab")
    if words[:2] != ["golden", "diff"]:  # which needs the commits before this one
        assert main(words) == 0
        assert capsys.readouterr().out


def test_there_are_examples_in_help() -> None:
    assert len(EXAMPLES) >= 5


def test_what_help_lacks_is_seen() -> None:
    whole = (
        "f(x)\n``x``.\n\nShapes\n    Any.\nDtypes\n    Any.\nOrder\n    None.\nErrors\n    None.\n"
    )
    assert lacks(whole) == []
    assert lacks(whole.replace("``x``.", "It.")) == ["a formula"]
    assert lacks(whole.replace("    None.\nErrors", "Errors")) == ["Order"]
    assert lacks(whole.replace("Dtypes\n    Any.\n", "")) == ["Dtypes"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_functions_take_the_dtypes_that_they_name(row: Row) -> None:
    op = ALL[row.name]
    taken = {}
    for full, short in op.known.items():
        dtypes = tuple("bool" if a == "condition" else short for a in op.arguments)
        with contextlib.suppress(PtxgenError):
            taken[full] = FULL[op.formula(dtypes).outputs[0].dtype]
    assert set(re.findall(r"\w+\d\w*|bool", row.takes)) == taken.keys()
    parts = {PARTS.get(dtype, dtype) for dtype in taken}
    given = set(re.findall(r"\w+\d\w*|bool", row.gives))
    assert set(taken.values()) == (given or (parts if "parts" in row.gives else taken.keys()))


def test_documents_are_rewritten_for_the_site() -> None:
    rewritten = pages().page_text
    text = "```python gpu\nx\n```\n```python from ptxgen/a.py\ny\n```\n[a](../b.md#c) [d](e.md)\n"
    assert rewritten(text, "p.md") == (
        '```python title="needs a GPU"\nx\n```\n'
        '```python title="ptxgen/a.py"\ny\n```\na (`b.md`) [d](e.md)\n'
    )
    assert pages().markdown("It.\n\nShapes\n    ``x``\n    any.\n\n>>> f(\n...     1)\n2\n") == (
        "It.\n\n\nShapes\n:   `x`\n    any.\n\n\n```pycon\n>>> f(\n...     1)\n2\n```"
    )
    tasks = "## Products\n| `linear` | x |\n## Other\n| `matmul` | x |\n"
    page = pages().grouped("ptxgen", ["AError", "explain", "linear"], tasks)
    found = re.findall(r"^(?:## |::: )(.+)", page, re.MULTILINE)
    others = ["Other functions and types", "ptxgen.explain", "Errors", "ptxgen.AError"]
    assert found == ["ptxgen", "Products", "ptxgen.linear", *others]


def test_all_documents_are_on_the_site() -> None:
    """All documents are in the navigation but notes and single decisions, which others link to."""
    told = set(re.findall(r"([\w/-]+\.md)$", read(Path("mkdocs.yml")), re.MULTILINE))
    there = {p.relative_to(CHECKOUT / "docs").as_posix() for p in (CHECKOUT / "docs").rglob("*.md")}
    assert told == {p for p in there if not re.match(r"notes/|adr/\d", p)}


def table(document: Path, heading: str) -> list[str]:
    """The lines of a document's only table whose first column is headed so."""
    pattern = rf"^\| {heading} \|.*\n\|[ |-]+\n((?:\|.*\n)+)"
    (found,) = re.findall(pattern, read(document), re.MULTILINE)
    return found.splitlines()


# How a document writes a room in its table of them.
ROOM = {ARCHITECTURE: r"\| `(\w+)` \|", Path("CONTRIBUTING.md"): r"\| `(\w+)(?:/|\.py)` \|"}


@pytest.mark.parametrize("document", ROOM, ids=str)
def test_every_room_is_listed_in_order(document: Path) -> None:
    lines = table(document, "room")
    listed = [found[1] for line in lines if (found := re.match(ROOM[document], line))]
    assert len(listed) == len(lines), "a line that names no room, or several"
    assert listed == [room for room in ROOMS if not room.startswith("__")]
    there = {
        path.stem for path in ROOT.iterdir() if path.suffix == ".py" or any(path.glob("**/*.*"))
    }
    assert set(listed) == {name for name in there if not name.startswith("__")}


def test_architecture_maps_every_product() -> None:
    listed = [line.split("`")[1] for line in table(ARCHITECTURE, "operation")]
    assert listed == [*OPERATIONS]


def test_architecture_says_all_that_is_proved() -> None:
    goals = re.findall(r"^(\w+) {2,}\w", prove.__doc__ or "", re.MULTILINE)
    assert len(goals) > 5
    assert [line.split()[1] for line in table(ARCHITECTURE, "goal")] == goals
