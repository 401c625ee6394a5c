"""Dispatch of dequantize half, dequantize f32: quantized weights.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Launches, Routes, Time

# ROUTES: route, launches
ROUTES = Routes({
    "dequantize_half": (
        # the only kernel: a thread decodes groups of eight numbers
        (0, (0,)),
    ),
})
ROUTES["dequantize_f32"] = ROUTES["dequantize_half"]
# QUANTIZED: kernel, c0
QUANTIZED = {
    "dequantize_half": (("quantized_nf4_bf16_402bd4", 128),),
    "dequantize_f32": (("quantized_nf4_f32_aac725", 256),),
}


def candidates(
    table: str, arch: str, blocks: int, count: int, columns: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    fitting = ROUTES.fitting(table)
    launches: Launches = {}
    operands = blocks * 36
    for kernel, c0 in QUANTIZED[table] if 0 in fitting else ():
        ctas = -(-(blocks * 8) // 1024)
        if blocks * c0 <= 1073741824:
            us = time(kernel, "fma", 8, sms, ctas, 1, 0, operands, operands, blocks * c0)
            launches[0] = us, kernel, ctas, {}
    yield from fitting.combined(launches)
