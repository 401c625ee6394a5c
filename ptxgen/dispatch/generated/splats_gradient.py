"""Dispatch of splats gradient: splat_raster.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# SPLATS: route, kernel, width_each
SPLATS = (
    # the only kernels for tiles of this size: gradients of a tile's entries, then sums
    (0, "splats_gradient_f32_8_cab17b", 8), (1, "splats_gradient_f32_16_ba7ae8", 16),
)


def candidates(
    table: str, arch: str, count: int, entries: int, width: int, height: int, tile: int, sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, width_each in SPLATS:
        tiles = -(-width // width_each) * -(-height // width_each)
        if tile == width_each:
            choice = Choice(
                route, (kernel, "splats_sums_f32_1adc7f"), (tiles, -(-(count * 9) // 256)),
                (entries * 36,),
            )
            yield Candidate(0.0, choice)
            return
