"""Integer and boolean expressions over problem variables.

One :class:`Expr` evaluates (:meth:`Expr.evaluate`), emits Python
(:meth:`Expr.python`), emits SMT-LIB (:meth:`Expr.smt`) and prints for people
(``str``). Every predicate and every launch formula of the project is one of
these objects, so nobody writes a predicate twice.

Integers are unbounded. The right side of ``//`` and ``%`` must be positive wherever the
expression is used; they round towards minus infinity, which is what Python and SMT-LIB
both do for positive divisors.

>>> M, N = var("M"), var("N")
>>> tiles = ceil_div(M, 128) * ceil_div(N, 128)
>>> tiles.evaluate({"M": 129, "N": 1})
2
>>> print((tiles <= 132) & (N % 4).eq(0))
ceil(M/128)*ceil(N/128) <= 132 and N % 4 == 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ptxgen.errors import SpecError


@dataclass(frozen=True)
class _Operator:
    """An operator of expressions: its function, and the formats that emit and print it.

    ``boolean``: whether it returns a predicate; ``takes_boolean``: whether it takes predicates;
    ``precedence``: Python's (higher binds tighter). ``compute``: its function of values. ``python``
    and ``text`` (for people) format operands with their parentheses; ``smt`` formats SMT-LIB terms.
    """

    boolean: bool
    takes_boolean: bool
    precedence: int
    compute: Callable[..., Any]
    python: str
    text: str
    smt: str


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


_MIN_MAX = "(let ((a! {0}) (b! {1})) (ite %s a! b!))"
"""SMT-LIB template of min and max; ``%s`` compares ``a!`` and ``b!``. ``let`` writes each operand
once, however deep they nest."""
_OPERATORS: dict[str, _Operator] = {
    "+": _Operator(False, False, 6, lambda a, b: a + b, "{} + {}", "{} + {}", "(+ {} {})"),
    "-": _Operator(False, False, 6, lambda a, b: a - b, "{} - {}", "{} - {}", "(- {} {})"),
    "*": _Operator(False, False, 7, lambda a, b: a * b, "{} * {}", "{}*{}", "(* {} {})"),
    "//": _Operator(False, False, 7, lambda a, b: a // b, "{} // {}", "{}//{}", "(div {} {})"),
    "%": _Operator(False, False, 7, lambda a, b: a % b, "{} % {}", "{} % {}", "(mod {} {})"),
    "ceil": _Operator(
        False, False, 9, _ceil_div, "-(-({}) // ({}))", "ceil({}/{})", "(- (div (- {}) {}))"
    ),
    "min": _Operator(False, False, 9, min, "min({}, {})", "min({}, {})", _MIN_MAX % "(<= a! b!)"),
    "max": _Operator(False, False, 9, max, "max({}, {})", "max({}, {})", _MIN_MAX % "(>= a! b!)"),
    "<": _Operator(True, False, 4, lambda a, b: a < b, "{} < {}", "{} < {}", "(< {} {})"),
    "<=": _Operator(True, False, 4, lambda a, b: a <= b, "{} <= {}", "{} <= {}", "(<= {} {})"),
    "==": _Operator(True, False, 4, lambda a, b: a == b, "{} == {}", "{} == {}", "(= {} {})"),
    "and": _Operator(True, True, 2, lambda a, b: a and b, "{} and {}", "{} and {}", "(and {} {})"),
    "or": _Operator(True, True, 1, lambda a, b: a or b, "{} or {}", "{} or {}", "(or {} {})"),
    "select": _Operator(
        False,
        False,
        9,
        lambda c, a, b: a if c else b,
        "({1} if {0} else {2})",
        "({1} if {0} else {2})",
        "(ite {} {} {})",
    ),
    "not": _Operator(True, True, 3, lambda a: not a, "not {}", "not {}", "(not {})"),
}
_ATOM = 10


@dataclass(frozen=True)
class Expr:
    """An integer or boolean expression. Built by operators, :func:`var` and :func:`const`.

    Equality and hashing are structural (``==`` compares trees); the predicate "equal"
    is :meth:`eq`. An expression has no truth value of its own: ``if expr`` raises.
    """

    op: str  # a key of _OPERATORS, "var" or "const"
    args: tuple[Any, ...]

    # -- construction ---------------------------------------------------------
    def __add__(self, other: Expr | int) -> Expr:
        return _apply("+", self, other)

    def __radd__(self, other: int) -> Expr:
        return _apply("+", other, self)

    def __sub__(self, other: Expr | int) -> Expr:
        return _apply("-", self, other)

    def __rsub__(self, other: int) -> Expr:
        return _apply("-", other, self)

    def __mul__(self, other: Expr | int) -> Expr:
        return _apply("*", self, other)

    def __rmul__(self, other: int) -> Expr:
        return _apply("*", other, self)

    def __floordiv__(self, other: Expr | int) -> Expr:
        return _apply("//", self, _divisor(other))

    def __mod__(self, other: Expr | int) -> Expr:
        return _apply("%", self, _divisor(other))

    def __lt__(self, other: Expr | int) -> Expr:
        return _apply("<", self, other)

    def __le__(self, other: Expr | int) -> Expr:
        return _apply("<=", self, other)

    def __gt__(self, other: Expr | int) -> Expr:
        return _apply("<", other, self)

    def __ge__(self, other: Expr | int) -> Expr:
        return _apply("<=", other, self)

    def eq(self, other: Expr | int) -> Expr:
        """The predicate ``self == other``."""
        return _apply("==", self, other)

    def __and__(self, other: Expr | bool) -> Expr:
        return _apply("and", self, other)

    def __or__(self, other: Expr | bool) -> Expr:
        return _apply("or", self, other)

    def __invert__(self) -> Expr:
        return _apply("not", self)

    def __bool__(self) -> bool:
        raise TypeError(f"the expression {self} has no truth value; evaluate it")

    # -- queries --------------------------------------------------------------
    @property
    def boolean(self) -> bool:
        """Whether the expression is a predicate, not an integer."""
        if self.op == "const":
            return isinstance(self.args[0], bool)
        return self.op != "var" and _OPERATORS[self.op].boolean

    def variables(self) -> frozenset[str]:
        """The names of the variables in this expression."""
        if self.op == "var":
            return frozenset(self.args)
        if self.op == "const":
            return frozenset()
        return frozenset().union(*(a.variables() for a in self.args))

    def evaluate(self, env: Mapping[str, int]) -> Any:
        """Returns the value (int or bool) for the variables in ``env``; KeyError names a missing
        one.
        """
        op, args = self.op, self.args
        if op == "var":
            return env[args[0]]
        if op == "const":
            return args[0]
        first = args[0].evaluate(env)
        if op == "and":
            return first and args[1].evaluate(env)
        if op == "or":
            return first or args[1].evaluate(env)
        return _OPERATORS[op].compute(first, *[a.evaluate(env) for a in args[1:]])

    def substitute(self, values: Mapping[str, Expr | int]) -> Expr:
        """Returns the expression with variables replaced by ``values``; constants fold."""
        if self.op == "var":
            return _lift(values.get(self.args[0], self))
        if self.op == "const":
            return self
        return _apply(self.op, *(a.substitute(values) for a in self.args))

    def smt(self) -> str:
        """Returns the SMT-LIB term of the expression; variables are integers of their names."""
        if self.op == "var":
            return f"|{self.args[0]}|"
        if self.op == "const":
            value = self.args[0]
            if isinstance(value, bool):
                return "true" if value else "false"
            return str(value) if value >= 0 else f"(- {-value})"
        return _OPERATORS[self.op].smt.format(*[a.smt() for a in self.args])

    def python(self) -> str:
        """Python source of this expression; variables appear by name."""
        return self._format("python")

    def __str__(self) -> str:
        return self._format("text")

    def _format(self, style: str) -> str:
        if self.op == "var":
            return str(self.args[0])
        if self.op == "const":
            value = self.args[0]
            return str(value) if style == "python" or isinstance(value, bool) else _pretty(value)
        operator = _OPERATORS[self.op]
        parts = [
            a._format(style) if self._bare(i, a) else f"({a._format(style)})"
            for i, a in enumerate(self.args)
        ]
        return str(getattr(operator, style)).format(*parts)

    def _bare(self, index: int, arg: Expr) -> bool:
        """Whether operand ``arg``, at position ``index``, needs no parentheses."""
        if self.op in ("ceil", "min", "max", "select"):
            return self.op != "ceil" or arg.op in ("var", "const") or arg._precedence() >= 9
        outer, inner = _OPERATORS[self.op].precedence, arg._precedence()
        associative = self.op in ("+", "and", "or") and arg.op == self.op
        return inner > outer or (inner == outer and ((index == 0 and outer != 4) or associative))

    def _precedence(self) -> int:
        return _OPERATORS[self.op].precedence if self.op in _OPERATORS else _ATOM


def var(name: str) -> Expr:
    """Returns the integer variable ``name``."""
    return Expr("var", (name,))


def const(value: int | bool) -> Expr:
    """Returns the constant expression ``value``."""
    return Expr("const", (value,))


TRUE = const(True)
FALSE = const(False)


def ceil_div(a: Expr | int, b: Expr | int) -> Expr:
    """Returns ``a / b`` rounded up; ``b`` must be positive."""
    return _apply("ceil", a, _divisor(b))


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    """The smaller of two integers."""
    return _apply("min", a, b)


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    """The larger of two integers."""
    return _apply("max", a, b)


def select(condition: Expr, then: Expr | int, otherwise: Expr | int) -> Expr:
    """Returns the integer ``then if condition else otherwise``."""
    return _apply("select", condition, then, otherwise)


def all_of(terms: Iterable[Expr]) -> Expr:
    """The conjunction of ``terms`` (true when there are none)."""
    return reduce(lambda a, b: a & b, terms, TRUE)


def any_of(terms: Iterable[Expr]) -> Expr:
    """The disjunction of ``terms`` (false when there are none)."""
    return reduce(lambda a, b: a | b, terms, FALSE)


def _pretty(value: int) -> str:
    """Formats an integer for people: ``2^n`` and ``(2^n - 1)`` from n = 20 on, else its digits."""
    for offset, suffix in ((0, ""), (1, " - 1")):
        power = (value + offset).bit_length() - 1
        if power >= 20 and value + offset == 1 << power:
            return f"2^{power}{suffix}" if not suffix else f"(2^{power}{suffix})"
    return str(value)


def _lift(value: Expr | int | bool) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def _divisor(value: Expr | int) -> Expr:
    divisor = _lift(value)
    if divisor.op == "const" and divisor.args[0] <= 0:
        raise SpecError(f"a divisor must be positive, not {divisor}")
    return divisor


def _apply(op: str, *operands: Expr | int | bool) -> Expr:
    """Builds ``op(*operands)``; folds constants, ``and`` and ``or`` with a constant, and repeated
    ``ceil_div`` by constants.
    """
    args = tuple(_lift(o) for o in operands)
    operator = _OPERATORS[op]
    for index, a in enumerate(args):
        if a.boolean != (operator.takes_boolean or (op == "select" and index == 0)):
            wanted = "a predicate" if operator.takes_boolean else "an integer"
            raise SpecError(f"operator {op!r} takes {wanted}, not {a}")
    if all(a.op == "const" for a in args):
        return const(operator.compute(*(a.args[0] for a in args)))
    if op in ("and", "or"):
        unit = op == "and"
        for a, b in (args, args[::-1]):
            if a.op == "const":
                return b if a.args[0] is unit else a
    if op == "ceil" and args[0].op == "ceil":
        (inner, first), second = args[0].args, args[1]
        if first.op == second.op == "const":  # rounded up once
            return _apply("ceil", inner, first.args[0] * second.args[0])
    return Expr(op, args)
