"""Formats of quantized weights: how their numbers are stored, and what these stand for, as data.

A weight W ``[N, K]`` (``nn.Linear``'s) is stored as a code of few bits for each number, and one or
two numbers for each *block* of neighbours along K. It stands for

    w[n, k] = decoding(code, scale, offset)         each operation rounded once to f32

where ``code`` is what the number's code stands for (:attr:`WeightFormat.values`), and ``scale`` and
``offset`` are its block's. A weight of another dtype is rounded once more, to nearest even.

Storage
    ``data`` has the codes of a block one behind the other, the first in the lowest bits of its
    first byte, blocks row by row: ``[N, K * bits / 8]`` bytes. ``scales``, and ``offsets`` if
    there are any, have a number for each block: ``[N, K / block]``.

:mod:`ptxgen.numerics.formats` has the formats of the package.
"""

from __future__ import annotations

import ast
import hashlib
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
"""Bits that a code may have."""
UNIT = 8
"""Numbers that a block is a multiple of: their codes are whole bytes."""
NUMBERS = ("f32", "bf16", "f16")
"""Dtypes that scales and offsets may have."""
RULES = ("absmax",)
"""Rules by which numbers are quantized."""
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
)


def _is_f32(value: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


def unsigned(bits: int) -> tuple[float, ...]:
    """0, 1, ... 2^bits - 1."""
    return tuple(map(float, range(1 << bits)))


def signed(bits: int) -> tuple[float, ...]:
    """Integers of ``bits`` bits in two's complement, in the order of their codes."""
    half = 1 << bits - 1
    return tuple(map(float, (*range(half), *range(-half, 0))))


@dataclass(frozen=True)
class WeightFormat:
    """A format of quantized weights.

    ``bits``: of a code; ``block``: numbers along K that share a scale; ``values``: what each code
    stands for, exact f32 numbers (:func:`unsigned`, :func:`signed`, or a codebook); ``decoding``:
    a number of the weight, of ``code``, ``scale`` and ``offset`` with ``+``, ``-`` and ``*``;
    ``scales``, ``offsets``: their dtypes, short, or None for a format without offsets;
    ``quantize``: "absmax" if scales are the largest magnitude of a block over the largest of
    ``values``, and codes the nearest; None for a format that nothing is quantized to here.
    ``source``: where the format is defined. ``version`` counts changes of bits.

    Raises SpecError for what does not fit together.
    """

    name: str
    bits: int
    block: int
    values: tuple[float, ...]
    decoding: str = "scale * code"
    scales: str = "f32"
    offsets: str | None = None
    quantize: str | None = None
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
        check(all(map(_is_f32, self.values)), "values", self.values, "f32 numbers")
        for what, dtype in ("scales", self.scales), ("offsets", self.offsets or "f32"):
            check(dtype in NUMBERS, f"dtype of {what}", dtype, ", ".join(NUMBERS))
        check(self.quantize in (None, *RULES), "quantize", self.quantize, ", ".join(RULES))
        if self.quantize is not None:
            product = "scale * code"
            check(self.decoding == product, "decoding to quantize to", self.decoding, product)
            distinct = len(set(self.values)) == count and self.zero is not None
            check(distinct, "values to quantize to", self.values, "different ones, and 0")
        read = {n.id for n in ast.walk(self._parsed) if isinstance(n, ast.Name)}
        needed = {"code", "scale", *(("offset",) if self.offsets else ())}
        check(read == needed, "names in decoding", sorted(read), sorted(needed))

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
                    "code, scale, offset and numbers such as 8.0"
                )
        return found

    def decode(self, code: Any, scale: Any, offset: Any = None) -> Any:
        """``decoding`` of whatever has these operators: f32 arrays, tensors, nodes of formulas."""
        given = {"code": code, "scale": scale, "offset": offset}

        def value(node: Any) -> Any:
            if isinstance(node, ast.BinOp):
                return _OPERATORS[type(node.op)](value(node.left), value(node.right))
            return given[node.id] if isinstance(node, ast.Name) else node.value

        return value(self._parsed)

    def sizes(self, k: int) -> dict[str, int]:
        """Numbers of each array in a row of ``k`` numbers, a multiple of :attr:`block`."""
        return {"data": k * self.bits // 8, **dict.fromkeys(self.beside, k // self.block)}

    @property
    def beside(self) -> dict[str, str]:
        """Arrays with a number for each block, and their dtypes, short."""
        return {"scales": self.scales} | ({"offsets": self.offsets} if self.offsets else {})

    @property
    def dtypes(self) -> dict[str, str]:
        """The full names of the dtypes of its arrays."""
        return {"data": "uint8", **{name: FULL[dtype] for name, dtype in self.beside.items()}}

    def check_arrays(self, names: Collection[str]) -> None:
        """Raises OptionError if offsets are there and the format has none, or the other way."""
        if ("offsets" in names) != (self.offsets is not None):
            takes = "has offsets; pass them" if self.offsets else "has no offsets; leave them out"
            raise OptionError(f"format {self.name!r} {takes}")

    @property
    def zero(self) -> int | None:
        """The code that stands for 0, if one does."""
        return self.values.index(0.0) if 0.0 in self.values else None

    @cached_property
    def integers(self) -> str | None:
        """Kind "unsigned" or "signed", if each code is the integer it stands for; else None."""
        known = {unsigned(self.bits): "unsigned", signed(self.bits): "signed"}
        return known.get(self.values)

    @cached_property
    def contract(self) -> Contract:
        """Contract of the decoding of a weight."""
        step = f"w = {self.decoding}, each operation rounded to f32; then to its dtype"
        return Contract(self.name, self.version, step, "any")

    @property
    def bits_of_all(self) -> float:
        """Bits of a number with its share of scales and offsets."""
        return self.bits + sum(8 * ITEMSIZE[d] for d in self.beside.values()) / self.block

    def __str__(self) -> str:
        """Its name and version, and a digest of everything that decides bits."""
        values = ",".join(v.hex() for v in self.values)
        told = (self.bits, self.block, values, self.decoding, self.scales, self.offsets)
        digest = hashlib.sha256(repr(told).encode()).hexdigest()
        return f"{self.contract} {digest[:8]}"


class Quantized(NamedTuple):
    """Key of the kernels of products with quantized weights: x's dtype, W's format."""

    dtype: str
    format: WeightFormat

    def __str__(self) -> str:
        return f"{self.dtype} and {self.format.name}"
