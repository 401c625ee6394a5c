"""``for_each``: runs all values, fails if one does, and says which."""

from __future__ import annotations

import pytest
from loops import for_each


def test_every_value_runs_and_those_that_fail_are_named():
    seen = []

    @for_each("right", "xy")
    @for_each("left", range(3))
    def pairs(left, right, base):
        seen.append((left, right))
        assert left < base, f"{left}{right}"

    pairs(base=3)
    assert seen == [(left, right) for right in "xy" for left in range(3)]
    with pytest.raises(AssertionError, match="1x") as failure:
        pairs(base=1)
    assert len(seen) == 12
    assert failure.value.__notes__ == [
        "2 of 3 fail: left = ['1', '2']",
        "2 of 2 fail: right = ['x', 'y']",
    ]


def test_failures_of_pytest_are_failures_and_so_are_no_values():
    with pytest.raises(pytest.fail.Exception, match="so"):
        for_each("value", [1])(lambda value: pytest.fail("so"))()
    with pytest.raises(AssertionError, match="no values of value"):
        for_each("value", [])(lambda value: None)()
