"""Reads generated dispatch code back into expressions, so that proofs are about the code."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr, all_of, any_of, ceil_div, const, maximum, minimum, select, var
from ptxgen.spec import Space


@dataclass(frozen=True)
class Branch:
    """One ``if condition: return Choice(...)`` of the code."""

    route: int
    condition: Expr
    kernels: tuple[str, ...]
    grids: tuple[Expr, ...]
    scratch: tuple[Expr, ...]
    called: str = ""


@dataclass(frozen=True)
class Function:
    """A dispatch function: the architectures that it serves and its branches, in order.

    ``derived``: how it computes the derived variables of its space that it needs.
    """

    name: str
    archs: tuple[str, ...]
    derived: Mapping[str, Expr]
    branches: tuple[Branch, ...]


def functions(source: str, space: Space) -> list[Function]:
    """The dispatch functions over ``space`` of a generated module; SpecError for code of another
    form.
    """
    tree = ast.parse(source)
    served: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                assert isinstance(key, ast.Constant) and isinstance(value, ast.Name)
                served.setdefault(value.id, []).append(str(key.value))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [_function(node, tuple(served.get(node.name, ())), space) for node in found]


def _function(node: ast.FunctionDef, archs: tuple[str, ...], space: Space) -> Function:
    names = {name.lower(): var(name) for name in space.names}
    arguments = tuple(argument.arg.upper() for argument in node.args.args)
    if arguments != space.arguments:
        raise SpecError(f"{node.name} takes {arguments}, its space has {space.arguments}")
    derived: dict[str, Expr] = {}
    branches = []
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Constant()):
                continue  # the docstring
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                expr = _expr(value, names)
                if name.upper() in space.names:
                    derived[name.upper()] = expr
                else:
                    names[name] = expr
            case ast.If(test=test, body=[ast.Return(value=ast.Call() as call)], orelse=[]):
                branches.append(_branch(_expr(test, names), call, names))
            case ast.Return(value=ast.Call() as call):
                branches.append(_branch(TRUE, call, names))
                break
            case ast.Return(value=ast.Constant(value=None)):
                break
            case _:
                raise _unexpected(statement)
    return Function(node.name, archs, derived, tuple(branches))


def _branch(condition: Expr, call: ast.Call, names: Mapping[str, Expr]) -> Branch:
    match call.args:
        case [route, kernels, ast.Tuple(elts=grids), ast.Tuple(elts=scratch), *called]:
            return Branch(
                ast.literal_eval(route),
                condition,
                ast.literal_eval(kernels),
                tuple(_expr(grid, names) for grid in grids),
                tuple(_expr(size, names) for size in scratch),
                *map(ast.literal_eval, called),
            )
    raise _unexpected(call)


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
