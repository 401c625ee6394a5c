"""Weight format NF4, QLoRA's 4-bit NormalFloat."""

from ptxgen.numerics.weight_format import WeightFormat

NF4 = WeightFormat(
    "nf4",
    bits=4,
    block=64,
    values=(
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ),
    quantize="absmax",
    source="Dettmers et al., arXiv 2305.14314, appendix E",
)
"""NF4: values are quantiles of a normal distribution, ascending; one scale per 64 elements."""
