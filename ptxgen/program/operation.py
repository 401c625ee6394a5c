"""Operations: what is described (:mod:`ptxgen.program.description`), as it is called.

The function that users call, prepared calls, ``explain``, the operator in PyTorch and the pages of
the reference all follow from an operation's description. So do its oracle and its gradient, where
it is made of other operations; an operation at the bottom brings both.
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
    """One operation, which can be called."""

    __name__: str

    @cached_property
    def frame(self) -> Frame:
        """How it is called: from arguments to launches."""
        return Frame(self)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """What users call."""
        made = self.frame.function
        made.__doc__, made.__module__ = self.doc, "ptxgen"
        made.__name__, made.__qualname__ = self.name, self.name
        made.__signature__ = self.signature  # type: ignore[attr-defined]
        return made

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """As users call it."""
        if self.autograd is not None and compiling():
            return self.autograd(self, self.bound(args, named))
        return self.function(*args, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As functions do: so ``help`` takes this for one."""
        return self if instance is None else MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature


def op(**how: Any) -> Callable[[Callable[..., Any]], Op]:
    """Makes an operation of a function: the arguments are those of :class:`Description`."""
    return lambda lower: Op(lower, **how)


def lowering(op: Op, given: Mapping[str, Any]) -> tuple[Call, Lowered]:
    """The program of a call of ``op`` with these arguments by name, and defaults for others;
    nothing is carried out.
    """
    arguments = read(op, {p.name: given.get(p.name, p.default) for p in op.parameters})
    call = called(arguments)
    return call, lower(op.frame, arguments, call)
