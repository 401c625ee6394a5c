"""Random calls of every operation: valid ones have the oracle's bits, bad ones an error that names
the argument (tools/fuzz_calls.py draws as many as you like).
"""

from __future__ import annotations

import calls
import pytest

import ptxgen

VALID, BAD = 2, 6
"""Of each operation."""


@pytest.fixture(autouse=True)
def on_cpu():
    with ptxgen.use_device("cpu"):
        yield


@pytest.mark.parametrize("name", sorted(calls.operations()))
def test_valid_calls_have_the_oracles_bits(name: str) -> None:
    for seed in range(1000, 1000 + VALID):
        call = calls.valid(name, seed)
        wrong = calls.judge(call)
        assert not wrong, f"seed {seed}: {call}: {wrong}"


@pytest.mark.parametrize("name", sorted(calls.operations()))
def test_bad_calls_are_refused_by_name(name: str) -> None:
    """Also where the call that was spoiled is known, as those are that are tested above. Those that
    are no bad ones, as the oracle takes them, too, have its bits.
    """
    for seed in range(1000, 1000 + BAD):
        for _ in range(2 if seed < 1000 + VALID else 0):
            calls.operations()[name].function(**calls.valid(name, seed).given)
        call = calls.bad(name, seed)
        wrong = calls.judge(call)
        assert not wrong, f"seed {seed}: {call}: {wrong}"


def test_the_judge_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    call = calls.valid("softmax", 7)
    of = calls.operations()["softmax"]

    def judged(function: object) -> str:
        monkeypatch.setitem(
            calls.operations(), "softmax", calls.Operation(function, of.oracle, of.draw)
        )
        return calls.judge(call)

    def bare(**given: object) -> object:
        raise ValueError("axis")

    def refused(**given: object) -> object:
        raise ptxgen.ShapeError("it is not nice")

    def changed(**given: object) -> object:
        found = of.function(**given)
        given["x"][...] = 0
        return found

    assert judged(of.function) == ""
    assert judged(lambda **given: of.function(**given) * 2)
    assert "bare ValueError" in judged(bare) and "refused" in judged(refused)
    spoiled = calls.Call("softmax", {**call.given, "axis": 9}, "axis", "9")
    monkeypatch.setitem(calls.operations(), "softmax", calls.Operation(refused, of.oracle, of.draw))
    assert "does not name axis" in calls.judge(spoiled)
    call.given["x"].flags.writeable = True
    assert "x has been changed" in judged(changed)
