"""Weight formats of GGUF files: the types of ggml whose blocks have 32 or 256 elements.

Formulas and layouts are those of ggml's ``dequantize_row_*``; f32 throughout. K-quants have blocks
of 256 elements with f16 scales, in which sub-blocks of 16 or 32 have scales of 4 to 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from ptxgen.numerics.weight_format import WeightFormat, excess, signed, unsigned
from ptxgen.numerics.weight_packing import Bits, Packing, bits, halves, whole

_SUPER = 256
"""Elements in a super-block of the K-quants."""
_SOURCE = "ggml, type "
_TWO_LEVELS = "outer_scale * scale * code"
_TWO_LEVELS_MIN = "outer_scale * scale * code - outer_offset * offset"
_IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
"""Codebook of the types IQ4_NL and IQ4_XS."""


def _nibbles(start: int) -> Bits:
    """Returns the bits of 32 codes: the low halves of 16 bytes, then their high halves."""
    return bits(((start + i % 16, i // 16 * 4) for i in range(32)), 4)


def _quarters(start: int, bytes: int, width: int) -> Iterator[tuple[int, int]]:
    """Yields the places of 256 parts of codes. Each half of the block has ``bytes`` bytes, whose
    groups of 32 hold a part of ``width`` bits of each 32 elements: all groups the lowest bits
    first.
    """
    for i in range(_SUPER):
        half, inner = divmod(i, 128)
        row, lane = divmod(inner, 32)
        groups = bytes // 32
        yield start + half * bytes + row % groups * 32 + lane, row // groups * width


def _fifth(start: int) -> Bits:
    """Returns the bits of the fifth bits of 32 codes, in 4 bytes."""
    return bits(((start + i // 8, i % 8) for i in range(32)), 1, 4)


def _pairs(start: int) -> Bits:
    """Returns the bits of 256 codes of 4 bits: of each 32 bytes the low halves are 32 elements, the
    high halves the next 32.
    """
    return bits(((start + i // 64 * 32 + i % 32, i // 32 % 2 * 4) for i in range(_SUPER)), 4)


def _six(start: int, offset: bool) -> tuple[Bits, Bits]:
    """Returns the bits of the eight scales, or with ``offset`` offsets, of 6 bits in the 12 bytes
    of Q4_K and Q5_K.

    Bytes 0 .. 3 and 4 .. 7 have the first four scales and offsets in 6 bits, and in their upper two
    the upper bits of the last four, whose lower bits are the halves of bytes 8 .. 11.
    """
    own = start + 4 * offset
    low = [(own + i, 0) for i in range(4)] + [(start + 8 + i, 4 * offset) for i in range(4)]
    # Bits 4 and 5: of the first four in place, of the last four the upper two of the first bytes.
    high = [(own + i, 4) for i in range(4)] + [(own + i, 6) for i in range(4)]
    return bits(low, 4), bits(high, 2, 4)


Q4_0 = WeightFormat("q4_0", 4, 32, excess(4), scales="f16", source=_SOURCE + "Q4_0")
"""GGUF type Q4_0."""
Q4_1 = WeightFormat(
    "q4_1", 4, 32, unsigned(4), "scale * code + offset", "f16", "f16", source=_SOURCE + "Q4_1"
)
"""GGUF type Q4_1."""
Q5_0 = WeightFormat("q5_0", 5, 32, excess(5), scales="f16", source=_SOURCE + "Q5_0")
"""GGUF type Q5_0."""
Q5_1 = WeightFormat(
    "q5_1", 5, 32, unsigned(5), "scale * code + offset", "f16", "f16", source=_SOURCE + "Q5_1"
)
"""GGUF type Q5_1."""
Q8_0 = WeightFormat("q8_0", 8, 32, signed(8), scales="f16", source=_SOURCE + "Q8_0")
"""GGUF type Q8_0."""
Q2_K = WeightFormat(
    "q2_k", 2, 16, unsigned(2), _TWO_LEVELS_MIN, "u8", "u8", "f16", _SUPER, source=_SOURCE + "Q2_K"
)
"""GGUF type Q2_K."""
Q3_K = WeightFormat(
    "q3_k", 3, 16, excess(3), _TWO_LEVELS, "i8", None, "f16", _SUPER, source=_SOURCE + "Q3_K"
)
"""GGUF type Q3_K."""
Q4_K = WeightFormat(
    "q4_k", 4, 32, unsigned(4), _TWO_LEVELS_MIN, "u8", "u8", "f16", _SUPER, source=_SOURCE + "Q4_K"
)
"""GGUF type Q4_K."""
Q5_K = WeightFormat(
    "q5_k", 5, 32, unsigned(5), _TWO_LEVELS_MIN, "u8", "u8", "f16", _SUPER, source=_SOURCE + "Q5_K"
)
"""GGUF type Q5_K."""
Q6_K = WeightFormat(
    "q6_k", 6, 16, excess(6), _TWO_LEVELS, "i8", None, "f16", _SUPER, source=_SOURCE + "Q6_K"
)
"""GGUF type Q6_K."""
IQ4_NL = WeightFormat(
    "iq4_nl", 4, 32, tuple(map(float, _IQ4)), scales="f16", source=_SOURCE + "IQ4_NL"
)
"""GGUF type IQ4_NL."""
IQ4_XS = WeightFormat(
    "iq4_xs", 4, 32, IQ4_NL.values, _TWO_LEVELS, "i8", None, "f16", _SUPER,
    source=_SOURCE + "IQ4_XS",
)  # fmt: skip
"""GGUF type IQ4_XS."""

PACKINGS: MappingProxyType[str, Packing] = MappingProxyType(
    {
        "q4_0": Packing(32, 18, {"data": (_nibbles(2),), "scales": halves(0)}),
        "q4_1": Packing(
            32, 20, {"data": (_nibbles(4),), "scales": halves(0), "offsets": halves(2)}
        ),
        "q5_0": Packing(32, 22, {"data": (_nibbles(6), _fifth(2)), "scales": halves(0)}),
        "q5_1": Packing(
            32, 24,
            {"data": (_nibbles(8), _fifth(4)), "scales": halves(0), "offsets": halves(2)},
        ),
        "q8_0": Packing(32, 34, {"data": whole(2, 32), "scales": halves(0)}),
        "q2_k": Packing(
            _SUPER, 84,
            {
                "data": (bits(_quarters(16, 32, 2), 2),),
                "scales": (bits(((i, 0) for i in range(16)), 4),),
                "offsets": (bits(((i, 4) for i in range(16)), 4),),
                "outer": halves(80, 82),
            },
        ),
        "q3_k": Packing(
            _SUPER, 110,
            {
                "data": (
                    bits(_quarters(32, 32, 2), 2),
                    bits(((i % 32, i // 32) for i in range(_SUPER)), 1, 2),
                ),
                "scales": (
                    bits(((96 + i % 8, i // 8 * 4) for i in range(16)), 4),
                    bits(((104 + i % 4, i // 4 * 2) for i in range(16)), 2, 4),
                ),
                "outer": halves(108),
            },
            {"scales": 32},
        ),
        "q4_k": Packing(
            _SUPER, 144,
            {
                "data": (_pairs(16),),
                "scales": _six(4, False),
                "offsets": _six(4, True),
                "outer": halves(0, 2),
            },
        ),
        "q5_k": Packing(
            _SUPER, 176,
            {
                "data": (_pairs(48), bits(((16 + i % 32, i // 32) for i in range(_SUPER)), 1, 4)),
                "scales": _six(4, False),
                "offsets": _six(4, True),
                "outer": halves(0, 2),
            },
        ),
        "q6_k": Packing(
            _SUPER, 210,
            {
                "data": (bits(_quarters(0, 64, 4), 4), bits(_quarters(128, 32, 2), 2, 4)),
                "scales": whole(192, 16),
                "outer": halves(208),
            },
        ),
        "iq4_nl": Packing(32, 18, {"data": (_nibbles(2),), "scales": halves(0)}),
        "iq4_xs": Packing(
            _SUPER, 136,
            {
                "data": (
                    bits(((8 + i // 32 * 16 + i % 16, i // 16 % 2 * 4) for i in range(_SUPER)), 4),
                ),
                "scales": (
                    bits(((4 + i // 2, i % 2 * 4) for i in range(8)), 4),
                    bits(((2 + i // 4, i % 4 * 2) for i in range(8)), 2, 4),
                ),
                "outer": halves(0),
            },
            {"scales": 32},
        ),
    }
)  # fmt: skip
"""Layout of a block of each GGUF type, by the name of its format."""
