"""Cost comparison of a fused step with the separate steps, by predicted times.

Times are predicted for the device that computes NumPy's arrays. They decide no bit: a fused step
rounds where the separate ones did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxgen.cost.tuning import EMPTY
from ptxgen.program.step import Step
from ptxgen.runtime import default_device


def microseconds(steps: Iterable[Step]) -> float:
    """Returns the predicted time of steps that run one after the other, µs."""
    device = default_device()
    return sum(step.predicted(device) for step in steps)


def worth(after: Step, before: Sequence[Step]) -> bool:
    """Whether a fused step is predicted to take no longer than the steps that it replaces."""
    return microseconds([after]) <= microseconds(before) - EMPTY * (len(before) - 1)
