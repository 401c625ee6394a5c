"""Formats of quantized weights, by name: :data:`FORMATS`.

Each module of this package defines :class:`~ptxgen.numerics.weight_format.WeightFormat` objects;
new modules are discovered.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ptxgen.errors import OptionError, SpecError, described, proposal
from ptxgen.lazy import LazyDict, made
from ptxgen.numerics.weight_format import WeightFormat


def _found() -> dict[str, WeightFormat]:
    files = sorted(each.name for each in iter_modules(__path__))
    rows = (vars(import_module(f"{__name__}.{name}")).values() for name in files)
    return {row.name: row for file in rows for row in file if isinstance(row, WeightFormat)}


FORMATS: LazyDict[str, WeightFormat] = LazyDict(lambda: made(_found()))
"""Formats of quantized weights by name, including registered ones (:func:`register`)."""


def register(format: WeightFormat) -> WeightFormat:
    """Adds a user's weight format to :data:`FORMATS`, and returns it.

    Raises SpecError if another format has its name.
    """
    if FORMATS.get(format.name, format) != format:
        raise SpecError(f"there is a format {format.name!r} already")
    FORMATS[format.name] = format
    return format


def format_named(name: object, what: str = "format") -> WeightFormat:
    """Returns the weight format of a name; a format as it is. Raises OptionError, which lists the
    names, for other values.
    """
    if isinstance(name, WeightFormat):
        return name
    if isinstance(name, str) and name in FORMATS:
        return FORMATS[name]
    close = proposal(name, FORMATS) if isinstance(name, str) else ""
    takes = ", ".join(map(repr, FORMATS))
    raise OptionError(f"{what} is {described(name)}{close}; takes {takes}")
