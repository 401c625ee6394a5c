"""Reads generated dispatch code back into expressions, so that proofs are about the code.

The code is executed symbolically: table and architecture are concrete, variables of the problem are
symbols. Loops over rows of constants are unrolled. Predicted times are opaque, and nothing is
proved about them.
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
    """A route that the generated code yields, and the ``condition`` under which it does.

    ``route``: its index; ``kernels``: their names, in launch order; ``grids``: CTAs of each;
    ``scratch``: bytes of each scratch memory.
    """

    route: int
    condition: Expr
    kernels: tuple[str, ...]
    grids: tuple[Expr, ...]
    scratch: tuple[Expr, ...]


@dataclass(frozen=True)
class Function:
    """A generated dispatch function, specialised for ``archs``, with its branches in order.

    ``name``: the first of ``archs``. ``derived``: the formulas by which it computes the derived
    variables of its space.
    """

    name: str
    archs: tuple[str, ...]
    derived: Mapping[str, Expr]
    branches: tuple[Branch, ...]


def functions(source: str, table: str, space: Space) -> list[Function]:
    """Reads the dispatch function of a generated module, for the table of this name.

    Returns it once for each class of architectures with the same branches. Raises SpecError for
    code of another form.
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
"""Opaque value of every predicted time."""
_Fitting = list[tuple[Expr, Expr, tuple[Any, ...]]]
"""Routes as tuples: the condition under which alignments admit the route, its index, the names of
its launches.
"""


@dataclass(frozen=True)
class _Launch:
    """A kernel launch that the generated code computes, and the condition ``where`` under which it
    does. ``kernel``: its name; ``scratch``: bytes of each scratch memory, by name.
    """

    where: Expr
    kernel: str
    ctas: Expr
    scratch: Mapping[str, Expr]


class _Run:
    """Symbolic execution of a generated module; values are expressions, strings, and containers of
    them. ``names``: names and values that are known before; ``space``: the space of the module's
    variables.
    """

    def __init__(self, names: Mapping[str, Any], space: Space) -> None:
        self.space = space
        self.names = dict(names)
        self.derived: dict[str, Expr] = {}
        self.launches: dict[str | int, _Launch] = {}
        self.branches: list[Branch] = []

    def module(self, tree: ast.Module) -> dict[str, Any]:
        """Executes the assignments of the module ``tree``; returns all names and their values,
        those that were passed to the constructor included.
        """
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
        """Executes the dispatch function in the module ``tree`` symbolically; returns the formulas
        of derived variables by name, and a branch for each route that it yields.

        Raises SpecError if its parameters are not those of the space.
        """
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
        """Executes ``statements``, which are reached under the condition ``where``.

        ``needed``: name of a launch, if they are reached only where a selected route has this
        launch. Returns whether the statements always return from the function.
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
                    self.add_branch(where, *self.value(choice))
                case ast.Expr(
                    value=ast.YieldFrom(value=ast.Call(func=ast.Attribute(attr="combined")))
                ):
                    self.combined(where, self.names["fitting"])
                case ast.Return(value=None):
                    return True
                case _:
                    self.assign(statement)
        return False

    def add_branch(
        self,
        where: Expr,
        route: Expr,
        kernels: tuple[str, ...],
        grids: tuple[Expr, ...],
        scratch: tuple[Expr, ...],
    ) -> None:
        """Adds a branch for a route that the code yields under the condition ``where``, without its
        repeated terms.

        ``route``: index of the route; ``grids``: CTAs of each of ``kernels``; ``scratch``: bytes of
        each scratch memory.
        """
        condition = all_of(dict.fromkeys(conjuncts(where)))
        self.branches.append(Branch(_number(route), condition, kernels, grids, scratch))

    def fitting(self, rows: Iterable[Any], given: list[Expr]) -> _Fitting:
        """Converts rows (index, lower bounds, names of launches) of the constant ``ROUTES`` to the
        routes that they may select.

        ``given``: expressions of the variables that the bounds limit. The condition of each route
        is that they are all at least its bounds.
        """
        return [
            (all_of(value >= bound for value, bound in zip(given, least, strict=True)), *route)
            for route, least in ((row[:1] + row[-1:], row[1:-1]) for row in rows)
        ]

    def combined(self, where: Expr, routes: _Fitting) -> None:
        """Adds a branch for each of ``routes`` all of whose launches the code computes.

        ``where``: condition under which the statement is reached. A branch's condition joins it
        with those of the route and of its launches.
        """
        for aligned, route, names in routes:
            keys = [*map(_key, names)]
            if not self.launches.keys() >= set(keys):
                continue
            launches = [self.launches[key] for key in keys]
            scratch: dict[str, Expr] = {}
            for launch in launches:
                scratch |= launch.scratch
            self.add_branch(
                all_of((where, aligned, *(launch.where for launch in launches))),
                route,
                tuple(launch.kernel for launch in launches),
                tuple(launch.ctas for launch in launches),
                tuple(scratch.values()),
            )

    def assign(self, statement: ast.stmt) -> None:
        """Executes an assignment; the value of a derived variable becomes a symbol of its name."""
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
        """Evaluates an expression that is a key of a dictionary."""
        return _key(self.value(node))

    def value(self, node: ast.expr) -> Any:
        """Evaluates an expression of the generated code symbolically."""
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
        """Evaluates an arithmetic or logical expression of the generated code to an ``Expr``."""
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
        """Evaluates the expression ``-node``; ``-(-x // y)`` becomes ``ceil(x / y)``."""
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.expr(operand)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return ceil_div(self.negative(left), self.expr(right))
        return 0 - self.expr(node)


def _fitting(node: ast.AST) -> ast.expr | None:
    """Returns the left side of a comparison ``name in fitting``; None for other syntax nodes."""
    match node:
        case ast.Compare(left=name, ops=[ast.In()], comparators=[ast.Name(id="fitting")]):
            return name
    return None


def _key(value: Any) -> str | int:
    """Returns a key of a dictionary: a string unchanged, a constant expression as an integer."""
    return value if isinstance(value, str) else _number(value)


def _number(value: Expr) -> int:
    """Returns the integer of a constant expression. Raises SpecError for others."""
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
