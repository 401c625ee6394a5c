"""Programs of many operations: what is done to them before they run, and how they are shown.

:data:`PASSES` has each pass by its name, a function of a program that returns one with the same
inputs, outputs and bits; :func:`apply` does several, and says what each did.
"""

from __future__ import annotations

from ptxgen.graph.passes import PASSES, Done, apply, chosen
from ptxgen.graph.show import table

__all__ = ["PASSES", "Done", "apply", "chosen", "table"]
