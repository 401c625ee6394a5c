"""Writes the dispatch functions of ``generated/`` from the route tables of ``tiles``.

One module per table, with one function. Every line of it is an :class:`~ptxgen.expr.Expr` in
Python's clothes. It yields the routes that the architecture runs and whose ``requires`` holds, each
with its predicted time; of a table whose kernels have no effort, whose routes are taken in order,
the first whose ``prefer`` holds as well.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxgen.dispatch.choice import Dispatch, by_architecture
from ptxgen.errors import SpecError
from ptxgen.expr import FALSE, TRUE, Expr, var
from ptxgen.spec import ARCHITECTURES, Key, Route, RouteTable, Space
from ptxgen.spec.effort import Effort
from ptxgen.tiles import TABLES

GENERATED = Path(__file__).parent / "generated"
WIDTH = 100


@dataclass(frozen=True)
class Table:
    """A route table by its key: what a dispatch module is made from.

    Refuses formulas that read anything but what the space names.
    """

    key: Key
    space: Space
    routes: tuple[Route, ...]
    partial: bool = False

    def __post_init__(self) -> None:
        for index, route in enumerate(self.routes):
            named = [("prefer", route.prefer), ("requires", route.requires)]
            named += [("grid", step.grid) for step in route.steps]
            named += [(f"scratch {name!r}", size) for name, size in route.scratch.items()]
            named += [("effort", f) for e in route.efforts or () for f in e.formulas]
            for what, formula in named:
                unknown = formula.variables() - self.space.names
                if unknown:
                    raise SpecError(
                        f"{self.module}, route {index} ({route.name}): {what} reads "
                        f"{sorted(unknown)}, but may read only {sorted(self.space.names)}"
                    )

    @property
    def module(self) -> str:
        """Name of the generated module."""
        return "_".join(self.key).lower()

    @property
    def ordered(self) -> bool:
        """Whether routes are taken in order: no time is predicted unless all have an effort."""
        return any(route.efforts is None for route in self.routes)

    @property
    def classes(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        """Architectures that run the same routes, and the indices of those routes."""
        by_routes: dict[tuple[int, ...], list[str]] = {}
        for arch in ARCHITECTURES:
            runs = tuple(i for i, route in enumerate(self.routes) if arch in _archs(route))
            by_routes.setdefault(runs, []).append(arch)
        return {tuple(archs): runs for runs, archs in by_routes.items()}


def tables(of: Mapping[Key, RouteTable] = TABLES) -> list[Table]:
    """The route tables, as dispatch modules are made from them."""
    return [Table(key, found.space, found.routes, found.partial) for key, found in of.items()]


def sources(of: Iterable[Table] | None = None) -> dict[str, str]:
    """File name to text of every generated module."""
    of = tables() if of is None else list(of)
    return {
        "__init__.py": _index(of),
        **{f"{table.module}.py": "\n".join(_module(table)) + "\n" for table in of},
    }


def functions(table: Table) -> dict[str, Dispatch]:
    """The dispatch functions of a table by architecture, made here and now."""
    namespace: dict[str, Any] = {}
    text = sources([table])[f"{table.module}.py"]
    exec(compile(text, f"<dispatch of {' '.join(table.key)}>", "exec"), namespace)
    return by_architecture(namespace["candidates"])


@dataclass(frozen=True)
class Difference:
    """A generated file that is not what the tables say."""

    path: Path
    what: str  # "stale", "missing" or "orphan"
    diff: str  # unified, from the file to what it should be

    def __str__(self) -> str:
        return f"{self.path.name}: {self.what}\n{self.diff}"


def generate(
    check: bool = False, of: Iterable[Table] | None = None, directory: Path = GENERATED
) -> list[Difference]:
    """Brings ``directory`` up to date, or with ``check`` only looks.

    Returns the files that differed: stale, missing, or orphans (which are removed).
    """
    wanted = sources(of)
    present = {p.name: p for p in directory.glob("*") if p.is_file()} if directory.exists() else {}
    found = []
    for name in sorted(wanted.keys() | present.keys()):
        path = directory / name
        old = path.read_text(encoding="utf-8") if name in present else None
        new = wanted.get(name)
        if old == new:
            continue
        what = "missing" if old is None else "orphan" if new is None else "stale"
        found.append(Difference(path, what, _diff(name, old or "", new or "")))
        if check:
            continue
        if new is None:
            path.unlink()
        else:
            directory.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8")
    return found


def condition(table: Table, route: Route) -> Expr:
    """Where ``route`` is a candidate: requires, and prefer where routes are taken in order.

    A conjunct that occurs twice is kept once.
    """
    prefer = conjuncts(route.prefer) if table.ordered else ()
    result = TRUE
    for term in dict.fromkeys((*conjuncts(route.requires), *prefer)):
        result = result & term
    return result


def conjuncts(predicate: Expr) -> Iterator[Expr]:
    """The terms of a conjunction, left to right."""
    if predicate.op == "and":
        for arg in predicate.args:
            yield from conjuncts(arg)
    else:
        yield predicate


# -- text ---------------------------------------------------------------------
def _diff(name: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), f"{name} (on disk)", f"{name} (from the tables)"
    )
    return "".join(lines)


def _index(of: Sequence[Table]) -> str:
    ordered = sorted(of, key=lambda table: table.module)
    lines = [
        '"""The modules of generated dispatch functions, by the table\'s key.',
        "",
        "A module is imported when its table is first used.",
        "",
        "Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate",
        '"""',
        "",
        "TABLES: dict[tuple[str, ...], str] = {",
        *(f"    {_key(t)}: {_quoted(t.module)}," for t in ordered),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _key(table: Table) -> str:
    return f"({', '.join(map(_quoted, table.key))}{',' if len(table.key) == 1 else ''})"


def _module(table: Table) -> Iterator[str]:
    yield f'"""Dispatch of {" ".join(table.key)}: {table.space.name}.'
    yield ""
    key = ", ".join(map(_quoted, table.key))
    yield f"Generated from ptxgen.tiles.TABLES[{key}]; do not edit."
    yield "Regenerate: ptxgen generate"
    yield '"""'
    yield ""
    yield "from collections.abc import Iterator"
    yield ""
    yield "from ptxgen.dispatch.choice import Candidate, Choice, Time"
    limited = dict.fromkeys(archs for archs in map(_archs, table.routes) if _limits(archs))
    sets = {archs: f"SOME_{number}" for number, archs in enumerate(limited)}
    if sets:
        yield ""
    for archs, name in sets.items():
        yield f"{name} = frozenset({_field([*map(_quoted, archs)])})"
    yield ""
    yield ""
    yield from _function(table, sets)


def _archs(route: Route) -> tuple[str, ...]:
    """The architectures that run a route."""
    return tuple(a for a in ARCHITECTURES if all(k.runs_on(a) for k in route.kernels))


def _limits(archs: tuple[str, ...]) -> bool:
    return archs != tuple(ARCHITECTURES)


def _function(table: Table, sets: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    arguments = [f"{name.lower()}: int" for name in table.space.arguments]
    line = f"    {', '.join(['arch: str', *arguments, 'time: Time'])}"
    yield "def candidates("
    if len(line) <= WIDTH:
        yield line
    else:
        yield from (f"    {each}," for each in ("arch: str", *arguments, "time: Time"))
    yield ") -> Iterator[Candidate]:"
    yield '    """What can serve a problem, with predicted times."""'
    bodies = [_Route(i, route, table) for i, route in enumerate(table.routes)]
    read = frozenset().union(*(body.variables for body in bodies))
    for name, formula in table.space.needed(read):
        yield from _assign(name.lower(), formula)
    hoisted: dict[Expr, str] = {}
    for body in bodies:
        for name, shared in (*body.traffic(), *body.tile_counts()):
            if shared not in hoisted:
                taken = sum(given.partition("_")[0] == name for given in hoisted.values())
                plain = name.startswith(("tiles", "pieces")) or not taken
                hoisted[shared] = name if plain else f"{name}_{taken}"
                yield f"    {hoisted[shared]} = {_python(shared)}"
        yield f"    # {body.index}: {body.route.reason}"
        archs = _archs(body.route)
        if body.condition == FALSE or not archs:
            yield "    # (never: what it asks contradicts itself)"
            continue
        guard = f"arch in {sets[archs]}" if archs in sets else ""
        if body.condition == TRUE and not guard:
            yield from body.yielded("    ", hoisted)
            if table.ordered:
                return
            continue
        yield from _if(_replace(body.condition, hoisted), guard)
        yield from body.yielded("        ", hoisted)
        if table.ordered:
            yield "        return"


def _assign(name: str, e: Expr) -> Iterator[str]:
    """Assigns ``e`` to ``name``; of a formula too long for a line, parts get names first."""
    part = 0
    while len(line := f"    {name} = {_python(e)}") > WIDTH:
        part += 1
        named = f"{name}_part_{part}"
        lines = {s: f"    {named} = {_python(s)}" for s in _subtrees(e) if not s.boolean}
        longest = max((s for s in lines if len(lines[s]) <= WIDTH), key=lambda s: len(lines[s]))
        yield lines[longest]
        e = _replace(e, {longest: named})
    yield line


class _Route:
    """One route of a function: its formulas, and their text."""

    def __init__(self, index: int, route: Route, table: Table) -> None:
        self.index = index
        self.route = route
        self.condition = condition(table, route)
        self.grids = [step.grid for step in route.steps]
        self.efforts: Sequence[Effort] = () if table.ordered else route.efforts or ()
        efforts = [formula for effort in self.efforts for formula in effort.formulas]
        self.formulas = [self.condition, *self.grids, *route.scratch.values(), *efforts]
        self.variables = frozenset().union(*(f.variables() for f in self.formulas))

    def traffic(self) -> Iterator[tuple[str, Expr]]:
        """What routes of one table mostly share."""
        for effort in self.efforts:
            yield "operands", effort.operands
            yield "stores", effort.stores

    def tile_counts(self) -> Iterator[tuple[str, Expr]]:
        """What gets a name: products ceil(X/a)*ceil(Y/b), of tiles, and X*ceil(Y/b), of pieces."""
        for count in dict.fromkeys(t for f in self.formulas for t in _subtrees(f)):
            if count.op != "*":
                continue
            match [_quotient(factor) for factor in count.args]:
                case [("m", a), ("n", b)] if a and b:
                    yield f"tiles_{a}x{b}", count
                case [(m, a), (n, b)] if m and n and b:
                    yield f"{'tiles' if a else 'pieces'}_{m}{a}_{n}{b}", count

    def yielded(self, indent: str, hoisted: Mapping[Expr, str]) -> Iterator[str]:
        def formulas(of: Iterable[Expr]) -> list[str]:
            return [_python(_replace(e, hoisted)) for e in of]

        for number, (effort, kernel) in enumerate(
            zip(self.efforts, self.route.kernels, strict=False)
        ):
            head = [_quoted(kernel.name), _quoted(effort.unit), str(effort.slots), "sms"]
            assigned = f"{indent}us {'+=' if number else '='} time"
            yield from _called(assigned, [*head, *formulas(effort.formulas)], indent)
        fields: list[str | list[str]] = [
            str(self.index),
            [_quoted(kernel.name) for kernel in self.route.kernels],
            formulas(self.grids),
            formulas(self.route.scratch.values()),
        ]
        us = "us" if self.efforts else "0.0"
        line = f"{indent}yield Candidate({us}, Choice({', '.join(map(_field, fields))}))"
        if len(line) <= WIDTH:
            yield line
            return
        yield from _called(f"{indent}choice = Choice", fields, indent)
        yield f"{indent}yield Candidate({us}, choice)"


def _quotient(e: Expr) -> tuple[str, str]:
    """Of ceil(X/a), or X, for a variable X: X and a as words; else nothing."""
    if e.op == "ceil" and e.args[0].op == "var" and e.args[1].op == "const":
        return str(e.args[0]).lower(), str(e.args[1].args[0])
    return (str(e).lower() if e.op == "var" else ""), ""


def _called(lead: str, fields: Sequence[str | Sequence[str]], indent: str) -> Iterator[str]:
    """A call, its arguments (lists as tuples) over several lines if it is long."""
    line = f"{lead}({', '.join(map(_field, fields))})"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{lead}("
    yield from _filled(fields, indent + "    ")
    yield f"{indent})"


def _field(field: str | Sequence[str]) -> str:
    """A field; a list as a tuple."""
    if isinstance(field, str):
        return field
    return f"({', '.join(field)}{',' if len(field) == 1 else ''})"


def _filled(fields: Sequence[str | Sequence[str]], indent: str) -> Iterator[str]:
    """Fields, as many on a line as fit; a tuple that fits on none over several."""
    line = indent
    for field in fields:
        text = f"{_field(field)},"
        if len(line) + 1 + len(text) > WIDTH and line != indent:
            yield line
            line = indent
        if len(indent) + len(text) > WIDTH and not isinstance(field, str):
            yield f"{indent}("
            yield from _filled(field, indent + "    ")
            line = f"{indent}),"
        else:
            line += text if line == indent else f" {text}"
    yield line


def _if(predicate: Expr, guard: str) -> Iterator[str]:
    """``guard``: what comes before the predicate, if anything does."""
    if predicate == TRUE:
        yield f"    if {guard}:"
        return
    within = "and" if guard else ""
    lead = f"{guard} and " if guard else ""
    line = f"    if {lead}{_condition(predicate, within)}:"
    if len(line) <= WIDTH:
        yield line
        return
    yield "    if ("
    if guard:
        yield f"        {guard}"
        yield from _broken(predicate, " " * 8, "and ")
    else:
        yield from _broken(predicate, " " * 8)
    yield "    ):"


def _broken(predicate: Expr, indent: str, lead: str = "") -> Iterator[str]:
    """A condition over several lines, as many terms of its outermost operator on each as fit."""
    line = indent
    for term in _terms(predicate, predicate.op):
        text = _condition(term, within=predicate.op)
        if len(line) + len(lead) + len(text) > WIDTH and line.strip():
            yield line.rstrip()
            line, lead = indent, lead.lstrip()
        if term.op in ("and", "or") and len(line) + len(lead) + len(text) > WIDTH:
            yield f"{line}{lead}("
            yield from _broken(term, indent + "    ")
            line = f"{indent})"
        else:
            line += lead + text
        lead = f" {predicate.op} "
    yield line


def _condition(predicate: Expr, within: str = "") -> str:
    """A condition on one line; terms of the other operator are in parentheses."""
    if predicate.op in ("and", "or"):
        terms = _terms(predicate, predicate.op)
        text = f" {predicate.op} ".join(_condition(t, within=predicate.op) for t in terms)
        return f"({text})" if within and within != predicate.op else text
    if predicate.op == "not" and predicate.args[0].op in ("and", "or"):
        return f"not ({_condition(predicate.args[0])})"
    return _python(predicate)


def _terms(predicate: Expr, operator: str) -> Iterator[Expr]:
    if predicate.op == operator and operator in ("and", "or"):
        for arg in predicate.args:
            yield from _terms(arg, operator)
    else:
        yield predicate


def _subtrees(e: Expr) -> Iterator[Expr]:
    yield e
    if e.op not in ("var", "const"):
        for arg in e.args:
            yield from _subtrees(arg)


def _replace(e: Expr, hoisted: Mapping[Expr, str]) -> Expr:
    """``e`` with the subtrees that have a name replaced by it."""
    if e in hoisted:
        return var(hoisted[e])
    if e.op in ("var", "const"):
        return e
    return Expr(e.op, tuple(_replace(arg, hoisted) for arg in e.args))


def _python(e: Expr) -> str:
    """Python in the layout that formatters and linters ask for."""
    lower = {name: var(name.lower()) for name in e.variables()}
    tree = ast.parse(e.substitute(lower).python(), mode="eval")
    return ast.unparse(_Plain().visit(tree))


class _Plain(ast.NodeTransformer):
    """Turns ``128 <= m`` into ``m >= 128`` and ``not m < n`` into ``m >= n``."""

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        mirrored = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
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


def _quoted(text: str) -> str:
    return f'"{text}"'
