"""The documents are right: their code runs, their links lead somewhere, their commands exist."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from test_imports import ROOMS, ROOT

from ptxgen.cli import main, parser
from ptxgen.dispatch import prove
from ptxgen.numerics.contract import OPERATIONS

CHECKOUT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    p.relative_to(CHECKOUT) for p in (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"))
)
ARCHITECTURE = Path("docs/architecture.md")
# Its Python blocks show where a line goes, not a whole program.
EXCERPTS = {Path("docs/adding-a-kernel.md")}


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


def with_python(*, gpu: bool) -> list[Path]:
    """The documents with runnable Python of this kind."""
    return [
        d
        for d in DOCUMENTS
        if d not in EXCERPTS and any(("gpu" in b.info) == gpu for b in blocks(d, "python"))
    ]


def execute(document: Path, *, gpu: bool) -> None:
    """Runs a document's blocks, each in a namespace of its own: a reader copies one of them."""
    for block in blocks(document, "python"):
        if ("gpu" in block.info) != gpu:
            continue
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
            code = compile("\n" * (block.line - 1) + block.text, str(document), "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, {"__name__": where})


@pytest.mark.parametrize("document", with_python(gpu=False), ids=str)
def test_python_runs(document: Path) -> None:
    execute(document, gpu=False)


@pytest.mark.gpu
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.parametrize("document", with_python(gpu=True), ids=str)
def test_python_runs_on_the_gpu(document: Path) -> None:
    execute(document, gpu=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_python_parses(document: Path) -> None:
    for block in blocks(document, "python"):
        assert set(block.info) <= {"gpu"}, f"{document}:{block.line}: {block.info}"
        if not block.text.startswith(">>>"):
            ast.parse(block.text, f"{document}:{block.line}")


def anchors(document: Path) -> set[str]:
    """The names that a document's headings can be linked by."""
    prose = re.sub(r"^```.*?^```$", "", read(document), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
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
                yield words[1:]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_shell_commands_are_understood(document: Path) -> None:
    for words in shell(document):
        try:
            parser().parse_args(words)
        except SystemExit:
            pytest.fail(f"{document}: ptxgen {shlex.join(words)}")


def offered(*group: str) -> set[str]:
    """The commands that ``ptxgen [GROUP] --help`` lists."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        main([*group, "--help"])
    return set(re.findall(r"^ {4}(\w+)", out.getvalue(), re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_commands_exist(document: Path) -> None:
    """Also those named in prose and tables: `ptxgen golden check`."""
    for span in re.findall(r"`ptxgen ([^`\n]+)`", read(document)):
        command, *rest = re.match(r"[\w ]*", span)[0].split() or [""]
        if command and not command.isupper():
            assert command in offered(), f"{document}: ptxgen {span}"
        if command in ("golden", "cache", "bench") and rest:
            assert rest[0] in offered(command), f"{document}: ptxgen {span}"


def test_readme_lists_every_command() -> None:
    listed = re.findall(r"^\| `ptxgen (\w+)` \|", read(Path("README.md")), re.MULTILINE)
    assert sorted(listed) == sorted(offered())


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
