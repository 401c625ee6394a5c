"""The CPU device against the hardware: what a GPU answered to the conformance corpus."""

from __future__ import annotations

import numpy as np
import pytest
from conformance import fixtures, runner
from conformance.case import Case, elementwise
from conformance.corpus import beyond, corpus, digest, families
from conformance.values import DTYPE, WIDTH, Random, hard_floats, operands
from loops import for_each

from ptxgen.errors import PtxError
from ptxgen.runtime import get_device

CASES = corpus()


@pytest.fixture(scope="module")
def recorded():
    return fixtures.Fixtures()


# -- the corpus and its record --------------------------------------------------------


def test_every_case_is_recorded_and_every_record_has_a_case(recorded):
    assert not recorded.failures
    assert recorded.digests == {name: case.digest for name, case in CASES.items()}
    assert recorded.index["corpus"] == digest(CASES.values())
    assert all(len(recorded.results(name)) == case.nbytes for name, case in CASES.items())


def test_the_record_names_its_machine(recorded):
    about = recorded.index
    assert about["gpu"].startswith("NVIDIA H") and about["compute_capability"] == [9, 0]
    assert about["driver"][0].isdigit() and about["arch"] == "sm_90a"


def test_the_generator_never_changes():
    # splitmix64 of a known state, and hard values in their order: recorded results hang on them.
    words = Random("conformance").words(3)
    assert [hex(w) for w in words] == WORDS
    pairs = operands(("f32", "s32"), 4096, "pairs")
    assert [column.dtype.str for column in pairs] == ["<u4", "<u4"]
    assert [hex(v) for v in (pairs[0][5], pairs[1][5], pairs[0][4000], pairs[1][4000])] == PAIRS
    assert 0x7F800001 in hard_floats("f32") and 0x80000001 in hard_floats("f32")


WORDS = ["0x3b5d86b15b622df0", "0x39a49ea46ce0873f", "0x56633a06a25c4d24"]
PAIRS = ["0x0", "0x2", "0x33800000", "0x121a3bf0"]


def test_cases_stay_small():
    for case in CASES.values():
        assert case.grid <= 12 and case.block <= 1024 and case.nbytes <= 1 << 17, case.name
        assert len(case.inputs) % 16 == 0 and case.nbytes % 16 == 0, case.name


# -- comparing ------------------------------------------------------------------------


def small(kind: str) -> Case:
    return elementwise("x", f"mov.{kind}", (kind,), (kind,), "mov {d0}, {a0};", lanes=4)


@pytest.mark.parametrize(
    ("kind", "got", "expected", "same"),
    [
        ("f32", 0x7FC00000, 0xFF800001, True),
        ("f32", 0x7F800000, 0x7F800001, False),
        ("f32", 0x00000000, 0x80000000, False),
        ("b32", 0x7FC00000, 0x7FC00001, False),
        ("f16", 0x7E00, 0xFC01, True),
        ("bf16", 0x7FC0, 0xFF81, True),
        ("bf16", 0x7C01, 0x7E00, False),
        ("f16x2", 0x7E003C00, 0xFE013C00, True),
        ("f16x2", 0x7E003C00, 0xFE013C01, False),
        ("f64", 0x7FF8000000000000, 0xFFF0000000000001, True),
        ("f64", 1, 2, False),
    ],
)
def test_comparison_is_of_bits_and_takes_any_nan_for_any(kind, got, expected, same):
    case = small(kind)
    dtype = DTYPE[WIDTH[kind]]
    mine, theirs = (np.full(4, v, dtype).tobytes() for v in (got, expected))
    mine, theirs = (raw.ljust(case.nbytes, b"\0") for raw in (mine, theirs))
    found = runner.difference(case, mine, theirs)
    assert (found == "") is same
    assert (runner.same_nan(case, mine) == runner.same_nan(case, theirs)) is same
    if not same:
        assert f"{got:x}" in found and f"{expected:x}" in found


def test_fixtures_come_back_as_they_were_written(tmp_path):
    cases = families()["bits"][:5]
    results = {case.name: case.inputs[: case.nbytes].ljust(case.nbytes, b"x") for case in cases}
    lost = cases[2].name
    expected = dict(results)
    del results[lost]
    fixtures.write(tmp_path, {"gpu": "none"}, cases, results, {lost: "it went away"})
    back = fixtures.Fixtures(tmp_path)
    assert back.index["gpu"] == "none" and back.failures == {lost: "it went away"}
    assert back.digests == {case.name: case.digest for case in cases}
    for name in results:
        assert back.results(name) == expected[name]
    with pytest.raises(KeyError):
        back.results(lost)


# -- devices --------------------------------------------------------------------------


@pytest.mark.parametrize("family", families())
def test_the_cpu_device_answers_as_the_gpu_did(family, recorded):
    wrong = []
    for case in families()[family]:
        assert recorded.digests.get(case.name) == case.digest, "record the corpus again"
        (got,) = runner.run(case, get_device("cpu"))
        if found := runner.difference(case, got, recorded.results(case.name)):
            wrong.append(found)
    assert not wrong, "\n".join(wrong)


@for_each("name", beyond())
def test_what_is_outside_the_subset_is_refused_by_name_and_line(name):
    with pytest.raises(PtxError) as refusal:
        runner.run(beyond()[name], get_device("cpu"))
    assert refusal.value.line > 0
    assert refusal.value.text


@pytest.mark.gpu
@pytest.mark.parametrize("family", families())
def test_this_gpu_answers_as_the_recorded_one_did(family, recorded):
    device = get_device("cuda")
    if device.arch != recorded.index["arch"]:
        pytest.skip(f"recorded on {recorded.index['arch']}, this is {device.arch}")
    wrong = []
    for case in families()[family]:
        (got,) = runner.run(case, device)
        if found := runner.difference(case, got, recorded.results(case.name)):
            wrong.append(found)
    assert not wrong, "\n".join(wrong)
