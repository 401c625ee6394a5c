"""``ptxgen bench recurrence``: what is drawn, and that both sides compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from recurrence_cases import drawn

from ptxgen import reference
from ptxgen.bench import recurrence
from ptxgen.errors import OptionError


def test_cases_are_drawn_by_seed():
    found = recurrence.Recurrence.drawn_cases(3, 1)
    assert len(found) == 3 * len(recurrence.OPERATIONS)
    again = recurrence.Recurrence.drawn_cases(3, 1, ["*backward"])
    assert [c.sizes for c in again] == [c.sizes for c in found if c.name.endswith("backward")]
    assert [c.sizes for c in recurrence.Recurrence.drawn_cases(3, 2)] != [c.sizes for c in found]
    with pytest.raises(OptionError, match="--only scan matches nothing; there are selective_scan"):
        recurrence.Recurrence.drawn_cases(1, 1, ["scan"])


def test_the_other_side_computes_the_same():
    """PyTorch's side computes the same in f32. For 9 tokens with decays below 1 no number is off by
    more than 2^-15 of the largest, since each is a sum of 9 times 4 terms of at most 12 roundings
    (2^-24 * 432 < 2^-15).
    """
    torch = pytest.importorskip("torch")
    given = drawn((2, 9, 5, 4), "f32")
    names = ("x", "delta", "A", "B", "C", "D", "z", "state")
    expected = reference.selective_scan(**{n: given[n] for n in names}, softplus=True)
    got = recurrence.scanned(torch, *(torch.from_numpy(given[n]) for n in names)).numpy()
    assert np.abs(got - expected).max() <= 2**-15 * np.abs(expected).max()
    a, b = (torch.from_numpy(v) for v in (given["x"] % 1, given["z"]))
    expected = reference.linear_recurrence(a.numpy(), b.numpy())
    got = recurrence.recurred(torch, a, b).numpy()
    assert np.abs(got - expected).max() <= 2**-15 * np.abs(expected).max()
