"""Formats of quantized weights: storage and decoding, as data.

A weight W ``[N, K]`` (as of ``nn.Linear``) is stored as a code of few bits per element, and a scale
and perhaps an offset per *block* of neighbours along K. It is decoded by

    w[n, k] = decoding(code, scale, offset)         each operation rounded once to f32

where ``code`` is the value of the element's code (:attr:`WeightFormat.values`), and ``scale`` and
``offset`` are its block's. Formats of two levels have a second pair, ``outer_scale`` and perhaps
``outer_offset``, per *outer block*: of a super-block in GGUF files, of a whole tensor in NVFP4. For
other dtypes w is rounded once more, to nearest even.

Arrays of a weight (:data:`ARRAYS`)
    ``data`` is ``[N, K * bits / 8]`` bytes: the codes in order, packed without gaps, each row from
    the lowest bits of its first byte on. ``scales`` and ``offsets`` (if any) have one element per
    block: ``[N, K / block]``. ``outer`` (if any) has the outer scale, and after it the outer offset
    if there is one, of each outer block: ``[N, K / outer_block]`` or ``[N, K / outer_block * 2]``.
    ``groups`` (if any) is int32 ``[K]``: element k of each row has the scale and the offset of
    block ``groups[k]``, instead of ``k // block``.

:mod:`ptxgen.numerics.formats` has the formats of the package,
:mod:`ptxgen.numerics.weight_packing` their bytes in files of other projects.
"""

from __future__ import annotations

import ast
import hashlib
import math
import operator
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from ptxgen.errors import OptionError, SpecError
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.dtype import FULL, ITEMSIZE

BITS = range(2, 9)
"""Allowed numbers of bits per code of a weight format."""
UNIT = 8
"""Granularity of a block, in elements, so that its codes are whole bytes."""
NUMBERS = ("f32", "bf16", "f16")
"""Dtypes of a weight format's scales and offsets that arrays have, short."""
BYTES = ("u8", "u5", "i8", "e4m3", "e8m0")
"""Dtypes of scales and offsets of one byte: integers, and floats whose bits are stored as uint8."""
ARRAYS = ("data", "scales", "offsets", "outer", "groups")
"""Names of the arrays of a quantized weight, in the order in which operations take them."""
RULES = ("absmax", "minmax", "mx")
"""Names of the quantization methods of :attr:`WeightFormat.quantize`."""
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
)


def _is_f32(value: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


def unsigned(bits: int) -> tuple[float, ...]:
    """Returns the values of unsigned integer codes: 0, 1, ... 2^bits - 1."""
    return tuple(map(float, range(1 << bits)))


def signed(bits: int) -> tuple[float, ...]:
    """Returns the values of two's complement integer codes: 0, 1, ... -2, -1."""
    half = 1 << bits - 1
    return tuple(map(float, (*range(half), *range(-half, 0))))


def excess(bits: int) -> tuple[float, ...]:
    """Returns the values of integer codes that are stored in excess of 2^(bits - 1)."""
    half = 1 << bits - 1
    return tuple(map(float, range(-half, half)))


def floats(exponent: int, fraction: int, finite: bool = True) -> tuple[float, ...]:
    """Returns the values of small floats: a sign, ``exponent`` and ``fraction`` bits, subnormals.

    ``finite``: the format has no Inf, and NaN only where all bits but the sign are set and there
    are 8 (OCP E4M3; E2M1 has neither). Otherwise exponents of ones are Inf and NaN (E5M2).
    """
    bits, bias, found = 1 + exponent + fraction, (1 << exponent - 1) - 1, []
    for code in range(1 << bits):
        raised, low = code >> fraction & (1 << exponent) - 1, code & (1 << fraction) - 1
        size = math.ldexp(low + (raised > 0) * (1 << fraction), max(raised, 1) - bias - fraction)
        ones = raised == (1 << exponent) - 1
        if ones and not finite:
            size = math.nan if low else math.inf
        elif ones and bits == 8 and low == (1 << fraction) - 1:
            size = math.nan
        found.append(-size if code >> bits - 1 and size == size else size)
    return tuple(found)


E2M1, E4M3, E5M2 = floats(2, 1), floats(4, 3), floats(5, 2, finite=False)
"""Values of the codes of the floats of 4 and 8 bits of the OCP specifications."""
E8M0 = (*(math.ldexp(1.0, code - 127) for code in range(255)), math.nan)
"""Values of the codes of OCP's scales E8M0: powers of two, and NaN."""
U5 = unsigned(5) * 8
"""Values of the bytes of zero points of codes of up to 4 bits, which are at most 16. The lowest
five bits count, so that the difference from a code has few bits."""
SCALE_VALUES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"e4m3": E4M3, "e8m0": E8M0, "u5": U5}
)
"""Values of each byte of the dtypes of scales and offsets that are no integers of 8 bits."""
STORED = {
    **{short: FULL[short] for short in NUMBERS},
    **dict.fromkeys(BYTES, "uint8"),
    "i8": "int8",
}
"""Full dtype of the array that holds scales or offsets, by their short dtype."""
_SIZES = {**ITEMSIZE, **dict.fromkeys(BYTES, 1)}


@dataclass(frozen=True)
class WeightFormat:
    """A format of quantized weights.

    ``bits``: number of bits per code; ``block``: number of elements along K that share a scale;
    ``values``: the value of each code, exact f32 numbers (:func:`unsigned`, :func:`signed`,
    :func:`excess`, :func:`floats`, or a codebook); ``decoding``: Python expression that computes an
    element from ``code`` (the code's value), ``scale``, ``offset``, ``outer_scale`` and
    ``outer_offset`` with ``+``, ``-`` and ``*``; ``scales``, ``offsets``: short dtypes of the
    blocks' scales and offsets (None: no offsets). ``outer``: dtype of the outer scales and offsets
    (None: none), ``outer_block``: number of elements that share them. ``grouped``: whether elements
    name their blocks by the array ``groups``.

    ``quantize``: the quantization method, or None if quantizing to the format is not supported.
    "absmax": a block's scale is its largest magnitude over the largest of ``values``. "minmax": the
    offset is the block's least element, the scale its range over the largest of ``values``. "mx":
    the scale is 2^(e - x), where e and x are the exponents of the block's largest magnitude and of
    the largest value. Codes are the nearest; ties take the lower value, of floats the even one.
    ``variants``: whether names such as ``NAME_g128_f16`` stand for this format with another block
    and another dtype of scales (:func:`ptxgen.numerics.formats.format_named`). ``source``: the
    format's definition. ``version`` counts changes of bits.

    Raises SpecError for fields that contradict each other.
    """

    name: str
    bits: int
    block: int
    values: tuple[float, ...]
    decoding: str = "scale * code"
    scales: str = "f32"
    offsets: str | None = None
    outer: str | None = None
    outer_block: int = 0
    grouped: bool = False
    quantize: str | None = None
    variants: bool = False
    source: str = ""
    version: int = 1

    def __post_init__(self) -> None:
        def check(holds: bool, what: str, got: object, takes: object) -> None:
            if not holds:
                raise SpecError(f"format {self.name!r}: {what} is {got}; takes {takes}")

        check(self.name.isidentifier(), "name", repr(self.name), "a Python identifier")
        check(self.bits in BITS, "bits", self.bits, f"{BITS[0]} .. {BITS[-1]}")
        whole = self.block >= UNIT and self.block % UNIT == 0
        check(whole, "block", self.block, f"a multiple of {UNIT}")
        count = 1 << self.bits
        check(len(self.values) == count, "number of values", len(self.values), count)
        numbers = all(not math.isfinite(v) or _is_f32(v) for v in self.values)
        check(numbers, "values", self.values, "f32 numbers")
        known = (*NUMBERS, *BYTES)
        for what, dtype in ("scales", self.scales), ("offsets", self.offsets or "f32"):
            check(dtype in known, f"dtype of {what}", dtype, ", ".join(known))
        check(self.outer in (None, *NUMBERS), "dtype of outer", self.outer, ", ".join(NUMBERS))
        blocks = self.outer_block // self.block if self.outer else self.outer_block + 1
        several = f"a multiple of the block, {self.block}" if self.outer else "0"
        fits = blocks * self.block == self.outer_block if self.outer else blocks == 1
        check(fits and blocks > 0, "outer_block", self.outer_block, several)
        check(self.quantize in (None, *RULES), "quantize", self.quantize, ", ".join(RULES))
        if self.quantize is not None:
            product = "scale * code + offset" if self.quantize == "minmax" else "scale * code"
            check(self.decoding == product, "decoding to quantize to", self.decoding, product)
            integers = self.encoding in ("unsigned", "signed", "excess")
            distinct = len(set(self.values)) == count or self.encoding is not None
            check(
                distinct and self.zero is not None,
                "values to quantize to",
                self.values,
                "different ones, and 0",
            )
            check(integers or self.quantize != "minmax", "values", self.values, "integers")
            takes = ("e8m0",) if self.quantize == "mx" else NUMBERS
            there = self.scales in takes and self.outer is None and not self.grouped
            check(there, "dtype of scales to quantize to", self.scales, ", ".join(takes))
        read = {n.id for n in ast.walk(self._parsed) if isinstance(n, ast.Name)}
        needed = {"code", "scale", *(("offset",) if self.offsets else ())}
        needed |= {"outer_scale"} if self.outer else set()
        read_too = {"outer_offset"} if self.outer else set()
        check(read - read_too == needed, "names in decoding", sorted(read), sorted(needed))

    @cached_property
    def _parsed(self) -> ast.expr:
        try:
            found = ast.parse(self.decoding, mode="eval").body
        except SyntaxError as error:
            raise SpecError(f"format {self.name!r}: decoding {self.decoding!r}: {error}") from None
        for node in ast.walk(found):
            known = isinstance(node, (ast.Name, ast.Load, *_OPERATORS))
            known |= isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS
            number = node.value if isinstance(node, ast.Constant) else None
            if not (known or (isinstance(number, float) and _is_f32(number))):
                raise SpecError(
                    f"format {self.name!r}: decoding is {self.decoding!r}; takes +, - and * of "
                    "code, scale, offset, outer_scale, outer_offset and numbers such as 8.0"
                )
        return found

    def decode(self, code: Any, **given: Any) -> Any:
        """Evaluates the format's ``decoding`` on f32 arrays, tensors or nodes of formulas.

        ``given``: scale, offset, outer_scale and outer_offset, those that the formula reads.
        """

        def value(node: Any) -> Any:
            if isinstance(node, ast.BinOp):
                return _OPERATORS[type(node.op)](value(node.left), value(node.right))
            if isinstance(node, ast.Name):
                return code if node.id == "code" else given[node.id]
            return node.value

        return value(self._parsed)

    @cached_property
    def outer_items(self) -> tuple[str, ...]:
        """Names in ``decoding`` of an outer block's items: the scale, and the offset if any."""
        read = {n.id for n in ast.walk(self._parsed) if isinstance(n, ast.Name)}
        return tuple(n for n in ("outer_scale", "outer_offset") if n in read)

    @property
    def beside(self) -> dict[str, tuple[str, int, tuple[str, ...]]]:
        """Arrays that have items per block, by name: short dtype, elements of a block, and the
        names of the block's items in ``decoding``.
        """
        found: dict[str, tuple[str, int, tuple[str, ...]]] = {}
        found["scales"] = self.scales, self.block, ("scale",)
        if self.offsets:
            found["offsets"] = self.offsets, self.block, ("offset",)
        if self.outer:
            found["outer"] = self.outer, self.outer_block, self.outer_items
        return found

    @property
    def unit(self) -> int:
        """Number of elements that divides K: the block, or the outer block."""
        return self.outer_block or self.block

    def sizes(self, k: int) -> dict[str, int]:
        """Returns the number of items per row of each array of the weight that has rows, by array
        name, for rows of ``k`` elements (whole blocks).
        """
        blocks = {name: k // each * len(items) for name, (_, each, items) in self.beside.items()}
        return {"data": k * self.bits // 8, **blocks}

    @property
    def dtypes(self) -> dict[str, str]:
        """Full dtype names of the arrays of a weight in this format, by array name."""
        beside = {name: STORED[dtype] for name, (dtype, *_) in self.beside.items()}
        return {"data": "uint8", **beside, **({"groups": "int32"} if self.grouped else {})}

    def check_arrays(self, names: Collection[str]) -> None:
        """Raises OptionError if an array that the format has is missing in ``names``, or one is
        there that it has not.
        """
        for name in ARRAYS:
            if (name in names) != (name in self.dtypes):
                has = name in self.dtypes
                takes = f"has {name}; pass them" if has else f"has no {name}; leave them out"
                raise OptionError(f"format {self.name!r} {takes}")

    @property
    def zero(self) -> int | None:
        """Code whose value is 0, or None if the format has none."""
        return self.values.index(0.0) if 0.0 in self.values else None

    @cached_property
    def encoding(self) -> str | None:
        """Kind of numbers that codes are: "unsigned", "signed", "excess" (integers), "e2m1", "e4m3"
        or "e5m2" (floats); None for a codebook.
        """
        known = {"unsigned": unsigned, "signed": signed, "excess": excess}
        tables = {name: table(self.bits) for name, table in known.items()}
        tables |= {"e2m1": E2M1, "e4m3": E4M3, "e5m2": E5M2}
        own = [v.hex() for v in self.values]  # with the signs of zeros
        return next((n for n, table in tables.items() if [v.hex() for v in table] == own), None)

    @cached_property
    def contract(self) -> Contract:
        """Numeric contract of decoding a weight of this format."""
        step = f"w = {self.decoding}, each operation rounded to f32; then to its dtype"
        return Contract(self.name, self.version, step, "any")

    @property
    def bits_of_all(self) -> float:
        """Average number of bits per element of the weight, scales and offsets included."""
        blocks = self.beside.values()
        return self.bits + sum(8 * _SIZES[d] * len(items) / each for d, each, items in blocks)

    def __str__(self) -> str:
        """Returns the format's name and version, and a digest of all fields that decide bits."""
        values = ",".join(v.hex() for v in self.values)
        fields = (self.bits, self.block, values, self.decoding, self.scales, self.offsets)
        more = (self.outer, self.outer_block, self.grouped) if self.outer or self.grouped else ()
        digest = hashlib.sha256(repr((*fields, *more)).encode()).hexdigest()
        return f"{self.contract} {digest[:8]}"


class Quantized(NamedTuple):
    """Key of route tables of products with quantized weights: x's short dtype, W's format."""

    dtype: str
    format: WeightFormat

    def __str__(self) -> str:
        return f"{self.dtype} and {self.format.name}"
