"""Pointwise operations: how a Python function of values, called with arrays, becomes a formula.

The contract is ``pointwise/1`` (:data:`ptxgen.numerics.reduction_order.POINTWISE`): operands are
brought to what is computed in exactly, every node of the formula is rounded once, every result once
more.

The dtype of a result is, unless the caller names another that can hold it,

- of a value that the function casts to 16 bits at its end, that dtype;
- else the one dtype of all array operands that are computed with in the result's type;
- else that type itself: f32 of operands of several 16-bit dtypes, and bool of a comparison.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from ptxgen.errors import DtypeError, FormulaError, OptionError, described
from ptxgen.numerics import functions  # noqa: F401 - which gives values their powers
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.formula import FLOATS, STORED, TYPES, Formula, Input, Node, Output, trace

OPERANDS_MAX = 48
"""Most arrays, scalars and results of one formula, so that the parameters of any kernel fit in
the 4 KiB that CUDA gives them."""
_WIDTH = ("bool", "i32", "i64", "f32", "f64")


def scalar_type(dtypes: Sequence[str]) -> str:
    """Type of Python numbers beside arrays of ``dtypes``: the widest type that those compute in,
    floats wider than integers.
    """
    return max((STORED[d] for d in dtypes), key=_WIDTH.index)


def operand(position: int) -> str:
    """The name in kernels of the argument at ``position``."""
    return f"x{position}"


def result(position: int) -> str:
    """The name in kernels of the result at ``position``."""
    return f"y{position}"


def formula(
    function: Callable[..., Any],
    parameters: Sequence[str],
    dtypes: Sequence[str | None],
    wanted: Sequence[str | None] | str | None = None,
) -> Formula:
    """The formula of ``function`` called with arrays of ``dtypes`` (None for Python numbers).

    ``wanted``: the dtype of each result, or of all, where the caller names it. Raises FormulaError
    for a function that is none, or reads rows; DtypeError for a dtype that cannot hold a result.
    """
    arrays = [d for d in dtypes if d is not None]
    number = scalar_type(arrays)
    given = {
        name: Node("input", (), STORED[d], Input(operand(i), d))
        if d is not None
        else Node("input", (), number, Input(operand(i), number, "scalar"))
        for i, (name, d) in enumerate(zip(parameters, dtypes, strict=True))
    }
    nodes = trace(function, given)
    if wanted is None or isinstance(wanted, str):
        wanted = [wanted] * len(nodes)
    if len(wanted) != len(nodes):
        raise OptionError(
            f"out_dtype or out has {len(wanted)} entries; there are {len(nodes)} results"
        )
    if len(parameters) + len(nodes) > OPERANDS_MAX:
        raise FormulaError(
            f"{len(parameters)} arguments and {len(nodes)} results; a kernel takes at most "
            f"{OPERANDS_MAX} of both: compute in two steps"
        )
    found = Formula(
        tuple(
            Output(result(i), stored(i, node, arrays, to), node)
            for i, (node, to) in enumerate(zip(nodes, wanted, strict=True))
        )
    )
    for node in found.nodes:
        if node.op in ("reduce", "index", "length"):
            raise FormulaError(
                f"a pointwise function knows no rows, but this one asks for {node.data or node.op} "
                "of one"
            )
    return found


def stored(position: int, node: Node, arrays: Sequence[str], wanted: str | None) -> str:
    """The dtype that the result ``node`` is written in (see the module)."""
    holding = [d for d, type in STORED.items() if type == node.type]
    if wanted is not None:
        if wanted not in holding:
            raise DtypeError(
                f"out_dtype or out is {FULL.get(wanted, wanted)}; result {position} is computed in "
                f"{node.type}, which {' or '.join(FULL[d] for d in holding)} can hold: cast it"
            )
        return wanted
    if node.op == "round_to":
        return str(node.data)
    same = dict.fromkeys(d for d in arrays if STORED[d] == node.type)
    return next(iter(same)) if len(same) == 1 else node.type


def _word(type: str) -> str:
    """The format of a number's 8 bytes, as the module ``struct`` has it."""
    return "<d" if type in FLOATS else {"i32": "<i4x", "i64": "<q", "bool": "<?7x"}[type]


def value_of(type: str, word: bytes) -> float | int | bool:
    """The number that :func:`number` made these 8 bytes of, before it is rounded to ``type``."""
    found: float | int | bool
    (found,) = struct.unpack(_word(type), word)
    return found


def number(type: str, value: Any) -> bytes:
    """A Python number as kernels are given it: 8 bytes, of which they make a ``type``.

    Raises DtypeError for what is none.
    """
    assert type in TYPES
    form = _word(type)
    whole = isinstance(value, int) and (type != "bool" or isinstance(value, bool))
    if not (whole or (type in FLOATS and isinstance(value, float))):
        raise DtypeError(
            f"{described(value)} is no {type}, which the arrays are computed in: cast them"
        )
    try:
        return struct.pack(form, value)
    except (struct.error, OverflowError) as error:
        raise DtypeError(
            f"{described(value)} is beyond {type}, which the arrays are computed in"
        ) from error
