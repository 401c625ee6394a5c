"""Expressions: evaluation, Python, SMT and printed text must agree."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxgen.errors import SpecError
from ptxgen.expr import (
    FALSE,
    TRUE,
    Expr,
    all_of,
    any_of,
    ceil_div,
    const,
    maximum,
    minimum,
    select,
    var,
)

M, N, K = var("M"), var("N"), var("K")
NAMES = ("M", "N", "K")

leaves = st.sampled_from([M, N, K]) | st.integers(-9, 300).map(const)
divisors = st.sampled_from([M, N, K]) | st.integers(1, 130).map(const)


def _combined(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.tuples(inner, inner)
    quotients = st.tuples(inner, divisors)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: minimum(*p)),
        pairs.map(lambda p: maximum(*p)),
        quotients.map(lambda p: p[0] // p[1]),
        quotients.map(lambda p: p[0] % p[1]),
        quotients.map(lambda p: ceil_div(*p)),
        st.tuples(inner, inner, inner).map(lambda t: select(t[0] < t[1], t[1], t[2])),
    )


integers = st.recursive(leaves, _combined, max_leaves=8)
comparisons = st.tuples(integers, integers, st.integers(0, 4)).map(
    lambda t: [t[0] < t[1], t[0] <= t[1], t[0] > t[1], t[0] >= t[1], t[0].eq(t[1])][t[2]]
)
predicates = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        inner.map(lambda p: ~p),
    ),
    max_leaves=5,
)
environments = st.fixed_dictionaries({name: st.integers(1, 1 << 33) for name in NAMES})


@given(e=integers | predicates, env=environments)
@settings(max_examples=1500)
def test_python_evaluates_to_the_same(e: Expr, env: dict[str, int]) -> None:
    assert eval(e.python(), {}, env) == e.evaluate(env), e.python()


@given(e=integers | predicates, env=environments)
@settings(max_examples=300)
def test_smt_evaluates_to_the_same(e: Expr, env: dict[str, int]) -> None:
    z3 = pytest.importorskip("z3")
    names = {name: z3.Int(name) for name in env}
    (same,) = z3.parse_smt2_string(f"(assert (= value {e.smt()}))", decls=names | unknown(z3, e))
    values = [(names[name], z3.IntVal(value)) for name, value in env.items()]
    term = z3.simplify(z3.substitute(same.arg(1), values))
    got = term.as_long() if z3.is_int_value(term) else z3.is_true(term)
    assert z3.is_int_value(term) or z3.is_true(term) or z3.is_false(term), term
    assert got == e.evaluate(env), e


def unknown(z3: Any, e: Expr) -> dict[str, Any]:
    """Returns the z3 unknown, by name, that is set equal to an expression."""
    return {"value": z3.Bool("value") if e.boolean else z3.Int("value")}


@given(e=integers, env=environments)
@settings(max_examples=40)
def test_a_solver_finds_the_same(e: Expr, env: dict[str, int]) -> None:
    """A solver whose variables are pinned by constraints finds the evaluated value alone."""
    z3 = pytest.importorskip("z3")
    solver = z3.Solver(ctx=z3.Context())  # what other tests asked must not matter
    known = [f"(= |{name}| {value})" for name, value in env.items()]
    lines = [f"(declare-const {name} Int)" for name in (*env, "value")]
    lines += [f"(assert {fact})" for fact in (*known, f"(= value {e.smt()})")]
    solver.from_string("\n".join(lines))
    assert solver.check() == z3.sat
    assert solver.model()[z3.Int("value", solver.ctx)].as_long() == e.evaluate(env)


@given(e=integers | predicates, env=environments)
@settings(max_examples=500)
def test_print_means_the_same(e: Expr, env: dict[str, int]) -> None:
    """The text for people, read by Python, with exact quotients where ``ceil`` rounds them."""
    text = str(e).replace("2^", "2**")
    exact = {name: Fraction(value) for name, value in env.items()}
    numbers = re.sub(r"\b(\d+)\b", r"Fraction(\1)", text)
    assert eval(numbers, {"ceil": ceil, "Fraction": Fraction}, exact) == e.evaluate(env), text


@pytest.mark.parametrize(
    ("e", "text", "python"),
    [
        (M + N * K, "M + N*K", "M + N * K"),
        ((M + N) * K, "(M + N)*K", "(M + N) * K"),
        (M - (N - K), "M - (N - K)", "M - (N - K)"),
        (M - N - K, "M - N - K", "M - N - K"),
        (M * (N // K), "M*(N//K)", "M * (N // K)"),
        (M * N // K, "M*N//K", "M * N // K"),
        (M * (N // K * M), "M*(N//K*M)", "M * (N // K * M)"),
        ((M % 4).eq(0), "M % 4 == 0", "M % 4 == 0"),
        ((M < 4) & (N < 5) | (K < 6), "M < 4 and N < 5 or K < 6", "M < 4 and N < 5 or K < 6"),
        ((M < 4) & ((N < 5) | (K < 6)), "M < 4 and (N < 5 or K < 6)", "M < 4 and (N < 5 or K < 6)"),
        (~((M < 4) & (N < 5)), "not (M < 4 and N < 5)", "not (M < 4 and N < 5)"),
        (minimum(M, N + 1) <= 3, "min(M, N + 1) <= 3", "min(M, N + 1) <= 3"),
        (M <= 1 << 31, "M <= 2^31", "M <= 2147483648"),
        (M <= (1 << 31) - 1, "M <= (2^31 - 1)", "M <= 2147483647"),
    ],
)
def test_text(e: Expr, text: str, python: str) -> None:
    assert str(e) == text
    assert e.python() == python


def test_ceil_prints_as_people_write_it() -> None:
    assert str(ceil_div(M, 128) * ceil_div(N, 64)) == "ceil(M/128)*ceil(N/64)"
    for m in (1, 127, 128, 129, (1 << 62) + 1):  # beyond the reach of floating point
        expected = m // 128 + (m % 128 != 0)
        assert ceil_div(M, 128).evaluate({"M": m}) == expected
        assert eval(ceil_div(M, 128).python(), {}, {"M": m}) == expected


def test_constants_fold() -> None:
    assert const(6) * 7 == const(42)
    assert ceil_div(ceil_div(M, 2), 16) == ceil_div(M, 32)
    assert ceil_div(7, 2) == const(4) and const(7) // 2 == const(3) and const(-7) % 4 == const(1)
    assert (const(3) < 4) == TRUE and (const(3) > 4) == FALSE
    assert minimum(3, 4) == const(3) and maximum(3, 4) == const(4)
    assert (TRUE & (M < 4)) == (M < 4) == ((M < 4) & TRUE)
    assert (FALSE & (M < 4)) == FALSE == ((M < 4) & FALSE)
    assert (FALSE | (M < 4)) == (M < 4) == ((M < 4) | FALSE)
    assert (TRUE | (M < 4)) == TRUE == ((M < 4) | TRUE)
    assert ~TRUE == FALSE
    assert all_of([]) == TRUE and any_of([]) == FALSE
    assert all_of([M < 1, TRUE, N < 2]) == ((M < 1) & (N < 2))


@given(e=predicates | integers, env=environments)
@settings(max_examples=300)
def test_substituting_all_variables_evaluates(e: Expr, env: dict[str, int]) -> None:
    assert e.substitute(env) == const(e.evaluate(env))


@given(e=predicates | integers, env=environments, part=st.sampled_from(NAMES))
@settings(max_examples=300)
def test_substituting_one_variable(e: Expr, env: dict[str, int], part: str) -> None:
    rest: Mapping[str, int] = {name: value for name, value in env.items() if name != part}
    partly = e.substitute({part: env[part]})
    assert part not in partly.variables()
    assert partly.evaluate(rest) == e.evaluate(env)


def test_substituting_expressions() -> None:
    e = ceil_div(M, 4) + N
    assert e.substitute({"M": N * 8, "N": K}) == ceil_div(N * 8, 4) + K
    assert e.variables() == {"M", "N"} and const(4).variables() == frozenset()


def test_structure_is_identity() -> None:
    assert var("M") + var("N") == M + N and M + N != N + M
    assert len({M * N, var("M") * var("N"), N * M}) == 2


def test_missing_variables_are_named() -> None:
    with pytest.raises(KeyError, match="'K'"):
        (M + K).evaluate({"M": 1})


def test_short_circuits() -> None:
    assert ((M < 0) & (K < 1)).evaluate({"M": 1}) is False
    assert ((M > 0) | (K < 1)).evaluate({"M": 1}) is True


@pytest.mark.parametrize("divisor", [0, -3])
def test_constant_divisors_are_positive(divisor: int) -> None:
    for divide in (operator.floordiv, operator.mod, ceil_div):
        with pytest.raises(SpecError, match=f"a divisor must be positive, not {divisor}"):
            divide(K, divisor)


def test_select() -> None:
    e = select(M < 4, N, K + 1)
    assert [e.evaluate({"M": m, "N": 10, "K": 20}) for m in (3, 4)] == [10, 21]
    assert select(TRUE, N, K).substitute({"N": 1, "K": 2}) == const(1)
    with pytest.raises(SpecError, match="takes"):
        select(M, N, K)


def test_kinds_are_checked() -> None:
    with pytest.raises(SpecError, match=r"operator '\+' takes an integer, not M < 4"):
        operator.add(M, M < 4)
    with pytest.raises(SpecError, match="operator 'and' takes a predicate, not M"):
        operator.and_(M < 4, M)
    with pytest.raises(SpecError, match="operator 'not' takes a predicate, not M"):
        operator.invert(M)
    with pytest.raises(SpecError, match="takes an integer, not True"):
        operator.add(TRUE, 1)
    assert (M < 4).boolean and TRUE.boolean and not M.boolean and not const(1).boolean


def test_an_expression_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="M < 4 has no truth value; evaluate it"):
        bool(M < 4)
