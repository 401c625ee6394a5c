"""Groups code of dispatch functions whose formulas differ only in constants.

In a table whose routes are taken in order, each route is an :class:`Item`. In other tables each
kernel launch is an item, computed once, and a route lists its launches. Items whose formulas differ
only in constants become a :class:`Block`: the formulas once, and a row of constants for each item.
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
"""Attributes of specs with the sizes of a kernel's tile, along M, N and K."""


@dataclass(frozen=True)
class Item:
    """A launch, or a whole route of an ordered table, as input of the code generator.

    ``table``: the table's name in generated code. ``kernels``: the launch's only one, or all of the
    route. ``words``: constants outside of formulas, such as names. ``where``: the condition under
    which the kernels are correct, and for a route also preferred. ``formulas``: the expressions to
    compute. ``keys``: names of the scratch memories, equal in all items of a block.
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
        """Whether some architecture does not run all of the kernels."""
        return self.archs != tuple(ARCHITECTURES)

    @property
    def possible(self) -> bool:
        """Whether some architecture runs the kernels, and ``where`` is not the constant FALSE."""
        return self.where != FALSE and bool(self.archs)

    def kind(self, variables: bool = False) -> Hashable:
        """Returns the key by which items are grouped into blocks. It is equal for items whose
        words, condition and formulas differ only in constants.

        With ``variables``, names of variables may differ, too.
        """
        found = form((self.words, self.where, self.formulas), variables)
        return found, self.keys, self.limited, self.possible


def ordered_routes(table: Table) -> list[Item]:
    """Returns the routes of an ordered table as items, up to the first that serves every problem.

    ``words`` of an item: index and kernels. ``formulas``: CTAs of each kernel, bytes of each
    scratch memory.
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
class RouteLaunches:
    """A route of a table: its ``index``, and the names of its ``launches``.

    ``least``: lower bounds that it requires of variables with few values, such as alignments.
    """

    index: int
    route: Route
    least: Mapping[str, int]
    launches: tuple[str, ...]


def launches(table: Table) -> tuple[list[Item], list[RouteLaunches]]:
    """Returns the launches of a table's routes as items, each distinct one once; and the routes as
    lists of launches.

    ``words`` of an item: name of the launch, kernel, and of its cost
    (:class:`ptxgen.cost.kernel.KernelCost`) the first unit, the slots, and the other units.
    ``formulas``: those of the cost, CTAs, bytes of each scratch memory. The launch of a main kernel
    is named by the index of the first route that has it.
    """
    few = {name for name, domain in table.space.variables if isinstance(domain, OneOf)}
    items: dict[Hashable, Item] = {}
    routes = []
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
            key = kernel, where, cost, formulas, tuple(scratch)
            if key not in items:
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
                items[key] = Item(table.name, (kernel,), words, where, formulas, tuple(scratch))
            names.append(items[key].words[0].text)
        routes.append(RouteLaunches(index, route, least, tuple(names)))
    return list(items.values()), routes


def grouped(items: Iterable[Item]) -> list[list[Item]]:
    """Groups launches or routes that one block of generated code can compute.

    Items of a group have the same formulas up to constants; items of different tables may also
    differ in the names of variables.
    """
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
    """Items whose formulas differ only in constants, as one set of formulas with names for these
    constants.

    ``words``, ``where``, ``formulas``: those of an :class:`Item`, with the names. ``archs``: name
    of the set of architectures that run the items, or of the column that has it; empty if all do.
    ``columns``: for each name, the text of the constant in each item.
    """

    items: Sequence[Item]
    words: tuple[str, ...]
    archs: str
    where: Expr
    formulas: tuple[Expr, ...]
    columns: Mapping[str, tuple[str, ...]]


@dataclass
class Shared:
    """A constant or variable in blocks that depends on the table alone.

    ``hint``: name suggested for it. ``variable``: whether it is a variable. ``texts``: its text by
    table. ``blocks``: indices of the blocks that read it. ``name``: its name in the generated
    function; empty if it is a column of its block.
    """

    hint: str
    variable: bool
    texts: dict[str, str] = field(default_factory=dict)
    blocks: set[int] = field(default_factory=set)
    name: str = ""

    def missing(self) -> str:
        """Returns ``""`` or ``0`` as Python text: the entry of tables that have no such value."""
        return '""' if any(text.startswith('"') for text in self.texts.values()) else "0"


@dataclass
class Blocks:
    """Blocks of code of a generated module, and the names that they share.

    ``sets``: name of each set of architectures. ``shared``: the :class:`Shared` values that get a
    name of their own: variables, and constants that several blocks read.
    """

    blocks: list[Block]
    sets: dict[tuple[str, ...], str]
    shared: list[Shared]


def blocks(groups: Iterable[Sequence[Item]], reserved: Collection[str]) -> Blocks:
    """Makes a block of generated code from each of the ``groups`` that :func:`grouped` returns.

    ``reserved``: names that are taken.
    """
    sets: dict[tuple[str, ...], str] = {}
    shared: list[Shared] = []
    prepared = []
    for number, items in enumerate(groups):
        terms: list[Term] = []
        for item in items:
            some = sets.setdefault(item.archs, f"SOME_{len(sets)}") if item.limited else ""
            terms.append(((*item.words, Word("archs", some)), item.where, item.formulas))
        columns = [*zip(*map(leaves, terms), strict=True)]
        values = [_share(shared, number, items, column) for column in columns]
        prepared.append((items, terms[0], columns, values))
    named = [each for each in shared if each.variable or len(each.blocks) > 1]
    dimensions = (letter for letter in "uvwxyz" if letter not in reserved)
    for each in named:
        used = {*reserved, *(other.name for other in named)}
        each.name = next(dimensions) if each.variable else numbered(each.hint, used)
    used = {*reserved, *(each.name for each in named)}
    return Blocks([_block(*each, named, used) for each in prepared], sets, named)


def _share(
    shared: list[Shared], number: int, items: Sequence[Item], column: Sequence[Leaf]
) -> Shared | None:
    """Returns the :class:`Shared` value of one leaf of the formulas of block ``number``, and adds
    it to ``shared`` if it is new.

    ``column``: the leaf in each of the block's ``items``. None if its text differs between items of
    one table (no value of the table), or is the same in all tables.
    """
    texts: dict[str, str] = {}
    for item, leaf in zip(items, column, strict=True):
        if texts.setdefault(item.table, leaf.text) != leaf.text:
            return None
    if len(set(texts.values())) == 1:
        return None
    variable = column[0].variable
    for each in shared:
        same = (each.texts.get(table, text) == text for table, text in texts.items())
        if each.variable == variable and not each.texts.keys().isdisjoint(texts) and all(same):
            break
    else:
        shared.append(each := Shared(column[0].name, variable))
    each.texts.update(texts)
    each.blocks.add(number)
    return each


def _block(
    items: Sequence[Item],
    term: Term,
    leaf_columns: Sequence[tuple[Leaf, ...]],
    shared: Sequence[Shared | None],
    named: Sequence[Shared],
    used: Collection[str],
) -> Block:
    hints: dict[tuple[str, ...], list[str]] = {}
    for column, of in zip(leaf_columns, shared, strict=True):
        texts = tuple(leaf.text for leaf in column)
        if len(set(texts)) > 1 and not (of and of.name):
            hints.setdefault(texts, []).append(column[0].name)
    names = {texts: _hint(items, texts, suggested) for texts, suggested in hints.items()}
    given: dict[tuple[str, ...], str | Expr] = {}
    for texts in sorted(names, key=lambda texts: names[texts] == "c"):  # unnamed columns last
        reserved = {*used, *(name for name in given.values() if isinstance(name, str))}
        product = _product(items, texts, given, named) if names[texts] == "c" else None
        given[texts] = numbered(names[texts], reserved) if product is None else product
    texts_of = (tuple(leaf.text for leaf in column) for column in leaf_columns)
    filling = [
        of.name if of and of.name else given.get(texts, "")
        for texts, of in zip(texts_of, shared, strict=True)
    ]
    (*words, archs), where, formulas = filled(term, filling)
    columns = {name: texts for texts in hints if isinstance(name := given[texts], str)}
    texts = tuple(word.text for word in words)
    return Block(items, texts, archs.text, where, formulas, columns)


def _hint(items: Sequence[Item], texts: tuple[str, ...], hints: Sequence[str]) -> str:
    """Chooses the name of a column, a constant of the formulas with a value for each item: a
    standard name in ``hints`` (such as "kernel"), else the tile side that has these values, else
    another hint, or "c".

    ``texts``: the column's constants, one for each of ``items``; ``hints``: names suggested for it.
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
    """Expresses a column of constants by tile sides: as a multiple of one side, or of the sum or
    product of two sides.

    ``texts``: the column's integers, one for each of ``items``; ``names``: name of each known
    column, by its texts. The factor is a constant, or one of the values ``shared`` by a table's
    blocks. Returns None if no such formula fits, or if fewer than three distinct rows support it.
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
