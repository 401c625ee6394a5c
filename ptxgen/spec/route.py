"""Routes: the kernels that serve a problem one after the other, and when; tables of routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from ptxgen.errors import SpecError
from ptxgen.expr import TRUE, Expr, all_of
from ptxgen.spec.base import KernelSpec, check
from ptxgen.spec.effort import Effort
from ptxgen.spec.space import Space

Key = tuple[str, ...]
"""What a table serves, in words: the name of its dispatch module, joined by underscores."""


@dataclass(frozen=True)
class Step:
    """One launch of a route.

    A pointer parameter of the kernel is bound to the operand, result or scratch memory of its name,
    a scalar to the variable of its name in upper case, unless ``bind`` gives another name.
    """

    kernel: KernelSpec
    bind: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        unknown = set(self.bind) - {p.name for p in self.kernel.abi.params}
        check(not unknown, self.kernel.name, "parameters that bind names", sorted(unknown), "none")

    def bound(self, parameter: str) -> str:
        """What a parameter is bound to."""
        return self.bind.get(parameter, parameter)

    def scratch(self) -> dict[str, Expr]:
        """The scratch memory that the kernel uses, by the names it is bound to, in bytes."""
        return {self.bound(name): size for name, size in self.kernel.scratch.items()}


@dataclass(frozen=True, init=False)
class Route:
    """One entry of a route table: the launches, in order, and when.

    Of those routes of a table whose ``requires`` holds, that is taken which is predicted to be the
    fastest (:attr:`efforts`). Where no effort is known, routes are taken in order, the first whose
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

    @property
    def kernels(self) -> tuple[KernelSpec, ...]:
        """The kernels, in launch order."""
        return tuple(step.kernel for step in self.steps)

    @property
    def name(self) -> str:
        """The first kernel's name."""
        return self.steps[0].kernel.name

    @property
    def requires(self) -> Expr:
        """Where all kernels of the route are correct."""
        return all_of(kernel.requires for kernel in self.kernels)

    @cached_property
    def efforts(self) -> tuple[Effort, ...] | None:
        """What each kernel has to do; None if that of one is not known."""
        found = tuple(kernel.effort for kernel in self.kernels)
        known = tuple(effort for effort in found if effort is not None)
        return known if len(known) == len(found) else None

    @cached_property
    def scratch(self) -> dict[str, Expr]:
        """Scratch memory by name, bytes."""
        found: dict[str, Expr] = {}
        for step in self.steps:
            for name, size in step.scratch().items():
                found.setdefault(name, size)
        return found

    def of(self, dtype: str) -> Route:
        """This route's twin for operands of another dtype."""
        steps = (replace(step, kernel=step.kernel.of(dtype)) for step in self.steps)
        return Route(steps, self.prefer, self.reason)


@dataclass(frozen=True)
class RouteTable:
    """The routes of one kind of problems, in order.

    ``dtypes``: those it serves. The routes are written for the first; those for the others are
    their twins (:meth:`Route.of`), alike but for what the kernels read and write.
    """

    space: Space
    routes: tuple[Route, ...]
    dtypes: tuple[str, ...] = ("f32",)

    def __post_init__(self) -> None:
        if not self.routes or not self.dtypes:
            raise SpecError(f"a table of {self.space.name!r} has no routes, or serves no dtype")

    def twins(self, names: Iterable[str], dtype: str) -> tuple[str, ...]:
        """The names that kernels of the first dtype have for another."""
        if dtype == self.dtypes[0]:
            return tuple(names)
        known = {kernel.name: kernel for route in self.routes for kernel in route.kernels}
        return tuple(known[name].of(dtype).name for name in names)

    def kernels(self) -> Iterable[KernelSpec]:
        """All kernels of all dtypes."""
        for dtype in self.dtypes:
            for route in self.routes:
                yield from (kernel.of(dtype) for kernel in route.kernels)
