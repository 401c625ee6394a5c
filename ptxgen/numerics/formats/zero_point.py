"""Weight formats of unsigned integers with a zero point per block, as in AWQ, GPTQ and
compressed-tensors.

``code - offset`` is exact, and so is the product for scales of 16 bits: a weight is rounded once.
"""

from dataclasses import replace

from ptxgen.numerics.weight_format import WeightFormat, unsigned

INT4_ZERO_POINT = WeightFormat(
    "int4_zero_point",
    bits=4,
    block=128,
    values=unsigned(4),
    decoding="(code - offset) * scale",
    scales="f16",
    offsets="u5",
    variants=True,
    source="AWQ (arXiv 2306.00978), GPTQ (arXiv 2210.17323), compressed-tensors",
)
"""Weight format of checkpoints of AWQ, GPTQ and compressed-tensors of 4 bits."""

INT8_ZERO_POINT = replace(
    INT4_ZERO_POINT, name="int8_zero_point", bits=8, values=unsigned(8), offsets="u8"
)
"""Weight format of checkpoints of GPTQ and compressed-tensors of 8 bits."""

INT3_ZERO_POINT = replace(INT4_ZERO_POINT, name="int3_zero_point", bits=3, values=unsigned(3))
"""Weight format of checkpoints of GPTQ of 3 bits."""

INT2_ZERO_POINT = replace(INT4_ZERO_POINT, name="int2_zero_point", bits=2, values=unsigned(2))
"""Weight format of checkpoints of GPTQ of 2 bits."""

INT4_ORDERED = replace(INT4_ZERO_POINT, name="int4_zero_point_ordered", grouped=True)
"""Weight format of checkpoints of GPTQ of 4 bits with ``desc_act``; ``groups`` is ``g_idx``."""

INT8_ORDERED = replace(INT8_ZERO_POINT, name="int8_zero_point_ordered", grouped=True)
"""Weight format of checkpoints of GPTQ of 8 bits with ``desc_act``."""
