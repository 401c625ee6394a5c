"""Callable operations, made from descriptions (:mod:`ptxgen.program.description`).

The function that users call, prepared calls, ``explain``, the operator in PyTorch and the pages of
the reference all follow from an operation's description. An operation that is made of others also
derives its oracle and its gradient from them; one that launches kernels itself defines both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MethodType
from typing import Any

from ptxgen.program.description import Backward, Description, Gradients
from ptxgen.program.frameworks import compiling
from ptxgen.program.invoke import Frame, Lowered, called, lower, read
from ptxgen.runtime import Call

__all__ = ["Backward", "Gradients", "Op", "lowering", "op"]


class Op(Description):
    """An operation that can be called with arrays."""

    __name__: str

    @cached_property
    def frame(self) -> Frame:
        """The path of a call of this operation, from arguments to launches."""
        return Frame(self)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The public function of the package, such as ``ptxgen.softmax``."""
        made = self.frame.function
        made.__doc__, made.__module__ = self.doc, "ptxgen"
        made.__name__, made.__qualname__ = self.name, self.name
        made.__signature__ = self.signature  # type: ignore[attr-defined]
        return made

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Calls the public function; under ``torch.compile``, the autograd function."""
        if self.autograd is not None and compiling():
            return self.autograd(self, self.bound(args, named))
        return self.function(*args, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Binds to an instance as functions do, so that ``help`` takes it for a function."""
        return self if instance is None else MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature


def op(**how: Any) -> Callable[[Callable[..., Any]], Op]:
    """Returns a decorator that makes an :class:`Op` of a lowering function; ``how``: arguments of
    :class:`Description`.
    """
    return lambda lower: Op(lower, **how)


def lowering(op: Op, given: Mapping[str, Any]) -> tuple[Call, Lowered]:
    """Lowers a call of ``op``; ``given``: arguments by name, defaults for others. Runs nothing.

    Returns the call's arrays, and the program.
    """
    arguments = read(op, {p.name: given.get(p.name, p.default) for p in op.parameters})
    call = called(arguments)
    return call, lower(op.frame, arguments, call)
