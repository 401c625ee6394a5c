"""Weight formats of floats of 8 bits, and of floats with scales of 8 bits (MX, NVFP4)."""

from ptxgen.numerics.weight_format import E2M1, E4M3, E5M2, WeightFormat

_OCP = "OCP 8-bit floating point specification 1.0"
_MX = "OCP microscaling formats specification 1.0"

FP8_E4M3 = WeightFormat(
    "fp8_e4m3", 8, 128, E4M3, quantize="absmax", variants=True, source=f"{_OCP}, E4M3"
)
"""Weight format of E4M3 floats with f32 scales, as in checkpoints with 128 x 128 scales."""

FP8_E5M2 = WeightFormat(
    "fp8_e5m2", 8, 128, E5M2, quantize="absmax", variants=True, source=f"{_OCP}, E5M2"
)
"""Weight format of E5M2 floats with f32 scales."""

MXFP8 = WeightFormat("mxfp8", 8, 32, E4M3, scales="e8m0", quantize="mx", source=f"{_MX}, MXFP8")
"""Weight format MXFP8 of E4M3 floats."""

MXFP4 = WeightFormat("mxfp4", 4, 32, E2M1, scales="e8m0", quantize="mx", source=f"{_MX}, MXFP4")
"""Weight format MXFP4, as in gpt-oss."""

NVFP4 = WeightFormat(
    "nvfp4",
    4,
    16,
    E2M1,
    decoding="scale * outer_scale * code",
    scales="e4m3",
    outer="f32",
    outer_block=64,
    source="NVIDIA's NVFP4: E4M3 scales of 16 elements, times an f32 scale of the tensor",
)
"""Weight format NVFP4; the outer scale is that of the tensor, repeated for 64 elements."""

FP4_E2M1 = WeightFormat(
    "fp4_e2m1",
    4,
    16,
    E2M1,
    variants=True,
    source="compressed-tensors' NVFP4, whose E4M3 scales are divided by an f32 scale of the tensor",
)
"""Weight format of E2M1 floats with f32 scales; those of NVFP4 are quotients, rounded to f32."""
