"""Reads generated dispatch code back into expressions, so that proofs are about the code.

The code is run with a table and an architecture that are known, and with numbers that are not:
loops over rows of constants are unrolled, and what is computed is an expression. Of predicted
times nothing is known, and nothing is proved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.dispatch.table import conjuncts
from ptxgen.errors import SpecError
from ptxgen.expr import (
    FALSE,
    TRUE,
    Expr,
    all_of,
    any_of,
    ceil_div,
    const,
    maximum,
    minimum,
    select,
    var,
)
from ptxgen.spec import ARCHITECTURES, Space


@dataclass(frozen=True)
class Branch:
    """A candidate that the code yields, and where it does."""

    route: int
    condition: Expr
    kernels: tuple[str, ...]
    grids: tuple[Expr, ...]
    scratch: tuple[Expr, ...]


@dataclass(frozen=True)
class Function:
    """A dispatch function as some architectures see it: these, and its branches, in order.

    ``derived``: how it computes the derived variables of its space that it needs.
    """

    name: str
    archs: tuple[str, ...]
    derived: Mapping[str, Expr]
    branches: tuple[Branch, ...]


def functions(source: str, table: str, space: Space) -> list[Function]:
    """The dispatch function of a generated module for the table of this name, over ``space``, once
    for each class of architectures that have the same branches; SpecError for code of another form.
    """
    tree = ast.parse(source)
    seen: dict[tuple[bool, ...], tuple[dict[str, Expr], tuple[Branch, ...]]] = {}
    classes: dict[tuple[Branch, ...], list[str]] = {}
    derived: Mapping[str, Expr] = {}
    constants = _Run({"table": table}, space).module(tree)
    for arch in ARCHITECTURES:
        sets = tuple(arch in value for value in constants.values() if isinstance(value, frozenset))
        if sets not in seen:
            seen[sets] = _Run({**constants, "arch": arch}, space).function(tree)
        derived, branches = seen[sets]
        classes.setdefault(branches, []).append(arch)
    return [Function(archs[0], tuple(archs), derived, of) for of, archs in classes.items()]


_TIME = object()
"""A predicted time."""
_Fitting = list[tuple[Expr, Expr, tuple[Any, ...]]]
"""Routes: what they ask of alignments, their index, and the names of their launches."""


@dataclass(frozen=True)
class _Launch:
    """What is computed of a launch, and where it is."""

    where: Expr
    kernel: str
    ctas: Expr
    scratch: Mapping[str, Expr]


class _Run:
    """A run of a module. Values are expressions, words, tuples, sets and dictionaries of them."""

    def __init__(self, names: Mapping[str, Any], space: Space) -> None:
        self.space = space
        self.names = dict(names)
        self.derived: dict[str, Expr] = {}
        self.launches: dict[str | int, _Launch] = {}
        self.branches: list[Branch] = []

    def module(self, tree: ast.Module) -> dict[str, Any]:
        """The constants of a module, beside the names that are given."""
        for statement in tree.body:
            match statement:
                case ast.Expr(value=ast.Constant()) | ast.ImportFrom() | ast.FunctionDef():
                    continue
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=key)]):
                    self.names[name][self.key(key)] = self.value(statement.value)
                case _:
                    self.assign(statement)
        return self.names

    def function(self, tree: ast.Module) -> tuple[dict[str, Expr], tuple[Branch, ...]]:
        """Its function."""
        (node,) = (each for each in tree.body if isinstance(each, ast.FunctionDef))
        arguments = tuple(argument.arg for argument in node.args.args)
        expected = ("table", "arch", *map(str.lower, self.space.arguments), "time")
        if arguments != expected:
            raise SpecError(f"{node.name} takes {arguments}, its space has {expected}")
        self.names |= {name.lower(): var(name) for name in self.space.arguments}
        self.block(node.body, TRUE)
        return self.derived, tuple(self.branches)

    def block(
        self, statements: Iterable[ast.stmt], where: Expr, needed: str | int | None = None
    ) -> bool:
        """Runs statements, which are reached ``where`` that holds, if ``needed`` is given only
        where some route that fits has the launch of this name.

        Whether they end the function wherever they are reached.
        """
        for statement in statements:
            match statement:
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.For(target=target, iter=rows, body=body, orelse=[]):
                    fitting = "fitting.rows(" in ast.unparse(rows)
                    for row in self.value(rows):
                        self.bind(target, row)
                        if self.block(body, where, _key(row[0]) if fitting else needed):
                            return True
                case ast.If(test=test, body=body, orelse=[]):
                    holds, own = self.value(test), needed
                    for name in filter(None, map(_fitting, ast.walk(test))):
                        own = self.key(name)
                    ends = holds != FALSE and self.block(body, where & holds, own)
                    if ends and holds == TRUE:
                        return True
                case ast.Assign(
                    targets=[ast.Subscript(value=ast.Name(id="launches"), slice=name)],
                    value=ast.Tuple(elts=[_, kernel, ctas, scratch]),
                ):
                    key, value = self.key(name), self.value
                    if key in self.launches or needed not in (None, key):
                        raise SpecError(
                            f"generated code, line {statement.lineno}: launch {key!r} is computed "
                            f"twice, or where only launch {needed!r} is sure to be needed"
                        )
                    self.launches[key] = _Launch(where, value(kernel), value(ctas), value(scratch))
                case ast.Expr(value=ast.Yield(value=ast.Call(args=[_, choice]))):
                    self.found(where, *self.value(choice))
                case ast.Expr(
                    value=ast.YieldFrom(value=ast.Call(func=ast.Attribute(attr="combined")))
                ):
                    self.combined(where, self.names["fitting"])
                case ast.Return(value=None):
                    return True
                case _:
                    self.assign(statement)
        return False

    def found(
        self,
        where: Expr,
        route: Expr,
        kernels: tuple[str, ...],
        grids: tuple[Expr, ...],
        scratch: tuple[Expr, ...],
    ) -> None:
        """A candidate; a term of its condition that occurs twice is kept once."""
        condition = all_of(dict.fromkeys(conjuncts(where)))
        self.branches.append(Branch(_number(route), condition, kernels, grids, scratch))

    def fitting(self, rows: Iterable[Any], given: list[Expr]) -> _Fitting:
        """Routes, each with what it asks of the ``given`` values."""
        return [
            (all_of(value >= bound for value, bound in zip(given, least, strict=True)), *route)
            for route, least in ((row[:1] + row[-1:], row[1:-1]) for row in rows)
        ]

    def combined(self, where: Expr, routes: _Fitting) -> None:
        """The candidates: routes whose launches all are somewhere."""
        for asked, route, names in routes:
            keys = [*map(_key, names)]
            if not self.launches.keys() >= set(keys):
                continue
            launches = [self.launches[key] for key in keys]
            scratch: dict[str, Expr] = {}
            for launch in launches:
                scratch |= launch.scratch
            self.found(
                all_of((where, asked, *(launch.where for launch in launches))),
                route,
                tuple(launch.kernel for launch in launches),
                tuple(launch.ctas for launch in launches),
                tuple(scratch.values()),
            )

    def assign(self, statement: ast.stmt) -> None:
        """Gives names to values; those of derived variables stay what they are."""
        match statement:
            case ast.Assign(targets=[target], value=value):
                self.bind(target, self.value(value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.names[name] = self.value(value)
            case _:
                raise _unexpected(statement)

    def bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                if name.islower() and name.upper() in self.space.names:
                    self.derived[name.upper()] = value
                    value = var(name.upper())
                self.names[name] = value
            case ast.Tuple(elts=elts) if len(elts) == len(value):
                for each, own in zip(elts, value, strict=True):
                    self.bind(each, own)
            case _:
                raise _unexpected(target)

    def key(self, node: ast.expr) -> str | int:
        """What a dictionary is asked for."""
        return _key(self.value(node))

    def value(self, node: ast.expr) -> Any:
        """What an expression of the code is."""
        read = self.value
        match node:
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Constant(value=str() as value):
                return value
            case ast.Tuple(elts=elts):
                return tuple(map(read, elts))
            case ast.Dict(keys=keys, values=values):
                of = (key for key in keys if key is not None)
                return dict(zip(map(self.key, of), map(read, values), strict=True))
            case ast.Subscript(value=ast.expr() as of, slice=key):
                return read(of)[self.key(key)]
            case ast.Call(func=ast.Name(id="frozenset"), args=[some]):
                return frozenset(read(some))
            case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, default]):
                return read(of).get(self.key(key), read(default))
            case ast.Call(func=ast.Name(id="time")):
                return _TIME
            case ast.Call(func=ast.Name(id="Choice"), args=args):
                return tuple(map(read, args))
            case ast.Call(func=ast.Name(id="Routes"), args=[rows]):
                return read(rows)
            case ast.Call(func=ast.Attribute(value=rows, attr="fitting"), args=[table, *given]):
                return self.fitting(read(rows)[self.key(table)], [*map(self.expr, given)])
            case ast.Call(func=ast.Attribute(attr="rows"), args=[rows]):
                return read(rows).get(self.names["table"], ())
            case _ if _fitting(node) is not None:
                return TRUE  # a launch that nothing needs changes nothing
            case ast.IfExp(test=test, body=then, orelse=ast.Tuple(elts=[])):
                return read(then) if read(test) == TRUE else ()
            case ast.Compare(
                left=ast.Name(id="arch" | "table") as left, ops=[by], comparators=[of]
            ):
                found, known = read(left), read(of)
                return const(found in known if isinstance(by, ast.In) else found == known)
        return self.expr(node)

    def expr(self, node: ast.expr) -> Expr:
        """A formula."""
        read = self.expr
        match node:
            case ast.Name(id=name) if isinstance(value := self.names.get(name), Expr):
                return value
            case ast.Constant(value=bool() | int() as value):
                return const(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~read(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.negative(operand)
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return select(read(test), read(then), read(otherwise))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return read(left) + read(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return read(left) - read(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return read(left) * read(right)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return read(left) // read(right)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return read(left) % read(right)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return _compare(operator, read(left), read(right))
            case ast.BoolOp(op=ast.And(), values=values):
                return all_of(map(self.value, values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return any_of(map(read, values))
            case ast.Call(func=ast.Name(id="min"), args=[left, right], keywords=[]):
                return minimum(read(left), read(right))
            case ast.Call(func=ast.Name(id="max"), args=[left, right], keywords=[]):
                return maximum(read(left), read(right))
        raise _unexpected(node)

    def negative(self, node: ast.expr) -> Expr:
        """Minus ``node``; minus a quotient of minus x is x divided and rounded up."""
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.expr(operand)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return ceil_div(self.negative(left), self.expr(right))
        return 0 - self.expr(node)


def _fitting(node: ast.AST) -> ast.expr | None:
    """The launch's name, where the code asks whether some route has it."""
    match node:
        case ast.Compare(left=name, ops=[ast.In()], comparators=[ast.Name(id="fitting")]):
            return name
    return None


def _key(value: Any) -> str | int:
    """A word, or an integer that is written as one."""
    return value if isinstance(value, str) else _number(value)


def _number(value: Expr) -> int:
    """The integer that an expression is."""
    if value.op != "const":
        raise SpecError(f"generated code: {value} is no constant")
    return int(value.args[0])


def _compare(operator: ast.cmpop, left: Expr, right: Expr) -> Expr:
    match operator:
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
        case ast.GtE():
            return left >= right
        case ast.Eq():
            return left.eq(right)
        case ast.NotEq():
            return ~left.eq(right)
    raise _unexpected(operator)


def _unexpected(node: ast.AST) -> SpecError:
    line = getattr(node, "lineno", "?")
    text = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else type(node).__name__
    return SpecError(f"generated code, line {line}: no dispatch function has {text!r}")
