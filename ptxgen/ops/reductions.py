"""Public reductions over any axes, and softmax along one, from the table of row reductions.

Views move the axes to the end, or copies where no view can. Reductions over adjacent axes that are
not the last run as column reductions, with the same bits.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from textwrap import fill, indent
from types import MappingProxyType
from typing import Any

from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.dtype import FULL, PARTS
from ptxgen.numerics.option import AxisNumber, AxisNumbers, Flag, axes_of
from ptxgen.numerics.row_reductions import BY_PARTS, TABLE, RowOp
from ptxgen.ops.gradients import VJPS, of_each
from ptxgen.ops.row_reductions import CHOSEN
from ptxgen.ops.views import axis_of, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import Op
from ptxgen.program.parameters import ARRAY, NEEDED, OPTION, OPTIONAL, Parameter, outward, signature
from ptxgen.runtime.strided import spread

COLUMNS = {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "max", "amin": "min"}
"""Names of the column reductions that compute reductions of floats, by operation."""
DIMS = {"axis": "dim", "keepdims": "keepdim"}
"""PyTorch's names of arguments of reductions, by ptxgen's names."""


class RowFunction(Op):
    """Public operation of an entry of :data:`ptxgen.numerics.row_reductions.TABLE`, which reduces
    over any axes (form "reduce") or computes along one ("along").
    """

    def __init__(self, row: RowOp) -> None:
        self.row = row
        lower = self._lower_reduce if row.form == "reduce" else self._lower_along
        super().__init__(
            lower,
            name=row.name,
            forms=row.signature,
            any_rank=True,
            vjp=VJPS[row.name],
            takes=_parameters(row),
            dtypes=dict.fromkeys(row.lengths, "int64"),
            checks=self._counted if row.lengths else None,
        )

    @property
    def doc(self) -> str:
        return document(self.row)

    @property
    def as_torch(self) -> tuple[inspect.Signature, str]:
        """Signature and docstring of the PyTorch function, with PyTorch's argument names."""
        takes = []
        for p in self.parameters:
            keyword = p.keyword and (p.name != "keepdims" or bool(self.row.numbers))
            if p.kind in (ARRAY, OPTIONAL, OPTION) and p.name != "kernel":
                takes.append(replace(p, name=DIMS.get(p.name, p.name), keyword=keyword))
        gradient = inspect.getdoc(self.vjp) or ""
        return signature(takes), document(self.row, DIMS, "``out_dtype``", gradient)

    def _lower_reduce(self, b: ProgramBuilder, /, *args: Any, **named: Any) -> Buffer:
        """Records a reduction of rows or columns, after a copy if the axes are not contiguous."""
        given, name = self.bound(args, named), self.row.name
        x, target, keepdims = given["x"], single(given["out"]), given["keepdims"]
        if x.dtype in PARTS and name in BY_PARTS:
            return self._lower_complex(b, given, target)
        axes, how = axes_of(given["axis"], x), self._how(given, target)
        shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        view = b.given(target, kept if keepdims else shape, shape)
        down = _columns(b, name, x, axes)
        if down is not None:
            flat = None if view is None else view.reshaped((down.shape[0], down.shape[2]))
            column = b.operations[f"{COLUMNS[name]}_columns"]
            found = b.call(column, down, out=flat, **how)
            found = b.reshape(found, shape)
        else:
            found = b.rows(name, _last(b, x, axes), out=view, **how)
        return b.delivered(b.reshape(found, kept if keepdims else shape), target)

    def _lower_complex(
        self, b: ProgramBuilder, given: dict[str, Any], target: Buffer | None
    ) -> Buffer:
        """Records the reduction of complex numbers: that of both parts, as one array."""
        x, dtype = given["x"], given["out_dtype"]
        if dtype not in (None, x.dtype):
            raise DtypeError(f"out_dtype is {dtype!r}; takes {x.dtype!r}, that of x")
        if target is not None and target.dtype != x.dtype:
            raise DtypeError(f"out has dtype {target.dtype}; takes {x.dtype}")
        how = {"axis": axes_of(given["axis"], x), "keepdims": given["keepdims"]}
        how |= {"kernel": given["kernel"]}
        found = b.call(self, b.view_as_real(x), **how, out=target and b.view_as_real(target))
        return b.view_as_complex(found) if target is None else target

    def _lower_along(self, b: ProgramBuilder, /, *args: Any, **named: Any) -> Buffer:
        """Records an operation along one axis, after a copy if that is not the last."""
        given = self.bound(args, named)
        x, target = given["x"], single(given["out"])
        at, how = axis_of("x", x, given["axis"]), self._how(given, target)
        last = at == len(x.shape) - 1
        rows = x if last else _last(b, x, (at,))
        view = b.given(target, x.shape, x.shape) if last else None
        for name in self.row.lengths:
            counts, takes = given[name], rows.shape[:-1]
            if counts is None:
                continue
            if spread(counts.shape, counts.strides, takes) is None:
                raise ShapeError(
                    f"{name} has shape {list(counts.shape)}; takes what broadcasts to {list(takes)}"
                )
            how[name] = of_each(b, counts, rows)
        found = b.rows(self.row.name, rows, out=view, **how)
        return b.delivered(found if last else b.move(found, -1, at), target)

    def _counted(self, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        axis = options["axis"]
        self.row.signature.counted(arrays, {"N": arrays["x"].shape[axis]})

    def _how(self, given: Mapping[str, Any], target: Buffer | None) -> dict[str, Any]:
        """Returns the options with which the operation over rows is called: scalar arguments,
        ``kernel`` and, if callers may choose it, ``out_dtype`` (default: that of ``target``, the
        memory passed for the result).
        """
        how = {n: given[n] for n in (*self.row.numbers, "kernel")}
        if self.row.chooses:
            how["out_dtype"] = given["out_dtype"] or (None if target is None else target.dtype)
        return how


def _parameters(row: RowOp) -> tuple[Parameter, ...]:
    reduces = row.form == "reduce"
    indices = any(dtype == "i64" for _, dtype in row.results.values())
    axis = (
        Parameter("axis", OPTION, None, False, AxisNumbers(single=indices))
        if reduces
        else Parameter("axis", OPTION, -1, False, AxisNumber())
    )
    return (
        Parameter("x", ARRAY, NEEDED),
        axis,
        *(Parameter(n, OPTION, o.default, True, o.option) for n, o in row.numbers.items()),
        *([Parameter("keepdims", OPTION, False, True, Flag())] if reduces else ()),
        *(Parameter(n, OPTIONAL, None, True) for n in row.lengths),
        *([Parameter("check", OPTION, False, True, Flag())] if row.lengths else ()),
        *outward(CHOSEN if row.chooses else None),
    )


def _last(b: ProgramBuilder, x: Buffer, axes: tuple[int, ...]) -> Buffer:
    """Returns ``x`` with ``axes`` merged into one last dimension: a view, or a copy if need be."""
    rank = len(x.shape)
    lead = [i for i in range(rank) if i not in axes]
    order = (*lead, *axes)
    if order == tuple(range(rank)) and len(axes) == 1:
        return x
    shape = (*(x.shape[i] for i in lead), prod(x.shape[i] for i in axes))
    found = b.reshape(b.permute(x, order), shape)
    return b.contiguous(found) if shape[-1] > 1 and found.strides[-1] != 1 else found


def _columns(b: ProgramBuilder, name: str, x: Buffer, axes: tuple[int, ...]) -> Buffer | None:
    """Returns ``x`` as [OUTER, N, INNER] if column kernels serve the reduction: ``axes`` are
    adjacent, and not the last. Else returns None.
    """
    rank = len(x.shape)
    if not axes or axes[-1] == rank - 1 or axes[-1] - axes[0] != len(axes) - 1:
        return None
    if name not in COLUMNS or "float" not in x.dtype or 0 in x.shape:
        return None
    parts = x.shape[: axes[0]], x.shape[axes[0] : axes[-1] + 1], x.shape[axes[-1] + 1 :]
    found = b.reshape(x, tuple(map(prod, parts)))
    return b.contiguous(found) if found.shape[2] > 1 and found.strides[2] != 1 else found


def document(
    row: RowOp,
    names: Mapping[str, str] = MappingProxyType({}),
    asked: str = "``out`` or ``out_dtype``",
    gradient: str = "",
) -> str:
    """Returns the docstring of a table entry. ``names``: other names of arguments, by ptxgen's;
    ``asked``: the options that choose a dtype; ``gradient``: a sentence about the gradient.
    """
    takes = [FULL[d] for d in row.dtypes]
    wide = "float32, bfloat16, float16 or float64"
    dtypes = wide if takes == wide.replace(" or ", ", ").split(", ") else ", ".join(takes)
    (level, dtype), *_ = row.results.values()
    gives = {"i64": "int64", "sum": "that of ``x``; int64 of integers and bools"}
    result = gives.get(dtype, "that of ``x``")
    if row.chooses:
        result += f"; {asked} may ask for float32 of 16 bits"
    shapes = {
        "row": "``x`` any; the result without the dimensions ``axis`` (one or several; None: all), "
        "which are 1 with ``keepdims``",
        "element": "``x`` any, and so the result"
        + "; ``lengths`` what broadcasts to ``x`` without the dimension ``axis``"
        * bool(row.lengths),
    }[level]
    if "i64" in dtype:
        shapes = shapes.replace(" (one or several; None: all)", " (None: of all, flattened)")
    if row.lengths:
        dtypes += "; ``lengths``: int32 or int64"
        lengths = """
Lengths
    They are not read on the host: one below 0 counts as 0, one beyond the axis as the whole axis.
    ``check`` waits for them and raises IndexRangeError instead. The first elements have the bits of
    a row of these alone."""
    else:
        lengths = ""
    none = "" if row.empty else " ShapeError for no elements."
    says = row.says
    for name, called in names.items():
        says, shapes = (s.replace(f"``{name}``", f"``{called}``") for s in (says, shapes))
    text = f"""{fill(says, 100)}

Shapes
{indent(fill(f"{shapes}.", 96), "    ")}
Dtypes
{indent(fill(f"``x``: {dtypes}; the result: {result}.", 96), "    ")}
Order
    Contract ``rows/1``: each operation is rounded once in f32 (f64 of float64; integers are added
    in 64 bits); a row is added in leaves of 1024 elements, in an order that its length alone
    decides. So a row's bits depend on that row alone.
    :func:`ptxgen.reference.{row.name}` returns the same bits.
{indent(fill(f"{gradient}", 96), "    ")}{lengths}
Errors
    ShapeError (no such axis), DtypeError, OptionError, DeviceError, GradError or
    CompileError, before anything is launched or written.{none}
Source
    ``ptxgen/numerics/row_reductions.py``, ``ptxgen/ops/reductions.py``."""
    return inspect.cleandoc(text.replace("\n\nErrors", "\nErrors"))


def operation(name: str) -> RowFunction:
    """Returns the public operation of entry ``name`` of
    :data:`ptxgen.numerics.row_reductions.TABLE`.
    """
    return RowFunction(TABLE[name])
