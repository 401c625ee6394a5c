"""Formats of quantized weights: storage and decoding, as data.

A weight W ``[N, K]`` (as of ``nn.Linear``) is stored as a code of few bits per element, and a scale
and perhaps an offset per *block* of neighbours along K. It is decoded by

    w[n, k] = decoding(code, scale, offset)         each operation rounded once to f32

where ``code`` is the value of the element's code (:attr:`WeightFormat.values`), and ``scale`` and
``offset`` are its block's. For other dtypes w is rounded once more, to nearest even.

Storage
    ``data`` is ``[N, K * bits / 8]`` bytes: the codes in order, packed without gaps, each row from
    the lowest bits of its first byte on. ``scales`` and ``offsets`` (if any) have one element per
    block: ``[N, K / block]``.

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
"""Allowed numbers of bits per code of a weight format."""
UNIT = 8
"""Granularity of a block, in elements, so that its codes are whole bytes."""
NUMBERS = ("f32", "bf16", "f16")
"""Allowed dtypes of a weight format's scales and offsets, short."""
RULES = ("absmax",)
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


@dataclass(frozen=True)
class WeightFormat:
    """A format of quantized weights.

    ``bits``: number of bits per code; ``block``: number of elements along K that share a scale;
    ``values``: the value of each code, exact f32 numbers (:func:`unsigned`, :func:`signed`, or a
    codebook); ``decoding``: Python expression that computes an element from ``code`` (the code's
    value), ``scale`` and ``offset`` with ``+``, ``-`` and ``*``; ``scales``, ``offsets``: short
    dtypes of the blocks' scales and offsets (None: no offsets). ``quantize``: "absmax", where a
    block's scale is its largest magnitude over the largest of ``values``, and codes are the
    nearest; None if quantizing to the format is not supported. ``source``: the format's definition.
    ``version`` counts changes of bits.

    Raises SpecError for fields that contradict each other.
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
        """Computes elements of a weight by the format's ``decoding``.

        ``code`` (the values of the codes), ``scale``, ``offset`` (None if the format has none): f32
        arrays, tensors or nodes of formulas.
        """
        given = {"code": code, "scale": scale, "offset": offset}

        def value(node: Any) -> Any:
            if isinstance(node, ast.BinOp):
                return _OPERATORS[type(node.op)](value(node.left), value(node.right))
            return given[node.id] if isinstance(node, ast.Name) else node.value

        return value(self._parsed)

    def sizes(self, k: int) -> dict[str, int]:
        """Returns the number of items per row of each array of the weight, by array name: bytes of
        ``data``, and scales and offsets. ``k``: elements per row, whole blocks.
        """
        return {"data": k * self.bits // 8, **dict.fromkeys(self.beside, k // self.block)}

    @property
    def beside(self) -> dict[str, str]:
        """Short dtypes of the arrays that have one value per block, by name: ``scales``, and in
        some formats ``offsets``.
        """
        return {"scales": self.scales} | ({"offsets": self.offsets} if self.offsets else {})

    @property
    def dtypes(self) -> dict[str, str]:
        """Full dtype names of the arrays of a weight in this format, by array name."""
        return {"data": "uint8", **{name: FULL[dtype] for name, dtype in self.beside.items()}}

    def check_arrays(self, names: Collection[str]) -> None:
        """Raises OptionError if ``names`` has "offsets" and the format has none, or vice versa."""
        if ("offsets" in names) != (self.offsets is not None):
            takes = "has offsets; pass them" if self.offsets else "has no offsets; leave them out"
            raise OptionError(f"format {self.name!r} {takes}")

    @property
    def zero(self) -> int | None:
        """Code whose value is 0, or None if the format has none."""
        return self.values.index(0.0) if 0.0 in self.values else None

    @cached_property
    def integers(self) -> str | None:
        """Kind of integer that the codes stand for, "unsigned" (:func:`unsigned`) or "signed"
        (:func:`signed`); None if ``values`` is a codebook.
        """
        known = {unsigned(self.bits): "unsigned", signed(self.bits): "signed"}
        return known.get(self.values)

    @cached_property
    def contract(self) -> Contract:
        """Numeric contract of decoding a weight of this format."""
        step = f"w = {self.decoding}, each operation rounded to f32; then to its dtype"
        return Contract(self.name, self.version, step, "any")

    @property
    def bits_of_all(self) -> float:
        """Average number of bits per element of the weight, scales and offsets included."""
        return self.bits + sum(8 * ITEMSIZE[d] for d in self.beside.values()) / self.block

    def __str__(self) -> str:
        """Returns the format's name and version, and a digest of all fields that decide bits."""
        values = ",".join(v.hex() for v in self.values)
        fields = (self.bits, self.block, values, self.decoding, self.scales, self.offsets)
        digest = hashlib.sha256(repr(fields).encode()).hexdigest()
        return f"{self.contract} {digest[:8]}"


class Quantized(NamedTuple):
    """Key of route tables of products with quantized weights: x's short dtype, W's format."""

    dtype: str
    format: WeightFormat

    def __str__(self) -> str:
        return f"{self.dtype} and {self.format.name}"
