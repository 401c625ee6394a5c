"""Routes: the kernels that serve a problem one after the other, and when; tables of routes."""

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
"""What a table serves, in words: the name of its dispatch module, joined by underscores."""


@dataclass(frozen=True)
class Step:
    """One launch of a route.

    A pointer parameter of the kernel is bound to the operand, result or scratch memory of its name,
    a scalar to the variable of its name in upper case, unless ``bind`` gives another name.

    ``given``: variables that are something else for this kernel than for the problem, with what
    they are, a formula over the problem's: if the kernel reads a copy of an operand, the copy's
    pitch and alignment. All that the kernel says of itself is meant so, and is read from here.
    """

    kernel: KernelSpec
    bind: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    given: Mapping[str, Expr] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        unknown = set(self.bind) - {p.name for p in self.kernel.abi.params}
        check(not unknown, self.kernel.name, "parameters that bind names", sorted(unknown), "none")

    def bound(self, parameter: str) -> str:
        """What a parameter is bound to."""
        return self.bind.get(parameter, parameter)

    @cached_property
    def grid(self) -> Expr:
        """CTAs."""
        return self.kernel.grid.substitute(self.given)

    @cached_property
    def requires(self) -> Expr:
        """Where the kernel is correct."""
        return self.kernel.requires.substitute(self.given)

    @cached_property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """See :attr:`KernelSpec.index_bounds`."""
        bounds = self.kernel.index_bounds
        return tuple((text, value.substitute(self.given), limit) for text, value, limit in bounds)

    def scratch(self) -> dict[str, Expr]:
        """The scratch memory that the kernel uses, by the names it is bound to, in bytes."""
        sizes = self.kernel.scratch.items()
        return {self.bound(name): size.substitute(self.given) for name, size in sizes}

    @cached_property
    def cost(self) -> KernelCost | None:
        """See :attr:`KernelSpec.cost`."""
        cost = self.kernel.cost
        return None if cost is None else cost.substitute(self.given)

    def parameters(self, values: Mapping[str, int | float]) -> dict[str, int | float]:
        """What the kernel is told, of ``values`` by their names in lower case."""
        told = {name.upper(): value for name, value in values.items() if isinstance(value, int)}
        return {**values, **{n.lower(): e.evaluate(told) for n, e in self.given.items()}}

    @property
    def label(self) -> str:
        """What routes are known by: the kernel, or what it prepares."""
        if not self.kernel.prepares:
            return self.kernel.name
        pointers = (p.name for p in self.kernel.abi.pointers if p.name not in self.kernel.scratch)
        return f"{self.kernel.family}_{''.join(map(self.bound, pointers))}"


@dataclass(frozen=True, init=False)
class Route:
    """One entry of a route table: the launches, in order, and when.

    Of those routes of a table whose ``requires`` holds, that is taken which is predicted to be the
    fastest (:attr:`costs`). Where no cost is known, routes are taken in order, the first whose
    ``prefer`` holds as well. ``reason`` says for people what a route is for.
    Kernels are given as they are, or as a :class:`Step` where parameters are bound otherwise. Those
    that name the same scratch memory share it: one writes what another reads.
    """

    steps: tuple[Step, ...]
    prefer: Expr
    reason: str

    def __init__(
        self, steps: Iterable[KernelSpec | Step], prefer: Expr = TRUE, reason: str = ""
    ) -> None:
        taken = tuple(s if isinstance(s, Step) else Step(s) for s in steps)
        object.__setattr__(self, "steps", taken)
        object.__setattr__(self, "prefer", prefer)
        object.__setattr__(self, "reason", reason)
        check(len(taken) > 0, "Route", "launches", len(taken), ">= 1")
        check(prefer.boolean, self.name, "prefer is a predicate", prefer, "boolean")
        for step in taken:
            for name, size in step.scratch().items():
                other = self.scratch[name]
                check(size == other, self.name, f"bytes of scratch {name!r}", size, other)

    @cached_property
    def kernels(self) -> tuple[KernelSpec, ...]:
        """The kernels, in launch order."""
        return tuple(step.kernel for step in self.steps)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(kernel.name for kernel in self.kernels)

    @cached_property
    def main(self) -> KernelSpec:
        """The kernel that the route is known by: the first that does more than prepare operands."""
        return next((k for k in self.kernels if not k.prepares), self.kernels[0])

    @cached_property
    def name(self) -> str:
        """What the route is called: its main kernel's name, behind what is prepared for that.

        Such as "simt_nn_f32_64x64x16_9d796a", or "realign_ab+simt_nn_f32_64x64x16_9d796a".
        """
        upto = self.kernels.index(self.main) + 1
        return "+".join(step.label for step in self.steps[:upto])

    @cached_property
    def requires(self) -> Expr:
        """Where all kernels of the route are correct."""
        return all_of(step.requires for step in self.steps)

    @property
    def batched(self) -> bool:
        """Whether all its kernels take batches."""
        return all(kernel.batched for kernel in self.kernels)

    def takes(self, dtype: Hashable) -> bool:
        """Whether it has a twin for problems of a dtype that its table takes."""
        return all(kernel.takes(dtype) for kernel in self.kernels)

    @cached_property
    def costs(self) -> tuple[KernelCost, ...] | None:
        """What each kernel has to do; None if that of one is not known."""
        found = tuple(step.cost for step in self.steps)
        known = tuple(cost for cost in found if cost is not None)
        return known if len(known) == len(found) else None

    @cached_property
    def scratch(self) -> dict[str, Expr]:
        """Scratch memory by name, bytes."""
        found: dict[str, Expr] = {}
        for step in self.steps:
            for name, size in step.scratch().items():
                found.setdefault(name, size)
        return found

    def of(self, dtype: Hashable) -> Route:
        """This route's twin for problems of another dtype."""
        kernels = [step.kernel.of(step.kernel.seen(dtype)) for step in self.steps]
        if all(twin is kernel for twin, kernel in zip(kernels, self.kernels, strict=True)):
            return self
        steps = (replace(s, kernel=twin) for s, twin in zip(self.steps, kernels, strict=True))
        return Route(steps, self.prefer, self.reason)


TWINS_MAX = 1024
"""Most routes that a table keeps made for dtypes."""


@dataclass(frozen=True)
class RouteTable:
    """The routes of one kind of problems, in order.

    ``dtypes``: those it serves. The routes are written for the first; those for the others are
    their twins (:meth:`Route.of`), alike but for what the kernels read and write. ``opened``: it
    also serves others, or those of a type, whose kernels nobody lists: they are made when they are
    first asked for.
    ``pinned`` makes a few of those, whose code goldens hold as well, so that every line of a
    template is in a golden.
    ``partial``: there are problems that no route admits, and who asks has another way for those.
    """

    space: Space
    routes: tuple[Route, ...]
    dtypes: tuple[Any, ...] = ("f32",)
    opened: bool | type = False
    partial: bool = False
    pinned: Callable[[], Iterable[KernelSpec]] = tuple

    def __post_init__(self) -> None:
        if not self.routes or not self.dtypes:
            raise SpecError(f"a table of {self.space.name!r} has no routes, or serves no dtype")

    def takes(self, dtype: Hashable) -> bool:
        """Whether it serves problems of this dtype."""
        if isinstance(self.opened, type):
            return dtype in self.dtypes or isinstance(dtype, self.opened)
        return self.opened or dtype in self.dtypes

    @cached_property
    def named(self) -> dict[str, Route]:
        """The routes by name. SpecError for two of one name that differ in more than ``prefer``."""
        found: dict[str, Route] = {}
        for route in self.routes:
            other = found.setdefault(route.name, route)
            same = route.steps == other.steps
            check(same, route.name, "one name, other steps", route.reason, other.reason)
        return found

    def route(self, number: int, dtype: Hashable) -> Route:
        """A route for problems of a dtype, made when it is first asked for."""
        found = self._twins.get((number, dtype))
        if found is None:
            if len(self._twins) >= TWINS_MAX:
                self._twins.clear()
            found = self._twins[number, dtype] = self.routes[number].of(dtype)
        return found

    @cached_property
    def _twins(self) -> dict[tuple[int, Hashable], Route]:
        return {}

    def kernels(self) -> Iterable[KernelSpec]:
        """All kernels of all dtypes."""
        for dtype in self.dtypes:
            for route in self.routes:
                yield from route.of(dtype).kernels
