"""Algorithms of a result: which one is taken, what is said of the others."""

from __future__ import annotations

import pytest

import ptxgen
from ptxgen.errors import UncoveredError
from ptxgen.ops import OPERATIONS
from ptxgen.ops.explaining import program_of
from ptxgen.program.algorithms import Algorithm, RefusedError, first_served, needs
from ptxgen.program.build import ProgramBuilder

SIZES, WGRAD = (2, 64, 30, 30, 128, 3, 3), (2, 64, 30, 30, 128, 30, 30)
DGRAD, STRIDED = (2, 128, 28, 28, 64, 3, 3), (2, 128, 14, 14, 64, 3, 3)
LAST = {"layout": "channels_last"}
PHASES = "implicit GEMM of all phases"


def refusing(reason):
    def launch():
        needs(False, reason)

    return launch


def test_the_first_that_serves_is_taken_and_reasons_of_those_before_it_kept():
    b, done = ProgramBuilder(OPERATIONS), []
    ways = [
        Algorithm("one", refusing("it is odd")),
        Algorithm("two", lambda: done.append(2)),
        Algorithm("three", lambda: done.append(3)),
    ]
    first_served(b, "sums", ways)
    assert done == [2]
    (chosen,) = b.algorithms
    assert str(chosen) == "sums: two\n  not by one: it is odd"


def test_what_an_algorithm_is_made_of_comes_after_it():
    b = ProgramBuilder(OPERATIONS)
    inner = [Algorithm("inner", lambda: None)]
    first_served(b, "all", [Algorithm("outer", lambda: first_served(b, "part", inner))])
    assert [each.served for each in b.algorithms] == ["outer", "inner"]


def test_nothing_that_serves_is_an_error_with_all_reasons():
    b = ProgramBuilder(OPERATIONS)
    ways = [Algorithm("one", refusing("it is odd")), Algorithm("two", refusing("it is even"))]
    with pytest.raises(UncoveredError, match="sums: not by one: it is odd; not by two: it is even"):
        first_served(b, "sums", ways)


def test_other_errors_are_no_reasons():
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        first_served(ProgramBuilder(OPERATIONS), "sums", [Algorithm("one", broken)])
    with pytest.raises(RefusedError, match="it is odd"):
        refusing("it is odd")()


@pytest.mark.parametrize(
    ("op", "sizes", "options", "served"),
    [
        ("conv", SIZES, {**LAST, "padding": 1}, ["implicit GEMM"]),
        ("conv", SIZES, {**LAST, "tier": "simt"}, ["columns"]),
        ("conv", (2, 64, 30, 30, 128, 1, 1), LAST, ["windows as rows"]),
        ("conv", (2, 64, 30, 32, 128, 1, 1), {}, ["filters times images as they lie"]),
        ("conv", SIZES, {}, ["a result row by row, copied", "implicit GEMM"]),
        ("conv_wgrad", WGRAD, {**LAST, "padding": 1, "taps": 3}, ["implicit GEMM"]),
        ("conv_wgrad", WGRAD, {**LAST, "padding": 1, "taps": 3, "chain": True}, ["columns"]),
        ("conv_dgrad", DGRAD, {**LAST, "image": 30}, ["products of each phase", "implicit GEMM"]),
        ("conv_dgrad", STRIDED, {**LAST, "image": 30, "stride": 2}, [PHASES]),
    ],
)
def test_convolutions_take_the_first_algorithm_that_serves(op, sizes, options, served):
    program = program_of(op, sizes, "bf16", None, options)
    assert [each.served for each in program.algorithms] == served


def test_explain_says_which_and_why_not_the_others():
    told = {"layout": "channels_last", "padding": 1, "dtype": "bf16"}
    text = str(ptxgen.explain("conv", *SIZES, **told))
    assert "  products of windows: implicit GEMM\n" in text
    assert "    not by windows as rows: windows reach beyond the image\n" in text
    several = ptxgen.explain("conv", *SIZES, dtype="bf16").brief()
    assert "products of windows: a result row by row, copied\n" in several
    why = "neighbouring channels of the result are not adjacent in memory"
    assert f"  not by implicit GEMM: {why}\n" in several
    assert "not by" not in str(ptxgen.explain("matmul", 64, 64, 64))
