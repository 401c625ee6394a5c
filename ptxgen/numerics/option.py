"""What an argument that is no array may be: one place that reads, checks and names it.

An operation's function says it with types: ``eps: Annotated[float, Real(least=0.0)] = 1e-5``. Each
option brings what a caller gives to one form, so that NumPy's numbers and Python's are the same,
and refuses what it cannot be with an error that names the argument. None is taken where it is the
default.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ptxgen.errors import OptionError, PtxgenError, ShapeError
from ptxgen.numerics.contract import ACTIVATIONS, TIERS
from ptxgen.numerics.dtype import DTYPES, name_of


@dataclass(frozen=True)
class Option:
    """The base: takes anything. ``schema``: its type in PyTorch's schemas; ``shown``: in Python."""

    schema = "str"
    shown = "Any"

    @property
    def key(self) -> str | None:
        """What tells values apart, as an expression of ``{0}``, where all are of one type."""
        return None

    def read(self, name: str, value: Any) -> Any:
        """``value`` in one form. Raises an error of ptxgen that names the argument."""
        return value

    def as_schema(self, value: Any) -> Any:
        """``value`` as an argument of type :attr:`schema`."""
        return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def name_text(name: str, value: Any) -> str:
    """``value``, which is a text. Raises OptionError that names the argument for anything else."""
    if isinstance(value, str):
        return value
    raise OptionError(f"{name} is {_shown(value)}; takes a name, as text")


@dataclass(frozen=True)
class Choice(Option):
    """One of a few words, or None where that is among them."""

    values: tuple[Any, ...] = ()
    shown = "str"

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    @property
    def key(self) -> str | None:
        """See :attr:`Option.key`."""
        return "{0}"

    def read(self, name: str, value: Any) -> Any:
        if (value is None or isinstance(value, str)) and value in self.values:
            return value
        raise OptionError(f"{name} is {_shown(value)}; takes {', '.join(map(repr, self.values))}")


@dataclass(frozen=True)
class Flag(Option):
    """True or False."""

    schema = "bool"
    shown = "bool"

    def read(self, name: str, value: Any) -> bool:
        if value is True or value is False:
            return bool(value)
        if type(value).__name__ in ("bool", "bool_") and not getattr(value, "shape", ()):  # NumPy's
            return bool(value)
        raise OptionError(f"{name} is {_shown(value)}; takes True or False")


@dataclass(frozen=True)
class Integer(Option):
    """A whole number from ``least`` to ``most``; ``error``: what is raised for another."""

    least: int | None = None
    most: int | None = None
    error: type[PtxgenError] = OptionError
    schema = "int"
    shown = "int"

    def read(self, name: str, value: Any) -> int:
        found = whole(value)
        if found is None:
            raise self.error(f"{name} is {_shown(value)}; takes an integer")
        low, high = self.least, self.most
        if (low is not None and found < low) or (high is not None and found > high):
            takes = f"{low} or more" if high is None else f"{low} .. {high}"
            raise self.error(f"{name} is {_shown(value)}; takes {takes}")
        return found


def whole(value: Any) -> int | None:
    """An integer of Python, NumPy or another framework's; None for what is none."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or getattr(value, "shape", ()) != () or hasattr(value, "is_cuda"):
        return None  # what lies on a GPU would have to be waited for
    if hasattr(value, "dtype") and "int" not in str(value.dtype):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


@dataclass(frozen=True)
class Real(Option):
    """A finite number from ``least`` to ``most``; ``above``: and larger than this one."""

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
            raise OptionError(f"{name} is {_shown(value)}; takes {self._takes()}")
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
    """A number of Python's or NumPy's as a float; None for what is none, or too large for one."""
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
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class AnyReal(Option):
    """Any number, infinities and NaN too; every NaN is the same one."""

    schema = "float"
    shown = "float"

    def read(self, name: str, value: Any) -> float:
        found = real(value)
        if found is None:
            raise OptionError(f"{name} is {_shown(value)}; takes a number")
        return math.nan if math.isnan(found) else found


@dataclass(frozen=True)
class Value(Option):
    """A number as it is: of integers it stays an integer."""

    schema = "Scalar"
    shown = "float"

    def read(self, name: str, value: Any) -> int | float:
        if isinstance(value, bool) or type(value).__name__ == "bool_":
            return int(value)
        found = whole(value)
        exact: int | float | None = real(value) if found is None else found
        if exact is None:
            raise OptionError(f"{name} is {_shown(value)}; takes a number")
        return exact


@dataclass(frozen=True)
class DtypeName(Option):
    """A dtype, by its full name, however it is given; ``known``: those that are taken.

    ``several``: also a tuple of such, with None for those that are not asked for.
    """

    known: tuple[str, ...] = tuple(DTYPES)
    several: bool = False
    schema = "ScalarType"
    shown = "DtypeLike"

    @property
    def key(self) -> str | None:
        """See :attr:`Option.key`."""
        return None if self.several else "{0}"

    def read(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if self.several and isinstance(value, tuple | list):
            return tuple(None if v is None else name_of(v, name, self.known) for v in value)
        return name_of(value, name, self.known)


@dataclass(frozen=True)
class AxisNumber(Option):
    """An axis of an array: whether it is there, the operation sees."""

    schema = "int"
    shown = "int"

    def read(self, name: str, value: Any) -> int:
        found = whole(value)
        if found is None:
            raise ShapeError(f"{name} is {_shown(value)}; takes an integer")
        return found


@dataclass(frozen=True)
class AxisNumbers(Option):
    """Several axes, one, or None for all; ``single``: one, which may stand in a sequence."""

    single: bool = False
    shown = "int | Sequence[int] | None"

    @property
    def schema(self) -> str:  # type: ignore[override]
        """See :class:`Option`."""
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
            raise ShapeError(f"{name} is {_shown(value)}; takes {takes}, or None for all")
        return axes[0] if self.single else tuple(axes)

    def as_schema(self, value: Any) -> Any:
        """See :meth:`Option.as_schema`."""
        axes = self.read("axis", value)
        return [axes] if isinstance(axes, int) and not self.single else axes


def axes_of(axis: Any, x: Any) -> tuple[int, ...]:
    """Dimensions of ``x`` that ``axis`` (an integer, several, or None: all) names, ascending and
    from 0. ShapeError for one that is not there or that is named twice.
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
    """Several whole numbers of ``least`` or more; ``pairs``: pairs of such, not negative."""

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
            raise ShapeError(f"{name} is {_shown(value)}; takes {takes}")
        return tuple(found)

    def as_schema(self, value: Any) -> Any:
        """See :meth:`Option.as_schema`; pairs one behind the other."""
        return [n for pair in value for n in pair] if self.pairs else value

    @staticmethod
    def _pair(value: Any) -> tuple[int, int] | None:
        if not isinstance(value, tuple | list) or len(value) != 2:
            return None
        low, high = map(whole, value)
        return None if low is None or high is None or min(low, high) < 0 else (low, high)


@dataclass(frozen=True)
class PerAxis(Option):
    """A whole number from ``least`` to ``most``, or one for each dimension of an image; ``empty``:
    or none at all.
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
            raise OptionError(f"{name} is {_shown(value)}; takes {takes}")
        return tuple(v for v in found if v is not None)

    def as_schema(self, value: Any) -> Any:
        """See :meth:`Option.as_schema`."""
        return [value] if isinstance(value, int) else value


@dataclass(frozen=True)
class KernelName(Option):
    """The name of a kernel, or None."""

    shown = "str"

    @property
    def key(self) -> str | None:
        """See :attr:`Option.key`."""
        return "{0}"

    def read(self, name: str, value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        raise OptionError(f"{name} is {_shown(value)}; takes None or the name of a kernel")


# The types of arguments that many operations have.
Axis = Annotated[int, AxisNumber()]
Axes = Annotated[Any, AxisNumbers()]
OneAxis = Annotated[Any, AxisNumbers(single=True)]
Bool = Annotated[bool, Flag()]
Eps = Annotated[float, Real(least=0.0, most=3e38)]
Kernel = Annotated[str | None, KernelName()]
Tier = Annotated[str, Choice("auto", *TIERS)]
Layout = Annotated[str, Choice("kn", "nk")]
Activation = Annotated[str | None, Choice(None, *ACTIVATIONS)]
Reduction = Annotated[str, Choice("none", "sum", "mean")]
Dtype = Annotated[str | None, DtypeName()]
