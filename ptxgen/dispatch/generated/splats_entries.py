"""Dispatch of splats entries: splat_entries.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(
    table: str, arch: str, count: int, entries: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: the only kernel: a thread lists one entry
    yield Candidate(0.0, Choice(0, ("splats_entries_f32_05aed3",), (-(-entries // 256),), ()))
