"""Descriptions of operations: the function that lowers one, its signature, oracle and gradient.

A :class:`Description` is made from one function, which takes a builder, arrays and options, and
lowers the operation (:mod:`ptxgen.program.build`). Its type hints declare the arguments, its
docstring says what is computed. :class:`ptxgen.program.operation.Op` makes it callable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ptxgen.errors import OptionError
from ptxgen.numerics.signature import Signature
from ptxgen.program.parameters import (
    NEEDED,
    OPTION,
    READ,
    WRITTEN,
    Parameter,
    Shown,
    parameters,
    signature,
)
from ptxgen.program.step import Program

Gradients = dict[str, Any]
"""Gradients by argument name, for the arguments that need one."""


@dataclass(frozen=True)
class Backward:
    """The inputs of a backward pass: the ``arguments``, ``options`` and ``results`` of the forward
    call, the gradients ``dys`` of the results, and the names of the arguments that need gradients
    (``needs``).
    """

    arguments: Mapping[str, Any]
    options: Mapping[str, Any]
    results: tuple[Any, ...]
    dys: tuple[Any, ...]
    needs: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def only(self, *names: str) -> dict[str, Any]:
        """Returns the forward call's options of these names, as a dictionary."""
        return {name: self.options[name] for name in names}


Named = Mapping[str, Any]
"""Arrays or options of a call, by name."""


class Description:
    """One operation: how it is lowered, its arguments, shapes, oracle and gradient.

    ``lower``: a function of a builder, arrays and options that returns the results. ``name``: by
    default that of ``lower``; ``takes``: the parameters, by default those of ``lower``;
    ``results``: names of the results, by default those in ``forms``. ``forms``: the shapes of
    arguments and results, which calls must fit unless ``any_rank``. ``oracle``: a function of NumPy
    arrays with the same bits; by default the function of this name in :mod:`ptxgen.oracle`, if
    there is one. ``vjp``: a function of a builder and a :class:`Backward` that returns the
    gradients of arguments, and calls operations alone. ``backwards``: whether arrays may have
    negative strides. ``autograd``: the function that is called for tensors that autograd or a
    compiler traces; without it such tensors are refused. ``checks``: a function of the arrays and
    the options that raises for invalid values. It is called for arrays in host memory and with the
    option ``check``; by default it checks lengths (:attr:`Signature.lengths`). ``verifies``: a
    function of the arrays, the options and the results that raises for a call that computed nothing
    usable; it is called after the calls that ``checks`` is called before. ``public``: whether the
    package exports the operation; ``of_tensors``: whether :mod:`ptxgen.torch` exports it although
    the package does not. ``dtypes``: the dtype of each argument that differs from the first
    array's: a name, or "wide" for the dtype of the arithmetic. ``sizes``: options that are sizes in
    ``forms``, each with that size's name. ``keeping``: an operation that replaces this one if
    gradients are needed; it also returns the values that they are computed from. ``updates``:
    arguments that accumulate gradients of other arguments. ``passes``: a transformation of the
    lowered program. ``layouts``: for each layout of ``forms`` the options that select it, unless
    there is an option ``layout``.
    """

    autograd: Callable[..., Any] | None
    typed_each = False
    """Whether the option ``out_dtype`` may be a tuple with a dtype for each result."""

    def __init__(
        self,
        lower: Callable[..., Any],
        *,
        name: str = "",
        forms: Signature | None = None,
        any_rank: bool = False,
        oracle: Callable[..., Any] | None = None,
        vjp: Callable[[Any, Backward], Gradients] | None = None,
        backwards: bool = False,
        autograd: Callable[..., Any] | None = None,
        checks: Callable[[Named, Named], None] | None = None,
        verifies: Callable[[Named, Named, tuple[Any, ...]], None] | None = None,
        public: bool = True,
        of_tensors: bool = False,
        dtypes: Mapping[str, str] | Callable[..., Mapping[str, str]] = MappingProxyType({}),
        sizes: Mapping[str, str] = MappingProxyType({}),
        keeping: Description | None = None,
        updates: tuple[str, ...] = (),
        layouts: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        takes: tuple[Parameter, ...] | None = None,
        results: tuple[str, ...] = (),
        passes: Callable[[Program], Program] | None = None,
    ) -> None:
        self.lower, self.passes = lower, passes
        self.name = name or lower.__name__
        self.forms, self.any_rank, self.vjp, self._oracle = forms, any_rank, vjp, oracle
        self.backwards, self.autograd, self.public = backwards, autograd, public
        self.of_tensors = of_tensors
        self.checks = self._check_lengths if checks is None and forms and forms.lengths else checks
        self.verifies = verifies
        self.dtypes, self.sizes = dtypes, sizes
        self.keeping, self.updates, self.layouts = keeping, updates, layouts
        self.results = results or (forms.results if forms else ("out",))
        if takes is not None:
            self.parameters = takes

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def dtypes_of(self, options: Mapping[str, Any]) -> Mapping[str, str]:
        """Returns the dtypes of the arguments that differ from the first array's, for these
        options.
        """
        return self.dtypes(options) if callable(self.dtypes) else self.dtypes

    def checks_values(self, arrays: Mapping[str, Any]) -> bool:
        """Whether the operation checks values of these arrays, such as lengths, before it runs."""
        lengths = self.forms.lengths if self.forms else ()
        return self.checks is not None and (not lengths or any(n in arrays for n in lengths))

    def _check_lengths(self, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        assert self.forms is not None, "that has lengths"
        shapes = {n: tuple(x.shape) for n, x in arrays.items() if n in self.forms.arguments}
        self.forms.counted(arrays, self.forms.infer(shapes, self.layout_of(options)).sizes)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the operation, in order."""
        return parameters(self.lower)

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arguments that are read as arrays."""
        return tuple(p.name for p in self.parameters if p.kind in READ)

    @cached_property
    def options(self) -> dict[str, Any]:
        """Default of each option, by name, except ``kernel``, which every operation has."""
        frame = ("kernel",)
        return {
            p.name: p.default for p in self.parameters if p.kind == OPTION and p.name not in frame
        }

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Names of the arguments that results are written to, such as ``out``."""
        return tuple(p.name for p in self.parameters if p.kind == WRITTEN)

    @property
    def in_torch(self) -> bool:
        """Whether :mod:`ptxgen.torch` has a function of this name."""
        return (self.public or self.of_tensors) and not any(p.flag for p in self.parameters)

    @property
    def oracle(self) -> Callable[..., Any] | None:
        """NumPy function with the operation's bits; None if it follows from those of its parts."""
        from ptxgen import oracle

        if self._oracle is None and self.name in oracle.__all__:
            return getattr(oracle, self.name)  # type: ignore[no-any-return]
        return self._oracle

    @cached_property
    def doc(self) -> str:
        """Docstring of the operation; a section Source is added where it has none."""
        found = inspect.getdoc(self.lower) or ""
        if "\nErrors\n" in found and "\nSource\n" not in found:
            found += f"\nSource\n    ``{self.lower.__module__.replace('.', '/')}.py``."
        return found

    @cached_property
    def signature(self) -> inspect.Signature:
        """The Python signature of the operation."""
        count = len(self.results)
        returns = Shown("Array" if count == 1 else f"tuple[{', '.join(['Array'] * count)}]")
        return signature(self.parameters, returns)

    def bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a call's arguments by name, defaults included; raises TypeError like Python."""
        names = [p.name for p in self.parameters if not p.keyword]
        if len(args) > len(names):
            raise TypeError(f"{self.name} takes {len(names)} arguments by place, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        known = {p.name for p in self.parameters}
        if wrong := [n for n in named if n not in known or n in given]:
            raise TypeError(f"{self.name} takes {', '.join(known)}; got {wrong[0]}")
        given |= named
        found = {
            p.name: given[p.name] if p.name in given else p.absent(self.name)
            for p in self.parameters
        }
        if missing := [n for n, v in found.items() if v is NEEDED]:
            raise TypeError(f"{self.name} takes {', '.join(missing)} besides")
        return found

    def layout_of(self, options: Mapping[str, Any]) -> str:
        """Returns the layout of ``forms`` that these options select, such as "nk"."""
        of = (name for name, said in self.layouts.items() if said.items() <= options.items())
        by = self.forms.by if self.forms is not None else "layout"
        return str(options.get(by, next(of, "")))

    def check_shapes(
        self, shapes: Mapping[str, tuple[int, ...]], options: Mapping[str, Any]
    ) -> None:
        """Raises ShapeError if the shapes of the arrays do not fit ``forms``."""
        if self.forms is not None and not self.any_rank:
            own = {name: shape for name, shape in shapes.items() if name in self.forms.arguments}
            self.forms.sizes_of(own, self.layout_of(options))

    def of_values(self, given: Mapping[str, Any]) -> Any:
        """Returns the result of a call with nodes of a formula instead of arrays, also a node. Only
        pointwise functions take nodes; others return NotImplemented, as for a call with arrays.
        ``given``: arguments by name.
        """
        return NotImplemented

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns all options in canonical form, ``given`` or default. Raises OptionError."""
        if unknown := sorted(given.keys() - self.options.keys()):
            raise OptionError(
                f"{self.name} has no option {unknown[0]!r}; takes {sorted(self.options)}"
            )
        named = {p.name: p for p in self.parameters if p.name in self.options}
        return {n: p.read(given.get(n, p.default)) for n, p in named.items()}
