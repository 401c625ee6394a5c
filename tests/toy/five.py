"""A format that the package has not: 5 bits, blocks of 24, an offset for each block."""

from ptxgen.numerics.weight_format import WeightFormat, unsigned

FORMAT = WeightFormat(
    "five",
    bits=5,
    block=24,
    values=unsigned(5),
    decoding="scale * code + offset",
    scales="f16",
    offsets="bf16",
    source="a test",
)
