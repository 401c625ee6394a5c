"""Formulas as CUDA C++: a statement for each node, with every rounding explicit.

:mod:`ptxgen.numerics.formula` defines each operation to the bit. Integer arithmetic is done on
unsigned types, whose overflow C++ defines. ``templates/include/formula.cuh.j2`` has the few device
functions that are called here by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ptxgen.errors import SpecError
from ptxgen.numerics.formula import Formula, Node, ordered

CTYPES = {
    "f32": "float",
    "f64": "double",
    "i32": "int",
    "i64": "long long",
    "bool": "bool",
    "c64": "float2",
    "c128": "double2",
}
"""C++ types in which nodes of a formula compute, by dtype."""
STORAGE = {
    "f32": "float",
    "f64": "double",
    "i32": "int",
    "i64": "long long",
    "bool": "unsigned char",
    "f16": "unsigned short",
    "bf16": "unsigned short",
    "u8": "unsigned char",
    "i8": "signed char",
    "e4m3": "unsigned char",
    "e5m2": "unsigned char",
    "c64": "float2",
    "c128": "double2",
}
"""C++ types of elements in memory, by dtype."""
_UNSIGNED = {"i32": "unsigned", "i64": "unsigned long long"}
_LETTER = {"f32": "f", "f64": "d"}

_FLOAT: Mapping[str, str] = {
    "add": "__{l}add_rn({0}, {1})",
    "sub": "__{l}sub_rn({0}, {1})",
    "mul": "__{l}mul_rn({0}, {1})",
    "div": "__{l}div_rn({0}, {1})",
    "fma": "__fma{f}_rn({0}, {1}, {2})",
    "sqrt": "__{l}sqrt_rn({0})",
    "neg": "-{0}",
    "abs": "fabs{f}({0})",
    "max": "ptxgen_max({0}, {1})",
    "min": "ptxgen_min({0}, {1})",
    "floor": "floor{f}({0})",
    "ceil": "ceil{f}({0})",
    "trunc": "trunc{f}({0})",
    "round": "rint{f}({0})",
}
_INTEGER: Mapping[str, str] = {
    "add": "({c})(({u}){0} + ({u}){1})",
    "sub": "({c})(({u}){0} - ({u}){1})",
    "mul": "({c})(({u}){0} * ({u}){1})",
    "neg": "({c})(0 - ({u}){0})",
    "abs": "({0} < 0 ? ({c})(0 - ({u}){0}) : {0})",
    "max": "({0} < {1} ? {1} : {0})",
    "min": "({1} < {0} ? {1} : {0})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "xor": "({0} ^ {1})",
    "not": "~{0}",
    "shl": "({c})(({u}){0} << (({u}){1} & {last}))",
    "shr": "({0} >> (({u}){1} & {last}))",
}
_BOOL: Mapping[str, str] = {
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "xor": "({0} != {1})",
    "not": "!{0}",
}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CONVERT: Mapping[tuple[str, str], str] = {
    ("f32", "f64"): "(double){0}",
    ("f64", "f32"): "__double2float_rn({0})",
    ("f32", "i32"): "({0} == {0} ? __float2int_rz({0}) : 0)",
    ("f64", "i32"): "({0} == {0} ? __double2int_rz({0}) : 0)",
    ("f32", "i64"): "({0} == {0} ? __float2ll_rz({0}) : 0)",
    ("f64", "i64"): "({0} == {0} ? __double2ll_rz({0}) : 0)",
    ("i32", "f32"): "__int2float_rn({0})",
    ("i64", "f32"): "__ll2float_rn({0})",
    ("i32", "f64"): "(double){0}",
    ("i64", "f64"): "__ll2double_rn({0})",
    ("i32", "i64"): "(long long){0}",
    ("i64", "i32"): "(int){0}",
}
_BITS = {
    "i32": "__float_as_int({0})",
    "i64": "__double_as_longlong({0})",
    "f32": "__int_as_float({0})",
    "f64": "__longlong_as_double({0})",
}


def literal(node: Node) -> str:
    """Returns the exact C++ literal of a constant node."""
    value = node.data
    if node.type == "bool":
        return "true" if value else "false"
    if node.type in ("i32", "i64"):
        low = -(1 << (31 if node.type == "i32" else 63))
        suffix = "" if node.type == "i32" else "ll"
        return f"({low + 1}{suffix} - 1)" if value == low else f"({value}{suffix})"
    if value != value:
        return "ptxgen_nan" if node.type == "f32" else "(double)ptxgen_nan"
    if value in (float("inf"), float("-inf")):
        sign = "-" if value < 0 else ""
        return f"{sign}ptxgen_inf" if node.type == "f32" else f"{sign}(double)ptxgen_inf"
    mantissa, exponent = value.hex().split("p")
    text = f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"
    return f"({text}{'f' if node.type == 'f32' else ''})"


def _select(node: Node, condition: str, then: str, otherwise: str) -> str:
    """Returns a ``?:`` that yields the chosen operand bit for bit, even a zero with its sign.

    The compiler turns ``x < 0.0f ? x : 0.0f`` into ``min.f32``, and moves a conversion to f64 past
    such a choice. Both may return -0.0 for 0.0, or 0.0 for -0.0. It does so only where a comparison
    of floats has the operands of the choice, so one of these is hidden from it.
    """
    first, second = node.args[1:]
    if node.type in _LETTER and _compares_floats(node.args[0]):
        if any(x.op == "call" and x.data.rare for x in (first, second)):  # a branch
            if first.op != "const":
                then = f"ptxgen_opaque({then})"
            else:
                otherwise = f"ptxgen_opaque({otherwise})"
        elif first.op != "const":
            return f"ptxgen_choose({condition}, {then}, {otherwise})"
        elif second.op != "const":
            return f"ptxgen_choose(!{condition}, {otherwise}, {then})"
    return f"({condition} ? {then} : {otherwise})"


def _compares_floats(condition: Node) -> bool:
    """Returns whether ``condition`` contains a comparison of floats that the compiler might merge
    with the choice it controls (:func:`_select`). Calls count, since they may be inlined.
    """
    if condition.op in _COMPARE:
        return condition.args[0].type in _LETTER
    return condition.op == "call" or any(
        _compares_floats(x) for x in condition.args if x.type == "bool"
    )


def expression(node: Node, args: list[str]) -> str:
    """Returns the C++ expression of a node (no leaf, no reduction) whose operands are named
    ``args``.
    """
    op, type = node.op, node.type
    if op in _COMPARE:
        return f"({args[0]} {_COMPARE[op]} {args[1]})"
    if op == "select":
        return _select(node, *args)
    if op == "call":
        return f"ptxgen_{node.data}_{type}({', '.join(args)})"
    if op == "round_to":
        return f"ptxgen_round_{node.data}({args[0]})"
    if op in ("real", "imag"):
        return f"{args[0]}.{'x' if op == 'real' else 'y'}"
    if op == "complex":
        return f"make_{CTYPES[type]}({', '.join(args)})"
    if op in ("bits", "float"):
        return _BITS[type].format(*args)
    if op == "convert":
        source = node.args[0].type
        if source == "bool":
            return f"({CTYPES[type]})({args[0]} ? 1 : 0)"
        return _CONVERT[source, type].format(*args)
    table = _FLOAT if type in _LETTER else _INTEGER if type in _UNSIGNED else _BOOL
    if op not in table:
        raise SpecError(f"no CUDA C++ for {op} of {type}")
    return table[op].format(
        *args,
        l=_LETTER.get(type, ""),
        f="f" if type == "f32" else "",
        c=CTYPES[type],
        u=_UNSIGNED.get(type, ""),
        last={"i32": 31, "i64": 63}.get(type),
    )


def statements(roots: Iterable[Node], names: dict[Node, str], prefix: str = "v") -> Iterator[str]:
    """Yields the C++ statements that compute ``roots`` from nodes that have ``names`` already, and
    adds the new names to these.

    Constants are written where they are used. The caller names inputs, "index", "length" and
    reductions.
    """
    for node in ordered(roots, names):
        if node.op == "const":
            names[node] = literal(node)
            continue
        if node.op in ("input", "index", "length", "reduce"):
            continue  # named by the caller if it is needed
        value = expression(node, [names[a] for a in node.args])
        if node.op == "call" and node.data.rare:
            names[node] = value  # inlined, so that ?: evaluates only what it chooses
            continue
        names[node] = f"{prefix}{len(names)}"
        yield f"const {CTYPES[node.type]} {names[node]} = {value};"


def nested(node: Node, names: Mapping[Node, str]) -> str:
    """Returns one C++ expression of a node, from nodes that have ``names``."""
    if node in names:
        return names[node]
    if node.op == "const":
        return literal(node)
    return expression(node, [nested(each, names) for each in node.args])


def functions(formula: Formula) -> Iterator[str]:
    """Yields the C++ definitions of the device functions that ``formula`` calls, line by line."""
    for function, type in formula.functions:
        parameters, result = function.formula(type)
        c = CTYPES[type]
        names = {p: p.data.name for p in parameters}
        heads = ", ".join(f"{c} {names[p]}" for p in parameters)
        yield f"__device__ __forceinline__ {c} ptxgen_{function}_{type}({heads}) {{"
        yield from (f"    {line}" for line in statements([result], names))
        yield f"    return {names[result]};"
        yield "}"
