"""Reductions down columns: operations made from :mod:`ptxgen.numerics.column_reductions`.

Other operations that reduce along a strided axis make their problems here (:func:`problem`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ptxgen import lazy
from ptxgen.errors import DtypeError, ShapeError
from ptxgen.numerics.column_reductions import REDUCTIONS, Reduction, computed
from ptxgen.numerics.dtype import ELEMENTS, FULL
from ptxgen.numerics.formula import Formula
from ptxgen.numerics.option import DtypeName
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.ops.views import (
    ALIGN_MAX,
    alignment,
    check_contiguous,
    result_dtype,
    results,
    strided_rows,
)
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import Op
from ptxgen.program.parameters import ARRAY, Parameter, outward
from ptxgen.spec import Problem
from ptxgen.spec.column_reductions import item, read, state, variant

TABLE = ("column_reductions",)


def problem(
    label: str,
    formula: Formula,
    sizes: tuple[int, int, int],
    matrices: Mapping[str, Buffer],
) -> Problem:
    """Returns the problem of reducing ``[OUTER, N, INNER]`` (``sizes``) to ``[OUTER, INNER]``.

    ``formula``: a formula over rows of N elements with a single level of reductions, whose results
    have one element a row; ``label``: its name. ``matrices``: views [OUTER, N, INNER] of the inputs
    that have a value for each element, of stride 1 along INNER; other inputs are contiguous.
    Kernels have a pointer by the name of each input, and ``out_NAME`` for each result.
    """
    outer, n, inner = sizes
    if outer * -(-inner // 32) > DIM_MAX:
        raise ShapeError(f"{label}: there are {outer} times {inner} columns; takes at most 2^36")
    wide, unit = item(formula), min(inner & -inner, ALIGN_MAX)
    scalars: list[tuple[str, int | float]] = []
    for name, view in matrices.items():
        down, along = view.strides[1] if n > 1 else 0, view.strides[0] if outer > 1 else 0
        unit = min(unit, alignment(name, view, down, along) // view.itemsize)
        scalars += [(f"LD_{name.upper()}", down), (f"LO_{name.upper()}", along)]
    values = (
        ("OUTER", outer),
        ("N", n),
        ("INNER", inner),
        ("ITEM", wide),
        ("ALIGN", min(unit * wide, ALIGN_MAX)),
        ("STATE", state(formula)),
        ("READ", read(formula)),
    )
    what = f"{label} [{outer}, {n}, {inner}]"
    return Problem(TABLE, variant(label, formula), values, tuple(scalars), what)


class ColumnOperation(Op):
    """Operation that reduces ``[OUTER, N, INNER]`` over N, from an entry of ``REDUCTIONS``."""

    def __init__(self, row: Reduction, *, doc: str = "", public: bool = False) -> None:
        self.row = row
        arguments = row.signature.arguments
        super().__init__(
            self._lowered,
            name=row.signature.name,
            forms=row.signature,
            oracle=partial(
                lazy.function("ptxgen.oracle.column_reductions:reduce_columns"), row.signature.name
            ),
            public=public,
            dtypes={n: "wide" for n in arguments if row.kinds[n] != "element"},
            takes=(
                *(Parameter(n, ARRAY) for n in arguments),
                *outward(DtypeName(tuple(ELEMENTS))),
            ),
        )
        self.__doc__ = doc

    @property
    def doc(self) -> str:
        return self.__doc__ or ""

    def _lowered(self, b: ProgramBuilder, /, *args: Buffer, **named: Any) -> Any:
        """Records the reduction, one step of one or two kernels, and returns its results."""
        row, signature = self.row, self.row.signature
        all = self.bound(args, named)
        given = {n: all[n] for n in signature.arguments}
        memory = results(all["out"], len(signature.results))
        dtypes, wide = _dtypes(row, given)
        inferred = signature.infer({name: x.shape for name, x in given.items()})
        found = inferred.sizes
        sizes = found.get("O", 1), found.get("N", found.get("M", 1)), found["I"]
        first = given[signature.arguments[0]].dtype
        accepted = first, "int64" if wide.startswith("i") else FULL[wide]
        wanted = result_dtype(all["out_dtype"], memory[0], first, accepted)
        made = zip(inferred.results, memory, signature.results, strict=True)
        targets = tuple(b.result(s, wanted, m, "out" if m else n) for s, m, n in made)
        if not b.abstract and sizes[0] * sizes[2]:
            matrices = {}
            for name, kind in row.kinds.items():
                view = given[name]
                if kind == "element":
                    view = view if "O" in found else _single(name, view)
                    if sizes[2] > 1 and view.size and view.strides[2] != 1:
                        raise strided_rows(name, view)
                    matrices[name] = view
                else:
                    check_contiguous(name, view)
            for target in targets:
                alignment("out", target, 0)
                check_contiguous("out", target, result=True)
            formula = row.formula(dtypes, ELEMENTS[wanted])
            ends = {f"out_{n}": t for n, t in zip(signature.results, targets, strict=True)}
            bind, kernel = {**given, **ends}, all["kernel"]
            b.launch(lambda: problem(signature.name, formula, sizes, matrices), bind, kernel)
        return targets[0] if len(targets) == 1 else targets


def _dtypes(row: Reduction, given: Mapping[str, Buffer]) -> tuple[tuple[str, ...], str]:
    """Returns the short dtypes of arguments and of the arithmetic; raises DtypeError."""
    dtypes: list[str] = []
    wide = ""
    for name, kind in row.kinds.items():
        own = given[name].dtype
        if kind == "element":
            if own not in row.takes:
                raise DtypeError(f"{name} has dtype {own}; takes {' or '.join(row.takes)}")
            wide = computed((*(d for d in (wide,) if d), ELEMENTS[own]))
        elif ELEMENTS.get(own) != wide:
            raise DtypeError(f"{name} has dtype {own}; takes {FULL[wide]}")
        dtypes.append(ELEMENTS[own])
    return tuple(dtypes), wide


def _single(name: str, view: Buffer) -> Buffer:
    """Returns an array [..., I] as a view [1, N, I]; raises ShapeError if there is none."""
    flat = view.matrix(name)
    return replace(flat, shape=(1, *flat.shape), strides=(0, *flat.strides))


_COMMON = """
    Dtypes
        ``dy`` and ``x`` float32, bfloat16, float16 or float64; {statistics} float32 (float64 if any
        of those is); the result has that of ``dy``, or that of the arithmetic if ``out`` or
        ``out_dtype`` say so.
    Order
        Rows are added in the order of contract ``rows/1``, every product rounded once.
    Errors
        ShapeError, DtypeError, OptionError, DeviceError, GradError or CompileError, before anything
        is launched or written.
    Source
        ``ptxgen/ops/column_reductions.py``, ``ptxgen/numerics/column_reductions.py``.
"""
_DOCS = {
    "rms_norm_wgrad": """``sum(dy * (x * rstd))`` over all leading dimensions: the gradient of an
    RMS norm by its weight.

    Shapes
        ``dy`` and ``x`` ``[..., I]``; ``rstd`` ``[...]``, one element a row; the result ``[I]``."""
    + _COMMON.format(statistics="``rstd``"),
    "layer_norm_wgrad": """``(dweight, dbias)``: ``sum(dy * ((x - mean) * rstd))`` and ``sum(dy)``
    over all leading dimensions: the gradients of a layer norm by its weight and bias.

    Shapes
        ``dy`` and ``x`` ``[..., I]``; ``mean`` and ``rstd`` ``[...]``, one element a row; the
        results ``[I]``; ``out`` is a pair."""
    + _COMMON.format(statistics="``mean`` and ``rstd``"),
}


def operation(name: str) -> ColumnOperation:
    """Returns the operation of entry ``name`` of
    :data:`ptxgen.numerics.column_reductions.REDUCTIONS`.
    """
    return ColumnOperation(REDUCTIONS[name], doc=_DOCS.get(name, ""), public=name in _DOCS)
