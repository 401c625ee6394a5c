"""``explain``: which kernels serve an operation of these sizes, and why."""

from __future__ import annotations

from typing import Any

from ptxgen.dispatch import accepted
from ptxgen.dispatch.explain import Explanation, explain_problem
from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.contract import DTYPES
from ptxgen.ops import OPS
from ptxgen.ops.op import Op, Question
from ptxgen.spec import Problem

SHORT = {name: short for long, short in DTYPES.items() for name in (long, short)}
"""A dtype's name in specs, from that or from its own name."""


def explain(
    op: str,
    *sizes: int,
    dtype: str = "float32",
    arch: str | None = None,
    sms: int | None = None,
    align: int | tuple[int, ...] = 16,
    gpu: str | None = None,
    **options: Any,
) -> Explanation:
    """Which kernels serve a problem of the operation ``op``, and why.

    ``sizes``: the operation's own, in its order (M, N, K of products). ``options``: those of the
    operation that say what serves it, such as ``layout`` and ``tier``. ``arch``, ``sms``: default
    an H200, sm_90 with 132. ``align``: bytes, of all operands or of each. ``gpu``: the GPU's name,
    whose profile decides if there is one (default: an H200's, unless ``arch`` or ``sms`` is given).

    Raises OptionError for what is unknown, ShapeError for sizes that are none, and UncoveredError.
    """
    if gpu is None and arch is None and sms is None:
        gpu = "NVIDIA H200"
    problem = pose(op, sizes, dtype, align, options)
    sms = 132 if sms is None else sms
    if isinstance(sms, bool) or not isinstance(sms, int) or sms < 1:
        raise OptionError(f"sms is {sms!r}; takes a number of multiprocessors, 1 or more")
    return explain_problem(problem, "sm_90" if arch is None else arch, sms, gpu)


def pose(
    op: str,
    sizes: tuple[int, ...],
    dtype: str,
    align: int | tuple[int, ...],
    options: dict[str, Any],
) -> Problem:
    """The problem of ``op`` with these sizes. Raises as :func:`explain`."""
    row = row_of(op)
    names = row.signature.sizes
    if len(sizes) != len(names):
        raise ShapeError(f"{op} is given {len(sizes)} sizes; takes {', '.join(names)}")
    for name, size in zip(names, sizes, strict=True):
        if isinstance(size, bool) or not isinstance(size, int):
            raise ShapeError(f"{name} is {size!r}; takes an int")
    if dtype not in SHORT:
        raise accepted("dtype", dtype, SHORT)
    given = {name: value for name, value in options.items() if value is not None}
    named = dict(zip(names, sizes, strict=True))
    aligns = (align,) if isinstance(align, int) else tuple(align)
    return row.pose(Question(named, SHORT[dtype], row.options(given), aligns))


def row_of(op: str) -> Op:
    """The row of an operation. Raises OptionError for an unknown one."""
    if op not in OPS:
        raise accepted("operation", op, OPS)
    return OPS[op]
