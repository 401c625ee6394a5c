"""Whether one step is better than several: by the time that they are predicted to take.

Times are those of the device that NumPy's arrays go to. They decide no bit: a step that is fused
rounds where separate ones did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxgen.cost.tuning import EMPTY
from ptxgen.program.step import Step
from ptxgen.runtime import default_device


def microseconds(steps: Iterable[Step]) -> float:
    """The predicted time of steps, one after the other."""
    device = default_device()
    return sum(step.predicted(device) for step in steps)


def worth(after: Step, before: Sequence[Step]) -> bool:
    """Whether a step takes no longer than those that it is made of, one behind the other."""
    return microseconds([after]) <= microseconds(before) - EMPTY * (len(before) - 1)
