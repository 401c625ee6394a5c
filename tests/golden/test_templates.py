"""Every line of every template is in a golden: of a kernel that is listed, or pinned for it."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import DictLoader
from jinja2.ext import Extension
from jinja2.lexer import Token

from ptxgen.build import render
from ptxgen.tiles import PINNED, SPECS

FOLDER = render.PACKAGE / "templates"

Line = tuple[str, int]
"""A template's path, and the number of a line."""


class Traced(Extension):
    """Puts a call of ``rendered_lines`` before each piece of text and each expression of a
    template: with the lines that it has, when it is rendered.
    """

    def filter_stream(self, stream: Any) -> Iterator[Token]:
        for token in stream:
            if token.type == "data":
                pieces = enumerate(token.value.split("\n"), token.lineno)
                yield from self.call(stream.name, [n for n, text in pieces if text.strip()])
            elif token.type == "variable_begin":
                yield from self.call(stream.name, [token.lineno])
            yield token

    def call(self, template: str, lines: list[int]) -> Iterator[Token]:
        if not lines:
            return
        self.environment.globals["all_lines"].update((template, n) for n in lines)
        first = lines[0]
        yield Token(first, "variable_begin", "{{")
        yield Token(first, "name", "rendered_lines")
        yield Token(first, "lparen", "(")
        yield Token(first, "string", template)
        for n in lines:
            yield Token(first, "comma", ",")
            yield Token(first, "integer", n)
        yield Token(first, "rparen", ")")
        yield Token(first, "variable_end", "}}")


class Tracer:
    """Renders kernels, and knows which lines of templates that took."""

    def __init__(self) -> None:
        self.all: set[Line] = set()
        self.rendered: set[Line] = set()
        self.text = ""
        self.environment = render.environment().overlay(extensions=[Traced])
        mine = {"all_lines": self.all, "rendered_lines": self.note}
        self.environment.globals = {**self.environment.globals, **mine}

    def note(self, template: str, *lines: int) -> str:
        self.rendered.update((template, n) for n in lines)
        return ""

    def lines(self, spec: Any) -> set[Line]:
        """Renders ``spec`` and returns the template lines that its source comes from."""
        self.rendered = set()
        template = self.environment.get_template(spec.template)
        self.text = template.render(spec=spec, **spec.context)
        return self.rendered


@functools.cache
def text(template: str) -> list[str]:
    return (FOLDER / template).read_text().splitlines()


def is_code(line: Line) -> bool:
    """Whether a line is more than a comment of the generated source."""
    template, number = line
    return not text(template)[number - 1].strip().startswith("//")


@pytest.fixture(scope="module")
def tracer() -> Tracer:
    return Tracer()


@pytest.fixture(scope="module")
def shown(tracer: Tracer) -> tuple[Counter[Line], dict[str, set[Line]], set[Line]]:
    """Returns how many kernels render each line, the lines of pinned kernels, and all lines."""
    for path in FOLDER.rglob("*.j2"):
        tracer.environment.get_template(path.relative_to(FOLDER).as_posix())
    pinned = {name: tracer.lines(spec) for name, spec in PINNED.items()}
    counts = Counter(line for found in pinned.values() for line in found)
    for spec in SPECS.values():
        counts.update(tracer.lines(spec))
    return counts, pinned, tracer.all


SHOWN = pytest.mark.xdist_group("lines of templates")
"""All kernels are rendered once, in one process."""


@SHOWN
def test_every_line_of_every_template_is_in_a_golden(shown: Any) -> None:
    counts, _, lines = shown
    assert len(lines) > 6000
    hidden = [
        f"{template}:{number}: {text(template)[number - 1].strip()}"
        for template, number in sorted(line for line in lines if is_code(line))
        if not counts[template, number]
    ]
    assert not hidden, "lines that no listed or pinned kernel has:\n" + "\n".join(hidden)


@SHOWN
@pytest.mark.parametrize("name", sorted(PINNED))
def test_every_pinned_kernel_shows_lines_that_no_other_does(shown: Any, name: str) -> None:
    counts, pinned, _ = shown
    assert [line for line in pinned[name] if counts[line] == 1 and is_code(line)]


SMALL = {
    "kernel.j2": """{% from "part.j2" import twice with context -%}
{% set wide = spec.wide %}
// a comment
first {{ twice("x") }}
{% if wide %}
wide
{% else %}
narrow
{%- endif %}
{% for i in range(spec.count) %}

    turn {{ i }}
{% endfor %}
""",
    "part.j2": """{% macro twice(x) -%}
{{ x }} +
{{ x }}
{%- endmacro %}
{% macro never() %}
nothing
{% endmacro %}
""",
}


@pytest.mark.parametrize(
    ("wide", "count", "lines"),
    [(True, 0, {3, 4, 6}), (False, 0, {3, 4, 8}), (True, 2, {3, 4, 6, 12})],
)
def test_what_a_template_renders_is_known_by_line(wide: bool, count: int, lines: set[int]) -> None:
    """The tracer tells apart branches, loops without a turn and uncalled macros, and does not
    change what is rendered.
    """
    spec = SimpleNamespace(template="kernel.j2", context={}, wide=wide, count=count)
    tracer, plain = Tracer(), render.environment().overlay(loader=DictLoader(SMALL))
    tracer.environment.loader = plain.loader
    found = tracer.lines(spec)
    assert found == {("kernel.j2", n) for n in lines} | {("part.j2", 2), ("part.j2", 3)}
    assert ("part.j2", 6) in tracer.all
    assert tracer.text == plain.get_template("kernel.j2").render(spec=spec)


@pytest.mark.parametrize("name", sorted(PINNED))
def test_watching_changes_no_source(tracer: Tracer, name: str) -> None:
    tracer.lines(PINNED[name])
    assert tracer.text == render.render(PINNED[name])
