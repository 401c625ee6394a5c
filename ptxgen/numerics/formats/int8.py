"""Weight format of 8-bit integers with a scale per block of 32 elements."""

from ptxgen.numerics.weight_format import WeightFormat, signed

INT8_BLOCK = WeightFormat(
    "int8_block",
    bits=8,
    block=32,
    values=signed(8),
    quantize="absmax",
    source="symmetric quantization: the scale is the largest magnitude of a block over 127",
)
