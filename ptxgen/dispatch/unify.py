"""Anti-unification: the common form of several terms, and the leaves in which they differ.

Kernels of one family have the same formulas with different tiles. Terms have one :func:`form` if
they are equal except for integers and words (and, on request, variables); these are their
:func:`leaves`. :func:`filled` replaces some leaves by names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from ptxgen.expr import Expr, const, var


class Word(NamedTuple):
    """A constant outside of formulas, such as a kernel's name: the name that is suggested for it,
    and its Python text.
    """

    name: str
    text: str


Term = Expr | Word | tuple["Term", ...]


class Leaf(NamedTuple):
    """A constant or a variable of a formula: the name that is suggested for it ("c" if none is),
    its Python text, and whether it is a ``variable``.
    """

    name: str
    text: str
    variable: bool


def form(term: Term, variables: bool) -> Hashable:
    """Returns a key that is equal for terms which differ only in constants, and with ``variables``
    also for those that differ in variables: the term with these leaves blanked.
    """
    found: Hashable = _mapped(
        term, lambda leaf: leaf.text if leaf.variable and not variables else ""
    )
    return found


def leaves(term: Term) -> list[Leaf]:
    """Returns the constants and variables of a term, in order."""
    found: list[Leaf] = []

    def note(leaf: Leaf) -> str:
        found.append(leaf)
        return leaf.text

    _mapped(term, note)
    return found


def filled(term: Term, names: Sequence[str | Expr]) -> Any:
    """Replaces the leaves of ``term`` (constants and variables, in order) by ``names``: a name, a
    formula of names, or "" to keep the leaf.
    """
    given = iter(names)
    return _mapped(term, lambda leaf: leaf.text if (name := next(given)) == "" else name)


def _mapped(term: Term, change: Callable[[Leaf], str | Expr], suggested: str = "c") -> Any:
    """Replaces each leaf of ``term`` (a constant or a variable) by the formula or text that
    ``change`` returns for it.

    ``suggested``: name that is proposed for the term if it is itself a leaf.
    """
    if isinstance(term, Word):
        return Word(term.name, str(change(Leaf(term.name, term.text, False))))
    if not isinstance(term, Expr):
        return tuple(_mapped(each, change) for each in term)
    if term.op == "const" and term.boolean:
        return term
    if term.op in ("var", "const"):
        old = str(term.args[0]).lower()
        new = change(Leaf(suggested, old, term.op == "var"))
        if isinstance(new, Expr) or new == old:
            return new if isinstance(new, Expr) else term
        return const(int(new)) if new.lstrip("-").isdigit() else var(new)
    args = zip(term.args, _suggested_names(term), strict=True)
    return Expr(term.op, tuple(_mapped(arg, change, name) for arg, name in args))


def _suggested_names(e: Expr) -> Iterator[str]:
    """Yields, for each operand of ``e``, the name that it gets if it is a constant: "bm" in
    ceil(M/bm), "most_n" in N <= most_n, else "c".
    """
    for index, other in enumerate(e.args[::-1] if len(e.args) == 2 else ()):
        name = str(other.args[0]).lower() if other.op == "var" else ""
        if e.op == "ceil" and index and name:
            yield f"b{name}" if len(name) == 1 else f"{name}_each"
        elif e.op in ("<", "<=") and name:
            yield f"{'most' if index else 'least'}_{name}"
        else:
            yield "c"
    if len(e.args) != 2:
        yield from ["c"] * len(e.args)
