"""Types of options, the arguments of operations that are not arrays: parsing and validation.

An operation's function declares one by its type: ``eps: Annotated[float, Real(least=0.0)] = 1e-5``.
Each type normalizes the caller's value, so that NumPy and Python scalars are the same, and raises
an error that names the argument for an invalid value. None is accepted where it is the default.
"""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ptxgen.errors import OptionError, PtxgenError, ShapeError, described
from ptxgen.numerics.contract import ACTIVATIONS, TIERS
from ptxgen.numerics.dtype import DTYPES, name_of


@dataclass(frozen=True)
class Option:
    """Base of option types; accepts any value. ``schema``: its type in PyTorch's operator schemas;
    ``shown``: in Python signatures.
    """

    schema = "str"
    shown = "Any"

    @property
    def key(self) -> str | None:
        """Source of the Python expression that is the option's part of a prepared call's key
        (:mod:`ptxgen.program.prepared`); ``{0}`` stands for the value.

        None selects the expression for values of any type, which tells 1, 1.0 and True apart.
        Builtins have the prefix ``$``.
        """
        return None

    def read(self, name: str, value: Any) -> Any:
        """Returns the normalized value. Raises a PtxgenError that names the argument ``name``."""
        return value

    def as_schema(self, value: Any) -> Any:
        """Converts the option's value to an argument of type :attr:`schema`, for PyTorch."""
        return value


def name_text(name: str, value: Any) -> str:
    """Returns ``value`` if it is a str; else raises OptionError about the argument ``name``."""
    if isinstance(value, str):
        return value
    raise OptionError(f"{name} is {described(value)}; takes a name, as text")


@dataclass(frozen=True)
class Choice(Option):
    """Option that takes one of ``values``: strings, or None."""

    values: tuple[Any, ...] = ()
    shown = "str"

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    @property
    def key(self) -> str | None:
        """Source of the option's part of a prepared call's key (see :attr:`Option.key`): the value
        itself.
        """
        return "{0}"

    def read(self, name: str, value: Any) -> Any:
        if (value is None or isinstance(value, str)) and value in self.values:
            return value
        raise OptionError(
            f"{name} is {described(value)}; takes {', '.join(map(repr, self.values))}"
        )


class _Unstated:
    """Type of :data:`UNSTATED`, which marks required arguments that a call omits."""

    def __repr__(self) -> str:
        return "unstated"


UNSTATED: Any = _Unstated()
"""Default of a required keyword argument, which tells that a call omits it."""


class StatedLayout(Choice):
    """Required option that takes the layout of a weight, "kn" for [K, N] or "nk" for [N, K]. It has
    no default, since a square weight fits both.
    """

    def __init__(self) -> None:
        super().__init__("kn", "nk")


def assumed_layout(operation: str) -> str:
    """Returns "kn", with a FutureWarning at the user's line that ``operation`` got no layout."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f'{operation}: pass layout="kn" ([K, N]) or "nk" ([N, K], as torch.nn.Linear.weight); '
        'left out, it is "kn" in this version, and refused in the next',
        FutureWarning,
        stacklevel=level,
    )
    return "kn"


# torch.compiler.assume_constant_result imports the compiler to set this: a call that is being
# compiled warns once, when it is traced.
assumed_layout._dynamo_marked_constant = True  # type: ignore[attr-defined]
_PACKAGE = str(Path(__file__).parents[1])


def _is_ours(file: str) -> bool:
    """Whether ``file`` belongs to the package ptxgen or to code that it generates."""
    return file.startswith((_PACKAGE, "<prepared "))


@dataclass(frozen=True)
class Flag(Option):
    """Option that takes True or False, also NumPy's."""

    schema = "bool"
    shown = "bool"

    def read(self, name: str, value: Any) -> bool:
        if value is True or value is False:
            return bool(value)
        if type(value).__name__ in ("bool", "bool_") and not getattr(value, "shape", ()):  # NumPy's
            return bool(value)
        raise OptionError(f"{name} is {described(value)}; takes True or False")


@dataclass(frozen=True)
class Integer(Option):
    """Option that takes an integer from ``least`` to ``most``; ``error``: raised for others."""

    least: int | None = None
    most: int | None = None
    error: type[PtxgenError] = OptionError
    schema = "int"
    shown = "int"

    def read(self, name: str, value: Any) -> int:
        found = whole(value)
        if found is None:
            raise self.error(f"{name} is {described(value)}; takes an integer")
        low, high = self.least, self.most
        if (low is not None and found < low) or (high is not None and found > high):
            takes = f"{low} or more" if high is None else f"{low} .. {high}"
            raise self.error(f"{name} is {described(value)}; takes {takes}")
        return found


def whole(value: Any) -> int | None:
    """Returns a Python, NumPy or framework integer as an int; None for other values, or for more
    than 64 bits.
    """
    if type(value) is int:
        return value if value.bit_length() <= 64 else None
    if isinstance(value, bool) or getattr(value, "shape", ()) != () or hasattr(value, "is_cuda"):
        return None  # reading a value from a GPU would wait for it
    if hasattr(value, "dtype") and "int" not in str(value.dtype):
        return None
    try:
        return operator.index(value)
    except Exception:  # whatever __index__ raises, it gave no integer
        return None


@dataclass(frozen=True)
class Real(Option):
    """Option that takes a finite real number from ``least`` to ``most`` that is greater than
    ``above``; None sets no bound.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    schema = "float"
    shown = "float"

    def read(self, name: str, value: Any) -> float:
        found = real(value)
        fits = found is not None and math.isfinite(found)
        if fits and found is not None:
            fits = (
                (self.least is None or found >= self.least)
                and (self.most is None or found <= self.most)
                and (self.above is None or found > self.above)
            )
        if not fits or found is None:
            raise OptionError(f"{name} is {described(value)}; takes {self._takes()}")
        return found

    def _takes(self) -> str:
        words = ["a finite number"]
        if self.above is not None:
            words.append(f"above {self.above:g}")
        if self.least is not None and self.most is not None:
            words.append(f"from {self.least:g} to {self.most:g}")
        elif self.least is not None:
            words.append(f"of at least {self.least:g}")
        elif self.most is not None:
            words.append(f"of at most {self.most:g}")
        return " ".join(words)


def real(value: Any) -> float | None:
    """Returns a Python or NumPy number as a float; None for other values, or if it is too large."""
    if type(value) is float:
        return value
    if isinstance(value, (bool, str, bytes)) or getattr(value, "shape", ()) != ():
        return None
    if hasattr(value, "is_cuda") or (
        hasattr(value, "dtype") and not any(k in str(value.dtype) for k in ("int", "float"))
    ):
        return None
    if not hasattr(value, "dtype") and not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except Exception:  # whatever __float__ raises, it gave no number
        return None


@dataclass(frozen=True)
class AnyReal(Option):
    """Option that takes any real number, infinities and NaN too, and reads every NaN as one NaN."""

    schema = "float"
    shown = "float"

    def read(self, name: str, value: Any) -> float:
        found = real(value)
        if found is None:
            raise OptionError(f"{name} is {described(value)}; takes a number")
        return math.nan if math.isnan(found) else found


@dataclass(frozen=True)
class Value(Option):
    """Option that takes a real number and keeps integers as integers."""

    schema = "Scalar"
    shown = "float"

    def read(self, name: str, value: Any) -> int | float:
        if isinstance(value, bool) or type(value).__name__ == "bool_":
            return int(value)
        found = whole(value)
        exact: int | float | None = real(value) if found is None else found
        if exact is None:
            raise OptionError(f"{name} is {described(value)}; takes a number")
        return exact


@dataclass(frozen=True)
class DtypeName(Option):
    """Option that takes a dtype, as a name or a dtype object, and reads it as its full name.

    ``known``: the accepted names. ``several``: whether a tuple is accepted, too, with one dtype per
    result, or None for its default.
    """

    known: tuple[str, ...] = tuple(DTYPES)
    several: bool = False
    schema = "ScalarType"
    shown = "DtypeLike"

    @property
    def key(self) -> str | None:
        """Source of the option's part of a prepared call's key (see :attr:`Option.key`): the value
        itself, or None if ``several``, for the expression that also takes tuples.
        """
        return None if self.several else "{0}"

    def read(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if self.several and isinstance(value, tuple | list):
            return tuple(None if v is None else name_of(v, name, self.known) for v in value)
        return name_of(value, name, self.known)


@dataclass(frozen=True)
class AxisNumber(Option):
    """Option that takes an axis, an integer; the operation checks its range."""

    schema = "int"
    shown = "int"

    def read(self, name: str, value: Any) -> int:
        found = whole(value)
        if found is None:
            raise ShapeError(f"{name} is {described(value)}; takes an integer")
        return found


@dataclass(frozen=True)
class AxisNumbers(Option):
    """Option that takes one axis, a sequence (``single``: of one axis), or None for all."""

    single: bool = False
    shown = "int | Sequence[int] | None"

    @property
    def schema(self) -> str:  # type: ignore[override]
        """Type of the axes in PyTorch's schemas: an integer (``single``) or a list."""
        return "int" if self.single else "int[]"

    def read(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        found = whole(value)
        if found is not None:
            return found
        takes = "an integer" if self.single else "integers"
        several = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        axes = [whole(each) for each in value] if several else [None]
        if None in axes or (self.single and len(axes) != 1):
            raise ShapeError(f"{name} is {described(value)}; takes {takes}, or None for all")
        return axes[0] if self.single else tuple(axes)

    def as_schema(self, value: Any) -> Any:
        """Converts axes for PyTorch: to a list, to one integer (``single``), or None."""
        axes = self.read("axis", value)
        return [axes] if isinstance(axes, int) and not self.single else axes


def axes_of(axis: Any, x: Any) -> tuple[int, ...]:
    """Returns the dimensions of ``x`` that ``axis`` selects, not negative, ascending.

    ``axis``: an integer, a sequence, or None for all. Raises ShapeError for an axis out of range or
    named twice.
    """
    rank = len(x.shape)
    if axis is None:
        return tuple(range(rank))
    found = []
    for each in (axis,) if isinstance(axis, int) else axis:
        if not -rank <= each < rank:
            raise ShapeError(
                f"axis is {axis!r}; x has shape {list(x.shape)}, so {rank} axes (None: all)"
            )
        found.append(each % rank)
    if len(set(found)) < len(found):
        raise ShapeError(f"axis is {axis!r}; takes each dimension once")
    return tuple(sorted(found))


@dataclass(frozen=True)
class Integers(Option):
    """Option that takes a sequence of integers of at least ``least``, or with ``pairs`` a sequence
    of pairs of integers that are not negative.
    """

    pairs: bool = False
    least: int = 0
    schema = "SymInt[]"
    shown = "Sequence[int]"

    def read(self, name: str, value: Any) -> Any:
        each: Callable[[Any], Any] = self._pair if self.pairs else whole
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes | dict)
        plain = several and getattr(value, "shape", (1,)) != ()
        found = [each(v) for v in value] if plain else [None]
        if any(v is None or (not self.pairs and v < self.least) for v in found):
            takes = "pairs of integers" if self.pairs else "integers"
            takes += " that are not negative" if self.least == 0 else f" of {self.least} or more"
            raise ShapeError(f"{name} is {described(value)}; takes {takes}")
        return tuple(found)

    def as_schema(self, value: Any) -> Any:
        """Converts the integers for PyTorch; pairs become one flat list."""
        return [n for pair in value for n in pair] if self.pairs else value

    @staticmethod
    def _pair(value: Any) -> tuple[int, int] | None:
        if not isinstance(value, tuple | list) or len(value) != 2:
            return None
        low, high = map(whole, value)
        return None if low is None or high is None or min(low, high) < 0 else (low, high)


@dataclass(frozen=True)
class PerAxis(Option):
    """Option that takes an integer from ``least`` to ``most``, or a sequence of them, one for each
    spatial dimension; ``empty``: whether the sequence may be empty.
    """

    least: int = 0
    most: int = 1 << 16
    empty: bool = False
    schema = "SymInt[]"
    shown = "int | Sequence[int]"

    def read(self, name: str, value: Any) -> tuple[int, ...]:
        several = isinstance(value, tuple | list)
        found = [whole(v) for v in (value if several else [value])]
        few = not found and not self.empty
        if few or any(v is None or not self.least <= v <= self.most for v in found):
            takes = f"an integer from {self.least} to {self.most}, or one for each dimension"
            raise OptionError(f"{name} is {described(value)}; takes {takes}")
        return tuple(v for v in found if v is not None)

    def as_schema(self, value: Any) -> Any:
        """Converts the integers for PyTorch to a list, also a single one."""
        return [value] if isinstance(value, int) else value


@dataclass(frozen=True)
class KernelName(Option):
    """Option that takes the name of a kernel, or None."""

    shown = "str"

    @property
    def key(self) -> str | None:
        """Source of the option's part of a prepared call's key (see :attr:`Option.key`): the value
        itself.
        """
        return "{0}"

    def read(self, name: str, value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        raise OptionError(f"{name} is {described(value)}; takes None or the name of a kernel")


# The types of arguments that many operations have.
Axis = Annotated[int, AxisNumber()]
Bool = Annotated[bool, Flag()]
Eps = Annotated[float, Real(least=0.0, most=3e38)]
Kernel = Annotated[str | None, KernelName()]
Tier = Annotated[str, Choice("auto", *TIERS)]
Layout = Annotated[str, StatedLayout()]
Activation = Annotated[str | None, Choice(None, *ACTIVATIONS)]
Reduction = Annotated[str, Choice("none", "sum", "mean")]
Dtype = Annotated[str | None, DtypeName()]
