"""Routes: sequences of kernels that solve a problem, and when to use them; tables of routes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ptxgen.cost.kernel import KernelCost
from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr, all_of
from ptxgen.spec.base import KernelSpec, check
from ptxgen.spec.space import Space

Key = tuple[str, ...]
"""Identifier of a route table: words that, joined by underscores, name its dispatch module."""


@dataclass(frozen=True)
class Step:
    """One launch of a route.

    A pointer parameter of the kernel is bound to the operand, result or scratch array of its name,
    a scalar to the variable of its name in upper case, unless ``bind`` gives another name.

    ``given``: values of the kernel's variables that differ from the problem's, as expressions over
    the problem's variables. Example: the pitch and alignment of a copy that the kernel reads in
    place of an operand. The properties of this class substitute them into the kernel's expressions.

    ``results``: names of the kernel's scratch arrays that are the problem's results here, for
    kernels that otherwise prepare an operand.
    """

    kernel: KernelSpec
    bind: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    given: Mapping[str, Expr] = field(default_factory=lambda: MappingProxyType({}))
    results: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = set(self.bind) - {p.name for p in self.kernel.abi.params}
        check(not unknown, self.kernel.name, "parameters that bind names", sorted(unknown), "none")

    def bound(self, parameter: str) -> str:
        """Returns the name of the operand, result, scratch array or variable that a parameter is
        bound to.
        """
        return self.bind.get(parameter, parameter)

    @cached_property
    def grid(self) -> Expr:
        """Number of CTAs (grid.x), with the problem's variables in place of the kernel's."""
        return self.kernel.grid.substitute(self.given)

    @cached_property
    def requires(self) -> Expr:
        """Predicate under which the kernel is correct, with the problem's variables in place of the
        kernel's.
        """
        return self.kernel.requires.substitute(self.given)

    @cached_property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """Bounds of the kernel's 32-bit index arithmetic (:attr:`KernelSpec.index_bounds`), with
        the problem's variables in place of the kernel's.
        """
        bounds = self.kernel.index_bounds
        return tuple((text, value.substitute(self.given), limit) for text, value, limit in bounds)

    def scratch(self) -> dict[str, Expr]:
        """Returns the bytes of each scratch array of the kernel, by the name it is bound to."""
        sizes = {n: size for n, size in self.kernel.scratch.items() if n not in self.results}
        return {self.bound(name): size.substitute(self.given) for name, size in sizes.items()}

    @cached_property
    def cost(self) -> KernelCost | None:
        """Work of the kernel (:attr:`KernelSpec.cost`), with the problem's variables in place of
        the kernel's.
        """
        cost = self.kernel.cost
        return None if cost is None else cost.substitute(self.given)

    def parameters(self, values: Mapping[str, int | float]) -> dict[str, int | float]:
        """Returns the scalars of the kernel by lower-case name: ``values``, updated by the
        expressions of :attr:`given`.
        """
        variables = {
            name.upper(): value for name, value in values.items() if isinstance(value, int)
        }
        return {**values, **{n.lower(): e.evaluate(variables) for n, e in self.given.items()}}

    @property
    def label(self) -> str:
        """Name of the step within a route's name: the kernel's, or family and operands of a
        preparing kernel.
        """
        if not self.kernel.prepares:
            return self.kernel.name
        pointers = (p.name for p in self.kernel.abi.pointers if p.name not in self.kernel.scratch)
        return f"{self.kernel.family}_{''.join(map(self.bound, pointers))}"


@dataclass(frozen=True, init=False)
class Route:
    """One entry of a route table: the launches, in order, and when to use them.

    Among the routes of a table whose ``requires`` holds, dispatch takes the one with the lowest
    predicted time (:attr:`costs`). Where no cost is known, it takes the first whose ``prefer``
    holds as well. ``reason``: what the route is for, in words. ``steps``: kernels, or :class:`Step`
    where parameters are bound to other names. Kernels that name the same scratch array share it:
    one writes it, the next reads it.
    """

    steps: tuple[Step, ...]
    prefer: Expr
    reason: str

    def __init__(
        self, steps: Iterable[KernelSpec | Step], prefer: Expr = TRUE, reason: str = ""
    ) -> None:
        launches = tuple(s if isinstance(s, Step) else Step(s) for s in steps)
        object.__setattr__(self, "steps", launches)
        object.__setattr__(self, "prefer", prefer)
        object.__setattr__(self, "reason", reason)
        check(len(launches) > 0, "Route", "launches", len(launches), ">= 1")
        check(prefer.boolean, self.name, "prefer is a predicate", prefer, "boolean")
        for step in launches:
            for name, size in step.scratch().items():
                other = self.scratch[name]
                check(size == other, self.name, f"bytes of scratch {name!r}", size, other)

    @cached_property
    def kernels(self) -> tuple[KernelSpec, ...]:
        """Kernels of the route, in launch order."""
        return tuple(step.kernel for step in self.steps)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels, in launch order."""
        return tuple(kernel.name for kernel in self.kernels)

    @cached_property
    def main(self) -> KernelSpec:
        """First kernel of the route that does more than prepare operands; the route is named for
        it.
        """
        return next((k for k in self.kernels if not k.prepares), self.kernels[0])

    @cached_property
    def name(self) -> str:
        """Name of the route: labels of its steps up to the main kernel, joined by "+".

        Examples: "simt_nn_f32_64x64x16_9d796a", "realign_ab+simt_nn_f32_64x64x16_9d796a".
        """
        upto = self.kernels.index(self.main) + 1
        return "+".join(step.label for step in self.steps[:upto])

    @cached_property
    def requires(self) -> Expr:
        """Predicate under which all kernels of the route are correct."""
        return all_of(step.requires for step in self.steps)

    @property
    def batched(self) -> bool:
        """Whether every kernel of the route computes a batch in one launch."""
        return all(kernel.batched for kernel in self.kernels)

    def takes(self, dtype: Hashable) -> bool:
        """Returns whether all kernels of the route exist for ``dtype``, a dtype of its table."""
        return all(kernel.takes(dtype) for kernel in self.kernels)

    @cached_property
    def costs(self) -> tuple[KernelCost, ...] | None:
        """Cost of each kernel, in launch order; None if one has none."""
        found = tuple(step.cost for step in self.steps)
        known = tuple(cost for cost in found if cost is not None)
        return known if len(known) == len(found) else None

    @cached_property
    def scratch(self) -> dict[str, Expr]:
        """Bytes of each scratch array of the route, by name."""
        found: dict[str, Expr] = {}
        for step in self.steps:
            for name, size in step.scratch().items():
                found.setdefault(name, size)
        return found

    def of(self, dtype: Hashable) -> Route:
        """Returns this route with its kernels derived for ``dtype``."""
        kernels = [step.kernel.of(step.kernel.seen(dtype)) for step in self.steps]
        if all(twin is kernel for twin, kernel in zip(kernels, self.kernels, strict=True)):
            return self
        steps = (replace(s, kernel=twin) for s, twin in zip(self.steps, kernels, strict=True))
        return Route(steps, self.prefer, self.reason)


TWINS_MAX = 1024
"""Most routes derived for other dtypes that a table caches."""


@dataclass(frozen=True)
class RouteTable:
    """Routes of one kind of problems, ``space``, in order.

    ``dtypes``: dtypes that the table supports. ``routes`` are written for the first;
    :meth:`Route.of` derives the others, which differ only in the types that kernels read and write.
    ``opened``: True if the table supports all other dtypes, too; or types whose instances it
    supports. Their kernels are derived on first use. ``pinned``: returns a few such kernels for the
    goldens, so that these cover every line of a template. ``partial``: some problems have no route;
    the caller has a fallback.
    """

    space: Space
    routes: tuple[Route, ...]
    dtypes: tuple[Any, ...] = ("f32",)
    opened: bool | type | tuple[type, ...] = False
    partial: bool = False
    pinned: Callable[[], Iterable[KernelSpec]] = tuple

    def __post_init__(self) -> None:
        if not self.routes or not self.dtypes:
            raise SpecError(f"a table of {self.space.name!r} has no routes, or serves no dtype")

    def takes(self, dtype: Hashable) -> bool:
        """Returns whether the table supports problems of ``dtype``."""
        if isinstance(self.opened, bool):
            return self.opened or dtype in self.dtypes
        return dtype in self.dtypes or isinstance(dtype, self.opened)

    @cached_property
    def named(self) -> dict[str, Route]:
        """Routes of the table by name. Raises SpecError if two of one name differ in more than
        ``prefer``.
        """
        found: dict[str, Route] = {}
        for route in self.routes:
            other = found.setdefault(route.name, route)
            same = route.steps == other.steps
            check(same, route.name, "one name, other steps", route.reason, other.reason)
        return found

    def route(self, index: int, dtype: Hashable) -> Route:
        """Returns the route at ``index`` of the table, derived for ``dtype`` on first use and
        cached.
        """
        found = self._twins.get((index, dtype))
        if found is None:
            if len(self._twins) >= TWINS_MAX:
                self._twins.clear()
            found = self._twins[index, dtype] = self.routes[index].of(dtype)
        return found

    @cached_property
    def _twins(self) -> dict[tuple[int, Hashable], Route]:
        return {}

    def kernels(self) -> Iterable[KernelSpec]:
        """Yields the kernels of all routes, for each of ``dtypes``."""
        for dtype in self.dtypes:
            for route in self.routes:
                yield from route.of(dtype).kernels
