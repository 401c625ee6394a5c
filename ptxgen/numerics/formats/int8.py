"""Weight formats of 8-bit integers with a scale, and perhaps an offset, per block of elements."""

from ptxgen.numerics.weight_format import WeightFormat, signed, unsigned

INT8_BLOCK = WeightFormat(
    "int8_block",
    bits=8,
    block=32,
    values=signed(8),
    quantize="absmax",
    variants=True,
    source="symmetric quantization: the scale is the largest magnitude of a block over 127",
)
"""Weight format int8_block: symmetric 8-bit integers in blocks of 32."""

INT8_BLOCK_ASYM = WeightFormat(
    "int8_block_asym",
    bits=8,
    block=32,
    values=unsigned(8),
    decoding="scale * code + offset",
    offsets="f32",
    quantize="minmax",
    variants=True,
    source="asymmetric quantization: the scale is the range of a block over 255",
)
"""Weight format int8_block_asym: 8-bit integers from the block's least element on."""
