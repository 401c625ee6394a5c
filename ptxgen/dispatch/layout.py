"""Formats expressions, calls and conditions as lines of Python, at most :data:`WIDTH` wide."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ptxgen.expr import TRUE, Expr, var

WIDTH = 100

Field = str | Sequence[str]
"""An argument as Python text, or a tuple of such texts."""


def python(e: Expr) -> str:
    """Returns Python text of an expression, in the style that formatters and linters accept."""
    lower = {name: var(name.lower()) for name in e.variables()}
    tree = ast.parse(e.substitute(lower).python(), mode="eval")
    return ast.unparse(_Plain().visit(tree))


def quoted(text: str) -> str:
    """Returns a string literal."""
    return f'"{text}"'


def tuple_of(texts: Sequence[str]) -> str:
    """Returns the text of a tuple of ``texts``."""
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def subtrees(e: Expr) -> Iterator[Expr]:
    """Yields an expression and all its subexpressions."""
    yield e
    if e.op not in ("var", "const"):
        for arg in e.args:
            yield from subtrees(arg)


def replaced(e: Expr, names: Mapping[Expr, str]) -> Expr:
    """Returns ``e`` with each subtree in ``names`` replaced by its name."""
    if e in names:
        return var(names[e])
    if e.op in ("var", "const"):
        return e
    return Expr(e.op, tuple(replaced(arg, names) for arg in e.args))


def assignment(name: str, e: Expr, indent: str) -> Iterator[str]:
    """Yields lines that assign ``e`` to ``name``; parts of a long formula get names first."""
    part = 0
    while len(line := f"{indent}{name} = {python(e)}") > WIDTH:
        part += 1
        named = f"{name}_part_{part}"
        lines = {s: f"{indent}{named} = {python(s)}" for s in subtrees(e) if not s.boolean}
        longest = max((s for s in lines if len(lines[s]) <= WIDTH), key=lambda s: len(lines[s]))
        yield lines[longest]
        e = replaced(e, {longest: named})
    yield line


def call(lead: str, fields: Sequence[Field], indent: str, end: str = "") -> Iterator[str]:
    """Yields the lines of ``lead(*fields)end``: one, or more if it is long."""
    line = f"{indent}{lead}({', '.join(map(_field, fields))}){end}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{indent}{lead}("
    yield from filled(fields, indent + "    ")
    yield f"{indent}){end}"


def filled(fields: Sequence[Field], indent: str) -> Iterator[str]:
    """Yields lines of ``fields``, separated by commas, as many on a line as fit; a long tuple takes
    several lines.
    """
    line = indent
    for field in fields:
        text = f"{_field(field)},"
        if len(line) + 1 + len(text) > WIDTH and line != indent:
            yield line
            line = indent
        if len(indent) + len(text) > WIDTH and not isinstance(field, str):
            yield f"{indent}("
            yield from filled(field, indent + "    ")
            line = f"{indent}),"
        else:
            line += text if line == indent else f" {text}"
    yield line


def _field(field: Field) -> str:
    return field if isinstance(field, str) else tuple_of(field)


def branch(guards: Sequence[str], predicate: Expr, indent: str) -> Iterator[str]:
    """Yields the lines of the statement ``if guards and predicate:``, with ``guards`` as Python
    texts.

    Yields nothing if there are no guards and the predicate is TRUE.
    """
    within = "and" if guards else ""
    texts = [*guards, *([] if predicate == TRUE else [_condition(predicate, within)])]
    if not texts:
        return
    line = f"{indent}if {' and '.join(texts)}:"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{indent}if ("
    terms: list[str | Expr] = [*guards]
    if predicate.op == "or" and not guards:
        yield from _broken(_terms(predicate, "or"), "or", f"{indent}    ")
    else:
        terms += () if predicate == TRUE else _terms(predicate, "and")
        yield from _broken(terms, "and", f"{indent}    ")
    yield f"{indent}):"


def _broken(terms: Iterable[str | Expr], operator: str, indent: str) -> Iterator[str]:
    """Yields lines of ``terms`` (predicates, or Python texts) joined by ``operator``, "and" or
    "or", as many terms on a line as fit.
    """
    line, lead = indent, ""
    for term in terms:
        text = term if isinstance(term, str) else _condition(term, within=operator)
        long = len(line) + len(lead) + len(text) > WIDTH
        if long and line.strip():
            yield line.rstrip()
            line, lead = indent, lead.lstrip()
            long = len(line) + len(lead) + len(text) > WIDTH
        group = term.args[0] if isinstance(term, Expr) and term.op == "not" else term
        if long and isinstance(group, Expr) and group.op in ("and", "or"):
            yield f"{line}{lead}{'' if group is term else 'not '}("
            yield from _broken(_terms(group, group.op), group.op, indent + "    ")
            line = f"{indent})"
        else:
            line += lead + text
        lead = f" {operator} "
    yield line


def _condition(predicate: Expr, within: str = "") -> str:
    """Returns a predicate as Python text on one line.

    ``within``: operator, "and" or "or", of the expression that it is part of; it then gets
    parentheses if it has the other one.
    """
    if predicate.op in ("and", "or"):
        terms = _terms(predicate, predicate.op)
        text = f" {predicate.op} ".join(_condition(t, within=predicate.op) for t in terms)
        return f"({text})" if within and within != predicate.op else text
    if predicate.op == "not" and predicate.args[0].op in ("and", "or"):
        return f"not ({_condition(predicate.args[0])})"
    return python(predicate)


def _terms(predicate: Expr, operator: str) -> Iterator[Expr]:
    if predicate.op == operator and operator in ("and", "or"):
        for arg in predicate.args:
            yield from _terms(arg, operator)
    else:
        yield predicate


class _Plain(ast.NodeTransformer):
    """Rewrites comparisons of Python syntax trees: ``128 <= m`` to ``m >= 128``, ``not m < n`` to
    ``m >= n``.
    """

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        mirrored = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
        self.generic_visit(node)
        left, (operator,), (right,) = node.left, node.ops, node.comparators
        if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
            return ast.Compare(right, [mirrored.get(type(operator), type(operator))()], [left])
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        negated = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
        node.operand = inner = self.visit(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(inner, ast.UnaryOp):
            return inner.operand  # minus minus
        if isinstance(node.op, ast.Not) and isinstance(inner, ast.Compare):
            operator = negated.get(type(inner.ops[0]), ast.NotEq)()
            return self.visit_Compare(ast.Compare(inner.left, [operator], inner.comparators))
        return node
