"""Random programs over every dtype have the same bits eager, captured with any passes, saved."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
import random_programs
from random_programs import NUMPY, RULES, check, draw, mismatch, poisoned, several

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.program.launch import serving
from ptxgen.runtime import get_device

SHARE = (22, 26, 37, 71, 101, 103, 140, 155)
"""Seeds of `make test`: a few that make most kinds of fused steps, of most dtypes."""
ALL, CHUNK = 240, 30
"""Number of seeds in `make check`, and number of seeds a test."""


def test_random_programs_have_their_bits_in_every_way() -> None:
    check(SHARE)


@pytest.mark.long
@pytest.mark.parametrize(
    "first",
    [pytest.param(n, marks=pytest.mark.xdist_group(f"random {n}")) for n in range(0, ALL, CHUNK)],
)
def test_all_random_programs_have_their_bits_in_every_way(first: int) -> None:
    check(range(first, first + CHUNK))


def test_random_programs_have_every_operation_and_return_every_dtype() -> None:
    drawn = [draw(seed) for seed in range(200)]
    assert {line.name for d in drawn for line in d.lines} == set(RULES)
    assert {d.types[i].dtype for d in drawn for i in d.returned} == set(random_programs.DTYPES)


def test_a_difference_is_told_with_its_seed_and_program(monkeypatch) -> None:

    def turned(program):
        return replace(program, outputs=program.outputs[::-1])

    monkeypatch.setattr(random_programs, "PASSES", {**graph.PASSES, "dead": turned})
    with pytest.raises(AssertionError) as error:
        check([3])
    for text in (
        "all: result 0",
        "v9: ",
        "return v",
        "PYTHONPATH=. python tests/program/random_programs.py 3",
    ):
        assert text in str(error.value)


# -- results of steps over rows ------------------------------------------------------------------
STORED = {
    "integers": (("i32", "i64"), ("i64", "i32"), ("i32", "bool")),
    "floats": (("f32", "f64"), ("f32", "bf16"), ("f32", "f16"), ("bf16", "f32")),
    "bool alone": (("bf16", "bool"),),
    "i32 alone": (("f32", "i32"),),
}
"""Dtypes of arrays, and what each is converted to before it is stored."""


def summed(dtypes):
    """Sums over rows of converted arrays, which are returned as well."""

    def function(*arrays):
        kept = [f.cast(x, dtype) for x, dtype in zip(arrays, dtypes, strict=True)]
        return ptxgen.sum(reduce(f.add, (f.cast(x, "f32") for x in kept)), axis=-1), *kept

    return function


NUMBERS = [("i32", -3), ("i32", -(2**31)), ("i64", -(2**63)), ("bool", True)]
NUMBERS += [(dtype, -0.1) for dtype in ("f32", "f64", "bf16", "f16")]


@pytest.mark.parametrize(("dtype", "value"), NUMBERS)
def test_numbers_of_calls_are_constants_of_steps_over_rows(dtype: str, value) -> None:
    def function(x, condition):
        y = f.where(condition, x, value)
        return ptxgen.sum(f.cast(y, "f32"), axis=-1), y

    rng = np.random.default_rng(0)
    arrays = (rng.standard_normal((3, 8)) * 4).astype(NUMPY[dtype]), rng.random((3, 8)) < 0.5
    with ptxgen.use_device("cpu"):
        captured = ptxgen.capture(graph.trace(function, *arrays), passes=graph.fewer)
        assert len(captured.program.steps) == 1
        assert not mismatch(poisoned(captured)(*arrays), function(*arrays))


def same_by_every_kernel(function, arrays, request) -> None:
    """A function whose passes leave one step has its bits by the kernel that is chosen, and with
    --long by every other one that serves the step.
    """
    with ptxgen.use_device("cpu"):
        expected = several(function(*arrays))
        program = graph.fewer(graph.trace(function, *arrays))
        (step,) = program.steps
        kernels = [r.name for r in serving(step.problem, get_device("cpu").sms)]
        for kernel in kernels if request.config.getoption("--long") else [None]:
            by = replace(program, steps=(replace(step, kernel=kernel),))
            assert not mismatch(poisoned(ptxgen.capture(by))(*arrays), expected), kernel


def numbers(rng, dtype, *shape):
    found = rng.standard_normal(shape) * 4
    return found > 0 if dtype == "bool" else found.astype(NUMPY[dtype])


@pytest.mark.parametrize("width", [8, 7, 520])
@pytest.mark.parametrize("name", STORED)
def test_steps_over_rows_store_every_dtype(name: str, width: int, request) -> None:
    rng, (taken, dtypes) = np.random.default_rng(width), zip(*STORED[name], strict=True)
    same_by_every_kernel(summed(dtypes), [numbers(rng, d, 3, width) for d in taken], request)


@pytest.mark.parametrize("dtype", random_programs.DTYPES)
def test_steps_over_rows_read_every_dtype(dtype: str, request) -> None:
    """A number for each element, row and column."""
    width = 7

    def function(*arrays):
        total = reduce(f.add, (f.cast(x, "f32") for x in arrays))
        return ptxgen.softmax(total), f.gt(total, 0)

    rng = np.random.default_rng(width)
    shapes = (3, width), (3, 1), (width,)
    same_by_every_kernel(function, [numbers(rng, dtype, *s) for s in shapes], request)


@pytest.mark.parametrize("taken", ["f32", pytest.param("bf16", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("beside", "dtype"), [("bool", "i32"), ("i32", "bool"), ("f64", "i64"), ("i64", "f64")]
)
def test_epilogues_read_and_store_every_dtype(taken: str, beside: str, dtype: str, request) -> None:
    def function(x, w, y):
        wide = f.cast(ptxgen.linear(x, w, layout="kn"), "f32")
        return f.cast(f.add(wide, f.cast(y, "f32")), dtype)

    rng = np.random.default_rng(0)
    for columns in (16, 7):
        shapes = (taken, 5, 9), (taken, 9, columns), (beside, 5, columns)
        same_by_every_kernel(function, [numbers(rng, *s) for s in shapes], request)
