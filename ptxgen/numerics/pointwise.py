"""Pointwise operations: the formula of a Python function, for array dtypes; encoding of scalars.

The contract is ``pointwise/1`` (:data:`ptxgen.numerics.reduction_order.POINTWISE`): operands are
converted to their compute types, exactly; every node of the formula is rounded once, every result
once more.

Unless the caller names a dtype that can hold it, a result has

- the 16-bit dtype that the function casts it to last;
- else the common dtype of the array operands whose compute type is the result's type;
- else the result's type itself: f32 for operands of both 16-bit dtypes, bool for a comparison.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from ptxgen.errors import DtypeError, FormulaError, OptionError, described
from ptxgen.numerics import complex, functions  # noqa: F401 - which give values their operators
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.formula import (
    COMPLEX,
    FLOATS,
    STORED,
    TYPES,
    Formula,
    Input,
    Node,
    Output,
    trace,
)

OPERANDS_MAX = 48
"""Largest number of arrays, scalars and results of one formula, so that the kernel arguments fit in
CUDA's 4 KiB."""
_WIDTH = ("bool", "i32", "i64", "f32", "f64")


def scalar_type(dtypes: Sequence[str]) -> str:
    """Returns the type of Python scalars in a call with arrays of ``dtypes``: the widest of their
    compute types; floats count as wider than integers, and complex types as their parts.
    """
    types = (STORED[d] for d in dtypes)
    return max((COMPLEX.get(t, t) for t in types), key=_WIDTH.index)


def operand(position: int) -> str:
    """Name of the kernel argument of operand ``position``: ``"x0"``, ``"x1"``, ..."""
    return f"x{position}"


def result(position: int) -> str:
    """Name of the kernel argument of result ``position``: ``"y0"``, ``"y1"``, ..."""
    return f"y{position}"


def formula(
    function: Callable[..., Any],
    parameters: Sequence[str],
    dtypes: Sequence[str | None],
    wanted: Sequence[str | None] | str | None = None,
) -> Formula:
    """Traces ``function`` to a formula for arrays of ``dtypes`` (None for a Python scalar).

    ``parameters``: its parameter names; ``wanted``: the dtype of all results or of each, None for
    the default. Raises FormulaError if the function cannot be traced or uses row operations,
    DtypeError for a dtype that cannot hold a result.
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
    """Returns the short dtype in which a kernel stores ``node``, the result at ``position``: the
    first of the following that exists.

    1. ``wanted`` (DtypeError if it cannot hold the result);
    2. the dtype of 16 or 8 bits that the function casts the result to;
    3. the dtype of all ``arrays`` that are computed in the result's type, if they have the same;
    4. the result's type.
    """
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


def _struct_format(type: str) -> str:
    """Returns the ``struct`` format of an 8-byte kernel argument for a scalar of ``type``."""
    return "<d" if type in FLOATS else {"i32": "<i4x", "i64": "<q", "bool": "<?7x"}[type]


def value_of(type: str, word: bytes) -> float | int | bool:
    """Decodes an 8-byte kernel argument, encoded by :func:`number`, to a Python scalar; floats are
    not yet rounded to ``type``.
    """
    found: float | int | bool
    (found,) = struct.unpack(_struct_format(type), word)
    return found


def number(type: str, value: Any) -> bytes:
    """Encodes a Python scalar as the 8-byte kernel argument that kernels convert to ``type``.

    Raises DtypeError for a value that ``type`` cannot hold.
    """
    assert type in TYPES
    form = _struct_format(type)
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
