"""Weight formats of 4-bit integers with a scale, and perhaps an offset, per block of elements."""

from ptxgen.numerics.weight_format import WeightFormat, signed, unsigned

INT4_BLOCK = WeightFormat(
    "int4_block",
    bits=4,
    block=32,
    values=signed(4),
    quantize="absmax",
    variants=True,
    source="symmetric quantization: the scale is the largest magnitude of a block over 7",
)
"""Weight format int4_block: symmetric 4-bit integers in blocks of 32."""

INT4_BLOCK_ASYM = WeightFormat(
    "int4_block_asym",
    bits=4,
    block=32,
    values=unsigned(4),
    decoding="scale * code + offset",
    offsets="f32",
    quantize="minmax",
    variants=True,
    source="asymmetric quantization: the scale is the range of a block over 15",
)
"""Weight format int4_block_asym: 4-bit integers from the block's least element on."""
