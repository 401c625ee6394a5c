"""Linearises bounded integer arithmetic for an SMT solver.

SMT solvers are fast on linear integer formulas, and rarely finish with products of variables in the
range of 2^31. So every product, quotient, minimum and maximum becomes a fresh variable, described
by linear facts: its range; the definition of a quotient (``b*q - b < a <= b*q``); the planes that
bound a product over a box (McCormick); definitions multiplied by the other factors of a product;
and, for a product that the solver got wrong, a fact that excludes its guess (:meth:`Linear.cuts`).
Every fact is a true statement about integers, so "no solution" is a proof; a solution is only a
guess, which the caller must evaluate. Facts are expressions, so a test can check them by
evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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

Monomial = tuple[str, ...]
"""Product of variables, as sorted names of its factors; () is 1."""
Polynomial = dict[Monomial, int]
Interval = tuple[int, int]

DEGREE_MAX = 5
PRODUCTS_MAX = 80


class Linear:
    """Rewrites predicates to linear ones, over the original variables and fresh variables that
    stand for products and quotients.

    ``bounds``: the range of every variable. ``aliases``: formulas of derived variables; if one has
    a range in ``bounds``, too, the caller guarantees that its values are in it. ``facts``:
    predicates that hold for the fresh variables; the list grows with each call of
    :meth:`predicate`.
    """

    def __init__(self, bounds: Mapping[str, Interval], aliases: Mapping[str, Expr]) -> None:
        self._bounds = dict(bounds)
        self._aliases = dict(aliases)
        self.meaning: dict[str, Expr] = {}
        """Formulas of fresh variables, by name; each reads only variables before it."""
        self.facts: list[Expr] = []
        self._products: dict[str, Monomial] = {}
        self._known: dict[str, list[Polynomial]] = {}  # atom: polynomials that are >= 0
        self._used: dict[str, None] = {}
        self._memo: dict[Expr, Polynomial] = {}

    # -- reading ----------------------------------------------------------------
    def predicate(self, e: Expr) -> Expr:
        """Returns a predicate that is equivalent to ``e``, and linear in original and fresh
        variables; facts about the fresh ones are added.
        """
        if e.op == "const":
            return e
        if e.op == "and":
            return all_of(map(self.predicate, e.args))
        if e.op == "or":
            return any_of(map(self.predicate, e.args))
        if e.op == "not":
            return ~self.predicate(e.args[0])
        difference = _plus(self.polynomial(e.args[0]), self.polynomial(e.args[1]), -1)
        if e.op == "==":
            low, high = self._at_least_0(difference), self._at_least_0(_times(difference, -1))
            return low & high
        if e.op == "<":
            difference = _plus(difference, {(): 1})
        return self._at_least_0(_times(difference, -1))

    def polynomial(self, e: Expr) -> Polynomial:
        """Converts an integer expression to a polynomial over original and fresh variables; fresh
        ones stand for what is no polynomial, such as ``ceil(a/b)``.
        """
        if e not in self._memo:
            self._memo[e] = self._polynomial(e)
        return self._memo[e]

    def _polynomial(self, e: Expr) -> Polynomial:
        if e.op == "const":
            return {(): e.args[0]} if e.args[0] else {}
        if e.op == "var":
            (name,) = e.args
            return self._alias(name) if name in self._aliases else {(name,): 1}
        if e.op == "select":
            return self._select(*e.args)
        a, b = map(self.polynomial, e.args)
        if e.op == "+":
            return _plus(a, b)
        if e.op == "-":
            return _plus(a, b, -1)
        if e.op == "*":
            return _product(a, b)
        if e.op in ("//", "ceil"):
            return self._quotient(a, b, e.op == "ceil")
        if e.op == "%":
            return _plus(a, _product(b, self._quotient(a, b, False)), -1)
        return self._extreme(a, b, e.op == "min")

    def _alias(self, name: str) -> Polynomial:
        p = self.polynomial(self._aliases[name])
        if name not in self._bounds:
            return p
        (low, high), (p_low, p_high) = self._bounds[name], self.interval(p)
        low, high = max(low, p_low), min(high, p_high)
        self.facts += [self.linear(p) >= low, self.linear(p) <= high]
        if low == high:
            return {(): low} if low else {}
        if len(p) == 1 and (monomial := next(iter(p))) and len(monomial) == 1 and p[monomial] == 1:
            self._bounds[monomial[0]] = (low, high)
        return p

    def _quotient(self, a: Polynomial, b: Polynomial, up: bool) -> Polynomial:
        (a_low, a_high), (b_low, b_high) = self.interval(a), self.interval(b)
        if b_low < 1:
            raise SpecError(f"the divisor {self.linear(b)} may be {b_low}")
        if a == b:
            return {(): 1}
        if b_low == b_high and all(c % b_low == 0 for c in a.values()):
            return {m: c // b_low for m, c in a.items()}
        sign = -1 if up else 1
        corners = [sign * (sign * x // y) for x in (a_low, a_high) for y in (b_low, b_high)]
        low, high = min(corners), max(corners)
        if low == high:
            return {(): low} if low else {}
        above, below = self.linear(a), self._named(b)
        q = self._fresh(ceil_div(above, below) if up else above // below, (low, high))
        rest = _plus(_product(b, q), a, -1)  # b*q - a: 0 .. b - 1 rounding up, else 1 - b .. 0
        slack = _plus(b, {(): -1})
        known = [rest, _plus(slack, rest, -1)] if up else [_times(rest, -1), _plus(slack, rest)]
        self._know(q, known)
        return q

    def _extreme(self, a: Polynomial, b: Polynomial, smaller: bool) -> Polynomial:
        (a_low, a_high), (b_low, b_high) = self.interval(a), self.interval(b)
        if a_high <= b_low:
            return a if smaller else b
        if b_high <= a_low:
            return b if smaller else a
        x, y = self.linear(a), self.linear(b)
        pick = min if smaller else max
        bounds = (pick(a_low, b_low), pick(a_high, b_high))
        t = self._fresh(minimum(x, y) if smaller else maximum(x, y), bounds)
        sign = 1 if smaller else -1
        self._know(t, [_times(_plus(a, t, -1), sign), _times(_plus(b, t, -1), sign)])
        self.facts.append(self.linear(t).eq(x) | self.linear(t).eq(y))
        return t

    def _select(self, condition: Expr, then: Expr, otherwise: Expr) -> Polynomial:
        test = self.predicate(condition)
        a, b = self.polynomial(then), self.polynomial(otherwise)
        if test.op == "const" or a == b:
            return a if test == TRUE else b
        (a_low, a_high), (b_low, b_high) = self.interval(a), self.interval(b)
        x, y = self.linear(a), self.linear(b)
        t = self._fresh(select(test, x, y), (min(a_low, b_low), max(a_high, b_high)))
        self.facts += [~test | self.linear(t).eq(x), test | self.linear(t).eq(y)]
        return t

    # -- names --------------------------------------------------------------------
    def linear(self, p: Polynomial) -> Expr:
        """Returns a polynomial as a linear expression, in which fresh variables stand for its
        products.
        """
        total: Expr | None = None
        for monomial, factor in sorted(p.items()):
            name = self._name(monomial)
            term = const(factor) if name is None else _scaled(factor, var(name))
            total = term if total is None else total + term
        return const(0) if total is None else total

    def _name(self, monomial: Monomial) -> str | None:
        if not monomial:
            return None
        name = " * ".join(monomial)
        if name in self._used:
            return name
        if len(monomial) > 1:
            rest = self._name(monomial[1:])
            assert rest is not None
            self.meaning[name] = var(monomial[0]) * var(rest)
            self._bounds[name] = self._range(monomial)
            self._products[name] = monomial
        self._used[name] = None
        low, high = self._bounds[name]
        self.facts.append((var(name) >= low) & (var(name) <= high))
        return name

    def _fresh(self, formula: Expr, bounds: Interval) -> Polynomial:
        name = f"[{formula}]"
        if name not in self._bounds:
            self._bounds[name] = bounds
            self.meaning[name] = formula
        self._name((name,))
        return {(name,): 1}

    def _named(self, p: Polynomial) -> Expr:
        """Returns ``p`` as a constant or a single variable, which a divisor has to be; for any
        other polynomial a fresh variable that equals it.
        """
        formula = self.linear(p)
        if formula.op == "const":
            return formula
        if list(p.values()) == [1]:
            (monomial,) = p
            return var(" * ".join(monomial))
        named = self._fresh(formula, self.interval(p))
        self._know(named, [_plus(named, p, -1), _plus(p, named, -1)])
        return self.linear(named)

    def _know(self, atom: Polynomial, polynomials: list[Polynomial]) -> None:
        ((name,),) = atom
        if name not in self._known:
            self._known[name] = polynomials
            self.facts += [self._at_least_0(p) for p in polynomials]

    # -- ranges -------------------------------------------------------------------
    def interval(self, p: Polynomial) -> Interval:
        """Returns a range that contains every value of ``p``."""
        low = high = 0
        for monomial, factor in p.items():
            ends = [factor * end for end in self._range(monomial)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _range(self, monomial: Monomial) -> Interval:
        low = high = 1
        for name in monomial:
            ends = [x * y for x in (low, high) for y in self._bounds[name]]
            low, high = min(ends), max(ends)
        return low, high

    def _at_least_0(self, p: Polynomial) -> Expr:
        low, high = self.interval(p)
        if low >= 0:
            return TRUE
        if high < 0:
            return FALSE
        return self.linear(p) >= 0

    # -- facts about products -------------------------------------------------------
    def relate_products(self) -> None:
        """Adds facts about products of variables that hold for all values: bounds from the ranges
        of the factors, and known inequalities multiplied by a factor.
        """
        done: set[str] = set()
        while todo := [name for name in self._products if name not in done]:
            for name in todo:
                done.add(name)
                monomial = self._products[name]
                for x, rest in _splits(monomial):
                    self._multiply_definition(x, rest)
                    self._bound_product(name, x, rest)

    def _multiply_definition(self, x: str, rest: Monomial) -> None:
        if self._range(rest)[0] < 0 or len(self._products) > PRODUCTS_MAX:
            return
        for known in self._known.get(x, ()):
            p = _product(known, {rest: 1})
            if max(map(len, p), default=0) <= DEGREE_MAX:
                self.facts.append(self._at_least_0(p))

    def _bound_product(self, name: str, x: str, rest: Monomial) -> None:
        r = self._name(rest)
        assert r is not None
        p, a, b = var(name), var(x), var(r)
        (a_low, a_high), (b_low, b_high) = self._bounds[x], self._bounds[r]
        self.facts += [
            p >= a_low * b + b_low * a - a_low * b_low,
            p >= a_high * b + b_high * a - a_high * b_high,
            p <= a_high * b + b_low * a - a_high * b_low,
            p <= a_low * b + b_high * a - a_low * b_high,
        ]

    def cuts(self, model: Mapping[str, int]) -> list[Expr]:
        """Adds facts that exclude the solver's guess ``model``, for each product whose value in it
        is wrong.

        For p = x*r, they relate p to its tangent plane at the model's x and r. For x, r >= 0 and
        any constant c, also: x <= c implies p <= c*r, and x >= c implies p >= c*r. ``c`` is a power
        of two where that suffices, as one fact then excludes many models. Returns the facts.
        """
        broken: list[Expr] = []
        for name, monomial in list(self._products.items()):
            for x, rest in _splits(monomial):
                r = self._name(rest)
                assert r is not None
                if not model.keys() >= {name, x, r} or model[name] == model[x] * model[r]:
                    continue
                p_0, x_0, r_0 = model[name], model[x], model[r]
                p, a, b = var(name), var(x), var(r)
                broken += _tangents(p, a, b, x_0, r_0)
                if self._bounds[x][0] < 0 or self._bounds[r][0] < 0:
                    continue
                if p_0 > x_0 * r_0:
                    c = 1 << (x_0 - 1).bit_length() if x_0 > 0 else 0
                    c = c if c * r_0 < p_0 else x_0
                    broken.append((a > c) | (p <= c * b))
                else:
                    c = 1 << x_0.bit_length() - 1 if x_0 > 0 else 0
                    c = c if c * r_0 > p_0 else x_0
                    broken.append((a < c) | (p >= c * b))
        self.facts += broken
        return broken

    def names(self) -> Iterable[str]:
        """Returns the names of the variables that linear predicates and facts read, original and
        fresh.
        """
        return self._used.keys()

    def complete(self, values: Mapping[str, int]) -> dict[str, int]:
        """Returns ``values`` (of the original variables) and the values of the fresh variables."""
        env = dict(values)
        for name, formula in self.meaning.items():
            env[name] = formula.evaluate(env)
        return env


def _tangents(p: Expr, a: Expr, b: Expr, a_0: int, b_0: int) -> list[Expr]:
    """Returns linear facts that bound the product ``p`` = a * b by its tangent plane at (a_0, b_0):
    p is above the plane where a - a_0 and b - b_0 have the same sign, below where they have
    opposite signs.
    """
    plane = b_0 * a + a_0 * b - a_0 * b_0
    same = ((a <= a_0) & (b <= b_0)) | ((a >= a_0) & (b >= b_0))
    opposite = ((a <= a_0) & (b >= b_0)) | ((a >= a_0) & (b <= b_0))
    return [~same | (p >= plane), ~opposite | (p <= plane)]


def _scaled(factor: int, x: Expr) -> Expr:
    return x if factor == 1 else factor * x


def _splits(monomial: Monomial) -> Iterator[tuple[str, Monomial]]:
    """Yields each distinct factor of a monomial, and the product of the others."""
    for i, x in enumerate(monomial):
        if x not in monomial[:i]:
            yield x, monomial[:i] + monomial[i + 1 :]


def _plus(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    result = dict(a)
    for monomial, c in b.items():
        result[monomial] = result.get(monomial, 0) + factor * c
    return {monomial: c for monomial, c in result.items() if c}


def _times(a: Polynomial, factor: int) -> Polynomial:
    return {monomial: factor * c for monomial, c in a.items()}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            monomial = tuple(sorted(m + n))
            result[monomial] = result.get(monomial, 0) + c * d
    return {monomial: c for monomial, c in result.items() if c}
