"""What an operation is: a function that lowers it, and what is known of it besides.

A :class:`Description` is made of one function, which takes a builder, arrays and options, and says
what is done (:mod:`ptxgen.program.build`). Its types say what callers may give, its docstring what
it computes. How it is called is :class:`ptxgen.program.operation.Op`.
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
"""The gradients of arguments, by name, of those that are asked for."""


@dataclass(frozen=True)
class Backward:
    """What a gradient is made of: the ``arguments`` and ``options`` of a call, its ``results``, the
    gradients ``dys`` by these, and the arguments whose gradients are asked for (``needs``).
    """

    arguments: Mapping[str, Any]
    options: Mapping[str, Any]
    results: tuple[Any, ...]
    dys: tuple[Any, ...]
    needs: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def only(self, *names: str) -> dict[str, Any]:
        """Some options by name."""
        return {name: self.options[name] for name in names}


class Description:
    """One operation.

    ``lower``: called with a builder, arrays and options, it returns the results.
    ``forms``: its signature, by which problems are posed from sizes alone (``explain``), and which
    arrays of a call have to fit, unless it takes those of ``any_rank``.
    ``oracle``: a function of NumPy's arrays with the same bits: the one of its name in
    :mod:`ptxgen.oracle`, if there is one and none is given. ``vjp``: called with a builder and a
    :class:`Backward`, it returns the gradients of arguments; made of operations alone.
    ``backwards``: whether it takes negative strides. ``autograd``: what is called, in place of
    kernels, with tensors that autograd or a compiler watches; without it such are refused.
    ``checks``: called with the arrays and the options, of calls in host memory and of those with
    the option ``check``, it raises for values that cannot be; by default for lengths that are none
    (:attr:`Signature.lengths`). ``public``: whether it is one of the names of the package;
    ``of_tensors``: of :mod:`ptxgen.torch` although it is not. ``dtypes``: of arguments that have
    another dtype than the first: its name, or "wide" for what is computed in. ``sizes``: options
    that are sizes of ``forms``, and which. ``keeping``: what is computed where gradients will be
    asked for: the same results, and others that these are made of. ``updates``: arguments that
    gradients of others are added to. ``passes``: what is done to its program before that is carried
    out. ``layouts``: where no option ``layout`` says which of those of ``forms`` it is, the options
    that do.
    """

    autograd: Callable[..., Any] | None
    typed_each = False
    """Whether the option ``out_dtype`` may be one of each result."""

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
        checks: Callable[[Mapping[str, Any], Mapping[str, Any]], None] | None = None,
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
        self.checks = self._counted if checks is None and forms and forms.lengths else checks
        self.dtypes, self.sizes = dtypes, sizes
        self.keeping, self.updates, self.layouts = keeping, updates, layouts
        self.results = results or (forms.results if forms else ("out",))
        if takes is not None:
            self.parameters = takes

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def dtypes_of(self, options: Mapping[str, Any]) -> Mapping[str, str]:
        """Dtypes of the arrays that have one of their own; of those that options ask for, all."""
        return self.dtypes(options) if callable(self.dtypes) else self.dtypes

    def looks_at(self, arrays: Mapping[str, Any]) -> bool:
        """Whether there are values to check among these arrays."""
        lengths = self.forms.lengths if self.forms else ()
        return self.checks is not None and (not lengths or any(n in arrays for n in lengths))

    def _counted(self, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        assert self.forms is not None, "that has lengths"
        shapes = {n: tuple(x.shape) for n, x in arrays.items() if n in self.forms.arguments}
        self.forms.counted(arrays, self.forms.infer(shapes, self.layout_of(options)).sizes)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes, in order."""
        return parameters(self.lower)

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """The names of the arguments that are read as arrays."""
        return tuple(p.name for p in self.parameters if p.kind in READ)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options with their defaults, without those of the frame."""
        frame = ("kernel",)
        return {
            p.name: p.default for p in self.parameters if p.kind == OPTION and p.name not in frame
        }

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The names of what says where results go."""
        return tuple(p.name for p in self.parameters if p.kind == WRITTEN)

    @property
    def in_torch(self) -> bool:
        """Whether :mod:`ptxgen.torch` has it, by its name."""
        return (self.public or self.of_tensors) and not any(p.flag for p in self.parameters)

    @property
    def oracle(self) -> Callable[..., Any] | None:
        """See the class; None where it is that of the operations that this one is made of."""
        from ptxgen import oracle

        if self._oracle is None and self.name in oracle.__all__:
            return getattr(oracle, self.name)  # type: ignore[no-any-return]
        return self._oracle

    @cached_property
    def doc(self) -> str:
        """What it computes, for people; and where that is written, if nothing more is said."""
        found = inspect.getdoc(self.lower) or ""
        if "\nErrors\n" in found and "\nSource\n" not in found:
            found += f"\nSource\n    ``{self.lower.__module__.replace('.', '/')}.py``."
        return found

    @cached_property
    def signature(self) -> inspect.Signature:
        """How it is called."""
        count = len(self.results)
        returns = Shown("Array" if count == 1 else f"tuple[{', '.join(['Array'] * count)}]")
        return signature(self.parameters, returns)

    def bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments by name. Raises TypeError as functions do."""
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
        """The layout of its forms that these options say."""
        of = (name for name, said in self.layouts.items() if said.items() <= options.items())
        by = self.forms.by if self.forms is not None else "layout"
        return str(options.get(by, next(of, "")))

    def check_shapes(
        self, shapes: Mapping[str, tuple[int, ...]], options: Mapping[str, Any]
    ) -> None:
        """Raises ShapeError for arrays that do not fit the forms."""
        if self.forms is not None and not self.any_rank:
            own = {name: shape for name, shape in shapes.items() if name in self.forms.arguments}
            self.forms.sizes_of(own, self.layout_of(options))

    def of_values(self, given: Mapping[str, Any]) -> Any:
        """What it gives, called with values of a formula; NotImplemented where it is not."""
        return NotImplemented

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options in one form, those given and the others' defaults. Raises OptionError."""
        if unknown := sorted(given.keys() - self.options.keys()):
            raise OptionError(
                f"{self.name} has no option {unknown[0]!r}; takes {sorted(self.options)}"
            )
        named = {p.name: p for p in self.parameters if p.name in self.options}
        return {n: p.read(given.get(n, p.default)) for n, p in named.items()}
