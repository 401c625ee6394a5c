"""What an operation is: one row, from which all else follows.

:class:`Op` joins a signature (:mod:`ptxgen.numerics.signature`), which says what is asked, to the
route tables, which say what serves it. The frame (:mod:`ptxgen.ops.run`,
:mod:`ptxgen.ops.launch`, ``explain``, the command line, :mod:`ptxgen.torch`, tests) reads rows and
knows no operation by name. The oracle of an operation is the function of its name in
:mod:`ptxgen.reference`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from ptxgen.errors import OptionError
from ptxgen.numerics.signature import Signature
from ptxgen.runtime import ArrayView
from ptxgen.spec import Problem


class Result(NamedTuple):
    """What one result is to be; ``read``: whether the operation also reads what is there."""

    shape: tuple[int, ...]
    dtype: str
    read: bool = False


class Reading(Protocol):
    """A call's arguments, understood. Nothing has been enqueued."""

    @property
    def results(self) -> tuple[Result, ...]:
        """What each result is to be."""

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """What the kernels are to do, given where results go; None if there is nothing to do.

        Raises ShapeError for targets that no kernel writes.
        """


Options = Mapping[str, Any]


class Numbered(Reading, Protocol):
    """That of a call with Python numbers (:attr:`Signature.scalars`)."""

    @property
    def encoders(self) -> tuple[Callable[[Any], int], ...]:
        """For each, what makes of it the 8 bytes that kernels are given, as an integer.

        They raise DtypeError for what cannot be given.
        """


class Question(NamedTuple):
    """A problem given by sizes alone: how ``explain`` asks.

    ``sizes`` as the signature names them; ``dtype``: the short name of the operands'; ``options``:
    all of the signature's; ``aligns``: bytes, of the arguments that are not optional, in order (or
    one for all).
    """

    sizes: Mapping[str, int]
    dtype: str
    options: Options
    aligns: tuple[int, ...]


class Plan(NamedTuple):
    """What an operation that is made of others does with a problem of these sizes.

    ``steps``: the operations it calls, each with its sizes, dtype and options, and how often.
    ``scratch``: bytes by name, of memory that it takes besides operands, results, and what steps
    have of their own. ``otherwise``: what it does where no kernel serves a step.
    """

    summary: str
    steps: tuple[tuple[str, tuple[int, ...], str, Options, int], ...]
    scratch: Mapping[str, int]
    otherwise: Plan | None = None


@dataclass(frozen=True, eq=False)
class Op:
    """One operation.

    ``read`` understands a call: views of the arguments that are given, by name; the options, with
    "kernel", the one that is asked for, among them; and the dtype of each result's memory, where
    the caller gives it. It refuses what cannot be served.
    ``pose`` makes the problem of a :class:`Question` (``told`` is left empty).

    ``backward``, where there is one, gives the gradients of the arguments, in order, from those of
    the results: it is called with the arguments, results, gradients of results (as tuples of
    tensors), options, and which arguments need one, and is made of operations of
    :mod:`ptxgen.torch`. Operations with ``backward`` have an operator in :mod:`ptxgen.torch` by
    their name.

    ``watched``, where there is one, is called in place of the kernels with tensors that somebody
    watches: autograd, or a compiler that traces (its arguments are the operation's, and the
    options, both as tuples). Without it, tensors that need gradients are refused.

    ``backwards``: whether ``read`` takes negative strides.
    """

    signature: Signature
    read: Callable[[Mapping[str, ArrayView], Options, tuple[str | None, ...]], Reading]
    pose: Callable[[Question], Problem]
    backward: Callable[..., tuple[Any, ...]] | None = field(default=None, repr=False)
    watched: Callable[..., Any] | None = field(default=None, repr=False)
    backwards: bool = False

    @property
    def name(self) -> str:
        """Its name, also that of the library's function and of the oracle."""
        return self.signature.name

    def options(self, given: Options) -> Options:
        """All options, those ``given`` and the others' defaults. Raises OptionError."""
        known = self.signature.options
        if unknown := sorted(given.keys() - known.keys()):
            raise OptionError(f"{self.name} has no option {unknown[0]!r}; takes {sorted(known)}")
        options = {name: given.get(name, option.default) for name, option in known.items()}
        self.signature.check(options)
        return MappingProxyType(options)
