"""Formats of quantized weights, by name: :data:`FORMATS`.

Each module of this package defines :class:`~ptxgen.numerics.weight_format.WeightFormat` objects;
new modules are discovered.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from ptxgen.errors import OptionError, SpecError, described, proposal
from ptxgen.lazy import LazyDict, made
from ptxgen.numerics.weight_format import NUMBERS, WeightFormat


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


def prepared(row: WeightFormat) -> WeightFormat | None:
    """Returns the format with the numbers of ``row`` that products read as it is stored
    (:func:`is_prepared`); ``row`` itself if it is such a format, None if there is none.

    Outer scales and offsets are multiplied into the inner ones, which rounds once to f32, as
    ``row.decoding`` does. Larger blocks become several, of the same scale.
    """
    if is_prepared(row):
        return row
    block = next((each for each in BLOCKS if row.block % each == 0), None)
    decoding = row.decoding.replace("outer_scale * scale *", "scale *")
    decoding = decoding.replace("outer_offset * offset", "offset")
    if block is None or row.bits not in _WIDTHS or row.grouped or "outer" in decoding:
        return None
    name = f"{row.name}{_PREPARED}"
    if name not in _VARIANTS:
        single = replace(
            row,
            name=name,
            decoding=decoding,
            outer=None,
            outer_block=0,
            block=block,
            scales="f32" if row.outer else row.scales,
            offsets="f32" if row.outer and row.offsets else row.offsets,
            quantize=None,
            variants=False,
        )
        _VARIANTS[name] = single
    return _VARIANTS[name]


def is_prepared(row: WeightFormat) -> bool:
    """Returns whether products read a weight of format ``row`` as it is stored: codes of 4 or 8
    bits, one scale, and one offset if any, for each of :data:`BLOCKS` elements.
    """
    return row.bits in _WIDTHS and row.block in BLOCKS and not row.grouped and row.outer is None


_WIDTHS = 4, 8
"""Bits of a code of prepared formats."""
BLOCKS = 128, 64, 32
"""Elements of a block of prepared formats, the preferred first."""
_PREPARED = "_prepared"
"""Ending of the names of prepared formats."""
_VARIANTS: dict[str, WeightFormat] = {}
"""Variants of formats that have been asked for, by name."""
_VARIANT = re.compile(rf"(\w+?)_g(\d+)(?:_({'|'.join(NUMBERS)}))?")
"""A variant's name: format, block, and the dtype of scales if it is another."""


def variant(row: WeightFormat, block: int, scales: str | None = None) -> WeightFormat:
    """Returns a format that differs from ``row`` in its block, and in the dtype of scales (and of
    offsets of the same dtype); ``row`` itself if it has both already.

    Raises OptionError for a format without variants, SpecError for a block that is not allowed.
    """
    scales = scales or row.scales
    if (block, scales) == (row.block, row.scales):
        return row
    if not row.variants:
        raise OptionError(f"format {row.name!r} has blocks of {row.block}, {row.scales} scales")
    name = f"{row.name}_g{block}" + (f"_{scales}" if scales != row.scales else "")
    offsets = scales if row.offsets == row.scales else row.offsets
    if name not in _VARIANTS:
        own = replace(row, name=name, block=block, scales=scales, offsets=offsets, variants=False)
        _VARIANTS[name] = own
    return _VARIANTS[name]


def format_named(name: object, what: str = "format") -> WeightFormat:
    """Returns the weight format of a name; a format as it is.

    Names of :attr:`~WeightFormat.variants` have the block and perhaps the dtype of scales after
    them: ``int4_block_g128_f16`` is ``int4_block`` with f16 scales of 128 elements. Raises
    OptionError, which lists the names, for other values, and SpecError for other blocks.
    """
    if isinstance(name, WeightFormat):
        return name
    if isinstance(name, str) and (known := FORMATS.get(name) or _VARIANTS.get(name)):
        return known
    if isinstance(name, str) and name.endswith(_PREPARED):
        row = prepared(format_named(name.removesuffix(_PREPARED), what))
        if row is not None:
            return row
    found = _VARIANT.fullmatch(name) if isinstance(name, str) else None
    if found and (row := FORMATS.get(found[1])) and row.variants:
        return variant(row, int(found[2]), found[3])
    close = proposal(name, FORMATS) if isinstance(name, str) else ""
    takes = ", ".join(map(repr, FORMATS))
    raise OptionError(f"{what} is {described(name)}{close}; takes {takes}")
