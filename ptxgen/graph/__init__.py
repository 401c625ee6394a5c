"""Op graphs: builds programs of many operations, and optimises them without changing a bit.

:func:`trace` makes a program from a function, :class:`Builder` from nodes that are added one by
one. :data:`PASSES` has the passes by name: each maps a program to another with the same inputs,
outputs and bits. :func:`apply` runs passes, and reports the effect of each.

>>> import numpy, ptxgen
>>> from ptxgen import functions, graph
>>> x = numpy.zeros((4, 8), "f4")
>>> layer = ptxgen.capture(lambda x: functions.mul(functions.add(x, 1.0), x), x, passes=graph.fewer)
>>> [step.problem.what for step in layer.program.steps]
['add+mul of shape [4, 8]']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxgen.graph.builder import Builder
from ptxgen.graph.passes import PASSES, Done, apply, chosen, fewer
from ptxgen.program import trace as tracing
from ptxgen.program.step import Program
from ptxgen.runtime import Call

__all__ = ["PASSES", "Builder", "Done", "apply", "chosen", "fewer", "trace"]


def trace(function: Callable[..., Any], *example: Any) -> Program:
    """Returns the program of a function of arrays. The function calls operations of the library and
    takes views, nothing else. Only the shapes, dtypes and device of ``example`` matter.

    Raises TraceError, with the line, for a function that does anything else, and if there is no
    array in ``example``.
    """
    tracing.refuse_untraceable("trace", function, example)
    names = tracing.argument_names(function, len(example))
    call = Call(dict(zip(names, example, strict=True)))
    views = [seen.packed for seen in call.views.values()]
    return tracing.trace(function, views, call.device)[0]
