"""Programs of many operations: made, and changed before they run.

:func:`trace` makes one of a function, :class:`Builder` of nodes that are added by hand.
:data:`PASSES` has each pass by its name, a function of a program that returns one with the same
inputs, outputs and bits; :func:`apply` does several, and says what each did.

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
    """The program of a function of arrays, which calls operations of the library and takes views,
    nothing else. Of ``example`` only shapes, dtypes and the device matter.

    Raises TraceError, with the line, for a function that does anything else, and without arrays.
    """
    tracing.refuse_untraceable("trace", function, example)
    call = Call({f"argument {i}": x for i, x in enumerate(example)})
    views = [seen.packed for seen in call.views.values()]
    return tracing.trace(function, views, call.device)[0]
