"""Signatures: an operation's arguments, results and shapes, as data.

A shape is written as a form. ``"... K"`` is any number of leading dimensions, whose product is the
size M, and a last dimension K; ``"K N"`` is a matrix; ``"* K N"`` is a batch of matrices, whose
leading dimensions broadcast with those of other arguments, as in NumPy. ``"M K/2"`` is a matrix
whose items pack two elements each along K, which therefore is even; ``"M K/8*5"`` has five items
for each eight elements; ``"B+1"`` is a vector of B + 1 elements. Other conditions on sizes (one is
a multiple of another, say) are relations. The library, the oracles and PyTorch's fake kernels all
infer shapes by signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import lcm, prod
from types import MappingProxyType
from typing import Any

from ptxgen.errors import IndexRangeError, OptionError, ShapeError, SpecError
from ptxgen.expr import Expr

DIM_MAX = (1 << 31) - 1
"""Largest size of a dimension."""
LEAD = "M"
"""Name of the size of leading dimensions, written ``...`` in a form: their product."""

BATCH = "*"
"""Symbol for the leading, broadcasting dimensions of a batch in a form."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Inferred:
    """Sizes by name, and shapes of the results, as inferred from the shapes of arguments."""

    sizes: Mapping[str, int]
    results: tuple[Shape, ...]


@dataclass(frozen=True)
class Signature:
    """The arguments, results and shapes of one operation.

    ``arguments``: names of the arrays, in order; those in ``optional`` may be None. ``results``:
    names of the results, and of the arguments for arrays to write them to. ``by``: name of the
    option that selects among ``forms``, whose keys are its values (only "" if there is no such
    option); each maps array names to forms, shapes as text. ``sizes``: names of the sizes, in the
    order of command lines and explanations. ``over``: result to the arguments whose whole memory it
    may overwrite: kernels read each element before they write it. ``relations``: predicates on
    sizes that forms cannot express, each with an error text. ``lengths``: integer arrays of numbers
    of valid elements, to the name of the size along which they count. Only the device knows their
    values, so kernels clamp them to [0, size].
    """

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    forms: Mapping[str, Mapping[str, str]]
    sizes: tuple[str, ...]
    optional: frozenset[str] = frozenset()
    over: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    relations: tuple[tuple[Expr, str], ...] = ()
    lengths: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    by: str = "layout"

    def __post_init__(self) -> None:
        dims = {
            elements(d)[0] for of in self.forms.values() for f in of.values() for d in f.split()
        }
        for name, size in self.lengths.items():
            if name not in self.arguments or size not in dims:
                raise SpecError(
                    f"{self.name}: lengths {name!r} along {size!r}; there are arguments "
                    f"{', '.join(self.arguments)}, and sizes {', '.join(sorted(dims))}"
                )

    def infer(
        self,
        shapes: Mapping[str, Shape],
        layout: str = "",
        given: Mapping[str, int] = MappingProxyType({}),
    ) -> Inferred:
        """Infers sizes and result shapes from the shapes of the arguments passed, by name.

        ``layout``: value of the option :attr:`by`, which selects the forms; ``given``: sizes that
        no argument determines.

        Raises OptionError for an unknown layout, and ShapeError for shapes that do not fit their
        form or one another, and for sizes beyond :data:`DIM_MAX`.
        """
        sizes, outer, batch = self.sizes_of(shapes, layout, given)
        return Inferred(sizes, self.shapes(sizes, layout, outer, self.results, batch))

    def sizes_of(
        self,
        shapes: Mapping[str, Shape],
        layout: str = "",
        given: Mapping[str, int] = MappingProxyType({}),
    ) -> tuple[dict[str, int], Shape, Shape]:
        """Infers the sizes by name, the leading dimensions ``...`` and the batch dimensions ``*``.

        Arguments and errors are those of :meth:`infer`.
        """
        if not isinstance(layout, str) or layout not in self.forms:
            takes = ", ".join(map(repr, self.forms))
            raise OptionError(f"{self.by} is {layout!r}; takes {takes}")
        forms = self.forms[layout]
        packing = packed(forms)
        sizes = dict(given)
        owner: dict[str, str] = {}
        lead: tuple[str, Shape] | None = None
        batch: Shape = ()
        batched: str | None = None
        for name in self.arguments:
            if name not in shapes:
                continue
            shape, form = shapes[name], forms[name].split()
            leading = form[0] == "..."
            how = f" ({self.by} {layout!r})" if layout and leading_in(forms) else ""
            text = f"[{', '.join(form)}]".replace(BATCH, "...")
            open_ended = leading or form[0] == BATCH
            if (len(shape) < len(form) - 1) if open_ended else (len(shape) != len(form)):
                raise ShapeError(f"{name} has shape {list(shape)}; takes {text}{how}")
            dims, extents = form, shape
            if leading:
                cut = len(shape) - len(form) + 1
                if lead is not None and shape[:cut] != lead[1]:
                    raise ShapeError(
                        f"{name} has shape {list(shape)}; takes the leading dimensions of "
                        f"{lead[0]}, {list(lead[1])}"
                    )
                lead = lead or (name, shape[:cut])
                dims, extents = [LEAD, *form[1:]], (prod(shape[:cut]), *shape[cut:])
            elif form[0] == BATCH:
                cut = len(shape) - len(form) + 1
                found = broadcast(batch, shape[:cut])
                if found is None:
                    raise ShapeError(
                        f"{name} has shape {list(shape)}; takes leading dimensions that broadcast "
                        f"with those of {batched}, which has shape {list(shapes[batched or ''])}"
                    )
                batch, batched, dims, extents = found, batched or name, form[1:], shape[cut:]
            for each, extent in zip(dims, extents, strict=True):
                dim, unit, more, count = elements(each)
                size = (extent - more) * unit
                if isinstance(size, int) and size < 0:
                    raise ShapeError(
                        f"{name} has shape {list(shape)}; takes {text}, {more} or more"
                    )
                if count > 1:
                    if size % count:
                        raise ShapeError(
                            f"{name} has shape {list(shape)}; takes {text}, of {count} items for "
                            f"each {unit} of {dim}"
                        )
                    size //= count
                if size % packing.get(dim, 1):
                    raise ShapeError(
                        f"{name} has shape {list(shape)}, so {dim} = {size}; takes a multiple of "
                        f"{packing[dim]}, which are packed together"
                    )
                # A compiler's symbolic size is no int: bounded here, it would bound the program.
                if isinstance(size, int) and size > DIM_MAX:
                    raise ShapeError(
                        f"{name} has shape {list(shape)}, so {dim} = {size}; takes at most "
                        f"{DIM_MAX}"
                    )
                if sizes.setdefault(dim, size) != size:
                    raise ShapeError(
                        f"{name} has shape {list(shape)}; takes {text} with {dim} = {sizes[dim]}, "
                        f"that of {owner[dim]}{how}"
                    )
                owner.setdefault(dim, name)
        for relation, words in self.relations:
            if relation.variables() <= sizes.keys() and not relation.evaluate(sizes):
                got = ", ".join(f"{n} = {sizes[n]}" for n in sorted(relation.variables()))
                raise ShapeError(f"{words}; got {got}")
        return sizes, lead[1] if lead else (), batch

    def counted(self, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        """Checks the values of the arrays that are :attr:`lengths`: raises IndexRangeError if one
        is below 0 or above its size. Waits for the device.

        ``arrays``, ``sizes``: arrays passed and inferred sizes, by name.
        """
        for name, size in self.lengths.items():
            values, most = arrays.get(name), sizes[size]
            if values is None or 0 in values.shape:
                continue
            low, high = int(values.min()), int(values.max())
            if low < 0 or high > most:
                raise IndexRangeError(
                    f"{name} has a length {low if low < 0 else high}; takes 0 .. {most}, {size}"
                )

    def shapes(
        self,
        sizes: Mapping[str, int],
        layout: str,
        lead: Shape,
        names: Iterable[str],
        batch: Shape = (),
    ) -> tuple[Shape, ...]:
        """Returns the shapes of the arguments or results ``names``.

        ``sizes``: by name; ``layout``: value of the option :attr:`by`; ``lead``, ``batch``:
        dimensions that ``...`` and ``*`` stand for.
        """
        before = {"...": lead, BATCH: batch}
        found = []
        for name in names:
            form = self.forms[layout][name].split()
            outer = before.get(form[0])
            inner = form if outer is None else form[1:]
            own = (sizes[d] // unit * n + more for d, unit, more, n in map(elements, inner))
            found.append((*(outer or ()), *own))
        return tuple(found)


def broadcast(one: Shape, other: Shape) -> Shape | None:
    """Returns the shape that both shapes broadcast to, as in NumPy; None if they do not."""
    length = max(len(one), len(other))
    pairs = zip((1,) * (length - len(one)) + one, (1,) * (length - len(other)) + other, strict=True)
    found = []
    for a, b in pairs:
        if a != b and a != 1 and b != 1:
            return None
        found.append(b if a == 1 else a)
    return tuple(found)


def elements(dim: str) -> tuple[str, int, int, int]:
    """Parses a dimension of a form, ``"NAME/unit*count+more"``, to (NAME, unit, more, count): the
    dimension has ``NAME / unit * count + more`` items.
    """
    name, _, more = dim.partition("+")
    name, _, unit = name.partition("/")
    unit, _, count = unit.partition("*")
    return name, int(unit or 1), int(more or 0), int(count or 1)


def packed(forms: Mapping[str, str]) -> dict[str, int]:
    """Returns the sizes along which an array packs several elements into one item, and the number
    that each size must be a multiple of: {"K": 2} for the form ``M K/2``.

    ``forms``: array name to form.
    """
    found: dict[str, int] = {}
    for name, unit, *_ in (elements(dim) for form in forms.values() for dim in form.split()):
        if unit > 1:
            found[name] = lcm(unit, found.get(name, 1))
    return found


def leading_in(forms: Mapping[str, str]) -> bool:
    """Whether any of ``forms`` has leading dimensions ``...``."""
    return any(form.startswith("...") for form in forms.values())
