"""Reads generated dispatch code back into expressions, so that proofs are about the code."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr, all_of, any_of, ceil_div, const, maximum, minimum, select, var
from ptxgen.spec import ARCHITECTURES, Space


@dataclass(frozen=True)
class Branch:
    """One ``if condition:`` of the code, and the candidate that it yields."""

    route: int
    condition: Expr
    kernels: tuple[str, ...]
    grids: tuple[Expr, ...]
    scratch: tuple[Expr, ...]
    archs: tuple[str, ...] = tuple(ARCHITECTURES)


@dataclass(frozen=True)
class Function:
    """A dispatch function as some architectures see it: these, and its branches, in order.

    ``derived``: how it computes the derived variables of its space that it needs.
    """

    name: str
    archs: tuple[str, ...]
    derived: Mapping[str, Expr]
    branches: tuple[Branch, ...]


def functions(source: str, space: Space) -> list[Function]:
    """The dispatch function over ``space`` of a generated module, once for each class of
    architectures that have the same branches; SpecError for code of another form.
    """
    sets: dict[str, tuple[str, ...]] = {}
    body: list[ast.stmt] = []
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[some])):
                sets[name] = ast.literal_eval(some)
            case ast.FunctionDef():
                body.append(statement)
            case ast.Expr() | ast.ImportFrom():
                continue
            case _:
                raise _unexpected(statement)
    (node,) = body
    assert isinstance(node, ast.FunctionDef)
    derived, branches = _function(node, sets, space)
    classes: dict[tuple[int, ...], list[str]] = {}
    for arch in ARCHITECTURES:
        own = tuple(i for i, branch in enumerate(branches) if arch in branch.archs)
        classes.setdefault(own, []).append(arch)
    return [
        Function(archs[0], tuple(archs), derived, tuple(branches[i] for i in own))
        for own, archs in classes.items()
    ]


def _function(
    node: ast.FunctionDef, sets: Mapping[str, tuple[str, ...]], space: Space
) -> tuple[dict[str, Expr], list[Branch]]:
    names = {name.lower(): var(name) for name in space.names}
    arguments = tuple(argument.arg.upper() for argument in node.args.args)
    if arguments != ("ARCH", *space.arguments, "TIME"):
        raise SpecError(f"{node.name} takes {arguments}, its space has {space.arguments}")
    derived: dict[str, Expr] = {}
    branches = []
    given: list[ast.stmt] = []  # of a candidate that is always yielded
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Constant()):
                continue  # the docstring
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in _LOCAL:
                expr = _expr(value, names)
                if name.upper() in space.names:
                    derived[name.upper()] = expr
                else:
                    names[name] = expr
            case ast.If(test=test, body=body, orelse=[]):
                archs, condition = _guarded(test, sets, names)
                branches.append(replace(_branch(condition, body, names), archs=archs))
            case ast.Return(value=None):
                break
            case _:
                given.append(statement)
                if isinstance(statement, ast.Expr):  # a yield
                    branches.append(_branch(TRUE, given, names))
                    given = []
    if given:
        raise _unexpected(given[0])
    return derived, branches


def _guarded(
    test: ast.expr, sets: Mapping[str, tuple[str, ...]], names: Mapping[str, Expr]
) -> tuple[tuple[str, ...], Expr]:
    """The architectures that a condition begins with, and what else it asks."""
    match test:
        case ast.BoolOp(op=ast.And(), values=[first, *others]):
            archs, condition = _guarded(first, sets, names)
            return archs, all_of((condition, *(_expr(other, names) for other in others)))
        case ast.Compare(
            left=ast.Name(id="arch"), ops=[ast.In()], comparators=[ast.Name(id=name)]
        ) if name in sets:
            return sets[name], TRUE
    return tuple(ARCHITECTURES), _expr(test, names)


_LOCAL = ("us", "choice")
"""What a branch calls its predicted time, of which nothing is proved, and its choice."""


def _branch(condition: Expr, body: Sequence[ast.stmt], names: Mapping[str, Expr]) -> Branch:
    found: ast.expr | None = None
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="us")]) | ast.AugAssign(target=ast.Name(id="us")):
                continue
            case ast.Assign(targets=[ast.Name(id="choice")], value=value):
                found = value
            case ast.Expr(value=ast.Yield(value=ast.Call(args=[_, chosen]))):
                found = chosen if isinstance(chosen, ast.Call) else found
            case ast.Return(value=None):
                continue
            case _:
                raise _unexpected(statement)
    match found:
        case ast.Call(
            args=[route, kernels, ast.Tuple(elts=grids), ast.Tuple(elts=scratch)], keywords=[]
        ):
            return Branch(
                ast.literal_eval(route),
                condition,
                ast.literal_eval(kernels),
                tuple(_expr(grid, names) for grid in grids),
                tuple(_expr(size, names) for size in scratch),
            )
    raise _unexpected(body[-1])


def _expr(node: ast.expr, names: Mapping[str, Expr]) -> Expr:
    def read(inner: ast.expr) -> Expr:
        return _expr(inner, names)

    match node:
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Constant(value=bool() | int() as value):
            return const(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~read(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negative(operand, names)
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
            return all_of(map(read, values))
        case ast.BoolOp(op=ast.Or(), values=values):
            return any_of(map(read, values))
        case ast.Call(func=ast.Name(id="min"), args=[left, right], keywords=[]):
            return minimum(read(left), read(right))
        case ast.Call(func=ast.Name(id="max"), args=[left, right], keywords=[]):
            return maximum(read(left), read(right))
    raise _unexpected(node)


def _negative(node: ast.expr, names: Mapping[str, Expr]) -> Expr:
    """Minus ``node``; minus a quotient of minus x is x divided and rounded up."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _expr(operand, names)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return ceil_div(_negative(left, names), _expr(right, names))
    return 0 - _expr(node, names)


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
