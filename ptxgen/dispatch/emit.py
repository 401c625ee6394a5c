"""Writes the dispatch functions of ``generated/`` from the route tables of ``tiles``.

One module per table (and per tuning's version of it), and one function per class of
architectures that can run the same routes. Every line of a function is an
:class:`~ptxgen.expr.Expr` in Python's clothes, so the code takes the first route whose
``requires`` and ``prefer`` hold, and nothing else.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ptxgen.dispatch.choice import Dispatch
from ptxgen.errors import SpecError
from ptxgen.expr import FALSE, TRUE, Expr, var
from ptxgen.spec import ARCHITECTURES, Key, Route, RouteTable, Space
from ptxgen.tiles import TABLES
from ptxgen.tiles.tunings import Tuning, tuning_name, tunings

GENERATED = Path(__file__).parent / "generated"
WIDTH = 100


@dataclass(frozen=True)
class Table:
    """A route table by its key: what a dispatch module is made from.

    ``gpu``: the name and SMs of the GPU whose tuning it is from; None: it serves all others.
    Refuses formulas that read anything but what the space names.
    """

    key: Key
    space: Space
    routes: tuple[Route, ...]
    gpu: tuple[str, int] | None = None
    archs: tuple[str, ...] = tuple(ARCHITECTURES)

    def __post_init__(self) -> None:
        for index, route in enumerate(self.routes):
            named = [("prefer", route.prefer), ("requires", route.requires)]
            named += [("grid", step.grid) for step in route.steps]
            named += [(f"scratch {name!r}", size) for name, size in route.scratch.items()]
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
        return "_".join((*self.key, *([self.tuning] if self.tuning else []))).lower()

    @property
    def tuning(self) -> str:
        """The tuning's name; empty if it is from none."""
        return tuning_name(*self.gpu) if self.gpu else ""

    @property
    def classes(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        """Architectures that run the same routes, and the indices of those routes."""
        by_routes: dict[tuple[int, ...], list[str]] = {}
        for arch in self.archs:
            runs = tuple(
                i for i, r in enumerate(self.routes) if all(k.runs_on(arch) for k in r.kernels)
            )
            by_routes.setdefault(runs, []).append(arch)
        return {tuple(archs): runs for runs, archs in by_routes.items()}


def tables(of: Mapping[Key, RouteTable] = TABLES) -> list[Table]:
    """The tables that serve any GPU."""
    return [Table(key, found.space, found.routes) for key, found in of.items()]


def measured(of: Iterable[Tuning] | None = None) -> list[Table]:
    """The tables as tunings (default: all) have them."""
    return [
        Table(
            key,
            routes=tuning.routes(key),  # first: it refuses a table that there is not
            space=TABLES[key].space,
            gpu=(tuning.gpu, tuning.sms),
            archs=(tuning.arch,),
        )
        for tuning in (tunings() if of is None else of)
        for key in tuning.tables
    ]


def every() -> list[Table]:
    """All tables: those for any GPU, and those of tunings."""
    return tables() + measured()


def serving(key: Key, arch: str, gpu: tuple[str, int] | None = None) -> Table | None:
    """The table that serves a GPU (name and SMs): its tuning's, or the one for any GPU."""
    for tuning in tunings():
        if (tuning.gpu, tuning.sms) == gpu and tuning.arch == arch and key in tuning.tables:
            return measured([replace(tuning, tables={key: tuning.tables[key]})])[0]
    return tables({key: TABLES[key]})[0] if key in TABLES else None


def sources(of: Iterable[Table] | None = None) -> dict[str, str]:
    """File name to text of every generated module."""
    of = every() if of is None else list(of)
    return {
        "__init__.py": _index(of),
        **{f"{table.module}.py": "\n".join(_module(table)) + "\n" for table in of},
    }


def functions(table: Table) -> dict[str, Dispatch]:
    """The dispatch functions of a table by architecture, made here and now."""
    namespace: dict[str, Any] = {}
    text = sources([table])[f"{table.module}.py"]
    exec(compile(text, f"<dispatch of {' '.join(table.key)}>", "exec"), namespace)
    found: dict[str, Dispatch] = namespace["BY_ARCH"]
    return found


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


def condition(route: Route) -> Expr:
    """Where ``route`` is taken, unless an earlier one is: requires and prefer.

    A conjunct that occurs twice is kept once.
    """
    result = TRUE
    for term in dict.fromkeys((*conjuncts(route.requires), *conjuncts(route.prefer))):
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
        "MEASURED has those of tunings, by the GPU's name and SMs before that. A module is",
        "imported when its table is first used.",
        "",
        "Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate",
        '"""',
        "",
        "TABLES: dict[tuple[str, ...], str] = {",
        *(f"    {_key(t)}: {_quoted(t.module)}," for t in ordered if not t.gpu),
        "}",
        "",
        *_measured(ordered),
    ]
    return "\n".join(lines) + "\n"


def _key(table: Table) -> str:
    return f"({', '.join(map(_quoted, table.key))}{',' if len(table.key) == 1 else ''})"


def _measured(of: Sequence[Table]) -> Iterator[str]:
    kind = "dict[tuple[str, int], dict[tuple[str, ...], str]]"
    gpus = sorted({table.gpu for table in of if table.gpu})
    yield f"MEASURED: {kind} = {'{' if gpus else '{}'}"
    for gpu in gpus:
        yield f"    ({_quoted(gpu[0])}, {gpu[1]}): {{"
        yield from (f"        {_key(t)}: {_quoted(t.module)}," for t in of if t.gpu == gpu)
        yield "    },"
    if gpus:
        yield "}"


def _module(table: Table) -> Iterator[str]:
    yield f'"""Dispatch of {" ".join(table.key)}: {table.space.name}.'
    yield ""
    if table.gpu:
        yield f"On {table.gpu[0]} with {table.gpu[1]} SMs, by its tuning."
        yield ""
    key = ", ".join(map(_quoted, table.key))
    source = f"tiles/tunings/{table.tuning}.json" if table.gpu else f"tiles.TABLES[{key}]"
    yield f"Generated from {'' if table.gpu else 'ptxgen.'}{source}; do not edit."
    yield "Regenerate: ptxgen generate"
    yield '"""'
    yield ""
    yield "from ptxgen.dispatch.choice import Choice, Dispatch"
    names = {}
    for archs, runs in table.classes.items():
        yield ""
        yield ""
        yield from _function(archs, table, runs)
        names.update(dict.fromkeys(archs, archs[0]))
    yield ""
    yield ""
    yield "BY_ARCH: dict[str, Dispatch] = {"
    for arch in table.archs:
        yield f'    "{arch}": {names[arch]},'
    yield "}"


def _function(archs: tuple[str, ...], table: Table, runs: tuple[int, ...]) -> Iterator[str]:
    arguments = ", ".join(f"{name.lower()}: int" for name in table.space.arguments)
    yield f"def {archs[0]}({arguments}) -> Choice | None:"
    yield f'    """For {", ".join(archs)}."""'
    bodies = {i: _Route(i, table.routes[i]) for i in runs}
    read = frozenset().union(*(body.variables for body in bodies.values()))
    for name, formula in table.space.needed(read):
        yield from _assign(name.lower(), formula)
    hoisted: dict[Expr, str] = {}
    for index, body in bodies.items():
        for name, count in body.counts():
            if count not in hoisted:
                hoisted[count] = name
                yield f"    {name} = {_python(count)}"
        yield f"    # {index}: {body.route.reason}"
        if body.condition == FALSE:
            yield "    # (never: requires and prefer contradict each other)"
            continue
        if body.condition == TRUE:
            yield from body.returned("    ", hoisted)
            return
        yield from _if(_replace(body.condition, hoisted))
        yield from body.returned("        ", hoisted)
    yield "    return None"


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

    def __init__(self, index: int, route: Route) -> None:
        self.index = index
        self.route = route
        self.condition = condition(route)
        self.grids = [step.grid for step in route.steps]
        self.formulas = [self.condition, *self.grids, *route.scratch.values()]
        self.variables = frozenset().union(*(f.variables() for f in self.formulas))

    def counts(self) -> Iterator[tuple[str, Expr]]:
        """What gets a name: products ceil(X/a)*ceil(Y/b), of tiles, and X*ceil(Y/b), of pieces."""
        for count in dict.fromkeys(t for f in self.formulas for t in _subtrees(f)):
            if count.op != "*":
                continue
            match [_quotient(factor) for factor in count.args]:
                case [("m", a), ("n", b)] if a and b:
                    yield f"tiles_{a}x{b}", count
                case [(m, a), (n, b)] if m and n and b:
                    yield f"{'tiles' if a else 'pieces'}_{m}{a}_{n}{b}", count

    def returned(self, indent: str, hoisted: Mapping[Expr, str]) -> Iterator[str]:
        def formulas(of: Iterable[Expr]) -> list[str]:
            return [_python(_replace(e, hoisted)) for e in of]

        fields: list[str | list[str]] = [
            str(self.index),
            [_quoted(kernel.name) for kernel in self.route.kernels],
            formulas(self.grids),
            formulas(self.route.scratch.values()),
        ]
        fields += [_quoted(self.route.called)] if self.route.called else []
        line = f"{indent}return Choice({', '.join(map(_field, fields))})"
        if len(line) <= WIDTH:
            yield line
            return
        yield f"{indent}return Choice("
        yield from _filled(fields, indent + "    ")
        yield f"{indent})"


def _quotient(e: Expr) -> tuple[str, str]:
    """Of ceil(X/a), or X, for a variable X: X and a as words; else nothing."""
    if e.op == "ceil" and e.args[0].op == "var" and e.args[1].op == "const":
        return str(e.args[0]).lower(), str(e.args[1].args[0])
    return (str(e).lower() if e.op == "var" else ""), ""


def _if(predicate: Expr) -> Iterator[str]:
    line = f"    if {_condition(predicate)}:"
    if len(line) <= WIDTH:
        yield line
        return
    yield "    if ("
    yield from _broken(predicate, " " * 8)
    yield "    ):"


def _broken(predicate: Expr, indent: str) -> Iterator[str]:
    """A condition over several lines, as many terms of its outermost operator on each as fit."""
    line = indent
    lead = ""
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
