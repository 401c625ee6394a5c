"""Dispatch of splats raster: splat_raster.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

# SPLATS: route, kernel, width_each
SPLATS = (
    # the only kernel for tiles of this size: a CTA draws a tile
    (0, "splats_raster_f32_8_3ed5eb", 8), (1, "splats_raster_f32_16_ed7b33", 16),
)


def candidates(
    table: str, arch: str, count: int, entries: int, width: int, height: int, tile: int, sms: int,
    time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    for route, kernel, width_each in SPLATS:
        tiles = -(-width // width_each) * -(-height // width_each)
        if tile == width_each:
            yield Candidate(0.0, Choice(route, (kernel,), (tiles,), ()))
            return
