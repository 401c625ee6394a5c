"""Parameters of operations, read from type hints: arrays, memory for results, and options.

The function that lowers an operation declares them: ``x: Buffer`` is an array, ``bias: Buffer |
None`` an optional one, ``arrays: Sequence[Buffer]`` several, ``out: Out`` memory for a result,
``eps: Eps`` an option (:mod:`ptxgen.numerics.option`). The signature that users see, the checks and
the code of prepared calls all follow from these declarations.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from ptxgen.errors import DtypeError, OptionError, PtxgenError, SpecError
from ptxgen.numerics.option import KernelName, Option, StatedLayout, assumed_layout
from ptxgen.program.buffer import Buffer
from ptxgen.runtime.arrays import framework_of, scalar

ARRAY, OPTIONAL, ARRAYS, OPERAND = "array", "optional", "arrays", "operand"
EITHER, WRITTEN, OPTION, STREAM = "either", "written", "option", "stream"
READ = (ARRAY, OPTIONAL, ARRAYS, OPERAND, EITHER)
"""Kinds of parameters that may be arrays that the operation reads."""
NEEDED: Any = inspect.Parameter.empty
"""Value of :attr:`Parameter.default` that marks a required parameter."""


@dataclass(frozen=True)
class Written:
    """Annotation of a parameter that results are written to. ``flag``: whether it may also be a
    bool, which says whether to return the result.

    ``over``: names of arguments that may be the same memory (in place): kernels read each element
    before they write it.
    """

    flag: bool = False
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Either:
    """Annotation of a parameter that is an array or the value of an option."""

    option: Option


def is_array(value: Any) -> bool:
    """Whether a value passed for a parameter that is an array or an option is an array. Scalars of
    NumPy are numbers.
    """
    return not (isinstance(value, int | float) or scalar(value)) and framework_of(value) != "other"


Out = Annotated[Any, Written()]
OverX = Annotated[Any, Written(over=("x",))]


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operation.

    ``kind``: ARRAY, OPTION or another constant of this module; ``default``: NEEDED if it is
    required; ``option``: the option's type, for OPTION and EITHER; ``keyword``: whether it is
    keyword-only; ``over``, ``flag``: see :class:`Written`; ``stated``: whether callers should pass
    it in spite of its default: public calls that omit it warn.
    """

    name: str
    kind: str
    default: Any = NEEDED
    keyword: bool = False
    option: Option | None = None
    over: tuple[str, ...] = ()
    flag: bool = False
    stated: bool = False

    @property
    def needed(self) -> bool:
        """Whether the parameter is required."""
        return self.default is NEEDED

    def read(self, value: Any) -> Any:
        """Returns an option's value in canonical form. Raises OptionError."""
        assert self.option is not None, self.name
        if value is None and self.default is None:
            return None
        try:
            return self.option.read(self.name, value)
        except PtxgenError:
            raise
        except Exception as error:  # of an object whose protocols fail
            raise OptionError(
                f"{self.name} is a {type(value).__qualname__} that cannot be read: "
                f"{type(error).__name__}: {error}"
            ) from error

    def items(self, value: Any) -> dict[str, Any]:
        """Returns the arrays of a sequence, named ``name[i]``. Raises OptionError for an empty
        sequence and for any other value, DtypeError for None in it.
        """
        if not isinstance(value, tuple | list) or not len(value):
            got = "none" if isinstance(value, tuple | list) else f"a {type(value).__qualname__}"
            raise OptionError(f"{self.name}: takes a sequence of at least one array; got {got}")
        found = {f"{self.name}[{i}]": each for i, each in enumerate(value)}
        for name, each in found.items():
            if each is None:
                raise DtypeError(f"{name} is None; takes an array")
        return found

    def absent(self, operation: str) -> Any:
        """Returns the parameter's value in a call that omits it; NEEDED if it is required. Warns if
        callers should pass it (``stated``); ``operation``: the operation's name in the warning.
        """
        return assumed_layout(operation) if self.stated else self.default


def outward(dtype: Option | None = None, over: tuple[str, ...] = ()) -> tuple[Parameter, ...]:
    """Returns the keyword-only parameters of generated operations: ``out``, which may be the same
    memory as one of the arguments ``over`` (in place), ``out_dtype`` if its option ``dtype`` is
    given, ``stream`` and ``kernel``.
    """
    return (
        Parameter("out", WRITTEN, None, True, over=over),
        *([] if dtype is None else [Parameter("out_dtype", OPTION, None, True, dtype)]),
        Parameter("stream", STREAM, None, True),
        Parameter("kernel", OPTION, None, True, KernelName()),
    )


def parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Reads the parameters of an operation from the type hints of its lowering function. Leaves out
    the first, the builder, and adds ``stream``.
    """
    hints = get_type_hints(function, include_extras=True)
    found = []
    named = list(inspect.signature(function).parameters.values())[1:]
    for p in named:
        kind = _kind(p.name, hints.get(p.name), function)
        keyword = p.kind is p.KEYWORD_ONLY
        parameter = Parameter(p.name, kind[0], p.default, keyword, *kind[1:])
        if parameter.needed and isinstance(parameter.option, StatedLayout):
            parameter = replace(parameter, default=parameter.option.values[0], stated=True)
        found.append(parameter)
    at = next((i for i, p in enumerate(found) if p.name == "kernel"), len(found))
    found.insert(at, Parameter("stream", STREAM, None, True))
    return tuple(found)


def _kind(name: str, hint: Any, function: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        of = [each for each in get_args(hint) if each is not type(None)]
        if len(of) == 1:
            kind = _kind(name, of[0], function)
            return (OPTIONAL,) if kind[0] == ARRAY else kind
    if hint is Buffer:
        return (ARRAY,)
    if get_origin(hint) is Sequence or get_origin(hint) in (list, tuple):
        return (ARRAYS,)
    if get_origin(hint) is Annotated:
        for mark in get_args(hint)[1:]:
            if isinstance(mark, Written):
                return WRITTEN, None, mark.over, mark.flag
            if isinstance(mark, Either):
                return EITHER, mark.option
            if isinstance(mark, Option):
                return OPTION, mark
    raise SpecError(
        f"{function.__qualname__}: {name} has the type {hint}; takes Buffer, Buffer | None, "
        "Sequence[Buffer], Out, or a type annotated with an option"
    )


def signature(of: Sequence[Parameter], returns: Any = NEEDED) -> inspect.Signature:
    """Returns the Python signature of an operation with these parameters; ``returns``: its return
    annotation.
    """
    found = []
    for p in of:
        kind = inspect.Parameter.KEYWORD_ONLY if p.keyword else _POSITIONAL
        default = NEEDED if p.stated else p.default
        found.append(inspect.Parameter(p.name, kind, default=default, annotation=_shown(p)))
    return inspect.Signature(found, return_annotation=returns)


_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Shown:
    """A type annotation whose repr is a given text, such as ``Array``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def shown(p: Parameter) -> str:
    """Returns the type of a parameter as text, for documents and stubs."""
    if p.kind in (ARRAY, OPTIONAL):
        return "Array" if p.needed else "Array | None"
    if p.kind == ARRAYS:
        return "Sequence[Array]"
    if p.kind == OPERAND:
        return "Array | float"
    if p.kind == WRITTEN:
        return "Array | bool | None" if p.flag else "Array | tuple[Array, ...] | None"
    if p.kind == STREAM:
        return "Stream"
    assert p.option is not None, "an option"
    text = p.option.shown
    text = f"Array | {text}" if p.kind == EITHER else text
    return f"{text} | None" if p.default is None and "None" not in text else text


def _shown(p: Parameter) -> Shown:
    return Shown(shown(p))
