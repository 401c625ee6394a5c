"""Writes the modules of generated code: assigns tables to modules, and makes a module's text.

A module has one function for all its tables. Constants that differ between kernels of one family,
such as tiles and names, are in rows by table; the formulas that read them are written once.

Where times are predicted, the function finds the routes for the operands' alignments, computes
predicted time, CTAs and scratch memory of each launch whose kernel is correct, and yields the
routes all of whose launches are. Where routes are taken in order, it yields the first that is
correct and preferred, and returns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from textwrap import wrap

from ptxgen.dispatch.blocks import (
    Block,
    Item,
    RouteLaunches,
    blocks,
    grouped,
    launches,
    numbered,
    ordered_routes,
)
from ptxgen.dispatch.choice import named
from ptxgen.dispatch.layout import (
    WIDTH,
    Field,
    assignment,
    branch,
    call,
    python,
    quoted,
    replaced,
    subtrees,
    tuple_of,
)
from ptxgen.dispatch.table import Table, running
from ptxgen.expr import FALSE, TRUE, Expr
from ptxgen.spec import Key

INDENT = " " * 4
NEVER = "(never: what it asks contradicts itself)"
FIXED = ("arch", "table", "time", "us", "launches", "fitting", "choice")
HOISTED = ("tiles", "pieces", "ctas", "operands", "stores")
"""Names that generated code gives to values which several launches read, and computes once; like
:data:`FIXED`, they are reserved.
"""


@dataclass(frozen=True)
class Module:
    """A generated module, and the tables that it serves."""

    name: str
    tables: tuple[Table, ...]

    @property
    def text(self) -> str:
        """The source of the module."""
        return "\n".join(_Text(self.tables).lines()) + "\n"


def modules(of: Iterable[Table]) -> list[Module]:
    """Assigns the tables ``of`` to modules; returns these.

    Tables share a module if their spaces have the same arguments and derived variables, and their
    keys have a word in common. Tables whose routes are taken in order must also have routes that
    differ in constants only.
    """
    groups: list[tuple[Hashable, Key, list[Table]]] = []
    for table in of:
        kinds = [item.kind() for item in ordered_routes(table)] if table.ordered else None
        alike = table.space.arguments, table.space.derived, kinds
        for number, (other, words, group) in enumerate(groups):
            common = tuple(word for word in words if word in table.key)
            if alike == other and common:
                groups[number] = other, common, [*group, table]
                break
        else:
            groups.append((alike, table.key, [table]))
    found: dict[str, Module] = {}
    for _, words, group in groups:
        name = group[0].name if named(words) in found else named(words)
        found[name] = Module(name, tuple(group))
    return list(found.values())


class _Text:
    """The source text of a generated module, built block by block."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = {table.name: table for table in tables}
        self.space = tables[0].space
        self.ordered = tables[0].ordered
        self.reserved = {*FIXED, *HOISTED, *map(str.lower, self.space.names)}
        self.head: list[str] = []
        self.first: list[str] = []
        self.rows: dict[str, list[str]] = {}
        self.body: list[str] = []
        self.hoisted: dict[Expr, str] = {}

    def lines(self) -> Iterator[str]:
        (self._write_in_order if self.ordered else self._write_by_time)()
        keys = ", ".join(" ".join(table.key) for table in self.tables.values())
        spaces = ", ".join(dict.fromkeys(table.space.name for table in self.tables.values()))
        yield from wrap(f'"""Dispatch of {keys}: {spaces}.', WIDTH)
        yield ""
        yield "Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate"
        yield '"""'
        yield ""
        yield "from collections.abc import Iterator"
        yield ""
        used = "Candidate, Choice, Time" if self.ordered else "Candidate, Launches, Routes, Time"
        yield f"from ptxgen.dispatch.choice import {used}"
        if self.head or self.rows:
            yield ""
        yield from self.head
        yield from chain(*self.rows.values())
        yield ""
        yield ""
        variables = [f"{name.lower()}: int" for name in self.space.arguments]
        arguments = ["table: str", "arch: str", *variables, "time: Time"]
        yield from call("def candidates", arguments, "", " -> Iterator[Candidate]:")
        yield f'{INDENT}"""Yields the routes that serve a problem, with predicted times."""'
        yield from self.first
        yield from self.body

    def _write_in_order(self) -> None:
        found = [ordered_routes(table) for table in self.tables.values()]
        runs = [[[*run] for _, run in groupby(items, Item.kind)] for items in found]
        groups = [[*chain(*same)] for same in zip(*runs, strict=True)]
        for block in self._make_blocks(groups):
            self._write_ordered_routes(block)

    def _write_by_time(self) -> None:
        found = {name: launches(table) for name, table in self.tables.items()}
        items = chain(*(items for items, _ in found.values()))
        made = self._make_blocks(grouped(item for item in items if item.possible))
        self._write_routes({name: routes for name, (_, routes) in found.items()})
        for block in made:
            self._write_launches(block)
        self.body.append(f"{INDENT}yield from fitting.combined(launches)")

    # -- blocks
    def _make_blocks(self, groups: Sequence[Sequence[Item]]) -> list[Block]:
        """Makes a block of generated code from each of ``groups``.

        First writes the derived variables that they read, the sets of architectures, and the
        constants that they share.
        """
        formulas = [e for items in groups for i in items for e in (i.where, *i.formulas)]
        read = frozenset().union(*(formula.variables() for formula in formulas))
        for name, formula in self.space.needed(read):
            self.body += assignment(name.lower(), formula, INDENT)
        made = blocks(groups, self.reserved)
        for archs, name in made.sets.items():
            self.head.append(f"{name} = frozenset({tuple_of([*map(quoted, archs)])})")
        if made.shared:
            self.first.append(f"{INDENT}{', '.join(each.name for each in made.shared)} = {{")
            for table in self.tables:
                row = [each.texts.get(table, each.missing()) for each in made.shared]
                lead = f"{quoted(table)}: "
                short = len(row) == 1
                self.first += (
                    [f"{INDENT * 2}{lead}{row[0]},"] if short else call(lead, row, INDENT * 2, ",")
                )
            self.first.append(f"{INDENT}}}[table]")
        return made.blocks

    def _write_ordered_routes(self, block: Block) -> None:
        """Writes the code of a block of routes of an ordered table: it yields the first route whose
        condition holds, and returns from the dispatch function.
        """
        if not block.items[0].possible:
            self.body += [f"{INDENT}# {item.note} {NEVER}" for item in block.items]
            return
        names, indent = self._write_condition(block, {})
        route, *kernels = block.words
        texts = [python(replaced(formula, names)) for formula in block.formulas]
        fields: list[Field] = [route, kernels, texts[: len(kernels)], texts[len(kernels) :]]
        lines = [*call("yield Candidate(0.0, Choice", fields, indent, ")")]
        if len(lines) > 1:
            lines = [*call("choice = Choice", fields, indent)]
            lines.append(f"{indent}yield Candidate(0.0, choice)")
        self.body += lines
        if block.where != TRUE or block.items[0].limited:
            self.body.append(f"{indent}return")

    def _write_launches(self, block: Block) -> None:
        """Writes the code that computes predicted time, CTAs and scratch memory of launches."""
        name, kernel, unit, slots, *units = block.words
        last = 6 + 2 * len(units)
        operands, stores, ctas = *block.formulas[4:6], block.formulas[last]
        shared = {"operands": operands, "stores": stores}
        names, indent = self._write_condition(block, shared, ctas)
        texts = [python(replaced(formula, names)) for formula in block.formulas]
        more = chain(*zip(units, texts[6:last:2], texts[7:last:2], strict=True))
        self.body += call("us = time", [kernel, unit, slots, "sms", *texts[:6], *more], indent)
        pairs = zip(map(quoted, block.items[0].keys), texts[last + 1 :], strict=True)
        scratch = f"{{{', '.join(f'{key}: {size}' for key, size in pairs)}}}"
        fields = ["us", kernel, texts[last], scratch]
        line = f"{indent}launches[{name}] = {', '.join(fields)}"
        fits = len(line) <= WIDTH
        self.body += [line] if fits else call(f"launches[{name}] = ", fields, indent)

    def _write_condition(
        self, block: Block, shared: Mapping[str, Expr], ctas: Expr | None = None
    ) -> tuple[dict[Expr, str], str]:
        """Writes the head of a block: assignments of named expressions, a loop over rows of
        constants if its items differ, and the condition.

        Returns the names by expression, and the indent of the block's body. ``shared``: expressions
        that several blocks may read, by name; ``ctas``: an expression that gets a name if it occurs
        twice.
        """
        formulas = (block.where, *block.formulas)
        inner: dict[Expr, str] = {}
        for name, e in (*shared.items(), *_counts(formulas)):
            if e.op in ("var", "const"):
                continue
            if block.columns.keys().isdisjoint(e.variables()):
                if e not in self.hoisted:
                    self.hoisted[e] = numbered(name, self.hoisted.values())
                    self.body.append(f"{INDENT}{self.hoisted[e]} = {python(e)}")
            elif name not in shared and e not in inner:
                inner[e] = numbered(name.partition("_")[0], inner.values())
        lines = [f"{name} = {python(e)}" for e, name in inner.items()]
        names = {**self.hoisted, **inner}
        often = sum(e == ctas for formula in formulas for e in subtrees(formula)) > 1
        if ctas is not None and often and replaced(ctas, names).op != "var":
            lines.append(f"ctas = {python(replaced(ctas, names))}")
            names[ctas] = "ctas"
        indent, guards = self._write_loop(block)
        self.body += [indent + line for line in lines]
        test = [*branch(guards, replaced(block.where, names), indent)]
        self.body += test
        return names, indent + INDENT if test else indent

    def _write_loop(self, block: Block) -> tuple[str, list[str]]:
        """Writes a loop over the rows of constants of ``block``; no loop if its items have none.

        Returns the indent of the loop's body, and the tests (such as of the architecture) that the
        body's condition still needs, as texts.
        """
        items, columns = block.items, block.columns
        tables = dict.fromkeys(item.table for item in items)
        single = len(tables) == len(items)  # one item a table
        if items[0].note and single:
            self.body.append(f"{INDENT}# {items[0].note}")
        guards = [f"arch in {block.archs}"] if items[0].limited else []
        launch = "" if self.ordered else block.words[0]
        if launch and launch not in columns:
            guards.append(f"{launch} in fitting")
        if not columns:
            if len(tables) < len(self.tables):
                some = [*map(quoted, tables)]
                test = f"== {some[0]}" if len(some) == 1 else f"in {tuple_of(some)}"
                guards.insert(0, f"table {test}")
            return INDENT, guards
        constants = zip(*columns.values(), strict=True)
        rows = (
            (item.table, row, "" if single else item.note)
            for item, row in zip(items, constants, strict=True)
        )
        name = self._write_rows(items[0].kernels[0].family.upper(), [*columns], rows)
        if launch in columns:
            name = f"fitting.rows({name})"
        elif len(self.tables) > 1:
            name = f"{name}[table]" if len(tables) == len(self.tables) else f"{name}.get(table, ())"
        line = f"{INDENT}for {', '.join(columns)} in {name}"
        if guards and block.archs not in columns:
            whole = f"{line} if {' and '.join(guards)} else ()"
            if len(whole) < WIDTH:
                line, guards = whole, []
        if len(line) < WIDTH:
            self.body.append(f"{line}:")
        else:
            names = f"{INDENT * 2}{', '.join(columns)}"
            self.body += [f"{INDENT}for (", names, f"{INDENT}) in {name}:"]
        return INDENT * 2, guards

    def _write_routes(self, found: Mapping[str, Sequence[RouteLaunches]]) -> None:
        """Writes the constant ``ROUTES``, and the statement that selects the routes that a call can
        take: each requires alignments, or other variables of few values, of at least
        ``RouteLaunches.least``.

        ``found``: the routes of each table, by its name.
        """
        routes = [(table, each) for table, of in found.items() for each in of]
        bounded = [n for n in self.space.arguments if any(n in each.least for _, each in routes)]
        given = [name.lower() for name in bounded]
        rows = []
        for table, each in routes:
            least = (str(each.least.get(name, 0)) for name in bounded)
            row = (str(each.index), *least, tuple_of(each.launches))
            possible = each.route.requires != FALSE and running(each.route.kernels)
            rows.append((table, row if possible else (), f"{each.index}: {each.route.reason}"))
        columns = ["route", *(f"least {name}" for name in given), "launches"]
        self._write_rows("ROUTES", columns, rows)
        self.body.append(f"{INDENT}fitting = ROUTES.fitting({', '.join(['table', *given])})")
        self.body.append(f"{INDENT}launches: Launches = {{}}")

    # -- rows
    def _write_rows(self, name: str, columns: Sequence[str], rows: Iterable[_Row]) -> str:
        """Writes a constant that holds ``rows``, grouped by table, under a comment with the names
        of the ``columns``.

        ``name`` is the wanted name of the constant; returns the one that it got, which is unique in
        the module.
        """
        name = numbered(name, self.rows)
        lines = wrap(f"# {name}: {', '.join(columns)}", WIDTH, subsequent_indent="# ")
        self.rows[name] = lines
        if self.ordered and len(self.tables) == 1:
            lines += [f"{name} = (", *_rows(rows, INDENT), ")"]
            return name
        begin, end = ("Routes({", "})") if name == "ROUTES" else ("{", "}")
        lines.append(f"{name} = {begin}")
        known: dict[tuple[str, ...], str] = {}
        for table, of in groupby(rows, lambda row: row[0]):
            own = tuple(_rows(of, INDENT * 2))
            if known.setdefault(own, table) == table:
                whole = f"{INDENT}{quoted(table)}: ({own[0].strip()}),"
                short = len(own) == 1 and len(whole) <= WIDTH
                entry = [whole] if short else [f"{INDENT}{quoted(table)}: (", *own, f"{INDENT}),"]
                lines += entry
            else:
                end += f"\n{name}[{quoted(table)}] = {name}[{quoted(known[own])}]"
        lines.append(end)
        return name


_Row = tuple[str, tuple[str, ...], str]
"""A row of a generated constant: name of the table, values (none for a route that serves no
problem), comment.
"""


def _rows(rows: Iterable[_Row], indent: str) -> Iterator[str]:
    """Yields the source lines of ``rows``: for consecutive rows with one comment the comment, then
    their values, several short rows on a line.

    A row without values (a route that serves no problem) becomes a comment only.
    """
    for note, of in groupby(rows, lambda row: (row[2].partition(": ")[2], bool(row[1]))):
        words, possible = note
        if not possible:
            yield from (f"{indent}# {row[2]} {NEVER}" for row in of)
            continue
        if words:
            yield f"{indent}# {words}"
        line = ""
        for _, row, _ in of:
            text = f"{row[0] if len(row) == 1 else tuple_of(row)},"
            if line and words and len(line) + 1 + len(text) <= WIDTH:
                line += f" {text}"
                continue
            if line:
                yield line
            line = indent + text
            if len(line) > WIDTH:
                *lines, line = call("", row, indent, ",")
                yield from lines
        yield line


def _counts(formulas: Iterable[Expr]) -> Iterator[tuple[str, Expr]]:
    """Yields (name, product) for products of tile counts in ``formulas``, which generated code
    computes once.

    Names begin with "tiles" for ``ceil(X/a) * ceil(Y/b)``, and with "pieces" for ``X * ceil(Y/b)``.
    """
    for e in dict.fromkeys(t for formula in formulas for t in subtrees(formula)):
        if e.op != "*":
            continue
        match [_quotient(factor) for factor in e.args]:
            case [("m", a), ("n", b)] if a and b:
                yield f"tiles_{a}x{b}", e
            case [(m, a), (n, b)] if m and n and b:
                yield f"{'tiles' if a else 'pieces'}_{m}{a}_{n}{b}", e


def _quotient(e: Expr) -> tuple[str, str]:
    """Returns (x, a) for ``ceil(X/a)``, where x is the lower-case name of the variable X; (x, "")
    for the variable X alone, ("", "") for all other expressions.
    """
    if e.op == "ceil" and e.args[0].op == "var" and e.args[1].op in ("var", "const"):
        return str(e.args[0]).lower(), str(e.args[1].args[0])
    return (str(e).lower() if e.op == "var" else ""), ""
