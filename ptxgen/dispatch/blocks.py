"""Groups the formulas of dispatch functions that differ only in constants.

A route of a table whose routes are taken in order is a *turn*. In other tables each kernel *launch*
is computed once, and a route is a *way* to combine launches. Turns, or launches, of the same form
become a :class:`Block`: one term of formulas, with a row of constants for each of them.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, count

from ptxgen.dispatch.layout import quoted
from ptxgen.dispatch.table import Table, condition, conjuncts, running
from ptxgen.dispatch.unify import Leaf, Term, Word, filled, form, leaves
from ptxgen.expr import FALSE, TRUE, Expr, var
from ptxgen.spec import ARCHITECTURES, KernelSpec, OneOf, Route

SIDES = ("bm", "bn", "bk")
"""Attributes of kernels that hold the sides of their tile."""


@dataclass(frozen=True)
class Item:
    """One launch, or one turn, of the table named ``table``.

    ``words``: its names and numbers. ``where``: the condition under which its kernels are correct
    (of a turn: and preferred). ``formulas``: the expressions to compute. ``keys``: names of its
    scratch memories, equal in all items of a block.
    """

    table: str
    kernels: tuple[KernelSpec, ...]
    words: tuple[Word, ...]
    where: Expr
    formulas: tuple[Expr, ...]
    keys: tuple[str, ...]
    note: str = ""
    """Comment in the generated code."""

    @property
    def archs(self) -> tuple[str, ...]:
        """Architectures that run all of the kernels."""
        return running(self.kernels)

    @property
    def limited(self) -> bool:
        """Whether some architecture cannot run the kernels."""
        return self.archs != tuple(ARCHITECTURES)

    @property
    def possible(self) -> bool:
        """Whether some architecture runs the kernels, and the condition is not FALSE."""
        return self.where != FALSE and bool(self.archs)

    def kind(self, variables: bool = False) -> Hashable:
        """The key that items of one block share: the form of their terms without constants.

        With ``variables``, items may differ in the names of variables, too.
        """
        found = form((self.words, self.where, self.formulas), variables)
        return found, self.keys, self.limited, self.possible


def turns(table: Table) -> list[Item]:
    """Returns the routes of a table in order, up to the first that takes every problem.

    Words: index and kernels. Formulas: CTAs of each kernel, and bytes of scratch memory.
    """
    found = []
    for index, route in enumerate(table.routes):
        item = Item(
            table.name,
            route.kernels,
            (Word("route", str(index)), *(Word("kernel", quoted(name)) for name in route.names)),
            condition(table, route),
            (*(step.grid for step in route.steps), *route.scratch.values()),
            tuple(route.scratch),
            f"{index}: {route.reason}",
        )
        found.append(item)
        if item.where == TRUE and not item.limited:
            break
    return found


@dataclass(frozen=True)
class Way:
    """A route, as names of its ``launches``.

    ``least``: lower bounds that it puts on variables of few values, such as alignments.
    """

    index: int
    route: Route
    least: Mapping[str, int]
    launches: tuple[str, ...]


def launches(table: Table) -> tuple[list[Item], list[Way]]:
    """Returns the launches of a table's routes, each once, and the routes that combine them.

    Words: name, kernel, unit, slots, units of more phases. Formulas: those of the cost, the CTAs,
    and the bytes of each scratch memory. The launch of a main kernel has the index of its first
    route as name.
    """
    few = {name for name, domain in table.space.variables if isinstance(domain, OneOf)}
    items: dict[Hashable, Item] = {}
    ways = []
    for index, route in enumerate(table.routes):
        least: dict[str, int] = {}
        names = []
        for step in route.steps:
            kernel, cost, scratch = step.kernel, step.cost, step.scratch()
            assert cost is not None, "of a table whose routes are not taken in order"
            where = TRUE
            for term in dict.fromkeys(conjuncts(step.requires)):
                match term:
                    case Expr("<=", (Expr("const", (bound,)), Expr("var", (name,)))) if name in few:
                        least[name] = max(bound, least.get(name, 0))
                    case _:
                        where = where & term
            formulas = (*cost.formulas, step.grid, *scratch.values())
            what = kernel, where, cost, formulas, tuple(scratch)
            if what not in items:
                label = step.label if kernel.prepares else kernel.family
                known = {item.words[0].text for item in items.values()}
                called = (quoted(f"{label}{n or ''}") for n in count())
                main = str(index) if kernel is route.main else ""
                words = (
                    Word("launch", main or next(name for name in called if name not in known)),
                    Word("kernel", quoted(kernel.name)),
                    Word("unit", quoted(cost.units[0])),
                    Word("slots", str(cost.slots)),
                    *(Word("unit", quoted(unit)) for unit in cost.units[1:]),
                )
                items[what] = Item(table.name, (kernel,), words, where, formulas, tuple(scratch))
            names.append(items[what].words[0].text)
        ways.append(Way(index, route, least, tuple(names)))
    return list(items.values()), ways


def joined(items: Iterable[Item]) -> list[list[Item]]:
    """Groups items of one form; groups of different tables may also differ in variables."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(item.kind(), []).append(item)
    found: list[tuple[Hashable, list[Item]]] = []
    for group in groups.values():
        kind = group[0].kind(variables=True)
        tables = {item.table for item in group}
        for other, members in found:
            if kind == other and tables.isdisjoint(item.table for item in members):
                members += group
                break
        else:
            found.append((kind, group))
    return [members for _, members in found]


# -- blocks -------------------------------------------------------------------
@dataclass(frozen=True)
class Block:
    """Items of one form, as one term with names in place of the constants that differ.

    ``archs``: name of the set of architectures that run the items. ``columns``: by name, the text
    of the constant in each item.
    """

    items: Sequence[Item]
    words: tuple[str, ...]
    archs: str
    where: Expr
    formulas: tuple[Expr, ...]
    columns: Mapping[str, tuple[str, ...]]


@dataclass
class Shared:
    """A constant, or a variable, of blocks that depends on the table alone.

    ``texts``: its text by table. ``blocks``: numbers of the blocks that read it. ``name``: its name
    in the generated function; empty if the rows of its block hold it.
    """

    hint: str
    variable: bool
    texts: dict[str, str] = field(default_factory=dict)
    blocks: set[int] = field(default_factory=set)
    name: str = ""

    def missing(self) -> str:
        """The text for tables that do not read it: an empty string, or 0."""
        return '""' if any(text.startswith('"') for text in self.texts.values()) else "0"


@dataclass
class Blocks:
    """The blocks of a generated module.

    ``sets``: names of sets of architectures. ``shared``: values that depend on the table alone and
    have a name: variables, and constants that several blocks read.
    """

    blocks: list[Block]
    sets: dict[tuple[str, ...], str]
    shared: list[Shared]


def blocks(groups: Iterable[Sequence[Item]], taken: Collection[str]) -> Blocks:
    """Makes a block from each group of items of one form; ``taken``: names that are in use."""
    sets: dict[tuple[str, ...], str] = {}
    shared: list[Shared] = []
    made = []
    for number, items in enumerate(groups):
        terms: list[Term] = []
        for item in items:
            some = sets.setdefault(item.archs, f"SOME_{len(sets)}") if item.limited else ""
            terms.append(((*item.words, Word("archs", some)), item.where, item.formulas))
        places = [*zip(*map(leaves, terms), strict=True)]
        made.append((items, terms[0], places, [_share(shared, number, items, p) for p in places]))
    named = [each for each in shared if each.variable or len(each.blocks) > 1]
    dimensions = (letter for letter in "uvwxyz" if letter not in taken)
    for each in named:
        used = {*taken, *(other.name for other in named)}
        each.name = next(dimensions) if each.variable else numbered(each.hint, used)
    used = {*taken, *(each.name for each in named)}
    return Blocks([_block(*each, named, used) for each in made], sets, named)


def _share(
    shared: list[Shared], number: int, items: Sequence[Item], place: Sequence[Leaf]
) -> Shared | None:
    """Returns the shared value of a leaf of block ``number``, if it depends on the table alone.

    None if its text differs within a table, or is the same in all tables.
    """
    texts: dict[str, str] = {}
    for item, leaf in zip(items, place, strict=True):
        if texts.setdefault(item.table, leaf.text) != leaf.text:
            return None
    if len(set(texts.values())) == 1:
        return None
    variable = place[0].variable
    for each in shared:
        same = (each.texts.get(table, text) == text for table, text in texts.items())
        if each.variable == variable and not each.texts.keys().isdisjoint(texts) and all(same):
            break
    else:
        shared.append(each := Shared(place[0].name, variable))
    each.texts.update(texts)
    each.blocks.add(number)
    return each


def _block(
    items: Sequence[Item],
    term: Term,
    places: Sequence[tuple[Leaf, ...]],
    shared: Sequence[Shared | None],
    named: Sequence[Shared],
    used: Collection[str],
) -> Block:
    hints: dict[tuple[str, ...], list[str]] = {}
    for place, of in zip(places, shared, strict=True):
        texts = tuple(leaf.text for leaf in place)
        if len(set(texts)) > 1 and not (of and of.name):
            hints.setdefault(texts, []).append(place[0].name)
    names = {texts: _hint(items, texts, called) for texts, called in hints.items()}
    given: dict[tuple[str, ...], str | Expr] = {}
    for texts in sorted(names, key=lambda texts: names[texts] == "c"):  # unnamed columns last
        taken = {*used, *(name for name in given.values() if isinstance(name, str))}
        product = _product(items, texts, given, named) if names[texts] == "c" else None
        given[texts] = numbered(names[texts], taken) if product is None else product
    texts_of = (tuple(leaf.text for leaf in place) for place in places)
    filling = [
        of.name if of and of.name else given.get(texts, "")
        for texts, of in zip(texts_of, shared, strict=True)
    ]
    (*words, archs), where, formulas = filled(term, filling)
    columns = {name: texts for texts in hints if isinstance(name := given[texts], str)}
    texts = tuple(word.text for word in words)
    return Block(items, texts, archs.text, where, formulas, columns)


def _hint(items: Sequence[Item], texts: tuple[str, ...], hints: Sequence[str]) -> str:
    """Returns the name of a column: that of its words, the side of tiles whose values it has, or
    the name that a formula suggests; else "c".
    """
    for name in hints:
        if name in SIDES or name in ("launch", "kernel", "route", "archs", "unit", "slots"):
            return name
    for side in SIDES:
        if texts == tuple(str(getattr(item.kernels[0], side, "")) for item in items):
            return side
    return next((name for name in hints if name != "c"), "c")


def _product(
    items: Sequence[Item],
    texts: Sequence[str],
    names: Mapping[tuple[str, ...], str | Expr],
    shared: Sequence[Shared],
) -> Expr | None:
    """Expresses a column as a multiple of a tile side, or of the sum or product of two sides.

    The factor is a constant, or a shared value of the table. At least three distinct rows have to
    agree; otherwise returns None.
    """
    sides = [
        (var(name), [*map(int, column)])
        for column, name in names.items()
        if isinstance(name, str) and name in SIDES
    ]
    factors = [
        (var(each.name), [int(each.texts.get(item.table, "0")) for item in items])
        for each in shared
        if not each.variable and all(text.isdigit() for text in each.texts.values())
    ]
    values = [*map(int, texts)]
    for (a, first), (b, second) in combinations_with_replacement(sides, 2):
        pairs = [*zip(first, second, strict=True)]
        if len({*zip(values, pairs, strict=True)}) < 3:
            continue
        for e, of in ((a * b, operator.mul), (a + b, operator.add), (a, lambda x, _: x)):
            each = [v / of(*pair) for v, pair in zip(values, pairs, strict=True)]
            if each[0].is_integer() and len({*each}) == 1:
                return e if each[0] == 1 else e * int(each[0])
            for name, factor in factors:
                if each == factor:
                    return e * name
    return None


def numbered(name: str, used: Collection[str]) -> str:
    """Returns ``name``, with a number appended if it is used; "c" always gets a number."""
    candidates = (f"{name}{n}" if n or name == "c" else name for n in count())
    return next(found for found in candidates if found not in used)
